#include "execution_context.h"

#include "memory_plan.h"
#include "threads.h"

namespace dnnl_byoc {

ExecutionContext::ExecutionContext(const Plan& plan)
    : threads_(plan.threads()), stream_(cpu_engine()) {
  std::vector<dnnl_memory_t> handles;  // by value
  for (const Value& value : plan.values()) {
    const Storage& storage = plan.storages()[value.storage];
    void* begin = nullptr;
    if (storage.place == Storage::Place::constant)
      begin = static_cast<char*>(plan.constants()[storage.index].get_data_handle()) + value.offset;
    memories_.emplace_back(value.md, cpu_engine(), begin);
    handles.push_back(memories_.back().get());
    if (storage.place == Storage::Place::arena)
      internals_.push_back({handles.back(), storage.offset + value.offset});
    const External external = {handles.back(), storage.index, value.offset};
    if (storage.place == Storage::Place::input) inputs_.push_back(external);
    if (storage.place == Storage::Place::output) outputs_.push_back(external);
  }

  size_t num_args = 0;
  for (const Step& step : plan.steps()) num_args += step.args.size() + 1;
  args_.reserve(num_args);  // calls_ points into it
  for (const Step& step : plan.steps()) {
    const dnnl_exec_arg_t* first = args_.data() + args_.size();
    for (const auto& [arg, value] : step.args) args_.push_back({arg, handles[value]});
    memories_.emplace_back(step.scratchpad_md(), cpu_engine(), nullptr);
    args_.push_back({DNNL_ARG_SCRATCHPAD, memories_.back().get()});
    internals_.push_back({memories_.back().get(), aligned_size(plan.arena_bytes())});
    const int count = static_cast<int>(step.args.size()) + 1;
    calls_.push_back({step.kernel.get(), step.primitive.get(true), count, first});
    data_.reserve(step.args.size());
  }
}

void ExecutionContext::work_in(char* workspace) {
  if (workspace == workspace_) return;
  for (const auto& [handle, offset] : internals_)
    dnnl::error::wrap_c_api(dnnl_memory_set_data_handle(handle, workspace + offset),
                            "place an intermediate");
  workspace_ = workspace;
}

void ExecutionContext::bind(const std::vector<void*>& inputs, const std::vector<void*>& outputs) {
  bind(inputs_, inputs);
  bind(outputs_, outputs);
}

void ExecutionContext::bind(const std::vector<External>& values,
                            const std::vector<void*>& tensors) {
  for (const auto& [handle, index, offset] : values)
    dnnl::error::wrap_c_api(
        dnnl_memory_set_data_handle(handle, static_cast<char*>(tensors[index]) + offset),
        "bind a tensor");
}

void ExecutionContext::execute(const Call& call) {
  if (call.kernel) {
    stream_.wait();
    data_.clear();
    for (int i = 0; i + 1 < call.num_args; ++i) {  // but the scratchpad
      void* data = nullptr;
      dnnl::error::wrap_c_api(dnnl_memory_get_data_handle(call.args[i].memory, &data),
                              "read a tensor's address");
      data_.push_back(data);
    }
    call.kernel->run(data_.data());
    return;
  }
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(call.primitive, stream_.get(), call.num_args, call.args),
      "execute a primitive");
}

void ExecutionContext::run() {
  const ThreadScope scope(threads_);
  for (const Call& call : calls_) execute(call);
  stream_.wait();
}

void ExecutionContext::run_step(size_t step) {
  const ThreadScope scope(threads_);
  execute(calls_[step]);
  stream_.wait();
}

}  // namespace dnnl_byoc
