/*!
 * \file made_up_tensors.h
 * \brief Inputs and outputs for runs that nobody asked for.
 */
#ifndef DNNL_BYOC_ENGINE_MADE_UP_TENSORS_H_
#define DNNL_BYOC_ENGINE_MADE_UP_TENSORS_H_

#include <random>
#include <vector>

#include "graph.h"

namespace dnnl_byoc {

/*!
 * \brief Numbers of both signs, always the same ones for a seed.
 *
 * Their size is between 1/2 and 3/2: denormal ones would distort the times.
 */
class MadeUpTensors {
 public:
  MadeUpTensors(const std::vector<ExternalTensor>& inputs,
                const std::vector<memory::desc>& output_mds, unsigned seed = 1);

  const std::vector<void*>& inputs() const { return inputs_; }
  const std::vector<void*>& outputs() const { return outputs_; }

 private:
  void* add(const memory::desc& md);

  std::minstd_rand random_;
  std::vector<memory> memories_;
  std::vector<void*> inputs_, outputs_;
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_MADE_UP_TENSORS_H_
