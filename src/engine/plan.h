/*!
 * \file plan.h
 * \brief A graph compiled for one set of shapes: primitives, their arguments, and where each lives.
 */
#ifndef DNNL_BYOC_ENGINE_PLAN_H_
#define DNNL_BYOC_ENGINE_PLAN_H_

#include <functional>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cascade.h"
#include "graph.h"
#include "kernel.h"
#include "memory_plan.h"

namespace dnnl_byoc {

/*! \brief The process's CPU engine. */
const dnnl::engine& cpu_engine();

/*! \brief What was measured for the instruction set that oneDNN uses here; or null. */
const Choices* measured_choices(const Graph& graph);

/*! \brief A piece of memory that one or more values share. */
struct Storage {
  enum class Place {
    arena,         // an intermediate; `offset` bytes into the arena of the execution context
    input,         // the caller's input number `index`
    output,        // the caller's output number `index`
    constant,      // Plan::constants()[index]
    raw_constant,  // the caller's constant number `index`; gone once the constants are loaded
  };
  Place place;
  int index = -1;
  size_t bytes = 0;
  size_t offset = 0;
  bool joint = false;  // several tensors, which end at different times, lie in it side by side
};

/*! \brief A tensor in one layout: several values may show the same tensor, or the same storage. */
struct Value {
  memory::desc md;
  int storage;
  size_t offset;  // in bytes from the beginning of the storage
};

/*! \brief One primitive, or a kernel of our own, with its arguments. */
struct Step {
  std::string kind;  // the node's, or what else it needs: "reorder", …
  int node;          // number of the node that it is a part of
  std::string post_ops;
  dnnl::primitive_desc_base pd;           // empty if there is a kernel
  std::shared_ptr<const Kernel> kernel;   // empty if there is a pd
  std::vector<std::pair<int, int>> args;  // (DNNL_ARG_*, value)
  dnnl::primitive primitive;              // made last: it is what generates code

  const char* impl() const { return kernel ? kernel->impl() : pd.impl_info_str(); }
  memory::desc scratchpad_md() const { return kernel ? memory::desc() : pd.scratchpad_desc(); }
};

class ConstantPool;

/*! \brief Immutable once compiled; shared by all execution contexts. */
class Plan {
 public:
  /*! \brief What may be asked of a compilation. */
  enum class Mode {
    full,     // everything; reference implementations are accepted where there is no other
    support,  // descriptors only; a reference implementation is Unsupported
  };

  /*! \brief Chooses layouts and implementations, plans the memory. \param threads 0 for all. */
  static Plan compile(const Graph& graph, Mode mode, int threads = 0);

  /*! \brief What a step wants to be computed of a row-major constant. */
  struct Transform {
    std::string what;  // of two alike, the results are; empty for none
    std::function<memory(const memory&)> make;
  };

  /*!
   * \brief Constant number i of the plan is the graph's number `source`, from byte `offset` on,
   * seen as `view`, or what `transform` makes of that, in the layout `md`; or a literal.
   */
  struct Repack {
    int tensor;  // of the graph, that it is a layout of
    int source;
    size_t offset;
    memory::desc view;
    memory::desc md;
    Transform transform;
    memory literal;  // empty if there is a source
  };
  const std::vector<Repack>& repacks() const { return repacks_; }

  /*!
   * \brief Repacks the constants and makes the primitives; after it the plan can run.
   *
   * What lies as it should is used where it is, and must outlive the plan.
   * \param constants The graph's.
   * \param data A pointer for each.
   * \param pool Of the same graph; or null: what another plan has loaded in the same layout is
   *   shared.
   */
  void load(const std::vector<ExternalTensor>& constants, const std::vector<const void*>& data,
            ConstantPool* pool = nullptr);

  int threads() const { return threads_; }
  const std::vector<Storage>& storages() const { return storages_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Step>& steps() const { return steps_; }
  /*! \brief In their order. */
  const std::vector<Cascade>& cascades() const { return cascades_; }
  const std::vector<memory>& constants() const { return constants_; }
  const std::vector<memory::desc>& output_mds() const { return output_mds_; }
  /*! \brief The outputs as their producers leave them, before they are made row-major. */
  const std::vector<memory::desc>& result_mds() const { return result_mds_; }
  size_t arena_bytes() const { return arena_bytes_; }
  size_t scratchpad_bytes() const { return scratchpad_bytes_; }
  /*! \brief Of the memory that a run works in: the arena, and the scratchpad behind it. */
  size_t workspace_bytes() const { return aligned_size(arena_bytes_) + scratchpad_bytes_; }
  size_t constant_bytes() const;
  size_t repacked_bytes() const { return repacked_bytes_; }

 private:
  friend class PlanBuilder;

  static Plan compile(const Graph& graph, Mode mode, const Choices* choices);
  /*! \brief The layout in which the convolutions write most bytes; `any` if there are none. */
  DataLayout common_layout() const;
  /*! \brief The first and the last of the steps that are done at the same time as one. */
  std::pair<int, int> turn_of(int step) const;
  /*! \brief How many bytes the reorders write in a run. */
  size_t reordered_bytes() const;

  int threads_ = 0;
  std::vector<Storage> storages_;
  std::vector<Value> values_;
  std::vector<Step> steps_;
  std::vector<Cascade> cascades_;
  std::vector<Repack> repacks_;
  std::vector<memory> constants_;  // as repacks_ says
  std::vector<memory::desc> output_mds_, result_mds_;
  size_t repacked_bytes_ = 0;  // of the constants, those that are not the caller's memory
  size_t arena_bytes_ = 0;
  size_t scratchpad_bytes_ = 0;
};

}  // namespace dnnl_byoc
#endif  // DNNL_BYOC_ENGINE_PLAN_H_
