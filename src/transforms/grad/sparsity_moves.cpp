// The walk over equations that move elements: shapes, slices, rows, windows, and reads and writes
// where indices say.
#include <algorithm>

#include "../../trace/elements/element_maps.hpp"
#include "../../trace/record/node.hpp"
#include "sparsity_walk.hpp"

namespace vt::detail::sparsity {

namespace move_parts {

/// A box of one array, copied into another; from nothing ones.
inline void copy_box(const char* from, const Shape& whole, const Shape& first, char* to,
                     const Shape& result, const Shape& place, const Shape& sizes) {
  const std::size_t rank = sizes.size();
  const std::int64_t run = rank == 0 ? 1 : sizes.back(),
                     runs = run == 0 ? 0 : sizes.elements() / run;
  Vec<std::int64_t> index(rank, 0);
  for (std::int64_t k = 0; k < runs; ++k) {
    std::int64_t a = 0, b = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      a = a * whole[d] + first[d] + index[d];
      b = b * result[d] + place[d] + index[d];
    }
    if (from) std::copy_n(from + a, run, to + b);
    else std::fill_n(to + b, run, char{1});
    for (std::size_t d = rank; d-- > 1;) {
      if (++index[d - 1] < sizes[d - 1]) break;
      index[d - 1] = 0;
    }
  }
}

}  // namespace move_parts
using namespace move_parts;

/// Those of the result of reshape, transpose, broadcast_in_dim, rev and slice.
Axes Walk::varied_by_move(const Equation& e) {
  const Axes of_operand = varied(e.inputs[0]);
  const Shape &from = aval(e.inputs[0]).shape, &to = aval(e.outputs[0]).shape;
  if (e.op == Op::rev || e.op == Op::slice) return of_operand;
  Axes result;
  if (e.op == Op::broadcast_in_dim) {
    for (int d : of_operand) result.push_back(e.as<BroadcastParams>().axes[d]);
  } else if (e.op == Op::transpose) {
    const Axes& order = e.as<PermutationParams>().permutation;
    for (int d = 0; d < from.rank(); ++d)
      if (of_operand.contains(order[d])) result.push_back(d);
  } else {
    // Axes that are split or joined go together.
    for (std::size_t a = 0, b = 0; a < from.size() || b < to.size();) {
      std::int64_t before = 1, behind = 1;
      bool varies = false;
      const std::size_t first = b;
      do {
        const bool is_less = a < from.size() && (before <= behind || b == to.size());
        if (is_less) {
          varies = of_operand.contains(static_cast<int>(a)) || varies;
          before *= from[a++];
        } else {
          behind *= to[b++];
        }
      } while (before != behind && (a < from.size() || b < to.size()));
      for (std::size_t k = first; varies && k < b; ++k) result.push_back(static_cast<int>(k));
    }
  }
  return result;
}

/// The pattern, as that of the operand, is moved.
void Walk::move(Equation e, SparsityPattern to) {
  if (const Var m = computed(e.inputs[0]); m < 0) give(e, std::move(to));
  else give(e, std::move(to), like(e, {m}), varied_by_move(e));
  append(std::move(e));
}

void Walk::slice(Equation e) {
  const auto& params = e.as<SliceParams>();
  SparsityPattern p = reach(e.inputs[0]).pattern;
  const Shape &whole = aval(e.inputs[0]).shape, &part = aval(e.outputs[0]).shape;
  const auto is_one = [](std::int64_t step) { return step == 1; };
  if (p && std::all_of(params.stride.begin(), params.stride.end(), is_one)) {
    Bits bits(directions() * part.elements());
    for (std::int64_t d = 0; d < directions(); ++d)
      copy_box(p->data() + d * whole.elements(), whole, params.start,
               bits.data() + d * part.elements(), part, Shape::filled(part.size(), 0), part);
    p = shared(std::move(bits));
  } else if (p) {
    p = moved(p, whole.elements(), source_elements(to_, e));
  }
  move(std::move(e), std::move(p));
}

void Walk::pad(Equation e) {
  const SparsityPattern p = operand(e, 0), edge = operand(e, 1);
  const auto& params = e.as<PadParams>();
  const Shape whole = aval(e.inputs[0]).shape, padded = aval(e.outputs[0]).shape;
  const Bits around = any_of_direction(edge, 1);
  const auto is_zero = [](std::int64_t n) { return n == 0; };
  if (std::all_of(params.interior.begin(), params.interior.end(), is_zero)) {
    Shape first = whole, place = whole, sizes = whole;
    for (std::size_t d = 0; d < whole.size(); ++d) {
      first[d] = std::max<std::int64_t>(-params.low[d], 0);
      place[d] = std::max<std::int64_t>(params.low[d], 0);
      sizes[d] = std::max<std::int64_t>(std::min(whole[d] - first[d], padded[d] - place[d]), 0);
    }
    Bits bits(directions() * padded.elements(), 0);
    for (std::int64_t d = 0; d < directions(); ++d) {
      char* const own = bits.data() + d * padded.elements();
      if (around[d]) std::fill_n(own, padded.elements(), char{1});
      copy_box(p ? p->data() + d * whole.elements() : nullptr, whole, first, own, padded, place,
               sizes);
    }
    return joined(std::move(e), shared(std::move(bits)));
  }
  const Vec<std::int64_t> sources = source_elements(to_, e);
  const std::int64_t from = aval(e.inputs[0]).elements();
  const auto n = static_cast<std::int64_t>(sources.size());
  Bits bits(directions() * n);
  for (std::int64_t d = 0; d < directions(); ++d)
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t s = sources[k];
      bits[d * n + k] = s < 0 ? around[d] : p ? (*p)[d * from + s] : 1;
    }
  joined(std::move(e), shared(std::move(bits)));
}

/// All operands are tangents, and the same op joins their masks.
void Walk::joined(Equation e, SparsityPattern p) {
  if (any_of(e.inputs, [&](Var v) { return reach(v).computed; })) {
    Equation own = e;
    for (Var& v : own.inputs) v = whole_mask(v);
    give(e, std::move(p), like(own, {}), Axes::first(aval(e.outputs[0]).shape.rank()));
  } else {
    give(e, std::move(p));
  }
  append(std::move(e));
}

void Walk::concatenate(Equation e) {
  const int axis = e.as<AxisParams>().axis;
  const Shape shape = aval(e.outputs[0]).shape;
  std::int64_t outer = 1;
  for (int d = 0; d < axis; ++d) outer *= shape[d];
  const std::int64_t n = shape.elements(), row = n / std::max<std::int64_t>(outer, 1);
  Bits bits(directions() * n, 1);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    const SparsityPattern p = operand(e, i);
    const std::int64_t own = aval(e.inputs[i]).elements(),
                       run = own / std::max<std::int64_t>(outer, 1);
    for (std::int64_t d = 0; p && d < directions(); ++d)
      for (std::int64_t o = 0; o < outer; ++o)
        std::copy_n(p->begin() + d * own + o * run, run, bits.begin() + d * n + o * row + first);
    first += run;
  }
  joined(std::move(e), shared(std::move(bits)));
}

// ---- rows and windows ---------------------------------------------------------------------------

bool moves_rows(const Equation& e) { return e.op == Op::rows || e.op == Op::rows_add; }
/// Per row of a result of an op that moves `count` rows there: does it come from somewhere?
Bits rows_from_somewhere(const Equation& e, int result, std::int64_t count) {
  Bits covered(count, e.op == Op::rows);
  std::int64_t row = 0;
  for (const RowRun& run : e.as<RowsParams>().runs) {
    if (e.op == Op::rows && run.operand < 0) std::fill_n(covered.begin() + row, run.count, char{0});
    if (e.op == Op::rows_add && run.operand == result)
      std::fill_n(covered.begin() + run.first, run.count, char{1});
    row += run.count;
  }
  return covered;
}
/// Do all results of such an op come from somewhere?
bool comes_from_somewhere(const Equation& e) {
  const auto all = [](const Bits& bits) {
    return !find_bit(bits.data(), static_cast<std::int64_t>(bits.size()), 0);
  };
  if (e.op == Op::overlap_add) {
    const auto& p = e.as<WindowParams>();
    for (std::size_t k = 0; k < p.axes.size(); ++k) {
      Bits covered(p.extents[k], 0);
      for (std::int64_t window = 0; window < p.count(k); ++window)
        for (std::int64_t place = 0; place < p.sizes[k]; ++place)
          covered[p.strides[k] * window + p.dilations[k] * place] = 1;
      if (!all(covered)) return false;
    }
  } else if (e.op == Op::rows) {
    return all(rows_from_somewhere(e, 0, e.as<RowsParams>().count()));
  } else if (e.op == Op::rows_add) {
    const Shape& extents = e.as<RowsParams>().extents;
    for (std::size_t k = 0; k < extents.size(); ++k)
      if (!all(rows_from_somewhere(e, static_cast<int>(k), extents[k]))) return false;
  }
  return true;
}

/// Moves and sums, without factors: what the op makes of how many reach each element.
void Walk::counted(Equation e) {
  std::vector<SparsityPattern> patterns;
  for (std::size_t i = 0; i < e.inputs.size(); ++i) patterns.push_back(operand(e, i));
  const std::size_t results = e.outputs.size();
  const bool all_reached = none_of(e.inputs, [&](Var v) { return has_holes(v); });
  if (all_reached && comes_from_somewhere(e)) {
    for (std::size_t k = 0; k < results; ++k) give(e, {}, k);
    return append(std::move(e));
  }
  if (all_reached && moves_rows(e)) {
    for (std::size_t k = 0; k < results; ++k) {
      const Aval& out = aval(e.outputs[k]);
      const std::int64_t rows = out.shape[0],
                         width = out.elements() / std::max<std::int64_t>(rows, 1);
      const Bits covered = rows_from_somewhere(e, static_cast<int>(k), rows);
      Bits bits;
      bits.reserve(directions() * out.elements());
      for (std::int64_t d = 0; d < directions(); ++d)
        for (const char row : covered) bits.insert(bits.end(), width, row);
      give(e, shared(std::move(bits)), k);
      // Which rows are read differs from minibatch to minibatch. Those of which nothing comes stay
      // +0, so that nothing is compiled for a mask of them, and sums of rows remain sums.
      reach_[e.outputs[k]].plus = true;
    }
    return append(std::move(e));
  }
  Vec<Var> masks(results, -1);
  if (any_of(e.inputs, [&](Var v) { return reach(v).computed; })) {
    Equation counts = e;
    for (Var& v : counts.inputs) {
      const Var own = whole_mask(v);
      v = writer_.make(Op::convert, make_params(ConvertParams{DType::i32}), {own},
                       Aval(DType::i32, aval(own).shape));
    }
    for (Var& v : counts.outputs) v = to_.fresh(Aval(DType::i32, aval(v).shape));
    append(counts);
    for (std::size_t k = 0; k < results; ++k)
      masks[k] = writer_.make(Op::gt, {}, {counts.outputs[k], writer_.number(DType::i32, 0)},
                              Aval(DType::bool_, aval(counts.outputs[k]).shape));
  }
  GraphBody graph;
  Equation counts = e;
  for (Var& v : counts.inputs) v = graph.fresh(Aval(DType::i32, aval(v).shape));
  for (Var& v : counts.outputs) v = graph.fresh(Aval(DType::i32, aval(v).shape));
  std::vector<Bits> bits(results);
  for (std::int64_t d = 0; d < directions(); ++d) {
    Vec<BufferRef> operands;
    for (std::size_t i = 0; i < e.inputs.size(); ++i) {
      const std::int64_t n = aval(e.inputs[i]).elements();
      operands.push_back(allocate(n * sizeof(std::int32_t)));
      for (std::int64_t k = 0; k < n; ++k)
        operands.back()->as<std::int32_t>()[k] = !patterns[i] || (*patterns[i])[d * n + k];
    }
    const auto made = interpret_equation(counts, graph, operands);
    for (std::size_t k = 0; k < results; ++k)
      for (std::int64_t i = 0; i < aval(e.outputs[k]).elements(); ++i)
        bits[k].push_back(made[k]->as<const std::int32_t>()[i] > 0);
  }
  for (std::size_t k = 0; k < results; ++k)
    give(e, shared(std::move(bits[k])), masks[k], Axes::first(aval(e.outputs[k]).shape.rank()), k);
  if (moves_rows(e)) append(std::move(e));
  else append_masked(std::move(e));
}

// ---- indices ------------------------------------------------------------------------------------

/// What is read where indices say, which are data of the Graph: so the mask is read there, too.
void Walk::read_at(Equation e) {
  const Var t = e.inputs[0];
  const bool fills = e.op == Op::gather && e.as<GatherParams>().mode == IndexMode::fill;
  if (!has_holes(t) && !fills) give(e, {});
  else give(e, spread_any(t, aval(e.outputs[0])), like(e, {whole_mask(t)}), varied_where_read(e));
  append(std::move(e));
}

/// A scatter, which adds to its operand or writes over it where its indices say.
void Walk::write_at(Equation e) {
  const std::size_t update = e.op == Op::dynamic_update_slice ? 1 : 2;
  operand(e, 0);
  operand(e, update);
  const Var into = e.inputs[0], written = e.inputs[update];
  const bool adds = e.op == Op::scatter_add, all_written = !has_holes(written);
  if (!has_holes(into) && (adds || all_written)) {
    give(e, {});
    return append(std::move(e));
  }
  const Var to = whole_mask(into), from = whole_mask(written);
  const Op op = !adds ? e.op : all_written ? Op::scatter : Op::scatter_max;
  give(e, united(reach(into).pattern, spread_any(written, aval(e.outputs[0]))),
       update == 1 ? like(e, {to, from}, op) : like(e, {to, -1, from}, op),
       varied_where_written(e));
  append(std::move(e));
}

/// A window has the axes of the operand that are not dropped for it, in order: which of the
/// operand's is `d` of those?
inline int axis_of_window(const Axes& dropped, const Axes& batching, int d) {
  int axis = 0;
  for (;; ++axis) {
    if (dropped.contains(axis) || batching.contains(axis)) continue;
    if (d-- == 0) return axis;
  }
}

/// What an index outside makes zero is a whole window.
Axes Walk::varied_where_read(const Equation& e) {
  const Axes of_operand = varied(e.inputs[0]);
  if (e.op == Op::dynamic_slice) return of_operand;
  const auto& p = e.as<GatherParams>();
  Axes result;
  int of_window = 0;
  for (int d = 0; d < aval(e.outputs[0]).shape.rank(); ++d)
    if (!p.offset_dims.contains(d) ||
        of_operand.contains(
            axis_of_window(p.collapsed_slice_dims, p.operand_batching_dims, of_window++)))
      result.push_back(d);
  return result;
}

/// Along axes that the windows fill all elements are written alike.
Axes Walk::varied_where_written(const Equation& e) {
  const Shape& whole = aval(e.outputs[0]).shape;
  Axes result = varied(e.inputs[0]);
  if (e.op == Op::dynamic_update_slice) {
    const Shape& part = aval(e.inputs[1]).shape;
    result = sparsity::united(result, varied(e.inputs[1]));
    for (int d = 0; d < whole.rank(); ++d)
      if (part[d] < whole[d]) result = sparsity::united(result, Axes(d));
    return result;
  }
  const auto& p = e.as<ScatterParams>();
  const Shape& updates = aval(e.inputs[2]).shape;
  const Axes of_updates = varied(e.inputs[2]);
  Axes filled;
  for (std::size_t k = 0; k < p.update_window_dims.size(); ++k) {
    const int from = p.update_window_dims[k],
              to = axis_of_window(p.inserted_window_dims, p.operand_batching_dims,
                                  static_cast<int>(k));
    if (updates[from] == whole[to] && !of_updates.contains(from)) filled.push_back(to);
  }
  for (int d = 0; d < whole.rank(); ++d)
    if (!filled.contains(d)) result = sparsity::united(result, Axes(d));
  return result;
}

}  // namespace vt::detail::sparsity
