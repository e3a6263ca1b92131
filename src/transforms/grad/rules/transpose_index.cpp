// Transpose rules of ops that move elements, and of Fourier transforms.
#include <algorithm>
#include <utility>

#include "../../../trace/ir/axis_map.hpp"
#include "../build.hpp"
#include "../jvp.hpp"
#include "../transpose.hpp"

namespace vt::detail::transpose_rules {

using namespace grad_build;

void reshape(const TransposeCall& c) { c.cotangents[0] = with_shape(c.ct(), c.shape(0)); }

void transpose(const TransposeCall& c) {
  c.cotangents[0] = permuted(c.ct(), inverse(c.as<PermutationParams>().permutation));
}

// New axes and broadcast ones were copies: their cotangents add up.
void broadcast_in_dim(const TransposeCall& c) {
  const auto& p = c.as<BroadcastParams>();
  Axes copied = other_axes(p.shape.rank(), p.axes);
  for (std::size_t i = 0; i < p.axes.size(); ++i)
    if (c.shape(0)[i] != p.shape[p.axes[i]]) copied.push_back(p.axes[i]);
  insertion_sort(copied);
  c.cotangents[0] = with_shape(sum_over(c.ct(), copied), c.shape(0));
}

void concatenate(const TransposeCall& c) {
  const int axis = c.as<AxisParams>().axis;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    const std::int64_t next = start + c.shape(i)[axis];
    if (c.linear(i)) c.cotangents[i] = slice_axis(c.ct(), axis, start, next);
    start = next;
  }
}

void rows(const TransposeCall& c) {
  RowsParams p{c.as<RowsParams>().runs};
  Vec<int> places;
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    places.push_back(c.linear(i) ? static_cast<int>(p.extents.size()) : -1);
    if (c.linear(i)) p.extents.push_back(c.shape(i)[0]);
  }
  for (RowRun& run : p.runs)
    if (run.operand >= 0) run.operand = places[run.operand];
  const SmallVec<Tensor, 1> sums =
      emit_all(Op::rows_add, make_params(std::move(p)), {&c.ct(), 1}, c.equation.where);
  for (std::size_t i = 0, next = 0; i < c.x.size(); ++i)
    if (c.linear(i)) c.cotangents[i] = sums[next++];
}

void rows_add(const TransposeCall& c) {
  RowsParams p{c.as<RowsParams>().runs};
  std::vector<Tensor> operands;
  Vec<int> places;
  for (const Tensor& ct : c.results) {
    places.push_back(ct.defined() ? static_cast<int>(operands.size()) : -1);
    if (ct.defined()) operands.push_back(ct);
  }
  for (RowRun& run : p.runs)
    if (run.operand >= 0) run.operand = places[run.operand];
  c.cotangents[0] = emit(Op::rows, make_params(std::move(p)), operands, c.equation.where);
}

void pad(const TransposeCall& c) {
  const auto& p = c.as<PadParams>();
  if (c.linear(0)) {
    // Undo the edges (what was cropped gets zero), then skip the interior.
    PadParams edges = p;
    SliceParams inner{Shape::filled(p.low.size(), 0), c.shape(0), p.interior};
    for (std::size_t d = 0; d < p.low.size(); ++d) {
      edges.low[d] = -p.low[d];
      edges.high[d] = -p.high[d];
      edges.interior[d] = 0;
      inner.stride[d] = p.interior[d] + 1;
      inner.limit[d] = c.shape(0)[d] > 0 ? (c.shape(0)[d] - 1) * inner.stride[d] + 1 : 0;
    }
    c.cotangents[0] =
        sliced(padded(c.ct(), scalar(c.ct().dtype(), 0), std::move(edges)), std::move(inner));
  }
  if (c.linear(1)) {
    // Summing a mask's choice, not the difference of two sums, which would cancel.
    const Tensor is_padding =
        padded(zeros(Aval(DType::bool_, c.shape(0))), scalar(DType::bool_, 1), p);
    c.cotangents[1] = sum_all(choose_by_place(is_padding, c.ct(), scalar(c.ct().dtype(), 0)));
  }
}

void rev(const TransposeCall& c) {
  c.cotangents[0] = emit(Op::rev, c.equation.params, {c.ct()}, {});
}

void slice(const TransposeCall& c) {
  const auto& p = c.as<SliceParams>();
  PadParams around{p.start, p.start, p.stride};
  for (std::size_t d = 0; d < p.start.size(); ++d) {
    const std::int64_t n = c.ct().shape()[d];
    around.interior[d] = p.stride[d] - 1;
    around.high[d] = c.shape(0)[d] - p.start[d] - (n > 0 ? (n - 1) * p.stride[d] + 1 : 0);
  }
  c.cotangents[0] = padded(c.ct(), scalar(c.ct().dtype(), 0), std::move(around));
}

// What updates get is read before it is overwritten: then that may happen in place.
void dynamic_update_slice(const TransposeCall& c) {
  SmallVec<Tensor, 4> operands(c.x.begin(), c.x.end());
  operands[0] = c.ct();
  const auto emitted = [&](Op op, ParamsRef params) {
    return emit(op, std::move(params), std::span<const Tensor>(operands.data(), operands.size()),
                {});
  };
  if (c.linear(1)) {
    operands.erase(operands.begin() + 1);
    c.cotangents[1] = emitted(Op::dynamic_slice, make_params(ShapeParams{c.shape(1)}));
    operands.insert(operands.begin() + 1, Tensor());
  }
  if (c.linear(0)) {
    operands[1] = zeros(c.operand(1));
    c.cotangents[0] = emitted(Op::dynamic_update_slice, {});
  }
}

namespace scatter_transpose {
inline Tensor gathered(const TransposeCall& c, const Tensor& operand) {
  return jvp_rules::met_by_updates(c.as<ScatterParams>(), operand, c.x[1], c.shape(2));
}
}  // namespace scatter_transpose

void scatter_add(const TransposeCall& c) {
  if (c.linear(0)) c.cotangents[0] = c.ct();
  if (c.linear(2)) c.cotangents[2] = scatter_transpose::gathered(c, c.ct());
}

// Overwritten elements of the operand get nothing; of several updates of one element the last gets
// all. What updates get is read before it is overwritten: then that may happen in place.
void scatter(const TransposeCall& c) {
  const auto& p = c.as<ScatterParams>();
  if (c.linear(2)) {
    Tensor ct = scatter_transpose::gathered(c, c.ct());
    if (!p.unique && !is_one_update(p, c.shape(1))) {
      const std::int64_t n = c.shape(2).elements();
      const DType index = index_type(n);
      const Tensor names = with_shape(index_along(index, Shape{n}, 0), c.shape(2));
      const Tensor last = emit(Op::scatter, c.equation.params,
                               {filled(Aval(index, c.shape(0)), -1), c.x[1], names}, {});
      const Tensor won = binary(Op::eq, scatter_transpose::gathered(c, last), names);
      ct = choose_by_place(won, ct, scalar(ct.dtype(), 0));
    }
    c.cotangents[2] = ct;
  }
  if (c.linear(0))
    c.cotangents[0] =
        emit(Op::scatter, c.equation.params, {c.ct(), c.x[1], zeros(c.operand(2))}, {});
}

// Linear in the operand while the updates are factors.
void scatter_mul(const TransposeCall& c) {
  if (!c.linear(0) || c.linear(2)) refuse(c);
  c.cotangents[0] = emit(Op::scatter_mul, c.equation.params, {c.ct(), c.x[1], c.x[2]}, {});
}

// The matrices of fft and ifft are symmetric. rfft is a real part of fft's rows: what it leaves out
// is zero in the cotangent. irfft counts every number twice that has a conjugate which it does not
// see.
void fft(const TransposeCall& c) {
  FftParams p = c.as<FftParams>();
  const auto transformed = [&](FftKind kind, const Tensor& t) {
    p.kind = kind;
    return emit(Op::fft, make_params(p), {t}, {});
  };
  const std::int64_t n = p.lengths.back(), half = n / 2 + 1;
  switch (p.kind) {
    case FftKind::fft:
    case FftKind::ifft: c.cotangents[0] = emit(Op::fft, c.equation.params, {c.ct()}, {}); return;
    case FftKind::rfft: {
      PadParams more{Shape::filled(c.ct().shape().size(), 0),
                     Shape::filled(c.ct().shape().size(), 0),
                     Shape::filled(c.ct().shape().size(), 0)};
      more.high.back() = n - half;
      c.cotangents[0] = unary(
          Op::real,
          transformed(FftKind::fft, padded(c.ct(), scalar(c.ct().dtype(), 0), std::move(more))));
      return;
    }
    case FftKind::irfft: {
      const Val spectrum = transformed(FftKind::rfft, c.ct());
      const Shape& shape = spectrum.t.shape();
      const Tensor k = index_along(DType::i64, shape, shape.rank() - 1);
      const Tensor alone =
          binary(Op::or_, binary(Op::eq, k, scalar(DType::i64, 0)),
                 binary(Op::eq, binary(Op::add, k, k), scalar(DType::i64, static_cast<double>(n))));
      double elements = 1;
      for (std::int64_t length : p.lengths) elements *= static_cast<double>(length);
      const DType d = spectrum.t.dtype();
      c.cotangents[0] = Val(unary(Op::conj, spectrum)) *
                        Val(choose(alone, scalar(d, 1 / elements), scalar(d, 2 / elements)));
      return;
    }
  }
}

}  // namespace vt::detail::transpose_rules
