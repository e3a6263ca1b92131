// Vector code of the special functions: special_math.hpp of src/trace/numerics on vectors of f64.
#include <vt/detail/small_vec.hpp>

#include "../../../trace/numerics/special_math.hpp"
#include "math.hpp"
#include "value.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu::math_value {

// What a number type of those templates needs besides; found by argument-dependent lookup.
inline V exp_of(V x) { return {x.b, math::exp(*x.b, x.v)}; }
inline V log_of(V x) { return {x.b, math::log(*x.b, x.v)}; }
inline V log1p_of(V x) { return {x.b, math::log1p(*x.b, x.v)}; }
inline V erf_of(V x) { return {x.b, math::erf(*x.b, x.v)}; }
inline V sin_of(V x) { return {x.b, math::sin(*x.b, x.v)}; }
inline V cos_of(V x) { return {x.b, math::cos(*x.b, x.v)}; }
inline V pow_of(V x, V y) { return {x.b, math::pow(*x.b, x.v, y.v)}; }
inline V round_of(V x) { return {x.b, x.b->round_even(x.v)}; }
inline V like(V x, double value) { return x.like(value); }

/// As long as a SIMD lane goes on; the others keep their state, so that none sees its neighbours.
template <class Going, class Body>
V iterate(V state, V, const Going& going, const Body& body) {
  IrBuilder& b = *state.b;
  const int simd_lanes = state.v.simd_lanes;
  const auto number = [&](const Vec<Value>& at) { return V{&b, b.splat(at[1], simd_lanes)}; };
  return {&b, b.while_loop(
                  {state.v, b.real(DType::f64, 0)},
                  [&](const Vec<Value>& at) { return b.any(going(number(at)).v); },
                  [&](const Vec<Value>& at) {
                    const V now{&b, at[0]}, k = number(at);
                    return Vec<Value>{select(going(k), body(now, k), now).v,
                                      b.add(at[1], b.real(DType::f64, 1))};
                  })[0]};
}

}  // namespace vt::detail::cpu::math_value

namespace vt::detail::cpu::math_core {

using Unary = math_value::V (*)(math_value::V);

/// `narrow`: the kernel of f32 and what is shorter, if it is not the f64 one's result rounded.
inline Value family(IrBuilder& b, Value x, Unary f, Unary narrow = nullptr) {
  return math_value::apply(b, x, [=](math_value::V v) {
    return narrow && !v.is_f64() ? narrow(v) : math_value::through_f64(v, f);
  });
}

}  // namespace vt::detail::cpu::math_core

namespace vt::detail::cpu::math {

Value gamma(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::gamma<math_value::V>);
}
Value erfcx(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::erfcx<math_value::V>);
}
Value erfc_inv(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::erfc_inv<math_value::V>);
}
Value ndtr(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::ndtr<math_value::V>, math_core::ndtr_f32);
}
Value log_ndtr(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::log_ndtr<math_value::V>);
}
Value dawsn(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::dawsn<math_value::V>);
}
Value expi(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::expi<math_value::V>);
}
Value spence(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::spence<math_value::V>);
}
Value fresnel_sin(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::fresnel_sin<math_value::V>);
}
Value fresnel_cos(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::fresnel_cos<math_value::V>);
}
Value bessel_i0e(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::bessel_i0e<math_value::V>,
                           math_core::bessel_i0e_f32);
}
Value bessel_i1e(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::bessel_i1e<math_value::V>,
                           math_core::bessel_i1e_f32);
}
Value bessel_k0e(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::bessel_k0e<math_value::V>);
}
Value bessel_k1e(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::bessel_k1e<math_value::V>);
}
Value bessel_j0(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::bessel_j0<math_value::V>);
}
Value bessel_j1(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::bessel_j1<math_value::V>);
}
Value bessel_y0(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::bessel_y0<math_value::V>);
}
Value bessel_y1(IrBuilder& b, Value x) {
  return math_core::family(b, x, special_math::bessel_y1<math_value::V>);
}
Value zeta(IrBuilder& b, Value s, Value q) {
  return math_value::apply(b, s, q, [](math_value::V x, math_value::V y) {
    if (x.is_f64()) return special_math::zeta(x, y);
    return special_math::zeta(x.to(DType::f64), y.to(DType::f64)).to(DType::f32);
  });
}

}  // namespace vt::detail::cpu::math

#endif  // VT_HAS_LLVM_HEADERS
