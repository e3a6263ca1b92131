// Random bodies in scans, loops and branches, alone and mapped, values and gradients: compiled
// equals interpreted. The bodies join, turn and shift what they carry, so that elements which seem
// to run apart meet. VT_FUZZ_SEED repeats a failure.
#include <gtest/gtest.h>

#include <random>

#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;

/// A random number generator that a body makes anew whenever it is recorded, so that it is the same
/// body.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  const Tensor& of(const Tensors& pool) { return pool[below(pool.size())]; }

 private:
  std::mt19937_64 engine_;
};

/// Made of `a` as it is read: running sums and their like along an axis, or other elements at a
/// place.
Tensor updated(Choices& choose, const Tensor& a, const Tensor& b) {
  const int axis = static_cast<int>(choose.below(static_cast<std::size_t>(a.rank())));
  const bool reverse = choose.below(2) == 1;
  const Tensor at = (abs(sum(b)) * 100.0).astype(vt::i32) % static_cast<int>(a.dim(0));
  switch (choose.below(11)) {
    case 0: return vt::cumsum(a, axis, {.reverse = reverse});
    case 1: return vt::cumprod(a, axis, {.reverse = reverse});
    case 2: return vt::cummax(a, axis, {.reverse = reverse});
    case 3: return vt::cummin(a, axis, {.reverse = reverse});
    case 4: return vt::cumlogsumexp(a, axis, {.reverse = reverse});
    case 5: return vt::index_update(a, at, b[0]);
    case 6: return vt::index_add(a, at, b[0]);
    case 7: return vt::index_mul(a, at, b[0]);
    case 8: return vt::index_max(a, at, b[0]);
    case 9: return vt::index_min(a, at, b[0]);
    default: return vt::dynamic_update_slice_in_dim(a, b[vt::slice(0, (b.dim(0) + 1) / 2)], at);
  }
}

/// [m, m], positive definite if a is b.
Tensor regular(const Tensor& a, const Tensor& b) {
  return matmul(vt::transpose(a), b) * (1.0 / static_cast<double>(a.dim(0))) +
         6.0 * vt::eye(a.dim(1), a.dtype());
}

/// A few equations over `pool`, all of one shape [n] or [n, m], with a matrix w [m, m]; every value
/// stays within [-1, 1]. Sums that are zero but for rounding decide nothing: branches compare with
/// another number.
Tensors extended(Tensors pool, const Tensor& w, std::uint64_t seed, int length) {
  Choices choose(seed);
  const bool is_matrix = pool[0].rank() == 2;
  for (int k = 0; k < length; ++k) {
    const Tensor a = choose.of(pool), b = choose.of(pool);
    Tensor t;
    switch (choose.below(17)) {
      case 0: t = a * b; break;
      case 1: t = sin(a) + b; break;
      case 2: t = where(a > b, a, cos(b)); break;
      case 3: t = a - mean(b, -1, true); break;
      case 4: t = is_matrix ? matmul(a, w) : a * w[0][0]; break;
      case 5: t = maximum(a, b * 0.3); break;
      case 6: t = sigmoid(a) * b; break;
      case 7: t = flip(a, is_matrix ? 1 : 0) + b; break;
      case 8: t = a + sum(b) * 0.01; break;
      case 9: t = roll(a, 1, 0) - b; break;
      case 10:
        t = vt::cond(
            sum(a) > 0.137, [](Tensor x) { return x * 0.5; }, [](Tensor x) { return cos(x); }, b);
        break;
      case 11:
        t = a.dim(0) > 1 ? vt::concatenate({a[vt::slice(1, a.dim(0))], b[vt::slice(0, 1)]}, 0) : a;
        break;
      case 12: t = is_matrix ? transpose(transpose(a) + max(b, 1)) : a + max(b); break;
      case 13: t = updated(choose, a, b); break;
      case 14:
        t = is_matrix ? vt::transpose(vt::linalg::solve(regular(a, b), vt::transpose(a))) : a;
        break;
      case 15: t = is_matrix ? matmul(b, vt::linalg::cholesky(regular(a, a))) : b; break;
      default: t = reshape(ravel(a) * ravel(b), a.shape()); break;
    }
    pool.push_back(tanh(t));
  }
  return pool;
}

struct Program {
  std::uint64_t seed;
  int kind, rank, trips, length;
  bool reverse;

  explicit Program(std::uint64_t s) : seed(s) {
    Choices choose(s);
    kind = static_cast<int>(choose.below(8)) - 4;  // most are scans
    rank = 1 + static_cast<int>(choose.below(2));
    trips = 1 + static_cast<int>(choose.below(7));
    length = 2 + static_cast<int>(choose.below(6));
    reverse = choose.below(2) == 1;
  }
  std::vector<Tensor> arguments() const {
    Choices choose(seed + 1);
    const auto n = static_cast<std::int64_t>(1 + choose.below(choose.below(3) == 0 ? 90 : 12)),
               m = static_cast<std::int64_t>(1 + choose.below(5));
    const vt::Shape shape = rank == 2 ? vt::Shape{n, m} : vt::Shape{n};
    vt::Shape sequence = shape;
    sequence.insert(sequence.begin(), trips);
    return {vt_test::random_tensor(vt::f64, shape, -1, 1, seed),
            vt_test::random_tensor(vt::f64, sequence, -1, 1, seed + 2),
            vt_test::random_tensor(vt::f64, {m, m}, -1, 1, seed + 3)};
  }
  Tensor operator()(const Tensor& start, const Tensor& rows, const Tensor& w) const {
    Choices choose_rows(seed + 7);
    Tensor xs = rows;
    if (choose_rows.below(2) == 1) xs = updated(choose_rows, rows, cos(rows));
    if (choose_rows.below(4) == 3) xs = flip(xs, 0);
    const auto next = [&](const Tensor& a, const Tensor& b, const Tensor& x) {
      return extended({a, b, x}, w, seed + 4, length);
    };
    const std::pair<Tensor, Tensor> both(start, start * 0.3);
    switch (kind) {
      default: {
        const auto [last, ys] = vt::scan(
            [&](std::pair<Tensor, Tensor> c, Tensor x) {
              Choices choose_result(seed + 6);
              const Tensors pool = next(c.first, c.second, x);
              return std::pair{std::pair{pool.back(), pool[pool.size() - 2]},
                               choose_result.of(pool)};
            },
            both, xs, {.reverse = reverse});
        return sum(sin(last.first)) + sum(last.second) + sum(ys * ys);
      }
      case 1: {
        const auto last = vt::fori_loop(
            0, trips,
            [&](Tensor i, std::pair<Tensor, Tensor> c) {
              const Tensors pool = next(c.first, c.second, xs[i]);
              return std::pair{pool.back(), pool[pool.size() - 2]};
            },
            both);
        return sum(sin(last.first)) + sum(last.second);
      }
      case 2: {
        // Lanes stop at different times.
        const auto last = vt::while_loop(
            [&](std::pair<Tensor, std::pair<Tensor, Tensor>> c) {
              return logical_and(c.first < 6,
                                 sum(c.second.first) < 0.4 * static_cast<double>(start.size()));
            },
            [&](std::pair<Tensor, std::pair<Tensor, Tensor>> c) {
              const Tensors pool = next(c.second.first, c.second.second, xs[0]);
              return std::pair{c.first + 1, std::pair{pool.back() + 0.05, pool[pool.size() - 2]}};
            },
            std::pair{Tensor(0), both});
        return sum(sin(last.second.first)) + sum(last.second.second);
      }
      case 3:
        return sum(vt::cond(
            sum(start) > 0.137, [&](Tensor a) { return next(a, a * 0.5, xs[0]).back(); },
            [&](Tensor a) { return extended({a, a + 0.1, xs[0]}, w, seed + 5, length).back(); },
            start));
    }
  }
};

const std::uint64_t first_seed = vt_test::environment("VT_FUZZ_SEED", 1),
                    count = vt_test::environment("VT_FUZZ_COUNT", 100) * 2 / 5;
const vt_test::Tolerance close{.relative = 1e-9, .absolute = 1e-10};

TEST(RandomLoops, CompiledIsInterpreted) {
  for (std::uint64_t seed = first_seed; seed < first_seed + std::min<std::uint64_t>(count, 60);
       ++seed) {
    const Program program(seed * 1000);
    SCOPED_TRACE("VT_FUZZ_SEED=" + std::to_string(seed));
    const Tensors arguments = program.arguments();
    const auto value = [&](std::span<const Tensor> x) {
      return Tensors{program(x[0], x[1], x[2])};
    };
    vt_test::expect_same(value, arguments, close, "value");
    const auto slopes = [&](std::span<const Tensor> x) {
      const auto [a, b, c] = vt::grad<0, 1, 2>(program)(x[0], x[1], x[2]);
      return Tensors{a, b, c};
    };
    vt_test::expect_same(slopes, arguments, close, "gradient");
    const Tensor lanes =
        vt::stack({arguments[0], arguments[0] * 0.5, -arguments[0], cos(arguments[0])}).eval();
    const vt::VmapOptions shared{.in_axes = {0, vt::unmapped, vt::unmapped}};
    const auto mapped = [&](std::span<const Tensor> x) {
      return Tensors{vt::vmap(program, shared)(x[0], x[1], x[2])};
    };
    vt_test::expect_same(mapped, {lanes, arguments[1], arguments[2]}, close, "mapped");
    const auto mapped_slopes = [&](std::span<const Tensor> x) {
      const auto [a, c] = vt::vmap(vt::grad<0, 2>(program), shared)(x[0], x[1], x[2]);
      return Tensors{a, c};
    };
    vt_test::expect_same(mapped_slopes, {lanes, arguments[1], arguments[2]}, close,
                         "mapped gradient");
    if (HasFailure()) return;
  }
}

}  // namespace
