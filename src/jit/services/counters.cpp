// Counters behind vt::stats().
#include "counters.hpp"

#include <ostream>
#include <vt/execution.hpp>

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

}  // namespace counter_table

Counters& counters() {
  static Counters all;
  return all;
}

}  // namespace vt::detail

namespace vt {

Stats stats() {
  Stats s;
  for (const auto& row : detail::counter_table::rows)
    s.*row.shown = (detail::counters().*row.live).load(std::memory_order_relaxed);
  return s;
}

void reset_stats() {
  for (const auto& row : detail::counter_table::rows)
    (detail::counters().*row.live).store(0, std::memory_order_relaxed);
}

std::ostream& operator<<(std::ostream& out, const Stats& s) { return out << s.str(); }

std::string Stats::str() const {
  std::string text;
  for (const auto& row : detail::counter_table::rows)
    if (this->*row.shown)
      text += std::string(row.name) + ": " + std::to_string(this->*row.shown) + "\n";
  return text;
}

}  // namespace vt
