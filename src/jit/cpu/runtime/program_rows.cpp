// ProgramRows: where the rows of arrays lie.
#include "program_rows.hpp"

namespace vt::detail {

ProgramRows::ProgramRows(const Fusion& fusion, std::int64_t most)
    : graph_(fusion.graph), most_(most), first_(graph_.avals.size(), true) {
  for (std::size_t v = 0; v < first_.size(); ++v) {
    std::int64_t around = 1;
    for (std::int64_t extent : graph_.avals[v].shape) {
      if (are_in(extent)) {
        first_[v] = around == 1;
        break;
      }
      around *= extent;
    }
  }
  for (const Equation& e : graph_.equations)
    if (e.op == Op::reshape && !first_[e.inputs[0]]) first_[e.outputs[0]] = false;
  for (std::size_t v = 0; v < first_.size(); ++v)
    if (!first_[v]) first_[fusion.storage[v]] = false;
}

bool ProgramRows::has_rows(Var v) const {
  return any_of(graph_.aval(v).shape, [this](std::int64_t extent) { return are_in(extent); });
}

bool ProgramRows::along_one_axis() const {
  return all_of(graph_.avals, [this](const Aval& a) {
    return count_if(a.shape, [this](std::int64_t extent) { return are_in(extent); }) <= 1;
  });
}

}  // namespace vt::detail
