// Packing: code that copies operands of matrix products into the order in which their kernels read
// them.
#pragma once

#include "../llvm/ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

#include "../llvm/compile.hpp"

namespace vt::detail::cpu {

/// Element i of an array.
inline const char* at_element(const void* p, std::int64_t i, DType d) {
  return static_cast<const char*>(p) + i * static_cast<std::int64_t>(size_of(d));
}
inline char* at_element(void* p, std::int64_t i, DType d) {
  return static_cast<char*>(p) + i * static_cast<std::int64_t>(size_of(d));
}

/// How to copy lines (rows of a, columns of b) so that their elements of one k lie side by side.
struct PackSpec {
  DType from = DType::f32, to = DType::f32;
  int lines = 1;  ///< most per call
  /// the step is 1; steps are arguments, so that the code serves every size
  bool lines_adjacent = false, k_adjacent = false;
  /// the place has room for whole vectors of lines: what is missing is filled with anything
  bool whole_vectors = true;
  /// So many elements of k lie side by side, in one of `to`, a 32-bit integer; then depth and steps
  /// along k count groups. Bytes with their top bits flipped, if told so.
  int group = 1;
  bool flipped = false;
  std::string key() const;
};

/// to[k · to_row + line] = from[line · line_step + k · k_step] for line < lines, k < depth; in
/// elements.
using PackFunction = void(const void* from, void* to, std::int64_t line_step, std::int64_t k_step,
                          std::int64_t to_row, std::int64_t lines, std::int64_t depth);
void emit_pack(IrBuilder&, const std::string& name, const PackSpec&);

/// The compiled function, from the cache. In a `hurry`: see cached_code.
std::shared_ptr<const Code> pack_code(const PackSpec&, bool hurry = false);

}  // namespace vt::detail::cpu

#endif
