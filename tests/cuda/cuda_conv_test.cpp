// Convolutions and reductions over windows on a CUDA device, here the emulated one: each way of
// sharing them out = the host's result, derivatives, layouts, nothing on the host, no dependence on
// the order of blocks.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/cuda_program.hpp"

namespace {

using vt::Shape;
using vt::Tensor;
using vt_test::device, vt_test::emulator, vt_test::Tensors;
using vt_test::expect_close;
using vt_test::random_quarters;
using Function = vt_test::TensorFunction;

/// f on the device and on the host: the same numbers (of quarters: exactly), and no step on the
/// host. `way`: what explain must tell.
void expect_same(const Function& f, const Tensors& arguments, const std::string& what,
                 const std::string& way = {}, const vt_test::Tolerance& tolerance = {}) {
  const auto [actual, expected, text] = vt_test::on_both(f, arguments, what);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expect_close(actual[i], expected[i], tolerance, what + " result " + std::to_string(i));
  EXPECT_EQ(vt::stats().host_steps, 0u) << what << "\n" << text;
  if (!way.empty()) {
    EXPECT_NE(text.find(way), std::string::npos) << what << " is not in " << way << "\n" << text;
  }
}

Function convolution(const vt::ConvOptions& options) {
  return [options](const Tensors& a) { return Tensors{vt::conv(a[0], a[1], options)}; };
}
Function derivatives(const vt::ConvOptions& options) {
  return [options](const Tensors& a) {
    const auto [x, filter] = vt::grad<0, 1>([&](Tensor x, Tensor filter) {
      return vt::sum(vt::conv(x, filter, options) * a[2]);
    })(a[0], a[1]);
    return Tensors{x, filter};
  };
}

TEST(CudaConv, RandomProblems) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    if (emulator) emulator->set_seed(seed);
    std::mt19937_64 engine(seed);
    const auto in = [&](std::int64_t low, std::int64_t high) {
      return low + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(high - low + 1));
    };
    const int spatial = static_cast<int>(seed % 3) + 1;
    vt::ConvOptions o;
    const std::int64_t groups = in(0, 2) == 0 ? in(2, 3) : 1;
    (in(0, 1) ? o.feature_group_count : o.batch_group_count) = groups;
    Shape x{in(1, 3) * o.batch_group_count}, filter;
    vt::Padding::Edges edges;
    for (int k = 0; k < spatial; ++k) {
      x.push_back(in(0, 9) == 0 ? in(0, 1) : in(2, spatial == 3 ? 5 : 11));
      filter.push_back(in(1, 4));
      o.strides.push_back(in(1, 3));
      o.lhs_dilation.push_back(in(0, 2) == 0 ? in(2, 3) : 1);
      o.rhs_dilation.push_back(in(0, 2) == 0 ? in(2, 3) : 1);
      edges.push_back({in(x.back() < 2 ? 0 : -1, 3), in(x.back() < 2 ? 0 : -1, 3)});
    }
    o.padding = edges;
    const std::int64_t channels = in(0, 1) ? in(1, 4) : in(9, 20);
    x.push_back(channels * o.feature_group_count);
    filter.push_back(channels);
    filter.push_back((in(0, 1) ? in(1, 4) : in(13, 40)) * groups);
    const vt::DType d = seed % 5 == 1   ? vt::i32
                        : seed % 5 == 2 ? vt::f64
                        : seed % 5 == 3 ? vt::bf16
                                        : vt::f32;
    const auto numbers = [&](const Shape& s, std::uint64_t n) {
      return d == vt::i32 ? vt_test::random_tensor(d, s, -9, 9, n) : random_quarters(d, s, n);
    };
    expect_same(convolution(o), {numbers(x, seed), numbers(filter, seed + 1)},
                "seed " + std::to_string(seed) + ": " + x.str() + " * " + filter.str());
    if (::testing::Test::HasFailure()) break;
  }
  if (emulator) emulator->set_seed(0);
}

TEST(CudaConv, EveryWay) {
  const auto image = [](const Shape& s) { return random_quarters(vt::f32, s, 1); };
  const auto filter = [](const Shape& s) { return random_quarters(vt::f32, s, 2); };
  const std::string element = "an element per thread", part = "parts of its sum per thread",
                    tile = "tiles of 64", large = "tiles of 128",
                    parts = "tiles of 64 × 64, sums in";
  expect_same(convolution({.padding = "SAME"}), {image({2, 9, 9, 3}), filter({3, 3, 3, 8})},
              "few columns", element);
  expect_same(convolution({.strides = {2, 1}, .padding = "SAME"}),
              {image({2, 9, 10, 16}), filter({3, 3, 16, 40})}, "a step", tile);
  expect_same(convolution({.padding = {{2, 1}, {0, 3}}, .lhs_dilation = {3, 2}}),
              {image({2, 6, 7, 8}), filter({4, 3, 8, 20})}, "dilated", tile);
  expect_same(convolution({.strides = {2, 1},
                           .padding = {{2, 1}, {0, 3}},
                           .lhs_dilation = {3, 2},
                           .rhs_dilation = {1, 3}}),
              {image({2, 6, 7, 8}), filter({4, 3, 8, 20})}, "dilated, with steps and gaps", tile);
  expect_same(convolution({.padding = "SAME"}), {image({4, 64, 64, 2}), filter({3, 3, 2, 128})},
              "many results", large);
  expect_same(convolution({}), {image({1, 14, 14, 40}), filter({8, 8, 40, 16})}, "deep", parts);
  expect_same(convolution({}), {image({1, 33, 33, 8}), filter({32, 32, 8, 3})}, "deep, few results",
              part);
  expect_same(convolution({.padding = "SAME", .feature_group_count = 24}),
              {image({2, 9, 9, 24}), filter({3, 3, 1, 48})}, "depthwise", element);
  expect_same(
      [](const Tensors& a) {
        return Tensors{vt::conv(a[0], a[1], {.padding = {{1, 1}}, .dtype = vt::f32})};
      },
      {random_quarters(vt::f16, {2, 60, 16}, 1), random_quarters(vt::f16, {3, 16, 16}, 2)},
      "widened", tile);
}

TEST(CudaConv, Layouts) {
  const Tensor x = random_quarters(vt::f32, {2, 9, 8, 12}, 1),
               filter = random_quarters(vt::f32, {3, 2, 12, 16}, 2);
  const vt::ConvOptions given{.strides = {2, 1}, .padding = {{1, 0}, {0, 1}}};
  for (const auto& [layout, filter_layout, out_layout] : {std::tuple{"NCHW", "OIHW", "NCHW"},
                                                          {"NCHW", "HWIO", "NHWC"},
                                                          {"HNCW", "IWOH", "WNCH"},
                                                          {"CHWN", "IHWO", "CHWN"}}) {
    const auto axes = [](const std::string& from, const std::string& to) {
      std::vector<int> order;
      for (char c : to) order.push_back(static_cast<int>(from.find(c)));
      return order;
    };
    vt::ConvOptions o = given;
    o.layout = layout, o.filter_layout = filter_layout, o.out_layout = out_layout;
    // The letters of `layout` give the order of strides and edges.
    if (o.layout.find('H') > o.layout.find('W')) o.strides = {1, 2};
    const Tensor transposed = vt::transpose(x, axes("NHWC", layout)),
                 transposed_filter = vt::transpose(filter, axes("HWIO", filter_layout));
    expect_same(convolution(o), {transposed.eval(), transposed_filter.eval()},
                std::string(layout) + filter_layout);
  }
}

TEST(CudaConv, Derivatives) {
  const auto check = [](const vt::ConvOptions& o, const Shape& x, const Shape& filter,
                        const std::string& what) {
    const Tensor a = random_quarters(vt::f64, x, 1), b = random_quarters(vt::f64, filter, 2);
    const Tensor c = random_quarters(vt::f64, vt::conv(a, b, o).shape(), 3);
    expect_same(derivatives(o), {a, b, c}, what);
  };
  check({.strides = {2, 2}, .padding = "SAME"}, {3, 9, 8, 5}, {3, 3, 5, 14}, "steps");
  check({.padding = "SAME"}, {2, 20, 20, 12}, {3, 3, 12, 12}, "a long sum for the filter");
  check({.padding = {{0, 2}}, .rhs_dilation = {2}, .feature_group_count = 4}, {3, 30, 4}, {3, 1, 8},
        "depthwise, gaps");
  // Of each example: groups of images.
  const Tensor x = random_quarters(vt::f32, {4, 2, 6, 3}, 1),
               filter = random_quarters(vt::f32, {2, 3, 5}, 2);
  expect_same(
      [](const Tensors& a) {
        const auto loss = [](Tensor filter, Tensor x) {
          return vt::sum(vt::square(vt::conv1d(x, filter, {.strides = {2}, .padding = "SAME"})));
        };
        return Tensors{vt::vmap(vt::grad(loss), {.in_axes = {vt::unmapped, 0}})(a[1], a[0])};
      },
      {x, filter}, "per example");
}

TEST(CudaConv, ResultsDoNotDependOnTheOrderOfBlocks) {
  if (!emulator) GTEST_SKIP() << "only the emulator shuffles them";
  const Tensor x = vt_test::random_tensor(vt::f32, {1, 14, 14, 40}, -1, 1, 1).to(device),
               filter = vt_test::random_tensor(vt::f32, {8, 8, 40, 16}, -1, 1, 2).to(device);
  const auto f = vt::jit([](Tensor x, Tensor filter) { return vt::conv(x, filter); });
  const std::vector<float> first = f(x, filter).to_vector<float>();
  for (unsigned long seed : {1ul, 5ul}) {
    emulator->set_seed(seed);
    EXPECT_EQ(f(x, filter).to_vector<float>(), first);
  }
  emulator->set_seed(0);
}

// --- products that are summed in parts, and those of nothing

TEST(CudaProducts, LongSums) {
  const auto product = [](const Tensors& a) { return Tensors{vt::matmul(a[0], a[1])}; };
  expect_same(product,
              {random_quarters(vt::f32, {40, 3000}, 1), random_quarters(vt::f32, {3000, 50}, 2)},
              "tiles", "tiles of 64 × 64, sums in");
  expect_same(product,
              {random_quarters(vt::f16, {3, 3000}, 1), random_quarters(vt::f16, {3000, 5}, 2)},
              "elements", "parts of its sum per thread", {.ulps = 1});
  expect_same(product,
              {random_quarters(vt::i8, {40, 2000}, 1), random_quarters(vt::i8, {2000, 40}, 2)},
              "integers wrap", "sums in");
  expect_same(product, {vt::ones({4, 0}), vt::ones({0, 5})}, "sums of nothing");
  expect_same(product, {vt::ones({0, 4}), vt::ones({4, 5})}, "no results");
  expect_same(product,
              {random_quarters(vt::f32, {1100, 24}, 1), random_quarters(vt::f32, {24, 1030}, 2)},
              "many results", "tiles of 128");
}

TEST(CudaProducts, TensorCores) {
  const auto product = [](const Tensors& a) { return Tensors{vt::matmul(a[0], a[1])}; };
  const auto both = [](const Tensors& a) {
    return Tensors{vt::matmul(a[0], a[1]), vt::matmul(vt::transpose(a[1]), vt::transpose(a[0]))};
  };
  for (vt::DType d : {vt::f16, vt::bf16}) {
    const std::string name(vt::name_of(d));
    expect_same(both, {random_quarters(d, {70, 101}, 1), random_quarters(d, {101, 90}, 2)}, name,
                "tiles of 64 × 64 on tensor cores", {.ulps = 1});
    expect_same(product, {random_quarters(d, {40, 1100}, 1), random_quarters(d, {1100, 40}, 2)},
                name + " deep", "on tensor cores, sums in", {.ulps = 1});
    expect_same(convolution({.strides = {2}, .padding = "SAME"}),
                {random_quarters(d, {2, 90, 12}, 1), random_quarters(d, {3, 12, 20}, 2)},
                name + " convolution", "on tensor cores", {.ulps = 1});
  }
  expect_same(product,
              {random_quarters(vt::f16, {1100, 10}, 1), random_quarters(vt::f16, {10, 1030}, 2)},
              "large", "tiles of 128 × 128 on tensor cores", {.ulps = 1});
}

// --- windows

TEST(CudaWindows, ReductionsAndTheirDerivatives) {
  // Different numbers, so that the places of extremes are certain; quarters, so that sums are
  // exact.
  const Tensor x =
      vt::reshape(((vt::arange(2 * 11 * 10 * 3) * 7919) % 1009) * 0.25, {2, 11, 10, 3}).eval();
  struct Case {
    const char* name;
    vt::PoolOptions options;
  };
  const Case cases[] = {
      {"side by side", {.window = {2, 2}}},
      {"overlapping", {.window = {3, 3}, .strides = {2, 1}, .padding = "SAME"}},
      {"with gaps", {.window = {2, 3}, .strides = {1, 2}, .padding = "SAME", .dilation = {2, 1}}}};
  for (const Case& c : cases)
    expect_same(
        [&](const Tensors& a) {
          const auto pools = [&](Tensor x) {
            return vt::sum(vt::max_pool(x, c.options) * 2) + vt::sum(vt::min_pool(x, c.options)) +
                   vt::sum(vt::square(vt::avg_pool(x, c.options)));
          };
          return Tensors{vt::max_pool(a[0], c.options), vt::avg_pool(a[0], c.options),
                         vt::grad(pools)(a[0])};
        },
        {x}, c.name, {}, {.relative = 1e-5, .absolute = 1e-5});
  expect_same(
      [](const Tensors& a) {
        return Tensors{
            vt::reduce_window(a[0], vt::WindowReduction::sum, {.window = {3}, .strides = {2}}),
            vt::reduce_window(a[0], vt::WindowReduction::max, {.window = {4}, .strides = {1}}),
            vt::reduce_window(a[0], vt::tensor(0.0f),
                              [](Tensor p, Tensor q) { return vt::maximum(p, q) + p * 0; },
                              {.window = {3}})};
      },
      {random_quarters(vt::f32, {50}, 4)}, "along one axis");
}

}  // namespace
