#include "pointwise.h"

#include <omp.h>

#include <memory>

#include "../isa.h"
#include "../kernels/pointwise.h"
#include "dense.h"

namespace dnnl_byoc {
namespace {

constexpr memory::dim kMostEmpty = 16;  // places for channels of dst, in the last block

class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(pointwise::Function function, const pointwise::Convolution& convolution)
      : function_(function), convolution_(convolution) {}
  const char* impl() const override { return "pointwise"; }
  void run(void* const* data) const override {
    const DenseArguments args(data, convolution_.results, /*has_workspace=*/false);
    function_(convolution_, args.constants, args.src, args.addend, args.dst);
  }

 private:
  const pointwise::Function function_;
  const pointwise::Convolution convolution_;
};

bool fits(const DenseConvolution& c) {
  const dense::Results results = c.results();
  return c.is_pointwise() && results.blocks() * dense::kBlock - results.channels <= kMostEmpty &&
         !(c.numbers && c.numbers->is_src_signed());
}

}  // namespace

bool build_pointwise(PlanBuilder& b, const Node& node) {
  if (has_amx()) return false;
  const auto c = dense_convolution(b, node);
  if (!c || !fits(*c) || !b.wants_own_kernel()) return false;
  const memory::dims src = c->src_md.get_dims();
  const pointwise::Convolution convolution = {count(src) / src[1], c->words(),
                                              bytes_of_pixel(c->src_md), c->results(),
                                              omp_get_max_threads()};
  const auto function =
      c->numbers ? pointwise::avx512_vnni_function() : pointwise::avx512_bf16_function();
  emit_dense(b, node, *c, std::make_shared<PointwiseKernel>(function, convolution), 0);
  return true;
}

}  // namespace dnnl_byoc
