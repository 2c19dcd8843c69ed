#include "winograd_products.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "../isa.h"
#include "../kernel.h"
#include "post_ops.h"

namespace dnnl_byoc {
namespace {

constexpr auto kF32 = memory::data_type::f32;

class ProductKernel final : public Kernel {
 public:
  explicit ProductKernel(const winograd::Product& product) : product_(product) {}
  const char* impl() const override { return "winograd"; }
  void run(void* const* data) const override {
    const auto floats = [data](int i) { return static_cast<float*>(data[i]); };
    multiply_(product_, floats(0), floats(1), floats(2), floats(3));
  }

 private:
  const winograd::Multiply multiply_ = winograd::avx512_product();
  const winograd::Product product_;
};

/*!
 * \brief Matrices, one after the other.
 *
 * A cache line apart: an element of a tile is written into all of them, and if they lay a multiple
 * of 4 KiB apart, as they often would, that would be the same few lines of the first-level cache.
 */
memory::desc matrices_md(const memory::dims& shape) {
  constexpr memory::dim kLine = 16;
  return {shape, kF32, {shape[1] * shape[2] + kLine, shape[2], 1}};
}

/*! \brief With more room in a block, the weights would take much memory for nothing. */
bool fills_blocks(memory::dim channels) {
  const memory::dim blocks = kernels::parts_of_at_most(dense::kBlock, channels).count;
  return blocks * dense::kBlock * 3 <= channels * 4;
}

/*! \brief (elements, I, O) → (elements, blocks, I, kBlock), zero where there is no channel. */
void arrange(const winograd::Product& p, const float* weights, float* arranged) {
  const memory::dim in = p.in_channels, out = p.out_channels;
#pragma omp parallel for schedule(static)
  for (memory::dim i = 0; i < p.elements; ++i) {
    float* to = arranged + i * p.weights_of_element();
    std::fill_n(to, p.weights_of_element(), 0.f);
    for (memory::dim j = 0; j < in; ++j)
      for (memory::dim first = 0; first < out; first += dense::kBlock)
        std::copy_n(weights + (i * in + j) * out + first,
                    std::min<memory::dim>(out - first, dense::kBlock),
                    to + first * in + j * dense::kBlock);
  }
}

}  // namespace

WinogradProducts::WinogradProducts(PlanBuilder& b, memory::dim elements, memory::dim in,
                                   memory::dim out)
    : b_(b),
      elements_(elements),
      in_(in),
      out_(out),
      is_ours_(channel_block() == kernels::kAvx512Vector && fills_blocks(out)) {}

bool WinogradProducts::prepare(memory::dim tiles) {
  if (is_ours_ || pds_.count(tiles)) return true;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const memory::dims shape = {elements_, in_, out_};
  const auto weights = pds_.empty() ? any_md(shape, kF32) : pds_.begin()->second.weights_desc();
  dnnl::matmul::primitive_desc pd(cpu_engine(), src_md(tiles), weights, dst_md(tiles), attr,
                                  /*allow_empty=*/true);
  if (!pd || is_reference(pd)) return false;
  pds_.emplace(tiles, std::move(pd));
  return true;
}

void WinogradProducts::require_weights(const Node& node, int tile,
                                       const winograd::KernelSize& kernel) {
  const auto transformed = [=, in = in_, out = out_](const memory& plain, float* to) {
    winograd::transform_weights(tile, kernel, out, in,
                                static_cast<const float*>(plain.get_data_handle()), to);
  };
  const memory::desc plain_weights = plain_md({elements_, in_, out_}, kF32);
  if (!is_ours_) {
    const auto make = [=](const memory& plain) {
      memory result(plain_weights, cpu_engine());
      transformed(plain, static_cast<float*>(result.get_data_handle()));
      return result;
    };
    weights_ = b_.transformed(node.inputs[1], pds_.begin()->second.weights_desc(),
                              {text("winograd ", tile), make});
    return;
  }
  const winograd::Product p = product(0);
  const memory::desc md = plain_md({elements_, p.blocks(), in_, dense::kBlock}, kF32);
  const auto make = [=](const memory& plain) {
    std::vector<float> by_channel(plain_weights.get_size() / sizeof(float));
    transformed(plain, by_channel.data());
    memory result(md, cpu_engine());
    arrange(p, by_channel.data(), static_cast<float*>(result.get_data_handle()));
    return result;
  };
  weights_ = b_.transformed(node.inputs[1], md, {text("winograd blocks ", tile), make});
  memory zeros(plain_md({p.blocks() * dense::kBlock}, kF32), cpu_engine());
  std::fill_n(static_cast<float*>(zeros.get_data_handle()), p.blocks() * dense::kBlock, 0.f);
  starts_ = b_.literal(zeros);
}

memory::desc WinogradProducts::src_md(memory::dim tiles) const {
  return matrices_md({elements_, tiles, in_});
}

memory::desc WinogradProducts::dst_md(memory::dim tiles) const {
  return matrices_md({elements_, tiles, out_});
}

void WinogradProducts::emit(memory::dim tiles, int src, int dst) {
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights_}};
  if (is_ours_) args.emplace_back(DNNL_ARG_BIAS, starts_);
  args.emplace_back(DNNL_ARG_DST, dst);
  if (is_ours_)
    b_.emit("matmul", std::make_shared<ProductKernel>(product(tiles)), std::move(args), "");
  else
    b_.emit("matmul", pds_.at(tiles), std::move(args));
}

winograd::Product WinogradProducts::product(memory::dim tiles) const {
  return {elements_, tiles, in_, out_, matrices_of(src_md(tiles)), matrices_of(dst_md(tiles))};
}

winograd::Matrices matrices_of(const memory::desc& md) {
  const auto strides = md.get_strides();
  return {strides[0], strides[1]};
}

}  // namespace dnnl_byoc
