// A hidden Markov model: the likelihood by a scan; the posterior of the states as its gradient; the
// same likelihood by associative_scan, in logarithmically many steps; the most likely path, for
// many sequences at once.
#include <vt/vt.hpp>

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

namespace {

constexpr int states = 3, symbols = 4, length = 12;

struct Model {
  vt::Tensor start, move, emit;  ///< logarithms: [states], [states, states], [states, symbols]
};

/// seen: [length, states], the log-probability of each observation in each state.
vt::Tensor likelihood(const Model& m, const vt::Tensor& seen) {
  const auto step = [&](vt::Tensor before, vt::Tensor now) {
    return std::pair(vt::logsumexp(vt::expand_dims(before, 1) + m.move, 0) + now, std::nullopt);
  };
  return vt::logsumexp(vt::scan(step, m.start + seen[0], seen[vt::slice(1, length)]).first);
}

/// Products of matrices may be taken in any grouping.
vt::Tensor likelihood_in_steps(const Model& m, const vt::Tensor& seen) {
  const auto product = [](vt::Tensor a, vt::Tensor b) {
    return vt::logsumexp(vt::expand_dims(a, -1) + vt::expand_dims(b, -3), -2);
  };
  const vt::Tensor all =
      vt::associative_scan(product, m.move + vt::expand_dims(seen[vt::slice(1, length)], 1));
  return vt::logsumexp(vt::expand_dims(m.start + seen[0], 1) + all[-1]);
}

vt::Tensor best_path(const Model& m, const vt::Tensor& seen) {
  const auto step = [&](vt::Tensor before, vt::Tensor now) {
    const vt::Tensor each = vt::expand_dims(before, 1) + m.move;
    return std::pair(vt::max(each, 0) + now, vt::argmax(each, 0));
  };
  const auto [last, from] = vt::scan(step, m.start + seen[0], seen[vt::slice(1, length)]);
  const auto back = [](vt::Tensor state, vt::Tensor origin) {
    return std::pair(origin[state], state);
  };
  const auto [first, rest] = vt::scan(back, vt::argmax(last), from, {.reverse = true});
  return vt::concatenate({vt::reshape(first, {1}), rest});
}

}  // namespace

int main() {
  const auto table = [](int seed, const vt::Shape& shape) {
    return vt::log_softmax(1.5 * vt::random::normal(vt::random::key(seed), shape, vt::f64));
  };
  const Model m{table(1, {states}), table(2, {states, states}), table(3, {states, symbols})};
  const vt::Tensor observed = vt::random::randint(vt::random::key(4), {5, length}, 0, symbols);
  const vt::Tensor seen =
      vt::vmap([&](vt::Tensor o) { return vt::transpose(vt::take(m.emit, o, 1)); })(observed);

  const auto [values, posterior] =
      vt::jit(vt::vmap(vt::value_and_grad<1>(likelihood), {.in_axes = {vt::unmapped, 0}}))(m, seen);
  const vt::Tensor in_steps =
      vt::jit(vt::vmap(likelihood_in_steps, {.in_axes = {vt::unmapped, 0}}))(m, seen);
  const vt::Tensor paths = vt::jit(vt::vmap(best_path, {.in_axes = {vt::unmapped, 0}}))(m, seen);

  // By hand: forwards and backwards in plain loops.
  const std::vector<double> a = vt::exp(m.move).to_vector<double>(),
                            p = vt::exp(m.start).to_vector<double>();
  double worst = 0;
  for (int s = 0; s < 5; ++s) {
    const std::vector<double> e = vt::exp(seen[s]).to_vector<double>(),
                              gamma = posterior[s].to_vector<double>();
    std::vector<double> forward(length * states), backward(length * states, 1.0);
    const auto at = [](int t, int i) { return static_cast<std::size_t>(t * states + i); };
    for (int t = 0; t < length; ++t)
      for (int i = 0; i < states; ++i) {
        double sum = t == 0 ? p[at(0, i)] : 0;
        for (int j = 0; t > 0 && j < states; ++j) sum += forward[at(t - 1, j)] * a[at(j, i)];
        forward[at(t, i)] = sum * e[at(t, i)];
      }
    for (int t = length - 2; t >= 0; --t)
      for (int i = 0; i < states; ++i) {
        double sum = 0;
        for (int j = 0; j < states; ++j)
          sum += a[at(i, j)] * e[at(t + 1, j)] * backward[at(t + 1, j)];
        backward[at(t, i)] = sum;
      }
    double total = 0;
    for (int i = 0; i < states; ++i) total += forward[at(length - 1, i)];
    worst = std::fmax(worst, std::fabs(values[s].item<double>() - std::log(total)));
    worst = std::fmax(worst, std::fabs(in_steps[s].item<double>() - std::log(total)));
    for (std::size_t i = 0; i < gamma.size(); ++i)
      worst = std::fmax(worst, std::fabs(gamma[i] - forward[i] * backward[i] / total));
  }
  std::printf(
      "log-likelihoods of 5 sequences and %d posterior probabilities: largest difference from "
      "plain loops %.0e\n",
      5 * length * states, worst);
  std::printf("most likely states of the first sequence:");
  for (int state : paths[0].to_vector<int>()) std::printf(" %d", state);
  std::printf("\n");
  return worst < 1e-12 ? 0 : 1;
}
