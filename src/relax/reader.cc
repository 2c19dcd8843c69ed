#include "reader.h"

#include <memory>
#include <utility>
#include <vector>

namespace dnnl_byoc {
namespace relax {
namespace {

using adapter::Call;
using adapter::Chain;
using adapter::json;
using adapter::Value;

class Reader {
 public:
  explicit Reader(const Constants& constants) {
    for (const tvm::ffi::Tensor& constant : constants) {
      auto data = std::make_shared<tvm::ffi::Tensor>(constant);
      constants_.emplace_back(data, data->GetDLTensorPtr());
    }
  }

  Value value(const json& j) const {
    if (j.contains("fields")) return Value::tuple(values(j.at("fields")));
    Value value;
    value.key = j.at("key");
    value.type = {j.at("dtype"), j.at("shape")};
    if (j.contains("constant")) value.constant = constants_.at(j.at("constant").get<size_t>());
    return value;
  }

  std::vector<Value> values(const json& j) const {
    std::vector<Value> values;
    for (const json& item : j) values.push_back(value(item));
    return values;
  }

  Chain chain(const json& j) const {
    Chain chain;
    for (const json& call : j)
      chain.push_back(
          {call.at("op"), call.at("attrs"), values(call.at("args")), value(call.at("result"))});
    return chain;
  }

 private:
  std::vector<adapter::Constant> constants_;
};

}  // namespace

Chain read_chain(const std::string& text, const Constants& constants) {
  return Reader(constants).chain(json::parse(text));
}

adapter::Region read_region(const std::string& text, const Constants& constants) {
  const json j = json::parse(text);
  const Reader reader(constants);
  adapter::Region region;
  region.inputs = reader.values(j.at("inputs"));
  for (const json& chain : j.at("chains")) region.chains.push_back(reader.chain(chain));
  region.outputs = reader.values(j.at("outputs"));
  region.precision = j.at("precision");
  return region;
}

}  // namespace relax
}  // namespace dnnl_byoc
