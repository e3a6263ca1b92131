// Interpreter rules of the ops that address elements by number: slice, dynamic slices, gather, and
// the scatters.
#include <algorithm>
#include <limits>

#include <vt/detail/small_vec.hpp>

#include "../base/scalar_math.hpp"
#include "interpreter.hpp"

namespace vt::detail::interp_index {

/// Index operands of any integer dtype as int64; what does not fit is as far out as can be.
Vec<std::int64_t> indices_of(const Frame& frame, std::size_t i) {
  if (!is_int(frame.in(i).dtype)) refuse_dtype(frame);
  Vec<std::int64_t> indices(frame.in(i).elements());
  convert_elements(frame.bytes(i), frame.in(i).dtype, indices.data(), DType::i64, indices.size());
  if (frame.in(i).dtype == DType::u64)
    for (auto& index : indices)
      if (index < 0) index = std::numeric_limits<std::int64_t>::max();  // wrapped
  return indices;
}

void slice(Frame& frame) {
  const auto& params = frame.params<SliceParams>();
  Shape strides = row_major_strides(frame.in().shape);
  std::int64_t start = 0;
  for (std::size_t a = 0; a < strides.size(); ++a) {
    start += params.start[a] * strides[a];
    strides[a] *= params.stride[a];
  }
  void* out = frame.make_bytes();
  copy_region(frame.out().dtype, frame.out().shape, frame.bytes(), start, strides, out, 0,
              row_major_strides(frame.out().shape));
}

/// Position of a window of `sizes` at the index operands from `first` on, moved inside the operand.
std::int64_t window_start(const Frame& frame, std::size_t first, const Shape& sizes) {
  const Shape &shape = frame.in().shape, strides = row_major_strides(shape);
  std::int64_t start = 0;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    const std::int64_t index = indices_of(frame, first + a)[0];
    start += std::clamp<std::int64_t>(index, 0, shape[a] - sizes[a]) * strides[a];
  }
  return start;
}

void dynamic_slice(Frame& frame) {
  const Shape& sizes = frame.out().shape;
  const std::int64_t start = window_start(frame, 1, sizes);
  void* out = frame.make_bytes();
  copy_region(frame.out().dtype, sizes, frame.bytes(), start, row_major_strides(frame.in().shape),
              out, 0, row_major_strides(sizes));
}

void dynamic_update_slice(Frame& frame) {
  const Shape& sizes = frame.in(1).shape;
  const std::int64_t start = window_start(frame, 2, sizes);
  void* out = frame.make_bytes();
  std::memcpy(out, frame.bytes(), frame.in().bytes());
  copy_region(frame.out().dtype, sizes, frame.bytes(1), 0, row_major_strides(sizes), out, start,
              row_major_strides(frame.in().shape));
}

/// How gather and scatter address the operand: per index vector the position where its window
/// starts.
struct Windows {
  Shape leading;  ///< the indices' axes without the last
  /// row-major over `leading`; dropped where the window is out of range and the mode is fill
  Vec<std::int64_t> starts;
  static constexpr std::int64_t dropped = -1;

  /// `sizes`: extent of the window along each operand axis. Index component k addresses operand
  /// axis axes[k].
  Windows(const Frame& frame, const Shape& sizes, const Axes& axes, const Axes& operand_batching,
          const Axes& indices_batching, IndexMode mode) {
    const Shape &operand = frame.in(0).shape, &indices = frame.in(1).shape,
                strides = row_major_strides(operand);
    const Vec<std::int64_t> components = indices_of(frame, 1);
    for (std::size_t i = 0; i + 1 < indices.size(); ++i) leading.push_back(indices[i]);
    const Shape leading_strides = row_major_strides(leading);
    starts.resize(leading.elements());
    for (std::size_t v = 0; v < starts.size(); ++v) {
      std::int64_t start = 0;
      bool inside = true;
      for (std::size_t k = 0; k < axes.size(); ++k) {
        const std::size_t axis = axes[k];
        const std::int64_t index = components[v * axes.size() + k],
                           last = operand[axis] - sizes[axis];
        inside = inside && index >= 0 && index <= last;
        // Of an empty axis `last` is negative.
        start +=
            std::clamp<std::int64_t>(index, 0, std::max<std::int64_t>(last, 0)) * strides[axis];
      }
      for (std::size_t k = 0; k < operand_batching.size(); ++k) {
        const std::size_t own = indices_batching[k];
        const std::int64_t index =
            static_cast<std::int64_t>(v) / leading_strides[own] % leading[own];
        start += index * strides[operand_batching[k]];
      }
      starts[v] = inside || mode == IndexMode::clip ? start : dropped;
    }
  }
};

/// Splits the axes of gather's result or scatter's updates: `vector` steps through the index
/// vectors and `window` through the operand, per axis, the other one standing still.
struct Steps {
  Shape vector, window;

  Steps(int rank, const Axes& window_axes, const Shape& leading, const Shape& operand,
        const Axes& skipped, const Axes& batching) {
    const Shape leading_strides = row_major_strides(leading), strides = row_major_strides(operand);
    std::size_t next_leading = 0;
    int operand_axis = 0;
    for (int a = 0; a < rank; ++a) {
      if (window_axes.contains(a)) {
        while (skipped.contains(operand_axis) || batching.contains(operand_axis)) ++operand_axis;
        vector.push_back(0);
        window.push_back(strides[operand_axis++]);
      } else {
        vector.push_back(leading_strides[next_leading++]);
        window.push_back(0);
      }
    }
  }
};

/// The operand's position for every element of `shape`, which is gather's result or scatter's
/// updates, in row-major order.
Vec<std::int64_t> positions_of(const Shape& shape, const Windows& windows, const Steps& steps) {
  Vec<std::int64_t> positions;
  positions.reserve(shape.elements());
  walk(shape, 0, steps.vector, 0, steps.window, [&](std::int64_t vector, std::int64_t offset) {
    const std::int64_t start = windows.starts[vector];
    positions.push_back(start == Windows::dropped ? Windows::dropped : start + offset);
  });
  return positions;
}

void gather(Frame& frame) {
  const auto& params = frame.params<GatherParams>();
  const Windows windows(frame, params.slice_sizes, params.start_index_map,
                        params.operand_batching_dims, params.indices_batching_dims, params.mode);
  const Shape& shape = frame.out().shape;
  const Steps steps(shape.rank(), params.offset_dims, windows.leading, frame.in().shape,
                    params.collapsed_slice_dims, params.operand_batching_dims);
  const auto positions = positions_of(shape, windows, steps);
  with_size(frame.out().dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* in = frame.read<T>();
    T* out = frame.make<T>();
    for (const std::int64_t from : positions) *out++ = from == Windows::dropped ? T{} : in[from];
  });
}

Vec<std::int64_t> update_positions(const Frame& frame) {
  const auto& params = frame.params<ScatterParams>();
  const Shape &operand = frame.in(0).shape, &updates = frame.in(2).shape;
  Shape sizes;
  std::size_t next_window = 0;
  for (int a = 0; a < operand.rank(); ++a) {
    const bool single =
        params.inserted_window_dims.contains(a) || params.operand_batching_dims.contains(a);
    sizes.push_back(single ? 1 : updates[params.update_window_dims[next_window++]]);
  }
  const Windows windows(frame, sizes, params.scatter_dims_to_operand_dims,
                        params.operand_batching_dims, params.indices_batching_dims, params.mode);
  const Steps steps(updates.rank(), params.update_window_dims, windows.leading, operand,
                    params.inserted_window_dims, params.operand_batching_dims);
  return positions_of(updates, windows, steps);
}

void scatter(Frame& frame) {
  void* target = frame.make_bytes();
  std::memcpy(target, frame.bytes(), frame.in().bytes());
  with_size(frame.out().dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* update = frame.read<T>(2);
    for (const std::int64_t to : update_positions(frame)) {
      if (to != Windows::dropped) static_cast<T*>(target)[to] = *update;
      ++update;
    }
  });
}

/// out[…] = combine(out[…], update), in the wide dtype; rounds once when all updates are in.
template <class Combine>
void run_combining(Frame& frame, Combine combine) {
  const BufferRef before = frame.widened(0), wide = frame.widened(2);
  BufferRef after = frame.scratch(static_cast<std::size_t>(frame.out().elements()) * 8);
  std::memcpy(after->data, before->data, after->bytes);
  const auto positions = update_positions(frame);
  with_wide_type(frame.out().dtype, [&](auto tag) {
    using W = decltype(tag);
    const W* update = wide->as<const W>();
    W* out = after->as<W>();
    for (const std::int64_t to : positions) {
      if (to != Windows::dropped) out[to] = combine(out[to], *update);
      ++update;
    }
  });
  frame.narrow(std::move(after));
}

void scatter_add(Frame& frame) {
  if (is_bool(frame.out().dtype)) refuse_dtype(frame);
  run_combining(frame, [](auto a, auto b) { return scalar_math::add(a, b); });
}
void scatter_mul(Frame& frame) {
  if (is_bool(frame.out().dtype)) refuse_dtype(frame);
  run_combining(frame, [](auto a, auto b) { return scalar_math::mul(a, b); });
}
void scatter_min(Frame& frame) {
  run_combining(frame, [](auto a, auto b) { return scalar_math::min(a, b); });
}
void scatter_max(Frame& frame) {
  run_combining(frame, [](auto a, auto b) { return scalar_math::max(a, b); });
}

void rows(Frame& frame) {
  const auto& p = frame.params<RowsParams>();
  auto* out = static_cast<std::byte*>(frame.make_bytes());
  if (frame.out().bytes() == 0) return;
  const std::size_t row = frame.out().bytes() / static_cast<std::size_t>(p.count());
  for (const RowRun& run : p.runs) {
    const std::size_t bytes = static_cast<std::size_t>(run.count) * row;
    if (run.operand < 0) std::memset(out, 0, bytes);
    else if (bytes)
      std::memcpy(out,
                  frame.bytes(static_cast<std::size_t>(run.operand)) +
                      static_cast<std::size_t>(run.first) * row,
                  bytes);
    out += bytes;
  }
}

void rows_add(Frame& frame) {
  const auto& p = frame.params<RowsParams>();
  const DType d = frame.in().dtype;
  if (is_bool(d)) refuse_dtype(frame);
  const BufferRef wide = frame.widened();
  // Of complex numbers both parts are numbers of their own.
  const std::int64_t parts = is_complex(d) ? 2 : 1;
  std::int64_t row = parts;
  for (std::size_t k = 1; k < frame.in().shape.size(); ++k) row *= frame.in().shape[k];
  for (std::size_t i = 0; i < p.extents.size(); ++i) {
    BufferRef sums = frame.scratch(frame.out(i).elements() * size_of(wide_of(d)));
    with_wide_type(is_complex(d) ? DType::f64 : d, [&](auto tag) {
      using W = decltype(tag);
      const W* in = wide->as<const W>();
      W* const out = sums->as<W>();
      std::fill_n(out, p.extents[i] * row, W(0));
      for (const RowRun& run : p.runs) {
        const std::int64_t count = run.count * row;
        if (run.operand == static_cast<int>(i))
          for (std::int64_t k = 0; k < count; ++k)
            out[run.first * row + k] = scalar_math::add(out[run.first * row + k], in[k]);
        in += count;
      }
    });
    frame.narrow(std::move(sums), i);
  }
}

}  // namespace vt::detail::interp_index
