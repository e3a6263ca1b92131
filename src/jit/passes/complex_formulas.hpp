// Functions of complex numbers written in real ops, on their real and imaginary parts.
#pragma once

#include <vt/ops.hpp>

#include "../../trace/ir/op.hpp"

namespace vt::detail {

/// The parts of a complex value, of one float dtype.
struct ComplexParts {
  Tensor re, im;
};

ComplexParts complex_product(const ComplexParts&, const ComplexParts&);
/// A function of one or two complex operands with a complex result. Shapes broadcast. False if
/// there is no formula for `op`.
bool complex_formula(Op op, const ComplexParts& a, const ComplexParts& b, ComplexParts& result);
ComplexParts complex_power(const ComplexParts& base, int exponent);

}  // namespace vt::detail
