#include "module.h"

#include <dmlc/io.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "adapter/runner.h"
#include "constant_stream.h"
#include "loaded_regions.h"

namespace dnnl_byoc {
namespace relay {
namespace {

using adapter::Constant;
using adapter::EngineGraph;
using tvm::runtime::Module;
using tvm::runtime::ModuleNode;
using tvm::runtime::ObjectPtr;
using tvm::runtime::PackedFunc;
using tvm::runtime::String;
using tvm::runtime::TVMArgs;
using tvm::runtime::TVMRetValue;

constexpr const char* kTypeKey = "dnnl_byoc";

/*! \brief Of what SaveToBinary() writes. Before there was a number, the symbol came first. */
constexpr uint64_t kFormat = 2;

void set_tensors(const TVMArgs& args, int first, std::vector<DLTensor*>* tensors) {
  tensors->clear();
  for (int i = first; i < args.size(); ++i) tensors->push_back(args[i]);
}

class DnnlModule : public ModuleNode {
 public:
  DnnlModule(std::string symbol, EngineGraph graph)
      : runner_(load_region(std::move(symbol), std::move(graph))) {}

  const char* type_key() const final { return kTypeKey; }
  int GetPropertyMask() const final {
    return tvm::runtime::kBinarySerializable | tvm::runtime::kRunnable;
  }

  PackedFunc GetFunction(const String& name, const ObjectPtr<tvm::runtime::Object>& self) final {
    if (name == runner_->symbol()) {
      checked([this] { runner_->compile(); });
      return PackedFunc([self, this](TVMArgs args, TVMRetValue*) { run(args); });
    }
    if (name == "get_symbol")
      return PackedFunc([self, this](TVMArgs, TVMRetValue* ret) { *ret = runner_->symbol(); });
    if (name == "get_graph")
      return PackedFunc([self, this](TVMArgs, TVMRetValue* ret) { *ret = runner_->graph().json; });
    if (name == "get_profile")
      return PackedFunc([self, this](TVMArgs args, TVMRetValue* ret) {
        const int runs = args[0];
        *ret = checked([&] { return runner_->profile(runs); });
      });
    return PackedFunc(nullptr);
  }

  void SaveToBinary(dmlc::Stream* stream) final {
    stream->Write(kFormat);
    stream->Write(runner_->symbol());
    stream->Write(runner_->graph().json);
    stream->Write(uint64_t{runner_->graph().constants.size()});
    for (const Constant& constant : runner_->graph().constants) write_constant(stream, *constant);
  }

  static Module LoadFromBinary(void* opaque) {
    auto* stream = static_cast<dmlc::Stream*>(opaque);
    uint64_t format = 0;
    std::string symbol;
    EngineGraph graph;
    bool complete = false;
    try {
      complete = stream->Read(&format) && (format != kFormat || read(stream, &symbol, &graph));
    } catch (const std::exception&) {  // a length that cannot be: dmlc's check, or no memory
    }
    if (!complete)
      throw tvm::runtime::Error(
          "ValueError: expected an exported dnnl_byoc region, got data that "
          "ends too early: the file is damaged");
    if (format != kFormat)
      throw tvm::runtime::Error("ValueError: expected a dnnl_byoc region in format " +
                                std::to_string(kFormat) +
                                ", got another: export the library with this release of "
                                "tvm_dnnl_byoc");
    return make_module(std::move(symbol), std::move(graph));
  }

 private:
  static bool read(dmlc::Stream* stream, std::string* symbol, EngineGraph* graph) {
    uint64_t count = 0;
    if (!stream->Read(symbol) || !stream->Read(&graph->json) || !stream->Read(&count)) return false;
    for (uint64_t i = 0; i < count; ++i)
      if (!read_constant(stream, &graph->constants.emplace_back())) return false;
    return true;
  }

  void run(const TVMArgs& args) {
    thread_local std::vector<DLTensor*> tensors;  // kept, so that a call allocates nothing
    set_tensors(args, 0, &tensors);
    checked([this] { runner_->run(tensors); });
  }

  const std::shared_ptr<adapter::Runner> runner_;
};

}  // namespace

Module make_module(std::string symbol, EngineGraph graph) {
  return Module(tvm::runtime::make_object<DnnlModule>(std::move(symbol), std::move(graph)));
}

// What the shape function of a region calls, see dynamic.py: with its name, the shapes of the
// inputs as tensors, and tensors for those of the outputs.
TVM_REGISTER_GLOBAL("tvm_dnnl_byoc.infer_shapes").set_body([](TVMArgs args, TVMRetValue*) {
  std::vector<DLTensor*> shapes;
  set_tensors(args, 1, &shapes);
  checked([&] { loaded_region(args[0])->infer_shapes(shapes); });
});

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_dnnl_byoc")
    .set_body([](TVMArgs args, TVMRetValue* ret) {
      *ret = DnnlModule::LoadFromBinary(args[0].operator void*());
    });

}  // namespace relay
}  // namespace dnnl_byoc
