// The functions that generated code may call: what LLVM itself calls (memory, fma) and scalar fallbacks of the C library.
#include "compile.hpp"

#if VT_HAS_LLVM_HEADERS

#include <cmath>
#include <cstring>

namespace vt::detail::cpu {

std::span<const RuntimeSymbol> runtime_symbols() {
  using F1 = float (*)(float);
  using F2 = double (*)(double);
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
      {"fminf", reinterpret_cast<void*>(static_cast<G1>(::fminf))},  // LLVM makes these of a compare and a select on 16-bit floats
      {"fmaxf", reinterpret_cast<void*>(static_cast<G1>(::fmaxf))},
      {"fmin", reinterpret_cast<void*>(static_cast<G2>(::fmin))},
      {"fmax", reinterpret_cast<void*>(static_cast<G2>(::fmax))},
      {"sin", reinterpret_cast<void*>(static_cast<F2>(std::sin))},
      {"cos", reinterpret_cast<void*>(static_cast<F2>(std::cos))},
      {"tan", reinterpret_cast<void*>(static_cast<F2>(std::tan))},
      {"sinf", reinterpret_cast<void*>(static_cast<F1>(std::sin))},
      {"cosf", reinterpret_cast<void*>(static_cast<F1>(std::cos))},
      {"tanf", reinterpret_cast<void*>(static_cast<F1>(std::tan))},
  };
  return table;
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
