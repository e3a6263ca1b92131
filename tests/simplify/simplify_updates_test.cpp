// A choice between an array and what updates made of it becomes a choice of what is written, also
// where branches make it. No bit changes, for places in range or not, zeros of both signs, NaN.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "simplify_check.hpp"
#include "src/trace/record/scope.hpp"

namespace {
using namespace vt_test;
using vt::Tensor;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;
using Update = std::function<Tensor(const Tensor& x, const Tensor& i, const Tensor& v)>;

GraphBody recorded(const vt::detail::FlatFunction& f, const std::vector<Aval>& avals) {
  const vt::detail::Recorded r = vt::detail::record(f, avals, {});
  EXPECT_TRUE(r.captured.empty());
  return r.graph;
}

/// Is an array of this shape chosen as a whole, or given by a branch?
bool chooses_all(const GraphBody& g, const vt::Shape& shape) {
  for (const Equation& e : g.equations)
    if ((e.op == Op::select || e.op == Op::cond) && g.aval(e.outputs[0]).shape == shape)
      return true;
  return false;
}

struct Way {
  const char* name;
  Update update;
};
const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      {"set", [](auto& x, auto& i, auto& v) { return vt::index_update(x, i, v); }},
      {"add", [](auto& x, auto& i, auto& v) { return vt::index_add(x, i, v); }},
      {"mul", [](auto& x, auto& i, auto& v) { return vt::index_mul(x, i, v); }},
      {"min", [](auto& x, auto& i, auto& v) { return vt::index_min(x, i, v); }},
      {"max", [](auto& x, auto& i, auto& v) { return vt::index_max(x, i, v); }},
      {"slice",
       [](auto& x, auto& i, auto& v) {
         return vt::dynamic_update_slice_in_dim(x, vt::reshape(v, {1}), i, 0);
       }},
      {"twice", [](auto& x, auto& i,
                   auto& v) { return vt::index_update(vt::index_update(x, i, v), i + 1, v + v); }},
  };
  return all;
}

TEST(SimplifyUpdates, WhereChoosesWhatIsWritten) {
  for (const vt::DType d : {vt::f32, vt::f16, vt::i32})
    for (const Way& way : ways())
      for (const bool on_true : {true, false}) {
        SCOPED_TRACE(std::string(way.name) + " " + vt::name_of(d));
        const GraphBody g = simplified(recorded(
            [&](In a) -> Tensors {
              const Tensor updated = way.update(a[0], a[1], a[2]);
              return {on_true ? vt::where(a[3], updated, a[0]) : vt::where(a[3], a[0], updated)};
            },
            {Aval(d, {9}), Aval(vt::i32, {}), Aval(d, {}), Aval(vt::bool_, {})}));
        EXPECT_FALSE(chooses_all(g, {9})) << to_text(g);
      }
}

TEST(SimplifyUpdates, ManyPlacesAtOnce) {
  const GraphBody g = simplified(recorded(
      [&](In a) -> Tensors {
        return {vt::where(a[3], vt::index_update(a[0], a[1], a[2]), a[0]),
                vt::where(a[3], vt::index_add(a[0], a[1], a[2]), a[0])};
      },
      {Aval(vt::f32, {40}), Aval(vt::i32, {3}), Aval(vt::f32, {3}), Aval(vt::bool_, {})}));
  // What is added at one place several times is left alone.
  EXPECT_TRUE(ops(g).ends_with("gather select scatter scatter_add select")) << to_text(g);
}

TEST(SimplifyUpdates, InEachRowOfABatch) {
  const GraphBody g = simplified(recorded(
      [&](In a) -> Tensors {
        const auto one = [](Tensor x, Tensor i, Tensor v, Tensor p) {
          return vt::where(p, vt::index_update(x, i, v), x);
        };
        return {vt::vmap(one)(a[0], a[1], a[2], a[3])};
      },
      {Aval(vt::f32, {5, 9}), Aval(vt::i32, {5}), Aval(vt::f32, {5}), Aval(vt::bool_, {5})}));
  EXPECT_FALSE(chooses_all(g, {5, 9})) << to_text(g);
}

TEST(SimplifyUpdates, WhatElementsOfTheConditionDecideStays) {
  const GraphBody g = simplified(recorded(
      [&](In a) -> Tensors { return {vt::where(a[3], vt::index_update(a[0], a[1], a[2]), a[0])}; },
      {Aval(vt::f32, {9}), Aval(vt::i32, {}), Aval(vt::f32, {}), Aval(vt::bool_, {9})}));
  EXPECT_TRUE(chooses_all(g, {9})) << to_text(g);
}

TEST(SimplifyUpdates, BranchesGiveWhatIsWritten) {
  for (const Way& way : ways())
    for (const int others : {0, 1, 2}) {
      SCOPED_TRACE(std::string(way.name) + " " + std::to_string(others));
      const GraphBody g = simplified(recorded(
          [&](In a) -> Tensors {
            const auto updated = [&](Tensor x, Tensor i, Tensor v) {
              return std::pair(way.update(x, i, vt::sin(v)), v * 2.0f);
            };
            const auto kept = [](Tensor x, Tensor, Tensor v) { return std::pair(x, v); };
            const auto elsewhere = [&](Tensor x, Tensor i, Tensor v) {
              return std::pair(way.update(x, i + 2, v), v + 1.0f);
            };
            const auto [x, v] = others == 0 ? vt::cond(a[3], updated, kept, a[0], a[1], a[2])
                                : others == 1
                                    ? vt::cond(a[3], kept, updated, a[0], a[1], a[2])
                                    : vt::cond(a[3], updated, elsewhere, a[0], a[1], a[2]);
            return {x, v};
          },
          {Aval(vt::f32, {9}), Aval(vt::i32, {}), Aval(vt::f32, {}), Aval(vt::bool_, {})}));
      EXPECT_FALSE(chooses_all(g, {9})) << to_text(g);
    }
}

TEST(SimplifyUpdates, BranchesThatGiveOtherArraysStay) {
  const GraphBody g = simplified(recorded(
      [&](In a) -> Tensors {
        return {vt::cond(
            a[3], [](Tensor x, Tensor i, Tensor v) { return vt::index_update(x, i, v); },
            [](Tensor x, Tensor, Tensor) { return vt::flip(x, {0}); }, a[0], a[1], a[2])};
      },
      {Aval(vt::f32, {9}), Aval(vt::i32, {}), Aval(vt::f32, {}), Aval(vt::bool_, {})}));
  EXPECT_TRUE(chooses_all(g, {9})) << to_text(g);
}

}  // namespace
