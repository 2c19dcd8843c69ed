/*!
 * \file kernel.h
 * \brief The work of a step that a kernel of our own does, not a primitive of oneDNN's.
 */
#ifndef DNNL_BYOC_ENGINE_KERNEL_H_
#define DNNL_BYOC_ENGINE_KERNEL_H_

#include <cstdint>
#include <optional>

#include "kernels/image.h"

namespace dnnl_byoc {

/*! \brief Shared by all that run a plan, so it keeps no state. */
class Kernel {
 public:
  virtual ~Kernel() = default;
  /*! \brief A name for the profile, as oneDNN's implementations have one. */
  virtual const char* impl() const = 0;
  /*! \param data Of the step's arguments, in their order. */
  virtual void run(void* const* data) const = 0;
};

/*! \brief How the rows of an image depend on those of the one that it is made of. */
struct Rows {
  int64_t src, dst;            // how many there are
  kernels::WindowSide window;  // of src, for a row of dst
  int64_t dst_bytes;           // of a row
};

/*! \brief A kernel that can make some rows of an image at a time. */
class RowKernel : public Kernel {
 public:
  /*! \brief None if it makes more than an image, or one whose rows do not lie one after the other.
   */
  virtual std::optional<Rows> rows() const = 0;
  /*!
   * \brief Rows from first to last - 1.
   * \param data As for run(): where images begin, even if there is memory only for the rows of src
   *   and dst that are needed.
   */
  virtual void run_rows(void* const* data, int64_t first, int64_t last) const = 0;
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNEL_H_
