// Index expressions of loop nests: affine sums of loop variables and computed indices with floor
// division and remainder, kept unique and simplified.
#include "index_table.hpp"

#include <algorithm>
#include <numeric>

#include <vt/detail/small_vec.hpp>

namespace vt::detail {

namespace index_math {

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a - b * floor_div(a, b); }

std::size_t mix(std::size_t h, std::uint64_t x) {
  return (h ^ (x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2))) * 0xff51afd7ed558ccdull;
}

// Bounds saturate far above every real index, so that sums of them cannot overflow.
std::int64_t saturate(std::int64_t x) {
  return std::clamp(x, -(IndexTable::unbounded << 2), IndexTable::unbounded << 2);
}
std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r))
    return (a < 0) == (b < 0) ? IndexTable::unbounded << 2 : -(IndexTable::unbounded << 2);
  return saturate(r);
}

}  // namespace index_math

// a = by · whole + rest, where rest has no part that is a multiple of `by` to be seen.
struct IndexTable::Split {
  IndexExpr whole, rest;
};

IndexId IndexTable::intern(IndexExpr e) {
  std::size_t h = index_math::mix(1, static_cast<std::uint64_t>(e.constant));
  for (const IndexTerm& t : e.terms)
    h = index_math::mix(index_math::mix(h, static_cast<std::uint64_t>(t.atom)),
                        static_cast<std::uint64_t>(t.factor));
  SmallVec<IndexId, 1>& candidates = known_exprs_[h];
  for (IndexId known : candidates)
    if (exprs_[known] == e) return known;
  exprs_.push_back(std::move(e));
  const auto id = static_cast<IndexId>(exprs_.size() - 1);
  candidates.push_back(id);
  return id;
}

int IndexTable::intern(IndexAtom a) {
  std::size_t h =
      index_math::mix(static_cast<std::size_t>(a.kind), static_cast<std::uint64_t>(a.id));
  h = index_math::mix(index_math::mix(h, static_cast<std::uint64_t>(a.of)),
                      static_cast<std::uint64_t>(a.by));
  SmallVec<int, 1>& candidates = known_atoms_[h];
  for (int known : candidates)
    if (atoms_[known] == a) return known;
  atoms_.push_back(a);
  const int id = static_cast<int>(atoms_.size() - 1);
  candidates.push_back(id);
  return id;
}

void IndexTable::add_term(IndexExpr& e, int atom, std::int64_t factor) {
  auto at = std::lower_bound(e.terms.begin(), e.terms.end(), atom,
                             [](const IndexTerm& t, int a) { return t.atom < a; });
  if (at != e.terms.end() && at->atom == atom) {
    at->factor += factor;
    if (at->factor == 0)
      e.terms.erase(static_cast<std::size_t>(at - e.terms.begin()) + e.terms.begin());
    return;
  }
  if (factor == 0) return;
  const auto position = at - e.terms.begin();
  e.terms.push_back({atom, factor});
  std::rotate(e.terms.begin() + position, e.terms.end() - 1, e.terms.end());
}

IndexId IndexTable::of_atom(IndexAtom a) {
  IndexExpr e;
  e.terms.push_back({intern(a), 1});
  return intern(std::move(e));
}

IndexId IndexTable::constant(std::int64_t c) {
  IndexExpr e;
  e.constant = c;
  return intern(std::move(e));
}

IndexId IndexTable::loop(int loop, std::int64_t limit) {
  if (loop_limits_.size() <= static_cast<std::size_t>(loop))
    loop_limits_.resize(static_cast<std::size_t>(loop) + 1, unbounded);
  loop_limits_[loop] = limit;
  return limit == 1 ? constant(0) : of_atom({IndexAtom::Kind::loop, loop, -1, 0});
}

IndexId IndexTable::value(int value, std::int64_t limit) {
  if (value_limits_.size() <= static_cast<std::size_t>(value))
    value_limits_.resize(static_cast<std::size_t>(value) + 1, unbounded);
  value_limits_[value] = limit;
  return limit == 1 ? constant(0) : of_atom({IndexAtom::Kind::value, value, -1, 0});
}

IndexBounds IndexTable::atom_bounds(const IndexAtom& a) const {
  switch (a.kind) {
    case IndexAtom::Kind::loop: return {0, std::max<std::int64_t>(loop_limits_[a.id] - 1, 0)};
    case IndexAtom::Kind::value: return {0, std::max<std::int64_t>(value_limits_[a.id] - 1, 0)};
    case IndexAtom::Kind::quotient: {
      const IndexBounds b = bounds(a.of);
      return {index_math::floor_div(b.low, a.by), index_math::floor_div(b.high, a.by)};
    }
    default: return {0, a.by - 1};
  }
}

IndexBounds IndexTable::bounds(const IndexExpr& e) const {
  IndexBounds sum{e.constant, e.constant};
  for (const IndexTerm& t : e.terms) {
    const IndexBounds b = atom_bounds(atom(t.atom));
    const std::int64_t x = index_math::times(b.low, t.factor),
                       y = index_math::times(b.high, t.factor);
    sum.low = index_math::saturate(sum.low + std::min(x, y));
    sum.high = index_math::saturate(sum.high + std::max(x, y));
  }
  return sum;
}
IndexBounds IndexTable::bounds(IndexId e) const { return bounds((*this)[e]); }

// k·floor(x/k) + (x mod k) = x, also where x is itself floor(y/j) and floor(x/k) was folded to
// floor(y/(j·k)).
void IndexTable::merge_divisions(IndexExpr& e) {
  for (bool again = true; again;) {
    again = false;
    for (std::size_t i = 0; i < e.terms.size() && !again; ++i) {
      const IndexTerm low = e.terms[i];
      const IndexAtom r = atom(low.atom);
      if (r.kind != IndexAtom::Kind::remainder) continue;
      const IndexExpr inner = (*this)[r.of];
      for (std::size_t j = 0; j < e.terms.size() && !again; ++j) {
        const IndexTerm high = e.terms[j];
        const IndexAtom q = atom(high.atom);
        if (q.kind != IndexAtom::Kind::quotient || high.factor != low.factor * r.by) continue;
        bool matches = q.by == r.by && q.of == r.of;
        if (!matches && inner.terms.size() == 1 && inner.constant == 0 &&
            inner.terms[0].factor == 1) {
          const IndexAtom& x = atom(inner.terms[0].atom);
          matches = x.kind == IndexAtom::Kind::quotient && q.of == x.of && q.by == x.by * r.by;
        }
        if (!matches) continue;
        add_term(e, low.atom, -low.factor);
        add_term(e, high.atom, -high.factor);
        for (const IndexTerm& t : inner.terms) add_term(e, t.atom, t.factor * low.factor);
        e.constant += inner.constant * low.factor;
        again = true;
      }
    }
  }
}

IndexId IndexTable::add(IndexId a, IndexId b) {
  IndexExpr e = (*this)[a];
  const IndexExpr other = (*this)[b];
  e.constant += other.constant;
  for (const IndexTerm& t : other.terms) add_term(e, t.atom, t.factor);
  merge_divisions(e);
  return intern(std::move(e));
}

IndexId IndexTable::add(IndexId a, std::int64_t c) {
  IndexExpr e = (*this)[a];
  e.constant += c;
  return intern(std::move(e));
}

IndexId IndexTable::scale(IndexId a, std::int64_t k) {
  if (k == 0) return constant(0);
  IndexExpr e = (*this)[a];
  e.constant *= k;
  for (IndexTerm& t : e.terms) t.factor *= k;
  return intern(std::move(e));
}

IndexTable::Split IndexTable::split_by(IndexId a, std::int64_t by) {
  Split s;
  const IndexExpr e = (*this)[a];
  s.rest.constant = index_math::floor_mod(e.constant, by);
  s.whole.constant = index_math::floor_div(e.constant, by);
  for (const IndexTerm& t : e.terms) {
    if (t.factor % by == 0) add_term(s.whole, t.atom, t.factor / by);
    else add_term(s.rest, t.atom, t.factor);
  }
  return s;
}

std::optional<IndexTable::Factored> IndexTable::factored(const IndexExpr& e,
                                                         std::int64_t by) const {
  for (const IndexTerm& candidate : e.terms) {
    Factored f{.g = std::gcd(by, candidate.factor)};
    if (f.g <= 1) continue;
    f.small.constant = index_math::floor_mod(e.constant, f.g);
    f.large.constant = index_math::floor_div(e.constant, f.g);
    for (const IndexTerm& t : e.terms) {
      if (t.factor % f.g == 0) add_term(f.large, t.atom, t.factor / f.g);
      else add_term(f.small, t.atom, t.factor);
    }
    if (const IndexBounds b = bounds(f.small); b.low >= 0 && b.high < f.g) return f;
  }
  return std::nullopt;
}

IndexId IndexTable::quotient(IndexId a, std::int64_t by) {
  if (by == 1) return a;
  Split s = split_by(a, by);
  const IndexId whole = intern(s.whole);
  const IndexBounds b = bounds(s.rest);
  const std::int64_t q = index_math::floor_div(b.low, by);
  if (q == index_math::floor_div(b.high, by) && b.high < unbounded) return add(whole, q);
  // floor((g·x + s) / (g·k)) = floor(x / k) when 0 ≤ s < g.
  if (auto f = factored(s.rest, by))
    return add(whole, quotient(intern(std::move(f->large)), by / f->g));
  if (s.rest.terms.size() == 1 && s.rest.terms[0].factor == 1 && s.rest.constant == 0) {
    const IndexAtom x = atom(s.rest.terms[0].atom);
    if (x.kind == IndexAtom::Kind::quotient) return add(whole, quotient(x.of, x.by * by));
  }
  const IndexId rest = intern(std::move(s.rest));
  return add(whole, of_atom({IndexAtom::Kind::quotient, 0, rest, by}));
}

IndexId IndexTable::remainder(IndexId a, std::int64_t by) {
  if (by == 1) return constant(0);
  Split s = split_by(a, by);
  const IndexBounds b = bounds(s.rest);
  const std::int64_t q = index_math::floor_div(b.low, by);
  if (q == index_math::floor_div(b.high, by) && b.high < unbounded) {
    s.rest.constant -= q * by;
    return intern(std::move(s.rest));
  }
  // (g·x + s) mod (g·k) = g·(x mod k) + s when 0 ≤ s < g.
  if (auto f = factored(s.rest, by)) {
    const IndexId rest = intern(std::move(f->small));
    return add(rest, scale(remainder(intern(std::move(f->large)), by / f->g), f->g));
  }
  if (s.rest.terms.size() == 1 && s.rest.terms[0].factor == 1 && s.rest.constant == 0) {
    const IndexAtom x = atom(s.rest.terms[0].atom);
    if (x.kind == IndexAtom::Kind::remainder && x.by % by == 0) return remainder(x.of, by);
  }
  const IndexId rest = intern(std::move(s.rest));
  return of_atom({IndexAtom::Kind::remainder, 0, rest, by});
}

std::int64_t IndexTable::factor_of_loop(IndexId e, int loop) const {
  for (const IndexTerm& t : (*this)[e].terms) {
    const IndexAtom& a = atom(t.atom);
    if (a.kind == IndexAtom::Kind::loop && a.id == loop) return t.factor;
  }
  return 0;
}

bool IndexTable::loop_inside_division(IndexId e, int loop) const {
  for (const IndexTerm& t : (*this)[e].terms) {
    const IndexAtom& a = atom(t.atom);
    if (a.kind == IndexAtom::Kind::quotient || a.kind == IndexAtom::Kind::remainder)
      if (uses_loop(a.of, loop)) return true;
  }
  return false;
}

IndexId IndexTable::substitute(IndexId e, const Vec<IndexId>& replacement) {
  const IndexExpr old = (*this)[e];
  IndexId sum = constant(old.constant);
  for (const IndexTerm& t : old.terms) {
    const IndexAtom a = atom(t.atom);
    IndexId part;
    switch (a.kind) {
      case IndexAtom::Kind::loop: {
        const IndexId r =
            static_cast<std::size_t>(a.id) < replacement.size() ? replacement[a.id] : -1;
        part = r >= 0 ? r : of_atom(a);
        break;
      }
      case IndexAtom::Kind::value: part = of_atom(a); break;
      case IndexAtom::Kind::quotient: part = quotient(substitute(a.of, replacement), a.by); break;
      default: part = remainder(substitute(a.of, replacement), a.by); break;
    }
    sum = add(sum, scale(part, t.factor));
  }
  return sum;
}

std::string IndexTable::str(IndexId e) const {
  const IndexExpr& x = (*this)[e];
  std::string text;
  const auto sign = [&](bool negative) {
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
  };
  for (const IndexTerm& t : x.terms) {
    sign(t.factor < 0);
    const std::int64_t magnitude = t.factor < 0 ? -t.factor : t.factor;
    if (magnitude != 1) text += std::to_string(magnitude) + "*";
    const IndexAtom& a = atom(t.atom);
    switch (a.kind) {
      case IndexAtom::Kind::loop: text += "d" + std::to_string(a.id); break;
      case IndexAtom::Kind::value: text += "v" + std::to_string(a.id); break;
      case IndexAtom::Kind::quotient: text += "(" + str(a.of) + ")/" + std::to_string(a.by); break;
      default: text += "(" + str(a.of) + ")%" + std::to_string(a.by); break;
    }
  }
  if (x.constant != 0 || x.terms.empty()) {
    sign(x.constant < 0);
    text += std::to_string(x.constant < 0 ? -x.constant : x.constant);
  }
  return text;
}

IndexId linear_index(IndexTable& table, const SmallVec<IndexId, 6>& index, const Shape& shape) {
  IndexId sum = table.constant(0);
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    sum = table.add(sum, table.scale(index[axis], stride));
    stride *= shape[axis];
  }
  return sum;
}

SmallVec<IndexId, 6> index_at(IndexTable& table, IndexId linear, const Shape& shape) {
  SmallVec<IndexId, 6> index(shape.rank(), table.constant(0));
  // the first axis with more than one element takes what is left, without a remainder
  int first = 0;
  while (first + 1 < shape.rank() && shape[first] == 1) ++first;
  for (int axis = shape.rank() - 1; axis >= first; --axis) {
    const std::int64_t extent = std::max<std::int64_t>(shape[axis], 1);
    index[axis] = axis == first ? linear : table.remainder(linear, extent);
    if (axis != first) linear = table.quotient(linear, extent);
  }
  return index;
}

}  // namespace vt::detail
