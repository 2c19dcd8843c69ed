#include <algorithm>
#include <numeric>

#include "anchors.h"

namespace dnnl_byoc {
namespace adapter {
namespace {

int swapped(const Source& s, int tensor, size_t rank) {
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[rank - 1], axes[rank - 2]);
  return transposed(s.graph, tensor, axes);
}

/*! \brief All leading dimensions of the data are rows; weights (N, K). */
Anchor dense(const Source& s, int weights) {
  const Ints data = s.shape(0);
  s.expect(!data.empty(), "expected data of rank >= 1, got a scalar");
  s.expect(std::count(data.begin(), data.end(), 0) == 0, "expected non-empty data, got ",
           shape_text(data));
  s.expect(data.back() >= 0, "expected a known last size, got ", shape_text(data));
  const size_t last = data.size() - 1;
  const Ints& result = s.result_shape();
  // If rows were merged, an operand that is broadcast could pass for one that is not.
  if (last > 1 && !is_known(data)) {
    return {make_node("matmul", {s.id(0), swapped(s, weights, 2)}, json::object()),
            ResultView(result).with_bias_along(static_cast<int64_t>(last))};
  }
  const int src = reshaped(s.graph, s.id(0), data, rows_of(data));
  return {make_node("inner_product", {src, weights}, json::object()),
          ResultView::rows(result).with_bias_along(static_cast<int64_t>(last))};
}

}  // namespace

Anchor translate_dense(const Source& s) { return dense(s, s.id(1)); }

Anchor translate_matmul(const Source& s) {
  s.expect(s.shape(0).size() == 2 && s.shape(1).size() == 2, "expected two matrices, got ranks ",
           s.shape(0).size(), " and ", s.shape(1).size());
  int src = s.id(0), weights = s.id(1);
  if (get_int(s.attrs, "transpose_a")) src = swapped(s, src, 2);
  if (!get_int(s.attrs, "transpose_b")) weights = swapped(s, weights, 2);
  return {make_node("inner_product", {src, weights}, json::object()),
          ResultView(s.result_shape()).with_bias_along(1)};
}

Anchor translate_batch_matmul(const Source& s) {
  const size_t rank = s.shape(0).size();
  int src = s.id(0), weights = s.id(1);
  if (get_int(s.attrs, "transpose_a")) src = swapped(s, src, rank);
  if (get_int(s.attrs, "transpose_b")) weights = swapped(s, weights, rank);
  return {make_node("matmul", {src, weights}, json::object()),
          ResultView(s.result_shape()).with_bias_along(static_cast<int64_t>(rank) - 1)};
}

Anchor translate_numpy_matmul(const Source& s) {
  const size_t rank = s.result_shape().size();
  s.expect(s.shape(0).size() >= 2 && s.shape(1).size() >= 2, "expected operands of rank >= 2, got ",
           s.shape(0).size(), " and ", s.shape(1).size());
  if (s.shape(1).size() == 2) return dense(s, swapped(s, s.id(1), 2));
  const auto leading = [&](size_t arg) {
    Ints shape = s.shape(arg);
    shape.insert(shape.begin(), rank - shape.size(), 1);
    return reshaped(s.graph, s.id(arg), s.shape(arg), shape);
  };
  return {make_node("matmul", {leading(0), leading(1)}, json::object()),
          ResultView(s.result_shape()).with_bias_along(static_cast<int64_t>(rank) - 1)};
}

}  // namespace adapter
}  // namespace dnnl_byoc
