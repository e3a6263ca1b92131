// Measures the CPU's limits with two generated loops: multiply-adds in registers, and reading
// memory of several sizes.
#include "machine_limits.hpp"

#include "llvm/code_cache.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <optional>

#include "../services/disk_cache.hpp"
#include "../services/threads.hpp"

namespace vt::detail::cpu {

namespace limit_loops {

void emit_multiply_adds(IrBuilder& b) {
  b.begin_function("kernel",
                   {Param::ptr(), Param::ptr(), Param::of(DType::i64), Param::of(DType::i64)});
  const int simd_lanes = b.target().simd_lanes(4);
  const Value iterations = b.load(b.arg(1), DType::i64), out = b.load_pointer(b.arg(0), 0);
  const Value a = b.real(DType::f32, 0.999, simd_lanes), c = b.real(DType::f32, 0.001, simd_lanes);
  Vec<Value> chain;
  for (int k = 0; k < chains; ++k)
    chain.push_back(b.splat(b.load(b.offset(out, DType::f32, b.index(k)), DType::f32), simd_lanes));
  chain = b.loop(b.index(0), iterations, 1, chain, [&](Value, const Vec<Value>& old) {
    Vec<Value> next;
    for (const Value& x : old) next.push_back(b.mul_add(x, a, c));
    return next;
  });
  for (int k = 1; k < chains; ++k) chain[0] = b.add(chain[0], chain[k]);
  b.store(b.offset(out, DType::f32, b.arg(2)), b.extract(chain[0], 0));
  b.end_function();
}

void emit_reading(IrBuilder& b) {
  b.begin_function("kernel",
                   {Param::ptr(), Param::ptr(), Param::of(DType::i64), Param::of(DType::i64)});
  const int simd_lanes = b.target().simd_lanes(4);
  const Value iterations = b.load(b.arg(1), DType::i64),
              each = b.load(b.offset(b.arg(1), DType::i64, b.index(1)), DType::i64);
  const Value start = b.offset(b.load_pointer(b.arg(0), 0), DType::i32, b.mul(b.arg(2), each)),
              size = b.mul(each, b.sub(b.arg(3), b.arg(2)));
  const Vec<Value> zeros(vectors, b.integer(DType::i32, 0, simd_lanes));
  Vec<Value> sums = b.loop(b.index(0), iterations, 1, zeros, [&](Value, const Vec<Value>& outer) {
    return b.loop(b.index(0), size, std::int64_t{vectors} * simd_lanes, outer,
                  [&](Value i, const Vec<Value>& old) {
                    Vec<Value> next;
                    for (int k = 0; k < vectors; ++k)
                      next.push_back(b.add(
                          old[k], b.load(b.offset(start, DType::i32,
                                                  b.add(i, b.index(std::int64_t{k} * simd_lanes))),
                                         DType::i32, simd_lanes)));
                    return next;
                  });
  });
  for (int k = 1; k < vectors; ++k) sums[0] = b.add(sums[0], sums[k]);
  b.store(start, b.extract(sums[0], 0));  // somebody needs them
  b.end_function();
}

// Of some runs on all threads, the fastest.
double seconds_of(const Kernel& kernel, void* buffer, int runs, std::int64_t iterations,
                  std::int64_t elements) {
  const std::int64_t arguments[] = {iterations, elements};
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    const auto since = std::chrono::steady_clock::now();
    parallel_ranges(
        thread_count(), 1,
        [&](std::int64_t begin, std::int64_t end) { kernel(&buffer, arguments, begin, end); }, 1);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count());
  }
  return best;
}

MachineLimits measured() {
  MachineLimits m;
  const std::int64_t threads = thread_count(), simd_lanes = host_target().simd_lanes(4);
  const BufferRef memory =
      allocate(MachineLimits::sizes[std::size(MachineLimits::sizes) - 1], "to measure the machine");
  std::memset(memory->data, 0, memory->bytes);
  const Kernel adds = Code::as_kernel(
      cached_code("multiply-adds of the machine", "kernel", emit_multiply_adds, false));
  const Kernel reads =
      Code::as_kernel(cached_code("reading of the machine", "kernel", emit_reading, false));
  constexpr std::int64_t iterations = 1 << 16;
  m.operations = 2.0 * chains * static_cast<double>(simd_lanes * iterations * threads) /
                 seconds_of(adds, memory->data, 100, iterations, 0);
  for (std::size_t i = 0; i < std::size(MachineLimits::sizes); ++i) {
    const std::int64_t step = vectors * simd_lanes,
                       each = static_cast<std::int64_t>(MachineLimits::sizes[i]) / 4 / threads /
                              step * step;
    const std::int64_t times =
        std::max<std::int64_t>((std::int64_t{64} << 20) / (each * 4 * threads), 1);
    m.bandwidth[i] = static_cast<double>(each * 4 * threads * times) /
                     seconds_of(reads, memory->data, 8, times, each);
  }
  return m;
}

}  // namespace limit_loops

MachineLimits machine_limits(bool again) {
  const CacheKey key = cache_key("machine limits 2, threads " + std::to_string(thread_count()) +
                                 ", " + host_target().key());
  MachineLimits m, before;
  if (const std::optional<Vec<char>> kept = DiskCache::process().load(key);
      kept && kept->size() == sizeof m) {
    std::memcpy(&before, kept->begin(), sizeof m);
    if (!again) return before;
  }
  m = limit_loops::measured();
  m.operations = std::max(m.operations, before.operations);
  for (std::size_t i = 0; i < std::size(m.bandwidth); ++i)
    m.bandwidth[i] = std::max(m.bandwidth[i], before.bandwidth[i]);
  const char* bytes = reinterpret_cast<const char*>(&m);
  DiskCache::process().store(key, {bytes, sizeof m});
  return m;
}

}  // namespace vt::detail::cpu

#endif
