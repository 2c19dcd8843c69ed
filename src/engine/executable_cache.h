/*!
 * \file executable_cache.h
 * \brief The executables of a dynamic graph, one for each set of sizes.
 */
#ifndef DNNL_BYOC_ENGINE_EXECUTABLE_CACHE_H_
#define DNNL_BYOC_ENGINE_EXECUTABLE_CACHE_H_

#include <memory>
#include <mutex>
#include <vector>

#include "constant_pool.h"
#include "executable.h"
#include "workspace.h"

namespace dnnl_byoc {

/*! \brief Keeps those that were used last; all share constants and workspaces. */
class ExecutableCache {
 public:
  /*! \param graph Must outlive this. \param data The graph's constants, likewise. */
  ExecutableCache(const Graph& graph, std::vector<const void*> data);

  /*!
   * \brief The executable for sizes of the graph's inputs; it is compiled if there is none.
   *
   * Of threads that ask for the same, one compiles and the others wait; who asks for another is
   * not held up.
   * \param sizes For each unknown one, in order.
   */
  std::shared_ptr<Executable> get(const memory::dims& sizes);

  /*! \brief The one that was asked for last; null if none was. */
  std::shared_ptr<Executable> last() const;

  /*! \brief How many there are. */
  size_t size() const;
  /*! \brief How many have been compiled so far. */
  size_t compiled() const;
  /*! \brief The size of the constants of all that are not the caller's memory. */
  size_t repacked_bytes() const { return constants_.bytes(); }

 private:
  struct Entry {
    memory::dims sizes;
    std::once_flag once;
    std::shared_ptr<Executable> executable;  // once it is compiled
    size_t used = 0;                         // when it was asked for last
  };

  std::shared_ptr<Entry> entry_for(const memory::dims& sizes);
  void remove(const std::shared_ptr<Entry>& entry);

  const Graph& graph_;
  const std::vector<const void*> data_;
  const size_t capacity_;
  ConstantPool constants_;
  WorkspacePool workspaces_;
  mutable std::mutex mutex_;                     // guards what follows
  std::vector<std::shared_ptr<Entry>> entries_;  // few: looked through one by one
  size_t clock_ = 0;
  size_t compiled_ = 0;
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_EXECUTABLE_CACHE_H_
