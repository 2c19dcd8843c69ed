/*!
 * \file kernel.h
 * \brief The work of a step that a kernel of our own does, not a primitive of oneDNN's.
 */
#ifndef DNNL_BYOC_ENGINE_KERNEL_H_
#define DNNL_BYOC_ENGINE_KERNEL_H_

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

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_KERNEL_H_
