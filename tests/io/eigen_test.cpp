// Eigen's vectors, matrices and arrays as Tensors and Tensors as those: of either storage order,
// fixed and dynamic, as arguments of transformed functions and as what results are assigned to.
#include <gtest/gtest.h>

#include <array>

#include <vt/eigen.hpp>
#include <vt/vt.hpp>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::message;

template <class M>
M numbered(Eigen::Index rows, Eigen::Index columns) {
  M m(rows, columns);
  for (Eigen::Index i = 0; i < rows; ++i)
    for (Eigen::Index j = 0; j < columns; ++j)
      m(i, j) = static_cast<typename M::Scalar>(10 * i + j);
  return m;
}

template <class M>
class EigenKinds : public testing::Test {};
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Kinds =
    testing::Types<Eigen::MatrixXd, RowMajor, Eigen::MatrixXf, Eigen::MatrixXi, Eigen::ArrayXXd,
                   Eigen::Matrix<double, 2, 3>, Eigen::Matrix<float, 2, 3, Eigen::RowMajor>,
                   Eigen::Array<std::int64_t, 2, Eigen::Dynamic>, Eigen::MatrixXcd,
                   Eigen::Matrix<bool, Eigen::Dynamic, 3>>;
TYPED_TEST_SUITE(EigenKinds, Kinds);

/// The elements of a Tensor are those of a matrix.
template <class M>
void expect_equal(const Tensor& t, const M& m) {
  using Scalar = typename M::Scalar;
  ASSERT_EQ(t.dtype(), vt::dtype_of<Scalar>());
  ASSERT_EQ(t.shape(), vt::Shape({m.rows(), m.cols()}));
  const std::vector<Scalar> values = t.to_vector<Scalar>();
  std::size_t next = 0;
  for (Eigen::Index i = 0; i < m.rows(); ++i)
    for (Eigen::Index j = 0; j < m.cols(); ++j) EXPECT_EQ(m(i, j), values[next++]);
}

TYPED_TEST(EigenKinds, ThereAndBack) {
  const auto m = numbered<TypeParam>(2, 3);
  const Tensor t = vt::tensor(m);
  expect_equal(t, m);
  const TypeParam back = t;
  expect_equal(vt::tensor(back), m);
  TypeParam assigned = m;
  assigned = vt::where(vt::tensor(true), t, t);
  expect_equal(t, assigned);
  const TypeParam direct(t);
  expect_equal(t, direct);
  // Expressions, blocks with strides, and their transposes.
  expect_equal(vt::tensor(m.transpose()), m.transpose().eval());
  expect_equal(vt::tensor(m.block(0, 1, 2, 2)), m.block(0, 1, 2, 2).eval());
  expect_equal(vt::jit([](Tensor x) { return vt::where(vt::tensor(true), x, x); })(m), m);
}

TEST(Eigen, VectorsAreLists) {
  const Eigen::Vector3d column(1, 2, 3);
  const Eigen::RowVector3d row(1, 2, 3);
  EXPECT_EQ(vt::tensor(column).shape(), vt::Shape({3}));
  EXPECT_EQ(vt::tensor(row).shape(), vt::Shape({3}));
  EXPECT_EQ(vt::tensor(column.head(2)).to_vector<double>(), (std::vector{1.0, 2.0}));
  const Eigen::MatrixXd m = numbered<Eigen::MatrixXd>(3, 4);
  EXPECT_EQ(vt::tensor(m.row(1)).to_vector<double>(), (std::vector{10.0, 11.0, 12.0, 13.0}));
  EXPECT_EQ(vt::tensor(m.col(1)).to_vector<double>(), (std::vector{1.0, 11.0, 21.0}));
  const Tensor t = vt::tensor({1.0, 2.0, 3.0});
  EXPECT_EQ(Eigen::Vector3d(t), column);
  EXPECT_EQ(Eigen::RowVector3d(t), row);
  EXPECT_EQ(Eigen::VectorXd(t), column);
  EXPECT_EQ(Eigen::MatrixXd(t), column);
  EXPECT_EQ(Eigen::Vector3d(t.reshape({3, 1})), column);
  EXPECT_EQ(Eigen::RowVectorXd(t.reshape({1, 3})), row);
  EXPECT_EQ((Eigen::Matrix<double, 1, 1>(vt::tensor(4.0))(0, 0)), 4.0);
  const Eigen::Vector3f floats = t;  // converted, as to_vector does
  EXPECT_EQ(floats, column.cast<float>());
  EXPECT_EQ(Eigen::VectorXd(vt::zeros({0})).size(), 0);
  EXPECT_EQ(Eigen::MatrixXd(vt::zeros({0, 4})).cols(), 4);
  EXPECT_EQ(vt::tensor(Eigen::MatrixXd(0, 4)).shape(), vt::Shape({0, 4}));
  EXPECT_EQ(vt::tensor(column, vt::f32).dtype(), vt::f32);
}

TEST(Eigen, ArgumentsAndResultsOfTransforms) {
  const auto f = [](Tensor x) { return vt::sum(x * x * x); };
  const auto any = [](auto x) { return vt::sum(x * x * x); };
  const Eigen::Vector3d x(1, 2, 3);
  const Eigen::Vector3d expected = 3 * x.cwiseProduct(x);
  const Eigen::Vector3d g = vt::grad(f)(x);
  EXPECT_EQ(g, expected);
  EXPECT_EQ(Eigen::Vector3d(vt::grad(any)(x)), expected);
  EXPECT_EQ(Eigen::Vector3d(vt::jit(vt::grad(any))(2 * x)), 4 * expected);
  const auto fast = vt::jit(vt::grad(f));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Eigen::Vector3d(fast(i * x)), i * i * expected);
  const Eigen::Matrix3d h = vt::hessian(f)(x);
  EXPECT_EQ(h, Eigen::Matrix3d((6 * x).asDiagonal()));
  const Eigen::MatrixXd rows = numbered<Eigen::MatrixXd>(2, 3);
  EXPECT_EQ(Eigen::VectorXd(vt::vmap(f)(rows)), rows.array().cube().rowwise().sum().matrix());
  const auto [value, push] = vt::linearize(f, x);
  EXPECT_EQ(push(vt::tensor(x)).item<double>(), expected.dot(x));
  double out = 0;
  fast(x);
  vt::jit(f).into(out)(x);
  EXPECT_EQ(out, 36);
  // Beside numbers, and for parameters that are none of Tensors.
  const auto scaled = vt::jit([](Tensor a, Tensor s, int n) { return a * s * n; });
  EXPECT_EQ(Eigen::Vector3d(scaled(x, 2.0, 3)), 6 * x);
  EXPECT_EQ(Eigen::Vector3d(vt::function("scaled", scaled)(x, 0.5, 4)), 2 * x);
  EXPECT_NE(vt::explain(f)(x).find("reduce_sum"), std::string::npos) << vt::explain(f)(x);
}

TEST(Eigen, DataMayChangeAfterTheCall) {
  const auto cube = [](Tensor x) { return x * x * x; };
  const auto itself = vt::jit([](Tensor x) { return std::pair(x, x[0]); });
  Eigen::VectorXd x = Eigen::VectorXd::Constant(1000, 2.0);
  for (int i = 0; i < 3; ++i) {
    x.setConstant(2.0);
    const Tensor lazy = vt::vmap(cube)(x), same = itself(x).first, own = vt::tensor(x);
    x.setConstant(5.0);
    EXPECT_EQ(lazy[999].item<double>(), 8.0);
    EXPECT_EQ(same[999].item<double>(), 2.0);
    EXPECT_EQ(own[999].item<double>(), 2.0);
  }
}

TEST(Eigen, ResultsMayLieWhereArgumentsDo) {
  // y = (second element, first element): wrong if either is written before both are read.
  const auto swap = vt::jit([](Tensor x) { return vt::flip(x) * 2; });
  Eigen::Vector2d x(1, 2);
  std::span<double> place(x.data(), 2);
  for (int i = 0; i < 3; ++i) {
    x = Eigen::Vector2d(1, 2);
    swap.into(place)(x);
    EXPECT_EQ(x, Eigen::Vector2d(4, 2));
  }
}

TEST(Eigen, OtherDataForTensors) {
  const auto f = [](Tensor x) { return vt::sum(x * x); };
  const std::vector<double> list{1, 2, 3};
  const std::array<double, 3> array{1, 2, 3};
  const std::vector<std::vector<double>> nested{{1, 2}, {3, 4}};
  const std::span<const double> span(list);
  const auto jitted = vt::jit(vt::grad(f));
  for (int i = 0; i < 2; ++i) {
    for (const Tensor& g : {jitted(list), jitted(array), jitted(span), vt::grad(f)(array)})
      EXPECT_EQ(g.to_vector<double>(), (std::vector{2.0, 4.0, 6.0}));
    EXPECT_EQ(jitted(nested).to_vector<double>(), (std::vector{2.0, 4.0, 6.0, 8.0}));
  }
  // What a function takes as a container is one.
  const auto by_list = vt::jit([](Tensor x, const std::vector<double>& c) { return x * c[1]; });
  EXPECT_EQ(by_list(array, list).to_vector<double>(), (std::vector{2.0, 4.0, 6.0}));
}

TEST(Eigen, DataForBothModes) {
  const auto f = [](Tensor x, Tensor y) { return vt::sin(x) * y; };
  const std::vector<double> list{1, 2, 3};
  const std::array<double, 3> array{0.5, -1, 2};
  const Eigen::Vector3d eigen(2, 0, -1);
  const Tensor x = vt::tensor(list), y = vt::tensor(array), dx = vt::tensor(eigen);
  const auto [value, push] = vt::linearize(f, list, array);
  const Tensor along = vt::jvp(f, std::tuple(x, y), std::tuple(dx, x)).second;
  EXPECT_EQ(value.to_vector<double>(), f(x, y).to_vector<double>());
  for (const Tensor& pushed : {push(eigen, list), push(dx, list), push(eigen, x),
                               vt::jvp(f, std::tuple(list, y), std::tuple(eigen, list)).second})
    EXPECT_EQ(pushed.to_vector<double>(), along.to_vector<double>());
  const auto [same, pull] = vt::vjp(f, std::span<const double>(list), array);
  EXPECT_EQ(same.to_vector<double>(), value.to_vector<double>());
  const auto [of_x, of_y] = vt::vjp(f, x, y).second(dx);
  for (const auto& [a, b] : {pull(eigen), pull(std::array{2.0, 0.0, -1.0}), pull(dx)}) {
    EXPECT_EQ(a.to_vector<double>(), of_x.to_vector<double>());
    EXPECT_EQ(b.to_vector<double>(), of_y.to_vector<double>());
  }
  // One argument alone, and one that is no Tensor.
  const auto sum = [](Tensor z) { return vt::sum(z * z); };
  EXPECT_EQ(vt::jvp(sum, list, array).second.item<double>(), 2 * (0.5 - 2 + 6));
  EXPECT_EQ(Eigen::Vector3d(vt::vjp(sum, array).second(1.0)), Eigen::Vector3d(1, -2, 4));
  const auto weighted = [](const std::vector<Tensor>& w, Tensor z) { return w[0] * z; };
  const auto pulled = vt::vjp(weighted, std::vector{x}, array).second(list);
  EXPECT_EQ(std::get<0>(pulled)[0].to_vector<double>(), (y * x).to_vector<double>());
}

/// As std::mdspan, which this compiler has not.
template <class T>
struct View {
  using element_type = T;
  static constexpr std::size_t rank() { return 3; }
  T* data_handle() const { return data; }
  int extent(std::size_t axis) const { return extents[axis]; }
  int stride(std::size_t axis) const { return strides[axis]; }
  T* data;
  std::array<int, 3> extents, strides;
};

TEST(Eigen, ViewsOfSeveralAxes) {
  std::vector<float> data(60);
  for (std::size_t i = 0; i < 60; ++i) data[i] = static_cast<float>(i);
  const auto check = [&](const View<const float>& view) {
    const auto same = vt::jit([](Tensor x) { return x * 1; });
    for (const Tensor& t : {vt::tensor(view), same(view), same(view)}) {
      ASSERT_EQ(t.shape(), vt::Shape({view.extents[0], view.extents[1], view.extents[2]}));
      const std::vector<float> values = t.to_vector<float>();
      std::size_t next = 0;
      for (int i = 0; i < view.extents[0]; ++i)
        for (int j = 0; j < view.extents[1]; ++j)
          for (int k = 0; k < view.extents[2]; ++k)
            EXPECT_EQ(values[next++],
                      data[i * view.strides[0] + j * view.strides[1] + k * view.strides[2]]);
    }
  };
  check({data.data(), {3, 4, 5}, {20, 5, 1}});
  check({data.data(), {5, 4, 3}, {1, 5, 20}});
  check({data.data(), {3, 2, 2}, {20, 10, 2}});
  check({data.data(), {0, 2, 2}, {20, 10, 2}});
}

/// The message begins with a text, and tells the line.
void expect_begins(const std::function<void()>& f, std::string_view text) {
  const std::string all = message(f);
  EXPECT_TRUE(all.starts_with(text)) << all;
  EXPECT_NE(all.find("eigen_test.cpp:"), std::string::npos) << all;
}

TEST(Eigen, SparseMatrices) {
  const Tensor at = vt::tensor({{0, 1}, {2, 0}, {0, 1}}), values = vt::tensor({1.0, 2.0, 4.0});
  Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(3, 2);
  dense(0, 1) = 5, dense(2, 0) = 2;
  EXPECT_EQ(Eigen::MatrixXd(vt::to_eigen_sparse<double>(at, values, 3, 2)), dense);
  expect_begins([&] { (void)vt::to_eigen_sparse<double>(at, values, 2, 2); },
                "vt::to_eigen_sparse: entry 1 is at (2, 0), which is not in a 2×2 matrix; at ");
  expect_begins([&] { (void)vt::to_eigen_sparse<double>(values, values, 2, 2); },
                "vt::to_eigen_sparse: the indices are integers, not f64[3]; at ");
  expect_begins([&] { (void)vt::to_eigen_sparse<double>(at[0], values, 2, 2); },
                "vt::to_eigen_sparse: indices [n,2] and values [n] are wanted, not [2] and [3]");
}

TEST(Eigen, Refusals) {
  const Tensor four = vt::exp(vt::ones({4}));
  expect_begins([&] { [[maybe_unused]] const Eigen::Vector3d v = four; },
                "vt::Tensor to Eigen: a Tensor with the elements of 3×1 is wanted, not f32[4]");
  const Tensor square = vt::exp(vt::ones({2, 2})), deep = vt::exp(vt::ones({2, 2, 1}));
  expect_begins([&] { [[maybe_unused]] const Eigen::Matrix<double, 3, Eigen::Dynamic> v = square; },
                "vt::Tensor to Eigen: a Tensor with the elements of 3×n is wanted, not f32[2,2]");
  expect_begins([&] { [[maybe_unused]] const Eigen::MatrixXd v = deep; },
                "vt::Tensor to Eigen: a Tensor of rank 0 to 2 is wanted, not f32[2,2,1]");
  expect_begins([&] { (void)vt::as_eigen<float>(deep); },
                "vt::as_eigen: a Tensor of rank 0 to 2 is wanted, not f32[2,2,1]");
  const Tensor complex = vt::exp(vt::ones({2}, vt::c128));
  expect_begins([&] { [[maybe_unused]] const Eigen::VectorXd v = complex; }, "vt::astype: to f64");
  EXPECT_EQ(message([] { [[maybe_unused]] const Eigen::VectorXd v = Tensor(); }).substr(0, 10),
            "vt::Tensor");
}

TEST(Eigen, NoMatricesInsideOfTransforms) {
  // A function of matrices would have a derivative of 0.
  const auto f = [](const Eigen::VectorXd& x) { return vt::tensor(x.sum()); };
  const std::string text = "vt::Tensor to Eigen: f64[2] has no value of its own inside of vt::";
  const Eigen::Vector2d x(1, 2);
  const std::string of_grad = message([&] { (void)vt::grad(f)(x); });
  EXPECT_TRUE(of_grad.starts_with(text + "grad")) << of_grad;
  const std::string of_jit = message([&] { (void)vt::jit(f)(x); });
  EXPECT_TRUE(of_jit.starts_with(text + "jit")) << of_jit;
}

}  // namespace
