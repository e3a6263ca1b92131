// 10,000 chains of the No-U-Turn Sampler over processes: each runs its share side by side, and
// means, variances and R-hat of all of them are combined. The draws do not depend on the number of
// processes.
// Usage: [mpirun -n P] chains_mpi FILE.csv [CHAINS [DRAWS]]
// FILE.csv: rows of laboratory,dose,subjects,reactions.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <vt/distributed.hpp>
#include <vt/vt.hpp>

#include "../nuts/nuts.hpp"
#include "../nuts/reactions.hpp"

namespace {

using vt::Tensor;

/// Of each parameter, [parameters].
struct Summary {
  Tensor mean, deviation, r_hat;
};

/// After Gelman et al. 2013, Bayesian Data Analysis, 11.4: each half of a chain is a chain.
/// draws: those of this process, [chains, draws, parameters].
Summary summary(const Tensor& draws) {
  const std::int64_t chains = draws.dim(0), n = draws.dim(1) / 2, parameters = draws.dim(2);
  const Tensor x =
      vt::slice_in_dim(draws, 0, 2 * n, 1).astype(vt::f64).reshape({2 * chains, n, parameters});
  const Tensor means = vt::mean(x, 1);
  const Tensor variances =
      vt::sum(vt::square(x - vt::mean(x, 1, true)), 1) / (static_cast<double>(n) - 1.0);
  // As many chains in each process: the mean of their means is that of all chains.
  const Tensor mean = vt::pmean(vt::mean(means, 0), "chains");
  const Tensor within = vt::pmean(vt::mean(variances, 0), "chains");
  const Tensor apart = vt::psum(vt::sum(vt::square(means - mean), 0), "chains");
  const double all = static_cast<double>(2 * chains * vt::axis_size("chains"));
  const Tensor variance = within * (1.0 - 1.0 / static_cast<double>(n)) + apart / (all - 1.0);
  return {mean, vt::sqrt(variance), vt::sqrt(variance / within)};
}

int run(const std::string& file, std::int64_t chains, std::int64_t draws) {
  const nuts::Reactions reactions = nuts::read_reactions(file);
  const auto mesh = vt::distributed::mesh({{"chains", -1}});
  const int rank = vt::distributed::rank(), processes = vt::distributed::size();
  if (chains % processes != 0 || draws < 8) {
    if (rank == 0)
      std::fprintf(stderr, "chains_mpi: %lld chains of %lld draws, and %d processes\n",
                   static_cast<long long>(chains), static_cast<long long>(draws), processes);
    return 2;
  }
  const std::int64_t share = chains / processes, parameters = reactions.parameters();
  // In f64, so that sums in another order lead no chain another way.
  const nuts::Sampler sampler(reactions, {.step_size = 0.02, .dtype = vt::f64});
  const auto chain = [&](const Tensor& number, const Tensor& key) {
    const auto [for_start, for_chain] = vt::random::split<2>(vt::random::fold_in(key, number));
    const Tensor start = 0.3 * vt::random::normal(for_start, {parameters}, vt::f64);
    return sampler.chain(for_chain, start, draws);
  };
  // The key of a chain is that of its number among all chains, wherever it runs.
  const auto sample = vt::jit(vt::shard_map(
      [&](const Tensor& key) {
        const Tensor numbers = vt::arange(share) + vt::axis_index("chains") * share;
        const nuts::Draw drawn = vt::vmap(chain, {.in_axes = {0, vt::unmapped}})(numbers, key);
        const Summary found = summary(vt::slice_in_dim(drawn.theta, draws / 4, draws, 1));
        return std::pair(found, vt::psum(vt::sum(drawn.gradients), "chains"));
      },
      {.mesh = mesh, .in_specs = vt::replicated, .out_specs = vt::replicated}));
  const auto begin = std::chrono::steady_clock::now();
  const auto [found, gradients] = sample(vt::random::key(3));
  vt::eval(found);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const double r_hat = vt::max(found.r_hat).item<double>();
  // What the data was made with.
  const std::array<double, 3> truth{nuts::true_mean, nuts::true_slope, std::log(nuts::true_spread)};
  constexpr std::array<const char*, 3> names{"mean", "slope", "log of the spread"};
  int failures = !(r_hat < 1.1);
  for (std::size_t p = 0; p < truth.size(); ++p) {
    const int i = static_cast<int>(p);
    const double mean = found.mean[i].item<double>(), deviation = found.deviation[i].item<double>();
    failures += !(std::abs(mean - truth[p]) < 3 * deviation);
    if (rank == 0)
      std::printf("%-17s %8.5f ± %.5f; the data was made with %.3f\n", names[p], mean, deviation,
                  truth[p]);
  }
  if (rank != 0) return failures;
  std::printf("%lld chains of %lld draws, %lld gradients, R-hat at most %.6f\n",
              static_cast<long long>(chains), static_cast<long long>(draws),
              static_cast<long long>(gradients.item<double>()), r_hat);
  std::fprintf(stderr, "%s: %.1f s with recording and compiling\n", mesh.str().c_str(), seconds);
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: chains_mpi FILE.csv [CHAINS [DRAWS]]\n");
    return 2;
  }
  return support::run("chains_mpi", [&] {
    const auto number = [&](int i, std::int64_t otherwise) {
      return argc > i ? std::max<std::int64_t>(std::atoll(argv[i]), 1) : otherwise;
    };
    return run(argv[1], number(2, 10000), number(3, 200));
  });
}
