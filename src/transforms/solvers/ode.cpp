// odeint: the loop over steps, the rows that are saved on the way, and what is reported.
#include <vt/ode.hpp>

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include <vt/detail/message.hpp>

#include "../../trace/ops/support/operands.hpp"
#include "../../trace/record/scope.hpp"
#include "../../trace/record/thread_state.hpp"
#include "../distributed/outside.hpp"
#include "flat_vector.hpp"
#include "ode_event.hpp"
#include "ode_steps.hpp"
#include "solver_numbers.hpp"

namespace vt::detail {

using solver_parts::raveled, solver_parts::raveled_dtype, solver_parts::unraveled;

namespace ode {

/// Of what is looked at before anything is known of y.
void check_options(const OdeOptions& o, const ControlCall& call) {
  const auto refuse = [&](const char* what, double value, const char* must) {
    fail(ErrorKind::value, formatted("{}: {} is {}; it must be {}", call.name, what, value, must),
         call.where);
  };
  const double h_min = o.h_min, h_max = o.h_max;
  const std::int64_t max_steps = o.max_steps, checkpoint = o.checkpoint, stop_at = o.event.stop_at;
  const int direction = o.event.direction;
  if (!(h_min >= 0) || std::isinf(h_min)) refuse("h_min", h_min, "at least 0");
  if (!(h_max >= 0)) refuse("h_max", h_max, "at least 0, which sets no bound");
  if (h_max > 0 && h_max < h_min) refuse("h_max", h_max, "no less than h_min");
  if (max_steps < 1) refuse("max_steps", static_cast<double>(max_steps), "at least 1");
  if (checkpoint < 0)
    refuse("checkpoint", static_cast<double>(checkpoint), "at least 0, which leaves the choice");
  if (direction < -1 || direction > 1) refuse("event.direction", direction, "1, 0 or -1");
  if (stop_at < 0)
    refuse("event.stop_at", static_cast<double>(stop_at), "at least 0, which never stops");
}
Tensor option(const Tensor& t, const char* what, int rank, DType dtype, const ControlCall& call) {
  if (!t.defined())
    fail(ErrorKind::value, formatted("{}: {} is an empty Tensor", call.name, what), call.where);
  if (t.rank() != rank)
    fail(ErrorKind::shape,
         formatted("{}: {} is {}; it must be {}", call.name, what, aval_of(t).str(),
                   rank == 0 ? "a scalar" : "a vector of times, [m]"),
         call.where);
  if (is_complex(t.dtype()))
    fail(ErrorKind::dtype,
         formatted("{}: {} is {}; it must be real", call.name, what, aval_of(t).str()), call.where);
  return cast(t, dtype, call.where);
}
/// Of a leaf of y0: what is "y" or "y PATH" later.
std::string name_at_start(const ControlCall& call, std::size_t leaf) {
  return "y0" + call.carry_name(leaf).substr(1);
}
bool is_value_known(const Tensor& t) { return !is_tracer(t); }

/// A tolerance that broadcasts to y as one vector.
Tensor tolerance(const OdeTolerance& given, const char* what, double by_default,
                 std::span<const Aval> leaves, DType dtype, const ControlCall& call) {
  const std::vector<Tensor>& parts = given.parts();
  if (parts.empty()) return grad_build::scalar(dtype, by_default);
  if (parts.size() != 1 && parts.size() != leaves.size())
    fail(
        ErrorKind::value,
        formatted("{}: {} has {} parts; it is one for all of y0, or one for each of its {} Tensors",
                  call.name, what, parts.size(), leaves.size()),
        call.where);
  std::vector<Tensor> flat;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Tensor& part = parts[parts.size() == 1 ? 0 : i];
    if (!part.defined())
      fail(ErrorKind::value, formatted("{}: {} is an empty Tensor", call.name, what), call.where);
    if (is_complex(part.dtype()))
      fail(ErrorKind::dtype, formatted("{}: {} is complex", call.name, what), call.where);
    if (is_value_known(part))
      for (const double x : part.to_vector<double>())
        if (!(x >= 0) || std::isinf(x))
          fail(ErrorKind::value,
               formatted("{}: {} is {}; it must be at least 0", call.name, what, x), call.where);
    const Tensor number = vt::stop_gradient(cast(part, dtype, call.where));
    if (part.rank() == 0 && parts.size() == 1) return number;
    const Shape& shape = leaves[i].shape;
    const bool fits = part.rank() <= shape.rank() && [&] {
      for (int d = 1; d <= part.rank(); ++d) {
        const std::int64_t n = part.dim(-d);
        if (n != 1 && n != shape[shape.rank() - d]) return false;
      }
      return true;
    }();
    if (!fits)
      fail(ErrorKind::shape,
           formatted("{}: {} {} does not broadcast to y, {}", call.name, what, aval_of(part).str(),
                     leaves[i].str()),
           call.where);
    flat.push_back(vt::broadcast_to(number, shape).reshape({leaves[i].elements()}));
  }
  return raveled(flat);
}

/// A function of (t, leaves…) as one of (t, vector); `checked` makes one Tensor of its results.
template <class Checked>
Recorded recorded(const FlatFunction& f, std::span<const Aval> leaves, DType dtype,
                  const ControlCall& call, const Checked& checked) {
  const FlatFunction on_vector = [&](std::span<const Tensor> in) {
    std::vector<Tensor> args{in[0]};
    for (const Tensor& t : unraveled(in[1], leaves)) args.push_back(t);
    return std::vector<Tensor>{cast(checked(f(args)), dtype, call.where)};
  };
  std::int64_t n = 0;
  for (const Aval& a : leaves) n += a.elements();
  const Aval avals[] = {Aval(dtype, Shape{}), Aval(dtype, Shape{n})};
  return record(on_vector, avals,
                {.kind = ScopeKind::branch, .transform = call.name, .where = call.where});
}
Recorded recorded_slope(const FlatFunction& f, std::span<const Aval> leaves, DType dtype,
                        const ControlCall& call) {
  return recorded(f, leaves, dtype, call, [&](std::vector<Tensor> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!out[i].defined())
        fail(ErrorKind::tree, formatted("{}: the function gives an empty Tensor", call.name),
             call.where);
      const Aval& given = aval_of(out[i]);
      const bool other_dtype =
          given.dtype != leaves[i].dtype && !given.weak && !(is_int(given.dtype));
      if (given.shape != leaves[i].shape || other_dtype || is_complex(given.dtype))
        fail(given.shape != leaves[i].shape ? ErrorKind::shape : ErrorKind::dtype,
             formatted("{}: the function gives {} as dy/dt where {} is {}", call.name, given.str(),
                       call.carry_name(i), leaves[i].str()),
             call.where);
      out[i] = cast(out[i], leaves[i].dtype, call.where);
    }
    return raveled(out);
  });
}
Recorded recorded_event(const FlatFunction& event, std::span<const Aval> leaves, DType dtype,
                        const ControlCall& call) {
  return recorded(event, leaves, dtype, call, [&](const std::vector<Tensor>& results) {
    const Tensor out = results[0];
    if (!out.defined() || out.rank() != 0 || is_complex(out.dtype()) || is_bool(out.dtype()))
      fail(out.defined() && out.rank() != 0 ? ErrorKind::shape : ErrorKind::dtype,
           formatted("{}: the event gives {}; it must be a real scalar that is 0 at the event",
                     call.name, out.defined() ? aval_of(out).str() : "an empty Tensor"),
           call.where);
    return out;
  });
}

/// Times of which only the rounding of their dtype keeps those near t0 and t1 from being these.
Tensor on_ends(const Tensor& times, DType rounded_to, const Problem& p) {
  const Tensor far = vt::maximum(vt::abs(p.t0), vt::abs(p.t1)) * (4 * step_at(rounded_to, 1.0));
  Tensor moved = times;
  for (const Tensor& end : {p.t0, p.t1}) {
    const Tensor by = vt::stop_gradient(end - times);
    moved = moved + vt::where(vt::abs(by) <= vt::stop_gradient(far), by, 0.0);
  }
  return moved;
}

/// Throws unless times whose values are known are in order between t0 and t1.
void check_times(const Tensor& times, const Tensor& t0, const Tensor& t1, const ControlCall& call) {
  if (!is_value_known(times)) return;
  const std::vector<double> all = times.to_vector<double>();
  const bool ends = is_value_known(t0) && is_value_known(t1);
  const double from = ends ? t0.item<double>() : 0, to = ends ? t1.item<double>() : 0;
  const double direction = ends                       ? (to < from ? -1 : 1)
                           : all.empty()              ? 1
                           : all.back() < all.front() ? -1
                                                      : 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && !((all[i] - all[i - 1]) * direction >= 0))
      fail(ErrorKind::value,
           formatted("{}: save_at is not in order: {} comes behind {}{}", call.name, all[i],
                     all[i - 1], direction < 0 ? ", and time runs backward" : ""),
           call.where);
    if (ends && !((all[i] - from) * direction >= 0 && (to - all[i]) * direction >= 0))
      fail(ErrorKind::value,
           formatted("{}: save_at holds {}, which is not between t0 = {} and t1 = {}", call.name,
                     all[i], from, to),
           call.where);
  }
}

/// What the loop ends with.
struct Walked {
  State state;
  Events events;
  Tensor rows, saved;  ///< [m, n], and how many of them are there
};
/// The loop over steps.
class Path {
 public:
  Path(const Problem& p, const EventSearch& e, Tensor y0, const OdeOptions& o,
       const ControlCall& call)
      : problem_(p), search_(e), y0_(std::move(y0)), options_(o), call_(call) {}

  Walked walk() const {
    const Spot end = reached(first(false), {});
    return {end.state, end.events, {}, full_tensor(Scalar(std::int64_t{0}), Aval(i64, Shape{}))};
  }
  /// A scan over these times: in each of its iterations goes a loop, which ends with the step that
  /// passes the time. Each time has its residuals then, and the way back walks as this one does;
  /// one loop that wrote rows into an array would keep that array with each state of it.
  Walked walk(const Tensor& times) const {
    const std::int64_t m = times.size();
    const Tensor all = vt::concatenate({times, problem_.t1.reshape({1})});
    const Tensor order = vt::stop_gradient(times) * problem_.direction;
    const Tensor in_order = vt::concatenate({order >= vt::cummax(order), vt::ones({1}, bool_)});
    const Spot begin = first(true);
    std::vector<Tensor> carry = begin.leaves();
    const Tensor finite = begin.state.status != static_cast<std::int32_t>(StopReason::not_finite);
    carry.push_back(full_tensor(Scalar(std::int64_t{0}), Aval(i64, Shape{})));
    const std::vector<Tensor> out = scan_flat(
        [&](std::span<const Tensor> c) {
          const Tensor time = c[c.size() - 2];
          const Spot now = reached(spot(c.first(c.size() - 3)), time);
          const Between& b = now.between;
          const Tensor inside = finite & c.back() &
                                ((time - problem_.t0) * problem_.direction >= 0.0) &
                                ((now.state.t - time) * problem_.direction >= 0.0);
          const Tensor row =
              vt::where(inside, b.at((time - b.t) / b.h), std::numeric_limits<double>::quiet_NaN());
          std::vector<Tensor> next = now.leaves();
          next.push_back(c[c.size() - 3] + inside.astype(i64));
          next.push_back(row);
          return next;
        },
        carry, std::vector<Tensor>{all, in_order}, {}, call_);
    const Spot end = spot(std::span<const Tensor>(out).first(out.size() - 2));
    const Tensor last = end.state.t == problem_.t1;  // the row behind those that are wanted
    return {end.state, end.events, grad_build::slice_axis(out.back(), 0, 0, m),
            out[out.size() - 2] - (finite & last).astype(i64)};
  }

 private:
  /// All that the loop carries.
  struct Spot {
    State state;
    Events events;
    Between between;  ///< of the last accepted step, where that is looked at
    std::vector<Tensor> leaves() const {
      std::vector<Tensor> all = state.leaves();
      if (events.value.defined())
        for (const Tensor& t : events.leaves()) all.push_back(t);
      if (between.t.defined())
        for (const Tensor& t : between.leaves()) all.push_back(t);
      return all;
    }
  };
  Spot spot(std::span<const Tensor> leaves) const {
    Spot s;
    const std::size_t states = State::count(problem_);
    s.state = State(problem_, leaves);
    std::size_t used = states;
    if (search_.is_there) {
      s.events = {leaves[used], leaves[used + 1], leaves[used + 2], leaves[used + 3]};
      used += Events::leaf_count;
    }
    if (leaves.size() > used) s.between = Between::from(leaves.subspan(used));
    return s;
  }
  Spot first(bool keeps_between) const {
    Spot s;
    s.state = begin(problem_, y0_);
    if (search_.is_there) s.events = begin(problem_, search_, s.state);
    if (keeps_between) s.between = before_steps(problem_, y0_);
    return s;
  }
  /// Behind the first step that does not end before `time`, or at the end.
  Spot reached(const Spot& from, const Tensor& time) const {
    const std::vector<Tensor> out = while_flat(
        [&](std::span<const Tensor> c) {
          const State s(problem_, c);
          const Tensor goes_on = s.status == running;
          return std::vector<Tensor>{
              time.defined() ? goes_on & ((time - s.t) * problem_.direction > 0.0) : goes_on};
        },
        [&](std::span<const Tensor> c) {
          const Spot now = spot(c);
          Step made = step(problem_, now.state);
          Spot next;
          if (search_.is_there) next.events = after(problem_, search_, now.events, made, call_);
          next.state = made.next;
          if (now.between.t.defined()) {
            std::vector<Tensor> both = made.between.leaves();
            const std::vector<Tensor> before = now.between.leaves();
            for (std::size_t i = 0; i < both.size(); ++i)
              both[i] = vt::where(made.accepted, both[i], before[i]);
            next.between = Between::from(both);
          }
          return next.leaves();
        },
        from.leaves(), {.checkpoint = options_.checkpoint}, call_);
    return spot(out);
  }

  const Problem& problem_;
  const EventSearch& search_;
  Tensor y0_;
  const OdeOptions& options_;
  const ControlCall& call_;
};

}  // namespace ode

std::vector<Tensor> odeint_flat(const FlatFunction& f, const FlatFunction& event,
                                std::span<const Tensor> y0, const OdeOptions& options,
                                const ControlCall& call) {
  using namespace ode;
  const UserLine line(call.where);
  check_options(options, call);
  Vec<Aval> leaves;
  std::vector<Tensor> start;
  for (std::size_t i = 0; i < y0.size(); ++i) {
    if (!y0[i].defined())
      fail(ErrorKind::value,
           formatted("{}: {} is an empty Tensor", call.name, name_at_start(call, i)), call.where);
    if (!is_float(y0[i].dtype()))
      fail(ErrorKind::dtype,
           formatted("{}: {} must be real floats, not {}: {}", call.name, name_at_start(call, i),
                     aval_of(y0[i]).str(), solver_parts::instead_of(y0[i].dtype())),
           call.where);
    leaves.emplace_back(y0[i].dtype(), y0[i].shape());
    start.push_back(cast(y0[i], y0[i].dtype(), call.where));
  }
  if (leaves.empty())
    fail(ErrorKind::value, formatted("{}: y0 holds no Tensors", call.name), call.where);

  // As in other composed functions, numbers of 16 bits are computed with in f32.
  DType dtype = raveled_dtype(start);
  if (dtype == f16 || dtype == bf16) dtype = f32;
  const bool wide = dtype == f64;
  const double h_max = options.h_max;
  // Steps of one size need no norms.
  if (options.method != OdeMethod::rk4 || event)
    need_whole(
        [&](std::span<const Tensor> y) {
          std::vector<Tensor> args{grad_build::scalar(dtype, 0)};
          args.insert(args.end(), y.begin(), y.end());
          return f(args);
        },
        start, call.name, call.where);
  Recorded slope = recorded_slope(f, leaves, dtype, call);
  Problem p{.method = options.method,
            .graph = std::make_shared<const GraphBody>(std::move(slope.graph)),
            .captured = std::move(slope.captured),
            .dtype = dtype,
            .t0 = option(options.t0, "t0", 0, dtype, call),
            .t1 = option(options.t1, "t1", 0, dtype, call),
            .direction = {},
            .rtol = tolerance(options.rtol, "rtol", wide ? 1e-6 : 1e-4, leaves, dtype, call),
            .atol = tolerance(options.atol, "atol", wide ? 1e-9 : 1e-6, leaves, dtype, call),
            .first_step = {},
            .h_min = options.h_min,
            .h_max = std::isinf(h_max) ? 0.0 : h_max,
            .max_steps = options.max_steps};
  p.direction = vt::stop_gradient(
      vt::where(p.t1 < p.t0, grad_build::scalar(dtype, -1), grad_build::scalar(dtype, 1)));
  const Tensor first = option(options.first_step, "first_step", 0, dtype, call);
  if (is_value_known(first)) {
    const double h = first.item<double>();
    if (!(h >= 0) || std::isinf(h))
      fail(ErrorKind::value,
           formatted("{}: first_step is {}; it must be positive, or 0", call.name, h), call.where);
    if (h > 0) p.first_step = first;
  } else {
    p.first_step = first;
  }
  if (options.method == OdeMethod::rk4 && !p.first_step.defined())
    fail(ErrorKind::value,
         formatted("{}: rk4 makes steps of one size; say which, {{.first_step = 0.01}}", call.name),
         call.where);

  Tensor times;
  std::int64_t m = 0;
  if (options.save_at.defined()) {
    times = option(options.save_at, "save_at", 1, dtype, call);
    if (is_float(options.save_at.dtype())) times = on_ends(times, options.save_at.dtype(), p);
    check_times(times, p.t0, p.t1, call);
    m = times.size();
  }
  EventSearch search;
  if (event) search = {recorded_event(event, leaves, dtype, call), options.event, true};
  const Path path{p, search, cast(raveled(start), dtype, call.where), options, call};
  const Walked end = times.defined() ? path.walk(times) : path.walk();

  std::vector<Tensor> result = unraveled(end.state.y, leaves);
  std::int64_t from = 0;
  for (const Aval& a : leaves) {
    Shape shape{m};
    shape.append(a.shape.begin(), a.shape.end());
    const std::int64_t to = from + a.elements();
    const Tensor part = m > 0 ? grad_build::slice_axis(end.rows, 1, from, to)
                              : grad_build::zeros(Aval(dtype, shape));
    result.push_back(cast(part.reshape(shape), a.dtype, call.where));
    from = to;
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Events events = end.events;
  if (!event)
    events = {{},
              full_tensor(Scalar(std::int64_t{0}), Aval(i64, Shape{})),
              grad_build::scalar(dtype, nan),
              grad_build::filled(aval_of(end.state.y), nan)};
  for (const Tensor& t : unraveled(events.y, leaves)) result.push_back(t);
  const State& s = end.state;
  const Tensor evaluations = calls_to_begin(p) + calls_of_step(p) * (s.accepted + s.rejected);
  for (const Tensor& t :
       {s.t, end.saved, events.t, events.count, s.accepted, s.rejected, evaluations,
        s.status < static_cast<std::int32_t>(StopReason::max_iterations), s.status})
    result.push_back(t);
  return result;
}

}  // namespace vt::detail
