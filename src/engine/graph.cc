#include "graph.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <type_traits>

#include "dequantize_later.h"
#include "error.h"

namespace dnnl_byoc {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 32;

const std::map<std::string, memory::data_type> kDtypes = {
    {"f32", memory::data_type::f32}, {"bf16", memory::data_type::bf16},
    {"f16", memory::data_type::f16}, {"s32", memory::data_type::s32},
    {"s8", memory::data_type::s8},   {"u8", memory::data_type::u8},
};

using Algorithms = std::map<std::string, dnnl::algorithm>;

const Algorithms kEltwise = {
    {"relu", dnnl::algorithm::eltwise_relu},
    {"clip", dnnl::algorithm::eltwise_clip},
    {"logistic", dnnl::algorithm::eltwise_logistic},
    {"tanh", dnnl::algorithm::eltwise_tanh},
    {"linear", dnnl::algorithm::eltwise_linear},
    {"exp", dnnl::algorithm::eltwise_exp},
    {"log", dnnl::algorithm::eltwise_log},
    {"sqrt", dnnl::algorithm::eltwise_sqrt},
    {"abs", dnnl::algorithm::eltwise_abs},
    {"square", dnnl::algorithm::eltwise_square},
    {"pow", dnnl::algorithm::eltwise_pow},
    {"round", dnnl::algorithm::eltwise_round},
    {"elu", dnnl::algorithm::eltwise_elu},
    {"soft_relu", dnnl::algorithm::eltwise_soft_relu},
    {"swish", dnnl::algorithm::eltwise_swish},
    {"hardswish", dnnl::algorithm::eltwise_hardswish},
    {"hardsigmoid", dnnl::algorithm::eltwise_hardsigmoid},
    {"mish", dnnl::algorithm::eltwise_mish},
    {"gelu_erf", dnnl::algorithm::eltwise_gelu_erf},
    {"gelu_tanh", dnnl::algorithm::eltwise_gelu_tanh},
};

const Algorithms kBinary = {
    {"add", dnnl::algorithm::binary_add}, {"mul", dnnl::algorithm::binary_mul},
    {"sub", dnnl::algorithm::binary_sub}, {"div", dnnl::algorithm::binary_div},
    {"max", dnnl::algorithm::binary_max}, {"min", dnnl::algorithm::binary_min},
};

dnnl::algorithm find_algorithm(const Algorithms& table, const char* what, const std::string& alg) {
  auto it = table.find(alg);
  if (it != table.end()) return it->second;
  std::string known;
  for (const auto& entry : table) known += (known.empty() ? "" : ", ") + entry.first;
  throw InvalidArgument(text("graph: expected ", what, " alg to be one of ", known, ", got ", alg));
}

/*!
 * \brief A whole number of 32 bits, what get<T>() would truncate or wrap being InvalidArgument.
 *
 * oneDNN's kernels count in int: inner_product with K = 2^32 divides by zero.
 */
template <typename T>
T integer(const json& j) {
  const bool fits =
      j.is_number_unsigned()
          ? j.get<uint64_t>() <= std::numeric_limits<int32_t>::max()
          : j.is_number_integer() && j.get<int64_t>() >= std::numeric_limits<int32_t>::min();
  if (!fits) throw InvalidArgument(text("graph: expected an integer of 32 bits, got ", j.dump()));
  return j.get<T>();
}

template <typename T>
std::vector<T> integers(const json& j) {
  if (!j.is_array()) throw InvalidArgument(text("graph: expected a list, got ", j.dump()));
  std::vector<T> values;
  for (const json& item : j) values.push_back(integer<T>(item));
  return values;
}

memory::data_type parse_dtype(const json& j) {
  const auto name = j.get<std::string>();
  const auto it = kDtypes.find(name);
  if (it == kDtypes.end()) throw InvalidArgument("graph: expected a oneDNN dtype, got " + name);
  return it->second;
}

ExternalTensor parse_tensor(const json& j) {
  const auto dtype = parse_dtype(j.at("dtype"));
  auto shape = integers<memory::dim>(j.at("shape"));
  if (shape.size() > DNNL_MAX_NDIMS)
    throw InvalidArgument(
        text("graph: expected rank <= ", DNNL_MAX_NDIMS, ", got ", shape_name(shape)));
  memory::dims known = shape;
  known.erase(std::remove(known.begin(), known.end(), kUnknown), known.end());
  for (auto dim : known)
    if (dim < 0) throw InvalidArgument("graph: expected sizes >= 0, got " + shape_name(shape));
  if (!is_countable(known))
    throw InvalidArgument("graph: expected fewer than 2^60 elements, got " + shape_name(shape));
  return {integer<int>(j.at("id")), dtype, std::move(shape), std::nullopt};
}

/*! \brief A constant's "packed"; whatever a damaged file says must stay inside of the data. */
Packing parse_packing(const json& j, const ExternalTensor& tensor) {
  const auto fail = [&](const char* expected) {
    throw InvalidArgument(text("graph: packed: expected ", expected, ", got ", j.dump()));
  };
  const auto shape = integers<memory::dim>(j.at("shape"));
  const auto strides = integers<memory::dim>(j.at("strides"));
  if (shape.empty() || shape.size() > DNNL_MAX_NDIMS || strides.size() != shape.size() ||
      !is_countable(shape) || count(shape) != count(tensor.shape))
    fail("a shape of the constant's size, and as many strides");
  memory::dim last = 0;
  for (size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * strides[i];
  const bool negative = std::any_of(strides.begin(), strides.end(), [](auto s) { return s < 0; });
  if (count(shape) == 0 || negative || last >= count(shape))
    fail("strides that stay in the constant");
  const auto dtype = parse_dtype(j.at("dtype"));
  const auto md = tagged_md(shape, dtype, j.at("tag").get<std::string>());
  if (!md) fail("a format tag for the shape");
  return {{shape, tensor.dtype, strides}, *md};
}

ExternalTensor parse_constant(const json& j) {
  ExternalTensor tensor = parse_tensor(j);
  if (tensor.has_unknown_size())
    throw InvalidArgument("graph: expected a constant of known sizes, got " +
                          shape_name(tensor.shape));
  if (j.contains("packed")) tensor.packing = parse_packing(j.at("packed"), tensor);
  return tensor;
}

PostOp parse_post_op(const json& j) {
  PostOp op;
  const auto kind = j.at("kind").get<std::string>();
  if (kind == "eltwise") {
    op.kind = PostOp::Kind::eltwise;
    op.alg = eltwise_algorithm(j.at("alg").get<std::string>());
    op.alpha = j.at("alpha").get<float>();
    op.beta = j.at("beta").get<float>();
  } else if (kind == "binary") {
    op.kind = PostOp::Kind::binary;
    op.alg = binary_algorithm(j.at("alg").get<std::string>());
    op.src1 = integer<int>(j.at("src1"));
  } else if (kind == "prelu") {
    op.kind = PostOp::Kind::prelu;
    op.src1 = integer<int>(j.at("src1"));
  } else {
    throw InvalidArgument("graph: expected post-op kind eltwise, binary or prelu, got " + kind);
  }
  return op;
}

/*! \brief Takes each [tensor id, axis] out of the lists among a node's attrs; 0 stays there. */
std::vector<SizeReference> take_size_references(const std::string& kind, json* attrs) {
  std::vector<SizeReference> references;
  for (auto& [name, value] : attrs->items()) {
    if (!value.is_array()) continue;
    for (size_t i = 0; i < value.size(); ++i) {
      if (!value[i].is_array()) continue;
      const auto pair = integers<int>(value[i]);
      if (pair.size() != 2)
        throw InvalidArgument(text("graph: ", kind, ": attribute ", name,
                                   ": expected integers or [tensor id, axis], got ", value.dump()));
      references.push_back({name, i, pair[0], pair[1]});
      value[i] = 0;
    }
  }
  return references;
}

Node parse_node(const json& j) {
  Node node;
  node.kind = j.at("kind").get<std::string>();
  node.inputs = integers<int>(j.at("inputs"));
  node.output = integer<int>(j.at("output"));
  node.attrs = j.value("attrs", json::object());
  node.sizes = take_size_references(node.kind, &node.attrs);
  for (const auto& op : j.value("post_ops", json::array()))
    node.post_ops.push_back(parse_post_op(op));
  return node;
}

Tuned parse_tuned(const json& j) {
  const auto name = j.at("layout").get<std::string>();
  const auto layout = data_layout_named(name);
  if (!layout)
    throw InvalidArgument("graph: expected layout any, channels_last or blocked, got " + name);
  Choices choices;
  choices.layout = *layout;
  if (j.contains("chunk")) choices.chunk = integer<memory::dim>(j.at("chunk"));
  if (choices.chunk < 0)
    throw InvalidArgument(text("graph: expected a chunk of 0 or more, got ", choices.chunk));
  choices.cascades = j.value("cascades", false);
  for (const auto& entry : j.value("winograd", json::array())) {
    const int tile = integer<int>(entry.at(1));
    if (tile != 2 && tile != 4)
      throw InvalidArgument(text("graph: expected a Winograd tile of 2 or 4, got ", tile));
    choices.winograd[integer<int>(entry.at(0))] = tile;
  }
  for (const auto& entry : j.value("implementations", json::array()))
    choices.implementations[integer<int>(entry.at(0))] = entry.at(1).get<std::string>();
  return {std::move(choices), j.at("isa").get<std::string>()};
}

memory::data_type parse_precision(const json& j) {
  const auto precision = parse_dtype(j);
  using Type = memory::data_type;
  if (precision != Type::f32 && precision != Type::bf16 && precision != Type::f16)
    throw InvalidArgument(text("graph: expected precision f32, bf16 or f16, got ", j.dump()));
  return precision;
}

/*! \brief Every id is defined once, before its use: the rest of the engine relies on it. */
class IdChecker {
 public:
  void define(int id) {
    if (id < 0 || id >= kMaxId)
      throw InvalidArgument(text("graph: expected 0 <= tensor id < ", kMaxId, ", got ", id));
    if (!defined_.insert(id).second)
      throw InvalidArgument(text("graph: expected tensor ", id, " to be defined once"));
  }
  void use(int id, const std::string& by) const {
    if (!defined_.count(id))
      throw InvalidArgument(
          text("graph: ", by, " reads tensor ", id, ", which is not defined yet"));
  }
  int num_tensors() const { return defined_.empty() ? 0 : *defined_.rbegin() + 1; }

 private:
  static constexpr int kMaxId = 1 << 20;  // a damaged file must not make us allocate gigabytes
  std::set<int> defined_;
};

Graph parse_graph(const json& j) {
  if (j.at("format") != "dnnl_byoc")
    throw InvalidArgument("graph: expected format dnnl_byoc, got " + j.at("format").dump());
  if (j.at("version") != kGraphVersion)
    throw InvalidArgument(text("graph: expected version ", kGraphVersion, ", got ",
                               j.at("version").dump(),
                               ": rebuild the model with this version of tvm_dnnl_byoc"));
  Graph graph;
  IdChecker ids;
  for (const auto& tensor : j.at("inputs")) graph.inputs.push_back(parse_tensor(tensor));
  for (const auto& tensor : j.at("constants")) graph.constants.push_back(parse_constant(tensor));
  for (const auto& tensor : graph.inputs) ids.define(tensor.id);
  for (const auto& tensor : graph.constants) ids.define(tensor.id);
  for (const auto& item : j.at("nodes")) {
    Node node = parse_node(item);
    if (node.inputs.empty()) throw InvalidArgument("graph: " + node.kind + " has no inputs");
    for (int id : node.inputs) ids.use(id, node.kind);
    for (const auto& op : node.post_ops)
      if (op.has_operand()) ids.use(op.src1, node.kind);
    for (const auto& size : node.sizes) ids.use(size.tensor, node.kind);
    ids.define(node.output);
    graph.nodes.push_back(std::move(node));
  }
  graph.outputs = integers<int>(j.at("outputs"));
  for (int id : graph.outputs) ids.use(id, "the output list");
  graph.num_tensors = ids.num_tensors();
  if (j.contains("precision")) graph.precision = parse_precision(j.at("precision"));
  if (j.contains("tuned")) graph.tuned = parse_tuned(j.at("tuned"));
  return graph;
}

}  // namespace

bool ExternalTensor::has_unknown_size() const {
  return std::find(shape.begin(), shape.end(), kUnknown) != shape.end();
}

memory::dims ExternalTensor::data_shape() const {
  if (!packing) return shape;
  return {static_cast<memory::dim>(packing->md.get_size() / memory::data_type_size(data_dtype()))};
}

template <typename T>
T Node::attr(const char* name) const {
  try {
    const json& value = attrs.at(name);
    if constexpr (std::is_same_v<T, memory::dims>)
      return integers<memory::dim>(value);
    else if constexpr (std::is_integral_v<T>)
      return integer<T>(value);
    else
      return value.get<T>();
  } catch (const InvalidArgument& e) {
    throw InvalidArgument(text("graph: ", kind, ": attribute ", name, ": ", e.what()));
  } catch (const json::exception& e) {
    throw InvalidArgument(text("graph: ", kind, ": attribute ", name, ": ", e.what()));
  }
}

template int Node::attr<int>(const char*) const;
template memory::dim Node::attr<memory::dim>(const char*) const;
template float Node::attr<float>(const char*) const;
template std::string Node::attr<std::string>(const char*) const;
template memory::dims Node::attr<memory::dims>(const char*) const;
template std::vector<float> Node::attr<std::vector<float>>(const char*) const;

Graph Graph::parse(const char* text_) {
  try {
    // What copies or prints a json value recurses: a damaged file must not exhaust the stack.
    const auto shallow = [](int depth, json::parse_event_t, json&) {
      if (depth > kMaxDepth)
        throw InvalidArgument(text("graph: expected JSON nested less than ", kMaxDepth, " deep"));
      return true;
    };
    return dequantize_later(parse_graph(json::parse(text_, shallow)));
  } catch (const json::exception& e) {
    throw InvalidArgument(text("graph: not a well-formed dnnl_byoc graph: ", e.what()));
  }
}

bool Graph::is_dynamic() const {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const ExternalTensor& tensor) { return tensor.has_unknown_size(); });
}

bool is_view(const Node& node) {
  return node.kind == "reshape" || node.kind == "transpose" || node.kind == "slice";
}

dnnl::algorithm eltwise_algorithm(const std::string& alg) {
  return find_algorithm(kEltwise, "eltwise", alg);
}

dnnl::algorithm binary_algorithm(const std::string& alg) {
  return find_algorithm(kBinary, "binary", alg);
}

const std::string& algorithm_name(dnnl::algorithm algorithm) {
  for (const Algorithms* table : {&kEltwise, &kBinary})
    for (const auto& [name, other] : *table)
      if (other == algorithm) return name;
  throw InvalidArgument("graph: expected an algorithm of an eltwise or a binary, got another");
}

const char* dtype_name(memory::data_type dtype) {
  for (const auto& entry : kDtypes)
    if (entry.second == dtype) return entry.first.c_str();
  return "undefined";
}

memory::dim count(const memory::dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), memory::dim{1}, std::multiplies<>());
}

bool is_countable(const memory::dims& shape) {
  memory::dim count = 1;
  for (auto dim : shape)
    if (dim < 0 || dim > std::numeric_limits<int32_t>::max() ||
        __builtin_mul_overflow(count, std::max<memory::dim>(dim, 1), &count) ||
        count >= memory::dim{1} << 60)
      return false;
  return true;
}

std::string shape_name(const memory::dims& shape) {
  std::string s = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    s += (i ? ", " : "") + (shape[i] == kUnknown ? "?" : std::to_string(shape[i]));
  return s + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace dnnl_byoc
