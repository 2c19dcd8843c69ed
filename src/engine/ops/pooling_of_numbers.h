/*!
 * \file pooling_of_numbers.h
 * \brief Poolings of whole numbers, by our own kernels.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_POOLING_OF_NUMBERS_H_
#define DNNL_BYOC_ENGINE_OPS_POOLING_OF_NUMBERS_H_

#include "op.h"

namespace dnnl_byoc {

/*! \brief scale · average + shift, rounded: numbers that stand for an average of what others do. */
struct NumbersAverage {
  int src, dst;  // tensors: the numbers
  bool counts_padding;
  float scale, shift;
};

/*!
 * \brief Compiles an average pooling of two spatial dimensions whose numbers are channels-last.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_average(PlanBuilder& b, const Node& node, const NumbersAverage& average);

/*! \brief The same for a maximum, whose src is the numbers. */
bool build_maximum(PlanBuilder& b, const Node& node);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_POOLING_OF_NUMBERS_H_
