// Index expressions of loop nests: affine sums of loop variables and computed indices with floor
// division and remainder, kept unique and simplified, so that equal expressions have equal numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <vt/detail/small_vec.hpp>
#include <vt/shape.hpp>

#include "../../trace/base/hash_map.hpp"

namespace vt::detail {

using IndexId = std::int32_t;

struct IndexAtom {
  enum class Kind : std::uint8_t { loop, value, quotient, remainder } kind = Kind::loop;
  std::int32_t id = 0;  ///< loop or value number
  IndexId of = -1;      ///< quotient, remainder: floor(of / by), of − by · floor(of / by)
  std::int64_t by = 0;
  friend bool operator==(const IndexAtom&, const IndexAtom&) = default;
};

struct IndexTerm {
  std::int32_t atom;
  std::int64_t factor;
  friend bool operator==(const IndexTerm&, const IndexTerm&) = default;
};

/// constant + Σ factor · atom; terms sorted by atom, no factor 0.
struct IndexExpr {
  SmallVec<IndexTerm, 4> terms;
  std::int64_t constant = 0;
  friend bool operator==(const IndexExpr&, const IndexExpr&) = default;
};

struct IndexBounds {
  std::int64_t low, high;  ///< both included
};

class IndexTable {
 public:
  /// Larger than any index; bounds that would exceed it are not used to simplify.
  static constexpr std::int64_t unbounded = std::int64_t{1} << 40;

  IndexId constant(std::int64_t c);
  /// Loop number `loop` as an expression; `limit`: it stays below (told once, at its first use).
  IndexId loop(int loop, std::int64_t limit);
  /// A computed index (a value of the nest) known to lie in [0, limit).
  IndexId value(int value, std::int64_t limit);
  IndexId add(IndexId a, IndexId b);
  IndexId add(IndexId a, std::int64_t c);
  IndexId subtract(IndexId a, IndexId b) { return add(a, scale(b, -1)); }
  IndexId scale(IndexId a, std::int64_t k);
  IndexId quotient(IndexId a, std::int64_t by);   ///< by ≥ 1; rounds to minus infinity
  IndexId remainder(IndexId a, std::int64_t by);  ///< by ≥ 1; in [0, by)

  const IndexExpr& operator[](IndexId e) const { return exprs_[e]; }
  const IndexAtom& atom(int a) const { return atoms_[a]; }
  IndexBounds bounds(IndexId e) const;
  std::int64_t limit_of_value(int value) const { return value_limits_[value]; }
  bool is_constant(IndexId e) const { return (*this)[e].terms.empty(); }

  /// The sum of the terms that are loop `loop` itself (not inside a quotient or remainder).
  std::int64_t factor_of_loop(IndexId e, int loop) const;
  /// Does the loop occur inside a quotient or remainder?
  bool loop_inside_division(IndexId e, int loop) const;
  bool uses_loop(IndexId e, int loop) const {
    return factor_of_loop(e, loop) != 0 || loop_inside_division(e, loop);
  }
  /// Calls f(value number) for every computed index in it.
  template <class F>
  void each_value(IndexId e, const F& f) const {
    for (const IndexTerm& t : (*this)[e].terms) {
      const IndexAtom& a = atom(t.atom);
      if (a.kind == IndexAtom::Kind::value) f(a.id);
      else if (a.kind != IndexAtom::Kind::loop) each_value(a.of, f);
    }
  }
  /// Calls f(loop number) for every loop in it (repeatedly, if it occurs repeatedly).
  template <class F>
  void each_loop(IndexId e, const F& f) const {
    for (const IndexTerm& t : (*this)[e].terms) {
      const IndexAtom& a = atom(t.atom);
      if (a.kind == IndexAtom::Kind::loop) f(a.id);
      else if (a.kind != IndexAtom::Kind::value) each_loop(a.of, f);
    }
  }
  /// e with loop variable → expression, by `replacement[loop]` (−1: stays).
  IndexId substitute(IndexId e, const Vec<IndexId>& replacement);

  /// "4*d0 + d1/8 + 3", with `v7` for computed indices.
  std::string str(IndexId e) const;

 private:
  IndexId intern(IndexExpr e);
  int intern(IndexAtom a);
  IndexId of_atom(IndexAtom a);
  IndexBounds atom_bounds(const IndexAtom& a) const;
  IndexBounds bounds(const IndexExpr& e) const;
  void merge_divisions(IndexExpr& e);
  static void add_term(IndexExpr& e, int atom, std::int64_t factor);
  struct Split;
  Split split_by(IndexId a, std::int64_t by);
  /// e = g·large + small with 0 ≤ small < g, where g > 1 divides `by`.
  struct Factored {
    std::int64_t g;
    IndexExpr small{}, large{};
  };
  std::optional<Factored> factored(const IndexExpr& e, std::int64_t by) const;

  Vec<IndexExpr> exprs_;
  Vec<IndexAtom> atoms_;
  HashMap<std::size_t, SmallVec<IndexId, 1>> known_exprs_;
  HashMap<std::size_t, SmallVec<int, 1>> known_atoms_;
  Vec<std::int64_t> loop_limits_, value_limits_;
};

/// The offset of `index` in a row-major array of `shape`.
IndexId linear_index(IndexTable&, const SmallVec<IndexId, 6>& index, const Shape& shape);
/// The index vector at offset `linear` of a row-major array of `shape`.
SmallVec<IndexId, 6> index_at(IndexTable&, IndexId linear, const Shape& shape);

}  // namespace vt::detail
