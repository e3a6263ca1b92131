// DebugNans: a NaN that is looked at is told by the op that made it, its operands, the user's line,
// the lane and the iteration, however the program runs; others are silent.
#include <gtest/gtest.h>

#include <limits>

#include <vt/vt.hpp>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::message;
using Function = std::function<Tensor(Tensor)>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A program that makes a NaN, and where.
struct Planted {
  const char* name;
  Function f;
  std::vector<double> x;
  const char* call;                    ///< "log(-1)"
  int line;                            ///< in this file; 0: another one is checked
  std::vector<const char*> more = {};  ///< that the message says
};

std::vector<Planted> planted() {
  const int here = __LINE__;
  const auto log = [](Tensor x) { return vt::log(x); };
  const auto divide = [](Tensor x) { return x / (x - x); };
  const auto in_sum = [](Tensor x) { return vt::sum(vt::sqrt(x)) * 2 + 1; };
  const auto masked = [](Tensor x) { return vt::sum(vt::where(x < 100, vt::log(x), 0.0)); };
  const auto product = [](Tensor x) { return vt::matmul(vt::log(x), vt::ones({3, 2}, vt::f64)); };
  const auto scanned = [](Tensor x) {
    return vt::scan([](Tensor c, Tensor y) { return std::pair(c + vt::log(y), c); }, 0.0, x).first;
  };
  const auto looped = [](Tensor x) {
    return vt::fori_loop(0, 9, [](Tensor, Tensor y) { return vt::sqrt(y) - 0.5; }, x);
  };
  const auto whiled = [](Tensor x) {
    return vt::while_loop([](Tensor y) { return vt::min(y) > -1; },
                          [](Tensor y) { return vt::where(y > 0, y - 1, vt::log(y - 5)); }, x);
  };
  const auto branched = [](Tensor x) {
    return vt::cond(x[0] > 0, [&] { return vt::acos(x * 2); }, [&] { return x; });
  };
  const auto sorted = [](Tensor x) { return vt::cumsum(vt::sort(vt::asin(x)))[2]; };
  const auto gathered = [](Tensor x) { return vt::take(vt::log(x), vt::tensor({2, 1}))[1]; };
  const auto lanes = [](Tensor x) {
    return vt::vmap([](Tensor y) {
      return vt::cond(y > 0, [&] { return vt::sqrt(y - 2); }, [&] { return y; });
    })(x);
  };
  const auto checkpointed = [](Tensor x) {
    return vt::checkpoint([](Tensor y) { return vt::exp(vt::log(y)); })(x);
  };
  const auto function = [](Tensor x) {
    return vt::function("inner", [](Tensor y) { return vt::log(y); })(x) * 3;
  };
  return {
      {"log", log, {1, -1, 2}, "log(-1)", here + 1},
      {"divide", divide, {1, 0, 2}, "div(0, 0)", here + 2},
      {"in a sum", in_sum, {1, 4, -3}, "sqrt(-3)", here + 3},
      {"masked and read", masked, {1, -7, 200}, "log(-7)", here + 4},
      {"a product", product, {1, 2, -5}, "log(-5)", here + 5},
      {"scan",
       scanned,
       {1, 2, -2},
       "log(-2)",
       here + 7,
       {"in iteration 2 of the loop at debug_nans_test.cpp:"}},
      {"fori_loop",
       looped,
       {4, 1, 9},
       "sqrt(-0.195497)",
       here + 10,
       {"in iteration 5 of the loop at"}},
      {"while_loop", whiled, {3, 2, 1}, "log(", here + 14, {"in iteration 1 of the loop"}},
      {"cond", branched, {0.1, 0.2, 3}, "acos(6)", here + 17},
      {"sort", sorted, {0.5, 2, 0.1}, "asin(2)", here + 19},
      {"take", gathered, {1, -8, 2}, "log(-8)", here + 20},
      {"lanes of cond", lanes, {5, 1, -1}, "sqrt(-1)", here + 23},
      {"checkpoint", checkpointed, {1, 2, -4}, "log(-4)", here + 27},
      {"function", function, {1, 2, -6}, "log(-6)", here + 30},
  };
}

void expect_told(const Planted& p, const char* how, const std::function<Tensor()>& run) {
  const vt::DebugNans watch;
  const std::string text = message([&] { (void)run().to_vector<double>(); });
  const std::string what = std::string(p.name) + ", " + how + ": " + text;
  EXPECT_NE(text.find(" is not finite"), std::string::npos) << what;
  EXPECT_NE(text.find(std::string("vt::") + p.call), std::string::npos) << what;
  EXPECT_NE(text.find("debug_nans_test.cpp:" + std::to_string(p.line)), std::string::npos) << what;
  for (const char* more : p.more) EXPECT_NE(text.find(more), std::string::npos) << what;
}

TEST(DebugNans, TellsWhereItWasMade) {
  for (const Planted& p : planted()) {
    const Tensor x = vt::tensor(p.x);
    expect_told(p, "eager", [&] { return p.f(x); });
    const auto jitted = vt::jit(p.f);
    for (const char* how : {"jit", "jit again", "jit a third time"})
      expect_told(p, how, [&] { return jitted(x); });
    const auto twice = vt::jit([&](Tensor y) { return vt::sum(p.f(y)) * 2; });
    expect_told(p, "read on", [&] { return twice(x); });
    const Tensor many = vt::stack(std::vector<Tensor>(40, x));
    expect_told(p, "vmap", [&] { return vt::jit(vt::vmap(p.f))(many); });
  }
}

TEST(DebugNans, OneOfAThousandLanes) {
  const vt::DebugNans watch;
  std::vector<double> x(1000, 2.0);
  x[617] = -2.0;
  const auto f = vt::jit(vt::vmap([](Tensor y) { return vt::log(y) * 2; }));
  for (int i = 0; i < 3; ++i) {
    const std::string text = message([&] { (void)f(vt::tensor(x)).to_vector<double>(); });
    EXPECT_NE(text.find("f64[1000] is not finite at [617]: vt::log(-2) at debug_nans_test.cpp:"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find(" made it, element [617] of f64[1000]; at "), std::string::npos) << text;
  }
}

TEST(DebugNans, ThroughDerivatives) {
  // The derivative of √ at 0 is ∞, and 0 · ∞ is NaN.
  const auto f = [](Tensor x) { return vt::sum(vt::where(x > 0, vt::sqrt(x), 0.0)); };
  const int line = __LINE__ - 1;
  const Tensor x = vt::tensor({1.0, 0.0, 4.0});
  for (int i = 0; i < 3; ++i) {
    const vt::DebugNans watch;
    const auto gradient = vt::jit(vt::grad(f));
    const std::string text = message([&] { (void)gradient(x).to_vector<double>(); });
    EXPECT_NE(text.find("debug_nans_test.cpp:" + std::to_string(line)), std::string::npos) << text;
    const auto hessian = vt::jit(vt::hessian(f));
    const std::string second = message([&] { (void)hessian(x).to_vector<double>(); });
    EXPECT_NE(second.find("debug_nans_test.cpp:" + std::to_string(line)), std::string::npos)
        << second;
  }
}

TEST(DebugNans, AcrossRuns) {
  const vt::DebugNans watch;
  const auto step = vt::jit([](Tensor w) { return w - vt::log(w) * 0.5; }, {.donate = {0}});
  const int line = __LINE__ - 1;
  Tensor w = vt::tensor({0.5, 0.3, -0.1});
  for (int i = 0; i < 40; ++i) w = step(std::move(w));
  const std::string text = message([&] { (void)w.to_vector<double>(); });
  EXPECT_NE(text.find("vt::log(-0.1) at "), std::string::npos) << text;
  EXPECT_NE(text.find("debug_nans_test.cpp:" + std::to_string(line)), std::string::npos) << text;
}

TEST(DebugNans, VariablesAndDraws) {
  const vt::DebugNans watch;
  vt::Variable total(vt::tensor(3.0));
  const auto step = vt::jit([&](Tensor key) {
    const Tensor draw = vt::random::uniform(key, {3}, vt::f64);
    total.assign_sub(1.5);
    return vt::sum(vt::sqrt(total.read()) * draw);
  });
  const Tensor key = vt::random::key(1);
  EXPECT_GT(step(key).item<double>(), 0);
  EXPECT_EQ(step(key).item<double>(), 0);
  for (int i = 0; i < 2; ++i) {
    const std::string text = message([&] { (void)step(key).item<double>(); });
    EXPECT_NE(text.find(i == 0 ? "vt::sqrt(-1.5) at " : "vt::sqrt(-3) at "), std::string::npos)
        << text;
  }
}

TEST(DebugNans, WhatTheDataBring) {
  const vt::DebugNans watch;
  struct Params {
    Tensor w, b;
  };
  const auto f = vt::jit([](const Params& p, Tensor x) { return p.w * x + p.b; });
  const Tensor x = vt::ones({3}, vt::f64);
  for (int i = 0; i < 3; ++i) {
    const std::string text =
        message([&] { (void)f(Params{x, vt::tensor({1.0, nan, 2.0})}, x).to_vector<double>(); });
    EXPECT_NE(text.find("is not finite at [1]: argument 0 .b of the function jitted at "
                        "debug_nans_test.cpp:"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("brought it, at [1]"), std::string::npos) << text;
  }
  // What no op has made is the user's own.
  EXPECT_TRUE(vt::tensor({nan}).to_vector<double>()[0] != 0);
}

/// What is said when a value decides where f(x) goes, or an effect of it gets the value.
void expect_inside(const char* sink, const std::vector<double>& x, const Function& f) {
  const vt::DebugNans watch;
  const auto jitted = vt::jit(f);
  const auto lanes = vt::jit(vt::vmap(f));
  const Tensor one = vt::tensor(x), many = vt::stack(std::vector<Tensor>(5, one));
  const auto expect = [&](const char* how, const std::function<Tensor()>& run) {
    const std::string text = message([&] { (void)run().to_vector<double>(); });
    EXPECT_NE(text.find(std::string("vt::") + sink), std::string::npos)
        << sink << ", " << how << ": " << text;
    EXPECT_NE(text.find(" got a value that is not finite: vt::log(-1) at "), std::string::npos)
        << sink << ", " << how << ": " << text;
  };
  expect("eager", [&] { return f(one); });
  expect("jit", [&] { return jitted(one); });
  expect("jit again", [&] { return jitted(one); });
  expect("vmap", [&] { return lanes(many); });
}

TEST(DebugNans, WhatDecides) {
  const std::vector<double> x{1, -1, 2};
  const auto decides = ", which decides where the program goes,";
  const auto one = [&](const char* op) { return op + std::string(decides); };
  const auto sum = [](Tensor y) { return vt::sum(vt::log(y)); };
  expect_inside(one("gt").c_str(), x, [&](Tensor y) {
    return vt::cond(sum(y) > 0, [&] { return y; }, [&] { return y * 0; });
  });
  expect_inside(one("lt").c_str(), x, [&](Tensor y) {  // ends at once
    return vt::while_loop([&](Tensor z) { return sum(z) < 10; }, [](Tensor z) { return z * 2; }, y);
  });
  expect_inside(one("le").c_str(), x, [&](Tensor y) {  // of what no result is made
    return vt::while_loop(
               [&](std::pair<Tensor, Tensor> c) { return (!(c.second <= 4)) & (c.first < 9); },
               [&](std::pair<Tensor, Tensor> c) {
                 return std::pair(c.first + 1, vt::where(c.first > 4, 3.0, sum(y)));
               },
               std::pair(vt::tensor(0.0), vt::tensor(20.0)))
        .first;
  });
  expect_inside(one("ge").c_str(), x, [&](Tensor y) {  // in a loop, as a flag that is carried
    return vt::scan(
               [&](std::pair<Tensor, Tensor> c, Tensor z) {
                 const Tensor next =
                     vt::cond(c.first, [&] { return c.second; }, [&] { return c.second + z; });
                 return std::pair(std::pair(c.first | (vt::log(z) >= 2), next), next);
               },
               std::pair(vt::tensor(false), vt::tensor(0.0)), y)
        .second;
  });
  expect_inside(one("convert").c_str(), x, [&](Tensor y) {
    return vt::switch_(sum(y).astype(vt::i32),
                       std::tuple([&] { return y; }, [&] { return y * 0; }));
  });
  expect_inside(one("eq").c_str(), x, [&](Tensor y) {
    vt::check((sum(y) == sum(y * 2)) | (y[0] > 0), "differ");
    return y;
  });
}

TEST(DebugNans, WhatEffectsGet) {
  vt::set_print_sink([](std::string_view) {});
  const std::vector<double> x{1, -1, 2};
  expect_inside("debug_print", x, [](Tensor y) {
    vt::debug_print("{}", vt::log(y)[1]);
    return y;
  });
  expect_inside("debug_print", x, [](Tensor y) {
    return vt::scan(
               [](Tensor c, Tensor z) {
                 vt::cond(
                     z < 1,
                     [&] {
                       vt::debug_print("{}", vt::log(z));
                       return c;
                     },
                     [&] { return c; });
                 return std::pair(c + z, c);
               },
               0.0, y)
        .second;
  });
  expect_inside("callback", x, [](Tensor y) {
    vt::callback([](Tensor) {}, std::tuple<>())(vt::log(y));
    return y;
  });
  vt::set_print_sink({});
}

TEST(DebugNans, TruthOfATensor) {
  const vt::DebugNans watch;
  const auto below = vt::jit([](Tensor y) { return vt::sum(vt::log(y)) < 3; });
  const auto both = vt::jit([](Tensor a, Tensor b) { return std::pair(a & b, !b); });
  for (const Tensor& x : {vt::tensor({1.0, -1.0}), vt::tensor({1.0, 2.0})}) {
    const bool bad = x[1].item<double>() < 0;
    for (int i = 0; i < 2; ++i) {
      const auto expect = [&](const std::function<Tensor()>& f) {
        const std::string text = message([&] {
          if (f()) (void)x;
        });
        EXPECT_EQ(bad, text.find("bool[] follows from vt::lt at debug_nans_test.cpp:") !=
                           std::string::npos)
            << text;
        EXPECT_EQ(bad, text.find("is not finite: vt::log(-1) at ") != std::string::npos) << text;
      };
      expect([&] { return below(x); });
      expect([&] { return vt::sum(vt::log(x)) < 3; });
      expect([&] { return both(below(x), vt::tensor(true)).first; });
      expect([&] { return below(x) | vt::tensor(false); });
      // What other comparisons decide is not blamed.
      EXPECT_FALSE(both(below(x), vt::tensor(true)).second);
    }
  }
  // Asking for it is no fault, and what nothing decides is none.
  const Tensor x = vt::log(vt::tensor({-1.0, 1.0}));
  EXPECT_TRUE(vt::any(vt::isnan(x)));
  EXPECT_TRUE(vt::any(x != x));
  EXPECT_FALSE(vt::isfinite(x)[0]);
  EXPECT_TRUE(vt::any(vt::signbit(x) | (x > -1)));
  EXPECT_TRUE(vt::all(vt::isnan(x) | (x >= 0)));
  const Tensor far = vt::tensor(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(vt::allclose(far, far));
  EXPECT_TRUE(vt::allclose(x, x, 1e-5, 1e-8, true));
  EXPECT_EQ((x > 0).to_vector<bool>(), (std::vector{false, false}));
}

TEST(DebugNans, OfChecksThatFail) {
  const vt::DebugNans watch;
  const auto below = [](Tensor x) {
    const Tensor energy = vt::sum(vt::log(x));
    vt::check(energy < 10, "energy is {}", energy);
    return energy;
  };
  const auto finite = [](Tensor x) {
    const Tensor y = vt::sqrt(x) + 1.0;
    vt::check_finite(std::pair(y, x));
    return y * 2;
  };
  const Tensor x = vt::tensor({1.0, -1.0});
  const auto expect = [&](const auto& f, const char* start, const char* sink, const char* origin) {
    for (const std::string& text :
         {message([&] { (void)f(x).eval(); }), message([&] { (void)vt::jit(f)(x).eval(); }),
          message([&] { (void)vt::vmap(f)(vt::stack(std::vector<Tensor>{x, x})).eval(); })}) {
      EXPECT_EQ(text.find(start), 0u) << text;
      EXPECT_NE(text.find(sink), std::string::npos) << text;
      EXPECT_NE(text.find(origin), std::string::npos) << text;
    }
  };
  expect(below, "vt::check: energy is nan", "; vt::lt at debug_nans_test.cpp:",
         " got a value that is not finite: vt::log(-1) at debug_nans_test.cpp:");
  expect(finite, "vt::check_finite: [0] is not finite", "; vt::is_finite at debug_nans_test.cpp:",
         " got a value that is not finite: vt::sqrt(-1) at debug_nans_test.cpp:");
}

TEST(DebugNans, OnlyTheLastRunsAreKept) {
  const vt::DebugNans watch;
  const auto step = vt::jit([](Tensor w, Tensor x) { return vt::matmul(w, x) * 0.5 + vt::log(w); });
  Tensor w = vt::tensor({{0.5, -1.0}, {0.3, 0.2}});
  const Tensor x = vt::eye(2, vt::f64);
  const auto told = [&] { return message([&] { (void)w.to_vector<double>(); }); };
  for (int i = 0; i < 30; ++i) {
    w = step(w, x);
    const std::string text = i % 7 ? "vt::log(-1) at debug_nans_test.cpp:" : told();
    EXPECT_NE(text.find("vt::log(-1) at debug_nans_test.cpp:"), std::string::npos) << i << text;
  }
  // A new one is told apart from the old one as long as its run is kept.
  w = step(vt::sqrt(vt::where(vt::isnan(w), -4.0, w)), x);
  EXPECT_NE(told().find("vt::sqrt(-4) at "), std::string::npos) << told();
}

TEST(DebugNans, CallbacksMayLookThemselves) {
  // The search runs the callback again, which has NaN of its own.
  const auto host = vt::pure_callback(
      [](Tensor x) {
        const vt::DebugNans inside;
        Tensor bad = vt::log(vt::tensor(-2.0));
        for (int i = 0; i < 12; ++i) bad = (bad * 0.5).eval();
        EXPECT_NE(message([&] { (void)bad.item<double>(); }).find("vt::log("), std::string::npos);
        return x * 2.0;
      },
      vt::tensor(0.0));
  const vt::DebugNans watch;
  const auto step = vt::jit([&](Tensor w) { return vt::log(w) + host(w) * 0.0; });
  Tensor w = vt::tensor(-1.0);
  for (int i = 0; i < 12; ++i) w = step(w);
  const std::string text = message([&] { (void)w.item<double>(); });
  EXPECT_NE(text.find("vt::log(-1) at "), std::string::npos) << text;
}

TEST(DebugNans, TextsOfOrigins) {
  const vt::DebugNans watch;
  const auto expect = [](const char* what, const std::function<Tensor()>& f) {
    const std::string text = message([&] { (void)f().to_vector<double>(); });
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  const Tensor x = vt::tensor({1.0, 1.0000001});
  expect("vt::acos(1.0000001", [&] { return vt::acos(x); });
  expect("it is a constant of the program at debug_nans_test.cpp:", [&] { return x * nan; });
  expect("it is a constant of the program at debug_nans_test.cpp:",
         [&] { return vt::jit([](Tensor y) { return vt::where(y > 1, y, nan); })(x); });
  // An element of a product comes from a factor, whatever else is there.
  std::vector<double> elements(1200, 1.0);
  elements[3 * 40 + 7] = -1.0;
  const Tensor a = vt::reshape(vt::tensor(elements), {30, 40});
  expect("is not finite at [3,0]: vt::log(-1) at ",
         [&] { return vt::matmul(vt::log(a), vt::ones({40, 5}, vt::f64)); });
}

TEST(DebugNans, IsSilentWhereNobodyReadsIt) {
  const vt::DebugNans watch;
  const Tensor x = vt::tensor({1.0, -1.0, 0.0});
  const auto safe = [](Tensor y) { return vt::where(y > 0, vt::log(y), 0.0); };
  EXPECT_EQ(safe(x).to_vector<double>(), (std::vector{0.0, 0.0, 0.0}));
  const auto f = vt::jit(safe);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x).to_vector<double>(), (std::vector{0.0, 0.0, 0.0}));
  const auto branch = vt::jit(vt::vmap(
      [](Tensor y) { return vt::cond(y > 0, [&] { return vt::log(y); }, [&] { return y * 0; }); }));
  EXPECT_EQ(vt::sum(branch(x)).item<double>(), 0);
  const double low = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(vt::logsumexp(vt::tensor({low, 0.0})).item<double>(), 0);
  EXPECT_EQ(vt::log(vt::tensor(0.0)).item<double>(), low);
}

TEST(DebugNans, Infinities) {
  const vt::DebugNans watch({.infinities = true});
  const auto f = vt::jit([](Tensor x) { return vt::log(x) + 1; });
  for (int i = 0; i < 2; ++i) {
    const std::string text = message([&] { (void)f(vt::tensor({1.0, 0.0})).to_vector<double>(); });
    EXPECT_NE(text.find("vt::log(0) at "), std::string::npos) << text;
  }
  {
    const vt::DebugNans nans_only;
    EXPECT_LT(f(vt::tensor({0.0})).item<double>(), 0);
  }
  EXPECT_NE(message([&] { (void)f(vt::tensor({0.0})).item<double>(); }), "no error");
}

TEST(DebugNans, OfOneThread) {
  Tensor bad;
  {
    const vt::DebugNans watch;
    bad = vt::log(vt::tensor(-1.0)).eval();
  }
  EXPECT_TRUE(std::isnan(bad.item<double>()));
}

TEST(DebugNans, CheckFinite) {
  struct Params {
    Tensor w, b;
  };
  const auto f = vt::jit([](const Params& p) {
    vt::check_finite(p);
    return p.w + 1;
  });
  EXPECT_EQ(f(Params{vt::tensor(1.0), vt::arange(3)}).item<double>(), 2.0);
  for (int i = 0; i < 2; ++i)
    vt_test::expect_error([&] { (void)f(Params{vt::tensor(1.0), vt::tensor(nan)}).eval(); },
                          vt::ErrorKind::check,
                          {"vt::check_finite: b is not finite; at debug_nans_test.cpp:"});
}

}  // namespace
