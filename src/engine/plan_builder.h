/*!
 * \file plan_builder.h
 * \brief What the operations in ops/ see of a plan while it is being compiled.
 */
#ifndef DNNL_BYOC_ENGINE_PLAN_BUILDER_H_
#define DNNL_BYOC_ENGINE_PLAN_BUILDER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layout.h"
#include "plan.h"
#include "quantization.h"

namespace dnnl_byoc {

class PlanBuilder {
 public:
  PlanBuilder(const Graph& graph, Plan::Mode mode, Choices choices);

  /*! \brief Compiles all nodes, binds the outputs, plans the memory. */
  Plan build();

  Plan::Mode mode() const { return mode_; }
  DataLayout layout() const { return choices_.layout; }

  /*! \brief The graph's precision, or f32 if the processor does not compute in it. */
  memory::data_type precision() const { return precision_; }

  /*!
   * \brief In which data types a node may read a tensor, best first.
   *
   * What multiplies matrices prefers the precision; all else, what the tensor is in.
   */
  std::vector<memory::data_type> dtypes_for(const Node& node, int tensor) const;

  /*! \brief Whether all are of one data type, or of those between which a precision converts. */
  bool have_one_dtype(const std::vector<int>& tensors) const;

  /*! \brief The data type of a node's result, if it reads its src in `dtype`. */
  memory::data_type result_dtype(const Node& node, memory::data_type dtype) const;

  /*!
   * \brief Where a node's result is to lie: row-major as a transpose sees it that alone reads it.
   *
   * Then what comes after, such as the reshape that merges attention's heads, is a view as well.
   */
  memory::desc wanted_md(const Node& node, const memory::dims& shape,
                         memory::data_type dtype) const;

  /*! \brief The tile in which the node under construction is to use Winograd's algorithm; or 0. */
  int winograd_tile() const;

  /*! \brief Whether the first implementation is the one for the node under construction. */
  bool wants_first_implementation() const;

  /*!
   * \brief Whether there are kernels of our own, which are compiled for AVX2 and AVX-512.
   *
   * They run on OpenMP's threads; beside another runtime's these would be too many.
   */
  bool has_own_kernels() const;

  /*!
   * \brief Whether a kernel of our own, that can run the node under construction, is to do it.
   *
   * It is the first implementation then, and oneDNN's are those that follow.
   */
  bool wants_own_kernel();

  /*!
   * \brief Whether to use an implementation of oneDNN's for the node under construction.
   * \param number Among those of oneDNN's that could be used.
   */
  bool wants_implementation(int number, const std::string& name) const;

  /*! \name A tensor as it is now: its first layout is the one that its producer wrote. */
  ///@{
  const memory::desc& md(int tensor) const;
  bool is_defined(int tensor) const { return !values_of_[tensor].empty(); }
  memory::dims shape(int tensor) const { return md(tensor).get_dims(); }
  memory::data_type dtype(int tensor) const { return md(tensor).get_data_type(); }
  bool is_plain(int tensor) const { return md(tensor) == plain_md(shape(tensor), dtype(tensor)); }
  ///@}

  /*!
   * \brief The tensor as a value with descriptor `md`, same shape or a reshape of it.
   *
   * Where no such value exists, a reorder is inserted; a constant's is done once, at load.
   */
  int require(int tensor, const memory::desc& md);

  /*! \brief Whether oneDNN can bring a constant into a layout; always true of other tensors. */
  bool can_require(int tensor, const memory::desc& md) const;

  /*! \brief A constant tensor as the value that `transform` makes of it at load, in layout `md`. */
  int transformed(int tensor, const memory::desc& md, Plan::Transform transform);

  /*! \brief The value that md() describes. */
  int first_value(int tensor);

  const memory::desc& md_of(int value) const { return plan_.values_[value].md; }
  int storage_index(int value) const { return plan_.values_[value].storage; }

  /*! \brief A new value for a tensor, in memory of its own. */
  int define(int tensor, const memory::desc& md);

  /*!
   * \brief A value that is no tensor of the graph's, for what one step leaves to the next.
   * \param shared A value whose memory it uses, or -1 for memory of its own.
   */
  int temporary(const memory::desc& md, int shared = -1);

  /*! \brief A new value for a tensor in the memory of an existing value, from byte `offset` on. */
  int define_in(int tensor, const memory::desc& md, int value, size_t offset = 0);

  /*! \brief An intermediate's value with that descriptor and all of a memory for itself; or -1. */
  int sole_value(int tensor, const memory::desc& md) const;

  /*! \brief Makes the memory of a sole value part of that of `target`, from byte `offset` on. */
  void move_into(int value, int target, size_t offset);

  /*! \brief Copies the tensor, as `md`, into the memory of `target`, from byte `offset` on. */
  void copy_into(int tensor, const memory::desc& md, int target, size_t offset);

  /*!
   * \brief Whether the node under construction may overwrite the tensor's value.
   *
   * It may if it is an intermediate that nobody reads afterwards, under this or another name,
   * and that this node reads only once.
   */
  bool may_overwrite(int tensor) const;

  /*!
   * \brief Leaves a tensor in parts, of which there is no value, to those who all read the parts.
   * \param md What it would be.
   * \param parts Tensors that are defined.
   */
  void leave_in_parts(int tensor, const memory::desc& md, const std::vector<int>& parts);

  /*! \brief The parts of such a tensor; of others, the tensor itself. */
  std::vector<int> parts_of(int tensor) const;

  /*!
   * \brief Leaves the node under construction to who alone reads its result, of which there is no
   * value; its parts are those of src. What else the node reads has to be constant.
   */
  void leave_to_reader();

  /*! \brief The node whose result a tensor is, if that was left to its reader; or null. */
  const Node* left_to_reader(int tensor) const;

  /*! \brief A value after all for the result of such a node, which is no longer left. */
  int define_what_is_left(int tensor);

  /*! \brief All nodes that read a tensor, or its size; null stands for who reads the graph's
   * outputs. */
  const std::vector<const Node*>& readers(int tensor) const { return readers_[tensor]; }
  /*! \brief The node that reads a tensor, if it is the only one, and once; or null. */
  const Node* only_reader(int tensor) const;

  /*! \brief Whether a tensor is one of the graph's constants, a view of one, or dequantized. */
  bool is_constant(int tensor) const;

  /*! \name Whole numbers that stand for others, see quantization.h. */
  ///@{
  /*! \brief The result of a (de)quantize: there is no value of it until somebody asks for one. */
  void defer(const Node& node);
  /*! \brief The tensor of numbers that this one is dequantized from; or -1. */
  int numbers_of(int tensor) const { return numbers_of_[tensor]; }
  /*! \brief Whether who reads a tensor in that data type reads the numbers that stand for it. */
  bool is_numbers(memory::data_type dtype, int tensor) const {
    return numbers_of(tensor) >= 0 && dtype == this->dtype(numbers_of(tensor));
  }
  /*! \brief How it is dequantized from them. */
  const Quantization& quantization(int tensor) const { return deferred_.at(tensor).how; }
  /*! \brief The quantize, with one scale, that alone reads a node's result; or null. */
  const Node* quantizer_of(const Node& node) const;
  /*! \brief A constant that is no tensor of the graph's. */
  int literal(const memory& data);
  ///@}

  /*! \brief Whether a tensor is one of the graph's inputs, or a view of one. */
  bool is_input(int tensor) const {
    return is_defined(tensor) &&
           storage_of(values_of_[tensor].front()).place == Storage::Place::input;
  }

  /*! \brief Whether a value lives in memory that belongs to the plan. */
  bool in_arena(int value) const;

  /*! \brief Appends a step that runs `pd` on (DNNL_ARG_*, value) pairs. */
  void emit(std::string kind, const dnnl::primitive_desc_base& pd,
            std::vector<std::pair<int, int>> args, std::string post_ops = "");

  /*! \brief Appends a step that runs a kernel of our own. */
  void emit(std::string kind, std::shared_ptr<const Kernel> kernel,
            std::vector<std::pair<int, int>> args, std::string post_ops = "");

 private:
  Node with_sizes(Node node) const;
  int add_storage(Storage::Place place, int index, size_t bytes);
  int add_anonymous_value(const memory::desc& md, int storage, size_t offset = 0);
  int add_value(int tensor, const memory::desc& md, int storage, size_t offset = 0);
  int viewed(int tensor, const memory::dims& shape);
  int add_constant(int tensor, int value, const memory::desc& md, Plan::Transform transform = {});
  void emit_reorder(int from, int to);
  int convert(int tensor, const memory::desc& md, bool slowly);
  Plan::Transform dequantizing(int tensor, const memory::dims& shape) const;
  bool reads_numbers(const Node& node) const;
  bool is_deferred(int tensor) const { return !is_defined(tensor) && deferred_.count(tensor) > 0; }
  void find_readers();
  void find_what_stays_in_f32();
  void bind_outputs();
  void plan_cascades();
  void plan_memory();
  Storage& storage_of(int value) { return plan_.storages_[plan_.values_[value].storage]; }
  const Storage& storage_of(int value) const {
    return plan_.storages_[plan_.values_[value].storage];
  }

  const Plan::Mode mode_;
  const Choices choices_;
  const Graph& graph_;
  const memory::data_type precision_;
  Plan plan_;
  std::vector<std::vector<int>> values_of_;  // by tensor: its values, the producer's first
  std::vector<int> name_;       // by tensor: the first tensor that it may be a view of, or itself
  std::vector<int> last_read_;  // by that first tensor: the last node that reads it by any name
  std::vector<bool> kept_in_f32_;                  // by first tensor
  std::vector<int> numbers_of_;                    // by tensor: what it is dequantized from; or -1
  std::vector<std::vector<const Node*>> readers_;  // by tensor
  struct Deferred {
    int source;
    memory::desc md;
    Quantization how;
  };
  std::map<int, Deferred> deferred_;  // by tensor
  struct Parts {
    memory::desc md;
    std::vector<int> tensors;
  };
  std::map<int, Parts> parts_;       // by tensor
  std::map<int, const Node*> left_;  // to its reader, by tensor: the node
  int node_ = 0;                     // the node under construction
  int with_own_kernel_ = -1;         // the last node for which there was one
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_PLAN_BUILDER_H_
