/*!
 * \file call.h
 * \brief Calls of TVM's operators as plain data: what the adapters to both TVMs read them into.
 *
 * Operators and attributes have Relay's names; an operator that only Relax has, or has in another
 * form, is named and documented in anchors.cc. The operator "activation" is a composed activation
 * that Python recognised: its attributes "alg", "alpha" and "beta" are oneDNN's.
 */
#ifndef DNNL_BYOC_ADAPTER_CALL_H_
#define DNNL_BYOC_ADAPTER_CALL_H_

#include <dlpack/dlpack.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dnnl_byoc {
namespace adapter {

using json = nlohmann::json;
using Ints = std::vector<int64_t>;

/*! \brief A size that is symbolic in TVM: only a run knows it. It is the engine's name, too. */
constexpr int64_t kUnknown = -1;

/*! \brief The type of a tensor: TVM's dtype name, and its shape, perhaps with kUnknown in it. */
struct TensorType {
  std::string dtype;
  Ints shape;
};

/*! \brief A constant's data, compact and on the CPU; whoever owns it is kept alive. */
using Constant = std::shared_ptr<const DLTensor>;

/*! \brief A constant of its own, aligned for oneDNN, whose data is to be filled in. */
std::shared_ptr<DLTensor> new_constant(DLDataType dtype, const Ints& shape);

/*! \brief The size of a compact tensor's data in bytes. */
size_t byte_size(const DLTensor& tensor);

/*! \brief Where a tensor's data begins. */
inline const void* data_of(const DLTensor& tensor) {
  return static_cast<const char*>(tensor.data) + tensor.byte_offset;
}

/*! \brief What a call reads or gives. */
struct Value {
  int64_t key = 0;  // the same for the same value, another one for another
  TensorType type;
  Constant constant;          // of a constant
  std::vector<Value> fields;  // of a tuple, which has no type
  bool is_tuple = false;

  static Value tuple(std::vector<Value> fields) { return {0, {}, {}, std::move(fields), true}; }
};

/*! \brief A call of an operator. */
struct Call {
  std::string op;
  json attrs;
  std::vector<Value> args;
  Value result;  // of an operator that gives a tuple, its first field
};

/*! \name Attributes of an attribute type; one that is null, as a symbolic size is, is refused. */
///@{
bool has_attr(const json& attrs, const char* name);
std::string get_string(const json& attrs, const char* name);
double get_float(const json& attrs, const char* name);
int64_t get_int(const json& attrs, const char* name);
Ints get_ints(const json& attrs, const char* name);
///@}

}  // namespace adapter
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ADAPTER_CALL_H_
