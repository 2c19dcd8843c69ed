#include "adaptive.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "threads.h"

namespace dnnl_byoc {
namespace {

using Seconds = ThreadPolicy::Seconds;

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
      all_(graph),
      threads_(omp_get_max_threads()),
      adapts_(on_openmp() && threads_ > 1 && all_.chunks() == 1 && !threads_are_fixed()),
      last_used_(threads_) {
  all_.load(data);
}

void Adaptive::run(const std::vector<void*>& inputs, const std::vector<void*>& outputs) {
  if (!adapts_) return all_.run(inputs, outputs);
  const bool fewer = policy_.fewer() && prepare_fewer(inputs, outputs);
  const bool timed = last_seconds_ > kWorthTiming;
  const Seconds cpu = timed ? thread_cpu_time() : Seconds{};
  const auto start = ThreadPolicy::Clock::now();
  (fewer ? *fewer_ : all_).run(inputs, outputs);
  const Seconds passed = ThreadPolicy::Clock::now() - start;
  if (timed) policy_.finished(fewer, passed, thread_cpu_time() - cpu);
  last_seconds_ = passed.count();
  last_used_ = fewer ? threads_ - 1 : threads_;
}

bool Adaptive::prepare_fewer(const std::vector<void*>& inputs, const std::vector<void*>& outputs) {
  if (fewer_ready_) return true;
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // another caller is at it
  try {
    fewer_.emplace(graph_, threads_ - 1);
    fewer_ready_ = fewer_->load_from(all_) && makes_no_difference(inputs, outputs);
  } catch (const std::exception&) {  // such as for want of memory: it is no reason to fail
  }
  if (!fewer_ready_) {
    fewer_.reset();
    policy_.give_up();
  }
  return fewer_ready_;
}

/*!
 * \brief Whether both come to the same bits, with these inputs.
 *
 * oneDNN splits the sums of some matrix products among the threads. The number of threads must not
 * change from run to run what a model says.
 */
bool Adaptive::makes_no_difference(const std::vector<void*>& inputs,
                                   const std::vector<void*>& outputs) {
  all_.run(inputs, outputs);
  std::vector<std::vector<char>> expected;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto* data = static_cast<const char*>(outputs[i]);
    expected.emplace_back(data, data + all_.output_mds()[i].get_size());
  }
  fewer_->run(inputs, outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (std::memcmp(outputs[i], expected[i].data(), expected[i].size()) != 0) return false;
  return true;
}

}  // namespace dnnl_byoc
