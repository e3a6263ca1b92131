// Running a grid on the CPU: block after block, the threads of a block on stacks of their own once one has to wait; every access checked.
#include <csignal>
#include <cstring>

#include "emulator.hpp"
#include "fiber.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VT_SANITIZED 1
#endif

namespace emulator {

namespace {

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
  std::uint64_t bases = 0;  // where the pointer that is indexed may lie: shared variables have no edges between them
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
  // A store over what another thread stored: no race where both store the same. Looked at once it is done.
  struct {
    const unsigned char* at = nullptr;
    unsigned size = 0;
    unsigned char before[32];
    std::string what;
  } twice;
};
Engine& engine() {
  static Engine* const one = new Engine;
  return *one;
}

thread_local bool in_kernel = false;

std::string text(uint3 v) { return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")"; }
std::string text(dim3 v) { return text(uint3{v.x, v.y, v.z}); }

void fail_from_fiber(Result error, const std::string& what) {
  Engine& e = engine();
  e.failed = true;
  e.error = error;
  add_report("kernel " + std::string(e.launch->function.kernel->name) + ", block " + text(e.place->block) + ", thread " + text(e.place->thread) +
             " of a grid of " + text(e.launch->grid) + " blocks of " + text(e.launch->block) + " threads: " + what);
  for (;;) switch_fiber(e.running, e.system);  // never comes back: the stack is begun anew
}

void look_at_second_store();

void place_thread(unsigned t) {
  Engine& e = engine();
  e.who.thread = static_cast<std::uint16_t>(t);
  e.current = t;
  e.place->thread = e.indices[t];
  e.place->lane = t & 31u;
}

void make_ready(unsigned t) {
  engine().threads[t].state = Thread::ready;
  engine().ready.push_back(t);
}

unsigned take_ready() {
  Engine& e = engine();
  if (e.seed == 0) {
    const unsigned t = e.ready[e.ready_from++];
    if (e.ready_from == e.ready.size()) {
      e.ready.clear();
      e.ready_from = 0;
    }
    return t;
  }
  if (e.seed != 1) std::swap(e.ready[e.random.below(e.ready.size())], e.ready.back());
  const unsigned t = e.ready.back();
  e.ready.pop_back();
  return t;
}

const char* name_of(int operation, bool warp) {
  if (warp)
    return operation == vt_warp_shuffle  ? "a shuffle"
           : operation == vt_warp_ballot ? "a vote"
           : operation == vt_warp_match  ? "a match"
                                         : "__syncwarp";
  return "__syncthreads";
}

// Lanes of a warp that wait with the mask of thread `t` go on once all of them are there. Those that ended are not waited for.
void settle_warp(unsigned t) {
  Engine& e = engine();
  const unsigned first = t & ~31u, mask = e.threads[t].mask;
  std::uint64_t ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1u) || first + lane >= e.count) continue;
    const Thread& other = e.threads[first + lane];
    if (other.state == Thread::done) continue;
    if (other.state != Thread::at_warp || other.mask != mask || other.line != e.threads[t].line || other.operation != e.threads[t].operation) return;
    if (other.value != 0) ballot |= 1ull << lane;
  }
  const auto there = [&](unsigned lane) {
    return lane < 32 && (mask >> lane & 1u) && first + lane < e.count && e.threads[first + lane].state == Thread::at_warp;
  };
  std::uint64_t results[32];
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!there(lane)) continue;
    const Thread& self = e.threads[first + lane];
    std::uint64_t result = 0;
    if (self.operation == vt_warp_shuffle) {
      result = there(self.source) ? e.threads[first + self.source].value : ~0ull;  // of a lane that takes no part: garbage
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

void settle_block() {
  Engine& e = engine();
  if (e.waiting < e.count) return;
  std::uint64_t votes = 0;
  for (unsigned t = 0; t < e.count; ++t) votes += e.threads[t].value;
  const int operation = e.threads[0].operation, line = e.threads[0].line;
  for (unsigned t = 0; t < e.count; ++t) {
    Thread& thread = e.threads[t];
    if (thread.line != line || thread.operation != operation) {
      place_thread(t);
      fail_from_fiber(Constant::CUDA_ERROR_LAUNCH_FAILED, "waits at __syncthreads in line " + std::to_string(thread.line) + " while thread " +
                                                              text(e.indices[0]) + " waits at another one in line " + std::to_string(line));
    }
    thread.result = operation == vt_block_and ? votes == e.count : operation == vt_block_or ? votes != 0 : votes;
    make_ready(t);
  }
  e.waiting = 0;
  ++e.who.phase;
  count("barriers");
}

// Lets others go on until the thread that runs here may.
std::uint64_t wait_here() {
  Engine& e = engine();
  look_at_second_store();
  const unsigned me = e.current;
  switch_fiber(e.running, e.system);
  return e.threads[me].result;
}

int sync_threads_with(int operation, int predicate, int line) {
  Engine& e = engine();
  Thread& self = e.threads[e.current];
  self.state = Thread::at_block;
  self.fiber = e.running;
  self.operation = operation;
  self.line = line;
  self.value = predicate != 0;
  ++e.waiting;
  settle_block();
  return static_cast<int>(wait_here());
}
void sync_threads(int line) { sync_threads_with(vt_block_barrier, 0, line); }

unsigned long warp(int operation, unsigned mask, unsigned long value, unsigned source, int line) {
  Engine& e = engine();
  Thread& self = e.threads[e.current];
  if (!(mask >> (e.current & 31u) & 1u))
    fail_from_fiber(Constant::CUDA_ERROR_LAUNCH_FAILED,
                    std::string(name_of(operation, true)) + " in line " + std::to_string(line) + " with a mask that does not name the lane itself");
  self.state = Thread::at_warp;
  self.fiber = e.running;
  self.operation = operation;
  self.line = line;
  self.mask = mask;
  self.source = source;
  self.value = value;
  settle_warp(e.current);
  return wait_here();
}

void stop(int error, const char* what, int line) { fail_from_fiber(error, std::string(what) + (line ? ", line " + std::to_string(line) : "")); }

const ModuleObject::Shared* shared_variable(std::uint64_t address) {
  for (const ModuleObject::Shared& v : engine().module->shared)
    if (address >= v.begin && address < v.begin + v.size) return &v;
  return nullptr;
}

// Ends the launch where the second of two stores changed what the first had left.
void look_at_second_store() {
  Engine& e = engine();
  if (!e.twice.at) return;
  const unsigned char* at = e.twice.at;
  e.twice.at = nullptr;
  if (std::memcmp(at, e.twice.before, e.twice.size) != 0) fail_from_fiber(Constant::CUDA_ERROR_LAUNCH_FAILED, e.twice.what);
}

void collide(const Window& w, Shadow::Collision with, std::uint64_t address, unsigned size, int writes) {
  Engine& e = engine();
  const Who other = w.shadow->other();
  const dim3 grid = e.launch->grid;
  const std::string several = "several threads";
  std::string whom = other.block == ~0u ? "threads of several blocks"
                                        : "thread " + (other.thread < e.count ? text(e.indices[other.thread]) : several) + " of block " +
                                              text(uint3{other.block % grid.x, other.block / grid.x % grid.y, other.block / grid.x / grid.y});
  const std::string place =
      "byte " + std::to_string(address - w.begin) + " of " + (w.shared ? "shared memory" : "an array of " + std::to_string(w.size) + " bytes");
  const std::string what = std::string("a race: ") +
                           (writes == 0   ? "reads "
                            : writes == 1 ? "writes "
                                          : "updates ") +
                           std::to_string(size) + " bytes at " + place + ", which " + whom + (with == Shadow::with_read ? " reads" : " writes") +
                           " with nothing that puts the one before the other";
  if (writes == 1 && with == Shadow::with_write && size <= sizeof(e.twice.before)) {
    e.twice.at = reinterpret_cast<const unsigned char*>(address - w.tag);
    e.twice.size = size;
    std::memcpy(e.twice.before, e.twice.at, size);
    e.twice.what = what;
    return;
  }
  fail_from_fiber(Constant::CUDA_ERROR_LAUNCH_FAILED, what);
}

void watch(const Window& w, std::uint64_t address, unsigned size, int writes) {
  Engine& e = engine();
  look_at_second_store();
  e.who.warp_phase = e.warp_phases[e.current / 32];
  if (const Shadow::Collision with = w.shadow->note(e.who, w.size, address - w.begin, size, writes, w.shared); with != Shadow::none)
    collide(w, with, address, size, writes);
}

void* at_slowly(std::uint64_t base, std::uint64_t address, unsigned size, int writes) {
  Engine& e = engine();
  Window window;
  std::string why;
  const char* verb = writes == 0 ? "reads " : writes == 1 ? "writes " : "updates ";
  const std::string what = verb + std::to_string(size) + " bytes at ";
  const auto dynamic = reinterpret_cast<std::uint64_t>(e.place->dynamic_shared);
  if (address >= device_tag) {
    const std::lock_guard lock(memory_mutex);
    const Allocation* a = find_allocation(address - device_tag);
    const Allocation* meant = base >= device_tag ? find_allocation(base - device_tag) : nullptr;
    if (meant && meant->state == Allocation::live && meant != a) why = "beyond the array that it indexes, " + describe_address(base - device_tag);
    else if (!a || address - device_tag + size > a->end()) why = "out of bounds";
    else if (a->state != Allocation::live) why = a->state == Allocation::freed ? "freed memory" : "memory that is allocated later in its stream";
    else if (a->device != e.device) why = "memory of another device";
    else window = {a->begin + device_tag, a->size, device_tag, const_cast<Shadow*>(&a->shadow), false, a->size + 1};
    if (!why.empty()) why = what + describe_address(address - device_tag) + ": " + why;
  } else if (const ModuleObject::Shared* meant = shared_variable(base)) {
    if (address < meant->begin || address + size > meant->begin + meant->size)
      why = what + "byte " + std::to_string(static_cast<long long>(address - meant->begin)) + " of the shared variable " + meant->name + " (" +
            std::to_string(meant->size) + " bytes): out of bounds";
    else window = {meant->begin, meant->size, 0, meant->shadow.get(), true, meant->size};
  } else if (const ModuleObject::Shared* a = shared_variable(address); a && address + size <= a->begin + a->size) {
    return reinterpret_cast<void*>(address);
  } else if (e.launch->dynamic_shared && address - dynamic < e.launch->dynamic_shared) {
    if (address - dynamic + size > e.launch->dynamic_shared)
      why = what + "byte " + std::to_string(address - dynamic) + " of " + std::to_string(e.launch->dynamic_shared) +
            " of dynamic shared memory: out of bounds";
    else window = {dynamic, e.launch->dynamic_shared, 0, &e.dynamic_shadow, true, e.launch->dynamic_shared};
  } else if (on_stack(e.running, reinterpret_cast<void*>(address)) || (address >= e.module->begin && address + size <= e.module->end)) {
    return reinterpret_cast<void*>(address);  // the thread's own variables; constants
  } else if (dynamic && base >= dynamic && base <= dynamic + e.launch->dynamic_shared) {
    why = what + "byte " + std::to_string(static_cast<long long>(address - dynamic)) + " of " + std::to_string(e.launch->dynamic_shared) +
          " of dynamic shared memory: out of bounds";
  } else {
    why = what + "an address that is no device memory";
  }
  if (!why.empty()) fail_from_fiber(Constant::CUDA_ERROR_ILLEGAL_ADDRESS, why);
  e.windows[e.next_window++ & 3u] = window;
  if (e.watched) watch(window, address, size, writes);
  return reinterpret_cast<void*>(address - window.tag);
}

void* at(unsigned long base, long offset, unsigned size, unsigned alignment, int writes) {
  Engine& e = engine();
  const std::uint64_t address = base + static_cast<std::uint64_t>(offset);
  if (address & (alignment - 1))
    fail_from_fiber(Constant::CUDA_ERROR_MISALIGNED_ADDRESS,
                    "an access of " + std::to_string(size) + " bytes is not aligned to " + std::to_string(alignment));
  for (const Window& w : e.windows) {
    const std::uint64_t from = address - w.begin;
    if (from < w.size && w.size - from >= size && base - w.begin < w.bases) {
      if (e.watched) watch(w, address, size, writes);
      return reinterpret_cast<void*>(address - w.tag);
    }
  }
  return at_slowly(base, address, size, writes);
}

const vt_services services = {at, sync_threads, sync_threads_with, warp, stop, special_function};

// A stack that takes threads of the block as they come; where one waits, the stack is its own until it ended.
void take_threads(void*) {
  for (;;) {
    Engine& e = engine();
    while (e.started < e.count) {
      const auto t = static_cast<unsigned>(e.order[e.started++]);
      place_thread(t);
      e.launch->function.kernel->call(e.parameters.data());
      look_at_second_store();
      Thread& self = e.threads[e.current];
      self.state = Thread::done;
      ++e.done;
      // Lanes that waited for this one as well.
      if (self.fiber || e.done < e.started) {
        const unsigned first = e.current & ~31u;
        for (unsigned lane = first; lane < first + 32 && lane < e.count; ++lane)
          if (e.threads[lane].state == Thread::at_warp) settle_warp(lane);
      }
      if (e.ready_from < e.ready.size() && e.seed != 0 && e.random.below(2)) break;
    }
    e.free_fibers.push_back(e.running);
    switch_fiber(e.running, e.system);
  }
}

void go_on(Fiber* fiber) {
  Engine& e = engine();
  e.running = fiber;
  switch_fiber(e.system, fiber);
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
    return name_of(e.threads[t].operation, warp) + std::string(" in line ") + std::to_string(e.threads[t].line);
  };
  std::string what;
  if (at_block < e.count) {
    place_thread(at_block);
    what = "waits at " + where(at_block, false) + " while thread ";
    what += ended < e.count ? text(e.indices[ended]) + " has ended" : text(e.indices[at_warp]) + " waits at " + where(at_warp, true);
  } else {
    place_thread(at_warp);
    what = "waits at " + where(at_warp, true) + " for lanes of its mask that do something else";
  }
  e.error = Constant::CUDA_ERROR_LAUNCH_FAILED;
  e.failed = true;
  add_report("kernel " + std::string(e.launch->function.kernel->name) + ", block " + text(e.place->block) + ", thread " + text(e.place->thread) +
             " of a grid of " + text(e.launch->grid) + " blocks of " + text(e.launch->block) + " threads: divergent: " + what);
}

void run_block(std::uint64_t number) {
  Engine& e = engine();
  const dim3 grid = e.launch->grid;
  e.place->block = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
                    static_cast<unsigned>(number / grid.x / grid.y)};
  for (const ModuleObject::Shared& v : e.module->shared) std::memset(reinterpret_cast<void*>(v.begin), 0xff, v.size);
  if (e.launch->dynamic_shared) std::memset(e.place->dynamic_shared, 0xff, e.launch->dynamic_shared);
  for (Thread& t : e.threads) t = Thread{};
  e.order = Order(e.count, e.seed, number);
  e.random = Random(e.seed ^ (number << 20));
  e.ready.clear();
  e.ready_from = 0;
  e.started = e.done = e.waiting = 0;
  e.who.block = static_cast<std::uint32_t>(number);
  e.who.phase = 0;
  while (e.done < e.count && !e.failed) {
    const bool others = e.ready_from < e.ready.size();
    if (e.started < e.count && (!others || (e.seed > 1 && e.random.below(2)))) {
      if (e.free_fibers.empty()) {
        static const auto stack = static_cast<std::size_t>(setting("VT_EMULATOR_STACK", 128 << 10));
        e.free_fibers.push_back(make_fiber(stack, take_threads, nullptr));
        e.all_fibers.push_back(e.free_fibers.back());
      }
      Fiber* fiber = e.free_fibers.back();
      e.free_fibers.pop_back();
      go_on(fiber);
    } else if (others) {
      const unsigned t = take_ready();
      place_thread(t);
      go_on(e.threads[t].fiber);
    } else {
      report_deadlock();
    }
  }
}

#ifndef VT_SANITIZED
struct sigaction former[3];
constexpr int signals[3] = {SIGSEGV, SIGBUS, SIGFPE};
void on_signal(int number, siginfo_t* info, void*) {
  if (in_kernel)
    fail_from_fiber(number == SIGFPE ? Constant::CUDA_ERROR_LAUNCH_FAILED : Constant::CUDA_ERROR_ILLEGAL_ADDRESS,
                    number == SIGFPE ? std::string("an integer division that the CPU cannot do")
                                     : "touches memory without VT_LOAD or VT_STORE, or its stack overflows; the address of the CPU is " +
                                           std::to_string(reinterpret_cast<std::uint64_t>(info->si_addr)));
  for (int i = 0; i < 3; ++i)
    if (signals[i] == number) ::sigaction(number, &former[i], nullptr);  // not ours: comes again
}
struct Guard {
  Guard() {
    if (!stack_.ss_sp) {
      stack_.ss_size = 64 << 10;
      stack_.ss_sp = ::malloc(stack_.ss_size);
    }
    ::sigaltstack(&stack_, &former_stack_);
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 3; ++i) ::sigaction(signals[i], &action, &former[i]);
  }
  ~Guard() {
    for (int i = 0; i < 3; ++i) ::sigaction(signals[i], &former[i], nullptr);
    ::sigaltstack(&former_stack_, nullptr);
  }

 private:
  static inline stack_t stack_ = {};
  stack_t former_stack_ = {};
};
#else
struct Guard {  // the sanitizers want these signals
  Guard() {}
};
#endif

}  // namespace

Result run_launch(const Launch& launch) {
  if (const Result error = injected("kernel")) {
    add_report("the failure that was asked for");
    return error;
  }
  Engine& e = engine();
  e.launch = &launch;
  e.module = launch.function.module.get();
  e.device = e.module->device;
  *e.module->description->services = &services;
  e.place = e.module->description->place;
  e.place->block_dim = launch.block;
  e.place->grid_dim = launch.grid;
  e.dynamic_shared.assign(launch.dynamic_shared + 128, 0xff);
  e.place->dynamic_shared =
      launch.dynamic_shared ? e.dynamic_shared.data() + (128 - reinterpret_cast<std::uint64_t>(e.dynamic_shared.data()) % 128) : nullptr;
  e.parameters.clear();
  for (unsigned offset : launch.offsets) e.parameters.push_back(const_cast<char*>(launch.parameters.data()) + offset);
  e.count = launch.block.x * launch.block.y * launch.block.z;
  e.threads.assign(e.count, Thread{});
  e.indices.clear();
  for (unsigned z = 0; z < launch.block.z; ++z)
    for (unsigned y = 0; y < launch.block.y; ++y)
      for (unsigned x = 0; x < launch.block.x; ++x) e.indices.push_back({x, y, z});
  e.seed = seed();
  for (Window& w : e.windows) w = Window{};
  e.failed = false;
  e.error = 0;
  e.watched = races_are_errors();
  ++e.who.launch;
  e.warp_phases.assign(e.count / 32 + 1, 0);
  e.twice.at = nullptr;
  e.system = adopt_thread();
  const std::uint64_t blocks = std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const Order order(blocks, e.seed, 77);
  {
    const Guard guard;
    in_kernel = true;
    for (std::uint64_t i = 0; i < blocks && !e.failed; ++i) run_block(order[i]);
    in_kernel = false;
  }
  if (e.failed) {  // stacks in the middle of something
    e.free_fibers = e.all_fibers;
    for (Fiber* fiber : e.all_fibers) restart_fiber(fiber);
  }
  drop_adopted(e.system);
  count("blocks", static_cast<long long>(blocks));
  count("threads", static_cast<long long>(blocks * e.count));
  return e.error;
}

}  // namespace emulator
