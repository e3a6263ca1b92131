// Real objectives from end to end: bundle adjustment, hand tracking and the character LSTM of the
// ADBench suite, against plain loops, whose derivatives are those of complex steps: f(x + ih) has
// the derivative in its imaginary part, to the last bit.
#include <array>

#include "perf/bundle.hpp"
#include "perf/character_lstm.hpp"
#include "perf/hand.hpp"
#include "support/data.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using Complex = std::complex<double>;
using Numbers = std::vector<double>;
template <class T>
using Triple = std::array<T, 3>;

const std::string data = vt_test::data_folder();
constexpr double step = 1e-40;
constexpr vt_test::Tolerance near{.relative = 1e-11, .absolute = 1e-12};

/// f's columns of derivatives by each of `x`, element by element of f's result: [results × x].
template <class F>
Numbers complex_step_jacobian(F f, const Numbers& x) {
  std::vector<Complex> at(x.begin(), x.end());
  Numbers jacobian;
  for (std::size_t i = 0; i < x.size(); ++i) {
    at[i] = Complex(x[i], step);
    const auto moved = f(at);
    at[i] = x[i];
    if (jacobian.empty()) jacobian.resize(moved.size() * x.size());
    for (std::size_t k = 0; k < moved.size(); ++k)
      jacobian[k * x.size() + i] = moved[k].imag() / step;
  }
  return jacobian;
}

template <class T>
T dot(const Triple<T>& a, const Triple<T>& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
template <class T>
Triple<T> cross(const Triple<T>& a, const Triple<T>& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
template <class T>
Triple<T> transposed(const Triple<T>& rotation, const Triple<T>& v) {
  const T angle = std::sqrt(dot(rotation, rotation));
  const Triple<T> across = cross(rotation, v);
  Triple<T> out;
  for (int i = 0; i < 3; ++i) {
    if (angle == 0.0) out[i] = v[i] + across[i];
    else
      out[i] = v[i] * std::cos(angle) + across[i] * (std::sin(angle) / angle) +
               rotation[i] * (dot(rotation, v) * (1.0 - std::cos(angle)) / (angle * angle));
  }
  return out;
}

// ---- bundle adjustment --------------------------------------------------------------------------

/// One observation: 11 numbers of the camera, 3 of the point, the weight.
template <class T>
std::vector<T> plain_reprojection(const std::vector<T>& p, const double* feature) {
  const Triple<T> seen =
      transposed<T>({p[0], p[1], p[2]}, {p[11] - p[3], p[12] - p[4], p[13] - p[5]});
  const T x = seen[0] / seen[2], y = seen[1] / seen[2], squared = x * x + y * y,
          extend = 1.0 + p[9] * squared + p[10] * squared * squared;
  return {p[14] * (p[6] * x * extend + p[7] - feature[0]),
          p[14] * (p[6] * y * extend + p[8] - feature[1])};
}

/// Ten observations; the second camera is not transposed, which takes the other branch.
perf::Bundle bundle() {
  perf::Bundle b = perf::read_bundle(data + "ba_test.txt", 0.01);
  const Tensor still = vt::concatenate({vt::zeros({3}, vt::f64), b.cameras[1][vt::slice(3, 11)]});
  b.cameras = vt::stack({b.cameras[0], still}).eval();
  return b;
}

TEST(AdBench, BundleAdjustment) {
  const perf::Bundle b = bundle();
  const Numbers cameras = b.cameras.to_vector<double>(), points = b.points.to_vector<double>(),
                weights = b.weights.to_vector<double>(), features = b.features.to_vector<double>();
  const std::vector<int> camera_of = b.camera_of.to_vector<int>(),
                         point_of = b.point_of.to_vector<int>();
  const auto count = static_cast<std::size_t>(b.observations);
  Numbers residuals, weight_residuals, by_camera, by_point, by_weight, by_own_weight;
  for (std::size_t i = 0; i < count; ++i) {
    Numbers own(cameras.begin() + 11 * camera_of[i], cameras.begin() + 11 * camera_of[i] + 11);
    own.insert(own.end(), points.begin() + 3 * point_of[i], points.begin() + 3 * point_of[i] + 3);
    own.push_back(weights[i]);
    const double* feature = &features[2 * i];
    for (double r : plain_reprojection(own, feature)) residuals.push_back(r);
    weight_residuals.push_back(1 - weights[i] * weights[i]);
    by_own_weight.push_back(-2 * weights[i]);
    const Numbers j = complex_step_jacobian(
        [&](const std::vector<Complex>& p) { return plain_reprojection(p, feature); }, own);
    for (int row = 0; row < 2; ++row) {
      by_camera.insert(by_camera.end(), j.begin() + 15 * row, j.begin() + 15 * row + 11);
      by_point.insert(by_point.end(), j.begin() + 15 * row + 11, j.begin() + 15 * row + 14);
      by_weight.push_back(j[15 * row + 14]);
    }
  }
  const auto n = static_cast<std::int64_t>(count);
  const auto f = perf::bundle_objective(b);
  const auto jacobian = perf::bundle_jacobian(b);
  const auto check = [&](const auto& values, const auto& blocks) {
    expect_close(values.first, vt::tensor(residuals, {n, 2}), near);
    expect_close(values.second, vt::tensor(weight_residuals, {n}), near);
    expect_close(std::get<0>(blocks), vt::tensor(by_camera, {n, 2, 11}), near);
    expect_close(std::get<1>(blocks), vt::tensor(by_point, {n, 2, 3}), near);
    expect_close(std::get<2>(blocks), vt::tensor(by_weight, {n, 2}), near);
    expect_close(std::get<3>(blocks), vt::tensor(by_own_weight, {n}), near);
  };
  check(f(b.cameras, b.points, b.weights), jacobian(b.cameras, b.points, b.weights));
  check(vt::jit(f)(b.cameras, b.points, b.weights),
        vt::jit(jacobian)(b.cameras, b.points, b.weights));

  // Each block alone, without vmap.
  const auto blocks = vt::jit(jacobian)(b.cameras, b.points, b.weights);
  for (int i = 0; i < b.observations; ++i) {
    const auto own = vt::jacobian<0, 1, 2>(perf::reprojection_error)(
        b.cameras[camera_of[i]], b.points[point_of[i]], b.weights[i], b.features[i]);
    expect_close(std::get<0>(own), std::get<0>(blocks)[i], near);
    expect_close(std::get<1>(own), std::get<1>(blocks)[i], near);
    expect_close(std::get<2>(own), std::get<2>(blocks)[i], near);
  }
}

// ---- hand tracking ------------------------------------------------------------------------------

template <class T>
using Matrix = std::array<std::array<T, 4>, 4>;
template <class A, class B, class T = decltype(A() * B())>
Matrix<T> product(const Matrix<A>& a, const Matrix<B>& b) {
  Matrix<T> out{};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 4; ++k) out[i][j] += a[i][k] * b[k][j];
  return out;
}
/// A turn in the plane of two axes.
template <class T>
Matrix<T> plane_turn(int first, int second, T angle) {
  Matrix<T> out{};
  for (int i = 0; i < 4; ++i) out[i][i] = 1;
  out[first][first] = out[second][second] = std::cos(angle);
  out[second][first] = std::sin(angle);
  out[first][second] = -std::sin(angle);
  return out;
}

/// The hand on the host.
struct PlainHand {
  std::vector<int> parents, triangles, correspondences;
  std::vector<Matrix<double>> relatives, inverses;
  Numbers skin, measured;
  bool on_triangles;

  PlainHand(const perf::Hand& h, bool with_us)
      : parents(h.parents),
        triangles(h.triangles.to_vector<int>()),
        correspondences(h.correspondences.to_vector<int>()),
        relatives(matrices(h.relatives)),
        inverses(matrices(h.inverses)),
        skin(h.skin.to_vector<double>()),
        measured(h.measured.to_vector<double>()),
        on_triangles(with_us) {}
  static std::vector<Matrix<double>> matrices(const Tensor& t) {
    const Numbers all = t.to_vector<double>();
    std::vector<Matrix<double>> out(all.size() / 16);
    for (std::size_t i = 0; i < all.size(); ++i) out[i / 16][i % 16 / 4][i % 4] = all[i];
    return out;
  }

  /// theta, and two numbers for each correspondence where they are on triangles.
  template <class T>
  std::vector<T> residuals(const std::vector<T>& x) const {
    std::vector<Matrix<T>> absolute, transforms;
    for (std::size_t bone = 0; bone < parents.size(); ++bone) {
      Matrix<T> pose = product(relatives[bone], plane_turn<T>(0, 1, 0.0));
      // Bones 2 to 21: five fingers of four; the last of each does not turn.
      if (const std::size_t finger = (bone - 2) / 4, joint = (bone - 2) % 4;
          bone >= 2 && finger < 5 && joint < 3) {
        const std::size_t first = 6 + 4 * finger;
        const T bend = x[joint == 0 ? first : first + joint + 1];
        if (joint == 0) pose = product(pose, plane_turn<T>(0, 1, x[first + 1]));
        pose = product(pose, plane_turn<T>(1, 2, bend));
      }
      absolute.push_back(parents[bone] < 0 ? pose : product(absolute[parents[bone]], pose));
      transforms.push_back(product(absolute.back(), inverses[bone]));
    }
    const auto vertex = [&](int v) {
      Triple<T> at{};
      for (std::size_t bone = 0; bone < parents.size(); ++bone) {
        const double* own = &skin[4 * (static_cast<std::size_t>(v) * parents.size() + bone)];
        for (int i = 0; i < 3 && own[3] != 0; ++i)
          for (int j = 0; j < 4; ++j) at[i] += transforms[bone][i][j] * own[j];
      }
      Triple<T> place = transposed<T>({x[0], x[1], x[2]}, at);
      for (int i = 0; i < 3; ++i) place[i] += x[3 + i];
      return place;
    };
    std::vector<T> out;
    for (std::size_t k = 0; k < correspondences.size(); ++k) {
      const int c = correspondences[k];
      Triple<T> at{};
      if (on_triangles) {
        const T u = x[26 + 2 * k], v = x[26 + 2 * k + 1];
        const Triple<T> p = vertex(triangles[3 * c]), q = vertex(triangles[3 * c + 1]),
                        r = vertex(triangles[3 * c + 2]);
        for (int i = 0; i < 3; ++i) at[i] = u * p[i] + v * q[i] + (1.0 - u - v) * r[i];
      } else {
        at = vertex(c);
      }
      for (int i = 0; i < 3; ++i) out.push_back(measured[3 * k + i] - at[i]);
    }
    return out;
  }
};

TEST(AdBench, HandOfVertices) {
  const perf::Hand h = perf::read_hand(data + "hand", "simple_c100", false);
  const PlainHand plain(h, false);
  const Numbers theta = h.theta.to_vector<double>();
  const Tensor values = vt::tensor(plain.residuals(theta), {100, 3});
  const Tensor slopes =
      vt::tensor(complex_step_jacobian(
                     [&](const std::vector<Complex>& x) { return plain.residuals(x); }, theta),
                 {100, 3, 26});
  const auto f = perf::hand_objective(h);
  expect_close(f(h.theta), values, near);
  expect_close(vt::jit(f)(h.theta), values, near);
  for (const auto& jacobian : {vt::jit(vt::jacobian(f))(h.theta), vt::jacfwd(f)(h.theta),
                               vt::jit(vt::jacrev(f, {.chunk = 50}))(h.theta)})
    expect_close(jacobian, slopes, near);
}

TEST(AdBench, HandOnTriangles) {
  const perf::Hand h = perf::read_hand(data + "hand", "complicated_c100", true);
  const PlainHand plain(h, true);
  Numbers x = h.theta.to_vector<double>();
  for (double u : h.us.to_vector<double>()) x.push_back(u);
  const auto residuals = [&](const std::vector<Complex>& moved) { return plain.residuals(moved); };
  Numbers by_theta, by_us;
  const Numbers all = complex_step_jacobian(residuals, x);  // [300, 226]
  for (std::size_t row = 0; row < 300; ++row)
    for (std::size_t column = 0; column < x.size(); ++column) {
      const double slope = all[row * x.size() + column];
      if (column < 26) by_theta.push_back(slope);
      else if ((column - 26) / 2 == row / 3) by_us.push_back(slope);
      else EXPECT_EQ(slope, 0);
    }
  const auto f = perf::hand_objective_on_triangles(h);
  const auto jacobian = perf::hand_jacobian_on_triangles(h);
  for (const Tensor& value : {f(h.theta, h.us), vt::jit(f)(h.theta, h.us)})
    expect_close(value, vt::tensor(plain.residuals(x), {100, 3}), near);
  for (const auto& [theta, us] : {jacobian(h.theta, h.us), vt::jit(jacobian)(h.theta, h.us)}) {
    expect_close(theta, vt::tensor(by_theta, {100, 3, 26}), near);
    expect_close(us, vt::tensor(by_us, {100, 3, 2}), near);
  }
}

// ---- the character LSTM -------------------------------------------------------------------------

/// `x`: layers, then edges.
template <class T>
T plain_lstm(const perf::CharacterLstm& m, const std::vector<T>& x) {
  const auto layers = static_cast<std::size_t>(m.layers.dim(0)),
             bits = static_cast<std::size_t>(m.text.dim(1)),
             count = static_cast<std::size_t>(m.text.dim(0));
  const Numbers start = m.start.to_vector<double>(), text = m.text.to_vector<double>();
  const T* edges = x.data() + layers * 8 * bits;
  std::vector<T> state(start.begin(), start.end()), signal(bits), predicted(bits);
  const auto sigmoid = [](T z) { return 1.0 / (1.0 + std::exp(-z)); };
  T total = 0;
  for (std::size_t t = 0; t + 1 < count; ++t) {
    for (std::size_t i = 0; i < bits; ++i) signal[i] = text[t * bits + i] * edges[i];
    for (std::size_t l = 0; l < layers; ++l)
      for (std::size_t i = 0; i < bits; ++i) {
        const T *weight = &x[l * 8 * bits + i], *offset = weight + 4 * bits;
        T &hidden = state[2 * l * bits + i], &cell = state[(2 * l + 1) * bits + i];
        const T forget = sigmoid(signal[i] * weight[0] + offset[0]),
                in = sigmoid(hidden * weight[bits] + offset[bits]);
        const T out = sigmoid(signal[i] * weight[2 * bits] + offset[2 * bits]),
                change = std::tanh(hidden * weight[3 * bits] + offset[3 * bits]);
        cell = cell * forget + in * change;
        hidden = out * std::tanh(cell);
        signal[i] = hidden;
      }
    T sum = 2;
    for (std::size_t i = 0; i < bits; ++i) {
      predicted[i] = signal[i] * edges[bits + i] + edges[2 * bits + i];
      sum += std::exp(predicted[i]);
    }
    for (std::size_t i = 0; i < bits; ++i)
      total += text[(t + 1) * bits + i] * (predicted[i] - std::log(sum));
  }
  return -total / static_cast<double>((count - 1) * bits);
}

TEST(AdBench, CharacterLstm) {
  for (const std::string name : {"l2", "l4"}) {
    SCOPED_TRACE(name);
    perf::CharacterLstm m = perf::read_character_lstm(data + "lstm_" + name + "_c1024.txt");
    m.text = m.text[vt::slice(0, 40)].eval();
    Numbers x = m.layers.to_vector<double>();
    const std::size_t inner = x.size();
    for (double v : m.edges.to_vector<double>()) x.push_back(v);
    const Numbers slopes = complex_step_jacobian(
        [&](const std::vector<Complex>& moved) {
          return std::vector<Complex>{plain_lstm(m, moved)};
        },
        x);
    const Tensor by_layers =
        vt::tensor(Numbers(slopes.begin(), slopes.begin() + inner), m.layers.shape());
    const Tensor by_edges =
        vt::tensor(Numbers(slopes.begin() + inner, slopes.end()), m.edges.shape());
    const auto f = perf::character_lstm_objective(m);
    const auto gradient = vt::grad<0, 1>(f);
    for (const Tensor& value : {f(m.layers, m.edges), vt::jit(f)(m.layers, m.edges)})
      expect_close(value, vt::tensor(plain_lstm(m, x)), near);
    for (const auto& [layers, edges] :
         {gradient(m.layers, m.edges), vt::jit(gradient)(m.layers, m.edges)}) {
      expect_close(layers, by_layers, near);
      expect_close(edges, by_edges, near);
    }
    // Two sets of parameters at once are two calls.
    const Tensor both_layers = vt::stack({m.layers, m.layers * 0.9}),
                 both_edges = vt::stack({m.edges, m.edges + 0.1});
    const auto [layers, edges] = vt::jit(vt::vmap(gradient))(both_layers, both_edges);
    for (int i = 0; i < 2; ++i) {
      const auto [own_layers, own_edges] = gradient(both_layers[i], both_edges[i]);
      expect_close(layers[i], own_layers, near);
      expect_close(edges[i], own_edges, near);
    }
  }
}

TEST(AdBench, CharacterLstmOfTheWholeText) {
  const perf::CharacterLstm m = perf::read_character_lstm(data + "lstm_l2_c1024.txt");
  Numbers x = m.layers.to_vector<double>();
  for (double v : m.edges.to_vector<double>()) x.push_back(v);
  const auto f = perf::character_lstm_objective(m);
  EXPECT_NEAR(vt::jit(f)(m.layers, m.edges).item<double>(), plain_lstm(m, x), 1e-12);
  std::vector<Complex> moved(x.begin(), x.end());
  for (std::size_t i = 0; i < x.size(); ++i)
    moved[i] += Complex(0, step * std::sin(static_cast<double>(i)));
  const auto [layers, edges] = vt::jit(vt::grad<0, 1>(f))(m.layers, m.edges);
  double slope = 0;
  std::size_t i = 0;
  for (const Tensor& part : {layers, edges})
    for (double v : part.to_vector<double>()) slope += v * std::sin(static_cast<double>(i++));
  EXPECT_NEAR(slope, plain_lstm(m, moved).imag() / step, 1e-12);
}

}  // namespace
