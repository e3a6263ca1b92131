// How Tensors are printed: options of one text or of a scope.
#pragma once

#include <cstdint>
#include <optional>

#include <vt/error.hpp>
#include <vt/param.hpp>

namespace vt {

/// How the elements of a Tensor are written.
/// Source: NumPy `printoptions`.
struct PrintStyle {
  /// digits behind the point at most, 0 … 20; by default as many as 8 significant ones need (5 of
  /// f16, 4 of bf16)
  std::optional<Param<int>> precision = std::nullopt;
  /// of a Tensor with more elements only some at the ends of each axis are shown
  Param<std::int64_t> threshold = 1000;
  Param<std::int64_t> edge_items = 3;  ///< how many at each end
  Param<int> line_width = 100;         ///< columns
  Param<int> width = 0;                ///< columns of an element, at least
  bool suppress = false;               ///< no exponents: what is small is 0
};

/// While one lives, this thread prints Tensors so: by `<<`, fmt, `str` and debug_print. They nest:
/// the innermost counts. Throws: Error(value) if a number is negative, or precision above 20.
class PrintScope {
 public:
  [[nodiscard]] explicit PrintScope(const PrintStyle& style, CallSite where = CallSite::here());
  ~PrintScope();
  PrintScope(const PrintScope&) = delete;
  PrintScope& operator=(const PrintScope&) = delete;

 private:
  PrintStyle before_;
};

}  // namespace vt
