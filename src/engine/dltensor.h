/*!
 * \file dltensor.h
 * \brief What a caller passes: checked, and reduced to pointers.
 */
#ifndef DNNL_BYOC_ENGINE_DLTENSOR_H_
#define DNNL_BYOC_ENGINE_DLTENSOR_H_

#include <dlpack/dlpack.h>

#include <vector>

#include "graph.h"

namespace dnnl_byoc {

/*! \brief DLPack's name of a data type that a graph may have. */
DLDataType dl_dtype(memory::data_type dtype);

/*!
 * \brief The tensor's data.
 * \throw InvalidArgument if it is not what the graph says; the text calls it "`what` `index`".
 */
void* checked_data(const DLTensor* tensor, memory::data_type dtype, const memory::dims& shape,
                   const char* what, size_t index);

/*! \throw InvalidArgument if a tensor's shape is not the expected one, but for unknown sizes. */
void expect_shape(const memory::dims& got, const memory::dims& shape, const char* what,
                  size_t index);

/*!
 * \brief The sizes in a tensor that holds a shape.
 * \throw InvalidArgument if it is no vector of int64 with `rank` of them.
 */
int64_t* checked_shape(const DLTensor* tensor, size_t rank, const char* what, size_t index);

/*! \throw InvalidArgument if there are not as many tensors as expected. */
void expect_count(const void* tensors, size_t got, size_t expected, const char* what);

/*! \brief The data of a graph's constants, checked. */
std::vector<const void*> constant_data(const Graph& graph, const DLTensor* const* constants,
                                       size_t count);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_DLTENSOR_H_
