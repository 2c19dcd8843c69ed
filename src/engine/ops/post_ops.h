/*!
 * \file post_ops.h
 * \brief Post-ops as oneDNN attributes, and the choice among the ways to run one node.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_POST_OPS_H_
#define DNNL_BYOC_ENGINE_OPS_POST_OPS_H_

#include <string>
#include <utility>
#include <vector>

#include "../error.h"
#include "op.h"
#include "weights.h"

namespace dnnl_byoc {

/*! \brief A tensor that a post-op reads. */
struct PostOpOperand {
  int arg;  // DNNL_ARG_*
  int tensor;
  memory::desc md;  // zero if the primitive descriptor chooses
};

/*! \brief One way to express a node's post-ops. */
struct PostOps {
  dnnl::primitive_attr attr;  // with a user-mode scratchpad
  int result = -1;            // tensor: the node's output, or what a quantize makes of it
  int sum = -1;               // tensor that the node accumulates into, or -1
  std::vector<PostOpOperand> operands;
  std::vector<std::pair<int, memory>> literals;  // (DNNL_ARG_*, data): scales and zero points
  std::string names;                             // "sum+eltwise_relu"
};

/*!
 * \brief The ways to express a node's post-ops, best first.
 *
 * An addition of a whole tensor may accumulate in place ("sum") if that tensor may be overwritten;
 * as a "binary" it reads the operand and leaves it alone.
 * \param src_dtype In which the node reads its src: s8 or u8 if these are numbers that stand for
 * it.
 */
std::vector<PostOps> post_op_variants(const PlanBuilder& b, const Node& node,
                                      const memory::dims& dst_shape, memory::data_type src_dtype);

/*! \brief For a node that follows its producer: layout_candidates(), in each data type to try. */
std::vector<memory::desc> src_candidates(const PlanBuilder& b, const Node& node, int tensor);

/*! \brief Unsupported if a post-op has an operand: for primitives that do not read it right. */
void refuse_operands(const Node& node);

/*! \brief A usable primitive descriptor with what it was made from. */
template <typename PrimitiveDesc>
struct Choice {
  PrimitiveDesc pd;
  PostOps post_ops;
};

inline bool is_gemm(const dnnl::primitive_desc_base& pd) {
  return std::string(pd.impl_info_str()).find("gemm:") != std::string::npos;  // "x64:gemm:jit"
}

/*! \brief Whether an implementation is right, and a sum, if there is one, in the layout of dst. */
bool is_usable(const PlanBuilder& b, const PostOps& variant, const dnnl::primitive_desc_base& pd);

/*! \brief "binary_add+eltwise_relu"; of an addition in the place of dst, "sum+eltwise_relu". */
std::string post_op_names(const Node& node, bool is_first_in_place = false);

/*! \brief Goes on to oneDNN's next implementation; empty after the last. */
template <typename PrimitiveDesc>
void advance(PrimitiveDesc* pd) {
  if (dnnl_primitive_desc_next_impl(pd->get()) != dnnl_success) *pd = PrimitiveDesc();
}

template <typename PrimitiveDesc>
void skip_unusable(const PlanBuilder& b, const PostOps& variant, PrimitiveDesc* pd) {
  while (*pd && !is_usable(b, variant, *pd)) advance(pd);
}

/*!
 * \brief The implementation that is wanted for a node, of those that read and write what the first
 * does; if there is none such, the first.
 */
template <typename PrimitiveDesc>
PrimitiveDesc wanted(const PlanBuilder& b, const Node& node, const PostOps& variant,
                     const PrimitiveDesc& first, PrimitiveDesc pd) {
  const auto can_be_fed = [&] {
    if (pd.src_desc() != first.src_desc() || pd.dst_desc() != first.dst_desc()) return false;
    if (!has_weights(node)) return true;
    const int weights = weights_tensor(b, node, pd.src_desc().get_data_type());
    return b.can_require(weights, pd.query_md(dnnl::query::weights_md));
  };
  int number = 0;
  for (; pd; advance(&pd)) {
    skip_unusable(b, variant, &pd);
    if (!pd || is_reference(pd)) break;
    if (!can_be_fed()) continue;
    if (b.wants_implementation(number++, pd.impl_info_str())) return pd;
  }
  return first;
}

/*!
 * \brief The first primitive descriptor that oneDNN has a fast implementation for; if there is
 * none, the first slow one, or an empty one.
 *
 * Where another implementation was chosen for the node, and reads and writes the same layouts,
 * that.
 * \param candidates Source descriptors, best first; each is tried with each post-op variant.
 * \param make (src_md, attr) → a primitive descriptor, empty if oneDNN refuses.
 */
template <typename PrimitiveDesc, typename Make>
Choice<PrimitiveDesc> try_choose(const PlanBuilder& b, const Node& node,
                                 const memory::dims& dst_shape,
                                 const std::vector<memory::desc>& candidates, Make make) {
  Choice<PrimitiveDesc> fallback;
  if (!is_countable(dst_shape)) return fallback;
  for (const memory::desc& src_md : candidates) {
    for (const PostOps& variant : post_op_variants(b, node, dst_shape, src_md.get_data_type())) {
      PrimitiveDesc first = make(src_md, variant.attr);
      skip_unusable(b, variant, &first);
      if (!first) continue;
      if (is_reference(first)) {
        if (!fallback.pd) fallback = {first, variant};
        continue;
      }
      if (b.wants_first_implementation()) return {first, variant};
      return {wanted(b, node, variant, first, make(src_md, variant.attr)), variant};
    }
  }
  return fallback;
}

/*!
 * \brief As try_choose().
 * \throw Unsupported if there is none; outside of Plan::Mode::support a reference implementation,
 *   slow but right, is better than none.
 */
template <typename PrimitiveDesc, typename Make>
Choice<PrimitiveDesc> choose(const PlanBuilder& b, const Node& node, const memory::dims& dst_shape,
                             const std::vector<memory::desc>& candidates, Make make) {
  if (!is_countable(dst_shape))
    throw Unsupported(text(node.kind, ": expected a result of fewer than 2^60 elements, got ",
                           shape_name(dst_shape)));
  auto choice = try_choose<PrimitiveDesc>(b, node, dst_shape, candidates, make);
  if (choice.pd && (b.mode() == Plan::Mode::full || !is_reference(choice.pd))) return choice;
  throw Unsupported(text(node.kind, ": oneDNN has ", choice.pd ? "only a reference" : "no",
                         " implementation for ", shape_name(b.shape(node.inputs[0])),
                         node.post_ops.empty() ? "" : " with post-ops " + post_op_names(node)));
}

/*!
 * \brief Binds the post-ops' operands and the result, and appends the step.
 *
 * \param args The primitive's own arguments.
 * \param in_place A value whose memory the result may take if the layout is the same, or -1.
 */
void emit(PlanBuilder& b, const Node& node, const dnnl::primitive_desc_base& pd,
          const PostOps& post_ops, const memory::desc& dst_md,
          std::vector<std::pair<int, int>> args, int in_place = -1);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_POST_OPS_H_
