// The simplifier on Graphs as users and transforms make them: what must vanish, vanishes; values stay.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/trace/graph.hpp"
#include "src/trace/node.hpp"

namespace {
using vt::Tensor;
using namespace vt::detail;

/// The ops left of `f` on `arguments`, which are also its inputs for the check that no value changes.
template <class F, class... Args>
std::string left_of(F f, const Args&... arguments) {
  const vt::Graph graph = vt::make_graph(f)(arguments...);
  const GraphBody simple = simplify(graph.body());
  check_graph(simple, "simplify");
  std::vector<BufferRef> inputs;
  for (const Tensor& t : {Tensor(arguments)...}) inputs.push_back(value_of(t, {}));
  for (const Tensor& t : graph.captured()) inputs.push_back(value_of(t, {}));
  const auto before = interpret(graph.body(), inputs), after = interpret(simple, inputs);
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(std::string(before[i]->as<char>(), graph.body().aval(graph.body().outputs[i]).bytes()),
              std::string(after[i]->as<char>(), simple.aval(simple.outputs[i]).bytes()));
  std::string text;
  for (const Equation& e : simple.equations) text += (text.empty() ? "" : " ") + std::string(name_of(e.op));
  return text;
}

Tensor matrix(std::int64_t rows, std::int64_t columns) { return vt::reshape(vt::sin(vt::arange(rows * columns) * 1.0f), {rows, columns}); }

TEST(SimplifyTransforms, TheLoopIndexReadsInPlace) {
  const Tensor x = matrix(5, 3), y = matrix(5, 3);
  EXPECT_EQ(left_of([](Tensor a, Tensor b) { return vt::pfor([&](Tensor i) { return a[i] + b[i]; }, 5); }, x, y), "add");
  EXPECT_EQ(left_of([](Tensor a) { return vt::pfor([&](Tensor i) { return a[i + 1] - a[i]; }, 4); }, x), "slice slice sub");
  EXPECT_EQ(left_of([](Tensor a) { return vt::take(a, vt::arange(5), 0); }, x), "");
  EXPECT_EQ(left_of([](Tensor a) { return vt::take(a, vt::arange(3), 1); }, x), "");
  EXPECT_EQ(left_of([](Tensor a) { return vt::take(a, 4 - vt::arange(5), 0); }, x), "rev");
  EXPECT_EQ(left_of([](Tensor a) { return vt::take_along_axis(a, vt::broadcast_to(vt::arange(3), {5, 3}), 1); }, x), "");
}

TEST(SimplifyTransforms, ItsGradientWritesInPlace) {
  const auto loss = [](Tensor a) { return vt::sum(vt::pfor([&](Tensor i) { return a[i] * a[i]; }, 5)); };
  EXPECT_EQ(left_of([&](Tensor a) { return vt::grad(loss)(a); }, matrix(5, 3)), "add");
}

TEST(SimplifyTransforms, MatricesAreNotTransposedForTheirGradients) {
  const auto loss = [](Tensor w, Tensor x) { return vt::sum(vt::matmul(x, w)); };
  const std::string ops = left_of([&](Tensor w, Tensor x) { return vt::grad<0, 1>(loss)(w, x); }, matrix(3, 4), matrix(5, 3));
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

}  // namespace
