#include "region.h"

#include <cstdlib>

#include "chain.h"
#include "engine/engine.h"
#include "refusal.h"

namespace dnnl_byoc {
namespace relay {
namespace {

class RegionTranslator {
 public:
  Region translate(const ObjectRef& function) {
    for (const ObjectRef& param : get_array(function, "params"))
      ids_[param] = {graph_.add_input(tensor_type(param))};
    const ObjectRef attrs = get_object(function, "attrs");
    if (has_attr(attrs, "precision")) graph_.set_precision(get_string(attrs, "precision"));
    graph_.set_outputs(visit(get_object(function, "body")));
    return {graph_.str(), std::move(constants_)};
  }

 private:
  using Ids = std::vector<int>;  // one for a tensor, several for a tuple

  /*! \brief The ids of an expression's value. Iterative: networks are deeper than the stack. */
  const Ids& visit(const ObjectRef& root) {
    std::vector<ObjectRef> stack = {root};
    while (!stack.empty()) {
      const ObjectRef expr = stack.back();
      if (ids_.count(expr)) {
        stack.pop_back();
        continue;
      }
      const size_t before = stack.size();
      for (const ObjectRef& input : inputs_of(expr))
        if (!ids_.count(input)) stack.push_back(input);
      if (stack.size() > before) continue;
      ids_[expr] = evaluate(expr);
      stack.pop_back();
    }
    return ids_.at(root);
  }

  static std::vector<ObjectRef> inputs_of(const ObjectRef& expr) {
    const auto list = [](const Array<ObjectRef>& array) {
      // Reversed, so that the stack yields the first argument first.
      return std::vector<ObjectRef>(array.rbegin(), array.rend());
    };
    if (is(expr, "relay.Call")) {
      const auto args = get_array(expr, "args");
      // Their scales and zero points are no tensors of the graph's.
      if (op_name(expr).rfind("qnn.", 0) == 0) return {args[0]};
      return list(args);
    }
    if (is(expr, "relay.Tuple")) return list(get_array(expr, "fields"));
    if (is(expr, "relay.TupleGetItem")) return {get_object(expr, "tuple_value")};
    return {};
  }

  Ids evaluate(const ObjectRef& expr) {
    if (is(expr, "relay.Constant")) {
      constants_.push_back(constant_data(expr));
      return {graph_.add_constant(tensor_type(expr))};
    }
    if (is(expr, "relay.Tuple")) {
      Ids ids;
      for (const ObjectRef& field : get_array(expr, "fields")) ids.push_back(id(field));
      return ids;
    }
    if (is(expr, "relay.TupleGetItem")) {
      const Ids& tuple = ids_.at(get_object(expr, "tuple_value"));
      return {tuple.at(static_cast<size_t>(get_int(expr, "index")))};
    }
    if (is(expr, "relay.Call")) return {evaluate_call(expr)};
    refuse("region: expected calls, tuples, constants and parameters, got ", expr->GetTypeKey());
  }

  int evaluate_call(const ObjectRef& call) {
    const ObjectRef op = get_object(call, "op");
    const Resolve outside = [this](const ObjectRef& expr) { return id(expr); };
    if (is(op, "Op") || is_composed(call)) return translate_chain({call}, &graph_, outside);
    if (!is(op, "relay.Function")) refuse("region: expected an operator, got ", op->GetTypeKey());

    ObjectMap<ObjectRef> bound;
    const auto params = get_array(op, "params"), args = get_array(call, "args");
    for (size_t i = 0; i < params.size(); ++i) bound[params[i]] = args[i];
    const Resolve inside = [&](const ObjectRef& expr) {
      auto it = bound.find(expr);
      return it != bound.end() ? id(it->second) : visit(expr).front();
    };
    return translate_chain(chain_of(get_object(op, "body"), bound), &graph_, inside);
  }

  /*! \brief A composite's body, from the anchor to the result. */
  static std::vector<ObjectRef> chain_of(const ObjectRef& body, const ObjectMap<ObjectRef>& bound) {
    std::vector<ObjectRef> chain;
    for (ObjectRef expr = body; expr.defined();) {
      chain.insert(chain.begin(), expr);
      ObjectRef before;
      for (const ObjectRef& input : inputs_of(expr))
        if (!bound.count(input) && (is(input, "relay.Call") || is(input, "relay.TupleGetItem")))
          before = input;
      expr = before;
    }
    return chain;
  }

  int id(const ObjectRef& expr) const {
    const Ids& ids = ids_.at(expr);
    if (ids.size() != 1) refuse("region: expected a tensor, got a tuple");
    return ids.front();
  }

  GraphWriter graph_;
  ObjectMap<Ids> ids_;
  std::vector<NDArray> constants_;
};

/*! \brief The user's DNNL_BYOC_TUNE: "0", "layouts", or anything else for all. */
dnnl_byoc_tune_t wanted_tuning() {
  const char* variable = std::getenv("DNNL_BYOC_TUNE");
  const std::string value = variable ? variable : "";
  if (value == "0") return dnnl_byoc_tune_nothing;
  return value == "layouts" ? dnnl_byoc_tune_layouts : dnnl_byoc_tune_all;
}

}  // namespace

Region translate_region(const ObjectRef& function) {
  return RegionTranslator().translate(function);
}

Region packed(const Region& region) {
  Region result = region;
  std::vector<const DLTensor*> constants;
  for (const NDArray& constant : region.constants) constants.push_back(constant.operator->());
  const auto store = [](void* context, size_t index, const DLTensor* packed) {
    NDArray& constant = static_cast<Region*>(context)->constants[index];
    constant = NDArray::Empty({packed->shape[0]}, packed->dtype, packed->device);
    constant.CopyFrom(packed);
  };
  const char* json = nullptr;
  if (dnnl_byoc_pack(region.json.c_str(), constants.data(), constants.size(), wanted_tuning(),
                     &json, store, &result) != dnnl_byoc_success)
    refuse("region: ", dnnl_byoc_last_error());
  result.json = json;
  return result;
}

std::string refusal_of_precision(const std::string& precision) {
  GraphWriter graph;
  graph.set_precision(precision);
  graph.set_outputs({});
  if (dnnl_byoc_supports(graph.str().c_str()) == dnnl_byoc_success) return "";
  return dnnl_byoc_last_error();
}

std::string refusal_of(const std::vector<ObjectRef>& chain) {
  try {
    GraphWriter graph;
    ObjectMap<int> ids;
    const Resolve resolve = [&](const ObjectRef& expr) {
      auto it = ids.find(expr);
      if (it != ids.end()) return it->second;
      const TensorType type = tensor_type(expr);
      return ids[expr] =
                 is(expr, "relay.Constant") ? graph.add_constant(type) : graph.add_input(type);
    };
    graph.set_outputs({translate_chain(chain, &graph, resolve)});
    if (dnnl_byoc_supports(graph.str().c_str()) == dnnl_byoc_success) return "";
    return dnnl_byoc_last_error();
  } catch (const Refusal& e) {
    return e.what();
  }
}

}  // namespace relay
}  // namespace dnnl_byoc
