// Sums over rows in loops of lanes, as JᵀJ of a fit: they are scans, and the loop is one function.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;

constexpr int rows = 301;

/// What a lane adds to its state, f[3], in each iteration: made of sums over rows of data f[rows],
/// its own, and places f[rows], which all lanes share.
struct Sums {
  std::string name;
  std::function<Tensor(const Tensor& state, const Tensor& data, const Tensor& places)> run;
  bool one_function = true;
};
void PrintTo(const Sums& s, std::ostream* out) { *out << s.name; }

Tensor model(const Tensor& p, const Tensor& x) {
  return p[0] * vt::exp(-vt::square(x - p[1])) + p[2];
}

std::vector<Sums> all_sums() {
  std::vector<Sums> all;
  all.push_back({"normal equations", [](const Tensor& p, const Tensor& y, const Tensor& x) {
                   const auto residuals = [&](const Tensor& q) { return model(q, x) - y; };
                   const Tensor j = vt::jacfwd(residuals)(p), t = vt::transpose(j);
                   return vt::linalg::solve(vt::matmul(t, j) + 3.0 * vt::eye(3, p.dtype()),
                                            vt::matmul(t, residuals(p)));
                 }});
  all.push_back(
      {"a gradient by reverse mode", [](const Tensor& p, const Tensor& y, const Tensor& x) {
         return vt::grad([&](const Tensor& q) { return vt::sum(vt::square(model(q, x) - y)); })(p) /
                static_cast<double>(rows);
       }});
  all.push_back({"rows are counted", [](const Tensor& p, const Tensor& y, const Tensor&) {
                   const Tensor x = vt::arange(rows, p.dtype()) * 0.01;
                   const Tensor terms = vt::stack({model(p, x) * y, vt::sin(x * p[0]), y * y}, 1);
                   return vt::sum(terms, 0) * 0.01;
                 }});
  all.push_back(
      {"sums over more than the rows", [](const Tensor& p, const Tensor& y, const Tensor& x) {
         const Tensor outer = vt::expand_dims(vt::sin(x), {1}) * p + vt::expand_dims(y, {1});
         return vt::tanh(vt::sum(outer * outer)) * p;
       }});
  all.push_back(
      {"products of different factors", [](const Tensor& p, const Tensor& y, const Tensor& x) {
         const Tensor a = vt::stack({vt::cos(x * p[0]), y * y}, 1),
                      b = vt::stack({x, y, vt::sin(y + p[1])}, 1);
         return vt::sum(vt::matmul(vt::transpose(a), b), 0) * 0.01;
       }});
  all.push_back({"in a branch", [](const Tensor& p, const Tensor& y, const Tensor& x) {
                   return vt::cond(
                       p[0] > 0.4, [&] { return p * vt::mean(vt::exp(-vt::square(x - p[1])) * y); },
                       [&] { return p * vt::mean(vt::cos(x + y * p[2])); });
                 }});
  // The mean must be known before the second sum begins: two readings, which stay as they are.
  all.push_back({"a sum that waits for another",
                 [](const Tensor& p, const Tensor& y, const Tensor& x) {
                   const Tensor z = vt::sin(x * p[0]) + y;
                   return p * vt::mean(vt::square(z - vt::mean(z)));
                 },
                 false});
  return all;
}

class SumScans : public testing::TestWithParam<Sums> {};

Tensor lane(const Sums& sums, const Tensor& start, const Tensor& n, const Tensor& data,
            const Tensor& places) {
  return vt::while_loop([&](Tensor i, Tensor) { return i < n; },
                        [&](Tensor i, Tensor p) {
                          return std::pair<Tensor, Tensor>(
                              i + 1, 0.5 * p + 0.2 * vt::tanh(sums.run(p, data, places)));
                        },
                        std::pair<Tensor, Tensor>(0, start))
      .second;
}
Tensors arguments(vt::DType d, std::int64_t lanes) {
  std::vector<int> lengths;
  for (std::int64_t i = 0; i < lanes; ++i) lengths.push_back(static_cast<int>(i * i % 11));
  return {vt_test::random_tensor(d, {lanes, 3}, 0.3, 1, 1).eval(), vt::tensor(lengths),
          vt_test::random_tensor(d, {lanes, rows}, -1, 1, 2).eval(),
          vt_test::random_tensor(d, {rows}, -1, 2, 3).eval()};
}

TEST_P(SumScans, CompiledIsInterpreted) {
  for (const vt::DType d : {vt::f64, vt::f32}) {
    const auto lanes = vt::vmap([](const Tensor& p, const Tensor& n, const Tensor& y,
                                   const Tensor& x) { return lane(GetParam(), p, n, y, x); },
                                {.in_axes = {0, 0, 0, vt::unmapped}});
    vt_test::expect_same(
        [&](std::span<const Tensor> in) { return Tensors{lanes(in[0], in[1], in[2], in[3])}; },
        arguments(d, 70), {.relative = d == vt::f64 ? 1e-11 : 2e-4, .absolute = 1e-6},
        GetParam().name + " " + vt::name_of(d));
  }
}

TEST_P(SumScans, IsOneFunction) {
  const auto run = vt::jit(vt::vmap([](const Tensor& p, const Tensor& n, const Tensor& y,
                                       const Tensor& x) { return lane(GetParam(), p, n, y, x); },
                                    {.in_axes = {0, 0, 0, vt::unmapped}}));
  const Tensors in = arguments(vt::f64, 70);
  const Tensor all = run(in[0], in[1], in[2], in[3]).eval();
  EXPECT_EQ(
      run.explain(in[0], in[1], in[2], in[3]).find("70 lanes side by side") != std::string::npos,
      GetParam().one_function)
      << run.explain(in[0], in[1], in[2], in[3]);
  // … and the bits of a lane do not depend on the others.
  for (const std::int64_t count : {1, 5, 33}) {
    const auto some = [&](const Tensor& t) { return t[vt::slice(0, count)].eval(); };
    EXPECT_TRUE(
        vt::all(run(some(in[0]), some(in[1]), some(in[2]), in[3]) == some(all)).item<bool>())
        << count << " lanes";
  }
}

// Images are summed row by row, or, where a row is long, element by element; also those that lie in
// memory as one row.
class SumsOfImages : public ::testing::TestWithParam<bool> {};
TEST_P(SumsOfImages, AreScansToo) {
  const bool is_row = GetParam();
  for (const auto& [height, width] : {std::pair(15, 15), {20, 17}, {12, 120}, {70, 30}}) {
    const auto shade = [height = height, width = width](const Tensor& p) {
      const Tensor x = vt::arange(width, vt::f64) * 0.1,
                   y = vt::expand_dims(vt::arange(height, vt::f64), {1}) * 0.1;
      return p[0] * vt::exp(-vt::square(x - p[1]) - vt::square(y - p[2])) + 0.1 * p[1];
    };
    const auto lane = [&](const Tensor& start, const Tensor& n, const Tensor& image) {
      return vt::while_loop([&](Tensor i, Tensor) { return i < n; },
                            [&](Tensor i, Tensor p) {
                              const auto residuals = [&](const Tensor& q) {
                                return is_row ? vt::ravel(shade(q)) - image
                                              : vt::ravel(shade(q) - image);
                              };
                              const Tensor j = vt::jacfwd(residuals)(p), t = vt::transpose(j),
                                           r = residuals(p);
                              const Tensor step = vt::linalg::solve(
                                  vt::matmul(t, j) + 3.0 * vt::eye(3, vt::f64), vt::matmul(t, r));
                              return std::pair<Tensor, Tensor>(
                                  i + 1, 0.5 * p + 0.2 * vt::tanh(step) * vt::tanh(vt::sum(r * r)));
                            },
                            std::pair<Tensor, Tensor>(0, start))
          .second;
    };
    const auto lanes = vt::vmap(lane);
    const Tensor images = vt_test::random_tensor(vt::f64, {20, height, width}, -1, 1, 2);
    const Tensors in{vt_test::random_tensor(vt::f64, {20, 3}, 0.3, 1, 1).eval(),
                     (vt::arange(20) % 6).eval(),
                     (is_row ? vt::reshape(images, {20, height * width}) : images).eval()};
    vt_test::expect_same(
        [&](std::span<const Tensor> a) { return Tensors{lanes(a[0], a[1], a[2])}; }, in,
        {.relative = 1e-11, .absolute = 1e-11},
        std::to_string(height) + " × " + std::to_string(width));
    const auto compiled = vt::jit(lanes);
    compiled(in[0], in[1], in[2]).eval();
    const std::string steps = compiled.explain(in[0], in[1], in[2]);
    EXPECT_NE(steps.find("20 lanes side by side"), std::string::npos) << height << " × " << width;
  }
}
INSTANTIATE_TEST_SUITE_P(All, SumsOfImages, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "in_one_row" : "in_rows"; });

/// JᵀJ, Jᵀr and rᵀr of a fit of `count` points, without lanes.
Tensors normal_equations(const Tensor& p, const Tensor& x, const Tensor& y) {
  const auto residuals = [&](const Tensor& q) {
    const Tensor at = vt::arange(x.dim(0), x.dtype()) * (1.0 / static_cast<double>(x.dim(0)));
    return vt::vmap(model, {.in_axes = {vt::unmapped, 0}})(q, x) + at - y;
  };
  const Tensor j = vt::jacfwd(residuals)(p), r = residuals(p), t = vt::transpose(j);
  return {vt::matmul(t, j), vt::matmul(t, r), vt::sum(r * r)};
}

TEST(SumsOfRows, AreOneReadingOfManyRows) {
  for (const vt::DType d : {vt::f64, vt::f32})
    for (const std::int64_t count : {1024, 2048, 2049, 5003, 100001}) {
      const Tensors in{vt_test::random_tensor(d, {3}, 0.5, 1, 1).eval(),
                       vt_test::random_tensor(d, {count}, -1, 1, 2).eval(),
                       vt_test::random_tensor(d, {count}, -1, 1, 3).eval()};
      vt_test::expect_same(
          [](std::span<const Tensor> a) { return normal_equations(a[0], a[1], a[2]); }, in,
          {.relative = d == vt::f64 ? 1e-12 : 2e-5, .absolute = 1e-4},
          std::to_string(count) + " rows of " + vt::name_of(d));
      const auto compiled = vt::jit(normal_equations);
      for (const Tensor& t : compiled(in[0], in[1], in[2])) t.eval();
      const std::string steps = compiled.explain(in[0], in[1], in[2]);
      EXPECT_NE(steps.find(std::to_string(count) + " rows summed side by side"), std::string::npos)
          << steps;
    }
}

// Whatever is not finite in a row is so in its sums, in those of its place alone.
TEST(SumsOfRows, RowsThatAreNotFiniteAreNotLost) {
  const auto sums = vt::jit([](const Tensor& x) {
    const Tensor j = vt::stack({vt::sin(x), x * x}, 1);
    return vt::matmul(vt::transpose(j), j);
  });
  Tensor x = vt::linspace(0, 1, 3001, vt::f64);
  EXPECT_TRUE(vt::all(vt::isfinite(sums(x))).item<bool>());
  const Tensor bad = sums(vt::index_update(x, 3000, std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(vt::isnan(bad[0][0]).item<bool>());
  EXPECT_TRUE(vt::isinf(bad[1][1]).item<bool>());
}

INSTANTIATE_TEST_SUITE_P(All, SumScans, testing::ValuesIn(all_sums()),
                         [](const auto& info) { return "n" + std::to_string(info.index); });

}  // namespace
