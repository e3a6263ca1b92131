// Compiled programs against the interpreter: every op × dtype × edge sizes, every primitive case,
// index maps, reductions.
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include <vt/vt.hpp>

#include "src/trace/ir/executable.hpp"
#include "src/trace/ir/graph.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"
#include "support/compare_executors.hpp"
#include "support/primitive_cases.hpp"
#include "support/property.hpp"

namespace {

using namespace vt;
using namespace vt::detail;
using vt_test::expect_same;
using vt_test::PrimitiveCase;
using vt_test::Tolerance;
using Tensors = std::vector<Tensor>;

Tensor apply(Op op, ParamsRef params, std::span<const Tensor> operands) {
  return emit(op, std::move(params), operands, {});
}

TEST(JitRules, EveryPrimitiveCase) {
  std::uint64_t seed = 1;
  for (const PrimitiveCase& c : vt_test::primitive_cases()) {
    Tensors operands;
    for (std::size_t i = 0; i < c.operands.size(); ++i) operands.push_back(c.operand(i, seed++));
    expect_same([&](std::span<const Tensor> a) { return c.run(a); }, operands, c.tolerance(),
                c.name());
  }
}

// Of all numbers of 16 bits, whose small ones are rounded at a fixed place.
TEST(JitRules, FewerBitsOfShortNumbers) {
  for (DType d : {f16, bf16})
    for (const auto& [exponent, mantissa] : {std::pair{5, 4}, {8, 3}, {3, 2}, {5, 10}, {4, 0}})
      expect_same(
          [&](std::span<const Tensor> a) {
            return Tensors{
                apply(Op::reduce_precision, make_params(PrecisionParams{exponent, mantissa}), a)};
          },
          {bitcast(arange(65536).astype(u16), d)}, vt_test::exact,
          std::string(name_of(d)) + " " + std::to_string(exponent));
}

// 37 × 37 has a tail in every vector width and is joined to one loop; rows of 1000 have whole
// vectors and a tail.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {Shape{},   Shape{0},      Shape{1},      Shape{3},
                                         Shape{17}, Shape{37, 37}, Shape{3, 1000}};
  return all;
}

struct Row {
  Op op;
  bool floats, ints, bools;
  double low = -3, high = 3, ulps = 0;
};

TEST(JitRules, UnaryOpsOverDtypesAndShapes) {
  const Row rows[] = {
      {Op::neg, true, true, false},
      {Op::abs, true, true, false},
      {Op::sign, true, true, false},
      {Op::floor, true, false, false},
      {Op::ceil, true, false, false},
      {Op::round, true, false, false},
      {Op::trunc, true, false, false},
      {Op::exp, true, false, false, -3, 3, 4},
      {Op::exp2, true, false, false, -3, 3, 4},
      {Op::expm1, true, false, false, -3, 3, 4},
      {Op::log, true, false, false, 0.01, 9, 4},
      {Op::log1p, true, false, false, -0.9, 9, 4},
      {Op::log2, true, false, false, 0.01, 9, 4},
      {Op::sqrt, true, false, false, 0, 9},
      {Op::rsqrt, true, false, false, 0.1, 9, 2},
      {Op::cbrt, true, false, false, -9, 9, 4},
      {Op::sin, true, false, false, -9, 9, 4},
      {Op::cos, true, false, false, -9, 9, 4},
      {Op::tan, true, false, false, -1.4, 1.4, 4},
      {Op::asin, true, false, false, -1, 1, 4},
      {Op::acos, true, false, false, -1, 1, 4},
      {Op::atan, true, false, false, -9, 9, 4},
      {Op::sinh, true, false, false, -3, 3, 4},
      {Op::cosh, true, false, false, -3, 3, 4},
      {Op::tanh, true, false, false, -3, 3, 4},
      {Op::asinh, true, false, false, -9, 9, 4},
      {Op::acosh, true, false, false, 1, 9, 4},
      {Op::atanh, true, false, false, -0.9, 0.9, 4},
      {Op::sigmoid, true, false, false, -9, 9, 4},
      {Op::erf, true, false, false, -3, 3, 4},
      {Op::erfc, true, false, false, -3, 3, 4},
      {Op::is_finite, true, false, false},
      {Op::is_nan, true, false, false},
      {Op::is_inf, true, false, false},
      {Op::not_, false, true, true},
      {Op::popcount, false, true, false},
      {Op::clz, false, true, false},
  };
  for (const Row& row : rows)
    for (DType d : vt_test::all_dtypes) {
      if (!(is_float(d) ? row.floats : is_bool(d) ? row.bools : row.ints)) continue;
      for (const Shape& shape : shapes()) {
        const Tensor x = vt_test::random_tensor(d, shape, row.low, row.high, 7);
        expect_same([&](std::span<const Tensor> a) -> Tensors { return {apply(row.op, {}, a)}; },
                    {x}, {.ulps = row.ulps},
                    std::string(name_of(row.op)) + " " + vt::name_of(d) + shape.str());
      }
    }
}

TEST(JitRules, ThreefryOverShapes) {
  for (const Shape& shape : shapes()) {
    const Tensor key = vt_test::random_tensor(vt::u64, {}, 0, 1e18, 11),
                 counter = vt_test::random_tensor(vt::u64, shape, 0, 1e18, 12);
    expect_same([&](std::span<const Tensor> a) -> Tensors { return {apply(Op::threefry, {}, a)}; },
                {key, counter}, {}, "threefry" + shape.str());
  }
}

TEST(JitRules, BinaryOpsOverDtypesAndShapes) {
  const Row rows[] = {
      {Op::add, true, true, false},
      {Op::sub, true, true, false},
      {Op::mul, true, true, false},
      {Op::div, true, true, false},
      {Op::rem, true, true, false},
      {Op::max, true, true, true},
      {Op::min, true, true, true},
      {Op::eq, true, true, true},
      {Op::ne, true, true, true},
      {Op::lt, true, true, true},
      {Op::le, true, true, true},
      {Op::gt, true, true, true},
      {Op::ge, true, true, true},
      {Op::and_, false, true, true},
      {Op::or_, false, true, true},
      {Op::xor_, false, true, true},
      {Op::shift_left, false, true, false, 0, 40},
      {Op::shift_right_logical, false, true, false, 0, 40},
      {Op::shift_right_arithmetic, false, true, false, 0, 40},
      {Op::atan2, true, false, false, -3, 3, 4},
      {Op::nextafter, true, false, false},
      {Op::pow, true, false, false, 0.1, 3, 4},
  };
  for (const Row& row : rows)
    for (DType d : vt_test::all_dtypes) {
      if (!(is_float(d) ? row.floats : is_bool(d) ? row.bools : row.ints)) continue;
      for (const Shape& shape : shapes()) {
        const Tensor x = vt_test::random_tensor(d, shape, row.low, row.high, 11),
                     y = vt_test::random_tensor(d, shape, row.low, row.high, 12);
        expect_same([&](std::span<const Tensor> a) -> Tensors { return {apply(row.op, {}, a)}; },
                    {x, y}, {.ulps = row.ulps},
                    std::string(name_of(row.op)) + " " + vt::name_of(d) + shape.str());
      }
    }
}

TEST(JitRules, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  for (DType d : {f16, bf16, f32, f64}) {
    const Tensor x = vt_test::make_tensor(d, {7, 7}, [&] {
      std::vector<double> v;
      for (int i = 0; i < 7; ++i)
        for (double e : {0.0, -0.0, 1.0, -1.5, inf, -inf, nan}) v.push_back(e);
      return v;
    }());
    for (Op op : {Op::neg, Op::abs, Op::sign, Op::floor, Op::round, Op::exp, Op::log, Op::sqrt,
                  Op::tanh, Op::sigmoid, Op::erf, Op::atan, Op::is_nan, Op::is_inf, Op::is_finite})
      expect_same([&](std::span<const Tensor> a) -> Tensors { return {apply(op, {}, a)}; }, {x},
                  {.ulps = 4}, std::string(name_of(op)) + " " + vt::name_of(d));
    for (Op op : {Op::add, Op::sub, Op::mul, Op::div, Op::max, Op::min, Op::eq, Op::lt, Op::ne})
      expect_same(
          [&](std::span<const Tensor> a) -> Tensors {
            return {apply(op, {}, {{a[0], transpose(a[0])}})};
          },
          {x}, vt_test::exact, std::string(name_of(op)) + " " + vt::name_of(d));
    expect_same(
        [&](std::span<const Tensor> a) -> Tensors {
          return {max(a[0], 0),    min(a[0], 1), argmax(a[0], 1),
                  argmin(a[0], 0), max(a[0]),    sum(a[0], 0)};
        },
        {x}, vt_test::exact, std::string("reductions with NaN ") + vt::name_of(d));
    for (DType to : vt_test::all_dtypes)
      expect_same([&](std::span<const Tensor> a) -> Tensors { return {a[0].astype(to)}; }, {x},
                  vt_test::exact,
                  std::string("convert ") + vt::name_of(d) + " to " + vt::name_of(to));
  }
}

TEST(JitRules, ConversionsBetweenAllDtypes) {
  for (DType from : vt_test::all_dtypes)
    for (DType to : vt_test::all_dtypes) {
      const Tensor x = vt_test::random_tensor(from, {37, 37}, -200, 200, 3);
      expect_same([&](std::span<const Tensor> a) -> Tensors { return {a[0].astype(to)}; }, {x},
                  vt_test::exact, std::string(vt::name_of(from)) + " to " + vt::name_of(to));
    }
}

TEST(JitRules, ReductionsOverDtypesShapesAndAxes) {
  const Shape reduced[] = {{0},       {1},       {3},       {17},      {37, 37},
                           {3, 1000}, {1000, 3}, {5, 6, 7}, {2, 0, 3}, {300, 300}};
  for (Op op : {Op::reduce_sum, Op::reduce_prod, Op::reduce_max, Op::reduce_min})
    for (DType d : vt_test::all_dtypes) {
      if (is_bool(d)) continue;
      for (const Shape& shape : reduced) {
        if ((op == Op::reduce_max || op == Op::reduce_min) && shape.elements() == 0) continue;
        // Products of ones and minus ones, sums of quarters: exact in every dtype, so any order
        // gives the same bits.
        Tensor x = op == Op::reduce_prod
                       ? vt_test::random_tensor(i8, shape, 0, 1, 5).astype(d) * 2 - 1
                       : vt_test::random_tensor(d, shape, is_float(d) ? -1 : -3, 1, 5);
        if (op == Op::reduce_prod && is_unsigned(d)) x = vt_test::random_tensor(d, shape, 1, 2, 5);
        if (is_float(d) && op == Op::reduce_sum) x = floor(x * 2) / 4;
        x = x.astype(d);
        for (int mask = 1; mask < (1 << shape.rank()); ++mask) {
          Axes axes;
          for (int a = 0; a < shape.rank(); ++a)
            if (mask & (1 << a)) axes.push_back(a);
          // 16-bit floats: the interpreter adds exactly, the compiled sum in f32; both are rounded
          // once.
          expect_same(
              [&](std::span<const Tensor> a) -> Tensors {
                return {apply(op, make_params(AxesParams{axes}), a)};
              },
              {x}, vt_test::exact,
              std::string(name_of(op)) + " " + vt::name_of(d) + shape.str() + " over " +
                  axes.str());
        }
      }
    }
}

TEST(JitRules, PositionsOfExtremes) {
  for (DType d : {f32, f64, i32, u8, f16, i64})
    for (const Shape& shape : {Shape{1}, Shape{17}, Shape{37, 37}, Shape{3, 1000}, Shape{1000, 3}})
      for (int axis = 0; axis < shape.rank(); ++axis)
        for (Op op : {Op::argmax, Op::argmin}) {
          // with many equal elements for the integers
          const Tensor x = vt_test::random_tensor(d, shape, -4, 4, 9);
          for (DType position : {i32, i64})
            expect_same(
                [&](std::span<const Tensor> a) -> Tensors {
                  return {apply(op, make_params(ArgParams{axis, position}), a)};
                },
                {x}, vt_test::exact,
                std::string(name_of(op)) + " " + vt::name_of(d) + shape.str() + " axis " +
                    std::to_string(axis));
        }
}

// Long rows are cut into blocks, whose winners are compared by looking them up again. None better
// than the neutral element, NaN, and equals in several blocks.
TEST(JitRules, PositionsOfExtremesOfLongRows) {
  constexpr int n = 200003;
  for (DType d : {f32, f64, i32, u8, bf16}) {
    const double least = is_float(d) ? -std::numeric_limits<double>::infinity()
                         : d == i32  ? std::numeric_limits<std::int32_t>::min()
                                     : 0;
    const Tensor equal = full({n}, least, d);
    const auto with = [&](std::initializer_list<int> places, double value) {
      Tensor x = equal;
      for (int p : places) x = index_update(x, tensor({p}), full({1}, value, d));
      return x.eval();
    };
    Tensors cases = {equal, with({150001, 199999}, 3), with({70000, 70001, 5}, 2),
                     vt_test::random_tensor(d, {n}, is_float(d) ? -4 : 0, 4, 11)};
    if (is_float(d))
      cases.push_back(with({120000, 60001}, std::numeric_limits<double>::quiet_NaN()));
    reset_stats();
    for (std::size_t k = 0; k < cases.size(); ++k)
      expect_same(
          [](std::span<const Tensor> a) -> Tensors {
            return {argmax(a[0]), argmin(a[0]),
                    argmax(reshape(slice_in_dim(a[0], 0, 200000), {40000, 5}), 0),
                    argmax(concatenate({a[0], a[0] * 1})), argmax(expand_dims(a[0], 0), 1)};
          },
          {cases[k]}, vt_test::exact,
          std::string("case ") + std::to_string(k) + " of " + vt::name_of(d));
    if (stats().programs > 0 && default_device() == vt::cpu()) {
      EXPECT_GE(stats().parallel_reductions, 4u * cases.size());
    }
  }
}

// Rows are taken several at a time, those of light bodies eight at a time; what is left one by one.
TEST(JitRules, TallReductionsOverDtypes) {
  for (DType d : {i8, u16, i32, i64, bf16, f32, f64})
    for (const Shape& shape : {Shape{1031, 601}, Shape{5, 517, 203}, Shape{2, 7, 33}}) {
      const Tensor x = (is_float(d) ? vt_test::random_quarters(f32, shape, 3)
                                    : vt_test::random_tensor(i32, shape, 0, 9, 3))
                           .astype(d);
      for (int axis = 0; axis + 1 < shape.rank(); ++axis)
        expect_same(
            [&](std::span<const Tensor> a) -> Tensors {
              return {max(a[0], axis), argmin(a[0], axis), sum(a[0], axis), min(a[0] * a[0], axis),
                      cummax(a[0], axis)};
            },
            {x}, {.ulps = d == bf16 ? 1.0 : 0.0},
            std::string("columns of ") + vt::name_of(d) + shape.str());
    }
}

// Tiles of every element size: smaller and larger than a vector, joined with other operands, beyond
// the caches.
TEST(JitRules, TransposesOverDtypesAndShapes) {
  using S = std::span<const Tensor>;
  for (DType d : vt_test::all_dtypes) {
    for (const Shape& shape : {Shape{17, 33}, Shape{64, 64}, Shape{129, 257}, Shape{1000, 15},
                               Shape{3, 64}, Shape{700, 1100}}) {
      // Blocks go by the width of an element: the largest once for each.
      if (shape[0] == 700 && d != u8 && d != f16 && d != f32 && d != f64) continue;
      const Tensor x = vt_test::random_tensor(d, shape, -9, 9, 3),
                   y = vt_test::random_tensor(d, {shape[1], shape[0]}, -9, 9, 4);
      expect_same(
          [](S t) -> Tensors {
            return {transpose(t[0]), where(transpose(t[0]) > t[1], transpose(t[0]), t[1])};
          },
          {x, y}, vt_test::exact, std::string("transpose ") + vt::name_of(d) + shape.str());
    }
    const Tensor cube = vt_test::random_tensor(d, {5, 66, 70}, -9, 9, 5);
    expect_same(
        [](S t) -> Tensors {
          return {transpose(t[0], {0, 2, 1}), transpose(t[0], {2, 1, 0}),
                  transpose(t[0], {1, 2, 0}), transpose(t[0], {2, 0, 1})};
        },
        {cube}, vt_test::exact, std::string("transposes of a cube ") + vt::name_of(d));
  }
  for (const Shape& shape : {Shape{4096, 576}, Shape{2999, 1501}}) {
    const Tensor x = vt_test::random_tensor(f32, shape, 6);
    expect_same([](S t) -> Tensors { return {transpose(t[0]), transpose(t[0]) * 2 + 1}; }, {x},
                vt_test::exact, "transpose " + shape.str());
  }
}

// Sums of random numbers: the compiled order differs from the reference, whose error is far smaller
// than f32's rounding.
TEST(JitRules, LongSumsAreAccurate) {
  for (const Shape& shape :
       {Shape{1 << 20}, Shape{4, 1 << 18}, Shape{1 << 18, 4}, Shape{3000, 700}, Shape{700, 3000}}) {
    const Tensor x = vt_test::random_tensor(f32, shape, 0, 1, 21);
    for (int axis = 0; axis < shape.rank(); ++axis)
      expect_same(
          [&](std::span<const Tensor> a) -> Tensors {
            return {sum(a[0], axis), mean(a[0] * a[0], axis)};
          },
          {x}, {.ulps = 8}, "sum of " + shape.str());
    expect_same([&](std::span<const Tensor> a) -> Tensors { return {sum(a[0])}; }, {x}, {.ulps = 8},
                "sum of all of " + shape.str());
  }
}

TEST(JitRules, ShapeOpsBecomeIndexMaps) {
  const Tensor a = vt_test::random_tensor(f32, {37, 41}, 31),
               b = vt_test::random_tensor(f32, {37, 41}, 32),
               v = vt_test::random_tensor(f32, {41}, 33);
  const Tensor cube = vt_test::random_tensor(f32, {6, 10, 32}, 34);
  const auto same = [&](const char* what, const Tensors& arguments,
                        const vt::detail::FlatFunction& f) {
    expect_same(f, arguments, vt_test::exact, what);
  };
  using S = std::span<const Tensor>;
  same("transpose", {a}, [](S t) -> Tensors { return {transpose(t[0]) + 1, transpose(t[0]) * 2}; });
  same("transpose of a cube", {cube}, [](S t) -> Tensors {
    return {transpose(t[0], {2, 0, 1}) + 1, transpose(t[0], {1, 0, 2}) + 1};
  });
  same("reshape of a transpose", {a},
       [](S t) -> Tensors { return {reshape(transpose(t[0]), {37, 41}) + t[0]}; });
  same("reshapes with divisions", {cube}, [](S t) -> Tensors {
    return {reshape(transpose(t[0], {1, 0, 2}), {60, 32}) * 2,
            reshape(reshape(t[0], {15, 128}) + 1, {1920})};
  });
  same("broadcasts", {a, v}, [](S t) -> Tensors {
    return {t[0] + t[1], reshape(t[1], {41, 1}) * t[1], broadcast_to(t[1], {5, 3, 41}) + 1};
  });
  same("slices", {a}, [](S t) -> Tensors {
    return {slice(t[0], {3, 1}, {37, 40}, {2, 3}) + 1, flip(t[0]) - t[0], flip(t[0], 1) + 1};
  });
  same("concatenate", {a, b}, [](S t) -> Tensors {
    return {concatenate({t[0], t[1]}, 0) + 1, concatenate({t[0], t[1] * 2}, 1)};
  });
  same("concatenate many", {a, b}, [](S t) -> Tensors {
    return {concatenate({t[0], t[1] * 2, t[0], t[1], t[0] + t[1], t[0]}, 1),
            stack({t[0], t[1], t[0], t[1], t[1], t[0] - 1}, 0)};
  });
  same("pad", {a}, [](S t) -> Tensors {
    return {pad(t[0], {{1, 2}, {3, -4}}, 7), pad(t[0], 1.5, {0, 2}, {0, 1}, {1, 2}) + 1};
  });
  same("roll and tile", {a}, [](S t) -> Tensors {
    return {roll(t[0], 5, 1) + 1, tile(t[0], {2, 3}), repeat(t[0], 3, 1)};
  });
  same("take", {a}, [](S t) -> Tensors {
    return {take(t[0], arange(50) * 3 - 20, 0), take(t[0], arange(50) - 9, 1),
            t[0][arange(7) * 5] * 2};
  });
  same("iota", {a}, [](S t) -> Tensors {
    return {t[0] + arange(41).astype(f32), t[0] * iota(f32, {37, 41}, 0), iota(i8, {300}, 0),
            iota(f16, {3, 50}, 1) + 0.5};
  });
  same("triangles", {a}, [](S t) -> Tensors {
    return {tril(t[0]), triu(t[0], 2), eye(37, 41) + t[0], diagonal(t[0]) * 2};
  });
  same("windows", {cube}, [](S t) -> Tensors {
    return {dynamic_slice(t[0], {arange(7)[2], arange(99)[50], arange(3)[1]}, {2, 4, 16}) + 1,
            dynamic_update_slice(t[0], slice(t[0], {0, 0, 0}, {2, 10, 32}) * 0 + 5,
                                 {arange(3)[1], arange(3)[0], arange(3)[0]})};
  });
}

// Padding and concatenation along every axis, put together in sections: of whole vectors and of odd
// lengths, with gaps, overlaps and empty parts; read along the rows and across them.
TEST(JitRules, SectionsOverDtypesAndAxes) {
  using S = std::span<const Tensor>;
  for (DType d : {f32, f64, i8, bool_, f16})
    for (const std::int64_t length : d == f32 ? std::vector<std::int64_t>{16, 64, 13, 1, 201}
                                              : std::vector<std::int64_t>{32, 13, 150}) {
      const std::string what = std::string(vt::name_of(d)) + " parts of " + std::to_string(length);
      for (int axis : {0, 1, 2}) {
        Shape shape{5, 7, 33};
        shape[axis] = length;
        const Tensor x = vt_test::random_tensor(d, shape, -9, 9, 1),
                     y = vt_test::random_tensor(d, shape, -9, 9, 2);
        const auto at = [&](const Tensor& part, std::int64_t low, std::int64_t all) {
          std::vector<std::pair<std::int64_t, std::int64_t>> edges(3);
          edges[axis] = {low, all - low - part.shape()[axis]};
          return pad(part, edges, full({}, 0, d));
        };
        const auto none = [&](const Tensor& part) {
          Shape end = part.shape();
          end[axis] = 0;
          return slice(part, Shape::filled(3, 0), end);
        };
        expect_same(
            [&](S t) -> Tensors {
              const std::int64_t n = 4 * length;
              const auto both = [&](const Tensor& a, const Tensor& b) {
                return d == bool_ ? a | b : a + b;
              };
              const Tensor sum = both(both(at(t[0], 0, n), at(t[1], length, n)),
                                      at(where(t[0] > t[1], t[0], t[1]), 3 * length, n));
              return {sum,
                      transpose(sum, {2, 1, 0}),
                      transpose(sum, {0, 2, 1}),
                      both(at(t[0], 3, n + 4), at(t[1], length / 2, n + 4)),
                      concatenate({t[0], none(t[0]), t[1], sum}, axis),
                      transpose(concatenate({sum, t[0]}, axis), {2, 0, 1})};
            },
            {x, y}, vt_test::exact, what + " along axis " + std::to_string(axis));
      }
    }
}

TEST(JitRules, FusedReductions) {
  using S = std::span<const Tensor>;
  const Tensor a = vt_test::random_tensor(f32, {300, 70}, 41),
               w = vt_test::random_tensor(f32, {70}, 42);
  const auto same = [&](const char* what, const Tensors& arguments,
                        const vt::detail::FlatFunction& f) {
    expect_same(f, arguments, {.ulps = 4, .absolute = 2e-5}, what);
  };
  same("softmax", {a}, [](S t) -> Tensors { return {softmax(t[0]), log_softmax(t[0], 0)}; });
  same("layer norm", {a, w}, [](S t) -> Tensors { return {layer_norm(t[0], t[1], t[1] + 1)}; });
  same("variances", {a}, [](S t) -> Tensors { return {var(t[0], 0), var(t[0], 1), var(t[0])}; });
  same("group norm",
       {vt_test::random_tensor(f32, {2, 5, 5, 90}, 43), vt_test::random_tensor(f32, {90}, 44)},
       [](S t) -> Tensors { return {group_norm(t[0], 3, t[1], t[1])}; });
  same("logsumexp", {a},
       [](S t) -> Tensors { return {logsumexp(t[0], 1), logsumexp(t[0], 0), logsumexp(t[0])}; });
  same("two reductions of one chain", {a}, [](S t) -> Tensors {
    const Tensor y = exp(t[0]) * 0.5;
    return {y, sum(y, 1) / 70, max(y, 1)};
  });
  // A stored value may be laid over an operand that another stored value of the same loop still
  // needs.
  same("results over operands", {a}, [](S t) -> Tensors {
    const Tensor e = tanh(t[0]), f = tanh(t[0] * 2);
    const Tensor g = e * f, h = f - e;
    return {sum(g, 1), sum(g * 2, 0), sum(h, 1), exp(g) + h, exp(h) - g};
  });
  same("products of reductions", {a}, [](S t) -> Tensors {
    return {mean(t[0] * t[0], 0) * sum(t[0], 0), sum(t[0] * sum(t[0], 1, true), 0) / 300};
  });
}

}  // namespace
