// Reductions, argmax and argmin, general reduce and the cumulative ops,
// against sums over explicit multi-indices.
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "support/run_op.hpp"

namespace {

using vt::Axes;
using vt::DType;
using vt::Shape;
using vt::Tensor;
using vt_test::make_tensor;
using vt_test::run_op;
using namespace vt::detail;

const double inf = std::numeric_limits<double>::infinity(),
             nan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::int64_t> unravel(std::int64_t flat, const Shape& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

/// Elements of each lane in row-major order, by the index along the axes that stay; lanes
/// themselves in row-major order.
template <class T>
std::vector<std::vector<T>> lanes_of(const std::vector<T>& values, const Shape& shape,
                                     const Axes& axes) {
  std::map<std::vector<std::int64_t>, std::vector<T>> lanes;
  Shape kept;
  for (int a = 0; a < shape.rank(); ++a)
    if (!axes.contains(a)) kept.push_back(shape[a]);
  for (std::int64_t i = 0; i < kept.elements(); ++i) lanes[unravel(i, kept)];
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<std::int64_t> key;
    const auto index = unravel(static_cast<std::int64_t>(i), shape);
    for (int a = 0; a < shape.rank(); ++a)
      if (!axes.contains(a)) key.push_back(index[a]);
    lanes[key].push_back(values[i]);
  }
  std::vector<std::vector<T>> result;
  for (auto& [key, lane] : lanes) result.push_back(std::move(lane));
  return result;
}

struct Case {
  Shape shape;
  Axes axes;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{{}, {}},
                                        {{1}, {0}},
                                        {{3}, {0}},
                                        {{17}, {0}},
                                        {{17}, {}},
                                        {{3, 17}, {0}},
                                        {{3, 17}, {1}},
                                        {{3, 17}, {0, 1}},
                                        {{2, 3, 5}, {1}},
                                        {{2, 3, 5}, {0, 2}},
                                        {{2, 3, 5}, {2}},
                                        {{4, 1, 3, 1}, {1, 2}},
                                        {{2, 1, 3, 2, 2}, {0, 2, 4}},
                                        {{3, 0}, {0}},
                                        {{0, 3}, {1}},
                                        {{17, 4}, {0}}};
  return all;
}
const std::vector<Case>& empty_lanes() {
  static const std::vector<Case> all = {{{0}, {0}}, {{3, 0}, {1}}, {{0, 2}, {0}}, {{0, 2}, {0, 1}}};
  return all;
}

template <class T>
std::vector<T> int_elements(const Tensor& t) {
  return t.to_vector<T>();
}

TEST(InterpreterReduce, IntegerSumsAndProductsWrap) {
  for (DType dtype : vt_test::int_dtypes)
    for (const auto& list : {cases(), empty_lanes()})
      for (const Case& c : list) {
        const Tensor x = vt_test::random_tensor(dtype, c.shape, -100, 100, 3);
        const AxesParams params{c.axes};
        const auto lanes = lanes_of(x.to_vector<std::int64_t>(), c.shape, c.axes);
        const auto sums = run_op(Op::reduce_sum, params, {x}),
                   prods = run_op(Op::reduce_prod, params, {x});
        ASSERT_EQ(sums.dtype(), dtype);
        with_type(dtype, [&](auto tag) {
          using T = decltype(tag);
          if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            const auto s = sums.to_vector<T>(), p = prods.to_vector<T>();
            ASSERT_EQ(s.size(), lanes.size());
            for (std::size_t i = 0; i < lanes.size(); ++i) {
              std::uint64_t sum = 0, prod = 1;
              for (auto v : lanes[i])
                sum += static_cast<std::uint64_t>(v), prod *= static_cast<std::uint64_t>(v);
              EXPECT_EQ(s[i], static_cast<T>(sum));
              EXPECT_EQ(p[i], static_cast<T>(prod));
            }
          }
        });
      }
}

TEST(InterpreterReduce, FloatSumsAndProductsAreRoundedOnce) {
  for (DType dtype : vt_test::float_dtypes)
    for (const auto& list : {cases(), empty_lanes()})
      for (const Case& c : list) {
        const Tensor x = vt_test::random_tensor(dtype, c.shape, 0.5, 1.5, 3);
        const auto lanes = lanes_of(x.to_vector<double>(), c.shape, c.axes);
        const auto s = run_op(Op::reduce_sum, AxesParams{c.axes}, {x}).to_vector<double>();
        const auto p = run_op(Op::reduce_prod, AxesParams{c.axes}, {x}).to_vector<double>();
        ASSERT_EQ(s.size(), lanes.size());
        for (std::size_t i = 0; i < lanes.size(); ++i) {
          long double sum = 0, prod = 1;
          for (double v : lanes[i]) sum += v, prod *= v;
          EXPECT_LE(std::fabs(s[i] - sum),
                    0.501 * vt_test::ulp_of(static_cast<double>(sum), dtype));
          EXPECT_LE(std::fabs(p[i] - prod), (dtype == vt::f64 ? 17 : 0.501) *
                                                vt_test::ulp_of(static_cast<double>(prod), dtype));
        }
      }
}

TEST(InterpreterReduce, SumsKeepWhatCancels) {
  const AxesParams all{Axes(0)};
  EXPECT_EQ(run_op(Op::reduce_sum, all, {vt::tensor({1.0, 1e100, 1.0, -1e100})}).item<double>(),
            2.0);
  EXPECT_EQ(run_op(Op::reduce_sum, all, {vt::tensor({1.0f, 1e8f, 1.0f, -1e8f})}).item<float>(),
            2.0f);
  // 4096 halves of the last bit: a running f32 sum would stay at 2^24.
  std::vector<float> values(4097, 1.0f);
  values[0] = 0x1p24f;
  EXPECT_EQ(run_op(Op::reduce_sum, all, {vt::tensor(values)}).item<float>(), 0x1p24f + 4096);
  EXPECT_EQ(
      run_op(Op::reduce_sum, all, {make_tensor(vt::f16, {3000}, std::vector<double>(3000, 1.0))})
          .item<double>(),
      3000.0);
  for (DType dtype : vt_test::float_dtypes) {
    auto sum = [&](std::vector<double> v) {
      return run_op(Op::reduce_sum, all, {make_tensor(dtype, {v.size()}, v)}).item<double>();
    };
    EXPECT_EQ(sum({inf, 1, 2}), inf);
    EXPECT_EQ(sum({1, -inf, 2}), -inf);
    EXPECT_TRUE(std::isnan(sum({inf, -inf})));
    EXPECT_TRUE(std::isnan(sum({1, nan, 2})));
  }
}

TEST(InterpreterReduce, ExtremaAndTheirPlaces) {
  for (DType dtype : vt_test::all_dtypes)
    for (const Case& c : cases()) {
      const Tensor x = vt_test::random_tensor(dtype, c.shape, -3, 3, 9);
      const auto lanes = lanes_of(x.to_vector<double>(), c.shape, c.axes);
      const auto most = run_op(Op::reduce_max, AxesParams{c.axes}, {x}),
                 least = run_op(Op::reduce_min, AxesParams{c.axes}, {x});
      ASSERT_EQ(most.dtype(), dtype);
      const auto high = most.to_vector<double>(), low = least.to_vector<double>();
      ASSERT_EQ(high.size(), lanes.size());
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        EXPECT_EQ(high[i], *std::max_element(lanes[i].begin(), lanes[i].end()));
        EXPECT_EQ(low[i], *std::min_element(lanes[i].begin(), lanes[i].end()));
      }
      if (c.axes.size() != 1) continue;
      for (DType index : {vt::i32, vt::i64, vt::u8}) {
        const auto first_high = run_op(Op::argmax, ArgParams{c.axes[0], index}, {x}),
                   first_low = run_op(Op::argmin, ArgParams{c.axes[0], index}, {x});
        EXPECT_EQ(first_high.dtype(), index);
        const auto where_high = first_high.to_vector<std::int64_t>(),
                   where_low = first_low.to_vector<std::int64_t>();
        for (std::size_t i = 0; i < lanes.size(); ++i) {
          EXPECT_EQ(where_high[i],
                    std::max_element(lanes[i].begin(), lanes[i].end()) - lanes[i].begin());
          EXPECT_EQ(where_low[i],
                    std::min_element(lanes[i].begin(), lanes[i].end()) - lanes[i].begin());
        }
      }
    }
}

TEST(InterpreterReduce, NaNWins) {
  for (DType dtype : vt_test::float_dtypes) {
    const Tensor x = make_tensor(dtype, {3, 4}, {1, nan, 5, nan, 2, 2, 2, 2, -inf, 7, 7, inf});
    const AxesParams rows{Axes(1)};
    auto check = [](const Tensor& t, std::vector<double> expected) {
      vt_test::expect_close(t, make_tensor(t.dtype(), {3}, expected));
    };
    check(run_op(Op::reduce_max, rows, {x}), {nan, 2, inf});
    check(run_op(Op::reduce_min, rows, {x}), {nan, 2, -inf});
    check(run_op(Op::argmax, ArgParams{1, vt::i32}, {x}), {1, 0, 3});
    check(run_op(Op::argmin, ArgParams{1, vt::i32}, {x}), {1, 0, 0});
  }
}

TEST(InterpreterReduce, AnyAndAll) {
  for (const auto& list : {cases(), empty_lanes()})
    for (const Case& c : list)
      for (std::uint64_t seed : {1, 2, 3}) {
        const Tensor x = vt_test::random_tensor(vt::bool_, c.shape, 0, 1, seed);
        const auto lanes = lanes_of(x.to_vector<std::int64_t>(), c.shape, c.axes);
        const auto any = run_op(Op::reduce_any, AxesParams{c.axes}, {x}).to_vector<bool>();
        const auto all = run_op(Op::reduce_all, AxesParams{c.axes}, {x}).to_vector<bool>();
        ASSERT_EQ(any.size(), lanes.size());
        for (std::size_t i = 0; i < lanes.size(); ++i) {
          EXPECT_EQ(any[i], std::count(lanes[i].begin(), lanes[i].end(), 1) > 0);
          EXPECT_EQ(all[i], std::count(lanes[i].begin(), lanes[i].end(), 0) == 0);
        }
      }
}

// --- general reduce ------------------------------------------------------------------------------

/// A body of binary ops on scalars: rows of (op, first input, second input), numbered inputs first.
GraphRef body_of(std::vector<DType> inputs, const std::vector<std::tuple<Op, Var, Var>>& rows,
                 const vt::Vec<Var>& outputs) {
  auto body = std::make_shared<GraphBody>();
  for (DType d : inputs) body->inputs.push_back(body->fresh(Aval(d, Shape{})));
  for (const auto& [op, a, b] : rows) {
    Equation e;
    e.op = op;
    e.inputs = {a, b};
    const Aval *x = &body->aval(a), *y = &body->aval(b);
    const Aval* avals[] = {x, y};
    const Aval out = infer(op, {}, avals, {})[0];
    e.outputs = {body->fresh(out)};
    body->equations.push_back(e);
  }
  body->outputs = outputs;
  return body;
}

TEST(InterpreterReduce, GeneralReduceRunsItsBodyInRowMajorOrder) {
  // acc − x: neither associative nor commutative, so that the order shows.
  for (DType dtype : {vt::i32, vt::u8, vt::f32, vt::f64, vt::f16})
    for (const auto& list : {cases(), empty_lanes()})
      for (const Case& c : list) {
        const Tensor x = vt_test::random_tensor(dtype, c.shape, 0, 4, 6),
                     init = make_tensor(dtype, {}, {100});
        const GraphRef body = body_of({dtype, dtype}, {{Op::sub, 0, 1}}, {2});
        const Tensor y = run_op(Op::reduce, ReduceParams{c.axes, body}, {x, init});
        const auto lanes = lanes_of(x.to_vector<double>(), c.shape, c.axes);
        const auto out = y.to_vector<double>();
        ASSERT_EQ(out.size(), lanes.size());
        for (std::size_t i = 0; i < lanes.size(); ++i) {
          double expected = 100;
          for (double v : lanes[i])
            expected = make_tensor(dtype, {}, {expected - v}).item<double>();
          EXPECT_EQ(out[i], expected) << vt::name_of(dtype);
        }
      }
}

TEST(InterpreterReduce, GeneralReduceOfTwoOperands) {
  // (m, s), (x, y) → (max(m, x), s + m·y): the second result uses the first one's running value.
  const GraphRef body = body_of({vt::f64, vt::i32, vt::f64, vt::i32},
                                {{Op::max, 0, 2}, {Op::mul, 1, 3}, {Op::add, 5, 3}}, {4, 6});
  const Tensor x = vt::tensor({{1.0, 5.0, 2.0}, {-1.0, -7.0, -3.0}}),
               y = vt::tensor({{1, 2, 3}, {4, 5, 6}});
  const auto out = vt_test::run_op_all(Op::reduce, make_params(ReduceParams{Axes(1), body}),
                                       {x, y, vt::tensor(-2.0), vt::tensor(1)});
  EXPECT_EQ(out[0].to_vector<double>(), (std::vector<double>{5, -1}));
  auto fold = [](int a, int b, int c) {
    int s = 1;
    for (int v : {a, b, c}) s = s * v + v;
    return s;
  };
  EXPECT_EQ(out[1].to_vector<int>(), (std::vector<int>{fold(1, 2, 3), fold(4, 5, 6)}));
}

// --- cumulative ----------------------------------------------------------------------------------

TEST(InterpreterCumulative, EveryOpAxisAndDirection) {
  using Fold = std::function<double(double, double)>;
  const std::vector<std::pair<Op, Fold>> ops = {
      {Op::cumsum, [](double a, double b) { return a + b; }},
      {Op::cumprod, [](double a, double b) { return a * b; }},
      {Op::cummax, [](double a, double b) { return std::max(a, b); }},
      {Op::cummin, [](double a, double b) { return std::min(a, b); }}};
  for (const auto& [op, fold] : ops)
    for (DType dtype : vt_test::all_dtypes) {
      if (vt::is_bool(dtype) && (op == Op::cumsum || op == Op::cumprod)) {
        EXPECT_THROW(run_op(op, CumulativeParams{}, {vt::tensor({true})}), vt::Error);
        continue;
      }
      for (const Shape& shape : {Shape{1}, {3}, {17}, {0}, {2, 0}, {0, 2}, {3, 4}, {2, 3, 4}})
        for (int axis = 0; axis < shape.rank(); ++axis)
          for (bool reverse : {false, true}) {
            // Numbers whose prefix sums and products are exact in every dtype, or wrap.
            const Tensor x =
                vt_test::random_tensor(vt::is_float(dtype) ? vt::i8 : dtype, shape, 1, 2, 12);
            const Tensor typed =
                vt::is_float(dtype) ? make_tensor(dtype, shape, x.to_vector<double>()) : x;
            const Tensor y = run_op(op, CumulativeParams{axis, reverse}, {typed});
            ASSERT_EQ(y.shape(), shape);
            auto in = lanes_of(typed.to_vector<double>(), shape, Axes(axis)),
                 out = lanes_of(y.to_vector<double>(), shape, Axes(axis));
            for (std::size_t lane = 0; lane < in.size(); ++lane) {
              if (reverse)
                std::reverse(in[lane].begin(), in[lane].end()),
                    std::reverse(out[lane].begin(), out[lane].end());
              double expected = 0;
              for (std::size_t i = 0; i < in[lane].size(); ++i) {
                expected = i == 0 ? in[lane][0] : fold(expected, in[lane][i]);
                const double narrow =
                    vt::is_float(dtype) ? make_tensor(dtype, {}, {expected}).item<double>()
                                        : run_op(Op::convert, ConvertParams{dtype},
                                                 {vt::tensor(static_cast<std::int64_t>(expected))})
                                              .item<double>();
                EXPECT_EQ(out[lane][i], narrow)
                    << name_of(op) << " " << vt::name_of(dtype) << shape.str() << " axis " << axis;
              }
            }
          }
    }
}

TEST(InterpreterCumulative, NaNStays) {
  const Tensor x = vt::tensor({1.0, 3.0, nan, 2.0, inf});
  for (Op op : {Op::cumsum, Op::cumprod, Op::cummax, Op::cummin, Op::cumlogsumexp}) {
    const auto y = run_op(op, CumulativeParams{0, false}, {x}).to_vector<double>();
    EXPECT_FALSE(std::isnan(y[1])) << name_of(op);
    for (std::size_t i = 2; i < 5; ++i) EXPECT_TRUE(std::isnan(y[i])) << name_of(op);
  }
}

TEST(InterpreterCumulative, SumsOfManyAreExact) {
  std::vector<float> values(5000, 0.1f);
  const auto y =
      run_op(Op::cumsum, CumulativeParams{0, false}, {vt::tensor(values)}).to_vector<float>();
  for (std::size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(y[i],
              static_cast<float>(static_cast<long double>(0.1f) * static_cast<long double>(i + 1)));
}

TEST(InterpreterCumulative, LogSumExp) {
  for (DType dtype : vt_test::float_dtypes)
    for (bool reverse : {false, true}) {
      const Tensor x = vt_test::random_tensor(dtype, {3, 17, 2}, -20, 20, 14);
      const Tensor y = run_op(Op::cumlogsumexp, CumulativeParams{1, reverse}, {x});
      auto in = lanes_of(x.to_vector<double>(), x.shape(), Axes(1)),
           out = lanes_of(y.to_vector<double>(), x.shape(), Axes(1));
      for (std::size_t lane = 0; lane < in.size(); ++lane) {
        if (reverse)
          std::reverse(in[lane].begin(), in[lane].end()),
              std::reverse(out[lane].begin(), out[lane].end());
        long double sum = 0;
        for (std::size_t i = 0; i < in[lane].size(); ++i) {
          sum += expl(in[lane][i]);
          const auto expected = static_cast<double>(logl(sum));
          EXPECT_NEAR(out[lane][i], expected,
                      dtype == vt::f64 ? 1e-14 * (1 + std::fabs(expected))
                                       : 0.501 * vt_test::ulp_of(expected, dtype));
        }
      }
    }
  auto run = [](std::vector<double> v) {
    return run_op(Op::cumlogsumexp, CumulativeParams{0, false}, {vt::tensor(v)})
        .to_vector<double>();
  };
  EXPECT_EQ(run({-inf, -inf}), (std::vector<double>{-inf, -inf}));
  EXPECT_EQ(run({-inf, 3, -inf}), (std::vector<double>{-inf, 3, 3}));
  EXPECT_EQ(run({inf, inf, 1}), (std::vector<double>{inf, inf, inf}));
  EXPECT_EQ(run({1, inf}), (std::vector<double>{1, inf}));
  const auto large = run({1000, 1000, 1000});  // exp(1000) overflows
  EXPECT_DOUBLE_EQ(large[2], 1000 + std::log(3.0));
}

}  // namespace
