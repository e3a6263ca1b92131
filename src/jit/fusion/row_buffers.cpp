// Rows that one stage of a kernel stores and only its later stages read: small arrays of the thread
// instead of planned memory.
#include <algorithm>

#include "../nest/nest_transform.hpp"
#include "fusion_groups.hpp"

namespace vt::detail {

namespace row_buffers {

// of a kernel: they must stay in the caches near the core, and fit on its stack
constexpr std::int64_t most_bytes = 64 << 10;

// Per Var: how many steps use it; outputs count as one more.
Vec<int> count_users(const Fusion& fusion) {
  Vec<int> users(fusion.graph.avals.size(), 0);
  const auto use = [&](Var v) { ++users[fusion.storage[v]]; };
  for (const FusedStep& step : fusion.steps) {
    if (step.equation < 0) {
      for (Var v : step.buffers) use(v);
      continue;
    }
    const Equation& e = fusion.graph.equations[step.equation];
    for (Var v : e.inputs) use(v);
    for (Var v : e.outputs) use(v);
  }
  for (Var v : fusion.graph.outputs) use(v);
  return users;
}

// A buffer whose every access is (the same offset of the row, by the shared loops) + (a place in
// the row).
struct Row {
  Vec<IndexId*> accesses;
  std::int64_t elements = 0;
};
bool find_row(Nest& nest, int buffer, Row& row) {
  IndexTable& t = nest.indices;
  Vec<IndexId> without(nest.loops.size(), -1);
  for (int l : nest.shared) without[l] = t.constant(0);
  IndexId offset = -1;
  const auto add = [&](IndexId& index) {
    const IndexId place = t.substitute(index, without), rest = t.subtract(index, place);
    bool shared_only = true;
    t.each_loop(rest, [&](int l) {
      shared_only =
          shared_only && std::find(nest.shared.begin(), nest.shared.end(), l) != nest.shared.end();
    });
    t.each_value(rest, [&](int) { shared_only = false; });
    const IndexBounds b = t.bounds(place);
    if (!shared_only || (offset >= 0 && rest != offset) || b.low < 0 || b.high >= most_bytes)
      return false;
    offset = rest;
    row.elements = std::max(row.elements, b.high + 1);
    row.accesses.push_back(&index);
    return true;
  };
  for (NestValue& v : nest.values)
    if (v.kind == NestValue::Kind::load && v.buffer == buffer && !add(v.index)) return false;
  for (NestStore& s : nest.stores)
    if (s.buffer == buffer && (s.update != Op::input || !add(s.index))) return false;
  if (row.elements == 0) return false;
  for (IndexId* index : row.accesses) *index = t.substitute(*index, without);
  return true;
}

}  // namespace row_buffers

void keep_rows_local(Fusion& fusion) {
  using namespace row_buffers;
  const Vec<int> users = count_users(fusion);
  for (FusedStep& step : fusion.steps) {
    Nest& nest = step.nest;
    if (step.equation >= 0 || nest.stages.size() < 2 || nest.shared.empty()) continue;
    std::int64_t left = most_bytes;
    Vec<int> order, local;
    for (int b = 0; b < static_cast<int>(nest.buffers.size()); ++b) {
      NestBuffer& buffer = nest.buffers[b];
      const std::int64_t size = static_cast<std::int64_t>(size_of(buffer.dtype));
      Row row;
      // Only what certainly fits is looked for, as finding a row changes its accesses.
      const Shape& shape = fusion.graph.aval(step.buffers[b]).shape;
      std::int64_t rows = 1;
      for (int l : nest.shared) rows *= std::max<std::int64_t>(nest.loops[l].extent, 1);
      const bool fits =
          buffer.written && users[step.buffers[b]] == 1 && shape.elements() / rows * size <= left;
      if (fits && find_row(nest, b, row)) {
        buffer.local = row.elements;
        left -= row.elements * size;
        local.push_back(b);
      } else {
        order.push_back(b);
      }
    }
    if (local.empty()) continue;
    // Local ones last: the kernel is given memory for the others only.
    const std::size_t given = order.size();
    order.append(local.begin(), local.end());
    keep_buffers(nest, step.buffers, order);
    step.buffers.resize(given);
  }
}

}  // namespace vt::detail
