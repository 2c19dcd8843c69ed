#include "op.h"

#include <map>

#include "../error.h"

namespace dnnl_byoc {
namespace {

using Builder = void (*)(PlanBuilder&, const Node&);

const std::map<std::string, Builder> kBuilders = {
    {"convolution", build_convolution},
    {"deconvolution", build_deconvolution},
    {"inner_product", build_inner_product},
    {"matmul", build_matmul},
    {"pooling", build_pooling},
    {"eltwise", build_eltwise},
    {"binary", build_binary},
    {"batch_normalization", build_batch_normalization},
    {"layer_normalization", build_layer_normalization},
    {"instance_normalization", build_instance_normalization},
    {"softmax", build_softmax},
    {"lrn", build_lrn},
    {"reduction", build_reduction},
    {"prelu", build_prelu},
    {"resampling", build_resampling},
    {"quantize", build_quantize},
    {"dequantize", build_dequantize},
    {"concat", build_concat},
    {"gather", build_gather},
    {"reshape", build_reshape},
    {"transpose", build_transpose},
    {"slice", build_slice},
};

bool has_elements(const PlanBuilder& b, int tensor) { return count(b.shape(tensor)) > 0; }

constexpr size_t kMaxPostOps = 32;  // oneDNN's limit, which its headers do not name

}  // namespace

void build_op(PlanBuilder& b, const Node& node) {
  auto it = kBuilders.find(node.kind);
  if (it == kBuilders.end()) throw InvalidArgument("graph: unknown kind of node: " + node.kind);
  if (b.is_defined(node.output)) return;  // the node before this quantize has left the numbers
  for (int id : node.inputs)
    if (b.mode() == Plan::Mode::support && !has_elements(b, id))
      throw Unsupported(node.kind + ": expected non-empty tensors, got " + shape_name(b.shape(id)));
  if (node.post_ops.size() > kMaxPostOps)
    throw Unsupported(text(node.kind, ": expected at most ", kMaxPostOps, " post-ops, got ",
                           node.post_ops.size()));
  it->second(b, node);
  // oneDNN does nothing where there is no data, but a sum of nothing is 0.
  if (node.kind != "concat" && !has_elements(b, node.inputs[0]) && b.is_defined(node.output) &&
      has_elements(b, node.output))
    throw Unsupported(
        text(node.kind, ": expected non-empty tensors, got ", shape_name(b.shape(node.inputs[0]))));
}

bool has_weights(const Node& node) {
  return node.kind == "convolution" || node.kind == "deconvolution" ||
         node.kind == "inner_product" || node.kind == "matmul";
}

void expect(bool holds, const PlanBuilder& b, const Node& node, const char* what) {
  if (holds) return;
  std::string shapes;
  for (int id : node.inputs) shapes += (shapes.empty() ? "" : ", ") + shape_name(b.shape(id));
  throw InvalidArgument(text(node.kind, ": expected ", what, ", got ", shapes));
}

}  // namespace dnnl_byoc
