/*!
 * \file anchors.h
 * \brief The Relay operators that become a node of their own.
 */
#ifndef DNNL_BYOC_RELAY_ANCHORS_H_
#define DNNL_BYOC_RELAY_ANCHORS_H_

#include <string>
#include <utility>
#include <vector>

#include "chain.h"
#include "refusal.h"
#include "result_view.h"

namespace dnnl_byoc {
namespace relay {

/*! \brief Everything that the translation of one call needs. */
struct Source {
  std::string op;
  ObjectRef call;
  ObjectRef result;  // the call, or the first field of what it returns
  ObjectRef attrs;
  Array<ObjectRef> args;
  GraphWriter* graph;
  const Resolve& resolve;

  int id(int arg) const { return resolve(args[arg]); }
  Ints shape(int arg) const { return tensor_type(args[arg]).shape; }
  /*! \brief The same of what has to be known before a run. */
  Ints known_shape(int arg) const {
    Ints result = shape(arg);
    expect(is_known(result), "expected known sizes, got ", shape_text(result));
    return result;
  }
  Ints result_shape() const { return tensor_type(result).shape; }

  /*! \brief Refuses, with the operator's name in front. */
  template <typename... Args>
  void expect(bool holds, const Args&... message) const {
    if (!holds) refuse(op, ": ", message...);
  }
};

/*! \brief A node that is not yet appended, and how its result becomes Relay's tensor. */
struct Anchor {
  GraphWriter::json node;  // {"kind", "inputs", "attrs"}
  ResultView view;
};

/*!
 * \brief The node for a call.
 * \throw Refusal if the operator, or this use of it, has no counterpart.
 */
Anchor translate_anchor(const Source& s);

/*! \brief A node as JSON. */
GraphWriter::json make_node(const char* kind, std::vector<int> inputs, GraphWriter::json attrs);

/*! \brief An axis that Relay may count from the end. */
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
Anchor translate_batch_norm(const Source& s);
Anchor translate_layer_norm(const Source& s);
Anchor translate_instance_norm(const Source& s);
Anchor translate_lrn(const Source& s);
Anchor translate_softmax(const Source& s);
Anchor translate_log_softmax(const Source& s);
Anchor translate_reduction(const Source& s);
Anchor translate_reshape(const Source& s);
Anchor translate_transpose(const Source& s);
Anchor translate_strided_slice(const Source& s);
Anchor translate_concatenate(const Source& s);
Anchor translate_quantize(const Source& s);
Anchor translate_dequantize(const Source& s);
Anchor translate_resize(const Source& s);
Anchor translate_upsampling(const Source& s);
Anchor translate_repeat(const Source& s);
Anchor translate_elementwise(const Source& s);

}  // namespace relay
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAY_ANCHORS_H_
