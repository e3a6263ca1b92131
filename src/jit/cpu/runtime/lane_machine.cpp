// LaneMachine: queues of lanes in front of blocks.
#include "lane_machine.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include <vt/detail/message.hpp>

#include "../../../trace/base/hash_map.hpp"
#include "../../../trace/ir/recursive_function.hpp"
#include "../../report/dump.hpp"
#include "../../services/control_memory.hpp"
#include "../../services/executables.hpp"
#include "../../services/threads.hpp"

namespace vt::detail {

namespace lane_machine {

using Storage = FlowGraph::Storage;
using Exit = FlowGraph::Exit;

/// States of the lanes under way stay in a core's own cache, but for arrays that loops write row by
/// row. More places are of use where a block reads so much that lanes share that many should be
/// there: that takes as long as `shared_to_states` bytes of states. None take more memory than
/// `most_bytes`.
constexpr std::size_t bytes_of_places = std::size_t{2} << 20, most_bytes = std::size_t{64} << 20,
                      most_bytes_with_rows = 4 * most_bytes, shared_to_states = 4;
constexpr std::int64_t most_places = 4096, some_places = 64, least_places = 8;
void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == 4) std::memcpy(to, from, 4);
  else if (bytes == 1) *to = *from;
  else if (bytes == 8) std::memcpy(to, from, 8);
  else if (bytes) std::memcpy(to, from, bytes);
}
template <class T>
void add(std::byte* to, const std::byte* from) {
  T sum, more;
  std::memcpy(&sum, to, sizeof sum);
  std::memcpy(&more, from, sizeof more);
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using U = std::make_unsigned_t<T>;  // which wraps around
    sum = static_cast<T>(static_cast<U>(sum) + static_cast<U>(more));
  } else {
    sum = static_cast<T>(sum + more);
  }
  std::memcpy(to, &sum, sizeof sum);
}

}  // namespace lane_machine

/// A program for each block that computes something, and one for what depends on no lane.
struct LaneMachine::Code {
  Vec<std::unique_ptr<const RowProgram>> blocks;
  std::shared_ptr<Executable> prologue;
};

LaneMachine::LaneMachine(GraphRef body, Lanes lanes, CallSite where)
    : lanes_(std::move(lanes)), body_(std::move(body)), where_(where) {
  Vec<bool> mapped;
  for (bool m : lanes_.mapped) mapped.push_back(m);
  flow_ = flow_graph(body_, mapped);
  Vec<bool> by_rows(flow_.slots.size());
  for (const FlowGraph::Block& b : flow_.blocks)
    for (const FlowGraph::Write& w : b.writes)
      if (w.to.index >= 0 || w.to.elements) by_rows[w.to.slot] = true;
  for (std::size_t s = 0; s < flow_.slots.size(); ++s) {
    if (flow_.slots[s].storage != FlowGraph::Storage::state) continue;
    place_bytes_ += flow_.slots[s].aval.bytes();
    if (by_rows[s]) row_bytes_ += flow_.slots[s].aval.bytes();
  }
  for (const FlowGraph::Block& b : flow_.blocks) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < b.reads.size(); ++i)
      if (b.in_body[i] && b.reads[i].index < 0 &&
          flow_.slots[b.reads[i].slot].storage == FlowGraph::Storage::shared)
        bytes += b.reads[i].bytes;
    shared_bytes_ = std::max(shared_bytes_, bytes);
  }
  counters_ = lane_counters(counted_blocks(flow_));
  if (!dump_folder().empty()) {
    const std::string text = flow_.str();
    dump_text("lanes-" + short_name(text) + ".txt", text);
  }
}
LaneMachine::~LaneMachine() = default;

const LaneMachine::Code& LaneMachine::code() const {
  const std::lock_guard lock(mutex_);
  if (code_) return *code_;
  auto made = std::make_unique<Code>();
  for (const FlowGraph::Block& b : flow_.blocks) {
    made->blocks.emplace_back();
    if (!b.body) continue;
    Vec<bool> mapped;
    for (std::size_t i = 0; i < b.reads.size(); ++i)
      if (b.in_body[i])
        mapped.push_back(b.reads[i].index >= 0 ||
                         flow_.slots[b.reads[i].slot].storage != FlowGraph::Storage::shared);
    made->blocks.back() =
        std::make_unique<const RowProgram>(b.body, std::move(mapped), RowBody::alone);
  }
  if (flow_.prologue) made->prologue = host_executable(*flow_.prologue);
  code_ = std::move(made);
  return *code_;
}

std::int64_t LaneMachine::places() const {
  using namespace lane_machine;
  const auto of = [](std::size_t all, std::size_t place) {
    return static_cast<std::int64_t>(all / std::max<std::size_t>(place, 1));
  };
  const std::size_t own = place_bytes_ - row_bytes_;
  std::int64_t most = lane_options().places;
  if (most <= 0)
    most = std::clamp(
        std::max(some_places, of(std::max(bytes_of_places, shared_to_states * shared_bytes_), own)),
        least_places,
        std::clamp(std::min(of(most_bytes, own), of(most_bytes_with_rows, place_bytes_)),
                   least_places, most_places));
  return std::min(most, lanes_.count);
}

std::int64_t LaneMachine::scratch_bytes() const {
  return places() * static_cast<std::int64_t>(place_bytes_);
}

/// Some of the lanes, on one thread.
class LaneMachine::Run : public LaneRun {
 public:
  Run(const LaneMachine& machine, const Code& code, std::span<const BufferRef> operands,
      std::span<const BufferRef> results, const Vec<Program::Packed>& packed)
      : LaneRun(machine.flow_, machine.lanes_, *machine.counters_),
        code_(code),
        operands_(operands),
        results_(results),
        packed_(packed),
        program_frames_(code.blocks.size()) {}
  ~Run() override {
    for (std::size_t b = 0; b < program_frames_.size(); ++b)
      if (program_frames_[b]) code_.blocks[b]->close(*program_frames_[b]);
  }

  void lanes(std::int64_t first, std::int64_t last, std::int64_t places) {
    make_places(places);
    run_lanes(first, last, places);
  }

 private:
  /// What functions gave at a place: by the callee and its arguments, as bytes.
  struct Memory {
    HashMap<std::string, std::string> entries;  ///< empty: not known yet
    std::size_t scope = 0;  ///< returns up to the call that began it; 0: none has
  };

  void make_places(std::int64_t count) {
    std::size_t bytes = 0;
    begin_.resize(g_.slots.size());
    for (std::size_t s = 0; s < g_.slots.size(); ++s) {
      begin_[s] = bytes;
      if (g_.slots[s].storage == FlowGraph::Storage::state)
        bytes += (g_.slots[s].aval.bytes() * count + 63) / 64 * 64;
    }
    states_ = allocate(std::max<std::size_t>(bytes, 1), "the states of lanes");
    for (const FlowGraph::Function& f : g_.functions) frames_used_ |= f.frame_bytes > 0;
    if (frames_used_) frames_.resize(count);
    if (any_of(g_.functions,
               [](const FlowGraph::Function& f) { return f.recursion && f.recursion->remembers; }))
      memory_.resize(count);
  }

  void lane_begins(std::int64_t place) override {
    if (!memory_.empty()) memory_[place] = {};
    if (frames_used_) need_frame(place, g_.functions[0].frame_bytes);
  }
  void lane_ends(std::int64_t place) override {
    const std::int64_t lane = lane_[place];
    for (std::size_t k = 0; k < results_.size(); ++k) {
      const int slot = g_.results[k];
      const std::size_t bytes = g_.slots[slot].aval.bytes();
      lane_machine::copy(results_[k]->as<std::byte>() + lane * bytes, address(slot, place), bytes);
    }
  }
  BufferRef operand(int i) const override { return operands_[i]; }
  void need_frame(std::int64_t place, std::size_t bytes) {
    auto& frame = frames_[place];
    if (frame.size() < frame_[place] + bytes)
      frame.resize(std::max<std::size_t>(2 * frame.size(), frame_[place] + bytes + 256));
  }

  // --- where values lie --------------------------------------------------------------------------

  /// `frame`: of the place, or of the function that it calls.
  std::byte* address(int slot, std::int64_t place, std::size_t frame = 0) {
    const FlowGraph::Slot& s = g_.slots[slot];
    switch (s.storage) {
      case FlowGraph::Storage::shared: return operands_[s.operand]->as<std::byte>();
      case FlowGraph::Storage::argument:
        return operands_[s.operand]->as<std::byte>() + lane_[place] * s.aval.bytes();
      case FlowGraph::Storage::state:
        return states_->as<std::byte>() + begin_[slot] + place * s.aval.bytes();
      case FlowGraph::Storage::saved: break;
    }
    return frames_[place].data() + frame_[place] + frame + s.offset;
  }
  std::byte* address(const FlowGraph::Place& p, std::int64_t place, std::size_t frame = 0) {
    std::byte* const begin = address(p.slot, place, frame);
    if (p.index < 0) return begin;
    std::int32_t row;
    std::memcpy(&row, address(p.index, place), sizeof row);
    return begin + row * p.bytes;
  }
  /// each(k, where the row of places[k] lies).
  template <class Each>
  void each_row(const FlowGraph::Place& p, const Places& places, std::size_t frame,
                const Each& each) {
    if (p.index < 0 && g_.slots[p.slot].storage == FlowGraph::Storage::state) {
      std::byte* const begin = address(p.slot, 0);
      for (std::size_t k = 0; k < places.size(); ++k) each(k, begin + places[k] * p.bytes);
      return;
    }
    for (std::size_t k = 0; k < places.size(); ++k) each(k, address(p, places[k], frame));
  }
  /// Do the rows of these places lie one after the other? Where the first one does, else null.
  std::byte* rows_of(const FlowGraph::Place& p, const Places& places) {
    if (p.index >= 0) return nullptr;
    const FlowGraph::Slot& s = g_.slots[p.slot];
    if (s.storage == FlowGraph::Storage::shared) return address(p.slot, 0);
    if (s.storage == FlowGraph::Storage::saved) return nullptr;
    if (!adjacent_) return nullptr;
    if (s.storage == FlowGraph::Storage::argument)
      for (std::size_t i = 1; i < places.size(); ++i)
        if (lane_[places[i]] != lane_[places[0]] + static_cast<std::int64_t>(i)) return nullptr;
    return address(p.slot, places[0]);
  }

  // --- blocks ------------------------------------------------------------------------------------

  bool is_shared(const FlowGraph::Place& p) const {
    return p.index < 0 && g_.slots[p.slot].storage == FlowGraph::Storage::shared;
  }

  void run_block(int number, const Places& places, Vec<std::int32_t>& decisions) override {
    const FlowGraph::Block& b = g_.blocks[number];
    adjacent_ = places.back() - places.front() + 1 == static_cast<int>(places.size());
    if (frames_used_ && b.exit == FlowGraph::Exit::call)
      for (std::int32_t p : places)
        need_frame(p, frame_step(b) + g_.functions[b.callee].frame_bytes);
    read(b, places);
    if (b.body) compute(number, b, places);
    if (b.exit == FlowGraph::Exit::branch) decide(b, places, decisions);
    write(b, places, frame_step(b));
  }

  std::byte* scratch(std::size_t bytes) {
    const std::size_t from = used_;
    used_ += (bytes + 63) / 64 * 64;
    return scratch_->as<std::byte>() + from;
  }
  /// Where what is read lies, row after row; gathered where it does not.
  void read(const FlowGraph::Block& b, const Places& places) {
    // All that may be gathered or staged, so that nothing moves later.
    std::size_t need = 0;
    for (const FlowGraph::Place& r : b.reads)
      if (!is_shared(r)) need += r.bytes * places.size() + 64;
    if (b.body)
      for (Var v : b.body->outputs) need += b.body->aval(v).bytes() * places.size() + 64;
    if (!scratch_ || scratch_->bytes < need) scratch_ = allocate(2 * need + 64, "rows of lanes");
    used_ = 0;
    from_.clear();
    for (std::size_t i = 0; i < b.reads.size(); ++i) {
      const FlowGraph::Place& r = b.reads[i];
      std::byte* rows = rows_of(r, places);
      // What is written before it is read by all, as a row that is handed on.
      const bool changes =
          rows && any_of(b.writes, [&](const FlowGraph::Write& w) { return w.to.slot == r.slot; });
      const bool handed_on = changes && any_of(b.writes, [&](const FlowGraph::Write& w) {
                               return w.from.read == static_cast<int>(i);
                             });
      if (r.elements) {
        rows = scratch(r.bytes * places.size());
        pick_elements(r, places, rows);
      } else if (!rows || handed_on) {
        rows = scratch(r.bytes * places.size());
        each_row(r, places, 0, [&](std::size_t k, const std::byte* from) {
          lane_machine::copy(rows + k * r.bytes, from, r.bytes);
        });
      }
      from_.push_back(rows);
    }
  }

  // --- some elements of arrays -------------------------------------------------------------------

  /// each(positions of the elements, from 1 on; where the array lies; k) for each of the places.
  template <class Each>
  static void each_element(const std::byte* positions, std::size_t count, const Each& each) {
    for (std::size_t j = 0; j < count; ++j) {
      std::int32_t position;
      std::memcpy(&position, positions + j * sizeof position, sizeof position);
      each(j, position);
    }
  }
  void pick_elements(const FlowGraph::Place& from, const Places& places, std::byte* to) {
    const std::size_t size = size_of(g_.slots[from.slot].aval.dtype), count = from.bytes / size;
    for (std::size_t k = 0; k < places.size(); ++k) {
      const std::byte* const array = address(from.slot, places[k]);
      each_element(address(from.index, places[k]), count, [&](std::size_t j, std::int32_t p) {
        std::byte* const element = to + k * from.bytes + j * size;
        if (p > 0) lane_machine::copy(element, array + (p - 1) * size, size);
        else std::memset(element, 0, size);
      });
    }
  }
  void write_elements(const FlowGraph::Block& b, const FlowGraph::Write& w, const Places& places) {
    const DType d = g_.slots[w.to.slot].aval.dtype;
    const std::size_t size = size_of(d), count = w.to.bytes / size;
    const Rows rows = rows_from(b, w.from, w.to.bytes),
               positions = rows_from(b, w.positions, count * sizeof(std::int32_t));
    for (std::size_t k = 0; k < places.size(); ++k) {
      std::byte* const array = address(w.to.slot, places[k]);
      const std::byte* const row = rows.begin + k * rows.step;
      const auto each = [&](const auto& write) {
        each_element(positions.begin + k * positions.step, count,
                     [&](std::size_t j, std::int32_t p) {
                       if (p > 0) write(array + (p - 1) * size, row + j * size);
                     });
      };
      if (!w.adds) {
        each([&](std::byte* to, const std::byte* from) { lane_machine::copy(to, from, size); });
        continue;
      }
      with_type(d, [&](auto tag) {
        using T = decltype(tag);
        each([](std::byte* to, const std::byte* from) { lane_machine::add<T>(to, from); });
      });
    }
  }

  void compute(int number, const FlowGraph::Block& b, const Places& places) {
    SmallVec<const void*, 16> inputs;
    SmallVec<void*, 16> results;
    for (std::size_t i = 0; i < b.reads.size(); ++i)
      if (b.in_body[i]) inputs.push_back(from_[i]);
    made_.clear();
    for (Var v : b.body->outputs) {
      std::byte* const rows = scratch(b.body->aval(v).bytes() * places.size());
      made_.push_back(rows);
      results.push_back(rows);
    }
    // Straight to where they belong, where nothing of the block is read there.
    for (const FlowGraph::Write& w : b.writes) {
      if (w.from.result < 0 || w.to.index >= 0 || w.to.elements || w.callee) continue;
      if (any_of(b.reads, [&](const FlowGraph::Place& r) { return r.slot == w.to.slot; }) ||
          any_of(b.writes, [&](const FlowGraph::Write& o) { return o.to.index == w.to.slot; }))
        continue;
      // Kernels write whole vectors there.
      std::byte* const rows = rows_of(w.to, places);
      if (rows && reinterpret_cast<std::uintptr_t>(rows) % 64 == 0) {
        made_[w.from.result] = rows;
        results[w.from.result] = rows;
      }
    }
    std::unique_ptr<Program::Frame>& frame = program_frames_[number];
    if (!frame) frame = std::make_unique<Program::Frame>();
    code_.blocks[number]->run_in(*frame, static_cast<std::int64_t>(places.size()),
                                 {inputs.data(), inputs.size()}, {results.data(), results.size()},
                                 packed_[number]);
  }

  struct Rows {
    const std::byte* begin;
    std::size_t step;
  };
  Rows rows_from(const FlowGraph::Block& b, const FlowGraph::Source& s, std::size_t bytes) {
    if (s.result >= 0) return {made_[s.result], bytes};
    const FlowGraph::Place& r = b.reads[s.read];
    return {from_[s.read], is_shared(r) ? 0 : bytes};
  }
  void decide(const FlowGraph::Block& b, const Places& places, Vec<std::int32_t>& decisions) {
    const Rows rows = rows_from(b, b.decides, sizeof(std::int32_t));
    decisions.resize(places.size());
    for (std::size_t k = 0; k < places.size(); ++k)
      std::memcpy(&decisions[k], rows.begin + k * rows.step, sizeof(std::int32_t));
  }
  void write(const FlowGraph::Block& b, const Places& places, std::size_t next_frame) {
    for (const FlowGraph::Write& w : b.writes) {
      if (w.to.elements) {
        write_elements(b, w, places);
        continue;
      }
      const Rows rows = rows_from(b, w.from, w.to.bytes);
      std::byte* const together = rows.step && !w.callee ? rows_of(w.to, places) : nullptr;
      if (together == rows.begin) continue;
      if (together) {
        std::memcpy(together, rows.begin, w.to.bytes * places.size());
        continue;
      }
      each_row(w.to, places, w.callee ? next_frame : 0, [&](std::size_t k, std::byte* to) {
        lane_machine::copy(to, rows.begin + k * rows.step, w.to.bytes);
      });
    }
  }

  // --- what is remembered ------------------------------------------------------------------------

  template <class Each>
  void each_result(int function, std::int64_t place, const Each& each) {
    for (int slot : g_.functions[function].results)
      if (slot >= 0) each(address(slot, place), g_.slots[slot].aval.bytes());
  }
  bool recalls(const FlowGraph::Block& b, std::int64_t place, int& entry) override {
    const RecursiveFunction* f = g_.functions[b.callee].recursion;
    if (memory_.empty()) return false;
    Memory& memory = memory_[place];
    if (!f) return false;
    if (f->remembers) {
      if (memory.scope == 0) memory.scope = returns_[place] + 1;
      return false;
    }
    if (memory.scope == 0) return false;
    std::string key(reinterpret_cast<const char*>(&b.callee), sizeof b.callee);
    for (int slot : g_.functions[b.callee].parameters)
      if (slot >= 0)
        key.append(reinterpret_cast<const char*>(address(slot, place, frame_step(b))),
                   g_.slots[slot].aval.bytes());
    const auto found = memory.entries.emplace(std::move(key), std::string());
    if (!found.entry->second.empty()) {
      const char* from = found.entry->second.data();
      each_result(b.callee, place, [&](std::byte* to, std::size_t bytes) {
        std::memcpy(to, from, bytes);
        from += bytes;
      });
      return true;
    }
    if (found.fresh) entry = static_cast<int>(memory.entries.size()) - 1;
    return false;
  }
  void returned(int function, std::int64_t place, int entry) override {
    if (memory_.empty()) return;
    Memory& memory = memory_[place];
    if (entry >= 0)
      each_result(function, place, [&](const std::byte* from, std::size_t bytes) {
        (memory.entries.begin() + entry)->second.append(reinterpret_cast<const char*>(from), bytes);
      });
    if (memory.scope && returns_[place] < memory.scope) memory = {};
  }

  const Code& code_;
  const std::span<const BufferRef> operands_, results_;
  const Vec<Program::Packed>& packed_;
  Vec<std::unique_ptr<Program::Frame>> program_frames_;  ///< per block; null: it has not run
  // Of each place.
  BufferRef states_;
  Vec<std::size_t> begin_;
  bool frames_used_ = false;
  Vec<std::vector<std::byte>> frames_;
  Vec<Memory> memory_;  ///< empty: nothing is remembered
  // Of the block that runs.
  bool adjacent_ = false;
  BufferRef scratch_;
  std::size_t used_ = 0;
  Vec<std::byte*> from_, made_;
};

Vec<BufferRef> LaneMachine::run(std::span<const BufferRef> operands) const {
  const Code& code = this->code();
  Vec<BufferRef> all(operands.begin(), operands.end()), results;
  if (code.prologue) {
    Vec<BufferRef> shared;
    for (int i : flow_.prologue_operands) shared.push_back(operands[i]);
    for (BufferRef& made : code.prologue->run(shared)) all.push_back(std::move(made));
  }
  for (Var v : body_->outputs)
    results.push_back(allocate(body_->aval(v).bytes() * lanes_.count, "the results of lanes"));
  if (lanes_.count == 0) return results;
  Vec<Program::Packed> packed;
  for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
    packed.emplace_back();
    if (!code.blocks[b]) continue;
    const FlowGraph::Block& block = flow_.blocks[b];
    Vec<const void*> same;
    for (std::size_t i = 0; i < block.reads.size(); ++i) {
      if (!block.in_body[i]) continue;
      const FlowGraph::Slot& s = flow_.slots[block.reads[i].slot];
      const bool shared = block.reads[i].index < 0 && s.storage == FlowGraph::Storage::shared;
      same.push_back(shared ? all[s.operand]->data : nullptr);
    }
    packed.back() = code.blocks[b]->pack({same.begin(), same.size()});
  }
  const std::int64_t parts =
      std::min<std::int64_t>(thread_count(), std::max<std::int64_t>(lanes_.count / 16, 1));
  control_memory::run_parts(parts, [&](std::int64_t k) {
    const std::int64_t first = lanes_.count * k / parts, last = lanes_.count * (k + 1) / parts;
    Run(*this, code, all, results, packed).lanes(first, last, std::min(places(), last - first));
  });
  return results;
}

void LaneMachine::report(Report& report, int depth) const {
  ReportStep head;
  head.depth = depth;
  head.title = formatted("{} lanes, each at its own place of {} blocks; {} of them at a time",
                         lanes_.count, flow_.blocks.size(), places());
  head.nest = flow_.str();
  report.push_back(std::move(head));
  const Code& code = this->code();
  for (std::size_t b = 0; b < code.blocks.size(); ++b) {
    const RowProgram* program = code.blocks[b].get();
    if (!program || !program->program()) continue;
    const std::size_t at = report.size();
    program->program()->report(report, depth + 1);
    report[at].title = formatted("block {}: ", b) + report[at].title;
  }
}

}  // namespace vt::detail
