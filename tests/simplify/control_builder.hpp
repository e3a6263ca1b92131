// Control flow made by hand, for the simplifier's tests:
// equations from functions that add to a Builder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simplify_check.hpp"

namespace vt_test {

using Vars = vt::Vec<Var>;
using Types = std::vector<Aval>;
using Make = std::function<Vars(Builder&, const Vars&)>;

inline GraphRef body_of(const Types& inputs, const Make& make) {
  Builder b;
  Vars in;
  for (const Aval& a : inputs) in.push_back(b.input(a.dtype, a.shape));
  return std::make_shared<const GraphBody>(b.returns(make(b, in)));
}

/// What one lane or one iteration sees: the type without axis 0.
inline Aval element(Aval a) {
  a.shape.erase(a.shape.begin());
  return a;
}
inline Types types_of(const Builder& b, const Vars& vars, const Lanes& lanes = {},
                      std::size_t skip = 0) {
  Types types;
  for (std::size_t i = 0; i < vars.size(); ++i) {
    const Aval& a = b.graph.aval(vars[i]);
    types.push_back(lanes && lanes.mapped[skip + i] ? element(a) : a);
  }
  return types;
}
inline Lanes lanes_of(std::int64_t count, const std::string& mapped) {
  Lanes lanes;
  lanes.count = count;
  for (char c : mapped) lanes.mapped.push_back(c == '1');
  return lanes;
}

inline Vars cond(Builder& b, Var index, const Vars& operands, const std::vector<Make>& branches,
                 Lanes lanes = {}) {
  CondParams p;
  for (const Make& make : branches)
    p.branches.push_back(body_of(types_of(b, operands, lanes, 1), make));
  p.lanes = std::move(lanes);
  Vars all{index};
  all.insert(all.end(), operands.begin(), operands.end());
  return b.all(Op::cond, make_params(std::move(p)), all);
}
inline Vars while_loop(Builder& b, int carries, const Vars& operands, const Make& condition,
                       const Make& body, Lanes lanes = {}) {
  WhileParams p;
  p.carries = carries;
  p.condition = body_of(types_of(b, operands, lanes), condition);
  p.body = body_of(types_of(b, operands, lanes), body);
  p.lanes = std::move(lanes);
  return b.all(Op::while_, make_params(std::move(p)), operands);
}
inline Vars scan(Builder& b, int carries, int sequences, std::int64_t length, const Vars& operands,
                 const Make& body, bool reverse = false) {
  Types types = types_of(b, operands);
  for (int i = carries; i < carries + sequences; ++i) types[i] = element(types[i]);
  ScanParams p;
  p.carries = carries;
  p.sequences = sequences;
  p.length = length;
  p.reverse = reverse;
  p.body = body_of(types, body);
  return b.all(Op::scan, make_params(std::move(p)), operands);
}

/// An index or a number of iterations from a random integer: 0 … most.
inline Var small(Builder& b, Var x, int most) {
  const Aval a = b.graph.aval(x);
  const auto number = [&](int n) {
    return b.with(Op::full, FullParams{Scalar(n).converted(a.dtype), a}, {});
  };
  return b.add(Op::min, {b.add(Op::max, {x, number(0)}), number(most)});
}
inline Make less(std::size_t i, std::size_t n) {
  return [=](Builder& b, const Vars& in) { return Vars{b.add(Op::lt, {in[i], in[n]})}; };
}
inline Var next(Builder& b, Var i) { return b.add(Op::add, {i, b.full(1)}); }

/// Both purposes must keep every bit; gives the Graph for transforming.
inline GraphBody simple_of(Builder& b, const Vars& results) {
  const GraphBody& g = b.returns(results);
  simplified(g, 2, SimplifyFor::running);
  return simplified(g, 1);
}
inline std::string text_of(Builder& b, const Vars& results) {
  return to_text(simple_of(b, results));
}
inline const Equation& only(const GraphBody& g, Op op) {
  const Equation* found = nullptr;
  int count = 0;
  for (const Equation& e : g.equations)
    if (e.op == op) {
      found = &e;
      ++count;
    }
  EXPECT_EQ(count, 1) << to_text(g);
  static const Equation none;
  return found ? *found : none;
}

}  // namespace vt_test
