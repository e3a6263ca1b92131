// Numbers written in C++ that became Tensors: whether a dtype can hold them, and which dtypes bare
// integers have met.
#pragma once

#include <span>
#include <string>

#include "node.hpp"
#include "scope.hpp"

namespace vt::detail {

/// Can `dtype` hold this integer? Numbers of other kinds are not looked at.
bool integer_fits(const Scalar&, DType dtype, Literal);
std::string integer_text(const Scalar&);
/// The value of a C++ number, not yet converted; null of all else.
const Scalar* literal_of(const Tensor&);
/// The same of an integer that `dtype` cannot hold. Of one that is an argument of what is being
/// recorded it is noted that it met `dtype`.
const Scalar* misfit(const Tensor&, DType dtype, Literal);
/// Is one of these arguments a number that does not fit?
bool have_misfit(std::span<const Tensor> arguments, const MetNumbers&);

}  // namespace vt::detail
