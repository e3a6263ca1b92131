// Dtype promotion, weak scalars, broadcasting and axis checks shared by all public functions.
#include "promote.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <vt/detail/message.hpp>

namespace vt::detail {

// --- messages ------------------------------------------------------------------------------------

void refuse(ErrorKind kind, std::string_view name, const std::string& what,
            std::span<const Tensor> operands, Where where) {
  std::string message = worded("vt::{}: {}", name, what);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    message += i ? " · " : ": ";
    if (i == 8 && operands.size() > 9) {
      message += worded("… ({} operands)", operands.size());
      break;
    }
    message += operands[i].defined() ? aval_of(operands[i]).str() : std::string("(empty)");
  }
  fail(kind, std::move(message), user_line(where));
}
void refuse(ErrorKind kind, std::string_view name, const std::string& what, const Tensor& a,
            const Tensor& b, Where where) {
  const Tensor both[2] = {a, b};
  refuse(kind, name, what, std::span<const Tensor>(both, 2), where);
}
void refuse_empty(std::string_view name, Where where) {
  refuse(ErrorKind::value, name, "an operand is an empty Tensor", std::span<const Tensor>(), where);
}

// --- dtypes --------------------------------------------------------------------------------------

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
  if (is_complex(weak)) return {is_float(strong) ? complex_dtype(strong) : c64, false};
  return {is_float(weak) ? f32 : i32, false};
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

Tensor cast(Tensor t, DType dtype, bool weak, Where where) {
  Node* n = t.node();
  const Aval& aval = aval_of(t);
  if (aval.dtype == dtype && aval.weak == weak) return t;
  if (is_complex(aval.dtype) && !is_complex(dtype) && !is_bool(dtype))
    refuse(ErrorKind::dtype, "astype",
           worded("to {} would drop the imaginary part; take vt::real, vt::imag or vt::abs",
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
    mine.aval.dtype = n->avals[0].dtype = dtype;
    mine.aval.weak = n->avals[0].weak = weak;
    return t;
  }
  return full_tensor(value, Aval(dtype, aval.shape, weak));
}

bool integer_fits(const Scalar& value, DType dtype, Literal as) {
  if (!is_int(dtype) || !is_int(value.dtype) || value.dtype == dtype) return true;
  const auto bits = static_cast<int>(8 * size_of(dtype));
  if (!is_unsigned(value.dtype) && value.integer < 0)
    return (!is_unsigned(dtype) || as == Literal::bits) && value.integer >= std::int64_t{-1}
                                                                                << (bits - 1);
  const bool full_range = is_unsigned(dtype) || as == Literal::bits;
  return value.natural >> (full_range ? bits - 1 : bits - 2) <= 1;
}
std::string integer_text(const Scalar& value) {
  return is_unsigned(value.dtype) ? worded("{}", value.natural) : worded("{}", value.integer);
}

namespace promotion {

// What a weak Tensor that holds one number for all lanes is made of.
const Node* source_of(const Tensor& t) {
  const Node* n = t.node();
  while (n->op == Op::broadcast_in_dim && !n->inputs.empty()) n = n->inputs[0].node();
  return n;
}

void note_met(const Node* n, DType dtype, Literal as) {
  ThreadState& state = thread_state();
  if (n->op != Op::input || !is_int(n->avals[0].dtype) || !is_int(dtype)) return;
  if (n->level == 0 || n->level > state.scopes.size() || state.scopes[n->level - 1u].id != n->scope)
    return;
  ScopeState& scope = state.scopes[n->level - 1u];
  const auto at = std::find_if(scope.inputs.begin(), scope.inputs.end(),
                               [&](const Tensor& input) { return input.node() == n; });
  const MetNumber met{static_cast<std::size_t>(at - scope.inputs.begin()), dtype, as};
  if (at != scope.inputs.end() &&
      std::find(scope.met.begin(), scope.met.end(), met) == scope.met.end())
    scope.met.push_back(met);
}

}  // namespace promotion

const Scalar* literal_of(const Tensor& t) {
  if (!t.node()->avals[0].weak) return nullptr;
  const Node* n = promotion::source_of(t);
  return n->op == Op::full ? &n->params->as<FullParams>().value : nullptr;
}

bool have_misfit(std::span<const Tensor> arguments, const MetNumbers& met) {
  return any_of(met, [&](const MetNumber& m) {
    return misfit(arguments[m.argument], m.dtype, m.as) != nullptr;
  });
}

const Scalar* misfit(const Tensor& t, DType dtype, Literal as) {
  if (t.node()->avals[0].weak) promotion::note_met(promotion::source_of(t), dtype, as);
  const Scalar* number = literal_of(t);
  return !number || integer_fits(*number, dtype, as) ? nullptr : number;
}

void check_literals(std::string_view name, std::span<const Tensor> operands, DType dtype,
                    Literal as, Where where) {
  for (const Tensor& t : operands) {
    if (const Scalar* number = misfit(t, dtype, as))
      refuse(ErrorKind::dtype, name,
             worded(operands.size() == 1 ? "{} does not fit {}"
                                         : "{} does not fit the {} of the other operand; convert "
                                           "that one first, as with .astype(vt::i64)",
                    integer_text(*number), name_of(dtype)),
             operands, where);
  }
}

Tensor to_float(Tensor t, Where where) {
  const Aval& a = aval_of(t);
  if (is_inexact(a.dtype)) return t;
  const bool weak = a.weak;
  return cast(std::move(t), weak ? f64 : f32, weak, where);
}
Tensor squared_magnitude(const Tensor& t, Where) {
  return is_complex(aval_of(t).dtype) ? square(real(t)) + square(imag(t)) : square(t);
}
Tensor to_number(Tensor t, Where where) {
  const Aval& a = aval_of(t);
  if (!is_bool(a.dtype)) return t;
  const bool weak = a.weak;
  return cast(std::move(t), i32, weak, where);
}
Tensor to_bool(Tensor t, Where where) {
  return is_bool(aval_of(t).dtype) ? std::move(t) : cast(std::move(t), bool_, where);
}
Tensor widened(Tensor t, Where where) {
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

// --- shapes --------------------------------------------------------------------------------------

Shape broadcast_shape(std::string_view name, std::span<const Tensor> operands, Where where) {
  std::size_t rank = 0;
  DType widest = bool_;
  for (const Tensor& t : operands) {
    rank = std::max(rank, aval_of(t).shape.size());
    if (size_of(aval_of(t).dtype) > size_of(widest)) widest = aval_of(t).dtype;
  }
  Shape result = Shape::filled(rank, 1);
  for (const Tensor& t : operands) {
    const Shape& s = aval_of(t).shape;
    const std::size_t shift = rank - s.size();
    for (std::size_t i = 0; i < s.size(); ++i) {
      std::int64_t& r = result[i + shift];
      if (r == s[i] || s[i] == 1) continue;
      if (r != 1) refuse(ErrorKind::shape, name, "shapes do not broadcast", operands, where);
      r = s[i];
    }
  }
  need_size(name, widest, result, operands, where);
  return result;
}

bool stretches(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const std::size_t shift = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != to[i + shift] && from[i] != 1) return false;
  return all_of(to, [](std::int64_t d) { return d >= 0; });
}

Tensor spread(const Tensor& t, const Shape& shape, const Axes& axes, Where where) {
  const Aval& a = aval_of(t);
  if (a.shape == shape) return t;
  if (t.node()->op == Op::full) {
    need_size("broadcast_in_dim", a.dtype, shape, {&t, 1}, where);
    return full_tensor(t.node()->params->as<FullParams>().value, Aval(a.dtype, shape, a.weak));
  }
  return emit(Op::broadcast_in_dim, make_params(BroadcastParams{shape, axes}), {t}, where);
}

Tensor broadcast(const Tensor& t, const Shape& shape, Where where) {
  const Shape& from = aval_of(t).shape;
  if (from == shape) return t;
  const int shift = shape.rank() - from.rank();
  Axes axes;
  for (int i = 0; i < from.rank(); ++i) axes.push_back(i + shift);
  return spread(t, shape, axes, where);
}

Tensor reshaped(const Tensor& t, const Shape& shape, Where where) {
  const Aval& a = aval_of(t);
  if (a.shape == shape) return t;
  if (t.node()->op == Op::full && shape.elements() == a.elements())
    return full_tensor(t.node()->params->as<FullParams>().value, Aval(a.dtype, shape, a.weak));
  return emit(Op::reshape, make_params(ShapeParams{shape}), {t}, where);
}

Tensor permuted(const Tensor& t, const Axes& permutation, Where where) {
  bool identity = true;
  for (std::size_t i = 0; i < permutation.size(); ++i)
    identity = identity && permutation[i] == static_cast<int>(i);
  if (identity) return t;
  return emit(Op::transpose, make_params(PermutationParams{permutation}), {t}, where);
}

void need_size(std::string_view name, DType dtype, const Shape& shape,
               std::span<const Tensor> operands, Where where) {
  if (!addressable(dtype, shape))
    refuse(ErrorKind::shape, name, size_fault(dtype, shape), operands, where);
}

Tensor filled(std::string_view name, Scalar value, DType dtype, const Shape& shape, Where where) {
  need_size(name, dtype, shape, {}, where);
  return full_tensor(value.converted(dtype), Aval(dtype, shape));
}

Tensor counted(DType dtype, const Shape& shape, int axis, Where where) {
  return emit(Op::iota, make_params(IotaParams{Aval(dtype, shape), axis}),
              std::span<const Tensor>(), where);
}

Tensor sliced(const Tensor& t, int axis, std::int64_t start, std::int64_t limit,
              std::int64_t stride, Where where) {
  const Shape& shape = aval_of(t).shape;
  if (start == 0 && limit == extent(shape, axis) && stride == 1) return t;
  SliceParams p;
  p.start.resize(shape.size(), 0);
  p.limit = shape;
  p.stride.resize(shape.size(), 1);
  const auto a = static_cast<std::size_t>(axis);
  p.start[a] = start;
  p.limit[a] = limit;
  p.stride[a] = stride;
  return emit(Op::slice, make_params(std::move(p)), {t}, where);
}

int normal_axis(std::string_view name, int axis, int rank, const Tensor& operand, Where where) {
  const int normal = axis < 0 ? axis + rank : axis;
  if (normal < 0 || normal >= rank)
    refuse(ErrorKind::shape, name, worded("axis {} out of range for rank {}", axis, rank), operand,
           where);
  return normal;
}
int normal_axis(std::string_view name, int axis, const Tensor& operand, Where where) {
  return normal_axis(name, axis, aval_of(operand).shape.rank(), operand, where);
}

Axes normal_axes(std::string_view name, const Axes& axes, int rank, const Tensor& operand,
                 Where where) {
  Axes result;
  for (int axis : axes) {
    const int normal = normal_axis(name, axis, rank, operand, where);
    if (result.contains(normal))
      refuse(ErrorKind::shape, name, worded("axes {} name axis {} twice", axes.str(), normal),
             operand, where);
    result.push_back(normal);
  }
  return result;
}

Axes reduction_axes(std::string_view name, const ReduceAxes& axes, const Tensor& operand,
                    Where where) {
  const int rank = aval_of(operand).shape.rank();
  if (axes.all()) return Axes::first(rank);
  Axes result = normal_axes(name, axes.axes(), rank, operand, where);
  insertion_sort(result);
  return result;
}

Axes other_axes(const Axes& axes, int rank) {
  Axes result;
  for (int i = 0; i < rank; ++i)
    if (!axes.contains(i)) result.push_back(i);
  return result;
}

std::int64_t extent_along(const Shape& s, const Axes& axes) {
  std::int64_t n = 1;
  for (int axis : axes) n *= extent(s, axis);
  return n;
}

// --- emission ------------------------------------------------------------------------------------

Tensor emit_fitting(Op op, ParamsRef params, std::span<const Tensor> operands, DType dtype,
                    bool weak, Where where) {
  const Shape* shape = &aval_of(operands[0]).shape;
  for (const Tensor& t : operands.subspan(1))
    if (shape->empty()) shape = &aval_of(t).shape;
  where = user_line(where);
  if (size_of(dtype) > size_of(aval_of(operands[0]).dtype))
    need_size(name_of(op), dtype, *shape, operands, where);
  Node* n = place_node(op, std::move(params), operands, level_for(op, {}, operands, where), where);
  n->avals.emplace_back(dtype, *shape, weak);
  return Tensor::adopt(n);
}

Tensor reduced(Op op, const Tensor& t, const Axes& axes, Where where) {
  if (axes.empty()) return t;
  return emit(op, make_params(AxesParams{axes}), {t}, where);
}

}  // namespace vt::detail
