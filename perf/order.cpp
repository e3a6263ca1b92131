// Sorting against the standard library's, on the same numbers: values, orders of rows, the greatest
// few, the median.
#include "native_peer.hpp"
#include "support.hpp"

namespace {

constexpr std::int64_t million = 1'000'000, rows = 16, row = 100'000;

void values() {
  const vt::Tensor x = perf::random_tensor<float>({million}),
                   wide = perf::random_tensor<double>({million});
  const auto sort = vt::jit([](vt::Tensor x) { return vt::sort(x); });
  for (const int threads : {1, 2}) {
    const std::string on = "/threads:" + std::to_string(threads) + "/vt";
    perf::row_on(threads, "sort/f32/1000000" + on, [=] { sort(x).eval(); }, million, "G/s");
    perf::row_on(threads, "sort/f64/1000000" + on, [=] { sort(wide).eval(); }, million, "G/s");
  }
  auto out = std::make_shared<std::vector<float>>(million);
  auto wide_out = std::make_shared<std::vector<double>>(million);
  perf::row(
      "sort/f32/1000000/std", [=] { native::sort(x.data<float>().data(), out->data(), million); },
      million, "G/s");
  perf::row(
      "sort/f64/1000000/std",
      [=] { native::sort(wide.data<double>().data(), wide_out->data(), million); }, million, "G/s");
}

void orders() {
  const vt::Tensor x = perf::random_tensor<float>({rows, row}), columns = vt::transpose(x).eval();
  const auto along = [](int axis) {
    return vt::jit([axis](vt::Tensor x) { return vt::argsort(x, axis); });
  };
  const auto order = along(1), order0 = along(0);
  for (const int threads : {1, 2}) {
    const std::string on = "/threads:" + std::to_string(threads) + "/vt";
    perf::row_on(
        threads, "argsort/f32/16x100000" + on, [=] { order(x).eval(); }, rows * row, "G/s");
    perf::row_on(
        threads, "argsort/f32/100000x16/axis0" + on, [=] { order0(columns).eval(); }, rows * row,
        "G/s");
  }
  auto out = std::make_shared<std::vector<int>>(rows * row);
  perf::row(
      "argsort/f32/16x100000/std",
      [=] {
        for (std::int64_t r = 0; r < rows; ++r)
          native::argsort(x.data<float>().data() + r * row, out->data() + r * row, row);
      },
      rows * row, "G/s");
}

void some() {
  const vt::Tensor x = perf::random_tensor<float>({million}),
                   small = perf::random_tensor<float>({row, 10});
  const auto top = vt::jit([](vt::Tensor x) { return vt::top_k(x, 100); });
  const auto middle = vt::jit([](vt::Tensor x) { return vt::median(x); });
  const auto sort = vt::jit([](vt::Tensor x) { return vt::sort(x); });
  auto out = std::make_shared<std::vector<float>>(million);
  for (const int threads : {1, 2}) {
    const std::string on = "/threads:" + std::to_string(threads) + "/vt";
    perf::row_on(
        threads, "top_k/100/f32/1000000" + on, [=] { top(x).first.eval(); }, million, "G/s");
    perf::row_on(threads, "median/f32/1000000" + on, [=] { middle(x).eval(); }, million, "G/s");
    perf::row_on(threads, "sort/f32/100000x10" + on, [=] { sort(small).eval(); }, million, "G/s");
  }
  perf::row(
      "top_k/100/f32/1000000/std",
      [=] { native::greatest(x.data<float>().data(), out->data(), million, 100); }, million, "G/s");
  perf::row(
      "sort/f32/100000x10/std",
      [=] {
        for (std::int64_t r = 0; r < row; ++r)
          native::sort(small.data<float>().data() + r * 10, out->data() + r * 10, 10);
      },
      million, "G/s");
}

}  // namespace

int main(int argc, char** argv) {
  values();
  orders();
  some();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
