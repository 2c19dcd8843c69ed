#include "thread_policy.h"

#include <time.h>

#include <algorithm>

namespace dnnl_byoc {
namespace {

using Seconds = ThreadPolicy::Seconds;

constexpr double kCrowded = 0.75;  // less processor time than that, of the time that passes
constexpr int kRuns = 3;           // so many before anything is believed
constexpr Seconds kBrief{0.1};     // no longer: what crowds the machine may be gone already
// Each trial that fails, and each look that finds the machine still crowded, doubles the pause.
constexpr Seconds kFirstPause{0.1}, kLongestPause{4}, kLongestPauseBetweenTrials{60};

}  // namespace

bool ThreadPolicy::use_fewer() {
  if (given_up_ || state_ == State::all) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  if (state_ == State::trial) return true;
  if (state_ != State::fewer) return false;
  if (Clock::now() < not_before_) return true;
  enter(State::fewer, std::min(2 * pause_, kLongestPause));
  return false;  // a look at how it is with all
}

void ThreadPolicy::finished(bool fewer, Seconds passed, Seconds cpu) {
  if (given_up_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const bool crowded = cpu < kCrowded * passed;
  const auto count = [this, passed](Seconds* mean) {
    if (runs_ == 0) *mean = Seconds{0};
    runs_ += 1;
    *mean += (passed - *mean) / std::min(runs_, kRuns);
  };
  if (state_ == State::all && !fewer) {
    if (!crowded) runs_ = 0;
    if (crowded) count(&all_);
    crowded_for_ = crowded ? crowded_for_ + passed : Seconds{0};
    if (runs_ >= kRuns && crowded_for_ > kBrief && Clock::now() >= not_before_)
      enter(State::trial, pause_);
  } else if (state_ == State::trial && fewer) {
    count(&fewer_);
    if (runs_ < kRuns) return;
    if (fewer_ < all_)
      enter(State::fewer, kFirstPause);
    else
      enter(State::all, std::clamp(2 * pause_, kFirstPause, kLongestPauseBetweenTrials));
  } else if (state_ == State::fewer && !fewer) {
    if (!crowded || passed < fewer_) enter(State::all, Seconds{0});
  }
}

void ThreadPolicy::give_up() { given_up_ = true; }

void ThreadPolicy::enter(State state, Seconds pause) {
  state_ = state;
  runs_ = 0;
  crowded_for_ = Seconds{0};
  pause_ = pause;
  not_before_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause);
}

Seconds thread_cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace dnnl_byoc
