// Batches of 100,000 small matrices (Cholesky factors, linear systems with one right side, eigenvalues and eigenvectors) beside a loop of
// Eigen's decompositions, and single large ones beside Eigen's blocked algorithms.
#include <vt/linalg.hpp>

#include "native_peer.hpp"
#include "support.hpp"

namespace {

constexpr std::int64_t count = 100'000;

template <class T, int n>
void rows(const char* dtype) {
  using Peer = native::SmallMatrices<T, n>;
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
  perf::row("cholesky" + shape + "/eigen", [=] { Peer::cholesky(from(a), out->data(), count); }, count, "G/s");
  perf::row("solve" + shape + "/eigen", [=] { Peer::solve(from(x), from(b), values->data(), count); }, count, "G/s");
  perf::row("eigh" + shape + "/eigen", [=] { Peer::eigh(from(a), values->data(), out->data(), count); }, count, "G/s");
}

template <class T>
void all(const char* dtype) {
  rows<T, 2>(dtype);
  rows<T, 3>(dtype);
  rows<T, 4>(dtype);
  rows<T, 8>(dtype);
  rows<T, 16>(dtype);
}

/// One n × n matrix of f64, on one thread.
void large(int n) {
  const vt::Tensor x = perf::random_tensor<double>({n, n}), b = perf::random_tensor<double>({n, 1});
  const vt::Tensor a = (vt::matmul(x, vt::swapaxes(x, 0, 1)) + vt::eye(n, vt::f64)).eval();
  const std::string shape = "/f64/" + std::to_string(n) + "x" + std::to_string(n);
  auto u = std::make_shared<std::vector<double>>(static_cast<std::size_t>(n * n)), v = std::make_shared<std::vector<double>>(*u),
       s = std::make_shared<std::vector<double>>(static_cast<std::size_t>(n));
  const auto row = [&](const std::string& name, const vt::Tensor& of, auto f, auto peer) {
    const auto compiled = vt::jit(f);
    perf::row_on(1, name + shape + "/threads:1/vt", [=] { compiled(of).back().eval(); });
    perf::row(name + shape + "/eigen", [=] { peer(of.data<double>().data()); });
  };
  using Results = std::vector<vt::Tensor>;
  row("cholesky", a, [](vt::Tensor m) { return Results{vt::linalg::cholesky(m)}; }, [=](const double* m) { native::cholesky(m, u->data(), n); });
  row("lu", x, [](vt::Tensor m) { return Results{vt::linalg::lu(m).lu}; }, [=](const double* m) { native::lu(m, u->data(), n); });
  row(
      "solve", x, [b](vt::Tensor m) { return Results{vt::linalg::solve(m, b)}; },
      [=](const double* m) { native::solve(m, b.data<double>().data(), s->data(), n); });
  const auto qr = [](vt::Tensor m) {
    const auto f = vt::linalg::qr(m);
    return Results{f.q, f.r};
  };
  row("qr", x, qr, [=](const double* m) { native::qr(m, u->data(), v->data(), n); });
  const auto eigh = [](vt::Tensor m) {
    const auto f = vt::linalg::eigh(m);
    return Results{f.eigenvalues, f.eigenvectors};
  };
  row("eigh", a, eigh, [=](const double* m) { native::eigh(m, s->data(), u->data(), n); });
  const auto svd = [](vt::Tensor m) {
    const auto f = vt::linalg::svd(m, false);
    return Results{f.u, f.s, f.vh};
  };
  row("svd", x, svd, [=](const double* m) { native::svd(m, u->data(), s->data(), v->data(), n); });
}

}  // namespace

int main(int argc, char** argv) {
  all<float>("f32");
  all<double>("f64");
  for (const int n : {32, 64, 128, 300}) large(n);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
