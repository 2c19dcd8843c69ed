/*!
 * \file chain.h
 * \brief Translates a chain of calls into one node of the engine's graph.
 *
 *      src  weights
 *        \   /
 *       anchor        nn.conv2d, nn.dense, a pooling, …; a lone elementwise op, too
 *          |
 *        add  ← bias  becomes the anchor's bias if it is one per output channel
 *          |
 *        add  ← x     a binary post-op
 *          |
 *        relu         an eltwise post-op
 *
 * Each call after the first has the result of the one before it among its arguments.
 */
#ifndef DNNL_BYOC_ADAPTER_CHAIN_H_
#define DNNL_BYOC_ADAPTER_CHAIN_H_

#include <functional>
#include <vector>

#include "call.h"
#include "graph_writer.h"

namespace dnnl_byoc {
namespace adapter {

/*! \brief Gives the tensor id of a value from outside of the chain. */
using Resolve = std::function<int(const Value&)>;

/*!
 * \brief Appends the chain's node to the graph.
 * \return The id of the chain's result.
 * \throw Refusal if a call has no counterpart in the engine.
 */
int translate_chain(const std::vector<Call>& chain, GraphWriter* graph, const Resolve& resolve);

}  // namespace adapter
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ADAPTER_CHAIN_H_
