// Convolutions and functions of windows: pools, reductions over windows. Channels come last unless
// a layout says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <vt/ops.hpp>

namespace vt {

/// What is added around the axes that windows slide along: a scheme, or (low, high) for each of
/// them; negative edges crop. "VALID", the default: nothing. "SAME": as many windows as fit into
/// ⌈extent / stride⌉, the odd one behind; "SAME_LOWER": in front.
class Padding {
 public:
  using Edges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  Padding() = default;
  Padding(const char* scheme) : scheme_(scheme) {}
  Padding(std::string scheme) : scheme_(std::move(scheme)) {}
  Padding(std::initializer_list<std::pair<std::int64_t, std::int64_t>> edges)
      : scheme_(), edges_(edges) {}
  Padding(Edges edges) : scheme_(), edges_(std::move(edges)) {}
  const std::string& scheme() const& { return scheme_; }  ///< empty: edges() hold
  std::string scheme() && { return std::move(scheme_); }
  const Edges& edges() const& { return edges_; }
  Edges edges() && { return std::move(edges_); }

 private:
  std::string scheme_ = "VALID";
  Edges edges_;
};

// --- convolutions --------------------------------------------------------------------------------

/// Numbers per spatial axis; one number holds for all of them, none means 1.
struct ConvOptions {
  Shape strides = {};
  Padding padding = {};
  Shape lhs_dilation = {};  ///< zeros between the elements of x: a stride of 1 / n
  Shape rhs_dilation = {};  ///< between those of the filter ("à trous")
  Param<std::int64_t> feature_group_count = 1;
  Param<std::int64_t> batch_group_count = 1;
  /// The axes of x, a letter each: N images, C channels, any other letters the spatial axes
  /// ("NHWC", "NCHW", "NWC"). Without N: one image.
  std::string layout = {};
  /// I and O features, and the spatial letters of `layout` ("HWIO", "OIHW")
  std::string filter_layout = {};
  std::string out_layout = {};  ///< `layout` unless given
  /// of the sums and the result, if it is to be wider than the operands'
  std::optional<DType> dtype = std::nullopt;
};

/// Convolution as networks have it, which does not flip the filter:
/// y[n, s, o] = Σ x[n, s · stride + p · dilation − low, i] · filter[p, i, o].
/// Shapes: x [N, spatial…, C], filter [spatial…, C / groups, O] → [N, spatial…, O]; x may lack N.
/// Of any number of spatial axes. Dtypes meet as in matmul; f16 and bf16 accumulate in f32, bools
/// count in i32. feature_group_count g: the channels in g parts, each with its own part of the
/// output features. batch_group_count: the images in the same way.
/// Throws: Error (shape) if ranks, channels, groups or layouts do not fit, (value) if a stride or
/// dilation is not positive.
/// Source: XLA's ConvGeneralDilated, JAX `lax.conv_general_dilated`.
[[nodiscard]] Tensor conv(Operand x, Operand filter, const ConvOptions& options = {});
/// conv with one spatial axis.
/// Shapes: [N, W, C], [W, I, O] → [N, W, O].
[[nodiscard]] Tensor conv1d(Operand x, Operand filter, const ConvOptions& options = {});
/// conv with two.
/// Shapes: [N, H, W, C], [H, W, I, O] → [N, H, W, O].
[[nodiscard]] Tensor conv2d(Operand x, Operand filter, const ConvOptions& options = {});
/// conv with three.
/// Shapes: [N, D, H, W, C], [D, H, W, I, O] → [N, D, H, W, O].
[[nodiscard]] Tensor conv3d(Operand x, Operand filter, const ConvOptions& options = {});
/// Each channel by itself, with `m` filters: x [N, spatial…, C], filter [spatial…, C, m] → [N,
/// spatial…, C · m], channel-major.
/// Throws: as conv; groups of other options are refused.
/// Source: TensorFlow's depthwise_conv2d.
[[nodiscard]] Tensor depthwise_conv(Operand x, Operand filter, const ConvOptions& options = {});
/// The same for two spatial axes.
[[nodiscard]] Tensor depthwise_conv2d(Operand x, Operand filter, const ConvOptions& options = {});

/// The convolution with stride 1 / strides: x is dilated by `strides`. Explicit padding is what is
/// added to x after that; "SAME" gives extent · stride, "VALID" what has a VALID convolution of
/// that stride giving x's extent.
/// `transpose_kernel`: the filter is that of the convolution whose derivative this is; it is
/// flipped, and its features change places.
/// Throws: as conv; lhs_dilation and groups are refused.
/// Source: JAX `lax.conv_transpose`.
[[nodiscard]] Tensor conv_transpose(Operand x, Operand filter, const ConvOptions& options = {},
                                    bool transpose_kernel = false);

/// Which part of a convolution convolve gives: all of the sums (n + m − 1), as many as the longer
/// operand has, from the middle, or those that leave nothing out.
enum class ConvolveMode : std::uint8_t { full, same, valid };
/// Σ a[j] · v[k − j] of vectors, the filter flipped, as in signal processing.
/// Source: NumPy `convolve`.
/// Throws: Error (shape) if one is no vector or has no elements.
[[nodiscard]] Tensor convolve(Operand a, Operand v, ConvolveMode mode = ConvolveMode::full);

// --- windows -------------------------------------------------------------------------------------

/// Numbers per axis of x; one number holds for all, none means 1.
struct WindowOptions {
  Shape window;
  Shape strides = {};
  Padding padding = {};
  Shape base_dilation = {};    ///< distance that x's elements are moved to
  Shape window_dilation = {};  ///< distance of the elements that a window takes
};
/// What reduce_window makes of a window.
enum class WindowReduction : std::uint8_t { sum, prod, max, min, any, all };

/// Every window reduced to one element. Padding and gaps hold the reduction's neutral element.
/// Shapes: any → the same rank. max and min have the derivative of the first extreme element of
/// each window; NaN wins.
/// Throws: Error (shape) if there are not as many numbers as axes, (value) if a window, stride or
/// dilation is not positive.
/// Source: JAX `lax.reduce_window`, NN pools.
[[nodiscard]] Tensor reduce_window(Operand x, WindowReduction reduction,
                                   const WindowOptions& options);
namespace detail {
Tensor reduce_window_with(Operand x, Operand init, void* context, FlatBinary body,
                          const WindowOptions& options);
}
/// The same with the associative function f(acc, x), whose neutral element is `init`.
template <class F>
[[nodiscard]] Tensor reduce_window(Operand x, Operand init, F f, const WindowOptions& options) {
  return detail::reduce_window_with(
      x, init, &f,
      [](void* context, std::span<const Tensor> a) -> std::vector<Tensor> {
        return {(*static_cast<F*>(context))(a[0], a[1])};
      },
      options);
}

/// Numbers per spatial axis; one number holds for all.
struct PoolOptions {
  Shape window;
  Shape strides = {};  ///< the window's size unless given
  Padding padding = {};
  Shape dilation = {};
  /// as ConvOptions::layout; else the spatial axes are those before the last
  std::string layout = {};
  /// avg_pool: divide by the window's size also where it sticks out
  bool count_include_pad = false;
};
/// The greatest, least or average element of each window, channel by channel.
/// Shapes: [N, spatial…, C] → the same rank; of as many spatial axes as `window` has numbers (one
/// number: all that N and C leave). Ties have the derivative of their first element. Averages of
/// integers are f32.
/// Throws: as reduce_window.
/// Source: TensorFlow's and Flax's pools.
[[nodiscard]] Tensor max_pool(Operand x, const PoolOptions& options);
[[nodiscard]] Tensor min_pool(Operand x, const PoolOptions& options);
[[nodiscard]] Tensor avg_pool(Operand x, const PoolOptions& options);

}  // namespace vt
