/*!
 * \file codegen.cc
 * \brief What TVM's build calls for a region, and what tvm_dnnl_byoc's Python side asks.
 */
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "engine/engine.h"
#include "module.h"
#include "region.h"

namespace dnnl_byoc {
namespace relay {
namespace {

using tvm::runtime::Map;
using tvm::runtime::Registry;
using tvm::runtime::String;
using tvm::runtime::TVMArgs;
using tvm::runtime::TVMRetValue;

/*! \brief TVM wants the names of a compiler's constants to begin with the compiler's. */
std::string constant_name(const std::string& symbol, size_t index) {
  return "dnnl_" + symbol + "_const_" + std::to_string(index);
}

std::string symbol_of(const ObjectRef& function) {
  const ObjectRef attrs = get_object(function, "attrs");
  return get_string(attrs, "global_symbol");
}

/*!
 * \brief Regions that TVM has asked the constants of, and not yet the code.
 *
 * It does so in two calls, which must be answered alike: what was chosen by measurement could
 * differ the next time. Both come from one thread; other threads may build regions of the same
 * name. Each is forgotten with the second call; what a build that failed leaves goes when its
 * symbol comes again.
 */
class Pending {
 public:
  Region add(const std::string& symbol, Region region) {
    std::lock_guard<std::mutex> lock(mutex_);
    Entry& entry = entries_[key(symbol)];
    entry.packed = packed(region);
    entry.region = std::move(region);
    return entry.packed;
  }

  Region take(const std::string& symbol, const Region& region) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = entries_.find(key(symbol));
    if (it == entries_.end() || !same(it->second.region, region)) return packed(region);
    Region result = std::move(it->second.packed);
    entries_.erase(it);
    return result;
  }

 private:
  struct Entry {
    Region region, packed;
  };

  using Key = std::pair<std::thread::id, std::string>;

  static Key key(const std::string& symbol) { return {std::this_thread::get_id(), symbol}; }

  static bool same(const Region& a, const Region& b) {
    return a.json == b.json &&
           std::equal(a.constants.begin(), a.constants.end(), b.constants.begin(),
                      b.constants.end(), [](const NDArray& x, const NDArray& y) {
                        return x.same_as(y) || x->data == y->data;
                      });
  }

  std::mutex mutex_;
  std::map<Key, Entry> entries_;
};

Pending& pending() {
  static auto* regions = new Pending;  // leaked: it holds tensors of TVM, which may end first
  return *regions;
}

void compile(TVMArgs args, TVMRetValue* ret) {
  const ObjectRef function = args[0];
  const std::string symbol = symbol_of(function);
  Region region = pending().take(symbol, translate_region(function));
  std::vector<std::string> names;
  for (size_t i = 0; i < region.constants.size(); ++i) names.push_back(constant_name(symbol, i));
  *ret = make_module(symbol, std::move(region.json), std::move(names));
}

void constants(TVMArgs args, TVMRetValue* ret) {
  const ObjectRef function = args[0];
  const std::string symbol = args[1];
  const Region region = pending().add(symbol, translate_region(function));
  Map<String, NDArray> constants;
  for (size_t i = 0; i < region.constants.size(); ++i)
    constants.Set(constant_name(symbol, i), region.constants[i]);
  *ret = constants;
}

// relay.ext.dnnl, which TVM calls, is in codegen.py.
TVM_REGISTER_GLOBAL("tvm_dnnl_byoc.compile").set_body(compile);

// A TVM that was built with its own integration has it registered: ours replaces it.
Registry& kConstants =
    Registry::Register("relay.ext.dnnl.constant_updater", /*override=*/true).set_body(constants);

TVM_REGISTER_GLOBAL("tvm_dnnl_byoc.refusal").set_body([](TVMArgs args, TVMRetValue* ret) {
  const Array<ObjectRef> chain = args[0];
  *ret = refusal_of({chain.begin(), chain.end()});
});

TVM_REGISTER_GLOBAL("tvm_dnnl_byoc.build_info").set_body([](TVMArgs, TVMRetValue* ret) {
  *ret = std::string(dnnl_byoc_build_info());
});

}  // namespace
}  // namespace relay
}  // namespace dnnl_byoc
