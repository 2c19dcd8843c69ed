/*!
 * \file pixels.h
 * \brief The quantization of images.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_PIXELS_H_
#define DNNL_BYOC_ENGINE_OPS_PIXELS_H_

#include <memory>

#include "../kernel.h"
#include "../layout.h"
#include "../quantization.h"

namespace dnnl_byoc {

/*!
 * \brief What quantizes row-major images of three channels to channels-last ones.
 * \return Null for anything else.
 */
std::shared_ptr<const Kernel> pixels_kernel(const memory::desc& from, const memory::desc& to,
                                            const Quantization& how);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_PIXELS_H_
