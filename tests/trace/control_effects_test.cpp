// Effects happen once, in the order of the program and only where it goes: under vmap,
// differentiation, jit and in control flow, also where other systems run both branches and select
// (jax#2947, #8409, #9159, #19314, #20601).
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>

#include "support/message.hpp"
#include "support/printed.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using vt_test::Lines;
using vt_test::message;
using vt_test::printed;

const Tensor xs = vt::tensor({1.0, -2.0, 3.0});

/// What `f` prints on the arguments, run as it is and compiled: the same.
template <class F, class... A>
void expect_prints(const Lines& expected, const F& f, const A&... arguments) {
  EXPECT_EQ(printed([&] {
              static_cast<void>(
                  vt::tree_map([](Tensor t) { return t.eval(); }, std::tuple(f(arguments...))));
            }),
            expected)
      << "as it is";
  const auto compiled = vt::jit(f);
  for (int run = 0; run < 2; ++run)
    EXPECT_EQ(printed([&] {
                static_cast<void>(vt::tree_map([](Tensor t) { return t.eval(); },
                                               std::tuple(compiled(arguments...))));
              }),
              expected)
        << "compiled, run " << run;
}

// --- texts ---------------------------------------------------------------------------------------

TEST(DebugPrint, FillsPlacesAsFmtDoes) {
  const Tensor a = vt::tensor({{1.5f, 2.0f}, {3.0f, -4.0f}});
  EXPECT_EQ(printed([&] {
              vt::debug_print("a = {}", a);
              vt::debug_print("{:.3f}|{:+d}|{}|{{}}", vt::tensor({1.0, 2.5}), vt::tensor({3, -4}),
                              vt::tensor({true, false}));
              vt::debug_print("{1} before {0}, {0:>5}", "text", 7);
              vt::debug_print(std::string("nothing else"));
              vt::debug_print("{} {}", 2.5, std::string("{}"));
              vt::debug_print("{:x} {}", vt::tensor({255, 16}, vt::u8), vt::zeros({0, 3}));
              vt::debug_print("{}", vt::full({}, 0.5, vt::bf16));
            }),
            (Lines{"a = [[ 1.5  2. ]\n [ 3.  -4. ]]", "[1.000 2.500]|[+3 -4]|[ true false]|{}",
                   "7 before text,  text", "nothing else", "2.5 {}", "[ff 10] []", "0.5"}));
}

TEST(DebugPrint, RefusesWhatDoesNotFit) {
  const std::string refused = message([] { vt::debug_print("{} {}", 1); });
  const std::string line = std::to_string(__LINE__ - 1);
  EXPECT_EQ(refused,
            "vt::debug_print: there is no argument 1 for a place in \"{} {}\"; at "
            "control_effects_test.cpp:" +
                line);
  EXPECT_NE(message([] {
              vt::debug_print("{}", 1, 2);
            }).find("there is no place for argument 1 in \"{}\""),
            std::string::npos);
  EXPECT_NE(message([] { vt::debug_print("{", 1); }).find("a { is not closed"), std::string::npos);
  EXPECT_NE(message([] { vt::debug_print("}", 1); }).find("a } closes nothing"), std::string::npos);
  EXPECT_NE(message([] {
              vt::debug_print("{:d}", vt::ones({2}));
            }).find("argument 0 cannot be written with {:d}"),
            std::string::npos);
  EXPECT_NE(message([] {
              vt::debug_print("{x}", 1);
            }).find("there must be nothing, an index or a specification"),
            std::string::npos);
  EXPECT_NE(message([] { vt::debug_print("{}", Tensor()); }).find("argument 0 is an empty Tensor"),
            std::string::npos);
}

// --- when and how often --------------------------------------------------------------------------

TEST(DebugPrint, HappensInOrderWhetherUsedOrNot) {
  expect_prints(
      {"first 1.", "second", "first 1.", "third 2."},
      [](Tensor x) {
        vt::debug_print("first {}", x);
        vt::debug_print("second");
        vt::debug_print("first {}", x);  // equal ones are not merged
        const Tensor y = x + x;
        vt::debug_print("third {}", y);
        return x;
      },
      vt::tensor(1.0));
}

TEST(DebugPrint, LazyValuesArePrintedAtOnce) {
  Lines lines;
  vt::set_print_sink([&](std::string_view line) { lines.emplace_back(line); });
  const Tensor y = xs * 2.0;
  vt::debug_print("{}", y);
  EXPECT_EQ(lines, Lines{"[ 2. -4.  6.]"});
  vt::set_print_sink(nullptr);
}

TEST(DebugPrint, TracingAloneDoesNotPrint) {
  const auto f = [](Tensor x) {
    vt::debug_print("{}", x);
    return x;
  };
  EXPECT_EQ(printed([&] {
              (void)vt::eval_shape(f, xs);
              vt::make_graph(f)(xs);
            }),
            Lines{});
  const std::string text = vt::make_graph(f)(xs).str();
  EXPECT_NE(text.find("debug_print[\"{0}\"] a"), std::string::npos) << text;
  const vt::Graph graph = vt::make_graph(f)(xs);
  EXPECT_EQ(printed([&] { graph(std::vector<Tensor>{xs}); }), Lines{"[ 1. -2.  3.]"});
}

TEST(DebugPrint, VmapPrintsTheBatchOnceOrEachLane) {
  const auto f = [](Tensor x) {
    vt::debug_print("x = {}", x);
    vt::debug_print("shared");
    vt::debug_print({.per_lane = true}, "lane {:.0f}, {}", x, vt::tensor({7, 8}));
    return x;
  };
  expect_prints({"x = [ 1. -2.  3.]", "shared", "lane 1, [7 8]", "lane -2, [7 8]", "lane 3, [7 8]"},
                vt::vmap(f), xs);
  expect_prints({"x = [[1. 2.]\n [3. 4.]]", "shared", "lane 1, [7 8]", "lane 2, [7 8]",
                 "lane 3, [7 8]", "lane 4, [7 8]"},
                vt::vmap(vt::vmap(f)), vt::tensor({{1.0, 2.0}, {3.0, 4.0}}));
  // The inner vmap maps another axis: lanes come in the order of the loops.
  expect_prints({"x = [[1. 3.]\n [2. 4.]]", "shared", "lane 1, [7 8]", "lane 3, [7 8]",
                 "lane 2, [7 8]", "lane 4, [7 8]"},
                vt::vmap(vt::vmap(f), {.in_axes = 1}), vt::tensor({{1.0, 2.0}, {3.0, 4.0}}));
  expect_prints(
      {"per 0 4", "per 1 4"},
      [](Tensor x) {
        return vt::pfor(
            [&](Tensor i) {
              vt::debug_print({.per_lane = true}, "per {} {}", i, x);
              return i;
            },
            2);
      },
      vt::tensor(4));
}

TEST(DebugPrint, NoIterationsPrintNothing) {
  expect_prints(
      {},
      [](Tensor x) {
        return vt::pfor(
            [&](Tensor i) {
              vt::debug_print("x");
              vt::debug_print("{} {}", i, x);
              vt::check(i < 0, "never");
              return i;
            },
            0);
      },
      xs);
}

TEST(DebugPrint, DerivativesPrintOnce) {
  const auto f = [](Tensor x) {
    vt::debug_print("x = {}", x);
    const Tensor y = vt::sin(x);
    vt::debug_print("y = {:.4f}", y);
    return vt::sum(y * y);
  };
  const Lines expected{"x = 2.", "y = 0.9093"};
  const Tensor x = vt::tensor(2.0);
  expect_prints(expected, vt::grad(f), x);
  expect_prints(expected, vt::grad(vt::grad(f)), x);
  expect_prints(expected, vt::hessian(f), x);
  expect_prints(expected, vt::jacobian(f), x);
  expect_prints(
      expected, [&](Tensor t) { return vt::jvp(f, std::tuple(t), std::tuple(t)).second; }, x);
  expect_prints(expected, vt::grad(vt::checkpoint(f)), x);
  expect_prints(expected, vt::grad(vt::grad(vt::checkpoint(f))), x);
  expect_prints({"x = [2. 2.]", "y = [0.9093 0.9093]"}, vt::vmap(vt::grad(f)), vt::full({2}, 2.0));
  expect_prints({"x = [2. 2.]", "y = [0.9093 0.9093]"}, vt::vmap(vt::grad(vt::checkpoint(f))),
                vt::full({2}, 2.0));
  expect_prints({"x = [2. 2.]", "y = [0.9093 0.9093]"},
                vt::grad([&](Tensor t) { return vt::sum(vt::vmap(f)(t)); }), vt::full({2}, 2.0));
}

// --- control flow --------------------------------------------------------------------------------

Tensor branchy(Tensor x) {
  return vt::cond(
      x > 0,
      [](Tensor v) {
        vt::debug_print("positive {}", v);
        return vt::sqrt(v);
      },
      [](Tensor v) {
        vt::debug_print("negative {}", v);
        return v * 2.0;
      },
      x);
}

TEST(Effects, CondPrintsInTheBranchTaken) {
  expect_prints({"positive 4."}, branchy, vt::tensor(4.0));
  expect_prints({"negative -4."}, branchy, vt::tensor(-4.0));
  expect_prints({"positive 4."}, vt::grad(branchy), vt::tensor(4.0));
  expect_prints({"positive 4."}, vt::grad(vt::grad(branchy)), vt::tensor(4.0));
  expect_prints({"positive 1.", "negative -2.", "positive 3."}, vt::vmap(branchy), xs);
  expect_prints({"positive 1.", "negative -2.", "positive 3."}, vt::vmap(vt::grad(branchy)), xs);
  expect_prints({"positive 1.", "negative -2.", "positive 3."},
                vt::grad([](Tensor t) { return vt::sum(vt::vmap(branchy)(t)); }), xs);
  expect_prints(
      {"positive 1.", "negative -2.", "positive 3."},
      [](Tensor t) { return vt::jvp(vt::vmap(branchy), std::tuple(t), std::tuple(t)).second; }, xs);
  expect_prints({"positive 1.", "negative -2.", "positive 3.", "positive 4."},
                vt::vmap(vt::vmap(branchy)), vt::tensor({{1.0, -2.0}, {3.0, 4.0}}));
}

TEST(Effects, ASharedPredicateKeepsTheBatchTogether) {
  const auto f = [](Tensor p, Tensor x) {
    return vt::cond(
        p,
        [](Tensor v) {
          vt::debug_print("yes {}", v);
          return v;
        },
        [](Tensor v) {
          vt::debug_print("no {}", v);
          return -v;
        },
        x);
  };
  expect_prints({"yes [ 1. -2.  3.]"}, vt::vmap(f, {.in_axes = {vt::unmapped, 0}}),
                vt::tensor(true), xs);
  // Lanes of the outer vmap go different ways, each with all of the inner one's.
  expect_prints({"no [1. 2.]", "yes [3. 4.]"},
                vt::vmap(vt::vmap(f, {.in_axes = {vt::unmapped, 0}})), vt::tensor({false, true}),
                vt::tensor({{1.0, 2.0}, {3.0, 4.0}}));
  // Where the inner one's lanes go different ways, they come one by one, in the order of the loops.
  expect_prints({"no 1.", "yes 2.", "no 3.", "yes 4."},
                vt::vmap(vt::vmap(f), {.in_axes = {vt::unmapped, 0}}), vt::tensor({false, true}),
                vt::tensor({{1.0, 2.0}, {3.0, 4.0}}));
}

TEST(Effects, BranchesThatOnlyPrint) {
  const auto f = [](Tensor x) {
    vt::cond(
        x > 0,
        [] {
          vt::debug_print("yes");
          return std::tuple<>();
        },
        [] { return std::tuple<>(); });
    vt::cond(
        x > 0,
        [](Tensor v) {
          vt::debug_print("once more {}", v);
          return v;
        },
        [](Tensor v) { return v; }, x);  // not used
    return x;
  };
  expect_prints({"yes", "once more 1."}, f, vt::tensor(1.0));
  expect_prints({}, f, vt::tensor(-1.0));
  expect_prints({"yes", "yes", "once more 1.", "once more 3."}, vt::vmap(f), xs);
  expect_prints({"yes", "once more 1."}, vt::jit(vt::grad(f)), vt::tensor(1.0));
  expect_prints({"yes", "once more 1."}, vt::grad(vt::jit(f)), vt::tensor(1.0));
  expect_prints({"yes", "yes", "once more 1.", "once more 3."}, vt::vmap(vt::jit(f)), xs);
}

Tensor halve(Tensor x) {  // iterations until it is below one
  return vt::while_loop([](Tensor v) { return v >= 1.0; },
                        [](Tensor v) {
                          vt::debug_print("{}", v);
                          return v / 2.0;
                        },
                        x);
}

TEST(Effects, WhilePrintsInEachIteration) {
  expect_prints({"4.", "2.", "1."}, halve, vt::tensor(4.0));
  expect_prints({}, halve, vt::tensor(0.5));
  expect_prints({"4.", "2.", "1."}, vt::grad(halve), vt::tensor(4.0));
  expect_prints({"4.", "2.", "1."}, vt::grad(vt::grad(halve)), vt::tensor(4.0));
  const Tensor lanes = vt::tensor({4.0, 0.5, 1.0});
  expect_prints({"4.", "2.", "1.", "1."}, vt::vmap(halve), lanes);
  expect_prints({"4.", "2.", "1.", "1."}, vt::vmap(vt::grad(halve)), lanes);
  expect_prints({"4.", "2.", "1.", "1."},
                vt::grad([](Tensor t) { return vt::sum(vt::vmap(halve)(t)); }), lanes);
}

TEST(Effects, ConditionsAreAskedOncePerIteration) {
  const auto f = [](Tensor n, Tensor x) {
    return vt::while_loop(
               [&](Tensor i, Tensor) {
                 vt::debug_print("{}?", i);
                 return i < n;
               },
               [](Tensor i, Tensor v) { return std::pair(i + 1, vt::sin(v)); },
               std::pair(Tensor(0), x), {.checkpoint = 2})
        .second;
  };
  const Lines expected{"0?", "1?", "2?", "3?", "4?", "5?"};
  expect_prints(expected, f, vt::tensor(5), vt::tensor(1.0));
  expect_prints(expected, vt::grad<1>(f), vt::tensor(5), vt::tensor(1.0));
  for (int n : {0, 2, 4, 9}) {  // slots fill up in between, or right at the end
    Lines asked;
    for (int i = 0; i <= n; ++i) asked.push_back(std::to_string(i) + "?");
    expect_prints(asked, vt::grad<1>(f), vt::tensor(n), vt::tensor(1.0));
    expect_prints(asked, vt::grad<1>(vt::grad<1>(f)), vt::tensor(n), vt::tensor(1.0));
  }
  // The first answer is the same for all lanes here, and asked for once.
  expect_prints({"0?", "1?", "2?"}, vt::vmap(vt::grad<1>(f)), vt::tensor({0, 2}),
                vt::tensor({1.0, 2.0}));
}

TEST(Effects, ScanPrintsItsElements) {
  const auto f = [](Tensor x) {
    auto [last, ys] = vt::scan(
        [](Tensor c, Tensor e) {
          vt::debug_print("{} {}", c, e);
          return std::pair(c + e, c * e);
        },
        0.0, x);
    return last;  // ys are dropped, and with them most of the body
  };
  expect_prints({"0. 1.", "1. -2.", "-1. 3."}, f, xs);
  expect_prints({"0. 1.", "1. -2.", "-1. 3."}, vt::grad(f), xs);
  expect_prints({"[0. 0.] [1. 3.]", "[1. 3.] [2. 4.]"}, vt::vmap(f),
                vt::tensor({{1.0, 2.0}, {3.0, 4.0}}));
  const auto unused = [](Tensor x) {
    vt::map(
        [](Tensor e) {
          vt::debug_print("{}", e);
          return e;
        },
        x);
    return x;
  };
  expect_prints({"1.", "-2.", "3."}, unused, xs);
  expect_prints({"1.", "-2.", "3."}, vt::grad([&](Tensor x) { return vt::sum(unused(x)); }), xs);
  expect_prints({"[1. 3.]", "[2. 4.]"}, vt::vmap(vt::jit(unused)),
                vt::tensor({{1.0, 2.0}, {3.0, 4.0}}));
  expect_prints(
      {"0", "1", "2"},
      [](Tensor x) {
        return vt::fori_loop(
            0, 3,
            [](Tensor i, Tensor v) {
              vt::debug_print("{}", i);
              return v + v;
            },
            x);
      },
      xs);
}

// What is known while a program is simplified leaves no equation behind, with effects as without.
TEST(Effects, WhatIsDecidedBeforehandHappensOnce) {
  const Tensor x = vt::tensor(0.5);
  const auto doubled = [](Tensor v) {
    vt::debug_print("twice {}", v);
    return v * 2;
  };
  const auto tripled = [](Tensor v) {
    vt::debug_print("three times {}", v);
    return v * 3;
  };
  const auto alone = [] {
    vt::debug_print("no operands");
    return 1.0;
  };
  const auto iterations = [&](int n) {
    return [=](Tensor v) {
      return vt::scan([=](Tensor c) { return std::pair(doubled(c), c); }, v, std::nullopt,
                      {.length = n});
    };
  };
  expect_prints({}, iterations(0), x);
  expect_prints({"twice 0.5"}, iterations(1), x);
  expect_prints({"twice 0.5", "twice 1."}, iterations(2), x);
  expect_prints(
      {"three times 0.5"},
      [&](Tensor v) { return vt::switch_(1, std::tuple(doubled, tripled), v); }, x);
  expect_prints({"twice 0.5"}, [&](Tensor v) { return vt::cond(v > 0, doubled, doubled, v); }, x);
  expect_prints(
      {"no operands"},
      [&](Tensor v) { return v + vt::switch_(0, std::tuple(alone, [] { return 2.0; })); }, x);
  expect_prints({"no operands"}, [&](Tensor v) { return v + vt::cond(v > 0, alone, alone); }, x);
  expect_prints({"[0.5 0.5]"}, vt::vmap([](Tensor v) {
                  return vt::fori_loop(
                      0, 1,
                      [](Tensor, Tensor c) {
                        vt::debug_print("{}", c);
                        return c;
                      },
                      v);
                }),
                vt::stack({x, x}));
  expect_close(vt::jit(vt::grad([&](Tensor v) { return iterations(1)(v).first; }))(x),
               vt::tensor(2.0));
  // Checks of a list's indices are effects, too.
  const auto pushed = [](Tensor v) {
    return vt::fori_loop(
               0, 1,
               [&](Tensor, vt::TensorList l) {
                 l.push(v);
                 return l;
               },
               vt::TensorList::fixed(2, {}, vt::f64))
        .stack();
  };
  expect_close(vt::jit(pushed)(x), vt::tensor({0.5, 0.0}));
  expect_close(vt::jit(vt::jacrev(pushed))(x), vt::tensor({1.0, 0.0}));
}

TEST(Effects, LoopsInLoopsKeepTheOrder) {
  const auto f = [](Tensor n) {
    return vt::fori_loop(
        0, n,
        [](Tensor i, Tensor s) {
          vt::debug_print("row {}", i);
          const Tensor t = vt::fori_loop(
              0, i,
              [&](Tensor j, Tensor u) {
                vt::cond(
                    j == 1,
                    [&] {
                      vt::debug_print("  {} {}", i, j);
                      return std::tuple<>();
                    },
                    [] { return std::tuple<>(); });
                return u + j;
              },
              s);
          vt::debug_print("sum {}", t);
          return t;
        },
        0);
  };
  expect_prints({"row 0", "sum 0", "row 1", "sum 0", "row 2", "  2 1", "sum 1"}, f, vt::tensor(3));
  expect_prints({"row 0", "sum 0", "row 0", "sum 0", "row 1", "sum 0", "row 2", "  2 1", "sum 1"},
                vt::vmap(f), vt::tensor({0, 1, 3}));
}

// --- check ---------------------------------------------------------------------------------------

Tensor root(Tensor x) {
  vt::check(x >= 0, "the root of {} is not real", x);
  return vt::sqrt(x);
}
const std::string at_root = "; at control_effects_test.cpp:" + std::to_string(__LINE__ - 3);

template <class F, class... A>
void expect_fails(const std::string& expected, const F& f, const A&... arguments) {
  EXPECT_EQ(message([&] { f(arguments...); }), expected) << "as it is";
  const auto compiled = vt::jit(f);
  for (int run = 0; run < 2; ++run)
    EXPECT_EQ(message([&] { compiled(arguments...); }), expected) << "compiled, run " << run;
}

TEST(Check, ThrowsWithTheLineAndTheLane) {
  const Tensor bad = vt::tensor(-2.0);
  expect_fails("vt::check: the root of -2. is not real" + at_root, root, bad);
  expect_fails("no error", root, vt::tensor(4.0));
  expect_fails("vt::check: the root of -2. is not real; in lane 1" + at_root, vt::vmap(root), xs);
  expect_fails("vt::check: the root of -2. is not real; in lane (1, 0)" + at_root,
               vt::vmap(vt::vmap(root)), vt::tensor({{1.0, 2.0}, {-2.0, -3.0}}));
  expect_fails("vt::check: the root of -3. is not real; in lane (0, 1)" + at_root,
               vt::vmap(vt::vmap(root), {.in_axes = 1}), vt::tensor({{1.0, 2.0}, {-3.0, -2.0}}));
  expect_fails("vt::check: the root of -2. is not real" + at_root, vt::grad(root), bad);
  expect_fails("vt::check: the root of -2. is not real; in lane 1" + at_root,
               vt::vmap(vt::grad(root)), xs);
  expect_fails("vt::check: the root of -2. is not real" + at_root,
               vt::vmap([](Tensor x) { return root(vt::tensor(-2.0)) + x; }), xs);
  try {
    root(bad);
    FAIL();
  } catch (const vt::Error& e) {
    EXPECT_EQ(e.kind(), vt::ErrorKind::check);
  }
  EXPECT_EQ(message([] { vt::check(vt::tensor({true, false}), "not all"); }).substr(0, 19),
            "vt::check: not all;");
  EXPECT_EQ(message([] { vt::check(1 > 2, "a plain {}", "bool"); }).substr(0, 24),
            "vt::check: a plain bool;");
}

TEST(Check, CompiledProgramsOfTwoLinesNameTheirOwn) {
  const auto one = vt::jit([](Tensor x) {
    vt::check(x > 0, "x");
    return x + 1.0;
  });
  const auto other = vt::jit([](Tensor x) {
    vt::check(x > 0, "x");
    return x + 1.0;
  });
  EXPECT_NE(message([&] { one(vt::tensor(-1.0)); }), message([&] { other(vt::tensor(-1.0)); }));
}

Tensor guarded(Tensor x) {
  return vt::cond(x >= 0, [](Tensor v) { return root(v); }, [](Tensor v) { return v; }, x);
}

TEST(Check, OnlyInTheBranchTaken) {
  expect_close(vt::vmap(guarded)(xs), vt::tensor({1.0, -2.0, std::sqrt(3.0)}));
  expect_close(vt::jit(vt::vmap(guarded))(xs), vt::tensor({1.0, -2.0, std::sqrt(3.0)}));
  expect_close(vt::vmap(vt::grad(guarded))(xs), vt::tensor({0.5, 1.0, 0.5 / std::sqrt(3.0)}));
  const auto wrong = [](Tensor x) {
    return vt::cond(x < 2.0, [](Tensor v) { return root(v); }, [](Tensor v) { return v; }, x);
  };
  expect_fails("vt::check: the root of -2. is not real; in lane 1" + at_root, vt::vmap(wrong), xs);
  expect_fails("vt::check: the root of -2. is not real; in lane (1, 0)" + at_root,
               vt::vmap(vt::vmap(wrong)), vt::tensor({{1.0, 2.0}, {-2.0, -3.0}}));
}

TEST(Check, InLoopsOfLanes) {
  const auto f = [](Tensor x) {
    return vt::while_loop([](Tensor v) { return v > 0.5; },
                          [](Tensor v) {
                            vt::check(v < 8.0, "{} is too large", v);
                            return v * v;
                          },
                          x);
  };
  expect_close(vt::vmap(f)(vt::tensor({0.9, 0.1})), vt::tensor({std::pow(0.9, 8), 0.1}),
               {.relative = 1e-14});
  EXPECT_EQ(message([&] { vt::vmap(f)(vt::tensor({0.9, 0.1, 2.0})); }).substr(0, 41),
            "vt::check: 16. is too large; in lane 2; a");
  EXPECT_EQ(message([&] { vt::jit(vt::vmap(f))(vt::tensor({0.9, 0.1, 2.0})); }).substr(0, 41),
            "vt::check: 16. is too large; in lane 2; a");
}

TEST(Check, PrintsBeforeItHappenAndThoseBehindDoNot) {
  const auto f = [](Tensor x) {
    vt::debug_print("before");
    vt::check(x > 0, "no");
    vt::debug_print("behind");
    return x;
  };
  for (const bool compiled : {false, true})
    EXPECT_EQ(printed([&] {
                message([&] { compiled ? vt::jit(f)(vt::tensor(-1.0)) : f(vt::tensor(-1.0)); });
              }),
              Lines{"before"});
  // Afterwards everything works as before.
  const auto g = vt::jit(f);
  printed([&] {
    EXPECT_NE(message([&] { g(vt::tensor(-1.0)); }), "no error");
    EXPECT_EQ(g(vt::tensor(2.0)).item<double>(), 2.0);
  });
}

TEST(Check, WhatCannotFailIsNoEffect) {
  const auto f = vt::jit([](Tensor x) {
    vt::check(vt::full({}, true), "never");
    return x + 1.0;
  });
  EXPECT_EQ(f(vt::tensor(1.0)).item<double>(), 2.0);
  EXPECT_EQ(f.explain_steps(vt::tensor(1.0)).find("check"), std::string::npos);
}

// --- values and gradients of branches not taken --------------------------------------------------

TEST(Effects, NaNOfBranchesNotTakenStaysThere) {
  const auto f = [](Tensor x) {
    return vt::cond(
        x > 0, [](Tensor v) { return vt::log(v); }, [](Tensor v) { return v * 0.0; }, x);
  };
  const Tensor at = vt::tensor({0.0, 1.0, -1.0, 2.0});
  expect_close(vt::vmap(f)(at), vt::tensor({0.0, 0.0, -0.0, std::log(2.0)}));
  expect_close(vt::vmap(vt::grad(f))(at), vt::tensor({0.0, 1.0, 0.0, 0.5}));
  expect_close(vt::vmap(vt::grad(vt::grad(f)))(at), vt::tensor({0.0, -1.0, 0.0, -0.25}));
}

TEST(Effects, LoopsOfBranchesNotTakenNeedNotEnd) {
  const auto f = [](Tensor x) {
    return vt::cond(
        x > 0,
        [](Tensor v) {
          return vt::while_loop([](Tensor u) { return u != 0.0; }, [](Tensor u) { return u - 1.0; },
                                v);
        },
        [](Tensor v) { return v; }, x);
  };
  expect_close(vt::vmap(f)(vt::tensor({3.0, -0.5, 2.0})), vt::tensor({0.0, -0.5, 0.0}));
  expect_close(vt::jit(vt::vmap(f))(vt::tensor({3.0, -0.5, 2.0})), vt::tensor({0.0, -0.5, 0.0}));
}

// --- callbacks -----------------------------------------------------------------------------------

TEST(Callback, RunsTheHostsFunctionOnValues) {
  int calls = 0;
  const auto host = vt::callback(
      [&](Tensor x, Tensor s) {
        ++calls;
        return std::pair(vt::tensor(x.to_vector<double>(), x.shape()) * s.item<double>(),
                         vt::tensor(calls));
      },
      std::pair(vt::zeros({3}, vt::f64), vt::zeros({}, vt::i32)));
  const auto f = [&](Tensor x) {
    host(x, vt::tensor(1.0));  // not used, and yet
    auto [y, n] = host(x, vt::tensor(2.0));
    return y + 1.0;
  };
  expect_close(f(xs), xs * 2.0 + 1.0);
  EXPECT_EQ(calls, 2);
  const auto g = vt::jit(f);
  for (int run = 1; run <= 2; ++run) {
    expect_close(g(xs), xs * 2.0 + 1.0);
    EXPECT_EQ(calls, 2 + 2 * run);
  }
}

TEST(Callback, UnderVmapForEachLaneOrOnce) {
  std::vector<vt::Shape> seen;
  const auto f = [&](Tensor x, Tensor w) {
    seen.push_back(x.shape());
    return vt::sum(x * w, -1, false);
  };
  const Tensor x = vt::reshape(vt::arange(6.0, vt::f64), {2, 3}), w = vt::tensor({1.0, 2.0, 3.0});
  const Tensor expected = vt::tensor({8.0, 26.0});
  const auto lanewise =
      vt::vmap(vt::pure_callback(f, vt::zeros({}, vt::f64)), {.in_axes = {0, vt::unmapped}});
  expect_close(lanewise(x, w), expected);
  EXPECT_EQ(seen, (std::vector<vt::Shape>{{3}, {3}}));
  EXPECT_NE(
      vt::warnings().find("vt::pure_callback (a callback) runs once per lane: it takes one lane"),
      std::string::npos)
      << vt::warnings();
  seen.clear();
  const auto whole = vt::pure_callback(f, vt::zeros({}, vt::f64), {.takes_lanes = true});
  expect_close(vt::vmap(whole, {.in_axes = {0, vt::unmapped}})(x, w), expected);
  EXPECT_EQ(seen, (std::vector<vt::Shape>{{2, 3}}));
  expect_close(vt::jit(vt::vmap(vt::vmap(whole, {.in_axes = {0, vt::unmapped}}),
                                {.in_axes = {vt::unmapped, 0}}))(x, vt::stack({w, w + 1.0})),
               vt::tensor({{8.0, 26.0}, {11.0, 38.0}}));
  expect_close(vt::vmap(vt::vmap(vt::pure_callback(f, vt::zeros({}, vt::f64)),
                                 {.in_axes = {0, vt::unmapped}}),
                        {.in_axes = {vt::unmapped, 0}})(x, vt::stack({w, w + 1.0})),
               vt::tensor({{8.0, 26.0}, {11.0, 38.0}}));
}

TEST(Callback, InBranchesAndLoopsOfLanes) {
  std::vector<double> seen;
  const auto note =
      vt::callback([&](Tensor x) { seen.push_back(x.item<double>()); }, std::tuple<>());
  const auto f = [&](Tensor x) {
    return vt::cond(
        x > 0,
        [&](Tensor v) {
          note(v);
          return v;
        },
        [](Tensor v) { return -v; }, x);
  };
  for (const bool compiled : {false, true}) {
    seen.clear();
    expect_close(compiled ? vt::jit(vt::vmap(f))(xs) : vt::vmap(f)(xs), vt::abs(xs));
    EXPECT_EQ(seen, (std::vector<double>{1, 3}));
    seen.clear();
    expect_close(compiled ? vt::jit(vt::vmap(vt::grad(f)))(xs) : vt::vmap(vt::grad(f))(xs),
                 vt::sign(xs));
    EXPECT_EQ(seen, (std::vector<double>{1, 3}));
  }
}

TEST(Callback, PureOnesMayGo) {
  int calls = 0;
  const auto host = vt::pure_callback(
      [&](Tensor x) {
        ++calls;
        return x;
      },
      vt::zeros({3}, vt::f64));
  const auto f = vt::jit([&](Tensor x) {
    host(x);
    return host(x) + host(x);
  });
  expect_close(f(xs), xs * 2.0);
  EXPECT_EQ(calls, 1);
}

TEST(Callback, TheHostMayUseTransformsOfItsOwn) {
  const auto slope = vt::pure_callback(
      [](Tensor x) { return vt::jit(vt::grad([](Tensor v) { return v * v; }))(x); },
      vt::zeros({}, vt::f64));
  expect_close(vt::vmap(slope)(xs), xs * 2.0);
  // Also where a value is asked for while something else is traced.
  const Tensor pending = slope(vt::tensor(3.0));
  expect_close(vt::jit([&](Tensor x) { return x * pending.item<double>(); })(xs), xs * 6.0);
}

TEST(Callback, Errors) {
  const auto wrong = [](auto like) {
    return vt::pure_callback([](Tensor x) { return x; }, like, {.name = "wrong"});
  };
  EXPECT_NE(message([&] { wrong(vt::zeros({2}, vt::f64))(xs).eval(); })
                .find("vt::pure_callback (wrong): the function gave f64[3] as result 0, which must "
                      "be f64[2]"),
            std::string::npos);
  EXPECT_NE(message([&] {
              wrong(vt::zeros({3}))(xs).eval();
            }).find("the function gave f64[3] as result 0, which must be f32[3]"),
            std::string::npos);
  EXPECT_NE(message([&] {
              vt::grad([&](Tensor x) { return vt::sum(wrong(vt::zeros({3}, vt::f64))(x)); })(xs);
            }).find("(wrong) has no derivative"),
            std::string::npos);
  expect_close(vt::grad([&](Tensor x) {
                 return vt::sum(x * wrong(vt::zeros({3}, vt::f64))(vt::stop_gradient(x)));
               })(xs),
               xs);
  const auto throws =
      vt::callback([](Tensor) { throw std::runtime_error("the host's own"); }, std::tuple<>());
  EXPECT_THROW(throws(xs), std::runtime_error);
  EXPECT_THROW(vt::jit([&](Tensor x) {
                 throws(x);
                 return x;
               })(xs),
               std::runtime_error);
  // A derivative that computes iterations again cannot call a function with effects again; that of
  // a branch does not need to.
  const auto counted = vt::callback([](Tensor x) { return x; }, vt::zeros({}, vt::f64));
  const auto branch = [&](Tensor x) {
    return vt::cond(
        x > 0, [&](Tensor v) { return v * counted(vt::stop_gradient(v)); },
        [](Tensor v) { return v; }, x);
  };
  EXPECT_EQ(vt::grad(branch)(vt::tensor(2.0)).item<double>(), 2.0);
  const auto f = [&](Tensor x) {
    return vt::while_loop([](Tensor v) { return v < 9.0; },
                          [&](Tensor v) { return v * counted(vt::stop_gradient(v)); }, x);
  };
  EXPECT_NE(message([&] {
              vt::grad(f)(vt::tensor(2.0));
            }).find("must not call it again, as it has effects"),
            std::string::npos);
}

struct OwnError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An exception says which callback it comes from, in which lane, and where that was called; its
// type stays.
TEST(Callback, ExceptionsSayWhereTheyComeFrom) {
  int line = 0;
  const auto thrown = [&]<class E>(const E& e, double at) {
    const auto guard = [=](Tensor x) {
      if (x.item<double>() == at) throw e;
      return x;
    };
    line = __LINE__ + 1;
    return vt::callback(guard, vt::zeros({}, vt::f64), {.name = "guard"});
  };
  const auto what = [&]<class E>(const E&, const std::function<void()>& use) -> std::string {
    try {
      use();
    } catch (const E& e) {
      EXPECT_EQ(typeid(e), typeid(E));
      return e.what();
    }
    ADD_FAILURE() << "nothing thrown";
    return {};
  };
  const auto everywhere = [&]<class E>(const E& e, const std::string& text) {
    const auto f = thrown(e, 2.0);
    const std::string end = "; in vt::callback (guard); at control_effects_test.cpp:";
    const std::string lane = "; in vt::callback (guard); in lane 1; at control_effects_test.cpp:";
    const Tensor two = vt::tensor(2.0), some = vt::tensor({1.0, 2.0, 3.0});
    EXPECT_EQ(what(e, [&] { f(two); }), text + end + std::to_string(line));
    EXPECT_EQ(what(e, [&] { vt::jit(f)(two); }), text + end + std::to_string(line));
    EXPECT_EQ(what(e, [&] { vt::vmap(f)(some); }), text + lane + std::to_string(line));
    EXPECT_EQ(what(e, [&] { vt::jit(vt::vmap(f))(some); }), text + lane + std::to_string(line));
    const auto branch = [&](Tensor x) {
      return vt::cond(x > 1.5, f, [](Tensor v) { return v; }, x);
    };
    EXPECT_EQ(what(e, [&] { vt::vmap(branch)(some); }), text + lane + std::to_string(line));
    EXPECT_EQ(what(e, [&] { vt::jit(vt::vmap(branch))(some); }),
              text + lane + std::to_string(line));
    const auto loop = [&](Tensor x) {
      return vt::fori_loop(0, 3, [&](Tensor, Tensor v) { return f(v) + 1.0; }, x);
    };
    EXPECT_EQ(what(e, [&] { vt::jit(loop)(vt::tensor(0.0)); }), text + end + std::to_string(line));
    EXPECT_EQ(what(e, [&] { vt::vmap(vt::vmap(f))(vt::tensor({{0.0, 1.0}, {2.0, 3.0}})); }),
              text + "; in vt::callback (guard); in lane (1, 0); at control_effects_test.cpp:" +
                  std::to_string(line));
  };
  everywhere(std::runtime_error("no such row"), "no such row");
  everywhere(std::invalid_argument("odd"), "odd");
  everywhere(std::out_of_range("far"), "far");
  everywhere(vt::Error(vt::ErrorKind::io, "no file"), "no file");
  // The kind of vt's own error stays.
  try {
    thrown(vt::Error(vt::ErrorKind::io, "no file"), 2.0)(vt::tensor(2.0));
    ADD_FAILURE();
  } catch (const vt::Error& e) {
    EXPECT_EQ(e.kind(), vt::ErrorKind::io);
  }
  // What vt cannot make anew comes as it was thrown.
  EXPECT_EQ(what(OwnError("mine"), [&] { thrown(OwnError("mine"), 2.0)(vt::tensor(2.0)); }),
            "mine");
  EXPECT_THROW(vt::vmap(thrown(7, 2.0))(vt::tensor({1.0, 2.0})), int);
  // An error of vt in the function names its own line, then the call's.
  const auto checks = vt::callback(
      [](Tensor x) {
        vt::check(x > 0, "not positive");
        return x;
      },
      vt::zeros({}, vt::f64), {.name = "log"});
  const std::string text = message([&] { vt::vmap(checks)(vt::tensor({1.0, -2.0})); });
  EXPECT_EQ(text.find("vt::check: not positive; at control_effects_test.cpp:"), 0u) << text;
  EXPECT_NE(text.find("; in vt::callback (log); in lane 1; at control_effects_test.cpp:"),
            std::string::npos)
      << text;
  // Of a function that takes all lanes none is named.
  const auto all = vt::callback(
      [](Tensor x) {
        if (x.size() > 0) throw vt::Error(vt::ErrorKind::io, "all");
        return x;
      },
      vt::zeros({}, vt::f64), {.takes_lanes = true, .name = "whole"});
  EXPECT_EQ(message([&] {
              vt::vmap(vt::vmap(all))(vt::ones({2, 3}, vt::f64));
            }).find("all; in vt::callback (whole); at "),
            0u);
}

TEST(Callback, WrongResultsNameTheLane) {
  const auto wrong =
      vt::pure_callback([](Tensor x) { return x.item<double>() > 1 ? vt::ones({2}, vt::f64) : x; },
                        vt::zeros({}, vt::f64), {.name = "wrong"});
  for (const bool compiled : {false, true}) {
    const std::string text = message([&] {
      const auto f = vt::vmap(wrong);
      (compiled ? vt::jit(f)(xs) : f(xs)).eval();
    });
    EXPECT_NE(text.find("vt::pure_callback (wrong): the function gave f64[2] as result 0, which "
                        "must be f64[]; in lane "),
              std::string::npos)
        << text;
  }
}

TEST(Effects, AnExceptionOfTheSinkSaysWhichPrint) {
  vt::set_print_sink([](std::string_view) { throw std::runtime_error("the disk is full"); });
  const auto f = [](Tensor x) {
    vt::debug_print({.per_lane = true}, "{}", x);
    return x;
  };
  std::string eager, lanes;
  try {
    f(vt::tensor(1.0));
  } catch (const std::runtime_error& e) {
    eager = e.what();
  }
  try {
    vt::jit(vt::vmap(f))(xs);
  } catch (const std::runtime_error& e) {
    lanes = e.what();
  }
  vt::set_print_sink(nullptr);
  EXPECT_EQ(eager.find("the disk is full; in the sink of vt::debug_print; at control_effects"), 0u)
      << eager;
  EXPECT_EQ(lanes.find("the disk is full; in the sink of vt::debug_print; in lane 0; at "), 0u)
      << lanes;
}

TEST(Effects, AValueOfAnEquationWithEffectsIsNotKnownWhileItIsRecorded) {
  EXPECT_NE(
      message([] {
        vt::grad([](Tensor x) { return branchy(x).item<double>() > 0 ? x : -x; })(vt::tensor(2.0));
      }).find("a value that vt::cond at "),
      std::string::npos);
}

}  // namespace
