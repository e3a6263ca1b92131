// The definition of sort: its order against one written down here, stability, places, and what the
// shape rule refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "support/message.hpp"
#include "support/run_op.hpp"

namespace {

using namespace vt;
using namespace vt::detail;
using vt_test::message;
using vt_test::run_op_all;
using Tensors = std::vector<Tensor>;

Tensors sorted(const Tensors& operands, int axis, int keys = 1, bool descending = false) {
  const std::int64_t n = operands[0].shape()[axis];
  return run_op_all(Op::sort, make_params(SortParams{axis, keys, descending, 0, n}), operands);
}
std::vector<int> places(const Tensor& x, bool descending = false) {
  return sorted({x, arange(x.dim(0))}, 0, 1, descending)[1].to_vector<int>();
}

constexpr float nan = std::numeric_limits<float>::quiet_NaN(),
                inf = std::numeric_limits<float>::infinity();

TEST(InterpretSort, NanIsLastAndZerosAreEqual) {
  EXPECT_EQ(places(tensor({nan, 0.0f, inf, -0.0f, nan, -inf, 0.0f, -1.0f})),
            (std::vector<int>{5, 7, 1, 3, 6, 2, 0, 4}));
  EXPECT_EQ(places(tensor({nan, 0.0f, inf, -0.0f, nan, -inf, 0.0f, -1.0f}), true),
            (std::vector<int>{0, 4, 2, 1, 3, 6, 7, 5}));
  // Elements are moved, not made: zeros keep their signs, NaNs their bits.
  const float odd = std::bit_cast<float>(0xffc12345u);
  const auto values = sorted({tensor({odd, 0.0f, -0.0f, nan})}, 0)[0].to_vector<float>();
  EXPECT_FALSE(std::signbit(values[0]));
  EXPECT_TRUE(std::signbit(values[1]));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(values[2]), 0xffc12345u);
}

TEST(InterpretSort, AllDtypesAgainstAStableSort) {
  std::uint64_t seed = 1;
  for (int d = 0; d < real_dtype_count; ++d)
    for (std::int64_t n : {0, 1, 2, 3, 17, 101})
      for (bool descending : {false, true}) {
        const auto dtype = static_cast<DType>(d);
        const Tensor x = vt_test::random_tensor(dtype, {n}, -6, 6, ++seed);
        const auto values = x.to_vector<double>();
        std::vector<int> expected(values.size());
        std::iota(expected.begin(), expected.end(), 0);
        std::stable_sort(expected.begin(), expected.end(), [&](int i, int j) {
          const double a = values[i], b = values[j];
          return descending ? a > b : a < b;
        });
        EXPECT_EQ(places(x, descending), expected) << name_of(dtype) << " of " << n;
      }
  const auto wide =
      sorted({tensor(std::vector<std::uint64_t>{~0ull, 1ull << 63, (1ull << 63) + 1, 3})}, 0)[0]
          .to_vector<std::uint64_t>();
  EXPECT_EQ(wide, (std::vector<std::uint64_t>{3, 1ull << 63, (1ull << 63) + 1, ~0ull}));
  const auto low =
      sorted({tensor(std::vector<std::int64_t>{5, std::numeric_limits<std::int64_t>::min(), -1})},
             0)[0]
          .to_vector<std::int64_t>();
  EXPECT_EQ(low, (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), -1, 5}));
}

TEST(InterpretSort, LaterKeysBreakTies) {
  const Tensors r =
      sorted({tensor({1, 0, 1, 0, 1}), tensor({2.0f, nan, -1.0f, 3.0f, 2.0f}), arange(5)}, 0, 2);
  EXPECT_EQ(r[0].to_vector<int>(), (std::vector<int>{0, 0, 1, 1, 1}));
  EXPECT_EQ(r[2].to_vector<int>(), (std::vector<int>{3, 1, 2, 0, 4}));
  EXPECT_EQ(sorted({tensor({1, 0, 1, 0, 1}), tensor({2.0f, nan, -1.0f, 3.0f, 2.0f}), arange(5)}, 0,
                   2, true)[2]
                .to_vector<int>(),
            (std::vector<int>{0, 4, 2, 1, 3}));
}

TEST(InterpretSort, EveryAxisAndSomePlaces) {
  const Tensor x = vt_test::random_tensor(i32, {3, 5, 4}, -4, 4, 9);
  for (int axis : {0, 1, 2}) {
    const Tensor all = sorted({x}, axis)[0];
    const std::int64_t n = x.dim(axis);
    for (std::int64_t start = 0; start <= n; ++start)
      for (std::int64_t limit = start; limit <= n; ++limit) {
        const Tensor some =
            run_op_all(Op::sort, make_params(SortParams{axis, 1, false, start, limit}), {x})[0];
        vt_test::expect_close(some, slice_in_dim(all, start, limit, axis));
      }
    // A row by itself.
    const Tensor rows = moveaxis(x, axis, -1), results = moveaxis(all, axis, -1);
    auto row = Tensor(rows[1][1]).to_vector<int>();
    std::sort(row.begin(), row.end());
    EXPECT_EQ(Tensor(results[1][1]).to_vector<int>(), row);
  }
}

TEST(InterpretSort, Refusals) {
  const auto refused = [](SortParams p, const Tensors& operands) {
    return message([&] { run_op_all(Op::sort, make_params(p), operands); });
  };
  const Tensor x = ones({2, 3});
  EXPECT_EQ(refused({2, 1, false, 0, 3}, {x}),
            "vt::sort: axis 2 out of range for rank 2: f32[2,3]; at proto.cpp:41");
  EXPECT_EQ(
      refused({1, 2, false, 0, 3}, {x}),
      "vt::sort: the number of keys must be between 1 and 1, not 2: f32[2,3]; at proto.cpp:41");
  EXPECT_EQ(
      refused({1, 0, false, 0, 3}, {x}),
      "vt::sort: the number of keys must be between 1 and 1, not 0: f32[2,3]; at proto.cpp:41");
  EXPECT_EQ(refused({1, 1, false, 2, 4}, {x}),
            "vt::sort: places 2 to 4 are no part of axis 1 of size 3: f32[2,3]; at proto.cpp:41");
  EXPECT_EQ(refused({1, 1, false, 0, 3}, {x, ones({3})}),
            "vt::sort: operands differ in shape: f32[2,3] · f32[3]; at proto.cpp:41");
  EXPECT_EQ(refused({0, 1, false, 0, 1}, {}),
            "vt::sort: needs at least one operand; at proto.cpp:41");
}

}  // namespace
