// Golden text of Graphs: names, parameters, sub-graphs, lines, Graphviz.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <sstream>
#include <string>

#include <vt/detail/message.hpp>

#include "graph_builder.hpp"

namespace {
using namespace vt_test;
using enum vt::DType;

TEST(Printer, OneEquationALine) {
  Builder b;
  const Var x = b.input(f32, {3}), s = b.input(f32, {});
  const Var y = b.add(Op::mul, {x, s}, 12);
  const Var z = b.with(Op::reduce_sum, AxesParams{Axes{0}}, {y}, 13);
  b.returns({z, x});
  EXPECT_EQ(to_text(b.graph),
            "{ lambda a:f32[3] b:f32[] .\n"
            "  let c:f32[3] = mul a b\n"
            "      d:f32[] = reduce_sum[axes=(0,)] c\n"
            "  in (d, a) }");
  EXPECT_EQ(to_text(b.graph, true),
            "{ lambda a:f32[3] b:f32[] .\n"
            "  let c:f32[3] = mul a b  # user.cpp:12\n"
            "      d:f32[] = reduce_sum[axes=(0,)] c  # user.cpp:13\n"
            "  in (d, a) }");
}

TEST(Printer, NamesFollowTheOrderOfDefinitionNotTheNumbersOfVars) {
  GraphBody g;
  for (int k = 0; k < 4; ++k) g.fresh(Aval(f32, {}));
  g.inputs = {3};
  Equation e;
  e.op = Op::sin;
  e.inputs = {3};
  e.outputs = {1};
  g.equations.push_back(e);
  g.outputs = {1};
  EXPECT_EQ(to_text(g), "{ lambda a:f32[] .\n  let b:f32[] = sin a\n  in (b) }");
}

TEST(Printer, NumbersStandWhereTheyAreRead) {
  Builder b;
  const Var x = b.input(f32, {3}), p = b.input(bool_, {3}), half = b.full(0.5f);
  const Var y = b.add(Op::mul, {half, x});
  const Var z = b.add(Op::select, {p, y, half});
  const Var both = b.add(Op::lt, {half, b.full(2.0f)});  // no name shows their dtype
  const Var spread = b.broadcast(half, {3}, {});
  const Var wide = b.full(2.0f, {3});
  b.returns({z, both, spread, wide, half});
  EXPECT_EQ(to_text(b.graph),
            "{ lambda a:f32[3] b:bool[3] .\n"
            "  let c:f32[3] = mul 0.5 a\n"
            "      d:f32[3] = select b c 0.5\n"
            "      e:bool[] = lt 0.5:f32[] 2.0:f32[]\n"
            "      f:f32[3] = broadcast_in_dim[shape=[3], axes=()] 0.5:f32[]\n"
            "      g:f32[3] = full[value=2.0]\n"
            "  in (d, e, f, g, 0.5:f32[]) }");
  const std::string dot = to_dot_text(b.graph);
  EXPECT_NE(dot.find("label=\"mul 0.5 a\""), std::string::npos) << dot;
  EXPECT_NE(dot.find("label=\"result 4: 0.5:f32[]\""), std::string::npos) << dot;
  EXPECT_EQ(dot.find("full[value=0.5]"), std::string::npos) << dot;
}

TEST(Printer, NamesGoOnAfterZ) {
  Builder b;
  Var x = b.input(f32, {});
  for (int k = 0; k < 27 * 26; ++k) x = b.add(Op::sin, {x});
  b.returns({x});
  const std::string text = to_text(b.graph);
  EXPECT_NE(text.find("      aa:f32[] = sin z\n"), std::string::npos);
  EXPECT_NE(text.find("      ba:f32[] = sin az\n"), std::string::npos);
  EXPECT_NE(text.find("      aaa:f32[] = sin zz\n"), std::string::npos);
}

TEST(Messages, PartsFillTheHolesInOrder) {
  EXPECT_EQ(formatted("{} of {}, {}{}", std::string("one"), "two", 'x', true), "one of two, xtrue");
  EXPECT_EQ(formatted("{} {} {}", -1, std::uint64_t{0} - 1, std::int8_t{-128}),
            "-1 18446744073709551615 -128");
  EXPECT_EQ(formatted("{} {} {} {}", 0.1f, 0.1, 100000.0, 1e16), "0.1 0.1 100000 1e+16");
  EXPECT_EQ(formatted("{} {} {}", -0.0, 1e-5, std::numeric_limits<double>::infinity()),
            "-0 1e-05 inf");
  EXPECT_EQ(formatted("no hole"), "no hole");
  EXPECT_EQ(formatted("{} {{}}", "braces:"), "braces: {}");
}

TEST(Printer, EmptyGraph) {
  GraphBody g;
  EXPECT_EQ(to_text(g), "{ lambda .\n  in () }");
  EXPECT_EQ(vt::Graph().str(), "{ }");
  EXPECT_EQ(vt::Graph().size(), 0u);
}

TEST(Printer, Scalars) {
  const auto text = [](auto v) {
    Builder b;
    b.returns({b.full(v)});
    return describe(Op::full, b.graph.equations[0].params);
  };
  EXPECT_EQ(text(2.0f), "full[value=2.0]");
  EXPECT_EQ(text(-0.0), "full[value=-0.0]");
  EXPECT_EQ(text(0.1f), "full[value=0.1]");
  EXPECT_EQ(text(0.1), "full[value=0.1]");
  EXPECT_EQ(text(1e30), "full[value=1e+30]");
  EXPECT_EQ(text(vt::Float16(0.1f)), "full[value=0.099975586]");
  EXPECT_EQ(text(std::numeric_limits<float>::quiet_NaN()), "full[value=nan]");
  EXPECT_EQ(text(-std::numeric_limits<double>::infinity()), "full[value=-inf]");
  EXPECT_EQ(text(true), "full[value=true]");
  EXPECT_EQ(text(std::int8_t{-3}), "full[value=-3]");
  EXPECT_EQ(text(std::numeric_limits<std::uint64_t>::max()), "full[value=18446744073709551615]");
}

TEST(Printer, Parameters) {
  const auto text = [](Op op, auto p) { return describe(op, make_params(p)); };
  EXPECT_EQ(describe(Op::sin, {}), "sin");
  EXPECT_EQ(text(Op::iota, IotaParams{Aval(i32, {2, 3}), 1}), "iota[axis=1]");
  EXPECT_EQ(text(Op::convert, ConvertParams{f64, true}), "convert[dtype=f64, weak]");
  EXPECT_EQ(text(Op::reduce_precision, PrecisionParams{5, 10}),
            "reduce_precision[exponent_bits=5, mantissa_bits=10]");
  EXPECT_EQ(text(Op::integer_pow, IntegerPowParams{-2}), "integer_pow[exponent=-2]");
  EXPECT_EQ(text(Op::argmax, ArgParams{1, i64}), "argmax[axis=1, dtype=i64]");
  EXPECT_EQ(text(Op::cumsum, CumulativeParams{0, false}), "cumsum[axis=0]");
  EXPECT_EQ(text(Op::cumsum, CumulativeParams{0, true}), "cumsum[axis=0, reverse]");
  EXPECT_EQ(text(Op::sort, SortParams{1, 2, false, 0, 7}), "sort[axis=1, keys=2, places=0:7]");
  EXPECT_EQ(text(Op::sort, SortParams{0, 1, true, 3, 5}),
            "sort[axis=0, keys=1, descending, places=3:5]");
  EXPECT_EQ(text(Op::reshape, ShapeParams{{2, 3}}), "reshape[shape=[2,3]]");
  EXPECT_EQ(text(Op::dynamic_slice, ShapeParams{{2, 3}}), "dynamic_slice[sizes=[2,3]]");
  EXPECT_EQ(text(Op::transpose, PermutationParams{{1, 0}}), "transpose[permutation=(1,0)]");
  EXPECT_EQ(text(Op::broadcast_in_dim, BroadcastParams{{2, 3}, {1}}),
            "broadcast_in_dim[shape=[2,3], axes=(1,)]");
  EXPECT_EQ(text(Op::concatenate, AxisParams{1}), "concatenate[axis=1]");
  EXPECT_EQ(text(Op::pad, PadParams{{1}, {2}, {0}}), "pad[low=[1], high=[2]]");
  EXPECT_EQ(text(Op::pad, PadParams{{1}, {2}, {3}}), "pad[low=[1], high=[2], interior=[3]]");
  EXPECT_EQ(text(Op::slice, SliceParams{{1}, {2}, {1}}), "slice[start=[1], limit=[2]]");
  EXPECT_EQ(text(Op::slice, SliceParams{{1}, {5}, {2}}), "slice[start=[1], limit=[5], stride=[2]]");
  const WindowParams w{{0, 2}, {3, 2}, {1, 2}, {1, 1}, {5, 6}};
  EXPECT_EQ(text(Op::windows, w), "windows[axes=(0,2), sizes=[3,2], strides=[1,2]]");
  EXPECT_EQ(text(Op::overlap_add, w),
            "overlap_add[axes=(0,2), sizes=[3,2], strides=[1,2], extents=[5,6]]");
  ConvParams v{{{2}, {1}, {}, {}, f32}, {1}, {0}, {1}, {0}, {0}, {1}, {1}};
  EXPECT_EQ(text(Op::conv_general, v), "conv_general[contract=(2,)·(1,), window=(1,)·(0,)]");
  v.strides = {2}, v.low = {1}, v.high = {-1}, v.lhs_dilation = {3}, v.rhs_dilation = {4};
  EXPECT_EQ(text(Op::conv_general, v),
            "conv_general[contract=(2,)·(1,), window=(1,)·(0,), strides=[2], low=[1], high=[-1], "
            "lhs_dilation=[3], rhs_dilation=[4]]");
  GatherParams g;
  g.offset_dims = {1};
  g.start_index_map = {0};
  g.slice_sizes = {1, 3};
  EXPECT_EQ(text(Op::gather, g),
            "gather[offset_dims=(1,), start_index_map=(0,), slice_sizes=[1,3], mode=clip]");
  ScatterParams s;
  s.inserted_window_dims = {0};
  s.unique = true;
  EXPECT_EQ(text(Op::scatter_add, s), "scatter_add[inserted_window_dims=(0,), mode=fill, unique]");
  EXPECT_EQ(text(Op::scatter_add, ScatterParams{}), "scatter_add[mode=fill]");
  EXPECT_EQ(text(Op::dot_general, DotParams{{1}, {0}, {}, {}, f32}),
            "dot_general[contract=(1,)·(0,)]");
  EXPECT_EQ(text(Op::dot_general, DotParams{{2}, {1}, {0}, {0}, f32}),
            "dot_general[contract=(2,)·(1,), batch=(0,)·(0,)]");
}

TEST(Printer, ConstantsShowTheirFirstValues) {
  Builder b;
  b.constant<float>({1, 2.5, -3}, {3});
  b.constant<std::int32_t>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
  EXPECT_EQ(describe(Op::constant, b.graph.equations[0].params),
            "constant[f32[3]: 1.0, 2.5, -3.0]");
  EXPECT_EQ(describe(Op::constant, b.graph.equations[1].params),
            "constant[i32[3,3]: 1, 2, 3, 4, 5, 6, 7, 8, …]");
}

Builder with_body() {
  Builder body;
  const Var acc = body.input(f32, {}), x = body.input(f32, {});
  body.returns({body.add(Op::max, {acc, x}, 3)});
  Builder b;
  const Var in = b.input(f32, {4}), init = b.input(f32, {});
  const Var y =
      b.with(Op::reduce, ReduceParams{Axes{0}, std::make_shared<const GraphBody>(body.graph)},
             {in, init}, 2);
  b.returns({b.add(Op::neg, {y}, 4)});
  return b;
}

TEST(Printer, SubGraphsAreIndentedBelowTheirEquation) {
  EXPECT_EQ(to_text(with_body().graph, true),
            "{ lambda a:f32[4] b:f32[] .\n"
            "  let c:f32[] = reduce[axes=(0,)] a b  # user.cpp:2\n"
            "        { lambda a:f32[] b:f32[] .\n"
            "          let c:f32[] = max a b  # user.cpp:3\n"
            "          in (c) }\n"
            "      d:f32[] = neg c  # user.cpp:4\n"
            "  in (d) }");
}

TEST(Printer, Dot) {
  EXPECT_EQ(to_dot_text(with_body().graph),
            "digraph vt {\n"
            "  node [fontname=\"monospace\"];\n"
            "  edge [fontname=\"monospace\", fontsize=10];\n"
            "  in_a [shape=ellipse, label=\"a:f32[4]\"];\n"
            "  in_b [shape=ellipse, label=\"b:f32[]\"];\n"
            "  eq0 [shape=box, label=\"reduce[axes=(0,)]\", tooltip=\"user.cpp:2\"];\n"
            "  in_a -> eq0 [label=\"a:f32[4]\"];\n"
            "  in_b -> eq0 [label=\"b:f32[]\"];\n"
            "  subgraph cluster_eq0 {\n"
            "    label=\"reduce\";\n"
            "    eq0_in_a [shape=ellipse, label=\"a:f32[]\"];\n"
            "    eq0_in_b [shape=ellipse, label=\"b:f32[]\"];\n"
            "    eq0_eq0 [shape=box, label=\"max\", tooltip=\"user.cpp:3\"];\n"
            "    eq0_in_a -> eq0_eq0 [label=\"a:f32[]\"];\n"
            "    eq0_in_b -> eq0_eq0 [label=\"b:f32[]\"];\n"
            "    eq0_out0 [shape=ellipse, style=bold, label=\"result 0\"];\n"
            "    eq0_eq0 -> eq0_out0 [label=\"c:f32[]\"];\n"
            "  }\n"
            "  eq0 -> eq0_in_a [style=dotted, arrowhead=none];\n"
            "  eq1 [shape=box, label=\"neg\", tooltip=\"user.cpp:4\"];\n"
            "  eq0 -> eq1 [label=\"c:f32[]\"];\n"
            "  out0 [shape=ellipse, style=bold, label=\"result 0\"];\n"
            "  eq1 -> out0 [label=\"d:f32[]\"];\n"
            "}\n");
}

TEST(Printer, GraphStreams) {
  const vt::Graph g(std::make_shared<const GraphBody>(with_body().graph));
  std::ostringstream out;
  out << g;
  EXPECT_EQ(out.str(), g.str());
  EXPECT_EQ(g.size(), 2u);
  std::ostringstream shape;
  shape << Shape{2, 3};
  EXPECT_EQ(shape.str(), "[2,3]");
}

TEST(Params, EqualityAndHash) {
  const auto sum0 = make_params(AxesParams{Axes{0}}), again = make_params(AxesParams{Axes{0}}),
             sum1 = make_params(AxesParams{Axes{1}});
  EXPECT_TRUE(equal(sum0, again));
  EXPECT_EQ(hash_of(sum0), hash_of(again));
  EXPECT_FALSE(equal(sum0, sum1));
  EXPECT_FALSE(equal(sum0, {}));
  EXPECT_TRUE(equal(make_params(NoParams{}), {}));
  EXPECT_EQ(hash_of(make_params(NoParams{})), hash_of(ParamsRef{}));
  // Sub-graphs are compared by structure.
  EXPECT_TRUE(equal(with_body().graph, with_body().graph));
  EXPECT_EQ(hash_of(with_body().graph), hash_of(with_body().graph));
  Builder other = with_body();
  other.graph.equations[1].op = Op::abs;
  EXPECT_FALSE(equal(with_body().graph, other.graph));
  // 0.0 and −0.0 are different values.
  EXPECT_FALSE(equal(make_params(FullParams{Scalar(0.0), Aval(f64, {})}),
                     make_params(FullParams{Scalar(-0.0), Aval(f64, {})})));
}

}  // namespace
