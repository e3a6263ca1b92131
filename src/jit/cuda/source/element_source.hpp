// Element-wise ops as CUDA text, for every element-wise op of the op table.
#pragma once

#include <span>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/graph.hpp"
#include "device_ways.hpp"

namespace vt::detail::cuda {

/// The type of a number in a register, and of an element in memory.
const char* register_type(DType);
const char* memory_type(DType);
/// An element read from memory as a number in a register, and back.
std::string from_memory(DType, const std::string& element);
std::string to_memory(DType, const std::string& number);

struct Operand {
  std::string text;  ///< an identifier or a literal
  DType dtype;
};

std::string literal(const Scalar&);
/// A number whose value is exact in `d`.
std::string number(DType d, double value);
std::string converted(const Operand&, DType to);
/// What `op` makes of its operands; `dtype` is the result's.
std::string element(Op op, DType dtype, const ParamsRef& params, std::span<const Operand> operands);

}  // namespace vt::detail::cuda
