// Which elements of small values are numbers when code is made.
#include "known_elements.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../trace/base/convert.hpp"
#include "../../trace/ir/element_maps.hpp"

namespace vt::detail {

namespace known_elements {

constexpr float unknown = std::numeric_limits<float>::quiet_NaN();

bool is_known(float x) { return x == x; }
/// Numbers that all dtypes and float hold, so that arithmetic on them is exact.
float number(double x) { return x == std::trunc(x) && std::abs(x) <= 1 << 20 ? float(x) : unknown; }

float binary(Op op, float x, float y) {
  switch (op) {
    case Op::add: return number(double{x} + y);
    case Op::sub: return number(double{x} - y);
    case Op::mul: return number(double{x} * y);
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

bool skips_zeros(const GraphBody& g) {
  return any_of(g.equations, [](const Equation& e) {
    return e.skips_zeros ||
           any_of(bodies_of(e.params), [](const GraphRef& body) { return skips_zeros(*body); });
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

BufferRef KnownElements::where_not_zero(Var v) const {
  const Aval& a = graph_.aval(v);
  const Elements& all = of(v);
  if (!is_float(a.dtype) || std::find(all.begin(), all.end(), 0.0f) == all.end()) return {};
  BufferRef mask = allocate(a.bytes());
  for (std::size_t k = 0; k < static_cast<std::size_t>(a.elements()); ++k)
    store_scalar(Scalar(element(v, k) == 0 ? 0.0 : 1.0).converted(a.dtype),
                 mask->as<char>() + k * size_of(a.dtype));
  return mask;
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
    elements_[static_cast<std::size_t>(e.outputs[0])] = std::move(known);
  return left;
}

void KnownElements::leaf(const Equation& e, Elements& known) const {
  const Aval& out = graph_.aval(e.outputs[0]);
  const std::int64_t n = out.elements();
  if (e.op == Op::full) {
    const float x = known_elements::number(
        e.as<FullParams>().value.converted(out.dtype).converted(DType::f64).real);
    known.assign(static_cast<std::size_t>(n), x);
  } else if (e.op == Op::iota) {
    const AxisRuns runs(out.shape, e.as<IotaParams>().axis);
    known.resize(static_cast<std::size_t>(n));
    for (std::int64_t r = 0; r < runs.count; ++r)
      for (std::int64_t k = 0; k < runs.length; ++k)
        known[static_cast<std::size_t>(runs.at(r, k))] = static_cast<float>(k);
  } else if (e.op == Op::constant) {
    const Buffer& numbers = *e.as<ConstantParams>().buffer;
    for (std::int64_t k = 0; k < n; ++k)
      known.push_back(known_elements::number(
          load_scalar(out.dtype,
                      numbers.as<const char>() + static_cast<std::size_t>(k) * size_of(out.dtype))
              .converted(DType::f64)
              .real));
  }
}

std::int64_t KnownElements::elementwise(const Equation& e, Elements& known) const {
  using namespace known_elements;
  const std::int64_t n = graph_.aval(e.outputs[0]).elements();
  if (std::all_of(e.inputs.begin(), e.inputs.end(), [&](Var v) { return of(v).empty(); })) return n;
  std::int64_t left = 0;
  const bool skips = e.skips_zeros;
  for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k) {
    const float x = element(e.inputs[0], k);
    float y = unknown;
    bool is_free = false;  // no operation, though the element is not known
    if (family_of(e.op) == Family::select) {
      const float yes = element(e.inputs[1], k), no = element(e.inputs[2], k);
      is_free = is_known(x);
      y = is_known(x) ? (x != 0 ? yes : no) : yes == no ? yes : unknown;
    } else if (family_of(e.op) == Family::unary) {
      if (e.op == Op::convert) y = x;
      if (e.op == Op::neg && (x != 0 || skips)) y = 0 - x;
    } else {
      const float z = element(e.inputs[1], k);
      if (is_known(x) && is_known(z)) y = binary(e.op, x, z);
      if (e.op == Op::mul) {
        if (skips && (x == 0 || z == 0)) y = 0;
        is_free = x == 1 || z == 1;
      }
      if (e.op == Op::div) {
        if (skips && x == 0) y = 0;
        is_free = z == 1;
      }
      if (skips && (e.op == Op::add || e.op == Op::sub)) is_free = x == 0 || z == 0;
    }
    left += !is_known(y) && !is_free;
    known.push_back(y);
  }
  return left;
}

void KnownElements::moved(const Equation& e, Elements& known) const {
  if (std::all_of(e.inputs.begin(), e.inputs.end(), [&](Var v) { return of(v).empty(); })) return;
  if (e.op == Op::concatenate) {
    const auto axis = static_cast<std::size_t>(e.as<AxisParams>().axis);
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
  if (of(from).empty() || !e.skips_zeros) return n;
  known.assign(static_cast<std::size_t>(graph_.aval(e.outputs[0]).elements()), 0);
  std::int64_t left = 0;
  std::size_t k = 0;
  for (const std::int64_t place :
       reduced_elements(graph_.aval(from).shape, e.as<AxesParams>().axes))
    if (element(from, k++) != 0) {
      ++left;
      known[static_cast<std::size_t>(place)] = known_elements::unknown;
    }
  return left;
}

std::int64_t KnownElements::products(const Equation& e, Elements& known) const {
  const std::int64_t n = graph_.aval(e.outputs[0]).elements();
  const SmallProduct product(graph_, e);
  const bool none_known = of(e.inputs[0]).empty() && of(e.inputs[1]).empty();
  if (none_known || !e.skips_zeros || !follows(e.outputs[0]) || !follows(e.inputs[0]) ||
      !follows(e.inputs[1]))
    return n * product.terms();
  std::int64_t left = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t terms = 0;
    for (std::int64_t t = 0; t < product.terms(); ++t) {
      const SmallProduct::Factors f = product.at(i, t);
      terms += element(e.inputs[0], static_cast<std::size_t>(f.lhs)) != 0 &&
               element(e.inputs[1], static_cast<std::size_t>(f.rhs)) != 0;
    }
    known.push_back(terms == 0 ? 0 : known_elements::unknown);
    left += terms;
  }
  return left;
}

}  // namespace vt::detail
