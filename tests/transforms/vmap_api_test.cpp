// vmap, pfor and custom_vmap as users call them: axes over trees, sizes, chunks, nesting, captured
// values, and every message.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <vt/vt.hpp>

#include "support/property.hpp"

namespace {

using namespace vt_test;
using vt::Tensor;

const Tensor a = random_quarters(vt::f32, {3, 4}, 1), b = random_quarters(vt::f32, {4, 3}, 2),
             c = random_quarters(vt::f32, {4}, 3);

struct Layer {
  Tensor w, b;
};

TEST(Recording, EqualNumbersAreOneEquation) {
  const vt::Graph g =
      vt::make_graph([](Tensor x) { return (x * 2.0f + 0.0f) - (x + 2.0f) * -0.0f + 2; })(c);
  // In the order in which the compiler takes operands.
  for (const char* part : {"= mul a 2.0\n", "= add a 2.0\n", " 0.0\n", " -0.0\n"})
    EXPECT_NE(g.str().find(part), std::string::npos) << g.str();
  EXPECT_EQ(g.size(), 6u + 3u);
}

TEST(Vmap, AxesForAllOrPerArgument) {
  const auto f = [](Tensor p, Tensor q) { return vt::sum(p * q) + p; };
  const FlatFunction flat = [&](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{f(t[0], t[1])};
  };
  expect_close(vt::vmap(f)(a, a), stack_loop(f, 0, a, a));
  expect_close(vt::vmap(f, {.in_axes = 1})(a, a), stack_loop(f, 1, a, a));
  expect_close(vt::vmap(f, {.in_axes = -1})(a, a), stack_loop(f, 1, a, a));
  expect_close(vt::vmap(f, {.in_axes = {0, 1}})(a, b), stack_loop(flat, {a, b}, {0, 1})[0]);
  expect_close(vt::vmap(f, {.in_axes = {0, -1}})(a, b), stack_loop(flat, {a, b}, {0, 1})[0]);
  expect_close(vt::vmap(f, {.in_axes = {0, vt::unmapped}})(a, c),
               stack_loop(flat, {a, c}, {0, std::nullopt})[0]);
  expect_close(vt::vmap(f, {.in_axes = {vt::unmapped, 0}})(c, a),
               stack_loop(flat, {c, a}, {std::nullopt, 0})[0]);
}

TEST(Vmap, ResultAxes) {
  const auto f = [](Tensor p) { return vt::reshape(p * 2.0f, {2, 2}); };
  for (int axis : {0, 1, 2, -1, -2, -3}) {
    const FlatFunction flat = [&](const std::vector<Tensor>& t) {
      return std::vector<Tensor>{f(t[0])};
    };
    expect_close(vt::vmap(f, {.out_axes = axis})(a), stack_loop(flat, {a}, {0}, axis)[0], exact,
                 "axis " + std::to_string(axis));
  }
  const auto two =
      vt::vmap([](Tensor p) { return std::tuple(p, vt::sum(p)); }, {.out_axes = {1, 0}})(a);
  expect_close(std::get<0>(two), vt::transpose(a));
  expect_close(std::get<1>(two), vt::sum(a, 1));
}

TEST(Vmap, AResultThatNoLaneChangesIsRepeatedOrGivenOnce) {
  const auto f = [](Tensor p, Tensor q) { return std::pair(p + q, vt::exp(q)); };
  const auto repeated = vt::vmap(f, {.in_axes = {0, vt::unmapped}})(a, c);
  expect_close(repeated.second, vt::broadcast_to(vt::exp(c), {3, 4}));
  const auto once =
      vt::vmap(f, {.in_axes = {0, vt::unmapped}, .out_axes = {0, vt::unmapped}})(a, c);
  expect_close(once.second, vt::exp(c));
  expect_close(once.first, a + c);
  expect_close(vt::vmap([](Tensor) { return Tensor(1.5f); })(a), vt::full({3}, 1.5f));
}

TEST(Vmap, TreesOfArgumentsAndResults) {
  const Layer layer{random_quarters(vt::f32, {4, 2, 3}, 4), random_quarters(vt::f32, {2, 4}, 5)};
  const auto f = [](Layer l, std::vector<Tensor> xs, std::map<std::string, Tensor> extra) {
    return Layer{vt::matmul(l.w, xs[0]) + l.b, xs[1] * extra.at("scale")};
  };
  const std::vector<Tensor> xs = {random_quarters(vt::f32, {3, 4}, 6),
                                  random_quarters(vt::f32, {4}, 7)};
  const std::map<std::string, Tensor> extra = {{"scale", Tensor(3.0f)}};
  const Layer got = vt::vmap(f, {.in_axes = {{0, 1}, {1, 0}, vt::unmapped}, .out_axes = {1, 0}})(
      layer, xs, extra);
  std::vector<Tensor> first, second;
  for (int lane = 0; lane < 4; ++lane) {
    const Layer one = f({take_lane(layer.w, 0, lane), take_lane(layer.b, 1, lane)},
                        {take_lane(xs[0], 1, lane), take_lane(xs[1], 0, lane)}, extra);
    first.push_back(one.w);
    second.push_back(one.b);
  }
  expect_close(got.w, stack_lanes(first, 1));
  expect_close(got.b, stack_lanes(second, 0));
}

TEST(Vmap, NumbersAmongTheArgumentsPassThrough) {
  const auto f = [](Tensor p, int power) { return vt::integer_pow(p, power); };
  expect_close(vt::vmap(f)(a, 3), vt::integer_pow(a, 3));
}

TEST(Vmap, StringLiteralsAreArguments) {
  const auto f = [](Tensor x, const std::string& how) {
    return how == "sum" ? vt::sum(x) : vt::max(x);
  };
  const Tensor x = vt::tensor({{1.0, 2.0}, {3.0, 4.0}});
  EXPECT_EQ(vt::vmap(f)(x, "sum").to_vector<double>(), (std::vector<double>{3, 7}));
  EXPECT_EQ(vt::grad(f)(x, "max").to_vector<double>(), (std::vector<double>{0, 0, 0, 1}));
  const auto fast = vt::jit(f);
  EXPECT_EQ(fast(x, "sum").item<double>(), 10);
  EXPECT_EQ(fast(x, "max").item<double>(), 4);
  EXPECT_EQ(fast(x, std::string("sum")).item<double>(), 10);
  EXPECT_EQ(vt::checkpoint(f)(x, "max").item<double>(), 4);
}

TEST(Vmap, AxisSizeWhenNothingIsMapped) {
  const Tensor twice =
      vt::vmap([](Tensor p) { return p * 2.0f; }, {.in_axes = vt::unmapped, .axis_size = 5})(c);
  expect_close(twice, vt::broadcast_to(c * 2.0f, {5, 4}));
  expect_close(vt::vmap([](Tensor p) { return p; }, {.axis_size = 3})(a), a);
}

TEST(Vmap, InsideVmap) {
  const auto dot = [](Tensor p, Tensor q) { return vt::sum(p * q); };
  const auto rows = vt::vmap(dot, {.in_axes = {vt::unmapped, 1}});  // p · each column
  const auto all = vt::vmap(rows, {.in_axes = {0, vt::unmapped}});  // matrix product
  expect_close(all(a, b), vt::matmul(a, b));
  const Tensor deep = random_quarters(vt::f32, {2, 3, 4, 2}, 8);
  const auto f = [](Tensor p) { return vt::cumsum(p) * vt::max(p); };
  const Tensor got =
      vt::vmap(vt::vmap(vt::vmap(f), {.in_axes = -1, .out_axes = 1}), {.in_axes = 2})(deep);
  for (int i = 0; i < 4; ++i) {
    // [2,3,2], then lanes of the last axis, then of axis 0
    const Tensor outer = take_lane(deep, 2, i);
    std::vector<Tensor> middle;
    for (int j = 0; j < 2; ++j) middle.push_back(stack_loop(f, 0, take_lane(outer, -1, j)));
    expect_close(take_lane(got, 0, i), stack_lanes(middle, 1));
  }
}

TEST(Vmap, CapturedTensorsAreUnmapped) {
  expect_close(vt::vmap([&](Tensor p) { return p * c; })(a), a * c);
  // Captured from the outer map: it varies there, not here.
  const Tensor outer =
      vt::vmap([](Tensor p) { return vt::vmap([&](Tensor s) { return s * p; })(p); })(a);
  std::vector<Tensor> expected;
  for (int i = 0; i < 3; ++i) expected.push_back(vt::outer(take_lane(a, 0, i), take_lane(a, 0, i)));
  expect_close(outer, stack_lanes(expected, 0));
}

// The same bits on the interpreter; compiled sums run in an order that depends on the shape, so in
// blocks they differ by a rounding.
TEST(Vmap, BlocksOfLanesGiveTheSame) {
  const vt_test::Tolerance same =
      vt_test::forced_backend() == "interpreter" ? exact : vt_test::Tolerance{.ulps = 4};
  const Tensor big = random_tensor(vt::f32, {10, 4}, 9);
  const auto f = [](Tensor p, Tensor q) {
    return std::pair(vt::softmax(p * q), vt::sum(vt::exp(p)));
  };
  const auto whole = vt::vmap(f, {.in_axes = {0, vt::unmapped}, .out_axes = {1, 0}})(big, c);
  for (std::int64_t chunk : {1, 2, 3, 8, 10, 50}) {
    const auto blocks =
        vt::vmap(f, {.in_axes = {0, vt::unmapped}, .out_axes = {1, 0}, .chunk = chunk})(big, c);
    expect_close(blocks.first, whole.first, same, "chunk " + std::to_string(chunk));
    expect_close(blocks.second, whole.second, same, "chunk " + std::to_string(chunk));
  }
  const auto once = vt::vmap(f, {.in_axes = {0, vt::unmapped}, .out_axes = 0, .chunk = 3});
  const Tensor inside = vt::vmap([&](Tensor s) { return once(big * s, c).second; })(c);
  expect_close(take_lane(inside, 0, 2), once(big * take_lane(c, 0, 2), c).second, same);
  const auto unmapped =
      vt::vmap([](Tensor p, Tensor q) { return std::pair(p, q * 2.0f); },
               {.in_axes = {0, vt::unmapped}, .out_axes = {0, vt::unmapped}, .chunk = 3})(big, c);
  expect_close(unmapped.second, c * 2.0f);
}

TEST(Vmap, NoLanes) {
  const Tensor none = vt::zeros({0, 4});
  const auto f = [](Tensor p) { return std::pair(vt::softmax(p), vt::argmax(p)); };
  const auto got = vt::vmap(f)(none);
  EXPECT_EQ(got.first.shape(), (vt::Shape{0, 4}));
  EXPECT_EQ(got.second.shape(), (vt::Shape{0}));
  EXPECT_EQ(got.second.dtype(), vt::i32);
  EXPECT_EQ(vt::vmap(f, {.chunk = 4})(none).first.shape(), (vt::Shape{0, 4}));
  EXPECT_EQ(vt::vmap([](Tensor p) { return vt::vmap([](Tensor s) { return s + 1.0f; })(p); })(none)
                .shape(),
            (vt::Shape{0, 4}));
}

TEST(Vmap, TheFunctionSeesOneLane) {
  vt::vmap(
      [](Tensor p, Tensor q) {
        EXPECT_EQ(p.shape(), (vt::Shape{4}));
        EXPECT_EQ(q.shape(), (vt::Shape{4}));
        return p;
      },
      {.in_axes = {0, 1}})(a, b);
}

// --- pfor ----------------------------------------------------------------------------------------

TEST(Pfor, StacksTheResults) {
  const Tensor got = vt::pfor([&](Tensor i) { return a[i] * i.astype(vt::f32); }, 3);
  std::vector<Tensor> expected;
  for (int i = 0; i < 3; ++i) expected.push_back(take_lane(a, 0, i) * static_cast<float>(i));
  expect_close(got, stack_lanes(expected, 0));
  for (std::int64_t chunk : {1, 2, 5})
    expect_close(vt::pfor([&](Tensor i) { return a[i] * i.astype(vt::f32); }, 3, {.chunk = chunk}),
                 got);
}

TEST(Pfor, NoIterations) {
  const Tensor got = vt::pfor([&](Tensor i) { return a[i]; }, 0);
  EXPECT_EQ(got.shape(), (vt::Shape{0, 4}));
}

TEST(Pfor, AnIndexIsAScalarI32) {
  vt::pfor(
      [](Tensor i) {
        EXPECT_EQ(i.shape(), vt::Shape{});
        EXPECT_EQ(i.dtype(), vt::i32);
        return i;
      },
      4);
}

TEST(Pfor, RefusesNegativeCounts) {
  expect_error([] { vt::pfor([](Tensor i) { return i; }, -1); }, vt::ErrorKind::value,
               {"vt::pfor", "-1 iterations", "vmap_api_test.cpp"});
}

// --- custom_vmap ---------------------------------------------------------------------------------

TEST(CustomVmap, TheRuleReplacesTheFunctionUnderVmapOnly) {
  int calls = 0;
  const auto f = vt::custom_vmap(
      [](Tensor p, Tensor q) { return vt::sum(p * q); },
      [&](std::int64_t lanes, const std::array<bool, 2>& mapped, Tensor p, Tensor q) {
        ++calls;
        EXPECT_EQ(lanes, 3);
        EXPECT_TRUE(mapped[0]);
        EXPECT_FALSE(mapped[1]);
        EXPECT_EQ(p.shape(), (vt::Shape{3, 4}));
        return std::pair(vt::matmul(p, q) * 10.0f, true);
      });
  const Tensor row = take_lane(a, 0, 0);
  expect_close(f(row, c), vt::sum(row * c));
  EXPECT_EQ(calls, 0);
  const auto mapped = vt::vmap(f, {.in_axes = {1, vt::unmapped}});
  expect_close(mapped(vt::transpose(a), c), vt::matmul(a, c) * 10.0f);
  EXPECT_EQ(calls, 1);
}

TEST(CustomVmap, ARuleMayGiveAnUnmappedResult) {
  const auto f = vt::custom_vmap([](Tensor p) { return p; },
                                 [](std::int64_t, const std::array<bool, 1>&, Tensor p) {
                                   return std::pair(vt::sum(p, 0), false);
                                 });
  expect_close(vt::vmap(f, {.out_axes = vt::unmapped})(a), vt::sum(a, 0));
}

TEST(CustomVmap, AWrongRuleIsTold) {
  const auto f = vt::custom_vmap(
      [](Tensor p) { return vt::sum(p); },
      [](std::int64_t, const std::array<bool, 1>&, Tensor p) { return std::pair(p, true); });
  expect_error([&] { vt::vmap(f)(a); }, vt::ErrorKind::shape,
               {"vt::custom_vmap", "result 0 as f32[3,4]", "3 lanes", "f32[]", "f32[3]"});
}

// --- messages ------------------------------------------------------------------------------------

TEST(VmapErrors, SizesThatDiffer) {
  const auto f = vt::vmap([](Layer l, Tensor p) { return l.w + p; });
  expect_error(
      [&] { f(Layer{a, a}, b); }, vt::ErrorKind::shape,
      {"vt::vmap", "the mapped axes differ in size", "argument 0", "has 3 (axis 0 of f32[3,4])",
       "argument 1", "has 4 (axis 0 of f32[4,3])", "vmap_api_test.cpp"});
  expect_error([&] { vt::vmap([](Tensor p) { return p; }, {.axis_size = 7})(a); },
               vt::ErrorKind::shape, {"axis_size is 7", "argument 0 has 3"});
  expect_error([&] { vt::vmap([](Tensor p) { return p; }, {.axis_size = -2})(a); },
               vt::ErrorKind::value, {"axis_size is -2"});
}

TEST(VmapErrors, AxesThatDoNotExist) {
  const auto f = [](Tensor p) { return p; };
  expect_error([&] { vt::vmap(f, {.in_axes = 2})(a); }, vt::ErrorKind::shape,
               {"in_axes maps axis 2 of argument 0", "f32[3,4]", "vmap_api_test.cpp"});
  expect_error([&] { vt::vmap(f, {.in_axes = -3})(a); }, vt::ErrorKind::shape,
               {"in_axes maps axis -3 of argument 0", "f32[3,4]"});
  expect_error([&] { vt::vmap(f)(Tensor(1.0f)); }, vt::ErrorKind::shape,
               {"axis 0 of argument 0", "scalar f32[]", "vt::unmapped"});
  expect_error([&] { vt::vmap([](Layer l) { return l.w; }, {.in_axes = {{0, 5}}})(Layer{a, a}); },
               vt::ErrorKind::shape, {"axis 5 of argument 0", "f32[3,4]"});
  expect_error([&] { vt::vmap(f, {.out_axes = 2})(a); }, vt::ErrorKind::shape,
               {"axis 2 of", "f32[4] per lane"});
  expect_error([&] { vt::vmap(f, {.out_axes = -3})(a); }, vt::ErrorKind::shape,
               {"axis -3 of", "f32[4] per lane"});
}

TEST(VmapErrors, NothingMapped) {
  expect_error([&] { vt::vmap([](Tensor p) { return p; }, {.in_axes = vt::unmapped})(a); },
               vt::ErrorKind::shape, {"no argument is mapped", "axis_size"});
}

TEST(VmapErrors, AMappedResultCannotBeUnmapped) {
  expect_error(
      [&] {
        vt::vmap([](Tensor p) { return std::pair(p, p); }, {.out_axes = {0, vt::unmapped}})(a);
      },
      vt::ErrorKind::transform,
      {"f32[4] per lane", "differs between lanes", "vt::unmapped", "vmap_api_test.cpp"});
  expect_error(
      [&] { vt::vmap([](Tensor p) { return p; }, {.out_axes = vt::unmapped, .chunk = 2})(a); },
      vt::ErrorKind::transform, {"differs between lanes"});
}

TEST(VmapErrors, ListsThatDoNotFollowTheArguments) {
  expect_error(
      [&] { vt::vmap([](Tensor p, Tensor q) { return p + q; }, {.in_axes = {0}})(a, a); },
      vt::ErrorKind::tree,
      {"in_axes {0} has 1 entry for 2 arguments: give it one for each, as in {0, vt::unmapped}"});
  expect_error([&] { vt::vmap([](Tensor p) { return p; }, {.in_axes = {{0, 1}}})(a); },
               vt::ErrorKind::tree, {"argument 0", "{0, 1}"});
}

TEST(VmapErrors, ANegativeChunk) {
  expect_error([&] { vt::vmap([](Tensor p) { return p; }, {.chunk = -1})(a); },
               vt::ErrorKind::value, {"chunk is -1"});
}

TEST(VmapErrors, LookingAtALanesValue) {
  expect_error([&] { vt::vmap([](Tensor p) { return vt::sum(p).item<float>() > 0 ? p : -p; })(a); },
               vt::ErrorKind::tracer, {"vt::vmap", "all lanes", "vt::where"});
  // What the lanes share is known.
  expect_close(vt::vmap([](Tensor p, Tensor s) { return s.item<float>() > 0 ? p : -p; },
                        {.in_axes = {0, vt::unmapped}})(a, Tensor(1.0f)),
               a);
}

TEST(VmapErrors, MessagesShowWhatOneLaneSees) {
  expect_error(
      [&] {
        vt::vmap([](Tensor p, Tensor q) { return vt::matmul(p, q); })(vt::zeros({8, 3, 4}),
                                                                      vt::zeros({8, 5, 6}));
      },
      vt::ErrorKind::shape,
      {"vt::matmul", "f32[3,4]", "f32[5,6]", "vmap_api_test.cpp", "in one of 8 lanes of vt::vmap",
       "argument 0 mapped at axis 0 of f32[8,3,4]"});
}

struct Line {
  Tensor slope;
  Tensor at(const Tensor& x) const { return slope * x; }
};

TEST(VmapApi, MembersAreFunctions) {
  const Line lines{vt::tensor({2.0, 3.0})};
  const Tensor x = vt::tensor({5.0, 7.0});
  EXPECT_EQ(vt::vmap(&Line::at)(lines, x).to_vector<double>(), (std::vector<double>{10, 21}));
  EXPECT_EQ(vt::jit(&Line::slope)(lines).to_vector<double>(), (std::vector<double>{2, 3}));
  // Also of what leads to an object, as std::invoke has it.
  auto at = &Line::at;
  const Line* pointer = &lines;
  EXPECT_EQ(vt::detail::call(at, pointer, x).to_vector<double>(), (std::vector<double>{10, 21}));
  EXPECT_EQ(vt::detail::call(at, std::ref(lines), x).to_vector<double>(),
            (std::vector<double>{10, 21}));
}

}  // namespace

TEST(VmapApi, BareNumbersHaveLanes) {
  using vt::Tensor;
  const Tensor x = vt::arange(3);
  const Tensor y = vt::vmap([](Tensor) { return 2.5; })(x);
  EXPECT_EQ(y.shape(), vt::Shape({3}));
  EXPECT_EQ(y.to_vector<double>(), std::vector<double>(3, 2.5));
  EXPECT_EQ(vt::vmap([](Tensor) { return true; })(x).dtype(), vt::bool_);
  EXPECT_EQ(vt::pfor([](Tensor) { return 2; }, 4).shape(), vt::Shape({4}));
  // Inside of others they are the same for all lanes.
  EXPECT_EQ(vt::vmap([](Tensor a) { return std::pair(a, 7); })(x).second, 7);
}
