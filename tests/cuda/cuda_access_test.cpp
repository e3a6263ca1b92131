// How kernels reach memory on a CUDA device, here the emulated one: neighbours by one access, with
// what is left over, arrays that begin anywhere and those that cannot be read so; transposed arrays
// through shared memory; reductions down columns. All as the interpreter has it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/cuda/source/nest_source.hpp"
#include "support/cuda_program.hpp"

namespace {

using namespace vt::detail;
using vt::Shape;
using vt::Tensor;
using vt_test::device, vt_test::emulator, vt_test::Tensors;

[[maybe_unused]] const int few_threads_are_kept_busy =
    ::setenv("VT_EMULATOR_MULTIPROCESSORS", "1", 1);

/// f(arguments) on the device against the interpreter's results, with two orders of threads; its
/// program as text.
std::string expect_same_and_report(const FlatFunction& f, const Tensors& arguments,
                                   const vt_test::Tolerance& tolerance, const std::string& what) {
  const auto [recorded, inputs, expected] = vt_test::interpreted(f, arguments);
  const std::shared_ptr<Executable> program = compile_graph(recorded.graph, device);
  for (unsigned long seed : {0ul, 5ul}) {
    if (emulator) emulator->set_seed(seed);
    vt::Vec<BufferRef> actual;
    EXPECT_NO_THROW(actual = program->run(inputs)) << what << (emulator ? emulator->report() : "");
    if (actual.size() != expected.size()) return {};
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const Aval& aval = recorded.graph.aval(recorded.graph.outputs[i]);
      vt_test::expect_close(from_buffer(actual[i], aval), from_buffer(expected[i], aval), tolerance,
                            what + " result " + std::to_string(i));
    }
  }
  if (emulator) emulator->set_seed(0);
  Report report;
  program->report(report, 0);
  std::string text;
  for (const ReportStep& step : report) text += step.title + "\n" + step.nest;
  return text;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CudaAccess, NeighboursByOneAccess) {
  struct Case {
    vt::DType dtype;
    int vector;
  };
  for (const Case c : {Case{vt::f32, 4}, {vt::f16, 8}, {vt::f64, 2}, {vt::u8, 8}})
    for (const std::int64_t n : {20000, 20003}) {
      const Tensor x = vt_test::random_tensor(c.dtype, {n}, 1, 9, 1),
                   y = vt_test::random_tensor(c.dtype, {n}, 1, 9, 2);
      const std::string text = expect_same_and_report(
          [](std::span<const Tensor> a) { return Tensors{a[0] * a[1] + a[0]}; }, {x, y},
          {.ulps = 1}, std::string(vt::name_of(c.dtype)) + " " + std::to_string(n));
      EXPECT_TRUE(says(text, std::to_string(c.vector) + " neighbours at a time")) << text;
    }
}

TEST(CudaAccess, NeighboursOfSeveralDtypesAndBroadcasts) {
  const Tensor x = vt_test::random_tensor(vt::f32, {90, 248}, -2, 2, 3),
               row = vt_test::random_tensor(vt::f32, {248}, -2, 2, 4),
               column = vt_test::random_tensor(vt::f32, {90, 1}, -2, 2, 5),
               table = vt_test::random_tensor(vt::f32, {50}, -2, 2, 6);
  const std::string text = expect_same_and_report(
      [](std::span<const Tensor> a) {
        const Tensor at = vt::clip(vt::floor(a[0] * 10 + 20).astype(vt::i32), 0, 49);
        return Tensors{(a[0] + a[1]) * a[2], a[0] > a[1], a[0].astype(vt::f16),
                       vt::take(a[3], at) + a[0]};
      },
      {x, row, column, table}, {.ulps = 1}, "all");
  EXPECT_TRUE(says(text, "4 neighbours at a time")) << text;
  // Rows that begin anywhere, and reversed ones, cannot be read so.
  expect_same_and_report(
      [](std::span<const Tensor> a) {
        return Tensors{vt::slice(a[0], {0, 1}, {90, 248}) * 2, vt::flip(a[0], 1) + a[0]};
      },
      {x}, {.ulps = 1}, "slices");
  expect_same_and_report(
      [](std::span<const Tensor> a) {
        return Tensors{vt::pad(a[0], {{3, 2}, {1, 7}}, 1.5), vt::concatenate({a[0], a[0]}, 1)};
      },
      {x}, {}, "pads");
}

// The iterations of a scan lie anywhere in its operands and results.
TEST(CudaAccess, ArraysThatBeginAnywhere) {
  const Tensor xs = vt_test::random_tensor(vt::f32, {3, 20001}, -2, 2, 7);
  const auto f = [](Tensor xs) {
    return vt::scan(
        [](Tensor sum, Tensor x) {
          return std::pair(sum + x * 0.5, vt::reshape(vt::tanh(sum) + x, {20001}));
        },
        vt::zeros({20001}), xs);
  };
  const std::string text = expect_same_and_report(
      [&](std::span<const Tensor> a) { return Tensors{f(a[0]).first, f(a[0]).second}; }, {xs},
      {.relative = 1e-6, .absolute = 1e-6}, "scan");
  EXPECT_TRUE(says(text, "neighbours at a time")) << text;
}

// Squares of 32 × 32, and what is left of them.
TEST(CudaAccess, TransposedArrays) {
  const Tensor x = vt_test::random_tensor(vt::f32, {3, 70, 45}, -2, 2, 8),
               y = vt_test::random_tensor(vt::f32, {3, 45, 70}, -2, 2, 9);
  const std::string text = expect_same_and_report(
      [](std::span<const Tensor> a) { return Tensors{vt::transpose(a[0], {0, 2, 1}) * a[1]}; },
      {x, y}, {}, "the last two axes");
  EXPECT_TRUE(says(text, "transposed in shared memory")) << text;
  expect_same_and_report(
      [](std::span<const Tensor> a) {
        return Tensors{vt::transpose(a[0], {2, 0, 1}) + 1, vt::transpose(a[0], {2, 1, 0})};
      },
      {x}, {}, "others");
  for (const vt::DType d : {vt::f16, vt::f64, vt::bool_})
    expect_same_and_report([](std::span<const Tensor> a) { return Tensors{vt::transpose(a[0])}; },
                           {vt_test::random_tensor(d, {64, 33}, 0, 2, 10)}, {},
                           std::string(vt::name_of(d)));
}

TEST(CudaAccess, ReductionsDownColumns) {
  const vt_test::Tolerance rounding{.relative = 1e-5, .absolute = 1e-4};
  for (const Shape& shape : {Shape{700, 40}, {3000, 5}, {200, 33}, {70, 2, 9}}) {
    const Tensor x = vt_test::random_tensor(vt::f32, shape, -2, 2, 11);
    const std::string text = expect_same_and_report(
        [](std::span<const Tensor> a) {
          return Tensors{vt::sum(a[0], 0), vt::max(a[0], 0), vt::argmin(a[0], 0),
                         vt::any(a[0] > 1.99, 0), vt::sum(a[0] * a[0], 0)};
        },
        {x}, rounding, shape.str());
    EXPECT_TRUE(says(text, "32 beside each other")) << text;
  }
}

// How many threads a row gets, by estimated times: the same on every device, as it decides in which
// order a sum is made.
TEST(CudaAccess, ThreadGroupsOfRows) {
  struct Case {
    Shape shape;
    int axis, thread_group;
    const char* log;
  };
  for (const Case& c : {Case{{300000, 4}, 1, 1, "chosen: 1 thread for a row"},
                        {{40000, 96}, 1, 32, "chosen: 32 threads for a row"},
                        {{2, 3000}, 1, 256, "chosen: 256 threads for a row"},
                        {{3000, 5}, 0, 16, "chosen: 16 threads for a row"}}) {
    const double rows = static_cast<double>(c.shape[1 - c.axis]);
    const vt::detail::cuda::RowWork work{
        .elements = static_cast<double>(c.shape[c.axis]), .rows = rows, .beside = c.axis == 0};
    const vt::detail::cuda::ThreadGroupChoice choice = vt::detail::cuda::choose_thread_group(work);
    EXPECT_EQ(choice.thread_group, c.thread_group) << choice.str();
    EXPECT_NE(choice.runner_up, choice.thread_group);
    EXPECT_LE(choice.time, choice.next_time + 300) << choice.str();
    EXPECT_EQ(choice.time, vt::detail::cuda::time_of_thread_groups(work, choice.thread_group));
    if (rows > 5000) continue;
    const std::string text = expect_same_and_report(
        [&](std::span<const Tensor> a) { return Tensors{vt::sum(a[0], c.axis)}; },
        {vt_test::random_quarters(vt::f32, c.shape, 15)}, {}, c.shape.str());
    EXPECT_TRUE(says(text, c.log)) << text;
  }
}

// Few long rows, cut in blocks that threads share.
TEST(CudaAccess, LongScans) {
  const vt_test::Tolerance rounding{.relative = 1e-6, .absolute = 1e-5};
  const Tensor rows = vt_test::random_tensor(vt::f32, {2, 33000}, -1, 1, 12),
               columns = vt_test::random_tensor(vt::f32, {1100, 40}, -1, 1, 13);
  const Tensor counts =
      vt::floor(vt_test::random_tensor(vt::f64, {40000}, -9, 9, 14)).astype(vt::i32).eval();
  const std::string along = expect_same_and_report(
      [](std::span<const Tensor> a) {
        return Tensors{vt::cumsum(a[0], 1), vt::cummax(a[0], 1),
                       vt::cumsum(a[0] * 2, 1, {.reverse = true}) + 1};
      },
      {rows}, rounding, "along rows");
  EXPECT_TRUE(says(along, "rows are cut in blocks of 4096")) << along;
  const std::string down = expect_same_and_report(
      [](std::span<const Tensor> a) { return Tensors{vt::cumsum(a[0], 0), vt::cummin(a[0], 0)}; },
      {columns}, rounding, "down columns");
  EXPECT_TRUE(says(down, "rows are cut in blocks of 256")) << down;
  expect_same_and_report(
      [](std::span<const Tensor> a) {
        return Tensors{vt::cumsum(a[0]), vt::cumprod(a[0] % 3 + 2),
                       vt::nonzero(a[0] > 3, 40000)[0]};
      },
      {counts}, {}, "integers");
}

}  // namespace
