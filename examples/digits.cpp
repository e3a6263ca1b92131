// The tour: a network written for one image, trained with per-example gradients; its saliency;
// Newton with a full Hessian.
// Usage: digits [FILE.csv [FOLDER]]; pictures are written to FOLDER.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/check.hpp"
#include "support/csv.hpp"
#include "support/digits.hpp"
#include "support/digits_network.hpp"
#include "support/png.hpp"

namespace {

using support::accuracy, support::logits, support::loss, support::Params, support::random_start;
using support::classes, support::Data, support::evaluated, support::Images, support::pixels,
    support::read_digits;

// --- the other model, written for one image too --------------------------------------------------

/// Softmax regression; `theta` holds 64×10 weights and 10 biases.
vt::Tensor softmax_loss(const vt::Tensor& theta, const vt::Tensor& image, const vt::Tensor& label) {
  const vt::Tensor weights = vt::reshape(theta, {pixels + 1, classes});
  return vt::sparse_cross_entropy(
      vt::matmul(image, weights[vt::slice(0, pixels)]) + weights[pixels], label);
}

void faster(const char* what, double transformed_ms, double loop_ms, const char* loop) {
  std::printf("  %s: %.3f ms, %s: %.3f ms: %.1f times faster\n", what, transformed_ms, loop,
              loop_ms, loop_ms / transformed_ms);
}

const auto per_example_gradients = vt::vmap(vt::grad(loss), {.in_axes = {vt::unmapped, 0, 0}});

// --- 1: per-example gradients, timed -------------------------------------------------------------

int time_gradients(const Params& start, const Images& train) {
  constexpr int n = 256;
  const vt::Tensor x = train.pixels[vt::slice(n)].eval(), y = train.labels[vt::slice(n)].eval();
  std::printf(
      "\n1. Gradients of %d examples, one by one: vmap(grad(loss)), where loss takes one image\n",
      n);
  const auto together = vt::jit(per_example_gradients);
  const auto compiled = vt::jit(vt::grad(loss));
  std::vector<vt::Tensor> xs, ys;
  for (int i = 0; i < n; ++i) {
    xs.push_back(x[i].eval());
    ys.push_back(y[i].eval());
  }
  const double fast = support::median_ms([&] { evaluated(together(start, x, y)); }, 20);
  const double slow = support::median_ms(
      [&] {
        for (int i = 0; i < n; ++i) evaluated(vt::grad(loss)(start, xs[i], ys[i]));
      },
      3);
  const double middle = support::median_ms(
      [&] {
        for (int i = 0; i < n; ++i) evaluated(compiled(start, xs[i], ys[i]));
      },
      5);
  faster("jit(vmap(grad(loss)))", fast, slow, "a loop over grad(loss)");
  faster("                     ", fast, middle, "a loop over jit(grad(loss))");

  std::vector<vt::Tensor> by_loop;
  for (int i = 0; i < n; ++i) by_loop.push_back(vt::grad(loss)(start, xs[i], ys[i]).w1);
  return support::check("  both give the gradients", together(start, x, y).w1, vt::stack(by_loop));
}

// --- 2: training with per-example clipping -------------------------------------------------------

Params train(Params p, const Data& data, int& failures) {
  constexpr int batch = 128, epochs = 30;
  constexpr double clip = 2.0;
  std::printf(
      "\n2. Training: each example's gradient is clipped to norm %.0f before the %d of a batch are "
      "averaged\n",
      clip, batch);
  const vt::Sgd sgd{.rate = 1.0, .momentum = 0.9};
  auto state = sgd.init(p);
  const auto step =
      vt::jit([&](const Params& p, const decltype(state)& s, const vt::Tensor& chosen) {
        const Params each = per_example_gradients(p, vt::take(data.train.pixels, chosen, 0),
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
    if (epoch % 10 == 0 || epoch == 1)
      std::printf("  epoch %2d: %.2f %% of the held-out images right\n", epoch,
                  100 * accuracy(p, data.held_out));
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double right = accuracy(p, data.held_out);
  std::printf("  %d epochs in %.2f s; %.2f %% of %d images never seen are right\n", epochs, seconds,
              100 * right, data.held_out.count());
  if (right < 0.96) {
    std::printf("  that is less than the 96 %% expected\n");
    ++failures;
  }
  return p;
}

// --- 3: the images the network finds hardest -----------------------------------------------------

void draw_hardest(const Params& p, const Data& data, const std::string& file) {
  const Images& images = data.train;
  const std::vector<float> norm =
      support::norms(vt::jit(per_example_gradients)(p, images.pixels, images.labels))
          .to_vector<float>();
  const std::vector<int> guess =
      vt::argmax(vt::vmap(logits, {.in_axes = {vt::unmapped, 0}})(p, images.pixels), 1)
          .to_vector<int>();
  std::vector<int> order(norm.size());
  std::iota(order.begin(), order.end(), 0);
  constexpr int rows = 3, columns = 8, scale = 9, cell = 8 * scale + 8;
  std::partial_sort(order.begin(), order.begin() + rows * columns, order.end(),
                    [&](int a, int b) { return norm[a] > norm[b]; });
  const std::vector<float> pixel = images.pixels.to_vector<float>();
  support::Picture picture(columns * cell + 8, rows * (cell + 18) + 8);
  for (int k = 0; k < rows * columns; ++k) {
    const int i = order[k], left = 8 + k % columns * cell, top = 8 + k / columns * (cell + 18);
    picture.cells(left, top, 8, 8, scale,
                  [&](int r, int c) { return support::grey(1 - pixel[i * pixels + r * 8 + c]); });
    char text[32];
    std::snprintf(text, sizeof text, "%d>%d %.1f", images.label[i], guess[i], norm[i]);
    picture.caption(left, top + 8 * scale + 4, text);
  }
  picture.write_png(file);
  const double median = [&] {
    std::vector<float> sorted = norm;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    return sorted[sorted.size() / 2];
  }();
  std::printf(
      "\n3. The %d training images with the largest gradient norms (%.2f to %.2f; the median is "
      "%.4f)\n",
      rows * columns, norm[order[0]], norm[order[rows * columns - 1]], median);
  std::printf("  wrote %s: each with label > answer and norm\n", file.c_str());
}

// --- 4: saliency ---------------------------------------------------------------------------------

int draw_saliency(const Params& p, const Images& images, const std::string& file) {
  const auto one = [&](const vt::Tensor& image) {
    return vt::jacobian([&](const vt::Tensor& x) { return logits(p, x); })(image);
  };
  std::printf("\n4. Saliency: the Jacobian of the 10 logits by the 64 pixels, for %d images\n",
              images.count());
  const auto together = vt::jit(vt::vmap(one));
  std::vector<vt::Tensor> rows;
  for (int i = 0; i < images.count(); ++i) rows.push_back(images.pixels[i].eval());
  const double fast = support::median_ms([&] { together(images.pixels).eval(); }, 10);
  const double slow = support::median_ms(
      [&] {
        for (const vt::Tensor& row : rows) one(row).eval();
      },
      3);
  faster("jit(vmap(jacobian(logits)))", fast, slow, "a loop over jacobian(logits)");
  const vt::Tensor jacobians = together(images.pixels);  // [n,10,64]
  const int failures = support::check("  both give the Jacobians", jacobians[3], one(rows[3]));

  const std::vector<float> j = jacobians.to_vector<float>(),
                           pixel = images.pixels.to_vector<float>();
  const float largest = vt::max(vt::abs(jacobians)).item<float>();
  constexpr int scale = 6, cell = 8 * scale + 6;
  support::Picture picture((classes + 1) * cell + 14, classes * cell + 24);
  for (int logit = 0; logit < classes; ++logit)
    picture.caption(14 + (logit + 1) * cell + 3 * scale, 6, std::to_string(logit));
  for (int digit = 0; digit < classes; ++digit) {
    const auto found = std::find(images.label.begin(), images.label.end(), digit);
    if (found == images.label.end()) continue;
    const auto i = found - images.label.begin();
    const int top = 20 + digit * cell;
    picture.cells(6, top, 8, 8, scale,
                  [&](int r, int c) { return support::grey(1 - pixel[i * pixels + r * 8 + c]); });
    for (int logit = 0; logit < classes; ++logit)
      picture.cells(14 + (logit + 1) * cell, top, 8, 8, scale, [&](int r, int c) {
        return support::diverging(1.5 * j[(i * classes + logit) * pixels + r * 8 + c] / largest);
      });
  }
  picture.write_png(file);
  std::printf(
      "  wrote %s: one image of each digit, then how each logit answers to each pixel (red: up, "
      "blue: down)\n",
      file.c_str());
  return failures;
}

// --- 5: Newton's method --------------------------------------------------------------------------

int newton(const Data& data) {
  constexpr int n = (pixels + 1) * classes;
  constexpr double ridge = 1e-3;
  std::printf(
      "\n5. Newton's method on a softmax regression: %d parameters, the full %d x %d Hessian of %d "
      "images\n",
      n, n, n, data.train.count());
  const vt::Tensor x = data.train.pixels.astype(vt::f64).eval(), y = data.train.labels;
  const auto objective = [&](const vt::Tensor& theta) {
    return vt::mean(vt::vmap(softmax_loss, {.in_axes = {vt::unmapped, 0, 0}})(theta, x, y)) +
           0.5 * ridge * vt::sum(vt::square(theta));
  };
  const auto start = std::chrono::steady_clock::now();
  // The function is convex: whole steps of Newton's are good from the start.
  const vt::MinimizeOptions options{
      .method = vt::MinimizeMethod::newton, .gtol = 1e-10, .initial_step = 100.0};
  const auto s = vt::minimize(objective, vt::zeros({n}, vt::f64), options);
  const vt::Tensor theta = s.x.eval();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const int failures = s.converged.item<bool>() ? 0 : 1;
  const vt::Tensor answers = vt::vmap([&](const vt::Tensor& image) {
    const vt::Tensor weights = vt::reshape(theta, {pixels + 1, classes});
    return vt::argmax(vt::matmul(image, weights[vt::slice(0, pixels)]) + weights[pixels]);
  })(data.held_out.pixels.astype(vt::f64));
  std::printf(
      "  %s after %d steps in %.2f s: objective %.12f; %.2f %% of the held-out images right\n",
      failures ? "NOT converged" : "converged", s.iterations.item<int>(), seconds,
      s.value.item<double>(),
      100 * vt::mean((answers == data.held_out.labels).astype(vt::f64)).item<double>());

  // The same Hessian column by column.
  const auto hessian = vt::jit(vt::hessian(objective));
  const auto column = vt::jit([&](const vt::Tensor& direction) {
    return vt::jvp(vt::grad(objective), std::tuple(theta), std::tuple(direction)).second;
  });
  const vt::Tensor basis = vt::eye(n, std::nullopt, 0, vt::f64).eval();
  std::vector<vt::Tensor> columns(n);
  const auto loop = [&] {
    for (int i = 0; i < n; ++i) columns[i] = column(basis[i]).eval();
  };
  const double fast = support::median_ms([&] { hessian(theta).eval(); }, 3);
  const double slow = support::median_ms(loop, 1);
  faster("jit(hessian(objective))", fast, slow,
         "a loop over its 650 columns, jit(jvp(grad(objective)))");
  return failures +
         support::check("  both give the Hessian", hessian(theta), vt::stack(columns), 1e-9);
}

int tour(const std::string& csv, const std::string& folder) {
  const Data data = read_digits(csv);
  std::printf("%s: %d images of 8x8 to train on, %d held out\n", csv.c_str(), data.train.count(),
              data.held_out.count());
  std::filesystem::create_directories(folder);
  const Params start = evaluated(random_start());
  int failures = time_gradients(start, data.train);
  const Params trained = train(start, data, failures);
  draw_hardest(trained, data, folder + "/hardest.png");
  failures += draw_saliency(trained, data.held_out, folder + "/saliency.png");
  failures += newton(data);
  if (failures) std::printf("\n%d of the checks above failed\n", failures);
  return failures ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  return support::run("digits", [&] {
    return tour(argc > 1 ? argv[1] : "examples/data/digits.csv", argc > 2 ? argv[2] : "pictures");
  });
}
