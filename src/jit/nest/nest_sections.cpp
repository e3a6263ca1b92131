// Sections: parts of a loop inside which conditions on its position are known, as left by padding,
// concatenation and slices of a sum.
#include "nest_sections.hpp"

#include <algorithm>

#include <vt/detail/loops.hpp>

namespace vt::detail {

namespace nest_sections {

constexpr std::size_t most_sections = 16;
/// A section costs about as much as a few iterations: a vector that a condition cuts has one of its
/// own only in loops of so many vectors.
constexpr std::int64_t worth_cutting = 8;

/// The iterations of `loop` in which an in_range value holds: [from, to). False if it depends on
/// anything else.
bool iterations_of(const Nest& nest, const NestValue& v, int loop, std::int64_t& from,
                   std::int64_t& to) {
  if (v.kind != NestValue::Kind::in_range) return false;
  const IndexExpr& e = nest.indices[v.index];
  if (e.terms.size() != 1 || e.terms[0].factor <= 0) return false;
  const IndexAtom& a = nest.indices.atom(e.terms[0].atom);
  if (a.kind != IndexAtom::Kind::loop || a.id != loop) return false;
  const std::int64_t factor = e.terms[0].factor;
  // the first iteration whose index is no less
  const auto first_at_least = [&](std::int64_t bound) {
    const std::int64_t distance = bound - e.constant;
    return distance <= 0 ? 0 : (distance + factor - 1) / factor;
  };
  from = first_at_least(v.low), to = std::max(first_at_least(v.high), from);
  return true;
}

bool is_bool(const NestValue& v, bool which) {
  return v.kind == NestValue::Kind::literal && v.dtype == DType::bool_ &&
         (v.literal.natural != 0) == which;
}

}  // namespace nest_sections

Nest section_of(const Nest& nest, int loop, std::int64_t first, std::int64_t last) {
  using namespace nest_sections;
  const NestLoop& whole = nest.loops[loop];
  if (last < 0 && !whole.runtime) last = whole.extent;
  Nest section = nest;
  Vec<int> instead(nest.values.size(), -1);  // what stands for a value now
  for (std::size_t k = 0; k < instead.size(); ++k) instead[k] = static_cast<int>(k);
  const auto become = [&](NestValue& v, const Scalar& s) {
    NestValue literal;
    literal.kind = NestValue::Kind::literal;
    literal.dtype = v.dtype;
    literal.literal = s;
    v = std::move(literal);
  };
  const auto value = [&](int v) -> const NestValue& { return section.values[v]; };
  for (std::size_t k = 0; k < instead.size(); ++k) {
    NestValue& v = section.values[k];
    for (int& o : v.operands) o = instead[o];
    if (v.mask >= 0) v.mask = instead[v.mask];
    std::int64_t from = 0, to = 0;
    if (iterations_of(nest, nest.values[k], loop, from, to)) {
      const bool inside = from <= first && (to >= last && last >= 0),
                 outside = to <= first || (last >= 0 && from >= last);
      if (inside || outside) become(v, Scalar(inside));
      continue;
    }
    if (v.kind == NestValue::Kind::load && v.mask >= 0) {
      if (is_bool(value(v.mask), true)) v.mask = -1;
      else if (is_bool(value(v.mask), false)) become(v, Scalar(0).converted(v.dtype));
      continue;
    }
    if (v.kind != NestValue::Kind::op || v.operands.empty()) continue;
    const int head = v.operands[0];
    if (v.op == Op::select && is_bool(value(head), true)) instead[k] = v.operands[1];
    else if (v.op == Op::select && is_bool(value(head), false)) instead[k] = v.operands[2];
    else if (v.op == Op::and_ && v.dtype == DType::bool_) {
      for (int i : {0, 1}) {
        const int one = v.operands[i], other = v.operands[1 - i];
        if (is_bool(value(one), false)) instead[k] = one;
        else if (is_bool(value(one), true)) instead[k] = other;
      }
    }
  }
  for (NestStore& s : section.stores) {
    s.value = instead[s.value];
    if (s.mask >= 0) s.mask = instead[s.mask];
  }
  return section;
}

SmallVec<std::int64_t, 16> section_borders(const Nest& nest, int loop, const Vec<int>& roots,
                                           std::int64_t aligned) {
  using namespace nest_sections;
  SmallVec<std::int64_t, 16> borders{0};
  const Vec<int> needed = needed_values(nest, roots);
  const NestLoop& l = nest.loops[loop];
  for (int id : needed) {
    std::int64_t from = 0, to = 0;
    if (!iterations_of(nest, nest.values[id], loop, from, to)) continue;
    for (std::int64_t change : {from, to}) {
      // A vector that is cut has a section of its own, in which the condition stays.
      const std::int64_t below = change / aligned * aligned;
      if (below != change && !l.runtime && l.extent < worth_cutting * aligned) return {};
      for (std::int64_t border : {below, below == change ? change : below + aligned}) {
        if (border <= 0 || (!l.runtime && border >= l.extent) ||
            std::find(borders.begin(), borders.end(), border) != borders.end())
          continue;
        if (borders.size() == most_sections) return {};
        borders.push_back(border);
      }
    }
  }
  if (borders.size() == 1) return {};
  insertion_sort(borders);
  std::size_t code = 0;
  for (std::size_t k = 0; k < borders.size(); ++k) {
    const Nest section =
        section_of(nest, loop, borders[k], k + 1 < borders.size() ? borders[k + 1] : -1);
    Vec<int> wanted;
    for (const NestStore& s : section.stores) add_roots(section, s, wanted);
    code += needed_values(section, wanted).size();
  }
  if (code > 2 * needed.size() + 16) return {};
  return borders;
}

}  // namespace vt::detail
