// Sgd, Adam and AdamW against plain loops in double that follow optax's formulas; learning rates,
// clipping, trees, dtypes; under jit, vmap, scan and with variables; derivatives, and messages.
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::Tensor;
using vt_test::expect_close;
using vt_test::expect_error;

constexpr vt_test::Tolerance same{.relative = 1e-13, .absolute = 1e-15};

/// A gradient that changes with the step and the parameters.
double slope_of(double p, int step) { return std::sin(3 * p) + 0.2 * p + 0.1 * step; }
Tensor slope_of(const Tensor& p, const Tensor& step) {
  return vt::sin(3.0 * p) + 0.2 * p + 0.1 * step.astype(vt::f64);
}
const std::vector<double> start{0.7, -1.3, 0.0, 2.5};

/// So many steps of vt's, one by one.
template <class Method>
Tensor stepped(const Method& method, int steps) {
  Tensor p = vt::tensor(start);
  auto state = method.init(p);
  for (int i = 0; i < steps; ++i) {
    auto [next, kept] = method.step(p, slope_of(p, Tensor(i)), state);
    p = next;
    state = kept;
  }
  EXPECT_EQ(state.steps.template item<int>(), steps);
  return p;
}
using Gradient = std::vector<double>;
Gradient gradient_at(const std::vector<double>& p, int step, double clip) {
  Gradient g;
  double square = 0;
  for (const double v : p) g.push_back(slope_of(v, step)), square += g.back() * g.back();
  if (clip > 0 && std::sqrt(square) > clip)
    for (double& v : g) v *= clip / std::sqrt(square);
  return g;
}
using Schedule = std::function<double(int)>;

Tensor sgd_by_hand(const Schedule& rate, double momentum, bool nesterov, double decay, double clip,
                   int steps) {
  std::vector<double> p = start, trace(p.size(), 0.0);
  for (int i = 0; i < steps; ++i) {
    const Gradient g = gradient_at(p, i, clip);
    for (std::size_t k = 0; k < p.size(); ++k) {
      const double with_decay = g[k] + decay * p[k];
      trace[k] = with_decay + momentum * trace[k];
      p[k] -= rate(i) * (nesterov ? with_decay + momentum * trace[k] : trace[k]);
    }
  }
  return vt::tensor(p);
}
Tensor adam_by_hand(const Schedule& rate, double b1, double b2, double epsilon, double decay,
                    double clip, int steps) {
  std::vector<double> p = start, m(p.size(), 0.0), v(p.size(), 0.0);
  for (int i = 0; i < steps; ++i) {
    const Gradient g = gradient_at(p, i, clip);
    for (std::size_t k = 0; k < p.size(); ++k) {
      m[k] = b1 * m[k] + (1 - b1) * g[k];
      v[k] = b2 * v[k] + (1 - b2) * g[k] * g[k];
      const double mean = m[k] / (1 - std::pow(b1, i + 1)),
                   square = v[k] / (1 - std::pow(b2, i + 1));
      p[k] -= rate(i) * (mean / (std::sqrt(square) + epsilon) + decay * p[k]);
    }
  }
  return vt::tensor(p);
}
const auto constant = [](double value) { return [value](int) { return value; }; };

TEST(Optimizers, FollowTheFormulas) {
  expect_close(stepped(vt::Sgd{}, 5), sgd_by_hand(constant(0.01), 0, false, 0, 0, 5), same);
  for (const bool nesterov : {false, true})
    expect_close(stepped(vt::Sgd{.rate = 0.05,
                                 .momentum = 0.9,
                                 .nesterov = nesterov,
                                 .weight_decay = 0.1,
                                 .clip_norm = 0.7},
                         9),
                 sgd_by_hand(constant(0.05), 0.9, nesterov, 0.1, 0.7, 9), same);
  expect_close(stepped(vt::Adam{}, 7), adam_by_hand(constant(1e-3), 0.9, 0.999, 1e-8, 0, 0, 7),
               {.relative = 1e-12});
  expect_close(stepped(vt::Adam{.rate = 0.1,
                                .mean_decay = 0.0,
                                .square_decay = 0.5,
                                .epsilon = 0.1,
                                .clip_norm = 1.5},
                       7),
               adam_by_hand(constant(0.1), 0, 0.5, 0.1, 0, 1.5, 7), {.relative = 1e-12});
  expect_close(stepped(vt::AdamW{}, 4), adam_by_hand(constant(1e-3), 0.9, 0.999, 1e-8, 1e-4, 0, 4),
               {.relative = 1e-12});
  expect_close(stepped(vt::AdamW{.rate = 0.02, .weight_decay = 0.3}, 20),
               adam_by_hand(constant(0.02), 0.9, 0.999, 1e-8, 0.3, 0, 20), {.relative = 1e-12});
}

TEST(Optimizers, RatesOfTheStep) {
  const auto check = [](const vt::Rate& rate, const Schedule& plain) {
    for (const int step : {0, 1, 3, 4, 5, 9, 10, 11, 50})
      EXPECT_NEAR(rate.at(Tensor(step)).item<double>(), plain(step), 1e-15) << step;
  };
  const double pi = std::acos(-1.0);
  const auto wave = [=](int step) {
    return 0.01 + 0.19 * 0.5 * (1 + std::cos(pi * std::min(step, 10) / 10.0));
  };
  const auto fall = [](int step) { return 0.5 * std::pow(0.8, step / 4.0); };
  const auto rise = [=](int step) { return step < 4 ? 0.2 * step / 4 : wave(step - 4); };
  check(0.25, constant(0.25));
  check(vt::tensor(0.25), constant(0.25));
  check(vt::cosine_rate(0.2, 10, 0.01), wave);
  check(vt::exponential_rate(0.5, 0.8, 4), fall);
  check(vt::warm_up(vt::cosine_rate(0.2, 10, 0.01), 4), rise);
  check(vt::warm_up(0.3, 5), [](int step) { return 0.3 * std::min(step, 5) / 5; });
  check([](Tensor step) { return 1.0 / (1.0 + step.astype(vt::f64)); },
        [](int step) { return 1.0 / (1 + step); });
  expect_close(stepped(vt::Sgd{.rate = vt::warm_up(vt::cosine_rate(0.2, 10, 0.01), 4)}, 20),
               sgd_by_hand(rise, 0, false, 0, 0, 20), same);
  expect_close(stepped(vt::AdamW{.rate = vt::exponential_rate(0.5, 0.8, 4)}, 20),
               adam_by_hand(fall, 0.9, 0.999, 1e-8, 1e-4, 0, 20), {.relative = 1e-11});
}

TEST(Optimizers, ClippingByTheNormOfAll) {
  const std::pair<Tensor, std::vector<Tensor>> tree{vt::tensor({3.0f, 0.0f}), {vt::tensor(4.0)}};
  const auto inside = vt::clip_by_norm(tree, 5.0);
  expect_close(inside.first, tree.first);
  const auto clipped = vt::clip_by_norm(tree, 1.0);
  EXPECT_EQ(clipped.first.dtype(), vt::f32);
  expect_close(clipped.first, vt::tensor({0.6f, 0.0f}), {.relative = 1e-7});
  EXPECT_NEAR(clipped.second[0].item<double>(), 0.8, 1e-15);
  const auto zero = [](Tensor x) { return vt::sum(vt::clip_by_norm(x, 1.0)); };
  expect_close(vt::grad(zero)(vt::zeros({3}, vt::f64)), vt::ones({3}, vt::f64));
  const Tensor x = vt::tensor({1.0, -2.0, 3.0});
  const auto f = [](Tensor x) { return vt::clip_by_norm(x, 2.0); };
  expect_close(vt::jacrev(f)(x), vt_test::numeric_jacobian(f, x), {.absolute = 1e-8});
}

struct Model {
  Tensor weights;
  std::vector<Tensor> rest;
};
TEST(Optimizers, TreesUnderEveryTransform) {
  const Model model{vt::tensor({{0.5f, -0.2f}, {0.1f, 0.3f}}), {vt::tensor(0.25), vt::zeros({2})}};
  const auto loss = [](const Model& m, const Tensor& x) {
    const Tensor y = vt::tanh(vt::matmul(m.weights, x) + m.rest[1]);
    return vt::sum(y * y).astype(vt::f64) * m.rest[0] + vt::square(m.rest[0] - 1.0);
  };
  const vt::Adam method{.rate = vt::warm_up(0.05, 3), .clip_norm = 1.0};
  using State = vt::AdamState<Model>;
  const auto train = [=](const Tensor& x) {
    const auto one = [=](const std::pair<Model, State>& now) {
      const auto [value, gradient] =
          vt::value_and_grad([=](const Model& m) { return loss(m, x); })(now.first);
      return std::pair(method.step(now.first, gradient, now.second), value);
    };
    return vt::scan(one, std::pair(model, method.init(model)), std::nullopt, {.length = 12});
  };
  const Tensor xs = vt::tensor({{1.0f, 2.0f}, {-1.0f, 0.5f}, {0.0f, 3.0f}});
  const auto lanes = vt::jit(vt::vmap([=](Tensor x) {
    const auto [last, losses] = train(x);
    return std::tuple(last.first, losses, last.second.steps);
  }))(xs);
  for (std::int64_t i = 0; i < 3; ++i) {
    Model m = model;
    State s = method.init(m);
    for (int k = 0; k < 12; ++k) {
      const auto g = vt::grad([&](const Model& m) { return loss(m, xs[i]); })(m);
      std::tie(m, s) = method.step(m, g, s);
    }
    EXPECT_EQ(m.weights.dtype(), vt::f32);
    EXPECT_EQ(m.rest[0].dtype(), vt::f64);
    expect_close(std::get<0>(lanes).weights[i], m.weights, {.relative = 2e-5, .absolute = 1e-6});
    expect_close(std::get<0>(lanes).rest[0][i], m.rest[0], {.relative = 1e-5});
    EXPECT_LT(std::get<1>(lanes)[i][11].item<double>(), std::get<1>(lanes)[i][0].item<double>());
    EXPECT_EQ(std::get<2>(lanes)[i].item<int>(), 12);
  }
}

// The rate is a Tensor: what training makes of it has a derivative.
TEST(Optimizers, DerivativesByTheRate) {
  const auto check = [](const auto& method_of) {
    const auto after = [=](Tensor rate) {
      const auto method = method_of(rate);
      Tensor p = vt::tensor(start);
      auto state = method.init(p);
      for (int i = 0; i < 4; ++i)
        std::tie(p, state) = method.step(p, slope_of(p, Tensor(i)), state);
      return vt::sum(p * p);
    };
    const Tensor rate = vt::tensor(0.03);
    expect_close(vt::grad(after)(rate), vt_test::numeric_jacobian(after, rate), {.relative = 1e-6});
  };
  check([](Tensor rate) { return vt::Sgd{.rate = rate, .momentum = 0.9, .nesterov = true}; });
  check([](Tensor rate) { return vt::Adam{.rate = rate}; });
  check([](Tensor rate) {
    return vt::AdamW{.rate = [=](Tensor step) { return rate / (1.0 + step.astype(vt::f64)); }};
  });
}

TEST(Optimizers, Variables) {
  vt::Variable p(vt::tensor(start)), mean(vt::zeros({4}, vt::f64)), square(vt::zeros({4}, vt::f64)),
      steps(Tensor(0));
  const vt::Adam method{.rate = 0.1};
  const auto step = vt::jit([&](Tensor number) {
    const auto [next, state] =
        method.step(p.read(), slope_of(p.read(), number),
                    vt::AdamState<Tensor>{steps.read(), mean.read(), square.read()});
    p.assign(next);
    steps.assign(state.steps);
    mean.assign(state.mean);
    square.assign(state.square);
    return vt::sum(next);
  });
  for (int i = 0; i < 6; ++i) (void)step(Tensor(i));
  expect_close(p.value(), stepped(method, 6), {.relative = 1e-13});
}

TEST(Optimizers, WrongUses) {
  const Tensor p = vt::tensor({1.0, 2.0});
  const auto step = [&](const auto& method, const Tensor& g) {
    (void)method.step(p, g, method.init(p));
  };
  expect_error([&] { (void)vt::Adam().init(vt::tensor({1, 2})); }, ErrorKind::dtype,
               {"vt::Adam::init: the parameter is i32[2]", "write 1.0, not 1", "optimizers_test"});
  expect_error([&] { step(vt::Adam(), vt::tensor({1.0})); }, ErrorKind::shape,
               {"vt::Adam::step: the gradient holds f64[1] for the parameter, which is f64[2]"});
  expect_error([&] { step(vt::Sgd{.momentum = 1.0}, p); }, ErrorKind::value,
               {"vt::Sgd::step: momentum is 1; it must be at least 0 and less than 1"});
  expect_error([&] { step(vt::AdamW{.mean_decay = -0.5}, p); }, ErrorKind::value,
               {"mean_decay is -0.5"});
  expect_error([&] { step(vt::AdamW{.weight_decay = -0.5}, p); }, ErrorKind::value,
               {"weight_decay is -0.5"});
  expect_error([&] { step(vt::Adam{.rate = p}, p); }, ErrorKind::shape,
               {"the rate is f64[2]; it must be a scalar"});
  expect_error([&] { (void)vt::Adam().init(vt::ones({2}, vt::c64)); }, ErrorKind::dtype,
               {"the parameter is c64[2]", "give vt::real and vt::imag of it"});
  expect_error([&] { step(vt::Adam{.clip_norm = 0.0}, p); }, ErrorKind::value,
               {"vt::Adam::step: clip_norm is 0; it must be above 0", "optimizers_test"});
  expect_error([&] { step(vt::AdamW{.clip_norm = -1.0}, p); }, ErrorKind::value,
               {"vt::AdamW::step: clip_norm is -1"});
  expect_error([&] { step(vt::Sgd{.clip_norm = std::nan("")}, p); }, ErrorKind::value,
               {"vt::Sgd::step: clip_norm is nan"});
  expect_error([&] { (void)vt::clip_by_norm(p, 0.0); }, ErrorKind::value,
               {"vt::clip_by_norm: most is 0"});
  expect_error([&] { (void)vt::cosine_rate(0.1, 0); }, ErrorKind::value,
               {"vt::cosine_rate: steps is 0"});
  expect_error([&] { (void)vt::exponential_rate(0.1, 0.0); }, ErrorKind::value,
               {"vt::exponential_rate: factor is 0"});
  expect_error([&] { (void)vt::warm_up(0.1, -3); }, ErrorKind::value, {"vt::warm_up: steps is -3"});
  const std::vector<Tensor> two{p, p}, one{p};
  expect_error(
      [&] { (void)vt::Sgd().step(two, one, vt::Sgd().init(two)); }, ErrorKind::tree,
      {"vt::Sgd::step: the gradient must be a tree like the parameters, but the tree differs",
       "1 Tensor in all, not 2"});
}

}  // namespace
