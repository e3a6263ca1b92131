// Waiting for each other: barriers of a block, votes and shuffles of a warp;
// who waits for ever is told.
#include "engine.hpp"

namespace emulator {

const char* name_of(int operation, bool warp) {
  if (warp)
    return operation == vt_warp_shuffle  ? "a shuffle"
           : operation == vt_warp_ballot ? "a vote"
           : operation == vt_warp_match  ? "a match"
                                         : "__syncwarp";
  return "__syncthreads";
}

namespace {

// Whether all lanes that thread `t` waits for wait as it does. Each lane that comes asks; what the
// last one does is apart, as AddressSanitizer makes a frame of its own for each call of a function
// whose variables have addresses.
bool warp_is_there(unsigned t) {
  const Engine& e = engine();
  const unsigned first = t & ~31u;
  const Thread* const threads = e.threads.data();
  const Thread& self = threads[t];
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(self.mask >> lane & 1u) || first + lane >= e.count) continue;
    const Thread& other = threads[first + lane];
    if (other.state == Thread::done) continue;
    if (other.state != Thread::at_warp || other.mask != self.mask || other.line != self.line ||
        other.operation != self.operation)
      return false;
  }
  return true;
}

[[gnu::noinline]] void release_warp(unsigned t) {
  Engine& e = engine();
  const unsigned first = t & ~31u, mask = e.threads[t].mask;
  const auto there = [&](unsigned lane) {
    return lane < 32 && (mask >> lane & 1u) && first + lane < e.count &&
           e.threads[first + lane].state == Thread::at_warp;
  };
  std::uint64_t results[32], ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (there(lane) && e.threads[first + lane].value != 0) ballot |= 1ull << lane;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!there(lane)) continue;
    const Thread& self = e.threads[first + lane];
    std::uint64_t result = 0;
    if (self.operation == vt_warp_shuffle) {
      // of a lane that takes no part: garbage
      result = there(self.source) ? e.threads[first + self.source].value : ~0ull;
    } else if (self.operation == vt_warp_ballot) {
      result = ballot;
    } else if (self.operation == vt_warp_match) {
      for (unsigned other = 0; other < 32; ++other)
        if (there(other) && e.threads[first + other].value == self.value) result |= 1ull << other;
    }
    results[lane] = result;
  }
  if (e.threads[t].operation == vt_warp_barrier) ++e.warp_phases[t / 32];
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) lanes |= there(lane) ? 1u << lane : 0u;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1u)) continue;
    e.threads[first + lane].result = results[lane];
    make_ready(first + lane);
  }
}

// All threads of the block are there.
[[gnu::noinline]] void release_block() {
  Engine& e = engine();
  std::uint64_t votes = 0;
  for (unsigned t = 0; t < e.count; ++t) votes += e.threads[t].value;
  const int operation = e.threads[0].operation, line = e.threads[0].line;
  for (unsigned t = 0; t < e.count; ++t) {
    Thread& thread = e.threads[t];
    if (thread.line != line || thread.operation != operation) {
      place_thread(t);
      return note_failure(Constant::CUDA_ERROR_LAUNCH_FAILED,
                          "waits at __syncthreads in line " + std::to_string(thread.line) +
                              " while thread " + text(e.indices[0]) +
                              " waits at another one in line " + std::to_string(line));
    }
    thread.result = operation == vt_block_and  ? votes == e.count
                    : operation == vt_block_or ? votes != 0
                                               : votes;
    make_ready(t);
  }
  e.waiting = 0;
  ++e.who.phase;
  count("barriers");
}

}  // namespace

// Lanes of a warp that wait with the mask of thread `t` go on once all of them are there. Those
// that ended are not waited for.
void settle_warp(unsigned t) {
  if (warp_is_there(t)) release_warp(t);
}

// Lets others go on until the thread that runs here may.
std::uint64_t wait_here() {
  Engine& e = engine();
  give_up_if_failed();
  const unsigned me = e.current;
  switch_fiber(e.running, e.system);
  return e.threads[me].result;
}

int sync_threads_with(int operation, int predicate, int line) {
  Engine& e = engine();
  look_at_second_store();
  Thread& self = e.threads[e.current];
  self.state = Thread::at_block;
  self.fiber = e.running;
  self.operation = operation;
  self.line = line;
  self.value = predicate != 0;
  ++e.waiting;
  if (e.waiting == e.count) release_block();
  return static_cast<int>(wait_here());
}
void sync_threads(int line) { sync_threads_with(vt_block_barrier, 0, line); }

static void without_itself(int operation, int line) {
  note_failure(Constant::CUDA_ERROR_LAUNCH_FAILED,
               std::string(name_of(operation, true)) + " in line " + std::to_string(line) +
                   " with a mask that does not name the lane itself");
}

unsigned long warp(int operation, unsigned mask, unsigned long value, unsigned source, int line) {
  Engine& e = engine();
  Thread& self = e.threads[e.current];
  look_at_second_store();
  if (!(mask >> (e.current & 31u) & 1u)) without_itself(operation, line);
  self.state = Thread::at_warp;
  self.fiber = e.running;
  self.operation = operation;
  self.line = line;
  self.mask = mask;
  self.source = source;
  self.value = value;
  if (!e.failed) settle_warp(e.current);
  return wait_here();
}

void report_deadlock() {
  Engine& e = engine();
  unsigned at_block = e.count, at_warp = e.count, ended = e.count;
  for (unsigned t = e.count; t-- > 0;) {
    if (e.threads[t].state == Thread::at_block) at_block = t;
    if (e.threads[t].state == Thread::at_warp) at_warp = t;
    if (e.threads[t].state == Thread::done) ended = t;
  }
  const auto where = [&](unsigned t, bool warp) {
    return name_of(e.threads[t].operation, warp) + std::string(" in line ") +
           std::to_string(e.threads[t].line);
  };
  std::string what;
  if (at_block < e.count) {
    place_thread(at_block);
    what = "waits at " + where(at_block, false) + " while thread ";
    what += ended < e.count ? text(e.indices[ended]) + " has ended"
                            : text(e.indices[at_warp]) + " waits at " + where(at_warp, true);
  } else {
    place_thread(at_warp);
    what = "waits at " + where(at_warp, true) + " for lanes of its mask that do something else";
  }
  note_failure(Constant::CUDA_ERROR_LAUNCH_FAILED, "divergent: " + what);
}

}  // namespace emulator
