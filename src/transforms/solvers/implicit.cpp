// linear_solve and root: solutions whose derivative comes from the equation that they solve.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/linalg.hpp>
#include <vt/solvers.hpp>

#include "../../trace/ir/dependence.hpp"
#include "../../trace/ops/support/operands.hpp"
#include "../../trace/record/scope.hpp"
#include "../distributed/outside.hpp"
#include "../grad/build.hpp"
#include "../grad/jvp.hpp"
#include "../grad/transpose.hpp"
#include "../vmap/batch.hpp"
#include "solver_numbers.hpp"

namespace vt::detail {

namespace implicit_parts {

using grad_build::zeros;
using namespace solver_parts;

/// Records `f` of Tensors like `avals`, which must give such Tensors; it may give others behind
/// them.
Recorded recorded(const FlatFunction& f, std::span<const Aval> avals, const char* name,
                  const char* part, CallSite where) {
  const FlatFunction checked = [&](std::span<const Tensor> x) {
    std::vector<Tensor> out = f(x);
    for (std::size_t i = 0; i < std::min(out.size(), avals.size()); ++i) {
      const std::string leaf = out.size() > 1 ? "leaf " + std::to_string(i) : "a value";
      if (!out[i].defined())
        fail(ErrorKind::tree, std::string(name) + ": " + part + " gives an empty Tensor", where);
      const Aval& given = aval_of(out[i]);
      if (given.shape != avals[i].shape || (given.dtype != avals[i].dtype && !given.weak))
        fail(given.shape != avals[i].shape ? ErrorKind::shape : ErrorKind::dtype,
             std::string(name) + ": " + part + " gives " + given.str() + " as " + leaf + " where " +
                 avals[i].str() + " is needed",
             where);
      check_literals(name + 4, {&out[i], 1}, avals[i].dtype, Literal::value, where);
      out[i] = cast(out[i], avals[i].dtype, where);
    }
    return out;
  };
  return record(checked, avals, {.kind = ScopeKind::branch, .transform = name, .where = where});
}
/// It as a function of the same scope, for what is recorded next.
FlatFunction replayed(const Recorded& r) {
  return [&r](std::span<const Tensor> x) { return replay(r.graph, joined(x, r.captured)); };
}
/// x ↦ conj(f(conj(x))): the product with the conjugate of the matrix that f multiplies by.
FlatFunction conjugated(const FlatFunction& f) {
  return [f](std::span<const Tensor> x) {
    const auto conj_all = [](std::span<const Tensor> all) {
      std::vector<Tensor> out;
      for (const Tensor& t : all) out.push_back(is_complex(t.dtype()) ? vt::conj(t) : t);
      return out;
    };
    return conj_all(f(conj_all(x)));
  };
}
GraphRef shared(Recorded& r) { return std::make_shared<const GraphBody>(std::move(r.graph)); }

Vec<Aval> strong_avals(std::span<const Tensor> tensors, const char* name, CallSite where) {
  Vec<Aval> avals;
  for (const Tensor& t : tensors) {
    if (!t.defined())
      fail(ErrorKind::value, std::string(name) + ": an argument is an empty Tensor", where);
    if (!is_inexact(t.dtype()))
      fail(ErrorKind::dtype, std::string(name) + ": needs floats, not " + aval_of(t).str(), where);
    avals.emplace_back(t.dtype(), t.shape());
  }
  return avals;
}

/// A tangent that a rule was given in place of a symbolic zero.
bool is_zero(const Tensor& t) {
  return node_of(t)->op == Op::full && node_of(t)->params->as<FullParams>().value.is_value(0);
}

/// The derivative of `graph` by what it captures, at x: (x…, captured…) and tangents of the
/// captured. Undefined results are zero.
std::vector<Tensor> by_captured(const GraphBody& graph, std::span<const Tensor> x,
                                std::span<const Tensor> captured,
                                std::span<const Tensor> tangents) {
  std::vector<Tensor> directions(x.size());
  for (const Tensor& t : tangents)
    directions.push_back(is_inexact(t.dtype()) && !is_zero(t) ? t : Tensor());
  return jvp_graph(graph, joined(x, captured), directions).tangents;
}

std::vector<Tensor> emitted(GraphRef body, std::shared_ptr<CustomRule> rule,
                            std::span<const Tensor> operands, CallSite where) {
  if (body->outputs.empty()) return {};
  CallParams p;
  p.body = std::move(body);
  p.rule = std::move(rule);
  p.explicit_operands = static_cast<int>(operands.size());
  const SmallVec<Tensor, 1> out =
      emit_all(Op::custom_jvp, make_params(std::move(p)), operands, where);
  return {out.begin(), out.end()};
}

/// Throws unless the derivative is the same everywhere. Of what does not depend on the argument
/// only numbers are seen to be added: a captured Tensor may be zero.
void need_linear(const Recorded& f, std::span<const Aval> avals, const char* name, CallSite where) {
  const std::size_t n = avals.size();
  const auto refuse = [&](const char* why, CallSite line) {
    fail(ErrorKind::transform,
         formatted("{}: matvec must be linear, a product v ↦ A·v; {}", name, why), line);
  };
  Dependence dependence;
  Dependence::Flags depends(f.graph.avals.size(), false), numbers = depends, operands;
  for (std::size_t i = 0; i < n; ++i) depends[f.graph.inputs[i]] = true;
  for (const Equation& e : f.graph.equations) {
    operands.clear();
    for (Var v : e.inputs) operands.push_back(depends[v]);
    const auto number_beside = [&](std::size_t i) {
      return operands[i] && numbers[e.inputs[1 - i]];
    };
    if ((e.op == Op::add || e.op == Op::sub) && (number_beside(0) || number_beside(1)))
      refuse("this one adds a number", e.where);
    if (e.op == Op::full) numbers[e.outputs[0]] = !e.as<FullParams>().value.is_value(0);
    // what its rule keeps for the way back may be the argument itself
    if (e.op == Op::custom_vjp && !e.as<CallParams>().rule->own) return;
    if (std::find(operands.begin(), operands.end(), true) == operands.end()) continue;
    const Dependence::Flags results = dependence.results(f.graph, e, operands);
    for (std::size_t i = 0; i < e.outputs.size(); ++i) depends[e.outputs[i]] = results[i];
  }
  Vec<Aval> both;
  for (std::size_t i = 0; i < 2 * n; ++i) both.push_back(avals[i % n]);
  const Recorded slope = record(
      [&](std::span<const Tensor> in) {
        std::vector<Tensor> directions(in.begin() + static_cast<std::ptrdiff_t>(n), in.end());
        directions.resize(n + f.captured.size());
        std::vector<Tensor> out =
            jvp_graph(f.graph, joined(in.first(n), f.captured), directions).tangents;
        for (std::size_t i = 0; i < out.size(); ++i)
          if (!out[i].defined()) out[i] = zeros(avals[i]);
        return out;
      },
      both, {.kind = ScopeKind::branch, .transform = name, .where = where});
  Dependence::Flags by(slope.graph.inputs.size(), false);
  for (std::size_t i = 0; i < n; ++i) by[i] = true;
  for (const bool depends_on_place : dependence.outputs(slope.graph, by))
    if (depends_on_place) refuse("the derivative of this one depends on v", where);
}

// --- linear systems ------------------------------------------------------------------------------

/// Everything as Graphs of (leaves…, captured…); the second of each is of the transposed system,
/// and may be missing.
struct LinearSystem {
  std::size_t leaves;
  const char* name;
  CallSite where;
  GraphRef product[2], solution[2];
};
using LinearSystemRef = std::shared_ptr<const LinearSystem>;

std::vector<Tensor> solution(const LinearSystemRef& s, int side, std::span<const Tensor> operands) {
  const std::size_t n = s->leaves;
  auto rule = std::make_shared<CustomRule>();
  rule->name = s->name;
  rule->linear = static_cast<int>(n);
  // A x = b: A dx = db − dA x.
  rule->jvp = [s, side, n](std::span<const Tensor> both) {
    const std::span<const Tensor> primals = both.first(both.size() / 2),
                                  tangents = both.subspan(primals.size());
    std::vector<Tensor> x = solution(s, side, primals);
    const std::vector<Tensor> change =
        by_captured(*s->product[side], x, primals.subspan(n), tangents.subspan(n));
    std::vector<Tensor> right(tangents.begin(), tangents.begin() + static_cast<std::ptrdiff_t>(n));
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
      if (change[i].defined()) right[i] = grad_build::binary(Op::sub, right[i], change[i]);
      any = any || !is_zero(right[i]);
    }
    return joined(x, any ? solution(s, side, joined(right, primals.subspan(n))) : right);
  };
  rule->transpose = [s, side](std::span<const Tensor> operands) {
    if (!s->solution[1 - side])
      fail(ErrorKind::transform,
           std::string(s->name) +
               ": reverse mode solves with the transposed matrix; give a transpose_solve, or say "
               "{.symmetric = true}",
           s->where);
    return solution(s, 1 - side, operands);
  };
  return emitted(s->solution[side], std::move(rule), operands, s->where);
}

}  // namespace implicit_parts

std::vector<Tensor> linear_solve_flat(const FlatFunction& matvec, std::span<const Tensor> b,
                                      const FlatSolve& solve, const FlatSolve& transpose_solve,
                                      Transposed transposed, const char* name, CallSite where) {
  using namespace implicit_parts;
  const UserLine line(where);
  const Vec<Aval> avals = strong_avals(b, name, where);
  need_whole(matvec, b, name, where);
  Recorded product = recorded(matvec, avals, name, "matvec", where);
  need_linear(product, avals, name, where);
  const FlatFunction apply = replayed(product);
  const auto solved = [&](const FlatSolve& how, const FlatFunction& by) {
    return recorded(
        [&](std::span<const Tensor> right) { return only_x(how(by, right), right.size()); }, avals,
        name, "the solution", where);
  };
  Vec<Recorded> parts;
  parts.push_back(solved(solve, apply));
  const bool is_real =
      std::none_of(avals.begin(), avals.end(), [](const Aval& a) { return is_complex(a.dtype); });
  if (transposed == Transposed::conjugate && is_real) transposed = Transposed::same;
  if (transposed == Transposed::conjugate) {
    parts.push_back(recorded(conjugated(apply), avals, name, "the transposed matvec", where));
    parts.push_back(recorded(conjugated(replayed(parts[0])), avals, name, "the solution", where));
  } else if (transposed == Transposed::other && transpose_solve) {
    parts.push_back(recorded(
        [&](std::span<const Tensor> y) {
          std::vector<Tensor> out =
              transpose_graph(product.graph, avals.size(), product.captured, y);
          for (std::size_t i = 0; i < out.size(); ++i)
            if (!out[i].defined()) out[i] = zeros(avals[i]);
          return out;
        },
        avals, name, "the transposed matvec", where));
    parts.push_back(solved(transpose_solve, replayed(parts[1])));
  }
  Vec<Recorded*> all{&product};
  for (Recorded& r : parts) all.push_back(&r);
  const std::vector<Tensor> captured = share_captures(all);
  auto s = std::make_shared<LinearSystem>(LinearSystem{avals.size(), name, where, {}, {}});
  s->product[0] = shared(product);
  s->solution[0] = shared(parts[0]);
  if (parts.size() > 1) {
    s->product[1] = shared(parts[1]);
    s->solution[1] = shared(parts[2]);
  } else if (transposed == Transposed::same) {
    s->product[1] = s->product[0];
    s->solution[1] = s->solution[0];
  }
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < b.size(); ++i) operands.push_back(cast(b[i], avals[i].dtype, where));
  return solution(s, 0, joined(operands, captured));
}

namespace implicit_parts {

// --- roots ---------------------------------------------------------------------------------------

struct RootProblem {
  std::size_t leaves;
  const char* name;
  CallSite where;
  GraphRef function, solution;  ///< of (leaves…, captured…)
  FlatSolve tangent_solve;
  /// in its place, if it captures what will be gone: (x…, right side…, captured…) → tangents
  GraphRef tangent = nullptr;
};
using RootProblemRef = std::shared_ptr<const RootProblem>;

/// The derivative of f(x…, captured…) by x, as a function of directions; used while its arguments
/// live.
FlatFunction slope_at(const GraphBody& f, std::span<const Tensor> x,
                      std::span<const Tensor> captured) {
  return [&f, x, captured](std::span<const Tensor> v) {
    std::vector<Tensor> directions(v.begin(), v.end());
    directions.resize(x.size() + captured.size());
    std::vector<Tensor> out = jvp_graph(f, joined(x, captured), directions).tangents;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!out[i].defined()) out[i] = grad_build::zeros_like(x[i]);
    return out;
  };
}

std::vector<Tensor> solution(const RootProblemRef& r, std::span<const Tensor> operands) {
  auto rule = std::make_shared<CustomRule>();
  rule->name = r->name;
  // f(x, c) = 0: ∂f/∂x dx = −∂f/∂c dc.
  rule->jvp = [r](std::span<const Tensor> both) {
    const std::size_t n = r->leaves;
    const std::span<const Tensor> primals = both.first(both.size() / 2),
                                  captured = primals.subspan(n);
    const std::vector<Tensor> found = solution(r, primals);
    const std::span<const Tensor> x = std::span(found).first(n);
    std::vector<Tensor> change = by_captured(*r->function, x, captured,
                                             both.subspan(primals.size() + n)),
                        right;
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
      right.push_back(change[i].defined() ? grad_build::unary(Op::neg, change[i])
                                          : grad_build::zeros_like(x[i]));
      any = any || change[i].defined();
    }
    std::vector<Tensor> tangents = std::move(right);
    if (any && r->tangent) tangents = replay(*r->tangent, joined(joined(x, tangents), captured));
    else if (any) tangents = r->tangent_solve(slope_at(*r->function, x, captured), tangents);
    // What is reported has none; zeros stand for them, as lanes of a rule have no empty Tensors.
    for (std::size_t i = n; i < found.size(); ++i)
      tangents.push_back(grad_build::zeros_like(found[i]));
    return joined(found, tangents);
  };
  return emitted(r->solution, std::move(rule), operands, r->where);
}

/// x with slope(x) = b, by the matrix of the slope, of which all columns are found at once.
std::vector<Tensor> dense_solve(const FlatFunction& slope, std::span<const Tensor> b) {
  const Tensor right = raveled(b);
  const std::int64_t n = right.size();
  if (n == 0) return {b.begin(), b.end()};
  const Shape square{n, n};
  const DType index = grad_build::index_type(n);
  const Tensor basis =
      grad_build::convert_to(grad_build::binary(Op::eq, grad_build::index_along(index, square, 0),
                                                grad_build::index_along(index, square, 1)),
                             right.dtype());
  const Batched rows{basis, 0};
  const Batched out = batch_function(
      [&](std::span<const Tensor> v) {
        return std::vector<Tensor>{raveled(slope(unraveled(v[0], b)))};
      },
      std::span<const Batched>(&rows, 1), n, "vt::root")[0];
  Tensor matrix = out.value;
  if (!out.axis) matrix = grad_build::in_dim(matrix, square, Axes{0});
  else if (*out.axis == 0) matrix = grad_build::permuted(matrix, Axes{1, 0});  // lanes are columns
  const CallSite line = user_line({});
  return unraveled(vt::linalg::solve({matrix, line.file, line.line}, {right, line.file, line.line}),
                   b);
}

}  // namespace implicit_parts

std::vector<Tensor> root_flat(const FlatFunction& f, std::span<const Tensor> guess,
                              const FlatRootFinder& solve, const FlatSolve& tangent_solve,
                              const char* name, CallSite where) {
  using namespace implicit_parts;
  const UserLine line(where);
  const Vec<Aval> avals = strong_avals(guess, name, where);
  need_whole(f, guess, name, where);
  Recorded function = recorded(f, avals, name, "the function", where);
  const FlatFunction apply = replayed(function);
  Recorded found = recorded([&](std::span<const Tensor> x) { return solve(apply, x); }, avals, name,
                            "the solution", where);
  Vec<Recorded*> parts{&function, &found};
  // The user's solver for tangents is called when all Tensors that it may have captured here are
  // gone: then it is recorded now.
  std::optional<Recorded> tangent;
  if (tangent_solve && current_level() > 0) {
    Vec<Aval> both(avals);
    both.insert(both.end(), avals.begin(), avals.end());
    const FlatFunction solved = [&](std::span<const Tensor> in) {
      return tangent_solve(slope_at(function.graph, in.first(guess.size()), function.captured),
                           in.subspan(guess.size()));
    };
    try {
      tangent =
          record(solved, both, {.kind = ScopeKind::branch, .transform = name, .where = where});
    } catch (...) {  // says so where it is called
    }
    if (tangent && std::any_of(tangent->captured.begin(), tangent->captured.end(), is_tracer))
      parts.push_back(&*tangent);
  }
  const std::vector<Tensor> captured = share_captures(parts);
  auto r =
      std::make_shared<RootProblem>(RootProblem{avals.size(), name, where, nullptr, nullptr, {}});
  if (parts.size() == 3) r->tangent = shared(*tangent);
  r->function = shared(function);
  r->solution = shared(found);
  if (!tangent_solve) r->tangent_solve = dense_solve;
  else r->tangent_solve = tangent_solve;
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < guess.size(); ++i)
    operands.push_back(cast(guess[i], avals[i].dtype, where));
  return solution(r, joined(operands, captured));
}

SolutionFlat report_of(std::vector<Tensor> found, std::size_t leaves) {
  SolutionFlat out;
  out.value = found[leaves];
  out.iterations = found[leaves + 1];
  out.evaluations = found[leaves + 2];
  out.reason = found[leaves + 3];
  out.converged = solver_parts::below(out.reason, StopReason::max_iterations);
  found.resize(leaves);
  out.x = std::move(found);
  return out;
}

SolutionFlat linear_report_flat(const FlatFunction& matvec, std::span<const Tensor> b,
                                const FlatSolve& solve, const FlatSolve& transpose_solve,
                                Transposed transposed, const char* name, CallSite where) {
  using namespace implicit_parts;
  const UserLine line(where);
  if (b.empty()) fail(ErrorKind::tree, std::string(name) + ": b holds no Tensor", where);
  const Vec<Aval> avals = strong_avals(b, name, where);
  const Recorded product = recorded(matvec, avals, name, "matvec", where);
  need_linear(product, avals, name, where);
  const FlatFunction apply = replayed(product);
  std::vector<Tensor> right, start;
  for (std::size_t i = 0; i < b.size(); ++i) {
    right.push_back(cast(b[i], avals[i].dtype, where));
    start.push_back(zeros(avals[i]));
  }
  // As the root of A x − b, so that the report stands beside x; tangents solve the same system.
  std::vector<Tensor> found = root_flat(
      [&](std::span<const Tensor> x) {
        std::vector<Tensor> rest = apply(x);
        for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = rest[i] - right[i];
        return rest;
      },
      start, [&](const FlatFunction&, std::span<const Tensor>) { return solve(apply, right); },
      [=](const FlatFunction& slope, std::span<const Tensor> side) {
        return linear_solve_flat(slope, side, solve, transpose_solve, transposed, name, where);
      },
      name, where);
  return report_of(std::move(found), b.size());
}

void check_limits(const IterationOptions& options, const char* name, CallSite where) {
  if (!(options.tolerance >= 0))
    fail(ErrorKind::value,
         formatted("{}: tolerance is {}; it is at least 0, which leaves the choice to the method",
                   name, options.tolerance),
         where);
  if (options.max_iterations < 0)
    fail(ErrorKind::value,
         formatted(
             "{}: max_iterations is {}; it is at least 0, which leaves the choice to the method",
             name, options.max_iterations),
         where);
}

namespace implicit_parts {

/// From the first and the last (iteration, x…, residual…): x, then what report_of takes.
std::vector<Tensor> with_outcome(std::span<const Tensor> first, std::span<const Tensor> last,
                                 std::size_t n, double tolerance) {
  const auto sizes = [&](std::span<const Tensor> c) { return vt::abs(raveled(c.subspan(1 + n))); };
  const Tensor rest = sizes(last), greatest = vt::max(rest);
  std::vector<Tensor> out(last.begin() + 1, last.begin() + 1 + static_cast<std::ptrdiff_t>(n));
  out.push_back(vt::sqrt(dot(rest, rest)));
  out.push_back(last[0]);
  out.push_back(last[0] + 1);
  out.push_back(
      outcome(greatest <= tolerance, vt::isfinite(greatest), vt::all(vt::isfinite(sizes(first)))));
  return out;
}

/// Repeats x ← next(f, x, f(x)) until no element of f(x) is greater than the tolerance.
/// `usual`: iterations at most, unless the options say how many.
using NextPoint = Function<std::vector<Tensor>(const FlatFunction& f, std::span<const Tensor> x,
                                               std::span<const Tensor> at)>;
FlatRootFinder repeated(const char* name, std::int64_t usual, const IterationOptions& options,
                        CallSite where, const NextPoint& next) {
  check_limits(options, name, where);
  return [=](const FlatFunction& f, std::span<const Tensor> guess) {
    const std::size_t n = guess.size();
    const ControlCall call{.name = name, .where = where};
    if (guess.empty()) refuse(ErrorKind::tree, call, "the guess holds no Tensor");
    const double tolerance = options.tolerance > 0     ? options.tolerance
                             : guess[0].dtype() == f64 ? 1e-10
                                                       : 1e-5;
    const std::int64_t most = options.max_iterations > 0 ? options.max_iterations : usual;
    // (iteration, x…, f(x)…)
    const auto carry_at = [&](Tensor iteration, std::span<const Tensor> x) {
      std::vector<Tensor> carry{std::move(iteration)};
      carry.insert(carry.end(), x.begin(), x.end());
      for (const Tensor& t : f(x)) carry.push_back(t);
      return carry;
    };
    const std::vector<Tensor> first =
        carry_at(full_tensor(Scalar(std::int64_t{0}), Aval(i64, Shape{})), guess);
    const std::vector<Tensor> last = while_flat(
        [&](std::span<const Tensor> c) {
          return std::vector<Tensor>{(c[0] < most) &
                                     !(vt::max(vt::abs(raveled(c.subspan(1 + n)))) <= tolerance)};
        },
        [&](std::span<const Tensor> c) {
          return carry_at(c[0] + 1, next(f, c.subspan(1, n), c.subspan(1 + n)));
        },
        first, {}, call);
    return with_outcome(first, last, n, tolerance);
  };
}

}  // namespace implicit_parts

FlatRootFinder newton_solver(const IterationOptions& options, CallSite where) {
  using namespace implicit_parts;
  return repeated("vt::newton", 50, options, where,
                  [](const FlatFunction& f, std::span<const Tensor> x, std::span<const Tensor> at) {
                    Vec<Aval> avals;
                    for (const Tensor& t : x) avals.push_back(aval_of(t));
                    const Recorded here =
                        record(f, avals, {.kind = ScopeKind::branch, .transform = "vt::newton"});
                    const std::vector<Tensor> step =
                        dense_solve(slope_at(here.graph, x, here.captured), at);
                    std::vector<Tensor> next;
                    for (std::size_t i = 0; i < x.size(); ++i) next.push_back(x[i] - step[i]);
                    return next;
                  });
}

FlatRootFinder repetition_solver(const IterationOptions& options, CallSite where) {
  return implicit_parts::repeated(
      "vt::fixed_point", 1000, options, where,
      [](const FlatFunction&, std::span<const Tensor> x, std::span<const Tensor> change) {
        std::vector<Tensor> next;
        for (std::size_t i = 0; i < x.size(); ++i) next.push_back(x[i] + change[i]);
        return next;
      });
}

}  // namespace vt::detail
