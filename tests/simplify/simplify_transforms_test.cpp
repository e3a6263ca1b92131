// The simplifier on Graphs as users and transforms make them: what must vanish, vanishes; values
// stay.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

#include "src/trace/ir/graph.hpp"
#include "src/trace/record/node.hpp"

namespace {
using vt::Tensor;
using namespace vt::detail;

/// The ops left of `f` on `arguments`, which are also its inputs for the check that no value
/// changes.
template <class F, class... Args>
std::string left_of(F f, const Args&... arguments) {
  const vt::Graph graph = vt::make_graph(f)(arguments...);
  const GraphBody simple = simplify(graph.body());
  check_graph(simple, "simplify");
  vt::Vec<BufferRef> inputs;
  for (const Tensor& t : {Tensor(arguments)...}) inputs.push_back(value_of(t, {}));
  for (const Tensor& t : graph.captured()) inputs.push_back(value_of(t, {}));
  const auto before = interpret(graph.body(), inputs), after = interpret(simple, inputs);
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(
        std::string(before[i]->as<char>(), graph.body().aval(graph.body().outputs[i]).bytes()),
        std::string(after[i]->as<char>(), simple.aval(simple.outputs[i]).bytes()));
  std::string text;
  for (const Equation& e : simple.equations)
    text += (text.empty() ? "" : " ") + std::string(name_of(e.op));
  return text;
}

Tensor matrix(std::int64_t rows, std::int64_t columns) {
  return vt::reshape(vt::sin(vt::arange(rows * columns) * 1.0f), {rows, columns});
}

TEST(SimplifyTransforms, TheLoopIndexReadsInPlace) {
  const Tensor x = matrix(5, 3), y = matrix(5, 3);
  EXPECT_EQ(
      left_of([](Tensor a, Tensor b) { return vt::pfor([&](Tensor i) { return a[i] + b[i]; }, 5); },
              x, y),
      "add");
  EXPECT_EQ(
      left_of([](Tensor a) { return vt::pfor([&](Tensor i) { return a[i + 1] - a[i]; }, 4); }, x),
      "slice slice sub");
  EXPECT_EQ(left_of([](Tensor a) { return vt::take(a, vt::arange(5), 0); }, x), "");
  EXPECT_EQ(left_of([](Tensor a) { return vt::take(a, vt::arange(3), 1); }, x), "");
  EXPECT_EQ(left_of([](Tensor a) { return vt::take(a, 4 - vt::arange(5), 0); }, x), "rev");
  EXPECT_EQ(left_of(
                [](Tensor a) {
                  return vt::take_along_axis(a, vt::broadcast_to(vt::arange(3), {5, 3}), 1);
                },
                x),
            "");
}

TEST(SimplifyTransforms, ItsGradientWritesInPlace) {
  const auto loss = [](Tensor a) {
    return vt::sum(vt::pfor([&](Tensor i) { return a[i] * a[i]; }, 5));
  };
  EXPECT_EQ(left_of([&](Tensor a) { return vt::grad(loss)(a); }, matrix(5, 3)), "add");
}

TEST(SimplifyTransforms, MatricesAreNotTransposedForTheirGradients) {
  const auto loss = [](Tensor w, Tensor x) { return vt::sum(vt::matmul(x, w)); };
  const std::string ops = left_of([&](Tensor w, Tensor x) { return vt::grad<0, 1>(loss)(w, x); },
                                  matrix(3, 4), matrix(5, 3));
  EXPECT_EQ(ops.find("transpose"), std::string::npos) << ops;
}

TEST(SimplifyTransforms, IdentitiesOfTheUserGo) {
  const Tensor x = matrix(5, 3);
  EXPECT_EQ(left_of([](Tensor a) { return vt::transpose(vt::transpose(a)); }, x), "");
  EXPECT_EQ(left_of([](Tensor a) { return vt::reshape(vt::ravel(a), {5, 3}); }, x), "");
  EXPECT_EQ(left_of([](Tensor a) { return a * 1.0 / 1.0 - 0.0; }, x), "");
  EXPECT_EQ(left_of([](Tensor a) { return a.astype(vt::f64).astype(vt::f32); }, x), "");
  EXPECT_EQ(left_of([](Tensor a) { return vt::concatenate(vt::split(a, 5, 0), 0); }, x), "");
  EXPECT_EQ(left_of([](Tensor a) { return vt::flip(vt::flip(a, 1), 1); }, x), "");
  EXPECT_EQ(left_of([](Tensor a) { return vt::where(vt::full({}, true), a, a * 2.0); }, x), "");
}

// --- what transforms leave of control flow -------------------------------------------------------

/// The only equation of `op` in the simplified Graph of `f`.
template <class F, class... Args>
Equation only(Op op, F f, const Args&... arguments) {
  const GraphBody g = simplify(vt::make_graph(f)(arguments...).body(), SimplifyFor::running);
  Equation found;
  int count = 0;
  for (const Equation& e : g.equations) {
    if (e.op != op) continue;
    found = e;
    ++count;
  }
  EXPECT_EQ(count, 1) << to_text(g);
  return found;
}

TEST(SimplifyTransforms, OneGradientOfABranchIsLeft) {
  const auto grad = vt::vmap(vt::grad([](Tensor x) {
    return vt::cond(
        x > 0.0f, [](Tensor v) { return vt::sin(v) * v; },
        [](Tensor v) { return vt::exp(v) * 2.0f; }, x);
  }));
  const Equation e = only(Op::cond, grad, vt::sin(vt::arange(5) * 1.0f));
  EXPECT_EQ(e.outputs.size(), 1u);  // the gradient; neither the value nor residuals
  EXPECT_EQ(describe(e.op, e.params), "cond[lanes=5, mapped=11]");
}

TEST(SimplifyTransforms, WeightsOfACellStayOutsideOfItsScan) {
  // The transposed and scaled weights are the same in all iterations, forward and backward.
  const auto loss = [](Tensor w, Tensor x) {
    const auto cell = [&](Tensor h, Tensor v) {
      const Tensor next = vt::tanh(vt::matmul(h, vt::sin(w)) + v);
      return std::pair(next, next * next);
    };
    const auto [last, ys] = vt::scan(cell, vt::zeros({3}), x);
    return vt::sum(ys);
  };
  const vt::Graph graph = vt::make_graph(vt::grad(loss))(matrix(3, 3), matrix(4, 3));
  const GraphBody simple = simplify(graph.body(), SimplifyFor::running);
  int loops = 0;
  for (const Equation& e : simple.equations) {
    if (e.op != Op::scan) continue;
    ++loops;
    for (const Equation& inner : e.as<ScanParams>().body->equations) {
      EXPECT_NE(inner.op, Op::sin) << to_text(simple);
      EXPECT_NE(inner.op, Op::cos) << to_text(simple);
    }
  }
  EXPECT_EQ(loops, 2) << to_text(simple);
}

TEST(SimplifyTransforms, TangentsThatNobodyAsksForAreNotCarried) {
  // The value's tangent along a carry that the result does not come from.
  const auto f = [](Tensor x) {
    const auto step = [](Tensor a, Tensor b) { return std::tuple(vt::sin(a), a * b); };
    return std::get<0>(vt::fori_loop(
        0, 3, [&](Tensor, Tensor a, Tensor b) { return step(a, b); }, std::tuple(x, x)));
  };
  const auto tangent = [&](Tensor x) {
    return std::get<1>(vt::jvp(f, std::tuple(x), std::tuple(x)));
  };
  // a and its tangent; neither b, nor its tangent, nor the index.
  EXPECT_EQ(only(Op::scan, tangent, vt::ones({3})).as<ScanParams>().carries, 2);
}

}  // namespace
