#include "call.h"

#include <cstdlib>
#include <new>

#include "engine/engine.h"
#include "refusal.h"

namespace dnnl_byoc {
namespace adapter {
namespace {

struct OwnedTensor {
  DLTensor tensor = {};
  Ints shape;
  std::unique_ptr<void, decltype(&std::free)> data{nullptr, &std::free};
};

const json& attribute(const json& attrs, const char* name) {
  if (!has_attr(attrs, name)) refuse("expected a static attribute ", name, ", got none");
  return attrs.at(name);
}

int64_t to_int(const json& value) {
  if (!value.is_number_integer() && !value.is_boolean())
    refuse("expected static sizes, got ", value.dump());
  return value.is_boolean() ? value.get<bool>() : value.get<int64_t>();
}

}  // namespace

std::shared_ptr<DLTensor> new_constant(DLDataType dtype, const Ints& shape) {
  auto owned = std::make_shared<OwnedTensor>();
  owned->shape = shape;
  owned->tensor.device = {kDLCPU, 0};
  owned->tensor.ndim = static_cast<int>(shape.size());
  owned->tensor.dtype = dtype;
  owned->tensor.shape = owned->shape.data();
  // aligned_alloc wants a multiple of the alignment.
  const size_t blocks = byte_size(owned->tensor) / dnnl_byoc_alignment + 1;
  owned->data.reset(std::aligned_alloc(dnnl_byoc_alignment, blocks * dnnl_byoc_alignment));
  if (!owned->data) throw std::bad_alloc();
  owned->tensor.data = owned->data.get();
  return {owned, &owned->tensor};
}

size_t byte_size(const DLTensor& tensor) {
  size_t bytes = (size_t{tensor.dtype.bits} * tensor.dtype.lanes + 7) / 8;
  for (int i = 0; i < tensor.ndim; ++i) bytes *= static_cast<size_t>(tensor.shape[i]);
  return bytes;
}

bool has_attr(const json& attrs, const char* name) {
  return attrs.contains(name) && !attrs.at(name).is_null();
}

std::string get_string(const json& attrs, const char* name) {
  return attribute(attrs, name).get<std::string>();
}

double get_float(const json& attrs, const char* name) {
  return attribute(attrs, name).get<double>();
}

int64_t get_int(const json& attrs, const char* name) { return to_int(attribute(attrs, name)); }

Ints get_ints(const json& attrs, const char* name) {
  Ints ints;
  for (const json& value : attribute(attrs, name)) ints.push_back(to_int(value));
  return ints;
}

}  // namespace adapter
}  // namespace dnnl_byoc
