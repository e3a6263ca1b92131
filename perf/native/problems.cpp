// The problems with vt, each written for one example, as its user would.
#include "problems.hpp"

#include <chrono>
#include <fstream>

#include "../bundle.hpp"
#include "../support.hpp"
#include "native.hpp"

namespace {

using vt::slice, vt::Tensor;

Tensor bundle_block(const Tensor& x) {
  static const Tensor seen = vt::tensor({0.3, -0.2});
  return perf::reprojection_error(x[slice(0, 11)], x[slice(11, 14)], x[14], seen);
}

Tensor lotka_volterra(const Tensor& x) {
  constexpr double h = problems::LotkaVolterra::h;
  const auto slope = [&](const Tensor& u) {
    const Tensor meet = u[0] * u[1];
    return vt::stack({x[2] * u[0] - x[3] * meet, x[5] * meet - x[4] * u[1]});
  };
  const auto step = [&](Tensor, const Tensor& u) {
    const Tensor a = slope(u), b = slope(u + h / 2 * a), c = slope(u + h / 2 * b),
                 d = slope(u + h * c);
    return u + h / 6 * (a + 2 * b + 2 * c + d);
  };
  return vt::fori_loop(0, problems::LotkaVolterra::steps, step, x[slice(0, 2)]);
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Rows of the jitted `f` at `x`, which writes `count` numbers into memory of the caller.
std::vector<double> rows(const std::string& name, const auto& f, const std::vector<double>& at,
                         const vt::Shape& shape, std::size_t count, bool first = false) {
  // They live as long as the rows.
  auto& x = *new std::vector<double>(at);
  auto& out = *new std::vector<double>(count);
  const Tensor given = vt::borrow(std::span<const double>(x), shape);
  const auto jitted = vt::jit(f);
  const double begin = seconds();
  jitted.into(out)(given);
  const double taken = seconds() - begin;
  if (first)
    benchmark::RegisterBenchmark((name.substr(0, name.rfind('/')) + "/first/vt").c_str(),
                                 [taken](benchmark::State& state) {
                                   for (auto _ : state) state.SetIterationTime(taken);
                                 })
        ->UseManualTime()
        ->Iterations(1);
  vt::wait_compiled();
  jitted.into(out)(given);
  perf::row_on(1, name + "/vt", [=, &out] { jitted.into(out)(given); });
  return out;
}

template <class P>
void problem(std::ostream& reference, Tensor (*f)(const Tensor&)) {
  const auto derivative = [f] {
    if constexpr (P::second) return vt::hessian(f);
    else if constexpr (P::outputs == 1) return vt::grad(f);
    else return vt::jacobian(f);
  }();
  const std::string name = P::name;
  const std::vector<double> x = problems::start<P>();
  constexpr int outputs = P::outputs, derivatives = problems::derivatives<P>;
  const std::vector<double> d =
      rows(name + "/derivative", derivative, x, {P::inputs}, derivatives, true);
  const std::vector<double> y = rows(name + "/value", f, x, {P::inputs}, outputs);
  problems::check<P>("vt", x, y.data(), d.data());
  const auto list = [&](const char* what, const std::vector<double>& values) {
    reference << what;
    for (std::size_t i = 0; i < values.size(); ++i) reference << (i ? "," : "[") << values[i];
    reference << "]";
  };
  list(("\"" + name + "\": {\"x\": ").c_str(), x);
  list(", \"y\": ", y);
  list(", \"d\": ", d);
  reference << ", \"lanes\": " << P::lanes << "},\n";
  if constexpr (P::lanes > 0) {
    constexpr int lanes = P::lanes;
    std::vector<double> all;
    for (int lane = 0; lane < lanes; ++lane)
      for (const double v : problems::start<P>(lane)) all.push_back(v);
    const std::string many = name + "/" + std::to_string(lanes);
    const vt::Shape shape{lanes, P::inputs};
    const auto ds =
        rows(many + "/derivative", vt::vmap(derivative), all, shape, lanes * derivatives, true);
    const auto ys = rows(many + "/value", vt::vmap(f), all, shape, lanes * outputs);
    for (int lane : {0, 1, lanes - 1})
      problems::check<P>("vt", problems::start<P>(lane), ys.data() + lane * outputs,
                         ds.data() + lane * derivatives);
  }
}

}  // namespace

void problem_rows(const char* reference) {
  std::ofstream file(reference ? reference : "/dev/null");
  file.precision(17);
  file << "{";
  problem<problems::LogSumExp>(file, [](const Tensor& x) { return vt::logsumexp(x); });
  problem<problems::BundleBlock>(file, bundle_block);
  problem<problems::LotkaVolterra>(file, lotka_volterra);
  file << "\"\": {}}\n";
}
