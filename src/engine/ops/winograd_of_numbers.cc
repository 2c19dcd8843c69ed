#include "winograd_of_numbers.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "../error.h"
#include "../kernel.h"
#include "../kernels/winograd_of_bytes.h"
#include "convolution_of_numbers.h"
#include "ending.h"
#include "post_ops.h"

namespace dnnl_byoc {
namespace {

using winograd_of_bytes::Channels;
using winograd_of_bytes::Convolution;

constexpr memory::dim kFewestChannels = 16;  // for fewer, the most of a vector is empty

class WinogradKernel final : public Kernel {
 public:
  explicit WinogradKernel(const Convolution& convolution) : convolution_(convolution) {}
  const char* impl() const override { return "winograd"; }
  void run(void* const* data) const override {
    const auto floats = [data](int i) { return static_cast<const float*>(data[i]); };
    function_(convolution_,
              {static_cast<const int16_t*>(data[1]), static_cast<const int32_t*>(data[2]),
               floats(3), floats(4)},
              data[0], convolution_.adds ? data[7] : nullptr, data[5], data[6]);
  }

 private:
  const winograd_of_bytes::Function function_ = winograd_of_bytes::avx512_vnni_function();
  const Convolution convolution_;
};

}  // namespace

bool build_winograd_of_numbers(PlanBuilder& b, const Node& node, int tile) {
  const memory::dims shape = b.shape(node.inputs[1]);
  if (tile != winograd_of_bytes::kTile ||
      spatial(shape) != memory::dims(2, winograd_of_bytes::kKernel) ||
      node.attr<memory::dim>("groups") != 1 || shape[0] < kFewestChannels ||
      shape[1] < kFewestChannels)
    return false;
  const auto problem = convolution_of_numbers(b, node);
  if (!problem || !problem->is_dst_whole() || problem->window.strides != memory::dims{1, 1})
    return false;

  const Channels channels = {shape[1], shape[0]};
  const auto& addend = problem->addend;
  const auto addend_dtype = addend ? b.dtype(addend->tensor) : memory::data_type::undef;
  const Convolution c = {image_of(problem->src_md),
                         image_of(problem->dst_md),
                         problem->dst_md.get_dims()[0],
                         channels,
                         problem->window.padding_l[0],
                         problem->window.padding_l[1],
                         problem->is_src_signed(),
                         problem->padding,
                         addend.has_value(),
                         addend_dtype == memory::data_type::s8,
                         addend ? addend->factor : 0.f,
                         static_cast<int32_t>(problem->range.least),
                         static_cast<int32_t>(problem->range.most),
                         omp_get_max_threads()};
  const memory::dim places = channels.vectors() * winograd_of_bytes::kVector;
  const Arrangement arrangement = in_order(channels.out, places);
  const int weights =
      from_weights<int16_t>(b, node, channels.vectors() * channels.weights_of_vector(), "winograd",
                            [channels](const int8_t* from, int16_t* to) {
                              winograd_of_bytes::arrange_weights(channels, from, to);
                            });
  const int starts = from_weights<int32_t>(
      b, node, places, text("starts ", int{c.padding}), [c](const int8_t* from, int32_t* to) {
        winograd_of_bytes::arrange_starts(c.channels, c.padding, from, to);
      });
  const int src = b.require(b.numbers_of(node.inputs[0]), problem->src_md);
  const int workspace =
      b.temporary(plain_md({c.threads * c.workspace_bytes()}, memory::data_type::u8));
  const BoundSum sum =
      bind_sum(b, problem->dst, problem->dst_md, addend ? addend->tensor : -1, addend_dtype);
  std::vector<std::pair<int, int>> args = {
      {DNNL_ARG_SRC, src},
      {DNNL_ARG_WEIGHTS, weights},
      {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, starts},
      {DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, factors(b, *problem, arrangement)},
      {DNNL_ARG_BIAS, terms(b, node, *problem, arrangement)},
      {DNNL_ARG_WORKSPACE, workspace},
      {DNNL_ARG_DST, sum.dst}};
  if (sum.addend >= 0) args.emplace_back(DNNL_ARG_SRC_1, sum.addend);
  b.emit("winograd", std::make_shared<WinogradKernel>(c), args, post_op_names(node, sum.in_place));
  return true;
}

}  // namespace dnnl_byoc
