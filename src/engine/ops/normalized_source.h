/*!
 * \file normalized_source.h
 * \brief Batch normalization by our own kernels: of pixels, perhaps where another node reads them.
 */
#ifndef DNNL_BYOC_ENGINE_OPS_NORMALIZED_SOURCE_H_
#define DNNL_BYOC_ENGINE_OPS_NORMALIZED_SOURCE_H_

#include <utility>
#include <vector>

#include "../kernels/normalization.h"
#include "op.h"

namespace dnnl_byoc {

/*! \brief src of a batch normalization, perhaps in parts, and its statistics. */
class NormalizedSource {
 public:
  NormalizedSource(const PlanBuilder& b, const Node& node);

  const memory::desc& md() const { return md_; }

  /*! \brief What becomes of it, in f32. */
  normalization::Normalization normalization() const;

  /*! \brief A step's arguments for it, which BoundSource reads. */
  std::vector<std::pair<int, int>> args(PlanBuilder& b) const;

  /*! \brief Of each part. */
  std::vector<memory::dim> channels(const PlanBuilder& b) const;

 private:
  const Node& node_;
  const memory::desc md_;
  const std::vector<int> parts_;
};

/*! \brief The source among the first arguments of a step. */
class BoundSource {
 public:
  /*! \param channels Of each part. */
  BoundSource(void* const* data, const std::vector<memory::dim>& channels);

  normalization::Source source() const;
  void* const* rest() const { return rest_; }

 private:
  std::vector<normalization::Part> parts_;
  normalization::Statistics statistics_;
  float* factors_;
  void* const* rest_;
};

/*!
 * \brief Emits a step that normalizes a source.
 * \param node The batch normalization. \param dst A value.
 */
void emit_normalization(PlanBuilder& b, const Node& node, const NormalizedSource& source,
                        const normalization::Normalization& normalization,
                        normalization::Function function, int dst);

/*! \brief Whether a batch normalization has no post-op but perhaps a ReLU. */
bool is_usual(const Node& normalization);

/*! \brief Whether the kernels can read a tensor: of three or more dimensions, and channels-last. */
bool can_be_normalized(const PlanBuilder& b, int tensor);

/*!
 * \brief Whether a node is a batch normalization that the kernel can do, if src is of that data
 * type and can_be_normalized(); its result is of the same.
 */
bool leaves_floats(const PlanBuilder& b, const Node& node, memory::data_type dtype);

/*!
 * \brief Compiles such a node, or leaves it to the 1 × 1 convolution that alone reads it, which can
 * do it on the way.
 * \return Whether it was; if not, nothing has been done.
 */
bool build_normalization_of_floats(PlanBuilder& b, const Node& node);

/*! \brief Runs the normalization that has been left to the reader of a tensor, if it has been. */
void normalize_what_is_left(PlanBuilder& b, int tensor);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_OPS_NORMALIZED_SOURCE_H_
