// What memory limits: fused chains against memcpy, sums against reading; what arithmetic limits:
// exp and its like against libm.
#include "native_peer.hpp"
#include "support.hpp"

namespace {

void chain() {
  constexpr std::int64_t n = 10'000'000;
  const vt::Tensor x = perf::random_tensor<float>({n});
  const auto fused = vt::jit([](vt::Tensor x) {
    const vt::Tensor y = vt::square(x) * 0.5f + x;
    return vt::maximum(y - 0.25f, 0.0f) * (1.0f + x) - vt::abs(y);
  });
  auto out = std::make_shared<std::vector<float>>(n);
  for (const int threads : {1, 2}) {
    const std::string name = "chain/f32/10000000/threads:" + std::to_string(threads);
    perf::row_on(threads, name + "/vt", [=] { fused(x).eval(); }, 8.0 * n, "GB/s");
    perf::row(
        name + "/memcpy", [=] { native::copy(x.data<float>().data(), out->data(), n, threads); },
        8.0 * n, "GB/s");
  }
}

void sums() {
  constexpr std::int64_t n = 4096;
  const vt::Tensor x = perf::random_tensor<float>({n, n});
  const double bytes = 4.0 * n * n;
  for (const int threads : {1, 2}) {
    const std::string suffix = "/threads:" + std::to_string(threads);
    const auto by = [&](const std::string& what, vt::ReduceAxes axes) {
      const auto sum = vt::jit([axes](vt::Tensor x) { return vt::sum(x, axes); });
      perf::row_on(threads, "sum/" + what + suffix + "/vt", [=] { sum(x).eval(); }, bytes, "GB/s");
    };
    by("axis0", 0);
    by("axis1", 1);
    by("all", {});
    perf::row(
        "sum/limit" + suffix + "/read",
        [=] { benchmark::DoNotOptimize(native::read(x.data<float>().data(), n * n, threads)); },
        bytes, "GB/s");
  }
}

// The other walks over memory: columns of other kinds, transposes, scans, rows that are read and
// written again.
void walks() {
  constexpr std::int64_t n = 4096;
  const auto compare = [&](const std::string& name, double moved, auto f, vt::Tensor x) {
    const auto walk = vt::jit(f);
    for (const int threads : {1, 2})
      perf::row_on(
          threads, "walk/" + name + "/threads:" + std::to_string(threads) + "/vt",
          [=] { walk(x).eval(); }, moved, "GB/s");
  };
  // As many bytes in each, so that one limit fits all.
  const vt::Tensor x = perf::random_tensor<float>({n, n}),
                   wide = perf::random_tensor<double>({n, n / 2});
  const vt::Tensor half = perf::random_tensor<float>({n, 2 * n}).astype(vt::bf16).eval();
  const double once = 4.0 * n * n, twice = 2 * once;
  compare("max0", once, [](vt::Tensor x) { return vt::max(x, 0); }, x);
  compare("argmax0", once, [](vt::Tensor x) { return vt::argmax(x, 0); }, x);
  compare("sum0_f64", once, [](vt::Tensor x) { return vt::sum(x, 0); }, wide);
  compare("sum0_bf16", once, [](vt::Tensor x) { return vt::sum(x, 0); }, half);
  compare(
      "sum_middle", once, [](vt::Tensor x) { return vt::sum(x, 1); },
      vt::reshape(x, {64, 256, 1024}).eval());
  compare("transpose_f32", twice, [](vt::Tensor x) { return vt::transpose(x); }, x);
  compare("transpose_f64", twice, [](vt::Tensor x) { return vt::transpose(x); }, wide);
  compare(
      "transpose_batched", twice, [](vt::Tensor x) { return vt::transpose(x, {0, 2, 1}); },
      vt::reshape(x, {64, 512, 512}).eval());
  compare("transpose_chain", twice, [](vt::Tensor x) { return vt::transpose(x) * 2.0f + 1.0f; }, x);
  compare("cumsum0", twice, [](vt::Tensor x) { return vt::cumsum(x, 0); }, x);
  compare("cumsum1", twice, [](vt::Tensor x) { return vt::cumsum(x, 1); }, x);
  compare("cummax1", twice, [](vt::Tensor x) { return vt::cummax(x, 1); }, x);
  compare("softmax", twice, [](vt::Tensor x) { return vt::softmax(x); }, x);
  compare(
      "segment_sum", twice, [](vt::Tensor x) { return vt::segment_sum(x, vt::arange(n) % 64, 64); },
      x);
  auto out = std::make_shared<std::vector<float>>(n * n);
  for (const int threads : {1, 2}) {
    const std::string suffix = "/threads:" + std::to_string(threads);
    perf::row(
        "walk/limit" + suffix + "/read",
        [=] { benchmark::DoNotOptimize(native::read(x.data<float>().data(), n * n, threads)); },
        once, "GB/s");
    perf::row(
        "walk/limit" + suffix + "/copy",
        [=] { native::copy(x.data<float>().data(), out->data(), n * n, threads); }, twice, "GB/s");
  }
}

void functions() {
  constexpr std::int64_t n = 1'000'000;
  using Peer = void (*)(const float*, float*, std::size_t);
  const auto compare = [&](const std::string& name, auto f, Peer peer, vt::Tensor x) {
    const auto fast = vt::jit(f);
    auto out = std::make_shared<std::vector<float>>(n);
    for (const int threads : {1, 2})
      perf::row_on(
          threads, "function/" + name + "/f32/threads:" + std::to_string(threads) + "/vt",
          [=] { fast(x).eval(); }, n, "G/s");
    perf::row(
        "function/" + name + "/f32/threads:1/libm",
        [=] { peer(x.data<float>().data(), out->data(), n); }, n, "G/s");
  };
  const vt::Tensor x = (5.0f * perf::random_tensor<float>({n})).eval(),
                   positive = (vt::abs(x) + 1e-3f).eval();
  compare("exp", [](vt::Tensor x) { return vt::exp(x); }, native::exp, x);
  compare("log", [](vt::Tensor x) { return vt::log(x); }, native::log, positive);
  compare("sin", [](vt::Tensor x) { return vt::sin(x); }, native::sin, x);
  compare("tanh", [](vt::Tensor x) { return vt::tanh(x); }, native::tanh, x);
}

}  // namespace

int main(int argc, char** argv) {
  chain();
  sums();
  walks();
  functions();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
