// Sorts and scatters on a CUDA device, here the emulated one, which finds races and accesses out of bounds: the interpreter's results to the last
// bit, whatever the order of blocks and threads, and nothing on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/trace/executable.hpp"
#include "src/trace/node.hpp"
#include "src/trace/scope.hpp"
#include "support/cuda_emulator.hpp"
#include "support/property.hpp"

namespace {

using namespace vt::detail;
using vt::Shape;
using vt::Tensor;
using Tensors = std::vector<Tensor>;

const vt_test::Emulator* const emulator = vt_test::use_cuda_emulator();
const vt::Device device = vt::cuda(0);

/// f(arguments) on the device: the interpreter's results to the last bit, without the host, and with several orders of blocks and threads.
void expect_exact(const FlatFunction& f, const Tensors& arguments, const std::string& what, double relative = 0) {
  std::vector<Aval> avals;
  vt::Vec<BufferRef> inputs;
  for (const Tensor& t : arguments) {
    avals.push_back(aval_of(t));
    inputs.push_back(value_of(t, {}));
  }
  const Recorded recorded = record(f, avals, {});
  for (const Tensor& t : recorded.captured) inputs.push_back(value_of(t, {}));
  const vt::Vec<BufferRef> expected = interpret(recorded.graph, inputs);
  const std::shared_ptr<Executable> program = compile_graph(recorded.graph, device);
  vt::Vec<BufferRef> first;
  for (unsigned long seed : {0ul, 3ul}) {
    if (emulator) emulator->set_seed(seed);
    vt::Vec<BufferRef> actual;
    vt::reset_stats();
    ASSERT_NO_THROW(actual = program->run(inputs)) << what << (emulator ? emulator->report() : "");
    EXPECT_EQ(vt::stats().host_steps, 0u) << what;
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const Aval& aval = recorded.graph.aval(recorded.graph.outputs[i]);
      actual[i] = value_of(from_buffer(actual[i], aval), {});
      const bool same = actual[i]->bytes == expected[i]->bytes && std::memcmp(actual[i]->data, expected[i]->data, actual[i]->bytes) == 0;
      const vt_test::Tolerance tolerance = relative > 0 ? vt_test::Tolerance{.relative = relative, .absolute = relative} : vt_test::Tolerance{};
      if (!same)
        vt_test::expect_close(from_buffer(actual[i], aval), from_buffer(expected[i], aval), tolerance, what + " result " + std::to_string(i));
      EXPECT_TRUE(same || relative > 0) << what << " result " << i << ", seed " << seed;
      const bool as_before = first.empty() || std::memcmp(actual[i]->data, first[i]->data, actual[i]->bytes) == 0;
      EXPECT_TRUE(as_before) << what << " depends on the order, seed " << seed;
    }
    if (first.empty()) first = actual;
  }
  if (emulator) emulator->set_seed(0);
}

/// Few different numbers, so that there are equals; of floats also both zeros, infinities and NaNs of several bits.
Tensor mixed(vt::DType d, const Shape& shape, std::uint64_t seed) {
  const Tensor x = vt_test::random_tensor(vt::f64, shape, -40, 40, seed);
  Tensor y = vt::floor(x);
  if (vt::is_unsigned(d)) y = vt::abs(y);
  if (d == vt::i64) return (y.astype(vt::i64) << 40) + y.astype(vt::i64);
  if (d == vt::u64) return y.astype(vt::u64) << 58;
  if (vt::is_bool(d)) return y > 3;
  if (!vt::is_float(d)) return y.astype(d);
  y = vt::where(x > 38, vt::full(shape, std::nan("")), vt::where(x < -38, vt::full(shape, -std::nan("")), y * 0.25));
  y = vt::where(vt::abs(x - 20) < 1, vt::full(shape, -0.0), vt::where(vt::abs(x - 25) < 1, vt::full(shape, INFINITY), y));
  return y.astype(d).eval();
}

constexpr vt::DType all_dtypes[] = {vt::bool_, vt::i8,  vt::u8,  vt::i16,  vt::u16, vt::i32, vt::u32,
                                    vt::i64,   vt::u64, vt::f16, vt::bf16, vt::f32, vt::f64};

TEST(CudaOrder, ShortRowsOfAllDtypes) {
  for (const vt::DType d : all_dtypes)
    expect_exact([](std::span<const Tensor> a) { return Tensors{vt::sort(a[0]), vt::argsort(a[0], -1, {.descending = true})}; },
                 {mixed(d, {7, 50}, 1)}, std::string(vt::name_of(d)));
}

TEST(CudaOrder, ShortRowsAlongAnyAxis) {
  const Tensor x = mixed(vt::f32, {5, 37, 21}, 2);
  for (int axis = 0; axis < 3; ++axis)
    expect_exact([&](std::span<const Tensor> a) { return Tensors{vt::sort(a[0], axis), vt::argsort(a[0], axis)}; }, {x},
                 "axis " + std::to_string(axis));
  for (const Shape& shape : {Shape{1}, {2}, {3, 2}, {1, 4096}, {300, 3}, {0, 4}, {4, 0}})
    expect_exact([&](std::span<const Tensor> a) { return Tensors{vt::sort(a[0]), vt::argsort(a[0])}; }, {mixed(vt::i32, shape, 3)}, shape.str());
}

// Longer than a block's shared memory holds.
TEST(CudaOrder, LongRowsOfAllDtypes) {
  for (const vt::DType d : {vt::bool_, vt::i8, vt::u16, vt::f16})
    expect_exact([](std::span<const Tensor> a) { return Tensors{vt::sort(a[0]), vt::argsort(a[0])}; }, {mixed(d, {8200}, 4)},
                 std::string(vt::name_of(d)));
  for (const vt::DType d : {vt::u64, vt::f64, vt::f32})
    expect_exact([](std::span<const Tensor> a) { return Tensors{vt::sort(a[0]), vt::argsort(a[0])}; }, {mixed(d, {4100}, 4)},
                 std::string(vt::name_of(d)));
  expect_exact([](std::span<const Tensor> a) { return Tensors{vt::sort(a[0], 1, {.descending = true})}; }, {mixed(vt::i32, {2, 4100, 2}, 5)},
               "values");
  expect_exact([](std::span<const Tensor> a) { return Tensors{vt::argsort(a[0], 1, {.descending = true})}; }, {mixed(vt::bf16, {2, 8200, 2}, 6)},
               "places");
}

TEST(CudaOrder, SeveralKeys) {
  for (const std::int64_t n : {60, 2100}) {
    const Tensor a = mixed(vt::bool_, {2, n}, 7), b = mixed(vt::f64, {2, n}, 8), c = mixed(vt::i16, {2, n}, 9), d = mixed(vt::u64, {2, n}, 10);
    expect_exact([](std::span<const Tensor> x) { return Tensors{vt::lexsort({x[3], x[2], x[1], x[0]}), vt::lexsort({x[2], x[0]})}; }, {a, b, c, d},
                 "rows of " + std::to_string(n));
  }
}

TEST(CudaOrder, Selections) {
  for (const std::int64_t n : {40, 9000})
    for (const vt::DType d : {vt::f32, vt::f64, vt::i8}) {
      expect_exact(
          [](std::span<const Tensor> a) {
            const auto [values, places] = vt::top_k(a[0], 5);
            return Tensors{values, places, vt::slice_in_dim(vt::sort(a[0]), 2, 4, 1, 1)};
          },
          {mixed(d, {2, n}, 11)}, std::string(vt::name_of(d)) + " rows of " + std::to_string(n));
    }
  // Along another axis; all equal; more than a block's candidates.
  expect_exact([](std::span<const Tensor> a) { return Tensors{vt::top_k(a[0], 4, 0).second}; }, {mixed(vt::f32, {9000, 3}, 12)}, "axis 0");
  expect_exact([](std::span<const Tensor> a) { return Tensors{vt::top_k(a[0], 600).second}; }, {vt::zeros({2, 9000})}, "equals");
  expect_exact([](std::span<const Tensor> a) { return Tensors{vt::top_k(a[0], 1000).second}; }, {mixed(vt::i32, {20000}, 13)}, "many");
}

TEST(CudaOrder, Searches) {
  const Tensor sorted = vt::sort(mixed(vt::f32, {300}, 14)).eval(), values = mixed(vt::f32, {4, 50}, 15);
  expect_exact([](std::span<const Tensor> a) { return Tensors{vt::searchsorted(a[0], a[1]), vt::searchsorted(a[0], a[1], true)}; }, {sorted, values},
               "");
}

}  // namespace
