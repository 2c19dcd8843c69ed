/*!
 * \file refusal.h
 * \brief Why an expression cannot be offloaded.
 */
#ifndef DNNL_BYOC_ADAPTER_REFUSAL_H_
#define DNNL_BYOC_ADAPTER_REFUSAL_H_

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace dnnl_byoc {
namespace adapter {

/*! \brief "nn.softmax: expected rank ≥ 2, got 1": the expression stays in TVM. */
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/*! \brief Throws a Refusal of its arguments as operator<< prints them. */
template <typename... Args>
[[noreturn]] void refuse(const Args&... args) {
  std::ostringstream os;
  (os << ... << args);
  throw Refusal(os.str());
}

inline std::string shape_text(const std::vector<int64_t>& shape) {
  std::string s = "(";
  for (size_t i = 0; i < shape.size(); ++i)
    s += (i ? ", " : "") + (shape[i] < 0 ? "?" : std::to_string(shape[i]));
  return s + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace adapter
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ADAPTER_REFUSAL_H_
