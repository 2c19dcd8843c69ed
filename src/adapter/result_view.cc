#include "result_view.h"

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

int reshaped(GraphWriter* graph, int tensor, const Ints& from, const Ints& to) {
  return from == to ? tensor : graph->add_node("reshape", {tensor}, {{"shape", to}});
}

int transposed(GraphWriter* graph, int tensor, const Ints& axes) {
  Ints identity(axes.size());
  std::iota(identity.begin(), identity.end(), 0);
  return axes == identity ? tensor : graph->add_node("transpose", {tensor}, {{"axes", axes}});
}

ResultView ResultView::permuted(Ints shape, Ints axes) {
  ResultView view(std::move(shape));
  view.axes_ = std::move(axes);
  return view;
}

ResultView ResultView::rows(Ints shape) {
  ResultView view(std::move(shape));
  view.rows_ = true;
  const int64_t last = view.shape_.back();
  const int64_t size =
      std::accumulate(view.shape_.begin(), view.shape_.end(), int64_t{1}, std::multiplies<>());
  view.node_shape_ = {last ? size / last : 0, last};
  return view;
}

ResultView ResultView::of_shape(Ints shape, Ints node_shape) {
  ResultView view(std::move(shape));
  view.node_shape_ = std::move(node_shape);
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
    if (aligned == shape_) return reshaped(graph, tensor, operand_shape, node_shape_);
    Ints last(aligned.size(), 1);
    last.back() = shape_.back();
    if (!rows_ || aligned != last)
      refuse("expected an operand ", shape_text(shape_), " or one along the last axis, got ",
             shape_text(operand_shape));
    return reshaped(graph, tensor, operand_shape, {1, shape_.back()});
  }
  if (axes_.empty()) return tensor;
  return transposed(graph, reshaped(graph, tensor, operand_shape, aligned), axes_);
}

int ResultView::finish(GraphWriter* graph, int result) const {
  if (!node_shape_.empty()) return reshaped(graph, result, node_shape_, shape_);
  if (axes_.empty()) return result;
  Ints back(axes_.size());
  for (size_t i = 0; i < axes_.size(); ++i)
    back[static_cast<size_t>(axes_[i])] = static_cast<int64_t>(i);
  return transposed(graph, result, back);
}

}  // namespace adapter
}  // namespace dnnl_byoc
