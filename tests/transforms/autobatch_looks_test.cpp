// Minibatches of instances that look at values, whose structure differs each time: what they
// compute is what they do alone, and behind the first few nothing is compiled for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include <vt/vt.hpp>

#include "support/property.hpp"

namespace {

using vt::Tensor;
using Program = Tensor (*)(const struct Params&, unsigned seed);

constexpr int width = 16, words = 40, tags = 5;

struct Params {
  Tensor embedding, left, right, offset, query, transitions;
};
Params parameters(vt::DType dtype) {
  const auto random = [&](int key, const vt::Shape& shape) {
    return (0.3 * vt::random::normal(vt::random::key(key), shape, dtype)).eval();
  };
  return {random(1, {words, width}), random(2, {width, width}), random(3, {width, width}),
          random(4, {width}),        random(5, {width}),        random(6, {tags, tags})};
}
std::size_t below(std::mt19937& random, std::size_t n) { return random() % n; }
Tensor word(const Params& p, std::mt19937& random) {
  return p.embedding[static_cast<std::int64_t>(below(random, words))];
}
Tensor composed(const Params& p, const Tensor& a, const Tensor& b) {
  return vt::tanh(vt::matmul(a, p.left) + vt::matmul(b, p.right) + p.offset);
}

// Values of several earlier looks are read by later ones.
Tensor pushes(const Params& p, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tensor> all{word(p, random)};
  double seen = 0;
  for (int k = 0; k < 8; ++k) {
    all.push_back(vt::tanh(all[below(random, all.size())] + word(p, random)));
    seen += vt::sum(all.back()).item<double>();
  }
  return vt::sum(all.back()) + seen;
}

// A shift-reduce parser that keeps the best states.
Tensor beam(const Params& p, unsigned seed) {
  struct State {
    std::vector<Tensor> stack;
    std::size_t next = 0;
    Tensor score;
  };
  struct Candidate {
    std::size_t from;
    bool shifts;
    Tensor score, made;
  };
  std::mt19937 random(seed);
  std::vector<Tensor> sentence(3 + below(random, 4));
  for (Tensor& w : sentence) w = word(p, random);
  std::vector<State> states(1);
  states[0].score = vt::zeros({}, p.query.dtype());
  for (std::size_t step = 0; step + 1 < 2 * sentence.size(); ++step) {
    std::vector<Candidate> all;
    for (std::size_t i = 0; i < states.size(); ++i) {
      const State& s = states[i];
      const auto add = [&](bool shifts, const Tensor& made) {
        all.push_back({i, shifts, s.score + vt::sum(made * p.query), made});
      };
      if (s.next < sentence.size()) add(true, sentence[s.next]);
      if (s.stack.size() > 1) add(false, composed(p, s.stack[s.stack.size() - 2], s.stack.back()));
    }
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t k = 0; k < all.size(); ++k)
      order.emplace_back(-all[k].score.item<double>(), k);
    std::sort(order.begin(), order.end());
    order.resize(std::min<std::size_t>(order.size(), 3));
    std::vector<State> next;
    for (const auto& [score, k] : order) {
      State s = states[all[k].from];
      if (all[k].shifts) ++s.next;
      else s.stack.pop_back();
      if (all[k].shifts) s.stack.push_back(all[k].made);
      else s.stack.back() = all[k].made;
      s.score = all[k].score;
      next.push_back(std::move(s));
    }
    states = std::move(next);
  }
  Tensor sum = states[0].score * states[0].score;
  for (std::size_t k = 1; k < states.size(); ++k) sum += states[k].score * states[k].score;
  return sum;
}

// The best tags of a chain by back pointers; the loss is against those that they say.
Tensor chain(const Params& p, unsigned seed) {
  std::mt19937 random(seed);
  const std::size_t length = 1 + below(random, 6);
  std::vector<Tensor> scores, back;
  for (std::size_t t = 0; t < length; ++t)
    scores.push_back(vt::tanh(vt::matmul(word(p, random), p.left))[vt::slice(0, tags)]);
  Tensor best = scores[0], all = scores[0];
  for (std::size_t t = 1; t < length; ++t) {
    const Tensor ways = vt::expand_dims(best, 1) + p.transitions;
    back.push_back(vt::argmax(ways, 0));
    best = vt::max(ways, 0) + scores[t];
    all = vt::logsumexp(vt::expand_dims(all, 1) + p.transitions, 0) + scores[t];
  }
  int tag = vt::argmax(best).item<int>();
  Tensor found = scores[length - 1][tag];
  for (std::size_t t = length - 1; t-- > 0;) {
    const int before = back[t].to_vector<int>()[tag];
    found += scores[t][before] + p.transitions[before][tag];
    tag = before;
  }
  return vt::logsumexp(all) - found;
}

// Slots that are read by the best match, and written now and then.
Tensor memory(const Params& p, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tensor> slots;
  Tensor h = p.offset;
  for (std::size_t step = 2 + below(random, 6); step-- > 0;) {
    h = composed(p, h, word(p, random));
    std::size_t best = 0;
    double most = -1;
    for (std::size_t k = 0; k < slots.size(); ++k) {
      const double match = vt::sum(slots[k] * h).item<double>();
      if (match > most) most = match, best = k;
    }
    if (!slots.empty()) h = vt::tanh(h + slots[best]);
    if (most > 0.5) slots[best] = slots[best] * 0.5 + h * 0.5;
    slots.push_back(h);
  }
  return vt::sum(h * h);
}

// Attends to all words of a sentence, step by step, and goes on from the one that it saw most of.
Tensor decoder(const Params& p, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tensor> states(1 + below(random, 12));
  for (Tensor& s : states) s = vt::tanh(vt::matmul(word(p, random), p.left));
  const Tensor all = vt::stack(states);
  Tensor h = p.offset, loss = vt::zeros({}, p.query.dtype());
  for (int step = 0; step < 3; ++step) {
    const Tensor weights = vt::softmax(vt::matmul(all, h));
    h = composed(p, h, vt::matmul(weights, all));
    h = h + states[vt::argmax(weights).item<int>()];
    loss += vt::logsumexp(vt::matmul(all, h)) - vt::log(weights[0]) + vt::sum(vt::mean(all, 0) * h);
  }
  return loss;
}

class Looks : public testing::TestWithParam<std::tuple<Program, bool>> {};

TEST_P(Looks, OfOtherStructuresCompileNothing) {
  const auto [program, gradient] = GetParam();
  const Params p = parameters(vt::f64);
  const auto alone = [program](const Params& q, const std::vector<unsigned>& seeds) {
    Tensor sum = vt::zeros({}, vt::f64);
    for (const unsigned seed : seeds) sum += program(q, seed);
    return sum;
  };
  const auto batched =
      vt::autobatch([program](const Params& q, const std::vector<unsigned>& seeds) {
        return vt::sum(
            vt::stack(vt::instances(seeds, [&](unsigned seed) { return program(q, seed); })));
      });
  std::mt19937 random(1);
  const auto seeds_of = [&](std::size_t count) {
    std::vector<unsigned> seeds(count);
    for (unsigned& s : seeds) s = static_cast<unsigned>(random());
    return seeds;
  };
  const auto run = [&](const auto& f, const std::vector<unsigned>& seeds) {
    std::vector<double> all;
    if (!gradient) return std::vector<double>{f(p, seeds).template item<double>()};
    const auto [value, g] = vt::value_and_grad(f)(p, seeds);
    vt::eval(value, g);
    all.push_back(value.template item<double>());
    vt::detail::for_each_leaf(g, [&](const Tensor& t) {
      for (const double x : t.template to_vector<double>()) all.push_back(x);
    });
    return all;
  };
  std::uint64_t late = 0;
  for (int k = 0; k < 60; ++k) {
    const std::vector<unsigned> seeds = seeds_of(12 + below(random, 12));
    const std::uint64_t before = vt::stats().kernels_compiled;
    run(batched, seeds);
    if (k >= 10) late += vt::stats().kernels_compiled - before;
    if (k % 20 != 0) continue;
    // A few, one by one: a Graph of all would take long to compile.
    const std::vector<unsigned> few(seeds.begin(), seeds.begin() + 5);
    const std::vector<double> got = run(batched, few);
    std::vector<double> wanted(got.size(), 0);
    for (const unsigned seed : few) {
      const std::vector<double> own = run(alone, {seed});
      for (std::size_t i = 0; i < got.size(); ++i) wanted[i] += own[i];
    }
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 1e-10 * (1 + std::abs(wanted[i]))) << "element " << i;
  }
  // Of memories few are written to: whether what is written is read again, and what their slopes
  // are made of then, is a matter of chance, and of a last few kinds.
  if (p.query.device() == vt::cpu()) {
    EXPECT_LE(late, gradient && program == Program{memory} ? 4u : 0u);
  }
}
INSTANTIATE_TEST_SUITE_P(Programs, Looks,
                         testing::Combine(testing::Values(pushes, beam, chain, memory, decoder),
                                          testing::Bool()));

}  // namespace
