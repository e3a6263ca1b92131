// make_graph and eval_shape: what a function records, as text and as a drawing, and its result's
// shape without running it.
#include <vt/vt.hpp>

#include <fstream>
#include <iostream>

#include "support/check.hpp"

int main(int argc, char** argv) {
  auto f = [](vt::Tensor x, vt::Tensor w) { return vt::sum(vt::tanh(vt::matmul(x, w))); };
  const vt::Tensor x = vt::ones({8, 3}), w = vt::ones({3, 2});

  std::cout << "f:\n"
            << vt::make_graph(f)(x, w) << "\ngrad(f):\n"
            << vt::make_graph(vt::grad(f))(x, w) << '\n';
  std::cout << "vmap over the rows of x: one matrix product, not eight:\n"
            << vt::make_graph(
                   vt::vmap([](vt::Tensor row, vt::Tensor w) { return vt::matmul(row, w); },
                            {.in_axes = {0, vt::unmapped}}))(x, w)
            << '\n';
  if (argc > 1) std::ofstream(argv[1]) << vt::make_graph(f)(x, w).to_dot();  // then: dot -Tsvg FILE

  const auto graph = vt::make_graph(f)(x, w);
  const std::vector<vt::Tensor> arguments = {x, w};
  int failures = support::check("the Graph run on the arguments", graph(arguments)[0], f(x, w));
  const auto shapes =
      vt::eval_shape(vt::vmap(f, {.in_axes = {0, vt::unmapped}}), vt::ones({5, 8, 3}), w);
  failures += shapes.shape() == vt::Shape{5} ? 0 : 1;
  return failures;
}
