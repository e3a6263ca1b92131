// The derivative of cond keeps what the branch taken computed on the way: no branch is run again.
// Gradients against central differences, alone, inside loops and in lanes; what is kept for
// branches not taken is nobody's value.
#include <cmath>
#include <functional>

#include "src/trace/ir/graph.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using Function = std::function<Tensor(Tensor)>;

const vt_test::Tolerance near{.relative = 1e-7, .absolute = 1e-8},
    same{.relative = 1e-11, .absolute = 1e-12};

/// How often `op` stands in a Graph and in the bodies inside of it.
int count_of(vt::detail::Op op, const vt::detail::GraphBody& g) {
  int n = 0;
  for (const vt::detail::Equation& e : g.equations) {
    n += e.op == op;
    for (const vt::detail::GraphRef& body : vt::detail::bodies_of(e.params))
      n += count_of(op, *body);
  }
  return n;
}
int count_in(vt::detail::Op op, const Function& f, const Tensor& x) {
  const vt::detail::FlatFunction flat = [&](std::span<const Tensor> a) {
    return std::vector<Tensor>{f(a[0])};
  };
  const vt::detail::Recorded r = vt::detail::record(
      flat, std::vector<vt::detail::Aval>{vt::detail::Aval(x.dtype(), x.shape())}, {});
  return count_of(op, vt::detail::simplify(r.graph, vt::detail::SimplifyFor::running));
}

Function gradient(const Function& f) {
  return [=](Tensor x) { return vt::grad([&](Tensor v) { return vt::sum(f(v)); })(x); };
}

/// The gradient, forward and reverse, of second order too; in lanes and compiled.
void expect_gradients(const Function& f, const std::vector<Tensor>& points,
                      const std::string& what) {
  SCOPED_TRACE(what);
  const Function g = gradient(f);
  for (const Tensor& x : points) {
    const Function sum = [&](Tensor v) { return vt::sum(f(v)); };
    expect_close(g(x), vt_test::numeric_jacobian(sum, x), near, "gradient");
    expect_close(vt::jit(g)(x), g(x), same, "compiled");
    expect_close(vt::jacfwd(sum)(x), g(x), same, "forward");
    expect_close(vt::jacrev(g)(x), vt_test::numeric_jacobian(g, x), near, "reverse of reverse");
    expect_close(vt::jacfwd(g)(x), vt::jacrev(g)(x), same, "forward of reverse");
    const Tensor t = vt_test::random_tensor(vt::f64, x.shape(), 3);
    const auto [y, push] = vt::linearize(f, x);
    expect_close(vt::sum(push(t)), vt::sum(g(x) * t), same, "pushed");
  }
  const Tensor lanes = vt::stack(points);
  const Tensor apart = vt_test::stack_loop([&](Tensor x) { return g(x); }, 0, lanes);
  expect_close(vt::vmap(g)(lanes), apart, same, "gradients in lanes");
  expect_close(vt::jit(vt::vmap(g))(lanes), apart, same, "gradients in lanes, compiled");
  expect_close(gradient([&](Tensor all) { return vt::vmap(f)(all); })(lanes), apart, same,
               "gradient of lanes");
  expect_close(vt::jit(gradient([&](Tensor all) { return vt::vmap(f)(all); }))(lanes), apart, same,
               "gradient of lanes, compiled");
}

const std::vector<Tensor> points{vt::tensor({0.9, -0.4, 0.3}), vt::tensor({-0.7, 0.2, 0.8}),
                                 vt::tensor({0.1, 0.6, -0.5}), vt::tensor({2.1, -1.6, -0.5})};

Tensor either(Tensor x) {
  return vt::cond(
      x[0] > 0.0, [](Tensor v) { return vt::sinh(vt::tanh(v) * v); },
      [](Tensor v) { return vt::exp(v) * vt::sin(vt::sum(v)); }, x);
}

TEST(ControlCond, NoBranchIsRunTwice) {
  using vt::detail::Op;
  const Tensor x = points[0];
  EXPECT_EQ(count_in(Op::tanh, gradient(either), x), 1);
  EXPECT_EQ(count_in(Op::exp, gradient(either), x), 1);
  EXPECT_EQ(count_in(Op::sinh, gradient(either), x), 0);  // its derivative is cosh
  const Function lanes = [](Tensor v) { return vt::vmap(either)(v); };
  const Tensor xs = vt::stack(points);
  EXPECT_EQ(count_in(Op::tanh, gradient(lanes), xs), 1);
  EXPECT_EQ(count_in(Op::exp, gradient(lanes), xs), 1);
  const Function in_scan = [](Tensor v) {
    return vt::scan([](Tensor c, Tensor s) { return std::pair(either(c * s), std::nullopt); }, v,
                    vt::tensor({0.9, 1.1, -0.8}))
        .first;
  };
  EXPECT_EQ(count_in(Op::tanh, gradient(in_scan), x), 1);
  EXPECT_EQ(count_in(Op::exp, gradient(in_scan), x), 1);
}

// Of the user's functions: the side taken is called once, the other never.
TEST(ControlCond, CallsOfTheUsersFunctions) {
  static int calls[2];
  const auto counted = [](int which) {
    return [which](Tensor x) {
      return vt::callback(
          [which](Tensor v) {
            ++calls[which];
            return v;
          },
          vt::zeros({}, vt::f64))(vt::stop_gradient(vt::sum(x)));
    };
  };
  const auto f = [&](Tensor x) {
    return vt::sum(vt::cond(
        x[0] > 0.0, [&](Tensor v) { return vt::sin(v) * counted(0)(v); },
        [&](Tensor v) { return vt::cos(v) * counted(1)(v); }, x));
  };
  for (int side : {0, 1}) {
    calls[0] = calls[1] = 0;
    vt::grad(f)(points[side]).eval();
    EXPECT_EQ(calls[side], 1);
    EXPECT_EQ(calls[1 - side], 0);
  }
}

TEST(ControlCond, BranchesThatKeepDifferentThings) {
  expect_gradients(either, points, "vectors and a number");
  expect_gradients(
      [](Tensor x) {  // a matrix, integers, nothing
        const Tensor w = vt::outer(x, x);
        return vt::switch_(vt::where(x[0] > 1.0, 2, vt::where(x[0] > 0.0, 1, 0)),
                           std::tuple([&](Tensor v) { return vt::matmul(vt::sin(w), v); },
                                      [](Tensor v) { return v; },
                                      [&](Tensor v) {
                                        return vt::take(v * v * v, vt::argsort(v)) *
                                               vt::cumsum(vt::exp(v));
                                      }),
                           x);
      },
      points, "switch");
  expect_gradients(
      // a residual that is the result, one that is an operand, one that both branches have outside
      [](Tensor x) {
        const Tensor outside = vt::exp(x * 0.3);
        return vt::cond(
                   x[0] > 0.0, [&](Tensor v) { return vt::exp(v) * outside; },
                   [&](Tensor v) { return v * v * outside; }, x) *
               outside;
      },
      points, "shared");
  expect_gradients(
      [](Tensor x) {
        return vt::cond(
            x[0] > 0.0, [](Tensor v) { return v * 2.0; },
            [](Tensor) { return vt::zeros({3}, vt::f64); }, x);
      },
      points, "linear and constant");
}

TEST(ControlCond, InsideOfLoopsAndBranches) {
  const auto nested = [](Tensor x) {
    return vt::cond(
        x[0] > 0.0,
        [](Tensor v) {
          return vt::cond(v[1] > 0.0, [](Tensor u) { return vt::tanh(u) * u; }, either, v);
        },
        [](Tensor v) { return vt::sin(either(v)); }, x);
  };
  expect_gradients(nested, points, "cond in cond");
  expect_gradients(
      [](Tensor x) {
        return vt::scan([](Tensor c,
                           Tensor s) { return std::pair(either(c) * 0.4 + s * 0.1, vt::sum(c)); },
                        x, vt::tensor({0.9, 1.1, -0.8, 0.2}))
            .first;
      },
      points, "cond in scan");
  expect_gradients(
      [](Tensor x) {
        return vt::while_loop(
                   [](Tensor n, Tensor v) { return (n < 6) & (vt::sum(v * v) < 30.0); },
                   [&](Tensor n, Tensor v) { return std::pair(n + 1, either(v) * 0.7 + x); },
                   std::pair(0, x))
            .second;
      },
      points, "cond in while");
  expect_gradients(
      [](Tensor x) {
        return vt::cond(
            x[0] > 0.0,
            [](Tensor v) {
              return vt::fori_loop(0, 3, [](Tensor, Tensor u) { return vt::sin(u) + u * 0.1; }, v);
            },
            either, x);
      },
      points, "a loop in a branch");
  expect_gradients(
      [](Tensor x) {
        return vt::cond(
            x[0] > 0.0, [](Tensor v) { return vt::checkpoint(either)(v); },
            [](Tensor v) { return v * v; }, x);
      },
      points, "checkpoint");
}

// 1/0 and log of negative numbers stay on the side where they are not taken, also among what is
// kept.
TEST(ControlCond, NothingOfTheBranchNotTaken) {
  const auto safe = [](Tensor x) {
    return vt::cond(
        x > 0.0, [](Tensor v) { return vt::sqrt(v) * vt::log(v); },
        [](Tensor v) { return vt::exp(v) / (v - 1.0); }, x);
  };
  const Tensor xs = vt::tensor({0.0, 4.0, -2.0, 1.0, -0.5});
  const auto derivative = [](double x) {
    return x > 0 ? (std::log(x) / 2 + 1) / std::sqrt(x)
                 : std::exp(x) * (x - 2) / ((x - 1) * (x - 1));
  };
  for (const Tensor& g : {vt::vmap(vt::grad(safe))(xs),
                          vt::grad([&](Tensor v) { return vt::sum(vt::vmap(safe)(v)); })(xs),
                          vt::jit([&](Tensor v) { return vt::vmap(vt::grad(safe))(v); })(xs)}) {
    const std::vector<double> values = g.to_vector<double>(), at = xs.to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], derivative(at[i]), 1e-13) << at[i];
  }
  for (double x : {0.0, 4.0, 1.0})
    EXPECT_NEAR(vt::grad(safe)(vt::tensor(x)).item<double>(), derivative(x), 1e-13);
}

TEST(ControlCond, ComplexAndShortNumbers) {
  const auto f = [](Tensor z) {
    return vt::sum(vt::abs(vt::cond(
        vt::real(z[0]) > 0.0, [](Tensor v) { return vt::exp(v) * v; },
        [](Tensor v) { return vt::sin(v * v); }, z)));
  };
  for (double side : {1.0, -1.0}) {
    const Tensor z = vt::complex(vt::tensor({0.4 * side, 0.3}), vt::tensor({0.2, -0.6}));
    const auto plain = [&](Tensor v) {
      return vt::sum(vt::abs(side > 0 ? vt::exp(v) * v : vt::sin(v * v)));
    };
    expect_close(vt::grad(f)(z), vt::grad(plain)(z), same, "c128");
  }
  for (const vt::DType d : {vt::f16, vt::bf16, vt::f32}) {
    const Tensor x = points[0].astype(d);
    const auto g = vt::grad([](Tensor v) { return vt::sum(either(v)); });
    EXPECT_EQ(g(x).dtype(), d);
    expect_close(g(x).astype(vt::f64), g(points[0]),
                 {.relative = d == vt::f32 ? 1e-5 : 0.05, .absolute = 0.02}, "16 and 32 bits");
  }
}

}  // namespace
