// Running a grid on the CPU: block after block, the threads of a block on stacks of their own once
// one has to wait.
#include "ahead.hpp"
#include "engine.hpp"

#include <csignal>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VT_SANITIZED 1
#endif

namespace emulator {

Engine* const the_engine = new Engine;

std::string text(uint3 v) {
  return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}
std::string text(dim3 v) { return text(uint3{v.x, v.y, v.z}); }

void note_failure(Result error, const std::string& what) {
  Engine& e = engine();
  if (e.failed) return;
  e.failed = true;
  e.error = error;
  add_report("kernel " + std::string(e.launch->function.kernel->name) + ", block " +
             text(e.place->block) + ", thread " + text(e.place->thread) + " of a grid of " +
             text(e.launch->grid) + " blocks of " + text(e.launch->block) + " threads: " + what);
}

void give_up() {
  Engine& e = engine();
  for (;;) switch_fiber(e.running, e.system);  // never comes back: the stack is begun anew
}

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

namespace {

thread_local bool in_kernel = false;

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

void note_stop(int error, const char* what, int line) {
  note_failure(error, std::string(what) + (line ? ", line " + std::to_string(line) : ""));
}
void stop(int error, const char* what, int line) {
  note_stop(error, what, line);
  give_up_if_failed();
}

const vt_services services = {at,   plain, sync_threads,     sync_threads_with,
                              warp, stop,  special_function, set_condition};

// A stack that takes threads of the block as they come; where one waits, the stack is its own until
// it ended.
void take_threads(void*) {
  for (;;) {
    Engine& e = engine();
    while (e.started < e.count) {
      const auto t = static_cast<unsigned>(e.order[e.started++]);
      place_thread(t);
      e.launch->function.kernel->call(e.parameters.data());
      look_at_second_store();
      give_up_if_failed();
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

void run_block(std::uint64_t number) {
  Engine& e = engine();
  const dim3 grid = e.launch->grid;
  e.place->block = {static_cast<unsigned>(number % grid.x),
                    static_cast<unsigned>(number / grid.x % grid.y),
                    static_cast<unsigned>(number / grid.x / grid.y)};
  for (const ModuleObject::Shared& v : e.module->shared)
    std::memset(reinterpret_cast<void*>(v.begin), 0xff, v.size);
  if (e.launch->dynamic_shared)
    std::memset(e.place->dynamic_shared, 0xff, e.launch->dynamic_shared);
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
        e.free_fibers.push_back(vt::detail::make_fiber(stack, take_threads, nullptr));
        if (!e.free_fibers.back()) std::abort();
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
void note_signal(int number, const void* address) {
  if (number == SIGFPE)
    return note_failure(Constant::CUDA_ERROR_LAUNCH_FAILED,
                        "an integer division that the CPU cannot do");
  note_failure(Constant::CUDA_ERROR_ILLEGAL_ADDRESS,
               "touches memory without VT_LOAD or VT_STORE, or its stack overflows; the address of "
               "the CPU is " +
                   std::to_string(reinterpret_cast<std::uint64_t>(address)));
}
void on_signal(int number, siginfo_t* info, void*) {
  if (in_kernel) {
    note_signal(number, info->si_addr);
    give_up_if_failed();
  }
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
  if (only_collects()) return 0;
  Engine& e = engine();
  e.launch = &launch;
  e.module = launch.function.module.get();
  e.device = e.module->device;
  *e.module->description->services = services;
  e.place = e.module->description->place;
  e.place->block_dim = launch.block;
  e.place->grid_dim = launch.grid;
  e.dynamic_shared.assign(launch.dynamic_shared + 128, 0xff);
  e.place->dynamic_shared =
      launch.dynamic_shared
          ? e.dynamic_shared.data() +
                (128 - reinterpret_cast<std::uint64_t>(e.dynamic_shared.data()) % 128)
          : nullptr;
  e.parameters.clear();
  for (unsigned offset : launch.offsets)
    e.parameters.push_back(const_cast<char*>(launch.parameters.data()) + offset);
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
  e.system = vt::detail::adopt_thread();
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
    for (Fiber* fiber : e.all_fibers) restart_fiber(fiber, nullptr);
  }
  drop_adopted(e.system);
  count("blocks", static_cast<long long>(blocks));
  count("threads", static_cast<long long>(blocks * e.count));
  return e.error;
}

}  // namespace emulator
