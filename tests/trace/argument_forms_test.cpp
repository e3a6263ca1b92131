// What may stand for a number, a list and a dtype in calls: bools are no numbers, lists are lists
// however they are held, and integers that a dtype cannot hold are errors that name them.
#include <array>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using vt_test::expect_error;

enum Direction { across, along };
constexpr long long big = 3000000000LL;

TEST(ArgumentForms, NumbersOfEveryTypeButBool) {
  const Tensor u = vt::tensor({{1.0, 2.0}, {3.0, 4.0}}), columns = vt::tensor({4.0, 6.0});
  const std::size_t size = 0;
  const std::int64_t wide = 0;
  const unsigned short narrow = 0;
  expect_close(vt::sum(u, size), columns);
  expect_close(vt::sum(u, wide), columns);
  expect_close(vt::sum(u, narrow), columns);
  expect_close(vt::sum(u, across), columns);
  expect_close(vt::sum(u, {wide, along}), vt::tensor(10.0));
  expect_close(vt::cumsum(u, size, {.reverse = true}), vt::cumsum(u, 0, {.reverse = true}));
  expect_close(vt::cumsum(u, along), vt::cumsum(u, -1));
  expect_close(vt::sort(u, narrow), u);
  EXPECT_EQ(vt::zeros({size + 2, 3, wide}).shape(), (vt::Shape{2, 3, 0}));
  EXPECT_EQ(vt::eye(size + 2).shape(), (vt::Shape{2, 2}));
  EXPECT_EQ(vt::random::key(wide + 7).item<std::uint64_t>(), 7u);
  EXPECT_EQ(vt::random::permutation(vt::random::key(1), size + 4).dim(0), 4);
  expect_close(vt::norm(columns, 1, 0), vt::tensor(10.0));
  expect_close(vt::norm(columns, std::numeric_limits<double>::infinity(), 0), vt::tensor(6.0));
  expect_close(vt::linalg::norm(columns, 1, size, true), vt::tensor({10.0}));
  const vt::ScanOptions options{.unroll = size + 1};
  EXPECT_EQ(options.unroll, 1);
  // No axis is taken for another because its number is cut.
  expect_error([&] { (void)vt::cumsum(u, std::int64_t{1} << 32); }, vt::ErrorKind::shape,
               {"vt::cumsum", "out of range"});
  expect_error([&] { (void)vt::sum(u, std::size_t{1} << 32); }, vt::ErrorKind::shape,
               {"vt::sum", "out of range"});
}

TEST(ArgumentForms, ListsOfTensors) {
  const Tensor a = vt::tensor({3.0, 1.0, 2.0}), b = vt::tensor({1.0, 1.0, 0.0});
  const std::vector<Tensor> vector{a, b};
  const std::array<Tensor, 2> array{a, b};
  const Tensor c_array[] = {a, b};
  const auto every = [&](const auto& f) {
    const auto expected = f(vector);
    EXPECT_TRUE(vt::all(f(array) == expected).template item<bool>());
    EXPECT_TRUE(vt::all(f(c_array) == expected).template item<bool>());
    EXPECT_TRUE(vt::all(f(std::span<const Tensor>(vector)) == expected).template item<bool>());
    return expected;
  };
  expect_close(every([](const auto& list) { return vt::stack(list); }), vt::stack({a, b}));
  expect_close(every([](const auto& list) { return vt::concatenate(list); }),
               vt::concatenate({a, b}));
  expect_close(every([](const auto& list) { return vt::lexsort(list); }), vt::lexsort({a, b}));
  expect_close(every([](const auto& list) { return vt::sort(list)[1]; }), vt::sort({a, b})[1]);
  expect_close(every([](const auto& list) { return vt::meshgrid(list)[0]; }),
               vt::meshgrid({a, b})[0]);
  expect_close(every([](const auto& list) { return vt::einsum("i,i->", list); }),
               vt::einsum("i,i->", {a, b}));
  expect_close(every([](const auto& list) { return vt::linalg::multi_dot(list); }),
               vt::linalg::multi_dot({a, b}));
  expect_close(vt::stack({vt::sum(a), 1.0}), vt::tensor({6.0, 1.0}));
  const std::array<Tensor, 1> start{Tensor(1)};
  expect_close(vt::dynamic_slice(a, start, {2}), vt::dynamic_slice(a, {1}, {2}));
  expect_close(vt::dynamic_update_slice(a, vt::tensor({9.0}), start), vt::tensor({3.0, 9.0, 2.0}));
}

TEST(ArgumentForms, ContainersOfNumbers) {
  const Tensor expected = vt::tensor({1.5, 2.5, 3.5});
  const std::vector<double> vector{1.5, 2.5, 3.5};
  const std::array<double, 3> array{1.5, 2.5, 3.5};
  const double c_array[] = {1.5, 2.5, 3.5};
  expect_close(vt::tensor(vector), expected);
  expect_close(vt::tensor(array), expected);
  expect_close(vt::tensor(c_array), expected);
  expect_close(vt::tensor(std::span<const double>(vector)), expected);
  EXPECT_EQ(vt::tensor(vector, vt::f32).dtype(), vt::f32);
  EXPECT_EQ(vt::tensor(array, vt::f16).dtype(), vt::f16);
  EXPECT_EQ(vt::tensor(array, {3, 1}).shape(), (vt::Shape{3, 1}));
  EXPECT_EQ(vt::tensor(c_array, vt::Shape{1, 3}).shape(), (vt::Shape{1, 3}));
  const int matrix[2][2] = {{1, 2}, {3, 4}};
  EXPECT_TRUE(vt::all(vt::tensor(matrix) == vt::tensor({{1, 2}, {3, 4}})).item<bool>());
  EXPECT_EQ(vt::tensor(std::vector<bool>{true, false}).dtype(), vt::bool_);
  EXPECT_EQ(vt::tensor(std::vector<bool>{true, false}, {2, 1}).shape(), (vt::Shape{2, 1}));
  EXPECT_EQ(vt::tensor(vt::ones({2, 3}).shape()).to_vector<int>(), (std::vector<int>{2, 3}));
  const std::vector<std::array<Tensor, 2>> rows{{vt::tensor(1.0), 2.0}, {3.0, vt::tensor(4.0)}};
  expect_close(vt::tensor(rows), vt::tensor({{1.0, 2.0}, {3.0, 4.0}}));
  expect_error([] { (void)vt::tensor({vt::tensor(1.0), Tensor()}); }, vt::ErrorKind::value,
               {"empty Tensor"});
  expect_error([&] { (void)vt::tensor(array, {2, 2}); }, vt::ErrorKind::shape,
               {"3 values do not fill shape [2,2]"});
}

TEST(ArgumentForms, BracesSplitAtIndices) {
  const Tensor x = vt::arange(6);
  EXPECT_EQ(vt::split(x, 2)[0].dim(0), 3);
  EXPECT_EQ(vt::split(x, {2})[0].dim(0), 2);  // NumPy's split(x, [2])
  EXPECT_EQ(vt::split(x, {2})[1].dim(0), 4);
  EXPECT_EQ(vt::split(x, {1, 3}).size(), 3u);
  const auto same = [](const Tensor& a, const Tensor& b) { return vt::all(a == b).item<bool>(); };
  EXPECT_TRUE(same(vt::roll(x, {1}, {0}), vt::roll(x, 1)));
  EXPECT_TRUE(
      same(vt::roll(vt::reshape(x, {2, 3}), {1, 1}, {0, 1}), vt::tensor({{5, 3, 4}, {2, 0, 1}})));
}

TEST(ArgumentForms, SeveralTreesAreEvaluatedAtOnce) {
  const Tensor x = vt::tensor({1.0, 2.0}), shared = vt::sin(x);
  const auto [a, b, c] = vt::eval(shared + 1.0, std::pair(shared * 2.0, 3), shared);
  expect_close(a, vt::sin(x) + 1.0);
  expect_close(b.first, vt::sin(x) * 2.0);
  EXPECT_EQ(b.second, 3);
  expect_close(c, vt::sin(x));
}

TEST(ArgumentForms, BracesAreDefaultOptions) {
  const auto f = [](Tensor x) { return vt::sum(x * x); };
  const Tensor x = vt::tensor({1.0, 2.0});
  expect_close(vt::jit(f, {})(x), f(x));
  expect_close(vt::grad(f, {})(x), 2.0 * x);
  expect_close(vt::value_and_grad(f, {}).operator()(x).first, f(x));
  expect_close(
      vt::grad([](Tensor v) { return std::pair(vt::sum(v * v), 1); }, vt::has_aux, {})(x).first,
      2.0 * x);
  expect_close(vt::vmap(f, {})(x), x * x);
  expect_close(vt::jacobian([](Tensor v) { return v * v; }, {})(x), vt::diag(2.0 * x));
  const auto product = [](Tensor a, Tensor b) { return a * b; };
  expect_close(vt::vmap(product, {.in_axes = {0, vt::unmapped}})(x, vt::tensor(3.0)), 3.0 * x);
  expect_close(vt::vmap(product, {{0, vt::unmapped}})(x, vt::tensor(3.0)), 3.0 * x);
  EXPECT_EQ(vt::tensor(2.5, {}).rank(), 0);
  EXPECT_EQ(vt::tensor(2.5, {}).dtype(), vt::f64);
}

TEST(ArgumentForms, AccessorsOfTemporariesGiveValues) {
  const Tensor w = vt::tensor({1.0, 2.0});
  const auto f = [w](Tensor x) { return x * w; };
  std::size_t count = 0;
  for (const Tensor& t : vt::make_graph(f)(w).captured())
    count += static_cast<std::size_t>(t.size());
  EXPECT_EQ(count, vt::make_graph(f)(w).captured().size() * 2);
  const std::string& name = vt::Variable(w, "weights").name();
  EXPECT_EQ(name, "weights");
  const vt::Shape& shape = vt::Variable(w).shape();
  EXPECT_EQ(shape, (vt::Shape{2}));
}

// --- integers and the dtypes that they meet ------------------------------------------------------

template <class F>
void expect_misfit(const F& f, const char* op, const char* number, const char* dtype) {
  expect_error([&] { vt::eval(f()); }, vt::ErrorKind::dtype,
               {op, number, "does not fit", dtype, "argument_forms_test.cpp:"});
}

TEST(IntegersOutOfRange, InWhatIsMade) {
  expect_misfit([] { return vt::tensor({1, 300}, vt::u8); }, "vt::tensor", "300", "u8");
  expect_misfit([] { return vt::tensor({-1}, vt::u8); }, "vt::tensor", "-1", "u8");
  expect_misfit([] { return vt::tensor(300, vt::i8); }, "vt::tensor", "300", "i8");
  expect_misfit([] { return vt::tensor(big, vt::i32); }, "vt::tensor", "3000000000", "i32");
  expect_misfit([] { return vt::tensor({1LL, big, 2}, vt::i32); }, "vt::tensor", "3000000000",
                "i32");
  expect_misfit([] { return vt::tensor({{1ull}, {~0ull}}, vt::i64); }, "vt::tensor",
                "18446744073709551615", "i64");
  expect_misfit([] { return vt::tensor(std::vector<int>{300}, vt::u8); }, "vt::tensor", "300",
                "u8");
  expect_misfit([] { return vt::tensor(std::vector<std::vector<int>>{{300}}, vt::u8); },
                "vt::tensor", "300", "u8");
  expect_misfit([] { return vt::arange(257, vt::u8); }, "vt::arange", "256", "u8");
  expect_misfit([] { return vt::arange(-1, 3, vt::u8); }, "vt::arange", "-1", "u8");
  expect_misfit([] { return vt::arange(0, 400, 100, vt::u8); }, "vt::arange", "300", "u8");
  expect_misfit([] { return vt::arange(0.0, 400.0, 100.0, vt::u8); }, "vt::arange", "300", "u8");
  expect_misfit([] { return vt::full({2}, 300, vt::u8); }, "vt::full", "300", "u8");
  EXPECT_EQ(vt::arange(256, vt::u8).to_vector<int>().back(), 255);
  EXPECT_EQ(vt::arange(127, -129, -1, vt::i8).to_vector<int>().back(), -128);
  EXPECT_EQ(vt::tensor({0, 255}, vt::u8).to_vector<int>(), (std::vector<int>{0, 255}));
  EXPECT_EQ(vt::tensor({-128, 127}, vt::i8).to_vector<int>(), (std::vector<int>{-128, 127}));
  // astype converts as it always does.
  EXPECT_EQ(vt::tensor({300}).astype(vt::u8).item<int>(), 44);
}

TEST(IntegersOutOfRange, InWhatTheyMeet) {
  const Tensor i = vt::tensor({1, 2, 3}), u = i.astype(vt::u8);
  expect_misfit([&] { return vt::unique(u, {.size = 5, .fill_value = 300}); }, "vt::unique", "300",
                "u8");
  expect_misfit([&] { return vt::polyval(u, 300); }, "vt::polyval", "300", "u8");
  expect_misfit([&] { return vt::outer(u, 300); }, "vt::", "300", "u8");
  expect_misfit([&] { return vt::tensordot(u, 300, 0); }, "vt::tensordot", "300", "u8");
  expect_misfit([&] { return vt::einsum("i,->i", u, 300); }, "vt::einsum", "300", "u8");
  expect_misfit([&] { return vt::where(u > 1, u, 300); }, "vt::where", "300", "u8");
  expect_misfit([&] { return vt::clip(u, 0, 300); }, "vt::clip", "300", "u8");
  expect_misfit([&] { return vt::pad(i, {{1, 1}}, big); }, "vt::pad", "3000000000", "i32");
  expect_misfit([&] { return vt::index_update(u, vt::tensor({1}), -1); }, "vt::index_update", "-1",
                "u8");
  const vt::Variable state(u);
  expect_misfit([&] { return state.assign_add(300), u; }, "vt::Variable::assign_add", "300", "u8");
  expect_misfit([&] { return state.assign(-1), u; }, "vt::Variable::assign", "-1", "u8");
  vt::TensorList list = vt::TensorList::fixed(2, {}, vt::u8);
  expect_misfit([&] { return list.push(300), u; }, "vt::TensorList::push", "300", "u8");
  expect_misfit([&] { return list.write(0, -1), u; }, "vt::TensorList::write", "-1", "u8");
}

TEST(IntegersOutOfRange, InBranchesAndLoops) {
  const Tensor i = vt::tensor({1, 2, 3}), one = vt::tensor(1);
  const Tensor yes = vt::tensor(true);
  expect_misfit([&] { return vt::cond(yes, [] { return big; }, [&] { return one; }); }, "vt::cond",
                "3000000000", "i32");
  expect_misfit([&] { return vt::cond(yes, [&] { return one; }, [] { return Tensor(big); }); },
                "vt::cond", "3000000000", "i32");
  expect_misfit(
      [&] {
        return vt::switch_(one, std::tuple([&] { return one; }, [] { return Tensor(-big); }));
      },
      "vt::switch_", "-3000000000", "i32");
  expect_misfit(
      [&] {
        return vt::while_loop([](Tensor n) { return n < 5; }, [&](Tensor n) { return n + one; },
                              big);
      },
      "vt::while_loop", "3000000000", "i32");
  expect_misfit(
      [&] {
        return vt::while_loop([](Tensor n) { return n < 5; }, [](Tensor) { return big; }, one);
      },
      "vt::while_loop", "3000000000", "i32");
  expect_misfit([&] { return vt::fori_loop(0, 3, [](Tensor k, Tensor c) { return c + k; }, big); },
                "vt::fori_loop", "3000000000", "i32");
  expect_misfit(
      [&] {
        return vt::scan([](Tensor c, Tensor x) { return std::pair(c + x, c); }, big, i).first;
      },
      "vt::scan", "3000000000", "i32");
  expect_misfit([&] { return vt::associative_scan([](Tensor, Tensor) { return Tensor(big); }, i); },
                "vt::associative_scan", "3000000000", "i32");
  const auto pick = [](Tensor x) { return vt::cond(x > 1, [&] { return x; }, [] { return big; }); };
  expect_misfit([&] { return vt::jit(pick)(one); }, "vt::cond", "3000000000", "i32");
  expect_misfit([&] { return vt::vmap(pick)(i); }, "vt::cond", "3000000000", "i32");
  // What fits does, and numbers alone keep their own dtype.
  EXPECT_EQ(vt::associative_scan([](Tensor, Tensor) { return 7; }, i).to_vector<int>(),
            (std::vector<int>{1, 7, 7}));
  EXPECT_EQ(vt::cond(yes, [] { return 7; }, [&] { return one; }).dtype(), vt::i32);
  EXPECT_EQ(vt::cond(yes, [] { return big; }, [] { return 1; }).item<std::int64_t>(), big);
  EXPECT_EQ(vt::fori_loop(
                0, 2, [](Tensor, Tensor c) { return c + 1; }, big)
                .item<std::int64_t>(),
            big + 2);
}

TEST(IntegersOutOfRange, ComparedByValue) {
  const Tensor u = vt::tensor({1, 44, 255}, vt::u8);
  EXPECT_FALSE(vt::any(vt::isclose(u, 300)).item<bool>());
  EXPECT_FALSE(vt::any(vt::isclose(u, -1)).item<bool>());
  EXPECT_FALSE(vt::allclose(u, 300).item<bool>());
  EXPECT_FALSE(vt::any(vt::equal(u, 300)).item<bool>());
  EXPECT_TRUE(vt::isclose(u, 256, 0.0, 1.0)[2].item<bool>());
}

// --- numbers that a function returns -------------------------------------------------------------

TEST(ReturnedNumbers, OfJitAreThoseOfTheCall) {
  int traces = 0;
  const auto f = vt::jit([&](Tensor x, double s) {
    ++traces;
    return std::tuple(x * s, 2.0 * s, x.dim(0));
  });
  const Tensor two = vt::ones({2}), three = vt::ones({3});
  for (int iteration = 0; iteration < 2; ++iteration) {
    EXPECT_EQ(std::get<1>(f(two, 1.5)), 3.0);
    EXPECT_EQ(std::get<1>(f(two, 2.5)), 5.0);  // another static value, another program
    EXPECT_EQ(std::get<2>(f(two, 1.5)), 2);
    EXPECT_EQ(std::get<2>(f(three, 1.5)), 3);  // another shape
  }
  EXPECT_EQ(traces, 3);
  const auto bare = vt::jit([](double s) { return 2.0 * s; });
  EXPECT_EQ(bare(1.5), 3.0);
  EXPECT_EQ(bare(2.5), 5.0);
  EXPECT_TRUE(std::signbit(vt::jit([](double s) { return s; })(-0.0)));
  // A number given for a Tensor is no static value: no number can be computed from it.
  const auto same = vt::jit([](Tensor x) { return x; });
  EXPECT_EQ(same(1.5).item<double>(), 1.5);
  EXPECT_EQ(same(2.5).item<double>(), 2.5);
  expect_error([] { vt::jit([](Tensor x) { return x.item<double>(); })(1.5); },
               vt::ErrorKind::tracer, {"vt::jit"});
  const auto named = vt::function("twice", [](Tensor x, int n) { return std::pair(x * n, 2 * n); });
  EXPECT_EQ(named(two, 3).second, 6);
  EXPECT_EQ(named(two, 4).second, 8);
}

// A bare integer of a call is known when it runs: what it means beside a narrower dtype is as it is
// without jit.
TEST(NumbersOfCalls, MeanWhatTheyMeanWithoutJit) {
  const Tensor u = vt::tensor({1, 2, 250}, vt::u8), i = vt::tensor({1, 2, 2000000000});
  const Tensor n = vt::tensor({1.0, 5.0, 9.0}).astype(vt::u64);
  const auto compared = [](Tensor x, Tensor k) {
    return vt::stack({x<k, x <= k, x> k, x >= k, x == k, x != k, k < x, k == x});
  };
  const auto product = [](Tensor x, Tensor k) { return x * k; };
  const auto others = [](Tensor x, Tensor k) {
    return vt::stack({vt::maximum(x, k), vt::where(x > 1, x, k), vt::clip(x, 0, k),
                      vt::index_update(x, {0}, k)});
  };
  const auto jit_compared = vt::jit(compared);
  const auto jit_product = vt::jit(product);
  const auto jit_others = vt::jit(others);
  const auto named = vt::function("product", product);
  const auto around = vt::jit([named](Tensor x, Tensor k) { return named(x, k); });
  for (const Tensor& x : {u, i, n})
    for (const long long k : {0LL, 2LL, -1LL, 200LL, 256LL, 506LL, big, -big, 1LL << 40})
      expect_close(jit_compared(x, k), compared(x, k), vt_test::exact,
                   std::string(vt::name_of(x.dtype())) + " beside " + std::to_string(k));
  for (const int k : {2, 100, 255}) {
    expect_close(jit_product(u, k), product(u, k));
    expect_close(jit_others(u, k), others(u, k));
    expect_close(named(u, k), product(u, k));
    expect_close(around(u, k), product(u, k));
  }
  for (const long long k : {256LL, -1LL, big}) {
    const std::string number = std::to_string(k);
    expect_error([&] { jit_product(u, k); }, vt::ErrorKind::dtype,
                 {number, "u8", "argument_forms_test.cpp:"});
    expect_error([&] { jit_others(u, k); }, vt::ErrorKind::dtype, {number, "u8"});
    expect_error([&] { named(u, k); }, vt::ErrorKind::dtype, {number, "u8"});
    expect_error([&] { around(u, k); }, vt::ErrorKind::dtype, {number, "u8"});
  }
  expect_error([&] { jit_product(i, big); }, vt::ErrorKind::dtype, {"3000000000", "i32"});
  EXPECT_EQ(jit_product(i, 1)[1].item<int>(), 2);  // the program of before
  // Numbers that were computed, too, are compared by value.
  const Tensor sum = Tensor(100) + 200;
  expect_close(u > -sum, vt::tensor({true, true, true}));
  expect_close(u == Tensor(250) + 256, vt::tensor({false, false, false}));
}

// Braces are what the function's parameter says, whatever transforms stand around it.
struct Body {
  Tensor place, speed;
};
TEST(Braces, AreContainersAndStructsOfTransformedFunctions) {
  const auto f = [](const std::vector<Tensor>& p, double k) { return k * p[0] * p[1]; };
  const Tensor x = 3.0, y = 5.0;
  const std::vector<Tensor> by{vt::tensor(10.0), vt::tensor(6.0)};
  const auto expect_value = [](const Tensor& got, const Tensor& wanted) {
    expect_close(got.astype(vt::f64), wanted.astype(vt::f64));
  };
  const auto expect_both = [&](const std::vector<Tensor>& given) {
    ASSERT_EQ(given.size(), 2u);
    for (std::size_t k = 0; k < 2; ++k) expect_value(given[k], by[k]);
  };
  expect_value(vt::jit(f)({x, y}, 2), vt::tensor(30.0f));
  expect_value(vt::function("f", f)({x, y}, 2), vt::tensor(30.0f));
  expect_value(vt::checkpoint(f)({x, y}, 2), vt::tensor(30.0f));
  expect_both(vt::grad(f)({x, y}, 2));
  expect_both(vt::jit(vt::grad(f))({x, y}, 2));
  expect_both(vt::value_and_grad(f)({x, y}, 2).second);
  expect_both(vt::jacobian(f)({x, y}, 2));
  expect_value(vt::hessian(f)({x, y}, 2)[0][1], vt::tensor(2.0f));
  expect_both(std::get<1>(vt::value_grad_hessian(f)({x, y}, 2)));
  const Tensor xs = vt::stack({x, y}), ys = vt::stack({y, y});
  expect_value(vt::vmap(f)({xs, ys}, 1), vt::tensor({15.0f, 25.0f}));
  expect_value(vt::jit(vt::vmap(vt::grad(f)))({xs, ys}, 1)[0], vt::tensor({5.0f, 5.0f}));
  expect_value(vt::jit(f)({x, y, x}, 2), vt::tensor(30.0f));  // three of them are a vector, too
  EXPECT_EQ(vt::make_graph(f)({x, y}, 2).size(), 3u);
  EXPECT_NE(vt::explain(f)({x, y}, 2), "");
  const auto step = [](Body b, Tensor dt) { return Body{b.place + dt * b.speed, b.speed}; };
  expect_value(vt::jit(step)({x, y}, 0.5).place, vt::tensor(5.5f));
  expect_value(vt::jit(vt::vmap(step, {.in_axes = {0, vt::unmapped}}))({xs, ys}, 0.5).place,
               vt::tensor({5.5f, 7.5f}));
  // Numbers for Tensors stay values that may change, below other transforms as well.
  int recorded = 0;
  const auto slope = vt::jit(vt::grad([&](Tensor a) { return ++recorded, a * a; }));
  for (double a : {1.0, 2.0, 3.0}) expect_value(slope(a), vt::tensor(static_cast<float>(2 * a)));
  EXPECT_EQ(recorded, 1);
}

TEST(Results, MayBeReferences) {
  expect_close(vt::jit([](const Tensor& x) -> const Tensor& { return x; })(vt::ones({2})),
               vt::ones({2}));
  expect_close(vt::vmap(std::identity())(vt::ones({2})), vt::ones({2}));
}

}  // namespace
