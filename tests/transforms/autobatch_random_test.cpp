// autobatch on random programs over trees: recursion, loops, cells inside of cells, looks at
// values; each strategy and each transform against the same function without autobatch.
// VT_FUZZ_COUNT programs from VT_FUZZ_SEED; a failure names the seed that repeats it alone.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "support/property.hpp"

namespace {

using vt::Batching;
using vt::Tensor;
using Tensors = std::vector<Tensor>;

const std::uint64_t first_seed = vt_test::environment("VT_FUZZ_SEED", 1);
const std::uint64_t programs = vt_test::environment("VT_FUZZ_COUNT", 400);
constexpr Batching strategies[] = {Batching::none, Batching::by_depth, Batching::agenda};
constexpr std::int64_t width = 3, rows = 6;
constexpr double away = 0.1234;  // from sums that are 0 but for rounding

struct Shared {
  Tensor w, b, rows;
};
struct State {
  Tensor h, c;
};

// --- cells, few and small, as each is compiled ---------------------------------------------------

const auto& dense() {
  static const auto f = vt::function("random_dense", [](const Tensor& x, const Shared& p) {
    return vt::tanh(vt::matmul(x, p.w) + p.b);
  });
  return f;
}
/// Nested, with two results.
const auto& gated() {
  static const auto f = vt::function("random_gated", [](const State& s, const Shared& p) {
    const Tensor g = vt::sigmoid(dense()(s.h, p));
    return State{g * s.h + (1.0 - g) * s.c, vt::sin(g - s.c)};
  });
  return f;
}
const auto& normed() {
  static const auto f = vt::function("random_normed", [](const Tensor& x, const Tensor& y) {
    const Tensor centred = x - vt::mean(x);
    const Tensor all = centred / vt::sqrt(vt::mean(centred * centred) + 0.5);
    return vt::softmax(all) * y + vt::where(x > y, x, 0.5 * y);
  });
  return f;
}
/// A branch and a loop inside; the number is no Tensor and a part of the signature.
const auto& branching() {
  static const auto f = vt::function("random_branching", [](const Tensor& x, int steps) {
    const Tensor y = vt::cond(
        vt::sum(x) > away, [](const Tensor& a) { return vt::sin(a); },
        [](const Tensor& a) { return a * 0.5; }, x);
    return vt::fori_loop(
        0, steps, [](const Tensor&, const Tensor& a) { return vt::cos(a) - 0.25 * a; }, y);
  });
  return f;
}
const auto& noisy() {
  static const auto f = vt::function("random_noisy", [](const Tensor& x, const Tensor& key) {
    return x + 0.1 * vt::random::uniform(key, {width}, vt::f64).astype(x.dtype());
  });
  return f;
}

// --- programs ------------------------------------------------------------------------------------

/// What instance `k` of the program computes: its structure follows from the seed and k alone, or
/// also from values where it looks.
class Program {
 public:
  Program(std::uint64_t seed, bool looks) : seed_(seed), looks_(looks) {
    std::mt19937_64 engine(seed * 77 + 5);
    instances = engine() % 10 == 0 ? engine() % 2 : 2 + engine() % 12;
  }

  Tensor instance(std::size_t k, const Tensor& x, const Shared& p) const {
    // Few different programs, so that instances have nodes in common.
    std::mt19937_64 engine(seed_ * 1000 + k % 5);
    const Tensor key = vt::random::fold_in(vt::random::key(seed_), static_cast<int>(k));
    return tree(engine, static_cast<int>(1 + engine() % 3), x, p, key);
  }
  Tensors all(const Tensor& x, const Shared& p) const {
    Tensors results;
    if (looks_) {
      std::vector<std::size_t> numbers;
      for (std::size_t k = 0; k < instances; ++k) numbers.push_back(k);
      return vt::instances(
          numbers, [&](std::size_t k) { return instance(k, x[static_cast<std::int64_t>(k)], p); });
    }
    for (std::size_t k = 0; k < instances; ++k)
      results.push_back(instance(k, x[static_cast<std::int64_t>(k)], p));
    return results;
  }
  /// All results in one number.
  Tensor loss(const Tensor& x, const Shared& p) const {
    Tensor sum = vt::zeros({}, x.dtype());
    for (const Tensor& t : all(x, p)) sum += vt::sum(t * t);
    return sum;
  }

  /// Long sums are added as one, which rounds in another way.
  bool long_sums() const { return seed_ % 2 == 0; }

  std::size_t instances;

 private:
  Tensor tree(std::mt19937_64& engine, int depth, const Tensor& x, const Shared& p,
              const Tensor& key) const {
    if (depth == 0) return x;
    const auto row = [&] { return p.rows[static_cast<std::int64_t>(engine() % rows)]; };
    Tensor y = x;
    switch (engine() % 8) {
      case 0: {  // a sequence of its own length
        State s{x, row()};
        for (std::uint64_t n = engine() % 4; n > 0; --n) s = gated()(State{s.h + row(), s.c}, p);
        y = s.h + s.c;
        break;
      }
      case 1: {  // a tree
        const Tensor l = tree(engine, depth - 1, x, p, key);
        const Tensor r = tree(engine, depth - 1, row(), p, vt::random::fold_in(key, depth));
        y = dense()(l - r, p) + l;
        break;
      }
      case 2: y = normed()(x, row()); break;
      case 3: y = branching()(x, static_cast<int>(engine() % 2)); break;
      case 4: y = noisy()(x, key); break;
      case 5: {  // plain operations, with a number and an axis that differ
        const int axis = static_cast<int>(engine() % 2);
        const Tensor square = vt::outer(x, row());
        y = vt::sum(engine() % 2 ? vt::transpose(square) : square, axis) *
            (1.0 + 0.5 * static_cast<double>(engine() % 3));
        break;
      }
      case 6: {  // integers
        const Tensor best = vt::argmax(x) + static_cast<int>(engine() % 2);
        y = vt::roll(x, 1, 0) + vt::where(best > 1, x, -x) * best.astype(x.dtype());
        break;
      }
      default: {  // a long sum
        Tensor sum = vt::tanh(x);
        for (std::uint64_t n = engine() % (long_sums() ? 12 : 6); n > 0; --n) sum += vt::sin(row());
        y = sum * 0.25;
      }
    }
    if (looks_ && engine() % 2) {
      if (vt::sum(y).item<double>() > away) y = dense()(y, p);
      const int n = vt::argmax(y).item<int>();
      for (int i = 0; i < n; ++i) y = y * 0.75 + p.b;
    }
    return vt::tanh(tree(engine, depth - 1, y, p, key));
  }

  std::uint64_t seed_;
  bool looks_;
};

struct Inputs {
  Tensor x;
  Shared p;
};
Inputs inputs(std::uint64_t seed, std::size_t instances, vt::DType dtype) {
  const auto random = [&](vt::Shape shape, std::uint64_t k) {
    return vt_test::random_tensor(dtype, shape, -1, 1, seed * 8 + k);
  };
  return {random({static_cast<std::int64_t>(instances), width}, 1),
          {random({width, width}, 2), random({width}, 3), random({rows, width}, 4)}};
}

bool interpreted() { return vt_test::forced_backend() == "interpreter"; }
/// Of formulations that add in another order, or are compiled where the other one is interpreted.
vt_test::Tolerance rounding(vt::DType dtype) {
  const double eps = dtype == vt::f64 ? 1e-11 : 2e-3;
  return {.relative = eps, .absolute = eps};
}

void check(std::uint64_t seed, bool looks) {
  SCOPED_TRACE("VT_FUZZ_SEED=" + std::to_string(seed));
  const Program program(seed, looks);
  const vt::DType dtype = seed % 3 == 0 ? vt::f32 : vt::f64;
  const Inputs in = inputs(seed, program.instances, dtype);
  const auto values = [&](const Tensor& x, const Shared& p) { return program.all(x, p); };
  const auto loss = [&](const Tensor& x, const Shared& p) { return program.loss(x, p); };
  const Tensors wanted = values(in.x, in.p);
  const auto [dx, dp] = vt::grad<0, 1>(loss)(in.x, in.p);
  Tensors first;
  for (const Batching strategy : strategies) {
    SCOPED_TRACE("strategy " + std::to_string(static_cast<int>(strategy)));
    const Tensors got = vt::autobatch(values, {.strategy = strategy})(in.x, in.p);
    vt_test::expect_close(got, wanted,
                          interpreted() && !program.long_sums() ? vt_test::exact : rounding(dtype));
    if (first.empty()) first = got;
    // What is computed of shared values alone is compiled with what is computed beside it.
    vt_test::expect_close(got, first, interpreted() ? vt_test::exact : rounding(dtype));
    const auto [gx, gp] = vt::grad<0, 1>(vt::autobatch(loss, {.strategy = strategy}))(in.x, in.p);
    vt_test::expect_close(gx, dx, rounding(dtype));
    vt_test::expect_close(Tensors{gp.w, gp.b, gp.rows}, {dp.w, dp.b, dp.rows}, rounding(dtype));
  }
}

TEST(AutobatchRandom, ProgramsGiveWhatTheyGiveAlone) {
  for (std::uint64_t seed = first_seed; seed < first_seed + programs / (interpreted() ? 1 : 10);
       ++seed) {
    check(seed, false);
    if (HasFailure()) return;
  }
}

TEST(AutobatchRandom, ProgramsThatLookAtValues) {
  for (std::uint64_t seed = first_seed; seed < first_seed + programs / (interpreted() ? 2 : 20);
       ++seed) {
    check(seed, true);
    if (HasFailure()) return;
  }
}

TEST(AutobatchRandom, ProgramsUnderTransforms) {
  for (std::uint64_t seed = first_seed; seed < first_seed + programs / (interpreted() ? 8 : 20);
       ++seed) {
    SCOPED_TRACE("VT_FUZZ_SEED=" + std::to_string(seed));
    const bool looks = seed % 4 == 0;
    const Program program(seed, looks);
    const Inputs in = inputs(seed, program.instances, vt::f64);
    const auto loss = [&](const Tensor& x, const Shared& p) { return program.loss(x, p); };
    const auto batched = vt::autobatch(loss, {.strategy = strategies[seed % 3]});
    const vt_test::Tolerance near = {.relative = 1e-9, .absolute = 1e-9};
    const auto of_b = [&](const auto& f) {
      return [&](const Tensor& b) { return f(in.x, Shared{in.p.w, b, in.p.rows}); };
    };
    const Tensor tangent = vt_test::random_tensor(vt::f64, {width}, -1, 1, seed);
    vt_test::expect_close(vt::jvp(of_b(batched), in.p.b, tangent).second,
                          vt::jvp(of_b(loss), in.p.b, tangent).second, near, "jvp");
    vt_test::expect_close(vt::hessian(of_b(batched))(in.p.b), vt::hessian(of_b(loss))(in.p.b), near,
                          "hessian");
    if (!looks) {
      vt_test::expect_close(vt::jit(batched)(in.x, in.p), loss(in.x, in.p), near, "jit");
      const Tensor many = vt::stack({in.p.b, tangent});
      vt_test::expect_close(vt::vmap(of_b(batched))(many), vt::vmap(of_b(loss))(many), near,
                            "vmap");
      vt_test::expect_close(vt::vmap(vt::grad(of_b(batched)))(many),
                            vt::vmap(vt::grad(of_b(loss)))(many), near, "vmap of grad");
    }
    if (HasFailure()) return;
  }
}

}  // namespace
