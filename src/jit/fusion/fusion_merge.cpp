// Merges groups of equations that can run as one kernel, and puts the groups in order.
#include <algorithm>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "fusion_groups.hpp"

namespace vt::detail {

namespace fusion_limits {

constexpr int most_buffers = 40;
constexpr int most_lone_weight = 10;  // work that may join a scan whose iterations run one by one

}  // namespace fusion_limits

int FusionPlanner::find(int g) const {
  while (leader_[g] != g) {
    int& up = leader_[g];
    up = leader_[up];
    g = up;
  }
  return g;
}

Vec<int> FusionPlanner::inputs_of(int group) const {
  Vec<int> result;
  listed_.resize(groups.size());
  ++last_list_;
  const auto add = [&](int g) {
    if (std::exchange(listed_[g], last_list_) != last_list_) result.push_back(g);
  };
  for (const FusionStage& s : groups[group].stages)
    for (const auto* reads : {&s.full_reads, &s.after_reads})
      for (const FusionRead& r : *reads) {
        const int d = definer_[r.var];
        if (d >= 0 && find(d) != group) add(find(d));
      }
  for (int part : groups[group].parts) add(find(part));
  if (const int before = groups[group].before; before >= 0) add(before);
  return result;
}

// Does `from` depend on `to`, other than by reading it directly (if skip_direct)?
bool FusionPlanner::reaches(int from, int to, int skip_direct) const {
  Vec<int> pending;
  marks_.resize(groups.size());
  const unsigned seen = ++last_mark_;
  // A group that, with all it depends on, comes before all of `to` cannot depend on it.
  const int earliest = first_[to];
  for (int g : inputs_of(from))
    if (!(skip_direct && g == to) && latest_[g] >= earliest) pending.push_back(g);
  while (!pending.empty()) {
    const int g = pending.back();
    pending.pop_back();
    if (g == to) return true;
    if (std::exchange(marks_[g], seen) == seen) continue;
    for (int i : inputs_of(g))
      if (latest_[i] >= earliest) pending.push_back(i);
  }
  return false;
}

// Whoever reads a group depends on its latest part, and so on.
void FusionPlanner::raise_latest(int group) {
  const int latest = latest_[group];
  Vec<int> pending{group};
  while (!pending.empty()) {
    const int g = pending.back();
    pending.pop_back();
    const auto raise = [&](int r) {
      int& known = latest_[r];
      if (known >= latest) return;
      known = latest;
      pending.push_back(r);
    };
    if (const int after = groups[g].after; after >= 0) raise(after);
    for (Var v : groups[g].parts_of) raise(definer_[v]);
    for (Var v : groups[g].defines)
      for (int reader : readers_[v]) raise(find(reader));
  }
}

namespace fusion_relations {

bool is_identity(const FusionRead& r, const Shape& domain, const Shape& shape) {
  if (!r.regular || static_cast<int>(r.axes.size()) != domain.rank() || shape != domain)
    return false;
  for (std::size_t i = 0; i < r.axes.size(); ++i)
    if (r.axes[i] != static_cast<int>(i) && domain[i] != 1) return false;
  return true;
}

// Axis i of the Var runs along the i-th kept axis.
bool is_row(const FusionRead& r, const FusionGroup& g, const Shape& shape) {
  if (!r.regular) return false;
  SmallVec<int, 6> kept;
  for (int a = 0; a < g.domain.rank(); ++a)
    if (!g.reduced.contains(a)) kept.push_back(a);
  if (r.axes.size() != kept.size() || r.axes.size() != shape.size()) return false;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (r.axes[i] != kept[i] && shape[i] != 1) return false;
  return true;
}

bool trailing(const FusionGroup& g) {
  for (std::size_t i = 0; i < g.reduced.size(); ++i)
    if (g.reduced[i] != g.domain.rank() - static_cast<int>(g.reduced.size()) + static_cast<int>(i))
      return false;
  return true;
}

}  // namespace fusion_relations

// Where `stage` of group b can go in group a: at the earliest stage at which what it reads of a is
// known. `as_after`: its stores become epilogues of that stage.
bool FusionPlanner::place_stage(const FusionGroup& a, int a_id, const FusionStage& stage,
                                const FusionGroup& b, int first_stage, int* at,
                                bool* as_after) const {
  using namespace fusion_relations;
  const bool same_domain =
      a.domain == b.domain && (!a.has_reductions || !b.has_reductions || a.reduced == b.reduced);
  const Shape kept_of_a = kept_shape(a);
  *as_after = !same_domain && a.has_reductions && !b.has_reductions && b.domain == kept_of_a;
  if (!same_domain && !*as_after) return false;
  FusionGroup frame;  // the axes by which reads are judged
  frame.domain = a.domain;
  frame.reduced = a.has_reductions ? a.reduced : b.reduced;
  int earliest = first_stage;
  const auto check = [&](const Vec<FusionRead>& reads, bool after) {
    for (const FusionRead& r : reads) {
      const int d = definer_[r.var];
      if (d < 0 || find(d) != a_id) continue;
      const PlaceInGroup& p = place_[r.var];
      const Shape& shape = graph_.aval(r.var).shape;
      if (after) {
        if (p.kind == PlaceInGroup::Kind::full || !is_identity(r, kept_shape(frame), shape))
          return false;
        earliest = std::max(earliest, p.stage);
      } else if (p.kind == PlaceInGroup::Kind::full) {
        if (!is_identity(r, frame.domain, shape)) return false;
        earliest = std::max(earliest, p.stage);
      } else {
        if (!is_row(r, frame, shape)) return false;
        earliest = std::max(earliest, p.stage + 1);
      }
    }
    return true;
  };
  if (*as_after) {
    if (!check(stage.full_reads, true)) return false;
  } else if (!check(stage.full_reads, false) || !check(stage.after_reads, true)) {
    return false;
  }
  if (earliest >= static_cast<int>(a.stages.size())) {
    // A new stage: rows must be whole in the inner loops, and there must be enough of them to run
    // in parallel.
    if (*as_after || !trailing(frame) || a.slides || b.slides) return false;
    const std::int64_t rows = kept_shape(frame).elements();
    if (rows < 16 && frame.domain.elements() > 65536) return false;
  }
  *at = earliest;
  return true;
}

bool FusionPlanner::try_merge(int producer, int consumer) {
  FusionGroup& a = groups[producer];
  FusionGroup& b = groups[consumer];
  if (a.equation >= 0 || b.equation >= 0 || a.weight + b.weight > most_fused_weight) return false;
  Vec<Var> buffers;
  for (const FusionGroup* g : {&a, &b}) {
    for (const FusionStage& s : g->stages)
      for (const auto* reads : {&s.full_reads, &s.after_reads})
        for (const FusionRead& r : *reads)
          if (std::find(buffers.begin(), buffers.end(), r.var) == buffers.end())
            buffers.push_back(r.var);
    for (const auto* written : {&g->defines, &g->parts_of})
      for (Var v : *written)
        if (std::find(buffers.begin(), buffers.end(), v) == buffers.end()) buffers.push_back(v);
  }
  if (static_cast<int>(buffers.size()) > fusion_limits::most_buffers) return false;
  if (a.direction * b.direction < 0) return false;
  if ((a.lone && b.weight > fusion_limits::most_lone_weight) ||
      (b.lone && a.weight > fusion_limits::most_lone_weight))
    return false;
  // Dot products pair badly with others: their loops are ordered for them alone. Epilogues are
  // fine.
  const auto has_dot = [&](const FusionGroup& g) {
    for (const FusionStage& s : g.stages)
      for (int r : s.reductions)
        if (graph_.equations[r].op == Op::dot_general) return true;
    return false;
  };
  Vec<std::pair<int, bool>> places;
  int at = 0;
  for (const FusionStage& s : b.stages) {
    bool after = false;
    if (!place_stage(a, producer, s, b, at, &at, &after)) return false;
    if (!after && (has_dot(a) || has_dot(b))) return false;
    // A later stage of b that would have to join an existing one may read b's earlier stages: keep
    // their order apart.
    places.push_back({at, after});
    if (b.stages.size() > 1) {
      if (at < static_cast<int>(a.stages.size())) return false;
      ++at;
    }
  }
  if (reaches(consumer, producer, true) || reaches(producer, consumer, false)) return false;
  for (std::size_t k = 0; k < b.stages.size(); ++k) {
    FusionStage& from = b.stages[k];
    const int stage = places[k].first;
    const bool after = places[k].second;
    if (stage >= static_cast<int>(a.stages.size()))
      a.stages.resize(static_cast<std::size_t>(stage) + 1);
    FusionStage& to = a.stages[stage];
    const auto move = [&](Vec<FusionRoot>& roots, Vec<FusionRoot>& into, PlaceInGroup::Kind kind) {
      for (const FusionRoot& r : roots) {
        into.push_back(r);
        if (r.axis < 0) place_[r.value] = {producer, stage, kind};
      }
    };
    if (after) {
      move(from.full, to.after, PlaceInGroup::Kind::after);
      to.after_reads.append(from.full_reads.begin(), from.full_reads.end());
    } else {
      move(from.full, to.full, PlaceInGroup::Kind::full);
      move(from.after, to.after, PlaceInGroup::Kind::after);
      for (int r : from.reductions) {
        to.reductions.push_back(r);
        const Equation& e = graph_.equations[r];
        for (Var v : e.outputs) place_[v] = {producer, stage, place_kind(e)};
      }
      to.full_reads.append(from.full_reads.begin(), from.full_reads.end());
      to.after_reads.append(from.after_reads.begin(), from.after_reads.end());
    }
  }
  if (b.has_reductions) {
    a.has_reductions = true;
    a.reduced = b.reduced;
  }
  if (a.direction == 0) a.direction = b.direction;
  a.lone = a.lone || b.lone;
  a.slides = a.slides || b.slides;
  a.weight += b.weight;
  a.defines.append(b.defines.begin(), b.defines.end());
  a.parts_of.append(b.parts_of.begin(), b.parts_of.end());
  b.alive = false;
  leader_[consumer] = producer;
  first_[producer] = std::min(first_[producer], first_[consumer]);
  latest_[producer] = std::max(latest_[producer], latest_[consumer]);
  raise_latest(producer);
  return true;
}

void FusionPlanner::merge_all() {
  // Producers into consumers, in order; a merged group may be merged further with the next
  // consumer.
  for (int b = 0; b < static_cast<int>(groups.size()); ++b) {
    for (bool again = true; again;) {
      again = false;
      const int consumer = find(b);
      for (int a : inputs_of(consumer))
        if (try_merge(a, consumer)) {
          again = true;
          break;
        }
    }
  }
  // Neighbours that read the same: each large array is then read once.
  Vec<int> last_reader(graph_.avals.size(), -1);
  for (int b = 0; b < static_cast<int>(groups.size()); ++b) {
    if (!groups[b].alive || groups[b].equation >= 0) continue;
    Vec<Var> read;
    for (const FusionStage& s : groups[b].stages)
      for (const FusionRead& r : s.full_reads)
        if (graph_.aval(r.var).elements() > 1 || groups[b].domain.elements() <= 1)
          read.push_back(r.var);
    int here = b;
    for (Var v : read) {
      const int other = last_reader[v] < 0 ? -1 : find(last_reader[v]);
      if (other >= 0 && other != here && groups[other].alive && try_merge(other, here)) {
        here = other;
        break;
      }
    }
    for (Var v : read) last_reader[v] = here;
  }
}

void FusionPlanner::mark_kept() {
  for (std::size_t v = 0; v < kept.size(); ++v) kept[v] = is_output_[v];
  for (int g = 0; g < static_cast<int>(groups.size()); ++g) {
    if (!groups[g].alive) continue;
    const auto& stages = groups[g].stages;
    for (std::size_t s = 0; s < stages.size(); ++s)
      for (const auto* reads : {&stages[s].full_reads, &stages[s].after_reads})
        for (const FusionRead& r : *reads) {
          const PlaceInGroup& p = place_[r.var];
          const bool in_register =
              p.group >= 0 && find(p.group) == g &&
              (p.kind != PlaceInGroup::Kind::full || p.stage == static_cast<int>(s));
          if (!in_register) kept[r.var] = 1;
        }
  }
}

void FusionPlanner::sort_groups() {
  const std::size_t count = groups.size();
  enum : char { unseen, open, done };
  Vec<char> state(count, unseen);
  // Depth first from each group in turn; recursion is replaced by a stack, as Graphs may be deep.
  for (std::size_t start = 0; start < count; ++start) {
    if (!groups[start].alive || state[start] == done) continue;
    Vec<std::pair<int, Vec<int>>> path;
    path.push_back({static_cast<int>(start), inputs_of(static_cast<int>(start))});
    state[start] = open;
    while (!path.empty()) {
      auto& [g, inputs] = path.back();
      if (inputs.empty()) {
        state[g] = done;
        order.push_back(g);
        path.pop_back();
        continue;
      }
      const int next = inputs.back();
      inputs.pop_back();
      if (state[next] == done) continue;
      if (state[next] == open)
        fail(ErrorKind::backend, "internal: fused groups depend on each other", {});
      state[next] = open;
      path.push_back({next, inputs_of(next)});
    }
  }
}

// What updates an array goes behind what reads it, unless that depends on the update: then it may
// be written where it lies.
void FusionPlanner::put_updates_last() {
  constexpr std::size_t farthest = 256;
  Vec<std::size_t> place(groups.size(), 0);
  const auto put = [&](std::size_t at, int g) {
    order[at] = g;
    place[g] = at;
  };
  for (std::size_t i = 0; i < order.size(); ++i) put(i, order[i]);
  for (std::size_t i = order.size(); i-- > 0;) {
    const int g = order[i], equation = groups[g].equation;
    if (equation < 0) continue;
    const Equation& e = graph_.equations[equation];
    if (!is_update(e.op)) continue;
    std::size_t last = i;
    for (int reader : readers_[base_of(e.inputs[0])]) {
      const int r = find(reader);
      const std::size_t at = place[r];
      if (at > last && at - i <= farthest && !reaches(r, g, 0)) last = at;
    }
    Vec<int> behind{g};  // and what depends on it
    std::size_t next = i;
    for (std::size_t k = i + 1; k <= last; ++k) {
      const int other = order[k];
      const bool depends = any_of(inputs_of(other), [&](int in) {
        return std::find(behind.begin(), behind.end(), in) != behind.end();
      });
      if (depends) behind.push_back(other);
      else put(next++, other);
    }
    for (int b : behind) put(next++, b);
  }
}

}  // namespace vt::detail
