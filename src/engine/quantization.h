/*!
 * \file quantization.h
 * \brief What whole numbers stand for.
 */
#ifndef DNNL_BYOC_ENGINE_QUANTIZATION_H_
#define DNNL_BYOC_ENGINE_QUANTIZATION_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "graph.h"

namespace dnnl_byoc {

/*! \brief A number q stands for scale · (q - zero point). */
struct Quantization {
  memory::data_type dtype = memory::data_type::undef;  // a quantize's; undefined of a dequantize
  std::vector<float> scales;                           // one, or one for each index along `axis`
  std::vector<int32_t> zero_points;                    // as many
  int axis = 0;

  bool is_per_tensor() const { return scales.size() == 1; }
  bool has_zero_points() const;

  /*! \brief oneDNN's mask: the dimensions along which the scales vary. */
  int mask() const { return is_per_tensor() ? 0 : 1 << axis; }
};

/*! \brief That of a quantize or dequantize; InvalidArgument if it does not suit the src's shape. */
Quantization quantization_of(const Node& node, const memory::dims& shape);

/*! \brief Row-major numbers as what they stand for, in f32 and with another shape. */
memory dequantized(const memory& numbers, const Quantization& quantization,
                   const memory::dims& shape);

/*!
 * \brief Tells a primitive what the numbers of one of its arguments stand for.
 * \param arg DNNL_ARG_*.
 * \param mask The dimensions of the argument along which the scales vary.
 * \return The arguments that it has to be given for that.
 */
std::vector<std::pair<int, memory>> quantize_args(int arg, const Quantization& quantization,
                                                  int mask, dnnl::primitive_attr* attr);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_QUANTIZATION_H_
