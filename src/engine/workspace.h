/*!
 * \file workspace.h
 * \brief The memory that a run works in, apart from what belongs to the caller.
 */
#ifndef DNNL_BYOC_ENGINE_WORKSPACE_H_
#define DNNL_BYOC_ENGINE_WORKSPACE_H_

#include <stddef.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace dnnl_byoc {

/*! \brief Aligned memory of its own. */
class Workspace {
 public:
  explicit Workspace(size_t bytes = 0);

  char* data() const { return static_cast<char*>(data_.get()); }
  size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> data_;
  size_t bytes_;
};

/*!
 * \brief Workspaces that the plans of one graph use in turns.
 *
 * So there are as many as runs at the same time, each as large as the largest of these has needed,
 * however many plans there are.
 */
class WorkspacePool {
 public:
  Workspace take(size_t bytes);
  void give_back(Workspace workspace);

 private:
  std::mutex mutex_;
  std::vector<Workspace> idle_;
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_WORKSPACE_H_
