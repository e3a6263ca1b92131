// Reductions over windows and pools against plain loops; first extremes have the derivative; counts
// of what lies in the padding.
#include <gtest/gtest.h>

#include <vt/vt.hpp>

#include "support/property.hpp"

namespace {

using namespace vt;
using vt_test::expect_close;
using vt_test::random_quarters;
using vt_test::random_tensor;
using Numbers = std::vector<double>;

/// The elements that each window takes, as offsets in x, −1 for padding and gaps; in row-major
/// order of windows and of their elements.
std::vector<std::vector<std::int64_t>> windows_of(const Shape& x, const WindowOptions& o,
                                                  const Padding::Edges& edges, Shape* result) {
  const std::size_t n = x.size();
  const auto number = [&](const Shape& s, std::size_t k) {
    return s.empty() ? 1 : s.size() == 1 ? s[0] : s[k];
  };
  Shape sizes;
  *result = {};
  for (std::size_t k = 0; k < n; ++k) {
    sizes.push_back(number(o.window, k));
    const std::int64_t room = (x[k] == 0 ? 0 : (x[k] - 1) * number(o.base_dilation, k) + 1) +
                              edges[k].first + edges[k].second;
    const std::int64_t reach = (sizes[k] - 1) * number(o.window_dilation, k) + 1;
    result->push_back(room < reach ? 0 : (room - reach) / number(o.strides, k) + 1);
  }
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t r = 0; r < result->elements(); ++r) {
    all.emplace_back();
    for (std::int64_t w = 0; w < sizes.elements(); ++w) {
      std::int64_t flat = 0, step = 1, to = r, place = w;
      bool inside = true;
      for (std::size_t k = n; k-- > 0;) {
        const std::int64_t at = to % (*result)[k] * number(o.strides, k) +
                                place % sizes[k] * number(o.window_dilation, k) - edges[k].first;
        to /= (*result)[k], place /= sizes[k];
        inside = inside && at >= 0 && at % number(o.base_dilation, k) == 0 &&
                 at / number(o.base_dilation, k) < x[k];
        flat += at / number(o.base_dilation, k) * step;
        step *= x[k];
      }
      all.back().push_back(inside ? flat : -1);
    }
  }
  return all;
}

struct Problem {
  Shape x;
  WindowOptions options;
  Padding::Edges edges;
};
std::vector<Problem> problems() {
  std::vector<Problem> all;
  const auto add = [&](const Shape& x, WindowOptions o, const Padding::Edges& edges) {
    o.padding = edges;
    all.push_back({x, o, edges});
  };
  add({7}, {.window = {3}}, {{0, 0}});
  add({7}, {.window = {3}, .strides = {2}, .window_dilation = {2}}, {{1, 2}});
  add({2, 5, 6, 3}, {.window = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}},
      {{0, 0}, {0, 0}, {0, 0}, {0, 0}});
  add({2, 5, 6, 3}, {.window = {1, 3, 3, 1}, .strides = {1, 2, 1, 1}},
      {{0, 0}, {1, 1}, {0, 2}, {0, 0}});
  add({4, 5}, {.window = {2, 3}, .base_dilation = {2, 1}, .window_dilation = {1, 2}},
      {{1, 0}, {2, 2}});
  add({6, 4}, {.window = {2}}, {{-1, -2}, {1, -1}});
  add({3, 3, 19}, {.window = {2, 1, 4}, .strides = {1, 2, 3}}, {{1, 1}, {0, 0}, {0, 1}});
  add({2, 3}, {.window = {3, 1}}, {{0, 0}, {0, 0}});  // none fits
  add({0, 3}, {.window = {2, 2}}, {{1, 1}, {0, 0}});
  return all;
}

template <class F>
Tensor folded(const Problem& p, const Tensor& x, double start, F&& f) {
  Shape shape;
  const auto windows = windows_of(p.x, p.options, p.edges, &shape);
  const Numbers a = x.to_vector<double>();
  Numbers y;
  for (const auto& w : windows) {
    double sum = start;
    for (std::int64_t at : w)
      if (at >= 0) sum = f(sum, a[at]);
    y.push_back(sum);
  }
  return vt::tensor(y, shape);
}

TEST(ReduceWindow, EveryReductionAgainstLoops) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::uint64_t seed = 1;
  for (const Problem& p : problems())
    for (DType d : {f32, f64, i32, f16}) {
      const Tensor x =
          is_float(d) ? random_quarters(d, p.x, ++seed) : random_tensor(d, p.x, -9, 9, ++seed);
      const Tensor signs = where(x > 0, 1, -2).astype(d);
      const double low = is_float(d) ? -inf : -2147483648.0,
                   high = is_float(d) ? inf : 2147483647.0;
      const auto check = [&](WindowReduction r, const Tensor& t, double start, auto&& f) {
        const auto compiled = jit([&](const Tensor& u) { return reduce_window(u, r, p.options); });
        const Tensor expected = folded(p, t, start, f).astype(d);
        for (int run = 0; run < 2; ++run)
          expect_close(compiled(t), expected, {},
                       p.x.str() + " " + std::to_string(static_cast<int>(r)));
      };
      check(WindowReduction::sum, x, 0, [](double a, double b) { return a + b; });
      check(WindowReduction::prod, signs, 1, [](double a, double b) { return a * b; });
      check(WindowReduction::max, x, low, [](double a, double b) { return std::max(a, b); });
      check(WindowReduction::min, x, high, [](double a, double b) { return std::min(a, b); });
      const auto own = jit([&](const Tensor& u) {
        return reduce_window(u, -100, [](Tensor a, Tensor b) { return maximum(a, b); }, p.options);
      });
      const Tensor expected =
          folded(p, x, -100, [](double a, double b) { return std::max(a, b); }).astype(d);
      for (int run = 0; run < 2; ++run) expect_close(own(x), expected, {}, p.x.str());
    }
}

TEST(ReduceWindow, AnyAllAndWideIntegers) {
  const Tensor x = tensor({true, false, false, true, true});
  EXPECT_EQ(reduce_window(x, WindowReduction::any, {.window = {2}}).to_vector<int>(),
            (std::vector<int>{1, 0, 1, 1}));
  EXPECT_EQ(
      reduce_window(x, WindowReduction::all, {.window = {2}, .padding = "SAME"}).to_vector<int>(),
      (std::vector<int>{0, 0, 0, 1, 1}));
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(reduce_window(tensor({least, least + 1}), WindowReduction::max,
                          {.window = {2}, .padding = {{1, 0}}})
                .to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{least, least + 1}));
  EXPECT_EQ(reduce_window(tensor(std::vector<std::uint64_t>{~0ull}), WindowReduction::min,
                          {.window = {2}, .padding = {{1, 0}}})
                .item<std::uint64_t>(),
            ~0ull);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(
      std::isnan(reduce_window(tensor({1.0f, nan, 3.0f}), WindowReduction::max, {.window = {3}})
                     .item<float>()));
}

TEST(Pools, AreReductionsOfSpatialAxes) {
  const Tensor x = random_quarters(f32, {2, 7, 6, 3}, 1);
  const WindowOptions o{.window = {1, 3, 2, 1}, .strides = {1, 3, 2, 1}, .padding = "SAME"};
  expect_close(max_pool(x, {.window = {3, 2}, .padding = "SAME"}),
               reduce_window(x, WindowReduction::max, o));
  expect_close(min_pool(x, {.window = {3, 2}, .padding = "SAME"}),
               reduce_window(x, WindowReduction::min, o));
  expect_close(avg_pool(x, {.window = {3, 2}, .padding = "SAME", .count_include_pad = true}),
               reduce_window(x, WindowReduction::sum, o) / 6.0);
  expect_close(avg_pool(x, {.window = {3, 2}, .padding = "SAME"}),
               reduce_window(x, WindowReduction::sum, o) /
                   reduce_window(ones_like(x), WindowReduction::sum, o));
  // One image, channels first, one number, strides of their own, integers.
  expect_close(max_pool(x[0], {.window = {2, 2}}), max_pool(x, {.window = {2, 2}})[0]);
  expect_close(max_pool(transpose(x, {0, 3, 1, 2}), {.window = {2, 2}, .layout = "NCHW"}),
               transpose(max_pool(x, {.window = {2}}), {0, 3, 1, 2}));
  EXPECT_EQ(max_pool(x, {.window = {3}, .strides = {1}}).shape(), (Shape{2, 5, 4, 3}));
  EXPECT_EQ(max_pool(x, {.window = {2}, .strides = {1}, .dilation = {3, 2}}).shape(),
            (Shape{2, 4, 4, 3}));
  EXPECT_EQ(max_pool(x.astype(i8), {.window = {2}}).dtype(), i8);
  EXPECT_EQ(avg_pool(x.astype(i8), {.window = {2}}).dtype(), f32);
  EXPECT_EQ(avg_pool(x.astype(f16), {.window = {2}}).dtype(), f16);
}

TEST(Pools, TheFirstExtremeElementHasTheDerivative) {
  const Tensor x = tensor({{1.0, 3.0, 3.0, 0.0}, {3.0, 2.0, 3.0, 3.0}});
  const auto total = [](const Tensor& t) {
    return sum(reduce_window(t, WindowReduction::max, {.window = {2, 2}, .strides = {2, 2}}) *
               tensor({{1.0, 10.0}}));
  };
  EXPECT_EQ(grad(total)(x).to_vector<double>(), (Numbers{0, 1, 10, 0, 0, 0, 0, 0}));
  const auto least = [](const Tensor& t) {
    return sum(min_pool(t, {.window = {2}, .strides = {1}}));
  };
  EXPECT_EQ(grad(least)(tensor({{5.0}, {2.0}, {2.0}, {2.0}, {7.0}})).to_vector<double>(),
            (Numbers{0, 2, 1, 1, 0}));
  // NaN wins, the first of them; an edge that is all there is has no derivative to give.
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               inf = std::numeric_limits<double>::infinity();
  const auto of = [](const Tensor& t) {
    return sum(reduce_window(t, WindowReduction::max, {.window = {3}, .strides = {3}}));
  };
  EXPECT_EQ(grad(of)(tensor({1.0, nan, nan, 2.0, 5.0, 5.0})).to_vector<double>(),
            (Numbers{0, 1, 0, 0, 1, 0}));
  const auto edged = [](const Tensor& t) {
    return sum(reduce_window(t, WindowReduction::max, {.window = {2}, .padding = {{1, 0}}}));
  };
  EXPECT_EQ(grad(edged)(tensor({-inf, 1.0})).to_vector<double>(), (Numbers{0, 1}));
}

/// Distinct numbers with gaps that differences do not cross.
Tensor spaced(const Shape& shape, std::uint64_t seed) {
  Numbers values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(-0.8 + 2.4 * static_cast<double>(i) / static_cast<double>(shape.elements()));
  std::mt19937_64 engine(seed);
  std::shuffle(values.begin(), values.end(), engine);
  return vt::tensor(values, shape);
}

TEST(ReduceWindow, DerivativesOfFirstAndSecondOrder) {
  for (const Problem& p : problems()) {
    const Tensor x = spaced(p.x, 5), d = random_tensor(f64, p.x, -1, 1, 6),
                 e = random_tensor(f64, p.x, -1, 1, 7);
    for (WindowReduction r : {WindowReduction::sum, WindowReduction::prod, WindowReduction::max,
                              WindowReduction::min}) {
      // A curve of the windows, so that second derivatives are there; squares of x in front make
      // prod's inner ones count.
      const auto f = [&](const Tensor& t) {
        const Tensor y = reduce_window(t * t * 0.5 + t, r, p.options);
        return where(abs(y) < 1e3, sin(where(abs(y) < 1e3, y, 0.0)), 0.0);
      };
      const auto first = [&](const Tensor& t) {
        return std::get<1>(jvp(f, std::tuple(t), std::tuple(d)));
      };
      const vt_test::FlatFunction flat = [&](const std::vector<Tensor>& a) {
        return std::vector<Tensor>{f(a[0])};
      };
      const vt_test::FlatFunction flat_first = [&](const std::vector<Tensor>& a) {
        return std::vector<Tensor>{first(a[0])};
      };
      expect_close(first(x), vt_test::difference(flat, {x}, {d})[0],
                   {.relative = 1e-7, .absolute = 1e-8}, p.x.str());
      const Tensor second = std::get<1>(jvp(first, std::tuple(x), std::tuple(e)));
      expect_close(second, vt_test::difference(flat_first, {x}, {e})[0],
                   {.relative = 1e-6, .absolute = 1e-7}, p.x.str());
      const Tensor w = random_tensor(f64, f(x).shape(), -1, 1, 8);
      const auto pulled = [&](const Tensor& t) {
        return grad([&](const Tensor& u) { return sum(f(u) * w); })(t);
      };
      EXPECT_NEAR(vt_test::inner_product({pulled(x)}, {d}), vt_test::inner_product({w}, {first(x)}),
                  1e-10);
      // Reverse over reverse.
      const Tensor hessian_e = grad([&](const Tensor& t) { return sum(pulled(t) * e); })(x);
      EXPECT_NEAR(vt_test::inner_product({hessian_e}, {d}), vt_test::inner_product({w}, {second}),
                  1e-9);
    }
  }
}

TEST(ReduceWindow, VmapEqualsTheLoop) {
  const Tensor x = spaced({2, 5, 4, 6}, 9);
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& t) {
             return reduce_window(t, WindowReduction::max,
                                  {.window = {2, 2, 3}, .strides = {1, 2, 1}, .padding = "SAME"});
           },
           [](const Tensor& t) { return avg_pool(t, {.window = {2}, .padding = "SAME"}); },
           [](const Tensor& t) {
             return grad([](const Tensor& u) {
               return sum(sin(max_pool(u, {.window = {3}, .strides = {2}})));
             })(t);
           },
           [](const Tensor& t) {
             return reduce_window(t, 0.0, [](Tensor a, Tensor b) { return a + b; },
                                  {.window = {2}});
           }})
    for (int axis = 0; axis < 4; ++axis) {
      const Tensor transposed = moveaxis(x, 0, axis);
      expect_close(vmap(f, {.in_axes = {axis}})(transposed), vt_test::stack_loop(f, 0, x),
                   {.relative = 1e-14, .absolute = 1e-15});
    }
}

TEST(ReduceWindow, Refusals) {
  const Tensor x = ones({2, 8, 3}), none;
  struct Case {
    ErrorKind kind;
    std::string part;
    std::function<void()> call;
  };
  const auto shape = ErrorKind::shape, value = ErrorKind::value;
  const auto sum_of = [&](const WindowOptions& o) {
    (void)reduce_window(x, WindowReduction::sum, o);
  };
  const std::vector<Case> cases = {
      {value, "vt::reduce_window: needs the window's size: f32[2,8,3]",
       [&] { sum_of({.window = {}}); }},
      {shape, "vt::reduce_window: the window's size needs 3 numbers, one for each axis, not 2",
       [&] { sum_of({.window = {2, 2}}); }},
      {value, "vt::reduce_window: the window's size must be at least 1, not 0",
       [&] { sum_of({.window = {0}}); }},
      {value, "vt::reduce_window: strides must be at least 1, not -2",
       [&] { sum_of({.window = {2}, .strides = {-2}}); }},
      {value, "vt::reduce_window: base_dilation must be at least 1",
       [&] { sum_of({.window = {2}, .base_dilation = {0}}); }},
      {shape, "vt::reduce_window: padding crops more of axis 0 than there is",
       [&] { sum_of({.window = {1}, .padding = {{-2, -1}, {0, 0}, {0, 0}}}); }},
      {shape, "vt::reduce_window: padding needs 3 pairs",
       [&] { sum_of({.window = {1}, .padding = {{0, 0}}}); }},
      {shape, "vt::max_pool: needs 3 spatial axes and one of channels: f32[2,8,3]",
       [&] { (void)max_pool(x, {.window = {2, 2, 2}}); }},
      {shape, "vt::avg_pool: the layout \"NHWC\" has 4 letters for 3 axes",
       [&] { (void)avg_pool(x, {.window = {2}, .layout = "NHWC"}); }},
      {value, "vt::min_pool: the layout \"NHW\" lacks the letter C",
       [&] { (void)min_pool(x, {.window = {2}, .layout = "NHW"}); }},
      {value, "vt::max_pool: padding must be",
       [&] { (void)max_pool(x, {.window = {2}, .padding = "HALF"}); }},
      {value, "vt::max_pool: an operand is an empty Tensor",
       [&] { (void)max_pool(none, {.window = {2}}); }},
      {shape, "vt::reduce_window: the initial value must be a scalar",
       [&] {
         (void)reduce_window(x, x, [](Tensor a, Tensor b) { return a + b; }, {.window = {2}});
       }},
  };
  for (const Case& c : cases)
    vt_test::expect_error(c.call, c.kind, {c.part, "; at window_test.cpp:"});
}

}  // namespace
