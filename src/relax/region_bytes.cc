#include "region_bytes.h"

#include <tvm/ffi/error.h>

#include <cstring>
#include <type_traits>

namespace dnnl_byoc {
namespace relax {
namespace {

/*! \brief Of what is written. */
constexpr uint64_t kFormat = 1;

class Writer {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes(&value, sizeof(value));
  }
  void text(const std::string& value) {
    number(uint64_t{value.size()});
    bytes(value.data(), value.size());
  }
  void tensor(const DLTensor& tensor) {
    number(tensor.dtype.code);
    number(tensor.dtype.bits);
    number(tensor.dtype.lanes);
    number(tensor.ndim);
    for (int i = 0; i < tensor.ndim; ++i) number(tensor.shape[i]);
    bytes(adapter::data_of(tensor), adapter::byte_size(tensor));
  }
  const std::string& result() const { return result_; }

 private:
  void bytes(const void* data, size_t size) {
    result_.append(static_cast<const char*>(data), size);
  }
  std::string result_;
};

class Reader {
 public:
  explicit Reader(const tvm::ffi::Bytes& bytes)
      : position_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(value)), sizeof(value));
    return value;
  }
  std::string text() {
    const auto size = number<uint64_t>();
    return {take(size), size};
  }
  adapter::Constant tensor() {
    DLDataType dtype;
    dtype.code = number<uint8_t>();
    dtype.bits = number<uint8_t>();
    dtype.lanes = number<uint16_t>();
    adapter::Ints shape(number<int32_t>() & 0xff);
    uint64_t bytes = (uint64_t{dtype.bits} * dtype.lanes + 7) / 8;
    for (int64_t& size : shape) {
      size = number<int64_t>();
      if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes)) damaged();
    }
    const char* data = take(bytes);
    const auto constant = adapter::new_constant(dtype, shape);
    std::memcpy(constant->data, data, bytes);
    return constant;
  }

 private:
  [[noreturn]] static void damaged() {
    TVM_FFI_THROW(ValueError) << "expected an exported dnnl_byoc region, got data that ends too "
                                 "early: the file is damaged";
    TVM_FFI_UNREACHABLE();
  }
  const char* take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - position_)) damaged();
    const char* begin = position_;
    position_ += size;
    return begin;
  }

  const char* position_;
  const char* end_;
};

}  // namespace

tvm::ffi::Bytes to_bytes(const std::string& symbol, const adapter::EngineGraph& graph) {
  Writer writer;
  writer.number(kFormat);
  writer.text(symbol);
  writer.text(graph.json);
  writer.number(uint64_t{graph.constants.size()});
  for (const adapter::Constant& constant : graph.constants) writer.tensor(*constant);
  return tvm::ffi::Bytes(writer.result());
}

std::pair<std::string, adapter::EngineGraph> from_bytes(const tvm::ffi::Bytes& bytes) {
  Reader reader(bytes);
  const auto format = reader.number<uint64_t>();
  if (format != kFormat)
    TVM_FFI_THROW(ValueError) << "expected a dnnl_byoc region in format " << kFormat << ", got "
                              << format
                              << ": export the library with this release of tvm_dnnl_byoc";
  std::string symbol = reader.text();
  adapter::EngineGraph graph{reader.text(), {}};
  const auto count = reader.number<uint64_t>();
  for (uint64_t i = 0; i < count; ++i) graph.constants.push_back(reader.tensor());
  return {std::move(symbol), std::move(graph)};
}

}  // namespace relax
}  // namespace dnnl_byoc
