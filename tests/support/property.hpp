// What property tests share: random Tensors, comparison that shows the first mismatch, explicit
// loops over lanes, and finite differences. All of it works on host numbers, so that a faulty op
// cannot hide behind itself.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <vt/vt.hpp>

namespace vt_test {

using FlatFunction = std::function<std::vector<vt::Tensor>(const std::vector<vt::Tensor>&)>;

/// All but the complex ones.
inline constexpr vt::DType all_dtypes[] = {vt::bool_, vt::i8,  vt::u8,  vt::i16, vt::u16,
                                           vt::i32,   vt::u32, vt::i64, vt::u64, vt::f16,
                                           vt::bf16,  vt::f32, vt::f64};
inline constexpr vt::DType int_dtypes[] = {vt::i8,  vt::u8,  vt::i16, vt::u16,
                                           vt::i32, vt::u32, vt::i64, vt::u64};
inline constexpr vt::DType float_dtypes[] = {vt::f16, vt::bf16, vt::f32, vt::f64};
/// Zero, one, a few, and a prime above the vector width.
inline const std::vector<std::int64_t> edge_sizes = {0, 1, 3, 17};

/// "interpreter" or "cpu" where every Graph runs on that one. Empty by default: then a Graph seen
/// for the first time is interpreted and later compiled, and as the two sum in different orders,
/// equal formulations may differ by a rounding.
inline std::string_view forced_backend() {
  const char* backend = std::getenv("VT_BACKEND");
  return backend ? backend : "";
}

/// The number in an environment variable: how much of something a mode tries (tests/CMakeLists.txt
/// says how much).
inline std::uint64_t environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// --- making --------------------------------------------------------------------------------------

/// with_type that knows the complex dtypes, too.
template <class F>
decltype(auto) with_storage(vt::DType dtype, F&& f) {
  if (dtype == vt::c64) return f(std::complex<float>());
  if (dtype == vt::c128) return f(std::complex<double>());
  return vt::detail::with_type(dtype, f);
}

/// A Tensor of any dtype from numbers, each of which the dtype must be able to hold; two for each
/// complex element.
vt::Tensor make_tensor(vt::DType dtype, const vt::Shape& shape, const std::vector<double>& values);

/// Uniform in [low, high], as are both parts of complex numbers (whole numbers for the integer
/// dtypes, negative ones left out for unsigned); a coin for bool.
vt::Tensor random_tensor(vt::DType dtype, const vt::Shape& shape, double low, double high,
                         std::uint64_t seed);
vt::Tensor random_tensor(vt::DType dtype, const vt::Shape& shape, std::uint64_t seed);
/// Small numbers n / 4, |n| ≤ 16: sums and products of a few of them are exact in every float
/// dtype.
vt::Tensor random_quarters(vt::DType dtype, const vt::Shape& shape, std::uint64_t seed);

// --- comparing -----------------------------------------------------------------------------------

/// Two numbers are close if |a − b| ≤ absolute + relative · |b| + ulps · ulp(b), or if both are
/// NaN, or equal.
struct Tolerance {
  double ulps = 0, relative = 0, absolute = 0;
};
inline constexpr Tolerance exact{};

/// Distance from |x| to the next larger number of the dtype.
double ulp_of(double x, vt::DType dtype);

bool close(double a, double b, vt::DType dtype, const Tolerance& t);

/// Of complex numbers: the same of each part, or the distance in the plane is that small.
bool close(std::complex<double> a, std::complex<double> b, vt::DType part, const Tolerance& t);

/// "[1,2]" for element `flat` of a Tensor of `shape`.
std::string index_text(std::int64_t flat, const vt::Shape& shape);

/// `actual` has the dtype and shape of `expected` and is close to it everywhere.
::testing::AssertionResult all_close(const vt::Tensor& actual, const vt::Tensor& expected,
                                     const Tolerance& tolerance = exact);

void expect_close(const vt::Tensor& actual, const vt::Tensor& expected,
                  const Tolerance& tolerance = exact, const std::string& what = {});
void expect_close(const std::vector<vt::Tensor>& actual, const std::vector<vt::Tensor>& expected,
                  const Tolerance& tolerance = exact, const std::string& what = {});

/// A vt::Error is thrown whose message holds every one of `parts`.
template <class F>
void expect_error(F&& f, vt::ErrorKind kind, const std::vector<std::string>& parts) {
  try {
    f();
  } catch (const vt::Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "no \"" << part << "\" in: " << error.what();
    return;
  }
  ADD_FAILURE() << "no vt::Error was thrown"
                << (parts.empty() ? "" : "; expected one about \"" + parts[0] + "\"");
}

// --- lanes ---------------------------------------------------------------------------------------

namespace lanes {
/// Sizes before and after an axis.
struct Split {
  std::int64_t outer = 1, extent = 1, inner = 1;
  Split(const vt::Shape& shape, int axis) {
    for (int i = 0; i < shape.rank(); ++i)
      (i < axis ? outer : i == axis ? extent : inner) *= shape[i];
  }
};
inline int resolve(int axis, int rank) { return axis < 0 ? axis + rank : axis; }
}  // namespace lanes

/// Element `lane` of `axis` (negative: from the end), which is dropped; on the host.
vt::Tensor take_lane(const vt::Tensor& x, int axis, std::int64_t lane);

/// Lays Tensors of one shape along a new axis (negative: from the end of the result); on the host.
/// `parts` is not empty.
vt::Tensor stack_lanes(const std::vector<vt::Tensor>& parts, int axis);

/// What vmap must equal: f called for one lane after the other, the results stacked. An operand
/// without an axis goes to every lane whole. At least one lane.
std::vector<vt::Tensor> stack_loop(const FlatFunction& f, const std::vector<vt::Tensor>& arguments,
                                   const vt::Vec<std::optional<int>>& in_axes, int out_axis = 0);
/// The same for a C++ function of Tensors with one result, all mapped over `axis`.
template <class F, class... Ts>
vt::Tensor stack_loop(F&& f, int axis, const Ts&... arguments) {
  const FlatFunction flat = [&](const std::vector<vt::Tensor>& a) -> std::vector<vt::Tensor> {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::vector<vt::Tensor>{f(a[I]...)};
    }(std::index_sequence_for<Ts...>{});
  };
  return stack_loop(flat, {arguments...}, vt::Vec<std::optional<int>>(sizeof...(Ts), axis))[0];
}

// --- derivatives ---------------------------------------------------------------------------------

/// x + s · d, on the host, in f64.
vt::Tensor shifted(const vt::Tensor& x, const vt::Tensor& d, double s);

/// d/dt f(x + t·d) at 0 for f64 arguments: central differences at h and 2h with the h² term
/// cancelled (error ∝ h⁴).
std::vector<vt::Tensor> difference(const FlatFunction& f, const std::vector<vt::Tensor>& x,
                                   const std::vector<vt::Tensor>& d, double h = 1e-3);

/// The Jacobian of a C++ function of one f64 Tensor by differences: shape [result…, argument…].
template <class F>
vt::Tensor numeric_jacobian(F&& f, const vt::Tensor& x, double h = 1e-3) {
  const FlatFunction flat = [&](const std::vector<vt::Tensor>& a) -> std::vector<vt::Tensor> {
    return {f(a[0])};
  };
  std::vector<vt::Tensor> columns;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    std::vector<double> unit(static_cast<std::size_t>(x.size()), 0.0);
    unit[i] = 1;
    columns.push_back(difference(flat, {x}, {vt::tensor(unit, x.shape())}, h)[0]);
  }
  if (columns.empty()) {
    vt::Shape shape = vt::Tensor(f(x)).shape();
    shape.append(x.shape().begin(), x.shape().end());
    return vt::tensor(std::vector<double>{}, shape);
  }
  const vt::Tensor stacked = stack_lanes(columns, -1);
  vt::Shape shape = columns[0].shape();
  shape.append(x.shape().begin(), x.shape().end());
  return vt::tensor(stacked.to_vector<double>(), shape);
}
/// The gradient of a function with a scalar result.
template <class F>
vt::Tensor numeric_gradient(F&& f, const vt::Tensor& x, double h = 1e-3) {
  return numeric_jacobian(std::forward<F>(f), x, h);
}

/// Σ aᵢ·bᵢ over all elements of two lists of Tensors: ⟨a, b⟩.
double inner_product(const std::vector<vt::Tensor>& a, const std::vector<vt::Tensor>& b);

}  // namespace vt_test
