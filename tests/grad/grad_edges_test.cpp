// Derivatives where a careless rule gives NaN or a wrong share: ties, zeros, ends of domains,
// integers, and what is refused.
#include "support/derivatives.hpp"

namespace {

using namespace vt_test::derivatives;

Flat apply(Op op, ParamsRef params = {}) {
  return [op, params](std::span<const Tensor> x) { return Tensors{emit(op, params, x, {})}; };
}
Tensor one_like(const Tensor& t) {
  return vt_test::make_tensor(t.dtype(), t.shape(),
                              std::vector<double>(static_cast<std::size_t>(t.size()), 1.0));
}

constexpr double inf = std::numeric_limits<double>::infinity();

TEST(GradEdges, TiesShareTheTangent) {
  const Tensors x = {vt::tensor({1.0, 2.0, 3.0}), vt::tensor({1.0, 3.0, 2.0})};
  for (Op op : {Op::max, Op::min}) {
    const Tensors g = pulled(apply(op), x, {one_like(x[0])});
    const Tensor first = op == Op::max ? vt::tensor({0.5, 0.0, 1.0}) : vt::tensor({0.5, 1.0, 0.0});
    const Tensor second = op == Op::max ? vt::tensor({0.5, 1.0, 0.0}) : vt::tensor({0.5, 0.0, 1.0});
    vt_test::expect_close(g, {first, second});
  }
  const Tensors y = {vt::tensor({4.0, 1.0, 4.0, 1.0, 2.0})};
  vt_test::expect_close(
      pulled(apply(Op::reduce_max, make_params(AxesParams{{0}})), y, {vt::tensor(1.0)}),
      {vt::tensor({0.5, 0.0, 0.5, 0.0, 0.0})});
  vt_test::expect_close(
      pulled(apply(Op::reduce_min, make_params(AxesParams{{0}})), y, {vt::tensor(1.0)}),
      {vt::tensor({0.0, 0.5, 0.0, 0.5, 0.0})});
}

TEST(GradEdges, RunningExtremaPointAtTheFirstOfEquals) {
  const Tensors x = {vt::tensor({2.0, 1.0, 2.0, 3.0, 3.0})};
  const Tensors w = {vt::tensor({1.0, 10.0, 100.0, 1000.0, 10000.0})};
  vt_test::expect_close(pulled(apply(Op::cummax, make_params(CumulativeParams{0, false})), x, w),
                        {vt::tensor({111.0, 0.0, 0.0, 11000.0, 0.0})});
  vt_test::expect_close(pulled(apply(Op::cummax, make_params(CumulativeParams{0, true})), x, w),
                        {vt::tensor({0.0, 0.0, 0.0, 0.0, 11111.0})});
  vt_test::expect_close(pulled(apply(Op::cummin, make_params(CumulativeParams{0, false})), x, w),
                        {vt::tensor({1.0, 11110.0, 0.0, 0.0, 0.0})});
}

TEST(GradEdges, RunningMaximumAfterNan) {
  const Tensors x = {vt::tensor({1.0, std::nan(""), 5.0})};
  vt_test::expect_close(pulled(apply(Op::cummax, make_params(CumulativeParams{0, false})), x,
                               {vt::tensor({1.0, 10.0, 100.0})}),
                        {vt::tensor({1.0, 110.0, 0.0})});
}

TEST(GradEdges, ProductsWithZeros) {
  const Flat prod = apply(Op::reduce_prod, make_params(AxesParams{{0}}));
  vt_test::expect_close(pulled(prod, {vt::tensor({2.0, 0.0, 3.0})}, {vt::tensor(1.0)}),
                        {vt::tensor({0.0, 6.0, 0.0})});
  vt_test::expect_close(pulled(prod, {vt::tensor({0.0, 5.0, 0.0})}, {vt::tensor(1.0)}),
                        {vt::tensor({0.0, 0.0, 0.0})});
  // d²/dx₀dx₂ of x₀x₁x₂ is x₁, whether or not the others are zero.
  const Flat gradient = [&](std::span<const Tensor> x) {
    return pulled(prod, Tensors(x.begin(), x.end()), {vt::tensor(1.0)});
  };
  vt_test::expect_close(
      jvp_of(gradient, Tensors{vt::tensor({0.0, 5.0, 0.0})}, Tensors{vt::tensor({1.0, 0.0, 0.0})}),
      {vt::tensor({0.0, 0.0, 5.0})});

  const Flat cumprod = apply(Op::cumprod, make_params(CumulativeParams{0, false}));
  const Tensors x = {vt::tensor({2.0, 0.0, 3.0, 0.0, 4.0})},
                w = {vt::tensor({1.0, 1.0, 1.0, 1.0, 1.0})};
  vt_test::expect_close(pulled(cumprod, x, w), {vt::tensor({1.0, 8.0, 0.0, 0.0, 0.0})});
  const Flat slope = [&](std::span<const Tensor> at) {
    return pulled(cumprod, Tensors(at.begin(), at.end()), w);
  };
  // y₃ = x₀x₁x₂x₃ and y₄ = y₃x₄: d/dx₁ of d/dx₃ is x₀x₂(1 + x₄) = 30.
  vt_test::expect_close(jvp_of(slope, x, Tensors{vt::tensor({0.0, 1.0, 0.0, 0.0, 0.0})}),
                        {vt::tensor({4.0, 0.0, 2.0, 30.0, 0.0})});
}

TEST(GradEdges, PowerAtZero) {
  const Flat pow = apply(Op::pow);
  const Tensors x = {vt::tensor({0.0, 0.0, 0.0, 0.0, 2.0}), vt::tensor({0.0, 1.0, 2.0, 0.5, 0.0})};
  const Tensors g = pulled(pow, x, {one_like(x[0])});
  vt_test::expect_close(g[0], vt::tensor({0.0, 1.0, 0.0, inf, 0.0}));
  vt_test::expect_close(g[1], vt::tensor({0.0, 0.0, 0.0, 0.0, std::log(2.0)}), {.ulps = 2});
  // A negative base with a constant whole exponent has its derivative.
  vt_test::expect_close(jvp_of(
                            [](std::span<const Tensor> a) {
                              return Tensors{emit(Op::pow, {}, {a[0], vt::tensor(3.0)}, {})};
                            },
                            Tensors{vt::tensor(-2.0)}, Tensors{vt::tensor(1.0)}),
                        {vt::tensor(12.0)}, {.ulps = 2});
  for (double n : {0.0, 1.0, 2.0, 3.0})
    vt_test::expect_close(jvp_of(
                              [n](std::span<const Tensor> a) {
                                return Tensors{emit(Op::pow, {}, {a[0], vt::full({}, n)}, {})};
                              },
                              Tensors{vt::tensor(0.0)}, Tensors{vt::tensor(1.0)}),
                          {vt::tensor(n == 1 ? 1.0 : 0.0)});
  // ∂²/∂x∂y xʸ at y = 0 is 1/x.
  const Flat dx = [&](std::span<const Tensor> y) {
    return jvp_of(
        [&](std::span<const Tensor> a) { return Tensors{emit(Op::pow, {}, {a[0], y[0]}, {})}; },
        Tensors{vt::tensor(2.0)}, Tensors{vt::tensor(1.0)});
  };
  vt_test::expect_close(jvp_of(dx, Tensors{vt::tensor(0.0)}, Tensors{vt::tensor(1.0)}),
                        {vt::tensor(0.5)}, {.ulps = 2});
  vt_test::expect_close(jvp_of(apply(Op::integer_pow, make_params(IntegerPowParams{2})),
                               Tensors{vt::tensor(0.0)}, Tensors{vt::tensor(1.0)}),
                        {vt::tensor(0.0)});
}

TEST(GradEdges, RootsAtZero) {
  for (Op op : {Op::sqrt, Op::cbrt})
    vt_test::expect_close(jvp_of(apply(op), Tensors{vt::tensor(0.0)}, Tensors{vt::tensor(1.0)}),
                          {vt::tensor(inf)});
  vt_test::expect_close(jvp_of(apply(Op::abs), Tensors{vt::tensor(0.0)}, Tensors{vt::tensor(1.0)}),
                        {vt::tensor(0.0)});
}

TEST(GradEdges, AnglesOfLongAndShortVectors) {
  const auto by_both = vt::vmap(vt::grad<0, 1>([](Tensor y, Tensor x) { return vt::atan2(y, x); }));
  for (vt::DType d : {vt::f16, vt::bf16, vt::f32, vt::f64}) {
    // Squares of these overflow or vanish; the derivatives of the 3-4-5 triangle do not.
    const std::vector<double> scales = d == vt::f16 ? std::vector<double>{256, 1.0 / 1024}
                                                    : std::vector<double>{0x1p100, 0x1p-100};
    for (const double scale : d == vt::f64 ? std::vector<double>{0x1p900, 0x1p-900} : scales) {
      const Tensor y = vt::tensor({3 * scale, 0.0, -4 * scale}).astype(d),
                   x = vt::tensor({4 * scale, scale, -3 * scale}).astype(d);
      const auto [by_y, by_x] = by_both(y, x);
      const vt_test::Tolerance near = {.relative = d == vt::f16    ? 2e-3
                                                   : d == vt::bf16 ? 2e-2
                                                                   : 1e-6};
      vt_test::expect_close((by_y * scale).astype(vt::f64), vt::tensor({0.16, 1.0, -0.12}), near);
      vt_test::expect_close((by_x * scale).astype(vt::f64), vt::tensor({-0.12, 0.0, 0.16}), near);
    }
  }
  const auto [by_y, by_x] =
      by_both(vt::tensor({inf, -inf, 1.0, 2.0}), vt::tensor({1.0, 2.0, -inf, inf}));
  vt_test::expect_close(by_y[vt::slice(0, 2)], vt::tensor({0.0, 0.0}));
  vt_test::expect_close(by_x[vt::slice(2, 4)], vt::tensor({-0.0, -0.0}));
  // −2xy / (x² + y²)²
  const auto curved = vt::grad(vt::grad([](Tensor y) { return vt::atan2(y, 4.0); }));
  vt_test::expect_close(curved(vt::tensor(3.0)), vt::tensor(-24.0 / 625), {.ulps = 8});
}

TEST(GradEdges, AreaFunctionsFarOut) {
  const auto slope_of = [](Tensor (*f)(vt::Operand)) {
    return [f](Tensor x) { return vt::grad([f](Tensor t) { return vt::sum(f(t)); })(x); };
  };
  for (Tensor (*f)(vt::Operand) : {vt::asinh, vt::acosh})
    for (const auto& [d, x] :
         {std::pair(vt::f16, 1024.0), std::pair(vt::f32, 0x1p100), std::pair(vt::f64, 0x1p800)}) {
      const Tensor far = vt::tensor({x, inf}).astype(d);
      vt_test::expect_close((slope_of(f)(far) * far)[0].astype(vt::f64), vt::tensor(1.0),
                            {.relative = 2e-3});
      EXPECT_EQ(slope_of(f)(far)[1].item<double>(), 0);
    }
  // −x / (x² ± 1)^(3/2)
  for (Tensor (*f)(vt::Operand) : {vt::asinh, vt::acosh})
    EXPECT_NEAR(
        vt::grad(vt::grad([f](Tensor t) { return f(t); }))(vt::tensor(512.0).astype(vt::f16))
            .item<double>(),
        -0x1p-18, 0x1p-23);
  const Tensor near = vt::tensor({1.25, 3.0});
  vt_test::expect_close(slope_of(vt::asinh)(near), 1.0 / vt::sqrt(near * near + 1.0), {.ulps = 4});
  vt_test::expect_close(slope_of(vt::acosh)(near), 1.0 / vt::sqrt(near * near - 1.0), {.ulps = 4});
  EXPECT_EQ(vt::grad([](Tensor t) { return vt::acosh(t); })(vt::tensor(1.0)).item<double>(), inf);
}

TEST(GradEdges, LogSumExpAfterNothing) {
  const Flat f = apply(Op::cumlogsumexp, make_params(CumulativeParams{0, false}));
  const Tensors x = {vt::tensor({-inf, -inf, 0.0, 0.0})}, w = {vt::tensor({1.0, 1.0, 1.0, 1.0})};
  vt_test::expect_close(pulled(f, x, w), {vt::tensor({0.0, 0.0, 1.5, 0.5})}, {.ulps = 4});
  const Flat slope = [&](std::span<const Tensor> at) {
    return pulled(f, Tensors(at.begin(), at.end()), w);
  };
  vt_test::expect_close(jvp_of(slope, x, Tensors{vt::tensor({0.0, 0.0, 0.0, 1.0})}),
                        {vt::tensor({0.0, 0.0, -0.25, 0.25})}, {.ulps = 4});
  // Of large values the shares are those of their differences.
  vt_test::expect_close(pulled(f, {vt::tensor({800.0, 800.0})}, {vt::tensor({0.0, 1.0})}),
                        {vt::tensor({0.5, 0.5})});
  const Tensor last = vt::tensor({0.0, 0.0, 0.0, 1.0}),
               shares = vt::softmax(vt::tensor({0.0, 1.0, 2.0, 1.0}));
  for (const auto& [d, offset] :
       {std::pair(vt::f16, 1000.0), std::pair(vt::f32, 1e6), std::pair(vt::f64, 1e14)}) {
    const Tensor far = vt::tensor({offset, offset + 1, offset + 2, offset + 1}).astype(d);
    // The running sums are rounded, and the shares with them; still they sum to 1.
    const Tensor got = pulled(f, {far}, {last.astype(d)})[0].astype(vt::f64);
    vt_test::expect_close(vt::sum(got), vt::tensor(1.0), {.relative = d == vt::f16 ? 2e-3 : 1e-6});
    vt_test::expect_close(got, shares, {.relative = 0.3});
  }
}

// log Σ exp z, shifted by the largest real part; its derivative by z is the softmax.
TEST(GradEdges, LogSumExpOfComplexNumbers) {
  using C = std::complex<double>;
  const Tensor z = vt::tensor({C(1.0, 2.0), C(-3.0, 0.5), C(0.5, -1.0)}),
               large = vt::tensor({C(800.0, 1.0), C(799.0, 3.0)});
  const Tensor e = vt::exp(z);
  vt_test::expect_close({vt::logsumexp(z)}, {vt::log(vt::sum(e))}, {.relative = 1e-14});
  const auto real_part = [](Tensor z) { return vt::real(vt::logsumexp(z)); };
  vt_test::expect_close({vt::grad(real_part)(z)}, {e / vt::sum(e)}, {.relative = 1e-14});
  vt_test::expect_close({vt::logsumexp(large)}, {800.0 + vt::log(vt::sum(vt::exp(large - 800.0)))},
                        {.relative = 1e-14});
  vt_test::expect_close(
      {vt::vmap([](Tensor z) { return vt::logsumexp(z); })(vt::stack({z, 2.0 * z}))},
      {vt::stack({vt::logsumexp(z), vt::logsumexp(2.0 * z)})}, {.relative = 1e-14});
}

TEST(GradEdges, ScatteredProductsWithZeros) {
  ScatterParams p;
  p.inserted_window_dims = {0};
  p.scatter_dims_to_operand_dims = {0};
  const Tensor index = ints({1, 1, 1, 0, 0}, {5, 1});
  const Flat f = [&](std::span<const Tensor> x) {
    return Tensors{emit(Op::scatter_mul, make_params(p), {x[0], index, x[1]}, {})};
  };
  const Tensors x = {vt::tensor({2.0, 3.0, 7.0}), vt::tensor({4.0, 0.0, 5.0, 0.0, 0.0})};
  vt_test::expect_close(pulled(f, x, {vt::tensor({1.0, 1.0, 1.0})}),
                        {vt::tensor({0.0, 0.0, 1.0}), vt::tensor({0.0, 60.0, 0.0, 0.0, 0.0})});
}

TEST(GradEdges, ScatteredExtremaShareTies) {
  ScatterParams p;
  p.inserted_window_dims = {0};
  p.scatter_dims_to_operand_dims = {0};
  const Tensor index = ints({0, 0, 1, 9}, {4, 1});
  const Flat f = [&](std::span<const Tensor> x) {
    return Tensors{emit(Op::scatter_max, make_params(p), {x[0], index, x[1]}, {})};
  };
  const Tensors x = {vt::tensor({2.0, 3.0}), vt::tensor({2.0, 2.0, 8.0, 0.0})};
  const Tensors g = pulled(f, x, {vt::tensor({3.0, 1.0})});
  vt_test::expect_close(g, {vt::tensor({1.0, 0.0}), vt::tensor({1.0, 1.0, 1.0, 0.0})});
}

TEST(GradEdges, ScatteredIntoNothing) {
  const Tensor ids = vt::tensor({0, 2, -1, 9}), x = vt::ones({4, 3}, vt::f64);
  const auto none = [&](auto segments) {
    const auto total = [&](Tensor x) { return vt::sum(2.0 * segments(x, ids, 0)); };
    vt_test::expect_close({vt::grad(total)(x), vt::jacfwd(total)(x)},
                          {vt::zeros({4, 3}, vt::f64), vt::zeros({4, 3}, vt::f64)});
    vt_test::expect_close({vt::vmap(vt::grad(total))(vt::ones({2, 4, 3}, vt::f64))},
                          {vt::zeros({2, 4, 3}, vt::f64)});
  };
  none([](Tensor x, Tensor ids, int count) { return vt::segment_sum(x, ids, count); });
  none([](Tensor x, Tensor ids, int count) { return vt::segment_prod(x, ids, count); });
  none([](Tensor x, Tensor ids, int count) { return vt::segment_max(x, ids, count); });
  none([](Tensor x, Tensor ids, int count) { return vt::segment_min(x, ids, count); });
}

// Products over repeated indices have the derivatives that prod has, beside zeros, infinities and
// where products of some factors over- or underflow: first ones, Hessians, and third ones of zeros.
TEST(GradEdges, ProductsOverRepeatedIndicesAreProd) {
  const auto by_prod = [](Tensor x) { return vt::prod(x); };
  const auto by_segment = [](Tensor x) {
    return vt::sum(vt::segment_prod(x, vt::zeros({x.dim(0)}, vt::i32), 1));
  };
  const auto by_index = [](Tensor x) {
    return vt::sum(vt::index_mul(vt::ones({1}, x.dtype()), vt::zeros({x.dim(0)}, vt::i32), x));
  };
  const auto third = [](auto f) { return [f](Tensor x) { return vt::jacfwd(vt::hessian(f))(x); }; };
  for (const std::vector<double>& values : {std::vector<double>{0, 3, 4},
                                            {0, 0, 4, 5},
                                            {0, 0, 0},
                                            {1e-200, 1e-200, 1e200},
                                            {inf, 2, 3},
                                            {2, -3, 4, 0.5, -1},
                                            {7}}) {
    const Tensor x = vt::tensor(values);
    const auto check = [&](auto f) {
      vt_test::expect_close(vt::grad(f)(x), vt::grad(by_prod)(x), {.relative = 1e-14});
      vt_test::expect_close(vt::jit(vt::grad(f))(x), vt::grad(by_prod)(x), {.relative = 1e-14});
      if (std::isinf(values[0]) || values[0] == 1e-200) return;
      vt_test::expect_close(vt::hessian(f)(x), vt::hessian(by_prod)(x), {.relative = 1e-14});
      vt_test::expect_close(vt::jit(vt::hessian(f))(x), vt::hessian(by_prod)(x),
                            {.relative = 1e-14});
      vt_test::expect_close(third(f)(x), third(by_prod)(x), {.relative = 1e-14});
      vt_test::expect_close(vt::vmap(vt::grad(f))(vt::stack({x, 2.0 * x})),
                            vt::vmap(vt::grad(by_prod))(vt::stack({x, 2.0 * x})),
                            {.relative = 1e-14});
    };
    check(by_segment);
    check(by_index);
  }
  // Rows of a matrix in mixed order, one of them dropped; each row's elements are apart.
  const Tensor x = vt::tensor({{0.0, 2.0}, {3.0, 4.0}, {5.0, 0.0}, {inf, 7.0}, {2.0, 3.0}}),
               ids = vt::tensor({2, 0, 2, 7, 2});
  const auto rows = [&](Tensor t) { return vt::sum(vt::segment_prod(t, ids, 3)); };
  vt_test::expect_close(vt::grad(rows)(x),
                        vt::tensor({{10.0, 0.0}, {1.0, 1.0}, {0.0, 6.0}, {0.0, 0.0}, {0.0, 0.0}}));
  // Windows that overlap: {2, 3} at 0 and {5, 7} at 1 meet in the middle.
  ScatterParams p;
  p.update_window_dims = {1};
  p.scatter_dims_to_operand_dims = {0};
  const Tensor index = ints({0, 1}, {2, 1});
  const Flat f = [&](std::span<const Tensor> in) {
    return Tensors{emit(Op::scatter_mul, make_params(p), {in[0], index, in[1]}, {})};
  };
  const Tensors at = {vt::tensor({1.0, 10.0, 100.0}), vt::tensor({{2.0, 3.0}, {5.0, 7.0}})};
  vt_test::expect_close(pulled(f, at, {vt::tensor({1.0, 1.0, 1.0})})[1],
                        vt::tensor({{1.0, 50.0}, {30.0, 100.0}}));
}

TEST(GradEdges, OverwrittenElementsGetNothing) {
  ScatterParams p;
  p.inserted_window_dims = {0};
  p.scatter_dims_to_operand_dims = {0};
  const Tensor index = ints({1, 1, 9}, {3, 1});
  const Flat f = [&](std::span<const Tensor> x) {
    return Tensors{emit(Op::scatter, make_params(p), {x[0], index, x[1]}, {})};
  };
  const Tensors x = {vt::tensor({2.0, 3.0}), vt::tensor({4.0, 5.0, 6.0})};
  vt_test::expect_close(pulled(f, x, {vt::tensor({1.0, 1.0})}),
                        {vt::tensor({1.0, 0.0}), vt::tensor({0.0, 1.0, 0.0})});
}

TEST(GradEdges, TrigammaAgainstKnownValues) {
  const double pi = 3.14159265358979323846;
  const Tensors x = {vt::tensor({1.0, 0.5, 2.0, 10.0, -0.5, 1e6, 1e-4})};
  const Tensor expected =
      vt::tensor({pi * pi / 6, pi * pi / 2, pi * pi / 6 - 1, 0.10516633568168574612,
                  8.9348022005446793094, 1.0000005000001666667e-06, 100000001.64469368});
  vt_test::expect_close(jvp_of(apply(Op::digamma), x, Tensors{one_like(x[0])})[0], expected,
                        {.ulps = 16});
}

TEST(GradEdges, ConvertGoesThereAndBack) {
  const Flat f = [](std::span<const Tensor> x) {
    const Tensor low = emit(Op::convert, make_params(ConvertParams{vt::bf16}), {x[0]}, {});
    return Tensors{emit(Op::convert, make_params(ConvertParams{vt::f32}), {low}, {})};
  };
  vt_test::expect_close(pulled(f, {vt::tensor({1.0f, 2.0f})}, {vt::tensor({3.0f, 4.0f})}),
                        {vt::tensor({3.0f, 4.0f})});
  // Through integers nothing flows.
  const Flat g = [](std::span<const Tensor> x) {
    const Tensor whole = emit(Op::convert, make_params(ConvertParams{vt::i32}), {x[0]}, {});
    return Tensors{emit(Op::convert, make_params(ConvertParams{vt::f32}), {whole}, {})};
  };
  vt_test::expect_close(pulled(g, {vt::tensor({1.0f, 2.0f})}, {vt::tensor({3.0f, 4.0f})}),
                        {vt::tensor({0.0f, 0.0f})});
}

TEST(GradEdges, IntegerArgumentsHaveNoTangent) {
  const auto f = [](Tensor x, Tensor index) { return vt::take(x, index) * 2.0; };
  const Tensor x = vt::tensor({1.0, 2.0, 3.0}), index = vt::tensor({2, 2, 0});
  const auto [y, pull] = vt::vjp(f, x, index);
  const auto [dx, di] = pull(vt::tensor({1.0, 10.0, 100.0}));
  vt_test::expect_close(dx, vt::tensor({200.0, 0.0, 22.0}));
  vt_test::expect_close(di, vt::tensor({0, 0, 0}));
  const auto [z, dz] = vt::jvp(f, std::tuple(x, index), std::tuple(x, vt::zeros_like(index)));
  vt_test::expect_close(dz, z);
}

TEST(GradEdges, WeakScalarsKeepTheDtypesOfOthers) {
  const Tensor w = vt::tensor({1.0f, 2.0f});
  const auto [gx, gw] =
      vt::grad<0, 1>([](Tensor x, Tensor v) { return vt::sum(x * v * 3.0); })(2.0, w);
  vt_test::expect_close(gw, vt::tensor({6.0f, 6.0f}));
  EXPECT_EQ(gx.item<double>(), 9.0);
  for (DType dtype : {vt::f16, vt::bf16, vt::f32, vt::f64}) {
    const auto f = [](Tensor x) {
      return vt::sum(vt::softmax(2 * x / 3.0 + 1.0f) * vt::pow(x, 2) * vt::maximum(x, 0.5) -
                     vt::where(x > 1, x, 0.25));
    };
    EXPECT_EQ(vt::grad(f)(vt_test::make_tensor(dtype, {2}, {1.5, 0.25})).dtype(), dtype);
    EXPECT_EQ(vt::hessian(f)(vt_test::make_tensor(dtype, {2}, {1.5, 0.25})).dtype(), dtype);
  }
}

// --- wrong uses ----------------------------------------------------------------------------------

TEST(GradErrors, WrongUses) {
  const Flat square = [](std::span<const Tensor> x) {
    return Tensors{emit(Op::mul, {}, {x[0], x[0]}, {})};
  };
  const Point vector(Tensors{vt::tensor({1.0, 2.0})}), whole(Tensors{vt::tensor({1, 2})});
  vt_test::expect_error([&] { value_and_grad_flat(square, vector.call()); }, vt::ErrorKind::shape,
                        {"vt::grad", "must return a scalar", "f64[2]", "grad_edges_test.cpp"});
  bool yes[] = {true};
  GradCall integers = whole.call();
  integers.wanted = yes;
  vt_test::expect_error([&] { value_and_grad_flat(square, integers); }, vt::ErrorKind::dtype,
                        {"argument 0", "i32[2]", "grad_edges_test.cpp"});
  const Flat to_int = [](std::span<const Tensor> x) {
    return Tensors{emit(Op::convert, make_params(ConvertParams{vt::i32}), {x[0]}, {})};
  };
  const Point scalar(Tensors{vt::tensor(1.0)});
  vt_test::expect_error([&] { value_and_grad_flat(to_int, scalar.call()); }, vt::ErrorKind::dtype,
                        {"must return a float scalar", "i32[]"});
  const Flat nothing = [](std::span<const Tensor>) { return Tensors{}; };
  vt_test::expect_error([&] { value_and_grad_flat(nothing, scalar.call()); }, vt::ErrorKind::tree,
                        {"returns nothing"});
  vt_test::expect_error(
      [&] { jvp_flat(square, vector.call(), Tensors{vt::tensor({1.0, 2.0, 3.0})}); },
      vt::ErrorKind::shape, {"tangent of argument 0", "f64[3]", "f64[2]"});
  vt_test::expect_error([&] { jvp_flat(square, vector.call(), Tensors{vt::tensor({1.0f, 2.0f})}); },
                        vt::ErrorKind::dtype, {"tangent of argument 0", "f32[2]", "f64[2]"});
  vt_test::expect_error([&] { jvp_flat(square, vector.call(), Tensors{}); }, vt::ErrorKind::tree,
                        {"0 tangents for 1"});
  const LinearMap map = linearize_flat(square, vector.call()).map;
  vt_test::expect_error([&] { map.pull(Tensors{vt::tensor(1.0)}, vt::CallSite::here()); },
                        vt::ErrorKind::shape,
                        {"cotangent of result 0", "f64[]", "f64[2]", "grad_edges_test.cpp"});
  vt_test::expect_error(
      [&] { map.push(Tensors{vt::tensor({1.0}), vt::tensor({1.0})}, vt::CallSite::here()); },
      vt::ErrorKind::tree, {"2 tangents for 1"});
}

}  // namespace
