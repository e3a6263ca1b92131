// Counters behind vt::stats().
#include "counters.hpp"

#include <mutex>
#include <ostream>
#include <utility>
#include <vt/detail/small_vec.hpp>
#include <vt/execution.hpp>

#include "../../trace/base/locks.hpp"

namespace vt::detail {

namespace counter_table {

struct Row {
  const char* name;
  std::atomic<std::uint64_t> Counters::* live;
  std::uint64_t Stats::* shown;
};
constexpr Row rows[] = {
    {"programs", &Counters::programs, &Stats::programs},
    {"program hits", &Counters::program_hits, &Stats::program_hits},
    {"kernels compiled", &Counters::kernels_compiled, &Stats::kernels_compiled},
    {"kernels unoptimised at first", &Counters::kernels_unoptimised, &Stats::kernels_unoptimised},
    {"kernels optimised since", &Counters::kernels_optimised, &Stats::kernels_optimised},
    {"kernel memory hits", &Counters::kernel_memory_hits, &Stats::kernel_memory_hits},
    {"kernel disk hits", &Counters::kernel_disk_hits, &Stats::kernel_disk_hits},
    {"vector kernels", &Counters::vector_kernels, &Stats::vector_kernels},
    {"fused ops", &Counters::fused_ops, &Stats::fused_ops},
    {"stages", &Counters::stages, &Stats::stages},
    {"row buffers", &Counters::row_buffers, &Stats::row_buffers},
    {"contiguous accesses", &Counters::contiguous_accesses, &Stats::contiguous_accesses},
    {"strided accesses", &Counters::strided_accesses, &Stats::strided_accesses},
    {"gathers", &Counters::gathers, &Stats::gathers},
    {"scalarised accesses", &Counters::scalarised_accesses, &Stats::scalarised_accesses},
    {"parallel reductions", &Counters::parallel_reductions, &Stats::parallel_reductions},
    {"programs run", &Counters::programs_run, &Stats::programs_run},
    {"launches", &Counters::launches, &Stats::launches},
    {"parallel launches", &Counters::parallel_launches, &Stats::parallel_launches},
    {"matrix products", &Counters::matrix_products, &Stats::matrix_products},
    {"product epilogues", &Counters::product_epilogues, &Stats::product_epilogues},
    {"product chains", &Counters::product_chains, &Stats::product_chains},
    {"interpreter steps", &Counters::interpreter_steps, &Stats::interpreter_steps},
    {"host steps", &Counters::host_steps, &Stats::host_steps},
    {"graph launches", &Counters::graph_launches, &Stats::graph_launches},
    {"bytes", &Counters::bytes, &Stats::bytes},
    {"llvm unavailable", &Counters::llvm_unavailable, &Stats::llvm_unavailable},
};
static_assert(sizeof(rows) / sizeof(rows[0]) * sizeof(std::uint64_t) == sizeof(Stats),
              "one row per counter");
static_assert(sizeof(Counters) == sizeof(Stats));

struct Blocks {
  Mutex mutex;
  Vec<Counters*> all, free;  ///< never destroyed; of threads that have ended
  Stats before;              ///< the last reset
};
Blocks& blocks() {
  static Blocks* const made = new Blocks;
  return *made;
}

constinit thread_local Counters* own = nullptr;
struct EndOfThread {
  ~EndOfThread() {
    const std::lock_guard lock(blocks().mutex);
    blocks().free.push_back(std::exchange(own, nullptr));
  }
};

Counters& first_of_thread() {
  Blocks& b = blocks();
  {
    const std::lock_guard lock(b.mutex);
    if (b.free.empty()) b.all.push_back(new Counters);
    own = b.free.empty() ? b.all.back() : b.free.back();
    if (!b.free.empty()) b.free.pop_back();
  }
  static thread_local EndOfThread end;
  static_cast<void>(end);
  return *own;
}

/// Of all threads, with Blocks::mutex held.
Stats sums() {
  Stats s;
  for (const Counters* c : blocks().all)
    for (const Row& row : rows) s.*row.shown += (c->*row.live).load(std::memory_order_relaxed);
  return s;
}

}  // namespace counter_table

Counters& counters() {
  Counters* const own = counter_table::own;
  return own ? *own : counter_table::first_of_thread();
}

}  // namespace vt::detail

namespace vt {

Stats stats() {
  using namespace detail::counter_table;
  const std::lock_guard lock(blocks().mutex);
  Stats s = sums();
  for (const Row& row : rows) s.*row.shown -= blocks().before.*row.shown;
  return s;
}

void reset_stats() {
  using namespace detail::counter_table;
  const std::lock_guard lock(blocks().mutex);
  blocks().before = sums();
}

std::ostream& operator<<(std::ostream& out, const Stats& s) { return out << s.str(); }

std::string detail::text_of(const Stats& stats) { return stats.str(); }
std::string Stats::str() const {
  std::string text;
  for (const auto& row : detail::counter_table::rows)
    if (this->*row.shown)
      text += std::string(row.name) + ": " + std::to_string(this->*row.shown) + "\n";
  return text;
}

}  // namespace vt
