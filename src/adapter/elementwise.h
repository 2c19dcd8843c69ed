/*!
 * \file elementwise.h
 * \brief Elementwise operators, as a post-op or as a node of their own.
 */
#ifndef DNNL_BYOC_ADAPTER_ELEMENTWISE_H_
#define DNNL_BYOC_ADAPTER_ELEMENTWISE_H_

#include <optional>

#include "anchors.h"

namespace dnnl_byoc {
namespace adapter {

/*! \brief A call read as a function of one of its arguments. */
struct Elementwise {
  json op;           // a post-op of engine/graph.h, without its "src1"
  int operand = -1;  // which argument that is; -1 for an eltwise
};

/*!
 * \brief Reads a call as a function of its argument number `x`.
 * \return Nothing if the operator is not elementwise; scalars become parameters of an eltwise.
 */
std::optional<Elementwise> read_elementwise(const Source& s, int x);

/*!
 * \brief The shape in which argument `operand` of an elementwise call broadcasts.
 *
 * It is its own, but for bias_add and prelu: their vectors lie along an axis, (C, 1, …).
 */
Ints operand_shape(const Source& s, int operand);

/*! \brief That argument in that shape. */
int operand_id(const Source& s, int operand);

/*! \brief Whether an argument is a constant with one element. */
bool is_scalar_constant(const Value& value);

}  // namespace adapter
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ADAPTER_ELEMENTWISE_H_
