#include "workspace.h"

#include <new>
#include <utility>

#include "memory_plan.h"

namespace dnnl_byoc {

Workspace::Workspace(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  data_.reset(std::aligned_alloc(kAlignment, aligned_size(bytes)));
  if (!data_) throw std::bad_alloc();
}

Workspace WorkspacePool::take(size_t bytes) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      Workspace workspace = std::move(idle_.back());
      idle_.pop_back();
      if (workspace.bytes() >= bytes) return workspace;
    }
  }
  return Workspace(bytes);  // the one that was too small is gone
}

void WorkspacePool::give_back(Workspace workspace) {
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(workspace));
}

}  // namespace dnnl_byoc
