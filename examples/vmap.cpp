// vmap: a function written for one vector, applied to every row of a batch; one argument is shared.
#include <vt/vt.hpp>

#include <iostream>

#include "support/check.hpp"

int main() {
  // Distance of one point to the nearest of some centres: no batch axis in sight.
  auto nearest = [](vt::Tensor point, vt::Tensor centres) {
    return vt::sqrt(vt::min(vt::sum(vt::square(centres - point), 1)));
  };
  const vt::Tensor points = vt::reshape(vt::sin(vt::arange(12).astype(vt::f32)), {4, 3});
  const vt::Tensor centres = vt::tensor({{0.0f, 0.0f, 0.0f}, {1.0f, 1.0f, 0.0f}});

  const vt::Tensor all = vt::vmap(nearest, {.in_axes = {0, vt::unmapped}})(points, centres);
  std::cout << "distances " << all << '\n';

  std::vector<vt::Tensor> one_by_one;
  for (int i = 0; i < points.dim(0); ++i) one_by_one.push_back(nearest(points[i], centres));
  int failures = support::check("vmap and the loop", all, vt::stack(one_by_one));

  // Nested: all pairs of two sets, the second one stored in columns.
  auto dot = [](vt::Tensor a, vt::Tensor b) { return vt::dot(a, b); };
  const auto pairs =
      vt::vmap(vt::vmap(dot, {.in_axes = {vt::unmapped, 1}}), {.in_axes = {0, vt::unmapped}});
  failures += support::check("vmap of vmap and matmul", pairs(points, vt::transpose(centres)),
                             vt::matmul(points, vt::transpose(centres)));
  return failures;
}
