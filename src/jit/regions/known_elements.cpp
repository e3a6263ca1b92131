// Which elements of small values are numbers when code is made.
#include "known_elements.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../trace/base/convert.hpp"
#include "../../trace/elements/element_maps.hpp"

namespace vt::detail {

namespace known_elements {

constexpr float unknown = std::numeric_limits<float>::quiet_NaN();

bool is_known(float x) { return x == x; }
/// Small whole numbers that the dtype holds, so that arithmetic on them is exact.
float number(double x, DType d) {
  const bool small = x == std::trunc(x) && std::abs(x) <= 1 << 20;
  return small && Scalar(x).converted(d).to_double() == x ? static_cast<float>(x) : unknown;
}

float binary(Op op, DType d, float x, float y) {
  switch (op) {
    case Op::add: return number(double{x} + y, d);
    case Op::sub: return number(double{x} - y, d);
    case Op::mul: return number(double{x} * y, d);
    case Op::div: return is_float(d) && y != 0 ? number(double{x} / y, d) : unknown;
    case Op::eq: return x == y;
    case Op::ne: return x != y;
    case Op::lt: return x < y;
    case Op::le: return x <= y;
    case Op::gt: return x > y;
    case Op::ge: return x >= y;
    default: return unknown;
  }
}

}  // namespace known_elements

bool keeps_zeros(const GraphBody& g) {
  return has_equation(g, [](const Equation& e) {
    if (e.assume_finite || e.op != Op::full) return e.assume_finite;
    const Scalar& x = e.as<FullParams>().value;
    return is_inexact(x.dtype) && x.is_value(0) && std::signbit(x.real);
  });
}

float KnownElements::element(Var v, std::size_t k) const {
  const Elements& all = of(v);
  return all.empty() ? known_elements::unknown : all[all.size() == 1 ? 0 : k];
}

bool KnownElements::knows_places(const Equation& e) const {
  const auto all_known = [&](Var v) {
    return !of(v).empty() && std::all_of(of(v).begin(), of(v).end(), known_elements::is_known);
  };
  if (e.op == Op::gather || is_scatter(e.op)) return all_known(e.inputs[1]);
  const std::size_t first = e.op == Op::dynamic_slice ? 1 : 2;
  return (e.op == Op::dynamic_slice || e.op == Op::dynamic_update_slice) &&
         std::all_of(e.inputs.begin() + first, e.inputs.end(), all_known);
}

std::optional<KnownElements::Zeros> KnownElements::zeros(Var v) const {
  const Aval& a = graph_.aval(v);
  const Elements& all = of(v);
  if (!is_float(a.dtype) || std::find(all.begin(), all.end(), 0.0f) == all.end())
    return std::nullopt;
  const std::size_t n = a.elements();
  Zeros zeros{allocate(n), allocate(a.bytes())};
  for (std::size_t k = 0; k < n; ++k) {
    const float x = element(v, k);
    zeros.elsewhere->as<char>()[k] = x != 0;
    store_scalar(Scalar(x == 0 ? double{x} : 0.0).converted(a.dtype),
                 zeros.numbers->as<char>() + k * size_of(a.dtype));
  }
  return zeros;
}

std::int64_t KnownElements::add(const Equation& e) {
  if (e.outputs.size() != 1) return 0;
  const Aval& out = graph_.aval(e.outputs[0]);
  const bool small =
      follows(e.outputs[0]) && !is_complex(out.dtype) &&
      std::all_of(e.inputs.begin(), e.inputs.end(), [&](Var v) { return follows(v); });
  Elements known;
  std::int64_t left = 0;
  switch (family_of(e.op)) {
    case Family::leaf:
      if (small) leaf(e, known);
      break;
    case Family::unary:
    case Family::binary:
    case Family::select: left = small ? elementwise(e, known) : out.elements(); break;
    case Family::shape:
      if (small) moved(e, known);
      break;
    case Family::index:
      left = out.elements();
      if (e.op != Op::slice) break;
      left = 0;
      if (small) moved(e, known);
      break;
    case Family::reduce:
      left = small && e.op == Op::reduce_sum ? sums(e, known) : graph_.aval(e.inputs[0]).elements();
      break;
    case Family::contract:
      if (e.op == Op::dot_general) left = products(e, known);
      break;
    default: left = out.elements(); break;
  }
  if (std::any_of(known.begin(), known.end(), known_elements::is_known))
    elements_[e.outputs[0]] = std::move(known);
  return left;
}

void KnownElements::leaf(const Equation& e, Elements& known) const {
  const Aval& out = graph_.aval(e.outputs[0]);
  const std::int64_t n = out.elements();
  if (e.op == Op::full) {
    const float x = known_elements::number(
        e.as<FullParams>().value.converted(out.dtype).to_double(), out.dtype);
    known.assign(n, x);
  } else if (e.op == Op::iota) {
    const AxisRuns runs(out.shape, e.as<IotaParams>().axis);
    known.resize(n);
    for (std::int64_t r = 0; r < runs.count; ++r)
      for (std::int64_t k = 0; k < runs.length; ++k)
        known[runs.at(r, k)] = known_elements::number(static_cast<double>(k), out.dtype);
  } else if (e.op == Op::constant) {
    const Buffer& numbers = *e.as<ConstantParams>().buffer;
    for (std::int64_t k = 0; k < n; ++k)
      known.push_back(known_elements::number(
          load_scalar(out.dtype,
                      numbers.as<const char>() + static_cast<std::size_t>(k) * size_of(out.dtype))
              .to_double(),
          out.dtype));
  }
}

std::int64_t KnownElements::elementwise(const Equation& e, Elements& known) const {
  using namespace known_elements;
  const Aval& out = graph_.aval(e.outputs[0]);
  const std::int64_t n = out.elements();
  if (std::all_of(e.inputs.begin(), e.inputs.end(), [&](Var v) { return of(v).empty(); })) return n;
  std::int64_t left = 0;
  const bool zeros_go = e.assume_finite && is_float(out.dtype);
  // Zeros of one sign change nothing in a sum or difference.
  const auto is = [&](float x, float zero) {
    return x == 0 && is_float(out.dtype) && (zeros_go || std::signbit(x) == std::signbit(zero));
  };
  for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k) {
    const float x = element(e.inputs[0], k);
    float y = unknown;
    bool is_free = false;  // no operation, though the element is not known
    if (family_of(e.op) == Family::select) {
      const float yes = element(e.inputs[1], k), no = element(e.inputs[2], k);
      is_free = is_known(x);
      y = is_known(x) ? (x != 0 ? yes : no) : yes == no ? yes : unknown;
    } else if (family_of(e.op) == Family::unary) {
      if (e.op == Op::convert && is_known(x)) y = number(x, out.dtype);
      if (e.op == Op::neg && is_known(x) && is_float(out.dtype)) y = -x;
    } else {
      const float z = element(e.inputs[1], k);
      if (is_known(x) && is_known(z)) y = binary(e.op, out.dtype, x, z);
      switch (e.op) {
        case Op::mul:
          if (zeros_go && (x == 0 || z == 0)) y = 0;
          is_free = x == 1 || z == 1;
          break;
        case Op::div:
          if (zeros_go && x == 0) y = 0;
          is_free = z == 1;
          break;
        case Op::add: is_free = is(x, -0.0f) || is(z, -0.0f); break;
        case Op::sub: is_free = is(x, -0.0f) || is(z, 0.0f); break;
        default: break;
      }
    }
    left += !is_known(y) && !is_free;
    known.push_back(y);
  }
  return left;
}

void KnownElements::moved(const Equation& e, Elements& known) const {
  if (std::all_of(e.inputs.begin(), e.inputs.end(), [&](Var v) { return of(v).empty(); })) return;
  if (e.op == Op::concatenate) {
    const std::size_t axis = e.as<AxisParams>().axis;
    const Shape& shape = graph_.aval(e.outputs[0]).shape;
    std::int64_t outer = 1;
    for (std::size_t d = 0; d < axis; ++d) outer *= shape[d];
    for (std::int64_t o = 0; o < outer; ++o)
      for (Var v : e.inputs) {
        const std::int64_t run = graph_.aval(v).elements() / outer;
        for (std::int64_t i = 0; i < run; ++i)
          known.push_back(element(v, static_cast<std::size_t>(o * run + i)));
      }
    return;
  }
  for (const std::int64_t source : source_elements(graph_, e))
    known.push_back(source < 0 ? element(e.inputs[1], 0)
                               : element(e.inputs[0], static_cast<std::size_t>(source)));
}

std::int64_t KnownElements::sums(const Equation& e, Elements& known) const {
  const Var from = e.inputs[0];
  const std::int64_t n = graph_.aval(from).elements();
  if (of(from).empty()) return n;
  // A sum starts at +0, which no zero changes.
  known.assign(graph_.aval(e.outputs[0]).elements(), 0);
  std::int64_t left = 0;
  std::size_t k = 0;
  for (const std::int64_t place :
       reduced_elements(graph_.aval(from).shape, e.as<AxesParams>().axes))
    if (element(from, k++) != 0) {
      ++left;
      known[place] = known_elements::unknown;
    }
  return left;
}

std::int64_t KnownElements::products(const Equation& e, Elements& known) const {
  const std::int64_t n = graph_.aval(e.outputs[0]).elements();
  const SmallProduct product(graph_, e);
  const bool none_known = of(e.inputs[0]).empty() && of(e.inputs[1]).empty();
  if (none_known || !follows(e.outputs[0]) || !follows(e.inputs[0]) || !follows(e.inputs[1]))
    return n * product.terms();
  std::int64_t left = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t terms = 0;
    for (std::int64_t t = 0; t < product.terms(); ++t) {
      const SmallProduct::Factors f = product.at(i, t);
      const float x = element(e.inputs[0], static_cast<std::size_t>(f.lhs)),
                  y = element(e.inputs[1], static_cast<std::size_t>(f.rhs));
      terms += e.assume_finite ? x != 0 && y != 0 : !(x * y == 0);  // not known: NaN
    }
    known.push_back(terms == 0 ? 0 : known_elements::unknown);
    left += terms;
  }
  return left;
}

}  // namespace vt::detail
