// Batches of 100,000 small matrices: Cholesky factors, linear systems with one right side, eigenvalues and eigenvectors, beside a loop of
// Eigen's decompositions.
#include <vt/linalg.hpp>

#include "native_peer.hpp"
#include "support.hpp"

namespace {

constexpr std::int64_t count = 100'000;

template <class T>
void rows(const char* dtype) {
  for (const int n : {2, 3, 4, 8, 16}) {
    const vt::Tensor x = perf::random_tensor<T>({count, n, n}), b = perf::random_tensor<T>({count, n, 1});
    const vt::Tensor a = (vt::matmul(x, vt::swapaxes(x, 1, 2)) + vt::eye(n, x.dtype())).eval();
    const auto cholesky = vt::jit([](vt::Tensor x) { return vt::linalg::cholesky(x); });
    const auto solve = vt::jit([](vt::Tensor x, vt::Tensor y) { return vt::linalg::solve(x, y); });
    const auto eigh = vt::jit([](vt::Tensor x) {
      const auto e = vt::linalg::eigh(x);
      return std::pair(e.eigenvalues, e.eigenvectors);
    });
    const std::string shape = "/" + std::string(dtype) + "/100000x" + std::to_string(n) + "x" + std::to_string(n);
    for (const int threads : {1, 2}) {
      const std::string on = shape + "/threads:" + std::to_string(threads) + "/vt";
      perf::row_on(threads, "cholesky" + on, [=] { cholesky(a).eval(); }, count, "G/s");
      perf::row_on(threads, "solve" + on, [=] { solve(x, b).eval(); }, count, "G/s");
      perf::row_on(threads, "eigh" + on, [=] { eigh(a).second.eval(); }, count, "G/s");
    }
    auto out = std::make_shared<std::vector<T>>(static_cast<std::size_t>(count * n * n)),
         values = std::make_shared<std::vector<T>>(static_cast<std::size_t>(count * n));
    const auto from = [](const vt::Tensor& t) { return t.data<T>().data(); };
    perf::row("cholesky" + shape + "/eigen", [=] { native::cholesky(from(a), out->data(), n, count); }, count, "G/s");
    perf::row("solve" + shape + "/eigen", [=] { native::solve(from(x), from(b), values->data(), n, count); }, count, "G/s");
    perf::row("eigh" + shape + "/eigen", [=] { native::eigh(from(a), values->data(), out->data(), n, count); }, count, "G/s");
  }
}

}  // namespace

int main(int argc, char** argv) {
  rows<float>("f32");
  rows<double>("f64");
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
