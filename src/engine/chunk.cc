#include "chunk.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dnnl_byoc {
namespace {

/*! \brief What has to be known of a tensor. */
struct Tensor {
  size_t rank = 0;
  bool batched = false;  // its first dimension is the batch
  bool varies = false;   // else: its first dimension may be more than 1
};

/*! \brief Cuts one node after the other; false where images would be mixed. */
class Cutter {
 public:
  Cutter(const Graph& graph, memory::dim images)
      : batch_(batch_of(graph)), images_(images), tensors_(graph.num_tensors) {}

  /*! \brief An input or a constant; an input may be cut. */
  void add(ExternalTensor* tensor, bool may_be_batched) {
    memory::dims& shape = tensor->shape;
    const bool batched = may_be_batched && !shape.empty() && shape[0] == batch_;
    tensors_[tensor->id] = {shape.size(), batched, !shape.empty() && shape[0] != 1};
    if (batched) shape[0] = images_;
  }

  bool cut(Node* node) {
    static const std::map<std::string, bool (Cutter::*)(Node*) const> rules = {
        {"convolution", &Cutter::has_batched_src},
        {"deconvolution", &Cutter::has_batched_src},
        {"inner_product", &Cutter::has_batched_src},
        {"pooling", &Cutter::has_batched_src},
        {"lrn", &Cutter::has_batched_src},
        {"resampling", &Cutter::has_batched_src},
        {"batch_normalization", &Cutter::has_batched_src},
        {"layer_normalization", &Cutter::has_batched_src},
        {"eltwise", &Cutter::has_batched_src},
        {"quantize", &Cutter::has_scales_beside_the_batch},
        {"dequantize", &Cutter::has_scales_beside_the_batch},
        {"prelu", &Cutter::has_two_operands},
        {"binary", &Cutter::has_two_operands},
        {"matmul", &Cutter::has_matrices},
        {"softmax", &Cutter::has_axis_beside_the_batch},
        {"concat", &Cutter::joins_beside_the_batch},
        {"reduction", &Cutter::reduces_beside_the_batch},
        {"gather", &Cutter::gathers_for_each_image},
        {"reshape", &Cutter::cut_reshape},
        {"transpose", &Cutter::keeps_the_batch_first},
        {"slice", &Cutter::cut_slice},
    };
    if (takes_the_batch_for_a_size(*node)) return false;
    if (!reads_batch(*node)) {  // as a bias that is given another shape
      tensors_[node->output] = {rank_of_dst(*node), false, !begins_with_one(*node)};
      return true;
    }
    const auto rule = rules.find(node->kind);
    if (rule == rules.end() || !(this->*rule->second)(node)) return false;
    const Tensor dst = {rank_of_dst(*node), true, true};
    for (const PostOp& op : node->post_ops)
      if (op.has_operand() && !broadcasts(op.src1, dst.rank)) return false;
    tensors_[node->output] = dst;
    return true;
  }

  bool is_batched(int tensor) const { return tensors_[tensor].batched; }

 private:
  bool reads_batch(const Node& node) const {
    const auto batched = [this](int id) { return is_batched(id); };
    return std::any_of(node.inputs.begin(), node.inputs.end(), batched) ||
           std::any_of(node.post_ops.begin(), node.post_ops.end(),
                       [&](const PostOp& op) { return op.has_operand() && batched(op.src1); });
  }

  bool takes_the_batch_for_a_size(const Node& node) const {
    return std::any_of(node.sizes.begin(), node.sizes.end(), [this](const SizeReference& size) {
      return size.axis == 0 && is_batched(size.tensor);
    });
  }

  static bool begins_with_one(const Node& node) {
    if (node.kind != "reshape") return false;
    const auto shape = node.attr<memory::dims>("shape");
    return !shape.empty() && shape[0] == 1;
  }

  size_t rank_of_dst(const Node& node) const {
    if (node.kind == "reshape") return node.attr<memory::dims>("shape").size();
    if (node.kind == "gather" && node.inputs.size() == 2)
      return tensors_[node.inputs[0]].rank + tensors_[node.inputs[1]].rank - 1;
    size_t rank = 0;
    for (int id : node.inputs) rank = std::max(rank, tensors_[id].rank);
    return rank;
  }

  /*! \brief Whether an operand of an elementwise operation is the image's own, or that of all. */
  bool broadcasts(int tensor, size_t rank_of_dst) const {
    const Tensor& t = tensors_[tensor];
    return t.batched ? t.rank == rank_of_dst : t.rank < rank_of_dst || !t.varies;
  }

  bool has_batched_src(Node* node) const {
    // A vector's first dimension is also its last.
    return is_batched(node->inputs[0]) && tensors_[node->inputs[0]].rank >= 2 &&
           std::none_of(node->inputs.begin() + 1, node->inputs.end(),
                        [this](int id) { return is_batched(id); });
  }

  bool has_two_operands(Node* node) const {
    if (node->inputs.size() < 2) return false;  // the compilation will say what is wrong
    const size_t rank = rank_of_dst(*node);
    const int a = node->inputs[0], b = node->inputs[1];
    return (is_batched(a) || is_batched(b)) && broadcasts(a, rank) && broadcasts(b, rank);
  }

  bool has_matrices(Node* node) const {
    if (rank_of_dst(*node) == 2) return has_batched_src(node);  // the batch is M
    return has_two_operands(node) && (node->inputs.size() < 3 || !is_batched(node->inputs[2]));
  }

  bool has_axis_beside_the_batch(Node* node) const {
    return has_batched_src(node) && node->attr<int>("axis") > 0;
  }

  bool has_scales_beside_the_batch(Node* node) const {
    return has_batched_src(node) &&
           (node->attr<std::vector<float>>("scales").size() == 1 || node->attr<int>("axis") > 0);
  }

  bool joins_beside_the_batch(Node* node) const {
    return node->attr<int>("axis") > 0 && std::all_of(node->inputs.begin(), node->inputs.end(),
                                                      [this](int id) { return is_batched(id); });
  }

  bool reduces_beside_the_batch(Node* node) const {
    const auto axes = node->attr<memory::dims>("axes");
    return has_batched_src(node) && std::find(axes.begin(), axes.end(), 0) == axes.end();
  }

  bool gathers_for_each_image(Node* node) const {
    return node->inputs.size() == 2 && !is_batched(node->inputs[0]) &&
           is_batched(node->inputs[1]) && node->attr<int>("axis") == 0;
  }

  bool cut_reshape(Node* node) const {
    const auto shape = node->attr<memory::dims>("shape");
    if (!is_batched(node->inputs[0]) || shape.empty() || shape[0] != batch_) return false;
    node->attrs["shape"][0] = images_;
    return true;
  }

  bool keeps_the_batch_first(Node* node) const {
    const auto axes = node->attr<memory::dims>("axes");
    return is_batched(node->inputs[0]) && !axes.empty() && axes[0] == 0;
  }

  bool cut_slice(Node* node) const {
    const auto begin = node->attr<memory::dims>("begin"), size = node->attr<memory::dims>("size");
    if (!is_batched(node->inputs[0]) || begin.empty() || begin[0] != 0 || size.empty() ||
        size[0] != batch_)
      return false;
    node->attrs["size"][0] = images_;
    return true;
  }

  const memory::dim batch_, images_;
  std::vector<Tensor> tensors_;
};

}  // namespace

memory::dim batch_of(const Graph& graph) {
  return graph.inputs.empty() || graph.inputs[0].shape.empty() ? 1 : graph.inputs[0].shape[0];
}

std::optional<Graph> chunk_of(const Graph& graph, memory::dim images) {
  Graph chunk = graph;
  Cutter cutter(graph, images);
  for (ExternalTensor& tensor : chunk.inputs) cutter.add(&tensor, true);
  for (ExternalTensor& tensor : chunk.constants) cutter.add(&tensor, false);
  for (Node& node : chunk.nodes)
    if (!cutter.cut(&node)) return std::nullopt;
  for (int id : chunk.outputs)
    if (!cutter.is_batched(id)) return std::nullopt;
  return chunk;
}

}  // namespace dnnl_byoc
