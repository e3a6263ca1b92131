// Compiled control flow reads nothing beyond its operands, whatever the number of lanes: the
// operands begin or end where the memory does. Sanitizers do not see into compiled code.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include <vt/vt.hpp>

#include "support/fenced.hpp"

namespace {

using vt::Tensor;

using Fenced = vt_test::Fenced<double>;

// A function of a lane's number, its row of 5 and a table of 70 that all lanes share.
using Function = std::function<Tensor(Tensor, Tensor, Tensor)>;

void expect_within(const Function& one_lane) {
  const auto lanes_of = [&](Tensor x, Tensor rows, Tensor table) {
    return vt::vmap(one_lane, {.in_axes = {0, 0, vt::unmapped}})(x, rows, table);
  };
  const auto compiled = vt::jit(lanes_of);
  for (const bool at_end : {true, false})
    for (const std::int64_t lanes : {1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 67}) {
      const Fenced x(lanes, at_end), rows(lanes * 5, at_end), table(70, at_end);
      const Tensor a = x.tensor({lanes}), b = rows.tensor({lanes, 5}), c = table.tensor({70});
      std::vector<double> expected;
      for (std::int64_t i = 0; i < lanes; ++i)
        expected.push_back(one_lane(a[i], b[i], c).item<double>());
      for (int run = 0; run < 2; ++run) {  // seen for the first time a Graph may be interpreted
        const std::vector<double> actual = compiled(a, b, c).to_vector<double>();
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t i = 0; i < actual.size(); ++i)
          ASSERT_NEAR(actual[i], expected[i], 1e-12) << lanes << " lanes, lane " << i;
      }
    }
}

TEST(JitBounds, LoopsOfLanes) {
  expect_within([](Tensor x, Tensor row, Tensor) {
    return vt::while_loop([](Tensor y) { return y < 3.0; },
                          [&](Tensor y) { return y * 1.3 + 0.1 * vt::sum(row); }, x);
  });
}

TEST(JitBounds, PlacesInATable) {
  expect_within([](Tensor x, Tensor row, Tensor table) {
    // mostly beyond the end
    const auto place = [](Tensor y) { return (y * 1000.0).astype(vt::i32); };
    return vt::while_loop([](Tensor y) { return y < 3.0; },
                          [&](Tensor y) {
                            return y + table[place(y)] +
                                   0.01 * vt::sum(vt::dynamic_slice(table, {place(y - 1.0)}, {4})) +
                                   row[4];
                          },
                          x);
  });
}

TEST(JitBounds, Branches) {
  expect_within([](Tensor x, Tensor row, Tensor table) {
    return vt::cond(
        x < 0.4, [&](Tensor y) { return y * row[0]; },
        [&](Tensor y) { return y + table[69] + row[4]; }, x);
  });
}

TEST(JitBounds, Sequences) {
  expect_within([](Tensor x, Tensor row, Tensor table) {
    const auto [last, all] =
        vt::scan([](Tensor c, Tensor v) { return std::pair(0.9 * c + v, c * v); }, x, table);
    return last + vt::while_loop([](Tensor y) { return y < 2.0; },
                                 [&](Tensor y) { return y + vt::max(row); }, vt::sum(all));
  });
}

// Every second to fourth element of rows, with lanes along them: the last vectors of a row and
// edges of padding are read under masks.
template <class T>
void expect_strides_within(vt::DType dtype) {
  for (const std::int64_t step : {2, 3, 4})
    for (const std::int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 33, 70})
      for (const bool at_end : {true, false}) {
        const std::int64_t rows = 3, width = (n - 1) * step + 1;
        const auto padded = vt::jit([&](Tensor x) {
          return vt::pad(
              vt::slice_in_dim(x, 0, width, 1, step) + vt::slice_in_dim(x, 0, width, 1, step),
              {{0, 0}, {2, 1}});
        });
        const vt_test::Fenced<T> x(rows * width, at_end);
        const Tensor a = x.tensor({rows, width});
        for (int run = 0; run < 2; ++run) {
          const std::vector<T> from = a.to_vector<T>(),
                               to = Tensor(padded(a)).template to_vector<T>();
          ASSERT_EQ(to.size(), static_cast<std::size_t>(rows * (n + 3)));
          for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = -2; c < n + 1; ++c) {
              const T value = c >= 0 && c < n ? from[r * width + c * step] : T{0};
              ASSERT_EQ(to[r * (n + 3) + c + 2], static_cast<T>(value + value))
                  << vt::name_of(dtype) << " step " << step << ", " << n << " of a row, row " << r
                  << ", " << c;
            }
        }
      }
}

TEST(JitBounds, StridesUnderMasks) {
  expect_strides_within<double>(vt::f64);
  expect_strides_within<float>(vt::f32);
  expect_strides_within<std::uint8_t>(vt::u8);
  expect_strides_within<std::int16_t>(vt::i16);
}

// A number that only a choice wants is loaded by itself, whichever level of LLVM makes the code.
template <class T>
void expect_choice_within() {
  const auto chosen = vt::jit([](Tensor x, Tensor y) { return vt::where(y < 1, x, 0); });
  const vt_test::Fenced<T> x(1, true), y(1, true);
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(Tensor(chosen(x.tensor({}), y.tensor({}))).template item<T>(), static_cast<T>(0.25));
    vt::wait_compiled();
  }
}

TEST(JitBounds, Choices) {
  expect_choice_within<double>();
  expect_choice_within<float>();
}

// Rows of a square that the operand no longer has, and squares that lie in an edge of padding.
TEST(JitBounds, ReductionsOfNothing) {
  // What is the same for all rounds is loaded in front of them, and an array of no elements has no
  // memory.
  const auto lanes = vt::vmap(vt::vmap([](Tensor x, Tensor y) { return vt::allclose(x, y); },
                                       {.in_axes = {0, vt::unmapped}}),
                              {.in_axes = {1, 0}});
  for (const vt::DType dtype : {vt::c64, vt::c128}) {
    const auto compiled = vt::jit(lanes);
    for (int run = 0; run < 2; ++run)
      EXPECT_EQ(
          compiled(vt::zeros({3, 2, 2, 0}, dtype), vt::zeros({2, 0}, dtype)).to_vector<bool>(),
          std::vector<bool>(6, true));
  }
}

TEST(JitBounds, EdgesOfTransposedSquares) {
  const auto transposed = vt::jit([](Tensor x) { return vt::transpose(x) + 1.0; });
  const auto padded =
      vt::jit([](Tensor x) { return vt::transpose(vt::pad(x, {{3, 2}, {9, 20}})); });
  const std::int64_t columns = 64;
  for (const std::int64_t rows : {1, 5, 8, 13, 17, 33}) {
    const Fenced x(rows * columns, true);
    const Tensor a = x.tensor({rows, columns});
    for (int run = 0; run < 2; ++run) {
      const std::vector<double> from = a.to_vector<double>(),
                                to = transposed(a).to_vector<double>(),
                                wide = padded(a).to_vector<double>();
      for (std::int64_t r = -3; r < rows + 2; ++r)
        for (std::int64_t c = -9; c < columns + 20; ++c) {
          const bool inside = r >= 0 && r < rows && c >= 0 && c < columns;
          const double value = inside ? from[r * columns + c] : 0;
          ASSERT_EQ(wide[(c + 9) * (rows + 5) + r + 3], value)
              << rows << " rows: " << r << ", " << c;
          if (!inside) continue;
          ASSERT_EQ(to[c * rows + r], value + 1) << rows << " rows: " << r << ", " << c;
        }
    }
  }
}

}  // namespace
