#include "reflection.h"

#include <tvm/runtime/registry.h>

#include "refusal.h"

namespace dnnl_byoc {
namespace relay {
namespace {

using tvm::runtime::PackedFunc;
using tvm::runtime::Registry;
using tvm::runtime::TVMRetValue;

const PackedFunc& global(const char* name) {
  const PackedFunc* f = Registry::Get(name);
  if (!f) throw std::runtime_error(std::string("TVM has no function ") + name);
  return *f;
}

/*! \brief A tir.IntImm, or a plain integer. */
int64_t to_int(const ObjectRef& value) {
  if (!is(value, "IntImm")) refuse("expected static sizes, got ", value->GetTypeKey());
  return get_int(value, "value");
}

}  // namespace

TVMRetValue get_attr(const ObjectRef& node, const char* name) {
  static const PackedFunc& f = global("node.NodeGetAttr");
  return f(node, name);
}

bool has_attr(const ObjectRef& node, const char* name) {
  static const PackedFunc& f = global("node.NodeListAttrNames");
  PackedFunc names = f(node);
  const int count = names(-1);
  for (int i = 0; i < count; ++i)
    if (names(i).operator std::string() == name) return true;
  return false;
}

bool is(const ObjectRef& node, const char* type_key) {
  return node.defined() && node->GetTypeKey() == type_key;
}

ObjectRef get_object(const ObjectRef& node, const char* name) {
  return get_attr(node, name).operator ObjectRef();
}

Array<ObjectRef> get_array(const ObjectRef& node, const char* name) {
  return get_attr(node, name).operator Array<ObjectRef>();
}

std::string get_string(const ObjectRef& node, const char* name) {
  const TVMRetValue value = get_attr(node, name);
  if (value.type_code() == kTVMObjectHandle)
    return value.AsObjectRef<tvm::runtime::String>().operator std::string();
  return value.operator std::string();
}

double get_float(const ObjectRef& node, const char* name) {
  return get_attr(node, name).operator double();
}

int64_t get_int(const ObjectRef& node, const char* name) {
  const TVMRetValue value = get_attr(node, name);
  if (value.type_code() == kTVMObjectHandle) return to_int(value.operator ObjectRef());
  return value.operator int64_t();
}

std::vector<int64_t> get_ints(const ObjectRef& node, const char* name) {
  std::vector<int64_t> ints;
  for (const ObjectRef& value : get_array(node, name)) ints.push_back(to_int(value));
  return ints;
}

TensorType tensor_type(const ObjectRef& expr) {
  const ObjectRef type = get_object(expr, "_checked_type_");
  if (!type.defined()) throw std::runtime_error("expected a type-inferred Relay expression");
  if (!is(type, "relay.TensorType")) refuse("expected a tensor, got ", type->GetTypeKey());
  return {get_string(type, "dtype"), get_ints(type, "shape")};
}

std::string op_name(const ObjectRef& call) {
  const ObjectRef op = get_object(call, "op");
  return is(op, "Op") ? get_string(op, "name") : "";
}

ObjectRef function_attrs(const ObjectRef& call) {
  const ObjectRef op = get_object(call, "op");
  return is(op, "relay.Function") ? get_object(op, "attrs") : ObjectRef();
}

NDArray constant_data(const ObjectRef& constant) {
  return get_attr(constant, "data").operator NDArray();
}

}  // namespace relay
}  // namespace dnnl_byoc
