// A stand-in for cuSOLVER, with the argument checks of the real one: matrices are brought to the
// host, factored there by plain loops in f64, and brought back. It waits for its stream, as some of
// the real routines do, so it cannot be captured. Loaded by tests through VT_CUSOLVER_LIBRARY,
// never linked.
#include "src/jit/cuda/libraries/solver_library.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "library_state.hpp"

namespace vt::detail::cuda {
struct SolverTag {
  Stream stream = nullptr;
};
struct SolverParamsTag {};
}  // namespace vt::detail::cuda

namespace {

using namespace vt::detail::cuda;
using vt_library::entered;

constexpr int invalid_value = 3, execution_failed = 6, internal_error = 7;
constexpr std::size_t device_work = 640, host_work = 96;

// Columns first.
struct Matrix {
  std::int64_t m = 0, n = 0;
  std::vector<double> e;
  Matrix(std::int64_t rows, std::int64_t columns)
      : m(rows), n(columns), e(static_cast<std::size_t>(rows * columns)) {}
  double& operator()(std::int64_t i, std::int64_t j) { return e[i + j * m]; }
  double operator()(std::int64_t i, std::int64_t j) const { return e[i + j * m]; }
  bool is_finite() const {
    return std::all_of(e.begin(), e.end(), [](double x) { return std::isfinite(x); });
  }
  double dot(std::int64_t i, std::int64_t j) const {
    return std::inner_product(&e[i * m], &e[i * m] + m, &e[j * m], 0.0);
  }
  // Columns i and j ← (c i − s j, s i + c j).
  void turn(std::int64_t i, std::int64_t j, double c, double s) {
    for (std::int64_t r = 0; r < m; ++r) {
      const double x = (*this)(r, i), y = (*this)(r, j);
      (*this)(r, i) = c * x - s * y, (*this)(r, j) = s * x + c * y;
    }
  }
  Matrix transposed() const {
    Matrix t(n, m);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) t(j, i) = (*this)(i, j);
    return t;
  }
};
Matrix unit(std::int64_t m, std::int64_t n) {
  Matrix x(m, n);
  for (std::int64_t i = 0; i < std::min(m, n); ++i) x(i, i) = 1;
  return x;
}
Matrix filled(std::int64_t m, std::int64_t n, double with) {
  Matrix x(m, n);
  std::fill(x.e.begin(), x.e.end(), with);
  return x;
}

// One-sided Jacobi: the columns of x become orthogonal, by rotations that v takes, too.
void make_orthogonal(Matrix& x, Matrix& v) {
  for (int sweep = 0; sweep < 40; ++sweep) {
    bool done = true;
    for (std::int64_t i = 0; i < x.n; ++i)
      for (std::int64_t j = i + 1; j < x.n; ++j) {
        const double a = x.dot(i, i), b = x.dot(j, j), both = x.dot(i, j);
        if (std::abs(both) <= 1e-15 * std::sqrt(a * b)) continue;
        done = false;
        const double zeta = (b - a) / (2 * both),
                     t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)),
                     c = 1 / std::sqrt(1 + t * t);
        x.turn(i, j, c, c * t);
        v.turn(i, j, c, c * t);
      }
    if (done) return;
  }
}
// Columns from `known` on, at right angles to all before.
void complete(Matrix& u, std::int64_t known) {
  for (std::int64_t j = known, next = 0; j < u.n; ++j)
    for (; next < u.m; ++next) {
      for (std::int64_t i = 0; i < u.m; ++i) u(i, j) = i == next;
      for (int twice = 0; twice < 2; ++twice)
        for (std::int64_t k = 0; k < j; ++k) {
          const double along = u.dot(k, j);
          for (std::int64_t i = 0; i < u.m; ++i) u(i, j) -= along * u(i, k);
        }
      const double length = std::sqrt(u.dot(j, j));
      if (length < 0.1 / static_cast<double>(u.m)) continue;
      for (std::int64_t i = 0; i < u.m; ++i) u(i, j) /= length;
      ++next;
      break;
    }
}

// Memory of the device as the host sees it, for the time of one routine.
class Mirror {
 public:
  explicit Mirror(Stream stream) : stream_(stream) {}
  template <class T>
  std::vector<T> read(const void* at, std::int64_t count) {
    std::vector<T> all(static_cast<std::size_t>(count));
    good_ = good_ &&
            VT_DRIVER(cuMemcpyDtoHAsync_v2)(all.data(), reinterpret_cast<DevicePtr>(at),
                                            all.size() * sizeof(T), stream_) == 0 &&
            VT_DRIVER(cuStreamSynchronize)(stream_) == 0;
    return all;
  }
  template <class T>
  void write(void* at, const T* from, std::int64_t count) {
    good_ = good_ &&
            VT_DRIVER(cuMemcpyHtoDAsync_v2)(reinterpret_cast<DevicePtr>(at), from,
                                            static_cast<std::size_t>(count) * sizeof(T),
                                            stream_) == 0 &&
            VT_DRIVER(cuStreamSynchronize)(stream_) == 0;
  }
  Matrix matrix(int type, const void* at, std::int64_t m, std::int64_t n) {
    Matrix x(m, n);
    if (type == SolverConstant::CUDA_R_64F) x.e = read<double>(at, m * n);
    else std::ranges::copy(read<float>(at, m * n), x.e.begin());
    return x;
  }
  void write_matrix(int type, void* at, const Matrix& x) {
    const auto size = x.m * x.n;
    if (type == SolverConstant::CUDA_R_64F) return write(at, x.e.data(), size);
    const std::vector<float> narrow(x.e.begin(), x.e.end());
    write(at, narrow.data(), size);
  }
  int status(void* info, int value = 0) {
    write(info, &value, 1);
    return good_ ? 0 : execution_failed;
  }

 private:
  Stream stream_;
  bool good_ = true;
};

bool is_type(int type) {
  return type == SolverConstant::CUDA_R_64F || type == SolverConstant::CUDA_R_32F;
}
// Room to work in: as much as was asked for, on both sides.
bool has_room(const void* on_device, std::size_t device_bytes, const void* on_host,
              std::size_t host_bytes) {
  return on_device && device_bytes >= device_work && on_host && host_bytes >= host_work;
}
int sizes(std::size_t* on_device, std::size_t* on_host) {
  *on_device = device_work, *on_host = host_work;
  return 0;
}

}  // namespace

namespace {

int reflections(SolverHandle handle, int type, int m, int n, int k, void* a, int lda,
                const void* tau, void* work, int room, std::size_t number, int* info) {
  if (m < n || n < k || lda != m || !work || static_cast<std::size_t>(room) < device_work / number)
    return invalid_value;
  Mirror there(handle->stream);
  const Matrix packed = there.matrix(type, a, m, k), factors = there.matrix(type, tau, k, 1);
  Matrix q = unit(m, n);
  for (int k0 = k; k0-- > 0;)
    for (int j = 0; j < n; ++j) {
      double sum = q(k0, j);
      for (int i = k0 + 1; i < m; ++i) sum += packed(i, k0) * q(i, j);
      q(k0, j) -= factors(k0, 0) * sum;
      for (int i = k0 + 1; i < m; ++i) q(i, j) -= factors(k0, 0) * sum * packed(i, k0);
    }
  there.write_matrix(type, a, q);
  return there.status(info);
}

}  // namespace

#define VT_ENTER(name) \
  if (const int failure = entered(#name)) return failure

extern "C" {

int cusolverDnCreate(SolverHandle* handle) {
  VT_ENTER(cusolverDnCreate);
  *handle = new SolverTag;
  return 0;
}
int cusolverDnDestroy(SolverHandle handle) {
  VT_ENTER(cusolverDnDestroy);
  delete handle;
  return 0;
}
int cusolverDnSetStream(SolverHandle handle, Stream stream) {
  VT_ENTER(cusolverDnSetStream);
  handle->stream = stream;
  return 0;
}
int cusolverDnCreateParams(SolverParams* params) {
  VT_ENTER(cusolverDnCreateParams);
  *params = new SolverParamsTag;
  return 0;
}
int cusolverDnDestroyParams(SolverParams params) {
  VT_ENTER(cusolverDnDestroyParams);
  delete params;
  return 0;
}

int cusolverDnXpotrf_bufferSize(SolverHandle, SolverParams, int, std::int64_t n, int, const void*,
                                std::int64_t lda, int, std::size_t* d, std::size_t* h) {
  VT_ENTER(cusolverDnXpotrf_bufferSize);
  return lda < n ? invalid_value : sizes(d, h);
}
int cusolverDnXpotrf(SolverHandle handle, SolverParams, int uplo, std::int64_t n, int type, void* a,
                     std::int64_t lda, int compute, void* d, std::size_t nd, void* h,
                     std::size_t nh, int* info) {
  VT_ENTER(cusolverDnXpotrf);
  if (lda != n || !is_type(type) || compute != type || !has_room(d, nd, h, nh))
    return invalid_value;
  Mirror there(handle->stream);
  Matrix x = there.matrix(type, a, n, n);
  // Only the triangle that was asked for is read and written.
  const bool upper = uplo == SolverConstant::CUBLAS_FILL_MODE_UPPER;
  // of the lower factor
  const auto element = [&](std::int64_t i, std::int64_t j) -> double& {
    return upper ? x(j, i) : x(i, j);
  };
  int bad = 0;
  for (std::int64_t j = 0; j < n && !bad; ++j)
    for (std::int64_t i = j; i < n && !bad; ++i) {
      double sum = element(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= element(i, k) * element(j, k);
      if (i == j && !(sum > 0)) bad = static_cast<int>(j + 1);
      else element(i, j) = i == j ? std::sqrt(sum) : sum / element(j, j);
    }
  there.write_matrix(type, a, x);
  return there.status(info, bad);
}

int cusolverDnXgetrf_bufferSize(SolverHandle, SolverParams, std::int64_t m, std::int64_t, int,
                                const void*, std::int64_t lda, int, std::size_t* d,
                                std::size_t* h) {
  VT_ENTER(cusolverDnXgetrf_bufferSize);
  return lda < m ? invalid_value : sizes(d, h);
}
int cusolverDnXgetrf(SolverHandle handle, SolverParams, std::int64_t m, std::int64_t n, int type,
                     void* a, std::int64_t lda, std::int64_t* pivots, int compute, void* d,
                     std::size_t nd, void* h, std::size_t nh, int* info) {
  VT_ENTER(cusolverDnXgetrf);
  if (lda != m || !is_type(type) || compute != type || !has_room(d, nd, h, nh))
    return invalid_value;
  Mirror there(handle->stream);
  Matrix x = there.matrix(type, a, m, n);
  std::vector<std::int64_t> exchanges;
  int singular = 0;
  for (std::int64_t k = 0; k < std::min(m, n); ++k) {
    std::int64_t p = k;
    for (std::int64_t i = k; i < m; ++i)
      if (std::abs(x(i, k)) > std::abs(x(p, k))) p = i;
    exchanges.push_back(p + 1);
    for (std::int64_t j = 0; j < n; ++j) std::swap(x(k, j), x(p, j));
    if (x(k, k) == 0.0) {
      if (!singular) singular = static_cast<int>(k + 1);
      continue;
    }
    for (std::int64_t i = k + 1; i < m; ++i) x(i, k) /= x(k, k);
    for (std::int64_t j = k + 1; j < n; ++j)
      for (std::int64_t i = k + 1; i < m; ++i) x(i, j) -= x(i, k) * x(k, j);
  }
  there.write_matrix(type, a, x);
  there.write(pivots, exchanges.data(), std::min(m, n));
  return there.status(info, singular);
}
int cusolverDnXgetrs(SolverHandle handle, SolverParams, int op, std::int64_t n, std::int64_t k,
                     int type, const void* a, std::int64_t lda, const std::int64_t* pivots,
                     int b_type, void* b, std::int64_t ldb, int* info) {
  VT_ENTER(cusolverDnXgetrs);
  if (lda != n || ldb != n || !is_type(type) || b_type != type) return invalid_value;
  Mirror there(handle->stream);
  const Matrix x = there.matrix(type, a, n, n);
  Matrix y = there.matrix(type, b, n, k);
  const std::vector<std::int64_t> exchanges = there.read<std::int64_t>(pivots, n);
  const auto exchange = [&](std::int64_t i) {
    for (std::int64_t c = 0; c < k; ++c) std::swap(y(i, c), y(exchanges[i] - 1, c));
  };
  // The lower triangle with ones as its diagonal, then the upper one; or the other way round, each
  // transposed.
  const bool transposed = op == SolverConstant::CUBLAS_OP_T;
  const auto factor = [&](std::int64_t i, std::int64_t j) {
    return transposed ? x(j, i) : x(i, j);
  };
  for (std::int64_t i = 0; !transposed && i < n; ++i) exchange(i);
  for (std::int64_t c = 0; c < k; ++c) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < i; ++j) y(i, c) -= factor(i, j) * y(j, c);
      if (transposed) y(i, c) /= x(i, i);
    }
    for (std::int64_t i = n; i-- > 0;) {
      for (std::int64_t j = i + 1; j < n; ++j) y(i, c) -= factor(i, j) * y(j, c);
      if (!transposed) y(i, c) /= x(i, i);
    }
  }
  for (std::int64_t i = n; transposed && i-- > 0;) exchange(i);
  there.write_matrix(type, b, y);
  return there.status(info);
}

int cusolverDnXgeqrf_bufferSize(SolverHandle, SolverParams, std::int64_t m, std::int64_t, int,
                                const void*, std::int64_t lda, int, const void*, int,
                                std::size_t* d, std::size_t* h) {
  VT_ENTER(cusolverDnXgeqrf_bufferSize);
  return lda < m ? invalid_value : sizes(d, h);
}
int cusolverDnXgeqrf(SolverHandle handle, SolverParams, std::int64_t m, std::int64_t n, int type,
                     void* a, std::int64_t lda, int tau_type, void* tau, int compute, void* d,
                     std::size_t nd, void* h, std::size_t nh, int* info) {
  VT_ENTER(cusolverDnXgeqrf);
  if (lda != m || !is_type(type) || compute != type || tau_type != type || !has_room(d, nd, h, nh))
    return invalid_value;
  Mirror there(handle->stream);
  Matrix x = there.matrix(type, a, m, n), factors(std::min(m, n), 1);
  for (std::int64_t k = 0; k < std::min(m, n); ++k) {
    double below = 0;
    for (std::int64_t i = k + 1; i < m; ++i) below += x(i, k) * x(i, k);
    if (below == 0) continue;
    const double head = x(k, k), beta = -std::copysign(std::sqrt(head * head + below), head);
    factors(k, 0) = (beta - head) / beta;
    for (std::int64_t i = k + 1; i < m; ++i) x(i, k) /= head - beta;
    x(k, k) = beta;
    for (std::int64_t j = k + 1; j < n; ++j) {
      double sum = x(k, j);
      for (std::int64_t i = k + 1; i < m; ++i) sum += x(i, k) * x(i, j);
      x(k, j) -= factors(k, 0) * sum;
      for (std::int64_t i = k + 1; i < m; ++i) x(i, j) -= factors(k, 0) * sum * x(i, k);
    }
  }
  there.write_matrix(type, a, x);
  there.write_matrix(type, tau, factors);
  return there.status(info);
}

int cusolverDnSorgqr_bufferSize(SolverHandle, int m, int n, int k, const float*, int lda,
                                const float*, int* numbers) {
  VT_ENTER(cusolverDnSorgqr_bufferSize);
  *numbers = static_cast<int>(device_work / sizeof(float));
  return m < n || n < k || lda < m ? invalid_value : 0;
}
int cusolverDnDorgqr_bufferSize(SolverHandle, int m, int n, int k, const double*, int lda,
                                const double*, int* numbers) {
  VT_ENTER(cusolverDnDorgqr_bufferSize);
  *numbers = static_cast<int>(device_work / sizeof(double));
  return m < n || n < k || lda < m ? invalid_value : 0;
}
int cusolverDnSorgqr(SolverHandle handle, int m, int n, int k, float* a, int lda, const float* tau,
                     float* work, int room, int* info) {
  VT_ENTER(cusolverDnSorgqr);
  return reflections(handle, SolverConstant::CUDA_R_32F, m, n, k, a, lda, tau, work, room,
                     sizeof(float), info);
}
int cusolverDnDorgqr(SolverHandle handle, int m, int n, int k, double* a, int lda,
                     const double* tau, double* work, int room, int* info) {
  VT_ENTER(cusolverDnDorgqr);
  return reflections(handle, SolverConstant::CUDA_R_64F, m, n, k, a, lda, tau, work, room,
                     sizeof(double), info);
}

int cusolverDnXsyevd_bufferSize(SolverHandle, SolverParams, int, int, std::int64_t n, int,
                                const void*, std::int64_t lda, int, const void*, int,
                                std::size_t* d, std::size_t* h) {
  VT_ENTER(cusolverDnXsyevd_bufferSize);
  return lda < n ? invalid_value : sizes(d, h);
}
int cusolverDnXsyevd(SolverHandle handle, SolverParams, int mode, int uplo, std::int64_t n,
                     int type, void* a, std::int64_t lda, int value_type, void* values, int compute,
                     void* d, std::size_t nd, void* h, std::size_t nh, int* info) {
  VT_ENTER(cusolverDnXsyevd);
  if (lda != n || !is_type(type) || compute != type || value_type != type ||
      uplo != SolverConstant::CUBLAS_FILL_MODE_LOWER || !has_room(d, nd, h, nh))
    return invalid_value;
  Mirror there(handle->stream);
  Matrix x = there.matrix(type, a, n, n), v = unit(n, n);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < j; ++i) x(i, j) = x(j, i);
  if (!x.is_finite()) return internal_error;  // who gives it that might wait for long
  // Jacobi's rotations from both sides.
  for (int sweep = 0; sweep < 30; ++sweep) {
    double off = 0, all = 0;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        all += x(i, j) * x(i, j), off += i == j ? 0 : x(i, j) * x(i, j);
    if (off <= 1e-30 * all) break;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = i + 1; j < n; ++j) {
        if (x(i, j) == 0) continue;
        const double zeta = (x(j, j) - x(i, i)) / (2 * x(i, j)),
                     t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)),
                     c = 1 / std::sqrt(1 + t * t), s = c * t;
        x.turn(i, j, c, s);
        v.turn(i, j, c, s);
        for (std::int64_t k = 0; k < n; ++k) {
          const double p = x(i, k), q = x(j, k);
          x(i, k) = c * p - s * q, x(j, k) = s * p + c * q;
        }
      }
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::int64_t i, std::int64_t j) { return x(i, i) < x(j, j); });
  // Vectors of any sign, and none where nobody asks: then what was a is no longer.
  Matrix ordered(n, 1), vectors = filled(n, n, NAN);
  for (std::int64_t j = 0; j < n; ++j) {
    const std::int64_t from = order[j];
    ordered(j, 0) = x(from, from);
    for (std::int64_t i = 0; mode == SolverConstant::CUSOLVER_EIG_MODE_VECTOR && i < n; ++i)
      vectors(i, j) = -v(i, from);
  }
  there.write_matrix(type, values, ordered);
  there.write_matrix(type, a, vectors);
  return there.status(info);
}

int cusolverDnXgesvd_bufferSize(SolverHandle, SolverParams, signed char, signed char,
                                std::int64_t m, std::int64_t n, int, const void*, std::int64_t lda,
                                int, const void*, int, const void*, std::int64_t, int, const void*,
                                std::int64_t, int, std::size_t* d, std::size_t* h) {
  VT_ENTER(cusolverDnXgesvd_bufferSize);
  return lda < m || m < n ? invalid_value : sizes(d, h);
}
int cusolverDnXgesvd(SolverHandle handle, SolverParams, signed char jobu, signed char jobvt,
                     std::int64_t m, std::int64_t n, int type, void* a, std::int64_t lda,
                     int value_type, void* values, int u_type, void* u, std::int64_t ldu,
                     int vt_type, void* vt, std::int64_t ldvt, int compute, void* d, std::size_t nd,
                     void* h, std::size_t nh, int* info) {
  VT_ENTER(cusolverDnXgesvd);
  if (lda != m || m < n || ldu != m || ldvt != n || !is_type(type) || compute != type ||
      value_type != type || u_type != type || vt_type != type || jobu != jobvt ||
      !has_room(d, nd, h, nh))
    return invalid_value;
  Mirror there(handle->stream);
  Matrix x = there.matrix(type, a, m, n), v = unit(n, n);
  if (!x.is_finite()) return internal_error;
  make_orthogonal(x, v);
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order,
                    [&](std::int64_t i, std::int64_t j) { return x.dot(i, i) > x.dot(j, j); });
  Matrix lengths(n, 1), left(m, jobu == 'A' ? m : n), right(n, n);
  std::int64_t known = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const std::int64_t from = order[j];
    lengths(j, 0) = std::sqrt(x.dot(from, from));
    if (lengths(j, 0) > 0) known = j + 1;
    for (std::int64_t i = 0; i < m; ++i)
      left(i, j) = lengths(j, 0) > 0 ? x(i, from) / lengths(j, 0) : 0;
    for (std::int64_t i = 0; i < n; ++i) right(i, j) = v(i, from);
  }
  there.write_matrix(type, values, lengths);
  there.write_matrix(type, a, filled(m, n, NAN));
  if (jobu != 'N') {
    complete(left, known);
    there.write_matrix(type, u, left);
    there.write_matrix(type, vt, right.transposed());
  }
  return there.status(info);
}

}  // extern "C"
