// Flow graphs of lanes: where values lie and what is pushed; and in which order blocks run.
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

#include "examples/nuts/nuts.hpp"
#include "src/jit/lanes/flow_graph.hpp"
#include "src/jit/lanes/lane_run.hpp"
#include "src/trace/record/scope.hpp"

namespace {

using vt::Tensor;
using vt::detail::FlowGraph;
using vt::detail::LaneOrder;

const vt::detail::Aval integer(vt::i32, vt::Shape{});

/// Of `f`, which takes and gives Tensors of one lane.
template <class F>
FlowGraph flow_of(const F& f, const std::vector<vt::detail::Aval>& arguments) {
  vt::detail::Recorded recorded = vt::detail::record(
      f, arguments, {.kind = vt::detail::ScopeKind::branch, .transform = "a test"});
  vt::Vec<bool> mapped;
  for (std::size_t i = 0; i < recorded.graph.inputs.size(); ++i)
    mapped.push_back(i < arguments.size());
  return vt::detail::flow_graph(
      std::make_shared<const vt::detail::GraphBody>(std::move(recorded.graph)), mapped);
}
int count_of(const FlowGraph& flow, FlowGraph::Storage storage) {
  int count = 0;
  for (const FlowGraph::Slot& s : flow.slots) count += s.storage == storage;
  return count;
}
/// Values that are written to a frame, over all blocks.
int pushes_of(const FlowGraph& flow) {
  int count = 0;
  for (const FlowGraph::Block& b : flow.blocks)
    for (const FlowGraph::Write& w : b.writes)
      count += flow.slots[w.to.slot].storage == FlowGraph::Storage::saved;
  return count;
}

// What is alive across a call that comes back is saved, all else is not.
TEST(FlowGraphs, Fibonacci) {
  vt::Recursive<Tensor(Tensor)> fib("fib", [&](Tensor n) {
    return vt::cond(n < 2, [] { return 1; }, [&] { return fib(n - 2) + fib(n - 1); });
  });
  const FlowGraph flow = flow_of(
      [&](std::span<const Tensor> in) { return std::vector<Tensor>{fib(in[0])}; }, {integer});
  EXPECT_EQ(count_of(flow, FlowGraph::Storage::saved), 2);  // n, and what the first call gave
  EXPECT_EQ(count_of(flow, FlowGraph::Storage::state), 2);  // the result of a call, and of all
  EXPECT_EQ(flow.blocks.size(), 7u);
  EXPECT_EQ(flow.str(),
            "lanes, begins at block 0\n"
            "  0: push saved0 = arg1; push 6, jump to fib\n"
            "  6: state4 = state2; return\n"
            "function fib, begins at block 1, saves 32 bytes\n"
            "  1: [full, lt, convert](saved0) branch r0 → 2, 5\n"
            "  2: [full, sub](saved0) push saved0 = r0; push 3, jump to fib\n"
            "  3: [full, sub](saved0) saved3 = state2; push saved0 = r0; push 4, jump to fib\n"
            "  4: [add](state2, saved3) state2 = r0; return\n"
            "  5: [full]() state2 = r0; return\n");
}

// What a recursion hands down unchanged, and results that no caller reads but to hand them up, are
// not saved.
TEST(FlowGraphs, WhatStaysTheSameIsNotSaved) {
  vt::Recursive<std::pair<Tensor, Tensor>(Tensor, Tensor, Tensor)> f("f");
  f = [&](Tensor n, Tensor base, Tensor x) {
    return vt::cond(
        n < 1, [&] { return std::pair(x, x * base); },
        [&] {
          const auto [a, unread] = f(n - 1, base, x * base);
          const auto [b, unread_too] = f(n - 2, base, a + base);
          return std::pair(a * b, unread + unread_too);
        });
  };
  const vt::detail::Aval number(vt::f64, vt::Shape{});
  const FlowGraph flow = flow_of(
      [&](std::span<const Tensor> in) { return std::vector<Tensor>{f(in[0], in[1], in[2]).first}; },
      {integer, number, number});
  EXPECT_EQ(count_of(flow, FlowGraph::Storage::saved), 2) << flow.str();  // n and a
  EXPECT_EQ(flow.str().find("mul, add"), std::string::npos) << flow.str();
}

// The recursion of a sampler: 11 values of the first half of a tree (three of each of its ends,
// three of its proposal, and two counts …), the depth, the key. Not: the direction and the slice,
// which are the same in the whole tree, and the density at its ends.
TEST(FlowGraphs, NoUTurnSampler) {
  const auto log_density = [](Tensor x) { return -0.5 * vt::sum(x * x); };
  const nuts::Sampler sampler(log_density, nuts::Settings{});
  const Tensor key = vt::random::key(1);
  const FlowGraph flow = flow_of(
      [&](std::span<const Tensor> in) {
        const nuts::Draw draws = sampler.chain(in[0], in[1], 5);
        return std::vector<Tensor>{draws.theta, draws.gradients, draws.divergent};
      },
      {{key.dtype(), key.shape()}, {vt::f32, vt::Shape{100}}});
  EXPECT_LE(count_of(flow, FlowGraph::Storage::saved), 14) << flow.str();
  EXPECT_LE(pushes_of(flow), 22) << flow.str();
}

// Functions are not copied to where they are called, if that is expensive or long.
std::size_t blocks_of_chain(int length, std::int64_t size) {
  const Tensor w = vt::zeros({size, size}, vt::f64);
  std::vector<vt::Recursive<Tensor(Tensor)>> f;
  f.emplace_back("f0", [&](Tensor x) {
    return vt::while_loop([](Tensor v) { return vt::sum(v) < 1; },
                          [&](Tensor v) { return vt::matmul(w, v); }, x);
  });
  for (int k = 1; k <= length; ++k)
    f.emplace_back("f" + std::to_string(k), [&f, k](Tensor x) {
      const auto& next = f[k - 1];
      return next(next(x + 1));
    });
  return flow_of([&](std::span<const Tensor> in) { return std::vector<Tensor>{f.back()(in[0])}; },
                 {{vt::f64, vt::Shape{size}}})
      .blocks.size();
}
TEST(FlowGraphs, BlocksGrowWithTheFunctionsNotWithTheCalls) {
  for (const std::int64_t size : {3, 48}) {
    const std::size_t fifteen = blocks_of_chain(15, size), twenty = blocks_of_chain(20, size);
    EXPECT_GT(twenty, fifteen);
    EXPECT_EQ(blocks_of_chain(30, size) - twenty, 2 * (twenty - fifteen)) << size;
  }
}

// --- large arrays --------------------------------------------------------------------------------

// A loop writes a row of an array of 8 KB and reads another one; the array is what a block moves
// as a whole only where the loop begins.
TEST(FlowGraphs, LargeArraysAreUpdatedInPlace) {
  const auto f = [](bool adds, std::int64_t size) {
    return [=](std::span<const Tensor> in) {
      const auto rows = std::get<1>(vt::while_loop(
          [&](Tensor i, Tensor) { return i < in[0]; },
          [&](Tensor i, Tensor rows) {
            const Tensor x = vt::meeting(vt::tanh(rows[i]));
            return std::pair(i + 1, adds ? vt::index_add(rows, (i + 1) % size, x)
                                         : vt::index_update(rows, (i + 1) % size, x));
          },
          std::pair(vt::tensor(0), vt::zeros({size, 4}, vt::f64))));
      return std::vector<Tensor>{rows};
    };
  };
  for (const bool adds : {false, true}) {
    const FlowGraph large = flow_of(f(adds, 256), {integer});
    std::size_t whole = 0, elements = 0, picked = 0;
    for (const FlowGraph::Block& b : large.blocks) {
      for (const FlowGraph::Write& w : b.writes) {
        whole += !w.to.elements && w.to.bytes >= 8192;
        elements += w.to.elements && w.adds == adds;
      }
      for (const FlowGraph::Place& r : b.reads) {
        picked += r.elements;
        EXPECT_LT(r.bytes, 8192u) << large.str();
      }
    }
    EXPECT_EQ(whole, 1u) << large.str();
    EXPECT_EQ(elements, 1u) << large.str();
    EXPECT_EQ(picked, 1u) << large.str();
    // One that is small is moved as a whole.
    const FlowGraph small = flow_of(f(adds, 8), {integer});
    for (const FlowGraph::Block& b : small.blocks)
      for (const FlowGraph::Write& w : b.writes) EXPECT_FALSE(w.to.elements) << small.str();
  }
}

// What is needed as it was before is not written over.
TEST(FlowGraphs, ArraysThatAreStillNeededAreCopied) {
  const FlowGraph flow = flow_of(
      [](std::span<const Tensor> in) {
        const auto [i, rows, before] = vt::while_loop(
            [&](Tensor i, Tensor, Tensor) { return i < in[0]; },
            [&](Tensor i, Tensor rows, Tensor) {
              const Tensor x = vt::meeting(i.astype(vt::f64));
              return std::tuple(i + 1, vt::index_update(rows, i, x), rows);
            },
            std::tuple(vt::tensor(0), vt::zeros({500}, vt::f64), vt::ones({500}, vt::f64)));
        return std::vector<Tensor>{rows, before};
      },
      {integer});
  for (const FlowGraph::Block& b : flow.blocks)
    for (const FlowGraph::Write& w : b.writes)
      if (w.to.elements) {
        const bool copies = vt::detail::any_of(b.writes, [](const FlowGraph::Write& o) {
          return !o.to.elements && o.to.bytes == 4000;
        });
        EXPECT_TRUE(copies) << flow.str();
      }
}

// --- the order of blocks -------------------------------------------------------------------------

/// Lane 0 goes once through a block of its own, all others for long through the first one.
class OneAstray : public vt::detail::LaneRun {
 public:
  static constexpr int lanes = 64, times = 500;
  static FlowGraph flow() {
    FlowGraph g;
    g.functions.resize(1);
    g.blocks.resize(3);
    g.blocks[0].exit = FlowGraph::Exit::branch;
    g.blocks[0].targets = {0, 1, 2};
    g.blocks[0].work = 1e5;
    g.blocks[1].exit = FlowGraph::Exit::jump;
    g.blocks[1].targets = {0};
    g.blocks[1].work = 5e4;
    g.blocks[2].exit = FlowGraph::Exit::leave;
    return g;
  }
  OneAstray(const FlowGraph& flow, const vt::detail::Lanes& lanes,
            vt::detail::LaneCounters& counters)
      : LaneRun(flow, lanes, counters) {}
  void run(int places) { run_lanes(0, lanes, places); }
  int ended = 0, waited = 0;

 private:
  void lane_ends(std::int64_t) override { ++ended; }
  vt::detail::BufferRef operand(int) const override { return {}; }
  void run_block(int block, const Places& places, vt::Vec<std::int32_t>& decisions) override {
    if (block == 1) waiting_ = false;
    waited += waiting_;
    if (block != 0) return;
    for (const std::int32_t p : places) {
      const auto lane = static_cast<std::size_t>(lane_[p]);
      const bool astray = lane == 0 && ran_[lane] == 3;
      waiting_ = waiting_ || astray;
      decisions.push_back(++ran_[lane] > times ? 2 : astray ? 1 : 0);
    }
  }
  int ran_[lanes] = {};
  bool waiting_ = false;
};

TEST(FlowGraphs, NoBlockStarves) {
  const FlowGraph flow = OneAstray::flow();
  for (const LaneOrder order : {LaneOrder::most, LaneOrder::earliest, LaneOrder::last})
    for (const int places : {3, OneAstray::lanes}) {
      vt::detail::lane_options() = {order, places};
      vt::detail::LaneCounters counters(vt::detail::counted_blocks(flow));
      const vt::detail::Lanes none;
      OneAstray run(flow, none, counters);
      run.run(places);
      EXPECT_EQ(run.ended, OneAstray::lanes);
      if (order == LaneOrder::most) {
        EXPECT_LT(run.waited, 2 * OneAstray::lanes);
      }
    }
  vt::detail::lane_options() = {};
}

}  // namespace
