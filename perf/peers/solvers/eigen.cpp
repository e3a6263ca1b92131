// Small systems by Eigen, whose matrices have a size that the compiler knows, one lane after the
// other.
#include <Eigen/Dense>

#include "../../solvers/report.hpp"

namespace {

constexpr int lanes = 1024, rounds = 200;

template <int n>
void rows(const std::string& name, const std::string& what) {
  using Matrix = Eigen::Matrix<double, n, n, Eigen::RowMajor>;
  using Vector = Eigen::Matrix<double, n, 1>;
  const report::Numbers a = report::read(name, "a"), b = report::read(name, "b");
  report::Numbers answers(b.size());
  const auto loop = [&](auto next) {
    for (int lane = 0; lane < lanes; ++lane) {
      const Matrix m = Eigen::Map<const Matrix>(&a[static_cast<std::size_t>(lane * n * n)]);
      Vector v = Eigen::Map<const Vector>(&b[static_cast<std::size_t>(lane * n)]);
      for (int i = 0; i < rounds; ++i) {
        const Matrix moved = (m.array() + 0.001 * v[0]).matrix();
        const Vector out = next(moved, v);
        v = (out.array() + 0.1).matrix();
      }
      std::copy_n(v.data(), n, &answers[static_cast<std::size_t>(lane * n)]);
    }
  };
  const auto run = [&] {
    if (what == "solve")
      loop([](const Matrix& m, const Vector& v) -> Vector { return m.partialPivLu().solve(v); });
    else if (what == "cholesky")
      loop([](const Matrix& m, const Vector& v) -> Vector {
        const Matrix l = m.llt().matrixL();
        return 0.1 * (l * v);
      });
    else if (what == "inv")
      loop([](const Matrix& m, const Vector& v) -> Vector {
        if constexpr (n <= 4) return m.inverse() * v;
        else return m.partialPivLu().inverse() * v;
      });
    else loop([](const Matrix& m, const Vector& v) -> Vector { return 0.05 * (m * v); });
  };
  report::Row out{name, "eigen", report::median_seconds(run), lanes * rounds};
  out.error = report::error_of(answers, report::read(name, "answers"), n);
  out.allowed = 1e-9;
  report::print(out);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string row = report::arguments(argc, argv);
  if (report::first_part(row) != "small") return 0;
  const std::string what = row.substr(6, row.rfind('/') - 6), n = report::last_part(row);
  if (n == "3") rows<3>(row, what);
  if (n == "5") rows<5>(row, what);
  if (n == "8") rows<8>(row, what);
}
