// Rows of a few elements, which lanes put together in their registers: every reduction, scan and
// product of them for every dtype and length, behind one axis and several, equals the
// interpreter's; and which of them run so.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "src/jit/regions/fused_regions.hpp"
#include "src/trace/record/scope.hpp"
#include "src/trace/simplify/simplify.hpp"
#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;
using Flat = vt::detail::FlatFunction;

const vt_test::Tolerance exact{.relative = 0, .absolute = 0},
    close{.relative = 1e-13, .absolute = 1e-13}, close_f32{.relative = 3e-6, .absolute = 1e-6},
    close_half{.relative = 1e-2, .absolute = 2e-3};

const vt_test::Tolerance& tolerance_of(vt::DType d) {
  if (!vt::is_float(d)) return exact;
  return d == vt::f64 ? close : d == vt::f32 ? close_f32 : close_half;
}

/// Numbers some of which are equal, among them zeros of both signs; floats with NaN and infinities
/// if asked for.
Tensor numbers(vt::DType d, const vt::Shape& shape, bool special = false) {
  Tensor x = vt_test::random_tensor(vt::i32, shape, -4, 5, 7).astype(d);
  if (!vt::is_float(d)) return x;
  x = x * 0.375 * vt_test::random_tensor(vt::i32, shape, 0, 2, 8).astype(d);
  if (!special) return x;
  const Tensor kind = vt_test::random_tensor(vt::i32, shape, 0, 40, 9);
  x = vt::where(kind == 0, std::numeric_limits<double>::quiet_NaN(), x);
  return vt::where(kind == 1, std::numeric_limits<double>::infinity(),
                   vt::where(kind == 2, -std::numeric_limits<double>::infinity(), x))
      .astype(d);
}

struct Rows {
  vt::Shape shape;
  int axis;  ///< the rows'
};
const std::vector<Rows> all_rows = {
    {{64, 2}, 1},      {{71, 3}, 1},         {{130, 4}, 1},   {{77, 5}, 1},    {{66, 7}, 1},
    {{200, 8}, 1},     {{65, 12}, 1},        {{99, 17}, 1},   {{70, 32}, 1},   {{9, 11, 5}, 2},
    {{3, 7, 5, 3}, 3}, {{2, 3, 4, 5, 6}, 4}, {{80, 3, 5}, 2}, {{80, 3, 5}, 1}, {{64, 5, 2}, 1}};
/// All of them for f32, which others follow; every fourth for them.
std::vector<Rows> rows_of(vt::DType d) {
  if (d == vt::f32) return all_rows;
  std::vector<Rows> some;
  for (std::size_t i = static_cast<std::size_t>(d) % 4; i < all_rows.size(); i += 4)
    some.push_back(all_rows[i]);
  return some;
}
std::string text_of(vt::DType d, const Rows& r) {
  return vt::name_of(d) + r.shape.str() + " along " + std::to_string(r.axis);
}

const std::vector<vt::DType> dtypes = {vt::f64, vt::f32, vt::f16, vt::bf16, vt::i64,
                                       vt::i32, vt::i8,  vt::u16, vt::u64,  vt::bool_};

TEST(ShortRows, Reductions) {
  for (const vt::DType d : dtypes)
    for (const Rows& r : rows_of(d)) {
      const int k = r.axis;
      const Flat f = [=](In a) -> Tensors {
        Tensors all = {vt::max(a[0], k),      vt::min(a[0], k),    vt::any(a[0] != 0, k),
                       vt::all(a[0] != 0, k), vt::argmax(a[0], k), vt::argmin(a[0], k)};
        if (d == vt::bool_) return all;
        all.push_back(vt::sum(a[0], k));
        all.push_back(vt::prod(a[0], k));
        return all;
      };
      for (const bool special : {false, true})
        if (!special || vt::is_float(d))
          vt_test::expect_same(f, {numbers(d, r.shape, special)}, tolerance_of(d), text_of(d, r));
    }
}

TEST(ShortRows, Scans) {
  for (const vt::DType d : dtypes)
    for (const Rows& r : rows_of(d))
      for (const bool reverse : {false, true}) {
        const int k = r.axis;
        const Flat f = [=](In a) -> Tensors {
          Tensors all = {vt::cummax(a[0], k, {.reverse = reverse}),
                         vt::cummin(a[0], k, {.reverse = reverse})};
          if (d == vt::bool_) return all;
          all.push_back(vt::cumsum(a[0], k, {.reverse = reverse}));
          all.push_back(vt::cumprod(a[0], k, {.reverse = reverse}));
          return all;
        };
        for (const bool special : {false, true})
          if (!special || vt::is_float(d))
            vt_test::expect_same(f, {numbers(d, r.shape, special)}, tolerance_of(d), text_of(d, r));
      }
}

// Sums of nothing but -0 are +0, as everywhere.
TEST(ShortRows, SumsOfNegativeZeros) {
  const Tensor x = vt::full({100, 3}, -0.0, vt::f32);
  for (const auto& f : {std::function<Tensor(Tensor)>([](Tensor a) { return vt::sum(a, 1); }),
                        {[](Tensor a) { return vt::cumsum(a, 1); }}}) {
    const Tensor sums = vt::jit(f)(x);
    EXPECT_FALSE(vt::any(vt::signbit(sums)).item<bool>());
  }
}

TEST(ShortRows, SoftmaxNormsAndTheirGradients) {
  for (const vt::DType d : {vt::f64, vt::f32, vt::bf16})
    for (const Rows& r : rows_of(d)) {
      const int k = r.axis;
      const auto unit = [k](Tensor a) {
        return a / vt::sqrt(vt::sum(vt::square(a), k, true) + 0.5);
      };
      const auto loss = [k](Tensor a) { return vt::sum(vt::square(vt::logsumexp(a, k))); };
      const Flat f = [=](In a) -> Tensors {
        return {vt::softmax(a[0], k),
                vt::log_softmax(a[0], k) * a[0],
                vt::logsumexp(a[0], k),
                unit(a[0]),
                vt::var(a[0], k),
                (a[0] - vt::mean(a[0], k, true)) * vt::rsqrt(vt::var(a[0], k, 0, true) + 0.1),
                vt::grad(loss)(a[0])};
      };
      vt_test::expect_same(
          f, {numbers(d, r.shape)},
          d == vt::f32 ? vt_test::Tolerance{.relative = 2e-5, .absolute = 2e-5} : tolerance_of(d),
          text_of(d, r));
    }
}

TEST(ShortRows, ProductsWithTheSameFewVectors) {
  for (const vt::DType d : {vt::f64, vt::f32, vt::f16, vt::i32})
    for (const std::int64_t n : {2, 3, 6, 15})
      for (const std::int64_t m : {1, 2, 5, 8}) {
        const std::int64_t rows = d == vt::f32 ? 333 : 64;
        const Flat f = [](In a) -> Tensors {
          const Tensor y = vt::matmul(a[0], a[1]) + a[2];
          const Tensor mapped =
              vt::vmap([&](Tensor p) { return vt::matmul(vt::transpose(a[1]), p) * a[2]; })(a[0]);
          return {
              y, vt::maximum(y, 0.25), mapped,
              vt::matmul(a[0], vt::slice(a[1], {0, 0}, {a[1].dim(0), 1})),
              vt::vmap([](Tensor p, Tensor q) { return vt::dot(p, q); })(a[0], vt::flip(a[0], 0))};
        };
        vt_test::expect_same(f, {numbers(d, {rows, n}), numbers(d, {n, m}), numbers(d, {m})},
                             tolerance_of(d), text_of(d, {{rows, n, m}, 1}));
      }
}

// Axes in front of the rows that only some equations treat alike: those are one axis where they
// are, and two for the others.
TEST(ShortRows, SomeEquationsTellLeadingAxesApart) {
  const Flat f = [](In a) -> Tensors {
    const Tensor p = vt::softmax(a[0], 3), transposed = vt::transpose(p, {1, 0, 2, 3}),
                 of_rows = vt::sum(p, {1, 2, 3});
    const Tensor c = vt::moveaxis(p, 3, 0), shifted = vt::softmax(p + vt::mean(a[0], 1, true), 3),
                 direction = vt::cross(p, vt::flip(a[0], 1));
    return {p,
            transposed,
            of_rows,
            shifted,
            direction / (0.1 + vt::norm(direction, 2.0, 3, true)),
            vt::stack({c[0] * c[1], vt::tanh(c[2]), vt::max(a[0], 3)}, -1)};
  };
  vt_test::expect_same(f, {vt_test::random_tensor(vt::f64, {5, 4, 6, 3}, -1, 1, 1)}, close, "axes");
}

TEST(ShortRows, WhichOfThem) {
  if (vt_test::forced_backend() == "interpreter") GTEST_SKIP() << "has no regions";
  const auto in_registers = [](const Flat& f, const vt::Shape& shape) {
    const Tensors arguments = {vt_test::random_tensor(vt::f32, shape, -1, 1, 1)};
    const auto run = [&](const Tensors& a) { return f(In(a)); };
    const auto compiled = vt::jit(run);
    compiled(arguments);
    const std::string text = vt::explain_steps(compiled)(arguments);
    return text.find("lanes side by side") != std::string::npos;
  };
  const Flat softmax = [](In a) -> Tensors { return {vt::softmax(a[0], -1)}; },
             greatest = [](In a) -> Tensors { return {vt::max(a[0], -1)}; };
  EXPECT_TRUE(in_registers(softmax, {1000, 5}));
  EXPECT_TRUE(in_registers(softmax, {10, 20, 5}));
  EXPECT_TRUE(in_registers(softmax, {1000, 30}));
  EXPECT_TRUE(in_registers(greatest, {1000, 16}));
  // Rows that fill vectors, too few of them, and rows that lie across memory.
  EXPECT_FALSE(in_registers(greatest, {1000, 30}));
  EXPECT_FALSE(in_registers(softmax, {1000, 33}));
  EXPECT_FALSE(in_registers(softmax, {20, 5}));
  EXPECT_FALSE(in_registers([](In a) -> Tensors { return {vt::softmax(a[0], 0)}; }, {5, 1000}));
}

// Weights of rows for five vectors, 1000 × 5 elements, go to the product of all weighted rows;
// neither they nor the rows do so for each element.
TEST(ShortRows, BroadcastsStayWithWhoReadsThem) {
  using namespace vt::detail;
  const Flat f = [](In a) -> Tensors {
    const auto one = [&](Tensor vector) {
      const Tensor weights = vt::reciprocal(1.0 + vt::abs(vt::matmul(a[0], vector)));
      return vt::matmul(vt::transpose(a[0] * vt::expand_dims(weights, {1})), a[0]);
    };
    return {vt::vmap(one)(a[1])};
  };
  vt_test::expect_same(f,
                       {vt_test::random_tensor(vt::f64, {1000, 8}, -1, 1, 1),
                        vt_test::random_tensor(vt::f64, {5, 8}, -1, 1, 2)},
                       close, "weights");
  const std::vector<Aval> types{Aval(vt::f64, {1000, 8}), Aval(vt::f64, {5, 8})};
  const GraphBody formed = form_fused_regions(
      simplify(record(f, types, {}).graph, SimplifyFor::running), RegisterLimits());
  int regions = 0;
  for (const Equation& e : formed.equations) {
    if (e.op != Op::fused_region) continue;
    ++regions;
    for (Var v : e.outputs) EXPECT_EQ(formed.aval(v).elements(), 5000) << to_text(formed);
  }
  EXPECT_EQ(regions, 1) << to_text(formed);
}

}  // namespace
