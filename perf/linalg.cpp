// Batches of 100,000 small matrices (Cholesky factors, linear systems with one right side,
// eigenvalues and eigenvectors) beside a loop of Eigen's decompositions, and single large ones
// beside Eigen's blocked algorithms.
#include <functional>

#include <vt/linalg.hpp>

#include "native_peer.hpp"
#include "support.hpp"

namespace {

constexpr std::int64_t count = 100'000;

template <class T, int n>
void rows(const char* dtype) {
  using Peer = native::SmallMatrices<T, n>;
  const vt::Tensor x = perf::random_tensor<T>({count, n, n}),
                   b = perf::random_tensor<T>({count, n, 1});
  const vt::Tensor a = (vt::matmul(x, vt::swapaxes(x, 1, 2)) + vt::eye(n, x.dtype())).eval();
  const auto cholesky = vt::jit([](vt::Tensor x) { return vt::linalg::cholesky(x); });
  const auto solve = vt::jit([](vt::Tensor x, vt::Tensor y) { return vt::linalg::solve(x, y); });
  const auto eigh = vt::jit([](vt::Tensor x) {
    const auto e = vt::linalg::eigh(x);
    return std::pair(e.eigenvalues, e.eigenvectors);
  });
  const std::string shape =
      "/" + std::string(dtype) + "/100000x" + std::to_string(n) + "x" + std::to_string(n);
  for (const int threads : {1, 2}) {
    const std::string on = shape + "/threads:" + std::to_string(threads) + "/vt";
    perf::row_on(threads, "cholesky" + on, [=] { cholesky(a).eval(); }, count, "G/s");
    perf::row_on(threads, "solve" + on, [=] { solve(x, b).eval(); }, count, "G/s");
    perf::row_on(threads, "eigh" + on, [=] { eigh(a).second.eval(); }, count, "G/s");
  }
  auto out = std::make_shared<std::vector<T>>(static_cast<std::size_t>(count * n * n)),
       values = std::make_shared<std::vector<T>>(static_cast<std::size_t>(count * n));
  const auto from = [](const vt::Tensor& t) { return t.data<T>().data(); };
  perf::row(
      "cholesky" + shape + "/eigen", [=] { Peer::cholesky(from(a), out->data(), count); }, count,
      "G/s");
  perf::row(
      "solve" + shape + "/eigen", [=] { Peer::solve(from(x), from(b), values->data(), count); },
      count, "G/s");
  perf::row(
      "eigh" + shape + "/eigen", [=] { Peer::eigh(from(a), values->data(), out->data(), count); },
      count, "G/s");
}

template <class T>
void all(const char* dtype) {
  rows<T, 2>(dtype);
  rows<T, 3>(dtype);
  rows<T, 4>(dtype);
  rows<T, 8>(dtype);
  rows<T, 16>(dtype);
}

/// One n × n matrix, on one thread.
template <class T>
void large(const char* dtype, int n) {
  using Peer = native::LargeMatrix<T>;
  using Numbers = std::complex<T>;
  namespace la = vt::linalg;
  const vt::Tensor x = perf::random_tensor<T>({n, n}), b = perf::random_tensor<T>({n, 1}),
                   right = perf::random_tensor<T>({n, n});
  const vt::Tensor a = (vt::matmul(x, vt::swapaxes(x, 0, 1)) + vt::eye(n, x.dtype())).eval();
  const std::string shape =
      "/" + std::string(dtype) + "/" + std::to_string(n) + "x" + std::to_string(n);
  auto u = std::make_shared<std::vector<T>>(static_cast<std::size_t>(n * n)),
       v = std::make_shared<std::vector<T>>(*u),
       s = std::make_shared<std::vector<T>>(static_cast<std::size_t>(n));
  auto z = std::make_shared<std::vector<Numbers>>(static_cast<std::size_t>(n * n)),
       w = std::make_shared<std::vector<Numbers>>(*z);
  const auto from = [](const vt::Tensor& t) { return t.template data<T>().data(); };
  using Results = std::vector<vt::Tensor>;
  const auto row = [&](const std::string& name, const vt::Tensor& of,
                       const std::function<Results(vt::Tensor)>& f, auto peer) {
    const auto compiled = vt::jit(f);
    perf::row_on(1, name + shape + "/threads:1/vt", [=] { compiled(of).back().eval(); });
    perf::row(name + shape + "/eigen", [=] { peer(from(of)); });
  };
  row(
      "cholesky", a, [](vt::Tensor m) { return Results{la::cholesky(m)}; },
      [=](const T* m) { Peer::cholesky(m, u->data(), n); });
  row(
      "lu", x, [](vt::Tensor m) { return Results{la::lu(m).lu}; },
      [=](const T* m) { Peer::lu(m, u->data(), n); });
  row(
      "solve", x, [b](vt::Tensor m) { return Results{la::solve(m, b)}; },
      [=](const T* m) { Peer::solve(m, from(b), s->data(), n); });
  row(
      "triangular_solve", a,
      [right](vt::Tensor m) {
        return Results{la::triangular_solve(m, right, {.left_side = true, .lower = true})};
      },
      [=](const T* m) { Peer::triangular_solve(m, from(right), u->data(), n); });
  row(
      "inv", x, [](vt::Tensor m) { return Results{la::inv(m)}; },
      [=](const T* m) { Peer::inverse(m, u->data(), n); });
  const auto qr = [](vt::Tensor m) {
    const auto f = la::qr(m);
    return Results{f.q, f.r};
  };
  row("qr", x, qr, [=](const T* m) { Peer::qr(m, u->data(), v->data(), n); });
  const auto eigh = [](vt::Tensor m) {
    const auto f = la::eigh(m);
    return Results{f.eigenvalues, f.eigenvectors};
  };
  row("eigh", a, eigh, [=](const T* m) { Peer::eigh(m, s->data(), u->data(), n); });
  const auto svd = [](vt::Tensor m) {
    const auto f = la::svd(m, false);
    return Results{f.u, f.s, f.vh};
  };
  row("svd", x, svd, [=](const T* m) { Peer::svd(m, u->data(), s->data(), v->data(), n); });
  const auto eig = [](vt::Tensor m) {
    const auto f = la::eig(m);
    return Results{f.eigenvalues, f.eigenvectors};
  };
  row("eig", x, eig, [=](const T* m) { Peer::eig(m, w->data(), z->data(), n); });
  row(
      "expm", x, [](vt::Tensor m) { return Results{la::expm(m)}; },
      [=](const T* m) { Peer::expm(m, u->data(), n); });
}

}  // namespace

int main(int argc, char** argv) {
  all<float>("f32");
  all<double>("f64");
  for (const int n : {32, 64, 128, 300}) {
    large<float>("f32", n);
    large<double>("f64", n);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
