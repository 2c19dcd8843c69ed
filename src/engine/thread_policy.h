/*!
 * \file thread_policy.h
 * \brief How many threads a run uses on a machine that others use, too.
 */
#ifndef DNNL_BYOC_ENGINE_THREAD_POLICY_H_
#define DNNL_BYOC_ENGINE_THREAD_POLICY_H_

#include <atomic>
#include <chrono>
#include <mutex>

namespace dnnl_byoc {

/*!
 * \brief Decides for each run: all threads, or one less.
 *
 * oneDNN gives each thread an equal part of a step. If one of them shares its core with another
 * process, all wait for it in each step, and the run is faster without it. A caller that waits does
 * not compute, which its processor time shows: on a quiet machine it is 0.94 to 1.00 of the time
 * that passes, beside one busy process 0.5. Then both are measured, now and then.
 */
class ThreadPolicy {
 public:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  /*! \brief Whether the next run is to be made with one thread less; asked once for each run. */
  bool use_fewer();

  /*! \brief Tells of a run. \param cpu The processor time that the caller has used meanwhile. */
  void finished(bool fewer, Seconds passed, Seconds cpu);

  /*! \brief There is no way to run with fewer threads. */
  void give_up();
  bool has_given_up() const { return given_up_; }

 private:
  enum class State { all, trial, fewer };

  void enter(State state, Seconds pause);

  std::atomic<bool> given_up_{false};
  std::mutex mutex_;
  std::atomic<State> state_{State::all};  // read without the mutex where it is likely to be all
  int runs_ = 0;                          // in a row: crowded ones, or those of a trial
  Seconds crowded_for_{};                 // in a row
  Seconds all_{}, fewer_{};               // what a run takes: a mean that forgets
  Seconds pause_{};  // to the next trial, or the next look whether it is quiet again
  Clock::time_point not_before_{};
};

/*! \brief The processor time of the calling thread. */
ThreadPolicy::Seconds thread_cpu_time();

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_THREAD_POLICY_H_
