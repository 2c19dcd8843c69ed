/*!
 * \file codegen.cc
 * \brief What tvm_dnnl_byoc's Python side calls.
 */
#include <tvm/ffi/error.h>
#include <tvm/ffi/reflection/registry.h>

#include <string>

#include "adapter/refusal.h"
#include "engine/engine.h"
#include "module.h"
#include "reader.h"

namespace dnnl_byoc {
namespace relax {
namespace {

using tvm::ffi::String;

tvm::ffi::Module compile(const String& symbol, const String& region, const Constants& constants) {
  try {
    return make_module(symbol,
                       adapter::packed(adapter::translate_region(read_region(region, constants))));
  } catch (const adapter::Refusal& e) {
    TVM_FFI_THROW(RuntimeError) << std::string(symbol) << ": " << e.what();
    TVM_FFI_UNREACHABLE();
  }
}

String refusal(const String& chain, const Constants& constants) {
  return adapter::refusal_of(read_chain(chain, constants));
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("tvm_dnnl_byoc.compile", compile)
      .def("tvm_dnnl_byoc.refusal", refusal)
      .def("tvm_dnnl_byoc.refusal_of_precision",
           [](const String& precision) -> String {
             return adapter::refusal_of_precision(precision);
           })
      .def("tvm_dnnl_byoc.build_info", []() -> String { return dnnl_byoc_build_info(); });
}

}  // namespace relax
}  // namespace dnnl_byoc
