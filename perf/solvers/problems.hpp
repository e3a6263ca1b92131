// The problems of the suite solvers, each function once, for any scalar: vt's program and its peers
// in C++17 solve the same ones.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

namespace problems {

// --- differential equations ----------------------------------------------------------------------
// `rates`: what differs between lanes; slope(rates, y, d) sets d to dy/dt; jacobian(rates, y, j)
// sets j(row, column) where it is not 0. A problem that is not stiff has no Jacobian.

struct Lorenz {
  static constexpr const char* name = "lorenz";
  static constexpr std::size_t size = 3, rates = 0;
  template <class K, class Y, class D>
  static void slope(const K&, const Y& y, D& d) {
    d[0] = 10.0 * (y[1] - y[0]);
    d[1] = 28.0 * y[0] - y[1] - y[0] * y[2];
    d[2] = y[0] * y[1] - (8.0 / 3) * y[2];
  }
};

/// Robertson 1966, The Solution of a Set of Reaction Rate Equations.
struct Robertson {
  static constexpr const char* name = "robertson";
  static constexpr std::size_t size = 3, rates = 3;
  static constexpr double usual[rates] = {0.04, 1e4, 3e7};
  static constexpr double start[size] = {1, 0, 0};
  template <class K, class Y, class D>
  static void slope(const K& k, const Y& y, D& d) {
    const auto a = k[0] * y[0], b = k[1] * y[1] * y[2], c = k[2] * y[1] * y[1];
    d[0] = b - a;
    d[1] = a - b - c;
    d[2] = c;
  }
  template <class K, class Y, class J>
  static void jacobian(const K& k, const Y& y, J& j) {
    j(0, 0) = -k[0];
    j(0, 1) = k[1] * y[2];
    j(0, 2) = k[1] * y[1];
    j(1, 0) = k[0];
    j(1, 1) = -k[1] * y[2] - 2 * k[2] * y[1];
    j(1, 2) = -k[1] * y[1];
    j(2, 1) = 2 * k[2] * y[1];
  }
};

/// Schäfer 1975, A New Approach to Explain the “High Irradiance Responses” of Photomorphogenesis.
/// The rates are of the first, the fast and the last reaction.
struct Hires {
  static constexpr const char* name = "hires";
  static constexpr std::size_t size = 8, rates = 3;
  static constexpr double usual[rates] = {1.71, 280, 0.69};
  static constexpr double start[size] = {1, 0, 0, 0, 0, 0, 0, 0.0057};
  template <class K, class Y, class D>
  static void slope(const K& k, const Y& y, D& d) {
    const auto fast = k[1] * y[5] * y[7];
    d[0] = -k[0] * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007;
    d[1] = k[0] * y[0] - 8.75 * y[1];
    d[2] = -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4];
    d[3] = 8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3];
    d[4] = -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6];
    d[5] = -fast + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + k[2] * y[6];
    d[6] = fast - 1.81 * y[6];
    d[7] = 1.81 * y[6] - fast;
  }
  template <class K, class Y, class J>
  static void jacobian(const K& k, const Y& y, J& j) {
    j(0, 0) = -k[0], j(0, 1) = 0.43, j(0, 2) = 8.32;
    j(1, 0) = k[0], j(1, 1) = -8.75;
    j(2, 2) = -10.03, j(2, 3) = 0.43, j(2, 4) = 0.035;
    j(3, 1) = 8.32, j(3, 2) = 1.71, j(3, 3) = -1.12;
    j(4, 4) = -1.745, j(4, 5) = 0.43, j(4, 6) = 0.43;
    j(5, 3) = 0.69, j(5, 4) = 1.71, j(5, 6) = k[2];
    j(5, 5) = -k[1] * y[7] - 0.43, j(5, 7) = -k[1] * y[5];
    j(6, 5) = k[1] * y[7], j(6, 6) = -1.81, j(6, 7) = k[1] * y[5];
    j(7, 5) = -k[1] * y[7], j(7, 6) = 1.81, j(7, 7) = -k[1] * y[5];
  }
};

/// With a rate of 1e6: y₂ changes so much faster than y₁.
struct VanDerPol {
  static constexpr const char* name = "van_der_pol";
  static constexpr std::size_t size = 2, rates = 1;
  static constexpr double usual[rates] = {1e6};
  static constexpr double start[size] = {2, 0};
  template <class K, class Y, class D>
  static void slope(const K& k, const Y& y, D& d) {
    d[0] = y[1];
    d[1] = k[0] * ((1.0 - y[0] * y[0]) * y[1] - y[0]);
  }
  template <class K, class Y, class J>
  static void jacobian(const K& k, const Y& y, J& j) {
    j(0, 1) = 1;
    j(1, 0) = k[0] * (-2 * y[0] * y[1] - 1);
    j(1, 1) = k[0] * (1 - y[0] * y[0]);
  }
};

/// Field and Noyes 1974, Oscillations in Chemical Systems IV.
struct Oregonator {
  static constexpr const char* name = "oregonator";
  static constexpr std::size_t size = 3, rates = 3;
  static constexpr double usual[rates] = {77.27, 8.375e-6, 0.161};
  static constexpr double start[size] = {1, 2, 3};
  template <class K, class Y, class D>
  static void slope(const K& k, const Y& y, D& d) {
    d[0] = k[0] * (y[1] + y[0] * (1.0 - k[1] * y[0] - y[1]));
    d[1] = (y[2] - (1.0 + y[0]) * y[1]) / k[0];
    d[2] = k[2] * (y[0] - y[2]);
  }
  template <class K, class Y, class J>
  static void jacobian(const K& k, const Y& y, J& j) {
    j(0, 0) = k[0] * (1 - 2 * k[1] * y[0] - y[1]);
    j(0, 1) = k[0] * (1 - y[0]);
    j(1, 0) = -y[1] / k[0];
    j(1, 1) = -(1 + y[0]) / k[0];
    j(1, 2) = 1 / k[0];
    j(2, 0) = k[2];
    j(2, 2) = -k[2];
  }
};

/// A satellite of earth and moon, on an orbit that closes: Arenstorf 1963. The rate is the mass of
/// the moon.
struct Arenstorf {
  static constexpr const char* name = "arenstorf";
  static constexpr std::size_t size = 4, rates = 1;
  static constexpr double usual[rates] = {0.012277471};
  static constexpr double start[size] = {0.994, 0, 0, -2.00158510637908252240537862224};
  template <class K, class Y, class D>
  static void slope(const K& k, const Y& y, D& d) {
    using std::sqrt;
    const auto moon = k[0], earth = 1.0 - k[0];
    const auto to_earth = y[0] + moon, to_moon = y[0] - earth;
    const auto a = to_earth * to_earth + y[1] * y[1], b = to_moon * to_moon + y[1] * y[1];
    const auto near_earth = earth / (a * sqrt(a)), near_moon = moon / (b * sqrt(b));
    d[0] = y[2];
    d[1] = y[3];
    d[2] = y[0] + 2.0 * y[3] - near_earth * to_earth - near_moon * to_moon;
    d[3] = y[1] - 2.0 * y[2] - (near_earth + near_moon) * y[1];
  }
};

/// How a problem is solved in lanes: until when, and how exactly.
template <class P>
struct Lanes {
  static constexpr double t1 = 0, rtol = 1e-8, atol = 1e-8;  // Lorenz: each lane has its own end
};
template <>
struct Lanes<Robertson> {
  static constexpr double t1 = 1e5, rtol = 1e-6, atol = 1e-10;
};
template <>
struct Lanes<Hires> {
  static constexpr double t1 = 321.8122, rtol = 1e-6, atol = 1e-10;
};

/// Where the usual solution of a problem is at t1, and what atol is, relative to rtol. Sources:
/// Mazzia and Magherini 2008, Test Set for Initial Value Problem Solvers; of Arenstorf's orbit
/// Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, II.0.
template <class P>
struct Known;
template <>
struct Known<Robertson> {
  static constexpr double t1 = 1e11, atol = 1e-8;
  static constexpr double y[] = {0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050};
};
template <>
struct Known<Hires> {
  static constexpr double t1 = 321.8122, atol = 1e-4;
  static constexpr double y[] = {
      0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2,
      0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2};
};
template <>
struct Known<VanDerPol> {
  static constexpr double t1 = 2, atol = 1;
  static constexpr double y[] = {0.1706167732170483e1, -0.8928097010247975};
};
template <>
struct Known<Oregonator> {
  static constexpr double t1 = 360, atol = 1e-2;
  static constexpr double y[] = {0.1000814870318523e1, 0.1228178521549917e4, 0.1320554942846706e3};
};
template <>
struct Known<Arenstorf> {
  static constexpr double t1 = 17.0652165601579625588917206249, atol = 1;
  static constexpr double y[] = {0.994, 0, 0, -2.00158510637908252240537862224};
};

/// rtol 10^−3 … 10^−10.
constexpr int least_digits = 3, most_digits = 10;

// --- fits ----------------------------------------------------------------------------------------

/// Pixels of a side, parameters of a peak (height, x, y, width, background), tolerances.
struct Peaks {
  static constexpr int side = 15, pixels = side * side, parameters = 5;
  static constexpr double tolerance = 1e-8;
  /// The guess for an image.
  static std::array<double, parameters> guess(const double* image) {
    double least = image[0], most = image[0];
    for (int i = 1; i < pixels; ++i) {
      least = image[i] < least ? image[i] : least;
      most = image[i] > most ? image[i] : most;
    }
    return {most - least, 7, 7, 2, least};
  }
};

/// The parameters at which normal equations are made.
constexpr double normal_at[6] = {1.0, 2.0, 0.5, 0.7, 0.3, 0.2};

}  // namespace problems
