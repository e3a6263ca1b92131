// Linear algebra on batches of small matrices as CUDA kernels: what a thread group reads, which
// algorithms it runs, and what it writes.
#include "matrix_source.hpp"

#include <algorithm>

#include <vt/detail/message.hpp>

#include "element_source.hpp"
#include "matrix_text.hpp"

namespace vt::detail::cuda {

namespace matrix_writing {

// `a` is the matrix in the thread group's room, i the number of an element. Sizes are constants of
// each
// kernel: m × n, rows of a `ld` apart, k right sides of this thread group (of `columns`, from
// `first` on), least = min(m, n).
constexpr std::string_view load_a = R"cuda(
  for (int i = member; i < m * n; i += group)
    a[i / n * ld + i % n] = VT_LOAD(in0, matrix * (m * n) + i);
  vt_group();
)cuda";
constexpr std::string_view load_symmetric = R"cuda(
  for (int i = member; i < n * n; i += group)
    a[i / n * ld + i % n] = (num)0.5 * VT_LOAD(in0, matrix * (n * n) + i) +
                            (num)0.5 * VT_LOAD(in0, matrix * (n * n) + i % n * n + i / n);
  vt_group();
)cuda";
constexpr std::string_view scale_a = R"cuda(
  const f64 scale = vt_scale_of<rows, wide, ld>(a, member);
  vt_group();
  if (scale != 0)
    for (int i = member; i < rows * wide; i += group) a[i / wide * ld + i % wide] *= scale;
  vt_group();
)cuda";

constexpr std::string_view run_cholesky = R"cuda(
  const bool positive = vt_cholesky<n, ld>(a, member);
  for (int i = member; i < n * n; i += group) {
    const num x = a[i / n * ld + i % n];
    VT_STORE(out0, matrix * (n * n) + i,
             i / n < i % n    ? (num)0
             : !positive      ? (num)VT_NAN
             : i / n == i % n ? vt_root(x)
                              : x);
  }
)cuda";
constexpr std::string_view run_lu = R"cuda(
  vt_lu<m, n, ld>(a, pivots, permutation, member);
  if (out0)
    for (int i = member; i < m * n; i += group)
      VT_STORE(out0, matrix * (m * n) + i, a[i / n * ld + i % n]);
  if (out1)
    for (int i = member; i < least; i += group) VT_STORE(out1, matrix * least + i, pivots[i]);
  if (out2)
    for (int i = member; i < m; i += group) VT_STORE(out2, matrix * m + i, permutation[i]);
)cuda";
constexpr std::string_view factorize = "  vt_lu<n, n, ld>(a, pivots, permutation, member);\n";
constexpr std::string_view load_b = R"cuda(
  for (int i = member; i < n * k; i += group)
    b[i] = first + i % k < columns
               ? VT_LOAD(right, matrix * (n * columns) + i / k * columns + first + i % k)
               : (num)0;
  vt_group();
)cuda";
constexpr std::string_view store_b = R"cuda(
  for (int i = member; i < n * k; i += group)
    if (first + i % k < columns)
      VT_STORE(out0, matrix * (n * columns) + i / k * columns + first + i % k, b[i]);
)cuda";
// Of places that a permutation should name, and one that is none may not: the last row that names a
// place.
constexpr std::string_view load_factors = R"cuda(
  for (int i = member; i < n * n; i += group)
    a[i / n * ld + i % n] = VT_LOAD(in1, matrix * (n * n) + i);
  for (int i = member; i < n; i += group)
    permutation[i] = vt_min<i32>(vt_max<i32>(VT_LOAD(in2, matrix * n + i), 0), n - 1);
  vt_group();
)cuda";
constexpr std::string_view run_solve = R"cuda(
  for (int i = member; i < n * k; i += group)
    b[i] = first + i % k < columns
               ? VT_LOAD(right,
                         matrix * (n * columns) + (i64)permutation[i / k] * columns + first + i % k)
               : (num)0;
  vt_group();
  vt_triangle<n, ld, k, true, false, true>(a, b, member);
  vt_triangle<n, ld, k, false, false, false>(a, b, member);
)cuda";
constexpr std::string_view run_solve_transposed = R"cuda(
  vt_triangle<n, ld, k, false, true, false>(a, b, member);
  vt_triangle<n, ld, k, true, true, true>(a, b, member);
  for (int i = member; i < n * k; i += group) {
    num x = 0;
    for (int j = 0; j < n; ++j)
      if (permutation[j] == i / k) x = b[j * k + i % k];
    if (first + i % k < columns)
      VT_STORE(out0, matrix * (n * columns) + i / k * columns + first + i % k, x);
  }
)cuda";
constexpr std::string_view factorize_by_columns = R"cuda(
  for (int i = member; i < n; i += group) order[i] = i;
  vt_group();
  vt_qr<m, n, ld>(a, tau, beta, member, scale == 0 ? (i32*)0 : order);
  if (out2)
    for (int i = member; i < n; i += group) VT_STORE(out2, matrix * n + i, order[i]);
)cuda";
constexpr std::string_view run_qr = R"cuda(
  if (!pivoted) vt_qr<m, n, ld>(a, tau, beta, member);
  vt_reflections<m, ld, least, left, lq>(a, tau, q, member);
  if (out0)
    for (int i = member; i < m * left; i += group)
      VT_STORE(out0, matrix * (m * left) + i,
               (memory)(scale == 0 ? (f64)VT_NAN : q[i / left * lq + i % left]));
  if (out1)
    for (int i = member; i < left * n; i += group) {
      const int r = i / n, c = i % n;
      const f64 x = r < c ? a[r * ld + c] : r == c ? beta[r] : 0.0;
      VT_STORE(out1, matrix * (left * n) + i, (memory)(scale == 0 ? (f64)VT_NAN : x / scale));
    }
)cuda";
// Values ascending; the first element of a vector that is no smaller than 0.37 of its largest is
// positive.
constexpr std::string_view run_eigh = R"cuda(
  const bool found = scale != 0 && vt_eigh<n, ld>(a, vectors ? v : (f64*)0, cs, member);
  for (int j = member; j < n; j += group) {
    const f64 value = a[j * ld + j];
    int rank = j;
    if (found) {
      rank = 0;
      for (int i = 0; i < n; ++i)
        rank += a[i * ld + i] < value || (a[i * ld + i] == value && i < j);
    }
    if (out0) VT_STORE(out0, matrix * n + rank, (memory)(found ? value / scale : (f64)VT_NAN));
    if (!vectors || !out1) continue;
    f64 most = 0, sign = 1;
    for (int i = 0; i < n; ++i) most = vt_max(most, vt_abs(v[i * ld + j]));
    for (int i = n - 1; i >= 0; --i)
      if (vt_abs(v[i * ld + j]) >= 0.37 * most) sign = v[i * ld + j] < 0 ? -1.0 : 1.0;
    for (int i = 0; i < n; ++i)
      VT_STORE(out1, matrix * (n * n) + i * n + rank,
               (memory)(found ? sign * v[i * ld + j] : (f64)VT_NAN));
  }
)cuda";
// A tall matrix (a wide one transposed) by way of its r; then columns of r at right angles, whose
// own qr makes them orthonormal, also those of no length. The first element of a left vector that
// is no smaller than 0.37 of its largest is positive.
constexpr std::string_view load_tall = R"cuda(
  for (int i = member; i < m * n; i += group) {
    const int r = i / n, c = i % n;
    a[m < n ? c * ld + r : r * ld + c] = VT_LOAD(in0, matrix * (m * n) + i);
  }
  vt_group();
)cuda";
constexpr std::string_view run_svd = R"cuda(
  if (rows > wide) {
    vt_qr<rows, wide, ld>(a, tau, beta, member);
    if (vectors) vt_reflections<rows, ld, wide, left, lq>(a, tau, q, member);
    for (int i = member; i < wide * wide; i += group) {
      const int r = i / wide, c = i % wide;
      w[r * ld + c] = r < c ? a[r * ld + c] : r == c ? beta[r] : 0.0;
    }
  } else {
    for (int i = member; i < wide * wide; i += group)
      w[i / wide * ld + i % wide] = a[i / wide * ld + i % wide];
  }
  vt_group();
  const bool found = scale != 0 && vt_turn_columns<wide, ld>(w, v, member);
  for (int j = member; j < wide; j += group) {
    f64 x = 0;
    for (int r = 0; r < wide; ++r) x = vt_plus(x, w[r * ld + j], w[r * ld + j]);
    lengths[j] = found ? sqrt(x) : (f64)VT_NAN;
  }
  vt_group();
  for (int j = member; j < wide; j += group) {
    int rank = 0;
    for (int i = 0; i < wide; ++i)
      rank += lengths[i] > lengths[j] || (lengths[i] == lengths[j] && i < j);
    if (!found) rank = j;
    places[rank] = j;
    if (values) VT_STORE(values, matrix * wide + rank, (memory)(lengths[j] / scale));
  }
  vt_group();
)cuda";
// Element r of vector c: of the longer ones, which are u's or vh's, and of the shorter ones.
constexpr std::string_view vectors_of_tall = R"cuda(
#define VT_LONG(r, c) (matrix * (rows * left) + (r) * left + (c))
#define VT_SHORT(r, c) (matrix * (wide * wide) + (c) * wide + (r))
  memory *const long_vectors = out0, *const short_vectors = out2;
)cuda";
constexpr std::string_view vectors_of_wide = R"cuda(
#define VT_LONG(r, c) (matrix * (rows * left) + (c) * rows + (r))
#define VT_SHORT(r, c) (matrix * (wide * wide) + (r) * wide + (c))
  memory *const long_vectors = out2, *const short_vectors = out0;
)cuda";
constexpr std::string_view run_svd_vectors = R"cuda(
  // The columns in order, and what makes them orthonormal; a is free by now.
  for (int i = member; i < wide * wide; i += group)
    x[i / wide * ld + i % wide] = w[i / wide * ld + places[i % wide]];
  vt_group();
  vt_qr<wide, wide, ld>(x, tau, beta, member);
  vt_reflections<wide, ld, wide, wide, ld>(x, tau, w, member);
  for (int j = member; j < wide; j += group)
    if (beta[j] < 0)
      for (int r = 0; r < wide; ++r) w[r * ld + j] = -w[r * ld + j];
  vt_group();
  if (rows > wide) {
    for (int i = member; i < rows * wide; i += group) {
      f64 sum = 0;
      for (int r = 0; r < wide; ++r) sum = vt_plus(sum, q[i / wide * lq + r], w[r * ld + i % wide]);
      a[i / wide * ld + i % wide] = sum;
    }
    if (long_vectors)
      for (int i = member; i < rows * left; i += group)
        if (i % left >= wide)
          VT_STORE(long_vectors, VT_LONG(i / left, i % left),
                   (memory)(found ? q[i / left * lq + i % left] : (f64)VT_NAN));
  }
  vt_group();
  for (int j = member; j < wide; j += group) {
    const f64* const column = (rows > wide ? a : w) + j;
    f64 most = 0, sign = 1;
    for (int r = 0; r < rows; ++r) most = vt_max(most, vt_abs(column[r * ld]));
    for (int r = rows - 1; r >= 0; --r)
      if (vt_abs(column[r * ld]) >= 0.37 * most) sign = column[r * ld] < 0 ? -1.0 : 1.0;
    if (long_vectors)
      for (int r = 0; r < rows; ++r)
        VT_STORE(long_vectors, VT_LONG(r, j),
                 (memory)(found ? sign * column[r * ld] : (f64)VT_NAN));
    if (short_vectors)
      for (int r = 0; r < wide; ++r)
        VT_STORE(short_vectors, VT_SHORT(r, j),
                 (memory)(found ? sign * v[r * ld + places[j]] : (f64)VT_NAN));
  }
)cuda";
constexpr std::string_view run_tridiagonal = R"cuda(
  num below[n], d[n], u[n], far[n], x[n];
  for (int i = 0; i < n; ++i) {
    below[i] = VT_LOAD(in0, matrix * n + i);
    d[i] = VT_LOAD(in1, matrix * n + i);
    u[i] = VT_LOAD(in2, matrix * n + i);
    x[i] = VT_LOAD(in3, matrix * (n * columns) + i * columns + first);
  }
  vt_tridiagonal<n>(below, d, u, far, x);
  for (int i = 0; i < n; ++i) VT_STORE(out0, matrix * (n * columns) + i * columns + first, x[i]);
)cuda";

class MatrixWriter {
 public:
  explicit MatrixWriter(const LinalgSpec& s) : s_(s) {}

  MatrixSource write() {
    MatrixSource r;
    r.name = formatted("kernel_{}_{}", name_of(s_.op), name_of(s_.dtype));
    const std::int64_t m = s_.m, n = s_.n, least = std::min(m, n), most = std::max(m, n);
    const bool systems = s_.op == Op::solve || s_.op == Op::triangular_solve,
               tridiagonal = s_.op == Op::tridiagonal_solve;
    if (is_complex(s_.dtype)) r.refusal = "complex matrices";
    else if (s_.op == Op::eig) r.refusal = "eigenvalues without symmetry";
    else if (least == 0) r.refusal = "matrices without elements";
    else if (most > 1024) r.refusal = "large matrices", r.too_large = true;
    if (!r.refusal.empty()) return r;
    const bool own = systems || tridiagonal || s_.op == Op::cholesky || s_.op == Op::lu;
    const DType number = own ? s_.dtype : DType::f64;
    const std::int64_t thread_group = tridiagonal || most <= 4 ? 1 : most <= 32 ? 32 : 128;
    const std::int64_t k =
        tridiagonal ? 1 : std::min<std::int64_t>(s_.columns, thread_group == 1 ? 4 : 32);
    const std::int64_t chunks =
        systems || tridiagonal ? (s_.columns + k - 1) / std::max<std::int64_t>(k, 1) : 1;
    const std::int64_t count = s_.batch * chunks;
    const std::int64_t rows = s_.op == Op::svd ? most : m, wide = s_.op == Op::svd ? least : n,
                       ld = wide | 1;
    const std::int64_t left = s_.op == Op::svd ? (s_.full ? most : least)
                              : s_.full        ? m
                                               : least,
                       lq = left | 1;
    choose();
    if (count == 0) return r;
    // The thread group's room: arrays of numbers, then of places.
    std::string arrays;
    std::int64_t numbers = 0, places = 0;
    const auto array = [&](const char* name, std::int64_t size) {
      arrays += formatted("  num* const {} = room + {};\n", name, numbers);
      numbers += size;
    };
    const auto places_array = [&](const char* name, std::int64_t size) {
      arrays += formatted("  i32* const {} = numbers + {};\n", name, places);
      places += size;
    };
    if (!tridiagonal) array("a", rows * ld);
    if (systems) array("b", n * k);
    if (s_.op == Op::lu || (s_.op == Op::solve && !s_.factored)) places_array("pivots", least);
    if (s_.op == Op::lu || s_.op == Op::solve) places_array("permutation", m);
    if (s_.op == Op::qr || s_.op == Op::svd) array("tau", wide), array("beta", wide);
    if (s_.op == Op::qr) array("q", m * lq);
    if (s_.pivoted) places_array("order", n);
    if (s_.op == Op::eigh) array("v", s_.vectors ? n * ld : 0), array("cs", n + 1);
    if (s_.op == Op::svd) {
      array("q", s_.vectors && rows > wide ? rows * lq : 0);
      for (const char* name : {"w", "v"}) array(name, wide * ld);
      if (s_.vectors) array("x", wide * ld);
      array("lengths", wide);
      places_array("places", wide);
    }
    const std::int64_t bytes =
        (numbers * static_cast<std::int64_t>(size_of(number)) + places * 4 + 15) / 16 * 16;
    // of the least that there is; of a thread
    constexpr std::int64_t most_shared = 64 << 10, most_local = 8 << 10;
    if (tridiagonal ? n > 256 : bytes > (thread_group == 1 ? most_local : most_shared)) {
      r.refusal = "large matrices";
      r.too_large = true;
      return r;
    }
    const std::int64_t together =
        thread_group == 32 ? std::clamp<std::int64_t>((40 << 10) / bytes, 1, 4) : 1;
    r.threads = static_cast<int>(thread_group == 1 ? 64 : thread_group * together);
    const std::int64_t per_block = r.threads / thread_group;
    r.blocks = (count + per_block - 1) / per_block;
    r.shared_bytes = thread_group == 1 ? 0 : bytes * together;
    r.way = thread_group == 1    ? "a thread per matrix"
            : thread_group == 32 ? "a warp per matrix"
                                 : "a block per matrix";
    if (chunks > 1) r.way += formatted(" and {} right side{}", k, k == 1 ? "" : "s");

    std::string& t = text_;
    t = formatted(
        "enum {{ group = {}, m = {}, n = {}, least = {}, rows = {}, wide = {}, ld = {}, left = {}, "
        "lq = {}, k = {}, columns = {} }};\n",
        thread_group, m, n, least, rows, wide, ld, left, lq, k, s_.columns);
    t += formatted("enum {{ vectors = {}, pivoted = {} }};\ntypedef {} num;\ntypedef {} memory;\n",
                   s_.vectors ? 1 : 0, s_.pivoted ? 1 : 0, register_type(number),
                   register_type(s_.dtype));
    t += matrix_basics;
    for (const std::string_view* part : parts_) t += *part;
    t += formatted("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n", r.threads,
                   r.name, parameters());
    t += formatted("  const i64 index = (i64)blockIdx.x{};\n",
                   per_block == 1 ? std::string()
                                  : formatted(" * {} + threadIdx.x / {}", per_block, thread_group));
    t += formatted("  const int member = {};\n", thread_group == 1
                                                     ? std::string("0")
                                                     : formatted("threadIdx.x % {}", thread_group));
    if (thread_group == 1) {
      if (numbers) t += formatted("  num room[{}];\n", numbers);
      if (places) t += formatted("  i32 numbers[{}];\n", places);
    } else {
      t += "  VT_DYNAMIC_SHARED(vt_rows);\n";
      const std::string at =
          together == 1 ? "vt_rows" : formatted("(vt_rows + threadIdx.x / 32 * {})", bytes);
      t += formatted("  num* const room = (num*){};\n", at);
      if (places) t += formatted("  i32* const numbers = (i32*)(room + {});\n", numbers);
    }
    t += arrays;
    t += formatted("  if (index >= {}ll) return;\n", count);
    if (chunks > 1)
      t += formatted(
          "  const i64 matrix = index / {0};\n  const int first = (int)(index % {0}) * k;\n",
          chunks);
    else t += "  const i64 matrix = index;\n  const int first = 0;\n";
    if (systems) t += formatted("  const memory* const right = in{};\n", s_.operands() - 1);
    if (s_.op == Op::eigh && !s_.vectors) t += "  memory* const out1 = 0;\n";
    if (s_.op == Op::svd) t += formatted("  memory* const values = out{};\n", s_.vectors ? 1 : 0);
    for (const std::string_view* part : body_) t += *part;
    t += "}\n";
    r.source = std::move(text_);
    return r;
  }

 private:
  // The parts of the text: functions, and what the kernel does one after the other.
  void choose() {
    const auto need = [&](std::initializer_list<const std::string_view*> parts) {
      parts_.append(parts.begin(), parts.end());
    };
    const auto run = [&](std::initializer_list<const std::string_view*> parts) {
      body_.append(parts.begin(), parts.end());
    };
    switch (s_.op) {
      case Op::cholesky: return need({&matrix_cholesky}), run({&load_symmetric, &run_cholesky});
      case Op::lu: return need({&matrix_lu}), run({&load_a, &run_lu});
      case Op::triangular_solve:
        need({&matrix_triangle}), run({&load_a, &load_b});
        triangle_ = formatted("  vt_triangle<n, ld, k, {}, {}, {}>(a, b, member);\n", s_.lower,
                              s_.transposed, s_.unit_diagonal);
        triangle_view_ = triangle_;
        return run({&triangle_view_, &store_b});
      case Op::solve:
        need({&matrix_triangle}), run({s_.factored ? &load_factors : &load_a});
        if (!s_.factored) need({&matrix_lu}), run({&factorize});
        if (s_.transposed) return run({&load_b, &run_solve_transposed});
        return run({&run_solve, &store_b});
      case Op::qr:
        need({&matrix_qr}), run({&load_a, &scale_a});
        if (s_.pivoted) run({&factorize_by_columns});
        return run({&run_qr});
      case Op::eigh:
        return need({&matrix_rotations, &matrix_eigh}), run({&load_symmetric, &scale_a, &run_eigh});
      case Op::svd:
        need({&matrix_qr, &matrix_rotations, &matrix_svd}), run({&load_tall, &scale_a, &run_svd});
        if (s_.vectors) run({s_.m < s_.n ? &vectors_of_wide : &vectors_of_tall, &run_svd_vectors});
        return;
      default: return need({&matrix_tridiagonal}), run({&run_tridiagonal});
    }
  }
  std::string parameters() const {
    std::string text;
    const std::size_t operands = s_.operands();
    for (std::size_t i = 0; i < operands; ++i)
      text +=
          formatted("{}const {}* in{}", i ? ", " : "", s_.factored && i == 2 ? "i32" : "memory", i);
    const bool two = s_.op == Op::qr || (s_.op == Op::eigh && s_.vectors),
               three = s_.op == Op::lu || (s_.op == Op::svd && s_.vectors) || s_.pivoted;
    for (int i = 0; i < (three ? 3 : two ? 2 : 1); ++i)
      text += formatted(", {}* out{}",
                        (s_.op == Op::lu && i) || (s_.pivoted && i == 2) ? "i32" : "memory", i);
    return text;
  }

  std::string triangle_;
  std::string_view triangle_view_;
  LinalgSpec s_;
  Vec<const std::string_view*> parts_, body_;
  std::string text_;
};

}  // namespace matrix_writing

MatrixSource matrix_source(const LinalgSpec& s) { return matrix_writing::MatrixWriter(s).write(); }

}  // namespace vt::detail::cuda
