/*!
 * \file dense.h
 * \brief What our own convolutions have in common that multiply pixels as they are.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_DENSE_H_
#define DNNL_BYOC_ENGINE_OPS_DENSE_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../kernel.h"
#include "../kernels/dense.h"
#include "convolution_of_numbers.h"

namespace dnnl_byoc {

/*!
 * \brief A two-dimensional convolution, channels-last, without groups and holes in its window: of
 * f32 or bf16 with a result of the same, or of numbers that stand for others.
 *
 * Its post-ops may be an addition of a whole tensor, of floats or numbers, and a ReLU or a clip.
 */
struct DenseConvolution {
  Window window;
  memory::dims kernel;
  memory::desc src_md, dst_md;
  memory::desc weights_md;  // as dense::Constants has them
  int src, weights, dst;    // tensors
  int addend;               // a tensor, or -1
  memory::data_type addend_dtype;
  float addend_factor;
  Range range;
  std::optional<ConvolutionOfNumbers> numbers;  // none of floats

  /*! \brief Whether the window is a pixel that visits each of src's once. */
  bool is_pointwise() const;
  bool is_of_f32() const { return src_md.get_data_type() == memory::data_type::f32; }
  int64_t words() const;  // of a pixel of src
  dense::Results results() const;
};

/*! \brief Of src; of fewer, there is little to multiply of a single pixel. */
constexpr memory::dim kFewestChannels = 16;

/*! \brief A node as such; none if it is another, or has few channels. */
std::optional<DenseConvolution> dense_convolution(const PlanBuilder& b, const Node& node,
                                                  memory::dim fewest_channels);

/*! \brief How many bytes there are from one pixel to the next. */
int64_t bytes_of_pixel(const memory::desc& md);

dense::DataType dense_dtype(memory::data_type dtype);

/*! \brief The arguments of a step after src, as emit_dense() has put them. */
struct DenseArguments {
  dense::Constants constants;
  void* dst;
  const void* addend;
  void* workspace;

  /*! \param pixel At which dst and the addend begin. */
  DenseArguments(void* const* after_src, const dense::Results& results, bool of_numbers,
                 bool has_workspace, int64_t pixel = 0);
};

/*!
 * \brief Binds the values and emits the step.
 * \param workspace_bytes None if 0.
 * \param args Those for src.
 */
void emit_dense(PlanBuilder& b, const Node& node, const DenseConvolution& convolution,
                std::shared_ptr<Kernel> kernel, int64_t workspace_bytes,
                std::vector<std::pair<int, int>> args);

/*! \brief The same, with src as one tensor. */
void emit_dense(PlanBuilder& b, const Node& node, const DenseConvolution& convolution,
                std::shared_ptr<Kernel> kernel, int64_t workspace_bytes);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_DENSE_H_
