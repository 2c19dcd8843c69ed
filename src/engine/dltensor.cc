#include "dltensor.h"

#include <algorithm>

#include "error.h"

namespace dnnl_byoc {
namespace {

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

bool same(const DLDataType& a, const DLDataType& b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

}  // namespace

DLDataType dl_dtype(memory::data_type dtype) {
  const auto bits = static_cast<uint8_t>(8 * memory::data_type_size(dtype));
  switch (dtype) {
    case memory::data_type::f32:
    case memory::data_type::f16:
      return {kDLFloat, bits, 1};
    case memory::data_type::bf16:
      return {kDLBfloat, bits, 1};
    case memory::data_type::s32:
    case memory::data_type::s8:
      return {kDLInt, bits, 1};
    case memory::data_type::u8:
      return {kDLUInt, bits, 1};
    default:
      throw InvalidArgument("expected a data type that a graph may have, got another");
  }
}

void* checked_data(const DLTensor* tensor, memory::data_type dtype, const memory::dims& shape,
                   const char* what, size_t index) {
  const auto fail = [&](const auto&... message) {
    throw InvalidArgument(text(what, " ", index, ": ", message...));
  };
  if (!tensor) fail("expected a tensor, got NULL");
  if (tensor->device.device_type != kDLCPU)
    fail("expected a tensor on the CPU, got DLPack device type ", tensor->device.device_type);
  if (tensor->ndim < 0) fail("expected a rank, got ", tensor->ndim);
  const memory::dims got = shape_of(*tensor);
  const bool scalar = got.empty() && shape == memory::dims{1};
  if (!scalar) expect_shape(got, shape, what, index);
  if (!same(tensor->dtype, dl_dtype(dtype)))
    fail("expected dtype ", dtype_name(dtype), ", got DLPack code ", int{tensor->dtype.code},
         " with ", int{tensor->dtype.bits}, " bits × ", int{tensor->dtype.lanes});
  if (!is_compact(*tensor)) fail("expected compact row-major data, got strides");
  const bool empty = std::find(got.begin(), got.end(), 0) != got.end();
  if (!tensor->data && !empty) fail("expected data, got NULL");
  return static_cast<char*>(tensor->data) + tensor->byte_offset;
}

void expect_shape(const memory::dims& got, const memory::dims& shape, const char* what,
                  size_t index) {
  const auto fits = [](memory::dim a, memory::dim b) {
    return a == b || (b == kUnknown && a >= 0 && is_countable({a}));
  };
  if (!std::equal(got.begin(), got.end(), shape.begin(), shape.end(), fits))
    throw InvalidArgument(
        text(what, " ", index, ": expected shape ", shape_name(shape), ", got ", shape_name(got)));
}

int64_t* checked_shape(const DLTensor* tensor, size_t rank, const char* what, size_t index) {
  const bool fits = tensor && tensor->device.device_type == kDLCPU && tensor->ndim == 1 &&
                    (tensor->data || rank == 0) && tensor->shape[0] == static_cast<int64_t>(rank) &&
                    same(tensor->dtype, {kDLInt, 64, 1}) && is_compact(*tensor);
  if (!fits)
    throw InvalidArgument(
        text(what, " ", index, ": expected a vector of ", rank, " int64 on the CPU, got another"));
  return reinterpret_cast<int64_t*>(static_cast<char*>(tensor->data) + tensor->byte_offset);
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
    data.push_back(
        checked_data(constants[i], tensor.data_dtype(), tensor.data_shape(), "constant", i));
  }
  return data;
}

}  // namespace dnnl_byoc
