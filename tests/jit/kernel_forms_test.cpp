// Kernels of equal loops over arrays of other sizes are one code, which reads extents and distances
// when it runs.
#include <gtest/gtest.h>

#include <cstdlib>

#include <vt/vt.hpp>

#include "src/trace/ir/executable.hpp"
#include "src/trace/ir/graph.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"
#include "support/property.hpp"

namespace {

using namespace vt;
using namespace vt::detail;
using Tensors = std::vector<Tensor>;
using S = std::span<const Tensor>;

// Read once, when the first Graph is compiled: what other tests keep on disk would be counted as
// loaded.
const bool fresh = [] {
  ::setenv("VT_CACHE_DIR", "", 1);
  return true;
}();

class KernelForms : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<Aval> avals = {Aval(f32, {3})};
    const std::shared_ptr<Executable> program =
        compile_graph(record([](S t) -> Tensors { return {t[0] + 1}; }, avals, {}).graph);
    if (program->explain_steps().rfind("interpreter", 0) == 0) GTEST_SKIP() << "no LLVM";
  }
};

// Compiled as one program and run once; sums of quarters are exact, so the values must be the
// interpreter's to the last bit.
Stats run(const FlatFunction& f, const Tensors& arguments, const std::string& what) {
  std::vector<Aval> avals;
  vt::Vec<BufferRef> inputs;
  for (const Tensor& t : arguments) {
    avals.push_back(Aval(t.dtype(), t.shape()));
    inputs.push_back(value_of(t, {}));
  }
  const GraphBody g = simplify(record(f, avals, {}).graph, SimplifyFor::running);
  reset_stats();
  const std::shared_ptr<Executable> program = compile_graph(g);
  const vt::Vec<BufferRef> made = program->run(inputs), expected = interpret(g, inputs);
  const Stats ran = stats();
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Aval& aval = g.aval(g.outputs[i]);
    vt_test::expect_close(from_buffer(made[i], aval), from_buffer(expected[i], aval),
                          vt_test::exact, what + "\n" + program->explain_steps());
  }
  return ran;
}

Tensor quarters(const Shape& shape, std::uint64_t seed) {
  return vt_test::random_quarters(f32, shape, seed);
}

struct Case {
  const char* name;
  FlatFunction f;
  std::vector<std::vector<Shape>> shapes;  // of the arguments: sizes that have one form
};

std::vector<Case> cases() {
  const auto pooled = [](const Tensor& x) { return max_pool(relu(x), {.window = {2, 2}}); };
  return {
      {"bias and relu",
       [](S t) -> Tensors { return {relu(t[0] + t[1])}; },
       {{{6, 40, 64}, {64}}, {{9, 24, 128}, {128}}, {{5, 100, 48}, {48}}}},
      {"a pool",
       [=](S t) -> Tensors { return {pooled(t[0] + t[1])}; },
       {{{48, 48, 64}, {64}}, {{64, 56, 48}, {48}}, {{40, 56, 80}, {80}}}},
      {"what a pool's derivative takes",
       [=](S t) -> Tensors {
         return {grad([&](Tensor x) { return sum(pooled(x) * t[1]); })(t[0])};
       },
       {{{48, 48, 64}, {24, 24, 64}}, {{64, 60, 48}, {32, 30, 48}}}},
      {"sums of rows",
       [](S t) -> Tensors { return {sum(t[0], std::vector<int>{0, 1})}; },
       {{{48, 48, 64}}, {{24, 24, 128}}, {{36, 40, 96}}}},
      {"sums along rows",
       [](S t) -> Tensors { return {sum(t[0] * t[0], 2)}; },
       {{{20, 12, 1024}}, {{10, 24, 2048}}}},
      {"an edge of zeros",
       [](S t) -> Tensors { return {pad(t[0], {{1, 1}, {1, 1}, {0, 0}}) * 2}; },
       {{{48, 48, 64}}, {{40, 56, 48}}}},
      {"a transpose",
       [](S t) -> Tensors { return {transpose(t[0], {1, 0, 2}) + 1}; },
       {{{48, 40, 64}}, {{36, 50, 80}}}},
  };
}

TEST_F(KernelForms, OtherSizesCompileNothing) {
  for (const Case& c : cases()) {
    for (std::size_t k = 0; k < c.shapes.size(); ++k) {
      Tensors arguments;
      for (const Shape& s : c.shapes[k]) arguments.push_back(quarters(s, 1 + arguments.size()));
      const Stats ran = run(c.f, arguments, c.name);
      EXPECT_EQ(ran.kernels_compiled > 0, k == 0) << c.name << " " << k;
      EXPECT_TRUE(k == 0 || ran.kernel_memory_hits > 0) << c.name << " " << k;
    }
  }
}

// Layers of one program, which several threads compile at once.
TEST_F(KernelForms, LayersOfAProgramShareCode) {
  const auto f = [](S t) -> Tensors {
    Tensors results;
    for (const Tensor& x : t) results.push_back(relu(x * 2 + 1) - sum(x, 0));
    return results;
  };
  Tensors arguments;
  for (const int n : {64, 128, 192, 256, 320, 384})
    arguments.push_back(quarters({40 * 64 / (n / 64), n}, static_cast<std::uint64_t>(n)));
  const Stats several = run(f, arguments, "several");
  EXPECT_LT(several.kernels_compiled, several.launches) << several.str();
}

// The first halves of both have the same loops, but the second half of one takes a number at run
// time that the other's has in its code.
TEST_F(KernelForms, NumbersStandBehindWhatTheKernelTakes) {
  const auto half = [](S t) -> Tensors { return {sum(t[0]) * 0.5}; };
  const auto scaled = [](S t) -> Tensors { return {sum(t[0]) * 0.3125}; };
  for (const bool first : {true, false})
    for (const FlatFunction& f : {FlatFunction(half), FlatFunction(scaled)}) {
      const std::int64_t n = first ? 200'000 : 170'001;
      static_cast<void>(run(f, {quarters({n}, 3)}, first ? "first" : "again"));
    }
}

// Whatever the sizes, one after the other in one process: a number that belongs to another size
// would show.
TEST_F(KernelForms, ManySizesHaveTheInterpretersValues) {
  std::uint64_t seed = 7;
  for (const Case& c : cases())
    for (int iteration = 0; iteration < 6; ++iteration) {
      // A size of its own for each extent of the first case, the same for equal ones.
      std::vector<std::pair<std::int64_t, std::int64_t>> chosen;
      Tensors arguments;
      const bool halves = c.shapes[0].size() > 1 && c.shapes[0][1].rank() == 3;
      for (const Shape& s : c.shapes[0]) {
        Shape other;
        for (std::size_t axis = 0; axis < static_cast<std::size_t>(s.rank()); ++axis) {
          const std::int64_t given =
              halves && !arguments.empty() && axis < 2 ? s[axis] * 2 : s[axis];
          auto at = std::find_if(chosen.begin(), chosen.end(),
                                 [&](const auto& p) { return p.first == given; });
          if (at == chosen.end()) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            chosen.push_back({given, 2 * (4 + static_cast<std::int64_t>(seed >> 40) % 40)});
            at = chosen.end() - 1;
          }
          other.push_back(halves && !arguments.empty() && axis < 2 ? at->second / 2 : at->second);
        }
        arguments.push_back(quarters(other, seed + arguments.size()));
      }
      static_cast<void>(run(c.f, arguments, c.name));
    }
}

}  // namespace
