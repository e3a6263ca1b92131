// Scans whose rows are independent: how they are cut, and their body for a few rows.
#include "scan_tiling.hpp"

#include <algorithm>

#include "../../trace/ir/axis_map.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../regions/lane_form.hpp"

namespace vt::detail {

namespace row_cutting {

// A part has at least so many rows, which fill a register tile, and so many multiply-adds per
// iteration, some microseconds of work: beside that, what its steps take in each iteration is
// little. Rows that lie along the last axis of what takes most of it are several vectors.
constexpr std::int64_t least_rows = 8, rows_of_vectors = 64;
constexpr std::int64_t least_work = 1 << 18;
// What all rows share is read again for each part: beyond this it would come from too far.
constexpr std::size_t most_shared = std::size_t{1} << 20;
constexpr std::int64_t work_of_element = 8;

/// Nothing along the chosen axes meets in the equation.
bool rows_stay_apart(const LaneAxes& lanes, const Equation& e) {
  if (e.outputs.empty()) return false;
  // a body with loops or branches of its own is not cut
  if (e.op == Op::cond || e.op == Op::while_) return false;
  // One row that is broadcast over all.
  if (e.op == Op::broadcast_in_dim && lanes.axis(e.inputs[0]) < 0)
    return !lanes.ambiguous(e.outputs[0]);
  return lanes.equation(e).has_value();
}

std::int64_t multiply_adds(const GraphBody& g, const Equation& e) {
  std::int64_t n = g.aval(e.outputs[0]).elements();
  if (e.op != Op::dot_general) return n * work_of_element;
  for (int a : e.as<DotParams>().lhs_contract) n *= g.aval(e.inputs[0]).shape[a];
  return n;
}

}  // namespace row_cutting

std::int64_t work_of_iteration(const GraphBody& body) {
  std::int64_t work = 0;
  for (const Equation& e : body.equations)
    if (!e.outputs.empty()) work += row_cutting::multiply_adds(body, e);
  return work;
}

RowCut cut_rows(const GraphBody& body, std::size_t carries) {
  using namespace row_cutting;
  std::size_t largest = 0;
  for (std::size_t i = 1; i < carries; ++i)
    if (body.aval(body.inputs[i]).elements() > body.aval(body.inputs[largest]).elements())
      largest = i;
  if (carries == 0 || body.aval(body.inputs[largest]).shape.rank() == 0) return {};
  LaneAxes lanes(body);
  for (std::size_t i = 0; i < carries; ++i)
    for (int a = 0; a < body.aval(body.inputs[i]).shape.rank(); ++a)
      lanes.join(body.inputs[i], a, body.outputs[i], a);
  lanes.choose(lanes.class_of(body.inputs[largest], 0));
  // Parts of the rows are blocks of memory.
  for (const Vec<Var>* ends : {&body.inputs, &body.outputs})
    for (Var v : *ends)
      if (lanes.axis(v) > 0 || lanes.ambiguous(v)) return {};
  for (std::size_t i = 0; i < carries; ++i)
    if (lanes.axis(body.inputs[i]) != lanes.axis(body.outputs[i])) return {};
  for (const Equation& e : body.equations)
    if (keeps_order(e) || !rows_stay_apart(lanes, e)) return {};
  RowCut cut{body.aval(body.inputs[largest]).shape[0], 1, {}};
  for (std::size_t v = 0; v < body.avals.size(); ++v)
    cut.axis.push_back(lanes.axis(static_cast<Var>(v)));
  std::int64_t of_rows = 0, of_all = 0;
  std::size_t shared_bytes = 0;
  for (const Equation& e : body.equations) {
    const bool rows = cut.axis[e.outputs[0]] >= 0;
    (rows ? of_rows : of_all) += multiply_adds(body, e);
    for (Var v : e.inputs)
      if (rows && cut.axis[v] < 0) shared_bytes += body.aval(v).bytes();
  }
  // What does not belong to rows every part does for itself.
  if (cut.rows < 2 * least_rows || of_all > of_rows / 16 || shared_bytes > most_shared) return {};
  const std::int64_t of_a_row = std::max<std::int64_t>(of_rows / cut.rows, 1);
  std::int64_t rows = std::max(least_rows, (least_work + of_a_row - 1) / of_a_row);
  std::int64_t along_rows = 0;  // of the work
  for (const Equation& e : body.equations) {
    const Aval& result = body.aval(e.outputs[0]);
    if (result.shape.rank() > 1 && cut.axis[e.outputs[0]] == result.shape.rank() - 1)
      along_rows += multiply_adds(body, e);
  }
  if (along_rows > of_rows / 2)
    rows = (rows + rows_of_vectors - 1) / rows_of_vectors * rows_of_vectors;
  cut.parts = cut.rows / rows;
  return cut.parts >= 2 ? cut : RowCut{};
}

GraphBody body_of_rows(const GraphBody& body, const RowCut& cut, std::int64_t rows) {
  GraphBody part = with_extent(body, cut.axis, rows);
  debug_check(part, "body_of_rows");
  return part;
}

}  // namespace vt::detail
