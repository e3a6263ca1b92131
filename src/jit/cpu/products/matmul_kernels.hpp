// The kinds of matrix product kernels that make_matmul chooses from.
#pragma once

#include "../llvm/llvm_library.hpp"
#include "../llvm/target.hpp"
#include "matmul.hpp"

namespace vt::detail::cpu {

std::shared_ptr<const Matmul> make_packed_matmul(const MatmulSpec&);

/// Of so few rows, or columns, each element of the other operand is used too few times to be worth
/// a copy in another order. Measured with 1000 of the other and 256 to 4096 of k, with AVX-512 and
/// with AVX2.
inline constexpr std::int64_t few_rows = 64, few_columns = 32;

/// Products whose operands run along k, or of which the one with few rows or columns is copied so.
bool suits_dots(const MatmulSpec&);
std::shared_ptr<const Matmul> make_dots(const MatmulSpec&, bool hurry);

/// Products of few elements that are long sums: k is cut into parts.
bool suits_split(const MatmulSpec&);
std::shared_ptr<const Matmul> make_split_matmul(const MatmulSpec&, bool hurry);

/// A single product for any number of rows.
std::shared_ptr<const Matmul> make_any_rows(const MatmulSpec&, bool hurry);

/// What the kernels that read operands where they are compile to: products begin … end − 1 of a
/// batch, or rows or columns of a single one.
using DirectFunction = void(const void* a, const void* b, void* c, std::int64_t begin,
                            std::int64_t end);
/// How a single product is cut: at multiples of `unit` rows or columns.
struct ProductCut {
  bool by_columns = false;
  std::int64_t unit = 1;
};
/// Calls f for all of it, on as many threads as it is worth; `done` is told of rows while they are
/// in the nearest cache, or of all at the end.
void run_in_ranges(const MatmulSpec&, ProductCut, const RowsDone& done,
                   FunctionRef<void(std::int64_t begin, std::int64_t end)> f);

/// A packed product of which somebody else says when which rows are made, and on which thread.
class RowBlocks {
 public:
  /// Of all b of the batch, packed; those that the batch shares once.
  virtual std::size_t packed_bytes() const = 0;
  /// Packs all of it, on several threads.
  virtual void pack_all(const void* b, void* packed) const = 0;
  /// The bytes that make() works in, for so many blocks of the rows of one product.
  virtual std::size_t work_bytes(std::int64_t blocks) const = 0;
  /// Rows [first_row(block), first_row(block + 1)) of product i. `a`, `c`: of the batch, or where
  /// it would begin if the rows lie elsewhere.
  virtual void make(const void* a, const void* packed, void* c, std::int64_t i, std::int64_t block,
                    std::int64_t blocks, void* work) const = 0;

 protected:
  ~RowBlocks() = default;
};
/// Of one that make_packed_matmul made.
const RowBlocks& row_blocks(const Matmul& packed);
/// Rows that its tiles have: blocks begin at multiples.
std::int64_t packed_strip_rows(const MatmulSpec&);
/// How many elements of k its kernel multiplies in one SIMD lane at a time: 4 of i8, 2 of bf16,
/// where the CPU can, else 1.
int product_group(const MatmulSpec&, const Target&);

}  // namespace vt::detail::cpu
