// Derivatives as users want them: per-example gradients, Jacobian and Hessian of the digits
// examples, and the GMM gradient.
#include <fstream>
#include <sstream>

#include "gmm.hpp"
#include "support.hpp"

namespace {

struct Params {
  vt::Tensor w1, b1, w2, b2;
};

vt::Tensor logits(const Params& p, const vt::Tensor& image) {
  return vt::matmul(vt::tanh(vt::matmul(image, p.w1) + p.b1), p.w2) + p.b2;
}
vt::Tensor loss(const Params& p, const vt::Tensor& image, const vt::Tensor& label) {
  return vt::sparse_cross_entropy(logits(p, image), label);
}
vt::Tensor softmax_loss(const vt::Tensor& theta, const vt::Tensor& image, const vt::Tensor& label) {
  const vt::Tensor weights = vt::reshape(theta, {65, 10});
  return vt::sparse_cross_entropy(vt::matmul(image, weights[vt::slice(0, 64)]) + weights[64],
                                  label);
}

template <class Tree>
void evaluate(const Tree& tree) {
  for (const vt::Tensor& leaf : vt::tree_leaves(tree)) leaf.eval();
}

void digits(const std::string& folder) {
  std::ifstream file(folder + "/digits.csv");
  std::vector<float> pixels;
  std::vector<int> labels;
  for (std::string line; std::getline(file, line);) {
    std::stringstream row(line);
    std::string field;
    for (int i = 0; std::getline(row, field, ','); ++i) {
      if (i < 64) pixels.push_back(std::stof(field) / 16);
      else labels.push_back(std::stoi(field));
    }
  }
  const int n = static_cast<int>(labels.size());
  if (n < 1437) throw std::runtime_error(folder + "/digits.csv: cannot be read");
  const vt::Tensor x = vt::tensor(pixels, {n, 64}), y = vt::tensor(labels, {n});
  const Params p{(perf::random_tensor<float>({64, 64}, 3) * 0.2f).eval(), vt::zeros({64}).eval(),
                 (perf::random_tensor<float>({64, 10}, 4) * 0.2f).eval(), vt::zeros({10}).eval()};

  // Per-example gradients of 256 examples.
  constexpr int batch = 256;
  const vt::Tensor xb = x[vt::slice(0, batch)].eval(), yb = y[vt::slice(0, batch)].eval();
  std::vector<vt::Tensor> xs, ys;
  for (int i = 0; i < batch; ++i) {
    xs.push_back(xb[i].eval());
    ys.push_back(yb[i].eval());
  }
  const auto together = vt::jit(vt::vmap(vt::grad(loss), {.in_axes = {vt::unmapped, 0, 0}}));
  const auto single = vt::jit(vt::grad(loss));
  perf::row_on(2, "per_example_gradients/256/vt", [=] { evaluate(together(p, xb, yb)); });
  perf::row_on(2, "per_example_gradients/256/loop", [=] {
    for (int i = 0; i < batch; ++i) evaluate(vt::grad(loss)(p, xs[i], ys[i]));
  });
  perf::row_on(2, "per_example_gradients/256/compiled_loop", [=] {
    for (int i = 0; i < batch; ++i) evaluate(single(p, xs[i], ys[i]));
  });

  // The Jacobian of the logits by the pixels for 359 images; the Hessian of the softmax regression
  // on 1,437.
  const vt::Tensor held_out = x[vt::slice(0, 359)].eval();
  const auto saliency = vt::jit(vt::vmap([p](vt::Tensor image) {
    return vt::jacobian([p](vt::Tensor x) { return logits(p, x); })(image);
  }));
  perf::row_on(2, "jacobian/logits/359/vt", [=] { saliency(held_out).eval(); });
  const vt::Tensor x64 = x[vt::slice(0, 1437)].astype(vt::f64).eval(),
                   y64 = y[vt::slice(0, 1437)].eval();
  const auto objective = [=](const vt::Tensor& theta) {
    return vt::mean(vt::vmap(softmax_loss, {.in_axes = {vt::unmapped, 0, 0}})(theta, x64, y64)) +
           0.0005 * vt::sum(vt::square(theta));
  };
  const auto hessian = vt::jit(vt::hessian(objective));
  const vt::Tensor theta = (perf::random_tensor<double>({650}, 5) * 0.1).eval();
  perf::row_on(2, "hessian/softmax/650/vt", [=] { hessian(theta).eval(); });
}

void mixtures(const std::string& folder) {
  for (const std::string size : {"d10_K25", "d20_K50", "d64_K25"}) {
    const perf::Gmm g = perf::read_gmm(folder + "/gmm_" + size + ".txt");
    const auto f = perf::gmm_objective(g);
    const auto value = vt::jit(f);
    const auto gradient = vt::jit(vt::grad<0, 1, 2>(f));
    perf::row_on(2, "gmm/" + size + "/objective/vt",
                 [=] { value(g.alphas, g.means, g.factors).eval(); });
    perf::row_on(2, "gmm/" + size + "/gradient/vt",
                 [=] { evaluate(gradient(g.alphas, g.means, g.factors)); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  digits(VT_EXAMPLE_DATA);
  mixtures(VT_PERF_DATA);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
