// Accuracy of the f32 functions over all 2^32 inputs: the largest error in units in the last place against f64 libm.
// Usage: accuracy [FUNCTION...]; prints a line per function, exits non-zero if one is above 2 ulp or a special value is wrong.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <vt/vt.hpp>

namespace {

struct Function {
  const char* name;
  vt::Tensor (*vt)(vt::Operand);
  double (*reference)(double);
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

const Function functions[] = {
    {"exp", vt::exp, std::exp},       {"exp2", vt::exp2, std::exp2},    {"expm1", vt::expm1, std::expm1},   {"log", vt::log, std::log},
    {"log1p", vt::log1p, std::log1p}, {"log2", vt::log2, std::log2},    {"sin", vt::sin, std::sin},         {"cos", vt::cos, std::cos},
    {"tan", vt::tan, std::tan},       {"tanh", vt::tanh, std::tanh},    {"sinh", vt::sinh, std::sinh},      {"cosh", vt::cosh, std::cosh},
    {"asin", vt::asin, std::asin},    {"acos", vt::acos, std::acos},    {"atan", vt::atan, std::atan},      {"asinh", vt::asinh, std::asinh},
    {"acosh", vt::acosh, std::acosh}, {"atanh", vt::atanh, std::atanh}, {"sigmoid", vt::sigmoid, logistic}, {"erf", vt::erf, std::erf},
    {"erfc", vt::erfc, std::erfc},    {"cbrt", vt::cbrt, std::cbrt},    {"sqrt", vt::sqrt, std::sqrt},
};

/// Distance in units of the spacing of floats at `exact`; infinite where NaN or infinity disagree.
double ulp_error(float got, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) == std::isnan(got) ? 0 : INFINITY;
  if (got == rounded && std::signbit(got) == std::signbit(rounded)) return 0.5;  // within half a unit
  if (std::isinf(rounded) && std::isinf(got)) return INFINITY;                   // of the other sign
  // One float beside the largest finite one is an error of one unit, whichever side is infinite.
  constexpr double largest = 3.4028234663852886e38, unit = 2.028240960365167e31;
  const double g = std::isinf(got) ? std::copysign(largest + unit, got) : got, e = std::min(std::max(exact, -largest - unit), largest + unit);
  int exponent = 0;
  std::frexp(e, &exponent);
  const double spacing = std::ldexp(1.0, std::max(exponent - 24, -149));
  if (g == 0 && e == 0) return INFINITY;  // signs of zero differ
  return std::abs(g - e) / spacing;
}

struct Worst {
  double error = 0;
  float at = 0, got = 0;
};

Worst sweep(const Function& f, std::uint64_t stride) {
  constexpr std::int64_t block = 1 << 20;
  const auto fast = vt::jit([&f](vt::Tensor x) { return f.vt(x); });
  Worst worst;
  std::vector<float> inputs(block);
  for (std::uint64_t start = 0; start < (1ull << 32); start += block * stride) {
    for (std::int64_t i = 0; i < block; ++i) inputs[i] = std::bit_cast<float>(static_cast<std::uint32_t>(start + i * stride));
    const vt::Tensor y = fast(vt::borrow(std::span<const float>(inputs), {block}));
    const std::span<const float> got = y.data<float>();
    const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
    std::vector<Worst> partial(parts);
    std::vector<std::thread> pool;
    for (unsigned t = 0; t < parts; ++t)
      pool.emplace_back([&, t] {
        for (std::int64_t i = t * block / parts; i < (t + 1) * block / parts; ++i) {
          const double error = ulp_error(got[i], f.reference(inputs[i]));
          if (error > partial[t].error) partial[t] = {error, inputs[i], got[i]};
        }
      });
    for (std::thread& thread : pool) thread.join();
    for (const Worst& w : partial)
      if (w.error > worst.error) worst = w;
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  int failures = 0;
  std::uint64_t stride = 1;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--stride=", 9) == 0) stride = std::strtoull(argv[i] + 9, nullptr, 10);  // every n-th input only
    else wanted.push_back(argv[i]);
  }
  for (const Function& f : functions) {
    bool chosen = wanted.empty();
    for (const std::string& name : wanted) chosen |= name == f.name;
    if (!chosen) continue;
    const Worst worst = sweep(f, stride);
    const bool good = worst.error <= 2.0;
    std::printf("%-8s %8.3f ulp at %a (%.9g): %a%s\n", f.name, worst.error, worst.at, worst.at, worst.got, good ? "" : "  ABOVE 2");
    std::fflush(stdout);
    failures += !good;
  }
  return failures != 0;
}
