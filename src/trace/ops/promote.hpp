// What every public function does to its operands before it emits a primitive: dtype promotion with
// weak scalars, NumPy broadcasting, axes and their messages, and the line that ops inside a
// composed function are attributed to.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>

#include <vt/ops.hpp>

#include "../ir/graph.hpp"
#include "../record/node.hpp"
#include "../record/thread_state.hpp"

namespace vt::detail {

// --- lines ---------------------------------------------------------------------------------------

/// The line to blame: that of the pass or the composed function at work if there is one, else
/// `where`.
inline Where user_line(Where where) {
  const Where& outer = thread_state().where;
  return outer.file ? outer : where;
}

/// While it lives, ops are attributed to the line that called a composed function (unless a pass
/// has set one already).
class UserLine {
 public:
  explicit UserLine(Where where) : state_(thread_state()), before_(state_.where) {
    if (!before_.file) state_.where = where;
  }
  ~UserLine() { state_.where = before_; }
  UserLine(const UserLine&) = delete;
  UserLine& operator=(const UserLine&) = delete;

 private:
  ThreadState& state_;
  Where before_;
};

// --- messages ------------------------------------------------------------------------------------

/// Throws "vt::NAME: WHAT: operand · operand; at file:line". `name` comes without "vt::".
[[noreturn]] void refuse(ErrorKind kind, std::string_view name, const std::string& what,
                         std::span<const Tensor> operands, Where where);
[[noreturn]] inline void refuse(ErrorKind kind, std::string_view name, const std::string& what,
                                const Tensor& a, Where where) {
  refuse(kind, name, what, std::span<const Tensor>(&a, 1), where);
}
[[noreturn]] void refuse(ErrorKind kind, std::string_view name, const std::string& what,
                         const Tensor& a, const Tensor& b, Where where);
[[noreturn]] void refuse_empty(std::string_view name, Where where);

/// Throws if the Tensor is an empty handle.
inline void need(std::string_view name, const Tensor& t, Where where) {
  if (!t.defined()) [[unlikely]]
    refuse_empty(name, where);
}

// --- dtypes --------------------------------------------------------------------------------------

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

/// `t` as `dtype`. A `full` converts now; it is edited in place if nobody else holds it. Throws:
/// complex numbers do not become real ones.
Tensor cast(Tensor t, DType dtype, bool weak, Where where);
inline Tensor cast(Tensor t, DType dtype, Where where) {
  return cast(std::move(t), dtype, false, where);
}
/// Can `dtype` hold this integer? Numbers of other kinds are not looked at.
bool integer_fits(const Scalar&, DType dtype, Literal);
std::string integer_text(const Scalar&);
/// The value of a C++ number, not yet converted; null of all else.
const Scalar* literal_of(const Tensor&);
/// The same of an integer that `dtype` cannot hold. Of one that is an argument of what is being
/// recorded it is noted that it met `dtype`.
const Scalar* misfit(const Tensor&, DType dtype, Literal);
/// Throws if an operand is a C++ integer, not yet converted, that `dtype` cannot hold: nothing
/// sensible could come of wrapping it.
void check_literals(std::string_view name, std::span<const Tensor> operands, DType dtype, Literal,
                    Where where);
/// Integers and bools become f32 (f64 if weak, so that a float operand met later gets all its
/// digits). Complex numbers stay.
Tensor to_float(Tensor t, Where where);
/// |t|², a real Tensor.
Tensor squared_magnitude(const Tensor& t, Where where);
/// Bools become i32.
Tensor to_number(Tensor t, Where where);
/// Nonzero → true.
Tensor to_bool(Tensor t, Where where);
/// f16 and bf16 become f32: composed functions compute in it and convert back, as sums of many
/// 16-bit roundings are useless.
Tensor widened(Tensor t, Where where);
/// bool, i8, i16 → i32; u8, u16 → u32: the dtype of sums and products.
DType sum_dtype(DType d);
/// What every element is, if that is known while recording.
inline std::optional<double> known_number(const Tensor& t) {
  if (t.node()->op != Op::full) return std::nullopt;
  return t.node()->params->as<FullParams>().value.to_double();
}
/// The distance of neighbouring numbers of a float dtype just above |x|, which is finite.
double step_at(DType, double x);
/// The dtype of counts up to n, and of the indices of n elements: i32, beyond 2^31 i64.
constexpr DType count_dtype(std::int64_t n) {
  return n > std::numeric_limits<std::int32_t>::max() ? i64 : i32;
}

// --- shapes --------------------------------------------------------------------------------------

/// NumPy's common shape. Throws naming `name` and the operands.
Shape broadcast_shape(std::string_view name, std::span<const Tensor> operands, Where where);
/// Does NumPy's broadcasting stretch `from` to `to`?
bool stretches(const Shape& from, const Shape& to);
/// Stretches `t` to `shape` (rank extended on the left); the shapes are known to fit.
Tensor broadcast(const Tensor& t, const Shape& shape, Where where);
/// Operand axis i becomes axis axes[i] (increasing) of `shape`.
Tensor spread(const Tensor& t, const Shape& shape, const Axes& axes, Where where);
/// reshape, unless it is one already.
Tensor reshaped(const Tensor& t, const Shape& shape, Where where);
/// transpose, unless it is the identity.
Tensor permuted(const Tensor& t, const Axes& permutation, Where where);
/// Throws, naming the function, unless a shape that it computes is addressable. The ops it is made
/// of check theirs, but name themselves.
void need_size(std::string_view name, DType, const Shape&, std::span<const Tensor> operands, Where);
/// A checked leaf: every element `value`, which is converted.
Tensor filled(std::string_view name, Scalar value, DType dtype, const Shape& shape, Where where);
/// 0, 1, … along `axis`.
Tensor counted(DType dtype, const Shape& shape, int axis, Where where);
/// start + i · (stop − start) / steps for numbers i in f64, and with `endpoint` exactly `stop`
/// where i is `steps`: the numbers of linspace.
Tensor spaced(const Tensor& i, double start, double stop, std::int64_t steps, bool endpoint);
/// The elements start … limit − 1 of one axis.
Tensor sliced(const Tensor& t, int axis, std::int64_t start, std::int64_t limit,
              std::int64_t stride, Where where);

/// 0 ≤ result < rank. Throws naming the operand.
int normal_axis(std::string_view name, int axis, const Tensor& operand, Where where);
/// The same for an axis of a result of `rank` axes (stack, expand_dims …).
int normal_axis(std::string_view name, int axis, int rank, const Tensor& operand, Where where);
/// Normalised, no duplicates, in the order given.
Axes normal_axes(std::string_view name, const Axes& axes, int rank, const Tensor& operand,
                 Where where);
/// The axes of a reduction: sorted.
Axes reduction_axes(std::string_view name, const ReduceAxes& axes, const Tensor& operand,
                    Where where);
/// The axes 0 … rank − 1 that are not in `axes`.
Axes other_axes(const Axes& axes, int rank);
inline std::int64_t extent(const Shape& s, int axis) { return s[static_cast<std::size_t>(axis)]; }
/// Product of the extents along `axes`.
std::int64_t extent_along(const Shape& s, const Axes& axes);

// --- emission ------------------------------------------------------------------------------------

/// An element-wise primitive whose operands already fit: dtypes equal, each of the result's shape
/// or a scalar.
Tensor emit_fitting(Op op, ParamsRef params, std::span<const Tensor> operands, DType dtype,
                    bool weak, Where where);
/// A reduction of the primitive layer: sorted axes, dtype kept; none of the axes is no op at all.
Tensor reduced(Op op, const Tensor& t, const Axes& axes, Where where);

}  // namespace vt::detail
