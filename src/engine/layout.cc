#include "layout.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>

namespace dnnl_byoc {
namespace {

using Tag = memory::format_tag;

struct NamedTag {
  int rank;
  Tag tag;
  const char* name;
};

// The layouts of data, by rank: row-major, channels-last, and blocked by 16 and 8 channels.
const NamedTag kDataTags[] = {
    {1, Tag::a, "a"},
    {2, Tag::ab, "ab"},
    {3, Tag::abc, "abc"},
    {3, Tag::acb, "acb"},
    {3, Tag::aBc16b, "aBc16b"},
    {3, Tag::aBc8b, "aBc8b"},
    {4, Tag::abcd, "abcd"},
    {4, Tag::acdb, "acdb"},
    {4, Tag::aBcd16b, "aBcd16b"},
    {4, Tag::aBcd8b, "aBcd8b"},
    {5, Tag::abcde, "abcde"},
    {5, Tag::acdeb, "acdeb"},
    {5, Tag::aBcde16b, "aBcde16b"},
    {5, Tag::aBcde8b, "aBcde8b"},
    {6, Tag::abcdef, "abcdef"},
};

constexpr int kFirstTag = dnnl_format_tag_any + 1, kLastTag = dnnl_format_tag_last;

memory::desc tagged(const memory::desc& md, const NamedTag& tag) {
  return {md.get_dims(), md.get_data_type(), tag.tag};
}

const NamedTag* find_data_tag(const memory::desc& md) {
  for (const NamedTag& tag : kDataTags)
    if (tag.rank == md.get_ndims() && tagged(md, tag) == md) return &tag;
  return nullptr;
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

memory::desc channels_last_md(const memory::desc& md) {
  memory::dims last = md.get_dims();
  const int rank = static_cast<int>(last.size());
  last.push_back(last[1]);
  last.erase(last.begin() + 1);
  std::vector<int> back = {0};  // where each dimension of the channels-last tensor goes
  for (int i = 2; i < rank; ++i) back.push_back(i);
  back.push_back(1);
  return plain_md(last, md.get_data_type()).permute_axes(back);
}

memory::desc same_layout(const memory::desc& md, const memory::dims& shape) {
  const NamedTag* tag = find_data_tag(md);
  if (tag && tag->rank == static_cast<int>(shape.size()))
    return {shape, md.get_data_type(), tag->tag};
  return plain_md(shape, md.get_data_type());
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

std::vector<memory::desc> layouts_named(const std::string& name, const memory::dims& shape,
                                        memory::data_type dtype) {
  for (const NamedTag& tag : kDataTags)
    if (tag.rank == static_cast<int>(shape.size()) && tag.name == name)
      return {{shape, dtype, tag.tag}};
  return {};
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
