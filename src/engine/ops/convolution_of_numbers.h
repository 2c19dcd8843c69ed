/*!
 * \file convolution_of_numbers.h
 * \brief What our own convolutions of whole numbers have in common.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_CONVOLUTION_OF_NUMBERS_H_
#define DNNL_BYOC_ENGINE_OPS_CONVOLUTION_OF_NUMBERS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "spatial.h"
#include "sums.h"

namespace dnnl_byoc {

/*! \brief Numbers of dst's shape, what they stand for in dst's units. */
struct AddendOfNumbers {
  int tensor;  // the numbers
  float factor;
  int32_t zero_point;
};

/*!
 * \brief A two-dimensional convolution of numbers that stand for others, channels-last, without
 * holes in its window. Its post-ops may be an addition of numbers that stand for others, and a ReLU
 * or a clip. A quantize alone reads its result; or that is in floats.
 */
struct ConvolutionOfNumbers {
  Window window;
  memory::desc src_md, dst_md;
  int dst;                     // tensor
  Quantization to;             // of dst; of floats, in units of 1
  uint8_t padding;             // see zero_of()
  std::vector<float> factors;  // see factors_of(): in dst's units
  std::optional<AddendOfNumbers> addend;
  Range range;  // of dst

  /*! \brief The number that stands for zero in src. */
  int zero() const { return padding - (is_src_signed() ? 128 : 0); }
  bool is_src_signed() const { return src_md.get_data_type() == memory::data_type::s8; }
  bool is_dst_signed() const { return to.dtype == memory::data_type::s8; }
  bool is_dst_whole() const { return to.dtype != memory::data_type::f32; }
};

/*! \brief A node as such; none if it is another. */
std::optional<ConvolutionOfNumbers> convolution_of_numbers(const PlanBuilder& b, const Node& node);

/*! \brief How a kernel wants numbers by channel. */
struct Arrangement {
  std::string name;
  memory::dim places;
  std::function<void(const float* by_channel, float* arranged)> arrange;
};

/*! \brief In their order, zero where there is no channel. */
Arrangement in_order(memory::dim channels, memory::dim places);

/*! \name Constants of a kernel, as values. */
///@{
/*! \brief What is made of the numbers of the weights, of `size` elements. */
template <class T>
int from_weights(PlanBuilder& b, const Node& node, memory::dim size, std::string what,
                 std::function<void(const int8_t* weights, T* made)> make);

int factors(PlanBuilder& b, const ConvolutionOfNumbers& c, const Arrangement& arrangement);

/*! \brief The bias, or zero. */
int bias(PlanBuilder& b, const Node& node, memory::dim channels, const Arrangement& arrangement);

/*! \brief The bias as what is added to dst's numbers, with the zero points of dst and addend. */
int terms(PlanBuilder& b, const Node& node, const ConvolutionOfNumbers& c,
          const Arrangement& arrangement);
///@}

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_CONVOLUTION_OF_NUMBERS_H_
