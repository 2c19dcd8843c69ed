/*!
 * \file threads.h
 * \brief How many of OpenMP's threads are used, which are oneDNN's and ours.
 */
#ifndef DNNL_BYOC_ENGINE_THREADS_H_
#define DNNL_BYOC_ENGINE_THREADS_H_

#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>

namespace dnnl_byoc {

/*! \brief Whether oneDNN runs on OpenMP; beside another runtime's, our threads were too many. */
inline bool on_openmp() { return dnnl_version()->cpu_runtime == DNNL_RUNTIME_OMP; }

/*! \brief While it lives, oneDNN compiles and runs for so many what this thread asks it to. */
class ThreadScope {
 public:
  /*! \param threads 0 for as many as the caller may use, which is the most in any case. */
  explicit ThreadScope(int threads) : before_(omp_get_max_threads()) {
    if (threads > 0 && threads < before_) omp_set_num_threads(threads);
  }
  ~ThreadScope() { omp_set_num_threads(before_); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  const int before_;
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_THREADS_H_
