// The functions on Tensors, under their NumPy and JAX names. All broadcast, take any dtype that
// makes sense, and work under every transform; each throws vt::Error (op, shapes, the caller's
// line) when its operands do not fit.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vt/detail/function.hpp>
#include <vt/detail/structured_binding.hpp>
#include <vt/tensor.hpp>

namespace vt {

namespace detail {
/// The slices of x along the axis; as many as `parts` has.
void unpack_to(std::span<Tensor> parts, Operand x, int axis);
// The overloads that take a Tensor where others take a number.
Tensor trapezoid_at(Operand y, const Tensor& x, int axis);
Tensor rolled_by(Operand x, const Tensor& shift, std::optional<int> axis);
Tensor repeated_by(Operand x, const Tensor& counts, std::optional<int> axis,
                   std::optional<std::int64_t> size);
}  // namespace detail

/// Tensors side by side as a parameter: a std::vector, std::array, C array or std::span of them, or
/// braces, where numbers are Tensors too. A view: it does not keep them.
class TensorSpan : public std::span<const Tensor> {
 public:
  TensorSpan(std::initializer_list<Tensor> list)
      : TensorSpan(std::span(std::data(list), list.size())) {}
  template <std::convertible_to<std::span<const Tensor>> R>
  TensorSpan(const R& range) : std::span<const Tensor>(range) {}
};

// --- element-wise, one operand -------------------------------------------------------------------
// Integer and bool operands of the float functions become f32. Shapes: any → the same. Lengths
// (abs, hypot, norm, std) have a kink where they are 0; all their derivatives are 0 there.

[[nodiscard]] Tensor negative(Operand x);  ///< operator-
[[nodiscard]] Tensor abs(Operand x);       ///< of complex numbers the modulus, which is real
[[nodiscard]] Tensor sign(Operand x);      ///< −1, 0 or 1; NaN stays NaN
/// The nearest integer that is not above x, in the dtype of x.
[[nodiscard]] Tensor floor(Operand x);
[[nodiscard]] Tensor ceil(Operand x);   ///< the nearest one that is not below
[[nodiscard]] Tensor round(Operand x);  ///< half to even
[[nodiscard]] Tensor trunc(Operand x);  ///< towards 0
[[nodiscard]] Tensor exp(Operand x);
[[nodiscard]] Tensor exp2(Operand x);   ///< 2ˣ
[[nodiscard]] Tensor expm1(Operand x);  ///< eˣ − 1, with all digits near 0
[[nodiscard]] Tensor log(Operand x);    ///< natural; NaN below 0, −∞ at 0
[[nodiscard]] Tensor log1p(Operand x);  ///< log(1 + x), with all digits near 0
[[nodiscard]] Tensor log2(Operand x);
[[nodiscard]] Tensor log10(Operand x);
[[nodiscard]] Tensor sqrt(Operand x);
[[nodiscard]] Tensor rsqrt(Operand x);  ///< 1 / √x
[[nodiscard]] Tensor cbrt(Operand x);
[[nodiscard]] Tensor sin(Operand x);
[[nodiscard]] Tensor cos(Operand x);
[[nodiscard]] Tensor tan(Operand x);
[[nodiscard]] Tensor asin(Operand x);
[[nodiscard]] Tensor acos(Operand x);
[[nodiscard]] Tensor atan(Operand x);
[[nodiscard]] Tensor sinh(Operand x);
[[nodiscard]] Tensor cosh(Operand x);
[[nodiscard]] Tensor tanh(Operand x);
[[nodiscard]] Tensor asinh(Operand x);
[[nodiscard]] Tensor acosh(Operand x);
[[nodiscard]] Tensor atanh(Operand x);
[[nodiscard]] Tensor sigmoid(Operand x);   ///< 1 / (1 + e⁻ˣ)
[[nodiscard]] Tensor erf(Operand x);       ///< 2/√π ∫₀ˣ exp(−t²) dt
[[nodiscard]] Tensor erfc(Operand x);      ///< 1 − erf(x), with all digits of its right tail
[[nodiscard]] Tensor erf_inv(Operand x);   ///< the inverse of erf
[[nodiscard]] Tensor lgamma(Operand x);    ///< log|Γ(x)|
[[nodiscard]] Tensor digamma(Operand x);   ///< the derivative of log Γ(x)
[[nodiscard]] Tensor isfinite(Operand x);  ///< bool; of complex numbers, whether both parts are
[[nodiscard]] Tensor isnan(Operand x);
[[nodiscard]] Tensor isinf(Operand x);
/// xᵉ with e = `exponent`, a product of e factors x; for e < 0 1 / x⁻ᵉ. Exponents up to ±16 go by
/// squaring and are off by at most as many units in the last place; others by at most one. 1 for
/// exponent 0, of NaN too; integers wrap.
[[nodiscard]] Tensor integer_pow(Operand x, Param<int> exponent);
/// `!x`: bool, true where x is 0.
[[nodiscard]] Tensor logical_not(Operand x);
/// `~x`.
/// Throws: Error (dtype) unless x holds integers or bools.
[[nodiscard]] Tensor bitwise_not(Operand x);
/// How many bits of an integer are 1 (popcount), how many of its highest bits are 0 before the
/// first 1 (clz). The dtype is kept.
[[nodiscard]] Tensor popcount(Operand x);
[[nodiscard]] Tensor clz(Operand x);
/// The same bytes read as another dtype.
/// Source: NumPy `view`, JAX `lax.bitcast_convert_type`.
/// Throws: Error (dtype) if the dtypes differ in bytes per element.
[[nodiscard]] Tensor bitcast(Operand x, DType dtype);
/// x rounded to a float of so many exponent and mantissa bits; the dtype is kept.
/// Source: JAX `lax.reduce_precision`.
[[nodiscard]] Tensor reduce_precision(Operand x, Param<int> exponent_bits,
                                      Param<int> mantissa_bits);
/// x, which derivatives take for a constant.
/// Source: JAX `lax.stop_gradient`.
[[nodiscard]] Tensor stop_gradient(Operand x);
/// x²; of complex numbers z², not |z|².
[[nodiscard]] Tensor square(Operand x);
[[nodiscard]] Tensor reciprocal(Operand x);  ///< 1 / x; integers become f32
[[nodiscard]] Tensor signbit(Operand x);     ///< true for −0 as well
/// NaN becomes `nan`; infinities become the largest numbers of the dtype unless others are given.
[[nodiscard]] Tensor nan_to_num(Operand x, Param<double> nan = 0.0,
                                std::optional<Param<double>> posinf = std::nullopt,
                                std::optional<Param<double>> neginf = std::nullopt);
[[nodiscard]] Tensor deg2rad(Operand x);  ///< degrees to radians
[[nodiscard]] Tensor rad2deg(Operand x);  ///< and back

// --- complex numbers -----------------------------------------------------------------------------
// c64 and c128. exp, log, log10, sqrt and sin … atanh have the branch cuts and special values of
// C99's Annex G, on every backend, where the sign of a zero tells the side of a cut; finite results
// are within a few ulps of their length (not of each part), up to the ends of the range. pow is
// exp(b · log a), whose error grows with |b · log a|. Products are (ac − bd, ad + bc) and nothing
// more: they may overflow on the way, and infinities become NaN. Quotients are scaled and do
// neither for finite operands; each part over a zero is divided by itself. What needs an order (<,
// maximum, sort, floor …) is refused, and so is conversion to a real dtype. `abs` is real and does
// not overflow before its value does.

/// The real part of complex numbers; real ones themselves.
[[nodiscard]] Tensor real(Operand x);
/// The imaginary part, in the dtype of `real(x)`; of real numbers zeros.
[[nodiscard]] Tensor imag(Operand x);
[[nodiscard]] Tensor conj(Operand x);  ///< the complex conjugate; real numbers themselves
/// re + i·im: c128 of f64, c64 of narrower floats, integers and bools. Broadcasts.
[[nodiscard]] Tensor complex(Operand re, Operand im);
/// atan2(imag, real), in −π … π.
[[nodiscard]] Tensor angle(Operand x);
[[nodiscard]] Tensor iscomplex(Operand x);  ///< imag(x) != 0, element by element
[[nodiscard]] Tensor isreal(Operand x);     ///< imag(x) == 0

// --- element-wise, two operands ------------------------------------------------------------------
// Dtypes are promoted: bool < integers < floats < complex (f64 and c64 meet in c128); weak scalars
// adopt the other side's dtype. `/` and `%` of integers are C++'s: they truncate, and division by
// zero gives 0 and remainder 0; `divide` and `mod` are NumPy's `/` and `%`. Integer arithmetic
// wraps.

[[nodiscard]] Tensor add(Operand a, Operand b);  ///< operator+, and so on
[[nodiscard]] Tensor subtract(Operand a, Operand b);
[[nodiscard]] Tensor multiply(Operand a, Operand b);
[[nodiscard]] Tensor divide(Operand a, Operand b);        ///< NumPy's /: integers become f32 first
[[nodiscard]] Tensor floor_divide(Operand a, Operand b);  ///< NumPy's //: the quotient rounded down
[[nodiscard]] Tensor fmod(Operand a, Operand b);          ///< operator%, as C's: the sign of a
[[nodiscard]] Tensor mod(Operand a, Operand b);           ///< NumPy's and Python's %: the sign of b
[[nodiscard]] Tensor pow(Operand a, Operand b);  ///< a whole literal exponent goes by integer_pow
[[nodiscard]] Tensor maximum(Operand a, Operand b);  ///< NaN if either is NaN (vt::max reduces)
[[nodiscard]] Tensor minimum(Operand a, Operand b);  ///< … or the lesser, NaN too
[[nodiscard]] Tensor atan2(Operand y, Operand x);    ///< the angle of (x, y), in −π … π
/// √(a² + b²) without overflow; derivatives are 0 at (0, 0)
[[nodiscard]] Tensor hypot(Operand a, Operand b);
/// The next float after a towards b; slope 1 by a.
[[nodiscard]] Tensor nextafter(Operand a, Operand b);
[[nodiscard]] Tensor copysign(Operand magnitude,
                              Operand sign);           ///< |magnitude| with the sign of `sign`
[[nodiscard]] Tensor logaddexp(Operand a, Operand b);  ///< log(eᵃ + eᵇ) without overflow
[[nodiscard]] Tensor heaviside(Operand x, Operand at_zero);  ///< 0 below 0, 1 above, `at_zero` at 0
[[nodiscard]] Tensor squared_difference(Operand a, Operand b);  ///< |a − b|²
[[nodiscard]] Tensor equal(Operand a, Operand b);
[[nodiscard]] Tensor not_equal(Operand a, Operand b);
[[nodiscard]] Tensor less(Operand a, Operand b);
[[nodiscard]] Tensor less_equal(Operand a, Operand b);
[[nodiscard]] Tensor greater(Operand a, Operand b);
[[nodiscard]] Tensor greater_equal(Operand a, Operand b);
[[nodiscard]] Tensor bitwise_and(Operand a, Operand b);
[[nodiscard]] Tensor bitwise_or(Operand a, Operand b);
[[nodiscard]] Tensor bitwise_xor(Operand a, Operand b);
[[nodiscard]] Tensor logical_and(Operand a, Operand b);  ///< bool, of `x != 0`
[[nodiscard]] Tensor logical_or(Operand a, Operand b);
[[nodiscard]] Tensor logical_xor(Operand a, Operand b);
[[nodiscard]] Tensor shift_left(Operand a, Operand b);  ///< shifts by the width or more give 0
[[nodiscard]] Tensor shift_right_logical(Operand a, Operand b);     ///< zeros move in
[[nodiscard]] Tensor shift_right_arithmetic(Operand a, Operand b);  ///< the sign bit moves in
/// |a − b| ≤ atol + rtol·|b|, or both equal; `equal_nan`: two NaNs are close. allclose: of all
/// elements, bool[].
[[nodiscard]] Tensor isclose(Operand a, Operand b, Param<double> rtol = 1e-5,
                             Param<double> atol = 1e-8, bool equal_nan = false);
[[nodiscard]] Tensor allclose(Operand a, Operand b, Param<double> rtol = 1e-5,
                              Param<double> atol = 1e-8, bool equal_nan = false);

inline Tensor operator+(Operand a, Operand b) { return add(std::move(a), std::move(b)); }
inline Tensor operator-(Operand a, Operand b) { return subtract(std::move(a), std::move(b)); }
inline Tensor operator*(Operand a, Operand b) { return multiply(std::move(a), std::move(b)); }
/// C++'s quotient: of integers truncated, 0 where b is 0; of floats as `divide`.
Tensor operator/(Operand a, Operand b);
inline Tensor operator%(Operand a, Operand b) { return fmod(std::move(a), std::move(b)); }
inline Tensor operator==(Operand a, Operand b) { return equal(std::move(a), std::move(b)); }
inline Tensor operator!=(Operand a, Operand b) { return not_equal(std::move(a), std::move(b)); }
inline Tensor operator<(Operand a, Operand b) { return less(std::move(a), std::move(b)); }
inline Tensor operator<=(Operand a, Operand b) { return less_equal(std::move(a), std::move(b)); }
inline Tensor operator>(Operand a, Operand b) { return greater(std::move(a), std::move(b)); }
inline Tensor operator>=(Operand a, Operand b) { return greater_equal(std::move(a), std::move(b)); }
inline Tensor operator&(Operand a, Operand b) { return bitwise_and(std::move(a), std::move(b)); }
inline Tensor operator|(Operand a, Operand b) { return bitwise_or(std::move(a), std::move(b)); }
inline Tensor operator^(Operand a, Operand b) { return bitwise_xor(std::move(a), std::move(b)); }
inline Tensor operator<<(Operand a, Operand b) { return shift_left(std::move(a), std::move(b)); }
/// Arithmetic for signed dtypes, logical for unsigned ones.
Tensor operator>>(Operand a, Operand b);
inline Tensor operator-(Operand x) { return negative(std::move(x)); }
inline Tensor operator+(Operand x) { return x.tensor; }

// `a op= b` is `a = a op b`: a new value for a named Tensor, with the dtype and the shape of a op
// b; other Tensors that share the old one keep it.
namespace detail {
/// Assigning to a temporary has no effect: functions that change elements give a new Tensor.
template <class T>
concept Temporary = std::same_as<T, Tensor>;
inline Operand beside(const Tensor& a, const Operand& b) {
  return Operand(a, b.where.file, b.where.line);
}
}  // namespace detail
#define VT_ASSIGNS(op)                                                                       \
  inline Tensor& operator op##=(Tensor & a, Operand b) {                                     \
    return a = detail::beside(a, b) op std::move(b);                                         \
  }                                                                                          \
  template <detail::Temporary T>                                                             \
  void operator op##=(T&&, const Operand&) {                                                 \
    static_assert(                                                                           \
        !sizeof(T),                                                                          \
        "vt: " #op                                                                           \
        "= on a temporary changes nothing: write x = vt::at(x, index).add(value), or .set, " \
        ".mul, .min, .max");                                                                 \
  }
VT_ASSIGNS(+)
VT_ASSIGNS(-)
VT_ASSIGNS(*)
VT_ASSIGNS(/)
VT_ASSIGNS(%)
VT_ASSIGNS(&)
VT_ASSIGNS(|)
VT_ASSIGNS(^)
VT_ASSIGNS(<<)
VT_ASSIGNS(>>)
#undef VT_ASSIGNS
// It takes the Tensor itself, and so knows no line: `!` also converts to bool, and with an Operand
// both conversions would be equally good.
inline Tensor operator!(const Tensor& x) { return logical_not(Operand(x, nullptr, 0)); }
inline Tensor operator~(Operand x) { return bitwise_not(std::move(x)); }

// --- choose --------------------------------------------------------------------------------------

/// `if_true` where `condition` holds, else `if_false`. Only the chosen side has a gradient.
[[nodiscard]] Tensor where(Operand condition, Operand if_true, Operand if_false);
/// Element by element the choice that belongs to the first condition that holds, else `otherwise`.
/// All broadcast; choices and `otherwise` meet in one dtype.
/// Throws: Error (shape) unless there are as many choices as conditions, and at least one.
/// Source: NumPy `select`.
[[nodiscard]] Tensor select(TensorSpan conditions, TensorSpan choices, Operand otherwise = 0);
/// Three Tensors are refused with a message: what JAX calls `lax.select` is `where`.
template <std::convertible_to<Tensor> C>
Tensor select(const C&, Operand, Operand) {
  static_assert(!sizeof(C),
                "vt::select takes lists, as NumPy's: vt::select({c1, c2}, {x1, x2}, otherwise); of "
                "one condition take vt::where(condition, if_true, if_false)");
  return {};
}
/// x, at least `low` and at most `high`.
/// Source: JAX `lax.clamp`.
[[nodiscard]] Tensor clamp(Operand low, Operand x, Operand high);
/// x, at least `low` and at most `high`, either of which may be std::nullopt.
/// Source: NumPy `clip`.
[[nodiscard]] Tensor clip(Operand x, std::optional<Operand> low, std::optional<Operand> high);

// --- reduce --------------------------------------------------------------------------------------
// Over all axes unless some are given; `keepdims` leaves them with size 1. Integer sums and
// products: bool, i8 … i32 give i32 (u8 … u32 give u32); max and min of nothing are an error. What
// counts elements, sums of bools too, and what gives their indices is i32, and i64 where there are
// more than 2^31 − 1 to be counted. Sums of floats add in pieces and these in pieces again: the
// error of n numbers is at most about (log₂ n + 200) · u · Σ|x|, mostly a few u · Σ|x|, where u is
// 2⁻²⁴ (f32; f16 and bf16, which are summed in f32 and rounded once) or 2⁻⁵³, of complex numbers
// for each part. It holds over any axes and for what sums (mean, var, norm, logsumexp …), and the
// bits do not depend on the number of threads. Interpreted sums are exact but for the last
// rounding; on a CUDA device a thread may add some hundreds of numbers one after the other.
// Elements of matrix products are at most about k · u · Σ|a b| off.

/// Sums and products. Integers and bools narrower than 32 bits become i32 (u32) first; a sum of
/// bools is their count. Of no elements: 0 and 1.
[[nodiscard]] Tensor sum(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
[[nodiscard]] Tensor prod(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
// Declared also where a header of the system has macros of these names; there a program writes
// (vt::max)(x).
#pragma push_macro("max")
#pragma push_macro("min")
#undef max
#undef min
/// The greatest and the least element; NaN if there is one. Elements that tie share the derivative.
/// Throws: Error (shape) if there are no elements, (dtype) for complex numbers.
[[nodiscard]] Tensor max(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
[[nodiscard]] Tensor min(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
#pragma pop_macro("max")
#pragma pop_macro("min")
/// Is any, are all elements true (not 0)? bool; of no elements false and true.
[[nodiscard]] Tensor any(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
[[nodiscard]] Tensor all(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
/// Index of the first greatest, of the first least element along an axis; without an axis, of the
/// flattened Tensor. NaN counts as the extreme. i32 (i64 on axes beyond 2^31).
/// Throws: Error (shape) if there are no elements.
[[nodiscard]] Tensor argmax(Operand x, std::optional<Param<int>> axis = std::nullopt,
                            bool keepdims = false);
[[nodiscard]] Tensor argmin(Operand x, std::optional<Param<int>> axis = std::nullopt,
                            bool keepdims = false);
/// Options of sum, prod, max and min.
struct ReduceOptions {
  /// a scalar that counts as one more element, so that max and min may have no others
  std::optional<Operand> initial = std::nullopt;
  bool keepdims = false;
};
/// Throws: Error (shape) if `initial` is no scalar.
[[nodiscard]] Tensor sum(Operand x, const ReduceAxes& axes, const ReduceOptions& options);
[[nodiscard]] Tensor prod(Operand x, const ReduceAxes& axes, const ReduceOptions& options);
#pragma push_macro("max")
#pragma push_macro("min")
#undef max
#undef min
[[nodiscard]] Tensor max(Operand x, const ReduceAxes& axes, const ReduceOptions& options);
[[nodiscard]] Tensor min(Operand x, const ReduceAxes& axes, const ReduceOptions& options);
#pragma pop_macro("max")
#pragma pop_macro("min")
/// Options of argmax and argmin.
struct ArgOptions {
  bool last = false;  ///< of elements that tie the last one's index
  bool keepdims = false;
};
[[nodiscard]] Tensor argmax(Operand x, std::optional<Param<int>> axis, const ArgOptions& options);
[[nodiscard]] Tensor argmin(Operand x, std::optional<Param<int>> axis, const ArgOptions& options);
/// The mean; integers and bools become f32. Of no elements NaN.
[[nodiscard]] Tensor mean(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
/// The variance, Σ|x − mean|² / (n − ddof): real, of complex numbers too; integers become f32. Two
/// passes, the mean first. Large arrays are taken in blocks, whose variances and means are put
/// together (Chan, Golub and LeVeque 1979), so that they are read once.
[[nodiscard]] Tensor var(Operand x, const ReduceAxes& axes = {}, Param<int> ddof = 0,
                         bool keepdims = false);
/// √var; all its derivatives are 0 where it is 0.
[[nodiscard]] Tensor std(Operand x, const ReduceAxes& axes = {}, Param<int> ddof = 0,
                         bool keepdims = false);
/// Options of var, std, nanvar and nanstd.
struct VarOptions {
  Param<int> ddof = 0;
  bool keepdims = false;
};
[[nodiscard]] Tensor var(Operand x, const ReduceAxes& axes, const VarOptions& options);
[[nodiscard]] Tensor std(Operand x, const ReduceAxes& axes, const VarOptions& options);
/// log Σ eˣ without overflow. Integers become f32; of no elements −∞.
[[nodiscard]] Tensor logsumexp(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
/// How many elements are not 0: i32 (i64 beyond 2^31 elements).
[[nodiscard]] Tensor count_nonzero(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
/// max − min.
[[nodiscard]] Tensor ptp(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
/// Σ x·weights / Σ weights. The weights broadcast to x; integers become f32.
[[nodiscard]] Tensor average(Operand x, Operand weights, const ReduceAxes& axes = {});

/// The same of the elements that are not NaN. Of none nansum is 0, nanprod 1, nanmax, nanmin,
/// nanmean and the variance NaN, the index −1.
[[nodiscard]] Tensor nansum(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
[[nodiscard]] Tensor nanprod(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
[[nodiscard]] Tensor nanmax(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
[[nodiscard]] Tensor nanmin(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
[[nodiscard]] Tensor nanargmax(Operand x, std::optional<Param<int>> axis = std::nullopt,
                               bool keepdims = false);
[[nodiscard]] Tensor nanargmin(Operand x, std::optional<Param<int>> axis = std::nullopt,
                               bool keepdims = false);
[[nodiscard]] Tensor nanmean(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
[[nodiscard]] Tensor nanvar(Operand x, const ReduceAxes& axes = {}, Param<int> ddof = 0,
                            bool keepdims = false);
[[nodiscard]] Tensor nanstd(Operand x, const ReduceAxes& axes = {}, Param<int> ddof = 0,
                            bool keepdims = false);
[[nodiscard]] Tensor nanvar(Operand x, const ReduceAxes& axes, const VarOptions& options);
[[nodiscard]] Tensor nanstd(Operand x, const ReduceAxes& axes, const VarOptions& options);

namespace detail {
using FlatBinary = std::vector<Tensor> (*)(void*, std::span<const Tensor>);
Tensor reduce_with(const char* name, Operand x, Operand init, void* context, FlatBinary body,
                   const ReduceAxes& axes);
}  // namespace detail
/// Combines the elements along `axes` with f(a, b), which must be associative, beginning with the
/// scalar `init`, its neutral element. f may use its two arguments and known values only.
/// Throws: Error (shape) unless f maps two scalars to one of the same dtype.
/// Source: JAX `lax.reduce`.
template <class F>
[[nodiscard]] Tensor reduce(Operand x, Operand init, F f, const ReduceAxes& axes = {}) {
  static_assert(detail::is_callable<F&, const Tensor&, const Tensor&>,
                "vt::reduce: the function cannot be called with two scalars: write "
                "[](vt::Tensor a, vt::Tensor b) { return a + b; }");
  return detail::reduce_with(
      "reduce", x, init, &f,
      [](void* context, std::span<const Tensor> a) -> std::vector<Tensor> {
        return {(*static_cast<F*>(context))(a[0], a[1])};
      },
      axes);
}

// The order of other libraries' reduce.
template <class F, class... More>
  requires(!std::convertible_to<F, Operand>)
Tensor reduce(F, const Operand&, const More&...) {
  static_assert(!sizeof(F), "vt: the operand comes first: vt::reduce(x, init, f, axes)");
  return {};
}

// --- scans along an axis -------------------------------------------------------------------------

/// Options of the functions of prefixes.
struct CumulativeOptions {
  bool reverse = false;  ///< from the end: element i combines x[i] with all that follows
  /// without x[i] itself: the first element (the last one) is the neutral one
  bool exclusive = false;
};
/// Running sums: element i of the result is x[0] + … + x[i] along the axis. Integers and bools
/// widen as in vt::sum. f32 and narrower floats are added in f64 and rounded for each element. In
/// f64 what rounding takes is kept and added at the end, so that an element is off by about one
/// rounding (and n² · u² · Σ|x|).
[[nodiscard]] Tensor cumsum(Operand x, Param<int> axis = 0, const CumulativeOptions& options = {});
/// Running products, greatest and least elements, and logarithms of sums of exponentials, in the
/// same way.
[[nodiscard]] Tensor cumprod(Operand x, Param<int> axis = 0, const CumulativeOptions& options = {});
[[nodiscard]] Tensor cummax(Operand x, Param<int> axis = 0, const CumulativeOptions& options = {});
[[nodiscard]] Tensor cummin(Operand x, Param<int> axis = 0, const CumulativeOptions& options = {});
[[nodiscard]] Tensor cumlogsumexp(Operand x, Param<int> axis = 0,
                                  const CumulativeOptions& options = {});
/// cumsum and cumprod of what is not NaN.
[[nodiscard]] Tensor nancumsum(Operand x, Param<int> axis = 0,
                               const CumulativeOptions& options = {});
[[nodiscard]] Tensor nancumprod(Operand x, Param<int> axis = 0,
                                const CumulativeOptions& options = {});
/// The integral of y along an axis by the trapezoidal rule: of points that lie `dx` apart, or at
/// `x`, a vector along the axis or a Tensor that broadcasts to y.
/// Source: NumPy `trapezoid`.
[[nodiscard]] Tensor trapezoid(Operand y, Param<double> dx = 1.0, Param<int> axis = -1);
template <std::same_as<Tensor> X>
[[nodiscard]] Tensor trapezoid(Operand y, const X& x, Param<int> axis = -1) {
  return detail::trapezoid_at(std::move(y), x, axis);
}
/// x[i + 1] − x[i] along an axis, `n` times; of bools whether they differ.
/// Throws: Error (value) if n is negative.
[[nodiscard]] Tensor diff(Operand x, Param<int> n = 1, Param<int> axis = -1);

// --- order ---------------------------------------------------------------------------------------
// Ascending; NaN comes after all numbers, −0 equals +0 and every NaN every other. Equal elements
// keep their order.

struct SortOptions {
  bool descending = false;  ///< NaN first; equals keep their order all the same
  /// false allows any order of equals; the order is the stable one even then
  bool stable = true;
};
/// Sorts along an axis, with std::nullopt the flattened Tensor.
/// Shapes: any → the same; dtype kept.
/// Throws: Error if the axis is out of range.
/// Source: NumPy and JAX `sort`. Its derivative moves tangents as it moves elements.
[[nodiscard]] Tensor sort(Operand x, std::optional<Param<int>> axis = -1,
                          const SortOptions& options = {});
/// Sorts Tensors of one shape together, by the first `num_keys` of them: the second decides where
/// the first is equal, and so on.
/// Throws: Error if the shapes differ or there are fewer operands than keys.
/// Source: JAX `lax.sort`.
[[nodiscard]] std::vector<Tensor> sort(TensorSpan operands, Param<int> axis = -1,
                                       Param<int> num_keys = 1, const SortOptions& options = {},
                                       CallSite where = CallSite::here());
// Of containers, which are no operand of the first.
template <detail::SeveralTensors R>
  requires(!std::same_as<R, TensorSpan>)
[[nodiscard]] std::vector<Tensor> sort(const R& operands, Param<int> axis = -1,
                                       Param<int> num_keys = 1, const SortOptions& options = {},
                                       CallSite where = CallSite::here()) {
  return sort(TensorSpan(operands), axis, num_keys, options, where);
}
/// Where the sorted elements come from: `take_along_axis(x, argsort(x), -1)` is `sort(x)`.
/// Shapes: any → the same, i32 (i64 on axes beyond 2^31).
[[nodiscard]] Tensor argsort(Operand x, std::optional<Param<int>> axis = -1,
                             const SortOptions& options = {});
/// argsort by several keys of one shape: the last is the first to decide.
/// Source: NumPy `lexsort`.
[[nodiscard]] Tensor lexsort(TensorSpan keys, Param<int> axis = -1,
                             CallSite where = CallSite::here());
/// Options of top_k.
struct TopKOptions {
  bool smallest = false;  ///< the k least elements, the least first; NaN comes last
};
/// The k greatest elements along an axis, the greatest first, and their indices (i32); of equals
/// the first ones.
/// Shapes: [… n …] → [… k …] twice.
/// Throws: Error if k is negative or greater than n.
/// Source: JAX `lax.top_k`.
[[nodiscard]] std::pair<Tensor, Tensor> top_k(Operand x, Param<std::int64_t> k,
                                              Param<int> axis = -1,
                                              const TopKOptions& options = {});
/// x with the element that belongs to place `kth` there, none that is greater before it and none
/// that is less behind.
/// Source: NumPy `partition`. (Both parts are in order as well.)
[[nodiscard]] Tensor partition(Operand x, Param<std::int64_t> kth, Param<int> axis = -1);
/// The indices that partition's elements come from.
[[nodiscard]] Tensor argpartition(Operand x, Param<std::int64_t> kth, Param<int> axis = -1);

/// Which value a quantile between two neighbours of the order has. `nearest` of the middle: the
/// even place.
enum class QuantileMethod : std::uint8_t { linear, lower, higher, nearest, midpoint };
/// The value that the fraction q of the elements lies below. NaN if there is one among them.
/// Shapes: x over axes (all unless given), q a scalar or [m] → [m,] kept axes. Integers become f32;
/// dtype of x kept otherwise. Where q is not between 0 and 1 and that is not known while recording,
/// the quantile is NaN.
/// Throws: Error if a known q is not between 0 and 1, or if there are no elements.
/// Source: NumPy and JAX `quantile`.
[[nodiscard]] Tensor quantile(Operand x, Operand q, const ReduceAxes& axes = {},
                              QuantileMethod method = QuantileMethod::linear,
                              bool keepdims = false);
/// q in percent.
[[nodiscard]] Tensor percentile(Operand x, Operand q, const ReduceAxes& axes = {},
                                QuantileMethod method = QuantileMethod::linear,
                                bool keepdims = false);
/// quantile 0.5.
[[nodiscard]] Tensor median(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
/// The same without counting NaN; NaN where there is nothing else.
[[nodiscard]] Tensor nanquantile(Operand x, Operand q, const ReduceAxes& axes = {},
                                 QuantileMethod method = QuantileMethod::linear,
                                 bool keepdims = false);
[[nodiscard]] Tensor nanpercentile(Operand x, Operand q, const ReduceAxes& axes = {},
                                   QuantileMethod method = QuantileMethod::linear,
                                   bool keepdims = false);
[[nodiscard]] Tensor nanmedian(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);

struct UniqueOptions {
  /// How many values to give; by default all of them, a number known only outside jit and vmap.
  std::optional<Param<std::int64_t>> size = std::nullopt;
  /// where there are fewer than `size`; the least value unless given
  std::optional<Operand> fill_value = std::nullopt;
  bool equal_nan = true;  ///< all NaNs are one value
  /// slices along it are compared as wholes, in the order of their elements
  std::optional<Param<int>> axis = std::nullopt;
};
struct UniqueResult {
  Tensor values;  ///< ascending
  /// of the first element that has the value, in the flattened x (or along the axis); i32
  Tensor index;
  Tensor inverse;  ///< of every element's value, in x's shape (or of every slice's, [n]); i32
  Tensor counts;   ///< elements that have the value; i32, 0 for filled ones
};
/// The distinct values of x, ascending. Values beyond `size` are left out.
/// Shapes: any → [size]; with an axis x's shape with `size` there.
/// Throws: Error without `size` where values are not known.
/// Source: NumPy and JAX `unique`.
[[nodiscard]] Tensor unique(Operand x, const UniqueOptions& options = {});
/// The same with what NumPy gives for return_index, return_inverse and return_counts; what is not
/// used is not computed.
[[nodiscard]] UniqueResult unique_all(Operand x, const UniqueOptions& options = {});

// --- shape ---------------------------------------------------------------------------------------

/// The elements in row-major order in another shape; one extent may be −1 and is filled in.
/// Throws: Error (shape) if the elements do not fill it.
[[nodiscard]] Tensor reshape(Operand x, const Shape& shape);
[[nodiscard]] Tensor ravel(Operand x);  ///< one axis, [size]
/// Result axis i is operand axis permutation[i]; without a permutation the axes are reversed.
[[nodiscard]] Tensor transpose(Operand x, const Axes& permutation = {});
[[nodiscard]] Tensor swapaxes(Operand x, Param<int> a, Param<int> b);  ///< two axes change places
/// Axis from[i] goes to place to[i]; the others keep their order.
[[nodiscard]] Tensor moveaxis(Operand x, const Axes& from, const Axes& to);
/// The last two axes change places.
[[nodiscard]] Tensor matrix_transpose(Operand x);
/// x repeated along axes of extent 1 and new axes in front, as operators do by themselves.
/// Throws: Error (shape) if x does not broadcast to the shape.
[[nodiscard]] Tensor broadcast_to(Operand x, const Shape& shape);
/// Operand axis i becomes result axis axes[i]; the other axes are new. XLA's BroadcastInDim.
[[nodiscard]] Tensor broadcast_in_dim(Operand x, const Shape& shape, const Axes& axes);
// Shapes stand in braces.
template <std::integral D, class... More>
Tensor reshape(const Operand&, D, const More&...) {
  static_assert(!sizeof(D), "vt: the shape stands in braces: vt::reshape(x, {2, 3})");
  return {};
}
template <std::integral D, class... More>
Tensor broadcast_to(const Operand&, D, const More&...) {
  static_assert(!sizeof(D), "vt: the shape stands in braces: vt::broadcast_to(x, {2, 3})");
  return {};
}
/// New axes of extent 1 at these places of the result.
[[nodiscard]] Tensor expand_dims(Operand x, const Axes& axes);
/// Without these axes, or without all axes of extent 1.
/// Throws: Error (shape) if one has another extent.
[[nodiscard]] Tensor squeeze(Operand x, const ReduceAxes& axes = {});
/// Tensors one behind the other along an axis; dtypes meet.
/// Throws: Error (shape) if there are none, or shapes differ elsewhere.
[[nodiscard]] Tensor concatenate(TensorSpan parts, Param<int> axis = 0,
                                 CallSite where = CallSite::here());
/// Tensors of one shape side by side along a new axis; numbers count as Tensors.
/// Throws: Error (shape) if shapes differ.
[[nodiscard]] Tensor stack(TensorSpan parts, Param<int> axis = 0,
                           CallSite where = CallSite::here());
// The Tensors stand in braces.
template <std::same_as<Tensor> T, class... More>
Tensor concatenate(const T&, const More&...) {
  static_assert(!sizeof(T), "vt: the Tensors stand in braces: vt::concatenate({x, y}, axis)");
  return {};
}
template <std::same_as<Tensor> T, class... More>
Tensor stack(const T&, const More&...) {
  static_assert(!sizeof(T), "vt: the Tensors stand in braces: vt::stack({x, y}, axis)");
  return {};
}
/// The slices along an axis, which is dropped.
[[nodiscard]] std::vector<Tensor> unstack(Operand x, Param<int> axis = 0);
/// The same, of which there are n: `auto [a, b, c] = vt::unpack<3>(x)`.
/// Throws: Error (shape) if the axis has another extent.
template <std::size_t n>
[[nodiscard]] std::array<Tensor, n> unpack(Operand x, Param<int> axis = 0) {
  std::array<Tensor, n> parts;
  detail::unpack_to(parts, std::move(x), axis);
  return parts;
}
/// `sections` equal parts along an axis.
/// Throws: Error (shape) if it does not divide.
[[nodiscard]] std::vector<Tensor> split(Operand x, Param<int> sections, Param<int> axis = 0);
/// Parts that begin at 0 and at each of these indices: split(x, {2}) gives the parts 0 … 1 and
/// 2 … n − 1.
[[nodiscard]] std::vector<Tensor> split(Operand x, const std::vector<std::int64_t>& at,
                                        Param<int> axis = 0);
[[nodiscard]] inline std::vector<Tensor> split(Operand x,
                                               std::initializer_list<Param<std::int64_t>> at,
                                               Param<int> axis = 0) {
  return split(std::move(x), std::vector<std::int64_t>(at.begin(), at.end()), axis);
}
/// Per axis (low, high) edges filled with `value`, zeros unless given; one pair serves all axes;
/// negative edges crop.
/// Throws: Error (shape) if there is not a pair per axis, (dtype) if x's dtype does not hold
/// `value`.
[[nodiscard]] Tensor pad(Operand x, const std::vector<std::pair<std::int64_t, std::int64_t>>& edges,
                         Operand value = false);
/// The same, and `interior[i]` times `value` between neighbours along axis i.
/// Source: JAX `lax.pad`.
[[nodiscard]] Tensor pad(Operand x, Operand value, const Shape& low, const Shape& high,
                         const Shape& interior);
/// What stands beyond the edges: the last element again (edge), the mirror image without it
/// (reflect) or with it (symmetric), or the elements from the other end (wrap).
enum class PadMode : std::uint8_t { edge, reflect, symmetric, wrap };
/// Edges filled with the axis's own elements, mirrored as often as needed.
/// Source: NumPy `pad`.
/// Throws: Error if an edge is negative, or an axis to be filled is empty.
[[nodiscard]] Tensor pad(Operand x, const std::vector<std::pair<std::int64_t, std::int64_t>>& edges,
                         PadMode mode);
/// The elements in reverse order along these axes; flip without axes: along all.
/// Source: NumPy `flip`.
[[nodiscard]] Tensor rev(Operand x, const Axes& axes);
[[nodiscard]] Tensor flip(Operand x, const ReduceAxes& axes = {});
/// Element i goes to i + shift, around the end; without an axis as if flattened.
[[nodiscard]] Tensor roll(Operand x, Param<std::int64_t> shift,
                          std::optional<Param<int>> axis = std::nullopt);
/// By a shift that is an integer scalar Tensor, which may be known only when the program runs.
template <std::same_as<Tensor> Shift>
[[nodiscard]] Tensor roll(Operand x, const Shift& shift,
                          std::optional<Param<int>> axis = std::nullopt) {
  return detail::rolled_by(std::move(x), shift, axis);
}
/// Several axes, each by its own shift. Throws: Error if there are not as many shifts as axes.
[[nodiscard]] Tensor roll(Operand x, const std::vector<std::int64_t>& shifts, const Axes& axes);
[[nodiscard]] inline Tensor roll(Operand x, std::initializer_list<Param<std::int64_t>> shifts,
                                 const Axes& axes) {
  return roll(std::move(x), std::vector<std::int64_t>(shifts.begin(), shifts.end()), axes);
}
/// The zero frequency to the middle, and back: half a roll along each axis.
[[nodiscard]] Tensor fftshift(Operand x, const ReduceAxes& axes = {});
[[nodiscard]] Tensor ifftshift(Operand x, const ReduceAxes& axes = {});
/// x as a whole repeated along each axis; the shorter of x's shape and the repetitions is extended
/// by ones on the left.
/// Source: NumPy `tile`.
/// Throws: Error if a repetition is negative or the result is too large to address, as every
/// function here that computes a size does.
[[nodiscard]] Tensor tile(Operand x, const Shape& repetitions);
/// Each element `count` times in a row along an axis; without an axis flattened first.
/// Throws: Error (value) if `count` is negative.
[[nodiscard]] Tensor repeat(Operand x, Param<std::int64_t> count,
                            std::optional<Param<int>> axis = std::nullopt);
/// Element i counts[i] times; `counts` is an integer Tensor, a vector along the axis or a scalar.
/// Negative counts are 0. The result has `size` elements along the axis: where counts add up to
/// less the last element fills it, where they add up to more it ends there. Without `size` it is
/// their sum, which is known only outside jit and vmap. Source: NumPy `repeat`, JAX `repeat` with
/// total_repeat_length.
template <std::same_as<Tensor> Counts>
[[nodiscard]] Tensor repeat(Operand x, const Counts& counts,
                            std::optional<Param<int>> axis = std::nullopt,
                            std::optional<Param<std::int64_t>> size = std::nullopt) {
  return detail::repeated_by(std::move(x), counts, axis, size);
}
/// Vectors broadcast against each other: grid k has the elements of vector k along axis k; the
/// first two axes change places unless `matrix_indexing`.
/// Source: NumPy `meshgrid` ("xy", "ij").
[[nodiscard]] std::vector<Tensor> meshgrid(TensorSpan axes, bool matrix_indexing = false,
                                           CallSite where = CallSite::here());
/// Blocks of pixels become channels, and back.
/// Shapes: [N, H, W, C] → [N, H/b, W/b, C·b²].
/// Source: TensorFlow `space_to_depth`.
[[nodiscard]] Tensor space_to_depth(Operand x, Param<int> block);
[[nodiscard]] Tensor depth_to_space(Operand x, Param<int> block);
/// Cuts the axes 1 … block.size() of x into blocks, once padded with zeros: their places become
/// images, a block's first element first.
/// Shapes: [N, s…, rest…] → [N · Π block, (s + low + high) / block…, rest…].
/// Source: TensorFlow `space_to_batch_nd`.
[[nodiscard]] Tensor space_to_batch(
    Operand x, const Shape& block,
    const std::vector<std::pair<std::int64_t, std::int64_t>>& padding);
/// The inverse of space_to_batch; `crops` are its padding.
[[nodiscard]] Tensor batch_to_space(
    Operand x, const Shape& block, const std::vector<std::pair<std::int64_t, std::int64_t>>& crops);

// --- index ---------------------------------------------------------------------------------------

/// The elements start[i], start[i] + stride[i], … below limit[i] of each axis i. Numbers, known
/// while recording, 0 ≤ start ≤ limit ≤ extent, stride ≥ 1 (1 where none are given).
/// Throws: Error (shape) otherwise.
[[nodiscard]] Tensor slice(Operand x, const Shape& start, const Shape& limit,
                           const Shape& stride = {});
/// The same along one axis; negative start and limit count from the end.
[[nodiscard]] Tensor slice_in_dim(Operand x, Param<std::int64_t> start, Param<std::int64_t> limit,
                                  Param<int> axis = 0, Param<std::int64_t> stride = 1);
/// The window of shape `sizes` that begins at `start`, integer scalars, one per axis, which may be
/// known only when the program runs. A window that sticks out is moved inside; a negative start is
/// moved to 0, it does not count from the end.
/// Source: JAX `lax.dynamic_slice`.
[[nodiscard]] Tensor dynamic_slice(Operand x, TensorSpan start, const Shape& sizes);
/// x with `update` written over such a window.
[[nodiscard]] Tensor dynamic_update_slice(Operand x, Operand update, TensorSpan start);
/// The same along one axis, the other axes whole.
[[nodiscard]] Tensor dynamic_slice_in_dim(Operand x, Operand start, Param<std::int64_t> size,
                                          Param<int> axis = 0);
[[nodiscard]] Tensor dynamic_update_slice_in_dim(Operand x, Operand update, Operand start,
                                                 Param<int> axis = 0);
/// Slices of `x` along `axis` (elements of the flattened Tensor without one) at integer `indices`
/// of any shape. Negative indices count from the end, others beyond the axis clamp.
/// Shapes: x [a, n, b], indices [i…] → [a, i…, b].
/// Source: NumPy and JAX `take` (mode "clip").
[[nodiscard]] Tensor take(Operand x, Operand indices,
                          std::optional<Param<int>> axis = std::nullopt);
/// Element [i, j, …] of the result is x at that place, but along `axis` at indices[i, j, …]. x and
/// indices are of the same rank and broadcast along the other axes.
/// Source: NumPy `take_along_axis`.
[[nodiscard]] Tensor take_along_axis(Operand x, Operand indices, Param<int> axis);
/// x with x[indices] = values: along axis 0, at integer `indices` of any shape. Negative indices
/// count from the end, others beyond the axis are dropped; of equal indices any one stays.
/// Shapes: x [n, s…], indices [i…], values broadcast to [i…, s…] → x's shape and dtype.
/// Throws: Error (dtype) if x's dtype does not hold the values.
/// Source: JAX `x.at[i].set(v)`.
[[nodiscard]] Tensor index_update(Operand x, Operand indices, Operand values);
/// x[indices] += values and the like; equal indices all count.
/// Source: JAX `x.at[i].add(v)` ….
[[nodiscard]] Tensor index_add(Operand x, Operand indices, Operand values);
[[nodiscard]] Tensor index_mul(Operand x, Operand indices, Operand values);
[[nodiscard]] Tensor index_min(Operand x, Operand indices, Operand values);
[[nodiscard]] Tensor index_max(Operand x, Operand indices, Operand values);
/// The last axis of `indices` holds index vectors that address the leading axes of `x`.
/// Shapes: x [n₁ … nₖ, s…], indices [i…, k] → [i…, s…].
/// Source: TensorFlow `gather_nd`.
[[nodiscard]] Tensor gather_nd(Operand x, Operand indices);
/// The indices along each axis of `shape` that belong to flat `indices`, and back. Negative ones
/// count from the end, others beyond it clamp. Shapes: indices [i…] → as many [i…] as `shape` has
/// axes. Source: NumPy `unravel_index`, `ravel_multi_index`.
[[nodiscard]] std::vector<Tensor> unravel_index(Operand indices, const Shape& shape);
[[nodiscard]] Tensor ravel_multi_index(TensorSpan indices, const Shape& shape,
                                       CallSite where = CallSite::here());
/// Zeros of `shape` with `updates` added at such index vectors; those out of range are dropped.
/// Shapes: indices [i…, k], updates [i…, s…] → `shape`, [n₁ … nₖ, s…].
/// Source: TensorFlow `scatter_nd`.
[[nodiscard]] Tensor scatter_nd(Operand indices, Operand updates, const Shape& shape);
/// 1 where the new axis `axis` has the index, else 0; all 0 for indices out of range.
/// Shapes: [i…] → [i…, classes].
/// Source: JAX `nn.one_hot`.
[[nodiscard]] Tensor one_hot(Operand indices, Param<std::int64_t> classes,
                             DType dtype = default_dtype(), Param<int> axis = -1);
/// Row k of the result combines the rows of x whose id is k, one after the other (a sum of n floats
/// is at most about n · u · Σ|x| off, see vt::sum). Rows with an id outside 0 … segments − 1,
/// negative ones too, are left out. Segments without rows: 0, 1, −∞ (the least integer), ∞ (the
/// greatest), and 0 for the mean.
/// Shapes: x [n, …], segment_ids [n] → [segments, …].
/// Source: JAX `ops.segment_sum`.
[[nodiscard]] Tensor segment_sum(Operand x, Operand segment_ids, Param<std::int64_t> segments);
[[nodiscard]] Tensor segment_prod(Operand x, Operand segment_ids, Param<std::int64_t> segments);
[[nodiscard]] Tensor segment_max(Operand x, Operand segment_ids, Param<std::int64_t> segments);
[[nodiscard]] Tensor segment_min(Operand x, Operand segment_ids, Param<std::int64_t> segments);
[[nodiscard]] Tensor segment_mean(Operand x, Operand segment_ids, Param<std::int64_t> segments);
/// How often each of 0 … length − 1 stands in x; other numbers are left out.
/// Shapes: any → [length]; i32 (i64 beyond 2^31 elements).
/// Source: JAX `bincount` with a length.
[[nodiscard]] Tensor bincount(Operand x, Param<std::int64_t> length);
/// Of a vector the square matrix with it on diagonal k, of a matrix its diagonal k.
/// Source: NumPy `diag`.
[[nodiscard]] Tensor diag(Operand x, Param<int> k = 0);
/// The elements at (i, i + offset) of two axes, as a new last axis.
[[nodiscard]] Tensor diagonal(Operand x, Param<int> offset = 0, Param<int> axis1 = 0,
                              Param<int> axis2 = 1);
[[nodiscard]] Tensor trace(Operand x, Param<int> offset = 0);  ///< the sum of that diagonal
/// The lower and the upper triangle of matrices, up to diagonal k; zeros elsewhere.
[[nodiscard]] Tensor tril(Operand x, Param<int> k = 0);
[[nodiscard]] Tensor triu(Operand x, Param<int> k = 0);
/// Matrices with `lower` diagonals below and `upper` above the main one kept, negative: all; zeros
/// elsewhere.
/// Source: TensorFlow `linalg.band_part`.
[[nodiscard]] Tensor band_part(Operand x, Param<std::int64_t> lower, Param<std::int64_t> upper);
/// [..., n] → [..., n, n] with that diagonal, and matrices with another diagonal.
/// Source: TensorFlow `linalg.diag`, `linalg.set_diag`.
[[nodiscard]] Tensor matrix_diag(Operand x);
[[nodiscard]] Tensor matrix_set_diag(Operand x, Operand diagonal);
/// The line through the points (xp, fp), xp ascending, at x; beyond the ends the end's value. As
/// numpy.interp: of two points at one place the last counts, and a point beside an infinite or NaN
/// value keeps its own.
[[nodiscard]] Tensor interp(Operand x, Operand xp, Operand fp);
/// searchsorted(boundaries, x, right): in which interval between the boundaries each element lies.
[[nodiscard]] Tensor bucketize(Operand x, Operand boundaries, bool right = false);
/// Where `values` would stand in the sorted vector: before its equals, or after them with `right`;
/// NaN behind all numbers.
/// Shapes: sorted [n], values any → as values; i32 (i64 beyond 2^31).
/// Source: NumPy `searchsorted`.
[[nodiscard]] Tensor searchsorted(Operand sorted, Operand values, bool right = false);
/// How many elements each of `bins` bins of one width has. The edges are
/// linspace(low, high, bins + 1) in the dtype of x (f64 for integers): bin i holds edges[i] <= x <
/// edges[i + 1], and the last one its upper edge too. What lies beyond or is NaN is left out.
/// Shapes: any → [bins]; i32 (i64 beyond 2^31 elements).
/// Throws: Error unless there is a bin, and low < high are finite.
/// Source: NumPy `histogram` with a range.
[[nodiscard]] Tensor histogram(Operand x, Param<std::int64_t> bins, Param<double> low,
                               Param<double> high);
/// The indices of the first `size` elements that are not zero, one [size] per axis; `fill` where
/// there are fewer. Without `size`, of all of them; then the shape depends on values, which are
/// known only outside jit and vmap.
[[nodiscard]] std::vector<Tensor> nonzero(Operand x,
                                          std::optional<Param<std::int64_t>> size = std::nullopt,
                                          Param<std::int64_t> fill = 0);

// --- contract ------------------------------------------------------------------------------------

/// The axes that are summed over, and those that both operands share.
struct DotDimensions {
  Axes lhs_contract, rhs_contract, lhs_batch = {}, rhs_batch = {};
};
/// Any product of two Tensors: sums over the contracted axes, pairs the batch axes. The result has
/// the batch axes, then a's other ones, then b's. `dtype`, if wider, is that of the sums and the
/// result. f16 and bf16 accumulate in f32.
/// Throws: Error (shape) if axes do not pair up.
/// Source: JAX `lax.dot_general`.
[[nodiscard]] Tensor dot_general(Operand a, Operand b, const DotDimensions& dimensions,
                                 std::optional<DType> dtype = std::nullopt);
/// The matrix product: the last two axes are matrices, the others broadcast; a vector counts as a
/// row on the left, as a column on the right. f16 and bf16 accumulate in f32, bools in i32.
/// Shapes: [..., m, k], [..., k, n] → [..., m, n].
/// Throws: Error (shape) if the inner extents differ or an operand is a scalar.
/// Source: NumPy `matmul`.
[[nodiscard]] Tensor matmul(Operand a, Operand b);
/// The sum over a's last and b's last but one axis (its only one); with a scalar the product.
/// Source: NumPy `dot`.
[[nodiscard]] Tensor dot(Operand a, Operand b);
/// Σ conj(a)·b over all elements, a scalar.
/// Throws: Error (shape) if the sizes differ.
[[nodiscard]] Tensor vdot(Operand a, Operand b);
/// The sum over both last axes.
[[nodiscard]] Tensor inner(Operand a, Operand b);
/// a[i]·b[j] of the flattened operands, [m, n].
[[nodiscard]] Tensor outer(Operand a, Operand b);
/// The sum over a's last and b's first `axes` axes, or over pairs of axes.
[[nodiscard]] Tensor tensordot(Operand a, Operand b, Param<int> axes = 2);
[[nodiscard]] Tensor tensordot(Operand a, Operand b, const Axes& a_axes, const Axes& b_axes);
/// NumPy's einsum: "ij,jk->ik"; letters, "..." for further axes, a letter twice in one operand for
/// its diagonal, no arrow for the letters that occur once. The cheapest pair is contracted first.
/// Throws: Error (value) for a bad expression, (shape) for extents that do not fit.
[[nodiscard]] Tensor einsum(std::string_view expression, TensorSpan operands,
                            CallSite where = CallSite::here());
template <class... Rest>
  requires(std::convertible_to<Rest, Tensor> && ...)
[[nodiscard]] Tensor einsum(std::string_view expression, Operand first, const Rest&... rest) {
  return einsum(expression, {first.tensor, rest...}, first.where);
}
/// The Kronecker product.
[[nodiscard]] Tensor kron(Operand a, Operand b);
/// The cross product of vectors of 3 (or 2) elements along `axis`.
[[nodiscard]] Tensor cross(Operand a, Operand b, Param<int> axis = -1);
/// Σ coefficients[i] · x^(n − 1 − i), the highest power first.
/// Source: NumPy `polyval`.
[[nodiscard]] Tensor polyval(Operand coefficients, Operand x);
/// Column i is x to the power count − 1 − i (i if `increasing`); square unless `count` is given.
/// Shapes: [n] → [n, count].
/// Source: NumPy `vander`.
[[nodiscard]] Tensor vander(Operand x, std::optional<Param<std::int64_t>> count = std::nullopt,
                            bool increasing = false);
/// The coefficients of the polynomial of that degree that fits the points (x, y) with the least sum
/// of squares, the highest power first. Integers become f32.
/// Shapes: x [n], y [n] or [n, k] → [degree + 1] or [degree + 1, k].
/// Source: NumPy `polyfit`, by vt::lstsq on columns of length 1.
[[nodiscard]] Tensor polyfit(Operand x, Operand y, Param<int> degree);
/// See vt::linalg::matrix_power.
[[nodiscard]] Tensor matrix_power(Operand x, Param<int> n);
/// The covariance of the rows (or columns) of x, each a variable; integers become f32.
/// Shapes: [v, n] → [v, v].
/// Source: NumPy `cov`.
[[nodiscard]] Tensor cov(Operand x, bool rowvar = true, Param<int> ddof = 1);
/// The same divided by the deviations; of complex numbers both parts are brought into −1 … 1.
[[nodiscard]] Tensor corrcoef(Operand x, bool rowvar = true);

// --- networks ------------------------------------------------------------------------------------

/// eˣ / Σ eˣ along an axis, and its logarithm. Floats; integers become f32; f16 and bf16 are
/// computed in f32.
/// Throws: Error (dtype) for complex numbers.
[[nodiscard]] Tensor softmax(Operand x, Param<int> axis = -1);
[[nodiscard]] Tensor log_softmax(Operand x, Param<int> axis = -1);
/// max(x, 0), with derivative 0 at 0.
[[nodiscard]] Tensor relu(Operand x);
[[nodiscard]] Tensor relu6(Operand x);  ///< max(0, min(x, 6))
/// x above 0, alpha·(eˣ − 1) below.
[[nodiscard]] Tensor elu(Operand x, Param<double> alpha = 1.0);
[[nodiscard]] Tensor selu(Operand x);  ///< 1.0507 · elu(x, 1.6733)
/// x·Φ(x), Φ the normal distribution function, with all digits of the left tail as far as results
/// are normal numbers. `approximate`: with ½ (1 + tanh(√(2/π) (x + 0.044715 x³))) for Φ.
[[nodiscard]] Tensor gelu(Operand x, bool approximate = false);
/// x · sigmoid(x).
[[nodiscard]] Tensor silu(Operand x);
/// x above 0, slope·x below.
[[nodiscard]] Tensor leaky_relu(Operand x, Param<double> slope = 0.01);
[[nodiscard]] Tensor softplus(Operand x);   ///< log(1 + eˣ)
[[nodiscard]] Tensor softsign(Operand x);   ///< x / (1 + |x|)
[[nodiscard]] Tensor hard_tanh(Operand x);  ///< x between −1 and 1, else these
/// (x − mean) / √(variance + epsilon) · scale + shift along one axis; statistics in at least f32.
/// Shapes: scale and shift are scalars or vectors of that axis' extent, here and below.
[[nodiscard]] Tensor layer_norm(Operand x, Operand scale, Operand shift, Param<int> axis = -1,
                                Param<double> epsilon = 1e-5);
/// x / √(mean of x² + epsilon) · scale along one axis.
[[nodiscard]] Tensor rms_norm(Operand x, Operand scale, Param<int> axis = -1,
                              Param<double> epsilon = 1e-6);
/// layer_norm over the pixels and the channels of each of `groups` groups of channels.
/// Shapes: [N, …, C], C a multiple of `groups`.
[[nodiscard]] Tensor group_norm(Operand x, Param<int> groups, Operand scale, Operand shift,
                                Param<double> epsilon = 1e-5);
struct BatchNormResult {
  Tensor y, mean, variance;
};
/// Normalises with the batch's own mean and variance over all axes but the last, the channels.
[[nodiscard]] BatchNormResult batch_norm_training(Operand x, Operand scale, Operand shift,
                                                  Param<double> epsilon = 1e-5);
/// The same with a mean and a variance that are given, one number per channel.
[[nodiscard]] Tensor batch_norm_inference(Operand x, Operand scale, Operand shift, Operand mean,
                                          Operand variance, Param<double> epsilon = 1e-5);
/// −Σ targets · log_softmax(logits) over `axis`; a target of 0 costs nothing. Targets broadcast to
/// the logits.
/// Throws: Error (shape) if they do not.
[[nodiscard]] Tensor cross_entropy(Operand logits, Operand targets, Param<int> axis = -1);
/// −log_softmax(logits) at the class `labels` says.
/// Shapes: logits [..., classes], labels integers [...] → [...]. Labels count as take's indices do:
/// −1 is the last class, and so are those behind it; a label to be left out needs a `where`.
/// Throws: Error (shape) or (dtype) if the labels do not fit.
[[nodiscard]] Tensor sparse_cross_entropy(Operand logits, Operand labels);
[[nodiscard]] Tensor l2_loss(Operand x);         ///< Σ x² / 2
[[nodiscard]] Tensor sum_of_squares(Operand x);  ///< Σ |x|²

// --- images: float [..., H, W, 3] of red, green and blue in 0 … 1 --------------------------------

/// Away from (factor > 1) or towards each channel's mean.
[[nodiscard]] Tensor adjust_contrast(Operand images, Operand factor);
/// Away from (factor > 1) or towards grey.
[[nodiscard]] Tensor adjust_saturation(Operand images, Operand factor);
/// Moves the hue by `delta`, 1 being a full circle.
[[nodiscard]] Tensor adjust_hue(Operand images, Operand delta);
/// Hue, saturation and value, each in 0 … 1, and back.
[[nodiscard]] Tensor rgb_to_hsv(Operand images);
/// Luminance (ITU-R BT.601), [..., H, W, 1].
[[nodiscard]] Tensor rgb_to_grayscale(Operand images);
[[nodiscard]] Tensor hsv_to_rgb(Operand images);

/// How an image of another size is made: from the nearest pixel, or with the filter of that name.
enum class Resize : std::uint8_t { nearest, linear, cubic, lanczos3, lanczos5 };
/// x with the extents `shape`, of the same rank, as samples at the middles of the new pixels. Where
/// an axis shrinks the filter is widened if `antialias` is set. Weights beyond edges are left out,
/// and the others scaled to sum 1. Floats; integers become f32 (but for nearest).
/// Throws: Error if the rank differs, or an axis that changes is empty. Source: JAX `image.resize`.
[[nodiscard]] Tensor resize(Operand x, const Shape& shape, Resize method = Resize::linear,
                            bool antialias = true);
/// Windows of images, each brought to one size by linear interpolation between pixels (or by the
/// nearest).
/// Shapes: images [N, H, W, C]; boxes [M, 4]: y0, x0, y1, x1, where 0 is the middle of the first
/// pixel and 1 of the last, reversed ones turn the window around; box_images i32 [M] → [M, height,
/// width, C]. Differentiable in images and boxes. What lies outside is `outside`.
/// Throws: Error if shapes do not fit, Error(value) if `method` is neither nearest nor linear.
/// Source: TensorFlow `image.crop_and_resize`.
[[nodiscard]] Tensor crop_and_resize(Operand images, Operand boxes, Operand box_images,
                                     Param<std::int64_t> height, Param<std::int64_t> width,
                                     Resize method = Resize::linear, Operand outside = 0.0);

}  // namespace vt
