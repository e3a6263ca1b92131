// Small arrays that a jitted function captured, as numbers in its code.
#include "captured_numbers.hpp"

#include <cstring>
#include <mutex>
#include <utility>

#include "../trace/base/locks.hpp"
#include "../trace/base/recent_map.hpp"
#include "../trace/ir/sub_graph.hpp"

namespace vt::detail {

namespace captured_numbers {

constexpr std::int64_t most_elements = 1024;

/// The values that a Graph was compiled with first, or none once there were others.
struct First {
  Vec<BufferRef> values;
  bool others = false;
};
struct Known {
  Mutex mutex;
  RecentMap<std::size_t, First> graphs{1024};  ///< by their hash
};
Known& known() {
  static Known& all = *new Known;  // threads may compile while the process ends
  return all;
}

/// Memory of the caller's may change from call to call.
bool is_small(const Aval& a, const BufferRef& b) {
  return a.elements() <= most_elements && b->capacity > 0;
}

bool same(const BufferRef& a, const BufferRef& b) {
  return a->bytes == b->bytes && std::memcmp(a->data, b->data, a->bytes) == 0;
}

BufferRef copied(const BufferRef& from) {
  BufferRef copy = allocate(from->bytes);
  std::memcpy(copy->data, from->data, from->bytes);
  return copy;
}

/// The numbers to use: what is the same each time is one buffer each time. Empty: none.
Vec<BufferRef> numbers(const GraphBody& graph, const Vec<BufferRef>& small) {
  Known& all = known();
  Vec<First> gone;
  const std::lock_guard lock(all.mutex);
  const std::size_t key = hash_of(graph);
  if (First* const first = all.graphs.find(key)) {
    for (std::size_t i = 0; i < small.size() && !first->others; ++i)
      first->others = first->values.size() != small.size() || !same(first->values[i], small[i]);
    if (first->others) first->values.clear();
    return first->values;
  }
  First fresh;
  for (const BufferRef& b : small) fresh.values.push_back(copied(b));
  return all.graphs.emplace(key, std::move(fresh), gone)->values;
}

}  // namespace captured_numbers

GraphBody with_captured_numbers(const GraphBody& graph, Vec<BufferRef>& captured) {
  using namespace captured_numbers;
  const std::size_t own = graph.inputs.size() - captured.size();
  Vec<BufferRef> small;
  for (std::size_t i = 0; i < captured.size(); ++i)
    if (is_small(graph.aval(graph.inputs[own + i]), captured[i])) small.push_back(captured[i]);
  const Vec<BufferRef> known = small.empty() ? Vec<BufferRef>() : numbers(graph, small);
  if (known.empty()) return graph;
  GraphBody with = graph;
  std::size_t next = 0;
  Vec<BufferRef> left;
  for (std::size_t k : bind_inputs(with, captured.size(), [&](std::size_t i) {
         return is_small(graph.aval(graph.inputs[own + i]), captured[i]) ? known[next++]
                                                                         : BufferRef();
       }))
    left.push_back(captured[k]);
  captured = std::move(left);
  return with;
}

}  // namespace vt::detail
