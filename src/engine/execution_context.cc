#include "execution_context.h"

#include <cstring>

#include "memory_plan.h"
#include "threads.h"

namespace dnnl_byoc {

ExecutionContext::ExecutionContext(const Plan& plan) : plan_(plan), stream_(cpu_engine()) {
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
    calls_.push_back({&step, step.kernel.get(), step.primitive.get(true), count, first});
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

/*! \brief Of all but the scratchpad. */
void ExecutionContext::read_addresses(const Call& call, std::vector<void*>* data) {
  data->clear();
  for (int i = 0; i + 1 < call.num_args; ++i) {
    void* address = nullptr;
    dnnl::error::wrap_c_api(dnnl_memory_get_data_handle(call.args[i].memory, &address),
                            "read a tensor's address");
    data->push_back(address);
  }
}

void ExecutionContext::execute(const Call& call) {
  if (call.kernel) {
    stream_.wait();
    read_addresses(call, &data_);
    call.kernel->run(data_.data());
    return;
  }
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(call.primitive, stream_.get(), call.num_args, call.args),
      "execute a primitive");
}

/*! \param data Of the step's arguments. */
void ExecutionContext::execute(const Cascade::Slice& slice, const std::vector<void*>& data) {
  const Step& step = *calls_[slice.step].step;
  data_ = data;
  for (size_t i = 0; i < data.size(); ++i) {
    char* const begin = static_cast<char*>(data[i]);
    if (step.args[i].first == DNNL_ARG_SRC) data_[i] = begin - slice.src_begin;
    if (step.args[i].first == DNNL_ARG_DST) {
      if (slice.dropped > 0) std::memmove(begin, begin + slice.dropped, slice.kept);
      data_[i] = begin - slice.dst_begin;
    }
  }
  static_cast<const RowKernel*>(step.kernel.get())->run_rows(data_.data(), slice.first, slice.last);
}

/*! \param timed Calls what it gets with the number of a step, which does a part of it or all. */
template <class Timed>
void ExecutionContext::run(const Cascade& cascade, const Timed& timed) {
  stream_.wait();
  addresses_.resize(calls_.size());
  for (int step = cascade.first; step < cascade.end; ++step)
    read_addresses(calls_[step], &addresses_[step]);
  for (const Cascade::Slice& slice : cascade.slices)
    timed(slice.step, [&] { execute(slice, addresses_[slice.step]); });
}

template <class Timed>
void ExecutionContext::run(const Timed& timed) {
  const ThreadScope scope(plan_.threads());
  const auto run_steps = [&](int first, int end) {
    for (int step = first; step < end; ++step) timed(step, [&] { execute(calls_[step]); });
  };
  int next = 0;
  for (const Cascade& cascade : plan_.cascades()) {
    run_steps(next, cascade.first);
    run(cascade, timed);
    next = cascade.end;
  }
  run_steps(next, static_cast<int>(calls_.size()));
  stream_.wait();
}

void ExecutionContext::run() {
  run([](int, const auto& work) { work(); });
}

std::vector<std::chrono::duration<double>> ExecutionContext::run_timed() {
  using Clock = std::chrono::steady_clock;
  std::vector<std::chrono::duration<double>> times(calls_.size());
  run([&](int step, const auto& work) {
    const auto start = Clock::now();
    work();
    stream_.wait();
    times[step] += Clock::now() - start;
  });
  return times;
}

}  // namespace dnnl_byoc
