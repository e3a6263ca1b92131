// A convolutional network written for one image, trained with each example's gradient clipped by
// itself.
// Usage: convnet [FILE.csv]
#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/check.hpp"
#include "support/digits.hpp"

namespace {

using support::classes, support::Data, support::evaluated, support::Images;

struct Params {
  vt::Tensor filter1, bias1, filter2, bias2, weights, bias3;
};

/// One image, 8×8×1: two layers of 3×3 filters, each followed by the greatest of every 2×2, and a
/// linear one.
vt::Tensor logits(const Params& p, const vt::Tensor& image) {
  vt::Tensor h = vt::relu(vt::conv2d(image, p.filter1, {.padding = "SAME"}) + p.bias1);
  h = vt::max_pool(h, {.window = {2, 2}});
  h = vt::relu(vt::conv2d(h, p.filter2, {.padding = "SAME"}) + p.bias2);
  h = vt::max_pool(h, {.window = {2, 2}});
  return vt::matmul(vt::ravel(h), p.weights) + p.bias3;
}

vt::Tensor loss(const Params& p, const vt::Tensor& image, const vt::Tensor& label) {
  return vt::sparse_cross_entropy(logits(p, image), label);
}

const auto per_example_gradients = vt::vmap(vt::grad(loss), {.in_axes = {vt::unmapped, 0, 0}});

vt::Tensor as_images(const Images& images) {
  return vt::reshape(images.pixels, {images.count(), 8, 8, 1}).eval();
}

Params random_start() {
  const auto normal = [](int number, const vt::Shape& shape, double fan_in) {
    return vt::random::normal(vt::random::key(number), shape) * std::sqrt(2.0 / fan_in);
  };
  return evaluated(Params{normal(1, {3, 3, 1, 16}, 9), vt::zeros({16}),
                          normal(2, {3, 3, 16, 32}, 9 * 16), vt::zeros({32}),
                          normal(3, {2 * 2 * 32, classes}, 2 * 2 * 32), vt::zeros({classes})});
}

double accuracy(const Params& p, const Images& images) {
  const vt::Tensor best =
      vt::argmax(vt::vmap(logits, {.in_axes = {vt::unmapped, 0}})(p, as_images(images)), 1);
  return vt::mean((best == images.labels).astype(vt::f64)).item<double>();
}

// --- 1: gradients of each example, together and one by one ---------------------------------------

int time_gradients(const Params& start, const Images& train) {
  constexpr int n = 256;
  const vt::Tensor x = as_images(train)[vt::slice(n)].eval(), y = train.labels[vt::slice(n)].eval();
  const auto together = vt::jit(per_example_gradients);
  const auto one = vt::jit(vt::grad(loss));
  std::vector<vt::Tensor> xs, ys, filters;
  for (int i = 0; i < n; ++i) {
    xs.push_back(x[i].eval());
    ys.push_back(y[i].eval());
  }
  const double fast = support::median_ms([&] { evaluated(together(start, x, y)); }, 20);
  const double slow = support::median_ms(
      [&] {
        for (int i = 0; i < n; ++i) evaluated(one(start, xs[i], ys[i]));
      },
      5);
  std::printf("\n1. Gradients of %d examples, one by one\n", n);
  std::printf(
      "  jit(vmap(grad(loss))): %.3f ms, a loop over jit(grad(loss)): %.3f ms: %.1f times faster\n",
      fast, slow, slow / fast);
  for (int i = 0; i < n; ++i) filters.push_back(one(start, xs[i], ys[i]).filter2);
  return support::check("  both give the gradients", together(start, x, y).filter2,
                        vt::stack(filters), 1e-4);
}

// --- 2: training ---------------------------------------------------------------------------------

int train(Params p, const Data& data) {
  constexpr int batch = 128, epochs = 20;
  constexpr double clip = 1.0;
  std::printf(
      "\n2. Training: each example's gradient is clipped to norm %.0f before the %d of a batch are "
      "averaged\n",
      clip, batch);
  const vt::Tensor images = as_images(data.train);
  const vt::Sgd sgd{.rate = 0.5, .momentum = 0.9};
  auto state = sgd.init(p);
  const auto step =
      vt::jit([&](const Params& p, const decltype(state)& s, const vt::Tensor& chosen) {
        const Params each = per_example_gradients(p, vt::take(images, chosen, 0),
                                                  vt::take(data.train.labels, chosen, 0));
        const vt::Tensor scale = vt::minimum(1.0, clip / support::norms(each)) / batch;
        const auto mean = [&](const vt::Tensor& g) { return vt::tensordot(scale, g, 1); };
        return sgd.step(p, vt::tree_map(mean, each), s);
      });
  std::vector<int> order(data.train.count());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  const auto start = std::chrono::steady_clock::now();
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    for (int at = 0; at + batch <= data.train.count(); at += batch)
      std::tie(p, state) =
          step(p, state, vt::tensor(std::span<const int>(order).subspan(at, batch), {batch}));
    if (epoch % 5 == 0 || epoch == 1)
      std::printf("  epoch %2d: %.2f %% of the held-out images right\n", epoch,
                  100 * accuracy(p, data.held_out));
  }
  const double seconds =
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
               right = accuracy(p, data.held_out);
  std::printf("  %d epochs in %.2f s; %.2f %% of %d images never seen are right\n", epochs, seconds,
              100 * right, data.held_out.count());
  if (right >= 0.96) return 0;
  std::printf("  that is less than the 96 %% expected\n");
  return 1;
}

int tour(const std::string& csv) {
  const Data data = support::read_digits(csv);
  std::printf("%s: %d images of 8x8 to train on, %d held out\n", csv.c_str(), data.train.count(),
              data.held_out.count());
  const Params start = random_start();
  const int failures = time_gradients(start, data.train) + train(start, data);
  if (failures) std::printf("\n%d of the checks above failed\n", failures);
  return failures ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return support::run("convnet",
                      [&] { return tour(argc > 1 ? argv[1] : "examples/data/digits.csv"); });
}
