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

/*! \brief Why a graph cannot be compiled or run. */
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
  int node = -1;  // number of the node that it happened at, if it was at one
};

/*! \brief The caller's fault: malformed JSON, wrong shape, dtype or number of tensors. */
struct InvalidArgument : Refusal {
  using Refusal::Refusal;
};

/*! \brief A valid request that oneDNN has no implementation for. */
struct Unsupported : Refusal {
  using Refusal::Refusal;
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
