// Lanes that part: the same results for each schedule, order and number of places, and as lane
// after lane.
#include <gtest/gtest.h>

#include <cstdlib>

#include <vt/vt.hpp>

#include "src/jit/lanes/lane_run.hpp"
#include "support/property.hpp"

namespace {

using vt::LaneSchedule;
using vt::Tensor;
using vt::detail::LaneOrder;

constexpr LaneSchedule parting[] = {LaneSchedule::automatic, LaneSchedule::hybrid,
                                    LaneSchedule::program_counter};

/// While it lives, lanes run so.
struct Options {
  Options(LaneOrder order, std::int64_t places) { vt::detail::lane_options() = {order, places}; }
  ~Options() { vt::detail::lane_options() = {}; }
};

std::vector<double> numbers(const Tensor& t) { return t.astype(vt::f64).to_vector<double>(); }

/// f under vmap: by all schedules, orders and numbers of places, jitted and not, near `wanted`; all
/// of a schedule by which lanes go their own ways have the same bits.
template <class F, class... A>
void expect_lanes(const F& f, const std::vector<double>& wanted, const A&... arguments) {
  const auto near = [&](const std::vector<double>& got, const std::string& what) {
    ASSERT_EQ(got.size(), wanted.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], wanted[i], 1e-9 * (1 + std::abs(wanted[i]))) << what << ", " << i;
  };
  near(numbers(vt::vmap(f, {.schedule = LaneSchedule::groups})(arguments...)), "groups");
  for (const LaneSchedule schedule : parting) {
    std::vector<double> first;
    for (const LaneOrder order : {LaneOrder::most, LaneOrder::earliest, LaneOrder::last})
      for (const std::int64_t places : {0, 1, 3}) {
        // The order of lanes is the host's also for a device, whose emulator is slow.
        const bool device = vt::default_device().kind == vt::Device::Kind::cuda,
                   of_device = schedule == LaneSchedule::hybrid &&
                               ((order == LaneOrder::most && places == 0) ||
                                (order == LaneOrder::earliest && places == 3));
        if (device && !of_device) continue;
        const Options options(order, places);
        const auto mapped = vt::jit(vt::vmap(f, {.schedule = schedule}));
        numbers(mapped(arguments...));  // compiled when seen again
        const std::vector<double> got = numbers(mapped(arguments...));
        const std::string what = "schedule " + std::to_string(static_cast<int>(schedule)) +
                                 ", order " + std::to_string(static_cast<int>(order)) + ", " +
                                 std::to_string(places) + " places";
        near(got, what);
        if (schedule == LaneSchedule::automatic) continue;
        if (first.empty()) first = got;
        EXPECT_EQ(got, first) << what;
      }
  }
}

struct Fibonacci {
  vt::Recursive<Tensor(Tensor)> of{
      "fib", [this](Tensor n) {
        return vt::cond(n < 2, [] { return 1; }, [&] { return of(n - 2) + of(n - 1); });
      }};
};

/// Have lanes waited in queues since the counters were reset?
bool has_queued() {
  const std::vector<vt::LaneBlock> blocks = vt::lane_stats().blocks;
  return std::any_of(blocks.begin(), blocks.end(), [](const vt::LaneBlock& b) { return b.queue; });
}

/// What has run since the counters were reset, of blocks with such operations.
vt::LaneBlock block_with(const std::string& operations) {
  vt::LaneBlock sum;
  for (const vt::LaneBlock& b : vt::lane_stats().blocks) {
    if (b.operations != operations) continue;
    sum.executions += b.executions;
    sum.lanes += b.lanes;
    sum.most_depths = std::max(sum.most_depths, b.most_depths);
  }
  return sum;
}
bool has_machine() {
  Fibonacci fib;
  vt::reset_lane_stats();
  const auto run = vt::jit(vt::vmap(fib.of, {.schedule = LaneSchedule::hybrid}));
  for (int k = 0; k < 2; ++k) numbers(run(vt::tensor({1, 2})));  // compiled when seen again
  return has_queued();
}

// Source of the cases: the tests of TensorFlow Probability's auto_batching.
TEST(LaneCalls, Fibonacci) {
  Fibonacci fib;
  expect_lanes([&](Tensor n) { return fib.of(n); }, {8, 13, 34, 55}, vt::tensor({5, 6, 8, 9}));
  expect_lanes([&](Tensor n) { return fib.of(n); }, {3, 21, 5, 8}, vt::tensor({3, 7, 4, 5}));
}

TEST(LaneCalls, DepthsAndCallSitesMeet) {
  if (!has_machine()) GTEST_SKIP() << "lanes are not run by the machine here";
  Fibonacci fib;
  const auto run = vt::jit(vt::vmap(fib.of, {.schedule = LaneSchedule::hybrid}));
  {
    const Options options(LaneOrder::earliest, 0);
    numbers(run(vt::tensor({3, 7, 4, 5})));  // compiled when seen again
    vt::reset_lane_stats();
    numbers(run(vt::tensor({3, 7, 4, 5})));
    const vt::LaneBlock additions = block_with("add");
    EXPECT_EQ(additions.executions, 20u);
    EXPECT_EQ(additions.lanes, 2u + 20u + 4u + 7u);
  }
  vt::reset_lane_stats();
  numbers(run(vt::tensor({6, 7, 8, 9})));
  EXPECT_GE(block_with("add").most_depths, 2u);
  EXPECT_GT(vt::lane_stats().pushes, 0u);
  EXPECT_NE(vt::lane_stats().str().find("fib: add"), std::string::npos);
}

// A meeting stands at its own line, not at that of the function that is called behind it.
TEST(LaneCalls, CountersNameTheUsersLines) {
  if (!has_machine()) GTEST_SKIP() << "lanes are not run by the machine here";
  vt::Recursive<Tensor(Tensor, Tensor)> walk("walk");
  int meeting_at = 0, calls_at = 0;
  walk = [&](Tensor n, Tensor x) {
    return vt::cond(
        n <= 0, [&] { return x; },
        [&] {
          meeting_at = __LINE__ + 1;
          const Tensor doubled = vt::meeting(x * 2.0);
          calls_at = __LINE__ + 1;
          return vt::cos(walk(n - 2, doubled));
        });
  };
  const auto run = vt::jit(vt::vmap(walk, {.schedule = LaneSchedule::hybrid}));
  const Tensor n = vt::tensor({3, 7, 4, 6}), x = vt::tensor({1.0, 2.0, 3.0, 4.0});
  for (int k = 0; k < 2; ++k) numbers(run(n, x));  // compiled when seen again
  vt::reset_lane_stats();
  numbers(run(n, x));
  std::vector<int> of_sub, of_cos;
  for (const vt::LaneBlock& b : vt::lane_stats().blocks) {
    if (b.operations.find("sub") != std::string::npos) of_sub.push_back(b.where.line);
    if (b.operations == "cos") of_cos.push_back(b.where.line);
  }
  EXPECT_EQ(of_sub, std::vector{meeting_at}) << vt::lane_stats().str();
  EXPECT_EQ(of_cos, std::vector{calls_at}) << vt::lane_stats().str();
}

TEST(LaneCalls, MutualRecursion) {
  vt::Recursive<Tensor(Tensor)> even("even"), odd("odd");
  even = [&](Tensor n) {
    return vt::cond(n == 0, [] { return true; }, [&] { return odd(n - 1); });
  };
  odd = [&](Tensor n) {
    return vt::cond(n == 0, [] { return false; }, [&] { return even(n - 1); });
  };
  expect_lanes([&](Tensor n) { return even(n); }, {0, 1, 1, 0, 1}, vt::tensor({5, 6, 8, 9, 0}));
}

TEST(LaneCalls, TailCallsWithSwappedArguments) {
  vt::Recursive<Tensor(Tensor, Tensor)> gcd("gcd");
  gcd = [&](Tensor a, Tensor b) {
    return vt::cond(b == 0, [&] { return a; }, [&] { return gcd(b, a % b); });
  };
  expect_lanes([&](Tensor a, Tensor b) { return gcd(a, b); }, {6, 6, 7, 25},
               vt::tensor({12, 18, 7, 100}), vt::tensor({18, 12, 21, 75}));
}

TEST(LaneCalls, ALoopSavesNothing) {
  const auto sum = [](Tensor n) {
    return vt::while_loop([](Tensor i, Tensor) { return i > 0; },
                          [](Tensor i, Tensor s) { return std::pair(i - 1, s + i); },
                          std::pair(n, vt::zeros_like(n)))
        .second;
  };
  vt::reset_lane_stats();
  expect_lanes(sum, {78, 0, 5050}, vt::tensor({12, -13, 100}));
  EXPECT_EQ(vt::lane_stats().pushes, 0u);
}

// A heavy product inside loops inside of a recursion, with a shared and a mapped operand, results
// of each iteration, and a branch that only some lanes take.
struct Nested {
  Tensor w = vt::random::normal(vt::random::key(1), {48, 48}, vt::f64) * 0.2;
  vt::Recursive<Tensor(Tensor, Tensor)> f{
      "nested", [this](Tensor n, Tensor x) {
        return vt::cond(
            n < 1, [&] { return x; },
            [&] {
              const auto made = vt::scan(
                  [&](Tensor h, Tensor k) {
                    h = vt::while_loop([&](Tensor v) { return vt::sum(v * v) < 1.0; },
                                       [&](Tensor v) { return v * 1.5 + 0.01; }, h);
                    h = vt::tanh(vt::matmul(w, h)) + k;
                    return std::pair(h, vt::sum(h));
                  },
                  f(n - 1, x), vt::tensor({0.1, 0.2, 0.3}));
              const Tensor y = made.first, sums = made.second,
                           z = vt::cond(sums[1] > 0, [&] { return y; }, [&] { return -y; });
              return f(n / 2 - 1, z) + y * sums[2];
            });
      }};
};

TEST(LaneCalls, LoopsInRecursionsInLanesOnThreads) {
  Nested nested;
  const Tensor n = vt::tensor({0, 3, 1, 5, 2, 2, 4}),
               x = vt::random::normal(vt::random::key(2), {7, 48}, vt::f64);
  std::vector<double> wanted, gradient;
  const auto value = [&](Tensor n, Tensor x) { return vt::sum(vt::sin(nested.f(n, x))); };
  for (int lane = 0; lane < 7; ++lane) {
    wanted.push_back(value(n[lane], x[lane]).item<double>());
    for (double g : numbers(vt::grad([&](Tensor x) { return value(n[lane], x); })(x[lane])))
      gradient.push_back(g);
  }
  expect_lanes(value, wanted, n, x);
  // By the lanes' own operands, of one lane and of their sum; and by the shared one.
  const auto of_lane = [&](Tensor n, Tensor x) {
    return vt::grad([&](Tensor x) { return value(n, x); })(x);
  };
  const bool device = vt_test::forced_backend() == "cuda";
  if (!device) expect_lanes(of_lane, gradient, n, x);
  const Tensor shared = nested.w;
  const auto by_shared = [&](LaneSchedule schedule) {
    return numbers(vt::jit(vt::grad([&](Tensor w) {
      Nested own;
      own.w = w;
      const auto f = [&](Tensor n, Tensor x) { return vt::sum(vt::sin(own.f(n, x))); };
      return vt::sum(vt::vmap(f, {.schedule = schedule})(n, x));
    }))(shared));
  };
  const std::vector<double> groups = by_shared(LaneSchedule::groups);
  for (const LaneSchedule schedule : parting) {
    if (device && schedule != LaneSchedule::hybrid) continue;
    const std::vector<double> got = by_shared(schedule);
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], groups[i], 1e-9 * (1 + std::abs(groups[i]))) << i;
  }
  if (device) return;  // whose threads are not the host's
  // A second vmap, forward mode, and lanes that are threads' to share.
  const auto pairs = vt::vmap(
      [&](Tensor s) {
        return vt::vmap([&](Tensor n, Tensor x) { return value(n, x * s); },
                        {.schedule = LaneSchedule::hybrid})(n, x);
      },
      {.schedule = LaneSchedule::hybrid});
  const std::vector<double> nested_lanes = numbers(vt::jit(pairs)(vt::tensor({1.0, 0.5})));
  for (int lane = 0; lane < 7; ++lane) EXPECT_NEAR(nested_lanes[lane], wanted[lane], 1e-9);
  const int threads = vt::num_threads();
  const auto all = vt::jit(vt::vmap(value, {.schedule = LaneSchedule::hybrid}));
  const Tensor many = vt::tile(n, {10}), xs = vt::tile(x, {10, 1});
  vt::set_num_threads(1);
  const std::vector<double> alone = numbers(all(many, xs));
  vt::set_num_threads(3);
  EXPECT_EQ(numbers(all(many, xs)), alone);
  vt::set_num_threads(threads);
}

TEST(LaneCalls, ScansThatReadAndGiveRows) {
  const Tensor trips = vt::tensor({0, 2, 5}),
               xs = vt::random::normal(vt::random::key(3), {3, 4, 40}, vt::f64),
               shared = vt::random::normal(vt::random::key(4), {4, 40}, vt::f64);
  const auto f = [&](Tensor trips, Tensor xs) {
    const auto [last, rows] = vt::scan(
        [&](Tensor h, std::pair<Tensor, Tensor> e) {
          const Tensor grown = vt::while_loop([&](Tensor, Tensor i) { return i < trips; },
                                              [&](Tensor v, Tensor i) {
                                                return std::pair(vt::tanh(v + e.first), i + 1);
                                              },
                                              std::pair(h, vt::tensor(0)))
                                   .first;
          return std::pair(grown + e.second, grown * 2.0);
        },
        vt::zeros({40}, vt::f64), std::pair(xs, shared), {.reverse = true});
    return vt::concatenate({vt::reshape(rows, {-1}), last});
  };
  std::vector<double> wanted;
  for (int lane = 0; lane < 3; ++lane)
    for (double v : numbers(f(trips[lane], xs[lane]))) wanted.push_back(v);
  expect_lanes(f, wanted, trips, xs);
}

// Writes of rows count as rows: nothing here is worth waiting for, however long the array is.
TEST(LaneCalls, RowWritesAreNotHeavy) {
  if (!has_machine()) GTEST_SKIP() << "no queues here";
  for (const std::int64_t size : {2047, 2048, 20'000}) {
    const auto f = [=](Tensor count) {
      const auto [i, rows] = vt::while_loop(
          [&](Tensor i, Tensor) { return i < count; },
          [&](Tensor i, Tensor rows) {
            const auto [j, inner] = vt::while_loop(
                [&](Tensor j, Tensor) { return j < i % 3; },
                [&](Tensor j, Tensor rows) {
                  return std::pair(j + 1, vt::index_add(rows, (7 * i + j) % size, rows[j] + 1.0));
                },
                std::pair(vt::tensor(0), rows));
            return std::pair(i + 1, inner);
          },
          std::pair(vt::tensor(0), vt::zeros({size}, vt::f64)));
      return vt::sum(rows);
    };
    vt::reset_lane_stats();
    const auto all = vt::jit(vt::vmap(f));
    const Tensor counts = vt::arange(30) % 11;
    all(counts).eval();
    all(counts).eval();
    EXPECT_FALSE(has_queued()) << size << "\n" << vt::lane_stats().str();
  }
}

// Derivatives need no state of an array that a loop only writes. What is left is not worth waiting
// for, however many rows are saved.
TEST(LaneCalls, DerivativesOfSavedRowsAreNotHeavy) {
  if (!has_machine()) GTEST_SKIP() << "no queues here";
  const auto f = [](Tensor start, Tensor count) {
    const auto step = [](Tensor i, Tensor y, Tensor saved) {
      const Tensor q = y[0] + 0.01 * y[1], next = vt::stack({q, y[1] - 0.01 * vt::sin(q)});
      return std::tuple(i + 1, next, vt::index_update(saved, i, next));
    };
    const Tensor saved = std::get<2>(
        vt::while_loop([&](Tensor i, Tensor, Tensor) { return i < count; }, step,
                       std::tuple(vt::tensor(0), start, vt::zeros({2000, 2}, vt::f64))));
    return vt::sum(saved * saved);
  };
  const auto all = vt::jit(vt::vmap([&](Tensor start, Tensor count) {
    return vt::hessian([&](Tensor y) { return f(y, count); })(start);
  }));
  const Tensor starts = vt_test::random_tensor(vt::f64, {16, 2}, 0.5, 1.5, 1),
               counts = vt::arange(16) % 5 + 3;
  vt::reset_lane_stats();
  all(starts, counts).eval();
  all(starts, counts).eval();
  EXPECT_FALSE(has_queued()) << vt::lane_stats().str();
}

// Lanes of a function that calls itself at one place meet at each depth in groups as well.
TEST(LaneCalls, ChainsOfSmallStepsGoInGroups) {
  if (!has_machine() || vt_test::forced_backend() == "cuda" || std::getenv("VT_LANES"))
    GTEST_SKIP() << "no choice here, or another";
  constexpr std::int64_t lanes = 64;
  const auto in_groups = [&](bool twice, std::int64_t size) {
    const Tensor w = vt_test::random_tensor(vt::f32, {size, size}, -0.2, 0.2, 1);
    vt::Recursive<Tensor(Tensor, Tensor)> f("f", [&](Tensor n, Tensor x) {
      return vt::cond(
          n <= 0, [&] { return vt::tanh(vt::matmul(w, x)); },
          [&] {
            const Tensor y = f(n - 1, 0.9 * x);
            return twice ? f(n - 1, y) : y + 0.1 * x;
          });
    });
    const auto all = vt::jit(vt::vmap([&](Tensor n, Tensor x) { return f(n, x); }));
    const Tensor n = vt::arange(lanes) % 4,
                 x = vt_test::random_tensor(vt::f32, {lanes, size}, -1, 1, 2);
    vt::reset_lane_stats();
    all(n, x).eval();
    all(n, x).eval();
    return !has_queued();
  };
  EXPECT_TRUE(in_groups(false, 10));
  EXPECT_FALSE(in_groups(true, 40));
  EXPECT_FALSE(in_groups(false, 80));
}

// Arrays of some KB in loops whose lanes part, written in all ways: over rows and columns, several
// elements at a time, out of range, into one that is needed again.
TEST(LaneCalls, LargeArraysAreWrittenInPlace) {
  const Tensor counts = vt::tensor({5, 0, 12, 1, 9});
  const Tensor start = vt::reshape(vt::arange(400, vt::f64), {40, 10}) * 0.01;
  using Update = Tensor (*)(const Tensor& rows, const Tensor& i);
  const Update updates[] = {
      [](const Tensor& rows, const Tensor& i) {
        return vt::index_update(rows, i * 5, rows[i] + 1.0);  // the last ones are out of range
      },
      [](const Tensor& rows, const Tensor& i) { return vt::index_add(rows, i % 40, rows[i + 1]); },
      [](const Tensor& rows, const Tensor& i) {
        return vt::dynamic_update_slice(rows, vt::ones({3, 2}, vt::f64) * i.astype(vt::f64),
                                        {i * 4, i});
      },
      [](const Tensor& rows, const Tensor& i) {
        const Tensor at = vt::stack({i, i, i + 2});  // one of them twice
        return vt::index_add(rows, at, vt::ones({3, 10}, vt::f64) * 0.25);
      },
      [](const Tensor& rows, const Tensor& i) {
        const Tensor next = vt::index_update(rows, i, rows[39 - i] * 2.0);
        return vt::index_update(next, i + 1, next[i] + vt::mean(next));
      }};
  for (const Update& update : updates) {
    const auto f = [&](Tensor count) {
      const auto [i, rows, before] =
          vt::while_loop([&](Tensor i, Tensor, Tensor) { return i < count; },
                         [&](Tensor i, Tensor rows, Tensor) {
                           return std::tuple(i + 1, update(vt::meeting(rows), i), rows[i]);
                         },
                         std::tuple(vt::tensor(0), start, vt::zeros({10}, vt::f64)));
      return vt::concatenate({vt::reshape(rows, {-1}), before});
    };
    std::vector<double> wanted;
    for (int lane = 0; lane < 5; ++lane)
      for (const double v : numbers(f(counts[lane]))) wanted.push_back(v);
    expect_lanes(f, wanted, counts);
  }
}

TEST(LaneCalls, TooDeepInOneLane) {
  vt::Recursive<Tensor(Tensor)> down("down", {.max_depth = 50});
  down = [&](Tensor n) {
    return vt::cond(n == 0, [] { return 0; }, [&] { return down(n - 1) + 1; });
  };
  const auto all = vt::jit(vt::vmap(down, {.schedule = LaneSchedule::hybrid}));
  all(vt::tensor({0, 0, 0, 0})).to_vector<int>();  // compiled when seen again
  try {
    all(vt::tensor({3, 70, 20, 90})).to_vector<int>();
    FAIL() << "it did not throw";
  } catch (const vt::Error& e) {
    const std::string text = e.what();
    EXPECT_EQ(e.kind(), vt::ErrorKind::value);
    EXPECT_NE(text.find("down calls itself more than 50 deep"), std::string::npos) << text;
    EXPECT_NE(text.find("lane_calls_test.cpp"), std::string::npos) << text;
    if (has_machine()) {
      EXPECT_NE(text.find(" in lane 1, which began with 70; "), std::string::npos) << text;
    }
  }
  EXPECT_EQ(all(vt::tensor({3, 49, 20, 9})).to_vector<int>(), (std::vector{3, 49, 20, 9}));
}

TEST(LaneCalls, Meetings) {
  const auto f = [](Tensor x, Tensor limit) {
    x = vt::while_loop([&](Tensor v) { return v < limit; }, [](Tensor v) { return 2 * v; }, x);
    return vt::grad([](Tensor v) { return vt::sqrt(vt::meeting(v)); })(vt::meeting(x));
  };
  expect_lanes(f, {0.25, 0.14433756729740643, 0.5}, vt::tensor({1.0, 3.0, 1.0}),
               vt::tensor({4.0, 10.0, 0.0}));
}

TEST(LaneCalls, NoLanesAndOne) {
  Fibonacci fib;
  for (const LaneSchedule schedule : parting) {
    const auto all = vt::jit(vt::vmap(fib.of, {.schedule = schedule}));
    EXPECT_EQ(all(vt::zeros({0}, vt::i32)).shape(), vt::Shape{0});
    EXPECT_EQ(all(vt::tensor({7})).to_vector<int>(), std::vector{21});
  }
}

// ---- lanes inside of lanes
// ------------------------------------------------------------------------

// The inner lanes of a reversed loop end at different times, and so do the outer ones, of which the
// inner ones share the start.
TEST(LaneCalls, LanesOfTheirOwnGoOnTogether) {
  const auto last = [](Tensor end, Tensor start) {
    return vt::sum(vt::while_loop([=](Tensor c) { return vt::sum(c) < end; },
                                  [](Tensor c) { return c * 2.0; }, start));
  };
  const Tensor ends = vt::tensor({50.0, 90.0});
  const auto all = [=](Tensor start) {
    return vt::sum(vt::vmap(last, {.in_axes = {0, vt::unmapped}})(ends, start));
  };
  for (const vt::Shape& shape :
       {vt::Shape{}, vt::Shape{1}, vt::Shape{2}, vt::Shape{8}, vt::Shape{2, 2}, vt::Shape{16}}) {
    // Doubled until the sum is as large: 2 ᵏ for each end.
    const Tensor start = vt::full(shape, 12.0 / static_cast<double>(shape.elements()), vt::f64),
                 starts = vt::stack({start, start * 0.25, start * 3.0}),
                 right = vt::tensor({8.0 + 8.0, 32.0 + 32.0, 2.0 + 4.0});
    for (const vt::LaneSchedule schedule :
         {vt::LaneSchedule::automatic, vt::LaneSchedule::groups, vt::LaneSchedule::hybrid,
          vt::LaneSchedule::program_counter}) {
      const auto values = vt::vmap(all, {.schedule = schedule});
      EXPECT_EQ(vt::jit(values)(starts).to_vector<double>(), (std::vector<double>{192, 192, 216}))
          << shape.str();
      const auto slopes = vt::vmap(vt::grad(all), {.schedule = schedule});
      const auto fast = vt::jit(slopes);
      for (const Tensor& g : {slopes(starts), fast(starts), fast(starts)})
        for (int lane = 0; lane < 3; ++lane)
          EXPECT_EQ(g[lane].to_vector<double>(),
                    std::vector<double>(static_cast<std::size_t>(shape.elements()),
                                        right.to_vector<double>()[lane]))
              << shape.str() << ", lane " << lane;
    }
  }
}

}  // namespace
