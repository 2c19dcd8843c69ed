/*!
 * \file module.h
 * \brief The TVM runtime module that runs one region.
 */
#ifndef DNNL_BYOC_RELAY_MODULE_H_
#define DNNL_BYOC_RELAY_MODULE_H_

#include <tvm/runtime/module.h>

#include <string>

#include "adapter/region.h"

namespace dnnl_byoc {
namespace relay {

/*!
 * \param symbol The region's name: the function that the module serves.
 * \param graph What it runs; the module keeps the constants.
 */
tvm::runtime::Module make_module(std::string symbol, adapter::EngineGraph graph);

}  // namespace relay
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAY_MODULE_H_
