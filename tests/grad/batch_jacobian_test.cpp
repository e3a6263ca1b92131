// batch_jacobian: against vmap of jacobian and differences, for trees, both modes, chunks and any
// number of examples.
#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::Tensor;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::Tolerance;

constexpr Tolerance near{.relative = 1e-8, .absolute = 1e-9},
    same{.relative = 1e-12, .absolute = 1e-13};
const Tensor w = vt_test::random_tensor(vt::f64, {4, 3}, 2);

/// For one example, [4] → [3,2], and for all of them at once.
Tensor one(Tensor x) {
  const Tensor h = vt::tanh(vt::matmul(x, w));
  return vt::stack({h, vt::sin(h) * vt::sum(x * x)}, 1);
}
Tensor all(Tensor x) {
  const Tensor h = vt::tanh(vt::matmul(x, w));
  return vt::stack({h, vt::sin(h) * vt::sum(x * x, 1, true)}, 2);
}

TEST(BatchJacobian, IsTheJacobianOfEachExample) {
  for (std::int64_t examples : {1, 2, 5}) {
    const Tensor x = vt_test::random_tensor(vt::f64, {examples, 4}, 3);
    const Tensor wanted = vt::vmap(vt::jacobian(one))(x);
    expect_close(
        wanted,
        vt_test::stack_loop([](Tensor v) { return vt_test::numeric_jacobian(one, v); }, 0, x),
        near);
    EXPECT_EQ(wanted.shape(), vt::Shape({examples, 3, 2, 4}));
    expect_close(vt::batch_jacobian(all)(x), wanted, same);
    expect_close(vt::jit(vt::batch_jacobian(all))(x), wanted, same, "compiled");
    for (vt::JacobianMode mode : {vt::JacobianMode::forward, vt::JacobianMode::reverse})
      for (std::int64_t chunk : {0, 1, 3})
        expect_close(vt::batch_jacobian(all, {.chunk = chunk, .mode = mode})(x), wanted, same);
    const auto second = [&](Tensor v) { return vt::sum(vt::sin(vt::batch_jacobian(all)(v))); };
    expect_close(vt::grad(second)(x), vt_test::numeric_gradient(second, x),
                 {.relative = 1e-7, .absolute = 1e-8}, "gradient of it");
    const Tensor lanes = vt::stack({x, x * 0.5});
    expect_close(vt::vmap(vt::batch_jacobian(all))(lanes),
                 vt::stack({wanted, vt::vmap(vt::jacobian(one))(x * 0.5)}), same, "in lanes");
  }
  EXPECT_EQ(vt::batch_jacobian(all)(vt::zeros({0, 4}, vt::f64)).shape(), vt::Shape({0, 3, 2, 4}));
  // A scalar for each example.
  const Tensor x = vt_test::random_tensor(vt::f64, {5, 4}, 4);
  expect_close(vt::batch_jacobian([](Tensor v) { return vt::sum(v * v * v, 1); })(x), 3.0 * x * x,
               same);
  expect_close(vt::batch_jacobian([](Tensor v) { return v[vt::slice(0, 5)] * 0.0 + 1.0; })(x),
               vt::zeros({5, 4, 4}, vt::f64));
}

TEST(BatchJacobian, TreesAndSeveralArguments) {
  struct State {
    Tensor a, b;
  };
  const Tensor a = vt_test::random_tensor(vt::f64, {3, 2}, 5),
               b = vt_test::random_tensor(vt::f64, {3}, 6), k = vt::tensor({1.0, 2.0});
  const auto f = [](State s, Tensor k) {
    return std::pair(s.a * vt::reshape(s.b, {3, 1}) * k, s.b * s.b);
  };
  const auto [rows, squares] = vt::batch_jacobian(f)(State{a, b}, k);
  EXPECT_EQ(rows.a.shape(), vt::Shape({3, 2, 2}));
  EXPECT_EQ(rows.b.shape(), vt::Shape({3, 2}));
  expect_close(rows.a, vt::reshape(b, {3, 1, 1}) * vt::eye(2, vt::f64) * k, same);
  expect_close(rows.b, a * k, same);
  expect_close(squares.a, vt::zeros({3, 2}, vt::f64));
  expect_close(squares.b, 2.0 * b, same);
  const auto [by_first, by_second] =
      vt::batch_jacobian<0, 1>([](Tensor x, Tensor y) { return x * y; })(a, a + 1.0);
  expect_close(by_first, vt::vmap([](Tensor v) { return vt::diag(v); })(a + 1.0), same);
  expect_close(by_second, vt::vmap([](Tensor v) { return vt::diag(v); })(a), same);
}

TEST(BatchJacobian, WrongUses) {
  expect_error([] { vt::batch_jacobian([](Tensor x) { return vt::sum(x); })(vt::ones({3, 2})); },
               ErrorKind::shape,
               {"vt::batch_jacobian: ", " is a scalar f32[]; axis 0 must hold the examples",
                "batch_jacobian_test.cpp"});
  expect_error(
      [] { vt::batch_jacobian([](Tensor x) { return vt::sum(x, 0); })(vt::ones({3, 2})); },
      ErrorKind::shape,
      {"is f32[2], but there are 3 examples; axis 0 of every argument and result must hold them"});
  expect_error(
      [] { vt::batch_jacobian([](Tensor x) { return x; }, {.chunk = -1})(vt::ones({3, 2})); },
      ErrorKind::value, {"vt::batch_jacobian: chunk -1"});
}

}  // namespace
