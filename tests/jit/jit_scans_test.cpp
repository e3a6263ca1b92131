// Scans and user reductions as loop nests: text, values against the interpreter over dtypes, shapes
// and axes, fusion, threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include <vt/vt.hpp>

#include "src/jit/nest/schedule.hpp"
#include "src/trace/record/devices.hpp"
#include "support/compare_executors.hpp"
#include "support/fused.hpp"

namespace {

using namespace vt;
using namespace vt::detail;
using vt_test::expect_same;
using vt_test::random_tensor;
using Tensors = std::vector<Tensor>;
using S = std::span<const Tensor>;

Tensor scan(Op op, const Tensor& x, int axis, bool reverse) {
  return emit(op, make_params(CumulativeParams{axis, reverse}), {{x}}, {});
}

vt::Vec<FusedStep> steps_of(const vt::detail::FlatFunction& f, const std::vector<Aval>& avals) {
  return vt_test::fused(simplify(record(f, avals, {}).graph, SimplifyFor::running)).steps;
}
std::string kernel_of(const vt::detail::FlatFunction& f, const std::vector<Aval>& avals) {
  const vt::Vec<FusedStep> steps = steps_of(f, avals);
  EXPECT_EQ(steps.size(), 1u);
  return steps[0].nest.str() + choose_schedule(steps[0].nest, 64).str(steps[0].nest);
}

TEST(JitScans, TextOfRunningSums) {
  EXPECT_EQ(kernel_of([](S t) -> Tensors { return {cumsum(t[0] * t[0], 1) + 1}; },
                      {Aval(f32, {100, 64})}),
            "buffers b0: f32 in, b1: f32 out like b0, arguments n0\n"
            "for d0 < n0\n"
            "  reduce d1 < 64\n"
            "    v0 = load b0[64*d0 + d1] : f32\n"
            "    v1 = mul v0 v0 : f32\n"
            "    v2 = convert v1 : f64\n"
            "    v3 = state r0 : f64\n"
            "    v4 = convert v3 : f32\n"
            "    v5 = literal 1 : f32\n"
            "    v6 = add v4 v5 : f32\n"
            "    r0 = running sum v2 : f64\n"
            "    store b1[64*d0 + d1] = v6\n"
            "schedule SIMD lanes 16, threads along d0, for these sizes\n"
            "  vertical, loops d1, vector d0, tiles with d1\n");
  const std::string whole =
      kernel_of([](S t) -> Tensors { return {cumsum(t[0], 1)}; }, {Aval(i32, {100, 64})});
  EXPECT_NE(whole.find("horizontal, loops d0 d1, vector d1\n"), std::string::npos) << whole;
  const std::string down = kernel_of(
      [](S t) -> Tensors { return {scan(Op::cummax, t[0], 0, true)}; }, {Aval(f32, {100, 64})});
  EXPECT_NE(down.find("load b0[d0 - 64*d1 + 6336]"), std::string::npos) << down;
  EXPECT_NE(down.find("vertical, loops d1, vector d0"), std::string::npos) << down;
}

TEST(JitScans, RowsOfMemoryAreTransposedSoThatLanesGoAlongOthers) {
  const std::string heavy =
      kernel_of([](S t) -> Tensors { return {cumlogsumexp(t[0], 1)}; }, {Aval(f32, {100, 64})});
  EXPECT_NE(heavy.find("vertical, loops d1, vector d0, tiles with d1\n"), std::string::npos)
      << heavy;
  const std::string light =
      kernel_of([](S t) -> Tensors { return {cumprod(t[0], 1)}; }, {Aval(f32, {100, 64})});
  EXPECT_NE(light.find("vertical, loops d1, vector d0, tiles with d1\n"), std::string::npos)
      << light;
  // Backwards, and along few rows, nothing is transposed.
  const std::string back =
      kernel_of([](S t) -> Tensors { return {scan(Op::cumlogsumexp, t[0], 1, true)}; },
                {Aval(f32, {100, 64})});
  EXPECT_NE(back.find("vertical, loops d1, vector d0, a vector at a time"), std::string::npos)
      << back;
  const std::string few =
      kernel_of([](S t) -> Tensors { return {cumprod(t[0], 1)}; }, {Aval(f32, {3, 64})});
  EXPECT_NE(few.find("horizontal, loops d0 d1\n"), std::string::npos) << few;
}

// Edges of squares in both directions, more than one square, results beside results, what is read
// along the rows and what is one for each row.
TEST(JitScans, TransposedSquares) {
  for (DType d : {f64, f32, bf16, i16})
    for (const Shape& shape : {Shape{4, 16}, Shape{9, 33}, Shape{37, 100}, Shape{64, 16},
                               Shape{131, 70}, Shape{3, 21, 40}}) {
      const int last = shape.rank() - 1;
      const auto f = [&](S t) -> Tensors {
        const Tensor sums = cumsum(t[0] * t[1], last), products = cumprod(t[0], last);
        const Tensor folded =
            reduce(t[0], 3.0f, [](Tensor a, Tensor x) { return a * 0.5f + x; }, last);
        return {sums + t[2], products > t[1], products * 2, folded, exp(sums * 0.01f)};
      };
      Shape column = shape;
      column[last] = 1;
      const Tensor x = random_tensor(d, shape, 0.9, 1.1, 3), y = random_tensor(d, shape, 0.5, 2, 4),
                   z = random_tensor(d, column, -4, 4, 5);
      expect_same(f, {x, y, z}, {.ulps = 2, .absolute = 1e-6},
                  std::string(vt::name_of(d)) + " " + shape.str());
    }
}

TEST(JitScans, TextOfAUserReduction) {
  const std::string text = kernel_of(
      [](S t) -> Tensors {
        return {reduce(t[0], 3.0f, [](Tensor a, Tensor x) { return a * 0.5f + x; }, 0)};
      },
      {Aval(f32, {9, 20})});
  EXPECT_NE(text.find("r0 = fold v"), std::string::npos) << text;
  EXPECT_NE(text.find(" from v"), std::string::npos) << text;
  EXPECT_NE(text.find("vertical, loops d1, vector d0"), std::string::npos) << text;
}

// Log-sum-exps near zero are differences of larger numbers, which exp and log give to a few ulps of
// their own.
vt_test::Tolerance tolerance_of(Op op, DType d) {
  if (op == Op::cumlogsumexp && d == f64) return {.ulps = 8, .absolute = 4e-15};
  return {.ulps = is_float(d) ? 1.0 : 0.0};
}

TEST(JitScans, OverDtypesShapesAxesAndDirections) {
  const Shape shapes[] = {{0},    {1},      {3},       {15},      {17},      {64},      {1000},
                          {3, 0}, {17, 15}, {3, 1000}, {1000, 3}, {5, 6, 7}, {64, 1, 3}};
  for (Op op : {Op::cumsum, Op::cumprod, Op::cummax, Op::cummin, Op::cumlogsumexp})
    for (DType d : vt_test::all_dtypes) {
      if (is_bool(d) && op != Op::cummax && op != Op::cummin) continue;
      if (op == Op::cumlogsumexp && !is_float(d)) continue;
      for (const Shape& shape : shapes) {
        // Products of numbers near one stay in range.
        const bool product = op == Op::cumprod && is_float(d);
        const Tensor x =
            product ? random_tensor(d, shape, 0.9, 1.1, 3) : random_tensor(d, shape, -4, 4, 3);
        for (int axis = 0; axis < shape.rank(); ++axis)
          for (bool reverse : {false, true})
            expect_same([&](S t) -> Tensors { return {scan(op, t[0], axis, reverse)}; }, {x},
                        tolerance_of(op, d),
                        std::string(name_of(op)) + " " + vt::name_of(d) + shape.str() + " axis " +
                            std::to_string(axis) + (reverse ? " reverse" : ""));
      }
    }
}

TEST(JitScans, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN(), big = 3e38;
  const std::vector<double> rows[] = {{-inf, -inf, 1, 2, -inf, 3},  {inf, 1, inf, -inf, 2, 3},
                                      {1, nan, 2, inf, nan, 0},     {-0.0, 0.0, -0.0, 1, -1, 0},
                                      {0, big, big, big, big, big}, {big, big, 0, -big, inf, 1}};
  for (const std::vector<double>& row : rows) {
    std::vector<double> many;
    for (int i = 0; i < 4; ++i) many.insert(many.end(), row.begin(), row.end());
    for (DType d : {f32, f64})
      for (const Shape& shape : {Shape{24}, Shape{6, 4}, Shape{4, 6}})
        for (Op op : {Op::cumsum, Op::cumprod, Op::cummax, Op::cummin, Op::cumlogsumexp})
          for (bool reverse : {false, true}) {
            // Sums in which numbers that large cancel differ by as much as the compensation knows
            // better.
            const bool cancels = op == Op::cumsum && row[1] == big && d == f32;
            if (cancels) continue;
            expect_same(
                [&](S t) -> Tensors {
                  return {scan(op, t[0], 0, reverse), scan(op, t[0], shape.rank() - 1, reverse)};
                },
                {vt_test::make_tensor(d, shape, many)}, tolerance_of(op, d),
                std::string(name_of(op)) + " of special values " + vt::name_of(d) + shape.str());
          }
  }
}

TEST(JitScans, LongSumsKeepTheirAccuracy) {
  const Tensor x = random_tensor(f32, {1 << 18}, 0, 1, 5),
               wide = random_tensor(f64, {1 << 16}, -1, 1, 6);
  expect_same([](S t) -> Tensors { return {cumsum(t[0], 0), scan(Op::cumsum, t[0], 0, true)}; },
              {x}, {.ulps = 1}, "cumsum of 2^18");
  expect_same([](S t) -> Tensors { return {cumsum(t[0], 0), scan(Op::cumsum, t[0], 0, true)}; },
              {wide}, vt_test::exact, "cumsum of doubles");
}

TEST(JitScans, FuseWithWhatIsAroundThem) {
  const Aval matrix(f32, {128, 100});
  EXPECT_EQ(
      steps_of([](S t) -> Tensors { return {exp(cumsum(exp(t[0]) * 2, 1)) + t[0]}; }, {matrix})
          .size(),
      1u);
  EXPECT_EQ(steps_of([](S t) -> Tensors { return {cumsum(t[0], 1), sum(t[0], 1), max(t[0], 1)}; },
                     {matrix})
                .size(),
            1u);
  EXPECT_EQ(
      steps_of([](S t) -> Tensors { return {cumsum(t[0], 1) / sum(t[0], 1, true)}; }, {matrix})
          .size(),
      1u);
  // Scans in opposite directions walk the axis in different loops, and the first of equal elements
  // needs the forward one.
  EXPECT_EQ(
      steps_of([](S t) -> Tensors { return {cumsum(t[0], 1), scan(Op::cumsum, t[0], 1, true)}; },
               {matrix})
          .size(),
      2u);
  EXPECT_EQ(
      steps_of([](S t) -> Tensors { return {argmax(t[0], 1), scan(Op::cumsum, t[0], 1, true)}; },
               {matrix})
          .size(),
      2u);
  const auto same = [](const char* what, const Tensors& arguments,
                       const vt::detail::FlatFunction& f) {
    expect_same(f, arguments, {.ulps = 4, .absolute = 1e-5}, what);
  };
  const Tensor a = random_tensor(f32, {33, 50}, 1), b = random_tensor(f32, {33, 50}, 2),
               quarters = vt_test::random_quarters(f32, {7, 40}, 3);
  for (int axis : {0, 1}) {
    same("chain of scans", {a}, [axis](S t) -> Tensors {
      const Tensor y = cumsum(t[0], axis);
      return {scan(Op::cummax, y, axis, false), cumsum(y * 0.125f, axis), y};
    });
    same("backwards", {a, b}, [axis](S t) -> Tensors {
      const Tensor y = scan(Op::cumsum, t[0] * t[1], axis, true);
      return {y * t[0], y + 1, sum(y, axis), sum(t[0], axis)};
    });
    same("both ways", {a}, [axis](S t) -> Tensors {
      return {cumsum(t[0], axis) + scan(Op::cumsum, t[0], axis, true), argmax(t[0], axis)};
    });
    same("with reductions", {a}, [axis](S t) -> Tensors {
      return {cumsum(t[0], axis) / (2 + sum(t[0] * t[0], axis, true)),
              max(cumsum(t[0], axis), axis)};
    });
    same("read by others", {quarters}, [axis](S t) -> Tensors {
      const Tensor y = cumsum(t[0], axis);
      return {transpose(y) * 2, flip(y), slice(y, {1, 1}, {5, 30}) + 1};
    });
    same("heavy work around a lone scan", {a}, [axis](S t) -> Tensors {
      return {exp(cumprod(tanh(t[0]) * 0.25f + 1, axis) * 0.01f),
              cumlogsumexp(sin(t[0]) * 3, axis)};
    });
  }
  same("reshaped", {a}, [](S t) -> Tensors {
    return {cumsum(reshape(t[0], {33 * 5, 10}), 1), cumsum(reshape(t[0], {1650}), 0),
            reshape(cumsum(transpose(t[0]), 1), {25, 66}) + 1};
  });
}

TEST(JitScans, GradientsOfScans) {
  const Tensor a = random_tensor(f64, {6, 9}, 0.5, 1.5, 1);
  for (Op op : {Op::cumsum, Op::cumprod, Op::cummax, Op::cumlogsumexp})
    for (int axis : {0, 1}) {
      const auto gradient = grad([=](Tensor x) { return sum(square(scan(op, x, axis, false))); });
      expect_same([&](S t) -> Tensors { return {gradient(t[0])}; }, {a},
                  {.relative = 1e-12, .absolute = 1e-12},
                  std::string("gradient of ") + std::string(name_of(op)));
    }
}

TEST(JitFolds, UserReductionsOverDtypesShapesAndAxes) {
  const Shape shapes[] = {{0},      {1},      {17},     {64},      {1000},
                          {17, 15}, {3, 100}, {100, 3}, {4, 5, 6}, {2, 0, 3}};
  for (DType d : {i8, u16, i32, i64, f16, bf16, f32, f64})
    for (const Shape& shape : shapes) {
      const Tensor x = random_tensor(d, shape, -3, 3, 7);
      for (int mask = 1; mask < (1 << shape.rank()); ++mask) {
        std::vector<int> axes;
        for (int i = 0; i < shape.rank(); ++i)
          if (mask & (1 << i)) axes.push_back(i);
        // Neither associative nor commutative: any other order gives other numbers.
        expect_same(
            [&](S t) -> Tensors {
              const double half = is_float(d) ? 0.5 : 3;
              const Tensor init = full({}, 2, d);
              return {vt::reduce(
                  t[0], init, [&](Tensor acc, Tensor e) { return acc * full({}, half, d) - e; },
                  axes)};
            },
            {x}, vt_test::exact,
            std::string("reduce ") + vt::name_of(d) + shape.str() + " axes " +
                std::to_string(mask));
      }
    }
}

TEST(JitFolds, SeveralOperandsAtOnce) {
  // The largest element, where it was, and how often the running one rose: three states that depend
  // on each other.
  const GraphRef body = [] {
    const std::vector<Aval> scalars = {Aval(f32, {}), Aval(i32, {}), Aval(i64, {}),
                                       Aval(f32, {}), Aval(i32, {}), Aval(i64, {})};
    const Recorded r = record(
        [](S a) -> Tensors {
          const Tensor rises = a[3] > a[0];
          return {where(rises, a[3], a[0]), where(rises, a[4], a[1]),
                  a[2] + where(rises, a[5], a[5] * 0)};
        },
        scalars, {});
    EXPECT_TRUE(r.captured.empty());
    return std::make_shared<const GraphBody>(simplify(r.graph, SimplifyFor::running));
  }();
  const Tensor values = random_tensor(f32, {12, 40}, 1),
               numbers = random_tensor(i32, {12, 40}, 0, 99, 2), ones = full({12, 40}, 1, i64);
  for (const Axes& axes : {Axes{0}, Axes{1}, Axes{0, 1}})
    expect_same(
        [&](S t) -> Tensors {
          const Tensor operands[] = {
              t[0], t[1], t[2], full({}, -100, f32), full({}, -1, i32), full({}, 0, i64)};
          const SmallVec<Tensor, 1> results =
              emit_all(Op::reduce, make_params(ReduceParams{axes, body}), operands, {});
          return {results.begin(), results.end()};
        },
        {values, numbers, ones}, vt_test::exact, "three states over " + axes.str());
}

TEST(JitScans, BitsDoNotDependOnTheNumberOfThreads) {
  const int before = num_threads();
  const Tensor a = random_tensor(f32, {300, 401}, 1);
  const auto f = [](S t) -> Tensors {
    return {cumsum(t[0], 0),
            cumsum(t[0], 1),
            cumprod(t[0], 1),
            cumlogsumexp(t[0], 0),
            scan(Op::cummax, t[0], 1, true),
            reduce(
                t[0], 0.0f, [](Tensor x, Tensor y) { return x * 0.9f + y; }, 1),
            transpose(t[0]) * 2};
  };
  const std::vector<Aval> avals = {Aval(f32, {300, 401})};
  const Recorded r = record(f, avals, {});
  vt::Vec<BufferRef> inputs = {value_of(a, {})}, first;
  for (const Tensor& t : r.captured) inputs.push_back(value_of(t, {}));
  for (int threads : {1, 2, 5, 16}) {
    set_num_threads(threads);
    const vt::Vec<BufferRef> results = compile_graph(r.graph)->run(inputs);
    if (first.empty()) first = results;
    for (std::size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(std::memcmp(moved(results[i], vt::cpu())->data, moved(first[i], vt::cpu())->data,
                            r.graph.aval(r.graph.outputs[i]).bytes()),
                0)
          << "result " << i << " with " << threads << " threads";
  }
  set_num_threads(before);
}

// Groups of iterations of one long row: an element is off by one rounding, whatever the order.
TEST(JitScans, SumsOfFewLongRowsAreRoundedOnce) {
  constexpr std::int64_t n = 20'003;
  for (const std::int64_t rows : {1, 3, 9}) {
    std::vector<double> x(static_cast<std::size_t>(rows * n));
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = std::sin(static_cast<double>(i)) * std::pow(10.0, static_cast<double>(i % 7) - 3);
    const Tensor given = tensor(x, {rows, n});
    const std::vector<double> sums =
        jit([](const Tensor& t) { return cumsum(t, 1); })(given).to_vector<double>();
    for (std::int64_t row = 0; row < rows; ++row) {
      double high = 0, low = 0, size = 0;  // the sum as two doubles
      for (std::int64_t k = 0; k < n; ++k) {
        const auto i = static_cast<std::size_t>(row * n + k);
        const double next = high + x[i], rise = next - high;
        low += (high - (next - rise)) + (x[i] - rise);
        high = next;
        size += std::abs(x[i]);
        ASSERT_NEAR(sums[i], high + low, 0x1p-52 * std::abs(high + low) + 1e-27 * size)
            << rows << " rows, element " << k;
      }
    }
  }
}

}  // namespace
