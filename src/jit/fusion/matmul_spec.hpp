// A dot_general as one batched, strided matrix product: what both backends' kernels take.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include <vt/detail/function.hpp>
#include <vt/dtype.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// c[i][m,n] = Σ_k a[i][m,k] · b[i][k,n] for i < batch. Strides in elements; c is dense and
/// row-major.
struct MatmulSpec {
  DType a_dtype = DType::f32, b_dtype = DType::f32;  ///< of the operands in memory
  DType accumulate = DType::f32;                     ///< of the sums
  DType result = DType::f32;                         ///< of c
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  std::int64_t a_batch = 0, a_row = 0, a_column = 1;
  std::int64_t b_batch = 0, b_row = 0, b_column = 1;
  /// what else is done with every element of c, in multiply-adds: decides how it is cut for threads
  std::int64_t work_after = 0;
  /// the kernel is for any number of rows of c, of which m (or the batch) is the most; what a row
  /// of c is does not depend on how many there are
  bool any_rows = false;
  /// … for any k
  bool any_depth = false;
};

/// Operands of a product in the order in which its kernel reads them, made once for many runs;
/// null: read where they are.
struct PackedOperands {
  BufferRef a, b;
  explicit operator bool() const { return a || b; }
};

/// Told of finished rows of c, counted over the whole batch, by the thread that finished them,
/// while they are in its cache. All calls together cover every row once, in whole groups. Does not
/// own what it calls.
class RowsDone {
 public:
  RowsDone() = default;
  template <class F>
  explicit RowsDone(const F& f, std::int64_t group = 1, bool alone = false)
      : context_(&f),
        call_([](const void* g, std::int64_t begin, std::int64_t end,
                 [[maybe_unused]] const void* rows) {
          if constexpr (std::is_invocable_v<const F&, std::int64_t, std::int64_t, const void*>)
            (*static_cast<const F*>(g))(begin, end, rows);
          else (*static_cast<const F*>(g))(begin, end);
        }),
        group_(group),
        alone_(alone) {}
  /// `rows`: where they lie, if that is not in c.
  void operator()(std::int64_t begin, std::int64_t end, const void* rows = nullptr) const {
    if (call_) call_(context_, begin, end, rows);
  }
  explicit operator bool() const { return call_ != nullptr; }
  std::int64_t group() const { return group_; }
  /// Nobody else reads the rows, and there is no c.
  bool alone() const { return alone_; }

 private:
  const void* context_ = nullptr;
  void (*call_)(const void*, std::int64_t, std::int64_t, const void* rows) = nullptr;
  std::int64_t group_ = 1;
  bool alone_ = false;
};

/// A matrix product or a convolution made ready to run. Any thread may run it; the bits never
/// depend on threads.
class ProductKernel {
 public:
  virtual ~ProductKernel() = default;
  /// `packed`: what pack() made of these operands.
  virtual void run(const void* a, const void* b, void* c, const RowsDone& done = {},
                   const PackedOperands& packed = {}) const = 0;
  /// The first `rows` rows of c, counted over the whole batch: whole products of several. Only of
  /// kernels for any_rows.
  virtual void run_rows(const void* a, const void* b, void* c, std::int64_t rows,
                        const RowsDone& done, const PackedOperands& packed) const;
  /// What every run would do again to operands that stay the same; null: an operand that does not.
  virtual PackedOperands pack(const void*, const void*) const { return {}; }
  /// Bytes that pack() takes for one of them, the other, or both.
  virtual std::size_t packed_bytes(bool /*a*/, bool /*b*/) const { return 0; }
  /// Bytes that a run takes at most beside a, b and c, with as many threads as there are now.
  /// `done`: as in that run; it is not called.
  virtual std::size_t scratch_bytes(const RowsDone& done = {}, bool a_packed = false,
                                    bool b_packed = false) const = 0;
  /// "direct 14x32", "packed …": for vt::explain.
  virtual std::string describe() const = 0;
};

/// Two matrix products: the left operand of the second one is what a kernel makes of the rows of
/// the first. Only a block of those rows is in memory at a time, for each thread. Any thread may
/// run it; the bits never depend on threads.
class ProductChain {
 public:
  virtual ~ProductChain() = default;
  /// Told of a block of rows [begin, end), counted over the whole batch, and where row 0 would lie
  /// of what the first product has made and of what the second one takes. Only the block is there.
  using Between = FunctionRef<void(std::int64_t begin, std::int64_t end, void* made, void* taken)>;
  /// `a`, `b`: operands of the first product; `c`: of the second one, whose right operand is
  /// `b_then`.
  virtual void run(const void* a, const void* b, const void* b_then, void* c,
                   Between between) const = 0;
  /// Bytes that a run takes at most beside the operands and c, with as many threads as there are
  /// now.
  virtual std::size_t scratch_bytes() const = 0;
  /// Rows of a block.
  virtual std::int64_t block_rows() const = 0;
  /// Of either product, as ProductKernel::describe.
  virtual std::string describe(bool second) const = 0;
};

/// How a dot_general becomes a matrix product. An operand whose axes do not collapse into (batch,
/// rows, columns) must be copied in the order of its permutation first; the spec holds for the
/// copy.
struct MatmulPlan {
  MatmulSpec spec;
  std::optional<Axes> lhs_permutation, rhs_permutation;
};
MatmulPlan plan_matmul(const DotParams&, const Aval& lhs, const Aval& rhs);
/// Does this dot_general sum products of two arrays, element by element, for each result?
bool is_inner_product(const GraphBody&, const Equation&);
/// Is this dot_general better a reduction of a loop nest, fused with what is around it, than a
/// matrix product?
bool is_reduction_of_nest(const GraphBody&, const Equation&);

}  // namespace vt::detail
