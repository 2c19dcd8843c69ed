#include "elementwise.h"

#include <algorithm>
#include <limits>
#include <map>

namespace dnnl_byoc {
namespace relay {
namespace {

using json = GraphWriter::json;

json eltwise(const char* alg, double alpha = 0, double beta = 0) {
  return {{"kind", "eltwise"}, {"alg", alg}, {"alpha", alpha}, {"beta", beta}};
}

/*! \brief A bound of clip: JSON has no infinity, and float has no more than its largest. */
double finite(const Source& s, const char* name) {
  constexpr double kMax = std::numeric_limits<float>::max();
  const double value = get_float(s.attrs, name);
  s.expect(value == value, "expected a number as ", name, ", got NaN");
  return std::clamp(value, -kMax, kMax);
}

using Unary = json (*)(const Source&);

const std::map<std::string, Unary> kUnary = {
    {"nn.relu", [](const Source&) { return eltwise("relu"); }},
    {"nn.leaky_relu", [](const Source& s) { return eltwise("relu", get_float(s.attrs, "alpha")); }},
    {"clip",
     [](const Source& s) { return eltwise("clip", finite(s, "a_min"), finite(s, "a_max")); }},
    {"sigmoid", [](const Source&) { return eltwise("logistic"); }},
    {"tanh", [](const Source&) { return eltwise("tanh"); }},
};

const std::map<std::string, const char*> kBinary = {{"add", "add"}, {"multiply", "mul"}};

double scalar_value(const ObjectRef& constant) {
  const NDArray data = constant_data(constant);
  return *reinterpret_cast<const float*>(static_cast<const char*>(data->data) + data->byte_offset);
}

}  // namespace

bool is_scalar_constant(const ObjectRef& expr) {
  if (!is(expr, "relay.Constant")) return false;
  const TensorType type = tensor_type(expr);
  return type.dtype == "float32" &&
         std::all_of(type.shape.begin(), type.shape.end(), [](int64_t d) { return d == 1; });
}

std::optional<Elementwise> read_elementwise(const Source& s, int x) {
  if (auto unary = kUnary.find(s.op); unary != kUnary.end()) return Elementwise{unary->second(s)};
  auto binary = kBinary.find(s.op);
  if (binary == kBinary.end()) return std::nullopt;
  const int other = 1 - x;
  // A scalar of higher rank than x would add dimensions: that is for a binary to do.
  if (is_scalar_constant(s.args[other]) && tensor_type(s.call).shape == s.type(x).shape) {
    // x · alpha + beta
    const double scalar = scalar_value(s.args[other]);
    return Elementwise{s.op == "add" ? eltwise("linear", 1, scalar) : eltwise("linear", scalar, 0)};
  }
  return Elementwise{{{"kind", "binary"}, {"alg", binary->second}}, other};
}

}  // namespace relay
}  // namespace dnnl_byoc
