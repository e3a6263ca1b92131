// Compiled control flow against the interpreter: loops in registers, loops over programs, lanes in
// groups; in place; what runs where.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;
using Flat = vt::detail::FlatFunction;

/// A function of one lane, and what to call it with.
struct Case {
  std::string name;
  Flat f;
  Tensors arguments;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// The two iteration sums and functions differently; loops carry that on, and differences of what is
// about 1 are small numbers.
const vt_test::Tolerance close{.relative = 1e-12, .absolute = 1e-13};

Tensor number(double v) { return vt::tensor(v); }
Tensor vector(int n, std::uint64_t seed) {
  return vt_test::random_tensor(vt::f64, {n}, -1, 1, seed);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](std::string name, Flat f, Tensors arguments) {
    all.push_back({std::move(name), std::move(f), std::move(arguments)});
  };

  add("rounds by value",
      [](In a) -> Tensors {
        auto [i, x] = vt::while_loop(
            [&](Tensor i, Tensor) { return i < a[1]; },
            [&](Tensor i, Tensor x) { return std::tuple(i + 1, vt::sin(x) + 0.5 * a[2]); },
            std::tuple(0, a[0]));
        return {x, i};
      },
      {number(0.3), vt::tensor(5), number(0.2)});

  add("stops by its own value",
      [](In a) -> Tensors {
        auto [n, x] = vt::while_loop(
            [](Tensor n, Tensor x) { return (x > 0.01) & (n < 60); },
            [&](Tensor n, Tensor x) { return std::tuple(n + 1, x * (0.5 + 0.4 * vt::abs(a[1]))); },
            std::tuple(0, vt::abs(a[0]) + 0.02));
        return {x, n};
      },
      {number(0.8), number(0.7)});

  add("branch of three",
      [](In a) -> Tensors {
        return {vt::switch_(a[1],
                            std::tuple([](Tensor x) { return vt::sqrt(vt::abs(x)); },
                                       [](Tensor x) { return x * x; }, [](Tensor x) { return -x; }),
                            a[0])};
      },
      {number(0.6), vt::tensor(1)});

  add("branch inside a loop inside a branch",
      [](In a) -> Tensors {
        return {vt::cond(
            a[0] > 0.0,
            [&](Tensor x) {
              return vt::fori_loop(
                  0, 7,
                  [&](Tensor i, Tensor s) {
                    return vt::cond(
                        s > 1.0, [&](Tensor s) { return s * 0.5; },
                        [&](Tensor s) { return s + x * i.astype(vt::f64); }, s);
                  },
                  x);
            },
            [](Tensor x) { return x - 1.0; }, a[0])};
      },
      {number(0.4)});

  add("loop inside a loop, both by value",
      [](In a) -> Tensors {
        auto [i, x] = vt::while_loop(
            [&](Tensor i, Tensor) { return i < a[1]; },
            [&](Tensor i, Tensor x) {
              auto [j, y] = vt::while_loop(
                  [&](Tensor j, Tensor) { return j < i; },
                  [&](Tensor j, Tensor y) { return std::tuple(j + 1, y * 0.9 + a[0]); },
                  std::tuple(0, x));
              return std::tuple(i + 1, y);
            },
            std::tuple(0, a[0]));
        return {x};
      },
      {number(0.3), vt::tensor(4)});

  add("small vectors and matrices",
      [](In a) -> Tensors {  // values that are taken apart into registers
        auto [k, x, m] = vt::while_loop(
            [&](Tensor k, Tensor x, Tensor) { return (k < 6) & (vt::sum(x * x) < 50.0); },
            [&](Tensor k, Tensor x, Tensor m) {
              Tensor y = vt::matmul(m, x) + vt::flip(x);
              Tensor n = vt::transpose(m) * 0.5 + vt::outer(x, x) * 0.1;
              y = vt::concatenate({y[vt::slice(1, 3)], vt::expand_dims(vt::max(y), 0)});
              return std::tuple(k + 1, y,
                                n - vt::eye(3, vt::f64) * vt::min(x) +
                                    vt::pad(vt::reshape(x, {3, 1}), {{0, 0}, {1, 1}}));
            },
            std::tuple(0, a[0], a[1]));
        return {x, m, k};
      },
      {vector(3, 1), vt::reshape(vector(9, 2), {3, 3})});

  add("places known at run time, few elements",
      [](In a) -> Tensors {
        return {vt::fori_loop(
            0, 5,
            [&](Tensor i, Tensor x) {
              return vt::index_add(vt::index_update(x, i, x[(i + 1) % 4] * 0.5), 2, a[1] + x[i]);
            },
            a[0])};
      },
      {vector(4, 3), number(0.25)});

  add("places known at run time, many elements",
      [](In a) -> Tensors {
        return {vt::fori_loop(
            2, 30,
            [&](Tensor i, Tensor x) {
              return vt::dynamic_update_slice(
                  x, vt::reshape(x[i - 1] * 0.7 + x[i - 2] * 0.3 + a[1], {1}), {i});
            },
            a[0])};
      },
      {vector(50, 4), number(0.01)});

  add("scatters into many elements",
      [](In a) -> Tensors {
        return {vt::fori_loop(
            0, 12,
            [&](Tensor i, Tensor x) {
              return vt::index_add(x, vt::stack({i * 3, i + 100, i}),
                                   vt::stack({a[1], a[1], x[i]}));
            },
            a[0])};
      },
      {vector(40, 5), number(0.5)});

  add("scan with results",
      [](In a) -> Tensors {
        auto [last, ys] = vt::scan(
            [&](Tensor c, std::pair<Tensor, Tensor> x) {
              return std::pair(vt::tanh(c * a[2] + x.first), std::pair(c * x.second[1], x.second));
            },
            number(0.1), std::pair(a[0], a[1]));
        return {last, ys.first, ys.second};
      },
      {vector(9, 6), vt::reshape(vector(27, 7), {9, 3}), number(0.8)});

  add("scan backwards over rows",
      [](In a) -> Tensors {
        auto [last, ys] =
            vt::scan([](Tensor c, Tensor x) { return std::pair(c * 0.5 + x, vt::sum(c * x)); },
                     vt::zeros({40}, vt::f64), a[0], {.reverse = true});
        return {last, ys};
      },
      {vt::reshape(vector(200, 8), {5, 40})});

  add("large values",
      [](In a) -> Tensors {  // too many for registers: bodies are programs
        auto [k, x] =
            vt::while_loop([&](Tensor k, Tensor x) { return (k < a[1]) & (vt::sum(x) < 1e3); },
                           [&](Tensor k, Tensor x) {
                             return std::tuple(k + 1, vt::cumsum(vt::sin(x)) * 0.1 + vt::flip(x));
                           },
                           std::tuple(0, a[0]));
        return {x, k};
      },
      {vector(60, 9), vt::tensor(4)});

  add("large values, branches",
      [](In a) -> Tensors {
        return {vt::fori_loop(
            0, 4,
            [&](Tensor i, Tensor x) {
              return vt::cond(
                  vt::sum(x) > a[1], [](Tensor x) { return x * 0.5 - 0.1; },
                  [&](Tensor x) { return vt::sin(x) + i.astype(vt::f64); }, x);
            },
            a[0])};
      },
      {vector(70, 10), number(0.2)});

  add("carries that change places",
      [](In a) -> Tensors {
        auto [x, y, z] = vt::fori_loop(
            0, 5, [](Tensor, Tensor x, Tensor y, Tensor z) { return std::tuple(y, z, x + y); },
            std::tuple(a[0], a[0], a[1]));
        return {x, y, z};
      },
      {vector(64, 11), vector(64, 12)});

  add("an element handed on as the carry",
      [](In a) -> Tensors {
        auto [last, ys] = vt::scan([](Tensor c, Tensor x) { return std::pair(x, c); },
                                   vt::zeros({40}, vt::f64), a[0]);
        return {last, ys};
      },
      {vt::reshape(vector(160, 13), {4, 40})});

  // Its products with xs move in front of the loop, the sums that are its weights' gradients behind
  // it.
  add("recurrent cell",
      [](In a) -> Tensors {
        auto [last, ys] = vt::scan(
            [&](Tensor h, Tensor x) {
              h = vt::tanh(vt::matmul(x, a[1]) + vt::matmul(h, a[2]) + a[3]);
              return std::pair(h, vt::sum(h, 1));
            },
            vt::zeros({8, 40}, vt::f64), a[0]);
        return {last, ys};
      },
      {vt::reshape(vector(5 * 8 * 16, 14), {5, 8, 16}), vt::reshape(vector(16 * 40, 15), {16, 40}),
       vt::reshape(vector(40 * 40, 16) * 0.2, {40, 40}), vector(40, 17)});
  add("recurrent cell backwards, some of it invariant",
      [](In a) -> Tensors {
        auto [last, sums, ys] = [&] {
          auto [carry, ys] = vt::scan(
              [&](std::pair<Tensor, Tensor> c, Tensor x) {
                const Tensor y = vt::matmul(vt::sin(x), a[1]);
                return std::pair(
                    std::pair(vt::tanh(c.first + y), c.second + vt::matmul(vt::transpose(x), y)),
                    y);
              },
              std::pair(vt::zeros({8, 40}, vt::f64), vt::ones({16, 40}, vt::f64)), a[0],
              {.reverse = true});
          return std::tuple(carry.first, carry.second, ys);
        }();
        return {last, sums, ys};
      },
      {vt::reshape(vector(5 * 8 * 16, 18), {5, 8, 16}),
       vt::reshape(vector(16 * 40, 19), {16, 40})});
  add("several sums of products in one carry, and what stays in the loop",
      [](In a) -> Tensors {
        auto [x, y, z] = vt::fori_loop(
            0, 6,
            [&](Tensor i, Tensor x, Tensor y, Tensor z) {
              y = y + vt::outer(x, a[0]) + vt::cos(a[1] * x[0]) +
                  vt::transpose(vt::outer(a[0] + i.astype(vt::f64), vt::sin(x)));
              z = vt::outer(x, x) + (vt::transpose(vt::outer(a[0], x)) + z);
              return std::tuple(vt::tanh(vt::matmul(a[1], x)), y, z);
            },
            std::tuple(a[0], a[1] * 0.5, a[1]));
        return {x, y, z};
      },
      {vector(70, 22) * 0.1, vt::reshape(vector(70 * 70, 23) * 0.1, {70, 70})});
  const auto smooth = [](Tensor x) {
    return vt::reshape(vt::conv1d(vt::reshape(x, {6, 1}),
                                  vt::reshape(x[vt::slice(0, 3)], {3, 1, 1}), {.padding = "SAME"}),
                       {6});
  };
  add("small convolutions in a branch, in a loop and in a scan",
      [=](In a) -> Tensors {
        const Tensor branch =
            vt::cond(a[0][0] > 0.1, smooth, [](Tensor x) { return vt::sin(x); }, a[0]);
        const Tensor loop =
            vt::while_loop([](Tensor x) { return vt::sum(x * x) > 0.05; },
                           [=](Tensor x) { return vt::tanh(smooth(x)) * 0.3; }, a[0]);
        const Tensor steps =
            vt::scan(
                [=](Tensor c, Tensor x) { return std::pair(vt::tanh(smooth(c) + x), vt::sum(c)); },
                a[0], vt::reshape(a[1], {3, 6}))
                .second;
        return {branch, loop, steps};
      },
      {vector(6, 20), vector(18, 21)});
  return all;
}

vt::Vec<vt::detail::MappedAxis> mapped(std::size_t n, unsigned mask) {
  vt::Vec<vt::detail::MappedAxis> axes;
  for (std::size_t i = 0; i < n; ++i)
    axes.push_back(mask >> i & 1 ? vt::detail::MappedAxis(0) : std::nullopt);
  return axes;
}
Flat vmapped(Flat f, std::size_t n, unsigned mask) {
  return [f, axes = mapped(n, mask)](In a) {
    vt::detail::VmapCall call;
    call.arguments = a;
    call.in_axes = axes;
    return vt::detail::vmap_flat(f, call);
  };
}
/// Lanes that differ: floats are scaled, integers move by up to two.
Tensors with_lanes(Tensors arguments, unsigned mask, int lanes, std::uint64_t seed) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!(mask >> i & 1)) continue;
    const Tensor& x = arguments[i];
    vt::Shape column{lanes};
    for (int d = 0; d < x.rank(); ++d) column.push_back(1);
    const bool real = vt::is_float(x.dtype());
    const Tensor vary = vt::reshape(
        vt_test::random_tensor(x.dtype(), {lanes}, real ? -1.5 : -2, real ? 1.5 : 2, seed + i),
        column);
    arguments[i] = (real ? vt::expand_dims(x, 0) * vary : vt::expand_dims(x, 0) + vary).eval();
  }
  return arguments;
}
Flat gradient(Flat f, const Tensors& arguments) {
  std::vector<bool> wanted;
  for (const Tensor& t : arguments) wanted.push_back(vt::is_float(t.dtype()));
  return [f, wanted](In a) {
    const Flat total = [&](In x) -> Tensors {
      Tensor sum = vt::tensor(0.0);
      for (const Tensor& y : f(x))
        if (vt::is_float(y.dtype())) sum = sum + vt::sum(y * y);
      return {sum};
    };
    const std::unique_ptr<bool[]> flags(new bool[wanted.size()]);
    std::copy(wanted.begin(), wanted.end(), flags.get());
    vt::detail::GradCall call;
    call.arguments = a;
    call.wanted = {flags.get(), wanted.size()};
    return vt::detail::value_and_grad_flat(total, call).gradients;
  };
}

class JitControl : public ::testing::TestWithParam<Case> {};

TEST_P(JitControl, EqualsTheInterpreter) {
  const Case& c = GetParam();
  vt_test::expect_same(c.f, c.arguments, close, c.name);
}

TEST_P(JitControl, EqualsTheInterpreterUnderVmap) {
  const Case& c = GetParam();
  const std::size_t n = c.arguments.size();
  for (unsigned mask = 1; mask < 1u << n; ++mask)
    for (int lanes : {1, 5, 37})
      vt_test::expect_same(
          vmapped(c.f, n, mask), with_lanes(c.arguments, mask, lanes, 20), close,
          c.name + ", " + std::to_string(lanes) + " lanes, mapped " + std::to_string(mask));
}

TEST_P(JitControl, EqualsTheInterpreterUnderTwoVmaps) {
  const Case& c = GetParam();
  const std::size_t n = c.arguments.size();
  const unsigned all = (1u << n) - 1;
  Tensors arguments = with_lanes(c.arguments, all, 6, 30);
  arguments[0] = vt::stack({arguments[0], arguments[0] * 0.5, arguments[0] * -1.0}).eval();
  vt_test::expect_same(vmapped(vmapped(c.f, n, all), n, 1), arguments, close, c.name);
}

TEST_P(JitControl, GradientsEqualTheInterpreters) {
  const Case& c = GetParam();
  // sums of squares are large
  const vt_test::Tolerance close{.relative = 1e-10, .absolute = 1e-12};
  const Flat g = gradient(c.f, c.arguments);
  vt_test::expect_same(g, c.arguments, close, c.name);
  const std::size_t n = c.arguments.size();
  const unsigned all = (1u << n) - 1;
  vt_test::expect_same(vmapped(g, n, all), with_lanes(c.arguments, all, 5, 40), close,
                       c.name + ", 5 lanes");
}

INSTANTIATE_TEST_SUITE_P(All, JitControl, ::testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param.name;
  for (char& ch : name)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return name;
});

// --- what runs where -----------------------------------------------------------------------------

bool has_compiler() {
  const auto f = vt::jit([](Tensor x) { return x + 1.0; });
  f(number(1));
  return vt::explain_steps(f)(number(1)).rfind("interpreter", 0) != 0;
}
bool grouped() {
  const char* text = std::getenv("VT_LANES");
  return text && std::string(text) == "groups";
}

TEST(JitControlRuns, SmallLoopsAreOneFunction) {
  if (!has_compiler()) GTEST_SKIP() << "no compiler here";
  const auto f = vt::jit([](Tensor x) {
    return vt::while_loop([](Tensor x) { return x < 100.0; }, [](Tensor x) { return x * 1.5; }, x);
  });
  EXPECT_EQ(f(number(1)).item<double>(), 129.746337890625);
  vt::reset_stats();
  f(number(1)).eval();
  EXPECT_EQ(vt::stats().interpreter_steps, 0u);
  EXPECT_EQ(vt::stats().programs_run, 1u);  // no body of its own
  EXPECT_NE(vt::explain_steps(f)(number(1)).find("one function, its values in registers"),
            std::string::npos)
      << vt::explain_steps(f)(number(1));
}

// A function that is not jitted runs on the interpreter at first; how long its loops take is seen
// only then.
TEST(JitControlRuns, LongLoopsAreCompiledTheFirstTime) {
  const char* backend = std::getenv("VT_BACKEND");
  if (backend && *backend) GTEST_SKIP() << "VT_BACKEND says what runs where";
  const auto count_to = [](Tensor x, Tensor iterations, double step) {
    return vt::while_loop([&](Tensor i, Tensor) { return i < iterations; },
                          [&](Tensor i, Tensor s) { return std::tuple(i + 1, s * 0.5 + step); },
                          std::tuple(0, x));
  };
  const auto programs = [&](int iterations, double step) {
    vt::reset_stats();
    const auto [i, s] = count_to(number(0.25), vt::tensor(iterations), step);
    EXPECT_EQ(i.item<int>(), iterations);
    double expected = 0.25;
    for (int k = 0; k < iterations; ++k) expected = expected * 0.5 + step;
    EXPECT_EQ(s.item<double>(), expected);
    return vt::stats().programs;
  };
  const bool has_compiler =
      vt::explain_steps(vt::jit([](Tensor x) { return x + 1.0; }))(number(1)).rfind("interpreter",
                                                                                    0) != 0;
  EXPECT_EQ(programs(10, 1.0), 0u);
  EXPECT_EQ(programs(1'000'000, 2.0) > 0, has_compiler);
  // What has effects is not run twice, nor given up in a callback of something that may be.
  int log = 0;
  vt::set_print_sink([&](std::string_view) { ++log; });
  const auto telling = [](Tensor x, double step) {
    const auto iteration = [&](Tensor, Tensor s) {
      vt::debug_print("{}", s);
      return s + step;
    };
    return vt::fori_loop(0, 100'000, iteration, x).eval();
  };
  telling(number(0), 1.0);
  EXPECT_EQ(log, 100'000);
  const auto host =
      vt::pure_callback([&](Tensor x) { return telling(x, 2.0); }, vt::zeros({}, vt::f64));
  EXPECT_EQ(vt::fori_loop(
                0, 2, [&](Tensor, Tensor s) { return host(s); }, number(0))
                .item<double>(),
            400'000.0);
  vt::set_print_sink(nullptr);
  EXPECT_EQ(log, 300'000);
}

TEST(JitControlRuns, LanesSideBySideOrInGroups) {
  if (!has_compiler()) GTEST_SKIP() << "no compiler here";
  const auto f = vt::jit(vt::vmap([](Tensor x) {
    return vt::while_loop([](Tensor x) { return x < 100.0; }, [](Tensor x) { return x * 1.5; }, x);
  }));
  const Tensor xs = vt::tensor({1.0, 200.0, 50.0});
  EXPECT_EQ(f(xs).to_vector<double>(), (std::vector<double>{129.746337890625, 200, 112.5}));
  EXPECT_EQ(
      vt::explain_steps(f)(xs).find("one function, its values in registers") == std::string::npos,
      grouped());
}

// The place of a window is moved inside by a limit that hangs on the array's length: two lengths
// are two kernels.
TEST(JitControlRuns, WindowsOfDifferentArrays) {
  for (int n : {12, 50, 13, 400}) {
    const auto f = vt::jit([](Tensor a, Tensor i) {
      return vt::dynamic_update_slice(a, vt::arange(3).astype(vt::f64) + 1.0, {i});
    });
    for (int i : {0, 5, n - 3, n + 7}) {
      std::vector<double> want(static_cast<std::size_t>(n), 0.0);
      for (int k = 0; k < 3; ++k) want[std::min(i, n - 3) + k] = k + 1;
      EXPECT_EQ(f(vt::zeros({n}, vt::f64), vt::tensor(i)).to_vector<double>(), want)
          << n << " elements at " << i;
    }
  }
}

// Kept states, segments and slots of wide values, whose bodies are programs.
TEST(JitControlRuns, GradientsOfLongLoopsOfWideValues) {
  constexpr int width = 50;
  const Tensor x = vt::linspace(0.2, 1, width, vt::f64).eval();
  for (int iterations : {3, 20, 70})
    for (int slots : {2, 16, 64, 256}) {
      const auto f = [&](Tensor x) {
        return vt::sum(std::get<1>(
            vt::while_loop([&](Tensor i, Tensor) { return i < iterations; },
                           [](Tensor i, Tensor y) { return std::tuple(i + 1, vt::sin(y) * 1.01); },
                           std::tuple(0, x), {.checkpoint = slots})));
      };
      const std::vector<double> g = vt::jit(vt::grad(f))(x).to_vector<double>(),
                                at = x.to_vector<double>();
      for (std::size_t j = 0; j < at.size(); ++j) {
        double y = at[j], slope = 1;
        for (int i = 0; i < iterations; ++i) slope *= 1.01 * std::cos(y), y = 1.01 * std::sin(y);
        ASSERT_NEAR(g[j], slope, 1e-13)
            << iterations << " rounds, " << slots << " slots, element " << j;
      }
    }
}

// The time of a step must not depend on the size of what it changes a little: nothing but the first
// state is copied.
TEST(JitControlRuns, UpdatesInPlace) {
  if (!has_compiler()) GTEST_SKIP() << "no compiler here";
  constexpr int n = 5000;
  const auto f = vt::jit([](Tensor a) {
    return vt::fori_loop(
        0, 50,
        [](Tensor i, Tensor a) {
          return vt::dynamic_update_slice(a, vt::sin(vt::arange(40).astype(vt::f64) + i), {i * 40});
        },
        a);
  });
  const Tensor a = vt::zeros({n}, vt::f64).eval();
  f(a).eval();
  const Tensor b = f(a);
  EXPECT_EQ(a.to_vector<double>(), std::vector<double>(n, 0.0));  // the operand stays as it was
  EXPECT_NEAR(b[41].item<double>(), std::sin(2.0), 1e-15);
  const std::string text = vt::explain_steps(f)(a);
  EXPECT_NE(text.find("carries written over the last state"), std::string::npos) << text;
}

TEST(JitControlRuns, ProductsOfSequencesMoveOutOfScans) {
  if (!has_compiler()) GTEST_SKIP() << "no compiler here";
  const auto cell = [](Tensor w, Tensor u, Tensor xs) {
    auto [last, none] = vt::scan(
        [&](Tensor h, Tensor x) {
          return std::pair(vt::tanh(vt::matmul(x, w) + vt::matmul(h, u)), std::nullopt);
        },
        vt::zeros({8, 40}), xs);
    return vt::sum(last * last);
  };
  const Tensor xs = vt::ones({5, 8, 16}), w = vt::full({16, 40}, 0.01f),
               u = vt::full({40, 40}, 0.01f);
  const auto loops = [](std::string text) {  // what each loop's body multiplies
    std::vector<std::string> products;
    for (std::size_t at = 0; (at = text.find("sub-graph 0", at)) != std::string::npos; ++at) {
      const std::size_t end = text.find(" matrix product", at);
      products.push_back(
          text.substr(text.rfind(' ', end - 1) + 1, end - text.rfind(' ', end - 1) - 1));
    }
    return products;
  };
  const auto forward = vt::jit(cell);
  forward(w, u, xs).eval();
  // h · u
  EXPECT_EQ(loops(vt::explain_steps(forward)(w, u, xs)), std::vector<std::string>{"1"})
      << vt::explain_steps(forward)(w, u, xs);
  const auto gradient = vt::jit(vt::grad<0, 1>(cell));
  std::get<0>(gradient(w, u, xs)).eval();
  // and dh · uᵀ
  EXPECT_EQ(loops(vt::explain_steps(gradient)(w, u, xs)), (std::vector<std::string>{"1", "1"}))
      << vt::explain_steps(gradient)(w, u, xs);
  // Of a matrix that an iteration multiplies by twice, the gradient is a sum of two products in
  // each iteration.
  const auto scaling = [](Tensor k, Tensor x) {
    return vt::sum(vt::fori_loop(
        0, 5,
        [&](Tensor, Tensor x) {
          return 1.0 / vt::matmul(vt::transpose(k), 1.0 / vt::matmul(k, x));
        },
        x));
  };
  const auto of_matrix = vt::jit(vt::grad(scaling));
  const Tensor k = vt::full({90, 80}, 0.01f), x = vt::ones({80});
  of_matrix(k, x).eval();
  const std::string text = vt::explain_steps(of_matrix)(k, x);
  EXPECT_EQ(loops(text), (std::vector<std::string>{"2", "2"})) << text;
}

TEST(JitControlRuns, OneProgramForEachSizeOfGroup) {
  if (!has_compiler() || !grouped()) GTEST_SKIP() << "only with VT_LANES=groups";
  const auto f = vt::jit(vt::vmap([](Tensor n) {
    return vt::while_loop([&](Tensor i) { return i < n; }, [](Tensor i) { return i + 1; }, 0);
  }));
  const Tensor n = vt::arange(100);
  EXPECT_EQ(f(n).to_vector<int>(), n.to_vector<int>());
  const std::string text = vt::explain_steps(f)(n);
  for (int size : {100, 64, 32, 16, 8, 4, 2, 1})
    EXPECT_NE(text.find(" for " + std::to_string(size) + " lanes"), std::string::npos)
        << size << "\n"
        << text;
  EXPECT_EQ(text.find(" for 63 lanes"), std::string::npos);
}

}  // namespace
