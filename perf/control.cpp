// Loops whose ends are data: an LSTM by scan, scalar loops and their derivatives, lanes that stop
// at different times, few iterations in many lanes, updates in place, sequences of different
// lengths. Each row's results are
// first compared with a plain loop's.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "plain_loops.hpp"
#include "support.hpp"

namespace {

using vt::Tensor;

void expect(const std::string& what, double actual, double expected, double tolerance) {
  if (std::abs(actual - expected) <= tolerance) return;
  std::fprintf(stderr, "%s: %.17g, but the plain loop gives %.17g\n", what.c_str(), actual,
               expected);
  std::exit(1);
}

/// `body`, which calls `check` the first time.
template <class Check, class Body>
auto checked(Check check, Body body) {
  return [=, done = std::make_shared<bool>()](const auto&... arguments) {
    if (!*done) check();
    *done = true;
    body(arguments...);
  };
}

struct Weights {
  Tensor of_input, of_state, bias;
};
using State = std::pair<Tensor, Tensor>;  // output, memory

Weights random_weights(int width) {
  const auto small = [](const vt::Shape& shape, std::uint64_t seed) {
    return (perf::random_tensor<float>(shape, seed) * 0.1f).eval();
  };
  return {small({width, 4 * width}, 1), small({width, 4 * width}, 2), small({4 * width}, 3)};
}

State cell(const Weights& w, const State& s, const Tensor& x) {
  const std::vector<Tensor> gates =
      vt::split(vt::matmul(x, w.of_input) + vt::matmul(s.first, w.of_state) + w.bias, 4, -1);
  const Tensor memory =
      vt::sigmoid(gates[0]) * s.second + vt::sigmoid(gates[1]) * vt::tanh(gates[2]);
  return {vt::sigmoid(gates[3]) * vt::tanh(memory), memory};
}

/// Weights as the plain loop takes them, `step` along a direction away.
struct PlainWeights {
  std::vector<double> of_input, of_state, bias;

  explicit PlainWeights(const Weights& w)
      : of_input(w.of_input.to_vector<double>()),
        of_state(w.of_state.to_vector<double>()),
        bias(w.bias.to_vector<double>()) {}
  plain::Lstm at(int width) const { return {width, of_input.data(), of_state.data(), bias.data()}; }
};

constexpr int steps = 100, batch = 32, width = 128;

double plain_objective(const PlainWeights& w, const std::vector<float>& xs) {
  double sum = 0, last[width];
  for (int b = 0; b < batch; ++b)
    sum += plain::lstm(w.at(width), xs.data() + b * width, batch * width, steps, last);
  return sum;
}

/// The gradient along a direction of random signs must be the difference of the plain loop's values
/// on both sides.
void check_gradient(const Weights& w, const std::vector<float>& xs, const Weights& gradient) {
  constexpr double h = 1e-5;
  PlainWeights up(w), down(w);
  const PlainWeights g(gradient);
  double along = 0, squares = 0;
  for (const auto part : {&PlainWeights::of_input, &PlainWeights::of_state, &PlainWeights::bias}) {
    const std::vector<double> signs = perf::numbers<double>((g.*part).size(), 9);
    for (std::size_t i = 0; i < signs.size(); ++i) {
      const double sign = signs[i] < 0 ? -1 : 1;
      (up.*part)[i] += h * sign;
      (down.*part)[i] -= h * sign;
      along += sign * (g.*part)[i];
      squares += (g.*part)[i] * (g.*part)[i];
    }
  }
  expect("gradient of the LSTM along a direction", along,
         (plain_objective(up, xs) - plain_objective(down, xs)) / (2 * h),
         1e-4 * std::sqrt(squares));
}

void lstm_by_scan() {
  const auto objective = [](Weights w, Tensor xs) {
    const State start(vt::zeros({batch, width}), vt::zeros({batch, width}));
    const auto [last, outputs] = vt::scan(
        [&](State s, Tensor x) {
          s = cell(w, s, x);
          return std::pair(s, s.first);
        },
        start, xs);
    return vt::sum(outputs * outputs);
  };
  const auto value = vt::jit(objective);
  const auto gradient = vt::jit(vt::grad(objective));
  const Weights w = random_weights(width);
  const Tensor xs = perf::random_tensor<float>({steps, batch, width}, 4);
  const std::vector<float> rows = xs.to_vector<float>();
  const auto check_value = [=] {
    const double expected = plain_objective(PlainWeights(w), rows);
    expect("LSTM by scan", value(w, xs).template item<float>(), expected, 1e-5 * expected);
  };
  for (const int threads : {1, 2}) {
    const std::string on = "/threads:" + std::to_string(threads) + "/vt";
    perf::row_on(threads, "scan/lstm/value" + on,
                 checked(check_value, [=] { value(w, xs).eval(); }));
    perf::row_on(threads, "scan/lstm/gradient" + on,
                 checked([=] { check_gradient(w, rows, gradient(w, xs)); },
                         [=] {
                           const Weights g = gradient(w, xs);
                           for (const Tensor& leaf : {g.of_input, g.of_state, g.bias}) leaf.eval();
                         }));
  }
}

using Oscillator = std::tuple<Tensor, Tensor, Tensor>;  // place, momentum, sum of their products

Oscillator oscillate(Tensor x, Tensor p, Tensor s) {
  p = p - 0.01 * (x + 0.1 * x * x * x);
  x = x + 0.01 * p;
  s = s + x * p;
  return {x, p, s};
}
Tensor by_while(Tensor start, Tensor trips) {
  const auto [i, x, p, s] =
      vt::while_loop([&](Tensor i, Tensor, Tensor, Tensor) { return i < trips; },
                     [](Tensor i, Tensor x, Tensor p, Tensor s) {
                       return std::tuple_cat(std::tuple(i + 1), oscillate(x, p, s));
                     },
                     std::tuple(0, start, 0.5, 0.0));
  return x + p + s;
}
constexpr int million = 1'000'000;
Tensor by_fori(Tensor start) {
  const auto [x, p, s] = vt::fori_loop(
      0, million, [](Tensor, Tensor x, Tensor p, Tensor s) { return oscillate(x, p, s); },
      std::tuple(start, 0.5, 0.0));
  return x + p + s;
}

void scalar_loops() {
  const auto value = vt::jit(by_while);
  const auto gradient = vt::jit(vt::grad(by_while));
  const auto counted = vt::jit(by_fori);
  const auto counted_gradient = vt::jit(vt::grad(by_fori));
  const Tensor start = vt::tensor(1.5), trips = vt::tensor(million);
  // A million iterations enlarge what rounding each operation once or twice makes of a value, but
  // not what its derivative is about.
  const auto check = [](const char* what, const Tensor& t, double expected) {
    expect(what, t.item<double>(), expected, 1e-6 * std::abs(expected));
  };
  perf::row_on(1, "while/value/vt",
               checked([=] { check("while", value(start, trips), plain::oscillate(1.5, million)); },
                       [=] { value(start, trips).eval(); }));
  perf::row_on(1, "fori/value/vt",
               checked([=] { check("fori", counted(start), plain::oscillate(1.5, million)); },
                       [=] { counted(start).eval(); }));
  perf::row_on(1, "while/gradient/vt",
               checked(
                   [=] {
                     check("gradient of while", gradient(start, trips),
                           plain::oscillate_derivative(1.5, million));
                   },
                   [=] { gradient(start, trips).eval(); }));
  perf::row_on(1, "fori/gradient/vt",
               checked(
                   [=] {
                     check("gradient of fori", counted_gradient(start),
                           plain::oscillate_derivative(1.5, million));
                   },
                   [=] { counted_gradient(start).eval(); }));
  perf::row("while/value/plain", [] { benchmark::DoNotOptimize(plain::oscillate(1.5, million)); });
  perf::row("while/gradient/plain",
            [] { benchmark::DoNotOptimize(plain::oscillate_derivative(1.5, million)); });
}

/// Whole numbers from 1 to `most`.
std::vector<int> counts(std::size_t n, int most, std::uint64_t seed) {
  std::vector<int> out(n);
  const std::vector<double> random = perf::numbers<double>(n, seed);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = 1 + std::min(most - 1, static_cast<int>((random[i] + 1) / 2 * most));
  return out;
}

void lanes() {
  constexpr int count = 4096;
  const std::vector<int> trips = counts(count, 1000, 5);
  const std::vector<double> starts = perf::numbers<double>(count, 6);
  const Tensor x = vt::tensor(starts, {count}), n = vt::tensor(trips, {count});
  const auto values = vt::jit(vt::vmap(by_while));
  const auto gradients = vt::jit(vt::vmap(vt::grad(by_while)));
  const auto plain_lanes = [=](double (*of_one)(double, std::int64_t), std::vector<double>& out) {
    for (int i = 0; i < count; ++i) out[i] = of_one(starts[i], trips[i]);
  };
  const auto check = [=](const char* what, const Tensor& all,
                         double (*of_one)(double, std::int64_t)) {
    std::vector<double> expected(count);
    plain_lanes(of_one, expected);
    const std::vector<double> actual = all.to_vector<double>();
    for (int i = 0; i < count; ++i)
      expect(what, actual[i], expected[i], 1e-11 * (1 + std::abs(expected[i])));
  };
  for (const int threads : {1, 2}) {
    const std::string on = "/threads:" + std::to_string(threads) + "/vt";
    perf::row_on(threads, "while/lanes/value" + on,
                 checked([=] { check("lanes of while", values(x, n), plain::oscillate); },
                         [=] { values(x, n).eval(); }));
    perf::row_on(threads, "while/lanes/gradient" + on,
                 checked(
                     [=] {
                       check("lanes of the gradient of while", gradients(x, n),
                             plain::oscillate_derivative);
                     },
                     [=] { gradients(x, n).eval(); }));
  }
  const auto out = std::make_shared<std::vector<double>>(count);
  perf::row("while/lanes/value/plain", [=] { plain_lanes(plain::oscillate, *out); });
  perf::row("while/lanes/gradient/plain", [=] { plain_lanes(plain::oscillate_derivative, *out); });
}

/// Newton's iteration for a square root, a few times in each of many lanes, and its gradient with
/// as many kept states as vt chooses, and with others.
void few_iterations() {
  const auto root = [](std::int64_t kept) {
    return [kept](Tensor a, Tensor n) {
      return vt::fori_loop(0, n, [&](Tensor, Tensor x) { return 0.5 * (x + a / x); }, 1.0 + 0.3 * a,
                           {.checkpoint = kept});
    };
  };
  for (const int lanes : {1, 16, 300, 2821, 30000})
    for (const int iterations : {4, 16, 64}) {
      const std::vector<double> starts = perf::numbers<double>(lanes, 6);
      const Tensor a = (1.5 + 0.5 * vt::tensor(starts, {lanes})).eval(),
                   n = vt::full({lanes}, iterations).eval();
      const std::string name =
          "while/root/" + std::to_string(lanes) + "/" + std::to_string(iterations);
      const auto value = vt::jit(vt::vmap(root(0)));
      perf::row_on(1, name + "/value/vt", [=] { value(a, n).eval(); });
      for (const int kept : {0, 4, 8, 16, 64}) {
        const auto gradient = vt::jit(vt::vmap(vt::grad(root(kept))));
        const auto check = [=] {
          // The root's derivative is that of the iteration, but for what its start still tells.
          const std::vector<double> slopes = gradient(a, n).template to_vector<double>();
          for (int i = 0; i < lanes; ++i) {
            const double at = 1.5 + 0.5 * starts[i];
            expect("gradient of the root", slopes[i], 0.5 / std::sqrt(at), 1e-6);
          }
        };
        perf::row_on(1, name + "/gradient/" + (kept ? "kept:" + std::to_string(kept) : "vt"),
                     checked(check, [=] { gradient(a, n).eval(); }));
      }
    }
}

/// Times a million iterations of a loop less one, so that the copy of the array that the loop
/// begins with does not count.
template <class F>
void row_of_iterations(const std::string& name, F run, const Tensor& all, const Tensor& first) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    if (vt::num_threads() != 1) vt::set_num_threads(1);
    const auto seconds = [&](const Tensor& iterations) {
      const auto begin = std::chrono::steady_clock::now();
      run(iterations);
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    seconds(all);
    seconds(first);
    for (auto _ : state) state.SetIterationTime(std::max(seconds(all) - seconds(first), 1e-9));
  })->UseManualTime();
}

/// The same places are written whatever the length, so that only what is done to the whole array
/// can make it count.
void updates() {
  constexpr int part = 16, places = 1'000 - part + 1, lanes = 4;
  for (const int size : {1'000, 100'000, 1'000'000}) {
    const auto fill = [](Tensor a, Tensor iterations) {
      return vt::fori_loop(
          0, iterations,
          [](Tensor i, Tensor a) {
            return vt::dynamic_update_slice(a, vt::arange(part).astype(vt::f64) + i.astype(vt::f64),
                                            {i % places});
          },
          a);
    };
    const auto expect_filled = [size](const double* actual, int iterations) {
      std::vector<double> expected(size);
      for (int i = 0; i < iterations; ++i)
        for (int k = 0; k < part; ++k) expected[i % places + k] = i + k;
      for (int i = 0; i < size; ++i) expect("updates in a loop", actual[i], expected[i], 0);
    };
    const auto one = vt::jit(fill);
    const auto many = vt::jit(vt::vmap(fill));
    const Tensor a = vt::zeros({size}, vt::f64).eval(),
                 as = vt::zeros({lanes, size}, vt::f64).eval();
    const Tensor iterations = vt::tensor(million),
                 lane_iterations = vt::tensor({million, million - 1, million - 2, million - 3});
    const auto check = [=] {
      expect_filled(one(a, iterations).template to_vector<double>().data(), million);
    };
    const auto check_lanes = [=] {
      const std::vector<double> all = many(as, lane_iterations).template to_vector<double>();
      for (int i = 0; i < lanes; ++i) expect_filled(all.data() + i * size, million - i);
    };
    const std::string of = "/" + std::to_string(size) + "/vt";
    row_of_iterations("update/one" + of, checked(check, [=](const Tensor& n) { one(a, n).eval(); }),
                      iterations, vt::tensor(1));
    row_of_iterations("update/lanes" + of,
                      checked(check_lanes, [=](const Tensor& n) { many(as, n).eval(); }),
                      lane_iterations, vt::ones({lanes}, vt::i32).eval());
  }
}

void ragged() {
  constexpr int longest = 100, width = 64;
  const auto last_output = [](Weights w, Tensor xs, Tensor length) {
    const auto end = vt::while_loop(
        [&](Tensor t, const State&) { return t < length; },
        [&](Tensor t, const State& s) { return std::pair(t + 1, cell(w, s, xs[t])); },
        std::pair(0, State(vt::zeros({width}), vt::zeros({width}))));
    return end.second.first;
  };
  const auto one = vt::jit(last_output);
  const auto all = vt::jit(vt::vmap(last_output, {.in_axes = {vt::unmapped, 0, 0}}));
  const Weights w = random_weights(width);
  for (const int sequences : {1, 16, 256}) {
    const std::vector<int> lengths = counts(sequences, longest, 7);
    const Tensor xs = perf::random_tensor<float>({sequences, longest, width}, 8),
                 length = vt::tensor(lengths, {sequences});
    std::vector<Tensor> x, n;
    double tokens = 0;
    for (int i = 0; i < sequences; ++i) {
      x.push_back(xs[i].eval());
      n.push_back(length[i].eval());
      tokens += lengths[i];
    }
    const auto check = [=] {
      const PlainWeights plain_weights(w);
      const std::vector<float> rows = xs.to_vector<float>();
      const std::vector<double> together = all(w, xs, length).template to_vector<double>();
      for (int i = 0; i < sequences; ++i) {
        double last[width];
        plain::lstm(plain_weights.at(width), rows.data() + i * longest * width, width, lengths[i],
                    last);
        const std::vector<double> apart = one(w, x[i], n[i]).template to_vector<double>();
        for (int j = 0; j < width; ++j) {
          expect("LSTM over sequences of different lengths", together[i * width + j], last[j],
                 1e-5);
          expect("LSTM over one sequence", apart[j], last[j], 1e-5);
        }
      }
    };
    const std::string name = "ragged/lstm/" + std::to_string(sequences);
    perf::row_on(2, name + "/vt", checked(check, [=] { all(w, xs, length).eval(); }), tokens,
                 "Gtoken/s");
    perf::row_on(2, name + "/loop",
                 checked(check,
                         [=] {
                           for (int i = 0; i < sequences; ++i) one(w, x[i], n[i]).eval();
                         }),
                 tokens, "Gtoken/s");
  }
}

}  // namespace

int main(int argc, char** argv) {
  lstm_by_scan();
  scalar_loops();
  lanes();
  few_iterations();
  updates();
  ragged();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
