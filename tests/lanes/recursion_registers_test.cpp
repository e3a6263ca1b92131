// Functions that call themselves as one function of machine code: against the same recursion in C++
// and against the interpreter, alone, on lanes and inside of loops; how deep they go.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Unary = vt::Recursive<Tensor(Tensor)>;
using Binary = vt::Recursive<Tensor(Tensor, Tensor)>;
using Tensors = std::vector<Tensor>;
using Flat = vt::detail::FlatFunction;

const vt_test::Tolerance exact{}, close{.relative = 1e-13, .absolute = 1e-14};

/// Does vt compile at all here, and leave it to itself how lanes run?
bool chooses_freely() {
  const auto f = vt::jit([](Tensor x) { return x + 1.0; });
  f(vt::tensor(1.0));
  return vt::explain_steps(f)(vt::tensor(1.0)).rfind("interpreter", 0) != 0 &&
         !std::getenv("VT_LANES") && vt::default_device().kind == vt::Device::Kind::cpu;
}
/// Compiled, `f` is such a function, or it holds one; with lanes if they are told.
template <class F, class... A>
void expect_calls_itself(int lanes, const F& f, const A&... arguments) {
  if (!chooses_freely()) return;
  const auto compiled = vt::jit(f);
  compiled(arguments...);
  const std::string text = vt::explain_steps(compiled)(arguments...),
                    says = "one function, its values in registers, calls itself";
  EXPECT_NE(text.find(lanes < 0 ? says : says + ", " + std::to_string(lanes) + " lanes one by one"),
            std::string::npos)
      << text;
}
template <class F, class... A>
void expect_host_steps(const F& f, const A&... arguments) {
  const auto compiled = vt::jit(f);
  compiled(arguments...);
  const std::string text = vt::explain_steps(compiled)(arguments...);
  EXPECT_EQ(text.find("in registers, calls itself"), std::string::npos) << text;
}
template <class F>
std::string error_of(F&& use) {
  try {
    use();
  } catch (const vt::Error& e) {
    EXPECT_EQ(static_cast<int>(e.kind()), static_cast<int>(vt::ErrorKind::value)) << e.what();
    return e.what();
  }
  return "no error";
}

template <class T>
std::vector<T> spread(int count, int below) {
  std::vector<T> all;
  for (int i = 0; i < count; ++i) all.push_back(static_cast<T>(i * 7 % below));
  return all;
}
template <class T, class F>
std::vector<T> each(const std::vector<T>& xs, F f) {
  std::vector<T> all;
  for (const T x : xs) all.push_back(f(x));
  return all;
}

// --- values --------------------------------------------------------------------------------------

template <class T>
T fibonacci(T n) {
  return n < 2 ? T(1) : T(fibonacci(T(n - 1)) + fibonacci(T(n - 2)));
}
template <class T>
void expect_fibonacci() {
  Unary f("fibonacci", [&](Tensor n) {
    return vt::cond(n < 2, [] { return 1; }, [&] { return f(n - 1) + f(n - 2); });
  });
  const std::vector<T> n = spread<T>(1000, 16);
  const auto lanes = vt::vmap(f);
  EXPECT_EQ(vt::jit(lanes)(vt::tensor(n)).template to_vector<T>(), each(n, fibonacci<T>));
  expect_calls_itself(1000, lanes, vt::tensor(n));
  for (const T one : {T(0), T(1), T(9), T(15)})
    EXPECT_EQ(vt::jit(f)(vt::tensor(one)).template item<T>(), fibonacci(one));
  expect_calls_itself(-1, f, vt::tensor(T(9)));
}
TEST(RecursionRegisters, FibonacciOfEveryNumber) {
  expect_fibonacci<std::int32_t>();
  expect_fibonacci<std::int64_t>();
  expect_fibonacci<float>();
  expect_fibonacci<double>();
  expect_fibonacci<std::uint8_t>();  // wraps
}

TEST(RecursionRegisters, EvenAndOdd) {
  Unary even("even"), odd("odd");
  even = [&](Tensor n) {
    return vt::cond(n == 0, [] { return true; }, [&] { return odd(n - 1); });
  };
  odd = [&](Tensor n) {
    return vt::cond(n == 0, [] { return false; }, [&] { return even(n - 1); });
  };
  const std::vector<int> n = spread<int>(300, 101);
  const std::vector<bool> found = vt::jit(vt::vmap(even))(vt::tensor(n)).to_vector<bool>();
  for (std::size_t i = 0; i < n.size(); ++i) EXPECT_EQ(found[i], n[i] % 2 == 0) << n[i];
  expect_calls_itself(300, vt::vmap(odd), vt::tensor(n));
  EXPECT_TRUE(vt::jit(odd)(vt::tensor(77)).item<bool>());
  expect_calls_itself(-1, odd, vt::tensor(77));
}

template <class T>
void expect_gcd() {
  Binary gcd("gcd", [&](Tensor a, Tensor b) {
    return vt::cond(b == 0, [&] { return a; }, [&] { return gcd(b, a % b); });
  });
  const std::vector<T> a = spread<T>(500, 97), b = each(a, [](T x) { return T(x * 3 % 71); });
  const std::vector<T> found =
      vt::jit(vt::vmap(gcd))(vt::tensor(a), vt::tensor(b)).template to_vector<T>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(found[i], std::gcd(a[i], b[i]));
  expect_calls_itself(500, vt::vmap(gcd), vt::tensor(a), vt::tensor(b));
  const auto shared = vt::vmap(gcd, {.in_axes = {0, vt::unmapped}});
  const std::vector<T> with_60 =
      vt::jit(shared)(vt::tensor(a), vt::tensor(T(60))).template to_vector<T>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(with_60[i], std::gcd(a[i], T(60)));
  expect_calls_itself(500, shared, vt::tensor(a), vt::tensor(T(60)));
}
TEST(RecursionRegisters, GreatestCommonDivisor) {
  expect_gcd<std::int32_t>();
  expect_gcd<std::int64_t>();
  expect_gcd<std::uint8_t>();
}

int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
TEST(RecursionRegisters, CallsWhoseArgumentsAreCalls) {
  Binary f("ackermann", [&](Tensor m, Tensor n) {
    return vt::cond(
        m == 0, [&] { return n + 1; },
        [&] {
          return vt::cond(
              n == 0, [&] { return f(m - 1, 1); }, [&] { return f(m - 1, f(m, n - 1)); });
        });
  });
  std::vector<int> m, n, expected;
  for (int i = 0; i < 200; ++i) {
    m.push_back(i % 4);
    n.push_back(i % 5);
    expected.push_back(ackermann(i % 4, i % 5));
  }
  EXPECT_EQ(vt::jit(vt::vmap(f))(vt::tensor(m), vt::tensor(n)).to_vector<int>(), expected);
  expect_calls_itself(200, vt::vmap(f), vt::tensor(m), vt::tensor(n));
}

template <class T>
T power(T x, int n) {
  if (n == 0) return T(1);
  return n % 2 == 0 ? power(T(x * x), n / 2) : T(x * power(x, n - 1));
}
Binary make_power() {
  static Binary f("power", [](Tensor x, Tensor n) {
    return vt::cond(
        n == 0, [] { return 1.0f; },
        [&] {
          return vt::cond(
              n % 2 == 0, [&] { return f(x * x, n / 2); }, [&] { return x * f(x, n - 1); });
        });
  });
  return f;
}
template <class T>
void expect_power() {
  const Binary f = make_power();
  std::vector<T> x, expected;
  std::vector<int> n;
  for (int i = 0; i < 400; ++i) {
    x.push_back(T(0.7) + T(i) / T(900));
    n.push_back(i % 23);
    expected.push_back(power(x.back(), n.back()));
  }
  EXPECT_EQ(vt::jit(vt::vmap(f))(vt::tensor(x), vt::tensor(n)).template to_vector<T>(), expected);
  expect_calls_itself(400, vt::vmap(f), vt::tensor(x), vt::tensor(n));
}
TEST(RecursionRegisters, PowersToTheBit) {
  expect_power<float>();
  expect_power<double>();
}

TEST(RecursionRegisters, SeveralResultsAndSmallArrays) {
  using Pair = std::pair<Tensor, Tensor>;
  vt::Recursive<Pair(Tensor, Tensor)> divide("divide", [&](Tensor a, Tensor b) {
    return vt::cond(
        a < b, [&] { return Pair(vt::zeros_like(a), a); },
        [&] {
          const auto [quotient, rest] = divide(a - b, b);
          return Pair(quotient + 1, rest);
        });
  });
  const std::vector<int> a = spread<int>(130, 200);
  const auto [quotient, rest] =
      vt::jit(vt::vmap(divide, {.in_axes = {0, vt::unmapped}}))(vt::tensor(a), vt::tensor(9));
  EXPECT_EQ(quotient.to_vector<int>(), each(a, [](int x) { return x / 9; }));
  EXPECT_EQ(rest.to_vector<int>(), each(a, [](int x) { return x % 9; }));
  expect_calls_itself(130, vt::vmap(divide, {.in_axes = {0, vt::unmapped}}), vt::tensor(a),
                      vt::tensor(9));
  // A vector of three is turned n times.
  Binary turn("turn", [&](Tensor v, Tensor n) {
    return vt::cond(
        n == 0, [&] { return v; },
        [&] { return turn(vt::stack({v[1], v[2], v[0] * 2}, 0), n - 1) + v; });
  });
  const Flat turned = [&](std::span<const Tensor> in) -> Tensors {
    return {vt::vmap(turn)(in[0], in[1])};
  };
  const Tensors in{vt::reshape(vt::arange(120, vt::f64), {40, 3}), vt::arange(40) % 9};
  vt_test::expect_same(turned, in, exact, "turned");
  expect_calls_itself(40, vt::vmap(turn), in[0], in[1]);
}

/// Of sorted numbers in a balanced tree, the nearest to x.
float nearest(const std::vector<float>& all, float x, int low, int high, float best) {
  if (low >= high) return best;
  const int middle = (low + high) / 2;
  const float here = all[middle];
  const float own = std::abs(here - x) < std::abs(best - x) ? here : best;
  return x < here ? nearest(all, x, low, middle, own) : nearest(all, x, middle + 1, high, own);
}
TEST(RecursionRegisters, ReadsArraysOfAllLanesAndOfEach) {
  std::vector<float> all;
  for (int i = 0; i < 500; ++i) all.push_back(static_cast<float>(i) + 0.25f * std::sin(float(i)));
  vt::Recursive<Tensor(Tensor, Tensor, Tensor, Tensor, Tensor)> search("search");
  search = [&](Tensor from, Tensor x, Tensor low, Tensor high, Tensor best) {
    return vt::cond(
        low >= high, [&] { return best; },
        [&] {
          const Tensor middle = (low + high) / 2, here = from[middle],
                       own = vt::where(vt::abs(here - x) < vt::abs(best - x), here, best);
          return vt::cond(
              x < here, [&] { return search(from, x, low, middle, own); },
              [&] { return search(from, x, middle + 1, high, own); });
        });
  };
  const auto query = [&](Tensor from, Tensor x) {
    return search(from, x, vt::tensor(0), vt::tensor(500), vt::tensor(-1e9f));
  };
  std::vector<float> x, expected;
  for (int i = 0; i < 300; ++i) {
    x.push_back(static_cast<float>(i * 37 % 501) + 0.4f);
    expected.push_back(nearest(all, x.back(), 0, 500, -1e9f));
  }
  const Tensor shared = vt::tensor(all), xs = vt::tensor(x);
  const auto captured = vt::vmap([&](Tensor q) { return query(shared, q); });
  EXPECT_EQ(vt::jit(captured)(xs).to_vector<float>(), expected);
  expect_calls_itself(300, captured, xs);
  // Each lane has an array of its own.
  const Tensor own = vt::broadcast_to(shared, {300, 500}) + vt::reshape(vt::arange(300), {300, 1});
  const Tensor found = vt::jit(vt::vmap(query))(own, xs + vt::arange(300));
  EXPECT_EQ((found - vt::arange(300)).to_vector<float>().size(), expected.size());
  const Flat f = [&](std::span<const Tensor> in) -> Tensors {
    return {vt::vmap(query)(in[0], in[1])};
  };
  vt_test::expect_same(f, {own.eval(), (xs + vt::arange(300)).eval()}, exact, "own arrays");
  expect_calls_itself(300, vt::vmap(query), own, xs);
  EXPECT_EQ(vt::jit(query)(shared, xs[7]).item<float>(), expected[7]);
}

// Arrays that the functions capture are constants of their bodies: their elements are not part of
// the code, nor is one mistaken for another.
TEST(RecursionRegisters, ReadsWhatFunctionsCapture) {
  std::vector<std::unique_ptr<Unary>> kept;
  const auto walk = [&](const std::vector<int>& next, const std::vector<int>& weight) -> Unary& {
    Unary& sum = *kept.emplace_back(std::make_unique<Unary>("sum"));
    sum = [&sum, to = vt::tensor(next), w = vt::tensor(weight)](Tensor k) {
      return vt::cond(k == 0, [] { return 0; }, [&] { return w[k] + sum(to[k]); });
    };
    return sum;
  };
  for (const int size : {8, 20, 400}) {
    std::vector<int> next, weight(static_cast<std::size_t>(size), 1), last = weight;
    for (int i = 0; i < size; ++i) next.push_back(i / 2);
    last.back() = 100;  // no text of the Graph shows it
    const Tensor all = vt::arange(size).eval();
    const auto ones = vt::vmap(walk(next, weight)), lanes = vt::vmap(walk(next, last));
    std::vector<int> expected(static_cast<std::size_t>(size));
    for (int i = 1; i < size; ++i) expected[i] = 1 + expected[i / 2];
    EXPECT_EQ(vt::jit(ones)(all).to_vector<int>(), expected);
    expect_calls_itself(size, ones, all);
    expected.back() += 99;
    EXPECT_EQ(vt::jit(lanes)(all).to_vector<int>(), expected);
    EXPECT_EQ(vt::jit(walk(next, last))(vt::tensor(size - 1)).item<int>(), expected.back());
  }
  // One array twice, and two arrays that begin alike.
  std::vector<int> same(50, 0), other = same;
  other[30] = 7;
  EXPECT_EQ(vt::jit(walk(same, same))(vt::tensor(30)).item<int>(), 0);
  EXPECT_EQ(vt::jit(walk(same, other))(vt::tensor(30)).item<int>(), 7);
}

// As pairs of real numbers, whether calls hand them on or not.
TEST(RecursionRegisters, ComplexNumbers) {
  Unary inside("inside", [&](Tensor n) {
    return vt::cond(
        n <= 0.0, [] { return 0.0; },
        [&] {
          const Tensor z = vt::complex(n, n);
          return vt::imag(z * z) + inside(n - 1.0);
        });
  });
  expect_calls_itself(-1, inside, vt::tensor(3.0));
  EXPECT_EQ(vt::jit(inside)(vt::tensor(3.0)).item<double>(), 2.0 * (9 + 4 + 1));
  vt::Recursive<Tensor(Tensor, Tensor, Tensor)> orbit("orbit", [&](Tensor n, Tensor z, Tensor c) {
    return vt::cond(n > 0, [&] { return orbit(n - 1, z * z + c, c) + z * 0.5; }, [&] { return z; });
  });
  const auto plain = [](int n, std::complex<double> c) {
    std::complex<double> z = c, sum = 0;
    for (; n > 0; --n) sum += z * 0.5, z = z * z + c;
    return sum + z;
  };
  const std::vector<int> n{0, 1, 5, 9, 3, 12, 2, 7, 4, 11, 6, 8, 10, 0, 3, 5, 1};
  const std::complex<double> c(-0.3, 0.2);
  const Tensor all_c = vt::broadcast_to(vt::tensor(c), {static_cast<std::int64_t>(n.size())});
  const Tensor all_n = vt::tensor(n);
  expect_calls_itself(17, vt::vmap(orbit), all_n, all_c, all_c);
  const auto lanes = vt::jit(vt::vmap(orbit));
  for (int call = 0; call < 2; ++call) {
    const Tensor got = lanes(all_n, all_c, all_c);
    for (std::size_t i = 0; i < n.size(); ++i)
      EXPECT_LT(std::abs(got[i].item<std::complex<double>>() - plain(n[i], c)), 1e-14) << i;
  }
  const Tensor slope = vt::jit(vt::grad([&](Tensor x) {
    return vt::real(orbit(vt::tensor(5), vt::complex(x, x * 0.1), vt::tensor(c)));
  }))(vt::tensor(0.4));
  const double h = 1e-6;
  const auto at = [&](double x) {
    std::complex<double> z(x, x * 0.1), sum = 0;
    for (int k = 5; k > 0; --k) sum += z * 0.5, z = z * z + c;
    return (sum + z).real();
  };
  EXPECT_NEAR(slope.item<double>(), (at(0.4 + h) - at(0.4 - h)) / (2 * h), 1e-8);
}

TEST(RecursionRegisters, HalfPrecisionAsTheInterpreter) {
  Binary f("f", [&](Tensor x, Tensor n) {
    return vt::cond(
        n <= 0, [&] { return x; }, [&] { return f(x * 1.1f, n - 1) + f(x, n - 2) * x; });
  });
  for (const vt::DType d : {vt::f16, vt::bf16, vt::f32}) {
    const Flat lanes = [&](std::span<const Tensor> in) -> Tensors {
      return {vt::vmap(f)(in[0], in[1])};
    };
    const Tensors in{(vt::arange(50, vt::f32) * 0.01f).astype(d).eval(),
                     (vt::arange(50) % 7).eval()};
    vt_test::expect_same(lanes, in, exact, "halves");
    expect_calls_itself(50, vt::vmap(f), in[0], in[1]);
  }
}

// --- inside of others ----------------------------------------------------------------------------

TEST(RecursionRegisters, InsideOfLoopsAndAroundThem) {
  Binary sum("sum", [&](Tensor x, Tensor n) {
    return vt::cond(
        n == 0, [&] { return x; },
        [&] {
          return vt::fori_loop(
              0, 2, [&](Tensor i, Tensor s) { return s + sum(x * 0.5 + i * 0.1, n - 1); }, x * 0.0);
        });
  });
  const auto walk = [&](Tensor x, Tensor steps) {
    const auto [last, i] =
        vt::while_loop([&](Tensor v, Tensor i) { return (i < steps) & (v < 50.0); },
                       [&](Tensor v, Tensor i) { return std::pair(sum(v, i % 4) + 1.0, i + 1); },
                       std::pair(x, vt::tensor(0)));
    return last;
  };
  const auto scanned = [&](Tensor x) {
    return vt::scan([&](Tensor c, Tensor n) { return std::pair(sum(c, n) * 0.5, c); }, x,
                    vt::tensor({2, 0, 1, 3}))
        .second;
  };
  const auto either = [&](Tensor x, Tensor n) {
    return vt::cond(x < 0.5, [&] { return sum(x, n) * 2.0; }, [&] { return walk(x, n); });
  };
  const Tensor x = vt::arange(60, vt::f64) / 60.0, n = vt::arange(60) % 6;
  const auto same = [&](const char* what, int lanes, auto f, const auto&... in) {
    SCOPED_TRACE(what);
    const Flat flat = [&](std::span<const Tensor> a) -> Tensors {
      if constexpr (sizeof...(in) == 1) return {f(a[0])};
      else return {f(a[0], a[1])};
    };
    vt_test::expect_same(flat, {in...}, exact, what);
    expect_calls_itself(lanes, f, in...);
  };
  same("walk", -1, walk, x[7], n[11]);
  same("scanned", -1, scanned, x[7]);
  same("either", -1, either, x[50], n[11]);
  same("lanes of walk", 60, vt::vmap(walk), x, n);
  same("lanes of scanned", 60, vt::vmap(scanned), x);
  same("lanes of either", 60, vt::vmap(either), x, n);
  same("lanes of lanes", 60, vt::vmap(vt::vmap(sum)), vt::reshape(x, {6, 10}),
       vt::reshape(n, {6, 10}));
}

TEST(RecursionRegisters, Derivatives) {
  const Binary f = make_power();
  const Tensor x = vt::arange(60, vt::f64) / 30.0 + 0.1, n = vt::arange(60) % 12;
  const auto same = [&](auto g, bool in_registers) {
    const Flat alone = [&](std::span<const Tensor> a) -> Tensors { return {g(a[0], a[1])}; };
    const Flat lanes = [&](std::span<const Tensor> a) -> Tensors {
      return {vt::vmap(g)(a[0], a[1])};
    };
    vt_test::expect_same(alone, {x[20], n[11]}, close, "alone");
    vt_test::expect_same(lanes, {x, n}, close, "lanes");
    if (!in_registers) return;
    expect_calls_itself(-1, g, x[20], n[11]);
    expect_calls_itself(60, vt::vmap(g), x, n);
  };
  same(vt::jacfwd(f), true);
  same(vt::jacfwd(vt::jacfwd(f)), true);
  same([&](Tensor v,
           Tensor k) { return vt::jvp([&](Tensor u) { return f(u, k); }, v, v * 0.5).second; },
       true);
  // What reverse mode remembers is on the host.
  same(vt::grad(f), false);
  same(vt::jacfwd(vt::grad(f)), false);
}

TEST(RecursionRegisters, EffectsStayOnTheHost) {
  std::string printed;
  vt::set_print_sink([&](std::string_view text) { printed += text.substr(0, text.find('\n')); });
  Unary f("f", [&](Tensor n) {
    vt::debug_print("{}", n);
    return vt::cond(n == 0, [] { return 0; }, [&] { return 1 + f(n - 1); });
  });
  EXPECT_EQ(vt::jit(f)(vt::tensor(3)).item<int>(), 3);
  EXPECT_EQ(printed, "3210");
  expect_host_steps(f, vt::tensor(3));
  vt::set_print_sink({});
}

TEST(RecursionRegisters, LargeBodiesStayPrograms) {
  Unary f("f", [&](Tensor x) {
    return vt::cond(vt::sum(x) > 1000.0, [&] { return x; }, [&] { return f(x * 2.0 + 1.0); });
  });
  expect_host_steps(f, vt::zeros({100}, vt::f64));
  EXPECT_EQ(vt::jit(f)(vt::zeros({100}, vt::f64)).to_vector<double>()[99], 15.0);
}

// --- what must not matter ------------------------------------------------------------------------

TEST(RecursionRegisters, NeitherLanesNorThreadsMatter) {
  Binary f("f", [&](Tensor x, Tensor n) {
    return vt::cond(
        n <= 0, [&] { return vt::sin(x); },
        [&] { return f(x * 1.1, n - 1) * 0.7 + f(x + 0.3, n - 2); });
  });
  const Tensor x = (vt::arange(1000, vt::f64) * 0.01).eval(), n = (vt::arange(1000) % 10).eval();
  const std::vector<double> all = vt::jit(vt::vmap(f))(x, n).to_vector<double>();
  const int threads = vt::num_threads();
  for (const int count : {1, 2, 7, 64, 65, 999})
    for (const int on : {1, 4}) {
      vt::set_num_threads(on);
      const std::vector<double> some =
          vt::jit(vt::vmap(f))(x[vt::Slice(0, count)], n[vt::Slice(0, count)]).to_vector<double>();
      EXPECT_EQ(some, std::vector<double>(all.begin(), all.begin() + count)) << count;
    }
  vt::set_num_threads(threads);
  EXPECT_EQ(vt::jit(f)(x[501], n[501]).item<double>(), all[501]);
}

// Texts of Graphs show names, and each body once: that does not tell who is called.
// Each lane of such a loop updates its own part of a table; and keeps its own states for the way
// back.
TEST(RecursionRegisters, LoopsWithTablesOverLanes) {
  vt::Recursive<Tensor(Tensor, Tensor)> half("half");
  half = [&](Tensor n, Tensor y) {
    return vt::cond(
        n > 0, [&](Tensor n, Tensor y) { return vt::sin(half(n - 1, y * 0.5)); },
        [](Tensor, Tensor y) { return y; }, n, y);
  };
  const auto filled = [&](Tensor v, Tensor n) {
    const auto round = [&](Tensor i, Tensor t) {
      return std::pair(i + 1, vt::index_update(t, i, half(i % 4, v + t[i - 1])));
    };
    return vt::while_loop([&](Tensor i, Tensor) { return i < n; }, round,
                          std::pair(vt::tensor(1), vt::zeros({50}, vt::f64)))
        .second;
  };
  const auto last = [&](Tensor v, Tensor n) {
    const auto round = [&](Tensor i, Tensor y) {
      return std::pair(i + 1, half(i % 4, y) + 0.1 * y * y);
    };
    return vt::while_loop([&](Tensor i, Tensor) { return i < n; }, round,
                          std::pair(vt::tensor(0), v))
        .second;
  };
  const Tensor v = vt::tensor({0.7, 0.8, 0.9}), n = vt::tensor({2, 5, 4});
  const auto tables = vt::jit(vt::vmap(filled));
  const auto slopes = vt::jit(vt::vmap(vt::grad<0>(last)));
  for (int run = 0; run < 2; ++run) {
    const Tensor all = tables(v, n), slope = slopes(v, n);
    for (int lane = 0; lane < 3; ++lane) {
      EXPECT_TRUE(vt::allclose(all[lane], filled(v[lane], n[lane]), 1e-12, 1e-12).item<bool>());
      constexpr double h = 1e-6;
      const double by_difference =
          (last(v[lane] + h, n[lane]).item<double>() - last(v[lane] - h, n[lane]).item<double>()) /
          (2 * h);
      EXPECT_NEAR(slope[lane].item<double>(), by_difference, 1e-7) << lane;
    }
  }
}

TEST(RecursionRegisters, EqualNamesAreDifferentFunctions) {
  const auto run = [](bool back) {
    Unary a("f"), b("f");
    a = [&](Tensor n) { return vt::cond(n <= 0, [] { return 0; }, [&] { return 1 + b(n - 1); }); };
    b = [&](Tensor n) {
      return vt::cond(n <= 0, [] { return 0; }, [&] { return 10 + (back ? a(n - 1) : b(n - 1)); });
    };
    return vt::jit(vt::vmap(a))(vt::tensor({4, 5, 0})).to_vector<int>();
  };
  EXPECT_EQ(run(true), std::vector<int>({22, 23, 0}));
  EXPECT_EQ(run(false), std::vector<int>({31, 41, 0}));
}

// --- depth ---------------------------------------------------------------------------------------

TEST(RecursionRegisters, TooDeepOnAnyThread) {
  Unary down(
      "down",
      [&](Tensor n) { return vt::cond(n <= 0, [] { return 0; }, [&] { return 1 + down(n - 1); }); },
      {.max_depth = 50});
  const std::string says =
      "; if that is no mistake, give it a greater max_depth; at "
      "recursion_registers_test.cpp:";
  const auto alone = vt::jit(down);
  expect_calls_itself(-1, down, vt::tensor(3));
  EXPECT_EQ(alone(vt::tensor(49)).item<int>(), 49);
  for (const int n : {50, 51, 58, 10'000}) {
    const std::string text = error_of([&] { alone(vt::tensor(n)).eval(); });
    EXPECT_TRUE(
        text.starts_with("vt::Recursive: down calls itself more than 50 deep, beginning "
                         "with " +
                         std::to_string(n) + says))
        << text;
  }
  EXPECT_EQ(alone(vt::tensor(49)).item<int>(), 49) << "as if nothing had been";
  const auto lanes = vt::jit(vt::vmap(down));
  std::vector<int> n(700, 49);
  EXPECT_EQ(lanes(vt::tensor(n)).to_vector<int>(), n);
  n[333] = n[334] = n[600] = 50;
  const int threads = vt::num_threads();
  for (const int on : {1, 4}) {
    vt::set_num_threads(on);
    const std::string text = error_of([&] { lanes(vt::tensor(n)).eval(); });
    EXPECT_NE(text.find("vt::Recursive: down calls itself more than 50 deep in lane 333, which "
                        "began with 50" +
                        says),
              std::string::npos)
        << text;
  }
  vt::set_num_threads(threads);
}

// Each call calls twice, and a loop waits for what never comes: the first call too many ends all.
TEST(RecursionRegisters, EndsAtTheFirstCallTooMany) {
  Unary twice("twice", [&](Tensor n) {
    return vt::cond(n < 0, [] { return 0; }, [&] { return twice(n + 1) + twice(n + 2); });
  });
  Unary waits("waits", [&](Tensor n) {
    return vt::cond(
        n < 0, [] { return 0; },
        [&] {
          return vt::while_loop([&](Tensor v) { return waits(v + 1) < 1; },
                                [](Tensor v) { return v - 1; }, n);
        });
  });
  for (const Unary& f : {twice, waits}) {
    expect_calls_itself(-1, f, vt::tensor(-1));
    const std::string text = error_of([&] { vt::jit(f)(vt::tensor(1)).eval(); });
    EXPECT_NE(text.find("calls itself more than 1000 deep, beginning with 1;"), std::string::npos)
        << text;
  }
}

// The limit of each counts, and the calls of all.
TEST(RecursionRegisters, DepthOfSeveralFunctions) {
  Unary far("far", vt::RecursionOptions{.max_depth = 100}),
      near("near", vt::RecursionOptions{.max_depth = 22});
  far = [&](Tensor n) {
    return vt::cond(
        n <= 0, [] { return 0; },
        [&] {
          return vt::cond(n == 80, [&] { return near(n - 1); }, [&] { return 1 + far(n - 1); });
        });
  };
  near = [&](Tensor n) {
    return vt::cond(
        n <= 0, [] { return 0; },
        [&] {
          return 1 + vt::cond(n == 79, [&] { return near(n - 1); }, [&] { return far(n - 1); });
        });
  };
  const auto f = vt::jit(far);
  EXPECT_EQ(f(vt::tensor(79)).item<int>(), 79);
  EXPECT_EQ(f(vt::tensor(99)).item<int>(), 98) << "near is the last of 22 calls";
  const std::string text = error_of([&] { f(vt::tensor(101)).eval(); });
  EXPECT_NE(text.find("near calls itself more than 22 deep"), std::string::npos) << text;
  for (const int n : {100, 101, 300}) {
    const auto by = [&](Tensor x) { return far(x); };
    const std::string compiled = error_of([&] { vt::jit(by)(vt::tensor(n)).eval(); }),
                      interpreted = error_of([&] { far(vt::tensor(n)).eval(); });
    EXPECT_EQ(compiled.substr(0, compiled.find("; at")),
              interpreted.substr(0, interpreted.find("; at")));
  }
}

TEST(RecursionRegisters, TheStackOfAThreadEnds) {
  Unary endless("endless",
                [&](Tensor n) {
                  return vt::cond(n < 0, [] { return 0; }, [&] { return endless(n + 1) * 3 + n; });
                },
                {.max_depth = 1 << 30});
  const std::string says = ", and the stack of the thread holds no more";
  const auto expect_ends = [&] {
    const std::string text = error_of([&] { vt::jit(endless)(vt::tensor(0)).eval(); });
    EXPECT_TRUE(text.starts_with("vt::Recursive: endless calls itself ")) << text;
    EXPECT_NE(text.find(" deep, beginning with 0" + says), std::string::npos) << text;
  };
  expect_calls_itself(-1, endless, vt::tensor(-1));
  expect_ends();
  std::thread(expect_ends).join();
  const std::string text =
      error_of([&] { vt::jit(vt::vmap(endless))(vt::tensor({-1, -2, 5, 4})).eval(); });
  EXPECT_NE(text.find(" deep in lane 2, which began with 5" + says), std::string::npos) << text;
  EXPECT_EQ(vt::jit(endless)(vt::tensor(-1)).item<int>(), 0);
}

}  // namespace
