// vt::instances: instances that look at values, in turns and batched, against a plain loop.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

#include "../../src/transforms/autobatch/instances.hpp"

#include "support/property.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;

Tensor uniform(std::uint64_t seed, vt::Shape shape) {
  return vt::random::uniform(vt::random::key(seed), shape, vt::f64) * 2.0 - 1.0;
}
void expect_equal(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  EXPECT_EQ(got.to_vector<double>(), wanted.to_vector<double>()) << what;
}
void expect_close(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  if (got.size() == 0) return;
  EXPECT_LT(vt::max(vt::abs(got - wanted)).item<double>(), 1e-9) << what;
}

/// A machine whose next step depends on what it computed: as many looks as `steps`.
struct Walk {
  std::int64_t steps, start;
};
constexpr std::int64_t width = 4;
struct Params {
  Tensor turn, shift, rows;
};
Params params() {
  return {uniform(1, {width, width}), uniform(2, {width}), uniform(3, {6, width})};
}

struct Walked {
  Tensor state, score;
  std::vector<int> path;
};
Walked walk(const Params& p, const Walk& w) {
  Walked r{p.rows[w.start], vt::zeros({}, vt::f64), {}};
  for (std::int64_t i = 0; i < w.steps; ++i) {
    r.state = vt::tanh(vt::matmul(r.state, p.turn) + p.shift + p.rows[(w.start + i) % 6]);
    r.path.push_back(vt::argmax(r.state).item<int>());
    r.score = r.score + r.state[r.path.back()];
    if (r.state[0].item<double>() > 0.0) r.state = r.state * 0.5;
    else r.score = r.score * 1.5;
  }
  return r;
}
std::vector<Walk> walks(std::size_t count, std::int64_t longest, std::uint64_t seed = 7) {
  std::vector<Walk> all;
  for (std::size_t k = 0; k < count; ++k)
    all.push_back(
        {static_cast<std::int64_t>((k * 5 + seed) % (static_cast<std::size_t>(longest) + 1)),
         static_cast<std::int64_t>((k + seed) % 6)});
  return all;
}
std::vector<Walked> walk_all(const Params& p, const std::vector<Walk>& all) {
  return vt::instances(all, [&](const Walk& w) { return walk(p, w); });
}
Tensor loss_of(const Params& p, const std::vector<Walk>& all) {
  Tensor sum = vt::zeros({}, vt::f64);
  for (const Walked& w : walk_all(p, all)) sum = sum + w.score * w.score + vt::sum(w.state);
  return sum;
}

TEST(Instances, GiveWhatAPlainLoopGives) {
  const Params p = params();
  for (const auto strategy : {vt::Batching::agenda, vt::Batching::by_depth, vt::Batching::none})
    for (std::size_t count : {0u, 1u, 2u, 7u, 40u}) {
      const auto all = walks(count, 6);
      const auto wanted = walk_all(p, all);
      const auto got = vt::autobatch(walk_all, {.strategy = strategy})(p, all);
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t k = 0; k < count; ++k) {
        const std::string what = std::to_string(k) + " of " + std::to_string(count);
        EXPECT_EQ(got[k].path, wanted[k].path) << what;
        // tanh of a small Graph that is interpreted rounds in another way than compiled code.
        expect_close(got[k].state, wanted[k].state, what);
        expect_close(got[k].score, wanted[k].score, what);
      }
    }
}

TEST(Instances, GiveTheSameBitsAsAPlainLoop) {
  const Params p = params();
  const auto f = [&](const Tensor& shift, const std::vector<Walk>& all) {
    return vt::instances(all, [&](const Walk& w) {
      Tensor x = p.rows[w.start];
      for (std::int64_t i = 0; i < w.steps; ++i) {
        x = x * shift + p.rows[(w.start + i) % 6];
        x = x / (vt::abs(x) + 1.0);
        if (vt::max(x).item<double>() > 0.5) x = vt::sqrt(vt::abs(x)) - shift;
      }
      return x;
    });
  };
  const auto all = walks(40, 12);
  const auto got = vt::autobatch(f)(p.shift, all), wanted = f(p.shift, all);
  for (std::size_t k = 0; k < all.size(); ++k) expect_equal(got[k], wanted[k], std::to_string(k));
}

TEST(Instances, RunAsManyBatchesAsTheLongestLooks) {
  const Params p = params();
  const auto all = walks(30, 9);
  std::int64_t longest = 0;
  for (const Walk& w : all) longest = std::max(longest, w.steps);
  static_cast<void>(vt::autobatch(walk_all)(p, all));
  // Two looks a step; the second one is at a row of what the first one has computed.
  EXPECT_LE(vt::batch_stats().looks, static_cast<std::uint64_t>(2 * longest));
  EXPECT_GE(vt::batch_stats().looks, static_cast<std::uint64_t>(longest));
  static_cast<void>(vt::autobatch(loss_of)(p, all));
  EXPECT_LE(vt::batch_stats().looks, static_cast<std::uint64_t>(2 * longest));
}

TEST(Instances, WorkIsLinearInTheNumberOfLooks) {
  const Params p = params();
  const auto nodes = [&](std::int64_t steps) {
    static_cast<void>(vt::autobatch(walk_all)(p, std::vector<Walk>{{steps, 0}, {steps, 1}}));
    return static_cast<double>(vt::batch_stats().nodes);
  };
  const double few = nodes(10), many = nodes(80);
  EXPECT_LT(many, few * 8.5);
  EXPECT_LT(few, 10 * 2 * 14);
}

TEST(Instances, ThousandsAtOnce) {
  const Params p = params();
  const auto all = walks(2000, 3);
  const auto got = vt::autobatch(walk_all)(p, all);
  EXPECT_LE(vt::batch_stats().looks, 6u);
  for (std::size_t k = 0; k < all.size(); k += 97) {
    const Walked wanted = walk(p, all[k]);
    EXPECT_EQ(got[k].path, wanted.path);
    expect_close(got[k].state, wanted.state, std::to_string(k));
  }
}

TEST(Instances, AreDifferentiated) {
  const Params p = params();
  for (std::size_t count : {1u, 5u, 24u}) {
    const auto all = walks(count, 5);
    const auto [value, gradient] = vt::value_and_grad(loss_of)(p, all);
    const auto batched = vt::autobatch(loss_of);
    const auto [value_b, gradient_b] = vt::value_and_grad(batched)(p, all);
    expect_close(value_b, value, "value");
    expect_close(gradient_b.turn, gradient.turn, "turn");
    expect_close(gradient_b.shift, gradient.shift, "shift");
    expect_close(gradient_b.rows, gradient.rows, "rows");
    const auto alone = vt::grad(batched)(p, all);
    expect_equal(alone.turn, gradient_b.turn, "grad");
  }
}

TEST(Instances, HaveSecondDerivatives) {
  const Params p = params();
  const auto all = walks(5, 3);
  const auto of_shift = [&](const auto& f) {
    return vt::hessian(
        [&, f](const Tensor& shift) { return f(Params{p.turn, shift, p.rows}, all); })(p.shift);
  };
  expect_close(of_shift(vt::autobatch(loss_of)), of_shift(loss_of), "hessian");
}

TEST(Instances, OfFunctionsInAFunction) {
  const auto half =
      vt::function("instances_half", [](const Tensor& x) { return vt::tanh(x) * 0.5; });
  const auto cell = vt::function("instances_cell", [&](const Tensor& x, const Tensor& w) {
    return half(vt::matmul(x, w)) + x;
  });
  const auto f = [&](const Tensor& w, const std::vector<std::int64_t>& lengths) {
    return vt::sum(vt::stack(vt::instances(lengths, [&](std::int64_t n) {
      Tensor x = vt::ones({width}, vt::f64) * static_cast<double>(n);
      for (std::int64_t i = 0; i < n; ++i) {
        x = cell(x, w);
        if (x[1].item<double>() < 0.0) x = half(x);
      }
      return vt::sum(x);
    })));
  };
  const Tensor w = uniform(4, {width, width});
  const std::vector<std::int64_t> lengths{3, 0, 1, 7, 2, 2, 5, 4, 1, 6};
  const auto batched = vt::autobatch(f);
  expect_close(batched(w, lengths), f(w, lengths), "value");
  EXPECT_EQ(vt::batch_stats().looks, 7u * 1u);
  expect_close(vt::grad(batched)(w, lengths), vt::grad(f)(w, lengths), "gradient");
}

TEST(Instances, LookInsideOfAFunctionThatIsRecorded) {
  const auto f = [](const Tensor& w) {
    return vt::instances(std::vector<double>{1, 2, 3}, [&](double scale) {
      const Tensor outer = w * scale, head = outer[0];
      // Captures a Tensor of the instance, which has a value while the body is recorded.
      const Tensor y = vt::cond(
          vt::sum(w) > 0.0,
          [&](const Tensor& x) { return head.item<double>() > 1.5 ? x * 2.0 : x * 3.0; },
          [&](const Tensor& x) { return x; }, outer);
      return vt::vmap([&](const Tensor& x) { return head.item<double>() > 1.5 ? x : -x; })(y);
    });
  };
  const Tensor w = vt::tensor({1.0, 2.0});
  const auto got = vt::autobatch(f)(w), wanted = f(w);
  for (std::size_t k = 0; k < 3; ++k) expect_equal(got[k], wanted[k], std::to_string(k));
}

TEST(Instances, DifferentiateInside) {
  const auto f = [](const Tensor& w) {
    return vt::instances(std::vector<double>{0.3, -1.0, 2.0}, [&](double scale) {
      const auto branching = [&](const Tensor& x) {
        const Tensor y = vt::sin(x * scale);
        return vt::sum(vt::sum(y).template item<double>() > 0.0 ? y * y : vt::exp(y));
      };
      return vt::grad(branching)(w);
    });
  };
  const Tensor w = vt::tensor({1.0, 2.0, 0.5});
  const auto got = vt::autobatch(f)(w), wanted = f(w);
  for (std::size_t k = 0; k < 3; ++k) expect_close(got[k], wanted[k], std::to_string(k));
  EXPECT_EQ(vt::batch_stats().looks, 1u);
}

/// A random program that branches on values.
Tensor program(const Params& p, std::uint64_t seed, const Tensor& x, int depth) {
  if (depth == 0) return x;
  const Tensor y = vt::tanh(vt::matmul(x, p.turn) + p.rows[static_cast<std::int64_t>(seed % 6)]);
  switch (seed / 6 % 4) {
    case 0: {
      const bool left = (vt::sum(y) > 0.0).item<bool>();
      return program(p, seed * 3 + left, y, depth - 1) + x;
    }
    case 1: {
      const int n = vt::argmax(y).item<int>();
      Tensor sum = y;
      for (int i = 0; i < n; ++i)
        sum = sum + program(p, seed * 5 + static_cast<std::uint64_t>(i), y,
                            depth - 2 > 0 ? depth - 2 : 0);
      return sum;
    }
    case 2:
      if (y[0] > y[1]) return program(p, seed + 11, y * p.shift, depth - 1);
      return y;
    default: return program(p, seed * 7 + 1, y, depth - 1) * 0.5;
  }
}

TEST(Instances, RandomProgramsThatBranchOnValues) {
  const Params p = params();
  for (std::uint64_t round = 0; round < 6; ++round) {
    std::vector<std::uint64_t> seeds;
    for (std::uint64_t k = 0; k < 4 + 5 * round; ++k) seeds.push_back(round * 1000 + k * 37);
    const auto f = [&](const Params& q) {
      return vt::instances(seeds, [&](std::uint64_t seed) {
        return program(q, seed, q.rows[static_cast<std::int64_t>(seed % 6)], 6);
      });
    };
    const auto got = vt::autobatch(f)(p), wanted = f(p);
    for (std::size_t k = 0; k < seeds.size(); ++k)
      expect_close(got[k], wanted[k], std::to_string(seeds[k]));
    const auto sum = [](const auto& g) {
      return [g](const Params& q) { return vt::sum(vt::stack(g(q))); };
    };
    const auto d = vt::grad(sum(vt::autobatch(f)))(p), e = vt::grad(sum(f))(p);
    expect_close(d.turn, e.turn, "turn");
    expect_close(d.rows, e.rows, "rows");
  }
}

TEST(Instances, ALookInTheFunctionItself) {
  const auto f = [](const Tensor& w) {
    Tensor x = w;
    int n = 0;
    while (vt::sum(x * x).item<double>() > 1e-2 && n < 100) {
      x = vt::sin(x) * 0.8;
      ++n;
    }
    return x * static_cast<double>(n);
  };
  const Tensor w = vt::tensor({0.5, -1.25, 2.0});
  expect_close(vt::autobatch(f)(w), f(w), "value");
  EXPECT_GT(vt::batch_stats().looks, 5u);
  const auto sum = [](const auto& g) { return [g](const Tensor& x) { return vt::sum(g(x)); }; };
  expect_close(vt::grad(sum(vt::autobatch(f)))(w), vt::grad(sum(f))(w), "gradient");
}

TEST(Instances, WithoutResults) {
  std::vector<double> seen;
  const auto f = [&](const Tensor& w) {
    vt::instances(std::vector<int>{1, 2, 3},
                  [&](int n) { seen.push_back((w * static_cast<double>(n)).item<double>()); });
    return w;
  };
  static_cast<void>(vt::autobatch(f)(Tensor(2.0)));
  EXPECT_EQ(seen, (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(vt::batch_stats().looks, 1u);
}

TEST(Instances, TakeTurnsInTheOrderOfTheItems) {
  std::vector<int> order;
  const auto f = [&](const Tensor& w) {
    vt::instances(std::vector<int>{1, 2, 3}, [&](int n) {
      for (int i = 0; i < n; ++i) {
        order.push_back(n);
        static_cast<void>((w * static_cast<double>(n + i)).item<double>());
      }
    });
    return w;
  };
  static_cast<void>(vt::autobatch(f)(vt::ones({}, vt::f64)));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 2, 3, 3}));
}

TEST(Instances, MayUseTensorsOfEachOther) {
  const auto f = [](const Tensor& w) {
    Tensor shared = w;
    return vt::instances(std::vector<int>{0, 1, 2}, [&](int n) {
      const Tensor own = w * static_cast<double>(n + 1);
      static_cast<void>(own.item<double>());
      shared = shared + own;
      return shared * 1.0;
    });
  };
  const auto got = vt::autobatch(f)(vt::ones({}, vt::f64));
  EXPECT_EQ(got[0].item<double>(), 2.0);
  EXPECT_EQ(got[1].item<double>(), 4.0);
  EXPECT_EQ(got[2].item<double>(), 7.0);
}

TEST(Instances, NestedOnesWaitWithTheirOwn) {
  const auto f = [](const Tensor& w) {
    return vt::instances(std::vector<int>{1, 2, 3}, [&](int n) {
      Tensor sum = w * 0.0;
      for (const Tensor& t : vt::instances(std::vector<int>{1, 2}, [&](int m) {
             const Tensor x = w * static_cast<double>(n * m);
             return x.item<double>() > 3.0 ? x : -x;
           }))
        sum = sum + t;
      return sum;
    });
  };
  const auto got = vt::autobatch(f)(vt::ones({}, vt::f64)), wanted = f(vt::ones({}, vt::f64));
  EXPECT_EQ(vt::batch_stats().looks, 2u);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(got[k].item<double>(), wanted[k].item<double>());
}

TEST(Instances, AutobatchInsideOfAnInstance) {
  const auto inner = vt::autobatch(
      [](const Tensor& x) { return vt::sum(x).item<double>() > 0.0 ? vt::sin(x) : vt::cos(x); });
  const auto f = [&](const Tensor& w) {
    return vt::instances(std::vector<double>{1, -2, 3}, [&](double s) { return inner(w * s); });
  };
  const Tensor w = vt::tensor({0.5, 0.25});
  const auto got = vt::autobatch(f)(w), wanted = f(w);
  for (std::size_t k = 0; k < 3; ++k) expect_close(got[k], wanted[k], std::to_string(k));
}

struct Counted {
  int& open;
  explicit Counted(int& n) : open(n) { ++open; }
  ~Counted() { --open; }
};

TEST(Instances, AnExceptionUnwindsTheOthers) {
  int open = 0, begun = 0;
  const auto f = [&](const Tensor& w) {
    vt::instances(std::vector<int>{0, 1, 2, 3}, [&](int n) {
      const Counted counted(open);
      ++begun;
      Tensor x = w;
      for (int i = 0; i < 5; ++i) {
        x = x + 1.0;
        static_cast<void>(x.item<double>());
        if (i == 2 && n >= 1) throw std::runtime_error("instance " + std::to_string(n));
      }
    });
    return w;
  };
  try {
    static_cast<void>(vt::autobatch(f)(vt::ones({}, vt::f64)));
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "instance 1");
  }
  EXPECT_EQ(begun, 4);
  EXPECT_EQ(open, 0);
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_EQ(vt::autobatch([](const Tensor& x) { return x + 1.0; })(Tensor(1.0)).item<double>(),
            2.0);
}

TEST(Instances, CatchAndThrowWhileOthersDo) {
  const auto f = [&](const Tensor& w) {
    return vt::instances(std::vector<int>{0, 1, 2, 3, 4}, [&](int n) {
      for (int i = 0; i <= n; ++i) {
        try {
          throw n;
        } catch (int thrown) {
          // Others go on while this one is handled.
          EXPECT_EQ((w + static_cast<double>(thrown + i)).item<double>(), 1.0 + n + i);
          try {
            throw;
          } catch (int again) {
            EXPECT_EQ(again, n);
          }
        }
      }
      return w * static_cast<double>(n);
    });
  };
  const auto got = vt::autobatch(f)(vt::ones({}, vt::f64));
  EXPECT_EQ(got[3].item<double>(), 3.0);
}

TEST(Instances, AFaultOfABatchComesOutOfALook) {
  const auto looks = [](const Tensor& w) {
    vt::instances(std::vector<int>{1, 2},
                  [&](int n) { static_cast<void>((w * static_cast<double>(n)).item<double>()); });
    return w;
  };
  for (const bool jit : {true, false}) {
    try {
      if (jit) static_cast<void>(vt::jit(vt::autobatch(looks))(vt::ones({}, vt::f64)));
      else static_cast<void>(vt::vmap(vt::autobatch(looks))(vt::ones({3}, vt::f64)));
      FAIL();
    } catch (const vt::Error& e) {
      EXPECT_EQ(e.kind(), vt::ErrorKind::tracer);
      EXPECT_NE(std::string(e.what()).find(jit ? "vt::jit" : "vt::vmap"), std::string::npos);
      EXPECT_NE(std::string(e.what()).find("instances_test.cpp"), std::string::npos) << e.what();
    }
  }
}

int deep(const Tensor& w, int n) {
  if (n == 1'000'000) return 0;
  volatile char room[512] = {};
  static_cast<void>(w + static_cast<double>(n));
  return deep(w, n + 1) + room[0];
}
TEST(Instances, ARecursionThatIsTooDeepNamesTheInstance) {
  const auto f = [](const Tensor& w) {
    vt::instances(std::vector<int>{0, 1, 2}, [&](int n) {
      if (n == 1) static_cast<void>(deep(w, 0));
      else static_cast<void>(w.item<double>());
    });
    return w;
  };
  try {
    static_cast<void>(vt::autobatch(f)(vt::ones({}, vt::f64)));
    FAIL();
  } catch (const vt::Error& e) {
    EXPECT_NE(std::string(e.what()).find("instance 1 "), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("instances_test.cpp"), std::string::npos) << e.what();
  }
}

TEST(Instances, OneThatNeverEndsIsNamed) {
  std::uint64_t& most = vt::detail::autobatching::most_looks();
  const std::uint64_t before = std::exchange(most, 50);
  const auto f = vt::autobatch([](const Tensor& x) {
    std::vector<int> items{0, 1, 2};
    vt::instances(items, [&](int k) {
      Tensor y = x + static_cast<float>(k);
      while (k == 1 || y.item<float>() < 4)
        y = vt::sin(y) + (k == 1 ? 0.0f : 4.0f) * y.item<float>();
    });
    return x;
  });
  try {
    f(vt::tensor(1.0f));
    ADD_FAILURE() << "no error";
  } catch (const vt::Error& e) {
    const std::string message = e.what();
    EXPECT_NE(message.find("instance 1 does not end"), std::string::npos) << message;
    EXPECT_NE(message.find("instances_test.cpp"), std::string::npos) << message;
  }
  most = before;
}

TEST(Instances, ATracerKeptBeyondTheBatch) {
  Tensor kept;
  const auto f = [&](const Tensor& w) {
    vt::instances(std::vector<int>{1, 2}, [&](int n) {
      kept = w * static_cast<double>(n);
      static_cast<void>(kept.item<double>());
    });
    return w;
  };
  static_cast<void>(vt::autobatch(f)(vt::ones({}, vt::f64)));
  EXPECT_THROW(static_cast<void>(kept.item<double>()), vt::Error);
}

TEST(Instances, UpdateVariables) {
  vt::Variable count(vt::zeros({}, vt::f64), "instances_count");
  const auto f = [&](const Tensor& w) {
    vt::instances(std::vector<int>{1, 2, 3}, [&](int n) {
      count.assign_add(w * static_cast<double>(n));
      static_cast<void>((w * 2.0).item<double>());
      count.assign_add(w);
    });
    return w;
  };
  static_cast<void>(vt::autobatch(f)(vt::ones({}, vt::f64)));
  EXPECT_EQ(count.value().item<double>(), 9.0);
}

TEST(Instances, ValuesThatAreReadAsArrays) {
  const auto f = [](const Tensor& w) {
    return vt::instances(std::vector<int>{1, 2, 3}, [&](int n) {
      const Tensor row = w * static_cast<double>(n);
      const auto data = row.data<double>();
      const auto all = (row + 1.0).to_vector<double>();
      return row * (data[0] + all[1]);
    });
  };
  const Tensor w = vt::tensor({1.0, 2.0});
  const auto got = vt::autobatch(f)(w), wanted = f(w);
  for (std::size_t k = 0; k < 3; ++k) expect_equal(got[k], wanted[k], std::to_string(k));
}

}  // namespace
