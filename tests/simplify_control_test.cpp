// The simplifier on cond, while and scan: each rewrite happens (text of the result) and changes no bit of any result, whether
// loops run no rounds or many, alone, with lanes and nested.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simplify_check.hpp"

namespace {
using namespace vt_test;
using enum vt::DType;

using Vars = std::vector<Var>;
using Types = std::vector<Aval>;
using Make = std::function<Vars(Builder&, const Vars&)>;

GraphRef body_of(const Types& inputs, const Make& make) {
  Builder b;
  Vars in;
  for (const Aval& a : inputs) in.push_back(b.input(a.dtype, a.shape));
  return std::make_shared<const GraphBody>(b.returns(make(b, in)));
}

/// What one lane or one round sees: the type without axis 0.
Aval element(Aval a) {
  a.shape.erase(a.shape.begin());
  return a;
}
Types types_of(const Builder& b, const Vars& vars, const Lanes& lanes = {}, std::size_t skip = 0) {
  Types types;
  for (std::size_t i = 0; i < vars.size(); ++i) {
    const Aval& a = b.graph.aval(vars[i]);
    types.push_back(lanes && lanes.mapped[skip + i] ? element(a) : a);
  }
  return types;
}
Lanes lanes_of(std::int64_t count, const std::string& mapped) {
  Lanes lanes;
  lanes.count = count;
  for (char c : mapped) lanes.mapped.push_back(c == '1');
  return lanes;
}

Vars cond(Builder& b, Var index, const Vars& operands, const std::vector<Make>& branches, Lanes lanes = {}) {
  CondParams p;
  for (const Make& make : branches) p.branches.push_back(body_of(types_of(b, operands, lanes, 1), make));
  p.lanes = std::move(lanes);
  Vars all{index};
  all.insert(all.end(), operands.begin(), operands.end());
  return b.all(Op::cond, make_params(std::move(p)), all);
}
Vars while_loop(Builder& b, int carries, const Vars& operands, const Make& condition, const Make& body, Lanes lanes = {}) {
  WhileParams p;
  p.carries = carries;
  p.condition = body_of(types_of(b, operands, lanes), condition);
  p.body = body_of(types_of(b, operands, lanes), body);
  p.lanes = std::move(lanes);
  return b.all(Op::while_, make_params(std::move(p)), operands);
}
Vars scan(Builder& b, int carries, int sequences, std::int64_t length, const Vars& operands, const Make& body, bool reverse = false) {
  Types types = types_of(b, operands);
  for (int i = carries; i < carries + sequences; ++i) types[static_cast<std::size_t>(i)] = element(types[static_cast<std::size_t>(i)]);
  ScanParams p;
  p.carries = carries;
  p.sequences = sequences;
  p.length = length;
  p.reverse = reverse;
  p.body = body_of(types, body);
  return b.all(Op::scan, make_params(std::move(p)), operands);
}

/// An index or a number of rounds from a random integer: 0 … most.
Var small(Builder& b, Var x, int most) {
  const Aval a = b.graph.aval(x);
  const auto number = [&](int n) { return b.with(Op::full, FullParams{Scalar(n).converted(a.dtype), a}, {}); };
  return b.add(Op::min, {b.add(Op::max, {x, number(0)}), number(most)});
}
Make less(std::size_t i, std::size_t n) {
  return [=](Builder& b, const Vars& in) { return Vars{b.add(Op::lt, {in[i], in[n]})}; };
}
Var next(Builder& b, Var i) { return b.add(Op::add, {i, b.full(1)}); }

/// Both purposes must keep every bit; gives the Graph for transforming.
GraphBody simple_of(Builder& b, const Vars& results) {
  const GraphBody& g = b.returns(results);
  simplified(g, 2, SimplifyFor::running);
  return simplified(g, 1);
}
std::string text_of(Builder& b, const Vars& results) { return to_text(simple_of(b, results)); }
const Equation& only(const GraphBody& g, Op op) {
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

// --- dead results and operands ---------------------------------------------------------------------------------------

TEST(SimplifyCond, DropsDeadResultsAndOperands) {
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {3}), y = b.input(f32, {3}), z = b.input(f32, {3});
  const Vars out = cond(b, i, {x, y, z},
                        {[](Builder& c, const Vars& in) { return Vars{c.add(Op::sin, {in[1]}), c.add(Op::cos, {in[0]}), in[2]}; },
                         [](Builder& c, const Vars& in) { return Vars{c.add(Op::exp, {in[2]}), c.add(Op::log, {in[0]}), in[1]}; }});
  EXPECT_EQ(text_of(b, {out[1]}), R"({ lambda a:i32[] b:f32[3] c:f32[3] d:f32[3] .
  let e:f32[3] = cond a b
        { lambda a:f32[3] .
          let b:f32[3] = cos a
          in (b) }
        { lambda a:f32[3] .
          let b:f32[3] = log a
          in (b) }
  in (e) })");
}

TEST(SimplifyCond, DropsDeadResultsAndOperandsOfLanes) {
  Builder b;
  const Var i = b.input(i32, {4}), x = b.input(f32, {4, 3}), y = b.input(f32, {3}), z = b.input(f32, {4, 3});
  const Vars out = cond(b, i, {x, y, z},
                        {[](Builder& c, const Vars& in) { return Vars{c.add(Op::sin, {in[0]}), c.add(Op::cos, {in[2]})}; },
                         [](Builder& c, const Vars& in) { return Vars{c.add(Op::exp, {in[0]}), c.add(Op::add, {in[1], in[2]})}; }},
                        lanes_of(4, "1101"));
  EXPECT_EQ(text_of(b, {out[1]}), R"({ lambda a:i32[4] b:f32[4,3] c:f32[3] d:f32[4,3] .
  let e:f32[4,3] = cond[lanes=4, mapped=101] a c d
        { lambda a:f32[3] b:f32[3] .
          let c:f32[3] = cos b
          in (c) }
        { lambda a:f32[3] b:f32[3] .
          let c:f32[3] = add a b
          in (c) }
  in (e) })");
}

TEST(SimplifyWhile, DropsCarriesThatNobodyNeeds) {
  // d is needed by nobody but e, and e by nobody but d; c is needed by the result b only.
  Builder b;
  const Var i = b.input(i32, {}), n = small(b, b.input(i32, {}), 5), x = b.input(f32, {3}), y = b.input(f32, {3}), p = b.input(f32, {3}),
            q = b.input(f32, {3});
  const Vars out = while_loop(b, 5, {small(b, i, 5), x, y, p, q, n}, less(0, 5), [](Builder& c, const Vars& in) {
    return Vars{next(c, in[0]), c.add(Op::add, {in[1], in[2]}), c.add(Op::sin, {in[2]}), c.add(Op::mul, {in[3], in[4]}),
                c.add(Op::sub, {in[4], in[3]})};
  });
  const GraphBody s = simple_of(b, {out[1]});
  EXPECT_EQ(only(s, Op::while_).as<WhileParams>().carries, 3);
  EXPECT_EQ(only(s, Op::while_).inputs.size(), 4u);
  EXPECT_EQ(ops(*only(s, Op::while_).as<WhileParams>().body), "full add add sin");
}

TEST(SimplifyWhile, DropsCarriesThatNobodyNeedsOfLanes) {
  Builder b;
  const Var i = b.input(i32, {3}), n = small(b, b.input(i32, {}), 5), x = b.input(f32, {3, 2}), y = b.input(f32, {3, 2});
  const Vars out = while_loop(
      b, 3, {small(b, i, 5), x, y, n}, less(0, 3),
      [](Builder& c, const Vars& in) { return Vars{next(c, in[0]), c.add(Op::sin, {in[1]}), c.add(Op::mul, {in[1], in[2]})}; }, lanes_of(3, "1110"));
  const GraphBody s = simple_of(b, {out[1]});
  EXPECT_EQ(describe(Op::while_, only(s, Op::while_).params), "while[carries=2, lanes=3, mapped=110]");
}

TEST(SimplifyScan, DropsDeadResultsCarriesAndSequences) {
  Builder b;
  const Var x = b.input(f32, {}), y = b.input(f32, {}), s = b.input(f32, {6}), t = b.input(f32, {6}), w = b.input(f32, {});
  const Vars out = scan(b, 2, 2, 6, {x, y, s, t, w}, [](Builder& c, const Vars& in) {
    const Var a = c.add(Op::add, {in[0], in[2]}), m = c.add(Op::mul, {in[1], in[3]});
    return Vars{a, m, c.add(Op::sin, {m}), c.add(Op::cos, {a}), c.add(Op::mul, {in[4], m})};
  });
  EXPECT_EQ(text_of(b, {out[3]}), R"({ lambda a:f32[] b:f32[] c:f32[6] d:f32[6] e:f32[] .
  let f:f32[] g:f32[6] = scan[carries=1, sequences=1, length=6] a c
        { lambda a:f32[] b:f32[] .
          let c:f32[] = add a b
              d:f32[] = cos c
          in (c, d) }
  in (g) })");
}

TEST(SimplifyControl, DeadCarriesGoThroughNestedLoops) {
  // The second carry of both loops serves nobody, but each level hands it to the other.
  Builder b;
  const Var x = b.input(f32, {3}), y = b.input(f32, {3});
  const Vars out = scan(b, 2, 0, 3, {x, y}, [](Builder& c, const Vars& in) {
    return scan(c, 2, 0, 2, in, [](Builder& d, const Vars& inner) {
      const Var s = d.add(Op::sin, {inner[0]});
      return Vars{s, d.add(Op::mul, {inner[1], s})};
    });
  });
  EXPECT_EQ(text_of(b, {out[0]}), R"({ lambda a:f32[3] b:f32[3] .
  let c:f32[3] = scan[carries=1, sequences=0, length=3] a
        { lambda a:f32[3] .
          let b:f32[3] = scan[carries=1, sequences=0, length=2] a
                { lambda a:f32[3] .
                  let b:f32[3] = sin a
                  in (b) }
          in (b) }
  in (c) })");
}

TEST(SimplifyControl, DeadCarriesGoThroughBranches) {
  Builder b;
  const Var x = b.input(f32, {3}), y = b.input(f32, {3}), s = b.input(i32, {4});
  const Vars out = scan(b, 2, 1, 4, {x, y, s}, [](Builder& c, const Vars& in) {
    return cond(c, in[2], {in[0], in[1]},
                {[](Builder& d, const Vars& v) { return Vars{d.add(Op::sin, {v[0]}), d.add(Op::add, {v[0], v[1]})}; },
                 [](Builder& d, const Vars& v) { return Vars{d.add(Op::cos, {v[0]}), v[1]}; }});
  });
  const GraphBody g = simple_of(b, {out[0]});
  EXPECT_EQ(only(g, Op::scan).as<ScanParams>().carries, 1);
  EXPECT_EQ(only(*only(g, Op::scan).as<ScanParams>().body, Op::cond).inputs.size(), 2u);
}

TEST(SimplifyControl, LoopsThatNobodyNeedsGo) {
  Builder b;
  const Var x = b.input(f32, {3});
  scan(b, 1, 0, 3, {x}, [](Builder& c, const Vars& in) { return Vars{c.add(Op::sin, {in[0]})}; });
  EXPECT_EQ(ops(simple_of(b, {x})), "");
}

// --- carries that do not change --------------------------------------------------------------------------------------

TEST(SimplifyWhile, InvariantCarriesBecomeOperands) {
  Builder b;
  const Var i = b.input(i32, {}), n = b.input(i32, {}), x = b.input(f32, {3}), y = b.input(f32, {3});
  const Vars out = while_loop(b, 4, {small(b, i, 4), x, y, small(b, n, 4)}, less(0, 3),
                              [](Builder& c, const Vars& in) { return Vars{next(c, in[0]), c.add(Op::add, {in[1], in[2]}), in[2], in[3]}; });
  const GraphBody s = simple_of(b, {out[1], out[2]});
  EXPECT_EQ(only(s, Op::while_).as<WhileParams>().carries, 2);
  EXPECT_EQ(s.outputs[1], s.inputs[3]);
}

TEST(SimplifyWhile, InvariantCarriesOfLanesAreTheirOperands) {
  Builder b;
  const Var i = b.input(i32, {3}), n = b.input(i32, {3}), x = b.input(f32, {3, 2}), y = b.input(f32, {3, 2});
  const Vars out = while_loop(
      b, 4, {small(b, i, 4), x, y, small(b, n, 4)}, less(0, 3),
      [](Builder& c, const Vars& in) { return Vars{next(c, in[0]), c.add(Op::add, {in[1], in[2]}), in[2], in[3]}; }, lanes_of(3, "1111"));
  const GraphBody s = simple_of(b, {out[1], out[2]});
  EXPECT_EQ(describe(Op::while_, only(s, Op::while_).params), "while[carries=2, lanes=3, mapped=1111]");
  EXPECT_EQ(s.outputs[1], s.inputs[3]);
}

TEST(SimplifyScan, InvariantCarriesNumbersAndRowsAreKnown) {
  Builder b;
  const Var x = b.input(f32, {3}), y = b.input(f32, {3}), s = b.input(f32, {5, 3});
  const Vars out = scan(b, 3, 1, 5, {x, y, b.full(2.0f, {3}), s}, [](Builder& c, const Vars& in) {
    // y, the number 2 and the sequence come out as they went in.
    return Vars{c.add(Op::add, {in[0], c.add(Op::mul, {in[1], in[2]})}), in[1], c.full(2.0f, {3}), in[3], in[1], in[2]};
  });
  EXPECT_EQ(text_of(b, {out[0], out[1], out[2], out[3], out[4], out[5]}), R"({ lambda a:f32[3] b:f32[3] c:f32[5,3] .
  let d:f32[3] = full[value=2.0]
      e:f32[5,3] = broadcast_in_dim[shape=[5,3], axes=(1,)] b
      f:f32[5,3] = full[value=2.0]
      g:f32[] = full[value=2.0]
      h:f32[3] = mul b g
      i:f32[3] = scan[carries=1, sequences=0, length=5] a h
        { lambda a:f32[3] b:f32[3] .
          let c:f32[3] = add a b
          in (c) }
  in (i, b, d, c, e, f) })");
}

TEST(SimplifyControl, NestedLoopsWithNothingLeftToDoGo) {
  Builder b;
  const Var x = b.input(f32, {3}), y = b.input(f32, {3});
  const Vars out = scan(b, 2, 0, 3, {x, y}, [](Builder& c, const Vars& in) {
    return scan(c, 2, 0, 2, in, [](Builder&, const Vars& inner) { return Vars{inner[0], inner[1]}; });
  });
  EXPECT_EQ(ops(simple_of(b, {out[0], out[1]})), "");
}

// --- what no round changes moves out ---------------------------------------------------------------------------------

TEST(SimplifyWhile, InvariantCodeMovesInFront) {
  Builder b;
  const Var i = b.input(i32, {}), n = b.input(i32, {}), x = b.input(f32, {3}), w = b.input(f32, {3, 3});
  const Vars out = while_loop(
      b, 2, {small(b, i, 4), x, n, w}, [](Builder& c, const Vars& in) { return Vars{c.add(Op::lt, {in[0], small(c, in[2], 5)})}; },
      [](Builder& c, const Vars& in) {
        const Var s = c.with(Op::reduce_sum, AxesParams{{1}}, {c.add(Op::exp, {in[3]})});
        return Vars{next(c, in[0]), c.add(Op::add, {in[1], s})};
      });
  const GraphBody s = simple_of(b, {out[1]});
  EXPECT_EQ(ops(s), "full max full min max full min exp reduce_sum while");
  EXPECT_EQ(ops(*only(s, Op::while_).as<WhileParams>().condition), "lt");
  EXPECT_EQ(ops(*only(s, Op::while_).as<WhileParams>().body), "full add add");
}

TEST(SimplifyWhile, InvariantCodeOfLanesMovesOnlyIfAllLanesShareIt) {
  Builder b;
  const Var i = b.input(i32, {3}), n = b.input(i32, {}), x = b.input(f32, {3, 2}), v = b.input(f32, {2}), w = b.input(f32, {3, 2});
  const Vars out = while_loop(
      b, 2, {small(b, i, 4), x, small(b, n, 4), v, w}, less(0, 2),
      [](Builder& c, const Vars& in) {
        return Vars{next(c, in[0]), c.add(Op::add, {c.add(Op::mul, {in[1], c.add(Op::sin, {in[3]})}), c.add(Op::cos, {in[4]})})};
      },
      lanes_of(3, "11001"));
  const GraphBody s = simple_of(b, {out[1]});
  EXPECT_EQ(ops(*only(s, Op::while_).as<WhileParams>().body), "full add mul cos add");
  EXPECT_EQ(describe(Op::while_, only(s, Op::while_).params), "while[carries=2, lanes=3, mapped=11010]");
}

TEST(SimplifyScan, WhatWouldGrowStaysInside) {
  Builder b;
  const Var x = b.input(f32, {500, 500}), v = b.input(f32, {500});
  const Vars out = scan(b, 1, 0, 3, {x, v}, [](Builder& c, const Vars& in) {
    const Var wide = c.broadcast(in[1], {500, 500}, {1}), tall = c.broadcast(in[1], {500, 500}, {0});
    const Var product = c.add(Op::atan2, {wide, tall});
    const Var rows = c.with(Op::reduce_max, AxesParams{{1}}, {c.add(Op::div, {tall, wide})});
    const Var index = c.iota(f32, {500, 500}, 1);
    return Vars{c.add(Op::add, {c.add(Op::mul, {in[0], product}), c.add(Op::sub, {index, c.broadcast(rows, {500, 500}, {0})})})};
  });
  const GraphBody s = simplify(b.returns({out[0]}));
  check_graph(s, "simplify");
  // The maxima of rows are as small as v; the product of two broadcasts, the index and all broadcasts are not.
  EXPECT_EQ(ops(s), "broadcast_in_dim broadcast_in_dim div reduce_max scan");
  EXPECT_EQ(ops(*only(s, Op::scan).as<ScanParams>().body), "broadcast_in_dim broadcast_in_dim atan2 iota mul broadcast_in_dim sub add");
}

TEST(SimplifyScan, InvariantCodeOfNestedLoopsMovesAllTheWay) {
  Builder b;
  const Var x = b.input(f32, {3}), w = b.input(f32, {3}), s = b.input(f32, {4, 3});
  const Vars out = scan(b, 1, 1, 4, {x, s, w}, [](Builder& c, const Vars& in) {
    return scan(c, 1, 0, 2, {in[0], in[1], in[2]}, [](Builder& d, const Vars& inner) {
      const Var fixed = d.add(Op::sin, {inner[2]}), row = d.add(Op::cos, {inner[1]});
      return Vars{d.add(Op::add, {inner[0], d.add(Op::mul, {fixed, row})})};
    });
  });
  const GraphBody g = simple_of(b, {out[0]});
  EXPECT_EQ(ops(g), "sin scan");
  const GraphBody& outer = *only(g, Op::scan).as<ScanParams>().body;
  EXPECT_EQ(ops(outer), "cos mul scan");
  EXPECT_EQ(ops(*only(outer, Op::scan).as<ScanParams>().body), "add");
}

TEST(SimplifyControl, LoopsMoveOnlyWhereTheyWouldRunAnyhow) {
  const auto count_up = [](Builder& c, Var limit) {
    return while_loop(c, 1, {c.full(0.0f), limit}, less(0, 1),
                      [](Builder& d, const Vars& in) { return Vars{d.add(Op::add, {in[0], d.full(1.0f)})}; })[0];
  };
  {  // Out of a scan, which has rounds, a while may go.
    Builder b;
    const Var x = b.input(f32, {}), n = b.convert(small(b, b.input(i32, {}), 4), f32);
    const Vars out = scan(b, 1, 0, 3, {x, n}, [&](Builder& c, const Vars& in) { return Vars{c.add(Op::sub, {count_up(c, in[1]), in[0]})}; });
    EXPECT_EQ(ops(*only(simple_of(b, {out[0]}), Op::scan).as<ScanParams>().body), "sub");
  }
  {  // Out of a while, which may have none, it may not; not even inside a branch.
    Builder b;
    const Var i = b.input(i32, {}), x = b.input(f32, {}), n = b.convert(small(b, b.input(i32, {}), 4), f32), t = b.input(i32, {});
    const Vars out = while_loop(b, 2, {small(b, i, 4), x, n, b.full(4), t}, less(0, 3), [&](Builder& c, const Vars& in) {
      const Vars chosen = cond(c, in[4], {in[2]},
                               {[&](Builder& d, const Vars& v) { return Vars{count_up(d, v[0])}; },
                                [](Builder& d, const Vars& v) { return Vars{d.add(Op::sin, {v[0]})}; }});
      return Vars{next(c, in[0]), c.add(Op::sub, {count_up(c, in[2]), c.add(Op::mul, {chosen[0], in[1]})})};
    });
    const GraphBody g = simple_of(b, {out[1]});
    EXPECT_EQ(ops(*only(g, Op::while_).as<WhileParams>().body), "cond full add full while mul sub");
  }
  {  // A branch of plain code and a scan may.
    Builder b;
    const Var i = b.input(i32, {}), x = b.input(f32, {}), w = b.input(f32, {}), t = b.input(i32, {});
    const Vars out = while_loop(b, 2, {small(b, i, 4), x, w, b.full(4), t}, less(0, 3), [&](Builder& c, const Vars& in) {
      const Vars chosen = cond(c, in[4], {in[2]},
                               {[](Builder& d, const Vars& v) { return Vars{d.add(Op::cos, {v[0]})}; },
                                [](Builder& d, const Vars& v) { return Vars{d.add(Op::sin, {v[0]})}; }});
      const Vars looped = scan(c, 1, 0, 3, {in[2]}, [](Builder& d, const Vars& v) { return Vars{d.add(Op::sin, {v[0]})}; });
      return Vars{next(c, in[0]), c.add(Op::sub, {looped[0], c.add(Op::mul, {chosen[0], in[1]})})};
    });
    const GraphBody g = simple_of(b, {out[1]});
    EXPECT_EQ(ops(*only(g, Op::while_).as<WhileParams>().body), "full add mul sub");
  }
}

TEST(SimplifyControl, DerivativeRulesOfTheUserStayInTheLoop) {
  const auto make = [](Builder& b) {
    const Var x = b.input(f32, {3}), w = b.input(f32, {3});
    return scan(b, 1, 0, 4, {x, w}, [](Builder& c, const Vars& in) {
      CallParams p;
      p.body = body_of({Aval(f32, {3})}, [](Builder& d, const Vars& v) { return Vars{d.add(Op::sin, {v[0]})}; });
      CustomRule rule;
      rule.forward = rule.backward = [](std::span<const vt::Tensor> x) { return std::vector<vt::Tensor>(x.begin(), x.end()); };
      p.rule = std::make_shared<const CustomRule>(std::move(rule));
      p.explicit_operands = 1;
      return Vars{c.add(Op::add, {in[0], c.with(Op::custom_vjp, std::move(p), {in[1]})})};
    });
  };
  Builder b;
  const Vars out = make(b);
  const GraphBody& g = b.returns({out[0]});
  EXPECT_EQ(ops(simplified(g)), "scan");
  EXPECT_EQ(ops(simplified(g, 1, SimplifyFor::running)), "sin scan");
}

TEST(SimplifyControl, WhatMovesKeepsItsLine) {
  Builder b;
  const Var x = b.input(f32, {3}), w = b.input(f32, {3});
  const Vars out =
      scan(b, 1, 0, 4, {x, w}, [](Builder& c, const Vars& in) { return Vars{c.add(Op::mul, {in[0], c.add(Op::sin, {in[1]}, 17)}, 18)}; });
  b.graph.equations.back().where = {"/somewhere/else/user.cpp", 16};
  const GraphBody g = simple_of(b, {out[0]});
  EXPECT_EQ(g.equations[0].where.line, 17);
  EXPECT_EQ(g.equations[1].where.line, 16);
  EXPECT_EQ(g.equations[1].as<ScanParams>().body->equations[0].where.line, 18);
}

// --- choices that are made -------------------------------------------------------------------------------------------

const std::vector<Make>& three_branches() {
  static const std::vector<Make> branches{[](Builder& c, const Vars& in) { return Vars{c.add(Op::sin, {in[0]}), in[1]}; },
                                          [](Builder& c, const Vars& in) { return Vars{c.add(Op::cos, {in[1]}), in[1]}; },
                                          [](Builder& c, const Vars& in) { return Vars{c.add(Op::exp, {in[0]}), in[1]}; }};
  return branches;
}

TEST(SimplifyCond, AKnownIndexTakesItsBranch) {
  const auto left = [](const std::function<Var(Builder&)>& index) {
    Builder b;
    const Var x = b.input(f32, {3}), y = b.input(f32, {3});
    return ops(simple_of(b, {cond(b, index(b), {x, y}, three_branches())[0]}));
  };
  EXPECT_EQ(left([](Builder& b) { return b.full(1); }), "cos");
  EXPECT_EQ(left([](Builder& b) { return b.full(-5); }), "sin");  // clamped
  EXPECT_EQ(left([](Builder& b) { return b.full(7); }), "exp");
  EXPECT_EQ(left([](Builder& b) { return b.constant<std::int32_t>({2}, {}); }), "exp");
}

TEST(SimplifyCond, AKnownIndexOfLanesIsAChoiceAmongOne) {
  Builder b;
  const Var x = b.input(f32, {4, 3}), y = b.input(f32, {4, 3});
  const GraphBody s = simple_of(b, {cond(b, b.full(1, {4}), {x, y}, three_branches(), lanes_of(4, "111"))[0]});
  EXPECT_EQ(only(s, Op::cond).as<CondParams>().branches.size(), 1u);
  EXPECT_EQ(describe(Op::cond, only(s, Op::cond).params), "cond[lanes=4, mapped=01]");
}

TEST(SimplifyCond, EqualBranchesAreOne) {
  const Make twice = [](Builder& c, const Vars& in) { return Vars{c.add(Op::add, {c.add(Op::sin, {in[0]}), in[1]})}; };
  const Make swapped = [](Builder& c, const Vars& in) {
    c.add(Op::exp, {in[0]});
    return Vars{c.add(Op::add, {c.add(Op::sin, {in[0]}), c.add(Op::neg, {c.add(Op::neg, {in[1]})})})};
  };
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {3}), y = b.input(f32, {3});
  EXPECT_EQ(ops(simple_of(b, {cond(b, i, {x, y}, {twice, swapped, twice})[0]})), "sin add");
}

TEST(SimplifyCond, ResultsThatAllBranchesHandOnAreTheOperand) {
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {3}), y = b.input(f32, {3});
  const Vars out = cond(b, i, {x, y}, three_branches());
  const GraphBody s = simple_of(b, {out[0], out[1]});
  EXPECT_EQ(ops(s), "cond");
  EXPECT_EQ(only(s, Op::cond).outputs.size(), 1u);
  EXPECT_EQ(s.outputs[1], s.inputs[2]);
}

TEST(SimplifyCond, ResultsThatAllBranchesOfLanesHandOn) {
  Builder b;
  const Var i = b.input(i32, {2}), x = b.input(f32, {2, 3}), y = b.input(f32, {2, 3}), z = b.input(f32, {3});
  const Vars mapped = cond(b, i, {x, y}, three_branches(), lanes_of(2, "111")), shared = cond(b, i, {x, z}, three_branches(), lanes_of(2, "110"));
  const GraphBody s = simple_of(b, {mapped[1], shared[1]});
  EXPECT_EQ(ops(s), "broadcast_in_dim");
  EXPECT_EQ(s.outputs[0], s.inputs[2]);
}

TEST(SimplifyCond, NumbersThatAllBranchesGiveAreKnown) {
  const Make zero = [](Builder& c, const Vars& in) { return Vars{c.full(0.5f, {3}), c.add(Op::sin, {in[0]})}; };
  const Make half = [](Builder& c, const Vars& in) { return Vars{c.full(0.5f, {3}), c.add(Op::cos, {in[0]})}; };
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {3}), k = b.input(i32, {2}), y = b.input(f32, {2, 3});
  EXPECT_EQ(ops(simple_of(b, {cond(b, i, {x}, {zero, half})[0], cond(b, k, {y}, {zero, half}, lanes_of(2, "11"))[0]})), "full full");
}

TEST(SimplifyCond, ResultsOfOneMakingAreOne) {
  const auto twice = [](Op op) {
    return [op](Builder& c, const Vars& in) {
      const Var v = c.add(op, {in[0]});
      return Vars{v, v, c.add(Op::neg, {v})};
    };
  };
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {3});
  const Vars out = cond(b, i, {x}, {twice(Op::sin), twice(Op::cos)});
  const GraphBody s = simple_of(b, {out[0], out[1], out[2]});
  EXPECT_EQ(s.outputs[0], s.outputs[1]);
  EXPECT_EQ(only(s, Op::cond).outputs.size(), 2u);
}

TEST(SimplifyScan, NoRoundsAndOneRound) {
  for (const bool reverse : {false, true}) {
    for (const std::int64_t length : {0, 1}) {
      Builder b;
      const Var x = b.input(f32, {3}), s = b.input(f32, {length, 3}), w = b.input(f32, {3});
      const Vars out = scan(
          b, 1, 1, length, {x, s, w},
          [](Builder& c, const Vars& in) {
            const Var v = c.add(Op::add, {c.add(Op::mul, {in[0], in[2]}), in[1]});
            return Vars{v, c.add(Op::sin, {v}), in[0]};
          },
          reverse);
      EXPECT_EQ(ops(simple_of(b, {out[0], out[1], out[2]})), length ? "reshape mul add sin reshape reshape" : "full");
    }
  }
}

TEST(SimplifyWhile, AConditionThatIsFalse) {
  {
    Builder b;
    const Var x = b.input(f32, {3});
    const Vars out = while_loop(
        b, 1, {x}, [](Builder& c, const Vars&) { return Vars{c.full(false)}; },
        [](Builder& c, const Vars& in) { return Vars{c.add(Op::sin, {in[0]})}; });
    EXPECT_EQ(ops(simple_of(b, {out[0]})), "");
  }
  {  // before the first round: 4 < 4
    Builder b;
    const Var x = b.input(f32, {3});
    const Vars out = while_loop(b, 2, {b.full(4), x, b.full(4)}, less(0, 2),
                                [](Builder& c, const Vars& in) { return Vars{next(c, in[0]), c.add(Op::sin, {in[1]})}; });
    EXPECT_EQ(ops(simple_of(b, {out[1]})), "");
  }
  {  // 3 < 4 is not
    Builder b;
    const Var x = b.input(f32, {3});
    const Vars out = while_loop(b, 2, {b.full(3), x, b.full(4)}, less(0, 2),
                                [](Builder& c, const Vars& in) { return Vars{next(c, in[0]), c.add(Op::sin, {in[1]})}; });
    EXPECT_EQ(ops(simple_of(b, {out[1]})), "full while");
  }
  {  // of lanes
    Builder b;
    const Var x = b.input(f32, {2, 3});
    const Vars out = while_loop(
        b, 2, {b.full(4, {2}), x, b.full(4)}, less(0, 2), [](Builder& c, const Vars& in) { return Vars{next(c, in[0]), c.add(Op::sin, {in[1]})}; },
        lanes_of(2, "110"));
    EXPECT_EQ(ops(simple_of(b, {out[1]})), "");
  }
}

// --- what is given twice, or to everyone -----------------------------------------------------------------------------

TEST(SimplifyControl, OperandsGivenTwiceAreOne) {
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {3}), s = b.input(f32, {4, 3});
  const Make add = [](Builder& c, const Vars& in) { return Vars{c.add(Op::sub, {c.add(Op::sin, {in[0]}), in[1]})}; };
  const Make mul = [](Builder& c, const Vars& in) { return Vars{c.add(Op::div, {c.add(Op::cos, {in[1]}), in[0]})}; };
  const Vars chosen = cond(b, i, {x, x}, {add, mul});
  const Vars out = scan(b, 1, 2, 4, {x, s, s, x, x}, [](Builder& c, const Vars& in) {
    return Vars{c.add(Op::add, {c.add(Op::mul, {in[0], in[3]}), c.add(Op::sub, {in[1], c.add(Op::mul, {in[2], in[4]})})})};
  });
  const GraphBody g = simple_of(b, {chosen[0], out[0]});
  EXPECT_EQ(only(g, Op::cond).inputs.size(), 2u);
  EXPECT_EQ(only(g, Op::scan).inputs.size(), 3u);
}

TEST(SimplifyControl, NumbersAreKnownInside) {
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {3}), zeros = b.full(-0.0f, {3}), ones = b.full(1.0f, {4, 3});
  const Make add = [](Builder& c, const Vars& in) { return Vars{c.add(Op::add, {in[0], in[1]})}; };
  const Make sin = [](Builder& c, const Vars& in) { return Vars{c.add(Op::sin, {in[0]})}; };
  const Vars chosen = cond(b, i, {x, zeros}, {add, sin});
  const Vars out = scan(b, 1, 1, 4, {x, ones}, [](Builder& c, const Vars& in) { return Vars{c.add(Op::sin, {c.add(Op::mul, {in[0], in[1]})})}; });
  const GraphBody g = simple_of(b, {chosen[0], out[0]});
  EXPECT_EQ(ops(*only(g, Op::cond).as<CondParams>().branches[0]), "");
  EXPECT_EQ(ops(*only(g, Op::scan).as<ScanParams>().body), "sin");
}

TEST(SimplifyControl, WhatIsTheSameForAllIsShared) {
  Builder b;
  const Var k = b.input(i32, {2}), x = b.input(f32, {2, 3}), v = b.input(f32, {3}), one = b.input(f32, {1, 3});
  const Var rows = b.broadcast(v, {2, 3}, {1}), stretched = b.broadcast(one, {2, 3}, {0, 1});
  const Vars chosen = cond(b, k, {x, rows}, three_branches(), lanes_of(2, "111"));
  const Vars out =
      scan(b, 1, 1, 2, {v, stretched}, [](Builder& c, const Vars& in) { return Vars{c.add(Op::sin, {c.add(Op::mul, {in[0], in[1]})})}; });
  const GraphBody g = simple_of(b, {chosen[0], out[0]});
  EXPECT_EQ(describe(Op::cond, only(g, Op::cond).params), "cond[lanes=2, mapped=110]");
  EXPECT_EQ(describe(Op::scan, only(g, Op::scan).params), "scan[carries=1, sequences=0, length=2]");
}

TEST(SimplifyControl, LanesThatDoTheSameAreOne) {
  Builder b;
  const Var i = b.input(i32, {}), n = small(b, b.input(i32, {}), 4), x = b.input(f32, {3}), y = b.input(f32, {3});
  const auto all = [&](Var v) {
    Shape shape{4};
    for (std::int64_t d : b.graph.aval(v).shape) shape.push_back(d);
    Axes axes;
    for (int a = 1; a < static_cast<int>(shape.size()); ++a) axes.push_back(a);
    return b.broadcast(v, shape, axes);
  };
  const Vars chosen = cond(b, all(i), {all(x), y}, three_branches(), lanes_of(4, "110"));
  const Vars looped = while_loop(
      b, 3, {b.full(0, {4}), all(x), all(y), n}, less(0, 3),
      [](Builder& c, const Vars& in) { return Vars{next(c, in[0]), c.add(Op::sin, {c.add(Op::mul, {in[1], in[2]})}), in[2]}; }, lanes_of(4, "1110"));
  const GraphBody g = simple_of(b, {chosen[0], chosen[1], looped[1], looped[2]});
  EXPECT_EQ(describe(Op::cond, only(g, Op::cond).params), "cond");
  EXPECT_EQ(describe(Op::while_, only(g, Op::while_).params), "while[carries=2]");
}

TEST(SimplifyControl, CarriesThatStayAlikeAreOne) {
  Builder b;
  const Var x = b.input(f32, {}), s = b.input(f32, {5});
  // 0 and 1 stay alike as long as 2 and 3 do; 4 begins as they do and goes its own way.
  const Vars out = scan(b, 5, 1, 5, {x, x, x, x, x, s}, [](Builder& c, const Vars& in) {
    return Vars{c.add(Op::add, {in[2], in[5]}), c.add(Op::add, {in[3], in[5]}), c.add(Op::sin, {in[0]}), c.add(Op::sin, {in[1]}),
                c.add(Op::mul, {in[4], in[5]})};
  });
  const GraphBody g = simple_of(b, out);
  EXPECT_EQ(only(g, Op::scan).as<ScanParams>().carries, 3);
  EXPECT_EQ(g.outputs[0], g.outputs[1]);
  EXPECT_EQ(g.outputs[2], g.outputs[3]);
}

TEST(SimplifyScan, ResultsOfOneMakingAreOne) {
  Builder b;
  const Var x = b.input(f32, {}), y = b.input(f32, {}), s = b.input(f32, {5});
  const Vars out = scan(b, 2, 1, 5, {x, y, s}, [](Builder& c, const Vars& in) {
    const Var v = c.add(Op::sin, {c.add(Op::add, {in[0], in[2]})});
    return Vars{v, v, v, v};  // the second carry begins elsewhere, but nobody looks
  });
  const GraphBody g = simple_of(b, out);
  EXPECT_EQ(describe(Op::scan, only(g, Op::scan).params), "scan[carries=1, sequences=1, length=5]");
  EXPECT_EQ(g.outputs[0], g.outputs[1]);
  EXPECT_EQ(g.outputs[2], g.outputs[3]);
}

TEST(SimplifyWhile, ResultsThatEqualOnlyAfterARoundStay) {
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {}), y = b.input(f32, {});
  const Vars out = while_loop(b, 3, {small(b, i, 3), x, y, b.full(2)}, less(0, 3), [](Builder& c, const Vars& in) {
    const Var v = c.add(Op::sin, {in[1]});
    return Vars{next(c, in[0]), v, v};
  });
  EXPECT_EQ(only(simple_of(b, {out[1], out[2]}), Op::while_).as<WhileParams>().carries, 3);
}

// --- random programs -------------------------------------------------------------------------------------------------

/// Nested control flow made at random from vectors f32[2]: values handed through, swapped, given twice, forgotten, the same in all
/// branches, rounds or lanes, so that every rewrite meets every other.
class RandomControl {
 public:
  explicit RandomControl(unsigned seed) : random_(seed) {}

  Vars statements(Builder& b, Vars pool, std::size_t results, int depth) {
    const int count = static_cast<int>(below(4)) + 1;
    for (int k = 0; k < count; ++k) {
      const Vars made = statement(b, pool, depth);
      pool.insert(pool.end(), made.begin(), made.end());
    }
    return chosen(pool, results);
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  Var any(const Vars& pool) { return pool[below(pool.size())]; }
  Vars chosen(const Vars& pool, std::size_t count) {
    Vars some;
    for (std::size_t i = 0; i < count; ++i) some.push_back(any(pool));
    return some;
  }
  /// One of 0 … 2 that is not known, from a vector.
  Var number(Builder& b, Var v) {
    const Var large = b.add(Op::gt, {b.slice(v, {0}, {1}, {1}), b.full(0.25f, {1})}),
              set = b.add(Op::lt, {b.slice(v, {1}, {2}, {1}), b.full(0.5f, {1})});
    return b.reshape(b.add(Op::add, {b.convert(large, i32), b.convert(set, i32)}), {});
  }
  Var index(Builder& b, const Vars& pool) { return below(6) == 0 ? b.full(static_cast<std::int32_t>(below(4)) - 1) : number(b, any(pool)); }
  Make body(std::size_t results, int depth, std::size_t first = 0) {
    const unsigned seed = random_();
    return [=](Builder& b, const Vars& in) {
      return RandomControl(seed).statements(b, Vars(in.begin() + static_cast<std::ptrdiff_t>(first), in.end()), results, depth - 1);
    };
  }
  /// The vector for each of the lanes: its own ones, or the same.
  Var in_lanes(Builder& b, const Vars& pool, std::int64_t lanes) {
    const Var all = b.broadcast(any(pool), {lanes, 2}, {1});
    return below(4) == 0 ? all : b.add(Op::mul, {all, b.broadcast(b.add(Op::sin, {b.iota(f32, {lanes})}), {lanes, 2}, {0})});
  }
  Var all_lanes_of(Builder& b, Var in, std::int64_t lanes) {
    Vars parts;
    for (std::int64_t k = 0; k < lanes; ++k) parts.push_back(number(b, b.reshape(b.slice(in, {k, 0}, {k + 1, 2}, {1, 1}), {2})));
    for (Var& v : parts) v = b.reshape(v, {1});
    return b.with(Op::concatenate, AxisParams{0}, parts);
  }

  Vars statement(Builder& b, const Vars& pool, int depth) {
    if (depth == 0 || below(3) == 0) {
      const Op unary[] = {Op::sin, Op::cos, Op::neg, Op::sigmoid}, binary[] = {Op::add, Op::mul, Op::sub, Op::max};
      switch (below(5)) {
        case 0: return {b.full(static_cast<float>(below(3)), {2})};
        case 1:
        case 2: return {b.add(unary[below(4)], {any(pool)})};
        default: return {b.add(binary[below(4)], {any(pool), any(pool)})};
      }
    }
    const std::size_t results = below(3) + 1, carries = below(4) + 1;
    const std::int64_t lanes = static_cast<std::int64_t>(below(3)) + 1;
    switch (below(5)) {
      case 0: {
        std::vector<Make> branches;
        for (std::size_t k = below(3) + 1; k-- > 0;) branches.push_back(body(results, depth));
        if (below(4) == 0) branches.assign(2, branches[0]);
        return cond(b, index(b, pool), chosen(pool, 3), branches);
      }
      case 1: {
        const std::int64_t length = static_cast<std::int64_t>(below(4));
        Vars operands = chosen(pool, carries);
        const std::size_t sequences = below(3);
        for (std::size_t k = 0; k < sequences; ++k) operands.push_back(in_lanes(b, pool, length));
        for (const Var v : chosen(pool, 2)) operands.push_back(v);
        Vars out = scan(b, static_cast<int>(carries), static_cast<int>(sequences), length, operands, body(carries + below(3), depth), below(2));
        for (std::size_t k = carries; k < out.size(); ++k) out[k] = b.with(Op::reduce_sum, AxesParams{{0}}, {out[k]});
        return out;
      }
      case 2: {
        Vars operands = chosen(pool, carries);
        operands.insert(operands.begin(), below(5) ? b.full(0) : b.full(2));
        for (const Var v : chosen(pool, 2)) operands.push_back(v);
        operands.push_back(index(b, pool));
        Vars out = while_loop(b, static_cast<int>(carries) + 1, operands, less(0, operands.size() - 1), counting(carries, depth));
        out.erase(out.begin());
        return out;
      }
      case 3: {
        Vars operands;
        std::string mapped = "1";
        const Var decides = in_lanes(b, pool, lanes);
        for (int k = 0; k < 3; ++k) {
          const bool own = below(3) != 0;
          operands.push_back(own ? in_lanes(b, pool, lanes) : any(pool));
          mapped += own ? '1' : '0';
        }
        std::vector<Make> branches;
        for (std::size_t k = below(3) + 1; k-- > 0;) branches.push_back(body(results, depth));
        Vars out = cond(b, all_lanes_of(b, decides, lanes), operands, branches, lanes_of(lanes, mapped));
        for (Var& v : out) v = b.with(Op::reduce_max, AxesParams{{0}}, {v});
        return out;
      }
      default: {
        Vars operands{b.full(0, {lanes})};
        std::string mapped = "1";
        for (std::size_t k = 0; k < carries; ++k) operands.push_back(in_lanes(b, pool, lanes)), mapped += '1';
        for (int k = 0; k < 2; ++k) {
          const bool own = below(2);
          operands.push_back(own ? in_lanes(b, pool, lanes) : any(pool));
          mapped += own ? '1' : '0';
        }
        operands.push_back(below(3) ? all_lanes_of(b, in_lanes(b, pool, lanes), lanes) : number(b, any(pool)));
        mapped += b.graph.aval(operands.back()).shape.empty() ? '0' : '1';
        Vars out =
            while_loop(b, static_cast<int>(carries) + 1, operands, less(0, operands.size() - 1), counting(carries, depth), lanes_of(lanes, mapped));
        out.erase(out.begin());
        for (Var& v : out) v = b.with(Op::reduce_max, AxesParams{{0}}, {v});
        return out;
      }
    }
  }
  /// A while's body: the counter, then vectors; the number of rounds is the last operand.
  Make counting(std::size_t carries, int depth) {
    const Make make = body(carries, depth, 1);
    return [=](Builder& b, const Vars& in) {
      Vars out = make(b, Vars(in.begin(), in.end() - 1));
      out.insert(out.begin(), next(b, in[0]));
      return out;
    };
  }

  std::mt19937 random_;
};

TEST(SimplifyControl, RandomProgramsKeepTheirValues) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Builder b;
    const Vars in{b.input(f32, {2}), b.input(f32, {2}), b.input(f32, {2})};
    simple_of(b, RandomControl(seed).statements(b, in, 3, 3));
    if (HasFailure()) break;
  }
}

}  // namespace
