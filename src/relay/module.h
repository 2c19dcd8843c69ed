/*!
 * \file module.h
 * \brief The TVM runtime module that runs one region.
 */
#ifndef DNNL_BYOC_RELAY_MODULE_H_
#define DNNL_BYOC_RELAY_MODULE_H_

#include <tvm/runtime/module.h>

#include <string>

namespace dnnl_byoc {
namespace relay {

/*!
 * \param symbol The region's name: the function that the module serves.
 * \param json The region as a graph of the engine.
 * \param constants The names under which TVM keeps the graph's constants, in the graph's order.
 */
tvm::runtime::Module make_module(std::string symbol, std::string json,
                                 std::vector<std::string> constants);

}  // namespace relay
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAY_MODULE_H_
