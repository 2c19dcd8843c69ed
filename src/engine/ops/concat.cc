#include <algorithm>
#include <map>
#include <set>

#include "normalization_to_numbers.h"
#include "normalized_source.h"
#include "post_ops.h"

namespace dnnl_byoc {
namespace {

/*! \brief Whether all that read a tensor can read its parts: so do other concats of channels. */
bool are_read(const PlanBuilder& b, int tensor, memory::data_type dtype) {
  const auto& readers = b.readers(tensor);
  return std::all_of(readers.begin(), readers.end(), [&](const Node* reader) {
    if (reader && reader->kind == "concat")
      return reader->attr<int>("axis") == 1 && reader->post_ops.empty();
    return reader && (leaves_numbers(b, *reader) || leaves_floats(b, *reader, dtype));
  });
}

/*! \brief The layouts to try, those in which most of the data already is first. */
std::vector<memory::desc> by_share(const PlanBuilder& b, const Node& node,
                                   const memory::dims& dst_shape) {
  std::map<std::string, size_t> bytes;
  for (int id : node.inputs) bytes[layout_name(b.md(id))] += b.md(id).get_size();
  const auto dtype = b.dtype(node.inputs[0]);
  const bool same = std::all_of(node.inputs.begin(), node.inputs.end(),
                                [&](int id) { return b.dtype(id) == dtype; });
  auto candidates = layout_candidates(plain_md(dst_shape, same ? dtype : b.precision()));
  std::stable_sort(candidates.begin(), candidates.end(), [&](const auto& x, const auto& y) {
    return bytes[layout_name(x)] > bytes[layout_name(y)];
  });
  return candidates;
}

/*!
 * \brief Lets the producers write into the result, where its parts lie one after the other.
 * \return False, and nothing is done, if they do not, or if few of the producers could.
 */
bool join(PlanBuilder& b, const Node& node, int axis, const memory::desc& dst_md) {
  struct Part {
    int tensor;
    memory::desc md;
    size_t offset;
    int value;  // that can be moved, or -1
  };
  std::vector<Part> parts;
  std::set<int> moved;
  memory::dims begin(dst_md.get_ndims(), 0);
  size_t end = 0, moved_bytes = 0;
  for (int id : node.inputs) {
    const memory::dims shape = b.shape(id);
    const auto part = dst_md.submemory_desc(shape, begin, /*allow_empty=*/true);
    const size_t element = memory::data_type_size(dst_md.get_data_type());
    if (!part || static_cast<size_t>(part.get_submemory_offset()) * element != end) return false;
    const auto md = same_layout(dst_md, shape);
    const int value = b.sole_value(id, md);
    const bool movable = value >= 0 && moved.insert(b.storage_index(value)).second;
    parts.push_back({id, md, end, movable ? value : -1});
    if (movable) moved_bytes += md.get_size();
    end += md.get_size();
    begin[axis] += shape[axis];
  }
  if (end != dst_md.get_size() || 2 * moved_bytes < end) return false;
  const int dst = b.define(node.output, dst_md);
  for (const Part& part : parts) {
    if (part.value >= 0)
      b.move_into(part.value, dst, part.offset);
    else
      b.copy_into(part.tensor, part.md, dst, part.offset);
  }
  return true;
}

/*! \brief Whether the parts can stay where they are. */
bool can_stay_apart(const PlanBuilder& b, const Node& node, const memory::desc& md) {
  return are_read(b, node.output, md.get_data_type()) &&
         std::all_of(node.inputs.begin(), node.inputs.end(), [&](int id) {
           return b.is_defined(id) && b.dtype(id) == md.get_data_type() && can_be_normalized(b, id);
         });
}

/*! \brief The node with the parts of what was left in parts. */
Node with_parts(const PlanBuilder& b, const Node& node) {
  Node result = node;
  result.inputs.clear();
  for (int id : node.inputs)
    for (int part : b.parts_of(id)) result.inputs.push_back(part);
  return result;
}

}  // namespace

void build_concat(PlanBuilder& b, const Node& given) {
  const Node node = with_parts(b, given);
  const int axis = node.attr<int>("axis");
  memory::dims dst_shape = b.shape(node.inputs[0]);
  expect(axis >= 0 && axis < static_cast<int>(dst_shape.size()), b, node,
         "axis from 0 to the rank of src");
  expect(b.have_one_dtype(node.inputs), b, node, "tensors of one dtype");
  dst_shape[axis] = 0;
  for (int id : node.inputs) {
    memory::dims shape = b.shape(id);
    expect(shape.size() == dst_shape.size(), b, node, "tensors of one rank");
    dst_shape[axis] += shape[axis];
    shape[axis] = dst_shape[axis];
    expect(shape == dst_shape, b, node, "tensors that differ along the axis only");
  }

  const auto apart = data_md(DataLayout::channels_last, dst_shape, b.dtype(node.inputs[0]));
  if (axis == 1 && apart && node.post_ops.empty() && can_stay_apart(b, node, *apart))
    return b.leave_in_parts(node.output, *apart, node.inputs);
  const auto candidates = by_share(b, node, dst_shape);
  if (node.post_ops.empty() && is_countable(dst_shape) && join(b, node, axis, candidates.front()))
    return;

  using Pd = dnnl::concat::primitive_desc;
  const auto [pd, post_ops] =
      choose<Pd>(b, node, dst_shape, candidates,
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
