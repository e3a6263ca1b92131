// Forward differentiation of a Graph: the walk that carries tangents, and what a rule of it sees.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "../../trace/ir/graph.hpp"
#include "../../trace/record/scope.hpp"

namespace vt::detail {

/// An undefined Tensor is a zero tangent: it is never computed with. Integer and bool values only
/// ever have such.
struct JvpResult {
  std::vector<Tensor> primals, tangents;
};

enum class JvpMode : std::uint8_t {
  forward,  ///< tangents are ordinary values
  /// tangents are tracers of an open linear scope; a rule may leave a linear call (see
  /// linear_call.hpp) there
  linearize,
};
enum class JvpShapes : std::uint8_t {
  recorded,  ///< the arguments have the shapes that the Graph was recorded with
  lifted,    ///< an element-wise Graph of scalars runs on arrays
};

/// Emits the primal and the tangent equations of `graph` into the current scope. `primals`,
/// `tangents`: one per Graph input.
JvpResult jvp_graph(const GraphBody& graph, std::span<const Tensor> primals,
                    std::span<const Tensor> tangents, JvpMode mode = JvpMode::forward,
                    JvpShapes shapes = JvpShapes::recorded);

/// One equation with its operands, as a rule sees it. At least one tangent is defined.
struct JvpCall {
  const Equation& equation;
  std::span<const Tensor> x;  ///< operands
  std::span<const Tensor> t;  ///< their tangents
  /// the result (rules of one result; structure rules make it themselves)
  Tensor y;
  JvpMode mode;

  bool has(std::size_t i) const { return t[i].defined(); }
  template <class P>
  [[gnu::always_inline]] const P& as() const {
    return equation.as<P>();
  }
};

/// How an op is differentiated.
struct JvpRule {
  /// The tangent of the one result. It may have rank 0 where the result has not: the walk then
  /// broadcasts it.
  using Tangent = Tensor (*)(const JvpCall&);
  /// Emits all results and fills in their tangents.
  using Whole = void (*)(const JvpCall&, std::vector<Tensor>& results,
                         std::vector<Tensor>& tangents);

  Tangent tangent = nullptr;
  Whole whole = nullptr;

  constexpr JvpRule() = default;
  template <class F>
    requires std::is_convertible_v<F, Tangent>
  constexpr JvpRule(F f) : tangent(f) {}
  template <class F>
    requires std::is_convertible_v<F, Whole>
  constexpr JvpRule(F f) : whole(f) {}
};
/// The named refusal: the derivative is zero wherever it exists, or the results are not numbers.
inline constexpr JvpRule zero_tangent{};

namespace jvp_rules {

// Rules longer than a formula, by file.
// rules/jvp_special.cpp
Tensor trigamma(const Tensor& x);
Tensor spence(const JvpCall&);
Tensor bessel_i0e(const JvpCall&);
Tensor bessel_i1e(const JvpCall&);
Tensor bessel_j1(const JvpCall&);
Tensor zeta(const JvpCall&);
// rules/jvp_reduce.cpp
Tensor reduce_prod(const JvpCall&);
Tensor reduce_extremum(const JvpCall&);
void reduce(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
Tensor cumprod(const JvpCall&);
Tensor cum_extremum(const JvpCall&);
Tensor cumlogsumexp(const JvpCall&);
Tensor lanes_extremum(const JvpCall&);
// rules/jvp_index.cpp
Tensor same_op(const JvpCall&);
Tensor with_zeros(const JvpCall&);
Tensor tangent_rows(const JvpCall&);
void rows_add(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
Tensor scatter_mul(const JvpCall&);
Tensor scatter_extremum(const JvpCall&);
// rules/products.cpp
Tensor bilinear(const JvpCall&);
// rules/jvp_order.cpp
void sort(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
// rules/linalg.cpp
Tensor cholesky(const JvpCall&);
Tensor triangular_solve(const JvpCall&);
void lu(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
Tensor solve(const JvpCall&);
void qr(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
void eigh(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
void eig(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
void svd(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
Tensor tridiagonal_solve(const JvpCall&);
// rules/jvp_custom.cpp, rules/checkpoint.cpp
void inlined(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
void custom_jvp(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
void custom_vjp(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
void checkpoint(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
void callback(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
// call_rules.cpp
void call(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
void batched_call(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
void recursive_call(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);
// rules/jvp_control.cpp
void control(const JvpCall&, std::vector<Tensor>&, std::vector<Tensor>&);

const JvpRule& rule_of(Op);

/// The elements of `operand` that a scatter of updates of this shape would write, at the places of
/// the updates.
Tensor met_by_updates(const ScatterParams&, const Tensor& operand, const Tensor& indices,
                      const Shape& updates);
}  // namespace jvp_rules
}  // namespace vt::detail
