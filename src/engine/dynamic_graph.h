/*!
 * \file dynamic_graph.h
 * \brief Graphs with sizes that only a run knows, and what becomes of them for given sizes.
 */
#ifndef DNNL_BYOC_ENGINE_DYNAMIC_GRAPH_H_
#define DNNL_BYOC_ENGINE_DYNAMIC_GRAPH_H_

#include <memory>
#include <optional>

#include "executable.h"
#include "graph.h"

namespace dnnl_byoc {

/*! \brief The graph for given sizes. \param sizes For each kUnknown of its inputs, in order. */
Graph with_sizes(const Graph& graph, const memory::dims& sizes);

/*!
 * \brief Compiles a graph for given sizes, whatever they are.
 *
 * Where a post-op of a node turns out to be none, as for an operand that is larger than the result,
 * or where oneDNN has no implementation for it, the post-ops become nodes of their own.
 */
std::unique_ptr<Executable> compile_for_sizes(const Graph& graph, const memory::dims& sizes,
                                              WorkspacePool* workspaces);

/*!
 * \brief Throws unless oneDNN has a fast implementation for every node, as far as can be told.
 *
 * That is asked for all unknown sizes being 48, which most windows fit into and most reshapes
 * divide, and for all being 7, which leaves remainders everywhere; what cannot be 7 is not asked.
 * A run with other sizes may get a slow implementation, but it gets one.
 */
void expect_support(const Graph& graph);

/*!
 * \brief The graph for the sizes that constants are packed for: large ones, which take most time.
 * \return None if its unknown sizes cannot all be the same, or if oneDNN is not fast for that.
 */
std::optional<Graph> graph_to_pack_for(const Graph& graph);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_DYNAMIC_GRAPH_H_
