// The CPU's matrix product kernels against plain loops: every way of choosing a kernel, every
// layout, odd sizes, threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include <vt/dtype.hpp>
#include <vt/execution.hpp>

#include "src/jit/cpu/llvm/llvm_library.hpp"
#include "src/jit/cpu/llvm/target.hpp"
#include "src/jit/cpu/products/matmul.hpp"

namespace {

using vt::DType;
using vt::detail::MatmulSpec;

// The elements of an array of `d`; once for all, as the loops of the reference read each many
// times.
std::vector<double> numbers(const std::vector<unsigned char>& bytes, DType d) {
  return vt::detail::with_type(d, [&](auto zero) {
    using T = decltype(zero);
    const T* p = reinterpret_cast<const T*>(bytes.data());
    std::vector<double> all(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<double>(
          static_cast<std::conditional_t<std::is_arithmetic_v<T>, T, float>>(p[i]));
    return all;
  });
}

std::vector<unsigned char> random_array(DType d, std::int64_t n, unsigned seed) {
  std::mt19937 g(seed);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(n) * vt::size_of(d));
  vt::detail::with_type(d, [&](auto zero) {
    using T = decltype(zero);
    T* p = reinterpret_cast<T*>(bytes.data());
    for (std::int64_t i = 0; i < n; ++i) {
      const float x = std::uniform_real_distribution<float>(-1, 1)(g);
      if constexpr (std::is_same_v<T, std::int8_t>)
        p[i] = static_cast<T>(static_cast<int>(g() % 256) - 128);
      else if constexpr (std::is_integral_v<T>) p[i] = static_cast<T>(static_cast<int>(g() % 16));
      else p[i] = static_cast<T>(x);
    }
  });
  return bytes;
}

struct Layout {
  bool a_transposed, b_transposed;
};

MatmulSpec dense(DType in, DType sum, DType out, std::int64_t batch, std::int64_t m, std::int64_t n,
                 std::int64_t k, Layout l) {
  MatmulSpec s;
  s.a_dtype = s.b_dtype = in;
  s.accumulate = sum;
  s.result = out;
  s.batch = batch, s.m = m, s.n = n, s.k = k;
  s.a_batch = m * k, s.b_batch = k * n;
  s.a_row = l.a_transposed ? 1 : k, s.a_column = l.a_transposed ? m : 1;
  s.b_row = l.b_transposed ? 1 : n, s.b_column = l.b_transposed ? k : 1;
  return s;
}

void compare(const MatmulSpec& s, std::int64_t a_size, std::int64_t b_size) {
  const auto a = random_array(s.a_dtype, a_size, 1), b = random_array(s.b_dtype, b_size, 2);
  const std::size_t bytes = static_cast<std::size_t>(s.batch * s.m * s.n) * vt::size_of(s.result);
  std::vector<unsigned char> c(bytes + 64, 0xab);
  const auto kernel = vt::detail::cpu::make_matmul(s);
  ASSERT_TRUE(kernel);
  kernel->run(a.data(), b.data(), c.data());
  for (std::size_t i = bytes; i < c.size(); ++i) ASSERT_EQ(c[i], 0xab) << "written past the end";
  // Operands that stay for many runs, in the kernel's own order: the same bits.
  for (const bool left : {true, false})
    for (const bool right : {true, false}) {
      const auto kept = kernel->pack(left ? a.data() : nullptr, right ? b.data() : nullptr);
      if (!kept) continue;
      std::vector<unsigned char> again(bytes + 64, 0xab);
      kernel->run(a.data(), b.data(), again.data(), {}, kept);
      ASSERT_EQ(again, c) << kernel->describe() << " with operands that stay, of " << s.batch << 'x'
                          << s.m << 'x' << s.n << 'x' << s.k;
    }
  const double epsilon = s.result == vt::f64    ? 1e-15
                         : s.result == vt::f32  ? 2e-7
                         : s.result == vt::f16  ? 1e-3
                         : s.result == vt::bf16 ? 8e-3
                                                : 0;
  const std::vector<double> left = numbers(a, s.a_dtype), right = numbers(b, s.b_dtype),
                            result = numbers(c, s.result);
  for (std::int64_t i = 0; i < s.batch; ++i)
    for (std::int64_t m = 0; m < s.m; ++m)
      for (std::int64_t n = 0; n < s.n; ++n) {
        const double *x = left.data() + i * s.a_batch + m * s.a_row,
                     *y = right.data() + i * s.b_batch + n * s.b_column;
        long double sum = 0, size = 0;
        for (std::int64_t k = 0; k < s.k; ++k) {
          const long double p = static_cast<long double>(x[k * s.a_column]) * y[k * s.b_row];
          sum += p;
          size += std::fabs(p);
        }
        const double got = result[(i * s.m + m) * s.n + n];
        const double sum_epsilon = s.accumulate == vt::f64   ? 1.2e-16
                                   : s.accumulate == vt::f32 ? 6e-8
                                                             : 0;
        ASSERT_NEAR(got, static_cast<double>(sum),
                    static_cast<double>(size) * sum_epsilon * static_cast<double>(s.k + 1) +
                        std::fabs(static_cast<double>(sum)) * epsilon)
            << kernel->describe() << " at " << i << ' ' << m << ' ' << n << " of " << s.batch << 'x'
            << s.m << 'x' << s.n << 'x' << s.k;
      }
}

/// On lower instruction sets than the machine's the same loops are made of other instructions: two
/// cases of seven, which take turns along all axes of the tables.
bool is_left_out() {
  static const bool lower = std::getenv("VT_CPU_ISA") != nullptr;
  static int cases = 0;
  return lower && ++cases % 7 > 1;
}

void check(const MatmulSpec& s, std::int64_t a_size, std::int64_t b_size) {
  if (!is_left_out()) compare(s, a_size, b_size);
}

class MatmulKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!vt::detail::cpu::llvm_unavailable_reason().empty())
      GTEST_SKIP() << "needs LLVM: " << vt::detail::cpu::llvm_unavailable_reason();
  }
};

constexpr Layout layouts[] = {{false, false}, {true, false}, {false, true}, {true, true}};

TEST_F(MatmulKernels, small_products_of_every_layout) {
  for (DType d : {vt::f32, vt::f64})
    for (Layout l : layouts)
      for (std::int64_t m : {1, 2, 5, 17})
        for (std::int64_t n : {1, 3, 16, 37})
          for (std::int64_t k : {1, 4, 33}) check(dense(d, d, d, 1, m, n, k, l), m * k, k * n);
}

// Few rows by a matrix that the nearest cache does not hold: in panels where it stays.
TEST_F(MatmulKernels, few_rows_of_every_layout) {
  for (DType d : {vt::f32, vt::f64, vt::i32, vt::bf16})
    for (Layout l : layouts)
      for (std::int64_t m : {3, 4, 8, 13, 15})
        for (std::int64_t n : {64, 93}) {
          const std::int64_t k = 131;
          const MatmulSpec s = dense(d, d == vt::bf16 ? vt::f32 : d, d, 1, m, n, k, l);
          if (is_left_out()) continue;
          compare(s, m * k, k * n);
          const auto kernel = vt::detail::cpu::make_matmul(s);
          if (m > 3 && kernel->describe().find("dots") == std::string::npos) {
            EXPECT_GT(kernel->packed_bytes(false, true), 0u);
          }
        }
}

// Few rows or few columns beside many: threads share the other side, and sums run along k where the
// large operand does.
TEST_F(MatmulKernels, few_rows_or_few_columns) {
  struct Sizes {
    std::int64_t m, n, k;
  };
  const std::vector<Sizes> some = {{7, 211, 150}, {33, 137, 150}, {211, 7, 150}, {137, 32, 523}};
  std::vector<Sizes> all = some;
  for (const Sizes& s : {Sizes{2, 150, 523},
                         {14, 200, 40},
                         {63, 64, 150},
                         {150, 2, 40},
                         {211, 3, 523},
                         {130, 13, 523},
                         {7, 211, 40},
                         {33, 137, 523}})
    all.push_back(s);
  for (DType d : {vt::f32, vt::f64, vt::i32, vt::bf16, vt::f16, vt::i8})
    for (Layout l : layouts)
      for (const auto& [m, n, k] : d == vt::f32 ? all : some) {
        const DType sum = d == vt::bf16 || d == vt::f16 ? vt::f32 : d == vt::i8 ? vt::i32 : d;
        check(dense(d, sum, d == vt::i8 ? vt::i32 : d, 1, m, n, k, l), m * k, k * n);
      }
  // Rows of the large operand lie further apart than they are long.
  for (const auto& [m, n] : {std::pair{9, 130}, {130, 9}}) {
    MatmulSpec s = dense(vt::f32, vt::f32, vt::f32, 1, m, n, 600, {false, true});
    s.a_row = 700, s.b_column = 650;
    check(s, m * 700, n * 650);
  }
}

TEST_F(MatmulKernels, dots_where_the_large_operand_runs_along_k) {
  const auto way = [](std::int64_t m, std::int64_t n, std::int64_t k, Layout l) {
    return vt::detail::cpu::make_matmul(dense(vt::f32, vt::f32, vt::f32, 1, m, n, k, l))
        ->describe();
  };
  EXPECT_EQ(way(8, 1000, 1024, {false, true}), "dots");
  EXPECT_EQ(way(8, 1000, 1024, {true, true}), "dots, a transposed");
  EXPECT_EQ(way(1000, 2, 1024, {false, true}), "dots");
  EXPECT_EQ(way(1000, 2, 1024, {false, false}), "dots, b transposed");
  // Tiles of more rows than a set of the cache has lines, which here are whole pages apart.
  const bool collide = vt::detail::cpu::host_target().vector_registers >= 32;
  EXPECT_EQ(way(1000, 8, 1024, {false, false}),
            collide ? "dots, b transposed" : way(1000, 8, 1030, {false, false}));
  EXPECT_EQ(way(1000, 8, 1030, {false, false}).find("direct"), 0u);
  EXPECT_EQ(way(1000, 8, 1024, {true, false}).find("direct"), 0u);
  EXPECT_EQ(way(8, 1000, 1024, {false, false}).find("direct"), 0u);
  EXPECT_EQ(way(1000, 1000, 1024, {false, false}).find("packed"), 0u);
}

// Parts of k that threads make at once, the last one shorter.
TEST_F(MatmulKernels, long_sums_of_few_elements) {
  for (DType d : {vt::f32, vt::f64, vt::i32, vt::bf16, vt::i8})
    for (Layout l : layouts)
      for (const auto& [m, n, k] : {std::array{3, 4, 100'003},
                                    {1, 1, 600'000},
                                    {12, 12, 20'000},
                                    {1, 30, 30'001},
                                    {32, 31, 9'002}}) {
        const DType sum = d == vt::bf16 ? vt::f32 : d == vt::i8 ? vt::i32 : d;
        const MatmulSpec s = dense(d, sum, d == vt::i8 ? vt::i32 : d, 1, m, n, k, l);
        if (is_left_out()) continue;
        compare(s, m * k, k * n);
        EXPECT_NE(vt::detail::cpu::make_matmul(s)->describe().find(" parts"), std::string::npos);
      }
  EXPECT_EQ(vt::detail::cpu::make_matmul(
                dense(vt::f32, vt::f32, vt::f32, 1, 500, 500, 20'000, {false, false}))
                ->describe()
                .find(" parts"),
            std::string::npos);
}

TEST_F(MatmulKernels, batches) {
  for (DType d : {vt::f32, vt::f64})
    for (Layout l : layouts)
      for (std::int64_t size : {1, 2, 3, 4, 8, 13, 16, 31}) {
        check(dense(d, d, d, 9, size, size, size, l), 9 * size * size, 9 * size * size);
        // matrices times vectors
        check(dense(d, d, d, 9, size, 1, size, l), 9 * size * size, 9 * size);
        check(dense(d, d, d, 9, 1, size + 3, size, l), 9 * size, 9 * size * (size + 3));
      }
}

TEST_F(MatmulKernels, tiny_products_of_a_batch) {
  for (DType d : {vt::f32, vt::f64, vt::i32, vt::bf16})
    for (Layout l : layouts)
      for (std::int64_t m : {1, 3, 4})
        for (std::int64_t n : {1, 2, 4, 5})
          for (std::int64_t k : {2, 4})
            for (std::int64_t batch : {2, 15, 37}) {
              const DType sum = d == vt::bf16 ? vt::f32 : d;
              MatmulSpec s = dense(d, sum, d, batch, m, n, k, l);
              check(s, batch * m * k, batch * k * n);
              s.a_batch = 0;  // one a for all of them
              check(s, m * k, batch * k * n);
            }
}

TEST_F(MatmulKernels, blocked_products) {
  for (DType d : {vt::f32, vt::f64})
    for (Layout l : layouts) {
      check(dense(d, d, d, 1, 200, 190, 310, l), 200 * 310, 310 * 190);
      check(dense(d, d, d, 1, 173, 333, 600, l), 173 * 600, 600 * 333);
      check(dense(d, d, d, 3, 64, 257, 129, l), 3 * 64 * 129, 3 * 129 * 257);
    }
}

TEST_F(MatmulKernels, shared_operand_of_a_batch) {
  for (DType d : {vt::f32, vt::f64}) {
    MatmulSpec s = dense(d, d, d, 7, 5, 11, 6, {false, false});
    s.b_batch = 0;  // folds into rows
    check(s, 7 * 5 * 6, 6 * 11);
    s = dense(d, d, d, 7, 5, 11, 6, {false, true});
    s.a_batch = 0;
    check(s, 5 * 6, 7 * 6 * 11);
    s = dense(d, d, d, 7, 5, 11, 6, {true, true});
    s.b_batch = 0;  // does not fold: rows of a are strided
    check(s, 7 * 5 * 6, 6 * 11);
  }
}

TEST_F(MatmulKernels, strides_that_no_axis_runs_along) {
  MatmulSpec s = dense(vt::f32, vt::f32, vt::f32, 1, 19, 23, 29, {false, false});
  s.a_row = 3 * 29, s.a_column = 3;
  s.b_row = 2 * 23, s.b_column = 2;
  check(s, 3 * 19 * 29, 2 * 29 * 23);
  s = dense(vt::f64, vt::f64, vt::f64, 1, 40, 300, 200, {false, false});
  s.a_row = 2 * 200, s.a_column = 2;
  s.b_row = 2 * 300, s.b_column = 2;
  check(s, 2 * 40 * 200, 2 * 200 * 300);
}

TEST_F(MatmulKernels, sixteen_bit_floats_accumulate_in_f32) {
  for (DType d : {vt::f16, vt::bf16})
    for (Layout l : layouts) {
      check(dense(d, vt::f32, d, 1, 9, 20, 40, l), 9 * 40, 40 * 20);
      check(dense(d, vt::f32, vt::f32, 1, 90, 300, 333, l), 90 * 333, 333 * 300);
      // several passes over k, rounded once
      check(dense(d, vt::f32, d, 1, 90, 300, 700, l), 90 * 700, 700 * 300);
      check(dense(d, vt::f32, d, 2, 20, 500, 300, l), 2 * 20 * 300, 2 * 300 * 500);
      check(dense(d, vt::f32, d, 4, 7, 5, 3, l), 4 * 7 * 3, 4 * 3 * 5);
    }
}

TEST_F(MatmulKernels, integers_wrap_as_declared) {
  for (DType d : {vt::i32, vt::i64, vt::u32})
    check(dense(d, d, d, 2, 6, 7, 9, {false, false}), 2 * 54, 2 * 63);
  check(dense(vt::i8, vt::i32, vt::i32, 1, 6, 37, 100, {false, false}), 600, 3700);
  for (Layout l : layouts) {
    check(dense(vt::i8, vt::i32, vt::i32, 1, 30, 400, 300, l), 9000, 120000);
    check(dense(vt::i64, vt::i64, vt::i64, 1, 30, 200, 300, l), 9000, 60000);
    check(dense(vt::i16, vt::i16, vt::i16, 1, 20, 300, 400, l), 8000, 120000);
  }
}

// Groups of k that the CPU multiplies in one lane: every layout, rows and columns left over, depths
// that are no whole squares, several passes over k; a depth that is no multiple goes another way.
TEST_F(MatmulKernels, small_numbers_in_groups) {
  const vt::detail::cpu::Target& target = vt::detail::cpu::host_target();
  for (Layout l : layouts)
    for (const std::int64_t k : {300, 1036, 2600, 301}) {
      const MatmulSpec bytes = dense(vt::i8, vt::i32, vt::i32, 1, 45, 107, k, l),
                       halves = dense(vt::bf16, vt::f32, vt::f32, 1, 45, 107, k, l);
      if (is_left_out()) continue;
      compare(bytes, 45 * k, 107 * k);
      compare(halves, 45 * k, 107 * k);
      EXPECT_EQ(vt::detail::cpu::make_matmul(bytes)->describe().find("4 of k") != std::string::npos,
                target.dot_i8 && k % 4 == 0);
      EXPECT_EQ(
          vt::detail::cpu::make_matmul(halves)->describe().find("2 of k") != std::string::npos,
          target.dot_bf16 && k % 2 == 0);
    }
  // less depth than lanes
  check(dense(vt::i8, vt::i32, vt::i32, 1, 20, 12'000, 8, {false, true}), 20 * 8, 12'000 * 8);
  check(dense(vt::bf16, vt::f32, vt::bf16, 3, 20, 400, 128, {false, false}), 3 * 20 * 128,
        3 * 400 * 128);
}

TEST_F(MatmulKernels, nothing_to_multiply_gives_zeros) {
  check(dense(vt::f32, vt::f32, vt::f32, 1, 3, 4, 0, {false, false}), 0, 0);
  check(dense(vt::f32, vt::f32, vt::f32, 0, 3, 4, 5, {false, false}), 0, 0);
}

TEST_F(MatmulKernels, same_bits_for_any_number_of_threads) {
  const int before = vt::num_threads();
  for (Layout l : layouts)
    for (const auto& [m, n, k] : {std::array{300, 300, 300},
                                  {1000, 64, 64},
                                  {2, 3000, 500},
                                  {70, 900, 700},
                                  {400, 1, 60},
                                  {1003, 2, 200},
                                  {1003, 3, 900},
                                  {401, 9, 1100},
                                  {3, 1003, 900},
                                  {9, 1101, 300},
                                  {40, 700, 300}}) {
      const MatmulSpec s = dense(vt::f32, vt::f32, vt::f32, 1, m, n, k, l);
      const auto a = random_array(vt::f32, m * k, 3), b = random_array(vt::f32, k * n, 4);
      const auto kernel = vt::detail::cpu::make_matmul(s);
      const auto kept = kernel->pack(nullptr, b.data());
      std::vector<float> first(static_cast<std::size_t>(m * n)), c = first;
      vt::set_num_threads(1);
      kernel->run(a.data(), b.data(), first.data());
      std::vector<std::atomic<int>> log(static_cast<std::size_t>(m));
      const auto count_rows = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          ++log[r];
          // What is said to be finished is.
          EXPECT_TRUE(
              std::equal(first.begin() + r * n, first.begin() + (r + 1) * n, c.begin() + r * n))
              << r;
        }
      };
      for (int threads : {2, 3, 7}) {
        vt::set_num_threads(threads);
        kernel->run(a.data(), b.data(), c.data());
        EXPECT_EQ(c, first) << threads << " threads, " << kernel->describe() << " of " << m << 'x'
                            << n << 'x' << k;
        for (auto& t : log) t = 0;
        std::fill(c.begin(), c.end(), -7.0f);
        kernel->run(a.data(), b.data(), c.data(), vt::detail::RowsDone(count_rows), kept);
        for (std::int64_t r = 0; r < m; ++r)
          EXPECT_EQ(log[r], 1) << kernel->describe() << " row " << r;
      }
    }
  vt::set_num_threads(before);
}

TEST_F(MatmulKernels, groups_have_the_same_bits_for_any_number_of_threads) {
  constexpr std::int64_t m = 230, n = 700, k = 1100;
  const int before = vt::num_threads();
  for (const auto& [in, out] :
       {std::pair{vt::i8, vt::i32}, std::pair{vt::bf16, vt::f32}, std::pair{vt::bf16, vt::bf16}}) {
    const MatmulSpec s =
        dense(in, out == vt::i32 ? vt::i32 : vt::f32, out, 1, m, n, k, {false, false});
    const auto a = random_array(in, m * k, 3), b = random_array(in, k * n, 4);
    const auto kernel = vt::detail::cpu::make_matmul(s);
    std::vector<unsigned char> first(static_cast<std::size_t>(m * n) * vt::size_of(out)), c = first;
    vt::set_num_threads(1);
    kernel->run(a.data(), b.data(), first.data());
    for (int threads : {2, 3, 7}) {
      vt::set_num_threads(threads);
      kernel->run(a.data(), b.data(), c.data());
      EXPECT_EQ(c, first) << threads;
    }
  }
  vt::set_num_threads(before);
}

}  // namespace
