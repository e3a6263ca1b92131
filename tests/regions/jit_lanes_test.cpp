// Equations that do the same along an axis, compiled for one element of it with the others beside
// it: against the interpreter, for lanes at any axis, and which are compiled so.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "src/jit/regions/fused_regions.hpp"
#include "src/trace/record/scope.hpp"
#include "src/trace/simplify/simplify.hpp"
#include "support/compare_executors.hpp"

namespace {

using vt::Shape;
using vt::Tensor;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;
using Flat = vt::detail::FlatFunction;

// The interpreter sums and iterations in another order.
const vt_test::Tolerance close{.relative = 1e-12, .absolute = 1e-13},
    close_f32{.relative = 1e-5, .absolute = 1e-5};

bool has_compiler() {
  const auto f = vt::jit([](Tensor x) { return x + 1.0; });
  f(vt::tensor(1.0));
  return vt::explain_steps(f)(vt::tensor(1.0)).rfind("interpreter", 0) != 0;
}
// Lanes in groups are not brought together beyond what the program says.
bool brings_together() {
  const char* lanes = std::getenv("VT_LANES");
  return has_compiler() && !(lanes && std::string(lanes) == "groups");
}
std::string how(const Flat& f, const Tensors& arguments) {
  const auto run = [&](const Tensors& a) { return f(In(a)); };
  const auto compiled = vt::jit(run);
  compiled(arguments);
  return vt::explain_steps(compiled)(arguments);
}
void expect_side_by_side(const Flat& f, const Tensors& arguments,
                         const vt_test::Tolerance& tolerance, const std::string& what,
                         bool expected = true) {
  SCOPED_TRACE(what);
  vt_test::expect_same(f, arguments, tolerance, what);
  if (!brings_together()) return;
  const std::string text = how(f, arguments);
  const bool together =
      // on a device
      text.find("lanes side by side") != std::string::npos ||
      text.find("a thread for each of") != std::string::npos;
  EXPECT_EQ(together, expected) << text;
}

/// The iterations of a scan whose states have lanes at `axis` of the other two axes, [2,3], with
/// the ops that leave lanes apart; a [3,3] is the same for all, as is the number of the iteration.
Flat moving(int axis, bool reverse) {
  return [=](In a) -> Tensors {
    const auto step = [&](std::pair<Tensor, Tensor> carry, Tensor x) {
      const auto& [state, iteration] = carry;
      const Tensor s = vt::moveaxis(state, axis, 0), e = vt::moveaxis(x, axis, 0);
      const std::int64_t lanes = s.dim(0);
      // [l,3,4]
      const Tensor both =
          vt::concatenate({vt::flip(vt::swapaxes(s, 1, 2), 1), vt::swapaxes(e, 1, 2)}, 2);
      const Tensor cut =
          vt::pad(vt::slice(both, {0, 0, 1}, {lanes, 3, 4}), {{0, 0}, {1, 0}, {0, 0}});
      const Tensor total = vt::sum(cut, {1, 2}), most = vt::max(cut, {1, 2}),
                   own = vt::einsum("lij,lij->l", s, e);
      const Tensor scale = vt::reshape(vt::tanh(total + own) + 0.1 * most, {lanes, 1, 1});
      const Tensor next =
          0.5 * s + scale * e + 0.1 * vt::matmul(s, a[2]) + 0.25 * vt::where(e > 0.0, s, e);
      return std::pair(std::pair(vt::moveaxis(next, 0, axis), iteration + 1.0),
                       std::pair(vt::moveaxis(next * scale, 0, axis), total * iteration));
    };
    auto [last, ys] =
        vt::scan(step, std::pair(a[0], vt::zeros({}, a[0].dtype())), a[1], {.reverse = reverse});
    return {last.first, last.second, ys.first, ys.second};
  };
}

TEST(LanesOfScans, AtAnyAxisEqualTheInterpreter) {
  for (int axis : {0, 1, 2})
    for (int lanes : {4, 7, 16, 130})
      for (const vt::DType dtype : {vt::f64, vt::f32})
        for (bool reverse : {false, true}) {
          Shape state{2, 3};
          state.insert(state.begin() + axis, lanes);
          Shape all = state;
          all.insert(all.begin(), 5);
          expect_side_by_side(moving(axis, reverse),
                              {vt_test::random_tensor(dtype, state, -1, 1, 1),
                               vt_test::random_tensor(dtype, all, -1, 1, 2),
                               vt_test::random_tensor(dtype, {3, 3}, -0.3, 0.3, 3)},
                              dtype == vt::f64 ? close : close_f32,
                              std::to_string(lanes) + " lanes at " + std::to_string(axis));
        }
}

// Derivatives of such scans are such scans; on several threads each has lanes of its own.
TEST(LanesOfScans, GradientsAndThreads) {
  const Tensors arguments = {vt_test::random_tensor(vt::f64, {2, 300, 3}, -1, 1, 1),
                             vt_test::random_tensor(vt::f64, {3, 2, 300, 3}, -1, 1, 2),
                             vt_test::random_tensor(vt::f64, {3, 3}, -0.3, 0.3, 3)};
  const auto f = [](Tensor start, Tensor xs, Tensor shared) {
    const Tensor all[] = {start, xs, shared};
    Tensor total = vt::tensor(0.0);
    for (const Tensor& t : moving(1, false)(all)) total = total + vt::sum(vt::sin(t));
    return total;
  };
  const Flat gradient = [&](In a) -> Tensors {
    const auto [by_start, by_xs] = vt::grad<0, 1>(f)(a[0], a[1], a[2]);
    return {by_start, by_xs};
  };
  const int threads = vt::num_threads();
  for (int n : {1, 3}) {
    vt::set_num_threads(n);
    expect_side_by_side(gradient, arguments, close, std::to_string(n) + " threads");
  }
  vt::set_num_threads(threads);
}

TEST(LanesOfScans, OfIntegersAndWithoutSequences) {
  expect_side_by_side(
      [](In a) -> Tensors {
        return {vt::fori_loop(
            0, 9, [&](Tensor i, Tensor v) { return (v * 5 + i) ^ (v >> 3) ^ a[1]; }, a[0])};
      },
      {vt::arange(11), vt::tensor(77)}, vt_test::exact, "integers");
  // A vmap of a loop with as many iterations for all.
  expect_side_by_side(
      [](In a) -> Tensors {
        return {vt::vmap([&](Tensor x, Tensor y) {
          return vt::fori_loop(
              0, 20, [&](Tensor, Tensor v) { return v + 0.1 * vt::matmul(a[1], v) * vt::sin(y); },
              x);
        })(a[0], a[2])};
      },
      {vt_test::random_tensor(vt::f64, {33, 3}, 1), vt_test::random_tensor(vt::f64, {3, 3}, 2),
       vt_test::random_tensor(vt::f64, {33, 3}, 3)},
      close, "vmap");
}

// What an iteration takes and gives are rows of a few elements for each lane: transposed in
// registers, of any length and size of element, also behind the last whole vector.
TEST(LanesOfScans, RowsOfAIteration) {
  const auto f = [](In a) -> Tensors {
    const auto one = [](Tensor start, Tensor twos, Tensor threes, Tensor fives) {
      const auto step = [](Tensor s, std::tuple<Tensor, Tensor, Tensor> in) {
        const auto& [two, three, five] = in;
        const Tensor next = 0.5 * s + three * two[0] - vt::sum(five.astype(s.dtype())) * two[1];
        const Tensor seven = vt::concatenate({next, three, two[vt::slice(0, 1)]});
        return std::pair(next, std::tuple(seven, next > 0.0, five * 3 + 1, vt::flip(two), next[1]));
      };
      return vt::scan(step, start, std::tuple(twos, threes, fives), {.reverse = true});
    };
    const auto [last, ys] = vt::vmap(one)(a[0], a[1], a[2], a[3]);
    const auto& [r0, r1, r2, r3, r4] = ys;
    return {last, r0, r1, r2, r3, r4};
  };
  for (const vt::DType dtype : {vt::f64, vt::f32})
    for (int lanes : {5, 16, 37})
      expect_side_by_side(f,
                          {vt_test::random_tensor(dtype, {lanes, 3}, -1, 1, 1),
                           vt_test::random_tensor(dtype, {lanes, 6, 2}, -1, 1, 2),
                           vt_test::random_tensor(dtype, {lanes, 6, 3}, -1, 1, 3),
                           vt_test::random_tensor(vt::i64, {lanes, 6, 5}, -9, 9, 4)},
                          dtype == vt::f64 ? close : close_f32, std::to_string(lanes) + " lanes");
}

// Where lanes meet it is another loop.
TEST(LanesOfScans, ThatMeetStayTogether) {
  const Tensor x = vt_test::random_tensor(vt::f64, {40}, -1, 1, 1),
               xs = vt_test::random_tensor(vt::f64, {3, 40}, -1, 1, 2);
  const auto scan = [](const char* what, Tensor (*f)(Tensor, Tensor)) {
    return std::pair(what, Flat([f](In a) -> Tensors {
                       auto [last, ys] = vt::scan(
                           [&](Tensor s, Tensor x) { return std::pair(f(s, x), s); }, a[0], a[1]);
                       return {last, ys};
                     }));
  };
  for (const auto& [what, f] :
       {scan("sum", [](Tensor s, Tensor x) { return s * x + vt::sum(s); }),
        scan("turned", [](Tensor s, Tensor x) { return vt::flip(s) * x; }),
        scan("shifted",
             [](Tensor s, Tensor x) {
               return vt::concatenate({s[vt::slice(1, 40)], x[vt::slice(0, 1)]});
             }),
        scan("both", [](Tensor s, Tensor x) { return vt::sum(vt::outer(s, x), 0); }),
        scan("of all", [](Tensor s, Tensor x) { return vt::cumsum(s) * 0.1 + x; })})
    expect_side_by_side(f, {x, xs}, close, what, false);
}

/// For one lane: a row of a table by number, products, a branch, results of many sizes and dtypes.
Flat region_of(std::int64_t table_rows) {
  return [=](In a) -> Tensors {
    const auto one = [table = a[0], table_rows](Tensor number, Tensor v, Tensor m) {
      const Tensor row = vt::take(table, number % static_cast<int>(table_rows), 0),
                   transposed = vt::matmul(m, v);
      const Tensor length = vt::dot(row, row);
      const Tensor chosen = vt::cond(
          length > 1.5, [&] { return transposed / vt::sqrt(length); },
          [&] { return vt::flip(row) - transposed; });
      const Tensor outer = vt::outer(chosen, vt::concatenate({v, row, transposed}));
      return std::tuple(length, chosen[vt::slice(0, 2)], chosen,
                        vt::reshape(outer, {27})[vt::slice(0, 4)], outer[vt::slice(0, 1)], outer,
                        vt::any(chosen > 0.0), chosen > row, (chosen * 100.0).astype(vt::i32));
    };
    const auto [r0, r1, r2, r3, r4, r5, r6, r7, r8] = vt::vmap(one)(a[1], a[2], a[3]);
    return {r0, r1, r2, r3, r4, r5, r6, r7, r8};
  };
}

TEST(LanesOfRegions, EqualTheInterpreter) {
  for (std::int64_t lanes : {8, 17, 131})
    for (const vt::DType dtype : {vt::f64, vt::f32})
      for (std::int64_t rows : {5, 40})
        expect_side_by_side(region_of(rows),
                            {vt_test::random_tensor(dtype, {rows, 3}, -1, 1, 1),
                             vt_test::random_tensor(vt::i32, {lanes}, 0, 100, 2),
                             vt_test::random_tensor(dtype, {lanes, 3}, -1, 1, 3),
                             vt_test::random_tensor(dtype, {lanes, 3, 3}, -1, 1, 4)},
                            dtype == vt::f64 ? close : close_f32, std::to_string(lanes) + " lanes");
}

TEST(LanesOfRegions, JacobiansLoopsAndThreads) {
  const auto f = [](Tensor x, Tensor m) {
    const Tensor far =
        vt::while_loop([](Tensor y) { return vt::dot(y, y) < 9.0; },
                       [&](Tensor y) { return y * 1.5 + 0.1 * vt::matmul(m, y) + 0.2; }, x);
    return vt::cond(
        far[0] > 0.0, [&] { return vt::matmul(m, far) * x[0]; }, [&] { return vt::sin(far) + x; });
  };
  const Flat jacobians = [&](In a) -> Tensors {
    const auto [by_x, by_m] = vt::vmap(vt::jacfwd<0, 1>(f))(a[0], a[1]);
    return {by_x, by_m, vt::vmap(f)(a[0], a[1])};
  };
  const Tensors arguments = {vt_test::random_tensor(vt::f64, {333, 3}, 0.1, 1, 1),
                             vt_test::random_tensor(vt::f64, {333, 3, 3}, 0, 1, 2)};
  const int threads = vt::num_threads();
  for (int n : {1, 3}) {
    vt::set_num_threads(n);
    vt_test::expect_same(jacobians, arguments, close, std::to_string(n) + " threads");
  }
  vt::set_num_threads(threads);
}

/// A chain of planar or spatial joints, each a matrix of its angle, written for one arm.
Tensor tip_of_arm(const Tensor& angles, std::int64_t n) {
  const auto joint = [&](const Tensor& q, double reach) {
    const Tensor c = vt::cos(q), s = vt::sin(q), zero = vt::zeros_like(q), one = vt::ones_like(q);
    if (n == 3)
      return vt::reshape(vt::stack({c, -s, zero + reach, s, c, zero, zero, zero, one}), {3, 3});
    return vt::reshape(vt::stack({c, -s * 0.6, s * 0.8, c * reach, s, c * 0.6, -c * 0.8, s * reach,
                                  zero, one * 0.8, one * 0.6, one * 0.1, zero, zero, zero, one}),
                       {4, 4});
  };
  Tensor m = joint(angles[0], 0.3);
  for (std::int64_t i = 1; i < angles.dim(0); ++i)
    m = vt::matmul(m, joint(angles[i], 0.2 + 0.1 * static_cast<double>(i)));
  return vt::reshape(vt::slice(m, {0, n - 1}, {n - 1, n}), {n - 1});
}

// Derivatives of small matrices have further axes, up to 96 elements for a lane, and lanes that are
// not in front between two products.
TEST(LanesOfRegions, DerivativesOfChainsOfMatrices) {
  for (const vt::DType dtype : {vt::f64, vt::f32})
    for (const auto& [n, joints] : {std::pair<std::int64_t, std::int64_t>{3, 4}, {4, 6}}) {
      const auto tip = [n = n](Tensor q) { return tip_of_arm(q, n); };
      const auto squared = [=](Tensor q) { return vt::sum(vt::square(tip(q))); };
      const Tensors arms = {vt_test::random_tensor(dtype, {261, joints}, -2, 2, 1)};
      const vt_test::Tolerance& tolerance = dtype == vt::f64 ? close : close_f32;
      const std::string what = std::to_string(joints) + " joints";
      expect_side_by_side([=](In a) -> Tensors { return {vt::vmap(tip)(a[0])}; }, arms, tolerance,
                          what);
      expect_side_by_side([=](In a) -> Tensors { return {vt::vmap(vt::jacrev(tip))(a[0])}; }, arms,
                          tolerance, "jacrev, " + what);
      expect_side_by_side([=](In a) -> Tensors { return {vt::vmap(vt::jacfwd(tip))(a[0])}; }, arms,
                          tolerance, "jacfwd, " + what);
      if (n == 3)
        expect_side_by_side([=](In a) -> Tensors { return {vt::vmap(vt::hessian(squared))(a[0])}; },
                            arms, tolerance, "hessian, " + what);
      expect_side_by_side(
          [=](In a) -> Tensors {
            return {
                vt::vmap(vt::jacrev(tip), {.in_axes = 1, .out_axes = 1})(vt::swapaxes(a[0], 0, 1))};
          },
          arms, tolerance, "along axis 1, " + what);
    }
}

// Where a region would have elements of a table picked out of larger values, it is formed without
// these.
TEST(LanesOfRegions, LargerValuesBesideATable) {
  const Flat f = [](In a) -> Tensors {
    const auto one = [table = a[0]](Tensor number, Tensor m) {
      const Tensor row = vt::take(table, number, 0);
      const Tensor v = vt::matmul(vt::transpose(m), vt::matmul(m, row)),
                   large = vt::outer(vt::concatenate({v, row}), vt::concatenate({row, v, row}));
      return std::pair(v, vt::matmul(large, vt::concatenate({v, v, row})));
    };
    const auto [v, w] = vt::vmap(one)(a[1], a[2]);
    const Tensor behind = vt::einsum("ij,ljk->ilk", a[3], a[2]);  // lanes along axis 1
    return {v, w, behind, vt::einsum("ilk,lk->il", behind, v)};
  };
  vt_test::expect_same(f,
                       {vt_test::random_tensor(vt::f64, {40, 3}, -1, 1, 1),
                        vt_test::random_tensor(vt::i32, {50}, 0, 39, 2),
                        vt_test::random_tensor(vt::f64, {50, 3, 3}, -1, 1, 3),
                        vt_test::random_tensor(vt::f64, {3, 3}, -1, 1, 4)},
                       close, "table");
}

// What lies in memory in another shape: arrays of each lane and one of all, read by rows in loops,
// and one that is overwritten after it was looked at.
TEST(LanesOfLoops, LargerOperandsInAnotherShape) {
  const Flat f = [](In a) -> Tensors {
    const auto lane = [table = a[0]](Tensor own, Tensor n) {
      const auto body = [&](Tensor i, Tensor sum, Tensor carried) {
        const Tensor square = vt::reshape(own, {15, 15}), shared = vt::reshape(table, {9, 25}),
                     before = vt::reshape(carried, {15, 15});
        const auto row = [](const Tensor& t, Tensor at) {
          return vt::reshape(vt::dynamic_slice_in_dim(t, at, 1), {t.dim(1)});
        };
        const Tensor next = vt::index_update(carried, 7 * i, sum * 0.5);
        const Tensor seen = vt::sum(row(square, i)) + vt::sum(row(shared, i % 9)) +
                            vt::sum(row(before, (7 * i) / 15) * row(square, i));
        return std::tuple(i + 1, 0.3 * sum + vt::sin(seen) + next[3], next);
      };
      const auto [i, sum, carried] =
          vt::while_loop([&](Tensor i, Tensor, Tensor) { return i < n; }, body,
                         std::tuple(vt::tensor(0), vt::tensor(0.1), own * 0.5));
      return std::pair(sum, carried);
    };
    const auto [sum, carried] = vt::vmap(lane)(a[1], a[2]);
    return {sum, carried};
  };
  vt_test::expect_same(f,
                       {vt_test::random_tensor(vt::f64, {225}, -1, 1, 1),
                        vt_test::random_tensor(vt::f64, {20, 225}, -1, 1, 2),
                        vt_test::random_tensor(vt::i32, {20}, 0, 14, 3)},
                       close, "other shapes");
}

// Products of larger matrices as they lie in memory are left to the kernels of products.
TEST(LanesOfRegions, LargerMatricesAsTheyLie) {
  if (vt_test::forced_backend() == "interpreter") GTEST_SKIP() << "has no regions";
  const auto chain = [](In a) -> Tensors { return {vt::matmul(vt::matmul(a[0], a[1]), a[2])}; };
  const auto sandwich = [](In a) -> Tensors {
    return {vt::matmul(vt::matmul(a[0], a[1]), vt::matrix_transpose(a[0])) + a[2]};
  };
  Tensors matrices;
  for (int i = 0; i < 3; ++i)
    matrices.push_back(
        vt_test::random_tensor(vt::f64, {30, 7, 7}, -1, 1, static_cast<std::uint64_t>(i)));
  expect_side_by_side(chain, matrices, close, "chain", false);
  expect_side_by_side(sandwich, matrices, close, "sandwich");
}

// The two products of a dense layer's derivatives do not meet: no loop in registers is made of
// them.
TEST(LanesOfRegions, ProductsThatMeetOnly) {
  if (vt_test::forced_backend() == "interpreter") GTEST_SKIP();
  const auto derivatives = vt::jit([](Tensor h, Tensor w, Tensor ct) {
    return vt::vjp([](Tensor x, Tensor y) { return vt::matmul(vt::relu(x), y); }, h, w).second(ct);
  });
  const auto chained = vt::jit([](Tensor x, Tensor m) {
    return vt::vmap([](Tensor v, Tensor n) { return vt::matmul(n, vt::matmul(n, v)); })(x, m);
  });
  const Tensor h = vt_test::random_tensor(vt::f32, {64}, -1, 1, 1),
               w = vt_test::random_tensor(vt::f32, {64, 3}, -1, 1, 2),
               wide = vt_test::random_tensor(vt::f32, {64, 20}, -1, 1, 2),
               ct = vt_test::random_tensor(vt::f32, {20}, -1, 1, 3),
               m = vt_test::random_tensor(vt::f32, {64, 3, 3}, -1, 1, 4);
  for (int run = 0; run < 2; ++run) {
    std::get<0>(derivatives(h, wide, ct)).eval();
    chained(w, m).eval();
  }
  EXPECT_EQ(derivatives.explain_steps(h, wide, ct).find("in registers"), std::string::npos)
      << derivatives.explain_steps(h, wide, ct);
  EXPECT_NE(chained.explain_steps(w, m).find("in registers"), std::string::npos)
      << chained.explain_steps(w, m);
}

// A lane's vector and matrix come, twelve elements, and three go.
TEST(LanesOfRegions, OfLimitedTraffic) {
  using namespace vt::detail;
  const Flat twice = [](In a) -> Tensors {
    return {
        vt::vmap([](Tensor v, Tensor n) { return vt::matmul(n, vt::matmul(n, v)); })(a[0], a[1])};
  };
  const std::vector<Aval> types{Aval(vt::f32, {64, 3}), Aval(vt::f32, {64, 3, 3})};
  const GraphBody graph = simplify(record(twice, types, {}).graph, SimplifyFor::running);
  for (const std::int64_t most : {14, 15}) {
    RegisterLimits limits;
    limits.of_rows = most;
    const GraphBody formed = form_fused_regions(graph, limits);
    const bool one_region =
        formed.equations.size() == 1 && formed.equations[0].op == Op::fused_region;
    EXPECT_EQ(one_region, most == 15) << to_text(formed);
  }
}

// A state of parts that are computed in different ways: a rigid body's step, its Jacobian, whose
// 13 × 13 elements only come to other places, and directions, for which the loop over parts knows
// no sum. Long parts are rows of their own.
TEST(LanesOfRegions, PartsComputedInDifferentWays) {
  const auto transposed = [](Tensor p, Tensor q) {
    return vt::stack({p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3],
                      p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2],
                      p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1],
                      p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0]});
  };
  const auto direction = [](Tensor a, Tensor b) {
    const Tensor c = vt::cross(a, b);
    return c / vt::norm(c);
  };
  const auto body = [&](Tensor x) {
    const Tensor velocity = x[vt::slice(3, 6)], rotation = x[vt::slice(6, 10)],
                 rate = x[vt::slice(10, 13)];
    const Tensor inertia = vt::tensor({0.2, 0.3, 0.4}),
                 next =
                     rotation +
                     0.01 * transposed(rotation, vt::concatenate({vt::zeros({1}, vt::f64), rate}));
    return vt::concatenate({x[vt::slice(0, 3)] + 0.1 * velocity, velocity * 0.9,
                            next / vt::norm(next),
                            rate - 0.1 * vt::cross(rate, inertia * rate) / inertia});
  };
  const auto of = [](int lanes, int width, std::uint64_t seed) {
    return vt_test::random_tensor(vt::f64, {lanes, width}, 0.2, 1, seed);
  };
  for (int lanes : {9, 33, 300}) {
    const std::string what = std::to_string(lanes) + " lanes";
    const Tensors vectors = {of(lanes, 3, 1), of(lanes, 3, 2)}, states = {of(lanes, 13, 3)};
    expect_side_by_side([&](In a) -> Tensors { return {vt::vmap(direction)(a[0], a[1])}; }, vectors,
                        close, "directions of " + what);
    expect_side_by_side(
        [&](In a) -> Tensors {
          return {vt::vmap(direction, {.in_axes = {1, 0}, .out_axes = 1})(
              vt::matrix_transpose(a[0]), a[1])};
        },
        vectors, close, "directions along axis 1 of " + what);
    expect_side_by_side([&](In a) -> Tensors { return {vt::vmap(body)(a[0])}; }, states, close,
                        "states of " + what);
    if (lanes == 33)
      expect_side_by_side([&](In a) -> Tensors { return {vt::vmap(vt::jacfwd(body))(a[0])}; },
                          states, close, "derivatives");
  }
  const auto rows = [](Tensor a, Tensor b) {
    return vt::concatenate({a + b, vt::tanh(a * b), a - b});
  };
  expect_side_by_side([&](In a) -> Tensors { return {vt::vmap(rows)(a[0], a[1])}; },
                      {of(64, 12, 1), of(64, 12, 2)}, close, "rows", false);
  // Numbers that no argument is part of are numbers in the code.
  if (!brings_together()) return;
  const std::string text =
      how([&](In a) -> Tensors { return {vt::vmap(vt::jacfwd(direction))(a[0], a[1])}; },
          {of(64, 3, 1), of(64, 3, 2)});
  EXPECT_EQ(text.find("step 1:"), std::string::npos) << text;  // beside the only step
}

// Results of more than 32 MiB go past the caches, the lanes beyond whole blocks do not.
TEST(LanesOfRegions, ResultsThatFillCaches) {
  const Flat f = [](In a) -> Tensors {
    const auto one = [](Tensor v, Tensor w) {
      const Tensor scale =
          vt::cond(vt::dot(v, v) > 1.0, [&] { return vt::exp(v[0]); }, [&] { return v[1]; });
      return std::tuple(vt::outer(v * scale, w), scale * w[vt::slice(0, 2)], scale);
    };
    const auto [outer, two, scale] = vt::vmap(one)(a[0], a[1]);
    return {outer, two, scale};
  };
  expect_side_by_side(f,
                      {vt_test::random_tensor(vt::f64, {200'011, 3}, -1, 1, 1),
                       vt_test::random_tensor(vt::f64, {200'011, 7}, -1, 1, 2)},
                      close, "large");
}

// Lanes that are put together inside, or looked at as a whole between two products, are no lanes
// there.
TEST(LanesOfRegions, WhatIsBetweenStaysOutside) {
  const Tensor x = vt_test::random_tensor(vt::f64, {20, 3}, -1, 1, 1),
               m = vt_test::random_tensor(vt::f64, {20, 3, 3}, -1, 1, 2),
               y = vt_test::random_tensor(vt::f64, {19, 3}, -1, 1, 3);
  const auto products = [](Tensor x, Tensor m) {
    return vt::vmap([](Tensor x, Tensor m) { return vt::matmul(m, vt::matmul(m, x)); })(x, m);
  };
  const auto check = [&](const char* what, Flat f) {
    vt_test::expect_same(f, {x, m, y}, close, what);
  };
  check("joined", [&](In a) -> Tensors {
    return {products(vt::concatenate({a[2], vt::ones({1, 3}, vt::f64)}), a[1])};
  });
  check("cut", [&](In a) -> Tensors {
    return {products(vt::concatenate({a[0], a[0]})[vt::slice(7, 27)], a[1])};
  });
  check("padded",
        [&](In a) -> Tensors { return {products(vt::pad(a[2], {{1, 0}, {0, 0}}), a[1])}; });
  check("the mean of all between", [&](In a) -> Tensors {
    const Tensor once = products(a[0], a[1]);
    return {products(once - vt::mean(once, 0, true), a[1]), once};
  });
  check("neighbours between", [&](In a) -> Tensors {
    const Tensor once = products(a[0], a[1]);
    return {products(vt::flip(once, 0) + once, a[1])};
  });
  check("all with all", [&](In a) -> Tensors {
    const Tensor once = products(a[0], a[1]);
    return {vt::matmul(once, vt::swapaxes(once, 0, 1)), products(once, a[1])};
  });
}

}  // namespace
