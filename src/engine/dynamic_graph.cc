#include "dynamic_graph.h"

#include <algorithm>
#include <utility>

#include "error.h"
#include "plan.h"

namespace dnnl_byoc {
namespace {

constexpr memory::dim kTypical = 48, kOdd = 7;
constexpr memory::dim kToPackFor[] = {192, kTypical};

Graph with_all_sizes(const Graph& graph, memory::dim size) {
  memory::dims sizes;
  for (const ExternalTensor& tensor : graph.inputs)
    sizes.resize(sizes.size() + static_cast<size_t>(
                                    std::count(tensor.shape.begin(), tensor.shape.end(), kUnknown)),
                 size);
  return with_sizes(graph, sizes);
}

/*! \brief The graph with the post-ops of a node as nodes behind it. */
Graph with_post_ops_apart(Graph graph, int number) {
  const auto place = graph.nodes.begin() + number;
  std::vector<PostOp> post_ops;
  std::swap(post_ops, place->post_ops);
  const int result = std::exchange(place->output, graph.num_tensors++);
  std::vector<Node> apart;
  for (const PostOp& op : post_ops) {
    Node node;
    node.inputs = {apart.empty() ? place->output : apart.back().output};
    node.output = graph.num_tensors++;
    node.kind = op.kind == PostOp::Kind::eltwise  ? "eltwise"
                : op.kind == PostOp::Kind::binary ? "binary"
                                                  : "prelu";
    if (op.has_operand()) node.inputs.push_back(op.src1);
    if (op.kind != PostOp::Kind::prelu) node.attrs["alg"] = algorithm_name(op.alg);
    if (op.kind == PostOp::Kind::eltwise) {
      node.attrs["alpha"] = op.alpha;
      node.attrs["beta"] = op.beta;
    }
    apart.push_back(std::move(node));
  }
  apart.back().output = result;
  graph.nodes.insert(place + 1, apart.begin(), apart.end());
  return graph;
}

}  // namespace

Graph with_sizes(const Graph& graph, const memory::dims& sizes) {
  Graph result = graph;
  auto size = sizes.begin();
  for (ExternalTensor& tensor : result.inputs)
    for (memory::dim& dim : tensor.shape)
      if (dim == kUnknown) dim = *size++;
  return result;
}

std::unique_ptr<Executable> compile_for_sizes(const Graph& graph, const memory::dims& sizes,
                                              WorkspacePool* workspaces) {
  Graph known = with_sizes(graph, sizes);
  for (;;) {
    try {
      return std::make_unique<Executable>(known, /*threads=*/0, workspaces);
    } catch (const Refusal& e) {
      if (e.node < 0 || known.nodes[static_cast<size_t>(e.node)].post_ops.empty()) throw;
      known = with_post_ops_apart(std::move(known), e.node);
    }
  }
}

void expect_support(const Graph& graph) {
  Plan::compile(with_all_sizes(graph, kTypical), Plan::Mode::support);
  if (!graph.is_dynamic()) return;
  try {
    Plan::compile(with_all_sizes(graph, kOdd), Plan::Mode::support);
  } catch (const InvalidArgument&) {
  }
}

std::optional<Graph> graph_to_pack_for(const Graph& graph) {
  for (const memory::dim size : kToPackFor) {
    Graph known = with_all_sizes(graph, size);
    try {
      Plan::compile(known, Plan::Mode::support);
      return known;
    } catch (const Refusal&) {
    }
  }
  return std::nullopt;
}

}  // namespace dnnl_byoc
