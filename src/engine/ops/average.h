/*!
 * \file average.h
 * \brief Averages of whole numbers.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_AVERAGE_H_
#define DNNL_BYOC_ENGINE_OPS_AVERAGE_H_

#include "op.h"

namespace dnnl_byoc {

/*! \brief scale · average + shift, rounded: numbers that stand for an average of what others do. */
struct NumbersAverage {
  int src, dst;  // tensors: the numbers
  bool counts_padding;
  float scale, shift;
};

/*!
 * \brief Compiles an average pooling of two spatial dimensions whose numbers are channels-last.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_average(PlanBuilder& b, const Node& node, const NumbersAverage& average);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_AVERAGE_H_
