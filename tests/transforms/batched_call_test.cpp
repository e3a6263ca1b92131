// batched_call, rows and rows_add under every transform, against a loop over the lanes.
#include <gtest/gtest.h>

#include <vt/vt.hpp>

#include "support/primitive_cases.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::primitive_table::batched_call;
using Tensors = std::vector<Tensor>;

struct Case {
  vt::Vec<bool> mapped, summed;
  std::int64_t lanes;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {{true, false, false}, {false, false}, 5}, {{true, false, true}, {true, false}, 5},
      {{false, true, true}, {false, true}, 4},   {{true, true, false}, {true, true}, 3},
      {{true, false, false}, {true, false}, 1},
  };
  return all;
}

/// (x, w, s) → the results of the batched call, in one number each weighted by its place.
Tensor weighted(const Tensors& results) {
  Tensor sum = vt::zeros({}, vt::f64);
  for (const Tensor& r : results) {
    const Tensor flat = vt::reshape(r, {-1});
    sum = sum + vt::sum(flat * vt::sin(1.0 + vt::arange(flat.size()).astype(vt::f64)));
  }
  return sum;
}
Tensors batched(const Case& c, const Tensors& x) {
  std::vector<vt_test::OperandSpec> operands;
  const auto p = batched_call(vt::f64, c.mapped, c.summed, c.lanes, operands);
  const auto out = vt::detail::emit_all(vt::detail::Op::batched_call, vt::detail::make_params(p), x,
                                        vt::CallSite::here());
  return {out.begin(), out.end()};
}
Tensors looped(const Case& c, const Tensors& x) {
  Tensors first, second;
  for (std::int64_t lane = 0; lane < c.lanes; ++lane) {
    const auto own = [&](std::size_t i) { return c.mapped[i] ? x[i][lane] : x[i]; };
    first.push_back(vt::matmul(own(0), own(1)));
    second.push_back(vt::tanh(first.back()) * own(2));
  }
  const auto joined = [&](const Tensors& parts, bool sum) {
    return sum ? vt::sum(vt::stack(parts), 0) : vt::stack(parts);
  };
  return {joined(first, c.summed[0]), joined(second, c.summed[1])};
}
Tensors arguments(const Case& c) {
  std::vector<vt_test::OperandSpec> operands;
  batched_call(vt::f64, c.mapped, c.summed, c.lanes, operands);
  Tensors x;
  for (const auto& o : operands)
    x.push_back(vt::random::uniform(vt::random::key(x.size() + 3), o.shape, vt::f64) * 2.0 - 1.0);
  return x;
}
void expect_close(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  if (got.size() == 0) return;
  EXPECT_LT(vt::max(vt::abs(got - wanted)).item<double>(), 1e-12) << what;
}
void expect_close(const Tensors& got, const Tensors& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    expect_close(got[i], wanted[i], what + " " + std::to_string(i));
}

/// `transformed` of the batched call and of the loop agree, at once and compiled.
template <class Transformed>
void expect_alike(const char* what, Transformed&& transformed) {
  for (const Case& c : cases()) {
    const Tensors x = arguments(c);
    const auto of_call = transformed([&c](const Tensors& a) { return batched(c, a); });
    const auto of_loop = transformed([&c](const Tensors& a) { return looped(c, a); });
    expect_close(of_call(x), of_loop(x), what);
    expect_close(vt::jit(of_call)(x), of_loop(x), std::string("jit ") + what);
  }
}

TEST(BatchedCall, GivesWhatALoopGives) {
  expect_alike("value", [](auto f) { return [f](const Tensors& x) { return f(x); }; });
}
TEST(BatchedCall, HasTheGradientOfALoop) {
  expect_alike("gradient",
               [](auto f) { return vt::grad([f](const Tensors& x) { return weighted(f(x)); }); });
}
TEST(BatchedCall, HasTheTangentsOfALoop) {
  expect_alike("tangents", [](auto f) {
    return [f](const Tensors& x) {
      Tensors t;
      for (const Tensor& a : x) t.push_back(vt::cos(a));
      t[1] = vt::zeros_like(t[1]);
      return vt::jvp(f, x, t).second;
    };
  });
}
TEST(BatchedCall, HasTheSecondDerivativesOfALoop) {
  expect_alike("second derivative", [](auto f) {
    return vt::grad([f](const Tensors& x) {
      Tensor sum = vt::zeros({}, vt::f64);
      for (const Tensor& g : vt::grad([f](const Tensors& y) { return weighted(f(y)); })(x))
        sum = sum + vt::sum(vt::sin(g));
      return sum;
    });
  });
}
TEST(BatchedCall, IsMappedAsALoop) {
  expect_alike("vmap", [](auto f) {
    return [f](const Tensors& x) {
      Tensors y;
      for (const Tensor& a : x) y.push_back(vt::stack({a, 2.0 * a, vt::sin(a)}));
      y[1] = x[1];
      return vt::vmap([f, y](const Tensor& a, const Tensor& s) { return f({a, y[1], s}); })(y[0],
                                                                                            y[2]);
    };
  });
}
TEST(BatchedCall, HasMappedGradients) {
  expect_alike("vmap of grad", [](auto f) {
    return [f](const Tensors& x) {
      Tensors y;
      for (const Tensor& a : x) y.push_back(vt::stack({a, vt::sin(a)}));
      return vt::vmap(vt::grad([f](const Tensors& a) { return weighted(f(a)); }))(y);
    };
  });
}
TEST(BatchedCall, HasGradientsOfMappedOnes) {
  expect_alike("grad of vmap", [](auto f) {
    return vt::grad([f](const Tensors& x) {
      Tensors y;
      for (const Tensor& a : x) y.push_back(vt::stack({a, vt::sin(a)}));
      return weighted(vt::vmap(f)(y));
    });
  });
}
TEST(BatchedCall, OfNoLanesGivesZerosForSums) {
  const Case c{{true, false, false}, {false, true}, 0};
  const Tensors out =
      batched(c, {vt::zeros({0, 3}, vt::f64), vt::ones({3, 2}, vt::f64), vt::ones({}, vt::f64)});
  EXPECT_EQ(out[0].shape(), (vt::Shape{0, 2}));
  EXPECT_EQ(out[1].to_vector<double>(), (std::vector<double>{0, 0}));
}
TEST(BatchedCall, RefusesOperandsThatDoNotFit) {
  const Case c{{true, false, false}, {false, false}, 5};
  Tensors x = arguments(c);
  x[0] = vt::zeros({4, 3}, vt::f64);
  try {
    batched(c, x);
    FAIL();
  } catch (const vt::Error& e) {
    EXPECT_NE(std::string(e.what()).find("operand 0 must hold 5 lanes"), std::string::npos)
        << e.what();
  }
}
TEST(BatchedCall, IsPrintedWithItsLanes) {
  const Case c{{true, false, true}, {true, false}, 5};
  const std::string text =
      vt::make_graph([&c](const Tensors& x) { return batched(c, x); })(arguments(c)).str();
  EXPECT_NE(text.find("batched_call[name=cell, lanes=5, mapped=101, summed=0]"), std::string::npos)
      << text;
}

}  // namespace
