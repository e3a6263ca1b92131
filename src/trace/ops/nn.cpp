// Functions that networks are made of: softmax, activations, normalisations, losses. All take their
// statistics in at least f32.

#include <vt/detail/message.hpp>
#include <vt/special.hpp>

#include "support/indexing.hpp"
#include "support/operands.hpp"

namespace vt::detail::networks {

/// A float operand computed in at least f32, and the dtype to give back.
struct Wide {
  Tensor x;
  DType result;
};
inline Wide wide(std::string_view name, const Operand& x) {
  need(name, x.tensor, x.where);
  if (is_complex(x.tensor.dtype()))
    refuse(ErrorKind::dtype, name, "not defined for complex numbers", x.tensor, x.where);
  const Tensor t = to_float(x.tensor, x.where);
  return {widened(t, x.where), t.dtype()};
}
inline Tensor narrowed(const Tensor& y, DType d, CallSite where) {
  return cast(y, d, aval_of(y).weak, where);
}

/// `part` lacks `axes` of `shape`; broadcasts it over them.
inline Tensor over(const Tensor& part, const Shape& shape, const Axes& axes, CallSite where) {
  return broadcast_along(part, shape, other_axes(axes, shape.rank()), where);
}

/// x less its largest element along the axis, which is a constant to the derivative, as it cancels.
inline Tensor shifted(const Tensor& x, int axis, CallSite where) {
  return x - over(stop_gradient(reduced(Op::reduce_max, x, Axes(axis), where)), x.shape(),
                  Axes(axis), where);
}

inline Tensor log_softmax_of(const Tensor& x, int axis, CallSite where) {
  if (x.dim(axis) == 0) return x;
  const Tensor s = shifted(x, axis, where);
  return s - over(log(reduced(Op::reduce_sum, exp(s), Axes(axis), where)), s.shape(), Axes(axis),
                  where);
}

/// −log softmax(x) at the label along the last axis. Its slope at the label is −Σ of the others'
/// probabilities, not p − 1, which has no digit left where p is nearly 1.
std::vector<Tensor> cost_of_label(std::span<const Tensor> a, CallSite where) {
  const UserLine line(where);
  const Tensor &x = a[0], &label = a[1];
  const int last = x.rank() - 1;
  const Tensor picked = take_along_axis(log_softmax_of(x, last, where), label, last);
  return {-reduced(Op::reduce_sum, picked, Axes(last), where)};
}
std::vector<Tensor> cost_and_tangent(std::span<const Tensor> a, CallSite where) {
  const UserLine line(where);
  const Tensor &x = a[0], &label = a[1], &tangent = a[2];
  const int last = x.rank() - 1;
  const std::int64_t classes = x.dim(last);
  const auto sum = [&](const Tensor& t) {
    return over(reduced(Op::reduce_sum, t, Axes(last), where), x.shape(), Axes(last), where);
  };
  const DType index = classes <= std::numeric_limits<std::int32_t>::max() ? i32 : i64;
  // The class that take_along_axis takes.
  const Tensor at =
      clip(wrapped_index("sparse_cross_entropy", label, classes, where), 0, classes - 1);
  const Tensor is_label =
      broadcast(cast(at, index, where), x.shape(), where) ==
      broadcast_along(counted(index, Shape{classes}, 0, where), x.shape(), Axes(last), where);
  const Tensor e = exp(shifted(x, last, where)), all = sum(e);
  const Tensor slope = vt::where(is_label, -sum(vt::where(is_label, 0.0, e)), e) / all;
  return {cost_of_label(a.first(2), where)[0],
          reduced(Op::reduce_sum, slope * tangent, Axes(last), where)};
}

/// A scale or shift for one axis: a scalar, or a vector of its size.
inline Tensor along_axis(std::string_view name, const char* what, const Tensor& t, const Tensor& x,
                         int axis, CallSite where) {
  need(name, t, where);
  if (t.rank() == 0) return t;
  if (t.rank() != 1 || t.dim(0) != x.dim(axis))
    refuse(ErrorKind::shape, name,
           formatted("the {} must be a scalar or a vector of the size of axis {}", what, axis), x,
           t, where);
  return broadcast_along(t, x.shape(), Axes(axis), where);
}

inline Tensor average(const Tensor& x, const Axes& axes, CallSite where) {
  return reduced(Op::reduce_sum, x, axes, where) /
         static_cast<double>(extent_along(x.shape(), axes));
}

struct Moments {
  Tensor centred, variance, mean;
};
inline Moments moments(const Tensor& x, const Axes& axes, CallSite where) {
  Moments m;
  m.mean = average(x, axes, where);
  m.centred = x - over(m.mean, x.shape(), axes, where);
  m.variance = average(square(m.centred), axes, where);
  return m;
}
inline Tensor normalised(const Moments& m, const Axes& axes, double epsilon, CallSite where) {
  return m.centred * over(rsqrt(m.variance + epsilon), m.centred.shape(), axes, where);
}

inline int last_axis(std::string_view name, const Tensor& x, CallSite where) {
  if (x.rank() == 0) refuse(ErrorKind::shape, name, "needs at least one axis", x, where);
  return x.rank() - 1;
}

}  // namespace vt::detail::networks

namespace vt {

namespace nw = detail::networks;

// --- softmax -------------------------------------------------------------------------------------

Tensor softmax(Operand x, Param<int> axis) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  const nw::Wide t = nw::wide("softmax", x);
  const int along = detail::normal_axis("softmax", axis, x.tensor, w);
  if (t.x.dim(along) == 0) return nw::narrowed(t.x, t.result, w);
  const Tensor e = exp(nw::shifted(t.x, along, w));
  return nw::narrowed(e / nw::over(detail::reduced(detail::Op::reduce_sum, e, Axes(along), w),
                                   e.shape(), Axes(along), w),
                      t.result, w);
}
Tensor log_softmax(Operand x, Param<int> axis) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  const nw::Wide t = nw::wide("log_softmax", x);
  return nw::narrowed(
      nw::log_softmax_of(t.x, detail::normal_axis("log_softmax", axis, x.tensor, w), w), t.result,
      w);
}

// --- activations ---------------------------------------------------------------------------------
// The bends are `where`s whose unused side is fed a harmless argument, so that neither values nor
// gradients turn NaN there.

Tensor relu(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("relu", x.tensor, x.where);
  const Tensor t = detail::to_number(x.tensor, x.where);
  return where(t <= 0, 0, t);  // this way round NaN stays NaN
}
Tensor relu6(Operand x) {
  const detail::UserLine line(x.where);
  const Tensor t = relu(x);
  return where(t >= 6, 6, t);
}
Tensor elu(Operand x, Param<double> alpha) {
  const detail::UserLine line(x.where);
  const nw::Wide t = nw::wide("elu", x);
  const Tensor positive = t.x > 0;
  return nw::narrowed(where(positive, t.x, double{alpha} * expm1(where(positive, 0.0, t.x))),
                      t.result, x.where);
}
Tensor selu(Operand x) {
  const detail::UserLine line(x.where);
  const nw::Wide t = nw::wide("selu", x);
  const Tensor y = 1.0507009873554804934193349852946 * elu(t.x, 1.6732632423543772848170429916717);
  return nw::narrowed(y, t.result, x.where);
}
Tensor gelu(Operand x, bool approximate) {
  const detail::UserLine line(x.where);
  const nw::Wide t = nw::wide("gelu", x);
  // x Φ(x). ½ (1 + tanh u) is sigmoid(2 u), and keeps the left tail's digits.
  const double slope = 2 * 0.79788456080286535588;
  const Tensor gate = approximate ? sigmoid(t.x * (slope + slope * 0.044715 * square(t.x)))
                                  : vt::special::ndtr(t.x);
  return nw::narrowed(t.x * gate, t.result, x.where);
}
Tensor silu(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("silu", x.tensor, x.where);
  const Tensor t = detail::to_float(x.tensor, x.where), w = detail::widened(t, x.where);
  return nw::narrowed(w * sigmoid(w), t.dtype(), x.where);
}
Tensor leaky_relu(Operand x, Param<double> slope) {
  const detail::UserLine line(x.where);
  detail::need("leaky_relu", x.tensor, x.where);
  const Tensor t = detail::to_float(x.tensor, x.where);
  return where(t >= 0, t, double{slope} * t);
}
Tensor softplus(Operand x) {
  const detail::UserLine line(x.where);
  const nw::Wide t = nw::wide("softplus", x);
  // log(1 + eˣ) = max(x, 0) + log1p(e^−|x|), chosen by `where` so that the derivative at 0 is one
  // half.
  const Tensor positive = t.x > 0;
  return nw::narrowed(where(positive, t.x, 0.0) + log1p(exp(where(positive, -t.x, t.x))), t.result,
                      x.where);
}
Tensor softsign(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("softsign", x.tensor, x.where);
  const Tensor t = detail::to_float(x.tensor, x.where);
  return t / (1.0 + abs(t));
}
Tensor hard_tanh(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("hard_tanh", x.tensor, x.where);
  const Tensor t = detail::to_number(x.tensor, x.where);
  if (is_unsigned(t.dtype())) return minimum(t, 1);
  return where(t > 1, 1, where(t < -1, -1, t));
}

// --- normalisations ------------------------------------------------------------------------------

Tensor layer_norm(Operand x, Operand scale, Operand shift, Param<int> axis, Param<double> epsilon) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  const nw::Wide t = nw::wide("layer_norm", x);
  const int along = detail::normal_axis("layer_norm", axis, x.tensor, w);
  const Tensor s = nw::along_axis("layer_norm", "scale", scale.tensor, t.x, along, w),
               b = nw::along_axis("layer_norm", "shift", shift.tensor, t.x, along, w);
  const Axes axes(along);
  return nw::narrowed(nw::normalised(nw::moments(t.x, axes, w), axes, epsilon, w) * s + b, t.result,
                      w);
}
Tensor rms_norm(Operand x, Operand scale, Param<int> axis, Param<double> epsilon) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  const nw::Wide t = nw::wide("rms_norm", x);
  const int along = detail::normal_axis("rms_norm", axis, x.tensor, w);
  const Tensor s = nw::along_axis("rms_norm", "scale", scale.tensor, t.x, along, w);
  const Axes axes(along);
  const Tensor inverse = rsqrt(nw::average(square(t.x), axes, w) + double{epsilon});
  return nw::narrowed(t.x * nw::over(inverse, t.x.shape(), axes, w) * s, t.result, w);
}
Tensor group_norm(Operand x, Param<int> groups, Operand scale, Operand shift,
                  Param<double> epsilon) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  const nw::Wide t = nw::wide("group_norm", x);
  const int last = nw::last_axis("group_norm", x.tensor, w);
  const Shape& shape = t.x.shape();
  if (last < 1 || groups < 1 || shape.back() % groups != 0)
    detail::refuse(ErrorKind::shape, "group_norm",
                   detail::formatted("needs [N,…,C] with C a multiple of the {} groups", groups),
                   x.tensor, w);
  const Tensor s = nw::along_axis("group_norm", "scale", scale.tensor, t.x, last, w),
               b = nw::along_axis("group_norm", "shift", shift.tensor, t.x, last, w);
  Shape grouped = shape;
  grouped.back() = groups;
  grouped.push_back(shape.back() / groups);
  Axes axes;
  for (int i = 1; i < grouped.rank(); ++i)
    if (i != last) axes.push_back(i);
  const Tensor g = detail::reshaped(t.x, grouped, w);
  const Tensor y =
      detail::reshaped(nw::normalised(nw::moments(g, axes, w), axes, epsilon, w), shape, w);
  return nw::narrowed(y * s + b, t.result, w);
}

BatchNormResult batch_norm_training(Operand x, Operand scale, Operand shift,
                                    Param<double> epsilon) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  const nw::Wide t = nw::wide("batch_norm_training", x);
  const int last = nw::last_axis("batch_norm_training", x.tensor, w);
  const Tensor s = nw::along_axis("batch_norm_training", "scale", scale.tensor, t.x, last, w);
  const Tensor b = nw::along_axis("batch_norm_training", "shift", shift.tensor, t.x, last, w);
  const Axes axes = Axes::first(last);
  const nw::Moments m = nw::moments(t.x, axes, w);
  const Tensor y = nw::normalised(m, axes, epsilon, w) * s + b;
  return {nw::narrowed(y, t.result, w), nw::narrowed(m.mean, t.result, w),
          nw::narrowed(m.variance, t.result, w)};
}
Tensor batch_norm_inference(Operand x, Operand scale, Operand shift, Operand mean, Operand variance,
                            Param<double> epsilon) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  const nw::Wide t = nw::wide("batch_norm_inference", x);
  const int last = nw::last_axis("batch_norm_inference", x.tensor, w);
  auto placed = [&](const char* what, const Tensor& p) {
    return nw::along_axis("batch_norm_inference", what, p, t.x, last, w);
  };
  placed("variance", variance.tensor);  // its shape is checked before it is worked on
  detail::need("batch_norm_inference", scale.tensor, w);
  // One factor per channel first: a single multiply-add per element is left.
  const Tensor factor =
      rsqrt(detail::widened(detail::to_float(variance.tensor, w), w) + double{epsilon});
  const Tensor s = placed("scale", scale.tensor), centre = placed("mean", mean.tensor),
               b = placed("shift", shift.tensor);
  const Tensor f =
      factor.rank() == 0 ? factor : detail::broadcast_along(factor, t.x.shape(), Axes(last), w);
  return nw::narrowed((t.x - centre) * (f * s) + b, t.result, w);
}

// --- losses --------------------------------------------------------------------------------------

Tensor cross_entropy(Operand logits, Operand targets, Param<int> axis) {
  const CallSite w = logits.where;
  const detail::UserLine line(w);
  const nw::Wide t = nw::wide("cross_entropy", logits);
  detail::need("cross_entropy", targets.tensor, w);
  const int along = detail::normal_axis("cross_entropy", axis, logits.tensor, w);
  const Tensor operands[2] = {logits.tensor, targets.tensor};
  if (detail::broadcast_shape("cross_entropy", operands, w) != t.x.shape())
    detail::refuse(ErrorKind::shape, "cross_entropy", "the targets must broadcast to the logits",
                   logits.tensor, targets.tensor, w);
  const Tensor p = nw::log_softmax_of(t.x, along, w);
  // A class that cannot be (target 0) costs nothing, even where its log-probability is −inf.
  const Tensor q = detail::cast(targets.tensor, t.x.dtype(), w);
  const Tensor cost = q * where((q == 0) & isinf(p), 0.0, p);
  return nw::narrowed(-detail::reduced(detail::Op::reduce_sum,
                                       detail::broadcast(cost, t.x.shape(), w), Axes(along), w),
                      t.result, w);
}

Tensor sparse_cross_entropy(Operand logits, Operand labels) {
  const CallSite w = detail::user_line(logits.where);
  const detail::UserLine line(w);
  const nw::Wide t = nw::wide("sparse_cross_entropy", logits);
  detail::need("sparse_cross_entropy", labels.tensor, w);
  nw::last_axis("sparse_cross_entropy", logits.tensor, w);
  Shape shape = t.x.shape();
  const std::int64_t classes = shape.back();
  shape.pop_back();
  if (labels.tensor.shape() != shape || classes == 0)
    detail::refuse(
        ErrorKind::shape, "sparse_cross_entropy",
        detail::formatted("the labels must have shape {} and there must be classes", shape.str()),
        logits.tensor, labels.tensor, w);
  if (!is_int(labels.tensor.dtype()))
    detail::refuse(ErrorKind::dtype, "sparse_cross_entropy",
                   "labels must be integers; for probabilities use vt::cross_entropy",
                   logits.tensor, labels.tensor, w);
  const Tensor operands[2] = {t.x, expand_dims(labels.tensor, -1)};
  const detail::FlatFunction value = [w](std::span<const Tensor> a) {
    return nw::cost_of_label(a, w);
  };
  const detail::FlatFunction rule = [w](std::span<const Tensor> a) {
    return nw::cost_and_tangent(a, w);
  };
  return nw::narrowed(detail::custom_jvp_flat(value, rule, operands, w)[0], t.result, w);
}

Tensor sum_of_squares(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("sum_of_squares", x.tensor, x.where);
  return sum(detail::squared_magnitude(detail::to_number(x.tensor, x.where), x.where));
}
Tensor l2_loss(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("l2_loss", x.tensor, x.where);
  return sum_of_squares(detail::to_float(x.tensor, x.where)) * 0.5;
}

}  // namespace vt
