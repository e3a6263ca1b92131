// For every op of the op table: what runs it on a CUDA device, and the reason if it is the host.
#pragma once

#include <string_view>

#include "../../../trace/ir/op.hpp"

namespace vt::detail::cuda {

enum class Way : std::uint8_t {
  kernel,  ///< a loop nest's kernel, fused with its neighbours
  /// a kernel for matrix products and convolutions, a nest's, or (large products) cuBLAS where it
  /// is found
  product,
  /// a loop or branch: one kernel with its values in registers, or kernels in turn, steered from
  /// the host
  control,
  host,     ///< the host: operands are copied there, results back
  lowered,  ///< other ops take its place before there is a program
};

struct DeviceWay {
  Way way;
  /// Of Way::host the reason; of other ways what may still bring the op to the host, if anything
  /// does.
  std::string_view on_host = {};
};

constexpr std::optional<DeviceWay> way_of_family(const OpInfo& op) {
  switch (op.family) {
    case Family::reduce:
    case Family::cumulative:
    case Family::window: return DeviceWay{Way::kernel, "too many axes for a kernel's loops"};
    case Family::linalg:
      return DeviceWay{Way::kernel, "a complex matrix, or a large one without cuSOLVER"};
    case Family::collective: return DeviceWay{Way::host, "it goes between processes"};
    case Family::rows:
    case Family::structure:
      return DeviceWay{Way::lowered};  // inline_calls.cpp puts their equations here
    case Family::contract: return DeviceWay{Way::product};
    default: return DeviceWay{Way::kernel};
  }
}

inline constexpr auto own_ways = rule_table<DeviceWay>({
    {Op::input, {Way::lowered}},
    // lower_complex.cpp: a number for each part
    {Op::real, {Way::lowered}},
    {Op::imag, {Way::lowered}},
    {Op::conj, {Way::lowered}},
    {Op::meeting, {Way::lowered}},
    {Op::complex, {Way::lowered}},
    {Op::reduce, {Way::kernel, "its function is more than operations on numbers"}},
    {Op::fft, {Way::kernel, "long rows without two factors that fit in shared memory"}},
    // matrix_source.cpp says why a matrix is not for a thread, a warp or a block
    {Op::triangular_solve, {Way::kernel, "a complex or large matrix"}},
    {Op::solve, {Way::kernel, "a complex or large matrix"}},
    {Op::eigh, {Way::kernel, "a complex or large matrix"}},
    {Op::eig, {Way::host, "eigenvalues without symmetry"}},
    {Op::recursive_call, {Way::host, "a recursion asks for a stack"}},
    {Op::cond, {Way::control, "it has effects, or its lanes hold more than registers do"}},
    {Op::while_, {Way::control, "it has effects, or its lanes hold more than registers do"}},
    {Op::fused_region, {Way::control}},
    {Op::scan, {Way::control, "it has effects"}},
    {Op::debug_print, {Way::host, "it prints"}},
    {Op::check, {Way::host, "it throws"}},
    {Op::callback, {Way::host, "it calls the user's code"}},
});
inline constexpr auto device_ways = with_defaults(own_ways, way_of_family);
static_assert(RuleMissingFor<first_without_rule(device_ways)>::ok);

/// Whether element_source.cpp has text for this op.
constexpr bool has_element_source(Op op) {
  return is_elementwise(op) && device_ways[op].way == Way::kernel;
}

}  // namespace vt::detail::cuda
