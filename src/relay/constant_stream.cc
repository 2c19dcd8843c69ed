#include "constant_stream.h"

#include <dlfcn.h>
#include <dmlc/memory_io.h>
#include <link.h>
#include <sys/mman.h>
#include <tvm/runtime/serializer.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace dnnl_byoc {
namespace relay {
namespace {

using dmlc::MemoryFixedSizeStream;

/*! \brief TVM puts the length of what it serialised before it, and both into the library. */
constexpr size_t kBlobHeader = sizeof(uint64_t);

using Buffer = char* MemoryFixedSizeStream::*;
using Size = size_t MemoryFixedSizeStream::*;
Buffer buffer_member();
Size size_member();

/*! \brief dmlc keeps private what the stream reads; an explicit instantiation may name it. */
template <Buffer buffer, Size size>
struct Expose {
  friend Buffer buffer_member() { return buffer; }
  friend Size size_member() { return size; }
};
template struct Expose<&MemoryFixedSizeStream::p_buffer_, &MemoryFixedSizeStream::buffer_size_>;

/*! \brief A reference to the loaded library that an address is in; null if there is none. */
std::shared_ptr<void> library_of(const void* address) {
  Dl_info info;
  link_map *map = nullptr, *found = nullptr;
  if (!dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP)) return nullptr;
  std::shared_ptr<void> library(dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD), [](void* handle) {
    if (handle) dlclose(handle);
  });
  // Another one may have the name, in another of the linker's namespaces.
  const bool same = library && dlinfo(library.get(), RTLD_DI_LINKMAP, &found) == 0 && found == map;
  return same ? library : nullptr;
}

/*! \brief A tensor of memory in a library, which it keeps loaded. */
struct View {
  std::vector<int64_t> shape;
  std::shared_ptr<void> library;
  DLTensor tensor = {};
};

adapter::Constant make_view(void* data, DLDataType dtype, std::vector<int64_t> shape,
                            std::shared_ptr<void> library) {
  auto view = std::make_shared<View>(View{std::move(shape), std::move(library)});
  view->tensor.data = data;
  view->tensor.device = {kDLCPU, 0};
  view->tensor.ndim = static_cast<int>(view->shape.size());
  view->tensor.dtype = dtype;
  view->tensor.shape = view->shape.data();
  return {view, &view->tensor};
}

/*! \brief Nothing for a shape that cannot be. */
std::optional<size_t> byte_count(DLDataType dtype, const std::vector<int64_t>& shape) {
  size_t bytes = (size_t{dtype.bits} * dtype.lanes + 7) / 8;
  for (const int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes))
      return std::nullopt;
  return bytes;
}

/*!
 * \brief Takes pages of a library from the process; the file keeps them for whoever reads on.
 *
 * \param data In a part of the library that nobody writes to.
 */
void release_pages(const char* data, size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const auto first = begin / page * page, last = (begin + bytes) / page * page;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

/*! \brief Copies what comes next; \param source Where in a library that is, or null. */
bool copy_constant(dmlc::Stream* stream, const char* source, char* data, size_t bytes) {
  constexpr size_t kPiece = 1 << 20;  // so that the process never has the source as a whole
  for (size_t begin = 0; begin < bytes; begin += kPiece) {
    const size_t piece = std::min(kPiece, bytes - begin);
    if (stream->Read(data + begin, piece) != piece) return false;
    if (source) release_pages(source + begin, piece);
  }
  return true;
}

}  // namespace

void write_constant(dmlc::Stream* stream, const DLTensor& constant) {
  stream->Write(constant.dtype);
  stream->Write(std::vector<int64_t>(constant.shape, constant.shape + constant.ndim));
  uint64_t padding = 0;
  if (auto* seekable = dynamic_cast<dmlc::SeekStream*>(stream)) {
    const size_t begin = kBlobHeader + seekable->Tell() + sizeof(padding);
    padding = (dnnl_byoc_alignment - begin % dnnl_byoc_alignment) % dnnl_byoc_alignment;
  }
  stream->Write(padding);
  const char zeros[dnnl_byoc_alignment] = {};
  stream->Write(zeros, padding);
  stream->Write(adapter::data_of(constant), adapter::byte_size(constant));
}

bool read_constant(dmlc::Stream* stream, adapter::Constant* constant) {
  DLDataType dtype;
  std::vector<int64_t> shape;
  uint64_t padding = 0;
  char zeros[dnnl_byoc_alignment];
  if (!stream->Read(&dtype) || !stream->Read(&shape) || !stream->Read(&padding) ||
      padding >= sizeof(zeros) || stream->Read(zeros, padding) != padding)
    return false;
  const auto bytes = byte_count(dtype, shape);
  if (!bytes) return false;
  char* data = nullptr;
  std::shared_ptr<void> library;
  if (auto* mapped = dynamic_cast<MemoryFixedSizeStream*>(stream)) {
    const size_t begin = mapped->Tell();
    if (*bytes > mapped->*size_member() - begin) return false;
    data = mapped->*buffer_member() + begin;
    library = library_of(data);
    if (library && reinterpret_cast<std::uintptr_t>(data) % dnnl_byoc_alignment == 0) {
      mapped->Seek(begin + *bytes);
      *constant = make_view(data, dtype, std::move(shape), std::move(library));
      return true;
    }
  }
  const auto copy = adapter::new_constant(dtype, shape);
  *constant = copy;
  return copy_constant(stream, library ? data : nullptr, static_cast<char*>(copy->data), *bytes);
}

}  // namespace relay
}  // namespace dnnl_byoc
