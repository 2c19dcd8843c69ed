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

// What the last step makes at once: two rows, as our depthwise convolutions do two together, or as
// many as make it worth to take turns.
constexpr int64_t kFewestRows = 2, kFewestBytes = 16 << 10;

/*! \brief The size of the second cache. */
size_t cache_bytes() {
  static const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? static_cast<size_t>(bytes) : 1 << 20;
}

/*! \brief Whether so much of what a step leaves is still there when the next comes to read it. */
bool stays(size_t bytes) { return bytes <= cache_bytes() / 4; }

/*! \brief Whether so much between the steps of a cascade leaves enough for weights. */
bool fits(size_t bytes) { return bytes <= cache_bytes() / 4 * 3; }

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
  explicit Schedule(const std::vector<Rows>& rows)
      : rows_(rows), done_(rows.size()), begin_(rows.size()), most_(rows.size()) {
    const int last = static_cast<int>(rows.size()) - 1;
    const int64_t pairs = kFewestBytes / kFewestRows / std::max<int64_t>(rows[last].dst_bytes, 1);
    const int64_t at_once = std::max<int64_t>(pairs, 1) * kFewestRows;
    while (done_[last] < rows[last].dst) advance(last, done_[last] + at_once);
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
    end = std::min(end, rows_[step].dst);
    if (end <= done_[step]) return;
    const kernels::WindowSide& window = rows_[step].window;
    if (step > 0) advance(step - 1, (end - 1) * window.stride - window.padding + window.kernel);
    Cascade::Slice slice = {};
    slice.step = step;
    slice.first = done_[step];
    slice.last = end;
    if (step > 0) slice.src_begin = bytes_before(step - 1);
    if (step + 1 < static_cast<int>(rows_.size())) make_room(end, &slice);
    done_[step] = end;
    slices_.push_back(slice);
  }

  /*! \brief Between a step and the next: what is not needed any more goes. */
  void make_room(int64_t end, Cascade::Slice* slice) {
    const int step = slice->step;
    const kernels::WindowSide& window = rows_[step + 1].window;
    const int64_t needed = done_[step + 1] * window.stride - window.padding;
    const size_t before = bytes_before(step);
    begin_[step] = std::clamp(needed, begin_[step], done_[step]);
    slice->dst_begin = bytes_before(step);
    slice->dropped = slice->dst_begin - before;
    slice->kept = static_cast<size_t>((done_[step] - begin_[step]) * rows_[step].dst_bytes);
    most_[step] = std::max(most_[step], end - begin_[step]);
  }

  size_t bytes_before(int step) const {
    return static_cast<size_t>(begin_[step] * rows_[step].dst_bytes);
  }

  std::vector<Rows> rows_;
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
      for (end = first; end < count && extend(&chain, end); ++end) continue;
      if (end > first + 1) cascades.push_back(cascade(first, chain));
      end = std::max(end, first + 1);
    }
    return cascades;
  }

 private:
  /*! \brief Steps that may become a cascade. */
  struct Chain {
    std::vector<Rows> rows;            // by step
    std::set<int> used, written;       // storages
    std::vector<int> between;          // by step but the last, the storage for what it leaves
    std::optional<Schedule> schedule;  // of more than one step
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

  /*! \brief The memory in which the step before leaves an image to this one alone; or -1. */
  int between(int step) const {
    const Uses alone = {{step - 1, DNNL_ARG_DST}, {step, DNNL_ARG_SRC}};
    for (const auto& [arg, value] : steps_[step].args) {
      const int storage = values_[value].storage;
      const Storage& memory = storages_[storage];
      if (arg == DNNL_ARG_SRC && memory.place == Storage::Place::arena && !memory.joint &&
          uses_[storage] == alone && memory.bytes == values_[value].md.get_size())
        return storage;  // so large that no view of it has other rows, if there are as many
    }
    return -1;
  }

  /*! \brief Adds a step, if it can follow. */
  bool extend(Chain* chain, int step) const {
    const auto rows = rows_of(steps_[step]);
    if (!rows) return false;
    const std::set<int> used = used_by(step), written = written_by(step);
    std::vector<Rows> all = chain->rows;
    all.push_back(*rows);
    if (!chain->rows.empty()) {
      const int memory = between(step);
      if (memory < 0 || rows->src != chain->rows.back().dst || stays(storages_[memory].bytes))
        return false;
      // Of all else, nobody may have overwritten a part that another reads.
      std::set<int> others = chain->written;
      others.erase(memory);
      if (have_common(used, others) || have_common(written, chain->used)) return false;
      Schedule schedule(all);
      if (!fits(schedule.bytes())) return false;
      chain->schedule = std::move(schedule);
      chain->between.push_back(memory);
    }
    chain->rows = std::move(all);
    chain->used.insert(used.begin(), used.end());
    chain->written.insert(written.begin(), written.end());
    return true;
  }

  static Cascade cascade(int first, const Chain& chain) {
    const Schedule& schedule = *chain.schedule;
    Cascade found{first, first + static_cast<int>(chain.rows.size()), schedule.slices(), {}};
    for (Cascade::Slice& slice : found.slices) slice.step += first;
    for (size_t i = 0; i < chain.between.size(); ++i)
      found.bytes[chain.between[i]] = schedule.bytes(static_cast<int>(i));
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
