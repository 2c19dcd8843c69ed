/*!
 * \file chunk.h
 * \brief A graph for a part of its batch.
 */
#ifndef DNNL_BYOC_ENGINE_CHUNK_H_
#define DNNL_BYOC_ENGINE_CHUNK_H_

#include <optional>

#include "graph.h"

namespace dnnl_byoc {

/*! \brief The first dimension of the first input, which is the batch if there is one; else 1. */
memory::dim batch_of(const Graph& graph);

/*!
 * \brief The same graph for a batch of `images`; the nodes keep their numbers.
 *
 * Whoever runs it on one chunk of the batch after the other gets the results of the whole: the
 * inputs whose first dimension is the batch, and all outputs, are cut along it; the other inputs
 * are those of every chunk.
 * \return None if an element of a result may depend on several images.
 */
std::optional<Graph> chunk_of(const Graph& graph, memory::dim images);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_CHUNK_H_
