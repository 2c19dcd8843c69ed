/*!
 * \file threads.h
 * \brief How many of OpenMP's threads are used, which are oneDNN's and ours.
 */
#ifndef DNNL_BYOC_ENGINE_THREADS_H_
#define DNNL_BYOC_ENGINE_THREADS_H_

#include <omp.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

namespace dnnl_byoc {

/*! \brief Whether oneDNN runs on OpenMP; beside another runtime's, our threads were too many. */
inline bool on_openmp() { return dnnl_version()->cpu_runtime == DNNL_RUNTIME_OMP; }

/*!
 * \brief While it lives, oneDNN compiles and runs for so many what this thread asks it to.
 *
 * And gets as many: it divides the work before its threads start, so that of fewer than it has
 * asked for, which OMP_DYNAMIC and OMP_THREAD_LIMIT would give it, a part of the results were never
 * computed.
 */
class ThreadScope {
 public:
  /*! \param threads 0 for as many as the caller may use, which is the most in any case. */
  explicit ThreadScope(int threads) : before_(omp_get_max_threads()), dynamic_(omp_get_dynamic()) {
    const int most = std::min(before_, omp_get_thread_limit());
    omp_set_dynamic(0);
    omp_set_num_threads(threads > 0 ? std::min(threads, most) : most);
  }
  ~ThreadScope() {
    omp_set_num_threads(before_);
    omp_set_dynamic(dynamic_);
  }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  const int before_, dynamic_;
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_THREADS_H_
