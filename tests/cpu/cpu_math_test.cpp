// Accuracy of the inner functions against MPFR: f32 within 2 ulp, f64 within 4, special values
// exactly, on every instruction set.
#include <gtest/gtest.h>
#include <mpfr.h>

#include "math_functions.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "cpu_kernels.hpp"

namespace {

using namespace vt_test;
using vt::BFloat16;
using vt::Float16;

/// MPFR's value of f(x, y) to at least 40 bits more than T has.
template <class T>
long double exact(const MathFunction& f, T x, T y) {
  struct Numbers {
    mpfr_t x, y, r;
    Numbers() { mpfr_inits2(53, x, y, nullptr), mpfr_init2(r, 120); }
    ~Numbers() { mpfr_clears(x, y, r, nullptr); }
  };
  static Numbers n;
  mpfr_set_d(n.x, static_cast<double>(x), MPFR_RNDN);
  mpfr_set_d(n.y, static_cast<double>(y), MPFR_RNDN);
  f.exact(n.r, n.x, n.y);
  return mpfr_get_ld(n.r, MPFR_RNDN);
}

template <class T>
std::vector<T> special_values() {
  using L = std::numeric_limits<T>;
  std::vector<T> v;
  for (T x : {T(0),
              L::denorm_min(),
              T(3) * L::denorm_min(),
              L::min() / 2,
              L::min(),
              T(1e-20),
              T(1e-9),
              T(0.125),
              T(0.3),
              T(0.5),
              T(0.625),
              T(0.7071),
              T(0.75),
              T(0.875),
              std::nextafter(T(1), T(0)),
              T(1),
              std::nextafter(T(1), T(2)),
              T(1.5),
              T(2),
              T(2.5),
              T(3),
              T(4),
              T(7),
              T(8),
              T(9.5),
              T(10),
              T(26),
              T(27.3),
              T(50),
              T(88.5),
              T(88.8),
              T(100),
              T(103.9),
              T(127),
              T(128),
              T(149),
              T(150),
              T(709.7),
              T(709.8),
              T(745),
              T(746),
              T(1023.5),
              T(1e5),
              T(1.0001e5),
              T(1e6),
              T(1.0001e6),
              T(16777216),
              T(16777217.0),
              T(1e9),
              T(9007199254740993.0),
              T(1e19),
              T(1e30),
              L::max() / 2,
              L::max(),
              L::infinity()})
    v.push_back(x), v.push_back(-x);
  v.push_back(L::quiet_NaN());
  return v;
}

/// Random bits (all exponents alike), and random numbers of moderate size, which the former rarely
/// hit.
template <class T>
std::vector<T> random_values(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> v;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t word = random();
    T x;
    if (i % 3 == 0) std::memcpy(&x, &word, sizeof(x));
    // towards 1, where erf_inv is steep
    else if (i % 9 == 8) x = static_cast<T>(1 - std::ldexp(1.0, -static_cast<int>(random() % 53)));
    else if (i % 3 == 1)
      x = static_cast<T>(std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random),
                                    static_cast<int>(random() % 12)));
    else x = static_cast<T>(std::uniform_real_distribution<double>(-2, 2)(random));
    v.push_back(x);
  }
  return v;
}

template <class T>
std::string kernel_name(const MathFunction& f, int lanes) {
  return std::string(f.name) + (sizeof(T) == 4 ? "_f32_" : "_f64_") + std::to_string(lanes);
}

template <class T>
void check(const Kernels& kernels, const MathFunction& f, int lanes, std::vector<T> x,
           std::vector<T> y, double limit, const char* what) {
  std::vector<T> out(x.size());
  if (f.arity == 1)
    kernels.run(kernel_name<T>(f, lanes), {x.data(), out.data()},
                static_cast<std::int64_t>(x.size()));
  else
    kernels.run(kernel_name<T>(f, lanes), {x.data(), y.data(), out.data()},
                static_cast<std::int64_t>(x.size()));
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T second = f.arity == 2 ? y[i] : T(0);
    const long double want = exact(f, x[i], second);
    double e = ulps(out[i], want);
    if (sizeof(T) == 8 && f.f64_measure == Measure::by_mirrored && x[i] < 0 &&
        std::isfinite(want)) {
      const long double size =
          std::max({std::fabs(want), std::fabs(exact(f, T(1) - x[i], T(0))), 1.0L});
      e = std::min(e, static_cast<double>(std::fabs(static_cast<long double>(out[i]) - want) /
                                          (size * std::numeric_limits<T>::epsilon())));
    }
    // Zeros must have the right sign: what is rounded to zero keeps it too.
    if (out[i] == 0 && want == 0 && std::signbit(out[i]) != std::signbit(want))
      e = std::numeric_limits<double>::infinity();
    if (e > worst) worst = e, at = i;
  }
  testing::Test::RecordProperty(kernel_name<T>(f, lanes) + "_" + what, std::to_string(worst));
  EXPECT_LE(worst, limit) << kernel_name<T>(f, lanes) << " of " << what << " values: f("
                          << std::hexfloat << x[at] << (f.arity == 2 ? ", " : "")
                          << (f.arity == 2 ? std::to_string(y[at]) : "") << ") = " << out[at]
                          << ", not "
                          << static_cast<double>(exact(f, x[at], f.arity == 2 ? y[at] : T(0)));
}

class CpuMathTest : public IsaTest {
 protected:
  /// All functions for one dtype and lane count, with n random values each besides the special
  /// ones.
  template <class T>
  void accuracy(int lanes, std::size_t n, double limit) {
    const DType d = vt::dtype_of<T>();
    Kernels kernels(GetParam().isa);
    for (const MathFunction& f : math_functions)
      kernels.map(kernel_name<T>(f, lanes),
                  std::vector<DType>(static_cast<std::size_t>(f.arity), d), lanes,
                  [&](IrBuilder& b, const vt::Vec<Value>& x) { return f.emit(b, x[0], x.back()); });
    kernels.compile();
    for (const MathFunction& f : math_functions) {
      std::vector<T> x = special_values<T>(), y;
      if (f.arity == 2) {  // every pair
        const std::vector<T> s = x;
        x.clear();
        for (T p : s)
          for (T q : s) x.push_back(p), y.push_back(q);
      }
      check(kernels, f, lanes, x, y, limit, "special");
      check(kernels, f, lanes, random_values<T>(n, 1), random_values<T>(n, 2), limit, "random");
    }
  }
};

/// VT_MATH_SAMPLES on the host's instruction set, a fifth of it on the others.
std::size_t samples(vt::detail::cpu::Isa isa) {
  const char* text = std::getenv("VT_MATH_SAMPLES");
  const std::size_t n = text ? std::strtoull(text, nullptr, 10) : 12000;
  return isa == vt::detail::cpu::Isa::host ? n : n / 5;
}

TEST_P(CpuMathTest, F32Within2Ulp) {
  accuracy<float>(GetParam().isa == vt::detail::cpu::Isa::sse2 ? 4 : 16, samples(GetParam().isa),
                  2);
}
TEST_P(CpuMathTest, F64Within4Ulp) {
  accuracy<double>(GetParam().isa == vt::detail::cpu::Isa::sse2 ? 2 : 8, samples(GetParam().isa),
                   4);
}
TEST_P(CpuMathTest, ScalarsAndOddVectors) {
  accuracy<float>(1, 300, 2);
  accuracy<double>(3, 300, 4);
}

TEST_P(CpuMathTest, ALaneDoesNotSeeItsNeighbours) {
  Kernels kernels(GetParam().isa);
  for (const MathFunction& f : math_functions)
    for (int lanes : {1, 8})
      kernels.map(std::string(f.name) + std::to_string(lanes),
                  std::vector<DType>(static_cast<std::size_t>(f.arity), vt::f32), lanes,
                  [&](IrBuilder& b, const vt::Vec<Value>& x) { return f.emit(b, x[0], x.back()); });
  kernels.compile();
  const std::vector<float> x = random_values<float>(1003, 5), y = random_values<float>(1003, 6);
  for (const MathFunction& f : math_functions) {
    std::vector<float> one(x.size()), eight(x.size());
    for (int lanes : {1, 8}) {
      auto& out = lanes == 1 ? one : eight;
      std::vector<void*> buffers = {const_cast<float*>(x.data())};
      if (f.arity == 2) buffers.push_back(const_cast<float*>(y.data()));
      buffers.push_back(out.data());
      kernels.run(std::string(f.name) + std::to_string(lanes), buffers,
                  static_cast<std::int64_t>(x.size()));
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_TRUE(one[i] == eight[i] || (std::isnan(one[i]) && std::isnan(eight[i])))
          << f.name << " of " << x[i] << ": " << one[i] << ", " << eight[i];
  }
}

TEST_P(CpuMathTest, SixteenBitFloatsAreTheF32ResultRounded) {
  Kernels kernels(GetParam().isa);
  for (const MathFunction& f : math_functions)
    for (DType d : {vt::f16, vt::bf16})
      kernels.map(std::string(f.name) + vt::name_of(d),
                  std::vector<DType>(static_cast<std::size_t>(f.arity), d), 16,
                  [&](IrBuilder& b, const vt::Vec<Value>& x) { return f.emit(b, x[0], x.back()); });
  kernels.compile();
  const auto run = [&](const MathFunction& f, auto type) {
    using H = decltype(type);
    std::vector<H> x, y;
    for (float v : random_values<float>(900, 8)) x.push_back(H(std::fmod(v, 60.0f)));
    for (float v : random_values<float>(900, 9)) y.push_back(H(std::fmod(v, 3.0f)));
    std::vector<H> out(x.size());
    std::vector<void*> buffers = {x.data()};
    if (f.arity == 2) buffers.push_back(y.data());
    buffers.push_back(out.data());
    kernels.run(std::string(f.name) + vt::name_of(vt::dtype_of<H>()), buffers,
                static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float a = x[i], b = y[i], got = out[i];
      const auto want = static_cast<float>(exact(f, a, f.arity == 2 ? b : 0.0f));
      // f32 within 2 ulp, then rounded: off by one step of the narrow format at most, and only
      // close to a tie.
      const H low(want - std::abs(want) * 0x1p-21f), high(want + std::abs(want) * 0x1p-21f);
      const bool fits =
          std::isnan(want)
              ? std::isnan(got)
              : (got >= static_cast<float>(low) && got <= static_cast<float>(high)) || got == want;
      ASSERT_TRUE(fits) << f.name << " of " << a << ", " << b << ": " << got << ", not " << want;
    }
  };
  for (const MathFunction& f : math_functions) run(f, Float16{}), run(f, BFloat16{});
}

INSTANTIATE_TEST_SUITE_P(AllIsas, CpuMathTest, testing::ValuesIn(all_isas),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace

#endif
