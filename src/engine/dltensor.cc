#include "dltensor.h"

#include <algorithm>

#include "error.h"

namespace dnnl_byoc {
namespace {

bool same_dtype(const DLDataType& dl, memory::data_type dtype) {
  const auto is = [&](int code, int bits) {
    return dl.code == code && dl.bits == bits && dl.lanes == 1;
  };
  switch (dtype) {
    case memory::data_type::f32:
      return is(kDLFloat, 32);
    case memory::data_type::f16:
      return is(kDLFloat, 16);
    case memory::data_type::bf16:
      return is(kDLBfloat, 16);
    case memory::data_type::s32:
      return is(kDLInt, 32);
    case memory::data_type::s8:
      return is(kDLInt, 8);
    case memory::data_type::u8:
      return is(kDLUInt, 8);
    default:
      return false;
  }
}

memory::dims shape_of(const DLTensor& tensor) {
  return memory::dims(tensor.shape, tensor.shape + tensor.ndim);
}

bool is_compact(const DLTensor& tensor) {
  if (!tensor.strides) return true;
  int64_t stride = 1;
  for (int i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != stride) return false;
    stride *= tensor.shape[i];
  }
  return true;
}

}  // namespace

void* checked_data(const DLTensor* tensor, memory::data_type dtype, const memory::dims& shape,
                   const char* what, size_t index) {
  const auto fail = [&](const auto&... message) {
    throw InvalidArgument(text(what, " ", index, ": ", message...));
  };
  if (!tensor) fail("expected a tensor, got NULL");
  if (tensor->device.device_type != kDLCPU)
    fail("expected a tensor on the CPU, got DLPack device type ", tensor->device.device_type);
  const memory::dims got = shape_of(*tensor);
  const bool scalar = got.empty() && shape == memory::dims{1};
  if (got != shape && !scalar)
    fail("expected shape ", shape_name(shape), ", got ", shape_name(got));
  if (!same_dtype(tensor->dtype, dtype))
    fail("expected dtype ", dtype_name(dtype), ", got DLPack code ", int{tensor->dtype.code},
         " with ", int{tensor->dtype.bits}, " bits × ", int{tensor->dtype.lanes});
  if (!is_compact(*tensor)) fail("expected compact row-major data, got strides");
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (!tensor->data && !empty) fail("expected data, got NULL");
  return static_cast<char*>(tensor->data) + tensor->byte_offset;
}

void expect_count(const void* tensors, size_t got, size_t expected, const char* what) {
  if (got != expected) throw InvalidArgument(text("expected ", expected, " ", what, ", got ", got));
  if (got > 0 && !tensors) throw InvalidArgument(text("expected ", got, " ", what, ", got NULL"));
}

std::vector<const void*> constant_data(const Graph& graph, const DLTensor* const* constants,
                                       size_t count) {
  expect_count(constants, count, graph.constants.size(), "constants");
  std::vector<const void*> data;
  for (size_t i = 0; i < count; ++i) {
    const ExternalTensor& tensor = graph.constants[i];
    data.push_back(checked_data(constants[i], tensor.dtype, tensor.data_shape(), "constant", i));
  }
  return data;
}

}  // namespace dnnl_byoc
