// Rewriting of whole loop nests: joining adjacent loops, splitting loops at divisions,
// cutting long reductions.
#include "nest_transform.hpp"

#include <algorithm>

#include "nest_sections.hpp"
#include "schedule.hpp"

namespace vt::detail {

namespace nest_rewriting {

// Calls f(index expression) for every one in use.
template <class F>
void each_index(Nest& nest, const F& f) {
  for (NestValue& v : nest.values)
    if (v.index >= 0) f(v.index);
  for (NestStore& s : nest.stores) f(s.index);
  for (NestReduction& r : nest.reductions)
    if (r.kept >= 0) f(r.kept);
}

// Outer loop a directly around loop b become one if each index sees a · (extent of b) + b.
bool joinable(Nest& nest, int a, int b) {
  const NestLoop &outer = nest.loops[a], &inner = nest.loops[b];
  if (outer.reduce != inner.reduce || inner.runtime || outer.block_of >= 0 || inner.block_of >= 0)
    return false;
  bool good = true;
  each_index(nest, [&](IndexId e) {
    if (!good) return;
    const IndexTable& t = nest.indices;
    good = !t.loop_inside_division(e, a) && !t.loop_inside_division(e, b) &&
           t.factor_of_loop(e, a) == t.factor_of_loop(e, b) * inner.extent;
  });
  return good;
}

void join(Nest& nest, int a, int b) {
  NestLoop& inner = nest.loops[b];
  const NestLoop& outer = nest.loops[a];
  inner.extent *= outer.extent;
  inner.runtime = outer.runtime;
  nest.indices.loop(b, inner.runtime ? IndexTable::unbounded : inner.extent);
  Vec<IndexId> replacement(nest.loops.size(), -1);
  replacement[a] = nest.indices.constant(0);
  substitute_loops(nest, replacement);
}

void join_in(Nest& nest, SmallVec<int, 6>& list) {
  // Reduce loops run inside the others, so they are neighbours of each other only.
  for (std::size_t i = 0; i + 1 < list.size();) {
    if (joinable(nest, list[i], list[i + 1])) {
      join(nest, list[i], list[i + 1]);
      list.erase(list.begin() + i);
      if (i > 0) --i;
    } else {
      ++i;
    }
  }
}

// A loop d whose variable occurs as (f·d + …)/k or %k with f | k is split into
// d = (k/f)·outer + inner.
struct Cut {
  int loop = -1;
  std::int64_t by = 0;
};
Cut find_cut(Nest& nest) {
  Cut best;
  const auto look = [&](const auto& self, IndexId e) -> void {
    for (const IndexTerm& term : nest.indices[e].terms) {
      const IndexAtom& a = nest.indices.atom(term.atom);
      if (a.kind == IndexAtom::Kind::loop || a.kind == IndexAtom::Kind::value) continue;
      for (const IndexTerm& inner : nest.indices[a.of].terms) {
        const IndexAtom& l = nest.indices.atom(inner.atom);
        if (l.kind != IndexAtom::Kind::loop || inner.factor <= 0 || a.by % inner.factor != 0)
          continue;
        const NestLoop& loop = nest.loops[l.id];
        const std::int64_t by = a.by / inner.factor;
        if (by > 1 && loop.extent > by && loop.extent % by == 0 && loop.block_of < 0 &&
            (best.loop < 0 || by < best.by))
          best = {l.id, by};
      }
      self(self, a.of);
    }
  };
  each_index(nest, [&](IndexId e) { look(look, e); });
  return best;
}

}  // namespace nest_rewriting

void substitute_loops(Nest& nest, const Vec<IndexId>& replacement) {
  nest_rewriting::each_index(nest,
                             [&](IndexId& e) { e = nest.indices.substitute(e, replacement); });
}

int split_loop(Nest& nest, int loop, std::int64_t by) {
  NestLoop inner;
  NestLoop& outer = nest.loops[loop];
  inner.extent = by;
  inner.reduce = outer.reduce;
  outer.extent /= by;
  const int fresh = static_cast<int>(nest.loops.size());
  const bool runtime = outer.runtime;
  const std::int64_t iterations = outer.extent;
  nest.loops.push_back(inner);
  const IndexId high = nest.indices.loop(loop, runtime ? IndexTable::unbounded : iterations);
  const IndexId low = nest.indices.loop(fresh, by);
  Vec<IndexId> replacement(nest.loops.size(), -1);
  replacement[loop] = nest.indices.add(nest.indices.scale(high, by), low);
  substitute_loops(nest, replacement);
  const auto place = [&](SmallVec<int, 6>& list) {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i] == loop) {
        list.insert(list.begin() + i + 1, fresh);
        if (iterations == 1 && !runtime) list.erase(list.begin() + i);
        return;
      }
  };
  place(nest.shared);
  for (NestStage& s : nest.stages) place(s.loops);
  return fresh;
}

void join_by_division(Nest& nest, int outer, int inner) {
  const std::int64_t by = nest.loops[inner].extent;
  NestLoop& joined = nest.loops[inner];
  joined.extent *= nest.loops[outer].extent;
  joined.runtime = nest.loops[outer].runtime;
  const IndexId both =
      nest.indices.loop(inner, joined.runtime ? IndexTable::unbounded : joined.extent);
  Vec<IndexId> replacement(nest.loops.size(), -1);
  replacement[outer] = nest.indices.quotient(both, by);
  replacement[inner] = nest.indices.remainder(both, by);
  substitute_loops(nest, replacement);
  const auto drop = [&](SmallVec<int, 6>& list) {
    for (std::size_t i = list.size(); i-- > 0;)
      if (list[i] == outer) list.erase(list.begin() + i);
  };
  drop(nest.shared);
  for (NestStage& s : nest.stages) drop(s.loops);
}

void normalise_loops(Nest& nest) {
  // A few splits suffice for reshapes; more mean an irregular pattern that splitting does not help.
  for (int iteration = 0; iteration < 6 && nest.loops.size() < 40; ++iteration) {
    const nest_rewriting::Cut cut = nest_rewriting::find_cut(nest);
    if (cut.loop < 0) break;
    split_loop(nest, cut.loop, cut.by);
  }
  nest_rewriting::join_in(nest, nest.shared);
  for (NestStage& s : nest.stages) nest_rewriting::join_in(nest, s.loops);
}

int cut_loop(Nest& nest, int loop, std::int64_t block) {
  NestLoop& inner = nest.loops[loop];
  NestLoop outer;
  outer.extent = (inner.extent + block - 1) / block;
  outer.runtime = inner.runtime;
  const int fresh = static_cast<int>(nest.loops.size());
  inner.total = inner.extent;
  inner.block_of = fresh;
  inner.block = block;
  inner.extent = std::min(inner.extent, block);
  nest.loops.push_back(outer);
  const IndexId high =
      nest.indices.loop(fresh, outer.runtime ? IndexTable::unbounded : outer.extent);
  const IndexId low = nest.indices.loop(loop, block);
  Vec<IndexId> replacement(nest.loops.size(), -1);
  replacement[loop] = nest.indices.add(nest.indices.scale(high, block), low);
  substitute_loops(nest, replacement);
  SmallVec<int, 6>& list = nest.stages[0].loops;
  list.insert(list.begin(), fresh);
  return fresh;
}

namespace short_loops {

// iterations of the longer loop: vectors of which fewer SIMD lanes count, too, as each jumps
// otherwise
constexpr std::int64_t fewest_simd_lanes = 6;

int find(const Nest& nest) {
  if (nest.stages.size() != 1 || !nest.shared.empty() || !nest.reductions.empty() ||
      nest.stores.empty())
    return -1;
  const auto lie = [&](int loop, std::int64_t step) {
    return all_of(nest.stores, [&](const NestStore& s) {
      return s.update == Op::input && nest.indices.factor_of_loop(s.index, loop) == step &&
             !nest.indices.loop_inside_division(s.index, loop);
    });
  };
  const auto loop_of = [&](int l) -> const NestLoop& { return nest.loops[l]; };
  for (int l : nest.stages[0].loops) {
    const NestLoop& inner = loop_of(l);
    if (inner.runtime || inner.block_of >= 0 || inner.extent < 2 ||
        inner.extent > most_interleaved || !lie(l, 1))
      continue;
    for (int longer : nest.stages[0].loops)
      if (loop_of(longer).block_of < 0 && loop_of(longer).extent >= fewest_simd_lanes &&
          lie(longer, inner.extent))
        return l;
  }
  return -1;
}

bool equal(const NestValue& a, const NestValue& b) {
  return a.kind == b.kind && a.kind != NestValue::Kind::literal && a.op == b.op &&
         a.dtype == b.dtype && a.operands == b.operands && a.params.get() == b.params.get() &&
         a.argument == b.argument && a.buffer == b.buffer && a.index == b.index &&
         a.mask == b.mask && a.low == b.low && a.high == b.high;
}

Vec<int> stored_values(const Nest& nest) {
  Vec<int> roots;
  for (const NestStore& s : nest.stores) add_roots(nest, s, roots);
  return needed_values(nest, roots);
}

}  // namespace short_loops

void unroll_short_loop(Nest& nest) {
  const int loop = short_loops::find(nest);
  if (loop < 0) return;
  // places that are values themselves go by those values' numbers, which would change
  bool computed = false;
  for (const NestValue& v : nest.values)
    if (v.index >= 0) nest.indices.each_value(v.index, [&](int) { computed = true; });
  for (const NestStore& s : nest.stores)
    nest.indices.each_value(s.index, [&](int) { computed = true; });
  if (computed) return;
  const Vec<std::uint64_t> dependences = loop_dependences(nest);
  const std::size_t most_code = 2 * short_loops::stored_values(nest).size() + 16;
  const std::int64_t iterations = nest.loops[loop].extent;
  Vec<int> same(nest.values.size(), -1);  // where values are that the loop does not change
  Vec<NestValue> values;
  Vec<NestStore> stores;
  IndexTable indices = nest.indices;
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
    const Nest one =
        section_of(nest, loop, iteration, iteration + 1 < iterations ? iteration + 1 : -1);
    Vec<IndexId> here(nest.loops.size(), -1);
    here[loop] = indices.constant(iteration);
    Vec<int> copies = same;
    for (int id : short_loops::stored_values(one)) {
      const std::size_t k = id;
      if (copies[k] >= 0) continue;
      NestValue v = one.values[k];
      for (int& o : v.operands) o = copies[o];
      if (v.mask >= 0) v.mask = copies[v.mask];
      if (v.index >= 0) v.index = indices.substitute(v.index, here);
      std::size_t at = 0;
      while (at < values.size() && !short_loops::equal(values[at], v)) ++at;
      if (at == values.size()) values.push_back(std::move(v));
      copies[k] = static_cast<int>(at);
      if (!((dependences[k] >> loop) & 1u)) same[k] = copies[k];
    }
    for (NestStore s : one.stores) {
      s.value = copies[s.value];
      s.index = indices.substitute(s.index, here);
      stores.push_back(s);
    }
  }
  if (values.size() > most_code) return;
  nest.indices = std::move(indices);
  nest.values = std::move(values);
  nest.stores = std::move(stores);
  SmallVec<int, 6>& loops = nest.stages[0].loops;
  loops.erase(std::find(loops.begin(), loops.end(), loop));
}

void keep_buffers(Nest& nest, Vec<Var>& behind, const Vec<int>& order) {
  Vec<int> renamed(nest.buffers.size(), -1);
  Vec<NestBuffer> buffers;
  Vec<Var> vars;
  for (int b : order) {
    renamed[b] = static_cast<int>(buffers.size());
    buffers.push_back(nest.buffers[b]);
    vars.push_back(behind[b]);
  }
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const int alias = renamed[buffers[b].alias];
    buffers[b].alias = alias < 0 ? static_cast<int>(b) : alias;
  }
  for (NestValue& v : nest.values)
    if (v.kind == NestValue::Kind::load && v.buffer >= 0) v.buffer = renamed[v.buffer];
  for (NestStore& s : nest.stores) s.buffer = renamed[s.buffer];
  nest.buffers = std::move(buffers);
  behind = std::move(vars);
}

namespace in_place {

// May the result of store `s` take the memory of operand `r`?
bool fits(const Nest& nest, const NestStore& s, std::size_t r) {
  const std::size_t w = s.buffer;
  if (nest.buffers[r].written || nest.buffers[r].alias != static_cast<int>(r) || r == w)
    return false;
  if (size_of(nest.buffers[r].dtype) != size_of(nest.buffers[w].dtype)) return false;
  for (const NestValue& v : nest.values)
    if (v.kind == NestValue::Kind::load && v.buffer == static_cast<int>(r) && v.index != s.index)
      return false;
  for (const NestBuffer& b : nest.buffers)
    if (&b != &nest.buffers[r] && b.alias == static_cast<int>(r)) return false;
  return true;
}

}  // namespace in_place

void find_updates_in_place(Nest& nest, std::span<const int> wanted) {
  if (nest.stages.size() > 1) return;
  for (std::size_t b = 0; b < wanted.size(); ++b)
    if (nest.buffers[b].written) nest.buffers[b].alias = static_cast<int>(b);
  for (const bool first : {true, false})
    for (const NestStore& s : nest.stores) {
      const std::size_t w = s.buffer;
      int stores = 0;
      for (const NestStore& other : nest.stores) stores += other.buffer == s.buffer;
      bool reads_result = false;
      for (const NestValue& v : nest.values)
        reads_result = reads_result || (v.kind == NestValue::Kind::load && v.buffer == s.buffer);
      if (stores != 1 || reads_result || nest.buffers[w].alias != s.buffer) continue;
      const int best = w < wanted.size() ? wanted[w] : -1;
      for (std::size_t r = 0; r < nest.buffers.size(); ++r) {
        if (first && static_cast<int>(r) != best) continue;
        if (!in_place::fits(nest, s, r)) continue;
        nest.buffers[w].alias = static_cast<int>(r);
        break;
      }
    }
}

}  // namespace vt::detail
