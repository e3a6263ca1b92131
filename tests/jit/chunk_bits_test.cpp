// What `chunk` promises: functions of elements, scans and draws have the same bits for any number
// of lanes at a time, the first time and later, eagerly and under jit; sums and products differ by
// no more than their order may change.
#include <vt/random.hpp>

#include "support/property.hpp"

namespace {

using namespace vt;

struct Row {
  const char* name;
  Tensor (*f)(Tensor);
  bool complex_too = true;
};
const Row functions[] = {
    {"sin", [](Tensor x) { return sin(x); }},
    {"exp", [](Tensor x) { return exp(x); }},
    {"log", [](Tensor x) { return log(abs(x) + 1); }},
    {"tanh in a formula", [](Tensor x) { return tanh(x) * x + x / 3; }},
    {"pow", [](Tensor x) { return pow(abs(x) + 1, x); }},
    {"cube", [](Tensor x) { return x * x * x; }},
    {"quotient", [](Tensor x) { return x / (x + 3); }},
    {"sigmoid", [](Tensor x) { return sigmoid(x); }},
    {"cbrt", [](Tensor x) { return cbrt(x); }, false},
    {"atan2", [](Tensor x) { return atan2(x, x + 1); }, false},
    {"erf", [](Tensor x) { return erf(x); }, false},
    {"lgamma", [](Tensor x) { return lgamma(x + 4); }, false},
    {"cumsum", [](Tensor x) { return cumsum(x, 0); }},
    {"cumprod", [](Tensor x) { return cumprod(1 + 0.01 * x, 0); }},
    {"draws", [](Tensor x) { return real(x) + random::normal(random::key(3), x.shape()); }}};
const Row sums[] = {{"sum", [](Tensor x) { return sum(x); }},
                    {"mean of sines", [](Tensor x) { return mean(sin(x)); }},
                    {"dot", [](Tensor x) { return dot(x, x); }},
                    {"matrix", [](Tensor x) { return matmul(outer(x[0] + ones_like(x), x), x); }}};

Tensor operand(DType d, std::int64_t lanes, std::int64_t n) {
  return vt_test::random_tensor(is_complex(d) ? c128 : f64, {lanes, n}, -2, 2,
                                static_cast<std::uint64_t>(n))
      .astype(d)
      .eval();
}

/// Calls whole and in blocks, in an order in which first and later runs of each meet.
void check(const Row& r, DType d, std::int64_t lanes, std::int64_t n,
           const vt_test::Tolerance& tolerance) {
  const Tensor x = operand(d, lanes, n);
  for (const bool with_jit : {false, true})
    for (const bool loop : {false, true}) {
      if (loop && d != f32) continue;
      Tensor first;
      for (const std::int64_t chunk :
           {std::int64_t{0}, std::int64_t{2}, std::int64_t{0}, std::int64_t{1}, std::int64_t{3},
            std::int64_t{2}, lanes, lanes + 4}) {
        const auto call = [&](Tensor t) {
          if (loop) return pfor([&](Tensor i) { return r.f(t[i]); }, lanes, {.chunk = chunk});
          return vmap([&](Tensor lane) { return r.f(lane); }, {.chunk = chunk})(t);
        };
        const Tensor got = (with_jit ? jit(call)(x) : Tensor(call(x))).eval();
        if (!first.defined()) first = got;
        else
          vt_test::expect_close(got, first, tolerance,
                                std::string(r.name) + " of " + name_of(d) + x.shape().str() +
                                    (loop ? " pfor" : " vmap") + (with_jit ? " jit" : "") +
                                    " chunk " + std::to_string(chunk));
      }
    }
}

TEST(ChunkBits, FunctionsOfElements) {
  for (DType d : {f32, f64, f16, c64})
    for (const Row& r : functions)
      if (!is_complex(d) || r.complex_too) check(r, d, 5, 333, vt_test::exact);
}

// The first call of a process with a function that nothing else has compiled.
TEST(ChunkBits, FirstCallsAreAsLaterOnes) {
  for (const std::int64_t n : {7, 333}) {
    const Tensor y = operand(f32, 5, n);
    const auto whole = [&] {
      return pfor([&](Tensor i) { return cosh(y[i]) * asinh(y[i]); }, 5, {.chunk = 0}).eval();
    };
    const Tensor first = whole();
    vt_test::expect_close(pfor([&](Tensor i) { return cosh(y[i]) * asinh(y[i]); }, 5, {.chunk = 2}),
                          first);
    vt_test::expect_close(whole(), first);
    vt_test::expect_close(whole(), first);
  }
}

// Rows of many vectors are added up along the row, however many there are.
TEST(ChunkBits, SumsOfTheSameOrder) {
  const Row same[] = {{"sum", [](Tensor x) { return sum(x); }},
                      {"sum of squares", [](Tensor x) { return sum(x * x); }},
                      {"mean of sines", [](Tensor x) { return mean(sin(x)); }},
                      {"logsumexp", [](Tensor x) { return logsumexp(x); }}};
  for (DType d : {f32, f64})
    for (const Row& r : same)
      for (const std::int64_t n : {131, 501}) {
        const Tensor x = operand(d, 7, n);
        const auto in_blocks = [&](std::int64_t chunk) {
          return vmap([&](Tensor lane) { return r.f(lane); }, {.chunk = chunk})(x).eval();
        };
        const Tensor first = in_blocks(0);
        for (const std::int64_t chunk : {2, 0, 1, 3, 5, 7})
          vt_test::expect_close(in_blocks(chunk), first, vt_test::exact,
                                std::string(r.name) + " of " + name_of(d) + x.shape().str() +
                                    " chunk " + std::to_string(chunk));
      }
}

TEST(ChunkBits, SumsAndProductsUpToTheirOrder) {
  for (DType d : {f32, f64, c64})
    for (const Row& r : sums)
      for (const std::int64_t n : {17, 501}) {
        const double eps = std::ldexp(1.0, real_dtype(d) == f64 ? -52 : -23);
        check(r, d, 5, n, {.relative = 1e3 * eps, .absolute = 1e3 * static_cast<double>(n) * eps});
      }
}

}  // namespace
