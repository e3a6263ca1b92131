// Custom derivative rules under vmap: differentiating a mapped function uses the rule of one lane,
// whichever operands are mapped and wherever their lanes lie. The rules are wrong by a factor on
// purpose, so that it shows which derivative was taken.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <tuple>

#include <vt/vt.hpp>

#include "support/property.hpp"

namespace {

using namespace vt_test;
using vt::Tensor;

const Tensor xs = random_quarters(vt::f64, {3, 4}, 1), ys = random_quarters(vt::f64, {3, 4}, 2),
             y = random_quarters(vt::f64, {4}, 3);

// f(x, y) = x · y + y, with derivatives 10 y and 100 x (the "+ y" is left out).
const auto by_jvp = vt::custom_jvp([](Tensor p, Tensor q) { return p * q + q; },
                                   [](Tensor p, Tensor q, Tensor dp, Tensor dq) {
                                     return std::pair(p * q + q, 10.0 * q * dp + 100.0 * p * dq);
                                   });
const auto by_vjp = vt::custom_vjp(
    [](Tensor p, Tensor q) { return p * q + q; },
    [](Tensor p, Tensor q) { return std::pair(p * q + q, std::tuple(p, q)); },
    [](std::tuple<Tensor, Tensor> saved, Tensor bar) {
      return std::tuple(10.0 * std::get<1>(saved) * bar, 100.0 * std::get<0>(saved) * bar);
    });

template <class F>
void check_reverse(F f) {
  const Tensor weight = random_quarters(vt::f64, {3, 4}, 4);
  {  // both mapped, at different axes
    const auto loss = [&](Tensor p, Tensor q) {
      return vt::sum(weight * vt::vmap(f, {.in_axes = {0, 1}})(p, q));
    };
    const auto [dx, dy] = vt::grad<0, 1>(loss)(xs, vt::transpose(ys));
    expect_close(dx, 10.0 * ys * weight);
    expect_close(dy, vt::transpose(100.0 * xs * weight));
  }
  {  // the second shared by all lanes: its cotangents are summed
    const auto loss = [&](Tensor p, Tensor q) {
      return vt::sum(weight * vt::vmap(f, {.in_axes = {0, vt::unmapped}})(p, q));
    };
    const auto [dx, dy] = vt::grad<0, 1>(loss)(xs, y);
    expect_close(dx, 10.0 * vt::broadcast_to(y, {3, 4}) * weight);
    expect_close(dy, vt::sum(100.0 * xs * weight, 0));
  }
  {  // the result of a lane that does not see the mapped operand's value still has its cotangent
    const auto loss = [&](Tensor p, Tensor q) {
      return vt::sum(weight * vt::vmap(f, {.in_axes = {vt::unmapped, 0}, .out_axes = 0})(p, q));
    };
    const auto [dx, dy] = vt::grad<0, 1>(loss)(y, ys);
    expect_close(dx, vt::sum(10.0 * ys * weight, 0));
    expect_close(dy, 100.0 * vt::broadcast_to(y, {3, 4}) * weight);
  }
  {  // two maps
    const auto loss = [&](Tensor p, Tensor q) {
      return vt::sum(vt::vmap(vt::vmap(f, {.in_axes = {0, vt::unmapped}}), {.in_axes = {0, 0}})(
          p, vt::sum(q, 1)));
    };
    const auto [dx, dy] = vt::grad<0, 1>(loss)(xs, ys);
    expect_close(dx, 10.0 * vt::broadcast_to(vt::sum(ys, 1, true), {3, 4}));
    expect_close(dy, 100.0 * vt::broadcast_to(vt::sum(xs, 1, true), {3, 4}));
  }
}

TEST(CustomRulesUnderVmap, ForwardRuleInReverse) { check_reverse(by_jvp); }
TEST(CustomRulesUnderVmap, BackwardRuleInReverse) { check_reverse(by_vjp); }

TEST(CustomRulesUnderVmap, Forward) {
  const Tensor dx = random_quarters(vt::f64, {3, 4}, 5), dy = random_quarters(vt::f64, {4}, 6);
  const auto mapped = vt::vmap(by_jvp, {.in_axes = {0, vt::unmapped}, .out_axes = 1});
  const auto [value, tangent] = vt::jvp(mapped, std::tuple(xs, y), std::tuple(dx, dy));
  expect_close(value, vt::transpose(xs * y + y));
  expect_close(tangent, vt::transpose(10.0 * y * dx + 100.0 * xs * dy));
  const auto mapped_vjp = vt::vmap(by_vjp, {.in_axes = {0, vt::unmapped}});
  expect_close(vt::jvp(mapped_vjp, std::tuple(xs, y), std::tuple(dx, dy)).second,
               10.0 * y * dx + 100.0 * xs * dy);
}

TEST(CustomRulesUnderVmap, SharedResidualsStayShared) {
  // The residual w is the same for all lanes and must not be repeated for them.
  const auto f = vt::custom_vjp(
      [](Tensor p, Tensor w) { return vt::matmul(w, p); },
      [](Tensor p, Tensor w) { return std::pair(vt::matmul(w, p), std::tuple(p, w)); },
      [](std::tuple<Tensor, Tensor> saved, Tensor bar) {
        return std::tuple(vt::matmul(bar, std::get<1>(saved)), vt::outer(bar, std::get<0>(saved)));
      });
  const Tensor w = random_quarters(vt::f64, {40, 4}, 7);
  const auto loss = [&](Tensor p, Tensor m) {
    return vt::sum(vt::square(vt::vmap(f, {.in_axes = {0, vt::unmapped}})(p, m)));
  };
  const auto plain = [&](Tensor p, Tensor m) {
    return vt::sum(vt::square(vt::matmul(p, vt::transpose(m))));
  };
  const auto [dp, dw] = vt::grad<0, 1>(loss)(xs, w);
  const auto [ep, ew] = vt::grad<0, 1>(plain)(xs, w);
  expect_close(dp, ep);
  expect_close(dw, ew);
  const vt::Graph graph = vt::make_graph(vt::grad<0, 1>(loss))(xs, w);
  std::istringstream text(graph.str());
  for (std::string line; std::getline(text, line);)
    EXPECT_FALSE(line.find("broadcast_in_dim") != std::string::npos && line.ends_with(" b"))
        << "w was repeated:\n"
        << graph.str();
}

TEST(CustomRulesUnderVmap, ACotangentThatNoLaneChangesCountsOncePerLane) {
  // A backward rule that gives a constant: three lanes share q, so q's cotangent is three times
  // that.
  const auto f =
      vt::custom_vjp([](Tensor p, Tensor q) { return p + q; },
                     [](Tensor p, Tensor q) { return std::pair(p + q, q); },
                     [](Tensor q, Tensor bar) { return std::tuple(bar, vt::ones_like(q) * 2.0); });
  const Tensor dq = vt::grad<1>([&](Tensor p, Tensor q) {
    return vt::sum(vt::vmap(f, {.in_axes = {0, vt::unmapped}})(p, q));
  })(xs, y);
  expect_close(dq, vt::full({4}, 6.0));
}

TEST(CustomRulesUnderVmap, GradientOfEachLane) {
  for (const Tensor& g : {vt::vmap(vt::grad([](Tensor p) { return vt::sum(by_jvp(p, y)); }))(xs),
                          vt::vmap(vt::grad([](Tensor p) { return vt::sum(by_vjp(p, y)); }))(xs)})
    expect_close(g, vt::broadcast_to(10.0 * y, {3, 4}));
}

TEST(CustomRulesUnderVmap, CheckpointAndCallKeepTheirBody) {
  const auto f = vt::checkpoint([](Tensor p) { return vt::sum(vt::sin(p) * p); });
  const vt::Graph graph = vt::make_graph(vt::vmap(f))(xs);
  EXPECT_NE(graph.str().find("checkpoint"), std::string::npos) << graph.str();
  expect_close(vt::vmap(f)(xs), vt::sum(vt::sin(xs) * xs, 1), {.ulps = 4});
  const Tensor gradient = vt::grad([&](Tensor p) { return vt::sum(vt::vmap(f)(p)); })(xs);
  expect_close(gradient, vt::sin(xs) + xs * vt::cos(xs), {.ulps = 8});
}

}  // namespace
