// Matrix products against Eigen compiled for this machine and against its multiply-add peak.
#include "native_peer.hpp"
#include "support.hpp"

namespace {

template <class T>
void square_products(const std::string& dtype) {
  for (const int n : {256, 512, 1024, 2048})
    for (const int threads : {1, 2}) {
      const std::string name =
          "matmul/" + dtype + "/" + std::to_string(n) + "/threads:" + std::to_string(threads);
      const double flops = 2.0 * n * n * n;
      const vt::Tensor a = perf::random_tensor<T>({n, n}, 1), b = perf::random_tensor<T>({n, n}, 2);
      const auto product = vt::jit([](vt::Tensor a, vt::Tensor b) { return vt::matmul(a, b); });
      perf::row_on(threads, name + "/vt", [=] { product(a, b).eval(); }, flops, "GFLOP/s");
      auto c = std::make_shared<std::vector<T>>(static_cast<std::size_t>(n) * n);
      perf::row(
          name + "/eigen",
          [=] {
            native::set_threads(threads);
            native::matmul(a.data<T>().data(), b.data<T>().data(), c->data(), n);
          },
          flops, "GFLOP/s");
    }
  for (const int threads : {1, 2}) {
    static const T seed[2] = {T(1) - T(1e-6), T(1e-6)};
    perf::row(
        "fma_peak/" + dtype + "/threads:" + std::to_string(threads),
        [=] { benchmark::DoNotOptimize(native::fma_peak(seed, threads)); },
        native::fma_flops(T()) * threads, "GFLOP/s");
  }
}

void batched_products() {
  for (const int n : {4, 8, 16, 32, 64}) {
    const int count = n >= 32 ? 1000 : 4000;
    const std::string name = "batched_matmul/f32/" + std::to_string(n);
    const double flops = 2.0 * n * n * n * count;
    const vt::Tensor a = perf::random_tensor<float>({count, n, n}, 1),
                     b = perf::random_tensor<float>({count, n, n}, 2);
    const auto product =
        vt::jit(vt::vmap([](vt::Tensor a, vt::Tensor b) { return vt::matmul(a, b); }));
    perf::row_on(1, name + "/vt", [=] { product(a, b).eval(); }, flops, "GFLOP/s");
    auto c = std::make_shared<std::vector<float>>(static_cast<std::size_t>(n) * n * count);
    perf::row(
        name + "/eigen",
        [=] {
          native::set_threads(1);
          native::batched_matmul(a.data<float>().data(), b.data<float>().data(), c->data(), n,
                                 count);
        },
        flops, "GFLOP/s");
  }
}

// relu and tanh of x·w + b: inside the product, and as a kernel of its own on the finished product.
void products_with_epilogues() {
  struct Size {
    int m, n, k;
  };
  for (const Size& s : {Size{512, 512, 512}, Size{2048, 1024, 64}})
    for (const bool costly : {false, true}) {
      const std::string name = std::string("product_epilogue/") + (costly ? "tanh" : "relu") +
                               "/f32/" + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" +
                               std::to_string(s.k);
      const vt::Tensor x = perf::random_tensor<float>({s.m, s.k}, 1),
                       w = perf::random_tensor<float>({s.k, s.n}, 2),
                       b = perf::random_tensor<float>({s.n}, 3);
      const auto activation = [costly](const vt::Tensor& y) {
        return costly ? vt::tanh(y) : vt::relu(y);
      };
      const auto both = vt::jit([activation](vt::Tensor x, vt::Tensor w, vt::Tensor b) {
        return activation(vt::matmul(x, w) + b);
      });
      const auto product = vt::jit([](vt::Tensor x, vt::Tensor w) { return vt::matmul(x, w); });
      const auto rest =
          vt::jit([activation](vt::Tensor y, vt::Tensor b) { return activation(y + b); });
      perf::row_on(1, name + "/inside", [=] { both(x, w, b).eval(); });
      perf::row_on(1, name + "/apart", [=] { rest(product(x, w), b).eval(); });
    }
}

}  // namespace

int main(int argc, char** argv) {
  square_products<float>("f32");
  square_products<double>("f64");
  batched_products();
  products_with_epilogues();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
