#include "reflection.h"

#include <tvm/runtime/registry.h>

#include <algorithm>

#include "adapter/refusal.h"

namespace dnnl_byoc {
namespace relay {
namespace {

using adapter::json;
using adapter::refuse;
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

std::vector<std::string> attr_names(const ObjectRef& node) {
  static const PackedFunc& f = global("node.NodeListAttrNames");
  PackedFunc list = f(node);
  std::vector<std::string> names;
  const int count = list(-1);
  for (int i = 0; i < count; ++i) names.push_back(list(i));
  return names;
}

json to_json(const ObjectRef& value) {
  if (is(value, "IntImm")) return get_int(value, "value");
  if (is(value, "FloatImm")) return get_attr(value, "value").operator double();
  if (is(value, "runtime.String")) return value.as<tvm::runtime::StringObj>()->data;
  if (!is(value, "Array")) return nullptr;
  json list = json::array();
  for (const ObjectRef& item : tvm::runtime::Downcast<Array<ObjectRef>>(value))
    list.push_back(to_json(item));
  return list;
}

json to_json(const TVMRetValue& value) {
  switch (value.type_code()) {
    case kDLInt:
      return value.operator int64_t();
    case kDLFloat:
      return value.operator double();
    case kTVMStr:
      return value.operator std::string();
    case kTVMDataType:
      return tvm::runtime::DLDataType2String(value.operator DLDataType());
    case kTVMObjectHandle:
      return to_json(value.operator ObjectRef());
    default:
      return nullptr;
  }
}

}  // namespace

TVMRetValue get_attr(const ObjectRef& node, const char* name) {
  static const PackedFunc& f = global("node.NodeGetAttr");
  return f(node, name);
}

bool has_attr(const ObjectRef& node, const char* name) {
  const std::vector<std::string> names = attr_names(node);
  return std::find(names.begin(), names.end(), name) != names.end();
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

json attributes(const ObjectRef& node) {
  json attrs = json::object();
  if (!node.defined()) return attrs;
  for (const std::string& name : attr_names(node))
    attrs[name] = to_json(get_attr(node, name.c_str()));
  return attrs;
}

TensorType tensor_type(const ObjectRef& expr) {
  const ObjectRef type = get_object(expr, "_checked_type_");
  if (!type.defined()) throw std::runtime_error("expected a type-inferred Relay expression");
  if (!is(type, "relay.TensorType")) refuse("expected a tensor, got ", type->GetTypeKey());
  std::vector<int64_t> shape;
  for (const ObjectRef& size : get_array(type, "shape"))
    shape.push_back(is(size, "IntImm") ? get_int(size, "value") : adapter::kUnknown);
  return {get_string(type, "dtype"), std::move(shape)};
}

std::string op_name(const ObjectRef& call) {
  const ObjectRef op = get_object(call, "op");
  return is(op, "Op") ? get_string(op, "name") : "";
}

NDArray constant_data(const ObjectRef& constant) {
  return get_attr(constant, "data").operator NDArray();
}

}  // namespace relay
}  // namespace dnnl_byoc
