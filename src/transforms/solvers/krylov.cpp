// Iterative solvers of linear systems that need only products with the matrix: conjugate gradients
// and bicgstab.
#include <vt/solvers.hpp>

#include "../../trace/ops/support/operands.hpp"
#include "solver_numbers.hpp"

namespace vt::detail {

namespace krylov {

using Vector = std::vector<Tensor>;

/// Σ conj(aᵢ) bᵢ over all leaves, in the widest of their dtypes.
Tensor dot(const Vector& a, const Vector& b) {
  Tensor all;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Tensor part = vt::sum((is_complex(a[i].dtype()) ? vt::conj(a[i]) : a[i]) * b[i]);
    all = all.defined() ? all + part : part;
  }
  return all;
}
/// a + s · b, in a's dtypes.
Vector plus(const Vector& a, const Tensor& s, const Vector& b) {
  Vector out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(cast(a[i] + s * b[i], a[i].dtype(), {}));
  return out;
}
Tensor length2(const Vector& a) {
  const Tensor d = dot(a, a);
  return is_complex(d.dtype()) ? vt::real(d) : d;
}
/// Zero where the denominator is: a system solved exactly has nowhere to go.
Tensor ratio(const Tensor& a, const Tensor& b) {
  return vt::where(b == 0, 0.0 * a, a / vt::where(b == 0, vt::ones_like(b), b));
}

Vector zeros_like_all(const Vector& b) {
  Vector out;
  for (const Tensor& t : b)
    out.push_back(full_tensor(Scalar(0.0).converted(t.dtype()), Aval(t.dtype(), t.shape())));
  return out;
}

struct Limits {
  Tensor length2;  ///< of the residual, at the end
  std::int64_t iterations;
};
Limits limits(const Vector& b, const IterationOptions& options, std::int64_t factor) {
  std::int64_t n = 0;
  for (const Tensor& t : b) n += t.size();
  const bool wide = b[0].dtype() == f64 || b[0].dtype() == c128;
  const double tolerance = options.tolerance > 0 ? options.tolerance : wide ? 1e-10 : 1e-5;
  return {length2(b) * (tolerance * tolerance),
          options.max_iterations > 0 ? options.max_iterations : factor * n};
}

/// A list of vectors and numbers as a loop's carry, and back.
struct Packed {
  Vector all;
  std::size_t n;
  explicit Packed(std::size_t leaves) : n(leaves) {}
  Packed(std::span<const Tensor> given, std::size_t leaves)
      : all(given.begin(), given.end()), n(leaves) {}
  Packed& add(const Vector& v) {
    all.insert(all.end(), v.begin(), v.end());
    return *this;
  }
  Packed& add(const Tensor& t) {
    all.push_back(t);
    return *this;
  }
  Vector vector(std::size_t k) const {
    return {all.begin() + static_cast<std::ptrdiff_t>(k * n),
            all.begin() + static_cast<std::ptrdiff_t>((k + 1) * n)};
  }
  /// Numbers come behind all vectors; k-th from the end.
  const Tensor& number(std::size_t k) const { return all[all.size() - 1 - k]; }
};

/// x of a method that carries x, r, p, a product and the iteration, and its report: `begin`(b)
/// gives the first, and `step`(b, now) the next, both without the iteration, which takes so many
/// products.
template <class Begin, class Step>
Vector iterated(const char* name, CallSite where, const IterationOptions& options,
                std::int64_t products, std::span<const Tensor> given, const Begin& begin,
                const Step& step) {
  if (given.empty()) return {};
  const Vector b(given.begin(), given.end());
  const std::size_t n = b.size();
  const Limits end = limits(b, options, 10);
  Packed init = begin(b);
  const Vector out = while_flat(
      [&](std::span<const Tensor> c) {
        const Packed now(c, n);
        return Vector{(now.number(0) < end.iterations) & (length2(now.vector(1)) > end.length2)};
      },
      [&](std::span<const Tensor> c) {
        const Packed now(c, n);
        return step(b, now).add(now.number(0) + 1).all;
      },
      init.add(full_tensor(Scalar(std::int64_t{0}), Aval(i64, Shape{}))).all, {},
      {.name = name, .where = where});
  const Packed last(out, n);
  Vector result = last.vector(0);
  const Tensor rest = length2(last.vector(1)), iterations = last.number(0);
  result.push_back(vt::sqrt(rest));
  result.push_back(iterations);
  result.push_back(products * iterations);
  result.push_back(solver_parts::outcome(rest <= end.length2, vt::isfinite(rest), iterations > 0));
  return result;
}

}  // namespace krylov

FlatSolve cg_solver(const FlatFunction& preconditioner, const IterationOptions& options,
                    CallSite where) {
  check_limits(options, "vt::cg", where);
  return [preconditioner, options, where](const FlatFunction& matvec,
                                          std::span<const Tensor> given) {
    using namespace krylov;
    const auto towards = [&](const Vector& r) { return preconditioner ? preconditioner(r) : r; };
    return iterated(
        "vt::cg", where, options, 1, given,
        [&](const Vector& b) {  // the product: r·z
          const Vector z = towards(b);
          return Packed(b.size()).add(zeros_like_all(b)).add(b).add(z).add(dot(b, z));
        },
        [&](const Vector& b, const Packed& now) {
          const Vector x = now.vector(0), r = now.vector(1), p = now.vector(2), ap = matvec(p);
          const Tensor along = ratio(now.number(1), dot(p, ap));
          const Vector rest = plus(r, -along, ap), next = towards(rest);
          const Tensor product = dot(rest, next);
          return Packed(b.size())
              .add(plus(x, along, p))
              .add(rest)
              .add(plus(next, ratio(product, now.number(1)), p))
              .add(product);
        });
  };
}

FlatSolve bicgstab_solver(const IterationOptions& options, CallSite where) {
  check_limits(options, "vt::bicgstab", where);
  return [options, where](const FlatFunction& matvec, std::span<const Tensor> given) {
    using namespace krylov;
    return iterated(
        "vt::bicgstab", where, options, 2, given,
        [&](const Vector& b) {  // the product: b·r
          return Packed(b.size()).add(zeros_like_all(b)).add(b).add(b).add(dot(b, b));
        },
        [&](const Vector& b, const Packed& now) {
          const Vector x = now.vector(0), r = now.vector(1), p = now.vector(2), v = matvec(p);
          const Tensor alpha = ratio(now.number(1), dot(b, v));
          const Vector s = plus(r, -alpha, v), t = matvec(s);
          const Tensor omega = ratio(dot(t, s), dot(t, t));
          const Vector rest = plus(s, -omega, t);
          const Tensor product = dot(b, rest),
                       beta = ratio(product, now.number(1)) * ratio(alpha, omega);
          return Packed(b.size())
              .add(plus(plus(x, alpha, p), omega, s))
              .add(rest)
              .add(plus(rest, beta, plus(p, -omega, v)))
              .add(product);
        });
  };
}

}  // namespace vt::detail
