// The shape rules: what every primitive gives, and the messages of those that refuse.
#include <gtest/gtest.h>

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "graph_builder.hpp"

namespace {
using namespace vt_test;
using vt::ErrorKind;
using enum vt::DType;

const vt::CallSite line{"dir/user.cpp", 7};

SmallVec<Aval, 1> infer_of(Op op, ParamsRef params, const std::vector<Aval>& operands) {
  std::vector<const Aval*> pointers;
  for (const Aval& a : operands) pointers.push_back(&a);
  return infer(op, params, pointers, line);
}
std::string one(Op op, ParamsRef params, const std::vector<Aval>& operands) {
  auto avals = infer_of(op, std::move(params), operands);
  return avals.size() == 1 ? avals[0].str() : "several";
}
std::string error(Op op, ParamsRef params, const std::vector<Aval>& operands) {
  return message_of([&] { (void)infer_of(op, params, operands); });
}
Aval a32(Shape s) { return Aval(f32, std::move(s)); }
Aval i(Shape s) { return Aval(i32, std::move(s)); }

TEST(ShapeRules, ElementWiseTakesEqualShapesAndScalars) {
  EXPECT_EQ(one(Op::add, {}, {a32({2, 3}), a32({2, 3})}), "f32[2,3]");
  EXPECT_EQ(one(Op::add, {}, {a32({}), a32({2, 3})}), "f32[2,3]");
  EXPECT_EQ(one(Op::lt, {}, {a32({0}), a32({})}), "bool[0]");
  EXPECT_EQ(one(Op::select, {}, {Aval(bool_, {}), i({4}), i({})}), "i32[4]");
  EXPECT_EQ(one(Op::is_nan, {}, {Aval(bf16, {5})}), "bool[5]");
  EXPECT_EQ(error(Op::add, {}, {a32({3, 4}), a32({5})}),
            "vt::add: shapes differ: f32[3,4] · f32[5]; at user.cpp:7");
  EXPECT_EQ(error(Op::mul, {}, {a32({3}), Aval(f64, {3})}),
            "vt::multiply: dtypes differ: f32[3] · f64[3]; at user.cpp:7");
  EXPECT_EQ(
      error(Op::select, {}, {i({}), i({4}), i({4})}),
      "vt::where: the condition must be bool, not i32: i32[] · i32[4] · i32[4]; at user.cpp:7");
}

TEST(ShapeRules, WeakOnlyIfAllOperandsAre) {
  const Aval weak(f64, {}, true), strong(f64, {3});
  EXPECT_TRUE(infer_of(Op::mul, {}, {weak, weak})[0].weak);
  EXPECT_FALSE(infer_of(Op::mul, {}, {weak, strong})[0].weak);
  EXPECT_FALSE(infer_of(Op::eq, {}, {weak, weak})[0].weak);
}

TEST(ShapeRules, EveryElementWiseOpTakesOrRefusesEveryDtype) {
  // Against the classes written down here once more, not against the table.
  const std::vector<Op> inexact = {Op::exp,     Op::exp2,      Op::expm1,  Op::log,   Op::log1p,
                                   Op::log2,    Op::sqrt,      Op::rsqrt,  Op::sin,   Op::cos,
                                   Op::tan,     Op::asin,      Op::acos,   Op::atan,  Op::sinh,
                                   Op::cosh,    Op::tanh,      Op::asinh,  Op::acosh, Op::atanh,
                                   Op::sigmoid, Op::is_finite, Op::is_nan, Op::is_inf};
  const std::vector<Op> float_only = {
      Op::floor,      Op::ceil,        Op::round,       Op::trunc,      Op::cbrt,
      Op::erf,        Op::erfc,        Op::erf_inv,     Op::lgamma,     Op::digamma,
      Op::atan2,      Op::nextafter,   Op::zeta,        Op::gamma,      Op::erfcx,
      Op::erfc_inv,   Op::ndtr,        Op::log_ndtr,    Op::dawsn,      Op::expi,
      Op::spence,     Op::fresnel_sin, Op::fresnel_cos, Op::bessel_i0e, Op::bessel_i1e,
      Op::bessel_k0e, Op::bessel_k1e,  Op::bessel_j0,   Op::bessel_j1,  Op::bessel_y0,
      Op::bessel_y1};
  const std::vector<Op> complex_only = {Op::real, Op::imag, Op::conj};
  const std::vector<Op> numbers = {Op::neg, Op::abs, Op::sign, Op::add,
                                   Op::sub, Op::mul, Op::div,  Op::pow};
  const std::vector<Op> int_only = {Op::popcount, Op::clz, Op::shift_left, Op::shift_right_logical,
                                    Op::shift_right_arithmetic};
  const std::vector<Op> no_float = {Op::not_, Op::and_, Op::or_, Op::xor_};
  const std::vector<Op> ordered = {Op::max, Op::min, Op::lt, Op::le, Op::gt, Op::ge};
  const std::vector<Op> all = {Op::eq, Op::ne, Op::stop_gradient};
  auto check = [](const std::vector<Op>& ops, bool takes_bool, bool takes_int, bool takes_float,
                  bool takes_complex) {
    for (Op op : ops)
      for (int k = 0; k < vt::dtype_count; ++k) {
        const auto d = static_cast<DType>(k);
        const bool takes = vt::is_bool(d)    ? takes_bool
                           : vt::is_int(d)   ? takes_int
                           : vt::is_float(d) ? takes_float
                                             : takes_complex;
        const std::vector<Aval> operands(static_cast<std::size_t>(op_table[op].arity),
                                         Aval(d, {3}));
        EXPECT_EQ(error(op, {}, operands).empty(), takes)
            << name_of(op) << " of " << vt::name_of(d);
      }
  };
  check(inexact, false, false, true, true);
  check(float_only, false, false, true, false);
  check(complex_only, false, false, false, true);
  check({Op::rem}, false, true, true, false);
  check(numbers, false, true, true, true);
  check(int_only, false, true, false, false);
  check(no_float, true, true, false, false);
  check(ordered, true, true, true, false);
  check(all, true, true, true, true);
  for (int k = 0; k < vt::dtype_count; ++k) {
    const auto d = static_cast<DType>(k);
    EXPECT_EQ(error(Op::threefry, {}, {Aval(d, {3}), Aval(d, {3})}).empty(), d == vt::u64)
        << vt::name_of(d);
    EXPECT_EQ(error(Op::complex, {}, {Aval(d, {3}), Aval(d, {3})}).empty(),
              d == vt::f32 || d == vt::f64)
        << vt::name_of(d);
  }
  EXPECT_EQ(error(Op::sin, {}, {i({3})}),
            "vt::sin: needs a float or complex dtype, not i32: i32[3]; at user.cpp:7");
  EXPECT_EQ(error(Op::clz, {}, {a32({3})}),
            "vt::clz: needs an integer dtype, not f32: f32[3]; at user.cpp:7");
  EXPECT_EQ(
      error(Op::and_, {}, {a32({}), a32({})}),
      "vt::bitwise_and: needs bool or an integer dtype, not f32: f32[] · f32[]; at user.cpp:7");
}

TEST(ShapeRules, WrongNumberOfOperands) {
  EXPECT_EQ(error(Op::sin, {}, {a32({}), a32({})}),
            "vt::sin: takes 1 operand, not 2: f32[] · f32[]; at user.cpp:7");
  EXPECT_EQ(error(Op::dot_general, make_params(DotParams{}), {a32({})}),
            "vt::dot_general: takes 2 operands, not 1: f32[]; at user.cpp:7");
  EXPECT_NE(error(Op::reshape, make_params(AxesParams{}), {a32({})})
                .find("internal: parameters of another op"),
            std::string::npos);
  EXPECT_NE(error(Op::reshape, {}, {a32({})}).find("internal: parameters of another op"),
            std::string::npos);
}

TEST(ShapeRules, Leaves) {
  EXPECT_EQ(one(Op::full, make_params(FullParams{Scalar(1.0f), a32({2, 0})}), {}), "f32[2,0]");
  EXPECT_EQ(error(Op::full, make_params(FullParams{Scalar(1.0), a32({2})}), {}),
            "vt::full: a value of dtype f64 cannot fill f32[2]; convert it first; at user.cpp:7");
  EXPECT_EQ(error(Op::full, make_params(FullParams{Scalar(1.0f), a32({2, -1})}), {}),
            "vt::full: negative extent in shape [2,-1]; at user.cpp:7");
  EXPECT_EQ(
      error(Op::full,
            make_params(
                FullParams{Scalar(1.0f), a32({std::int64_t{1} << 40, std::int64_t{1} << 30})}),
            {}),
      "vt::full: result f32[1099511627776,1073741824] is too large to address; at user.cpp:7");
  // A zero does not hide that the other extents overflow.
  EXPECT_NE(error(Op::full,
                  make_params(FullParams{Scalar(1.0f),
                                         a32({0, std::int64_t{1} << 40, std::int64_t{1} << 40})}),
                  {}),
            "");
  EXPECT_EQ(one(Op::iota, make_params(IotaParams{i({2, 3}), 1}), {}), "i32[2,3]");
  EXPECT_EQ(error(Op::iota, make_params(IotaParams{i({2, 3}), 2}), {}),
            "vt::iota: axis 2 out of range for rank 2; at user.cpp:7");
  EXPECT_EQ(error(Op::iota, make_params(IotaParams{Aval(bool_, {2}), 0}), {}),
            "vt::iota: needs an integer or float dtype, not bool; at user.cpp:7");
}

TEST(ShapeRules, Conversions) {
  EXPECT_EQ(one(Op::convert, make_params(ConvertParams{f16, false}), {i({3})}), "f16[3]");
  EXPECT_EQ(one(Op::bitcast, make_params(ConvertParams{u32, false}), {a32({3})}), "u32[3]");
  EXPECT_EQ(error(Op::bitcast, make_params(ConvertParams{u16, false}), {a32({3})}),
            "vt::bitcast: to u16: element sizes differ (4 and 2 bytes): f32[3]; at user.cpp:7");
  EXPECT_NE(error(Op::bitcast, make_params(ConvertParams{bool_, false}), {Aval(u8, {3})}), "");
  EXPECT_NE(error(Op::reduce_precision, make_params(PrecisionParams{0, 3}), {a32({3})}), "");
  EXPECT_NE(error(Op::reduce_precision, make_params(PrecisionParams{5, -1}), {a32({3})}), "");
}

TEST(ShapeRules, Reductions) {
  const auto axes = [](Axes a) { return make_params(AxesParams{std::move(a)}); };
  EXPECT_EQ(one(Op::reduce_sum, axes({0, 2}), {a32({2, 3, 4})}), "f32[3]");
  EXPECT_EQ(one(Op::reduce_sum, axes({}), {a32({2, 3})}), "f32[2,3]");
  EXPECT_EQ(one(Op::reduce_sum, axes({0}), {a32({0})}), "f32[]");
  EXPECT_EQ(one(Op::reduce_max, axes({1}), {a32({0, 3})}), "f32[0]");
  EXPECT_EQ(error(Op::reduce_max, axes({0}), {a32({0, 3})}),
            "vt::max: no elements to choose from: f32[0,3]; at user.cpp:7");
  EXPECT_EQ(error(Op::reduce_sum, axes({2}), {a32({2, 3})}),
            "vt::sum: axes 2 out of range for rank 2: f32[2,3]; at user.cpp:7");
  EXPECT_EQ(error(Op::reduce_sum, axes({1, 1}), {a32({2, 3})}),
            "vt::sum: axes (1,1) names axis 1 twice: f32[2,3]; at user.cpp:7");
  EXPECT_EQ(error(Op::reduce_sum, axes({1, 0}), {a32({2, 3})}),
            "vt::sum: axes (1,0) must be in increasing order: f32[2,3]; at user.cpp:7");
  EXPECT_EQ(error(Op::reduce_any, axes({0}), {a32({2})}),
            "vt::any: needs bool, not f32: f32[2]; at user.cpp:7");
  EXPECT_EQ(one(Op::argmax, make_params(ArgParams{1, i64}), {a32({2, 3})}), "i64[2]");
  EXPECT_EQ(error(Op::argmax, make_params(ArgParams{0, i8}), {a32({129})}),
            "vt::argmax: i8 does not hold the indices of an axis of 129: f32[129]; at user.cpp:7");
  EXPECT_EQ(one(Op::argmax, make_params(ArgParams{0, i8}), {a32({128})}), "i8[]");
  EXPECT_NE(error(Op::argmin, make_params(ArgParams{0, f32}), {a32({3})}), "");
  EXPECT_NE(error(Op::argmin, make_params(ArgParams{0, i32}), {a32({0})}), "");
  EXPECT_EQ(one(Op::cumsum, make_params(CumulativeParams{1, true}), {a32({2, 3})}), "f32[2,3]");
  EXPECT_NE(error(Op::cumsum, make_params(CumulativeParams{-1, true}), {a32({2, 3})}), "");
  EXPECT_NE(error(Op::cumlogsumexp, make_params(CumulativeParams{0, false}), {i({2})}), "");
}

TEST(ShapeRules, GeneralReduce) {
  Builder body;
  const Var acc = body.input(f32, {}), x = body.input(f32, {});
  const auto graph = std::make_shared<const GraphBody>(body.returns({body.add(Op::add, {acc, x})}));
  const auto params = make_params(ReduceParams{Axes{0}, graph});
  EXPECT_EQ(one(Op::reduce, params, {a32({2, 3}), a32({})}), "f32[3]");
  EXPECT_NE(error(Op::reduce, params, {a32({2, 3})}), "");
  EXPECT_NE(
      error(Op::reduce, params, {a32({2, 3}), a32({1})}).find("initial values must be scalars"),
      std::string::npos);
  EXPECT_NE(error(Op::reduce, params, {i({2, 3}), i({})}).find("it maps f32[] and f32[] to f32[]"),
            std::string::npos);
  EXPECT_NE(error(Op::reduce, params, {a32({2}), a32({2}), a32({}), a32({})})
                .find("must take 4 scalars and give 2"),
            std::string::npos);
}

TEST(ShapeRules, ShapeOps) {
  const auto shape = [](Shape s) { return make_params(ShapeParams{std::move(s)}); };
  EXPECT_EQ(one(Op::reshape, shape({6}), {a32({2, 3})}), "f32[6]");
  EXPECT_EQ(error(Op::reshape, shape({7}), {a32({2, 3})}),
            "vt::reshape: 6 elements do not fill shape [7] (7): f32[2,3]; at user.cpp:7");
  EXPECT_NE(error(Op::reshape, shape({-2, -3}), {a32({2, 3})}), "");
  const auto permutation = [](Axes p) { return make_params(PermutationParams{std::move(p)}); };
  EXPECT_EQ(one(Op::transpose, permutation({2, 0, 1}), {a32({2, 3, 4})}), "f32[4,2,3]");
  EXPECT_NE(error(Op::transpose, permutation({0, 0}), {a32({2, 3})}).find("names axis 0 twice"),
            std::string::npos);
  EXPECT_NE(error(Op::transpose, permutation({0}), {a32({2, 3})}).find("one entry per axis"),
            std::string::npos);
  const auto broadcast = [](Shape s, Axes a) {
    return make_params(BroadcastParams{std::move(s), std::move(a)});
  };
  EXPECT_EQ(one(Op::broadcast_in_dim, broadcast({2, 3, 4}, {0, 2}), {a32({2, 1})}), "f32[2,3,4]");
  EXPECT_EQ(error(Op::broadcast_in_dim, broadcast({2, 3}, {1}), {a32({2})}),
            "vt::broadcast_in_dim: to [2,3] along (1,): axis 0 of size 2 does not broadcast to 3: "
            "f32[2]; at user.cpp:7");
  EXPECT_NE(
      error(Op::broadcast_in_dim, broadcast({2, 3}, {1, 0}), {a32({3, 2})}).find("increasing"),
      std::string::npos);
  EXPECT_NE(error(Op::broadcast_in_dim, broadcast({2, 3}, {}), {a32({3})}), "");
  const auto axis = [](int a) { return make_params(AxisParams{a}); };
  EXPECT_EQ(one(Op::concatenate, axis(1), {a32({2, 1}), a32({2, 0}), a32({2, 5})}), "f32[2,6]");
  EXPECT_NE(error(Op::concatenate, axis(0), {a32({2, 1}), a32({2, 3})})
                .find("operand 1 differs from the first in axis 1"),
            std::string::npos);
  EXPECT_NE(error(Op::concatenate, axis(0), {}), "");
  EXPECT_NE(error(Op::concatenate, axis(0), {a32({}), a32({})}), "");
  EXPECT_NE(error(Op::concatenate, axis(0), {a32({2}), a32({2, 2})}), "");
  EXPECT_NE(error(Op::concatenate, axis(0), {a32({2}), i({2})}), "");
  EXPECT_EQ(one(Op::rev, make_params(AxesParams{Axes{1}}), {a32({2, 3})}), "f32[2,3]");
  EXPECT_NE(error(Op::rev, make_params(AxesParams{Axes{2}}), {a32({2, 3})}), "");
}

TEST(ShapeRules, Pad) {
  const auto pad = [](Shape l, Shape h, Shape in) {
    return make_params(PadParams{std::move(l), std::move(h), std::move(in)});
  };
  EXPECT_EQ(one(Op::pad, pad({1}, {2}, {3}), {a32({4}), a32({})}), "f32[16]");
  EXPECT_EQ(one(Op::pad, pad({1}, {2}, {3}), {a32({0}), a32({})}), "f32[3]");
  EXPECT_EQ(one(Op::pad, pad({-1}, {-3}, {0}), {a32({4}), a32({})}), "f32[0]");
  EXPECT_EQ(error(Op::pad, pad({-2}, {-3}, {0}), {a32({4}), a32({})}),
            "vt::pad: low [-2], high [-3] crop axis 0 to a negative size (-1): f32[4] · f32[]; at "
            "user.cpp:7");
  EXPECT_NE(error(Op::pad, pad({0}, {0}, {-1}), {a32({4}), a32({})}), "");
  EXPECT_NE(error(Op::pad, pad({0}, {0}, {0}), {a32({4}), a32({1})}), "");
  EXPECT_NE(error(Op::pad, pad({0}, {0}, {0}), {a32({4}), i({})}), "");
  EXPECT_NE(error(Op::pad, pad({0, 0}, {0}, {0}), {a32({4}), a32({})}), "");
  EXPECT_NE(
      error(Op::pad, pad({INT64_MAX}, {INT64_MAX}, {0}), {a32({4}), a32({})}).find("too large"),
      std::string::npos);
}

TEST(ShapeRules, Slices) {
  const auto slice = [](Shape s, Shape l, Shape d) {
    return make_params(SliceParams{std::move(s), std::move(l), std::move(d)});
  };
  EXPECT_EQ(one(Op::slice, slice({1, 0}, {6, 3}, {2, 1}), {a32({7, 3})}), "f32[3,3]");
  EXPECT_EQ(one(Op::slice, slice({7}, {7}, {1}), {a32({7})}), "f32[0]");
  EXPECT_EQ(error(Op::slice, slice({1}, {8}, {1}), {a32({7})}),
            "vt::slice: start [1], limit [8] leave axis 0 of size 7: f32[7]; at user.cpp:7");
  EXPECT_NE(error(Op::slice, slice({4}, {3}, {1}), {a32({7})}), "");
  EXPECT_NE(error(Op::slice, slice({-1}, {3}, {1}), {a32({7})}), "");
  EXPECT_NE(error(Op::slice, slice({0}, {3}, {0}), {a32({7})}), "");
  EXPECT_NE(error(Op::slice, slice({0}, {3}, {}), {a32({7})}), "");
  const auto sizes = [](Shape s) { return make_params(ShapeParams{std::move(s)}); };
  EXPECT_EQ(one(Op::dynamic_slice, sizes({1, 3}), {a32({4, 3}), i({}), Aval(i64, {})}), "f32[1,3]");
  EXPECT_NE(error(Op::dynamic_slice, sizes({5, 3}), {a32({4, 3}), i({}), i({})})
                .find("does not fit in axis 0 of size 4"),
            std::string::npos);
  EXPECT_NE(error(Op::dynamic_slice, sizes({1, 3}), {a32({4, 3}), i({})})
                .find("needs one start per axis (2), not 1"),
            std::string::npos);
  EXPECT_NE(error(Op::dynamic_slice, sizes({1}), {a32({4}), a32({})}).find("must be an integer"),
            std::string::npos);
  EXPECT_NE(error(Op::dynamic_slice, sizes({1}), {a32({4}), i({1})}).find("must be a scalar"),
            std::string::npos);
  EXPECT_EQ(one(Op::dynamic_update_slice, {}, {a32({4, 3}), a32({2, 3}), i({}), i({})}),
            "f32[4,3]");
  EXPECT_NE(error(Op::dynamic_update_slice, {}, {a32({4}), a32({5}), i({})}).find("does not fit"),
            std::string::npos);
  EXPECT_NE(error(Op::dynamic_update_slice, {}, {a32({4}), i({2}), i({})}), "");
  EXPECT_NE(error(Op::dynamic_update_slice, {}, {a32({4}), a32({2, 1}), i({})}), "");
}

GatherParams rows() {  // x[idx] of x[5,3], idx[4,1]
  GatherParams p;
  p.offset_dims = {1};
  p.collapsed_slice_dims = {0};
  p.start_index_map = {0};
  p.slice_sizes = {1, 3};
  return p;
}

TEST(ShapeRules, Gather) {
  const std::vector<Aval> operands = {a32({5, 3}), i({4, 1})};
  const auto broken = [&](auto change) {
    GatherParams p = rows();
    change(p);
    return error(Op::gather, make_params(p), operands);
  };
  EXPECT_EQ(one(Op::gather, make_params(rows()), operands), "f32[4,3]");
  EXPECT_NE(broken([](auto& p) {
              p.offset_dims = {0, 1};
            }).find("offset_dims (0,1) do not name one result axis per window axis (1)"),
            std::string::npos);
  EXPECT_NE(
      broken([](auto& p) { p.offset_dims = {2}; }).find("offset_dims 2 out of range for rank 2"),
      std::string::npos);
  EXPECT_NE(broken([](auto& p) {
              p.collapsed_slice_dims = {2};
            }).find("collapsed_slice_dims 2 out of range"),
            std::string::npos);
  EXPECT_NE(broken([](auto& p) {
              p.start_index_map = {0, 1};
            }).find("start_index_map (0,1) does not name one operand axis"),
            std::string::npos);
  EXPECT_NE(broken([](auto& p) { p.slice_sizes = {2, 3}; }).find("must be 1 in axis 0"),
            std::string::npos);
  EXPECT_NE(broken([](auto& p) {
              p.slice_sizes = {1, 4};
            }).find("window [1,4] does not fit in axis 1 of size 3"),
            std::string::npos);
  EXPECT_NE(
      broken([](auto& p) { p.slice_sizes = {1}; }).find("slice_sizes [1] has 1 entries for rank 2"),
      std::string::npos);
  EXPECT_NE(broken([](auto& p) {
              p.operand_batching_dims = {0}, p.indices_batching_dims = {0};
            }).find("in both"),
            std::string::npos);
  EXPECT_NE(broken([](auto& p) { p.operand_batching_dims = {1}; }).find("differ in length"),
            std::string::npos);
  EXPECT_NE(error(Op::gather, make_params(rows()), {a32({5, 3}), a32({4, 1})})
                .find("indices must be integers, not f32"),
            std::string::npos);
  EXPECT_NE(error(Op::gather, make_params(rows()), {a32({5, 3}), i({})}).find("last axis"),
            std::string::npos);

  GatherParams lanes;  // x[b, idx[b]] of x[4,7], idx[4,1]
  lanes.start_index_map = {1};
  lanes.collapsed_slice_dims = {1};
  lanes.operand_batching_dims = {0};
  lanes.indices_batching_dims = {0};
  lanes.slice_sizes = {1, 1};
  EXPECT_EQ(one(Op::gather, make_params(lanes), {a32({4, 7}), i({4, 1})}), "f32[4]");
  EXPECT_EQ(one(Op::gather, make_params(lanes), {a32({0, 7}), i({0, 1})}), "f32[0]");
  EXPECT_NE(error(Op::gather, make_params(lanes), {a32({5, 7}), i({4, 1})}).find("differ in size"),
            std::string::npos);
  // Nothing can be read from an empty axis, unless nothing is read.
  EXPECT_EQ(one(Op::gather, make_params(lanes), {a32({0, 0}), i({0, 1})}), "f32[0]");
  EXPECT_NE(error(Op::gather, make_params(lanes), {a32({4, 0}), i({4, 1})})
                .find("does not fit in axis 1 of size 0"),
            std::string::npos);
}

TEST(ShapeRules, Scatter) {
  ScatterParams p;  // x[5,3] at idx[4,1] with updates[4,3]
  p.update_window_dims = {1};
  p.inserted_window_dims = {0};
  p.scatter_dims_to_operand_dims = {0};
  const auto run = [&](const ScatterParams& q, const std::vector<Aval>& operands) {
    return error(Op::scatter_add, make_params(q), operands);
  };
  const std::vector<Aval> good = {a32({5, 3}), i({4, 1}), a32({4, 3})};
  EXPECT_EQ(one(Op::scatter_add, make_params(p), good), "f32[5,3]");
  EXPECT_NE(
      run(p, {a32({5, 3}), i({4, 1}), a32({4, 4})}).find("does not fit in axis 1 of the operand"),
      std::string::npos);
  EXPECT_NE(run(p, {a32({5, 3}), i({4, 1}), a32({3, 3})})
                .find("axis 0 of the updates and 0 of the indices differ in size"),
            std::string::npos);
  EXPECT_NE(run(p, {a32({5, 3}), i({4, 1}), a32({4})}).find("updates must have rank 2"),
            std::string::npos);
  EXPECT_NE(run(p, {a32({5, 3}), i({4, 1}), i({4, 3})}).find("different dtypes"),
            std::string::npos);
  EXPECT_NE(run(p, {a32({5, 3}), i({4, 2}), a32({4, 3})}).find("scatter_dims_to_operand_dims"),
            std::string::npos);
  EXPECT_NE(
      error(Op::scatter_add, make_params(p), {Aval(bool_, {5, 3}), i({4, 1}), Aval(bool_, {4, 3})})
          .find("not bool"),
      std::string::npos);
  EXPECT_EQ(one(Op::scatter, make_params(p), {Aval(bool_, {5, 3}), i({4, 1}), Aval(bool_, {4, 3})}),
            "bool[5,3]");
  // Dropping into an empty axis is fine, clipping into it is not.
  EXPECT_EQ(one(Op::scatter_add, make_params(p), {a32({0, 3}), i({4, 1}), a32({4, 3})}),
            "f32[0,3]");
  p.mode = IndexMode::clip;
  EXPECT_NE(run(p, {a32({0, 3}), i({4, 1}), a32({4, 3})}), "");
}

TEST(ShapeRules, DotGeneral) {
  const auto dot = [](Axes lc, Axes rc, Axes lb, Axes rb, DType d = f32) {
    return make_params(DotParams{std::move(lc), std::move(rc), std::move(lb), std::move(rb), d});
  };
  EXPECT_EQ(one(Op::dot_general, dot({2}, {1}, {0}, {2}), {a32({8, 3, 4}), a32({5, 4, 8})}),
            "f32[8,3,5]");
  EXPECT_EQ(one(Op::dot_general, dot({}, {}, {}, {}), {a32({2}), a32({3})}), "f32[2,3]");
  EXPECT_EQ(one(Op::dot_general, dot({0}, {0}, {}, {}, f64), {a32({2}), a32({2})}), "f64[]");
  EXPECT_EQ(error(Op::dot_general, dot({1}, {0}, {}, {}), {a32({3, 4}), a32({5, 6})}),
            "vt::dot_general: contracting axes 1 and 0 differ in size (4 and 5): f32[3,4] · "
            "f32[5,6]; at user.cpp:7");
  EXPECT_NE(error(Op::dot_general, dot({0}, {0}, {0}, {}), {a32({2}), a32({2})})
                .find("in both lhs_batch (0,) and lhs_contract (0,)"),
            std::string::npos);
  EXPECT_NE(error(Op::dot_general, dot({0, 1}, {0}, {}, {}), {a32({2, 2}), a32({2, 2})})
                .find("numbers of contracting axes differ"),
            std::string::npos);
  EXPECT_NE(error(Op::dot_general, dot({0}, {0}, {}, {}), {a32({2}), Aval(f64, {2})})
                .find("dtypes differ"),
            std::string::npos);
  EXPECT_NE(error(Op::dot_general, dot({0}, {0}, {}, {}, f16), {a32({2}), a32({2})})
                .find("f16 cannot hold"),
            std::string::npos);
  EXPECT_NE(
      error(Op::dot_general, dot({0}, {0}, {}, {}, u64), {i({2}), i({2})}).find("u64 cannot hold"),
      std::string::npos);
  EXPECT_NE(
      error(Op::dot_general, dot({0}, {0}, {}, {}, bool_), {Aval(bool_, {2}), Aval(bool_, {2})}),
      "");
}

TEST(ShapeRules, Calls) {
  Builder body;
  const Var x = body.input(f32, {3});
  const auto graph = std::make_shared<const GraphBody>(body.returns({x, body.add(Op::sin, {x})}));
  const auto call = make_params(CallParams{graph, {}, 1});
  EXPECT_EQ(infer_of(Op::call, call, {a32({3})}).size(), 2u);
  EXPECT_NE(error(Op::call, call, {a32({4})}).find("operand 0 must be f32[3]"), std::string::npos);
  EXPECT_NE(error(Op::call, call, {}).find("the body takes 1 operands, not 0"), std::string::npos);
  EXPECT_NE(error(Op::custom_jvp, call, {a32({3})}).find("the custom rule is empty"),
            std::string::npos);
}

}  // namespace
