// The threads that kernels run on.
#pragma once

#include <cstdint>

namespace vt::detail {

/// Threads a kernel may use, the caller included.
int thread_count();
/// Is another thread waiting for the next launch right now? (None is for what runs inside of one.)
/// Waking one that sleeps costs as much as a small kernel.
bool others_ready();

/// Calls body(context, begin, end) on ranges that cover [0, total) once, cut at multiples of
/// `grain`, on up to `thread_count()` threads, the caller included, and returns when all are done.
/// There are about `ranges` for each thread, as a few even out their speeds; what is computed must
/// not depend on the cuts. Inside another parallel_ranges it runs on the calling thread alone.
/// Where `body` throws, ranges behind that one may be left out, and what the first of those that
/// threw has thrown is thrown here, once no thread is at work any more.
/// `wake`: threads that sleep are woken for it at once; or, where nobody knows how much there is to
/// do, when the first ranges show that it is worth it.
enum class Wake { at_once, when_long };
using RangeBody = void (*)(void* context, std::int64_t begin, std::int64_t end);
void parallel_ranges(std::int64_t total, std::int64_t grain, RangeBody body, void* context,
                     int ranges = 4, Wake wake = Wake::at_once);

/// How many threads that takes at most.
inline std::int64_t threads_for(std::int64_t total, std::int64_t grain) {
  grain = grain < 1 ? 1 : grain;
  const std::int64_t grains = (total + grain - 1) / grain, threads = thread_count();
  return grains < threads ? (grains < 1 ? 1 : grains) : threads;
}

template <class F>
void parallel_ranges(std::int64_t total, std::int64_t grain, const F& f, int ranges = 4,
                     Wake wake = Wake::at_once) {
  parallel_ranges(
      total, grain,
      [](void* context, std::int64_t begin, std::int64_t end) {
        (*static_cast<const F*>(context))(begin, end);
      },
      const_cast<F*>(&f), ranges, wake);
}

}  // namespace vt::detail
