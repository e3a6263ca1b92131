// What one would otherwise write in C++, or have generated as C: small functions called again and
// again, and tables that loops fill. Each row's result is first compared with that of plain C++.
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../plain_loops.hpp"
#include "../support.hpp"
#include "native.hpp"
#include "problems.hpp"

namespace {

using vt::Tensor;

using problems::expect;

// --- a planar quadrotor --------------------------------------------------------------------------

// place, height, angle, and their speeds; thrust of both rotors. As in perf/peers/native.py.
Tensor motion(const Tensor& x, const Tensor& u) {
  const Tensor thrust = u[0] + u[1];
  return vt::stack({x[3], x[4], x[5], -thrust * vt::sin(x[2]) / 0.8,
                    thrust * vt::cos(x[2]) / 0.8 - 9.81, (u[0] - u[1]) * 0.25 / 0.02});
}
Tensor step(const Tensor& x, const Tensor& u) {
  constexpr double h = 0.05;
  const Tensor a = motion(x, u), b = motion(x + h / 2 * a, u), c = motion(x + h / 2 * b, u),
               d = motion(x + h * c, u);
  return x + h / 6 * (a + 2 * b + 2 * c + d);
}
Tensor cost(const Tensor& x, const Tensor& controls) {
  const auto round = [](Tensor x, Tensor u) {
    const Tensor y = step(x, u);
    return std::pair(y, vt::sum(y * y) + 0.1 * vt::sum(u * u));
  };
  return vt::sum(vt::scan(round, x, controls).second);
}

void small_functions() {
  static std::vector<double> x{0.1, 0.2, 0.3, 0.4, 0.5, 0.6}, u{4.1, 3.9}, controls;
  constexpr int rounds = 50;
  for (int i = 0; i < rounds; ++i) {
    controls.push_back(4 + 0.01 * i);
    controls.push_back(3.9 - 0.005 * i);
  }
  static const Tensor state = vt::borrow(std::span<const double>(x), {6}),
                      control = vt::borrow(std::span<const double>(u), {2}),
                      all = vt::borrow(std::span<const double>(controls), {rounds, 2});
  const auto jacobian = vt::jit(vt::jacobian<0, 1>(step));
  const auto gradient = vt::jit(vt::grad<1>(cost));
  static std::array<double, 36> by_state;
  static std::array<double, 12> by_control;
  static std::vector<double> slopes(2 * rounds);
  jacobian.into(by_state, by_control)(state, control);
  gradient.into(slopes)(state, all);
  for (int i = 0; i < 6; ++i) {
    constexpr double h = 1e-6;
    std::vector<double> up = x, down = x;
    up[i] += h, down[i] -= h;
    double ends[2][6];
    plain::quadrotor_step(up.data(), u.data(), ends[0]);
    plain::quadrotor_step(down.data(), u.data(), ends[1]);
    for (int j = 0; j < 6; ++j)
      expect("Jacobian of a step", by_state[j * 6 + i], (ends[0][j] - ends[1][j]) / (2 * h), 1e-7);
  }
  for (int i : {0, 17, 99}) {
    constexpr double h = 1e-5;
    std::vector<double> up = controls, down = controls;
    up[i] += h, down[i] -= h;
    expect("gradient of a rollout", slopes[i],
           (plain::quadrotor_cost(x.data(), up.data(), rounds) -
            plain::quadrotor_cost(x.data(), down.data(), rounds)) /
               (2 * h),
           1e-6);
  }
  perf::row("step/jacobian/vt", [=] { jacobian.into(by_state, by_control)(state, control); });
  perf::row("step/jacobian/vt_call", [=] { benchmark::DoNotOptimize(jacobian(state, control)); });
  perf::row("rollout/gradient/vt", [=] { gradient.into(slopes)(state, all); });
  const auto least = vt::jit([](const Tensor& x, const Tensor& u) { return x * u[0]; });
  static std::vector<double> out(6);
  perf::row("call/into/vt", [=] { least.into(out)(state, control); });
  perf::row("call/usual/vt", [=] { benchmark::DoNotOptimize(least(state, control)); });
}

// --- tables --------------------------------------------------------------------------------------

Tensor chain(const Tensor& x, int n) {
  const Tensor t = vt::index_update(vt::zeros({n}, vt::f64), 0, x);
  return vt::sum(vt::fori_loop(
      1, n, [](Tensor i, Tensor t) { return vt::index_update(t, i, vt::sin(t[i - 1])); }, t));
}
Tensor chosen(const Tensor& x) {
  const int n = static_cast<int>(x.shape()[0]);
  return vt::sum(vt::fori_loop(
      0, n,
      [&](Tensor i, Tensor t) {
        return vt::where(x[i] > 0.0, vt::index_update(t, i, x[i] * x[i]), t);
      },
      vt::zeros({n}, vt::f64)));
}
Tensor pushed(const Tensor& x) {
  const auto push = [](std::pair<Tensor, Tensor> s, Tensor v) {
    auto [buffer, n] = s;
    const Tensor good = v > 0.0;
    return std::pair(std::pair(vt::where(good, vt::index_update(buffer, n, v), buffer),
                               n + good.astype(vt::i32)),
                     n);
  };
  return vt::scan(push, std::pair(vt::zeros({100'000}, vt::f64), vt::tensor(0)), x).first.first;
}
Tensor pushed_rows(const Tensor& x) {
  const int n = static_cast<int>(x.shape()[0]);
  const auto push = [](std::pair<Tensor, Tensor> s, Tensor v) {
    const Tensor buffer = vt::cond(
        v[0][0] > 0.0, [](Tensor b, Tensor n, Tensor v) { return vt::index_update(b, n, v); },
        [](Tensor b, Tensor, Tensor) { return b; }, s.first, s.second, v);
    return std::pair(std::pair(buffer, s.second + 1), s.second);
  };
  return vt::scan(push, std::pair(vt::zeros({n, 10, 10}, vt::f64), vt::tensor(0)), x).first.first;
}
Tensor element(const Tensor& x, const Tensor& i, const Tensor& j) {
  return vt::reshape(vt::dynamic_slice(x, {i, j}, {1, 1}), {});
}
Tensor soft_edit(const Tensor& c) {
  const int n = static_cast<int>(c.shape()[0]);
  const Tensor d = vt::fori_loop(
      0, n * n,
      [&](Tensor k, Tensor d) {
        const Tensor i = k / n, j = k % n;
        const Tensor least = -vt::log(vt::exp(-(element(d, i, j) + element(c, i, j))) +
                                      vt::exp(-(element(d, i + 1, j) + 1.0)) +
                                      vt::exp(-(element(d, i, j + 1) + 1.0)));
        return vt::dynamic_update_slice(d, vt::reshape(least, {1, 1}), {i + 1, j + 1});
      },
      vt::zeros({n + 1, n + 1}, vt::f64));
  return d[n][n];
}

void tables() {
  for (const int n : {1'000, 8'000}) {
    const std::string of = "/" + std::to_string(n);
    const Tensor start = vt::tensor(0.7).eval();
    const auto f = [n](const Tensor& x) { return chain(x, n); };
    const auto value = vt::jit(f);
    const auto slope = vt::jit(vt::grad(f));
    expect("a chain", value(start).item<double>(), plain::chain(0.7, n), 1e-9);
    perf::row("table/chain" + of + "/value/vt", [=] { value(start).eval(); });
    perf::row("table/chain" + of + "/value/plain",
              [=] { benchmark::DoNotOptimize(plain::chain(0.7, n)); });
    perf::row("table/chain" + of + "/gradient/vt", [=] { slope(start).eval(); });
    const Tensor x = vt::sin(vt::arange(n).astype(vt::f64)).eval();
    const std::vector<double> xs = x.to_vector<double>();
    const auto choose = vt::jit(chosen);
    const auto slopes = vt::jit(vt::grad(chosen));
    expect("chosen updates", choose(x).item<double>(), plain::chosen(xs.data(), n), 1e-9);
    perf::row("table/where" + of + "/value/vt", [=] { choose(x).eval(); });
    perf::row("table/where" + of + "/value/plain",
              [=] { benchmark::DoNotOptimize(plain::chosen(xs.data(), n)); });
    perf::row("table/where" + of + "/gradient/vt", [=] { slopes(x).eval(); });
  }
  const Tensor x = vt::sin(vt::arange(2'000).astype(vt::f64)).eval(),
               rows = vt::sin(vt::arange(200'000).astype(vt::f64)).reshape({2'000, 10, 10}).eval();
  const auto push = vt::jit(pushed), push_rows = vt::jit(pushed_rows);
  perf::row("table/push/2000/value/vt", [=] { push(x).eval(); });
  perf::row("table/push_rows/2000/value/vt", [=] { push_rows(rows).eval(); });
  for (const int n : {50, 200}) {
    const std::string of = "/" + std::to_string(n);
    const Tensor c = vt::abs(vt::sin(vt::arange(n * n).astype(vt::f64))).reshape({n, n}).eval();
    const std::vector<double> cs = c.to_vector<double>();
    const auto value = vt::jit(soft_edit);
    const auto gradient = vt::jit(vt::grad(soft_edit));
    expect("soft edit distance", value(c).item<double>(), plain::soft_edit(cs.data(), n), 1e-9);
    perf::row("table/soft_edit" + of + "/value/vt", [=] { value(c).eval(); });
    perf::row("table/soft_edit" + of + "/value/plain",
              [=] { benchmark::DoNotOptimize(plain::soft_edit(cs.data(), n)); });
    perf::row("table/soft_edit" + of + "/gradient/vt", [=] { gradient(c).eval(); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  problem_rows(std::getenv("VT_BENCH_REFERENCE"));
  small_functions();
  tables();
  benchmark::RunSpecifiedBenchmarks();
}
