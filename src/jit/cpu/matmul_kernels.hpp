// The kinds of matrix product kernels that make_matmul chooses from.
#pragma once

#include "llvm_library.hpp"
#include "matmul.hpp"
#include "target.hpp"

namespace vt::detail::cpu {

std::shared_ptr<const Matmul> make_packed_matmul(const MatmulSpec&);

/// A packed product of which somebody else says when which rows are made, and on which thread.
class RowBlocks {
 public:
  /// Of all b of the batch, packed; those that the batch shares once.
  virtual std::size_t packed_bytes() const = 0;
  /// Packs all of it, on several threads.
  virtual void pack_all(const void* b, void* packed) const = 0;
  /// The bytes that make() works in, for so many blocks of the rows of one product.
  virtual std::size_t work_bytes(std::int64_t blocks) const = 0;
  /// Rows [first_row(block), first_row(block + 1)) of product i. `a`, `c`: of the batch, or where it would begin if the rows lie elsewhere.
  virtual void make(const void* a, const void* packed, void* c, std::int64_t i, std::int64_t block, std::int64_t blocks, void* work) const = 0;

 protected:
  ~RowBlocks() = default;
};
/// Of one that make_packed_matmul made.
const RowBlocks& row_blocks(const Matmul& packed);
/// Rows that its tiles have: blocks begin at multiples.
std::int64_t packed_strip_rows(const MatmulSpec&);
/// How many elements of k its kernel multiplies in one lane at a time: 4 of i8, 2 of bf16, where the CPU can, else 1.
int product_group(const MatmulSpec&, const Target&);

}  // namespace vt::detail::cpu
