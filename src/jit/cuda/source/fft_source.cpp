// Fourier transforms as CUDA kernels: the passes of a transform, and their text.
#include "fft_source.hpp"

#include <algorithm>
#include <cmath>

#include <vt/detail/message.hpp>

#include "element_source.hpp"

namespace vt::detail::cuda {

namespace fft_writing {

/// complex: pairs; real: numbers; half: the pairs of a spectrum that real numbers have up to the
/// middle, as the others are their conjugates.
enum class Kind : std::uint8_t { complex, real, half };

/// Rows of `n` elements: of row (o, m, i) the element j is that of place j · step + m · between of
/// an array [outer, length, inner].
struct Pass {
  std::int64_t n = 1, outer = 1, middle = 1, inner = 1;
  std::int64_t length = 1;  ///< of the whole transform, of which this may be a step
  std::int64_t from_step = 1, from_between = 0, to_step = 1, to_between = 0;
  Kind from = Kind::complex, to = Kind::complex;
  /// transposed: element k of row m by the root of k · m (the first of two steps)
  bool backward = false, transposed = false;
  double scale = 1;
};

constexpr std::int64_t shared = 64 << 10;  // bytes, of the least that there is

SmallVec<std::int64_t, 12> factors_of(std::int64_t n) {
  SmallVec<std::int64_t, 12> factors;
  for (; n % 4 == 0; n /= 4) factors.push_back(4);
  for (std::int64_t f = 2; n > 1; ++f)
    for (; n % f == 0; n /= f) factors.push_back(f);
  return factors;
}
std::int64_t stored(const Pass& p, Kind k) { return k == Kind::half ? p.length / 2 + 1 : p.length; }

class FftWriter {
 public:
  FftWriter(const Pass& p, DType part) : p_(p), part_(part) {}

  FftPass write() {
    FftPass r;
    r.name = formatted("kernel_fft_{}", name_of(part_));
    r.threads = 256;
    const std::int64_t rows = p_.outer * p_.middle * p_.inner,
                       row_bytes = 4 * p_.n * static_cast<std::int64_t>(size_of(part_));
    // Neighbouring rows together read whole lines where a row's elements are apart.
    const std::int64_t wanted =
        std::max<std::int64_t>(1024 / p_.n, p_.inner > 1 || p_.middle > 1 ? 8 : 1);
    together_ = std::clamp<std::int64_t>(std::min(wanted, (shared / 2) / row_bytes), 1, rows);
    r.blocks = (rows + together_ - 1) / together_;
    r.shared_bytes = together_ * row_bytes;
    text_ = formatted("typedef {} num;\n", register_type(part_));
    const std::int64_t low = std::min<std::int64_t>(p_.n, 64), high = (p_.n + 63) / 64;
    table("low", low, p_.n, 1);
    table("high", high, p_.n, 64);
    for (std::int64_t f : factors_of(p_.n))
      if (f != 2 && f != 4 && f <= 13 &&
          text_.find(formatted("roots{}_re", f)) == std::string::npos)
        table(formatted("roots{}", f), f, f, 1);
    text_ += R"cuda(
VT_FN void vt_times(num* re, num* im, num c, num s) { const num x = *re * c - *im * s; *im = *re * s + *im * c; *re = x; }
// x + iy by the root of number `at`.
VT_FN void vt_turn_by(num* re, num* im, int at) {
  num c = low_re[at & 63], s = low_im[at & 63];
  if (at >= 64) vt_times(&c, &s, high_re[at >> 6], high_im[at >> 6]);
  vt_times(re, im, c, s);
}
)cuda";
    text_ += formatted(
        "extern \"C\" __global__ void __launch_bounds__({}) {}(const num* from, num* to) {{\n",
        r.threads, r.name);
    line("VT_DYNAMIC_SHARED(vt_rows);");
    line(formatted("num *xr = (num*)vt_rows, *xi = xr + {0}, *yr = xi + {0}, *yi = yr + {0}, *t;",
                   together_ * p_.n));
    line(formatted("const i64 first = (i64)blockIdx.x * {};", together_));
    line(formatted("const int rows = (int)vt_min<i64>({}ll - first, {});", rows, together_));
    load();
    line("__syncthreads();");
    std::int64_t s = 1;
    for (std::int64_t f : factors_of(p_.n)) {
      stage(f, s);
      s *= f;
    }
    store();
    text_ += "}\n";
    r.source = std::move(text_);
    return r;
  }

 private:
  void line(const std::string& s) { text_ += "  " + s + "\n"; }
  // count roots of unity, the n-th to the powers of `step`.
  void table(const std::string& name, std::int64_t count, std::int64_t n, std::int64_t step) {
    for (int part = 0; part < 2; ++part) {
      text_ +=
          formatted("static __device__ const num {}_{}[{}] = {{", name, part ? "im" : "re", count);
      for (std::int64_t i = 0; i < count; ++i) {
        const long double angle = (p_.backward ? 2 : -2) * 3.14159265358979323846264338327950288L *
                                  static_cast<long double>(i * step % n) /
                                  static_cast<long double>(n);
        text_ +=
            number(part_, static_cast<double>(part ? std::sin(angle) : std::cos(angle))) + ", ";
      }
      text_ += "};\n";
    }
  }
  // Opens a loop over the elements of all rows, next to each other in memory where that can be.
  void each_element(bool rows_beside, const std::string& j) {
    line(formatted("for (int at = threadIdx.x; at < rows * {}; at += 256) {{", p_.n));
    line(rows_beside ? formatted("  const int row = at % rows, {} = at / rows;", j)
                     : formatted("  const int row = at / {0}, {1} = at % {0};", p_.n, j));
    line(formatted(
        "  const i64 r = first + row, i = r % {0}ll, m = r / {0}ll % {1}ll, o = r / {2}ll;",
        p_.inner, p_.middle, p_.inner * p_.middle));
  }
  void load() {
    each_element(p_.inner > 1 || (p_.middle > 1 && p_.from_between == 1), "j");
    line(formatted("  i64 place = j * {}ll + m * {}ll;", p_.from_step, p_.from_between));
    line("  num re, im = 0;");
    if (p_.from == Kind::half) {
      line(formatted("  const bool other = 2 * place > {}ll;", p_.length));
      line(formatted("  if (other) place = {}ll - place;", p_.length));
    }
    const std::string at =
        formatted("(o * {}ll + place) * {}ll + i", stored(p_, p_.from), p_.inner);
    if (p_.from == Kind::real) {
      line(formatted("  re = VT_LOAD(from, {});", at));
    } else {
      line(formatted("  re = VT_LOAD(from, 2 * ({}));", at));
      line(formatted("  im = VT_LOAD(from, 2 * ({}) + 1);", at));
    }
    // The ends of half a spectrum are real.
    if (p_.from == Kind::half)
      line(formatted("  im = place == 0 || 2 * place == {}ll ? (num)0 : other ? -im : im;",
                     p_.length));
    line(formatted("  xr[row * {0} + j] = re;", p_.n));
    line(formatted("  xi[row * {0} + j] = im;", p_.n));
    line("}");
  }
  void store() {
    each_element(p_.inner > 1 || (p_.middle > 1 && p_.to_between == 1), "k");
    line(formatted("  const i64 place = k * {}ll + m * {}ll;", p_.to_step, p_.to_between));
    if (p_.to == Kind::half) line(formatted("  if (2 * place > {}ll) continue;", p_.length));
    line(formatted("  num re = xr[row * {0} + k], im = xi[row * {0} + k];", p_.n));
    if (p_.transposed) {
      line("  f64 c, s;");
      line(formatted("  sincospi({}2.0 * (f64)(k * m % {}ll) / {}.0, &s, &c);",
                     p_.backward ? "" : "-", p_.length, p_.length));
      line("  vt_times(&re, &im, (num)c, (num)s);");
    }
    if (p_.scale != 1)
      for (const char* x : {"re", "im"}) line(formatted("  {} *= {};", x, number(part_, p_.scale)));
    const std::string at = formatted("(o * {}ll + place) * {}ll + i", stored(p_, p_.to), p_.inner);
    if (p_.to == Kind::real) {
      line(formatted("  VT_STORE(to, {}, re);", at));
    } else {
      if (p_.to == Kind::half)
        line(formatted("  if (place == 0 || 2 * place == {}ll) im = 0;", p_.length));
      line(formatted("  VT_STORE(to, 2 * ({}), re);", at));
      line(formatted("  VT_STORE(to, 2 * ({}) + 1, im);", at));
    }
    line("}");
  }
  // y[q + s (f p + k)] = w^(p k) Σ_j x[q + s (p + m j)] v^(j k), with w of n / s elements and v of
  // f (Stockham's order).
  void stage(std::int64_t f, std::int64_t s) {
    const std::int64_t n = p_.n, m = n / s / f;
    if (f > 13) {
      line(formatted("for (int at = threadIdx.x; at < rows * {}; at += 256) {{", n));
      line(formatted(
          "  const int row = at / {0}, i = at % {0} / {1}, k = at % {1}, q = i % {2}, p = i / {2};",
          n, f, s));
      line("  num re = 0, im = 0;");
      line(formatted("  for (int j = 0; j < {}; ++j) {{", f));
      line(formatted(
          "    num a = xr[row * {0} + q + {1} * (p + {2} * j)], b = xi[row * {0} + q + {1} "
          "* (p + {2} * j)];",
          n, s, m));
      line(formatted("    vt_turn_by(&a, &b, j * k % {} * {});", f, n / f));
      line("    re += a;");
      line("    im += b;");
      line("  }");
      line(formatted("  vt_turn_by(&re, &im, p * k * {});", s));
      line(formatted("  yr[row * {0} + q + {1} * ({2} * p + k)] = re;", n, s, f));
      line(formatted("  yi[row * {0} + q + {1} * ({2} * p + k)] = im;", n, s, f));
      line("}");
    } else {
      line(formatted("for (int at = threadIdx.x; at < rows * {}; at += 256) {{", n / f));
      line(formatted("  const int row = at / {0}, i = at % {0}, q = i % {1}, p = i / {1};", n / f,
                     s));
      line(formatted("  num a[{0}], b[{0}], c[{0}], d[{0}];", f));
      text_ += "#pragma unroll\n";
      line(
          formatted("  for (int j = 0; j < {0}; ++j) {{ a[j] = xr[row * {1} + q + {2} * (p + {3} * "
                    "j)]; b[j] = xi[row * {1} + q + {2} * (p + {3} * j)]; }}",
                    f, n, s, m));
      if (f == 2) {
        line("  c[0] = a[0] + a[1]; d[0] = b[0] + b[1]; c[1] = a[0] - a[1]; d[1] = b[0] - b[1];");
      } else if (f == 4) {
        line(
            "  const num e = a[0] + a[2], g = b[0] + b[2], h = a[0] - a[2], l = b[0] - b[2], u = "
            "a[1] + a[3], v = b[1] + b[3];");
        // By −i, or by i going back.
        line(p_.backward ? "  const num w = b[3] - b[1], z = a[1] - a[3];"
                         : "  const num w = b[1] - b[3], z = a[3] - a[1];");
        line(
            "  c[0] = e + u; d[0] = g + v; c[1] = h + w; d[1] = l + z; c[2] = e - u; d[2] = g - v; "
            "c[3] = h - w; d[3] = l - z;");
      } else {
        text_ += "#pragma unroll\n";
        line(formatted("  for (int k = 0; k < {}; ++k) {{", f));
        line("    c[k] = a[0];");
        line("    d[k] = b[0];");
        text_ += "#pragma unroll\n";
        line(formatted("    for (int j = 1; j < {}; ++j) {{", f));
        line(formatted(
            "      const num x = roots{0}_re[j * k % {0}], y = roots{0}_im[j * k % {0}];", f));
        line("      c[k] += a[j] * x - b[j] * y;");
        line("      d[k] += a[j] * y + b[j] * x;");
        line("    }");
        line("  }");
      }
      text_ += "#pragma unroll\n";
      line(formatted("  for (int k = 0; k < {}; ++k) {{", f));
      if (m > 1) line(formatted("    if (k > 0) vt_turn_by(&c[k], &d[k], p * k * {});", s));
      line(formatted("    yr[row * {0} + q + {1} * ({2} * p + k)] = c[k];", n, s, f));
      line(formatted("    yi[row * {0} + q + {1} * ({2} * p + k)] = d[k];", n, s, f));
      line("  }");
      line("}");
    }
    line("__syncthreads();");
    line("t = xr, xr = yr, yr = t, t = xi, xi = yi, yi = t;");
  }

  const Pass p_;
  const DType part_;
  std::int64_t together_ = 1;
  std::string text_;
};

}  // namespace fft_writing

FftSource fft_source(const FftSpec& s) {
  using namespace fft_writing;
  FftSource r;
  const std::size_t axes = s.lengths.size();
  std::int64_t all = 1, rows = s.batch;
  for (std::int64_t n : s.lengths) all *= n;
  if (rows * all == 0) return r;
  const std::int64_t number = static_cast<std::int64_t>(size_of(s.part)),
                     most = shared / (4 * number), last = s.lengths[axes - 1];
  const bool backward = s.kind == FftKind::ifft || s.kind == FftKind::irfft,
             real = s.kind == FftKind::rfft || s.kind == FftKind::irfft;
  const std::int64_t width = real ? last / 2 + 1 : last;
  for (std::size_t i = 0; i + 1 < axes; ++i) rows *= s.lengths[i];
  // One axis: a pass, or two by way of a piece of scratch memory.
  const auto along = [&](Pass p, int from, int to) {
    const auto add = [&](const Pass& pass, int source, int target) {
      r.passes.push_back(FftWriter(pass, s.part).write());
      r.passes.back().from = source, r.passes.back().to = target;
    };
    const std::int64_t n = p.length;
    if (n <= most) {
      p.n = n;
      return add(p, from, to);
    }
    std::int64_t short_one = 1;
    for (std::int64_t f = 2; f * f <= n && f <= most; ++f)
      if (n % f == 0 && n / f <= most) short_one = f;
    if (short_one == 1) {
      r.refusal = "long rows without two factors that fit in shared memory";
      return;
    }
    const std::int64_t long_one = n / short_one;
    const auto between = static_cast<int>(r.bytes.size());
    r.bytes.push_back(2 * p.outer * n * p.inner * number);
    Pass one = p, two = p;
    one.n = short_one, one.middle = long_one, one.transposed = true, one.scale = 1,
    one.to = Kind::complex;
    one.from_step = one.to_step = long_one, one.from_between = one.to_between = 1;
    two.n = long_one, two.middle = short_one, two.from = Kind::complex;
    two.from_step = 1, two.from_between = long_one, two.to_step = short_one, two.to_between = 1;
    add(one, from, between);
    add(two, between, to);
  };
  // The axes before the last, in an array whose last axis has `width` elements.
  const auto others = [&](int from, int to) {
    std::int64_t outer = rows, inner = width;
    for (std::size_t i = axes - 1; i-- > 0;) {
      outer /= s.lengths[i];
      Pass p;
      p.length = s.lengths[i], p.outer = outer, p.inner = inner, p.backward = backward;
      along(p, from, to);
      inner *= s.lengths[i];
      from = to;
    }
  };
  Pass p;
  p.length = last, p.outer = rows, p.backward = backward;
  p.scale = backward ? static_cast<double>(1.0L / static_cast<long double>(all)) : 1;
  if (s.kind == FftKind::rfft) p.from = Kind::real, p.to = Kind::half;
  if (s.kind == FftKind::irfft) p.from = Kind::half, p.to = Kind::real;
  constexpr int operand = -1, result = -2;
  if (s.kind == FftKind::irfft && axes > 1) {
    r.bytes.push_back(2 * rows * width * number);
    others(operand, 0);
    along(p, 0, result);
  } else {
    along(p, operand, result);
    others(result, result);
  }
  if (!r.refusal.empty()) r.passes.clear();
  return r;
}

FftPass fft_division(const FftSpec& s) {
  std::int64_t all = 1;
  for (std::int64_t n : s.lengths) all *= n;
  const std::int64_t numbers = s.batch * all * (s.kind == FftKind::irfft ? 1 : 2);
  FftPass p;
  p.name = formatted("kernel_fft_division_{}", name_of(s.part));
  p.threads = 256;
  p.blocks = std::min<std::int64_t>((numbers + 255) / 256, 4096);
  p.source = formatted("extern \"C\" __global__ void __launch_bounds__(256) {}({}* x) {{\n", p.name,
                       register_type(s.part));
  p.source += formatted(
      "  for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < {}ll; i += (i64)gridDim.x * 256)\n",
      numbers);
  p.source += formatted("    VT_STORE(x, i, vt_div(VT_LOAD(x, i), {}));\n}}\n",
                        number(s.part, static_cast<double>(all)));
  return p;
}

}  // namespace vt::detail::cuda
