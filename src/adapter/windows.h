/*!
 * \file windows.h
 * \brief What TVM's convolutions and poolings of every rank have in common.
 */
#ifndef DNNL_BYOC_ADAPTER_WINDOWS_H_
#define DNNL_BYOC_ADAPTER_WINDOWS_H_

#include <string>
#include <utility>

#include "anchors.h"

namespace dnnl_byoc {
namespace adapter {

/*! \brief A layout in oneDNN's logical order: "NC" or "OI", then the spatial dimensions. */
std::string logical_layout(const char* channels, size_t spatial_dims);

/*! \brief A tensor with the axes that put its dimensions into logical order. */
struct LogicalTensor {
  int id;
  Ints shape;  // in logical order
  Ints axes;
};

/*! \brief Argument `arg`, whose layout is the attribute `attr`, in logical order. */
LogicalTensor logical_data(const Source& s, size_t arg, const char* attr);

/*! \brief Padding at the begin and at the end: TVM gives one size, one per dimension, or all. */
std::pair<Ints, Ints> split_padding(const Source& s, size_t dims);

/*! \brief The spatial sizes of the result, in logical order. */
Ints result_spatial(const Source& s, const LogicalTensor& data);

/*! \brief The view of a result whose layout is that of the data. */
ResultView like_data(const Source& s, const LogicalTensor& data);

}  // namespace adapter
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ADAPTER_WINDOWS_H_
