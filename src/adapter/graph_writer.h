/*!
 * \file graph_writer.h
 * \brief Writes the engine's JSON graph, whose format engine/graph.h documents.
 */
#ifndef DNNL_BYOC_ADAPTER_GRAPH_WRITER_H_
#define DNNL_BYOC_ADAPTER_GRAPH_WRITER_H_

#include <string>
#include <utility>
#include <vector>

#include "call.h"

namespace dnnl_byoc {
namespace adapter {

class GraphWriter {
 public:
  /*! \brief Tensors and nodes; each returns the id of the tensor that it adds. */
  int add_input(const TensorType& type) { return add_external("inputs", type); }
  int add_constant(const TensorType& type) { return add_external("constants", type); }
  int add_node(json node);
  int add_node(const char* kind, std::vector<int> inputs, json attrs) {
    return add_node({{"kind", kind}, {"inputs", std::move(inputs)}, {"attrs", std::move(attrs)}});
  }
  /*! \brief One of the engine's names of data types. */
  void set_precision(const std::string& precision) { graph_["precision"] = precision; }
  void set_outputs(const std::vector<int>& ids) { graph_["outputs"] = ids; }

  std::string str() const { return graph_.dump(); }

 private:
  int add_external(const char* list, const TensorType& type);

  json graph_ = {{"format", "dnnl_byoc"},    {"version", 3},
                 {"inputs", json::array()},  {"constants", json::array()},
                 {"outputs", json::array()}, {"nodes", json::array()}};
  int next_id_ = 0;
};

}  // namespace adapter
}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ADAPTER_GRAPH_WRITER_H_
