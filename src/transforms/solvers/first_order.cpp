// The steps of Sgd, Adam and AdamW on flat leaves, and learning rates that depend on the step.
#include <cmath>
#include <numbers>

#include <vt/optimizers.hpp>

#include "solver_numbers.hpp"

namespace vt {

namespace detail::first_order {

using namespace solver_parts;

void check_steps(std::int64_t steps, const char* name, CallSite where) {
  if (steps < 1)
    fail(ErrorKind::value, formatted("{}: steps is {}; it must be at least 1", name, steps), where);
}
void check_decay(const ControlCall& call, const char* name, double value) {
  if (!(value >= 0 && value < 1))
    refuse(ErrorKind::value, call,
           formatted("{} is {}; it must be at least 0 and less than 1", name, value));
}
Tensor wide(const Tensor& step) { return step.astype(f64); }

/// The rate at the step; throws unless it is a number.
Tensor rate_at(const Rate& rate, const Tensor& steps, const ControlCall& call) {
  const Tensor r = rate.at(steps);
  if (!r.defined()) refuse(ErrorKind::value, call, "the rate is an empty Tensor");
  if (r.rank() != 0)
    refuse(ErrorKind::shape, call,
           formatted("the rate is {}; it must be a scalar", aval_of(r).str()));
  if (is_complex(r.dtype()) || r.dtype() == bool_)
    refuse(ErrorKind::dtype, call,
           formatted("the rate is {}; it must be a real number", aval_of(r).str()));
  return r;
}
void check_like(std::span<const Tensor> parameters, std::span<const Tensor> given, const char* what,
                const FirstOrderCall& c) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!given[i].defined() || given[i].shape() != parameters[i].shape() ||
        is_complex(given[i].dtype()))
      refuse(
          ErrorKind::shape, c.call,
          formatted("{} holds {} for {}, which is {}", what,
                    given[i].defined() ? aval_of(given[i]).str() : std::string("an empty Tensor"),
                    c.paths[i].empty() ? std::string("the parameter") : "parameter " + c.paths[i],
                    aval_of(parameters[i]).str()));
}
/// The gradient in the dtypes of the parameters, clipped.
std::vector<Tensor> usable_gradient(std::span<const Tensor> parameters,
                                    std::span<const Tensor> gradient,
                                    const std::optional<double>& norm, const FirstOrderCall& c) {
  check_like(parameters, gradient, "the gradient", c);
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    out.push_back(cast(gradient[i], parameters[i].dtype(), c.call.where));
  if (!norm) return out;
  if (!(*norm > 0))
    refuse(ErrorKind::value, c.call, formatted("clip_norm is {}; it must be above 0", *norm));
  return clipped_by_norm(out, *norm, c.call.where);
}

}  // namespace detail::first_order

Rate cosine_rate(Param<double> value, Param<std::int64_t> steps, Param<double> end,
                 CallSite where) {
  using namespace detail::first_order;
  check_steps(steps, "vt::cosine_rate", where);
  return Rate([first = double(value), n = static_cast<double>(std::int64_t(steps)),
               last = double(end)](const Tensor& step) {
    const Tensor part = vt::minimum(wide(step) / n, Tensor(1.0));
    return last + 0.5 * (first - last) * (1.0 + vt::cos(std::numbers::pi * part));
  });
}
Rate exponential_rate(Param<double> value, Param<double> factor, Param<std::int64_t> steps,
                      CallSite where) {
  using namespace detail::first_order;
  check_steps(steps, "vt::exponential_rate", where);
  if (!(factor > 0))
    detail::fail(
        ErrorKind::value,
        detail::formatted("vt::exponential_rate: factor is {}; it must be above 0", double(factor)),
        where);
  return Rate([first = double(value),
               slope = std::log(double(factor)) / static_cast<double>(std::int64_t(steps))](
                  const Tensor& step) { return first * vt::exp(slope * wide(step)); });
}
Rate warm_up(Rate rate, Param<std::int64_t> steps, CallSite where) {
  using namespace detail::first_order;
  check_steps(steps, "vt::warm_up", where);
  return Rate([rate, n = std::int64_t(steps)](const Tensor& step) {
    const Tensor from_there = vt::maximum(step - n, 0 * step),
                 part = vt::minimum(wide(step) / static_cast<double>(n), Tensor(1.0));
    return part * rate.at(from_there);
  });
}

namespace detail {

void check_parameters(std::span<const Tensor> parameters, const FirstOrderCall& c) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& t = parameters[i];
    const std::string name =
        c.paths[i].empty() ? std::string("the parameter") : "parameter " + c.paths[i];
    if (!t.defined()) first_order::refuse(ErrorKind::value, c.call, name + " is an empty Tensor");
    if (!is_float(t.dtype()))
      first_order::refuse(ErrorKind::dtype, c.call,
                          formatted("{} is {}; parameters are real floats: {}", name,
                                    aval_of(t).str(), solver_parts::instead_of(t.dtype())));
  }
}
std::vector<Tensor> zeros_of(std::span<const Tensor> like) {
  std::vector<Tensor> out;
  for (const Tensor& t : like) out.push_back(grad_build::zeros(Aval(t.dtype(), t.shape())));
  return out;
}

std::vector<Tensor> clipped_by_norm(std::span<const Tensor> leaves, double most, CallSite where) {
  const UserLine line(where);
  if (!(most > 0))
    fail(ErrorKind::value, formatted("vt::clip_by_norm: most is {}; it must be above 0", most),
         where);
  Tensor sum;
  for (const Tensor& t : leaves) {
    if (!t.defined() || !is_inexact(t.dtype()))
      fail(ErrorKind::dtype,
           formatted("vt::clip_by_norm: clips floats, not {}",
                     t.defined() ? aval_of(t).str() : std::string("an empty Tensor")),
           where);
    const Tensor size = is_complex(t.dtype()) ? vt::abs(t) : t;
    const Tensor own = vt::sum(vt::square(size.dtype() == f64 ? size : size.astype(f32)));
    sum = sum.defined() ? sum + own : own;
  }
  if (leaves.empty()) return {};
  // Where it is clipped the norm is above 0, and only there does √ have a derivative.
  const Tensor inside = sum <= most * most;
  const Tensor factor = vt::where(inside, vt::ones_like(sum),
                                  most / vt::sqrt(vt::where(inside, vt::ones_like(sum), sum)));
  std::vector<Tensor> out;
  for (const Tensor& t : leaves) out.push_back(cast(t * factor, t.dtype(), where));
  return out;
}

std::vector<Tensor> sgd_step(const SgdRule& rule, std::span<const Tensor> parameters,
                             std::span<const Tensor> gradient, const Tensor& steps,
                             std::span<const Tensor> momentum, const FirstOrderCall& c) {
  using namespace first_order;
  const UserLine line(c.call.where);
  check_decay(c.call, "momentum", rule.momentum);
  check_number(c.call, "weight_decay", rule.weight_decay, 0, "at least 0");
  check_parameters(parameters, c);
  check_like(parameters, momentum, "the state", c);
  const Tensor rate = rate_at(rule.rate, steps, c.call);
  const std::vector<Tensor> g = usable_gradient(parameters, gradient, rule.clip_norm, c);
  std::vector<Tensor> next, kept;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& p = parameters[i];
    Tensor along = rule.weight_decay > 0 ? g[i] + rule.weight_decay * p : g[i];
    kept.push_back(momentum[i]);
    if (rule.momentum > 0) {
      kept.back() = along + rule.momentum * momentum[i];
      along = rule.nesterov ? along + rule.momentum * kept.back() : kept.back();
    }
    next.push_back(cast(p - rate.astype(p.dtype()) * along, p.dtype(), c.call.where));
  }
  return joined(next, kept);
}

std::vector<Tensor> adam_step(const AdamRule& rule, std::span<const Tensor> parameters,
                              std::span<const Tensor> gradient, const Tensor& steps,
                              std::span<const Tensor> mean, std::span<const Tensor> square,
                              const FirstOrderCall& c) {
  using namespace first_order;
  const UserLine line(c.call.where);
  check_decay(c.call, "mean_decay", rule.mean_decay);
  check_decay(c.call, "square_decay", rule.square_decay);
  check_number(c.call, "epsilon", rule.epsilon, 0, "at least 0");
  check_number(c.call, "weight_decay", rule.weight_decay, 0, "at least 0");
  check_parameters(parameters, c);
  check_like(parameters, mean, "the state", c);
  check_like(parameters, square, "the state", c);
  const Tensor rate = rate_at(rule.rate, steps, c.call);
  const std::vector<Tensor> g = usable_gradient(parameters, gradient, rule.clip_norm, c);
  // 1 − βⁿ: what a mean of n terms lacks because it began with 0.
  const Tensor n = wide(steps + 1);
  const auto part = [&](double decay) {
    return decay > 0 ? -vt::expm1(std::log(decay) * n) : Tensor(1.0);
  };
  const Tensor of_mean = part(rule.mean_decay), of_square = part(rule.square_decay);
  std::vector<Tensor> next, means, squares;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& p = parameters[i];
    means.push_back(rule.mean_decay * mean[i] + (1 - rule.mean_decay) * g[i]);
    squares.push_back(rule.square_decay * square[i] + (1 - rule.square_decay) * vt::square(g[i]));
    // A square that is 0 has no slope of its root.
    const Tensor now = squares.back() / of_square.astype(p.dtype()), some = now > 0.0;
    const Tensor root = vt::where(some, vt::sqrt(vt::where(some, now, vt::ones_like(now))), now);
    Tensor along = means.back() / of_mean.astype(p.dtype()) / (root + rule.epsilon);
    if (rule.weight_decay > 0) along = along + rule.weight_decay * p;
    next.push_back(cast(p - rate.astype(p.dtype()) * along, p.dtype(), c.call.where));
  }
  return joined(joined(next, means), squares);
}

}  // namespace detail

}  // namespace vt
