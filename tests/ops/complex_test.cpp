// Complex numbers: making and reading them, promotion, special values against C99's, what is
// refused, the convention of derivatives (differences of the two real parts, inner products, second
// order), and compiled programs against std::complex.
#include <vt/eigen.hpp>

#include "support/property.hpp"

namespace {

using namespace vt;
using C = std::complex<double>;
using CF = std::complex<float>;
using vt_test::expect_close;
using vt_test::Tolerance;

const double inf = std::numeric_limits<double>::infinity(),
             nan = std::numeric_limits<double>::quiet_NaN();

Tensor random_complex(const Shape& shape, std::uint64_t seed, double low = -2, double high = 2) {
  return vt_test::random_tensor(c128, shape, low, high, seed);
}

// --- making and reading --------------------------------------------------------------------------

TEST(Complex, MadeAndReadBack) {
  const Tensor z = tensor({C(1, 2), C(-3, 0.5)});
  EXPECT_EQ(z.dtype(), c128);
  EXPECT_EQ(z[1].item<C>(), C(-3, 0.5));
  EXPECT_EQ(z.to_vector<CF>()[0], CF(1, 2));
  EXPECT_EQ(z.data<C>()[1], C(-3, 0.5));
  EXPECT_EQ(tensor(CF(1, 2)).dtype(), c64);
  EXPECT_EQ(tensor({C(1, 2), C(3, 4)}, c64).dtype(), c64);
  EXPECT_EQ(tensor({{1.0, 2.0}}, c64)[0][1].item<CF>(), CF(2, 0));
  EXPECT_EQ(zeros({2}, c64).to_vector<CF>(), (std::vector<CF>{0, 0}));
  EXPECT_EQ(ones({2}, c128).to_vector<C>(), (std::vector<C>{1, 1}));
  EXPECT_EQ(full({2}, C(1, 2)).to_vector<C>(), (std::vector<C>{C(1, 2), C(1, 2)}));
  EXPECT_EQ(arange(3, c64).to_vector<CF>(), (std::vector<CF>{0, 1, 2}));
  EXPECT_EQ(linspace(0, 1, 3, c128).to_vector<C>(), (std::vector<C>{0, 0.5, 1}));
  EXPECT_EQ(eye(2, c64)[0].to_vector<CF>(), (std::vector<CF>{1, 0}));
  EXPECT_EQ(iota(c64, {2, 2}, 1)[1].to_vector<CF>(), (std::vector<CF>{0, 1}));
  EXPECT_TRUE(static_cast<bool>(tensor(C(0, 1))));
  EXPECT_EQ(borrow(std::span<const C>(z.data<C>()), {2})[0].item<C>(), C(1, 2));
}

TEST(Complex, Promotion) {
  const auto one = [](DType d) { return ones({2}, d); };
  for (DType d : vt_test::all_dtypes) {
    const std::string what = name_of(d);
    EXPECT_EQ((one(d) + one(c64)).dtype(), d == f64 ? c128 : c64) << what;
    EXPECT_EQ((one(c128) * one(d)).dtype(), c128) << what;
    EXPECT_EQ((one(d) * C(0, 1)).dtype(), d == f64 ? c128 : c64) << what;
    EXPECT_EQ((CF(0, 1) - one(d)).dtype(), d == f64 ? c128 : c64) << what;
    EXPECT_EQ(where(one(bool_), one(d), one(c64)).dtype(), d == f64 ? c128 : c64) << what;
    EXPECT_EQ(concatenate({one(d), one(c64)}).dtype(), d == f64 ? c128 : c64) << what;
    EXPECT_EQ(one(d).astype(c64).to_vector<CF>(), (std::vector<CF>{1, 1})) << what;
    EXPECT_EQ(complex(one(d), one(d)).dtype(), d == f64 ? c128 : c64) << what;
  }
  EXPECT_EQ((one(c64) + one(c128)).dtype(), c128);
  EXPECT_EQ((one(c64) * 2.0).dtype(), c64);
  EXPECT_EQ((one(c64) + 1).dtype(), c64);
  EXPECT_EQ((one(c64) * C(0, 1)).dtype(), c64);
  EXPECT_EQ((one(f32) * (Tensor(C(0, 1)) * 2.0)).dtype(), c64);
  EXPECT_EQ((one(f64) * (Tensor(C(0, 1)) * 2.0)).dtype(), c128);
  EXPECT_EQ((one(i64) / one(c64)).dtype(), c64);
  EXPECT_EQ(abs(one(c64)).dtype(), f32);
  EXPECT_EQ(real(one(c128)).dtype(), f64);
  EXPECT_EQ(angle(one(c64)).dtype(), f32);
  EXPECT_EQ(var(one(c64)).dtype(), f32);
  EXPECT_EQ(norm(one(c128)).dtype(), f64);
}

TEST(Complex, Printed) {
  EXPECT_EQ(detail::text_of(tensor({C(1, 2), C(-3.5, -0.25)})),
            "[ 1.  +2.i   -3.5 -0.25i] c128[2]");
  EXPECT_EQ(detail::text_of(tensor(CF(0, -1))), "0.-1.i c64[]");
  EXPECT_EQ(detail::text_of(tensor({C(nan, inf)})), "[nan+infi] c128[1]");
  const Graph g = make_graph([](Tensor x) { return x * C(0.5, -1); })(tensor(C(1)));
  EXPECT_NE(g.str().find("= mul a 0.5-1.0i\n"), std::string::npos) << g.str();
}

TEST(Complex, Interop) {
  const Eigen::MatrixXcd m = Eigen::MatrixXcd::Random(3, 2);
  const Tensor t = vt::tensor(m);
  EXPECT_EQ(t.dtype(), c128);
  EXPECT_EQ(t[2][1].item<C>(), m(2, 1));
  EXPECT_LT((as_eigen<C>(matmul(conj(transpose(t)), t)) - m.adjoint() * m).norm(), 1e-14);
  const std::string path = ::testing::TempDir() + "vt_complex.npy";
  for (DType d : {c64, c128}) {
    save_npy(path, t.astype(d));
    expect_close(load_npy(path), t.astype(d));
    expect_close(from_dlpack(to_dlpack(t.astype(d))), t.astype(d));
  }
  std::remove(path.c_str());
}

TEST(Complex, PartsAndPredicates) {
  const Tensor z = tensor({C(1, 2), C(-3, 0), C(0, -0.0)});
  expect_close(real(z), tensor({1.0, -3.0, 0.0}));
  expect_close(imag(z), tensor({2.0, 0.0, -0.0}));
  expect_close(conj(z), tensor({C(1, -2), C(-3, 0), C(0, 0)}));
  expect_close(angle(z), tensor({std::arg(C(1, 2)), std::arg(C(-3, 0)), -0.0}), {.ulps = 1});
  expect_close(iscomplex(z), tensor({true, false, false}));
  expect_close(isreal(z), tensor({false, true, true}));
  const Tensor x = tensor({1.0f, -2.0f});
  expect_close(real(x), x);
  expect_close(imag(x), zeros({2}));
  expect_close(conj(x), x);
  expect_close(z == tensor({C(1, 2), C(-3, 1), C(0, 0)}), tensor({true, false, true}));
  expect_close(z != C(1, 2), tensor({false, true, true}));
  expect_close(isnan(tensor({C(nan, 1), C(1, nan), C(1, 1)})), tensor({true, true, false}));
  expect_close(isinf(tensor({C(-inf, 1), C(1, inf), C(1, 1)})), tensor({true, true, false}));
  expect_close(isfinite(tensor({C(-inf, 1), C(1, nan), C(1, 1)})), tensor({false, false, true}));
  expect_close(nan_to_num(tensor({C(nan, 1)}), 3.0), tensor({C(3, 1)}));
  expect_close(any(z), tensor(true));
  EXPECT_EQ(count_nonzero(z).item<int>(), 2);
}

TEST(Complex, SquaresAreOfMagnitudes) {
  const Tensor z = tensor({C(3, 4), C(0, -1)});
  expect_close(sum_of_squares(z), tensor(26.0));
  expect_close(squared_difference(z, C(0, 0)), tensor({25.0, 1.0}));
  const Tensor draws = random::normal(random::key(3), {20000}, c64);
  EXPECT_EQ(draws.dtype(), c64);
  EXPECT_NEAR(var(draws).item<double>(), 1.0, 0.03);
  EXPECT_NEAR(mean(square(draws)).item<C>().real(), 0.0, 0.03);
  EXPECT_LT(std::abs(mean(draws).item<C>()), 0.03);
}

TEST(Complex, ReductionsAndProducts) {
  const Tensor z = random_complex({4, 3}, 1), w = random_complex({3, 2}, 2);
  const std::vector<C> a = z.to_vector<C>(), b = w.to_vector<C>();
  C sum = 0, product = 1;
  double squares = 0;
  for (const C& v : a) {
    sum += v;
    product *= v;
    squares += std::norm(v);
  }
  const Tolerance few{.ulps = 16};
  expect_close(vt::sum(z), tensor(sum), few);
  expect_close(prod(z), tensor(product), few);
  expect_close(mean(z), tensor(sum / 12.0), few);
  expect_close(norm(z), tensor(std::sqrt(squares)), few);
  expect_close(var(z), tensor(squares / 12 - std::norm(sum / 12.0)), few);
  expect_close(vdot(z, z), tensor(C(squares, 0)), few);
  std::vector<C> rows;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      C dot = 0;
      for (std::size_t k = 0; k < 3; ++k) dot += a[i * 3 + k] * b[k * 2 + j];
      rows.push_back(dot);
    }
  expect_close(matmul(z, w), tensor(rows, {4, 2}), few);
  expect_close(einsum("ik,kj->ij", z, w), tensor(rows, {4, 2}), few);
  expect_close(matmul(real(z), w), matmul(real(z).astype(c128), w), few);
}

// --- refusals ------------------------------------------------------------------------------------

TEST(Complex, Correlation) {  // NumPy's values
  const C between(-0.631345340345, 0.479822458662);
  expect_close(corrcoef(tensor({{C(1, 2), C(0.5, -1), C(3, 0)}, {C(2, 0), C(0, 1), C(-1, 1)}})),
               tensor({{C(1, 0), between}, {std::conj(between), C(1, 0)}}),
               {.relative = 1e-11, .absolute = 1e-12});
}

TEST(Complex, WhatIsRefused) {
  const Tensor z = tensor({C(1, 2), C(3, 4)});
  const auto refused = [](auto&& f, const std::string& function, const std::string& why) {
    vt_test::expect_error(f, ErrorKind::dtype, {function, why, "c128[2]", "complex_test.cpp"});
  };
  refused([&] { z < z; }, "vt::less", "no order");
  refused([&] { (void)maximum(z, 1.0); }, "vt::maximum", "no order");
  refused([&] { (void)vt::max(z); }, "vt::max", "no order");
  refused([&] { (void)argmin(z); }, "vt::argmin", "no order");
  refused([&] { (void)median(z); }, "vt::median", "no order");
  refused([&] { (void)cummax(z); }, "vt::cummax", "no order");
  refused([&] { (void)softmax(z); }, "vt::softmax", "not defined for complex");
  refused([&] { (void)rms_norm(z, ones({2})); }, "vt::rms_norm", "not defined for complex");
  refused([&] { (void)floor(z); }, "vt::floor", "not defined for complex");
  refused([&] { (void)erf(z); }, "vt::erf", "not defined for complex");
  refused([&] { z % z; }, "vt::fmod", "not defined for complex");
  refused([&] { (void)mod(z, z); }, "vt::mod", "not defined for complex");
  refused([&] { (void)atan2(z, z); }, "vt::atan2", "not defined for complex");
  refused([&] { (void)complex(z, z); }, "vt::complex", "not defined for complex");
  refused([&] { (void)bitwise_and(z, z); }, "vt::bitwise_and", "needs bools or integers");
  refused([&] { (void)z.astype(f32); }, "vt::astype", "would drop the imaginary part");
  refused([&] { z.to_vector<double>(); }, "vt::Tensor::to_vector: asked for f64 numbers",
          "would drop the imaginary part");
  refused([&] { (void)as_eigen<double>(z); }, "vt::as_eigen: asked for f64 elements",
          "use its own type");
  refused([&] { (void)bitcast(z, c64); }, "vt::bitcast", "sizes differ");
}

// --- values --------------------------------------------------------------------------------------

struct Function {
  const char* name;
  Tensor (*ours)(Operand);
  C (*theirs)(const C&);
};
const Function functions[] = {
    {"exp", exp, std::exp},       {"log", log, std::log},       {"sqrt", sqrt, std::sqrt},
    {"sin", sin, std::sin},       {"cos", cos, std::cos},       {"tan", tan, std::tan},
    {"asin", asin, std::asin},    {"acos", acos, std::acos},    {"atan", atan, std::atan},
    {"sinh", sinh, std::sinh},    {"cosh", cosh, std::cosh},    {"tanh", tanh, std::tanh},
    {"asinh", asinh, std::asinh}, {"acosh", acosh, std::acosh}, {"atanh", atanh, std::atanh}};

/// By the interpreter and, whatever the backend, compiled.
template <class F>
void both_ways(F&& f, const Tensor& z, const Tensor& expected, const Tolerance& tolerance,
               const std::string& what) {
  expect_close(Tensor(f(z)), expected, tolerance, what);
  expect_close(jit(f)(z), expected, tolerance, what + " compiled");
}

TEST(ComplexValues, FunctionsAgreeWithTheStandardLibrary) {
  std::vector<C> points = random_complex({150}, 7, -3, 3).to_vector<C>();
  for (double scale : {1e-8, 1e-3, 30.0})
    for (const C& z : random_complex({20}, 11).to_vector<C>()) points.push_back(scale * z);
  for (const Function& f : functions) {
    std::vector<C> expected;
    for (const C& z : points) expected.push_back(f.theirs(z));
    both_ways([&](Tensor z) { return f.ours(z); }, tensor(points), tensor(expected), {.ulps = 24},
              f.name);
    std::vector<CF> narrow(points.begin(), points.end()), rounded;
    for (const CF& z : narrow) rounded.emplace_back(f.theirs(C(z)));
    both_ways([&](Tensor z) { return f.ours(z); }, tensor(narrow), tensor(rounded), {.ulps = 24},
              f.name + std::string(" c64"));
  }
}

// On the cuts the sign of a zero tells the side.
TEST(ComplexValues, BranchCuts) {
  std::vector<C> points;
  for (double a : {-3.0, -1.5, -0.5, 0.5, 1.5, 3.0})
    for (double zero : {0.0, -0.0}) {
      points.emplace_back(a, zero);
      points.emplace_back(zero, a);
    }
  for (const Function& f : functions) {
    std::vector<C> expected;
    for (const C& z : points) expected.push_back(f.theirs(z));
    both_ways([&](Tensor z) { return f.ours(z); }, tensor(points), tensor(expected),
              {.ulps = 24, .absolute = 1e-15}, f.name);
  }
}

bool same_special(C a, C b) {
  const auto same = [](double x, double y) {
    return vt_test::close(x, y, f64, {.ulps = 4}) &&
           (std::isnan(y) || std::signbit(x) == std::signbit(y));
  };
  return same(a.real(), b.real()) && same(a.imag(), b.imag());
}

TEST(ComplexValues, SpecialValuesOfSqrtExpLogAndAbs) {
  const std::vector<C> roots = {{0, 0},     {-0.0, 0},   {0, -0.0},  {-0.0, -0.0}, {inf, 1},
                                {-inf, 1},  {inf, -1},   {-inf, -1}, {1, inf},     {-1, inf},
                                {nan, inf}, {inf, -inf}, {4, 0},     {4, -0.0},    {-4, 0.0},
                                {-4, -0.0}, {nan, 1},    {1, nan}};
  const std::vector<C> logs = {{0, 0},   {-0.0, 0}, {0, -0.0},  {-0.0, -0.0}, {inf, 1}, {-inf, 1},
                               {1, inf}, {1, -inf}, {inf, nan}, {nan, inf},   {1, 0},   {1, -0.0}};
  const std::vector<C> exps = {{0, 0},    {0, -0.0},  {inf, 0}, {-inf, 1},
                               {-inf, 0}, {nan, 0.0}, {1, 0},   {-1, -0.0}};
  const auto check = [](const auto& ours, C (*theirs)(const C&), const std::vector<C>& points,
                        const char* name) {
    for (const bool compiled : {false, true}) {
      const std::vector<C> got =
          (compiled ? jit(ours)(tensor(points)) : Tensor(ours(tensor(points))))
              .template to_vector<C>();
      for (std::size_t i = 0; i < points.size(); ++i)
        EXPECT_TRUE(same_special(got[i], theirs(points[i])))
            << name << points[i] << (compiled ? " compiled" : "") << ": " << got[i] << ", not "
            << theirs(points[i]);
    }
  };
  check([](Tensor z) { return sqrt(z); }, std::sqrt, roots, "sqrt");
  check([](Tensor z) { return log(z); }, std::log, logs, "log");
  check([](Tensor z) { return exp(z); }, std::exp, exps, "exp");
  const Tensor far = tensor({C(3e300, 4e300), C(-inf, nan), C(0, -0.0), C(3e-310, 4e-310)});
  both_ways([](Tensor z) { return abs(z); }, far, tensor({5e300, inf, 0.0, 5e-310}), {.ulps = 4},
            "abs");
  const Tensor large = tensor({C(1e308, 1e308), C(1e-310, 0)});
  both_ways([](Tensor z) { return sqrt(z); }, large,
            tensor({std::sqrt(C(1e308, 1e308)), std::sqrt(C(1e-310, 0))}), {.ulps = 4}, "sqrt");
}

TEST(ComplexValues, QuotientsAreScaled) {
  const Tensor a = tensor({C(1e200, 1e200), C(1, 2), C(1, 0), C(3, 4), C(1, 1)}),
               b = tensor({C(1e200, -1e200), C(0, 0), C(0, 2), C(1e-200, 1e-200), C(inf, 1)});
  const Tensor expected = tensor({C(0, 1), C(inf, inf), C(0, -0.5), C(3.5e200, 0.5e200), C(0, 0)});
  const auto divide = [](Tensor x, Tensor y) { return x / y; };
  expect_close(divide(a, b), expected, {.ulps = 4});
  expect_close(jit(divide)(a, b), expected, {.ulps = 4});
  expect_close(tensor(C(1, 2)) * tensor(C(3, -1)), tensor(C(5, 5)));
  expect_close(pow(tensor({C(0, 0), C(0, 0), C(2, 0)}), tensor({C(0, 0), C(2, 1), C(0.5, 0)})),
               tensor({C(1), C(0), C(std::sqrt(2.0))}), {.ulps = 4});
  expect_close(square(tensor(C(1, 2))), tensor(C(-3, 4)));
  expect_close(reciprocal(tensor(C(0, 2))), tensor(C(0, -0.5)));
  expect_close(sign(tensor({C(0, 0), C(3, 4)})), tensor({C(0), C(0.6, 0.8)}), {.ulps = 2});
}

TEST(ComplexValues, SmallNumbersKeepTheirDigits) {
  const Tensor z = tensor({C(1e-12, 2e-12), C(-2e-20, 1e-10)});
  both_ways([](Tensor x) { return log1p(x); }, z,
            tensor({C(1e-12, 2e-12), C(5e-21 - 2e-20, 1e-10)}), {.relative = 1e-11}, "log1p");
  both_ways([](Tensor x) { return expm1(x); }, z,
            tensor({C(1e-12, 2e-12), C(-2e-20 - 5e-21, 1e-10)}), {.relative = 1e-11}, "expm1");
}

// --- derivatives ---------------------------------------------------------------------------------

/// A function of complex Tensors as one of twice as many real ones: what differences can be taken
/// of.
using Many = std::function<Tensor(const std::vector<Tensor>&)>;
std::vector<Tensor> split(const Tensor& z) { return {real(z), imag(z)}; }

struct Rule {
  std::string name;
  Many f;
  int operands;
  double low = 0.3, high = 1.2;
};
std::vector<Rule> rules() {
  std::vector<Rule> all;
  for (const Function& f : functions)
    all.push_back({f.name, [f](const std::vector<Tensor>& z) { return f.ours(z[0]); }, 1, 0.2,
                   std::string(f.name) == "acosh" ? 2.0 : 0.9});
  const auto one = [&](const char* name, auto f) {
    all.push_back({name, [f](const std::vector<Tensor>& z) { return f(z[0]); }, 1});
  };
  const auto two = [&](const char* name, auto f) {
    all.push_back({name, [f](const std::vector<Tensor>& z) { return f(z[0], z[1]); }, 2});
  };
  one("abs", [](Tensor z) { return abs(z).astype(c128); });
  one("sign", [](Tensor z) { return sign(z); });
  one("real", [](Tensor z) { return real(z).astype(c128); });
  one("imag", [](Tensor z) { return complex(imag(z) * 2.0, real(z)); });
  one("conj", [](Tensor z) { return conj(z) * z; });
  one("angle", [](Tensor z) { return angle(z).astype(c128); });
  one("expm1", [](Tensor z) { return expm1(z); });
  one("log1p", [](Tensor z) { return log1p(z); });
  one("exp2", [](Tensor z) { return exp2(z); });
  one("log2", [](Tensor z) { return log2(z); });
  one("rsqrt", [](Tensor z) { return rsqrt(z); });
  one("sigmoid", [](Tensor z) { return sigmoid(z); });
  one("square", [](Tensor z) { return square(z); });
  one("cube", [](Tensor z) { return integer_pow(z, 3); });
  one("reciprocal", [](Tensor z) { return integer_pow(z, -2); });
  one("convert", [](Tensor z) { return (z.astype(c128) * abs(z)).astype(c128); });
  one("sum", [](Tensor z) { return sum(z, 0); });
  one("prod", [](Tensor z) { return prod(z, 0); });
  one("cumsum", [](Tensor z) { return cumsum(z, 0, {.reverse = true}); });
  one("cumprod", [](Tensor z) { return cumprod(z, 0); });
  one("norm", [](Tensor z) { return norm(z).astype(c128); });
  one("matmul", [](Tensor z) { return matmul(transpose(z), conj(z)); });
  one("rows", [](Tensor z) { return concatenate({z[slice(1, 3)] * z[0], flip(z)}); });
  one("scatter",
      [](Tensor z) { return index_add(z, tensor({1, 1}), z[slice(0, 2)] * z[slice(1, 3)]); });
  one("scan", [](Tensor z) {
    return scan([](Tensor c, Tensor x) { return std::pair(c * x + C(0, 1), c * c); }, z[0], z)
        .second;
  });
  two("mul", [](Tensor a, Tensor b) { return a * b; });
  two("div", [](Tensor a, Tensor b) { return a / b; });
  two("pow", [](Tensor a, Tensor b) { return pow(a, b); });
  two("where", [](Tensor a, Tensor b) { return where(real(a) > imag(b), a * a, b); });
  two("real times complex", [](Tensor a, Tensor b) { return real(a) * b; });
  return all;
}

vt_test::FlatFunction of_parts(const Rule& r) {
  return [f = r.f](const std::vector<Tensor>& x) {
    std::vector<Tensor> z;
    for (std::size_t i = 0; i < x.size(); i += 2) z.push_back(complex(x[i], x[i + 1]));
    return split(f(z));
  };
}

void each_rule(const std::function<void(const Rule&, const std::vector<Tensor>& z,
                                        const std::vector<Tensor>& d)>& check) {
  for (const Rule& r : rules()) {
    SCOPED_TRACE(r.name);
    std::vector<Tensor> z, d;
    for (int i = 0; i < r.operands; ++i) {
      z.push_back(random_complex({3, 2}, static_cast<std::uint64_t>(31 + i), r.low, r.high));
      d.push_back(random_complex({3, 2}, static_cast<std::uint64_t>(41 + i), -1, 1));
    }
    check(r, z, d);
  }
}
std::vector<Tensor> flattened(const std::vector<Tensor>& z) {
  std::vector<Tensor> parts;
  for (const Tensor& t : z)
    for (const Tensor& p : split(t)) parts.push_back(p);
  return parts;
}
Tensor forward(const Rule& r, const std::vector<Tensor>& z, const std::vector<Tensor>& d) {
  return jvp(r.f, std::tuple(z), std::tuple(d)).second;
}
/// Re Σ a·b, the pairing of cotangents and tangents.
double pairing(const Tensor& a, const Tensor& b) { return real(sum(a * b)).item<double>(); }

TEST(ComplexDerivatives, JvpIsTheDifferenceInBothParts) {
  each_rule([](const Rule& r, const std::vector<Tensor>& z, const std::vector<Tensor>& d) {
    const std::vector<Tensor> expected =
        vt_test::difference(of_parts(r), flattened(z), flattened(d));
    expect_close(split(forward(r, z, d)), expected, {.relative = 1e-8, .absolute = 1e-9});
  });
}

TEST(ComplexDerivatives, PullIsTheTranspose) {
  each_rule([](const Rule& r, const std::vector<Tensor>& z, const std::vector<Tensor>& d) {
    const auto [y, pull] = vjp(r.f, z);
    const Tensor w = random_complex(y.shape(), 5);
    const std::vector<Tensor> cotangents = pull(w);
    double right = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      EXPECT_EQ(cotangents[i].dtype(), c128);
      right += pairing(cotangents[i], d[i]);
    }
    const double left = pairing(w, forward(r, z, d));
    EXPECT_NEAR(left, right, 1e-11 * (1 + std::fabs(left)));
  });
}

TEST(ComplexDerivatives, SecondOrder) {
  each_rule([](const Rule& r, const std::vector<Tensor>& z, const std::vector<Tensor>& d) {
    std::vector<Tensor> e;
    for (std::size_t i = 0; i < z.size(); ++i) e.push_back(random_complex({3, 2}, 51 + i, -1, 1));
    const Tensor w = random_complex(r.f(z).shape(), 5);
    const auto gradient = [&](const std::vector<Tensor>& at) { return vjp(r.f, at).second(w); };
    const std::vector<Tensor> along_d = jvp(gradient, std::tuple(z), std::tuple(d)).second,
                              along_e = jvp(gradient, std::tuple(z), std::tuple(e)).second;
    double de = 0, ed = 0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      de += pairing(along_d[i], e[i]);
      ed += pairing(along_e[i], d[i]);
    }
    EXPECT_NEAR(de, ed, 1e-10 * (1 + std::fabs(de)));
    const vt_test::FlatFunction slope = [&](const std::vector<Tensor>& x) {
      std::vector<Tensor> at;
      for (std::size_t i = 0; i < x.size(); i += 2) at.push_back(complex(x[i], x[i + 1]));
      return split(forward(r, at, d));
    };
    const Tensor second =
        jvp([&](std::vector<Tensor> at) { return forward(r, at, d); }, std::tuple(z), std::tuple(e))
            .second;
    expect_close(split(second), vt_test::difference(slope, flattened(z), flattened(e)),
                 {.relative = 1e-7, .absolute = 1e-8});
  });
}

TEST(ComplexDerivatives, MappedIsTheLoop) {
  each_rule([](const Rule& r, const std::vector<Tensor>&, const std::vector<Tensor>&) {
    std::vector<Tensor> z;
    for (int i = 0; i < r.operands; ++i)
      z.push_back(random_complex({2, 3, 2}, static_cast<std::uint64_t>(61 + i), r.low, r.high));
    const auto gradient = [&](const std::vector<Tensor>& at) {
      return grad([&](std::vector<Tensor> a) { return sum(abs(r.f(a) * r.f(a))); })(at);
    };
    const std::vector<Tensor> mapped = vmap(gradient)(z), compiled = jit(vmap(gradient))(z);
    for (std::size_t i = 0; i < z.size(); ++i)
      for (std::int64_t lane = 0; lane < 2; ++lane) {
        std::vector<Tensor> own;
        for (const Tensor& t : z) own.push_back(t[lane]);
        const Tensor expected = gradient(own)[i];
        expect_close(mapped[i][lane], expected, {.relative = 1e-12, .absolute = 1e-13});
        expect_close(compiled[i][lane], expected, {.relative = 1e-12, .absolute = 1e-13});
      }
  });
}

TEST(ComplexDerivatives, FollowTheValueInAllQuadrantsAndAlongBothSidesOfCuts) {
  std::vector<C> points = random_complex({40}, 5, -3, 3).to_vector<C>();
  for (double zero : {0.0, -0.0})
    for (double x : {-2.0, -0.5, 0.5, 2.0}) points.insert(points.end(), {C(x, zero), C(zero, x)});
  for (const Function& f : functions) {
    const auto slope = grad([&](Tensor z) { return f.ours(z); }, {.holomorphic = true});
    for (const C& z : points) {
      // A step along the axis that z lies on stays on its side of the cut; written by parts, as
      // sums would lose the sign of a zero.
      const bool upright = z.real() == 0;
      const double h = 1e-5;
      const auto at = [&](double d) {
        return f.theirs(upright ? C(z.real(), z.imag() + d) : C(z.real() + d, z.imag()));
      };
      const C expected = (8.0 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) /
                         (12 * h * (upright ? C(0, 1) : C(1)));
      for (const C& got : {slope(tensor(z)).item<C>(), jit(slope)(tensor(z)).item<C>()})
        EXPECT_LT(std::abs(got - expected), 1e-8 * (1 + std::abs(expected)))
            << f.name << " at " << z << ": " << got << ", expected " << expected;
    }
  }
}

TEST(ComplexDerivatives, Convention) {
  const Tensor z = tensor(C(3, 4));
  // ∂/∂x − i·∂/∂y.
  expect_close(grad([](Tensor a) { return square(abs(a)); })(z), tensor(C(6, -8)), {.ulps = 2});
  expect_close(grad([](Tensor a) { return imag(a); })(z), tensor(C(0, -1)));
  expect_close(grad([](Tensor a) { return abs(a); })(tensor(C(0, 0))), tensor(C(0, 0)));
  expect_close(grad([](Tensor x) { return real(exp(complex(0.0, x))); })(tensor(1.0)),
               tensor(-std::sin(1.0)), {.ulps = 2});
  expect_close(grad([](Tensor a) { return a * a * a; }, {.holomorphic = true})(z),
               tensor(3.0 * C(3, 4) * C(3, 4)));
  const auto [value, slope] = value_and_grad([](Tensor a) { return std::pair(sin(a), a); }, has_aux,
                                             {.holomorphic = true})(z);
  expect_close(slope, tensor(std::cos(C(3, 4))), {.ulps = 4});
  const Tensor v = tensor({C(1, 2), C(0.5, -1)});
  const auto f = [](Tensor a) { return a * a[0]; };
  const Tensor expected = tensor({{C(2, 4), C(0)}, {C(0.5, -1), C(1, 2)}});
  expect_close(jacrev(f, {.holomorphic = true})(v), expected);
  expect_close(jacfwd(f, {.holomorphic = true})(v), expected);
  expect_close(jacobian(f, {.holomorphic = true})(v), expected);
  expect_close(hessian([](Tensor a) { return a[0] * a[0] * a[1]; }, {.holomorphic = true})(v),
               tensor({{C(1, -2), C(2, 4)}, {C(2, 4), C(0)}}));
  // A real function's rows are gradients; a path's columns are velocities.
  expect_close(jacobian([](Tensor a) { return square(abs(a)); })(v),
               tensor({{C(2, -4), C(0)}, {C(0), C(1, 2)}}), {.ulps = 4});
  expect_close(jacobian([](Tensor t) { return exp(complex(0.0, t)); })(tensor({0.0})),
               tensor({{C(0, 1)}}));
  expect_close(grad([](Tensor a) { return sum(real(a * C(1, 1))); })(C(1, 2)), tensor(C(1, 1)));
}

TEST(ComplexDerivatives, WrongUses) {
  const Tensor z = tensor({C(1, 2)}), x = tensor({1.0});
  const auto fails = [](auto&& f, const std::vector<std::string>& parts) {
    vt_test::expect_error(f, ErrorKind::dtype, parts);
  };
  fails([&] { grad([](Tensor a) { return sum(a); })(z); },
        {"vt::grad", "c128[]", "holomorphic", "complex_test.cpp"});
  fails([&] { grad([](Tensor a) { return sum(a.astype(c128)); }, {.holomorphic = true})(x); },
        {"complex arguments, not f64[1]"});
  fails([&] { grad([](Tensor a) { return sum(abs(a)); }, {.holomorphic = true})(z); },
        {"complex results, not f64[]"});
  fails([&] { jacobian([](Tensor a) { return a * a; })(z); }, {"vt::jacobian", "both complex"});
  fails([&] { jacfwd([](Tensor a) { return abs(a); })(z); }, {"vt::jacfwd", "real arguments"});
  fails([&] { jacrev([](Tensor a) { return complex(a, a); })(x); }, {"vt::jacrev", "real results"});
  const auto [y, pull] = vjp([](Tensor a) { return abs(a); }, z);
  fails([&, &pull = pull] { pull(tensor({C(1, 2)})); },
        {"cotangent of the result", "c128[1]", "f64[1]"});
}

// --- programs ------------------------------------------------------------------------------------

TEST(ComplexPrograms, ControlFlow) {
  const auto power = [](Tensor z, Tensor n) {
    return fori_loop(0, n, [&](Tensor, Tensor w) { return w * z; }, C(1, 0));
  };
  const Tensor z = tensor({C(0, 1), C(1, 1), C(2, 0)}), n = tensor({3, 2, 0});
  const Tensor expected = tensor({C(0, -1), C(0, 2), C(1, 0)});
  expect_close(vmap(power)(z, n), expected);
  expect_close(jit(vmap(power))(z, n), expected);
  const auto branch = [](Tensor w) {
    return cond(
        real(w) > 0.5, [](Tensor a) { return a * C(0, 1); }, [](Tensor a) { return conj(a); }, w);
  };
  expect_close(jit(vmap(branch))(z), tensor({C(0, -1), C(-1, 1), C(0, 2)}));
  // The Mandelbrot iteration, whose escape times are known.
  const auto escape = [](Tensor c) {
    return while_loop([](Tensor i, Tensor w) { return (abs(w) <= 2.0) & (i < 50); },
                      [&](Tensor i, Tensor w) { return std::pair(i + 1, w * w + c); },
                      std::pair(0, C(0, 0)))
        .first;
  };
  expect_close(jit(vmap(escape))(tensor({C(0, 0), C(1, 0), C(-1, 0), C(0.5, 0.5), C(3, 3)})),
               tensor({50, 3, 50, 5, 1}));
}

TEST(ComplexPrograms, CompiledInRealNumbers) {
  const auto f = jit([](Tensor z) { return sum(exp(z) * conj(z), 0); });
  const Tensor z = random_complex({5, 4}, 3);
  f(z).eval();
  if (vt_test::forced_backend() != "interpreter") {
    EXPECT_EQ(f.explain_steps(z).find("interpreter"), std::string::npos) << f.explain_steps(z);
  }
}

// What holds of real numbers is not done to complex ones: every real function of every part, as one
// program and step by step.
TEST(ComplexPrograms, RealFunctionsOfParts) {
  const Tensor z = random_complex({7}, 5);
  const std::pair<const char*, Tensor (*)(Tensor)> parts[] = {
      {"real", [](Tensor w) { return real(w); }},
      {"imag", [](Tensor w) { return imag(w); }},
      {"abs", [](Tensor w) { return abs(w); }},
      {"angle", [](Tensor w) { return angle(w); }}};
  const std::pair<const char*, Tensor (*)(Tensor)> functions[] = {
      {"square", [](Tensor x) { return square(x); }},
      {"power 2", [](Tensor x) { return pow(x, 2); }},
      {"power -2", [](Tensor x) { return pow(x, -2); }},
      {"abs", [](Tensor x) { return abs(x); }},
      {"negative", [](Tensor x) { return -(-x); }},
      {"abs of negative", [](Tensor x) { return abs(-x); }},
      {"sign", [](Tensor x) { return sign(x); }},
      {"product", [](Tensor x) { return x * x + 0.0; }},
      {"conj", [](Tensor x) { return conj(x); }},
      {"to complex", [](Tensor x) { return square(x.astype(c128)); }},
      {"sum", [](Tensor x) { return sum(square(x)); }},
      {"max", [](Tensor x) { return maximum(x, x); }}};
  for (const auto& [part_name, part] : parts)
    for (const auto& [name, f] : functions) {
      const Tensor step = part(z).eval(), expected = f(step);
      const auto both = [&](Tensor w) { return f(part(w)); };
      SCOPED_TRACE(std::string(name) + " of " + part_name);
      expect_close(jit(both)(z), expected, {.relative = 1e-13});
      expect_close(jit([&](Tensor w) { return both(-w); })(-z), expected, {.relative = 1e-13});
    }
}

}  // namespace
