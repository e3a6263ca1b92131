// Element-wise ops as CUDA text, for every element-wise op of the op table.
#pragma once

#include <limits>
#include <span>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/graph.hpp"
#include "supported_ops.hpp"

namespace vt::detail::cuda {

/// The type of a number in a register, and of an element in memory.
const char* register_type(DType);
const char* memory_type(DType);
/// An element read from memory as a number in a register, and back.
std::string from_memory(DType, const std::string& element);
std::string to_memory(DType, const std::string& number);

struct Operand {
  std::string text = {};  ///< an identifier or a literal; by default none
  DType dtype = DType::f32;
  bool may_repeat = false;  ///< what it is costs nothing
  /// The small whole number that it is known to be, or NaN.
  float known = std::numeric_limits<float>::quiet_NaN();
  explicit operator bool() const { return !text.empty(); }
};

std::string literal(const Scalar&);
/// A number whose value is exact in `d`.
std::string number(DType d, double value);
std::string converted(const Operand&, DType to);
/// What `op` makes of its operands; `dtype` is the result's.
std::string element(Op op, DType dtype, const ParamsRef& params, std::span<const Operand> operands);

}  // namespace vt::detail::cuda
