/*!
 * \file result_view.h
 * \brief How TVM sees a node's result: NHWC data is a permutation of oneDNN's N, C, H, W.
 */
#ifndef DNNL_BYOC_ADAPTER_RESULT_VIEW_H_
#define DNNL_BYOC_ADAPTER_RESULT_VIEW_H_

#include <string>
#include <vector>

#include "graph_writer.h"

namespace dnnl_byoc {
namespace adapter {

/*! \brief The axes that turn `from` into `to`, e.g. "NHWC" into "NCHW": (0, 3, 1, 2). */
Ints axes_between(const std::string& from, const std::string& to);

/*! \brief How many sizes of a shape only a run knows, and whether there is none. */
int64_t count_unknown(const Ints& shape);
bool is_known(const Ints& shape);

/*!
 * \brief The sizes of a reshape to a shape.
 *
 * One unknown size is what is left. Of several, each is that of a tensor along an axis.
 * \param axes For each dimension, the axis of the tensor; -1 where the size is known.
 */
json sizes_of(const Ints& shape, int tensor, const Ints& axes);

/*! \brief Appends a reshape or transpose unless it would change nothing. */
int reshaped(GraphWriter* graph, int tensor, const Ints& from, const Ints& to);
int transposed(GraphWriter* graph, int tensor, const Ints& axes);

/*! \brief The shape (M, N) with all leading dimensions, of a tensor of more than two known, in M.
 */
Ints rows_of(const Ints& shape);

/*! \brief A tensor with dimensions of 1 before its own, up to a rank. */
int of_rank(GraphWriter* graph, int tensor, const Ints& shape, size_t rank);

/*! \brief A node's result and TVM's tensor for it. Nothing here moves data: all are views. */
class ResultView {
 public:
  /*! \brief The node's result is TVM's tensor. */
  explicit ResultView(Ints shape) : shape_(std::move(shape)) {}

  /*! \brief Dimension i of the node's result is TVM's dimension axes[i]. */
  static ResultView permuted(Ints shape, Ints axes);

  /*! \brief The node's result is (M, N), all leading dimensions of TVM's tensor in M. */
  static ResultView rows(Ints shape);

  /*!
   * \brief The node's result is TVM's tensor in another shape.
   * \param sizes Those of a reshape to TVM's.
   */
  static ResultView of_shape(Ints shape, Ints node_shape, json sizes);

  /*! \brief TVM's dimension that a bias belongs to; -1 (as by default) if the node takes none. */
  ResultView& with_bias_along(int64_t axis);
  int64_t bias_axis() const { return bias_axis_; }

  /*! \brief The shape that TVM knows. */
  const Ints& shape() const { return shape_; }

  /*!
   * \brief An operand that broadcasts to TVM's tensor, as one that does to the node's result.
   * \throw Refusal if there is no such view.
   */
  int operand(GraphWriter* graph, int tensor, const Ints& operand_shape) const;

  /*! \brief TVM's tensor, from the node's result. */
  int finish(GraphWriter* graph, int result) const;

 private:
  Ints shape_;
  Ints axes_;        // empty: in order
  Ints node_shape_;  // empty: shape_, permuted
  json sizes_;       // of the reshape from it to shape_
  bool rows_ = false;
  int64_t bias_axis_ = -1;
};

}  // namespace adapter
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ADAPTER_RESULT_VIEW_H_
