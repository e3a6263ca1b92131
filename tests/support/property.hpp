// What property tests share: random Tensors, comparison that shows the first mismatch, explicit loops over lanes, and finite
// differences. All of it works on host numbers, so that a faulty op cannot hide behind itself.
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
inline constexpr vt::DType all_dtypes[] = {vt::bool_, vt::i8,  vt::u8,  vt::i16,  vt::u16, vt::i32, vt::u32,
                                           vt::i64,   vt::u64, vt::f16, vt::bf16, vt::f32, vt::f64};
inline constexpr vt::DType int_dtypes[] = {vt::i8, vt::u8, vt::i16, vt::u16, vt::i32, vt::u32, vt::i64, vt::u64};
inline constexpr vt::DType float_dtypes[] = {vt::f16, vt::bf16, vt::f32, vt::f64};
/// Zero, one, a few, and a prime above the vector width.
inline const std::vector<std::int64_t> edge_sizes = {0, 1, 3, 17};

/// "interpreter" or "cpu" where every Graph runs on that one. Empty by default: then a Graph seen for the first time is interpreted
/// and later compiled, and as the two sum in different orders, equal formulations may differ by a rounding.
inline std::string_view forced_backend() {
  const char* backend = std::getenv("VT_BACKEND");
  return backend ? backend : "";
}

/// The number in an environment variable: how much of something a mode tries (tests/CMakeLists.txt says how much).
inline std::uint64_t environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// --- making ----------------------------------------------------------------------------------------------------------

/// with_type that knows the complex dtypes, too.
template <class F>
decltype(auto) with_storage(vt::DType dtype, F&& f) {
  if (dtype == vt::c64) return f(std::complex<float>());
  if (dtype == vt::c128) return f(std::complex<double>());
  return vt::detail::with_type(dtype, f);
}

/// A Tensor of any dtype from numbers, each of which the dtype must be able to hold; two for each complex element.
inline vt::Tensor make_tensor(vt::DType dtype, const vt::Shape& shape, const std::vector<double>& values) {
  if (vt::is_complex(dtype)) {
    std::vector<std::complex<double>> elements;
    for (std::size_t i = 0; i < values.size(); i += 2) elements.emplace_back(values[i], values[i + 1]);
    return dtype == vt::c128 ? vt::tensor(elements, shape) : vt::tensor(std::vector<std::complex<float>>(elements.begin(), elements.end()), shape);
  }
  return vt::detail::with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    std::vector<T> elements;
    for (double v : values) {
      if constexpr (std::is_same_v<T, vt::Float16> || std::is_same_v<T, vt::BFloat16>) elements.push_back(T(static_cast<float>(v)));
      else elements.push_back(static_cast<T>(v));
    }
    return vt::tensor(elements, shape);
  });
}

/// Uniform in [low, high], as are both parts of complex numbers (whole numbers for the integer dtypes, negative ones left out for unsigned); a coin
/// for bool.
inline vt::Tensor random_tensor(vt::DType dtype, const vt::Shape& shape, double low, double high, std::uint64_t seed) {
  std::mt19937_64 engine(seed * 0x9e3779b97f4a7c15u + 1);
  std::vector<double> values(static_cast<std::size_t>(shape.elements()) * (vt::is_complex(dtype) ? 2 : 1));
  for (double& v : values) {
    const double unit = static_cast<double>(engine() >> 11) * 0x1p-53;
    if (vt::is_bool(dtype)) v = unit < 0.5;
    else if (vt::is_int(dtype)) {
      const double least = vt::is_unsigned(dtype) ? std::max(low, 0.0) : low;
      v = std::floor(least + unit * (std::floor(high) - least + 1));
    } else {
      v = low + unit * (high - low);
    }
  }
  return make_tensor(dtype, shape, values);
}
inline vt::Tensor random_tensor(vt::DType dtype, const vt::Shape& shape, std::uint64_t seed) { return random_tensor(dtype, shape, -2.0, 2.0, seed); }
/// Small numbers n / 4, |n| ≤ 16: sums and products of a few of them are exact in every float dtype.
inline vt::Tensor random_quarters(vt::DType dtype, const vt::Shape& shape, std::uint64_t seed) {
  std::vector<double> values = random_tensor(vt::i32, shape, -16, 16, seed).to_vector<double>();
  for (double& v : values) v /= 4;
  return make_tensor(dtype, shape, values);
}

// --- comparing -------------------------------------------------------------------------------------------------------

/// Two numbers are close if |a − b| ≤ absolute + relative · |b| + ulps · ulp(b), or if both are NaN, or equal.
struct Tolerance {
  double ulps = 0, relative = 0, absolute = 0;
};
inline constexpr Tolerance exact{};

/// Distance from |x| to the next larger number of the dtype.
inline double ulp_of(double x, vt::DType dtype) {
  const int bits = dtype == vt::f16 ? 11 : dtype == vt::bf16 ? 8 : dtype == vt::f32 ? 24 : 53;
  const int least = dtype == vt::f16 ? -24 : dtype == vt::bf16 ? -133 : dtype == vt::f32 ? -149 : -1074;
  if (!std::isfinite(x)) return 0;
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, x == 0 ? least : std::max(exponent - bits, least));
}

inline bool close(double a, double b, vt::DType dtype, const Tolerance& t) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::fabs(a - b) <= t.absolute + t.relative * std::fabs(b) + t.ulps * ulp_of(b, dtype);
}

/// Of complex numbers: the same of each part, or the distance in the plane is that small.
inline bool close(std::complex<double> a, std::complex<double> b, vt::DType part, const Tolerance& t) {
  if (close(a.real(), b.real(), part, t) && close(a.imag(), b.imag(), part, t)) return true;
  return std::abs(a - b) <= t.absolute + t.relative * std::abs(b) + t.ulps * ulp_of(std::abs(b), part);
}

/// "[1,2]" for element `flat` of a Tensor of `shape`.
inline std::string index_text(std::int64_t flat, const vt::Shape& shape) {
  std::string text;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const std::int64_t extent = shape[static_cast<std::size_t>(i)];
    text = std::to_string(flat % extent) + (text.empty() ? "" : ",") + text;
    flat /= extent;
  }
  return "[" + text + "]";
}

/// Numbers of one byte are no characters.
inline auto shown(auto x) {
  if constexpr (std::is_arithmetic_v<decltype(x)>) return +x;
  else return x;
}

/// `actual` has the dtype and shape of `expected` and is close to it everywhere.
inline ::testing::AssertionResult all_close(const vt::Tensor& actual, const vt::Tensor& expected, const Tolerance& tolerance = exact) {
  const vt::DType dtype = expected.dtype();
  if (actual.dtype() != dtype || !(actual.shape() == expected.shape()))
    return ::testing::AssertionFailure() << "got " << vt::name_of(actual.dtype()) << actual.shape().str() << ", expected " << vt::name_of(dtype)
                                         << expected.shape().str();
  std::ostringstream faults;
  faults.precision(17);
  std::int64_t wrong = 0, first = 0;
  auto check = [&](const auto& a, const auto& b, auto&& same) {
    for (std::size_t i = 0; i < b.size(); ++i) {
      if (same(a[i], b[i])) continue;
      if (wrong++ != 0) continue;
      first = static_cast<std::int64_t>(i);
      faults << "element " << index_text(first, expected.shape()) << ": got " << shown(a[i]) << ", expected " << shown(b[i]);
    }
  };
  if (vt::is_complex(dtype)) {
    const vt::DType part = vt::real_dtype(dtype);
    check(actual.to_vector<std::complex<double>>(), expected.to_vector<std::complex<double>>(),
          [&](std::complex<double> a, std::complex<double> b) { return close(a, b, part, tolerance); });
  } else if (vt::is_float(dtype))
    check(actual.to_vector<double>(), expected.to_vector<double>(), [&](double a, double b) { return close(a, b, dtype, tolerance); });
  else if (dtype == vt::u64) check(actual.to_vector<std::uint64_t>(), expected.to_vector<std::uint64_t>(), [](auto a, auto b) { return a == b; });
  else check(actual.to_vector<std::int64_t>(), expected.to_vector<std::int64_t>(), [](auto a, auto b) { return a == b; });
  if (wrong == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << faults.str() << " (" << wrong << " of " << expected.size() << " differ, " << vt::name_of(dtype)
                                       << expected.shape().str() << ")";
}

inline void expect_close(const vt::Tensor& actual, const vt::Tensor& expected, const Tolerance& tolerance = exact, const std::string& what = {}) {
  const ::testing::AssertionResult result = all_close(actual, expected, tolerance);
  if (!result) ADD_FAILURE() << (what.empty() ? "" : what + ": ") << result.message();
}
inline void expect_close(const std::vector<vt::Tensor>& actual, const std::vector<vt::Tensor>& expected, const Tolerance& tolerance = exact,
                         const std::string& what = {}) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i)
    expect_close(actual[i], expected[i], tolerance, what + (expected.size() > 1 ? " result " + std::to_string(i) : ""));
}

/// A vt::Error is thrown whose message holds every one of `parts`.
template <class F>
void expect_error(F&& f, vt::ErrorKind kind, const std::vector<std::string>& parts) {
  try {
    f();
  } catch (const vt::Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << "no \"" << part << "\" in: " << error.what();
    return;
  }
  ADD_FAILURE() << "no vt::Error was thrown" << (parts.empty() ? "" : "; expected one about \"" + parts[0] + "\"");
}

// --- lanes -----------------------------------------------------------------------------------------------------------

namespace lanes {
/// Sizes before and after an axis.
struct Split {
  std::int64_t outer = 1, extent = 1, inner = 1;
  Split(const vt::Shape& shape, int axis) {
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? outer : i == axis ? extent : inner) *= shape[static_cast<std::size_t>(i)];
  }
};
inline int resolve(int axis, int rank) { return axis < 0 ? axis + rank : axis; }
}  // namespace lanes

/// Element `lane` of `axis` (negative: from the end), which is dropped; on the host.
inline vt::Tensor take_lane(const vt::Tensor& x, int axis, std::int64_t lane) {
  axis = lanes::resolve(axis, x.rank());
  const lanes::Split split(x.shape(), axis);
  vt::Shape shape = x.shape();
  shape.erase(shape.begin() + axis);
  return with_storage(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const std::vector<T> all = x.to_vector<T>();
    std::vector<T> picked;
    for (std::int64_t o = 0; o < split.outer; ++o)
      for (std::int64_t k = 0; k < split.inner; ++k) picked.push_back(all[static_cast<std::size_t>((o * split.extent + lane) * split.inner + k)]);
    return vt::tensor(picked, shape);
  });
}

/// Lays Tensors of one shape along a new axis (negative: from the end of the result); on the host. `parts` is not empty.
inline vt::Tensor stack_lanes(const std::vector<vt::Tensor>& parts, int axis) {
  axis = lanes::resolve(axis, parts[0].rank() + 1);
  vt::Shape shape = parts[0].shape();
  shape.insert(shape.begin() + axis, static_cast<std::int64_t>(parts.size()));
  const lanes::Split split(shape, axis);
  return with_storage(parts[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::vector<T> all(static_cast<std::size_t>(shape.elements()));
    for (std::size_t lane = 0; lane < parts.size(); ++lane) {
      const std::vector<T> part = parts[lane].to_vector<T>();
      for (std::int64_t o = 0; o < split.outer; ++o)
        for (std::int64_t k = 0; k < split.inner; ++k)
          all[static_cast<std::size_t>((o * split.extent + static_cast<std::int64_t>(lane)) * split.inner + k)] =
              part[static_cast<std::size_t>(o * split.inner + k)];
    }
    return vt::tensor(all, shape);
  });
}

/// What vmap must equal: f called for one lane after the other, the results stacked. An operand without an axis goes to every
/// lane whole. At least one lane.
inline std::vector<vt::Tensor> stack_loop(const FlatFunction& f, const std::vector<vt::Tensor>& arguments, const vt::Vec<std::optional<int>>& in_axes,
                                          int out_axis = 0) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (in_axes[i]) count = arguments[i].dim(*in_axes[i]);
  std::vector<std::vector<vt::Tensor>> results;
  for (std::int64_t lane = 0; lane < count; ++lane) {
    std::vector<vt::Tensor> own;
    for (std::size_t i = 0; i < arguments.size(); ++i) own.push_back(in_axes[i] ? take_lane(arguments[i], *in_axes[i], lane) : arguments[i]);
    const std::vector<vt::Tensor> outputs = f(own);
    results.resize(outputs.size());
    for (std::size_t k = 0; k < outputs.size(); ++k) results[k].push_back(outputs[k]);
  }
  std::vector<vt::Tensor> stacked;
  for (const auto& parts : results) stacked.push_back(stack_lanes(parts, out_axis));
  return stacked;
}
/// The same for a C++ function of Tensors with one result, all mapped over `axis`.
template <class F, class... Ts>
vt::Tensor stack_loop(F&& f, int axis, const Ts&... arguments) {
  const FlatFunction flat = [&](const std::vector<vt::Tensor>& a) -> std::vector<vt::Tensor> {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::vector<vt::Tensor>{f(a[I]...)}; }(std::index_sequence_for<Ts...>{});
  };
  return stack_loop(flat, {arguments...}, vt::Vec<std::optional<int>>(sizeof...(Ts), axis))[0];
}

// --- derivatives -----------------------------------------------------------------------------------------------------

/// x + s · d, on the host, in f64.
inline vt::Tensor shifted(const vt::Tensor& x, const vt::Tensor& d, double s) {
  std::vector<double> a = x.to_vector<double>();
  const std::vector<double> b = d.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += s * b[i];
  return vt::tensor(a, x.shape());
}

/// d/dt f(x + t·d) at 0 for f64 arguments: central differences at h and 2h with the h² term cancelled (error ∝ h⁴).
inline std::vector<vt::Tensor> difference(const FlatFunction& f, const std::vector<vt::Tensor>& x, const std::vector<vt::Tensor>& d,
                                          double h = 1e-3) {
  auto at = [&](double t) {
    std::vector<vt::Tensor> moved;
    for (std::size_t i = 0; i < x.size(); ++i) moved.push_back(shifted(x[i], d[i], t));
    return f(moved);
  };
  const auto p1 = at(h), m1 = at(-h), p2 = at(2 * h), m2 = at(-2 * h);
  std::vector<vt::Tensor> result;
  for (std::size_t k = 0; k < p1.size(); ++k) {
    const auto a = p1[k].to_vector<double>(), b = m1[k].to_vector<double>(), c = p2[k].to_vector<double>(), e = m2[k].to_vector<double>();
    std::vector<double> slope(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) slope[i] = (8 * (a[i] - b[i]) - (c[i] - e[i])) / (12 * h);
    result.push_back(vt::tensor(slope, p1[k].shape()));
  }
  return result;
}

/// The Jacobian of a C++ function of one f64 Tensor by differences: shape [result…, argument…].
template <class F>
vt::Tensor numeric_jacobian(F&& f, const vt::Tensor& x, double h = 1e-3) {
  const FlatFunction flat = [&](const std::vector<vt::Tensor>& a) -> std::vector<vt::Tensor> { return {f(a[0])}; };
  std::vector<vt::Tensor> columns;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    std::vector<double> unit(static_cast<std::size_t>(x.size()), 0.0);
    unit[static_cast<std::size_t>(i)] = 1;
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
inline double inner_product(const std::vector<vt::Tensor>& a, const std::vector<vt::Tensor>& b) {
  long double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const auto x = a[k].to_vector<double>(), y = b[k].to_vector<double>();
    for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<long double>(x[i]) * y[i];
  }
  return static_cast<double>(sum);
}

}  // namespace vt_test
