#include "graph_writer.h"

#include <map>

#include "refusal.h"

namespace dnnl_byoc {
namespace adapter {
namespace {

const std::map<std::string, const char*> kDtypes = {
    {"float32", "f32"}, {"bfloat16", "bf16"}, {"float16", "f16"},
    {"int32", "s32"},   {"int8", "s8"},       {"uint8", "u8"},
};

}  // namespace

int GraphWriter::add_external(const char* list, const TensorType& type) {
  auto dtype = kDtypes.find(type.dtype);
  if (dtype == kDtypes.end()) refuse("expected a dtype that oneDNN has, got ", type.dtype);
  graph_[list].push_back({{"id", next_id_}, {"dtype", dtype->second}, {"shape", type.shape}});
  return next_id_++;
}

int GraphWriter::add_node(json node) {
  node["output"] = next_id_;
  graph_["nodes"].push_back(std::move(node));
  return next_id_++;
}

}  // namespace adapter
}  // namespace dnnl_byoc
