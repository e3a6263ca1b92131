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

struct OpRow {
  Way way;
  /// Of Way::host the reason; of other ways what may still bring the op to the host, if anything
  /// does.
  std::string_view on_host = {};
};

// clang-format off
inline constexpr auto op_rows = rule_table<OpRow>({
    // leaves
    {Op::input, {Way::lowered}}, {Op::constant, {Way::kernel}}, {Op::full, {Way::kernel}},
    {Op::iota, {Way::kernel}},
    // element-wise (element_source.cpp), one operand
    {Op::neg, {Way::kernel}}, {Op::abs, {Way::kernel}}, {Op::sign, {Way::kernel}},
    {Op::floor, {Way::kernel}}, {Op::ceil, {Way::kernel}}, {Op::round, {Way::kernel}},
    {Op::trunc, {Way::kernel}}, {Op::exp, {Way::kernel}}, {Op::exp2, {Way::kernel}},
    {Op::expm1, {Way::kernel}}, {Op::log, {Way::kernel}}, {Op::log1p, {Way::kernel}},
    {Op::log2, {Way::kernel}}, {Op::sqrt, {Way::kernel}}, {Op::rsqrt, {Way::kernel}},
    {Op::cbrt, {Way::kernel}}, {Op::sin, {Way::kernel}}, {Op::cos, {Way::kernel}},
    {Op::tan, {Way::kernel}}, {Op::asin, {Way::kernel}}, {Op::acos, {Way::kernel}},
    {Op::atan, {Way::kernel}}, {Op::sinh, {Way::kernel}}, {Op::cosh, {Way::kernel}},
    {Op::tanh, {Way::kernel}}, {Op::asinh, {Way::kernel}}, {Op::acosh, {Way::kernel}},
    {Op::atanh, {Way::kernel}}, {Op::sigmoid, {Way::kernel}}, {Op::erf, {Way::kernel}},
    {Op::erfc, {Way::kernel}}, {Op::erf_inv, {Way::kernel}}, {Op::lgamma, {Way::kernel}},
    {Op::digamma, {Way::kernel}}, {Op::gamma, {Way::kernel}}, {Op::erfcx, {Way::kernel}},
    {Op::erfc_inv, {Way::kernel}}, {Op::ndtr, {Way::kernel}}, {Op::log_ndtr, {Way::kernel}},
    {Op::dawsn, {Way::kernel}}, {Op::expi, {Way::kernel}}, {Op::spence, {Way::kernel}},
    {Op::fresnel_sin, {Way::kernel}}, {Op::fresnel_cos, {Way::kernel}},
    {Op::bessel_i0e, {Way::kernel}}, {Op::bessel_i1e, {Way::kernel}},
    {Op::bessel_k0e, {Way::kernel}}, {Op::bessel_k1e, {Way::kernel}},
    {Op::bessel_j0, {Way::kernel}}, {Op::bessel_j1, {Way::kernel}}, {Op::bessel_y0, {Way::kernel}},
    {Op::bessel_y1, {Way::kernel}},
    // lower_complex.cpp: a number for each part
    {Op::real, {Way::lowered}}, {Op::imag, {Way::lowered}}, {Op::conj, {Way::lowered}},
    {Op::is_finite, {Way::kernel}}, {Op::is_nan, {Way::kernel}}, {Op::is_inf, {Way::kernel}},
    {Op::integer_pow, {Way::kernel}}, {Op::not_, {Way::kernel}}, {Op::popcount, {Way::kernel}},
    {Op::clz, {Way::kernel}}, {Op::convert, {Way::kernel}}, {Op::bitcast, {Way::kernel}},
    {Op::reduce_precision, {Way::kernel}}, {Op::stop_gradient, {Way::kernel}},
    {Op::meeting, {Way::kernel}},
    // … two operands
    {Op::add, {Way::kernel}}, {Op::sub, {Way::kernel}}, {Op::mul, {Way::kernel}},
    {Op::div, {Way::kernel}}, {Op::rem, {Way::kernel}}, {Op::pow, {Way::kernel}},
    {Op::max, {Way::kernel}}, {Op::min, {Way::kernel}}, {Op::atan2, {Way::kernel}},
    {Op::nextafter, {Way::kernel}}, {Op::zeta, {Way::kernel}}, {Op::eq, {Way::kernel}},
    {Op::ne, {Way::kernel}}, {Op::lt, {Way::kernel}}, {Op::le, {Way::kernel}},
    {Op::gt, {Way::kernel}}, {Op::ge, {Way::kernel}}, {Op::and_, {Way::kernel}},
    {Op::or_, {Way::kernel}}, {Op::xor_, {Way::kernel}}, {Op::shift_left, {Way::kernel}},
    {Op::shift_right_logical, {Way::kernel}}, {Op::shift_right_arithmetic, {Way::kernel}},
    {Op::threefry, {Way::kernel}}, {Op::complex, {Way::lowered}}, {Op::select, {Way::kernel}},
    // reduce and scan
    {Op::reduce_sum, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::reduce_prod, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::reduce_max, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::reduce_min, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::reduce_any, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::reduce_all, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::argmax, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::argmin, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::reduce, {Way::kernel, "its function is more than operations on numbers"}},
    {Op::cumsum, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::cumprod, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::cummax, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::cummin, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::cumlogsumexp, {Way::kernel, "too many axes for a kernel's loops"}},
    // order
    {Op::sort, {Way::kernel}},  // kernels of its own (sort.cpp)
    // shape
    {Op::reshape, {Way::kernel}}, {Op::transpose, {Way::kernel}},
    {Op::broadcast_in_dim, {Way::kernel}}, {Op::concatenate, {Way::kernel}},
    {Op::pad, {Way::kernel}}, {Op::rev, {Way::kernel}},
    // index
    {Op::slice, {Way::kernel}}, {Op::dynamic_slice, {Way::kernel}},
    {Op::dynamic_update_slice, {Way::kernel}}, {Op::gather, {Way::kernel}},
    {Op::scatter, {Way::kernel}}, {Op::scatter_add, {Way::kernel}},
    {Op::scatter_mul, {Way::kernel}}, {Op::scatter_min, {Way::kernel}},
    {Op::scatter_max, {Way::kernel}}, {Op::rows, {Way::lowered}},
    {Op::rows_add, {Way::lowered}},
    // windows
    {Op::windows, {Way::kernel, "too many axes for a kernel's loops"}},
    {Op::overlap_add, {Way::kernel, "too many axes for a kernel's loops"}},
    // contract
    {Op::dot_general, {Way::product}},
    {Op::conv_general, {Way::product}},
    // spectral
    {Op::fft, {Way::kernel, "long rows without two factors that fit in shared memory"}},
    // linear algebra (matrix_source.cpp), which says why a matrix is not for a thread, a warp or a
    // block
    {Op::cholesky, {Way::kernel, "a complex matrix, or a large one without cuSOLVER"}},
    {Op::triangular_solve, {Way::kernel, "a complex or large matrix"}},
    {Op::lu, {Way::kernel, "a complex matrix, or a large one without cuSOLVER"}},
    {Op::solve, {Way::kernel, "a complex or large matrix"}},
    {Op::qr, {Way::kernel, "a complex matrix, or a large one without cuSOLVER"}},
    {Op::eigh, {Way::kernel, "a complex or large matrix"}},
    {Op::svd, {Way::kernel, "a complex matrix, or a large one without cuSOLVER"}},
    {Op::eig, {Way::host, "eigenvalues without symmetry"}},
    {Op::tridiagonal_solve, {Way::kernel, "a complex matrix, or a large one without cuSOLVER"}},
    // collective: vmap resolves them
    {Op::psum, {Way::lowered}}, {Op::pmax, {Way::lowered}}, {Op::pmin, {Way::lowered}},
    {Op::all_gather, {Way::lowered}}, {Op::all_to_all, {Way::lowered}},
    {Op::ppermute, {Way::lowered}},
    // structure; inline_calls.cpp puts the equations of what is merely run in its place
    {Op::call, {Way::lowered}}, {Op::batched_call, {Way::lowered}},
    {Op::custom_jvp, {Way::lowered}}, {Op::custom_vjp, {Way::lowered}},
    {Op::custom_vmap, {Way::lowered}}, {Op::checkpoint, {Way::lowered}},
    {Op::recursive_call, {Way::host, "a recursion asks for a stack"}},
    {Op::cond, {Way::control, "it has effects, or its lanes hold more than registers do"}},
    {Op::while_, {Way::control, "it has effects, or its lanes hold more than registers do"}},
    {Op::fused_region, {Way::control}},
    {Op::scan, {Way::control, "it has effects"}},
    // effect
    {Op::debug_print, {Way::host, "it prints"}}, {Op::check, {Way::host, "it throws"}},
    {Op::callback, {Way::host, "it calls the user's code"}},
});
// clang-format on
static_assert(RuleMissingFor<first_without_rule(op_rows)>::ok);

}  // namespace vt::detail::cuda
