/*!
 * \file constant_stream.h
 * \brief Constants in an exported library: used where it is mapped, so that they exist once.
 */
#ifndef DNNL_BYOC_RELAY_CONSTANT_STREAM_H_
#define DNNL_BYOC_RELAY_CONSTANT_STREAM_H_

#include <dmlc/io.h>

#include "adapter/call.h"

namespace dnnl_byoc {
namespace relay {

/*! \brief Writes a compact tensor on the CPU; in the library that TVM exports, its data is aligned.
 */
void write_constant(dmlc::Stream* stream, const DLTensor& constant);

/*!
 * \brief Reads what write_constant() wrote.
 *
 * From a library that is loaded, it is no copy but a view of the library's memory, which must not
 * be written to; the library stays loaded as long as there is the view.
 * \return Whether all of it was there.
 */
bool read_constant(dmlc::Stream* stream, adapter::Constant* constant);

}  // namespace relay
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAY_CONSTANT_STREAM_H_
