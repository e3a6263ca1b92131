// Matrix products and convolutions as CUDA kernels: c = Σ a · b over axes of four kinds (batch, rows, columns, depth), any of which may be images'.
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

constexpr int threads = 256;

// What a warp's lanes hold of a product of 16 × 16 by 16 × 8 is told in the PTX manual (mma.m16n8k16).
constexpr const char* tensor_functions = R"cuda(
#ifdef VT_EMULATED
VT_FN u32 vt_two(const u16* p) { return (u32)p[0] | (u32)p[1] << 16; }
template <f32 (*value)(u16)> VT_FN void vt_multiply(f32* sum, const u32* x, const u32* y) {
  const int lane = threadIdx.x % 32;
  for (int step = 0; step < 4; ++step) {
    u32 a[4], b[4];
    for (int i = 0; i < 4; ++i) {
      a[i] = __shfl_sync(0xffffffffu, x[i], lane / 4 * 4 + step);
      b[i] = __shfl_sync(0xffffffffu, y[i / 2], (lane % 4 * 2 + i % 2) * 4 + step);
    }
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < 4; ++i)
        sum[i] = fmaf(value((u16)(a[i / 2 + k / 2 * 2] >> k % 2 * 16)), value((u16)(b[i % 2 + k / 2 * 2] >> k % 2 * 16)), sum[i]);
  }
}
VT_FN void vt_multiply_f16(f32* sum, const u32* x, const u32* y) { vt_multiply<vt_f16>(sum, x, y); }
VT_FN void vt_multiply_bf16(f32* sum, const u32* x, const u32* y) { vt_multiply<vt_bf16>(sum, x, y); }
#else
VT_FN u32 vt_two(const u16* p) { return *(const u32*)p; }
#define VT_MULTIPLY(type)                                                                                                              \
  VT_FN void vt_multiply_##type(f32* sum, const u32* x, const u32* y) {                                                                \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #type "." #type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                                              \
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));                                                  \
  }
VT_MULTIPLY(f16)
VT_MULTIPLY(bf16)
#endif
)cuda";

/// An axis with its distances; `window` ≥ 0: it counts that window's results (of c) or its places (of depth).
struct Axis {
  std::int64_t extent, a, b, c;
  int window = -1;
};
using AxisList = SmallVec<Axis, 8>;

std::int64_t rounds_of(const AxisList& axes) {
  std::int64_t n = 1;
  for (const Axis& x : axes) n *= x.extent;
  return n;
}
std::int64_t nearest(const AxisList& axes, std::int64_t Axis::* distance) {
  std::int64_t least = std::int64_t{1} << 62;
  for (const Axis& x : axes)
    if (x.extent > 1 && x.*distance != 0) least = std::min(least, x.*distance < 0 ? -(x.*distance) : x.*distance);
  return least;
}
void sort_by(AxisList& axes, std::int64_t Axis::* distance) {
  std::stable_sort(axes.begin(), axes.end(), [&](const Axis& x, const Axis& y) { return x.*distance > y.*distance; });
}

class ProductWriter {
 public:
  ProductWriter(const ConvSpec& spec, bool tensor_cores) : s_(spec) {
    tensor_ = tensor_cores && s_.a_dtype == s_.b_dtype && size_of(s_.a_dtype) == 2 && is_float(s_.a_dtype) && s_.accumulate == DType::f32;
    const auto add = [](AxisList& list, const ConvAxes& axes) {
      for (const ConvAxis& x : axes)
        if (x.extent != 1) list.push_back({x.extent, x.a, x.b, x.c});
    };
    for (const ConvAxes* axes : {&s_.outer_batch, &s_.inner_batch}) add(batch_, *axes);
    for (const ConvAxes* axes : {&s_.outer_free, &s_.inner_free}) add(rows_, *axes);
    add(columns_, s_.b_free);
    if (s_.columns.extent != 1) (s_.columns.a != 0 ? batch_ : columns_).push_back({s_.columns.extent, s_.columns.a, s_.columns.b, s_.columns.c});
    for (const ConvAxes* axes : {&s_.outer_contract, &s_.inner_contract}) add(depth_, *axes);
    results_ = s_.results();
    depth_count_ = rounds_of(depth_);
    std::int64_t last_a = 0, last_b = 0;  // as far as offsets go
    for (const AxisList* axes : {&batch_, &rows_, &columns_, &depth_})
      for (const Axis& x : *axes) last_a += (x.extent - 1) * std::abs(x.a), last_b += (x.extent - 1) * std::abs(x.b);
    for (const ConvWindow& w : s_.windows) {
      last_a += (w.extent + (w.out + w.size) * w.stride * w.rhs_dilation) * std::abs(w.a), last_b += w.size * std::abs(w.b);
      depth_count_ *= w.size;
    }
    wide_ = std::max({last_a, last_b, results_, depth_count_}) >= (std::int64_t{1} << 31) - 4096;
    sums_ = register_type(s_.accumulate);
  }

  ProductSource write() {
    std::int64_t rows = rounds_of(rows_);
    for (const ConvWindow& w : s_.windows) rows *= w.out;
    const std::int64_t columns = rounds_of(columns_);
    p_.name = worded("kernel_{}_{}", s_.windows.empty() ? "product" : "convolution", name_of(s_.accumulate));
    p_.threads = threads;
    // Fewer would leave most of a tile's threads idle.
    constexpr std::int64_t many = 32, some = 12;
    const bool tiled = depth_count_ >= 8 && std::min(rows, columns) >= some && std::max(rows, columns) >= many;
    if (results_ == 0) return p_;
    if (tiled) tiles();
    else elements();
    if (p_.parts > 1) join();
    return std::move(p_);
  }

 private:
  void line(const std::string& s) { text_.append(static_cast<std::size_t>(indent_) * 2, ' ').append(s) += '\n'; }
  void open(const std::string& s) {
    line(s + " {");
    ++indent_;
  }
  void close() {
    --indent_;
    line("}");
  }
  void unrolled(const std::string& s) {
    text_ += "#pragma unroll\n";
    open(s);
  }

  // A stretched image is taken phase by phase: results between two elements see places of the filter that no other phase sees, and all others
  // meet zeros. With steps or gaps in the filter as well, places are asked one by one whether they meet an element.
  bool stretched(int window) const { return s_.windows[static_cast<std::size_t>(window)].lhs_dilation > 1; }
  bool phased(int window) const {
    const ConvWindow& w = s_.windows[static_cast<std::size_t>(window)];
    return w.lhs_dilation > 1 && w.stride == 1 && w.rhs_dilation == 1;
  }
  std::int64_t places(int window) const {
    const ConvWindow& w = s_.windows[static_cast<std::size_t>(window)];
    return phased(window) ? (w.size + w.lhs_dilation - 1) / w.lhs_dilation : w.size;
  }
  AxisList depth_axes() const {
    AxisList axes = depth_;
    for (std::size_t k = 0; k < s_.windows.size(); ++k) {
      const ConvWindow& w = s_.windows[k];
      const std::int64_t step = phased(static_cast<int>(k)) ? w.lhs_dilation : 1;
      axes.push_back({places(static_cast<int>(k)), w.rhs_dilation * w.a, step * w.b, 0, static_cast<int>(k)});
    }
    sort_by(axes, &Axis::a);
    return axes;
  }

  void begin(const std::string& written) {
    text_ = worded("typedef {} idx;\n", wide_ ? "i64" : "i32");
    text_ +=
        worded("extern \"C\" __global__ void __launch_bounds__({}) {}(const {}* __restrict__ a, const {}* __restrict__ b, {}* __restrict__ c) {{\n",
               threads, p_.name, memory_type(s_.a_dtype), memory_type(s_.b_dtype), written);
    indent_ = 1;
  }
  void choose_parts(std::int64_t parts) {
    p_.parts = std::max<std::int64_t>(parts, 1);
    if (p_.parts > 1) p_.parts_bytes = p_.parts * results_ * static_cast<std::int64_t>(size_of(s_.accumulate));
  }
  std::string written() const { return p_.parts > 1 ? sums_ : memory_type(s_.result); }
  std::string result(const std::string& sum) const { return p_.parts > 1 ? sum : to_memory(s_.result, converted({sum, s_.accumulate}, s_.result)); }

  /// Numbers `prefix`0 … of all axes from a number of all their rounds, the last axis the fastest.
  void decode(const std::string& of, const AxisList& axes, const std::string& prefix) {
    std::string rest = of;
    for (std::size_t i = axes.size(); i-- > 0;) {
      if (i == 0) {
        line(worded("const idx {}0 = {};", prefix, rest));
        break;
      }
      const std::string next = worded("{}_{}", prefix, i);
      line(worded("const idx {}{} = {} % {}, {} = {} / {};", prefix, i, rest, axes[i].extent, next, rest, axes[i].extent));
      rest = next;
    }
  }
  static std::string offset(const std::string& start, const AxisList& axes, const std::string& prefix, std::int64_t Axis::* distance) {
    std::string text = start;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      // A window's places say where they are in a by their elements.
      if (axes[i].*distance == 0 || (axes[i].window >= 0 && distance == &Axis::a)) continue;
      text += worded(" + (idx){} * {}{}", axes[i].*distance, prefix, i);
    }
    return text;
  }
  /// Where the window's first place stands, of result `o`; of a phase: of result `o` of phase `phase`.
  std::string first_place(int window, const std::string& o, const std::string& phase) const {
    const ConvWindow& w = s_.windows[static_cast<std::size_t>(window)];
    if (phased(window)) return worded("{} + ({} + first{} - (idx){}) / {}", o, phase, window, w.low, w.lhs_dilation);
    return worded("(idx){} * {} - (idx){}", w.stride, o, w.low);
  }
  /// Declares the element e`window` of the image that place `p` meets, and returns on what it depends that there is one.
  std::string meet(int window, const std::string& first, const std::string& p) {
    const ConvWindow& w = s_.windows[static_cast<std::size_t>(window)];
    const bool asked = stretched(window) && !phased(window);
    const std::string at = worded("{} + (idx){} * {}", first, phased(window) ? 1 : w.rhs_dilation, p);
    line(worded("const idx e{} = {};", window, asked ? worded("vt_floor_div<idx>({}, {})", at, w.lhs_dilation) : at));
    std::string met = worded("e{0} >= 0 && e{0} < {1}", window, w.extent);
    if (asked) met += worded(" && {} == e{} * {}", at, window, w.lhs_dilation);
    if (phased(window)) met += worded(" && first{} + {} * {} < {}", window, w.lhs_dilation, p, w.size);
    return met;
  }
  void first_of_phase(int window, const std::string& phase) {
    const ConvWindow& w = s_.windows[static_cast<std::size_t>(window)];
    line(worded("const idx first{} = vt_floor_mod<idx>((idx){} - {}, {});", window, w.low, phase, w.lhs_dilation));
  }

  // An element of c per thread (and part of the sum).
  void elements() {
    AxisList c = batch_;
    c.append(rows_.begin(), rows_.end());
    c.append(columns_.begin(), columns_.end());
    for (std::size_t k = 0; k < s_.windows.size(); ++k) c.push_back({s_.windows[k].out, 0, 0, s_.windows[k].c, static_cast<int>(k)});
    sort_by(c, &Axis::c);
    const AxisList depth = depth_axes();
    std::size_t longest = 0;
    for (std::size_t i = 1; i < depth.size(); ++i)
      if (depth[i].extent > depth[longest].extent) longest = i;
    std::int64_t each = 0;
    constexpr std::int64_t enough = 1 << 16, least = 128;  // threads; products for each
    if (!depth.empty() && results_ < enough / 4 && depth_count_ >= 4 * least) {
      const std::int64_t extent = depth[longest].extent;
      const std::int64_t parts = std::min({(enough + results_ - 1) / results_, depth_count_ / least, extent});
      each = (extent + parts - 1) / parts;
      choose_parts((extent + each - 1) / each);
    }
    const std::int64_t total = results_ * p_.parts;
    p_.blocks = (total + threads - 1) / threads;
    p_.way = p_.parts > 1 ? worded("an element and one of {} parts of its sum per thread", p_.parts) : std::string("an element per thread");
    begin(written());
    line(worded("const i64 round = (i64)blockIdx.x * {} + threadIdx.x;", threads));
    line(worded("if (round >= {}ll) return;", total));
    line(p_.parts > 1 ? worded("const idx at = (idx)(round % {0}ll), part = (idx)(round / {0}ll);", results_)
                      : std::string("const idx at = (idx)round;"));
    decode("at", c, "x");
    for (std::size_t i = 0; i < c.size(); ++i) {
      const int w = c[i].window;
      if (w < 0) continue;
      const std::string o = worded("x{}", i);
      std::string phase, of_phase = o;
      if (phased(w)) {
        const std::int64_t d = s_.windows[static_cast<std::size_t>(w)].lhs_dilation;
        phase = worded("{} % {}", o, d), of_phase = worded("{} / {}", o, d);
        first_of_phase(w, phase);
      }
      line(worded("const idx w{} = {};", w, first_place(w, of_phase, phase)));
    }
    std::string b_start = worded("(idx){}", s_.b_start);
    for (std::size_t k = 0; k < s_.windows.size(); ++k)
      if (phased(static_cast<int>(k))) b_start += worded(" + (idx){} * first{}", s_.windows[k].b, k);
    line(worded("const idx first_a = {}, first_b = {};", offset("0", c, "x", &Axis::a), offset(b_start, c, "x", &Axis::b)));
    line(worded("{} sum = 0;", sums_));
    std::string a_at = "first_a";
    for (std::size_t i = 0; i < depth.size(); ++i) {
      if (i == longest && p_.parts > 1)
        open(worded("for (idx d{0} = part * {1}; d{0} < vt_min<idx>(part * {1} + {1}, {2}); ++d{0})", i, each, depth[i].extent));
      else open(worded("for (idx d{0} = 0; d{0} < {1}; ++d{0})", i, depth[i].extent));
      const int w = depth[i].window;
      if (w < 0) continue;
      line(worded("if (!({})) continue;", meet(w, worded("w{}", w), worded("d{}", i))));
      a_at += worded(" + (idx){} * e{}", s_.windows[static_cast<std::size_t>(w)].a, w);
    }
    a_at = offset(a_at, depth, "d", &Axis::a);
    line("sum = " +
         multiply_add(s_.accumulate, "sum", element(s_.a_dtype, s_.accumulate, "a, " + a_at),
                      element(s_.b_dtype, s_.accumulate, "b, " + offset("first_b", depth, "d", &Axis::b))) +
         ";");
    for (std::size_t i = 0; i < depth.size(); ++i) close();
    line(worded("VT_STORE(c, round, {});", result("sum")));
    close();
    p_.source = std::move(text_);
  }

  // A block makes a tile of `side` × `side`, a thread `own` × `own` of it; `deep` steps of the sum at a time lie in shared memory. Threads read an
  // operand along the axis on which it is dense, so that a warp reads whole lines.
  void tiles() {
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
    const std::int64_t m = rounds_of(rows), n = rounds_of(columns_), k = rounds_of(depth), batches = rounds_of(batch);
    constexpr std::int64_t large = 128;
    const int own = size_of(s_.accumulate) <= 4 && m >= large && n >= large && batches * m * n >= 64 * large * large ? 8 : 4;
    const int side = 16 * own, deep = (tensor_ ? 128 : 64) / own;
    const std::int64_t row_tiles = (m + side - 1) / side, column_tiles = (n + side - 1) / side, tiles = batches * row_tiles * column_tiles;
    std::int64_t each = k;
    constexpr std::int64_t enough = 256, least = 256;  // blocks; steps of the sum for each
    if (tiles < enough / 2 && k >= 4 * least) {
      const std::int64_t parts = std::min((enough + tiles - 1) / tiles, k / least);
      each = ((k + parts - 1) / parts + deep - 1) / deep * deep;
      choose_parts((k + each - 1) / each);
    }
    p_.blocks = tiles * p_.parts;
    p_.way = worded("tiles of {0} × {0}", side) + (tensor_ ? " on tensor cores" : "") +
             (p_.parts > 1 ? worded(", sums in {} parts", p_.parts) : std::string());
    begin(written());
    if (tensor_) text_.insert(0, tensor_functions);
    const bool a_by_k = nearest(depth, &Axis::a) < nearest(rows, &Axis::a), b_by_k = nearest(depth, &Axis::b) < nearest(columns_, &Axis::b);
    const bool c_by_row = nearest(rows, &Axis::c) < nearest(columns_, &Axis::c);
    // The rows and columns of a tile whose results are a thread's, and each of these.
    std::string row_of = "i / 4 * 64 + tr + i % 4", column_of = "i / 4 * 64 + tc + i % 4", sum_of = "sum[i][j]";
    if (tensor_) {
      row_of = "tr + i / 2 * 16 + i % 2 * 8", column_of = "tc + i / 2 * 8 + i % 2", sum_of = "sum[i / 2][j / 2][i % 2 * 2 + j % 2]";
      line(worded("__shared__ __align__(16) u16 as[{0}][{1}], bs[{0}][{1}];", side, deep + 8));
      line(worded("const int t = threadIdx.x, wr = t / 128 * {}, wc = t / 32 % 4 * {}, tr = wr + t % 32 / 4, tc = wc + t % 4 * 2;", side / 2,
                  side / 4));
    } else {
      line(worded("__shared__ {0} as[{1}][{2}], bs[{1}][{2}];", sums_, deep, side + 4));
      line(worded("const int t = threadIdx.x, tr = {} * 4, tc = {} * 4;", c_by_row ? "t % 16" : "t / 16", c_by_row ? "t / 16" : "t % 16"));
    }
    line(worded("const idx column0 = (idx)(blockIdx.x % {0}) * {1}, row0 = (idx)(blockIdx.x / {0} % {2}) * {1};", column_tiles, side, row_tiles));
    line(worded("const idx rest = (idx)(blockIdx.x / {}){};", column_tiles * row_tiles, p_.parts > 1 ? worded(" / {}", p_.parts) : std::string()));
    if (p_.parts > 1) {
      line(worded("const idx part = (idx)(blockIdx.x / {} % {}), k_begin = part * {};", column_tiles * row_tiles, p_.parts, each));
      line(worded("const idx k_end = vt_min<idx>(k_begin + {}, {});", each, k));
    } else {
      line(worded("const idx k_begin = 0, k_end = {};", k));
    }
    decode("rest", batch, "g");
    std::string b_start = worded("(idx){}", s_.b_start);
    SmallVec<std::string, 3> phases;
    phases.resize(s_.windows.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const int w = batch[i].window;
      if (w < 0) continue;
      phases[static_cast<std::size_t>(w)] = worded("g{}", i);
      first_of_phase(w, worded("g{}", i));
      b_start += worded(" + (idx){} * first{}", s_.windows[static_cast<std::size_t>(w)].b, w);
    }
    line(worded("const idx first_a = {}, first_b = {}, first_c = {};", offset("0", batch, "g", &Axis::a), offset(b_start, batch, "g", &Axis::b),
                offset("0", batch, "g", &Axis::c)));
    operand_lines('a', a_by_k, side, deep, rows, m, phases);
    operand_lines('b', b_by_k, side, deep, columns_, n, phases);
    line(tensor_ ? worded("f32 sum[{0}][{0}][4] = {{}};", own / 2) : worded("{} sum[{}][{}] = {{}};", sums_, own, own));
    open(worded("for (idx k0 = k_begin; k0 < k_end; k0 += {})", deep));
    fetch('a', a_by_k, side, deep, depth);
    fetch('b', b_by_k, side, deep, depth);
    line("__syncthreads();");
    if (tensor_) multiply_on_tensor_cores(deep, own / 2);
    else multiply(deep, own);
    line("__syncthreads();");
    close();
    // What each result's place is, by its row and by its column.
    line(worded("idx row_at[{0}], column_at[{0}];", own));
    unrolled(worded("for (int i = 0; i < {}; ++i)", own));
    line(worded("const idx row = row0 + {}, column = column0 + {};", row_of, column_of));
    decode("row", rows, "r");
    decode("column", columns_, "s");
    std::string inside = worded("row < {}", m);
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].window >= 0 && phased(rows[i].window)) {
        const ConvWindow& w = s_.windows[static_cast<std::size_t>(rows[i].window)];
        inside += worded(" && r{} * {} + {} < {}", i, w.lhs_dilation, phases[static_cast<std::size_t>(rows[i].window)], w.out);
      }
    line(worded("row_at[i] = {} ? {} : -1;", inside, offset("first_c", rows, "r", &Axis::c)));
    line(worded("column_at[i] = column < {} ? {} : -1;", n, offset("0", columns_, "s", &Axis::c)));
    close();
    unrolled(worded("for (int i = 0; i < {}; ++i)", own));
    text_ += "#pragma unroll\n";
    line(worded("for (int j = 0; j < {}; ++j)", own));
    line(worded("  if (row_at[i] >= 0 && column_at[j] >= 0) VT_STORE(c, {}row_at[i] + column_at[j], {});",
                p_.parts > 1 ? worded("(i64)part * {}ll + ", results_) : std::string(), result(sum_of)));
    close();
    close();
    p_.source = std::move(text_);
  }

  void multiply(int deep, int own) {
    unrolled(worded("for (int k = 0; k < {}; ++k)", deep));
    line(worded("{} x[{}], y[{}];", sums_, own, own));
    unrolled(worded("for (int i = 0; i < {}; ++i)", own));
    line("x[i] = as[k][i / 4 * 64 + tr + i % 4];");
    line("y[i] = bs[k][i / 4 * 64 + tc + i % 4];");
    close();
    unrolled(worded("for (int i = 0; i < {}; ++i)", own));
    text_ += "#pragma unroll\n";
    line(worded("for (int j = 0; j < {}; ++j) sum[i][j] = {};", own, multiply_add(s_.accumulate, "sum[i][j]", "x[i]", "y[j]")));
    close();
    close();
  }
  // A warp has `each` × `each` products of 16 × 16 by 16 × 8.
  void multiply_on_tensor_cores(int deep, int each) {
    unrolled(worded("for (int k = 0; k < {}; k += 16)", deep));
    line(worded("u32 x[{0}][4], y[{0}][2];", each));
    line("const int at = k + t % 4 * 2, beside = wc + t % 32 / 4;");
    unrolled(worded("for (int i = 0; i < {}; ++i)", each));
    line("x[i][0] = vt_two(&as[tr + i * 16][at]), x[i][1] = vt_two(&as[tr + i * 16 + 8][at]);");
    line("x[i][2] = vt_two(&as[tr + i * 16][at + 8]), x[i][3] = vt_two(&as[tr + i * 16 + 8][at + 8]);");
    line("y[i][0] = vt_two(&bs[beside + i * 8][at]), y[i][1] = vt_two(&bs[beside + i * 8][at + 8]);");
    close();
    unrolled(worded("for (int i = 0; i < {}; ++i)", each));
    text_ += "#pragma unroll\n";
    line(worded("for (int j = 0; j < {}; ++j) vt_multiply_{}(sum[i][j], x[i], y[j]);", each, name_of(s_.a_dtype)));
    close();
    close();
  }

  // What a thread reads of an operand, four numbers (eight of 16 bits) for each round: always the same rows (of b: columns), or the same places of
  // the depth.
  void operand_lines(char which, bool by_k, int side, int deep, const AxisList& axes, std::int64_t extent, const SmallVec<std::string, 3>& phases) {
    const std::string start = which == 'a' ? "row0" : "column0";
    if (by_k) line(worded("const int {0}k = t % {1}, {0}r = t / {1};", which, deep));
    else line(worded("const int {0}k = t / {1}, {0}r = t % {1};", which, side));
    const int kept = by_k ? side * deep / threads : 1;
    line(worded("idx {0}_at[{1}];", which, kept));
    line(worded("bool {0}_in[{1}];", which, kept));
    if (which == 'a')
      for (std::size_t k = 0; k < s_.windows.size(); ++k) line(worded("idx w{}[{}];", k, kept));
    unrolled(worded("for (int i = 0; i < {}; ++i)", kept));
    line(worded("const idx {0}row = {1} + {0}r + i * {2};", which, start, threads / deep));
    line(worded("{0}_in[i] = {0}row < {1};", which, extent));
    decode(worded("{}row", which), axes, "r");
    line(worded("{0}_at[i] = {1};", which, offset(worded("first_{}", which), axes, "r", which == 'a' ? &Axis::a : &Axis::b)));
    for (std::size_t i = 0; which == 'a' && i < axes.size(); ++i)
      if (const int w = axes[i].window; w >= 0)
        line(worded("w{}[i] = {};", w, first_place(w, worded("r{}", i), phases[static_cast<std::size_t>(w)])));
    close();
  }
  void fetch(char which, bool by_k, int side, int deep, const AxisList& depth) {
    unrolled(worded("for (int i = 0; i < {}; ++i)", side * deep / threads));
    const std::string k_step = by_k ? std::string() : worded(" + i * {}", threads / side), row_step = by_k ? worded(" + i * {}", threads / deep) : "";
    const char* kept = by_k ? "i" : "0";
    line(worded("const idx k = k0 + {}k{};", which, k_step));
    line(worded("{} x = 0;", tensor_ ? "u16" : sums_));
    open(worded("if ({}_in[{}] && k < k_end)", which, kept));
    decode("k", depth, "d");
    std::string inside, at = worded("{}_at[{}]", which, kept);
    for (std::size_t i = 0; i < depth.size(); ++i) {
      const int w = depth[i].window;
      if (w < 0) continue;
      if (which == 'b') {
        if (!phased(w)) continue;
        const ConvWindow& window = s_.windows[static_cast<std::size_t>(w)];
        inside += worded("{}first{} + {} * d{} < {}", inside.empty() ? "" : " && ", w, window.lhs_dilation, i, window.size);
        continue;
      }
      inside += (inside.empty() ? "" : " && ") + meet(w, worded("w{}[{}]", w, kept), worded("d{}", i));
      at += worded(" + (idx){} * e{}", s_.windows[static_cast<std::size_t>(w)].a, w);
    }
    const DType d = which == 'a' ? s_.a_dtype : s_.b_dtype;
    at = offset(at, depth, "d", which == 'a' ? &Axis::a : &Axis::b);
    const std::string place = worded("{}, {}", which, at), read = tensor_ ? "VT_LOAD(" + place + ")" : element(d, s_.accumulate, place);
    line((inside.empty() ? std::string() : "if (" + inside + ") ") + "x = " + read + ";");
    close();
    if (tensor_) line(worded("{0}s[{0}r{2}][{0}k{1}] = x;", which, k_step, row_step));
    else line(worded("{0}s[{0}k{1}][{0}r{2}] = x;", which, k_step, row_step));
    close();
  }

  // The parts of each element's sum, the first one first.
  void join() {
    p_.join_name = p_.name + "_parts";
    p_.join_blocks = (results_ + threads - 1) / threads;
    text_ = worded("extern \"C\" __global__ void __launch_bounds__({}) {}(const {}* __restrict__ parts, {}* __restrict__ c) {{\n", threads,
                   p_.join_name, sums_, memory_type(s_.result));
    indent_ = 1;
    line(worded("const i64 at = (i64)blockIdx.x * {} + threadIdx.x;", threads));
    line(worded("if (at >= {}ll) return;", results_));
    line(worded("{} sum = VT_LOAD(parts, at);", sums_));
    line(worded("for (i64 part = 1; part < {}; ++part) sum = vt_add(sum, VT_LOAD(parts, part * {}ll + at));", p_.parts, results_));
    line(worded("VT_STORE(c, at, {});", to_memory(s_.result, converted({"sum", s_.accumulate}, s_.result))));
    close();
    p_.join_source = std::move(text_);
  }

  ConvSpec s_;
  AxisList batch_, rows_, columns_, depth_;  // but for windows
  std::int64_t results_ = 0, depth_count_ = 0;
  bool wide_ = false, tensor_ = false;
  const char* sums_ = nullptr;
  ProductSource p_;
  std::string text_;
  int indent_ = 0;
};

}  // namespace product_text

ProductSource product_source(const ConvSpec& s, bool tensor_cores) { return product_text::ProductWriter(s, tensor_cores).write(); }

ProductSource product_source(const MatmulSpec& m, bool tensor_cores) {
  ConvSpec s;
  s.a_dtype = m.a_dtype, s.b_dtype = m.b_dtype, s.accumulate = m.accumulate, s.result = m.result;
  s.outer_batch.push_back({m.batch, m.a_batch, m.b_batch, m.m * m.n});
  s.outer_free.push_back({m.m, m.a_row, 0, m.n});
  s.outer_contract.push_back({m.k, m.a_column, m.b_row, 0});
  s.b_free.push_back({m.n, 0, m.b_column, 1});
  return product_source(s, tensor_cores);
}

}  // namespace vt::detail::cuda
