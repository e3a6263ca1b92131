// What the element-wise functions do to their operands: promotion of dtypes and broadcasting.
#pragma once

#include <vt/detail/message.hpp>

#include "operands.hpp"

namespace vt::detail::elementwise {

using detail::Op;

/// What a function does with its operands' dtypes.
enum class Takes : std::uint8_t {
  numbers,  ///< bools become i32
  reals,    ///< the same; complex numbers are refused
  inexact,  ///< bools and integers become f32
  floats,   ///< the same; complex numbers are refused
  any,      ///< everything, as it is
  choice,   ///< what has an order, as it is: maximum, minimum, less …
  bits,     ///< bools and integers; floats are refused
  shifts,   ///< integers; bools become i32; floats are refused
};

inline bool as_it_is(Takes takes, DType d) {
  switch (takes) {
    case Takes::numbers: return !is_bool(d);
    case Takes::reals: return !is_bool(d) && !is_complex(d);
    case Takes::inexact: return is_inexact(d);
    case Takes::floats: return is_float(d);
    case Takes::choice: return !is_complex(d);
    case Takes::bits: return !is_inexact(d);
    case Takes::shifts: return is_int(d);
    default: return true;
  }
}

[[noreturn]] inline void refuse_complex(bool order, std::string_view name,
                                        std::span<const Tensor> operands, CallSite where) {
  refuse(ErrorKind::dtype, name,
         order ? "complex numbers have no order; compare vt::real, vt::imag or vt::abs"
               : "not defined for complex numbers",
         operands, where);
}

/// The dtype that `takes` makes of `c`; throws if it refuses.
inline Common adjusted(Takes takes, Common c, std::string_view name,
                       std::span<const Tensor> operands, CallSite where) {
  if (as_it_is(takes, c.dtype)) return c;
  if (is_complex(c.dtype) &&
      (takes == Takes::floats || takes == Takes::reals || takes == Takes::choice))
    refuse_complex(takes == Takes::choice, name, operands, where);
  if (takes == Takes::floats || takes == Takes::inexact)
    return {c.weak ? f64 : default_dtype(), c.weak};
  if (takes == Takes::bits || is_inexact(c.dtype))
    refuse(ErrorKind::dtype, name,
           takes == Takes::bits ? "needs bools or integers" : "needs integers", operands, where);
  return {i32, c.weak};
}

inline Tensor unary(Op op, std::string_view name, Takes takes, Operand& x, ParamsRef params = {}) {
  need(name, x.tensor, x.where);
  if (!as_it_is(takes, aval_of(x.tensor).dtype)) [[unlikely]] {
    const Aval& a = aval_of(x.tensor);
    const Common c =
        adjusted(takes, {a.dtype, a.weak}, name, std::span<const Tensor>(&x.tensor, 1), x.where);
    x.tensor = cast(std::move(x.tensor), c.dtype, c.weak, x.where);
  }
  const Aval& a = aval_of(x.tensor);
  return emit_fitting(op, std::move(params), std::span<const Tensor>(&x.tensor, 1), a.dtype, a.weak,
                      x.where);
}
inline Tensor real(Op op, std::string_view name, Operand& x) {
  return unary(op, name, Takes::floats, x);
}
inline Tensor inexact(Op op, std::string_view name, Operand& x) {
  return unary(op, name, Takes::inexact, x);
}

/// abs, real and imag of a complex Tensor: a real one.
inline Tensor real_part(Op op, Operand& x) {
  const Aval& a = aval_of(x.tensor);
  return emit_fitting(op, {}, std::span<const Tensor>(&x.tensor, 1), real_dtype(a.dtype), a.weak,
                      x.where);
}

/// floor, ceil, iteration, trunc: nothing to do for integers.
inline Tensor rounding(Op op, std::string_view name, Operand& x) {
  need(name, x.tensor, x.where);
  if (!is_inexact(aval_of(x.tensor).dtype)) return to_number(std::move(x.tensor), x.where);
  return unary(op, name, Takes::floats, x);
}

inline Tensor classify(Op op, std::string_view name, Operand& x, bool of_integers) {
  need(name, x.tensor, x.where);
  const Aval& a = aval_of(x.tensor);
  if (!is_inexact(a.dtype)) return full_tensor(Scalar(of_integers), Aval(bool_, a.shape));
  return emit_fitting(op, {}, std::span<const Tensor>(&x.tensor, 1), bool_, false, x.where);
}

/// Brings two operands to one dtype and to shapes that an element-wise primitive takes.
inline Common fit(std::string_view name, Takes takes, Literal literal, Tensor* xy, CallSite where) {
  need(name, xy[0], where);
  need(name, xy[1], where);
  const Aval *a = &aval_of(xy[0]), *b = &aval_of(xy[1]);
  Common c{a->dtype, a->weak};
  if (a->dtype != b->dtype || a->weak != b->weak || !as_it_is(takes, a->dtype)) {
    c = adjusted(takes, common_dtype(*a, *b), name, std::span<const Tensor>(xy, 2), where);
    check_literals(name, std::span<const Tensor>(xy, 2), c.dtype, literal, where);
    if (c.dtype == f64 && !c.weak) note_lost_digits(name, xy[0], xy[1], where);
    xy[0] = cast(std::move(xy[0]), c.dtype, c.weak, where);
    xy[1] = cast(std::move(xy[1]), c.dtype, c.weak, where);
    a = &aval_of(xy[0]);
    b = &aval_of(xy[1]);
  }
  if (a->shape != b->shape && !a->shape.empty() && !b->shape.empty()) {
    const Shape shape = broadcast_shape(name, std::span<const Tensor>(xy, 2), where);
    xy[0] = broadcast(xy[0], shape, where);
    xy[1] = broadcast(xy[1], shape, where);
  }
  return c;
}

inline Tensor binary(Op op, std::string_view name, Takes takes, Operand& a, Operand& b) {
  Tensor xy[2] = {std::move(a.tensor), std::move(b.tensor)};
  const Common c =
      fit(name, takes, takes == Takes::bits ? Literal::bits : Literal::value, xy, a.where);
  return emit_fitting(op, {}, xy, c.dtype, c.weak, a.where);
}

inline Tensor logical(Op op, std::string_view name, Operand& a, Operand& b) {
  need(name, a.tensor, a.where);
  need(name, b.tensor, a.where);
  a.tensor = to_bool(std::move(a.tensor), a.where);
  b.tensor = to_bool(std::move(b.tensor), a.where);
  return binary(op, name, Takes::bits, a, b);
}

/// Fits the operands of a composed function, which then only meets equal dtypes.
inline void meet(std::string_view name, Takes takes, Operand& a, Operand& b) {
  Tensor xy[2] = {a.tensor, b.tensor};
  need(name, a.tensor, a.where);
  need(name, b.tensor, a.where);
  const Common c = adjusted(takes, common_dtype(aval_of(xy[0]), aval_of(xy[1])), name,
                            std::span<const Tensor>(xy, 2), a.where);
  if (is_complex(c.dtype) && takes != Takes::any)
    refuse_complex(false, name, std::span<const Tensor>(xy, 2), a.where);
  broadcast_shape(name, std::span<const Tensor>(xy, 2), a.where);
  check_literals(name, std::span<const Tensor>(xy, 2), c.dtype, Literal::value, a.where);
  a.tensor = cast(a.tensor, c.dtype, c.weak, a.where);
  b.tensor = cast(b.tensor, c.dtype, c.weak, a.where);
}

inline DType dtype_of_operand(const Operand& x) { return aval_of(x.tensor).dtype; }

/// The signed integer of a float dtype's size.
inline DType bits_of(DType d) { return size_of(d) == 2 ? i16 : size_of(d) == 4 ? i32 : i64; }

}  // namespace vt::detail::elementwise
