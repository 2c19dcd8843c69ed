/*!
 * \file tuning.h
 * \brief What can only be chosen by measurement, on the machine that will run the graph.
 */
#ifndef DNNL_BYOC_ENGINE_TUNING_H_
#define DNNL_BYOC_ENGINE_TUNING_H_

#include <vector>

#include "graph.h"

namespace dnnl_byoc {

/*!
 * \brief Runs the graph in each layout that its convolutions can share, and returns the fastest.
 *
 * oneDNN's order of implementations is not always that of their speed: with AVX2, 3.2 prefers
 * channels-last, in which a ResNet50 takes a fifth longer than in blocks of eight channels.
 * \param data The graph's constants.
 * \return None if there is nothing to choose.
 */
std::optional<DataLayout> fastest_layout(Graph graph, const std::vector<const void*>& data);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_TUNING_H_
