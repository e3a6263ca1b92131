// The entry points of vmap, pfor and custom_vmap: checks the axes, records the function for one
// lane, walks it for all.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include <vt/detail/entry_points.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/base/environment.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/effects.hpp"
#include "../../trace/record/memory_limit.hpp"
#include "../../trace/record/named_axes.hpp"
#include "../../trace/record/scope.hpp"
#include "../../trace/record/state.hpp"
#include "../../trace/record/thread_state.hpp"
#include "active_lanes.hpp"
#include "lane_calls.hpp"
#include "lanes.hpp"

namespace vt::detail {

namespace vmap_entry {

std::string argument_name(const VmapCall& call, std::size_t i) {
  return call.argument_name ? call.argument_name(i) : "argument leaf " + std::to_string(i);
}
std::string result_name(const VmapCall& call, std::size_t i) {
  return call.result_name ? call.result_name(i) : "result leaf " + std::to_string(i);
}

[[noreturn]] void refuse(const VmapCall& call, ErrorKind kind, const std::string& message) {
  fail(kind, std::string(call.transform) + ": " + message, call.where);
}

Vec<Batched> mapped_arguments(const VmapCall& call) {
  if (call.in_axes.size() != call.arguments.size())
    refuse(call, ErrorKind::tree,
           "in_axes has " + std::to_string(call.in_axes.size()) + " entries for " +
               std::to_string(call.arguments.size()) + " argument leaves");
  Vec<Batched> result;
  result.reserve(call.arguments.size());
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const Tensor& x = call.arguments[i];
    if (!x.defined())
      refuse(call, ErrorKind::value, argument_name(call, i) + " is an empty Tensor");
    MappedAxis axis = call.in_axes[i];
    if (axis) {
      const int rank = x.rank();
      if (rank == 0)
        refuse(call, ErrorKind::shape,
               "in_axes maps axis " + std::to_string(*axis) + " of " + argument_name(call, i) +
                   ", a scalar " + aval_of(x).str() + "; give it vt::unmapped");
      if (*axis < -rank || *axis >= rank)
        refuse(call, ErrorKind::shape,
               "in_axes maps axis " + std::to_string(*axis) + " of " + argument_name(call, i) +
                   ", which is " + aval_of(x).str());
      if (*axis < 0) *axis += rank;
    }
    result.push_back({x, axis});
  }
  return result;
}

std::int64_t lanes_of(const Batched& x) { return x.value.shape()[*x.axis]; }

std::int64_t lane_count(const VmapCall& call, const Vec<Batched>& arguments) {
  if (call.axis_size && *call.axis_size < 0)
    refuse(call, ErrorKind::value, "axis_size is " + std::to_string(*call.axis_size));
  std::optional<std::int64_t> lanes = call.axis_size;
  bool differ = false;
  for (const Batched& a : arguments) {
    if (!a.axis) continue;
    if (!lanes) lanes = lanes_of(a);
    differ = differ || lanes_of(a) != *lanes;
  }
  if (!lanes)
    refuse(call, ErrorKind::shape,
           "no argument is mapped, so the number of lanes is not known; give axis_size");
  if (differ) {
    std::string message = call.axis_size ? "axis_size is " + std::to_string(*call.axis_size)
                                         : std::string("the mapped axes differ in size");
    const char* separator = call.axis_size ? ", but " : ": ";
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].axis) continue;
      message += separator + argument_name(call, i) + " has " +
                 std::to_string(lanes_of(arguments[i])) + " (axis " +
                 std::to_string(*arguments[i].axis) + " of " + aval_of(arguments[i].value).str() +
                 ")";
      separator = ", ";
    }
    refuse(call, ErrorKind::shape, message);
  }
  return *lanes;
}

// The function for one lane. An error in it speaks of one lane's shapes; what is said here is where
// the lanes are.
Recorded record_function(const FlatFunction& f, const VmapCall& call, const Vec<Batched>& arguments,
                         std::int64_t lanes, const AxisRef& axis) {
  try {
    return record_lane(f, arguments, axis, call.transform, call.where, true,
                       call.running.defined());
  } catch (const Error& e) {
    std::string mapped;
    for (std::size_t i = 0; i < call.arguments.size(); ++i)
      if (arguments[i].axis)
        mapped += (mapped.empty() ? "" : ", ") + argument_name(call, i) + " mapped at axis " +
                  std::to_string(*arguments[i].axis) + " of " + aval_of(arguments[i].value).str();
    throw Error(e.kind(), std::string(e.what()) + "; in one of " + std::to_string(lanes) +
                              " lanes of " + call.transform +
                              (mapped.empty() ? "" : ": " + mapped));
  }
}

// The asked-for axis of each result, counted from the front.
Vec<MappedAxis> result_axes(const VmapCall& call, const GraphBody& lane, std::size_t count) {
  Vec<MappedAxis> axes = call.out_axes ? call.out_axes(count) : Vec<MappedAxis>(count, 0);
  if (axes.size() != count)
    refuse(call, ErrorKind::tree,
           "out_axes has " + std::to_string(axes.size()) + " entries for " + std::to_string(count) +
               " result leaves");
  for (std::size_t k = 0; k < count; ++k) {
    if (!axes[k]) continue;
    const Aval& aval = lane.aval(lane.outputs[k]);
    const int rank = aval.shape.rank() + 1;
    if (*axes[k] < -rank || *axes[k] >= rank)
      refuse(call, ErrorKind::shape,
             "out_axes puts the lanes at axis " + std::to_string(*axes[k]) + " of " +
                 result_name(call, k) + ", which is " + aval.str() + " per lane");
    if (*axes[k] < 0) *axes[k] += rank;
  }
  return axes;
}

[[noreturn]] void refuse_unmapped(const VmapCall& call, const GraphBody& lane, std::size_t k) {
  refuse(call, ErrorKind::transform,
         result_name(call, k) + ", " + lane.aval(lane.outputs[k]).str() +
             " per lane, differs between lanes, so its out_axes cannot be vt::unmapped");
}

// What all lanes together do to a variable. `before`: its value before them.
Tensor of_all_lanes(const VmapCall& call, const StateUpdate& u, const Batched& value,
                    std::int64_t lanes, const LaneAxis& axis, const Tensor& before) {
  if (!accumulates(u.kind)) {
    if (value.axis && lanes > 0)
      fail(ErrorKind::transform,
           std::string("vt::Variable::assign: ") + call.transform + " would give " +
               u.variable->name + ", which all lanes share, a value that differs " +
               "between lanes; add to it, or reduce the value",
           u.where);
    if (!axis.active) return value.value;
    // Assigned if any lane runs.
    const Tensor old = before.defined() ? before : read_state(u.variable, u.where);
    const Shape& shape = value.value.shape();
    const Tensor any = emit(Op::broadcast_in_dim, make_params(BroadcastParams{shape, {}}),
                            {axis.active->any}, u.where);
    return emit(Op::select, {}, {any, value.value, old}, u.where);
  }
  if (lanes == 0) return neutral(u.kind, u.variable->aval);
  Batched all = value;
  if (axis.active)
    all = {where_active(*axis.active, value, neutral(u.kind, value.value.dtype()), lanes, u.where),
           0};
  if (!all.axis) return repeated_update(u.kind, value.value, lanes, u.where);
  const Op op = u.kind == Update::add   ? Op::reduce_sum
                : u.kind == Update::mul ? Op::reduce_prod
                : u.kind == Update::max ? Op::reduce_max
                                        : Op::reduce_min;
  return emit(op, make_params(AxesParams{Axes{*all.axis}}), {all.value}, u.where);
}

// Which results of the function depend on an input that differs between lanes: what does not is the
// same in every block.
Vec<bool> dependent_results(const Recorded& lane, std::size_t mapped_inputs) {
  const GraphBody& g = lane.graph;
  Vec<bool> depends(g.avals.size());
  for (std::size_t i = 0; i < mapped_inputs; ++i) depends[g.inputs[i]] = true;
  for (const Equation& e : g.equations) {
    const bool any = any_of(e.inputs, [&](Var v) { return depends[v]; });
    for (Var v : e.outputs) depends[v] = any;
  }
  Vec<bool> result;
  for (Var v : g.outputs) result.push_back(depends[v]);
  return result;
}

// Lanes first … first + count − 1 of an argument.
// `now`: blocks are run one after the other.
Batched block_of(const Batched& x, std::int64_t first, std::int64_t count, bool now,
                 CallSite where) {
  if (!x.axis) return x;
  const std::size_t at = *x.axis;
  Shape shape = x.value.shape();
  const Node* n = node_of(x.value);
  if (n->op == Op::iota && shape.rank() == 1) {  // a loop's index stays one
    const DType dtype = x.value.dtype();
    const Tensor index =
        emit(Op::iota, make_params(IotaParams{Aval(dtype, Shape{count}), 0}), {}, where);
    const Tensor start = full_tensor(Scalar(first).converted(dtype), Aval(dtype, Shape{}));
    return {first == 0 ? index : emit(Op::add, {}, {index, start}, where), 0};
  }
  if (n->level == 0 && now) {
    // Run block by block: with the start as a value, all blocks are one program.
    std::vector<Tensor> operands{x.value};
    for (std::size_t a = 0; a < shape.size(); ++a)
      operands.push_back(tensor(a == at ? first : std::int64_t{0}, where));
    shape[at] = count;
    return {emit(Op::dynamic_slice, make_params(ShapeParams{shape}), operands, where), x.axis};
  }
  SliceParams p{Shape::filled(shape.size(), 0), shape, Shape::filled(shape.size(), 1)};
  p.start[at] = first;
  p.limit[at] = first + count;
  return {emit(Op::slice, make_params(std::move(p)), {x.value}, where), x.axis};
}

// Lanes first … first + count − 1, of which those run that the call says.
LaneAxis walked_lanes(const VmapCall& call, const AxisRef& axis, std::int64_t first,
                      std::int64_t count) {
  if (!call.running.defined()) return {axis, nullptr};
  return {axis, active_lanes(call.running, first, count, call.where)};
}

// A result of all lanes, which is 0 for those that do not run.
// `zero`: it is that already.
Tensor of_lanes(const VmapCall& call, const Batched& x, int axis, std::int64_t lanes,
                const LaneAxis& walked, bool zero) {
  if (!walked.active || zero) return lanes::at_axis(x, axis, lanes, call.where);
  const Scalar none = Scalar(false).converted(x.value.dtype());
  return lanes::at_axis({where_active(*walked.active, x, none, lanes, call.where), 0}, axis, lanes,
                        call.where);
}

std::vector<Tensor> run_in_blocks(const VmapCall& call, std::int64_t chunk, const Recorded& lane,
                                  const Vec<Batched>& arguments, std::int64_t lanes,
                                  const Vec<MappedAxis>& axes, const AxisRef& axis,
                                  std::span<const StateUpdate> updates) {
  if (axis && works_over(lane.graph, *axis))
    refuse(call, ErrorKind::transform,
           "chunk runs " + std::to_string(chunk) + " lanes at a time, but a collective over \"" +
               axis->name + "\" needs all " + std::to_string(lanes) + " at once");
  const auto mapped = count_if(arguments, [](const Batched& a) { return a.axis.has_value(); });
  const Vec<bool> depends = dependent_results(lane, static_cast<std::size_t>(mapped));
  for (std::size_t k = 0; k < axes.size(); ++k)
    if (depends[k] && !axes[k]) refuse_unmapped(call, lane.graph, k);
  Vec<JoinedBlocks> joined(axes.size());
  std::vector<Tensor> shared(axes.size());  // results without lanes
  std::vector<Tensor> changes(updates.size());
  for (std::int64_t first = 0; first < lanes; first += chunk) {
    const std::int64_t count = std::min(chunk, lanes - first);
    Vec<Batched> block;
    std::vector<Tensor> parts;
    for (const Batched& a : arguments) {
      block.push_back(block_of(a, first, count, thread_state().floor == 0, call.where));
      if (!is_tracer(block.back().value)) parts.push_back(block.back().value);
    }
    // Kernels that also cut the block out would sum in another order than those of all lanes.
    if (thread_state().floor == 0) evaluate(parts, call.where);
    const LaneAxis walked = walked_lanes(call, axis, first, count);
    Vec<bool> zero;
    const Vec<Batched> results = batch_recorded(lane, block, count, walked, &zero);
    std::vector<Tensor> made, blocks;
    for (std::size_t k = 0; k < updates.size(); ++k) {
      const Tensor change =
          of_all_lanes(call, updates[k], results[axes.size() + k], count, walked, changes[k]);
      const bool adds = first > 0 && accumulates(updates[k].kind);
      changes[k] = adds ? combined(updates[k].kind, changes[k], change, updates[k].where) : change;
    }
    made = changes;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if (!axes[k] && first > 0) continue;  // the same in every block
      if (axes[k])
        blocks.push_back(
            of_lanes(call, results[k], *axes[k], count, walked, walked.active && zero[k]));
      else shared[k] = results[k].value;
      made.push_back(axes[k] ? blocks.back() : shared[k]);
    }
    // What blocks are for: the memory of one at a time. Under a trace that is the compiler's to
    // plan.
    const bool now =
        thread_state().floor == 0 && none_of(made, [](const Tensor& t) { return is_tracer(t); });
    if (now) {
      compile_at_first_sight(made);
      evaluate(made, call.where);
    }
    made.clear();
    std::size_t next = 0;
    for (std::size_t k = 0; k < axes.size(); ++k)
      if (axes[k]) joined[k].add(std::move(blocks[next++]), *axes[k], lanes, now, call.where);
  }
  apply_updates(updates, changes);
  std::vector<Tensor> outputs;
  for (std::size_t k = 0; k < axes.size(); ++k)
    outputs.push_back(axes[k] ? joined[k].whole(*axes[k], call.where) : shared[k]);
  return outputs;
}

/// While it lives, what cannot be vectorized is an error, or not.
class Vectorizing {
 public:
  explicit Vectorizing(bool must) : before_(std::exchange(thread_state().must_vectorize, must)) {}
  ~Vectorizing() { thread_state().must_vectorize = before_; }
  Vectorizing(const Vectorizing&) = delete;
  Vectorizing& operator=(const Vectorizing&) = delete;

 private:
  bool before_;
};

}  // namespace vmap_entry

std::vector<Tensor> vmap_flat(const FlatFunction& f, const VmapCall& call) {
  using namespace vmap_entry;
  if (call.chunk < 0)
    refuse(call, ErrorKind::value,
           "chunk is " + std::to_string(call.chunk) + "; it is a number of lanes, or 0 for all");
  Vec<Batched> arguments = mapped_arguments(call);
  const std::int64_t lanes = lane_count(call, arguments);
  AxisRef axis;
  if (!call.axis_name.empty())
    axis =
        std::make_shared<const NamedAxis>(NamedAxis{call.axis_name, lanes, call.running.defined()});
  arguments = with_lane_index(arguments, axis);
  Vec<StateUpdate> updates;  // their values are the last results
  Vec<LaneStream> streams;
  const Recorded lane =
      record_function(with_updates(f, updates, &streams), call, arguments, lanes, axis);
  for (const LaneStream& s : streams)
    arguments.push_back({lane_streams(s.variable, lanes, s.where), 0});
  const Vec<MappedAxis> axes =
      result_axes(call, lane.graph, lane.graph.outputs.size() - updates.size());
  const WhereScope line(call.where);
  const Vectorizing vectorizing(call.must_vectorize);
  const bool hybrid =
      call.schedule == LaneSchedule::automatic && lanes_from_environment() == "hybrid";
  const LaneScheduleScope schedule(hybrid ? LaneSchedule::hybrid : call.schedule);
  // Branches keep bodies of one lane, so what cannot be vectorized is found by lanes that all run.
  if (call.must_vectorize && call.running.defined())
    static_cast<void>(record(
        [&](std::span<const Tensor>) {
          static_cast<void>(batch_recorded(lane, arguments, lanes, {axis, nullptr}));
          return std::vector<Tensor>();
        },
        {}, {.kind = ScopeKind::branch, .transform = call.transform}));
  const bool now = thread_state().floor == 0;
  const auto one_block = [&](std::int64_t count) {
    Vec<Batched> block;
    for (const Batched& a : arguments)
      block.push_back(count < lanes ? block_of(a, 0, count, now, call.where) : a);
    std::vector<Tensor> results;
    const LaneAxis walked = walked_lanes(call, axis, 0, count);
    for (const Batched& b : batch_recorded(lane, block, count, walked)) results.push_back(b.value);
    return results;
  };
  const std::int64_t chunk = lanes_at_once({.transform = call.transform,
                                            .where = call.where,
                                            .lanes = lanes,
                                            .chunk = call.chunk,
                                            .limit = call.memory_limit,
                                            .held = call.arguments},
                                           one_block);
  if (chunk > 0 && chunk < lanes)
    return run_in_blocks(call, chunk, lane, arguments, lanes, axes, axis, updates);
  std::vector<Tensor> outputs, changes;
  outputs.reserve(axes.size());
  const LaneAxis walked = walked_lanes(call, axis, 0, lanes);
  Vec<bool> zero;
  for (const Batched& result : batch_recorded(lane, arguments, lanes, walked, &zero)) {
    if (outputs.size() == axes.size()) {
      changes.push_back(of_all_lanes(call, updates[changes.size()], result, lanes, walked, {}));
      continue;
    }
    const MappedAxis& wanted = axes[outputs.size()];
    if (result.axis && !wanted) refuse_unmapped(call, lane.graph, outputs.size());
    outputs.push_back(wanted ? of_lanes(call, result, *wanted, lanes, walked,
                                        walked.active && zero[outputs.size()])
                             : result.value);
  }
  if (now) {  // as blocks are: same bits either way
    compile_at_first_sight(outputs);
    compile_at_first_sight(changes);
  }
  if (lanes > 0) apply_updates(updates, changes);
  return outputs;
}

namespace pfor_entry {

std::int64_t checked_count(std::int64_t n, const char* what, CallSite where) {
  if (n >= 0 && n <= std::numeric_limits<std::int32_t>::max()) return n;
  fail(ErrorKind::value,
       "vt::pfor: " + std::to_string(n) + what + "; the index is i32 and starts at 0", where);
}

/// The value of n, where it is known.
std::optional<std::int64_t> value_of_count(const Tensor& n, CallSite where) {
  std::uint64_t natural = 0;
  std::int64_t value = 0;
  try {
    if (is_unsigned(n.dtype())) copy_out(n, DType::u64, &natural, where, "vt::pfor");
    else copy_out(n, DType::i64, &value, where, "vt::pfor");
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::tracer) throw;
    return std::nullopt;
  }
  if (!is_unsigned(n.dtype())) return value;
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(natural, most));
}

/// n as an i32[], of at most `bound`: an Error if its value is known and does not fit, else a
/// check.
Tensor checked_count(const Tensor& n, std::int64_t bound, CallSite where) {
  const DType dtype = n.dtype();
  const auto said = [&](const std::string& count) {
    return "n is " + count + "; it must be 0 … " + std::to_string(bound) + ", as at_most says";
  };
  std::optional<std::int64_t> value;
  if (!is_tracer(n)) value = value_of_count(n, where);
  if (value && (*value < 0 || *value > bound))
    fail(ErrorKind::value, "vt::pfor: " + said(std::to_string(*value)), where);
  else if (!value) {
    const auto compared = [&](Op op, std::int64_t with) {
      const Tensor limit = full_tensor(Scalar(with).converted(dtype), Aval(dtype, Shape{}));
      return emit(op, {}, {n, limit}, where);
    };
    const std::size_t bits = 8 * size_of(dtype) - (is_unsigned(dtype) ? 0 : 1);
    Tensor holds;
    if (!is_unsigned(dtype)) holds = compared(Op::ge, 0);
    if (bits >= 63 || bound < (std::int64_t{1} << bits) - 1) {  // else any n is at most that
      const Tensor fits = compared(Op::le, bound);
      holds = holds.defined() ? emit(Op::and_, {}, {holds, fits}, where) : fits;
    }
    if (holds.defined()) {
      CheckParams p;
      p.text = said("{0}");
      p.line = where;
      p.kind = ErrorKind::value;
      p.function = "vt::pfor";
      emit_all(Op::check, make_params(std::move(p)), std::vector<Tensor>{holds, n}, where);
    }
  }
  if (dtype == DType::i32 && !aval_of(n).weak) return n;
  return emit(Op::convert, make_params(ConvertParams{DType::i32}), {n}, where);
}

}  // namespace pfor_entry

std::vector<Tensor> pfor_flat(const FlatFunction& f, const PforCount& count, VmapCall call) {
  using namespace pfor_entry;
  std::int64_t lanes = 0;
  if (count.is_tensor) {
    const Tensor& n = count.tensor;
    if (!n.defined()) fail(ErrorKind::value, "vt::pfor: n is an empty Tensor", call.where);
    if (!is_int(n.dtype()) || n.rank() != 0)
      fail(n.rank() == 0 ? ErrorKind::dtype : ErrorKind::shape,
           "vt::pfor: n is " + aval_of(n).str() + "; it must be an integer, or an integer scalar",
           call.where);
    if (count.at_most) {
      lanes = checked_count(*count.at_most, " iterations at most", call.where);
      call.running = checked_count(n, lanes, call.where);
    } else if (const auto value = value_of_count(n, call.where)) {
      lanes = checked_count(*value, " iterations", call.where);
    } else {
      fail(ErrorKind::tracer,
           "vt::pfor: the value of n, " + aval_of(n).str() +
               ", is not known while this is recorded, and so is the number of results; give "
               "{.at_most = …}",
           call.where);
    }
  } else {
    lanes = checked_count(count.number, " iterations", call.where);
    if (count.at_most) {
      const std::int64_t bound = checked_count(*count.at_most, " iterations at most", call.where);
      const Tensor n = full_tensor(Scalar(lanes).converted(DType::i32), Aval(DType::i32, Shape{}));
      lanes = bound;
      call.running = checked_count(n, bound, call.where);
    }
  }
  const Tensor index =
      emit(Op::iota, make_params(IotaParams{Aval(DType::i32, Shape{lanes}), 0}), {}, call.where);
  const MappedAxis axis = 0;
  call.arguments = {&index, 1};
  call.in_axes = {&axis, 1};
  call.transform = "vt::pfor";
  call.argument_name = [](std::size_t) { return std::string("the index"); };
  return vmap_flat(f, call);
}

std::vector<Tensor> custom_vmap_flat(const FlatFunction& f, const FlatBatchRule& rule,
                                     std::span<const Tensor> arguments, CallSite where) {
  Vec<Aval> avals;
  bool traced = current_level() > 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].defined())
      fail(ErrorKind::value,
           "vt::custom_vmap: argument leaf " + std::to_string(i) + " is an empty Tensor", where);
    avals.push_back(aval_of(arguments[i]));
    traced = traced || is_tracer(arguments[i]);
  }
  if (!traced) return f(arguments);
  // Its tracers stand for the arguments, so that where their values may be looked at outside, they
  // may inside.
  Recorded recorded = record(f, avals,
                             {.kind = ScopeKind::grad,
                              .transform = "vt::custom_vmap",
                              .concrete = arguments,
                              .where = where});
  if (recorded.graph.outputs.empty() && !has_effects(recorded.graph)) return {};
  auto custom = std::make_shared<CustomRule>();
  custom->name = "vt::custom_vmap";
  custom->batch = rule;
  std::vector<Tensor> operands(arguments.begin(), arguments.end());
  operands.insert(operands.end(), recorded.captured.begin(), recorded.captured.end());
  CallParams p;
  p.body = std::make_shared<const GraphBody>(std::move(recorded.graph));
  p.rule = std::move(custom);
  p.explicit_operands = static_cast<int>(arguments.size());
  const auto outputs = emit_all(Op::custom_vmap, make_params(std::move(p)), operands, where);
  return {outputs.begin(), outputs.end()};
}

}  // namespace vt::detail
