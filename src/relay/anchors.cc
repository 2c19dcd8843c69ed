#include "anchors.h"

#include <algorithm>
#include <map>

#include "elementwise.h"

namespace dnnl_byoc {
namespace relay {
namespace {

using json = GraphWriter::json;
using Ints = std::vector<int64_t>;

json node(const char* kind, std::vector<int> inputs, json attrs) {
  return {{"kind", kind}, {"inputs", std::move(inputs)}, {"attrs", std::move(attrs)}};
}

/*! \brief Relay's padding: one number for all sides, one per dimension, or all begins, then ends.
 */
std::pair<Ints, Ints> split_padding(const Source& s, size_t dims) {
  Ints padding = get_ints(s.attrs, "padding");
  if (padding.size() == 1) padding.resize(dims, padding[0]);
  if (padding.size() == dims) padding.insert(padding.end(), padding.begin(), padding.end());
  s.expect(padding.size() == 2 * dims, "expected 1, ", dims, " or ", 2 * dims,
           " padding sizes, got ", padding.size());
  const auto middle = padding.begin() + static_cast<std::ptrdiff_t>(dims);
  return {Ints(padding.begin(), middle), Ints(middle, padding.end())};
}

void expect_layout(const Source& s, const char* attr, const std::string& expected) {
  const std::string got = get_string(s.attrs, attr);
  s.expect(got.empty() || got == expected, "expected ", attr, " ", expected, ", got ", got);
}

json conv2d(const Source& s) {
  expect_layout(s, "data_layout", "NCHW");
  expect_layout(s, "kernel_layout", "OIHW");
  expect_layout(s, "out_layout", "NCHW");
  const Ints src = s.type(0).shape, weights = s.type(1).shape;
  const int64_t groups = get_int(s.attrs, "groups"), out = tensor_type(s.call).shape[1];
  // Relay writes depthwise weights with a multiplier as (C, multiplier, …): the same memory.
  Ints oihw = weights;
  oihw[0] = out;
  oihw[1] = src[1] / groups;
  int weights_id = s.id(1);
  if (oihw != weights) weights_id = s.graph->add_node("reshape", {weights_id}, {{"shape", oihw}});
  const auto [padding_l, padding_r] = split_padding(s, 2);
  return node("convolution", {s.id(0), weights_id},
              {{"strides", get_ints(s.attrs, "strides")},
               {"dilation", get_ints(s.attrs, "dilation")},
               {"padding_l", padding_l},
               {"padding_r", padding_r},
               {"groups", groups}});
}

json dense(const Source& s) {
  const size_t rank = s.type(0).shape.size();
  s.expect(rank == 2, "expected data of rank 2, got ", rank);
  return node("inner_product", {s.id(0), s.id(1)}, json::object());
}

/*!
 * \brief The end padding that makes oneDNN, which rounds down, give Relay's output size.
 * \param extended Receives whether that is more than Relay's own padding.
 */
Ints ceil_padding(const Source& s, const Ints& window, const Ints& strides, const Ints& padding_l,
                  const Ints& padding_r, bool* extended) {
  const Ints src = s.type(0).shape, dst = tensor_type(s.call).shape;
  Ints result = padding_r;
  *extended = false;
  for (size_t i = 0; i < window.size(); ++i) {
    const int64_t needed = (dst[i + 2] - 1) * strides[i] + window[i] - src[i + 2] - padding_l[i];
    *extended |= needed > padding_r[i];
    result[i] = std::max(needed, padding_r[i]);
  }
  return result;
}

json pool2d(const Source& s, bool average) {
  expect_layout(s, "layout", "NCHW");
  const Ints kernel = get_ints(s.attrs, "pool_size"), strides = get_ints(s.attrs, "strides"),
             dilation = get_ints(s.attrs, "dilation");
  auto [padding_l, padding_r] = split_padding(s, 2);
  Ints window;
  for (size_t i = 0; i < 2; ++i) window.push_back(dilation[i] * (kernel[i] - 1) + 1);
  bool extended = false;
  if (get_int(s.attrs, "ceil_mode"))
    padding_r = ceil_padding(s, window, strides, padding_l, padding_r, &extended);
  for (size_t i = 0; i < 2; ++i)
    s.expect(padding_l[i] < window[i] && padding_r[i] < window[i],
             "expected padding smaller than the window ", shape_text(window), ", got ",
             shape_text(padding_l), " and ", shape_text(padding_r));
  const char* alg = "max";
  if (average) {
    const bool include = get_int(s.attrs, "count_include_pad");
    // Relay's divisor leaves out what ceil_mode added at the end, oneDNN's would count it.
    s.expect(!include || !extended, "expected no padding by ceil_mode with count_include_pad");
    alg = include ? "avg_include_padding" : "avg_exclude_padding";
  }
  return node("pooling", {s.id(0)},
              {{"alg", alg},
               {"kernel", kernel},
               {"strides", strides},
               {"dilation", dilation},
               {"padding_l", padding_l},
               {"padding_r", padding_r}});
}

json max_pool2d(const Source& s) { return pool2d(s, false); }
json avg_pool2d(const Source& s) { return pool2d(s, true); }

json global_pool2d(const Source& s, const char* alg) {
  expect_layout(s, "layout", "NCHW");
  const Ints src = s.type(0).shape;
  const Ints kernel = {src[2], src[3]}, ones = {1, 1}, zeros = {0, 0};
  return node("pooling", {s.id(0)},
              {{"alg", alg},
               {"kernel", kernel},
               {"strides", ones},
               {"dilation", ones},
               {"padding_l", zeros},
               {"padding_r", zeros}});
}

json global_max_pool2d(const Source& s) { return global_pool2d(s, "max"); }
json global_avg_pool2d(const Source& s) { return global_pool2d(s, "avg_include_padding"); }

json batch_norm(const Source& s) {
  const auto rank = static_cast<int64_t>(s.type(0).shape.size());
  const int64_t axis = get_int(s.attrs, "axis");
  s.expect(rank >= 2, "expected data of rank >= 2, got ", rank);
  s.expect(axis == 1 || axis == 1 - rank, "expected axis 1, got ", axis);
  // A switched-off gamma or beta is an argument all the same, but has no effect.
  s.expect(get_int(s.attrs, "center") && get_int(s.attrs, "scale"),
           "expected center and scale to be applied");
  return node("batch_normalization", {s.id(0), s.id(1), s.id(2), s.id(3), s.id(4)},
              {{"epsilon", get_float(s.attrs, "epsilon")}});
}

json softmax(const Source& s) {
  const auto rank = static_cast<int64_t>(s.type(0).shape.size());
  const int64_t axis = get_int(s.attrs, "axis");
  return node("softmax", {s.id(0)}, {{"axis", axis < 0 ? axis + rank : axis}});
}

json concatenate(const Source& s) {
  s.expect(is(s.args[0], "relay.Tuple"), "expected a tuple of tensors, got ",
           s.args[0]->GetTypeKey());
  std::vector<int> inputs;
  for (const ObjectRef& field : get_array(s.args[0], "fields")) inputs.push_back(s.resolve(field));
  const auto rank = static_cast<int64_t>(tensor_type(s.call).shape.size());
  const int64_t axis = get_int(s.attrs, "axis");
  return node("concat", std::move(inputs), {{"axis", axis < 0 ? axis + rank : axis}});
}

json reshape(const Source& s) {
  return node("reshape", {s.id(0)}, {{"shape", tensor_type(s.call).shape}});
}

json bias_add(const Source& s) {
  const Ints src = s.type(0).shape;
  const auto rank = static_cast<int64_t>(src.size());
  int64_t axis = get_int(s.attrs, "axis");
  if (axis < 0) axis += rank;
  return node("binary", {s.id(0), align_channel(s, s.id(1), src[axis], axis, rank)},
              {{"alg", "add"}});
}

json elementwise(const Source& s) {
  const int x = s.args.size() == 2 && is_scalar_constant(s.args[0]) ? 1 : 0;
  auto read = read_elementwise(s, x);
  if (!read) refuse(s.op, ": not an operator that oneDNN is used for");
  json attrs = std::move(read->op);
  const std::string kind = attrs["kind"];
  attrs.erase("kind");
  std::vector<int> inputs = {s.id(x)};
  if (read->operand >= 0) inputs.push_back(s.id(read->operand));
  return {{"kind", kind}, {"inputs", inputs}, {"attrs", attrs}};
}

const std::map<std::string, json (*)(const Source&)> kAnchors = {
    {"nn.conv2d", conv2d},
    {"nn.dense", dense},
    {"nn.max_pool2d", max_pool2d},
    {"nn.avg_pool2d", avg_pool2d},
    {"nn.global_max_pool2d", global_max_pool2d},
    {"nn.global_avg_pool2d", global_avg_pool2d},
    {"nn.batch_norm", batch_norm},
    {"nn.softmax", softmax},
    {"nn.batch_flatten", reshape},
    {"nn.bias_add", bias_add},
    {"reshape", reshape},
    {"concatenate", concatenate},
};

}  // namespace

int align_channel(const Source& s, int tensor, int64_t channels, int64_t axis, int64_t rank) {
  Ints shape(static_cast<size_t>(rank - axis), 1);
  shape[0] = channels;
  return shape.size() == 1 ? tensor : s.graph->add_node("reshape", {tensor}, {{"shape", shape}});
}

json translate_anchor(const Source& s) {
  auto it = kAnchors.find(s.op);
  return it == kAnchors.end() ? elementwise(s) : it->second(s);
}

}  // namespace relay
}  // namespace dnnl_byoc
