#include "module.h"

#include <tvm/ffi/cast.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/memory.h>
#include <tvm/ffi/reflection/registry.h>

#include <utility>
#include <vector>

#include "adapter/runner.h"
#include "region_bytes.h"

namespace dnnl_byoc {
namespace relax {
namespace {

using tvm::ffi::AnyView;
using tvm::ffi::Function;
using tvm::ffi::Module;
using tvm::ffi::ModuleObj;
using tvm::ffi::Optional;
using tvm::ffi::PackedArgs;
using tvm::ffi::String;

/*! \brief Calls, and raises an error of the runner's in Python, as the class that it asks for. */
template <typename F>
auto checked(F&& f) {
  try {
    return f();
  } catch (const adapter::RunError& e) {
    throw tvm::ffi::Error(e.kind(), e.what(), "");
  }
}

class DnnlModule : public ModuleObj {
 public:
  DnnlModule(std::string symbol, adapter::EngineGraph graph)
      : runner_(checked([&] { return adapter::Runner(std::move(symbol), std::move(graph)); })) {}

  const char* kind() const final { return "dnnl_byoc"; }
  int GetPropertyMask() const final { return Module::kBinarySerializable | Module::kRunnable; }

  Optional<Function> GetFunction(const String& name) final {
    // Whoever keeps a function keeps the module.
    const auto self = tvm::ffi::GetObjectPtr<DnnlModule>(this);
    if (name == runner_.symbol()) {
      checked([this] { runner_.compile(); });
      return Function::FromPacked([self](PackedArgs args, tvm::ffi::Any*) { self->run(args); });
    }
    if (name == "get_symbol")
      return Function::FromTyped([self] { return String(self->runner_.symbol()); });
    if (name == "get_graph")
      return Function::FromTyped([self] { return String(self->runner_.graph().json); });
    if (name == "get_profile")
      return Function::FromTyped([self](int runs) {
        return String(checked([&] { return self->runner_.profile(runs); }));
      });
    return std::nullopt;
  }

  tvm::ffi::Bytes SaveToBytes() const final { return to_bytes(runner_.symbol(), runner_.graph()); }

 private:
  void run(PackedArgs args) {
    thread_local std::vector<DLTensor*> tensors;  // kept, so that a call allocates nothing
    tensors.clear();
    for (int i = 0; i < args.size(); ++i) tensors.push_back(args[i].cast<DLTensor*>());
    checked([this] { runner_.run(tensors); });
  }

  adapter::Runner runner_;
};

}  // namespace

Module make_module(std::string symbol, adapter::EngineGraph graph) {
  return Module(tvm::ffi::make_object<DnnlModule>(std::move(symbol), std::move(graph)));
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef().def("ffi.Module.load_from_bytes.dnnl_byoc",
                                        [](const tvm::ffi::Bytes& bytes) {
                                          auto [symbol, graph] = from_bytes(bytes);
                                          return make_module(std::move(symbol), std::move(graph));
                                        });
}

}  // namespace relax
}  // namespace dnnl_byoc
