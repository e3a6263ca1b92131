// Derivatives of the composed public functions: gradient against differences, Hessian against
// differences of the gradient, and vmap of the gradient against a loop; then the points where a
// composition could give NaN.
#include <memory>
#include <utility>
#include <vector>

#include "support/property.hpp"

namespace {

using vt::Shape;
using vt::Tensor;
using vt_test::expect_close;

struct Row {
  const char* name;
  std::function<Tensor(Tensor)> f;  ///< any shape out
  Shape shape;
  double low = -2, high = 2;
};

Tensor constant(const Shape& s, std::uint64_t seed) {
  return vt_test::random_tensor(vt::f64, s, 0.25, 1.5, seed);
}

std::vector<Row> rows() {
  const Tensor v3 = constant({3}, 1), m = constant({3, 4}, 2), k = constant({2, 3, 4}, 3);
  const Tensor index = vt::tensor({2, 0, 2, 7, -1}), ids = vt::tensor({0, 2, 0, 1});
  return {
      {"mean", [](Tensor x) { return vt::mean(x, 1); }, {3, 4}},
      {"var", [](Tensor x) { return vt::var(x, 0, 1); }, {3, 4}},
      {"std", [](Tensor x) { return vt::std(x); }, {3, 4}},
      {"logsumexp", [](Tensor x) { return vt::logsumexp(x, 1, true); }, {3, 4}},
      {"norm", [](Tensor x) { return vt::norm(x, 2, 1); }, {3, 4}},
      {"norm 1", [](Tensor x) { return vt::norm(x, 1.0, 1); }, {3, 4}},
      {"norm 3", [](Tensor x) { return vt::norm(x, 3.0, 0); }, {3, 4}, 0.2, 2},
      {"norm inf",
       [](Tensor x) { return vt::norm(x, std::numeric_limits<double>::infinity(), 0); },
       {3, 4}},
      {"ptp", [](Tensor x) { return vt::ptp(x, 1); }, {3, 4}},
      {"max from a start", [](Tensor x) { return vt::max(x, 1, {.initial = x[0][0]}); }, {3, 4}},
      {"products of those before",
       [](Tensor x) { return vt::cumprod(x, 1, {.exclusive = true}); },
       {3, 4}},
      {"smallest", [](Tensor x) { return vt::top_k(x, 2, 0, {.smallest = true}).first; }, {3, 4}},
      {"nanmean and nanvar",
       [](Tensor x) {
         const Tensor holes = vt::where(x > 1.0, std::nan(""), x);
         return vt::nanmean(holes) + vt::nanvar(holes) + vt::nanstd(holes) + vt::nanmax(holes);
       },
       {3, 4}},
      {"roll by a Tensor", [](Tensor x) { return vt::roll(x, vt::tensor(-3), 1); }, {3, 4}},
      {"repeat by Tensors",
       [](Tensor x) { return vt::repeat(x, vt::tensor({2, 0, 3}), 0, 6); },
       {3, 4}},
      {"linspace between Tensors",
       [](Tensor x) { return vt::linspace(x[0], x[1] * x[2], 5); },
       {3, 4}},
      {"trapezoid", [](Tensor x) { return vt::trapezoid(x, vt::cumsum(x * x, 1)); }, {3, 4}},
      {"convolve", [](Tensor x) { return vt::convolve(x[0], x[1] * x[2]); }, {3, 4}},
      {"vander", [](Tensor x) { return vt::vander(x, 4); }, {5}},
      {"polyfit",
       [](Tensor x) { return vt::polyfit(vt::cumsum(1.0 + x * x), vt::sin(x), 2); },
       {6}},
      {"select",
       [](Tensor x) { return vt::select({x > 1.0, x > 0.0}, {x * x, vt::sin(x)}, 2.0 * x); },
       {3, 4}},
      {"prod", [](Tensor x) { return vt::prod(x, {0, 1}); }, {2, 3}},
      {"softmax", [](Tensor x) { return vt::softmax(x, 0); }, {3, 4}},
      {"log_softmax", [](Tensor x) { return vt::log_softmax(x); }, {3, 4}},
      {"relu", [](Tensor x) { return vt::relu(x); }, {7}},
      {"relu6", [](Tensor x) { return vt::relu6(4.0 * x); }, {7}},
      {"elu", [](Tensor x) { return vt::elu(x, 0.7); }, {7}},
      {"selu", [](Tensor x) { return vt::selu(x); }, {7}},
      {"gelu", [](Tensor x) { return vt::gelu(x); }, {7}},
      {"gelu approximate", [](Tensor x) { return vt::gelu(x, true); }, {7}},
      {"silu", [](Tensor x) { return vt::silu(x); }, {7}},
      {"leaky_relu", [](Tensor x) { return vt::leaky_relu(x, 0.1); }, {7}},
      {"softplus", [](Tensor x) { return vt::softplus(x); }, {7}},
      {"softsign", [](Tensor x) { return vt::softsign(x); }, {7}},
      {"hard_tanh", [](Tensor x) { return vt::hard_tanh(x); }, {7}},
      {"layer_norm", [=](Tensor x) { return vt::layer_norm(x, m[0], m[1]); }, {3, 4}},
      {"rms_norm", [=](Tensor x) { return vt::rms_norm(x, m[0]); }, {3, 4}},
      {"group_norm", [=](Tensor x) { return vt::group_norm(x, 2, m[0], m[1]); }, {2, 3, 4}},
      {"batch_norm_training",
       [=](Tensor x) { return vt::batch_norm_training(x, m[0], m[1]).y; },
       {3, 4}},
      {"cross_entropy", [=](Tensor x) { return vt::cross_entropy(x, m); }, {3, 4}},
      {"sparse_cross_entropy",
       [](Tensor x) { return vt::sparse_cross_entropy(x, vt::tensor({1, 3, 0})); },
       {3, 4}},
      {"l2_loss", [](Tensor x) { return vt::l2_loss(x); }, {3, 4}},
      {"matmul left", [=](Tensor x) { return vt::matmul(x, m); }, {2, 3}},
      {"matmul right", [=](Tensor x) { return vt::matmul(m, x); }, {4, 2}},
      {"matmul batched", [=](Tensor x) { return vt::matmul(k, x); }, {4, 2}},
      {"matmul both", [](Tensor x) { return vt::matmul(x, vt::matrix_transpose(x)); }, {2, 3}},
      {"dot", [=](Tensor x) { return vt::dot(x, v3); }, {3}},
      {"outer", [](Tensor x) { return vt::outer(x, x); }, {3}},
      {"tensordot", [=](Tensor x) { return vt::tensordot(k, x, {2, 0}, {1, 0}); }, {2, 4}},
      {"einsum", [=](Tensor x) { return vt::einsum("ij,kjl,l->ik", x, k, m[0]); }, {2, 3}},
      {"einsum trace", [](Tensor x) { return vt::einsum("ii,jk->kj", x, x); }, {3, 3}},
      {"kron", [=](Tensor x) { return vt::kron(x, m); }, {2, 2}},
      {"cross", [=](Tensor x) { return vt::cross(x, v3); }, {3}},
      {"polyval", [](Tensor x) { return vt::polyval(x, vt::tensor({0.5, -1.5})); }, {4}},
      {"matrix_power", [](Tensor x) { return vt::matrix_power(x, 5); }, {2, 2}},
      {"cov", [](Tensor x) { return vt::cov(x); }, {2, 5}},
      {"corrcoef", [](Tensor x) { return vt::corrcoef(x); }, {2, 5}},
      {"take", [=](Tensor x) { return vt::take(x, index, 0); }, {3, 4}},
      {"take flat", [=](Tensor x) { return vt::take(x, index); }, {3, 4}},
      {"take_along_axis",
       [](Tensor x) { return vt::take_along_axis(x, vt::tensor({{0, 3}, {1, 1}, {2, 0}}), 1); },
       {3, 4}},
      {"index", [](Tensor x) { return x[1] * x[vt::slice(0, 3, 2)]; }, {3, 4}},
      {"index_update",
       [=](Tensor x) {
         return vt::index_update(x, vt::tensor({2, 0}), vt::square(x[vt::slice(0, 2)]));
       },
       {3, 4}},
      {"index_add",
       [=](Tensor x) {
         return vt::index_add(x, vt::tensor({2, 2}), vt::square(x[vt::slice(0, 2)]));
       },
       {3, 4}},
      {"index_mul",
       [=](Tensor x) {
         return vt::index_mul(x, vt::tensor({2, 2}), vt::square(x[vt::slice(0, 2)]));
       },
       {3, 4}},
      {"index_max",
       [=](Tensor x) {
         return vt::index_max(x, vt::tensor({2, 2}), vt::square(x[vt::slice(0, 2)]));
       },
       {3, 4}},
      {"gather_nd",
       [](Tensor x) { return vt::gather_nd(x, vt::tensor({{0, 1}, {2, 3}, {0, 1}})); },
       {3, 4}},
      {"scatter_nd",
       [](Tensor x) { return vt::scatter_nd(vt::tensor({{0, 1}, {2, 0}, {0, 1}}), x, {3, 2}); },
       {3}},
      {"segment_sum", [=](Tensor x) { return vt::segment_sum(x, ids, 3); }, {4, 2}},
      {"segment_mean", [=](Tensor x) { return vt::segment_mean(x, ids, 3); }, {4, 2}},
      {"segment_prod", [=](Tensor x) { return vt::segment_prod(x, ids, 3); }, {4, 2}},
      {"segment_max", [=](Tensor x) { return vt::segment_max(x, ids, 3); }, {4, 2}},
      {"diag", [](Tensor x) { return vt::diag(x, 1); }, {3}},
      {"diagonal", [](Tensor x) { return vt::diagonal(x, 1); }, {3, 4}},
      {"trace", [](Tensor x) { return vt::trace(x); }, {3, 4}},
      {"tril", [](Tensor x) { return vt::tril(x); }, {3, 4}},
      {"matrix_diag", [](Tensor x) { return vt::matrix_diag(x); }, {2, 3}},
      {"matrix_set_diag", [=](Tensor x) { return vt::matrix_set_diag(x, v3); }, {3, 4}},
      {"interp",
       [](Tensor x) {
         return vt::interp(x, vt::tensor({-3.0, -0.1, 1.05, 3.0}),
                           vt::tensor({1.0, 2.0, -1.0, 0.5}));
       },
       {5}},
      {"concatenate", [](Tensor x) { return vt::concatenate({x, x * x}, 1); }, {2, 3}},
      {"stack", [](Tensor x) { return vt::stack({x, x * x}, -1); }, {2, 3}},
      {"split", [](Tensor x) { return vt::split(x, 3, 1)[1]; }, {2, 6}},
      {"roll", [](Tensor x) { return vt::roll(x, 2, 0) * x; }, {5}},
      {"tile", [](Tensor x) { return vt::tile(x, {2, 2}); }, {2, 3}},
      {"repeat", [](Tensor x) { return vt::repeat(x, 2, 1); }, {2, 3}},
      {"pad", [](Tensor x) { return vt::pad(x, {{1, 0}, {-1, 2}}, 3.0); }, {2, 3}},
      {"moveaxis", [](Tensor x) { return vt::moveaxis(x, 0, 2); }, {2, 3, 2}},
      {"clip", [](Tensor x) { return vt::clip(x, -1.0, 1.03); }, {7}},
      {"hypot", [](Tensor x) { return vt::hypot(x, 0.5); }, {5}},
      {"copysign", [](Tensor x) { return vt::copysign(x, -1.0); }, {5}},
      {"logaddexp", [](Tensor x) { return vt::logaddexp(x, 2.0 * x - 1.0); }, {5}},
      {"xlogy", [](Tensor x) { return vt::special::xlogy(x, x + 3.0); }, {5}},
      {"mod", [](Tensor x) { return vt::mod(x, 1.7); }, {5}},
      {"squared_difference", [](Tensor x) { return vt::squared_difference(x, vt::sin(x)); }, {5}},
      {"elements, again and again",
       [](Tensor x) { return vt::stack({x[0] * x[3], x[3] * x[1], vt::sin(x[0]) * x[3]}); },
       {5}},
      {"elements of a matrix, one by one",
       [](Tensor x) {
         return vt::stack({x[0][1] * x[2][3], x[vt::slice(1, 2)][0][3] * x[2][3],
                           vt::reshape(vt::slice(x, {2, 1}, {3, 2}), {}) * x[2][1]});
       },
       {3, 4}},
      {"elements beside parts that have them",
       [](Tensor x) {
         Tensor sum = x[4] * vt::sum(x[vt::slice(2, 9)]);
         for (int i = 0; i < 16; ++i) sum = sum + x[i] * x[i] * (1.0 + i);
         return sum * vt::sum(x[vt::slice(3, 5)] * x[vt::slice(8, 10)]);
       },
       {17}},
      {"windows that overlap",
       [](Tensor x) {
         return x[vt::slice(0, 5)] * x[vt::slice(1, 6)] + x[vt::slice(2, 7)] * x[vt::slice(0, 5)];
       },
       {7}},
      {"blocks that overlap along both axes",
       [](Tensor x) {
         return vt::slice(x, {0, 1}, {2, 3}) * vt::slice(x, {1, 2}, {3, 4}) +
                vt::slice(x, {8, 8}, {10, 10}) * vt::slice(x, {1, 1}, {3, 3});
       },
       {10, 10}},
      {"slices of nothing beside others",
       [](Tensor x) { return vt::concatenate({x[vt::slice(2, 2)], x[vt::slice(1, 3)] * x[4]}); },
       {5}},
      {"cumulative",
       [](Tensor x) {
         return vt::cumsum(vt::cumprod(x, 1), 0, {.reverse = true}) + vt::cummax(x, 1) +
                vt::cumlogsumexp(x, 0);
       },
       {3, 4}},
      {"reduce",
       [](Tensor x) {
         return vt::reduce(x, 0.0, [](Tensor a, Tensor b) { return a * b + a + b; }, 1);
       },
       {2, 5}},
  };
}

TEST(GradFunctions, GradientAndHessianAreTheDifferences) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    const Tensor x = vt_test::random_tensor(vt::f64, row.shape, row.low, row.high, 17);
    const Tensor y = row.f(x), weights = constant(y.shape(), 23);
    const auto loss = [&](Tensor v) { return vt::sum(row.f(v) * weights); };
    const Tensor g = vt::grad(loss)(x);
    expect_close(g, vt_test::numeric_gradient(loss, x, 1e-4), {.relative = 1e-7, .absolute = 1e-8});
    expect_close(vt::hessian(loss)(x), vt_test::numeric_jacobian(vt::grad(loss), x, 1e-4),
                 {.relative = 1e-6, .absolute = 1e-7});
    expect_close(vt::jit(vt::grad(loss))(x), g, {.relative = 1e-12, .absolute = 1e-13});
  }
}

TEST(GradFunctions, VmapOfGradIsTheLoop) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    Shape batched = row.shape;
    batched.insert(batched.begin() + 1, 3);  // lanes in the second axis
    const Tensor xs = vt_test::random_tensor(vt::f64, batched, row.low, row.high, 19);
    const auto loss = [&](Tensor v) { return vt::sum(vt::sin(row.f(v))); };
    expect_close(vt::vmap(vt::grad(loss), {.in_axes = 1})(xs),
                 vt_test::stack_loop([&](Tensor v) { return vt::grad(loss)(v); }, 1, xs),
                 {.relative = 1e-12, .absolute = 1e-13});
  }
}

// What elements send back is written once, however often they are read; padding each of them would
// go through the whole vector each time.
TEST(GradFunctions, CotangentsOfElementsAreLaidSideBySide) {
  const auto f = [](Tensor x) {
    Tensor sum = vt::tensor(0.0);
    for (int i = 0; i + 2 < 30; ++i) sum = sum + x[i] * x[i + 1] * x[i + 2];
    return sum;
  };
  const std::string text = vt::make_graph(vt::grad(f))(vt::arange(30).astype(vt::f64)).str();
  EXPECT_EQ(text.find(" pad"), std::string::npos) << text;
  const auto first = text.find(" concatenate");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find(" concatenate", first + 1), std::string::npos) << text;
}

TEST(GradFunctions, NoNanWhereTheDerivativeExists) {
  const auto gradient = [](auto f, Tensor x) {
    return vt::grad([f](Tensor v) { return vt::sum(f(v)); })(x);
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  expect_close(gradient([](Tensor x) { return vt::relu(x); }, vt::tensor({-1.0, 0.0, 1.0})),
               vt::tensor({0.0, 0.0, 1.0}));
  expect_close(
      gradient([](Tensor x) { return vt::softplus(x); }, vt::tensor({-1000.0, 0.0, 1000.0})),
      vt::tensor({0.0, 0.5, 1.0}));
  expect_close(
      gradient([](Tensor x) { return vt::sigmoid(x); }, vt::tensor({-1000.0, 0.0, 1000.0})),
      vt::tensor({0.0, 0.25, 0.0}));
  expect_close(gradient([](Tensor x) { return vt::logsumexp(x); }, vt::tensor({-inf, 0.0, 0.0})),
               vt::tensor({0.0, 0.5, 0.5}), {.ulps = 4});
  expect_close(gradient([](Tensor x) { return vt::logsumexp(x); }, vt::tensor({1000.0, 0.0})),
               vt::tensor({1.0, 0.0}));
  expect_close(gradient([](Tensor x) { return vt::log_softmax(x)[0]; }, vt::tensor({1000.0, 0.0})),
               vt::tensor({0.0, 0.0}));
  expect_close(gradient([](Tensor x) { return vt::special::xlogy(x, 0.5); }, vt::tensor({0.0})),
               vt::tensor({std::log(0.5)}), {.ulps = 2});
  expect_close(gradient([](Tensor x) { return vt::prod(x); }, vt::tensor({0.0, 2.0})),
               vt::tensor({2.0, 0.0}));
  expect_close(gradient([](Tensor x) { return vt::abs(x); }, vt::tensor({-1.0, 0.0, 1.0})),
               vt::tensor({-1.0, 0.0, 1.0}));
  expect_close(gradient([](Tensor x) { return vt::elu(x); }, vt::tensor({-1000.0, 1000.0})),
               vt::tensor({0.0, 1.0}));
  expect_close(gradient([](Tensor x) { return vt::hypot(x, 1.0); }, vt::tensor({0.0})),
               vt::tensor({0.0}));
  expect_close(
      gradient(
          [](Tensor x) { return vt::where(x > 0.0, vt::log(vt::where(x > 0.0, x, 1.0)), 0.0); },
          vt::tensor({0.0, 2.0})),
      vt::tensor({0.0, 0.5}));
  expect_close(gradient([](Tensor x) { return vt::logaddexp(x, -inf); }, vt::tensor({1.0})),
               vt::tensor({1.0}));
}

// One Tensor as two results, of which only one has a cotangent.
TEST(GradFunctions, ResultsThatAreGivenTwice) {
  const Tensor three = vt::tensor(3.0);
  const auto twice = [](Tensor x) {
    const Tensor y = x * x;
    return std::pair(y, y);
  };
  const auto first = [](auto f) { return [f](Tensor x) { return f(x).first; }; };
  const auto gradient = [&](auto f) { return vt::grad(f)(three).template item<double>(); };
  EXPECT_EQ(vt::grad(twice, vt::has_aux)(three).first.item<double>(), 6);
  EXPECT_EQ(vt::jit(vt::vmap(vt::grad(twice, vt::has_aux)))(vt::stack({three, 2.0 * three}))
                .first[1]
                .item<double>(),
            12);
  EXPECT_EQ(gradient(first(vt::checkpoint(twice))), 6);
  EXPECT_EQ(gradient(first(vt::function("twice", twice))), 6);
  EXPECT_EQ(gradient(first([&](Tensor x) {
              return vt::cond(x > 0, twice, [](Tensor y) { return std::pair(y, y); }, x);
            })),
            6);
  EXPECT_EQ(gradient(first([&](Tensor x) {
              return vt::scan(
                  [](Tensor c, Tensor e) {
                    const Tensor next = c * e;
                    return std::pair(next, next);
                  },
                  x, vt::tensor({2.0, 3.0}));
            })),
            6);
  EXPECT_EQ(gradient(first([&](Tensor x) {
              return vt::while_loop([](Tensor a, Tensor) { return a < 50.0; },
                                    [&](Tensor a, Tensor) { return twice(a); }, std::pair(x, x));
            })),
            108);
  const auto [a, b] = vt::jacrev(twice)(vt::tensor({3.0, 1.0}));
  expect_close(a, vt::tensor({{6.0, 0.0}, {0.0, 2.0}}));
  expect_close(b, a);
  vt::Variable sum(vt::tensor(0.0), "sum");  // what is updated is a result, too
  const auto counted = [&](Tensor x) {
    return vt::cond(
        x > 0,
        [&](Tensor y) {
          sum.assign_add(y);
          return y;
        },
        [](Tensor y) { return -y; }, x);
  };
  expect_close(vt::vmap(vt::grad(counted))(vt::tensor({1.0, -2.0, 4.0})),
               vt::tensor({1.0, -1.0, 1.0}));
  EXPECT_EQ(sum.read().item<double>(), 5);
}

}  // namespace

namespace {
struct NumberBesideTensor {
  vt::Tensor weights;
  double rate;
};
/// No tree: its member is private.
class Counts {
 public:
  explicit Counts(std::vector<int> all) : all_(std::move(all)) {}
  const std::vector<int>& all() const { return all_; }

 private:
  std::vector<int> all_;
};
/// Owns what it points to, and cannot be copied.
struct Chain {
  double factor = 1;
  std::unique_ptr<Chain> next;
};

TEST(GradFunctions, ArgumentsThatAreNoTreesArePassedByReference) {
  const auto by_counts = [](const Counts& counts, Tensor x) {
    Tensor y = x;
    for (int n : counts.all()) y = y * x * static_cast<double>(n);
    return vt::sum(y);
  };
  const Counts counts({1, 2, 3});  // 6 x⁴
  const Tensor two(2.0);
  EXPECT_DOUBLE_EQ(vt::grad<1>(by_counts)(counts, two).item<double>(), 192.0);
  EXPECT_DOUBLE_EQ(vt::jacobian<1>(by_counts)(counts, two).item<double>(), 192.0);
  EXPECT_DOUBLE_EQ(vt::hessian<1>(by_counts)(counts, two).item<double>(), 288.0);

  const auto by_chain = [](Tensor x, const Chain& chain, int power) {
    Tensor y = vt::pow(x, static_cast<double>(power));
    for (const Chain* c = &chain; c; c = c->next.get()) y = y * c->factor;
    return std::pair(y, x * 2.0);
  };
  Chain chain{3.0, std::make_unique<Chain>()};
  chain.next->factor = 5.0;
  const auto [value, gradient] = vt::value_and_grad(by_chain, vt::has_aux)(two, chain, 3);
  EXPECT_DOUBLE_EQ(value.first.item<double>(), 120.0);
  EXPECT_DOUBLE_EQ(value.second.item<double>(), 4.0);
  EXPECT_DOUBLE_EQ(gradient.item<double>(), 180.0);
}

// p − 1 has no digit left where the label is nearly certain: the slope is that of the others.
TEST(GradFunctions, SparseCrossEntropyOfACertainLabel) {
  for (const double lead : {0.0, 3.0, 17.0, 40.0}) {
    const std::vector<double> x = {lead, 0.5, -1.0, 0.0};
    std::vector<double> p;
    double all = 0;
    for (const double v : x) all += std::exp(v - lead);
    for (const double v : x) p.push_back(std::exp(v - lead) / all);
    const double others = p[1] + p[2] + p[3];
    for (const vt::DType d : {vt::f32, vt::f64}) {
      const double ulps = d == vt::f32 ? 4e-7 : 1e-15;
      for (const std::int64_t label : {0, -4}) {  // counted from behind
        const auto f = [&](Tensor x) { return vt::sparse_cross_entropy(x, vt::tensor(label)); };
        const Tensor at = vt::tensor(x).astype(d);
        expect_close(vt::grad(f)(at).astype(vt::f64), vt::tensor({-others, p[1], p[2], p[3]}),
                     {.relative = ulps});
        expect_close(vt::jacfwd(f)(at).astype(vt::f64), vt::tensor({-others, p[1], p[2], p[3]}),
                     {.relative = ulps});
        expect_close(vt::hessian(f)(at)[0].astype(vt::f64),
                     vt::tensor({p[0] * others, -p[0] * p[1], -p[0] * p[2], -p[0] * p[3]}),
                     {.relative = ulps});
      }
    }
  }
  const auto last = [](Tensor x) { return vt::sparse_cross_entropy(x, vt::tensor(9)); };
  const Tensor x = vt::tensor({0.0, 1.0, 2.0});  // further ones are the last one
  expect_close(vt::grad(last)(x), vt::softmax(x) - vt::tensor({0.0, 0.0, 1.0}),
               {.relative = 1e-14});
  const auto one = [](Tensor x) { return vt::sparse_cross_entropy(x, vt::tensor(0)); };
  expect_close(vt::grad(one)(vt::tensor({5.0})), vt::tensor({0.0}));
}

}  // namespace

TEST(GradFunctions, NumbersBesideTensorsAreZeroInDerivatives) {
  const auto f = [](NumberBesideTensor p) { return vt::sum(p.weights) * p.rate; };
  const NumberBesideTensor p{vt::tensor({1.0, 2.0}), 3.0};
  EXPECT_EQ(vt::grad(f)(p).rate, 0);
  EXPECT_EQ(vt::grad(f)(p).weights.to_vector<double>(), std::vector<double>(2, 3.0));
  EXPECT_EQ(vt::jacobian(f)(p).rate, 0);
  EXPECT_EQ(vt::vjp(f, p).second(1.0).rate, 0);
  const auto same = [](NumberBesideTensor q) { return q; };
  EXPECT_EQ(vt::jvp(same, p, p).second.rate, 0);
  EXPECT_EQ(vt::jvp(same, p, p).first.rate, 3.0);
  EXPECT_EQ(vt::grad([](auto x) { return x * x; })(3.0).template item<double>(), 6.0);
}

TEST(GradFunctions, MessagesNameFields) {
  try {
    vt::grad([](NumberBesideTensor p) { return vt::sum(p.weights); })(
        NumberBesideTensor{vt::tensor({1, 2}), 3.0});
    FAIL();
  } catch (const vt::Error& e) {
    EXPECT_NE(std::string(e.what()).find("argument 0 .weights is i32[2]"), std::string::npos)
        << e.what();
  }
}
