// The simplifier on cond, while, scan and checkpoint: each rewrite happens (text of the result) and
// changes no bit of any result, whether loops run no iterations or many, alone, with lanes and
// nested.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control_builder.hpp"

namespace {
using namespace vt_test;
using enum vt::DType;

// --- dead results and operands -------------------------------------------------------------------

TEST(SimplifyCond, DropsDeadResultsAndOperands) {
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {3}), y = b.input(f32, {3}),
            z = b.input(f32, {3});
  const Vars out = cond(b, i, {x, y, z},
                        {[](Builder& c, const Vars& in) {
                           return Vars{c.add(Op::sin, {in[1]}), c.add(Op::cos, {in[0]}), in[2]};
                         },
                         [](Builder& c, const Vars& in) {
                           return Vars{c.add(Op::exp, {in[2]}), c.add(Op::log, {in[0]}), in[1]};
                         }});
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
  const Var i = b.input(i32, {4}), x = b.input(f32, {4, 3}), y = b.input(f32, {3}),
            z = b.input(f32, {4, 3});
  const Vars out = cond(b, i, {x, y, z},
                        {[](Builder& c, const Vars& in) {
                           return Vars{c.add(Op::sin, {in[0]}), c.add(Op::cos, {in[2]})};
                         },
                         [](Builder& c, const Vars& in) {
                           return Vars{c.add(Op::exp, {in[0]}), c.add(Op::add, {in[1], in[2]})};
                         }},
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
  const Var i = b.input(i32, {}), n = small(b, b.input(i32, {}), 5), x = b.input(f32, {3}),
            y = b.input(f32, {3}), p = b.input(f32, {3}), q = b.input(f32, {3});
  const Vars out =
      while_loop(b, 5, {small(b, i, 5), x, y, p, q, n}, less(0, 5), [](Builder& c, const Vars& in) {
        return Vars{next(c, in[0]), c.add(Op::add, {in[1], in[2]}), c.add(Op::sin, {in[2]}),
                    c.add(Op::mul, {in[3], in[4]}), c.add(Op::sub, {in[4], in[3]})};
      });
  const GraphBody s = simple_of(b, {out[1]});
  EXPECT_EQ(only(s, Op::while_).as<WhileParams>().carries, 3);
  EXPECT_EQ(only(s, Op::while_).inputs.size(), 4u);
  EXPECT_EQ(ops(*only(s, Op::while_).as<WhileParams>().body), "full add add sin");
}

TEST(SimplifyWhile, DropsCarriesThatNobodyNeedsOfLanes) {
  Builder b;
  const Var i = b.input(i32, {3}), n = small(b, b.input(i32, {}), 5), x = b.input(f32, {3, 2}),
            y = b.input(f32, {3, 2});
  const Vars out = while_loop(
      b, 3, {small(b, i, 5), x, y, n}, less(0, 3),
      [](Builder& c, const Vars& in) {
        return Vars{next(c, in[0]), c.add(Op::sin, {in[1]}), c.add(Op::mul, {in[1], in[2]})};
      },
      lanes_of(3, "1110"));
  const GraphBody s = simple_of(b, {out[1]});
  EXPECT_EQ(describe(Op::while_, only(s, Op::while_).params),
            "while[carries=2, lanes=3, mapped=110]");
}

TEST(SimplifyScan, DropsDeadResultsCarriesAndSequences) {
  Builder b;
  const Var x = b.input(f32, {}), y = b.input(f32, {}), s = b.input(f32, {6}),
            t = b.input(f32, {6}), w = b.input(f32, {});
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
                {[](Builder& d, const Vars& v) {
                   return Vars{d.add(Op::sin, {v[0]}), d.add(Op::add, {v[0], v[1]})};
                 },
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

// --- choices that are made -----------------------------------------------------------------------

const std::vector<Make>& three_branches() {
  static const std::vector<Make> branches{
      [](Builder& c, const Vars& in) { return Vars{c.add(Op::sin, {in[0]}), in[1]}; },
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
  const GraphBody s =
      simple_of(b, {cond(b, b.full(1, {4}), {x, y}, three_branches(), lanes_of(4, "111"))[0]});
  EXPECT_EQ(only(s, Op::cond).as<CondParams>().branches.size(), 1u);
  EXPECT_EQ(describe(Op::cond, only(s, Op::cond).params), "cond[lanes=4, mapped=01]");
}

TEST(SimplifyCond, EqualBranchesAreOne) {
  const Make twice = [](Builder& c, const Vars& in) {
    return Vars{c.add(Op::add, {c.add(Op::sin, {in[0]}), in[1]})};
  };
  const Make swapped = [](Builder& c, const Vars& in) {
    c.add(Op::exp, {in[0]});
    return Vars{
        c.add(Op::add, {c.add(Op::sin, {in[0]}), c.add(Op::neg, {c.add(Op::neg, {in[1]})})})};
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
  const Var i = b.input(i32, {2}), x = b.input(f32, {2, 3}), y = b.input(f32, {2, 3}),
            z = b.input(f32, {3});
  const Vars mapped = cond(b, i, {x, y}, three_branches(), lanes_of(2, "111")),
             shared = cond(b, i, {x, z}, three_branches(), lanes_of(2, "110"));
  const GraphBody s = simple_of(b, {mapped[1], shared[1]});
  EXPECT_EQ(ops(s), "broadcast_in_dim");
  EXPECT_EQ(s.outputs[0], s.inputs[2]);
}

TEST(SimplifyCond, NumbersThatAllBranchesGiveAreKnown) {
  const Make zero = [](Builder& c, const Vars& in) {
    return Vars{c.full(0.5f, {3}), c.add(Op::sin, {in[0]})};
  };
  const Make half = [](Builder& c, const Vars& in) {
    return Vars{c.full(0.5f, {3}), c.add(Op::cos, {in[0]})};
  };
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {3}), k = b.input(i32, {2}),
            y = b.input(f32, {2, 3});
  EXPECT_EQ(ops(simple_of(b, {cond(b, i, {x}, {zero, half})[0],
                              cond(b, k, {y}, {zero, half}, lanes_of(2, "11"))[0]})),
            "full full");
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

TEST(SimplifyScan, NoIterationsAndOneIteration) {
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
      EXPECT_EQ(ops(simple_of(b, {out[0], out[1], out[2]})),
                length ? "reshape mul add sin reshape reshape" : "full");
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
  {  // before the first iteration: 4 < 4
    Builder b;
    const Var x = b.input(f32, {3});
    const Vars out = while_loop(
        b, 2, {b.full(4), x, b.full(4)}, less(0, 2),
        [](Builder& c, const Vars& in) { return Vars{next(c, in[0]), c.add(Op::sin, {in[1]})}; });
    EXPECT_EQ(ops(simple_of(b, {out[1]})), "");
  }
  {  // 3 < 4 is not
    Builder b;
    const Var x = b.input(f32, {3});
    const Vars out = while_loop(
        b, 2, {b.full(3), x, b.full(4)}, less(0, 2),
        [](Builder& c, const Vars& in) { return Vars{next(c, in[0]), c.add(Op::sin, {in[1]})}; });
    EXPECT_EQ(ops(simple_of(b, {out[1]})), "full while");
  }
  {  // of lanes
    Builder b;
    const Var x = b.input(f32, {2, 3});
    const Vars out = while_loop(
        b, 2, {b.full(4, {2}), x, b.full(4)}, less(0, 2),
        [](Builder& c, const Vars& in) { return Vars{next(c, in[0]), c.add(Op::sin, {in[1]})}; },
        lanes_of(2, "110"));
    EXPECT_EQ(ops(simple_of(b, {out[1]})), "");
  }
}

// --- what is given twice, or to everyone ---------------------------------------------------------

TEST(SimplifyControl, OperandsGivenTwiceAreOne) {
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {3}), s = b.input(f32, {4, 3});
  const Make add = [](Builder& c, const Vars& in) {
    return Vars{c.add(Op::sub, {c.add(Op::sin, {in[0]}), in[1]})};
  };
  const Make mul = [](Builder& c, const Vars& in) {
    return Vars{c.add(Op::div, {c.add(Op::cos, {in[1]}), in[0]})};
  };
  const Vars chosen = cond(b, i, {x, x}, {add, mul});
  const Vars out = scan(b, 1, 2, 4, {x, s, s, x, x}, [](Builder& c, const Vars& in) {
    return Vars{c.add(Op::add, {c.add(Op::mul, {in[0], in[3]}),
                                c.add(Op::sub, {in[1], c.add(Op::mul, {in[2], in[4]})})})};
  });
  const GraphBody g = simple_of(b, {chosen[0], out[0]});
  EXPECT_EQ(only(g, Op::cond).inputs.size(), 2u);
  EXPECT_EQ(only(g, Op::scan).inputs.size(), 3u);
}

TEST(SimplifyControl, NumbersAreKnownInside) {
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {3}), zeros = b.full(-0.0f, {3}),
            ones = b.full(1.0f, {4, 3});
  const Make add = [](Builder& c, const Vars& in) { return Vars{c.add(Op::add, {in[0], in[1]})}; };
  const Make sin = [](Builder& c, const Vars& in) { return Vars{c.add(Op::sin, {in[0]})}; };
  const Vars chosen = cond(b, i, {x, zeros}, {add, sin});
  const Vars out = scan(b, 1, 1, 4, {x, ones}, [](Builder& c, const Vars& in) {
    return Vars{c.add(Op::sin, {c.add(Op::mul, {in[0], in[1]})})};
  });
  const GraphBody g = simple_of(b, {chosen[0], out[0]});
  EXPECT_EQ(ops(*only(g, Op::cond).as<CondParams>().branches[0]), "");
  EXPECT_EQ(ops(*only(g, Op::scan).as<ScanParams>().body), "sin");
}

TEST(SimplifyControl, WhatIsTheSameForAllIsShared) {
  Builder b;
  const Var k = b.input(i32, {2}), x = b.input(f32, {2, 3}), v = b.input(f32, {3}),
            one = b.input(f32, {1, 3});
  const Var rows = b.broadcast(v, {2, 3}, {1}), dilated = b.broadcast(one, {2, 3}, {0, 1});
  const Vars chosen = cond(b, k, {x, rows}, three_branches(), lanes_of(2, "111"));
  const Vars out = scan(b, 1, 1, 2, {v, dilated}, [](Builder& c, const Vars& in) {
    return Vars{c.add(Op::sin, {c.add(Op::mul, {in[0], in[1]})})};
  });
  const GraphBody g = simple_of(b, {chosen[0], out[0]});
  EXPECT_EQ(describe(Op::cond, only(g, Op::cond).params), "cond[lanes=2, mapped=110]");
  EXPECT_EQ(describe(Op::scan, only(g, Op::scan).params), "scan[carries=1, sequences=0, length=2]");
}

TEST(SimplifyControl, LanesThatDoTheSameAreOne) {
  Builder b;
  const Var i = b.input(i32, {}), n = small(b, b.input(i32, {}), 4), x = b.input(f32, {3}),
            y = b.input(f32, {3});
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
      [](Builder& c, const Vars& in) {
        return Vars{next(c, in[0]), c.add(Op::sin, {c.add(Op::mul, {in[1], in[2]})}), in[2]};
      },
      lanes_of(4, "1110"));
  const GraphBody g = simple_of(b, {chosen[0], chosen[1], looped[1], looped[2]});
  EXPECT_EQ(describe(Op::cond, only(g, Op::cond).params), "cond");
  EXPECT_EQ(describe(Op::while_, only(g, Op::while_).params), "while[carries=2]");
}

TEST(SimplifyControl, CarriesThatStayAlikeAreOne) {
  Builder b;
  const Var x = b.input(f32, {}), s = b.input(f32, {5});
  // 0 and 1 stay alike as long as 2 and 3 do; 4 begins as they do and goes its own way.
  const Vars out = scan(b, 5, 1, 5, {x, x, x, x, x, s}, [](Builder& c, const Vars& in) {
    return Vars{c.add(Op::add, {in[2], in[5]}), c.add(Op::add, {in[3], in[5]}),
                c.add(Op::sin, {in[0]}), c.add(Op::sin, {in[1]}), c.add(Op::mul, {in[4], in[5]})};
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

TEST(SimplifyWhile, ResultsThatEqualOnlyAfterAIterationStay) {
  Builder b;
  const Var i = b.input(i32, {}), x = b.input(f32, {}), y = b.input(f32, {});
  const Vars out = while_loop(b, 3, {small(b, i, 3), x, y, b.full(2)}, less(0, 3),
                              [](Builder& c, const Vars& in) {
                                const Var v = c.add(Op::sin, {in[1]});
                                return Vars{next(c, in[0]), v, v};
                              });
  EXPECT_EQ(only(simple_of(b, {out[1], out[2]}), Op::while_).as<WhileParams>().carries, 3);
}

// --- checkpoint ----------------------------------------------------------------------------------

TEST(SimplifyCheckpoint, WhatNobodyNeedsGoes) {
  Builder b;
  const Var x = b.input(f32, {3}), y = b.input(f32, {3}), z = b.input(f32, {3});
  CallParams p;
  p.explicit_operands = 2;
  p.body = body_of(types_of(b, {x, y, z}), [](Builder& c, const Vars& in) {
    return Vars{c.add(Op::sin, {in[0]}), c.add(Op::cos, {in[2]}), in[1]};
  });
  const Vars out = b.all(Op::checkpoint, make_params(std::move(p)), {x, y, z});
  EXPECT_EQ(text_of(b, {out[1], out[2]}), R"({ lambda a:f32[3] b:f32[3] c:f32[3] .
  let d:f32[3] = checkpoint c
        { lambda a:f32[3] .
          let b:f32[3] = cos a
          in (b) }
  in (d, b) })");
}

}  // namespace
