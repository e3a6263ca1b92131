// Random programs with nested transforms: backend = interpreter, vmap = loop,
// derivatives = differences and inner products, vmap of grad = loop of grads. VT_FUZZ_COUNT
// programs from VT_FUZZ_SEED; a failure names the seed that repeats it alone.
#include <gtest/gtest.h>

#include <cstdlib>

#include "src/trace/ir/executable.hpp"
#include "src/trace/record/node.hpp"
#include "support/property.hpp"
#include "support/random_program.hpp"

namespace {

using vt::Tensor;
using vt_test::random_tensor;
using vt_test::RandomProgram;

const std::uint64_t first_seed = vt_test::environment("VT_FUZZ_SEED", 1);
const std::uint64_t programs = vt_test::environment("VT_FUZZ_COUNT", 700);

/// Everything here is f64; formulations differ by rounding, which a few dozen moderate ops amplify
/// a little.
constexpr vt_test::Tolerance rounding{.relative = 1e-9, .absolute = 1e-10};

struct Case {
  explicit Case(std::uint64_t s) : seed(s), program(s, 4 + static_cast<int>(s % 9)) {
    const std::int64_t a = 1 + static_cast<std::int64_t>(s % 3),
                       b = 1 + static_cast<std::int64_t>(s / 3 % 4);
    x_shape = s % 5 == 0 ? vt::Shape{a} : s % 7 == 0 ? vt::Shape{2, a, b} : vt::Shape{a, b};
    y_shape = s % 4 == 0 ? vt::Shape{} : vt::Shape{b};
  }
  Tensor x(int k = 0) const {
    return random_tensor(vt::f64, x_shape, -1.2, 1.2, seed * 4 + static_cast<std::uint64_t>(k));
  }
  Tensor y(int k = 0) const {
    return random_tensor(vt::f64, y_shape, -1.2, 1.2, seed * 4 + 2 + static_cast<std::uint64_t>(k));
  }
  Tensor batch(const Tensor& first, const Tensor& second) const {
    return vt::stack({first, second, first * 0.5});
  }

  std::uint64_t seed;
  RandomProgram program;
  vt::Shape x_shape, y_shape;
};

double inner_product(const Tensor& a, const Tensor& b) { return vt::sum(a * b).item<double>(); }

void backend_equals_interpreter(const Case& c) {
  const vt::Graph graph = vt::make_graph(c.program)(c.x(), c.y());
  vt::Vec<vt::detail::BufferRef> inputs{vt::detail::value_of(c.x(), {}),
                                        vt::detail::value_of(c.y(), {})};
  for (const Tensor& t : graph.captured()) inputs.push_back(vt::detail::value_of(t, {}));
  const auto expected = vt::detail::interpret(graph.body(), inputs);
  const auto simplified = vt::detail::interpret(vt::detail::simplify(graph.body()), inputs);
  const auto compiled = vt::detail::compile_graph(graph.body())->run(inputs);
  const auto& aval = graph.body().aval(graph.body().outputs[0]);
  const auto wrap = [&](const vt::detail::BufferRef& b) {
    return vt::detail::from_buffer(b, aval);
  };
  EXPECT_TRUE(vt_test::all_close(wrap(simplified[0]), wrap(expected[0]), rounding))
      << "simplifier\n"
      << graph;
  EXPECT_TRUE(vt_test::all_close(wrap(compiled[0]), wrap(expected[0]), rounding)) << "backend\n"
                                                                                  << graph;
  EXPECT_TRUE(vt_test::all_close(vt::jit(c.program)(c.x(), c.y()), wrap(expected[0]), rounding))
      << "jit\n"
      << graph;
  EXPECT_TRUE(vt_test::all_close(c.program(c.x(), c.y()), wrap(expected[0]), rounding)) << "lazy\n"
                                                                                        << graph;
}

void vmap_equals_loop(const Case& c) {
  const std::vector<Tensor> xs{c.x(0), c.x(1), c.x(0) * 0.5}, ys{c.y(0), c.y(1), c.y(0) * 0.5};
  std::vector<Tensor> both, left, right;
  for (int i = 0; i < 3; ++i) {
    both.push_back(c.program(xs[i], ys[i]));
    left.push_back(c.program(xs[i], ys[0]));
    right.push_back(c.program(xs[0], ys[i]));
  }
  const Tensor x = vt::stack(xs), y = vt::stack(ys, -1);
  EXPECT_TRUE(vt_test::all_close(vt::vmap(c.program, {.in_axes = {0, -1}})(x, y), vt::stack(both),
                                 rounding))
      << "both mapped";
  EXPECT_TRUE(vt_test::all_close(vt::vmap(c.program, {.in_axes = {0, vt::unmapped}})(x, ys[0]),
                                 vt::stack(left), rounding))
      << "left mapped";
  EXPECT_TRUE(
      vt_test::all_close(vt::jit(vt::vmap(c.program, {.in_axes = {vt::unmapped, -1}}))(xs[0], y),
                         vt::stack(right), rounding))
      << "right mapped, jit";
}

void gradients_agree(const Case& c) {
  const Tensor x = c.x(), y = c.y();
  const auto scalar = [&](const Tensor& a, const Tensor& b) { return c.program.scalar(a, b); };
  const auto [gx, gy] = vt::grad<0, 1>(scalar)(x, y);
  const Tensor value = c.program(x, y);
  const bool smooth = c.program.features().smooth;
  const Tensor dx = random_tensor(vt::f64, c.x_shape, -1, 1, c.seed + 11),
               dy = random_tensor(vt::f64, c.y_shape, -1, 1, c.seed + 12);
  const Tensor ybar = random_tensor(vt::f64, value.shape(), -1, 1, c.seed + 13);
  const auto tangent = vt::jvp(c.program, std::tuple(x, y), std::tuple(dx, dy)).second;
  const auto [xbar, ybar_in] = vt::vjp(c.program, x, y).second(ybar);
  const double forward = inner_product(ybar, tangent),
               reverse = inner_product(xbar, dx) + inner_product(ybar_in, dy);
  EXPECT_NEAR(forward, reverse, 1e-9 * (1 + std::fabs(forward))) << "inner products";
  if (smooth) {
    const double h = 1e-5;
    const double difference = (scalar(x + dx * h, y + dy * h).item<double>() -
                               scalar(x - dx * h, y - dy * h).item<double>()) /
                              (2 * h);
    const double exact = inner_product(gx, dx) + inner_product(gy, dy);
    EXPECT_NEAR(exact, difference, 2e-6 * (1 + std::fabs(exact))) << "central difference";
  }
  const std::vector<Tensor> xs{c.x(0), c.x(1)};
  const std::vector<Tensor> loop{vt::grad(scalar)(xs[0], y), vt::grad(scalar)(xs[1], y)};
  const auto batched = vt::vmap(vt::grad(scalar), {.in_axes = {0, vt::unmapped}});
  EXPECT_TRUE(vt_test::all_close(vt::jit(batched)(vt::stack(xs), y), vt::stack(loop), rounding))
      << "vmap of grad";
}

TEST(Fuzz, random_programs) {
  std::uint64_t nested = 0, smooth = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + programs; ++seed) {
    const Case c(seed);
    try {
      if (seed % 3 == 0) backend_equals_interpreter(c);
      else if (seed % 3 == 1) vmap_equals_loop(c);
      else gradients_agree(c);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    nested += c.program.features().nested > 0;
    smooth += c.program.features().smooth;
    if (::testing::Test::HasFailure()) {
      FAIL() << "repeat with VT_FUZZ_SEED=" << seed << " VT_FUZZ_COUNT=1";
    }
  }
  if (programs >= 200) {
    EXPECT_GT(nested, programs / 10) << "too few programs nest transforms";
    EXPECT_GT(smooth, programs / 10) << "too few programs can be checked by differences";
  }
}

}  // namespace
