// How a loop nest's loops are shared out among the blocks and threads of a kernel.
#include "mapping.hpp"

#include <algorithm>
#include <cmath>

#include <vt/detail/loops.hpp>
#include <vt/detail/message.hpp>

#include "../schedule.hpp"
#include "scatter.hpp"

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
      const NestLoop& l = nest.loops[static_cast<std::size_t>(a.id)];
      most = static_cast<double>(std::max(l.extent, l.total));
    } else if (a.kind == IndexAtom::Kind::value) {
      most = static_cast<double>(nest.indices.limit_of_value(a.id));
    } else {
      most = std::max(reach_of(nest, a.of), static_cast<double>(a.by));  // what is divided has the type of an index, too
    }
    reach += most * std::abs(static_cast<double>(t.factor));
  }
  return reach;
}

// Rows of so many elements get so many threads.
int team_for(double elements, double rows) {
  if (elements <= 4 || (elements <= 32 && rows >= 1e5)) return 1;
  if (elements <= 1024 || (elements <= 4096 && rows >= 4096)) return 32;
  return elements <= 16384 ? 256 : 512;
}

}  // namespace nest_mapping

double rounds_of(const Nest& nest, const SmallVec<int, 6>& loops) {
  double n = 1;
  for (int l : loops) n *= static_cast<double>(nest.loops[static_cast<std::size_t>(l)].extent);
  return n;
}

Mapping choose_mapping(const Nest& nest, bool unique) {
  using namespace nest_mapping;
  Mapping m;
  const Schedule cpu = choose_schedule(nest, 64);  // whose directions of reductions and loops of updates hold here too
  const bool updates = any_of(nest.stores, [](const NestStore& s) { return s.update != Op::input; });
  m.shared = nest.shared;
  bool folds = false;
  for (const NestReduction& r : nest.reductions) folds = folds || r.op == ReduceOp::fold;
  std::int64_t local = 0;
  for (const NestBuffer& b : nest.buffers) local += (b.local * static_cast<std::int64_t>(size_of(b.dtype)) + 15) / 16 * 16;
  if (updates) {
    const UpdatePlan plan = plan_updates(nest, unique);
    m.updates = plan.way;
    if (plan.way != UpdatePlan::Way::in_order) m.shared = nest.stages[0].loops;
    else if (!plan.window_loops.empty()) m.shared = plan.window_loops;
    else if (cpu.parallel_loop >= 0) m.shared.push_back(cpu.parallel_loop);
  } else if (nest.stages.size() == 1) {
    SmallVec<int, 6> reduced;
    for (int l : nest.stages[0].loops) {
      if (nest.loops[static_cast<std::size_t>(l)].reduce) reduced.push_back(l);
      else m.shared.push_back(l);
    }
    const bool vertical = cpu.stages[0].mode == StageSchedule::Mode::vertical;
    if (!nest.reductions.empty() && !folds && !vertical) m.team = team_for(rounds_of(nest, reduced), rounds_of(nest, m.shared));
    // A block's extent depends on the number of its block, which is then known first.
    insertion_sort(m.shared, [&](int a, int b) {
      const auto inner = [&](int l) { return nest.loops[static_cast<std::size_t>(l)].block_of >= 0; };
      return !inner(a) && inner(b);
    });
  } else {
    double most = 1;
    for (const NestStage& s : nest.stages) most = std::max(most, rounds_of(nest, s.loops));
    m.team = team_for(most, rounds_of(nest, m.shared));
  }
  if (local > 0 && m.team == 1 && local > 1024) m.team = 32;
  m.block = m.team > 32 ? m.team : m.team == 32 ? 128 : 256;
  if (local > 0 && m.team > 1) {
    if (m.team == 32 && local * 4 > (std::int64_t{40} << 10)) m.team = m.block = 256;
    m.local_bytes = local * m.teams_in_block();
  }
  m.teams = 1;
  for (int l : m.shared) m.teams *= nest.loops[static_cast<std::size_t>(l)].extent;
  const auto far = [&](IndexId e) { return reach_of(nest, e) >= 2e9; };
  m.wide_indices = rounds_of(nest, m.shared) >= 2e9;
  for (const NestStage& s : nest.stages) m.wide_indices = m.wide_indices || rounds_of(nest, s.loops) >= 2e9;
  for (const NestValue& v : nest.values) m.wide_indices = m.wide_indices || (v.index >= 0 && far(v.index));
  for (const NestStore& s : nest.stores) m.wide_indices = m.wide_indices || far(s.index);
  return m;
}

std::string Mapping::str(const Nest& nest) const {
  std::string text = worded("mapping: {} thread{} for a round of", team, team == 1 ? "" : "s");
  if (shared.empty()) text += " all";
  for (int l : shared) text += worded(" d{}", l);
  text += worded(", blocks of {}", block);
  if (local_bytes) text += worded(", {} bytes of shared memory", local_bytes);
  if (updates == UpdatePlan::Way::atomic) text += ", atomic updates";
  if (nest.stages.size() > 1) text += worded(", {} stages", nest.stages.size());
  return text + "\n";
}

}  // namespace vt::detail::cuda
