// Random programs of nested control flow, each in two forms: over vt::Tensor, and in plain C++ with
// dual numbers, which gives the value and the gradient that every transform and backend must give.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

namespace vt_test::random_control {

/// A number and its derivatives along some directions.
struct Dual {
  static constexpr std::size_t most_directions = 24;
  double value = 0;
  std::size_t directions = 0;  ///< along further ones it is 0
  std::array<double, most_directions> slopes{};

  Dual() = default;
  Dual(double v) : value(v) {}
  /// f(a) and f(a, b), given the values and the derivatives of f there.
  Dual(double v, const Dual& a, double by_a) : value(v), directions(a.directions) {
    for (std::size_t i = 0; i < directions; ++i) slopes[i] = by_a * a.slopes[i];
  }
  Dual(double v, const Dual& a, double by_a, const Dual& b, double by_b) : Dual(v, a, by_a) {
    directions = std::max(a.directions, b.directions);
    for (std::size_t i = 0; i < b.directions; ++i) slopes[i] += by_b * b.slopes[i];
  }
};

/// What a value is: floats are scalars or vectors of one length for the whole program.
enum class Kind { scalar, vector, integer };

constexpr int unary_functions = 7, binary_functions = 5;
constexpr std::int64_t most_iterations = 3, integers_below = 7;

/// What makes an updated vector of one that it reads.
enum class Update { sum, product, max, min, log_sum_exp, set, add, multiply, raise, lower, window };
constexpr std::size_t updates = 11;
/// All values are within ±1; those that an update makes of such are within ± this.
inline double bound(Update u, std::size_t width) {
  if (u == Update::sum) return static_cast<double>(width);
  if (u == Update::log_sum_exp) return 1 + std::log(static_cast<double>(width));
  return u == Update::add ? 3 : 1;
}
/// Elements of a vector that replace as many of another.
constexpr std::size_t window(std::size_t width) { return (width + 1) / 2; }
/// From place to place in a vector, by integers.
constexpr std::int64_t spread = 47;

/// Chooses by a seed alone, so that a body which runs twice, or is recorded, is the same body.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  std::uint64_t seed() { return engine_(); }
  /// A number that no value meets by chance.
  double threshold() { return -0.6 + 1.2 * static_cast<double>(engine_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

/// Plain C++: loops are loops.
class Plain {
 public:
  struct Value {
    Kind kind;
    std::vector<Dual> x;
    std::int64_t n = 0;
  };
  using Values = std::vector<Value>;
  using Body = std::function<Values(const Values&)>;

  explicit Plain(std::size_t width) : width_(width) {}
  std::size_t width() const { return width_; }

  static Kind kind_of(const Value& v) { return v.kind; }
  static Value integer(std::int64_t n) { return {Kind::integer, {}, n}; }

  static Value unary(int function, const Value& a) {
    Value r = a;
    for (Dual& d : r.x) d = unary(function, d);
    return r;
  }
  static Value binary(int function, const Value& a, const Value& b) {
    Value r = a.kind < b.kind ? b : a;
    for (std::size_t i = 0; i < r.x.size(); ++i)
      r.x[i] = binary(function, a.x[a.x.size() == 1 ? 0 : i], b.x[b.x.size() == 1 ? 0 : i]);
    return r;
  }
  static Value integer_sum(const Value& a, std::int64_t plus) {
    return integer((a.n + plus) % integers_below);
  }
  static Value to_scalar(const Value& a) {
    if (a.kind == Kind::scalar) return a;
    if (a.kind == Kind::integer) return {Kind::scalar, {Dual(0.1 * static_cast<double>(a.n))}};
    Dual sum;
    for (const Dual& d : a.x) sum = Dual(sum.value + d.value, sum, 1, d, 1);
    const double part = 1 / static_cast<double>(a.x.size());
    return {Kind::scalar, {Dual(sum.value * part, sum, part)}};
  }
  Value to_vector(const Value& a) const {
    return {Kind::vector, std::vector<Dual>(width_, to_scalar(a).x[0])};
  }
  static Value to_integer(const Value& scalar, double threshold) {
    const double x = scalar.x[0].value;
    return integer((x > threshold) + (x > threshold + 0.3));
  }
  static Value flip(const Value& a) { return {a.kind, {a.x.rbegin(), a.x.rend()}}; }
  static Value scaled(const Value& a, double factor) {
    Value r = a;
    for (Dual& d : r.x) d = Dual(d.value * factor, d, factor);
    return r;
  }
  Value element(const Value& a, const Value& at) const { return {Kind::scalar, {a.x[place(at)]}}; }
  Value updated(Update u, bool reverse, const Value& a, const Value& at, const Value& scalar,
                const Value& other) const {
    Value r = a;
    if (u <= Update::log_sum_exp) {
      if (reverse) r = flip(r);
      for (std::size_t i = 1; i < width_; ++i) r.x[i] = joined(u, r.x[i - 1], r.x[i]);
      return reverse ? flip(r) : r;
    }
    if (u == Update::window) {
      const std::size_t first = std::min(place(at), width_ - window(width_));
      std::copy_n(other.x.begin(), window(width_),
                  r.x.begin() + static_cast<std::ptrdiff_t>(first));
      return r;
    }
    for (const std::size_t i : {place(at), (place(at) + 1) % width_})
      r.x[i] = u == Update::set ? scalar.x[0] : joined(u, r.x[i], scalar.x[0]);
    return r;
  }

  static Values cond(const Value& scalar, double threshold, const Body& on_true,
                     const Body& on_false, const Values& operands) {
    return scalar.x[0].value > threshold ? on_true(operands) : on_false(operands);
  }
  static Values choose(const Value& index, const std::array<Body, 3>& branches) {
    return branches[std::min<std::int64_t>(index.n, 2)]({});
  }
  /// The body gets the counter, then the carries.
  static Values repeat(const Value& iterations, std::int64_t, Values carries, const Body& body) {
    for (std::int64_t i = 0; i < iterations.n % (most_iterations + 1); ++i)
      carries = body(counted(i, carries));
    return carries;
  }
  static Values repeat_above(double threshold, Values carries, const Body& body) {
    for (std::int64_t i = 0; i < most_iterations && to_scalar(carries[0]).x[0].value > threshold;
         ++i)
      carries = body(counted(i, carries));
    return carries;
  }
  static Values repeat_known(std::int64_t iterations, Values carries, const Body& body) {
    for (std::int64_t i = 0; i < iterations; ++i) carries = body(counted(i, carries));
    return carries;
  }
  /// The body gets the carries and a row, and gives the next carries and a vector, whose sum over
  /// all rows, a tenth of it, is the last result.
  Values scan(const std::vector<Value>& rows, bool reverse, Values carries,
              const Body& body) const {
    const std::size_t count = carries.size();
    Value sum{Kind::vector, std::vector<Dual>(width_)};
    for (std::size_t k = 0; k < rows.size(); ++k) {
      carries.push_back(rows[reverse ? rows.size() - 1 - k : k]);
      carries = body(carries);
      for (std::size_t i = 0; i < width_; ++i) {
        const Dual &a = sum.x[i], &b = carries.back().x[i];
        sum.x[i] = Dual(a.value + 0.1 * b.value, a, 1, b, 0.1);
      }
      carries.resize(count);
    }
    carries.push_back(sum);
    return carries;
  }
  /// The body gets the carries and an element of each of two vectors, that of the first times a
  /// factor, and gives the next carries and a number; those are the last result.
  static Values scan_elements(const Value& a, double factor, const Value& b, bool reverse,
                              Values carries, const Body& body) {
    const std::size_t count = carries.size();
    Value given = a;
    for (std::size_t k = 0; k < a.x.size(); ++k) {
      const std::size_t i = reverse ? a.x.size() - 1 - k : k;
      carries.push_back(scaled({Kind::scalar, {a.x[i]}}, factor));
      carries.push_back({Kind::scalar, {b.x[i]}});
      carries = body(carries);
      given.x[i] = carries.back().x[0];
      carries.resize(count);
    }
    carries.push_back(given);
    return carries;
  }
  /// The body gets an element of the vector and the operands, and gives a number.
  static Value map(const Value& a, const Values& operands, const Body& body) {
    Value given = a;
    for (std::size_t i = 0; i < a.x.size(); ++i) {
      Values in{{Kind::scalar, {a.x[i]}}};
      in.insert(in.end(), operands.begin(), operands.end());
      given.x[i] = body(in)[0].x[0];
    }
    return given;
  }
  /// The first so many elements alone, which meet before the body and behind it: it also gets their
  /// mean, and what it gives is set off from the least of all. Other elements are 0.
  static Value map_first(const Value& count, const Value& a, const Values& operands,
                         const Body& body) {
    const auto n = static_cast<std::size_t>(count.n) % (a.x.size() + 1);
    Value given{a.kind, std::vector<Dual>(a.x.size())};
    Dual sum, least;
    for (std::size_t i = 0; i < n; ++i) sum = Dual(sum.value + a.x[i].value, sum, 1, a.x[i], 1);
    const double part = 1 / static_cast<double>(n);
    double ties = 0;
    for (std::size_t i = 0; i < n; ++i) {
      Values in{{Kind::scalar, {a.x[i]}}, {Kind::scalar, {Dual(sum.value * part, sum, part)}}};
      in.insert(in.end(), operands.begin(), operands.end());
      const Dual own = given.x[i] = body(in)[0].x[0];
      if (i == 0 || own.value < least.value) least = own, ties = 1;
      else if (own.value == least.value) ++ties, least = Dual(own.value, least, 1, own, 1);
    }
    for (std::size_t i = 0; i < n; ++i)
      given.x[i] =
          Dual(0.5 * (given.x[i].value - least.value), given.x[i], 0.5, least, -0.5 / ties);
    return given;
  }
  static Values call(int, const Values& operands, const Body& body) { return body(operands); }
  static Values checkpoint(const Values& operands, const Body& body) { return body(operands); }
  /// f(n, x) = n > 0 ? after(n, f(n − 1, before(n, x))) : x.
  Value recursion(std::uint64_t, const Value& depth, const Value& x, const Body& before,
                  const Body& after) const {
    return recursion(depth.n % (most_iterations + 1), x, before, after);
  }

 private:
  static Dual unary(int function, const Dual& a) {
    const double x = a.value;
    switch (function) {
      case 0: return {std::sin(x), a, std::cos(x)};
      case 1: return {std::cos(x), a, -std::sin(x)};
      case 2: return {std::tanh(x), a, 1 - std::tanh(x) * std::tanh(x)};
      case 3: return {std::exp(-x * x), a, -2 * x * std::exp(-x * x)};
      case 4: return {std::sqrt(0.1 + 0.9 * x * x), a, 0.9 * x / std::sqrt(0.1 + 0.9 * x * x)};
      case 5: return {std::log1p(x * x), a, 2 * x / (1 + x * x)};
      default: return {1 / (1 + std::exp(-x)), a, std::exp(-x) / std::pow(1 + std::exp(-x), 2)};
    }
  }
  static Dual binary(int function, const Dual& a, const Dual& b) {
    const double x = a.value, y = b.value;
    switch (function) {
      case 0: return {x * y, a, y, b, x};
      case 1: return {0.5 * (x + y), a, 0.5, b, 0.5};
      case 2: return x > y + 0.0123 ? Dual(0.5 * x, a, 0.5) : Dual(-y, b, -1);
      case 3: return {x / (1 + y * y), a, 1 / (1 + y * y), b, -2 * x * y / std::pow(1 + y * y, 2)};
      default: return {0.5 * (x - y), a, 0.5, b, -0.5};
    }
  }
  static Dual joined(Update u, const Dual& a, const Dual& b) {
    const double x = a.value, y = b.value;
    switch (u) {
      case Update::sum:
      case Update::add: return {x + y, a, 1, b, 1};
      case Update::product:
      case Update::multiply: return {x * y, a, y, b, x};
      case Update::max:
      case Update::raise: return y > x ? b : a;
      case Update::min:
      case Update::lower: return y < x ? b : a;
      default: {
        const double sum = std::exp(x) + std::exp(y);
        return {std::log(sum), a, std::exp(x) / sum, b, std::exp(y) / sum};
      }
    }
  }
  std::size_t place(const Value& at) const {
    return static_cast<std::size_t>(at.n * spread) % width_;
  }
  static Values counted(std::int64_t i, const Values& carries) {
    Values in{integer(i)};
    in.insert(in.end(), carries.begin(), carries.end());
    return in;
  }
  Value recursion(std::int64_t n, const Value& x, const Body& before, const Body& after) const {
    if (n <= 0) return x;
    const Value inner = recursion(n - 1, before({integer(n), x})[0], before, after);
    return after({integer(n), inner})[0];
  }

  std::size_t width_;
};

/// The same over Tensors.
class Traced {
 public:
  struct Value {
    Kind kind;
    vt::Tensor t;
  };
  using Values = std::vector<Value>;
  using Tensors = std::vector<vt::Tensor>;
  using Body = std::function<Values(const Values&)>;

  explicit Traced(std::size_t width) : width_(static_cast<std::int64_t>(width)) {}
  std::size_t width() const { return static_cast<std::size_t>(width_); }

  static Kind kind_of(const Value& v) { return v.kind; }
  static Value integer(std::int64_t n) {
    return {Kind::integer, vt::tensor(static_cast<std::int32_t>(n))};
  }

  static Value unary(int function, const Value& a) {
    const vt::Tensor& x = a.t;
    switch (function) {
      case 0: return {a.kind, sin(x)};
      case 1: return {a.kind, cos(x)};
      case 2: return {a.kind, tanh(x)};
      case 3: return {a.kind, exp(-x * x)};
      case 4: return {a.kind, sqrt(0.1 + 0.9 * square(x))};
      case 5: return {a.kind, log1p(x * x)};
      default: return {a.kind, sigmoid(x)};
    }
  }
  static Value binary(int function, const Value& a, const Value& b) {
    const Kind kind = std::max(a.kind, b.kind);
    switch (function) {
      case 0: return {kind, a.t * b.t};
      case 1: return {kind, 0.5 * (a.t + b.t)};
      case 2: return {kind, where(a.t > b.t + 0.0123, 0.5 * a.t, -b.t)};
      case 3: return {kind, a.t / (1 + b.t * b.t)};
      default: return {kind, 0.5 * (a.t - b.t)};
    }
  }
  static Value integer_sum(const Value& a, std::int64_t plus) {
    return {Kind::integer, vt::mod(a.t + plus, vt::Tensor(integers_below)).astype(vt::i32)};
  }
  static Value to_scalar(const Value& a) {
    if (a.kind == Kind::scalar) return a;
    return {Kind::scalar, a.kind == Kind::integer ? a.t.astype(vt::f64) * 0.1 : mean(a.t)};
  }
  Value to_vector(const Value& a) const {
    return {Kind::vector, broadcast_to(to_scalar(a).t, {width_})};
  }
  static Value to_integer(const Value& scalar, double threshold) {
    const vt::Tensor low = (scalar.t > threshold).astype(vt::i32);
    return {Kind::integer, low + (scalar.t > threshold + 0.3).astype(vt::i32)};
  }
  static Value flip(const Value& a) { return {a.kind, vt::flip(a.t, 0)}; }
  static Value scaled(const Value& a, double factor) { return {a.kind, a.t * factor}; }
  Value element(const Value& a, const Value& at) const { return {Kind::scalar, a.t[place(at)]}; }
  Value updated(Update u, bool reverse, const Value& a, const Value& at, const Value& scalar,
                const Value& other) const {
    const auto of = [&](const auto& update) {
      const vt::Tensor first = place(at), next = vt::mod(first + 1, vt::Tensor(width_));
      return Value{a.kind, update(a.t, vt::stack({first, next}), scalar.t)};
    };
    switch (u) {
      case Update::sum: return {a.kind, vt::cumsum(a.t, 0, {.reverse = reverse})};
      case Update::product: return {a.kind, vt::cumprod(a.t, 0, {.reverse = reverse})};
      case Update::max: return {a.kind, vt::cummax(a.t, 0, {.reverse = reverse})};
      case Update::min: return {a.kind, vt::cummin(a.t, 0, {.reverse = reverse})};
      case Update::log_sum_exp: return {a.kind, vt::cumlogsumexp(a.t, 0, {.reverse = reverse})};
      case Update::set: return of(vt::index_update);
      case Update::add: return of(vt::index_add);
      case Update::multiply: return of(vt::index_mul);
      case Update::raise: return of(vt::index_max);
      case Update::lower: return of(vt::index_min);
      case Update::window: break;
    }
    const auto size = static_cast<std::int64_t>(window(static_cast<std::size_t>(width_)));
    return {a.kind, vt::at(a.t, vt::window(place(at), size)).set(other.t(vt::slice(0, size)))};
  }

  static Values cond(const Value& scalar, double threshold, const Body& on_true,
                     const Body& on_false, const Values& operands) {
    std::vector<Kind> kinds;
    const auto flat = [&](const Body& body) {
      return [&](const Tensors& in) { return bare(body(dressed(kinds_of(operands), in)), &kinds); };
    };
    const Tensors out =
        vt::cond(scalar.t > threshold, flat(on_true), flat(on_false), bare(operands));
    return dressed(kinds, out);
  }
  static Values choose(const Value& index, const std::array<Body, 3>& branches) {
    std::vector<Kind> kinds;
    const auto flat = [&](const Body& body) { return [&] { return bare(body({}), &kinds); }; };
    const std::tuple all(flat(branches[0]), flat(branches[1]), flat(branches[2]));
    const Tensors out = vt::switch_(index.t, all);
    return dressed(kinds, out);
  }
  /// `kept`: states that reverse mode keeps; 0: as many as it likes.
  static Values repeat(const Value& iterations, std::int64_t kept, const Values& carries,
                       const Body& body) {
    const vt::Tensor n = vt::mod(iterations.t, vt::Tensor(most_iterations + 1)).astype(vt::i32);
    return counting([&](const vt::Tensor& i, const Tensors&) { return i < n; }, carries, body,
                    {.checkpoint = kept});
  }
  static Values repeat_above(double threshold, const Values& carries, const Body& body) {
    const auto goes_on = [&](const vt::Tensor& i, const Tensors& c) {
      return logical_and(i<most_iterations, to_scalar({carries[0].kind, c[0]}).t> threshold);
    };
    return counting(goes_on, carries, body);
  }
  static Values repeat_known(std::int64_t iterations, const Values& carries, const Body& body) {
    const std::vector<Kind> kinds = kinds_of(carries);
    return dressed(kinds, vt::fori_loop(
                              0, iterations,
                              [&](const vt::Tensor& i, const Tensors& c) {
                                return bare(body(counted(i, dressed(kinds, c))));
                              },
                              bare(carries)));
  }
  static Values scan(const vt::Tensor& rows, bool reverse, const Values& carries,
                     const Body& body) {
    const std::vector<Kind> kinds = kinds_of(carries);
    const auto [last, ys] = vt::scan(
        [&](const Tensors& c, const vt::Tensor& row) {
          Values in = dressed(kinds, c);
          in.push_back({Kind::vector, row});
          Tensors out = bare(body(in));
          vt::Tensor y = out.back();
          out.pop_back();
          return std::pair(out, y);
        },
        bare(carries), rows, {.reverse = reverse});
    Values results = dressed(kinds, last);
    results.push_back({Kind::vector, 0.1 * sum(ys, 0)});
    return results;
  }
  static Values scan_elements(const Value& a, double factor, const Value& b, bool reverse,
                              const Values& carries, const Body& body) {
    const std::vector<Kind> kinds = kinds_of(carries);
    const auto [last, given] = vt::scan(
        [&](const Tensors& c, const std::pair<vt::Tensor, vt::Tensor>& elements) {
          Values in = dressed(kinds, c);
          in.push_back(scaled({Kind::scalar, elements.first}, factor));
          in.push_back({Kind::scalar, elements.second});
          Tensors out = bare(body(in));
          vt::Tensor y = out.back();
          out.pop_back();
          return std::pair(out, y);
        },
        bare(carries), std::pair(a.t, b.t), {.reverse = reverse});
    Values results = dressed(kinds, last);
    results.push_back({Kind::vector, given});
    return results;
  }
  static Value map(const Value& a, const Values& operands, const Body& body) {
    const auto of_element = [&](const vt::Tensor& element) {
      Values in{{Kind::scalar, element}};
      in.insert(in.end(), operands.begin(), operands.end());
      return body(in)[0].t;
    };
    return {a.kind, vt::vmap(of_element)(a.t)};
  }
  Value map_first(const Value& count, const Value& a, const Values& operands,
                  const Body& body) const {
    const vt::Tensor n = vt::mod(count.t, vt::Tensor(width_ + 1));
    const auto of_lane = [&](const vt::Tensor& i) {
      const vt::Tensor element = a.t[i];
      Values in{{Kind::scalar, element}, {Kind::scalar, vt::pmean(element, "i")}};
      in.insert(in.end(), operands.begin(), operands.end());
      const vt::Tensor own = body(in)[0].t;
      return 0.5 * (own - vt::pmin(own, "i"));
    };
    return {a.kind, vt::pfor(of_lane, n, {.at_most = width_, .axis_name = "i"})};
  }
  Values call(int number, const Values& operands, const Body& body) {
    const auto flat = [kinds = kinds_of(operands), body](const Tensors& in) {
      return bare(body(dressed(kinds, in)));
    };
    auto& f = functions_[number];
    if (!f.called) f.called = vt::function("f" + std::to_string(number), Function(flat));
    const Tensors out = (*f.called)(bare(operands));
    Values results;
    for (const vt::Tensor& t : out)
      results.push_back({t.rank()               ? Kind::vector
                         : t.dtype() == vt::f64 ? Kind::scalar
                                                : Kind::integer,
                         t});
    return results;
  }
  static Values checkpoint(const Values& operands, const Body& body) {
    std::vector<Kind> kinds;
    const auto flat = [&](const Tensors& in) {
      return bare(body(dressed(kinds_of(operands), in)), &kinds);
    };
    const Tensors out = vt::checkpoint(flat)(bare(operands));
    return dressed(kinds, out);
  }
  static Value recursion(std::uint64_t seed, const Value& depth, const Value& x, const Body& before,
                         const Body& after) {
    using vt::Tensor;
    vt::Recursive<Tensor(Tensor, Tensor)> f("r" + std::to_string(seed));
    f = [&](Tensor n, Tensor now) {
      return vt::cond(
          n > 0,
          [&] {
            const Value inner = before({{Kind::integer, n}, {x.kind, now}})[0];
            return after({{Kind::integer, n}, {x.kind, f(n - 1, inner.t)}})[0].t;
          },
          [&] { return now; });
    };
    return {x.kind, f(vt::mod(depth.t, Tensor(most_iterations + 1)).astype(vt::i32), x.t)};
  }

 private:
  using Function = std::function<Tensors(const Tensors&)>;
  struct Called {
    std::optional<vt::Named<Function>> called;
  };

  vt::Tensor place(const Value& at) const {
    return vt::mod(at.t * static_cast<std::int32_t>(spread), vt::Tensor(width_));
  }
  static std::vector<Kind> kinds_of(const Values& values) {
    std::vector<Kind> kinds;
    for (const Value& v : values) kinds.push_back(v.kind);
    return kinds;
  }
  static Tensors bare(const Values& values, std::vector<Kind>* kinds = nullptr) {
    Tensors tensors;
    for (const Value& v : values) tensors.push_back(v.t);
    if (kinds) *kinds = kinds_of(values);
    return tensors;
  }
  static Values dressed(const std::vector<Kind>& kinds, const Tensors& tensors) {
    Values values;
    for (std::size_t i = 0; i < tensors.size(); ++i) values.push_back({kinds[i], tensors[i]});
    return values;
  }
  static Values counted(const vt::Tensor& i, const Values& carries) {
    Values in{{Kind::integer, i}};
    in.insert(in.end(), carries.begin(), carries.end());
    return in;
  }
  static Values counting(
      const std::function<vt::Tensor(const vt::Tensor&, const Tensors&)>& goes_on,
      const Values& carries, const Body& body, vt::WhileOptions options = {}) {
    const std::vector<Kind> kinds = kinds_of(carries);
    using State = std::pair<vt::Tensor, Tensors>;
    const State last = vt::while_loop([&](const State& s) { return goes_on(s.first, s.second); },
                                      [&](const State& s) {
                                        const Values in =
                                            counted(s.first, dressed(kinds, s.second));
                                        return State(s.first + 1, bare(body(in)));
                                      },
                                      State(vt::tensor(0), bare(carries)), options);
    return dressed(kinds, last.second);
  }

  std::int64_t width_;
  std::map<int, Called> functions_;
};

/// What runs a program: statements over a pool of values, chosen by seeds alone.
template <class Machine, class Rows>
class Run {
 public:
  using Value = typename Machine::Value;
  using Values = std::vector<Value>;

  Run(Machine& machine, const Rows& rows, bool wide, std::uint64_t functions_seed, int functions)
      : m_(machine),
        rows_(rows),
        wide_(wide),
        functions_seed_(functions_seed),
        functions_(functions) {
    // Few kinds of statements in one program, so that each of them often meets the same ones.
    Choices choose(functions_seed);
    for (int k = 0; k < 3; ++k) statements_.push_back(static_cast<int>(choose.below(calls + 1)));
  }

  /// A few statements, then results of the kinds wanted, chosen among all values.
  Values block(std::uint64_t seed, Values pool, const std::vector<Kind>& results, int depth,
               int functions) const {
    Choices choose(seed);
    for (std::size_t k = 2 + choose.below(4); k-- > 0;) statement(choose, pool, depth, functions);
    Values out;
    for (Kind kind : results) out.push_back(any(choose, pool, kind));
    return out;
  }
  Values block(std::uint64_t seed, const Values& pool, const std::vector<Kind>& results,
               int depth) const {
    return block(seed, pool, results, depth, functions_);
  }

 private:
  static constexpr int calls = 10;  // the last kind of statement

  /// Mostly what was made last, so that little is for nothing; and some values are used only once.
  Value any(Choices& choose, Values& pool, Kind kind) const {
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < pool.size(); ++i)
      if (m_.kind_of(pool[i]) == kind) fitting.push_back(i);
    const std::size_t count = fitting.size(), last = std::min<std::size_t>(count, 3);
    if (count > 0 && !choose.one_in(8)) {
      const std::size_t which =
          fitting[choose.one_in(3) ? choose.below(count) : count - 1 - choose.below(last)];
      const Value v = pool[which];
      if (choose.one_in(3) && pool.size() > 1)
        pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(which));
      return v;
    }
    const Value v = pool[choose.below(pool.size())];
    if (m_.kind_of(v) == kind) return v;
    switch (kind) {
      case Kind::scalar: return m_.to_scalar(v);
      case Kind::vector: return m_.to_vector(v);
      default: return m_.to_integer(m_.to_scalar(v), choose.threshold());
    }
  }
  Value any_float(Choices& choose, Values& pool) const {
    return any(choose, pool, choose.one_in(2) ? Kind::scalar : Kind::vector);
  }
  Values several(Choices& choose, Values& pool, const std::vector<Kind>& kinds) const {
    Values values;
    for (Kind kind : kinds) values.push_back(any(choose, pool, kind));
    return values;
  }
  static std::vector<Kind> kinds(Choices& choose, std::size_t fewest, std::size_t most) {
    std::vector<Kind> all;
    for (std::size_t k = fewest + choose.below(most - fewest + 1); k-- > 0;)
      all.push_back(static_cast<Kind>(choose.below(3)));
    return all;
  }
  static std::vector<Kind> kinds_of(const Machine& m, const Values& values) {
    std::vector<Kind> all;
    for (const Value& v : values) all.push_back(m.kind_of(v));
    return all;
  }
  struct Updated {
    Value value;
    double bound;
  };
  Updated updated(Choices& choose, Values& pool, const Value& a) const {
    const auto u = static_cast<Update>(choose.below(updates));
    const bool reverse = choose.one_in(2);
    const Values in = several(choose, pool, {Kind::integer, Kind::scalar, Kind::vector});
    return {m_.updated(u, reverse, a, in[0], in[1], in[2]), bound(u, m_.width())};
  }
  static Values both(const Values& a, const Values& b) {
    Values all = a;
    all.insert(all.end(), b.begin(), b.end());
    return all;
  }
  /// Some of what was made: a third of all results is forgotten.
  static void keep(Choices& choose, Values& pool, const Values& made) {
    for (const Value& v : made)
      if (!choose.one_in(3)) pool.push_back(v);
  }

  void statement(Choices& choose, Values& pool, int depth, int functions) const {
    if (depth == 0 || choose.one_in(4)) return simple(choose, pool);
    const std::uint64_t seed = choose.seed(), other = choose.seed(), third = choose.seed();
    // Bodies see what is around them, and what they are given.
    const auto body = [&, this](std::uint64_t s, const std::vector<Kind>& results) {
      return typename Machine::Body([=, this, around = pool](const Values& in) {
        return block(s, both(around, in), results, depth - 1, functions);
      });
    };
    // A loop's body: the next carries, of which some stay as they are, and behind them what scans
    // give in each iteration, whose carries come first.
    const auto step = [&](std::uint64_t s, const Values& carries, std::size_t first,
                          std::optional<Kind> given = {}) {
      std::vector<Kind> results = kinds_of(m_, carries);
      if (given) results.push_back(*given);
      return typename Machine::Body(
          [s, first, count = carries.size(), next = body(s, results)](const Values& in) {
            Choices choose_kept(s + 1);
            Values out = next(in);
            for (std::size_t i = 0; i < count; ++i)
              if (choose_kept.one_in(3)) out[i] = in[first + i];
            return out;
          });
    };
    int which = statements_[choose.below(statements_.size())];
    if (which == calls && functions == 0) which = 0;
    // Elements of wide vectors are gone through by no more than one loop at a time.
    if (wide_ && depth == 1 && (which == 8 || which == 9)) which = 4;
    switch (which) {
      case 0: {
        const std::vector<Kind> results = kinds(choose, 1, 3);
        const Values operands = several(choose, pool, kinds(choose, 0, 2));
        const Value decides = any(choose, pool, Kind::scalar);
        const double threshold = choose.threshold();
        const std::uint64_t second = choose.one_in(5) ? seed : other;
        keep(choose, pool,
             m_.cond(decides, threshold, body(seed, results), body(second, results), operands));
        return;
      }
      case 1: {
        // Functions that are defined on one side only.
        const Value c = any(choose, pool, Kind::scalar);
        const auto high = [this](const Values& in) { return Values{guarded(0, in[0])}; };
        const auto low = [this](const Values& in) { return Values{guarded(1, in[0])}; };
        pool.push_back(m_.cond(c, 0.3, high, low, {c})[0]);
        return;
      }
      case 2: {
        const std::vector<Kind> results = kinds(choose, 1, 2);
        const Value index = any(choose, pool, Kind::integer);
        keep(choose, pool,
             m_.choose(index, {body(seed, results), body(other, results), body(third, results)}));
        return;
      }
      case 3: {
        const Values carries = several(choose, pool, kinds(choose, 1, 4));
        const Value iterations = any(choose, pool, Kind::integer);
        const auto kept = static_cast<std::int64_t>(choose.below(3));
        keep(choose, pool, m_.repeat(iterations, kept, carries, step(seed, carries, 1)));
        return;
      }
      case 4: {
        Values carries = several(choose, pool, kinds(choose, 0, 3));
        carries.insert(carries.begin(), any_float(choose, pool));
        const double threshold = choose.threshold();
        keep(choose, pool, m_.repeat_above(threshold, carries, step(seed, carries, 1)));
        return;
      }
      case 5: {
        const Values carries = several(choose, pool, kinds(choose, 1, 3));
        const auto iterations = static_cast<std::int64_t>(choose.below(most_iterations + 1));
        keep(choose, pool, m_.repeat_known(iterations, carries, step(seed, carries, 1)));
        return;
      }
      case 6: {
        const Values carries = several(choose, pool, kinds(choose, 0, 3));
        const bool reverse = choose.one_in(2);
        keep(choose, pool, m_.scan(rows_, reverse, carries, step(seed, carries, 0, Kind::vector)));
        return;
      }
      case 8: {
        // Over what has been made of a vector, and over that itself.
        const Values carries = several(choose, pool, kinds(choose, 0, 3));
        const Value a = any(choose, pool, Kind::vector);
        const Updated made = updated(choose, pool, a);
        const Value over = choose.one_in(4) ? m_.flip(made.value) : made.value;
        const bool reverse = choose.one_in(2);
        if (wide_) depth = 1;
        keep(choose, pool,
             m_.scan_elements(over, 1 / made.bound, a, reverse, carries,
                              step(seed, carries, 0, Kind::scalar)));
        return;
      }
      case 9: {
        const Value a = any(choose, pool, Kind::vector);
        const Values operands = several(choose, pool, kinds(choose, 0, 2));
        if (wide_) depth = 2;
        const typename Machine::Body of_element = body(seed, {Kind::scalar});
        if (choose.one_in(2)) pool.push_back(m_.map(a, operands, of_element));
        else
          pool.push_back(m_.map_first(any(choose, pool, Kind::integer), a, operands, of_element));
        return;
      }
      case 7: {
        if (choose.one_in(2)) {
          const Values operands = several(choose, pool, kinds(choose, 1, 3));
          const std::vector<Kind> results = kinds(choose, 1, 3);
          const auto alone = [=, this](const Values& in) {
            return block(seed, in, results, depth - 1, functions);
          };
          keep(choose, pool, m_.checkpoint(operands, alone));
          return;
        }
        const Value x = any_float(choose, pool), n = any(choose, pool, Kind::integer);
        const std::vector<Kind> one{m_.kind_of(x)};
        const auto part = [=, this](std::uint64_t s) {
          return [=, this](const Values& in) { return block(s, in, one, 0, 0); };
        };
        pool.push_back(m_.recursion(seed, n, x, part(seed), part(other)));
        return;
      }
      default: {
        // Functions are made once, with several results; each may call those before it.
        const int number = static_cast<int>(choose.below(static_cast<std::size_t>(functions)));
        Choices choose_function(functions_seed_ + static_cast<std::uint64_t>(number));
        const std::vector<Kind> parameters = kinds(choose_function, 1, 4),
                                results = kinds(choose_function, 1, 4);
        const std::uint64_t s = choose_function.seed();
        const auto alone = [=, this](const Values& in) {
          return block(s, in, results, wide_ ? 1 : std::min(2, 1 + number), number);
        };
        const Values operands = several(choose, pool, parameters);
        keep(choose, pool, m_.call(number, operands, alone));
        return;
      }
    }
  }

  /// 0.8 log(c) and 0.7 sqrt(1 − c).
  Value guarded(int which, const Value& c) const;

  void simple(Choices& choose, Values& pool) const {
    switch (choose.below(9)) {
      case 0:
      case 1: {
        const Value a = any_float(choose, pool);
        pool.push_back(m_.unary(static_cast<int>(choose.below(unary_functions)), a));
        return;
      }
      case 2: pool.push_back(m_.flip(any(choose, pool, Kind::vector))); return;
      case 3: {
        const Values in = several(choose, pool, {Kind::vector, Kind::integer});
        pool.push_back(m_.element(in[0], in[1]));
        return;
      }
      case 4: {
        const Updated made = updated(choose, pool, any(choose, pool, Kind::vector));
        pool.push_back(made.bound == 1 ? made.value : m_.scaled(made.value, 1 / made.bound));
        return;
      }
      case 5: {
        const Value a = any(choose, pool, Kind::integer);
        const std::size_t plus = choose.below(integers_below);
        pool.push_back(m_.integer_sum(a, static_cast<std::int64_t>(plus)));
        return;
      }
      default: {
        const Value a = any_float(choose, pool), b = any_float(choose, pool);
        pool.push_back(m_.binary(static_cast<int>(choose.below(binary_functions)), a, b));
        return;
      }
    }
  }

  Machine& m_;
  const Rows& rows_;
  bool wide_;
  std::uint64_t functions_seed_;
  int functions_;
  std::vector<int> statements_;
};

template <>
inline Plain::Value Run<Plain, std::vector<Plain::Value>>::guarded(int which,
                                                                   const Value& c) const {
  const Dual& x = c.x[0];
  if (which == 0) return {Kind::scalar, {Dual(0.8 * std::log(x.value), x, 0.8 / x.value)}};
  const double root = std::sqrt(1 - x.value);
  return {Kind::scalar, {Dual(0.7 * root, x, -0.35 / root)}};
}
template <>
inline Traced::Value Run<Traced, vt::Tensor>::guarded(int which, const Value& c) const {
  return {Kind::scalar, which == 0 ? 0.8 * log(c.t) : 0.7 * sqrt(1.0 - c.t)};
}

/// A program f(x, v, rows, n): a scalar from f64[], f64[width], f64[length, width] and i32[].
class Program {
 public:
  explicit Program(std::uint64_t seed) : seed_(seed) {
    Choices choose(seed);
    constexpr std::size_t widths[] = {7, 31, 32, 33, 127, 128, 129, 287, 288, 289};
    width = choose.one_in(3) ? widths[choose.below(std::size(widths))] : 1 + choose.below(4);
    length = choose.below(4);
    functions_ = static_cast<int>(choose.below(4));
    depth_ = 2 + static_cast<int>(choose.below(2));
  }

  vt::Tensor operator()(const vt::Tensor& x, const vt::Tensor& v, const vt::Tensor& rows,
                        const vt::Tensor& n) const {
    Traced machine(width);
    const Traced::Values in{{Kind::scalar, x}, {Kind::vector, v}, {Kind::integer, n}};
    return run(machine, rows, in).t;
  }

  struct Inputs {
    double x;
    std::vector<double> v, rows;
    std::int32_t n;
  };
  Inputs inputs(std::uint64_t lane) const {
    std::mt19937_64 engine(seed_ * 64 + lane);
    const auto next = [&] { return -1 + 2 * static_cast<double>(engine() >> 11) * 0x1p-53; };
    Inputs in{next(), {}, {}, static_cast<std::int32_t>(engine() % integers_below)};
    for (std::size_t i = 0; i < width; ++i) in.v.push_back(next());
    for (std::size_t i = 0; i < length * width; ++i) in.rows.push_back(next());
    return in;
  }
  /// Of x, v and rows, in this order.
  std::size_t input_count() const { return 1 + width + length * width; }
  bool is_wide() const { return input_count() > Dual::most_directions; }
  /// Along how many directions the derivatives are taken: by each input, if these are few.
  std::size_t directions() const { return is_wide() ? 3 : input_count(); }
  double direction(std::size_t number, std::size_t input) const {
    if (!is_wide()) return number == input ? 1 : 0;
    return std::sin(1 + static_cast<double>((number + 1) * input));
  }
  /// The value, and its derivatives along the directions.
  Dual in_plain_numbers(const Inputs& in) const {
    std::size_t number = 0;
    const auto input = [&](double value) {
      Dual d(value);
      d.directions = directions();
      for (std::size_t i = 0; i < d.directions; ++i) d.slopes[i] = direction(i, number);
      ++number;
      return d;
    };
    Plain machine(width);
    Plain::Values values{{Kind::scalar, {input(in.x)}}, {Kind::vector, {}}, Plain::integer(in.n)};
    for (double a : in.v) values[1].x.push_back(input(a));
    std::vector<Plain::Value> rows(length, {Kind::vector, {}});
    for (std::size_t i = 0; i < in.rows.size(); ++i) rows[i / width].x.push_back(input(in.rows[i]));
    return run(machine, rows, values).x[0];
  }

  std::size_t width, length;

 private:
  template <class Machine, class Rows>
  typename Machine::Value run(Machine& machine, const Rows& rows,
                              const typename Machine::Values& in) const {
    const Run<Machine, Rows> r(machine, rows, is_wide(), seed_ * 16, functions_);
    const std::vector<Kind> results{Kind::scalar, Kind::vector};
    const auto out = r.block(seed_ + 1, in, results, depth_);
    return machine.to_scalar(machine.binary(1, out[0], out[1]));
  }

  std::uint64_t seed_;
  int functions_, depth_;
};

}  // namespace vt_test::random_control
