#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>

#include "../error.h"
#include "../kernel.h"
#include "../threads.h"
#include "op.h"

namespace dnnl_byoc {
namespace {

/*!
 * \brief Copies blocks of bytes.
 *
 * src is (outer, choices, block), dst is (outer, picks, block), both row-major.
 */
class GatherKernel : public Kernel {
 public:
  GatherKernel(memory::dim outer, memory::dim choices, memory::dim picks, size_t block)
      : outer_(outer), choices_(choices), picks_(picks), block_(block) {}

  const char* impl() const final { return "copy"; }

  void run(void* const* data) const final {
    const auto* src = static_cast<const char*>(data[0]);
    const auto* indices = static_cast<const int32_t*>(data[1]);
    auto* dst = static_cast<char*>(data[2]);
    const memory::dim blocks = outer_ * picks_;
    const bool is_worth_threads =
        on_openmp() && static_cast<size_t>(blocks) * block_ > kBytesForOneThread;
#pragma omp parallel for schedule(static) if (is_worth_threads)
    for (memory::dim i = 0; i < blocks; ++i) {
      const memory::dim index =
          std::clamp<memory::dim>(indices[i % picks_], 0, choices_ - 1) + i / picks_ * choices_;
      std::memcpy(dst + i * static_cast<memory::dim>(block_),
                  src + index * static_cast<memory::dim>(block_), block_);
    }
  }

 private:
  static constexpr size_t kBytesForOneThread = 1 << 17;
  const memory::dim outer_, choices_, picks_;
  const size_t block_;
};

memory::dim product(memory::dims::const_iterator begin, memory::dims::const_iterator end) {
  return std::accumulate(begin, end, memory::dim{1}, std::multiplies<>());
}

}  // namespace

void build_gather(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 2, b, node, "src and indices");
  if (!node.post_ops.empty()) throw Unsupported("gather: expected no post-ops");
  const int src = node.inputs[0], indices = node.inputs[1];
  const memory::dims shape = b.shape(src), picked = b.shape(indices);
  const int axis = node.attr<int>("axis");
  expect(axis >= 0 && axis < static_cast<int>(shape.size()), b, node,
         "axis from 0 to the rank of src");
  expect(b.dtype(indices) == memory::data_type::s32, b, node, "indices of 32 bits");
  const auto before = shape.begin() + axis, after = before + 1;
  memory::dims dst_shape(shape.begin(), before);
  dst_shape.insert(dst_shape.end(), picked.begin(), picked.end());
  dst_shape.insert(dst_shape.end(), after, shape.end());
  expect(dst_shape.size() <= DNNL_MAX_NDIMS && is_countable(dst_shape), b, node,
         "a result of rank <= 12 with sizes of 31 bits");
  const auto dtype = b.dtype(src);
  const memory::desc dst_md = plain_md(dst_shape, dtype);
  const int data = b.require(src, plain_md(shape, dtype));
  const int places = b.require(indices, plain_md(picked, memory::data_type::s32));
  const int dst = b.define(node.output, dst_md);
  if (count(dst_shape) == 0) return;
  expect(*before > 0, b, node, "something to gather from");
  b.emit("gather",
         std::make_shared<GatherKernel>(
             product(shape.begin(), before), *before, count(picked),
             static_cast<size_t>(product(after, shape.end())) * memory::data_type_size(dtype)),
         {{DNNL_ARG_SRC_0, data}, {DNNL_ARG_SRC_1, places}, {DNNL_ARG_DST, dst}});
}

}  // namespace dnnl_byoc
