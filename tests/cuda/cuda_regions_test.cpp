// What vmap leaves of functions of small matrices, on the device: one kernel with a thread for each
// lane, against the host's interpreter. And the bits of ops on small arrays, of all executors.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

#include "src/trace/ir/executable.hpp"
#include "src/trace/record/scope.hpp"
#include "support/cuda_emulator.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;

const vt_test::Emulator* const emulator = vt_test::use_cuda_emulator();
const vt::Device device = vt::cuda(0);

Tensor numbers(vt::DType d, const vt::Shape& shape, std::uint64_t seed) {
  return vt_test::random_tensor(d, shape, -1, 1, seed);
}

/// Where the tip of an arm is, by the angles of its joints.
Tensor tip(const Tensor& angles) {
  const auto joint = [](const Tensor& q, double reach) {
    const Tensor c = vt::cos(q), s = vt::sin(q), zero = vt::zeros_like(q), one = vt::ones_like(q);
    return vt::reshape(vt::stack({c, -s * 0.6, s * 0.8, c * reach, s, c * 0.6, -c * 0.8, s * reach,
                                  zero, one * 0.8, one * 0.6, one * 0.1, zero, zero, zero, one}),
                       {4, 4});
  };
  Tensor m = joint(angles[0], 0.3);
  for (std::int64_t i = 1; i < angles.dim(0); ++i)
    m = vt::matmul(m, joint(angles[i], 0.2 + 0.1 * static_cast<double>(i)));
  return vt::reshape(vt::slice(m, {0, 3}, {3, 4}), {3});
}

/// The same on the device as on the host, in so many kernels.
void expect_kernels(std::uint64_t kernels, const vt::detail::FlatFunction& f,
                    const Tensors& arguments, const vt_test::Tolerance& tolerance,
                    const std::string& what) {
  SCOPED_TRACE(what);
  const auto run = [&](const Tensors& a) { return f(In(a)); };
  const auto compiled = vt::jit(run);
  Tensors there;
  for (const Tensor& a : arguments) there.push_back(a.to(device));
  vt::reset_stats();
  const Tensors made = compiled(there), expected = run(arguments);
  for (const Tensor& t : made) t.eval();
  EXPECT_EQ(vt::stats().launches, kernels) << vt::explain_steps(compiled)(there);
  EXPECT_EQ(vt::stats().host_steps, 0u);
  for (std::size_t i = 0; i < made.size(); ++i)
    EXPECT_TRUE(vt_test::all_close(made[i].to(vt::cpu()), expected[i], tolerance)) << i;
}

const vt_test::Tolerance close{.relative = 1e-12, .absolute = 1e-12},
    close_f32{.relative = 2e-5, .absolute = 2e-5};

// Lanes: fewer than a warp has, some warps, and so many that rows of memory go through tiles, the
// last of them cut.
TEST(CudaRegions, DerivativesOfAChainAreOneKernel) {
  for (const vt::DType d : {vt::f32, vt::f64})
    for (const int lanes : {9, 300, 1100}) {
      const Tensors arms = {numbers(d, {lanes, 6}, 1)};
      const vt_test::Tolerance& tolerance = d == vt::f64 ? close : close_f32;
      const std::string what = std::to_string(lanes) + " lanes";
      expect_kernels(
          1, [](In a) -> Tensors { return {vt::vmap(tip)(a[0])}; }, arms, tolerance, what);
      expect_kernels(
          1, [](In a) -> Tensors { return {vt::vmap(vt::jacrev(tip))(a[0])}; }, arms, tolerance,
          "jacrev, " + what);
      if (lanes >= 256)
        expect_kernels(
            1, [](In a) -> Tensors { return {vt::vmap(vt::jacfwd(tip))(a[0])}; }, arms, tolerance,
            "jacfwd, " + what);
    }
}

// A step of a filter: matrices that all lanes share, and several results.
TEST(CudaRegions, AFilterIsOneKernel) {
  const auto step = [](In a) -> Tensors {
    const auto one = [f = a[3], q = a[4], h = a[5], r = a[6]](const Tensor& x, const Tensor& p,
                                                              const Tensor& z) {
      const Tensor ahead = vt::matmul(f, x),
                   spread = vt::matmul(vt::matmul(f, p), vt::transpose(f)) + q;
      const Tensor s = vt::matmul(vt::matmul(h, spread), vt::transpose(h)) + r;
      const Tensor inverse =
          vt::reshape(vt::stack({s[1][1], -s[0][1], -s[1][0], s[0][0]}), {2, 2}) /
          (s[0][0] * s[1][1] - s[0][1] * s[1][0]);
      const Tensor gain = vt::matmul(vt::matmul(spread, vt::transpose(h)), inverse);
      return std::pair(ahead + vt::matmul(gain, z - vt::matmul(h, ahead)),
                       vt::matmul(vt::eye(4, p.dtype()) - vt::matmul(gain, h), spread));
    };
    const auto [x, p] = vt::vmap(one)(a[0], a[1], a[2]);
    return {x, p};
  };
  for (const int lanes : {70, 1030})
    expect_kernels(1, step,
                   {numbers(vt::f64, {lanes, 4}, 1),
                    numbers(vt::f64, {lanes, 4, 4}, 2) * 0.1 + vt::eye(4, vt::f64),
                    numbers(vt::f64, {lanes, 2}, 3), numbers(vt::f64, {4, 4}, 4),
                    vt::eye(4, vt::f64), numbers(vt::f64, {2, 4}, 5), vt::eye(2, vt::f64) * 4.0},
                   {.relative = 1e-9, .absolute = 1e-9}, std::to_string(lanes) + " lanes");
}

// Lanes that are not in front are brought there by a kernel before and taken back by one behind;
// loops and branches of each lane are inside; elements of one and two bytes go through tiles as
// well.
TEST(CudaRegions, LayoutsBranchesAndNarrowTypes) {
  const auto along_one = [](In a) -> Tensors {
    return {vt::vmap(vt::jacrev(tip), {.in_axes = 1, .out_axes = 1})(a[0])};
  };
  expect_kernels(3, along_one, {numbers(vt::f32, {6, 40}, 1)}, close_f32, "axis 1");
  const auto branches = [](In a) -> Tensors {
    const auto one = [](const Tensor& m, const Tensor& x) {
      const Tensor far =
          vt::while_loop([](Tensor y) { return vt::dot(y, y) < 9.0; },
                         [&](Tensor y) { return y * 1.5 + 0.1 * vt::matmul(m, y) + 0.2; }, x);
      return vt::cond(
          far[0] > 0.0, [&] { return vt::matmul(m, far) * x[0]; },
          [&] { return vt::sin(far) + x; });
    };
    return {vt::vmap(one)(a[0], a[1])};
  };
  for (const int lanes : {50, 1090})
    expect_kernels(1, branches,
                   {vt_test::random_tensor(vt::f64, {lanes, 3, 3}, 0, 1, 1),
                    vt_test::random_tensor(vt::f64, {lanes, 3}, 0.1, 1, 2)},
                   close, "a loop and a branch, " + std::to_string(lanes) + " lanes");
  const auto narrow = [](In a) -> Tensors {
    const auto one = [](const Tensor& x, const Tensor& chosen) {
      const Tensor y = vt::matmul(vt::matmul(x, x), vt::where(chosen, x, 0.5f));
      return std::pair(y.astype(vt::f16), y > 0.0f);
    };
    const auto [y, positive] = vt::vmap(one)(a[0], a[1]);
    return {y.astype(vt::f32), positive};
  };
  expect_kernels(1, narrow,
                 {numbers(vt::f32, {1100, 5, 5}, 1), numbers(vt::f32, {1100, 5, 5}, 2) > 0.0f},
                 {.relative = 2e-3, .absolute = 2e-3}, "narrow");
}

// ---- the bits of small arrays -------------------------------------------------------------------

constexpr double inf = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

using Named = std::vector<std::pair<std::string, Tensor>>;

/// Ops on arrays of four elements: x and y of any numbers, i of places, some of them outside.
Named small_ops(const Tensor& x, const Tensor& y, const Tensor& i) {
  const vt::DType d = x.dtype();
  const auto number = [&](double v) { return vt::full({}, v, d); };
  const auto list = [&](std::vector<double> v) { return vt::tensor(v).astype(d); };
  const auto square = [](const Tensor& v) { return vt::reshape(v, {2, 2}); };
  const auto two = [](const Tensor& v) { return vt::slice_in_dim(v, 0, 2); };
  const auto first = [](const Tensor& v) { return vt::slice_in_dim(v, 0, 1); };
  const Tensor at = i[0];
  Named all = {
      {"sum", vt::sum(x)},
      {"sum of zeros", vt::sum(x * number(0.0))},
      {"sum of pairs", vt::sum(square(x), {1})},
      {"prod", vt::prod(x)},
      {"max", vt::max(x)},
      {"min", vt::min(x)},
      {"max of pairs", vt::max(square(x), {0})},
      {"argmax", vt::argmax(x)},
      {"argmin", vt::argmin(square(x), 1)},
      {"dot", vt::dot(x, y)},
      {"dot of one", vt::dot(first(x), first(y))},
      {"dot with zeros", vt::dot(x, list({0, -0.0, 0, 1}))},
      {"dot with negative zeros", vt::dot(x, list({-0.0, -0.0, -0.0, -0.0}))},
      {"dot of known zeros", vt::dot(list({0, 0}) + two(x) * number(1), list({-1, -1}))},
      {"matmul", vt::matmul(square(x), square(y))},
      {"matmul with zeros", vt::matmul(square(x), square(list({0, 1, -0.0, 0})))},
      {"outer", vt::matmul(vt::reshape(two(x), {2, 1}), vt::reshape(two(y), {1, 2}))},
      {"cumsum", vt::cumsum(x)},
      {"cumsum of pairs, backwards", vt::cumsum(square(x), 1, {.reverse = true})},
      {"cumprod", vt::cumprod(x)},
      {"cummax", vt::cummax(x)},
      {"cummin", vt::cummin(y)},
      {"+ -0", x + list({-0.0, 0, -0.0, 0})},
      {"- 0", x - list({-0.0, 0, -0.0, 0})},
      {"-0 -", list({-0.0, 0, -0.0, 0}) - x},
      {"* 1", x * list({1, -1, 0, -0.0})},
      {"/ 1", x / list({1, -1, 1, -1})},
      {"0 /", list({0, -0.0, 1, -1}) / x},
      {"maximum", vt::maximum(x, y)},
      {"minimum", vt::minimum(x, y)},
      {"maximum with zeros", vt::maximum(x, list({-0.0, 0, -0.0, 0}))},
      {"negative", -x},
      {"where", vt::where(x > y, x, -0.0)},
      {"pad", vt::pad(x, {{1, 2}}, -0.0)},
      {"concatenate", vt::concatenate({square(y), square(x)}, 1)},
      {"flip", vt::flip(vt::transpose(square(x)), {0})},
      {"take", vt::take(x, i)},
      {"take of bytes", vt::take(x, vt::clip(i, 0, 9).astype(vt::u8))},
      {"dynamic_slice", vt::dynamic_slice(square(x), {at, i[1].astype(vt::i64)}, {1, 2})},
      {"dynamic_update_slice", vt::dynamic_update_slice_in_dim(x, two(y), at, 0)},
      {"update", vt::index_update(x, at, y[0])},
      {"sum of integers", vt::sum(i)},
      {"dot of integers", vt::dot(i, i)},
      {"any", vt::any(x > 0)},
      {"all", vt::all(x < y)},
      {"max of integers", vt::max(i)},
      {"cumprod of integers", vt::cumprod(i)},
  };
  if (d != vt::f16 && d != vt::bf16) {
    all.emplace_back("add at", vt::index_add(x, i, y));
    all.emplace_back("multiply at", vt::index_mul(x, i, y));
  }
  return all;
}

/// Bytes, with one NaN for all.
std::vector<unsigned char> bits_of(const Tensor& x) {
  const Tensor same =
      vt::is_float(x.dtype()) ? vt::where(vt::isnan(x), vt::full({}, nan, x.dtype()), x) : x;
  const vt::detail::BufferRef b = vt::detail::value_of(same.eval(), {});
  const std::size_t bytes = vt::detail::Aval(x.dtype(), x.shape()).bytes();
  std::vector<unsigned char> all(bytes);
  if (bytes > 0) std::memcpy(all.data(), b->data, bytes);
  return all;
}

// In a branch, which is a register kernel with lanes and without.
TEST(SmallArrays, HaveTheInterpretersBits) {
  using namespace vt::detail;
  constexpr int lanes = 60;
  const double values[] = {0, -0.0, 1, -1, 0, -0.0, 2, -0.5, inf, -inf, nan};
  for (const vt::DType d : {vt::f32, vt::f64, vt::f16})
    for (const bool batched : {true, false}) {
      std::vector<double> x, y;
      std::vector<int> places;
      unsigned state = 1;
      const auto next = [&](unsigned n) {
        return (state = state * 1664525u + 1013904223u) / 65536 % n;
      };
      // Most lanes have zeros and ones alone, so that infinity does not hide them.
      for (int l = 0; l < lanes; ++l)
        for (int k = 0; k < 4; ++k) {
          const unsigned n = l % 4 == 0 ? 11 : l % 4 == 1 ? 8 : l % 4 == 2 ? 4 : 2;
          x.push_back(values[next(n)]);
          y.push_back(values[next(n)]);
          places.push_back(static_cast<int>(next(8)) - 2);
        }
      const Tensors whole = {vt::tensor(x, {lanes, 4}).astype(d).eval(),
                             vt::tensor(y, {lanes, 4}).astype(d).eval(),
                             vt::tensor(places, {lanes, 4}).eval()};
      std::vector<std::string> names;
      const auto ops = [&](const Tensor& x, const Tensor& y, const Tensor& i) {
        Named all = small_ops(x, y, i);
        names.clear();
        Tensors results;
        for (auto& [name, result] : all) names.push_back(name), results.push_back(result);
        return results;
      };
      const auto one = [&](const Tensor& x, const Tensor& y, const Tensor& i) {
        return vt::cond(i[3] < 100, [&] { return ops(x, y, i); }, [&] { return ops(y, x, i); });
      };
      const auto f = [&](In a) -> Tensors {
        return batched ? vt::vmap(one)(a[0], a[1], a[2]) : one(a[0], a[1], a[2]);
      };
      for (int l = 0; l < (batched ? 1 : 8); ++l) {
        Tensors arguments = whole, there;
        if (!batched)
          for (Tensor& t : arguments) t = t[l].eval();
        SCOPED_TRACE(std::string(vt::name_of(d)) + (batched ? ", lanes" : ", row ") +
                     (batched ? "" : std::to_string(l)));
        vt::Vec<Aval> avals;
        vt::Vec<BufferRef> inputs;
        for (const Tensor& t : arguments) {
          avals.push_back(Aval(t.dtype(), t.shape()));
          inputs.push_back(value_of(t, {}));
          there.push_back(t.to(device));
        }
        const Recorded recorded = record(f, {avals.begin(), avals.end()}, {});
        for (const Tensor& t : recorded.captured) inputs.push_back(value_of(t, {}));
        const vt::Vec<BufferRef> expected = interpret(recorded.graph, inputs),
                                 on_host = compile_graph(recorded.graph)->run(inputs);
        vt::reset_stats();
        const Tensors on_device = vt::jit([&](const Tensors& a) { return f(In(a)); })(there);
        for (const Tensor& t : on_device) t.eval();
        EXPECT_EQ(vt::stats().host_steps, 0u);
        for (std::size_t k = 0; k < expected.size(); ++k) {
          const Aval& a = recorded.graph.aval(recorded.graph.outputs[k]);
          const Tensor right = from_buffer(expected[k], a);
          EXPECT_EQ(bits_of(from_buffer(on_host[k], a)), bits_of(right)) << names[k] << ", host";
          EXPECT_EQ(bits_of(on_device[k].to(vt::cpu())), bits_of(right)) << names[k] << ", device";
        }
      }
    }
}

}  // namespace
