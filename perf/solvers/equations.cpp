// Differential equations: lanes with differing ends and rates, their gradients, and how exact
// solutions of known problems are.
#include <vt/ode.hpp>

#include "problems.hpp"
#include "solvers.hpp"

namespace solvers {
namespace {

using vt::OdeMethod;

/// The right side of P, as vt wants it.
template <class P, class K>
auto slope(const K& rates) {
  return [=](const Tensor&, const Tensor& y) {
    std::array<Tensor, P::size> d;
    P::slope(rates, y, d);
    return vt::stack(std::vector<Tensor>(d.begin(), d.end()));
  };
}
template <class P>
Tensor start_of() {
  return vt::tensor(Numbers(std::begin(P::start), std::end(P::start)));
}

template <class P>
constexpr bool stiff = P::rates > 0;

/// One lane of P. Lorenz: from y0 to t1; the others from their start, with rates.
template <class P>
auto solve(const Tensor& x, const Tensor& t1, double tighter = 1, const Tensor& save_at = {}) {
  using L = problems::Lanes<P>;
  vt::OdeOptions options{.save_at = save_at, .rtol = L::rtol / tighter, .atol = L::atol / tighter};
  if constexpr (stiff<P>) {
    options.method = OdeMethod::rodas5p;
    options.t1 = L::t1;
    return vt::odeint(slope<P>(x), start_of<P>(), options);
  } else {
    options.method = OdeMethod::dopri5;
    options.t1 = t1;
    return vt::odeint(slope<P>(0), x, options);
  }
}
/// What its gradient is taken of: elements of Robertson's y differ much in size.
template <class P>
Tensor loss(const Tensor& y) {
  if constexpr (P::rates == 3 && P::size == 3) return vt::sum(y * vt::tensor({1.0, 1e4, 2.0}));
  else return vt::sum(y);
}

template <class P>
void lane_rows(const std::string& name, std::int64_t lanes) {
  const auto n = static_cast<std::size_t>(lanes);
  Numbers xs = uniform(n * 3, 1, 10, 1);
  const Numbers ends = uniform(n, 1, 10, 2);
  if constexpr (stiff<P>) {
    const double spread = P::size == 3 ? 1 : 0.5;
    xs = uniform(n * P::rates, -spread, spread, 3);
    for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = P::usual[i % P::rates] * std::exp(xs[i]);
  }
  const Tensor x = vt::tensor(xs, {lanes, 3}), t1 = vt::tensor(ends);
  const Tensor x0 = x[0].eval(), t10 = t1[0].eval();
  report::write(name, "x", xs);
  report::write(name, "t1", ends);
  // One lane is a plain call.
  const auto of_lanes = [&](const auto& f) {
    return [=, each = vt::jit(vt::vmap(f)), one = vt::jit(f)] {
      if (lanes > 1) {
        auto out = each(x, t1);
        vt::eval(out);
        return out;
      }
      auto out = one(x0, t10);
      vt::eval(out);
      return out;
    };
  };
  const std::size_t width = stiff<P> ? 1 : P::size;
  const auto end = [](double tighter) {
    return [=](Tensor x, Tensor t1) {
      const auto s = solve<P>(x, t1, tighter);
      return std::tuple(s.y, s.iterations + s.rejected, s.converged);
    };
  };
  const auto count = static_cast<double>(lanes);
  // Much finer: what all errors are taken of. It comes after the first call that is timed.
  Numbers answers;
  const auto end_row = [&](const char* who, double tighter) {
    const auto run = of_lanes(end(tighter));
    report::Row row = timed(name, who, count, run);
    if (answers.empty())
      answers = std::get<0>(of_lanes(end(stiff<P> ? 1e5 : 1e4))()).template to_vector<double>();
    const auto [y, tried, converged] = run();
    row.error = vt::all(converged).template item<bool>()
                    ? report::error_of(y.template to_vector<double>(), answers, width)
                    : INFINITY;
    row.allowed = stiff<P> ? 1e-3 : 0.3;  // Lorenz makes errors grow to thousands of times
    row.work = vt::sum(tried.astype(vt::f64)).template item<double>();
    report::print(row);
  };
  end_row("vt", 1);
  end_row("vt_tenth", 10);
  report::write(name, "answers", answers);

  const auto gradient = [](double tighter) {
    return vt::grad([=](Tensor x, Tensor t1) { return loss<P>(solve<P>(x, t1, tighter).y); });
  };
  const std::string below = name + "/gradient";
  const auto slopes = of_lanes(gradient(1));
  report::Row row = timed(below, "vt", count, slopes);
  // Keeping the states of all finer steps takes much memory: some tens of lanes will do.
  const std::int64_t few = std::min<std::int64_t>(lanes, 64);
  const Numbers exact =
      vt::jit(vt::vmap(gradient(100)))(x[vt::slice(0, few)], t1[vt::slice(0, few)])
          .template to_vector<double>();
  Numbers values = slopes().template to_vector<double>();
  values.resize(exact.size());
  row.error = report::error_of(values, exact, 3);
  row.allowed = 0.05;
  report::write(below, "answers", exact);
  report::print(row);

  if constexpr (!stiff<P>)
    for (const std::int64_t m : {10, 1000}) {
      const auto rows = of_lanes([=](Tensor x, Tensor t1) {
        const Tensor parts = vt::arange(m).astype(vt::f64) / static_cast<double>(m);
        return solve<P>(x, t1, 1, t1 * parts).ys;
      });
      report::print(timed(name + "/rows_" + std::to_string(m), "vt", count, rows));
    }
}

template <class P>
void figure_rows(OdeMethod method, const std::string& who) {
  using K = problems::Known<P>;
  const Numbers known(std::begin(K::y), std::end(K::y));
  const Numbers rates(std::begin(P::usual), std::end(P::usual));
  const std::string name = std::string("figures/") + P::name;
  report::write(name, "start", Numbers(std::begin(P::start), std::end(P::start)));
  report::write(name, "rates", rates);
  report::write(name, "y", known);
  report::write(name, "t1_and_atol", {K::t1, K::atol});
  // Arenstorf's orbit is through zeros: there errors are relative to its greatest element.
  const std::size_t width = std::count(known.begin(), known.end(), 0.0) > 0 ? P::size : 1;
  const auto run = vt::jit([=](Tensor y, Tensor rtol) {
    const auto s = vt::odeint(slope<P>(rates), y,
                              {.method = method,
                               .t1 = K::t1,
                               .rtol = rtol,
                               .atol = rtol * K::atol,
                               .max_steps = 1'000'000});
    return std::tuple(s.y, s.evaluations, s.converged);
  });
  for (int digits = problems::least_digits; digits <= problems::most_digits; ++digits) {
    const double rtol = std::pow(10.0, -digits);
    const Tensor start = start_of<P>(), asked = rtol;
    report::Row row = timed(name, who, 1, [&] { vt::eval(run(start, asked)); });
    row.first = row.first_processor = row.megabytes = -1;
    const auto [y, evaluations, converged] = run(start, asked);
    row.error = report::error_of(y.template to_vector<double>(), known, width);
    row.allowed = converged.template item<bool>() ? INFINITY : -1;
    row.work = evaluations.astype(vt::f64).template item<double>();
    row.rtol = rtol;
    report::print(row);
  }
}

}  // namespace

bool equation_rows(const std::string& row) {
  const std::string first = report::first_part(row);
  const auto of = [&]<class P>(P*) {
    if (first != P::name) return false;
    lane_rows<P>(row, std::stoll(report::last_part(row)));
    return true;
  };
  return of(static_cast<problems::Lorenz*>(nullptr)) ||
         of(static_cast<problems::Robertson*>(nullptr)) ||
         of(static_cast<problems::Hires*>(nullptr));
}

void figures() {
  figure_rows<problems::Robertson>(OdeMethod::rodas5p, "vt rodas5p");
  figure_rows<problems::VanDerPol>(OdeMethod::rodas5p, "vt rodas5p");
  figure_rows<problems::Hires>(OdeMethod::rodas5p, "vt rodas5p");
  figure_rows<problems::Oregonator>(OdeMethod::rodas5p, "vt rodas5p");
  figure_rows<problems::Arenstorf>(OdeMethod::dopri5, "vt dopri5");
  figure_rows<problems::Arenstorf>(OdeMethod::tsit5, "vt tsit5");
}

}  // namespace solvers
