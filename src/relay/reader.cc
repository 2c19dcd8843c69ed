#include "reader.h"

#include <functional>
#include <memory>
#include <string>

#include "adapter/refusal.h"

namespace dnnl_byoc {
namespace relay {
namespace {

using adapter::Call;
using adapter::Chain;
using adapter::json;
using adapter::Refusal;
using adapter::refuse;
using adapter::Value;

/*! \brief Gives what stands for an expression that a call reads. */
using Read = std::function<Value(const ObjectRef&)>;

Value read_value(const ObjectRef& expr) {
  if (is(expr, "relay.Tuple")) {
    std::vector<Value> fields;
    for (const ObjectRef& field : get_array(expr, "fields")) fields.push_back(read_value(field));
    return Value::tuple(std::move(fields));
  }
  Value value;
  value.key = reinterpret_cast<int64_t>(expr.get());
  value.type = tensor_type(expr);
  if (is(expr, "relay.Constant")) {
    auto data = std::make_shared<NDArray>(constant_data(expr));
    value.constant = {data, data->operator->()};
  }
  return value;
}

/*!
 * \brief The operator that a function which Python composed stands for, "" for other functions.
 *
 * Its attribute "alg" makes it an activation, "op" says which operator of other ranks than Relay's.
 */
std::string composed_op(const ObjectRef& op) {
  if (!is(op, "relay.Function")) return "";
  const ObjectRef attrs = get_object(op, "attrs");
  if (!attrs.defined()) return "";
  if (has_attr(attrs, "alg")) return "activation";
  return has_attr(attrs, "op") ? get_string(attrs, "op") : "";
}

Call read_call(const ObjectRef& expr, const ObjectRef& result, const Read& read) {
  if (!is(expr, "relay.Call")) refuse("expected an operator call, got ", expr->GetTypeKey());
  const ObjectRef op = get_object(expr, "op");
  Call call;
  call.op = composed_op(op);
  if (!call.op.empty()) {
    call.attrs = attributes(get_object(op, "attrs"));
  } else {
    call.op = op_name(expr);
    if (call.op.empty()) refuse("expected a call of an operator, got a call of a function");
    call.attrs = attributes(get_object(expr, "attrs"));
  }
  try {
    for (const ObjectRef& arg : get_array(expr, "args")) call.args.push_back(read(arg));
    call.result = read_value(result);
  } catch (const Refusal& e) {
    refuse(call.op, ": ", e.what());
  }
  return call;
}

Chain read_chain(const std::vector<ObjectRef>& chain, const Read& read) {
  Chain calls;
  for (size_t i = 0; i < chain.size(); ++i) {
    const ObjectRef& expr = chain[i];
    if (!is(expr, "relay.Call") || op_name(expr) != "nn.batch_norm") {
      calls.push_back(read_call(expr, expr, read));
      continue;
    }
    // Its result is a tuple, of which only the normalised data is to be had.
    if (++i == chain.size() || !is(chain[i], "relay.TupleGetItem") ||
        get_int(chain[i], "index") != 0)
      refuse("nn.batch_norm: expected only its first output to be used");
    calls.push_back(read_call(expr, chain[i], read));
  }
  return calls;
}

class RegionReader {
 public:
  adapter::Region read(const ObjectRef& function) {
    for (const ObjectRef& param : get_array(function, "params"))
      region_.inputs.push_back(values_[param] = read_value(param));
    const ObjectRef attrs = get_object(function, "attrs");
    if (has_attr(attrs, "precision")) region_.precision = get_string(attrs, "precision");
    region_.outputs = {visit(get_object(function, "body"))};
    return std::move(region_);
  }

 private:
  /*! \brief The value of an expression. Iterative: networks are deeper than the stack. */
  const Value& visit(const ObjectRef& root) {
    std::vector<ObjectRef> stack = {root};
    while (!stack.empty()) {
      const ObjectRef expr = stack.back();
      if (values_.count(expr)) {
        stack.pop_back();
        continue;
      }
      const size_t before = stack.size();
      for (const ObjectRef& input : inputs_of(expr))
        if (!values_.count(input)) stack.push_back(input);
      if (stack.size() > before) continue;
      values_[expr] = evaluate(expr);
      stack.pop_back();
    }
    return values_.at(root);
  }

  static std::vector<ObjectRef> inputs_of(const ObjectRef& expr) {
    const auto list = [](const Array<ObjectRef>& array) {
      // Reversed, so that the stack yields the first argument first.
      return std::vector<ObjectRef>(array.rbegin(), array.rend());
    };
    if (is(expr, "relay.Call")) return list(get_array(expr, "args"));
    if (is(expr, "relay.Tuple")) return list(get_array(expr, "fields"));
    if (is(expr, "relay.TupleGetItem")) return {get_object(expr, "tuple_value")};
    return {};
  }

  Value evaluate(const ObjectRef& expr) {
    if (is(expr, "relay.Constant")) return read_value(expr);
    if (is(expr, "relay.Tuple")) {
      std::vector<Value> fields;
      for (const ObjectRef& field : get_array(expr, "fields")) fields.push_back(values_.at(field));
      return Value::tuple(std::move(fields));
    }
    if (is(expr, "relay.TupleGetItem"))
      return values_.at(get_object(expr, "tuple_value"))
          .fields.at(static_cast<size_t>(get_int(expr, "index")));
    if (is(expr, "relay.Call")) return evaluate_call(expr);
    refuse("region: expected calls, tuples, constants and parameters, got ", expr->GetTypeKey());
  }

  Value evaluate_call(const ObjectRef& call) {
    const ObjectRef op = get_object(call, "op");
    if (is(op, "Op") || !composed_op(op).empty())
      return append({call}, [this](const ObjectRef& expr) { return values_.at(expr); });
    if (!is(op, "relay.Function")) refuse("region: expected an operator, got ", op->GetTypeKey());

    ObjectMap<Value> bound;
    const auto params = get_array(op, "params"), args = get_array(call, "args");
    for (size_t i = 0; i < params.size(); ++i) bound[params[i]] = values_.at(args[i]);
    return append(chain_of(get_object(op, "body"), bound), [&](const ObjectRef& expr) {
      auto it = bound.find(expr);
      return it != bound.end() ? it->second : read_value(expr);
    });
  }

  Value append(const std::vector<ObjectRef>& chain, const Read& read) {
    region_.chains.push_back(read_chain(chain, read));
    return region_.chains.back().back().result;
  }

  /*! \brief A composite's body, from the anchor to the result. */
  static std::vector<ObjectRef> chain_of(const ObjectRef& body, const ObjectMap<Value>& bound) {
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

  adapter::Region region_;
  ObjectMap<Value> values_;
};

}  // namespace

Chain read_chain(const std::vector<ObjectRef>& chain) { return read_chain(chain, read_value); }

adapter::Region read_region(const ObjectRef& function) { return RegionReader().read(function); }

}  // namespace relay
}  // namespace dnnl_byoc
