// The cost model: costs of ops and accesses, by which schedules and fusion are chosen.
#include "cost_model.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include <vt/detail/message.hpp>

#include "schedule.hpp"

namespace vt::detail {

int op_weight(Op op, DType d) {
  const int cost = op_table[op].cost;
  if (op == Op::div && !is_float(d)) return 15;
  return cost == 1 && is_float(d) && size_of(d) == 2 ? 4 : cost;
}

double op_cost(Op op, DType d, const MachineCosts& costs) {
  const int weight = op_weight(op, d);
  return weight >= 15 && is_float(d) ? weight * costs.exp / op_weight(Op::exp, DType::f32) : weight;
}

double MachineCosts::nanoseconds(std::uint64_t vector_operations, std::uint64_t bytes) const {
  std::size_t level = 0;
  while (level < std::size(cache_bytes) && static_cast<double>(bytes) > cache_bytes[level]) ++level;
  return std::max(static_cast<double>(vector_operations) * vector_ns,
                  static_cast<double>(bytes) / bytes_per_ns[level]);
}

MachineCosts MachineCosts::bounded() const {
  const MachineCosts usual;
  MachineCosts m = *this;
  const auto bound = [](double& x, double around, double most = 4) {
    x = x > 0 ? std::clamp(x, around / 4, around * most) : around;
  };
  bound(m.vector_ns, usual.vector_ns);
  bound(m.exp, usual.exp);
  bound(m.gather, usual.gather);
  bound(m.wake_ns, usual.wake_ns, 2);
  for (std::size_t k = 0; k < std::size(bytes_per_ns); ++k)
    bound(m.bytes_per_ns[k], usual.bytes_per_ns[k]);
  return m;
}

MachineCosts MachineCosts::better(const MachineCosts& other) const {
  if (measured == 0) return other;
  MachineCosts m = *this;
  m.measured += other.measured;
  m.vector_ns = std::min(m.vector_ns, other.vector_ns);
  m.exp = std::min(m.exp, other.exp);
  m.gather = std::min(m.gather, other.gather);
  m.wake_ns = std::min(m.wake_ns, other.wake_ns);
  for (std::size_t k = 0; k < std::size(bytes_per_ns); ++k)
    m.bytes_per_ns[k] = std::max(m.bytes_per_ns[k], other.bytes_per_ns[k]);
  return m;
}

std::string MachineCosts::str() const {
  using scheduling::cost_text;
  std::string text = std::string("machine, ") + (measured > 0 ? "measured" : "usual numbers") +
                     ": vector operation " + cost_text(vector_ns) + " ns, exp " + cost_text(exp) +
                     " of them, gather " + cost_text(gather) + " a SIMD lane, waking a thread " +
                     cost_text(wake_ns / 1000) + " us, reading";
  for (double b : bytes_per_ns) text += " " + cost_text(b);
  return text + " GB/s by cache level\n";
}

std::string scheduling::cost_text(double x) {
  // Two digits: what costs differ by beyond them decides nothing that one would look for.
  return formatted(x >= 10 ? "{:.0f}" : "{:.2g}", x);
}

double scheduling::access_cost(const SimdStep& s, int simd_lanes, bool transposed,
                               const MachineCosts& costs) {
  if (transposed && (!s.regular || s.step > 1 || s.step < -1))
    return 2 + 0.5 * std::bit_width(static_cast<unsigned>(simd_lanes));
  if (!s.regular) return costs.gather * simd_lanes + 2;
  if (s.step == 0) return 0.3;
  if (s.step == 1) return 1.0;
  if (s.step == -1) return 2.0;
  return s.step >= 2 && s.step <= 4 ? 1.5 * static_cast<double>(s.step) : 0.7 * simd_lanes + 2;
}

}  // namespace vt::detail
