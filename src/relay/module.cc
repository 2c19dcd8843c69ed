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
#include "engine/engine.h"

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

/*! \brief Raises the engine's error in Python, as the exception class that its status asks for. */
void check(dnnl_byoc_status_t status, const std::string& symbol) {
  if (status == dnnl_byoc_success) return;
  const char* kind = status == dnnl_byoc_invalid_argument ? "ValueError: " : "RuntimeError: ";
  throw tvm::runtime::Error(kind + symbol + ": " + dnnl_byoc_last_error());
}

class DnnlModule : public ModuleNode {
 public:
  DnnlModule(std::string symbol, Region region)
      : symbol_(std::move(symbol)), region_(std::move(region)) {
    dnnl_byoc_engine_t engine = nullptr;
    check(dnnl_byoc_create(region_.json.c_str(), &engine), symbol_);
    engine_.reset(engine);
  }

  const char* type_key() const final { return kTypeKey; }
  int GetPropertyMask() const final {
    return tvm::runtime::kBinarySerializable | tvm::runtime::kRunnable;
  }

  PackedFunc GetFunction(const String& name, const ObjectPtr<tvm::runtime::Object>& self) final {
    if (name == symbol_) {
      compile();
      return PackedFunc([self, this](TVMArgs args, TVMRetValue*) { run(args); });
    }
    if (name == "get_symbol")
      return PackedFunc([self, this](TVMArgs, TVMRetValue* ret) { *ret = symbol_; });
    if (name == "get_graph")
      return PackedFunc([self, this](TVMArgs, TVMRetValue* ret) { *ret = region_.json; });
    if (name == "get_profile")
      return PackedFunc([self, this](TVMArgs args, TVMRetValue* ret) {
        const int runs = args[0];
        compile();
        const char* profile = nullptr;
        check(dnnl_byoc_profile(engine_.get(), runs, &profile), symbol_);
        *ret = std::string(profile);
      });
    return PackedFunc(nullptr);
  }

  void SaveToBinary(dmlc::Stream* stream) final {
    stream->Write(kFormat);
    stream->Write(symbol_);
    stream->Write(region_.json);
    stream->Write(uint64_t{region_.constants.size()});
    for (const NDArray& constant : region_.constants) write_constant(stream, constant);
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

  /*! \brief At the first use: a library that is only exported, or loaded, does without. */
  void compile() {
    std::vector<const DLTensor*> constants;
    for (const NDArray& constant : region_.constants) constants.push_back(constant.operator->());
    check(dnnl_byoc_set_constants(engine_.get(), constants.data(), constants.size()), symbol_);
  }

  /*! \brief Inputs first, then outputs: the engine knows how many of each. */
  void run(const TVMArgs& args) {
    thread_local std::vector<DLTensor*> tensors;  // kept, so that a call allocates nothing
    tensors.clear();
    for (int i = 0; i < args.size(); ++i) tensors.push_back(args[i]);
    size_t num_inputs = 0, num_outputs = 0;
    dnnl_byoc_arity(engine_.get(), &num_inputs, &num_outputs);
    if (tensors.size() != num_inputs + num_outputs)
      throw tvm::runtime::Error("ValueError: " + symbol_ + ": expected " +
                                std::to_string(num_inputs) + " inputs and " +
                                std::to_string(num_outputs) + " outputs, got " +
                                std::to_string(tensors.size()) + " tensors");
    check(dnnl_byoc_run(engine_.get(), tensors.data(), num_inputs, tensors.data() + num_inputs,
                        num_outputs),
          symbol_);
  }

  struct Destroy {
    void operator()(dnnl_byoc_engine_t engine) const { dnnl_byoc_destroy(engine); }
  };

  const std::string symbol_;
  const Region region_;  // the engine uses its constants where they are: before the engine
  std::unique_ptr<dnnl_byoc_engine, Destroy> engine_;
};

}  // namespace

Module make_module(std::string symbol, Region region) {
  return Module(tvm::runtime::make_object<DnnlModule>(std::move(symbol), std::move(region)));
}

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_dnnl_byoc")
    .set_body([](TVMArgs args, TVMRetValue* ret) {
      *ret = DnnlModule::LoadFromBinary(args[0].operator void*());
    });

}  // namespace relay
}  // namespace dnnl_byoc
