#include "executable.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "chunk.h"
#include "threads.h"

namespace dnnl_byoc {

Executable::Executable(const Graph& graph, int threads, WorkspacePool* workspaces)
    : graph_(graph), workspaces_(workspaces) {
  const Choices* choices = measured_choices(graph);
  const memory::dim batch = batch_of(graph), images = choices ? choices->chunk : 0;
  // What was measured on a small machine would leave most threads of a large one idle.
  const bool enough = images > 0 && 2 * (batch / images) >= omp_get_max_threads();
  if (on_openmp() && enough && images < batch && batch % images == 0) {
    if (auto chunk = chunk_of(graph, images)) {
      graph_ = std::move(*chunk);
      chunks_ = batch / images;
    }
  }
  plan_ = Plan::compile(graph_, Plan::Mode::full, chunks_ > 1 ? 1 : threads);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const bool cut = graph_.inputs[i].shape != graph.inputs[i].shape;
    const auto& [id, dtype, shape, packing] = graph_.inputs[i];
    input_steps_.push_back(cut ? plain_md(shape, dtype).get_size() : 0);
  }
  for (const memory::desc& md : plan_.output_mds()) {
    memory::dims shape = md.get_dims();
    shape[0] *= chunks_;
    output_mds_.push_back(plain_md(shape, md.get_data_type()));
    output_steps_.push_back(md.get_size());
  }
}

void Executable::load(const std::vector<const void*>& data, ConstantPool* constants) {
  plan_.load(graph_.constants, data, constants);
}

void Executable::run(const std::vector<void*>& inputs, const std::vector<void*>& outputs) {
  if (chunks_ > 1) return run_chunks(inputs, outputs);
  auto context = take_context();
  context->bind(inputs, outputs);
  context->run();
  give_back(std::move(context));
}

void Executable::run_chunks(const std::vector<void*>& inputs, const std::vector<void*>& outputs) {
  const auto at = [](const std::vector<void*>& tensors, const std::vector<size_t>& steps,
                     memory::dim chunk) {
    std::vector<void*> parts(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i)
      parts[i] = static_cast<char*>(tensors[i]) + steps[i] * static_cast<size_t>(chunk);
    return parts;
  };
  std::atomic<memory::dim> next{0};
  std::exception_ptr failure;
  const int threads = static_cast<int>(std::min<memory::dim>(chunks_, omp_get_max_threads()));
#pragma omp parallel num_threads(threads)
  try {
    auto context = take_context();
    for (memory::dim chunk; (chunk = next++) < chunks_;) {
      context->bind(at(inputs, input_steps_, chunk), at(outputs, output_steps_, chunk));
      context->run();
    }
    give_back(std::move(context));
  } catch (...) {
#pragma omp critical(dnnl_byoc_failure)
    failure = std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
}

Executable::Context Executable::take_context() {
  Context context;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      context = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!context.execution) {
    context.execution = std::make_unique<ExecutionContext>(plan_);
    if (!workspaces_) context.workspace = Workspace(plan_.workspace_bytes());
  }
  if (workspaces_) context.workspace = workspaces_->take(plan_.workspace_bytes());
  context->work_in(context.workspace.data());
  return context;
}

void Executable::give_back(Context context) {
  if (workspaces_) workspaces_->give_back(std::exchange(context.workspace, Workspace()));
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(context));
}

}  // namespace dnnl_byoc
