// Functions that call themselves: against the same recursion in C++, under every transform; how
// deep they go, and what is refused.
#include <cmath>
#include <cstdlib>
#include <memory>

#include "src/trace/record/recursion.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;

const vt_test::Tolerance close = {.ulps = 64, .absolute = 1e-12};
using Unary = vt::Recursive<Tensor(Tensor)>;
using Binary = vt::Recursive<Tensor(Tensor, Tensor)>;

Unary make_fibonacci() {
  // kept for the length of the test program, and holding no copy of itself
  auto f = std::make_shared<Unary>("fibonacci");
  static std::vector<std::shared_ptr<Unary>> kept;
  kept.push_back(f);
  *f = [f = f.get()](Tensor n) {
    return vt::cond(n < 2, [] { return 1; }, [&] { return (*f)(n - 1) + (*f)(n - 2); });
  };
  return *f;
}
int fibonacci(int n) { return n < 2 ? 1 : fibonacci(n - 1) + fibonacci(n - 2); }

template <class F>
void expect_error(vt::ErrorKind kind, const std::string& says, F&& use) {
  try {
    use();
    ADD_FAILURE() << "no error, expected: " << says;
  } catch (const vt::Error& e) {
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind)) << e.what();
    EXPECT_TRUE(std::string(e.what()).starts_with(says)) << e.what();
    EXPECT_NE(std::string(e.what()).find("; at recursion_test.cpp:"), std::string::npos)
        << e.what();
  }
}

TEST(Recursion, Factorial) {
  int runs = 0;
  Unary factorial("factorial", [&](Tensor n) {
    ++runs;
    return vt::cond(n > 1, [&] { return n * factorial(n - 1); }, [] { return 1.0; });
  });
  double expected = 1;
  for (int n = 1; n <= 12; ++n) {
    expected *= n;
    EXPECT_EQ(factorial(vt::tensor(static_cast<double>(n))).item<double>(), expected);
    EXPECT_EQ(vt::jit(factorial)(vt::tensor(static_cast<double>(n))).item<double>(), expected);
  }
  EXPECT_LE(runs, 3) << "once to see the types, once to settle them, once for good";
  EXPECT_EQ(factorial(vt::tensor(3.0f)).dtype(), vt::f32)
      << "the number takes the dtype of the other branch";
  const vt::Graph g =
      vt::make_graph([&](Tensor n) { return factorial(n) + factorial(n + 1.0); })(vt::tensor(2.0));
  EXPECT_EQ(g.size(), 5u) << g.str();
  const std::string text = g.str(), dot = g.to_dot();
  std::size_t calls = 0;
  for (std::size_t at = text.find("recursive_call[name=factorial]"); at != std::string::npos;
       at = text.find("recursive_call[name=factorial]", at + 1))
    ++calls;
  EXPECT_EQ(calls, 3u) << "two, and the one inside, shown once\n" << text;
  EXPECT_NE(dot.find("recursive_call[name=factorial]"), std::string::npos);
  EXPECT_EQ(vt::eval_shape(factorial, vt::tensor(3.0)).dtype(), vt::f64);
}

TEST(Recursion, FibonacciOnLanes) {
  const Unary f = make_fibonacci();
  for (int n = 0; n < 12; ++n) EXPECT_EQ(f(vt::tensor(n)).item<int>(), fibonacci(n));
  expect_close(vt::vmap(f)(vt::tensor({5, 6, 8, 9})), vt::tensor({8, 13, 34, 55}));
  expect_close(vt::vmap(f)(vt::tensor({3, 7, 4, 5})), vt::tensor({3, 21, 5, 8}));
  expect_close(vt::jit(vt::vmap(f))(vt::tensor({5, 6, 8, 9, 0, 1, 2})),
               vt::tensor({8, 13, 34, 55, 1, 1, 2}));
  expect_close(vt::vmap(vt::vmap(f))(vt::tensor({{5, 6}, {8, 9}})),
               vt::tensor({{8, 13}, {34, 55}}));
  expect_close(vt::pfor([&](Tensor i) { return f(i); }, 6), vt::tensor({1, 1, 2, 3, 5, 8}));
  EXPECT_EQ(vt::vmap(f)(vt::zeros({0}, vt::i32)).shape(), vt::Shape({0}));
}

TEST(Recursion, AdditionsHappenOnlyWhereLanesGo) {
  int additions = 0;
  const auto add = vt::callback(
      [&](std::pair<Tensor, Tensor> both) {
        ++additions;
        return both.first + both.second;
      },
      vt::zeros({}, vt::i32));
  Unary f("fibonacci", [&](Tensor n) {
    return vt::cond(
        n < 2, [] { return vt::tensor(1); }, [&] { return add(std::pair(f(n - 1), f(n - 2))); });
  });
  expect_close(f(vt::tensor(6)), vt::tensor(13));
  EXPECT_EQ(additions, 12);
  additions = 0;
  expect_close(vt::vmap(f)(vt::tensor({3, 7, 4, 5})), vt::tensor({3, 21, 5, 8}));
  EXPECT_EQ(additions, 2 + 20 + 4 + 7);
}

TEST(Recursion, MutualAndSwapped) {
  Unary even("even"), odd("odd");
  even = [&](Tensor n) {
    return vt::cond(n == 0, [] { return true; }, [&] { return odd(n - 1); });
  };
  odd = [&](Tensor n) {
    return vt::cond(n == 0, [] { return false; }, [&] { return even(n - 1); });
  };
  for (int n : {0, 1, 2, 7, 30}) {
    EXPECT_EQ(even(vt::tensor(n)).item<bool>(), n % 2 == 0);
    EXPECT_EQ(odd(vt::tensor(n)).item<bool>(), n % 2 == 1);
    EXPECT_EQ(vt::jit(odd)(vt::tensor(n)).item<bool>(), n % 2 == 1);
  }
  expect_close(vt::vmap(even)(vt::tensor({5, 6, 8, 9, 0})),
               vt::tensor({false, true, true, false, true}));

  Binary gcd("gcd", [&](Tensor a, Tensor b) {
    return vt::cond(b == 0, [&] { return a; }, [&] { return gcd(b, a % b); });
  });
  expect_close(vt::vmap(gcd)(vt::tensor({12, 7, 100, 0}), vt::tensor({18, 21, 75, 5})),
               vt::tensor({6, 7, 25, 5}));

  Unary sum("sum", [&](Tensor n) {
    return vt::cond(n <= 0, [] { return 0; }, [&] { return n + sum(n - 1); });
  });
  expect_close(vt::vmap(sum)(vt::tensor({12, -13, 100})), vt::tensor({78, 0, 5050}));

  // Each calls itself, too.
  Binary left("left"), right("right");
  left = [&](Tensor x, Tensor n) {
    return vt::cond(
        n <= 0, [&] { return x; }, [&] { return left(x * 1.5, n - 2) + right(x, n - 1); });
  };
  right = [&](Tensor x, Tensor n) {
    return vt::cond(
        n <= 0, [&] { return vt::sin(x); }, [&] { return right(x + 1.0, n - 2) * left(x, n - 1); });
  };
  struct Plain {
    static double left(double x, int n) {
      return n <= 0 ? x : left(x * 1.5, n - 2) + right(x, n - 1);
    }
    static double right(double x, int n) {
      return n <= 0 ? std::sin(x) : right(x + 1.0, n - 2) * left(x, n - 1);
    }
  };
  for (int n = 0; n < 6; ++n) {
    expect_close(left(vt::tensor(0.3), vt::tensor(n)), vt::tensor(Plain::left(0.3, n)), close);
    const double h = 1e-6, slope = (Plain::left(0.3 + h, n) - Plain::left(0.3 - h, n)) / (2 * h);
    expect_close(vt::grad(left)(vt::tensor(0.3), vt::tensor(n)), vt::tensor(slope),
                 {.absolute = 1e-6});
    expect_close(vt::jacfwd(left)(vt::tensor(0.3), vt::tensor(n)),
                 vt::grad(left)(vt::tensor(0.3), vt::tensor(n)), close);
  }
}

/// xⁿ by squaring, and as a loop.
Tensor power_by_loop(Tensor x, Tensor n) {
  return vt::fori_loop(0, n, [&](Tensor, Tensor v) { return v * x; }, vt::ones({}, vt::f64));
}

TEST(Recursion, EveryDerivative) {
  Binary power("power", [&](Tensor x, Tensor n) {
    return vt::cond(
        n == 0, [] { return 1.0; },
        [&] {
          return vt::cond(
              n % 2 == 0, [&] { return power(x * x, n / 2); }, [&] { return x * power(x, n - 1); });
        });
  });
  const Tensor x = vt::tensor(1.3), xs = vt::tensor({1.3, 0.7, -1.1, 2.0}),
               ns = vt::tensor({5, 0, 8, 3});
  const auto same = [&](auto transform) {
    const auto of_loop = transform(power_by_loop);
    const auto of_recursion = transform(power);
    for (int n : {0, 1, 5, 8}) {
      expect_close(of_recursion(x, vt::tensor(n)), of_loop(x, vt::tensor(n)), close);
      expect_close(vt::jit(of_recursion)(x, vt::tensor(n)), of_loop(x, vt::tensor(n)), close);
    }
    expect_close(vt::vmap(of_recursion)(xs, ns), vt::vmap(of_loop)(xs, ns), close);
    expect_close(vt::jit(vt::vmap(of_recursion))(xs, ns), vt::vmap(of_loop)(xs, ns), close);
    const auto shared = [](auto f) { return vt::vmap(f, {.in_axes = {0, vt::unmapped}}); };
    expect_close(shared(of_recursion)(xs, vt::tensor(6)), shared(of_loop)(xs, vt::tensor(6)),
                 close);
    const auto by_n = [](auto f) { return vt::vmap(f, {.in_axes = {vt::unmapped, 0}}); };
    expect_close(by_n(of_recursion)(x, ns), by_n(of_loop)(x, ns), close);
  };
  same([](auto f) { return f; });
  same([](auto f) { return vt::grad(f); });
  same([](auto f) { return vt::jacfwd(f); });
  same([](auto f) { return vt::jacfwd(vt::jacrev(f)); });
  same([](auto f) { return vt::jacrev(vt::jacfwd(f)); });
  same([](auto f) {
    return vt::grad([f](Tensor v, Tensor n) { return vt::sin(f(v, n)) * f(v * 0.5, n); });
  });
  same([](auto f) {
    return [f](Tensor v, Tensor n) {
      return std::get<1>(vt::linearize([&](Tensor u) { return f(u, n); }, v))(vt::tensor(2.0));
    };
  });
  same([](auto f) { return vt::grad(vt::checkpoint(f)); });
  const auto third = [](auto f) { return vt::grad(vt::grad(vt::grad(f))); };
  expect_close(third(power)(x, vt::tensor(5)), third(power_by_loop)(x, vt::tensor(5)), close);
  const auto table = [](auto f) {
    return vt::vmap(vt::vmap(f, {.in_axes = {vt::unmapped, 0}}), {.in_axes = {0, vt::unmapped}});
  };
  expect_close(table(vt::grad(power))(xs, ns), table(vt::grad(power_by_loop))(xs, ns), close);
}

/// A binary tree in arrays: children of node k, −1: none.
struct Tree {
  std::vector<int> left, right;
  std::vector<double> value;
};
double value_of(const Tree& t, int k, double w) {
  if (t.left[k] < 0) return t.value[k];
  return std::tanh(w * value_of(t, t.left[k], w) + value_of(t, t.right[k], w)) + t.value[k];
}

TEST(Recursion, BinaryTreeWithCaptures) {
  const Tree t{
      {1, 3, -1, -1, 5, -1, -1}, {2, 4, -1, -1, 6, -1, -1}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}};
  const Tensor left = vt::tensor(t.left), right = vt::tensor(t.right), values = vt::tensor(t.value);
  const auto make = [&](Tensor w, Tensor v) {
    return [&, w, v](Tensor root) {
      Unary f("tree", [&](Tensor k) {
        return vt::cond(
            left[k] < 0, [&] { return v[k]; },
            [&] { return vt::tanh(w * f(left[k]) + f(right[k])) + v[k]; });
      });
      return f(root);
    };
  };
  const Tensor w = vt::tensor(0.8), root = vt::tensor(0);
  const auto loss = [&](Tensor a, Tensor v) { return make(a, v)(root); };
  expect_close(loss(w, values), vt::tensor(value_of(t, 0, 0.8)), close);
  expect_close(vt::jit(loss)(w, values), vt::tensor(value_of(t, 0, 0.8)), close);
  expect_close(vt::vmap(make(w, values))(vt::arange(7)),
               vt::vmap(vt::jit(make(w, values)))(vt::arange(7)), close);
  for (int k = 0; k < 7; ++k)
    expect_close(make(w, values)(vt::tensor(k)), vt::tensor(value_of(t, k, 0.8)), close);
  const auto [by_w, by_v] = vt::grad<0, 1>(loss)(w, values);
  const double h = 1e-6;
  expect_close(by_w, vt::tensor((value_of(t, 0, 0.8 + h) - value_of(t, 0, 0.8 - h)) / (2 * h)),
               {.absolute = 1e-8});
  for (std::size_t k = 0; k < 7; ++k) {
    Tree up = t, down = t;
    up.value[k] += h;
    down.value[k] -= h;
    expect_close(by_v[static_cast<int>(k)],
                 vt::tensor((value_of(up, 0, 0.8) - value_of(down, 0, 0.8)) / (2 * h)),
                 {.absolute = 1e-8});
  }
  expect_close(vt::jacfwd<1>(loss)(w, values), by_v, close);
  expect_close(vt::jit(vt::hessian(loss))(w, values), vt::jacfwd(vt::jacfwd(loss))(w, values),
               {.ulps = 1024, .absolute = 1e-12});
  const Tensor ws = vt::tensor({0.8, -0.3, 1.5});
  const auto each = vt::vmap(vt::grad(loss), {.in_axes = {0, vt::unmapped}})(ws, values);
  for (int i = 0; i < 3; ++i) expect_close(each[i], vt::grad(loss)(ws[i], values), close);
}

TEST(Recursion, InsideLoopsAndLoopsInside) {
  Binary f("f", [&](Tensor x, Tensor n) {
    return vt::cond(
        n == 0, [&] { return x; },
        [&] {
          return vt::fori_loop(
              0, 2,
              [&](Tensor i, Tensor sum) { return sum + f(x * 0.5 + i * vt::tensor(0.1), n - 1); },
              0.0);
        });
  });
  struct Plain {
    static double f(double x, int n) {
      if (n == 0) return x;
      double sum = 0;
      for (int i = 0; i < 2; ++i) sum += f(x * 0.5 + i * 0.1, n - 1);
      return sum;
    }
  };
  for (int n = 0; n < 4; ++n)
    expect_close(f(vt::tensor(0.7), vt::tensor(n)), vt::tensor(Plain::f(0.7, n)), close);
  expect_close(vt::grad(f)(vt::tensor(0.7), vt::tensor(3)), vt::tensor(1.0), close);
  const auto scanned = [&](Tensor x) {
    return vt::scan([&](Tensor c, Tensor n) { return std::pair(f(c, n), c); }, x,
                    vt::tensor({2, 0, 1}))
        .first;
  };
  expect_close(scanned(vt::tensor(0.7)), vt::tensor(Plain::f(Plain::f(Plain::f(0.7, 2), 0), 1)),
               close);
  expect_close(vt::jit(vt::grad(scanned))(vt::tensor(0.7)), vt::tensor(1.0), close);
  expect_close(vt::vmap(scanned)(vt::tensor({0.7, 0.1}))[0], scanned(vt::tensor(0.7)), close);
}

TEST(Recursion, TreesOfTensorsAndComplexNumbers) {
  using State = std::pair<Tensor, std::vector<Tensor>>;
  vt::Recursive<State(State, int)> f("f", [&](State s, int step) {
    return vt::cond(
        s.first <= 0, [&] { return s; },
        [&] { return f(State(s.first - step, {s.second[1], s.second[0] + s.second[1]}), step); });
  });
  const State last = f(State(vt::tensor(5), {vt::tensor(1.0), vt::tensor(1.0)}), 1);
  expect_close(last.second[1], vt::tensor(13.0));
  Binary rotate("rotate", [&](Tensor z, Tensor n) {
    return vt::cond(
        n == 0, [&] { return z; }, [&] { return rotate(z * std::complex<double>(0, 1), n - 1); });
  });
  const Tensor z = vt::complex(vt::tensor(1.0), vt::tensor(2.0));
  expect_close(rotate(z, vt::tensor(3)), z * std::complex<double>(0, -1));
  expect_close(vt::jit(rotate)(z, vt::tensor(2)), -z);
}

TEST(Recursion, Effects) {
  std::vector<std::string> printed;
  vt::set_print_sink([&](std::string_view text) { printed.emplace_back(text); });
  Binary f("f", [&](Tensor x, Tensor n) {
    vt::debug_print("{}", n);
    return vt::cond(n == 0, [&] { return x; }, [&] { return x * f(x, n - 1); });
  });
  const auto all = [&] {
    std::string text;
    for (const std::string& p : printed) text += p.substr(0, p.find('\n')) + " ";
    printed.clear();
    return text;
  };
  expect_close(f(vt::tensor(2.0), vt::tensor(3)), vt::tensor(16.0));
  EXPECT_EQ(all(), "3 2 1 0 ");
  expect_close(vt::jit(f)(vt::tensor(2.0), vt::tensor(2)), vt::tensor(8.0));
  EXPECT_EQ(all(), "2 1 0 ");
  expect_close(vt::grad(f)(vt::tensor(2.0), vt::tensor(2)), vt::tensor(12.0));
  EXPECT_EQ(all(), "2 1 0 ") << "not again going back";
  vt::set_print_sink({});
}

TEST(Recursion, Depth) {
  Unary down(
      "down",
      [&](Tensor n) { return vt::cond(n <= 0, [] { return 0; }, [&] { return 1 + down(n - 1); }); },
      {.max_depth = 50});
  EXPECT_EQ(down(vt::tensor(49)).item<int>(), 49);
  for (int i = 0; i < 3; ++i) {
    expect_error(vt::ErrorKind::value,
                 "vt::Recursive: down calls itself more than 50 deep, beginning with 50; if that "
                 "is no mistake, give it a greater max_depth",
                 [&] { down(vt::tensor(50)).eval(); });
    expect_error(vt::ErrorKind::value, "vt::Recursive: down calls itself more than 50 deep",
                 [&] { vt::jit(down)(vt::tensor(50)).eval(); });
  }
  EXPECT_EQ(down(vt::tensor(49)).item<int>(), 49) << "the depth is counted anew";
  Unary endless(
      "endless",
      [&](Tensor n) { return vt::cond(n < 0, [] { return 0; }, [&] { return endless(n + 1); }); },
      {.max_depth = 1 << 30});
  expect_error(vt::ErrorKind::value, "vt::Recursive: endless calls itself ",
               [&] { endless(vt::tensor(0)).eval(); });
  Unary far("far", [&](Tensor n) {
    return vt::cond(n <= 0, [] { return 0; }, [&] { return 1 + far(n - 1); });
  });
  EXPECT_EQ(far(vt::tensor(400)).item<int>(), 400);
  EXPECT_EQ(vt::jit(far)(vt::tensor(400)).item<int>(), 400);
}

// Derivatives are functions of other names and more arguments: the message is about the user's.
TEST(Recursion, DepthOfDerivatives) {
  const char* const schedule = std::getenv("VT_LANES");
  const bool together =
      schedule && std::string(schedule) == "groups";  // compiled, they know no lane
  for (const bool linear : {true, false}) {
    vt::Recursive<Tensor(Tensor, Tensor)> down("down", {.max_depth = 20});
    down = [&](Tensor n, Tensor x) {
      return vt::cond(
          n <= 0, [&] { return x; },
          [&] { return linear ? 2.0 * down(n - 1, x) : vt::sin(down(n - 1, x)) * x; });
    };
    const auto f = [&](Tensor n, Tensor x) { return down(n, x); };
    const std::string says = "vt::Recursive: down calls itself more than 20 deep",
                      alone = says + ", beginning with 40, 3.; if that is no mistake",
                      lanes = says + (together ? "" : " in lane 2, which began with 40");
    const Tensor n = vt::tensor(40), ns = vt::tensor({3, 7, 40, 60}),
                 xs = vt::tensor({1.0, 2.0, 3.0, 4.0});
    for (int run = 0; run < 2; ++run) {
      const auto fails = [&](const std::string& text, auto&& call) {
        SCOPED_TRACE(std::to_string(linear) + text + std::to_string(run));
        expect_error(vt::ErrorKind::value, text, [&] { call().eval(); });
      };
      fails(alone, [&] { return vt::grad<1>(f)(n, 3.0); });
      fails(alone, [&] { return vt::jit(vt::grad<1>(f))(n, 3.0); });
      fails(alone, [&] { return vt::jvp([&](Tensor x) { return f(n, x); }, xs[2], xs[0]).second; });
      fails(lanes, [&] { return vt::vmap(f)(ns, xs); });
      fails(lanes, [&] { return vt::vmap(vt::grad<1>(f))(ns, xs); });
      fails(lanes, [&] { return vt::jit(vt::vmap(vt::grad<1>(f)))(ns, xs); });
      fails(lanes, [&] { return vt::jit(vt::vmap(vt::grad<1>(vt::grad<1>(f))))(ns, xs); });
    }
  }
}

TEST(Recursion, MaxDepthIsAtLeastOne) {
  for (const int depth : {0, -3})
    expect_error(vt::ErrorKind::value,
                 "vt::Recursive: shallow is given max_depth " + std::to_string(depth) +
                     ", which must be at least 1",
                 [&] { Unary("shallow", [](Tensor n) { return n; }, {.max_depth = depth}); });
  Unary one("one", [](Tensor n) { return n; }, {.max_depth = 1});
  EXPECT_EQ(one(vt::tensor(3)).item<int>(), 3);
}

// The interpreter takes a part of the stack for each call, compiled code hardly any.
TEST(Recursion, DeepEagerCallsGoOnToCompiledCode) {
  if (vt::default_device().kind == vt::Device::Kind::cuda)
    GTEST_SKIP() << "there each call is a step of the host, and so deep there are none";
  constexpr int depth = 50'000;
  Unary count(
      "count",
      [&](Tensor n) { return vt::cond(n > 0, [&] { return count(n - 1) + 1; }, [] { return 0; }); },
      {.max_depth = 1 << 20});
  if (vt_test::forced_backend() == "interpreter") {
    expect_error(vt::ErrorKind::value, "vt::Recursive: count calls itself ",
                 [&] { count(vt::tensor(depth)).eval(); });
    return;
  }
  EXPECT_EQ(count(vt::tensor(depth)).item<int>(), depth);
  EXPECT_EQ(vt::vmap(count)(vt::tensor({depth, 3})).to_vector<int>(), (std::vector{depth, 3}));
  EXPECT_EQ(count(vt::tensor(depth + 1)).item<int>(), depth + 1) << "and when it is seen again";
}

TEST(Recursion, NothingOwnsItself) {
  std::weak_ptr<const void> family;
  {
    Binary f("f", [&](Tensor x, Tensor n) {
      return vt::cond(n == 0, [&] { return x; }, [&] { return x * f(x, n - 1); });
    });
    const vt::Graph g = vt::make_graph(f)(vt::tensor(2.0), vt::tensor(3));
    family = g.body().equations.back().as<vt::detail::RecursionParams>().owner;
    const auto all = vt::jit(vt::vmap(vt::grad(vt::grad(f))));
    all(vt::tensor({2.0, 3.0}), vt::tensor({2, 3}));
    EXPECT_FALSE(family.expired());
  }
  EXPECT_TRUE(family.expired());
}

TEST(Recursion, GraphsOutliveTheirFunctions) {
  std::optional<vt::Graph> g;
  {
    Unary f("f", [&](Tensor n) {
      return vt::cond(n <= 0, [] { return 0.0; }, [&] { return n + f(n - 1.0); });
    });
    g = vt::make_graph(vt::grad(f))(vt::tensor(3.0));
  }
  expect_close((*g)({{vt::tensor(3.5)}})[0], vt::tensor(4.0), close);
}

// One that is made inside belongs to the recording of what makes it, which jit keeps.
TEST(Recursion, MadeInsideOfWhatIsJitted) {
  int recordings = 0;
  const auto sum_of_powers = [&](Tensor x, Tensor n) {
    ++recordings;
    Unary f("inner", [&](Tensor k) {
      return vt::cond(k == 0, [] { return 1.0; }, [&] { return 1.0 + x * f(k - 1); });
    });
    return f(n);
  };
  const auto slopes = vt::jit(vt::vmap(vt::grad(sum_of_powers)));
  const Tensor x = vt::tensor({0.5, 2.0, 1.0}), n = vt::tensor({2, 1, 3});
  for (int k = 0; k < 4; ++k) expect_close(slopes(x, n), vt::tensor({2.0, 1.0, 6.0}));
  EXPECT_EQ(recordings, 1);
  const auto value = vt::jit(sum_of_powers);
  for (int k = 0; k < 4; ++k) expect_close(value(x[0], n[0]), vt::tensor(1.75));
  EXPECT_EQ(recordings, 2);
  // jit inside of a recursion: what refers to it belongs to it.
  Unary outer("outer", [&](Tensor k) {
    return vt::cond(
        k <= 0, [] { return 0; },
        [&] { return vt::jit([&](Tensor m) { return outer(m) + 1; })(k - 1); });
  });
  for (int k = 0; k < 3; ++k) EXPECT_EQ(vt::jit(outer)(vt::tensor(5)).item<int>(), 5);
}

// Values of inner calls are asked for once, however deep.
TEST(Recursion, DerivativesOfDeepOnes) {
  vt::Recursive<Tensor(Tensor, Tensor)> f("deep", [&](Tensor k, Tensor x) {
    return vt::cond(k == 0, [&] { return x; }, [&] { return vt::sin(f(k - 1, x)) + x; });
  });
  // On a device each step of lanes in queues launches as many kernels as the lanes are deep, and
  // the interpreter is slow: fewer depths on both sides of where the stack grows.
  const bool compiled =
      vt_test::forced_backend() != "cuda" && vt_test::forced_backend() != "interpreter";
  const std::vector<int> depths = compiled ? std::vector{0, 1, 62, 63, 64, 65, 66, 130, 700}
                                           : std::vector{0, 1, 63, 64, 65, 130};
  std::vector<double> xs, slopes;
  for (std::size_t i = 0; i < depths.size(); ++i) {
    double x = 0.3 + 0.1 * static_cast<double>(i), y = x, slope = 1;
    for (int k = 0; k < depths[i]; ++k) slope = std::cos(y) * slope + 1, y = std::sin(y) + x;
    xs.push_back(x);
    slopes.push_back(slope);
  }
  const auto slope = [&](Tensor k, Tensor x) {
    return vt::grad([&](Tensor x) { return f(k, x); })(x);
  };
  const auto alone = vt::jit(slope);
  for (int run = 0; run < 2; ++run)
    for (std::size_t i = 0; i < depths.size(); ++i)
      expect_close(alone(vt::tensor(depths[i]), vt::tensor(xs[i])), vt::tensor(slopes[i]), close);
  for (const vt::LaneSchedule s : {vt::LaneSchedule::automatic, vt::LaneSchedule::groups,
                                   vt::LaneSchedule::hybrid, vt::LaneSchedule::program_counter}) {
    const auto lanes = vt::jit(vt::vmap(slope, {.schedule = s}));
    for (int run = 0; run < 2; ++run)
      expect_close(lanes(vt::tensor(depths), vt::tensor(xs)), vt::tensor(slopes), close);
  }
}

TEST(Recursion, Errors) {
  Unary endless("endless", [&](Tensor n) { return n * endless(n - 1); });
  expect_error(vt::ErrorKind::transform,
               "vt::Recursive: endless calls itself whatever its arguments are; a branch of "
               "vt::cond must end the recursion",
               [&] { endless(vt::tensor(3)); });
  Unary unknown("unknown");
  expect_error(vt::ErrorKind::value, "vt::Recursive: unknown is called, but has not been defined",
               [&] { unknown(vt::tensor(1)); });
  expect_error(vt::ErrorKind::shape, "vt::cond: the functions must give the same shapes", [&] {
    Unary f("f", [&](Tensor n) {
      return vt::cond(n < 0, [] { return vt::ones({2}); }, [&] { return vt::sum(f(n - 1)); });
    });
    f(vt::tensor(1));
  });
  vt::Variable v(vt::tensor(0.0), "total");
  expect_error(vt::ErrorKind::transform,
               "vt::Recursive: f calls itself, so that it may not update total", [&] {
                 Unary f("f", [&](Tensor n) {
                   v.assign_add(1.0);
                   return vt::cond(n < 0, [] { return 0; }, [&] { return f(n - 1); });
                 });
                 f(vt::tensor(1));
               });
  Unary reads("reads", [&](Tensor n) {
    return vt::cond(n <= 0, [] { return 1.0; }, [&] { return v.read() + reads(n - 1); });
  });
  v.assign(2.0);
  expect_close(reads(vt::tensor(3)), vt::tensor(7.0));
  v.assign(3.0);
  expect_close(reads(vt::tensor(3)), vt::tensor(10.0));
  expect_error(
      vt::ErrorKind::transform, "vt::Recursive: f is transformed (vt::jvp) inside of itself", [&] {
        Unary f("f", [&](Tensor x) {
          return vt::cond(x < 0, [&] { return x; }, [&] { return vt::jacfwd(f)(x - 1.0); });
        });
        f(vt::tensor(1.0));
      });
  expect_error(vt::ErrorKind::transform, "vt::Recursive: grows is recorded inside of ", [&] {
    Unary grows("grows",
                [&](Tensor x) { return vt::sum(grows(vt::concatenate({x, x[vt::slice(0, 1)]}))); });
    grows(vt::ones({1}));
  });
  const std::string larger =
      " calls itself with arguments of larger shapes each time, and each "
      "shape is recorded anew, which has no end; keep the shapes the same. ";
  vt::Recursive<Tensor(Tensor, Tensor)> twice("twice"), squares("squares");
  twice = [&](Tensor n, Tensor x) {
    return vt::cond(
        n > 3, [&] { return x[0]; }, [&] { return twice(n + 1, vt::concatenate({x, x})); });
  };
  squares = [&](Tensor n, Tensor x) {
    return vt::cond(n > 3, [&] { return x[0]; }, [&] { return squares(n + 1, vt::kron(x, x)); });
  };
  const std::string of_twice = "58 calls deep, with f64[432345564227567616], vt::concatenate: ",
                    of_squares = "6 calls deep, with f64[1853020188851841], vt::kron: ";
  for (const bool jitted : {false, true}) {
    const auto fails = [&](const auto& f, const std::string& says) {
      expect_error(vt::ErrorKind::transform, "vt::Recursive: " + says, [&] {
        const Tensor n = vt::tensor(0), x = vt::ones({3}, vt::f64);
        jitted ? vt::jit(f)(n, x).eval() : f(n, x).eval();
      });
    };
    fails(twice, "twice" + larger + of_twice);
    fails(squares, "squares" + larger + of_squares);
  }
  EXPECT_EQ(make_fibonacci()(vt::tensor(5)).item<int>(), 8) << "something is broken by these";
}

}  // namespace
