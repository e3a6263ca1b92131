// Random numbers and special functions: normal draws by the hundred million, draws by rejection,
// loops inside element-wise functions.
#include "support.hpp"

namespace {

constexpr std::int64_t million = 1'000'000, many = 100'000'000;

void draws() {
  const auto normal = vt::jit([](vt::Tensor key) { return vt::random::normal(key, {many}); });
  const auto gamma = vt::jit([](vt::Tensor key) { return vt::random::gamma(key, {million}, 0.7); });
  const auto poisson =
      vt::jit([](vt::Tensor key) { return vt::random::poisson(key, {million}, 20.0); });
  const vt::Tensor key = vt::random::key(1).eval();
  for (const int threads : {1, 2}) {
    const std::string on = "/threads:" + std::to_string(threads) + "/vt";
    perf::row_on(
        threads, "random/normal/f32/100000000" + on, [=] { normal(key).eval(); }, many, "G/s");
    perf::row_on(
        threads, "random/gamma/f32/1000000" + on, [=] { gamma(key).eval(); }, million, "G/s");
    perf::row_on(
        threads, "random/poisson/1000000" + on, [=] { poisson(key).eval(); }, million, "G/s");
  }
}

void special_functions() {
  const vt::Tensor a = (5.0f + 4.0f * perf::random_tensor<float>({million})).eval(),
                   x = (5.0f + 4.0f * vt::flip(a)).eval();
  const auto igamma = vt::jit([](vt::Tensor a, vt::Tensor x) { return vt::igamma(a, x); });
  const auto i0e = vt::jit([](vt::Tensor x) { return vt::bessel_i0e(x); });
  for (const int threads : {1, 2}) {
    const std::string on = "/threads:" + std::to_string(threads) + "/vt";
    perf::row_on(
        threads, "special/igamma/f32/1000000" + on, [=] { igamma(a, x).eval(); }, million, "G/s");
    perf::row_on(threads, "special/i0e/f32/1000000" + on, [=] { i0e(x).eval(); }, million, "G/s");
  }
}

}  // namespace

int main(int argc, char** argv) {
  draws();
  special_functions();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
