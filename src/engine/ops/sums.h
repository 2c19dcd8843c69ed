/*!
 * \file sums.h
 * \brief What becomes of exact sums of products of whole numbers, in our own kernels.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_SUMS_H_
#define DNNL_BYOC_ENGINE_OPS_SUMS_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "../quantization.h"
#include "op.h"

namespace dnnl_byoc {

/*! \brief What lies between two numbers, both included. */
struct Range {
  float least, most;

  /*! \brief The nearest to x; what is no number becomes the least, if anything is cut off there. */
  float clip(float x) const {
    if (!(x > least) && std::isfinite(least)) return least;
    return x > most ? most : x;
  }
};

/*! \brief The range that a ReLU or a clip leaves, if it is the only post-op; none for others. */
std::optional<Range> range_of(const std::vector<PostOp>& post_ops);

/*! \brief The numbers that stand for what is in the range, or for all if that is more. */
Range in_numbers(const Range& range, const Quantization& how);

/*!
 * \brief The number that stands for zero, of a signed one 128 more, as an instruction that
 * multiplies u8 with s8 wants src; none if there is no such number.
 */
std::optional<uint8_t> zero_of(const Quantization& src, memory::data_type dtype);

/*!
 * \brief By output channel: what one of the sums stands for, in units of `unit`.
 * \return Empty if one is not finite.
 */
std::vector<float> factors_of(const Quantization& src, const Quantization& weights, float unit,
                              memory::dim channels);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_SUMS_H_
