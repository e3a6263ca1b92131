// Matrix products as CUDA kernels.
#include "product_source.hpp"

#include <algorithm>

#include <vt/detail/message.hpp>

#include "element_source.hpp"

namespace vt::detail::cuda {

namespace product_text {

std::string multiply_add(DType d, const std::string& sum, const std::string& a, const std::string& b) {
  if (d == DType::f32) return worded("fmaf({}, {}, {})", a, b, sum);
  if (d == DType::f64) return worded("fma({}, {}, {})", a, b, sum);
  return worded("vt_add({}, vt_mul({}, {}))", sum, a, b);
}

// An operand's element as a number of the sums.
std::string element(DType memory, DType sums, const std::string& place) {
  return converted({from_memory(memory, "VT_LOAD(" + place + ")"), is_float(memory) && memory != DType::f64 ? DType::f32 : memory}, sums);
}

std::string result(const MatmulSpec& s, const std::string& sum) { return to_memory(s.result, converted({sum, s.accumulate}, s.result)); }

}  // namespace product_text

ProductSource product_source(const MatmulSpec& s) {
  using namespace product_text;
  ProductSource p;
  p.name = worded("kernel_product_{}", name_of(s.accumulate));
  const char* sums = register_type(s.accumulate);
  std::string text =
      worded("extern \"C\" __global__ void __launch_bounds__(256) {}(const {}* __restrict__ a, const {}* __restrict__ b, {}* __restrict__ c) {{\n",
             p.name, memory_type(s.a_dtype), memory_type(s.b_dtype), memory_type(s.result));
  p.threads = 256;
  const auto a_at = [&](const char* row, const char* k) {
    return worded("a, first_a + (i64)({}) * {}ll + (i64)({}) * {}ll", row, s.a_row, k, s.a_column);
  };
  const auto b_at = [&](const char* k, const char* column) {
    return worded("b, first_b + (i64)({}) * {}ll + (i64)({}) * {}ll", k, s.b_row, column, s.b_column);
  };
  constexpr std::int64_t tile = 64, depth = 16;
  if (s.m < 32 || s.n < 32 || s.k < 8) {
    const std::int64_t elements = s.batch * s.m * s.n;
    p.blocks = (elements + p.threads - 1) / p.threads;
    text += "  const i64 at = (i64)blockIdx.x * 256 + threadIdx.x;\n";
    text += worded("  if (at >= {}ll) return;\n", elements);
    text += worded("  const i64 column = at % {0}ll, row = at / {0}ll % {1}ll, batch = at / {2}ll;\n", s.n, s.m, s.m * s.n);
    text += worded("  const i64 first_a = batch * {}ll, first_b = batch * {}ll;\n", s.a_batch, s.b_batch);
    text += worded("  {} sum = 0;\n", sums);
    text += worded("#pragma unroll 4\n  for (i64 k = 0; k < {}ll; ++k)\n", s.k);
    text +=
        "    sum = " +
        multiply_add(s.accumulate, "sum", element(s.a_dtype, s.accumulate, a_at("row", "k")), element(s.b_dtype, s.accumulate, b_at("k", "column"))) +
        ";\n";
    text += "  VT_STORE(c, at, " + result(s, "sum") + ");\n}\n";
    p.source = std::move(text);
    return p;
  }
  // A block makes a tile of 64 × 64, a thread 4 × 4 of it; 16 steps of k at a time lie in shared memory. Threads read operands along the axis on
  // which they are dense, so that a warp reads whole lines.
  const std::int64_t rows = (s.m + tile - 1) / tile, columns = (s.n + tile - 1) / tile;
  p.blocks = s.batch * rows * columns;
  const bool a_by_k = s.a_column == 1, b_by_k = s.b_row == 1 && s.b_column != 1;
  text += worded("  __shared__ {0} as[{1}][{2}], bs[{1}][{2}];\n", sums, depth, tile + 4);
  text +=
      worded("  const i64 column0 = (i64)blockIdx.x % {0}ll * 64, row0 = (i64)blockIdx.x / {0}ll % {1}ll * 64, batch = (i64)blockIdx.x / {2}ll;\n",
             columns, rows, rows * columns);
  text += worded("  const i64 first_a = batch * {}ll, first_b = batch * {}ll;\n", s.a_batch, s.b_batch);
  text += "  const int t = threadIdx.x, tr = t / 16 * 4, tc = t % 16 * 4;\n";
  text += worded("  {} sum[4][4] = {{}};\n", sums);
  text += worded("  for (i64 k0 = 0; k0 < {}ll; k0 += {}) {{\n", s.k, depth);
  text += "#pragma unroll\n    for (int i = 0; i < 4; ++i) {\n      const int n = t + i * 256;\n";
  text += a_by_k ? "      const int ak = n % 16, ar = n / 16;\n" : "      const int ak = n / 64, ar = n % 64;\n";
  text += b_by_k ? "      const int bk = n % 16, bc = n / 16;\n" : "      const int bk = n / 64, bc = n % 64;\n";
  text += worded("      as[ak][ar] = row0 + ar < {}ll && k0 + ak < {}ll ? {} : ({})0;\n", s.m, s.k,
                 element(s.a_dtype, s.accumulate, a_at("row0 + ar", "k0 + ak")), sums);
  text += worded("      bs[bk][bc] = column0 + bc < {}ll && k0 + bk < {}ll ? {} : ({})0;\n", s.n, s.k,
                 element(s.b_dtype, s.accumulate, b_at("k0 + bk", "column0 + bc")), sums);
  text += "    }\n    __syncthreads();\n#pragma unroll\n";
  text += worded("    for (int k = 0; k < {}; ++k) {{\n", depth);
  text += worded("      {} x[4], y[4];\n", sums);
  text += "#pragma unroll\n      for (int i = 0; i < 4; ++i) { x[i] = as[k][tr + i]; y[i] = bs[k][tc + i]; }\n";
  text += "#pragma unroll\n      for (int i = 0; i < 4; ++i)\n#pragma unroll\n        for (int j = 0; j < 4; ++j) sum[i][j] = " +
          multiply_add(s.accumulate, "sum[i][j]", "x[i]", "y[j]") + ";\n";
  text += "    }\n    __syncthreads();\n  }\n";
  text += "#pragma unroll\n  for (int i = 0; i < 4; ++i)\n#pragma unroll\n    for (int j = 0; j < 4; ++j)\n";
  text += worded(
      "      if (row0 + tr + i < {0}ll && column0 + tc + j < {1}ll) VT_STORE(c, batch * {2}ll + (row0 + tr + i) * {1}ll + column0 + tc + j, {3});\n",
      s.m, s.n, s.m * s.n, result(s, "sum[i][j]"));
  text += "}\n";
  p.source = std::move(text);
  return p;
}

}  // namespace vt::detail::cuda
