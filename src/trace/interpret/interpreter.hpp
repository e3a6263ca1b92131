// Frame: what an interpreter rule sees of the equation it runs; the rules of each family; strided
// walks that they share.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "../base/convert.hpp"
#include "../ir/graph.hpp"
#include "../record/node.hpp"

namespace vt::detail {

/// One equation being run. Rules read the inputs and set every output: a fresh buffer by make(), or
/// an input's own buffer where the bytes are the same (buffers are never written after they are
/// handed out).
struct Frame {
  const Equation& equation;
  const GraphBody& graph;
  std::span<const BufferRef> inputs;
  SmallVec<BufferRef, 1> outputs;

  Frame(const Equation& e, const GraphBody& g, std::span<const BufferRef> in)
      : equation(e), graph(g), inputs(in), outputs(e.outputs.size()) {}

  const Aval& in(std::size_t i = 0) const { return graph.aval(equation.inputs[i]); }
  const Aval& out(std::size_t i = 0) const { return graph.aval(equation.outputs[i]); }
  template <class T>
  const T* read(std::size_t i = 0) const {
    return inputs[i]->as<const T>();
  }
  const std::byte* bytes(std::size_t i = 0) const { return inputs[i]->as<const std::byte>(); }
  /// Allocates output i.
  template <class T>
  T* make(std::size_t i = 0) {
    return static_cast<T*>(make_bytes(i));
  }
  void* make_bytes(std::size_t i = 0);
  /// Memory for the rule's own use.
  BufferRef scratch(std::size_t bytes) const;
  /// Operand i as elements of the wide dtype of its kind.
  BufferRef widened(std::size_t i = 0) const;
  /// Makes output i of elements of the wide dtype of its kind.
  void narrow(BufferRef wide, std::size_t i = 0);
  template <class P>
  const P& params() const {
    return equation.as<P>();
  }
};

using InterpretRule = void (*)(Frame&);

/// For dtypes that the shape rules refuse, should one come here all the same.
[[noreturn]] void refuse_dtype(const Frame&);

/// Distances between neighbours of each axis, in elements.
inline Shape row_major_strides(const Shape& shape) {
  Shape strides = Shape::filled(shape.size(), 1);
  for (int i = shape.rank() - 2; i >= 0; --i)
    strides[i] = strides[static_cast<std::size_t>(i) + 1] * shape[static_cast<std::size_t>(i) + 1];
  return strides;
}

/// Visits all indices of `dims` in row-major order; calls f(a, b) with the positions that
/// `a_strides` and `b_strides` give.
template <class F>
void walk(const Shape& dims, std::int64_t a, const Shape& a_strides, std::int64_t b,
          const Shape& b_strides, F&& f) {
  const std::size_t rank = dims.size();
  if (rank == 0) return f(a, b);
  if (dims.elements() == 0) return;
  const std::int64_t n = dims[rank - 1], a_step = a_strides[rank - 1], b_step = b_strides[rank - 1];
  Shape index = Shape::filled(rank, 0);
  for (;;) {
    for (std::int64_t i = 0, p = a, q = b; i < n; ++i, p += a_step, q += b_step) f(p, q);
    std::size_t axis = rank - 1;
    for (;;) {
      if (axis == 0) return;
      --axis;
      a += a_strides[axis], b += b_strides[axis];
      if (++index[axis] < dims[axis]) break;
      a -= a_strides[axis] * dims[axis], b -= b_strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
}

/// Calls f with an unsigned type as wide as the dtype, which is not complex.
template <class F>
void with_word(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

/// Calls f with a type as wide as the dtype, for ops that only move elements.
template <class F>
void with_size(DType dtype, F&& f) {
  if (size_of(dtype) == 16) return f(Word128{});
  with_word(dtype, f);
}

/// Copies elements between two strided regions of the same extents.
void copy_region(DType, const Shape& dims, const void* source, std::int64_t source_start,
                 const Shape& source_strides, void* target, std::int64_t target_start,
                 const Shape& target_strides);

namespace interp_leaf {
void constant(Frame&), full(Frame&), iota(Frame&), input(Frame&);
}
namespace interp_unary {
void neg(Frame&), abs(Frame&), sign(Frame&), floor(Frame&), ceil(Frame&), round(Frame&),
    trunc(Frame&), sqrt(Frame&);
void is_finite(Frame&), is_nan(Frame&), is_inf(Frame&);
void integer_pow(Frame&), not_(Frame&), popcount(Frame&), clz(Frame&), convert(Frame&),
    reduce_precision(Frame&), same(Frame&);
/// Runs f on every element in double and rounds once.
void real_function(Frame&, double (*f)(double));
template <double (*f)(double)>
void real(Frame& frame) {
  real_function(frame, f);
}
}  // namespace interp_unary
namespace interp_binary {
void add(Frame&), sub(Frame&), mul(Frame&), div(Frame&), rem(Frame&), pow(Frame&), max(Frame&),
    min(Frame&), atan2(Frame&), nextafter(Frame&), zeta(Frame&);
void eq(Frame&), ne(Frame&), lt(Frame&), le(Frame&), gt(Frame&), ge(Frame&);
void and_(Frame&), or_(Frame&), xor_(Frame&), shift_left(Frame&), shift_right_logical(Frame&),
    shift_right_arithmetic(Frame&);
void threefry(Frame&);
void select(Frame&);
}  // namespace interp_binary
namespace interp_complex {
/// The rule of an op for complex operands or results; null where it is that for others, or none.
InterpretRule rule_of(Op);
}  // namespace interp_complex
namespace interp_reduce {
/// An operand with the reduced axes last, so that each result's elements lie side by side, in
/// row-major order.
struct Rows {
  BufferRef buffer;
  std::int64_t count = 1, length = 1;
  template <class T>
  const T* row(std::int64_t i) const {
    return buffer->as<const T>() + i * length;
  }
};
Rows gather_rows(const Frame&, BufferRef elements, DType, const Shape&, const Axes&);
void sum(Frame&), prod(Frame&), max(Frame&), min(Frame&), any(Frame&), all(Frame&), argmax(Frame&),
    argmin(Frame&), reduce(Frame&);
}  // namespace interp_reduce
namespace interp_cumulative {
void sum(Frame&), prod(Frame&), max(Frame&), min(Frame&), logsumexp(Frame&);
}
namespace interp_order {
void sort(Frame&);
}
namespace interp_shape {
void transpose(Frame&), broadcast_in_dim(Frame&), concatenate(Frame&), pad(Frame&), rev(Frame&),
    windows(Frame&), overlap_add(Frame&);
}
namespace interp_index {
void slice(Frame&), dynamic_slice(Frame&), dynamic_update_slice(Frame&), gather(Frame&);
/// Where each update goes in the operand; −1: nowhere.
Vec<std::int64_t> update_positions(const Frame&);
void scatter(Frame&), scatter_add(Frame&), scatter_mul(Frame&), scatter_min(Frame&),
    scatter_max(Frame&);
void rows(Frame&), rows_add(Frame&);
}  // namespace interp_index
namespace interp_fft {
void fft(Frame&);
}
namespace interp_linalg {
void matrices(Frame&);
}
namespace interp_dot {
void dot_general(Frame&), conv_general(Frame&);
}
namespace interp_structure {
void call(Frame&);
void recursive_call(Frame&);
}  // namespace interp_structure
namespace interp_control {
void batched_call(Frame&), cond(Frame&), while_loop(Frame&), fused_region(Frame&), scan(Frame&);
}
namespace interp_processes {
void collective(Frame&);
}
namespace interp_effect {
void debug_print(Frame&), check(Frame&), callback(Frame&);
}

}  // namespace vt::detail
