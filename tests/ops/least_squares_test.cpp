// Least squares: digits on NIST's reference sets beside NumPy's; matrices of any rank against the
// pseudo-inverse by singular values; scaled columns; what counts as 0; lanes and bad matrices.
#include <algorithm>
#include <cmath>

#include <vt/vt.hpp>

#include "support/property.hpp"

namespace {

namespace la = vt::linalg;
using vt::DType;
using vt::Shape;
using vt::Tensor;
using vt_test::expect_close;

using Numbers = std::vector<double>;

/// A set of the NIST Statistical Reference Datasets (linear least squares), its certified values,
/// and how many of their digits `numpy.linalg.lstsq` (NumPy 2.4.6, OpenBLAS) and lstsq have.
struct Set {
  const char* name;
  Numbers a, y, certified;
  double numpy, wanted;
  std::optional<vt::Param<double>> rcond = {};
};

/// Rows 1, x, x², … of a polynomial.
Numbers powers(const Numbers& xs, int degree) {
  Numbers a;
  for (const double x : xs)
    for (int k = 0; k <= degree; ++k) a.push_back(std::pow(x, k));
  return a;
}
/// Wampler's x are 0 … 20. The right sides of sets 3 to 5 are those of set 1 and errors at right
/// angles to the columns, times 1, 100 and 10000.
Numbers wampler_right_side(double base, double errors) {
  const Numbers first{759, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 1838, -2048, 2048};
  Numbers y;
  for (int x = 0; x <= 20; ++x) {
    double value = 0;  // exact, but for base 0.1
    for (int k = 5; k >= 0; --k) value = value * x * base + 1;
    y.push_back(value + errors * first[std::min(x, 20 - x)]);
  }
  return y;
}

std::vector<Set> nist() {
  const Numbers norris_x{0.2,   337.4, 118.2, 884.6, 10.1,  226.5, 666.3, 996.3, 448.6,
                         777.0, 558.2, 0.4,   0.6,   775.5, 666.9, 338.0, 447.5, 11.6,
                         556.0, 228.1, 995.8, 887.6, 120.2, 0.3,   0.3,   556.8, 339.1,
                         887.2, 999.0, 779.0, 11.1,  118.3, 229.2, 669.1, 448.9, 0.5};
  const Numbers norris_y{0.1,   338.8, 118.1, 888.0, 9.2,   228.1, 668.5, 998.5, 449.1,
                         778.9, 559.2, 0.3,   0.1,   778.1, 668.8, 339.3, 448.9, 10.8,
                         557.7, 228.3, 998.0, 888.8, 119.6, 0.3,   0.6,   557.6, 339.3,
                         888.0, 998.5, 778.9, 10.2,  117.6, 228.9, 668.4, 449.2, 0.2};
  const Numbers pontius_y{0.11019, 0.21956, 0.32949, 0.43899, 0.54803, 0.65694, 0.76562, 0.87487,
                          0.98292, 1.09146, 1.20001, 1.30822, 1.41599, 1.52399, 1.63194, 1.73947,
                          1.84646, 1.95392, 2.06128, 2.16844, 0.11052, 0.22018, 0.32939, 0.43886,
                          0.54798, 0.65739, 0.76596, 0.87474, 0.98300, 1.09150, 1.20004, 1.30818,
                          1.41613, 1.52408, 1.63159, 1.73965, 1.84696, 1.95445, 2.06177, 2.16829};
  Numbers pontius_x;
  for (int i = 0; i < 40; ++i) pontius_x.push_back(150000.0 * (i % 20 + 1));
  const Numbers longley_a{
      1, 83.0,  234289, 2356, 1590, 107608, 1947, 1, 88.5,  259426, 2325, 1456, 108632, 1948,
      1, 88.2,  258054, 3682, 1616, 109773, 1949, 1, 89.5,  284599, 3351, 1650, 110929, 1950,
      1, 96.2,  328975, 2099, 3099, 112075, 1951, 1, 98.1,  346999, 1932, 3594, 113270, 1952,
      1, 99.0,  365385, 1870, 3547, 115094, 1953, 1, 100.0, 363112, 3578, 3350, 116219, 1954,
      1, 101.2, 397469, 2904, 3048, 117388, 1955, 1, 104.6, 419180, 2822, 2857, 118734, 1956,
      1, 108.4, 442769, 2936, 2798, 120445, 1957, 1, 110.8, 444546, 4681, 2637, 121950, 1958,
      1, 112.6, 482704, 3813, 2552, 123366, 1959, 1, 114.2, 502601, 3931, 2514, 125368, 1960,
      1, 115.7, 518173, 4806, 2572, 127852, 1961, 1, 116.9, 554894, 4007, 2827, 130081, 1962};
  const Numbers longley_y{60323, 61122, 60171, 61187, 63221, 63639, 64989, 63761,
                          66019, 67857, 68169, 66513, 68655, 69564, 69331, 70551};
  const Numbers filip_x{
      -6.860120914, -4.324130045, -4.358625055, -4.358426747, -6.955852379, -6.661145254,
      -6.355462942, -6.118102026, -7.115148017, -6.815308569, -6.519993057, -6.204119983,
      -5.853871964, -6.109523091, -5.79832982,  -5.482672118, -5.171791386, -4.851705903,
      -4.517126416, -4.143573228, -3.709075441, -3.499489089, -6.300769497, -5.953504836,
      -5.642065153, -5.031376979, -4.680685696, -4.329846955, -3.928486195, -8.56735134,
      -8.363211311, -8.107682739, -7.823908741, -7.522878745, -7.218819279, -6.920818754,
      -6.628932138, -6.323946875, -5.991399828, -8.781464495, -8.663140179, -8.473531488,
      -8.247337057, -7.971428747, -7.676129393, -7.352812702, -7.072065318, -6.774174009,
      -6.478861916, -6.159517513, -6.835647144, -6.53165267,  -6.224098421, -5.910094889,
      -5.598599459, -5.290645224, -4.974284616, -4.64454848,  -4.290560426, -3.885055584,
      -3.408378962, -3.13200249,  -8.726767166, -8.66695597,  -8.511026475, -8.165388579,
      -7.886056648, -7.588043762, -7.283412422, -6.995678626, -6.691862621, -6.392544977,
      -6.067374056, -6.684029655, -6.378719832, -6.065855188, -5.752272167, -5.132414673,
      -4.811352704, -4.098269308, -3.66174277,  -3.2644011};
  const Numbers filip_y{
      0.8116, 0.9072, 0.9052, 0.9039, 0.8053, 0.8377, 0.8667, 0.8809, 0.7975, 0.8162, 0.8515,
      0.8766, 0.8885, 0.8859, 0.8959, 0.8913, 0.8959, 0.8971, 0.9021, 0.909,  0.9139, 0.9199,
      0.8692, 0.8872, 0.89,   0.891,  0.8977, 0.9035, 0.9078, 0.7675, 0.7705, 0.7713, 0.7736,
      0.7775, 0.7841, 0.7971, 0.8329, 0.8641, 0.8804, 0.7668, 0.7633, 0.7678, 0.7697, 0.77,
      0.7749, 0.7796, 0.7897, 0.8131, 0.8498, 0.8741, 0.8061, 0.846,  0.8751, 0.8856, 0.8919,
      0.8934, 0.894,  0.8957, 0.9047, 0.9129, 0.9209, 0.9219, 0.7739, 0.7681, 0.7665, 0.7703,
      0.7702, 0.7761, 0.7809, 0.7961, 0.8253, 0.8602, 0.8809, 0.8301, 0.8664, 0.8834, 0.8898,
      0.8964, 0.8963, 0.9074, 0.9119, 0.9228};
  Numbers wampler_x, noint_x, noint_y;
  for (int i = 0; i <= 20; ++i) wampler_x.push_back(i);
  for (int i = 0; i <= 10; ++i) noint_x.push_back(60 + i), noint_y.push_back(130 + i);
  const Numbers wampler_a = powers(wampler_x, 5), ones(6, 1.0);
  return {
      {"Norris", powers(norris_x, 1), norris_y, {-0.262323073774029, 1.00211681802045}, 12.3, 12.3},
      {"Pontius",
       powers(pontius_x, 2),
       pontius_y,
       {0.673565789473684e-3, 0.732059160401003e-6, -0.316081871345029e-14},
       6.2,
       12},
      {"NoInt1", noint_x, noint_y, {2.07438016528926}, 15, 14},
      {"NoInt2", {4, 5, 6}, {3, 4, 4}, {0.727272727272727}, 15, 14},
      {"Filip",
       powers(filip_x, 10),
       filip_y,
       {-1467.48961422980, -2772.17959193342, -2316.37108160893, -1127.97394098372,
        -354.478233703349, -75.1242017393757, -10.8753180355343, -1.06221498588947,
        -0.670191154593408e-1, -0.246781078275479e-2, -0.402962525080404e-4},
       5.3,
       7,
       0.0},
      {"Longley",
       longley_a,
       longley_y,
       {-3482258.63459582, 15.0618722713733, -0.358191792925910e-1, -2.02022980381683,
        -1.03322686717359, -0.511041056535807e-1, 1829.15146461355},
       10.9,
       12},
      {"Wampler1", wampler_a, wampler_right_side(1, 0), ones, 9.3, 9},
      {"Wampler2",
       wampler_a,
       wampler_right_side(0.1, 0),
       {1, 0.1, 1e-2, 1e-3, 1e-4, 1e-5},
       10.2,
       11},
      {"Wampler3", wampler_a, wampler_right_side(1, 1), ones, 9.6, 9},
      {"Wampler4", wampler_a, wampler_right_side(1, 100), ones, 7.9, 8},
      {"Wampler5", wampler_a, wampler_right_side(1, 10000), ones, 5.9, 6},
  };
}

double digits(const Numbers& x, const Numbers& certified) {
  double least = 15;
  for (std::size_t i = 0; i < certified.size(); ++i)
    least = std::min(least, -std::log10(std::fabs(x[i] / certified[i] - 1)));
  return least;
}

TEST(LeastSquares, DigitsOnNistsSets) {
  for (const Set& s : nist()) {
    const auto m = static_cast<std::int64_t>(s.y.size()),
               n = static_cast<std::int64_t>(s.certified.size());
    const Tensor a = vt::tensor(s.a, {m, n}), y = vt::tensor(s.y);
    const auto fit = [&](Tensor a, Tensor y) { return la::lstsq(a, y, s.rcond); };
    const la::LstsqResult one = fit(a, y);
    EXPECT_EQ(one.rank.item<int>(), n) << s.name;
    const Tensor batch =
        vt::jit([&](Tensor a, Tensor y) { return fit(a, y).x; })(vt::stack({a, a}), y);
    for (const Numbers& x : {one.x.to_vector<double>(), batch[1].to_vector<double>()}) {
      const double reached = digits(x, s.certified);
      std::printf("%-9s %4.1f digits, NumPy %4.1f\n", s.name, reached, s.numpy);
      EXPECT_GE(reached, s.wanted) << s.name;
    }
  }
}

Tensor random(DType d, const Shape& shape, std::uint64_t seed) {
  return vt_test::random_tensor(d, shape, -1, 1, seed);
}
vt_test::Tolerance near(DType d) {
  const double unit = vt::real_dtype(d) == vt::f64 ? 2e-12 : 1e-3;
  return {.relative = unit, .absolute = unit};
}

// Of any rank, alone and in batches: the pseudo-inverse by singular values says the same.
TEST(LeastSquares, OfAnyRankIsTheShortestSolution) {
  for (const DType d : {vt::f32, vt::f64, vt::c64, vt::c128})
    for (const auto& [m, n, rank] : {std::tuple{1, 1, 1},
                                     {5, 1, 1},
                                     {1, 4, 1},
                                     {6, 4, 4},
                                     {4, 6, 4},
                                     {7, 5, 2},
                                     {5, 7, 3},
                                     {6, 6, 5},
                                     {6, 6, 6},
                                     {4, 3, 0},
                                     {60, 40, 17}}) {
      for (const Shape& batch : {Shape{}, Shape{3}}) {
        const auto with = [&](std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
          Shape shape = batch;
          shape.push_back(rows);
          shape.push_back(columns);
          return random(d, shape, seed);
        };
        const std::string what = std::string(vt::name_of(d)) + " " + std::to_string(m) + " x " +
                                 std::to_string(n) + " of rank " + std::to_string(rank);
        const Tensor a =
            rank == std::min(m, n) ? with(m, n, 1) : vt::matmul(with(m, rank, 2), with(rank, n, 3));
        const Tensor b = with(m, 2, 4);
        const double rcond = vt::real_dtype(d) == vt::f64 ? 1e-13 : 1e-5;
        const la::LstsqResult fit = la::lstsq(a, b, rcond);
        for (const int found : fit.rank.to_vector<int>()) EXPECT_EQ(found, rank) << what;
        const Tensor by_values = vt::matmul(la::pinv(a, rcond), b);
        // Small matrices may happen to be of a large condition.
        vt_test::Tolerance t = near(d);
        t.absolute *= std::max(1.0, vt::max(vt::abs(by_values)).item<double>());
        expect_close(fit.x, by_values, t, what);
        expect_close(la::svdvals(a), fit.s, near(d), what);
        expect_close(fit.residuals, vt::sum(vt::square(vt::abs(b - vt::matmul(a, fit.x))), -2),
                     near(d), what);
      }
    }
}

// As sizes of columns do not matter to QR, they do not matter here while the rank is full.
TEST(LeastSquares, SizesOfColumnsDoNotMatter) {
  const Tensor a = random(vt::f64, {30, 5}, 1), b = random(vt::f64, {30, 2}, 2),
               sizes = vt::tensor({1e-6, 3e4, 1.0, 7e-3, 2e5});
  const Tensor x = la::lstsq(a, b).x, of_sizes = la::lstsq(a * sizes, b).x;
  expect_close(of_sizes * vt::expand_dims(sizes, -1), x, {.relative = 1e-14});
}

// Beyond the first small element of r's diagonal nothing counts.
TEST(LeastSquares, WhatCountsAsZero) {
  const Tensor a = vt::tensor({{1e-3, 0.0}, {0.0, 10.0}, {0.0, 0.0}}),
               b = vt::tensor({1.0, 10.0, 5.0});
  for (const auto& [rcond, rank] : {std::pair{1e-5, 2}, {1e-3, 1}, {1.0, 0}}) {
    const la::LstsqResult fit = la::lstsq(a, b, rcond);
    EXPECT_EQ(fit.rank.item<int>(), rank) << rcond;
    expect_close(fit.x, vt::tensor({rank > 1 ? 1000.0 : 0.0, rank > 0 ? 1.0 : 0.0}),
                 {.relative = 1e-15});
    expect_close(fit.s, vt::tensor({10.0, 1e-3}), {.relative = 1e-15});
    expect_close(fit.residuals, vt::tensor(25.0 + (rank > 1 ? 0.0 : 1.0) + (rank > 0 ? 0 : 100)),
                 {.relative = 1e-15});
  }
}

TEST(LeastSquares, LanesAndSharedMatrices) {
  const Tensor a = random(vt::f64, {4, 6, 3}, 1), b = random(vt::f64, {4, 6}, 2);
  const auto solve = [](Tensor a, Tensor b) { return la::lstsq(a, b).x; };
  const Tensor lanes = vt::jit(vt::vmap(solve))(a, b);
  const Tensor shared = vt::vmap(solve, {.in_axes = {vt::unmapped, 0}})(a[0], b);
  const Tensor batch = la::lstsq(a, vt::expand_dims(b, -1)).x;
  for (int i = 0; i < 4; ++i) {
    expect_close(lanes[i], solve(a[i], b[i]), {.relative = 1e-13, .absolute = 1e-13});
    expect_close(vt::squeeze(batch[i], {-1}), lanes[i], {.relative = 1e-13, .absolute = 1e-13});
    expect_close(shared[i], solve(a[0], b[i]), {.relative = 1e-13, .absolute = 1e-13});
  }
}

TEST(LeastSquares, BadAndEmptyMatrices) {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               inf = std::numeric_limits<double>::infinity();
  for (const double bad : {nan, inf}) {
    const Tensor good = random(vt::f64, {3, 2}, 1), b = random(vt::f64, {3, 2}, 2);
    const Tensor spoilt = vt::tensor({{1.0, 2.0}, {bad, 3.0}, {4.0, 5.0}});
    const la::LstsqResult fit = la::lstsq(vt::stack({good, spoilt}), vt::stack({b, b}));
    expect_close(fit.x[0], la::lstsq(good, b).x, {.relative = 1e-14});
    EXPECT_TRUE(vt::all(vt::isnan(fit.x[1])).item<bool>());
    EXPECT_TRUE(vt::all(vt::isnan(fit.s[1])).item<bool>());
    const Tensor mixed = vt::tensor({{1.0, bad}, {2.0, 1.0}, {3.0, 1.0}});
    const Tensor x = la::lstsq(good, mixed).x;
    expect_close(vt::take(x, 0, 1), la::lstsq(good, vt::take(mixed, 0, 1)).x, {.relative = 1e-14});
    EXPECT_FALSE(vt::any(vt::isfinite(vt::take(x, 1, 1))).item<bool>());
  }
  const la::LstsqResult none = la::lstsq(vt::zeros({3, 2}, vt::f64), vt::ones({3}, vt::f64));
  EXPECT_EQ(none.rank.item<int>(), 0);
  expect_close(none.x, vt::zeros({2}, vt::f64));
  expect_close(none.residuals, vt::tensor(3.0));
  for (const Shape& shape : {Shape{0, 2}, Shape{3, 0}, Shape{0, 0}, Shape{2, 3, 0}}) {
    const la::LstsqResult fit =
        la::lstsq(vt::zeros(shape, vt::f64), vt::ones({shape[shape.size() - 2]}, vt::f64));
    EXPECT_EQ(fit.x.dim(-1), shape.back());
    EXPECT_EQ(vt::sum(vt::abs(fit.x)).item<double>(), 0);
    EXPECT_EQ(vt::sum(fit.rank).item<int>(), 0);
  }
}

}  // namespace
