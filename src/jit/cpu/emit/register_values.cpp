// The numbers of a register kernel's small arrays as IR. An index known only at run time selects by
// comparisons, or reads and writes memory.
#include "register_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include "nest.hpp"

namespace vt::detail::cpu::register_emission {

Value RegisterEmitter::constant(const Scalar& x) {
  if (is_float(x.dtype)) return b_.real(x.dtype, x.real);
  return b_.integer(x.dtype,
                    is_unsigned(x.dtype) ? static_cast<std::int64_t>(x.natural) : x.integer);
}

Value RegisterEmitter::apply(Op op, DType dtype, const ParamsRef& params, Operands operands,
                             std::int64_t uses) {
  int lanes = 1;
  for (const Value& v : operands) lanes = std::max(lanes, v.simd_lanes);
  for (Value& v : operands)
    if (v.simd_lanes != lanes) v = b_.splat(v, lanes);
  return emit_op(b_, op, dtype, params, operands, uses);
}

Value RegisterEmitter::multiply_add(Value x, Value y, Value sum) {
  if (!sum) return apply(Op::mul, x.dtype, {}, {x, y});
  const int lanes = std::max({x.simd_lanes, y.simd_lanes, sum.simd_lanes});
  for (Value* v : {&x, &y, &sum})
    if (v->simd_lanes != lanes) *v = b_.splat(*v, lanes);
  return is_float(sum.dtype) ? b_.mul_add(x, y, sum) : b_.add(sum, b_.mul(x, y));
}

Value RegisterEmitter::chosen(Value mask, Value a, Value b) {
  if (mask.simd_lanes == 1 && b_.is_constant(mask)) return b_.is_zero(mask) ? b : a;
  return apply(Op::select, a.dtype, {}, {mask, a, b});
}

Value RegisterEmitter::chosen(const Elements& all, Value index) {
  Value x = all[0];
  for (std::size_t i = 1; i < all.size(); ++i)
    x = chosen(equals(index, static_cast<std::int64_t>(i)), all[i], x);
  return x;
}

void RegisterEmitter::put(Val& to, Value place, std::int64_t by, Value inside, Op op, Value x) {
  const auto combined = [&](Value old) {
    return op == Op::scatter ? x : apply(op, x.dtype, {}, {old, x});
  };
  if (to.is_array()) {
    const Object& array = updated(to);
    // An update that is out of range writes back what is there.
    const Value old = inside || op != Op::scatter ? read(array, place, by) : Value();
    write(array, place, by, inside ? chosen(inside, combined(old), old) : combined(old));
    return;
  }
  const Value at = further(place, by);
  for (std::size_t i = 0; i < to.elements().size(); ++i) {
    Value here = equals(at, static_cast<std::int64_t>(i));
    if (inside) here = both_of(here, inside);
    to.set(i, chosen(here, combined(to[i]), to[i]));
  }
}

}  // namespace vt::detail::cpu::register_emission

#endif  // VT_HAS_LLVM_HEADERS
