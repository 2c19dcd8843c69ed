#include "region_runner.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace dnnl_byoc {
namespace relay {
namespace {

using tvm::runtime::TVMArgs;

/*! \brief Raises the engine's error in Python, as the exception class that its status asks for. */
void check(dnnl_byoc_status_t status, const std::string& symbol) {
  if (status == dnnl_byoc_success) return;
  const char* kind = status == dnnl_byoc_invalid_argument ? "ValueError: " : "RuntimeError: ";
  throw tvm::runtime::Error(kind + symbol + ": " + dnnl_byoc_last_error());
}

/*! \brief All regions of the process, by name. */
class Runners {
 public:
  void add(const std::shared_ptr<RegionRunner>& runner) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = runners_.begin(); it != runners_.end();)
      it = it->second.expired() ? runners_.erase(it) : std::next(it);
    runners_.emplace(runner->symbol(), runner);
  }

  std::shared_ptr<RegionRunner> find(const std::string& symbol) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto [first, last] = runners_.equal_range(symbol);
    for (auto it = first; it != last; ++it)
      if (auto runner = it->second.lock()) return runner;
    return nullptr;
  }

  // Leaked: modules may be loaded and destroyed after the static destructors have run.
  static Runners& all() {
    static auto* runners = new Runners;
    return *runners;
  }

 private:
  std::mutex mutex_;
  std::multimap<std::string, std::weak_ptr<RegionRunner>> runners_;
};

}  // namespace

std::shared_ptr<RegionRunner> RegionRunner::make(std::string symbol, Region region) {
  const std::shared_ptr<RegionRunner> runner(
      new RegionRunner(std::move(symbol), std::move(region)));
  Runners::all().add(runner);
  return runner;
}

std::shared_ptr<RegionRunner> RegionRunner::find(const std::string& symbol) {
  auto runner = Runners::all().find(symbol);
  if (!runner)
    throw tvm::runtime::Error("RuntimeError: " + symbol + ": expected a loaded region, got none");
  return runner;
}

RegionRunner::RegionRunner(std::string symbol, Region region)
    : symbol_(std::move(symbol)), region_(std::move(region)) {
  dnnl_byoc_engine_t engine = nullptr;
  check(dnnl_byoc_create(region_.json.c_str(), &engine), symbol_);
  engine_.reset(engine);
}

void RegionRunner::compile() {
  if (compiled_) return;
  std::vector<const DLTensor*> constants;
  for (const NDArray& constant : region_.constants) constants.push_back(constant.operator->());
  check(dnnl_byoc_set_constants(engine_.get(), constants.data(), constants.size()), symbol_);
  compiled_ = true;
}

void RegionRunner::run(const TVMArgs& args) { call(dnnl_byoc_run, args, 0); }

void RegionRunner::infer_shapes(const TVMArgs& args) {
  compile();
  call(dnnl_byoc_infer_shapes, args, 1);
}

std::string RegionRunner::profile(int runs) {
  compile();
  const char* profile = nullptr;
  check(dnnl_byoc_profile(engine_.get(), runs, &profile), symbol_);
  return profile;
}

void RegionRunner::call(decltype(dnnl_byoc_run) function, const TVMArgs& args, int first) {
  thread_local std::vector<DLTensor*> tensors;  // kept, so that a call allocates nothing
  tensors.clear();
  for (int i = first; i < args.size(); ++i) tensors.push_back(args[i]);
  size_t num_inputs = 0, num_outputs = 0;
  dnnl_byoc_arity(engine_.get(), &num_inputs, &num_outputs);
  if (tensors.size() != num_inputs + num_outputs)
    throw tvm::runtime::Error("ValueError: " + symbol_ + ": expected " +
                              std::to_string(num_inputs) + " inputs and " +
                              std::to_string(num_outputs) + " outputs, got " +
                              std::to_string(tensors.size()) + " tensors");
  check(
      function(engine_.get(), tensors.data(), num_inputs, tensors.data() + num_inputs, num_outputs),
      symbol_);
}

}  // namespace relay
}  // namespace dnnl_byoc
