// expect: holds an Eigen matrix
#include <vt/vt.hpp>

#include <iostream>

// Stands for one of Eigen: that need not be installed.
struct Vector {
  static constexpr int RowsAtCompileTime = -1;
  explicit Vector(int n) : n_(n) {}
  template <class Other>
    requires(Other::RowsAtCompileTime < 0)
  Vector& operator-=(const Other&) {
    return *this;
  }

 private:
  int n_;
};

// What is done with the result of a refused call adds no error to the one that refuses it.
int main() {
  Vector v(3);
  const auto g = vt::grad([](const Vector&) { return vt::tensor(1.0); })(v);
  std::cout << g << g[0] << g.shape() << 2.0 * g - g << -g << vt::sum(g) << vt::norm(g) << "\n";
  std::cout << g.to_vector<double>()[0] + g.item<double>() << (g == g) << (g < 1.0) << "\n";
  v -= 0.1 * g;
  v = g;
  vt::Tensor t = g / 2;
  t += g;
}
