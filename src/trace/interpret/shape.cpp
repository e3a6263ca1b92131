// Interpreter rules of the ops that rearrange elements: transpose, broadcast, concatenate, pad,
// rev, windows and their sum (reshape shares its operand's buffer).
#include <algorithm>

#include "../base/scalar_math.hpp"
#include "interpreter.hpp"

namespace vt::detail {

namespace interp_shape {

/// Fills the whole result from operand 0, read from `start` with `strides` per result axis.
void read_strided(Frame& frame, std::int64_t start, const Shape& strides) {
  const Shape& shape = frame.out().shape;
  void* out = frame.make_bytes();
  copy_region(frame.out().dtype, shape, frame.bytes(), start, strides, out, 0,
              row_major_strides(shape));
}

void transpose(Frame& frame) {
  const Shape own = row_major_strides(frame.in().shape);
  Shape strides;
  for (int axis : frame.params<PermutationParams>().permutation) strides.push_back(own[axis]);
  read_strided(frame, 0, strides);
}

void broadcast_in_dim(Frame& frame) {
  const auto& params = frame.params<BroadcastParams>();
  const Shape own = row_major_strides(frame.in().shape);
  Shape strides = Shape::filled(params.shape.size(), 0);
  for (std::size_t i = 0; i < params.axes.size(); ++i)
    if (frame.in().shape[i] != 1) strides[params.axes[i]] = own[i];
  read_strided(frame, 0, strides);
}

/// The distances between neighbours along the axes of `windows`' result, in an array of the
/// operand's shape.
Shape window_strides(const WindowParams& p, const Shape& operand) {
  Shape strides = row_major_strides(operand);
  for (std::size_t k = 0; k < p.axes.size(); ++k)
    strides.push_back(strides[p.axes[k]] * p.dilations[k]);
  for (std::size_t k = 0; k < p.axes.size(); ++k) strides[p.axes[k]] *= p.strides[k];
  return strides;
}

void windows(Frame& frame) {
  read_strided(frame, 0, window_strides(frame.params<WindowParams>(), frame.in().shape));
}

void overlap_add(Frame& frame) {
  const DType d = frame.in().dtype;
  if (is_bool(d)) refuse_dtype(frame);
  Shape shape = frame.in().shape,
        to = window_strides(frame.params<WindowParams>(), frame.out().shape);
  std::int64_t count = frame.out().elements();
  if (is_complex(d)) {  // two numbers each
    for (std::int64_t& step : to) step *= 2;
    to.push_back(1);
    shape.push_back(2);
    count *= 2;
  }
  const BufferRef wide = frame.widened();
  BufferRef sums = frame.scratch(frame.out().elements() * size_of(wide_of(d)));
  with_wide_type(is_complex(d) ? DType::f64 : d, [&](auto tag) {
    using W = decltype(tag);
    const W* in = wide->as<const W>();
    W* out = sums->as<W>();
    std::fill_n(out, count, W(0));
    walk(shape, 0, row_major_strides(shape), 0, to,
         [&](std::int64_t p, std::int64_t q) { out[q] = scalar_math::add(out[q], in[p]); });
  });
  frame.narrow(std::move(sums));
}

void rev(Frame& frame) {
  const Shape& shape = frame.in().shape;
  Shape strides = row_major_strides(shape);
  std::int64_t start = 0;
  for (int axis : frame.params<AxesParams>().axes) {
    const std::size_t a = axis;
    start += (shape[a] - 1) * strides[a];
    strides[a] = -strides[a];
  }
  read_strided(frame, start, strides);
}

void concatenate(Frame& frame) {
  const std::size_t axis = frame.params<AxisParams>().axis;
  const Shape& shape = frame.out().shape;
  std::int64_t outer = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
  if (frame.out().elements() == 0) return static_cast<void>(frame.make_bytes());
  auto* out = static_cast<std::byte*>(frame.make_bytes());
  const std::size_t stride = frame.out().bytes() / static_cast<std::size_t>(outer);
  std::size_t filled = 0;
  for (std::size_t k = 0; k < frame.inputs.size(); ++k) {
    const std::size_t piece = frame.in(k).bytes() / static_cast<std::size_t>(outer);
    for (std::int64_t o = 0; o < outer; ++o) {
      const std::size_t row = o;
      std::memcpy(out + row * stride + filled, frame.bytes(k) + row * piece, piece);
    }
    filled += piece;
  }
}

void pad(Frame& frame) {
  const auto& params = frame.params<PadParams>();
  const Shape &shape = frame.in().shape, &padded = frame.out().shape;
  const Shape own = row_major_strides(shape), result = row_major_strides(padded);
  void* out = frame.make_bytes();
  fill_elements(load_scalar(frame.out().dtype, frame.bytes(1)), out,
                static_cast<std::size_t>(padded.elements()));

  // Operand index i of an axis goes to low + i · (interior + 1); `dims` are the extents of the part
  // that lands inside.
  Shape dims, strides;
  std::int64_t source = 0, target = 0;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    const std::int64_t step = params.interior[a] + 1, low = params.low[a];
    const std::int64_t first = low < 0 ? (-low + step - 1) / step : 0;
    const std::int64_t room = padded[a] - 1 - low;  // the greatest i · step that still lands inside
    const std::int64_t past = std::min(shape[a], room < 0 ? 0 : room / step + 1);
    dims.push_back(std::max<std::int64_t>(past - first, 0));
    strides.push_back(result[a] * step);
    source += first * own[a];
    target += (low + first * step) * result[a];
  }
  copy_region(frame.out().dtype, dims, frame.bytes(), source, own, out, target, strides);
}

}  // namespace interp_shape
}  // namespace vt::detail
