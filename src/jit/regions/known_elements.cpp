// Which elements of small values are numbers when code is made.
#include "known_elements.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../trace/base/convert.hpp"
#include "../../trace/ir/sub_graph.hpp"

namespace vt::detail {

namespace known_elements {

constexpr float unknown = std::numeric_limits<float>::quiet_NaN();

float number(double x, DType d) {
  const bool small = x == std::trunc(x) && std::abs(x) <= 1 << 20;
  return small && Scalar(x).converted(d).to_double() == x ? static_cast<float>(x) : unknown;
}

float result(Op op, DType d, float x, float y) {
  switch (op) {
    case Op::convert: return number(x, d);
    case Op::neg: return is_float(d) ? -x : unknown;
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

bool KnownElements::knows_places(const Equation& e) const {
  const auto all_known = [&](Var v) {
    return !of(v).empty() && all_of(of(v), [](KnownNumber x) { return x.is_known(); });
  };
  if (e.op == Op::gather || is_scatter(e.op)) return all_known(e.inputs[1]);
  const std::size_t first = e.op == Op::dynamic_slice ? 1 : 2;
  return (e.op == Op::dynamic_slice || e.op == Op::dynamic_update_slice) &&
         std::all_of(e.inputs.begin() + first, e.inputs.end(), all_known);
}

std::optional<KnownElements::Zeros> KnownElements::zeros(Var v) const {
  const Aval& a = graph_.aval(v);
  const Elements& all = of(v);
  if (!is_float(a.dtype) || none_of(all, [](KnownNumber x) { return x.value == 0; }))
    return std::nullopt;
  Zeros zeros{allocate(all.size()), allocate(a.bytes())};
  for (std::size_t k = 0; k < all.size(); ++k) {
    const float x = all[k].value;
    zeros.elsewhere->as<char>()[k] = x != 0;
    store_scalar(Scalar(x == 0 ? double{x} : 0.0).converted(a.dtype),
                 zeros.numbers->as<char>() + k * size_of(a.dtype));
  }
  return zeros;
}

KnownNumber KnownElements::apply(Op op, DType d, const ParamsRef&, const Operands& x,
                                 std::int64_t uses) {
  using namespace known_elements;
  if (op == Op::select && x[0].is_known()) return x[x[0].value != 0 ? 1 : 2];
  KnownNumber y{.dtype = d, .there = true};
  if (op == Op::select) y.value = x[1].value == x[2].value ? x[1].value : unknown;
  else if (x[0].is_known() && x.back().is_known())
    y.value = result(op, d, x[0].value, x.back().value);
  left_ += uses > 0 && !y.is_known();
  return y;
}

/// What is left if nothing is known.
std::int64_t KnownElements::dense(const Equation& e) const {
  const std::int64_t n = graph_.aval(e.outputs[0]).elements();
  switch (family_of(e.op)) {
    case Family::leaf:
    case Family::shape: return 0;
    case Family::reduce: return graph_.aval(e.inputs[0]).elements();
    case Family::contract: return e.op == Op::dot_general ? n * SmallProduct(graph_, e).terms() : 0;
    default: return e.op == Op::slice ? 0 : n;
  }
}

std::int64_t KnownElements::add(const Equation& e) {
  if (e.outputs.size() != 1) return 0;
  const Var to = e.outputs[0];
  const bool is_leaf = e.op == Op::full || e.op == Op::iota || e.op == Op::constant;
  if (is_complex(graph_.aval(to).dtype) || !follows(to) ||
      !all_of(e.inputs, [&](Var v) { return follows(v); }) ||
      (!is_leaf && all_of(e.inputs, [&](Var v) { return of(v).empty(); })))
    return dense(e);
  Vec<Val> in;
  for (Var v : e.inputs)
    in.push_back(!of(v).empty() ? of(v)
                                : Elements(graph_.aval(v).elements(),
                                           {.dtype = graph_.aval(v).dtype, .there = true}));
  left_ = 0;
  Val known;
  if (is_leaf) {
    known = leaf(e, graph_.aval(to));
  } else if (is_elementwise(e.op)) {
    known = elementwise(graph_, e, in);
  } else if (family_of(e.op) == Family::shape || e.op == Op::slice) {
    known = moved(graph_, e, in);
  } else if (e.op == Op::dot_general) {
    known = product(graph_, e, in);
  } else if (e.op == Op::reduce_sum) {
    known = reduced(graph_, e, in[0]);
    for (const KnownNumber x : in[0].elements()) left_ += x.value != 0;
  } else {
    return dense(e);
  }
  if (any_of(known.elements(), [](KnownNumber x) { return x.is_known(); }))
    elements_[to] = known.elements();
  return left_;
}

}  // namespace vt::detail
