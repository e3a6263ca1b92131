// Whether a fused region is worth it.
#include "region_gain.hpp"

#include <algorithm>

#include "../../trace/base/hash_map.hpp"
#include "../../trace/ir/axis_map.hpp"
#include "../nest/schedule.hpp"

namespace vt::detail {

bool stands_alone(const Equation& e) { return lanes_of(e) || e.op == Op::dot_general; }
bool is_of_rows(const Equation& e) {
  return !reduced_axes(e).empty() || family_of(e.op) == Family::cumulative ||
         e.op == Op::dot_general;
}

namespace region_gain {

const std::int64_t usual_elements = LaneForm().most_in_registers;

bool has_short_rows(const GraphBody& g, const Equation& e, std::size_t k,
                    const RegisterLimits& limits) {
  const Aval& from = g.aval(e.inputs[k]);
  if (from.shape.rank() < 2 || from.shape[0] < fewest_short_rows || from.elements() == 0)
    return false;
  const std::int64_t rows = from.shape[0], row = from.elements() / rows;
  if (row < 2 || row > limits.short_row) return false;
  if (e.op != Op::dot_general)
    return !reduced_axes(e).contains(0) &&
           !(family_of(e.op) == Family::cumulative && e.as<CumulativeParams>().axis == 0);
  // Of products, those of each row with the same few vectors, or of rows in pairs; the tiles of
  // others are filled.
  const auto& p = e.as<DotParams>();
  const std::int64_t sums = g.aval(e.outputs[0]).elements() / rows,
                     other = g.aval(e.inputs[1 - k]).elements();
  const Axes& contract = k == 0 ? p.lhs_contract : p.rhs_contract;
  if (contract.contains(0) || static_cast<int>(contract.size()) != from.shape.rank() - 1)
    return false;
  return row <= limits.short_row / 2 && sums < limits.short_row / 2 &&
         sums * row <= 2 * limits.short_row &&
         (other == sums * row || (sums == 1 && other == rows * row));
}

class Gain {
 public:
  explicit Gain(const LaneView& of) : of_(of) {}

  bool worth_it(std::span<const int> members) const {
    const bool branches = any_of(members, [&](int i) { return lanes_of(of_.graph.equations[i]); });
    return (products_meet(members) && !plain_products(members)) ||
           (branches && members.size() >= 2) || in_short_rows(members) || computes_parts(members);
  }

 private:
  // Where nothing else is computed, a product has tiles, and rows that fill a vector go as fast
  // with SIMD lanes along them.
  bool in_short_rows(std::span<const int> members) const {
    if (of_.most_elements > usual_elements || reads_what_nests_compute(members)) return false;
    int work = 0;
    for (int i : members) {
      const Equation& e = of_.graph.equations[i];
      if (is_elementwise(e.op)) work += op_weight(e.op, of_.graph.aval(e.outputs[0]).dtype);
    }
    for (int i : members) {
      const Equation& e = of_.graph.equations[i];
      const int k = operand_of_short_rows(of_.graph, e, of_.limits);
      if (k < 0) continue;
      const std::int64_t row = of_.lanes.aval(e.inputs[k]).elements();
      const bool worth = e.op == Op::dot_general
                             ? work > 0 || (of_.lanes.aval(e.outputs[0]).elements() == 1 &&
                                            row < of_.limits.short_row / 2)
                             : row <= of_.limits.short_row / 2 || work >= 8;
      if (worth) return true;
    }
    return false;
  }

  // Would an array be written for these that a nest makes as it reads: a window's elements, a row
  // that is the same for many lanes?
  bool reads_what_nests_compute(std::span<const int> members) const {
    for (int i : members)
      for (Var v : of_.graph.equations[i].inputs) {
        if (of_.lanes.axis(v) < 0 || of_.numbers[v]) continue;
        int m = of_.maker[v];
        while (m >= 0 && of_.graph.equations[m].op == Op::reshape)
          m = of_.maker[of_.graph.equations[m].inputs[0]];
        if (m < 0 || of_.in_region[m] || std::binary_search(members.begin(), members.end(), m))
          continue;
        const Op op = of_.graph.equations[m].op;
        if (is_elementwise(op) || family_of(op) == Family::shape || op == Op::iota ||
            op == Op::slice || op == Op::gather || op == Op::windows)
          return true;
      }
    return false;
  }

  // Are arrays put together of small parts that are computed in different ways? A nest asks of each
  // element which part it is, computes expensive ones for all of them, and does not keep such an
  // array for a sum over it: normalised products of quaternions took a hundred times as long.
  bool computes_parts(std::span<const int> members) const {
    constexpr std::int64_t longest_part = 6;  // longer ones are rows of their own
    constexpr int least_work = 24, fewest_parts = 3;
    enum : char { given, computed, joined };  // joined: of such parts
    HashMap<int, char> kinds;                 // of members that are not given
    const auto kind_of = [&](Var v) {
      const auto* known = kinds.find(of_.maker[v]);
      return known == kinds.end() ? char{given} : known->second;
    };
    double work = 0, products = 0;
    int parts = 0;
    bool reduced = false;
    for (int m : members) {
      const Equation& e = of_.graph.equations[m];
      char own = given;
      for (Var v : e.inputs) own = std::max(own, kind_of(v));
      if (is_elementwise(e.op)) {
        work += op_weight(e.op, of_.graph.aval(e.outputs[0]).dtype);
        own = std::max(own, char{computed});
      }
      if (e.op == Op::dot_general) products += terms(e);
      reduced = reduced || (family_of(e.op) == Family::reduce && own == joined);
      if (e.op == Op::concatenate) {
        const auto is_small = [&](Var v) {
          return kind_of(v) != given && of_.lanes.aval(v).elements() <= longest_part;
        };
        const auto small = std::count_if(e.inputs.begin(), e.inputs.end(), is_small);
        parts += static_cast<int>(small);
        if (small > 1) own = joined;
      }
      if (own != given) kinds.emplace(m, own);
    }
    return parts >= fewest_parts && products <= work && (work >= least_work || reduced);
  }

  // Of a product, for one lane.
  double terms(const Equation& e) const {
    const Aval& a = of_.graph.aval(e.inputs[0]);
    double all = static_cast<double>(of_.lanes.aval(e.outputs[0]).elements());
    for (int axis : e.as<DotParams>().lhs_contract) all *= static_cast<double>(a.shape[axis]);
    return all;
  }

  // Are they mostly products of larger matrices as they lie? For those bringing the lanes side by
  // side costs more than a pass through memory between products (three of 6 × 6: twice the time),
  // but not for those of transposed ones or ones with more axes.
  bool plain_products(std::span<const int> members) const {
    double plain = 0, all = 0;
    for (int i : members) {
      const Equation& e = of_.graph.equations[i];
      if (e.op != Op::dot_general) continue;
      const auto& p = e.as<DotParams>();
      const Aval &a = of_.graph.aval(e.inputs[0]), &b = of_.graph.aval(e.inputs[1]);
      const Axes first{0}, second{1}, third{2};
      const double work = terms(e);
      const bool large = of_.lanes.aval(e.inputs[0]).elements() > usual_elements ||
                         of_.lanes.aval(e.inputs[1]).elements() > usual_elements;
      const bool as_they_lie = a.shape.rank() == 3 && b.shape.rank() == 3 && p.lhs_batch == first &&
                               p.rhs_batch == first && p.lhs_contract == third &&
                               p.rhs_contract == second && of_.lanes.axis(e.inputs[0]) == 0;
      all += work;
      if (large && as_they_lie) plain += work;
    }
    return plain * 2 > all;
  }

  // Does anything depend on several products? Others gain nothing from a common loop, as those of a
  // dense layer's derivatives.
  bool products_meet(std::span<const int> members) const {
    constexpr int none = -1, several = -2;
    HashMap<int, int> product;  // that a member depends on, if it does
    for (int m : members) {
      int mine = of_.graph.equations[m].op == Op::dot_general ? m : none;
      for (Var v : of_.graph.equations[m].inputs) {
        const auto* theirs = product.find(of_.maker[v]);
        if (theirs == product.end() || theirs->second == mine) continue;
        mine = mine == none ? theirs->second : several;
      }
      if (mine == several) return true;
      if (mine != none) product.emplace(m, mine);
    }
    return false;
  }

  const LaneView& of_;
};

}  // namespace region_gain

int operand_of_short_rows(const GraphBody& g, const Equation& e, const RegisterLimits& limits) {
  for (std::size_t k = 0; k < e.inputs.size() && is_of_rows(e); ++k)
    if (region_gain::has_short_rows(g, e, k, limits)) return static_cast<int>(k);
  return -1;
}

bool worth_a_region(const LaneView& of, std::span<const int> members) {
  return region_gain::Gain(of).worth_it(members);
}

}  // namespace vt::detail
