/*!
 * \file error.h
 * \brief The engine's exceptions; engine.cc turns each into its status of the C ABI.
 */
#ifndef DNNL_BYOC_ENGINE_ERROR_H_
#define DNNL_BYOC_ENGINE_ERROR_H_

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace dnnl_byoc {

/*! \brief The caller's fault: malformed JSON, wrong shape, dtype or number of tensors. */
struct InvalidArgument : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/*! \brief A valid request that oneDNN has no implementation for. */
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/*! \brief Concatenates its arguments as operator<< prints them. */
template <typename... Args>
std::string text(Args&&... args) {
  std::ostringstream os;
  (os << ... << std::forward<Args>(args));
  return os.str();
}

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_ERROR_H_
