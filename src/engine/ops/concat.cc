#include <algorithm>
#include <map>

#include "post_ops.h"

namespace dnnl_byoc {
namespace {

/*! \brief The layouts to try, those in which most of the data already is first. */
std::vector<memory::desc> by_share(const PlanBuilder& b, const Node& node,
                                   const memory::dims& dst_shape) {
  std::map<std::string, size_t> bytes;
  for (int id : node.inputs) bytes[layout_name(b.md(id))] += b.md(id).get_size();
  auto candidates = layout_candidates(plain_md(dst_shape, b.dtype(node.inputs[0])));
  std::stable_sort(candidates.begin(), candidates.end(), [&](const auto& x, const auto& y) {
    return bytes[layout_name(x)] > bytes[layout_name(y)];
  });
  return candidates;
}

}  // namespace

void build_concat(PlanBuilder& b, const Node& node) {
  const int axis = node.attr<int>("axis");
  memory::dims dst_shape = b.shape(node.inputs[0]);
  expect(axis >= 0 && axis < static_cast<int>(dst_shape.size()), b, node,
         "axis from 0 to the rank of src");
  dst_shape[axis] = 0;
  for (int id : node.inputs) {
    memory::dims shape = b.shape(id);
    expect(shape.size() == dst_shape.size(), b, node, "tensors of one rank");
    expect(b.dtype(id) == b.dtype(node.inputs[0]), b, node, "tensors of one dtype");
    dst_shape[axis] += shape[axis];
    shape[axis] = dst_shape[axis];
    expect(shape == dst_shape, b, node, "tensors that differ along the axis only");
  }

  using Pd = dnnl::concat::primitive_desc;
  const auto [pd, post_ops] =
      choose<Pd>(b, node, dst_shape, by_share(b, node, dst_shape),
                 [&](const memory::desc& dst_md, const dnnl::primitive_attr& attr) {
                   std::vector<memory::desc> src_mds;
                   for (int id : node.inputs) src_mds.push_back(same_layout(dst_md, b.shape(id)));
                   dnnl_primitive_desc_t handle = nullptr;  // the C++ class has no allow_empty
                   std::vector<const_dnnl_memory_desc_t> c_mds;
                   for (const auto& md : src_mds) c_mds.push_back(md.get());
                   const auto status = dnnl_concat_primitive_desc_create(
                       &handle, cpu_engine().get(), dst_md.get(), static_cast<int>(c_mds.size()),
                       axis, c_mds.data(), attr.get());
                   return status == dnnl_success ? Pd(handle) : Pd();
                 });

  std::vector<std::pair<int, int>> args;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int index = static_cast<int>(i);
    args.emplace_back(DNNL_ARG_MULTIPLE_SRC + index, b.require(node.inputs[i], pd.src_desc(index)));
  }
  emit(b, node, pd, post_ops, pd.dst_desc(), std::move(args));
}

}  // namespace dnnl_byoc
