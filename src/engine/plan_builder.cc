#include "plan_builder.h"

#include <algorithm>
#include <numeric>

#include "cascade.h"
#include "error.h"
#include "isa.h"
#include "memory_plan.h"
#include "ops/op.h"
#include "ops/pixels.h"
#include "threads.h"

namespace dnnl_byoc {

PlanBuilder::PlanBuilder(const Graph& graph, Plan::Mode mode, Choices choices)
    : mode_(mode),
      choices_(std::move(choices)),
      graph_(graph),
      precision_(computes_in(graph.precision) ? graph.precision : memory::data_type::f32),
      values_of_(graph.num_tensors) {
  if (mode == Plan::Mode::support && precision_ != graph.precision)
    throw Unsupported(text("precision: expected a processor that computes in ",
                           dtype_name(graph.precision), ", got ", isa_name()));
  using Place = Storage::Place;
  const auto add_external = [this](const std::vector<ExternalTensor>& tensors, Place place) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const auto md = plain_md(tensors[i].shape, tensors[i].dtype);
      add_value(tensors[i].id, md, add_storage(place, static_cast<int>(i), md.get_size()));
    }
  };
  add_external(graph.inputs, Place::input);
  add_external(graph.constants, Place::raw_constant);
  find_readers();
  find_what_stays_in_f32();
}

Plan PlanBuilder::build() {
  for (const Node& node : graph_.nodes) {
    try {
      if (node.sizes.empty())
        build_op(*this, node);
      else
        build_op(*this, with_sizes(node));
    } catch (Refusal& e) {
      e.node = node_;
      throw;
    }
    ++node_;
  }
  bind_outputs();
  if (choices_.cascades && on_openmp() && omp_get_max_threads() == 1) plan_cascades();
  plan_memory();
  return std::move(plan_);
}

/*! \brief The node with numbers for the sizes that it takes from tensors. */
Node PlanBuilder::with_sizes(Node node) const {
  for (const auto& [attr, index, tensor, axis] : node.sizes) {
    const memory::dims shape = this->shape(tensor);
    if (axis < 0 || axis >= static_cast<int>(shape.size()))
      throw InvalidArgument(
          text(node.kind, ": ", attr, ": expected an axis of ", shape_name(shape), ", got ", axis));
    node.attrs[attr][index] = shape[static_cast<size_t>(axis)];
  }
  return node;
}

void PlanBuilder::find_readers() {
  name_.resize(graph_.num_tensors);
  for (int i = 0; i < graph_.num_tensors; ++i) name_[i] = i;
  numbers_of_.assign(graph_.num_tensors, -1);
  last_read_.assign(graph_.num_tensors, -1);
  readers_.resize(graph_.num_tensors);
  const auto read = [&](int id, int when, const Node* reader) {
    last_read_[name_[id]] = when;
    // Who reads what they stand for may read the numbers.
    if (numbers_of_[id] >= 0) last_read_[name_[numbers_of_[id]]] = when;
    readers_[id].push_back(reader);
  };
  const int count = static_cast<int>(graph_.nodes.size());
  for (int i = 0; i < count; ++i) {
    const Node& node = graph_.nodes[i];
    for (int id : node.inputs) read(id, i, &node);
    for (const PostOp& op : node.post_ops)
      if (op.has_operand()) read(op.src1, i, &node);
    // Who asks for a size needs the tensor to be there, under its own name.
    for (const SizeReference& size : node.sizes) readers_[size.tensor].push_back(&node);
    if (is_view(node)) name_[node.output] = name_[node.inputs[0]];
    if (node.kind == "dequantize") numbers_of_[node.output] = node.inputs[0];
  }
  for (int id : graph_.outputs) read(id, count, nullptr);
}

void PlanBuilder::find_what_stays_in_f32() {
  kept_in_f32_.assign(graph_.num_tensors, false);
  for (int id : graph_.outputs) kept_in_f32_[name_[id]] = true;
  for (const Node& node : graph_.nodes)  // exp() makes of a small error a large one
    if (node.kind == "softmax") kept_in_f32_[name_[node.inputs[0]]] = true;
}

std::vector<memory::data_type> PlanBuilder::dtypes_for(const Node& node, int tensor) const {
  constexpr auto kF32 = memory::data_type::f32;
  std::vector<memory::data_type> dtypes;
  if (reads_numbers(node)) dtypes.push_back(dtype(numbers_of(node.inputs[0])));
  const auto now = dtype(tensor);
  const bool converts = precision_ != kF32 && (now == kF32 || now == precision_);
  dtypes.push_back(converts && has_weights(node) ? precision_ : now);
  if (converts && dtypes.back() != kF32) dtypes.push_back(kF32);
  return dtypes;
}

/*! \brief Whether a node may compute with the numbers that its src and weights stand for. */
bool PlanBuilder::reads_numbers(const Node& node) const {
  using Type = memory::data_type;
  if (!has_weights(node) || !adds_up_whole_numbers()) return false;
  const int src = node.inputs[0], weights = node.inputs[1];
  if (numbers_of(src) < 0 || numbers_of(weights) < 0) return false;
  const Type src_dtype = dtype(numbers_of(src));
  const Quantization &of_src = quantization(src), &of_weights = quantization(weights);
  // Each output channel may have a scale: it is the last dimension of a matmul's weights.
  const int channels = node.kind == "matmul" ? md(weights).get_ndims() - 1 : 0;
  return (src_dtype == Type::u8 || src_dtype == Type::s8) && of_src.is_per_tensor() &&
         dtype(numbers_of(weights)) == Type::s8 && is_constant(weights) &&
         !of_weights.has_zero_points() &&
         (of_weights.is_per_tensor() || of_weights.axis == channels);
}

bool PlanBuilder::have_one_dtype(const std::vector<int>& tensors) const {
  const auto all = [&](auto holds) { return std::all_of(tensors.begin(), tensors.end(), holds); };
  return all([&](int id) { return dtype(id) == dtype(tensors[0]); }) || all([&](int id) {
           return dtype(id) == memory::data_type::f32 || dtype(id) == precision_;
         });
}

memory::data_type PlanBuilder::result_dtype(const Node& node, memory::data_type dtype) const {
  if (has_weights(node) && is_numbers(dtype, node.inputs[0])) {
    if (const Node* quantizer = quantizer_of(node))
      return dnnl_byoc::quantization_of(*quantizer, {}).dtype;
    dtype = precision_;
  }
  return dtype == precision_ && kept_in_f32_[node.output] ? memory::data_type::f32 : dtype;
}

memory::desc PlanBuilder::wanted_md(const Node& node, const memory::dims& shape,
                                    memory::data_type dtype) const {
  const Node* reader = only_reader(node.output);
  if (!reader || reader->kind != "transpose") return plain_md(shape, dtype);
  const auto axes = reader->attr<memory::dims>("axes");
  memory::dims all(shape.size());
  std::iota(all.begin(), all.end(), 0);
  if (axes.size() != all.size() || !std::is_permutation(axes.begin(), axes.end(), all.begin()))
    return plain_md(shape, dtype);  // for its builder to refuse
  memory::dims seen(shape.size());
  for (size_t i = 0; i < axes.size(); ++i) seen[i] = shape.at(axes[i]);
  return plain_md(seen, dtype).permute_axes({axes.begin(), axes.end()});
}

void PlanBuilder::defer(const Node& node) {
  using Type = memory::data_type;
  const int source = node.inputs[0];
  Quantization how = dnnl_byoc::quantization_of(node, shape(source));
  const bool narrow = dtype(source) != Type::s32 && !kept_in_f32_[name_[node.output]];
  const auto real = narrow ? precision_ : Type::f32;
  const auto dtype = how.dtype == Type::undef ? real : how.dtype;
  deferred_[node.output] = {source, with_dtype(md(source), dtype), std::move(how)};
}

const Node* PlanBuilder::only_reader(int tensor) const {
  return readers_[tensor].size() == 1 ? readers_[tensor].front() : nullptr;
}

const Node* PlanBuilder::quantizer_of(const Node& node) const {
  const Node* reader = only_reader(node.output);
  const bool found = reader && reader->kind == "quantize" && reader->inputs.size() == 1 &&
                     reader->post_ops.empty() &&
                     reader->attr<std::vector<float>>("scales").size() == 1;
  return found ? reader : nullptr;
}

bool PlanBuilder::is_constant(int tensor) const {
  if (numbers_of(tensor) >= 0) return is_constant(numbers_of(tensor));
  return is_defined(tensor) &&
         storage_of(values_of_[tensor].front()).place == Storage::Place::raw_constant;
}

int PlanBuilder::first_value(int tensor) {
  if (is_deferred(tensor)) {
    const memory::desc wanted = md(tensor);
    if (is_constant(tensor)) return require(tensor, wanted);
    if (convert(tensor, wanted, mode_ == Plan::Mode::full) < 0)
      throw Unsupported(text("expected numbers that oneDNN can quantize or dequantize, got ",
                             quantization(tensor).scales.size(), " scales"));
  }
  return values_of_[tensor].front();
}

/*!
 * \brief Defines a deferred tensor with descriptor `md`, of its shape.
 * \return The value; or -1 if oneDNN cannot, or only slowly and that is not wanted.
 */
int PlanBuilder::convert(int tensor, const memory::desc& md, bool slowly) {
  const auto& [source, deferred_md, how] = deferred_.at(tensor);
  if (how.has_zero_points() && !how.is_per_tensor()) return -1;
  int from = is_constant(source) ? require(source, this->md(source)) : first_value(source);
  const bool quantizes = how.dtype != memory::data_type::undef;
  if (quantizes && has_own_kernels())
    if (const auto kernel = pixels_kernel(md_of(from), md, &how)) {
      const int to = define(tensor, md);
      emit("quantize", kernel, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
      return to;
    }
  if (how.has_zero_points() && !lie_alike(md_of(from), md)) {
    // oneDNN 3.2 may forget the zero point where the layout changes, too.
    const memory::desc same_layout = with_dtype(md, dtype(source));
    if (!lie_alike(same_layout, md)) return -1;
    from = require(source, same_layout);
  }
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto data = quantize_args(quantizes ? DNNL_ARG_DST : DNNL_ARG_SRC, how, how.mask(), &attr);
  const dnnl::reorder::primitive_desc pd(cpu_engine(), md_of(from), cpu_engine(), md, attr,
                                         /*allow_empty=*/true);
  if (!pd || (is_reference(pd) && !slowly)) return -1;
  const int to = define(tensor, md);
  std::vector<std::pair<int, int>> args = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  for (const auto& [arg, values] : data) args.emplace_back(arg, literal(values));
  emit(quantizes ? "quantize" : "dequantize", pd, std::move(args));
  return to;
}

bool PlanBuilder::may_overwrite(int tensor) const {
  const int name = name_[tensor];
  if (last_read_[name] > node_ || !is_defined(tensor) || !in_arena(values_of_[tensor].front()))
    return false;
  // A copy of it may be a part of a concat.
  for (const int value : values_of_[tensor])
    if (storage_of(value).joint) return false;
  const auto reads_of = [&](int id) {
    const std::vector<int> parts = parts_of(id);
    return std::count_if(parts.begin(), parts.end(), [&](int part) {
      return name_[part] == name || (numbers_of_[part] >= 0 && name_[numbers_of_[part]] == name);
    });
  };
  const Node& node = graph_.nodes[node_];
  std::ptrdiff_t reads = 0;
  for (const int id : node.inputs) reads += reads_of(id);
  for (const PostOp& op : node.post_ops)
    if (op.has_operand()) reads += reads_of(op.src1);
  return reads == 1;
}

int PlanBuilder::winograd_tile() const {
  const auto it = choices_.winograd.find(node_);
  return it == choices_.winograd.end() ? 0 : it->second;
}

bool PlanBuilder::wants_first_implementation() const {
  return choices_.implementation == 0 && choices_.implementations.count(node_) == 0;
}

bool PlanBuilder::has_own_kernels() const {
  return has_avx2() && on_openmp() && mode_ == Plan::Mode::full;
}

bool PlanBuilder::wants_own_kernel() {
  with_own_kernel_ = node_;
  return wants_first_implementation();
}

bool PlanBuilder::wants_implementation(int number, const std::string& name) const {
  const auto it = choices_.implementations.find(node_);
  if (with_own_kernel_ == node_) ++number;
  return it == choices_.implementations.end() ? number == choices_.implementation
                                              : name == it->second;
}

const memory::desc& PlanBuilder::md(int tensor) const {
  if (const auto it = parts_.find(tensor); it != parts_.end()) return it->second.md;
  if (!is_defined(tensor)) return deferred_.at(tensor).md;
  return plan_.values_[values_of_[tensor].front()].md;
}

bool PlanBuilder::in_arena(int value) const {
  return storage_of(value).place == Storage::Place::arena;
}

int PlanBuilder::add_storage(Storage::Place place, int index, size_t bytes) {
  Storage storage;
  storage.place = place;
  storage.index = index;
  storage.bytes = bytes;
  plan_.storages_.push_back(storage);
  return static_cast<int>(plan_.storages_.size()) - 1;
}

int PlanBuilder::add_anonymous_value(const memory::desc& md, int storage, size_t offset) {
  plan_.values_.push_back({md, storage, offset});
  return static_cast<int>(plan_.values_.size()) - 1;
}

int PlanBuilder::add_value(int tensor, const memory::desc& md, int storage, size_t offset) {
  const int value = add_anonymous_value(md, storage, offset);
  values_of_[tensor].push_back(value);
  return value;
}

int PlanBuilder::define(int tensor, const memory::desc& md) {
  return add_value(tensor, md, add_storage(Storage::Place::arena, -1, md.get_size()));
}

int PlanBuilder::temporary(const memory::desc& md, int shared) {
  const int storage = shared < 0 ? add_storage(Storage::Place::arena, -1, md.get_size())
                                 : plan_.values_[shared].storage;
  return add_anonymous_value(md, storage);
}

int PlanBuilder::define_in(int tensor, const memory::desc& md, int value, size_t offset) {
  return add_value(tensor, md, plan_.values_[value].storage, plan_.values_[value].offset + offset);
}

int PlanBuilder::sole_value(int tensor, const memory::desc& md) const {
  for (int value : values_of_[tensor])
    if (in_arena(value) && md_of(value) == md && plan_.values_[value].offset == 0 &&
        storage_of(value).bytes == md.get_size())
      return value;
  return -1;
}

void PlanBuilder::move_into(int value, int target, size_t offset) {
  const Value to = plan_.values_[target];
  const int from = plan_.values_[value].storage;
  for (Value& other : plan_.values_)  // also those that went before it in this memory
    if (other.storage == from) other = {other.md, to.storage, other.offset + to.offset + offset};
  plan_.storages_[from].bytes = 0;
  plan_.storages_[to.storage].joint = true;
}

void PlanBuilder::copy_into(int tensor, const memory::desc& md, int target, size_t offset) {
  const int first = first_value(tensor);
  const bool raw = storage_of(first).place == Storage::Place::raw_constant;
  const int from = raw ? require(tensor, md) : first;
  emit_reorder(from, define_in(tensor, md, target, offset));
  storage_of(target).joint = true;
}

void PlanBuilder::leave_in_parts(int tensor, const memory::desc& md,
                                 const std::vector<int>& parts) {
  parts_[tensor] = {md, parts};
  for (const int part : parts) {
    int& last_read = last_read_[name_[part]];
    last_read = std::max(last_read, last_read_[name_[tensor]]);
  }
}

std::vector<int> PlanBuilder::parts_of(int tensor) const {
  const auto it = parts_.find(tensor);
  return it == parts_.end() ? std::vector<int>{tensor} : it->second.tensors;
}

void PlanBuilder::leave_to_reader() {
  const Node& node = graph_.nodes[node_];
  const int src = node.inputs[0];
  leave_in_parts(node.output, md(src), parts_of(src));
  left_[node.output] = &node;
}

const Node* PlanBuilder::left_to_reader(int tensor) const {
  const auto it = left_.find(tensor);
  return it == left_.end() ? nullptr : it->second;
}

int PlanBuilder::define_what_is_left(int tensor) {
  const memory::desc md = this->md(tensor);
  parts_.erase(tensor);
  left_.erase(tensor);
  return define(tensor, md);
}

int PlanBuilder::require(int tensor, const memory::desc& md) {
  for (int value : values_of_[tensor])
    if (plan_.values_[value].md == md && storage_of(value).place != Storage::Place::raw_constant)
      return value;
  if (numbers_of(tensor) >= 0 && is_constant(tensor))
    return add_value(tensor, md,
                     add_constant(tensor, first_value(numbers_of(tensor)), md,
                                  dequantizing(tensor, md.get_dims())));
  if (is_deferred(tensor) && this->md(tensor).get_dims() == md.get_dims())
    if (const int value = convert(tensor, md, /*slowly=*/false); value >= 0) return value;
  const int from = viewed(tensor, md.get_dims());
  if (storage_of(from).place == Storage::Place::raw_constant)
    return add_value(tensor, md, add_constant(tensor, from, md));
  if (plan_.values_[from].md == md) return from;
  const int to = define(tensor, md);
  emit_reorder(from, to);
  return to;
}

bool PlanBuilder::can_require(int tensor, const memory::desc& md) const {
  if (!is_constant(tensor) || !is_defined(tensor)) return true;
  const memory::desc view = this->md(tensor).reshape(md.get_dims(), /*allow_empty=*/true);
  // With what a product of whole numbers adds up for the zero points, oneDNN lacks some.
  return !view || dnnl::reorder::primitive_desc(cpu_engine(), view, cpu_engine(), md,
                                                dnnl::primitive_attr(), /*allow_empty=*/true);
}

/*! \brief The tensor as a value of another shape: without a copy if its layout allows it. */
int PlanBuilder::viewed(int tensor, const memory::dims& shape) {
  int from = first_value(tensor);
  if (md(tensor).get_dims() == shape) return from;
  auto view = reshaped(md(tensor), shape);
  if (!view) {
    from = require(tensor, plain_md(this->shape(tensor), dtype(tensor)));
    view = plain_md(shape, dtype(tensor));
  }
  return define_in(tensor, *view, from);
}

int PlanBuilder::transformed(int tensor, const memory::desc& md, Plan::Transform transform) {
  if (numbers_of(tensor) >= 0) {
    const auto first = dequantizing(tensor, shape(tensor)).make;
    transform.make = [=, second = std::move(transform.make)](const memory& plain) {
      return second(first(plain));
    };
  }
  const int source = numbers_of(tensor) < 0 ? tensor : numbers_of(tensor);
  // Not the tensor: nobody else may ask for it.
  return add_anonymous_value(md,
                             add_constant(tensor, first_value(source), md, std::move(transform)));
}

/*! \brief What makes the numbers of a constant what they stand for, in another shape. */
Plan::Transform PlanBuilder::dequantizing(int tensor, const memory::dims& shape) const {
  return {"dequantized", [how = quantization(tensor), shape](const memory& plain) {
            return dequantized(plain, how, shape);
          }};
}

int PlanBuilder::literal(const memory& data) {
  const memory::desc md = data.get_desc();
  const int target = static_cast<int>(plan_.repacks_.size());
  plan_.repacks_.push_back({-1, -1, 0, md, md, {}, data});
  return add_anonymous_value(md, add_storage(Storage::Place::constant, target, md.get_size()));
}

int PlanBuilder::add_constant(int tensor, int value, const memory::desc& md,
                              Plan::Transform transform) {
  const int target = static_cast<int>(plan_.repacks_.size());
  const Value& from = plan_.values_[value];
  const int storage = add_storage(Storage::Place::constant, target, md.get_size());
  plan_.repacks_.push_back(
      {tensor, storage_of(value).index, from.offset, from.md, md, std::move(transform), {}});
  return storage;
}

void PlanBuilder::emit(std::string kind, const dnnl::primitive_desc_base& pd,
                       std::vector<std::pair<int, int>> args, std::string post_ops) {
  plan_.steps_.push_back(
      {std::move(kind), node_, std::move(post_ops), pd, nullptr, std::move(args), {}});
}

void PlanBuilder::emit(std::string kind, std::shared_ptr<const Kernel> kernel,
                       std::vector<std::pair<int, int>> args, std::string post_ops) {
  plan_.steps_.push_back(
      {std::move(kind), node_, std::move(post_ops), {}, std::move(kernel), std::move(args), {}});
}

void PlanBuilder::emit_reorder(int from, int to) {
  const std::vector<std::pair<int, int>> args = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  if (has_own_kernels())
    if (const auto kernel = pixels_kernel(md_of(from), md_of(to), nullptr))
      return emit("reorder", kernel, args);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  emit("reorder",
       dnnl::reorder::primitive_desc(cpu_engine(), md_of(from), cpu_engine(), md_of(to), attr),
       args);
}

/*! \brief Lets the last producer write into the caller's memory where it can, else copies. */
void PlanBuilder::bind_outputs() {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const int tensor = graph_.outputs[i];
    const int index = static_cast<int>(i);
    const bool converted = dtype(tensor) == precision_;
    const memory::desc plain =
        plain_md(shape(tensor), converted ? memory::data_type::f32 : dtype(tensor));
    plan_.output_mds_.push_back(plain);
    plan_.result_mds_.push_back(md(tensor));
    const int value = require(tensor, plain);
    Storage& storage = storage_of(value);
    if (storage.place == Storage::Place::arena && storage.bytes <= plain.get_size()) {
      storage.place = Storage::Place::output;
      storage.index = index;
    } else {
      const int copy =
          add_value(tensor, plain, add_storage(Storage::Place::output, index, plain.get_size()));
      emit_reorder(value, copy);
    }
  }
}

void PlanBuilder::plan_cascades() {
  plan_.cascades_ = find_cascades(plan_.steps_, plan_.values_, plan_.storages_);
  for (const Cascade& cascade : plan_.cascades_)
    for (const auto& [storage, bytes] : cascade.bytes) plan_.storages_[storage].bytes = bytes;
}

void PlanBuilder::plan_memory() {
  std::vector<Lifetime> lifetimes(plan_.storages_.size());
  for (size_t i = 0; i < lifetimes.size(); ++i)
    if (plan_.storages_[i].place == Storage::Place::arena)
      lifetimes[i].bytes = plan_.storages_[i].bytes;
  for (size_t i = 0; i < plan_.steps_.size(); ++i) {
    const auto [first, last] = plan_.turn_of(static_cast<int>(i));
    for (const auto& [arg, value] : plan_.steps_[i].args) {
      lifetimes[plan_.values_[value].storage].extend(first);
      lifetimes[plan_.values_[value].storage].extend(last);
    }
    plan_.scratchpad_bytes_ =
        std::max(plan_.scratchpad_bytes_, plan_.steps_[i].scratchpad_md().get_size());
  }
  plan_.arena_bytes_ = place_lifetimes(&lifetimes);
  for (size_t i = 0; i < lifetimes.size(); ++i) plan_.storages_[i].offset = lifetimes[i].offset;
}

}  // namespace dnnl_byoc
