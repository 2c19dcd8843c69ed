#include "execution_context.h"

#include <new>

#include "memory_plan.h"

namespace dnnl_byoc {

ExecutionContext::Buffer ExecutionContext::allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  Buffer buffer(std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
  if (!buffer) throw std::bad_alloc();
  return buffer;
}

ExecutionContext::ExecutionContext(const Plan& plan)
    : arena_(allocate(plan.arena_bytes())),
      scratchpad_(allocate(plan.scratchpad_bytes())),
      stream_(cpu_engine()) {
  std::vector<dnnl_memory_t> handles;  // by value
  for (const Value& value : plan.values()) {
    const Storage& storage = plan.storages()[value.storage];
    switch (storage.place) {
      case Storage::Place::arena:
        memories_.emplace_back(value.md, cpu_engine(),
                               static_cast<char*>(arena_.get()) + storage.offset);
        break;
      case Storage::Place::constant:
        memories_.push_back(plan.constants()[storage.index]);
        break;
      default:
        memories_.emplace_back(value.md, cpu_engine(), nullptr);
    }
    handles.push_back(memories_.back().get());
    if (storage.place == Storage::Place::input) inputs_.emplace_back(handles.back(), storage.index);
    if (storage.place == Storage::Place::output)
      outputs_.emplace_back(handles.back(), storage.index);
  }

  size_t num_args = 0;
  for (const Step& step : plan.steps()) num_args += step.args.size() + 1;
  args_.reserve(num_args);  // calls_ points into it
  for (const Step& step : plan.steps()) {
    const dnnl_exec_arg_t* first = args_.data() + args_.size();
    for (const auto& [arg, value] : step.args) args_.push_back({arg, handles[value]});
    memories_.emplace_back(step.pd.scratchpad_desc(), cpu_engine(), scratchpad_.get());
    args_.push_back({DNNL_ARG_SCRATCHPAD, memories_.back().get()});
    calls_.push_back({step.primitive.get(), static_cast<int>(step.args.size()) + 1, first});
  }
}

void ExecutionContext::bind(const std::vector<void*>& inputs, const std::vector<void*>& outputs) {
  for (const auto& [handle, index] : inputs_)
    dnnl::error::wrap_c_api(dnnl_memory_set_data_handle(handle, inputs[index]), "bind an input");
  for (const auto& [handle, index] : outputs_)
    dnnl::error::wrap_c_api(dnnl_memory_set_data_handle(handle, outputs[index]), "bind an output");
}

void ExecutionContext::execute(const Call& call) {
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(call.primitive, stream_.get(), call.num_args, call.args),
      "execute a primitive");
}

void ExecutionContext::run() {
  for (const Call& call : calls_) execute(call);
  stream_.wait();
}

void ExecutionContext::run_step(size_t step) {
  execute(calls_[step]);
  stream_.wait();
}

}  // namespace dnnl_byoc
