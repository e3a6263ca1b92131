// The rows of the suite lanes: functions of one lane whose lanes part, run by vmap under each
// schedule of lanes. perf/lanes/README.md says what they are. Prints a line of JSON a row.
//
// Usage: bench_lanes [--rows REGEX] [--most LANES] [--repeat TIMES]
//   ROW: nuts_logistic/CHAINS, nuts_gaussian/CHAINS/TRAJECTORIES, fibonacci, kd_tree, and in turns
//   fibonacci/LANES, kd_tree/LANES, nuts_small/CHAINS, eight_schools/CHAINS, orbits/LANES,
//   row_writes/ELEMENTS/LANES, saved_rows/ROWS/LANES, each with a schedule behind a slash:
//   nuts_logistic/100/groups
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

/// Schedules in turns, so that a slow second of the machine hits all of them: what there is to
/// choose from for few lanes and for many. `run(f)` as above.
template <class Lane, class All>
void turns(const std::string& name, const std::string& unit, const Lane& lane, const All& run) {
  using Mapped = decltype(vt::jit(vt::vmap(lane, {.schedule = vt::LaneSchedule::groups})));
  struct Turn {
    const char* who;
    Mapped lanes;
    double best;
  };
  std::vector<Turn> all;
  double units = 0;
  for (const Schedule& s : schedules) {
    if (!wanted(name, s.name)) continue;
    all.push_back({s.name, vt::jit(vt::vmap(lane, {.schedule = s.schedule})), 1e300});
    run(all.back().lanes);
    vt::wait_compiled();
    units = run(all.back().lanes);
  }
  const double begin = now();
  for (int k = 0; k < 5 * options.repeat && (k == 0 || now() - begin < 2); ++k)
    for (Turn& t : all) {
      const double start = now();
      run(t.lanes);
      t.best = std::min(t.best, now() - start);
    }
  for (const Turn& t : all)
    std::cout << "{\"name\": \"" << name << "\", \"who\": \"vt_" << t.who << "\", \"unit\": \""
              << unit << "\", \"value\": " << units / t.best << ", \"units\": " << units << "}"
              << std::endl;
}
constexpr int few_and_many[] = {1, 16, 64, 1000};

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

/// Ten dimensions, neighbours correlated.
struct SmallGaussian {
  static constexpr std::size_t size = 10;
  static constexpr double step_size = 0.15;
  Tensor precision;

  SmallGaussian() {
    std::vector<double> all(size * size);
    for (std::size_t i = 0; i < size; ++i) {
      all[i * size + i] = 1 + 0.2 * static_cast<double>(i % 5);
      if (i > 0) all[i * size + i - 1] = all[(i - 1) * size + i] = -0.3;
    }
    precision = as_floats(all, {size, size});
  }
  Tensor operator()(const Tensor& x) const { return -0.5 * vt::dot(x, vt::matmul(precision, x)); }
};
/// Effects of coaching in eight schools, Rubin 1981, Estimation in Parallel Randomized Experiments:
/// their mean, the logarithm of their deviation and, not centred, the effects.
struct EightSchools {
  static constexpr std::size_t size = 10;
  static constexpr double step_size = 0.2;
  Tensor effects = vt::tensor({28.f, 8.f, -3.f, 7.f, -1.f, 1.f, 18.f, 12.f}),
         deviations = vt::tensor({15.f, 10.f, 16.f, 11.f, 9.f, 11.f, 10.f, 18.f});

  Tensor operator()(const Tensor& x) const {
    const Tensor own = vt::slice_in_dim(x, 2, 10), school = x[0] + vt::exp(x[1]) * own;
    return -0.5 * (vt::sum(vt::square((effects - school) / deviations)) + vt::sum(vt::square(own)) +
                   vt::square(x[0] / 5.0f) + vt::square(x[1]));
  }
};
template <class Model>
void small_nuts(const std::string& name, const Model& model) {
  const nuts::Sampler sampler(model, {.step_size = Model::step_size});
  for (const int chains : few_and_many) {
    const Tensor starts =
        as_floats(spread_numbers(static_cast<std::size_t>(chains) * 10, 4), {chains, 10});
    const Tensor keys = vt::random::split(vt::random::key(6), chains).eval();
    turns(
        name + "/" + std::to_string(chains), "gradients/s",
        [&](Tensor key, Tensor start) { return sampler.chain(key, start * 0.3f, 5); },
        [&](const auto& all) { return gradients_of(all(keys, starts)); });
  }
}

// --- arrays that loops write by rows -------------------------------------------------------------

// An element of an array in each iteration of a loop in a loop, and nothing expensive.
void row_writes() {
  for (const std::int64_t size : {16, 256, 2047, 2048, 100'000})
    for (const int lanes : few_and_many) {
      if (size * lanes > 20'000'000) continue;
      const auto f = [=](Tensor count) {
        const auto inner = [=](Tensor i, Tensor rows) {
          return vt::while_loop([=](Tensor j, Tensor) { return j < i % 5; },
                                [=](Tensor j, Tensor rows) {
                                  return std::pair(j + 1,
                                                   vt::index_update(rows, (3 * i + j) % size,
                                                                    rows[(i + j) % size] + 1.0f));
                                },
                                std::pair(vt::tensor(0), rows))
              .second;
        };
        return vt::sum(
            vt::while_loop([=](Tensor i, Tensor) { return i < count; },
                           [=](Tensor i, Tensor rows) { return std::pair(i + 1, inner(i, rows)); },
                           std::pair(vt::tensor(0), vt::zeros({size}, vt::f32)))
                .second);
      };
      const Tensor counts = (20 + vt::arange(lanes) * 7 % 60).eval();
      turns("row_writes/" + std::to_string(size) + "/" + std::to_string(lanes), "lanes/s", f,
            [&](const auto& all) {
              all(counts).eval();
              return static_cast<double>(lanes);
            });
    }
}

// A loop that saves what an expensive loop inside of it gives, as a row.
void saved_rows() {
  constexpr std::int64_t size = 50;
  std::vector<double> weights = perf::numbers<double>(size * size, 9);
  for (double& w : weights) w /= std::sqrt(double{size} / 3);
  const Tensor matrix = as_floats(weights, {size, size});
  for (const std::int64_t rows : {10, 100, 1000})
    for (const int lanes : few_and_many) {
      if (rows * lanes > 200'000) continue;
      const auto f = [=](Tensor count, Tensor start) {
        const auto inner = [=](Tensor i, Tensor x) {
          return vt::while_loop([=](Tensor j, Tensor) { return j < (7 * i + count) % 4; },
                                [=](Tensor j, Tensor x) {
                                  return std::pair(j + 1, vt::tanh(vt::matmul(matrix, x)));
                                },
                                std::pair(vt::tensor(0), x))
              .second;
        };
        const auto saved =
            vt::while_loop([=](Tensor i, Tensor, Tensor) { return i < count; },
                           [=](Tensor i, Tensor x, Tensor saved) {
                             const Tensor next = inner(i, x);
                             return std::tuple(i + 1, next, vt::index_update(saved, i, next));
                           },
                           std::tuple(vt::tensor(0), start, vt::zeros({rows, size}, vt::f32)));
        return vt::sum(std::get<2>(saved));
      };
      const Tensor counts = (10 + vt::arange(lanes) * 7 % 9).eval();
      const Tensor starts =
          as_floats(spread_numbers(static_cast<std::size_t>(lanes) * size, 4), {lanes, size});
      turns("saved_rows/" + std::to_string(rows) + "/" + std::to_string(lanes), "lanes/s", f,
            [&](const auto& all) {
              all(counts, starts).eval();
              return static_cast<double>(lanes);
            });
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
  for (const int some : few_and_many)
    turns("fibonacci/" + std::to_string(some), "lanes/s", fib, [&](const auto& all) {
      all(vt::slice_in_dim(all_n, 0, some)).eval();
      return static_cast<double>(some);
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
  for (const int some : few_and_many)
    turns("kd_tree/" + std::to_string(some), "queries/s", nearest, [&](const auto& all) {
      all(vt::slice_in_dim(q, 0, some)).eval();
      return static_cast<double>(some);
    });
  row("kd_tree", "plain", "queries/s", [&] {
    volatile int sum = 0;
    for (int i = 0; i < queries; ++i) sum = sum + tree.nearest(&all_queries[3 * i]);
    return static_cast<double>(queries);
  });
}

// z² + c again and again, once of a complex number and once of two real ones.
void orbits() {
  using Parts = std::pair<Tensor, Tensor>;
  vt::Recursive<Tensor(Tensor, Tensor, Tensor)> complex("complex");
  complex = [&](Tensor n, Tensor z, Tensor c) {
    return vt::cond(
        n > 0, [&] { return complex(n - 1, z * z + c, c) + z * 0.5f; }, [&] { return z; });
  };
  vt::Recursive<Parts(Tensor, Parts, Parts)> real("real");
  real = [&](Tensor n, Parts z, Parts c) {
    return vt::cond(
        n > 0,
        [&] {
          const auto& [x, y] = z;
          const auto [re, im] = real(n - 1, {x * x - y * y + c.first, 2 * x * y + c.second}, c);
          return Parts{re + 0.5f * x, im + 0.5f * y};
        },
        [&] { return z; });
  };
  for (const int lanes : few_and_many) {
    const Tensor n = (5 + vt::arange(lanes) % 11).eval();
    const Tensor x = (vt::arange(lanes, vt::f32) * 5e-4f - 0.3f).eval();
    const Tensor y = (x * 0.0f + 0.1f).eval(), z = vt::complex(x, y).eval();
    turns("orbits/" + std::to_string(lanes), "lanes/s", complex, [&](const auto& all) {
      all(n, z, z).eval();
      return static_cast<double>(lanes);
    });
    turns("orbits_of_pairs/" + std::to_string(lanes), "lanes/s", real, [&](const auto& all) {
      vt::eval(all(n, Parts{x, y}, Parts{x, y}));
      return static_cast<double>(lanes);
    });
  }
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
  small_nuts("nuts_small", SmallGaussian());
  small_nuts("eight_schools", EightSchools());
  orbits();
  row_writes();
  saved_rows();
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
