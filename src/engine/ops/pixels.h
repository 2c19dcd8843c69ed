/*!
 * \file pixels.h
 * \brief Images of three channels in planes, as pixels.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_PIXELS_H_
#define DNNL_BYOC_ENGINE_OPS_PIXELS_H_

#include <memory>

#include "../kernel.h"
#include "../layout.h"
#include "../quantization.h"

namespace dnnl_byoc {

/*!
 * \brief What makes row-major images of three channels in f32 channels-last ones of numbers, in
 * bf16, or in f32.
 * \param how What the numbers stand for; null for the others.
 * \return Null for anything else.
 */
std::shared_ptr<const Kernel> pixels_kernel(const memory::desc& from, const memory::desc& to,
                                            const Quantization* how);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_PIXELS_H_
