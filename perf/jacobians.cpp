// Jacobians of the logits of one example by its input, by reverse mode: VGG16 of a 48×48 image and
// an LSTM unrolled over ten steps; of many robots' arms by their joints' angles, and of quadrotors
// by their states; and what VGG16 takes when it is called for the first time.
#include <chrono>
#include <cmath>
#include <cstdio>

#include "networks.hpp"
#include "support.hpp"

namespace {

using perf::Weights;
using vt::Tensor;

/// Numbers that keep the variance of what goes through relu.
Tensor weights(const vt::Shape& shape, std::uint64_t seed) {
  return (perf::random_tensor<float>(shape, seed) * static_cast<float>(perf::weight_scale(shape)))
      .eval();
}

Weights vgg16(int outputs) {
  Weights p;
  std::uint64_t seed = 1;
  for (const vt::Shape& shape : perf::vgg16_shapes(outputs)) {
    p.push_back(weights(shape, ++seed));
    p.push_back((perf::random_tensor<float>({shape.back()}, ++seed) * 0.1f).eval());
  }
  return p;
}

constexpr int width = 128, steps = 10;

Weights lstm(int outputs) {
  return {weights({2 * width, 4 * width}, 1),
          (perf::random_tensor<float>({4 * width}, 2) * 0.1f).eval(), weights({width, outputs}, 3),
          (perf::random_tensor<float>({outputs}, 4) * 0.1f).eval()};
}

/// A sequence [steps, width].
Tensor lstm_logits(const Weights& p, const Tensor& xs) {
  Tensor h = vt::zeros({width}), c = h;
  for (int t = 0; t < steps; ++t) {
    const Tensor gates = vt::matmul(vt::concatenate({xs[t], h}), p[0]) + p[1];
    const auto gate = [&](int k) { return gates[vt::slice(k * width, (k + 1) * width)]; };
    c = vt::sigmoid(gate(1)) * c + vt::sigmoid(gate(0)) * vt::tanh(gate(2));
    h = vt::sigmoid(gate(3)) * vt::tanh(c);
  }
  return vt::matmul(h, p[2]) + p[3];
}

/// The whole Jacobian, and the loop over its rows, each of them a compiled call.
void jacobians(const std::string& name, Weights (*random)(int),
               Tensor (*logits)(const Weights&, Tensor), const Tensor& x) {
  for (const int outputs : {1, 8, 32, 128}) {
    const Weights p = random(outputs);
    const auto together = vt::jit([=](const Weights& p, const Tensor& x) {
      return vt::jacrev([&](const Tensor& input) { return logits(p, input); })(x);
    });
    const auto row = vt::jit([=](const Weights& p, const Tensor& x, const Tensor& ct) {
      return vt::vjp([&](const Tensor& input) { return logits(p, input); }, x).second(ct);
    });
    std::vector<Tensor> cts;
    for (int i = 0; i < outputs; ++i) cts.push_back(vt::one_hot(vt::tensor(i), outputs).eval());
    const std::string title = "jacobian/" + name + "/" + std::to_string(outputs);
    perf::row(title + "/vt", [=] { together(p, x).eval(); }, outputs, "Grow/s");
    perf::row(
        title + "/loop",
        [=] {
          for (const Tensor& ct : cts) row(p, x, ct).eval();
        },
        outputs, "Grow/s");
  }
}

constexpr int joints = 6;

/// Where the tip of an arm is: [3]. A joint turns, and the link behind it reaches along x and is
/// twisted about it.
Tensor tip(const Tensor& angles) {
  Tensor pose = vt::eye(4);
  for (int i = 0; i < joints; ++i) {
    const float twist = i % 2 ? -1.57f : 1.57f, reach = 0.3f, rise = 0.1f * static_cast<float>(i),
                c = std::cos(twist), s = std::sin(twist);
    const Tensor x = vt::cos(angles[i]), y = vt::sin(angles[i]), zero = vt::zeros({}),
                 one = vt::ones({});
    pose = vt::matmul(
        pose, vt::reshape(vt::stack({x, -y * c, y * s, x * reach, y, x * c, -x * s, y * reach, zero,
                                     one * s, one * c, one * rise, zero, zero, zero, one}),
                          {4, 4}));
  }
  return vt::reshape(vt::slice(pose, {0, 3}, {3, 4}), {3});
}

/// Ten damped steps of Gauss and Newton to the angles at which the tip is where it should be.
Tensor inverse_kinematics(const Tensor& angles, const Tensor& target) {
  const auto step = [&](Tensor, Tensor q) {
    const Tensor j = vt::jacrev(tip)(q), transposed = vt::transpose(j);
    return q - vt::linalg::solve(vt::matmul(transposed, j) + 0.01f * vt::eye(joints),
                                 vt::matmul(transposed, tip(q) - target));
  };
  return vt::fori_loop(0, 10, step, angles);
}

/// A quadrotor after 10 ms: place, velocity, rotation (a quaternion, w first) and turning rates,
/// [13], moved by its four rotors' forces.
Tensor fly(const Tensor& state, const Tensor& forces) {
  const Tensor velocity = state[vt::slice(3, 6)], q = state[vt::slice(6, 10)],
               rate = state[vt::slice(10, 13)];
  const Tensor w = q[0], x = q[1], y = q[2], z = q[3], inertia = vt::tensor({0.02f, 0.03f, 0.04f});
  const Tensor up =
      vt::stack({2.0f * (x * z + w * y), 2.0f * (y * z - w * x), w * w - x * x - y * y + z * z});
  const Tensor pull = up * vt::sum(forces) - vt::tensor({0.0f, 0.0f, 9.81f});
  const Tensor turn =
      vt::stack({-x * rate[0] - y * rate[1] - z * rate[2], w * rate[0] + y * rate[2] - z * rate[1],
                 w * rate[1] - x * rate[2] + z * rate[0], w * rate[2] + x * rate[1] - y * rate[0]});
  const Tensor torque = vt::stack({0.2f * (forces[1] - forces[3]), 0.2f * (forces[2] - forces[0]),
                                   0.01f * (forces[0] - forces[1] + forces[2] - forces[3])});
  const Tensor transposed = q + 0.005f * turn;
  return vt::concatenate({state[vt::slice(0, 3)] + 0.01f * velocity, velocity + 0.01f * pull,
                          transposed / vt::norm(transposed),
                          rate + 0.01f * (torque - vt::cross(rate, inertia * rate)) / inertia});
}

void quadrotors() {
  const Tensor many = perf::random_tensor<float>({10000, 13}, 10),
               forces = perf::random_tensor<float>({10000, 4}, 11),
               some = perf::random_tensor<float>({256, 13}, 12),
               plans = perf::random_tensor<float>({256, 100, 4}, 13);
  const auto jacobian = vt::jit(vt::vmap(vt::jacfwd(fly)));
  const auto flights = [](const Tensor& states, const Tensor& plans) {
    const auto one = [](const Tensor& state, const Tensor& plan) {
      const auto step = [](const Tensor& s, const Tensor& f) {
        const Tensor next = fly(s, f);
        return std::pair(next, next);
      };
      return vt::scan(step, state, plan).second;
    };
    return vt::vmap(one)(states, plans);
  };
  const auto flown = vt::jit(flights);
  const auto gradient = vt::jit([=](const Tensor& states, const Tensor& plans) {
    return vt::grad<1>([=](const Tensor& s, const Tensor& p) {
      return vt::sum(vt::square(flights(s, p)));
    })(states, plans);
  });
  perf::row("jacobian/quadrotor/10000/vt", [=] { jacobian(many, forces).eval(); }, 10000, "G/s");
  perf::row("flights/quadrotor/256x100/vt", [=] { flown(some, plans).eval(); }, 25600, "G/s");
  perf::row(
      "flights/quadrotor/256x100/gradient/vt", [=] { gradient(some, plans).eval(); }, 25600, "G/s");
}

void arms() {
  const Tensor many = perf::random_tensor<float>({10000, joints}, 7),
               some = perf::random_tensor<float>({1000, joints}, 8),
               targets = perf::random_tensor<float>({1000, 3}, 9);
  const auto jacobian = vt::jit(vt::vmap(vt::jacrev(tip)));
  const auto solved = vt::jit(vt::vmap(inverse_kinematics));
  perf::row("jacobian/arm/10000/vt", [=] { jacobian(many).eval(); }, 10000, "G/s");
  perf::row("inverse_kinematics/1000/vt", [=] { solved(some, targets).eval(); }, 1000, "G/s");
}

/// Milliseconds from the first call of VGG16's logits to the end of the first gradient by its
/// weights; without `gradient`, of the logits alone.
int time_first_calls(bool gradient) {
  const Weights p = vgg16(10);
  const Tensor x = perf::random_tensor<float>({48, 48, 3}, 99);
  const auto start = std::chrono::steady_clock::now();
  vt::jit([](const Weights& p, const Tensor& x) { return perf::vgg16_logits(p, x); })(p, x).eval();
  if (gradient) {
    const auto loss = [](const Weights& p, const Tensor& x) {
      const Tensor y = perf::vgg16_logits(p, x);
      return vt::logsumexp(y) - vt::mean(y);
    };
    for (const Tensor& t : vt::jit([=](const Weights& p, const Tensor& x) {
           return vt::grad([&](const Weights& q) { return loss(q, x); })(p);
         })(p, x))
      t.eval();
  }
  std::printf(
      "%.6f\n",
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string forward = "--first-forward", both = "--first-forward-and-gradient";
  if (argc == 3 && (argv[1] == forward || argv[1] == both))
    return time_first_calls(argv[1] == both);
  for (const bool cached : {false, true}) {
    const char* where = cached ? "/disk" : "/cold";
    perf::first_call_row(std::string("first_call/vgg16/forward") + where, forward, cached);
    perf::first_call_row(std::string("first_call/vgg16/forward_and_gradient") + where, both,
                         cached);
  }
  jacobians("vgg16", vgg16, perf::vgg16_logits, perf::random_tensor<float>({48, 48, 3}, 99));
  jacobians(
      "lstm", lstm, [](const Weights& p, Tensor x) { return lstm_logits(p, x); },
      perf::random_tensor<float>({steps, width}, 99));
  arms();
  quadrotors();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
