// The highest rates of the CPU (arithmetic, memory), which explain compares with: measured once and
// kept on disk.
#pragma once

#include "runtime/compiler.hpp"

namespace vt::detail::cpu {

class IrBuilder;
namespace limit_loops {
/// multiply-adds in flight, vectors read in an iteration
inline constexpr int chains = 12, vectors = 8;
/// A kernel of arguments[0] iterations of `chains` multiply-adds of vectors of f32.
void emit_multiply_adds(IrBuilder&);
/// A kernel of arguments[0] iterations over arguments[1] 32-bit elements for each of the threads
/// [begin, end).
void emit_reading(IrBuilder&);
}  // namespace limit_loops

}  // namespace vt::detail::cpu
