// Dtypes of operands: promotion with weak scalars, and conversions.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include <vt/ops.hpp>

#include "../../record/literals.hpp"
#include "messages.hpp"

namespace vt::detail {

/// bool 0, integers 1, floats 2, complex numbers 3.
constexpr int category(DType d) { return is_complex(d) ? 3 : is_float(d) ? 2 : is_int(d) ? 1 : 0; }
/// The dtype that two strong operands meet in.
DType promote(DType a, DType b);

struct Common {
  DType dtype;
  bool weak;
};
/// The dtype that two operands meet in, weak scalars adopting the other's.
Common common_dtype(const Aval& a, const Aval& b);
Common common_dtype(std::span<const Tensor> operands);

/// Tells vt::warnings() where f64 data meet f32 numbers that came of no data, or are written into
/// them.
void note_lost_digits(std::string_view name, const Tensor& a, const Tensor& b, CallSite where);

/// `t` as `dtype`. A `full` converts now; it is edited in place if nobody else holds it. Throws:
/// complex numbers do not become real ones.
Tensor cast(Tensor t, DType dtype, bool weak, CallSite where);
inline Tensor cast(Tensor t, DType dtype, CallSite where) {
  return cast(std::move(t), dtype, false, where);
}
/// Throws if an operand is a C++ integer, not yet converted, that `dtype` cannot hold: nothing
/// sensible could come of wrapping it.
void check_literals(std::string_view name, std::span<const Tensor> operands, DType dtype, Literal,
                    CallSite where);
/// Integers and bools become f32 (f64 if weak, so that a float operand met later gets all its
/// digits). Complex numbers stay.
Tensor to_float(Tensor t, CallSite where);
/// |t|², a real Tensor.
Tensor squared_magnitude(const Tensor& t, CallSite where);
/// Bools become i32.
Tensor to_number(Tensor t, CallSite where);
/// Nonzero → true.
Tensor to_bool(Tensor t, CallSite where);
/// f16 and bf16 become f32: composed functions compute in it and convert back, as sums of many
/// 16-bit roundings are useless.
Tensor widened(Tensor t, CallSite where);
/// bool, i8, i16 → i32; u8, u16 → u32: the dtype of sums and products.
DType sum_dtype(DType d);
/// What every element is, if that is known while recording.
inline std::optional<double> known_number(const Tensor& t) {
  if (node_of(t)->op != Op::full) return std::nullopt;
  return node_of(t)->params->as<FullParams>().value.to_double();
}
/// The distance of neighbouring numbers of a float dtype just above |x|, which is finite.
double step_at(DType, double x);
/// The dtype of counts up to n, and of the indices of n elements: i32, beyond 2^31 i64.
constexpr DType count_dtype(std::int64_t n) {
  return n > std::numeric_limits<std::int32_t>::max() ? i64 : i32;
}

}  // namespace vt::detail
