// The kinds of steps of a program of the host.
#pragma once

#include <memory>

#include "step.hpp"

namespace vt::detail {

using StepPointer = std::unique_ptr<Step>;

/// The step of that number of plan.fusion: one of those below, or in steps.cpp
///   SortStep         sort_rows
///   TransformStep    run_fft
///   MatrixStep       code that works on several side by side, or run_linalg
///   CollectiveStep   run_collective
///   ControlStep      loops, branches, fused regions, calls (control.cpp)
///   InterpretedStep  what has no code: the interpreter
StepPointer make_step(const ProgramPlan& plan, std::size_t number);

/// A loop nest: its code (nest_steps.cpp).
StepPointer kernel_step(const ProgramPlan& plan, std::size_t number);
/// A matrix product or a convolution: kernels of jit/cpu/products, with or without the code of a
/// loop nest on their rows as they are done.
StepPointer product_step(const ProgramPlan& plan, std::size_t number);
/// Two matrix products and the loop nest between them, block of rows by block of rows.
StepPointer chain_step(const ProgramPlan& plan, std::size_t number);

}  // namespace vt::detail
