// Writes the work of programs, loops and branches of a device into a ReplayList.
#include "replay_list.hpp"

#include <algorithm>

#include "../../../trace/record/node.hpp"
#include "../../regions/register_kernel.hpp"
#include "../source/register_source.hpp"
#include "control.hpp"
#include "program.hpp"

namespace vt::detail::cuda {

bool ReplayList::copy(Place to, Place from, std::size_t bytes) {
  if (bytes == 0 || to == from || to.base == Place::nowhere) return true;
  ReplayStep step;
  step.kind = ReplayStep::Kind::copy;
  step.places.push_back(to);
  step.places.push_back(from);
  step.numbers.push_back(static_cast<std::int64_t>(bytes));
  return add(std::move(step));
}

bool ReplayList::add_with_body(ReplayStep step, FunctionRef<bool()> write) {
  Vec<ReplayStep> outer = std::move(steps);
  steps = {};
  const bool fits = write();
  step.body = std::move(steps);
  steps = std::move(outer);
  return add(std::move(step)) && fits;
}

Place ReplayList::settled(Place place, std::size_t bytes) {
  if (kernel_) return place.step ? take(bytes) : place;
  // copied in about the time that making a graph takes
  constexpr std::size_t small = std::size_t{16} << 20;
  return place.base >= 0 && bytes <= small ? take(bytes) : place;
}

bool CudaProgram::list(ReplayList& l, std::span<const Place> inputs,
                       std::span<const Place> outputs) const {
  using Kind = BufferPlan::Slot::Kind;
  const GraphBody& g = fusion_.graph;
  const auto storage = [&](Var v) { return fusion_.storage[v]; };
  const std::size_t taken = l.taken();
  const Place arena = plan_.arena_bytes ? l.take(plan_.arena_bytes) : Place();
  // of one step after the other
  const Place scratch = scratch_bytes_ ? l.take(scratch_bytes_) : Place();
  Vec<Place> places(g.avals.size());
  for (std::size_t v = 0; v < constants_.size(); ++v)
    if (constants_[v]) places[v] = {Place::fixed, address(*constants_[v])};
  for (std::size_t v = 0; v < plan_.slots.size(); ++v)
    if (plan_.slots[v].kind == Kind::input) places[v] = inputs[plan_.slots[v].index];
  // A result that a loop or a branch makes is made where it belongs.
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const std::size_t v = storage(g.outputs[i]);
    const BufferPlan::Slot& s = plan_.slots[v];
    const bool its_own = (s.kind == Kind::output && s.index == static_cast<int>(i)) ||
                         (s.kind == Kind::produced && places[v].base == Place::nowhere);
    if (!its_own) continue;
    places[v] =
        outputs[i].base == Place::nowhere ? l.take(g.aval(g.outputs[i]).bytes()) : outputs[i];
  }
  for (std::size_t v = 0; v < plan_.slots.size(); ++v) {
    const BufferPlan::Slot& s = plan_.slots[v];
    if (s.kind == Kind::arena) places[v] = arena + s.offset;
    if (s.kind == Kind::in_output) places[v] = places[storage(g.outputs[s.index])] + s.offset;
  }
  for (const DeviceStep& step : steps_) {
    if (step.kind == DeviceStep::Kind::kernel) {
      for (const Launch& launch : step.launches) {
        ReplayStep kernel;
        if (launch.library && !launch.library->may_be_captured()) return false;
        if (launch.library) kernel.kind = ReplayStep::Kind::library, l.has_libraries = true;
        kernel.call = launch.library;
        kernel.code = launch.code;
        if (!launch.source.empty()) kernel.text = &launch.source;
        kernel.work = launch.work;
        kernel.grid = launch.grid;
        for (const Launch::Pointer& p : launch.pointers)
          kernel.places.push_back((p.var < 0 ? scratch : places[p.var]) +
                                  static_cast<std::uint64_t>(p.offset));
        kernel.numbers = launch.numbers;
        if (!l.add(std::move(kernel))) return false;
      }
    } else if (step.kind == DeviceStep::Kind::control) {
      const Equation& e = g.equations[step.equation];
      Vec<Place> operands, results;
      for (Var v : e.inputs) operands.push_back(places[storage(v)]);
      for (Var v : e.outputs) {
        Place& place = places[storage(v)];
        if (place.base == Place::nowhere) place = l.take(g.aval(v).bytes());
        results.push_back(place);
      }
      if (!step.control->list(l, operands, results)) return false;
    } else {
      return false;
    }
  }
  for (std::size_t i = 0; i < g.outputs.size(); ++i)
    if (!l.copy(outputs[i], places[storage(g.outputs[i])], g.aval(g.outputs[i]).bytes()))
      return false;
  l.give_back(taken);
  return true;
}

bool DeviceControl::list(ReplayList& l, std::span<const Place> operands,
                         std::span<const Place> results) const {
  const auto result_bytes = [&](std::size_t i) { return alone_.aval(alone_.outputs[i]).bytes(); };
  if (loop_code_ && !l.for_kernel()) {
    const std::size_t taken = l.taken();
    ReplayStep kernel;
    kernel.code = loop_code_;
    kernel.grid = loop_.grid;
    for (const Place& p : operands) kernel.places.push_back(p);
    for (const Place& p : results) kernel.places.push_back(p);
    kernel.places.push_back(l.take(std::max<std::size_t>(loop_scratch_bytes_, 1)));
    for (DevicePtr p : loop_.fixed) kernel.places.push_back({Place::fixed, p});
    l.give_back(taken);
    return l.add(std::move(kernel));
  }
  if (in_registers_) {
    ReplayStep kernel;
    if (!register_text_.empty()) kernel.text = &register_text_;
    kernel.work = register_work_;
    for (std::size_t i = 0; i < results.size(); ++i)
      if (carried_in_memory(i) && !l.copy(results[i], operands[i], result_bytes(i))) return false;
    if (lanes_ == 0) return true;
    kernel.code = in_registers_;
    kernel.grid = grid_in_registers();
    for (const Place& p : operands) kernel.places.push_back(p);
    for (const Place& p : results) kernel.places.push_back(p);
    return l.add(std::move(kernel));
  }
  const auto body = [&](std::size_t k) {
    return static_cast<const CudaProgram*>(bodies_[k].get());
  };
  const std::size_t taken = l.taken();
  if (equation_.op == Op::scan) {
    const auto& p = equation_.as<ScanParams>();
    const GraphBody& graph = *graphs_[0];
    const std::size_t carries = p.carries, looped = carries + p.sequences;
    const std::size_t length = p.length;
    if (l.for_kernel()) return list_iterations(l, operands, results);
    if (l.may_have_conditions() && length > 1) {
      ReplayList one(true);
      Vec<Place> any(operands.size(), {0, 0}), unwanted(results.size(), {0, 0});
      if (!body(0)->list(one, any, unwanted)) return false;
      if (!l.has_room(one.steps_in_all() * static_cast<std::int64_t>(length)))
        return list_counted(l, operands, results);
    }
    Vec<Place> values(operands.begin(), operands.end()), next(results.begin(), results.end()),
        others;
    for (std::size_t i = 0; i < carries; ++i) others.push_back(l.take(result_bytes(i)));
    for (std::size_t iteration = 0; iteration < length; ++iteration) {
      const std::size_t at = p.reverse ? length - 1 - iteration : iteration;
      // carries change between two places, and end in the results
      const bool to_results = (length - 1 - iteration) % 2 == 0;
      for (std::size_t i = carries; i < looped; ++i)
        values[i] = operands[i] + at * graph.aval(graph.inputs[i]).bytes();
      for (std::size_t i = 0; i < results.size(); ++i)
        next[i] = i >= carries ? results[i] + at * graph.aval(graph.outputs[i]).bytes()
                  : to_results ? results[i]
                               : others[i];
      if (!body(0)->list(l, values, next)) return false;
      for (std::size_t i = 0; i < carries; ++i) values[i] = next[i];
    }
    for (std::size_t i = 0; length == 0 && i < carries; ++i)
      if (!l.copy(results[i], operands[i], result_bytes(i))) return false;
    l.give_back(taken);
    return true;
  }
  if (!l.may_have_conditions()) return false;
  l.has_conditions = true;
  Vec<Place> values, settled;
  const std::size_t carries = equation_.op == Op::while_ ? carries_of(equation_) : 0;
  for (std::size_t i = 0; i < results.size(); ++i)
    settled.push_back(l.settled(results[i], result_bytes(i)));
  // Carries live where the results will be, so that an iteration reads what the one before wrote.
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::size_t bytes = alone_.aval(alone_.inputs[i]).bytes();
    values.push_back(i < carries ? settled[i] : l.settled(operands[i], bytes));
    if (!l.copy(values[i], operands[i], bytes)) return false;
  }
  ReplayStep step;
  if (equation_.op == Op::cond) {
    step.kind = ReplayStep::Kind::branch;
    step.places.push_back(values[0]);
    const std::span<const Place> given(values.data() + 1, values.size() - 1);
    for (std::size_t k = 0; k < bodies_.size(); ++k) {
      step.numbers = {static_cast<std::int64_t>(k), static_cast<std::int64_t>(bodies_.size()) - 1};
      if (!l.add_with_body(step, [&] { return body(k)->list(l, given, settled); })) return false;
    }
  } else {
    const Place holds = l.take(1);
    step.kind = ReplayStep::Kind::loop;
    step.places.push_back(holds);
    const std::span<const Place> flag(&holds, 1);
    if (!body(0)->list(l, values, flag)) return false;
    const bool fits = l.add_with_body(step, [&] {
      Vec<Place> next;
      for (std::size_t i = 0; i < carries; ++i) next.push_back(l.take(result_bytes(i)));
      if (!body(1)->list(l, values, next)) return false;
      for (std::size_t i = 0; i < carries; ++i)
        if (!l.copy(values[i], next[i], result_bytes(i))) return false;
      return body(0)->list(l, values, flag);
    });
    if (!fits) return false;
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!l.copy(results[i], settled[i], result_bytes(i))) return false;
  l.give_back(taken);
  return true;
}

// A scan whose iterations are iterations of a kernel: sequences are read and written further on in
// each.
bool DeviceControl::list_iterations(ReplayList& l, std::span<const Place> operands,
                                    std::span<const Place> results) const {
  const auto& p = equation_.as<ScanParams>();
  const GraphBody& graph = *graphs_[0];
  const std::size_t carries = p.carries, looped = carries + p.sequences;
  const std::size_t taken = l.taken();
  const auto bytes = [&](std::size_t i, bool result) {
    return alone_.aval(result ? alone_.outputs[i] : alone_.inputs[i]).bytes();
  };
  const auto stepping = [&](Place place, Var v) {
    const auto each = static_cast<std::int64_t>(graph.aval(v).bytes());
    place.offset +=
        p.reverse ? static_cast<std::uint64_t>(each * std::max<std::int64_t>(p.length - 1, 0)) : 0;
    place.step = p.reverse ? -each : each;
    return place;
  };
  Vec<Place> values, next, made;
  for (std::size_t i = 0; i < results.size(); ++i)
    made.push_back(l.settled(results[i], bytes(i, true)));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    values.push_back(i < carries ? made[i] : l.settled(operands[i], bytes(i, false)));
    if (!l.copy(values[i], operands[i], bytes(i, false))) return false;
    if (i >= carries && i < looped) values[i] = stepping(values[i], graph.inputs[i]);
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    next.push_back(i < carries ? l.take(bytes(i, true)) : stepping(made[i], graph.outputs[i]));
  ReplayStep iterations;
  iterations.kind = ReplayStep::Kind::iterations;
  iterations.numbers = {p.length};
  const bool fits = l.add_with_body(std::move(iterations), [&] {
    if (!static_cast<const CudaProgram*>(bodies_[0].get())->list(l, values, next)) return false;
    for (std::size_t i = 0; i < carries; ++i)
      if (!l.copy(made[i], next[i], bytes(i, true))) return false;
    return true;
  });
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!l.copy(results[i], made[i], bytes(i, true))) return false;
  l.give_back(taken);
  return fits;
}

}  // namespace vt::detail::cuda
