// What is fitted: residuals and their derivatives at a point, losses, bounds and fixed parameters;
// messages about what does not fit.
#include "fit_problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solver_numbers.hpp"

namespace vt::detail::fitting {

using namespace solver_parts;

std::string named(const std::string& path) {
  return path.empty() ? "the parameter" : "parameter " + path;
}

/// How the leaves of a tree differ from those that are needed.
std::string other_leaves(std::span<const std::string> given, std::span<const std::string> needed) {
  if (given.size() != needed.size())
    return formatted("it has {} {} where they have {}", given.size(),
                     given.size() == 1 ? "leaf" : "leaves", needed.size());
  std::size_t i = 0;
  while (given[i] == needed[i]) ++i;
  const auto name = [](const std::string& path) { return path.empty() ? "no name" : path; };
  return formatted("its leaf {} is called {} where theirs is {}", i, name(given[i]),
                   name(needed[i]));
}

GradCall by_one(const std::span<const Tensor> arguments, const ControlCall& call) {
  static constexpr bool wanted[] = {true};
  GradCall g;
  g.arguments = arguments;
  g.wanted = wanted;
  g.transform = call.name;
  g.where = call.where;
  return g;
}

Problem::Problem(const FlatFunction& residuals, std::span<const Tensor> guess,
                 const FlatFunction& plus, std::int64_t dimension,
                 const LeastSquaresOptions& options_, const FitCall& fit)
    : options(options_), call(fit.call), fit_(fit) {
  for (const auto& [name, given] :
       {std::pair("ftol", options.ftol), std::pair("xtol", options.xtol),
        std::pair("gtol", options.gtol)})
    if (given) check_number(call, name, *given, 0, "at least 0, which is off");
  check_number(call, "damping", options.damping, 0, "at least 0");
  if (!(options.loss_scale > 0) || !std::isfinite(options.loss_scale))
    refuse(ErrorKind::value, call,
           formatted("loss_scale is {}; it must be a number above 0", double(options.loss_scale)));
  if (options.max_iterations < 1)
    refuse(ErrorKind::value, call,
           formatted("max_iterations is {}; it must be at least 1",
                     std::int64_t(options.max_iterations)));
  // The parameters.
  if (guess.empty()) refuse(ErrorKind::tree, call, "the guess holds no Tensor");
  Vec<Aval> avals;
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < guess.size(); ++i) {
    if (!guess[i].defined())
      refuse(ErrorKind::value, call, named(fit.paths[i]) + " of the guess is an empty Tensor");
    if (guess[i].dtype() != f32 && guess[i].dtype() != f64)
      refuse(ErrorKind::dtype, call,
             formatted("{} of the guess is {}; parameters are f32 or f64: {}", named(fit.paths[i]),
                       aval_of(guess[i]).str(), instead_of(guess[i].dtype())));
    avals.emplace_back(guess[i].dtype(), guess[i].shape());
    elements += guess[i].size();
    dtype = i ? promote(dtype, guess[i].dtype()) : guess[i].dtype();
    guess_.push_back(cast(guess[i], guess[i].dtype(), call.where));
  }
  if (elements == 0) refuse(ErrorKind::shape, call, "the guess has no elements");
  // The residuals, recorded once.
  const FlatFunction as_vector = [&](std::span<const Tensor> leaves) {
    const std::vector<Tensor> out = residuals(leaves);
    if (out.empty()) refuse(ErrorKind::tree, call, "the function of residuals gives no Tensor");
    std::vector<Tensor> floats;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!out[i].defined())
        refuse(ErrorKind::tree, call, "the function of residuals gives an empty Tensor");
      if (!is_float(out[i].dtype()))
        refuse(ErrorKind::dtype, call,
               formatted("residuals are real floats, not {}", aval_of(out[i]).str()));
      floats.push_back(cast(out[i], out[i].dtype(), call.where));
    }
    return std::vector<Tensor>{raveled(floats)};
  };
  residuals_ = record(as_vector, avals,
                      {.kind = ScopeKind::branch, .transform = call.name, .where = call.where});
  const Aval& all = residuals_.graph.aval(residuals_.graph.outputs[0]);
  m = all.elements();
  if (m == 0) refuse(ErrorKind::shape, call, "there are no residuals");
  dtype = promote(dtype, all.dtype);
  precision = all.dtype == f64 ? f64 : f32;
  for (const Aval& a : avals)
    if (a.dtype != f64) precision = f32;
  // How they move.
  n = elements;
  if (plus) {
    if (dimension < 1)
      refuse(ErrorKind::value, call,
             formatted("delta has {} elements; it must have at least 1", dimension));
    n = dimension;
    if (options.lower || options.upper)
      refuse(ErrorKind::value, call,
             "parameters that are moved by plus have no bounds: leave lower and upper out");
    Vec<Aval> in(avals);
    in.emplace_back(dtype, Shape{n});
    const FlatFunction checked = [&](std::span<const Tensor> x) {
      std::vector<Tensor> out = plus(x);
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (!out[i].defined()) refuse(ErrorKind::tree, call, "plus gives an empty Tensor");
        if (out[i].shape() != avals[i].shape)
          refuse(ErrorKind::shape, call,
                 formatted("plus gives {} as {} where {} is needed", aval_of(out[i]).str(),
                           named(fit.paths[i]), avals[i].str()));
        if (!is_float(out[i].dtype()))
          refuse(ErrorKind::dtype, call,
                 formatted("plus gives {} as {} where {} is needed", aval_of(out[i]).str(),
                           named(fit.paths[i]), avals[i].str()));
        out[i] = cast(out[i], avals[i].dtype, call.where);
      }
      return out;
    };
    plus_ = record(checked, in,
                   {.kind = ScopeKind::branch, .transform = call.name, .where = call.where});
  }
  if (options.lower) lower = per_parameter(*options.lower, dtype, "lower");
  if (options.upper) upper = per_parameter(*options.upper, dtype, "upper");
  if (options.fixed) free = vt::logical_not(per_parameter(*options.fixed, bool_, "fixed"));
  if (!lower || !upper) return;
  check_bounds(fit);
  // Known only when the program runs: nothing lies between bounds that cross.
  lower = vt::where(*lower <= *upper, *lower, number(std::numeric_limits<double>::quiet_NaN()));
}

Tensor Problem::per_parameter(const PerParameter& given, DType wanted, const char* name) const {
  const std::vector<Tensor>& leaves = given.leaves();
  const auto fits_kind = [&](const Tensor& t) {
    return t.defined() && (wanted == bool_ ? t.dtype() == bool_ : !is_complex(t.dtype()));
  };
  for (const Tensor& t : leaves)
    if (!fits_kind(t))
      refuse(ErrorKind::dtype, call,
             formatted("{} holds {}, which is no {}", name,
                       t.defined() ? aval_of(t).str() : std::string("an empty Tensor"),
                       wanted == bool_ ? "bool" : "real number"));
  const auto filled = [&](const Tensor& t, const Shape& shape) {
    return vt::reshape(vt::broadcast_to(cast(t, wanted, call.where), shape),
                       Shape{Aval(wanted, shape).elements()});
  };
  if (leaves.size() == 1 && leaves[0].rank() == 0 && given.paths()[0].empty())
    return filled(leaves[0], Shape{n});
  if (moved_by_user()) {
    if (leaves.size() != 1 || leaves[0].shape() != Shape{n})
      refuse(
          ErrorKind::shape, call,
          formatted("{} is of delta, which has {} elements: give a bool or bool[{}]", name, n, n));
    return filled(leaves[0], Shape{n});
  }
  if (given.paths() != fit_.paths)
    refuse(ErrorKind::tree, call,
           formatted("{} is neither a number nor a tree like the parameters: {}", name,
                     other_leaves(given.paths(), fit_.paths)));
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Shape& shape = guess_[i].shape();
    bool broadcasts = leaves[i].rank() <= shape.rank();
    for (int d = 1; broadcasts && d <= leaves[i].rank(); ++d) {
      const std::int64_t own = leaves[i].shape()[leaves[i].rank() - d];
      broadcasts = own == 1 || own == shape[shape.rank() - d];
    }
    if (!broadcasts)
      refuse(ErrorKind::shape, call,
             formatted("{} of {} is {}, which does not broadcast to {}", name, named(fit_.paths[i]),
                       aval_of(leaves[i]).str(), aval_of(guess_[i]).str()));
    parts.push_back(filled(leaves[i], shape));
  }
  return vt::concatenate(parts);
}

void Problem::check_bounds(const FitCall& fit) const {
  const std::vector<Tensor>&low = options.lower->leaves(), &high = options.upper->leaves();
  for (const std::vector<Tensor>* side : {&low, &high})
    for (const Tensor& t : *side)
      if (is_tracer(t)) return;
  for (std::size_t i = 0; i < std::max(low.size(), high.size()); ++i) {
    const Tensor &a = low[low.size() > 1 ? i : 0], &b = high[high.size() > 1 ? i : 0];
    const Shape& shape = guess_[i].shape();
    const bool whole = low.size() == guess_.size() || high.size() == guess_.size();
    const auto values = [&](const Tensor& t) {
      return vt::broadcast_to(t.astype(f64), whole ? shape : t.shape()).to_vector<double>();
    };
    const std::vector<double> below = values(a), above = values(b);
    for (std::size_t k = 0; k < std::min(below.size(), above.size()); ++k)
      if (below[k] > above[k])
        refuse(ErrorKind::value, call,
               formatted("the lower bound {} of {} is above the upper one, {}", below[k],
                         named(fit.paths[i]), above[k]));
  }
}

std::vector<Tensor> Problem::point_of(std::span<const Tensor> leaves) const {
  if (moved_by_user()) return {leaves.begin(), leaves.end()};
  return {grad_build::convert_to(raveled(leaves), dtype)};
}
std::vector<Tensor> Problem::leaves_of(std::span<const Tensor> point) const {
  if (moved_by_user()) return {point.begin(), point.end()};
  return unraveled(point[0], guess_);
}
std::vector<Tensor> Problem::moved(std::span<const Tensor> point, const Tensor& delta) const {
  if (!moved_by_user()) return {point[0] + delta};
  return replay(plus_->graph, joined(joined(point, {&delta, 1}), plus_->captured));
}
Tensor Problem::residuals(std::span<const Tensor> point) const {
  const std::vector<Tensor> leaves = leaves_of(point);
  return grad_build::convert_to(replay(residuals_.graph, joined(leaves, residuals_.captured))[0],
                                dtype);
}

Problem::LossAt Problem::loss_of(const Tensor& r) const {
  const Tensor z = vt::square(r * (1 / double(options.loss_scale)));
  const Tensor one = vt::ones_like(z);
  switch (options.loss) {
    case Loss::linear: break;
    case Loss::huber: {
      const Tensor inside = z <= 1.0, root = vt::sqrt(vt::where(inside, one, z));
      return {z, vt::where(inside, z, 2.0 * root - 1.0), vt::where(inside, one, 1.0 / root),
              vt::where(inside, vt::zeros_like(z), -0.5 / (root * root * root))};
    }
    case Loss::cauchy: {
      const Tensor first = 1.0 / (1.0 + z);
      return {z, vt::log1p(z), first, -(first * first)};
    }
    case Loss::soft_l1: {
      const Tensor root = vt::sqrt(1.0 + z);
      return {z, 2.0 * z / (1.0 + root), 1.0 / root, -0.5 / (root * root * root)};
    }
  }
  return {z, z, one, vt::zeros_like(z)};
}
Tensor Problem::multiplier(const LossAt& loss, double least) const {
  // Where the loss curves down: no less than this.
  const Tensor row = vt::maximum(least * loss.first, number(step_at(dtype, 1)));
  return vt::sqrt(vt::maximum(loss.first + 2.0 * loss.second * loss.z, row));
}

Tensor Problem::value(const Tensor& r) const {
  if (options.loss == Loss::linear) return 0.5 * vt::sum(r * r);
  const double scale = options.loss_scale;
  return (0.5 * scale * scale) * vt::sum(loss_of(r).value);
}

FlatFunction Problem::from(std::span<const Tensor> point) const {
  return [this, point](std::span<const Tensor> x) {
    // The parameters themselves vary where nothing but their sum is meant.
    const std::vector<Tensor> at = moved_by_user() ? moved(point, x[0]) : std::vector<Tensor>{x[0]};
    return std::vector<Tensor>{residuals(at)};
  };
}

Tensor Problem::gradient(std::span<const Tensor> point) const {
  return slope(
      point, [&](const Tensor& r) { return value(r); },
      [](const Linearized& at) { return at.residuals; });
}

Tensor Problem::slope(std::span<const Tensor> point,
                      FunctionRef<Tensor(const Tensor& residuals)> of,
                      FunctionRef<Tensor(const Linearized&)> weights) const {
  const Tensor at = moved_by_user() ? zeros() : point[0];
  const FlatFunction r = from(point);
  const FlatFunction f = [&](std::span<const Tensor> x) {
    return std::vector<Tensor>{of(r(x)[0])};
  };
  Tensor by_all;
  try {
    by_all = value_and_grad_flat(f, by_one({&at, 1}, call)).gradients[0];
  } catch (const Error&) {  // what has no reverse mode has a Jacobian by forward mode
    const Linearized all = linearized(point, least_row);
    return vt::matmul(weights(all), all.jacobian);
  }
  return free ? vt::where(*free, by_all, number(0)) : by_all;
}

Linearized Problem::linearized(std::span<const Tensor> point, double least) const {
  const Tensor at = moved_by_user() ? zeros() : point[0];
  const JacobianFlat both =
      jacobian_flat(from(point), by_one({&at, 1}, call),
                    n <= 2 * m ? JacobianMode::forward : JacobianMode::reverse, 0);
  Linearized out{{}, both.outputs[0], both.blocks[0][0]};
  if (free) out.jacobian = vt::where(*free, out.jacobian, number(0));
  out.value = value(out.residuals);
  if (options.loss == Loss::linear) return out;
  const LossAt loss = loss_of(out.residuals);
  const Tensor row = multiplier(loss, least);
  out.residuals = out.residuals * loss.first / row;
  out.jacobian = out.jacobian * vt::expand_dims(row, Axes{1});
  return out;
}

Tensor Problem::curvature(std::span<const Tensor> point, const Tensor& step) const {
  const Tensor start = number(0), one = number(1);
  const FlatFunction along = [&](std::span<const Tensor> s) {
    return std::vector<Tensor>{residuals(moved(point, s[0] * step))};
  };
  const FlatFunction speed = [&](std::span<const Tensor> s) {
    return jvp_flat(along, by_one(s, call), {&one, 1}).tangents;
  };
  const Tensor second = jvp_flat(speed, by_one({&start, 1}, call), {&one, 1}).tangents[0];
  // Each row of J is multiplied as in linearized(), and so is that of the second derivative.
  const Tensor row =
      options.loss == Loss::linear ? number(1) : multiplier(loss_of(residuals(point)), least_row);
  return slope(
      point, [&](const Tensor& r) { return vt::sum(r * (row * row * second)); },
      [&](const Linearized&) { return row * second; });
}

std::optional<Tensor> Problem::held(const Tensor& x, const Tensor& gradient) const {
  std::optional<Tensor> all;
  if (lower) all = (x <= *lower) & (gradient > 0.0);
  if (upper) {
    const Tensor above = (x >= *upper) & (gradient < 0.0);
    all = all ? *all | above : above;
  }
  return all;
}

}  // namespace vt::detail::fitting
