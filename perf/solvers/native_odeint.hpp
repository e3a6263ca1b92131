// Boost's integrators on the problems of odeint.cpp, one lane after the other. In C++17, as its
// matrices need.
#pragma once

#include <vector>

namespace perf::odeint {

/// Steps accepted; the ends take the places of `y`, [lanes, 3]. 0: Boost is not there.
long boost_lorenz(std::vector<double>& y, const std::vector<double>& t1, double tolerance);
/// rosenbrock4; rates: [lanes, 3]. `y0`: of each lane the first element at the end.
long boost_robertson(const std::vector<double>& rates, std::vector<double>& y0, double t1,
                     double rtol, double atol);

}  // namespace perf::odeint
