// Dtype promotion over all pairs of dtypes, weak scalars, broadcasting of element-wise functions
// and where it is refused.
#include "support/property.hpp"

namespace {

using namespace vt;

Tensor one(DType d, const Shape& shape = {2}) { return vt::ones(shape, d); }

/// The rule in other words than the library's: floats beat integers beat bools; within a category
/// the smallest dtype that holds both; f64 where no integer does.
DType expected_common(DType a, DType b) {
  auto rank = [](DType d) { return is_float(d) ? 2 : is_int(d) ? 1 : 0; };
  if (rank(a) != rank(b)) return rank(a) > rank(b) ? a : b;
  // Digits before and after the point that a dtype holds exactly, as (least, most) powers of two.
  auto low = [](DType d) { return is_unsigned(d) ? 0 : static_cast<int>(8 * size_of(d)) - 1; };
  auto high = [](DType d) { return static_cast<int>(8 * size_of(d)) - (is_unsigned(d) ? 0 : 1); };
  auto mantissa = [](DType d) { return d == f16 ? 11 : d == bf16 ? 8 : d == f32 ? 24 : 53; };
  auto exponent = [](DType d) { return d == f16 ? 5 : d == bf16 ? 8 : d == f32 ? 8 : 11; };
  DType best = f64;
  for (DType c : {f64, u64, i64, u32, i32, u16, i16, u8, i8, bool_, f32, f16, bf16}) {
    if (rank(c) != rank(a)) continue;
    bool holds = true;
    for (DType d : {a, b}) {
      if (rank(c) == 2) holds = holds && mantissa(c) >= mantissa(d) && exponent(c) >= exponent(d);
      else if (rank(c) == 1)
        holds = holds && high(c) >= high(d) &&
                (is_unsigned(d) || (!is_unsigned(c) && low(c) >= low(d)));
    }
    // Wide ones stand first: a later one is never wider.
    if (holds && (size_of(c) < size_of(best) || rank(best) != rank(c))) best = c;
  }
  return a == b ? a : best;
}

TEST(Promotion, EveryPairOfDtypes) {
  for (DType a : vt_test::all_dtypes)
    for (DType b : vt_test::all_dtypes) {
      const DType common = expected_common(a, b);
      const std::string what = std::string(name_of(a)) + " with " + name_of(b);
      EXPECT_EQ(name_of(where(one(bool_), one(a), one(b)).dtype()), std::string(name_of(common)))
          << what;
      EXPECT_EQ(name_of((one(a) + one(b)).dtype()),
                std::string(name_of(is_bool(common) ? i32 : common)))
          << what;
      EXPECT_EQ(name_of((one(a) < one(b)).dtype()), std::string("bool")) << what;
      EXPECT_EQ(name_of(atan2(one(a), one(b)).dtype()),
                std::string(name_of(is_float(common) ? common : f32)))
          << what;
      EXPECT_EQ(name_of(concatenate({one(a), one(b)}).dtype()), std::string(name_of(common)))
          << what;
      EXPECT_EQ(name_of(matmul(one(a), one(b)).dtype()),
                std::string(name_of(is_bool(common) ? i32 : common)))
          << what;
      vt_test::expect_close(one(a) * one(b), one(is_bool(common) ? i32 : common), vt_test::exact,
                            what);
    }
}

TEST(Promotion, KnownPairs) {
  EXPECT_EQ((one(i32) + one(u32)).dtype(), i64);
  EXPECT_EQ((one(i64) + one(u64)).dtype(), f64);
  EXPECT_EQ((one(i8) + one(u64)).dtype(), f64);
  EXPECT_EQ((one(i8) + one(u8)).dtype(), i16);
  EXPECT_EQ((one(u16) + one(i32)).dtype(), i32);
  EXPECT_EQ((one(f16) + one(bf16)).dtype(), f32);
  EXPECT_EQ((one(i64) + one(f16)).dtype(), f16);
  EXPECT_EQ((one(bool_) + one(bf16)).dtype(), bf16);
}

TEST(Promotion, WeakScalarsAdoptTheOtherDtype) {
  for (DType d : vt_test::all_dtypes) {
    const std::string what = name_of(d);
    EXPECT_EQ((one(d) * 2.0).dtype(), is_float(d) ? d : f32) << what;
    EXPECT_EQ((2.0 * one(d)).dtype(), is_float(d) ? d : f32) << what;
    EXPECT_EQ((one(d) * 2.0f).dtype(), is_float(d) ? d : f32) << what;
    EXPECT_EQ((one(d) + 1).dtype(), is_bool(d) ? i32 : d) << what;
    EXPECT_EQ((one(d) + std::int64_t{1}).dtype(), is_bool(d) ? i32 : d) << what;
    EXPECT_EQ((one(d) + true).dtype(), is_bool(d) ? i32 : d) << what;
    EXPECT_EQ(maximum(one(d), 0).dtype(), is_bool(d) ? i32 : d) << what;
    EXPECT_EQ(where(one(bool_), one(d), 0.5).dtype(), is_float(d) ? d : f32) << what;
    EXPECT_EQ(pow(one(d), 2).dtype(), is_bool(d) ? i32 : d) << what;
    EXPECT_EQ(pow(one(d), 2.0).dtype(), is_float(d) ? d : f32) << what;
  }
  // A strong scalar takes part like any Tensor.
  EXPECT_EQ((one(f32) * tensor(2.0)).dtype(), f64);
  EXPECT_EQ((one(i8) + tensor(std::int64_t{1})).dtype(), i64);
}

TEST(Promotion, WeakWithWeakStaysWeak) {
  const Tensor two = 2.0, three = 3;
  EXPECT_EQ((two * three).dtype(), f64);
  EXPECT_EQ((three + 4).dtype(), i32);
  EXPECT_EQ((one(f16) * (two * three)).dtype(), f16);
  EXPECT_EQ((one(f32) * exp(two)).dtype(), f32);
  EXPECT_EQ((one(f32) * sqrt(three)).dtype(), f32);
  EXPECT_EQ((one(f16) + where(one(bool_, {}), two, 1)).dtype(), f16);
  // all digits, not those of an f32
  EXPECT_EQ((one(f64) * sqrt(Tensor(2))).to_vector<double>()[0], std::sqrt(2.0));
  EXPECT_EQ((one(i32) * (two * three)).dtype(), f32);
}

TEST(Promotion, AScalarKeepsItsDtypeAfterUse) {
  // A literal is converted in place only if nobody else can see it.
  const Tensor half = 0.5;
  EXPECT_EQ((one(f32) * half).dtype(), f32);
  EXPECT_EQ((one(f16) * half).dtype(), f16);
  EXPECT_EQ((one(f64) * half).to_vector<double>()[0], 0.5);
  EXPECT_EQ(half.dtype(), f64);
  const Operand operand(0.1);
  EXPECT_EQ((one(f16) * operand).dtype(), f16);
  EXPECT_EQ((one(f64) * operand).to_vector<double>()[0], 0.1);
  Tensor moved = 0.25;
  EXPECT_EQ((one(bf16) * std::move(moved)).dtype(), bf16);
}

TEST(Promotion, NumbersStandForTheirBitsWhereOnlyTheseCount) {
  const Tensor bytes = vt::tensor({0, 1, 255}, u8), words = vt::tensor({0, 1, -1});
  EXPECT_EQ((bytes & -1).to_vector<int>(), (std::vector<int>{0, 1, 255}));
  EXPECT_EQ((bytes ^ 0xff).to_vector<int>(), (std::vector<int>{255, 254, 0}));
  EXPECT_EQ((words & 0xffffffffu).to_vector<int>(), (std::vector<int>{0, 1, -1}));
  EXPECT_EQ((bytes > 255).to_vector<int>(), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ((vt::tensor(std::vector<std::int64_t>{1}) + (1LL << 40)).item<std::int64_t>(),
            (1LL << 40) + 1);
  EXPECT_EQ((vt::tensor(std::vector<std::uint64_t>{1}) + ~0ull).item<std::uint64_t>(), 0u);
  EXPECT_EQ((words + 1e12).dtype(), f32);
}

TEST(Promotion, BracesOfMixedNumbersMeetInOneDtype) {
  const auto is = [](const Tensor& t, DType d, const std::vector<double>& values) {
    EXPECT_EQ(name_of(t.dtype()), std::string(name_of(d)));
    EXPECT_EQ(t.to_vector<double>(), values);
  };
  is(vt::tensor({1.5, 0, 2}), f64, {1.5, 0, 2});
  is(vt::tensor({1.5f, 2}), f32, {1.5, 2});
  is(vt::tensor({true, 2}), i32, {1, 2});
  is(vt::tensor({{1, 2.5}, {0, -1}}), f64, {1, 2.5, 0, -1});
  is(vt::tensor({{{1, 2.5f}}, {{0, -1}}}), f32, {1, 2.5, 0, -1});
  is(vt::tensor({{{{1, 2u}}}}), i64, {1, 2});
  is(vt::tensor({1, 2.75}, f16), f16, {1, 2.75});
  is(vt::tensor({{{1, 2}}}, f64), f64, {1, 2});
  is(vt::tensor(2.75, f16), f16, {2.75});
  is(vt::tensor(3, i8), i8, {3});
  EXPECT_EQ(vt::tensor(3, i8).shape(), Shape{});
  EXPECT_EQ((vt::tensor(3, i8) + 1).dtype(), i8);
  EXPECT_EQ(vt::tensor({{{1, 2.5}}, {{0, -1}}}).shape(), (Shape{2, 1, 2}));
  is(vt::eye(2, f64), f64, {1, 0, 0, 1});
  is(vt::arange(1, 3, f64), f64, {1, 2});
  is(vt::arange(2.5), f32, {0, 1, 2});
  is(vt::linspace(0, 1, 3, f64), f64, {0, 0.5, 1});
}

TEST(Promotion, LiteralsConvertWithoutAnEquation) {
  const Graph g = make_graph([](Tensor x) { return x * 2.0 + 1; })(one(f32));
  for (const auto& e : {std::string("convert"), std::string("broadcast")})
    EXPECT_EQ(g.str().find(e), std::string::npos) << g.str();
}

TEST(Broadcasting, EveryPairOfShapes) {
  const std::vector<Shape> shapes = {{},     {1},    {3},       {0},       {2, 3},    {2, 1},
                                     {1, 3}, {1, 1}, {4, 2, 3}, {4, 1, 1}, {4, 0, 3}, {1, 2, 1}};
  for (const Shape& a : shapes)
    for (const Shape& b : shapes) {
      // NumPy's rule, axis by axis from the right.
      const int rank = std::max(a.rank(), b.rank());
      Shape wanted = Shape::filled(rank, 1);
      bool fits = true;
      auto extent = [&](const Shape& s, int i) {
        return i - (rank - s.rank()) < 0 ? 1 : s[i - (rank - s.rank())];
      };
      for (int i = 0; i < rank; ++i) {
        const std::int64_t m = extent(a, i), n = extent(b, i);
        fits = fits && (m == n || m == 1 || n == 1);
        wanted[i] = m == 1 ? n : m;
      }
      const Tensor x = vt_test::random_quarters(f32, a, 1), y = vt_test::random_quarters(f32, b, 2);
      if (!fits) {
        vt_test::expect_error([&] { x - y; }, ErrorKind::shape,
                              {"vt::subtract", "broadcast", "f32" + a.str() + " · f32" + b.str(),
                               "ops_promotion_test.cpp"});
        continue;
      }
      const std::vector<double> p = x.to_vector<double>(), q = y.to_vector<double>();
      std::vector<double> expected(static_cast<std::size_t>(wanted.elements()));
      for (std::size_t flat = 0; flat < expected.size(); ++flat) {
        std::size_t left = flat, at_p = 0, at_q = 0, step_p = 1, step_q = 1;
        for (int i = rank; i-- > 0;) {
          const auto n = static_cast<std::size_t>(wanted[i]),
                     m = static_cast<std::size_t>(extent(a, i)),
                     k = static_cast<std::size_t>(extent(b, i));
          const std::size_t index = left % n;
          left /= n;
          if (m != 1) at_p += index * step_p;
          if (k != 1) at_q += index * step_q;
          step_p *= m;
          step_q *= k;
        }
        expected[flat] = p[at_p] - q[at_q];
      }
      vt_test::expect_close(x - y, vt_test::make_tensor(f32, wanted, expected), vt_test::exact,
                            a.str() + " - " + b.str());
      vt_test::expect_close(where(x > y, x, y), maximum(x, y), vt_test::exact,
                            "where " + a.str() + b.str());
    }
}

TEST(Operators, EachHasItsFunction) {
  const Tensor a = tensor({6, -7, 12, 0}), b = tensor({4, 2, -5, 3});
  const std::vector<std::pair<Tensor, std::vector<double>>> cases = {
      {a + b, {10, -5, 7, 3}}, {a - b, {2, -9, 17, -3}}, {a * b, {24, -14, -60, 0}},
      {a / b, {1, -3, -2, 0}}, {a % b, {2, -1, 2, 0}},   {a & b, {4, 0, 8, 0}},
      {a | b, {6, -5, -1, 3}}, {a ^ b, {2, -5, -9, 3}},  {-a, {-6, 7, -12, 0}},
      {~a, {-7, 6, -13, -1}},  {+a, {6, -7, 12, 0}},     {a << 1, {12, -14, 24, 0}},
      {a >> 1, {3, -4, 6, 0}}};
  for (std::size_t i = 0; i < cases.size(); ++i)
    vt_test::expect_close(cases[i].first, vt_test::make_tensor(i32, {4}, cases[i].second),
                          vt_test::exact, "operator " + std::to_string(i));
  const std::vector<std::pair<Tensor, std::vector<double>>> truths = {
      {a == 6, {1, 0, 0, 0}}, {a != 6, {0, 1, 1, 1}},  {a < b, {0, 1, 0, 1}},
      {a <= 0, {0, 1, 0, 1}}, {a > b, {1, 0, 1, 0}},   {0 >= a, {0, 1, 0, 1}},
      {!a, {0, 0, 0, 1}},     {!(a < b), {1, 0, 1, 0}}};
  for (std::size_t i = 0; i < truths.size(); ++i)
    vt_test::expect_close(truths[i].first, vt_test::make_tensor(bool_, {4}, truths[i].second),
                          vt_test::exact, "comparison " + std::to_string(i));
  const Tensor u = tensor({std::uint8_t{200}, std::uint8_t{3}});
  vt_test::expect_close(u >> 1, tensor({std::uint8_t{100}, std::uint8_t{1}}));
}

TEST(IntegerArithmetic, HasOneResultEverywhere) {
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min(),
                         most = std::numeric_limits<std::int32_t>::max();
  vt_test::expect_close(tensor({7, 0, least}) / tensor({0, 0, -1}), tensor({0, 0, least}));
  vt_test::expect_close(tensor({7, 0, least}) % tensor({0, 0, -1}), tensor({0, 0, 0}));
  vt_test::expect_close(floor_divide(tensor({7, least, -7}), tensor({0, -1, 0})),
                        tensor({0, least, 0}));
  vt_test::expect_close(mod(tensor({7, least, -7}), tensor({0, -1, 0})), tensor({0, 0, 0}));
  vt_test::expect_close(tensor({most, least}) + tensor({1, -1}), tensor({least, most}));
  vt_test::expect_close(pow(tensor({2, 1, -1, 0, -1}), tensor({-1, -5, -3, 0, -2})),
                        tensor({0, 1, -1, 1, 1}));
  vt_test::expect_close(pow(tensor({2, 1, -1}), -3), tensor({0, 1, -1}));
}

}  // namespace
