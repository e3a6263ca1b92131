// Measures the inner functions' f32 error over all 2^32 inputs (or every k-th), judged by libm in f64 and at the worst input by MPFR.
//
//   ulp_exhaustive [function|all] [stride = 1] [host|avx512|avx2|sse2]     exit code 1 if an error exceeds 2 ulp
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "src/jit/cpu/compile.hpp"
#include "tests/math_functions.hpp"

#if VT_HAS_LLVM_HEADERS

namespace {

using namespace vt::detail::cpu;
using vt_test::MathFunction;

using Kernel = void(const float* x, float* out, std::int64_t n);

std::shared_ptr<Code> compile(const MathFunction& f, Isa isa) {
  IrBuilder b(make_target(isa));
  const int lanes = b.target().lanes(sizeof(float));
  b.begin_function("kernel", {Param::ptr(), Param::ptr(), Param::of(vt::i64)});
  b.for_range(b.index(0), b.arg(2), lanes, [&](Value i) {
    b.store(b.offset(b.arg(1), vt::f32, i), f.emit(b, b.load(b.offset(b.arg(0), vt::f32, i), vt::f32, lanes), {}));
  });
  b.end_function();
  const std::vector<std::string> names = {"kernel"};
  return compile_and_load(b, names);
}

double exact_error(const MathFunction& f, float x, float got) {
  mpfr_t in, out;
  mpfr_init2(in, 64);
  mpfr_init2(out, 120);
  mpfr_set_flt(in, x, MPFR_RNDN);
  f.exact(out, in, in);
  const double e = vt_test::ulps(got, mpfr_get_ld(out, MPFR_RNDN));
  mpfr_clear(in);
  mpfr_clear(out);
  return e;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "all";
  const std::uint64_t stride = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::string isa_name = argc > 3 ? argv[3] : "host";
  const Isa isa = isa_name == "sse2" ? Isa::sse2 : isa_name == "avx2" ? Isa::avx2 : isa_name == "avx512" ? Isa::avx512 : Isa::host;
  if (stride == 0) return std::fprintf(stderr, "the stride must be a positive number\n"), 2;
  if (const std::string& why = llvm_unavailable_reason(); !why.empty()) return std::fprintf(stderr, "%s\n", why.c_str()), 2;
  bool bad = false, any = false;
  std::printf("%-10s %9s %15s  %-14s\n", "function", "max ulp", "at", "G elements/s");
  for (const MathFunction& f : vt_test::math_functions) {
    if (f.arity != 1 || (wanted != "all" && wanted != f.name)) continue;
    any = true;
    const std::shared_ptr<Code> code = compile(f, isa);
    Kernel* kernel = code->function<Kernel>();
    constexpr std::size_t block = 4096;
    std::vector<float> x(block), out(block);
    double worst = 0, seconds = 0;
    float worst_x = 0, worst_out = 0;
    std::uint64_t done = 0;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32);) {
      std::size_t n = 0;
      for (; n < block && bits < (std::uint64_t{1} << 32); ++n, bits += stride) {
        const auto word = static_cast<std::uint32_t>(bits);
        std::memcpy(&x[n], &word, sizeof(word));
      }
      const auto start = std::chrono::steady_clock::now();
      kernel(x.data(), out.data(), block);
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      done += block;
      for (std::size_t i = 0; i < n; ++i) {
        const double e = vt_test::ulps(out[i], f.approximate(static_cast<double>(x[i]), 0));
        if (e > worst) worst = e, worst_x = x[i], worst_out = out[i];
      }
    }
    if (worst > 0) worst = exact_error(f, worst_x, worst_out);
    bad = bad || !(worst <= 2);
    std::printf("%-10s %9.4f %15.7g  %-14.2f%s\n", f.name, worst, static_cast<double>(worst_x), static_cast<double>(done) / seconds * 1e-9,
                worst <= 2 ? "" : "  TOO LARGE");
    std::fflush(stdout);
  }
  if (!any) return std::fprintf(stderr, "no unary function is called %s\n", wanted.c_str()), 2;
  return bad ? 1 : 0;
}

#else
int main() { return std::fprintf(stderr, "built without LLVM headers\n"), 2; }
#endif
