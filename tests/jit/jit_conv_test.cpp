// Compiled convolutions against the interpreter: every way in which images, filters and results are
// laid out, cut and shared among threads; that they read nothing beyond their operands; that
// threads do not change a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include <vt/vt.hpp>

#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"
#include "support/compare_executors.hpp"
#include "support/fenced.hpp"
#include "support/property.hpp"

namespace {

using namespace vt;
using namespace vt::detail;
using vt_test::expect_close;
using vt_test::Fenced;
using vt_test::random_quarters;

struct Case {
  const char* what;
  Shape lhs, rhs;
  ConvParams params;
};

ConvParams params(const Axes& lhs_contract, const Axes& rhs_contract, const Axes& lhs_batch,
                  const Axes& rhs_batch, const Axes& lhs_window, const Axes& rhs_window) {
  ConvParams p{.dot = {lhs_contract, rhs_contract, lhs_batch, rhs_batch, f32}};
  p.lhs_window = lhs_window, p.rhs_window = rhs_window;
  const std::size_t n = lhs_window.size();
  p.strides = p.lhs_dilation = p.rhs_dilation = Shape::filled(n, 1);
  p.low = p.high = Shape::filled(n, 0);
  return p;
}
ConvParams edged(ConvParams p, const Shape& low, const Shape& high) {
  p.low = low, p.high = high;
  return p;
}
ConvParams in_order(ConvParams p, const Axes& order) {
  p.order = order;
  return p;
}
ConvParams strided(ConvParams p, const Shape& strides, const Shape& lhs_dilation,
                   const Shape& rhs_dilation) {
  p.strides = strides, p.lhs_dilation = lhs_dilation, p.rhs_dilation = rhs_dilation;
  return p;
}

// Few images and many, with and without edges; the filter's gradient, of all images and of each;
// groups in front of, among and behind the windows; features that are not neighbours; axes in
// orders that have to be changed; rows that fill no tile.
std::vector<Case> cases() {
  const ConvParams image = params({3}, {2}, {}, {}, {1, 2}, {0, 1});
  return {
      {"few images", {2, 9, 11, 5}, {3, 2, 5, 37}, image},
      {"few edged images", {2, 9, 11, 5}, {3, 2, 5, 37}, edged(image, {1, 2}, {2, 1})},
      {"cropped images", {2, 9, 11, 5}, {3, 2, 5, 6}, edged(image, {-1, -2}, {-2, 0})},
      {"many images", {40, 9, 11, 5}, {3, 2, 5, 37}, image},
      {"many edged images", {40, 7, 7, 5}, {3, 3, 5, 17}, edged(image, {1, 1}, {1, 1})},
      {"dilated images",
       {40, 5, 4, 3},
       {3, 3, 3, 16},
       strided(edged(image, {3, 2}, {1, 4}), {2, 1}, {3, 2}, {1, 2})},
      {"dilated images of three features",
       {3, 8, 7, 20},
       {5, 4, 20, 3},
       strided(edged(image, {3, 2}, {3, 2}), {1, 1}, {2, 3}, {1, 1})},
      {"dilated images, phases of nothing",
       {2, 6, 5, 8},
       {1, 2, 8, 24},
       strided(edged(image, {0, 1}, {1, 2}), {1, 1}, {3, 4}, {1, 1})},
      {"dilated images, cropped",
       {2, 9, 9, 6},
       {3, 3, 6, 24},
       strided(edged(image, {-1, 1}, {0, -3}), {1, 1}, {2, 2}, {1, 1})},
      {"dilated images of one feature",
       {2, 6, 7, 8},
       {4, 3, 8, 1},
       strided(edged(image, {2, 1}, {1, 3}), {1, 1}, {2, 2}, {1, 1})},
      {"far apart",
       {2, 3, 4, 8},
       {4, 5, 8, 6},
       strided(edged(image, {3, 4}, {3, 4}), {1, 1}, {4, 5}, {1, 1})},
      {"far apart, with gaps and edges",
       {2, 3, 4, 8},
       {2, 3, 8, 6},
       strided(edged(image, {3, 0}, {0, 5}), {1, 1}, {5, 4}, {1, 1})},
      {"far apart, cropped, one feature",
       {2, 5, 4, 8},
       {4, 4, 8, 1},
       strided(edged(image, {-2, 1}, {3, -6}), {1, 1}, {4, 4}, {1, 1})},
      {"far apart along one axis",
       {2, 5, 4, 8},
       {1, 16, 8, 3},
       strided(edged(image, {0, 15}, {0, 20}), {1, 1}, {1, 16}, {1, 1})},
      {"far apart, one element",
       {2, 1, 1, 8},
       {3, 4, 8, 6},
       strided(edged(image, {2, 3}, {2, 7}), {1, 1}, {4, 4}, {1, 1})},
      {"far apart, in groups",
       {3, 7, 4, 5},
       {18, 4, 5, 8},
       strided(edged(params({3}, {2}, {2}, {1}, {1}, {0}), {17}, {16}), {1}, {20}, {1})},
      {"far apart, several sets, in order",
       {3, 7, 5, 2},
       {4, 16, 5, 3},
       in_order(strided(edged(params({2}, {2}, {}, {}, {1}, {1}), {15}, {15}), {1}, {16}, {1}),
                {3, 0, 4, 2, 1})},
      {"far apart, reaching two elements",
       {2, 30, 8},
       {20, 8, 1},
       strided(edged(params({2}, {1}, {}, {}, {1}, {0}), {19}, {12}), {1}, {16}, {1})},
      {"far apart, filters with gaps",
       {2, 7, 3, 8},
       {3, 2, 8, 2},
       strided(edged(image, {5, 0}, {9, 7}), {1, 1}, {4, 5}, {4, 3})},
      {"far apart in many phases",
       {2, 3, 4, 8},
       {11, 12, 8, 6},
       strided(edged(image, {10, 4}, {9, 15}), {1, 1}, {9, 8}, {1, 1})},
      {"large rows", {1, 6, 300, 4}, {2, 3, 4, 64}, edged(image, {0, 1}, {1, 1})},
      {"one row", {3, 1, 5, 4}, {1, 5, 4, 16}, image},
      {"gradient by all images",
       {40, 8, 8, 6},
       {40, 8, 8, 20},
       edged(params({0}, {0}, {}, {}, {1, 2}, {1, 2}), {1, 1}, {1, 1})},
      {"gradient by each image",
       {40, 8, 8, 6},
       {40, 8, 8, 20},
       edged(params({}, {}, {0}, {0}, {1, 2}, {1, 2}), {1, 1}, {1, 1})},
      {"gradient by each image, in order",
       {40, 8, 8, 6},
       {40, 8, 8, 20},
       in_order(edged(params({}, {}, {0}, {0}, {1, 2}, {1, 2}), {1, 1}, {1, 1}), {0, 2, 3, 1, 4})},
      {"each batch by its images",
       {9, 4, 8, 6},
       {9, 4, 6, 20},
       params({1}, {1}, {0}, {0}, {2}, {2})},
      {"a filter for each image",
       {40, 6, 5, 3},
       {40, 2, 3, 3, 8},
       edged(params({3}, {3}, {0}, {0}, {1, 2}, {1, 2}), {1, 0}, {0, 1})},
      {"groups of features", {3, 7, 4, 5}, {3, 4, 5, 8}, params({3}, {2}, {2}, {1}, {1}, {0})},
      {"many images in groups",
       {40, 7, 4, 5},
       {3, 4, 5, 8},
       edged(params({3}, {2}, {2}, {1}, {1}, {0}), {1}, {1})},
      {"groups behind the channels",
       {3, 7, 5, 4},
       {3, 5, 8, 4},
       params({2}, {1}, {3}, {3}, {1}, {0})},
      {"a channel each",
       {3, 7, 20},
       {3, 20, 2},
       edged(params({}, {}, {2}, {1}, {1}, {0}), {1}, {1})},
      {"a channel each with several filters",
       {3, 7, 9},
       {3, 9, 6},
       params({}, {}, {2}, {1}, {1}, {0})},
      {"channels in lanes",
       {3, 7, 20},
       {3, 20},
       in_order(edged(params({}, {}, {2}, {1}, {1}, {0}), {1}, {1}), {1, 2, 0})},
      {"channels in lanes of many images",
       {40, 9, 8, 5},
       {3, 2, 5},
       in_order(edged(params({}, {}, {3}, {2}, {1, 2}, {0, 1}), {1, 0}, {1, 1}), {1, 2, 3, 0})},
      {"channels in whole lanes, no edges",
       {2, 9, 16, 64},
       {3, 3, 64},
       in_order(params({}, {}, {3}, {2}, {1, 2}, {0, 1}), {1, 2, 3, 0})},
      {"channels in lanes, strided",
       {3, 12, 11, 97},
       {3, 2, 97},
       in_order(strided(edged(params({}, {}, {3}, {2}, {1, 2}, {0, 1}), {2, 1}, {0, 3}), {2, 3},
                        {1, 2}, {2, 1}),
                {1, 2, 3, 0})},
      {"gradient by filters of channels in lanes",
       {5, 9, 8, 48},
       {5, 9, 8, 48},
       in_order(edged(params({0}, {0}, {3}, {3}, {1, 2}, {1, 2}), {1, 1}, {1, 1}), {1, 2, 0})},
      {"several sets of filters", {3, 7, 5}, {4, 3, 5, 8}, params({2}, {2}, {}, {}, {1}, {1})},
      {"features in front", {3, 7, 5}, {8, 3, 5}, params({2}, {2}, {}, {}, {1}, {1})},
      {"channels in front", {3, 5, 7, 6}, {8, 5, 3, 2}, params({1}, {1}, {}, {}, {2, 3}, {2, 3})},
      {"images among the windows",
       {7, 3, 6, 5},
       {3, 2, 5, 8},
       params({3}, {2}, {}, {}, {0, 2}, {0, 1})},
      {"windows flipped", {3, 7, 6, 5}, {3, 2, 5, 8}, params({3}, {2}, {}, {}, {2, 1}, {0, 1})},
      {"features not last",
       {3, 7, 5},
       {3, 5, 8},
       in_order(params({2}, {1}, {}, {}, {1}, {0}), {0, 2, 1})},
      {"three axes",
       {2, 4, 5, 6, 3},
       {2, 3, 2, 3, 9},
       edged(params({4}, {3}, {}, {}, {1, 2, 3}, {0, 1, 2}), {1, 0, 1}, {0, 1, 1})},
      {"no channels, no images", {30}, {5, 6}, params({}, {}, {}, {}, {0}, {0})},
      {"side by side", {61, 5, 7, 16}, {3, 3, 16, 33}, edged(image, {1, 1}, {1, 1})},
      {"side by side, strided",
       {57, 7, 6, 20},
       {3, 2, 20, 40},
       strided(edged(image, {2, 1}, {3, 2}), {2, 1}, {1, 1}, {2, 3})},
      {"side by side, cropped", {64, 6, 6, 16}, {5, 5, 16, 32}, edged(image, {-1, 2}, {2, -1})},
      {"side by side, copied apart", {64, 4, 4, 64}, {3, 3, 64, 32}, edged(image, {1, 1}, {1, 1})},
      {"side by side, in groups",
       {60, 4, 4, 2, 16},
       {3, 3, 2, 16, 20},
       edged(params({4}, {3}, {3}, {2}, {1, 2}, {0, 1}), {1, 1}, {1, 1})},
      {"side by side, several sets",
       {2, 60, 4, 4, 16},
       {2, 3, 3, 16, 32},
       edged(params({4}, {3}, {0}, {0}, {2, 3}, {1, 2}), {1, 1}, {1, 1})},
      {"side by side, under large windows",
       {56, 3, 3, 16},
       {7, 7, 16, 32},
       edged(image, {3, 3}, {3, 3})},
      {"side by side, far from the edge",
       {56, 3, 3, 16},
       {2, 2, 16, 32},
       edged(image, {4, 3}, {3, 4})},
      {"panel by panel", {1, 3, 3, 40}, {3, 3, 40, 300}, edged(image, {1, 1}, {1, 1})},
      {"panel by panel, no edges", {2, 5, 6, 30}, {3, 3, 30, 256}, image},
      {"panel by panel, side by side",
       {9, 3, 3, 64},
       {3, 3, 64, 257},
       edged(image, {1, 1}, {1, 1})},
      {"panel by panel, in groups",
       {2, 4, 4, 5, 20},
       {3, 3, 5, 20, 70},
       strided(edged(params({4}, {3}, {3}, {2}, {1, 2}, {0, 1}), {1, 1}, {2, 1}), {2, 1}, {1, 2},
               {1, 1})},
      {"panel by panel, several sets",
       {3, 2, 4, 4, 16},
       {3, 3, 3, 16, 90},
       edged(params({4}, {3}, {0}, {0}, {2, 3}, {1, 2}), {1, 1}, {1, 1})},
      {"side by side, one axis",
       {3, 20, 9, 16},
       {5, 16, 32},
       edged(params({3}, {1}, {}, {}, {2}, {0}), {2}, {2})},
  };
}

Tensor convolved(const Case& c, DType d, const Tensor& a, const Tensor& b) {
  ConvParams p = c.params;
  p.dot.dtype = d;
  return emit(Op::conv_general, make_params(std::move(p)), {a, b}, {});
}

TEST(JitConv, EqualsTheInterpreter) {
  std::uint64_t seed = 0;
  for (const Case& c : cases())
    for (DType d : {f32, f64, f16, i32}) {
      // Small numbers, whose sums are exact in all of these.
      const double most = d == f16 ? 1 : 3;
      const Tensor a = vt_test::random_tensor(i32, c.lhs, -most, most, ++seed).astype(d),
                   b = vt_test::random_tensor(i32, c.rhs, -1, 1, ++seed).astype(d);
      vt_test::expect_same(
          [&](std::span<const Tensor> x) -> std::vector<Tensor> {
            return {convolved(c, d, x[0], x[1])};
          },
          {a, b}, {}, std::string(c.what) + " " + name_of(d));
    }
}

// The cases run in the way that their names say: the others of this file test it then.
TEST(JitConv, ImagesSideBySideAndPanelByPanel) {
  if (vt_test::forced_backend() == "interpreter") GTEST_SKIP();
  bool widest = false;
#if defined(__x86_64__)
  const char* const isa = std::getenv("VT_CPU_ISA");
  widest = (!isa || std::string(isa) == "avx512") && __builtin_cpu_supports("avx512f");
#endif
  if (!widest) GTEST_SKIP() << "the estimates choose other ways for narrower vectors";
  for (const Case& c : cases()) {
    const std::string what = c.what;
    if (what.find("side by side") == std::string::npos &&
        what.find("panel by panel") == std::string::npos)
      continue;
    const Tensor a = vt_test::random_tensor(f32, c.lhs, 1),
                 b = vt_test::random_tensor(f32, c.rhs, 2);
    const auto f = jit([&](const Tensor& x, const Tensor& y) { return convolved(c, f32, x, y); });
    for (int run = 0; run < 2; ++run) f(a, b).eval();
    for (const char* way : {"side by side", "panel by panel"})
      if (what.find(way) != std::string::npos) {
        EXPECT_NE(f.explain_steps(a, b).find(way), std::string::npos) << what << "\n"
                                                                      << f.explain_steps(a, b);
      }
  }
}

// Filters flipped, as in derivatives by the image, are read from their ends: no copy
// of them is made.
TEST(JitConv, TransposedFiltersAreReadInPlace) {
  const auto transposed = [](const Axes& axes, const ConvOptions& options) {
    return [=](std::span<const Tensor> x) -> std::vector<Tensor> {
      return {conv2d(x[0], flip(x[1], axes), options), x[1] * 2};
    };
  };
  for (DType d : {f32, f64, f16})
    for (const Shape& filter : {Shape{3, 2, 5, 37}, Shape{1, 4, 5, 8}, Shape{3, 3, 5, 300}})
      for (const Axes& axes : {Axes{0}, Axes{1}, Axes{0, 1}, Axes{1, 2}, Axes{3}})
        for (const std::int64_t images : {1, 60}) {
          const ConvOptions options{.padding = "SAME", .rhs_dilation = {1, 2}};
          const Tensor x = random_quarters(d, {images, 6, 7, 5}, 1),
                       w = random_quarters(d, filter, 2);
          vt_test::expect_same(transposed(axes, options), {x, w}, {},
                               filter.str() + axes.str() + " " + name_of(d));
        }
  const auto slope = jit([](const Tensor& x, const Tensor& w) {
    return grad([&](const Tensor& t) { return sum(square(conv2d(t, w, {.padding = "SAME"}))); })(x);
  });
  const Tensor x = random_quarters(f32, {2, 6, 6, 8}, 1),
               w = random_quarters(f32, {3, 3, 8, 16}, 2);
  for (int run = 0; run < 2; ++run) slope(x, w).eval();
  if (vt_test::forced_backend() != "interpreter") {
    EXPECT_EQ(slope.explain_steps(x, w).find("rev"), std::string::npos)
        << slope.explain_steps(x, w);
  }
}

// Extents and distances are arguments of a tile's code: a layer of another size compiles nothing,
// forward or backward.
TEST(JitConv, LayersShareTheirCode) {
  if (vt_test::forced_backend() == "interpreter") GTEST_SKIP();
  const auto layer = [](std::int64_t size, std::int64_t channels, std::int64_t features) {
    const auto f = [](const Tensor& x, const Tensor& w) {
      return conv2d(x, w, {.padding = "SAME"});
    };
    const Tensor x = random_quarters(f32, {1, size, size, channels}, 1),
                 w = random_quarters(f32, {3, 3, channels, features}, 2),
                 ct = random_quarters(f32, {1, size, size, features}, 3);
    const auto value = jit(f);
    const auto slopes = jit(
        [&](const Tensor& a, const Tensor& b, const Tensor& c) { return vjp(f, a, b).second(c); });
    for (int run = 0; run < 2; ++run) {
      value(x, w).eval();
      for (const Tensor& t : tree_leaves(slopes(x, w, ct))) t.eval();
    }
  };
  layer(24, 64, 128);
  reset_stats();
  layer(48, 96, 64);
  layer(12, 128, 192);
  EXPECT_EQ(stats().kernels_compiled + stats().kernel_disk_hits, 0u) << stats().str();
  EXPECT_GT(stats().kernel_memory_hits, 0u);
}

TEST(JitConv, WhatFollowsRunsOnItsRows) {
  const auto f = jit([](const Tensor& x, const Tensor& w, const Tensor& bias) {
    return relu(conv2d(x, w, {.padding = "SAME"}) + bias);
  });
  for (std::int64_t images : {1, 3, 40, 90}) {
    for (std::int64_t features : {24, 300}) {
      const Tensor x = random_quarters(f32, {images, 12, 9, 4}, 1),
                   w = random_quarters(f32, {3, 3, 4, features}, 2),
                   bias = random_quarters(f32, {features}, 3);
      const Tensor expected = maximum(conv2d(x, w, {.padding = "SAME"}).eval() + bias, 0.0f);
      reset_stats();
      for (int run = 0; run < 2; ++run)
        expect_close(f(x, w, bias), expected, {}, std::to_string(images));
      if (vt_test::forced_backend() != "interpreter") {
        EXPECT_GT(stats().product_epilogues, 0u);
        EXPECT_NE(f.explain_steps(x, w, bias).find(" 0 interpreted equations"), std::string::npos)
            << f.explain_steps(x, w, bias);
      }
    }
  }
}

// A pool under the convolution reads several rows of the images at once; whether or not something
// else reads them too.
TEST(JitConv, PoolsRunOnGroupsOfItsRows) {
  for (const bool alone : {true, false})
    for (const PoolOptions& options :
         {PoolOptions{.window = {2, 2}}, PoolOptions{.window = {3, 1}},
          PoolOptions{.window = {2, 2}, .strides = {1, 1}}, PoolOptions{.window = {6, 4}}})
      for (DType d : {f32, f64, f16})
        for (const Shape& shape : {Shape{1, 12, 8, 4}, Shape{3, 6, 20, 4}, Shape{40, 12, 8, 4},
                                   Shape{90, 6, 8, 16}, Shape{40, 7, 9, 3}}) {
          if (d != f32 && (shape[0] == 3 || shape[0] == 90 || !alone)) continue;
          const Tensor x = random_quarters(d, shape, 1),
                       w = random_quarters(d, {3, 3, shape[3], 24}, 2),
                       bias = random_quarters(d, {24}, 3);
          const auto pooled = [&](const Tensor& rows) {
            return max_pool(relu(rows + bias), options);
          };
          const auto f = jit([&](const Tensor& a, const Tensor& b) {
            const Tensor rows = conv2d(a, b, {.padding = "SAME"});
            return alone ? std::vector<Tensor>{pooled(rows)}
                         : std::vector<Tensor>{pooled(rows), rows};
          });
          const std::string what =
              shape.str() + " " + name_of(d) + " under " + options.window.str();
          const Tensor rows = conv2d(x, w, {.padding = "SAME"}).eval();
          reset_stats();
          for (int run = 0; run < 2; ++run) {
            const std::vector<Tensor> results = f(x, w);
            expect_close(results[0], pooled(rows), {}, what);
            if (!alone) expect_close(results[1], rows, {}, what);
          }
          const bool whole = options.strides.empty() && shape[1] % options.window[0] == 0 &&
                             shape[2] % options.window[1] == 0;
          if (whole && d != f16 && vt_test::forced_backend() != "interpreter") {
            EXPECT_GT(stats().product_epilogues, 0u) << what << "\n" << f.explain_steps(x, w);
          }
        }
}

TEST(JitConv, ReadsNothingBeyondItsOperands) {
  for (const Case& c : cases()) {
    const auto f = jit([&](const Tensor& a, const Tensor& b) { return convolved(c, f32, a, b); });
    for (const bool at_end : {true, false}) {
      const Fenced<float> lhs(c.lhs.elements(), at_end), rhs(c.rhs.elements(), at_end);
      const Tensor a = lhs.tensor(c.lhs), b = rhs.tensor(c.rhs);
      const Tensor first = f(a, b).eval();
      expect_close(f(a, b), first, {.relative = 1e-4}, c.what);
    }
  }
}

TEST(JitConv, ThreadsDoNotChangeABit) {
  const int before = num_threads();
  for (const Case& c : cases()) {
    const Tensor a = vt_test::random_tensor(f32, c.lhs, 1),
                 b = vt_test::random_tensor(f32, c.rhs, 2);
    const auto f = jit([&](const Tensor& x, const Tensor& y) { return convolved(c, f32, x, y); });
    f(a, b).eval();
    set_num_threads(1);
    const Tensor one = f(a, b).eval();
    for (int threads : {2, 3, 5}) {
      set_num_threads(threads);
      expect_close(f(a, b), one, {}, c.what);
    }
    set_num_threads(before);
  }
}

TEST(JitWindows, ReductionsReadWindowsInPlace) {
  if (vt_test::forced_backend() == "interpreter") GTEST_SKIP();
  const Tensor x = random_quarters(f32, {8, 28, 28, 16}, 1);
  const auto pooled = jit([](const Tensor& t) { return max_pool(t, {.window = {2}}); });
  pooled(x).eval();
  EXPECT_NE(pooled.explain_steps(x).find(
                "program: 1 kernel, 0 matrix products, 0 interpreted equations, 0 bytes"),
            std::string::npos)
      << pooled.explain_steps(x);
  // Windows that do not overlap need no loop to be summed.
  const auto slope = jit([](const Tensor& t) {
    return grad([](const Tensor& u) { return sum(square(max_pool(u, {.window = {2}}))); })(t);
  });
  slope(x).eval();
  EXPECT_EQ(slope.explain_steps(x).find("r0 = sum"), std::string::npos) << slope.explain_steps(x);
}

// Patches that do not overlap: the gradient by the image is a product, with a kernel that puts its
// results in order.
TEST(JitConv, GradientsOfPatchesAreProducts) {
  if (vt_test::forced_backend() == "interpreter") GTEST_SKIP();
  const Tensor ct = random_quarters(f32, {2, 3, 5, 16}, 1),
               filter = random_quarters(f32, {8, 8, 3, 16}, 2);
  const auto slope = jit([](const Tensor& c, const Tensor& w) {
    return vjp([&](const Tensor& t) { return conv2d(t, w, {.strides = {8}}); },
               zeros({2, 24, 40, 3}))
        .second(c);
  });
  slope(ct, filter).eval();
  const Tensor result = slope(ct, filter);
  const std::string text = slope.explain_steps(ct, filter);
  EXPECT_NE(text.find(", 1 matrix product, 0 interpreted equations"), std::string::npos) << text;
  EXPECT_EQ(text.find(": convolution"), std::string::npos) << text;
  const Tensor parts = einsum("nhwo,pqco->nhpwqc", {ct, filter});
  expect_close(result, reshape(parts, {2, 24, 40, 3}), {});  // quarters: exact
}

// Depthwise convolutions and their derivatives are convolutions whose tiles have channels as
// columns, and nothing else is run.
TEST(JitConv, DepthwiseConvolutionsAreOneStep) {
  if (vt_test::forced_backend() == "interpreter") GTEST_SKIP();
  const Tensor x = random_quarters(f32, {2, 9, 7, 16}, 1),
               filter = random_quarters(f32, {3, 3, 1, 16}, 2);
  const auto f = [](const Tensor& t, const Tensor& w) {
    return conv2d(t, w, {.padding = "SAME", .feature_group_count = 16});
  };
  const auto value = jit(f);
  const auto slope = jit([&](const Tensor& ct, const Tensor& w) {
    return vjp([&](const Tensor& t) { return f(t, w); }, zeros({2, 9, 7, 16})).second(ct);
  });
  const auto slope_by_filter = jit([&](const Tensor& ct, const Tensor& t) {
    return vjp([&](const Tensor& w) { return f(t, w); }, zeros({3, 3, 1, 16})).second(ct);
  });
  for (int run = 0; run < 2; ++run) {  // seen for the first time a Graph may be interpreted
    value(x, filter).eval();
    slope(x, filter).eval();
    slope_by_filter(x, x).eval();
  }
  for (const std::string& text : {value.explain_steps(x, filter), slope.explain_steps(x, filter),
                                  slope_by_filter.explain_steps(x, x)})
    EXPECT_NE(text.find("program: 0 kernels, 1 matrix product, 0 interpreted equations, 0 bytes"),
              std::string::npos)
        << text;
  const Tensor wide = pad(x, {{0, 0}, {1, 1}, {1, 1}, {0, 0}});
  Tensor expected = zeros_like(x);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      expected = expected + slice(wide, {0, i, j, 0}, {2, i + 9, j + 7, 16}) *
                                filter[static_cast<int>(i)][static_cast<int>(j)];
  expect_close(value(x, filter), expected, {});  // quarters: exact
}

}  // namespace
