#include "pointwise.h"

#include <omp.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../isa.h"
#include "../kernels/pointwise.h"
#include "dense.h"
#include "normalized_source.h"

namespace dnnl_byoc {
namespace {

pointwise::Function function_of(const DenseConvolution& c) {
  if (c.numbers) return pointwise::avx512_vnni_function();
  return c.is_of_f32() ? pointwise::avx512_function() : pointwise::avx512_bf16_function();
}

class PointwiseKernel final : public RowKernel {
 public:
  PointwiseKernel(const DenseConvolution& c, const pointwise::Convolution& convolution)
      : function_(function_of(c)),
        shape_(c.dst_md.get_dims()),
        of_numbers_(c.numbers),
        convolution_(convolution) {}
  const char* impl() const override { return "pointwise"; }
  void run(void* const* data) const override { run(convolution_, data, 0); }

  std::optional<Rows> rows() const override {
    if (shape_[0] != 1) return std::nullopt;
    return Rows{shape_[2], shape_[2], {1, 1, 0}, shape_[3] * convolution_.results.stride};
  }
  void run_rows(void* const* data, int64_t first, int64_t last) const override {
    pointwise::Convolution part = convolution_;
    part.pixels = (last - first) * shape_[3];
    run(part, data, first * shape_[3]);
  }

 private:
  /*! \param pixel The first. */
  void run(const pointwise::Convolution& convolution, void* const* data, int64_t pixel) const {
    const DenseArguments args(data + 1, convolution.results, of_numbers_, /*has_workspace=*/false,
                              pixel);
    const char* src = static_cast<const char*>(data[0]) + pixel * convolution.src_stride;
    function_(convolution, args.constants, src, args.addend, args.dst);
  }

  const pointwise::Function function_;
  const memory::dims shape_;  // of dst
  const bool of_numbers_;
  const pointwise::Convolution convolution_;
};

/*! \brief Does a batch normalization of src on the way. */
class NormalizedPointwiseKernel final : public Kernel {
 public:
  NormalizedPointwiseKernel(const pointwise::Convolution& convolution,
                            const normalization::Normalization& normalization,
                            std::vector<memory::dim> channels)
      : convolution_(convolution), normalization_(normalization), channels_(std::move(channels)) {}
  const char* impl() const override { return "normalized_pointwise"; }
  void run(void* const* data) const override {
    const BoundSource bound(data, channels_);
    const DenseArguments args(bound.rest(), convolution_.results, /*of_numbers=*/false,
                              /*has_workspace=*/true);
    function_(convolution_, args.constants, normalization_, bound.source(), args.addend,
              args.workspace, args.dst);
  }

 private:
  const pointwise::NormalizedFunction function_ = pointwise::avx512_normalized_function();
  const pointwise::Convolution convolution_;
  const normalization::Normalization normalization_;
  const std::vector<memory::dim> channels_;  // of each part of src
};

bool fits(const DenseConvolution& c) {
  return c.is_pointwise() && (c.is_of_f32() || !has_amx()) &&
         !(c.numbers && c.numbers->is_src_signed());
}

}  // namespace

bool build_pointwise(PlanBuilder& b, const Node& node) {
  const auto c = dense_convolution(b, node, kFewestChannels);
  if (!c || !fits(*c) || !b.wants_own_kernel()) return false;
  const memory::dims src = c->src_md.get_dims();
  const pointwise::Convolution convolution = {count(src) / src[1], c->words(),
                                              bytes_of_pixel(c->src_md), c->results(),
                                              omp_get_max_threads()};
  if (const Node* left = b.left_to_reader(c->src)) {
    const NormalizedSource source(b, *left);
    emit_dense(b, node, *c,
               std::make_shared<NormalizedPointwiseKernel>(convolution, source.normalization(),
                                                           source.channels(b)),
               convolution.threads * convolution.chunk_bytes(), source.args(b));
  } else {
    emit_dense(b, node, *c, std::make_shared<PointwiseKernel>(*c, convolution), 0);
  }
  return true;
}

}  // namespace dnnl_byoc
