// Matrices that are hard on algorithms of linear algebra, by name, for any size: what the galleries
// of MATLAB and of Higham's test matrix toolbox, and LAPACK's testers, have. All have elements of
// about 1; how far from it they are brought is a power of two.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <numbers>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <Eigen/Dense>

namespace vt_test {

template <class S>
using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RealMatrix = Matrix<double>;

/// A family of real square matrices: that of size n for a type whose epsilon is `eps`.
struct Family {
  const char* name;
  enum Kind { general, symmetric, positive } kind;
  std::function<RealMatrix(int n, double eps)> make;
};

namespace gallery {

inline RealMatrix from(int m, int n, const std::function<double(int, int)>& f) {
  RealMatrix a(m, n);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) a(i, j) = f(i, j);
  return a;
}
inline RealMatrix random(int m, int n, unsigned seed) {
  std::mt19937 engine(seed);
  return from(m, n, [&](int, int) { return static_cast<double>(engine()) * 0x1p-31 - 1; });
}
inline RealMatrix diagonal(int n, const std::function<double(int)>& f) {
  return from(n, n, [&](int i, int j) { return i == j ? f(i) : 0.0; });
}
inline RealMatrix orthogonal(int n, unsigned seed) {
  RealMatrix q = RealMatrix::Identity(n, n);
  for (int k = 0; k < 3; ++k) {
    const Eigen::VectorXd v = random(n, 1, seed + static_cast<unsigned>(k)).col(0);
    if (n > 0 && v.squaredNorm() > 0) q -= (q * v) * v.transpose() * (2 / v.squaredNorm());
  }
  return q;
}
/// Q diag(f) Qᵀ
inline RealMatrix symmetric_of(int n, unsigned seed, const std::function<double(int)>& f) {
  const RealMatrix q = orthogonal(n, seed), a = q * diagonal(n, f) * q.transpose();
  return (a + a.transpose()) / 2;
}
inline RealMatrix jordan(int n, double value, int block) {
  return from(n, n, [&](int i, int j) {
    return i == j ? value : j == i + 1 && j % block != 0 ? 1.0 : 0.0;
  });
}
inline RealMatrix companion(const std::vector<double>& c) {
  const int n = static_cast<int>(c.size());
  return from(n, n, [&](int i, int j) { return i == 0 ? -c[j] : i == j + 1 ? 1.0 : 0.0; });
}
/// Coefficients behind the leading one of the polynomial with roots r(0), r(1) …
inline std::vector<double> polynomial(int n, const std::function<double(int)>& r) {
  std::vector<double> c(static_cast<std::size_t>(n) + 1, 0.0);
  c[0] = 1;
  for (int k = 0; k < n; ++k)
    for (int j = k + 1; j > 0; --j) c[j] -= r(k) * c[j - 1];
  return {c.begin() + 1, c.end()};
}
inline RealMatrix permutation(int n, unsigned seed) {
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return from(n, n, [&](int i, int j) { return order[i] == j ? 1.0 : 0.0; });
}
inline RealMatrix tridiagonal(int n, const std::function<double(int)>& below,
                              const std::function<double(int)>& at,
                              const std::function<double(int)>& above) {
  return from(n, n, [&](int i, int j) {
    return i == j ? at(i) : i == j + 1 ? below(j) : j == i + 1 ? above(i) : 0.0;
  });
}

}  // namespace gallery

inline const std::vector<Family>& families() {
  using namespace gallery;
  using F = Family;
  const auto power = [](double base) { return [base](int k) { return std::pow(base, k); }; };
  static const std::vector<Family> all = {
      // Low rank.
      {"zero", F::symmetric, [](int n, double) -> RealMatrix { return RealMatrix::Zero(n, n); }},
      {"unit", F::positive, [](int n, double) -> RealMatrix { return RealMatrix::Identity(n, n); }},
      {"ones", F::symmetric, [](int n, double) -> RealMatrix { return RealMatrix::Ones(n, n); }},
      {"rank one", F::general,
       [](int n, double) -> RealMatrix { return random(n, 1, 1) * random(1, n, 2); }},
      {"rank two", F::symmetric,
       [](int n, double) -> RealMatrix {
         const RealMatrix u = random(n, 1, 3), v = random(n, 1, 4);
         return RealMatrix(u * u.transpose() - v * v.transpose());
       }},
      {"half the rank", F::general,
       [](int n, double) -> RealMatrix {
         return random(n, (n + 1) / 2, 5) * random((n + 1) / 2, n, 6);
       }},
      {"one element", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [n](int i, int j) { return i == n / 2 && j == n - 1 ? 1.0 : 0.0; });
       }},
      {"counted", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [n](int i, int j) { return 1.0 + i * n + j; });
       }},
      {"a row and a column of zeros", F::general,
       [](int n, double) -> RealMatrix {
         RealMatrix a = random(n, n, 7);
         if (n > 0) a.row(n / 2).setZero(), a.col(n / 3).setZero();
         return a;
       }},
      {"nearly dependent rows", F::general,
       [](int n, double eps) -> RealMatrix {
         RealMatrix a = random(n, n, 8);
         if (n > 1) a.row(n - 1) = a.row(0) * (1 + eps);
         return a;
       }},
      {"equal columns", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int) { return 1.0 / (i + 3); });
       }},
      // Eigenvalues that meet.
      {"counted diagonal", F::positive,
       [](int n, double) -> RealMatrix { return diagonal(n, [](int k) { return k + 1.0; }); }},
      {"repeated", F::positive,
       [](int n, double) -> RealMatrix {
         return symmetric_of(n, 11, [](int k) { return 1.0 + k % 3; });
       }},
      {"clustered at 1e-12", F::positive,
       [](int n, double) -> RealMatrix {
         return symmetric_of(n, 12, [](int k) { return 1 + 1e-12 * k; });
       }},
      {"clustered at eps", F::positive,
       [](int n, double eps) -> RealMatrix {
         return symmetric_of(n, 13, [eps](int k) { return 1 + eps * k; });
       }},
      {"two clusters", F::symmetric,
       [](int n, double eps) -> RealMatrix {
         return symmetric_of(n, 14, [eps](int k) { return (k % 2 ? 1 : -1) + 3 * eps * k; });
       }},
      {"one apart", F::symmetric,
       [](int n, double eps) -> RealMatrix {
         return symmetric_of(n, 15, [eps](int k) { return k == 0 ? 1 : eps; });
       }},
      {"one small", F::symmetric,
       [](int n, double eps) -> RealMatrix {
         return symmetric_of(n, 16, [n, eps](int k) { return k + 1 < n ? 1 : eps; });
       }},
      {"geometric", F::symmetric,
       [](int n, double eps) -> RealMatrix {
         return symmetric_of(n, 17,
                             [n, eps](int k) { return std::pow(eps, k / std::max(1.0, n - 1.0)); });
       }},
      {"arithmetic", F::symmetric,
       [](int n, double eps) -> RealMatrix {
         return symmetric_of(
             n, 18, [n, eps](int k) { return 1 - k / std::max(1.0, n - 1.0) * (1 - eps); });
       }},
      {"signs", F::symmetric,
       [](int n, double) -> RealMatrix {
         return symmetric_of(n, 19, [](int k) { return k % 2 ? 1.0 : -1.0; });
       }},
      {"Jordan", F::general, [](int n, double) -> RealMatrix { return jordan(n, 2, 1000); }},
      {"nilpotent", F::general, [](int n, double) -> RealMatrix { return jordan(n, 0, 1000); }},
      {"lower Jordan", F::general,
       [](int n, double) -> RealMatrix { return RealMatrix(jordan(n, 0.5, 1000).transpose()); }},
      {"Jordan blocks", F::general, [](int n, double) -> RealMatrix { return jordan(n, 1, 3); }},
      {"hidden Jordan", F::general,
       [](int n, double) -> RealMatrix {
         const RealMatrix q = orthogonal(n, 21);
         return RealMatrix(q * jordan(n, 1, 4) * q.transpose());
       }},
      {"Forsythe", F::general,
       [](int n, double eps) -> RealMatrix {
         RealMatrix a = jordan(n, 0, 1000);
         if (n > 1) a(n - 1, 0) = eps;
         return a;
       }},
      {"Chebyshev's derivative", F::general,  // nilpotent, but for the roundings
       [](int n, double) -> RealMatrix {
         const auto x = [n](int k) { return std::cos(std::numbers::pi * k / n); };
         const auto c = [n](int k) { return (k == 0 || k == n ? 2.0 : 1.0) * (k % 2 ? -1 : 1); };
         RealMatrix a = from(n, n, [&](int i, int j) {
           return i == j ? 0.0 : c(i + 1) / c(j + 1) / (x(i + 1) - x(j + 1));
         });
         for (int i = 0; i < n; ++i)
           a(i, i) = i + 1 < n ? -x(i + 1) / 2 / (1 - x(i + 1) * x(i + 1)) : -(2.0 * n * n + 1) / 6;
         return a;
       }},
      // Famous ones.
      {"companion of 1 … n", F::general,
       [](int n, double) -> RealMatrix {
         return companion(polynomial(std::min(n, 20), [](int k) { return k + 1.0; }));
       }},
      {"companion of roots of 1", F::general,
       [](int n, double) -> RealMatrix {
         std::vector<double> c(static_cast<std::size_t>(n), 0.0);
         if (n > 0) c.back() = -1;
         return companion(c);
       }},
      {"Frank", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [n](int i, int j) {
           return j + 1 < i ? 0.0 : static_cast<double>(n - std::max(i, j));
         });
       }},
      {"Grcar", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int j) {
           return i == j + 1 ? -1.0 : j >= i && j <= i + 3 ? 1.0 : 0.0;
         });
       }},
      {"Kahan", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int j) {
           return j < i ? 0.0 : std::pow(std::sin(1.2), i) * (i == j ? 1 : -std::cos(1.2));
         });
       }},
      {"Hilbert", F::symmetric,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int j) { return 1.0 / (i + j + 1); });
       }},
      {"Wilkinson +", F::symmetric,
       [](int n, double) -> RealMatrix {
         return tridiagonal(
             n, [](int) { return 1.0; }, [n](int k) { return std::fabs(k - (n - 1) / 2.0); },
             [](int) { return 1.0; });
       }},
      {"Wilkinson −", F::symmetric,
       [](int n, double) -> RealMatrix {
         return tridiagonal(
             n, [](int) { return 1.0; }, [n](int k) { return k - (n - 1) / 2.0; },
             [](int) { return 1.0; });
       }},
      {"Wilkinson's growth", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [n](int i, int j) {
           return i == j || j == n - 1 ? 1.0 : j < i ? -1.0 : 0.0;
         });
       }},
      {"Clement", F::general,
       [](int n, double) -> RealMatrix {
         return tridiagonal(
             n, [](int k) { return k + 1.0; }, [](int) { return 0.0; },
             [n](int k) { return n - 1.0 - k; });
       }},
      {"symmetric Clement", F::symmetric,
       [](int n, double) -> RealMatrix {
         const auto f = [n](int k) { return std::sqrt((k + 1.0) * (n - 1.0 - k)); };
         return tridiagonal(n, f, [](int) { return 0.0; }, f);
       }},
      {"Lehmer", F::positive,
       [](int n, double) -> RealMatrix {
         return from(n, n,
                     [](int i, int j) { return (std::min(i, j) + 1.0) / (std::max(i, j) + 1.0); });
       }},
      {"Lotkin", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int j) { return i == 0 ? 1.0 : 1.0 / (i + j + 1); });
       }},
      {"least", F::positive,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int j) { return std::min(i, j) + 1.0; });
       }},
      {"Moler", F::symmetric,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int j) { return i == j ? i + 1.0 : std::min(i, j) - 1.0; });
       }},
      {"Pascal", F::symmetric,
       [](int n, double) -> RealMatrix {
         RealMatrix a = RealMatrix::Ones(n, n);
         for (int i = 1; i < n; ++i)
           for (int j = 1; j < n; ++j) a(i, j) = i + j > 40 ? 1.0 : a(i - 1, j) + a(i, j - 1);
         return RealMatrix((a + a.transpose()) / 2);
       }},
      {"Parter", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int j) { return 1 / (i - j + 0.5); });
       }},
      {"Ris", F::symmetric,
       [](int n, double) -> RealMatrix {
         return from(n, n, [n](int i, int j) { return 0.5 / (n - i - j - 0.5); });
       }},
      {"Fiedler", F::symmetric,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int j) { return std::fabs(i - j); });
       }},
      {"Cauchy", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int j) { return 1.0 / (2 * i + j + 1); });
       }},
      {"Vandermonde", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [n](int i, int j) { return std::pow((i + 1.0) / n, j); });
       }},
      {"Redheffer", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n,
                     [](int i, int j) { return j == 0 || (j + 1) % (i + 1) == 0 ? 1.0 : 0.0; });
       }},
      {"second difference", F::positive,
       [](int n, double) -> RealMatrix {
         return tridiagonal(
             n, [](int) { return -1.0; }, [](int) { return 2.0; }, [](int) { return -1.0; });
       }},
      {"Lesp", F::general,
       [](int n, double) -> RealMatrix {
         return tridiagonal(
             n, [](int k) { return 1.0 / (k + 2); }, [](int k) { return -2.0 * k - 5; },
             [](int k) { return k + 2.0; });
       }},
      {"upper of −1", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int j) { return i == j ? 1.0 : j > i ? -1.0 : 0.0; });
       }},
      {"arrow", F::symmetric,
       [](int n, double) -> RealMatrix {
         return from(n, n, [](int i, int j) {
           return i == j ? i + 1.0 : i == 0 || j == 0 ? 1.0 : 0.0;
         });
       }},
      {"divisors", F::positive,
       [](int n, double) -> RealMatrix {
         return from(n, n,
                     [](int i, int j) { return static_cast<double>(std::gcd(i + 1, j + 1)); });
       }},
      // Of length one.
      {"cycle", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [n](int i, int j) { return j == (i + 1) % n ? 1.0 : 0.0; });
       }},
      {"reversal", F::symmetric,
       [](int n, double) -> RealMatrix {
         return from(n, n, [n](int i, int j) { return i + j == n - 1 ? 1.0 : 0.0; });
       }},
      {"permutation", F::general, [](int n, double) -> RealMatrix { return permutation(n, 31); }},
      {"circulant", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n, [n](int i, int j) { return 1.0 + (j - i + n) % n; });
       }},
      {"skew", F::general,
       [](int n, double) -> RealMatrix {
         const RealMatrix x = random(n, n, 32);
         return RealMatrix(x - x.transpose());
       }},
      {"skew of three diagonals", F::general,
       [](int n, double) -> RealMatrix {
         return tridiagonal(
             n, [](int) { return 1.0; }, [](int) { return 0.0; }, [](int) { return -1.0; });
       }},
      {"orthogonal", F::general, [](int n, double) -> RealMatrix { return orthogonal(n, 33); }},
      {"Fourier's", F::general,  // the sine transform
       [](int n, double) -> RealMatrix {
         return from(n, n, [n](int i, int j) {
           return std::sqrt(2.0 / (n + 1)) *
                  std::sin(std::numbers::pi * (i + 1) * (j + 1) / (n + 1));
         });
       }},
      {"turns", F::general,
       [](int n, double) -> RealMatrix {
         RealMatrix a = RealMatrix::Identity(n, n);
         for (int k = 0; k + 1 < n; k += 2)
           a(k, k) = a(k + 1, k + 1) = std::cos(k + 1.0), a(k, k + 1) = std::sin(k + 1.0),
                a(k + 1, k) = -a(k, k + 1);
         return a;
       }},
      {"reflection", F::symmetric,
       [](int n, double) -> RealMatrix {
         return RealMatrix(RealMatrix::Identity(n, n) - RealMatrix::Ones(n, n) * (2.0 / n));
       }},
      // Of many sizes at once.
      {"graded", F::symmetric,
       [power](int n, double) -> RealMatrix {
         const RealMatrix x = random(n, n, 41), d = diagonal(n, power(0.1));
         return RealMatrix(d * (x + x.transpose()) * d);
       }},
      {"graded upwards", F::symmetric,
       [power](int n, double) -> RealMatrix {
         const RealMatrix x = random(n, n, 42), d = diagonal(n, power(10));
         return RealMatrix(d * (x + x.transpose()) * d / std::pow(100, n));
       }},
      {"graded definite", F::positive,
       [power](int n, double) -> RealMatrix {
         const RealMatrix x = random(n, n, 43), d = diagonal(n, power(0.25));
         return RealMatrix(d * (x * x.transpose() / (n + 1) + RealMatrix::Identity(n, n)) * d);
       }},
      {"columns of many sizes", F::general,
       [power](int n, double) -> RealMatrix {
         return random(n, n, 44) * diagonal(n, power(1e-3));
       }},
      {"rows of many sizes", F::general,
       [power](int n, double) -> RealMatrix {
         return diagonal(n, power(1e-3)) * random(n, n, 45);
       }},
      {"badly scaled", F::general,
       [](int n, double) -> RealMatrix {
         const auto d = [](double sign) {
           return [sign](int k) { return std::pow(10.0, sign * (k % 5 - 2)); };
         };
         return RealMatrix(diagonal(n, d(1)) * random(n, n, 46) * diagonal(n, d(-1)));
       }},
      {"badly scaled and sparse", F::general,
       [](int n, double) -> RealMatrix {
         RealMatrix a = random(n, n, 47);
         for (int i = 0; i < n; ++i)
           for (int j = 0; j < n; ++j)
             a(i, j) *= (i * 7 + j * 3) % 5 == 0 ? std::pow(10.0, (i * 5 + j * 11) % 13 - 6) : 0.0;
         return a;
       }},
      {"balancing harms it", F::general,  // Watkins 2006
       [](int n, double eps) -> RealMatrix {
         RealMatrix a = random(n, n, 48);
         for (int i = 0; i < n; ++i)
           for (int j = 0; j < n; ++j)
             if (i > j) a(i, j) = i == j + 1 ? a(i, j) : eps * a(i, j);
         if (n > 2) a(n - 1, n - 2) *= eps * eps;
         return a;
       }},
      {"nearly triangular", F::general,
       [](int n, double eps) -> RealMatrix {
         return from(n, n,
                     [eps](int i, int j) { return i > j ? eps * 0.1 * (1 + i - j) : 1.0 + i; });
       }},
      {"tiny off the diagonal", F::symmetric,
       [](int n, double eps) -> RealMatrix {
         return tridiagonal(
             n, [eps](int) { return eps * eps; }, [](int k) { return 1.0 + k / 2; },
             [eps](int) { return eps * eps; });
       }},
      // Any.
      {"random", F::general, [](int n, double) -> RealMatrix { return random(n, n, 51); }},
      {"random symmetric", F::symmetric,
       [](int n, double) -> RealMatrix {
         const RealMatrix x = random(n, n, 52);
         return RealMatrix(x + x.transpose());
       }},
      {"random definite", F::positive,
       [](int n, double) -> RealMatrix {
         const RealMatrix x = random(n, n, 53);
         return RealMatrix(x * x.transpose() + RealMatrix::Identity(n, n));
       }},
      {"upper triangle", F::general,
       [](int n, double) -> RealMatrix {
         return RealMatrix(random(n, n, 54).triangularView<Eigen::Upper>());
       }},
      {"lower triangle", F::general,
       [](int n, double) -> RealMatrix {
         return RealMatrix(random(n, n, 55).triangularView<Eigen::Lower>());
       }},
      {"Hessenberg", F::general,
       [](int n, double) -> RealMatrix {
         return from(n, n,
                     [x = random(n, n, 56)](int i, int j) { return i > j + 1 ? 0.0 : x(i, j); });
       }},
      {"of ones and minus ones", F::general,
       [](int n, double) -> RealMatrix {
         return RealMatrix(random(n, n, 57).unaryExpr([](double x) { return x < 0 ? -1.0 : 1.0; }));
       }},
  };
  return all;
}

/// A family's matrix for a type: as it is, or for complex ones D A Dᴴ with numbers of length 1 in D
/// (a symmetric one becomes Hermitian, and all singular and eigenvalues stay), times another such
/// number if that need not be Hermitian.
template <class S>
Matrix<S> matrix_of(const Family& f, int n, double eps) {
  const RealMatrix a = f.make(n, eps);
  if constexpr (std::is_same_v<S, double>) return a;
  else {
    const auto phase = [](double k) { return std::polar(1.0, 0.7 * k * k + 0.3 * k); };
    Matrix<S> z(a.rows(), a.cols());
    for (int i = 0; i < a.rows(); ++i)
      for (int j = 0; j < a.cols(); ++j) {
        if (f.kind == Family::general) z(i, j) = a(i, j) * phase(i) * std::conj(phase(j + 0.2));
        else if (i == j) z(i, j) = a(i, i);
        else
          z(i, j) = i < j ? a(i, j) * phase(i) * std::conj(phase(j))
                          : std::conj(a(j, i) * phase(j) * std::conj(phase(i)));
      }
    return z;
  }
}

}  // namespace vt_test
