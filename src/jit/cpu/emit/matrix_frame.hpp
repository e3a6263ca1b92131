// What the emitters of small matrices share: the function's arguments, the SIMD lanes in use, and
// values in them.
#pragma once

#include <cstdint>

#include <vt/detail/small_vec.hpp>

#include "../../nest/cost_model.hpp"
#include "matrices.hpp"
#include "simd_matrices.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu::matrix_emission {

/// Are the square results larger than all caches, and whole cache lines? Then they are stored past
/// them, which need not read them first.
inline bool past_caches(const LinalgSpec& s) {
  const std::int64_t each = s.n * s.n * static_cast<std::int64_t>(size_of(s.dtype));
  return (s.op == Op::cholesky || s.op == Op::eigh) && each % 64 == 0 &&
         s.batch * each > beyond_all_caches / 2;
}

class Frame {
 public:
  Frame(IrBuilder& b, const LinalgSpec& s)
      : b_(b), s_(s), d_(s.dtype), simd_lanes_(matrix_lanes(s, b.target())), n_(s.n) {}

 protected:
  Value real(double x) { return b_.real(d_, x, simd_lanes_); }
  Value place(std::int64_t i) { return b_.integer(DType::i32, i, simd_lanes_); }
  Value place(At i) {
    return i.counted ? b_.splat(b_.convert(i.counted, DType::i32), simd_lanes_) : place(i.known);
  }
  SimdMatrix matrix(std::int64_t rows, std::int64_t columns, bool in_registers) {
    return {b_, d_, simd_lanes_, rows, columns, in_registers};
  }
  /// y − a·x
  Value less(Value y, Value a, Value x) { return b_.mul_add(b_.neg(a), x, y); }

  void put(SimdMatrix& m, std::size_t result) { m.store(out_[result], first_, past_caches(s_)); }

  IrBuilder& b_;
  const LinalgSpec& s_;
  DType d_;
  int simd_lanes_;
  std::int64_t n_;
  Vec<Value> in_, out_;
  Value first_;
};

/// Eigenvalues and, if asked for, eigenvectors of the matrices from the frame's first on, one in
/// each SIMD lane.
void emit_eigh(const Frame& frame);

}  // namespace vt::detail::cpu::matrix_emission

#endif
