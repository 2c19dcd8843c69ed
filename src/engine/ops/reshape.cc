#include <algorithm>
#include <functional>
#include <numeric>

#include "../error.h"
#include "op.h"

namespace dnnl_byoc {

void build_reshape(PlanBuilder& b, const Node& node) {
  expect(node.inputs.size() == 1, b, node, "one input");
  const int src = node.inputs[0];
  if (!node.post_ops.empty()) throw Unsupported("reshape: expected no post-ops");
  auto shape = node.attr<memory::dims>("shape");
  const auto product = [](const memory::dims& dims) {
    return std::accumulate(dims.begin(), dims.end(), memory::dim{1}, std::multiplies<>());
  };
  const auto size = product(b.shape(src));
  expect(shape.size() <= DNNL_MAX_NDIMS, b, node, "a shape of rank <= 12");
  memory::dims known = shape;
  known.erase(std::remove(known.begin(), known.end(), -1), known.end());
  expect(is_countable(known), b, node, "a shape that the elements fill");
  for (auto& dim : shape) {
    if (dim != -1) continue;
    dim = 1;
    const auto rest = product(shape);
    expect(rest > 0 && size % rest == 0, b, node, "a shape that the elements fill");
    dim = size / rest;
  }
  expect(!shape.empty() && product(shape) == size, b, node, "a shape that the elements fill");
  const auto plain = plain_md(shape, b.dtype(src));
  if (is_row_major(b.md(src))) {
    b.define_in(node.output, plain, b.first_value(src));
    return;
  }
  // oneDNN knows whether a blocked layout survives; else the data is made row-major first.
  const auto view = b.md(src).reshape(shape, /*allow_empty=*/true);
  b.define_in(node.output, view ? view : plain, b.require(src, view ? view : plain));
}

}  // namespace dnnl_byoc
