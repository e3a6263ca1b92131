// Loops of lanes that end at different times: the next lane takes the place of one that has ended.
// Values are the interpreter's, and the bits of a lane do not depend on how many others there are
// (those of sums and products outside of loops may: few lanes have other kernels).
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;

/// One lane: x f[3], m f[3, 3] are its own, n i32[] is how long it goes on, about.
struct LoopOfALane {
  std::string name;
  std::function<Tensor(const Tensor& x, const Tensor& m, const Tensor& n)> run;
};
void PrintTo(const LoopOfALane& c, std::ostream* out) { *out << c.name; }

std::vector<LoopOfALane> loops() {
  using Pair = std::pair<Tensor, Tensor>;
  std::vector<LoopOfALane> all;
  all.push_back({"counted", [](const Tensor& x, const Tensor& m, const Tensor& n) {
                   return vt::while_loop([&](Tensor i, Tensor) { return i < n; },
                                         [&](Tensor i, Tensor y) {
                                           return Pair(i + 1, vt::tanh(vt::matmul(m, y)) + x * 0.1);
                                         },
                                         Pair(0, x))
                       .second;
                 }});
  all.push_back({"until it is small, with operations before and behind",
                 [](const Tensor& x, const Tensor& m, const Tensor& n) {
                   const Tensor start = vt::exp(x) + m[1], scale = vt::cos(m[0]);
                   const Tensor last = vt::while_loop(
                       [&](Tensor y) { return vt::max(y) > 0.001 * (n + 1).astype(x.dtype()); },
                       [&](Tensor y) { return vt::abs(y) * (0.4 + 0.1 * vt::sin(x)); }, start);
                   return last * scale + m[2];
                 }});
  all.push_back(
      {"a loop and a branch inside", [](const Tensor& x, const Tensor& m, const Tensor& n) {
         return vt::while_loop([&](Tensor i, Tensor) { return i < n; },
                               [&](Tensor i, Tensor y) {
                                 const Tensor inner =
                                     vt::while_loop([&](Tensor v) { return vt::sum(v * v) > 1.0; },
                                                    [](Tensor v) { return v * 0.7; }, y + m[1]);
                                 return Pair(i + 1, vt::cond(
                                                        inner[0] > 0.1, [&] { return inner + x; },
                                                        [&] { return vt::sin(inner - x); }));
                               },
                               Pair(0, x))
             .second;
       }});
  all.push_back({"rows of an array", [](const Tensor& x, const Tensor& m, const Tensor& n) {
                   const auto last = vt::while_loop(
                       [&](Tensor i, Tensor, Tensor) { return i < n; },
                       [&](Tensor i, Tensor y, Tensor rows) {
                         const Tensor next = vt::sin(y) + m[2] * 0.1;
                         return std::tuple<Tensor, Tensor, Tensor>(i + 1, next,
                                                                   vt::index_update(rows, i, next));
                       },
                       std::tuple<Tensor, Tensor, Tensor>(0, x, vt::zeros({50, 3}, x.dtype())));
                   return std::get<2>(last);
                 }});
  all.push_back({"small systems", [](const Tensor& x, const Tensor& m, const Tensor& n) {
                   const Tensor a = m + 4.0 * vt::eye(3, x.dtype());
                   return vt::while_loop([&](Tensor i, Tensor) { return i < n; },
                                         [&](Tensor i, Tensor y) {
                                           return Pair(i + 1, vt::linalg::solve(a, y) + x);
                                         },
                                         Pair(0, x))
                       .second;
                 }});
  all.push_back({"a gradient", [](const Tensor& x, const Tensor& m, const Tensor& n) {
                   return vt::grad([&](Tensor v) {
                     return vt::sum(vt::while_loop([&](Tensor i, Tensor) { return i < n; },
                                                   [&](Tensor i, Tensor y) {
                                                     return Pair(i + 1, vt::sin(vt::matmul(m, y)));
                                                   },
                                                   Pair(0, v))
                                        .second);
                   })(x);
                 }});
  return all;
}

class LoopsOfLanes : public testing::TestWithParam<LoopOfALane> {};

/// Lengths from 0 to 49, most of them short; the first 64 are nearly alike.
Tensors arguments(vt::DType d, std::int64_t lanes) {
  std::vector<int> lengths;
  for (std::int64_t i = 0; i < lanes; ++i)
    lengths.push_back(static_cast<int>(i < 64 ? 5 + i % 2 : (i * i * 7 + i / 3) % 97 % 50));
  return {vt_test::random_tensor(d, {lanes, 3}, -1, 1, 1).eval(),
          vt_test::random_tensor(d, {lanes, 3, 3}, -1, 1, 2).eval(), vt::tensor(lengths)};
}

TEST_P(LoopsOfLanes, CompiledIsInterpreted) {
  for (const vt::DType d : {vt::f64, vt::f32}) {
    const auto lanes = vt::vmap(GetParam().run);
    vt_test::expect_same(
        [&](std::span<const Tensor> in) { return Tensors{lanes(in[0], in[1], in[2])}; },
        arguments(d, 300), {.relative = d == vt::f64 ? 1e-11 : 2e-4, .absolute = 1e-6},
        GetParam().name + " " + vt::name_of(d));
  }
}

TEST_P(LoopsOfLanes, BitsDoNotDependOnOtherLanes) {
  const auto run = vt::jit(vt::vmap(GetParam().run));
  const Tensors all = arguments(vt::f64, 1000);
  const Tensor expected = run(all[0], all[1], all[2]).eval();
  for (const std::int64_t count : {1, 2, 7, 33, 64, 300})
    for (const std::int64_t first : {0, 500}) {
      const auto some = [&](const Tensor& t) { return t[vt::slice(first, first + count)].eval(); };
      const Tensor actual = run(some(all[0]), some(all[1]), some(all[2]));
      EXPECT_TRUE(vt::all(actual == some(expected)).item<bool>())
          << GetParam().name << ": " << count << " lanes from " << first << " on";
    }
}

// … and are counted: few places are empty, though most lanes are short.
TEST(LanePlaces, PlacesAreFilled) {
  const auto run = vt::jit(vt::vmap([](Tensor x, Tensor n) {
    return vt::while_loop([&](Tensor i, Tensor) { return i < n; },
                          [&](Tensor i, Tensor y) {
                            return std::pair<Tensor, Tensor>(i + 1, vt::sin(vt::exp(-y)) + x);
                          },
                          std::pair<Tensor, Tensor>(0, x))
        .second;
  }));
  const Tensor x = vt_test::random_tensor(vt::f64, {10000}, -1, 1, 1).eval(),
               n = (200.0 * vt::square(vt_test::random_tensor(vt::f64, {10000}, 0, 1, 2)))
                       .astype(vt::i32)
                       .eval();
  run(x, n).eval();
  vt::reset_lane_stats();
  run(x, n).eval();
  const vt::LaneStats stats = vt::lane_stats();
  ASSERT_EQ(stats.blocks.size(), 1u) << stats;
  EXPECT_EQ(stats.blocks[0].lanes, static_cast<std::uint64_t>(vt::sum(n).item<std::int64_t>()));
  // 0.35 if each vector waited for its slowest lane; at the end of a range no lanes are left.
  EXPECT_GT(stats.utilisation(), 0.85) << stats;
}

INSTANTIATE_TEST_SUITE_P(All, LoopsOfLanes, testing::ValuesIn(loops()),
                         [](const auto& info) { return "n" + std::to_string(info.index); });

}  // namespace
