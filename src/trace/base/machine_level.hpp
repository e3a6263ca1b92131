// Which version of code that is compiled for several machines runs on this one.
#pragma once

#include "environment.hpp"

namespace vt::detail {

/// `any` is what every machine of the architecture has.
enum class MachineLevel { any, avx2, avx512 };

/// The widest vectors that this machine has, or those that VT_CPU_ISA asks for, where they are
/// narrower. Read once.
inline MachineLevel machine_level() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
  static const MachineLevel level = [] {
    const std::string_view asked = isa_from_environment();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (!avx2 || asked == "sse2") return MachineLevel::any;
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#if defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
    // g++ 12 stores vectors of 64 bytes as aligned in AddressSanitizer's frames
    // (detect_stack_use_after_return), which are aligned to 32.
    avx512 = false;
#endif
    return avx512 && asked != "avx2" ? MachineLevel::avx512 : MachineLevel::avx2;
  }();
  return level;
#else
  return MachineLevel::any;
#endif
}

/// Clears the upper halves of the vector registers. A caller that is compiled for AVX may leave
/// values there (g++ 12 does so behind a move of a struct), and then each change between its kind
/// of instructions and ours takes tens of nanoseconds: a call of 0.1 us took 0.43. Never inlined,
/// as a compiler keeps nothing in these registers across a call.
[[gnu::noinline]] inline void clear_upper_halves() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
  if (machine_level() != MachineLevel::any) asm volatile("vzeroupper" ::: "memory");
#endif
}

}  // namespace vt::detail
