// RecursionMemory: what recursive functions have given while a derivative runs that asks for it
// again.
#pragma once

#include <span>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/buffer.hpp"
#include "../../../trace/base/hash_map.hpp"
#include "../../../trace/ir/recursive_function.hpp"

namespace vt::detail {

/// Of one thread, while the outermost function that `remembers` runs.
class RecursionMemory {
 public:
  using Buffers = Vec<BufferRef>;
  /// The results of `f` on these operands: what `run` gives, or has given before.
  static Buffers results_of(const RecursiveFunction& f, std::span<const BufferRef> operands,
                            FunctionRef<Buffers()> run);
  /// Does such a function run on this thread?
  static bool is_wanted() { return now() != nullptr; }

 private:
  struct Call {
    const RecursiveFunction* function;
    Buffers operands, results;
  };
  const Call* find(std::size_t hash, const RecursiveFunction& f,
                   std::span<const BufferRef> operands) const;

  static RecursionMemory*& now();
  HashMap<std::size_t, SmallVec<std::size_t, 1>> by_hash_;
  Vec<Call> calls_;
};

}  // namespace vt::detail
