#include "layout.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>

#include "isa.h"

namespace dnnl_byoc {
namespace {

using Tag = memory::format_tag;

struct NamedTag {
  int rank;
  Tag tag;
  const char* name;
  DataLayout layout = DataLayout::any;
  int block = 0;  // channels in a block
};

// The layouts of data, by rank: row-major, channels-last, and blocked by 16 and 8 channels.
const NamedTag kDataTags[] = {
    {1, Tag::a, "a"},
    {2, Tag::ab, "ab"},
    {3, Tag::abc, "abc"},
    {3, Tag::acb, "acb", DataLayout::channels_last},
    {3, Tag::aBc16b, "aBc16b", DataLayout::blocked, 16},
    {3, Tag::aBc8b, "aBc8b", DataLayout::blocked, 8},
    {4, Tag::abcd, "abcd"},
    {4, Tag::acdb, "acdb", DataLayout::channels_last},
    {4, Tag::aBcd16b, "aBcd16b", DataLayout::blocked, 16},
    {4, Tag::aBcd8b, "aBcd8b", DataLayout::blocked, 8},
    {5, Tag::abcde, "abcde"},
    {5, Tag::acdeb, "acdeb", DataLayout::channels_last},
    {5, Tag::aBcde16b, "aBcde16b", DataLayout::blocked, 16},
    {5, Tag::aBcde8b, "aBcde8b", DataLayout::blocked, 8},
    {6, Tag::abcdef, "abcdef"},
};

constexpr int kFirstTag = dnnl_format_tag_any + 1, kLastTag = dnnl_format_tag_last;

memory::desc tagged(const memory::desc& md, const NamedTag& tag) {
  return {md.get_dims(), md.get_data_type(), tag.tag};
}

const char* const kDataLayoutNames[] = {"any", "channels_last", "blocked"};

DataLayout layout_of(const NamedTag& tag) {
  const bool other_block = tag.block && tag.block != channel_block();
  return other_block ? DataLayout::any : tag.layout;
}

const NamedTag* find_data_tag(const memory::desc& md) {
  for (const NamedTag& tag : kDataTags)
    if (tag.rank == md.get_ndims() && tagged(md, tag) == md) return &tag;
  return nullptr;
}

/*! \brief (N, C, …), in blocks of channels, as (N, C / block, block, …); none if it is not so. */
std::optional<memory::desc> with_blocks_apart(const memory::desc& md, const NamedTag& tag) {
  memory::dims dims = md.get_dims(), strides = md.get_strides();
  if (!tag.block || dims[1] % tag.block) return std::nullopt;
  dims[1] /= tag.block;
  dims.insert(dims.begin() + 2, tag.block);
  strides.insert(strides.begin() + 2, 1);
  return memory::desc(dims, md.get_data_type(), strides);
}

}  // namespace

memory::desc plain_md(const memory::dims& shape, memory::data_type dtype) {
  if (shape.empty()) return {{1}, dtype, memory::dims{1}};
  memory::dims strides(shape.size());
  memory::dim stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<memory::dim>(shape[i], 1);
  }
  return {shape, dtype, strides};
}

memory::desc any_md(const memory::dims& shape, memory::data_type dtype) {
  return {shape, dtype, Tag::any};
}

memory::desc same_layout(const memory::desc& md, const memory::dims& shape) {
  const NamedTag* tag = find_data_tag(md);
  if (tag && tag->rank == static_cast<int>(shape.size()))
    return {shape, md.get_data_type(), tag->tag};
  return plain_md(shape, md.get_data_type());
}

memory::desc with_dtype(const memory::desc& md, memory::data_type dtype) {
  if (md.get_data_type() == dtype) return md;
  const NamedTag* tag = find_data_tag(md);
  return tag ? memory::desc(md.get_dims(), dtype, tag->tag) : plain_md(md.get_dims(), dtype);
}

bool lie_alike(const memory::desc& a, const memory::desc& b) {
  return a.get_dims() == b.get_dims() && a.get_padded_dims() == b.get_padded_dims() &&
         a.get_strides() == b.get_strides() && a.get_inner_blks() == b.get_inner_blks() &&
         a.get_inner_idxs() == b.get_inner_idxs() &&
         a.get_submemory_offset() == b.get_submemory_offset();
}

std::optional<memory::desc> reshaped(const memory::desc& md, const memory::dims& shape) {
  if (const auto view = md.reshape(shape, /*allow_empty=*/true)) return view;
  if (const NamedTag* tag = find_data_tag(md))
    if (auto apart = with_blocks_apart(md, *tag); apart && apart->get_dims() == shape) return apart;
  for (const NamedTag& tag : kDataTags) {
    if (!tag.block || tag.rank != static_cast<int>(shape.size())) continue;
    const memory::desc together(shape, md.get_data_type(), tag.tag);
    if (with_blocks_apart(together, tag) == md) return together;
  }
  return std::nullopt;
}

std::vector<memory::desc> layout_candidates(const memory::desc& md) {
  std::vector<memory::desc> candidates = {md};
  for (const NamedTag& tag : kDataTags) {
    if (tag.rank != md.get_ndims()) continue;
    const auto candidate = tagged(md, tag);
    if (std::find(candidates.begin(), candidates.end(), candidate) == candidates.end())
      candidates.push_back(candidate);
  }
  return candidates;
}

const char* data_layout_name(DataLayout layout) {
  return kDataLayoutNames[static_cast<size_t>(layout)];
}

std::optional<DataLayout> data_layout_named(const std::string& name) {
  for (const DataLayout layout : {DataLayout::any, DataLayout::channels_last, DataLayout::blocked})
    if (name == data_layout_name(layout)) return layout;
  return std::nullopt;
}

std::optional<memory::desc> data_md(DataLayout layout, const memory::dims& shape,
                                    memory::data_type dtype) {
  for (const NamedTag& tag : kDataTags)
    if (tag.rank == static_cast<int>(shape.size()) && layout != DataLayout::any &&
        layout_of(tag) == layout)
      return memory::desc(shape, dtype, tag.tag);
  return std::nullopt;
}

DataLayout data_layout_of(const memory::desc& md) {
  const NamedTag* tag = find_data_tag(md);
  return tag ? layout_of(*tag) : DataLayout::any;
}

bool is_row_major(const memory::desc& md) {
  const auto dims = md.get_dims();
  if (md == plain_md(dims, md.get_data_type())) return true;
  // One block that reaches over a whole run of channels, with nothing inside: (1, 2048, 1, 1).
  if (md.get_padded_dims() != dims || md.get_inner_nblks() != 1) return false;
  const auto channel = md.get_inner_idxs()[0];
  const auto block = md.get_inner_blks()[0];
  const auto strides = md.get_strides();
  memory::dim stride = 1;
  for (auto i = static_cast<memory::dim>(dims.size()); i-- > 0;) {
    if (i > channel && dims[i] != 1) return false;
    const auto outer = i == channel ? dims[i] / block : dims[i];
    if (i == channel) stride = block;
    if (outer > 1 && strides[i] != stride) return false;
    stride *= outer;
  }
  return true;
}

std::string tag_name(const memory::desc& md) {
  if (const NamedTag* tag = find_data_tag(md)) return tag->name;
  for (int tag = kFirstTag; tag < kLastTag; ++tag) {
    const memory::desc tagged(md.get_dims(), md.get_data_type(), static_cast<Tag>(tag),
                              /*allow_empty=*/true);
    if (tagged && tagged == md) return dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag));
  }
  return "";
}

std::optional<memory::desc> tagged_md(const memory::dims& shape, memory::data_type dtype,
                                      const std::string& name) {
  for (int tag = kFirstTag; tag < kLastTag; ++tag) {
    if (name != dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag))) continue;
    const memory::desc md(shape, dtype, static_cast<Tag>(tag), /*allow_empty=*/true);
    return md ? std::optional(md) : std::nullopt;
  }
  return std::nullopt;
}

std::string layout_name(const memory::desc& md) {
  if (md.get_size() == 0) return "none";
  const std::string tag = tag_name(md);
  if (!tag.empty()) return tag;
  return md.get_inner_nblks() == 0 ? "strided" : "blocked";
}

}  // namespace dnnl_byoc
