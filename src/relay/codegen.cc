/*!
 * \file codegen.cc
 * \brief What TVM's build calls for a region, and what tvm_dnnl_byoc's Python side asks.
 */
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/container/string.h>
#include <tvm/runtime/registry.h>

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

void compile(TVMArgs args, TVMRetValue* ret) {
  const ObjectRef function = args[0];
  const std::string symbol = symbol_of(function);
  Region region = packed(translate_region(function));
  std::vector<std::string> names;
  for (size_t i = 0; i < region.constants.size(); ++i) names.push_back(constant_name(symbol, i));
  *ret = make_module(symbol, std::move(region.json), std::move(names));
}

void constants(TVMArgs args, TVMRetValue* ret) {
  const ObjectRef function = args[0];
  const std::string symbol = args[1];
  const Region region = packed(translate_region(function));
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
