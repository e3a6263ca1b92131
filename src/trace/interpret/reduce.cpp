// Interpreter rules of the reductions, of argmax and argmin, and of the scans along an axis. All
// but `reduce` widen their operand, work on doubles or 64-bit integers, and round once at the end.
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../base/accumulate.hpp"
#include "interpreter.hpp"

namespace vt::detail {

namespace interp_reduce {

Rows gather_rows(const Frame& frame, BufferRef elements, DType dtype, const Shape& shape,
                 const Axes& axes) {
  const Shape own = row_major_strides(shape);
  Rows rows;
  Shape dims, strides;
  for (bool reduced : {false, true})
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (axes.contains(axis) != reduced) continue;
      dims.push_back(shape[axis]);
      strides.push_back(own[axis]);
      (reduced ? rows.length : rows.count) *= dims.back();
    }
  if (strides == own) {
    rows.buffer = std::move(elements);  // in that order already
  } else {
    rows.buffer = frame.scratch(shape.elements() * size_of(dtype));
    copy_region(dtype, dims, elements->data, 0, strides, rows.buffer->data, 0,
                row_major_strides(dims));
  }
  return rows;
}

Rows wide_rows(const Frame& frame, const Axes& axes) {
  return gather_rows(frame, frame.widened(), wide_of(frame.in().dtype), frame.in().shape, axes);
}

template <template <class> class State>
void run(Frame& frame) {
  const Rows rows = wide_rows(frame, frame.params<AxesParams>().axes);
  BufferRef results = frame.scratch(static_cast<std::size_t>(frame.out().elements()) * 8);
  with_wide_type(frame.in().dtype, [&](auto tag) {
    using W = decltype(tag);
    W* out = results->as<W>();
    for (std::int64_t i = 0; i < rows.count; ++i) {
      State<W> state;
      const W* row = rows.row<W>(i);
      for (std::int64_t k = 0; k < rows.length; ++k) state.add(row[k]);
      out[i] = state.value();
    }
  });
  frame.narrow(std::move(results));
}

/// Sums and products have no meaning for bool; the frontends widen it first.
void need_numbers(const Frame& frame) {
  if (is_bool(frame.in().dtype)) refuse_dtype(frame);
}

void sum(Frame& frame) {
  need_numbers(frame);
  run<accumulate::Sum>(frame);
}
void prod(Frame& frame) {
  need_numbers(frame);
  run<accumulate::Prod>(frame);
}
void max(Frame& frame) { run<accumulate::Max>(frame); }
void min(Frame& frame) { run<accumulate::Min>(frame); }

// Of bools as 0 and 1: the greatest and the least; of none at all 0 and not 0.
void any(Frame& frame) {
  if (!is_bool(frame.in().dtype)) refuse_dtype(frame);
  run<accumulate::Max>(frame);
}
void all(Frame& frame) {
  if (!is_bool(frame.in().dtype)) refuse_dtype(frame);
  run<accumulate::Min>(frame);
}

template <class W>
bool is_nan(W x) {
  if constexpr (std::is_floating_point_v<W>) return __builtin_isnan(x);
  else return false;
}

/// The first position of the greatest element (`sign` 1) or the least one (−1); the first NaN wins
/// over all.
void arg(Frame& frame, int sign) {
  const auto& params = frame.params<ArgParams>();
  const Rows rows = wide_rows(frame, Axes(params.axis));
  const std::size_t n = frame.out().elements();
  const BufferRef found = frame.scratch(n * sizeof(std::int64_t));
  with_wide_type(frame.in().dtype, [&](auto tag) {
    using W = decltype(tag);
    for (std::int64_t i = 0; i < rows.count; ++i) {
      const W* row = rows.row<W>(i);
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < rows.length; ++k)
        if (!is_nan(row[best]) &&
            (is_nan(row[k]) || (sign > 0 ? row[k] > row[best] : row[k] < row[best])))
          best = k;
      found->as<std::int64_t>()[i] = best;
    }
  });
  void* out = frame.make_bytes();
  convert_elements(found->data, DType::i64, out, frame.out().dtype, n);
}

void argmax(Frame& frame) { arg(frame, 1); }
void argmin(Frame& frame) { arg(frame, -1); }

/// (operands…, inits…): runs the body on (results so far…, elements…) for one element after the
/// other.
void reduce(Frame& frame) {
  const auto& params = frame.params<ReduceParams>();
  const std::size_t count = frame.inputs.size() / 2;
  Vec<Rows> rows;
  for (std::size_t i = 0; i < count; ++i) {
    rows.push_back(
        gather_rows(frame, frame.inputs[i], frame.in(i).dtype, frame.in(i).shape, params.axes));
    frame.make_bytes(i);
  }
  Vec<BufferRef> arguments(2 * count);
  for (std::int64_t row = 0; row < rows[0].count; ++row) {
    Vec<BufferRef> results(frame.inputs.begin() + static_cast<std::ptrdiff_t>(count),
                           frame.inputs.end());
    for (std::int64_t k = 0; k < rows[0].length; ++k) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t size = size_of(frame.in(i).dtype);
        arguments[i] = std::move(results[i]);
        arguments[count + i] = borrow_memory(
            rows[i].row<std::byte>(0) + static_cast<std::size_t>(row * rows[i].length + k) * size,
            size);
      }
      results = interpret(*params.body, arguments);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t size = size_of(frame.out(i).dtype);
      std::memcpy(frame.outputs[i]->as<std::byte>() + static_cast<std::size_t>(row) * size,
                  results[i]->data, size);
    }
  }
}

}  // namespace interp_reduce

namespace interp_cumulative {

/// One row after the other; `make` gives a fresh state.
template <class W, class Make>
void run(Frame& frame, Make make) {
  const auto& params = frame.params<CumulativeParams>();
  const Shape& shape = frame.in().shape;
  const std::size_t axis = params.axis;
  const std::int64_t n = shape[axis], inner = row_major_strides(shape)[axis];
  const std::int64_t rows = n == 0 ? 0 : shape.elements() / n;
  const std::int64_t step = params.reverse ? -inner : inner,
                     begin = params.reverse ? (n - 1) * inner : 0;
  const BufferRef wide = frame.widened();
  BufferRef results = frame.scratch(static_cast<std::size_t>(shape.elements()) * 8);
  const W* in = wide->as<const W>();
  W* out = results->as<W>();
  for (std::int64_t row = 0; row < rows; ++row) {
    auto state = make();
    std::int64_t p = row / inner * (n * inner) + row % inner + begin;
    for (std::int64_t i = 0; i < n; ++i, p += step) {
      state.add(in[p]);
      out[p] = state.value();
    }
  }
  frame.narrow(std::move(results));
}

template <template <class> class State>
void run_wide(Frame& frame) {
  with_wide_type(frame.in().dtype, [&](auto tag) {
    using W = decltype(tag);
    run<W>(frame, [] { return State<W>(); });
  });
}

void sum(Frame& frame) {
  interp_reduce::need_numbers(frame);
  run_wide<accumulate::Sum>(frame);
}
void prod(Frame& frame) {
  interp_reduce::need_numbers(frame);
  run_wide<accumulate::Prod>(frame);
}
void max(Frame& frame) { run_wide<accumulate::Max>(frame); }
void min(Frame& frame) { run_wide<accumulate::Min>(frame); }
void logsumexp(Frame& frame) {
  if (!is_float(frame.in().dtype)) refuse_dtype(frame);
  run<double>(frame, [] { return accumulate::LogSumExp(); });
}

}  // namespace interp_cumulative
}  // namespace vt::detail
