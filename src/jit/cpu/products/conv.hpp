// Convolutions on the CPU: the kernel of one image, and how images and blocks of rows are shared
// among threads.
#pragma once

#include "../../fusion/conv_spec.hpp"
#include "matmul.hpp"

namespace vt::detail::cpu {

/// A convolution made ready to run, as a product of its operands. Null when there is no LLVM.
std::shared_ptr<const Matmul> make_convolution(const ConvSpec& spec);
/// One of a dilated image, of what phases_of makes of it.
std::shared_ptr<const Matmul> make_phases(const ConvSpec& spec, const Vec<ConvSpec>& phases);

}  // namespace vt::detail::cpu
