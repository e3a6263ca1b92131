// linear_solve, cg, bicgstab, root, newton and fixed_point: against dense solutions, with
// derivatives by differences in both modes and to second order, in lanes, compiled; and messages.
#include <functional>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::Tensor;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::Tolerance;
using Function = std::function<Tensor(Tensor)>;

constexpr Tolerance near{.relative = 2e-7, .absolute = 2e-8},
    same{.relative = 1e-8, .absolute = 1e-9};

Tensor loop(const Function& f, const Tensor& lanes) {
  return vt_test::stack_loop([&](Tensor x) { return f(x); }, 0, lanes);
}

/// Value and derivatives of `f`, of a vector, against those of `plain`, which gives the same by
/// ordinary ops.
void expect_same_function(const Function& f, const Function& plain, const Tensor& x,
                          const std::string& what) {
  SCOPED_TRACE(what);
  expect_close(f(x), plain(x), same, "value");
  expect_close(vt::jit(f)(x), plain(x), same, "compiled");
  const Tensor slope = vt_test::numeric_jacobian(plain, x);
  expect_close(vt::jacfwd(f)(x), slope, near, "forward");
  expect_close(vt::jacrev(f)(x), slope, near, "reverse");
  expect_close(vt::jit(vt::jacrev(f))(x), slope, near, "reverse, compiled");
  const auto of = [](Function g, bool forward) {
    return forward ? Function(vt::jacfwd(g)) : Function(vt::jacrev(g));
  };
  const Tensor second = vt_test::numeric_jacobian(of(plain, true), x);
  for (bool inner : {false, true})
    for (bool outer : {false, true})
      expect_close(of(of(f, inner), outer)(x), second, near,
                   std::string("second derivative ") + (outer ? "forward" : "reverse") +
                       (inner ? " of forward" : " of reverse"));
  const Tensor lanes = vt::stack({x, x * 0.9, x + 0.1});
  expect_close(vt::vmap(f)(lanes), loop(f, lanes), same, "lanes");
  expect_close(vt::vmap(vt::jacrev(f))(lanes), loop(vt::jacrev(plain), lanes), near,
               "reverse in lanes");
  const Function slope_of_square =
      vt::grad([&](Tensor v) { return vt::sum(vt::square(plain(v))); });
  expect_close(vt::grad([&](Tensor all) { return vt::sum(vt::square(vt::vmap(f)(all))); })(lanes),
               loop(slope_of_square, lanes), near, "reverse of lanes");
}

const Tensor noise = vt_test::random_tensor(vt::f64, {3, 3}, 3);
Tensor symmetric(Tensor x) {
  return vt::matmul(noise * x, vt::transpose(noise * x)) +
         vt::eye(3, vt::f64) * (2.0 + vt::sum(x * x));
}
Tensor regular(Tensor x) {
  return 0.3 * noise * vt::sin(x) + vt::eye(3, vt::f64) * 2.0 + vt::diag(x);
}
const Tensor point = vt::tensor({0.5, -0.3, 0.8});
const auto dense = [](auto matvec, Tensor b) {
  return vt::linalg::solve(vt::transpose(vt::vmap(matvec)(vt::eye(3, vt::f64))), b);
};
/// A solver whose own derivative is wrong: that of the equation must be used.
const auto opaque = [](auto matvec, Tensor b) {
  return vt::stop_gradient(dense(matvec, vt::stop_gradient(b)));
};

TEST(Solvers, LinearSystemsAreTheirEquation) {
  const Function by_matrix = [](Tensor x) { return vt::linalg::solve(regular(x), vt::cos(x)); };
  expect_same_function(
      [](Tensor x) {
        const Tensor a = regular(x);
        return vt::linear_solve([&](Tensor v) { return vt::matmul(a, v); }, vt::cos(x), opaque,
                                opaque);
      },
      by_matrix, point, "linear_solve");
  expect_same_function(
      [](Tensor x) {
        const Tensor a = regular(x);
        return vt::bicgstab([&](Tensor v) { return vt::matmul(a, v); }, vt::cos(x),
                            {.tolerance = 1e-13});
      },
      by_matrix, point, "bicgstab");
  const Function by_symmetric = [](Tensor x) {
    return vt::linalg::solve(symmetric(x), vt::cos(x));
  };
  expect_same_function(
      [](Tensor x) {
        const Tensor a = symmetric(x);
        return vt::linear_solve([&](Tensor v) { return vt::matmul(a, v); }, vt::cos(x), opaque,
                                vt::LinearSolveOptions{.symmetric = true});
      },
      by_symmetric, point, "symmetric linear_solve");
  expect_same_function(
      [](Tensor x) {
        const Tensor a = symmetric(x);
        return vt::cg([&](Tensor v) { return vt::matmul(a, v); }, vt::cos(x), {.tolerance = 1e-13});
      },
      by_symmetric, point, "cg");
  expect_same_function(
      [](Tensor x) {
        const Tensor a = symmetric(x), scale = 1.0 / vt::diagonal(a);
        return vt::cg([&](Tensor v) { return vt::matmul(a, v); }, vt::cos(x),
                      [&](Tensor r) { return r * scale; }, {.tolerance = 1e-13});
      },
      by_symmetric, point, "cg with a preconditioner");
}

TEST(Solvers, MatvecsThatLoop) {
  // (I − s·shift)⁴ v, by a scan inside matvec.
  const auto product = [](Tensor s, Tensor v) {
    return vt::fori_loop(
        0, 4, [&](Tensor, Tensor u) { return u * 1.5 - 0.4 * s * vt::roll(u, 1, 0); }, v);
  };
  const Function f = [=](Tensor x) {
    return vt::bicgstab([&](Tensor v) { return product(x, v); }, vt::exp(x), {.tolerance = 1e-13});
  };
  const Function plain = [=](Tensor x) {
    return vt::linalg::solve(
        vt::transpose(vt::vmap([&](Tensor v) { return product(x, v); })(vt::eye(3, vt::f64))),
        vt::exp(x));
  };
  expect_same_function(f, plain, point, "a loop");
}

TEST(Solvers, TreesAndLanesThatEndOnTheirOwn) {
  struct Pair {
    Tensor a;
    std::vector<Tensor> rest;
  };
  const auto matvec = [](const Pair& p) {
    return Pair{5.0 * p.a + vt::sum(p.rest[0]), {2.0 * p.rest[0] + vt::sum(p.a)}};
  };
  const Pair b{vt::tensor({{1.0, 2.0}}), {vt::tensor({1.0, -1.0, 0.5})}};
  const Pair x = vt::bicgstab(matvec, b, {.tolerance = 1e-13}), back = matvec(x);
  expect_close(back.a, b.a, same);
  expect_close(back.rest[0], b.rest[0], same);
  EXPECT_EQ(x.a.shape(), vt::Shape({1, 2}));
  const Tensor scales = vt::tensor({{1.0, 1.0, 1.0}, {1.0, 100.0, 1e4}, {2.0, 3.0, 1.0}});
  const auto solve = [](Tensor d) {
    return vt::cg([&](Tensor v) { return d * v; }, vt::ones({3}, vt::f64), {.tolerance = 1e-12});
  };
  expect_close(vt::vmap(solve)(scales), 1.0 / scales, {.relative = 1e-10});
  // Both compiled: the interpreter iterations sums in another order.
  expect_close(vt::jit(vt::vmap(solve))(scales), loop(vt::jit(solve), scales));
  EXPECT_EQ(solve(vt::ones({3}, vt::f64) * 4.0).to_vector<double>(),
            (std::vector<double>{0.25, 0.25, 0.25}));
  expect_close(vt::cg([](Tensor v) { return 2.0f * v; }, vt::zeros({3})), vt::zeros({3}));
  expect_close(vt::cg([](Tensor v) { return v; }, vt::zeros({0})), vt::zeros({0}));
  const Tensor f32s =
      vt::cg([](Tensor v) { return vt::tensor({1.0f, 2.0f, 4.0f}) * v; }, vt::ones({3}));
  expect_close(f32s, vt::tensor({1.0f, 0.5f, 0.25f}), {.ulps = 16});
}

TEST(Solvers, ComplexSystems) {
  const Tensor a = vt::complex(regular(point), 0.2 * noise), b = vt::complex(point, 1.0 - point);
  const Tensor x =
      vt::bicgstab([&](Tensor v) { return vt::matmul(a, v); }, b, {.tolerance = 1e-13});
  const Tensor back = vt::matmul(a, x);
  expect_close(vt::real(back), vt::real(b), same);
  expect_close(vt::imag(back), vt::imag(b), same);
  const Tensor h = vt::matmul(a, vt::conj(vt::transpose(a)));
  const Tensor y = vt::cg([&](Tensor v) { return vt::matmul(h, v); }, b, {.tolerance = 1e-13});
  expect_close(vt::real(vt::matmul(h, y)), vt::real(b), same);
}

// The transpose of a Hermitian matrix is its conjugate.
TEST(Solvers, ReverseModeOfHermitianSystems) {
  const auto hermitian = [](Tensor t) {
    const Tensor a = vt::complex(regular(t), 0.4 * noise * t);
    return vt::matmul(a, vt::conj(vt::transpose(a)));
  };
  const auto right = [](Tensor t) { return vt::complex(vt::sin(t), 1.0 - t * t); };
  const auto size = [](Tensor x) {
    return vt::sum(vt::square(vt::abs(x)) + vt::real(x) * vt::imag(x));
  };
  const Function direct = [=](Tensor t) { return size(vt::linalg::solve(hermitian(t), right(t))); };
  const Function plain = [=](Tensor t) {
    const Tensor h = hermitian(t);
    return size(vt::cg([&](Tensor v) { return vt::matmul(h, v); }, right(t), {.tolerance = 1e-14}));
  };
  const Function preconditioned = [=](Tensor t) {
    const Tensor h = hermitian(t), scale = 1.0 / vt::diagonal(h);
    return size(vt::cg([&](Tensor v) { return vt::matmul(h, v); }, right(t),
                       [&](Tensor r) { return r * scale; }, {.tolerance = 1e-14}));
  };
  // The first unknown as a leaf of its own.
  const Function in_leaves = [=](Tensor t) {
    const Tensor h = hermitian(t), b = right(t);
    const auto whole = [](const std::pair<Tensor, Tensor>& x) {
      return vt::concatenate({x.first, x.second});
    };
    const auto parts = [](Tensor x) {
      return std::pair(x[vt::slice(0, 1)], x[vt::slice(1, x.dim(0))]);
    };
    return size(
        whole(vt::cg([&](std::pair<Tensor, Tensor> v) { return parts(vt::matmul(h, whole(v))); },
                     parts(b), {.tolerance = 1e-14})));
  };
  for (const Function& f : {plain, preconditioned, in_leaves}) {
    expect_close(f(point), direct(point), same);
    expect_close(vt::grad(f)(point), vt::grad(direct)(point), same);
    expect_close(vt::jacfwd(f)(point), vt::grad(direct)(point), same);
    expect_close(vt::hessian(f)(point), vt::hessian(direct)(point), same);
    expect_close(vt::jacrev(vt::grad(f))(point), vt::hessian(direct)(point), same);
    const Tensor points = vt::stack({point, 1.5 * point});
    expect_close(vt::vmap(vt::grad(f))(points), vt::vmap(vt::grad(direct))(points), same);
  }
}

TEST(Solvers, RootsFollowTheImplicitFunctionTheorem) {
  // x³ + x = θ element by element, coupled by a matrix.
  const auto equation = [](Tensor theta) {
    return [=](Tensor x) {
      return x * x * x + vt::matmul(symmetric(theta) * 0.3, x) - vt::exp(theta);
    };
  };
  // The same by so many Newton steps written out.
  const Function plain = [=](Tensor theta) {
    Tensor x = theta * 0.0;
    const auto f = equation(theta);
    for (int i = 0; i < 12; ++i) x = x - vt::linalg::solve(vt::jacfwd(f)(x), f(x));
    return x;
  };
  const Tensor guess = vt::zeros({3}, vt::f64);
  expect_same_function(
      [&](Tensor theta) { return vt::newton(equation(theta), guess, {.tolerance = 1e-13}); }, plain,
      point, "newton");
  const auto found = [=](auto f, Tensor start) {
    const auto step = [&](Tensor, Tensor x) { return x - 0.1 * f(x); };
    return vt::stop_gradient(vt::fori_loop(0, 600, step, start));
  };
  expect_same_function([&](Tensor theta) { return vt::root(equation(theta), guess, found); }, plain,
                       point, "root");
  expect_same_function(
      [&](Tensor theta) {
        return vt::root(equation(theta), guess, found, [](auto slope, Tensor b) {
          return vt::bicgstab(slope, b, {.tolerance = 1e-13});
        });
      },
      plain, point, "root with a way to solve for the tangent");
  expect_same_function(
      [&](Tensor theta) {
        // which the function below knows, and no transform
        const auto tangent = [scale = vt::exp(theta)](auto slope, Tensor b) {
          return scale *
                 vt::linalg::solve(vt::jacfwd([&](Tensor v) { return slope(scale * v); })(b), b);
        };
        return vt::root(equation(theta), guess, found, tangent);
      },
      plain, point, "root with a way to solve for the tangent that uses the argument");
  expect_same_function(
      [&](Tensor theta) {
        return vt::fixed_point([&](Tensor x) { return x - 0.1 * equation(theta)(x); }, guess,
                               {.tolerance = 1e-14, .max_iterations = 600});
      },
      plain, point, "fixed_point");
  // By the guess the root does not change.
  expect_close(
      vt::grad([&](Tensor start) { return vt::sum(vt::newton(equation(point), start)); })(guess),
      guess);
}

TEST(Solvers, RootsOfTreesAndNumbers) {
  const Tensor two = vt::newton([](Tensor x) { return x * x - 4.0; }, 1.0);
  EXPECT_NEAR(two.item<double>(), 2, 1e-10);
  EXPECT_NEAR(vt::grad([](Tensor a) {
                return vt::newton([=](Tensor x) { return x * x - a; }, vt::tensor(1.0));
              })(vt::tensor(9.0))
                  .item<double>(),
              1.0 / 6, 1e-12);
  const auto f = [](const std::pair<Tensor, Tensor>& p) {
    return std::pair(p.first + p.second - vt::tensor({3.0, 5.0}),
                     p.first * 2.0 - p.second - vt::tensor({0.0, 1.0}));
  };
  const auto [x, y] = vt::newton(f, std::pair(vt::zeros({2}, vt::f64), vt::zeros({2}, vt::f64)));
  expect_close(x, vt::tensor({1.0, 2.0}), same);
  expect_close(y, vt::tensor({2.0, 3.0}), same);
  expect_close(vt::fixed_point([](Tensor v) { return vt::cos(v); }, vt::tensor(1.0)),
               vt::tensor(0.7390851332151607), same);
}

TEST(Solvers, WhatIsLinearIsTakenForIt) {
  const Tensor b = vt::tensor({1.0, 2.0, 3.0}), d = vt::tensor({2.0, 4.0, 8.0});
  const auto energy = [&](Tensor x) { return vt::sum(d * x * x) / 2.0; };
  const auto loop = [&](Tensor v) {
    return vt::fori_loop(0, 2, [&](Tensor, Tensor y) { return vt::sqrt(d) * y; }, v);
  };
  const auto branch = [&](Tensor v) {
    return vt::cond(
        vt::sum(d) > 3.0, [&](Tensor y) { return d * y; }, [](Tensor y) { return y; }, v);
  };
  const auto hessian = [&](Tensor v) {
    return std::get<1>(vt::jvp(vt::grad(energy), std::tuple(b), std::tuple(v)));
  };
  const auto summed = [&](Tensor v) { return vt::zeros_like(v) + d * v + 0.0; };
  const auto masked = [&](Tensor v) { return vt::where(d > 3.0, d * v, 2.0 * v); };
  const auto check = [&](const auto& f) {
    const std::vector<double> x = vt::cg(f, b).template to_vector<double>();
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(x[i], b.to_vector<double>()[i] / d.to_vector<double>()[i], 1e-8);
  };
  const auto nested = [&](Tensor v) { return vt::cg([&](Tensor u) { return u / d; }, v); };
  const auto ruled =
      vt::custom_vjp([&](Tensor v) { return d * v; }, [&](Tensor v) { return std::pair(d * v, v); },
                     [&](Tensor, Tensor bar) { return d * bar; });
  check(loop), check(branch), check(hessian), check(summed), check(masked), check(nested),
      check(ruled);
}

TEST(Solvers, WrongUses) {
  const Tensor b = vt::ones({3}, vt::f64);
  const auto same_side = [](auto, Tensor v) { return v; };
  expect_error(
      [&] { (void)vt::linear_solve([](Tensor v) { return v[0]; }, b, same_side, same_side); },
      ErrorKind::shape,
      {"vt::linear_solve: matvec gives f64[] as a value where f64[3] is needed",
       "vmap_solvers_test.cpp"});
  expect_error([&] { (void)vt::cg([](Tensor v) { return v.astype(vt::f32); }, b); },
               ErrorKind::dtype, {"vt::cg: matvec gives f32[3]"});
  expect_error(
      [&] {
        (void)vt::linear_solve([](Tensor v) { return v; }, b, [](auto, Tensor v) { return v[0]; });
      },
      ErrorKind::shape, {"vt::linear_solve: the solution gives f64[]"});
  expect_error(
      [&] { (void)vt::linear_solve([](Tensor v) { return v * v; }, b, same_side, same_side); },
      ErrorKind::transform, {"vt::linear_solve: matvec must be linear"});
  for (const auto& [f, why] : std::initializer_list<std::pair<Tensor (*)(Tensor), const char*>>{
           {[](Tensor v) { return v * v; }, "the derivative of this one depends on v"},
           {[](Tensor v) { return vt::abs(v); }, "the derivative of this one depends on v"},
           {[](Tensor v) { return vt::where(v > 0.0, v, 2.0 * v); },
            "the derivative of this one depends on v"},
           {[](Tensor v) { return 2.0 * v + 1.0; }, "this one adds a number"},
           {[](Tensor v) { return 1.0 - v; }, "this one adds a number"}}) {
    expect_error(
        [&, f = f] { (void)vt::cg(f, b); }, ErrorKind::transform,
        {"vt::cg: matvec must be linear, a product v ↦ A·v; ", why, "vmap_solvers_test.cpp"});
    expect_error([&, f = f] { vt::jit([&](Tensor c) { return vt::cg(f, c); })(b); },
                 ErrorKind::transform, {"vt::cg: matvec must be linear"});
  }
  expect_error([&] { (void)vt::bicgstab([](Tensor v) { return v + 1.0; }, b); },
               ErrorKind::transform, {"vt::bicgstab: matvec must be linear"});
  expect_error([] { (void)vt::cg([](Tensor v) { return v; }, vt::tensor({1, 2})); },
               ErrorKind::dtype, {"vt::cg: needs floats, not i32[2]"});
  expect_error(
      [&] {
        vt::grad([&](Tensor v) {
          return vt::sum(vt::linear_solve([](Tensor u) { return 2.0 * u; }, v, same_side));
        })(b);
      },
      ErrorKind::transform,
      {"vt::linear_solve: reverse mode solves with the transposed matrix; give a transpose_solve, "
       "or say {.symmetric = true}"});
  expect_error([] { (void)vt::newton([](Tensor x) { return x[0]; }, vt::ones({2})); },
               ErrorKind::shape, {"vt::newton: the function gives f32[] as a value where f32[2]"});
}

}  // namespace
