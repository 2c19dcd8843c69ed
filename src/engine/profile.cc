#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "engine_impl.h"
#include "layout.h"
#include "made_up_tensors.h"

namespace dnnl_byoc {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

using Milliseconds = std::chrono::duration<double, std::milli>;

double median(std::vector<double> samples) {
  auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

const char* arg_name(int arg) {
  switch (arg) {
    case DNNL_ARG_SRC:
      return "src";
    case DNNL_ARG_SRC_1:
      return "src1";
    case DNNL_ARG_WEIGHTS:
      return "weights";
    case DNNL_ARG_DST:
      return "dst";
    default:
      return nullptr;
  }
}

json describe(const Plan& plan, const Step& step) {
  json layouts = json::object(), dtypes = json::object();
  size_t bytes = 0;
  for (const auto& [arg, value] : step.args) {
    const memory::desc& md = plan.values()[value].md;
    if (const char* name = arg_name(arg)) {
      layouts[name] = layout_name(md);
      dtypes[name] = dtype_name(md.get_data_type());
    }
    bytes += md.get_size();
  }
  return {{"kind", step.kind}, {"impl", step.impl()}, {"layouts", layouts},
          {"dtypes", dtypes},  {"bytes", bytes},      {"post_ops", step.post_ops}};
}

void add_times(Executable* executable, int runs, json* result) {
  const Plan& plan = executable->plan();
  const MadeUpTensors tensors(executable->graph().inputs, plan.output_mds());
  auto context = executable->take_context();
  context->bind(tensors.inputs(), tensors.outputs());
  context->run();

  std::vector<double> totals;
  std::vector<std::vector<double>> samples(plan.steps().size());
  for (int i = 0; i < runs; ++i) {
    // Every other pass is timed as a whole: clock reads between steps would be part of it.
    const auto start = Clock::now();
    context->run();
    totals.push_back(Milliseconds(Clock::now() - start).count());
    const auto times = context->run_timed();
    for (size_t step = 0; step < samples.size(); ++step)
      samples[step].push_back(Milliseconds(times[step]).count());
  }
  (*result)["ms"] = median(totals);
  for (size_t step = 0; step < samples.size(); ++step)
    (*result)["steps"][step]["ms"] = median(samples[step]);
  executable->give_back(std::move(context));
}

}  // namespace

json describe_plan(Executable* executable, int runs) {
  const Plan& plan = executable->plan();
  json steps = json::array();
  for (const Step& step : plan.steps()) steps.push_back(describe(plan, step));
  const auto reorders = std::count_if(plan.steps().begin(), plan.steps().end(),
                                      [](const Step& step) { return step.kind == "reorder"; });
  json cascades = json::array();
  for (const Cascade& cascade : plan.cascades()) cascades.push_back({cascade.first, cascade.end});
  json result = {{"steps", steps},
                 {"cascades", cascades},
                 {"chunks", executable->chunks()},
                 {"reorders", reorders},
                 {"arena_bytes", plan.arena_bytes()},
                 {"scratchpad_bytes", plan.scratchpad_bytes()},
                 {"constant_bytes", plan.constant_bytes()},
                 {"repacked_bytes", plan.repacked_bytes()}};
  if (runs > 0) add_times(executable, runs, &result);
  return result;
}

}  // namespace dnnl_byoc
