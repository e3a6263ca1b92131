// Kernels whose elements lie otherwise in results than in operands: single elements beside each
// other, edges made of what is there, inner products.
#include <gtest/gtest.h>

#include <vt/vt.hpp>

#include "src/jit/nest/schedule.hpp"
#include "src/trace/record/scope.hpp"
#include "support/compare_executors.hpp"
#include "support/fused.hpp"
#include "support/property.hpp"

namespace {

using namespace vt;
using namespace vt::detail;
using Tensors = std::vector<Tensor>;
using S = std::span<const Tensor>;

vt::Vec<FusedStep> steps_of(const FlatFunction& f, const std::vector<Aval>& avals) {
  return vt_test::fused(simplify(record(f, avals, {}).graph, SimplifyFor::running),
                        {.matrix_products = true})
      .steps;
}

// Points and their coordinates, images and their channels: lanes go along the points, and what they
// give is interleaved in registers.
TEST(JitLayout, ShortLastAxesAreInterleaved) {
  const auto stacked = [](S t) -> Tensors { return {stack({t[0], t[1] * 2, exp(t[0])}, -1)}; };
  const auto scaled = [](S t) -> Tensors { return {(t[0] - t[1]) / t[2]}; };
  const auto transposed = [](S t) -> Tensors { return {transpose(t[0], {0, 2, 1})}; };
  const auto pairs = [](S t) -> Tensors {
    const Tensor a = slice_in_dim(t[0], 0, 64, 1, 2), b = slice_in_dim(t[0], 1, 64, 1, 2);
    return {reshape(stack({a * t[1] - b * t[2], b * t[1] + a * t[2]}, -1), {100, 64})};
  };
  const auto interleaved = [](const FlatFunction& f, const std::vector<Aval>& avals,
                              std::size_t parts) {
    const vt::Vec<FusedStep> steps = steps_of(f, avals);
    ASSERT_EQ(steps.size(), 1u);
    const Nest& nest = steps[0].nest;
    const Schedule s = choose_schedule(nest, 64);
    EXPECT_EQ(nest.stores.size(), parts) << nest.str();
    const auto dependences = loop_dependences(nest);
    for (const NestStore& store : nest.stores)
      EXPECT_EQ(
          interleaved_with(nest, store, s.stages[0].vector_loop, s.simd_lanes, dependences).size(),
          parts)
          << nest.str() << s.str(nest);
  };
  interleaved(stacked, {Aval(f32, {1000}), Aval(f32, {1000})}, 3);
  interleaved(scaled, {Aval(f32, {10, 50, 4}), Aval(f32, {4}), Aval(f32, {4})}, 4);
  interleaved(transposed, {Aval(u8, {10, 3, 99})}, 3);
  // Rows of fewer points than a vector has lanes count, too: each jumps by three elements
  // otherwise.
  const auto moved = [](S t) -> Tensors {
    return {(slice_in_dim(t[0], 1, t[0].dim(1), 1) - slice_in_dim(t[0], 0, t[0].dim(1) - 1, 1)) /
            t[1]};
  };
  interleaved(moved, {Aval(f32, {10, 16, 3}), Aval(f32, {3})}, 3);
  interleaved(pairs, {Aval(f64, {100, 64}), Aval(f64, {100, 32}), Aval(f64, {100, 32})}, 2);
  for (DType d : {f32, f64, f16, bf16, i8, i64, bool_})
    for (const std::int64_t n : {1, 3, 16, 33, 100, 257}) {
      const auto random = [&](const Shape& s, unsigned seed) {
        return vt_test::random_tensor(f32, s, -4, 4, seed).astype(d).eval();
      };
      const std::string name = std::string(vt::name_of(d)) + " " + std::to_string(n);
      vt_test::expect_same(
          [](S t) -> Tensors {
            return {stack({t[0], t[1]}, 1), stack({t[0], t[1], t[0], t[1]}, 1),
                    stack({t[1], t[0], t[0]}, 1)};
          },
          {random({n}, 1), random({n}, 2)}, {}, name);
      vt_test::expect_same([](S t) -> Tensors { return {transpose(t[0], {0, 2, 1})}; },
                           {random({2, 3, n}, 3)}, {}, name);
      vt_test::expect_same([](S t) -> Tensors { return {where(t[0] > t[1], t[0], t[1])}; },
                           {random({n, 3}, 4), random({3}, 5)}, {}, name);
      vt_test::expect_same([](S t) -> Tensors { return {take(t[0], arange(t[0].dim(0)) / 2, 0)}; },
                           {random({n, 4}, 6)}, {}, name);
      vt_test::expect_same(
          [&](S t) -> Tensors {
            return {pad(where(t[0] > t[1], t[0], t[1]), {{1, 0}, {0, 1}, {0, 0}})};
          },
          {random({3, n, 3}, 7), random({3}, 8)}, {}, name);
    }
}

// Blocks of transposed squares: edges in both directions, two operands, operands that lie along the
// result, edges of padding, batches, parts that several threads take. What is small is gathered to
// cache lines, what is large to longer runs.
TEST(JitLayout, BlocksOfTransposedSquares) {
  for (DType d : {f32, f64, bf16, u8, bool_})
    for (const Shape& shape : {Shape{33, 70}, Shape{1030, 517}, Shape{20, 9001}, Shape{9001, 20}}) {
      const auto random = [&](const Shape& s, unsigned seed) {
        return vt_test::random_tensor(f32, s, -4, 4, seed).astype(d).eval();
      };
      const Shape back{shape[1], shape[0]};
      const std::string name = std::string(vt::name_of(d)) + shape.str();
      const Tensor x = random(shape, 1), y = random(shape, 2), z = random(back, 3),
                   row = random({shape[0]}, 4), column = random({shape[1], 1}, 5);
      vt_test::expect_same([](S t) -> Tensors { return {transpose(t[0])}; }, {x}, {}, name);
      vt_test::expect_same(
          [](S t) -> Tensors {
            return {where(transpose(t[0]) > t[2], transpose(t[1]) + t[3], t[2] * t[4])};
          },
          {x, y, z, row, column}, {}, name + " of several");
      vt_test::expect_same([](S t) -> Tensors { return {transpose(pad(t[0], {{3, 2}, {9, 20}}))}; },
                           {x}, {}, name + " padded");
    }
  const Tensor batch = vt_test::random_tensor(f32, {5, 300, 203}, -4, 4, 6).eval();
  vt_test::expect_same(
      [](S t) -> Tensors {
        return {transpose(t[0], {0, 2, 1}), transpose(t[0], {2, 1, 0}) * 2,
                transpose(t[0], {2, 0, 1})};
      },
      {batch}, {}, "a batch");
  // Of work that is worth masking once.
  vt_test::expect_same(
      [](S t) -> Tensors {
        return {exp(sin(transpose(t[0])) + tanh(transpose(t[0])) * erf(transpose(t[0]))) +
                atan(transpose(t[0]))};
      },
      {batch[0]}, {.relative = 1e-5, .absolute = 1e-5}, "long bodies");
}

// Results that no cache holds, stored past them: rows of them are what the function gives of those
// rows alone, whoever made them.
TEST(JitLayout, ResultsPastTheCachesOnThreads) {
  const auto expect_rows = [](auto f, const Tensor& x, const char* name) {
    const auto compiled = jit(f);
    const std::int64_t n = x.dim(0);
    for (const int threads : {1, 3}) {
      const int before = num_threads();
      set_num_threads(threads);
      const Tensor all = compiled(x).eval();
      set_num_threads(before);
      for (const std::int64_t row : {std::int64_t{0}, n / 3, n - 2})
        vt_test::expect_close(all[slice(row, row + 2)], compiled(x[slice(row, row + 2)]).eval(),
                              vt_test::exact);
      EXPECT_EQ(sum(isnan(all)).item<int>(), 0) << name;
    }
  };
  const Tensor column = vt_test::random_tensor(f32, {5003, 1}, -4, 4, 1),
               row = vt_test::random_tensor(f32, {4000}, -4, 4, 2);
  expect_rows([=](Tensor x) { return x * row + 1.0f; }, column, "aligned rows");
  expect_rows([=](Tensor x) { return x * row[slice(0, 3999)] + 1.0f; }, column,
              "rows that begin anywhere");
  expect_rows([](Tensor x) { return softmax(x); }, (column * row).eval(), "softmax");
}

// image[i][j] of many i and j: no rows of the image are laid out, also where several columns of a
// row are read.
TEST(JitLayout, FewElementsOfManyRows) {
  const auto bilinear = [](S t) -> Tensors {
    const auto at = [&](Tensor p, Tensor w) {
      const Tensor row = t[0][p[0]], next = t[0][p[0] + 1];
      return w * (row[p[1]] + row[p[1] + 1]) + (1 - w) * (next[p[1]] + next[p[1] + 1]);
    };
    return {vmap(at)(t[1], t[2])};
  };
  const auto computed = [](S t) -> Tensors { return {take(exp(t[0] * t[0] + 1), t[1] + 5, 0)}; };
  for (const std::int64_t n : {1, 7, 500}) {
    const std::vector<Aval> avals = {Aval(f32, {61, 67}), Aval(i32, {n, 2}), Aval(f32, {n})};
    const vt::Vec<FusedStep> steps = steps_of(bilinear, avals);
    EXPECT_EQ(steps.size(), 1u);
    const Tensor places = vt_test::random_tensor(i32, {n, 2}, -1, 59, 3).eval();
    vt_test::expect_same(bilinear,
                         {vt_test::random_tensor(f32, {61, 67}, -4, 4, 1), places,
                          vt_test::random_tensor(f32, {n}, 0, 1, 2)},
                         {.ulps = 4}, "bilinear " + std::to_string(n));
    vt_test::expect_same(computed, {vt_test::random_tensor(f64, {3000}, -1, 1, 4), places},
                         {.ulps = 4}, "computed " + std::to_string(n));
  }
}

// Parts that share out an array are computed where they are read, each once; what two of them hold,
// or one is read twice for, is stored before.
TEST(JitLayout, PartsAreNotLaidOutFirst) {
  const auto on_triangle = [](S t) -> Tensors {
    const auto at = [](Tensor u, Tensor corners) {
      return u[0] * corners[0] + u[1] * corners[1] + (1.0 - u[0] - u[1]) * corners[2];
    };
    return {vmap(at)(t[1], take(t[0], t[2], 0))};
  };
  const auto halves = [](S t) -> Tensors {
    const Tensor e = exp(t[0] * t[0]);
    return {slice_in_dim(e, 0, 8, 1) * slice_in_dim(e, 8, 16, 1)};
  };
  const auto overlapping = [](S t) -> Tensors {
    const Tensor e = exp(t[0] * t[0]);
    return {slice_in_dim(e, 0, 9, 1) * slice_in_dim(e, 7, 16, 1)};
  };
  const auto twice = [](S t) -> Tensors {
    const Tensor e = exp(t[0] * t[0]), low = slice_in_dim(e, 0, 8, 1),
                 high = slice_in_dim(e, 8, 16, 1);
    return {low * high + cumsum(low, 0)};
  };
  for (const std::int64_t n : {1, 7, 300}) {
    const std::string name = std::to_string(n);
    EXPECT_EQ(
        steps_of(on_triangle, {Aval(f64, {40, 3}), Aval(f64, {n, 2}), Aval(i32, {n, 3})}).size(),
        1u);
    EXPECT_EQ(steps_of(halves, {Aval(f32, {n, 16})}).size(), 1u);
    EXPECT_EQ(steps_of(overlapping, {Aval(f32, {n, 16})}).size(), 2u);
    EXPECT_GT(steps_of(twice, {Aval(f32, {n, 16})}).size(), 1u);
    vt_test::expect_same(on_triangle,
                         {vt_test::random_tensor(f64, {40, 3}, -1, 1, 1),
                          vt_test::random_tensor(f64, {n, 2}, 0, 1, 2),
                          vt_test::random_tensor(i32, {n, 3}, -40, 39, 3).eval()},
                         {.ulps = 4}, name);
    for (const FlatFunction& f :
         {FlatFunction(halves), FlatFunction(overlapping), FlatFunction(twice)})
      vt_test::expect_same(f, {vt_test::random_tensor(f32, {n, 16}, -1, 1, 4)}, {.ulps = 8}, name);
  }
}

// Slices, forwards and backwards, instead of computed places.
TEST(JitLayout, EdgesAreSlices) {
  const auto place = [](std::int64_t p, std::int64_t n, PadMode mode) {
    while (n > 1 && mode != PadMode::edge && (p < 0 || p >= n))
      p = mode == PadMode::wrap ? (p < 0 ? p + n : p - n)
          : p < 0               ? (mode == PadMode::symmetric ? -1 - p : -p)
                                : 2 * n - (mode == PadMode::symmetric ? 1 : 2) - p;
    return std::min(std::max<std::int64_t>(p, 0), n - 1);
  };
  for (PadMode mode : {PadMode::edge, PadMode::reflect, PadMode::symmetric, PadMode::wrap})
    for (const std::int64_t n : {1, 2, 3, 20})
      for (const auto& [low, high] :
           {std::pair<std::int64_t, std::int64_t>{0, 1}, {3, 0}, {2, 2}, {7, 5}, {30, 41}}) {
        const Tensor x = reshape(arange(3 * n), {3, n});
        const std::vector<int> all =
            jit([&](Tensor t) { return pad(t, {{0, 0}, {low, high}}, mode); })(x).to_vector<int>();
        const std::int64_t width = low + n + high;
        ASSERT_EQ(static_cast<std::int64_t>(all.size()), 3 * width);
        for (std::int64_t r = 0; r < 3; ++r)
          for (std::int64_t c = 0; c < width; ++c)
            ASSERT_EQ(all[r * width + c], r * n + place(c - low, n, mode))
                << static_cast<int>(mode) << " " << n << ": " << c - low;
      }
  const auto reflected = [](S t) -> Tensors {
    return {pad(t[0], {{2, 2}, {3, 4}}, PadMode::reflect)};
  };
  for (const FusedStep& s : steps_of(reflected, {Aval(f32, {30, 40})})) {
    ASSERT_LT(s.equation, 0);
    for (const NestValue& v : s.nest.values)
      if (v.kind == NestValue::Kind::load)
        s.nest.indices.each_value(v.index, [&](int) { ADD_FAILURE() << s.nest.str(); });
  }
}

// Nothing to keep in registers: as fast as the operands come, with what they are made of in one
// kernel.
TEST(JitLayout, InnerProductsAreReductions) {
  const auto rows = [](S t) -> Tensors { return {einsum("ijk,ijk->ik", t[0] * 2, exp(t[1]))}; };
  const vt::Vec<FusedStep> steps =
      steps_of(rows, {Aval(f32, {10, 20, 30}), Aval(f32, {10, 20, 30})});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].nest.reductions.size(), 1u);
  for (DType d : {f32, f64, bf16, i32}) {
    const Tensor a = vt_test::random_tensor(f32, {5, 20, 7}, -3, 3, 1).astype(d),
                 b = vt_test::random_tensor(f32, {5, 20, 7}, -3, 3, 2).astype(d);
    const double close = d == f64 ? 1e-13 : d == bf16 ? 2e-2 : 1e-5;
    vt_test::expect_same(
        [](S t) -> Tensors {
          return {einsum("ijk,ijk->ik", t[0], t[1]), einsum("ijk,ijk->i", t[0], t[1])};
        },
        {a.eval(), b.eval()}, {.relative = close, .absolute = close}, vt::name_of(d));
  }
}

// Groups of eight channels, the last axis: sums go down the rows with lanes along all 48 channels,
// and so does what is broadcast over the groups.
TEST(JitLayout, ShortGroupsFillTheLanes) {
  const auto normalised = [](S t) -> Tensors {
    const Tensor x = reshape(t[0], {4, 100, 6, 8});
    return {x - mean(x, {1, 3}, true)};
  };
  for (const FusedStep& s : steps_of(normalised, {Aval(f32, {4, 10, 10, 48})})) {
    ASSERT_LT(s.equation, 0);
    const Schedule schedule = choose_schedule(s.nest, 64);
    double iterations = 1;  // a large kernel: one that sees every element
    for (int l : s.nest.stages[0].loops) iterations *= static_cast<double>(s.nest.loops[l].extent);
    if (iterations < 4 * 100 * 48) continue;
    EXPECT_EQ(s.nest.loops[schedule.stages[0].vector_loop].extent % 48, 0)
        << s.nest.str() << schedule.str(s.nest);
    EXPECT_NE(schedule.stages[0].mode, StageSchedule::Mode::horizontal);
  }
  for (DType d : {f32, f64, bf16, i32}) {
    const Tensor x = vt_test::random_tensor(f32, {3, 37, 5, 4}, -3, 3, 1).astype(d).eval();
    const double close = d == f64 ? 1e-12 : d == bf16 ? 2e-2 : 1e-4;
    vt_test::expect_same(
        [](S t) -> Tensors {
          const Tensor& y = t[0];
          return {sum(y, {1, 3}),
                  max(y, {1, 3}, true),
                  min(y, {0, 1, 3}),
                  any(y > 2, {1, 3}),
                  all(y > -2, {0, 1, 3}, true),
                  prod(y, {1, 3}).astype(bool_),
                  y - sum(y, {1, 3}, true),
                  y * max(y, {0, 1, 3}, true),
                  broadcast_in_dim(sum(y, {0, 1, 3}), {50, 5, 3}, {1})};
        },
        {x}, {.relative = close, .absolute = close}, vt::name_of(d));
  }
}

}  // namespace
