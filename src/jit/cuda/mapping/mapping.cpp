// How a loop nest's loops are shared out among the blocks and threads of a kernel.
#include "mapping.hpp"

#include <algorithm>
#include <cmath>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "../../nest/schedule.hpp"

namespace vt::detail::cuda {

namespace nest_mapping {

// How far from 0 an index, or a term of it, can be, with the loops' present extents.
double reach_of(const Nest& nest, IndexId e) {
  const IndexExpr& expr = nest.indices[e];
  double reach = std::abs(static_cast<double>(expr.constant));
  for (const IndexTerm& t : expr.terms) {
    const IndexAtom& a = nest.indices.atom(t.atom);
    double most = 0;
    if (a.kind == IndexAtom::Kind::loop) {
      const NestLoop& l = nest.loops[a.id];
      most = static_cast<double>(std::max(l.extent, l.total));
    } else if (a.kind == IndexAtom::Kind::value) {
      most = static_cast<double>(nest.indices.limit_of_value(a.id));
    } else {
      // what is divided has the type of an index, too
      most = std::max(reach_of(nest, a.of), static_cast<double>(a.by));
    }
    reach += most * std::abs(static_cast<double>(t.factor));
  }
  return reach;
}

// Rows over these loops, as the choice of a thread group sees them.
RowWork row_work(const Nest& nest, const SmallVec<int, 6>& reduced, double elements, double rows) {
  RowWork w{.elements = std::max(elements, 1.0),
            .rows = std::max(rows, 1.0),
            .bytes = 0,
            .stages = static_cast<double>(nest.stages.size())};
  Vec<int> seen;
  for (const NestValue& v : nest.values) {
    if (v.kind != NestValue::Kind::load ||
        std::find(seen.begin(), seen.end(), v.buffer) != seen.end())
      continue;
    const bool along = any_of(reduced, [&](int l) {
      return nest.indices.factor_of_loop(v.index, l) != 0 ||
             nest.indices.loop_inside_division(v.index, l);
    });
    if (!along) continue;
    seen.push_back(v.buffer);
    w.bytes += static_cast<double>(size_of(nest.buffers[v.buffer].dtype));
  }
  w.bytes = std::max(w.bytes, 1.0);
  return w;
}

// Element-wise, with a thread for each element?
bool is_plain(const Nest& nest, const Mapping& m) {
  if (any_of(nest.stores, [](const NestStore& s) { return s.update != Op::input; })) return false;
  if (m.thread_group != 1 || m.shared.empty() || nest.stages.size() != 1 ||
      !nest.reductions.empty())
    return false;
  if (any_of(nest.buffers, [](const NestBuffer& b) { return b.local > 0; })) return false;
  if (any_of(nest.loops, [](const NestLoop& l) { return l.block_of >= 0; })) return false;
  return all_of(nest.stages[0].loops, [&](int l) {
    return std::find(m.shared.begin(), m.shared.end(), l) != m.shared.end();
  });
}

// The loop along which some arrays lie that the last shared loop jumps through, if squares of both
// pay.
int choose_tile_loop(const Nest& nest, const Mapping& m) {
  constexpr std::int64_t side = 16;
  const int inner = m.shared.back();
  if (nest.loops[inner].extent < side) return -1;
  std::int64_t bytes = 0;
  for (const NestValue& v : nest.values) {
    if (v.kind != NestValue::Kind::load || v.mask >= 0) continue;
    for (int l : m.shared) {
      if (l == inner || nest.loops[l].extent < side || !lies_along(nest, v.index, l, inner))
        continue;
      for (const NestValue& w : nest.values)
        if (w.kind == NestValue::Kind::load && w.mask < 0 && lies_along(nest, w.index, l, inner))
          bytes += 32 * 33 * static_cast<std::int64_t>(size_of(nest.buffers[w.buffer].dtype));
      return bytes <= 32 << 10 ? l : -1;
    }
  }
  return -1;
}

// Neighbours that a thread takes at a time: as many as an access of 16 bytes holds of the widest
// dense array, if that leaves enough for all threads.
int choose_vector(const Nest& nest, const Mapping& m, const DeviceShape& device) {
  const std::int64_t inner = nest.loops[m.shared.back()].extent;
  for (int vector = 8; vector > 1; vector /= 2) {
    if (m.shared.size() > 1 && inner % vector != 0) continue;
    if (m.thread_groups < std::int64_t{device.multiprocessors} * device.threads * vector) continue;
    int packed = 0, widest = 0;
    const auto look = [&](int buffer, IndexId index, int mask) {
      if (mask >= 0 || !is_packed(nest, m, vector, index)) return;
      ++packed;
      widest = std::max(widest, static_cast<int>(size_of(nest.buffers[buffer].dtype)));
    };
    for (const NestValue& v : nest.values)
      if (v.kind == NestValue::Kind::load) look(v.buffer, v.index, v.mask);
    for (const NestStore& s : nest.stores) look(s.buffer, s.index, s.mask);
    if (packed && widest * vector <= 16) return vector;
  }
  return 1;
}

}  // namespace nest_mapping

bool lies_along(const Nest& nest, IndexId index, int a, int b) {
  const IndexTable& t = nest.indices;
  if (t.factor_of_loop(index, a) != 1 || t.factor_of_loop(index, b) < 2 ||
      t.loop_inside_division(index, a) || t.loop_inside_division(index, b))
    return false;
  bool alone = true;
  t.each_value(index, [&](int) { alone = false; });
  return alone;
}

bool is_packed(const Nest& nest, const Mapping& m, int vector, IndexId index) {
  const int loop = m.shared.back();
  if (nest.indices.factor_of_loop(index, loop) != 1 ||
      nest.indices.loop_inside_division(index, loop))
    return false;
  const Vec<std::uint64_t> dependences = loop_dependences(nest);
  bool apart = nest.indices[index].constant % vector == 0;
  nest.indices.each_value(index, [&](int v) { apart = apart && !(dependences[v] >> loop & 1u); });
  for (const IndexTerm& t : nest.indices[index].terms) {
    const IndexAtom& a = nest.indices.atom(t.atom);
    apart = apart && ((a.kind == IndexAtom::Kind::loop && a.id == loop) || t.factor % vector == 0);
  }
  return apart;
}

double iterations_of(const Nest& nest, const SmallVec<int, 6>& loops) {
  double n = 1;
  for (int l : loops) n *= static_cast<double>(nest.loops[l].extent);
  return n;
}

Mapping choose_mapping(const Nest& nest, bool unique, const DeviceShape& device) {
  using namespace nest_mapping;
  Mapping m;
  // whose directions of reductions and loops of updates hold here too
  const Schedule cpu = choose_schedule(nest, 64);
  const bool updates =
      any_of(nest.stores, [](const NestStore& s) { return s.update != Op::input; });
  m.shared = nest.shared;
  bool folds = false, running = false;
  for (const NestReduction& r : nest.reductions) {
    folds = folds || goes_one_by_one(r);
    running = running || r.running;
  }
  std::int64_t local = 0;
  for (const NestBuffer& b : nest.buffers)
    local += (b.local * static_cast<std::int64_t>(size_of(b.dtype)) + 15) / 16 * 16;
  if (updates) {
    const UpdatePlan plan = plan_updates(nest, unique);
    m.updates = plan.way;
    if (plan.way != UpdatePlan::Way::in_order) m.shared = nest.stages[0].loops;
    else if (!plan.window_loops.empty()) m.shared = plan.window_loops;
    else if (cpu.parallel_loop >= 0) m.shared.push_back(cpu.parallel_loop);
  } else if (nest.stages.size() == 1) {
    SmallVec<int, 6> reduced;
    for (int l : nest.stages[0].loops) {
      if (nest.loops[l].reduce) reduced.push_back(l);
      else m.shared.push_back(l);
    }
    const bool vertical = cpu.stages[0].mode == StageSchedule::Mode::vertical;
    const bool stores_inside = any_of(nest.stores, [](const NestStore& s) { return !s.after; });
    if (!nest.reductions.empty() && !folds && vertical && !running && !stores_inside &&
        local == 0) {
      // Few columns are shared among threads that take every so-manieth row.
      const double rows = iterations_of(nest, reduced), results = iterations_of(nest, m.shared);
      RowWork work = row_work(nest, reduced, rows, results);
      work.beside = true;
      m.choice = choose_thread_group(work);
      if (m.choice.thread_group > 1) {
        m.columns = 32;
        m.thread_group = m.choice.thread_group;
      }
    }
    if (!nest.reductions.empty() && !folds && !vertical) {
      m.choice = choose_thread_group(
          row_work(nest, reduced, iterations_of(nest, reduced), iterations_of(nest, m.shared)));
      m.thread_group = m.choice.thread_group;
    }
    // A block's extent depends on the number of its block, which is then known first.
    insertion_sort(m.shared, [&](int a, int b) {
      const auto inner = [&](int l) { return nest.loops[l].block_of >= 0; };
      return !inner(a) && inner(b);
    });
  } else {
    double most = 1;
    SmallVec<int, 6> along;
    for (const NestStage& s : nest.stages) {
      most = std::max(most, iterations_of(nest, s.loops));
      along.append(s.loops.begin(), s.loops.end());
    }
    m.choice = choose_thread_group(row_work(nest, along, most, iterations_of(nest, m.shared)));
    m.thread_group = m.choice.thread_group;
  }
  if (local > 0 && m.thread_group == 1 && local > 1024) m.thread_group = 32;
  m.block = m.columns > 1          ? m.columns * m.thread_group
            : m.thread_group > 32  ? m.thread_group
            : m.thread_group == 32 ? 128
                                   : 256;
  if (local > 0 && m.thread_group > 1) {
    if (m.thread_group == 32 && local * 4 > (std::int64_t{40} << 10))
      m.thread_group = m.block = 256;
    m.local_bytes = local * m.thread_groups_in_block();
  }
  m.thread_groups = 1;
  for (int l : m.shared) m.thread_groups *= nest.loops[l].extent;
  m.most_blocks =
      Mapping::times_over * device.multiprocessors * std::max(device.threads / m.block, 1);
  if (is_plain(nest, m)) {
    m.tile_loop = choose_tile_loop(nest, m);
    if (m.tile_loop < 0) m.vector = choose_vector(nest, m, device);
    else {
      m.tiles = 1;
      for (int l : m.shared) {
        const std::int64_t extent = nest.loops[l].extent;
        m.tiles *= l == m.tile_loop || l == m.shared.back() ? (extent + 31) / 32 : extent;
      }
    }
  }
  const auto far = [&](IndexId e) { return reach_of(nest, e) >= 2e9; };
  m.wide_indices = iterations_of(nest, m.shared) >= 2e9;
  for (const NestStage& s : nest.stages)
    m.wide_indices = m.wide_indices || iterations_of(nest, s.loops) >= 2e9;
  for (const NestValue& v : nest.values)
    m.wide_indices = m.wide_indices || (v.index >= 0 && far(v.index));
  for (const NestStore& s : nest.stores) m.wide_indices = m.wide_indices || far(s.index);
  return m;
}

std::string Mapping::str(const Nest& nest) const {
  std::string text = formatted("mapping: {} thread{} for an iteration of", thread_group,
                               thread_group == 1 ? "" : "s");
  if (shared.empty()) text += " all";
  for (int l : shared) text += formatted(" d{}", l);
  text += formatted(", blocks of {}", block);
  if (local_bytes) text += formatted(", {} bytes of shared memory", local_bytes);
  if (columns > 1) text += formatted(", {} beside each other", columns);
  if (tile_loop >= 0) text += formatted(", squares of d{} transposed in shared memory", tile_loop);
  if (vector > 1) text += formatted(", {} neighbours at a time", vector);
  if (updates == UpdatePlan::Way::atomic) text += ", atomic updates";
  if (nest.stages.size() > 1) text += formatted(", {} stages", nest.stages.size());
  if (choice.time > 0 && thread_group == choice.thread_group) text += "\nchosen: " + choice.str();
  return text + "\n";
}

}  // namespace vt::detail::cuda
