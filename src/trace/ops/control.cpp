// Control flow on flat lists of Tensors: each emits an equation
// with the recorded functions as sub-graphs.
#include <vt/control.hpp>
#include <vt/detail/small_vec.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <vt/detail/message.hpp>

#include "../ir/effects.hpp"
#include "support/control_recording.hpp"
#include "support/operands.hpp"

namespace vt::detail {

namespace control_ops {

std::vector<Tensor> joined(std::initializer_list<std::span<const Tensor>> lists) {
  std::vector<Tensor> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

bool any_effects(std::span<const Recorded> parts) {
  return any_of(parts, [](const Recorded& r) { return has_effects(r.graph); });
}

Tensor scalar_of(DType dtype, std::int64_t value) {
  return full_tensor(Scalar(value).converted(dtype), Aval(dtype, Shape{}));
}

}  // namespace control_ops

void refuse_structure(const ControlCall& call, const char* must, const char* what,
                      const std::string& path, std::pair<std::size_t, std::size_t> sizes) {
  const auto [needed, given] = sizes;
  std::string count;
  if (needed != given)
    count = formatted(": {} {} in all, not {}", given, given == 1 ? "Tensor" : "Tensors", needed);
  control_ops::refuse(
      ErrorKind::tree, call,
      formatted("{}, but {}{} differs in its size, its keys or a value that is no Tensor{}", must,
                path.empty() ? "the " : "", path.empty() ? std::string(what) : what + (" " + path),
                count));
}

std::vector<Tensor> switch_flat(const Tensor& index, std::span<const FlatFunction> functions,
                                std::span<const Tensor> operands, const ControlCall& call) {
  using namespace control_ops;
  const CallSite line = user_line(call.where);
  if (!index.defined()) refuse(ErrorKind::value, call, "the index is an empty Tensor");
  if (!is_int(index.dtype()) && !is_bool(index.dtype()))
    refuse(ErrorKind::dtype, call, "the index must be an integer, not " + aval_of(index).str());
  if (index.rank() != 0)
    refuse(ErrorKind::shape, call,
           "the index must be a scalar, not " + aval_of(index).str() +
               "; write the function for one element and use vt::vmap");
  need_all(call, operands, {}, "operand");
  const DType dtype = index.dtype();
  Tensor chosen = index;
  if (is_int(dtype)) {  // clamped before it is narrowed
    const auto last = static_cast<std::int64_t>(functions.size()) - 1;
    chosen = emit(Op::min, {}, {chosen, scalar_of(dtype, last)}, line);
    if (!is_unsigned(dtype)) chosen = emit(Op::max, {}, {chosen, scalar_of(dtype, 0)}, line);
  }
  if (dtype != DType::i32 || aval_of(chosen).weak)
    chosen = emit(Op::convert, make_params(ConvertParams{DType::i32}), {chosen}, line);

  Vec<Recorded> branches;
  const Vec<Aval> avals = avals_of(operands);
  Vec<Vec<StateUpdate>> updates(functions.size());
  // The types of a function that calls itself are those of the branches that do not: what stands
  // for the others now is never run.
  std::optional<UnknownResult> unknown;
  Vec<std::size_t> waiting;
  for (const FlatFunction& f : functions) {
    const FlatFunction both = with_updates(f, updates[branches.size()]);
    try {
      branches.push_back(record_body(both, avals, call, false));
    } catch (const UnknownResult& u) {
      unknown = u;
      waiting.push_back(branches.size());
      branches.emplace_back();
    }
  }
  if (waiting.size() == branches.size()) throw *unknown;
  for (const std::size_t b : waiting) {
    std::size_t known = 0;
    while (std::find(waiting.begin(), waiting.end(), known) != waiting.end()) ++known;
    branches[b] = branches[known];
    updates[b] = updates[known];
  }
  const Vec<StateUpdate> changes = unify_updates(branches, updates);
  unify_results(branches, changes.size(), call);
  if (branches[0].graph.outputs.empty() && !any_effects(branches)) return {};
  Vec<Recorded*> parts;
  for (Recorded& b : branches) parts.push_back(&b);
  const std::vector<Tensor> captured = share_captures(parts);
  CondParams p;
  for (Recorded& b : branches) p.branches.push_back(finished(std::move(b)));
  return without_changes(emit_control(Op::cond, make_params(std::move(p)),
                                      joined({{&chosen, 1}, operands, captured}), call),
                         changes);
}

std::vector<Tensor> cond_flat(const Tensor& predicate, const FlatFunction& on_true,
                              const FlatFunction& on_false, std::span<const Tensor> operands,
                              const ControlCall& call) {
  using namespace control_ops;
  if (!predicate.defined()) refuse(ErrorKind::value, call, "the predicate is an empty Tensor");
  if (predicate.rank() != 0)
    refuse(ErrorKind::shape, call,
           "the predicate must be a scalar, not " + aval_of(predicate).str() +
               "; write the function for one element and use vt::vmap, or choose element by "
               "element with vt::where");
  const FlatFunction both[2] = {on_false, on_true};
  ControlCall named = call;
  named.branch_name = [](std::size_t k) {
    return k == 0 ? "the function for false" : "the function for true";
  };
  return switch_flat(to_bool(predicate, user_line(call.where)), both, operands, named);
}

std::vector<Tensor> while_flat(const FlatFunction& condition, const FlatFunction& body,
                               std::span<const Tensor> given, const WhileOptions& options,
                               const ControlCall& call) {
  using namespace control_ops;
  if (options.checkpoint < 0)
    refuse(ErrorKind::value, call,
           formatted("checkpoint is {}; it is a number of states", options.checkpoint));
  need_all(call, given, call.carry_name, "carry");
  std::vector<Tensor> init(given.begin(), given.end());
  Vec<OwnState> own, asked;
  const FlatFunction with_own = with_states(body, own);
  Recorded step = record_loop(with_own, init, {}, call);
  const FlatFunction test = [&](std::span<const Tensor> carry) {
    std::vector<Tensor> out = condition(carry);
    refuse_updates((std::string(call.name) + ": the condition").c_str());
    if (!out[0].defined() || out[0].rank() != 0)
      refuse(ErrorKind::shape, call,
             "the condition must give a bool scalar, not " +
                 (out[0].defined() ? aval_of(out[0]).str() + "; take vt::all or vt::any of it"
                                   : std::string("an empty Tensor")));
    out[0] = to_bool(out[0], user_line(call.where));
    return out;
  };
  const FlatFunction with_asked = with_states(test, asked);
  Recorded check = record_body(with_asked, avals_of(init), call, true);
  const std::size_t carries = init.size();
  const LoopStates states(own, asked);
  arrange_states(step, carries, carries, own, states);
  arrange_states(check, carries, carries, asked, states);
  init.insert(init.end(), states.init.begin(), states.init.end());
  if (init.empty() && !has_effects(check.graph) && !has_effects(step.graph)) return {};
  Recorded* const parts[2] = {&check, &step};
  const std::vector<Tensor> captured = share_captures(parts);
  WhileParams p;
  p.carries = static_cast<int>(init.size());
  p.checkpoints = options.checkpoint;
  p.condition = finished(std::move(check));
  p.body = finished(std::move(step));
  return settled(
      emit_control(Op::while_, make_params(std::move(p)), joined({init, captured}), call), carries,
      states);
}

namespace control_ops {

/// The number of elements: of the sequences, or as given.
std::int64_t scan_length(std::span<const Tensor> xs, const ScanOptions& options,
                         const ControlCall& call) {
  std::optional<std::int64_t> length = options.length;
  if (length && *length < 0)
    refuse(ErrorKind::value, call, formatted("length is {}; it is a number of elements", *length));
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const auto name = [&] { return leaf_name(call.sequence_name, i, "sequence"); };
    if (xs[i].rank() == 0)
      refuse(ErrorKind::shape, call,
             formatted("{} is a scalar {}, and has no elements", name(), aval_of(xs[i]).str()));
    const std::int64_t n = xs[i].shape()[0];
    if (!length) length = n;
    if (n != *length)
      refuse(ErrorKind::shape, call,
             formatted("the sequences must have one length, but {} is {} where the length is {}",
                       name(), aval_of(xs[i]).str(), *length));
  }
  if (!length)
    refuse(ErrorKind::shape, call,
           "there are no sequences, so the length is not known; give {.length = …}");
  return *length;
}

std::vector<Tensor> scan_elements(const FlatFunction& body, std::vector<Tensor>& init,
                                  std::span<const Tensor> xs, std::int64_t length, bool reverse,
                                  const ControlCall& call) {
  Vec<Aval> elements;
  for (const Tensor& x : xs) {
    Aval a = aval_of(x);
    a.shape.erase(a.shape.begin());
    elements.push_back(std::move(a));
  }
  Vec<OwnState> own;
  const FlatFunction with_own = with_states(body, own);
  Recorded step = record_loop(with_own, init, elements, call);
  const std::size_t carries = init.size();
  const LoopStates states(own, {});
  arrange_states(step, carries, carries + elements.size(), own, states);
  // The new values lie behind the ys.
  Vec<Var>& results = step.graph.outputs;
  std::rotate(results.begin() + static_cast<std::ptrdiff_t>(carries),
              results.end() - static_cast<std::ptrdiff_t>(states.changes.size()), results.end());
  std::vector<Tensor> all_init = init;
  all_init.insert(all_init.end(), states.init.begin(), states.init.end());
  if (step.graph.outputs.empty() && !has_effects(step.graph)) return {};
  ScanParams p;
  p.carries = static_cast<int>(all_init.size());
  p.sequences = static_cast<int>(xs.size());
  p.length = length;
  p.reverse = reverse;
  const std::vector<Tensor> captured = std::move(step.captured);
  p.body = finished(std::move(step));
  return settled(
      emit_control(Op::scan, make_params(std::move(p)), joined({all_init, xs, captured}), call),
      carries, states);
}

/// Elements first … first + count − 1 of every sequence; with `block` > 0 in rows of so many.
std::vector<Tensor> part_of(std::span<const Tensor> xs, std::int64_t first, std::int64_t count,
                            std::int64_t block, CallSite line) {
  std::vector<Tensor> parts;
  for (const Tensor& x : xs) {
    Tensor part = sliced(x, 0, first, first + count, 1, line);
    if (block) {
      Shape shape{count / block, block};
      shape.append(x.shape().begin() + 1, x.shape().end());
      part = reshaped(part, shape, line);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

/// `unroll` elements per iteration, and what is left of them in a loop of its own.
std::vector<Tensor> scan_unrolled(const FlatFunction& body, std::vector<Tensor>& init,
                                  std::span<const Tensor> xs, std::int64_t length,
                                  const ScanOptions& options, const ControlCall& call) {
  const CallSite line = user_line(call.where);
  const std::int64_t block = options.unroll, whole = length / block * block;
  const std::size_t carries = init.size();
  const FlatFunction iterations = [&](std::span<const Tensor> leaves) {
    std::vector<Tensor> carry(leaves.begin(),
                              leaves.begin() + static_cast<std::ptrdiff_t>(carries));
    Vec<std::vector<Tensor>> ys;
    for (std::int64_t k = 0; k < block; ++k) {
      const std::int64_t at = options.reverse ? block - 1 - k : k;
      std::vector<Tensor> arguments = carry;
      for (const Tensor& x : leaves.subspan(carries)) {
        Shape shape = x.shape();
        shape.erase(shape.begin());
        arguments.push_back(reshaped(sliced(x, 0, at, at + 1, 1, line), shape, line));
      }
      const std::vector<Tensor> out = body(arguments);
      ys.resize(out.size() - carries);
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (i < carries) carry[i] = out[i];
        else ys[i - carries].push_back(out[i]);
      }
    }
    for (std::vector<Tensor>& y : ys) {
      if (options.reverse) std::reverse(y.begin(), y.end());
      carry.push_back(stack(y, 0, line));
    }
    return carry;
  };
  const std::int64_t rest = length - whole;
  std::vector<Tensor> tail;
  const auto run_tail = [&] {
    if (rest == 0) return;
    tail =
        scan_elements(body, init, part_of(xs, whole, rest, 0, line), rest, options.reverse, call);
    init.assign(tail.begin(), tail.begin() + static_cast<std::ptrdiff_t>(carries));
  };
  if (options.reverse) run_tail();
  std::vector<Tensor> out = scan_elements(iterations, init, part_of(xs, 0, whole, block, line),
                                          whole / block, options.reverse, call);
  init.assign(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(carries));
  if (!options.reverse) run_tail();
  for (std::size_t i = carries; i < out.size(); ++i) {
    Shape shape{whole};
    shape.append(out[i].shape().begin() + 2, out[i].shape().end());
    out[i] = reshaped(out[i], shape, line);
    if (rest) out[i] = concatenate({out[i], tail[i]}, 0, line);
  }
  std::copy(init.begin(), init.end(), out.begin());
  return out;
}

}  // namespace control_ops

std::vector<Tensor> scan_flat(const FlatFunction& body, std::span<const Tensor> given,
                              std::span<const Tensor> xs, const ScanOptions& options,
                              const ControlCall& call) {
  using namespace control_ops;
  need_all(call, given, call.carry_name, "carry");
  need_all(call, xs, call.sequence_name, "sequence");
  const std::int64_t length = scan_length(xs, options, call);
  if (options.unroll < 1)
    refuse(ErrorKind::value, call,
           formatted("unroll is {}; it is a number of elements per iteration", options.unroll));
  std::vector<Tensor> init(given.begin(), given.end());
  if (options.unroll > 1 && length > options.unroll)
    return scan_unrolled(body, init, xs, length, options, call);
  return scan_elements(body, init, xs, length, options.reverse, call);
}

std::vector<Tensor> fori_flat(std::int64_t lower, std::int64_t upper, const FlatFunction& body,
                              std::span<const Tensor> given, const ControlCall& call) {
  using namespace control_ops;
  need_all(call, given, call.carry_name, "carry");
  const auto fits = [](std::int64_t v) {
    return v >= std::numeric_limits<std::int32_t>::min() &&
           v <= std::numeric_limits<std::int32_t>::max();
  };
  const DType dtype = fits(lower) && fits(upper) ? DType::i32 : DType::i64;
  const CallSite line = user_line(call.where);
  std::vector<Tensor> init{scalar_of(dtype, lower)};
  init.insert(init.end(), given.begin(), given.end());
  const FlatFunction step = [&](std::span<const Tensor> carry) {
    std::vector<Tensor> next = body(carry);
    next.insert(next.begin(), emit(Op::add, {}, {carry[0], scalar_of(dtype, 1)}, line));
    return next;
  };
  ControlCall inner = call;
  inner.carry_name = [&](std::size_t i) {
    return i == 0 ? std::string("the index") : carry_name(call, i - 1);
  };
  std::vector<Tensor> out =
      scan_elements(step, init, {}, std::max<std::int64_t>(upper - lower, 0), false, inner);
  out.erase(out.begin());
  return out;
}

std::vector<Tensor> fori_flat(const Tensor& lower, const Tensor& upper, const FlatFunction& body,
                              std::span<const Tensor> given, const WhileOptions& options,
                              const ControlCall& call) {
  using namespace control_ops;
  const CallSite line = user_line(call.where);
  for (const Tensor* bound : {&lower, &upper}) {
    if (!bound->defined()) refuse(ErrorKind::value, call, "a bound is an empty Tensor");
    if (!is_int(bound->dtype()) || bound->rank() != 0)
      refuse(ErrorKind::dtype, call,
             "bounds must be integer scalars, not " + aval_of(*bound).str());
  }
  const Common met = common_dtype(aval_of(lower), aval_of(upper));
  if (is_float(met.dtype))
    refuse(ErrorKind::dtype, call,
           "no integer dtype holds both bounds: " + aval_of(lower).str() + " · " +
               aval_of(upper).str());
  const Tensor from = cast(lower, met.dtype, line), to = cast(upper, met.dtype, line);
  std::vector<Tensor> init{from};
  init.insert(init.end(), given.begin(), given.end());
  ControlCall inner = call;
  inner.carry_name = [&](std::size_t i) {
    return i == 0 ? std::string("the index") : carry_name(call, i - 1);
  };
  std::vector<Tensor> out = while_flat(
      [&](std::span<const Tensor> carry) {
        return std::vector<Tensor>{emit(Op::lt, {}, {carry[0], to}, line)};
      },
      [&](std::span<const Tensor> carry) {
        std::vector<Tensor> next = body(carry);
        next.insert(next.begin(), emit(Op::add, {}, {carry[0], scalar_of(met.dtype, 1)}, line));
        return next;
      },
      init, options, inner);
  out.erase(out.begin());
  return out;
}

}  // namespace vt::detail
