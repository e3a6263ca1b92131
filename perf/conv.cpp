// Convolutions, pools, and the convolutional network of 28×28 images: gradients of each example, of
// a batch, and its logits.
#include <map>

#include "networks.hpp"
#include "support.hpp"

namespace {

using perf::Network;

Network network() {
  std::uint64_t seed = 1;
  const auto weights = [&](const vt::Shape& shape, float scale) {
    return (perf::random_tensor<float>(shape, ++seed) * scale).eval();
  };
  return {weights({5, 5, 1, 32}, 0.3f),   weights({32}, 0.1f),
          weights({5, 5, 32, 64}, 0.05f), weights({64}, 0.1f),
          weights({3136, 1024}, 0.03f),   weights({1024}, 0.1f),
          weights({1024, 10}, 0.05f),     weights({10}, 0.1f)};
}

template <class Tree>
void all(const Tree& tree) {
  for (const vt::Tensor& leaf : vt::tree_leaves(tree)) leaf.eval();
}

void networks() {
  const Network p = network();
  const auto each = vt::jit(vt::vmap(vt::grad(perf::loss), {.in_axes = {vt::unmapped, 0, 0, 0}}));
  const auto mean = vt::jit(vt::grad(perf::mean_loss));
  const auto forward = vt::jit(vt::vmap(perf::logits, {.in_axes = {vt::unmapped, 0, 0}}));
  const auto one = vt::jit(vt::grad(perf::loss));
  for (const int n : {1, 16, 64, 256}) {
    const vt::Tensor x = perf::random_tensor<float>({n, 28, 28, 1}, 20),
                     y = (vt::arange(n) % 10).astype(vt::i32).eval();
    const vt::Tensor kept = (perf::random_tensor<float>({n, 1024}, 21) > 0).astype(vt::f32).eval();
    const std::string name = "convnet/" + std::to_string(n);
    perf::row(name + "/each/vt", [=] { all(each(p, x, kept, y)); }, n, "Gexample/s");
    perf::row(name + "/mean/vt", [=] { all(mean(p, x, kept, y)); }, n, "Gexample/s");
    perf::row(name + "/logits/vt", [=] { forward(p, x, kept).eval(); }, n, "Gexample/s");
    if (n != 64) continue;
    std::vector<vt::Tensor> xs, ks, ys;
    for (int i = 0; i < n; ++i) {
      xs.push_back(x[i].eval());
      ks.push_back(kept[i].eval());
      ys.push_back(y[i].eval());
    }
    perf::row(
        name + "/each/loop",
        [=] {
          for (int i = 0; i < n; ++i) all(one(p, xs[i], ks[i], ys[i]));
        },
        n, "Gexample/s");
  }
}

/// Convolutions of 64 images with their share of what the machine can multiply and add.
void convolutions() {
  struct Layer {
    const char* name;
    vt::Shape x, filter;
    vt::ConvOptions options;
  };
  const std::vector<Layer> layers = {
      {"28x28x1*5x5x32", {64, 28, 28, 1}, {5, 5, 1, 32}, {.padding = "SAME"}},
      {"14x14x32*5x5x64", {64, 14, 14, 32}, {5, 5, 32, 64}, {.padding = "SAME"}},
      {"14x14x128*3x3x128", {64, 14, 14, 128}, {3, 3, 128, 128}, {.padding = "SAME"}},
      {"56x56x32*3x3x64/2", {8, 56, 56, 32}, {3, 3, 32, 64}, {.strides = {2}, .padding = "SAME"}},
      {"28x28x64*3x3 in 8 groups",
       {16, 28, 28, 64},
       {3, 3, 8, 64},
       {.padding = "SAME", .feature_group_count = 8}},
      {"28x28x64*3x3 in 64 groups",
       {16, 28, 28, 64},
       {3, 3, 1, 64},
       {.padding = "SAME", .feature_group_count = 64}},
  };
  for (const Layer& l : layers) {
    const vt::Tensor x = perf::random_tensor<float>(l.x, 1),
                     filter = perf::random_tensor<float>(l.filter, 2);
    const auto f = [o = l.options](const vt::Tensor& a, const vt::Tensor& b) {
      return vt::conv2d(a, b, o);
    };
    const vt::Tensor ct = vt::ones_like(f(x, filter)).eval();
    const double flops = 2.0 * static_cast<double>(ct.size()) *
                         static_cast<double>(l.filter.elements() / l.filter.back());
    const auto value = vt::jit(f);
    const auto to_x = vt::jit([=](const vt::Tensor& b, const vt::Tensor& ct) {
      return vt::grad([&](const vt::Tensor& a) { return vt::sum(f(a, b) * ct); })(vt::zeros(l.x));
    });
    const auto to_filter = vt::jit([=](const vt::Tensor& a, const vt::Tensor& ct) {
      return vt::grad([&](const vt::Tensor& b) { return vt::sum(f(a, b) * ct); })(
          vt::zeros(l.filter));
    });
    const std::string name = std::string("conv/") + l.name;
    perf::row(name + "/value/vt", [=] { value(x, filter).eval(); }, flops, "GFLOP/s");
    perf::row(name + "/by_x/vt", [=] { to_x(filter, ct).eval(); }, flops, "GFLOP/s");
    perf::row(name + "/by_filter/vt", [=] { to_filter(x, ct).eval(); }, flops, "GFLOP/s");
  }
}

void pools() {
  const vt::Tensor x = perf::random_tensor<float>({64, 28, 28, 32});
  const auto pooled = [](const vt::PoolOptions& o) {
    return [o](const vt::Tensor& t) { return vt::max_pool(t, o); };
  };
  const std::map<std::string, vt::PoolOptions> windows = {
      {"2x2", {.window = {2, 2}}},
      {"3x3/2", {.window = {3, 3}, .strides = {2}, .padding = "SAME"}}};
  for (const auto& [name, options] : windows) {
    const auto f = pooled(options);
    const auto value = vt::jit(f);
    const auto slope = vt::jit([f](const vt::Tensor& t) {
      return vt::grad([&](const vt::Tensor& u) { return vt::sum(vt::square(f(u))); })(t);
    });
    perf::row("max_pool/" + name + "/value/vt", [=] { value(x).eval(); });
    perf::row("max_pool/" + name + "/gradient/vt", [=] { slope(x).eval(); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  networks();
  convolutions();
  pools();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
