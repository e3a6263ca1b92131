// jacfwd, jacrev, jacobian and hessian: against differences, each other and known matrices; trees,
// chunks, sizes 0 and 1, mixed dtypes; and derivatives nested in derivatives and in vmap.
#include "support/property.hpp"

namespace {

using vt::Shape;
using vt::Tensor;
using vt_test::expect_close;
using vt_test::random_tensor;

constexpr vt_test::Tolerance near{.relative = 1e-12, .absolute = 1e-13};
constexpr vt_test::Tolerance differences{.relative = 1e-7, .absolute = 1e-8};

/// [m…] → [p…]: something that mixes all elements.
Tensor mix(Tensor x, const Shape& to) {
  const std::int64_t n = x.size(), m = to.elements();
  const Tensor weights =
      vt::sin(vt::reshape(vt::arange(0.0, static_cast<double>(n * m), 1.0, vt::f64), {m, n}));
  return vt::reshape(vt::tanh(vt::matmul(weights, vt::reshape(x, {n}))), to);
}

TEST(Jacobian, ModesAgreeWithDifferencesOnEveryShape) {
  for (const Shape& from : {Shape{}, Shape{1}, Shape{3}, Shape{2, 3}})
    for (const Shape& to : {Shape{}, Shape{1}, Shape{4}, Shape{2, 2}}) {
      SCOPED_TRACE(from.str() + " → " + to.str());
      const auto f = [&](Tensor x) { return mix(x, to); };
      const Tensor x = random_tensor(vt::f64, from, 3), expected = vt_test::numeric_jacobian(f, x);
      expect_close(vt::jacfwd(f)(x), expected, differences);
      expect_close(vt::jacrev(f)(x), expected, differences);
      expect_close(vt::jacobian(f)(x), vt::jacfwd(f)(x), near);
      expect_close(vt::jit(vt::jacobian(f))(x), vt::jacfwd(f)(x), near);
    }
}

TEST(Jacobian, EmptyArgumentsAndResults) {
  const auto f = [](Tensor x) { return vt::sin(x); };
  for (const Shape& s : {Shape{0}, Shape{0, 3}}) {
    const Tensor x = vt::zeros(s, vt::f64);
    Shape twice = s;
    twice.append(s.begin(), s.end());
    EXPECT_EQ(vt::jacfwd(f)(x).shape(), twice);
    EXPECT_EQ(vt::jacrev(f)(x).shape(), twice);
  }
  const auto total = [](Tensor x) { return vt::sum(x); };
  EXPECT_EQ(vt::jacfwd(total)(vt::zeros({0}, vt::f64)).shape(), (Shape{0}));
  EXPECT_EQ(vt::hessian(total)(vt::zeros({0}, vt::f64)).shape(), (Shape{0, 0}));
}

TEST(Jacobian, ResultsThatDoNotDependAreZero) {
  const auto f = [](Tensor x) { return std::pair(vt::stop_gradient(x), vt::full({2}, 3.0)); };
  const Tensor x = vt::tensor({1.0, 2.0, 3.0});
  for (const auto& [a, b] : {vt::jacfwd(f)(x), vt::jacrev(f)(x)}) {
    expect_close(a, vt::zeros({3, 3}, vt::f64));
    expect_close(b, vt::zeros({2, 3}, vt::f64));
  }
}

// The same bits on the interpreter; compiled sums run in an order that depends on the shape, so in
// blocks they differ by a rounding.
TEST(Jacobian, ChunksGiveTheSame) {
  const auto f = [](Tensor x) { return mix(x, {5}); };
  const Tensor x = random_tensor(vt::f64, {7}, 4);
  const Tensor forward = vt::jacfwd(f)(x), reverse = vt::jacrev(f)(x);
  const vt_test::Tolerance same =
      vt_test::forced_backend() == "interpreter" ? vt_test::exact : near;
  for (std::int64_t chunk : {1, 2, 3, 5, 7, 100}) {
    SCOPED_TRACE(chunk);
    expect_close(vt::jacfwd(f, {.chunk = chunk})(x), forward, same);
    expect_close(vt::jacrev(f, {.chunk = chunk})(x), reverse, same);
    expect_close(vt::jit(vt::jacrev(f, {.chunk = chunk}))(x), reverse, near);
  }
  vt_test::expect_error([&] { vt::jacrev(f, {.chunk = -2})(x); }, vt::ErrorKind::value,
                        {"vt::jacrev", "chunk -2", "jacobian_test.cpp"});
}

struct Params {
  Tensor w, b;
};

TEST(Jacobian, TreesInAndOut) {
  const auto f = [](Params p, Tensor x) {
    return std::tuple(vt::matmul(p.w, x) + p.b, vt::sum(p.w * p.w));
  };
  const Params p{random_tensor(vt::f64, {2, 3}, 1), random_tensor(vt::f64, {2}, 2)};
  const Tensor x = random_tensor(vt::f64, {3}, 3);
  for (const auto& [y, n] : {vt::jacfwd(f)(p, x), vt::jacrev(f)(p, x), vt::jacobian(f)(p, x)}) {
    expect_close(y.w,
                 vt_test::numeric_jacobian([&](Tensor w) { return vt::matmul(w, x) + p.b; }, p.w),
                 differences);
    expect_close(y.b, vt::eye(2, vt::f64));
    expect_close(n.w, 2.0 * p.w, near);
    expect_close(n.b, vt::zeros({2}, vt::f64));
  }
  const auto [by_x, none] = vt::jacrev<1>(f)(p, x);
  expect_close(by_x, p.w, near);
  expect_close(none, vt::zeros({3}, vt::f64));
  const auto both = vt::jacfwd<0, 1>(f)(p, x);
  expect_close(std::get<1>(std::get<0>(both)), p.w, near);
}

/// Convolutions, pools and dense layers on an image of odd size; a recurrent cell with gates,
/// unrolled.
Tensor small_convnet(Tensor x) {
  std::uint64_t seed = 1;
  const auto weights = [&](const Shape& shape) { return random_tensor(vt::f64, shape, ++seed); };
  for (const std::int64_t features : {4, 8})
    x = vt::max_pool(
        vt::relu(vt::conv2d(x, weights({3, 3, x.shape().back(), features}), {.padding = "SAME"}) +
                 weights({features})),
        {.window = {2}});
  x = vt::relu(vt::matmul(vt::ravel(x), weights({x.size(), 12})) + weights({12}));
  return vt::matmul(x, weights({12, 5})) + weights({5});
}
Tensor small_lstm(Tensor xs) {
  constexpr std::int64_t width = 6;
  const Tensor w = random_tensor(vt::f64, {width + xs.shape()[1], 4 * width}, 1),
               bias = random_tensor(vt::f64, {4 * width}, 2);
  Tensor h = vt::zeros({width}, vt::f64), c = h;
  for (std::int64_t t = 0; t < xs.shape()[0]; ++t) {
    const Tensor gates = vt::matmul(vt::concatenate({xs[t], h}), w) + bias;
    const auto gate = [&](std::int64_t k) { return gates[vt::slice(k * width, (k + 1) * width)]; };
    c = vt::sigmoid(gate(1)) * c + vt::sigmoid(gate(0)) * vt::tanh(gate(2));
    h = vt::sigmoid(gate(3)) * vt::tanh(c);
  }
  return vt::matmul(h, random_tensor(vt::f64, {width, 7}, 3));
}

TEST(Jacobian, OfNetworksEqualsTheLoopOverRows) {
  const auto check = [](auto f, const Tensor& x, std::int64_t outputs) {
    const auto row = vt::jit([f](Tensor at, Tensor ct) { return vt::vjp(f, at).second(ct); });
    std::vector<Tensor> rows;
    for (std::int64_t i = 0; i < outputs; ++i)
      rows.push_back(row(x, vt::one_hot(vt::tensor(i), outputs, vt::f64)));
    const Tensor expected = vt::stack(rows);
    const auto together = vt::jit(vt::jacrev(f));
    for (int run = 0; run < 2; ++run) expect_close(together(x), expected, near);
    expect_close(vt::jacfwd(f)(x), expected, {.relative = 1e-11, .absolute = 1e-11});
    expect_close(vt_test::numeric_jacobian(f, x), expected, {.relative = 1e-6, .absolute = 1e-6});
  };
  check(small_convnet, random_tensor(vt::f64, {11, 9, 3}, 4), 5);
  check(small_lstm, random_tensor(vt::f64, {4, 5}, 5), 7);
}

TEST(Jacobian, IntegerResultsAreRefused) {
  const auto f = [](Tensor x) { return vt::argmax(x); };
  vt_test::expect_error([&] { vt::jacrev(f)(vt::tensor({1.0, 2.0})); }, vt::ErrorKind::dtype,
                        {"vt::jacrev", "i32[]", "jacobian_test.cpp"});
  vt_test::expect_error([&] { vt::jacfwd(f)(vt::tensor({1, 2})); }, vt::ErrorKind::dtype,
                        {"vt::jacfwd", "i32[2]"});
}

TEST(Jacobian, MixedDtypes) {
  const auto f = [](Tensor x) { return vt::sin(x.astype(vt::f64)); };
  const Tensor x = vt::tensor({0.5f, 1.5f});
  const Tensor forward = vt::jacfwd(f)(x), reverse = vt::jacrev(f)(x);
  EXPECT_EQ(forward.dtype(), vt::f64);
  EXPECT_EQ(reverse.dtype(), vt::f64);
  expect_close(reverse, forward, {.relative = 1e-7});
  const Tensor half = vt::tensor({0.5, 1.5}, vt::bf16);
  EXPECT_EQ(vt::jacfwd([](Tensor v) { return v * v; })(half).dtype(), vt::bf16);
  EXPECT_EQ(vt::grad([](Tensor v) { return vt::sum(v * 2.0); })(half).dtype(), vt::bf16);
}

// --- hessian -------------------------------------------------------------------------------------

Tensor rosenbrock(Tensor x) {
  const Tensor a = x[vt::slice(1, std::nullopt)], b = x[vt::slice(0, -1)];
  return vt::sum(100.0 * vt::square(a - b * b) + vt::square(1.0 - b));
}

TEST(Hessian, Rosenbrock) {
  const Tensor x = vt::tensor({-1.2, 1.0, 0.7});
  const double a = -1.2, b = 1.0, c = 0.7;
  const Tensor expected = vt::tensor({{1200 * a * a - 400 * b + 2, -400 * a, 0.0},
                                      {-400 * a, 202 + 1200 * b * b - 400 * c, -400 * b},
                                      {0.0, -400 * b, 200.0}});
  expect_close(vt::hessian(rosenbrock)(x), expected, near);
  expect_close(vt::jacrev(vt::jacrev(rosenbrock))(x), expected, near);
  expect_close(vt::jacfwd(vt::jacfwd(rosenbrock))(x), expected, near);
  expect_close(vt::jacrev(vt::jacfwd(rosenbrock))(x), expected, near);
  expect_close(vt::jacfwd(vt::grad(rosenbrock))(x), expected, near);
  expect_close(vt::hessian(rosenbrock, {.chunk = 2})(x), expected, near);
}

TEST(Hessian, OfVectorsAndTrees) {
  const auto f = [](Tensor x) { return vt::stack({vt::prod(x), vt::sum(vt::exp(x))}); };
  const Tensor x = vt::tensor({0.5, -0.25});
  const Tensor h = vt::hessian(f)(x);
  expect_close(
      h, vt::tensor({{{0.0, 1.0}, {1.0, 0.0}}, {{std::exp(0.5), 0.0}, {0.0, std::exp(-0.25)}}}),
      {.ulps = 4});
  const auto g = [](Params p) { return vt::sum(p.w * p.w * p.b); };
  const Params p{vt::tensor({2.0, 3.0}), vt::tensor({5.0, 7.0})};
  const auto [of_w, of_b] = vt::hessian(g)(p);
  expect_close(of_w.w, vt::tensor({{10.0, 0.0}, {0.0, 14.0}}));
  expect_close(of_w.b, vt::tensor({{4.0, 0.0}, {0.0, 6.0}}));
  expect_close(of_b.w, vt::tensor({{4.0, 0.0}, {0.0, 6.0}}));
  expect_close(of_b.b, vt::zeros({2, 2}, vt::f64));
}

// --- nesting -------------------------------------------------------------------------------------

TEST(Nesting, DerivativesOfEveryOrder) {
  const Tensor x = vt::tensor(0.7);
  auto f = [](Tensor v) { return vt::sin(v * v); };
  const double a = 0.7, s = std::sin(a * a), c = std::cos(a * a);
  expect_close(vt::grad(f)(x), vt::tensor(2 * a * c), near);
  expect_close(vt::grad(vt::grad(f))(x), vt::tensor(2 * c - 4 * a * a * s), near);
  expect_close(vt::grad(vt::grad(vt::grad(f)))(x), vt::tensor(-12 * a * s - 8 * a * a * a * c),
               near);
}

TEST(Nesting, PerturbationsAreNotConfused) {
  // d/dx (x · d/dy (x + y)) = 1, whatever the modes.
  const auto inner_forward = [](Tensor x) {
    return x * vt::jvp([&](Tensor y) { return x + y; }, std::tuple(Tensor(vt::tensor(1.0))),
                       std::tuple(Tensor(vt::tensor(1.0))))
                   .second;
  };
  const auto inner_reverse = [](Tensor x) {
    return x * vt::grad([&](Tensor y) { return x + y; })(vt::tensor(1.0));
  };
  for (const Tensor& d :
       {vt::grad(inner_forward)(vt::tensor(3.0)), vt::grad(inner_reverse)(vt::tensor(3.0)),
        vt::jacfwd(inner_forward)(vt::tensor(3.0)), vt::jacfwd(inner_reverse)(vt::tensor(3.0))})
    expect_close(d, vt::tensor(1.0));
  // The captured x is differentiated through the inner gradient: d/dx d/dy (x² y²) at y = 2 is 8x.
  const auto mixed = [](Tensor x) {
    return vt::grad([&](Tensor y) { return x * x * y * y; })(vt::tensor(2.0));
  };
  expect_close(vt::grad(mixed)(vt::tensor(3.0)), vt::tensor(24.0));
}

TEST(Nesting, VmapAndGradCommute) {
  const auto loss = [](Tensor w, Tensor x) { return vt::sum(vt::tanh(vt::matmul(w, x))); };
  const Tensor w = random_tensor(vt::f64, {2, 3}, 1), xs = random_tensor(vt::f64, {4, 3}, 2);
  const auto per_example = vt::vmap(vt::grad(loss), {.in_axes = {vt::unmapped, 0}});
  const Tensor g = per_example(w, xs);
  for (std::int64_t i = 0; i < 4; ++i) expect_close(g[i], vt::grad(loss)(w, xs[i]), near);
  const auto total = [&](Tensor v) {
    return vt::sum(vt::vmap(loss, {.in_axes = {vt::unmapped, 0}})(v, xs));
  };
  expect_close(vt::grad(total)(w), vt::sum(g, 0), near);
  // Gradient of a norm of per-example gradients: grad ∘ vmap ∘ grad.
  const auto penalty = [&](Tensor v) { return vt::sum(vt::square(per_example(v, xs))); };
  expect_close(vt::grad(penalty)(w), vt_test::numeric_gradient(penalty, w), differences);
  expect_close(vt::jit(vt::grad(penalty))(w), vt::grad(penalty)(w), near);
  // vmap ∘ hessian = loop of Hessians.
  const auto energy = [](Tensor x) { return vt::sum(vt::sin(x) * vt::cumsum(x)); };
  const Tensor hs = vt::vmap(vt::hessian(energy))(xs);
  for (std::int64_t i = 0; i < 4; ++i) expect_close(hs[i], vt::hessian(energy)(xs[i]), near);
}

TEST(Nesting, JitAnywhere) {
  const auto f = vt::jit([](Tensor x) { return vt::sum(vt::exp(vt::sin(x))); });
  const Tensor x = vt::tensor({0.1, 0.2, 0.3});
  const auto plain = [](Tensor v) { return vt::sum(vt::exp(vt::sin(v))); };
  expect_close(vt::grad(f)(x), vt::grad(plain)(x), near);
  expect_close(vt::jit(vt::hessian(f))(x), vt::hessian(plain)(x), near);
  expect_close(vt::hessian(vt::jit(f))(x), vt::hessian(plain)(x), near);
}

TEST(Nesting, ValuesSteerDifferentiatedFunctions) {
  const auto f = [](Tensor x) {
    Tensor y = x;
    while (y.item<double>() < 100) y = y * y;
    return y;
  };
  expect_close(vt::grad(f)(vt::tensor(3.0)), vt::tensor(8 * std::pow(3.0, 7)), near);
  expect_close(vt::grad(vt::grad(f))(vt::tensor(3.0)), vt::tensor(56 * std::pow(3.0, 6)), near);
  expect_close(vt::jvp(f, std::tuple(vt::tensor(3.0)), std::tuple(vt::tensor(1.0))).second,
               vt::tensor(8 * std::pow(3.0, 7)), near);
}

TEST(Nesting, LinearMapsAreFunctionsToo) {
  const Tensor x = vt::tensor({0.1, 0.2});
  const auto f = [](Tensor v) { return vt::sin(v) * vt::sum(v); };
  const auto [y, push] = vt::linearize(f, x);
  const auto [z, pull] = vt::vjp(f, x);
  // A linear map is its own derivative, can be vmapped, jitted and transposed again.
  const Tensor t = vt::tensor({1.0, -2.0});
  expect_close(vt::jvp(push, std::tuple(x), std::tuple(t)).second, push(t), near);
  expect_close(vt::vmap(push)(vt::eye(2, vt::f64)), vt::transpose(vt::jacfwd(f)(x)), near);
  expect_close(vt::vmap(pull)(vt::eye(2, vt::f64)), vt::jacrev(f)(x), near);
  expect_close(vt::jit(push)(t), push(t), near);
  const auto [w, pulled] = vt::vjp(pull, x);
  expect_close(pulled(t), push(t), near);
}

}  // namespace
