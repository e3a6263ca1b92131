// scaling: what it records of known programs, its model beside formulas worked out by hand, its
// page, and what wrong uses say.
#include <unistd.h>

#include <cmath>
#include <memory>
#include <stdexcept>

#include "distributed/ranks.hpp"
#include "support/page.hpp"
#include "support/property.hpp"

namespace {

using vt::replicated;
using vt::sharded;
using vt::Tensor;
using vt::distributed::mesh;
using vt::distributed::rank;
using vt::distributed::Scaling;
using vt::distributed::ScalingReport;
using vt_test::expect_error;
using vt_test::on_ranks;

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// 1 µs and a byte in 0.1 ns; computing hides nothing of it.
const std::vector<vt::distributed::Link> link = {
    {.latency = 1e-6, .bandwidth = 1e10, .own_latency = 1e-6, .own_bandwidth = 1e10}};
double message(double bytes) { return 1e-6 + 1e-10 * bytes; }

/// What scaling of f says in a world of one rank, whose links are all as above.
template <class F, class... A>
ScalingReport alone(F f, const A&... arguments) {
  std::shared_ptr<ScalingReport> report;
  vt::distributed::simulate(1, [&] {
    const auto compiled = vt::jit(vt::shard_map(
        f, {.mesh = mesh({{"i", 1}}), .in_specs = sharded("i"), .out_specs = sharded("i")}));
    report = std::make_shared<ScalingReport>(
        vt::distributed::scaling(compiled, {.steps = 3, .link = link})(arguments...));
  });
  return *report;
}
void expect_transfer(const ScalingReport& report, std::int64_t processes, double wanted,
                     Scaling how = Scaling::weak) {
  EXPECT_NEAR(report.parts(processes, how).transfer, wanted, 1e-9 * wanted) << processes;
}

// Sums: γ, the time to add a byte, is measured; what it adds is the difference of two predictions.
TEST(ScalingModel, SmallSumsTakeALogarithmOfMessages) {
  const ScalingReport r = alone([](Tensor x) { return vt::psum(x, "i"); }, vt::arange(1000.0));
  const double once = r.parts(2).transfer;  // α + βn + γn
  EXPECT_GE(once, message(4000));
  expect_transfer(r, 4, 2 * once);
  expect_transfer(r, 1024, 10 * once);
  const double added = once - message(4000);
  expect_transfer(r, 3, message(4000) * 3 + 2 * added);  // one before, one step, one after
  expect_transfer(r, 4, 2 * once, Scaling::strong);      // sums keep their bytes
}

TEST(ScalingModel, LargeSumsGoByHalvesOrRoundInBlocks) {
  const double bytes = 4e6;
  const ScalingReport r = alone([](Tensor x) { return vt::psum(x, "i"); }, vt::arange(1e6));
  const double added = r.parts(2).transfer - 2 * message(bytes / 2);  // γ of half of it
  EXPECT_GT(added, 0);
  expect_transfer(r, 4, 2 * message(bytes / 2) + 2 * message(bytes / 4) + 1.5 * added);
  double halves = 0;
  for (int k = 1; k <= 10; ++k) halves += 2 * message(bytes / (1 << k)) + 2 * added / (1 << k);
  expect_transfer(r, 1024, halves);
  expect_transfer(r, 1025, halves + 2 * message(bytes) + 2 * added);  // one more, a part is short
  const auto block = [&](double processes) {
    return std::ceil(bytes / 4 / processes / 64) * 64 * 4;
  };
  for (const int n : {3, 10, 100})
    expect_transfer(r, n, (n - 1) * (2 * message(block(n)) + added * block(n) / (bytes / 2)));
}

TEST(ScalingModel, GathersRingsAndPairs) {
  const Tensor small = vt::arange(100.0), large = vt::arange(1e5);  // 400 bytes and 400 kB
  const auto gather = [](Tensor x) { return vt::all_gather(x, "i", {.tiled = true}); };
  const ScalingReport a = alone(gather, small), b = alone(gather, large);
  expect_transfer(a, 2, message(400));
  expect_transfer(a, 5, message(400) + message(800) + message(400));  // Bruck's
  double doubled = 0;
  for (const int held : {1, 2, 4, 8, 16, 32, 64, 128, 256}) doubled += message(400.0 * held);
  expect_transfer(a, 1000, doubled + message(400.0 * 488));  // as the parts are short
  expect_transfer(b, 5, 4 * message(4e5));
  expect_transfer(b, 5, 4 * message(8e4), Scaling::strong);
  const ScalingReport c =
      alone([](Tensor x) { return vt::all_to_all(x, "i", 0, 0, {.tiled = true}); }, large);
  expect_transfer(c, 4, 3 * message(1e5));
  expect_transfer(c, 4, 3 * message(2.5e4), Scaling::strong);
  const ScalingReport d =
      alone([](Tensor x) { return vt::ppermute(x, "i", Pairs{{0, 0}}) + 1.0; }, large);
  for (const int n : {2, 100}) expect_transfer(d, n, message(4e5));
  expect_transfer(d, 100, message(4e5), Scaling::strong);  // borders keep their bytes
}

TEST(ScalingModel, GrowsWithTheProcesses) {
  const ScalingReport r =
      alone([](Tensor x) { return vt::sin(x) + vt::psum(vt::sum(x), "i"); }, vt::arange(1000.0));
  double before = 0;
  for (const int n : {1, 2, 4, 8, 64, 1024, 1 << 20}) {
    const vt::distributed::StepTime t = r.parts(n), s = r.parts(n, Scaling::strong);
    EXPECT_GE(t.seconds(), before) << n;
    EXPECT_DOUBLE_EQ(t.seconds(), r.predict(n));
    EXPECT_DOUBLE_EQ(t.compute, r.measured().compute);
    EXPECT_DOUBLE_EQ(s.compute, r.measured().compute / n);
    EXPECT_LE(s.wait, t.wait);
    before = t.seconds();
  }
  EXPECT_EQ(r.parts(1).wait, 0);
}

TEST(ScalingModel, TheLinkBetweenMachinesIsShared) {
  vt::distributed::simulate(1, [] {
    const auto f = vt::shard_map(
        [](Tensor x) { return vt::all_to_all(x, "i", 0, 0, {.tiled = true}); },
        {.mesh = mesh({{"i", 1}}), .in_specs = sharded("i"), .out_specs = sharded("i")});
    const ScalingReport r = vt::distributed::scaling(
        f, {.steps = 1, .link = link, .processes_of_host = 4})(vt::arange(1e5));
    expect_transfer(r, 4, 3 * message(1e5));      // on one machine
    expect_transfer(r, 8, 7 * message(4 * 5e4));  // four leave it at once
  });
}

TEST(Scaling, RecordsWhatAStepExchanges) {
  on_ranks(2, [] {
    const auto m = mesh({{"data", 2}});
    int line = 0;
    const auto step = vt::jit(vt::shard_map(
        [&](Tensor x) {
          line = __LINE__;
          const Tensor a = vt::psum(vt::sum(x), "data");
          const Tensor b = vt::pmax(vt::sin(x * a), "data");
          const Tensor c = vt::all_gather(b * x, "data");
          return vt::fori_loop(
              0, 5, [&](Tensor, Tensor v) { return vt::psum(v, "data") * 0.25; }, vt::sum(c) * x);
        },
        {.mesh = m, .in_specs = sharded("data"), .out_specs = sharded("data")}));
    const ScalingReport r =
        vt::distributed::scaling(step, {.steps = 4})(vt::tensor({1.0, 2.0, 3.0}) + rank());
    const auto all = r.exchanges();
    ASSERT_EQ(all.size(), 4u) << r.str();
    const std::vector<std::string> texts = {
        "vt::psum over \"data\" of f64[]", "vt::pmax over \"data\" of f64[3]",
        "vt::all_gather over \"data\" of f64[3]", "vt::psum over \"data\" of f64[3]"};
    const std::vector<std::int64_t> bytes = {8, 24, 24, 24};
    const std::vector<int> lines = {1, 2, 3, 5};
    const std::vector<double> times = {1, 1, 1, 5};
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(all[k].text, texts[k]);
      EXPECT_EQ(all[k].bytes, bytes[k]);
      EXPECT_EQ(all[k].line, line + lines[k]);
      EXPECT_EQ(all[k].times, times[k]);
      EXPECT_EQ(all[k].processes, 2);
      EXPECT_GT(all[k].modelled, 0);
      EXPECT_NE(all[k].file.find("scaling_test.cpp"), std::string::npos);
      EXPECT_NE(r.str().find(texts[k]), std::string::npos) << r.str();
    }
    EXPECT_GT(r.seconds(), 0);
    EXPECT_FALSE(r.link().empty());
    // The same on both.
    const Tensor predicted = vt::tensor({r.predict(100), r.seconds(), r.parts(7).wait});
    const Tensor both = vt::distributed::gather(predicted, m, sharded("data"));
    for (int k = 0; k < 3; ++k) EXPECT_EQ(both[k].item<double>(), both[k + 3].item<double>()) << k;
  });
}

TEST(Scaling, APermuteThatIsBegunIsOneExchange) {
  on_ranks(2, [] {
    const auto step = vt::jit(vt::shard_map(
        [](Tensor x) {
          const Tensor border = vt::ppermute(x[0], "data", Pairs{{0, 1}, {1, 0}});
          return vt::concatenate({vt::sin(vt::cos(x)), vt::expand_dims(border * border, 0)}, 0);
        },
        {.mesh = mesh({{"data", 2}}), .in_specs = sharded("data"), .out_specs = sharded("data")}));
    const ScalingReport r = vt::distributed::scaling(
        step, {.steps = 3})(vt::arange(100.0 * 200).reshape({100, 200}).astype(vt::f64));
    ASSERT_EQ(r.exchanges().size(), 1u) << r.str();
    EXPECT_EQ(r.exchanges()[0].text, "vt::ppermute over \"data\" of f64[200]");
    EXPECT_EQ(r.exchanges()[0].times, 1);
    EXPECT_EQ(r.exchanges()[0].bytes, 1600);
  });
}

TEST(Scaling, OneThatSleepsMakesTheOtherWait) {
  on_ranks(2, [] {
    const auto sum =
        vt::jit(vt::shard_map([](Tensor x) { return vt::psum(x, "data"); },
                              {.mesh = mesh({{"data", 2}}), .in_specs = sharded("data")}));
    const auto step = [&](const Tensor& x) {
      if (rank() == 1) ::usleep(20'000);
      return sum(x);
    };
    const ScalingReport r = vt::distributed::scaling(step, {.steps = 3})(vt::tensor({1.0, 2.0}));
    // On average over both.
    EXPECT_GE(r.measured().wait, 4e-3) << r.str();
    EXPECT_GE(r.exchanges()[0].wait, 4e-3);
    EXPECT_GE(r.measured().compute, 9e-3);
    EXPECT_GE(r.parts(2).wait, 4e-3);
    EXPECT_GT(r.parts(100).wait, r.parts(2).wait);
  });
}

TEST(Scaling, WithoutCollectives) {
  on_ranks(2, [] {
    const ScalingReport r = vt::distributed::scaling([](Tensor x) { return vt::sin(x); },
                                                     {.steps = 2})(vt::arange(9.0));
    EXPECT_TRUE(r.exchanges().empty());
    EXPECT_EQ(r.predict(1000), r.measured().compute);
    EXPECT_NE(r.str().find("nothing is exchanged"), std::string::npos) << r.str();
    EXPECT_EQ(vt_test::page_fault(r.html()), "");
  });
  vt::distributed::simulate(1, [] {
    int runs = 0;
    const ScalingReport r = vt::distributed::scaling([&] { ++runs; }, {.steps = 2})();
    EXPECT_GE(runs, 4);
    EXPECT_EQ(r.parts(10).transfer, 0);
  });
}

TEST(Scaling, ThePageHasEveryRank) {
  on_ranks(3, [] {
    const auto step = vt::jit(vt::shard_map(
        [](Tensor x) {
          return vt::fori_loop(
              0, 500, [&](Tensor, Tensor v) { return vt::pmean(v, "a<b&\"") + v; }, x);
        },
        {.mesh = mesh({{"a<b&\"", 3}}),
         .in_specs = sharded("a<b&\""),
         .out_specs = sharded("a<b&\"")}));
    const ScalingReport r =
        vt::distributed::scaling(step, {.steps = 2})(vt::tensor({1.0 + rank()}));
    const std::string page = r.html();
    EXPECT_EQ(vt_test::page_fault(page), "");
    for (const char* wanted :
         {"rank 0", "rank 1", "rank 2", "vt::psum over &quot;a&lt;b&amp;&quot;", "scaling_test.cpp",
          "10,000", "class=\"wait\""})
      EXPECT_NE(page.find(wanted), std::string::npos) << wanted;
    EXPECT_EQ(page.find("rank 3"), std::string::npos);
    EXPECT_NE(page.find("One step: of 2 recorded ones, "), std::string::npos);
  });
}

TEST(Scaling, Errors) {
  on_ranks(2, [] {
    const auto m = mesh({{"data", 2}});
    const auto sum = vt::shard_map([](Tensor v) { return vt::psum(v, "data"); },
                                   {.mesh = m, .in_specs = sharded("data")});
    const Tensor x = vt::tensor({1.0 + rank()});
    const auto throws = [&](vt::distributed::ScalingOptions options, const std::string& message) {
      expect_error([&] { static_cast<void>(vt::distributed::scaling(sum, options)(x)); },
                   vt::ErrorKind::value, {"vt::distributed::scaling: " + message});
    };
    throws({.steps = 0}, "steps is 0");
    throws({.link = {{.latency = -1.0, .bandwidth = 1e9}}}, "the latency of link is -1");
    throws({.link = {{.latency = 1e-6}}}, "the bandwidth of link is 0");
    throws({.link = {{.latency = 1e-6, .bandwidth = 1e9, .up_to = 4096},
                     {.latency = 2e-6, .bandwidth = 1e9, .up_to = 1024}}},
           "the ranges of link are out of order: up_to is 4096 and then 1024");
    throws({.processes_of_host = -1}, "processes_of_host is -1");
    expect_error(
        [&] {
          static_cast<void>(vt::shard_map(
              [](Tensor v) {
                static_cast<void>(vt::distributed::scaling([](Tensor u) { return u; })(v));
                return vt::psum(v, "data");
              },
              {.mesh = m, .in_specs = sharded("data")})(x));
        },
        vt::ErrorKind::transform, {"call it outside of that"});
    // One that throws: all do, and the ranks stay in step.
    expect_error(
        [&] {
          static_cast<void>(vt::distributed::scaling([&](const Tensor& v) {
            const Tensor s = sum(v).eval();
            vt::check(rank() == 0, "only rank 0 is right");
            return s;
          })(x));
        },
        vt::ErrorKind::check, {"only rank 0 is right"});
    EXPECT_EQ(sum(x).item<double>(), 3.0);
    const auto another = vt::distributed::scaling([&] {
      if (rank() == 1) throw std::runtime_error("no more milk");
    });
    if (rank() == 1) EXPECT_THROW(another(), std::runtime_error);
    else
      expect_error([&] { static_cast<void>(another()); }, vt::ErrorKind::backend,
                   {"rank 1 failed: vt::distributed::scaling: no more milk"});
    EXPECT_EQ(sum(x).item<double>(), 3.0);
    const ScalingReport r = vt::distributed::scaling(sum, {.steps = 1})(x);
    expect_error([&] { static_cast<void>(r.predict(0)); }, vt::ErrorKind::value, {"0 processes"});
  });
  vt::distributed::simulate(1, [] {
    const auto sum = vt::shard_map([](Tensor v) { return vt::psum(v, "data"); },
                                   {.mesh = mesh({{"data", 1}}), .in_specs = sharded("data")});
    const ScalingReport r = vt::distributed::scaling(sum, {.steps = 1})(vt::tensor({1.0}));
    EXPECT_GE(r.predict(1), 0);
    EXPECT_EQ(vt_test::page_fault(r.html()), "");
    for (const std::string& text : {r.str(), r.html()})
      EXPECT_NE(text.find("No link is known, as there is one process: give one by "),
                std::string::npos)
          << text;
    expect_error([&] { static_cast<void>(r.predict(2)); }, vt::ErrorKind::value,
                 {"no link is known, as there is one process"});
  });
}

}  // namespace
