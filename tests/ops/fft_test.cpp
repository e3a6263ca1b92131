// Fourier transforms: every kind of length against the sum that defines them, axes, lengths and
// norms, derivatives of the linear maps, lanes, refusals.
#include <numbers>

#include "support/property.hpp"

namespace {

using namespace vt;
using C = std::complex<double>;
using Norm = fft::Norm;
using vt_test::expect_close;
using vt_test::Tolerance;

Tensor random_complex(const Shape& shape, std::uint64_t seed, DType d = c128) {
  return vt_test::random_tensor(d, shape, -2, 2, seed);
}

/// Σ x[j]·exp(∓2πi·jk/n) along one axis of row-major [outer, n, inner], in long double; every
/// `step`-th k.
std::vector<C> dft(const std::vector<C>& x, std::int64_t outer, std::int64_t n, std::int64_t inner,
                   bool backward, std::int64_t step = 1) {
  using L = std::complex<long double>;
  std::vector<L> roots;
  for (std::int64_t k = 0; k < n; ++k) {
    const long double angle = (backward ? 2 : -2) * std::numbers::pi_v<long double> *
                              static_cast<long double>(k) / static_cast<long double>(n);
    roots.emplace_back(std::cos(angle), std::sin(angle));
  }
  const std::int64_t kept = (n + step - 1) / step;
  std::vector<C> y(static_cast<std::size_t>(outer * kept * inner));
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t k = 0; k < n; k += step)
      for (std::int64_t i = 0; i < inner; ++i) {
        L sum = 0;
        for (std::int64_t j = 0; j < n; ++j)
          sum += L(x[(o * n + j) * inner + i]) * roots[j * k % n];
        if (backward) sum /= static_cast<long double>(n);
        y[(o * kept + k / step) * inner + i] = C(sum);
      }
  return y;
}
Tensor dft(const Tensor& x, int axis, bool backward = false) {
  const vt_test::lanes::Split s(x.shape(), vt_test::lanes::resolve(axis, x.rank()));
  return tensor(dft(x.astype(c128).to_vector<C>(), s.outer, s.extent, s.inner, backward),
                x.shape());
}

/// Along the last axis, every `step`-th frequency.
Tensor sampled_dft(const Tensor& x, std::int64_t step, bool backward = false) {
  const std::int64_t n = x.dim(-1);
  return tensor(dft(x.astype(c128).to_vector<C>(), x.size() / n, n, 1, backward, step),
                {x.size() / n, (n + step - 1) / step});
}
Tensor every(const Tensor& y, std::int64_t step) { return take(y, arange(0, y.dim(-1), step), 1); }

/// The root of the mean square of the difference, next to that of `expected`.
double distance(const Tensor& actual, const Tensor& expected) {
  EXPECT_EQ(actual.shape(), expected.shape());
  const auto a = actual.astype(c128).to_vector<C>(), b = expected.astype(c128).to_vector<C>();
  double error = 0, size = 1e-300;
  for (std::size_t i = 0; i < b.size(); ++i) {
    error += std::norm(a[i] - b[i]);
    size += std::norm(b[i]);
  }
  return std::sqrt(error / size);
}
double allowed(std::int64_t n, DType d) {
  return (real_dtype(d) == f64 ? 0x1p-52 : 0x1p-23) * (1 + 0.5 * std::log2(static_cast<double>(n)));
}

const std::int64_t lengths[] = {1,   2,   3,   4,   5,    6,    7,    8,    9,    10,   11,  12,
                                13,  14,  15,  16,  17,   19,   20,   23,   25,   26,   27,  29,
                                32,  34,  49,  60,  64,   77,   96,   100,  121,  128,  169, 210,
                                256, 257, 360, 509, 1000, 1024, 2187, 2310, 4099, 4100, 5000};

// Whole vectors of rows, and what is left of them.
TEST(Fft, ManyRealRows) {
  for (DType d : {f32, f64})
    for (std::int64_t n : {2, 4, 30, 34, 512, 1000})
      for (std::int64_t rows : {1, 3, 8, 21}) {
        const Tensor x = vt_test::random_tensor(d, {rows, n}, -1, 1, 5),
                     spectra = fft::rfft(x).eval();
        const double eps = d == f64 ? 1e-14 : 1e-5;
        const vt_test::Tolerance near{.absolute = eps * std::sqrt(static_cast<double>(n))};
        vt_test::expect_close(
            spectra, slice_in_dim(fft::fft(x.astype(complex_dtype(d))), 0, n / 2 + 1, 1), near);
        vt_test::expect_close(fft::irfft(spectra, n), x, near);
        vt_test::expect_close(imag(spectra),
                              where(vt::abs(expand_dims(arange(n / 2 + 1), 0) * 2 - n) == n,
                                    zeros_like(imag(spectra)), imag(spectra)));
      }
}

TEST(Fft, EveryLengthAgainstTheDefinition) {
  for (std::int64_t n : lengths)
    for (DType d : {c64, c128}) {
      const Tensor x = random_complex({n > 2000 ? 1 : 5, n}, static_cast<std::uint64_t>(n), d);
      const std::int64_t step = n / 128 + 1;
      for (bool backward : {false, true}) {
        const Tensor expected = sampled_dft(x, step, backward),
                     y = backward ? fft::ifft(x) : fft::fft(x);
        EXPECT_EQ(y.dtype(), d);
        EXPECT_LT(distance(every(y, step), expected), allowed(n, d))
            << n << " " << name_of(d) << (backward ? " backward" : "");
      }
    }
}

TEST(Fft, RealTransformsOfEveryLength) {
  for (std::int64_t n : lengths)
    for (DType d : {f32, f64}) {
      const Tensor x = vt_test::random_tensor(d, {3, n}, static_cast<std::uint64_t>(n));
      const std::int64_t step = n / 128 + 1;
      const Tensor half = fft::rfft(x),
                   expected = take(sampled_dft(x, step), arange((n / 2) / step + 1), 1);
      EXPECT_EQ(half.dtype(), complex_dtype(d));
      EXPECT_LT(distance(every(half, step), expected), allowed(n, d)) << n;
      const Tensor back = fft::irfft(half, n);
      EXPECT_EQ(back.dtype(), d);
      EXPECT_LT(distance(back, x), 2 * allowed(n, d)) << n;
    }
}

TEST(Fft, LongTransformsComeBack) {
  for (std::int64_t n : {std::int64_t{1} << 14, std::int64_t{3} << 14, std::int64_t{15015},
                         std::int64_t{65537}, std::int64_t{1} << 18}) {
    const Tensor x = random_complex({n}, 5), y = fft::fft(x);
    EXPECT_LT(distance(fft::ifft(y), x), 2 * allowed(n, c128)) << n;
    // Parseval's identity, and one frequency by its sum.
    EXPECT_NEAR((norm(y) / norm(x)).item<double>(), std::sqrt(static_cast<double>(n)),
                1e-12 * std::sqrt(static_cast<double>(n)));
    const std::int64_t k = n / 3;
    std::complex<long double> sum = 0;
    const auto values = x.to_vector<C>();
    for (std::int64_t j = 0; j < n; ++j) {
      const long double angle = -2 * std::numbers::pi_v<long double> *
                                static_cast<long double>(j * k % n) / static_cast<long double>(n);
      sum += std::complex<long double>(values[j]) *
             std::complex<long double>(std::cos(angle), std::sin(angle));
    }
    EXPECT_LT(std::abs(y[k].item<C>() - C(sum)), 1e-14 * std::sqrt(static_cast<double>(n)) * 16)
        << n;
  }
}

TEST(Fft, LongRealRowsAreComplexOnes) {
  for (std::int64_t n : {std::int64_t{1} << 16, std::int64_t{90090}, std::int64_t{1} << 18})
    for (std::int64_t rows : {1, 2}) {
      const Tensor x = vt_test::random_tensor(f64, {rows, n}, 6), half = fft::rfft(x);
      const Tensor expected = slice_in_dim(fft::fft(x.astype(c128)), 0, n / 2 + 1, 1);
      EXPECT_LT(distance(half, expected), allowed(n, f64)) << n;
      EXPECT_LT(distance(fft::irfft(half), x), 2 * allowed(n, f64)) << n;
    }
}

TEST(Fft, AxesLengthsAndNorms) {
  const Tensor x = random_complex({3, 4, 5}, 9);
  for (int axis : {0, 1, 2, -1, -3}) {
    const double n = static_cast<double>(x.dim(axis));
    expect_close(fft::fft(x, std::nullopt, axis), dft(x, axis), {.ulps = 32});
    expect_close(fft::ifft(x, std::nullopt, axis), dft(x, axis, true), {.ulps = 32});
    expect_close(fft::fft(x, std::nullopt, axis, Norm::ortho), dft(x, axis) / std::sqrt(n),
                 {.ulps = 32});
    expect_close(fft::ifft(x, std::nullopt, axis, Norm::forward), dft(x, axis, true) * n,
                 {.ulps = 32});
    expect_close(fft::fft(x, std::nullopt, axis, Norm::forward), dft(x, axis) / n, {.ulps = 32});
    expect_close(fft::ifft(x, std::nullopt, axis, Norm::ortho), dft(x, axis, true) * std::sqrt(n),
                 {.ulps = 32});
  }
  expect_close(fft::fft(x, 3, 2), dft(x[0].size() ? take(x, arange(3), 2) : x, 2), {.ulps = 32});
  expect_close(fft::fft(x, 7), dft(concatenate({x, zeros({3, 4, 2}, c128)}, 2), 2), {.ulps = 32});
  expect_close(fft::fft2(x), dft(dft(x, 2), 1), {.ulps = 64});
  expect_close(fft::ifft2(x, std::nullopt, {0, 2}), dft(dft(x, 2, true), 0, true), {.ulps = 64});
  expect_close(fft::fftn(x), dft(dft(dft(x, 2), 1), 0), {.ulps = 64});
  expect_close(fft::fftn(x, Shape{2, 6}), fft::fft(fft::fft(x, 6, 2), 2, 1), {.ulps = 64});
  // Lengths and axes in braces, as NumPy's tuples.
  expect_close(fft::fftn(x, {2, 6}), fft::fftn(x, Shape{2, 6}));
  expect_close(fft::fftn(x, {}, {0, 2}), dft(dft(x, 2), 0), {.ulps = 64});
  expect_close(fft::fft2(x, {2, 6}, {0, 1}), fft::fft(fft::fft(x, 6, 1), 2, 0), {.ulps = 64});
  expect_close(fft::ifftn(x, {}, {1}), dft(x, 1, true), {.ulps = 64});
  expect_close(fft::ifftn(fft::fftn(x)), x, {.ulps = 64, .absolute = 1e-15});
  const Tensor deep = random_complex({2, 3, 2, 4, 3}, 10);
  expect_close(fft::ifftn(fft::fftn(deep)), deep, {.ulps = 64, .absolute = 1e-15});
  expect_close(fft::fftn(deep), dft(dft(dft(dft(dft(deep, 0), 1), 2), 3), 4),
               {.ulps = 128, .absolute = 1e-13});

  const Tensor r = vt_test::random_tensor(f64, {4, 3, 6}, 3);
  expect_close(fft::rfftn(r), take(fft::fftn(r), arange(4), 2), {.ulps = 64, .absolute = 1e-14});
  expect_close(fft::rfft2(r, std::nullopt, {2, 0}),
               take(fft::fft2(r, std::nullopt, {2, 0}), arange(3), 0),
               {.ulps = 64, .absolute = 1e-14});
  expect_close(fft::irfftn(fft::rfftn(r)), r, {.ulps = 64, .absolute = 1e-15});
  expect_close(fft::irfft2(fft::rfft2(r, Shape{3, 5}), Shape{3, 5}), take(r, arange(5), 2),
               {.ulps = 64, .absolute = 1e-15});
  const Tensor five = vt_test::random_tensor(f64, {2, 2, 3, 2, 5}, 4);
  expect_close(fft::irfftn(fft::rfftn(five), five.shape()), five, {.ulps = 64, .absolute = 1e-15});
  const Tensor half = random_complex({2, 4}, 6);
  expect_close(fft::hfft(half), fft::irfft(conj(half)) * 6.0, {.ulps = 32, .absolute = 1e-14});
  expect_close(fft::ihfft(r), conj(fft::rfft(r)) / 6.0, {.ulps = 32, .absolute = 1e-14});
  expect_close(fft::hfft(fft::ihfft(r)), r, {.ulps = 64, .absolute = 1e-14});
  expect_close(fft::fftfreq(5, 0.1, f64), tensor({0.0, 2.0, 4.0, -4.0, -2.0}), {.ulps = 4});
  expect_close(fft::rfftfreq(6, 1.0, f64), tensor({0.0, 1.0 / 6, 2.0 / 6, 0.5}), {.ulps = 2});
  expect_close(fft::ifftshift(fft::fftshift(r)), r);
}

TEST(Fft, Dtypes) {
  EXPECT_EQ(fft::fft(ones({4}, i32)).dtype(), c64);
  EXPECT_EQ(fft::fft(ones({4}, f16)).dtype(), c64);
  EXPECT_EQ(fft::fft(ones({4}, f64)).dtype(), c128);
  EXPECT_EQ(fft::rfft(ones({4}, bf16)).dtype(), c64);
  EXPECT_EQ(fft::irfft(ones({4}, bool_)).dtype(), f32);
  EXPECT_EQ(fft::fft(zeros({0, 4}, c64)).shape(), (Shape{0, 4}));
  EXPECT_EQ(fft::rfft(zeros({2, 0, 5})).eval().shape(), (Shape{2, 0, 3}));
}

TEST(Fft, WhatIsRefused) {
  const Tensor x = ones({2, 4}, c64);
  const auto fails = [](auto&& f, ErrorKind kind, const std::vector<std::string>& parts) {
    vt_test::expect_error(f, kind, parts);
  };
  fails([&] { (void)fft::rfft(x); }, ErrorKind::dtype,
        {"vt::fft::rfft", "needs real numbers", "c64[2,4]", "fft_test.cpp"});
  fails([&] { (void)fft::fft(x, std::nullopt, 2); }, ErrorKind::shape,
        {"vt::fft::fft", "axis 2 out of range for rank 2", "fft_test.cpp"});
  fails([&] { (void)fft::fft(x, 0); }, ErrorKind::shape,
        {"vt::fft::fft", "a transform of 0 points along axis 1"});
  fails([&] { (void)fft::fft(zeros({3, 0}, c64)); }, ErrorKind::shape, {"a transform of 0 points"});
  fails([&] { (void)fft::irfft(ones({3, 1}, c64)); }, ErrorKind::shape,
        {"vt::fft::irfft", "a transform of 0 points"});
  fails([&] { (void)fft::fft2(x, std::nullopt, {1, -1}); }, ErrorKind::shape,
        {"vt::fft::fft2", "name axis 1 twice"});
  fails([&] { (void)fft::fftn(x, Shape{2, 2, 2}); }, ErrorKind::shape,
        {"vt::fft::fftn", "3 lengths for 2 axes"});
  fails([&] { (void)fft::fftn(x, Shape{2}, Axes{0, 1}); }, ErrorKind::shape,
        {"vt::fft::fftn", "lengths"});
  fails([&] { (void)fft::fft(tensor(1.0)); }, ErrorKind::shape, {"vt::fft::fft", "out of range"});
  fails([&] { (void)fft::fftfreq(0); }, ErrorKind::value, {"vt::fft::fftfreq", "0 points"});
}

struct Map {
  std::string name;
  std::function<Tensor(Tensor)> f;
  bool from_real = false;
};
std::vector<Map> maps() {
  return {{"fft", [](Tensor z) { return fft::fft(z); }},
          {"ifft", [](Tensor z) { return fft::ifft(z, 7); }},
          {"rfft", [](Tensor z) { return fft::rfft(z); }, true},
          {"rfft odd", [](Tensor z) { return fft::rfft(z, 5); }, true},
          {"irfft", [](Tensor z) { return fft::irfft(z); }},
          {"irfft odd", [](Tensor z) { return fft::irfft(z, 9); }},
          {"fft2", [](Tensor z) { return fft::fft2(z); }},
          {"rfftn", [](Tensor z) { return fft::rfftn(z); }, true},
          {"irfftn", [](Tensor z) { return fft::irfftn(z); }},
          {"irfftn odd",
           [](Tensor z) { return fft::irfftn(z, Shape{3, 5}, std::nullopt, Norm::ortho); }},
          {"one", [](Tensor z) { return fft::irfft(z, 1); }}};
}
double pairing(const Tensor& a, const Tensor& b) { return real(sum(a * b)).item<double>(); }

TEST(FftDerivatives, LinearMapsAndTheirTransposes) {
  for (const Map& m : maps()) {
    SCOPED_TRACE(m.name);
    const auto point = [&](const Shape& shape, std::uint64_t seed) {
      return m.from_real ? vt_test::random_tensor(f64, shape, seed) : random_complex(shape, seed);
    };
    const Tensor x = point({3, 6}, 1), d = point({3, 6}, 2);
    const auto [y, dy] = jvp(m.f, x, d);
    expect_close(dy, m.f(d));
    const auto [z, pull] = vjp(m.f, x);
    const Tensor w = is_complex(y.dtype()) ? random_complex(y.shape(), 3)
                                           : vt_test::random_tensor(f64, y.shape(), 3);
    const Tensor back = pull(w);
    EXPECT_EQ(back.dtype(), x.dtype());
    EXPECT_NEAR(pairing(w, dy), pairing(back, d), 1e-12 * (1 + std::fabs(pairing(w, dy))));
    // The transpose of the transpose.
    const auto twice = vjp(pull, w).second(d);
    expect_close(twice, dy, {.relative = 1e-13, .absolute = 1e-13});
    // Second derivatives of a function of it.
    const auto f = [&](Tensor a) { return sum(integer_pow(abs(m.f(a)) + 1.0, 3)); };
    const Tensor e = point({3, 6}, 4);
    const auto gradient = [&](Tensor a) { return grad(f)(a); };
    const double de = pairing(jvp(gradient, x, d).second, e),
                 ed = pairing(jvp(gradient, x, e).second, d);
    EXPECT_NEAR(de, ed, 1e-10 * (1 + std::fabs(de)));
    const double h = 1e-5, slope = (f(x + h * d) - f(x - h * d)).item<double>() / (2 * h);
    EXPECT_NEAR(pairing(gradient(x), d), slope, 1e-6 * (1 + std::fabs(slope)));
  }
}

TEST(FftDerivatives, MappedAndCompiled) {
  for (const Map& m : maps()) {
    SCOPED_TRACE(m.name);
    const Tensor x =
        m.from_real ? vt_test::random_tensor(f64, {3, 4, 6}, 1) : random_complex({3, 4, 6}, 1);
    const auto f = [&](Tensor a) { return m.f(a * 2.0); };
    const Tolerance close{.relative = 1e-13, .absolute = 1e-13};
    for (int axis : {0, 1}) {
      std::vector<Tensor> lanes;
      for (std::int64_t l = 0; l < x.dim(axis); ++l)
        lanes.push_back(f(vt_test::take_lane(x, axis, l)));
      const Tensor expected = vt_test::stack_lanes(lanes, 0);
      expect_close(vmap(f, {.in_axes = axis})(x), expected, close);
      expect_close(jit(vmap(f, {.in_axes = axis}))(x), expected, close);
    }
    const auto energy = [&](Tensor a) {
      return grad([&](Tensor b) { return sum(square(abs(m.f(b)))); })(a);
    };
    expect_close(jit(energy)(x), energy(x), close);
  }
  const auto filter =
      jit([](Tensor a) { return fft::irfft(fft::rfft(a) * exp(-fft::rfftfreq(64, 1.0, f64))); });
  const Tensor a = vt_test::random_tensor(f64, {3, 64}, 2);
  filter(a).eval();
  if (vt_test::forced_backend() != "interpreter") {
    EXPECT_EQ(filter.explain_steps(a).find("interpreter:"), std::string::npos)
        << filter.explain_steps(a);
    EXPECT_NE(filter.explain_steps(a).find("transform: fft"), std::string::npos)
        << filter.explain_steps(a);
  }
}

TEST(Fft, EmptyBracesAreTheDefaultAxes) {
  const Tensor x = random_complex({3, 4, 6}, 8), half = fft::rfft2(vt::real(x));
  expect_close({fft::fft2(x, {}, {}, fft::Norm::ortho), fft::ifft2(x, {4, 5}, {}),
                fft::rfft2(vt::real(x), {}, {}), fft::irfft2(half, {}, {})},
               {fft::fft2(x, {}, {1, 2}, fft::Norm::ortho), fft::ifft2(x, {4, 5}, {1, 2}), half,
                fft::irfft2(half, {}, {1, 2})});
  expect_close({fft::fftn(x, {}, {}, fft::Norm::forward)},
               {fft::fftn(x, {}, {0, 1, 2}, fft::Norm::forward)});
}

TEST(Fft, ThreadsChangeNothing) {
  const Tensor x = random_complex({37, 1024}, 3), row = random_complex({1 << 16}, 4),
               prime = random_complex({5, 1009}, 5);
  const Tensor real = vt_test::random_tensor(f32, {1 << 17}, 6);
  const auto all = [&] {
    return std::vector<Tensor>{fft::fft(x).eval(),  fft::ifft(row).eval(),  fft::fft(prime).eval(),
                               fft::fft2(x).eval(), fft::rfft(real).eval(), fft::irfft(row).eval()};
  };
  const int before = num_threads();
  set_num_threads(1);
  const std::vector<Tensor> alone = all();
  set_num_threads(2);
  expect_close(all(), alone);
  set_num_threads(before);
}

}  // namespace
