#include "module.h"

#include <dmlc/io.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "constant_stream.h"
#include "region_runner.h"

namespace dnnl_byoc {
namespace relay {
namespace {

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

class DnnlModule : public ModuleNode {
 public:
  DnnlModule(std::string symbol, Region region)
      : runner_(RegionRunner::make(std::move(symbol), std::move(region))) {}

  const char* type_key() const final { return kTypeKey; }
  int GetPropertyMask() const final {
    return tvm::runtime::kBinarySerializable | tvm::runtime::kRunnable;
  }

  PackedFunc GetFunction(const String& name, const ObjectPtr<tvm::runtime::Object>& self) final {
    if (name == runner_->symbol()) {
      runner_->compile();
      return PackedFunc([self, this](TVMArgs args, TVMRetValue*) { runner_->run(args); });
    }
    if (name == "get_symbol")
      return PackedFunc([self, this](TVMArgs, TVMRetValue* ret) { *ret = runner_->symbol(); });
    if (name == "get_graph")
      return PackedFunc([self, this](TVMArgs, TVMRetValue* ret) { *ret = runner_->region().json; });
    if (name == "get_profile")
      return PackedFunc(
          [self, this](TVMArgs args, TVMRetValue* ret) { *ret = runner_->profile(args[0]); });
    return PackedFunc(nullptr);
  }

  void SaveToBinary(dmlc::Stream* stream) final {
    stream->Write(kFormat);
    const Region& region = runner_->region();
    stream->Write(runner_->symbol());
    stream->Write(region.json);
    stream->Write(uint64_t{region.constants.size()});
    for (const NDArray& constant : region.constants) write_constant(stream, constant);
  }

  static Module LoadFromBinary(void* opaque) {
    auto* stream = static_cast<dmlc::Stream*>(opaque);
    uint64_t format = 0;
    std::string symbol;
    Region region;
    bool complete = false;
    try {
      complete = stream->Read(&format) && (format != kFormat || read(stream, &symbol, &region));
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
    return make_module(std::move(symbol), std::move(region));
  }

 private:
  static bool read(dmlc::Stream* stream, std::string* symbol, Region* region) {
    uint64_t count = 0;
    if (!stream->Read(symbol) || !stream->Read(&region->json) || !stream->Read(&count))
      return false;
    for (uint64_t i = 0; i < count; ++i)
      if (!read_constant(stream, &region->constants.emplace_back())) return false;
    return true;
  }

  const std::shared_ptr<RegionRunner> runner_;
};

}  // namespace

Module make_module(std::string symbol, Region region) {
  return Module(tvm::runtime::make_object<DnnlModule>(std::move(symbol), std::move(region)));
}

// What the shape function of a region calls, see dynamic.py.
TVM_REGISTER_GLOBAL("tvm_dnnl_byoc.infer_shapes").set_body([](TVMArgs args, TVMRetValue*) {
  RegionRunner::find(args[0])->infer_shapes(args);
});

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_dnnl_byoc")
    .set_body([](TVMArgs args, TVMRetValue* ret) {
      *ret = DnnlModule::LoadFromBinary(args[0].operator void*());
    });

}  // namespace relay
}  // namespace dnnl_byoc
