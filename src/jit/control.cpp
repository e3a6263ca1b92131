// ControlRunner: a cond, while or scan whose bodies are compiled programs, run from here round by round.
#include "control.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <vt/small_vec.hpp>

#include "../trace/batching.hpp"
#include "../trace/effects.hpp"
#include "../trace/node.hpp"
#include "../trace/recursion.hpp"
#include "../trace/warnings.hpp"
#include "program.hpp"
#include "register_loop.hpp"
#include "threads.hpp"

namespace vt::detail {

namespace control_memory {

std::byte* bytes_of(const BufferRef& b) { return b->as<std::byte>(); }

BufferRef copied(const BufferRef& b) {
  BufferRef own = allocate(b->bytes, "a loop's carry");
  if (b->bytes) std::memcpy(own->data, b->data, b->bytes);
  return own;
}
/// Views of memory that changes or goes with the round become buffers of their own.
void own(Vec<BufferRef>& buffers) {
  for (BufferRef& b : buffers)
    if (b->capacity == 0 && b->bytes > 0) b = copied(b);
}

/// VT_LANES=groups: lanes that go different ways are always grouped, never run side by side under masks.
bool lanes_in_groups() {
  static const bool groups = [] {
    const char* text = std::getenv("VT_LANES");
    const std::string_view name = text ? text : "";
    if (!name.empty() && name != "groups" && name != "automatic") warn_once("VT_LANES=" + std::string(name) + " is not groups or automatic: ignored");
    return name == "groups";
  }();
  return groups;
}

/// Makes the loop the only holder of what is going to be written over.
void make_sole(BufferRef& value) {
  if (value->capacity == 0 || value->references.load(std::memory_order_acquire) != 1) value = copied(value);
}
void make_sole(Vec<BufferRef>& values, const Program& body) {
  for (std::size_t i : body.overwritten()) make_sole(values[i]);
}

/// Rows of an array of lanes.
struct Rows {
  std::byte* data;
  std::size_t bytes;  // of one
  Rows(const BufferRef& b, std::size_t row_bytes) : data(bytes_of(b)), bytes(row_bytes) {}
  std::byte* at(std::int64_t row) const { return data + static_cast<std::size_t>(row) * bytes; }
};
void copy_row(const Rows& to, std::int64_t i, const Rows& from, std::int64_t j) {
  if (to.bytes) std::memcpy(to.at(i), from.at(j), to.bytes);
}

/// Groups of lanes come in few sizes, so that few programs are compiled: powers of two, or all lanes.
std::int64_t group_size(std::int64_t live, std::int64_t lanes) {
  return std::min(lanes, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(live))));
}

}  // namespace control_memory

using control_memory::Rows;

ControlRunner::ControlRunner(const GraphBody& graph, const Equation& e, const Backend& backend)
    : equation_(e), alone_(alone(graph, e)), backend_(backend) {
  if (e.op == Op::recursive_call) return;  // compiled when it first runs: its program has such steps itself
  if (e.op == Op::cond) lanes_ = e.as<CondParams>().lanes;
  if (e.op == Op::while_) lanes_ = e.as<WhileParams>().lanes;
  if (lanes_) mapped_.assign(lanes_.mapped.begin() + (e.op == Op::cond ? 1 : 0), lanes_.mapped.end());
  for (const GraphRef& body : bodies_of(e.params)) {
    bodies_.push_back(new_box<Body>());
    bodies_.back()->graph = body;
  }
  if (e.op == Op::while_) carries_ = static_cast<std::size_t>(e.as<WhileParams>().carries);
  if (e.op == Op::scan) carries_ = static_cast<std::size_t>(e.as<ScanParams>().carries);
  const std::optional<LaneForm> form = lanes_ && control_memory::lanes_in_groups() ? std::nullopt : register_form(alone_);
  if (form) {
    lane_count_ = form->count;
    in_registers_ = backend.compile_register_loop(*form);
    const GraphBody& body = *bodies_.back()->graph;
    for (std::size_t i = 0; i < carries_; ++i)
      if (!in_registers(body.aval(body.inputs[i]))) in_place_.push_back(i);
    return;
  }
  if (!lanes_)
    for (std::size_t b = 0; b < bodies_.size(); ++b) program(b);
}
ControlRunner::~ControlRunner() = default;

Program& ControlRunner::program(std::size_t body, std::int64_t lanes) const {
  const Body& b = *bodies_[body];
  const std::lock_guard lock(b.mutex);
  std::shared_ptr<Program>& made = b.programs[lanes];
  if (!made) {
    const GraphBody graph = lanes ? batch_body(*b.graph, mapped_, lanes) : *b.graph;
    // The body of a loop may write its next state over the last.
    const bool loops = (equation_.op == Op::while_ && body == 1) || equation_.op == Op::scan;
    made = new_shared<Program>(simplify(graph, SimplifyFor::running), backend_, loops ? carries_ : 0);
  }
  return *made;
}

Vec<BufferRef> ControlRunner::run(Vec<BufferRef> operands) const {
  if (equation_.op == Op::recursive_call) return run_recursive(operands);
  if (in_registers_.function) return run_in_registers(std::move(operands));
  if (lanes_ && has_effect(equation_)) return run_one_by_one(operands);
  switch (equation_.op) {
    case Op::cond: return lanes_ ? run_lane_cond(operands) : run_cond(operands);
    case Op::while_: return lanes_ ? run_lane_while(std::move(operands)) : run_while(std::move(operands));
    default: return run_scan(std::move(operands));
  }
}

ControlRunner::Buffers ControlRunner::run_recursive(std::span<const BufferRef> operands) const {
  const RecursiveFunction& f = *equation_.as<RecursionParams>().function;
  const RecursionGuard deeper(f, equation_.where);
  std::shared_ptr<Executable> program;
  {
    const std::lock_guard lock(f.mutex);
    if (!f.compiled) f.compiled = compile_graph(*f.body);
    program = f.compiled;
  }
  return program->run(operands);
}

ControlRunner::Buffers ControlRunner::run_in_registers(Buffers operands) const {
  Buffers results(alone_.outputs.size());
  for (std::size_t i : in_place_) {
    control_memory::make_sole(operands[i]);
    results[i] = operands[i];
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!results[i]) results[i] = allocate(alone_.aval(alone_.outputs[i]).bytes(), "the results of a loop");
  SmallVec<void*, 32> buffers;
  for (const BufferRef& b : operands) buffers.push_back(b->data);
  for (const BufferRef& b : results) buffers.push_back(b->data);
  if (lane_count_ < 0) {
    in_registers_.function(buffers.data(), nullptr, 0, 1);
  } else {
    constexpr std::int64_t grain = 64;  // whole vectors, whole cache lines
    parallel_ranges(lane_count_, grain, [&](std::int64_t begin, std::int64_t end) {
      if (begin < end) in_registers_.function(buffers.data(), nullptr, begin, end);
    });
  }
  return results;
}

ControlRunner::Buffers ControlRunner::run_cond(std::span<const BufferRef> operands) const {
  const auto last = static_cast<std::int64_t>(bodies_.size()) - 1;
  const auto index = std::clamp<std::int64_t>(*operands[0]->as<const std::int32_t>(), 0, last);
  return program(static_cast<std::size_t>(index)).run(operands.subspan(1));
}

ControlRunner::Buffers ControlRunner::run_while(Buffers values) const {
  Program &condition = program(0), &body = program(1);
  while (*condition.run(values)[0]->as<const std::uint8_t>()) {
    control_memory::make_sole(values, body);
    Buffers next = body.run(values, {}, values);
    std::move(next.begin(), next.end(), values.begin());
  }
  values.resize(carries_);
  return values;
}

ControlRunner::Buffers ControlRunner::run_scan(Buffers values) const {
  const auto& p = equation_.as<ScanParams>();
  const std::size_t carries = carries_, looped = carries + static_cast<std::size_t>(p.sequences);
  Program& body = program(0);
  const GraphBody& graph = *bodies_[0]->graph;
  const auto length = static_cast<std::size_t>(p.length);
  const Buffers sequences(values.begin() + static_cast<std::ptrdiff_t>(carries), values.begin() + static_cast<std::ptrdiff_t>(looped));
  Buffers results(graph.outputs.size());
  Vec<void*> into(graph.outputs.size(), nullptr);
  Vec<std::size_t> row(graph.outputs.size());
  for (std::size_t i = carries; i < results.size(); ++i) {
    row[i] = graph.aval(graph.outputs[i]).bytes();
    results[i] = allocate(row[i] * length, "the results of a scan");
  }
  for (std::size_t round = 0; round < length; ++round) {
    const std::size_t at = p.reverse ? length - 1 - round : round;
    for (std::size_t i = carries; i < looped; ++i) {
      const BufferRef& whole = sequences[i - carries];
      const std::size_t bytes = whole->bytes / length;
      values[i] = borrow_memory(whole->as<std::byte>() + at * bytes, bytes);
    }
    for (std::size_t i = carries; i < results.size(); ++i) into[i] = control_memory::bytes_of(results[i]) + at * row[i];
    control_memory::make_sole(values, body);
    Buffers next = body.run(values, into, values);
    next.resize(carries);
    control_memory::own(next);  // an element handed on as a carry
    std::move(next.begin(), next.end(), values.begin());
  }
  std::move(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(carries), results.begin());
  return results;
}

// Lane after lane, as effects must happen: for each lane that goes there once, and in the order of a loop over them.
ControlRunner::Buffers ControlRunner::run_one_by_one(const Buffers& operands) const {
  const auto lanes = static_cast<std::size_t>(lanes_.count);
  Buffers results;
  for (Var v : alone_.outputs) results.push_back(allocate(alone_.aval(v).bytes(), "the results of lanes"));
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const LaneScope here(lanes_, static_cast<std::int64_t>(lane));
    Buffers own = operands;
    for (std::size_t i = 0; i < own.size(); ++i)
      if (lanes_.mapped[i]) {
        const std::size_t row = own[i]->bytes / lanes;
        own[i] = borrow_memory(control_memory::bytes_of(operands[i]) + lane * row, row);
      }
    const Buffers made = equation_.op == Op::cond ? run_cond(own) : run_while(std::move(own));
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::size_t row = results[k]->bytes / lanes;
      if (row) std::memcpy(control_memory::bytes_of(results[k]) + lane * row, made[k]->data, row);
    }
  }
  return results;
}

// Each branch runs once, on the lanes that take it, filled up with copies of one of them.
ControlRunner::Buffers ControlRunner::run_lane_cond(std::span<const BufferRef> operands) const {
  const std::int64_t lanes = lanes_.count;
  const GraphBody& graph = *bodies_[0]->graph;
  Buffers results;
  for (Var v : graph.outputs) results.push_back(allocate(graph.aval(v).bytes() * static_cast<std::size_t>(lanes), "the results of vt::cond"));
  const std::int32_t* index = operands[0]->as<const std::int32_t>();
  const auto last = static_cast<std::int64_t>(bodies_.size()) - 1;
  Vec<Vec<std::int64_t>> takes(bodies_.size());
  for (std::int64_t lane = 0; lane < lanes; ++lane)
    takes[static_cast<std::size_t>(std::clamp<std::int64_t>(index[lanes_.mapped[0] ? lane : 0], 0, last))].push_back(lane);
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    const Vec<std::int64_t>& own = takes[b];
    if (own.empty()) continue;
    const auto count = static_cast<std::int64_t>(own.size()), size = control_memory::group_size(count, lanes);
    const bool all = count == lanes;
    Buffers inputs(operands.begin() + 1, operands.end());
    for (std::size_t i = 0; i < inputs.size() && !all; ++i) {
      if (!mapped_[i]) continue;
      const Rows from(inputs[i], inputs[i]->bytes / static_cast<std::size_t>(lanes));
      BufferRef group = allocate(from.bytes * static_cast<std::size_t>(size), "lanes of vt::cond");
      const Rows to(group, from.bytes);
      for (std::int64_t r = 0; r < size; ++r) copy_row(to, r, from, own[static_cast<std::size_t>(r < count ? r : 0)]);
      inputs[i] = std::move(group);
    }
    const Buffers made = program(b, size).run(inputs);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::size_t row = results[k]->bytes / static_cast<std::size_t>(lanes);
      const Rows to(results[k], row), from(made[k], row);
      for (std::int64_t r = 0; r < count; ++r) copy_row(to, own[static_cast<std::size_t>(r)], from, r);
    }
  }
  return results;
}

// The group of running lanes shrinks as they finish. A place that is left over holds a copy of a lane that still runs: no body ever
// sees a state that its condition refused.
ControlRunner::Buffers ControlRunner::run_lane_while(Buffers values) const {
  const auto lanes = lanes_.count;
  Buffers results;
  Vec<std::size_t> row(values.size(), 0);  // bytes of a mapped operand's lane
  for (std::size_t i = 0; i < values.size(); ++i)
    if (mapped_[i] && lanes > 0) row[i] = values[i]->bytes / static_cast<std::size_t>(lanes);
  for (std::size_t i = 0; i < carries_; ++i) results.push_back(allocate(values[i]->bytes, "the results of vt::while_loop"));
  Vec<std::int64_t> lane_of(static_cast<std::size_t>(lanes));  // per place; −1: a copy
  for (std::size_t r = 0; r < lane_of.size(); ++r) lane_of[r] = static_cast<std::int64_t>(r);
  std::int64_t size = lanes;
  Vec<std::int64_t> running, stopped;  // places
  while (size > 0) {
    const BufferRef answer = program(0, size).run(values)[0];
    const auto* goes_on = answer->as<const std::uint8_t>();
    running.clear();
    stopped.clear();
    for (std::int64_t r = 0; r < size; ++r) {
      std::int64_t& lane = lane_of[static_cast<std::size_t>(r)];
      if (goes_on[r]) {
        if (lane >= 0) running.push_back(r);
        continue;
      }
      stopped.push_back(r);
      for (std::size_t i = 0; i < carries_ && lane >= 0; ++i) copy_row(Rows(results[i], row[i]), lane, Rows(values[i], row[i]), r);
      lane = -1;
    }
    if (running.empty()) break;
    const auto live = static_cast<std::int64_t>(running.size()), smaller = control_memory::group_size(live, lanes);
    if (smaller == size) {
      // The places of those that stopped are few: only they are written.
      for (std::size_t i = 0; i < values.size() && !stopped.empty(); ++i) {
        if (!mapped_[i]) continue;
        control_memory::make_sole(values[i]);
        for (const std::int64_t r : stopped) copy_row(Rows(values[i], row[i]), r, Rows(values[i], row[i]), running[0]);
      }
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!mapped_[i]) continue;
        BufferRef group = allocate(row[i] * static_cast<std::size_t>(smaller), "lanes of vt::while_loop");
        const Rows to(group, row[i]), from(values[i], row[i]);
        for (std::int64_t r = 0; r < smaller; ++r) copy_row(to, r, from, running[static_cast<std::size_t>(r < live ? r : 0)]);
        values[i] = std::move(group);
      }
      for (std::int64_t r = 0; r < smaller; ++r)
        lane_of[static_cast<std::size_t>(r)] = r < live ? lane_of[static_cast<std::size_t>(running[static_cast<std::size_t>(r)])] : -1;
      size = smaller;
    }
    Program& body = program(1, size);
    control_memory::make_sole(values, body);
    Buffers next = body.run(values, {}, values);
    std::move(next.begin(), next.end(), values.begin());
  }
  return results;
}

std::string ControlRunner::explain() const {
  std::string text;
  if (equation_.op == Op::recursive_call) {
    const RecursiveFunction& f = *equation_.as<RecursionParams>().function;
    text += f.name + " calls itself; its body is a program of its own\n";
  }
  if (in_registers_.function)
    text += "one function, its values in registers" + (lane_count_ < 0 ? std::string() : ", " + std::to_string(lane_count_) + " lanes side by side") +
            "\n";
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    const std::lock_guard lock(bodies_[b]->mutex);
    for (const auto& [lanes, program] : bodies_[b]->programs)
      text += "sub-graph " + std::to_string(b) + (lanes ? " for " + std::to_string(lanes) + " lanes" : "") + ", " +
              (program->overwritten().empty() ? "" : "carries written over the last state: " + std::to_string(program->overwritten().size()) + ", ") +
              program->explain();
  }
  return text;
}

}  // namespace vt::detail
