// What vmap and pfor record: no more equations than a person would write by hand. Unmapped values
// are never tiled, products stay one product, and the loop's own index is a slice.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include <vt/vt.hpp>

#include "src/trace/ir/graph.hpp"
#include "support/property.hpp"

namespace {

using namespace vt_test;
using vt::Tensor, vt::detail::Op;

std::map<std::string, int> ops_of(const vt::Graph& graph) {
  std::map<std::string, int> count;
  for (const auto& e : graph.body().equations)
    if (vt::detail::family_of(e.op) != vt::detail::Family::leaf)
      ++count[std::string(vt::detail::name_of(e.op))];
  return count;
}
using Ops = std::map<std::string, int>;

// The result shape of the only equation of `op`.
vt::Shape shape_of(const vt::Graph& graph, Op op) {
  vt::Shape shape;
  for (const auto& e : graph.body().equations)
    if (e.op == op) shape = graph.body().aval(e.outputs[0]).shape;
  return shape;
}

const Tensor x = random_quarters(vt::f32, {8, 3, 4}, 1), v = random_quarters(vt::f32, {8, 4}, 2),
             w = random_quarters(vt::f32, {4, 5}, 3), b = random_quarters(vt::f32, {5}, 4),
             square = random_quarters(vt::f32, {6, 6}, 5);

TEST(VmapGraph, ProductWithAnUnmappedRightSideIsOneProduct) {
  const auto f =
      vt::vmap([](Tensor a, Tensor m) { return vt::matmul(a, m); }, {.in_axes = {0, vt::unmapped}});
  for (const Tensor& left : {x, v}) {
    const vt::Graph graph = vt::make_graph(f)(left, w);
    EXPECT_EQ(ops_of(graph), (Ops{{"dot_general", 1}})) << graph.str();
  }
}

TEST(VmapGraph, ProductWithAnUnmappedLeftSideFoldsLanesIntoColumns) {
  const auto f = vt::vmap([](Tensor m, Tensor a) { return vt::matmul(m, a); },
                          {.in_axes = {vt::unmapped, 0}, .out_axes = 1});
  const vt::Graph graph =
      vt::make_graph(f)(vt::transpose(w), random_quarters(vt::f32, {8, 4, 3}, 6));
  EXPECT_EQ(ops_of(graph), (Ops{{"dot_general", 1}})) << graph.str();
  EXPECT_EQ(shape_of(graph, Op::dot_general), (vt::Shape{5, 8, 3}));
}

TEST(VmapGraph, ProductOfTwoMappedSidesIsBatched) {
  const auto f = vt::vmap([](Tensor a, Tensor m) { return vt::matmul(a, m); }, {.in_axes = {0, 2}});
  const vt::Graph graph = vt::make_graph(f)(x, random_quarters(vt::f32, {4, 5, 8}, 7));
  EXPECT_EQ(ops_of(graph), (Ops{{"dot_general", 1}})) << graph.str();
  EXPECT_EQ(shape_of(graph, Op::dot_general), (vt::Shape{8, 3, 5}));
}

TEST(VmapGraph, ALayerIsAProductABiasAndATanh) {
  const auto f =
      vt::vmap([](Tensor a, Tensor m, Tensor c) { return vt::tanh(vt::matmul(a, m) + c); },
               {.in_axes = {0, vt::unmapped, vt::unmapped}});
  const vt::Graph graph = vt::make_graph(f)(v, w, b);
  EXPECT_EQ(ops_of(graph),
            (Ops{{"dot_general", 1}, {"broadcast_in_dim", 1}, {"add", 1}, {"tanh", 1}}))
      << graph.str();
}

TEST(VmapGraph, WhatNoLaneChangesIsComputedOnce) {
  // exp(sin(m)) sees no lane; neither does a chain of a captured Tensor.
  const auto f = [](Tensor a, Tensor m, Tensor captured) {
    return vt::vmap(
        [&](Tensor row, Tensor same) { return row * vt::exp(vt::sin(same)) + vt::cos(captured); },
        {.in_axes = {0, vt::unmapped}})(a, m);
  };
  const vt::Graph graph =
      vt::make_graph(f)(v, random_quarters(vt::f32, {4}, 8), random_quarters(vt::f32, {4}, 9));
  for (Op op : {Op::sin, Op::exp, Op::cos})
    EXPECT_EQ(shape_of(graph, op), (vt::Shape{4})) << graph.str();
  EXPECT_EQ(shape_of(graph, Op::mul), (vt::Shape{8, 4}));
}

TEST(VmapGraph, ASharedOperandIsRepeatedOnceForAllItsUses) {
  const auto f = vt::vmap([](Tensor row, Tensor m) { return (row + m) * m - m; },
                          {.in_axes = {0, vt::unmapped}});
  EXPECT_EQ(ops_of(vt::make_graph(f)(v, random_quarters(vt::f32, {4}, 8))),
            (Ops{{"broadcast_in_dim", 1}, {"add", 1}, {"mul", 1}, {"sub", 1}}));
}

TEST(VmapGraph, ScalarsStayScalars) {
  const auto f = vt::vmap([](Tensor row) { return row * 2.0f + 1.0f; });
  EXPECT_EQ(ops_of(vt::make_graph(f)(v)), (Ops{{"mul", 1}, {"add", 1}}));
  const auto g = vt::vmap([](Tensor s) { return s * s + 1.0f; });
  EXPECT_EQ(ops_of(vt::make_graph(g)(b)), (Ops{{"mul", 1}, {"add", 1}}));
}

TEST(VmapGraph, LanesAtTheSamePlaceAreNotMoved) {
  const auto f = vt::vmap([](Tensor p, Tensor q) { return vt::maximum(p, q) - p; },
                          {.in_axes = 1, .out_axes = 1});
  EXPECT_EQ(ops_of(vt::make_graph(f)(x, x)), (Ops{{"max", 1}, {"sub", 1}}));
}

TEST(VmapGraph, ReshapesThatLetTheLanesStayDoNotMoveThem) {
  const auto f = vt::vmap([](Tensor p) { return vt::reshape(p, {2, 6}); }, {.in_axes = 0});
  EXPECT_EQ(ops_of(vt::make_graph(f)(x)), (Ops{{"reshape", 1}}));
  const auto g = vt::vmap([](Tensor p) { return vt::reshape(p, {8, 3, 2, 2}); },
                          {.in_axes = 2, .out_axes = 2});
  EXPECT_EQ(ops_of(vt::make_graph(g)(random_quarters(vt::f32, {8, 3, 5, 4}, 1))),
            (Ops{{"reshape", 1}}));
}

TEST(VmapGraph, LookingUpInAnUnmappedTableIsOneGather) {
  const auto f = vt::vmap([](Tensor table, Tensor i) { return vt::take(table, i, 0); },
                          {.in_axes = {vt::unmapped, 0}});
  const Tensor ids = random_tensor(vt::i32, {8, 3}, 0, 5, 1);
  const vt::Graph graph = vt::make_graph(f)(square, ids);
  EXPECT_EQ(ops_of(graph)["gather"], 1) << graph.str();
  for (const auto& e : graph.body().equations)
    EXPECT_LE(graph.body().aval(e.outputs[0]).elements(), 8 * 3 * 6) << "the table was tiled:\n"
                                                                     << graph.str();
}

TEST(VmapGraph, AWindowWrittenAtALanesIndexIsOneScatter) {
  const auto f = vt::vmap(
      [](Tensor p, Tensor u, Tensor i) { return vt::dynamic_update_slice_in_dim(p, u, i, 0); });
  const vt::Graph graph = vt::make_graph(f)(v, random_quarters(vt::f32, {8, 2}, 1),
                                            random_tensor(vt::i32, {8}, 0, 3, 2));
  EXPECT_EQ(ops_of(graph)["scatter"], 1) << graph.str();
  EXPECT_EQ(ops_of(graph).count("gather"), 0u) << graph.str();
  EXPECT_EQ(ops_of(graph).count("transpose"), 0u) << graph.str();
}

// --- pfor ----------------------------------------------------------------------------------------

template <class F>
vt::Graph pfor_graph(F f, std::int64_t n, const Tensor& array) {
  return vt::make_graph([&](Tensor a) { return vt::pfor([&](Tensor i) { return f(a, i); }, n); })(
      array);
}

TEST(PforGraph, TheElementAtTheIndexIsTheArrayItself) {
  EXPECT_EQ(pfor_graph([](Tensor a, Tensor i) { return a[i]; }, 6, square).size(), 0u)
      << "not the identity";
  EXPECT_EQ(ops_of(pfor_graph([](Tensor a, Tensor i) { return vt::sin(a[i]); }, 6, square)),
            (Ops{{"sin", 1}}));
  EXPECT_EQ(ops_of(pfor_graph([](Tensor a, Tensor i) { return vt::take(a, i, 0); }, 6, square)),
            (Ops{}));
}

TEST(PforGraph, FewerIterationsOrAnOffsetAreASlice) {
  EXPECT_EQ(ops_of(pfor_graph([](Tensor a, Tensor i) { return a[i]; }, 4, square)),
            (Ops{{"slice", 1}}));
  EXPECT_EQ(ops_of(pfor_graph([](Tensor a, Tensor i) { return a[i + 2]; }, 4, square)),
            (Ops{{"slice", 1}}));
  EXPECT_EQ(ops_of(pfor_graph([](Tensor a, Tensor i) { return a[i * 2 + 1]; }, 3, square)),
            (Ops{{"slice", 1}}));
  EXPECT_EQ(ops_of(pfor_graph([](Tensor a, Tensor i) { return a[5 - i]; }, 6, square)),
            (Ops{{"rev", 1}}));
  const vt::Graph by_slice = pfor_graph(
      [](Tensor a, Tensor i) { return vt::dynamic_slice_in_dim(a, i, 1, 0); }, 6, square);
  EXPECT_EQ(ops_of(by_slice), (Ops{{"reshape", 1}})) << by_slice.str();
}

TEST(PforGraph, TwoLoopsAreATransposeAtMost) {
  const vt::Graph graph = vt::make_graph([](Tensor a) {
    return vt::pfor(
        [&](Tensor i) { return vt::pfor([&](Tensor j) { return a[i][j] * a[j][i]; }, 6); }, 6);
  })(square);
  Ops ops = ops_of(graph);
  ops.erase("transpose");
  EXPECT_EQ(ops, (Ops{{"mul", 1}})) << graph.str();
}

TEST(PforGraph, AColumnIsFoundAsWell) {
  const vt::Graph graph =
      pfor_graph([](Tensor a, Tensor i) { return vt::sum(vt::take(a, i, 1)); }, 6, square);
  EXPECT_EQ(ops_of(graph), (Ops{{"reduce_sum", 1}})) << graph.str();
}

TEST(PforGraph, ValuesAreThoseOfTheLoop) {
  struct Case {
    std::function<Tensor(Tensor)> f;
    std::int64_t n;
  };
  const std::vector<Case> cases = {
      {[](Tensor i) { return square[i]; }, 6},
      {[](Tensor i) { return square[i]; }, 4},
      {[](Tensor i) { return square[i + 2]; }, 4},
      {[](Tensor i) { return square[i * 2 + 1]; }, 3},
      {[](Tensor i) { return square[5 - i]; }, 6},
      {[](Tensor i) { return square[i - 3]; }, 6},  // negative ones count from the end
      {[](Tensor i) { return square[i + 3]; }, 6},  // beyond the end clamps
      {[](Tensor i) { return square[i * i]; }, 6},
      {[](Tensor i) { return square[i / 2]; }, 6},
      {[](Tensor i) { return square[i][i]; }, 6},
      {[](Tensor i) { return vt::take(square, i, 1); }, 6},
      {[](Tensor i) { return vt::dynamic_slice(square, {i, Tensor(2)}, {2, 3}); }, 6},
      {[](Tensor i) { return vt::dynamic_slice(square, {i, i}, {1, 1}); }, 6},
      {[](Tensor i) { return vt::where(i > 2, square[i], -square[i]); }, 6},
      {[](Tensor i) { return vt::where(i >= 0, square[i], 0.0f); }, 6},
      {[](Tensor i) { return vt::index_update(square, i, 1.0f); }, 6},
      {[](Tensor i) { return square[vt::arange(2) + i]; }, 5},
  };
  for (std::size_t k = 0; k < cases.size(); ++k) {
    std::vector<Tensor> parts;
    for (std::int32_t i = 0; i < cases[k].n; ++i) parts.push_back(cases[k].f(vt::tensor(i)));
    for (std::int64_t chunk : {0, 1, 2, 4, 100})
      expect_close(vt::pfor(cases[k].f, cases[k].n, {.chunk = chunk}), stack_lanes(parts, 0), exact,
                   "case " + std::to_string(k) + " chunk " + std::to_string(chunk));
  }
}

}  // namespace
