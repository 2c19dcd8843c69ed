/*!
 * \file memory_plan.h
 * \brief Places buffers with known lifetimes in one arena.
 */
#ifndef DNNL_BYOC_ENGINE_MEMORY_PLAN_H_
#define DNNL_BYOC_ENGINE_MEMORY_PLAN_H_

#include <stddef.h>

#include <vector>

#include "engine.h"

namespace dnnl_byoc {

/*! \brief oneDNN's kernels and cache lines want this alignment, in bytes. */
constexpr size_t kAlignment = dnnl_byoc_alignment;

/*! \brief The next multiple of it. */
constexpr size_t aligned_size(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/*! \brief A buffer that is in use from step `first` to step `last`, both included. */
struct Lifetime {
  size_t bytes = 0;
  int first = -1;
  int last = -1;
  size_t offset = 0;

  void extend(int step) {
    if (first < 0) first = step;
    last = step;
  }
};

/*!
 * \brief Sets the offsets, so that buffers in use at the same step do not overlap.
 *
 * Largest first, each at the lowest offset that is free over its lifetime: near the optimum for
 * the chains and short branches that networks are made of.
 * \return The size of the arena in bytes.
 */
size_t place_lifetimes(std::vector<Lifetime>* lifetimes);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_MEMORY_PLAN_H_
