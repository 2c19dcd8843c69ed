#include "adaptive.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "made_up_tensors.h"
#include "threads.h"

namespace dnnl_byoc {
namespace {

using Seconds = ThreadPolicy::Seconds;

// Sums that are split otherwise come to the same bits now and then: so many results are compared,
// in as many runs as that takes, but no more than that.
constexpr memory::dim kEnoughResults = 256;
constexpr unsigned kMostRuns = 64;

// In shorter runs, the two system calls that tell the processor time would be felt.
constexpr double kWorthTiming = 200e-6;

/*! \brief Whether the user wants all runs to use the same number of threads. */
bool threads_are_fixed() {
  static const bool fixed = [] {
    const char* variable = std::getenv("DNNL_BYOC_THREADS");
    return variable && std::string(variable) == "fixed";
  }();
  return fixed;
}

}  // namespace

Adaptive::Adaptive(const Graph& graph, const std::vector<const void*>& data)
    : graph_(graph),
      data_(data),
      all_(graph),
      threads_(omp_get_max_threads()),
      adapts_(on_openmp() && threads_ > 1 && all_.chunks() == 1 && !threads_are_fixed()),
      last_used_(threads_) {
  all_.load(data, &constants_);
}

void Adaptive::run(const std::vector<void*>& inputs, const std::vector<void*>& outputs) {
  if (!adapts_ || omp_get_max_threads() != threads_) return all_.run(inputs, outputs);
  const bool fewer = policy_.use_fewer() && prepare_fewer();
  const bool timed = all_seconds_ > kWorthTiming;
  const Seconds cpu = timed ? thread_cpu_time() : Seconds{};
  const auto start = ThreadPolicy::Clock::now();
  (fewer ? *fewer_ : all_).run(inputs, outputs);
  const Seconds passed = ThreadPolicy::Clock::now() - start;
  if (timed) policy_.finished(fewer, passed, thread_cpu_time() - cpu);
  if (!fewer) all_seconds_ = passed.count();
  last_used_ = fewer ? threads_ - 1 : threads_;
}

bool Adaptive::prepare_fewer() {
  if (fewer_ready_) return true;
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock) return false;        // another caller is at it
  if (fewer_ready_) return true;  // or has just been
  if (policy_.has_given_up()) return false;
  try {
    auto made = std::make_unique<Executable>(graph_, threads_ - 1);
    made->load(data_, &constants_);
    if (makes_no_difference(made.get())) {
      fewer_ = std::move(made);
      fewer_ready_ = true;
    }
  } catch (const std::exception&) {  // such as for want of memory: it is no reason to fail
  }
  if (!fewer_ready_) policy_.give_up();
  return fewer_ready_;
}

/*!
 * \brief Whether it comes to the same bits as with all threads.
 *
 * oneDNN splits the sums of some matrix products among the threads. The number of threads must not
 * change from run to run what a model says.
 */
bool Adaptive::makes_no_difference(Executable* fewer) {
  const auto& mds = all_.output_mds();
  memory::dim results = 0;
  for (unsigned seed = 1; seed <= kMostRuns && results < kEnoughResults; ++seed) {
    const MadeUpTensors expected(graph_.inputs, mds, seed), got(graph_.inputs, mds, seed);
    all_.run(expected.inputs(), expected.outputs());
    fewer->run(got.inputs(), got.outputs());
    for (size_t i = 0; i < mds.size(); ++i) {
      if (std::memcmp(got.outputs()[i], expected.outputs()[i], mds[i].get_size()) != 0)
        return false;
      results += count(mds[i].get_dims());
    }
  }
  return true;
}

}  // namespace dnnl_byoc
