// CUDA benchmarks of models: per-example gradients, Jacobians of logits by the input, an LSTM over
// sequences of different lengths.
#include <cmath>

#include "../networks.hpp"
#include "cuda_rows.hpp"

namespace perf {

namespace {

using vt::Tensor;

Tensor weights(const vt::Shape& shape, std::uint64_t seed) {
  return on_device(random_tensor<float>(shape, seed) * static_cast<float>(weight_scale(shape)));
}
Tensor biases(std::int64_t n, std::uint64_t seed) {
  return on_device(random_tensor<float>({n}, seed) * 0.1f);
}

Tensor one_of(const Tensor& batch, std::int64_t i) { return on_device(batch.to(vt::cpu())[i]); }

// --- LSTMs

struct LstmWeights {
  Tensor gates, bias, out, out_bias;
};
LstmWeights lstm_weights(std::int64_t width, std::int64_t outputs) {
  return {weights({2 * width, 4 * width}, 1), biases(4 * width, 2), weights({width, outputs}, 3),
          biases(outputs, 4)};
}
std::pair<Tensor, Tensor> lstm_cell(const LstmWeights& p, const Tensor& x, const Tensor& h,
                                    const Tensor& c) {
  const std::int64_t width = h.dim(0);
  const Tensor gates = vt::matmul(vt::concatenate({x, h}), p.gates) + p.bias;
  const auto gate = [&](std::int64_t k) { return gates[vt::slice(k * width, (k + 1) * width)]; };
  const Tensor cell = vt::sigmoid(gate(1)) * c + vt::sigmoid(gate(0)) * vt::tanh(gate(2));
  return {vt::sigmoid(gate(3)) * vt::tanh(cell), cell};
}
/// A sequence [steps, width], unrolled.
Tensor lstm_logits(const LstmWeights& p, const Tensor& xs) {
  Tensor h = vt::zeros({xs.dim(1)}), c = h;
  for (std::int64_t t = 0; t < xs.dim(0); ++t) std::tie(h, c) = lstm_cell(p, xs[t], h, c);
  return vt::matmul(h, p.out) + p.out_bias;
}
Tensor lstm_loss(const LstmWeights& p, const Tensor& xs, const Tensor& label) {
  return vt::sparse_cross_entropy(lstm_logits(p, xs), label);
}

// --- gradients of each example of a batch

void per_example_rows(CudaBenchmark& b) {
  const std::int64_t features = b.size(32, 2), dense = b.size(1024, 8);
  const Network convnet{weights({5, 5, 1, features}, 1),
                        biases(features, 2),
                        weights({5, 5, features, 2 * features}, 3),
                        biases(2 * features, 4),
                        weights({49 * 2 * features, dense}, 5),
                        biases(dense, 6),
                        weights({dense, 10}, 7),
                        biases(10, 8)};
  const auto convnet_each = vt::jit(vt::vmap(vt::grad(loss), {.in_axes = {vt::unmapped, 0, 0, 0}}));
  const std::int64_t width = b.size(128, 8), steps = b.size(10, 2);
  const LstmWeights lstm = lstm_weights(width, 10);
  const auto lstm_one = vt::jit(vt::grad(lstm_loss));
  const auto lstm_each = vt::jit(vt::vmap(vt::grad(lstm_loss), {.in_axes = {vt::unmapped, 0, 0}}));
  for (const std::int64_t batch :
       b.tiny() ? std::vector<std::int64_t>{2} : std::vector<std::int64_t>{1, 16, 64, 256, 1024}) {
    const std::string n = "/" + std::to_string(batch);
    const Tensor y = on_device((vt::arange(batch) % 10).astype(vt::i32));
    if (b.wanted("per_example/convnet" + n)) {
      const Tensor x = on_device(random_tensor<float>({batch, 28, 28, 1}, 20));
      const Tensor kept = on_device((random_tensor<float>({batch, dense}, 21) > 0).astype(vt::f32));
      b.device("per_example/convnet" + n, [=] { convnet_each(convnet, x, kept, y); });
    }
    const Tensor xs = on_device(random_tensor<float>({batch, steps, width}, 22));
    b.device("per_example/lstm" + n, [=] { lstm_each(lstm, xs, y); });
    if ((batch != 256 && !b.tiny()) || !b.wanted("per_example/lstm" + n + "/loop")) continue;
    std::vector<Tensor> x, label;
    for (std::int64_t i = 0; i < batch; ++i) {
      x.push_back(one_of(xs, i));
      label.push_back(one_of(y, i));
    }
    b.device("per_example/lstm" + n + "/loop", [=] {
      for (std::size_t i = 0; i < x.size(); ++i) lstm_one(lstm, x[i], label[i]);
    });
  }
}

// --- Jacobians by reverse mode

/// All rows at once, and one compiled call for each row.
template <class P, class Logits>
void jacobian_rows(CudaBenchmark& b, const std::string& name, int outputs, const P& p,
                   const Tensor& x, Logits logits) {
  const std::string title = "jacobian/" + name + "/" + std::to_string(outputs);
  const auto together = vt::jit([=](const P& p, const Tensor& x) {
    return vt::jacrev([&](const Tensor& input) { return logits(p, input); })(x);
  });
  b.device(title, [=] { together(p, x); });
  if (!b.wanted(title + "/loop")) return;
  const auto row = vt::jit([=](const P& p, const Tensor& x, const Tensor& ct) {
    return vt::vjp([&](const Tensor& input) { return logits(p, input); }, x).second(ct);
  });
  std::vector<Tensor> cts;
  for (int i = 0; i < outputs; ++i) cts.push_back(on_device(vt::one_hot(vt::tensor(i), outputs)));
  b.device(title + "/loop", [=] {
    for (const Tensor& ct : cts) row(p, x, ct);
  });
}

Weights vgg16(int outputs, std::int64_t pixels) {
  Weights p;
  std::uint64_t seed = 1;
  for (vt::Shape shape : vgg16_shapes(outputs)) {
    // Images of 224×224 leave 7×7 places in front of the first dense layer.
    if (shape.rank() == 2 && shape[0] == 512)
      shape = {512 * (pixels / 32) * (pixels / 32), shape[1]};
    p.push_back(weights(shape, ++seed));
    p.push_back(biases(shape.back(), ++seed));
  }
  return p;
}
/// A network with VGG16's kinds of layers, for the emulator.
Tensor small_logits(const Weights& p, const Tensor& x) {
  const Tensor h =
      vt::max_pool(vt::relu(vt::conv2d(x, p[0], {.padding = "SAME"}) + p[1]), {.window = {2, 2}});
  return vt::matmul(vt::ravel(h), p[2]) + p[3];
}

void jacobian_rows(CudaBenchmark& b) {
  if (b.tiny()) {
    jacobian_rows(b, "vgg16_48", 2,
                  Weights{weights({3, 3, 3, 2}, 1), biases(2, 2), weights({8, 2}, 3), biases(2, 4)},
                  on_device(random_tensor<float>({4, 4, 3}, 99)), small_logits);
    jacobian_rows(b, "lstm", 2, lstm_weights(8, 2), on_device(random_tensor<float>({2, 8}, 99)),
                  lstm_logits);
    return;
  }
  for (const int outputs : {1, 8, 32, 128}) {
    for (const std::int64_t pixels : {48, 224}) {
      const std::string name = "vgg16_" + std::to_string(pixels);
      if (b.wanted("jacobian/" + name + "/" + std::to_string(outputs)))
        jacobian_rows(b, name, outputs, vgg16(outputs, pixels),
                      on_device(random_tensor<float>({pixels, pixels, 3}, 99)), vgg16_logits);
    }
    jacobian_rows(b, "lstm", outputs, lstm_weights(128, outputs),
                  on_device(random_tensor<float>({10, 128}, 99)), lstm_logits);
  }
}

// --- sequences that end at different times, each lane going as far as its own

void ragged_rows(CudaBenchmark& b) {
  const std::int64_t width = b.size(128, 8), longest = b.size(100, 3);
  const LstmWeights p = lstm_weights(width, 1);
  const auto last = [=](const LstmWeights& p, const Tensor& xs, const Tensor& length) {
    const Tensor start = vt::zeros({width});
    return std::get<1>(vt::while_loop([&](Tensor t, Tensor, Tensor) { return t < length; },
                                      [&](Tensor t, Tensor h, Tensor c) {
                                        const auto [next, cell] =
                                            lstm_cell(p, vt::take(xs, t, 0), h, c);
                                        return std::tuple(t + 1, next, cell);
                                      },
                                      std::tuple(vt::tensor(0, vt::i32), start, start)));
  };
  const auto all = vt::jit(vt::vmap(last, {.in_axes = {vt::unmapped, 0, 0}}));
  for (const std::int64_t batch : b.tiny() ? std::vector<std::int64_t>{3}
                                           : std::vector<std::int64_t>{1, 10, 100, 1000, 10000}) {
    const std::string name = "ragged_lstm/" + std::to_string(batch);
    if (!b.wanted(name)) continue;
    const Tensor xs =
        (vt::random::uniform(on_device(vt::random::key(7)), {batch, longest, width}) * 2.0f - 1.0f)
            .eval();
    const Tensor lengths = on_device(((vt::arange(batch) * 37) % longest + 1).astype(vt::i32));
    b.device(name, [=] { all(p, xs, lengths); });
  }
}

}  // namespace

void cuda_model_rows(CudaBenchmark& b) {
  per_example_rows(b);
  jacobian_rows(b);
  ragged_rows(b);
}

}  // namespace perf
