#include "engine.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "dynamic_graph.h"
#include "engine_impl.h"
#include "error.h"
#include "isa.h"
#include "layout.h"
#include "pack.h"

namespace {

using dnnl_byoc::Engine;

thread_local std::string last_error;

/*! \brief Calls `body`; turns what it throws into a status and a text. */
template <typename Body>
dnnl_byoc_status_t guarded(Body body) noexcept {
  try {
    body();
    return dnnl_byoc_success;
  } catch (const dnnl_byoc::InvalidArgument& e) {
    last_error = e.what();
    return dnnl_byoc_invalid_argument;
  } catch (const dnnl_byoc::Unsupported& e) {
    last_error = e.what();
    return dnnl_byoc_unsupported;
  } catch (const dnnl::error& e) {
    last_error = dnnl_byoc::text("oneDNN: ", e.what(), " (", dnnl_status2str(e.status), ")");
  } catch (const std::bad_alloc&) {
    last_error = "out of memory";
  } catch (const std::exception& e) {
    last_error = e.what();
  } catch (...) {
    last_error = "unknown error";
  }
  return dnnl_byoc_runtime_error;
}

Engine* impl(dnnl_byoc_engine_t engine) {
  if (!engine) throw dnnl_byoc::InvalidArgument("expected an engine, got NULL");
  return reinterpret_cast<Engine*>(engine);
}

const char* runtime_name(unsigned runtime) {
  switch (runtime) {
    case DNNL_RUNTIME_SEQ:
      return "SEQ";
    case DNNL_RUNTIME_OMP:
      return "OMP";
    case DNNL_RUNTIME_TBB:
      return "TBB";
    case DNNL_RUNTIME_THREADPOOL:
      return "THREADPOOL";
    default:
      return "OTHER";
  }
}

}  // namespace

dnnl_byoc_status_t dnnl_byoc_create(const char* json, dnnl_byoc_engine_t* engine) {
  return guarded([&] { *engine = reinterpret_cast<dnnl_byoc_engine_t>(new Engine(json)); });
}

dnnl_byoc_status_t dnnl_byoc_set_constants(dnnl_byoc_engine_t engine,
                                           const DLTensor* const* constants, size_t count) {
  return guarded([&] { impl(engine)->set_constants(constants, count); });
}

dnnl_byoc_status_t dnnl_byoc_pack(const char* json, const DLTensor* const* constants, size_t count,
                                  dnnl_byoc_tune_t tune, const char** packed,
                                  dnnl_byoc_store_t store, void* context) {
  thread_local std::string graph;
  return guarded([&] {
    graph = dnnl_byoc::pack(
        json, constants, count, tune,
        [&](size_t index, const DLTensor& constant) { store(context, index, &constant); });
    *packed = graph.c_str();
  });
}

dnnl_byoc_status_t dnnl_byoc_run(dnnl_byoc_engine_t engine, const DLTensor* const* inputs,
                                 size_t num_inputs, DLTensor* const* outputs, size_t num_outputs) {
  return guarded([&] { impl(engine)->run(inputs, num_inputs, outputs, num_outputs); });
}

dnnl_byoc_status_t dnnl_byoc_infer_shapes(dnnl_byoc_engine_t engine,
                                          const DLTensor* const* input_shapes, size_t num_inputs,
                                          DLTensor* const* output_shapes, size_t num_outputs) {
  return guarded(
      [&] { impl(engine)->infer_shapes(input_shapes, num_inputs, output_shapes, num_outputs); });
}

dnnl_byoc_status_t dnnl_byoc_arity(dnnl_byoc_engine_t engine, size_t* num_inputs,
                                   size_t* num_outputs) {
  return guarded([&] {
    *num_inputs = impl(engine)->graph().inputs.size();
    *num_outputs = impl(engine)->graph().outputs.size();
  });
}

void dnnl_byoc_destroy(dnnl_byoc_engine_t engine) { delete reinterpret_cast<Engine*>(engine); }

dnnl_byoc_status_t dnnl_byoc_supports(const char* json) {
  return guarded([&] { dnnl_byoc::expect_support(dnnl_byoc::Graph::parse(json)); });
}

dnnl_byoc_status_t dnnl_byoc_result_layout(const char* json, size_t output, const char** tag) {
  thread_local std::string layout;
  return guarded([&] {
    const auto plan =
        dnnl_byoc::Plan::compile(dnnl_byoc::Graph::parse(json), dnnl_byoc::Plan::Mode::full);
    if (output >= plan.result_mds().size())
      throw dnnl_byoc::InvalidArgument(dnnl_byoc::text(
          "expected the number of one of ", plan.result_mds().size(), " results, got ", output));
    layout = dnnl_byoc::layout_name(plan.result_mds()[output]);
    *tag = layout.c_str();
  });
}

dnnl_byoc_status_t dnnl_byoc_profile(dnnl_byoc_engine_t engine, int runs, const char** json) {
  thread_local std::string profile;
  return guarded([&] {
    profile = impl(engine)->profile(runs);
    *json = profile.c_str();
  });
}

const char* dnnl_byoc_build_info(void) {
  static const std::string info = [] {
    const dnnl_version_t* v = dnnl_version();
    return nlohmann::json{{"onednn", dnnl_byoc::text(v->major, ".", v->minor, ".", v->patch)},
                          {"isa", dnnl_byoc::isa_name()},
                          {"runtime", runtime_name(v->cpu_runtime)}}
        .dump();
  }();
  return info.c_str();
}

const char* dnnl_byoc_last_error(void) { return last_error.c_str(); }
