// What is differentiated in perf/native and by its peers: each function once, for any scalar.
// A problem has a name, the number of inputs and outputs, `lanes` (so many at once are timed too;
// 0: none), where it is evaluated, and its value. `second`: the derivative is the Hessian.
// `expression`: it is one of a size that can be written down, without branches.
#pragma once

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

namespace problems {

/// Expressions without values, which nothing can branch on.
template <class T>
inline constexpr bool symbolic = false;

struct Problem {
  static constexpr int outputs = 1, lanes = 0;
  static constexpr bool second = false, expression = true;
};

/// f(0) … f(n − 1), made once for each f.
template <class F>
const std::vector<double>& numbers(int n, F f) {
  static const std::vector<double> all = [&] {
    std::vector<double> made;
    for (int i = 0; i < n; ++i) made.push_back(f(i));
    return made;
  }();
  return all;
}

struct LogSumExp : Problem {
  static constexpr const char* name = "logsumexp";
  static constexpr int inputs = 1000;
  static double start(int i) { return 3 * std::sin(i + 1.0); }
  template <class T>
  static void value(const T* x, T* y) {
    using std::exp, std::log;
    int first = 0;
    if constexpr (!symbolic<T>)
      for (int i = 1; i < inputs; ++i)
        if (x[i] > x[first]) first = i;
    const T most = x[first];
    T sum(0.0);
    for (int i = 0; i < inputs; ++i) sum += exp(x[i] - most);
    y[0] = most + log(sum);
  }
};

/// How far from where it was seen a camera of 11 parameters sees a point, times a weight.
struct BundleBlock : Problem {
  static constexpr const char* name = "bundle_block";
  static constexpr int inputs = 15, outputs = 2, lanes = 10'000;
  static constexpr double seen[2] = {0.3, -0.2};
  static double start(int i) {
    // rotation, centre, focal length, principal point, distortion; point; weight
    constexpr double x[inputs] = {0.1,  -0.2, 0.3,   0.5, 0.4, -3.0, 1.2, 0.01,
                                  0.02, 0.03, -0.01, 0.7, 0.9, 1.1,  0.8};
    return x[i];
  }
  template <class T>
  static void value(const T* x, T* y) {
    using std::cos, std::sin, std::sqrt;
    const T v[3] = {T(x[11] - x[3]), T(x[12] - x[4]), T(x[13] - x[5])};
    T p[3];
    const T squared = x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
    const auto about = [&] {
      const T angle = sqrt(squared), s = sin(angle), c = cos(angle);
      const T a[3] = {T(x[0] / angle), T(x[1] / angle), T(x[2] / angle)};
      const T along = (a[0] * v[0] + a[1] * v[1] + a[2] * v[2]) * (1.0 - c);
      for (int i = 0, j = 1, k = 2; i < 3; ++i, j = (j + 1) % 3, k = (k + 1) % 3)
        p[i] = v[i] * c + (a[j] * v[k] - a[k] * v[j]) * s + a[i] * along;
    };
    if constexpr (symbolic<T>) about();
    else if (squared != 0.0) about();
    else
      for (int i = 0, j = 1, k = 2; i < 3; ++i, j = (j + 1) % 3, k = (k + 1) % 3)
        p[i] = v[i] + (x[j] * v[k] - x[k] * v[j]);
    const T a = p[0] / p[2], b = p[1] / p[2], r = a * a + b * b;
    const T scale = x[6] * (1.0 + x[9] * r + x[10] * r * r);
    y[0] = x[14] * (scale * a + x[7] - seen[0]);
    y[1] = x[14] * (scale * b + x[8] - seen[1]);
  }
};

/// Prey and predators after 100 steps of Runge and Kutta, by where they start and four rates.
struct LotkaVolterra : Problem {
  static constexpr const char* name = "lotka_volterra";
  static constexpr int inputs = 6, outputs = 2, lanes = 1000, steps = 100;
  static constexpr double h = 0.05;
  static double start(int i) {
    constexpr double x[inputs] = {1.0, 0.8, 1.5, 1.0, 3.0, 1.1};
    return x[i];
  }
  template <class T>
  static void value(const T* x, T* y) {
    const auto slope = [&](const T* u, T* d) {
      const T meet = u[0] * u[1];
      d[0] = x[2] * u[0] - x[3] * meet;
      d[1] = x[5] * meet - x[4] * u[1];
    };
    T u[2] = {x[0], x[1]}, d[4][2], v[2];
    for (int n = 0; n < steps; ++n) {
      slope(u, d[0]);
      for (int k = 0; k < 3; ++k) {
        for (int i = 0; i < 2; ++i) v[i] = u[i] + (k == 2 ? h : h / 2) * d[k][i];
        slope(v, d[k + 1]);
      }
      for (int i = 0; i < 2; ++i)
        u[i] += h / 6 * (d[0][i] + 2.0 * d[1][i] + 2.0 * d[2][i] + d[3][i]);
    }
    y[0] = u[0], y[1] = u[1];
  }
};

// --- robots: trees of links, each turning about the z axis of its place on the link before -------

template <class T>
using Vec3 = std::array<T, 3>;
template <class T>
Vec3<T> cross(const auto& a, const auto& b) {
  return {T(a[1] * b[2] - a[2] * b[1]), T(a[2] * b[0] - a[0] * b[2]), T(a[0] * b[1] - a[1] * b[0])};
}
template <class T>
void add(Vec3<T>& a, const auto& b) {
  for (int i = 0; i < 3; ++i) a[i] += b[i];
}

/// An arm of seven joints, and a body of two legs, a waist, two arms and a head.
struct Arm {
  static constexpr int joints = 7;
  static int parent(int i) { return i - 1; }
};
struct Body {
  static constexpr int joints = 30;
  static int parent(int i) {
    if (i == 0 || i == 6 || i == 12) return -1;
    return i == 15 || i == 22 || i == 29 ? 14 : i - 1;
  }
};
/// A link's place on its parent, the turn of that place about x in right angles, its centre, mass
/// and inertia about it.
struct Link {
  explicit Link(int i)
      : place{0, 0.1 * (i % 3), 0.3},
        turn(i % 2 ? 1 : -1),
        centre{0.01 * i, 0.02, 0.1},
        mass(1 + 0.1 * i),
        inertia{{{0.1 + 0.01 * i, 0.001, 0.002}, {0.001, 0.12, 0.003}, {0.002, 0.003, 0.05}}} {}
  std::array<double, 3> place;
  double turn;
  std::array<double, 3> centre;
  double mass;
  std::array<std::array<double, 3>, 3> inertia;
};

template <class Robot>
const std::vector<Link>& links() {
  static const std::vector<Link> all = [] {
    std::vector<Link> made;
    for (int i = 0; i < Robot::joints; ++i) made.emplace_back(i);
    return made;
  }();
  return all;
}

/// The joints' torques by angles, speeds and accelerations (Newton and Euler).
template <class Robot, class T>
void torques(const T* q, const T* speed, const T* acceleration, double gravity, T* torque) {
  using std::cos, std::sin;
  constexpr int n = Robot::joints;
  const std::vector<Link>& all = links<Robot>();
  const T zero(0.0);
  T turn[n][3][3];
  Vec3<T> w[n], dw[n], a[n], force[n], moment[n];
  const auto from = [&](int i, const Vec3<T>& v) {  // from link i to its parent
    const auto& r = turn[i];
    Vec3<T> out;
    for (int k = 0; k < 3; ++k) out[k] = r[k][0] * v[0] + r[k][1] * v[1] + r[k][2] * v[2];
    return out;
  };
  const auto to = [&](int i, const Vec3<T>& v) {
    const auto& r = turn[i];
    Vec3<T> out;
    for (int k = 0; k < 3; ++k) out[k] = r[0][k] * v[0] + r[1][k] * v[1] + r[2][k] * v[2];
    return out;
  };
  for (int i = 0; i < n; ++i) {
    const Link& link = all[i];
    const int parent = Robot::parent(i);
    const T c = cos(q[i]), s = sin(q[i]);
    const T r[3][3] = {
        {c, T(-s), zero}, {zero, zero, T(-link.turn)}, {T(link.turn * s), T(link.turn * c), zero}};
    for (int k = 0; k < 9; ++k) turn[i][k / 3][k % 3] = r[k / 3][k % 3];
    const Vec3<T> spin{zero, zero, speed[i]};
    if (parent < 0) {
      w[i] = spin;
      dw[i] = {zero, zero, acceleration[i]};
      a[i] = to(i, {zero, zero, T(gravity)});
    } else {
      Vec3<T> moved = a[parent];
      add(moved, cross<T>(dw[parent], link.place));
      add(moved, cross<T>(w[parent], cross<T>(w[parent], link.place)));
      a[i] = to(i, moved);
      w[i] = to(i, w[parent]);
      dw[i] = to(i, dw[parent]);
      add(dw[i], cross<T>(w[i], spin));
      dw[i][2] += acceleration[i];
      w[i][2] += speed[i];
    }
    Vec3<T> f = a[i], turned, grown;
    add(f, cross<T>(dw[i], link.centre));
    add(f, cross<T>(w[i], cross<T>(w[i], link.centre)));
    for (int k = 0; k < 3; ++k) {
      force[i][k] = link.mass * f[k];
      const auto& row = link.inertia[k];
      turned[k] = row[0] * w[i][0] + row[1] * w[i][1] + row[2] * w[i][2];
      grown[k] = row[0] * dw[i][0] + row[1] * dw[i][1] + row[2] * dw[i][2];
    }
    moment[i] = cross<T>(w[i], turned);
    add(moment[i], grown);
    add(moment[i], cross<T>(link.centre, force[i]));
  }
  for (int i = n - 1; i >= 0; --i) {
    torque[i] = moment[i][2];
    const int parent = Robot::parent(i);
    if (parent < 0) continue;
    const Vec3<T> f = from(i, force[i]);
    add(force[parent], f);
    add(moment[parent], from(i, moment[i]));
    add(moment[parent], cross<T>(all[i].place, f));
  }
}

template <class R>
struct InverseDynamics : Problem {
  using Robot = R;
  static constexpr bool forward = false;
  static constexpr int outputs = Robot::joints, inputs = 3 * outputs, lanes = 1000;
  static constexpr const char* name = outputs == 7 ? "arm7/torques" : "body30/torques";
  static double start(int i) { return std::sin(1.0 + i); }
  template <class T>
  static void value(const T* x, T* y) {
    torques<Robot, T>(x, x + outputs, x + 2 * outputs, 9.81, y);
  }
};

/// Accelerations by angles, speeds and torques: the columns of the matrix of masses are torques of
/// unit accelerations.
template <class R>
struct ForwardDynamics : Problem {
  using Robot = R;
  static constexpr bool forward = true;
  static constexpr int outputs = Robot::joints, inputs = 3 * outputs, lanes = 1000;
  static constexpr const char* name = outputs == 7 ? "arm7/accelerations" : "body30/accelerations";
  static double start(int i) { return std::sin(1.0 + i); }
  template <class T>
  static void value(const T* x, T* y) {
    constexpr int n = outputs;
    std::vector<T> none(n, T(0.0)), unit = none;
    T m[n][n];
    torques<Robot, T>(x, x + n, none.data(), 9.81, y);
    for (int i = 0; i < n; ++i) y[i] = x[2 * n + i] - y[i];
    for (int i = 0; i < n; ++i) {
      unit[i] = T(1.0);
      torques<Robot, T>(x, none.data(), unit.data(), 0, m[i]);
      unit[i] = T(0.0);
    }
    // m = l·d·lᵀ, in the lower half
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < i; ++j) {
        const T l = m[i][j] / m[j][j];
        for (int k = j + 1; k <= i; ++k) m[i][k] -= l * (k == i ? m[i][j] : m[k][j] * m[j][j]);
        m[i][j] = l;
      }
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < i; ++k) y[i] -= m[i][k] * y[k];
    for (int i = n - 1; i >= 0; --i) {
      y[i] /= m[i][i];
      for (int k = i + 1; k < n; ++k) y[i] -= m[k][i] * y[k];
    }
  }
};

// --- control, particles, finance -----------------------------------------------------------------

/// A quadrotor's next state (place, quaternion, speed, rates of turn) by its state and four
/// thrusts.
struct QuadrotorStep : Problem {
  static constexpr const char* name = "quadrotor/step";
  static constexpr int outputs = 13, inputs = 17, lanes = 100;
  static constexpr double mass = 0.8, arm = 0.25, drag = 0.1, h = 0.05;
  static constexpr double inertia[3] = {0.02, 0.025, 0.04};
  static double start(int i) { return i < 13 ? 0.3 * std::sin(i + 1.0) + (i == 3) : 2 + 0.1 * i; }
  template <class T>
  static void slope(const T* x, const T* u, T* d) {
    const T *q = x + 3, *w = x + 10;
    const T lift = (u[0] + u[1] + u[2] + u[3]) / mass;
    for (int i = 0; i < 3; ++i) d[i] = x[7 + i];
    d[3] = -0.5 * (q[1] * w[0] + q[2] * w[1] + q[3] * w[2]);
    d[4] = 0.5 * (q[0] * w[0] + q[2] * w[2] - q[3] * w[1]);
    d[5] = 0.5 * (q[0] * w[1] + q[3] * w[0] - q[1] * w[2]);
    d[6] = 0.5 * (q[0] * w[2] + q[1] * w[1] - q[2] * w[0]);
    d[7] = 2.0 * (q[1] * q[3] + q[0] * q[2]) * lift;
    d[8] = 2.0 * (q[2] * q[3] - q[0] * q[1]) * lift;
    d[9] = (1.0 - 2.0 * (q[1] * q[1] + q[2] * q[2])) * lift - 9.81;
    const T moment[3] = {T(arm * (u[1] - u[3])), T(arm * (u[2] - u[0])),
                         T(drag * (u[0] - u[1] + u[2] - u[3]))};
    for (int i = 0, j = 1, k = 2; i < 3; ++i, j = (j + 1) % 3, k = (k + 1) % 3)
      d[10 + i] = (moment[i] - (inertia[k] - inertia[j]) * w[j] * w[k]) / inertia[i];
  }
  template <class T>
  static void value(const T* x, T* y) {
    T d[4][outputs], z[outputs];
    slope(x, x + outputs, d[0]);
    for (int k = 0; k < 3; ++k) {
      for (int i = 0; i < outputs; ++i) z[i] = x[i] + (k == 2 ? h : h / 2) * d[k][i];
      slope<T>(z, x + outputs, d[k + 1]);
    }
    for (int i = 0; i < outputs; ++i)
      y[i] = x[i] + h / 6 * (d[0][i] + 2.0 * d[1][i] + 2.0 * d[2][i] + d[3][i]);
  }
};

/// The Lagrangian of a stage of its control: a quadratic cost, and the next state by multipliers.
struct QuadrotorStage : Problem {
  static constexpr const char* name = "quadrotor/stage";
  static constexpr int inputs = 17, lanes = 100;
  static constexpr bool second = true;
  static double start(int i) { return QuadrotorStep::start(i); }
  template <class T>
  static void value(const T* x, T* y) {
    T next[13], sum(0.0);
    QuadrotorStep::value(x, next);
    for (int i = 0; i < 13; ++i) sum += std::cos(i + 1.0) * next[i];
    for (int i = 0; i < inputs; ++i) sum += (i < 13 ? 1.0 : 0.1) * x[i] * x[i];
    y[0] = sum;
  }
};

/// The potential of bodies that attract each other.
struct Bodies : Problem {
  static constexpr const char* name = "bodies32/energy";
  static constexpr int bodies = 32, inputs = 3 * bodies, lanes = 100;
  static constexpr double soft = 0.01;
  static double mass(int i) { return 1 + 0.1 * i; }
  static double start(int i) { return 5 * std::sin(i * i + 1.0); }
  template <class T>
  static void value(const T* x, T* y) {
    using std::sqrt;
    T sum(0.0);
    for (int i = 0; i < bodies; ++i)
      for (int j = 0; j < i; ++j) {
        const T a = x[3 * i] - x[3 * j], b = x[3 * i + 1] - x[3 * j + 1],
                c = x[3 * i + 2] - x[3 * j + 2];
        sum -= mass(i) * mass(j) / sqrt(a * a + b * b + c * c + soft);
      }
    y[0] = sum;
  }
};

/// The price of an option on a mean of prices, by price, rate, volatility, time and strike.
struct AsianOption : Problem {
  static constexpr const char* name = "asian_option";
  static constexpr int inputs = 5, paths = 1000, steps = 50;
  static constexpr bool expression = false;
  static const std::vector<double>& normals() {
    return numbers(paths * steps, [](int i) {
      return std::sqrt(2.0) * std::sin(1.7 * (i / steps) + 1.0 * (i % steps) * (i % steps));
    });
  }
  static double start(int i) {
    constexpr double x[inputs] = {100, 0.03, 0.2, 1.5, 95};
    return x[i];
  }
  template <class T>
  static void value(const T* x, T* y) {
    using std::exp, std::sqrt;
    const T h = x[3] / (1.0 * steps), drift = (x[1] - x[2] * x[2] / 2.0) * h,
            spread = x[2] * sqrt(h);
    const double* normal = normals().data();
    T sum(0.0);
    for (int path = 0; path < paths; ++path) {
      T price = x[0], mean(0.0);
      for (int step = 0; step < steps; ++step) {
        price *= exp(drift + spread * *normal++);
        mean += price;
      }
      mean /= 1.0 * steps;
      if (mean > x[4]) sum += mean - x[4];
    }
    y[0] = exp(-x[1] * x[3]) * sum / (1.0 * paths);
  }
};

// --- GradBench's small ones ----------------------------------------------------------------------

struct Square : Problem {
  static constexpr const char* name = "square";
  static constexpr int inputs = 1;
  static double start(int) { return 3; }
  template <class T>
  static void value(const T* x, T* y) {
    y[0] = x[0] * x[0];
  }
};

/// A polynomial's squared distance from a step.
struct LeastSquares : Problem {
  static constexpr const char* name = "least_squares";
  static constexpr int inputs = 16, points = 250;
  static const std::vector<double>& places() {
    return numbers(points, [](int i) { return 2.0 * i / (points - 1) - 1; });
  }
  static double start(int i) { return 1.0 / (i + 1); }
  template <class T>
  static void value(const T* x, T* y) {
    T sum(0.0);
    for (int i = 0; i < points; ++i) {
      const double t = places()[i];
      T away(t < 0 ? 1.0 : -1.0);
      double power = 1;
      for (int k = 0; k < inputs; ++k, power *= t) away += power * x[k];
      sum += away * away;
    }
    y[0] = 0.5 * sum;
  }
};

/// Squared distances of points from the nearest of some centres.
struct Clusters : Problem {
  static constexpr const char* name = "clusters";
  static constexpr int points = 500, centres = 10, width = 4, inputs = centres * width;
  static constexpr bool expression = false;
  static const std::vector<double>& coordinates() {
    return numbers(points * width, [](int i) { return std::sin(1.0 * i * i); });
  }
  static double start(int i) { return std::cos(7.0 * i); }
  template <class T>
  static void value(const T* x, T* y) {
    const double* all = coordinates().data();
    T sum(0.0);
    for (int i = 0; i < points; ++i) {
      T least(1e9);
      for (int c = 0; c < centres; ++c) {
        T distance(0.0);
        for (int k = 0; k < width; ++k) {
          const T away = x[c * width + k] - all[i * width + k];
          distance += away * away;
        }
        if (distance < least) least = distance;
      }
      sum += least;
    }
    y[0] = sum;
  }
};

struct ClustersHessian : Clusters {
  static constexpr const char* name = "clusters/hessian";
  static constexpr bool second = true;
};

/// A determinant by its minors.
struct Minors : Problem {
  static constexpr const char* name = "minors6";
  static constexpr int size = 6, inputs = size * size;
  static double start(int i) { return std::sin(1.0 * i * i) + (i % (size + 1) == 0); }
  template <class T>
  static T minor(const T* x, int row, unsigned columns) {
    T sum(0.0);
    double sign = 1;
    for (int k = 0; k < size; ++k) {
      if (!(columns >> k & 1)) continue;
      if (row + 1 == size) return x[row * size + k];
      sum += sign * x[row * size + k] * minor(x, row + 1, columns & ~(1u << k));
      sign = -sign;
    }
    return sum;
  }
  template <class T>
  static void value(const T* x, T* y) {
    y[0] = minor(x, 0, (1u << size) - 1);
  }
};

/// How far from the origin, squared, a particle comes down that two charges push, by the place of
/// one of them.
struct Particle : Problem {
  static constexpr const char* name = "particle";
  static constexpr int inputs = 1;
  static constexpr double h = 0.1;
  static constexpr bool expression = false;
  static double start(int) { return 0.3; }
  template <class T>
  static void value(const T* w, T* y) {
    using std::sqrt;
    T x[2] = {T(0.0), T(8.0)}, v[2] = {T(0.75), T(0.0)};
    const T charge[2] = {T(10.0 - w[0]), T(0.0)};
    for (;;) {
      T next[2], push[2] = {T(0.0), T(0.0)};
      for (const T& height : charge) {
        const T a = x[0] - 10.0, b = x[1] - height, r = a * a + b * b, cube = r * sqrt(r);
        push[0] += a / cube;
        push[1] += b / cube;
      }
      for (int i = 0; i < 2; ++i) next[i] = x[i] + h * v[i];
      if (!(next[1] > 0.0)) break;
      for (int i = 0; i < 2; ++i) x[i] = next[i], v[i] += h * push[i];
    }
    const T end = x[0] - x[1] / v[1] * v[0];
    y[0] = end * end;
  }
};

/// The highest of x² + y² − z² − w² by z and w, which climbing from (1, 1) finds.
struct Saddle : Problem {
  static constexpr const char* name = "saddle";
  static constexpr int inputs = 2, steps = 100;
  static constexpr double rate = 0.05;
  static double start(int i) { return 1 + i; }
  template <class T>
  static void value(const T* x, T* y) {
    T z(1.0), w(1.0);
    for (int i = 0; i < steps; ++i) z -= 2 * rate * z, w -= 2 * rate * w;
    y[0] = x[0] * x[0] + x[1] * x[1] - z * z - w * w;
  }
};

// --- GradBench's models, small -------------------------------------------------------------------

/// The logarithm of the posterior density of a mixture of Gaussians, as perf/gmm.hpp has it, by the
/// logarithms of shares, means and factors.
struct Mixture : Problem {
  static constexpr const char* name = "mixture";
  static constexpr int d = 3, clusters = 5, points = 100, factor = d * (d + 1) / 2;
  static constexpr int inputs = clusters * (1 + d + factor);
  static const std::vector<double>& data() {
    return numbers(points * d, [](int i) { return 2 * std::sin(1.0 * i * i); });
  }
  static double start(int i) { return 0.5 * std::cos(3.0 * i * i); }
  /// Gamma, the prior's spread, is 1 and m, its degrees beyond d + 1, is 0.
  static double constant() {
    const double pi = std::acos(-1.0), degrees = d + 1;
    double log_gamma = 0.25 * d * (d - 1) * std::log(pi);
    for (int j = 1; j <= d; ++j) log_gamma += std::lgamma(0.5 * (degrees + 1 - j));
    return -0.5 * points * d * std::log(2 * pi) +
           clusters * (degrees * d * 0.5 * std::log(2.0) + log_gamma);
  }
  template <class T>
  static void value(const T* x, T* y) {
    using std::exp, std::log;
    const T *means = x + clusters, *factors = means + clusters * d;
    T scales[clusters][d], offset[clusters], sum(constant()), shares(0.0);
    for (int k = 0; k < clusters; ++k) {
      offset[k] = x[k];
      shares += exp(x[k]);
      for (int i = 0; i < factor; ++i) {
        const T& f = factors[k * factor + i];
        if (i < d) scales[k][i] = exp(f), offset[k] += f;
        const T& entry = i < d ? scales[k][i] : f;
        sum += 0.5 * entry * entry;
      }
    }
    for (int point = 0; point < points; ++point) {
      const double* at = data().data() + point * d;
      T terms[clusters];
      for (int k = 0; k < clusters; ++k) {
        T away[d], out[d], squared(0.0);
        for (int i = 0; i < d; ++i) {
          away[i] = at[i] - means[k * d + i];
          out[i] = scales[k][i] * away[i];
        }
        const T* below = factors + k * factor + d;
        for (int column = 0; column < d; ++column)
          for (int row = column + 1; row < d; ++row) out[row] += *below++ * away[column];
        for (int i = 0; i < d; ++i) squared += out[i] * out[i];
        terms[k] = offset[k] - 0.5 * squared;
      }
      T most(0.0), density(0.0);
      if constexpr (!symbolic<T>) {
        most = terms[0];
        for (int k = 1; k < clusters; ++k)
          if (terms[k] > most) most = terms[k];
      }
      for (int k = 0; k < clusters; ++k) density += exp(terms[k] - most);
      sum += most + log(density);
    }
    y[0] = sum - 1.0 * points * log(shares);
  }
};

/// How unlikely a text is, as perf/character_lstm.hpp has it, by the weights of an LSTM.
struct TextModel : Problem {
  static constexpr const char* name = "text_model";
  static constexpr int layers = 2, bits = 14, characters = 12;
  static constexpr int inputs = (layers * 8 + 3) * bits;
  static double start(int i) { return std::sin(1.0 * i * i); }
  static const std::vector<double>& text() {
    return numbers(characters * bits, [](int i) { return 1.0 * (i * i % 7 < 3); });
  }
  template <class T>
  static void value(const T* x, T* y) {
    using std::exp, std::log, std::tanh;
    const auto sigmoid = [](const T& v) { return T(1.0 / (1.0 + exp(-v))); };
    const T* edges = x + layers * 8 * bits;
    std::vector<T> hidden(layers * bits, T(0.0)), cell = hidden;
    T sum(0.0);
    for (int t = 0; t + 1 < characters; ++t) {
      const double *now = text().data() + t * bits, *next = now + bits;
      T all(2.0);
      for (int b = 0; b < bits; ++b) {
        T signal = now[b] * edges[b];
        for (int layer = 0; layer < layers; ++layer) {
          const T* w = x + layer * 8 * bits + b;
          T &h = hidden[layer * bits + b], &c = cell[layer * bits + b];
          const T forget = sigmoid(signal * w[0] + w[4 * bits]),
                  in = sigmoid(h * w[bits] + w[5 * bits]),
                  out = sigmoid(signal * w[2 * bits] + w[6 * bits]),
                  change = tanh(h * w[3 * bits] + w[7 * bits]);
          c = c * forget + in * change;
          h = out * tanh(c);
          signal = h;
        }
        const T predicted = signal * edges[bits + b] + edges[2 * bits + b];
        all += exp(predicted);
        sum += next[b] * predicted;
      }
      double ones = 0;
      for (int b = 0; b < bits; ++b) ones += next[b];
      sum -= ones * log(all);
    }
    y[0] = sum / (-1.0 * (characters - 1) * bits);
  }
};

/// From vertices of a hand to points measured for them, as perf/hand.hpp has it, by its pose: a
/// wrist and five fingers of three bones each.
struct HandPose : Problem {
  static constexpr const char* name = "hand";
  static constexpr int bones = 16, points = 30, inputs = 26, outputs = 3 * points;
  static int parent(int bone) { return bone == 0 ? -1 : bone % 3 == 1 ? 0 : bone - 1; }
  /// The first of a bone's parameters; a finger's first bone has two, the wrist none.
  static int parameter(int bone) {
    return 6 + (bone - 1) / 3 * 4 + (bone + 2) % 3 + (bone % 3 != 1);
  }
  /// An entry of the bones' transformations [4,4] from their parents' frames, and from the resting
  /// pose.
  static double relative(int i) {
    return i / 4 % 4 == i % 4 ? 1 : i / 4 % 4 == 3 ? 0 : 0.2 * std::sin(i + 1.0);
  }
  static double inverse(int i) { return relative(7 * 16 + i); }
  /// A resting vertex with a last 1, and the two bones that it follows by halves.
  static double vertex(int point, int k) { return k == 3 ? 1 : std::cos(3.0 * point + k); }
  static int bone_of(int point, int which) { return (which ? 7 * point + 3 : point) % bones; }
  static double measured(int i) { return std::sin(2.0 * i); }
  static double start(int i) { return 0.4 * std::sin(i + 1.0); }

  template <class T>
  using Frame = std::array<std::array<T, 4>, 3>;
  template <class T>
  static Frame<T> product(const Frame<T>& a, const auto& b) {
    Frame<T> out;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 4; ++j) {
        out[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
        if (j == 3) out[i][j] += a[i][3];
      }
    return out;
  }
  static const std::vector<double>& entries() {
    return numbers(32 * bones,
                   [](int i) { return i < 16 * bones ? relative(i) : inverse(i - 16 * bones); });
  }
  static const std::vector<double>& vertices() {
    return numbers(4 * points, [](int i) { return vertex(i / 4, i % 4); });
  }
  template <class T>
  static void value(const T* x, T* y) {
    using std::cos, std::sin, std::sqrt;
    const T zero(0.0), one(1.0);
    Frame<T> at[bones], moved[bones];
    for (int bone = 0; bone < bones; ++bone) {
      Frame<T> rest;
      Frame<double> back;
      const double* entry = entries().data() + 16 * bone;
      for (int i = 0; i < 12; ++i) {
        rest[i / 4][i % 4] = T(entry[i]);
        back[i / 4][i % 4] = entry[16 * bones + i];
      }
      if (bone > 0) {
        const int first = parameter(bone);
        const T sx = sin(x[first]), cx = cos(x[first]);
        const bool two = bone % 3 == 1;
        const T sz = two ? T(sin(x[first + 1])) : zero, cz = two ? T(cos(x[first + 1])) : one;
        const Frame<T> turn{{{cz, T(-sz * cx), T(sz * sx), zero},
                             {sz, T(cz * cx), T(-cz * sx), zero},
                             {zero, sx, cx, zero}}};
        at[bone] = product(at[parent(bone)], product(rest, turn));
      } else {
        at[bone] = rest;
      }
      moved[bone] = product(at[bone], back);
    }
    const T angle = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]), s = sin(angle), c = cos(angle);
    const Vec3<T> axis{T(x[0] / angle), T(x[1] / angle), T(x[2] / angle)};
    for (int point = 0; point < points; ++point) {
      const double* at_rest = vertices().data() + 4 * point;
      Vec3<T> v;
      for (int i = 0; i < 3; ++i) {
        v[i] = zero;
        for (int which = 0; which < 2; ++which)
          for (int k = 0; k < 4; ++k) v[i] += 0.5 * at_rest[k] * moved[bone_of(point, which)][i][k];
      }
      const Vec3<T> aside = cross<T>(axis, v);
      const T along = (axis[0] * v[0] + axis[1] * v[1] + axis[2] * v[2]) * (1.0 - c);
      for (int i = 0; i < 3; ++i)
        y[3 * point + i] =
            measured(3 * point + i) - (c * v[i] + s * aside[i] + along * axis[i] + x[3 + i]);
    }
  }
};

using All = std::tuple<LogSumExp, BundleBlock, LotkaVolterra, InverseDynamics<Arm>,
                       ForwardDynamics<Arm>, InverseDynamics<Body>, QuadrotorStep, QuadrotorStage,
                       Bodies, AsianOption, Square, LeastSquares, Clusters, ClustersHessian, Minors,
                       Particle, Saddle, Mixture, TextModel, HandPose>;

template <class P>
constexpr int derivatives = P::inputs * (P::second ? P::inputs : P::outputs);

/// Where lane `lane` is evaluated.
template <class P>
std::vector<double> start(int lane = 0) {
  std::vector<double> x(P::inputs);
  for (int i = 0; i < P::inputs; ++i) x[i] = P::start(i) * (1 + 1e-3 * std::sin(1.0 * lane));
  return x;
}

/// Does the regular expression `filter` let through any row of P by `who`?
template <class P>
bool wanted(const std::string& filter, const std::string& who) {
  const std::regex expression(filter);
  for (const std::string& many : {std::string(), "/" + std::to_string(P::lanes)})
    for (const std::string what : {"/first/", "/value/", "/derivative/"})
      if (std::regex_search(P::name + many + what + who, expression)) return true;
  return false;
}

inline void expect(const std::string& what, double actual, double expected, double tolerance) {
  if (std::abs(actual - expected) <= tolerance * (1 + std::abs(expected))) return;
  std::fprintf(stderr, "%s: %.17g, but plain C++ gives %.17g\n", what.c_str(), actual, expected);
  std::exit(1);
}

/// Compares the value `y` and the derivative `d` [outputs, inputs] with plain C++, the latter along
/// some directions by differences.
template <class P>
void check(const std::string& who, const std::vector<double>& x, const double* y, const double* d) {
  const std::string of = std::string(P::name) + " by " + who;
  std::vector<double> middle(P::outputs), up(P::outputs), down(P::outputs);
  P::template value<double>(x.data(), middle.data());
  for (int i = 0; y && i < P::outputs; ++i) expect("value of " + of, y[i], middle[i], 1e-9);
  for (int direction = 1; d && direction <= 3; ++direction) {
    const double h = P::second ? 3e-5 : 1e-5;
    std::vector<double> along(P::inputs), at = x;
    for (int i = 0; i < P::inputs; ++i) along[i] = std::sin(direction * (i + 1.0));
    for (int i = 0; i < P::inputs; ++i) at[i] = x[i] + h * along[i];
    P::template value<double>(at.data(), up.data());
    for (int i = 0; i < P::inputs; ++i) at[i] = x[i] - h * along[i];
    P::template value<double>(at.data(), down.data());
    for (int row = 0; row < P::outputs; ++row) {
      double sum = 0;
      for (int i = 0; i < P::inputs; ++i)
        if constexpr (P::second)
          for (int j = 0; j < P::inputs; ++j) sum += along[i] * d[i * P::inputs + j] * along[j];
        else sum += d[row * P::inputs + i] * along[i];
      expect("derivative of " + of, sum,
             P::second ? (up[row] - 2 * middle[row] + down[row]) / (h * h)
                       : (up[row] - down[row]) / (2 * h),
             P::second ? 1e-5 : 1e-6);
    }
  }
}

}  // namespace problems
