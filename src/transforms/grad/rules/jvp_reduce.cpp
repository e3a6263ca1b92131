// jvp rules of reductions and of scans along an axis.

#include "../build.hpp"
#include "../jvp.hpp"

namespace vt::detail::jvp_rules {

namespace reduce_parts {
using namespace grad_build;

/// h with h_i = a_i · h_{i−1} + b_i along an axis, by doubling: log₂ n steps, each of plain
/// differentiable ops, linear in b.
inline Tensor linear_recurrence(Tensor a, Tensor b, int axis, bool reverse) {
  const std::int64_t n = a.shape()[axis];
  for (std::int64_t step = 1; step < n; step *= 2) {
    const std::int64_t by = reverse ? -step : step;
    b = binary(Op::add, b, binary(Op::mul, shifted(b, axis, by, 0), a));
    if (2 * step < n) a = binary(Op::mul, a, shifted(a, axis, by, 1));
  }
  return b;
}

/// The reduced axes brought behind the others and joined into one.
inline Tensor joined(const Tensor& x, const Axes& reduced) {
  if (reduced.size() == 1 && reduced[0] == x.rank() - 1) return x;
  Axes order = other_axes(x.rank(), reduced);
  Shape shape;
  for (int d : order) shape.push_back(x.shape()[d]);
  std::int64_t n = 1;
  for (int d : reduced) {
    order.push_back(d);
    n *= x.shape()[d];
  }
  shape.push_back(n);
  return with_shape(permuted(x, order), shape);
}

/// May the Graph of scalars run on arrays as it stands?
inline bool is_liftable(const GraphBody& body) {
  for (const Equation& e : body.equations) {
    const bool leaf = e.op == Op::full || e.op == Op::constant;
    const bool inner =
        e.op == Op::call && !e.as<CallParams>().rule && is_liftable(*e.as<CallParams>().body);
    if (!leaf && !inner && !is_elementwise(e.op)) return false;
  }
  return true;
}
}  // namespace reduce_parts

using namespace reduce_parts;

// Each element's factor is the product of all others, got without division: products of what is
// before and what is behind.
Tensor reduce_prod(const JvpCall& c) {
  const Axes& axes = c.as<AxesParams>().axes;
  const Val x = joined(c.x[0], axes), t = joined(c.t[0], axes);
  const int last = x.t.rank() - 1;
  const Val before = shifted(cumulate(Op::cumprod, x, last, false), last, 1, 1);
  const Val behind = shifted(cumulate(Op::cumprod, x, last, true), last, -1, 1);
  return sum_over(t * (before * behind), Axes(last));
}

// Equal extreme elements share the tangent.
Tensor reduce_extremum(const JvpCall& c) {
  const Axes& axes = c.as<AxesParams>().axes;
  const Tensor& x = c.x[0];
  const Val hit = convert_to(binary(Op::eq, x, unreduced(c.y, x.shape(), axes)), x.dtype());
  const Val weight = hit / Val(unreduced(sum_over(hit, axes), x.shape(), axes));
  return sum_over(Val(c.t[0]) * weight, axes);
}

Tensor lanes_extremum(const JvpCall& c) {
  const auto& p = c.as<CollectiveParams>();
  const ParamsRef over = make_params(CollectiveParams{p.axis, {}, p.shared});
  const Tensor most = p.shared ? emit(Op::spread, over, {c.y}, {}) : c.y;
  const Val hit = convert_to(binary(Op::eq, c.x[0], most), c.y.dtype());
  const auto summed = [&](const Val& x) { return Val(emit(Op::psum, over, {x}, {})); };
  return summed(Val(c.t[0]) * hit) / summed(hit);
}

// The user's function on pairs (value, tangent), combined as a tree over the reduced elements:
// associative functions do not mind the order, and every level is element-wise.
void reduce(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  const auto& p = c.as<ReduceParams>();
  const std::size_t n = c.x.size() / 2;
  const SmallVec<Tensor, 1> outputs = emit_all(c.equation.op, c.equation.params, c.x, {});
  results.assign(outputs.begin(), outputs.end());
  if (!is_liftable(*p.body))
    fail(ErrorKind::transform,
         "vt::reduce: the function must be element-wise to be differentiated; it is\n" +
             to_text(*p.body),
         c.equation.where);

  const int rank = c.x[0].rank();
  Axes order = p.axes;
  for (int d : other_axes(rank, p.axes)) order.push_back(d);
  Shape shape{1};
  for (int d : order) {
    if (p.axes.contains(d)) shape[0] *= c.x[0].shape()[d];
    else shape.push_back(c.x[0].shape()[d]);
  }
  auto lined_up = [&](const Tensor& x) {
    return x.defined() ? with_shape(permuted(x, order), shape) : x;
  };
  std::vector<Tensor> x, t;
  for (std::size_t i = 0; i < n; ++i) {
    x.push_back(lined_up(c.x[i]));
    t.push_back(lined_up(c.t[i]));
  }

  auto combine = [&](std::span<const Tensor> accumulated, std::span<const Tensor> accumulated_t,
                     std::span<const Tensor> next, std::span<const Tensor> next_t) {
    std::vector<Tensor> primal(accumulated.begin(), accumulated.end()),
        tangent(accumulated_t.begin(), accumulated_t.end());
    primal.insert(primal.end(), next.begin(), next.end());
    tangent.insert(tangent.end(), next_t.begin(), next_t.end());
    JvpResult r = jvp_graph(*p.body, primal, tangent, c.mode, JvpShapes::lifted);
    // A body that ignores its arguments, or returns a scalar among arrays, gives less than the full
    // shape.
    const Shape& full = next[0].shape();
    for (std::size_t i = 0; i < n; ++i) {
      r.primals[i] = broadcast_along(r.primals[i], full);
      if (r.tangents[i].defined()) r.tangents[i] = broadcast_along(r.tangents[i], full);
    }
    return r;
  };
  auto part = [&](const std::vector<Tensor>& all, std::int64_t start, std::int64_t limit,
                  std::int64_t stride) {
    std::vector<Tensor> parts;
    for (const Tensor& v : all)
      parts.push_back(v.defined() ? slice_axis(v, 0, start, limit, stride) : v);
    return parts;
  };
  auto append = [&](const Tensor& head, const Tensor& tail) {
    return emit(Op::concatenate, make_params(AxisParams{0}), {head, tail}, {});
  };
  for (std::int64_t count = shape[0]; count > 1; count = (count + 1) / 2) {
    const std::int64_t even = count / 2 * 2;
    JvpResult r =
        combine(part(x, 0, even, 2), part(t, 0, even, 2), part(x, 1, even, 2), part(t, 1, even, 2));
    if (even != count) {
      const std::vector<Tensor> last = part(x, even, count, 1), last_t = part(t, even, count, 1);
      for (std::size_t i = 0; i < n; ++i) {
        const Tensor &head_t = r.tangents[i], &tail_t = last_t[i];
        if (head_t.defined() || tail_t.defined())
          r.tangents[i] = append(head_t.defined() ? head_t : zeros_like(r.primals[i]),
                                 tail_t.defined() ? tail_t : zeros_like(last[i]));
        r.primals[i] = append(r.primals[i], last[i]);
      }
    }
    x = std::move(r.primals);
    t = std::move(r.tangents);
  }
  const std::span<const Tensor> init(c.x.data() + n, n), init_t(c.t.data() + n, n);
  if (shape[0] == 0) {
    tangents.assign(init_t.begin(), init_t.end());
    return;
  }
  const Shape left(std::span<const std::int64_t>(shape.begin() + 1, shape.end()));
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = with_shape(x[i], left);
    if (t[i].defined()) t[i] = with_shape(t[i], left);
  }
  tangents = combine(init, init_t, x, t).tangents;
}

// dy_i = x_i · dy_{i−1} + y_{i−1} · t_i: no division, so zeros are nothing special.
Tensor cumprod(const JvpCall& c) {
  const auto& p = c.as<CumulativeParams>();
  const Val before = shifted(c.y, p.axis, p.reverse ? -1 : 1, 1);
  return linear_recurrence(c.x[0], Val(c.t[0]) * before, p.axis, p.reverse);
}

// Each result is one element of the operand: the first that reached it. Which one is found with
// integers, then read.
Tensor cum_extremum(const JvpCall& c) {
  const auto& p = c.as<CumulativeParams>();
  const Tensor &x = c.x[0], &y = c.y;
  const Shape& shape = x.shape();
  const std::int64_t n = shape[p.axis];
  const DType index = index_type(n);
  const Tensor place = index_along(index, shape, p.axis);
  const Tensor before = shifted(y, p.axis, p.reverse ? -1 : 1, 0);
  // New: not (x ≤ the extreme so far), which a first NaN is as well; nothing is new after a NaN.
  const Tensor fails = binary(c.equation.op == Op::cummax ? Op::le : Op::ge, x, before);
  const Tensor is_new = binary(Op::and_, unary(Op::not_, fails), binary(Op::eq, before, before));
  const Tensor is_first =
      binary(Op::eq, place, scalar(index, p.reverse ? static_cast<double>(n - 1) : 0.0));
  const Tensor marked = choose(binary(Op::or_, is_first, is_new), place,
                               scalar(index, p.reverse ? static_cast<double>(n) : -1.0));
  const Tensor source = cumulate(p.reverse ? Op::cummin : Op::cummax, marked, p.axis, p.reverse);
  return read_along(c.t[0], source, p.axis);
}

// dy_i = σ(y_{i−1} − x_i) · dy_{i−1} + σ(x_i − y_{i−1}) · t_i. The shares sum to 1 also where y is
// so large that rounding it would tell in e^{x − y}.
Tensor cumlogsumexp(const JvpCall& c) {
  const auto& p = c.as<CumulativeParams>();
  const double infinity = __builtin_inf();
  // Where all so far is −∞ the shares are 0, not those of −∞ + ∞.
  const Tensor zero = scalar(c.y.dtype(), 0),
               empty = binary(Op::eq, c.y, scalar(c.y.dtype(), -infinity));
  const Val before = shifted(c.y, p.axis, p.reverse ? -1 : 1, -infinity);
  const Val ahead = choose(empty, zero, Val(c.x[0]) - before);
  const auto share = [&](const Val& of) {
    return Val(choose(empty, zero, unary(Op::sigmoid, of)));
  };
  return linear_recurrence(share(-ahead), Val(c.t[0]) * share(ahead), p.axis, p.reverse);
}

}  // namespace vt::detail::jvp_rules
