#include "constant_pool.h"

namespace dnnl_byoc {

memory ConstantPool::get(const Plan::Repack& repack, const std::function<memory()>& make) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto& layouts = constants_[repack.tensor];
  for (const auto& [other, constant] : layouts)
    if (other.source == repack.source && other.offset == repack.offset &&
        other.view == repack.view && other.md == repack.md &&
        other.transform.what == repack.transform.what)
      return constant;
  return layouts.emplace_back(repack, make()).second;
}

size_t ConstantPool::bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t bytes = 0;
  for (const auto& [tensor, layouts] : constants_)
    for (const auto& [repack, constant] : layouts) bytes += constant.get_desc().get_size();
  return bytes;
}

}  // namespace dnnl_byoc
