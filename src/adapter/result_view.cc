#include "result_view.h"

#include <algorithm>
#include <numeric>

#include "refusal.h"

namespace dnnl_byoc {
namespace adapter {

Ints axes_between(const std::string& from, const std::string& to) {
  Ints axes;
  for (char dimension : to) {
    const auto position = from.find(dimension);
    if (from.size() != to.size() || position == std::string::npos)
      refuse("expected a permutation of the layout ", to, ", got ", from);
    axes.push_back(static_cast<int64_t>(position));
  }
  return axes;
}

int64_t count_unknown(const Ints& shape) {
  return std::count(shape.begin(), shape.end(), kUnknown);
}

bool is_known(const Ints& shape) { return count_unknown(shape) == 0; }

json sizes_of(const Ints& shape, int tensor, const Ints& axes) {
  json sizes = shape;
  if (count_unknown(shape) < 2) return sizes;  // the engine's -1, too, is what is left
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == kUnknown) sizes[i] = {tensor, axes[i]};
  return sizes;
}

int reshaped(GraphWriter* graph, int tensor, const Ints& from, const Ints& to) {
  return from == to ? tensor : graph->add_node("reshape", {tensor}, {{"shape", to}});
}

int transposed(GraphWriter* graph, int tensor, const Ints& axes) {
  Ints identity(axes.size());
  std::iota(identity.begin(), identity.end(), 0);
  return axes == identity ? tensor : graph->add_node("transpose", {tensor}, {{"axes", axes}});
}

int of_rank(GraphWriter* graph, int tensor, const Ints& shape, size_t rank) {
  const size_t missing = rank - shape.size();
  if (missing == 0) return tensor;
  Ints aligned(missing, 1), axes(missing, -1);
  for (size_t i = 0; i < shape.size(); ++i) {
    aligned.push_back(shape[i]);
    axes.push_back(static_cast<int64_t>(i));
  }
  return graph->add_node("reshape", {tensor}, {{"shape", sizes_of(aligned, tensor, axes)}});
}

ResultView ResultView::permuted(Ints shape, Ints axes) {
  ResultView view(std::move(shape));
  view.axes_ = std::move(axes);
  return view;
}

Ints rows_of(const Ints& shape) {
  const int64_t last = shape.back();
  if (shape.size() == 2) return shape;
  const int64_t size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  return {last ? size / last : 0, last};
}

ResultView ResultView::rows(Ints shape) {
  ResultView view(std::move(shape));
  view.rows_ = true;
  view.node_shape_ = rows_of(view.shape_);
  view.sizes_ = view.shape_;
  return view;
}

ResultView ResultView::of_shape(Ints shape, Ints node_shape, json sizes) {
  ResultView view(std::move(shape));
  view.node_shape_ = std::move(node_shape);
  view.sizes_ = std::move(sizes);
  return view;
}

ResultView& ResultView::with_bias_along(int64_t axis) {
  bias_axis_ = axis;
  return *this;
}

int ResultView::operand(GraphWriter* graph, int tensor, const Ints& operand_shape) const {
  if (operand_shape.size() > shape_.size())
    refuse("expected an operand that broadcasts to ", shape_text(shape_), ", got ",
           shape_text(operand_shape));
  Ints aligned = operand_shape;
  aligned.insert(aligned.begin(), shape_.size() - aligned.size(), 1);
  if (!node_shape_.empty() && node_shape_ != shape_) {
    // Only what does not depend on how the dimensions were merged.
    if (aligned == shape_ && count_unknown(shape_) < 2)
      return reshaped(graph, tensor, operand_shape, node_shape_);
    Ints last(aligned.size(), 1);
    last.back() = shape_.back();
    if (!rows_ || aligned != last)
      refuse("expected an operand ", shape_text(shape_), " or one along the last axis, got ",
             shape_text(operand_shape));
    return reshaped(graph, tensor, operand_shape, {1, shape_.back()});
  }
  if (axes_.empty()) return tensor;
  return transposed(graph, of_rank(graph, tensor, operand_shape, shape_.size()), axes_);
}

int ResultView::finish(GraphWriter* graph, int result) const {
  if (!node_shape_.empty())
    return node_shape_ == shape_ ? result
                                 : graph->add_node("reshape", {result}, {{"shape", sizes_}});
  if (axes_.empty()) return result;
  Ints back(axes_.size());
  for (size_t i = 0; i < axes_.size(); ++i)
    back[static_cast<size_t>(axes_[i])] = static_cast<int64_t>(i);
  return transposed(graph, result, back);
}

}  // namespace adapter
}  // namespace dnnl_byoc
