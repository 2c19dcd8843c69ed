#include "module.h"

#include <dmlc/memory_io.h>
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/packed_func.h>
#include <tvm/runtime/registry.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace dnnl_byoc {
namespace relay {
namespace {

using tvm::runtime::Array;
using tvm::runtime::Module;
using tvm::runtime::ModuleNode;
using tvm::runtime::NDArray;
using tvm::runtime::ObjectPtr;
using tvm::runtime::PackedFunc;
using tvm::runtime::String;
using tvm::runtime::TVMArgs;
using tvm::runtime::TVMRetValue;

constexpr const char* kTypeKey = "dnnl_byoc";

/*! \brief Raises the engine's error in Python, as the exception class that its status asks for. */
void check(dnnl_byoc_status_t status, const std::string& symbol) {
  if (status == dnnl_byoc_success) return;
  const char* kind = status == dnnl_byoc_invalid_argument ? "ValueError: " : "RuntimeError: ";
  throw tvm::runtime::Error(kind + symbol + ": " + dnnl_byoc_last_error());
}

class DnnlModule : public ModuleNode {
 public:
  DnnlModule(std::string symbol, std::string json, std::vector<std::string> constants)
      : symbol_(std::move(symbol)), json_(std::move(json)), constants_(std::move(constants)) {
    dnnl_byoc_engine_t engine = nullptr;
    check(dnnl_byoc_create(json_.c_str(), &engine), symbol_);
    engine_.reset(engine);
  }

  const char* type_key() const final { return kTypeKey; }
  int GetPropertyMask() const final {
    return tvm::runtime::kBinarySerializable | tvm::runtime::kRunnable;
  }

  PackedFunc GetFunction(const String& name, const ObjectPtr<tvm::runtime::Object>& self) final {
    if (name == symbol_) return PackedFunc([self, this](TVMArgs args, TVMRetValue*) { run(args); });
    if (name == "__init_" + symbol_)
      return PackedFunc([self, this](TVMArgs args, TVMRetValue* ret) {
        const Array<NDArray> constants = args[0];
        set_constants(constants);
        *ret = 0;
      });
    if (name == "get_symbol")
      return PackedFunc([self, this](TVMArgs, TVMRetValue* ret) { *ret = symbol_; });
    if (name == "get_const_vars")
      return PackedFunc([self, this](TVMArgs, TVMRetValue* ret) {
        Array<String> names;
        for (const std::string& constant : constants_) names.push_back(constant);
        *ret = names;
      });
    if (name == "get_graph")
      return PackedFunc([self, this](TVMArgs, TVMRetValue* ret) { *ret = json_; });
    if (name == "get_profile")
      return PackedFunc([self, this](TVMArgs args, TVMRetValue* ret) {
        const int runs = args[0];
        const char* profile = nullptr;
        check(dnnl_byoc_profile(engine_.get(), runs, &profile), symbol_);
        *ret = std::string(profile);
      });
    return PackedFunc(nullptr);
  }

  void SaveToBinary(dmlc::Stream* stream) final {
    stream->Write(symbol_);
    stream->Write(json_);
    stream->Write(constants_);
  }

  static Module LoadFromBinary(void* opaque) {
    auto* stream = static_cast<dmlc::Stream*>(opaque);
    std::string symbol, json;
    std::vector<std::string> constants;
    bool complete = false;
    try {
      complete = stream->Read(&symbol) && stream->Read(&json) && stream->Read(&constants);
    } catch (const std::exception&) {  // a length that cannot be: dmlc's check, or no memory
    }
    if (!complete)
      throw tvm::runtime::Error(
          "ValueError: expected an exported dnnl_byoc region, got data that "
          "ends too early: the file is damaged");
    return make_module(std::move(symbol), std::move(json), std::move(constants));
  }

 private:
  void set_constants(const Array<NDArray>& arrays) {
    std::vector<const DLTensor*> tensors;
    for (const NDArray& array : arrays) tensors.push_back(array.operator->());
    std::lock_guard<std::mutex> lock(mutex_);
    check(dnnl_byoc_set_constants(engine_.get(), tensors.data(), tensors.size()), symbol_);
    // The engine uses the first ones where they are; those of a thread that comes later it does
    // not.
    if (data_.empty()) data_ = arrays;
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
  const std::string json_;
  const std::vector<std::string> constants_;
  Array<NDArray> data_;  // of the constants
  std::mutex mutex_;     // guards it
  std::unique_ptr<dnnl_byoc_engine, Destroy> engine_;
};

}  // namespace

Module make_module(std::string symbol, std::string json, std::vector<std::string> constants) {
  return Module(tvm::runtime::make_object<DnnlModule>(std::move(symbol), std::move(json),
                                                      std::move(constants)));
}

TVM_REGISTER_GLOBAL("runtime.module.loadbinary_dnnl_byoc")
    .set_body([](TVMArgs args, TVMRetValue* ret) {
      *ret = DnnlModule::LoadFromBinary(args[0].operator void*());
    });

}  // namespace relay
}  // namespace dnnl_byoc
