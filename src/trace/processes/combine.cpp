// Combining: the loops that add the elements of two ranks, or take the greater or lesser ones.
#include "combine.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "../base/scalar_math.hpp"

namespace vt::detail {
namespace combine_loops {

// Vectors as a type of the compiler's: at -O2 g++ makes none of a loop whose length it does not
// know.
template <class T>
struct Vectors {
  typedef T type __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
};

// NaN wins, and of two equal numbers the first.
template <class T, RankReduction how>
void run(void* result, const void* lower, const void* higher, std::size_t n) {
  auto* const r = static_cast<T*>(result);
  const auto* const a = static_cast<const T*>(lower);
  const auto* const b = static_cast<const T*>(higher);
  std::size_t i = 0;
#if defined(__GNUC__)
  using Vector = typename Vectors<T>::type;
  constexpr std::size_t width = sizeof(Vector) / sizeof(T);
  for (; i + width <= n; i += width) {
    const Vector x = *reinterpret_cast<const Vector*>(a + i);
    const Vector y = *reinterpret_cast<const Vector*>(b + i);
    auto& to = *reinterpret_cast<Vector*>(r + i);
    if constexpr (how == RankReduction::sum) to = x + y;
    else if constexpr (how == RankReduction::max) to = ((x >= y) | (x != x)) ? x : y;
    else to = ((x <= y) | (x != x)) ? x : y;
  }
#endif
  for (; i < n; ++i) {
    const T x = a[i], y = b[i];
    if constexpr (how == RankReduction::sum) r[i] = scalar_math::add(x, y);
    else if constexpr (how == RankReduction::max) r[i] = x >= y || x != x ? x : y;
    else r[i] = x <= y || x != x ? x : y;
  }
}

template <class T>
CombineLoop of_type(RankReduction how) {
  switch (how) {
    case RankReduction::max: return run<T, RankReduction::max>;
    case RankReduction::min: return run<T, RankReduction::min>;
    default:
      if constexpr (std::is_integral_v<T>) return run<std::make_unsigned_t<T>, RankReduction::sum>;
      else return run<T, RankReduction::sum>;
  }
}

template <class F, class G>
void each(const F* from, G* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = G(from[i]);
}

}  // namespace combine_loops

DType combined_dtype(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

CombineLoop combine_loop(RankReduction how, DType dtype) {
  using namespace combine_loops;
  if (is_complex(dtype) && how != RankReduction::sum) return nullptr;
  switch (dtype) {
    case DType::bool_:
      return how == RankReduction::min ? run<std::uint8_t, RankReduction::min>
                                       : run<std::uint8_t, RankReduction::max>;
    case DType::i8: return of_type<std::int8_t>(how);
    case DType::u8: return of_type<std::uint8_t>(how);
    case DType::i16: return of_type<std::int16_t>(how);
    case DType::u16: return of_type<std::uint16_t>(how);
    case DType::i32: return of_type<std::int32_t>(how);
    case DType::u32: return of_type<std::uint32_t>(how);
    case DType::i64: return of_type<std::int64_t>(how);
    case DType::u64: return of_type<std::uint64_t>(how);
    case DType::f64: return of_type<double>(how);
    case DType::c64:
      return [](void* result, const void* lower, const void* higher, std::size_t n) {
        run<float, RankReduction::sum>(result, lower, higher, 2 * n);
      };
    case DType::c128:
      return [](void* result, const void* lower, const void* higher, std::size_t n) {
        run<double, RankReduction::sum>(result, lower, higher, 2 * n);
      };
    default: return of_type<float>(how);
  }
}

void widen_halves(DType dtype, const void* halves, float* wide, std::size_t n) {
  if (dtype == DType::f16) combine_loops::each(static_cast<const Float16*>(halves), wide, n);
  else combine_loops::each(static_cast<const BFloat16*>(halves), wide, n);
}

void round_to_halves(DType dtype, const float* wide, void* halves, std::size_t n) {
  if (dtype == DType::f16) combine_loops::each(wide, static_cast<Float16*>(halves), n);
  else combine_loops::each(wide, static_cast<BFloat16*>(halves), n);
}

}  // namespace vt::detail
