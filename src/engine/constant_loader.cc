#include "constant_loader.h"

#include <cstdint>

#include "layout.h"
#include "memory_plan.h"

namespace dnnl_byoc {
namespace {

/*! \brief Memory that is only read, which its type cannot say. */
memory read_only(const memory::desc& md, const void* data, size_t offset = 0) {
  return {md, cpu_engine(), static_cast<char*>(const_cast<void*>(data)) + offset};
}

}  // namespace

ConstantLoader::ConstantLoader(const std::vector<ExternalTensor>& constants,
                               const std::vector<const void*>& data)
    : constants_(constants), data_(data), unpacked_(constants.size()), stream_(cpu_engine()) {}

memory ConstantLoader::in_place(const Plan::Repack& repack) const {
  if (repack.transform.make) return {};
  const auto& packing = constants_[repack.source].packing;
  const bool lies_so =
      packing ? repack.offset == 0 && packing->view == repack.view && packing->md == repack.md
              : repack.view == repack.md;
  const memory found = read_only(repack.md, data_[repack.source], repack.offset);
  const auto address = reinterpret_cast<std::uintptr_t>(found.get_data_handle());
  return lies_so && address % kAlignment == 0 ? found : memory();
}

memory ConstantLoader::repacked(const Plan::Repack& repack) {
  const void* data = row_major(repack.source).get_data_handle();
  const memory view = read_only(repack.view, data, repack.offset);
  if (!repack.transform.make) return reordered(view, repack.md);
  const memory::desc plain = plain_md(repack.view.get_dims(), repack.view.get_data_type());
  const memory made = repack.transform.make(repack.view == plain ? view : reordered(view, plain));
  return made.get_desc() == repack.md ? made : reordered(made, repack.md);
}

memory ConstantLoader::reordered(const memory& from, const memory::desc& md) {
  memory source = from, target(md, cpu_engine());
  dnnl::reorder(source, target).execute(stream_, source, target);
  stream_.wait();
  return target;
}

const memory& ConstantLoader::row_major(int source) {
  memory& result = unpacked_[source];
  if (result) return result;
  const ExternalTensor& constant = constants_[source];
  const memory::desc plain = plain_md(constant.shape, constant.dtype);
  if (!constant.packing) return result = read_only(plain, data_[source]);
  result = memory(plain, cpu_engine());
  memory packed = read_only(constant.packing->md, data_[source]);
  memory view(constant.packing->view, cpu_engine(), result.get_data_handle());
  dnnl::reorder(packed, view).execute(stream_, packed, view);
  stream_.wait();
  return result;
}

}  // namespace dnnl_byoc
