#include "spatial.h"

#include <algorithm>

namespace dnnl_byoc {

Window::Window(const PlanBuilder& b, const Node& node, const memory::dims& kernel)
    : strides(node.attr<memory::dims>("strides")),
      padding_l(node.attr<memory::dims>("padding_l")),
      padding_r(node.attr<memory::dims>("padding_r")),
      dilation(node.attr<memory::dims>("dilation")) {
  const size_t rank = b.shape(node.inputs[0]).size();
  expect(rank >= 3 && rank <= 5, b, node, "src of rank 3 to 5");
  using List = const memory::dims*;
  for (List list :
       {List{&kernel}, List{&strides}, List{&padding_l}, List{&padding_r}, List{&dilation}})
    expect(list->size() == rank - 2, b, node, "a window size for each spatial dimension");
  for (List list : {List{&kernel}, List{&strides}, List{&dilation}})
    expect(std::all_of(list->begin(), list->end(), [](auto d) { return d > 0; }), b, node,
           "kernel, strides and dilation > 0");
  for (auto& d : dilation) d -= 1;
}

memory::dims Window::output(const PlanBuilder& b, const Node& node,
                            const memory::dims& kernel) const {
  const memory::dims src = spatial(b.shape(node.inputs[0]));
  memory::dims dst;
  for (size_t i = 0; i < src.size(); ++i) {
    const auto extent = (dilation[i] + 1) * (kernel[i] - 1) + 1;
    const auto room = src[i] + padding_l[i] + padding_r[i] - extent;
    expect(room >= 0, b, node, "a kernel that fits into the padded src");
    dst.push_back(room / strides[i] + 1);
  }
  return dst;
}

}  // namespace dnnl_byoc
