// custom_jvp, custom_vjp, custom_vmap, stop_gradient, checkpoint: saying oneself how a function is
// differentiated or mapped.
#include <vt/vt.hpp>

#include <cmath>

#include "support/check.hpp"

int main() {
  int failures = 0;
  const vt::Tensor x = vt::tensor({-2.0, 0.0, 50.0, 800.0});

  // log(1 + exp(x)) overflows where its derivative is plain; the rule gives those of every order.
  auto rule = [](auto primals, auto tangents) {
    const vt::Tensor t = std::get<0>(primals);
    return std::pair(vt::softplus(t), vt::sigmoid(t) * std::get<0>(tangents));
  };
  const auto safe = vt::custom_jvp([](vt::Tensor t) { return vt::softplus(t); }, rule);
  auto total = [&](vt::Tensor t) { return vt::sum(safe(t)); };
  failures += support::check("custom_jvp under grad", vt::grad(total)(x), vt::sigmoid(x), 1e-12);
  failures += support::check("custom_jvp under hessian", vt::diagonal(vt::hessian(total)(x)),
                             vt::sigmoid(x) * (1.0 - vt::sigmoid(x)), 1e-12);

  // The identity whose gradient is clipped.
  const auto clipped =
      vt::custom_vjp([](vt::Tensor t) { return t; },  // value
                                                      // value and what backward needs
                     [](vt::Tensor t) { return std::pair(t, vt::Tensor(1.0)); },
                     [](vt::Tensor limit, vt::Tensor bar) { return vt::clip(bar, -limit, limit); });
  auto steep = [&](vt::Tensor t) { return vt::sum(vt::square(clipped(t))); };
  failures += support::check("custom_vjp", vt::grad(steep)(x), vt::clip(2.0 * x, -1.0, 1.0), 1e-12);

  // A rule for many lanes at once: here the result is known without looking at them one by one.
  const auto centred = vt::custom_vmap(
      [](vt::Tensor row) { return row - vt::mean(row); },
      [](int, auto, vt::Tensor rows) { return std::pair(rows - vt::mean(rows, 1, true), true); });
  const vt::Tensor rows = vt::reshape(vt::arange(12).astype(vt::f64), {3, 4});
  failures +=
      support::check("custom_vmap", vt::vmap(centred)(rows), rows - vt::mean(rows, 1, true), 1e-12);

  // Parts that count as constant, and parts recomputed instead of kept.
  auto frozen = [](vt::Tensor t) { return vt::sum(t * vt::stop_gradient(t)); };
  failures += support::check("stop_gradient", vt::grad(frozen)(x), x, 1e-12);
  auto deep = [](vt::Tensor t) { return vt::sum(vt::sin(vt::sin(vt::sin(t)))); };
  failures +=
      support::check("checkpoint", vt::grad(vt::checkpoint(deep))(x), vt::grad(deep)(x), 1e-12);
  return failures;
}
