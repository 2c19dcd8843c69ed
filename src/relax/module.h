/*!
 * \file module.h
 * \brief The runtime module of apache-tvm that runs one region.
 */
#ifndef DNNL_BYOC_RELAX_MODULE_H_
#define DNNL_BYOC_RELAX_MODULE_H_

#include <tvm/ffi/extra/module.h>

#include <string>

#include "adapter/region.h"

namespace dnnl_byoc {
namespace relax {

/*!
 * \param symbol The region's name: the function that the module serves.
 * \param graph What it runs; the module keeps the constants.
 */
tvm::ffi::Module make_module(std::string symbol, adapter::EngineGraph graph);

}  // namespace relax
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAX_MODULE_H_
