// The functions on Tensors, under their NumPy and JAX names. All broadcast, take any dtype that
// makes sense, and work under every transform; each throws vt::Error (op, shapes, the caller's
// line) when its operands do not fit.
#pragma once

#include <concepts>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vt/tensor.hpp>

namespace vt {

/// Tensors side by side as a parameter: a std::vector, std::array, C array or std::span of them, or
/// braces, where numbers are Tensors too. A view: it does not keep them.
class TensorSpan : public std::span<const Tensor> {
 public:
  TensorSpan(std::initializer_list<Tensor> list)
      : TensorSpan(std::span(std::data(list), list.size())) {}
  template <std::convertible_to<std::span<const Tensor>> R>
  TensorSpan(const R& range) : std::span<const Tensor>(range) {}
};

/// The axes of a reduction: none given means all of them.
class ReduceAxes {
 public:
  ReduceAxes() = default;
  ReduceAxes(std::nullopt_t) {}
  template <detail::ParamFor<int> T>
  ReduceAxes(T axis) : axes_(axis), all_(false) {}
  ReduceAxes(std::initializer_list<Param<int>> axes) : axes_(axes), all_(false) {}
  ReduceAxes(const Axes& axes) : axes_(axes), all_(false) {}
  ReduceAxes(const std::vector<int>& axes) : axes_(axes), all_(false) {}
  bool all() const { return all_; }
  const Axes& axes() const& { return axes_; }
  Axes axes() && { return std::move(axes_); }

 private:
  Axes axes_;
  bool all_ = true;
};

// --- element-wise, one operand -------------------------------------------------------------------

Tensor negative(Operand x);
Tensor abs(Operand x);
Tensor sign(Operand x);  ///< −1, 0 or 1; NaN stays NaN
Tensor floor(Operand x);
Tensor ceil(Operand x);
Tensor round(Operand x);  ///< half to even
Tensor trunc(Operand x);
Tensor exp(Operand x);
Tensor exp2(Operand x);
Tensor expm1(Operand x);
Tensor log(Operand x);
Tensor log1p(Operand x);
Tensor log2(Operand x);
Tensor log10(Operand x);
Tensor sqrt(Operand x);
Tensor rsqrt(Operand x);
Tensor cbrt(Operand x);
Tensor sin(Operand x);
Tensor cos(Operand x);
Tensor tan(Operand x);
Tensor asin(Operand x);
Tensor acos(Operand x);
Tensor atan(Operand x);
Tensor sinh(Operand x);
Tensor cosh(Operand x);
Tensor tanh(Operand x);
Tensor asinh(Operand x);
Tensor acosh(Operand x);
Tensor atanh(Operand x);
Tensor sigmoid(Operand x);
Tensor erf(Operand x);
Tensor erfc(Operand x);
Tensor erf_inv(Operand x);
Tensor lgamma(Operand x);
Tensor digamma(Operand x);
Tensor isfinite(Operand x);
Tensor isnan(Operand x);
Tensor isinf(Operand x);
/// Up to ±16 by squaring, within as many units in the last place, beyond within one; over the whole
/// range, subnormal results too. 1 for exponent 0, of NaN as well; integers wrap.
Tensor integer_pow(Operand x, Param<int> exponent);
Tensor logical_not(Operand x);
Tensor bitwise_not(Operand x);
Tensor popcount(Operand x);
Tensor clz(Operand x);
Tensor convert(Operand x, DType dtype);
Tensor bitcast(Operand x, DType dtype);  ///< same element size only
Tensor reduce_precision(Operand x, Param<int> exponent_bits, Param<int> mantissa_bits);
Tensor stop_gradient(Operand x);
Tensor square(Operand x);
Tensor reciprocal(Operand x);
Tensor logit(Operand x);    ///< log(x / (1 − x)), the inverse of sigmoid
Tensor signbit(Operand x);  ///< true for −0 as well
/// NaN → `nan`; infinities → the largest numbers of the dtype unless others are given.
Tensor nan_to_num(Operand x, Param<double> nan = 0.0,
                  std::optional<Param<double>> posinf = std::nullopt,
                  std::optional<Param<double>> neginf = std::nullopt);
Tensor deg2rad(Operand x);
Tensor rad2deg(Operand x);

// --- complex numbers -----------------------------------------------------------------------------
// more: they may overflow on the way, and infinities become NaN. Quotients are scaled and do
// neither for finite operands; each part over a zero is divided by itself. What needs an order (<,
// maximum, sort, floor …) is refused, and so is conversion to a real dtype. `abs` is real and does
// not overflow before its value does.

/// The real part of complex numbers; real ones themselves.
Tensor real(Operand x);
/// The imaginary part, in the dtype of `real(x)`; of real numbers zeros.
Tensor imag(Operand x);
Tensor conj(Operand x);
/// re + i·im: c128 of f64, c64 of narrower floats, integers and bools. Broadcasts.
Tensor complex(Operand re, Operand im);
/// atan2(imag, real), in −π … π.
Tensor angle(Operand x);
Tensor iscomplex(Operand x);  ///< imag(x) != 0, element by element
Tensor isreal(Operand x);     ///< imag(x) == 0

// --- element-wise, two operands ------------------------------------------------------------------
// Dtypes are promoted: bool < integers < floats < complex (f64 and c64 meet in c128); weak scalars
// adopt the other side's dtype. `/` and `%` on integers are C's (truncating); division by zero
// gives 0 and remainder 0; integer arithmetic wraps.

Tensor add(Operand a, Operand b);
Tensor subtract(Operand a, Operand b);
Tensor multiply(Operand a, Operand b);
Tensor divide(Operand a, Operand b);       ///< operator/
Tensor true_divide(Operand a, Operand b);  ///< integers become f32 first
Tensor floor_divide(Operand a, Operand b);
Tensor remainder(Operand a, Operand b);  ///< operator%, C's fmod: the sign of a
Tensor fmod(Operand a, Operand b);
Tensor mod(Operand a, Operand b);  ///< NumPy's mod: the sign of b
Tensor pow(Operand a, Operand b);
Tensor maximum(Operand a, Operand b);  ///< NaN if either is NaN (vt::max reduces)
Tensor minimum(Operand a, Operand b);
Tensor atan2(Operand y, Operand x);
Tensor hypot(Operand a, Operand b);  ///< all derivatives are 0 where both are
Tensor nextafter(Operand a, Operand b);
Tensor copysign(Operand magnitude, Operand sign);
Tensor logaddexp(Operand a, Operand b);
Tensor xlogy(Operand x, Operand y);
Tensor xlog1py(Operand x, Operand y);
Tensor heaviside(Operand x, Operand at_zero);
Tensor squared_difference(Operand a, Operand b);  ///< |a − b|²
Tensor equal(Operand a, Operand b);
Tensor not_equal(Operand a, Operand b);
Tensor less(Operand a, Operand b);
Tensor less_equal(Operand a, Operand b);
Tensor greater(Operand a, Operand b);
Tensor greater_equal(Operand a, Operand b);
Tensor bitwise_and(Operand a, Operand b);
Tensor bitwise_or(Operand a, Operand b);
Tensor bitwise_xor(Operand a, Operand b);
Tensor logical_and(Operand a, Operand b);
Tensor logical_or(Operand a, Operand b);
Tensor logical_xor(Operand a, Operand b);
Tensor shift_left(Operand a, Operand b);  ///< shifts by the width or more give 0
Tensor shift_right_logical(Operand a, Operand b);
Tensor shift_right_arithmetic(Operand a, Operand b);  ///< … or the sign
Tensor isclose(Operand a, Operand b, Param<double> rtol = 1e-5, Param<double> atol = 1e-8,
               bool equal_nan = false);
Tensor allclose(Operand a, Operand b, Param<double> rtol = 1e-5, Param<double> atol = 1e-8,
                bool equal_nan = false);

inline Tensor operator+(Operand a, Operand b) { return add(std::move(a), std::move(b)); }
inline Tensor operator-(Operand a, Operand b) { return subtract(std::move(a), std::move(b)); }
inline Tensor operator*(Operand a, Operand b) { return multiply(std::move(a), std::move(b)); }
inline Tensor operator/(Operand a, Operand b) { return divide(std::move(a), std::move(b)); }
inline Tensor operator%(Operand a, Operand b) { return remainder(std::move(a), std::move(b)); }
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
        "= on a temporary changes nothing: write x = vt::index_update(x, index, value), or " \
        "vt::index_add and its like");                                                       \
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
/// Takes the Tensor itself (and so knows no line): `!` also converts to bool, and through an
/// Operand the two would be as good.
inline Tensor operator!(const Tensor& x) { return logical_not(Operand(x, nullptr, 0)); }
inline Tensor operator~(Operand x) { return bitwise_not(std::move(x)); }

// --- choose --------------------------------------------------------------------------------------

/// `if_true` where `condition` holds, else `if_false`. Only the chosen side has a gradient.
Tensor where(Operand condition, Operand if_true, Operand if_false);
Tensor select(Operand condition, Operand if_true, Operand if_false);
Tensor clamp(Operand low, Operand x, Operand high);
/// Either bound may be std::nullopt.
Tensor clip(Operand x, std::optional<Operand> low, std::optional<Operand> high);

// --- reduce --------------------------------------------------------------------------------------
// Sums of floats add in pieces and these in pieces again: the error of n numbers is at most about
// (log₂ n + 200) · u · Σ|x|, mostly a few u · Σ|x|, where u is 2⁻²⁴ (f32; f16 and bf16, which are
// summed in f32 and rounded once) or 2⁻⁵³, of complex numbers for each part. It holds over any axes
// and for what sums (mean, var, norm, logsumexp …), and the bits do not depend on the number of
// threads. Interpreted sums are exact but for the last rounding; on a CUDA device a thread may add
// some hundreds of numbers one after the other. Elements of matrix products are at most about
// k · u · Σ|a b| off.

Tensor sum(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
Tensor prod(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
Tensor max(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
Tensor min(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
Tensor any(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
Tensor all(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
/// Index of the first extreme element; without an axis in the flattened Tensor. NaN is extreme.
Tensor argmax(Operand x, std::optional<Param<int>> axis = std::nullopt, bool keepdims = false);
Tensor argmin(Operand x, std::optional<Param<int>> axis = std::nullopt, bool keepdims = false);
Tensor mean(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
Tensor var(Operand x, const ReduceAxes& axes = {}, Param<int> ddof = 0, bool keepdims = false);
/// all derivatives are 0 where it is
Tensor std(Operand x, const ReduceAxes& axes = {}, Param<int> ddof = 0, bool keepdims = false);
Tensor logsumexp(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
Tensor count_nonzero(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
/// `ord`: 2 (Euclidean, the default), 1, infinity, 0 (count) or any p. All derivatives are 0 where
/// x is; but for even p, whose powers are smooth, elements that are 0 have none.
Tensor norm(Operand x, const ReduceAxes& axes = {}, Param<double> ord = 2.0, bool keepdims = false);
Tensor ptp(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
/// Mean weighted by `weights`, which broadcast to x.
Tensor average(Operand x, Operand weights, const ReduceAxes& axes = {});

namespace detail {
using FlatBinary = std::vector<Tensor> (*)(void*, std::span<const Tensor>);
Tensor reduce_with(const char* name, Operand x, Operand init, void* context, FlatBinary body,
                   const ReduceAxes& axes);
}  // namespace detail
/// General reduction: combines elements with `f(acc, x)`, which must be associative, starting from
/// the scalar `init`.
template <class F>
Tensor reduce(F f, Operand init, Operand x, const ReduceAxes& axes = {}) {
  return detail::reduce_with(
      "reduce", x, init, &f,
      [](void* context, std::span<const Tensor> a) -> std::vector<Tensor> {
        return {(*static_cast<F*>(context))(a[0], a[1])};
      },
      axes);
}

// --- scans along an axis -------------------------------------------------------------------------

/// Of f32 and narrower floats in f64, rounded for each element; of f64 one element after the other,
/// at most about n · u · Σ|x| off.
Tensor cumsum(Operand x, Param<int> axis = 0, bool reverse = false);
Tensor cumprod(Operand x, Param<int> axis = 0, bool reverse = false);
Tensor cummax(Operand x, Param<int> axis = 0, bool reverse = false);
Tensor cummin(Operand x, Param<int> axis = 0, bool reverse = false);
Tensor cumlogsumexp(Operand x, Param<int> axis = 0, bool reverse = false);
/// x[i + 1] − x[i] along an axis, `n` times.
Tensor diff(Operand x, Param<int> n = 1, Param<int> axis = -1);

// --- order ---------------------------------------------------------------------------------------

struct SortOptions {
  bool descending = false;  ///< NaN first; equals keep their order all the same
  /// false allows any order of equals; the order is the stable one even then
  bool stable = true;
};
/// Sorts along an axis, with std::nullopt the flattened Tensor.
/// Shapes: any → the same; dtype kept.
/// Throws: Error if the axis is out of range.
/// Source: NumPy and JAX `sort`. Its derivative moves tangents as it moves elements.
Tensor sort(Operand x, std::optional<Param<int>> axis = -1, const SortOptions& options = {});
/// Sorts Tensors of one shape together, by the first `num_keys` of them: the second decides where
/// the first is equal, and so on.
/// Throws: Error if the shapes differ or there are fewer operands than keys.
/// Source: JAX `lax.sort`.
std::vector<Tensor> sort(TensorSpan operands, Param<int> axis = -1, Param<int> num_keys = 1,
                         const SortOptions& options = {}, CallSite where = CallSite::here());
/// Where the sorted elements come from: `take_along_axis(x, argsort(x), -1)` is `sort(x)`.
/// Shapes: any → the same, i32 (i64 on axes beyond 2^31).
Tensor argsort(Operand x, std::optional<Param<int>> axis = -1, const SortOptions& options = {});
/// argsort by several keys of one shape: the last is the first to decide.
/// Source: NumPy `lexsort`.
Tensor lexsort(TensorSpan keys, Param<int> axis = -1, CallSite where = CallSite::here());
/// The k greatest elements along an axis, the greatest first, and their indices (i32); of equals
/// the first ones.
/// Shapes: [… n …] → [… k …] twice.
/// Throws: Error if k is negative or greater than n.
/// Source: JAX `lax.top_k`.
std::pair<Tensor, Tensor> top_k(Operand x, Param<std::int64_t> k, Param<int> axis = -1);
/// x with the element that belongs to place `kth` there, none that is greater before it and none
/// that is less behind.
/// Source: NumPy `partition`. (Both parts are in order as well.)
Tensor partition(Operand x, Param<std::int64_t> kth, Param<int> axis = -1);
Tensor argpartition(Operand x, Param<std::int64_t> kth, Param<int> axis = -1);

/// Which value a quantile between two neighbours of the order has. `nearest` of the middle: the
/// even place.
enum class QuantileMethod : std::uint8_t { linear, lower, higher, nearest, midpoint };
/// The value that the fraction q of the elements lies below. NaN if there is one among them.
/// Shapes: x over axes (all unless given), q a scalar or [m] → [m,] kept axes. Integers become f32;
/// dtype of x kept otherwise. Where q is not between 0 and 1 and that is not known while recording,
/// the quantile is NaN.
/// Throws: Error if a known q is not between 0 and 1, or if there are no elements.
/// Source: NumPy and JAX `quantile`.
Tensor quantile(Operand x, Operand q, const ReduceAxes& axes = {},
                QuantileMethod method = QuantileMethod::linear, bool keepdims = false);
/// q in percent.
Tensor percentile(Operand x, Operand q, const ReduceAxes& axes = {},
                  QuantileMethod method = QuantileMethod::linear, bool keepdims = false);
Tensor median(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);
/// These pass NaN by; of nothing but NaN they are NaN.
Tensor nanquantile(Operand x, Operand q, const ReduceAxes& axes = {},
                   QuantileMethod method = QuantileMethod::linear, bool keepdims = false);
Tensor nanpercentile(Operand x, Operand q, const ReduceAxes& axes = {},
                     QuantileMethod method = QuantileMethod::linear, bool keepdims = false);
Tensor nanmedian(Operand x, const ReduceAxes& axes = {}, bool keepdims = false);

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
Tensor unique(Operand x, const UniqueOptions& options = {});
/// The same with what NumPy gives for return_index, return_inverse and return_counts; what is not
/// used is not computed.
UniqueResult unique_all(Operand x, const UniqueOptions& options = {});

// --- shape ---------------------------------------------------------------------------------------

Tensor reshape(Operand x, const Shape& shape);  ///< one extent may be −1
Tensor ravel(Operand x);
/// reverses the axes without a permutation
Tensor transpose(Operand x, const Axes& permutation = {});
Tensor swapaxes(Operand x, Param<int> a, Param<int> b);
Tensor moveaxis(Operand x, const Axes& from, const Axes& to);
Tensor matrix_transpose(Operand x);
Tensor broadcast_to(Operand x, const Shape& shape);
/// Operand axis i becomes result axis axes[i]; the other axes are new. XLA's BroadcastInDim.
Tensor broadcast_in_dim(Operand x, const Shape& shape, const Axes& axes);
Tensor expand_dims(Operand x, const Axes& axes);
Tensor squeeze(Operand x, const ReduceAxes& axes = {});
Tensor concatenate(TensorSpan parts, Param<int> axis = 0, CallSite where = CallSite::here());
Tensor stack(TensorSpan parts, Param<int> axis = 0, CallSite where = CallSite::here());
std::vector<Tensor> unstack(Operand x, Param<int> axis = 0);
std::vector<Tensor> split(Operand x, Param<int> sections, Param<int> axis = 0);
/// Cut in front of each of these indices; braces are indices: split(x, {2}) gives x[:2] and x[2:].
std::vector<Tensor> split(Operand x, const std::vector<std::int64_t>& at, Param<int> axis = 0);
inline std::vector<Tensor> split(Operand x, std::initializer_list<Param<std::int64_t>> at,
                                 Param<int> axis = 0) {
  return split(std::move(x), std::vector<std::int64_t>(at.begin(), at.end()), axis);
}
/// Per axis (low, high) edges filled with `value`, zeros unless given; negative edges crop.
Tensor pad(Operand x, const std::vector<std::pair<std::int64_t, std::int64_t>>& edges,
           Operand value = false);
Tensor pad(Operand x, Operand value, const Shape& low, const Shape& high, const Shape& interior);
/// What stands beyond the edges: the last element, the mirror image without or with the last
/// element, or the other end.
enum class PadMode : std::uint8_t { edge, reflect, symmetric, wrap };
/// Edges filled with the axis's own elements, mirrored as often as they reach. Source: NumPy `pad`.
/// Throws: Error if an edge is negative, or an axis to be filled is empty.
Tensor pad(Operand x, const std::vector<std::pair<std::int64_t, std::int64_t>>& edges,
           PadMode mode);
Tensor rev(Operand x, const Axes& axes);
Tensor flip(Operand x, const ReduceAxes& axes = {});
Tensor roll(Operand x, Param<std::int64_t> shift, std::optional<Param<int>> axis = std::nullopt);
/// Several axes, each by its own shift. Throws: Error if there are not as many shifts as axes.
Tensor roll(Operand x, const std::vector<std::int64_t>& shifts, const Axes& axes);
inline Tensor roll(Operand x, std::initializer_list<Param<std::int64_t>> shifts, const Axes& axes) {
  return roll(std::move(x), std::vector<std::int64_t>(shifts.begin(), shifts.end()), axes);
}
/// The zero frequency to the middle, and back: half a roll along each axis.
Tensor fftshift(Operand x, const ReduceAxes& axes = {});
Tensor ifftshift(Operand x, const ReduceAxes& axes = {});
/// NumPy's tile: the shorter of x's shape and the repetitions is extended by ones on the left.
/// Throws: Error if a repetition is negative or the result is too large to address, as every
/// function here that computes a size does.
Tensor tile(Operand x, const Shape& repetitions);
Tensor repeat(Operand x, Param<std::int64_t> count, std::optional<Param<int>> axis = std::nullopt);
std::vector<Tensor> meshgrid(TensorSpan axes, bool matrix_indexing = false,
                             CallSite where = CallSite::here());
Tensor space_to_depth(Operand x, Param<int> block);  ///< [N,H,W,C]
Tensor depth_to_space(Operand x, Param<int> block);
/// Cuts the axes 1 … block.size() of x into blocks, once padded with zeros: their places become
/// images, a block's first element first.
/// Shapes: [N, s…, rest…] → [N · Π block, (s + low + high) / block…, rest…].
/// Source: TensorFlow `space_to_batch_nd`.
Tensor space_to_batch(Operand x, const Shape& block,
                      const std::vector<std::pair<std::int64_t, std::int64_t>>& padding);
/// The way back; `crops` are what padding there was.
Tensor batch_to_space(Operand x, const Shape& block,
                      const std::vector<std::pair<std::int64_t, std::int64_t>>& crops);

// --- index ---------------------------------------------------------------------------------------

/// start ≤ limit per axis, stride ≥ 1; strides of 1 where none are given.
Tensor slice(Operand x, const Shape& start, const Shape& limit, const Shape& stride = {});
Tensor slice_in_dim(Operand x, Param<std::int64_t> start, Param<std::int64_t> limit,
                    Param<std::int64_t> stride = 1, Param<int> axis = 0);
/// A window of `sizes` at the index Tensors `start` (one scalar per axis), moved inside the operand
/// if it sticks out: also where a start is negative, which does not count from the end here.
Tensor dynamic_slice(Operand x, TensorSpan start, const Shape& sizes);
Tensor dynamic_update_slice(Operand x, Operand update, TensorSpan start);
Tensor dynamic_slice_in_dim(Operand x, Operand start, Param<std::int64_t> size,
                            Param<int> axis = 0);
Tensor dynamic_update_slice_in_dim(Operand x, Operand update, Operand start, Param<int> axis = 0);
/// Rows of `x` along `axis` (of the flattened Tensor without one); negative indices count from the
/// end, others clamp.
Tensor take(Operand x, Operand indices, std::optional<Param<int>> axis = std::nullopt);
Tensor take_along_axis(Operand x, Operand indices, Param<int> axis);
/// x with x[indices] = values; out-of-range indices are dropped
Tensor index_update(Operand x, Operand indices, Operand values);
Tensor index_add(Operand x, Operand indices, Operand values);
Tensor index_mul(Operand x, Operand indices, Operand values);
Tensor index_min(Operand x, Operand indices, Operand values);
Tensor index_max(Operand x, Operand indices, Operand values);
/// The last axis of `indices` addresses the leading axes of `x`.
Tensor gather_nd(Operand x, Operand indices);
Tensor scatter_nd(Operand indices, Operand updates, const Shape& shape);
Tensor one_hot(Operand indices, Param<std::int64_t> classes, DType dtype = f32,
               Param<int> axis = -1);
/// Rows of x with one id, combined one after the other (a sum of n floats is at most about
/// n · u · Σ|x| off, see vt::sum); what has an id outside 0 … segments − 1 (negative ones too) is
/// left out. Segments without rows: 0, 1, −∞ (the least integer), ∞ (the greatest).
/// Shapes: x [n, …], segment_ids [n] → [segments, …].
Tensor segment_sum(Operand x, Operand segment_ids, Param<std::int64_t> segments);
Tensor segment_prod(Operand x, Operand segment_ids, Param<std::int64_t> segments);
Tensor segment_max(Operand x, Operand segment_ids, Param<std::int64_t> segments);
Tensor segment_min(Operand x, Operand segment_ids, Param<std::int64_t> segments);
Tensor segment_mean(Operand x, Operand segment_ids, Param<std::int64_t> segments);
/// How often each of 0 … length − 1 occurs in x; other numbers are left out.
/// i32, or i64 for more than 2^31 elements.
Tensor bincount(Operand x, Param<std::int64_t> length);
Tensor diag(Operand x, Param<int> k = 0);
Tensor diagonal(Operand x, Param<int> offset = 0, Param<int> axis1 = 0, Param<int> axis2 = 1);
Tensor trace(Operand x, Param<int> offset = 0);
Tensor tril(Operand x, Param<int> k = 0);
Tensor triu(Operand x, Param<int> k = 0);
Tensor band_part(Operand x, Param<std::int64_t> lower, Param<std::int64_t> upper);
Tensor matrix_diag(Operand x);
Tensor matrix_set_diag(Operand x, Operand diagonal);
/// The line through the points (xp, fp), xp ascending, at x; beyond the ends the end's value. As
/// numpy.interp: of two points at one place the last counts, and a point beside an infinite or NaN
/// value keeps its own.
Tensor interp(Operand x, Operand xp, Operand fp);
Tensor bucketize(Operand x, Operand boundaries, bool right = false);
/// Where `values` would stand in the sorted vector: before its equals, or after them with `right`;
/// NaN behind all numbers. i32 (i64 beyond 2^31).
Tensor searchsorted(Operand sorted, Operand values, bool right = false);
/// How many elements each of `bins` bins of one width has. The edges are
/// linspace(low, high, bins + 1) in the dtype of x (f64 for integers): bin i holds edges[i] <= x <
/// edges[i + 1], and the last one its upper edge too. What lies beyond or is NaN is left out.
/// Shapes: any → [bins]; i32 (i64 beyond 2^31 elements).
/// Throws: Error unless there is a bin, and low < high are finite.
/// Source: NumPy `histogram` with a range.
Tensor histogram(Operand x, Param<std::int64_t> bins, Param<double> low, Param<double> high);
/// The indices of the first `size` elements that are not zero, one [size] per axis; `fill` where
/// there are fewer. Without `size`, of all of them; then the shape depends on values, which are
/// known only outside jit and vmap.
std::vector<Tensor> nonzero(Operand x, std::optional<Param<std::int64_t>> size = std::nullopt,
                            Param<std::int64_t> fill = 0);

// --- contract ------------------------------------------------------------------------------------

struct DotDimensions {
  Axes lhs_contract, rhs_contract, lhs_batch = {}, rhs_batch = {};
};
/// Result axes: batch, then lhs free, then rhs free. f16 and bf16 accumulate in f32.
Tensor dot_general(Operand a, Operand b, const DotDimensions& dimensions,
                   std::optional<DType> dtype = std::nullopt);
/// NumPy's matmul: the last two axes multiply, the others broadcast; vectors are rows or columns.
Tensor matmul(Operand a, Operand b);
Tensor dot(Operand a, Operand b);
Tensor vdot(Operand a, Operand b);
Tensor inner(Operand a, Operand b);
Tensor outer(Operand a, Operand b);
Tensor tensordot(Operand a, Operand b, Param<int> axes = 2);
Tensor tensordot(Operand a, Operand b, const Axes& a_axes, const Axes& b_axes);
Tensor einsum(std::string_view expression, TensorSpan operands, CallSite where = CallSite::here());
template <class... Rest>
  requires(std::convertible_to<Rest, Tensor> && ...)
Tensor einsum(std::string_view expression, Operand first, const Rest&... rest) {
  return einsum(expression, {first.tensor, rest...}, first.where);
}
Tensor kron(Operand a, Operand b);
Tensor cross(Operand a, Operand b, Param<int> axis = -1);
Tensor polyval(Operand coefficients, Operand x);
Tensor matrix_power(Operand x, Param<int> n);
Tensor cov(Operand x, bool rowvar = true, Param<int> ddof = 1);
/// complex: both parts in −1 … 1, as NumPy has them
Tensor corrcoef(Operand x, bool rowvar = true);

// --- networks ------------------------------------------------------------------------------------

Tensor softmax(Operand x, Param<int> axis = -1);
Tensor log_softmax(Operand x, Param<int> axis = -1);
Tensor relu(Operand x);  ///< derivative 0 at 0
Tensor relu6(Operand x);
Tensor elu(Operand x, Param<double> alpha = 1.0);
Tensor selu(Operand x);
/// x Φ(x), to all digits of the left tail as far as results are normal numbers. `approximate`: with
/// ½ (1 + tanh(√(2/π) (x + 0.044715 x³))) for Φ, whose relative error grows along the left tail.
Tensor gelu(Operand x, bool approximate = false);
Tensor silu(Operand x);
Tensor leaky_relu(Operand x, Param<double> slope = 0.01);
Tensor softplus(Operand x);
Tensor softsign(Operand x);
Tensor hard_tanh(Operand x);
Tensor layer_norm(Operand x, Operand scale, Operand shift, Param<int> axis = -1,
                  Param<double> epsilon = 1e-5);
Tensor rms_norm(Operand x, Operand scale, Param<int> axis = -1, Param<double> epsilon = 1e-6);
/// [N,…,C]
Tensor group_norm(Operand x, Param<int> groups, Operand scale, Operand shift,
                  Param<double> epsilon = 1e-5);
struct BatchNormResult {
  Tensor y, mean, variance;
};
/// Normalises with the batch's own moments over all axes but the last.
BatchNormResult batch_norm_training(Operand x, Operand scale, Operand shift,
                                    Param<double> epsilon = 1e-5);
Tensor batch_norm_inference(Operand x, Operand scale, Operand shift, Operand mean, Operand variance,
                            Param<double> epsilon = 1e-5);
/// −Σ targets · log_softmax(logits) over `axis`.
Tensor cross_entropy(Operand logits, Operand targets, Param<int> axis = -1);
/// `labels` are class indices; result has the logits' shape without the last axis.
Tensor sparse_cross_entropy(Operand logits, Operand labels);
Tensor l2_loss(Operand x);  ///< Σ x² / 2
Tensor sum_of_squares(Operand x);

// --- images: float [..., H, W, 3] of red, green and blue in 0 … 1 --------------------------------

/// Away from (factor > 1) or towards each channel's mean.
Tensor adjust_contrast(Operand images, Operand factor);
Tensor adjust_saturation(Operand images, Operand factor);
/// Turns the hue by `delta` of a full circle.
Tensor adjust_hue(Operand images, Operand delta);
Tensor rgb_to_hsv(Operand images);
Tensor rgb_to_grayscale(Operand images);  ///< luminance (ITU-R BT.601), [..., H, W, 1]
Tensor hsv_to_rgb(Operand images);

/// How an image of another size is made: of the nearest pixel, or by the kernel of that name.
enum class Resize : std::uint8_t { nearest, linear, cubic, lanczos3, lanczos5 };
/// x with the extents `shape`, of the same rank, as samples at the middles of the new pixels. Where
/// an axis shrinks the kernel is widened with `antialias`. Weights beyond the edges are left out,
/// and the others scaled to sum 1. Floats; integers become f32 (but for nearest).
/// Throws: Error if the rank differs, or an axis that changes is empty. Source: JAX `image.resize`.
Tensor resize(Operand x, const Shape& shape, Resize method = Resize::linear, bool antialias = true);
/// Windows of images, each brought to one size by linear interpolation between pixels (or by the
/// nearest).
/// Shapes: images [N, H, W, C]; boxes [M, 4]: y0, x0, y1, x1, where 0 is the middle of the first
/// pixel and 1 of the last, reversed ones turn the window around; box_images i32 [M] → [M, height,
/// width, C]. Differentiable in images and boxes. What lies outside is `outside`.
/// Throws: Error if shapes do not fit. Source: TensorFlow `image.crop_and_resize`.
Tensor crop_and_resize(Operand images, Operand boxes, Operand box_images,
                       Param<std::int64_t> height, Param<std::int64_t> width,
                       Resize method = Resize::linear, Operand outside = 0.0);

}  // namespace vt
