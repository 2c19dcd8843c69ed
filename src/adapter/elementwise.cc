#include "elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace dnnl_byoc {
namespace adapter {
namespace {

json eltwise(const char* alg, double alpha = 0, double beta = 0) {
  return {{"kind", "eltwise"}, {"alg", alg}, {"alpha", alpha}, {"beta", beta}};
}

/*! \brief No bound. JSON has no infinity, but the engine takes what float cannot hold for it. */
constexpr double kInfinite = std::numeric_limits<double>::max();

double bound(const Source& s, const char* name) {
  const double value = get_float(s.attrs, name);
  s.expect(value == value, "expected a number as ", name, ", got NaN");
  return std::clamp(value, -kInfinite, kInfinite);
}

using Unary = json (*)(const Source&);

const std::map<std::string, Unary> kUnary = {
    {"nn.relu", [](const Source&) { return eltwise("relu"); }},
    {"nn.leaky_relu", [](const Source& s) { return eltwise("relu", get_float(s.attrs, "alpha")); }},
    {"clip", [](const Source& s) { return eltwise("clip", bound(s, "a_min"), bound(s, "a_max")); }},
    {"sigmoid", [](const Source&) { return eltwise("logistic"); }},
    {"tanh", [](const Source&) { return eltwise("tanh"); }},
    {"fast_tanh", [](const Source&) { return eltwise("tanh"); }},
    {"exp", [](const Source&) { return eltwise("exp"); }},
    {"fast_exp", [](const Source&) { return eltwise("exp"); }},
    {"log", [](const Source&) { return eltwise("log"); }},
    {"sqrt", [](const Source&) { return eltwise("sqrt"); }},
    {"rsqrt", [](const Source&) { return eltwise("pow", 1, -0.5); }},
    {"abs", [](const Source&) { return eltwise("abs"); }},
    {"negative", [](const Source&) { return eltwise("linear", -1); }},
    {"activation",
     [](const Source& s) {
       return eltwise(get_string(s.attrs, "alg").c_str(), get_float(s.attrs, "alpha"),
                      get_float(s.attrs, "beta"));
     }},
};

const std::map<std::string, const char*> kBinary = {
    {"add", "add"},    {"subtract", "sub"}, {"multiply", "mul"},
    {"divide", "div"}, {"maximum", "max"},  {"minimum", "min"},
};

double scalar_value(const Value& value) {
  return *static_cast<const float*>(data_of(*value.constant));
}

/*! \brief The operator with a number as its other argument; nothing if that is no eltwise. */
std::optional<json> with_scalar(const Source& s, int x) {
  constexpr double kMax = std::numeric_limits<float>::max();
  const double c = scalar_value(s.args[1 - x]);
  if (!(std::abs(c) <= kMax)) return std::nullopt;  // JSON has neither infinity nor NaN
  if (s.op == "add") return eltwise("linear", 1, c);
  if (s.op == "multiply") return eltwise("linear", c, 0);
  if (s.op == "subtract") return x == 0 ? eltwise("linear", 1, -c) : eltwise("linear", -1, c);
  if (s.op == "maximum") return eltwise("clip", c, kInfinite);
  if (s.op == "minimum") return eltwise("clip", -kInfinite, c);
  if (s.op == "power" && x == 0) return eltwise("pow", 1, c);
  if (s.op == "divide" && x == 0 && std::isnormal(1 / c)) return eltwise("linear", 1 / c, 0);
  return std::nullopt;
}

}  // namespace

bool is_scalar_constant(const Value& value) {
  const Ints& shape = value.type.shape;
  return value.constant && value.type.dtype == "float32" &&
         std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d == 1; });
}

std::optional<Elementwise> read_elementwise(const Source& s, int x) {
  if (auto unary = kUnary.find(s.op); unary != kUnary.end()) return Elementwise{unary->second(s)};
  if (s.args.size() != 2) return std::nullopt;
  const int other = 1 - x;
  if (s.op == "nn.bias_add" || s.op == "nn.prelu") {
    if (x != 0) return std::nullopt;
    if (s.op == "nn.prelu") return Elementwise{{{"kind", "prelu"}}, other};
    return Elementwise{{{"kind", "binary"}, {"alg", "add"}}, other};
  }
  // A scalar of higher rank than x would add dimensions: that is for a binary to do.
  if (is_scalar_constant(s.args[other]) && s.result_shape() == s.shape(x))
    if (auto op = with_scalar(s, x)) return Elementwise{std::move(*op)};
  auto binary = kBinary.find(s.op);
  // Of what does not commute, x must be the first operand.
  if (binary == kBinary.end() || (x != 0 && (s.op == "subtract" || s.op == "divide")))
    return std::nullopt;
  return Elementwise{{{"kind", "binary"}, {"alg", binary->second}}, other};
}

Anchor translate_elementwise(const Source& s) {
  const int x = s.args.size() == 2 && is_scalar_constant(s.args[0]) ? 1 : 0;
  auto read = read_elementwise(s, x);
  s.expect(read.has_value(), "not an operator that oneDNN is used for, with these arguments");
  json attrs = std::move(read->op);
  const std::string kind = attrs["kind"];
  attrs.erase("kind");
  std::vector<int> inputs = {s.id(x)};
  if (read->operand >= 0) {
    int operand = operand_id(s, read->operand);
    const Ints shape = operand_shape(s, read->operand);
    if (kind == "prelu") {  // weights of the data's rank
      Ints aligned = shape;
      aligned.insert(aligned.begin(), s.shape(x).size() - shape.size(), 1);
      operand = reshaped(s.graph, operand, shape, aligned);
    }
    inputs.push_back(operand);
  }
  return {make_node(kind.c_str(), std::move(inputs), std::move(attrs)),
          ResultView(s.result_shape())};
}

Ints operand_shape(const Source& s, int operand) {
  if (s.op != "nn.bias_add" && s.op != "nn.prelu") return s.shape(operand);
  const Ints data = s.shape(0);
  const int64_t axis = normalized_axis(s, get_int(s.attrs, "axis"), data.size());
  Ints shape(data.size() - static_cast<size_t>(axis), 1);
  shape[0] = s.shape(operand)[0];
  return shape;
}

int operand_id(const Source& s, int operand) {
  return reshaped(s.graph, s.id(operand), s.shape(operand), operand_shape(s, operand));
}

}  // namespace adapter
}  // namespace dnnl_byoc
