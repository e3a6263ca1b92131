// compiles
#include <vt/vt.hpp>

using vt::Tensor;

namespace {
struct Model {
  Tensor weights, offset;
};
Tensor loss(const Model& m, const Tensor& x, const Tensor& y) {
  return vt::sum(vt::square(vt::dot(m.weights, x) + m.offset - y));
}
}  // namespace

int main() {
  const Model m{vt::tensor({0.5, -0.5}), vt::tensor(0.1)};
  const Tensor xs = vt::tensor({{1.0, 2.0}, {0.0, 1.0}}), ys = vt::tensor({1.0, 0.0});
  const auto each = vt::vmap(vt::grad(loss), {.in_axes = {vt::unmapped, 0, 0}});
  const Model slopes = vt::jit(each)(m, xs, ys);
  vt::jit([](Tensor a, Tensor b, int n) { return a * b * n; })(slopes.weights, 2.0, 3).eval();
  const auto named = vt::jit([](const std::map<std::string, Tensor>& all) { return all.at("x"); });
  named(std::map<std::string, Tensor>{{"x", xs}}).eval();
  const auto wave = [](Tensor a) { return vt::sin(a) * a; };
  vt::jacobian(wave)(ys).eval();
  vt::hessian([&](Tensor a) { return vt::sum(wave(a)); })(ys).eval();
  vt::custom_jvp(wave, [](Tensor a, Tensor da) { return std::pair(a, da); })(ys).eval();
  vt::while_loop([](Tensor a) { return vt::sum(a) < 10.0; }, [](Tensor a) { return a + 1.0; }, xs)
      .eval();
  vt::cond(vt::sum(xs) > 1.0, wave, [](Tensor a) { return -a; }, xs).eval();
  const auto [last, all] =
      vt::scan([](Tensor sum, Tensor x) { return std::pair(sum + x, sum); }, vt::tensor(0.0), ys);
  Tensor changed = xs;
  changed += 1;
  return static_cast<int>(changed[0].to_vector<double>().size()) + last.item<int>() + all.rank();
}
