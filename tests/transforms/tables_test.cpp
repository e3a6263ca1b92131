// Tables that loops fill, element by element or row by row: values and gradients beside plain loops
// and finite differences, alone and under vmap; and that no iteration goes through a whole table.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

namespace {

using vt::Tensor;
using F = std::function<Tensor(const Tensor&)>;

struct Program {
  std::string name;
  vt::Shape argument;
  F f;
};

std::vector<Program> programs() {
  return {
      {"each from the one before",
       {3},
       [](const Tensor& x) {
         Tensor t = vt::index_update(vt::zeros({20}, vt::f64), 0, vt::sum(x * x));
         t = vt::fori_loop(
             1, 20,
             [&](Tensor i, Tensor t) {
               return vt::index_update(t, i, vt::sin(t[i - 1]) + 0.1 * x[i % 3]);
             },
             t);
         return vt::sum(t * t);
       }},
      {"written where a number says so",
       {12},
       [](const Tensor& x) {
         const Tensor t = vt::fori_loop(
             0, 12,
             [&](Tensor i, Tensor t) {
               const Tensor updated = vt::index_update(t, i % 5, x[i] * (1.0 + t[(i + 2) % 5]));
               return vt::where(x[i] > 0.0, updated, t);
             },
             vt::zeros({5}, vt::f64) + vt::sum(x) * 0.1);
         return vt::sum(t * vt::arange(5).astype(vt::f64));
       }},
      {"written in a branch",
       {12, 2},
       [](const Tensor& x) {
         const Tensor t = vt::fori_loop(
             0, 12,
             [&](Tensor i, Tensor t) {
               return vt::cond(
                   x[i][0] > 0.2,
                   [&](Tensor t) { return vt::index_update(t, i % 4, x[i] * t[(i + 1) % 4]); },
                   [](Tensor t) { return t; }, t);
             },
             vt::ones({4, 2}, vt::f64) + x[0]);
         return vt::sum(t * t);
       }},
      {"either one row or another",
       {10},
       [](const Tensor& x) {
         const Tensor t = vt::fori_loop(
             0, 10,
             [&](Tensor i, Tensor t) {
               return vt::cond(
                   x[i] > 0.0, [&](Tensor t) { return vt::index_add(t, i % 6, x[i]); },
                   [&](Tensor t) { return vt::index_add(t, (i + 3) % 6, x[i] * x[i]); }, t);
             },
             vt::zeros({6}, vt::f64));
         return vt::sum(vt::exp(t));
       }},
      {"a buffer that is pushed to",
       {15},
       [](const Tensor& x) {
         const auto push = [](std::pair<Tensor, Tensor> s, Tensor v) {
           auto [buffer, n] = s;
           const Tensor good = v > 0.0;
           return std::pair(std::pair(vt::where(good, vt::index_update(buffer, n, v * v), buffer),
                                      n + good.astype(vt::i32)),
                            n);
         };
         const Tensor buffer =
             vt::scan(push, std::pair(vt::zeros({15}, vt::f64), vt::tensor(0)), x).first.first;
         return vt::sum(buffer * vt::arange(15).astype(vt::f64));
       }},
      {"soft edit distance",
       {5, 4},
       [](const Tensor& c) {
         const Tensor d = vt::fori_loop(
             0, 20,
             [&](Tensor k, Tensor d) {
               const Tensor i = k / 4, j = k % 4;
               const Tensor least =
                   -vt::log(vt::exp(-(d(i, j) + c(i, j))) + vt::exp(-(d(i + 1, j) + 1.0)) +
                            vt::exp(-(d(i, j + 1) + 1.0)));
               return vt::at(d, i + 1, j + 1).set(least);
             },
             vt::zeros({6, 5}, vt::f64));
         return d[5][4];
       }},
      {"overwritten again and again, places out of range",
       {6},
       [](const Tensor& x) {
         const Tensor t = vt::fori_loop(
             0, 12,
             [&](Tensor i, Tensor t) {
               t = vt::index_update(t, i - 3, x[i % 6]);
               t = vt::index_mul(t, i % 4, x[(i + 1) % 6]);
               return vt::index_update(t, vt::stack({i % 2, i % 2}), vt::stack({t[3], x[0]}));
             },
             vt::ones({7}, vt::f64));
         return vt::sum(t * t);
       }},
      {"elements, columns and windows of a table",
       {4, 3},
       [](const Tensor& x) {
         const Tensor t = vt::fori_loop(
             0, 12,
             [&](Tensor i, Tensor t) {
               const Tensor r = i % 4, c = i % 3;
               t = vt::at(t, vt::slice(), c).mul(vt::cos(x(vt::slice(), c)));
               t = vt::at(t, r, vt::window(c, 2)).add(t(r, vt::window(c + 1, 2)) * x(r, c));
               t = vt::at(t, 3, vt::slice(std::nullopt, std::nullopt, -2))
                       .set(t(r, vt::slice(0, 2)));
               return vt::at(t, r, vt::stack({c, c - 4})).add(x(r, 0));  // one is out of range
             },
             vt::sin(x));
         return vt::sum(t * t);
       }},
      {"one number of a table of three axes",
       {2, 3, 2},
       [](const Tensor& x) {
         const Tensor t = vt::fori_loop(
             0, 12,
             [&](Tensor i, Tensor t) {
               const Tensor a = i % 2, b = i / 4, c = i / 2 % 2;
               return vt::where(x(a, b, c) > 0.0,
                                vt::at(t, a, b, c).set(vt::sin(t(c, b - 1, a)) * x(a, b, 0)), t);
             },
             vt::cos(x));
         return vt::sum(t * t);
       }},
  };
}

std::vector<double> numbers(const vt::Shape& shape, double phase) {
  std::vector<double> all(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = 0.9 * std::sin(1.7 * static_cast<double>(i) + phase) + 0.05;
  return all;
}
Tensor tensor_of(const std::vector<double>& x, const vt::Shape& shape) {
  return vt::tensor(x).reshape(shape).eval();
}

class Tables : public ::testing::TestWithParam<Program> {};

TEST_P(Tables, GradientsAreDifferences) {
  const auto& [name, shape, f] = GetParam();
  const std::vector<double> x = numbers(shape, 0.3);
  const auto jitted = vt::jit(vt::grad(f));
  for (int run = 0; run < 2; ++run) {
    const std::vector<double> plain = vt::grad(f)(tensor_of(x, shape)).to_vector<double>(),
                              g = jitted(tensor_of(x, shape)).to_vector<double>();
    const std::vector<double> forward =
        vt::jacfwd(f)(tensor_of(x, shape)).reshape({-1}).to_vector<double>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      constexpr double h = 1e-6;
      std::vector<double> up = x, down = x;
      up[i] += h, down[i] -= h;
      const double slope =
          (f(tensor_of(up, shape)).item<double>() - f(tensor_of(down, shape)).item<double>()) /
          (2 * h);
      EXPECT_NEAR(g[i], slope, 1e-6 * (1 + std::abs(slope))) << name << " " << i;
      EXPECT_NEAR(plain[i], g[i], 1e-12 * (1 + std::abs(slope))) << name << " " << i;
      EXPECT_NEAR(forward[i], g[i], 1e-10 * (1 + std::abs(slope))) << name << " " << i;
    }
  }
}

TEST_P(Tables, LanesAreTheFunctionLaneByLane) {
  const auto& [name, shape, f] = GetParam();
  std::vector<Tensor> rows;
  for (int lane = 0; lane < 5; ++lane) rows.push_back(tensor_of(numbers(shape, 0.7 * lane), shape));
  const auto all = vt::jit(vt::vmap(vt::value_and_grad(f)));
  const auto [values, gradients] = all(vt::stack(rows));
  for (int lane = 0; lane < 5; ++lane) {
    const auto [value, gradient] = vt::value_and_grad(f)(rows[lane]);
    EXPECT_NEAR(values[lane].item<double>(), value.item<double>(), 1e-12) << name;
    EXPECT_TRUE(vt::allclose(gradients[lane], gradient, 1e-10, 1e-10).item<bool>()) << name;
  }
}

TEST_P(Tables, SecondDerivatives) {
  const auto& [name, shape, f] = GetParam();
  const Tensor x = tensor_of(numbers(shape, 1.1), shape), v = tensor_of(numbers(shape, 2.0), shape);
  const auto slope = [&](const Tensor& x) { return vt::sum(vt::grad(f)(x) * v); };
  const Tensor twice = vt::grad(slope)(x),
               mixed = vt::jvp(vt::grad(f), std::tuple(x), std::tuple(v)).second;
  EXPECT_TRUE(vt::allclose(twice, mixed, 1e-9, 1e-9).item<bool>()) << name;
}

INSTANTIATE_TEST_SUITE_P(All, Tables, ::testing::ValuesIn(programs()), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// One function holds the loop: it touches single elements of the table.
TEST(TablesInPlace, NoIterationGoesThroughTheTable) {
  const Tensor x = vt::sin(vt::arange(5000).astype(vt::f32)).eval();
  const auto loop = [](auto body, const vt::Shape& table) {
    return [=](const Tensor& x) {
      return vt::sum(vt::fori_loop(
          0, 5000, [&](Tensor i, Tensor t) { return body(x, i, t); }, vt::zeros(table)));
    };
  };
  const auto expect_one_function = [&](const auto& f) {
    for (const std::string& text : {vt::explain_steps(f)(x), vt::explain_steps(vt::grad(f))(x)}) {
      if (text.rfind("interpreter", 0) == 0) GTEST_SKIP() << "no compiler here";
      EXPECT_NE(text.find("one function, its values in registers"), std::string::npos) << text;
      EXPECT_EQ(text.find("sub-graph"), std::string::npos) << text;
    }
  };
  expect_one_function(loop(
      [](const Tensor& x, Tensor i, Tensor t) {
        return vt::where(x[i] > 0.0f, vt::index_update(t, i, vt::sin(x[i]) + t[i - 1]), t);
      },
      {5000}));
  expect_one_function(loop(
      [](const Tensor& x, Tensor i, Tensor t) {
        const Tensor a = i / 100, b = i % 100;
        return vt::where(x[i] > 0.0f, vt::at(t, a, b).set(vt::sin(x[i]) + t(a, b - 1)), t);
      },
      {50, 100}));
  expect_one_function(loop(
      [](const Tensor& x, Tensor i, Tensor t) {
        const Tensor a = i / 1000, b = i % 100;
        return vt::at(t, a, 3, b).set(vt::sin(x[i]) * t(a, 2, b));
      },
      {5, 10, 100}));
}

// Tables of 10⁶ elements: at most twice the bytes of the forms of one axis.
TEST(TablesInPlace, SeveralIndicesCostNoMoreThanOne) {
  if (vt::explain_steps([](Tensor x) { return x; })(vt::ones({2})).rfind("interpreter", 0) == 0)
    GTEST_SKIP() << "the interpreter counts no bytes";
  constexpr std::int64_t n = 1000, iterations = 2000;
  const auto cost = [&](const vt::Shape& shape, auto body, bool derived) {
    const auto loop = [=](const Tensor& t) {
      return vt::scan([&](Tensor t, Tensor i) { return std::pair(body(t, i), std::nullopt); }, t,
                      vt::arange(iterations))
          .first;
    };
    const auto loss = [=](const Tensor& t) { return vt::sum(vt::square(loop(t))); };
    const Tensor t = vt::full(shape, 0.5f).eval();
    const auto bytes = [&](const auto& f) {
      f(t).eval();
      f(t).eval();
      vt::reset_stats();
      f(t).eval();
      return vt::stats().bytes;
    };
    return derived ? bytes(vt::jit(vt::grad(loss))) : bytes(vt::jit(loop));
  };
  for (const bool derived : {false, true}) {
    const auto flat = [&](auto f) {
      return cost({n * n}, [=](Tensor t, Tensor i) { return f(t, i * 97 % int{n * n}); }, derived);
    };
    const std::uint64_t set =
        flat([](Tensor t, Tensor k) { return vt::index_update(t, k, vt::sin(t[k])); });
    const std::uint64_t table = n * n * sizeof(float);
    EXPECT_LT(set, 20 * table) << "the yardstick copies";
    const auto expect_as_cheap = [&](const std::string& what, auto f, std::uint64_t limit) {
      const std::uint64_t took = cost(
          {n, n}, [=](Tensor t, Tensor i) { return f(t, i * 7 % int{n}, i * 3 % int{n}); },
          derived);
      EXPECT_LE(took, limit) << what << (derived ? ", its gradient" : "");
    };
    expect_as_cheap(
        "an element",
        [](Tensor t, Tensor a, Tensor b) { return vt::at(t, a, b).set(vt::sin(t(a, b))); },
        2 * set);
    expect_as_cheap(
        "a window",
        [](Tensor t, Tensor a, Tensor b) {
          return vt::at(t, a, vt::window(b, 8)).set(vt::sin(t(a, vt::window(b, 8))));
        },
        2 * set);
    expect_as_cheap(
        "a range",
        [](Tensor t, Tensor a, Tensor) {
          return vt::at(t, a, vt::slice(5, 13)).set(vt::sin(t(a, vt::slice(5, 13))));
        },
        2 * set);
    expect_as_cheap(
        "a range with steps",
        [](Tensor t, Tensor a, Tensor) {
          return vt::at(t, a, vt::slice(29, 5, -3)).set(vt::sin(t(a, vt::slice(29, 5, -3))));
        },
        2 * set);
    const auto row = [&](auto f) {
      return cost({n, n}, [=](Tensor t, Tensor i) { return f(t, i * 7 % int{n}); }, derived);
    };
    const std::uint64_t whole =
        row([](Tensor t, Tensor a) { return vt::index_update(t, a, vt::sin(t[a])); });
    expect_as_cheap(
        "a row",
        [](Tensor t, Tensor a, Tensor) {
          return vt::at(t, a, vt::slice()).set(vt::sin(t(a, vt::slice())));
        },
        whole);
    expect_as_cheap(
        "a column",
        [](Tensor t, Tensor, Tensor b) {
          return vt::at(t, vt::ellipsis, b).set(vt::sin(t(vt::slice(), b)));
        },
        2 * whole);
    const std::uint64_t added =
        flat([](Tensor t, Tensor k) { return vt::index_add(t, k, vt::sin(t[k])); });
    expect_as_cheap(
        "a sum", [](Tensor t, Tensor a, Tensor b) { return vt::at(t, a, b).add(vt::sin(t(a, b))); },
        2 * added);
  }
}

}  // namespace
