// Measures the costs of machine operations with short generated loops. Each runs a few times and
// the fastest run counts, as other work on the machine only makes them slower.
#include "machine_costs.hpp"

#include "llvm/code_cache.hpp"
#include "machine_limits.hpp"

#if VT_HAS_LLVM_HEADERS

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "../../trace/base/environment.hpp"
#include "../../trace/base/locks.hpp"
#include "../../trace/base/timeline.hpp"
#include "../../trace/base/warnings.hpp"
#include "../services/background.hpp"
#include "../services/disk_cache.hpp"
#include "math/math.hpp"

namespace vt::detail::cpu {

namespace cost_loops {

constexpr int exps = 4, gathers = 6;   // in flight
constexpr std::int64_t places = 4096;  // of the table that is gathered from, in the first cache
constexpr std::int64_t iterations = 1 << 12;  // of each loop
constexpr int enough_times = 4;               // one of them will find the machine idle

// arguments[0]: iterations; each of `exps` vectors, of numbers between 0 and 1.
void emit_exps(IrBuilder& b) {
  b.begin_function("kernel",
                   {Param::ptr(), Param::ptr(), Param::of(DType::i64), Param::of(DType::i64)});
  const int simd_lanes = b.target().simd_lanes(4);
  const Value out = b.load_pointer(b.arg(0), 0);
  Vec<Value> x;
  for (int k = 0; k < exps; ++k)
    x.push_back(b.splat(b.load(b.offset(out, DType::f32, b.index(k)), DType::f32), simd_lanes));
  x = b.loop(b.index(0), b.load(b.arg(1), DType::i64), 1, x, [&](Value, const Vec<Value>& old) {
    Vec<Value> next;
    for (const Value& v : old) next.push_back(math::exp(b, b.neg(v)));
    return next;
  });
  for (int k = 1; k < exps; ++k) x[0] = b.add(x[0], x[k]);
  b.store(out, b.extract(x[0], 0));
  b.end_function();
}

// arguments[0]: iterations; each of `gathers` vectors, which follow a table of places.
void emit_gathers(IrBuilder& b) {
  b.begin_function("kernel",
                   {Param::ptr(), Param::ptr(), Param::of(DType::i64), Param::of(DType::i64)});
  const int simd_lanes = b.target().simd_lanes(4);
  const Value table = b.load_pointer(b.arg(0), 0);
  Vec<Value> at;
  for (int k = 0; k < gathers; ++k)
    at.push_back(b.add(b.iota(DType::i32, simd_lanes), b.integer(DType::i32, 64 * k, simd_lanes)));
  at = b.loop(b.index(0), b.load(b.arg(1), DType::i64), 1, at, [&](Value, const Vec<Value>& old) {
    Vec<Value> next;
    for (const Value& v : old) next.push_back(b.gather(table, DType::i32, v));
    return next;
  });
  for (int k = 1; k < gathers; ++k) at[0] = b.bit_xor(at[0], at[k]);
  b.store(b.offset(table, DType::i32, b.index(places)), b.extract(at[0], 0));
  b.end_function();
}

// Nanoseconds of the fastest of some runs. The code is not kept: what it measured is.
double fastest(void (*emit)(IrBuilder&), void* buffer, std::int64_t times,
               std::int64_t elements = 0, int runs = 6) {
  IrBuilder builder;
  CompilerUse::watch([&] { emit(builder); });
  background_rest();
  const std::string name = "kernel";
  const Code code(compile_object(builder, {.level = host_target().level}), {&name, 1});
  const auto kernel = reinterpret_cast<Kernel::Function*>(code.address(0));
  const std::int64_t arguments[] = {times, elements};
  double best = 1e18;
  for (int i = 0; i < runs; ++i) {
    background_rest();
    const auto since = std::chrono::steady_clock::now();
    kernel(&buffer, arguments, 0, 1);
    best = std::min(
        best,
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - since).count());
  }
  return best;
}

constexpr int turns = 8;

struct WakeTurns {
  std::atomic<int> asked{0}, seen{0};
};

void* answer(void* turn) {
  WakeTurns& t = *static_cast<WakeTurns*>(turn);
  for (int i = 0; i < turns; ++i) {
    t.asked.wait(i);
    t.seen.store(i + 1);
  }
  return nullptr;
}

// Nanoseconds until a thread that sleeps has noticed that it is needed: the least of some. 0, which
// is no measurement, where there is no thread to be had.
double waking() {
  WakeTurns t;
  pthread_t other{};
  {
    const SignalsBlocked quiet;
    if (pthread_create(&other, nullptr, answer, &t) != 0) return 0;
  }
  double least = 1e18;
  for (int i = 0; i < turns; ++i) {
    usleep(300);
    const auto since = std::chrono::steady_clock::now();
    t.asked.store(i + 1);
    t.asked.notify_one();
    while (t.seen.load() != i + 1) sched_yield();
    least = std::min(
        least,
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - since).count());
  }
  pthread_join(other, nullptr);
  return least;
}

struct Known {
  Mutex lock;
  MachineCosts costs;
  bool looked = false, asked = false;
};
Known& known() {
  static Known* const k = new Known;  // never destroyed: the background thread may still measure
  return *k;
}

bool wanted() { return machine_from_environment().empty(); }

CacheKey costs_key() { return cache_key("machine costs 2, " + host_target().key()); }

// With the lock held.
void look(Known& k) {
  if (std::exchange(k.looked, true) || !wanted()) return;
  const std::optional<Vec<char>> kept = DiskCache::process().load(costs_key());
  if (!kept || kept->size() != sizeof k.costs) return;
  std::memcpy(&k.costs, kept->begin(), sizeof k.costs);
  k.costs = k.costs.bounded();
}

// On the background thread.
void measure() {
  try {
    const Span span("compile", "measure the machine");
    const MachineCosts m = machine_costs().better(measured_costs()).bounded();
    DiskCache::process().store(costs_key(), {reinterpret_cast<const char*>(&m), sizeof m});
    Known& k = known();
    const std::lock_guard hold(k.lock);
    k.costs = m;
  } catch (const ProcessEnds&) {
  } catch (const std::exception& e) {
    warn_once(std::string("the machine could not be measured: ") + e.what());
  }
}

}  // namespace cost_loops

MachineCosts measured_costs() {
  using namespace cost_loops;
  constexpr std::int64_t sizes[] = {16 << 10, 256 << 10, 8 << 20, 64 << 20};
  const std::int64_t step = std::int64_t{limit_loops::vectors} * host_target().simd_lanes(4);
  const std::size_t bytes = sizes[3];
  const std::unique_ptr<char[]> memory(new char[bytes + 64]);
  void* const buffer =
      reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory.get()) + 63) / 64 * 64);
  MachineCosts m;
  m.measured = 1;
  std::memset(buffer, 0, sizes[1]);
  m.vector_ns = fastest(limit_loops::emit_multiply_adds, buffer, iterations) /
                (iterations * limit_loops::chains);
  m.exp = fastest(emit_exps, buffer, iterations) / (iterations * exps) / m.vector_ns;
  auto* const table = static_cast<std::int32_t*>(buffer);
  for (std::int64_t i = 0; i < places; ++i)
    table[i] = static_cast<std::int32_t>((i * 1663 + 907) % places);
  m.gather = fastest(emit_gathers, buffer, iterations) /
             static_cast<double>(iterations * gathers * host_target().simd_lanes(4)) / m.vector_ns;
  for (int k = 0; k < 4; ++k) {
    background_rest();
    // pages that were never written are all the same one
    std::memset(buffer, 0, sizes[k]);
    const std::int64_t elements = sizes[k] / 4 / step * step,
                       times = std::max<std::int64_t>((1 << 20) / sizes[k], 1);
    m.bytes_per_ns[k] = static_cast<double>(4 * elements * times) /
                        fastest(limit_loops::emit_reading, buffer, times, elements, k < 3 ? 6 : 2);
  }
  m.wake_ns = waking();
  return m;
}

MachineCosts machine_costs() {
  cost_loops::Known& k = cost_loops::known();
  const std::lock_guard hold(k.lock);
  cost_loops::look(k);
  return k.costs;
}

void measure_machine_costs() {
  cost_loops::Known& k = cost_loops::known();
  {
    const std::lock_guard hold(k.lock);
    if (std::exchange(k.asked, true) || !cost_loops::wanted()) return;
    cost_loops::look(k);
    if (k.costs.measured >= cost_loops::enough_times || !DiskCache::process().usable() ||
        !background_open())
      return;
  }
  in_background(cost_loops::measure);
}

}  // namespace vt::detail::cpu

#endif
