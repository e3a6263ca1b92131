// Register kernels: slices, gathers and scatters at indices that are known only at run time.
#include <vt/detail/message.hpp>

#include "register_writer.hpp"

namespace vt::detail::cuda::register_text {

std::string RegisterWriter::clamped(const std::string& start, DType d, std::int64_t most) {
  const std::string at = fresh_name();
  const std::string wide = d == DType::u64
                               ? formatted("(i64)({0} > {1}ull ? {1}ull : {0})", start, most)
                               : "(i64)" + start;
  line(formatted("const i64 {0} = vt_max<i64>(vt_min<i64>({1}, {2}ll), 0ll);", at, wide, most));
  return at;
}

std::int64_t RegisterWriter::stride_of(const Shape& shape, std::size_t axis) {
  std::int64_t n = 1;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) n *= shape[d];
  return n;
}

std::string RegisterWriter::start_of(const Shape& shape, const Shape& sizes,
                                     std::span<const Val> starts) {
  std::string sum = "(i64)0";
  for (std::size_t d = 0; d < shape.size(); ++d)
    sum += formatted(" + {} * {}ll",
                     clamped(element(starts[d], 0), starts[d].dtype, shape[d] - sizes[d]),
                     stride_of(shape, d));
  const std::string at = fresh_name();
  line("const i64 " + at + " = " + sum + ";");
  return at;
}

std::int64_t RegisterWriter::within(const Shape& shape, const Shape& sizes, std::int64_t k) {
  const Vec<std::int64_t> index = index_of_element(sizes, k);
  std::int64_t at = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) at += index[d] * stride_of(shape, d);
  return at;
}

Val RegisterWriter::dynamic_slice(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const Shape &shape = g.aval(e.inputs[0]).shape, &sizes = e.as<ShapeParams>().shape;
  Val v = empty(g.aval(e.outputs[0]));
  const std::string start = start_of(shape, sizes, std::span<const Val>(in).subspan(1));
  const Val from = at_places(in[0]);
  for (std::int64_t k = 0; k < v.count; ++k)
    v.elements.push_back(
        named(v.dtype, read(from, formatted("{} + {}", start, within(shape, sizes, k)))));
  return v;
}

Val RegisterWriter::at_places(const Val& x) { return x.buffer >= 0 ? x : in_array(x); }

Val RegisterWriter::updated(const Val& x) {
  if (x.buffer >= 0 && static_cast<std::size_t>(x.buffer) < equation_.inputs.size())
    fail(ErrorKind::backend, "vt: internal: a register kernel updates what it only reads", {});
  return at_places(x);
}

Val RegisterWriter::dynamic_update_slice(const GraphBody& g, const Equation& e,
                                         const Vec<Val>& in) {
  const Shape &shape = g.aval(e.inputs[0]).shape, &sizes = g.aval(e.inputs[1]).shape;
  const std::string start = start_of(shape, sizes, std::span<const Val>(in).subspan(2));
  const Val v = updated(in[0]);
  for (std::int64_t k = 0; k < in[1].count; ++k)
    write(v, formatted("{} + {}", start, within(shape, sizes, k)), element(in[1], k));
  return v;
}

RegisterWriter::Target RegisterWriter::target(const Shape& shape, const IndexedElement& at,
                                              IndexMode mode, const Val& indices) {
  Target t{"(i64)0", ""};
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (at.fixed[d] > 0) t.place += formatted(" + {}ll", at.fixed[d] * stride_of(shape, d));
  for (std::size_t k = 0; k < at.moved.size(); ++k) {
    const std::string start = element(indices, at.first + static_cast<std::int64_t>(k));
    const std::string moved = clamped(start, indices.dtype, at.at_most[k]);
    t.place +=
        formatted(" + {} * {}ll", moved, stride_of(shape, static_cast<std::size_t>(at.moved[k])));
    if (mode != IndexMode::fill) continue;
    // Unchanged by clamping: inside.
    t.inside += (t.inside.empty() ? "" : " && ") +
                formatted("(({}){} == {})", register_type(indices.dtype), moved, start);
  }
  return t;
}

Val RegisterWriter::gathered(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  Val v = empty(g.aval(e.outputs[0]));
  const Val from = at_places(in[0]);
  for (std::int64_t n = 0; n < v.count; ++n) {
    const Target t = target(g.aval(e.inputs[0]).shape, gathered_element(g, e, n),
                            e.as<GatherParams>().mode, in[1]);
    const std::string x = read(from, t.place);
    v.elements.push_back(named(v.dtype, t.inside.empty() ? x
                                                         : formatted("({}) ? {} : ({})0", t.inside,
                                                                     x, register_type(v.dtype))));
  }
  return v;
}

Val RegisterWriter::scattered(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const Op combination = combination_of(e.op);
  const Val v = updated(in[0]);
  for (std::int64_t n = 0; n < in[2].count; ++n) {
    const Target t = target(g.aval(e.inputs[0]).shape, scattered_element(g, e, n),
                            e.as<ScatterParams>().mode, in[1]);
    const std::string update = element(in[2], n);
    open(t.inside.empty() ? "" : "if (" + t.inside + ")");
    line("const i64 at = " + t.place + ";");
    write(v, "at",
          e.op == Op::scatter
              ? update
              : apply(combination, v.dtype, {}, {{read(v, "at"), v.dtype}, {update, v.dtype}}));
    close();
  }
  return v;
}

}  // namespace vt::detail::cuda::register_text
