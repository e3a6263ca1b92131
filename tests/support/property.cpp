// The parts of property.hpp that go over elements: compiled once for all suites, with the
// optimiser, which most suites are compiled without.
#include "property.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>

namespace vt_test {

namespace {
/// Numbers of one byte are no characters.
auto shown(auto x) {
  if constexpr (std::is_arithmetic_v<decltype(x)>) return +x;
  else return x;
}
}  // namespace

vt::Tensor make_tensor(vt::DType dtype, const vt::Shape& shape, const std::vector<double>& values) {
  if (vt::is_complex(dtype)) {
    std::vector<std::complex<double>> elements;
    for (std::size_t i = 0; i < values.size(); i += 2)
      elements.emplace_back(values[i], values[i + 1]);
    return dtype == vt::c128
               ? vt::tensor(elements, shape)
               : vt::tensor(std::vector<std::complex<float>>(elements.begin(), elements.end()),
                            shape);
  }
  return vt::detail::with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    std::vector<T> elements;
    for (double v : values) {
      if constexpr (std::is_same_v<T, vt::Float16> || std::is_same_v<T, vt::BFloat16>)
        elements.push_back(T(static_cast<float>(v)));
      else elements.push_back(static_cast<T>(v));
    }
    return vt::tensor(elements, shape);
  });
}

vt::Tensor random_tensor(vt::DType dtype, const vt::Shape& shape, double low, double high,
                         std::uint64_t seed) {
  std::mt19937_64 engine(seed * 0x9e3779b97f4a7c15u + 1);
  std::vector<double> values(static_cast<std::size_t>(shape.elements()) *
                             (vt::is_complex(dtype) ? 2 : 1));
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

vt::Tensor random_tensor(vt::DType dtype, const vt::Shape& shape, std::uint64_t seed) {
  return random_tensor(dtype, shape, -2.0, 2.0, seed);
}

vt::Tensor random_quarters(vt::DType dtype, const vt::Shape& shape, std::uint64_t seed) {
  std::vector<double> values = random_tensor(vt::i32, shape, -16, 16, seed).to_vector<double>();
  for (double& v : values) v /= 4;
  return make_tensor(dtype, shape, values);
}

double ulp_of(double x, vt::DType dtype) {
  const int bits = dtype == vt::f16 ? 11 : dtype == vt::bf16 ? 8 : dtype == vt::f32 ? 24 : 53;
  const int least = dtype == vt::f16    ? -24
                    : dtype == vt::bf16 ? -133
                    : dtype == vt::f32  ? -149
                                        : -1074;
  if (!std::isfinite(x)) return 0;
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, x == 0 ? least : std::max(exponent - bits, least));
}

bool close(double a, double b, vt::DType dtype, const Tolerance& t) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::fabs(a - b) <= t.absolute + t.relative * std::fabs(b) + t.ulps * ulp_of(b, dtype);
}

bool close(std::complex<double> a, std::complex<double> b, vt::DType part, const Tolerance& t) {
  if (close(a.real(), b.real(), part, t) && close(a.imag(), b.imag(), part, t)) return true;
  return std::abs(a - b) <=
         t.absolute + t.relative * std::abs(b) + t.ulps * ulp_of(std::abs(b), part);
}

std::string index_text(std::int64_t flat, const vt::Shape& shape) {
  std::string text;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const std::int64_t extent = shape[i];
    text = std::to_string(flat % extent) + (text.empty() ? "" : ",") + text;
    flat /= extent;
  }
  return "[" + text + "]";
}

::testing::AssertionResult all_close(const vt::Tensor& actual, const vt::Tensor& expected,
                                     const Tolerance& tolerance) {
  const vt::DType dtype = expected.dtype();
  if (actual.dtype() != dtype || !(actual.shape() == expected.shape()))
    return ::testing::AssertionFailure()
           << "got " << vt::name_of(actual.dtype()) << actual.shape().str() << ", expected "
           << vt::name_of(dtype) << expected.shape().str();
  std::ostringstream faults;
  faults.precision(17);
  std::int64_t wrong = 0, first = 0;
  auto check = [&](const auto& a, const auto& b, auto&& same) {
    for (std::size_t i = 0; i < b.size(); ++i) {
      if (same(a[i], b[i])) continue;
      if (wrong++ != 0) continue;
      first = static_cast<std::int64_t>(i);
      faults << "element " << index_text(first, expected.shape()) << ": got " << shown(a[i])
             << ", expected " << shown(b[i]);
    }
  };
  if (vt::is_complex(dtype)) {
    const vt::DType part = vt::real_dtype(dtype);
    check(actual.to_vector<std::complex<double>>(), expected.to_vector<std::complex<double>>(),
          [&](std::complex<double> a, std::complex<double> b) {
            return close(a, b, part, tolerance);
          });
  } else if (vt::is_float(dtype))
    check(actual.to_vector<double>(), expected.to_vector<double>(),
          [&](double a, double b) { return close(a, b, dtype, tolerance); });
  else if (dtype == vt::u64)
    check(actual.to_vector<std::uint64_t>(), expected.to_vector<std::uint64_t>(),
          [](auto a, auto b) { return a == b; });
  else
    check(actual.to_vector<std::int64_t>(), expected.to_vector<std::int64_t>(),
          [](auto a, auto b) { return a == b; });
  if (wrong == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << faults.str() << " (" << wrong << " of " << expected.size() << " differ, "
         << vt::name_of(dtype) << expected.shape().str() << ")";
}

void expect_close(const vt::Tensor& actual, const vt::Tensor& expected, const Tolerance& tolerance,
                  const std::string& what) {
  const ::testing::AssertionResult result = all_close(actual, expected, tolerance);
  if (!result) ADD_FAILURE() << (what.empty() ? "" : what + ": ") << result.message();
}

void expect_close(const std::vector<vt::Tensor>& actual, const std::vector<vt::Tensor>& expected,
                  const Tolerance& tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i)
    expect_close(actual[i], expected[i], tolerance,
                 what + (expected.size() > 1 ? " result " + std::to_string(i) : ""));
}

vt::Tensor take_lane(const vt::Tensor& x, int axis, std::int64_t lane) {
  axis = lanes::resolve(axis, x.rank());
  const lanes::Split split(x.shape(), axis);
  vt::Shape shape = x.shape();
  shape.erase(shape.begin() + axis);
  return with_storage(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const std::vector<T> all = x.to_vector<T>();
    std::vector<T> picked;
    for (std::int64_t o = 0; o < split.outer; ++o)
      for (std::int64_t k = 0; k < split.inner; ++k)
        picked.push_back(all[(o * split.extent + lane) * split.inner + k]);
    return vt::tensor(picked, shape);
  });
}

vt::Tensor stack_lanes(const std::vector<vt::Tensor>& parts, int axis) {
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
          all[(o * split.extent + static_cast<std::int64_t>(lane)) * split.inner + k] =
              part[o * split.inner + k];
    }
    return vt::tensor(all, shape);
  });
}

std::vector<vt::Tensor> stack_loop(const FlatFunction& f, const std::vector<vt::Tensor>& arguments,
                                   const vt::Vec<std::optional<int>>& in_axes, int out_axis) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (in_axes[i]) count = arguments[i].dim(*in_axes[i]);
  std::vector<std::vector<vt::Tensor>> results;
  for (std::int64_t lane = 0; lane < count; ++lane) {
    std::vector<vt::Tensor> own;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      own.push_back(in_axes[i] ? take_lane(arguments[i], *in_axes[i], lane) : arguments[i]);
    const std::vector<vt::Tensor> outputs = f(own);
    results.resize(outputs.size());
    for (std::size_t k = 0; k < outputs.size(); ++k) results[k].push_back(outputs[k]);
  }
  std::vector<vt::Tensor> stacked;
  for (const auto& parts : results) stacked.push_back(stack_lanes(parts, out_axis));
  return stacked;
}

vt::Tensor shifted(const vt::Tensor& x, const vt::Tensor& d, double s) {
  std::vector<double> a = x.to_vector<double>();
  const std::vector<double> b = d.to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += s * b[i];
  return vt::tensor(a, x.shape());
}

std::vector<vt::Tensor> difference(const FlatFunction& f, const std::vector<vt::Tensor>& x,
                                   const std::vector<vt::Tensor>& d, double h) {
  auto at = [&](double t) {
    std::vector<vt::Tensor> moved;
    for (std::size_t i = 0; i < x.size(); ++i) moved.push_back(shifted(x[i], d[i], t));
    return f(moved);
  };
  const auto p1 = at(h), m1 = at(-h), p2 = at(2 * h), m2 = at(-2 * h);
  std::vector<vt::Tensor> result;
  for (std::size_t k = 0; k < p1.size(); ++k) {
    const auto a = p1[k].to_vector<double>(), b = m1[k].to_vector<double>(),
               c = p2[k].to_vector<double>(), e = m2[k].to_vector<double>();
    std::vector<double> slope(a.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      slope[i] = (8 * (a[i] - b[i]) - (c[i] - e[i])) / (12 * h);
    result.push_back(vt::tensor(slope, p1[k].shape()));
  }
  return result;
}

double inner_product(const std::vector<vt::Tensor>& a, const std::vector<vt::Tensor>& b) {
  long double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const auto x = a[k].to_vector<double>(), y = b[k].to_vector<double>();
    for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<long double>(x[i]) * y[i];
  }
  return static_cast<double>(sum);
}

}  // namespace vt_test
