// Loops over single elements at places that they count: the machine's code neither moves places
// inside that the counter's bounds keep there, nor loads what the last iteration stored; and places
// that do lie outside are moved inside as everywhere.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/jit/cpu/emit/register_kernel.hpp"
#include "src/jit/cpu/llvm/compile.hpp"
#include "src/jit/regions/register_kernel.hpp"
#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;
using vt::detail::Aval;
using vt::detail::FlatFunction;

Tensor at(const Tensor& x, const Tensor& i) {
  return vt::reshape(vt::dynamic_slice(x, {i}, {1}), {});
}
Tensor at(const Tensor& x, const Tensor& i, const Tensor& j) {
  return vt::reshape(vt::dynamic_slice(x, {i, j}, {1, 1}), {});
}
Tensor with(const Tensor& x, const Tensor& i, const Tensor& value) {
  return vt::dynamic_update_slice(x, vt::reshape(value, {1}), {i});
}
Tensor with(const Tensor& x, const Tensor& i, const Tensor& j, const Tensor& value) {
  return vt::dynamic_update_slice(x, vt::reshape(value, {1, 1}), {i, j});
}

/// x[i] = f(i, x) for i from `from` to `to`.
template <class F>
FlatFunction counted(int from, int to, F f) {
  return [=](In a) -> Tensors {
    return {
        vt::fori_loop(from, to, [&](Tensor i, Tensor x) { return with(x, i, f(i, x, a)); }, a[0])};
  };
}

Tensors insertion_sort(In a) {
  const int n = static_cast<int>(a[0].shape()[0]);
  return {vt::fori_loop(
      1, n,
      [](const Tensor& i, const Tensor& x) {
        const Tensor key = at(x, i);
        const auto [hole, moved] = vt::while_loop(
            [&](Tensor j, Tensor y) { return (j > 0) & (at(y, j - 1) > key); },
            [](Tensor j, Tensor y) { return std::pair(j - 1, with(y, j, at(y, j - 1))); },
            std::pair(i, x));
        return with(moved, hole, key);
      },
      a[0])};
}

Tensors gauss_seidel(In a) {
  const int n = static_cast<int>(a[0].shape()[0]), m = static_cast<int>(a[0].shape()[1]);
  const auto point = [&](Tensor i, Tensor j, Tensor u) {
    return with(u, i, j,
                0.25 * (at(u, i - 1, j) + at(u, i + 1, j) + at(u, i, j - 1) + at(u, i, j + 1) -
                        at(a[1], i, j)));
  };
  return {vt::fori_loop(
      0, 3,
      [&](Tensor, Tensor u) {
        return vt::fori_loop(
            1, n - 1,
            [&](Tensor i, Tensor u) {
              return vt::fori_loop(1, m - 1, [&](Tensor j, Tensor u) { return point(i, j, u); }, u);
            },
            u);
      },
      a[0])};
}

Tensor floats(vt::DType d, const vt::Shape& shape, std::uint64_t seed) {
  return vt_test::random_tensor(d, shape, -2, 2, seed).eval();
}

TEST(CountingLoops, EqualTheInterpreter) {
  const vt_test::Tolerance exact{.relative = 0, .absolute = 0};
  for (vt::DType d : {vt::f32, vt::f64}) {
    vt_test::expect_same(insertion_sort, {floats(d, {50}, 1)}, exact, "insertion sort");
    vt_test::expect_same(gauss_seidel, {floats(d, {40, 37}, 2), floats(d, {40, 37}, 3)},
                         {.relative = 1e-6, .absolute = 1e-6}, "Gauss-Seidel");
  }
  vt_test::expect_same(insertion_sort, {vt_test::random_tensor(vt::i32, {50}, -9, 9, 4).eval()},
                       exact, "insertion sort of integers");
}

// Where places lie outside they are moved inside, whatever is known of the counter.
TEST(CountingLoops, PlacesOutsideAreMovedInside) {
  const vt_test::Tolerance close{.relative = 1e-6, .absolute = 1e-6};
  const Tensor x = floats(vt::f64, {40}, 5), y = floats(vt::f64, {40}, 6);
  for (const auto& [from, to] : {std::pair(-7, 50), std::pair(0, 40), std::pair(39, 45),
                                 std::pair(-3, 2), std::pair(0, 41), std::pair(-1, 40)}) {
    const std::string what = std::to_string(from) + " to " + std::to_string(to);
    vt_test::expect_same(
        counted(from, to,
                [](Tensor i, Tensor u, In a) { return at(u, i - 1) * 0.5 + at(a[1], i); }),
        {x, y}, close, what);
    vt_test::expect_same(
        counted(from, to, [](Tensor i, Tensor u, In a) { return at(u, i + 1) - at(a[1], 3 * i); }),
        {x, y}, close, what);
    vt_test::expect_same(
        counted(from, to, [](Tensor i, Tensor u, In a) { return at(u, 39 - i) - at(a[1], i * i); }),
        {x, y}, close, what);
  }
}

// Counters that come iteration: what is known of their first value says nothing of the iterations
// after.
TEST(CountingLoops, CountersMayWrap) {
  const auto from = [](Tensor first, int by) -> FlatFunction {
    const Tensor step = vt::tensor(by).astype(first.dtype());  // −1 of unsigned counters, too
    return [=](In a) -> Tensors {
      return {vt::fori_loop(
                  0, 300,
                  [&](Tensor, Tensor i, Tensor x) {
                    return std::pair(i + step, with(x, i, at(x, i - 1) + 1.0));
                  },
                  std::pair(first, a[0]))
                  .second};
    };
  };
  const Tensor x = floats(vt::f64, {200}, 7);
  const vt_test::Tolerance close{.relative = 1e-6, .absolute = 1e-6};
  for (int step : {1, 7, -1, 100}) {
    vt_test::expect_same(from(vt::tensor(std::int8_t{120}), step), {x}, close,
                         "i8 by " + std::to_string(step));
    vt_test::expect_same(from(vt::tensor(std::uint8_t{3}), step), {x}, close,
                         "u8 by " + std::to_string(step));
    vt_test::expect_same(from(vt::tensor(2147483600), step), {x}, close,
                         "i32 by " + std::to_string(step));
    vt_test::expect_same(from(vt::tensor(std::uint64_t{18446744073709551600u}), step), {x}, close,
                         "u64 by " + std::to_string(step));
  }
}

#if VT_HAS_LLVM_HEADERS && defined(__x86_64__)

class CountingLoopsCode : public testing::Test {
  void SetUp() override {
    if (const std::string& why = vt::detail::cpu::llvm_unavailable_reason(); !why.empty())
      GTEST_SKIP() << why;
    if (vt::detail::cpu::host_target().level == 0) GTEST_SKIP() << "code is not optimised";
  }
};

/// The code of a function that is one loop.
std::string assembly_of(const FlatFunction& f, const std::vector<Aval>& avals) {
  using namespace vt::detail;
  const GraphBody g = simplify(record(f, avals, {}).graph, SimplifyFor::running);
  for (const Equation& e : g.equations) {
    if (e.op != Op::scan && e.op != Op::while_) continue;
    auto form = register_form(alone(g, e), most_in_frame);
    EXPECT_TRUE(form.has_value());
    vt::Vec<int> maker(g.avals.size(), -1);
    for (std::size_t k = 0; k < g.equations.size(); ++k)
      for (Var v : g.equations[k].outputs) maker[v] = static_cast<int>(k);
    form->known = known_integers(g, maker, e);
    cpu::IrBuilder b;
    cpu::emit_register_kernel(b, "loop", *form);
    return cpu::compile_assembly(b);
  }
  ADD_FAILURE() << "no loop";
  return "";
}

/// From the first label that is jumped back to, to that jump.
std::string innermost_loop(const std::string& text) {
  std::vector<std::pair<std::string, std::size_t>> labels;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string line = text.substr(start, end - start);
    if (line.rfind(".LBB", 0) == 0) labels.push_back({line.substr(0, line.find(':')), start});
    if (line.rfind("\tj", 0) == 0)
      for (const auto& [label, from] : labels)
        if (line.substr(line.find_last_of(" \t") + 1) == label)
          return text.substr(from, end - from);
    start = end + 1;
  }
  return "";
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_F(CountingLoopsCode, CountersThatStayInsideAreNotMoved) {
  for (int first : {1, 2, 5}) {
    const auto f = counted(first, 999,
                           [](Tensor i, Tensor x, In a) { return at(x, i + 1) + at(a[1], i - 1); });
    const std::string code = assembly_of(f, {Aval(vt::f64, {1000}), Aval(vt::f64, {1000})});
    EXPECT_EQ(count_of(code, "cmov"), 0u) << code;
    EXPECT_EQ(count_of(code, "andn"), 0u) << code;
  }
}

// What the while's condition says holds in its body; j − 1 in the condition itself may be −1.
TEST_F(CountingLoopsCode, ConditionsBoundCounters) {
  const std::string code = assembly_of(insertion_sort, {Aval(vt::f32, {2000})});
  EXPECT_EQ(count_of(code, "cmov"), 0u) << code;
}

TEST_F(CountingLoopsCode, WhatTheLastIterationStoredIsNotLoaded) {
  const auto f =
      counted(1, 1000, [](Tensor i, Tensor x, In a) { return at(x, i - 1) * 0.5 + at(a[1], i); });
  const std::string code =
      innermost_loop(assembly_of(f, {Aval(vt::f64, {1000}), Aval(vt::f64, {1000})}));
  EXPECT_EQ(count_of(code, "(%r"), 2u) << "an element of the other array, and the result:\n"
                                       << code;
}

#endif

}  // namespace
