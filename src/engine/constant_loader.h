/*!
 * \file constant_loader.h
 * \brief Brings a graph's constants into the layouts that a plan wants.
 */
#ifndef DNNL_BYOC_ENGINE_CONSTANT_LOADER_H_
#define DNNL_BYOC_ENGINE_CONSTANT_LOADER_H_

#include <vector>

#include "graph.h"
#include "plan.h"

namespace dnnl_byoc {

class ConstantLoader {
 public:
  /*! \param data For each of the constants its data, which must outlive what in_place() gives. */
  ConstantLoader(const std::vector<ExternalTensor>& constants,
                 const std::vector<const void*>& data);

  /*! \brief The constant where it is, if it lies there as it should; else empty. */
  memory in_place(const Plan::Repack& repack) const;

  /*! \brief The constant in memory of its own. */
  memory repacked(const Plan::Repack& repack);

 private:
  memory reordered(const memory& from, const memory::desc& md);
  const memory& row_major(int source);

  const std::vector<ExternalTensor>& constants_;
  const std::vector<const void*>& data_;
  std::vector<memory> unpacked_;  // by constant: row-major, made when it is asked for
  dnnl::stream stream_;
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_CONSTANT_LOADER_H_
