#include "anchors.h"

#include <map>

namespace dnnl_byoc {
namespace adapter {
namespace {

using Translate = Anchor (*)(const Source&);

// Relay's names, and "matmul", which is NumPy's, for operands of any rank.
const std::map<std::string, Translate> kAnchors = {
    {"nn.conv1d", translate_convolution},
    {"nn.conv2d", translate_convolution},
    {"nn.conv3d", translate_convolution},
    {"nn.conv1d_transpose", translate_transposed_convolution},
    {"nn.conv2d_transpose", translate_transposed_convolution},
    {"nn.conv3d_transpose", translate_transposed_convolution},
    {"nn.max_pool1d", translate_max_pool},
    {"nn.max_pool2d", translate_max_pool},
    {"nn.max_pool3d", translate_max_pool},
    {"nn.avg_pool1d", translate_avg_pool},
    {"nn.avg_pool2d", translate_avg_pool},
    {"nn.avg_pool3d", translate_avg_pool},
    {"nn.global_max_pool2d", translate_global_max_pool},
    {"nn.global_avg_pool2d", translate_global_avg_pool},
    {"nn.adaptive_max_pool1d", translate_adaptive_max_pool},
    {"nn.adaptive_max_pool2d", translate_adaptive_max_pool},
    {"nn.adaptive_max_pool3d", translate_adaptive_max_pool},
    {"nn.adaptive_avg_pool1d", translate_adaptive_avg_pool},
    {"nn.adaptive_avg_pool2d", translate_adaptive_avg_pool},
    {"nn.adaptive_avg_pool3d", translate_adaptive_avg_pool},
    {"nn.dense", translate_dense},
    {"nn.matmul", translate_matmul},
    {"nn.batch_matmul", translate_batch_matmul},
    {"matmul", translate_numpy_matmul},
    {"nn.batch_norm", translate_batch_norm},
    {"nn.layer_norm", translate_layer_norm},
    {"nn.instance_norm", translate_instance_norm},
    {"nn.lrn", translate_lrn},
    {"nn.softmax", translate_softmax},
    {"nn.fast_softmax", translate_softmax},
    {"nn.log_softmax", translate_log_softmax},
    {"mean", translate_reduction},
    {"sum", translate_reduction},
    {"max", translate_reduction},
    {"min", translate_reduction},
    {"reshape", translate_reshape},
    {"squeeze", translate_reshape},
    {"expand_dims", translate_reshape},
    {"nn.batch_flatten", translate_reshape},
    {"reshape_like", translate_reshape_like},
    {"transpose", translate_transpose},
    {"strided_slice", translate_strided_slice},
    {"concatenate", translate_concatenate},
    {"take", translate_take},
    {"qnn.quantize", translate_quantize},
    {"qnn.dequantize", translate_dequantize},
    {"image.resize1d", translate_resize},
    {"image.resize2d", translate_resize},
    {"image.resize3d", translate_resize},
    {"nn.upsampling", translate_upsampling},
    {"nn.upsampling3d", translate_resize},
    {"repeat", translate_repeat},
};

}  // namespace

json make_node(const char* kind, std::vector<int> inputs, json attrs) {
  return {{"kind", kind}, {"inputs", std::move(inputs)}, {"attrs", std::move(attrs)}};
}

int64_t normalized_axis(const Source& s, int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  s.expect(-count <= axis && axis < count, "expected an axis of a tensor of rank ", rank, ", got ",
           axis);
  return axis < 0 ? axis + count : axis;
}

Anchor translate_anchor(const Source& s) {
  auto it = kAnchors.find(s.op);
  return it == kAnchors.end() ? translate_elementwise(s) : it->second(s);
}

}  // namespace adapter
}  // namespace dnnl_byoc
