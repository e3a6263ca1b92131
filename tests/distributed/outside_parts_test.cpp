// Jacobians and solvers around shard_map: right where what they move and measure is the same on all
// processes, and refused where it is a process's own part.
#include "distributed/ranks.hpp"
#include "support/property.hpp"
#include "support/random_program.hpp"

namespace {

using vt::ErrorKind;
using vt::replicated;
using vt::sharded;
using vt::Tensor;
using vt::distributed::mesh;
using vt::distributed::rank;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::on_ranks;

constexpr vt_test::Tolerance same{.relative = 1e-12, .absolute = 1e-13};
using One = std::function<Tensor(Tensor)>;
using Two = std::function<Tensor(Tensor, Tensor)>;

template <class F>
auto on_two(F f, vt::ShardSpec in, vt::ShardSpec out) {
  return vt::shard_map(f, {.mesh = mesh({{"d", 2}}), .in_specs = in, .out_specs = out});
}
template <class F>
void refused(F f, const std::vector<std::string>& parts) {
  expect_error(f, ErrorKind::transform, parts);
}

// w is the whole, x and the result are parts.
TEST(OutsideParts, JacobiansOfPartsByWhatAllShare) {
  on_ranks(2, [] {
    const Two scaled = on_two([](Tensor w, Tensor x) { return w * w * x; },
                              {replicated, sharded("d")}, sharded("d"));
    const Tensor w = vt::tensor(2.0), x = vt::tensor({1.0, 10.0}) + 1.0 * rank();
    expect_close(vt::jacfwd(scaled)(w, x), 4.0 * x, same);
    expect_close(vt::jacobian(scaled)(w, x), 4.0 * x, same);
    refused([&] { vt::jacrev(scaled)(w, x); },
            {"vt::jacrev: a result is this process's part", "vt::jacfwd", "vt::all_gather"});
    const Two gathered =
        on_two([](Tensor v, Tensor u) { return vt::all_gather(v * v * u, "d", {.tiled = true}); },
               {replicated, sharded("d")}, replicated);
    const Tensor all = 4.0 * vt::tensor({1.0, 10.0, 2.0, 11.0});
    expect_close(vt::jacrev(gathered)(w, x), all, same);
    expect_close(vt::jacfwd(gathered)(w, x), all, same);
    expect_close(vt::jit(vt::jacrev(gathered))(w, x), all, same);
  });
}

TEST(OutsideParts, DerivativesByParts) {
  on_ranks(2, [] {
    const auto square_of_sum = [](Tensor x) {
      return vt::square(vt::psum(vt::sum(vt::sin(x)), "d"));
    };
    const One f = on_two(square_of_sum, sharded("d"), replicated);
    const Tensor all = vt::tensor({0.1, 0.2, 0.3, 0.4});
    const auto m = mesh({{"d", 2}});
    const Tensor x = vt::distributed::part(all, m, sharded("d"));
    const auto whole = [](Tensor v) { return vt::square(vt::sum(vt::sin(v))); };
    const Tensor slope = vt::distributed::part(vt::grad(whole)(all), m, sharded("d"));
    expect_close(vt::grad(f)(x), slope, same);
    expect_close(vt::jacrev(f)(x), slope, same);
    expect_close(vt::jacobian(f)(x), slope, same);
    for (const One& g : {One(vt::jacfwd(f)), One(vt::hessian(f)), One(vt::jit(vt::hessian(f)))})
      refused([&] { g(x).eval(); },
              {"an argument is this process's part, which a collective (outside_parts_test.cpp",
               "vt::grad", "vt::distributed::part"});
    // By the whole all is right.
    const auto of_whole = [&](Tensor v) { return f(vt::distributed::part(v, m, sharded("d"))); };
    expect_close(vt::hessian(of_whole)(all), vt::hessian(whole)(all), same);
    expect_close(vt::jacfwd(of_whole)(all), vt::grad(whole)(all), same);
    const One mixed =
        on_two([](Tensor v) { return v * vt::psum(v, "d"); }, sharded("d"), sharded("d"));
    refused([&] { vt::jacrev(mixed)(x); }, {"vt::jacrev"});
    refused([&] { vt::jacfwd(mixed)(x); }, {"vt::jacfwd"});
    refused([&] { vt::jacobian(mixed)(x); }, {"vt::jacobian"});
    // Where processes have nothing to do with each other each has its own block.
    const One apart = on_two([](Tensor v) { return vt::sin(v); }, sharded("d"), sharded("d"));
    expect_close(vt::jacrev(apart)(x), vt::diag(vt::cos(x)), same);
    expect_close(vt::jacfwd(apart)(x), vt::diag(vt::cos(x)), same);
  });
}

TEST(OutsideParts, InLoops) {
  on_ranks(2, [] {
    const Two f = on_two(
        [](Tensor w, Tensor x) {
          return vt::fori_loop(
              0, 3,
              [&](Tensor, Tensor v) { return v - 0.1 * vt::pmean(vt::sum(x) * vt::sin(v), "d"); },
              w);
        },
        {replicated, sharded("d")}, replicated);
    const Tensor w = vt::tensor({0.5, 0.7}), x = vt::tensor({1.0 + rank()});
    const auto whole = [](Tensor v) {
      return vt::fori_loop(0, 3, [](Tensor, Tensor u) { return u - 0.1 * 1.5 * vt::sin(u); }, v);
    };
    const auto of_w = [&](Tensor v) { return f(v, x); };
    expect_close(vt::jacfwd(of_w)(w), vt::jacfwd(whole)(w), same);
    expect_close(vt::jacrev(of_w)(w), vt::jacrev(whole)(w), same);
    const auto scalar = [&](Tensor v) { return vt::sum(of_w(v) * of_w(v)); };
    expect_close(vt::hessian(scalar)(w),
                 vt::hessian([&](Tensor v) { return vt::sum(whole(v) * whole(v)); })(w), same);
    const auto of_x = [&](Tensor u) { return f(w, u); };
    refused([&] { vt::jacfwd(of_x)(x); }, {"an argument is this process's part"});
  });
}

TEST(OutsideParts, Solvers) {
  on_ranks(2, [] {
    // A line of points in two parts: −u″ + u.
    const auto product = [](Tensor v) {
      const Tensor above = vt::ppermute(v[-1], "d", {{0, 1}}),
                   below = vt::ppermute(v[0], "d", {{1, 0}});
      const Tensor wide =
          vt::concatenate({vt::expand_dims(above, 0), v, vt::expand_dims(below, 0)});
      const std::int64_t n = v.dim(0);
      return 3.0 * v - vt::slice_in_dim(wide, 0, n, 0) - vt::slice_in_dim(wide, 2, n + 2, 0);
    };
    const One of_parts = on_two(product, sharded("d"), sharded("d"));
    const Tensor all = vt::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
    const auto m = mesh({{"d", 2}});
    const Tensor b = vt::distributed::part(all, m, sharded("d"));
    refused([&] { static_cast<void>(vt::cg(of_parts, b)); },
            {"vt::cg: the unknown is this process's part, which a collective (outside_parts_test",
             "vt::distributed::part"});
    const One of_whole = on_two(
        [&](Tensor v) {
          const Tensor own = vt::dynamic_slice(v, {3 * vt::axis_index("d")}, {3});
          return vt::all_gather(product(own), "d", {.tiled = true});
        },
        replicated, replicated);
    const Tensor x = vt::cg(of_whole, all);
    expect_close(of_whole(x), all, {.relative = 1e-4, .absolute = 1e-4});

    const auto residual = [](Tensor w, Tensor t, Tensor y) { return w[0] * vt::exp(w[1] * t) - y; };
    const Tensor t = vt::tensor({0.0, 0.5, 1.0}) + 1.5 * rank(), y = 2.0 * vt::exp(-0.3 * t);
    const auto fitted = [&](const auto& r) {
      return vt::least_squares([&](Tensor w) { return r(w, t, y); }, vt::tensor({1.0, 0.0})).x;
    };
    const vt::ShardSpec in = {replicated, sharded("d"), sharded("d")};
    refused([&] { fitted(on_two(residual, in, sharded("d"))); },
            {"vt::least_squares: the function gives this process's part", "vt::all_gather"});
    const auto gathered =
        on_two([&](Tensor w, Tensor u,
                   Tensor v) { return vt::all_gather(residual(w, u, v), "d", {.tiled = true}); },
               in, replicated);
    expect_close(fitted(gathered), vt::tensor({2.0, -0.3}), {.relative = 1e-5, .absolute = 1e-6});

    const auto cost = on_two([](Tensor v) { return vt::psum(vt::sum(vt::square(v - 1.0)), "d"); },
                             sharded("d"), replicated);
    refused([&] { static_cast<void>(vt::minimize(cost, b)); },
            {"vt::minimize: the unknown is this process's part"});
    const auto decay = [&](Tensor, Tensor u) { return -1.0 * of_parts(u); };
    refused([&] { static_cast<void>(vt::odeint(decay, b, {.t1 = 1.0})); },
            {"vt::odeint: the unknown is this process's part"});
    const auto steps = [&](const One& f, const Tensor& u) {
      return vt::odeint([&](Tensor, Tensor v) { return -1.0 * f(v); }, u,
                        {.method = vt::OdeMethod::rk4, .t1 = 1.0, .first_step = 0.05})
          .y;
    };
    expect_close(steps(of_parts, b), vt::distributed::part(steps(of_whole, all), m, sharded("d")),
                 same);
  });
}

TEST(OutsideParts, RandomProgramsByWhatAllShare) {
  const auto count = static_cast<int>(vt_test::environment("VT_FUZZ_COUNT", 1000)) / 10;
  const std::uint64_t first = vt_test::environment("VT_FUZZ_SEED", 1);
  on_ranks(2, [&] {
    for (int k = 0; k < std::max(1, count); ++k) {
      const std::uint64_t seed = first + static_cast<std::uint64_t>(k);
      SCOPED_TRACE("seed " + std::to_string(seed));
      vt_test::RandomProgram program(seed, 6);
      program.over({"i"});
      const Tensor x = vt_test::random_tensor(vt::f64, {2, 3}, -1, 1, seed),
                   w = vt_test::random_tensor(vt::f64, {3}, -1, 1, seed + 1);
      const auto shared = [&](Tensor t, Tensor u) { return vt::psum(program.scalar(t, u), "i"); };
      const auto by_ranks =
          vt::shard_map([&](Tensor t, Tensor u) { return shared(t[0], u); },
                        {.mesh = mesh({{"i", 2}}), .in_specs = {sharded("i"), replicated}});
      const auto by_lanes = vt::vmap(
          shared, {.in_axes = {0, vt::unmapped}, .out_axes = vt::unmapped, .axis_name = "i"});
      const Tensor own = vt_test::block(x, rank(), 2);
      constexpr vt_test::Tolerance close{.relative = 1e-7, .absolute = 1e-8};
      expect_close(vt::jacfwd([&](Tensor u) { return by_ranks(own, u); })(w),
                   vt::jacfwd([&](Tensor u) { return by_lanes(x, u); })(w), close);
    }
  });
}

}  // namespace
