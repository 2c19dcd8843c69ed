/*!
 * \file ending.h
 * \brief What our own convolutions have in common: images, and what they are ended with.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_ENDING_H_
#define DNNL_BYOC_ENGINE_OPS_ENDING_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../kernels/image.h"
#include "op.h"
#include "spatial.h"

namespace dnnl_byoc {

/*! \brief A layout that is channels-last, or in blocks of channel_block() channels. */
kernels::Image image_of(const memory::desc& md);

/*! \brief One side of a window: its rows or columns. */
inline kernels::WindowSide window_side(const Window& window, const memory::dims& kernel, int side) {
  return {kernel[side], window.strides[side], window.padding_l[side]};
}

/*! \brief Whether a node has no bias, or a constant one in f32, of a number for each channel. */
bool has_usual_bias(const PlanBuilder& b, const Node& node, memory::dim channels);

/*! \brief An addition of a whole tensor, a ReLU, or both in this order. */
struct Ending {
  int addend = -1;  // tensor
  kernels::Activation activation = {};
};

/*! \brief That of a node; none if its post-ops are others. */
std::optional<Ending> ending_of(const PlanBuilder& b, const Node& node,
                                const memory::dims& dst_shape);

/*! \brief A result's value, and that of what is added to it, or -1. */
struct BoundSum {
  int dst, addend;
  bool in_place;
};

/*!
 * \brief Defines a result: in the memory of the addend, where that may be overwritten.
 * \param dst, addend Tensors; the addend, or -1, in the layout of dst and its own data type.
 */
BoundSum bind_sum(PlanBuilder& b, int dst, const memory::desc& dst_md, int addend,
                  memory::data_type addend_dtype);

/*! \brief The values that a kernel ends with. */
struct BoundEnding {
  int dst;
  std::vector<std::pair<int, int>> operands;  // the bias and the addend, if there are any
  std::string post_ops;
};

/*! \brief Defines a node's result: in the memory of the addend, where that may be overwritten. */
BoundEnding bind_ending(PlanBuilder& b, const Node& node, const Ending& ending,
                        const memory::desc& dst_md);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_ENDING_H_
