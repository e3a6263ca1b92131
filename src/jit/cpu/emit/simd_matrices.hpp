// Several matrices in vector registers, one per SIMD lane: access to their elements, read from and
// written to row-major memory.
#pragma once

#include <array>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>

#include "../llvm/ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

/// A row or column: a number known now, or one that the code counts.
struct At {
  std::int64_t known = 0;
  Value counted;
  At(std::int64_t i) : known(i) {}
  At(int i) : known(i) {}
  At(Value v) : counted(v) {}
};

/// As many vectors as each has SIMD lanes, the square of their elements transposed; only the first
/// `wanted` results are made.
Vec<Value> transposed(IrBuilder& b, Vec<Value> rows, std::int64_t wanted);

/// A run of memory with the rows of as many SIMD lanes as a vector has, in as many vectors as a row
/// has elements: result n has element n of each SIMD lane's row.
Vec<Value> rows_apart(IrBuilder& b, Vec<Value> run);
/// Back.
Vec<Value> rows_together(IrBuilder& b, Vec<Value> elements);
/// Does that take fewer instructions than transposing squares of rows?
bool rows_go_apart(const Target& target, std::int64_t row, int simd_lanes);

/// The elements of one matrix for each SIMD lane: in registers, where all numbers of rows and
/// columns are known now, or in the function's frame.
class SimdMatrix {
 public:
  SimdMatrix(IrBuilder& b, DType d, int simd_lanes, std::int64_t rows, std::int64_t columns,
             bool in_registers);

  Value get(At row, At column);
  void set(At row, At column, Value x);
  bool in_registers() const { return in_registers_; }
  /// The elements in registers, for loops that carry them.
  Vec<Value>& elements() { return elements_; }

  /// Reads matrices first, first + 1, …, each of rows × columns elements, from an array of them.
  void load(Value array, Value first);
  /// `past`: past the caches. Then a matrix is a whole number of cache lines, and so is all in
  /// front of it.
  void store(Value array, Value first, bool past = false);
  /// Row `row` exchanged with row others[l] of each SIMD lane l, columns from `left` on; of a
  /// matrix in memory.
  void exchange(std::int64_t row, Value others, std::int64_t left);
  /// rows from … to − 1, one after the other: as code for each, or as a loop.
  void for_rows(std::int64_t from, std::int64_t to, FunctionRef<void(At)> body);

 private:
  Value place(At row, At column);
  void load_tile(Value array, Value first, At from, std::int64_t count);
  void store_tile(Value array, Value first, At from, std::int64_t count, bool past);
  void for_tiles(std::int64_t size, FunctionRef<void(At from, std::int64_t count)> body);

  IrBuilder& b_;
  DType dtype_;
  int simd_lanes_;
  std::int64_t rows_, columns_;
  bool in_registers_;
  Vec<Value> elements_;
  Value memory_;
};

}  // namespace vt::detail::cpu

#endif
