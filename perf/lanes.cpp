// The rows of the suite lanes: functions of one lane whose lanes part, run by vmap under each
// schedule of lanes. perf/lanes/README.md says what they are. Prints a line of JSON a row.
//
// Usage: bench_lanes [--rows REGEX] [--most LANES] [--repeat TIMES]
//   ROW: nuts_logistic/CHAINS, nuts_gaussian/CHAINS/TRAJECTORIES, fibonacci, kd_tree, each with a
//   schedule behind a slash: nuts_logistic/100/groups
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <iostream>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "../examples/nuts/nuts.hpp"
#include "data.hpp"
#include "lanes/plain_recursion.hpp"

namespace {

using vt::Tensor;

struct Options {
  std::regex rows{"."};
  std::int64_t most = 1000;
  int repeat = 5;
};
Options options;

struct Schedule {
  const char* name;
  vt::LaneSchedule schedule;
};
constexpr Schedule schedules[] = {{"automatic", vt::LaneSchedule::automatic},
                                  {"groups", vt::LaneSchedule::groups},
                                  {"hybrid", vt::LaneSchedule::hybrid},
                                  {"program_counter", vt::LaneSchedule::program_counter}};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool wanted(const std::string& name, const std::string& who) {
  return std::regex_search(name + "/" + who, options.rows);
}

/// Runs `body`, which returns how many units it did, until it is compiled, then as often as is
/// asked for, but for at most 20 seconds; prints the best units a second.
template <class Body>
void row(const std::string& name, const std::string& who, const std::string& unit, Body body) {
  if (!wanted(name, who)) return;
  const double begin = now();
  body();
  vt::wait_compiled();
  const double first = now() - begin;
  const std::clock_t began = std::clock();
  double best = 0, units = 0, spent = 0;
  int times = 0;
  vt::LaneStats stats;
  for (; times < options.repeat && (times == 0 || spent < 20); ++times) {
    vt::reset_lane_stats();
    const double start = now();
    units = body();
    const double seconds = now() - start;
    stats = vt::lane_stats();
    spent += seconds, best = std::max(best, units / seconds);
  }
  const double used = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  std::cout << "{\"name\": \"" << name << "\", \"who\": \"vt_" << who << "\", \"unit\": \"" << unit
            << "\", \"value\": " << best << ", \"units\": " << units << ", \"runs\": " << times
            << ", \"first_s\": " << first << ", \"processors\": " << used / spent;
  if (!stats.blocks.empty()) std::cout << ", \"utilisation\": " << stats.utilisation();
  std::cout << "}" << std::endl;
  std::cerr << name << " " << who << ": " << best << " " << unit << "\n";
}

/// All lanes with each schedule, and one lane after the other. `run(f)` calls f, which takes lanes
/// or, the second time, one lane, and returns how many units that were.
template <class Lane, class All, class One>
void rows(const std::string& name, const std::string& unit, const Lane& lane, const All& all,
          const One& one) {
  for (const Schedule& s : schedules) {
    const auto lanes = vt::jit(vt::vmap(lane, {.schedule = s.schedule}));
    row(name, s.name, unit, [&] { return all(lanes); });
  }
  const auto alone = vt::jit(lane);
  row(name, "one_by_one", unit, [&] { return one(alone); });
}

// --- the No-U-Turn Sampler -----------------------------------------------------------------------

/// Of `perf::numbers`, but with variance 1.
std::vector<double> spread_numbers(std::size_t n, std::uint64_t seed) {
  std::vector<double> values = perf::numbers<double>(n, seed);
  for (double& v : values) v *= std::sqrt(3.0);
  return values;
}
Tensor as_floats(const std::vector<double>& values, const vt::Shape& shape) {
  return vt::tensor(std::vector<float>(values.begin(), values.end()), shape).eval();
}

struct Logistic {
  static constexpr std::size_t points = 10'000, regressors = 100;
  static constexpr double step_size = 0.007;
  Tensor x, labels;
  std::vector<double> weights;

  Logistic() {
    std::vector<double> all = spread_numbers(points * regressors, 1);
    weights = spread_numbers(regressors, 2);
    for (double& w : weights) w *= 0.2;
    const std::vector<double> noise = perf::numbers<double>(points, 3);
    std::vector<double> signs(points);
    for (std::size_t i = 0; i < points; ++i) {
      double sum = 0;
      for (std::size_t k = 0; k < regressors; ++k) {
        double& x = all[i * regressors + k];
        x *= 1 - 0.8 * static_cast<double>(k) / (regressors - 1);
        sum += x * weights[k];
      }
      signs[i] = (noise[i] + 1) / 2 < 1 / (1 + std::exp(-sum)) ? 1 : -1;
    }
    x = as_floats(all, {points, regressors}), labels = as_floats(signs, {points});
  }
  Tensor starts(std::int64_t chains) const {
    const auto n = static_cast<std::size_t>(chains);
    std::vector<double> all = spread_numbers(n * regressors, 4);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = weights[i % regressors] + 0.03 * all[i];
    return as_floats(all, {chains, regressors});
  }
  Tensor operator()(const Tensor& w) const {
    return -vt::sum(vt::softplus(-labels * vt::matmul(x, w))) - 0.5 * vt::sum(vt::square(w));
  }
};

/// Correlations of 0.9 between neighbours, 0.81 between their neighbours, and so on.
struct Gaussian {
  static constexpr std::size_t size = 100;
  static constexpr double step_size = 0.1, correlation = 0.9;
  Tensor precision;

  Gaussian() {
    const double r = correlation, scale = 1 / (1 - r * r);
    std::vector<double> all(size * size);
    for (std::size_t i = 0; i < size; ++i) {
      all[i * size + i] = scale * (i == 0 || i + 1 == size ? 1 : 1 + r * r);
      if (i > 0) all[i * size + i - 1] = all[(i - 1) * size + i] = -scale * r;
    }
    precision = as_floats(all, {size, size});
  }
  Tensor starts(std::int64_t chains) const {
    const auto n = static_cast<std::size_t>(chains);
    std::vector<double> all = spread_numbers(n * size, 5);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i % size > 0)
        all[i] = correlation * all[i - 1] + std::sqrt(1 - correlation * correlation) * all[i];
    return as_floats(all, {chains, size});
  }
  Tensor operator()(const Tensor& x) const { return -0.5 * vt::dot(x, vt::matmul(precision, x)); }
};

/// Useful gradients of all chains.
double gradients_of(const nuts::Draw& draws) {
  vt::eval(draws);
  return vt::sum(draws.gradients.astype(vt::f64)).item<double>();
}

template <class Model>
void nuts_rows(const std::string& name, const Model& model, std::int64_t chains,
               std::int64_t trajectories) {
  const nuts::Sampler sampler(model, {.step_size = Model::step_size});
  const Tensor starts = model.starts(chains);
  const Tensor keys = vt::random::split(vt::random::key(6), chains).eval();
  rows(
      name, "gradients/s",
      [&](Tensor key, Tensor start) { return sampler.chain(key, start, trajectories); },
      [&](const auto& all) { return gradients_of(all(keys, starts)); },
      [&](const auto& one) {
        double sum = 0;
        for (std::int64_t i = 0; i < std::min<std::int64_t>(chains, 10); ++i)
          sum += gradients_of(one(keys[i], starts[i]));
        return sum;
      });
  const auto gradient = vt::jit(vt::vmap(vt::value_and_grad(model)));
  row(name, "gradient_alone", "gradients/s", [&] {
    const int times = static_cast<int>(1 + 2000 / chains);
    for (int i = 0; i < times; ++i) vt::eval(gradient(starts));
    return static_cast<double>(chains) * times;
  });
}

void nuts_logistic() {
  const Logistic model;
  for (const auto& [chains, trajectories] :
       {std::pair(1, 50), {10, 20}, {100, 10}, {1000, 3}, {10'000, 1}})
    if (chains <= options.most)
      nuts_rows("nuts_logistic/" + std::to_string(chains), model, chains, trajectories);
}

/// Of the gradients that run, how many chains need: where chains wait for each other at each
/// trajectory, where they do not, and of the block that takes the gradients, as it was run.
void nuts_gaussian() {
  const Gaussian model;
  const nuts::Sampler sampler(model, {.step_size = Gaussian::step_size});
  for (const int chains : {1, 3, 10, 30, 100, 300, 1000}) {
    if (chains > options.most) continue;
    for (const int trajectories : {1, 3, 10, 30, 100}) {
      const std::string name =
          "nuts_gaussian/" + std::to_string(chains) + "/" + std::to_string(trajectories);
      if (!wanted(name, "program_counter")) continue;
      const auto chain = [&](Tensor key, Tensor start) {
        return sampler.chain(key, start, trajectories);
      };
      const auto all = vt::jit(vt::vmap(chain, {.schedule = vt::LaneSchedule::program_counter}));
      const Tensor starts = model.starts(chains);
      const Tensor keys = vt::random::split(vt::random::key(6), chains).eval();
      all(keys, starts).gradients.eval();
      vt::wait_compiled();
      vt::reset_lane_stats();
      const double start = now();
      const Tensor g = all(keys, starts).gradients.astype(vt::f64).eval();
      const double seconds = now() - start, useful = vt::sum(g).item<double>();
      const vt::LaneStats stats = vt::lane_stats();
      const auto share = [&](const Tensor& longest) {
        return useful / (chains * longest.item<double>());
      };
      double measured = 1, most = 0;
      for (const vt::LaneBlock& b : stats.blocks)
        if (b.operations_of_lane > most) most = b.operations_of_lane, measured = b.utilisation();
      std::cout << "{\"name\": \"" << name << "\", \"who\": \"vt_program_counter\", \"unit\": "
                << "\"gradients/s\", \"value\": " << useful / seconds
                << ", \"waiting\": " << share(vt::sum(vt::max(g, 0)))
                << ", \"possible\": " << share(vt::max(vt::sum(g, 1)))
                << ", \"gradient_utilisation\": " << measured
                << ", \"utilisation\": " << stats.utilisation() << "}" << std::endl;
    }
  }
}

// --- other recursions ----------------------------------------------------------------------------

void fibonacci() {
  constexpr int lanes = 4096;
  std::vector<int> n(lanes);
  double calls = 0, few_calls = 0;
  constexpr int few = 64;
  for (int i = 0; i < lanes; ++i) {
    n[i] = 5 + i % 11;
    const double own = 2.0 * plain::fibonacci(n[i]) - 1;  // there are fib(n) leaves
    calls += own, few_calls += i < few ? own : 0;
  }
  vt::Recursive<Tensor(Tensor)> fib("fibonacci", [&](Tensor n) {
    return vt::cond(n <= 1, [] { return vt::tensor(1); }, [&] { return fib(n - 1) + fib(n - 2); });
  });
  const Tensor all_n = vt::tensor(n);
  rows(
      "fibonacci", "calls/s", fib,
      [&](const auto& all) {
        if (all(all_n)[lanes - 1].template item<int>() != plain::fibonacci(n[lanes - 1]))
          throw std::runtime_error("fibonacci: a wrong number");
        return calls;
      },
      [&](const auto& one) {
        for (int i = 0; i < few; ++i) one(vt::tensor(n[i])).eval();
        return few_calls;
      });
  row("fibonacci", "plain", "calls/s", [&] {
    volatile int sum = 0;
    for (int times = 0; times < 10; ++times)
      for (const int each : n) sum = sum + plain::fibonacci(each);
    return 10 * calls;
  });
}

void kd_tree() {
  constexpr int points = 10'000, queries = 4096, few = 64;
  plain::KdTree tree(perf::numbers<float>(3 * points, 7));
  const std::vector<float> all_queries = perf::numbers<float>(3 * queries, 8);
  const Tensor xyz = vt::tensor(tree.points(), {points, 3}).eval();

  // The nearest of the points low … high − 1, if it is nearer than `distance`. The one in the
  // middle parts the others by a coordinate.
  using Nearest = std::pair<Tensor, Tensor>;  // distance squared, number of the point
  vt::Recursive<Nearest(Tensor, Tensor, Tensor, Tensor, Nearest)> search("search");
  search = [&](Tensor query, Tensor low, Tensor high, Tensor axis, Nearest best) {
    return vt::cond(
        low >= high, [&] { return best; },
        [&] {
          const Tensor middle = (low + high) / 2, point = xyz[middle];
          const Tensor distance = vt::sum(vt::square(point - query));
          const Tensor nearer = distance < best.first;
          const Nearest own{vt::where(nearer, distance, best.first),
                            vt::where(nearer, middle, best.second)};
          const Tensor across = query[axis] - point[axis], next = (axis + 1) % 3;
          const Tensor left = across < 0, behind = middle + 1;
          const Nearest near =
              search(query, vt::where(left, low, behind), vt::where(left, middle, high), next, own);
          return vt::cond(
              vt::square(across) < near.first,
              [&] {
                return search(query, vt::where(left, behind, low), vt::where(left, high, middle),
                              next, near);
              },
              [&] { return near; });
        });
  };
  const auto nearest = [&](Tensor query) {
    return search(query, vt::tensor(0), vt::tensor(points), vt::tensor(0),
                  {vt::tensor(1e9f), vt::tensor(-1)})
        .second;
  };
  const Tensor q = vt::tensor(all_queries, {queries, 3}).eval();
  const auto check = [&](const std::vector<int>& found) {
    for (std::size_t i = 0; i < found.size(); i += 100)
      if (found[i] != tree.nearest(&all_queries[3 * i]))
        throw std::runtime_error("kd_tree: a wrong point");
  };
  rows(
      "kd_tree", "queries/s", nearest,
      [&](const auto& all) {
        check(all(q).template to_vector<int>());
        return static_cast<double>(queries);
      },
      [&](const auto& one) {
        for (int i = 0; i < few; ++i) one(q[i]).eval();
        return static_cast<double>(few);
      });
  row("kd_tree", "plain", "queries/s", [&] {
    volatile int sum = 0;
    for (int i = 0; i < queries; ++i) sum = sum + tree.nearest(&all_queries[3 * i]);
    return static_cast<double>(queries);
  });
}

void parse(int count, char** arguments) {
  for (int i = 1; i < count; i += 2) {
    const std::string a = arguments[i];
    if (i + 1 == count) throw std::runtime_error(a + " wants a value");
    const std::string value = arguments[i + 1];
    if (a == "--rows") options.rows = value;
    else if (a == "--most") options.most = std::stol(value);
    else if (a == "--repeat") options.repeat = std::stoi(value);
    else throw std::runtime_error("no option " + a);
  }
}

}  // namespace

int main(int count, char** arguments) try {
  parse(count, arguments);
  vt::set_num_threads(1);
  fibonacci();
  kd_tree();
  nuts_logistic();
  nuts_gaussian();
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
