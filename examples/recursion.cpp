// function, Recursive: functions called by name, and a tree network that calls itself once for each
// node, over trees of different shapes.
#include <vt/vt.hpp>

#include "support/check.hpp"

/// Nodes in arrays: the children of each, −1 where it is a leaf.
struct Tree {
  vt::Tensor left, right;
};

int main() {
  int failures = 0;
  // A layer that is called a hundred times is recorded, differentiated and vectorized once.
  const auto layer = vt::function(
      "layer", [](vt::Tensor h) { return vt::tanh(1.1 * h + vt::sin(h)) + 0.1 * vt::square(h); });
  const auto deep = [&](vt::Tensor h) {
    for (int i = 0; i < 100; ++i) h = layer(h);
    return vt::sum(h);
  };
  const vt::Tensor x = vt::linspace(-1.0, 1.0, 5);
  failures +=
      vt::make_graph(deep)(x).size() != 101 || vt::make_graph(vt::grad(deep))(x).size() > 220;

  // The state of a node is made of its children's: a vector of three numbers. Leaves hold words.
  const vt::Tensor words = vt::random::normal(vt::random::key(1), {4, 3}, vt::f64);
  const auto state_of_root = [&](vt::Tensor weights, const Tree& tree) {
    vt::Recursive<vt::Tensor(vt::Tensor)> state("state", [&](vt::Tensor node) {
      return vt::cond(
          tree.left[node] < 0, [&] { return words[node % 4]; },
          [&] {
            return vt::tanh(vt::matmul(
                weights, vt::concatenate({state(tree.left[node]), state(tree.right[node])})));
          });
    });
    return state(vt::tensor(0));
  };
  const auto loss = [&](vt::Tensor weights, const Tree& tree) {
    return vt::sum(vt::square(state_of_root(weights, tree)));
  };
  const vt::Tensor weights = 0.5 * vt::random::normal(vt::random::key(2), {3, 6}, vt::f64);
  const Tree trees{vt::tensor({{1, -1, 3, -1, -1}, {1, 3, -1, -1, -1}}),
                   vt::tensor({{2, -1, 4, -1, -1}, {2, 4, -1, -1, -1}})};

  // Gradients of both at once, each along its own tree, against differences.
  const auto gradients =
      vt::jit(vt::vmap(vt::grad(loss), {.in_axes = {vt::unmapped, 0}}))(weights, trees);
  for (int t = 0; t < 2; ++t) {
    const Tree one{trees.left[t], trees.right[t]};
    const vt::Tensor d = vt::random::normal(vt::random::key(3), {3, 6}, vt::f64);
    const double h = 1e-6;
    const vt::Tensor slope = (loss(weights + h * d, one) - loss(weights - h * d, one)) / (2 * h);
    failures +=
        support::check("the gradient through a tree", vt::sum(gradients[t] * d), slope, 1e-7);
  }
  return failures;
}
