// Optimal control: a pendulum is brought to rest upside down by iLQR. The dynamics are written
// once; their Jacobians are taken inside a scan that runs backwards in time, and the whole
// optimiser is one compiled loop, mapped over starting points.
#include <vt/vt.hpp>

#include <cmath>
#include <cstdio>
#include <tuple>
#include <utility>
#include <vector>

namespace {

constexpr int steps = 25;
constexpr double dt = 0.05;

vt::Tensor moved(const vt::Tensor& x, const vt::Tensor& u) {
  const vt::Tensor acceleration = 9.81 * vt::sin(x[0]) + u[0] - 0.1 * x[1];
  return vt::stack({x[0] + dt * x[1], x[1] + dt * acceleration});
}

struct Costs {
  vt::Tensor state = vt::diag(vt::tensor({1.0, 0.1})), control = vt::tensor({{0.01}}),
             last = 50.0 * vt::eye(2, vt::f64);
};

vt::Tensor cost(const vt::Tensor& start, const vt::Tensor& controls) {
  const Costs c;
  const auto [end, each] = vt::scan(
      [&](vt::Tensor x, vt::Tensor u) {
        return std::pair(moved(x, u), 0.5 * vt::dot(x, vt::matmul(c.state, x)) +
                                          0.5 * vt::dot(u, vt::matmul(c.control, u)));
      },
      start, controls);
  return vt::sum(each) + 0.5 * vt::dot(end, vt::matmul(c.last, end));
}

/// One iteration: forwards along the controls, backwards for the gains, forwards with them.
vt::Tensor improved(const vt::Tensor& start, const vt::Tensor& controls) {
  const Costs c;
  const auto [end, states] = vt::scan(
      [](vt::Tensor x, vt::Tensor u) { return std::pair(moved(x, u), x); }, start, controls);
  const auto backwards = [&](std::pair<vt::Tensor, vt::Tensor> value,
                             std::pair<vt::Tensor, vt::Tensor> here) {
    const auto& [slope, curvature] = value;
    const auto& [x, u] = here;
    const auto [a, b] = vt::jacfwd<0, 1>(moved)(x, u);
    const auto between = [&](const vt::Tensor& left, const vt::Tensor& right) {
      return vt::einsum("ia,ij,jb->ab", left, curvature, right);
    };
    const vt::Tensor qx = vt::matmul(c.state, x) + vt::matmul(slope, a),
                     qu = vt::matmul(c.control, u) + vt::matmul(slope, b);
    const vt::Tensor quu = c.control + between(b, b), qux = between(b, a);
    const vt::Tensor step = -vt::linalg::solve(quu, qu), gain = -vt::linalg::solve(quu, qux);
    const std::pair before(qx + vt::matmul(qu, gain),
                           c.state + between(a, a) + vt::matmul(vt::transpose(qux), gain));
    return std::pair(before, std::pair(step, gain));
  };
  const auto gains = vt::scan(backwards, std::pair(vt::matmul(c.last, end), c.last),
                              std::pair(states, controls), {.reverse = true})
                         .second;
  const auto forwards = [](vt::Tensor x,
                           std::tuple<vt::Tensor, vt::Tensor, vt::Tensor, vt::Tensor> planned) {
    const auto& [state, control, step, gain] = planned;
    const vt::Tensor u = control + 0.7 * step + vt::matmul(gain, x - state);
    return std::pair(moved(x, u), u);
  };
  return vt::scan(forwards, start, std::tuple(states, controls, gains.first, gains.second)).second;
}

vt::Tensor solved(const vt::Tensor& start) {
  return vt::fori_loop(
      0, 60, [&](vt::Tensor, vt::Tensor u) { return improved(start, u); },
      vt::zeros({steps, 1}, vt::f64));
}

}  // namespace

int main() {
  const vt::Tensor starts = vt::tensor({{0.5, 0.0}, {-0.3, 1.0}, {0.1, -0.2}});
  const vt::Tensor controls = vt::jit(vt::vmap(solved))(starts);
  const vt::Tensor costs = vt::vmap(cost)(starts, controls);
  const vt::Tensor slopes = vt::vmap([](vt::Tensor x, vt::Tensor u) {
    return vt::norm(vt::grad<1>(cost)(x, u));
  })(starts, controls);
  for (int i = 0; i < 3; ++i)
    std::printf("from angle %4.1f: cost %.4f, gradient by the controls %.0e\n",
                starts[i][0].item<double>(), costs[i].item<double>(), slopes[i].item<double>());

  // At an optimum the cost depends on the start as if the controls stayed (the envelope theorem):
  // all sixty iterations, differentiated.
  const vt::Tensor through = vt::grad([](vt::Tensor x) { return cost(x, solved(x)); })(starts[0]),
                   fixed = vt::grad(cost)(starts[0], controls[0]);
  const double apart = vt::max(vt::abs(through - fixed)).item<double>();
  std::printf(
      "gradient by the start, through the optimiser: %.4f, %.4f; with the controls held: %.0e from "
      "it\n",
      through[0].item<double>(), through[1].item<double>(), apart);
  return vt::max(slopes).item<double>() < 1e-6 && apart < 1e-6 ? 0 : 1;
}
