// Operands and parameters at which each op's derivative is held against differences: several cases
// an op, kinks kept at a distance.
#pragma once

#include <map>
#include <set>

#include "derivatives.hpp"

namespace vt_test::derivatives {

struct Case {
  std::string name;
  ParamsRef params;
  Tensors operands;
  double step = 1e-3;  ///< of the differences; kinks must be further away
};
using Cases = std::vector<Case>;

inline Tensor random_of(const Shape& shape, double low, double high, std::uint64_t seed) {
  return vt_test::random_tensor(vt::f64, shape, low, high, seed);
}

/// Distinct numbers in [low, high], shuffled, no two closer than a step of the grid; `phase` in (0,
/// 1) tells operands apart.
inline Tensor spaced(const Shape& shape, double low, double high, double phase,
                     std::uint64_t seed) {
  const auto n = static_cast<std::size_t>(shape.elements());
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i)
    values.push_back(low +
                     (high - low) * (static_cast<double>(i) + phase) / static_cast<double>(n));
  std::mt19937_64 engine(seed + 11);
  std::shuffle(values.begin(), values.end(), engine);
  return vt::tensor(values, shape);
}

inline const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {{}, {1}, {3}, {2, 3}, {0, 3}};
  return all;
}

inline Cases unary(double low, double high, ParamsRef params = {}) {
  Cases cases;
  std::uint64_t seed = 1;
  for (const Shape& s : shapes())
    cases.push_back({s.str(), params, {spaced(s, low, high, 0.3, ++seed)}});
  return cases;
}

/// Equal shapes, and a scalar on either side.
inline Cases binary(double low, double high, double low2, double high2) {
  Cases cases;
  std::uint64_t seed = 50;
  for (const Shape& s : shapes()) {
    const Tensor a = spaced(s, low, high, 0.3, ++seed), b = spaced(s, low2, high2, 0.8, ++seed);
    cases.push_back({s.str(), {}, {a, b}});
    if (s.rank() == 0) continue;
    cases.push_back({"scalar left " + s.str(), {}, {spaced({}, low, high, 0.37, 1), b}});
    cases.push_back({"scalar right " + s.str(), {}, {a, spaced({}, low2, high2, 0.61, 1)}});
  }
  return cases;
}

inline Cases over_axes(double low, double high, bool needs_elements) {
  Cases cases;
  std::uint64_t seed = 100;
  auto add = [&](const Shape& s, const vt::Axes& axes) {
    cases.push_back({s.str() + " over " + axes.str(),
                     make_params(AxesParams{axes}),
                     {spaced(s, low, high, 0.3, ++seed)}});
  };
  add({}, {});
  add({1}, {0});
  add({3}, {0});
  add({2, 3}, {0});
  add({2, 3}, {1});
  add({2, 3}, {0, 1});
  add({2, 3, 4}, {1});
  add({2, 3, 4}, {0, 2});
  add({0, 3}, {1});
  if (!needs_elements) add({0, 3}, {0});
  return cases;
}

inline Cases sorts() {
  const Shape cube{2, 5, 3};
  Cases cases;
  for (int axis : {0, 1, 2}) {
    const std::int64_t n = cube[axis];
    const std::string along = " along " + std::to_string(axis);
    cases.push_back({"one operand" + along,
                     make_params(SortParams{axis, 1, axis == 1, 0, n}),
                     {spaced(cube, -2, 2, 0.02, 1)}});
    cases.push_back({"two operands" + along,
                     make_params(SortParams{axis, 1, false, 0, n}),
                     {spaced(cube, -2, 2, 0.02, 2), random_of(cube, -2, 2, 3)}});
    cases.push_back({"some places" + along,
                     make_params(SortParams{axis, 1, true, 1, n}),
                     {spaced(cube, -2, 2, 0.02, 4), random_of(cube, -2, 2, 5)}});
  }
  // Ties of the first key, which is no float, are broken by the second.
  const Tensor group = vt::tensor({1, 0, 1, 0, 0, 1, 1});
  cases.push_back({"two keys",
                   make_params(SortParams{0, 2, false, 0, 7}),
                   {group, spaced({7}, -2, 2, 0.1, 6), random_of({7}, -2, 2, 7)}});
  cases.push_back(
      {"one element", make_params(SortParams{0, 1, false, 0, 1}), {random_of({1}, -2, 2, 8)}});
  cases.push_back(
      {"nothing", make_params(SortParams{1, 1, false, 0, 0}), {random_of({3, 0}, -2, 2, 8)}});
  return cases;
}

/// Well-conditioned matrices: random ones and a multiple of the unit matrix; distinct eigenvalues
/// and singular values.
inline Tensor matrices(const Shape& shape, std::uint64_t seed) {
  std::vector<double> values = random_of(shape, -1, 1, seed).to_vector<double>();
  const std::int64_t m = shape[shape.size() - 2], n = shape[shape.size() - 1];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i) % (m * n);
    if (at / n == at % n) values[i] += 3 + static_cast<double>(at % n);
  }
  return vt::tensor(values, shape);
}
inline Cases square_matrices(ParamsRef params = {}) {
  Cases cases;
  for (const Shape& s : {Shape{1, 1}, Shape{3, 3}, Shape{2, 2, 2}, Shape{0, 0}})
    cases.push_back({s.str(), params, {matrices(s, 300)}});
  return cases;
}
inline Cases all_matrices(ParamsRef params = {}) {
  Cases cases = square_matrices(params);
  for (const Shape& s : {Shape{4, 2}, Shape{2, 4}, Shape{2, 3, 2}, Shape{0, 2}})
    cases.push_back({s.str(), params, {matrices(s, 301)}});
  return cases;
}
inline Cases triangular_systems() {
  Cases cases;
  for (bool lower : {true, false})
    for (bool transposed : {true, false})
      for (bool unit : {true, false}) {
        const ParamsRef p = make_params(TriangularParams{lower, transposed, unit});
        cases.push_back({describe(Op::triangular_solve, p),
                         p,
                         {matrices({3, 3}, 302), random_of({3, 2}, -2, 2, 303)}});
      }
  cases.push_back({"batch",
                   make_params(TriangularParams{}),
                   {matrices({2, 2, 2}, 302), random_of({2, 2, 1}, -2, 2, 303)}});
  return cases;
}
inline Cases systems() {
  Cases cases;
  for (bool transposed : {true, false}) {
    const ParamsRef p = make_params(SolveParams{transposed});
    cases.push_back(
        {describe(Op::solve, p), p, {matrices({3, 3}, 304), random_of({3, 2}, -2, 2, 305)}});
    cases.push_back({"batch, " + describe(Op::solve, p),
                     p,
                     {matrices({2, 2, 2}, 306), random_of({2, 2, 1}, -2, 2, 307)}});
  }
  return cases;
}

inline Cases along_axis(double low, double high) {
  Cases cases;
  std::uint64_t seed = 150;
  for (bool reverse : {false, true}) {
    auto add = [&](const Shape& s, int axis) {
      cases.push_back({s.str() + " along " + std::to_string(axis) + (reverse ? " reverse" : ""),
                       make_params(CumulativeParams{axis, reverse}),
                       {spaced(s, low, high, 0.3, ++seed)}});
    };
    add({1}, 0);
    add({3}, 0);
    add({7}, 0);
    add({2, 3}, 0);
    add({2, 3}, 1);
    add({2, 5, 2}, 1);
    add({0, 3}, 0);
    add({0, 3}, 1);
  }
  return cases;
}

inline GatherParams rows_gather(std::int64_t columns, IndexMode mode) {
  GatherParams g;
  g.offset_dims = {1};
  g.collapsed_slice_dims = {0};
  g.start_index_map = {0};
  g.slice_sizes = {1, columns};
  g.mode = mode;
  return g;
}

inline Cases gathers() {
  Cases cases;
  const Tensor x = random_of({4, 3}, -2, 2, 7);
  for (IndexMode mode : {IndexMode::clip, IndexMode::fill}) {
    const std::string name = mode == IndexMode::clip ? "clip" : "fill";
    cases.push_back({"rows, repeated and out of range, " + name,
                     make_params(rows_gather(3, mode)),
                     {x, ints({1, 1, 9, -4, 3}, {5, 1})}});
    GatherParams window;  // windows of 2 × 2 at (row, column)
    window.offset_dims = {1, 2};
    window.start_index_map = {0, 1};
    window.slice_sizes = {2, 2};
    window.mode = mode;
    cases.push_back(
        {"windows, " + name, make_params(window), {x, ints({0, 0, 2, 1, 1, 1, 3, 2}, {4, 2})}});
  }
  GatherParams along;  // one element per row, rows in step
  along.collapsed_slice_dims = {1};
  along.start_index_map = {1};
  along.operand_batching_dims = {0};
  along.indices_batching_dims = {0};
  along.slice_sizes = {1, 1};
  cases.push_back({"batching", make_params(along), {x, ints({2, 0, 1, 1}, {4, 1})}});
  cases.push_back(
      {"no indices", make_params(rows_gather(3, IndexMode::clip)), {x, ints({}, {0, 1})}});
  cases.push_back({"from nothing",
                   make_params(rows_gather(3, IndexMode::fill)),
                   {random_of({0, 3}, -2, 2, 1), ints({}, {0, 1})}});
  return cases;
}

/// `low`, `high`: of operand and updates. Indices repeat, and one is out of range.
inline Cases scatters(double low, double high) {
  Cases cases;
  for (IndexMode mode : {IndexMode::clip, IndexMode::fill}) {
    const std::string name = mode == IndexMode::clip ? "clip" : "fill";
    ScatterParams rows;
    rows.update_window_dims = {1};
    rows.inserted_window_dims = {0};
    rows.scatter_dims_to_operand_dims = {0};
    rows.mode = mode;
    const Tensor x = spaced({4, 3}, low, high, 0.2, 3), updates = spaced({5, 3}, low, high, 0.7, 4);
    cases.push_back(
        {"rows repeated, " + name, make_params(rows), {x, ints({1, 1, 9, 3, 1}, {5, 1}), updates}});
    ScatterParams unique = rows;
    unique.unique = true;
    cases.push_back({"rows unique, " + name,
                     make_params(unique),
                     {x, ints({3, 0}, {2, 1}), spaced({2, 3}, low, high, 0.7, 5)}});
    ScatterParams window;
    window.update_window_dims = {1, 2};
    window.scatter_dims_to_operand_dims = {0, 1};
    window.mode = mode;
    cases.push_back(
        {"windows, " + name,
         make_params(window),
         {x, ints({0, 0, 2, 1, 1, 1, 3, 2}, {4, 2}), spaced({4, 2, 2}, low, high, 0.7, 6)}});
  }
  ScatterParams along;
  along.inserted_window_dims = {1};
  along.scatter_dims_to_operand_dims = {1};
  along.operand_batching_dims = {0};
  along.indices_batching_dims = {0};
  cases.push_back({"batching",
                   make_params(along),
                   {spaced({4, 3}, low, high, 0.2, 3), ints({2, 0, 1, 1}, {4, 1}),
                    spaced({4}, low, high, 0.7, 8)}});
  ScatterParams none = cases[0].params->as<ScatterParams>();
  cases.push_back(
      {"no updates",
       make_params(none),
       {spaced({4, 3}, low, high, 0.2, 3), ints({}, {0, 1}), random_of({0, 3}, low, high, 9)}});
  return cases;
}

inline Cases dots() {
  Cases cases;
  std::uint64_t seed = 300;
  auto add = [&](const Shape& a, const Shape& b, DotParams p) {
    p.dtype = vt::f64;
    cases.push_back({a.str() + " · " + b.str(),
                     make_params(p),
                     {random_of(a, -2, 2, ++seed), random_of(b, -2, 2, ++seed)}});
  };
  add({3}, {3}, {{0}, {0}, {}, {}});
  add({2, 3}, {3, 4}, {{1}, {0}, {}, {}});
  add({3, 2}, {4, 3}, {{0}, {1}, {}, {}});
  add({5, 2, 3}, {5, 3, 4}, {{2}, {1}, {0}, {0}});
  add({2, 5, 3}, {4, 3, 5}, {{2}, {1}, {1}, {2}});
  add({2, 3, 4}, {4, 2, 3}, {{0, 2}, {1, 0}, {}, {}});
  add({2, 3}, {4}, {{}, {}, {}, {}});
  add({2, 0}, {0, 3}, {{1}, {0}, {}, {}});
  add({3, 2, 4, 5}, {5, 4, 3, 2}, {{3, 1}, {0, 3}, {2, 0}, {1, 2}});
  return cases;
}

/// Rows of arrays of 4 and 3 rows: some twice, some of none.
inline Cases rows_of_arrays(bool sums) {
  Cases cases;
  for (const bool many : {false, true}) {
    RowsParams p{{{0, 1, 3}, {1, 2, 1}, {-1, 0, 2}, {0, 3, 1}}};
    for (int i = 0; many && i < 9; ++i) p.runs.push_back({i % 2, i % 3, 1});
    if (sums) p.extents = {4, 3};
    const std::vector<vt::Tensor> arrays = {random_of({4, 2}, -2, 2, 351),
                                            random_of({3, 2}, -2, 2, 352)};
    const std::vector<vt::Tensor> all = {random_of({p.count(), 2}, -2, 2, 353)};
    cases.push_back({many ? "many runs" : "few runs", make_params(p), sums ? all : arrays});
  }
  return cases;
}

inline Cases windows(bool sums) {
  Cases cases;
  std::uint64_t seed = 350;
  auto add = [&](const Shape& shape, WindowParams p) {
    for (int axis : p.axes) p.extents.push_back(shape[axis]);
    Shape parts = shape;
    for (std::size_t k = 0; k < p.axes.size(); ++k) parts[p.axes[k]] = p.count(k);
    parts.append(p.sizes.begin(), p.sizes.end());
    cases.push_back({shape.str() + " along " + p.axes.str(),
                     make_params(p),
                     {random_of(sums ? parts : shape, -2, 2, ++seed)}});
  };
  add({5}, {{0}, {3}, {1}, {1}, {}});
  add({2, 7}, {{1}, {2}, {2}, {3}, {}});
  add({5, 2, 6}, {{0, 2}, {2, 3}, {2, 1}, {1, 2}, {}});
  add({2, 3}, {{1}, {4}, {1}, {1}, {}});
  return cases;
}

// One spatial axis with everything odd, two in another order in either operand, groups, nothing to
// slide over.
inline Cases convolutions() {
  Cases cases;
  std::uint64_t seed = 370;
  auto add = [&](const Shape& a, const Shape& b, ConvParams p) {
    p.dot.dtype = vt::f64;
    cases.push_back({a.str() + " · " + b.str(),
                     make_params(p),
                     {random_of(a, -2, 2, ++seed), random_of(b, -2, 2, ++seed)}});
  };
  const DotParams images{{2}, {1}, {}, {}, vt::f64};
  for (std::int64_t stride : {1, 2, 3})
    for (std::int64_t low : {-2, 0, 3})
      for (std::int64_t high : {-1, 0, 2})
        for (std::int64_t extend : {1, 2})
          for (std::int64_t dilation : {1, 2})
            add({2, 6, 2}, {3, 2, 2},
                {images, {1}, {0}, {stride}, {low}, {high}, {extend}, {dilation}});
  add({3, 4, 2, 5}, {2, 3, 4, 2},
      {{{1}, {2}, {}, {}, vt::f64}, {3, 2}, {1, 3}, {1, 2}, {1, 0}, {0, 1}, {1, 2}, {2, 1}});
  add({2, 4, 3, 2}, {3, 2, 2, 4},
      {{{3}, {1}, {2}, {0}, vt::f64}, {1}, {2}, {1}, {1}, {1}, {1}, {1}});
  add({5, 2, 3, 4}, {3, 5, 2, 4},
      {{{3, 1}, {3, 2}, {}, {}, vt::f64}, {0}, {1}, {1}, {4}, {4}, {1}, {1}});
  add({2, 2, 3}, {4, 3, 2}, {{{2}, {1}, {}, {}, vt::f64}, {1}, {0}, {1}, {0}, {0}, {1}, {1}});
  add({2, 0, 3}, {2, 3, 2}, {{{2}, {1}, {}, {}, vt::f64}, {1}, {0}, {1}, {2}, {1}, {1}, {1}});
  add({2, 4, 0}, {2, 0, 3}, {{{2}, {1}, {}, {}, vt::f64}, {1}, {0}, {1}, {0}, {0}, {1}, {1}});
  return cases;
}

inline Cases reduces() {
  Cases cases;
  const Aval scalar(vt::f64, Shape{});
  auto body = [&](const Flat& f, std::size_t n) {
    const std::vector<Aval> avals(2 * n, scalar);
    return std::make_shared<const GraphBody>(record(f, avals, {.kind = ScopeKind::branch}).graph);
  };
  const GraphRef product = body(
      [](std::span<const Tensor> a) { return Tensors{emit(Op::mul, {}, {a[0], a[1]}, {})}; }, 1);
  // log-sum-exp of two
  const GraphRef soft = body(
      [](std::span<const Tensor> a) {
        const Tensor sum =
            emit(Op::add, {}, {emit(Op::exp, {}, {a[0]}, {}), emit(Op::exp, {}, {a[1]}, {})}, {});
        return Tensors{emit(Op::log, {}, {sum}, {})};
      },
      1);
  // affine maps x ↦ p·x + q composed: associative, not commutative
  const GraphRef affine = body(
      [](std::span<const Tensor> a) {
        return Tensors{emit(Op::mul, {}, {a[0], a[2]}, {}),
                       emit(Op::add, {}, {emit(Op::mul, {}, {a[2], a[1]}, {}), a[3]}, {})};
      },
      2);
  std::uint64_t seed = 400;
  auto one = [&](const char* name, const GraphRef& f, double init, const Shape& s,
                 const vt::Axes& axes) {
    cases.push_back({std::string(name) + s.str() + axes.str(),
                     make_params(ReduceParams{axes, f}),
                     {random_of(s, 0.5, 1.5, ++seed), vt::tensor(init)}});
  };
  for (const GraphRef& f : {product, soft}) {
    const char* name = f == product ? "product " : "soft ";
    one(name, f, 1.25, {1}, {0});
    one(name, f, 1.25, {5}, {0});
    one(name, f, 1.25, {2, 3}, {0});
    one(name, f, 1.25, {2, 3, 4}, {0, 2});
    one(name, f, 1.25, {0, 3}, {0});
    one(name, f, 1.25, {2, 3}, {});
  }
  for (const Shape& s : {Shape{4}, Shape{3, 2}, Shape{2, 7}})
    cases.push_back({"affine " + s.str(),
                     make_params(ReduceParams{{s.rank() - 1}, affine}),
                     {random_of(s, 0.5, 1.5, ++seed), random_of(s, -1, 1, ++seed), vt::tensor(1.0),
                      vt::tensor(0.5)}});
  return cases;
}

inline Cases selects() {
  Cases cases;
  std::uint64_t seed = 500;
  for (const Shape& s : shapes()) {
    const Tensor p = vt_test::random_tensor(vt::bool_, s, ++seed), a = random_of(s, -2, 2, ++seed),
                 b = random_of(s, -2, 2, ++seed);
    cases.push_back({s.str(), {}, {p, a, b}});
    if (s.rank() == 0) continue;
    cases.push_back({"scalar first " + s.str(), {}, {p, vt::tensor(0.5), b}});
    cases.push_back({"scalar second " + s.str(), {}, {p, a, vt::tensor(0.5)}});
    cases.push_back({"scalars " + s.str(), {}, {p, vt::tensor(0.25), vt::tensor(0.5)}});
    cases.push_back({"scalar predicate " + s.str(), {}, {vt::tensor(true), a, b}});
  }
  return cases;
}

inline Cases paddings() {
  Cases cases;
  std::uint64_t seed = 600;
  auto add = [&](const Shape& s, PadParams p) {
    cases.push_back({s.str() + p.low.str() + p.high.str() + p.interior.str(),
                     make_params(p),
                     {random_of(s, -2, 2, ++seed), vt::tensor(0.75)}});
  };
  add({}, {{}, {}, {}});
  add({3}, {{1}, {2}, {0}});
  add({3}, {{0}, {0}, {2}});
  add({4}, {{-1}, {-2}, {0}});
  add({4}, {{-2}, {1}, {1}});
  add({2, 3}, {{1, -1}, {0, 2}, {1, 2}});
  add({2, 3}, {{-2, 0}, {1, 0}, {0, 1}});
  add({0, 3}, {{2, 0}, {1, 0}, {0, 0}});
  add({0, 3}, {{0, 1}, {0, -2}, {0, 1}});
  return cases;
}

inline Cases slices() {
  Cases cases;
  std::uint64_t seed = 700;
  auto add = [&](const Shape& s, SliceParams p) {
    cases.push_back({s.str() + p.start.str() + p.limit.str() + p.stride.str(),
                     make_params(p),
                     {random_of(s, -2, 2, ++seed)}});
  };
  add({}, {{}, {}, {}});
  add({7}, {{1}, {6}, {1}});
  add({7}, {{1}, {7}, {3}});
  add({7}, {{0}, {6}, {4}});
  add({7}, {{3}, {3}, {2}});
  add({4, 5}, {{1, 0}, {3, 5}, {1, 2}});
  add({0, 3}, {{0, 1}, {0, 3}, {1, 1}});
  return cases;
}

inline Tensor scalar_index(int i) { return vt::tensor(i); }

inline const std::map<Op, Cases>& table() {
  static const std::map<Op, Cases> rows = [] {
    std::map<Op, Cases> t;
    t[Op::neg] = unary(-2, 2);
    t[Op::meeting] = unary(-2, 2);
    t[Op::abs] = unary(-2, 2);
    t[Op::exp] = unary(-2, 2);
    t[Op::exp2] = unary(-2, 2);
    t[Op::expm1] = unary(-2, 2);
    t[Op::log] = unary(0.3, 3);
    t[Op::log1p] = unary(-0.6, 2);
    t[Op::log2] = unary(0.3, 3);
    t[Op::sqrt] = unary(0.3, 3);
    t[Op::rsqrt] = unary(0.3, 3);
    t[Op::cbrt] = unary(0.3, 3);
    t[Op::sin] = unary(-3, 3);
    t[Op::cos] = unary(-3, 3);
    t[Op::tan] = unary(-1.1, 1.1);
    t[Op::asin] = unary(-0.8, 0.8);
    t[Op::acos] = unary(-0.8, 0.8);
    t[Op::atan] = unary(-3, 3);
    t[Op::sinh] = unary(-2, 2);
    t[Op::cosh] = unary(-2, 2);
    t[Op::tanh] = unary(-2, 2);
    t[Op::asinh] = unary(-3, 3);
    t[Op::acosh] = unary(1.3, 4);
    t[Op::atanh] = unary(-0.8, 0.8);
    t[Op::sigmoid] = unary(-3, 3);
    t[Op::erf] = unary(-2, 2);
    t[Op::erfc] = unary(-2, 2);
    t[Op::erf_inv] = unary(-0.8, 0.8);
    t[Op::lgamma] = unary(0.4, 5);
    t[Op::digamma] = unary(0.4, 5);
    t[Op::gamma] = unary(0.4, 4);
    for (Op op : {Op::erfcx, Op::ndtr, Op::log_ndtr, Op::dawsn, Op::fresnel_sin, Op::fresnel_cos,
                  Op::bessel_j0, Op::bessel_j1})
      t[op] = unary(-2, 2);
    t[Op::erfc_inv] = unary(0.3, 1.7);
    t[Op::expi] = unary(0.2, 3);
    t[Op::spence] = unary(0.2, 3);
    for (Op op : {Op::bessel_i0e, Op::bessel_i1e, Op::bessel_k0e, Op::bessel_k1e, Op::bessel_y0,
                  Op::bessel_y1})
      t[op] = unary(0.3, 3);
    for (Op op : {Op::bessel_i0e, Op::bessel_i1e, Op::expi})
      for (Case& c : unary(-3, -0.2)) t[op].push_back(c);
    t[Op::zeta] = binary(1.5, 4, 0.4, 5);
    for (double low : {-2.85, -1.85, -0.85})
      for (Op op : {Op::lgamma, Op::digamma})
        for (Case& c : unary(low, low + 0.6)) t[op].push_back(c);
    for (int n : {-2, -1, 0, 1, 2, 3, 5})
      for (Case& c : unary(0.4, 2, make_params(IntegerPowParams{n})))
        t[Op::integer_pow].push_back(c);
    t[Op::convert] = unary(-2, 2, make_params(ConvertParams{vt::f64}));
    t[Op::reduce_precision] = unary(-2, 2, make_params(PrecisionParams{11, 52}));

    t[Op::add] = binary(-2, 2, -2, 2);
    t[Op::sub] = binary(-2, 2, -2, 2);
    t[Op::mul] = binary(-2, 2, -2, 2);
    t[Op::div] = binary(-2, 2, 0.5, 2);
    t[Op::rem] = binary(4.4, 4.9, 1.3, 1.42) /* quotients stay between 3 and 4 */;
    for (Case& c : binary(-4.9, -4.4, 1.3, 1.42)) t[Op::rem].push_back(c);
    t[Op::pow] = binary(0.4, 2, -2, 2);
    for (double n : {-1.5, 0.0, 1.0, 2.0, 3.0, 0.5})
      for (Case& c : unary(0.4, 2)) {
        c.operands.push_back(vt::full({}, n));  // an exponent that the rule can see
        t[Op::pow].push_back(c);
      }
    t[Op::max] = binary(-2, 2, -2, 2);
    t[Op::min] = binary(-2, 2, -2, 2);
    t[Op::atan2] = binary(-2, 2, -2, 2);
    t[Op::nextafter] = binary(-2, 2, -2, 2);
    t[Op::select] = selects();

    t[Op::reduce_sum] = over_axes(-2, 2, false);
    t[Op::reduce_prod] = over_axes(-2, 2, false);
    t[Op::reduce_max] = over_axes(-2, 2, true);
    t[Op::reduce_min] = over_axes(-2, 2, true);
    t[Op::reduce] = reduces();
    t[Op::cumsum] = along_axis(-2, 2);
    t[Op::cumprod] = along_axis(-2, 2);
    t[Op::cummax] = along_axis(-2, 2);
    t[Op::cummin] = along_axis(-2, 2);
    t[Op::cumlogsumexp] = along_axis(-2, 2);

    t[Op::sort] = sorts();

    t[Op::cholesky] = square_matrices();
    t[Op::triangular_solve] = triangular_systems();
    t[Op::lu] = all_matrices();
    t[Op::solve] = systems();
    t[Op::qr] = all_matrices(make_params(DecompositionParams{}));
    for (const Case& c : all_matrices(make_params(DecompositionParams{.pivoted = true})))
      t[Op::qr].push_back(c);
    t[Op::eigh] = square_matrices(make_params(DecompositionParams{}));
    for (const Case& c : square_matrices(make_params(DecompositionParams{false, false})))
      t[Op::eigh].push_back(c);
    t[Op::svd] = all_matrices(make_params(DecompositionParams{}));
    for (const Case& c : all_matrices(make_params(DecompositionParams{false, false})))
      t[Op::svd].push_back(c);
    for (Op op : {Op::qr, Op::svd})
      for (const Case& c : square_matrices(make_params(DecompositionParams{true, true})))
        t[op].push_back(c);
    t[Op::tridiagonal_solve] = {
        {"[4]",
         {},
         {random_of({4}, -1, 1, 308), random_of({4}, 3, 4, 309), random_of({4}, -1, 1, 310),
          random_of({4, 2}, -2, 2, 311)}},
        {"[2,1]",
         {},
         {random_of({2, 1}, -1, 1, 312), random_of({2, 1}, 3, 4, 313),
          random_of({2, 1}, -1, 1, 314), random_of({2, 1, 2}, -2, 2, 315)}}};

    t[Op::reshape] = {{"[2,3]", make_params(ShapeParams{{3, 2}}), {random_of({2, 3}, -2, 2, 1)}},
                      {"[1]", make_params(ShapeParams{{}}), {random_of({1}, -2, 2, 1)}},
                      {"[0,3]", make_params(ShapeParams{{3, 0}}), {random_of({0, 3}, -2, 2, 1)}}};
    t[Op::transpose] = {
        {"[2,3]", make_params(PermutationParams{{1, 0}}), {random_of({2, 3}, -2, 2, 2)}},
        {"[2,3,4]", make_params(PermutationParams{{1, 2, 0}}), {random_of({2, 3, 4}, -2, 2, 3)}},
        {"[]", make_params(PermutationParams{{}}), {random_of({}, -2, 2, 3)}},
        {"[0,3]", make_params(PermutationParams{{1, 0}}), {random_of({0, 3}, -2, 2, 3)}}};
    t[Op::broadcast_in_dim] = {
        {"[]", make_params(BroadcastParams{{2, 3}, {}}), {random_of({}, -2, 2, 4)}},
        {"[3]", make_params(BroadcastParams{{2, 3}, {1}}), {random_of({3}, -2, 2, 5)}},
        {"[2,1]", make_params(BroadcastParams{{2, 4, 3}, {0, 2}}), {random_of({2, 1}, -2, 2, 6)}},
        {"[1,1]", make_params(BroadcastParams{{1, 3}, {0, 1}}), {random_of({1, 1}, -2, 2, 6)}},
        {"[1] to nothing", make_params(BroadcastParams{{0, 3}, {0}}), {random_of({1}, -2, 2, 6)}}};
    t[Op::concatenate] = {
        {"axis 0",
         make_params(AxisParams{0}),
         {random_of({2, 3}, -2, 2, 7), random_of({1, 3}, -2, 2, 8), random_of({0, 3}, -2, 2, 8)}},
        {"axis 1",
         make_params(AxisParams{1}),
         {random_of({2, 3}, -2, 2, 7), random_of({2, 1}, -2, 2, 8)}}};
    t[Op::pad] = paddings();
    t[Op::rev] = {
        {"[2,3] over (0,)", make_params(AxesParams{{0}}), {random_of({2, 3}, -2, 2, 9)}},
        {"[2,3] over (0,1)", make_params(AxesParams{{0, 1}}), {random_of({2, 3}, -2, 2, 9)}},
        {"[0,3]", make_params(AxesParams{{1}}), {random_of({0, 3}, -2, 2, 9)}}};
    t[Op::slice] = slices();
    const Tensor x = random_of({4, 5}, -2, 2, 10);
    for (int i : {0, 1, 9, -3}) {
      const std::string at = "at " + std::to_string(i);
      t[Op::dynamic_slice].push_back(
          {at, make_params(ShapeParams{{2, 3}}), {x, scalar_index(i), scalar_index(1)}});
      t[Op::dynamic_update_slice].push_back(
          {at, {}, {x, random_of({2, 3}, -2, 2, 11), scalar_index(i), scalar_index(1)}});
    }
    t[Op::gather] = gathers();
    t[Op::scatter] = scatters(-2, 2);
    t[Op::scatter_add] = scatters(-2, 2);
    t[Op::scatter_mul] = scatters(0.5, 1.5);
    t[Op::scatter_min] = scatters(-2, 2);
    t[Op::scatter_max] = scatters(-2, 2);
    t[Op::rows] = rows_of_arrays(false);
    t[Op::rows_add] = rows_of_arrays(true);
    t[Op::windows] = windows(false);
    t[Op::overlap_add] = windows(true);
    t[Op::dot_general] = dots();
    t[Op::conv_general] = convolutions();
    return t;
  }();
  return rows;
}

/// Ops whose derivative is zero or which have no float result; with operands, to see that it is.
inline const std::vector<Op> piecewise_constant = {Op::sign,  Op::floor, Op::ceil,
                                                   Op::round, Op::trunc, Op::stop_gradient};
inline const std::vector<Op> without_derivative = {Op::input,
                                                   Op::constant,
                                                   Op::full,
                                                   Op::iota,
                                                   Op::is_finite,
                                                   Op::is_nan,
                                                   Op::is_inf,
                                                   Op::not_,
                                                   Op::popcount,
                                                   Op::clz,
                                                   Op::bitcast,
                                                   Op::eq,
                                                   Op::ne,
                                                   Op::lt,
                                                   Op::le,
                                                   Op::gt,
                                                   Op::ge,
                                                   Op::and_,
                                                   Op::or_,
                                                   Op::xor_,
                                                   Op::shift_left,
                                                   Op::shift_right_logical,
                                                   Op::shift_right_arithmetic,
                                                   Op::threefry,
                                                   Op::reduce_any,
                                                   Op::reduce_all,
                                                   Op::argmax,
                                                   Op::argmin,
                                                   Op::debug_print,
                                                   Op::check,
                                                   Op::callback};
// complex_test, fft_test, linalg_complex_test
inline const std::vector<Op> of_complex = {Op::real,    Op::imag, Op::conj,
                                           Op::complex, Op::fft,  Op::eig};
// custom_rules_test, batched_call_test, control_grad_test, recursion_test; nothing differentiates a
// fused region
inline const std::vector<Op> with_sub_graphs = {
    Op::call,       Op::batched_call, Op::recursive_call, Op::custom_jvp,
    Op::custom_vjp, Op::custom_vmap,  Op::checkpoint,     Op::cond,
    Op::while_,     Op::scan,         Op::fused_region};

// vmap_collectives_test, shard_map_test
inline const std::vector<Op> between_lanes = {Op::psum,       Op::pmax,       Op::pmin,
                                              Op::all_gather, Op::all_to_all, Op::ppermute,
                                              Op::spread,     Op::axis_index};

}  // namespace vt_test::derivatives
