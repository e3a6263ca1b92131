// Dtypes of operands: promotion with weak scalars, and conversions.
#include "promotion.hpp"

#include <algorithm>
#include <cmath>

#include <vt/detail/message.hpp>

#include "../../base/warnings.hpp"
#include "broadcasting.hpp"

namespace vt::detail {

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b))
    return complex_dtype(a) == c128 || complex_dtype(b) == c128 ? c128 : c64;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  if (is_float(a)) {
    if (size_of(a) != size_of(b)) return size_of(a) > size_of(b) ? a : b;
    return f32;  // f16 with bf16: neither holds the other
  }
  if (is_unsigned(a) == is_unsigned(b)) return size_of(a) > size_of(b) ? a : b;
  const DType natural = is_unsigned(a) ? a : b, integer = is_unsigned(a) ? b : a;
  if (size_of(integer) > size_of(natural)) return integer;
  switch (natural) {  // the narrowest signed dtype that holds both
    case DType::u8: return i16;
    case DType::u16: return i32;
    case DType::u32: return i64;
    default: return f64;
  }
}

Common common_dtype(const Aval& a, const Aval& b) {
  if (a.weak == b.weak) return {promote(a.dtype, b.dtype), a.weak};
  const DType weak = a.weak ? a.dtype : b.dtype, strong = a.weak ? b.dtype : a.dtype;
  if (category(weak) <= category(strong)) return {strong, false};
  if (is_complex(weak)) return {complex_dtype(is_float(strong) ? strong : default_dtype()), false};
  return {is_float(weak) ? default_dtype() : i32, false};
}

Common common_dtype(std::span<const Tensor> operands) {
  Aval all(aval_of(operands[0]).dtype, Shape{}, aval_of(operands[0]).weak);
  for (const Tensor& t : operands.subspan(1)) {
    const Common c = common_dtype(all, aval_of(t));
    all.dtype = c.dtype;
    all.weak = c.weak;
  }
  return {all.dtype, all.weak};
}

Tensor cast(Tensor t, DType dtype, bool weak, CallSite where) {
  Node* n = node_of(t);
  const Aval& aval = aval_of(t);
  if (aval.dtype == dtype && aval.weak == weak) return t;
  if (is_complex(aval.dtype) && !is_complex(dtype) && !is_bool(dtype))
    refuse(ErrorKind::dtype, "astype",
           formatted("to {} would drop the imaginary part; take vt::real, vt::imag or vt::abs",
                     name_of(dtype)),
           t, where);
  if (n->op != Op::full)
    return emit(Op::convert, make_params(ConvertParams{dtype, weak}), {t}, where);
  if (size_of(dtype) > size_of(aval.dtype)) need_size("astype", dtype, aval.shape, {&t, 1}, where);
  const FullParams& full = n->params->as<FullParams>();
  const Scalar value = full.value.converted(dtype);
  if (n->references.load(std::memory_order_acquire) == 1 &&
      n->params->references.load(std::memory_order_acquire) == 1 &&
      !n->ready.load(std::memory_order_acquire)) {
    // A literal made for this call: nobody else can see it change.
    FullParams& mine = const_cast<FullParams&>(full);
    mine.value = value;
    mine.aval.dtype = n->avals.the_one().dtype = dtype;
    mine.aval.weak = n->avals.the_one().weak = weak;
    return t;
  }
  return full_tensor(value, Aval(dtype, aval.shape, weak));
}

void check_literals(std::string_view name, std::span<const Tensor> operands, DType dtype,
                    Literal as, CallSite where) {
  for (const Tensor& t : operands) {
    if (const Scalar* number = misfit(t, dtype, as))
      refuse(
          ErrorKind::dtype, name,
          formatted(operands.size() == 1 ? "{} does not fit {}"
                                         : "{} does not fit the {} of the other operand; convert "
                                           "that one first, as with .astype(vt::i64)",
                    integer_text(*number), name_of(dtype)),
          operands, where);
  }
}

void note_lost_digits(std::string_view name, const Tensor& a, const Tensor& b, CallSite where) {
  const auto made = [](const Tensor& t) {
    const Aval& aval = aval_of(t);
    return aval.dtype == f32 && !aval.weak && !node_of(t)->of_data;
  };
  const auto data = [](const Tensor& t) {
    const Aval& aval = aval_of(t);
    return aval.dtype == f64 && !aval.weak && node_of(t)->of_data;
  };
  if (!(made(a) && data(b)) && !(made(b) && data(a))) return;
  const CallSite line = user_line(where);
  warn_once(
      formatted("vt::{}: f64 data meet an f32 array or draw that vt made, whose numbers have "
                "24 bits: give it a dtype, or open a vt::DefaultDType wide(vt::f64){}",
                name, at(line)));
}

Tensor to_float(Tensor t, CallSite where) {
  const Aval& a = aval_of(t);
  if (is_inexact(a.dtype)) return t;
  const bool weak = a.weak;
  return cast(std::move(t), weak ? f64 : default_dtype(), weak, where);
}
Tensor squared_magnitude(const Tensor& t, CallSite) {
  return is_complex(aval_of(t).dtype) ? square(real(t)) + square(imag(t)) : square(t);
}
Tensor to_number(Tensor t, CallSite where) {
  const Aval& a = aval_of(t);
  if (!is_bool(a.dtype)) return t;
  const bool weak = a.weak;
  return cast(std::move(t), i32, weak, where);
}
Tensor to_bool(Tensor t, CallSite where) {
  return is_bool(aval_of(t).dtype) ? std::move(t) : cast(std::move(t), bool_, where);
}
Tensor widened(Tensor t, CallSite where) {
  const Aval& a = aval_of(t);
  return a.dtype == f16 || a.dtype == bf16 ? cast(std::move(t), f32, where) : std::move(t);
}
DType sum_dtype(DType d) {
  switch (d) {
    case DType::bool_:
    case DType::i8:
    case DType::i16: return i32;
    case DType::u8:
    case DType::u16: return u32;
    default: return d;
  }
}

double step_at(DType d, double x) {
  const int digits = d == f64   ? 52
                     : d == f32 ? 23
                     : d == f16 ? 10
                                : 7,
            least = d == f64   ? -1022
                    : d == f16 ? -14
                               : -126;
  return std::ldexp(1.0, std::max(x == 0 ? least : std::ilogb(x), least) - digits);
}

}  // namespace vt::detail
