// Pairs of kernels that go through one large array together.
#include "pair_kernels.hpp"

#include <algorithm>

namespace vt::detail {

namespace kernel_pairs {

class Pairing {
 public:
  explicit Pairing(Fusion& fusion) : fusion_(fusion) {}

  void run() {
    constexpr std::size_t steps_between = 64;  // so that long programs take no longer to compile
    Vec<FusedStep>& steps = fusion_.steps;
    for (std::size_t k = 0; k + 1 < steps.size(); ++k) {
      if (!goes_by_rows(steps[k]) || !reads_much(steps[k])) continue;
      for (std::size_t t = k + 1; t < std::min(steps.size(), k + 2 + steps_between); ++t) {
        const std::int64_t rows = rows_together(steps[k], steps[t]);
        if (rows == 0 || !moves_up(t, k + 1)) continue;
        std::rotate(steps.begin() + k + 1, steps.begin() + t, steps.begin() + t + 1);
        steps[k].pair_rows = rows;
        ++k;  // the second one is taken
        break;
      }
    }
  }

 private:
  Var storage(Var v) const { return fusion_.storage[v]; }

  /// Is it a kernel whose shared loop may be cut anywhere?
  static bool goes_by_rows(const FusedStep& s) {
    const int loop = s.schedule.parallel_loop;
    return s.equation < 0 && loop >= 0 &&
           !any_of(
               s.schedule.stages,
               [&](const StageSchedule& stage) {
                 return stage.vector_loop == loop || stage.tile_loop == loop;
               }) &&
           !any_of(s.nest.stores, [](const NestStore& w) { return w.update != Op::input; });
  }
  /// Is buffer b an array that is only read, and more than the caches near a core hold?
  bool is_large(const FusedStep& s, std::size_t b) const {
    const NestBuffer& array = s.nest.buffers[b];
    return array.local == 0 && !array.written &&
           static_cast<std::int64_t>(fusion_.graph.aval(s.buffers[b]).bytes()) >
               scheduling::beyond_near_caches;
  }
  bool reads_much(const FusedStep& s) const {
    for (std::size_t b = 0; b < s.buffers.size(); ++b)
      if (is_large(s, b)) return true;
    return false;
  }
  static Vec<IndexId> accesses(const Nest& nest, int buffer) {
    Vec<IndexId> all;
    for (const NestValue& v : nest.values)
      if (v.kind == NestValue::Kind::load && v.buffer == buffer) all.push_back(v.index);
    for (const NestStore& s : nest.stores)
      if (s.buffer == buffer) all.push_back(s.index);
    return all;
  }
  /// Elements of the buffer that an iteration of the shared loop has to itself, in order; 0: others
  /// touch them, too.
  static std::int64_t own_elements(const FusedStep& s, int buffer) {
    const int shared = s.schedule.parallel_loop;
    std::int64_t own = 0;
    for (IndexId access : accesses(s.nest, buffer)) {
      const IndexExpr& index = s.nest.indices[access];
      std::int64_t low = index.constant, high = low, factor = 0;
      for (const IndexTerm& t : index.terms) {
        const IndexAtom& atom = s.nest.indices.atom(t.atom);
        if (atom.kind != IndexAtom::Kind::loop) return 0;
        if (atom.id == shared) {
          factor = t.factor;
          continue;
        }
        const NestLoop& loop = s.nest.loops[atom.id];
        const std::int64_t last = t.factor * ((loop.block_of < 0 ? loop.extent : loop.block) - 1);
        (last < 0 ? low : high) += last;
      }
      if (factor <= 0 || (own != 0 && own != factor) || low < 0 || high >= factor) return 0;
      own = factor;
    }
    return own;
  }
  int buffer_of(const FusedStep& s, Var v) const {
    for (std::size_t b = 0; b < s.buffers.size(); ++b)
      if (s.nest.buffers[b].local == 0 && storage(s.buffers[b]) == storage(v))
        return static_cast<int>(b);
    return -1;
  }

  /// Iterations of the first kernel for each of the second one's; 0: they cannot go together, or
  /// gain nothing by it.
  std::int64_t rows_together(const FusedStep& a, const FusedStep& b) const {
    constexpr std::int64_t block_bytes = 512 << 10;  // stays in the second-level cache
    if (!goes_by_rows(b)) return 0;
    std::int64_t rows = 0;
    for (std::size_t i = 0; i < a.buffers.size() && rows == 0; ++i) {
      if (!is_large(a, i)) continue;
      const int same = buffer_of(b, a.buffers[i]);
      if (same < 0 || b.nest.buffers[same].written) continue;
      const std::int64_t of_a = own_elements(a, static_cast<int>(i)), of_b = own_elements(b, same);
      if (of_a == 0 || of_b % of_a != 0 ||
          of_b * static_cast<std::int64_t>(size_of(a.nest.buffers[i].dtype)) > block_bytes)
        continue;
      rows = of_b / of_a;
    }
    if (rows == 0) return 0;
    const auto iterations = [](const FusedStep& s) {
      return s.nest.loops[s.schedule.parallel_loop].extent;
    };
    if ((iterations(a) + rows - 1) / rows != iterations(b)) return 0;
    for (std::size_t i = 0; i < a.buffers.size(); ++i) {
      if (a.nest.buffers[i].local > 0) continue;
      const int same = buffer_of(b, a.buffers[i]);
      if (same < 0) continue;
      if (b.nest.buffers[same].written) return 0;
      if (!a.nest.buffers[i].written) continue;
      const std::int64_t made = own_elements(a, static_cast<int>(i));
      if (made == 0 || own_elements(b, same) != made * rows) return 0;
    }
    return rows;
  }

  /// May step t run before those from `to` on?
  bool moves_up(std::size_t t, std::size_t to) const {
    const auto meet = [](const Vec<Var>& a, const Vec<Var>& b) {
      return any_of(a, [&](Var v) { return std::find(b.begin(), b.end(), v) != b.end(); });
    };
    const StepAccess own = fusion_.access(fusion_.steps[t]);
    for (std::size_t s = to; s < t; ++s) {
      const StepAccess other = fusion_.access(fusion_.steps[s]);
      if (meet(other.written, own.read) || meet(other.written, own.written) ||
          meet(other.read, own.written))
        return false;
    }
    return true;
  }

  Fusion& fusion_;
};

}  // namespace kernel_pairs

void pair_kernels(Fusion& fusion) { kernel_pairs::Pairing(fusion).run(); }

}  // namespace vt::detail
