#include "post_ops.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>

namespace dnnl_byoc {
namespace {

std::string post_op_name(const PostOp& op) {
  return op.kind == PostOp::Kind::prelu ? "prelu"
                                        : dnnl_alg_kind2str(static_cast<dnnl_alg_kind_t>(op.alg));
}

/*! \brief A post-op's operand: the whole result's shape, or one that broadcasts to it. */
memory::dims operand_shape(const PlanBuilder& b, int tensor, const memory::dims& dst_shape) {
  memory::dims shape = b.shape(tensor);
  if (shape.size() > dst_shape.size())
    throw InvalidArgument(text("post-op: expected an operand that broadcasts to ",
                               shape_name(dst_shape), ", got ", shape_name(shape)));
  shape.insert(shape.begin(), dst_shape.size() - shape.size(), 1);
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1 && shape[i] != dst_shape[i])
      throw InvalidArgument(text("post-op: expected an operand that broadcasts to ",
                                 shape_name(dst_shape), ", got ", shape_name(b.shape(tensor))));
  return shape;
}

/*! \brief oneDNN's mask of the dimensions along which prelu's weights vary. */
int prelu_mask(const memory::dims& weights, const memory::dims& dst_shape) {
  int mask = 0;
  for (size_t i = 0; i < weights.size(); ++i) mask |= (weights[i] != 1) << i;
  // What varies along more than the channels has to be in a layout of oneDNN's own.
  if (mask != 0 && mask != 1 << 1)
    throw Unsupported(text("prelu: expected one weight, or one per channel of ",
                           shape_name(dst_shape), ", got ", shape_name(weights)));
  return mask;
}

bool is_whole(memory::data_type dtype) {
  return dtype == memory::data_type::u8 || dtype == memory::data_type::s8;
}

/*! \brief Tells oneDNN what the numbers stand for that the node reads, and those that it leaves. */
void set_quantization(const PlanBuilder& b, const Node& node, PostOps* variant) {
  const auto set = [&](int arg, const Quantization& quantization, int mask) {
    const auto args = quantize_args(arg, quantization, mask, &variant->attr);
    variant->literals.insert(variant->literals.end(), args.begin(), args.end());
  };
  const Quantization& of_weights = b.quantization(node.inputs[1]);
  const bool convolves = node.kind == "convolution" || node.kind == "deconvolution";
  // The output channels of groups are two dimensions.
  const bool grouped = convolves && node.attr<memory::dim>("groups") > 1;
  // A matmul sees the weights of a whole batch with dimensions of 1 before their own.
  const int missing = node.kind == "matmul"
                          ? b.md(node.inputs[0]).get_ndims() - b.md(node.inputs[1]).get_ndims()
                          : 0;
  const int mask =
      grouped && !of_weights.is_per_tensor() ? 3 : of_weights.mask() << std::max(missing, 0);
  set(DNNL_ARG_SRC, b.quantization(node.inputs[0]), 0);
  set(DNNL_ARG_WEIGHTS, of_weights, mask);
  if (const Node* quantizer = b.quantizer_of(node)) {
    set(DNNL_ARG_DST, quantization_of(*quantizer, {}), 0);
    variant->result = quantizer->output;
  }
}

/*! \brief The tensor that a sum accumulates into, if it adds one in the place of dst. */
int summand(const PlanBuilder& b, const PostOp& op, memory::data_type dst_dtype) {
  return is_whole(dst_dtype) ? b.numbers_of(op.src1) : op.src1;
}

/*! \brief The post-ops with number `sum` of them as oneDNN's in-place sum; -1 for none. */
PostOps make_variant(const PlanBuilder& b, const Node& node, const memory::dims& dst_shape,
                     memory::data_type src_dtype, int sum) {
  PostOps variant;
  variant.result = node.output;
  if (has_weights(node) && b.is_numbers(src_dtype, node.inputs[0]))
    set_quantization(b, node, &variant);
  const auto dst_dtype = b.result_dtype(node, src_dtype);
  dnnl::post_ops ops;
  for (int i = 0; i < static_cast<int>(node.post_ops.size()); ++i) {
    const PostOp& op = node.post_ops[i];
    std::string name;
    if (i == sum) {
      variant.sum = summand(b, op, dst_dtype);
      if (variant.sum == op.src1) {
        ops.append_sum();
      } else {
        const Quantization& how = b.quantization(op.src1);
        ops.append_sum(how.scales[0], how.zero_points[0], b.dtype(variant.sum));
      }
      name = "sum";
    } else if (op.kind == PostOp::Kind::eltwise) {
      ops.append_eltwise(op.alg, op.alpha, op.beta);
      name = post_op_name(op);
    } else {
      const memory::dims shape = operand_shape(b, op.src1, dst_shape);
      const int arg = DNNL_ARG_ATTR_MULTIPLE_POST_OP(i);
      const auto plain = plain_md(shape, b.dtype(op.src1));
      if (op.kind == PostOp::Kind::prelu) {
        // The same two accept it, and fail when they are run.
        if (!has_weights(node))
          throw Unsupported(node.kind + ": expected no PReLU as a post-op, got one");
        ops.append_prelu(prelu_mask(shape, dst_shape));
        variant.operands.push_back(
            {arg | DNNL_ARG_WEIGHTS, op.src1, plain_md(shape, memory::data_type::f32)});
        name = post_op_name(op);
      } else {
        ops.append_binary(op.alg, shape == dst_shape ? any_md(shape, b.dtype(op.src1)) : plain);
        variant.operands.push_back({arg | DNNL_ARG_SRC_1, op.src1, {}});
        name = post_op_name(op);
      }
    }
    variant.names += (variant.names.empty() ? "" : "+") + name;
  }
  variant.attr.set_post_ops(ops);
  variant.attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return variant;
}

bool multiplies_numbers(const dnnl::primitive_desc_base& pd) {
  const auto dtype_of = [&pd](dnnl::query md) { return pd.query_md(md).get_data_type(); };
  return dtype_of(dnnl::query::weights_md) == memory::data_type::s8 &&
         is_whole(dtype_of(dnnl::query::src_md));
}

/*! \brief Whether its sums have 32 bits; those for older processors saturate at 16 bits before. */
bool adds_up_exactly(const std::string& impl) {
  const std::string isa = impl.substr(impl.rfind(':') + 1);
  return isa != "sse41" && isa != "avx" && isa != "avx2" && isa != "avx512_core";
}

const dnnl_dims_t& dims_of(const dnnl::primitive_desc_base& pd, dnnl_query_t what) {
  const dnnl_dims_t* dims = nullptr;
  dnnl::error::wrap_c_api(dnnl_primitive_desc_query(pd.get(), what, 0, &dims),
                          "could not query a primitive descriptor");
  return *dims;
}

/*! \brief A convolution's window along one side. */
struct Extent {
  memory::dim src, width, stride, padding_l, padding_r;  // the width with the holes in it

  bool is_padded() const { return padding_l > 0 || padding_r > 0; }
  /*! \brief Whether it may reach beyond both ends of src at once. */
  bool reaches_beyond_both_ends() const {
    if (padding_l == 0) return false;
    const memory::dim last_before = -padding_l + (padding_l - 1) / stride * stride;
    return last_before + width > src;
  }
};

std::vector<Extent> extents_of(const dnnl::primitive_desc_base& pd) {
  const memory::dims src = pd.query_md(dnnl::query::src_md).get_dims();
  const memory::dims weights = pd.query_md(dnnl::query::weights_md).get_dims();
  const dnnl_dims_t &strides = dims_of(pd, dnnl_query_strides),
                    &dilation = dims_of(pd, dnnl_query_dilations),
                    &padding_l = dims_of(pd, dnnl_query_padding_l),
                    &padding_r = dims_of(pd, dnnl_query_padding_r);
  const size_t spatial = src.size() - 2;
  std::vector<Extent> extents;
  for (size_t i = 0; i < spatial; ++i) {
    const memory::dim kernel = weights[weights.size() - spatial + i];
    extents.push_back(
        {src[2 + i], (kernel - 1) * (dilation[i] + 1) + 1, strides[i], padding_l[i], padding_r[i]});
  }
  return extents;
}

/*! \brief What oneDNN 3.2 does wrong, or crashes at. */
bool is_faulty(const PostOps& variant, const dnnl::primitive_desc_base& pd) {
  const std::string impl = pd.impl_info_str();
  // Writes behind dst where the number of its points is a multiple of three.
  if (impl.rfind("jit_1x1:avx512_core_amx", 0) == 0) return true;
  if (pd.get_kind() == dnnl::primitive::kind::binary) {
    // Writes behind dst, and wrong results, where a few halves make a block.
    const memory::desc dst = pd.query_md(dnnl::query::dst_md);
    return dst.get_inner_blks() == memory::dims{4} &&
           memory::data_type_size(dst.get_data_type()) == 2;
  }
  if (pd.get_kind() != dnnl::primitive::kind::convolution) return false;
  const std::vector<Extent> extents = extents_of(pd);
  const auto any = [&](auto is) { return std::any_of(extents.begin(), extents.end(), is); };
  if (impl == "jit:avx512_core_amx") {
    const bool has_zero_points =
        std::any_of(variant.literals.begin(), variant.literals.end(), [](const auto& literal) {
          return literal.first == (DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC);
        });
    // Crashes of 7 × 7 pixels and a window of 3 × 3, four pixels apart; what makes up for a zero
    // point at the rim is wrong where images are wide.
    return any([&](const Extent& e) {
      return e.reaches_beyond_both_ends() || (has_zero_points && e.is_padded());
    });
  }
  if (impl.rfind("brgconv:", 0) != 0 || !multiplies_numbers(pd)) return false;
  // Where a stride skips pixels and there is padding, or where that is on both sides of a window.
  const bool skips = any([](const Extent& e) { return e.stride > e.width; });
  return any(
      [&](const Extent& e) { return e.reaches_beyond_both_ends() || (skips && e.is_padded()); });
}

}  // namespace

bool is_usable(const PlanBuilder& b, const PostOps& variant, const dnnl::primitive_desc_base& pd) {
  if (is_faulty(variant, pd) || (multiplies_numbers(pd) && !adds_up_exactly(pd.impl_info_str())))
    return false;
  if (variant.sum < 0) return true;
  const memory::desc dst_md = pd.query_md(dnnl::query::dst_md);
  const memory::desc summand_md = with_dtype(dst_md, b.dtype(variant.sum));
  return with_dtype(summand_md, dst_md.get_data_type()) == dst_md;
}

std::string post_op_names(const Node& node, bool is_first_in_place) {
  std::string names;
  for (const PostOp& op : node.post_ops) {
    const bool is_sum = is_first_in_place && names.empty();
    names += (names.empty() ? "" : "+") + (is_sum ? "sum" : post_op_name(op));
  }
  return names;
}

std::vector<PostOps> post_op_variants(const PlanBuilder& b, const Node& node,
                                      const memory::dims& dst_shape, memory::data_type src_dtype) {
  std::vector<PostOps> variants;
  const auto dst_dtype = b.result_dtype(node, src_dtype);
  // Pooling's simple_nchw and simple_nhwc accept a sum but do not compute it.
  for (int i = 0; has_weights(node) && i < static_cast<int>(node.post_ops.size()); ++i) {
    const PostOp& op = node.post_ops[i];
    if (op.alg != dnnl::algorithm::binary_add || b.shape(op.src1) != dst_shape) continue;
    const int tensor = summand(b, op, dst_dtype);
    if (tensor < 0 || !b.may_overwrite(tensor)) continue;
    const bool alike = tensor == op.src1
                           ? b.dtype(tensor) == dst_dtype
                           : is_whole(b.dtype(tensor)) && b.quantization(op.src1).is_per_tensor();
    if (!alike) continue;
    variants.push_back(make_variant(b, node, dst_shape, src_dtype, i));
    break;
  }
  variants.push_back(make_variant(b, node, dst_shape, src_dtype, -1));
  return variants;
}

std::vector<memory::desc> src_candidates(const PlanBuilder& b, const Node& node, int tensor) {
  std::vector<memory::desc> candidates;
  for (const auto dtype : b.dtypes_for(node, tensor)) {
    const auto layouts = layout_candidates(with_dtype(b.md(tensor), dtype));
    candidates.insert(candidates.end(), layouts.begin(), layouts.end());
  }
  return candidates;
}

void refuse_operands(const Node& node) {
  for (const PostOp& op : node.post_ops)
    if (op.has_operand())
      throw Unsupported(node.kind + ": expected eltwise post-ops only, got one with an operand");
}

void emit(PlanBuilder& b, const Node& node, const dnnl::primitive_desc_base& pd,
          const PostOps& post_ops, const memory::desc& dst_md,
          std::vector<std::pair<int, int>> args, int in_place) {
  for (const PostOpOperand& operand : post_ops.operands) {
    const auto md =
        operand.md.is_zero() ? pd.query_md(dnnl::query::exec_arg_md, operand.arg) : operand.md;
    args.emplace_back(operand.arg, b.require(operand.tensor, md));
  }
  for (const auto& [arg, data] : post_ops.literals) args.emplace_back(arg, b.literal(data));
  int dst;
  if (post_ops.sum >= 0) {
    const int sum = b.require(post_ops.sum, with_dtype(dst_md, b.dtype(post_ops.sum)));
    dst = b.define_in(post_ops.result, dst_md, sum);
  } else if (in_place >= 0 && b.in_arena(in_place) && b.md_of(in_place) == dst_md) {
    dst = b.define_in(post_ops.result, dst_md, in_place);
  } else {
    dst = b.define(post_ops.result, dst_md);
  }
  args.emplace_back(DNNL_ARG_DST, dst);
  b.emit(node.kind, pd, std::move(args), post_ops.names);
}

}  // namespace dnnl_byoc
