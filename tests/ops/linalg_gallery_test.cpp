// Linear algebra on a gallery of matrices that are hard on it, checked as LAPACK's testers do:
// residuals and what should be orthogonal, over n · epsilon · the matrix's norm, are at most 30;
// singular values, and eigenvalues of symmetric matrices, are Eigen's. Matrices one at a time, and
// in batches side by side through compiled code; near overflow and underflow; with an element that
// is not finite.
#include <map>
#include <optional>

#include <Eigen/Dense>

#include "support/matrix_gallery.hpp"
#include "support/property.hpp"

namespace {

namespace la = vt::linalg;
using vt::DType;
using vt::Shape;
using vt::Tensor;
using Tensors = std::vector<Tensor>;
using C = std::complex<double>;
using M = vt_test::Matrix<C>;
using vt_test::Family;

constexpr double most_allowed = 30;
constexpr double not_finite = std::numeric_limits<double>::infinity();

double epsilon(DType d) { return vt::real_dtype(d) == vt::f64 ? 0x1p-52 : 0x1p-23; }
double smallest(DType d) { return vt::real_dtype(d) == vt::f64 ? 0x1p-1074 : 0x1p-149; }
double largest(DType d) {
  return vt::real_dtype(d) == vt::f64 ? std::numeric_limits<double>::max()
                                      : std::numeric_limits<float>::max();
}

/// a · 2^exponent
M times_power(M a, int exponent) {
  for (C& x : a.reshaped()) x = C(std::ldexp(x.real(), exponent), std::ldexp(x.imag(), exponent));
  return a;
}

template <class E>
Tensor tensor_as(const std::vector<M>& all, const Shape& shape, E (*as)(C)) {
  std::vector<E> values;
  for (const M& a : all)
    for (int i = 0; i < a.rows(); ++i)
      for (int j = 0; j < a.cols(); ++j) values.push_back(as(a(i, j)));
  return vt::tensor(values, shape);
}
/// Matrices of one shape as a batch, or one alone as it is.
Tensor tensor_of(const std::vector<M>& all, DType d, bool alone) {
  Shape shape{all[0].rows(), all[0].cols()};
  if (!alone) shape.insert(shape.begin(), static_cast<std::int64_t>(all.size()));
  if (d == vt::f32)
    return tensor_as<float>(all, shape, [](C x) { return static_cast<float>(x.real()); });
  if (d == vt::f64) return tensor_as<double>(all, shape, [](C x) { return x.real(); });
  if (d == vt::c64)
    return tensor_as<std::complex<float>>(all, shape, [](C x) { return std::complex<float>(x); });
  return tensor_as<C>(all, shape, [](C x) { return x; });
}
/// The matrices of a batch of `count`; vectors and numbers as columns.
std::vector<M> matrices_of(const Tensor& t, int behind, std::size_t count) {
  const std::vector<C> values = t.to_vector<C>();
  const std::int64_t rows = behind == 0 ? 1 : t.dim(behind == 2 ? -2 : -1),
                     columns = behind == 2 ? t.dim(-1) : 1;
  std::vector<M> all;
  for (std::size_t k = 0; k < count; ++k) {
    M a(rows, columns);
    for (std::int64_t i = 0; i < rows * columns; ++i)
      a(i / std::max<std::int64_t>(columns, 1), i % std::max<std::int64_t>(columns, 1)) =
          values[k * static_cast<std::size_t>(rows * columns) + static_cast<std::size_t>(i)];
    all.push_back(a);
  }
  return all;
}

double norm(const M& a) { return a.size() == 0 ? 0 : a.cwiseAbs().colwise().sum().maxCoeff(); }
bool finite(const M& a) {
  for (const C& x : a.reshaped())
    if (!std::isfinite(x.real()) || !std::isfinite(x.imag())) return false;
  return true;
}

/// A matrix as the dtype has it, over 2^exponent: that is a. What Eigen says of it is found when
/// first asked for.
struct Case {
  std::string name;
  Family::Kind kind = Family::general;
  M a;
  int exponent = 0;
  double eps = 0, step = 0;  ///< the dtype's epsilon; its smallest number over 2^exponent
  double top = 0;            ///< its largest number
  bool real = true;
  mutable std::optional<Eigen::VectorXd> values{};

  Case(std::string n, Family::Kind k, const M& exact, DType d, int e = 0)
      : name(std::move(n)), kind(k), exponent(e), eps(epsilon(d)), real(!vt::is_complex(d)) {
    a = times_power(exact, e);
    if (vt::real_dtype(d) == vt::f32)
      for (C& x : a.reshaped()) x = C(static_cast<float>(x.real()), static_cast<float>(x.imag()));
    a = times_power(a, -e);
    step = std::ldexp(smallest(d), -e), top = largest(d);
  }
  M given() const { return times_power(a, exponent); }
  double size() const {
    return static_cast<double>(std::max<std::int64_t>({a.rows(), a.cols(), 1}));
  }
  double length() const { return norm(a); }
  /// n · epsilon · |a|, and what rounding to a dtype's smallest numbers does.
  double unit() const { return size() * (eps * length() + step); }
  /// Singular values, descending.
  const Eigen::VectorXd& singular_values() const {
    if (!values) {
      if (a.size() == 0) values = Eigen::VectorXd(0);
      else if (real && a.rows() < 50)
        values = Eigen::JacobiSVD<Eigen::MatrixXd>(a.real()).singularValues();
      else {
        // Those of [[0, a], [aᴴ, 0]] and their negatives are its eigenvalues. (BDCSVD, and
        // JacobiSVD of complex matrices, are wrong for some.)
        const auto of_both = [&](const auto& x) {
          const std::int64_t m = x.rows(), n = x.cols();
          using Both = Eigen::Matrix<typename std::decay_t<decltype(x)>::Scalar, Eigen::Dynamic,
                                     Eigen::Dynamic>;
          Both both = Both::Zero(m + n, m + n);
          both.topRightCorner(m, n) = x, both.bottomLeftCorner(n, m) = x.adjoint();
          return Eigen::VectorXd(Eigen::SelfAdjointEigenSolver<Both>(both, Eigen::EigenvaluesOnly)
                                     .eigenvalues()
                                     .reverse()
                                     .head(std::min(m, n)));
        };
        values = real ? of_both(Eigen::MatrixXd(a.real())) : of_both(Eigen::MatrixXcd(a));
        values = values->cwiseMax(0);
      }
    }
    return *values;
  }
  double condition(double rest = 0) const {
    const Eigen::VectorXd& s = singular_values();
    double least = 0;
    for (const double x : s)
      if (x > rest * s[0]) least = x;
    return least == 0 ? not_finite : s[0] / least;
  }
  bool regular() const {
    return a.rows() > 0 && singular_values().minCoeff() > 100 * size() * eps * singular_values()[0];
  }
};

/// |x| / (unit · (1 + more)); what is not a number is too much.
double ratio(const M& x, double unit) {
  if (x.size() == 0) return 0;
  const double r = norm(x);
  if (!std::isfinite(r)) return not_finite;
  return r == 0 ? 0 : r / unit;
}
double orthonormal(const M& q, double eps) {
  return ratio(q.adjoint() * q - M::Identity(q.cols(), q.cols()),
               static_cast<double>(std::max<std::int64_t>(q.rows(), 1)) * eps);
}

/// One function of the library: what it gives, how many axes of each result are the matrix's own,
/// by what power of the scale a result grows, and how far the results are from right.
struct Function {
  const char* name;
  std::function<Tensors(const Tensor& a, const Tensor& b)> call;
  std::vector<int> axes, degrees_in_halves;
  std::function<bool(const Case&)> fits;
  std::function<double(const Case&, const M& b, const std::vector<M>&)> error;
};

M right_side(std::int64_t rows) {
  return vt_test::gallery::random(static_cast<int>(rows), 2, 99).cast<C>();
}

double spectrum_error(const Case& c, const Eigen::VectorXd& expected, const M& values) {
  double worst = 0;
  for (int i = 0; i < values.rows(); ++i) {
    if (!(std::fabs(values(i, 0).real()) < not_finite)) return not_finite;
    worst = std::max(worst, std::fabs(values(i, 0).real() - expected[i]));
  }
  return worst / std::max(c.unit(), 1e-300);
}
bool square(const Case& c) { return c.a.rows() == c.a.cols(); }
bool any(const Case&) { return true; }

double qr_error(const Case& c, const M&, const std::vector<M>& x) {
  const M lower = x[1].triangularView<Eigen::StrictlyLower>();
  return std::max(
      {ratio(c.a - x[0] * x[1], c.unit()), orthonormal(x[0], c.eps), ratio(lower, 0.0)});
}
double svd_error(const Case& c, const M&, const std::vector<M>& x) {
  const std::int64_t k = x[1].rows();
  const M product = x[0].leftCols(k) * x[1].col(0).asDiagonal() * x[2].topRows(k);
  double worst =
      std::max({ratio(c.a - product, c.unit()), orthonormal(x[0], c.eps),
                orthonormal(x[2].adjoint(), c.eps), spectrum_error(c, c.singular_values(), x[1])});
  for (std::int64_t i = 0; i < k; ++i)
    if (!(x[1](i, 0).real() >= (i + 1 < k ? x[1](i + 1, 0).real() : 0))) worst = not_finite;
  return worst;
}
/// Of x with a x = b, where a is the case's matrix or its transpose; by the matrix's decomposition.
double solve_error(const Case& c, const M& a, const M& b, const M& x) {
  const Eigen::MatrixXcd u =
      Eigen::PartialPivLU<Eigen::MatrixXcd>(c.a).matrixLU().triangularView<Eigen::Upper>();
  const double growth = std::max(1.0, u.cwiseAbs().maxCoeff() / c.a.cwiseAbs().maxCoeff());
  return ratio(b - a * x, growth * c.size() * (c.eps * norm(a) + c.step) * norm(x) +
                              c.size() * (c.eps * norm(b) + norm(a) * c.eps)) /
         std::sqrt(c.size());
}
double inverse_error(const Case& c, const M& x) {
  // Elements beyond the largest number are infinite, with the right sign.
  const M expected = Eigen::FullPivLU<Eigen::MatrixXcd>(c.a).inverse();
  const double most = std::ldexp(c.top, c.exponent);
  const double unit = c.size() * (c.eps * norm(expected) * c.condition() +
                                  std::ldexp(c.step, 2 * std::min(c.exponent, 500)));
  double worst = 0;
  for (int i = 0; i < x.rows(); ++i)
    for (int j = 0; j < x.cols(); ++j)
      for (const auto& [have, want] : {std::pair(x(i, j).real(), expected(i, j).real()),
                                       std::pair(x(i, j).imag(), expected(i, j).imag())}) {
        if (std::isinf(have) && std::fabs(want) + 30 * unit >= most &&
            (std::fabs(want) < 30 * unit || std::signbit(have) == std::signbit(want)))
          continue;
        worst = std::max(worst, std::isnan(have) ? not_finite : std::fabs(have - want) / unit);
      }
  return worst;
}
// By determinants of the factors: what the product of all singular values but the least allows.
double det_error(const Case& c, const M& x) {
  const Eigen::VectorXd& s = c.singular_values();
  double unit = c.size() * c.eps * (s.size() ? s[0] : 1) * 8;
  for (int i = 0; i + 1 < s.size(); ++i) unit *= std::max(s[i], c.size() * c.eps * s[0]);
  if (c.a.rows() < 4) unit = c.size() * c.eps * std::pow(norm(c.a), c.a.rows());  // by its formula
  const C expected = c.a.size() == 0 ? C(1) : Eigen::FullPivLU<Eigen::MatrixXcd>(c.a).determinant();
  const double scale = std::ldexp(1.0, c.exponent);
  if (c.exponent != 0)
    return std::isnan(x(0, 0).real()) ||
                   (c.exponent > 0 && std::abs(expected) > 1 && std::abs(x(0, 0)) < scale)
               ? not_finite
               : 0;
  if (unit > largest(vt::f32) || unit < 1e-30) return 0;  // of another size than the dtypes
  return std::isfinite(std::abs(x(0, 0))) ? std::abs(x(0, 0) - expected) / unit : not_finite;
}
double pseudo_inverse_error(const Case& c, const M& x) {
  if (c.a.size() == 0) return 0;
  const double n = c.size(), a = c.length(), length = norm(x), times = std::max(1.0, a * length);
  if (c.exponent < 0 && !finite(x)) return std::isnan(length) ? not_finite : 0;
  const M ax = c.a * x, xa = x * c.a;
  const double step = std::ldexp(c.step, 2 * std::min(c.exponent, 500)) * n * a;
  return std::max(
      {ratio(c.a * xa - c.a, n * (c.eps * a * times + step * a + c.step * times)) / std::sqrt(n),
       ratio(x * ax - x, n * (c.eps * length * times + (step + c.step * length) * length)),
       ratio(ax - ax.adjoint(), n * (c.eps * times + step + c.step * length)),
       ratio(xa - xa.adjoint(), n * (c.eps * times + step + c.step * length))});
}
double eig_error(const Case& c, const std::vector<M>& x) {
  const M v = x[1];
  double worst = ratio(c.a * v - v * x[0].col(0).asDiagonal(), c.unit());
  for (int j = 0; j < v.cols(); ++j)
    worst = std::max(worst, ratio(M::Constant(1, 1, v.col(j).norm() - 1), c.size() * c.eps));
  return worst;
}
// An eigenvalue makes a − λ singular, nearly; all together have a's trace.
double eigvals_error(const Case& c, const M& w) {
  if (!finite(w)) return not_finite;
  double worst = w.rows() ? ratio(M::Constant(1, 1, w.sum() - c.a.trace()), c.unit()) : 0;
  for (int i = 0; i < w.rows(); i += c.a.rows() > 20 ? 41 : 1) {
    const Eigen::MatrixXcd shifted = c.a - w(i, 0) * M::Identity(c.a.rows(), c.a.cols());
    const double least =
        Eigen::SelfAdjointEigenSolver<Eigen::MatrixXcd>(
            (Eigen::MatrixXcd(2 * shifted.rows(), 2 * shifted.rows())
                 << Eigen::MatrixXcd::Zero(shifted.rows(), shifted.rows()),
             shifted, shifted.adjoint(), Eigen::MatrixXcd::Zero(shifted.rows(), shifted.rows()))
                .finished(),
            Eigen::EigenvaluesOnly)
            .eigenvalues()
            .cwiseAbs()
            .minCoeff();
    worst = std::max(worst, least / std::max(c.unit(), 1e-300));
  }
  return worst;
}
/// eᵃ of a small matrix by its series in higher precision.
M exponential(const M& a) {
  using L = std::complex<long double>;
  using Wide = Eigen::Matrix<L, Eigen::Dynamic, Eigen::Dynamic>;
  const int halvings =
      std::max(0, 2 + static_cast<int>(std::ceil(std::log2(std::max(norm(a), 1e-300)))));
  const Wide x = a.cast<L>() * L(std::ldexp(1.0L, -halvings));
  Wide sum = Wide::Identity(a.rows(), a.cols()), term = sum;
  for (int k = 1; k < 26; ++k) term = (term * x / L(k)).eval(), sum += term;
  for (int k = 0; k < halvings; ++k) sum = (sum * sum).eval();
  return sum.cast<C>();
}

const std::vector<Function>& functions() {
  const auto symmetric = [](const Case& c) { return square(c) && c.kind != Family::general; };
  const auto definite = [](const Case& c) {
    return square(c) && c.kind == Family::positive && c.exponent % 2 == 0;
  };
  const auto regular = [](const Case& c) { return square(c) && c.regular(); };
  static const std::vector<Function> all = {
      {"qr",
       [](const Tensor& a, const Tensor&) {
         const auto f = la::qr(a);
         return Tensors{f.q, f.r};
       },
       {2, 2},
       {0, 2},
       any,
       qr_error},
      {"complete qr",
       [](const Tensor& a, const Tensor&) {
         const auto f = la::qr(a, "complete");
         return Tensors{f.q, f.r};
       },
       {2, 2},
       {0, 2},
       [](const Case& c) { return !square(c); },
       qr_error},
      {"lu",
       [](const Tensor& a, const Tensor&) {
         const auto f = la::lu(a);
         return Tensors{f.lu, f.permutation};
       },
       {2, 1},
       {-9, 0},
       any,
       [](const Case& c, const M&, const std::vector<M>& x) {
         const std::int64_t m = c.a.rows(), n = c.a.cols(), k = std::min(m, n);
         M l = M::Identity(m, k), u = M::Zero(k, n), rows(m, n);
         for (std::int64_t i = 0; i < m; ++i)
           for (std::int64_t j = 0; j < n; ++j) {
             if (i > j) l(i, j) = x[0](i, j);
             else u(i, j) = times_power(x[0].block(i, j, 1, 1), -c.exponent)(0, 0);
           }
         for (std::int64_t i = 0; i < m; ++i)
           rows.row(i) = c.a.row(static_cast<std::int64_t>(x[1](i, 0).real()));
         if (l.size() && l.cwiseAbs().maxCoeff() > 1 + 4 * c.eps)
           return c.real ? not_finite : l.cwiseAbs().maxCoeff() > 1.5 ? not_finite : 0;
         const double growth =
             std::max(1.0, u.size() && c.a.cwiseAbs().maxCoeff() > 0
                               ? u.cwiseAbs().maxCoeff() / c.a.cwiseAbs().maxCoeff()
                               : 1);
         return ratio(rows - l * u, c.unit() * growth);
       }},
      {"cholesky",
       [](const Tensor& a, const Tensor&) { return Tensors{la::cholesky(a)}; },
       {2},
       {1},
       definite,
       [](const Case& c, const M&, const std::vector<M>& x) {
         const M upper = x[0].triangularView<Eigen::StrictlyUpper>();
         return std::max(ratio(c.a - x[0] * x[0].adjoint(), c.unit()), ratio(upper, 0.0));
       }},
      {"eigh",
       [](const Tensor& a, const Tensor&) {
         const auto f = la::eigh(a);
         return Tensors{f.eigenvalues, f.eigenvectors};
       },
       {1, 2},
       {2, 0},
       symmetric,
       [](const Case& c, const M&, const std::vector<M>& x) {
         double worst = std::max(ratio(c.a * x[1] - x[1] * x[0].col(0).asDiagonal(), c.unit()),
                                 orthonormal(x[1], c.eps));
         if (c.a.size())
           worst = std::max(worst, spectrum_error(c,
                                                  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXcd>(
                                                      c.a, Eigen::EigenvaluesOnly)
                                                      .eigenvalues(),
                                                  x[0]));
         for (int i = 1; i < x[0].rows(); ++i)
           if (!(x[0](i, 0).real() >= x[0](i - 1, 0).real())) worst = not_finite;
         return worst;
       }},
      {"eigvalsh",
       [](const Tensor& a, const Tensor&) { return Tensors{la::eigvalsh(a)}; },
       {1},
       {2},
       symmetric,
       [](const Case& c, const M&, const std::vector<M>& x) {
         return c.a.size() ? spectrum_error(c,
                                            Eigen::SelfAdjointEigenSolver<Eigen::MatrixXcd>(
                                                c.a, Eigen::EigenvaluesOnly)
                                                .eigenvalues(),
                                            x[0])
                           : 0;
       }},
      {"svd",
       [](const Tensor& a, const Tensor&) {
         const auto f = la::svd(a);
         return Tensors{f.u, f.s, f.vh};
       },
       {2, 1, 2},
       {0, 2, 0},
       any,
       svd_error},
      {"reduced svd",
       [](const Tensor& a, const Tensor&) {
         const auto f = la::svd(a, false);
         return Tensors{f.u, f.s, f.vh};
       },
       {2, 1, 2},
       {0, 2, 0},
       [](const Case& c) { return !square(c); },
       svd_error},
      {"svdvals",
       [](const Tensor& a, const Tensor&) { return Tensors{la::svdvals(a)}; },
       {1},
       {2},
       any,
       [](const Case& c, const M&, const std::vector<M>& x) {
         return spectrum_error(c, c.singular_values(), x[0]);
       }},
      {"eig",
       [](const Tensor& a, const Tensor&) {
         const auto f = la::eig(a);
         return Tensors{f.eigenvalues, f.eigenvectors};
       },
       {1, 2},
       {2, 0},
       square,
       [](const Case& c, const M&, const std::vector<M>& x) { return eig_error(c, x); }},
      {"eigvals",
       [](const Tensor& a, const Tensor&) { return Tensors{la::eigvals(a)}; },
       {1},
       {2},
       square,
       [](const Case& c, const M&, const std::vector<M>& x) { return eigvals_error(c, x[0]); }},
      {"solve",
       [](const Tensor& a, const Tensor& b) { return Tensors{la::solve(a, b)}; },
       {2},
       {0},
       regular,
       [](const Case& c, const M& b, const std::vector<M>& x) {
         return solve_error(c, c.a, b, x[0]);
       }},
      {"solve both ways",  // by one decomposition: with the matrix and with its transpose
       [](const Tensor& a, const Tensor& b) {
         const auto [x, pull] = vt::vjp([&](const Tensor& y) { return la::solve(a, y); }, b);
         return Tensors{x, pull(b)};
       },
       {2, 2},
       {0, 0},
       regular,
       [](const Case& c, const M& b, const std::vector<M>& x) {
         return std::max(solve_error(c, c.a, b, x[0]), solve_error(c, c.a.transpose(), b, x[1]));
       }},
      {"inv",
       [](const Tensor& a, const Tensor&) { return Tensors{la::inv(a)}; },
       {2},
       {-2},
       regular,
       [](const Case& c, const M&, const std::vector<M>& x) { return inverse_error(c, x[0]); }},
      {"pinv",
       [](const Tensor& a, const Tensor&) { return Tensors{la::pinv(a)}; },
       {2},
       {-2},
       any,
       [](const Case& c, const M&, const std::vector<M>& x) {
         return pseudo_inverse_error(c, x[0]);
       }},
      {"lstsq",
       [](const Tensor& a, const Tensor& b) { return Tensors{la::lstsq(a, b).x}; },
       {2},
       {0},
       [](const Case& c) { return c.a.size() > 0; },
       [](const Case& c, const M& b, const std::vector<M>& x) {
         // The gradient; what is left out as too small of a may be in it.
         const double kept = std::min(c.condition(), 1 / (c.size() * c.eps));
         return ratio(
             c.a.adjoint() * (b - c.a * x[0]),
             (c.unit() * norm(x[0]) + c.size() * c.eps * norm(b) + c.length() * c.size() * c.step) *
                 c.length() * std::max(1.0, std::min(kept, 1e3)));
       }},
      {"det",
       [](const Tensor& a, const Tensor&) { return Tensors{la::det(a)}; },
       {0},
       {0},
       [](const Case& c) { return square(c) && c.a.rows() < 30; },
       [](const Case& c, const M&, const std::vector<M>& x) { return det_error(c, x[0]); }},
      {"expm",
       [](const Tensor& a, const Tensor&) { return Tensors{la::expm(a)}; },
       {2},
       {0},
       [](const Case& c) {
         return square(c) && c.exponent == 0 && c.a.rows() < 30 && c.length() < 60;
       },
       [](const Case& c, const M&, const std::vector<M>& x) {
         const M expected = exponential(c.a);
         return ratio(x[0] - expected,
                      c.size() * c.eps * std::max(norm(expected), 1.0) * (1 + c.length()) * 4);
       }},
  };
  return all;
}

/// What was worst of each function, to be shown by whoever asks for it.
class Worst {
 public:
  void note(const std::string& key, double ratio, const std::string& what) {
    auto& [most, where, failures] = all_[key];
    ++number_;
    if (!(ratio <= most_allowed)) ++failures;
    if (!(ratio <= most)) most = ratio, where = what;
  }
  ~Worst() {
    if (!std::getenv("VT_SHOW_GALLERY")) return;
    for (const auto& [key, entry] : all_)
      std::printf("%-36s %10.3g  %5d failures   %s\n", key.c_str(), std::get<0>(entry),
                  std::get<2>(entry), std::get<1>(entry).c_str());
    std::printf("%d checks\n", number_);
  }

 private:
  std::map<std::string, std::tuple<double, std::string, int>> all_;
  int number_ = 0;
};
Worst worst;

std::vector<M> scaled_back(const Function& f, const Case& c, std::vector<M> x) {
  for (std::size_t k = 0; k < x.size(); ++k)
    if (f.degrees_in_halves[k] > -9)
      x[k] = times_power(x[k], -c.exponent * f.degrees_in_halves[k] / 2);
  return x;
}

/// One at a time; as a batch through compiled code; or each in a loop of a lane, which small
/// systems do not leave: they are part of its function.
enum class How { alone, batch, loops };
/// What the loop's only iteration gives.
Tensors in_loop(const Function& f, const Tensor& a, const Tensor& b, const Tensor& once) {
  std::vector<Tensor> carry{0 * once};
  for (const Tensor& t : vt::eval_shape([&](Tensor x, Tensor y) { return f.call(x, y); }, a, b))
    carry.push_back(vt::zeros(t.shape(), t.dtype()));
  const std::vector<Tensor> last =
      vt::while_loop([&](const std::vector<Tensor>& c) { return c[0] < once; },
                     [&](const std::vector<Tensor>& c) {
                       std::vector<Tensor> next{c[0] + 1};
                       for (Tensor& t : f.call(vt::where(c[0] < 0, 2 * a, a), b))
                         next.push_back(std::move(t));
                       return next;
                     },
                     carry);
  return {last.begin() + 1, last.end()};
}
/// Of all matrices at once. `once`: ones, i32, one for each matrix.
std::function<Tensors(Tensor, Tensor, Tensor)> together(const Function& f, How how) {
  if (how == How::batch) return [&f](Tensor a, Tensor b, Tensor) { return f.call(a, b); };
  return vt::vmap([&f](Tensor a, Tensor b, Tensor once) { return in_loop(f, a, b, once); });
}
bool stays_in_loops(const Function& f) {
  for (const char* some : {"lu", "cholesky", "solve", "solve both ways", "inv"})
    if (some == std::string(f.name)) return true;
  return false;
}
void check(const Function& f, DType d, const std::vector<Case>& every, How how) {
  std::vector<Case> cases;
  for (const Case& c : every)
    if (f.fits(c)) cases.push_back(c);
  if (cases.empty()) return;
  const M b = right_side(cases[0].a.rows());
  const auto judge = [&](const Case& c, const std::vector<M>& results) {
    const double r = f.error(c, b, scaled_back(f, c, results));
    const std::string what = std::string(f.name) + " " + vt::name_of(d) +
                             (how == How::batch   ? " in a batch"
                              : how == How::loops ? " in loops"
                                                  : "") +
                             " of " + c.name + " " + std::to_string(c.a.rows()) + " × " +
                             std::to_string(c.a.cols());
    worst.note(std::string(f.name) + " " + vt::name_of(d) +
                   (how == How::batch   ? " batch"
                    : how == How::loops ? " loops"
                                        : ""),
               r, what);
    EXPECT_LE(r, most_allowed) << what;
  };
  std::vector<M> matrices, right;
  for (const Case& c : cases)
    matrices.push_back(c.given()), right.push_back(times_power(b, c.exponent));
  if (how != How::alone) {
    const auto compiled = vt::jit(together(f, how));
    const Tensor a = tensor_of(matrices, d, false), y = tensor_of(right, d, false),
                 once = vt::ones({static_cast<std::int64_t>(cases.size())}, vt::i32);
    for (const Tensor& t : compiled(a, y, once)) t.eval();
    const Tensors results = compiled(a, y, once);
    if (how == How::loops) {
      EXPECT_NE(compiled.explain(a, y, once).find("one function, its values in registers"),
                std::string::npos)
          << f.name << " of " << vt::name_of(d) << " leaves its loop";
    }
    std::vector<std::vector<M>> parts;
    for (std::size_t k = 0; k < results.size(); ++k)
      parts.push_back(matrices_of(results[k], f.axes[k], cases.size()));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      std::vector<M> own;
      for (const auto& p : parts) own.push_back(p[i]);
      judge(cases[i], own);
    }
    return;
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Tensors results =
        f.call(tensor_of({matrices[i]}, d, true), tensor_of({right[i]}, d, true));
    std::vector<M> own;
    for (std::size_t k = 0; k < results.size(); ++k)
      own.push_back(matrices_of(results[k], f.axes[k], 1)[0]);
    judge(cases[i], own);
  }
}

M exact_of(const Family& f, int n, DType d) {
  if (vt::is_complex(d)) return vt_test::matrix_of<C>(f, n, epsilon(d));
  return vt_test::matrix_of<double>(f, n, epsilon(d)).cast<C>();
}
/// All families of one size, and some of them far from 1: where squares overflow or vanish, where
/// inverses do, and where numbers lose digits.
std::vector<Case> cases_of(int n, DType d) {
  std::vector<Case> all;
  const bool wide = vt::real_dtype(d) == vt::f64;
  const int close_to_most = wide ? 1012 : 116, past_squares = wide ? 600 : 80,
            least_normal = wide ? -1020 : -124, without_digits = wide ? -1040 : -136;
  for (const Family& f : vt_test::families()) {
    const M a = exact_of(f, n, d);
    if (a.rows() != n) continue;
    all.push_back({f.name, f.kind, a, d});
    const std::string name = f.name;
    for (const char* some : {"ones", "random", "random symmetric", "random definite", "repeated",
                             "graded", "Jordan", "skew", "half the rank"})
      if (name == some)
        for (const int e :
             {close_to_most, past_squares, -past_squares, least_normal, without_digits})
          all.push_back(
              {name + " times 2^" + std::to_string(e), f.kind, a / std::max(1.0, norm(a)), d, e});
  }
  return all;
}
constexpr DType every_dtype[] = {vt::f32, vt::f64, vt::c64, vt::c128};

/// Sanitizers, under which all of it would take ten minutes, see one or two sizes of each kind.
const bool few = vt_test::environment("VT_FUZZ_COUNT", 1000) < 200;

TEST(LinalgGallery, IsLarge) { EXPECT_GE(vt_test::families().size(), 60u); }

TEST(LinalgGallery, OneAtATime) {
  for (const DType d : every_dtype)
    for (const int n : {0, 1, 2, 3, 4, 12, 33}) {
      if (few && n != 3 && n != 12) continue;
      if (n == 33 && d != vt::f64) continue;
      if (n == 12 && d == vt::c64) continue;
      for (const Function& f : functions()) check(f, d, cases_of(n, d), How::alone);
    }
}

TEST(LinalgGallery, SideBySide) {
  for (const DType d : every_dtype)
    for (const int n : {1, 2, 3, 4, 8, 13, 16}) {
      if ((few || vt::is_complex(d)) && n != 8) continue;
      if (d == vt::f32 && n != 1 && n != 3 && n != 8 && n != 16) continue;  // the code of f64
      for (const Function& f : functions()) check(f, d, cases_of(n, d), How::batch);
    }
}

TEST(LinalgGallery, InLoopsOfLanes) {
  for (const DType d : {vt::f32, vt::f64})
    for (const int n : {1, 2, 3, 5, 8}) {
      if (few && n != 3) continue;
      for (const Function& f : functions())
        if (stays_in_loops(f)) check(f, d, cases_of(n, d), How::loops);
    }
}

TEST(LinalgGallery, NotSquare) {
  for (const DType d : every_dtype)
    for (const int n : {3, 8, 18})
      for (const bool tall : {true, false}) {
        if (few && n != 8) continue;
        std::vector<Case> all;
        for (const Case& c : cases_of(n, d)) {
          const int less = n / 2;
          all.push_back({c.name, Family::general,
                         tall ? M(c.a.leftCols(less)) : M(c.a.topRows(less)), d, c.exponent});
        }
        for (const Function& f : functions()) {
          check(f, d, all, How::alone);
          if (n == 8 && !vt::is_complex(d)) check(f, d, all, How::batch);
        }
      }
}

TEST(LinalgGallery, Large) {
  for (const auto& [d, n] : {std::pair(vt::f32, 100), {vt::f64, 200}, {vt::c128, 60}}) {
    if (few && n != 60) continue;
    std::vector<Case> all;
    for (const Family& f : vt_test::families())
      for (const char* some : {"ones", "clustered at 1e-12", "hidden Jordan", "Grcar", "Kahan",
                               "Wilkinson +", "graded", "random", "cycle", "nilpotent", "rank one"})
        if (std::string(some) == f.name) all.push_back({f.name, f.kind, exact_of(f, n, d), d});
    for (const Function& f : functions())
      if (std::string(f.name) != "eigvals") check(f, d, all, How::alone);
  }
}

// Lanes of vmap, at another axis, are what the batch gives.
TEST(LinalgGallery, Lanes) {
  for (const DType d : {vt::f32, vt::f64, vt::c128})
    for (const Function& f : functions()) {
      std::vector<M> matrices, right;
      for (const Case& c : cases_of(5, d))
        if (f.fits(c))
          matrices.push_back(c.given()), right.push_back(times_power(right_side(5), c.exponent));
      if (matrices.empty()) continue;
      const Tensor a = tensor_of(matrices, d, false), b = tensor_of(right, d, false);
      const Tensors batch = f.call(a, b);
      const auto lanes = vt::vmap([&](Tensor x, Tensor y) { return f.call(x, y); },
                                  {.in_axes = {1, 0}})(vt::moveaxis(a, 0, 1), b);
      for (std::size_t k = 0; k < batch.size(); ++k) {
        // Where vectors are not determined they may differ; what is no number may not.
        EXPECT_TRUE(
            vt::all(vt::isnan(lanes[k].astype(vt::c128)) == vt::isnan(batch[k].astype(vt::c128)))
                .item<bool>())
            << f.name;
        if (f.axes.size() != 1 || f.name == std::string("eigvals")) continue;
        const Tensor small = vt::abs(batch[k]) < 1e-6 * vt::max(vt::abs(batch[k]));
        EXPECT_TRUE(
            vt::all(vt::isclose(lanes[k], batch[k], 1e-2, 0.0) | !vt::isfinite(batch[k]) | small)
                .item<bool>())
            << f.name;
      }
    }
}

// A gallery that cannot fail would be none: one wrong element of any result is seen.
TEST(LinalgGallery, OneWrongElementIsSeen) {
  const auto family =
      std::find_if(vt_test::families().begin(), vt_test::families().end(),
                   [](const Family& f) { return f.name == std::string("random definite"); });
  for (const DType d : {vt::f64, vt::c128})
    for (const bool tall : {false, true}) {
      const M a = exact_of(*family, 12, d);
      const Case c{family->name, tall ? Family::general : family->kind,
                   tall ? M(a.leftCols(7)) : M(a / norm(a)), d};
      const M b = right_side(12);
      for (const Function& f : functions()) {
        if (!f.fits(c)) continue;
        const Tensors results = f.call(tensor_of({c.given()}, d, true), tensor_of({b}, d, true));
        std::vector<M> own;
        for (std::size_t k = 0; k < results.size(); ++k)
          own.push_back(matrices_of(results[k], f.axes[k], 1)[0]);
        EXPECT_LE(f.error(c, b, own), most_allowed) << f.name;
        for (std::size_t k = 0; k < own.size(); ++k) {
          if (results[k].dtype() == vt::i32) continue;
          for (const std::int64_t i : {std::int64_t{0}, own[k].rows() / 2, own[k].rows() - 1}) {
            std::vector<M> wrong = own;
            wrong[k](i, own[k].cols() / 2) += 1e-10 * own[k].cwiseAbs().maxCoeff();
            EXPECT_GT(f.error(c, b, wrong), most_allowed)
                << f.name << ", result " << k << ", row " << i;
          }
        }
      }
    }
}

/// Nothing of a result is a number: but for zeros of a triangle, and numbers of rows.
void expect_nan(const Function& f, const std::vector<M>& x, const std::string& what) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (f.degrees_in_halves[k] == 0 && f.name == std::string("lu")) continue;
    for (int i = 0; i < x[k].rows(); ++i)
      for (int j = 0; j < x[k].cols(); ++j)
        if (!(f.name == std::string("cholesky") && j > i) && !std::isnan(x[k](i, j).real())) {
          ADD_FAILURE() << f.name << " of " << what << " gives a number in result " << k << ": "
                        << x[k](i, j);
          return;
        }
  }
}

/// All functions, as a batch and where they are part of loops.
std::vector<std::pair<Function, How>> ways() {
  std::vector<std::pair<Function, How>> all;
  for (const Function& f : functions()) {
    all.emplace_back(f, How::batch);
    if (stays_in_loops(f)) all.emplace_back(f, How::loops);
  }
  return all;
}

TEST(LinalgGallery, WhatIsNotFiniteGivesNaNAndLeavesItsNeighboursAlone) {
  const double endless = not_finite;
  for (const DType d : every_dtype)
    for (const int n : {1, 2, 3, 8, 16, 40})
      for (const auto& [f, how] : ways()) {
        if (how == How::loops && (n > 8 || vt::is_complex(d))) continue;
        if (vt::is_complex(d) && (n == 3 || n == 16)) continue;
        if (few && n != 1 && n != 8) continue;
        const M unit = M::Identity(n, n), full = unit + M::Constant(n, n, 0.25);
        if (!f.fits(Case("", Family::positive, full, d))) continue;
        std::vector<M> good, bad;
        for (const double x : {std::nan(""), endless, -endless})
          for (const auto& [i, j] : {std::pair(0, 0), {n - 1, 0}, {0, n - 1}, {n / 2, n / 2}})
            for (const M& a : {unit, full}) {
              good.insert(good.end(), {full, a}), bad.insert(bad.end(), {full, a});
              bad.back()(i, j) = x;
              if (n > 16 && i != 0)
                bad.pop_back(), bad.pop_back(), good.pop_back(), good.pop_back();
            }
        const std::size_t count = bad.size();
        const std::vector<M> right(count, right_side(n));
        const auto compiled = vt::jit(together(f, how));
        const Tensor y = tensor_of(right, d, false),
                     once = vt::ones({static_cast<std::int64_t>(count)}, vt::i32);
        for (const Tensor& t : compiled(tensor_of(good, d, false), y, once)) t.eval();
        const Tensors mixed = compiled(tensor_of(bad, d, false), y, once),
                      whole = compiled(tensor_of(good, d, false), y, once);
        std::vector<std::vector<M>> parts, others;
        for (std::size_t k = 0; k < mixed.size(); ++k) {
          parts.push_back(matrices_of(mixed[k], f.axes[k], count));
          others.push_back(matrices_of(whole[k], f.axes[k], count));
        }
        for (std::size_t i = 0; i < count; ++i) {
          const std::string what = std::string(vt::name_of(d)) + " " + std::to_string(n) +
                                   ", matrix " + std::to_string(i);
          std::vector<M> own;
          for (std::size_t k = 0; k < parts.size(); ++k) {
            own.push_back(parts[k][i]);
            if (i % 2 == 0 && parts[k][i] != others[k][i])
              ADD_FAILURE() << f.name << " changes beside " << what;
          }
          if (i % 2) expect_nan(f, own, what);
        }
        // One alone.
        std::vector<M> own;
        const Tensors alone = f.call(tensor_of({bad[1]}, d, true), tensor_of({right[1]}, d, true));
        for (std::size_t k = 0; k < alone.size(); ++k)
          own.push_back(matrices_of(alone[k], f.axes[k], 1)[0]);
        expect_nan(f, own, std::string(vt::name_of(d)) + " " + std::to_string(n) + " alone");
      }
}

}  // namespace
