// What becomes of loop nests in the machine's code, where values alone would not tell: instructions
// that make rounds wait for each other.
#include <gtest/gtest.h>

#include <vt/vt.hpp>

#include "src/jit/cpu/emit/nest.hpp"
#include "src/jit/cpu/emit/register_kernel.hpp"
#include "src/jit/cpu/llvm/compile.hpp"
#include "src/jit/nest/schedule.hpp"
#include "src/jit/regions/fused_regions.hpp"
#include "src/jit/regions/register_kernel.hpp"
#include "src/trace/ir/graph.hpp"
#include "src/trace/record/scope.hpp"
#include "support/fused.hpp"

#if VT_HAS_LLVM_HEADERS

namespace {

using namespace vt;
using namespace vt::detail;
using Tensors = std::vector<Tensor>;
using S = std::span<const Tensor>;

/// A function that becomes one kernel, for this machine.
void emit(cpu::IrBuilder& b, const FlatFunction& f, const std::vector<Aval>& avals) {
  const vt::Vec<FusedStep> steps =
      vt_test::fused(simplify(record(f, avals, {}).graph, SimplifyFor::running)).steps;
  EXPECT_EQ(steps.size(), 1u);
  cpu::emit_nest(b, "kernel", steps[0].nest,
                 choose_schedule(steps[0].nest, cpu::host_target().vector_bytes));
}
std::string assembly_of(const FlatFunction& f, const std::vector<Aval>& avals) {
  cpu::IrBuilder b;
  emit(b, f, avals);
  return cpu::compile_assembly(b);
}

class JitAssembly : public testing::Test {
  void SetUp() override {
    if (const std::string& why = cpu::llvm_unavailable_reason(); !why.empty()) GTEST_SKIP() << why;
  }
};

// Rows shorter than a vector, and the ends of longer ones: vexpand waits for its destination, so
// that rows would follow each other (33 instead of 9 ns for each row of a layer-norm of 10).
TEST_F(JitAssembly, EndsOfRowsAreNoExpansions) {
  for (DType d : {f32, f64, i32, i64})
    for (std::int64_t n = 3; n < 40; n += 1) {
      const std::string text =
          assembly_of([](S t) -> Tensors { return {sum(t[0], 1)}; }, {Aval(d, {100, n})});
      EXPECT_EQ(text.find("expand"), std::string::npos) << name_of(d) << " rows of " << n << "\n"
                                                        << text;
    }
  const auto norm = [](S t) -> Tensors {
    const Tensor centred = t[0] - mean(t[0], 1, true);
    return {centred * rsqrt(mean(square(centred), 1, true) + 1e-5f)};
  };
  for (std::int64_t n : {5, 6, 10, 12, 20})
    EXPECT_EQ(assembly_of(norm, {Aval(f32, {100, n})}).find("expand"), std::string::npos) << n;
}

// Vectors of which nothing is wanted are read from the buffer's beginning: far outside of it, where
// there is no memory, each cost a fault in silence (10 to 100 ns an element for a roll of a million
// by some thousands).
TEST_F(JitAssembly, VectorsThatAreNotWantedAreNotReadFarAway) {
  if (!cpu::host_target().masked) GTEST_SKIP() << "loops are cut into sections instead";
  const auto joined = [](S t) -> Tensors {
    Tensor y = roll(t[0], 700) + roll(t[0], 1700) + roll(t[0], 2900);
    for (int i = 1; i < 40; ++i) y = y * 3 + i;  // too much code for sections of their own
    return {y};
  };
  for (DType d : {f64, i64}) {
    cpu::IrBuilder b;
    emit(b, joined, {Aval(d, {5000})});
    const std::string text = b.text();
    int loads = 0;
    for (std::size_t at = text.find("= call"); at != std::string::npos;
         at = text.find("= call", at + 1)) {
      const std::string call = text.substr(at, text.find('\n', at) - at);
      const std::size_t pointer = call.find("(ptr %");
      if (call.find("@llvm.masked.load") == std::string::npos || pointer == std::string::npos)
        continue;
      const std::string name = call.substr(pointer + 5, call.find(',', pointer) - pointer - 5);
      ++loads;
      EXPECT_NE(text.find("  " + name + " = select "), std::string::npos) << name << " in\n"
                                                                          << text;
    }
    EXPECT_GT(loads, 0) << text;
  }
}

// What is put together of parts is read without masks but for the vectors in which one part ends
// and the next begins.
TEST_F(JitAssembly, PartsAreReadWithoutMasks) {
  const auto rolled = [](S t) -> Tensors { return {roll(t[0], 777)}; };
  for (DType d : {f32, f64, i32}) {
    cpu::IrBuilder b;
    emit(b, rolled, {Aval(d, {5000})});
    const std::string text = b.text();
    EXPECT_NE(text.find("= load <"), std::string::npos) << text;
  }
}

// Squares are transposed by interleaving rows; taking turns with a neighbour's elements shifted and
// blended those of 16 bits and fewer.
TEST_F(JitAssembly, SquaresAreTransposedByInterleaving) {
  for (DType d : {bf16, f16}) {
    const std::string text = assembly_of([](S t) -> Tensors { return {transpose(t[0], {1, 0})}; },
                                         {Aval(d, {256, 256})});
    EXPECT_EQ(text.find("blend"), std::string::npos) << text;
  }
}

// Every op on bf16 rounds: whether that is a NaN one comparison of floats tells (three operations
// on integers took a seventh of the time of x·y + x − y).
TEST_F(JitAssembly, BfloatsTellNanByOneComparison) {
  const auto f = [](S t) -> Tensors { return {t[0] * t[1] + t[0]}; };
  cpu::IrBuilder b;
  emit(b, f, {Aval(bf16, {1000}), Aval(bf16, {1000})});
  const std::string text = b.text();
  EXPECT_NE(text.find("fcmp uno"), std::string::npos) << text;
  EXPECT_EQ(text.find("icmp ugt"), std::string::npos) << text;
}

// Of 16-bit floats a result is rounded to its bits when it is made: what stores it does not make
// them again.
TEST_F(JitAssembly, ResultsOfHalfFloatsAreRoundedOnce) {
  const cpu::Target& target = cpu::host_target();
  if (!target.f16c) GTEST_SKIP() << "no conversions in hardware";
  const Aval a(f16, {1600});
  const auto count = [](const std::string& text, const std::string& what) {
    int n = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++n;
    return n;
  };
  const std::string text = assembly_of([](S t) -> Tensors { return {t[0] * t[1] + t[0]}; }, {a, a});
  const int loads = count(text, "vcvtph2ps"), stores = count(text, "vcvtps2ph");
  // In each body two operands and the product between are widened, two results are rounded.
  EXPECT_EQ(loads * 2, stores * 3) << text;
}

// Long functions of rows in registers are called: twenty digammas in a row took LLVM 650 ms.
TEST_F(JitAssembly, LongFunctionsOfShortRowsAreCalled) {
  const auto f = [](S t) -> Tensors { return {digamma(t[0]) - sum(t[0], 1, true)}; };
  const auto text_of = [&](std::int64_t row) {
    const std::vector<Aval> rows{Aval(f32, {400, row})};
    const GraphBody g = form_fused_regions(
        simplify(record(f, rows, {}).graph, SimplifyFor::running), RegisterLimits());
    cpu::IrBuilder b;
    for (const Equation& e : g.equations)
      if (e.op == Op::fused_region)
        cpu::emit_register_kernel(b, "loop", register_form(alone(g, e)).value());
    return b.text();
  };
  const std::string five = text_of(5), ten = text_of(10);
  EXPECT_NE(ten.find("@vt.digamma.f32"), std::string::npos) << ten;
  EXPECT_LT(ten.size(), five.size() * 3 / 2);
}

}  // namespace

#endif
