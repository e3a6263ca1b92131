// The CPU's compiler as programs use it: code of loop nests, register kernels and small matrices,
// and what the machine's parts take.
#pragma once

#include "../../../trace/numerics/linalg_kernels.hpp"
#include "../../nest/cost_model.hpp"
#include "../../nest/kernel.hpp"
#include "../../nest/loop_nest.hpp"
#include "../../nest/schedule.hpp"
#include "../../regions/lane_form.hpp"
#include "../../services/machine_limits.hpp"

namespace vt::detail::cpu {

/// Bytes of the machine's vectors.
int vector_bytes();
/// What code is made for, as text, and what the machine has, by which libm chooses its functions.
std::string target_key();

// Where llvm_missing_reason() is empty; any thread. `hurry`: the code may run unoptimised at first.
// Throws: Error(backend).

/// No `wait`: no function while another thread makes the same code; to be asked for again when
/// there is nothing else to do.
Kernel compile_nest(const Nest&, const Schedule&, bool hurry, bool wait);
/// An equation that fits_registers as one function; see register_kernel.hpp. Buffers: operands,
/// then results.
Kernel compile_register_kernel(const LaneForm& form, bool hurry);
/// Code for batches of small matrices, a block of `simd_lanes` of them at a time; no function where
/// there is none for this spec. Buffers: operands, then results; [begin, end): matrices, whole
/// blocks.
Kernel compile_matrices(const LinalgSpec& spec, int& simd_lanes, bool hurry);

/// What the machine's parts take: those on disk, else the usual numbers. Those of a process change
/// at most once, when they have been measured.
MachineCosts machine_costs();
/// Has them measured in the first few processes (the best of each number counts), which takes some
/// hundredths of a second on the background thread; the caller does not wait. Not done where
/// nothing could be kept (no cache on disk), with VT_TIERS=off (no background thread) or
/// VT_MACHINE=usual.
void measure_machine_costs();
/// The machine's highest rates, with all threads that vt uses. Measures for some tenths of a second
/// where nobody has, or `again`, and then keeps the better of both.
MachineLimits machine_limits(bool again);

}  // namespace vt::detail::cpu
