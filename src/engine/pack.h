/*!
 * \file pack.h
 * \brief Repacks a graph's constants ahead of the time when it is loaded.
 */
#ifndef DNNL_BYOC_ENGINE_PACK_H_
#define DNNL_BYOC_ENGINE_PACK_H_

#include <dlpack/dlpack.h>

#include <functional>
#include <string>

#include "engine.h"

namespace dnnl_byoc {

/*! \brief See dnnl_byoc_pack(). */
std::string pack(const char* json, const DLTensor* const* constants, size_t count,
                 dnnl_byoc_tune_t tune, const std::function<void(size_t, const DLTensor&)>& store);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_PACK_H_
