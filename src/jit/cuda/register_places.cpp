// Parts of arrays at places that are known at run time, in loops in registers: slices, gathers and scatters.
#include <vt/detail/message.hpp>

#include "register_writer.hpp"

namespace vt::detail::cuda::register_text {

std::string Writer::clamped(const std::string& start, DType d, std::int64_t most) {
  const std::string at = fresh_name();
  const std::string wide = d == DType::u64 ? worded("(i64)({0} > {1}ull ? {1}ull : {0})", start, most) : "(i64)" + start;
  line(worded("const i64 {0} = vt_max<i64>(vt_min<i64>({1}, {2}ll), 0ll);", at, wide, most));
  return at;
}

std::int64_t Writer::stride_of(const Shape& shape, std::size_t axis) {
  std::int64_t n = 1;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) n *= shape[d];
  return n;
}

std::string Writer::start_of(const Shape& shape, const Shape& sizes, std::span<const Val> starts) {
  std::string sum = "(i64)0";
  for (std::size_t d = 0; d < shape.size(); ++d)
    sum += worded(" + {} * {}ll", clamped(element(starts[d], 0), starts[d].dtype, shape[d] - sizes[d]), stride_of(shape, d));
  const std::string at = fresh_name();
  line("const i64 " + at + " = " + sum + ";");
  return at;
}

std::int64_t Writer::within(const Shape& shape, const Shape& sizes, std::int64_t k) {
  const Vec<std::int64_t> index = index_of_element(sizes, k);
  std::int64_t at = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) at += index[d] * stride_of(shape, d);
  return at;
}

Val Writer::dynamic_slice(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const Shape &shape = g.aval(e.inputs[0]).shape, &sizes = e.as<ShapeParams>().shape;
  Val v = fresh(g.aval(e.outputs[0]));
  const std::string start = start_of(shape, sizes, std::span<const Val>(in).subspan(1));
  for (std::int64_t k = 0; k < v.count; ++k) line(element(v, k) + " = " + read(in[0], worded("{} + {}", start, within(shape, sizes, k))) + ";");
  return v;
}

Val Writer::own(const Val& x) {
  if (x.buffer >= 0) return x;
  Val v = fresh(x.dtype, x.count);
  copy(v, x);
  return v;
}

Val Writer::dynamic_update_slice(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const Shape &shape = g.aval(e.inputs[0]).shape, &sizes = g.aval(e.inputs[1]).shape;
  const std::string start = start_of(shape, sizes, std::span<const Val>(in).subspan(2));
  const Val v = own(in[0]);
  for (std::int64_t k = 0; k < in[1].count; ++k) write(v, worded("{} + {}", start, within(shape, sizes, k)), element(in[1], k));
  return v;
}

Writer::Target Writer::target(const Shape& shape, const Shape& sizes, const Vec<std::int64_t>& fixed, const Axes& map, IndexMode mode,
                              const Val& indices, std::int64_t first) {
  Target t{"(i64)0", ""};
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (fixed[d]) t.place += worded(" + {}ll", fixed[d] * stride_of(shape, d));
  for (std::size_t k = 0; k < map.size(); ++k) {
    const auto d = static_cast<std::size_t>(map[k]);
    const std::string start = element(indices, first + static_cast<std::int64_t>(k));
    const std::string at = clamped(start, indices.dtype, shape[d] - sizes[d]);
    t.place += worded(" + {} * {}ll", at, stride_of(shape, d));
    if (mode != IndexMode::fill) continue;
    // Unchanged by clamping: inside.
    t.inside += (t.inside.empty() ? "" : " && ") + worded("(({}){} == {})", register_type(indices.dtype), at, start);
  }
  return t;
}

Val Writer::gathered(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const auto& p = e.as<GatherParams>();
  const Shape &shape = g.aval(e.inputs[0]).shape, &indices = g.aval(e.inputs[1]).shape, &out = g.aval(e.outputs[0]).shape;
  Val v = fresh(g.aval(e.outputs[0]));
  for (std::int64_t n = 0; n < out.elements(); ++n) {
    const Vec<std::int64_t> index = index_of_element(out, n);
    Vec<std::int64_t> leading, in_window, fixed(shape.size(), 0);
    for (std::size_t d = 0; d < out.size(); ++d) (p.offset_dims.contains(static_cast<int>(d)) ? in_window : leading).push_back(index[d]);
    std::int64_t row = 0;
    for (std::size_t d = 0; d < leading.size(); ++d) row = row * indices[d] + leading[d];
    std::size_t next = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const int axis = static_cast<int>(d);
      if (!p.collapsed_slice_dims.contains(axis) && !p.operand_batching_dims.contains(axis)) fixed[d] = in_window[next++];
    }
    for (std::size_t k = 0; k < p.operand_batching_dims.size(); ++k)
      fixed[static_cast<std::size_t>(p.operand_batching_dims[k])] = leading[static_cast<std::size_t>(p.indices_batching_dims[k])];
    const Target t = target(shape, p.slice_sizes, fixed, p.start_index_map, p.mode, in[1], row * indices.back());
    const std::string x = read(in[0], t.place);
    line(element(v, n) + " = " + (t.inside.empty() ? x : worded("({}) ? {} : ({})0", t.inside, x, register_type(v.dtype))) + ";");
  }
  return v;
}

Val Writer::scattered(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const auto& p = e.as<ScatterParams>();
  const Shape &shape = g.aval(e.inputs[0]).shape, &indices = g.aval(e.inputs[1]).shape, &updates = g.aval(e.inputs[2]).shape;
  const Op combination = e.op == Op::scatter_add ? Op::add : e.op == Op::scatter_mul ? Op::mul : e.op == Op::scatter_min ? Op::min : Op::max;
  const Val v = own(in[0]);
  for (std::int64_t n = 0; n < updates.elements(); ++n) {
    const Vec<std::int64_t> index = index_of_element(updates, n);
    Vec<std::int64_t> leading, fixed(shape.size(), 0);
    for (std::size_t d = 0; d < updates.size(); ++d)
      if (!p.update_window_dims.contains(static_cast<int>(d))) leading.push_back(index[d]);
    std::int64_t row = 0;
    for (std::size_t d = 0; d < leading.size(); ++d) row = row * indices[d] + leading[d];
    Shape sizes = Shape::filled(shape.size(), 1);
    std::size_t next = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const int axis = static_cast<int>(d);
      if (p.inserted_window_dims.contains(axis) || p.operand_batching_dims.contains(axis)) continue;
      const auto from = static_cast<std::size_t>(p.update_window_dims[next++]);
      fixed[d] = index[from];
      sizes[d] = updates[from];
    }
    for (std::size_t k = 0; k < p.operand_batching_dims.size(); ++k)
      fixed[static_cast<std::size_t>(p.operand_batching_dims[k])] = leading[static_cast<std::size_t>(p.indices_batching_dims[k])];
    const Target t = target(shape, sizes, fixed, p.scatter_dims_to_operand_dims, p.mode, in[1], row * indices.back());
    const std::string update = element(in[2], n);
    open(t.inside.empty() ? "" : "if (" + t.inside + ")");
    line("const i64 at = " + t.place + ";");
    write(v, "at", e.op == Op::scatter ? update : apply(combination, v.dtype, {}, {{read(v, "at"), v.dtype}, {update, v.dtype}}));
    close();
  }
  return v;
}

}  // namespace vt::detail::cuda::register_text
