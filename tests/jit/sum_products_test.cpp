// Sums of matrix products that are taken of an operand instead: which ones, and that the numbers
// stay what they are.
#include <gtest/gtest.h>

#include <vt/vt.hpp>

#include "src/jit/passes/passes.hpp"
#include "src/trace/record/scope.hpp"
#include "support/compare_executors.hpp"

namespace {

using namespace vt;
using namespace vt::detail;
using Tensors = std::vector<Tensor>;
using Args = std::span<const Tensor>;

// Quarters between −4 and 4: their products and sums are exact, so that the order of additions does
// not show.
Tensor quarters(DType d, const Shape& shape, std::uint64_t seed) {
  return (is_float(d) ? vt_test::random_quarters(d, shape, seed)
                      : vt_test::random_tensor(d, shape, -9, 9, seed));
}

GraphBody rewritten(const FlatFunction& f, const Tensors& arguments) {
  std::vector<Aval> avals;
  for (const Tensor& t : arguments) avals.push_back(Aval(t.dtype(), t.shape()));
  return sum_before_products(record(f, avals, {}).graph);
}

// Elements of the results of all products.
std::int64_t product_elements(const GraphBody& g) {
  std::int64_t n = 0;
  for (const Equation& e : g.equations)
    if (e.op == Op::dot_general) n += g.aval(e.outputs[0]).elements();
  return n;
}

struct Case {
  const char* name;
  FlatFunction f;
  std::int64_t elements;  // of the products that are left
};

TEST(SumProducts, SumsComeFirst) {
  const auto batched = [](const Tensor& a, const Tensor& b) {
    return einsum("bij,bjk->bik", {a, b});
  };
  const Shape left{3, 5, 7}, right{3, 7, 4};
  const Case cases[] = {
      {"rows", [&](Args t) -> Tensors { return {sum(batched(t[0], t[1]), 1)}; }, 3 * 4},
      {"columns", [&](Args t) -> Tensors { return {sum(batched(t[0], t[1]), 2)}; }, 3 * 5},
      {"both", [&](Args t) -> Tensors { return {sum(batched(t[0], t[1]), {1, 2})}; }, 3},
      {"negated", [&](Args t) -> Tensors { return {sum(-batched(t[0], t[1]), 1)}; }, 3 * 4},
      {"negated twice",
       [&](Args t) -> Tensors { return {sum(-transpose(-batched(t[0], t[1]), {2, 0, 1}), 2)}; },
       3 * 4},
      {"transposed",
       [&](Args t) -> Tensors { return {sum(-transpose(batched(t[0], t[1]), {1, 2, 0}), 0)}; },
       3 * 4},
      {"transposed columns",
       [&](Args t) -> Tensors {
         return {sum(transpose(transpose(batched(t[0], t[1]), {2, 1, 0}), {1, 2, 0}), 2)};
       },
       3 * 5},
      {"sum of a sum", [&](Args t) -> Tensors { return {sum(sum(batched(t[0], t[1]), 2), 1)}; }, 3},
      {"over the batch", [&](Args t) -> Tensors { return {sum(batched(t[0], t[1]), 0)}; },
       3 * 5 * 4},
      {"over batch and rows", [&](Args t) -> Tensors { return {sum(batched(t[0], t[1]), {0, 1})}; },
       3 * 5 * 4},
      {"used elsewhere",
       [&](Args t) -> Tensors {
         const Tensor y = batched(t[0], t[1]);
         return {sum(y, 1), exp(y * 0.0f)};
       },
       3 * 5 * 4},
      {"not a sum", [&](Args t) -> Tensors { return {max(batched(t[0], t[1]), 1)}; }, 3 * 5 * 4},
      {"several free axes",
       [](Args t) -> Tensors { return {sum(tensordot(t[0], t[1], {2}, {1}), {1, 2})}; }, 3 * 4},
      {"some of several free axes",
       [](Args t) -> Tensors {
         return {sum(transpose(tensordot(t[0], t[1], {2}, {1}), {3, 1, 0, 2}), {0, 2})};
       },
       5 * 3},
  };
  for (const Case& c : cases)
    for (DType d : {i32, i64, f32, f64}) {
      if (!is_float(d) && std::string(c.name) == "used elsewhere") continue;
      const Tensors arguments = {quarters(d, left, 1), quarters(d, right, 2)};
      const std::string what = std::string(c.name) + " " + vt::name_of(d);
      EXPECT_EQ(product_elements(rewritten(c.f, arguments)), c.elements) << what;
      vt_test::expect_same(c.f, arguments, vt_test::exact, what);
    }
}

// Sums in 16 bits would round before they are multiplied.
TEST(SumProducts, ShortFloatsStay) {
  const FlatFunction f = [](Args t) -> Tensors { return {sum(matmul(t[0], t[1]), 0)}; };
  for (DType d : {f16, bf16})
    EXPECT_EQ(product_elements(rewritten(f, {quarters(d, {5, 7}, 1), quarters(d, {7, 4}, 2)})),
              5 * 4)
        << vt::name_of(d);
}

// 0 · ∞ is NaN, whatever the others of its column are, and finite columns stay.
TEST(SumProducts, InfiniteFactors) {
  const FlatFunction f = [](Args t) -> Tensors { return {-sum(sum(matmul(t[0], t[1]), 0), 0)}; };
  const FlatFunction rows = [](Args t) -> Tensors { return {sum(matmul(t[0], t[1]), 0)}; };
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const std::int64_t n : {3, 20, 70}) {
    const Tensor a = quarters(f64, {n, n}, 1), b = quarters(f64, {n, n}, 2);
    const Tensor zero = index_update(a, 0, 0.0), infinite = index_update(b, 0, inf);
    const Tensor one = index_update(b, 0, where(eye(n, f64)[0] > 0.0, inf, b[0]));
    for (const FlatFunction& g : {f, rows})
      for (const Tensors& arguments :
           {Tensors{zero, b}, Tensors{zero, infinite}, Tensors{zero, one}, Tensors{infinite, b}})
        vt_test::expect_same(g, {arguments[0].eval(), arguments[1].eval()}, vt_test::exact,
                             std::to_string(n));
  }
}

// The gradient by a shift that all rows share needs no product of the whole batch.
TEST(SumProducts, GradientOfAShift) {
  const Tensor x = quarters(f32, {50, 6}, 1), w = quarters(f32, {6, 4}, 2),
               shift = quarters(f32, {6}, 3);
  const auto loss = [&](Tensor s) { return sum(square(matmul(x - s, w))); };
  const Tensor want = -2.0f * sum(matmul(matmul(x - shift, w), transpose(w)), 0);
  vt_test::expect_close(jit(grad(loss))(shift), want.eval(), vt_test::exact,
                        "gradient by the shift");
}

}  // namespace
