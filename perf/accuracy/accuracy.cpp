// Accuracy of the compiled f32 functions over all 2^32 inputs: the largest error in units in the
// last place, and where it is.
//
// usage: accuracy [--stride=N] [--json=FILE] [FUNCTION...]; a line for each function, exit 1 if one
// is above its limit or a special value is wrong. Functions of two numbers take every first number
// once, each with another second one (half of these are chosen so that results are finite).
// References are glibc's in f64, and in 64 bits of significand for each error that would be the
// largest so far and wherever f64 leaves open whether the result is the nearest float. Functions
// that glibc does not have are compared with vt's own in f64, which the tests hold to MPFR and
// Boost.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <vt/special.hpp>
#include <vt/vt.hpp>

#include "accuracy_reference.hpp"

namespace {

enum class Second { none, any, power };  ///< `power`: exponents that give finite results too

struct Function {
  const char* name;
  vt::Tensor (*one)(vt::Operand);
  vt::Tensor (*two)(vt::Operand, vt::Operand) = nullptr;
  Second second = Second::none;
  std::uint64_t stride = 1;  ///< a slow reference: every so many inputs
  double limit = 2;          ///< in units of the last place
};

Function binary(const char* name, vt::Tensor (*f)(vt::Operand, vt::Operand), Second second,
                std::uint64_t stride = 1) {
  return {name, nullptr, f, second, stride};
}

const Function functions[] = {
    {"exp", vt::exp},
    {"exp2", vt::exp2},
    {"expm1", vt::expm1},
    {"log", vt::log},
    {"log2", vt::log2},
    {"log10", vt::log10},
    {"log1p", vt::log1p},
    {"sin", vt::sin},
    {"cos", vt::cos},
    {"tan", vt::tan},
    {"asin", vt::asin},
    {"acos", vt::acos},
    {"atan", vt::atan},
    {"sinh", vt::sinh},
    {"cosh", vt::cosh},
    {"tanh", vt::tanh},
    {"asinh", vt::asinh},
    {"acosh", vt::acosh},
    {"atanh", vt::atanh},
    {"sigmoid", vt::sigmoid},
    {"erf", vt::erf},
    {"erfc", vt::erfc},
    {"cbrt", vt::cbrt},
    {"sqrt", vt::sqrt},
    {"rsqrt", vt::rsqrt},
    binary("pow", vt::pow, Second::power),
    binary("atan2", vt::atan2, Second::any),
    binary("hypot", vt::hypot, Second::any),
    binary("fmod", vt::fmod, Second::any, 63),
    binary("nextafter", vt::nextafter, Second::any),
    {"erf_inv", vt::erf_inv},
    {"lgamma", vt::lgamma},
    {"digamma", vt::digamma},
    {"gamma", vt::special::gamma},
    {"erfcx", vt::special::erfcx},
    {"erfc_inv", vt::special::erfcinv},
    {"ndtr", vt::special::ndtr},
    {"log_ndtr", vt::special::log_ndtr},
    {"dawsn", vt::special::dawsn},
    {"expi", vt::special::expi},
    {"spence", vt::special::spence},
    {"fresnel_sin", [](vt::Operand x) { return vt::special::fresnel(std::move(x)).first; }},
    {"fresnel_cos", [](vt::Operand x) { return vt::special::fresnel(std::move(x)).second; }},
    {"bessel_i0e", vt::bessel_i0e},
    {"bessel_i1e", vt::bessel_i1e},
    {"bessel_k0e", vt::special::k0e},
    {"bessel_k1e", vt::special::k1e},
    {"bessel_j0", vt::special::j0},
    {"bessel_j1", vt::special::j1},
    {"bessel_y0", vt::special::y0},
    {"bessel_y1", vt::special::y1},
};

/// As good as random, and the same in every run.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

float second_number(const Function& f, float x, std::uint64_t number) {
  const std::uint64_t random = mixed(number + 0x9e3779b97f4a7c15);
  if (random & 1) return std::bit_cast<float>(static_cast<std::uint32_t>(random >> 32));
  // in [-1, 1)
  const double unit = static_cast<double>(static_cast<std::int64_t>(random) >> 11) * 0x1p-52;
  if (f.second == Second::power) {
    // whole and half numbers, for which |x|^y is exact or x < 0
    if (random & 2) return static_cast<float>(std::nearbyint(unit * 40) * 0.5);
    return static_cast<float>(
        unit * 155 / std::max(std::fabs(std::log2(std::fabs(static_cast<double>(x)))), 1e-30));
  }
  return static_cast<float>(x * std::exp2(unit * 30));
}

struct Worst {
  double error = -1;
  float x = 0, y = 0, got = 0;
  std::uint64_t inputs = 0, not_nearest = 0;
};

/// Into `worst`: n results, of which `exact` are the values in f64.
void judge(const perf::Reference& reference, const float* x, const float* y, const float* got,
           const double* exact, std::int64_t n, Worst& worst) {
  constexpr std::int64_t most = 4096;
  double error[most];
  for (std::int64_t start = 0; start < n; start += most) {
    const std::int64_t count = std::min(most, n - start);
    perf::ulp_errors(got + start, exact + start, error, count);
    for (std::int64_t i = 0; i < count; ++i) {
      const bool open = std::fabs(error[i] - 0.5) < 0x1p-24;
      if (error[i] <= worst.error && !open) {
        worst.not_nearest += error[i] > 0.5;
        continue;
      }
      const std::int64_t at = start + i;
      if (reference.wide)
        error[i] = perf::ulp_error(got[at], reference.wide(x[at], y ? y[at] : 0.0f));
      worst.not_nearest += error[i] > 0.5;
      if (error[i] > worst.error)
        worst.error = error[i], worst.x = x[at], worst.y = y ? y[at] : 0, worst.got = got[at];
    }
  }
  worst.inputs += static_cast<std::uint64_t>(n);
}

Worst sweep(const Function& f, std::uint64_t stride) {
  constexpr std::int64_t block = 1 << 20;
  const auto compiled = vt::jit([&f](vt::Tensor x) { return f.one(x); });
  const auto compiled_pair = vt::jit([&f](vt::Tensor x, vt::Tensor y) { return f.two(x, y); });
  const perf::Reference reference = perf::reference_of(f.name);
  const unsigned parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Worst> partial(parts);
  std::vector<float> x(block), y(f.two ? block : 0);
  std::vector<double> exact(block);
  const auto run = [&](const vt::Tensor& a, const vt::Tensor& b) {
    return (f.two ? compiled_pair(a, b) : compiled(a)).eval();
  };
  for (std::uint64_t start = 0; start < (1ull << 32); start += block * stride) {
    for (std::int64_t i = 0; i < block; ++i) {
      const std::uint64_t number = start + static_cast<std::uint64_t>(i) * stride;
      x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(number));
      if (f.two) y[i] = second_number(f, x[i], number);
    }
    const vt::Tensor a = vt::borrow(std::span<const float>(x), {block}),
                     b = f.two ? vt::borrow(std::span<const float>(y), {block}) : a;
    const vt::Tensor out = run(a, b);
    const float* got = out.data<float>().data();
    vt::Tensor own;
    if (!reference.block) own = run(a.astype(vt::f64), b.astype(vt::f64));
    const double* by_vt = reference.block ? nullptr : own.data<double>().data();
    std::vector<std::thread> pool;
    for (unsigned t = 0; t < parts; ++t)
      pool.emplace_back([&, t] {
        const std::int64_t low = t * block / parts, high = (t + 1) * block / parts;
        const float* second = f.two ? y.data() + low : nullptr;
        if (reference.block)
          reference.block(x.data() + low, second, exact.data() + low, high - low);
        judge(reference, x.data() + low, second, got + low, (by_vt ? by_vt : exact.data()) + low,
              high - low, partial[t]);
      });
    for (std::thread& thread : pool) thread.join();
  }
  Worst worst;
  for (const Worst& w : partial) {
    if (w.error > worst.error)
      worst.error = w.error, worst.x = w.x, worst.y = w.y, worst.got = w.got;
    worst.inputs += w.inputs, worst.not_nearest += w.not_nearest;
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  int failures = 0;
  std::uint64_t stride = 1;
  std::FILE* json = nullptr;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    // even ones would miss bits
    if (std::strncmp(argv[i], "--stride=", 9) == 0)
      stride = std::strtoull(argv[i] + 9, nullptr, 10) | 1;
    else if (std::strncmp(argv[i], "--json=", 7) == 0) json = std::fopen(argv[i] + 7, "w");
    else wanted.push_back(argv[i]);
  }
  std::printf("%-12s %10s %9s  %-30s %-16s %11s %8s %6s\n", "function", "inputs", "worst ulp", "at",
              "result", "not nearest", "limit", "time");
  const char* separator = "{";
  for (const Function& f : functions) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), f.name) == wanted.end())
      continue;
    const auto begin = std::chrono::steady_clock::now();
    const Worst worst = sweep(f, std::max(stride, f.stride));
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const bool good = worst.error <= f.limit;
    char at[64];
    std::snprintf(at, sizeof(at), f.two ? "%a, %a" : "%a", worst.x, worst.y);
    const double share = static_cast<double>(worst.not_nearest) / static_cast<double>(worst.inputs);
    std::printf("%-12s %10llu %9.3f  %-30s %-16a %10.4f%% %8g %4.0f s%s\n", f.name,
                static_cast<unsigned long long>(worst.inputs), worst.error, at, worst.got,
                100 * share, f.limit, seconds, good ? "" : "  ABOVE");
    std::fflush(stdout);
    if (json) {
      std::fprintf(json,
                   "%s\n \"%s\": {\"inputs\": %llu, \"worst_ulp\": %.4g, \"at\": \"%s\", "
                   "\"not_nearest\": %.3g, \"seconds\": %.0f}",
                   separator, f.name, static_cast<unsigned long long>(worst.inputs), worst.error,
                   at, share, seconds);
      separator = ",";
    }
    failures += !good;
  }
  if (json) std::fprintf(json, "\n}\n"), std::fclose(json);
  return failures != 0;
}
