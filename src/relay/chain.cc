#include "chain.h"

#include "anchors.h"
#include "elementwise.h"

namespace dnnl_byoc {
namespace relay {
namespace {

using json = GraphWriter::json;
using Ints = std::vector<int64_t>;

/*! \brief Refuses what no operator here takes: other dtypes, symbolic shapes, scalars. */
void expect_tensor(const std::string& op, const ObjectRef& expr) {
  if (is(expr, "relay.Tuple")) {
    for (const ObjectRef& field : get_array(expr, "fields")) expect_tensor(op, field);
    return;
  }
  TensorType type;
  try {
    type = tensor_type(expr);
  } catch (const Refusal& e) {
    refuse(op, ": ", e.what());
  }
  if (type.dtype != "float32") refuse(op, ": expected float32, got ", type.dtype);
}

Source make_source(const ObjectRef& call, GraphWriter* graph, const Resolve& resolve) {
  if (!is(call, "relay.Call")) refuse("expected an operator call, got ", call->GetTypeKey());
  const std::string op = op_name(call);
  if (op.empty()) refuse("expected a call of an operator, got a call of a function");
  Source s{op, call, get_object(call, "attrs"), get_array(call, "args"), graph, resolve};
  for (const ObjectRef& arg : s.args) expect_tensor(op, arg);
  return s;
}

/*! \brief The dimension of a node's result that a bias belongs to, -1 if the kind takes none. */
int64_t bias_axis(const json& node) {
  if (node["kind"] == "convolution") return 1;
  return node["kind"] == "inner_product" ? 1 : -1;
}

/*! \brief Whether a tensor varies along one axis only, as broadcasting aligns it to `shape`. */
bool varies_along(const Ints& operand, const Ints& shape, int64_t axis) {
  if (operand.size() > shape.size()) return false;
  const size_t missing = shape.size() - operand.size();
  if (missing > static_cast<size_t>(axis)) return false;
  for (size_t i = 0; i < operand.size(); ++i) {
    const bool at_axis = i + missing == static_cast<size_t>(axis);
    if (operand[i] != (at_axis ? shape[i + missing] : 1)) return false;
  }
  return true;
}

/*! \brief Translates the chain's calls after the anchor, one by one. */
class PostOpAppender {
 public:
  PostOpAppender(json* node, const ObjectRef& anchor, Ints shape)
      : node_(*node), current_(anchor), shape_(std::move(shape)) {}

  void append(const Source& s) {
    const int x = position_of_current(s);
    s.expect(tensor_type(s.call).shape == shape_, "expected a post-op to keep the shape ",
             shape_text(shape_), ", got ", shape_text(tensor_type(s.call).shape));
    if (!append_bias(s, x)) append_post_op(s, x);
    current_ = s.call;
  }

  /*! \brief The result's name changes where a tuple is unpacked. */
  void rename(const ObjectRef& expr) { current_ = expr; }

 private:
  int position_of_current(const Source& s) const {
    int position = -1;
    for (size_t i = 0; i < s.args.size(); ++i) {
      if (!s.args[i].same_as(current_)) continue;
      s.expect(position < 0, "expected the result before it once, got it twice");
      position = static_cast<int>(i);
    }
    s.expect(position >= 0, "expected the result before it among the arguments");
    return position;
  }

  bool append_bias(const Source& s, int x) {
    const int64_t axis = bias_axis(node_);
    if (axis < 0 || node_["inputs"].size() != 2 || node_.contains("post_ops")) return false;
    if (s.op != "add" && s.op != "nn.bias_add") return false;
    const int other = 1 - x;
    if (s.op == "nn.bias_add" ? channel_axis(s) != axis
                              : !varies_along(s.type(other).shape, shape_, axis))
      return false;
    int bias = s.id(other);
    const Ints flat = {shape_[axis]};
    if (s.type(other).shape != flat) bias = s.graph->add_node("reshape", {bias}, {{"shape", flat}});
    node_["inputs"].push_back(bias);
    return true;
  }

  void append_post_op(const Source& s, int x) {
    json op;
    if (s.op == "nn.bias_add") {
      s.expect(x == 0, "expected the result before it as the data");
      const int64_t axis = channel_axis(s);
      const auto rank = static_cast<int64_t>(shape_.size());
      op = {{"kind", "binary"},
            {"alg", "add"},
            {"src1", align_channel(s, s.id(1), shape_[axis], axis, rank)}};
    } else {
      auto read = read_elementwise(s, x);
      s.expect(read.has_value(), "not a post-op");
      op = std::move(read->op);
      if (read->operand >= 0) op["src1"] = s.id(read->operand);
    }
    node_["post_ops"].push_back(std::move(op));
  }

  int64_t channel_axis(const Source& s) const {
    const int64_t axis = get_int(s.attrs, "axis");
    return axis < 0 ? axis + static_cast<int64_t>(shape_.size()) : axis;
  }

  json& node_;
  ObjectRef current_;
  Ints shape_;
};

}  // namespace

int translate_chain(const std::vector<ObjectRef>& chain, GraphWriter* graph,
                    const Resolve& resolve) {
  const Source anchor = make_source(chain.front(), graph, resolve);
  size_t next = 1;
  ObjectRef result = anchor.call;
  if (anchor.op == "nn.batch_norm") {
    // Its result is a tuple, of which only the normalised data is to be had.
    if (chain.size() < 2 || !is(chain[1], "relay.TupleGetItem") || get_int(chain[1], "index") != 0)
      refuse("nn.batch_norm: expected only its first output to be used");
    result = chain[next++];
  }
  expect_tensor(anchor.op, result);
  const Ints shape = tensor_type(result).shape;
  anchor.expect(!shape.empty(), "expected rank >= 1, got a scalar");

  json node = translate_anchor(anchor);
  PostOpAppender post_ops(&node, result, shape);
  for (; next < chain.size(); ++next) post_ops.append(make_source(chain[next], graph, resolve));
  return graph->add_node(std::move(node));
}

}  // namespace relay
}  // namespace dnnl_byoc
