// Reverse mode of loops of unknown length: whatever the number of states that are kept, derivatives
// are the same to the last bit, those of the unrolled loop; and memory goes by the iterations that
// happen. VT_FUZZ_SEED repeats a failure.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "src/trace/base/buffer.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using Tensors = std::vector<Tensor>;

/// Chooses by a seed alone, so that a body that is recorded again is the same body.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }

 private:
  std::mt19937_64 engine_;
};

/// An integer, numbers of two precisions and a vector, all carried. A sum of two has one order
/// only, in registers and in memory.
using State = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // i32[], f64[], f64[2], f32[]

/// A loop whose body is chosen by a seed, with another loop in it or not; its argument is a vector
/// of f64. All values stay within ±2.
struct Program {
  std::uint64_t seed;
  bool nested;

  /// `inner`: the loop inside, of the number of the iteration and what it carries.
  template <class Inner>
  State step(const State& s, const Tensor& x, const Inner& inner) const {
    auto [i, a, v, b] = s;
    Choices choose(seed);
    for (int k = 0; k < 3; ++k) switch (choose.below(6)) {
        case 0: a = vt::sin(a + x[0] * v[1]); break;
        case 1: a = a / (1.0 + a * a) + 0.3 * b.astype(vt::f64); break;
        case 2: v = vt::tanh(v * x[1] + a); break;
        case 3: v = vt::roll(v, 1, 0) * 0.9 + 0.1 * a; break;
        case 4: b = (0.5f * b + vt::cos(a).astype(vt::f32) * 0.4f); break;
        default: v = v * vt::exp(-0.1 * a * a) + 0.05 * i.astype(vt::f64) / 100.0; break;
      }
    a = vt::where(i % 3 == 1, a * 0.9 - 0.05 * v[0], a * x[1]);
    if (nested) a = inner(i, a);
    return {i + 1, vt::tanh(a), v, b};
  }
  static State start(const Tensor& x) {
    return {vt::tensor(0), x[0] * 0.5, vt::stack({x[1], x[0] * x[1]}), x[1].astype(vt::f32) * 0.5f};
  }
  static Tensor result(const State& s) {
    return std::get<1>(s) + vt::sum(vt::sin(std::get<2>(s))) + std::get<3>(s).astype(vt::f64);
  }

  /// `kept`: WhileOptions::checkpoint.
  Tensor operator()(const Tensor& x, const Tensor& n, std::int64_t kept) const {
    const auto inner = [&](const Tensor& i, const Tensor& a) {
      return vt::while_loop([&](Tensor j, Tensor) { return j < i % 4; },
                            [&](Tensor j, Tensor c) { return std::pair(j + 1, vt::sin(c) + x[0]); },
                            std::pair(0, a), {.checkpoint = kept})
          .second;
    };
    return result(vt::while_loop([&](const State& s) { return std::get<0>(s) < n; },
                                 [&](const State& s) { return step(s, x, inner); }, start(x),
                                 {.checkpoint = kept}));
  }
  Tensor unrolled(const Tensor& x, int n) const {
    State s = start(x);
    for (int i = 0; i < n; ++i)
      s = step(s, x, [&](const Tensor&, Tensor a) {
        for (int j = 0; j < i % 4; ++j) a = vt::sin(a) + x[0];
        return a;
      });
    return result(s);
  }
};

using Function = std::function<Tensor(Tensor, Tensor)>;
struct Derivative {
  const char* name;
  std::function<Tensor(const Function&, Tensor, Tensor)> of;
};
const std::array<Derivative, 4> derivatives{
    {{"gradient", [](const Function& f, Tensor x, Tensor n) { return vt::grad<0>(f)(x, n); }},
     {"jacfwd of grad",
      [](const Function& f, Tensor x, Tensor n) {
        return vt::jacfwd([&](Tensor y) { return vt::grad<0>(f)(y, n); })(x);
      }},
     {"jacrev of grad",
      [](const Function& f, Tensor x, Tensor n) {
        return vt::jacrev([&](Tensor y) { return vt::grad<0>(f)(y, n); })(x);
      }},
     {"hessian", [](const Function& f, Tensor x, Tensor n) {
        return vt::hessian([&](Tensor y) { return f(y, n); })(x);
      }}}};

void expect_same_bits(const Tensor& actual, const Tensor& expected, const std::string& what) {
  const std::vector<double> a = actual.to_vector<double>(), b = expected.to_vector<double>();
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(std::memcmp(&a[i], &b[i], sizeof(double)), 0)
        << what << ", element " << i << ": " << a[i] << ", not " << b[i];
}

/// The second call is compiled where the first one is interpreted.
Tensor compiled(const std::function<Tensor(Tensor, Tensor)>& f, const Tensor& x, const Tensor& n) {
  const auto program = vt::jit(f);
  program(x, n).eval();
  return program(x, n).eval();
}

const std::uint64_t first_seed = vt_test::environment("VT_FUZZ_SEED", 1),
                    programs = vt_test::environment("VT_FUZZ_COUNT", 100) / 25;
const std::vector<std::int64_t> numbers_of_states{1, 8, 30};

TEST(LoopStates, BitsDoNotDependOnHowManyAreKept) {
  for (std::uint64_t seed = first_seed; seed < first_seed + programs; ++seed) {
    SCOPED_TRACE("VT_FUZZ_SEED=" + std::to_string(seed));
    Choices choose(seed);
    const Program program{seed, choose.below(2) == 1};
    const auto with = [&](std::int64_t kept) {
      return Function([=](Tensor x, Tensor n) { return program(x, n, kept); });
    };
    const Tensor x = vt_test::random_tensor(vt::f64, {2}, -1, 1, seed);
    const int most = program.nested ? 20 : 90,
              count = choose.below(4) == 0 ? 0 : choose.below(most);
    // Lanes that stop at different times, some of which have no iteration.
    constexpr int lanes = 19;
    const Tensor xs = vt_test::random_tensor(vt::f64, {lanes, 2}, -1, 1, seed + 1);
    std::vector<int> counts(lanes);
    for (int& n : counts) n = choose.below(4) == 0 ? 0 : choose.below(most);
    const Tensor ns = vt::tensor(counts, {lanes});
    for (std::size_t d = 0; d < derivatives.size(); ++d) {
      if (d > 0 && static_cast<std::size_t>(seed) % 3 != d - 1) continue;  // each of a third
      const auto& derivative = derivatives[d];
      const auto of = [&](const Function& f) {
        return Function([&derivative, f](Tensor y, Tensor n) { return derivative.of(f, y, n); });
      };
      const auto in_lanes = [&](const Function& f) {
        return Function([g = of(f)](Tensor y, Tensor n) { return vt::vmap(g)(y, n); });
      };
      const Tensor n = vt::tensor(count);
      const Tensor alone = compiled(of(with(0)), x, n),
                   mapped = compiled(in_lanes(with(0)), xs, ns);
      expect_close(of(with(0))(x, n), alone, {.relative = 1e-7, .absolute = 1e-7}, "eager");
      const Function unrolled = [&](Tensor y, Tensor) { return program.unrolled(y, count); };
      if (count < 12)
        expect_close(of(unrolled)(x, n), alone, {.relative = 1e-4, .absolute = 1e-4}, "unrolled");
      for (int l = 0; l < lanes; l += 6)
        expect_close(mapped[l], compiled(of(with(0)), xs[l].eval(), ns[l].eval()),
                     {.relative = 1e-5, .absolute = 1e-5}, "a lane");
      for (const std::int64_t kept : numbers_of_states) {
        const std::string what = std::string(derivative.name) + ", " + std::to_string(kept);
        expect_same_bits(compiled(of(with(kept)), x, n), alone, what);
        expect_same_bits(compiled(in_lanes(with(kept)), xs, ns), mapped, what + " in lanes");
        if (HasFailure()) return;
      }
    }
  }
}

/// The most that was asked of the allocator during a call, beyond the arguments.
template <class F>
std::size_t bytes_of(const F& f, const Tensor& x, const Tensor& n) {
  static_cast<void>(f(x, n).eval());
  static_cast<void>(f(x, n).eval());
  vt::wait_compiled();
  const std::size_t before = vt::detail::pool_use().asked;
  vt::detail::reset_pool_peak();
  static_cast<void>(f(x, n).eval());
  return vt::detail::pool_use().asked_peak - before;
}
bool has_compiler() {
  const auto f = vt::jit([](Tensor x) { return x + 1.0; });
  f(vt::tensor(1.0));
  return vt::explain_steps(f)(vt::tensor(1.0)).rfind("interpreter", 0) != 0;
}

Tensor roots(Tensor a, Tensor n) {
  return vt::fori_loop(0, n, [&](Tensor, Tensor x) { return 0.5 * (x + a / x); }, a * 0.3 + 1.0);
}

Tensor complex_roots_kept(Tensor a, Tensor n, std::int64_t kept) {
  const Tensor z =
      vt::fori_loop(0, n, [&](Tensor, Tensor x) { return 0.5 * (x + vt::complex(a, 0.5 * a) / x); },
                    vt::complex(a * 0.3 + 1.0, a), {.checkpoint = kept});
  return vt::real(z) + vt::imag(z);
}
Tensor complex_roots(Tensor a, Tensor n) { return complex_roots_kept(a, n, 0); }

// Lanes keep their states in the frame of their kernel: what a call asks for is its results.
TEST(LoopStates, LanesInRegistersTakeNoMemory) {
  if (!has_compiler()) GTEST_SKIP() << "what is interpreted keeps states in memory";
  if (std::getenv("VT_LANES")) GTEST_SKIP() << "lanes in groups or queues keep them in memory";
  constexpr int lanes = 2821;
  const Tensor x = vt_test::random_tensor(vt::f64, {lanes}, 0.5, 1.5, 1),
               n = vt::full({lanes}, 5).eval();
  const auto gradient = vt::jit(vt::vmap(vt::grad(roots)));
  EXPECT_LE(bytes_of(gradient, x, n), 2 * lanes * sizeof(double));
  const auto second = vt::jit(vt::vmap(vt::grad(vt::grad(roots))));
  EXPECT_LE(bytes_of(second, x, n), 2 * lanes * sizeof(double));
  const auto of_sum =
      vt::jit(vt::grad([](Tensor a, Tensor m) { return vt::sum(vt::vmap(roots)(a, m)); }));
  EXPECT_LE(bytes_of(of_sum, x, n), 2 * lanes * sizeof(double));
  const auto one = vt::jit(vt::grad(roots));
  EXPECT_LE(bytes_of(one, vt::tensor(1.3), vt::tensor(5)), 64u);
  const auto of_complex = vt::jit(vt::vmap(vt::grad(complex_roots)));
  EXPECT_LE(bytes_of(of_complex, x, n), 2 * lanes * sizeof(double));
}

// A scan in whose body a loop runs is one function for each lane, backward too.
TEST(LoopStates, ScansOfLoopsInLanesAreOneFunction) {
  if (!has_compiler()) GTEST_SKIP() << "the interpreter has no functions";
  if (std::getenv("VT_LANES")) GTEST_SKIP() << "lanes in groups or queues run step by step";
  const auto scanned = [](Tensor a, Tensor n) {
    const auto step = [&](Tensor c, Tensor s) {
      const Tensor r = roots(c + 0.1 * s + a, n);
      return std::pair(r, r);
    };
    return vt::scan(step, a, vt::arange(50).astype(vt::f64) / 50.0).first;
  };
  const auto gradient = vt::jit(vt::vmap(vt::grad(scanned)));
  const Tensor x = vt_test::random_tensor(vt::f64, {16}, 0.5, 1.5, 1);
  const std::string text = vt::explain_steps(gradient)(x, vt::full({16}, 4).eval());
  EXPECT_EQ(text.find("sub-graph"), std::string::npos) << text;
}

TEST(LoopStates, ComplexStates) {
  const auto with = [](std::int64_t kept) {
    return Function([=](Tensor a, Tensor n) {
      return vt::grad<0>([&](Tensor y) { return complex_roots_kept(y, n, kept); })(a);
    });
  };
  constexpr int lanes = 19;
  const Tensor x = vt_test::random_tensor(vt::f64, {lanes}, 0.5, 1.5, 1);
  std::vector<int> counts;
  for (int i = 0; i < lanes; ++i) counts.push_back(i * 7 % 80);
  const Tensor n = vt::tensor(counts, {lanes});
  const Tensor expected = compiled(vt::vmap(with(0)), x, n);
  expect_close(vt::vmap(with(0))(x, n), expected, {.relative = 1e-12, .absolute = 1e-12}, "eager");
  for (const std::int64_t kept : numbers_of_states) {
    const std::string what = std::to_string(kept);
    expect_same_bits(compiled(vt::vmap(with(kept)), x, n), expected, what);
    for (int l = 0; l < lanes; l += 6)
      expect_close(compiled(with(kept), x[l].eval(), n[l].eval()), expected[l],
                   {.relative = 1e-12, .absolute = 1e-12}, what + ", a lane");
  }
}

// Where states lie in memory, none of it is filled or copied: kernels read and write some states
// for each iteration.
TEST(LoopStates, KernelsTouchTheStatesOfIterationsThatHappen) {
  if (!has_compiler()) GTEST_SKIP() << "the interpreter counts no bytes";
  constexpr std::int64_t size = 1000;
  const auto loss = [](Tensor a, Tensor n) {
    return vt::sum(vt::fori_loop(0, n, [&](Tensor, Tensor h) { return vt::sin(h) * 0.9 + a; }, a));
  };
  const auto gradient = vt::jit(vt::grad(loss));
  const Tensor a = vt_test::random_tensor(vt::f64, {size}, -1, 1, 1);
  const std::string text = vt::explain_steps(gradient)(a, vt::tensor(4));
  EXPECT_NE(text.find("memory for what a loop keeps"), std::string::npos) << text;
  // No kernel outside of the loops is as large as all states.
  const std::string states = std::to_string(size * (3 * 64 + 1) * 8) + " bytes, about";
  EXPECT_EQ(text.find(states), std::string::npos) << text;
  const auto bytes = [&](int n) {
    const Tensor count = vt::tensor(n);
    gradient(a, count).eval();
    gradient(a, count).eval();
    vt::reset_stats();
    gradient(a, count).eval();
    return vt::stats().bytes;
  };
  const std::uint64_t few = bytes(4), more = bytes(16);
  EXPECT_LT(more, 5 * few);
  EXPECT_GT(more, 2 * few);
}

// Windows of a complex array that a loop carries are read and written where they lie.
TEST(LoopStates, ComplexArraysAreUpdatedInPlace) {
  if (!has_compiler()) GTEST_SKIP() << "the interpreter counts no bytes";
  constexpr std::int64_t size = 100'000;
  const auto fill = vt::jit([](Tensor a, Tensor n) {
    return vt::fori_loop(
        0, n,
        [](Tensor i, Tensor all) {
          const Tensor last = vt::dynamic_slice(all, {i}, {4});
          return vt::dynamic_update_slice(all, last * 0.5 + 1.0, {i + 2});
        },
        a);
  });
  const Tensor a = vt_test::random_tensor(vt::c128, {size}, -1, 1, 1);
  const auto bytes = [&](int n) {
    const Tensor count = vt::tensor(n);
    fill(a, count).eval();
    fill(a, count).eval();
    vt::reset_stats();
    fill(a, count).eval();
    return vt::stats().bytes;
  };
  const std::uint64_t few = bytes(10), more = bytes(1000);
  EXPECT_LT(more - few, 1000u * 1000u);
}

}  // namespace
