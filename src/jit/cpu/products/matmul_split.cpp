// Matrix products with few results that are long sums, as XᵀX of many examples: k is cut, threads
// make a partial product each, and these are added in order.
#include "matmul_kernels.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <cstring>
#include <memory>

#include "../../../trace/base/buffer.hpp"
#include "../../services/threads.hpp"
#include "matmul_pack.hpp"

namespace vt::detail::cpu {

namespace matmul_split {

// Elements of c so few that they keep no machine busy by themselves.
constexpr std::int64_t few_elements = 1024;
// A part is so long that writing and adding up partial sums is nothing beside it, and there are at
// most so many of them.
constexpr std::int64_t least_depth = 4096, least_work = 1 << 18, most_parts = 64;

std::int64_t depth_of_part(const MatmulSpec& s) {
  return std::max({least_depth, least_work / (s.m * s.n), (s.k + most_parts - 1) / most_parts});
}

}  // namespace matmul_split

/// The cut depends on the shape alone, so the bits do not depend on threads.
class SplitMatmul final : public Matmul {
 public:
  SplitMatmul(const MatmulSpec& s, bool hurry)
      : s_(s), depth_(matmul_split::depth_of_part(s)), parts_((s.k + depth_ - 1) / depth_) {
    MatmulSpec part = s;
    part.result = s.accumulate;
    part.k = depth_;
    part_ = make_matmul(part, hurry);
    part.k = s.k - (parts_ - 1) * depth_;
    last_ = part.k == depth_ ? part_ : make_matmul(part, hurry);
    // The sum of the parts: a row of ones, which is the same 1 again and again, times a matrix of
    // them.
    MatmulSpec sum;
    sum.a_dtype = sum.b_dtype = sum.accumulate = s.accumulate;
    sum.result = s.result;
    sum.m = 1, sum.n = s.m * s.n, sum.k = parts_;
    sum.a_row = 0, sum.a_column = 0, sum.b_row = sum.n, sum.b_column = 1;
    sum_ = make_matmul(sum, hurry);
    if (s.accumulate == DType::f64) std::memcpy(one_, &as_f64, sizeof(as_f64));
    else if (s.accumulate == DType::f32) std::memcpy(one_, &as_f32, sizeof(as_f32));
    else one_[0] = 1;  // the lowest byte of an integer
  }

  static bool suits(const MatmulSpec& s) {
    if (s.batch > 1 ||
        !(is_int(s.accumulate) || s.accumulate == DType::f32 || s.accumulate == DType::f64))
      return false;
    return s.m * s.n <= matmul_split::few_elements && s.k >= 2 * matmul_split::depth_of_part(s);
  }

  void run(const void* a, const void* b, void* c, const RowsDone& done,
           const PackedOperands&) const override {
    const BufferRef partial = allocate(partial_bytes(), "vt::matmul: partial sums");
    parallel_ranges(parts_, 1, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i)
        (i + 1 == parts_ ? last_ : part_)
            ->run(at_element(a, i * depth_ * s_.a_column, s_.a_dtype),
                  at_element(b, i * depth_ * s_.b_row, s_.b_dtype),
                  at_element(partial->data, i * s_.m * s_.n, s_.accumulate));
    });
    sum_->run(one_, partial->data, c);
    done(0, s_.m);
  }
  std::size_t scratch_bytes(const RowsDone&, bool, bool) const override {
    const std::size_t together = std::min<std::int64_t>(parts_, thread_count());
    return partial_bytes() + together * std::max(part_->scratch_bytes(), last_->scratch_bytes());
  }
  std::string describe() const override {
    return part_->describe() + ", k in " + std::to_string(parts_) + " parts";
  }

 private:
  static constexpr double as_f64 = 1;
  static constexpr float as_f32 = 1;
  std::size_t partial_bytes() const { return parts_ * s_.m * s_.n * size_of(s_.accumulate); }

  MatmulSpec s_;
  std::int64_t depth_, parts_;
  std::shared_ptr<const Matmul> part_, last_, sum_;
  alignas(8) char one_[8] = {};
};

bool suits_split(const MatmulSpec& s) { return SplitMatmul::suits(s); }
std::shared_ptr<const Matmul> make_split_matmul(const MatmulSpec& s, bool hurry) {
  return std::make_shared<SplitMatmul>(s, hurry);
}

}  // namespace vt::detail::cpu

#endif
