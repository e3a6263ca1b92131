// Fourier transforms: rows alone and in batches, planes, lengths with large primes, real signals,
// and a filter around them.
#include <complex>

#include "support.hpp"

namespace {

template <class R>
vt::Tensor signal(const vt::Shape& shape) {
  return vt::complex(perf::random_tensor<R>(shape, 1), perf::random_tensor<R>(shape, 2)).eval();
}

/// As is customary: 5 n log₂ n operations for each transform of n points.
template <class F>
void rows(const std::string& name, const vt::Tensor& x, double points, F f) {
  const double flops = 5 * static_cast<double>(x.size()) * std::log2(points);
  const auto transform = vt::jit(f);
  for (const int threads : {1, 2})
    perf::row_on(
        threads, name + "/threads:" + std::to_string(threads) + "/vt", [=] { transform(x).eval(); },
        flops, "GFLOP/s");
}

template <class R>
void all(const std::string& dtype) {
  const auto fft = [](vt::Tensor x) { return vt::fft::fft(x); };
  for (int p : {10, 12, 14, 16, 18, 20}) {
    const std::int64_t n = std::int64_t{1} << p;
    rows("fft/" + dtype + "/" + std::to_string(n), signal<R>({n}), static_cast<double>(n), fft);
  }
  rows("fft/" + dtype + "/1000x1024", signal<R>({1000, 1024}), 1024, fft);
  rows("fft/" + dtype + "/1000x1000", signal<R>({1000, 1000}), 1000, fft);
  rows("fft/" + dtype + "/100x10007", signal<R>({100, 10007}), 10007, fft);
  rows("fft2/" + dtype + "/1024x1024", signal<R>({1024, 1024}), 1024 * 1024,
       [](vt::Tensor x) { return vt::fft::fft2(x); });
  rows("rfft/" + dtype + "/1000x1024", perf::random_tensor<R>({1000, 1024}), 1024,
       [](vt::Tensor x) { return vt::fft::rfft(x); });
  rows("rfft/" + dtype + "/1048576", perf::random_tensor<R>({1 << 20}), 1 << 20,
       [](vt::Tensor x) { return vt::fft::rfft(x); });
  rows("filter/" + dtype + "/1000x1024", perf::random_tensor<R>({1000, 1024}), 1024,
       [](vt::Tensor x) {
         return vt::tanh(
             vt::fft::irfft(vt::fft::rfft(x) * vt::exp(-vt::fft::rfftfreq(1024, 1.0, x.dtype()))));
       });
}

void functions() {
  const vt::Tensor z = signal<float>({1'000'000}), a = signal<float>({512, 512});
  const auto exp = vt::jit([](vt::Tensor x) { return vt::exp(x); });
  const auto chain = vt::jit([](vt::Tensor x) { return vt::abs(x * vt::conj(x) + 2.0 * x); });
  const auto product = vt::jit([](vt::Tensor x) { return vt::matmul(x, x); });
  for (const int threads : {1, 2}) {
    const std::string on = "/threads:" + std::to_string(threads) + "/vt";
    perf::row_on(threads, "complex/exp/c64/1000000" + on, [=] { exp(z).eval(); }, 1e6, "G/s");
    perf::row_on(threads, "complex/chain/c64/1000000" + on, [=] { chain(z).eval(); }, 1e6, "G/s");
    perf::row_on(
        threads, "complex/matmul/c64/512" + on, [=] { product(a).eval(); }, 8.0 * 512 * 512 * 512,
        "GFLOP/s");
  }
}

}  // namespace

int main(int argc, char** argv) {
  all<float>("c64");
  all<double>("c128");
  functions();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
