// The launch that is running: its block's threads, and what the parts of the machine (access.cpp,
// wait.cpp, launch.cpp) do with them.
#pragma once

#include "emulator.hpp"
#include "src/trace/fiber/fiber.hpp"

namespace emulator {

using vt::detail::Fiber;

struct Thread {
  enum State { unstarted, ready, at_block, at_warp, done } state = unstarted;
  Fiber* fiber = nullptr;
  int operation = 0, line = 0;
  unsigned mask = 0, source = 0;
  std::uint64_t value = 0, result = 0;
};

// What an access was allowed in before: the next one is mostly there as well.
struct Window {
  std::uint64_t begin = 1, size = 0, tag = 0;
  Shadow* shadow = nullptr;
  bool shared = false;
  // where the pointer that is indexed may lie: shared variables have no edges between them
  std::uint64_t bases = 0;
};

// One launch at a time: streams see to it.
struct Engine {
  const Launch* launch = nullptr;
  const ModuleObject* module = nullptr;
  vt_place* place = nullptr;
  int device = 0;
  std::vector<void*> parameters;
  std::vector<Thread> threads;
  std::vector<uint3> indices;   // of the threads of a block
  std::vector<unsigned> ready;  // what may go on; before `ready_from` nothing is left
  std::size_t ready_from = 0;
  unsigned count = 0, started = 0, done = 0, waiting = 0;
  unsigned current = 0;
  Order order{1, 0, 0};
  std::uint64_t seed = 0;
  Random random{0};
  Window windows[4];
  unsigned next_window = 0;
  std::vector<unsigned char> dynamic_shared;
  Fiber* system = nullptr;
  Fiber* running = nullptr;
  std::vector<Fiber*> free_fibers, all_fibers;
  bool failed = false;
  Result error = 0;
  // Races.
  bool watched = false;
  Who who;
  std::vector<std::uint16_t> warp_phases;
  Shadow dynamic_shadow;
  // A store over what another thread stored: no race where both store the same. Looked at once it
  // is done.
  struct {
    const unsigned char* at = nullptr;
    unsigned size = 0;
    unsigned char before[32];
    std::string what;
  } twice;
};
/// The only one. Every access asks for it several times: hidden, it needs no look into the tables
/// by which libraries replace each other's symbols.
extern Engine* const the_engine __attribute__((visibility("hidden")));
inline Engine& engine() { return *the_engine; }

std::string text(uint3 v);
std::string text(dim3 v);

/// Notes that the launch has failed. The stack that runs is still to be left, with `give_up`, once
/// nothing on it owns memory.
void note_failure(Result error, const std::string& what);
/// Leaves the running stack for ever.
void give_up();
inline void give_up_if_failed() {
  if (engine().failed) give_up();
}
/// Makes `t` the thread that runs next.
void place_thread(unsigned t);
void make_ready(unsigned t);
/// "a shuffle", "__syncthreads" …
const char* name_of(int operation, bool warp);

// access.cpp
void* at(unsigned long base, long offset, unsigned size, unsigned alignment, int writes);
void plain(const void* p, unsigned size, int writes);
void compare_second_store();
inline void look_at_second_store() {
  if (engine().twice.at) compare_second_store();
}

// wait.cpp
int sync_threads_with(int operation, int predicate, int line);
void sync_threads(int line);
unsigned long warp(int operation, unsigned mask, unsigned long value, unsigned source, int line);
void settle_warp(unsigned t);
/// Every thread of the block waits for another one: says which.
void report_deadlock();

}  // namespace emulator
