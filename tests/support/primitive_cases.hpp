// The table of primitive cases: for every op, operands and parameters that a property test can run,
// whatever the transform.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "property.hpp"
#include "src/trace/ir/called_function.hpp"
#include "src/trace/ir/graph.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"

namespace vt_test {

struct OperandSpec {
  vt::DType dtype;
  vt::Shape shape;
  double low = -2, high = 2;
  /// Added to the diagonals of the last two axes, where these are square: factors exist then, and
  /// are not made of rounding errors.
  double diagonal = 0;
};

struct PrimitiveCase {
  vt::detail::Op op;
  vt::detail::ParamsRef params;
  std::vector<OperandSpec> operands;
  /// Element-wise and moving ops give the same bits however they are batched; inexact ones may
  /// differ in the last places where a backend has several kernels for them.
  double ulps = 0;
  double absolute = 0;  ///< of decompositions, whose elements are rounded as the whole matrix is
  Tolerance tolerance() const { return {.ulps = ulps, .relative = absolute, .absolute = absolute}; }

  std::string name() const {
    std::string text = vt::detail::describe(op, params) + "(";
    for (std::size_t i = 0; i < operands.size(); ++i)
      text +=
          (i ? ", " : "") + std::string(vt::name_of(operands[i].dtype)) + operands[i].shape.str();
    return text + ")";
  }
  std::vector<vt::Tensor> run(std::span<const vt::Tensor> arguments) const {
    const auto results = vt::detail::emit_all(op, params, arguments, vt::CallSite{});
    return {results.begin(), results.end()};
  }
  /// Quarters (whole numbers for the integer dtypes) in the operand's range, so that sums and
  /// products are exact.
  vt::Tensor operand(std::size_t i, std::uint64_t seed) const {
    const OperandSpec& s = operands[i];
    if (!vt::is_inexact(s.dtype)) return random_tensor(s.dtype, s.shape, s.low, s.high, seed);
    vt::Shape numbers = s.shape;
    if (vt::is_complex(s.dtype)) numbers.push_back(2);
    std::vector<double> values =
        random_tensor(vt::i32, numbers, std::ceil(s.low * 4), std::floor(s.high * 4), seed)
            .to_vector<double>();
    for (double& v : values) v /= 4;
    const std::int64_t n = s.shape.empty() ? 0 : s.shape.back();
    if (s.diagonal != 0 && s.shape.size() > 1 && s.shape[s.shape.size() - 2] == n)
      for (std::size_t k = 0; k < values.size(); ++k)
        if (static_cast<std::int64_t>(k) / n % n == static_cast<std::int64_t>(k) % n)
          values[k] += s.diagonal;
    return make_tensor(s.dtype, s.shape, values);
  }
};

namespace primitive_table {

using namespace vt::detail;
using vt::Axes, vt::Shape, vt::DType;

inline void add_unary(std::vector<PrimitiveCase>& cases) {
  auto add = [&](Op op, ParamsRef p, DType d, double low, double high, double ulps = 0) {
    for (const Shape& shape : {Shape{}, Shape{2, 3}})
      cases.push_back({op, p, {{d, shape, low, high}}, ulps});
  };
  for (DType d : {vt::f32, vt::f64, vt::f16}) {
    for (Op op : {Op::neg, Op::abs, Op::sign, Op::floor, Op::ceil, Op::round, Op::trunc,
                  Op::is_finite, Op::is_nan, Op::is_inf, Op::stop_gradient, Op::meeting})
      add(op, {}, d, -3, 3);
    for (Op op : {Op::exp, Op::exp2, Op::expm1, Op::sin, Op::cos, Op::tan, Op::atan, Op::sinh,
                  Op::cosh, Op::tanh, Op::asinh, Op::sigmoid, Op::erf, Op::erfc, Op::cbrt})
      add(op, {}, d, -2, 2, 4);
    for (Op op : {Op::log, Op::log1p, Op::log2, Op::sqrt, Op::rsqrt, Op::lgamma, Op::digamma})
      add(op, {}, d, 0.25, 3, 4);
    for (Op op : {Op::asin, Op::acos, Op::atanh, Op::erf_inv}) add(op, {}, d, -0.75, 0.75, 4);
    for (Op op : {Op::gamma, Op::erfc_inv, Op::expi, Op::spence, Op::bessel_k0e, Op::bessel_k1e,
                  Op::bessel_y0, Op::bessel_y1})
      add(op, {}, d, 0.5, 1.75, 16);
    for (Op op : {Op::erfcx, Op::ndtr, Op::log_ndtr, Op::dawsn, Op::fresnel_sin, Op::fresnel_cos,
                  Op::bessel_i0e, Op::bessel_i1e, Op::bessel_j0, Op::bessel_j1})
      add(op, {}, d, -2, 2, 16);
    add(Op::acosh, {}, d, 1, 3, 4);
    add(Op::integer_pow, make_params(IntegerPowParams{3}), d, -2, 2);
    add(Op::reduce_precision, make_params(PrecisionParams{5, 4}), d, -2, 2);
    add(Op::convert, make_params(ConvertParams{vt::i32, false}), d, -3, 3);
  }
  for (DType d : {vt::i32, vt::u8, vt::i64}) {
    for (Op op : {Op::neg, Op::not_, Op::popcount, Op::clz}) add(op, {}, d, -100, 100);
    add(Op::convert, make_params(ConvertParams{vt::f32, false}), d, -100, 100);
  }
  add(Op::not_, {}, vt::bool_, 0, 1);
  add(Op::bitcast, make_params(ConvertParams{vt::u32, false}), vt::f32, -2, 2);
  add(Op::bitcast, make_params(ConvertParams{vt::f64, false}), vt::i64, 0, 100);
}

inline void add_binary(std::vector<PrimitiveCase>& cases) {
  auto add = [&](Op op, DType d, double low, double high, double low2, double high2,
                 double ulps = 0) {
    const Shape scalar{}, shaped{2, 3};
    for (const auto& [a, b] : {std::pair(shaped, shaped), std::pair(shaped, scalar),
                               std::pair(scalar, shaped), std::pair(scalar, scalar)})
      cases.push_back({op, {}, {{d, a, low, high}, {d, b, low2, high2}}, ulps});
  };
  for (DType d : {vt::f32, vt::f64}) {
    for (Op op : {Op::add, Op::sub, Op::mul, Op::max, Op::min, Op::nextafter, Op::eq, Op::ne,
                  Op::lt, Op::le, Op::gt, Op::ge})
      add(op, d, -2, 2, -2, 2);
    for (Op op : {Op::div, Op::rem}) add(op, d, -3, 3, 0.5, 2);
    add(Op::pow, d, 0.25, 3, -2, 2, 4);
    add(Op::atan2, d, -2, 2, -2, 2, 4);
    add(Op::zeta, d, 1.25, 6, 0.25, 5, 16);
  }
  for (DType d : {vt::i32, vt::u8}) {
    for (Op op : {Op::add, Op::sub, Op::mul, Op::max, Op::min, Op::div, Op::rem, Op::eq, Op::ne,
                  Op::lt, Op::le, Op::gt, Op::ge, Op::and_, Op::or_, Op::xor_})
      add(op, d, -9, 9, -3, 3);
    for (Op op : {Op::pow, Op::shift_left, Op::shift_right_logical, Op::shift_right_arithmetic})
      add(op, d, -9, 9, 0, 5);
  }
  for (Op op : {Op::and_, Op::or_, Op::xor_, Op::eq}) add(op, vt::bool_, 0, 1, 0, 1);
  add(Op::threefry, vt::u64, 0, 1e18, 0, 1e18);
  const Shape scalar{}, shaped{2, 3};
  for (const Shape& p : {scalar, shaped})
    for (const Shape& a : {scalar, shaped})
      for (const Shape& b : {scalar, shaped})
        cases.push_back({Op::select, {}, {{vt::bool_, p}, {vt::f32, a}, {vt::f32, b}}});
}

inline GraphRef scalar_body(const vt::detail::FlatFunction& f, DType d, std::size_t n) {
  return std::make_shared<const GraphBody>(
      record(f, std::vector<Aval>(n, Aval(d, Shape{})), {.kind = ScopeKind::branch}).graph);
}

inline void add_reduce(std::vector<PrimitiveCase>& cases) {
  for (const Axes& axes : {Axes{0}, Axes{1}, Axes{2}, Axes{0, 2}, Axes{0, 1, 2}, Axes{}}) {
    const ParamsRef p = make_params(AxesParams{axes});
    for (Op op : {Op::reduce_sum, Op::reduce_prod, Op::reduce_max, Op::reduce_min})
      for (DType d : {vt::f64, vt::i32}) cases.push_back({op, p, {{d, {2, 3, 2}, -1, 1}}});
    for (Op op : {Op::reduce_any, Op::reduce_all})
      cases.push_back({op, p, {{vt::bool_, {2, 3, 2}}}});
  }
  for (int axis : {0, 1, 2}) {
    for (Op op : {Op::argmax, Op::argmin})
      cases.push_back({op, make_params(ArgParams{axis, vt::i32}), {{vt::f32, {2, 3, 2}}}});
    for (bool reverse : {false, true})
      for (Op op : {Op::cumsum, Op::cumprod, Op::cummax, Op::cummin})
        cases.push_back(
            {op, make_params(CumulativeParams{axis, reverse}), {{vt::f64, {2, 3, 2}, -1, 1}}});
    cases.push_back({Op::cumlogsumexp,
                     make_params(CumulativeParams{axis, axis == 1}),
                     {{vt::f64, {2, 3, 2}}},
                     8});
  }
  const GraphRef sum_of_products = scalar_body(
      [](std::span<const vt::Tensor> a) -> std::vector<vt::Tensor> {
        const vt::Tensor product = emit(Op::mul, {}, {a[0], a[1]}, {});
        // (1 + a)(1 + b) − 1
        return {emit(Op::add, {}, {emit(Op::add, {}, {a[0], a[1]}, {}), product}, {})};
      },
      vt::f64, 2);
  for (const Axes& axes : {Axes{1}, Axes{0, 2}})
    cases.push_back({Op::reduce,
                     make_params(ReduceParams{axes, sum_of_products}),
                     {{vt::f64, {2, 3, 2}, -1, 1}, {vt::f64, {}, -1, 1}}});
  const GraphRef both = scalar_body(
      [](std::span<const vt::Tensor> a) -> std::vector<vt::Tensor> {
        return {emit(Op::add, {}, {a[0], a[2]}, {}), emit(Op::max, {}, {a[1], a[3]}, {})};
      },
      vt::f32, 4);
  cases.push_back({Op::reduce,
                   make_params(ReduceParams{Axes{0}, both}),
                   {{vt::f32, {3, 2}}, {vt::f32, {3, 2}}, {vt::f32, {}}, {vt::f32, {}}}});
}

inline void add_order(std::vector<PrimitiveCase>& cases) {
  const auto add = [&](int axis, int keys, bool descending, std::int64_t start, std::int64_t limit,
                       const std::vector<OperandSpec>& operands) {
    cases.push_back(
        {Op::sort, make_params(SortParams{axis, keys, descending, start, limit}), operands});
  };
  // Few different values, so that equals keep their order or are told apart by the next key.
  const auto few = [](DType d, const Shape& shape) { return OperandSpec{d, shape, -1, 1}; };
  const Shape cube{2, 5, 3};
  for (int axis : {0, 1, 2}) add(axis, 1, axis == 1, 0, cube[axis], {{vt::f64, cube}});
  for (DType d : {vt::bool_, vt::i8, vt::u16, vt::i32, vt::u64, vt::f16, vt::f32})
    add(0, 1, d == vt::i32, 0, 7, {few(d, {7})});
  add(0, 1, false, 0, 7, {few(vt::f32, {7}), {vt::i64, {7}}});
  add(1, 1, true, 1, 3, {few(vt::f32, {2, 5}), {vt::f64, {2, 5}}});
  add(1, 2, false, 0, 5, {few(vt::i32, {2, 5}), few(vt::f32, {2, 5}), {vt::u8, {2, 5}}});
  add(0, 3, true, 0, 5, {few(vt::bool_, {5, 2}), few(vt::f32, {5, 2}), few(vt::f64, {5, 2})});
  add(0, 1, false, 0, 0, {{vt::f32, {3, 2}}, {vt::i32, {3, 2}}});
  add(1, 1, false, 0, 0, {{vt::f32, {3, 0}}});
}

inline void add_linalg(std::vector<PrimitiveCase>& cases) {
  const auto add = [&](Op op, ParamsRef p, const std::vector<OperandSpec>& operands) {
    cases.push_back({op, std::move(p), operands, 4,
                     vt::real_dtype(operands[0].dtype) == vt::f64 ? 1e-12 : 1e-5});
  };
  const auto square = [](DType d, Shape s) { return OperandSpec{d, std::move(s), 1, 2, 4}; };
  for (DType d : {vt::f32, vt::f64})
    for (const Shape& s : {Shape{2, 2}, Shape{1, 1}, Shape{2, 3, 3}, Shape{0, 0}, Shape{0, 2, 2}}) {
      add(Op::cholesky, {}, {square(d, s)});
      if (d == vt::f64) add(Op::eigh, make_params(DecompositionParams{}), {square(d, s)});
    }
  add(Op::eigh, make_params(DecompositionParams{false, false}), {square(vt::f32, {3, 3})});
  for (const Shape& s : {Shape{3, 3}, Shape{1, 1}, Shape{2, 2, 2}, Shape{0, 0}}) {
    add(Op::eig, make_params(DecompositionParams{}), {square(vt::f64, s)});
    add(Op::eig, make_params(DecompositionParams{false, false}), {square(vt::c128, s)});
  }
  for (const Shape& s : {Shape{3, 3}, Shape{2, 2, 2}}) {
    add(Op::cholesky, {}, {square(vt::c128, s)});
    add(Op::eigh, make_params(DecompositionParams{}), {square(vt::c128, s)});
    for (Op op : {Op::qr, Op::svd}) add(op, make_params(DecompositionParams{}), {{vt::c128, s}});
    add(Op::qr, make_params(DecompositionParams{.pivoted = true}), {{vt::c128, s}});
    add(Op::lu, {}, {{vt::c128, s}});
    add(Op::triangular_solve, make_params(TriangularParams{}),
        {square(vt::c128, s), {vt::c128, s}});
    add(Op::solve, make_params(SolveParams{}), {square(vt::c128, s), {vt::c128, s}});
  }
  for (bool lower : {true, false})
    for (bool transposed : {true, false}) {
      const bool unit = lower == transposed;
      add(Op::triangular_solve, make_params(TriangularParams{lower, transposed, unit}),
          {square(vt::f64, {3, 3}), {vt::f64, {3, 2}}});
      add(Op::triangular_solve, make_params(TriangularParams{lower, transposed, unit}),
          {square(vt::f32, {2, 2, 2}), {vt::f32, {2, 2, 1}}});
    }
  add(Op::triangular_solve, make_params(TriangularParams{}),
      {square(vt::f32, {0, 0}), {vt::f32, {0, 2}}});
  for (const Shape& s : {Shape{3, 3}, Shape{4, 2}, Shape{2, 2, 3}, Shape{0, 2}, Shape{2, 0}}) {
    add(Op::lu, {}, {{vt::f64, s}});
    for (bool full : {false, true}) {
      for (bool pivoted : {false, true})
        add(Op::qr, make_params(DecompositionParams{full, true, pivoted}), {{vt::f64, s}});
      add(Op::svd, make_params(DecompositionParams{full, true}), {{vt::f64, s}});
    }
  }
  add(Op::lu, {}, {{vt::f32, {3, 3}}});
  add(Op::svd, make_params(DecompositionParams{false, false}), {{vt::f32, {3, 2}}});
  for (bool transposed : {false, true}) {
    const ParamsRef p = make_params(SolveParams{transposed});
    add(Op::solve, p, {square(vt::f64, {3, 3}), {vt::f64, {3, 2}}});
    add(Op::solve, p,
        {{vt::f64, {2, 2}}, square(vt::f64, {2, 2}), {vt::i32, {2}, 0, 1}, {vt::f64, {2, 1}}});
  }
  add(Op::solve, make_params(SolveParams{}), {square(vt::f32, {2, 1, 1}), {vt::f32, {2, 1, 3}}});
  const OperandSpec next{vt::f64, {4}}, middle{vt::f64, {4}, 1, 3};
  add(Op::tridiagonal_solve, {}, {next, middle, next, {vt::f64, {4, 2}}});
  add(Op::tridiagonal_solve, {},
      {{vt::f32, {2, 1}}, {vt::f32, {2, 1}, 1, 2}, {vt::f32, {2, 1}}, {vt::f32, {2, 1, 2}}});
}

inline void add_shape(std::vector<PrimitiveCase>& cases) {
  auto reshape = [&](const Shape& from, const Shape& to) {
    cases.push_back({Op::reshape, make_params(ShapeParams{to}), {{vt::f32, from}}});
  };
  reshape({2, 6}, {2, 3, 2});
  reshape({2, 6}, {12});
  reshape({2, 6}, {3, 4});
  reshape({2, 1, 3}, {2, 3});
  reshape({}, {1, 1});
  reshape({0, 3}, {3, 0, 2});
  for (const Axes& p : {Axes{1, 0, 2}, Axes{2, 0, 1}, Axes{2, 1, 0}, Axes{0, 1, 2}})
    cases.push_back({Op::transpose, make_params(PermutationParams{p}), {{vt::f32, {2, 3, 4}}}});
  auto broadcast = [&](const Shape& from, const Shape& to, const Axes& axes) {
    cases.push_back(
        {Op::broadcast_in_dim, make_params(BroadcastParams{to, axes}), {{vt::f32, from}}});
  };
  broadcast({}, {2, 3}, {});
  broadcast({3}, {2, 3}, {1});
  broadcast({2}, {2, 3}, {0});
  broadcast({2, 3}, {4, 2, 5, 3}, {1, 3});
  broadcast({1, 3}, {2, 3}, {0, 1});
  for (int axis : {0, 1}) {
    cases.push_back({Op::concatenate,
                     make_params(AxisParams{axis}),
                     {{vt::f32, axis ? Shape{2, 1} : Shape{1, 3}},
                      {vt::f32, {2, 3}},
                      {vt::f32, axis ? Shape{2, 4} : Shape{4, 3}}}});
  }
  cases.push_back({Op::concatenate, make_params(AxisParams{0}), {{vt::i32, {2}}}});
  cases.push_back({Op::pad,
                   make_params(PadParams{{1, 0}, {0, 2}, {0, 1}}),
                   {{vt::f32, {2, 3}}, {vt::f32, {}}}});
  cases.push_back({Op::pad,
                   make_params(PadParams{{-1, 1}, {1, -2}, {2, 0}}),
                   {{vt::i32, {2, 3}}, {vt::i32, {}}}});
  for (const Axes& axes : {Axes{0}, Axes{1}, Axes{0, 1}})
    cases.push_back({Op::rev, make_params(AxesParams{axes}), {{vt::f32, {2, 3}}}});
}

inline void add_index(std::vector<PrimitiveCase>& cases) {
  cases.push_back(
      {Op::slice, make_params(SliceParams{{1, 0}, {4, 3}, {2, 1}}), {{vt::f32, {5, 3}}}});
  cases.push_back(
      {Op::slice, make_params(SliceParams{{0, 1}, {5, 1}, {1, 1}}), {{vt::f32, {5, 3}}}});
  const OperandSpec index{vt::i32, {}, -3, 6};
  for (const Shape& sizes : {Shape{2, 1}, Shape{1, 3}, Shape{5, 2}, Shape{5, 3}})
    cases.push_back(
        {Op::dynamic_slice, make_params(ShapeParams{sizes}), {{vt::f32, {5, 3}}, index, index}});
  cases.push_back({Op::dynamic_slice,
                   make_params(ShapeParams{{2, 1}}),
                   {{vt::f32, {5, 3}}, index, {vt::u64, {}, 0, 5}}});
  cases.push_back({Op::dynamic_slice, make_params(ShapeParams{Shape{}}), {{vt::f32, {}}}});
  for (const Shape& sizes : {Shape{2, 1}, Shape{5, 3}, Shape{1, 3}})
    cases.push_back(
        {Op::dynamic_update_slice, {}, {{vt::f32, {5, 3}}, {vt::f32, sizes}, index, index}});
  cases.push_back({Op::dynamic_update_slice, {}, {{vt::f32, {}}, {vt::f32, {}}}});

  struct Map {
    GatherParams p;  // its fields name scatter's as well
    Shape operand, indices, updates;
    double low, high;
  };
  std::vector<Map> maps;
  // rows by index; whole window; a window of 2 columns at (row, column); batching; offsets in
  // front; two leading index axes
  maps.push_back({{.offset_dims = {1},
                   .collapsed_slice_dims = {0},
                   .start_index_map = {0},
                   .operand_batching_dims = {},
                   .indices_batching_dims = {},
                   .slice_sizes = {1, 3}},
                  {5, 3},
                  {4, 1},
                  {4, 3},
                  -2,
                  6});
  maps.push_back({{.offset_dims = {0},
                   .collapsed_slice_dims = {1},
                   .start_index_map = {1},
                   .operand_batching_dims = {},
                   .indices_batching_dims = {},
                   .slice_sizes = {5, 1}},
                  {5, 3},
                  {4, 1},
                  {5, 4},
                  -2,
                  4});
  maps.push_back({{.offset_dims = {0, 1},
                   .collapsed_slice_dims = {},
                   .start_index_map = {0},
                   .operand_batching_dims = {},
                   .indices_batching_dims = {},
                   .slice_sizes = {2, 3}},
                  {5, 3},
                  {1},
                  {2, 3},
                  -2,
                  6});
  maps.push_back({{.offset_dims = {1},
                   .collapsed_slice_dims = {0},
                   .start_index_map = {0, 1},
                   .operand_batching_dims = {},
                   .indices_batching_dims = {},
                   .slice_sizes = {1, 2}},
                  {5, 3},
                  {4, 2},
                  {4, 2},
                  -1,
                  5});
  maps.push_back({{.offset_dims = {},
                   .collapsed_slice_dims = {0, 1},
                   .start_index_map = {1, 0},
                   .operand_batching_dims = {},
                   .indices_batching_dims = {},
                   .slice_sizes = {1, 1}},
                  {5, 3},
                  {2, 3, 2},
                  {2, 3},
                  -1,
                  4});
  maps.push_back({{.offset_dims = {1},
                   .collapsed_slice_dims = {1},
                   .start_index_map = {1},
                   .operand_batching_dims = {0},
                   .indices_batching_dims = {0},
                   .slice_sizes = {1, 1, 2}},
                  {3, 4, 2},
                  {3, 2, 1},
                  {3, 2, 2},
                  -1,
                  5});
  maps[5].p.offset_dims = {2};
  maps.push_back({{.offset_dims = {0, 2},
                   .collapsed_slice_dims = {1},
                   .start_index_map = {1},
                   .operand_batching_dims = {},
                   .indices_batching_dims = {},
                   .slice_sizes = {2, 1, 3}},
                  {2, 4, 3},
                  {5, 1},
                  {2, 5, 3},
                  -1,
                  5});
  for (const Map& m : maps) {
    for (IndexMode mode : {IndexMode::clip, IndexMode::fill}) {
      GatherParams g = m.p;
      g.mode = mode;
      cases.push_back({Op::gather,
                       make_params(g),
                       {{vt::f32, m.operand}, {vt::i32, m.indices, m.low, m.high}}});
      ScatterParams s{m.p.offset_dims,
                      m.p.collapsed_slice_dims,
                      m.p.start_index_map,
                      m.p.operand_batching_dims,
                      m.p.indices_batching_dims,
                      mode,
                      false};
      for (Op op :
           {Op::scatter, Op::scatter_add, Op::scatter_mul, Op::scatter_min, Op::scatter_max})
        cases.push_back({op,
                         make_params(s),
                         {{vt::f64, m.operand, -1, 1},
                          {vt::i32, m.indices, m.low, m.high},
                          {vt::f64, m.updates, -1, 1}}});
    }
  }
}

inline void add_dot(std::vector<PrimitiveCase>& cases) {
  auto add = [&](DType d, const Shape& a, const Shape& b, const Axes& ac, const Axes& bc,
                 const Axes& ab, const Axes& bb) {
    cases.push_back({Op::dot_general, make_params(DotParams{ac, bc, ab, bb, d}), {{d, a}, {d, b}}});
  };
  for (DType d : {vt::f32, vt::i32}) {
    add(d, {2, 3}, {3, 4}, {1}, {0}, {}, {});
    add(d, {3, 2}, {4, 3}, {0}, {1}, {}, {});
    add(d, {3}, {3}, {0}, {0}, {}, {});
    add(d, {2, 3}, {3}, {1}, {0}, {}, {});
    add(d, {2}, {4}, {}, {}, {}, {});
    add(d, {5, 2, 3}, {5, 3, 4}, {2}, {1}, {0}, {0});
    add(d, {2, 5, 3}, {3, 4, 5}, {2}, {0}, {1}, {2});
    add(d, {2, 3, 4}, {4, 3}, {1, 2}, {1, 0}, {}, {});
    add(d, {2, 0}, {0, 3}, {1}, {0}, {}, {});
  }
}

/// Rows of two arrays of 4 and 3 rows, some twice, some not at all, some of none.
inline void add_rows(std::vector<PrimitiveCase>& cases) {
  RowsParams few{{{0, 1, 3}, {1, 2, 1}, {-1, 0, 2}, {0, 3, 1}}};
  RowsParams many;
  for (int i = 0; i < 12; ++i) many.runs.push_back({i % 2, i % 3, 1});
  for (const RowsParams& p : {few, many})
    for (DType d : {vt::f32, vt::f64, vt::f16, vt::i32, vt::bool_, vt::c64}) {
      const std::int64_t count = p.count();
      cases.push_back({Op::rows, make_params(p), {{d, {4, 2}}, {d, {3, 2}}}});
      cases.push_back({Op::rows, make_params(p), {{d, {4}}, {d, {3}}}});
      if (vt::is_bool(d)) continue;
      RowsParams back = p;
      back.extents = {4, 3};
      cases.push_back({Op::rows_add, make_params(back), {{d, {count, 2}, -1, 1}}});
      cases.push_back({Op::rows_add, make_params(back), {{d, {count}, -1, 1}}});
    }
  cases.push_back({Op::rows, make_params(RowsParams{}), {{vt::f32, {4, 2}}}});
  cases.push_back({Op::rows, make_params(RowsParams{{{0, 2, 2}}}), {{vt::f32, {4, 0}}}});
}

inline void add_windows(std::vector<PrimitiveCase>& cases) {
  const auto add = [&](DType d, const Shape& shape, const Axes& axes, const Shape& sizes,
                       const Shape& strides, const Shape& dilations) {
    WindowParams p{axes, sizes, strides, dilations, {}};
    for (int axis : axes) p.extents.push_back(shape[axis]);
    cases.push_back({Op::windows, make_params(p), {{d, shape}}});
    Shape parts = shape;
    for (std::size_t k = 0; k < axes.size(); ++k) parts[axes[k]] = p.count(k);
    parts.append(sizes.begin(), sizes.end());
    if (!vt::is_bool(d)) cases.push_back({Op::overlap_add, make_params(p), {{d, parts, -1, 1}}});
  };
  add(vt::f32, {5}, {0}, {3}, {1}, {1});
  add(vt::f64, {2, 7}, {1}, {2}, {2}, {3});
  add(vt::f32, {5, 2, 6}, {0, 2}, {2, 3}, {2, 1}, {1, 2});
  add(vt::i32, {4, 5}, {0, 1}, {3, 1}, {1, 3}, {1, 1});
  add(vt::bool_, {4}, {0}, {2}, {1}, {1});
  add(vt::f16, {6}, {0}, {3}, {2}, {1});
  add(vt::c64, {2, 6}, {1}, {3}, {2}, {1});
  add(vt::f32, {2, 3}, {1}, {4}, {1}, {1});  // no window fits
  add(vt::f32, {3, 0}, {0}, {2}, {1}, {1});
}

inline void add_conv(std::vector<PrimitiveCase>& cases) {
  struct Sizes {
    Shape strides, low, high, lhs_dilation, rhs_dilation;
  };
  const auto add = [&](DType d, const Shape& a, const Shape& b, const DotParams& dot,
                       const Axes& aw, const Axes& bw, const Sizes& s) {
    ConvParams p{dot, aw, bw, s.strides, s.low, s.high, s.lhs_dilation, s.rhs_dilation};
    p.dot.dtype = d;
    cases.push_back({Op::conv_general, make_params(p), {{d, a, -1, 1}, {d, b, -1, 1}}});
  };
  const Sizes plain{{1}, {0}, {0}, {1}, {1}};
  add(vt::f32, {2, 5, 3}, {2, 3, 4}, {{2}, {1}, {}, {}}, {1}, {0}, plain);
  add(vt::i32, {2, 5, 3}, {2, 3, 4}, {{2}, {1}, {}, {}}, {1}, {0}, {{2}, {1}, {2}, {1}, {2}});
  add(vt::c64, {2, 5, 3}, {2, 3, 4}, {{2}, {1}, {}, {}}, {1}, {0}, plain);
  add(vt::f64, {5}, {3}, {{}, {}, {}, {}}, {0}, {0}, {{1}, {-1}, {1}, {2}, {1}});
  // letters in odd order
  add(vt::f32, {3, 4, 2, 5}, {2, 3, 4, 2}, {{1}, {2}, {}, {}}, {3, 2}, {1, 3},
      {{1, 2}, {1, 0}, {0, 1}, {1, 2}, {2, 1}});
  // groups
  add(vt::f32, {2, 4, 3, 2}, {3, 2, 2, 4}, {{3}, {1}, {2}, {0}}, {1}, {2},
      {{1}, {1}, {1}, {1}, {1}});
  add(vt::f32, {2, 3, 1}, {1, 1, 4}, {{2}, {1}, {}, {}}, {1}, {0}, plain);
  add(vt::f32, {2, 2, 3}, {4, 3, 2}, {{2}, {1}, {}, {}}, {1}, {0}, plain);  // no window fits
  add(vt::f32, {2, 4, 0}, {2, 0, 3}, {{2}, {1}, {}, {}}, {1}, {0}, plain);
  add(vt::f32, {2, 0, 3}, {2, 3, 2}, {{2}, {1}, {}, {}}, {1}, {0}, {{1}, {2}, {1}, {1}, {1}});
  add(vt::f32, {2, 3, 2}, {0, 2, 2}, {{2}, {1}, {}, {}}, {1}, {0}, plain);
}

inline ParamsRef call_params(const vt::detail::FlatFunction& f, std::vector<Aval> avals,
                             int explicit_operands, std::shared_ptr<CustomRule> rule = nullptr) {
  CallParams p;
  p.body = std::make_shared<const GraphBody>(record(f, avals, {.kind = ScopeKind::branch}).graph);
  p.rule = std::move(rule);
  p.explicit_operands = explicit_operands;
  return make_params(std::move(p));
}

inline void add_structure(std::vector<PrimitiveCase>& cases) {
  using vt::Tensor;
  // (x, s) → (x · s, Σ x)
  auto body = [](std::span<const Tensor> a) -> std::vector<Tensor> {
    return {emit(Op::mul, {}, {a[0], a[1]}, {}),
            emit(Op::reduce_sum, make_params(AxesParams{{0}}), {a[0]}, {})};
  };
  const std::vector<Aval> avals = {Aval(vt::f32, {3, 2}), Aval(vt::f32, Shape{})};
  const std::vector<OperandSpec> operands = {{vt::f32, {3, 2}}, {vt::f32, {}}};
  auto rule = std::make_shared<CustomRule>();
  rule->name = "test rule";
  rule->jvp = rule->forward = rule->backward = body;
  rule->batch = [](std::int64_t lanes, const vt::Vec<bool>& mapped, std::span<const Tensor> a,
                   vt::Vec<bool>& out_mapped) -> std::vector<Tensor> {
    auto all = [&](const Tensor& t, bool is_mapped, const Axes& axes) {
      Shape shape{lanes, 3, 2};
      return is_mapped || !axes.empty()
                 ? emit(Op::broadcast_in_dim, make_params(BroadcastParams{shape, axes}), {t}, {})
                 : t;
    };
    out_mapped = {true, static_cast<bool>(mapped[0])};
    const Tensor x = mapped[0] ? a[0] : all(a[0], false, Axes{1, 2});
    const Tensor s = mapped[1] ? all(a[1], true, Axes{0}) : a[1];
    return {emit(Op::mul, {}, {x, s}, {}),
            emit(Op::reduce_sum, make_params(AxesParams{{mapped[0] ? 1 : 0}}), {a[0]}, {})};
  };
  for (Op op : {Op::call, Op::checkpoint, Op::custom_jvp, Op::custom_vjp, Op::custom_vmap})
    cases.push_back({op, call_params(body, avals, 2, rule), operands});
  auto capturing = [](std::span<const Tensor> a) -> std::vector<Tensor> {
    return {emit(Op::add, {}, {a[0], a[1]}, {}), a[1]};
  };
  for (Op op : {Op::call, Op::checkpoint})
    cases.push_back({op, call_params(capturing, avals, 1), operands});
  vt::Recursive<Tensor(Tensor, Tensor)> f("f", [&](Tensor x, Tensor n) {
    return vt::cond(n <= 0, [&] { return x * x; }, [&] { return f(x * 0.5, n - 1); });
  });
  const vt::Graph called = vt::make_graph(f)(vt::zeros({3}), vt::zeros({}, vt::i32));
  cases.push_back({Op::recursive_call,
                   called.body().equations.back().params,
                   {{vt::f32, {3}}, {vt::i32, {}, 0, 4}}});
}

inline GraphRef body_of(const vt::detail::FlatFunction& f, const std::vector<Aval>& avals) {
  return std::make_shared<const GraphBody>(record(f, avals, {.kind = ScopeKind::branch}).graph);
}

/// cond, while and scan, alone and with lanes of their own.
inline void add_control(std::vector<PrimitiveCase>& cases) {
  using vt::Tensor;
  using List = std::vector<Tensor>;
  using In = std::span<const Tensor>;
  const Aval vector(vt::f32, {3}), scalar(vt::f32, Shape{}), count(vt::i32, Shape{});
  const auto twice = [](const Tensor& t) { return emit(Op::add, {}, {t, t}, {}); };
  const auto product = [](const Tensor& a, const Tensor& b) {
    return emit(Op::mul, {}, {a, b}, {});
  };
  const auto sum = [](const Tensor& a) {
    return emit(Op::reduce_sum, make_params(AxesParams{{0}}), {a}, {});
  };
  const auto with_lanes = [](std::vector<OperandSpec> operands, Lanes& lanes,
                             const vt::Vec<bool>& mapped) {
    lanes.count = 4;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      lanes.mapped.push_back(mapped[i]);
      if (mapped[i]) operands[i].shape.insert(operands[i].shape.begin(), lanes.count);
    }
    return operands;
  };

  CondParams choice;  // of three: the index is clamped
  for (const auto& branch : std::vector<vt::detail::FlatFunction>{
           [&](In a) -> List { return {product(a[0], a[1]), a[1]}; },
           [&](In a) -> List { return {a[0], sum(a[0])}; },
           [&](In a) -> List { return {twice(a[0]), twice(a[1])}; }})
    choice.branches.push_back(body_of(branch, {vector, scalar}));
  const std::vector<OperandSpec> chosen = {{vt::i32, {}, -1, 4}, {vt::f32, {3}}, {vt::f32, {}}};
  cases.push_back({Op::cond, make_params(choice), chosen});
  for (const vt::Vec<bool>& mapped : {vt::Vec<bool>{true, true, false},
                                      {true, false, true},
                                      {false, true, true},
                                      {true, true, true}}) {
    CondParams p = choice;
    const auto operands = with_lanes(chosen, p.lanes, mapped);
    cases.push_back({Op::cond, make_params(std::move(p)), operands});
  }

  // (i, x, n, s): while i < n: x = x · s
  WhileParams loop;
  loop.carries = 2;
  const std::vector<Aval> carried = {count, vector, count, scalar};
  loop.condition =
      body_of([](In a) -> List { return {emit(Op::lt, {}, {a[0], a[2]}, {})}; }, carried);
  loop.body = body_of(
      [&](In a) -> List {
        return {emit(Op::add, {},
                     {a[0], full_tensor(Scalar(1).converted(vt::i32), Aval(vt::i32, Shape{}))}, {}),
                product(a[1], a[3])};
      },
      carried);
  const std::vector<OperandSpec> looped = {
      {vt::i32, {}, 0, 2}, {vt::f32, {3}}, {vt::i32, {}, 0, 4}, {vt::f32, {}}};
  cases.push_back({Op::while_, make_params(loop), looped});
  for (const vt::Vec<bool>& mapped :
       {vt::Vec<bool>{true, true, true, false}, {true, true, false, true}}) {
    WhileParams p = loop;
    const auto operands = with_lanes(looped, p.lanes, mapped);
    cases.push_back({Op::while_, make_params(std::move(p)), operands});
  }

  // (c, x, s): c, y = c · s + x, c · Σx
  for (bool reverse : {false, true})
    for (std::int64_t length : {0, 4}) {
      ScanParams scan;
      scan.carries = scan.sequences = 1;
      scan.length = length;
      scan.reverse = reverse;
      scan.body = body_of(
          [&](In a) -> List {
            return {emit(Op::add, {}, {product(a[0], a[2]), a[1]}, {}), product(a[0], sum(a[1]))};
          },
          {vector, vector, scalar});
      cases.push_back({Op::scan,
                       make_params(std::move(scan)),
                       {{vt::f32, {3}}, {vt::f32, {length, 3}, -1, 1}, {vt::f32, {}, -1, 1}}});
    }
}

/// Complex numbers, in everything that takes them.
inline void add_complex(std::vector<PrimitiveCase>& cases) {
  using vt::c64, vt::c128, vt::f32, vt::f64;
  const Shape shaped{2, 3};
  const auto unary = [&](Op op, DType d, double low, double high, double ulps, ParamsRef p = {}) {
    cases.push_back({op, std::move(p), {{d, shaped, low, high}}, ulps});
  };
  for (DType d : {c64, c128}) {
    for (Op op : {Op::neg, Op::real, Op::imag, Op::conj, Op::is_finite, Op::is_nan, Op::is_inf,
                  Op::stop_gradient, Op::meeting})
      unary(op, d, -3, 3, 0);
    for (Op op : {Op::abs, Op::sign, Op::sqrt, Op::rsqrt}) unary(op, d, -3, 3, 8);
    for (Op op : {Op::exp, Op::exp2, Op::expm1, Op::log, Op::log1p, Op::log2, Op::sin, Op::cos,
                  Op::tan, Op::asin, Op::acos, Op::atan, Op::sinh, Op::cosh, Op::tanh, Op::asinh,
                  Op::acosh, Op::atanh, Op::sigmoid})
      unary(op, d, 0.25, 2, 16);
    unary(Op::integer_pow, d, -2, 2, 8, make_params(IntegerPowParams{3}));
    unary(Op::integer_pow, d, 1, 2, 8, make_params(IntegerPowParams{-2}));
    for (Op op : {Op::add, Op::sub, Op::mul, Op::eq, Op::ne})
      cases.push_back({op, {}, {{d, shaped}, {d, {}}}});
    cases.push_back({Op::div, {}, {{d, {}}, {d, shaped, 0.5, 2}}, 8});
    cases.push_back({Op::pow, {}, {{d, shaped, 0.25, 2}, {d, shaped, -1, 1}}, 64});
    cases.push_back({Op::complex, {}, {{vt::real_dtype(d), shaped}, {vt::real_dtype(d), {}}}});
    cases.push_back({Op::select, {}, {{vt::bool_, shaped}, {d, {}}, {d, shaped}}});
  }
  unary(Op::convert, f32, -2, 2, 0, make_params(ConvertParams{c128, false}));
  unary(Op::convert, vt::i32, -9, 9, 0, make_params(ConvertParams{c64, false}));
  unary(Op::convert, c128, -2, 2, 0, make_params(ConvertParams{c64, false}));
  unary(Op::convert, c64, -1, 1, 0, make_params(ConvertParams{vt::bool_, false}));
  const Shape cube{2, 3, 2};
  for (Op op : {Op::reduce_sum, Op::reduce_prod})
    cases.push_back({op, make_params(AxesParams{{0, 2}}), {{c128, cube, -1, 1}}});
  for (Op op : {Op::cumsum, Op::cumprod})
    cases.push_back(
        {op, make_params(CumulativeParams{1, op == Op::cumsum}), {{c128, cube, -1, 1}}});
  const GraphRef body = scalar_body(
      [](std::span<const vt::Tensor> a) -> std::vector<vt::Tensor> {
        return {emit(Op::add, {},
                     {emit(Op::add, {}, {a[0], a[1]}, {}), emit(Op::mul, {}, {a[0], a[1]}, {})},
                     {})};
      },
      c128, 2);
  cases.push_back(
      {Op::reduce, make_params(ReduceParams{{1}, body}), {{c128, cube, -1, 1}, {c128, {}, -1, 1}}});
  cases.push_back(
      {Op::sort, make_params(SortParams{1, 1, false, 0, 3}), {{f32, shaped}, {c64, shaped}}});
  cases.push_back({Op::reshape, make_params(ShapeParams{{3, 4}}), {{c64, cube}}});
  cases.push_back({Op::transpose, make_params(PermutationParams{{2, 0, 1}}), {{c64, cube}}});
  cases.push_back(
      {Op::broadcast_in_dim, make_params(BroadcastParams{{2, 4, 3}, {0, 2}}), {{c128, {2, 3}}}});
  cases.push_back({Op::concatenate, make_params(AxisParams{1}), {{c64, {2, 3}}, {c64, {2, 1}}}});
  cases.push_back(
      {Op::pad, make_params(PadParams{{1, -1}, {0, 2}, {1, 0}}), {{c64, {2, 3}}, {c64, {}}}});
  cases.push_back({Op::rev, make_params(AxesParams{{1}}), {{c128, cube}}});
  cases.push_back({Op::slice, make_params(SliceParams{{0, 1}, {2, 5}, {1, 2}}), {{c64, {3, 5}}}});
  cases.push_back({Op::dynamic_slice,
                   make_params(ShapeParams{{2, 2}}),
                   {{c64, {4, 3}}, {vt::i32, {}, -1, 4}, {vt::i32, {}, 0, 2}}});
  cases.push_back({Op::dynamic_update_slice,
                   {},
                   {{c128, {4, 3}}, {c128, {2, 2}}, {vt::i32, {}, -1, 4}, {vt::i32, {}, 0, 2}}});
  GatherParams rows;
  rows.offset_dims = {1};
  rows.collapsed_slice_dims = rows.start_index_map = {0};
  rows.slice_sizes = {1, 3};
  rows.mode = IndexMode::fill;
  cases.push_back({Op::gather, make_params(rows), {{c64, {4, 3}}, {vt::i32, {5, 1}, -1, 4}}});
  const ScatterParams into{{1}, {0}, {0}, {}, {}, IndexMode::fill, false};
  for (Op op : {Op::scatter, Op::scatter_add, Op::scatter_mul})
    cases.push_back({op,
                     make_params(into),
                     {{c128, {4, 3}, -1, 1}, {vt::i32, {5, 1}, -1, 4}, {c128, {5, 3}, -1, 1}}});
  for (DType d : {c64, c128})
    cases.push_back({Op::dot_general,
                     make_params(DotParams{{2}, {1}, {0}, {0}, d}),
                     {{d, {5, 2, 3}}, {d, {5, 3, 4}}}});
  const auto twice = [](std::span<const vt::Tensor> a) -> std::vector<vt::Tensor> {
    return {emit(Op::mul, {}, {a[0], a[1]}, {}), emit(Op::add, {}, {a[0], a[0]}, {})};
  };
  const std::vector<Aval> avals(2, Aval(c64, Shape{}));
  cases.push_back({Op::call, call_params(twice, avals, 2), {{c64, {}}, {c64, {}}}});
  for (FftKind kind : {FftKind::fft, FftKind::ifft}) {
    cases.push_back({Op::fft, make_params(FftParams{kind, {12}, false}), {{c64, {2, 12}}}, 16});
    cases.push_back(
        {Op::fft, make_params(FftParams{kind, {3, 17}, false}), {{c128, {2, 3, 17}}}, 16});
  }
  for (std::int64_t n : {1, 7, 10}) {
    cases.push_back(
        {Op::fft, make_params(FftParams{FftKind::rfft, {3, n}, false}), {{f64, {3, n}}}, 16});
    cases.push_back({Op::fft,
                     make_params(FftParams{FftKind::irfft, {3, n}, false}),
                     {{c128, {2, 3, n / 2 + 1}}},
                     16});
  }
  ScanParams scan;
  scan.carries = scan.sequences = 1;
  scan.length = 4;
  scan.body = body_of(twice, avals);
  cases.push_back({Op::scan, make_params(std::move(scan)), {{c64, {}, -1, 1}, {c64, {4}, -1, 1}}});
}

/// (x, s): x · s, Σx, in each of four lanes.
inline void add_fused_regions(std::vector<PrimitiveCase>& cases) {
  const std::vector<Aval> lane{Aval(vt::f32, Shape{3}), Aval(vt::f32, Shape{})};
  const auto make = [](std::span<const vt::Tensor> a) -> std::vector<vt::Tensor> {
    const vt::Tensor s =
        emit(Op::broadcast_in_dim, make_params(BroadcastParams{Shape{3}, {}}), {a[1]}, {});
    return {emit(Op::mul, {}, {a[0], s}, {}),
            emit(Op::reduce_sum, make_params(AxesParams{{0}}), {a[0]}, {})};
  };
  for (const vt::Vec<bool>& mapped : {vt::Vec<bool>{true, false}, {false, true}, {true, true}}) {
    RegionParams p;
    p.body = body_of(make, lane);
    p.lanes.count = 4;
    std::vector<OperandSpec> operands = {{vt::f32, {3}}, {vt::f32, {}}};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      p.lanes.mapped.push_back(mapped[i]);
      if (mapped[i]) operands[i].shape.insert(operands[i].shape.begin(), p.lanes.count);
    }
    cases.push_back({Op::fused_region, make_params(std::move(p)), operands});
  }
}

/// (x, w, s): x w, tanh(x w) · s, for each lane or summed over lanes.
inline BatchedCallParams batched_call(DType d, const vt::Vec<bool>& mapped,
                                      const vt::Vec<bool>& summed, std::int64_t lanes,
                                      std::vector<OperandSpec>& operands) {
  const std::vector<Aval> lane{Aval(d, Shape{3}), Aval(d, Shape{3, 2}), Aval(d, Shape{})};
  BatchedCallParams p;
  p.body = body_of(
      [d](std::span<const vt::Tensor> a) -> std::vector<vt::Tensor> {
        const vt::Tensor y =
            emit(Op::dot_general, make_params(DotParams{{0}, {0}, {}, {}, d}), {a[0], a[1]}, {});
        return {y, emit(Op::mul, {}, {emit(Op::tanh, {}, {y}, {}), a[2]}, {})};
      },
      lane);
  p.function = vt::detail::called_function("cell");
  p.lanes.count = lanes;
  for (std::size_t i = 0; i < lane.size(); ++i) {
    operands.push_back({d, lane[i].shape, -1, 1});
    p.lanes.mapped.push_back(mapped[i]);
    if (mapped[i]) operands[i].shape.insert(operands[i].shape.begin(), lanes);
  }
  p.summed.append(summed.begin(), summed.end());
  return p;
}
inline void add_batched_calls(std::vector<PrimitiveCase>& cases) {
  const auto add = [&](DType d, const vt::Vec<bool>& mapped, const vt::Vec<bool>& summed,
                       std::int64_t lanes) {
    std::vector<OperandSpec> operands;
    BatchedCallParams p = batched_call(d, mapped, summed, lanes, operands);
    cases.push_back({Op::batched_call, make_params(std::move(p)), operands, 16});
  };
  add(vt::f32, {true, false, false}, {false, false}, 5);
  add(vt::f32, {true, false, true}, {true, false}, 5);
  add(vt::f64, {false, true, true}, {false, true}, 4);
  add(vt::f32, {true, true, false}, {true, true}, 1);
  add(vt::c64, {true, false, false}, {false, true}, 3);
  add(vt::f32, {true, false, false}, {false, true}, 0);
}

/// A pure callback: (x, w) → (x · w, Σ w), one lane or all lanes at a time. Prints and checks have
/// no results: control_effects_test.
inline void add_callbacks(std::vector<PrimitiveCase>& cases) {
  using vt::Tensor;
  for (bool takes_lanes : {false, true}) {
    auto function = std::make_shared<HostFunction>();
    function->name = "a test's callback";
    function->run = [](std::span<const Tensor> a) -> std::vector<Tensor> {
      return {a[0] * a[1], vt::sum(a[1], -1)};
    };
    function->callable = std::make_shared<const char>();
    CallbackParams p{
        std::move(function), {Aval(vt::f32, {2, 3}), Aval(vt::f32, {2})}, true, takes_lanes, {}};
    cases.push_back(
        {Op::callback, make_params(std::move(p)), {{vt::f32, {2, 3}}, {vt::f32, {2, 3}}}});
  }
}

}  // namespace primitive_table

inline const std::vector<PrimitiveCase>& primitive_cases() {
  static const std::vector<PrimitiveCase> cases = [] {
    std::vector<PrimitiveCase> all;
    primitive_table::add_unary(all);
    primitive_table::add_binary(all);
    primitive_table::add_reduce(all);
    primitive_table::add_order(all);
    primitive_table::add_linalg(all);
    primitive_table::add_shape(all);
    primitive_table::add_index(all);
    primitive_table::add_rows(all);
    primitive_table::add_windows(all);
    primitive_table::add_dot(all);
    primitive_table::add_conv(all);
    primitive_table::add_structure(all);
    primitive_table::add_control(all);
    primitive_table::add_complex(all);
    primitive_table::add_callbacks(all);
    primitive_table::add_fused_regions(all);
    primitive_table::add_batched_calls(all);
    return all;
  }();
  return cases;
}

}  // namespace vt_test
