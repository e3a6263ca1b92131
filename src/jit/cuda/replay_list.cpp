// What programs, loops and branches of a device write into a ReplayList.
#include "replay_list.hpp"

#include "../../trace/node.hpp"
#include "../register_loop.hpp"
#include "control.hpp"
#include "program.hpp"
#include "register_source.hpp"

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

Place ReplayList::settled(Place place, std::size_t bytes) {
  constexpr std::size_t small = std::size_t{16} << 20;  // copied in about the time that making a graph takes
  return place.base >= 0 && bytes <= small ? take(bytes) : place;
}

bool CudaProgram::list(ReplayList& l, std::span<const Place> inputs, std::span<const Place> outputs) const {
  using Kind = BufferPlan::Slot::Kind;
  const GraphBody& g = fusion_.graph;
  const auto storage = [&](Var v) { return static_cast<std::size_t>(fusion_.storage[static_cast<std::size_t>(v)]); };
  const std::size_t taken = l.taken();
  const Place arena = plan_.arena_bytes ? l.take(plan_.arena_bytes) : Place();
  const Place scratch = scratch_bytes_ ? l.take(scratch_bytes_) : Place();  // of one step after the other
  Vec<Place> places(g.avals.size());
  for (std::size_t v = 0; v < constants_.size(); ++v)
    if (constants_[v]) places[v] = {Place::fixed, address(*constants_[v])};
  for (std::size_t i = 0; i < g.inputs.size(); ++i) places[static_cast<std::size_t>(g.inputs[i])] = inputs[i];
  // A result that a loop or a branch makes is made where it belongs.
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const std::size_t v = storage(g.outputs[i]);
    const BufferPlan::Slot& s = plan_.slots[v];
    const bool its_own = (s.kind == Kind::output && s.index == static_cast<int>(i)) || (s.kind == Kind::produced && places[v].base == Place::nowhere);
    if (!its_own) continue;
    places[v] = outputs[i].base == Place::nowhere ? l.take(g.aval(g.outputs[i]).bytes()) : outputs[i];
  }
  for (std::size_t v = 0; v < plan_.slots.size(); ++v) {
    const BufferPlan::Slot& s = plan_.slots[v];
    if (s.kind == Kind::arena) places[v] = arena + s.offset;
    if (s.kind == Kind::in_output) places[v] = places[storage(g.outputs[static_cast<std::size_t>(s.index)])] + s.offset;
  }
  for (const Step& step : steps_) {
    if (step.kind == Step::Kind::kernel) {
      for (const Launch& launch : step.launches) {
        if (launch.library) return false;  // cuBLAS gives its work to the stream itself
        ReplayStep kernel;
        kernel.code = launch.code;
        kernel.grid = launch.grid;
        for (const Launch::Pointer& p : launch.pointers)
          kernel.places.push_back((p.var < 0 ? scratch : places[static_cast<std::size_t>(p.var)]) + static_cast<std::uint64_t>(p.offset));
        kernel.numbers = launch.numbers;
        if (!l.add(std::move(kernel))) return false;
      }
    } else if (step.kind == Step::Kind::control) {
      const Equation& e = g.equations[static_cast<std::size_t>(step.equation)];
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
    if (!l.copy(outputs[i], places[storage(g.outputs[i])], g.aval(g.outputs[i]).bytes())) return false;
  l.give_back(taken);
  return true;
}

bool DeviceControl::list(ReplayList& l, std::span<const Place> operands, std::span<const Place> results) const {
  const auto result_bytes = [&](std::size_t i) { return alone_.aval(alone_.outputs[i]).bytes(); };
  if (in_registers_) {
    ReplayStep kernel;
    for (std::size_t i = 0; i < results.size(); ++i)
      if (carried_in_memory(i) && !l.copy(results[i], operands[i], result_bytes(i))) return false;
    if (lanes_ == 0) return true;
    kernel.code = in_registers_;
    kernel.grid = grid_in_registers();
    for (const Place& p : operands) kernel.places.push_back(p);
    for (const Place& p : results) kernel.places.push_back(p);
    return l.add(std::move(kernel));
  }
  const auto body = [&](std::size_t k) { return static_cast<const CudaProgram*>(bodies_[k].get()); };
  const std::size_t taken = l.taken();
  if (equation_.op == Op::scan) {
    const auto& p = equation_.as<ScanParams>();
    const GraphBody& graph = *graphs_[0];
    const auto carries = static_cast<std::size_t>(p.carries), looped = carries + static_cast<std::size_t>(p.sequences);
    const auto length = static_cast<std::size_t>(p.length);
    Vec<Place> values(operands.begin(), operands.end()), next(results.begin(), results.end()), others;
    for (std::size_t i = 0; i < carries; ++i) others.push_back(l.take(result_bytes(i)));
    for (std::size_t round = 0; round < length; ++round) {
      const std::size_t at = p.reverse ? length - 1 - round : round;
      const bool to_results = (length - 1 - round) % 2 == 0;  // carries change between two places, and end in the results
      for (std::size_t i = carries; i < looped; ++i) values[i] = operands[i] + at * graph.aval(graph.inputs[i]).bytes();
      for (std::size_t i = 0; i < results.size(); ++i)
        next[i] = i >= carries ? results[i] + at * graph.aval(graph.outputs[i]).bytes() : to_results ? results[i] : others[i];
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
  const std::size_t carries = equation_.op == Op::while_ ? static_cast<std::size_t>(equation_.as<WhileParams>().carries) : 0;
  for (std::size_t i = 0; i < results.size(); ++i) settled.push_back(l.settled(results[i], result_bytes(i)));
  // Carries live where the results will be, so that a round reads what the one before wrote.
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::size_t bytes = alone_.aval(alone_.inputs[i]).bytes();
    values.push_back(i < carries ? settled[i] : l.settled(operands[i], bytes));
    if (!l.copy(values[i], operands[i], bytes)) return false;
  }
  // Steps that `write` adds become the body of `step`.
  const auto add_with_body = [&](ReplayStep step, FunctionRef<bool()> write) {
    Vec<ReplayStep> outer = std::move(l.steps);
    l.steps = {};
    const bool fits = write();
    step.body = std::move(l.steps);
    l.steps = std::move(outer);
    return l.add(std::move(step)) && fits;
  };
  ReplayStep step;
  if (equation_.op == Op::cond) {
    step.kind = ReplayStep::Kind::branch;
    step.places.push_back(values[0]);
    const std::span<const Place> given(values.data() + 1, values.size() - 1);
    for (std::size_t k = 0; k < bodies_.size(); ++k) {
      step.numbers = {static_cast<std::int64_t>(k), static_cast<std::int64_t>(bodies_.size()) - 1};
      if (!add_with_body(step, [&] { return body(k)->list(l, given, settled); })) return false;
    }
  } else {
    const Place holds = l.take(1);
    step.kind = ReplayStep::Kind::loop;
    step.places.push_back(holds);
    const std::span<const Place> flag(&holds, 1);
    if (!body(0)->list(l, values, flag)) return false;
    const bool fits = add_with_body(step, [&] {
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

}  // namespace vt::detail::cuda
