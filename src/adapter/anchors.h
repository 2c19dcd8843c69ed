/*!
 * \file anchors.h
 * \brief The operators that become a node of their own.
 */
#ifndef DNNL_BYOC_ADAPTER_ANCHORS_H_
#define DNNL_BYOC_ADAPTER_ANCHORS_H_

#include <string>
#include <utility>
#include <vector>

#include "chain.h"
#include "refusal.h"
#include "result_view.h"

namespace dnnl_byoc {
namespace adapter {

/*! \brief Everything that the translation of one call needs. */
struct Source {
  const std::string& op;
  const json& attrs;
  const std::vector<Value>& args;
  const Value& result;
  GraphWriter* graph;
  const Resolve& resolve;

  Source(const Call& call, GraphWriter* graph, const Resolve& resolve)
      : op(call.op),
        attrs(call.attrs),
        args(call.args),
        result(call.result),
        graph(graph),
        resolve(resolve) {}

  int id(size_t arg) const { return resolve(args[arg]); }
  const Ints& shape(size_t arg) const { return args[arg].type.shape; }
  /*! \brief The same of what has to be known before a run. */
  const Ints& known_shape(size_t arg) const {
    expect(is_known(shape(arg)), "expected known sizes, got ", shape_text(shape(arg)));
    return shape(arg);
  }
  const Ints& result_shape() const { return result.type.shape; }

  /*! \brief Refuses, with the operator's name in front. */
  template <typename... Args>
  void expect(bool holds, const Args&... message) const {
    if (!holds) refuse(op, ": ", message...);
  }
};

/*! \brief A node that is not yet appended, and how its result becomes TVM's tensor. */
struct Anchor {
  json node;  // {"kind", "inputs", "attrs"}
  ResultView view;
};

/*!
 * \brief The node for a call.
 * \throw Refusal if the operator, or this use of it, has no counterpart.
 */
Anchor translate_anchor(const Source& s);

/*! \brief A node as JSON. */
json make_node(const char* kind, std::vector<int> inputs, json attrs);

/*! \brief An axis that TVM may count from the end. */
int64_t normalized_axis(const Source& s, int64_t axis, size_t rank);

// By family, one file each.
Anchor translate_convolution(const Source& s);
Anchor translate_transposed_convolution(const Source& s);
Anchor translate_max_pool(const Source& s);
Anchor translate_avg_pool(const Source& s);
Anchor translate_global_max_pool(const Source& s);
Anchor translate_global_avg_pool(const Source& s);
Anchor translate_adaptive_max_pool(const Source& s);
Anchor translate_adaptive_avg_pool(const Source& s);
Anchor translate_dense(const Source& s);
Anchor translate_matmul(const Source& s);
Anchor translate_batch_matmul(const Source& s);
Anchor translate_numpy_matmul(const Source& s);
Anchor translate_batch_norm(const Source& s);
Anchor translate_layer_norm(const Source& s);
Anchor translate_instance_norm(const Source& s);
Anchor translate_lrn(const Source& s);
Anchor translate_softmax(const Source& s);
Anchor translate_log_softmax(const Source& s);
Anchor translate_reduction(const Source& s);
Anchor translate_reshape(const Source& s);
Anchor translate_reshape_like(const Source& s);
Anchor translate_transpose(const Source& s);
Anchor translate_strided_slice(const Source& s);
Anchor translate_concatenate(const Source& s);
Anchor translate_take(const Source& s);
Anchor translate_quantize(const Source& s);
Anchor translate_dequantize(const Source& s);
Anchor translate_resize(const Source& s);
Anchor translate_upsampling(const Source& s);
Anchor translate_repeat(const Source& s);
Anchor translate_elementwise(const Source& s);

}  // namespace adapter
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ADAPTER_ANCHORS_H_
