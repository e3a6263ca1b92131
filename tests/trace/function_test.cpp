// Functions called by name: what they give equals what their bodies give in place of the call,
// under every transform; and what is recorded.
#include <map>
#include <set>
#include <tuple>

#include "src/trace/ir/graph.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using vt_test::random_tensor;

/// Equal but for the order in which an executor sums.
const vt_test::Tolerance close = {.ulps = 64, .absolute = 1e-12};

Tensor cell(Tensor h, Tensor x) { return vt::tanh(h * x + vt::sin(x)) + 0.5 * h; }
/// Scalars go through `call`, three times.
template <class F>
auto through(F call) {
  return [call](Tensor a, Tensor b) { return call(call(a, b), call(b * 2.0, a)); };
}
/// Fifty equations.
Tensor long_chain(Tensor x) {
  for (int i = 0; i < 25; ++i) x = vt::sin(x) * 1.01;
  return x;
}
int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Function, IsRecordedOnce) {
  int runs = 0;
  const auto f = vt::function("chain", [&](Tensor x) {
    ++runs;
    return long_chain(x);
  });
  const auto hundred = [&](Tensor x) {
    for (int i = 0; i < 100; ++i) x = f(x);
    return x;
  };
  const Tensor x = random_tensor(vt::f64, {3}, -1, 1, 1);
  const vt::Graph g = vt::make_graph(hundred)(x);
  EXPECT_EQ(g.size(), 100u);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(count(g.str(), "call[name=chain]"), 100);
  EXPECT_EQ(count(g.str(), "= sin "), 25) << "the body is shown once";
  EXPECT_EQ(count(g.to_dot(), "label=\"sin\""), 25);
  Tensor y = x;
  for (int i = 0; i < 100; ++i) y = long_chain(y);
  expect_close(hundred(x), y, close);
  expect_close(vt::jit(hundred)(x), y, close);
  expect_close(g({{x}})[0], y, close);
  EXPECT_EQ(runs, 1);
  f(vt::ones({4}));
  EXPECT_EQ(runs, 2) << "another signature";
}

TEST(Function, TransformsTakeTheBodyOnce) {
  const auto f = vt::function("chain", [](Tensor x) { return long_chain(x); });
  const auto hundred = [&](Tensor x) {
    for (int i = 0; i < 100; ++i) x = f(x);
    return vt::sum(x);
  };
  const Tensor x = random_tensor(vt::f64, {3}, -1, 1, 1), xs = vt::stack({x, x * 0.5});
  const auto size = [](auto g, auto... a) { return vt::make_graph(g)(a...); };
  EXPECT_LE(size(vt::vmap(hundred), xs).size(), 101u);
  EXPECT_LE(
      size([&](Tensor v) { return vt::jvp(hundred, std::tuple(v), std::tuple(v)); }, x).size(),
      104u);
  const vt::Graph g = size(vt::grad(hundred), x);
  EXPECT_LE(g.size(), 210u);
  EXPECT_EQ(count(g.str(), "= cos "), 25);
  EXPECT_LE(size(vt::vmap(vt::grad(hundred)), xs).size(), 210u);
  EXPECT_LE(size(vt::jit(hundred), x).size(), 101u);
}

TEST(Function, EqualsItsBody) {
  const auto plain = through(cell);
  const auto called = through(vt::function("cell", cell));
  const Tensor a = random_tensor(vt::f64, {}, -1, 1, 1), b = random_tensor(vt::f64, {}, -1, 1, 2);
  const Tensor as = random_tensor(vt::f64, {5}, -1, 1, 3),
               bs = random_tensor(vt::f64, {5}, -1, 1, 4);
  const auto same = [&](auto transform) {
    const auto x = transform(plain);
    const auto y = transform(called);
    expect_close(y(a, b), x(a, b), close);
    expect_close(vt::jit(y)(a, b), x(a, b), close);
    const std::vector<std::optional<int>> first = {0, std::nullopt};
    expect_close(vt::vmap(y)(as, bs), vt::vmap(x)(as, bs), close);
    expect_close(vt::vmap(y, {.in_axes = {0, vt::unmapped}})(as, b),
                 vt::vmap(x, {.in_axes = {0, vt::unmapped}})(as, b), close);
    expect_close(vt::jit(vt::vmap(y))(as, bs), vt::vmap(x)(as, bs), close);
    const auto twice = [](auto f) {
      return vt::vmap(vt::vmap(f, {.in_axes = {vt::unmapped, 0}}), {.in_axes = {0, vt::unmapped}});
    };
    expect_close(twice(y)(as, bs), twice(x)(as, bs), close);
    expect_close(vt::pfor([&](Tensor i) { return y(as[i], bs[i]); }, 5),
                 vt::pfor([&](Tensor i) { return x(as[i], bs[i]); }, 5), close);
  };
  same([](auto f) { return f; });
  same([](auto f) { return vt::grad(f); });
  same([](auto f) { return vt::grad<1>(f); });
  same([](auto f) { return vt::grad(vt::grad<1>(f)); });
  same([](auto f) { return vt::grad(vt::grad(vt::grad(f))); });
  same([](auto f) { return vt::jacfwd(f); });
  same([](auto f) { return vt::jacfwd(vt::jacrev(f)); });
  same([](auto f) { return vt::jacrev(vt::jacfwd(f)); });
  same([](auto f) { return vt::hessian(f); });
  same([](auto f) { return vt::grad(vt::jit(f)); });
  same([](auto f) { return vt::grad(vt::checkpoint(f)); });
  same([](auto f) {
    return [f](Tensor x, Tensor y) {
      return std::get<1>(vt::jvp(f, std::tuple(x, y), std::tuple(y, x)));
    };
  });
  same([](auto f) {
    return [f](Tensor x, Tensor y) { return std::get<1>(vt::linearize(f, x, y))(y, x); };
  });
}

TEST(Function, TreesStaticArgumentsAndWeakNumbers) {
  struct Layer {
    Tensor w, b;
  };
  int runs = 0;
  const auto f =
      vt::function("layer", [&](const Layer& l, const std::map<std::string, Tensor>& x, int power) {
        ++runs;
        Tensor y = vt::matmul(l.w, x.at("x")) + l.b;
        for (int i = 1; i < power; ++i) y = y * y;
        return std::pair(y, std::vector<Tensor>{l.b, vt::sum(y)});
      });
  const Layer l{random_tensor(vt::f32, {2, 3}, -1, 1, 1), random_tensor(vt::f32, {2}, -1, 1, 2)};
  const std::map<std::string, Tensor> x = {{"x", random_tensor(vt::f32, {3}, -1, 1, 3)}};
  const auto [y, more] = f(l, x, 2);
  const Tensor expected = vt::square(vt::matmul(l.w, x.at("x")) + l.b);
  expect_close(y, expected, {.ulps = 8});
  expect_close(more[1], vt::sum(expected), {.ulps = 8});
  f(l, x, 2);
  EXPECT_EQ(runs, 1);
  f(l, x, 3);
  EXPECT_EQ(runs, 2);
  const auto g = vt::grad([&](const Layer& w) { return f(w, x, 2).second[1]; })(l);
  EXPECT_EQ(g.w.shape(), vt::Shape({2, 3}));
  const auto half = vt::function("half", [](Tensor v) { return v * 0.5; });
  EXPECT_EQ(half(vt::ones({2})).dtype(), vt::f32);
  EXPECT_EQ((half(Tensor(3.0)) * vt::ones({2})).dtype(), vt::f32) << "a number stays weak";
  EXPECT_EQ(vt::eval_shape(f, l, x, 2).first.shape(), vt::Shape({2}));
}

// Each call is one equation, and what all calls have in common is there once.
TEST(Function, CallsShareTheirParameters) {
  const auto f = vt::function(
      "cell", [](Tensor h, Tensor c) { return std::pair(cell(h, c), vt::sin(h) * c); });
  const auto chain = [&](Tensor h, Tensor c) {
    for (int i = 0; i < 1000; ++i) std::tie(h, c) = f(h, c);
    return vt::sum(h) + vt::sum(c);
  };
  const Tensor x = vt::ones({3});
  const auto parameters = [](const vt::Graph& g, std::size_t* calls) {
    std::set<const vt::detail::Params*> all;
    *calls = 0;
    for (const vt::detail::Equation& e : g.body().equations)
      if (e.op == vt::detail::Op::call) all.insert(e.params.get()), ++*calls;
    return all.size();
  };
  std::size_t calls = 0;
  EXPECT_EQ(parameters(vt::make_graph(chain)(x, x), &calls), 1u);
  EXPECT_EQ(calls, 1000u);
  // The first call has no tangent of its second argument.
  EXPECT_EQ(parameters(vt::make_graph(vt::grad(chain))(x, x), &calls), 4u);
  EXPECT_EQ(calls, 2000u);
  EXPECT_EQ(parameters(vt::make_graph(vt::vmap(chain))(vt::ones({2, 3}), vt::ones({2, 3})), &calls),
            1u);
  EXPECT_EQ(calls, 1000u);
}

// The signature that was used last is found by another way than others.
TEST(Function, SignaturesThatAlternate) {
  int runs = 0;
  const auto f = vt::function("f", [&](Tensor x, Tensor y, int power) {
    ++runs;
    for (int i = 1; i < power; ++i) x = x * x;
    return x + y;
  });
  const Tensor half = vt::full({2}, 0.5f), wide = vt::full({2}, 0.5), row = vt::full({1, 2}, 0.5f),
               one = vt::ones({2});
  for (int round = 1; round <= 3; ++round) {
    for (int twice = 0; twice < 2; ++twice) {
      expect_close(f(half, one, 1), vt::full({2}, 1.5f));
      expect_close(f(half, one, 2), vt::full({2}, 1.25f));
      expect_close(f(wide, wide, 1), vt::ones({2}, vt::f64));
      EXPECT_EQ(f(row, one, 1).shape(), vt::Shape({1, 2}));
      EXPECT_EQ(f(Tensor(0.5), one, 1).dtype(), vt::f32) << "a weak number";
      EXPECT_EQ(f(vt::tensor(0.5), one.astype(vt::f64), 1).dtype(), vt::f64);
    }
    EXPECT_EQ(runs, 6) << round;
    EXPECT_THROW(f(Tensor(), one, 1), vt::Error);
  }
  const auto other = vt::function("f", [](Tensor x, Tensor y, int) { return x - y; });
  expect_close(other(half, one, 1), vt::full({2}, -0.5f));
  expect_close(f(half, one, 1), vt::full({2}, 1.5f));
}

// What was captured in a trace that has ended is captured anew, and variables are read anew.
TEST(Function, CallsAfterTheirTrace) {
  Tensor seen = vt::tensor(1.0);
  int runs = 0;
  const auto f = vt::function("f", [&](Tensor x) {
    ++runs;
    return x * seen;
  });
  const auto twice = [&](Tensor x) {
    seen = x + 1.0;
    return f(f(x));
  };
  const Tensor x = vt::tensor(3.0);
  for (int trace = 1; trace <= 3; ++trace) {
    expect_close(vt::make_graph(twice)(x)({{x}})[0], vt::tensor(48.0));
    EXPECT_EQ(runs, trace);
  }
  vt::Variable scale(vt::tensor(2.0), "scale");
  const auto scaled = vt::function("scaled", [&](Tensor v) { return v * scale.read(); });
  const vt::Graph before = vt::make_graph([&](Tensor v) { return scaled(scaled(v)); })(x);
  expect_close(scaled(x), vt::tensor(6.0));
  scale.assign(vt::tensor(5.0));
  expect_close(scaled(x), vt::tensor(15.0));
  expect_close(vt::jit([&](Tensor v) {
                 const Tensor y = scaled(v);
                 scale.assign(y);
                 return scaled(y);
               })(x),
               vt::tensor(225.0));
  expect_close(scale.read(), vt::tensor(15.0));
}

TEST(Function, CapturesAreOperands) {
  const auto scale = [](Tensor w) {
    return vt::function("scale", [w](Tensor x) {
      return vt::sin(w * x) + vt::cos(w) * vt::exp(x) * x * x - vt::tanh(x) * w * w;
    });
  };
  const auto plain = [](Tensor w) {
    return [w](Tensor x) {
      return vt::sin(w * x) + vt::cos(w) * vt::exp(x) * x * x - vt::tanh(x) * w * w;
    };
  };
  const Tensor w = vt::tensor(0.7), x = vt::tensor({0.1, 0.2});
  expect_close(scale(w)(x), plain(w)(x), close);
  const auto loss = [&](auto make) {
    return [&, make](Tensor v) {
      const auto f = make(v);
      return vt::sum(f(f(x)));
    };
  };
  expect_close(vt::grad(loss(scale))(w), vt::grad(loss(plain))(w), close);
  expect_close(vt::hessian(loss(scale))(w), vt::hessian(loss(plain))(w), close);
  expect_close(vt::vmap(loss(scale))(x), vt::vmap(loss(plain))(x), close);
  // One function object in trace after trace, capturing what each traces.
  Tensor seen;
  const auto shared = vt::function("shared", [&seen](Tensor v) { return v * seen; });
  for (double s : {2.0, 3.0})
    expect_close(vt::grad([&](Tensor t) {
                   seen = t * t;
                   return shared(Tensor(5.0)) + shared(vt::tensor(1.0));
                 })(vt::tensor(s)),
                 vt::tensor(12.0 * s), close);
}

TEST(Function, InsideControlFlowAndRules) {
  const auto f = vt::function("cell", cell);
  const Tensor x = vt::tensor(0.3), xs = vt::tensor({0.1, -0.4, 0.7});
  const auto programs = [&](auto c) {
    const auto loop = [c, xs](Tensor h) {
      return vt::scan([&](Tensor s, Tensor e) { return std::pair(c(s, e), s); }, h, xs).first;
    };
    const auto choice = [c](Tensor h) {
      return vt::cond(
          h > 0, [&](Tensor v) { return c(v, v); }, [&](Tensor v) { return c(v, 2.0 * v); }, h);
    };
    const auto whiles = [c](Tensor h) {
      return std::get<1>(vt::while_loop(
          [](Tensor i, Tensor) { return i < 4; },
          [&](Tensor i, Tensor v) { return std::pair(i + 1, c(v, v)); }, std::pair(0, h)));
    };
    return std::vector<std::function<Tensor(Tensor)>>{loop, choice, whiles};
  };
  const auto plain = programs(cell), called = programs(f);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    SCOPED_TRACE(i);
    expect_close(called[i](x), plain[i](x), close);
    expect_close(vt::jit(called[i])(x), plain[i](x), close);
    expect_close(vt::grad(called[i])(x), vt::grad(plain[i])(x), close);
    expect_close(vt::vmap(called[i])(xs), vt::vmap(plain[i])(xs), close);
    expect_close(vt::vmap(vt::grad(vt::grad(called[i])))(xs),
                 vt::vmap(vt::grad(vt::grad(plain[i])))(xs), close);
    expect_close(vt::jit(vt::vmap(vt::grad(called[i])))(xs), vt::vmap(vt::grad(plain[i]))(xs),
                 close);
  }
  // Rules of one's own inside, and calls inside rules.
  const auto lying = vt::custom_jvp(
      [](Tensor v) { return v * v * v; },
      [&](std::tuple<Tensor> v, std::tuple<Tensor> t) {
        return std::pair(std::get<0>(v), f(std::get<0>(v), std::get<0>(v)) * std::get<0>(t));
      });
  const auto g = vt::function("g", [&](Tensor v) { return lying(v) * 2.0; });
  expect_close(vt::grad(g)(x), 2.0 * cell(x, x), close);
  expect_close(vt::vmap(vt::grad(g))(xs), 2.0 * vt::vmap([](Tensor v) { return cell(v, v); })(xs),
               close);
  const auto clipped = vt::custom_vjp([](Tensor v) { return v * 1.0; },
                                      [](Tensor v) { return std::pair(v * 1.0, v); },
                                      [](Tensor v, Tensor bar) { return bar * 10.0 + 0.0 * v; });
  const auto h = vt::function("h", [&](Tensor v) { return vt::sin(clipped(v)); });
  expect_close(vt::grad(h)(x), 10.0 * vt::cos(x), close);
  const auto inlined = [&](Tensor v) { return vt::sin(clipped(v)); };
  expect_close(vt::grad(vt::grad(h))(x), vt::grad(vt::grad(inlined))(x), close);
  expect_close(vt::jit(vt::vmap(vt::grad(h)))(xs), 10.0 * vt::cos(xs), close);
  // The function of a reduction.
  const auto add = vt::function("add", [](Tensor a, Tensor b) { return a + b; });
  expect_close(vt::associative_scan(add, xs), vt::cumsum(xs, 0), close);
}

TEST(Function, LinearInItsTangents) {
  // A backward rule that calls a function: it is transposed for forward mode.
  const auto back = vt::function("back", [](Tensor saved, Tensor bar) {
    return vt::cos(saved) * bar + vt::sum(saved * bar) * 0.0;
  });
  const auto f = vt::custom_vjp([](Tensor v) { return vt::sin(v); },
                                [](Tensor v) { return std::pair(vt::sin(v), v); },
                                [&](Tensor v, Tensor bar) { return back(v, bar); });
  const Tensor x = vt::tensor({0.1, 0.2});
  expect_close(std::get<1>(vt::jvp(f, std::tuple(x), std::tuple(vt::ones({2}, vt::f64)))),
               vt::cos(x), close);
  expect_close(vt::jacfwd(f)(x), vt::jacrev(f)(x), close);
}

TEST(Function, EffectsAndVariables) {
  std::vector<std::string> printed;
  vt::set_print_sink([&](std::string_view text) { printed.emplace_back(text); });
  const auto f = vt::function("loud", [](Tensor x) {
    vt::debug_print("x {}", x);
    vt::check(x > 0, "{} is not positive", x);
    return vt::sqrt(x);
  });
  const Tensor x = vt::tensor(4.0);
  f(x);
  f(x);
  EXPECT_EQ(printed.size(), 2u);
  expect_close(vt::jit([&](Tensor v) { return f(v) + f(v + 5.0); })(x), vt::tensor(5.0), close);
  EXPECT_EQ(printed.size(), 4u);
  vt::grad(f)(x);
  EXPECT_EQ(printed.size(), 5u);
  try {
    vt::jit(f)(vt::tensor(-1.0));
    ADD_FAILURE();
  } catch (const vt::Error& e) {
    EXPECT_NE(std::string(e.what()).find("-1. is not positive"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("function_test.cpp:"), std::string::npos) << e.what();
  }
  vt::set_print_sink({});
  vt::Variable total(vt::tensor(0.0), "total"), last(vt::tensor(0.0), "last");
  const auto add = vt::function("add", [&](Tensor v) {
    total.assign_add(v);
    last.assign(last.read() + 1.0);
    return v * last.read();
  });
  expect_close(add(x), vt::tensor(4.0));
  expect_close(add(x), vt::tensor(8.0));
  expect_close(vt::jit([&](Tensor v) { return add(v) + add(v); })(x), vt::tensor(28.0));
  expect_close(total.read(), vt::tensor(16.0));
  const auto count_up = vt::function("count", [&](Tensor v) {
    total.assign_add(v);
    return v;
  });
  vt::vmap(count_up)(vt::tensor({1.0, 2.0, 3.0}));
  expect_close(total.read(), vt::tensor(22.0));
}

TEST(Function, NamedAxes) {
  const auto share = vt::function("share", [](Tensor v) {
    return v / vt::psum(v, "i") + vt::sin(v) * vt::cos(v) * vt::exp(v) * 0.0;
  });
  const Tensor x = vt::tensor({1.0, 3.0});
  for (int i = 0; i < 2; ++i)
    expect_close(vt::vmap([&](Tensor v) { return share(v) + share(v); }, {.axis_name = "i"})(x),
                 vt::tensor({0.5, 1.5}), close);
}

TEST(Function, Simplifies) {
  const auto f = vt::function(
      "two", [](Tensor x, Tensor y) { return std::pair(long_chain(x), long_chain(y) * 3.0); });
  const Tensor x = vt::tensor(0.5);
  const auto first = [&](Tensor a, Tensor b) { return f(a, long_chain(b)).first; };
  const vt::Graph g = vt::make_graph(vt::jit(first))(x, x);
  EXPECT_EQ(g.size(), 1u) << g.str();  // what the other result needs went with it
  EXPECT_EQ(count(g.str(), "= sin "), 25);
  const auto tiny = vt::function("tiny", [](Tensor a) { return a + 1.0; });
  EXPECT_EQ(count(vt::make_graph(vt::jit([&](Tensor a) { return tiny(a); }))(x).str(), "call"), 0)
      << "small ones are inlined";
}

// A loop in the body still reads what only its results that nobody wants are made of.
TEST(Function, ResultsThatNobodyReads) {
  using P = std::pair<Tensor, Tensor>;
  const Tensor xs = vt::tensor({1.0, 2.0});
  const auto with_loop = [&](auto loop) {
    const auto f = vt::function("f", [loop](P s) {
      s = loop(s);
      return P(s.first, vt::mod(s.second + 3, Tensor(5)));
    });
    const auto second = [f](Tensor v, Tensor n) { return f(P(v, n)).second; };
    for (int call = 0; call < 2; ++call) {
      expect_close(second(vt::ones({2}), vt::tensor(1)), vt::tensor(4));
      expect_close(vt::jit(second)(vt::ones({2}), vt::tensor(1)), vt::tensor(4));
      expect_close(vt::jit(vt::vmap(second))(vt::ones({3, 2}), vt::tensor({1, 2, 3})),
                   vt::tensor({4, 0, 1}));
    }
  };
  with_loop([&](P s) {
    return vt::scan([](P q, Tensor) { return std::pair(q, std::nullopt); }, s, xs).first;
  });
  with_loop([](P s) {
    return vt::fori_loop(0, 3, [](Tensor, P q) { return P(q.first * 2.0, q.second); }, s);
  });
  with_loop([](P s) {
    return vt::while_loop([](P q) { return q.second < 0; },
                          [](P q) { return P(vt::sin(q.first), q.second + 1); }, s);
  });
  with_loop([](P s) {
    const auto same = [&] { return s; };
    return vt::cond(s.second > 7, [&] { return P(vt::cos(s.first), s.second); }, same);
  });
  with_loop(vt::checkpoint([](P s) { return P(vt::sin(s.first), s.second); }));
}

TEST(Function, Errors) {
  const auto fails = [](vt::ErrorKind kind, const std::string& says, auto use) {
    try {
      use();
      ADD_FAILURE() << "no error, expected: " << says;
    } catch (const vt::Error& e) {
      EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(kind));
      EXPECT_TRUE(std::string(e.what()).starts_with(says)) << e.what();
      EXPECT_NE(std::string(e.what()).find("; at function_test.cpp:"), std::string::npos)
          << e.what();
    }
  };
  const auto same = [](Tensor x) { return x; };
  fails(vt::ErrorKind::value, "vt::function: the name is empty",
        [&] { (void)vt::function("", same); });
  fails(vt::ErrorKind::value, "vt::function: argument leaf 0 of f is an empty Tensor",
        [&] { vt::function("f", same)(Tensor()); });
  const char* const unknown =
      "vt::Tensor::item: the value of a tracer f64[] is not known under vt::function";
  fails(vt::ErrorKind::tracer, unknown, [&] {
    vt::function("f", [](Tensor x) { return x.item<double>() > 0 ? x : -x; })(vt::tensor(1.0));
  });
  fails(vt::ErrorKind::shape, "vt::matmul: ", [&] {
    vt::function("f", [](Tensor x) { return vt::matmul(x, x); })(vt::ones({2, 3}));
  });
}

}  // namespace
