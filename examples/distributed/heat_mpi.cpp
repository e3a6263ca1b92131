// The heat equation on a square plate, cut in blocks: each process computes one and gets the
// borders of its neighbours by ppermute. What needs no border is computed while these are under
// way. Usage: [mpirun -n P] heat_mpi [FOLDER [POINTS [STEPS]]]; the picture is written to FOLDER.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <vt/distributed.hpp>
#include <vt/vt.hpp>

#include "../support/csv.hpp"
#include "../support/png.hpp"

namespace {

using vt::Tensor;

/// Rows, or columns, from `first` to the one before `last`.
Tensor rows(const Tensor& u, std::int64_t first, std::int64_t last) {
  return vt::slice_in_dim(u, first, last, 0);
}
Tensor columns(const Tensor& u, std::int64_t first, std::int64_t last) {
  return vt::slice_in_dim(u, first, last, 1);
}

/// All points of a block but its outermost ones, a step later.
Tensor later(const Tensor& u) {
  constexpr double rate = 0.2;  // of time ⋅ conductivity / distance²; stable up to 0.25
  const std::int64_t r = u.dim(0), c = u.dim(1);
  const Tensor own = columns(rows(u, 1, r - 1), 1, c - 1);
  const Tensor above = columns(rows(u, 0, r - 2), 1, c - 1),
               below = columns(rows(u, 2, r), 1, c - 1);
  const Tensor left = columns(rows(u, 1, r - 1), 0, c - 2),
               right = columns(rows(u, 1, r - 1), 2, c);
  return own + rate * (above + below + left + right - 4.0 * own);
}

/// The values of the process before this one along an axis of the mesh, or of the one after it.
/// Beyond the edge of the plate all is 0.
Tensor from_before(const Tensor& x, const char* axis) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::int64_t i = 1; i < vt::axis_size(axis); ++i) pairs.emplace_back(i - 1, i);
  return vt::ppermute(x, axis, pairs);
}
Tensor from_after(const Tensor& x, const char* axis) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::int64_t i = 1; i < vt::axis_size(axis); ++i) pairs.emplace_back(i, i - 1);
  return vt::ppermute(x, axis, pairs);
}

/// A block, a step later.
Tensor step(const Tensor& u) {
  const std::int64_t r = u.dim(0), c = u.dim(1);
  const Tensor above = from_before(rows(u, r - 1, r), "y"), below = from_after(rows(u, 0, 1), "y");
  const Tensor left = from_before(columns(u, c - 1, c), "x"),
               right = from_after(columns(u, 0, 1), "x");
  const auto widened = [](const Tensor& row) { return vt::pad(row, {{0, 0}, {1, 1}}); };
  const Tensor wide = vt::concatenate({left, u, right}, 1);
  const Tensor first = later(vt::concatenate({widened(above), rows(wide, 0, 2)}, 0));
  const Tensor last = later(vt::concatenate({rows(wide, r - 2, r), widened(below)}, 0));
  const Tensor leftmost = later(columns(wide, 0, 3)),
               rightmost = later(columns(wide, c - 1, c + 2));
  const Tensor middle = vt::concatenate({leftmost, later(u), rightmost}, 1);
  return vt::concatenate({first, middle, last}, 0);
}

/// How hot the points of this process are at first: two hot bars and a cold one.
Tensor start(std::int64_t points, std::int64_t top, std::int64_t left, std::int64_t height,
             std::int64_t width) {
  const auto scaled = [&](std::int64_t first, std::int64_t count) {
    return (vt::arange(count) + first).astype(vt::f64) / static_cast<double>(points);
  };
  const Tensor y = scaled(top, height).reshape({height, 1}), x = scaled(left, width);
  const auto bar = [&](double y0, double y1, double x0, double x1) {
    return ((y >= y0) & (y < y1) & (x >= x0) & (x < x1)).astype(vt::f64);
  };
  return bar(0.15, 0.25, 0.15, 0.85) + bar(0.15, 0.85, 0.45, 0.55) - bar(0.6, 0.7, 0.65, 0.9);
}

int run(const std::string& folder, std::int64_t points, std::int64_t steps) {
  // As near to a square of blocks as the number of processes allows.
  const std::int64_t processes = vt::distributed::size();
  std::int64_t across = 1;
  for (std::int64_t n = 1; n * n <= processes; ++n)
    if (processes % n == 0) across = n;
  const auto mesh = vt::distributed::mesh({{"y", -1}, {"x", across}});
  const std::int64_t down = mesh.size("y");
  if (points % down != 0 || points % across != 0 || points / down < 3) {
    if (vt::distributed::rank() == 0)
      std::fprintf(stderr, "heat_mpi: %lld points cannot be cut in %s\n",
                   static_cast<long long>(points), mesh.str().c_str());
    return 2;
  }
  const std::int64_t height = points / down, width = points / across;
  const auto block = vt::sharded({{"y", 0}, {"x", 1}});
  const auto after = [&](const Tensor& u) {
    return vt::fori_loop(0, steps, [](const Tensor&, const Tensor& v) { return step(v); }, u);
  };
  const auto simulate =
      vt::jit(vt::shard_map(after, {.mesh = mesh, .in_specs = block, .out_specs = block}));
  const Tensor first =
      start(points, mesh.index("y") * height, mesh.index("x") * width, height, width);

  vt::eval(simulate(first));  // records and compiles
  vt::distributed::barrier();
  const auto begin = std::chrono::steady_clock::now();
  const Tensor end = simulate(first).eval();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  // All of the plate, in each process, and how much heat is on it.
  const auto whole = vt::shard_map(
      [](const Tensor& u) {
        const Tensor rows = vt::all_gather(u, "x", {.axis = 1, .tiled = true});
        return std::pair(vt::all_gather(rows, "y", {.axis = 0, .tiled = true}),
                         vt::psum(vt::sum(u), {"y", "x"}));
      },
      {.mesh = mesh, .in_specs = block, .out_specs = vt::replicated});
  const auto [plate, heat] = whole(end);
  if (vt::distributed::rank() != 0) return 0;
  std::fprintf(stderr, "%s: %lld steps in %.3f s\n", mesh.str().c_str(),
               static_cast<long long>(steps), seconds);
  std::printf("%lldx%lld points after %lld steps: heat %.6f\n", static_cast<long long>(points),
              static_cast<long long>(points), static_cast<long long>(steps), heat.item<double>());
  const std::vector<double> values = plate.to_vector<double>();
  const int n = static_cast<int>(points);
  support::Picture picture(n, n);
  picture.cells(0, 0, n, n, 1, [&](int y, int x) {
    return support::diverging(values[static_cast<std::size_t>(y) * n + x]);
  });
  std::filesystem::create_directories(folder);
  picture.write_png(folder + "/heat.png");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return support::run("heat_mpi", [&] {
    const auto number = [&](int i, std::int64_t otherwise) {
      return argc > i ? std::max<std::int64_t>(std::atoll(argv[i]), 1) : otherwise;
    };
    return run(argc > 1 ? argv[1] : "pictures", number(2, 512), number(3, 1000));
  });
}
