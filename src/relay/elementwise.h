/*!
 * \file elementwise.h
 * \brief Elementwise Relay operators, as a post-op or as a node of their own.
 */
#ifndef DNNL_BYOC_RELAY_ELEMENTWISE_H_
#define DNNL_BYOC_RELAY_ELEMENTWISE_H_

#include <optional>

#include "anchors.h"

namespace dnnl_byoc {
namespace relay {

/*! \brief A call read as a function of one of its arguments. */
struct Elementwise {
  GraphWriter::json op;  // {"kind": "eltwise", "alg", "alpha", "beta"} or {"kind": "binary", "alg"}
  int operand = -1;      // of binary only: which argument is its second operand
};

/*!
 * \brief Reads a call as a function of its argument number `x`.
 * \return Nothing if the operator is not elementwise; scalars become parameters of an eltwise.
 */
std::optional<Elementwise> read_elementwise(const Source& s, int x);

/*! \brief The shape (C, 1, …) in which a bias_add's bias broadcasts to its data. */
Ints bias_shape(const Source& s);

/*! \brief Whether an argument is a constant with one element. */
bool is_scalar_constant(const ObjectRef& expr);

}  // namespace relay
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_RELAY_ELEMENTWISE_H_
