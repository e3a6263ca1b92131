// jit(f, {.donate = …}): results lie in the memory of arguments that were given up; who asks for
// those later is told.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/trace/base/buffer.hpp"

namespace {

using vt::Tensor;

bool has_compiler() {
  const auto f = vt::jit([](Tensor x) { return x + 1.0; });
  f(vt::tensor(1.0));
  return vt::explain_steps(f)(vt::tensor(1.0)).rfind("interpreter", 0) != 0;
}

Tensor numbers(std::int64_t n, double first) {
  Tensor t = vt::arange(n).astype(vt::f32) + first;
  t.eval();
  return t;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const vt::Error& e) {
    EXPECT_EQ(e.kind(), vt::ErrorKind::value);
    return e.what();
  }
  return "nothing thrown";
}

TEST(Donation, ResultsLieOverDonatedArguments) {
  const auto step = [](Tensor p, Tensor m, Tensor g) {
    const Tensor moment = 0.9 * m + g;
    return std::array<Tensor, 2>{p - 0.1 * moment, moment};
  };
  const auto kept = vt::jit(step), given = vt::jit(step, {.donate = {0, 1}});
  constexpr std::int64_t n = 100'000;
  const Tensor g = numbers(n, 0.5);
  Tensor p = numbers(n, 1), m = numbers(n, 2), q = numbers(n, 1), o = numbers(n, 2);
  EXPECT_EQ(kept.memory(q, o, g).results, 2u * 4 * n);
  if (has_compiler()) {
    const vt::Memory plan = given.memory(p, m, g);
    EXPECT_EQ(plan.results, 0u) << plan.str();
    EXPECT_EQ(plan.scratch, 0u) << plan.str();
    EXPECT_NE(plan.str().find("over an input"), std::string::npos) << plan.str();
  }
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = vt::detail::pool_use().asked;
    vt::detail::reset_pool_peak();
    const auto next = given(p, m, g);
    p = next[0];
    m = next[1];
    if (has_compiler()) {
      EXPECT_LE(vt::detail::pool_use().asked_peak, before + 64);
    }
    const auto other = kept(q, o, g);
    q = other[0];
    o = other[1];
    EXPECT_EQ(p.to_vector<float>(), q.to_vector<float>());
    EXPECT_EQ(m.to_vector<float>(), o.to_vector<float>());
  }
}

// … also where an argument is written several times, and read between and before.
TEST(Donation, SeveralUpdatesOfOneArgumentLieOverIt) {
  const auto step = [](Tensor t, Tensor k, Tensor row) {
    const Tensor old = vt::sin(t[k]);
    t = vt::at(t, k, vt::slice()).set(row);
    t = vt::at(t, k + 1).add(vt::cos(t(k, vt::slice())));
    t = vt::at(t, k + 2).set(old);
    return vt::at(t, k, vt::window(k, 400)).mul(0.5f);
  };
  const auto kept = vt::jit(step), given = vt::jit(step, {.donate = {0}});
  constexpr std::int64_t n = 500;
  const Tensor row = numbers(n, 0.5);
  Tensor t = vt::reshape(numbers(n * n, 1), {n, n}).eval(),
         u = vt::reshape(numbers(n * n, 1), {n, n}).eval();
  if (has_compiler()) {
    const vt::Memory plan = given.memory(t, vt::tensor(0), row);
    EXPECT_EQ(plan.results, 0u) << plan.str();
    EXPECT_LT(plan.scratch, 4u * n * n) << plan.str();
  }
  for (int i = 0; i < 3; ++i) {
    const Tensor k = vt::tensor(7 * i);
    t = given(t, k, row);
    u = kept(u, k, row);
    EXPECT_EQ(t.to_vector<float>(), u.to_vector<float>());
  }
}

TEST(Donation, UseAfterwardsIsAnErrorThatNamesTheFunction) {
  const auto f = vt::jit([](Tensor x, Tensor y) { return x * y; }, {.donate = {0}});
  const int line = __LINE__ - 1;
  const Tensor x = numbers(300, 1), copy = x, y = numbers(300, 2);
  const Tensor lazy = copy + 1.0;  // not evaluated before
  const Tensor z = f(x, y);
  EXPECT_EQ(z.to_vector<float>()[3], 4.0f * 5.0f);
  EXPECT_EQ(y.to_vector<float>()[3], 5.0f);
  for (const auto& use : std::vector<std::function<void()>>{
           [&] { x.to_vector<float>(); }, [&] { copy.to_vector<float>(); }, [&] { lazy.eval(); },
           [&] { (x + y).eval(); }, [&] { f(x, y); },
           [&] { vt::jit([](Tensor t) { return t; })(x); },
           [&] { vt::grad([](Tensor t) { return vt::sum(t * t); })(x).eval(); },
           [&] { vt::jit([&](Tensor t) { return t + x; })(y).eval(); }}) {
    const std::string message = message_of(use);
    EXPECT_NE(message.find("f32[300] was donated to the function jitted at"), std::string::npos)
        << message;
    EXPECT_NE(message.find("donation_test.cpp:" + std::to_string(line)), std::string::npos)
        << message;
  }
  EXPECT_EQ(x.shape(), y.shape());  // what it was is still known
  EXPECT_EQ(z.to_vector<float>()[3], 20.0f);
}

TEST(Donation, WhatOthersHoldIsCopiedBefore) {
  const auto f = vt::jit([](Tensor x) { return x + 1.0; }, {.donate = {0}});
  // The user's own memory.
  std::vector<float> own(1000, 3.0f);
  EXPECT_EQ(f(vt::borrow(std::span<float>(own), {1000})).to_vector<float>()[7], 4.0f);
  EXPECT_EQ(own[7], 3.0f);
  // An argument that a function returned as it was: two Tensors, one block of memory.
  const Tensor x = numbers(1000, 5);
  const Tensor same = vt::jit([](Tensor t) { return t; })(x);
  EXPECT_EQ(f(x).to_vector<float>()[7], 13.0f);
  EXPECT_EQ(same.to_vector<float>()[7], 12.0f);
  // What a jitted function captured.
  const Tensor c = numbers(1000, 5);
  const auto g = vt::jit([&](Tensor t) { return t * c; });
  EXPECT_EQ(g(numbers(1000, 0)).to_vector<float>()[7], 7.0f * 12.0f);
  EXPECT_EQ(f(c).to_vector<float>()[7], 13.0f);
  EXPECT_EQ(g(numbers(1000, 0)).to_vector<float>()[7], 7.0f * 12.0f);
}

TEST(Donation, ReadAgainAfterTheResultWasWrittenIsNotOverwritten) {
  // The first result may not lie over x, which the second one needs too; nor results of another
  // size or dtype.
  const auto f = vt::jit(
      [](Tensor x) {
        const Tensor total = vt::sum(x * x);
        return std::array<Tensor, 3>{vt::cumsum(x, 0), vt::flip(x, 0) * total, x.astype(vt::i32)};
      },
      {.donate = {0}});
  const auto g = vt::jit([](Tensor x) {
    const Tensor total = vt::sum(x * x);
    return std::array<Tensor, 3>{vt::cumsum(x, 0), vt::flip(x, 0) * total, x.astype(vt::i32)};
  });
  for (std::int64_t n : {1, 7, 1000, 70'001}) {
    const auto expected = g(numbers(n, 0.25));
    const auto actual = f(numbers(n, 0.25));
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_EQ(actual[k].to_vector<float>(), expected[k].to_vector<float>()) << n << " " << k;
    EXPECT_EQ(actual[2].to_vector<int>(), expected[2].to_vector<int>()) << n;
  }
}

TEST(Donation, TreesIdentitiesAndLoops) {
  // All Tensors of a tree; one that is returned as it is; a state that a loop goes on with.
  const auto f = vt::jit(
      [](std::map<std::string, Tensor> state, Tensor x) {
        const Tensor end =
            vt::fori_loop(0, 5, [&](Tensor, Tensor s) { return s * 0.5 + x; }, state["a"]);
        return std::map<std::string, Tensor>{{"a", end}, {"b", state["b"]}};
      },
      {.donate = {0}});
  std::map<std::string, Tensor> state{{"a", numbers(500, 1)}, {"b", numbers(500, 9)}};
  const Tensor x = numbers(500, 0);
  const std::map<std::string, Tensor> before = state;
  float expected = 4;
  for (int i = 0; i < 5; ++i) expected = expected * 0.5f + 3;
  state = f(state, x);
  EXPECT_EQ(state["a"].to_vector<float>()[3], expected);
  EXPECT_EQ(state["b"].to_vector<float>()[3], 12.0f);
  EXPECT_NE(
      message_of([&] { before.at("a").eval(), before.at("a").to_vector<float>(); }).find("donated"),
      std::string::npos);
  EXPECT_NE(message_of([&] { before.at("b").to_vector<float>(); }).find("donated"),
            std::string::npos);
  EXPECT_EQ(x.to_vector<float>()[3], 3.0f);
}

TEST(Donation, WrongUses) {
  const auto f = vt::jit([](Tensor x, Tensor y) { return x * y; }, {.donate = {0}});
  const Tensor x = numbers(10, 1);
  EXPECT_NE(message_of([&] {
              f(x, x);
            }).find("f32[10] is donated, and is another argument too (leaves 0 and 1)"),
            std::string::npos);
  EXPECT_EQ(x.to_vector<float>()[0], 1.0f);  // nothing was given away
  const auto g = vt::jit([](Tensor t) { return t; }, {.donate = {1}});
  EXPECT_NE(message_of([&] {
              g(x);
            }).find("donate names argument 1, counted from 0, but this call has only 1"),
            std::string::npos);
}

TEST(Donation, InsideTransformsNothingIsGivenUp) {
  const auto f = vt::jit([](Tensor x) { return vt::sin(x) * x; }, {.donate = {0}});
  const Tensor x = numbers(20, 1);
  const Tensor slope = vt::grad([&](Tensor t) { return vt::sum(f(t)); })(x);
  EXPECT_NEAR(slope.to_vector<float>()[0], std::sin(1.0) + std::cos(1.0), 1e-5);
  EXPECT_EQ(vt::vmap(f)(x).shape(), x.shape());
  EXPECT_EQ(x.to_vector<float>()[4], 5.0f);
}

}  // namespace
