/*!
 * \file chain.h
 * \brief Translates a chain of Relay calls into one node of the engine's graph.
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
 * Each expression after the first has the one before it among its arguments.
 */
#ifndef DNNL_BYOC_RELAY_CHAIN_H_
#define DNNL_BYOC_RELAY_CHAIN_H_

#include <functional>
#include <vector>

#include "graph_writer.h"
#include "reflection.h"

namespace dnnl_byoc {
namespace relay {

/*!
 * \brief Whether a call is to be translated as one operator.
 *
 * It calls a function with the attribute "alg", an activation, or "op", the name of an operator
 * that Relay lacks; what the function is made of does not matter here.
 */
bool is_composed(const ObjectRef& call);

/*! \brief Gives the tensor id of an expression outside of the chain. */
using Resolve = std::function<int(const ObjectRef&)>;

/*!
 * \brief Appends the chain's node to the graph.
 * \return The id of the chain's result.
 * \throw Refusal if an expression has no counterpart in the engine.
 */
int translate_chain(const std::vector<ObjectRef>& chain, GraphWriter* graph,
                    const Resolve& resolve);

}  // namespace relay
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAY_CHAIN_H_
