// Asks LLVM for the host's name and features and derives vt's view of them.
#include "target.hpp"

#include <cstdlib>
#include <string_view>

#include <vt/error.hpp>

namespace vt::detail::cpu {

#if VT_HAS_LLVM_HEADERS

namespace cpu_target {

bool has(std::string_view features, std::string_view name) {
  for (std::size_t at = features.find(name); at != std::string_view::npos; at = features.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (at > 0 && features[at - 1] == '+' && (end == features.size() || features[end] == ',')) return true;
  }
  return false;
}

bool is_x86(std::string_view triple) { return triple.substr(0, 6) == "x86_64" || triple.substr(0, 2) == "i6"; }

// The lower instruction sets are spelled out, not taken from a CPU name, so that the flags below can be read from them.
constexpr const char* avx2_features = "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+cx16";
constexpr const char* avx512_features =
    "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe,+cx16,"
    "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl";

}  // namespace cpu_target

Target make_target(Isa isa) {
  using cpu_target::has;
  const Llvm& L = llvm();
  Target t;
  const auto take = [&](char* text) {
    std::string s = text;
    L.DisposeMessage(text);
    return s;
  };
  t.triple = take(L.GetDefaultTargetTriple());
  t.cpu = take(L.GetHostCPUName());
  t.features = take(L.GetHostCPUFeatures());
  if (!cpu_target::is_x86(t.triple)) {
    // Other machines: 128-bit vectors, fused multiply-add and half conversions as AArch64 has them.
    t.vector_registers = 32;
    t.fma = t.f16c = t.sse41 = true;
    return t;
  }
  const bool host_avx2 = has(t.features, "avx2") && has(t.features, "fma") && has(t.features, "f16c");
  const bool host_avx512 = host_avx2 && has(t.features, "avx512vl") && has(t.features, "avx512bw") && has(t.features, "avx512dq");
  if (isa == Isa::sse2) {
    t.cpu = "x86-64";
    t.features = "+sse2,+cx8,+fxsr,+mmx";
  } else if (isa == Isa::avx2 && host_avx2) {
    t.cpu = "x86-64";
    t.features = cpu_target::avx2_features;
  } else if (isa == Isa::avx512 && host_avx512) {
    t.cpu = "x86-64";
    t.features = cpu_target::avx512_features;
  }
  const bool avx512 = has(t.features, "avx512vl") && has(t.features, "avx512bw") && has(t.features, "avx512dq");
  t.fma = has(t.features, "fma");
  t.f16c = has(t.features, "f16c");
  t.gather = has(t.features, "avx2");
  t.masked = t.avx512dq = avx512;
  t.sse41 = has(t.features, "sse4.1");
  t.vector_bytes = avx512 ? 64 : has(t.features, "avx2") ? 32 : 16;
  t.vector_registers = avx512 ? 32 : 16;
  return t;
}

const Target& host_target() {
  static const Target* const target = [] {
    const char* text = std::getenv("VT_CPU_ISA");
    const std::string_view name = text ? text : "";
    const Isa isa = name == "sse2" ? Isa::sse2 : name == "avx2" ? Isa::avx2 : name == "avx512" ? Isa::avx512 : Isa::host;
    return new Target(make_target(isa));
  }();
  return *target;
}

#endif

}  // namespace vt::detail::cpu
