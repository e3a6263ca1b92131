// The checker: good Graphs pass; each kind of fault is named, with the pass and the equations
// around it.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "graph_builder.hpp"

namespace {
using namespace vt_test;
using enum vt::DType;

GraphBody chain(int n) {
  Builder b;
  Var x = b.input(f32, {3});
  for (int k = 0; k < n; ++k) x = b.add(Op::sin, {x}, 100 + k);
  return b.returns({x});
}
std::string fault(const std::function<void(GraphBody&)>& damage, int n = 3) {
  GraphBody g = chain(n);
  damage(g);
  return message_of([&] { check_graph(g, "vt::vmap"); });
}

TEST(Checker, GoodGraphsPass) {
  EXPECT_NO_THROW(check_graph(chain(0), "test"));
  EXPECT_NO_THROW(check_graph(chain(20), "test"));
  EXPECT_NO_THROW(check_graph(GraphBody{}, "test"));
}

TEST(Checker, UseBeforeDefinition) {
  EXPECT_EQ(fault([](GraphBody& g) { g.equations[1].inputs[0] = 3; }),
            "vt::vmap: the Graph is broken at equation 1: d is used before it is defined\n"
            "  lambda a:f32[3]\n"
            "    0: b:f32[3] = sin a  # user.cpp:100\n"
            "  > 1: c:f32[3] = sin d  # user.cpp:101\n"
            "    2: d:f32[3] = sin c  # user.cpp:102\n"
            "  in (d); at user.cpp:101");
}

TEST(Checker, ShowsTheEquationsAroundTheFaultOnly) {
  const std::string text = fault([](GraphBody& g) { g.equations[20].inputs[0] = 40; }, 50);
  EXPECT_NE(text.find("… 14 equations"), std::string::npos) << text;
  EXPECT_NE(text.find("  > 20: "), std::string::npos) << text;
  EXPECT_NE(text.find("    24: "), std::string::npos) << text;
  EXPECT_EQ(text.find("    25: "), std::string::npos) << text;
  EXPECT_NE(text.find("… 25 equations"), std::string::npos) << text;
}

TEST(Checker, OtherFaults) {
  EXPECT_NE(fault([](GraphBody& g) {
              g.equations[2].outputs[0] = 1;
            }).find("at equation 2: b is defined twice"),
            std::string::npos);
  EXPECT_NE(fault([](GraphBody& g) {
              g.equations[2].outputs[0] = 99;
            }).find("at equation 2: Var 99 has no type"),
            std::string::npos);
  EXPECT_NE(fault([](GraphBody& g) {
              g.equations[2].inputs[0] = -1;
            }).find("?-1 is used before it is defined"),
            std::string::npos);
  EXPECT_NE(fault([](GraphBody& g) { g.outputs[0] = 17; }).find("result 0 (?17) is never defined"),
            std::string::npos);
  EXPECT_NE(fault([](GraphBody& g) { g.inputs.push_back(0); }).find("a is defined twice"),
            std::string::npos);
  EXPECT_NE(fault([](GraphBody& g) {
              g.avals[2].shape = {4};
            }).find("at equation 1: c is said to be f32[4], but sin gives f32[3]"),
            std::string::npos);
  EXPECT_NE(fault([](GraphBody& g) {
              g.avals[2].dtype = f64;
            }).find("c is said to be f64[3], but sin gives f32[3]"),
            std::string::npos);
  EXPECT_NE(fault([](GraphBody& g) {
              g.equations[1].op = Op::popcount;
            }).find("vt::popcount: needs an integer dtype"),
            std::string::npos);
  EXPECT_NE(
      fault([](GraphBody& g) { g.equations[1].op = Op::add; }).find("takes 2 operands, not 1"),
      std::string::npos);
  EXPECT_NE(fault([](GraphBody& g) {
              g.equations[1].outputs.push_back(g.fresh(Aval(f32, {})));
            }).find("sin gives 1 results, not 2"),
            std::string::npos);
  EXPECT_NE(
      fault([](GraphBody& g) { g.avals[0].shape = {-3}; }).find("a has a negative extent: f32[-3]"),
      std::string::npos);
}

TEST(Checker, LooksIntoSubGraphs) {
  GraphBody inner = chain(2);
  inner.equations[0].inputs[0] = 2;
  Builder b;
  const Var x = b.input(f32, {3});
  b.returns({b.with(Op::call, CallParams{std::make_shared<const GraphBody>(inner), {}, 1}, {x})});
  const std::string text = message_of([&] { check_graph(b.graph, "vt::grad"); });
  EXPECT_NE(text.find("vt::grad: the Graph is broken in the body of equation 0 (call) at equation "
                      "0: c is used before it is defined"),
            std::string::npos)
      << text;
}

}  // namespace
