// The functions that generated code may call: what LLVM itself calls (memory, fma) and scalar
// fallbacks of the C library.
#include "compile.hpp"

#if VT_HAS_LLVM_HEADERS

#include <cmath>
#include <cstring>

#include "../../services/recursion_exit.hpp"

namespace vt::detail::cpu {

namespace runtime_simd_lanes {

/// In place, on the SIMD lanes of a vector.
template <class T, T (*f)(T)>
void each(T* simd_lanes, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) simd_lanes[i] = f(simd_lanes[i]);
}
template <class T, T (*f)(T)>
void* each_of() {
  return reinterpret_cast<void*>(&each<T, f>);
}

}  // namespace runtime_simd_lanes

std::span<const RuntimeSymbol> runtime_symbols() {
  using runtime_simd_lanes::each_of;
  using G1 = float (*)(float, float);
  using G2 = double (*)(double, double);
  using F3 = float (*)(float, float, float);
  using F4 = double (*)(double, double, double);
  using Copy = void* (*)(void*, const void*, std::size_t);
  using Fill = void* (*)(void*, int, std::size_t);
  static const RuntimeSymbol table[] = {
      {"memcpy", reinterpret_cast<void*>(static_cast<Copy>(std::memcpy))},
      {"memmove", reinterpret_cast<void*>(static_cast<Copy>(std::memmove))},
      {"memset", reinterpret_cast<void*>(static_cast<Fill>(std::memset))},
      {"fmaf", reinterpret_cast<void*>(static_cast<F3>(std::fma))},
      {"fma", reinterpret_cast<void*>(static_cast<F4>(std::fma))},
      // LLVM makes these of a compare and a select on 16-bit floats
      {"fminf", reinterpret_cast<void*>(static_cast<G1>(::fminf))},
      {"fmaxf", reinterpret_cast<void*>(static_cast<G1>(::fmaxf))},
      {"fmin", reinterpret_cast<void*>(static_cast<G2>(::fmin))},
      {"fmax", reinterpret_cast<void*>(static_cast<G2>(::fmax))},
      {"vt_simd_sin", each_of<double, std::sin>()},
      {"vt_simd_cos", each_of<double, std::cos>()},
      {"vt_simd_tan", each_of<double, std::tan>()},
      {"vt_simd_sinf", each_of<float, std::sin>()},
      {"vt_simd_cosf", each_of<float, std::cos>()},
      {"vt_simd_tanf", each_of<float, std::tan>()},
      {"vt_leave_recursion", reinterpret_cast<void*>(&vt_leave_recursion)},
  };
  return table;
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
