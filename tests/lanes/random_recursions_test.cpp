// Random functions that call themselves and each other, from loops, branches and arguments of
// calls, over lanes of different depth: value and gradients of all schedules equal lane after lane.
// VT_FUZZ_SEED repeats a failure.
#include <gtest/gtest.h>

#include <random>

#include <vt/vt.hpp>

#include "src/jit/lanes/lane_run.hpp"
#include "support/property.hpp"

namespace {

using vt::LaneSchedule;
using vt::Tensor;
using Pair = std::pair<Tensor, Tensor>;
using Function = vt::Recursive<Pair(Tensor, Tensor)>;

class Choices {
 public:
  explicit Choices(std::uint64_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  const Tensor& of(const std::vector<Tensor>& pool) {
    return pool[below(static_cast<int>(pool.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

/// Up to three functions of a depth n and values x [m] or [] within [-1, 1]. They give such values
/// and how many calls there were. Choices are made anew whenever a body is recorded, so that it is
/// the same one.
class Program {
 public:
  Program(std::uint64_t seed, Tensor w) : seed_(seed), w_(std::move(w)) {
    Choices choose(seed);
    count_ = 1 + choose.below(3);
    for (int k = 0; k < count_; ++k) functions_.push_back(Function("f" + std::to_string(k)));
    for (int k = 0; k < count_; ++k)
      functions_[k] = [this, k](Tensor n, Tensor x) { return body(k, n, x); };
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Pair operator()(const Tensor& n, const Tensor& x) const { return functions_[0](n, x); }

  /// Elements of x; 0: it has no axis. With 48 a product is worth waiting for.
  static std::int64_t elements(std::uint64_t seed) {
    constexpr std::int64_t sizes[] = {0, 1, 3, 48};
    return sizes[Choices(seed + 1).below(4)];
  }

 private:
  /// One recorded body.
  struct Recording {
    Choices choose;
    Tensor n, calls;
    std::vector<Tensor> pool;
    int calls_left;
  };

  Pair body(int number, const Tensor& n, const Tensor& x) const {
    Choices choose(seed_ * 31 + static_cast<std::uint64_t>(number));
    const Tensor ends = choose.below(3) == 0 ? (n < 1) | (vt::mean(x) > 0.71) : n < 1;
    return vt::cond(
        ends, [&] { return Pair(choose.below(2) ? vt::sin(x) : x, Tensor(1)); },
        [&] {
          Recording r{choose, n, Tensor(1), {x}, 2};
          const int steps = 2 + r.choose.below(4);
          for (int k = 0; k < steps; ++k) step(r);
          const bool at_the_end = r.calls_left == 2 || (r.calls_left == 1 && r.choose.below(3));
          if (at_the_end && r.choose.below(2)) {  // a tail call
            const Pair last = call(r, r.pool.back());
            return r.choose.below(2) ? Pair(last.first, last.second)
                                     : Pair(last.first, last.second + r.calls);
          }
          if (at_the_end) called(r, r.pool.back());
          return Pair(r.pool.back(), r.calls);
        });
  }

  Pair call(Recording& r, const Tensor& x) const {
    --r.calls_left;
    const Function& f = functions_[r.choose.below(count_)];
    const Tensor less = r.choose.below(3) == 0 ? r.n / 2 : r.n - 1 - r.choose.below(2);
    return f(less, x);
  }
  void called(Recording& r, const Tensor& x) const {
    const Pair p = call(r, x);
    r.calls = r.calls + p.second;
    r.pool.push_back(vt::tanh(p.first + r.choose.of(r.pool)));
  }

  Tensor simple(Choices& choose, const std::vector<Tensor>& pool) const {
    const Tensor a = choose.of(pool), b = choose.of(pool);
    switch (choose.below(7)) {
      case 0: return a * b;
      case 1: return vt::tanh(vt::sin(a) + b);
      case 2: return vt::where(a > b, a, vt::cos(b));
      case 3: return vt::tanh(a - vt::mean(b));
      case 4: return a.rank() ? vt::tanh(vt::matmul(w_, a)) : vt::sin(a * w_[0][0]);
      case 5: return a.rank() ? vt::flip(a) : -a;
      default: return vt::maximum(a, b * 0.3);
    }
  }

  // Sums that are zero but for rounding decide nothing: branches compare with another number.
  void step(Recording& r) const {
    const Tensor a = r.choose.of(r.pool);
    const int kind = r.choose.below(15);
    const bool may_call = r.calls_left > 0;
    switch (kind) {
      case 0:
      case 1:
        if (may_call) return called(r, a);
        break;
      case 2:
      case 3: {  // a branch that only some lanes take, with a call or without
        const bool calls = may_call && r.choose.below(2);
        Recording inner = r;
        const auto [x, n] = vt::cond(
            vt::sum(a) > 0.137,
            [&] {
              if (calls) called(inner, a);
              else inner.pool.push_back(simple(inner.choose, inner.pool));
              return Pair(inner.pool.back(), inner.calls);
            },
            [&] { return Pair(vt::sin(a), r.calls); });
        if (calls) --r.calls_left;
        r.choose.below(2);
        r.pool.push_back(x);
        r.calls = n;
        return;
      }
      case 4: {  // lanes leave at different times
        const Tensor b = r.choose.of(r.pool);
        const int most = 2 + r.choose.below(4);
        const Choices inner = r.choose;
        r.pool.push_back(
            vt::while_loop([&](Tensor i, Tensor v) { return (i < most) & (vt::mean(v) < 0.43); },
                           [&](Tensor i, Tensor v) {
                             Choices choose = inner;
                             return std::pair(i + 1, vt::tanh(simple(choose, {v, b}) + 0.2));
                           },
                           std::pair(Tensor(0), a))
                .second);
        return;
      }
      case 5: {  // each iteration calls
        if (!may_call || r.calls_left < 2) break;
        r.calls_left = 0;
        Choices inner = r.choose;
        const Function& f = functions_[inner.below(count_)];
        const auto [last, each] = vt::scan(
            [&](Pair c, Tensor weight) {
              const Pair p = f(r.n - 1, c.first * weight);
              return std::pair(Pair(vt::tanh(p.first), c.second + p.second), vt::mean(p.first));
            },
            Pair(a, r.calls), vt::tensor({0.9, -0.6}));
        r.pool.push_back(vt::tanh(last.first + each[1] * 0.5));
        r.calls = last.second;
        return;
      }
      case 6: {  // as many iterations as the lane is deep
        const Choices inner = r.choose;
        r.pool.push_back(vt::fori_loop(
            0, r.n,
            [&](Tensor i, Tensor v) {
              Choices choose = inner;
              return vt::sin(simple(choose, {v, a}) + 0.1 * i.astype(vt::f64));
            },
            a));
        return;
      }
      case 7: return r.pool.push_back(vt::meeting(a));
      case 8:  // a place that depends on the lane
        if (a.rank())
          return r.pool.push_back(vt::index_update(a, r.n % a.dim(0), vt::cos(a[r.n % a.dim(0)])));
        break;
      case 9:  // a call within a call
        if (r.calls_left == 2) {
          const Pair p = call(r, a);
          r.calls = r.calls + p.second;
          return called(r, vt::sin(p.first));
        }
        break;
      case 10: {
        const Tensor key = vt::random::fold_in(vt::random::key(seed_), r.n + r.calls);
        return r.pool.push_back(vt::tanh(a + vt::random::uniform(key, a.shape(), vt::f64)));
      }
      case 11: return r.pool.push_back(rows(r, a, false));
      case 12: return r.pool.push_back(rows(r, a, true));
      case 13: {  // complex numbers
        const Tensor z = vt::complex(a, r.choose.of(r.pool) * 0.5);
        const Tensor w = r.choose.below(2) ? z * z : vt::exp(z * 0.3);
        return r.pool.push_back(vt::tanh(vt::real(w) - vt::imag(w)));
      }
      default: break;
    }
    r.pool.push_back(simple(r.choose, r.pool));
  }

  // A loop that writes some elements of an array in each iteration, and reads others; arrays are
  // larger and smaller than what is worth writing in place. Lanes leave at different times.
  Tensor rows(Recording& r, const Tensor& a, bool with_complex) const {
    constexpr std::int64_t sizes[] = {5, 127, 128, 129, 300};
    const std::int64_t size = sizes[r.choose.below(5)];
    const int kind = r.choose.below(5), last = 1 + r.choose.below(3);
    const bool reads_all = r.choose.below(3) == 0, keeps_old = r.choose.below(3) == 0;
    const Tensor start = vt::mean(a), n = r.n;
    const auto number = [&](Tensor x) { return with_complex ? vt::complex(x, x * 0.5) : x; };
    const auto real = [&](Tensor x) { return with_complex ? vt::real(x) - vt::imag(x) : x; };
    const auto [steps, value, all, old] = vt::while_loop(
        [&](Tensor i, Tensor v, Tensor, Tensor) { return (i < n + last) & (v < 0.87); },
        [&](Tensor i, Tensor v, Tensor all, Tensor old) {
          const Tensor at = (3 * i + n) % size;
          Tensor next;
          switch (kind) {
            case 0: next = vt::index_update(all, at, number(v)); break;
            case 1: next = vt::index_add(all, at, number(v)); break;
            case 2:
              next = vt::dynamic_update_slice(all, number(vt::stack({v, v * 0.5})), {at});
              break;
            case 3:  // one after the other, the second one out of the first
              next = vt::index_update(all, at, number(v));
              next = vt::index_update(next, (at + 1) % size, next[at] * 0.5);
              break;
            default:  // several, some of them the same
              next = vt::index_add(all, vt::stack({at, at, vt::zeros_like(at)}),
                                   number(vt::stack({v, v * 0.5, 0.1 + v})));
          }
          Tensor read = real(next[(at + i) % size]) + real(all[at]);
          if (reads_all) read = read + vt::mean(real(next));
          return std::tuple(i + 1, vt::sin(v + 0.3 * read), next, keeps_old ? all : old);
        },
        std::tuple(Tensor(0), start, number(vt::zeros({size}, vt::f64) + 0.1),
                   number(vt::zeros({size}, vt::f64))));
    return vt::tanh(a + value + real(all[n % size]) + vt::mean(real(all)) + vt::mean(real(old)) +
                    0.01 * steps.astype(vt::f64));
  }

  std::uint64_t seed_;
  Tensor w_;
  int count_;
  std::vector<Function> functions_;
};

const std::uint64_t first_seed = vt_test::environment("VT_FUZZ_SEED", 1),
                    count = vt_test::environment("VT_FUZZ_COUNT", 100) / 5;

/// A number of each lane that depends on all that the program gives.
Tensor summary(const Program& program, const Tensor& n, const Tensor& x) {
  const Pair p = program(n, x);
  return vt::sum(vt::sin(p.first + 0.3)) + p.second.astype(vt::f64);
}

std::vector<double> numbers(const std::vector<Tensor>& all) {
  std::vector<double> result;
  for (const Tensor& t : all)
    for (const double v : t.to_vector<double>()) result.push_back(v);
  return result;
}
void expect_near(const std::vector<double>& got, const std::vector<double>& wanted,
                 const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], 1e-9 * (1 + std::abs(wanted[i]))) << what << ", " << i;
}

/// `mapped(schedule)(n, x)` by all schedules near `wanted`; where lanes wait in queues, of the same
/// bits for all orders, numbers of places and of threads.
void expect_schedules(
    const std::function<std::vector<Tensor>(LaneSchedule, const Tensor&, const Tensor&)>& mapped,
    const std::vector<double>& wanted, const Tensor& n, const Tensor& x, const std::string& what) {
  const int threads = vt::num_threads();
  for (const LaneSchedule schedule : {LaneSchedule::groups, LaneSchedule::automatic,
                                      LaneSchedule::hybrid, LaneSchedule::program_counter}) {
    const std::string by = what + ", schedule " + std::to_string(static_cast<int>(schedule));
    const auto run =
        vt::jit([&](const Tensor& n, const Tensor& x) { return mapped(schedule, n, x); });
    run(n, x);  // compiled when seen again
    const std::vector<double> first = numbers(run(n, x));
    expect_near(first, wanted, by);
    if (schedule != LaneSchedule::hybrid) continue;
    for (const vt::detail::LaneOptions options :
         {vt::detail::LaneOptions{vt::detail::LaneOrder::earliest, 0},
          vt::detail::LaneOptions{vt::detail::LaneOrder::last, 2},
          vt::detail::LaneOptions{vt::detail::LaneOrder::most, 1}}) {
      vt::detail::lane_options() = options;
      vt::set_num_threads(options.places == 2 ? 3 : threads);
      EXPECT_EQ(numbers(run(n, x)), first)
          << by << ", order " << static_cast<int>(options.order) << ", places " << options.places;
    }
    vt::detail::lane_options() = {};
    vt::set_num_threads(threads);
  }
}

TEST(RandomRecursions, SchedulesOnThreadsAreLaneAfterLane) {
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    SCOPED_TRACE("VT_FUZZ_SEED=" + std::to_string(seed));
    Choices choose(seed + 2);
    const std::int64_t m = Program::elements(seed);
    const Tensor w = vt_test::random_tensor(
        vt::f64, {std::max<std::int64_t>(m, 1), std::max<std::int64_t>(m, 1)}, -0.5, 0.5, seed + 3);
    // Threads share lanes from 32 on.
    const int lanes_of_one = choose.below(6) == 0 ? 33 + choose.below(8) : 1 + choose.below(9);
    std::vector<std::int32_t> depths(static_cast<std::size_t>(lanes_of_one));
    for (std::int32_t& d : depths) d = choose.below(5);
    const Tensor n = vt::tensor(depths);
    const auto lanes = static_cast<std::int64_t>(depths.size());
    const Tensor x = vt_test::random_tensor(vt::f64, m ? vt::Shape{lanes, m} : vt::Shape{lanes}, -1,
                                            1, seed + 4);

    const Program program(seed, w);
    const auto value = [&](const Tensor& n, const Tensor& x) { return summary(program, n, x); };
    const auto with_slope = [&](const Tensor& n, const Tensor& x) {
      return vt::value_and_grad([&](const Tensor& x) { return value(n, x); })(x);
    };
    std::vector<Tensor> values, slopes;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const auto [v, slope] = with_slope(n[lane], x[lane]);
      EXPECT_NEAR(v.item<double>(), value(n[lane], x[lane]).item<double>(), 1e-12);
      values.push_back(v);
      slopes.push_back(slope);
    }
    std::vector<Tensor> both = values;
    both.insert(both.end(), slopes.begin(), slopes.end());
    if (seed % 2)
      expect_schedules(
          [&](LaneSchedule s, const Tensor& n, const Tensor& x) {
            return std::vector{vt::vmap(value, {.schedule = s})(n, x)};
          },
          numbers(values), n, x, "value");
    expect_schedules(
        [&](LaneSchedule s, const Tensor& n, const Tensor& x) {
          const auto [v, slope] = vt::vmap(with_slope, {.schedule = s})(n, x);
          return std::vector{v, slope};
        },
        numbers(both), n, x, "gradient");
    if (HasFatalFailure() || HasFailure()) return;

    // By what lanes share, and of a batch of batches.
    if (seed % 4) continue;
    const auto by_shared = [&](const Tensor& w, const Tensor& n, const Tensor& x, LaneSchedule s) {
      return vt::grad([&](const Tensor& w) {
        const Program own(seed, w);
        return vt::sum(
            vt::vmap([&](const Tensor& n, const Tensor& x) { return summary(own, n, x); },
                     {.schedule = s})(n, x));
      })(w);
    };
    Tensor sum = vt::zeros_like(w);
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      sum = sum + by_shared(w, n[vt::slice(lane, lane + 1)], x[vt::slice(lane, lane + 1)],
                            LaneSchedule::groups);
    expect_schedules([&](LaneSchedule s, const Tensor& n,
                         const Tensor& x) { return std::vector{by_shared(w, n, x, s)}; },
                     numbers({sum}), n, x, "gradient by what is shared");
    std::vector<Tensor> twice = values;
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      twice.push_back(value(n[lane], x[lane] * 0.5));
    expect_schedules(
        [&](LaneSchedule s, const Tensor& n, const Tensor& x) {
          return std::vector{vt::vmap(
              [&](const Tensor& scale) {
                return vt::vmap(
                    [&](const Tensor& n, const Tensor& x) { return value(n, x * scale); },
                    {.schedule = s})(n, x);
              },
              {.schedule = s})(vt::tensor({1.0, 0.5}))};
        },
        numbers(twice), n, x, "lanes of lanes");
    if (HasFatalFailure() || HasFailure()) return;
  }
}

}  // namespace
