// Products and convolutions for AArch64: their code is made and compiled to assembly, on any
// machine whose LLVM knows that target.
#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "src/jit/cpu/products/conv_tile.hpp"
#include "src/jit/cpu/products/matmul_emit.hpp"
#include "src/jit/cpu/products/matmul_pack.hpp"

#if VT_HAS_LLVM_HEADERS

namespace {

using namespace vt::detail::cpu;
using vt::DType;

class AArch64 : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string& why = llvm_unavailable_reason(); !why.empty()) GTEST_SKIP() << why;
    // vt has registered the machine's own target only.
    Dl_info library{};
    ASSERT_NE(dladdr(reinterpret_cast<void*>(llvm().GetVersion), &library), 0);
    void* const handle = dlopen(library.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    for (const char* part : {"TargetInfo", "Target", "TargetMC", "AsmPrinter"}) {
      void* const initialize =
          handle ? dlsym(handle, (std::string("LLVMInitializeAArch64") + part).c_str()) : nullptr;
      if (!initialize) GTEST_SKIP() << "this LLVM does not know AArch64";
      reinterpret_cast<void (*)()>(initialize)();
    }
  }

  /// Assembly of one function that `emit` builds.
  template <class Emit>
  static std::string assembly(const Emit& emit) {
    IrBuilder b(make_target(Isa::neon));
    emit(b);
    EXPECT_EQ(b.verify(), "");
    return compile_assembly(b);
  }
};

TEST_F(AArch64, ProductsBecomeMultiplyAddsOfVectors) {
  // Sums and products of integers are joined by LLVM where it optimises, those of floats are one
  // instruction of the IR.
  const char* const level = std::getenv("VT_CPU_LEVEL");
  const char* const of_integers = level && std::string(level) == "0" ? "mul\t" : "mla\t";
  for (const auto& [dtype, lanes, instruction] :
       {std::tuple{vt::f32, 4, ".4s"}, std::tuple{vt::f64, 2, ".2d"},
        std::tuple{vt::i32, 4, ".4s"}}) {
    const TileShape shape = best_tile(make_target(Isa::neon), dtype);
    EXPECT_EQ(shape.simd_lanes, lanes);
    const std::string packed = assembly(
        [&](IrBuilder& b) { emit_packed_tile(b, "tile", dtype, dtype, shape.rows, shape); });
    EXPECT_NE(packed.find(dtype == vt::i32 ? of_integers : "fmla\t"), std::string::npos) << packed;
    EXPECT_NE(packed.find(instruction), std::string::npos);
    vt::detail::MatmulSpec s;
    s.a_dtype = s.b_dtype = s.accumulate = s.result = dtype;
    s.m = 30, s.n = 21, s.k = 17, s.a_row = 17, s.b_row = 21;
    const std::string direct =
        assembly([&](IrBuilder& b) { emit_direct(b, "direct", s, shape, false); });
    EXPECT_NE(direct.find(dtype == vt::i32 ? of_integers : "fmla\t"), std::string::npos) << direct;
  }
}

TEST_F(AArch64, ConvolutionsBecomeMultiplyAddsOfVectors) {
  const TileShape shape = best_tile(make_target(Isa::neon), vt::f32);
  for (const bool rows_adjacent : {true, false})
    for (const bool by_lanes : {true, false}) {
      ConvTile t;
      t.outer = 2, t.inner = 5, t.levels = 2;
      t.vectors = shape.vectors, t.simd_lanes = shape.simd_lanes, t.panel = shape.columns();
      t.rows_adjacent = rows_adjacent, t.depth_adjacent = !rows_adjacent,
      t.by_simd_lanes = by_lanes;
      const std::string text = assembly([&](IrBuilder& b) { emit_conv_tile(b, "tile", t); });
      EXPECT_NE(text.find("fmla\t"), std::string::npos) << text;
    }
}

TEST_F(AArch64, PackingTurnsAndConverts) {
  for (const DType from : {vt::f32, vt::f16, vt::bf16, vt::i8})
    for (const bool lines : {true, false}) {
      const PackSpec spec{.from = from,
                          .to = from == vt::i8 ? vt::i32 : vt::f32,
                          .lines = 8,
                          .lines_adjacent = lines,
                          .k_adjacent = !lines};
      const std::string text = assembly([&](IrBuilder& b) { emit_pack(b, "pack", spec); });
      EXPECT_NE(text.find("ret"), std::string::npos);
    }
}

}  // namespace

#endif
