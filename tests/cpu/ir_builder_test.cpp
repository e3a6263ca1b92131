// What the builder emits around arithmetic, run: tails, strides, indexed access, reductions, loops
// and branches.
#include <gtest/gtest.h>

#include "cpu_kernels.hpp"

#if VT_HAS_LLVM_HEADERS

#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include <vt/error.hpp>

namespace {

using namespace vt_test;
using vt::detail::Op;
using vt::detail::with_type;
using vt::detail::cpu::Compare;

class IrBuilderTest : public IsaTest {};

// ---- memory -------------------------------------------------------------------------------------

TEST_P(IrBuilderTest, MaskedTailsTouchNothingBeyond) {
  Kernels kernels(GetParam().isa);
  for (DType d : every_dtype)
    for (int lanes : {1, 3, 16, 32})
      kernels.map(std::string(vt::name_of(d)) + std::to_string(lanes), {d}, lanes,
                  [](IrBuilder&, const vt::Vec<Value>& x) { return x[0]; });
  kernels.compile();
  for (DType d : every_dtype)
    for (int lanes : {1, 3, 16, 32})
      for (std::size_t n : {0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 37}) {
        const std::size_t bytes = n * vt::size_of(d);
        // Exactly as long as needed: AddressSanitizer sees a read beyond; the guard after `out`
        // sees a write.
        std::vector<std::uint8_t> in(bytes), out(bytes + 64, 0xcd);
        for (std::size_t i = 0; i < bytes; ++i)
          in[i] = d == vt::bool_    ? (i * 7 % 3 == 0)
                  : vt::is_float(d) ? 0x3c
                                    : static_cast<std::uint8_t>(i * 31 + 1);
        kernels.run(std::string(vt::name_of(d)) + std::to_string(lanes), {in.data(), out.data()},
                    static_cast<std::int64_t>(n));
        EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin()))
            << vt::name_of(d) << " " << lanes << " " << n;
        for (std::size_t i = bytes; i < out.size(); ++i)
          ASSERT_EQ(out[i], 0xcd) << vt::name_of(d) << " " << lanes << " " << n;
      }
}

TEST_P(IrBuilderTest, StridedAndIndexedAccess) {
  Kernels kernels(GetParam().isa);
  IrBuilder& b = kernels.builder;
  const int strides[] = {-3, -1, 0, 1, 2, 3, 4, 5, 9};
  const DType dtypes[] = {vt::u8, vt::f16, vt::f32, vt::i64, vt::bool_};
  constexpr int lanes = 8, middle = 40;
  for (DType d : dtypes)
    for (int s : strides)
      // literal stride, run-time stride, literal stride with a mask
      for (int form = 0; form < 3; ++form) {
        kernels.open(std::string(vt::name_of(d)) + "_" + std::to_string(s) + "_" +
                     std::to_string(form));
        const Value at = b.offset(kernels.buffer(0), d, b.index(middle));
        const Value mask = b.tail_mask(lanes, kernels.n());
        const Value x = form == 0 ? b.load_strided(at, d, lanes, s)
                        : form == 1
                            ? b.load_strided(at, d, lanes, b.sub(b.index(s + 5), kernels.n()), mask)
                            : b.load_strided(at, d, lanes, s, mask);
        b.store(kernels.buffer(1), x);
        kernels.done();
      }
  kernels.open("scatter");
  b.store_strided(kernels.buffer(1), b.load(kernels.buffer(0), vt::f32, lanes), b.index(3),
                  b.tail_mask(lanes, kernels.n()));
  kernels.done();
  for (DType index : {vt::i32, vt::u32, vt::i64, vt::u8})
    kernels.map(std::string("gather_") + vt::name_of(index), {index}, 16,
                [&](IrBuilder& g, const vt::Vec<Value>& i) {
                  return g.gather(kernels.buffer(2), vt::f64, i[0]);
                });
  kernels.compile();
  for (DType d : dtypes)
    with_type(d, [&](auto t) {
      using T = decltype(t);
      std::vector<std::uint8_t> table(120 * sizeof(T));
      for (std::size_t i = 0; i < 120; ++i) {
        T x{};
        if constexpr (std::is_same_v<T, bool>) x = i % 3 == 0;
        else if constexpr (is_half_v<T>) x = T(static_cast<float>(i) * 0.25f);
        else x = static_cast<T>(i * 2 + 1);
        std::memcpy(table.data() + i * sizeof(T), &x, sizeof(T));
      }
      for (int s : strides)
        for (int form = 0; form < 3; ++form) {
          std::vector<std::uint8_t> out(lanes * sizeof(T));
          kernels.run(
              std::string(vt::name_of(d)) + "_" + std::to_string(s) + "_" + std::to_string(form),
              {table.data(), out.data()}, 5);
          for (int k = 0; k < lanes; ++k) {
            const bool on = form == 0 || k < 5;
            const T want = on ? element<T>(table, static_cast<std::size_t>(middle + k * s)) : T(0);
            EXPECT_TRUE(same(element<T>(out, static_cast<std::size_t>(k)), want))
                << vt::name_of(d) << " stride " << s << " form " << form << " lane " << k;
          }
        }
    });
  std::vector<float> in(lanes), out(3 * lanes, -1.0f);
  std::iota(in.begin(), in.end(), 1.0f);
  kernels.run("scatter", {in.data(), out.data()}, 6);
  for (int i = 0; i < 3 * lanes; ++i)
    EXPECT_EQ(out[i], i % 3 == 0 && i / 3 < 6 ? static_cast<float>(i / 3 + 1) : -1.0f);
  std::vector<double> table(256), got(20);
  std::iota(table.begin(), table.end(), 0.5);
  for (DType index : {vt::i32, vt::u32, vt::i64, vt::u8})
    with_type(index, [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_integral_v<T>) {
        std::vector<std::uint8_t> where(20 * sizeof(T));
        for (std::size_t i = 0; i < 20; ++i) {
          const T at = static_cast<T>(i * 13 % 251);
          std::memcpy(where.data() + i * sizeof(T), &at, sizeof(T));
        }
        kernels.run(std::string("gather_") + vt::name_of(index),
                    {where.data(), got.data(), table.data()}, 20);
        for (std::size_t i = 0; i < 20; ++i)
          EXPECT_EQ(got[i], static_cast<double>(i * 13 % 251) + 0.5);
      }
    });
}

// ---- reductions ---------------------------------------------------------------------------------

float fold_tree(std::vector<float> v, float (*op)(float, float)) {
  std::size_t p = std::bit_floor(v.size());
  for (std::size_t i = p; i < v.size(); ++i) v[i - p] = op(v[i - p], v[i]);
  while (p > 1) {
    p /= 2;
    for (std::size_t i = 0; i < p; ++i) v[i] = op(v[i], v[i + p]);
  }
  return v[0];
}

TEST_P(IrBuilderTest, LaneReductionsHaveOneFixedOrder) {
  Kernels kernels(GetParam().isa);
  IrBuilder& b = kernels.builder;
  const int counts[] = {1, 2, 3, 5, 8, 13, 16, 32};
  const std::pair<Op, const char*> ops[] = {
      {Op::add, "add"}, {Op::mul, "mul"}, {Op::max, "max"}, {Op::min, "min"}};
  for (int lanes : counts)
    for (const auto& [op, name] : ops) {
      kernels.open(std::string(name) + std::to_string(lanes));
      b.store(kernels.buffer(1),
              b.reduce_simd_lanes(op, b.load(kernels.buffer(0), vt::f32, lanes)));
      kernels.done();
      kernels.open(std::string("int_") + name + std::to_string(lanes));
      b.store(kernels.buffer(1),
              b.reduce_simd_lanes(op, b.load(kernels.buffer(0), vt::i16, lanes)));
      kernels.done();
    }
  const std::pair<Op, const char*> bit_ops[] = {
      {Op::and_, "and"}, {Op::or_, "or"}, {Op::xor_, "xor"}};
  for (const auto& [op, name] : bit_ops) {
    kernels.open(name);
    b.store(kernels.buffer(1), b.reduce_simd_lanes(op, b.load(kernels.buffer(0), vt::u32, 13)));
    kernels.done();
  }
  kernels.open("any_all");
  const Value mask = b.load(kernels.buffer(0), vt::bool_, 13);
  b.store(kernels.buffer(1), b.any(mask));
  b.store(b.offset(kernels.buffer(1), vt::bool_, b.index(1)), b.all(mask));
  b.store(b.offset(kernels.buffer(1), vt::bool_, b.index(2)), b.reduce_simd_lanes(Op::max, mask));
  b.store(b.offset(kernels.buffer(1), vt::bool_, b.index(3)), b.reduce_simd_lanes(Op::mul, mask));
  kernels.done();
  kernels.compile();
  std::mt19937 random(3);
  for (int lanes : counts) {
    const auto n = static_cast<std::size_t>(lanes);
    std::vector<float> x(n);
    for (float& f : x) f = std::normal_distribution<float>(0, 1)(random);
    float (*const reference[])(float, float) = {[](float p, float q) { return p + q; },
                                                [](float p, float q) { return p * q; },
                                                [](float p, float q) { return p > q ? p : q; },
                                                [](float p, float q) { return p < q ? p : q; }};
    for (std::size_t k = 0; k < 4; ++k) {
      float r = 0;
      kernels.run(std::string(ops[k].second) + std::to_string(lanes), {x.data(), &r}, 0);
      EXPECT_EQ(r, fold_tree(x, reference[k])) << ops[k].second << lanes;
      std::vector<float> with_nan = x;
      with_nan[n / 2] = NAN;
      kernels.run(std::string(ops[k].second) + std::to_string(lanes), {with_nan.data(), &r}, 0);
      EXPECT_TRUE(std::isnan(r)) << ops[k].second << lanes;
    }
    std::vector<std::int16_t> i(n);
    for (auto& v : i) v = static_cast<std::int16_t>(random());
    std::int16_t r = 0;
    kernels.run("int_add" + std::to_string(lanes), {i.data(), &r}, 0);
    EXPECT_EQ(r, static_cast<std::int16_t>(std::accumulate(i.begin(), i.end(), 0)));
    kernels.run("int_max" + std::to_string(lanes), {i.data(), &r}, 0);
    EXPECT_EQ(r, *std::max_element(i.begin(), i.end()));
    kernels.run("int_min" + std::to_string(lanes), {i.data(), &r}, 0);
    EXPECT_EQ(r, *std::min_element(i.begin(), i.end()));
  }
  std::vector<std::uint32_t> bits(13);
  for (auto& v : bits) v = static_cast<std::uint32_t>(random()) | 0x10;
  std::uint32_t r = 0, want_and = ~0u, want_or = 0, want_xor = 0;
  for (auto v : bits) want_and &= v, want_or |= v, want_xor ^= v;
  kernels.run("and", {bits.data(), &r}, 0);
  EXPECT_EQ(r, want_and);
  kernels.run("or", {bits.data(), &r}, 0);
  EXPECT_EQ(r, want_or);
  kernels.run("xor", {bits.data(), &r}, 0);
  EXPECT_EQ(r, want_xor);
  for (int on : {-1, 12, 13}) {  // none, only the last, all
    std::vector<std::uint8_t> m(13, on == 13), out(4);
    if (on == 12) m[12] = 1;
    kernels.run("any_all", {m.data(), out.data()}, 0);
    EXPECT_EQ(out, (std::vector<std::uint8_t>{on >= 0, on == 13, on >= 0, on == 13}));
  }
}

// ---- control flow, functions, errors ------------------------------------------------------------

TEST_P(IrBuilderTest, LoopsBranchesHelpersAndFrameArrays) {
  Kernels kernels(GetParam().isa);
  IrBuilder& b = kernels.builder;
  kernels.open("collatz");  // steps of n to 1, with a loop carrying two values and a branch
  const vt::Vec<Value> out = b.loop(
      b.index(0), b.index(200), 1, {kernels.n(), b.index(0)}, [&](Value, const vt::Vec<Value>& c) {
        return b.if_else(
            b.compare(Compare::gt, c[0], b.index(1)),
            [&] {
              const Value odd = b.compare(Compare::eq, b.bit_and(c[0], b.index(1)), b.index(1));
              const Value next = b.if_else(
                  odd, [&] { return vt::Vec<Value>{b.add(b.mul(c[0], b.index(3)), b.index(1))}; },
                  [&] { return vt::Vec<Value>{b.shift_right_logical(c[0], 1)}; })[0];
              return vt::Vec<Value>{next, b.add(c[1], b.index(1))};
            },
            [&] { return c; });
      });
  b.store(kernels.buffer(0), out[1]);
  kernels.done();
  kernels.open("frame");  // fills a frame array, then sums it through a private function
  b.declare_buffers(2);
  const Value array = b.with_buffer(b.stack_array(vt::f64, 64), 1);
  b.for_range(
      b.index(0), b.index(64), 1,
      [&](Value i) { b.store(b.offset(array, vt::f64, i), b.convert(i, vt::f64)); }, true);
  const Value total = b.loop(
      b.index(0), b.index(64), 8, {b.real(vt::f64, 0, 8)}, [&](Value i, const vt::Vec<Value>& c) {
        return vt::Vec<Value>{b.call_helper(
            "add8", vt::f64, 8, {c[0], b.load(b.offset(array, vt::f64, i), vt::f64, 8)},
            [&](const vt::Vec<Value>& a) { return b.add(a[0], a[1]); })};
      })[0];
  b.store(b.with_buffer(kernels.buffer(0), 0), b.reduce_simd_lanes(Op::add, total));
  kernels.done();
  kernels.open("runtime");
  b.call_runtime("vt_simd_sin", {kernels.buffer(0), b.index(1)});
  kernels.done();
  kernels.open("copy");
  b.copy_bytes(b.offset_bytes(kernels.buffer(0), b.index(64)), kernels.buffer(0), kernels.n());
  kernels.done();
  kernels.compile();
  std::int64_t steps = 0;
  kernels.run("collatz", {&steps}, 27);
  EXPECT_EQ(steps, 111);
  kernels.run("collatz", {&steps}, 1);
  EXPECT_EQ(steps, 0);
  double x = 0;
  kernels.run("frame", {&x}, 0);
  EXPECT_EQ(x, 63 * 32);
  x = 0.5;
  kernels.run("runtime", {&x}, 0);
  EXPECT_EQ(x, std::sin(0.5));
  std::vector<std::uint8_t> block(128);
  std::iota(block.begin(), block.end(), std::uint8_t{0});
  kernels.run("copy", {block.data()}, 33);
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(block[i], i < 64 || i >= 97 ? i : i - 64) << i;
}

INSTANTIATE_TEST_SUITE_P(AllIsas, IrBuilderTest, testing::ValuesIn(all_isas),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace

#endif
