#include "dequantize_later.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dnnl_byoc {
namespace {

using nlohmann::json;

json quantization(const json& scales, const json& zero_points, const json& axis) {
  return {{"scales", scales}, {"zero_points", zero_points}, {"axis", axis}};
}

/*! \brief Of a quantize or dequantize, without the dtype. */
json quantization(const Node& node) {
  return quantization(node.attrs.value("scales", json::array()),
                      node.attrs.value("zero_points", json::array()),
                      node.attrs.contains("axis") ? node.attr<memory::dim>("axis") : 0);
}

bool is_per_tensor(const Node& node) {
  return node.attrs.contains("scales") && node.attrs["scales"].size() == 1;
}

/*! \brief What a dequantize becomes behind a view of its numbers; nothing if it cannot go there. */
std::optional<json> behind_view(const Node& dequantize, const Node& view) {
  if (is_per_tensor(dequantize)) return quantization(dequantize);
  if (view.kind != "transpose") return std::nullopt;
  const auto axes = view.attr<memory::dims>("axes");
  const auto place = std::find(axes.begin(), axes.end(), dequantize.attr<memory::dim>("axis"));
  if (place == axes.end()) return std::nullopt;
  json moved = quantization(dequantize);
  moved["axis"] = place - axes.begin();
  return moved;
}

class Mover {
 public:
  explicit Mover(Graph graph) : graph_(std::move(graph)) {
    for (const auto* tensors : {&graph_.inputs, &graph_.constants})
      for (const ExternalTensor& tensor : *tensors) dtype_of_[tensor.id] = tensor.dtype;
  }

  Graph run() {
    std::vector<Node> nodes;
    std::swap(nodes, graph_.nodes);
    for (const Node& node : nodes)
      if (node.kind == "quantize" && has_zero_points(node)) shifted_.insert(node.inputs.at(0));
    for (Node& node : nodes) {
      for (int& id : node.inputs) id = now(id);
      for (PostOp& op : node.post_ops)
        if (op.has_operand()) op.src1 = now(op.src1);
      for (SizeReference& size : node.sizes) size.tensor = now(size.tensor);
      move(std::move(node));
    }
    for (int& id : graph_.outputs) id = now(id);
    return std::move(graph_);
  }

 private:
  int now(int id) const {
    const auto it = same_.find(id);
    return it == same_.end() ? id : it->second;
  }

  const Node* dequantizer_of(int id) const {
    const auto it = dequantizers_.find(id);
    return it == dequantizers_.end() ? nullptr : &it->second;
  }

  void move(Node node) {
    const Node* first = node.inputs.empty() ? nullptr : dequantizer_of(node.inputs[0]);
    if (node.kind == "quantize" && first && undoes(node, *first)) {
      same_[node.output] = first->inputs[0];
      return;
    }
    if (first && node.post_ops.empty())
      if (const auto later = quantization_behind(node, *first))
        return append_before_dequantize(std::move(node), *later);
    if (node.kind == "inner_product" && first && node.inputs.size() > 1 &&
        dequantizer_of(node.inputs[1]) && (has_zero_points(*first) || shifted_.count(node.output)))
      return multiply(std::move(node));
    append(std::move(node));
  }

  /*! \brief Whether a quantize gives the numbers again that are dequantized. */
  bool undoes(const Node& quantize, const Node& dequantize) const {
    const auto dtype = dtype_of_.find(dequantize.inputs[0]);
    return quantize.inputs.size() == 1 && quantize.post_ops.empty() && is_per_tensor(quantize) &&
           quantization(quantize) == quantization(dequantize) && dtype != dtype_of_.end() &&
           quantize.attrs.value("dtype", "") == dtype_name(dtype->second);
  }

  static bool has_zero_points(const Node& node) {
    const auto points = node.attr<memory::dims>("zero_points");
    return std::any_of(points.begin(), points.end(), [](memory::dim point) { return point != 0; });
  }

  /*! \brief How the result of a node is dequantized, if the node can do with numbers. */
  std::optional<json> quantization_behind(const Node& node, const Node& first) const {
    if (is_view(node)) return node.inputs.size() == 1 ? behind_view(first, node) : std::nullopt;
    const bool maximum = node.kind == "pooling" && node.attrs.value("alg", "") == "max";
    const auto numbers = dtype(first);
    if ((!maximum && node.kind != "concat") || numbers == memory::data_type::undef ||
        numbers == memory::data_type::s32)
      return std::nullopt;
    for (int id : node.inputs) {
      const Node* other = dequantizer_of(id);
      if (!other || !is_per_tensor(*other) || quantization(*other) != quantization(first) ||
          dtype(*other) != numbers)
        return std::nullopt;
    }
    return quantization(first);
  }

  memory::data_type dtype(const Node& dequantize) const {
    const auto it = dtype_of_.find(dequantize.inputs[0]);
    return it == dtype_of_.end() ? memory::data_type::undef : it->second;
  }

  /*! \brief Appends a node that reads numbers, and a dequantize of its result. */
  void append_before_dequantize(Node node, const json& quantization) {
    Node dequantize = {"dequantize", {graph_.num_tensors++}, node.output, quantization, {}};
    for (int& id : node.inputs) id = dequantizer_of(id)->inputs[0];
    node.output = dequantize.inputs[0];
    append(std::move(node));
    append(std::move(dequantize));
  }

  /*! \brief Appends an inner product as a matmul, with transposed weights. */
  void multiply(Node node) {
    const int transposed = graph_.num_tensors++;
    move({"transpose", {node.inputs[1]}, transposed, {{"axes", {1, 0}}}, {}});
    node.kind = "matmul";
    node.inputs[1] = transposed;
    append(std::move(node));
  }

  void append(Node node) {
    if (node.kind == "dequantize") dequantizers_[node.output] = node;
    if (is_view(node) || node.kind == "pooling" || node.kind == "concat")
      if (const auto it = dtype_of_.find(node.inputs.at(0)); it != dtype_of_.end())
        dtype_of_[node.output] = it->second;
    if (node.kind == "quantize")
      dtype_of_[node.output] =
          node.attrs.value("dtype", "") == "u8" ? memory::data_type::u8 : memory::data_type::s8;
    graph_.nodes.push_back(std::move(node));
  }

  Graph graph_;
  std::set<int> shifted_;             // tensors that are quantized with a zero point
  std::map<int, int> same_;           // by tensor: the one that it is the same as
  std::map<int, Node> dequantizers_;  // by tensor
  std::map<int, memory::data_type> dtype_of_;
};

}  // namespace

Graph dequantize_later(Graph graph) { return Mover(std::move(graph)).run(); }

}  // namespace dnnl_byoc
