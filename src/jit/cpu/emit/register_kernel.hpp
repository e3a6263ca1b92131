// From a register kernel (regions/register_kernel.hpp) to LLVM code: one function with its values
// in registers, one vector of lanes at a time.
#pragma once

#include <string>

#include "../../regions/register_kernel.hpp"
#include "../llvm/ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

/// Emits `void name(buffers, calls, begin, end)` for an equation that fits_registers. Buffers: the
/// operands, then the results; carried values that stay in memory are updated in the result's
/// buffer, which holds their initial contents. [begin, end): lanes; ignored where there are none.
/// `calls`, where functions call themselves: the lane that runs, which is stored there; the depth
/// of the calls around; the address up to which the stack may grow. The kernel may then leave by
/// vt_leave_recursion. Where lanes take each other's places in a loop: room for the three numbers
/// of CountedIterations.
void emit_register_kernel(IrBuilder&, const std::string& name, const LaneForm& form);

/// What the code is made for besides the form's Graph. The number of lanes is part of it only where
/// elements of a lane lie behind those of others.
std::string register_kernel_key(const LaneForm& form);

}  // namespace vt::detail::cpu

#endif
