// log, exp and their like from sums, products, quotients, roots and bits alone.
#include "exact_functions.hpp"

#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "../../base/locks.hpp"
#include "../../numerics/special_tables.hpp"
#include "../../record/node.hpp"
#include "../support/element_functions.hpp"

namespace vt::detail::exact {

namespace exact_parts {

using element_functions::Leaves, element_functions::Tensors;

// ln 2 in two parts: multiples of the first by small whole numbers are exact.
constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
constexpr double infinity = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

Tensor horner(const Tensor& x, std::span<const double> c) {
  Tensor r = x * c[c.size() - 1] + c[c.size() - 2];
  for (std::size_t k = c.size() - 2; k-- > 0;) r = r * x + c[k];
  return r;
}
/// A polynomial of special_tables.hpp.
Tensor fitted(const Tensor& x, std::span<const double> table) {
  return horner((x - table[0]) * table[1], table.subspan(2));
}

// x = 2^k m with m from √½ to √2, and log m = 2 artanh((m − 1)/(m + 1)).
Tensor log_value(const Tensor& x) {
  constexpr double series[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13,
                               2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
  const Tensor tiny = x < std::numeric_limits<double>::min();
  const Tensor bits = bitcast(where(tiny, x * 0x1p54, x), i64);
  const Tensor exponent = shift_right_arithmetic(bits - std::int64_t{0x3fe6a09e667f3bcd}, 52);
  const Tensor m = bitcast(bits - shift_left(exponent, 52), f64),
               k = exponent.astype(f64) - where(tiny, 54.0, 0.0);
  const Tensor s = (m - 1.0) / (m + 1.0), z = s * s;
  const Tensor value = k * ln2_high + (2.0 * s + (s * z * horner(z, series) + k * ln2_low));
  return where(x > 0.0, where(x < infinity, value, x), where(equal(x, 0.0), -infinity, nan));
}

// exp(k ln 2 + r) = 2^k exp(r), the power in two factors, each of which is a number.
Tensor exp_value(const Tensor& given) {
  double series[14] = {1};  // 1/n!
  for (int n = 1; n < 14; ++n) series[n] = series[n - 1] / n;
  const Tensor x = minimum(maximum(given, -746.0), 710.0);
  const Tensor k = round(x * std::numbers::log2e), r = (x - k * ln2_high) - k * ln2_low;
  const Tensor whole = k.astype(i64), half = shift_right_arithmetic(whole, 1);
  const auto power = [](const Tensor& n) { return bitcast(shift_left(n + 1023, 52), f64); };
  return horner(r, series) * power(half) * power(whole - half);
}

/// erf_inv(x) / x, as special_math::erfc_inv has it; `far` has s beyond 6.6.
Tensor erf_inv_ratio(const Tensor& w, const Tensor& s, const Tensor& far) {
  return where(w < 5.0, fitted(w, special_tables::erf_inv_low),
               where(s > 3.6, far, fitted(s, special_tables::erf_inv_middle)));
}
Tensor erf_inv_value(const Tensor& x) {
  const Tensor w = -log_value((1.0 - x) * (1.0 + x)), s = sqrt(maximum(w, 4.0));
  const Tensor ratio = erf_inv_ratio(w, s, fitted(s, special_tables::erf_inv_high));
  return where(equal(abs(x), 1.0), x * infinity, x * ratio);
}

/// What has been recorded of a function for operands of a shape: calls with one body and one rule
/// are equal, for autobatch, too, and recorded at once.
class Recordings {
 public:
  using Key = std::pair<Tensor (*)(const Tensor&), Shape>;
  static Recordings& all() {
    static auto* const all = new Recordings;  // functions may be recorded while the process ends
    return *all;
  }
  ParamsRef find(const Key& key) {
    const std::lock_guard lock(mutex_);
    for (const auto& [known, params] : recordings_)
      if (known == key) return params;
    return {};
  }
  void add(Key key, ParamsRef params) {
    const std::lock_guard lock(mutex_);
    if (recordings_.size() == most) recordings_.erase(recordings_.begin());
    recordings_.emplace_back(std::move(key), std::move(params));
  }

 private:
  static constexpr std::size_t most = 64;
  Mutex mutex_;
  std::vector<std::pair<Key, ParamsRef>> recordings_;
};

/// An equation whose derivative is `slope` of operand and value.
Tensor with_derivative(Tensor (*f)(const Tensor&),
                       Tensor (*slope)(const Tensor& x, const Tensor& value), const Tensor& x) {
  Recordings& recordings = Recordings::all();
  const Recordings::Key key{f, x.shape()};
  if (current_level() > 0 || is_tracer(x))
    if (ParamsRef known = recordings.find(key)) return emit(Op::custom_jvp, known, {x}, {});
  const FlatFunction value = [f](Leaves in) -> Tensors { return {f(in[0])}; };
  const auto slopes = [slope](std::size_t, Leaves in, const Tensor& at) {
    return slope(in[0], at);
  };
  Tensor made = element_functions::with_slopes(value, slopes, std::span<const Tensor>(&x, 1), {});
  const Node* const n = node_of(made);
  if (n->op == Op::custom_jvp && n->inputs.size() == 1) recordings.add(key, n->params);
  return made;
}

}  // namespace exact_parts

Tensor log(const Tensor& x) {
  return exact_parts::with_derivative(
      exact_parts::log_value, [](const Tensor& at, const Tensor&) { return 1.0 / at; }, x);
}
Tensor exp(const Tensor& x) {
  return exact_parts::with_derivative(
      exact_parts::exp_value, [](const Tensor&, const Tensor& value) { return value; }, x);
}
Tensor erf_inv(const Tensor& x) {
  const auto slope = [](const Tensor&, const Tensor& value) {
    return exp(value * value) * (std::sqrt(std::numbers::pi) / 2);
  };
  return exact_parts::with_derivative(exact_parts::erf_inv_value, slope, x);
}

Tensor log1p(const Tensor& x) {
  const Tensor u = 1.0 + x;  // what was lost of x comes back by the quotient
  return where(equal(u, 1.0), x, exact_parts::log_value(u) * (x / (u - 1.0)));
}

Tensor erf_inv(const Tensor& x, const Tensor& rest) {
  using namespace exact_parts;
  const Tensor w = -log_value(rest), s = sqrt(maximum(w, 4.0));
  const Tensor beyond = where(s > 13.0, fitted(s, special_tables::erf_inv_highest),
                              fitted(s, special_tables::erf_inv_higher));
  return x * erf_inv_ratio(w, s, where(s > 6.6, beyond, fitted(s, special_tables::erf_inv_high)));
}

Tensor erfcx(const Tensor& x) {
  const Tensor y = minimum(x, 1e17);
  return exact_parts::fitted((y - 2.0) / (y + 2.0), special_tables::erfcx) * 0.5 / (x + 0.5);
}

// By the series of sine and cosine up to π/4, beyond as the inverse of what is left to π/2.
Tensor tan_pi(const Tensor& x) {
  double sine[10] = {1}, cosine[10] = {1};  // ±1/(2n + 1)! and ±1/(2n)!
  for (int n = 1; n < 10; ++n) {
    sine[n] = -sine[n - 1] / (2 * n * (2 * n + 1));
    cosine[n] = -cosine[n - 1] / (2 * n * (2 * n - 1));
  }
  const Tensor a = abs(x), steep = a > 0.25, b = where(steep, 0.5 - a, a) * std::numbers::pi,
               z = b * b;
  const Tensor s = b * exact_parts::horner(z, sine), c = exact_parts::horner(z, cosine);
  return copysign(where(steep, c, s) / where(steep, s, c), x);
}

}  // namespace vt::detail::exact
