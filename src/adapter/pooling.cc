#include <algorithm>

#include "windows.h"

namespace dnnl_byoc {
namespace adapter {
namespace {

/*!
 * \brief The end padding that makes oneDNN, which rounds down, give TVM's output size.
 * \param extended Receives whether that is more than TVM's own padding.
 */
Ints ceil_padding(const Source& s, const LogicalTensor& data, const Ints& window,
                  const Ints& strides, const Ints& padding_l, const Ints& padding_r,
                  bool* extended) {
  const Ints dst = result_spatial(s, data);
  s.expect(is_known(dst), "expected known sizes with ceil_mode, got ", shape_text(s.shape(0)));
  Ints result = padding_r;
  *extended = false;
  for (size_t i = 0; i < window.size(); ++i) {
    const int64_t needed = (dst[i] - 1) * strides[i] + window[i] - data.shape[i + 2] - padding_l[i];
    *extended |= needed > padding_r[i];
    result[i] = std::max(needed, padding_r[i]);
  }
  return result;
}

Anchor pool(const Source& s, bool average) {
  const LogicalTensor data = logical_data(s, 0, "layout");
  const size_t dims = data.shape.size() - 2;
  const Ints kernel = get_ints(s.attrs, "pool_size"), strides = get_ints(s.attrs, "strides"),
             dilation = get_ints(s.attrs, "dilation");
  auto [padding_l, padding_r] = split_padding(s, dims);
  Ints window;
  for (size_t i = 0; i < dims; ++i) window.push_back(dilation[i] * (kernel[i] - 1) + 1);
  bool extended = false;
  if (get_int(s.attrs, "ceil_mode"))
    padding_r = ceil_padding(s, data, window, strides, padding_l, padding_r, &extended);
  for (size_t i = 0; i < dims; ++i)
    s.expect(padding_l[i] < window[i] && padding_r[i] < window[i],
             "expected padding smaller than the window ", shape_text(window), ", got ",
             shape_text(padding_l), " and ", shape_text(padding_r));
  const char* alg = "max";
  if (average) {
    const bool include = get_int(s.attrs, "count_include_pad");
    // TVM's divisor leaves out what ceil_mode added at the end, oneDNN's would count it.
    s.expect(!include || !extended, "expected no padding by ceil_mode with count_include_pad");
    alg = include ? "avg_include_padding" : "avg_exclude_padding";
  }
  return {make_node("pooling", {data.id},
                    {{"alg", alg},
                     {"kernel", kernel},
                     {"strides", strides},
                     {"dilation", dilation},
                     {"padding_l", padding_l},
                     {"padding_r", padding_r}}),
          like_data(s, data)};
}

/*! \brief A pooling whose windows are of one size and do not overlap: they follow from the sizes.
 */
Anchor even_pool(const Source& s, const char* alg) {
  const LogicalTensor data = logical_data(s, 0, "layout");
  const Ints dst = result_spatial(s, data);
  auto kernel = json::array();
  for (size_t i = 0; i < dst.size(); ++i) {
    const int64_t src = data.shape[i + 2];
    if (src == kUnknown && dst[i] == 1) {
      kernel.push_back({data.id, i + 2});
      continue;
    }
    s.expect(src >= 0 && dst[i] > 0 && src % dst[i] == 0, "expected an output size that divides ",
             shape_text({src}), ", got ", dst[i]);
    kernel.push_back(src / dst[i]);
  }
  const Ints ones(kernel.size(), 1), zeros(kernel.size(), 0);
  return {make_node("pooling", {data.id},
                    {{"alg", alg},
                     {"kernel", kernel},
                     {"strides", kernel},
                     {"dilation", ones},
                     {"padding_l", zeros},
                     {"padding_r", zeros}}),
          like_data(s, data)};
}

}  // namespace

Anchor translate_max_pool(const Source& s) { return pool(s, false); }
Anchor translate_avg_pool(const Source& s) { return pool(s, true); }
Anchor translate_global_max_pool(const Source& s) { return even_pool(s, "max"); }
Anchor translate_global_avg_pool(const Source& s) { return even_pool(s, "avg_exclude_padding"); }
Anchor translate_adaptive_max_pool(const Source& s) { return even_pool(s, "max"); }
Anchor translate_adaptive_avg_pool(const Source& s) { return even_pool(s, "avg_exclude_padding"); }

}  // namespace adapter
}  // namespace dnnl_byoc
