// What the public functions refuse: each message names the function,
// the operands and the user's line.
#include <limits>

#include <vt/vt.hpp>

#include "support/property.hpp"

namespace {

using namespace vt;

struct Case {
  ErrorKind kind;
  std::vector<std::string> parts;
  std::function<void()> call;
};

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    std::vector<std::string> parts = c.parts;
    parts.push_back("; at ops_errors_test.cpp:");
    vt_test::expect_error(c.call, c.kind, parts);
  }
}

const auto shape = ErrorKind::shape, dtype = ErrorKind::dtype, value = ErrorKind::value;

TEST(Refusals, Elementwise) {
  const Tensor a = ones({2, 3}), b = ones({4}), i = ones({3}, i32), none;
  check({
      {shape,
       {"vt::add: shapes do not broadcast, 3 and 4 at axis -1: f32[2,3] · f32[4]"},
       [&] { a + b; }},
      {shape,
       {"3 and 2 at axis -1", "vt::expand_dims(…, 1) of the second would fit", "f32[2,3] · f32[2]"},
       [&] { a + ones({2}); }},
      {shape,
       {"vt::transpose of the second would fit", "f32[2,3] · f32[3,2]"},
       [&] { a* ones({3, 2}); }},
      {shape, {"vt::expand_dims(…, 1) of the first would fit"}, [&] { ones({2}) - a; }},
      {shape,
       {"inner sizes differ, 3 at axis 1 of the first and 2 at axis 0 of the second",
        "vt::transpose of the second would fit"},
       [&] { (void)matmul(a, ones({2, 3})); }},
      {shape, {"vt::multiply", "f32[2,3] · f32[4]"}, [&] { a* b; }},
      {shape, {"vt::less", "f32[2,3] · f32[4]"}, [&] { a < b; }},
      {shape, {"vt::where", "f32[2,3]", "f32[4]"}, [&] { (void)where(a > 0, a, b); }},
      {shape, {"vt::hypot", "broadcast"}, [&] { (void)hypot(a, b); }},
      {shape, {"vt::logaddexp", "broadcast"}, [&] { (void)logaddexp(a, b); }},
      {dtype, {"vt::bitwise_and: needs bools or integers: f32[2,3] · i32[3]"}, [&] { a & i; }},
      {dtype, {"vt::bitwise_not", "f32[2,3]"}, [&] { ~a; }},
      {dtype, {"vt::shift_left: needs integers", "f32[2,3]"}, [&] { a << 1; }},
      {dtype, {"vt::popcount", "f32[2,3]"}, [&] { (void)popcount(a); }},
      {dtype, {"vt::bitcast", "f64", "f32[2,3]"}, [&] { (void)bitcast(a, f64); }},
      {value, {"vt::reduce_precision", "exponent_bits"}, [&] { (void)reduce_precision(a, 0, 3); }},
      {value, {"vt::sin: an operand is an empty Tensor"}, [&] { (void)sin(none); }},
      {value, {"vt::subtract", "empty"}, [&] { a - none; }},
      {value, {"vt::where", "empty"}, [&] { (void)where(none, a, a); }},
  });
}

// Sizes are computed without wrapping: what is too large is refused by the function that was
// called.
TEST(Refusals, Sizes) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                         half = std::int64_t{1} << 62, side = std::int64_t{1} << 32;
  constexpr std::int64_t much = std::int64_t{1} << 40, bytes = std::int64_t{1} << 61;
  using Edges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  const Tensor two = ones({2}), m = ones({4, 3}), real = tensor({1.0f, 2.0f}), i = tensor({0, 1}),
               k = random::key(1), none = zeros({0});
  const Tensor long_one = broadcast_to(tensor(std::vector<float>{1}), {much}),
               wide = broadcast_to(tensor(std::vector<std::uint8_t>{1}), {bytes});
  const Tensor row = reshape(long_one, {1, much}), column = reshape(long_one, {much, 1});
  const char *large = "too large", *many = "too many";
  check({
      {shape, {"vt::repeat", large, "f32[2]"}, [&] { (void)repeat(two, most); }},
      {shape, {"vt::repeat", large, "f32[2]"}, [&] { (void)repeat(real, bytes); }},
      {shape, {"vt::repeat", large, "f32[4,3]"}, [&] { (void)repeat(m, most, 0); }},
      {shape, {"vt::tile", large, "f32[4,3]"}, [&] { (void)tile(m, {half, 1}); }},
      {shape, {"vt::tile", large, "f32[4,3]"}, [&] { (void)tile(m, {side, side}); }},
      {shape, {"vt::tile", large, "f32[2]"}, [&] { (void)tile(real, {half}); }},
      {shape,
       {"vt::tile", large, "f32[]", "lanes"},
       [&] { vmap([](Tensor x) { return tile(x, {most}); })(two); }},
      {shape, {"vt::pad", large, "f32[2]"}, [&] { (void)pad(two, Edges{{most, most}}); }},
      {shape,
       {"vt::pad", "negative size", "f32[2]"},
       [&] { (void)pad(two, Edges{{-most - 1, -most - 1}}); }},
      {shape,
       {"vt::pad", large, "f32[4,3]"},
       [&] { (void)pad(m, 0.0, {0, 0}, {0, 0}, {most, 0}); }},
      {shape,
       {"vt::pad", large, "f32[2]"},
       [&] { (void)pad(two, Edges{{most, most}}, PadMode::edge); }},
      {shape,
       {"vt::pad", large, "f32[2]"},
       [&] { (void)pad(two, Edges{{half, half}}, PadMode::reflect); }},
      {shape,
       {"vt::concatenate", large, "u8["},
       [&] { (void)concatenate({wide, wide, wide, wide, wide}); }},
      {shape, {"vt::stack", large, "u8["}, [&] { (void)stack({wide, wide, wide}); }},
      {shape,
       {"vt::broadcast_to", large, "f32[]"},
       [&] { (void)broadcast_to(tensor(1.0f), {side, side}); }},
      {shape, {"vt::reshape", "f32[0]"}, [&] { (void)reshape(none, {side, side, -1}); }},
      {shape, {"vt::zeros", large}, [&] { (void)zeros({side, side}); }},
      {shape, {"vt::full", large}, [&] { (void)full({side, side}, real[0]); }},
      {shape,
       {"vt::tensor", "0 values do not fill"},
       [&] { (void)tensor(std::vector<float>{}, Shape{side, side}); }},
      {shape, {"vt::arange", many}, [&] { (void)arange(std::int64_t{1} << 60); }},
      {shape, {"vt::linspace", large}, [&] { (void)linspace(0.0, 1.0, bytes); }},
      {shape, {"vt::eye", large}, [&] { (void)eye(much); }},
      {shape, {"vt::one_hot", large, "i32[2]"}, [&] { (void)one_hot(i, most); }},
      {shape, {"vt::bincount", large}, [&] { (void)bincount(i, most); }},
      {shape, {"vt::histogram", large, "f32[2]"}, [&] { (void)histogram(two, most, 0.0, 1.0); }},
      {shape, {"vt::nonzero", large, "f32[2]"}, [&] { (void)nonzero(two, most); }},
      {shape, {"vt::unique", large, "f32[2]"}, [&] { (void)unique(two, {.size = most}); }},
      {shape,
       {"vt::add", large, "f32[1099511627776,1] · f32[1,1099511627776]"},
       [&] { column + row; }},
      {shape, {"vt::kron", large}, [&] { (void)kron(long_one, long_one); }},
      {shape, {"vt::outer", large}, [&] { (void)outer(long_one, long_one); }},
      {shape, {"vt::matmul", large}, [&] { (void)matmul(column, row); }},
      {shape, {"vt::einsum", large}, [&] { (void)einsum("i,j->ij", long_one, long_one); }},
      {shape, {"vt::meshgrid", large}, [&] { (void)meshgrid({long_one, long_one}); }},
      {shape, {"vt::diag", large}, [&] { (void)diag(long_one); }},
      {shape, {"vt::resize", large}, [&] { (void)resize(m, {most, 3}); }},
      {shape,
       {"vt::crop_and_resize", large},
       [&] {
         (void)crop_and_resize(ones({1, 4, 4, 1}), ones({1, 4}), zeros({1}, i32), side, side);
       }},
      {shape,
       {"vt::batch_to_space", large},
       [&] { (void)batch_to_space(zeros({0, 4, 4}), {half, half}, Edges{{0, 0}, {0, 0}}); }},
      {shape,
       {"vt::depth_to_space", "f32[1,1,1,4]"},
       [&] { (void)depth_to_space(ones({1, 1, 1, 4}), 1 << 16); }},
      {shape,
       {"vt::conv1d", large},
       [&] { (void)conv1d(ones({1, 5, 1}), ones({3, 1, 1}), {.padding = Edges{{most, 0}}}); }},
      {shape,
       {"vt::conv1d", large},
       [&] {
         (void)conv1d(reshape(long_one, {1, much, 1}), ones({3, 1, 1}),
                      {.lhs_dilation = {much}, .rhs_dilation = {much}});
       }},
      {shape,
       {"vt::reduce_window", large},
       [&] {
         (void)reduce_window(two, WindowReduction::sum,
                             {.window = {much}, .window_dilation = {much}});
       }},
      // more bytes than can be addressed, of as many elements
      {shape, {"vt::astype", large, "u8["}, [&] { (void)ones({bytes}, u8).astype(f64); }},
      {shape, {"vt::convert", large, "u8["}, [&] { (void)wide.astype(f64); }},
      {shape, {"vt::complex", large}, [&] { (void)complex(ones({bytes / 2}), ones({bytes / 2})); }},
      // draws
      {shape, {"vt::random::uniform", large}, [&] { (void)random::uniform(k, {side, side}); }},
      {shape, {"vt::random::normal", large}, [&] { (void)random::normal(k, {side, side, 3}); }},
      {shape, {"vt::random::bits", large}, [&] { (void)random::bits(k, {side, side}); }},
      {shape, {"vt::random::split", large}, [&] { (void)random::split(k, half); }},
      {shape, {"vt::random::permutation", large}, [&] { (void)random::permutation(k, most); }},
      {shape, {"vt::random::choice", large}, [&] { (void)random::choice(k, 5, {side, side}); }},
      {shape,
       {"vt::random::choice", large},
       [&] { (void)random::choice(k, most, {2}, {.replace = false}); }},
      {shape,
       {"vt::random::categorical", large},
       [&] { (void)random::categorical(k, two, {side, side}, {.replace = false}); }},
      {shape, {"vt::random::ball", large}, [&] { (void)random::ball(k, {2}, most); }},
      {shape, {"vt::random::dirichlet", large}, [&] { (void)random::dirichlet(k, {half}, two); }},
      // lanes and steps
      {shape,
       {large, "f32[1099511627776,1099511627776]"},
       [&] { vmap([](Tensor x) { return broadcast_to(x, {much}) * 2.0; })(long_one); }},
      {shape,
       {"vt::scan", large},
       [&] {
         scan([](Tensor c, Tensor x) { return std::pair(c, ones({much}) * x); }, tensor(1.0f),
              long_one);
       }},
  });
  EXPECT_EQ(repeat(none, most).shape(), (Shape{0}));
  EXPECT_EQ(tile(none, {most}).shape(), (Shape{0}));
  EXPECT_EQ(pad(real, Edges{{5, 4}}, PadMode::wrap).to_vector<float>(),
            (std::vector<float>{2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}));
}

TEST(Refusals, Reductions) {
  const Tensor a = ones({2, 3}), e = ones({0, 3});
  check({
      {shape, {"vt::sum: axis 2 out of range for rank 2: f32[2,3]"}, [&] { (void)sum(a, 2); }},
      {shape, {"vt::sum", "axis -3"}, [&] { (void)sum(a, -3); }},
      {shape, {"vt::mean", "twice"}, [&] { (void)mean(a, {0, -2}); }},
      {shape, {"vt::max: no elements", "f32[0,3]"}, [&] { (void)max(e); }},
      {shape, {"vt::min: no elements", "f32[0,3]"}, [&] { (void)min(e, 0); }},
      {shape, {"vt::argmax", "f32[0,3]"}, [&] { (void)argmax(e, 0); }},
      {shape, {"vt::argmin", "axis 5"}, [&] { (void)argmin(a, 5); }},
      {shape,
       {"vt::linalg::norm", "no elements"},
       [&] { (void)norm(e, std::numeric_limits<double>::infinity()); }},
      {shape, {"vt::cumsum", "axis 2"}, [&] { (void)cumsum(a, 2); }},
      {shape, {"vt::cumsum", "rank 0"}, [&] { (void)cumsum(sum(a)); }},
      {shape,
       {"vt::reduce", "initial value must be a scalar"},
       [&] { (void)reduce(a, a, [](Tensor p, Tensor q) { return p + q; }); }},
      {shape,
       {"vt::reduce", "must map f32[] and f32[] to f32[]"},
       [&] { (void)reduce(a, 0, [](Tensor p, Tensor q) { return stack({p, q}); }); }},
  });
}

TEST(Refusals, Shapes) {
  const Tensor a = ones({2, 3}), b = ones({4});
  check({
      {shape,
       {"vt::reshape: 6 elements do not fill shape [4]", "f32[2,3]"},
       [&] { (void)reshape(a, {4}); }},
      {shape, {"vt::reshape", "only one"}, [&] { (void)a.reshape({-1, -1}); }},
      {shape, {"vt::reshape", "[4,-1]"}, [&] { (void)a.reshape({4, -1}); }},
      {shape, {"vt::transpose", "one entry per axis"}, [&] { (void)transpose(a, {0}); }},
      {shape, {"vt::transpose", "twice"}, [&] { (void)transpose(a, {0, 0}); }},
      {shape, {"vt::moveaxis", "differ in length"}, [&] { (void)moveaxis(a, {0, 1}, {0}); }},
      {shape, {"vt::broadcast_to", "[2,4]", "f32[2,3]"}, [&] { (void)broadcast_to(a, {2, 4}); }},
      {shape, {"vt::broadcast_to", "[3]"}, [&] { (void)broadcast_to(a, {3}); }},
      {shape, {"vt::squeeze: axis 1 has size 3, not 1"}, [&] { (void)squeeze(a, 1); }},
      {shape, {"vt::expand_dims", "axis 4"}, [&] { (void)expand_dims(a, 4); }},
      {shape, {"vt::concatenate", "f32[2,3] · f32[4]"}, [&] { (void)concatenate({a, b}); }},
      {shape, {"vt::concatenate: needs at least one"}, [&] { (void)concatenate({}); }},
      {shape, {"vt::stack: shapes differ", "f32[2,3] · f32[4]"}, [&] { (void)stack({a, b}); }},
      {shape, {"vt::split", "size 3", "2 equal parts"}, [&] { (void)split(a, 2, 1); }},
      {shape, {"vt::pad", "3 pairs"}, [&] { (void)pad(a, {{0, 0}, {0, 0}, {1, 1}}); }},
      {shape, {"vt::pad", "negative size"}, [&] { (void)pad(b, {{-3, -3}}); }},
      {dtype, {"vt::pad", "i32 does not hold"}, [&] { (void)pad(ones({2}, i32), {{1, 1}}, 0.5); }},
      {value, {"vt::tile", "negative"}, [&] { (void)tile(a, {-1}); }},
      {value, {"vt::repeat", "negative"}, [&] { (void)repeat(a, -1); }},
      {shape, {"vt::meshgrid", "vectors"}, [&] { (void)meshgrid({a, b}); }},
      {shape, {"vt::space_to_depth", "[N,H,W,C]"}, [&] { (void)space_to_depth(a, 2); }},
      {shape, {"vt::zeros", "negative extent"}, [&] { (void)zeros({2, -1}); }},
      {shape,
       {"vt::ones", "too large"},
       [&] { (void)ones({std::int64_t{1} << 40, std::int64_t{1} << 40}); }},
      {shape, {"vt::full", "does not broadcast to [2,4]"}, [&] { (void)full({2, 4}, a); }},
      {value, {"vt::arange", "step"}, [&] { (void)arange(0, 3, 0); }},
      {value, {"vt::linspace", "-1"}, [&] { (void)linspace(0, 1, -1); }},
  });
}

TEST(Refusals, Indices) {
  const Tensor a = ones({2, 3}), s = sum(a), mask = a[0] > 0, real = ones({2}), i = ones({2}, i32),
               z = complex(real, real);
  check({
      {value, {"index 2 out of range for axis 0 of size 2: f32[2,3]"}, [&] { a[2]; }},
      {value, {"index -3 out of range"}, [&] { a[-3]; }},
      {shape, {"a scalar has no axis", "f32[]"}, [&] { s[0]; }},
      {shape, {"a scalar has no axis"}, [&] { s[slice(1)]; }},
      {value, {"step of a slice"}, [&] { a[slice(0, 1, 0)]; }},
      {dtype, {"vt::where", "nonzero", "bool[3]"}, [&] { a[mask]; }},
      {dtype, {"vt::take: indices must be integers: f32[2]"}, [&] { (void)take(a, real, 0); }},
      {shape, {"vt::take", "axis 2"}, [&] { (void)take(a, i, 2); }},
      {shape, {"vt::take", "axis of size 0"}, [&] { (void)take(zeros({0}), i); }},
      {shape,
       {"vt::take_along_axis", "rank", "f32[2,3] · i32[2]"},
       [&] { (void)take_along_axis(a, i, 0); }},
      {shape,
       {"vt::take_along_axis", "axis 0 does not broadcast"},
       [&] { (void)take_along_axis(a, ones({5, 1}, i32), 1); }},
      {shape,
       {"vt::index_update", "do not broadcast to [2,3]", "f32[2,3] · f32[2]"},
       [&] { (void)index_update(a, i, real); }},
      {dtype, {"vt::index_add", "i32 does not hold"}, [&] { (void)index_add(i, 0, 0.5); }},
      {dtype, {"vt::index_mul", "bools"}, [&] { (void)index_mul(mask, 0, true); }},
      {shape,
       {"vt::gather_nd", "3 components address 2 axes, those of ["},
       [&] { (void)gather_nd(a, ones({4, 3}, i32)); }},
      {shape,
       {"vt::scatter_nd", "must have shape [4]"},
       [&] { (void)scatter_nd(ones({4, 1}, i32), a, {5}); }},
      {shape, {"vt::slice", "f32[2,3]"}, [&] { (void)slice(a, {0, 0}, {3, 3}); }},
      {shape, {"vt::slice_in_dim", "size 3"}, [&] { (void)slice_in_dim(a, 2, 1, 1); }},
      {shape,
       {"vt::dynamic_slice", "1 starts for rank 2"},
       [&] { (void)dynamic_slice(a, {0}, {1, 1}); }},
      {shape,
       {"vt::dynamic_slice", "does not fit"},
       [&] { (void)dynamic_slice(a, {0, 0}, {3, 1}); }},
      {dtype, {"vt::dynamic_slice", "integers"}, [&] { (void)dynamic_slice(a, {0.5, 0}, {1, 1}); }},
      {shape,
       {"vt::dynamic_update_slice", "does not fit"},
       [&] { (void)dynamic_update_slice(a, ones({2, 4}), {0, 0}); }},
      {dtype, {"vt::one_hot", "integers"}, [&] { (void)one_hot(real, 3); }},
      {shape,
       {"vt::segment_sum", "f32[2,3] · i32[3]"},
       [&] { (void)segment_sum(a, ones({3}, i32), 4); }},
      {dtype, {"vt::bincount", "integers"}, [&] { (void)bincount(real, 4); }},
      // the function that was called, not the scatter it is made of
      {dtype, {"vt::segment_max: complex numbers", "c64[2]"}, [&] { (void)segment_max(z, i, 2); }},
      {dtype, {"vt::segment_min: complex numbers", "c64[2]"}, [&] { (void)segment_min(z, i, 2); }},
      {dtype, {"vt::at(…).max: complex numbers", "c64[2]"}, [&] { (void)at(z, 0).max(1.0); }},
      {dtype, {"vt::at(…).min: complex numbers"}, [&] { (void)at(z, i).min(1.0); }},
      {dtype, {"vt::at(…).max: complex numbers"}, [&] { (void)at(z, i > 0).max(1.0); }},
      {dtype, {"vt::index_max: complex numbers"}, [&] { (void)index_max(z, i, 1.0); }},
      {dtype, {"vt::index_min: complex numbers"}, [&] { (void)index_min(z, i, 1.0); }},
      {dtype,
       {"vt::put_along_axis: complex numbers"},
       [&] { (void)put_along_axis(z, i, 1.0, 0, Combine::max); }},
      {value, {"vt::histogram", "low < high"}, [&] { (void)histogram(real, 3, 1.0, 1.0); }},
      {shape, {"vt::bucketize", "vector"}, [&] { (void)bucketize(real, a); }},
      {shape, {"vt::interp", "f32[2] · f32[2,3]"}, [&] { (void)interp(real, real, a); }},
  });
}

TEST(Refusals, MatricesAndContractions) {
  const Tensor a = ones({3, 4}), b = ones({5, 6}), v = ones({4}), s = sum(a), c = ones({2, 3, 4});
  check({
      {shape,
       {"vt::matmul: inner sizes differ, 4 at axis 1 of the first and 5 at axis 0 of the second"},
       [&] { (void)matmul(a, b); }},
      {shape, {"vt::matmul", "scalar"}, [&] { (void)matmul(a, s); }},
      {shape,
       {"vt::matmul: batch shapes do not broadcast"},
       [&] { (void)matmul(c, ones({5, 4, 2})); }},
      {shape, {"vt::dot", "f32[3,4] · f32[5,6]"}, [&] { (void)dot(a, b); }},
      {shape, {"vt::vdot: sizes differ"}, [&] { (void)vdot(a, v); }},
      {shape, {"vt::inner"}, [&] { (void)inner(a, b); }},
      {shape, {"vt::tensordot", "3 axes"}, [&] { (void)tensordot(a, b, 3); }},
      {shape,
       {"vt::tensordot", "inner sizes differ along axes 0 and 1"},
       [&] { (void)tensordot(a, b, {0}, {1}); }},
      {shape, {"vt::tensordot", "differ in length"}, [&] { (void)tensordot(a, b, {0, 1}, {1}); }},
      {shape,
       {"vt::dot_general"},
       [&] { (void)dot_general(a, b, {.lhs_contract = {1}, .rhs_contract = {0}}); }},
      {dtype,
       {"vt::dot_general", "f16"},
       [&] { (void)dot_general(a, a, {.lhs_contract = {1}, .rhs_contract = {1}}, f16); }},
      {shape, {"vt::diag", "f32[2,3,4]"}, [&] { (void)diag(c); }},
      {shape, {"vt::diagonal", "same"}, [&] { (void)diagonal(c, 0, 1, -2); }},
      {shape, {"vt::trace", "two axes"}, [&] { (void)trace(v); }},
      {shape, {"vt::tril", "f32[4]"}, [&] { (void)tril(v); }},
      {shape, {"vt::matrix_set_diag", "[3]"}, [&] { (void)matrix_set_diag(a, v); }},
      {shape, {"vt::cross", "2 or 3 elements"}, [&] { (void)cross(v, v); }},
      {shape, {"vt::polyval", "vector"}, [&] { (void)polyval(a, v); }},
      {shape, {"vt::matrix_power", "square"}, [&] { (void)matrix_power(a, 2); }},
      {shape, {"vt::cov", "vector or a matrix"}, [&] { (void)cov(c); }},
  });
}

TEST(Refusals, Networks) {
  const Tensor x = ones({3, 4}), i = ones({3}, i32);
  check({
      {shape, {"vt::softmax", "axis 2"}, [&] { (void)softmax(x, 2); }},
      {shape,
       {"vt::layer_norm", "scale", "f32[3,4] · f32[3]"},
       [&] { (void)layer_norm(x, ones({3}), 0.0); }},
      {shape, {"vt::rms_norm", "scale"}, [&] { (void)rms_norm(x, x); }},
      {shape, {"vt::group_norm", "3 groups"}, [&] { (void)group_norm(x, 3, 1.0, 0.0); }},
      {shape,
       {"vt::batch_norm_training", "shift"},
       [&] { (void)batch_norm_training(x, 1.0, ones({3})); }},
      {shape,
       {"vt::batch_norm_inference", "variance"},
       [&] { (void)batch_norm_inference(x, 1.0, 0.0, 0.0, ones({3})); }},
      {shape,
       {"vt::cross_entropy", "f32[3,4] · f32[3]"},
       [&] { (void)cross_entropy(x, ones({3})); }},
      {shape,
       {"vt::sparse_cross_entropy", "[3]"},
       [&] { (void)sparse_cross_entropy(x, ones({4}, i32)); }},
      {dtype,
       {"vt::sparse_cross_entropy", "cross_entropy"},
       [&] { (void)sparse_cross_entropy(x, ones({3})); }},
  });
}

TEST(Refusals, Random) {
  const Tensor key = random::key(0), some = ones({3});
  check({
      {dtype,
       {"randint", "f32 is no integer dtype"},
       [&] { (void)random::randint(key, {3}, 0, 5, f32); }},
      {dtype,
       {"randint: the ends of the range must be integers", "f32[3]"},
       [&] { (void)random::randint(key, {3}, 0, some + 2.5); }},
      {dtype,
       {"randint: the ends of the range must be integers"},
       [&] { (void)random::randint(key, {3}, 0.5, 5); }},
      {dtype, {"uniform", "i32"}, [&] { (void)random::uniform(key, {3}, i32); }},
  });
  EXPECT_EQ(sum(less(random::randint(key, {100}, 0, 1e6), 1000000)).item<int>(), 100);
}

}  // namespace
