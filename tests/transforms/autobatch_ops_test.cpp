// autobatch over the whole op table: nine instances of an op run as one batch, and each has the
// value and the derivatives that it has alone.
#include <gtest/gtest.h>

#include "support/grad_cases.hpp"
#include "support/primitive_cases.hpp"

namespace {

using namespace vt_test::derivatives;
using vt::Batching;
using vt_test::PrimitiveCase;

constexpr Batching strategies[] = {Batching::none, Batching::by_depth, Batching::agenda};
// More than are computed as values that all share.
constexpr std::size_t instances = 9;

/// Operands of one instance after the other, `count` each; those of `shared` are the first one's.
using Apply = std::function<Tensors(std::span<const Tensor>)>;
struct Instances {
  Apply op;
  std::size_t count;
  unsigned shared = 0;  ///< operand i if bit i is set

  Tensors own(std::span<const Tensor> all, std::size_t k) const {
    Tensors x;
    for (std::size_t i = 0; i < count; ++i)
      x.push_back(all[(shared >> i & 1u ? 0 : k) * count + i]);
    return x;
  }
  Tensors plain(std::span<const Tensor> all) const {
    Tensors results;
    for (std::size_t k = 0; k < instances; ++k)
      for (const Tensor& t : op(own(all, k))) results.push_back(t);
    return results;
  }
  Tensors batched(std::span<const Tensor> all, Batching strategy) const {
    return vt::autobatch([&] { return plain(all); }, {.strategy = strategy})();
  }
};

// The interpreter gives the same bits. What is compiled for many rows may add in another order than
// what is compiled for one; between strategies it does not.
bool interpreted() { return vt_test::forced_backend() == "interpreter"; }

bool elementwise(Op op) {
  return family_of(op) == Family::unary || family_of(op) == Family::binary;
}

// Functions with functions inside, and what takes all right sides of a system at once, have code
// for each power of two of rows, which may add in another order.
bool bits_depend_on_rows(Op op) {
  return family_of(op) == Family::structure || family_of(op) == Family::linalg;
}

class AutobatchOps : public ::testing::TestWithParam<Family> {};

TEST_P(AutobatchOps, HaveTheValuesThatTheyHaveAlone) {
  unsigned number = 0;
  for (const PrimitiveCase& c : vt_test::primitive_cases()) {
    if (family_of(c.op) != GetParam() || c.operands.empty()) continue;
    // Compiled, the shapes of element-wise ops take turns.
    if (elementwise(c.op) && !interpreted() && (++number + static_cast<unsigned>(c.op)) % 3 != 0)
      continue;
    Tensors all;
    for (std::size_t k = 0; k < instances; ++k)
      for (std::size_t i = 0; i < c.operands.size(); ++i) all.push_back(c.operand(i, 100 * k + i));
    const unsigned every = (1u << c.operands.size()) - 1, turn = number++ % 2;
    for (const unsigned shared : std::set<unsigned>{0u, every & ~1u, every >> 1}) {
      // Not each of them is compiled.
      if (!interpreted() && shared && shared != (turn ? every & ~1u : every >> 1)) continue;
      const Instances f{[&](std::span<const Tensor> x) { return c.run(x); }, c.operands.size(),
                        shared};
      Tensors first;
      // Parts of shared values are shared, and what is joined with nothing is what it was.
      const bool none = c.op == Op::slice || (c.op == Op::concatenate && c.operands.size() == 1);
      for (const Batching strategy : strategies) {
        SCOPED_TRACE(c.name() + " shared " + std::to_string(shared) + " strategy " +
                     std::to_string(static_cast<int>(strategy)));
        const Tensors got = f.batched(all, strategy);
        if (strategy == Batching::none) {
          vt_test::expect_close(got, f.plain(all), interpreted() ? vt_test::exact : c.tolerance());
          first = got;
        } else {
          vt_test::expect_close(got, first,
                                bits_depend_on_rows(c.op) ? c.tolerance() : vt_test::exact);
          EXPECT_EQ(vt::batch_stats().groups, none ? 0u : 1u);
        }
        EXPECT_EQ(vt::batch_stats().nodes, none ? 0u : instances);
        if (HasFailure()) return;
      }
    }
  }
}

// What a cell makes of shared values alone is as large for few rows as for many.
TEST(AutobatchCells, SharedValuesInsideAreLargerThanTheResults) {
  const auto cell = vt::function("shared_inside", [](const Tensor& x, const Tensor& w) {
    return vt::matmul(vt::tanh(vt::matmul(x, vt::sin(w) * 2.0f)), w);
  });
  const Tensor w = vt_test::random_quarters(vt::f32, {64, 64}, 1) * 0.0625f;
  const Tensor x = vt_test::random_quarters(vt::f32, {9, 64}, 2).eval();
  for (const std::int64_t rows : {1, 2, 9}) {
    const auto f = [&](const Tensor& v) {
      Tensors all;
      for (std::int64_t i = 0; i < rows; ++i) all.push_back(cell(x[i], v));
      return vt::stack(all);
    };
    vt_test::expect_close(vt::autobatch(f)(w), f(w), {.relative = 1e-5, .absolute = 1e-5});
  }
}

/// Operands of a case for the differentiated arguments: all floats of all instances, the case's own
/// numbers a little moved for each. Kinks are further away than that.
Tensors moved_operands(const Case& c) {
  Tensors all;
  for (std::size_t k = 0; k < instances; ++k)
    for (const Tensor& t : c.operands)
      all.push_back(
          vt::is_float(t.dtype()) ? (t * (1 + 1e-3 * c.step * static_cast<double>(k))).eval() : t);
  return all;
}

TEST(AutobatchDerivatives, OfOpsAreThoseThatTheyHaveAlone) {
  unsigned number = 0;
  for (const auto& [op, cases] : table())
    for (const Case& c : cases) {
      const unsigned turns = elementwise(op) ? 4 : cases.size() > 4 ? 3 : 1;
      if (!interpreted() && (++number + static_cast<unsigned>(op)) % turns != 0) continue;
      const Op applied = op;
      const Instances f{[&](std::span<const Tensor> x) {
                          const auto y = emit_all(applied, c.params, x, vt::CallSite::here());
                          return only_floats(Tensors(y.begin(), y.end()));
                        },
                        c.operands.size()};
      const Tensors all = moved_operands(c), x = only_floats(all);
      const auto of = [&](const Flat& g) { return of_floats(g, all); };
      const Flat plain = of([&](std::span<const Tensor> a) { return f.plain(a); });
      const Tensors w = directions(plain(x), 61), d = directions(x, 31);
      const Tensors gradient = pulled(plain, x, w), tangent = jvp_of(plain, x, d);
      const Tolerance near =
          interpreted() ? vt_test::exact : Tolerance{.relative = 1e-12, .absolute = 1e-13};
      for (const Batching strategy : strategies) {
        SCOPED_TRACE(std::string(name_of(op)) + " " + c.name + " strategy " +
                     std::to_string(static_cast<int>(strategy)));
        const Flat batched = of([&](std::span<const Tensor> a) { return f.batched(a, strategy); });
        vt_test::expect_close(pulled(batched, x, w), gradient, near);
        vt_test::expect_close(jvp_of(batched, x, d), tangent, near);
        if (HasFailure()) return;
      }
    }
}

std::string family_name(const ::testing::TestParamInfo<Family>& info) {
  constexpr const char* names[] = {"leaf",       "unary",    "binary",   "select", "reduce",
                                   "cumulative", "order",    "shape",    "index",  "rows",
                                   "window",     "contract", "spectral", "linalg", "collective",
                                   "structure",  "effect"};
  return names[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All, AutobatchOps,
                         ::testing::Values(Family::unary, Family::binary, Family::select,
                                           Family::reduce, Family::cumulative, Family::order,
                                           Family::shape, Family::index, Family::rows,
                                           Family::window, Family::contract, Family::spectral,
                                           Family::linalg, Family::structure, Family::effect),
                         family_name);

}  // namespace
