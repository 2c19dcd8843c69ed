#include "chain.h"

#include <set>
#include <utility>

#include "anchors.h"
#include "elementwise.h"

namespace dnnl_byoc {
namespace adapter {
namespace {

/*! \brief Refuses what no operator here takes. */
void expect_dtype(const std::string& op, const Value& value, const std::set<std::string>& dtypes) {
  for (const Value& field : value.fields) expect_dtype(op, field, dtypes);
  const std::string& dtype = value.type.dtype;
  if (!value.is_tuple && !dtypes.count(dtype))
    refuse(op, ": expected ", *dtypes.begin(), ", got ", dtype);
}

using Dtypes = std::set<std::string>;

/*! \brief The dtypes of an operator's data, and of its result. */
std::pair<Dtypes, Dtypes> dtypes_of(const std::string& op) {
  const Dtypes real = {"float32"}, numbers = {"int8", "uint8"},
               either = {"float32", "int8", "uint8"};
  static const std::set<std::string> kMoves = {
      "concatenate",      "reshape",       "squeeze",       "expand_dims",
      "nn.batch_flatten", "transpose",     "strided_slice", "nn.max_pool1d",
      "nn.max_pool2d",    "nn.max_pool3d", "take",
  };
  if (op == "qnn.quantize") return {real, numbers};
  if (op == "qnn.dequantize") return {{"int8", "uint8", "int32"}, real};
  if (kMoves.count(op)) return {either, either};
  return {real, real};
}

Source make_source(const Call& call, GraphWriter* graph, const Resolve& resolve) {
  // The others are scales and zero points, or indices.
  static const std::set<std::string> kFirstIsData = {"qnn.quantize", "qnn.dequantize", "take",
                                                     "reshape_like"};
  for (size_t i = 0; i < (kFirstIsData.count(call.op) ? 1 : call.args.size()); ++i)
    expect_dtype(call.op, call.args[i], dtypes_of(call.op).first);
  return {call, graph, resolve};
}

/*! \brief Whether a tensor varies along one axis only, as broadcasting aligns it to `shape`. */
bool varies_along(const Ints& operand, const Ints& shape, int64_t axis) {
  if (operand.size() > shape.size() || shape[static_cast<size_t>(axis)] == kUnknown) return false;
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
  PostOpAppender(Anchor* anchor, const Value& result) : anchor_(*anchor), current_(result.key) {}

  void append(const Source& s) {
    const int x = position_of_current(s);
    s.expect(s.result_shape() == shape(), "expected a post-op to keep the shape ",
             shape_text(shape()), ", got ", shape_text(s.result_shape()));
    if (!append_bias(s, x)) append_post_op(s, x);
    current_ = s.result.key;
  }

 private:
  const Ints& shape() const { return anchor_.view.shape(); }

  int position_of_current(const Source& s) const {
    int position = -1;
    for (size_t i = 0; i < s.args.size(); ++i) {
      if (s.args[i].key != current_ || s.args[i].is_tuple) continue;
      s.expect(position < 0, "expected the result before it once, got it twice");
      position = static_cast<int>(i);
    }
    s.expect(position >= 0, "expected the result before it among the arguments");
    return position;
  }

  bool append_bias(const Source& s, int x) {
    json& node = anchor_.node;
    const int64_t axis = anchor_.view.bias_axis();
    if (axis < 0 || node["inputs"].size() != 2 || node.contains("post_ops")) return false;
    if (s.op != "add" && s.op != "nn.bias_add") return false;
    const int operand = 1 - x;
    if (!varies_along(operand_shape(s, operand), shape(), axis)) return false;
    const Ints flat = {shape()[static_cast<size_t>(axis)]};
    node["inputs"].push_back(reshaped(s.graph, s.id(operand), s.shape(operand), flat));
    return true;
  }

  void append_post_op(const Source& s, int x) {
    auto read = read_elementwise(s, x);
    s.expect(read.has_value(), "not a post-op");
    const int operand = read->operand;
    if (operand >= 0)
      read->op["src1"] =
          anchor_.view.operand(s.graph, operand_id(s, operand), operand_shape(s, operand));
    anchor_.node["post_ops"].push_back(std::move(read->op));
  }

  Anchor& anchor_;
  int64_t current_;
};

}  // namespace

int translate_chain(const std::vector<Call>& chain, GraphWriter* graph, const Resolve& resolve) {
  const Source source = make_source(chain.front(), graph, resolve);
  expect_dtype(source.op, source.result, dtypes_of(source.op).second);
  source.expect(!source.result_shape().empty(), "expected rank >= 1, got a scalar");

  Anchor anchor = translate_anchor(source);
  PostOpAppender post_ops(&anchor, source.result);
  for (size_t next = 1; next < chain.size(); ++next)
    post_ops.append(make_source(chain[next], graph, resolve));
  return anchor.view.finish(graph, graph->add_node(std::move(anchor.node)));
}

}  // namespace adapter
}  // namespace dnnl_byoc
