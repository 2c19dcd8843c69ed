#include "memory_plan.h"

#include <algorithm>

namespace dnnl_byoc {

size_t place_lifetimes(std::vector<Lifetime>* lifetimes) {
  std::vector<Lifetime*> order;
  for (Lifetime& lifetime : *lifetimes)
    if (lifetime.bytes > 0 && lifetime.first >= 0) order.push_back(&lifetime);
  std::stable_sort(order.begin(), order.end(),
                   [](const Lifetime* a, const Lifetime* b) { return a->bytes > b->bytes; });

  const auto end = [](const Lifetime* l) {
    return l->offset + (l->bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  size_t total = 0;
  std::vector<Lifetime*> placed;  // by offset
  for (Lifetime* lifetime : order) {
    size_t offset = 0;
    for (const Lifetime* other : placed) {
      if (other->last < lifetime->first || lifetime->last < other->first) continue;
      if (offset + lifetime->bytes <= other->offset) break;
      offset = std::max(offset, end(other));
    }
    lifetime->offset = offset;
    total = std::max(total, end(lifetime));
    placed.insert(std::upper_bound(
                      placed.begin(), placed.end(), lifetime,
                      [](const Lifetime* a, const Lifetime* b) { return a->offset < b->offset; }),
                  lifetime);
  }
  return total;
}

}  // namespace dnnl_byoc
