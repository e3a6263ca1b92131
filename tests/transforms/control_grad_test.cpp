// Derivatives of control flow: forward against central differences, reverse against forward, to
// second order in all four combinations, under vmap and jit; loops of unknown length whatever
// number of states they keep; lanes that stop on their own.
#include <algorithm>
#include <ctime>
#include <functional>

#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using vt_test::Tolerance;

using Function = std::function<Tensor(Tensor)>;

Tensor in_loop(const Function& f, const Tensor& xs) {
  return vt_test::stack_loop([&](Tensor x) { return f(x); }, 0, xs);
}

/// All there is to know of the first two derivatives of f at x, a vector of f64. `order`: 3 adds
/// lanes of the second ones.
void expect_derivatives(const Function& f, const Tensor& x, const std::string& what,
                        int order = 2) {
  SCOPED_TRACE(what);
  const Tolerance near{.relative = 1e-7, .absolute = 1e-8},
      same{.relative = 1e-10, .absolute = 1e-11};
  const Tensor numeric = vt_test::numeric_jacobian(f, x), forward = vt::jacfwd(f)(x),
               reverse = vt::jacrev(f)(x);
  expect_close(forward, numeric, near, "forward");
  expect_close(reverse, forward, same, "reverse");
  expect_close(vt::jit(vt::jacrev(f))(x), forward, same, "reverse, compiled");
  expect_close(vt::jit(vt::jacfwd(f))(x), forward, same, "forward, compiled");
  // ⟨u, J t⟩ = ⟨Jᵀ u, t⟩, pushed and pulled through the linear map.
  const Tensor t = vt_test::random_tensor(vt::f64, x.shape(), 3);
  const auto [y, push] = vt::linearize(f, x);
  const auto [z, pull] = vt::vjp(f, x);
  const Tensor u = vt_test::random_tensor(vt::f64, y.shape(), 4), pushed = push(t),
               pulled = pull(u);
  expect_close(y, f(x), same, "value");
  expect_close(vt::sum(u * pushed), vt::sum(pulled * t), same, "inner product");
  // Lanes of their own.
  const Tensor others = vt::stack({x, x * 0.75, x});
  expect_close(vt::vmap(vt::jacrev(f))(others), in_loop(vt::jacrev(f), others), same,
               "reverse in lanes");
  expect_close(vt::grad([&](Tensor all) { return vt::sum(vt::vmap(f)(all)); })(others),
               in_loop(vt::grad([&](Tensor v) { return vt::sum(f(v)); }), others), same,
               "reverse of lanes");
  if (order < 2) return;
  const Function jf = vt::jacfwd(f), jr = vt::jacrev(f);
  const Tensor second = vt_test::numeric_jacobian(jf, x);
  expect_close(vt::jacfwd(jf)(x), second, near, "forward of forward");
  expect_close(vt::jacrev(jf)(x), second, near, "reverse of forward");
  expect_close(vt::jacfwd(jr)(x), second, near, "forward of reverse");
  expect_close(vt::jacrev(jr)(x), second, near, "reverse of reverse");
  if (order < 3) return;
  expect_close(vt::vmap(vt::jacrev(jr))(others), in_loop(vt::jacrev(jr), others), same,
               "reverse of reverse in lanes");
}

const Tensor point = vt::tensor({0.9, -0.4});

/// v ← sin(v)·scale + x while |v|² is large or for n iterations.
Tensor iterations(Tensor x, Tensor n, vt::WhileOptions options = {}) {
  return vt::while_loop(
             [&](Tensor i, Tensor) { return i < n; },
             [&](Tensor i, Tensor v) { return std::pair(i + 1, vt::sin(v) + 0.5 * x * v); },
             std::pair(0, x), options)
      .second;
}

TEST(ControlGrad, CondAndSwitch) {
  for (double side : {1.0, -1.0})
    expect_derivatives(
        [=](Tensor x) {
          const Tensor w = x * x;
          return vt::cond(
              side * x[0] > 0.0, [&](Tensor v) { return vt::sin(v) * w; },
              [&](Tensor v) { return v * w[1] + 2.0; }, x);
        },
        point, "cond", 3);
  for (int i : {0, 1, 2})
    expect_derivatives(
        [=](Tensor x) {
          return vt::switch_(
              i, std::tuple([&] { return x * x[0]; }, [] { return vt::tensor({1.0, 2.0}); },
                            [&] { return vt::exp(x) * vt::flip(x, 0); }));
        },
        point, "switch_ " + std::to_string(i));
}

TEST(ControlGrad, CondWithIntegersAndResultsThatDoNotVary) {
  const auto f = [](Tensor x) {
    const auto [a, n, c] = vt::cond(
        x[0] > 0.0, [](Tensor v) { return std::tuple(v * v, vt::tensor(3), vt::tensor(1.0)); },
        [](Tensor v) { return std::tuple(v, vt::tensor(4), vt::tensor(2.0)); }, x);
    return a * n.astype(vt::f64) + c;
  };
  expect_derivatives(f, point, "right");
  expect_derivatives(f, -point, "left");
}

TEST(ControlGrad, Scan) {
  const Tensor xs = vt_test::random_tensor(vt::f64, {4, 2}, 1);
  for (bool reverse : {false, true})
    for (std::int64_t unroll : {1, 3})
      expect_derivatives(
          [=](Tensor x) {
            const auto [c, ys] =
                vt::scan([&](Tensor v, Tensor e) { return std::pair(vt::tanh(v * x + e), v * e); },
                         vt::sin(x), xs * x, {.reverse = reverse, .unroll = unroll});
            return c + vt::sum(ys, 0);
          },
          point, "scan", unroll == 1 ? 3 : 2);
  expect_derivatives(
      [](Tensor x) {
        return vt::scan([&](Tensor v) { return std::pair(v * x, v); }, x, std::nullopt,
                        {.length = 0})
            .first;
      },
      point, "no rounds");
  // A carry that begins to vary in the second iteration, an integer carry, sequences of integers.
  expect_derivatives(
      [](Tensor x) {
        const auto [last, ys] = vt::scan(
            [&](Tensor i, Tensor a, Tensor b, Tensor e) {
              return std::pair(std::tuple(i + e, x * e.astype(vt::f64), a * b + 1.0),
                               b * i.astype(vt::f64));
            },
            std::tuple(0, vt::zeros({2}, vt::f64), vt::ones({2}, vt::f64)), vt::arange(4));
        return std::get<2>(last) + vt::sum(ys, 0);
      },
      point, "late");
}

TEST(ControlGrad, MapAndAssociativeScan) {
  for (std::int64_t batch : {0, 2})
    expect_derivatives(
        [=](Tensor x) {
          return vt::sum(
              vt::map([&](Tensor e) { return vt::sin(e * x); },
                      vt::concatenate({x, x, x[vt::slice(0, 1)]}), {.batch_size = batch}),
              0);
        },
        point, "map by " + std::to_string(batch));
  expect_derivatives(
      [](Tensor x) {
        const Tensor all =
            vt::reshape(vt::concatenate({x, vt::sin(x), x * x, x + 1.0, x, -x}), {3, 2, 2});
        return vt::sum(vt::associative_scan([](Tensor a, Tensor b) { return vt::matmul(a, b); },
                                            all, {.reverse = true}),
                       {0, 1});
      },
      point, "associative_scan");
}

TEST(ControlGrad, WhileWithAnyNumberOfKeptStates) {
  for (std::int64_t kept : {0, 1, 2, 3, 16})
    for (int n : {0, 1, 2, 5, 17})
      expect_derivatives([=](Tensor x) { return iterations(x, n, {.checkpoint = kept}); }, point,
                         std::to_string(n) + " rounds, " + std::to_string(kept) + " states",
                         n == 5 || (n == 0 && kept == 2) ? (kept == 3 ? 3 : 2) : 1);
}

TEST(ControlGrad, HundredsOfIterationsBeyondTheKeptStates) {
  // The same loop as a scan, whose derivative needs no kept states.
  const int n = 500;
  const Function scanned = [=](Tensor x) {
    return vt::fori_loop(0, n, [&](Tensor, Tensor v) { return vt::sin(v) + 0.5 * x * v; }, x);
  };
  const Tensor expected = vt::jacrev(scanned)(point);
  for (std::int64_t kept : {0, 2, 3, 16, 64})
    expect_close(
        vt::jacrev([=](Tensor x) { return iterations(x, n, {.checkpoint = kept}); })(point),
        expected, {.relative = 1e-12, .absolute = 1e-300}, std::to_string(kept));
  const Tensor second = vt::jacfwd(vt::jacrev(scanned))(point);
  expect_close(
      vt::jacfwd(vt::jacrev([=](Tensor x) { return iterations(x, n, {.checkpoint = 16}); }))(point),
      second, {.relative = 1e-11, .absolute = 1e-300});
}

TEST(ControlGrad, WhileUntilAValueIsReached) {
  // Newton's iteration for a cube root: the derivative is that of the root.
  const auto root = [](Tensor a) {
    return vt::while_loop([&](Tensor r) { return vt::abs(r * r * r - a) > 1e-13; },
                          [&](Tensor r) { return (2.0 * r + a / (r * r)) / 3.0; }, vt::tensor(1.0));
  };
  expect_close(vt::grad(root)(vt::tensor(8.0)), vt::tensor(1.0 / 12), {.relative = 1e-6});
  expect_derivatives([&](Tensor x) { return root(2.0 + x[0]) * x; }, point, "root", 1);
  const auto halved = [](Tensor x) {
    return vt::while_loop([](Tensor v) { return vt::sum(v * v) > 0.1; },
                          [&](Tensor v) { return v * 0.5 + 0.01 * x * v; }, x * 4.0);
  };
  expect_derivatives(halved, point, "halved");
}

TEST(ControlGrad, LoopsInLoops) {
  const auto inner = [](Tensor v, Tensor x) {
    return vt::while_loop([](Tensor j, Tensor) { return j < 2; },
                          [&](Tensor j, Tensor u) { return std::pair(j + 1, vt::sin(u) * x + u); },
                          std::pair(0, v))
        .second;
  };
  expect_derivatives(
      [&](Tensor x) {
        return vt::while_loop(
                   [](Tensor i, Tensor) { return i < 3; },
                   [&](Tensor i, Tensor v) { return std::pair(i + 1, inner(v, x) * 0.5); },
                   std::pair(0, x), {.checkpoint = 2})
            .second;
      },
      point, "while in while");
  expect_derivatives(
      [&](Tensor x) {
        return vt::scan([&](Tensor c, Tensor e) { return std::pair(inner(c, x + e), c); }, x,
                        vt::tensor({0.1, 0.2}))
            .first;
      },
      point, "while in scan");
  expect_derivatives(
      [&](Tensor x) {
        return vt::while_loop(
            [](Tensor v) { return vt::sum(vt::abs(v)) < 5.0; },
            [&](Tensor v) {
              return vt::scan([&](Tensor c, Tensor e) { return std::pair(c + e * x * x + 0.3, c); },
                              v, v)
                  .first;
            },
            x);
      },
      point, "scan in while");
  expect_derivatives(
      [&](Tensor x) {
        return vt::while_loop([](Tensor i, Tensor) { return i < 4; },
                              [&](Tensor i, Tensor v) {
                                return std::pair(
                                    i + 1, vt::cond(
                                               i % 2 == 0, [&](Tensor u) { return inner(u, x); },
                                               [&](Tensor u) { return u * x; }, v));
                              },
                              std::pair(0, x))
            .second;
      },
      point, "while in cond in while");
}

TEST(ControlGrad, JacobianAndHessianOfXTimesYToTheFourth) {
  const auto f = [](Tensor x, Tensor y) {
    return vt::while_loop([](Tensor i, Tensor) { return i < 4; },
                          [&](Tensor i, Tensor v) { return std::pair(i + 1, v * y); },
                          std::pair(0, x))
        .second;
  };
  const Tensor x = vt::tensor(3.0), y = vt::tensor(2.0);
  expect_close(vt::jacrev<0>(f)(x, y), vt::tensor(16.0));
  expect_close(vt::jacrev<1>(f)(x, y), vt::tensor(96.0));
  expect_close(vt::jacfwd<1>(f)(x, y), vt::tensor(96.0));
  const auto h = vt::hessian<0, 1>(f)(x, y);
  expect_close(vt::tree_leaves(h),
               {vt::tensor(0.0), vt::tensor(32.0), vt::tensor(32.0), vt::tensor(144.0)});
  // Derivatives come in the order that is asked for.
  expect_close(vt::tree_leaves(vt::grad<1, 0>(f)(x, y)), {vt::tensor(96.0), vt::tensor(16.0)});
  expect_close(vt::tree_leaves(vt::jacrev<1, 0>(f)(x, y)), {vt::tensor(96.0), vt::tensor(16.0)});
  const auto transposed = vt::hessian<1, 0>(f)(x, y);
  expect_close(vt::tree_leaves(transposed),
               {vt::tensor(144.0), vt::tensor(32.0), vt::tensor(32.0), vt::tensor(0.0)});
  // Rows of x and y, and a batch of rows.
  const Tensor xs = vt::tensor({1.0, 2.0}), ys = vt::tensor({3.0, -1.0});
  expect_close(vt::jacrev<1>(f)(xs, ys), vt::tensor({{108.0, 0.0}, {0.0, -8.0}}));
  expect_close(vt::vmap(vt::grad<1>(f))(xs, ys), vt::tensor({108.0, -8.0}));
}

TEST(ControlGrad, LanesThatStopAtDifferentTimes) {
  const Tensor n = vt::tensor({4, 0, 2, 33}), xs = vt_test::random_tensor(vt::f64, {4, 2}, 6),
               w = vt::tensor({0.5, 1.5});
  const auto f = [](Tensor count, Tensor x, Tensor weight) {
    return vt::sum(iterations(x, count, {.checkpoint = 4}) * weight);
  };
  const auto slopes = vt::grad<1>(f);
  const Tensor expected =
      vt_test::stack_loop([&](Tensor c, Tensor x) { return slopes(c, x, w); }, 0, n, xs);
  expect_close(vt::vmap(slopes, {.in_axes = {0, 0, vt::unmapped}})(n, xs, w), expected,
               {.relative = 1e-12});
  expect_close(vt::grad([&](Tensor all) {
                 return vt::sum(vt::vmap(f, {.in_axes = {0, 0, vt::unmapped}})(n, all, w));
               })(xs),
               expected, {.relative = 1e-12});
  // What all lanes share gets the sum of theirs.
  const auto shared = [&](Tensor weight) {
    return vt::sum(
        vt::vmap([&](Tensor c, Tensor x) { return vt::sum(iterations(x * weight, c)); })(n, xs));
  };
  const Tensor sum =
      vt::sum(vt_test::stack_loop(
                  [&](Tensor c, Tensor x) {
                    return vt::grad([&](Tensor v) { return vt::sum(iterations(x * v, c)); })(w);
                  },
                  0, n, xs),
              0);
  expect_close(vt::grad(shared)(w), sum, {.relative = 1e-12});
  expect_close(vt::jacfwd(shared)(w), sum, {.relative = 1e-12});
  const auto captured = [&](Tensor weight) {
    return vt::sum(vt::vmap([&](Tensor c, Tensor x) {
      return vt::while_loop(
                 [&](Tensor i, Tensor) { return i < c; },
                 [&](Tensor i, Tensor v) { return std::pair(i + 1, vt::tanh(v * weight)); },
                 std::pair(0, x))
          .second;
    })(n, xs));
  };
  expect_close(vt::grad(captured)(w), vt_test::numeric_gradient(captured, w),
               {.relative = 1e-7, .absolute = 1e-9});
  expect_close(vt::hessian(captured)(w), vt_test::numeric_jacobian(vt::grad(captured), w),
               {.relative = 1e-7, .absolute = 1e-9});
}

TEST(ControlGrad, NothingOfTheBranchNotTaken) {
  // 1/x, √x and log x have no derivative at 0, and the loop none that ends.
  const auto f = [](Tensor x) {
    return vt::cond(
        x > 0.0,
        [](Tensor v) {
          return vt::sqrt(v) + 1.0 / v + vt::log(v) +
                 vt::while_loop([&](Tensor u) { return u != 0.0; }, [](Tensor u) { return u - u; },
                                v + 1.0);
        },
        [](Tensor v) { return 3.0 * v; }, x);
  };
  const Tensor xs = vt::tensor({0.0, 4.0, -1.0}),
               first = vt::tensor({3.0, 0.25 - 1.0 / 16 + 0.25, 3.0});
  for (const auto& slope :
       {Function(vt::grad(f)), Function(vt::jacfwd(f)), Function(vt::jit(vt::grad(f)))}) {
    for (int i = 0; i < 3; ++i) expect_close(slope(xs[i]), first[i]);
    expect_close(vt::vmap(slope)(xs), first);
    expect_close(vt::vmap(vt::jacfwd(slope))(vt::tensor({0.0, -1.0})), vt::zeros({2}, vt::f64));
    expect_close(vt::vmap(vt::grad(slope))(vt::tensor({0.0, -1.0})), vt::zeros({2}, vt::f64));
  }
}

TEST(ControlGrad, AuxValuesAndIntegerCarries) {
  const auto f = [](Tensor x) {
    const auto [n, v] = vt::while_loop([](Tensor, Tensor u) { return u < 10.0; },
                                       [&](Tensor i, Tensor u) { return std::pair(i + 1, u * x); },
                                       std::pair(0, x));
    return std::pair(v, n);
  };
  const auto [slope, count] = vt::grad(f, vt::has_aux)(vt::tensor(2.0));
  expect_close(slope, vt::tensor(4 * 8.0));
  EXPECT_EQ(count.item<int>(), 3);
  const auto [all, counts] = vt::vmap(vt::grad(f, vt::has_aux))(vt::tensor({2.0, 20.0, 3.0}));
  expect_close(all, vt::tensor({32.0, 1.0, 27.0}));
  expect_close(counts, vt::tensor({3, 0, 2}));
  // A gradient by what decides the number of iterations alone is zero.
  expect_close(vt::grad([](Tensor x) {
                 return vt::while_loop([&](Tensor u) { return u < x; },
                                       [](Tensor u) { return u + 1.0; }, vt::tensor(0.0));
               })(vt::tensor(3.5)),
               vt::tensor(0.0));
}

TEST(ControlGrad, TreesAndSeveralArguments) {
  struct Model {
    Tensor w, b;
  };
  const auto loss = [](Model m, Tensor xs) {
    return vt::sum(
        vt::scan([&](Tensor h, Tensor x) { return std::pair(vt::tanh(m.w * h + x + m.b), h * h); },
                 vt::zeros({2}, vt::f64), xs)
            .second);
  };
  const Model m{vt::tensor({0.5, -1.0}), vt::tensor({0.1, 0.2})};
  const Tensor xs = vt_test::random_tensor(vt::f64, {5, 2}, 2);
  const auto [of_model, of_xs] = vt::grad<0, 1>(loss)(m, xs);
  const auto numeric = [&](auto&& f, const Tensor& at) { return vt_test::numeric_gradient(f, at); };
  expect_close(of_model.w, numeric([&](Tensor w) { return loss({w, m.b}, xs); }, m.w),
               {.relative = 1e-8});
  expect_close(of_model.b, numeric([&](Tensor b) { return loss({m.w, b}, xs); }, m.b),
               {.relative = 1e-8});
  expect_close(of_xs, numeric([&](Tensor v) { return loss(m, v); }, xs),
               {.relative = 1e-8, .absolute = 1e-12});
}

// --- with rules of one's own ---------------------------------------------------------------------

TEST(ControlGrad, CustomRulesInsideLoopsAreUsed) {
  // Both rules lie: they say that the derivative is 3.
  const auto forward =
      vt::custom_jvp([](Tensor x) { return x * x; },
                     [](Tensor x, Tensor dx) { return std::pair(x * x, 3.0 * dx); });
  const auto backward = vt::custom_vjp([](Tensor x) { return x * x; },
                                       [](Tensor x) { return std::pair(x * x, std::tuple<>()); },
                                       [](std::tuple<>, Tensor bar) { return 3.0 * bar; });
  const Tensor x = vt::tensor(0.5), xs = vt::tensor({0.5, 2.0});
  const auto expect_lies = [&](auto f, double slope, bool forward_too) {
    expect_close(vt::grad(f)(x), vt::tensor(slope));
    expect_close(vt::jit(vt::grad(f))(x), vt::tensor(slope));
    expect_close(vt::vmap(vt::grad(f))(xs), vt::tensor({slope, slope}));
    if (forward_too) expect_close(vt::jacfwd(f)(x), vt::tensor(slope));
  };
  const auto in_all = [&](auto square, bool forward_too) {
    expect_lies(
        [=](Tensor v) {
          return vt::while_loop([](Tensor i, Tensor) { return i < 3; },
                                [&](Tensor i, Tensor u) { return std::pair(i + 1, square(u)); },
                                std::pair(0, v))
              .second;
        },
        27, forward_too);
    expect_lies(
        [=](Tensor v) {
          return vt::fori_loop(0, 2, [&](Tensor, Tensor u) { return square(u); }, v);
        },
        9, forward_too);
    expect_lies([=](Tensor v) { return vt::cond(v > 0.0, square, [](Tensor u) { return u; }, v); },
                3, forward_too);
  };
  in_all(forward, true);
  in_all(backward, false);
}

TEST(ControlGrad, LoopsInsideCustomRules) {
  // The rule's tangent is a scan that is linear in dx, which reverse mode transposes: x⁴ said to
  // have the derivative 4x³.
  const auto power = [](Tensor x, Tensor start) {
    return vt::scan([&](Tensor c) { return std::pair(c * x, std::nullopt); }, start, std::nullopt,
                    {.length = 3})
        .first;
  };
  const auto f = vt::custom_jvp(
      [=](Tensor x) { return power(x, x); },
      [=](Tensor x, Tensor dx) { return std::pair(power(x, x), 4.0 * power(x, dx)); });
  expect_derivatives(f, point, "scan in a jvp rule");
  // The same with a while and a cond.
  const auto looped = [](Tensor x, Tensor start) {
    return vt::while_loop([](Tensor i, Tensor) { return i < 3; },
                          [&](Tensor i, Tensor c) {
                            return std::pair(i + 1, vt::cond(
                                                        i < 7, [&](Tensor u) { return u * x; },
                                                        [](Tensor u) { return u; }, c));
                          },
                          std::pair(0, start))
        .second;
  };
  const auto g = vt::custom_jvp(
      [=](Tensor x) { return looped(x, x); },
      [=](Tensor x, Tensor dx) { return std::pair(looped(x, x), 4.0 * looped(x, dx)); });
  expect_derivatives(g, point, "while in a jvp rule");
  const auto h = vt::custom_vjp([=](Tensor x) { return looped(x, x); },
                                [=](Tensor x) { return std::pair(looped(x, x), x); },
                                [=](Tensor x, Tensor bar) { return 4.0 * power(x, bar); });
  expect_close(vt::jacrev(vt::jacrev(h))(point), vt::jacrev(vt::jacrev(g))(point),
               {.relative = 1e-12});
}

TEST(ControlGrad, CheckpointAroundAndInsideLoops) {
  const auto body = [](Tensor v, Tensor x) { return vt::sin(v) * x + v; };
  expect_derivatives(vt::checkpoint([](Tensor x) { return iterations(x, 5); }), point,
                     "around a while");
  expect_derivatives(vt::checkpoint([=](Tensor x) {
                       return vt::fori_loop(0, 3, [&](Tensor, Tensor v) { return body(v, x); }, x);
                     }),
                     point, "around a scan");
  expect_derivatives(
      [=](Tensor x) {
        return vt::fori_loop(0, 3, [&](Tensor, Tensor v) { return vt::checkpoint(body)(v, x); }, x);
      },
      point, "inside a scan");
  expect_derivatives(
      [=](Tensor x) {
        return vt::fori_loop(
            0, vt::tensor(3), [&](Tensor, Tensor v) { return vt::checkpoint(body)(v, x); }, x);
      },
      point, "inside a while");
}

// --- time ----------------------------------------------------------------------------------------

struct Traced {
  /// of this process's own, which other programs do not lengthen much; the best of several
  double seconds;
  std::size_t equations;
};
/// vmap of the gradient of `depth` loops in each other; the better of `t` and this time.
void trace(const std::function<Tensor(int, Tensor)>& nest, int depth, Traced& t) {
  const std::clock_t begin = std::clock();
  const vt::Graph graph = vt::make_graph(
      vt::vmap(vt::grad([&](Tensor x) { return nest(depth, x); })))(vt::ones({3}, vt::f64));
  t.seconds = std::min(t.seconds, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  const std::string text = graph.str();
  t.equations = static_cast<std::size_t>(std::count(text.begin(), text.end(), '='));
}
void expect_steady_growth(const std::function<Tensor(int, Tensor)>& nest, const char* what) {
  Traced t3{1e9, 0}, t4 = t3, t5 = t3;
  // in turn: a slow moment of the machine meets all
  for (int i = 0; i < 7; ++i) trace(nest, 3, t3), trace(nest, 4, t4), trace(nest, 5, t5);
  // One level more adds what one level costs, and for the states that reverse mode keeps one more
  // of what its parts cost.
  EXPECT_LT(t5.equations, 1.7 * static_cast<double>(t4.equations))
      << what << ": " << t3.equations << " " << t4.equations << " " << t5.equations;
  EXPECT_LT(t5.equations, 2.6 * static_cast<double>(t3.equations))
      << what << ": " << t3.equations << " " << t4.equations << " " << t5.equations;
  EXPECT_LT(t5.seconds, 5 * t3.seconds)
      << what << ": " << t3.seconds << " " << t4.seconds << " " << t5.seconds;
}

// The value of a branch is the inner loop's operand twice: as it is, and reshaped to be kept.
TEST(ControlGrad, OneValueTwiceAmongALoopsOperands) {
  using C = std::tuple<Tensor, Tensor, Tensor>;
  const auto f = [](Tensor x, Tensor n) {
    const auto [i, a, c] = vt::while_loop(
        [&](Tensor i, Tensor, Tensor) { return i < n; },
        [&](Tensor i, Tensor, Tensor c) {
          const Tensor k =
              vt::cond(c > 0.3, [&] { return vt::log(c); }, [&] { return vt::sqrt(1.0 - c); });
          const auto [j, a, d] = vt::while_loop(
              [&](Tensor j, Tensor, Tensor) { return j < n; },
              [](Tensor j, Tensor a, Tensor c) { return C(j + 1, a, vt::sin(c * a)); }, C(0, k, c));
          return C(i + 1, a, d);
        },
        C(0, x, x));
    return a + c;
  };
  const Tensor x = vt::tensor(0.2), n = vt::tensor(3);
  const auto with_three = [&](Tensor t) { return f(t, n); };
  const Tensor slope = vt_test::numeric_jacobian(with_three, x);
  const Tolerance near{.relative = 1e-7, .absolute = 1e-8};
  for (int call = 0; call < 2; ++call) {
    expect_close(vt::grad(f)(x, n), slope, near, "eager");
    expect_close(vt::jit(vt::grad(f))(x, n), slope, near, "compiled");
  }
}

TEST(ControlGrad, FiveNestedLoopsTraceInLinearTime) {
  const std::function<Tensor(int, Tensor)> scans = [&](int depth, Tensor x) -> Tensor {
    if (depth == 0) return vt::sin(x) * x;
    return vt::scan([&](Tensor c, Tensor e) { return std::pair(scans(depth - 1, c * e), c); }, x,
                    vt::tensor({1.0, 2.0}))
        .first;
  };
  expect_steady_growth(scans, "scans");
  const std::function<Tensor(int, Tensor)> counted = [&](int depth, Tensor x) -> Tensor {
    if (depth == 0) return vt::sin(x) * x;
    return vt::fori_loop(
        0, vt::tensor(2), [&](Tensor, Tensor c) { return counted(depth - 1, 0.5 * c); }, x);
  };
  expect_steady_growth(counted, "whiles that count");
  const std::function<Tensor(int, Tensor)> stopped = [&](int depth, Tensor x) -> Tensor {
    if (depth == 0) return vt::sin(x) * x;
    return vt::while_loop([](Tensor c) { return c > 0.1; },
                          [&](Tensor c) { return stopped(depth - 1, 0.5 * c); }, x);
  };
  expect_steady_growth(stopped, "whiles that every lane leaves on its own");
}

}  // namespace
