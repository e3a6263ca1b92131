// CUDA benchmarks of single kernels: bandwidth of copies and of fused kernels, softmax, layer norm,
// products.
#include "cuda_rows.hpp"
#include "src/jit/cuda/driver/device.hpp"

namespace perf {

namespace {

using vt::Tensor;

/// Numbers of the device that it makes itself: a billion bytes are not copied there.
Tensor filled(const vt::Shape& shape, vt::DType dtype, int seed) {
  return (vt::random::uniform(vt::random::key(seed).to(vt::cuda(0)), shape) * 2.0f - 1.0f)
      .astype(dtype)
      .eval();
}

void bandwidth_rows(CudaBenchmark& b) {
  namespace cuda = vt::detail::cuda;
  const std::int64_t n = b.size(std::int64_t{1} << 28, 1 << 10);  // 1 GiB of f32
  const double bytes = 4.0 * static_cast<double>(n);
  const cuda::CudaDevice& device = cuda::CudaDevice::get(0);
  if (b.wanted("copy/1GB")) {  // half of it read, half written
    const auto from = device.allocate(static_cast<std::size_t>(bytes / 2), "a copy"),
               to = device.allocate(static_cast<std::size_t>(bytes / 2), "a copy");
    b.device(
        "copy/1GB",
        [&] {
          device.copy(cuda::address(*to), cuda::address(*from),
                      static_cast<std::size_t>(bytes / 2));
        },
        bytes);
  }
  if (b.wanted("elementwise/1GB")) {
    const Tensor x = filled({n / 4}, vt::f32, 1), y = filled({n / 4}, vt::f32, 2);
    const auto f = vt::jit(
        [](Tensor x, Tensor y) { return std::pair(vt::tanh(x) * y + 0.5f, vt::exp(y) - x); });
    b.device("elementwise/1GB", [=] { f(x, y); }, bytes);
  }
  const std::int64_t side = b.size(16384, 32);
  const Tensor x = filled({side, side}, vt::f32, 3);
  const double square = 4.0 * static_cast<double>(side * side);
  const auto all = vt::jit([](Tensor x) { return vt::sum(x * x); });
  const auto rows = vt::jit([](Tensor x) { return vt::sum(vt::abs(x), 1); });
  const auto columns = vt::jit([](Tensor x) { return vt::max(x, 0); });
  b.device("reduce/all/1GB", [=] { all(x); }, square);
  b.device("reduce/rows/1GB", [=] { rows(x); }, square);
  b.device("reduce/columns/1GB", [=] { columns(x); }, square);
  const auto transposed = vt::jit([](Tensor x) { return vt::transpose(x) + 1.0f; });
  b.device("transpose/1GB", [=] { transposed(x); }, 2 * square);
}

void normalisation_rows(CudaBenchmark& b) {
  const std::int64_t rows = b.size(8192, 8), columns = b.size(4096, 40);
  const double bytes = 4.0 * static_cast<double>(rows * columns);
  const Tensor x = filled({rows, columns}, vt::f32, 4), up = filled({rows, columns}, vt::f32, 5);
  const Tensor scale = filled({columns}, vt::f32, 6), shift = filled({columns}, vt::f32, 7);
  const auto softmax = vt::jit([](Tensor x) { return vt::softmax(x, 1); });
  const auto softmax_back = vt::jit([](Tensor x, Tensor up) {
    return vt::vjp([](Tensor x) { return vt::softmax(x, 1); }, x).second(up);
  });
  const auto norm =
      vt::jit([](Tensor x, Tensor scale, Tensor shift) { return vt::layer_norm(x, scale, shift); });
  const auto norm_back = vt::jit([](Tensor x, Tensor scale, Tensor shift, Tensor up) {
    return vt::vjp(
               [](Tensor x, Tensor scale, Tensor shift) { return vt::layer_norm(x, scale, shift); },
               x, scale, shift)
        .second(up);
  });
  b.device("softmax/forward", [=] { softmax(x); }, 2 * bytes);
  b.device("softmax/backward", [=] { softmax_back(x, up); }, 3 * bytes);
  b.device("layer_norm/forward", [=] { norm(x, scale, shift); }, 2 * bytes);
  b.device("layer_norm/backward", [=] { norm_back(x, scale, shift, up); }, 3 * bytes);
}

void product_rows(CudaBenchmark& b) {
  const auto f = vt::jit([](Tensor x, Tensor y) { return vt::matmul(x, y); });
  const std::int64_t n = b.size(4096, 24);
  for (const vt::DType d : {vt::f32, vt::bf16}) {
    const std::string name = std::string("matmul/") + std::string(vt::name_of(d)) + "/4096";
    if (!b.wanted(name)) continue;
    const Tensor x = filled({n, n}, d, 8), y = filled({n, n}, d, 9);
    b.device(name, [=] { f(x, y); }, 0, 2.0 * static_cast<double>(n * n * n));
  }
  for (const std::int64_t k : {16, 32, 64}) {
    const std::string name = "batched_matmul/f32/" + std::to_string(k);
    if (!b.wanted(name)) continue;
    const std::int64_t batch = b.size((std::int64_t{1} << 26) / (k * k), 3);
    const Tensor x = filled({batch, k, k}, vt::f32, 10), y = filled({batch, k, k}, vt::f32, 11);
    b.device(
        name, [=] { f(x, y); }, 12.0 * static_cast<double>(batch * k * k),
        2.0 * static_cast<double>(batch * k * k * k));
  }
}

}  // namespace

void cuda_kernel_rows(CudaBenchmark& b) {
  bandwidth_rows(b);
  normalisation_rows(b);
  product_rows(b);
}

}  // namespace perf
