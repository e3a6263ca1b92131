// Which elements of small values are numbers when code is made, and what is left to compute.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"
#include "register_lowering.hpp"

namespace vt::detail {

/// Is it a derivative with zeros that transforms have kept (as −0), or does an equation assume that
/// all is finite? Then many elements may be known.
bool keeps_zeros(const GraphBody&);

namespace known_elements {
/// x if it is a small whole number that the dtype holds, so that arithmetic on it is exact; else
/// NaN.
float number(double x, DType);
/// What an op, whose result is of this dtype, makes of two such numbers, or of the first; NaN: not
/// known.
float result(Op, DType, float x, float y = 0);
}  // namespace known_elements

/// A number that is known, or NaN.
struct KnownNumber {
  float value = std::numeric_limits<float>::quiet_NaN();
  DType dtype = DType::f32;
  bool there = false;
  explicit operator bool() const { return there; }
  bool is_known() const { return value == value; }
};

/// Follows a Graph's equations in order, as emitters of register kernels do, which know as much: a
/// unit matrix, and where the rows of a Jacobian stay 0.
class KnownElements : SmallArrays<KnownElements, KnownNumber> {
 public:
  /// Values of more elements than `most` are not followed.
  KnownElements(const GraphBody& graph, std::int64_t most)
      : graph_(graph), most_(most), elements_(graph.avals.size()) {}

  /// The next equation. How many element-wise operations are left of it, where it has any: the
  /// elements of its result or, of sums and products, their terms.
  std::int64_t add(const Equation&);
  /// Are the numbers of the elements that an index op picks known?
  bool knows_places(const Equation&) const;
  /// Of a float value: 1 for the elements that are not known to be 0, and the zeros of the others.
  struct Zeros {
    BufferRef elsewhere;  ///< of bool
    BufferRef numbers;    ///< of the value's dtype; 0 for those that are not known
  };
  /// Nothing if none is.
  std::optional<Zeros> zeros(Var) const;

 private:
  friend class SmallArrays<KnownElements, KnownNumber>;

  const Elements& of(Var v) const { return elements_[v]; }
  bool follows(Var v) const { return graph_.aval(v).elements() <= most_; }
  std::int64_t dense(const Equation&) const;

  static KnownNumber constant(const Scalar& x) {
    return {known_elements::number(x.to_double(), x.dtype), x.dtype, true};
  }
  static bool is_constant(KnownNumber x) { return x.is_known(); }
  static bool is_number(KnownNumber x, double number) {
    return is_float(x.dtype) && x.value == number && std::signbit(x.value) == std::signbit(number);
  }
  KnownNumber apply(Op, DType, const ParamsRef&, const Operands&, std::int64_t uses = 0);
  KnownNumber multiply_add(KnownNumber x, KnownNumber, KnownNumber) {
    ++left_;
    return {.dtype = x.dtype, .there = true};
  }
  static KnownNumber keep(KnownNumber x) { return x; }

  const GraphBody& graph_;
  const std::int64_t most_;
  Vec<Elements> elements_;  ///< per Var; empty: none is known
  std::int64_t left_ = 0;   ///< of the equation that is being followed
};

}  // namespace vt::detail
