// How far an index moves from one SIMD lane to the next, and which arrays are contiguous along
// another loop.
#include "schedule.hpp"

#include <algorithm>

namespace vt::detail {

SimdStep simd_step(const Nest& nest, IndexId index, int loop, int simd_lanes,
                   const Vec<std::uint64_t>& dependences) {
  SimdStep total{true, 0};
  const std::uint64_t bit = std::uint64_t{1} << loop;
  for (const IndexTerm& t : nest.indices[index].terms) {
    const IndexAtom& a = nest.indices.atom(t.atom);
    switch (a.kind) {
      case IndexAtom::Kind::loop:
        if (a.id == loop) total.step += t.factor;
        break;
      case IndexAtom::Kind::value:
        if (dependences[a.id] & bit) return {};
        break;
      default: {
        const SimdStep inner = simd_step(nest, a.of, loop, simd_lanes, dependences);
        if (!inner.regular) return {};
        if (inner.step == 0) break;
        // Vectors start at multiples of `simd_lanes`. If everything else is a multiple of what a
        // vector spans, and so is the divisor, then no vector crosses a border.
        const std::int64_t span = inner.step * simd_lanes;
        const IndexExpr& e = nest.indices[a.of];
        bool aligned = span > 0 && a.by % span == 0 && e.constant % span == 0;
        for (const IndexTerm& other : e.terms) {
          const IndexAtom& o = nest.indices.atom(other.atom);
          if (!(o.kind == IndexAtom::Kind::loop && o.id == loop))
            aligned = aligned && other.factor % span == 0;
        }
        if (!aligned) return {};
        if (a.kind == IndexAtom::Kind::remainder) total.step += t.factor * inner.step;
      }
    }
  }
  return total;
}

SmallVec<const NestStore*, 4> interleaved_with(const Nest& nest, const NestStore& s, int loop,
                                               int simd_lanes,
                                               const Vec<std::uint64_t>& dependences) {
  if (s.update != Op::input || loop < 0) return {};
  const SimdStep step = simd_step(nest, s.index, loop, simd_lanes, dependences);
  if (!step.regular || step.step < 2 || step.step > most_interleaved) return {};
  const IndexExpr& own = nest.indices[s.index];
  std::int64_t first = own.constant, count = 0;
  const auto beside = [&](const NestStore& other) {
    return other.buffer == s.buffer && other.stage == s.stage && other.after == s.after &&
           other.update == Op::input && nest.indices[other.index].terms == own.terms;
  };
  for (const NestStore& other : nest.stores) {
    if (!beside(other)) continue;
    ++count;
    first = std::min(first, nest.indices[other.index].constant);
  }
  SmallVec<const NestStore*, 4> all(static_cast<std::size_t>(step.step), nullptr);
  if (count != step.step) return {};
  for (const NestStore& other : nest.stores) {
    if (!beside(other)) continue;
    const std::int64_t place = nest.indices[other.index].constant - first;
    if (place >= step.step || all[place]) return {};
    all[place] = &other;
  }
  return all;
}

bool lies_transposed(const Nest& nest, IndexId index, const StageSchedule& s, int simd_lanes,
                     const Vec<std::uint64_t>& dependences) {
  if (s.tile_loop < 0) return false;
  const SimdStep along = simd_step(nest, index, s.vector_loop, simd_lanes, dependences);
  const SimdStep across = simd_step(nest, index, s.tile_loop, simd_lanes, dependences);
  // Rows of the tile are found by stepping along the vector loop, so that step must be known.
  return along.regular && (along.step > 4 || along.step < -1) && across.regular &&
         across.step == 1 && nest.indices.factor_of_loop(index, s.vector_loop) == along.step &&
         !nest.indices.loop_inside_division(index, s.vector_loop);
}

bool reads_transposed(const Nest& nest, const NestValue& v, const StageSchedule& s, int simd_lanes,
                      const Vec<std::uint64_t>& dependences) {
  if (v.kind != NestValue::Kind::load || s.tile_loop < 0) return false;
  // A mask is one for the whole tile.
  const std::uint64_t both = std::uint64_t{1} << s.vector_loop | std::uint64_t{1} << s.tile_loop;
  if (v.mask >= 0 && (dependences[v.mask] & both) != 0) return false;
  return lies_transposed(nest, v.index, s, simd_lanes, dependences);
}

}  // namespace vt::detail
