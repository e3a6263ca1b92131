// Two matrix products with a kernel between them, as in attention: a block of rows of the first is
// made, goes through the kernel and is multiplied again while it is in the second-level cache.
#include "matmul_kernels.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <atomic>
#include <memory>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/buffer.hpp"
#include "../../nest/cost_model.hpp"
#include "../../services/threads.hpp"

namespace vt::detail::cpu {

namespace product_chain {

// The rows between the products that a thread works on: twice as much, as they are handed on as a
// copy, leaves half of the second-level cache to what both products stream.
constexpr std::int64_t rows_bytes = 128 << 10;
// Fewer strips read the packed operands too often.
constexpr std::int64_t least_strips = 4;
// Packing an operand takes a few rows' time.
constexpr std::int64_t least_rows = 64;
// Multiply-adds for each element between the products, of both.
constexpr std::int64_t most_sums = 512;
// Of the second product: its tiles are wider.
constexpr std::int64_t least_columns = 8;

std::int64_t row_bytes(const MatmulSpec& s) {
  return s.n * static_cast<std::int64_t>(size_of(s.result));
}

class PackedChain : public ProductChain {
 public:
  PackedChain(const MatmulSpec& first, const MatmulSpec& second)
      : batch_(first.batch),
        rows_(first.m),
        strip_(packed_strip_rows(first)),
        made_bytes_(row_bytes(first)),
        taken_bytes_(second.k * static_cast<std::int64_t>(size_of(second.a_dtype))),
        first_(make_packed_matmul(first)),
        second_(make_packed_matmul(second)) {
    const std::int64_t strips = (rows_ + strip_ - 1) / strip_,
                       most = std::max(rows_bytes / std::max(made_bytes_, taken_bytes_) / strip_,
                                       least_strips);
    blocks_ = (strips + most - 1) / most;
    strips_ = strips;
  }

  void run(const void* a, const void* b, const void* b_then, void* c,
           Between between) const override {
    const std::int64_t workers = threads_for(batch_ * blocks_, 1);
    const BufferRef packed = allocate(both_packed(), "vt::matmul: packed operands");
    const BufferRef work = allocate(static_cast<std::size_t>(workers) * of_worker(),
                                    "vt::matmul: rows between two products");
    const RowBlocks &one = row_blocks(*first_), &two = row_blocks(*second_);
    char* const packed_then = static_cast<char*>(packed->data) + lines(one.packed_bytes());
    one.pack_all(b, packed->data);
    two.pack_all(b_then, packed_then);
    std::atomic<std::int64_t> next = 0;
    parallel_ranges(workers, 1, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t w = from; w < to; ++w) {
        char* const made =
            static_cast<char*>(work->data) + static_cast<std::size_t>(w) * of_worker();
        char* const taken = made + lines(bytes_of_block(made_bytes_));
        char* const own = taken + lines(bytes_of_block(taken_bytes_));
        for (std::int64_t n;
             (n = next.fetch_add(1, std::memory_order_relaxed)) < batch_ * blocks_;) {
          const std::int64_t i = n / blocks_, block = n % blocks_,
                             begin = i * rows_ + first_row(block),
                             end = i * rows_ + first_row(block + 1);
          char *const all_made = made - begin * made_bytes_, *const all_taken =
                                                                 taken - begin * taken_bytes_;
          one.make(a, packed->data, all_made, i, block, blocks_, own);
          between(begin, end, all_made, all_taken);
          two.make(all_taken, packed_then, c, i, block, blocks_, own);
        }
      }
    });
  }

  std::size_t scratch_bytes() const override {
    return both_packed() + static_cast<std::size_t>(threads_for(batch_ * blocks_, 1)) * of_worker();
  }
  std::int64_t block_rows() const override {
    return std::min((strips_ + blocks_ - 1) / blocks_ * strip_, rows_);
  }
  std::string describe(bool second) const override {
    return (second ? second_ : first_)->describe();
  }

 private:
  static std::size_t lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  std::int64_t first_row(std::int64_t block) const {
    return std::min(strips_ * block / blocks_ * strip_, rows_);
  }
  std::size_t bytes_of_block(std::int64_t of_row) const { return block_rows() * of_row; }
  std::size_t both_packed() const {
    return lines(row_blocks(*first_).packed_bytes()) + lines(row_blocks(*second_).packed_bytes());
  }
  std::size_t of_worker() const {
    return lines(bytes_of_block(made_bytes_)) + lines(bytes_of_block(taken_bytes_)) +
           lines(std::max(row_blocks(*first_).work_bytes(blocks_),
                          row_blocks(*second_).work_bytes(blocks_)));
  }

  std::int64_t batch_, rows_, strip_, made_bytes_, taken_bytes_, blocks_, strips_;
  std::shared_ptr<const Matmul> first_, second_;
};

}  // namespace product_chain

bool chains(const MatmulSpec& first, const MatmulSpec& second) {
  using namespace product_chain;
  if (!llvm_missing_reason().empty() || first.k * first.n * second.k * second.n == 0) return false;
  // Whole rows in their order, as the kernel between leaves them.
  const bool rows = second.batch == first.batch && second.m == first.m && second.a_column == 1 &&
                    second.a_row == second.k &&
                    (first.batch == 1 || second.a_batch == second.m * second.k);
  const bool floats = first.accumulate == second.accumulate &&
                      (first.accumulate == DType::f32 || first.accumulate == DType::f64);
  if (!rows || !floats || second.n < least_columns || first.m < least_rows ||
      packed_strip_rows(first) != packed_strip_rows(second))
    return false;
  // Products of long sums take so much longer than what is written and read between them that
  // larger blocks are worth more.
  if (first.k + second.n > most_sums) return false;
  // What lies between is more than the caches near a core hold, and more than what is packed
  // instead.
  const std::int64_t between = first.m * row_bytes(first);
  const std::int64_t packed = (first.n * first.k + second.n * second.k) *
                              static_cast<std::int64_t>(size_of(first.accumulate));
  return first.batch * between > scheduling::beyond_near_caches && packed < 4 * between;
}

std::shared_ptr<const ProductChain> make_chain(const MatmulSpec& first, const MatmulSpec& second) {
  return std::make_shared<product_chain::PackedChain>(first, second);
}

}  // namespace vt::detail::cpu

#endif
