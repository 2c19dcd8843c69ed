/*!
 * \file codegen.cc
 * \brief What TVM's build calls for a region, and what tvm_dnnl_byoc's Python side asks.
 */
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/registry.h>

#include <string>

#include "adapter/refusal.h"
#include "engine/engine.h"
#include "module.h"
#include "reader.h"

namespace dnnl_byoc {
namespace relay {
namespace {

using tvm::runtime::Map;
using tvm::runtime::Registry;
using tvm::runtime::String;
using tvm::runtime::TVMArgs;
using tvm::runtime::TVMRetValue;

void compile(TVMArgs args, TVMRetValue* ret) {
  const ObjectRef function = args[0];
  const ObjectRef attrs = get_object(function, "attrs");
  // That of a region with sizes that only a run knows stands for another, see dynamic.py.
  const ObjectRef region = has_attr(attrs, "computes") ? get_object(attrs, "computes") : function;
  *ret = make_module(get_string(attrs, "global_symbol"),
                     packed(adapter::translate_region(read_region(region))));
}

/*! \brief None: the module has them. Without this function, TVM would collect them itself. */
void constants(TVMArgs, TVMRetValue* ret) { *ret = Map<String, NDArray>(); }

// relay.ext.dnnl, which TVM calls, is in codegen.py.
TVM_REGISTER_GLOBAL("tvm_dnnl_byoc.compile").set_body(compile);

// A TVM that was built with its own integration has it registered: ours replaces it.
Registry& kConstants =
    Registry::Register("relay.ext.dnnl.constant_updater", /*override=*/true).set_body(constants);

TVM_REGISTER_GLOBAL("tvm_dnnl_byoc.refusal").set_body([](TVMArgs args, TVMRetValue* ret) {
  const Array<ObjectRef> chain = args[0];
  try {
    *ret = adapter::refusal_of(read_chain({chain.begin(), chain.end()}));
  } catch (const adapter::Refusal& e) {
    *ret = std::string(e.what());
  }
});

TVM_REGISTER_GLOBAL("tvm_dnnl_byoc.layout_of_result").set_body([](TVMArgs args, TVMRetValue* ret) {
  const ObjectRef function = args[0];
  const int output = args[1];
  *ret = adapter::layout_of_result(adapter::translate_region(read_region(function)),
                                   static_cast<size_t>(output));
});

TVM_REGISTER_GLOBAL("tvm_dnnl_byoc.refusal_of_precision")
    .set_body([](TVMArgs args, TVMRetValue* ret) {
      *ret = adapter::refusal_of_precision(args[0]);
    });

TVM_REGISTER_GLOBAL("tvm_dnnl_byoc.build_info").set_body([](TVMArgs, TVMRetValue* ret) {
  *ret = std::string(dnnl_byoc_build_info());
});

}  // namespace
}  // namespace relay
}  // namespace dnnl_byoc
