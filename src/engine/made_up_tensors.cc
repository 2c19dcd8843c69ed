#include "made_up_tensors.h"

#include <algorithm>

#include "plan.h"

namespace dnnl_byoc {

MadeUpTensors::MadeUpTensors(const std::vector<ExternalTensor>& inputs,
                             const std::vector<memory::desc>& output_mds, unsigned seed)
    : random_(seed) {
  for (const auto& tensor : inputs) inputs_.push_back(add(plain_md(tensor.shape, tensor.dtype)));
  for (const auto& md : output_mds) outputs_.push_back(add(md));
}

void* MadeUpTensors::add(const memory::desc& md) {
  memories_.emplace_back(md, cpu_engine());
  void* data = memories_.back().get_data_handle();
  if (md.get_data_type() == memory::data_type::f32)
    std::generate_n(static_cast<float*>(data), md.get_size() / sizeof(float), [this] {
      const float size = 0.5f + static_cast<float>(random_()) / static_cast<float>(random_.max());
      return random_() % 2 ? size : -size;
    });
  else
    std::fill_n(static_cast<char*>(data), md.get_size(), char{1});
  return data;
}

}  // namespace dnnl_byoc
