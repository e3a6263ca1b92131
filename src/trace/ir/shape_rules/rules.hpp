// What the shape rules share: the call being checked, its message helpers and the checks on axes
// and sizes.
#pragma once

#include <span>
#include <string>

#include "../graph.hpp"

namespace vt::detail::shape_rules {

/// One application of an op, as its rule sees it.
struct Call {
  Op op;
  const ParamsRef& params;
  std::span<const Aval* const> operands;
  CallSite where;
  std::uint32_t dtypes;  ///< bit per DType that the op takes

  const Aval& operand(std::size_t i) const { return *operands[i]; }
  /// The parameters; an internal error if they are of another kind.
  template <class P>
  const P& as() const {
    if (const P* p = params ? params->get_if<P>() : nullptr) return *p;
    wrong_params();
  }
  [[noreturn]] void wrong_params() const;
  /// Throws "vt::op: WHAT: operand · operand; at file:line".
  [[noreturn]] void refuse(ErrorKind kind, const std::string& what) const;
  [[noreturn]] void refuse_shape(const std::string& what) const { refuse(ErrorKind::shape, what); }
  [[noreturn]] void refuse_dtype(const std::string& what) const { refuse(ErrorKind::dtype, what); }

  bool takes(DType d) const { return (dtypes >> static_cast<int>(d)) & 1u; }
  /// Throws unless operand `i` has a dtype that the op takes.
  void need_dtype(std::size_t i = 0) const {
    if (!takes(operand(i).dtype)) bad_dtype(i);
  }
  [[noreturn]] void bad_dtype(std::size_t i) const;
};

using Avals = SmallVec<Aval, 1>;
using Rule = Avals (*)(const Call&);

/// The function that users call to get `op`: "vt::maximum" for Op::max.
std::string user_name(Op);

/// One result.
inline Avals result(DType dtype, Shape shape, bool weak = false) {
  Avals avals;
  avals.emplace_back(dtype, std::move(shape), weak);
  return avals;
}

/// Throws unless the shape is addressable. `infer` does so for every result; rules where they count
/// elements.
void check_size(const Call&, DType, const Shape&);
/// Throws unless 0 ≤ axis < rank. `what` names the list, as "axis" or "offset_dims".
void check_axis(const Call&, int axis, int rank, const char* what);
/// In range and no axis twice; with `sorted` also increasing.
void check_axes(const Call&, const Axes&, int rank, const char* what, bool sorted);
/// Throws if the two lists share an axis.
void check_disjoint(const Call&, const Axes&, const Axes&, const char* what_a, const char* what_b);

/// Throws unless there are `count` numbers of at least `least`.
void check_numbers(const Call&, const Shape& numbers, std::size_t count, std::int64_t least,
                   const char* what);
/// The checks of dot_general: dtypes, axes and the sizes that must agree.
void check_products(const Call&, const DotParams&);

// The rules, by file.
Avals reshape(const Call&);
Avals transpose(const Call&);
Avals broadcast_in_dim(const Call&);
Avals concatenate(const Call&);
Avals pad(const Call&);
Avals rev(const Call&);
Avals slice(const Call&);
Avals dynamic_slice(const Call&);
Avals dynamic_update_slice(const Call&);
Avals gather(const Call&);
Avals scatter(const Call&);
Avals rows(const Call&);
Avals rows_add(const Call&);
Avals dot_general(const Call&);
Avals windows(const Call&);
Avals overlap_add(const Call&);
Avals conv_general(const Call&);
Avals cholesky(const Call&);
Avals triangular_solve(const Call&);
Avals lu(const Call&);
Avals solve(const Call&);
Avals qr(const Call&);
Avals eigh(const Call&);
Avals svd(const Call&);
Avals eig(const Call&);
Avals tridiagonal_solve(const Call&);
Avals fft(const Call&);
Avals reduce(const Call&);
Avals sort(const Call&);
Avals lanes_combined(const Call&);
Avals lanes_gathered(const Call&);
Avals lanes_exchanged(const Call&);
Avals lanes_permuted(const Call&);
Avals process_index(const Call&);
Avals structure(const Call&);
Avals batched_call(const Call&);
Avals recursive_call(const Call&);
Avals cond(const Call&);
Avals while_loop(const Call&);
Avals fused_region(const Call&);
Avals scan(const Call&);
Avals debug_print(const Call&);
Avals check(const Call&);
Avals callback(const Call&);

}  // namespace vt::detail::shape_rules
