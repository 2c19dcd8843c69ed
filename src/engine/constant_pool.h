/*!
 * \file constant_pool.h
 * \brief The repacked constants of a graph, each layout once for all of its plans.
 */
#ifndef DNNL_BYOC_ENGINE_CONSTANT_POOL_H_
#define DNNL_BYOC_ENGINE_CONSTANT_POOL_H_

#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "plan.h"

namespace dnnl_byoc {

/*!
 * \brief Keeps what was repacked once: a primitive asks for few layouts, whatever the shapes.
 *
 * Any number of threads may ask at the same time.
 */
class ConstantPool {
 public:
  /*! \brief What a plan of the graph wants; `make` makes it if no plan has asked for it before. */
  memory get(const Plan::Repack& repack, const std::function<memory()>& make);

  /*! \brief The size of all that is in it. */
  size_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::map<int, std::vector<std::pair<Plan::Repack, memory>>> constants_;  // by tensor
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_CONSTANT_POOL_H_
