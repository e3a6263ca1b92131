// Products in tiles that a block keeps in shared memory, computed by the threads or on tensor
// cores.
#include <algorithm>

#include <vt/detail/message.hpp>

#include "product_writer.hpp"

namespace vt::detail::cuda::product_text {

// What a warp's threads hold of a product of 16 × 16 by 16 × 8 is told in the PTX manual
// (mma.m16n8k16).
constexpr const char* tensor_functions = R"cuda(
#ifdef VT_EMULATED
VT_FN u32 vt_two(const u16* p) { return (u32)p[0] | (u32)p[1] << 16; }
template <f32 (*value)(u16)> VT_FN void vt_multiply(f32* sum, const u32* x, const u32* y) {
  const int in_warp = threadIdx.x % 32;
  for (int step = 0; step < 4; ++step) {
    u32 a[4], b[4];
    for (int i = 0; i < 4; ++i) {
      a[i] = __shfl_sync(0xffffffffu, x[i], in_warp / 4 * 4 + step);
      b[i] = __shfl_sync(0xffffffffu, y[i / 2], (in_warp % 4 * 2 + i % 2) * 4 + step);
    }
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < 4; ++i)
        sum[i] = fmaf(value((u16)(a[i / 2 + k / 2 * 2] >> k % 2 * 16)),
                      value((u16)(b[i % 2 + k / 2 * 2] >> k % 2 * 16)), sum[i]);
  }
}
VT_FN void vt_multiply_f16(f32* sum, const u32* x, const u32* y) { vt_multiply<vt_f16>(sum, x, y); }
VT_FN void vt_multiply_bf16(f32* sum, const u32* x, const u32* y) {
  vt_multiply<vt_bf16>(sum, x, y);
}
#else
VT_FN u32 vt_two(const u16* p) { return *(const u32*)p; }
#define VT_MULTIPLY(type)                                                               \
  VT_FN void vt_multiply_##type(f32* sum, const u32* x, const u32* y) {                 \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #type "." #type               \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])               \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));   \
  }
VT_MULTIPLY(f16)
VT_MULTIPLY(bf16)
#endif
)cuda";

void ProductWriter::tiles() {
  AxisList rows = rows_, batch = batch_;
  for (std::size_t k = 0; k < s_.windows.size(); ++k) {
    const ConvWindow& w = s_.windows[k];
    const int window = static_cast<int>(k);
    const std::int64_t d = phased(window) ? w.lhs_dilation : 1;
    if (d > 1) batch.push_back({std::min(d, w.out), 0, 0, w.c, window});
    rows.push_back({(w.out + d - 1) / d, w.stride * w.a, 0, d * w.c, window});
  }
  sort_by(rows, &Axis::a);
  sort_by(columns_, &Axis::b);
  const AxisList depth = depth_axes();
  const std::int64_t m = iterations_of(rows), n = iterations_of(columns_), k = iterations_of(depth),
                     batches = iterations_of(batch);
  constexpr std::int64_t large = 128;
  const int own = size_of(s_.accumulate) <= 4 && m >= large && n >= large &&
                          batches * m * n >= 64 * large * large
                      ? 8
                      : 4;
  const int side = 16 * own, deep = (tensor_ ? 128 : 64) / own;
  const std::int64_t row_tiles = (m + side - 1) / side, column_tiles = (n + side - 1) / side,
                     tiles = batches * row_tiles * column_tiles;
  std::int64_t each = k;
  constexpr std::int64_t enough = 256, least = 256;  // blocks; steps of the sum for each
  if (tiles < enough / 2 && k >= 4 * least) {
    const std::int64_t parts = std::min((enough + tiles - 1) / tiles, k / least);
    each = ((k + parts - 1) / parts + deep - 1) / deep * deep;
    choose_parts((k + each - 1) / each);
  }
  p_.blocks = tiles * p_.parts;
  p_.way = formatted("tiles of {0} × {0}", side) + (tensor_ ? " on tensor cores" : "") +
           (p_.parts > 1 ? formatted(", sums in {} parts", p_.parts) : std::string());
  begin();
  if (tensor_) text_.insert(0, tensor_functions);
  const bool a_by_k = nearest(depth, &Axis::a) < nearest(rows, &Axis::a),
             b_by_k = nearest(depth, &Axis::b) < nearest(columns_, &Axis::b);
  const bool c_by_row = nearest(rows, &Axis::c) < nearest(columns_, &Axis::c);
  // The rows and columns of a tile whose results are a thread's, and each of these.
  std::string row_of = "i / 4 * 64 + tr + i % 4", column_of = "i / 4 * 64 + tc + i % 4",
              sum_of = "sum[i][j]";
  if (tensor_) {
    row_of = "tr + i / 2 * 16 + i % 2 * 8", column_of = "tc + i / 2 * 8 + i % 2",
    sum_of = "sum[i / 2][j / 2][i % 2 * 2 + j % 2]";
    line(formatted("__shared__ __align__(16) u16 as[{0}][{1}], bs[{0}][{1}];", side, deep + 8));
    line(formatted(
        "const int t = threadIdx.x, wr = t / 128 * {}, wc = t / 32 % 4 * {}, tr = wr + t % "
        "32 / 4, tc = wc + t % 4 * 2;",
        side / 2, side / 4));
  } else {
    line(formatted("__shared__ {0} as[{1}][{2}], bs[{1}][{2}];", sums_, deep, side + 4));
    line(formatted("const int t = threadIdx.x, tr = {} * 4, tc = {} * 4;",
                   c_by_row ? "t % 16" : "t / 16", c_by_row ? "t / 16" : "t % 16"));
  }
  line(formatted(
      "const idx column0 = (idx)(blockIdx.x % {0}) * {1}, row0 = (idx)(blockIdx.x / {0} % "
      "{2}) * {1};",
      column_tiles, side, row_tiles));
  line(formatted("const idx rest = (idx)(blockIdx.x / {}){};", column_tiles * row_tiles,
                 p_.parts > 1 ? formatted(" / {}", p_.parts) : std::string()));
  if (p_.parts > 1) {
    line(formatted("const idx part = (idx)(blockIdx.x / {} % {}), k_begin = part * {};",
                   column_tiles * row_tiles, p_.parts, each));
    line(formatted("const idx k_end = vt_min<idx>(k_begin + {}, {});", each, k));
  } else {
    line(formatted("const idx k_begin = 0, k_end = {};", k));
  }
  decode("rest", batch, "g");
  std::string b_start = formatted("(idx){}", s_.b_start);
  SmallVec<std::string, 3> phases;
  phases.resize(s_.windows.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const int w = batch[i].window;
    if (w < 0) continue;
    phases[w] = formatted("g{}", i);
    first_of_phase(w, formatted("g{}", i));
    b_start += formatted(" + (idx){} * first{}", s_.windows[w].b, w);
  }
  line(formatted("const idx first_a = {}, first_b = {}, first_c = {};",
                 offset("0", batch, "g", &Axis::a), offset(b_start, batch, "g", &Axis::b),
                 offset("0", batch, "g", &Axis::c)));
  operand_lines('a', a_by_k, side, deep, rows, m, phases);
  operand_lines('b', b_by_k, side, deep, columns_, n, phases);
  line(tensor_ ? formatted("f32 sum[{0}][{0}][4] = {{}};", own / 2)
               : formatted("{} sum[{}][{}] = {{}};", sums_, own, own));
  open(formatted("for (idx k0 = k_begin; k0 < k_end; k0 += {})", deep));
  fetch('a', a_by_k, side, deep, depth);
  fetch('b', b_by_k, side, deep, depth);
  line("__syncthreads();");
  if (tensor_) multiply_on_tensor_cores(deep, own / 2);
  else multiply(deep, own);
  line("__syncthreads();");
  close();
  // What each result's place is, by its row and by its column.
  line(formatted("idx row_at[{0}], column_at[{0}];", own));
  unrolled(formatted("for (int i = 0; i < {}; ++i)", own));
  line(formatted("const idx row = row0 + {}, column = column0 + {};", row_of, column_of));
  decode("row", rows, "r");
  decode("column", columns_, "s");
  std::string inside = formatted("row < {}", m);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].window >= 0 && phased(rows[i].window)) {
      const ConvWindow& w = s_.windows[rows[i].window];
      inside +=
          formatted(" && r{} * {} + {} < {}", i, w.lhs_dilation, phases[rows[i].window], w.out);
    }
  line(formatted("row_at[i] = {} ? {} : -1;", inside, offset("first_c", rows, "r", &Axis::c)));
  line(formatted("column_at[i] = column < {} ? {} : -1;", n, offset("0", columns_, "s", &Axis::c)));
  close();
  unrolled(formatted("for (int i = 0; i < {}; ++i)", own));
  text_ += "#pragma unroll\n";
  line(formatted("for (int j = 0; j < {}; ++j)", own));
  line("  if (row_at[i] >= 0 && column_at[j] >= 0) " + store("row_at[i]", "column_at[j]", sum_of));
  close();
  close();
  p_.source = std::move(text_);
}

void ProductWriter::multiply(int deep, int own) {
  unrolled(formatted("for (int k = 0; k < {}; ++k)", deep));
  line(formatted("{} x[{}], y[{}];", sums_, own, own));
  unrolled(formatted("for (int i = 0; i < {}; ++i)", own));
  line("x[i] = as[k][i / 4 * 64 + tr + i % 4];");
  line("y[i] = bs[k][i / 4 * 64 + tc + i % 4];");
  close();
  unrolled(formatted("for (int i = 0; i < {}; ++i)", own));
  text_ += "#pragma unroll\n";
  line(formatted("for (int j = 0; j < {}; ++j) sum[i][j] = {};", own,
                 multiply_add(s_.accumulate, "sum[i][j]", "x[i]", "y[j]")));
  close();
  close();
}

void ProductWriter::multiply_on_tensor_cores(int deep, int each) {
  unrolled(formatted("for (int k = 0; k < {}; k += 16)", deep));
  line(formatted("u32 x[{0}][4], y[{0}][2];", each));
  line("const int at = k + t % 4 * 2, beside = wc + t % 32 / 4;");
  unrolled(formatted("for (int i = 0; i < {}; ++i)", each));
  line("x[i][0] = vt_two(&as[tr + i * 16][at]), x[i][1] = vt_two(&as[tr + i * 16 + 8][at]);");
  line(
      "x[i][2] = vt_two(&as[tr + i * 16][at + 8]), x[i][3] = vt_two(&as[tr + i * 16 + 8][at + "
      "8]);");
  line("y[i][0] = vt_two(&bs[beside + i * 8][at]), y[i][1] = vt_two(&bs[beside + i * 8][at + 8]);");
  close();
  unrolled(formatted("for (int i = 0; i < {}; ++i)", each));
  text_ += "#pragma unroll\n";
  line(formatted("for (int j = 0; j < {}; ++j) vt_multiply_{}(sum[i][j], x[i], y[j]);", each,
                 name_of(s_.a_dtype)));
  close();
  close();
}

void ProductWriter::operand_lines(char which, bool by_k, int side, int deep, const AxisList& axes,
                                  std::int64_t extent, const SmallVec<std::string, 3>& phases) {
  const std::string start = which == 'a' ? "row0" : "column0";
  if (by_k) line(formatted("const int {0}k = t % {1}, {0}r = t / {1};", which, deep));
  else line(formatted("const int {0}k = t / {1}, {0}r = t % {1};", which, side));
  const int kept = by_k ? side * deep / threads : 1;
  line(formatted("idx {0}_at[{1}];", which, kept));
  line(formatted("bool {0}_in[{1}];", which, kept));
  if (which == 'a')
    for (std::size_t k = 0; k < s_.windows.size(); ++k) line(formatted("idx w{}[{}];", k, kept));
  unrolled(formatted("for (int i = 0; i < {}; ++i)", kept));
  line(formatted("const idx {0}row = {1} + {0}r + i * {2};", which, start, threads / deep));
  line(formatted("{0}_in[i] = {0}row < {1};", which, extent));
  decode(formatted("{}row", which), axes, "r");
  line(formatted(
      "{0}_at[i] = {1};", which,
      offset(formatted("first_{}", which), axes, "r", which == 'a' ? &Axis::a : &Axis::b)));
  for (std::size_t i = 0; which == 'a' && i < axes.size(); ++i)
    if (const int w = axes[i].window; w >= 0)
      line(formatted("w{}[i] = {};", w, first_place(w, formatted("r{}", i), phases[w])));
  close();
}

void ProductWriter::fetch(char which, bool by_k, int side, int deep, const AxisList& depth) {
  unrolled(formatted("for (int i = 0; i < {}; ++i)", side * deep / threads));
  const std::string k_step = by_k ? std::string() : formatted(" + i * {}", threads / side),
                    row_step = by_k ? formatted(" + i * {}", threads / deep) : "";
  const char* kept = by_k ? "i" : "0";
  line(formatted("const idx k = k0 + {}k{};", which, k_step));
  line(formatted("{} x = 0;", tensor_ ? "u16" : sums_));
  open(formatted("if ({}_in[{}] && k < k_end)", which, kept));
  decode("k", depth, "d");
  std::string inside, at = formatted("{}_at[{}]", which, kept);
  for (std::size_t i = 0; i < depth.size(); ++i) {
    const int w = depth[i].window;
    if (w < 0) continue;
    if (which == 'b') {
      if (!phased(w)) continue;
      const ConvWindow& window = s_.windows[w];
      inside += formatted("{}first{} + {} * d{} < {}", inside.empty() ? "" : " && ", w,
                          window.lhs_dilation, i, window.size);
      continue;
    }
    inside += (inside.empty() ? "" : " && ") +
              meet(w, formatted("w{}[{}]", w, kept), formatted("d{}", i));
    at += formatted(" + (idx){} * e{}", s_.windows[w].a, w);
  }
  const DType d = which == 'a' ? s_.a_dtype : s_.b_dtype;
  at = offset(at, depth, "d", which == 'a' ? &Axis::a : &Axis::b);
  const std::string place = formatted("{}, {}", which, at),
                    read = tensor_ ? "VT_LOAD(" + place + ")" : element(d, s_.accumulate, place);
  line((inside.empty() ? std::string() : "if (" + inside + ") ") + "x = " + read + ";");
  close();
  if (tensor_) line(formatted("{0}s[{0}r{2}][{0}k{1}] = x;", which, k_step, row_step));
  else line(formatted("{0}s[{0}k{1}][{0}r{2}] = x;", which, k_step, row_step));
  close();
}

}  // namespace vt::detail::cuda::product_text
