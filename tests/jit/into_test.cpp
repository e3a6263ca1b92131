// jit(f).into(results…)(arguments…): results in memory of the caller.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <complex>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <vt/vt.hpp>

#include "support/message.hpp"

namespace {

using vt::Tensor;

struct State {
  Tensor position, speed;
};

State stepped(const State& s, const Tensor& force) {
  const Tensor speed = s.speed + 0.1 * force;
  return {s.position + 0.1 * speed, speed};
}

TEST(Into, SpansVectorsArraysAndNumbers) {
  const auto f = vt::jit([](const Tensor& x) {
    return std::tuple(x * 2.0, vt::sum(x), (x > 1.0), vt::reshape(x, {2, 2}) + 1.0, vt::argmax(x));
  });
  std::vector<double> memory{1, 2, 3, 4};
  const Tensor x = vt::borrow(std::span<const double>(memory), {4});
  std::vector<double> twice(4), grid(4);
  double sum = 0;
  std::array<bool, 4> above{};
  std::int32_t place = -1;
  for (int i = 0; i < 4; ++i) {
    memory[1] = i;
    f.into(twice, sum, above, std::span(grid), place)(x);
    EXPECT_EQ(twice, (std::vector<double>{2, 2.0 * i, 6, 8}));
    EXPECT_EQ(sum, 8 + i);
    EXPECT_EQ(above, (std::array{false, i > 1, true, true}));
    EXPECT_EQ(grid, (std::vector<double>{2, 1.0 + i, 4, 5}));
    EXPECT_EQ(place, 3);
  }
}

TEST(Into, TensorsKeepTheirMemoryWhereNobodyElseHoldsIt) {
  const auto f = vt::jit([](const Tensor& x) { return x + 1.0; });
  const Tensor x = vt::arange(5).astype(vt::f64).eval();
  Tensor y;
  const auto run = f.into(y);
  run(x);
  run(x);
  const void* const there = y.data<double>().data();
  run(x);
  EXPECT_EQ(y.data<double>().data(), there);
  const Tensor kept = y;
  const std::vector<double> before = kept.to_vector<double>();
  run(x * 2.0);
  run((x * 3.0).eval());
  EXPECT_EQ(kept.to_vector<double>(), before);
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{1, 4, 7, 10, 13}));
}

TEST(Into, ResultsMayBeArguments) {
  std::vector<double> memory{1, 2, 3};
  const Tensor x = vt::borrow(std::span<const double>(memory), {3});
  // each element of the result needs all of the argument
  const auto f = vt::jit([](const Tensor& x) { return x - vt::sum(x) * vt::flip(x, {0}); });
  const auto g = vt::jit([](const Tensor& x) { return vt::cumsum(vt::sort(x) * 0.5, 0); });
  std::vector<double> expected = memory;
  for (int i = 0; i < 5; ++i) {
    f.into(memory)(x);
    const double sum = expected[0] + expected[1] + expected[2];
    expected = {expected[0] - sum * expected[2], expected[1] - sum * expected[1],
                expected[2] - sum * expected[0]};
    EXPECT_EQ(memory, expected);
  }
  Tensor t = vt::tensor({3.0, 1.0, 2.0}).eval();
  for (int i = 0; i < 3; ++i) g.into(t)(t);
  EXPECT_EQ(t.to_vector<double>(), (std::vector<double>{0.125, 0.625, 1.875}));
}

TEST(Into, ResultsMayOverlap) {
  const auto f = vt::jit([](const Tensor& x) { return std::pair(x + 1.0, x + 2.0); });
  std::vector<double> memory(3);
  const Tensor x = vt::tensor({1.0, 2.0}).eval();
  const std::span<double> all(memory);
  for (int i = 0; i < 3; ++i) f.into(all.first(2), all.last(2))(x);
  EXPECT_EQ(memory, (std::vector<double>{2, 3, 4}));
}

TEST(Into, StructsAreAssigned) {
  const auto f = vt::jit(stepped);
  State s{vt::tensor({0.0, 0.0}).eval(), vt::tensor({1.0, 2.0}).eval()};
  const Tensor force = vt::tensor({0.0, -1.0}).eval();
  double height = 0, speed = 2;
  for (int i = 0; i < 10; ++i) {
    f.into(s)(s, force);
    speed -= 0.1;
    height += 0.1 * speed;
  }
  EXPECT_NEAR(s.position.to_vector<double>()[1], height, 1e-12);
  EXPECT_NEAR(s.speed.to_vector<double>()[1], speed, 1e-12);
}

TEST(Into, LargeResultsThatLieAnywhere) {
  constexpr std::int64_t n = 3'000'001;
  const auto f = vt::jit([](const Tensor& x) { return x * 2.0f; });
  const Tensor x = vt::arange(n).astype(vt::f32).eval();
  std::vector<float> memory(n + 3);
  for (std::size_t first : {0u, 1u, 3u})
    for (int i = 0; i < 2; ++i) {
      const std::span<float> part = std::span(memory).subspan(first, n);
      f.into(part)(x);
      EXPECT_EQ(part[0], 0.0f);
      EXPECT_EQ(part[77], 154.0f);
      EXPECT_EQ(part[n - 1], 2.0f * static_cast<float>(n - 1));
    }
}

TEST(Into, NumbersAndStructsAsArguments) {
  const auto f = vt::jit([](const Tensor& x, const Tensor& by) { return x * by; });
  std::vector<double> y(2);
  const Tensor x = vt::tensor({1.0, 2.0}).eval();
  for (const double by : {2.0, 3.0, 4.0}) {
    f.into(y)(x, by);
    EXPECT_EQ(y, (std::vector<double>{by, 2 * by}));
  }
}

TEST(Into, OtherTypesAndShapesFindTheirPrograms) {
  const auto f = vt::jit([](const Tensor& x) { return vt::sum(x * x, {0}); });
  for (int i = 0; i < 3; ++i)
    for (const int n : {2, 3, 5, 8, 13, 21}) {
      std::vector<float> y(2);
      f.into(y)(vt::ones({n, 2}));
      EXPECT_EQ(y, (std::vector<float>(2, static_cast<float>(n))));
      double z = 0;
      f.into(z)(vt::full({n}, 2.0).eval());
      EXPECT_EQ(z, 4.0 * n);
    }
}

TEST(Into, LoopsAndComplexNumbersAndLazyArguments) {
  const auto f = vt::jit([](const Tensor& x) {
    return vt::fori_loop(0, 5, [](Tensor, Tensor y) { return y * y; }, x);
  });
  std::vector<std::complex<double>> y(1);
  for (int i = 0; i < 3; ++i) {
    f.into(y)(vt::tensor(std::vector<std::complex<double>>{{0.0, 1.0}}) * 1.0);
    EXPECT_EQ(y[0], std::complex<double>(1, 0));
  }
}

TEST(Into, ManyThreadsAtOnce) {
  const auto f = vt::jit([](const Tensor& x) { return vt::sum(x) * x; });
  const auto work = [&](double first) {
    std::vector<double> memory{first, 1}, y(2);
    const Tensor x = vt::borrow(std::span<const double>(memory), {2});
    for (int i = 0; i < 500; ++i) {
      memory[1] = i;
      f.into(y)(x);
      if (y[0] != (first + i) * first || y[1] != (first + i) * i) return false;
    }
    return true;
  };
  std::array<bool, 4> right{};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < right.size(); ++t)
    threads.emplace_back([&, t] { right[t] = work(static_cast<double>(t)); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, (std::array{true, true, true, true}));
}

TEST(Into, WhatDoesNotFitIsToldAndNothingIsWritten) {
  const auto f = vt::jit([](const Tensor& x) { return std::pair(x * 2.0, vt::sum(x)); });
  const Tensor x = vt::tensor({1.0, 2.0}).eval();
  std::vector<double> y(3, 7.0), right(2, 7.0);
  std::vector<float> other(2, 7.0f);
  double sum = 7;
  const auto told = [](const std::string& said, const std::string& wanted) {
    return said.rfind("vt::Jitted::into: " + wanted + "; at ", 0) == 0;
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_PRED2(told, vt_test::message([&] { f.into(y, sum)(x); }),
                 "result 0 is f64[2], its place has 3 elements of f64");
    EXPECT_PRED2(told, vt_test::message([&] { f.into(other, sum)(x); }),
                 "result 0 is f64[2], its place has 2 elements of f32");
    EXPECT_PRED2(told, vt_test::message([&] { f.into(right)(x); }),
                 "the function gives 2 Tensors, places: 1");
    EXPECT_PRED2(told, vt_test::message([&] { f.into(right, sum, y)(x); }),
                 "the function gives 2 Tensors, places: 3");
  }
  EXPECT_EQ(y, std::vector<double>(3, 7.0));
  EXPECT_EQ(other, std::vector<float>(2, 7.0f));
  EXPECT_EQ(right, std::vector<double>(2, 7.0));
  EXPECT_EQ(sum, 7);
}

TEST(Into, InsideATransform) {
  const auto f = vt::jit([](const Tensor& x) { return x * x; });
  const auto through_tensor = [&](Tensor x) {
    Tensor y;
    f.into(y)(x);
    return vt::sum(y);
  };
  EXPECT_EQ(vt::grad(through_tensor)(vt::tensor({3.0})).to_vector<double>()[0], 6.0);
  std::vector<double> memory(1, 7.0);
  const auto through_memory = [&](Tensor x) {
    f.into(memory)(x);
    return x;
  };
  const auto outer = vt::jit(through_memory);
  EXPECT_NE(vt_test::message([&] { outer(vt::tensor({3.0})); }), "no error");
  EXPECT_EQ(memory[0], 7.0);
}

// ---- places that are arguments, or overlap them -------------------------------------------------

/// Numbers in memory, which views of three lie in, and Tensors: as plain C++ has them, where a call
/// reads all arguments, then writes its results one by one.
struct World {
  static constexpr std::size_t length = 3, most = 3;
  std::array<double, 9> memory{};
  std::array<std::vector<double>, most> tensors;
  std::size_t apart = 3;  ///< views begin so many elements apart

  World() {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = 1 + static_cast<double>(i);
    for (std::size_t k = 0; k < most; ++k)
      for (std::size_t i = 0; i < length; ++i)
        tensors[k].push_back(0.25 * static_cast<double>(1 + 4 * k + i));
  }
  std::span<double> view(std::size_t k) { return std::span(memory).subspan(apart * k, length); }
  std::vector<double> argument(bool is_view, std::size_t k) {
    return is_view ? std::vector<double>(view(k).begin(), view(k).end()) : tensors[k];
  }
  void write(bool is_view, std::size_t k, const std::vector<double>& values) {
    if (is_view) std::copy(values.begin(), values.end(), view(k).begin());
    else tensors[k] = values;
  }
};

/// Result k is argument from[k], and with 10 (k + 1) added to it where `computed` has the bit k. It
/// goes to place to[k]. Bits of `arguments` and `places`: those of which are views.
struct Exchange {
  std::size_t count;
  std::array<std::size_t, World::most> from, to;
  unsigned computed, arguments, places;

  static bool bit(unsigned bits, std::size_t k) { return (bits >> k & 1) != 0; }
  double added(std::size_t k) const {
    return bit(computed, k) ? 10 * static_cast<double>(k + 1) : 0;
  }
  void in_plain_numbers(World& w) const {
    std::vector<std::vector<double>> results;
    for (std::size_t k = 0; k < count; ++k) {
      results.push_back(w.argument(bit(arguments, from[k]), from[k]));
      for (double& x : results.back()) x += added(k);
    }
    for (std::size_t k = 0; k < count; ++k) w.write(bit(places, to[k]), to[k], results[k]);
  }
  std::string str() const {
    std::string text;
    for (std::size_t k = 0; k < count; ++k) {
      text += (bit(places, to[k]) ? " view " : " tensor ") + std::to_string(to[k]) + " = ";
      text += (bit(arguments, from[k]) ? "view " : "tensor ") + std::to_string(from[k]);
      if (bit(computed, k)) text += " + " + std::to_string(static_cast<int>(added(k)));
      text += ";";
    }
    return text;
  }
};

/// Two calls of `f`, beside plain C++.
template <class F>
void expect_exchanged(const F& f, const Exchange& e, std::size_t apart) {
  World expected, world;
  expected.apart = world.apart = apart;
  std::array<Tensor, World::most> tensors, views;
  for (std::size_t k = 0; k < World::most; ++k) {
    tensors[k] = vt::tensor(world.tensors[k]).eval();
    views[k] = vt::borrow(std::span<const double>(world.view(k)), {World::length});
  }
  const auto argument = [&](std::size_t k) -> const Tensor& {
    return Exchange::bit(e.arguments, k) ? views[k] : tensors[k];
  };
  // Places are parameters, each of its type.
  const auto call = [&](const auto& self, auto&... places) -> void {
    constexpr std::size_t k = sizeof...(places);
    if (k == e.count) {
      if constexpr (k > 0) f.into(places...)(argument(0), argument(1), argument(2));
    } else if constexpr (k < World::most) {
      std::span<double> view = world.view(e.to[k]);
      if (Exchange::bit(e.places, e.to[k])) self(self, places..., view);
      else self(self, places..., tensors[e.to[k]]);
    }
  };
  for (int i = 0; i < 2; ++i) {
    e.in_plain_numbers(expected);
    call(call);
    const auto what = [&] {
      return e.str() + " views " + std::to_string(apart) + " apart, call " + std::to_string(i);
    };
    ASSERT_EQ(world.memory, expected.memory) << what();
    for (std::size_t k = 0; k < World::most; ++k)
      ASSERT_EQ(tensors[k].to_vector<double>(), expected.tensors[k]) << what() << ", tensor " << k;
  }
}

std::vector<std::array<std::size_t, World::most>> choices(std::size_t count, bool with_repeats) {
  std::vector<std::array<std::size_t, World::most>> all;
  for (std::size_t code = 0; code < 27; ++code) {
    const std::array<std::size_t, World::most> c{code % 3, code / 3 % 3, code / 9};
    const bool repeats = c[0] == c[1] || c[0] == c[2] || c[1] == c[2];
    if (count == 2 ? c[0] < 2 && c[1] < 2 && c[2] == 2 : with_repeats || !repeats) all.push_back(c);
  }
  return all;
}

TEST(Into, PlacesAndArgumentsInAnyOrder) {
  for (const std::size_t count : {2u, 3u})
    for (const auto& from : choices(count, true))
      for (unsigned computed = 0; computed < 1u << count; ++computed) {
        Exchange e{count, from, {}, computed, 0, 0};
        const auto f = vt::jit([e](const Tensor& a, const Tensor& b, const Tensor& c) {
          const Tensor* const given[] = {&a, &b, &c};
          std::vector<Tensor> results;
          for (std::size_t k = 0; k < e.count; ++k)
            results.push_back(Exchange::bit(e.computed, k) ? *given[e.from[k]] + e.added(k)
                                                           : *given[e.from[k]]);
          return results;
        });
        for (const auto& to : choices(count, false))
          for (e.arguments = 0; e.arguments < 1u << count; ++e.arguments)
            for (e.places = 0; e.places < 1u << count; ++e.places)
              for (std::size_t apart = 1; apart <= 3; apart += count - 1) {
                e.to = to;
                expect_exchanged(f, e, apart);
                if (HasFatalFailure()) return;
              }
      }
}

TEST(Into, ResultsAreWhatWasCaptured) {
  constexpr std::int64_t n = 5000;  // no numbers in the code
  std::vector<double> memory(n, 1.0), other(n);
  const Tensor captured = vt::borrow(std::span<const double>(memory), {n});
  const auto f = vt::jit([=](const Tensor& x) { return std::pair(x + captured, captured); });
  Tensor kept;
  f.into(memory, kept)(vt::full({n}, 2.0));
  EXPECT_EQ(memory, std::vector<double>(n, 3.0));
  EXPECT_EQ(kept.to_vector<double>(), std::vector<double>(n, 1.0));
  f.into(memory, other)(vt::full({n}, 2.0));
  EXPECT_EQ(memory, std::vector<double>(n, 5.0));
  EXPECT_EQ(other, std::vector<double>(n, 3.0));
}

TEST(Into, ErrorsLeaveAllPlacesAsTheyWere) {
  std::vector<double> memory{1, 2}, longer(3, 7.0);
  Tensor t = vt::tensor({3.0, 4.0}).eval();
  const Tensor x = vt::borrow(std::span<const double>(memory), {2});
  const auto f = vt::jit([](const Tensor& a, const Tensor& b) { return std::tuple(b, a, a + b); });
  const auto checked = vt::jit([](const Tensor& a, const Tensor& b) {
    vt::check(vt::all(a > 0.0), "positive");
    return std::pair(b * 2.0, a);
  });
  const auto twice = vt::jit([](const Tensor& a) { return std::pair(a, a * 2.0); });
  const auto inside = vt::jit([&](const Tensor& a) {
    twice.into(t, memory)(a);
    return a;
  });
  const auto unchanged = [&] {
    return memory == std::vector<double>{1, 2} && longer == std::vector<double>(3, 7.0) &&
           t.to_vector<double>() == std::vector<double>{3, 4};
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(vt_test::message([&] { f.into(t, memory, longer)(x, t); }), "no error");
    EXPECT_NE(vt_test::message([&] { f.into(longer, t, memory)(x, t); }), "no error");
    EXPECT_NE(vt_test::message([&] { f.into(t, memory)(x, t); }), "no error");
    EXPECT_NE(vt_test::message([&] { checked.into(t, memory)(-x, t); }), "no error");
    EXPECT_NE(vt_test::message([&] { inside(vt::tensor({3.0, 5.0})); }), "no error");
    EXPECT_TRUE(unchanged()) << i;
  }
}

TEST(Into, OfAFunctionThatDoesNotOutliveTheLine) {
  std::vector<double> y(1);
  auto run = vt::jit([](const Tensor& x) { return x + 1.0; }).into(y);
  for (int i = 0; i < 3; ++i) run(vt::tensor({1.0 * i}).eval());
  EXPECT_EQ(y[0], 3.0);
}

}  // namespace
