// Ways to make, assign, compare and read Tensors that read like plain C++.
#include <array>
#include <sstream>
#include <utility>
#include <vector>

#include "support/message.hpp"
#include "support/property.hpp"

#include <vt/fmt.hpp>

namespace {

using vt::Tensor;
using vt_test::expect_close;

TEST(TensorForms, TensorsAndNumbersInBraces) {
  const Tensor a = vt::tensor(2.0), v = vt::tensor({3.0, 4.0});
  expect_close(vt::tensor({a, v[0]}), vt::tensor({2.0, 3.0}));
  expect_close(vt::tensor({a, 1.0, v[1]}), vt::tensor({2.0, 1.0, 4.0}));
  expect_close(vt::tensor({{a, 1.0}, {0.5, v[1]}}), vt::tensor({{2.0, 1.0}, {0.5, 4.0}}));
  expect_close(vt::tensor({v, v}), vt::tensor({{3.0, 4.0}, {3.0, 4.0}}));
  const auto rotation = [](Tensor t) {
    return vt::tensor({{vt::cos(t), -vt::sin(t)}, {vt::sin(t), vt::cos(t)}});
  };
  expect_close(vt::jacfwd(rotation)(vt::tensor(0.0)), vt::tensor({{0.0, -1.0}, {1.0, 0.0}}));
  EXPECT_EQ(vt::vmap(rotation)(v).shape(), (vt::Shape{2, 2, 2}));
}

TEST(TensorForms, ContainersOfContainersAndArrays) {
  expect_close(vt::tensor(std::vector<std::vector<double>>{{1, 2, 3}, {4, 5, 6}}),
               vt::tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}));
  EXPECT_EQ(vt::tensor(std::vector<std::vector<float>>{{1, 2}}).dtype(), vt::f32);
  EXPECT_EQ(vt::tensor(std::vector<std::array<int, 2>>{{1, 2}, {3, 4}}, vt::i64).dtype(), vt::i64);
  EXPECT_EQ(vt::tensor(std::vector<std::vector<bool>>{{true}, {false}}).dtype(), vt::bool_);
  EXPECT_EQ(vt::tensor(std::vector<std::vector<std::vector<int>>>(2, {3, {1, 2, 3, 4}})).shape(),
            (vt::Shape{2, 3, 4}));
  vt_test::expect_error(
      [] { (void)vt::tensor(std::vector<std::vector<double>>{{1, 2, 3}, {4, 5}}); },
      vt::ErrorKind::shape, {"vt::tensor: the values have rows of different lengths"});
  const Tensor a = vt::tensor(1.0), b = vt::tensor(2.0);
  const std::array<Tensor, 2> array{a, b};
  const Tensor c_array[] = {a, b};
  expect_close(vt::stack(array), vt::tensor({1.0, 2.0}));
  expect_close(vt::stack(c_array), vt::tensor({1.0, 2.0}));
  expect_close(vt::stack(std::span<const Tensor>(array)), vt::tensor({1.0, 2.0}));
  expect_close(vt::concatenate(std::array{vt::tensor({1.0}), vt::tensor({2.0})}),
               vt::tensor({1.0, 2.0}));
  // Braces are a shape.
  EXPECT_EQ(vt::tensor(std::vector<double>{1.5}, {}).rank(), 0);
  EXPECT_EQ(vt::tensor(std::vector<double>{1, 2, 3, 4}, {2, 2}).rank(), 2);
}

TEST(TensorForms, CompoundAssignment) {
  const Tensor start = vt::tensor({3.0, 4.0});
  Tensor x = start;
  x += 1;
  x *= 2.0;
  x -= vt::tensor(2.0);
  x /= 2;
  expect_close(x, vt::tensor({3.0, 4.0}));
  expect_close(start, vt::tensor({3.0, 4.0}));
  Tensor n = vt::tensor({5, 6});
  n %= 4;
  n <<= 2;
  n >>= 1;
  n &= 6;
  n |= 8;
  n ^= 1;
  EXPECT_EQ(n.to_vector<int>(), (std::vector<int>{11, 13}));
  (x += 1) *= 2.0;
  expect_close(x, vt::tensor({8.0, 10.0}));
  const auto f = [](Tensor t) {
    Tensor s = t * t;
    s += t;
    s *= 2.0;
    return s;
  };
  expect_close(vt::grad(f)(vt::tensor(3.0)), vt::tensor(14.0));
  expect_close(vt::vmap(f)(start), vt::tensor({24.0, 40.0}));
  vt_test::expect_error([&] { x += vt::ones({3}); }, vt::ErrorKind::shape,
                        {"vt::add", "f64[2] · f64[3]", "tensor_forms_test.cpp:"});
}

TEST(TensorForms, TemporariesGiveValues) {
  const Tensor v = vt::tensor({1.0, 2.0});
  const Tensor& kept = (v + 1.0).eval();  // by value: it lives as long as its name
  expect_close(kept, vt::tensor({2.0, 3.0}));
  EXPECT_EQ(&v.eval(), &v);
  std::vector<std::int64_t> extents;
  for (const std::int64_t n : vt::ones({2, 3}).shape()) extents.push_back(n);
  EXPECT_EQ(extents, (std::vector<std::int64_t>{2, 3}));
  static_assert(std::is_copy_assignable_v<Tensor> && std::is_nothrow_move_assignable_v<Tensor> &&
                std::is_swappable_v<Tensor>);
}

TEST(TensorForms, TreesAreEvaluatedAtOnce) {
  const Tensor x = vt::tensor({1.0, 2.0});
  const Tensor shared = vt::sin(x);
  const auto tree = vt::eval(std::pair(shared + 1.0, std::vector<Tensor>{shared * 2.0, Tensor()}));
  vt::reset_stats();
  expect_close(tree.first, vt::sin(x) + 1.0);
  expect_close(tree.second[0], vt::sin(x) * 2.0);
  std::ostringstream out;
  out << vt::stats();
  EXPECT_EQ(out.str(), vt::stats().str());
  vt_test::expect_error(
      [] { vt::jit([](Tensor t) { return vt::eval(t * 2.0); })(vt::tensor(1.0)); },
      vt::ErrorKind::tracer, {"not known under vt::jit"});
}

TEST(TensorForms, MembersAreTheFunctionsOfTheSameNames) {
  const Tensor x = vt_test::random_tensor(vt::f64, {3, 4}, -2, 2, 5);
  // A Graph is interpreted at first and compiled then: sums may differ in their last bits.
  const vt_test::Tolerance few{.ulps = 64};
  expect_close(x.sum(), vt::sum(x), few);
  expect_close(x.sum(0, true), vt::sum(x, 0, true), few);
  expect_close(x.prod({0, 1}), vt::prod(x), few);
  expect_close(x.mean(1), vt::mean(x, 1), few);
  expect_close(x.var(0, 1, true), vt::var(x, 0, 1, true), few);
  expect_close(x.var(0, {.ddof = 1, .keepdims = true}), vt::var(x, 0, 1, true), few);
  expect_close(x.std({0, 1}, {.ddof = 1}), vt::std(x, {}, {.ddof = 1}), few);
  expect_close(vt::std(x, {1}, {.ddof = 1}), vt::std(x, 1, 1), few);
  expect_close(vt::nanvar(x, 1, {.ddof = 1}), vt::nanvar(x, 1, 1), few);
  expect_close(vt::nanstd(x, {}, {.keepdims = true}), vt::nanstd(x, {}, 0, true), few);
  expect_close(x.sum(0, {.keepdims = true}), vt::sum(x, 0, true), few);
  expect_close(x.prod(0, {.initial = 2.0}), vt::prod(x, 0, {.initial = 2.0}), few);
  expect_close(x.max({}, {.initial = 1e9}), vt::max(x, {}, {.initial = 1e9}), few);
  expect_close(x.min({0, 1}, {.initial = -1e9}), vt::min(x, {}, {.initial = -1e9}), few);
  expect_close(x.argmax(0, {.last = true}), vt::argmax(x, 0, {.last = true}));
  expect_close(x.argmin(0, {.keepdims = true}), vt::argmin(x, 0, true));
  expect_close(x.std(1, 1), vt::std(x, 1, 1), few);
  expect_close(x.max(-1), vt::max(x, -1));
  expect_close(x.min({0}, true), vt::min(x, 0, true));
  expect_close(x.argmax(1, true), vt::argmax(x, 1, true));
  expect_close(x.argmin(), vt::argmin(x));
  expect_close((x > 0.0).any(0), vt::any(x > 0.0, 0));
  expect_close((x > 0.0).all(1, true), vt::all(x > 0.0, 1, true));
  expect_close(x.abs().clip(0.5, std::nullopt), vt::maximum(vt::abs(x), 0.5));
  expect_close(x.clip(std::nullopt, x[0]), vt::minimum(x, x[0]));
  expect_close(x.T(), vt::transpose(x));
  expect_close(x.transpose({1, 0}).ravel(), vt::ravel(vt::transpose(x)));
  expect_close(vt::expand_dims(x, 0).squeeze(), x);
  expect_close(vt::expand_dims(x, {0, -1}).squeeze(0), vt::expand_dims(x, -1));
  expect_close(x.dot(x.T()), vt::matmul(x, vt::transpose(x)), few);
  expect_close(x.dot(2.0), x * 2.0);
  const Tensor z = vt::complex(x, x + 1.0);
  expect_close(z.conj().imag(), -x - 1.0);
  expect_close(z.real(), x);
  expect_close(vt::grad([](Tensor t) { return t.abs().max(1).sum(); })(x),
               vt::grad([](Tensor t) { return vt::sum(vt::max(vt::abs(t), 1)); })(x));
  expect_close(vt::vmap([](Tensor t) { return t.T().mean(); })(x), vt::mean(x, 1), few);
  vt_test::expect_error([&] { (void)x.sum(2); }, vt::ErrorKind::shape,
                        {"vt::sum", "axis 2", "f64[3,4]", "tensor_forms_test.cpp:"});
  vt_test::expect_error([&] { (void)x.T().dot(x.T()); }, vt::ErrorKind::shape,
                        {"vt::dot", "tensor_forms_test.cpp:"});
}

TEST(TensorForms, AreGoneOverAlongTheFirstAxis) {
  const Tensor x = vt::reshape(vt::arange(6), {3, 2});
  std::vector<Tensor> rows;
  for (const Tensor& row : x) rows.push_back(row);
  ASSERT_EQ(rows.size(), 3u);
  expect_close(rows[2], vt::tensor({4, 5}));
  const std::vector<Tensor> again(x.begin(), x.end());
  expect_close(vt::stack(again), x);
  for (const Tensor& row : x * 2) rows.push_back(row);  // of a temporary
  expect_close(rows[5], vt::tensor({8, 10}));
  for (const Tensor& none : vt::zeros({0, 2})) rows.push_back(none);
  EXPECT_EQ(rows.size(), 6u);
  const auto squares = vt::jit([](Tensor t) {
    Tensor sum = 0.0;
    for (const Tensor& row : t) sum += row * row;
    return sum;
  });
  expect_close(squares(x.astype(vt::f64)), vt::tensor({20.0, 35.0}));
  const auto [a, b, c] = vt::unpack<3>(x);
  expect_close(b, vt::tensor({2, 3}));
  const auto [first, second] = vt::unpack<2>(x, 1);
  expect_close(second, vt::tensor({1, 3, 5}));
  vt_test::expect_error([&] { (void)vt::unpack<2>(x); }, vt::ErrorKind::shape,
                        {"vt::unpack", "3 slices, not 2", "tensor_forms_test.cpp:"});
  vt_test::expect_error(
      [] {
        for (const Tensor& t : vt::tensor(1.0)) (void)t;
      },
      vt::ErrorKind::shape, {"a scalar has no axis", "tensor_forms_test.cpp:"});
  // It is printed and formatted as a whole all the same.
  EXPECT_EQ(testing::PrintToString(vt::tensor({1, 2})), "[1 2] i32[2]");
}

TEST(TensorForms, TextsAreWrittenAsAsked) {
  const Tensor x = vt::tensor({{3.14159265, -0.000001}, {120.5, 2.0}});
  EXPECT_EQ(x.str({.precision = 3}),
            "[[ 3.142e+00 -1.000e-06]\n [ 1.205e+02  2.000e+00]] f64[2,2]");
  EXPECT_EQ(x.str({.precision = 8, .suppress = true}),
            "[[  3.14159265  -0.000001  ]\n [120.5          2.        ]] f64[2,2]");
  EXPECT_EQ(x.str({.precision = 2, .suppress = true}),
            "[[  3.14  -0.  ]\n [120.5    2.  ]] f64[2,2]");
  {
    const vt::PrintScope few({.threshold = 5, .edge_items = 1});
    EXPECT_EQ(vt::reshape(vt::arange(12), {3, 4}).str(),
              "[[ 0 ...  3]\n ...\n [ 8 ... 11]] i32[3,4]");
    std::ostringstream out;
    out << vt::arange(10);
    EXPECT_EQ(out.str(), "[0 ... 9] i32[10]");
    const vt::PrintScope narrow({.line_width = 12});
    EXPECT_EQ(vt::arange(8).str(), "[0 1 2 3 4 5\n 6 7] i32[8]");
  }
  EXPECT_EQ(vt::arange(3).str(), "[0 1 2] i32[3]");
  EXPECT_EQ(vt::arange(3).str({.width = 4}), "[   0    1    2] i32[3]");
  EXPECT_EQ(vt::tensor(2.5).str({.precision = 0}), "2. f64[]");
  EXPECT_EQ(Tensor().str(), "Tensor<empty>");
  EXPECT_EQ(fmt::format("{:.2f}", x[1]), "[120.50   2.00] f64[2]");
  EXPECT_EQ(fmt::format("{} {} {}", vt::f32, vt::cpu(), vt::cuda(1)), "f32 cpu cuda(1)");
  EXPECT_EQ(fmt::format("{}", vt::stats()).empty(), vt::stats().str().empty());
  std::ostringstream out;
  out << vt::bf16 << " " << vt::cuda();
  EXPECT_EQ(out.str(), "bf16 cuda(0)");
  struct Layer {
    Tensor weights;
    std::vector<Tensor> shifts;
  };
  EXPECT_EQ(vt::tree_str(Layer{vt::arange(2), {vt::tensor(1.5), vt::tensor(true)}}),
            "weights: [0 1] i32[2]\nshifts[0]: 1.5 f64[]\nshifts[1]: true bool[]");
  EXPECT_EQ(vt::tree_str(vt::tensor(7)), "7 i32[]");
  // str has no line of the call: better none than one of vt's own.
  EXPECT_EQ(vt_test::message([] { (void)vt::tensor(1).str({.precision = 30}); }),
            "vt::PrintStyle: precision must be between 0 and 20, not 30");
  const auto refused = [](const vt::PrintStyle& style, const char* text) {
    vt_test::expect_error([&] { const vt::PrintScope scope(style); }, vt::ErrorKind::value,
                          {text, "; at tensor_forms_test.cpp:"});
  };
  refused({.precision = -1}, "vt::PrintStyle: precision must be between 0 and 20, not -1");
  refused({.threshold = -2}, "vt::PrintStyle: threshold must be at least 0, not -2");
  refused({.edge_items = -3}, "vt::PrintStyle: edge_items must be at least 0, not -3");
  refused({.line_width = -4}, "vt::PrintStyle: line_width must be at least 0, not -4");
  refused({.width = -5}, "vt::PrintStyle: width must be at least 0, not -5");
}

// By value, as NumPy compares: a number that the dtype does not hold is beyond all of its elements.
TEST(TensorForms, ComparisonsGoByValue) {
  const auto all = [](const Tensor& t) { return vt::all(t).item<bool>(); };
  const auto none = [](const Tensor& t) { return !vt::any(t).item<bool>(); };
  for (const vt::DType d : {vt::i8, vt::u8, vt::i16, vt::u16, vt::i32, vt::u32}) {
    const Tensor x = vt::tensor({0, 1, 100}).astype(d);
    for (const auto& big : {Tensor(3000000000000LL), Tensor(~0ull)}) {
      EXPECT_TRUE(all(x < big) && all(x <= big) && all(x != big) && all(big > x) && all(big >= x));
      EXPECT_TRUE(none(x > big) && none(x >= big) && none(x == big) && none(big < x) &&
                  none(big <= x));
    }
    const long long small = -3000000000000LL;
    EXPECT_TRUE(all(x > small) && all(x >= small) && all(x != small) && all(small < x) &&
                all(small <= x));
    EXPECT_TRUE(none(x < small) && none(x <= small) && none(x == small) && none(small > x) &&
                none(small >= x));
    EXPECT_TRUE(all(vt::vmap([=](Tensor t) { return t > small; })(x)) &&
                all(vt::jit([=](Tensor t) { return t > small; })(x)));
  }
  const Tensor u = vt::tensor({0ull, (1ull << 53) + 1, ~0ull}),
               s = vt::tensor({-1LL, (1LL << 53), std::int64_t{-1}});
  EXPECT_TRUE(all(u > s) && all(u >= s) && all(s < u) && all(s <= u) && all(u != s) &&
              none(u == s) && none(u < s) && none(s >= u));
  EXPECT_TRUE(all(u > -1) && none(u == -1) && all(s < ~0ull));
  EXPECT_TRUE(all(vt::tensor({5LL}) == vt::tensor({5ull})) &&
              all(vt::tensor({5LL}) <= vt::tensor({5ull})));
  // All ones in what works on bits alone.
  EXPECT_EQ((vt::tensor({1, 255}).astype(vt::u8) & -1).to_vector<int>(),
            (std::vector<int>{1, 255}));
}

}  // namespace
