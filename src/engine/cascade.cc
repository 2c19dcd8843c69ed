#include "cascade.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "kernel.h"
#include "plan.h"

namespace dnnl_byoc {
namespace {

// Of the last step, at once: our depthwise convolutions do two rows together.
constexpr int64_t kRowsAtOnce = 2;

/*! \brief The size of the second cache. */
size_t cache_bytes() {
  static const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? static_cast<size_t>(bytes) : 1 << 20;
}

/*! \brief What a step may do row by row; or none. */
std::optional<Rows> rows_of(const Step& step) {
  const auto* kernel = dynamic_cast<const RowKernel*>(step.kernel.get());
  return kernel ? kernel->rows() : std::nullopt;
}

/*! \brief Who needs a storage: (step, DNNL_ARG_*). */
using Uses = std::vector<std::pair<int, int>>;

bool have_common(const std::set<int>& a, const std::set<int>& b) {
  return std::any_of(a.begin(), a.end(), [&b](int x) { return b.count(x) > 0; });
}

/*! \brief Puts the slices of a cascade in order. */
class Schedule {
 public:
  /*! \param rows Of its steps. */
  explicit Schedule(std::vector<Rows> rows)
      : rows_(std::move(rows)), done_(rows_.size()), begin_(rows_.size()), most_(rows_.size()) {
    const int last = static_cast<int>(rows_.size()) - 1;
    while (done_[last] < rows_[last].dst) advance(last, done_[last] + kRowsAtOnce);
  }

  /*! \brief With numbers of steps that begin with 0. */
  const std::vector<Cascade::Slice>& slices() const { return slices_; }
  /*! \brief Of memory for what a step leaves to the next. */
  size_t bytes(int step) const { return static_cast<size_t>(most_[step] * rows_[step].dst_bytes); }
  /*! \brief For all of them. */
  size_t bytes() const {
    size_t sum = 0;
    for (size_t i = 0; i < rows_.size(); ++i) sum += bytes(static_cast<int>(i));
    return sum;
  }

 private:
  /*! \brief Does a step's rows before `end`, and before them what they need of the others'. */
  void advance(int step, int64_t end) {
    const Rows& rows = rows_[step];
    end = std::min(end, rows.dst);
    if (end <= done_[step]) return;
    const kernels::WindowSide& window = rows.window;
    if (step > 0) advance(step - 1, (end - 1) * window.stride - window.padding + window.kernel);
    const auto bytes_before = [this](int step) {
      return static_cast<size_t>(begin_[step] * rows_[step].dst_bytes);
    };
    Cascade::Slice slice{step, done_[step], end, step > 0 ? bytes_before(step - 1) : 0, 0, 0, 0};
    if (step + 1 < static_cast<int>(rows_.size())) {
      const size_t before = bytes_before(step);
      begin_[step] = first_needed_of(step);
      slice.dst_begin = bytes_before(step);
      slice.dropped = slice.dst_begin - before;
      slice.kept = static_cast<size_t>((done_[step] - begin_[step]) * rows.dst_bytes);
      most_[step] = std::max(most_[step], end - begin_[step]);
    }
    done_[step] = end;
    slices_.push_back(slice);
  }

  /*! \brief The first of what a step has done that the next still needs. */
  int64_t first_needed_of(int step) const {
    const kernels::WindowSide& window = rows_[step + 1].window;
    const int64_t needed = done_[step + 1] * window.stride - window.padding;
    return std::clamp(needed, begin_[step], done_[step]);
  }

  const std::vector<Rows> rows_;
  std::vector<int64_t> done_;   // rows, by step
  std::vector<int64_t> begin_;  // the first row that there is still
  std::vector<int64_t> most_;   // rows that there are at once
  std::vector<Cascade::Slice> slices_;
};

class Finder {
 public:
  Finder(const std::vector<Step>& steps, const std::vector<Value>& values,
         const std::vector<Storage>& storages)
      : steps_(steps), values_(values), storages_(storages), uses_(storages.size()) {
    for (size_t i = 0; i < steps.size(); ++i)
      for (const auto& [arg, value] : steps[i].args)
        uses_[values[value].storage].emplace_back(static_cast<int>(i), arg);
  }

  std::vector<Cascade> find() const {
    std::vector<Cascade> cascades;
    const int count = static_cast<int>(steps_.size());
    for (int first = 0, end; first < count; first = end) {
      Chain chain;
      for (end = first; end < count && can_follow(end, chain); ++end) add(end, &chain);
      if (end > first + 1) cascades.push_back(cascade(first, end, std::move(chain.rows)));
      end = std::max(end, first + 1);
    }
    return cascades;
  }

 private:
  /*! \brief Steps that may become a cascade, and the storages that they use. */
  struct Chain {
    std::vector<Rows> rows;  // by step
    std::set<int> used, written;
  };

  std::set<int> used_by(int step) const {
    std::set<int> used;
    for (const auto& [arg, value] : steps_[step].args) used.insert(values_[value].storage);
    return used;
  }

  std::set<int> written_by(int step) const {
    std::set<int> written;
    for (const auto& [arg, value] : steps_[step].args)
      if (arg == DNNL_ARG_DST || arg == DNNL_ARG_WORKSPACE) written.insert(values_[value].storage);
    return written;
  }

  void add(int step, Chain* chain) const {
    chain->rows.push_back(*rows_of(steps_[step]));
    chain->used.merge(used_by(step));
    chain->written.merge(written_by(step));
  }

  /*! \brief The memory in which the step before leaves an image to this one alone; or -1. */
  int between(int step) const {
    const Uses alone = {{step - 1, DNNL_ARG_DST}, {step, DNNL_ARG_SRC}};
    for (const auto& [arg, value] : steps_[step].args) {
      const int storage = values_[value].storage;
      const Storage& memory = storages_[storage];
      if (arg == DNNL_ARG_SRC && memory.place == Storage::Place::arena && !memory.joint &&
          uses_[storage] == alone && memory.bytes == values_[value].md.get_size())
        return storage;
    }
    return -1;
  }

  bool can_follow(int step, const Chain& chain) const {
    const auto rows = rows_of(steps_[step]);
    if (!rows || chain.rows.empty()) return rows.has_value();
    const int memory = between(step);
    if (memory < 0 || rows->src != chain.rows.back().dst ||
        storages_[memory].bytes <= cache_bytes() / 4)
      return false;
    // Of all else, nobody may have overwritten a part that another reads.
    std::set<int> written = chain.written;
    written.erase(memory);
    if (have_common(used_by(step), written) || have_common(written_by(step), chain.used))
      return false;
    std::vector<Rows> all = chain.rows;
    all.push_back(*rows);
    return Schedule(std::move(all)).bytes() <= cache_bytes() / 4 * 3;
  }

  Cascade cascade(int first, int end, std::vector<Rows> rows) const {
    const Schedule schedule(std::move(rows));
    Cascade found{first, end, schedule.slices(), {}};
    for (Cascade::Slice& slice : found.slices) slice.step += first;
    for (int step = first + 1; step < end; ++step)
      found.bytes[between(step)] = schedule.bytes(step - 1 - first);
    return found;
  }

  const std::vector<Step>& steps_;
  const std::vector<Value>& values_;
  const std::vector<Storage>& storages_;
  std::vector<Uses> uses_;  // by storage
};

}  // namespace

std::vector<Cascade> find_cascades(const std::vector<Step>& steps, const std::vector<Value>& values,
                                   const std::vector<Storage>& storages) {
  return Finder(steps, values, storages).find();
}

}  // namespace dnnl_byoc
