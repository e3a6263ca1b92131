// The simplifier: each rewrite happens (text of the result) and changes no bit of any result
// (interpreter before and after).
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "simplify_check.hpp"

namespace {
using namespace vt_test;
using vt::Float16;
using enum vt::DType;

// --- dead code and common sub-expressions --------------------------------------------------------

TEST(Simplify, DropsDeadEquationsAndKeepsUnusedInputs) {
  Builder b;
  const Var x = b.input(f32, {3});
  b.input(f32, {2});
  b.add(Op::cos, {b.add(Op::sin, {x})});
  EXPECT_EQ(simple_ops(b, {b.add(Op::exp, {x})}), "exp");
}

TEST(Simplify, EmptyGraphsAndPassedInputs) {
  Builder b;
  const Var x = b.input(f32, {3});
  EXPECT_EQ(simple_ops(b, {x, x}), "");
  EXPECT_EQ(simplify(GraphBody{}).equations.size(), 0u);
}

TEST(Simplify, MergesEqualEquations) {
  Builder b;
  const Var x = b.input(f32, {3}), y = b.input(f32, {3});
  const Var s = b.add(Op::sin, {x}), t = b.add(Op::sin, {x});
  EXPECT_EQ(simple_ops(b, {b.add(Op::div, {s, y}), b.add(Op::div, {t, y})}), "sin div");
}

TEST(Simplify, MergesCommutedOperandsOnlyWhereTheyCommute) {
  for (const Op op : {Op::add, Op::mul}) {
    Builder b;
    const Var x = b.input(f32, {3}), y = b.input(f32, {3});
    EXPECT_EQ(simplified(b.returns({b.add(op, {x, y}), b.add(op, {y, x})})).equations.size(), 1u)
        << name_of(op);
  }
  for (const Op op : {Op::sub, Op::div, Op::max, Op::atan2}) {
    Builder b;
    const Var x = b.input(f32, {3}), y = b.input(f32, {3});
    EXPECT_EQ(simplified(b.returns({b.add(op, {x, y}), b.add(op, {y, x})})).equations.size(), 2u)
        << name_of(op);
  }
}

TEST(Simplify, ParametersTellEquationsApart) {
  Builder b;
  const Var x = b.input(f32, {3, 3});
  const auto sum = [&](int axis) { return b.with(Op::reduce_sum, AxesParams{Axes{axis}}, {x}); };
  EXPECT_EQ(simple_ops(b, {sum(0), sum(1), sum(0)}), "reduce_sum reduce_sum");
  Builder c;
  const Var y = c.input(f32, {3});
  EXPECT_EQ(
      simplified(c.returns({c.add(Op::mul, {y, c.full(2.0f)}), c.add(Op::mul, {y, c.full(3.0f)})}))
          .equations.size(),
      4u);
}

// --- constants -----------------------------------------------------------------------------------

TEST(Simplify, FoldsNumbers) {
  Builder b;
  const Var x = b.input(f32, {3});
  const Var two = b.convert(b.full(2.0), f32),
            y = b.add(Op::sqrt, {b.add(Op::add, {two, b.full(7.0f)})});
  const GraphBody s = simplified(b.returns({b.add(Op::mul, {x, y})}));
  EXPECT_EQ(to_text(s), "{ lambda a:f32[3] .\n  let b:f32[3] = mul a 3.0\n  in (b) }");
}

TEST(Simplify, FoldsFullOperandsOfAnyShape) {
  Builder b;
  EXPECT_EQ(
      to_text(simplified(b.returns({b.add(Op::add, {b.full(1.0f, {100, 100}), b.full(2.0f)})}))),
      "{ lambda .\n  let a:f32[100,100] = full[value=3.0]\n  in (a) }");
}

TEST(Simplify, FoldsSmallConstants) {
  Builder b;
  const Var k = b.constant<float>({1, 2, 3}, {3});
  const GraphBody s = simplified(b.returns(
      {b.add(Op::mul, {k, b.full(2.0f)}), b.with(Op::reduce_sum, AxesParams{Axes{0}}, {k})}));
  EXPECT_EQ(to_text(s),
            "{ lambda .\n  let a:f32[3] = constant[f32[3]: 2.0, 4.0, 6.0]\n"
            "  in (a, 6.0:f32[]) }");
}

TEST(Simplify, DoesNotSpreadConstantsOut) {
  Builder b;
  const Var k = b.constant<float>({1, 2, 3}, {3});
  EXPECT_EQ(simple_ops(b, {b.broadcast(k, {1000, 3}, {1})}), "constant broadcast_in_dim");
  Builder c;
  EXPECT_EQ(simple_ops(c, {c.add(Op::sin, {c.convert(c.iota(i32, {1000}), f64)})}), "iota sin");
}

TEST(Simplify, KeepsNaNsAndSignedZerosInConstants) {
  Builder b;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  simplified(b.returns({b.add(Op::neg, {b.full(0.0f)}), b.add(Op::add, {b.full(nan), b.full(1.0f)}),
                        b.add(Op::div, {b.full(1.0f), b.full(-0.0f)}),
                        b.add(Op::neg, {b.full(Float16(0.0f))})}));
}

// --- arithmetic ----------------------------------------------------------------------------------

/// What `make(b, x)` of an input x[3] becomes.
template <class Make>
std::string of_input(DType d, Make make) {
  Builder b;
  const Var x = b.input(d, {3});
  return simple_ops(b, {make(b, x)});
}

TEST(Simplify, NeutralElements) {
  const auto with = [](Op op, auto k, bool left = false) {
    return of_input(vt::dtype_of<decltype(k)>(), [=](Builder& b, Var x) {
      const Var c = b.full(k);
      return b.add(op, left ? vt::Vec<Var>{c, x} : vt::Vec<Var>{x, c});
    });
  };
  EXPECT_EQ(with(Op::mul, 1.0f), "");
  EXPECT_EQ(with(Op::mul, 1.0f, true), "");
  EXPECT_EQ(with(Op::mul, Float16(1.0f)), "");
  EXPECT_EQ(with(Op::mul, -1.0f), "neg");
  EXPECT_EQ(with(Op::mul, 0.0f), "full mul");  // not of floats: NaN, infinities and −0.0
  EXPECT_EQ(with(Op::mul, 0), "full");
  EXPECT_EQ(with(Op::add, -0.0f), "");
  EXPECT_EQ(with(Op::add, 0.0f), "full add");  // −0.0 + 0.0 is 0.0
  EXPECT_EQ(with(Op::add, 0), "");
  EXPECT_EQ(with(Op::add, 0, true), "");
  EXPECT_EQ(with(Op::sub, 0.0), "");
  EXPECT_EQ(with(Op::sub, -0.0), "full sub");
  EXPECT_EQ(with(Op::sub, -0.0, true), "neg");
  EXPECT_EQ(with(Op::sub, 0.0, true), "full sub");
  EXPECT_EQ(with(Op::sub, 0, true), "neg");
  EXPECT_EQ(with(Op::div, 1.0f), "");
  EXPECT_EQ(with(Op::div, 1), "");
  EXPECT_EQ(with(Op::div, -1), "neg");
  EXPECT_EQ(with(Op::div, 8.0f), "full mul");  // · 0.125
  EXPECT_EQ(with(Op::div, 3.0f), "full div");
  EXPECT_EQ(with(Op::div, 1e-45f), "full div");  // the reciprocal overflows
  EXPECT_EQ(with(Op::rem, 1), "full");
  EXPECT_EQ(with(Op::pow, 1.0f), "");
  EXPECT_EQ(with(Op::pow, 0.0f), "full");
  EXPECT_EQ(with(Op::pow, 3.0), "integer_pow");
  EXPECT_EQ(with(Op::pow, 0.5), "full pow");
  EXPECT_EQ(with(Op::pow, 2), "integer_pow");
  EXPECT_EQ(with(Op::max, -std::numeric_limits<float>::infinity()), "");
  EXPECT_EQ(with(Op::min, -std::numeric_limits<float>::infinity()), "full min");
  EXPECT_EQ(with(Op::and_, -1), "");
  EXPECT_EQ(with(Op::and_, 0), "full");
  EXPECT_EQ(with(Op::or_, 0), "");
  EXPECT_EQ(with(Op::or_, true), "full");
  EXPECT_EQ(with(Op::xor_, true), "not");
  EXPECT_EQ(with(Op::xor_, std::uint8_t{255}), "not");
  EXPECT_EQ(with(Op::shift_left, 0), "");
  EXPECT_EQ(with(Op::eq, true), "");
  EXPECT_EQ(with(Op::eq, false), "not");
}

TEST(Simplify, SumsThatAreNeverNegativeZeroTakeAZero) {
  EXPECT_EQ(
      of_input(f32, [](Builder& b,
                       Var x) { return b.add(Op::add, {b.add(Op::abs, {x}), b.full(0.0f)}); }),
      "abs");
  EXPECT_EQ(
      of_input(f32, [](Builder& b,
                       Var x) { return b.add(Op::add, {b.full(0.0f), b.add(Op::mul, {x, x})}); }),
      "mul");
  EXPECT_EQ(of_input(i32, [](Builder& b,
                             Var x) { return b.add(Op::sub, {b.convert(x, f32), b.full(-0.0f)}); }),
            "convert");
}

TEST(Simplify, SameOperandTwice) {
  const auto twice = [](DType d, Op op) {
    return of_input(d, [=](Builder& b, Var x) { return b.add(op, {x, x}); });
  };
  EXPECT_EQ(twice(i32, Op::sub), "full");
  EXPECT_EQ(twice(f32, Op::sub), "sub");
  EXPECT_EQ(twice(f32, Op::max), "");
  EXPECT_EQ(twice(u8, Op::and_), "");
  EXPECT_EQ(twice(bool_, Op::xor_), "full");
  EXPECT_EQ(twice(i64, Op::le), "full");
  EXPECT_EQ(twice(f64, Op::le), "le");
  EXPECT_EQ(twice(f32, Op::div), "div");
}

TEST(Simplify, Negations) {
  const auto of = [](auto make) {
    Builder b;
    const Var x = b.input(f32, {3}), y = b.input(f32, {3});
    return simple_ops(b, {make(b, x, y)});
  };
  const auto neg = [](Builder& b, Var v) { return b.add(Op::neg, {v}); };
  EXPECT_EQ(of([&](Builder& b, Var x, Var) { return neg(b, neg(b, x)); }), "");
  EXPECT_EQ(of([&](Builder& b, Var x, Var y) { return b.add(Op::add, {x, neg(b, y)}); }), "sub");
  EXPECT_EQ(of([&](Builder& b, Var x, Var y) { return b.add(Op::add, {neg(b, x), y}); }), "sub");
  EXPECT_EQ(of([&](Builder& b, Var x, Var y) { return b.add(Op::sub, {x, neg(b, y)}); }), "add");
  EXPECT_EQ(of([&](Builder& b, Var x, Var y) { return b.add(Op::mul, {neg(b, x), neg(b, y)}); }),
            "mul");
  EXPECT_EQ(of([&](Builder& b, Var x, Var) { return b.add(Op::mul, {neg(b, x), b.full(3.0f)}); }),
            "full mul");
  EXPECT_EQ(of([&](Builder& b, Var x, Var) { return b.add(Op::abs, {neg(b, x)}); }), "abs");
  EXPECT_EQ(of([&](Builder& b, Var x, Var) {
              return b.with(Op::integer_pow, IntegerPowParams{2}, {neg(b, x)});
            }),
            "integer_pow");
  EXPECT_EQ(of([&](Builder& b, Var x, Var) {
              return b.with(Op::integer_pow, IntegerPowParams{3}, {neg(b, x)});
            }),
            "neg integer_pow");
}

TEST(Simplify, DoneOnceIsEnough) {
  const auto chain = [](Op first, Op second) {
    return of_input(f32, [=](Builder& b, Var x) { return b.add(second, {b.add(first, {x})}); });
  };
  EXPECT_EQ(chain(Op::abs, Op::abs), "abs");
  EXPECT_EQ(chain(Op::floor, Op::round), "floor");
  EXPECT_EQ(chain(Op::trunc, Op::ceil), "trunc");
  EXPECT_EQ(chain(Op::sign, Op::sign), "sign");
  EXPECT_EQ(chain(Op::stop_gradient, Op::stop_gradient), "stop_gradient");
  EXPECT_EQ(chain(Op::sin, Op::sin), "sin sin");
}

TEST(Simplify, LogicalNot) {
  const auto of = [](DType d, Op op, std::size_t nots) {
    Builder b;
    const Var x = b.input(d, {3}), y = b.input(d, {3});
    Var v = b.add(op, {x, y});
    for (std::size_t i = 0; i < nots; ++i) v = b.add(Op::not_, {v});
    return simple_ops(b, {v});
  };
  EXPECT_EQ(of(f32, Op::eq, 1), "ne");
  EXPECT_EQ(of(f32, Op::lt, 1), "lt not");  // !(NaN < 1), but NaN ≥ 1 is false too
  EXPECT_EQ(of(i32, Op::lt, 1), "ge");
  EXPECT_EQ(of(i32, Op::ge, 1), "lt");
  EXPECT_EQ(of(f32, Op::lt, 2), "lt");
}

TEST(Simplify, Select) {
  const auto of = [](auto make) {
    Builder b;
    const Var p = b.input(bool_, {3}), x = b.input(f32, {3}), y = b.input(f32, {3});
    return simple_ops(b, {make(b, p, x, y)});
  };
  EXPECT_EQ(
      of([](Builder& b, Var, Var x, Var y) { return b.add(Op::select, {b.full(true), x, y}); }),
      "");
  EXPECT_EQ(of([](Builder& b, Var, Var x, Var) {
              return b.add(Op::select, {b.full(false, {3}), x, b.full(1.0f)});
            }),
            "full");
  EXPECT_EQ(of([](Builder& b, Var p, Var x, Var) { return b.add(Op::select, {p, x, x}); }), "");
  EXPECT_EQ(of([](Builder& b, Var p, Var x, Var y) {
              return b.add(Op::select, {b.add(Op::not_, {p}), x, y});
            }),
            "select");
  EXPECT_EQ(of([](Builder& b, Var p, Var, Var) {
              return b.add(Op::select, {p, b.full(true), b.full(false)});
            }),
            "");
  EXPECT_EQ(of([](Builder& b, Var p, Var, Var) {
              return b.add(Op::select, {p, b.full(false), b.full(true)});
            }),
            "not");
  EXPECT_EQ(of([](Builder& b, Var p, Var x, Var y) {
              return b.add(Op::select, {p, b.add(Op::select, {p, x, b.full(2.0f)}), y});
            }),
            "select");
}

TEST(Simplify, NestedSelectOfScalarsKeepsItsShape) {
  Builder b;
  const Var p = b.input(bool_, {}), x = b.input(f32, {3}), s = b.input(f32, {}),
            t = b.input(f32, {});
  EXPECT_EQ(simplified(b.returns({b.add(Op::select, {p, b.add(Op::select, {p, s, x}), t})}))
                .equations.size(),
            2u);
}

TEST(Simplify, ConvertOfConvertOnlyWhereExact) {
  const auto path = [](DType a, DType b1, DType c) {
    return of_input(a, [=](Builder& b, Var x) { return b.convert(b.convert(x, b1), c); });
  };
  EXPECT_EQ(path(f32, f64, f32), "");
  EXPECT_EQ(path(f32, f64, f16), "convert");
  EXPECT_EQ(path(f64, f32, f16), "convert convert");
  EXPECT_EQ(path(f16, f32, f64), "convert");
  EXPECT_EQ(path(f16, bf16, f32), "convert convert");
  EXPECT_EQ(path(i32, i64, i32), "");
  EXPECT_EQ(path(i32, i64, u8), "convert");
  EXPECT_EQ(path(i32, f64, i32), "");
  EXPECT_EQ(path(i32, f64, u8), "convert convert");  // saturates where i32 → u8 wraps
  EXPECT_EQ(path(i32, f32, i32), "convert convert");
  EXPECT_EQ(path(u8, i16, f32), "convert");
  EXPECT_EQ(path(i8, u16, i32), "convert convert");
  EXPECT_EQ(path(bool_, f32, bool_), "");
  EXPECT_EQ(path(i32, bool_, i32), "convert convert");
  EXPECT_EQ(path(u16, f16, f32), "convert convert");
}

TEST(Simplify, ConvertOfConvertAgreesForEveryTripleOfDtypes) {
  for (int a = 0; a < vt::real_dtype_count; ++a)
    for (int m = 0; m < vt::real_dtype_count; ++m)
      for (int c = 0; c < vt::real_dtype_count; ++c) {
        Builder b;
        const Var x = b.input(static_cast<DType>(a), {64});
        simplified(
            b.returns({b.convert(b.convert(x, static_cast<DType>(m)), static_cast<DType>(c))}),
            static_cast<unsigned>(a * 169 + m * 13 + c));
      }
}

TEST(Simplify, Bits) {
  EXPECT_EQ(of_input(f32,
                     [](Builder& b, Var x) {
                       return b.with(Op::bitcast, ConvertParams{f32, false},
                                     {b.with(Op::bitcast, ConvertParams{u32, false}, {x})});
                     }),
            "");
  EXPECT_EQ(of_input(f32,
                     [](Builder& b, Var x) {
                       return b.with(Op::reduce_precision, PrecisionParams{8, 23}, {x});
                     }),
            "");
  EXPECT_EQ(of_input(f64,
                     [](Builder& b, Var x) {
                       return b.with(Op::reduce_precision, PrecisionParams{8, 23}, {x});
                     }),
            "reduce_precision");
}

TEST(Simplify, IndicesKnownToBeInRange) {
  // As `take` writes it: negative indices count from the end.
  Builder b;
  const Var i = b.iota(i32, {10});
  const Var wrapped =
      b.add(Op::select, {b.add(Op::lt, {i, b.full(0)}), b.add(Op::add, {i, b.full(10)}), i});
  const Var clamped = b.add(Op::min, {b.add(Op::max, {wrapped, b.full(0)}), b.full(9)});
  EXPECT_EQ(simple_ops(b, {clamped, b.add(Op::rem, {i, b.full(10)})}), "iota");
  Builder c;
  const Var x = c.input(i32, {10});
  EXPECT_EQ(simple_ops(c, {c.add(Op::lt, {x, c.full(0)})}), "full lt");
  Builder d;  // 100 + 100 leaves i8
  const Var j = d.iota(DType::i8, {101});
  EXPECT_EQ(simple_ops(d, {d.add(Op::lt, {d.add(Op::add, {j, d.full(std::int8_t{100})}),
                                          d.full(std::int8_t{0})})}),
            "iota full add full lt");
}

// --- scalars and broadcasts in element-wise ops --------------------------------------------------

TEST(Simplify, ScalarsAreUsedAsScalars) {
  Builder b;
  const Var x = b.input(f32, {3, 4}), s = b.input(f32, {});
  const GraphBody g = simplified(b.returns({b.add(Op::mul, {x, b.broadcast(s, {3, 4}, {})}),
                                            b.add(Op::div, {b.full(2.0f, {3, 4}), x})}));
  EXPECT_EQ(to_text(g),
            "{ lambda a:f32[3,4] b:f32[] .\n"
            "  let c:f32[3,4] = mul a b\n"
            "      d:f32[3,4] = div 2.0 a\n"
            "  in (c, d) }");
}

TEST(Simplify, WorkIsDoneBeforeValuesAreSpread) {
  Builder b;
  const Var x = b.input(f32, {3}), s = b.input(f32, {});
  const Var wide = b.broadcast(x, {5, 3}, {1});
  const GraphBody g =
      simplified(b.returns({b.add(Op::mul, {b.add(Op::exp, {wide}), b.broadcast(s, {5, 3}, {})})}));
  EXPECT_EQ(to_text(g),
            "{ lambda a:f32[3] b:f32[] .\n"
            "  let c:f32[3] = exp a\n"
            "      d:f32[3] = mul c b\n"
            "      e:f32[5,3] = broadcast_in_dim[shape=[5,3], axes=(1,)] d\n"
            "  in (e) }");
}

TEST(Simplify, OnlyScalarsLeft) {
  Builder b;
  const Var s = b.input(f32, {}), t = b.input(f32, {});
  EXPECT_EQ(simple_ops(b, {b.add(Op::add, {b.broadcast(s, {3}, {}), b.broadcast(t, {3}, {})})}),
            "add broadcast_in_dim");
}

TEST(Simplify, DifferentBroadcastsStay) {
  Builder b;
  const Var x = b.input(f32, {3}), y = b.input(f32, {5});
  EXPECT_EQ(
      simple_ops(b, {b.add(Op::add, {b.broadcast(x, {5, 3}, {1}), b.broadcast(y, {5, 3}, {0})})}),
      "broadcast_in_dim broadcast_in_dim add");
}

// --- sub-graphs ----------------------------------------------------------------------------------

TEST(Simplify, CallsAreReplacedByTheirBodies) {
  Builder body;
  const Var p = body.input(f32, {3});
  body.returns({body.add(Op::sin, {p}), p});
  const auto graph = std::make_shared<const GraphBody>(body.graph);
  Builder b;
  const Var x = b.input(f32, {3});
  const auto once = b.all(Op::call, make_params(CallParams{graph, {}, 1}), {x}),
             again = b.all(Op::call, make_params(CallParams{graph, {}, 1}), {once[1]});
  EXPECT_EQ(simple_ops(b, {b.add(Op::add, {once[0], again[0]})}), "sin add");
}

TEST(Simplify, BodiesAreSimplifiedAndMerged) {
  Builder body;
  const Var acc = body.input(f32, {}), v = body.input(f32, {});
  body.returns({body.add(Op::add, {acc, body.add(Op::mul, {v, body.full(1.0f)})})});
  Builder b;
  const Var x = b.input(f32, {4}), zero = b.input(f32, {});
  const auto reduce = [&] {  // a body of its own each time
    return b.with(Op::reduce, ReduceParams{Axes{0}, std::make_shared<const GraphBody>(body.graph)},
                  {x, zero});
  };
  const GraphBody s = simplified(b.returns({reduce(), reduce()}));
  EXPECT_EQ(to_text(s),
            "{ lambda a:f32[4] b:f32[] .\n"
            "  let c:f32[] = reduce[axes=(0,)] a b\n"
            "        { lambda a:f32[] b:f32[] .\n"
            "          let c:f32[] = add a b\n"
            "          in (c) }\n"
            "  in (c, c) }");
}

TEST(Simplify, RulesGoOnlyWhenTheGraphIsToBeRun) {
  Builder body;
  const Var p = body.input(f32, {3});
  const auto graph = std::make_shared<const GraphBody>(
      body.returns({body.add(Op::sin, {body.add(Op::neg, {body.add(Op::neg, {p})})})}));
  const auto rule = std::make_shared<CustomRule>();
  rule->jvp = [](std::span<const vt::Tensor> t) {
    return std::vector<vt::Tensor>(t.begin(), t.end());
  };
  const auto make = [&] {
    Builder b;
    const Var x = b.input(f32, {3});
    const Var y =
        b.with(Op::custom_jvp, CallParams{graph, rule, 1}, {b.add(Op::stop_gradient, {x})});
    return b.returns({b.with(Op::checkpoint, CallParams{graph, {}, 1}, {y})});
  };
  const GraphBody kept = simplified(make());
  EXPECT_EQ(ops(kept), "stop_gradient custom_jvp checkpoint");
  EXPECT_EQ(ops(*kept.equations[1].as<CallParams>().body), "sin");
  // shared before, shared after
  EXPECT_EQ(kept.equations[1].as<CallParams>().body, kept.equations[2].as<CallParams>().body);
  EXPECT_EQ(ops(simplified(make(), 1, SimplifyFor::running)), "sin checkpoint");
}

TEST(Simplify, WeakResultsStayWeak) {
  GraphBody g;
  const Var x = g.fresh(Aval(f64, {}, false));
  g.inputs = {x};
  Equation e;
  e.op = Op::convert;
  e.params = make_params(ConvertParams{f64, true});
  e.inputs = {x};
  e.outputs = {g.fresh(Aval(f64, {}, true))};
  g.equations.push_back(e);
  g.outputs = {e.outputs[0]};
  EXPECT_EQ(ops(simplified(g)), "convert");
}

// --- speed ---------------------------------------------------------------------------------------

TEST(Simplify, LongGraphsInLinearTime) {
  // Processor time: other programs on the machine do not count.
  const auto time = [](int n) {
    Builder b;
    Var x = b.input(f32, {3}), y = b.input(f32, {3});
    for (int k = 0; k < n / 4; ++k) {
      const Var s = b.add(Op::sin, {x}), t = b.add(Op::mul, {s, b.full(1.0f)});
      x = b.add(Op::add, {t, y});
    }
    b.returns({x});
    std::clock_t best = std::numeric_limits<std::clock_t>::max();
    for (int iteration = 0; iteration < 5; ++iteration) {
      const std::clock_t start = std::clock();
      const GraphBody s = simplify(b.graph);
      best = std::min(best, std::clock() - start);
      EXPECT_EQ(s.equations.size(), static_cast<std::size_t>(n / 4 * 2));
    }
    return static_cast<double>(best);
  };
  // 32 times the size: quadratic time would be 1024 times as much.
  EXPECT_LT(time(64000), 32 * 8 * std::max(time(2000), CLOCKS_PER_SEC * 1e-4));
}

}  // namespace
