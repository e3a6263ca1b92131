// Sorts and scatters on a CUDA device, here the emulated one, which finds races and accesses out of
// bounds: the interpreter's results to the last bit, whatever the order of blocks and threads, and
// nothing on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/cuda_program.hpp"

namespace {

using namespace vt::detail;
using vt::Shape;
using vt::Tensor;
using vt_test::device, vt_test::emulator, vt_test::Tensors;

/// f(arguments) on the device: the interpreter's results to the last bit, without the host, and
/// with several orders of blocks and threads.
void expect_exact(const FlatFunction& f, const Tensors& arguments, const std::string& what,
                  double relative = 0) {
  const auto [recorded, inputs, expected] = vt_test::interpreted(f, arguments);
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
      const bool same = actual[i]->bytes == expected[i]->bytes &&
                        std::memcmp(actual[i]->data, expected[i]->data, actual[i]->bytes) == 0;
      const vt_test::Tolerance tolerance =
          relative > 0 ? vt_test::Tolerance{.relative = relative, .absolute = relative}
                       : vt_test::Tolerance{};
      if (!same)
        vt_test::expect_close(from_buffer(actual[i], aval), from_buffer(expected[i], aval),
                              tolerance, what + " result " + std::to_string(i));
      EXPECT_TRUE(same || relative > 0) << what << " result " << i << ", seed " << seed;
      const bool as_before =
          first.empty() || std::memcmp(actual[i]->data, first[i]->data, actual[i]->bytes) == 0;
      EXPECT_TRUE(as_before) << what << " depends on the order, seed " << seed;
    }
    if (first.empty()) first = actual;
  }
  if (emulator) emulator->set_seed(0);
}

/// Few different numbers, so that there are equals; of floats also both zeros, infinities and NaNs
/// of several bits.
Tensor mixed(vt::DType d, const Shape& shape, std::uint64_t seed) {
  const Tensor x = vt_test::random_tensor(vt::f64, shape, -40, 40, seed);
  Tensor y = vt::floor(x);
  if (vt::is_unsigned(d)) y = vt::abs(y);
  if (d == vt::i64) return (y.astype(vt::i64) << 40) + y.astype(vt::i64);
  if (d == vt::u64) return y.astype(vt::u64) << 58;
  if (vt::is_bool(d)) return y > 3;
  if (!vt::is_float(d)) return y.astype(d);
  y = vt::where(x > 38, vt::full(shape, std::nan("")),
                vt::where(x < -38, vt::full(shape, -std::nan("")), y * 0.25));
  y = vt::where(vt::abs(x - 20) < 1, vt::full(shape, -0.0),
                vt::where(vt::abs(x - 25) < 1, vt::full(shape, INFINITY), y));
  return y.astype(d).eval();
}

constexpr vt::DType all_dtypes[] = {vt::bool_, vt::i8,  vt::u8,  vt::i16, vt::u16,
                                    vt::i32,   vt::u32, vt::i64, vt::u64, vt::f16,
                                    vt::bf16,  vt::f32, vt::f64};

TEST(CudaOrder, ShortRowsOfAllDtypes) {
  for (const vt::DType d : all_dtypes)
    expect_exact(
        [](std::span<const Tensor> a) {
          return Tensors{vt::sort(a[0]), vt::argsort(a[0], -1, {.descending = true})};
        },
        {mixed(d, {7, 50}, 1)}, std::string(vt::name_of(d)));
}

TEST(CudaOrder, ShortRowsAlongAnyAxis) {
  const Tensor x = mixed(vt::f32, {5, 37, 21}, 2);
  for (int axis = 0; axis < 3; ++axis)
    expect_exact(
        [&](std::span<const Tensor> a) {
          return Tensors{vt::sort(a[0], axis), vt::argsort(a[0], axis)};
        },
        {x}, "axis " + std::to_string(axis));
  for (const Shape& shape : {Shape{1}, {2}, {3, 2}, {1, 4096}, {300, 3}, {0, 4}, {4, 0}})
    expect_exact(
        [&](std::span<const Tensor> a) { return Tensors{vt::sort(a[0]), vt::argsort(a[0])}; },
        {mixed(vt::i32, shape, 3)}, shape.str());
}

// Longer than a block's shared memory holds.
TEST(CudaOrder, LongRowsOfAllDtypes) {
  for (const vt::DType d : {vt::bool_, vt::i8, vt::u16, vt::f16})
    expect_exact(
        [](std::span<const Tensor> a) { return Tensors{vt::sort(a[0]), vt::argsort(a[0])}; },
        {mixed(d, {8200}, 4)}, std::string(vt::name_of(d)));
  for (const vt::DType d : {vt::u64, vt::f64, vt::f32})
    expect_exact(
        [](std::span<const Tensor> a) { return Tensors{vt::sort(a[0]), vt::argsort(a[0])}; },
        {mixed(d, {4100}, 4)}, std::string(vt::name_of(d)));
  expect_exact(
      [](std::span<const Tensor> a) { return Tensors{vt::sort(a[0], 1, {.descending = true})}; },
      {mixed(vt::i32, {2, 4100, 2}, 5)}, "values");
  expect_exact(
      [](std::span<const Tensor> a) { return Tensors{vt::argsort(a[0], 1, {.descending = true})}; },
      {mixed(vt::bf16, {2, 8200, 2}, 6)}, "places");
}

TEST(CudaOrder, SeveralKeys) {
  for (const std::int64_t n : {60, 2100}) {
    const Tensor a = mixed(vt::bool_, {2, n}, 7), b = mixed(vt::f64, {2, n}, 8),
                 c = mixed(vt::i16, {2, n}, 9), d = mixed(vt::u64, {2, n}, 10);
    expect_exact(
        [](std::span<const Tensor> x) {
          return Tensors{vt::lexsort({x[3], x[2], x[1], x[0]}), vt::lexsort({x[2], x[0]})};
        },
        {a, b, c, d}, "rows of " + std::to_string(n));
  }
}

TEST(CudaOrder, Selections) {
  for (const std::int64_t n : {40, 9000})
    for (const vt::DType d : {vt::f32, vt::f64, vt::i8}) {
      expect_exact(
          [](std::span<const Tensor> a) {
            const auto [values, places] = vt::top_k(a[0], 5);
            return Tensors{values, places, vt::slice_in_dim(vt::sort(a[0]), 2, 4, 1)};
          },
          {mixed(d, {2, n}, 11)}, std::string(vt::name_of(d)) + " rows of " + std::to_string(n));
    }
  // Along another axis; all equal; more than a block's candidates.
  expect_exact([](std::span<const Tensor> a) { return Tensors{vt::top_k(a[0], 4, 0).second}; },
               {mixed(vt::f32, {9000, 3}, 12)}, "axis 0");
  expect_exact([](std::span<const Tensor> a) { return Tensors{vt::top_k(a[0], 600).second}; },
               {vt::zeros({2, 9000})}, "equals");
  expect_exact([](std::span<const Tensor> a) { return Tensors{vt::top_k(a[0], 1000).second}; },
               {mixed(vt::i32, {20000}, 13)}, "many");
}

TEST(CudaOrder, Searches) {
  const Tensor sorted = vt::sort(mixed(vt::f32, {300}, 14)).eval(),
               values = mixed(vt::f32, {4, 50}, 15);
  expect_exact(
      [](std::span<const Tensor> a) {
        return Tensors{vt::searchsorted(a[0], a[1]), vt::searchsorted(a[0], a[1], true)};
      },
      {sorted, values}, "");
}

// --- scatters

constexpr auto sums = [](std::span<const Tensor> a) {
  return Tensors{vt::segment_sum(a[0], a[1], 40), vt::segment_prod(a[0], a[1], 40)};
};
constexpr auto extremes = [](std::span<const Tensor> a) {
  return Tensors{vt::segment_max(a[0], a[1], 40), vt::segment_min(a[0], a[1], 40)};
};

/// Indices among which many are alike, and some lie outside.
Tensor places(std::int64_t n, std::int64_t limit, std::uint64_t seed) {
  return vt::floor(vt_test::random_tensor(vt::f64, {n}, -2, static_cast<double>(limit) + 2, seed))
      .astype(vt::i32)
      .eval();
}

// Fewer than a piece of them meet: the interpreter's order, which adds floats in f64 and has NaNs
// of other bits.
TEST(CudaOrder, ScattersOfAllDtypes) {
  for (const vt::DType d : all_dtypes) {
    const double rounding = !vt::is_float(d)  ? 0
                            : d == vt::f64    ? 1e-300
                            : size_of(d) == 4 ? 1e-5
                                              : 1e-2;
    if (!vt::is_bool(d))
      expect_exact(sums, {mixed(d, {600}, 21), places(600, 40, 22)},
                   "sums of " + std::string(vt::name_of(d)), rounding);
    const double nothing = vt::is_float(d) ? 1e-300 : 0;
    expect_exact(extremes, {mixed(d, {600}, 23), places(600, 40, 24)},
                 "extremes of " + std::string(vt::name_of(d)), nothing);
  }
}

// In f64, which the interpreter adds in, to the last bit.
TEST(CudaOrder, ScattersOfRowsAndWindows) {
  const auto scatter = [](Op op, const ScatterParams& p, const Tensors& a) {
    return emit(op, make_params(p), {a[0], a[1], a[2]}, {});
  };
  const Tensor table = vt_test::random_tensor(vt::f64, {30, 17}, -1, 1, 25),
               rows = vt_test::random_tensor(vt::f64, {200, 17}, -1, 1, 26);
  const Tensor columns = vt_test::random_tensor(vt::f64, {30, 90}, -1, 1, 27),
               at = vt::reshape(places(200, 30, 28), {200, 1}).eval();
  for (const Op op : {Op::scatter, Op::scatter_add, Op::scatter_max}) {
    const std::string what(name_of(op));
    ScatterParams by_row;
    by_row.update_window_dims = {1};
    by_row.inserted_window_dims = {0};
    by_row.scatter_dims_to_operand_dims = {0};
    expect_exact(
        [&](std::span<const Tensor> a) { return Tensors{scatter(op, by_row, {a[0], a[1], a[2]})}; },
        {table, at, rows}, what + " of rows");
    ScatterParams by_column;
    by_column.update_window_dims = {0};
    by_column.inserted_window_dims = {1};
    by_column.scatter_dims_to_operand_dims = {1};
    const Tensor where = vt::reshape(places(90, 17, 29), {90, 1}).eval();
    expect_exact(
        [&](std::span<const Tensor> a) {
          return Tensors{scatter(op, by_column, {a[0], a[1], a[2]})};
        },
        {table, where, columns}, what + " of columns");
    // Windows that overlap in part.
    ScatterParams windows;
    windows.update_window_dims = {1, 2};
    windows.scatter_dims_to_operand_dims = {0, 1};
    const Tensor corners =
        vt::stack({vt::reshape(places(50, 28, 30), {50}), vt::reshape(places(50, 13, 31), {50})}, 1)
            .eval();
    expect_exact(
        [&](std::span<const Tensor> a) {
          return Tensors{scatter(op, windows, {a[0], a[1], a[2]})};
        },
        {table, corners, vt_test::random_tensor(vt::f64, {50, 3, 4}, -1, 1, 32)},
        what + " of windows");
    // A promise that nothing meets.
    ScatterParams unique = by_row;
    unique.unique = true;
    expect_exact(
        [&](std::span<const Tensor> a) { return Tensors{scatter(op, unique, {a[0], a[1], a[2]})}; },
        {table, vt::reshape(vt::arange(20) * 7 % 23, {20, 1}).astype(vt::i32).eval(),
         vt::slice_in_dim(rows, 0, 20).eval()},
        what + " of unique rows");
  }
}

// More than a piece of updates meet: sums in another order than the interpreter's, but always the
// same.
TEST(CudaOrder, ScattersOfManyToOne) {
  const Tensor x = vt_test::random_tensor(vt::f32, {5000}, -1, 1, 33), few = places(5000, 3, 34);
  expect_exact([](std::span<const Tensor> a) { return Tensors{vt::segment_sum(a[0], a[1], 3)}; },
               {x, few}, "three sums", 1e-4);
  expect_exact(
      [](std::span<const Tensor> a) {
        return Tensors{vt::segment_max(a[0], a[1], 3), vt::bincount(a[1], 3)};
      },
      {x, few}, "three extremes");
  const Tensor rows = vt_test::random_tensor(vt::f32, {700, 5}, -1, 1, 35);
  expect_exact([](std::span<const Tensor> a) { return Tensors{vt::segment_sum(a[0], a[1], 2)}; },
               {rows, places(700, 2, 36)}, "two rows", 1e-4);
}

TEST(CudaOrder, GradientOfAnEmbedding) {
  const Tensor table = vt_test::random_tensor(vt::f32, {50, 8}, -1, 1, 37),
               words = vt::clip(places(300, 50, 38), 0, 49).eval();
  const auto loss = [](Tensor table, Tensor words) {
    return vt::sum(vt::tanh(vt::take(table, words, 0)));
  };
  expect_exact([&](std::span<const Tensor> a) { return Tensors{vt::grad(loss)(a[0], a[1])}; },
               {table, words}, "", 1e-6);
}

}  // namespace
