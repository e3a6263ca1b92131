// ProductEpilogue: the text of what a product's kernel does to each element of its result.
#pragma once

#include <string>

namespace vt::detail::cuda {

/// What a product's kernel does with each of its elements instead of storing it, or (`keep`)
/// besides.
struct ProductEpilogue {
  /// `vt_epilogue(row, column, product, …)` for the element at place row + column of c. Where
  /// columns lie densely (`dense_columns`), row is a multiple of their number and column less than
  /// it.
  std::string function;
  /// of it and of the kernel behind c (which is missing unless it is kept): ", const f32* b1", ",
  /// b1"
  std::string parameters, arguments;
  std::string name;                 ///< "_add_max"
  bool wide = false, keep = false;  ///< wide: offsets of 64 bits
};

}  // namespace vt::detail::cuda
