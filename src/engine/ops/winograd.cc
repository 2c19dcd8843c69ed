#include "winograd.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../isa.h"
#include "../kernel.h"
#include "../kernels/winograd.h"
#include "ending.h"
#include "spatial.h"
#include "winograd_products.h"

namespace dnnl_byoc {
namespace {

constexpr auto kF32 = memory::data_type::f32, kBf16 = memory::data_type::bf16;

winograd::Functions functions(int tile, const winograd::KernelSize& kernel,
                              const winograd::DataTypes& dtypes) {
  return channel_block() == kernels::kAvx512Vector
             ? winograd::avx512_functions(tile, kernel, dtypes)
             : winograd::avx2_functions(tile, kernel, dtypes);
}

winograd::DataType data_type(memory::data_type dtype) {
  return dtype == kBf16 ? winograd::DataType::bf16 : winograd::DataType::f32;
}

class SrcKernel final : public Kernel {
 public:
  SrcKernel(winograd::Functions functions, const winograd::SrcTransform& transform)
      : functions_(functions), transform_(transform) {}
  const char* impl() const override { return "winograd"; }
  void run(void* const* data) const override {
    functions_.src(transform_, data[0], static_cast<float*>(data[1]));
  }

 private:
  const winograd::Functions functions_;
  const winograd::SrcTransform transform_;
};

class DstKernel final : public Kernel {
 public:
  DstKernel(winograd::Functions functions, const winograd::DstTransform& transform, bool bias,
            bool addend)
      : functions_(functions), transform_(transform), bias_(bias), addend_(addend) {}
  const char* impl() const override { return "winograd"; }
  void run(void* const* data) const override {
    const auto* products = static_cast<const float*>(*data++);
    void* dst = *data++;
    const auto* bias = bias_ ? static_cast<const float*>(*data++) : nullptr;
    const void* addend = addend_ ? *data++ : nullptr;
    functions_.dst(transform_, products, bias, addend, dst);
  }

 private:
  const winograd::Functions functions_;
  const winograd::DstTransform transform_;
  const bool bias_, addend_;
};

/*! \brief A convolution that the algorithm can do. */
struct Problem {
  winograd::KernelSize kernel;
  winograd::Functions transforms;
  memory::dim in_channels, out_channels;
  memory::dims padding;  // top, left
  memory::desc src_md, dst_md;
  Ending ending;
};

std::optional<Problem> problem_of(const PlanBuilder& b, const Node& node, int tile) {
  const int src = node.inputs[0], weights = node.inputs[1];
  const auto src_shape = b.shape(src), weights_shape = b.shape(weights);
  const memory::dims kernel = spatial(weights_shape);
  const auto dtype = b.precision();
  const auto is_of_precision = [&](int tensor) {
    return b.dtype(tensor) == kF32 || b.dtype(tensor) == dtype;
  };
  if (kernel.size() != 2 || node.attr<memory::dim>("groups") != 1 || count(src_shape) == 0 ||
      count(weights_shape) == 0 || (dtype != kF32 && dtype != kBf16) ||
      b.dtypes_for(node, src).front() != dtype ||
      !std::all_of(node.inputs.begin(), node.inputs.end(), is_of_precision) ||
      b.dtype(weights) != kF32 || !b.is_constant(weights))
    return std::nullopt;
  const Window window(b, node, kernel);
  if (window.strides != memory::dims{1, 1} || window.dilation != memory::dims{0, 0} ||
      weights_shape[0] % channel_block() || weights_shape[1] % channel_block())
    return std::nullopt;
  memory::dims dst_shape = window.output(b, node, kernel);
  dst_shape.insert(dst_shape.begin(), {src_shape[0], weights_shape[0]});
  const winograd::KernelSize size = {kernel[0], kernel[1]};
  const auto dst_dtype = b.result_dtype(node, dtype);
  const winograd::Functions transforms =
      functions(tile, size, {data_type(dtype), data_type(dst_dtype)});
  const auto ending = ending_of(b, node, dst_shape);
  const memory::desc src_md =
      data_md(b.layout(), src_shape, dtype).value_or(with_dtype(b.md(src), dtype));
  if (!transforms.src || !ending || !is_countable(dst_shape) ||
      data_layout_of(src_md) == DataLayout::any)
    return std::nullopt;
  return Problem{size,
                 transforms,
                 weights_shape[1],
                 weights_shape[0],
                 window.padding_l,
                 src_md,
                 with_dtype(same_layout(src_md, dst_shape), dst_dtype),
                 *ending};
}

/*!
 * \brief How many rows of tiles are computed at once.
 *
 * As many as leave the matrices of a stripe in the cache between the steps, but not so few that the
 * products become slow.
 * \param bytes Of the matrices of one row.
 */
memory::dim stripe_rows(memory::dim bytes, memory::dim tiles, memory::dim rows) {
  constexpr memory::dim kBytes = 2 << 20, kTiles = 48;
  const memory::dim most = std::max(kBytes / bytes, (kTiles + tiles - 1) / tiles);
  const memory::dim stripes = (rows + most - 1) / most;
  return (rows + stripes - 1) / stripes;
}

}  // namespace

bool build_winograd(PlanBuilder& b, const Node& node, int tile) {
  if (!b.has_own_kernels()) return false;
  const auto problem = problem_of(b, node, tile);
  if (!problem) return false;
  const auto& [kernel, transforms, in_channels, out_channels, padding, src_md, dst_md, ending] =
      *problem;

  const memory::dim height = winograd::tile_along(tile, kernel.height);
  const memory::dim width = winograd::tile_along(tile, kernel.width);
  const auto dst_shape = dst_md.get_dims();
  const memory::dim rows_per_image = (dst_shape[2] + height - 1) / height;
  const memory::dim columns = (dst_shape[3] + width - 1) / width;
  const memory::dim rows = dst_shape[0] * rows_per_image;
  const memory::dim elements = (height + kernel.height - 1) * (width + kernel.width - 1);
  const memory::dim bytes_of_row =
      elements * columns * (in_channels + out_channels) * static_cast<memory::dim>(sizeof(float));
  const memory::dim stripe = stripe_rows(bytes_of_row, columns, rows);
  const memory::dim last_stripe = rows - (rows - 1) / stripe * stripe;
  WinogradProducts products(b, elements, in_channels, out_channels);
  if (!products.prepare(stripe * columns) || !products.prepare(last_stripe * columns)) return false;

  const int src = b.require(node.inputs[0], src_md);
  products.require_weights(node, tile, kernel);
  const auto [dst, operands, post_ops] = bind_ending(b, node, ending, dst_md);

  // All stripes use one memory; that of the last, smaller one is another view of it.
  const int full_src = b.temporary(products.src_md(stripe * columns));
  const int full_dst = b.temporary(products.dst_md(stripe * columns));
  const bool uneven = last_stripe != stripe;
  const int last_src =
      uneven ? b.temporary(products.src_md(last_stripe * columns), full_src) : full_src;
  const int last_dst =
      uneven ? b.temporary(products.dst_md(last_stripe * columns), full_dst) : full_dst;
  for (memory::dim first = 0; first < rows; first += stripe) {
    const bool is_last = first + stripe >= rows;
    const memory::dim count = is_last ? last_stripe : stripe, tiles = count * columns;
    const int matrices_value = is_last ? last_src : full_src;
    const int products_value = is_last ? last_dst : full_dst;
    winograd::Tiling tiling = {first, count, rows_per_image, columns,
                               in_channels / channel_block()};
    b.emit("winograd_src",
           std::make_shared<SrcKernel>(
               transforms, winograd::SrcTransform{tiling, image_of(src_md), padding[0], padding[1],
                                                  matrices_of(products.src_md(tiles))}),
           {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, matrices_value}});
    products.emit(tiles, matrices_value, products_value);
    std::vector<std::pair<int, int>> args = {{DNNL_ARG_SRC, products_value}, {DNNL_ARG_DST, dst}};
    args.insert(args.end(), operands.begin(), operands.end());
    tiling.channel_vectors = out_channels / channel_block();
    b.emit("winograd_dst",
           std::make_shared<DstKernel>(
               transforms,
               winograd::DstTransform{tiling, matrices_of(products.dst_md(tiles)), image_of(dst_md),
                                      ending.activation},
               node.inputs.size() == 3, ending.addend >= 0),
           std::move(args), post_ops);
  }
  return true;
}

}  // namespace dnnl_byoc
