// The numbers of a register kernel's small arrays as CUDA text.
#include <algorithm>
#include <cmath>

#include <vt/detail/message.hpp>

#include "../../regions/known_elements.hpp"
#include "register_writer.hpp"

namespace vt::detail::cuda::register_text {

Operand RegisterWriter::constant(const Scalar& x) {
  return {"(" + literal(x) + ")", x.dtype, true, known_elements::number(x.to_double(), x.dtype)};
}

bool RegisterWriter::is_number(const Operand& x, double number) {
  return is_float(x.dtype) && x.known == number && std::signbit(x.known) == std::signbit(number);
}

Operand RegisterWriter::apply(Op op, DType dtype, const ParamsRef& params, const Operands& operands,
                              std::int64_t) const {
  const auto is_known = [](const Operand& x) { return is_float(x.dtype) && is_constant(x); };
  if (is_float(dtype) && std::all_of(operands.begin(), operands.end(), is_known)) {
    const float known = known_elements::result(op, dtype, operands[0].known, operands.back().known);
    if (known == known) return constant(Scalar(known).converted(dtype));
  }
  return {cuda::element(op, dtype, params, {operands.data(), operands.size()}), dtype};
}

Operand RegisterWriter::multiply_add(const Operand& x, const Operand& y, const Operand& sum) const {
  if (!sum) return apply(Op::mul, x.dtype, {}, {x, y});
  const char* text = sum.dtype == DType::f32   ? "fmaf({}, {}, {})"
                     : sum.dtype == DType::f64 ? "fma({}, {}, {})"
                                               : "vt_add(vt_mul({}, {}), {})";
  return {formatted(text, x.text, y.text, sum.text), sum.dtype};
}

Operand RegisterWriter::chosen(const Operand& mask, const Operand& x, const Operand& y) const {
  if (is_constant(mask)) return mask.known != 0 ? x : y;
  return apply(Op::select, x.dtype, {}, {mask, x, y});
}

Operand RegisterWriter::further(const Operand& place, std::int64_t by) {
  return by == 0 ? place : Operand{formatted("({} + {}ll)", place.text, by), DType::i64};
}

Operand RegisterWriter::further(const Operand& place, const Operand& index, std::int64_t stride) {
  if (index.known == 0) return place;
  const std::string by = stride == 1 ? index.text : formatted("{} * {}ll", index.text, stride);
  return {place.known == 0 ? by : formatted("({} + {})", place.text, by), DType::i64};
}

Val RegisterWriter::readable(const Val& x) {
  return x.is_array() || x.memory() >= 0 ? x : in_array(x.elements());
}

Val RegisterWriter::updatable(const Val& x) {
  if (!x.is_array()) return in_array(x.elements());
  if (static_cast<std::size_t>(object(x).buffer) < equation_.inputs.size())
    fail(ErrorKind::backend, "vt: internal: a register kernel updates what it only reads", {});
  return x;
}

void RegisterWriter::put(const Val& to, const Operand& place, std::int64_t by,
                         const Operand& inside, Op op, const Operand& x) {
  const Object& o = object(to);
  const std::string at = further(place, by).text;
  const std::string y =
      op == Op::scatter ? x.text : apply(op, o.dtype, {}, {Operand{read(o, at), o.dtype}, x}).text;
  if (inside) open("if (" + inside.text + ")");
  line(o.buffer < 0 ? formatted("{} = {};", read(o, at), y)
                    : formatted("VT_STORE(b{}, {}, {});", o.buffer, this->place(o, at),
                                to_memory(o.dtype, y)));
  if (inside) close();
}

}  // namespace vt::detail::cuda::register_text
