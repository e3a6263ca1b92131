// Every op's derivative: jvp against differences, first and second order, its transpose by the
// inner-product identity, symmetry of Hessians. An op without a row in the table fails the test.
#include "support/grad_cases.hpp"

namespace {

using namespace vt_test::derivatives;

template <class F>
void for_each_case(F&& f) {
  for (const auto& [op, cases] : table())
    for (const Case& c : cases) {
      SCOPED_TRACE(std::string(name_of(op)) + " " + c.name);
      const Op applied = op;
      const Flat function = of_floats(
          [applied, params = c.params](std::span<const Tensor> x) {
            const auto y = emit_all(applied, params, x, vt::CallSite::here());
            return only_floats(Tensors(y.begin(), y.end()));
          },
          c.operands);
      f(op, c, function, only_floats(c.operands));
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(GradRules, EveryOpHasARow) {
  for (int i = 0; i < op_count; ++i) {
    const Op op = static_cast<Op>(i);
    auto in = [&](const std::vector<Op>& list) {
      return std::find(list.begin(), list.end(), op) != list.end();
    };
    const int rows = static_cast<int>(table().contains(op)) + in(piecewise_constant) +
                     in(without_derivative) + in(of_complex) + in(with_sub_graphs) +
                     in(between_lanes);
    EXPECT_EQ(rows, 1) << name_of(op) << " needs a row in exactly one of the test tables";
  }
}

TEST(GradRules, JvpIsTheDifference) {
  for_each_case([](Op, const Case& c, const Flat& f, const Tensors& x) {
    const Tensors d = directions(x, 31);
    vt_test::expect_close(jvp_of(f, x, d), vt_test::difference(for_differences(f), x, d, c.step),
                          {.relative = 1e-8, .absolute = 1e-9});
  });
}

TEST(GradRules, SecondDerivativeIsTheDifferenceOfTheFirst) {
  for_each_case([](Op, const Case& c, const Flat& f, const Tensors& x) {
    const Tensors d = directions(x, 41), e = directions(x, 43);
    const Flat first = [&](std::span<const Tensor> at) { return jvp_of(f, at, d); };
    vt_test::expect_close(jvp_of(first, x, e),
                          vt_test::difference(for_differences(first), x, e, c.step),
                          {.relative = 1e-7, .absolute = 1e-8});
  });
}

TEST(GradRules, LinearizeIsJvpAndPullIsItsTranspose) {
  // The same bits on one executor; by default the Graph of a push may be one that has been seen,
  // the jvp's a new one.
  const Tolerance same = vt_test::forced_backend().empty()
                             ? Tolerance{.relative = 1e-13, .absolute = 1e-14}
                             : vt_test::exact;
  for_each_case([&](Op, const Case&, const Flat& f, const Tensors& x) {
    const Point p(x);
    const LinearizedFlat linearized = linearize_flat(f, p.call());
    vt_test::expect_close(linearized.outputs, f(x), same);
    const Tensors d = directions(x, 51), dy = linearized.map.push(d, {});
    vt_test::expect_close(dy, jvp_of(f, x, d), same);
    const Tensors w = directions(linearized.outputs, 53), dx = linearized.map.pull(w, {});
    ASSERT_EQ(dx.size(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(dx[i].shape(), x[i].shape());
      EXPECT_EQ(dx[i].dtype(), x[i].dtype());
    }
    const double left = vt_test::inner_product(w, dy), right = vt_test::inner_product(dx, d);
    EXPECT_NEAR(left, right, 1e-12 * (1 + std::fabs(left)));
  });
}

TEST(GradRules, HessianIsSymmetric) {
  for_each_case([](Op, const Case&, const Flat& f, const Tensors& x) {
    const Tensors w = directions(f(x), 61), u = directions(x, 63), v = directions(x, 67);
    const Flat gradient = [&](std::span<const Tensor> at) {
      const Point p(at);
      return linearize_flat(f, p.call()).map.pull(w, {});
    };
    const double uv = vt_test::inner_product(u, jvp_of(gradient, x, v)),
                 vu = vt_test::inner_product(v, jvp_of(gradient, x, u));
    EXPECT_NEAR(uv, vu, 1e-11 * (1 + std::fabs(uv)));
    // Reverse over reverse sees the same Hessian.
    const Point p(x);
    const Tensors hu = linearize_flat(gradient, p.call()).map.pull(u, {});
    EXPECT_NEAR(vt_test::inner_product(hu, v), uv, 1e-11 * (1 + std::fabs(uv)));
  });
}

TEST(GradRules, OtherFloatTypesKeepTheirTypeAndValue) {
  for (DType dtype : {vt::f32, vt::f16, vt::bf16}) {
    const double digits = dtype == vt::f32 ? 1e-5 : dtype == vt::f16 ? 2e-2 : 1.5e-1;
    for (const auto& [op, cases] : table())
      for (const std::size_t k : std::set<std::size_t>{0, cases.size() / 2, cases.size() - 1}) {
        const Case& c = cases[k];
        if (op == Op::reduce) continue;  // the bodies in the table are f64
        if (family_of(op) == Family::linalg && dtype != vt::f32) continue;  // refused
        SCOPED_TRACE(std::string(name_of(op)) + " " + c.name + " " + vt::name_of(dtype));
        ParamsRef params = c.params;
        if (op == Op::convert) params = make_params(ConvertParams{dtype});
        if (op == Op::dot_general) {
          DotParams p = params->as<DotParams>();
          p.dtype = dtype == vt::bf16 ? vt::f32 : dtype;  // bf16 also with a wider result
          params = make_params(p);
        }
        auto narrow = [&](const Tensor& t, DType to) {
          return vt::is_float(t.dtype())
                     ? vt_test::make_tensor(to, t.shape(), t.to_vector<double>())
                     : t;
        };
        auto apply = [applied = op](const ParamsRef& with) {
          return [applied, with](std::span<const Tensor> x) {
            const auto y = emit_all(applied, with, x, {});
            return Tensors(y.begin(), y.end());
          };
        };
        Tensors x, wide;
        for (const Tensor& t : c.operands) {
          x.push_back(narrow(t, dtype));
          wide.push_back(narrow(x.back(), vt::f64));  // the same numbers
        }
        const Flat f = of_floats(apply(params), x), reference = of_floats(apply(c.params), wide);
        const Tensors fx = only_floats(x), fwide = only_floats(wide);
        const Tensors d = directions(fx, 71);
        Tensors wide_d;
        for (const Tensor& t : d) wide_d.push_back(narrow(t, vt::f64));
        const Tensors expected = jvp_of(reference, fwide, wide_d), actual = jvp_of(f, fx, d);
        const Point p(fx);
        const LinearizedFlat linearized = linearize_flat(f, p.call());
        for (std::size_t i = 0; i < actual.size(); ++i) {
          EXPECT_EQ(actual[i].dtype(), linearized.outputs[i].dtype());
          vt_test::expect_close(narrow(actual[i], vt::f64), expected[i],
                                {.relative = digits, .absolute = digits});
        }
        for (const Tensor& g : linearized.map.pull(directions(linearized.outputs, 73), {}))
          EXPECT_EQ(g.dtype(), dtype);
      }
  }
}

TEST(GradRules, PiecewiseConstantOpsHaveZeroDerivatives) {
  for (Op op : piecewise_constant) {
    SCOPED_TRACE(name_of(op));
    const Flat f = [op](std::span<const Tensor> x) { return Tensors{emit(op, {}, {x[0]}, {})}; };
    const Tensors x = {vt::tensor({-1.5, 0.0, 2.25})}, d = directions(x, 3);
    vt_test::expect_close(jvp_of(f, x, d)[0], vt::tensor({0.0, 0.0, 0.0}));
    const Point p(x);
    vt_test::expect_close(linearize_flat(f, p.call()).map.pull(d, {})[0],
                          vt::tensor({0.0, 0.0, 0.0}));
  }
}

}  // namespace
