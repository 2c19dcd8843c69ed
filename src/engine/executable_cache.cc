#include "executable_cache.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "dynamic_graph.h"
#include "error.h"

namespace dnnl_byoc {
namespace {

/*! \brief The user's DNNL_BYOC_PLANS. */
size_t capacity_of_caches() {
  constexpr size_t kDefault = 64;
  const char* variable = std::getenv("DNNL_BYOC_PLANS");
  if (!variable) return kDefault;
  char* end = nullptr;
  const long value = std::strtol(variable, &end, 10);
  if (end == variable || *end || value < 1)
    throw InvalidArgument(text("DNNL_BYOC_PLANS: expected a number above 0, got ", variable));
  return static_cast<size_t>(value);
}

}  // namespace

ExecutableCache::ExecutableCache(const Graph& graph, std::vector<const void*> data)
    : graph_(graph), data_(std::move(data)), capacity_(capacity_of_caches()) {}

std::shared_ptr<Executable> ExecutableCache::get(const memory::dims& sizes) {
  const auto entry = entry_for(sizes);
  try {
    std::call_once(entry->once, [&] {
      auto made = compile_for_sizes(graph_, sizes, &workspaces_);
      made->load(data_, &constants_);
      std::lock_guard<std::mutex> lock(mutex_);
      entry->executable = std::move(made);
      ++compiled_;
    });
  } catch (...) {
    remove(entry);
    throw;
  }
  return entry->executable;
}

std::shared_ptr<ExecutableCache::Entry> ExecutableCache::entry_for(const memory::dims& sizes) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto entry = std::find_if(entries_.begin(), entries_.end(),
                            [&](const auto& candidate) { return candidate->sizes == sizes; });
  if (entry == entries_.end()) {
    if (entries_.size() >= capacity_)  // who runs the one that goes keeps it as long
      entries_.erase(
          std::min_element(entries_.begin(), entries_.end(),
                           [](const auto& a, const auto& b) { return a->used < b->used; }));
    entry = entries_.insert(entries_.end(), std::make_shared<Entry>());
    (*entry)->sizes = sizes;
  }
  (*entry)->used = ++clock_;
  return *entry;
}

void ExecutableCache::remove(const std::shared_ptr<Entry>& entry) {
  std::lock_guard<std::mutex> lock(mutex_);
  entries_.erase(std::remove(entries_.begin(), entries_.end(), entry), entries_.end());
}

std::shared_ptr<Executable> ExecutableCache::last() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Executable> found;
  size_t used = 0;
  for (const auto& entry : entries_)
    if (entry->executable && entry->used > used) {
      found = entry->executable;
      used = entry->used;
    }
  return found;
}

size_t ExecutableCache::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

size_t ExecutableCache::compiled() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return compiled_;
}

}  // namespace dnnl_byoc
