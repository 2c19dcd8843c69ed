#include "pack.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "constant_loader.h"
#include "dltensor.h"
#include "dynamic_graph.h"
#include "executable.h"
#include "isa.h"
#include "layout.h"
#include "plan.h"
#include "threads.h"
#include "tuning.h"

namespace dnnl_byoc {
namespace {

/*! \brief By constant: how a plan wants it, if it wants all of it in one layout with a name. */
std::vector<const Plan::Repack*> packable(const Graph& graph, const Plan& plan) {
  std::vector<const Plan::Repack*> found(graph.constants.size(), nullptr);
  std::vector<int> wanted(graph.constants.size(), 0);
  for (const Plan::Repack& repack : plan.repacks()) {
    if (repack.literal) continue;
    const ExternalTensor& constant = graph.constants[repack.source];
    const bool whole = repack.offset == 0 && count(repack.view.get_dims()) == count(constant.shape);
    if (whole && !repack.transform.make && repack.view != repack.md && !tag_name(repack.md).empty())
      found[repack.source] = &repack;
    if (++wanted[repack.source] > 1) found[repack.source] = nullptr;
  }
  return found;
}

}  // namespace

std::string pack(const char* json, const DLTensor* const* constants, size_t num_constants,
                 dnnl_byoc_tune_t tune, const std::function<void(size_t, const DLTensor&)>& store) {
  Graph graph = Graph::parse(json);
  const auto data = constant_data(graph, constants, num_constants);
  auto packed = nlohmann::json::parse(json);
  if (graph.is_dynamic()) {
    auto known = graph_to_pack_for(graph);
    if (!known) return json;
    graph = std::move(*known);
    tune = dnnl_byoc_tune_nothing;  // what is fastest for one size need not be for another
  }
  if (const auto choices = fastest(graph, data, tune)) {
    graph.tuned = {*choices, isa_name()};
    packed["tuned"] = {{"isa", isa_name()},
                       {"layout", data_layout_name(choices->layout)},
                       {"winograd", choices->winograd},
                       {"implementations", choices->implementations},
                       {"chunk", choices->chunk},
                       {"cascades", choices->cascades}};
  }
  const Executable executable(graph);
  const ThreadScope all(0);
  ConstantLoader loader(graph.constants, data);
  const auto found = packable(graph, executable.plan());
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    const memory::desc& view = found[i]->view;
    packed["constants"][i]["packed"] = {{"shape", view.get_dims()},
                                        {"strides", view.get_strides()},
                                        {"tag", tag_name(found[i]->md)},
                                        {"dtype", dtype_name(found[i]->md.get_data_type())}};
    const memory repacked = loader.repacked(*found[i]);
    const memory::desc md = repacked.get_desc();
    const auto dtype = md.get_data_type();
    auto size = static_cast<int64_t>(md.get_size() / memory::data_type_size(dtype));
    store(i, {repacked.get_data_handle(), {kDLCPU, 0}, 1, dl_dtype(dtype), &size, nullptr, 0});
  }
  return packed.dump();
}

}  // namespace dnnl_byoc
