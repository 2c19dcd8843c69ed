/*!
 * \file reflection.h
 * \brief Reads Relay expressions through TVM's reflection.
 *
 * The TVM wheel ships only the runtime's headers, so Relay's C++ classes are out of reach. Their
 * attributes are not: TVM's registry serves them by name. It also makes this library independent
 * of Relay's memory layout.
 */
#ifndef DNNL_BYOC_RELAY_REFLECTION_H_
#define DNNL_BYOC_RELAY_REFLECTION_H_

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "adapter/call.h"

namespace dnnl_byoc {
namespace relay {

using adapter::TensorType;
using tvm::runtime::Array;
using tvm::runtime::NDArray;
using tvm::runtime::ObjectRef;

template <typename T>
using ObjectMap =
    std::unordered_map<ObjectRef, T, tvm::runtime::ObjectPtrHash, tvm::runtime::ObjectPtrEqual>;

/*! \brief An attribute of a node, e.g. "args" of a relay.Call. */
tvm::runtime::TVMRetValue get_attr(const ObjectRef& node, const char* name);

/*! \brief Whether a node has an attribute of that name. */
bool has_attr(const ObjectRef& node, const char* name);

/*! \brief Whether a node is of a type, e.g. "relay.Call". */
bool is(const ObjectRef& node, const char* type_key);

/*! \name Attributes of an attribute type. */
///@{
ObjectRef get_object(const ObjectRef& node, const char* name);
Array<ObjectRef> get_array(const ObjectRef& node, const char* name);
std::string get_string(const ObjectRef& node, const char* name);
int64_t get_int(const ObjectRef& node, const char* name);
/*! \brief A list of static integers; Refusal if one is symbolic. */
std::vector<int64_t> get_ints(const ObjectRef& node, const char* name);
///@}

/*! \brief All attributes of a node; null for one that is neither number nor text, nor a list. */
adapter::json attributes(const ObjectRef& node);

/*! \brief The inferred type of an expression; Refusal if it is no tensor. */
TensorType tensor_type(const ObjectRef& expr);

/*! \brief The name of the operator that a relay.Call calls, "" if it calls something else. */
std::string op_name(const ObjectRef& call);

/*! \brief The data of a relay.Constant. */
NDArray constant_data(const ObjectRef& constant);

}  // namespace relay
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAY_REFLECTION_H_
