// Data-parallel training: each process takes its part of every batch, and gradients are averaged
// over all of them. Any number of processes makes the same steps.
// Usage: [mpirun -n P] digits_mpi [FILE.csv [EPOCHS]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <span>
#include <tuple>
#include <vector>

#include <vt/distributed.hpp>
#include <vt/vt.hpp>

#include "../support/csv.hpp"
#include "../support/digits.hpp"
#include "../support/digits_network.hpp"

namespace {

using support::Data, support::Params;
constexpr int batch = 120;  // of all processes together

/// The mean of the loss over some images.
vt::Tensor mean_loss(const Params& p, const vt::Tensor& images, const vt::Tensor& labels) {
  return vt::mean(vt::vmap(support::loss, {.in_axes = {vt::unmapped, 0, 0}})(p, images, labels));
}

int run(const std::string& csv, int epochs) {
  const Data data = support::read_digits(csv);  // by each process: it is small
  const auto mesh = vt::distributed::mesh({{"data", -1}});
  const int rank = vt::distributed::rank(), processes = vt::distributed::size();
  if (batch % processes != 0) {
    if (rank == 0)
      std::fprintf(stderr, "digits_mpi: %d images of a batch, and %d processes\n", batch,
                   processes);
    return 2;
  }
  // In f64, so that sums in another order make no difference to be seen.
  const auto exact = [](const vt::Tensor& x) { return x.astype(vt::f64).eval(); };
  const vt::Tensor images = exact(data.train.pixels);
  const support::Images held_out{exact(data.held_out.pixels), data.held_out.labels,
                                 data.held_out.label};
  Params p = vt::tree_map(exact, support::random_start());
  const vt::Sgd sgd{.rate = 0.2, .momentum = 0.9};
  auto state = sgd.init(p);

  // What a process does with its part of a batch. Its gradient is that of its own copy of the
  // parameters; the average over all processes is that of the whole batch.
  const auto train = [&](const Params& p, const decltype(state)& s, const vt::Tensor& chosen) {
    const auto own = vt::value_and_grad(mean_loss)(p, vt::take(images, chosen, 0),
                                                   vt::take(data.train.labels, chosen, 0));
    const auto [value, gradient] = vt::pmean(own, "data");
    const auto [moved, next] = sgd.step(p, gradient, s);
    return std::tuple(value, moved, next);
  };
  const auto step = vt::jit(
      vt::shard_map(train, {.mesh = mesh,
                            .in_specs = {vt::replicated, vt::replicated, vt::sharded("data")},
                            .out_specs = vt::replicated}));

  // The same order in all processes, however many there are.
  std::vector<int> order(static_cast<std::size_t>(data.train.count()));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  const int part = batch / processes;
  vt::Tensor value;
  const auto start = std::chrono::steady_clock::now();
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    for (int at = 0; at + batch <= data.train.count(); at += batch) {
      const auto own = std::span<const int>(order).subspan(at + rank * part, part);
      std::tie(value, p, state) = step(p, state, vt::tensor(own, {part}));
    }
    if (rank == 0 && (epoch % 10 == 0 || epoch == 1))
      std::printf("epoch %2d: loss %.6f, %.2f %% of the held-out images right\n", epoch,
                  value.item<double>(), 100 * support::accuracy(p, held_out));
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double right = support::accuracy(p, held_out);
  if (rank == 0)
    std::fprintf(stderr, "%s: %d epochs in %.2f s\n", mesh.str().c_str(), epochs, seconds);
  return right < 0.96;
}

}  // namespace

int main(int argc, char** argv) {
  return support::run("digits_mpi", [&] {
    return run(argc > 1 ? argv[1] : "examples/data/digits.csv", argc > 2 ? std::atoi(argv[2]) : 30);
  });
}
