#include "loaded_regions.h"

#include <iterator>
#include <map>
#include <mutex>
#include <utility>

namespace dnnl_byoc {
namespace relay {
namespace {

class LoadedRegions {
 public:
  void add(const std::shared_ptr<adapter::Runner>& runner) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = runners_.begin(); it != runners_.end();)
      it = it->second.expired() ? runners_.erase(it) : std::next(it);
    runners_.emplace(runner->symbol(), runner);
  }

  std::shared_ptr<adapter::Runner> find(const std::string& symbol) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto [first, last] = runners_.equal_range(symbol);
    for (auto it = first; it != last; ++it)
      if (auto runner = it->second.lock()) return runner;
    return nullptr;
  }

  // Leaked: modules may be loaded and destroyed after the static destructors have run.
  static LoadedRegions& all() {
    static auto* regions = new LoadedRegions;
    return *regions;
  }

 private:
  std::mutex mutex_;
  std::multimap<std::string, std::weak_ptr<adapter::Runner>> runners_;
};

}  // namespace

std::shared_ptr<adapter::Runner> load_region(std::string symbol, adapter::EngineGraph graph) {
  auto runner = checked(
      [&] { return std::make_shared<adapter::Runner>(std::move(symbol), std::move(graph)); });
  LoadedRegions::all().add(runner);
  return runner;
}

std::shared_ptr<adapter::Runner> loaded_region(const std::string& symbol) {
  auto runner = LoadedRegions::all().find(symbol);
  if (!runner)
    throw tvm::runtime::Error("RuntimeError: " + symbol + ": expected a loaded region, got none");
  return runner;
}

}  // namespace relay
}  // namespace dnnl_byoc
