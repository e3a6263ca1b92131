// Discrete Fourier transforms, as NumPy's numpy.fft.
#pragma once

#include <vt/ops.hpp>

/// Transforms of any length ≥ 1 along one axis or several; f32, c64 and narrower dtypes are
/// computed in f32, f64 and c128 in f64. `n` (for several axes `s`) crops the axis or fills it up
/// with zeros first. Forward: X[k] = Σ x[j]·exp(−2πi·jk/n). All are linear, with both modes of
/// differentiation and a batch rule. Throws: Error for an axis out of range or named twice, and for
/// lengths below 1.
namespace vt::fft {

/// Where the factor 1/n is: in the inverse transform, its root in both, or in the forward one.
enum class Norm : std::uint8_t { backward, ortho, forward };

/// The length of the transform; std::nullopt: that of the axis.
using Length = std::optional<Param<std::int64_t>>;
/// The lengths along several axes; std::nullopt: those of the axes.
struct Lengths : std::optional<Shape> {
  using std::optional<Shape>::optional;
  Lengths(std::initializer_list<Dim> lengths) : std::optional<Shape>(Shape(lengths)) {}
};
/// The axes to transform; std::nullopt: the last ones, as many as there are lengths, or all.
struct TransformAxes : std::optional<Axes> {
  using std::optional<Axes>::optional;
  TransformAxes(std::initializer_list<Param<int>> axes) : std::optional<Axes>(Axes(axes)) {}
};

/// Complex → complex; real operands are converted first.
[[nodiscard]] Tensor fft(Operand x, Length n = std::nullopt, Param<int> axis = -1,
                         Norm norm = Norm::backward);
[[nodiscard]] Tensor ifft(Operand x, Length n = std::nullopt, Param<int> axis = -1,
                          Norm norm = Norm::backward);
/// Real → complex: the n/2 + 1 numbers of the transform that are not conjugates of others. Throws:
/// Error for complex operands.
[[nodiscard]] Tensor rfft(Operand x, Length n = std::nullopt, Param<int> axis = -1,
                          Norm norm = Norm::backward);
/// Complex → real: the inverse of rfft, of n elements (2·(m − 1) of m unless given). What belongs
/// to conjugates is not read.
[[nodiscard]] Tensor irfft(Operand x, Length n = std::nullopt, Param<int> axis = -1,
                           Norm norm = Norm::backward);
/// The real spectrum of a signal that equals its mirrored conjugate, from its first half; and back.
[[nodiscard]] Tensor hfft(Operand x, Length n = std::nullopt, Param<int> axis = -1,
                          Norm norm = Norm::backward);
[[nodiscard]] Tensor ihfft(Operand x, Length n = std::nullopt, Param<int> axis = -1,
                           Norm norm = Norm::backward);

/// Over several axes; the real transforms have their half along the last of them.
[[nodiscard]] Tensor fftn(Operand x, const Lengths& s = std::nullopt,
                          const TransformAxes& axes = std::nullopt, Norm norm = Norm::backward);
[[nodiscard]] Tensor ifftn(Operand x, const Lengths& s = std::nullopt,
                           const TransformAxes& axes = std::nullopt, Norm norm = Norm::backward);
[[nodiscard]] Tensor rfftn(Operand x, const Lengths& s = std::nullopt,
                           const TransformAxes& axes = std::nullopt, Norm norm = Norm::backward);
[[nodiscard]] Tensor irfftn(Operand x, const Lengths& s = std::nullopt,
                            const TransformAxes& axes = std::nullopt, Norm norm = Norm::backward);
/// The same over two axes: the last two, unless `axes` says which.
[[nodiscard]] Tensor fft2(Operand x, const Lengths& s = std::nullopt,
                          const TransformAxes& axes = std::nullopt, Norm norm = Norm::backward);
[[nodiscard]] Tensor ifft2(Operand x, const Lengths& s = std::nullopt,
                           const TransformAxes& axes = std::nullopt, Norm norm = Norm::backward);
[[nodiscard]] Tensor rfft2(Operand x, const Lengths& s = std::nullopt,
                           const TransformAxes& axes = std::nullopt, Norm norm = Norm::backward);
[[nodiscard]] Tensor irfft2(Operand x, const Lengths& s = std::nullopt,
                            const TransformAxes& axes = std::nullopt, Norm norm = Norm::backward);

/// The frequencies of the results of fft (0, 1, …, −1) and rfft (0, 1, …, n/2), over n·d.
[[nodiscard]] Tensor fftfreq(Param<std::int64_t> n, Param<double> d = 1.0, DType = default_dtype(),
                             CallSite = CallSite::here());
[[nodiscard]] Tensor rfftfreq(Param<std::int64_t> n, Param<double> d = 1.0, DType = default_dtype(),
                              CallSite = CallSite::here());
using vt::fftshift;
using vt::ifftshift;

}  // namespace vt::fft
