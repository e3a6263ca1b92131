// autobatch: a tree-LSTM written as a recursion over one tree, trained on minibatches of trees of
// any shape, which run as batches. Checked by its accuracy, and against running without batches.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

#include "../support/training.hpp"

namespace {

using vt::Tensor;

// --- the trees -----------------------------------------------------------------------------------

/// A phrase: a word, or two phrases. Its class is its sentiment, from 0 (very bad) to 4 (very
/// good); 2 is neutral.
struct Tree {
  int word = -1, sentiment = 2;
  std::unique_ptr<Tree> left, right;
};

constexpr int classes = 5, words_of_class = 6;
constexpr int negation = classes * words_of_class, intensifier = negation + 1,
              vocabulary = intensifier + 1;

Tree word_of(int word, int sentiment) { return {word, sentiment, nullptr, nullptr}; }
Tree both(Tree left, Tree right, int sentiment) {
  return {-1, std::clamp(sentiment, 0, classes - 1), std::make_unique<Tree>(std::move(left)),
          std::make_unique<Tree>(std::move(right))};
}

/// A phrase of so many words: a negation flips the sentiment of what follows it, an intensifier
/// doubles its distance from neutral, and those of two phrases are added.
Tree make_tree(int words, std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  if (words == 1) {
    const int sentiment = below(classes);
    return word_of(sentiment * words_of_class + below(words_of_class), sentiment);
  }
  const int rule = below(10);
  if (rule < 5) {
    Tree rest = make_tree(words - 1, random);
    const int from_neutral = rest.sentiment - 2;
    return rule < 3 ? both(word_of(negation, 2), std::move(rest), 2 - from_neutral)
                    : both(word_of(intensifier, 2), std::move(rest), 2 + 2 * from_neutral);
  }
  const int first = 1 + below(words - 1);
  Tree left = make_tree(first, random), right = make_tree(words - first, random);
  const int sum = left.sentiment + right.sentiment - 2;
  return both(std::move(left), std::move(right), sum);
}
std::vector<Tree> make_trees(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tree> trees;
  for (int i = 0; i < count; ++i)
    trees.push_back(make_tree(2 + static_cast<int>(random() % 12u), random));
  return trees;
}

/// Nodes of each class.
void count_classes(const Tree& tree, std::array<int, classes>& counts) {
  ++counts[tree.sentiment];
  if (tree.left) {
    count_classes(*tree.left, counts);
    count_classes(*tree.right, counts);
  }
}

// --- the model, for one tree ---------------------------------------------------------------------

constexpr int width = 32;

struct Params {
  Tensor embedding, leaf, leaf_offset, inner, inner_offset, out, out_offset;
};
struct State {
  Tensor h, c;
};

// What runs for each node is a vt::function: its calls are what is batched.
const auto leaf = vt::function("leaf", [](const Params& p, const Tensor& word) {
  const std::vector<Tensor> iou = vt::split(vt::matmul(word, p.leaf) + p.leaf_offset, 3);
  const Tensor c = vt::sigmoid(iou[0]) * vt::tanh(iou[2]);
  return State{vt::sigmoid(iou[1]) * vt::tanh(c), c};
});
const auto inner = vt::function("inner", [](const Params& p, const State& l, const State& r) {
  const Tensor all = vt::matmul(vt::concatenate({l.h, r.h}), p.inner) + p.inner_offset;
  const std::vector<Tensor> gates = vt::split(all, 5);  // i, o, u, and an f for each child
  const Tensor c = vt::sigmoid(gates[0]) * vt::tanh(gates[2]) + vt::sigmoid(gates[3]) * l.c +
                   vt::sigmoid(gates[4]) * r.c;
  return State{vt::sigmoid(gates[1]) * vt::tanh(c), c};
});
Tensor scores(const Params& p, const State& s) { return vt::matmul(s.h, p.out) + p.out_offset; }
const auto cost = vt::function("cost", [](const Params& p, const State& s, const Tensor& label) {
  return vt::sparse_cross_entropy(scores(p, s), label);
});
const auto is_right =
    vt::function("is_right", [](const Params& p, const State& s, const Tensor& label) {
      return (vt::argmax(scores(p, s)) == label).astype(vt::f32);
    });

/// The state of a tree; adds `of(p, state, class)` of all of its nodes to `sum`.
template <class F>
State visit(const Params& p, const Tree& tree, const F& of, Tensor& sum) {
  State s;
  if (tree.left) {
    const State left = visit(p, *tree.left, of, sum);
    s = inner(p, left, visit(p, *tree.right, of, sum));
  } else {
    s = leaf(p, p.embedding[tree.word]);
  }
  sum += of(p, s, tree.sentiment);
  return s;
}

// Of a minibatch: a loop over its trees.
using Minibatch = std::span<const Tree>;

template <class F>
Tensor sum_over_nodes(const Params& p, Minibatch trees, const F& of) {
  Tensor all = 0.0f;
  for (const Tree& tree : trees) {
    Tensor own = 0.0f;
    visit(p, tree, of, own);
    all += own;
  }
  return all;
}
Tensor loss(const Params& p, Minibatch trees) { return sum_over_nodes(p, trees, cost); }
Tensor right(const Params& p, Minibatch trees) { return sum_over_nodes(p, trees, is_right); }

// --- training ------------------------------------------------------------------------------------

Params train(Params p, std::vector<Tree>& trees) {
  constexpr std::size_t minibatch = 32;
  const auto batched = vt::autobatch(loss);
  const vt::Adam adam{.rate = 0.01};
  auto state = adam.init(p);
  const auto step = vt::jit([&](const Params& q, const Params& g, const vt::AdamState<Params>& s) {
    return adam.step(q, g, s);
  });
  std::mt19937 random(3);
  for (int epoch = 1; epoch <= 4; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    std::shuffle(trees.begin(), trees.end(), random);
    double sum = 0;
    for (std::size_t at = 0; at < trees.size(); at += minibatch) {
      const Minibatch all = trees, some = all.subspan(at, std::min(minibatch, all.size() - at));
      // vt's transforms take trees of Tensors; trees of another kind are captured.
      const auto [value, g] =
          vt::value_and_grad([&](const Params& q) { return batched(q, some); })(p);
      std::tie(p, state) = step(p, g, state);
      sum += value.item<double>();
    }
    std::printf("epoch %d: loss %.3f a tree, %.2f s\n", epoch,
                sum / static_cast<double>(trees.size()), support::seconds_since(start));
  }
  return p;
}

}  // namespace

int main() {
  int failures = 0;
  std::vector<Tree> trees = make_trees(1200, 1);
  const std::vector<Tree> held_out = make_trees(300, 2);
  std::array<int, classes> counts{};
  for (const Tree& tree : held_out) count_classes(tree, counts);
  int nodes = 0;
  for (const int count : counts) nodes += count;
  const double majority =
      static_cast<double>(*std::max_element(counts.begin(), counts.end())) / nodes;

  const Params start{.embedding = support::weights({vocabulary, width}),
                     .leaf = support::weights({width, 3 * width}),
                     .leaf_offset = vt::zeros({3 * width}),
                     .inner = support::weights({2 * width, 5 * width}),
                     .inner_offset = vt::zeros({5 * width}),
                     .out = support::weights({width, classes}),
                     .out_offset = vt::zeros({classes})};
  const Params p = train(start, trees);
  const double accuracy = vt::autobatch(right)(p, Minibatch(held_out)).item<double>() / nodes;
  std::printf("%.1f %% of %d held-out nodes are right; the commonest class is %.1f %%\n",
              100 * accuracy, nodes, 100 * majority);
  if (accuracy < majority + 0.3) {
    std::printf("FAILED: that is no clear gain\n");
    ++failures;
  }

  std::printf("\nLoss and gradient, minibatches of 32\n");
  std::vector<Minibatch> minibatches;
  for (std::size_t k = 0; k < 24; ++k) minibatches.push_back(Minibatch(trees).subspan(32 * k, 32));
  failures += support::compare_strategies(loss, start, minibatches, "trees");
  return failures;
}
