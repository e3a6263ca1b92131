// The functions on order: what NumPy's cases do not say: descending order, several operands, top_k,
// derivatives, fixed sizes under transforms, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using namespace vt;
using vt_test::expect_close;
using vt_test::message;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<int> ints(const Tensor& t) { return t.to_vector<int>(); }

// Written down from jax 0.10.2.
TEST(Order, SameAsJax) {
  const Tensor x = tensor({nan, 3.0, 1.0, -0.0, 0.0, 1.0, nan, -2.0});
  EXPECT_EQ(ints(argsort(x)), (std::vector<int>{7, 3, 4, 2, 5, 1, 0, 6}));
  EXPECT_EQ(ints(argsort(x, -1, {.descending = true})), (std::vector<int>{0, 6, 1, 2, 5, 3, 4, 7}));
  expect_close(sort(x, 0, {.descending = true}),
               tensor({nan, nan, 3.0, 1.0, 1.0, -0.0, 0.0, -2.0}));
  const auto [values, index] = top_k(x, 4);
  expect_close(values, tensor({nan, nan, 3.0, 1.0}));
  EXPECT_EQ(ints(index), (std::vector<int>{0, 6, 1, 2}));
  const UniqueResult some = unique_all(x, {.size = 7}), few = unique_all(x, {.size = 3}),
                     apart = unique_all(x, {.equal_nan = false});
  expect_close(some.values, tensor({-2.0, 0.0, 1.0, 3.0, nan, -2.0, -2.0}));
  EXPECT_EQ(ints(some.index), (std::vector<int>{7, 3, 2, 1, 0, 7, 7}));
  EXPECT_EQ(ints(some.inverse), (std::vector<int>{4, 3, 2, 1, 1, 2, 4, 0}));
  EXPECT_EQ(ints(some.counts), (std::vector<int>{1, 2, 2, 1, 2, 0, 0}));
  expect_close(unique(x, {.size = 7, .fill_value = 9}),
               tensor({-2.0, 0.0, 1.0, 3.0, nan, 9.0, 9.0}));
  EXPECT_EQ(ints(few.counts), (std::vector<int>{1, 2, 2}));
  EXPECT_EQ(apart.values.size(), 6);
  EXPECT_EQ(ints(apart.inverse), (std::vector<int>{4, 3, 2, 1, 1, 2, 5, 0}));
}

TEST(Order, ComplexNaNsAreOneValue) {
  using Complex = std::complex<double>;
  const Tensor x =
      tensor(std::vector<Complex>{{1, 0}, {nan, 0}, {2, 1}, {0, nan}, {nan, nan}, {1, 0}}, {6});
  EXPECT_EQ(unique(x).size(), 3);
  EXPECT_EQ(ints(unique_all(x).counts), (std::vector<int>{2, 1, 3}));
  EXPECT_EQ(unique(x, {.equal_nan = false}).size(), 5);
}

TEST(Order, SeveralOperandsAndKeys) {
  const Tensor a = tensor({1, 0, 1, 0}), b = tensor({2.0f, 5.0f, 1.0f, 4.0f}), c = arange(4);
  const auto by_one = sort({a, b, c}, 0), by_two = sort({a, b, c}, 0, 2),
             backwards = sort({a, b, c}, -1, 2, {.descending = true});
  EXPECT_EQ(ints(by_one[2]), (std::vector<int>{1, 3, 0, 2}));
  EXPECT_EQ(ints(by_two[2]), (std::vector<int>{3, 1, 2, 0}));
  EXPECT_EQ(ints(backwards[2]), (std::vector<int>{0, 2, 1, 3}));
}

TEST(Order, ArgsortReadsWhatSortGives) {
  for (DType d : {bool_, u8, i64, f16, f32})
    for (const Shape& shape : {Shape{7}, Shape{4, 1, 5}, Shape{0, 3}, Shape{3, 0}})
      for (int axis = 0; axis < shape.rank(); ++axis)
        for (bool descending : {false, true}) {
          const Tensor x = vt_test::random_tensor(d, shape, -3, 3, 7);
          expect_close(sort(x, axis, {.descending = descending}),
                       x.size() == 0 ? x
                                     : take_along_axis(
                                           x, argsort(x, axis, {.descending = descending}), axis));
        }
}

TEST(Order, IndicesWithoutNaNNameANumber) {
  const double inf = std::numeric_limits<double>::infinity(), none = std::nan("");
  // NumPy gives 0 for both rows, which is a NaN's place.
  const Tensor x = tensor({{none, -inf, -inf}, {none, inf, inf}});
  expect_close(nanargmax(x, 1), tensor({1, 1}));
  expect_close(nanargmin(x, 1), tensor({1, 1}));
  expect_close(nanargmax(tensor({none, none})), tensor(-1));
  expect_close(nanargmax(tensor({none, 1.0, 3.0, 3.0})), tensor(2));
}

TEST(Order, TopKEqualsTheSort) {
  const Tensor x = vt_test::random_tensor(i32, {3, 2000}, -300, 300, 5);
  for (std::int64_t k : {0, 1, 5, 130, 1999, 2000}) {
    const auto [values, index] = top_k(x, k);
    expect_close(values, slice_in_dim(sort(x, 1, {.descending = true}), 0, k, 1));
    expect_close(index, slice_in_dim(argsort(x, 1, {.descending = true}), 0, k, 1));
    const auto [columns, rows] = top_k(transpose(x), k, 0);
    expect_close(transpose(columns), values);
    expect_close(transpose(rows), index);
  }
}

TEST(Order, Derivatives) {
  const Tensor x = tensor({3.0, 1.0, 2.0}), w = tensor({10.0, 20.0, 30.0});
  expect_close(grad([&](Tensor t) { return sum(sort(t) * w); })(x), tensor({30.0, 10.0, 20.0}));
  expect_close(grad([&](Tensor t) { return sum(sort(t, 0, {.descending = true}) * w); })(x),
               tensor({10.0, 30.0, 20.0}));
  expect_close(grad([](Tensor t) { return sum(top_k(t, 2).first); })(x), tensor({1.0, 0.0, 1.0}));
  expect_close(grad([](Tensor t) { return median(t); })(x), tensor({0.0, 0.0, 1.0}));
  expect_close(grad([](Tensor t) { return quantile(t, 0.25); })(x), tensor({0.0, 0.5, 0.5}));
  expect_close(grad([&](Tensor q) { return sum(quantile(x, q)); })(tensor(0.3)), tensor(2.0));
  expect_close(hessian([](Tensor t) { return sum(square(sort(t)) * arange(3, f64)); })(x),
               matrix_diag(tensor({4.0, 0.0, 2.0})));
  expect_close(grad([&](Tensor t) { return sum(unique(t, {.size = 2}) * tensor({5.0, 7.0})); })(x),
               tensor({0.0, 5.0, 7.0}));
  // What is sorted by integers carries its tangents along.
  const Tensor keys = tensor({2, 0, 1});
  expect_close(grad([&](Tensor t) { return sum(sort({keys, t}, 0)[1] * w); })(x),
               tensor({30.0, 10.0, 20.0}));
}

TEST(Order, SearchOfNaNEndsWhereASortPutsIt) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor few = tensor({1.0, 2.0, nan, nan}), values = tensor({nan, inf, 2.0, -inf});
  const Tensor many = concatenate({arange(100.0, f64), few[slice(2, 4)]});  // by bisection
  for (const auto& [sorted, numbers, two] : {std::tuple(few, 2, 1), std::tuple(many, 100, 2)}) {
    EXPECT_EQ(searchsorted(sorted, values).to_vector<int>(),
              (std::vector<int>{numbers, numbers, two, 0}));
    EXPECT_EQ(searchsorted(sorted, values, true).to_vector<int>(),
              (std::vector<int>{numbers + 2, numbers, two + 1, 0}));
    EXPECT_EQ(bucketize(values, sorted.astype(f32), true).to_vector<int>(),
              (std::vector<int>{numbers + 2, numbers, two + 1, 0}));
  }
}

// By real and then by imaginary parts, as NumPy; NaN in either behind the numbers.
TEST(Order, SearchOfComplexNumbers) {
  using C = std::complex<double>;
  const Tensor sorted = tensor({C(1, 0), C(1, 2), C(1, 2), C(2, -1), C(nan, 0)}),
               values = tensor({C(1, 2), C(1, 1), C(2, nan), C(nan, 1), C(0, 9)});
  EXPECT_EQ(ints(searchsorted(sorted, values)), (std::vector<int>{1, 1, 4, 5, 0}));
  EXPECT_EQ(ints(searchsorted(sorted, values, true)), (std::vector<int>{3, 1, 4, 5, 0}));
  const Tensor many =
      sort(complex(random::normal(random::key(1), {200}), random::normal(random::key(2), {200})));
  EXPECT_EQ(ints(searchsorted(many, many)), ints(arange(200)));
}

TEST(Order, QuantilesOfInfinitiesAndNaN) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = tensor({-inf, 1.0, 2.0, inf});
  EXPECT_EQ(quantile(x, 0.0).item<double>(), -inf);
  EXPECT_EQ(quantile(x, 1.0).item<double>(), inf);
  expect_close(quantile(x, tensor({0.0, 1.0 / 3, 0.5, 1.0})), tensor({-inf, 1.0, 1.5, inf}),
               {.ulps = 4});
  EXPECT_TRUE(std::isnan(quantile(tensor({1.0, nan}), 0.0).item<double>()));
  EXPECT_TRUE(std::isnan(quantile(tensor({1.0, nan}), tensor({0.0})).to_vector<double>()[0]));
  EXPECT_TRUE(std::isnan(quantile(x, tensor(nan)).item<double>()));
  EXPECT_TRUE(std::isnan(nanmedian(tensor({nan, nan})).item<double>()));
  // What is no quantile has no value, instead of the nearest end's.
  expect_close(percentile(tensor({1.0, 2.0, 3.0}), tensor({-1.0, 0.0, 100.0, 101.0})),
               tensor({nan, 1.0, 3.0, nan}));
  // Places beyond the 11 bits of f16 are found all the same: 44999.25 of 0 … 59999.
  EXPECT_EQ(quantile(where(arange(60000) < 45000, 0.0, 1.0).astype(f16), 0.75).item<float>(),
            0.25f);
  EXPECT_EQ(quantile(ones({3}, f16), 0.5).dtype(), f16);
}

TEST(Order, FixedSizesUnderTransforms) {
  const Tensor x = vt_test::random_tensor(i32, {4, 6}, -2, 2, 3);
  const auto distinct = [](Tensor row) { return unique_all(row, {.size = 4, .fill_value = -9}); };
  const auto all = [&](Tensor row) {
    const UniqueResult u = distinct(row);
    return std::tuple(u.values, u.index, u.inverse, u.counts);
  };
  const auto mapped = jit(vmap(all))(x);
  for (std::int64_t i = 0; i < 4; ++i) {
    const UniqueResult one = distinct(x[i]);
    expect_close(std::get<0>(mapped)[i], one.values);
    expect_close(std::get<1>(mapped)[i], one.index);
    expect_close(std::get<2>(mapped)[i], one.inverse);
    expect_close(std::get<3>(mapped)[i], one.counts);
  }
  EXPECT_EQ(unique(zeros({0})).shape(), Shape{0});
  EXPECT_EQ(unique_all(zeros({2, 0}), {.size = 3}).inverse.shape(), (Shape{2, 0}));
  EXPECT_EQ(ints(nonzero(tensor({0, 3, 0, 4}))[0]), (std::vector<int>{1, 3}));
  // Under grad values are known.
  expect_close(grad([](Tensor t) { return sum(unique(t)); })(tensor({2.0, 2.0, 1.0})),
               tensor({1.0, 0.0, 1.0}));
}

TEST(Order, Refusals) {
  const Tensor x = ones({2, 3});
  const auto starts = [](const std::string& text, const std::string& with) {
    return text.starts_with(with) && text.find("; at ops_order_test.cpp:") != std::string::npos;
  };
  const auto refused = [&](const std::string& with, const std::function<void()>& f) {
    EXPECT_TRUE(starts(message(f), with)) << message(f);
  };
  refused("vt::sort: axis 2 out of range for rank 2: f32[2,3]", [&] { (void)sort(x, 2); });
  refused("vt::sort: operands differ in shape: f32[2,3] · f32[3]",
          [&] { (void)sort({x, ones({3})}); });
  refused("vt::sort: the number of keys must be between 1 and 1, not 2: f32[2,3]",
          [&] { (void)sort({x}, 0, 2); });
  refused("vt::sort: needs at least one operand", [&] { (void)sort(std::vector<Tensor>{}); });
  refused("vt::lexsort: the keys differ in shape: f32[2,3] · f32[3]",
          [&] { (void)lexsort({x, ones({3})}); });
  refused("vt::top_k: cannot give 4 elements of an axis of 3: f32[2,3]",
          [&] { (void)top_k(x, 4); });
  refused("vt::partition: there is no place 3 on an axis of 3: f32[2,3]",
          [&] { (void)partition(x, 3); });
  refused("vt::quantile: 1.5 is not between 0 and 1: f32[2,3]", [&] { (void)quantile(x, 1.5); });
  refused("vt::quantile: the quantiles must be a scalar or a vector: f32[2,3] · f32[1,1]",
          [&] { (void)quantile(x, ones({1, 1})); });
  refused("vt::median: no elements to choose from: f32[0,3]", [&] { (void)median(ones({0, 3})); });
  refused("vt::unique: cannot give -1 values: f32[2,3]", [&] { (void)unique(x, {.size = -1}); });
  refused(
      "vt::unique: the shape of the result depends on values, which are not known while a function "
      "is recorded; give it a size, as in {.size = 8}",
      [&] { jit([](Tensor t) { return unique(t); })(x); });
  refused(
      "vt::nonzero: the shape of the result depends on values, which are not known while a "
      "function is recorded; give it a size, as in vt::nonzero(x, 8)",
      [&] { vmap([](Tensor t) { return nonzero(t)[0]; })(x); });
  refused(
      "vt::repeat: the shape of the result depends on values, which are not known while a "
      "function is recorded; give it a size, as in vt::repeat(x, counts, 1, 8)",
      [&] { jit([&](Tensor n) { return repeat(x, n, 1); })(arange(3)); });
  refused(
      "vt::repeat: the shape of the result depends on values, which are not known while a "
      "function is recorded; give it a size, as in vt::repeat(x, counts, std::nullopt, 8)",
      [&] { jit([&](Tensor n) { return repeat(x, n); })(tensor(2)); });
  // What they say to write.
  const Tensor counts = tensor(2);
  EXPECT_EQ(vt::nonzero(x, 8)[0].shape(), Shape{8});
  EXPECT_EQ(vt::repeat(x, counts, 1, 8).shape(), (Shape{2, 8}));
  EXPECT_EQ(vt::repeat(x, counts, std::nullopt, 8).shape(), Shape{8});
}

}  // namespace
