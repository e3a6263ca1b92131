// Small systems in loops of 1,024 lanes: what an iteration of a solver has in it.
#include <vt/linalg.hpp>

#include "solvers.hpp"

namespace solvers {

bool small_rows(const std::string& name) {
  if (report::first_part(name) != "small") return false;
  constexpr std::int64_t lanes = 1024, rounds = 200;
  const std::string what = name.substr(6, name.rfind('/') - 6);
  const std::int64_t n = std::stoll(report::last_part(name));
  const auto count = static_cast<std::size_t>(lanes * n);
  // Diagonally dominant, and symmetric for Cholesky's decomposition.
  Numbers a = uniform(count * static_cast<std::size_t>(n), -1, 1, 1);
  const Numbers b = uniform(count, -1, 1, 2);
  const auto side = static_cast<std::size_t>(n);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::size_t row = i / side % side, column = i % side, matrix = i - row * side - column;
    if (row == column) a[i] += static_cast<double>(n);
    else if (what == "cholesky" && column < row) a[i] = a[matrix + column * side + row];
  }
  const auto next = [=](const Tensor& m, const Tensor& v) {
    if (what == "solve") return vt::linalg::solve(m, v);
    if (what == "cholesky") return 0.1 * vt::matmul(vt::linalg::cholesky(m), v);
    if (what == "inv") return vt::matmul(vt::linalg::inv(m), v);
    return 0.05 * vt::matmul(m, v);  // "product": what is there besides
  };
  const auto lane = [=](Tensor m, Tensor v, Tensor most) {
    return vt::while_loop([=](Tensor i, Tensor) { return i < most; },
                          [=](Tensor i, Tensor v) {
                            return std::pair(i + 1, next(m + 0.001 * v[0], v) + 0.1);
                          },
                          std::pair(vt::tensor(0), v))
        .second;
  };
  const auto run = vt::jit(vt::vmap(lane));
  const Tensor ms = vt::tensor(a, {lanes, n, n}), vs = vt::tensor(b, {lanes, n});
  const Tensor most = vt::full({lanes}, static_cast<int>(rounds));
  report::write(name, "a", a);
  report::write(name, "b", b);
  const report::Row row =
      timed(name, "vt", static_cast<double>(lanes * rounds), [&] { vt::eval(run(ms, vs, most)); });
  report::write(name, "answers", run(ms, vs, most).to_vector<double>());
  report::print(row);
  return true;
}

}  // namespace solvers
