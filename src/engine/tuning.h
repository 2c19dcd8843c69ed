/*!
 * \file tuning.h
 * \brief What can only be chosen by measurement, on the machine that will run the graph.
 */
#ifndef DNNL_BYOC_ENGINE_TUNING_H_
#define DNNL_BYOC_ENGINE_TUNING_H_

#include <optional>
#include <vector>

#include "engine.h"
#include "graph.h"

namespace dnnl_byoc {

/*!
 * \brief Runs the graph in the ways that it can be run, and returns the fastest.
 *
 * Of a batch, first whether it is run in chunks. Then, in each layout that its convolutions can
 * share, oneDNN's implementations for each node, whose order is not always that of their speed: the
 * layout is that in which a run with the fastest of all nodes takes least. With AVX2, 3.2 prefers
 * channels-last, in which a ResNet50 takes a fifth longer than in blocks of eight channels; with
 * AVX-512 it prefers blocks, in which a MobileNetV2 takes a tenth longer than channels-last, but
 * with the second implementation of its depthwise convolutions. Last, for each convolution,
 * Winograd's algorithm.
 * \param data The graph's constants.
 * \param tune Which of this.
 * \return None if there is nothing to choose.
 */
std::optional<Choices> fastest(const Graph& graph, const std::vector<const void*>& data,
                               dnnl_byoc_tune_t tune);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_TUNING_H_
