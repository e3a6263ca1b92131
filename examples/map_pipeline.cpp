// A pipeline of examples: shuffle, map a function written for one example, batch. The map runs on
// whole batches, compiled; here beside the same function called for one example after the other.
// Then a classifier is trained on what comes out.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include <vt/vt.hpp>

using vt::Tensor;

namespace {

/// One image, 8×8: brightness between 0 and 1, transposed a little, with its gradient's length as a
/// second channel.
std::pair<Tensor, Tensor> prepare(Tensor row) {
  const Tensor image = vt::reshape(row[vt::slice(0, 64)], {8, 8}) / 16.0f;
  const Tensor shifted = 0.75f * image + 0.25f * vt::roll(image, 1, 1);
  const Tensor dx = shifted - vt::roll(shifted, 1, 0), dy = shifted - vt::roll(shifted, 1, 1);
  const Tensor edges = vt::sqrt(dx * dx + dy * dy + 1e-6f);
  const Tensor both = vt::concatenate({vt::reshape(shifted, {64}), vt::reshape(edges, {64})});
  return std::pair((both - vt::mean(both)) / (vt::std(both) + 0.1f), row[64].astype(vt::i32));
}

/// The shortest of a few runs.
double seconds(const auto& f) {
  double best = 1e9;
  for (int run = 0; run < 7; ++run) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

int main(int count, char** arguments) try {
  const vt::Dataset rows(
      vt::load_csv(count > 1 ? arguments[1] : VT_EXAMPLE_DATA "/digits.csv", {.columns = 65}));
  const auto data = rows.map(prepare);
  const auto batches = data.shuffle(vt::random::key(1)).batch(256, {.drop_remainder = true});
  std::printf("%s\n\n", batches.str().c_str());

  const auto all = data.batch(rows.size());
  double sum = 0, by_loop = 0;
  const auto pass = [&] {
    for (const auto& [x, label] : all) sum = vt::sum(x).item<double>();
  };
  pass();  // traces and compiles
  const double fast = seconds(pass);
  // The same function, called for each row.
  const std::int64_t some = 200;
  const auto loop = [&] {
    by_loop = 0;
    for (const Tensor& row : rows.take(some)) by_loop += vt::sum(prepare(row).first).item<double>();
  };
  loop();
  const double slow = seconds(loop) / static_cast<double>(some) * static_cast<double>(rows.size());
  double same = 0;
  for (const auto& [x, label] : data.take(some).batch(some)) same = vt::sum(x).item<double>();
  std::printf("%lld examples: %.2f ms in batches, %.1f ms in a loop, %.0f times faster\n",
              static_cast<long long>(rows.size()), 1e3 * fast, 1e3 * slow, slow / fast);

  auto loss = [](Tensor w, Tensor x, Tensor label) {
    const Tensor logits = vt::matmul(x, w);
    return vt::mean(vt::logsumexp(logits, 1) - vt::sum(logits * vt::one_hot(label, 10), 1));
  };
  const auto step = vt::jit(
      [&](Tensor w, Tensor x, Tensor label) { return w - 0.5f * vt::grad(loss)(w, x, label); });
  Tensor w = vt::zeros({128, 10});
  for (const auto& [x, label] : batches.repeat(20).prefetch(2)) w = step(w, x, label).eval();
  double right = 0;
  for (const auto& [x, label] : all)
    right = vt::mean((vt::argmax(vt::matmul(x, w), 1) == label).astype(vt::f32)).item<double>();
  std::printf("a linear classifier on them: %.1f %% right\n", 100 * right);
  return std::abs(same - by_loop) < 1e-2 && slow > fast && right > 0.95 ? 0 : 1;
} catch (const vt::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 2;
}
