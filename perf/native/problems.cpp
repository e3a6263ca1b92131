// The problems with vt, each written for one example, as its user would.
#include "problems.hpp"

#include <chrono>
#include <fstream>

#include "../bundle.hpp"
#include "../character_lstm.hpp"
#include "../gmm.hpp"
#include "../hand.hpp"
#include "../support.hpp"
#include "native.hpp"

namespace {

using vt::slice, vt::Tensor;

Tensor bundle_block(const Tensor& x) {
  static const Tensor seen = vt::tensor({0.3, -0.2});
  return perf::reprojection_error(x[slice(0, 11)], x[slice(11, 14)], x[14], seen);
}

Tensor lotka_volterra(const Tensor& x) {
  constexpr double h = problems::LotkaVolterra::h;
  const auto slope = [&](const Tensor& u) {
    const Tensor meet = u[0] * u[1];
    return vt::stack({x[2] * u[0] - x[3] * meet, x[5] * meet - x[4] * u[1]});
  };
  const auto step = [&](Tensor, const Tensor& u) {
    const Tensor a = slope(u), b = slope(u + h / 2 * a), c = slope(u + h / 2 * b),
                 d = slope(u + h * c);
    return u + h / 6 * (a + 2 * b + 2 * c + d);
  };
  return vt::fori_loop(0, problems::LotkaVolterra::steps, step, x[slice(0, 2)]);
}

// --- robots --------------------------------------------------------------------------------------

Tensor turn_of(double right_angles, const Tensor& q) {
  const Tensor place =
      vt::tensor({{1.0, 0.0, 0.0}, {0.0, 0.0, -right_angles}, {0.0, right_angles, 0.0}});
  const Tensor c = vt::cos(q), s = vt::sin(q), o = vt::zeros({}, vt::f64);
  return vt::matmul(
      place, vt::stack({vt::stack({c, -s, o}), vt::stack({s, c, o}), vt::stack({o, o, o + 1.0})}));
}

template <class Robot>
Tensor torques(const Tensor& q, const Tensor& speed, const Tensor& acceleration, double gravity) {
  using vt::cross, vt::matmul, vt::transpose;
  const Tensor z = vt::tensor({0.0, 0.0, 1.0});
  const auto constant = [](const auto& v) { return vt::tensor(std::vector(v.begin(), v.end())); };
  constexpr int n = Robot::joints;
  std::vector<Tensor> turn(n), w(n), dw(n), a(n), force(n), moment(n), torque(n);
  for (int i = 0; i < n; ++i) {
    const problems::Link link(i);
    const Tensor place = constant(link.place), centre = constant(link.centre);
    const double* entries = link.inertia[0].data();
    const Tensor inertia = vt::tensor(std::vector(entries, entries + 9), {3, 3});
    const int parent = Robot::parent(i);
    turn[i] = turn_of(link.turn, q[i]);
    const Tensor to = transpose(turn[i]), none = vt::zeros({3}, vt::f64);
    const Tensor w0 = parent < 0 ? none : w[parent], dw0 = parent < 0 ? none : dw[parent],
                 a0 = parent < 0 ? gravity * z : a[parent];
    const Tensor carried = matmul(to, w0);
    a[i] = matmul(to, a0 + cross(dw0, place) + cross(w0, cross(w0, place)));
    w[i] = carried + z * speed[i];
    dw[i] = matmul(to, dw0) + cross(carried, z * speed[i]) + z * acceleration[i];
    force[i] = link.mass * (a[i] + cross(dw[i], centre) + cross(w[i], cross(w[i], centre)));
    moment[i] =
        matmul(inertia, dw[i]) + cross(w[i], matmul(inertia, w[i])) + cross(centre, force[i]);
  }
  for (int i = n - 1; i >= 0; --i) {
    torque[i] = moment[i][2];
    const int parent = Robot::parent(i);
    if (parent < 0) continue;
    const Tensor f = matmul(turn[i], force[i]);
    force[parent] = force[parent] + f;
    moment[parent] =
        moment[parent] + matmul(turn[i], moment[i]) + cross(constant(problems::Link(i).place), f);
  }
  return vt::stack(torque);
}

template <class Robot>
Tensor inverse_dynamics(const Tensor& x) {
  constexpr int n = Robot::joints;
  return torques<Robot>(x[slice(0, n)], x[slice(n, 2 * n)], x[slice(2 * n, 3 * n)], 9.81);
}

template <class Robot>
Tensor forward_dynamics(const Tensor& x) {
  constexpr int n = Robot::joints;
  const Tensor q = x[slice(0, n)], none = vt::zeros({n}, vt::f64);
  const auto unit = [&](const Tensor& a) { return torques<Robot>(q, none, a, 0); };
  const Tensor masses = vt::vmap(unit)(vt::eye(n, vt::f64));
  return vt::solve(masses,
                   x[slice(2 * n, 3 * n)] - torques<Robot>(q, x[slice(n, 2 * n)], none, 9.81));
}

// --- control, particles, finance -----------------------------------------------------------------

Tensor quadrotor_slope(const Tensor& x, const Tensor& u) {
  using Q = problems::QuadrotorStep;
  static const Tensor inertia = vt::tensor({Q::inertia[0], Q::inertia[1], Q::inertia[2]});
  const Tensor q = x[slice(3, 7)], w = x[slice(10, 13)], s = q[0], v = q[slice(1, 4)];
  const Tensor lift = vt::sum(u) / Q::mass;
  const Tensor up = vt::stack({2.0 * (v[0] * v[2] + s * v[1]), 2.0 * (v[1] * v[2] - s * v[0]),
                               1.0 - 2.0 * (v[0] * v[0] + v[1] * v[1])});
  const Tensor moment = vt::stack(
      {Q::arm * (u[1] - u[3]), Q::arm * (u[2] - u[0]), Q::drag * (u[0] - u[1] + u[2] - u[3])});
  return vt::concatenate({x[slice(7, 10)], vt::reshape(-0.5 * vt::dot(v, w), {1}),
                          0.5 * (s * w + vt::cross(v, w)), up * lift - vt::tensor({0.0, 0.0, 9.81}),
                          (moment - vt::cross(w, inertia * w)) / inertia});
}
Tensor quadrotor_step(const Tensor& xu) {
  constexpr double h = problems::QuadrotorStep::h;
  const Tensor x = xu[slice(0, 13)], u = xu[slice(13, 17)];
  const Tensor a = quadrotor_slope(x, u), b = quadrotor_slope(x + h / 2 * a, u),
               c = quadrotor_slope(x + h / 2 * b, u), d = quadrotor_slope(x + h * c, u);
  return x + h / 6 * (a + 2 * b + 2 * c + d);
}
Tensor quadrotor_stage(const Tensor& xu) {
  const Tensor x = xu[slice(0, 13)], u = xu[slice(13, 17)];
  const Tensor multipliers = vt::cos(vt::arange(13).astype(vt::f64) + 1.0);
  return vt::dot(multipliers, quadrotor_step(xu)) + vt::dot(x, x) + 0.1 * vt::dot(u, u);
}

Tensor bodies(const Tensor& x) {
  constexpr int n = problems::Bodies::bodies;
  const Tensor at = vt::reshape(x, {n, 3}), mass = 1.0 + 0.1 * vt::arange(n).astype(vt::f64);
  const auto pair = [](Tensor a, Tensor b, Tensor m, Tensor k) {
    const Tensor away = a - b;
    return m * k / vt::sqrt(vt::dot(away, away) + problems::Bodies::soft);
  };
  const auto row = vt::vmap(pair, {.in_axes = {vt::unmapped, 0, vt::unmapped, 0}});
  const Tensor all =
      vt::vmap(row, {.in_axes = {0, vt::unmapped, 0, vt::unmapped}})(at, at, mass, mass);
  return -vt::sum(vt::tril(all, -1));
}

Tensor asian_option(const Tensor& x) {
  using O = problems::AsianOption;
  static const Tensor normals = vt::tensor(O::normals(), {O::paths, O::steps});
  const Tensor h = x[3] / O::steps, drift = (x[1] - x[2] * x[2] / 2.0) * h,
               spread = x[2] * vt::sqrt(h);
  const auto gain = [&](const Tensor& normal) {
    const Tensor prices = x[0] * vt::exp(vt::cumsum(drift + spread * normal));
    return vt::relu(vt::mean(prices) - x[4]);
  };
  return vt::exp(-x[1] * x[3]) * vt::mean(vt::vmap(gain)(normals));
}

// --- GradBench's small ones ----------------------------------------------------------------------

Tensor square(const Tensor& x) { return x[0] * x[0]; }

Tensor least_squares(const Tensor& x) {
  using L = problems::LeastSquares;
  static const Tensor t = vt::tensor(L::places());
  const auto away = [&](const Tensor& t) {
    const Tensor powers = vt::pow(t, vt::arange(L::inputs));
    return vt::dot(powers, x) + vt::where(t < 0.0, 1.0, -1.0);
  };
  return 0.5 * vt::sum(vt::square(vt::vmap(away)(t)));
}

Tensor clusters(const Tensor& x) {
  using C = problems::Clusters;
  static const Tensor points = vt::tensor(C::coordinates(), {C::points, C::width});
  const Tensor centres = vt::reshape(x, {C::centres, C::width});
  const auto nearest = [&](const Tensor& point) {
    return vt::min(vt::sum(vt::square(centres - point), 1));
  };
  return vt::sum(vt::vmap(nearest)(points));
}

Tensor minor(const Tensor& m, int row, unsigned columns) {
  constexpr int size = problems::Minors::size;
  Tensor sum;
  double sign = 1;
  for (int k = 0; k < size; ++k) {
    if (!(columns >> k & 1)) continue;
    if (row + 1 == size) return m[row][k];
    const Tensor term = sign * m[row][k] * minor(m, row + 1, columns & ~(1u << k));
    sum = sign == 1 && !(columns & ((1u << k) - 1)) ? term : sum + term;
    sign = -sign;
  }
  return sum;
}
Tensor minors(const Tensor& x) {
  constexpr int size = problems::Minors::size;
  return minor(vt::reshape(x, {size, size}), 0, (1u << size) - 1);
}

Tensor particle(const Tensor& w) {
  constexpr double h = problems::Particle::h;
  const auto potential = [&](const Tensor& x) {
    const auto of = [&](const Tensor& height) {
      const Tensor a = x[0] - 10.0, b = x[1] - height;
      return 1.0 / vt::sqrt(a * a + b * b);
    };
    return of(10.0 - w[0]) + of(vt::tensor(0.0));
  };
  const auto flies = [&](const Tensor& x, const Tensor& v) { return (x + h * v)[1] > 0.0; };
  const auto step = [&](const Tensor& x, const Tensor& v) {
    return std::pair(x + h * v, v - h * vt::grad(potential)(x));
  };
  const auto [x, v] =
      vt::while_loop(flies, step, std::pair(vt::tensor({0.0, 8.0}), vt::tensor({0.75, 0.0})));
  return vt::square(x[0] - x[1] / v[1] * v[0]);
}

Tensor saddle(const Tensor& x) {
  const auto height = [](const Tensor& x, const Tensor& z) {
    return vt::dot(x, x) - vt::dot(z, z);
  };
  const auto climb = [&](Tensor, const Tensor& z) {
    return z + problems::Saddle::rate * vt::grad<1>(height)(x, z);
  };
  return height(x, vt::fori_loop(0, problems::Saddle::steps, climb, vt::ones({2}, vt::f64)));
}

// --- GradBench's models, small -------------------------------------------------------------------

Tensor mixture(const Tensor& x) {
  using M = problems::Mixture;
  perf::Gmm g;
  g.dimensions = M::d, g.clusters = M::clusters, g.points = M::points;
  g.wishart_gamma = 1;
  g.x = vt::tensor(M::data(), {M::points, M::d});
  constexpr int k = M::clusters, means = k * (1 + M::d);
  return perf::gmm_objective(g)(x[slice(0, k)], vt::reshape(x[slice(k, means)], {k, M::d}),
                                vt::reshape(x[slice(means, M::inputs)], {k, M::factor}));
}

Tensor text_model(const Tensor& x) {
  using M = problems::TextModel;
  perf::CharacterLstm m;
  m.start = vt::zeros({M::layers, 2, M::bits}, vt::f64);
  m.text = vt::tensor(M::text(), {M::characters, M::bits});
  constexpr int layers = M::layers * 8 * M::bits;
  return perf::character_lstm_objective(m)(
      vt::reshape(x[slice(0, layers)], {M::layers, 2, 4, M::bits}),
      vt::reshape(x[slice(layers, M::inputs)], {3, M::bits}));
}

Tensor hand(const Tensor& x) {
  using H = problems::HandPose;
  perf::Hand h;
  std::vector<int> angles, all;
  std::vector<double> skin(H::points * H::bones * 4), measured;
  for (int bone = 0; bone < H::bones; ++bone) {
    h.parents.push_back(H::parent(bone));
    const int first = bone ? H::parameter(bone) : 26;
    for (int i : {first, bone % 3 == 1 ? first + 1 : 26, 26}) angles.push_back(i);
  }
  for (int point = 0; point < H::points; ++point) {
    all.push_back(point);
    for (int which : {0, 1})
      for (int k = 0; k < 4; ++k)
        skin[(point * H::bones + H::bone_of(point, which)) * 4 + k] += 0.5 * H::vertex(point, k);
  }
  for (int i = 0; i < H::outputs; ++i) measured.push_back(H::measured(i));
  const Tensor entries = vt::tensor(H::entries(), {2, H::bones, 4, 4});
  h.relatives = entries[0];
  h.inverses = entries[1];
  h.angles = vt::tensor(angles, {H::bones, 3});
  h.skin = vt::tensor(skin, {H::points, H::bones, 4});
  h.measured = vt::tensor(measured, {H::points, 3});
  h.correspondences = vt::tensor(all);
  return perf::hand_objective(h)(x);
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Rows of the jitted `f` at `x`, which writes `count` numbers into memory of the caller. `finite`:
/// JitOptions::assume_finite.
std::vector<double> rows_of(const std::string& name, const auto& f, const std::vector<double>& at,
                            const vt::Shape& shape, std::size_t count, bool first, bool finite) {
  // They live as long as the rows.
  auto& x = *new std::vector<double>(at);
  auto& out = *new std::vector<double>(count);
  const Tensor given = vt::borrow(std::span<const double>(x), shape);
  const auto jitted = vt::jit(f, {.assume_finite = finite});
  const std::string vt = finite ? "vt_finite" : "vt";
  const double begin = seconds();
  jitted.into(out)(given);
  const double taken = seconds() - begin;
  if (first)
    benchmark::RegisterBenchmark((name.substr(0, name.rfind('/')) + "/first/" + vt).c_str(),
                                 [taken](benchmark::State& state) {
                                   for (auto _ : state) state.SetIterationTime(taken);
                                 })
        ->UseManualTime()
        ->Iterations(1);
  vt::wait_compiled();
  jitted.into(out)(given);
  const double scratch = jitted.memory(given).scratch / 1024.0;
  benchmark::RegisterBenchmark((name + "/" + vt).c_str(), [=, &out](benchmark::State& state) {
    if (vt::num_threads() != 1) vt::set_num_threads(1);
    jitted.into(out)(given);
    vt::wait_compiled();
    for (auto _ : state) jitted.into(out)(given);
    state.counters["extra_KB"] = scratch;
  })->UseRealTime();
  return out;
}

/// In both settings; the results are those of the strict one.
std::vector<double> rows(const std::string& name, const auto& f, const std::vector<double>& at,
                         const vt::Shape& shape, std::size_t count, bool first = false) {
  const std::vector<double> finite = rows_of(name, f, at, shape, count, first, true),
                            strict = rows_of(name, f, at, shape, count, first, false);
  for (std::size_t i = 0; i < count; ++i)
    problems::expect((name + ", assume_finite").c_str(), finite[i], strict[i], 1e-9);
  return strict;
}

template <class P>
void problem(std::ostream& reference, Tensor (*f)(const Tensor&)) {
  if (!problems::wanted<P>(benchmark::GetBenchmarkFilter(), "vt")) return;
  const auto derivative = [f] {
    if constexpr (P::second) return vt::hessian(f);
    else if constexpr (P::outputs == 1) return vt::grad(f);
    else return vt::jacobian(f);
  }();
  const std::string name = P::name;
  const std::vector<double> x = problems::start<P>();
  constexpr int outputs = P::outputs, derivatives = problems::derivatives<P>;
  const std::vector<double> d =
      rows(name + "/derivative", derivative, x, {P::inputs}, derivatives, true);
  const std::vector<double> y = rows(name + "/value", f, x, {P::inputs}, outputs);
  problems::check<P>("vt", x, y.data(), d.data());
  const auto list = [&](const char* what, const std::vector<double>& values) {
    reference << what;
    for (std::size_t i = 0; i < values.size(); ++i) reference << (i ? "," : "[") << values[i];
    reference << "]";
  };
  list(("\"" + name + "\": {\"x\": ").c_str(), x);
  list(", \"y\": ", y);
  list(", \"d\": ", d);
  reference << ", \"lanes\": " << P::lanes << "},\n";
  if constexpr (P::lanes > 0) {
    constexpr int lanes = P::lanes;
    std::vector<double> all;
    for (int lane = 0; lane < lanes; ++lane)
      for (const double v : problems::start<P>(lane)) all.push_back(v);
    const std::string many = name + "/" + std::to_string(lanes);
    const vt::Shape shape{lanes, P::inputs};
    const auto ds =
        rows(many + "/derivative", vt::vmap(derivative), all, shape, lanes * derivatives, true);
    const auto ys = rows(many + "/value", vt::vmap(f), all, shape, lanes * outputs);
    for (int lane : {0, 1, lanes - 1})
      problems::check<P>("vt", problems::start<P>(lane), ys.data() + lane * outputs,
                         ds.data() + lane * derivatives);
  }
}

}  // namespace

void problem_rows(const char* reference) {
  std::ofstream file(reference ? reference : "/dev/null");
  file.precision(17);
  file << "{";
  using namespace problems;
  problem<LogSumExp>(file, [](const Tensor& x) { return vt::logsumexp(x); });
  problem<BundleBlock>(file, bundle_block);
  problem<LotkaVolterra>(file, lotka_volterra);
  problem<InverseDynamics<Arm>>(file, inverse_dynamics<Arm>);
  problem<ForwardDynamics<Arm>>(file, forward_dynamics<Arm>);
  problem<InverseDynamics<Body>>(file, inverse_dynamics<Body>);
  problem<QuadrotorStep>(file, quadrotor_step);
  problem<QuadrotorStage>(file, quadrotor_stage);
  problem<Bodies>(file, bodies);
  problem<AsianOption>(file, asian_option);
  problem<Square>(file, square);
  problem<LeastSquares>(file, least_squares);
  problem<Clusters>(file, clusters);
  problem<ClustersHessian>(file, clusters);
  problem<Minors>(file, minors);
  problem<Particle>(file, particle);
  problem<Saddle>(file, saddle);
  problem<Mixture>(file, mixture);
  problem<TextModel>(file, text_model);
  problem<HandPose>(file, hand);
  file << "\"\": {}}\n";
}
