// Matrix products and convolutions as CUDA kernels.
#pragma once

#include <cstdint>
#include <string>

#include "../../fusion/conv_spec.hpp"
#include "../../fusion/matmul_spec.hpp"
#include "../source/epilogue_function.hpp"

namespace vt::detail::cuda {

struct ProductSource {
  /// a kernel `name(a, b, c)`; with an epilogue the last of the kernels takes its parameters, too
  std::string source, name;
  std::int64_t blocks = 0;
  int threads = 256;
  /// > 1: too few elements of c for a device, so the sum is cut in so many parts. Then `c` is an
  /// array of all elements for each part in the dtype of the sums, of `parts_bytes`, and a second
  /// kernel `join_name(parts, c)` adds them up, the first part first.
  std::int64_t parts = 1, parts_bytes = 0;
  std::string join_source, join_name;
  std::int64_t join_blocks = 0;
  std::string way;  ///< "tiles of 64 × 64", for explain
};

/// How many columns there are, if all of a row's lie side by side in c; else 0.
std::int64_t dense_columns(const ConvSpec&);
ConvSpec as_convolution(const MatmulSpec&);

/// A kernel for this product: large ones in tiles that a block keeps in shared memory, a
/// convolution as an implicit product of the matrix of its windows, which is never laid out; others
/// (few columns or rows, depthwise) an element per thread. Chosen by shapes alone, and each element
/// is summed in one order, whatever the device; but with `tensor_cores` (compute capability 8.0 or
/// more) tiles of 16-bit floats that are summed in f32 are made by these, whose sums of 16 products
/// may be rounded otherwise.
ProductSource product_source(const ConvSpec&, bool tensor_cores = false,
                             const ProductEpilogue* = nullptr);

}  // namespace vt::detail::cuda
