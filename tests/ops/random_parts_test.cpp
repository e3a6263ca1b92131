// Random functions of small vectors for many lanes, which put arrays together of parts that are
// computed in different ways, their derivatives and
// iterations: compiled equals interpreted. VT_FUZZ_SEED repeats a failure.
#include <gtest/gtest.h>

#include <random>

#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;

/// Makes the same function from the same seed. Values stay small, so that rounding decides nothing.
class Parts {
 public:
  explicit Parts(std::uint64_t seed) : engine_(seed) {}

  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& shared) {
    pool_ = {a, b, shared};
    for (std::size_t k = 2 + below(5); k > 0; --k) pool_.push_back(vt::tanh(vector()));
    const Tensor& last = pool_.back();
    return below(3) == 0 ? vt::ravel(vt::outer(last, pool_[3])) : last;
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  const Tensor& any() { return pool_[below(pool_.size())]; }
  Tensor element() {
    const Tensor& from = any();
    return from[static_cast<std::int64_t>(below(static_cast<std::size_t>(from.dim(0))))];
  }

  Tensor number(int depth) {
    if (depth == 0) return element();
    const Tensor a = number(depth - 1);
    switch (below(8)) {
      case 0: return a * number(depth - 1);
      case 1: return a + number(depth - 1);
      case 2: return a - 0.5 * element();
      case 3: return vt::sin(a);
      case 4: return vt::where(a > 0.137, number(depth - 1), element());
      case 5: return vt::maximum(a, element());
      case 6: return vt::sum(vt::square(any())) * a;
      default: return a / (1.5 + vt::square(element()));
    }
  }

  Tensor vector() {
    switch (below(7)) {
      case 0: return any() / (1.0 + vt::norm(any()));
      case 1: return vt::flip(any());
      case 2: return vt::softmax(any()) - 0.1;
      case 3: return vt::cumsum(vt::pad(any(), {{1, 0}}))[vt::slice(0, 3)];
      case 4: {
        const Tensor joined = vt::concatenate({any() * element(), vt::cos(any()), any()});
        return joined[vt::slice(1, std::min<std::int64_t>(joined.dim(0), 12))];
      }
      default: {
        Tensors parts;
        for (std::size_t k = 2 + below(4); k > 0; --k)
          parts.push_back(below(6) == 0 ? vt::zeros({}, vt::f64)
                                        : number(1 + static_cast<int>(below(3))));
        return vt::stack(parts);
      }
    }
  }

  std::mt19937_64 engine_;
  Tensors pool_;
};

const std::uint64_t first_seed = vt_test::environment("VT_FUZZ_SEED", 1),
                    count = vt_test::environment("VT_FUZZ_COUNT", 150) * 2 / 5;
const vt_test::Tolerance close{.relative = 1e-9, .absolute = 1e-10};

TEST(RandomParts, CompiledIsInterpreted) {
  constexpr std::int64_t sizes[] = {8, 9, 33, 257};
  for (std::uint64_t seed = first_seed; seed < first_seed + std::min<std::uint64_t>(count, 60);
       ++seed) {
    SCOPED_TRACE("VT_FUZZ_SEED=" + std::to_string(seed));
    const std::int64_t lanes = sizes[seed % 4];
    const int axis = static_cast<int>(seed / 4 % 2);
    const Tensor a = vt_test::random_tensor(
        vt::f64, axis == 0 ? vt::Shape{lanes, 3} : vt::Shape{3, lanes}, -1, 1, seed);
    const Tensors arguments = {a, vt_test::random_tensor(vt::f64, {lanes, 4}, -1, 1, seed + 1),
                               vt_test::random_tensor(vt::f64, {5}, -1, 1, seed + 2)};
    const auto f = [seed](Tensor x, Tensor y, Tensor shared) {
      return Parts(seed * 1000)(x, y, shared);
    };
    const auto check = [&](const char* what, auto g) {
      const auto mapped = vt::vmap(g, {.in_axes = {axis, 0, vt::unmapped}});
      vt_test::expect_same(
          [&](std::span<const Tensor> x) { return Tensors{mapped(x[0], x[1], x[2])}; }, arguments,
          close, what);
    };
    check("value", f);
    check("gradient",
          vt::grad([f](Tensor x, Tensor y, Tensor shared) { return vt::sum(f(x, y, shared)); }));
    if (seed % 3 == 0) check("Jacobian", vt::jacfwd(f));
    check("rounds", [f](Tensor x, Tensor y, Tensor shared) {
      const auto step = [&](Tensor state, Tensor in) {
        const Tensor result = f(state, in, shared);
        return std::pair(0.5 * state + 0.1 * vt::sum(result), result);
      };
      return vt::scan(step, x, vt::stack({y, 0.5 * y, -y})).second;
    });
    if (HasFailure()) return;
  }
}

}  // namespace
