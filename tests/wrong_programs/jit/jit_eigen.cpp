// expect: holds an Eigen matrix
#include <vt/vt.hpp>
// Stands for one of Eigen: that need not be installed.
struct Matrix {
  static constexpr int RowsAtCompileTime = -1;
  explicit Matrix(int n) : n_(n) {}

 private:
  int n_;
};

int main() {
  vt::jit([](Matrix) { return vt::tensor(1.0); })(Matrix(1));
}
