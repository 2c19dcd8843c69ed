#include "region.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "chain.h"
#include "engine/engine.h"
#include "refusal.h"

namespace dnnl_byoc {
namespace adapter {
namespace {

/*! \brief The tensor ids of values; a constant gets its own when it is first read. */
class Tensors {
 public:
  explicit Tensors(GraphWriter* graph) : graph_(graph) {}

  void add_input(const Value& value) { ids_[value.key] = graph_->add_input(value.type); }
  void define(const Value& value, int id) { ids_[value.key] = id; }

  int id(const Value& value) {
    const auto it = ids_.find(value.key);
    if (it != ids_.end()) return it->second;
    if (!value.constant) refuse("region: expected a value that it computes or is given");
    constants_.push_back(value.constant);
    return ids_[value.key] = graph_->add_constant(value.type);
  }

  std::vector<Constant> take_constants() { return std::move(constants_); }

 private:
  GraphWriter* graph_;
  std::map<int64_t, int> ids_;
  std::vector<Constant> constants_;
};

void append_ids(const Value& value, Tensors* tensors, std::vector<int>* ids) {
  if (!value.is_tuple) ids->push_back(tensors->id(value));
  for (const Value& field : value.fields) append_ids(field, tensors, ids);
}

/*! \brief The user's DNNL_BYOC_TUNE: "0", "layouts", or anything else for all. */
dnnl_byoc_tune_t wanted_tuning() {
  const char* variable = std::getenv("DNNL_BYOC_TUNE");
  const std::string value = variable ? variable : "";
  if (value == "0") return dnnl_byoc_tune_nothing;
  return value == "layouts" ? dnnl_byoc_tune_layouts : dnnl_byoc_tune_all;
}

}  // namespace

EngineGraph translate_region(const Region& region) {
  GraphWriter graph;
  Tensors tensors(&graph);
  for (const Value& input : region.inputs) tensors.add_input(input);
  if (!region.precision.empty()) graph.set_precision(region.precision);
  const Resolve resolve = [&](const Value& value) { return tensors.id(value); };
  for (const Chain& chain : region.chains)
    tensors.define(chain.back().result, translate_chain(chain, &graph, resolve));
  std::vector<int> outputs;
  for (const Value& output : region.outputs) append_ids(output, &tensors, &outputs);
  graph.set_outputs(outputs);
  return {graph.str(), tensors.take_constants()};
}

EngineGraph packed(const EngineGraph& graph) {
  EngineGraph result = graph;
  std::vector<const DLTensor*> constants;
  for (const Constant& constant : graph.constants) constants.push_back(constant.get());
  const auto store = [](void* context, size_t index, const DLTensor* packed) {
    const auto constant = new_constant(packed->dtype, {packed->shape[0]});
    std::memcpy(constant->data, data_of(*packed), byte_size(*packed));
    static_cast<EngineGraph*>(context)->constants[index] = constant;
  };
  const char* json = nullptr;
  if (dnnl_byoc_pack(graph.json.c_str(), constants.data(), constants.size(), wanted_tuning(), &json,
                     store, &result) != dnnl_byoc_success)
    refuse("region: ", dnnl_byoc_last_error());
  result.json = json;
  return result;
}

std::string layout_of_result(const EngineGraph& graph, size_t output) {
  const char* tag = nullptr;
  if (dnnl_byoc_result_layout(graph.json.c_str(), output, &tag) != dnnl_byoc_success)
    refuse("region: ", dnnl_byoc_last_error());
  return tag;
}

std::string refusal_of_precision(const std::string& precision) {
  GraphWriter graph;
  graph.set_precision(precision);
  graph.set_outputs({});
  if (dnnl_byoc_supports(graph.str().c_str()) == dnnl_byoc_success) return "";
  return dnnl_byoc_last_error();
}

std::string refusal_of(const Chain& chain) {
  try {
    GraphWriter graph;
    std::map<int64_t, int> ids;
    const Resolve resolve = [&](const Value& value) {
      const auto it = ids.find(value.key);
      if (it != ids.end()) return it->second;
      return ids[value.key] =
                 value.constant ? graph.add_constant(value.type) : graph.add_input(value.type);
    };
    graph.set_outputs({translate_chain(chain, &graph, resolve)});
    if (dnnl_byoc_supports(graph.str().c_str()) == dnnl_byoc_success) return "";
    return dnnl_byoc_last_error();
  } catch (const Refusal& e) {
    return e.what();
  }
}

}  // namespace adapter
}  // namespace dnnl_byoc
