#include <algorithm>

#include "../error.h"
#include "op.h"

namespace dnnl_byoc {
namespace {

void expect_view(const PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 1, b, node, "one input");
  if (!node.post_ops.empty()) throw Unsupported(node.kind + ": expected no post-ops");
}

}  // namespace

void build_reshape(PlanBuilder& b, const Node& node) {
  expect_view(b, node);
  const int src = node.inputs[0];
  auto shape = node.attr<memory::dims>("shape");
  const auto size = count(b.shape(src));
  expect(shape.size() <= DNNL_MAX_NDIMS, b, node, "a shape of rank <= 12");
  memory::dims known = shape;
  known.erase(std::remove(known.begin(), known.end(), -1), known.end());
  expect(is_countable(known), b, node, "a shape that the elements fill");
  for (auto& dim : shape) {
    if (dim != -1) continue;
    dim = 1;
    const auto rest = count(shape);
    expect(rest > 0 && size % rest == 0, b, node, "a shape that the elements fill");
    dim = size / rest;
  }
  expect(!shape.empty() && count(shape) == size, b, node, "a shape that the elements fill");
  const auto plain = plain_md(shape, b.dtype(src));
  if (is_row_major(b.md(src))) {
    b.define_in(node.output, plain, b.first_value(src));
    return;
  }
  // Where the layout does not survive, the data is made row-major first.
  const memory::desc view = reshaped(b.md(src), shape).value_or(plain);
  b.define_in(node.output, view, b.require(src, view));
}

void build_transpose(PlanBuilder& b, const Node& node) {
  expect_view(b, node);
  const int src = node.inputs[0];
  const auto axes = node.attr<memory::dims>("axes");
  const size_t rank = b.shape(src).size();
  std::vector<int> permutation(rank, -1);  // oneDNN's: where each dimension of src goes
  expect(axes.size() == rank, b, node, "an axis for each dimension");
  for (size_t i = 0; i < rank; ++i) {
    expect(axes[i] >= 0 && axes[i] < static_cast<memory::dim>(rank) && permutation[axes[i]] < 0, b,
           node, "axes that are a permutation");
    permutation[axes[i]] = static_cast<int>(i);
  }
  b.define_in(node.output, b.md(src).permute_axes(permutation), b.first_value(src));
}

void build_slice(PlanBuilder& b, const Node& node) {
  expect_view(b, node);
  const int src = node.inputs[0];
  const auto begin = node.attr<memory::dims>("begin"), size = node.attr<memory::dims>("size");
  const memory::dims shape = b.shape(src);
  expect(begin.size() == shape.size() && size.size() == shape.size(), b, node,
         "a begin and a size for each dimension");
  for (size_t i = 0; i < shape.size(); ++i)
    expect(begin[i] >= 0 && size[i] >= 0 && begin[i] + size[i] <= shape[i], b, node,
           "a slice inside of src");
  if (count(size) == 0) {  // which oneDNN takes no part of
    b.define(node.output, plain_md(size, b.dtype(src)));
    return;
  }
  int value = b.first_value(src);
  auto part = b.md(src).submemory_desc(size, begin, /*allow_empty=*/true);
  // The offset belongs to the pointer: not every primitive heeds that of a descriptor.
  const memory::dims origin(shape.size(), 0);
  auto view = b.md(src).submemory_desc(size, origin, /*allow_empty=*/true);
  if (!part || !view) {  // a cut through a block of channels
    const auto plain = plain_md(shape, b.dtype(src));
    value = b.require(src, plain);
    part = plain.submemory_desc(size, begin);
    view = plain.submemory_desc(size, origin);
  }
  const auto offset = static_cast<size_t>(part.get_submemory_offset());
  b.define_in(node.output, view, value, offset * memory::data_type_size(b.dtype(src)));
}

}  // namespace dnnl_byoc
