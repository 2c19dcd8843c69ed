/*!
 * \file graph.h
 * \brief The JSON graph: what a front end hands to the engine, and its parsed form.
 *
 * A graph is an object:
 *
 *   "format"     "dnnl_byoc"
 *   "version"    kGraphVersion; any other is refused
 *   "inputs"     list of tensors, in the order in which they are passed to dnnl_byoc_run
 *   "constants"  list of tensors, in the order of dnnl_byoc_set_constants; data is kept outside
 *   "outputs"    list of tensor ids
 *   "nodes"      list of nodes, each after the nodes whose results it reads
 *
 *   ["precision" "bf16" or "f16" in the place of "f32": what convolutions and matrix products read,
 *                and what nodes leave to each other. Sums and biases stay in f32, as does what a
 *                product, a softmax or a dequantize leaves to a softmax or as an output, and a node
 *                for which oneDNN has no fast implementation otherwise; on a processor without
 *                instructions for it, all nodes]
 *
 *   ["tuned"     {"isa", "layout"[, "winograd"][, "implementations"][, "chunk"][, "cascades"]}:
 *                what was fastest where oneDNN uses that instruction set: the convolutions' layout,
 *                a DataLayout; [node, tile] for each that is faster by Winograd's algorithm; [node,
 *                name] for each node for which another of oneDNN's implementations is faster than
 *                the first; how many images of the batch a thread computes at once, 0 if all
 *                threads compute all of them; whether one thread does steps a few rows at a time,
 *                see cascade.h. dnnl_byoc_pack() measures it]
 *
 * A tensor is {"id", "dtype", "shape"}: id is a small integer, unique in the graph; dtype one of
 * oneDNN's "f32", "bf16", "f16", "s32", "s8", "u8"; the data is row-major. A size of an input may
 * be -1: then the graph is dynamic, and each run says how large it is. A constant may have
 * "packed": {"shape", "strides", "tag", "dtype"}: seen as a tensor of that shape and those strides,
 * in elements, it was reordered into oneDNN's format tag and that dtype, and that is what its data
 * is, as a vector.
 * dnnl_byoc_pack() writes such graphs; on a machine that wants another layout it is unpacked.
 *
 * A node is {"kind", "inputs", "output", "attrs", "post_ops"}; inputs and output are tensor ids,
 * the output's shape is inferred. Kinds, with their inputs and attrs (oneDNN's terms; data is
 * always in oneDNN's logical order N, C, spatial dimensions; [] marks what may be left out):
 *
 *   convolution          src, weights (O, I/groups, spatial…)[, bias (O)];
 *                        strides, dilation (1 = dense), padding_l, padding_r, groups
 *   deconvolution        src, weights (O, I/groups, spatial…)[, bias (O)]; as convolution, with
 *                        padding_r less what output padding adds
 *   inner_product        src (M, K), weights (N, K)[, bias (N)]
 *   matmul               src (batch…, M, K), weights (batch…, K, N)[, bias (N)]; batch dimensions
 *                        broadcast, and weights (K, N) are those of the whole batch
 *   pooling              src; alg "max" | "avg_include_padding" | "avg_exclude_padding",
 *                        kernel, strides, dilation, padding_l, padding_r
 *   eltwise              src; alg, alpha, beta
 *   binary               src0, src1, broadcast as NumPy does; alg
 *   batch_normalization  src, scale (C), shift (C), mean (C), variance (C); epsilon
 *   layer_normalization  src (…, C), scale (C), shift (C); epsilon
 *   instance_normalization  src (1, C, …), scale (C), shift (C); epsilon
 *   softmax              src; axis, log (0 or 1)
 *   lrn                  src; size, alpha, beta, k (oneDNN's: alpha is divided by size)
 *   reduction            src; alg "mean" | "sum" | "max" | "min", axes; reduced axes stay, with 1
 *   prelu                src, weights that broadcast
 *   resampling           src; alg "nearest" | "linear", size
 *   quantize             src (f32); dtype "u8" | "s8", scales, zero_points, axis; to the nearest
 *                        number that the dtype has of src / scale + zero point, ties to even
 *   dequantize           src (u8, s8, s32); scales, zero_points, axis; scale · (src - zero point);
 *                        scales and zero_points are lists: one, or one for each index along axis
 *   concat               src…; axis
 *   gather               src, indices (s32); axis, in the result's place of which are the indices'
 *                        dimensions; an index outside of src is that of the first or the last
 *   reshape              src; shape (-1 in one place: what is left)
 *   transpose            src; axes (dimension i of the result is src's axes[i])
 *   slice                src; begin, size
 *
 * A convolution or matrix product whose src and weights come from dequantize reads the numbers
 * themselves, and adds up their products as whole numbers, where oneDNN is fast for it; then it
 * also leaves the numbers of a quantize that alone reads its result.
 *
 * A post-op is applied to the node's result, in order:
 *
 *   {"kind": "eltwise", "alg", "alpha", "beta"}
 *   {"kind": "binary", "alg", "src1": tensor id}
 *   {"kind": "prelu", "src1": tensor id of the weights, which broadcast}
 *
 * Whether an addition becomes oneDNN's in-place "sum" is the engine's decision. Eltwise and binary
 * algs are oneDNN's algorithm names without their prefix: eltwise_relu is "relu". An alpha or beta
 * that float cannot hold is infinite: JSON has no infinity.
 *
 * Among the integers of an attr that is a list, such as the shape of a reshape, there may be
 * [tensor id, axis]: as large as that tensor is along that axis. In a dynamic graph, the operand of
 * a post-op may turn out to be larger than the node's result; then it is no post-op in that run.
 */
#ifndef DNNL_BYOC_ENGINE_GRAPH_H_
#define DNNL_BYOC_ENGINE_GRAPH_H_

#include <map>
#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <vector>

#include "layout.h"

namespace dnnl_byoc {

constexpr int kGraphVersion = 3;

/*! \brief How a constant's data lies in memory, if not row-major. */
struct Packing {
  memory::desc view;  // the row-major tensor as the one that was reordered
  memory::desc md;    // what the data is
};

/*! \brief A size that only a run knows. */
constexpr memory::dim kUnknown = -1;

/*! \brief A tensor that comes from outside: an input or a constant. */
struct ExternalTensor {
  int id;
  memory::data_type dtype;
  memory::dims shape;              // of an input, with kUnknown where a run says how large it is
  std::optional<Packing> packing;  // of constants only

  bool has_unknown_size() const;

  /*! \name Of the caller's tensor. */
  ///@{
  memory::dims data_shape() const;
  memory::data_type data_dtype() const { return packing ? packing->md.get_data_type() : dtype; }
  ///@}
};

struct PostOp {
  enum class Kind { eltwise, binary, prelu };
  Kind kind;
  dnnl::algorithm alg = dnnl::algorithm::undef;  // of eltwise and binary
  float alpha = 0.f;
  float beta = 0.f;
  int src1 = -1;  // tensor id, of binary and prelu

  bool has_operand() const { return kind != Kind::eltwise; }
};

/*! \brief Number `index` of a list among a node's attrs is the size of a tensor along an axis. */
struct SizeReference {
  std::string attr;
  size_t index;
  int tensor;
  int axis;
};

struct Node {
  std::string kind;
  std::vector<int> inputs;
  int output;
  nlohmann::json attrs;
  std::vector<PostOp> post_ops;
  std::vector<SizeReference> sizes = {};  // what attrs does not say

  /*! \brief A typed attribute; InvalidArgument names the node and attribute if it is not there. */
  template <typename T>
  T attr(const char* name) const;
};

/*! \brief What may be chosen for a graph. */
struct Choices {
  DataLayout layout = DataLayout::any;  // what convolutions try before oneDNN's own choice
  std::map<int, int> winograd = {};     // by number of a convolution's node: the tile, 2 or 4
  std::map<int, std::string> implementations = {};  // by number of a node: oneDNN's name
  int implementation = 0;                           // of all other nodes: which; 0 is the first
  memory::dim chunk = 0;  // images that a thread computes at once; 0: all threads, all
  bool cascades = false;  // whether one thread does steps a few rows at a time, see cascade.h
};

/*! \brief What was found by measurement. */
struct Tuned {
  Choices choices;
  std::string isa;
};

struct Graph {
  std::vector<ExternalTensor> inputs;
  std::vector<ExternalTensor> constants;
  std::vector<int> outputs;
  std::vector<Node> nodes;
  int num_tensors = 0;  // ids are below it
  memory::data_type precision = memory::data_type::f32;
  std::optional<Tuned> tuned;

  /*! \brief Parses and validates; InvalidArgument says what is wrong and where. */
  static Graph parse(const char* json);

  /*! \brief Whether an input has a size that only a run knows. */
  bool is_dynamic() const;
};

/*! \brief Whether a node's output may be its input's memory in another guise. */
bool is_view(const Node& node);

/*! \brief oneDNN's algorithm of an eltwise or binary "alg"; InvalidArgument if there is none. */
dnnl::algorithm eltwise_algorithm(const std::string& alg);
dnnl::algorithm binary_algorithm(const std::string& alg);

/*! \brief The "alg" of such an algorithm. */
const std::string& algorithm_name(dnnl::algorithm algorithm);

/*! \brief The number of elements. */
memory::dim count(const memory::dims& shape);

/*! \brief Whether each size fits into 31 bits, and the number of bytes into 63. */
bool is_countable(const memory::dims& shape);

/*! \brief The names that the JSON, the profile and error texts use: "f32", "(1, 3, 224, 224)". */
const char* dtype_name(memory::data_type dtype);
std::string shape_name(const memory::dims& shape);

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_GRAPH_H_
