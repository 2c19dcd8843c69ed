#include "op.h"

#include <map>

#include "../error.h"

namespace dnnl_byoc {
namespace {

using Builder = void (*)(PlanBuilder&, const Node&);

const std::map<std::string, Builder> kBuilders = {
    {"convolution", build_convolution}, {"inner_product", build_inner_product},
    {"pooling", build_pooling},         {"eltwise", build_eltwise},
    {"binary", build_binary},           {"batch_normalization", build_batch_normalization},
    {"softmax", build_softmax},         {"concat", build_concat},
    {"reshape", build_reshape},
};

constexpr size_t kMaxPostOps = 32;  // oneDNN's limit, which its headers do not name

}  // namespace

void build_op(PlanBuilder& b, const Node& node) {
  auto it = kBuilders.find(node.kind);
  if (it == kBuilders.end()) throw InvalidArgument("graph: unknown kind of node: " + node.kind);
  for (int id : node.inputs)
    for (auto dim : b.shape(id))
      if (dim == 0)
        throw Unsupported(node.kind + ": expected non-empty tensors, got " +
                          shape_name(b.shape(id)));
  if (node.post_ops.size() > kMaxPostOps)
    throw Unsupported(text(node.kind, ": expected at most ", kMaxPostOps, " post-ops, got ",
                           node.post_ops.size()));
  it->second(b, node);
}

bool is_view(const Node& node) { return node.kind == "reshape"; }

void expect(bool holds, const PlanBuilder& b, const Node& node, const char* what) {
  if (holds) return;
  std::string shapes;
  for (int id : node.inputs) shapes += (shapes.empty() ? "" : ", ") + shape_name(b.shape(id));
  throw InvalidArgument(text(node.kind, ": expected ", what, ", got ", shapes));
}

}  // namespace dnnl_byoc
