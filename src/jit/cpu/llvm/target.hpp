// Owns what is known about the CPU that code is made for: its LLVM name, features, vector width,
// and cache-key text.
#pragma once

#include <cstddef>
#include <string>

#include "llvm_library.hpp"

namespace vt::detail::cpu {

/// Instruction sets that `VT_CPU_ISA` takes by name, and `neon`, AArch64's, for which code can be
/// made on other machines as well, but not run; `host` is everything the machine has.
enum class Isa { host, sse2, avx2, avx512, neon };

/// A CPU to generate code for. The host by default; `VT_CPU_ISA` = sse2 | avx2 | avx512 lowers it
/// (never raises it). Known without LLVM, so that a kernel from the disk cache needs none.
struct Target {
  Isa isa = Isa::host;
  int vector_bytes = 16;  ///< widest register worth using: 64 with AVX-512, 32 with AVX2, else 16
  int vector_registers = 16;
  bool fma = false;     ///< fused multiply-add in one instruction
  bool f16c = false;    ///< f16 ↔ f32 in one instruction
  bool gather = false;  ///< gathers in hardware
  /// masked loads and stores at full speed for all element sizes (AVX-512 BW + VL)
  bool masked = false;
  bool sse41 = false;  ///< floor, ceil, … in one instruction (true off x86)
  /// LLVM's code generation level, 0 (compiles in half the time, runs slower) to 3; `VT_CPU_LEVEL`
  int level = 2;
  /// sums of four products of bytes, unsigned by signed, in one instruction
  bool dot_i8 = false;
  bool dot_bf16 = false;  ///< sums of two products of bf16 in f32 in one instruction
  bool avx512dq = false;  ///< 64-bit integer multiply and float conversions as vectors

  /// Lanes of a full vector of elements of `bytes` bytes.
  int simd_lanes(std::size_t bytes) const {
    return static_cast<int>(static_cast<std::size_t>(vector_bytes) / bytes);
  }
  /// Everything that makes code for one Target differ from another's; for cache keys.
  std::string key() const;
};

/// The same in LLVM's words.
struct LlvmTarget {
  std::string triple;    ///< "x86_64-pc-linux-gnu"
  std::string cpu;       ///< "znver5", "x86-64" …
  std::string features;  ///< "+avx512f,…"
};

/// The target for `isa`, or for the host when the host lacks it.
Target make_target(Isa isa);

/// The target that this process uses: make_target of `VT_CPU_ISA`, with the level `VT_CPU_LEVEL`
/// (both read once).
const Target& host_target();

#if VT_HAS_LLVM_HEADERS
/// Throws: Error(backend) without LLVM.
LlvmTarget llvm_target(Isa isa);
#endif

}  // namespace vt::detail::cpu
