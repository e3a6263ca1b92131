// Asks the CPU what it has, and LLVM for its own names of that.
#include "target.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#endif

#include <string_view>

#include "../../../trace/base/environment.hpp"

namespace vt::detail::cpu {

namespace cpu_target {

#if defined(__x86_64__) || defined(__i386__)

constexpr bool x86 = true;

struct Has {
  // These builtins also ask whether the operating system keeps the wide registers.
  bool sse41 = __builtin_cpu_supports("sse4.1");
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c();
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512cd");
  bool avx512_vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  bool avx_vnni = avx2 && (leaf7_1() & 1u << 4) != 0;
  bool avx512_bf16 = avx512 && (leaf7_1() & 1u << 5) != 0;
  static unsigned leaf7_1() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) ? a : 0;
  }
  static bool f16c() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
  }
};

/// Model and feature bits: machines that share a cache folder (a home on the network) may differ.
/// Asked for once: each question is an instruction that a virtual machine hands to its host.
const std::string& identity() {
  static const std::string& text = *new std::string([] {
    std::string text = "x86";
    const auto leaf = [&](unsigned number) {
      unsigned a = 0, b = 0, c = 0, d = 0;
      if (!__get_cpuid_count(number, 0, &a, &b, &c, &d)) return;
      // the number of the core it ran on, and an operating system's flag
      if (number == 1) b = 0, c &= ~(1u << 27);
      for (unsigned word : {a, b, c, d}) text += "." + std::to_string(word);
    };
    for (unsigned number : {1u, 7u, 0x80000001u}) leaf(number);
    return text;
  }());
  return text;
}

#else

constexpr bool x86 = false;
struct Has {
  bool sse41 = true, avx2 = false, avx512 = false, avx512_vnni = false, avx_vnni = false,
       avx512_bf16 = false;
};
const std::string& identity() {
#if defined(__linux__)
  static const std::string& text =
      *new std::string("hwcap." + std::to_string(::getauxval(AT_HWCAP)) + "." +
                       std::to_string(::getauxval(AT_HWCAP2)));
#else
  static const std::string& text = *new std::string("host");
#endif
  return text;
}

#endif

// The lower instruction sets are spelled out, not taken from a CPU name, so that they hold what the
// flags below say.
constexpr const char* sse2_features = "+sse2,+cx8,+fxsr,+mmx";
constexpr const char* avx2_features =
    "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+cx16";
constexpr const char* avx512_features =
    "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+cx16,"
    "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl";

}  // namespace cpu_target

Target make_target(Isa isa) {
  const cpu_target::Has has;
  Target t;
  if (!cpu_target::x86 || isa == Isa::neon) {
    if (isa == Isa::neon) t.isa = isa;
    // Other machines: 128-bit vectors, fused multiply-add and half conversions as AArch64 has them.
    t.vector_registers = 32;
    t.fma = t.f16c = t.sse41 = true;
    return t;
  }
  const bool known =
      isa == Isa::sse2 || (isa == Isa::avx2 && has.avx2) || (isa == Isa::avx512 && has.avx512);
  t.isa = known ? isa : Isa::host;
  const bool avx512 = t.isa == Isa::avx512 || (t.isa == Isa::host && has.avx512);
  const bool avx2 = avx512 || t.isa == Isa::avx2 || (t.isa == Isa::host && has.avx2);
  t.fma = t.f16c = t.gather = avx2;
  t.masked = t.avx512dq = avx512;
  t.sse41 = avx2 || (t.isa == Isa::host && has.sse41);
  // What the spelled-out sets leave out.
  t.dot_i8 = t.isa == Isa::host && (avx512 ? has.avx512_vnni : has.avx_vnni);
  t.dot_bf16 = t.isa == Isa::host && has.avx512_bf16;
  t.vector_bytes = avx512 ? 64 : avx2 ? 32 : 16;
  t.vector_registers = avx512 ? 32 : 16;
  return t;
}

std::string Target::key() const {
  const std::string optimised = "." + std::to_string(level);
  switch (isa) {
    case Isa::sse2: return "sse2" + optimised;
    case Isa::avx2: return "avx2" + optimised;
    case Isa::avx512: return "avx512" + optimised;
    case Isa::neon: return "neon" + optimised;
    default: return cpu_target::identity() + optimised;
  }
}

const Target& host_target() {
  static const Target target = [] {
    const std::string_view name = isa_from_environment();
    Target t = make_target(name == "sse2"     ? Isa::sse2
                           : name == "avx2"   ? Isa::avx2
                           : name == "avx512" ? Isa::avx512
                                              : Isa::host);
    t.level = static_cast<int>(number_from_environment("VT_CPU_LEVEL", 0, 3, t.level));
    return t;
  }();
  return target;
}

#if VT_HAS_LLVM_HEADERS

LlvmTarget llvm_target(Isa isa) {
  const Llvm& L = llvm();
  const auto take = [&](char* text) {
    std::string s = text;
    L.DisposeMessage(text);
    return s;
  };
  LlvmTarget t{take(L.GetDefaultTargetTriple()), "x86-64", ""};
  switch (isa) {
    case Isa::sse2: t.features = cpu_target::sse2_features; break;
    case Isa::avx2: t.features = cpu_target::avx2_features; break;
    case Isa::avx512: t.features = cpu_target::avx512_features; break;
    case Isa::neon: t = {"aarch64-unknown-linux-gnu", "generic", "+neon,+fullfp16"}; break;
    default: {
      static const LlvmTarget& host =
          *new LlvmTarget{"", take(L.GetHostCPUName()), take(L.GetHostCPUFeatures())};
      t.cpu = host.cpu;
      t.features = host.features;
    }
  }
  return t;
}

#endif

}  // namespace vt::detail::cpu
