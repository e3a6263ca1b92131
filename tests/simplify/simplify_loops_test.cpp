// The simplifier on what no iteration of a loop changes: carries become operands, code moves in
// front; and no bit of any result changes.
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

#include "control_builder.hpp"

namespace {
using namespace vt_test;
using enum vt::DType;

// --- carries that do not change ------------------------------------------------------------------

TEST(SimplifyWhile, InvariantCarriesBecomeOperands) {
  Builder b;
  const Var i = b.input(i32, {}), n = b.input(i32, {}), x = b.input(f32, {3}),
            y = b.input(f32, {3});
  const Vars out = while_loop(
      b, 4, {small(b, i, 4), x, y, small(b, n, 4)}, less(0, 3), [](Builder& c, const Vars& in) {
        return Vars{next(c, in[0]), c.add(Op::add, {in[1], in[2]}), in[2], in[3]};
      });
  const GraphBody s = simple_of(b, {out[1], out[2]});
  EXPECT_EQ(only(s, Op::while_).as<WhileParams>().carries, 2);
  EXPECT_EQ(s.outputs[1], s.inputs[3]);
}

TEST(SimplifyWhile, InvariantCarriesOfLanesAreTheirOperands) {
  Builder b;
  const Var i = b.input(i32, {3}), n = b.input(i32, {3}), x = b.input(f32, {3, 2}),
            y = b.input(f32, {3, 2});
  const Vars out = while_loop(
      b, 4, {small(b, i, 4), x, y, small(b, n, 4)}, less(0, 3),
      [](Builder& c, const Vars& in) {
        return Vars{next(c, in[0]), c.add(Op::add, {in[1], in[2]}), in[2], in[3]};
      },
      lanes_of(3, "1111"));
  const GraphBody s = simple_of(b, {out[1], out[2]});
  EXPECT_EQ(describe(Op::while_, only(s, Op::while_).params),
            "while[carries=2, lanes=3, mapped=1111]");
  EXPECT_EQ(s.outputs[1], s.inputs[3]);
}

/// An array of `rows` rows, row i of which a loop in a loop overwrites with an element of another
/// carry, which stays as long as both are true.
GraphBody loops_of_rows(float rows, float written) {
  Builder b;
  const Var i = b.input(i32, {}), n = b.input(i32, {}), x = b.input(f32, {});
  const auto is_one = [](Builder& c, float number) {
    return c.add(Op::eq, {c.full(number), c.full(1.0f)});
  };
  const auto all_rows = [&](Builder& c) {
    return c.with(Op::broadcast_in_dim, BroadcastParams{Shape{6}, {}}, {is_one(c, rows)});
  };
  const Make inner = [](Builder& c, const Vars& in) {
    const Var both = c.add(Op::or_, {in[1], in[2]}),
              row = c.with(Op::reshape, ShapeParams{Shape{1}}, {both});
    return Vars{next(c, in[0]), both, in[2], c.add(Op::dynamic_update_slice, {in[3], row, in[0]}),
                in[4]};
  };
  const Make outer = [&](Builder& c, const Vars& in) {
    const Vars made =
        while_loop(c, 5, {c.full(0), in[1], in[2], in[3], small(c, in[0], 4)}, less(0, 4), inner);
    const Var first = c.with(Op::dynamic_slice, ShapeParams{Shape{1}}, {made[3], in[0]}),
              one = c.with(Op::reshape, ShapeParams{Shape{}}, {first});
    return Vars{next(c, in[0]),
                made[1],
                made[2],
                made[3],
                c.add(Op::select, {one, c.add(Op::add, {in[4], c.full(1.0f)}), in[4]}),
                in[5]};
  };
  const Vars out = while_loop(
      b, 6,
      {small(b, i, 4), is_one(b, written), is_one(b, written), all_rows(b), x, small(b, n, 4)},
      less(0, 5), outer);
  return simple_of(b, {out[3], out[4]});
}

TEST(SimplifyWhile, RowsThatAreOverwrittenWithTheSameStay) {
  const GraphBody s = loops_of_rows(1, 1);
  const Equation& loop = only(s, Op::while_);
  EXPECT_EQ(loop.as<WhileParams>().carries, 2) << to_text(s);  // the number and the sum
  EXPECT_EQ(to_text(*loop.as<WhileParams>().body).find("while"), std::string::npos) << to_text(s);
  for (const auto& [rows, written] : {std::pair(1.0f, 0.0f), std::pair(0.0f, 1.0f)}) {
    const GraphBody kept = loops_of_rows(rows, written);
    EXPECT_NE(to_text(kept).find("dynamic_update_slice"), std::string::npos) << to_text(kept);
  }
}

TEST(SimplifyScan, InvariantCarriesNumbersAndRowsAreKnown) {
  Builder b;
  const Var x = b.input(f32, {3}), y = b.input(f32, {3}), s = b.input(f32, {5, 3});
  const Vars out = scan(b, 3, 1, 5, {x, y, b.full(2.0f, {3}), s}, [](Builder& c, const Vars& in) {
    // y, the number 2 and the sequence come out as they went in.
    return Vars{c.add(Op::add, {in[0], c.add(Op::mul, {in[1], in[2]})}),
                in[1],
                c.full(2.0f, {3}),
                in[3],
                in[1],
                in[2]};
  });
  EXPECT_EQ(text_of(b, {out[0], out[1], out[2], out[3], out[4], out[5]}),
            R"({ lambda a:f32[3] b:f32[3] c:f32[5,3] .
  let d:f32[3] = full[value=2.0]
      e:f32[5,3] = broadcast_in_dim[shape=[5,3], axes=(1,)] b
      f:f32[5,3] = full[value=2.0]
      g:f32[3] = mul b 2.0
      h:f32[3] = scan[carries=1, sequences=0, length=5] a g
        { lambda a:f32[3] b:f32[3] .
          let c:f32[3] = add a b
          in (c) }
  in (h, b, d, c, e, f) })");
}

TEST(SimplifyControl, NestedLoopsWithNothingLeftToDoGo) {
  Builder b;
  const Var x = b.input(f32, {3}), y = b.input(f32, {3});
  const Vars out = scan(b, 2, 0, 3, {x, y}, [](Builder& c, const Vars& in) {
    return scan(c, 2, 0, 2, in,
                [](Builder&, const Vars& inner) { return Vars{inner[0], inner[1]}; });
  });
  EXPECT_EQ(ops(simple_of(b, {out[0], out[1]})), "");
}

// --- what no iteration changes moves out ---------------------------------------------------------

TEST(SimplifyWhile, InvariantCodeMovesInFront) {
  Builder b;
  const Var i = b.input(i32, {}), n = b.input(i32, {}), x = b.input(f32, {3}),
            w = b.input(f32, {3, 3});
  const Vars out = while_loop(
      b, 2, {small(b, i, 4), x, n, w},
      [](Builder& c, const Vars& in) { return Vars{c.add(Op::lt, {in[0], small(c, in[2], 5)})}; },
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
  const Var i = b.input(i32, {3}), n = b.input(i32, {}), x = b.input(f32, {3, 2}),
            v = b.input(f32, {2}), w = b.input(f32, {3, 2});
  const Vars out = while_loop(
      b, 2, {small(b, i, 4), x, small(b, n, 4), v, w}, less(0, 2),
      [](Builder& c, const Vars& in) {
        return Vars{next(c, in[0]),
                    c.add(Op::add, {c.add(Op::mul, {in[1], c.add(Op::sin, {in[3]})}),
                                    c.add(Op::cos, {in[4]})})};
      },
      lanes_of(3, "11001"));
  const GraphBody s = simple_of(b, {out[1]});
  EXPECT_EQ(ops(*only(s, Op::while_).as<WhileParams>().body), "full add mul cos add");
  EXPECT_EQ(describe(Op::while_, only(s, Op::while_).params),
            "while[carries=2, lanes=3, mapped=11010]");
}

TEST(SimplifyScan, WhatWouldGrowStaysInside) {
  Builder b;
  const Var x = b.input(f32, {500, 500}), v = b.input(f32, {500});
  const Vars out = scan(b, 1, 0, 3, {x, v}, [](Builder& c, const Vars& in) {
    const Var wide = c.broadcast(in[1], {500, 500}, {1}),
              tall = c.broadcast(in[1], {500, 500}, {0});
    const Var product = c.add(Op::atan2, {wide, tall});
    const Var rows = c.with(Op::reduce_max, AxesParams{{1}}, {c.add(Op::div, {tall, wide})});
    const Var index = c.iota(f32, {500, 500}, 1);
    return Vars{c.add(Op::add, {c.add(Op::mul, {in[0], product}),
                                c.add(Op::sub, {index, c.broadcast(rows, {500, 500}, {0})})})};
  });
  const GraphBody s = simplify(b.returns({out[0]}));
  check_graph(s, "simplify");
  // The maxima of rows are as small as v; the product of two broadcasts, the index and all
  // broadcasts are not.
  EXPECT_EQ(ops(s), "broadcast_in_dim broadcast_in_dim div reduce_max scan");
  EXPECT_EQ(ops(*only(s, Op::scan).as<ScanParams>().body),
            "broadcast_in_dim broadcast_in_dim atan2 iota mul broadcast_in_dim sub add");
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
    return while_loop(c, 1, {c.full(0.0f), limit}, less(0, 1), [](Builder& d, const Vars& in) {
      return Vars{d.add(Op::add, {in[0], d.full(1.0f)})};
    })[0];
  };
  {  // Out of a scan, which has iterations, a while may go.
    Builder b;
    const Var x = b.input(f32, {}), n = b.convert(small(b, b.input(i32, {}), 4), f32);
    const Vars out = scan(b, 1, 0, 3, {x, n}, [&](Builder& c, const Vars& in) {
      return Vars{c.add(Op::sub, {count_up(c, in[1]), in[0]})};
    });
    EXPECT_EQ(ops(*only(simple_of(b, {out[0]}), Op::scan).as<ScanParams>().body), "sub");
  }
  {  // Out of a while, which may have none, it may not; not even inside a branch.
    Builder b;
    const Var i = b.input(i32, {}), x = b.input(f32, {}),
              n = b.convert(small(b, b.input(i32, {}), 4), f32), t = b.input(i32, {});
    const Vars out = while_loop(
        b, 2, {small(b, i, 4), x, n, b.full(4), t}, less(0, 3), [&](Builder& c, const Vars& in) {
          const Vars chosen =
              cond(c, in[4], {in[2]},
                   {[&](Builder& d, const Vars& v) { return Vars{count_up(d, v[0])}; },
                    [](Builder& d, const Vars& v) { return Vars{d.add(Op::sin, {v[0]})}; }});
          return Vars{next(c, in[0]),
                      c.add(Op::sub, {count_up(c, in[2]), c.add(Op::mul, {chosen[0], in[1]})})};
        });
    const GraphBody g = simple_of(b, {out[1]});
    EXPECT_EQ(ops(*only(g, Op::while_).as<WhileParams>().body), "cond full add full while mul sub");
  }
  {  // A branch of plain code and a scan may.
    Builder b;
    const Var i = b.input(i32, {}), x = b.input(f32, {}), w = b.input(f32, {}),
              t = b.input(i32, {});
    const Vars out = while_loop(
        b, 2, {small(b, i, 4), x, w, b.full(4), t}, less(0, 3), [&](Builder& c, const Vars& in) {
          const Vars chosen =
              cond(c, in[4], {in[2]},
                   {[](Builder& d, const Vars& v) { return Vars{d.add(Op::cos, {v[0]})}; },
                    [](Builder& d, const Vars& v) { return Vars{d.add(Op::sin, {v[0]})}; }});
          const Vars looped = scan(c, 1, 0, 3, {in[2]}, [](Builder& d, const Vars& v) {
            return Vars{d.add(Op::sin, {v[0]})};
          });
          return Vars{next(c, in[0]),
                      c.add(Op::sub, {looped[0], c.add(Op::mul, {chosen[0], in[1]})})};
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
      p.body = body_of({Aval(f32, {3})},
                       [](Builder& d, const Vars& v) { return Vars{d.add(Op::sin, {v[0]})}; });
      CustomRule rule;
      rule.forward = rule.backward = [](std::span<const vt::Tensor> x) {
        return std::vector<vt::Tensor>(x.begin(), x.end());
      };
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
  const Vars out = scan(b, 1, 0, 4, {x, w}, [](Builder& c, const Vars& in) {
    return Vars{c.add(Op::mul, {in[0], c.add(Op::sin, {in[1]}, 17)}, 18)};
  });
  b.graph.equations.back().where = {"/somewhere/else/user.cpp", 16};
  const GraphBody g = simple_of(b, {out[0]});
  EXPECT_EQ(g.equations[0].where.line, 17);
  EXPECT_EQ(g.equations[1].where.line, 16);
  EXPECT_EQ(g.equations[1].as<ScanParams>().body->equations[0].where.line, 18);
}

using vt::Tensor;

/// Loops in loops, of which each carries zeros that its body may or may not keep.
Tensor loops_of_zeros(int depth, const Tensor& x) {
  using State = std::tuple<Tensor, Tensor, Tensor, Tensor>;
  if (depth == 0) return x * 0.5;
  const auto body = [depth](const State& s) {
    const auto& [a, b, c, i] = s;
    const Tensor inner = loops_of_zeros(depth - 1, a);
    return State(a * b, vt::where(c > 0.0, b, c), vt::flip(c) + inner * 0.5, i + 1);
  };
  const Tensor zeros = vt::zeros({3}, vt::f64);
  const State first(x * 0.0 + zeros, zeros, zeros, vt::tensor(0));
  const auto goes_on = [](const State& s) { return std::get<3>(s) < 2; };
  return std::get<0>(vt::while_loop(goes_on, body, first)) + x;
}
// Which of them stay was asked for each loop until nothing changed, and each time of all inside:
// fourteen took half a minute.
TEST(SimplifyLoops, NestedCarriesOfOneNumberTakeNoTime) {
  const std::clock_t begin = std::clock();
  const Tensor all =
      vt::jit([](Tensor x) { return loops_of_zeros(14, x); })(vt::ones({3}, vt::f64));
  EXPECT_EQ(all[1].item<double>(), 1.0);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 8);
}

}  // namespace
