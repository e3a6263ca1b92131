// Linear algebra on large matrices. The libraries want column-major matrices and overwrite their
// operands: a kernel copies operands into scratch memory in that order, the routines run there, and
// kernels turn the results into what the interpreter would give.
#include "large_matrices.hpp"

#include <algorithm>

#include <vt/detail/message.hpp>

#include "../source/element_source.hpp"

namespace vt::detail::cuda {

namespace large_matrices {

using Pointer = Launch::Pointer;
using Pointers = SmallVec<Pointer, 8>;
using Routine = SolverTask::Routine;

// A matrix that is not finite has no decomposition: the library is given a one in its place, as it
// might look for one for long.
constexpr std::string_view finite_body = R"cuda(
  const i64 matrix = blockIdx.x;
  bool good = true;
  for (i64 i = threadIdx.x; i < m * n; i += 512) {
    const num x = VT_LOAD(a, matrix * (m * n) + i);
    good = good && x - x == (num)0;
  }
  good = vt_reduce<512, vt_all>(good);
  if (threadIdx.x == 0) VT_STORE(finite, matrix, good ? 1 : 0);
)cuda";
constexpr std::string_view symmetric_body = R"cuda(
  const i64 matrix = at / (n * n), i = at % (n * n) / n, j = at % n;
  num x = (num)(i == j);
  if (VT_LOAD(finite, matrix))
    x = (num)0.5 * VT_LOAD(a, at) + (num)0.5 * VT_LOAD(a, matrix * (n * n) + j * n + i);
  VT_STORE(w, at, x);
)cuda";
constexpr std::string_view cholesky_body = R"cuda(
  const i64 matrix = at / (n * n), i = at % (n * n) / n, j = at % n;
  const bool positive = VT_LOAD(finite, matrix) && VT_LOAD(info, matrix) == 0;
  VT_STORE(out, at, i < j ? (num)0 : positive ? VT_LOAD(w, at) : (num)VT_NAN);
)cuda";
// Rows become columns, of matrices that lie `apart` elements from each other there.
constexpr std::string_view turn_body = R"cuda(
  const i64 matrix = at / (height * width), i = at % height, j = at % (height * width) / height;
  const bool one = finite && !VT_LOAD(finite, matrix);
  VT_STORE(w, matrix * apart + i + j * height,
           one ? (num)(i == j) : VT_LOAD(a, matrix * (height * width) + i * width + j));
)cuda";
constexpr std::string_view turn_back_body = R"cuda(
  const i64 matrix = at / (height * width), i = at % (height * width) / width, j = at % width;
  if (out)
    VT_STORE(out, at,
             finite && !VT_LOAD(finite, matrix) ? (num)VT_NAN
                                                : VT_LOAD(w, matrix * apart + i + j * height));
)cuda";
constexpr std::string_view triangle_body = R"cuda(
  const i64 matrix = at / (left * n), i = at % (left * n) / n, j = at % n;
  if (out)
    VT_STORE(out, at,
             !VT_LOAD(finite, matrix) ? (num)VT_NAN
             : i <= j                 ? VT_LOAD(w, matrix * apart + i + j * m)
                                      : (num)0);
)cuda";
constexpr std::string_view tall_body = R"cuda(
  const i64 matrix = at / (m * n), i = at % (m * n) / n, j = at % n;
  const num x = VT_LOAD(finite, matrix) ? VT_LOAD(a, at) : (num)(i == j);
  VT_STORE(w, matrix * (m * n) + (m < n ? j + i * n : i + j * m), x);
)cuda";
constexpr std::string_view values_body = R"cuda(
  const i64 matrix = at / least;
  const bool found = VT_LOAD(finite, matrix) && VT_LOAD(info, matrix) == 0;
  if (out) VT_STORE(out, at, found ? VT_LOAD(values, at) : (num)VT_NAN);
)cuda";
// The exchanges one after the other, where all threads see them.
constexpr std::string_view places_body = R"cuda(
  const i64 matrix = blockIdx.x;
  for (i64 i = threadIdx.x; i < m; i += 256) VT_STORE(places, matrix * m + i, (i32)i);
  if (pivots)
    for (i64 i = threadIdx.x; i < least; i += 256)
      VT_STORE(pivots, matrix * least + i, (i32)(VT_LOAD(exchanges, matrix * least + i) - 1));
  __syncthreads();
  if (threadIdx.x == 0)
    for (i64 i = 0; i < least; ++i) {
      const i64 other = VT_LOAD(exchanges, matrix * least + i) - 1;
      const i32 x = VT_LOAD(places, matrix * m + i);
      VT_STORE(places, matrix * m + i, VT_LOAD(places, matrix * m + other));
      VT_STORE(places, matrix * m + other, x);
    }
  __syncthreads();
  if (permutation)
    for (i64 i = threadIdx.x; i < m; i += 256)
      VT_STORE(permutation, matrix * m + i, VT_LOAD(places, matrix * m + i));
)cuda";
// Of places that a permutation should name, and one that is none may not: the last row that names a
// place.
constexpr std::string_view inverse_body = R"cuda(
  const i64 matrix = at / n;
  i32 from = -1;
  for (i64 j = 0; j < n; ++j)
    if (vt_min<i32>(vt_max<i32>(VT_LOAD(permutation, matrix * n + j), 0), (i32)(n - 1)) ==
        (i32)(at % n))
      from = (i32)j;
  VT_STORE(places, at, from);
)cuda";
constexpr std::string_view gather_body = R"cuda(
  const i64 matrix = at / (n * columns), i = at % (n * columns) / columns;
  const i32 from = vt_min<i32>(VT_LOAD(places, matrix * n + i), (i32)(n - 1)),
            row = clamp ? vt_max<i32>(from, 0) : from;
  VT_STORE(
      out, at,
      row < 0 ? (num)0 : VT_LOAD(b, matrix * (n * columns) + (i64)row * columns + at % columns));
)cuda";
// A column of the longer vectors (of a spectrum the only ones) in a block: its first element that
// is no smaller than 0.37 of its largest becomes positive.
constexpr std::string_view vectors_body = R"cuda(
  const i64 matrix = blockIdx.x / left, j = blockIdx.x % left;
  const bool found = VT_LOAD(finite, matrix) && VT_LOAD(info, matrix) == 0;
  num most = 0;
  for (i64 i = threadIdx.x; i < rows; i += 128)
    most = vt_max(most, vt_abs(VT_LOAD(u, (matrix * left + j) * rows + i)));
  most = vt_reduce<128, vt_maximum>(most);
  i64 first = rows;
  for (i64 i = threadIdx.x; i < rows && first == rows; i += 128)
    if (vt_abs(VT_LOAD(u, (matrix * left + j) * rows + i)) >= (num)0.37 * most) first = i;
  first = vt_reduce<128, vt_minimum>(first);
  const num sign =
      j >= wide || first == rows || VT_LOAD(u, (matrix * left + j) * rows + first) >= (num)0
          ? (num)1
          : (num)-1;
  if (longer)
    for (i64 i = threadIdx.x; i < rows; i += 128)
      VT_STORE(longer, matrix * (rows * left) + (transposed ? j * rows + i : i * left + j),
               found ? sign * VT_LOAD(u, (matrix * left + j) * rows + i) : (num)VT_NAN);
  if (shorter && j < wide)
    for (i64 i = threadIdx.x; i < wide; i += 128)
      VT_STORE(shorter, matrix * (wide * wide) + (transposed ? i * wide + j : j * wide + i),
               found ? sign * VT_LOAD(v, matrix * (wide * wide) + j + i * wide) : (num)VT_NAN);
)cuda";

class Steps {
 public:
  Steps(const LinalgSpec& s, const Pointers& operands, const Pointers& results,
        const MatrixLibraries& libraries, ScratchLayout& scratch, Vec<Launch>& launches)
      : s_(s),
        in_(operands),
        out_(results),
        libraries_(libraries),
        scratch_(scratch),
        launches_(launches) {}

  std::string add() {
    const std::size_t before = launches_.size();
    switch (s_.op) {
      case Op::cholesky: cholesky(); break;
      case Op::lu: lu(); break;
      case Op::solve: s_.factored ? solve_factored() : solve(); break;
      case Op::triangular_solve: triangular_solve(); break;
      case Op::qr:
        if (s_.pivoted) reason_ = "it has no such routine";
        else qr();
        break;
      case Op::eigh: eigh(); break;
      case Op::svd: svd(); break;
      default: reason_ = "it has no such routine"; break;
    }
    if (!reason_.empty())
      launches_.erase(launches_.begin() + static_cast<std::ptrdiff_t>(before), launches_.end());
    return reason_;
  }

 private:
  void cholesky() {
    const Pointer finite = look(), w = numbers(size()), info = infos();
    element_kernel("take", "const num* a, const i32* finite, num* w", size(), symmetric_body,
                   {in_[0], finite, w});
    call({.routine = Routine::potrf, .m = s_.n, .n = s_.n}, {w, info});
    element_kernel("give", "const num* w, const i32* finite, const i32* info, num* out", size(),
                   cholesky_body, {w, finite, info, out_[0]});
  }

  void lu() {
    const Pointer finite = look(), w = transposed(in_[0], s_.m, s_.n, 0, "take", finite),
                  exchanges = scratch_.take(s_.batch * least() * 8),
                  places = scratch_.take(s_.batch * s_.m * 4), info = infos();
    call({.routine = Routine::getrf, .m = s_.m, .n = s_.n}, {w, exchanges, info});
    turn_back(w, s_.m, s_.n, s_.m * s_.n, out_[0], finite);
    block_kernel("exchanges", "const i64* exchanges, i32* places, i32* pivots, i32* permutation",
                 s_.batch, 256, places_body, {exchanges, places, out_[1], out_[2]});
  }

  void solve() {
    const Pointer finite = look(), w = transposed(in_[0], s_.n, s_.n, 0, "take", finite),
                  exchanges = scratch_.take(s_.batch * s_.n * 8), info = infos();
    call({.routine = Routine::getrf, .m = s_.n, .n = s_.n}, {w, exchanges, info});
    const Pointer x = transposed(in_[1], s_.n, s_.columns, 0, "take_right");
    call({.routine = Routine::getrs,
          .m = s_.n,
          .n = s_.n,
          .k = s_.columns,
          .transposed = s_.transposed},
         {w, exchanges, x, info});
    turn_back(x, s_.n, s_.columns, s_.n * s_.columns, out_[0], finite);
  }

  void solve_factored() {
    const Pointer lu = in_[1], permutation = in_[2], b = in_[3],
                  x = s_.transposed ? numbers(right()) : out_[0];
    const auto gather = [&](const char* what, Pointer places, Pointer from, Pointer to) {
      element_kernel(what, "const i32* places, const num* b, num* out", right(), gather_body,
                     {places, from, to});
    };
    const TriangleSpec lower{
        .dtype = s_.dtype, .lower = true, .transposed = s_.transposed, .unit_diagonal = true},
        upper{.dtype = s_.dtype, .lower = false, .transposed = s_.transposed};
    if (!s_.transposed) {
      gather("take", permutation, b, x);
      triangle(lower, lu, x);
      triangle(upper, lu, x);
      return;
    }
    const Pointer places = scratch_.take(s_.batch * s_.n * 4);
    copy(b, x);
    triangle(upper, lu, x);
    triangle(lower, lu, x);
    element_kernel("places", "const i32* permutation, i32* places", s_.batch * s_.n, inverse_body,
                   {permutation, places});
    gather("give", places, x, out_[0]);
  }

  void triangular_solve() {
    copy(in_[1], out_[0]);
    triangle({.dtype = s_.dtype,
              .lower = s_.lower,
              .transposed = s_.transposed,
              .unit_diagonal = s_.unit_diagonal},
             in_[0], out_[0]);
  }

  void qr() {
    const std::int64_t left = s_.full ? s_.m : least(), width = std::max(s_.n, left);
    const Pointer finite = look(), w = transposed(in_[0], s_.m, s_.n, s_.m * width, "take", finite),
                  tau = numbers(s_.batch * least()), info = infos();
    call({.routine = Routine::geqrf, .m = s_.m, .n = s_.n, .a_columns = width}, {w, tau, info});
    element_kernel("triangle", "const num* w, const i32* finite, num* out", s_.batch * left * s_.n,
                   triangle_body, {w, finite, out_[1]});
    call({.routine = Routine::orgqr, .m = s_.m, .n = left, .k = least(), .a_columns = width},
         {w, tau, info});
    turn_back(w, s_.m, left, s_.m * width, out_[0], finite);
  }

  void eigh() {
    const Pointer finite = look(), w = numbers(size()), values = numbers(s_.batch * s_.n),
                  info = infos();
    element_kernel("take", "const num* a, const i32* finite, num* w", size(), symmetric_body,
                   {in_[0], finite, w});
    call({.routine = Routine::syevd, .m = s_.n, .n = s_.n, .vectors = s_.vectors},
         {w, values, info});
    give_values(values, finite, info, out_[0]);
    if (s_.vectors) give_vectors(w, w, finite, info, out_[1], Pointer{nobody});
  }

  // A tall matrix, or a wide one transposed: then the longer vectors are vh's.
  void svd() {
    const std::int64_t rows = std::max(s_.m, s_.n), wide = least(), left = s_.full ? rows : wide;
    const Pointer finite = look(), w = numbers(size()), values = numbers(s_.batch * wide),
                  u = numbers(s_.vectors ? s_.batch * rows * left : 0),
                  v = numbers(s_.vectors ? s_.batch * wide * wide : 0), info = infos();
    element_kernel("take", "const num* a, const i32* finite, num* w", size(), tall_body,
                   {in_[0], finite, w});
    call({.routine = Routine::gesvd, .m = rows, .n = wide, .k = left, .vectors = s_.vectors},
         {w, values, u, v, info});
    give_values(values, finite, info, out_[s_.vectors ? 1 : 0]);
    if (!s_.vectors) return;
    if (s_.m < s_.n) give_vectors(u, v, finite, info, out_[2], out_[0]);
    else give_vectors(u, v, finite, info, out_[0], out_[2]);
  }

  // --- parts of these

  std::int64_t least() const { return std::min(s_.m, s_.n); }
  std::int64_t size() const { return s_.batch * s_.m * s_.n; }
  std::int64_t right() const { return s_.batch * s_.n * s_.columns; }
  Pointer numbers(std::int64_t count) {
    return scratch_.take(count * static_cast<std::int64_t>(size_of(s_.dtype)));
  }
  Pointer infos() { return scratch_.take(s_.batch * 4); }
  Pointer look() {
    const Pointer finite = scratch_.take(s_.batch * 4);
    block_kernel("finite", "const num* a, i32* finite", s_.batch, 512, finite_body,
                 {in_[0], finite});
    return finite;
  }
  // The matrices of rows as ones of columns, as many elements from each other as they have, or
  // more. Ones in place of those that are not finite, where that is known, and NaN in place of what
  // comes of these.
  Pointer transposed(Pointer a, std::int64_t height, std::int64_t width, std::int64_t apart = 0,
                     const char* what = "take", Pointer finite = {nobody}) {
    apart = std::max(apart, height * width);
    const Pointer w = numbers(s_.batch * apart);
    turn(what, "const num* a, num* w", s_.batch * height * width, turn_body, {a, w}, finite, height,
         width, apart);
    return w;
  }
  void turn_back(Pointer w, std::int64_t height, std::int64_t width, std::int64_t apart,
                 Pointer out, Pointer finite) {
    turn("give", "const num* w, num* out", s_.batch * height * width, turn_back_body, {w, out},
         finite, height, width, apart);
  }
  void turn(const char* what, std::string_view parameters, std::int64_t count,
            std::string_view body, Pointers pointers, Pointer finite, std::int64_t height,
            std::int64_t width, std::int64_t apart) {
    const bool known = finite.var != nobody;
    if (known) pointers.push_back(finite);
    element_kernel(what, formatted("{}{}", parameters, known ? ", const i32* finite" : ""), count,
                   formatted("{}{}", known ? "" : "  const i32* const finite = 0;\n", body),
                   std::move(pointers), height, width, apart);
  }
  void copy(Pointer from, Pointer to) {
    element_kernel("copy", "const num* a, num* w", right(), "VT_STORE(w, at, VT_LOAD(a, at));\n",
                   {from, to});
  }
  void give_values(Pointer values, Pointer finite, Pointer info, Pointer out) {
    element_kernel("values", "const num* values, const i32* finite, const i32* info, num* out",
                   s_.batch * least(), values_body, {values, finite, info, out});
  }
  void give_vectors(Pointer u, Pointer v, Pointer finite, Pointer info, Pointer longer,
                    Pointer shorter) {
    const bool both = shorter.var != nobody;
    const std::int64_t left = s_.op == Op::svd && s_.full ? std::max(s_.m, s_.n) : least();
    Pointers pointers = {u, v, finite, info, longer};
    if (both) pointers.push_back(shorter);
    block_kernel(
        "vectors",
        formatted("const num* u, const num* v, const i32* finite, const i32* info, num* longer{}",
                  both ? ", num* shorter" : ""),
        s_.batch * left, 128,
        formatted("{}{}", both ? "" : "  num* const shorter = 0;\n", vectors_body),
        std::move(pointers));
  }

  std::string head(const std::string& what, std::string_view parameters, int threads,
                   std::int64_t height, std::int64_t width, std::int64_t apart) const {
    const std::int64_t most = std::max(s_.m, s_.n), left = s_.op == Op::svd
                                                               ? (s_.full ? most : least())
                                                           : s_.full ? s_.m
                                                                     : least();
    std::string text = formatted(
        "typedef {} num;\nenum : long long {{ m = {}, n = {}, least = {}, wide = {}, rows = {}, "
        "left = {}, columns = {} }};\n",
        register_type(s_.dtype), s_.m, s_.n, least(), least(), most, left, s_.columns);
    text += formatted(
        "enum : long long {{ height = {}, width = {}, apart = {}, transposed = {}, clamp = {} "
        "}};\n",
        height, width, s_.op == Op::qr && apart == 0 ? s_.m * std::max(s_.n, left) : apart,
        s_.m < s_.n && s_.op == Op::svd, !s_.transposed);
    return text + formatted("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n",
                            threads, what, parameters);
  }
  std::string kernel_name(const char* what) const {
    return formatted("kernel_{}_{}_{}", name_of(s_.op), name_of(s_.dtype), what);
  }
  // One thread for each of `count` elements …
  void element_kernel(const char* what, std::string_view parameters, std::int64_t count,
                      std::string_view body, Pointers pointers, std::int64_t height = 0,
                      std::int64_t width = 0, std::int64_t apart = 0) {
    const std::string name = kernel_name(what);
    std::string source = head(name, parameters, 256, height, width, apart);
    source += formatted(
        "  const i64 at = (i64)blockIdx.x * 256 + threadIdx.x;\n  if (at >= {}ll) return;\n{}}}\n",
        count, body);
    launches_.push_back({.name = name,
                         .source = std::move(source),
                         .grid = {(count + 255) / 256, 256, 0},
                         .pointers = std::move(pointers)});
  }
  // … or so many blocks.
  void block_kernel(const char* what, std::string_view parameters, std::int64_t blocks, int threads,
                    std::string_view body, Pointers pointers) {
    const std::string name = kernel_name(what);
    std::string source = formatted("{}{}}}\n", head(name, parameters, threads, 0, 0, 0), body);
    launches_.push_back({.name = name,
                         .source = std::move(source),
                         .grid = {blocks, threads, 0},
                         .pointers = std::move(pointers)});
  }
  void call(SolverTask task, Pointers pointers) {
    if (!reason_.empty()) return;
    task.dtype = s_.dtype, task.batch = s_.batch;
    SolverCall made = libraries_.solver(task, &reason_);
    pointers.push_back(scratch_.take(std::max<std::int64_t>(made.work_bytes, 1)));
    launches_.push_back({.name = "cusolver_routine",
                         .pointers = std::move(pointers),
                         .library = std::move(made.call)});
  }
  void triangle(TriangleSpec spec, Pointer a, Pointer b) {
    if (!reason_.empty()) return;
    spec.batch = s_.batch, spec.n = s_.n, spec.columns = s_.columns;
    launches_.push_back({.name = "cublas_triangle",
                         .pointers = {a, b},
                         .library = libraries_.triangle(spec, &reason_)});
  }

  static constexpr Var nobody = -2;
  const LinalgSpec& s_;
  const Pointers &in_, &out_;
  const MatrixLibraries& libraries_;
  ScratchLayout& scratch_;
  Vec<Launch>& launches_;
  std::string reason_;
};

}  // namespace large_matrices

std::string add_large_matrices(const LinalgSpec& s, const SmallVec<Launch::Pointer, 8>& operands,
                               const SmallVec<Launch::Pointer, 8>& results,
                               const MatrixLibraries& libraries, ScratchLayout& scratch,
                               Vec<Launch>& launches) {
  if (is_complex(s.dtype)) return "complex matrices";
  return large_matrices::Steps(s, operands, results, libraries, scratch, launches).add();
}

}  // namespace vt::detail::cuda
