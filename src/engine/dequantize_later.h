/*!
 * \file dequantize_later.h
 * \brief Lets numbers be moved about before they are dequantized.
 */
#ifndef DNNL_BYOC_ENGINE_DEQUANTIZE_LATER_H_
#define DNNL_BYOC_ENGINE_DEQUANTIZE_LATER_H_

#include "graph.h"

namespace dnnl_byoc {

/*!
 * \brief The same graph, with each dequantize as late as it can be.
 *
 * What follows a dequantize and computes nothing (a view, a maximum, a concat of what is quantized
 * alike) is done with the numbers, a fraction of the bytes. What is quantized again as it was, is
 * the numbers. And since oneDNN's inner product knows no zero points, a matmul takes its place
 * where there are any.
 */
Graph dequantize_later(Graph graph);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_DEQUANTIZE_LATER_H_
