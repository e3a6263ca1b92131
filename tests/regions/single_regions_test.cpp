// Small programs without lanes: one function, whose values are the interpreter's. And programs that
// are better left alone.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;

struct Small {
  std::string name;
  vt::detail::FlatFunction f;
  Tensors arguments;
};
void PrintTo(const Small& c, std::ostream* out) { *out << c.name; }

Tensor values(vt::DType d, const vt::Shape& shape, std::uint64_t seed) {
  return vt_test::random_tensor(d, shape, d == vt::u8 ? 0 : -2, 3, seed).eval();
}

/// A bicycle: x, y, heading, speed; acceleration and steering.
Tensor moved(const Tensor& x, const Tensor& u) {
  const Tensor v = x[3], heading = x[2];
  return x +
         0.1f * vt::stack({v * vt::cos(heading), v * vt::sin(heading), v * vt::tan(u[1]), u[0]});
}

std::vector<Small> small_programs() {
  std::vector<Small> all;
  const auto add = [&](std::string name, vt::detail::FlatFunction f, Tensors arguments) {
    all.push_back({std::move(name), std::move(f), std::move(arguments)});
  };
  const Tensor x = values(vt::f32, {4}, 1), u = values(vt::f32, {2}, 2);
  const auto both = [](auto f) {
    return [f](In a) -> Tensors {
      auto [p, q] = f(a[0], a[1]);
      return {p, q};
    };
  };
  add("jacobian of a step", both(vt::jacobian<0, 1>(moved)), {x, u});
  add("hessian of a step",
      [](In a) -> Tensors {
        return {vt::hessian([&](Tensor x) { return vt::sum(vt::square(moved(x, a[1]))); })(a[0])};
      },
      {x, u});
  for (const vt::DType d : {vt::f16, vt::bf16, vt::f32, vt::f64, vt::i8, vt::u8, vt::i32, vt::i64})
    add(std::string("moved, chosen and summed ") + vt::name_of(d),
        [](In a) -> Tensors {
          const Tensor t = vt::transpose(a[0]), r = vt::flip(t, {0});
          const Tensor s = vt::concatenate({t * r, vt::where(t > r, t, r + t)});
          return {vt::cumsum(s, 1),
                  vt::max(s, {0}),
                  vt::pad(vt::slice_in_dim(s, 1, 3), {{1, 0}, {0, 2}}),
                  vt::argmin(s, 1),
                  vt::sum(s, {1}),
                  vt::matmul(r, vt::transpose(r))};
        },
        {values(d, {3, 4}, 3)});
  add("predicates",
      [](In a) -> Tensors {
        const Tensor p = a[0] > 0.0f, q = a[1] < 1.0f;
        return {vt::all(vt::logical_and(p, q)), vt::any(p), vt::where(p, 1.0f, a[0]),
                vt::cumsum(p.astype(vt::i32), 0)};
      },
      {values(vt::f32, {5}, 4), values(vt::f32, {5}, 5)});
  add("picked by numbers",
      [](In a) -> Tensors {
        const Tensor i = vt::argmax(a[0]);
        const Tensor y = vt::index_update(a[0], {i}, a[0][0] * 2.0f);
        return {vt::take(y, a[1]), y, vt::dynamic_slice_in_dim(y, i, 2, 0) + 1.0f};
      },
      {values(vt::f32, {7}, 6), vt::tensor({1, 6, 0, 3}).eval()});
  add("a matrix squared again and again",
      [](In a) -> Tensors {
        Tensor m = a[0] * 0.3f;
        for (int i = 0; i < 4; ++i) m = vt::matmul(m, m) + a[0];
        return {m, vt::trace(m)};
      },
      {values(vt::f32, {3, 3}, 7)});
  add("more than a function holds",
      [](In a) -> Tensors {
        Tensor y = a[0];
        for (int i = 0; i < 400; ++i)
          y = vt::sin(y) + vt::reshape(vt::flip(vt::reshape(y, {2, 2}), {0}), {4});
        return {y};
      },
      {x});
  // loops
  const auto rollout = [](In a) {
    return vt::scan(
        [](Tensor x, Tensor u) {
          const Tensor y = moved(x, u);
          return std::pair(y, y);
        },
        a[0], a[1]);
  };
  const Tensor controls = values(vt::f32, {20, 2}, 8);
  add("a loop, then what it gave",
      [rollout](In a) -> Tensors {
        auto [last, path] = rollout(a);
        return {last, vt::sum(vt::square(path), {0}), path};
      },
      {x, controls});
  add("gradient of a rollout",
      [rollout](In a) -> Tensors {
        return {vt::grad(
            [&](Tensor u) { return vt::sum(vt::square(rollout(Tensors{a[0], u}).second)); })(a[1])};
      },
      {x, controls});
  add("what a loop takes is computed, read again, and given",
      [](In a) -> Tensors {
        const Tensor rows = vt::exp(a[0]);
        auto [s, all] = vt::scan(
            [](Tensor s, Tensor r) {
              s = s * 0.5f + r;
              return std::pair(s, s * s);
            },
            vt::sum(rows, {0}), rows);
        auto [t, back] = vt::scan(
            [](Tensor t, Tensor r) {
              t = t + r;
              return std::pair(t, t);
            },
            s, all, {.reverse = true});
        return {rows, all, t, back, vt::sum(rows * all)};
      },
      {values(vt::f32, {9, 3}, 9)});
  add("a loop in a loop that goes on until",
      [](In a) -> Tensors {
        const auto go_on = [](std::pair<Tensor, Tensor> s) { return s.second < 4; };
        const auto round = [](std::pair<Tensor, Tensor> s) {
          auto [last, all] = vt::scan(
              [](Tensor c, Tensor y) {
                c = vt::sin(c + y);
                return std::pair(c, c);
              },
              vt::max(s.first), s.first);
          return std::pair(all * 0.9f + last, s.second + 1);
        };
        const auto [y, n] = vt::while_loop(go_on, round, std::pair(a[0], vt::tensor(0)));
        return {y, n, vt::sum(y)};
      },
      {values(vt::f32, {6}, 10)});
  add("a branch that holds a loop",
      [](In a) -> Tensors {
        const Tensor y = vt::tanh(a[0]);
        const auto longer = [](Tensor y) {
          return vt::scan(
                     [](Tensor c, Tensor v) {
                       c = c + v;
                       return std::pair(c, c);
                     },
                     y[0], y)
              .second;
        };
        const Tensor z = vt::cond(vt::sum(y) > 0.0f, longer, [](Tensor y) { return -y; }, y);
        return {z, y * z};
      },
      {values(vt::f32, {8}, 11)});
  add("arguments as results",
      [](In a) -> Tensors {
        const Tensor y = a[0] + vt::sum(a[1]);
        return {a[0], y, vt::flip(y, {0}), y};
      },
      {x, u});
  return all;
}

class SingleRegions : public ::testing::TestWithParam<Small> {};

TEST_P(SingleRegions, EqualTheInterpreter) {
  const Small& c = GetParam();
  const vt::DType d = c.arguments[0].dtype();
  const double rounding = d == vt::bf16 ? 4e-2 : d == vt::f16 ? 1e-2 : 1e-5;
  vt_test::expect_same(c.f, c.arguments, {.relative = rounding, .absolute = rounding}, c.name);
}

TEST_P(SingleRegions, AreOneStep) {
  const Small& c = GetParam();
  const auto f = vt::jit([&](const Tensors& x) { return c.f(x); });
  const std::string text = vt::explain_steps(f)(c.arguments);
  if (text.rfind("interpreter", 0) == 0) GTEST_SKIP() << "no compiler here";
  const bool pieces = c.name == "more than a function holds";
  EXPECT_EQ(text.find("step 1:") != std::string::npos, pieces) << text;
  const bool one_kernel = text.rfind("program: 1 kernel", 0) == 0;
  EXPECT_TRUE(one_kernel || text.find("fused_region") != std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(All, SingleRegions, ::testing::ValuesIn(small_programs()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           for (char& ch : name)
                             if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
                           return name;
                         });

std::string explained(const vt::detail::FlatFunction& f, const Tensors& arguments) {
  return vt::explain_steps(vt::jit([&](const Tensors& x) { return f(x); }))(arguments);
}

TEST(SingleRegionsLeaveAlone, WhatKernelsMakeAsTheyRead) {
  // a few numbers that a large kernel computes along with its elements
  const std::string text = explained(
      [](In a) -> Tensors {
        const Tensor rate = 0.1f / (1.0f + a[1]) * a[1];
        return {a[0] - rate * vt::sin(a[0])};
      },
      {vt::zeros({100'000}), vt::tensor(0.5f)});
  EXPECT_EQ(text.find("fused_region"), std::string::npos) << text;
}

TEST(SingleRegionsLeaveAlone, ProductsThatFillTiles) {
  const std::string text =
      explained([](In a) -> Tensors { return {vt::matmul(vt::matmul(a[0], a[0]), a[0])}; },
                {vt::ones({16, 16})});
  EXPECT_EQ(text.find("fused_region"), std::string::npos) << text;
}

TEST(SingleRegionsLeaveAlone, LanesOfALoop) {
  const std::string text = explained(
      [](In a) -> Tensors {
        auto [s, all] = vt::scan(
            [](Tensor s, Tensor r) {
              s = vt::sin(s) + r;
              return std::pair(s, s);
            },
            a[0], a[1]);
        return {s, all};
      },
      {vt::zeros({32}), vt::zeros({10, 32})});
  EXPECT_EQ(text.find("fused_region"), std::string::npos) << text;
}

}  // namespace
