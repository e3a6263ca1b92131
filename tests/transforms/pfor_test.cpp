// pfor with n a Tensor: against a number n and against plain loops, compiled and not; derivatives,
// nesting, collectives, effects, variables and draws of lanes that run, and nothing of the others.
#include <algorithm>
#include <cmath>
#include <functional>

#include "support/message.hpp"
#include "support/printed.hpp"
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::Tensor;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::Lines;
using vt_test::message;
using vt_test::printed;
using vt_test::Tolerance;

constexpr Tolerance near{.relative = 1e-7, .absolute = 1e-8},
    same{.relative = 1e-12, .absolute = 1e-13};
constexpr int bound = 5;

const Tensor xs = vt_test::random_tensor(vt::f64, {bound, 3}, 0.3, 1.4, 7);
const Tensor square = vt_test::random_tensor(vt::f64, {bound, bound}, 0.3, 1.4, 8);

/// What a number n gives, with rows of zeros behind.
Tensor padded(const Tensor& x) {
  if (x.dim(0) == bound) return x;
  vt::Shape shape = x.shape();
  shape[0] = bound - shape[0];
  return vt::concatenate({x, vt::zeros(shape, x.dtype())}, 0);
}

/// A body of x f64[bound,3], w f64[bound,bound] and the index; it gives f64[…].
using Body = std::function<Tensor(Tensor x, Tensor w, Tensor i)>;
struct Case {
  const char* name;
  Body body;
};

Tensor halved(Tensor v) {
  return vt::while_loop([](Tensor u) { return vt::sum(u) > 1.0; }, [](Tensor u) { return u * 0.5; },
                        v);
}

/// Bodies whose value with a number n is that with more lanes of which n run.
const std::vector<Case> bodies = {
    {"elements", [](Tensor x, Tensor, Tensor i) { return vt::sin(x[i]) * (1.0 + i); }},
    {"a product", [](Tensor x, Tensor w, Tensor i) { return vt::matmul(w, x)[i] + vt::sum(w[i]); }},
    {"the index", [](Tensor x, Tensor, Tensor i) { return i.astype(vt::f64) + 0.0 * x[0]; }},
    {"shared", [](Tensor x, Tensor w, Tensor) { return vt::sum(vt::log(x)) + w[0]; }},
    {"a branch",
     [](Tensor x, Tensor, Tensor i) {
       return vt::cond(
           x[i][0] > 0.8, [](Tensor v) { return vt::log(v); }, [](Tensor v) { return v * v; },
           x[i]);
     }},
    {"a loop", [](Tensor x, Tensor, Tensor i) { return halved(x[i] * 4.0); }},
    {"a scan",
     [](Tensor x, Tensor w, Tensor i) {
       return vt::scan([&](Tensor c, Tensor e) { return std::pair(vt::tanh(c + e * x[i]), e * c); },
                       x[i], w[i])
           .first;
     }},
    {"a call",
     [](Tensor x, Tensor, Tensor i) { return vt::jit([](Tensor v) { return v * v; })(x[i]); }},
    {"a gradient",
     [](Tensor x, Tensor w, Tensor i) {
       return vt::grad([&](Tensor v) { return vt::sum(vt::sin(v) * w[i][0]) * vt::sum(v); })(x[i]);
     }},
    {"a checkpoint",
     [](Tensor x, Tensor, Tensor i) {
       return vt::checkpoint([](Tensor v) { return vt::exp(v) / vt::sum(v); })(x[i]);
     }},
    {"a rule",
     [](Tensor x, Tensor, Tensor i) {
       const auto f =
           vt::custom_jvp([](Tensor v) { return vt::sin(v); },
                          [](Tensor v, Tensor t) { return std::pair(vt::sin(v), vt::cos(v) * t); });
       return f(x[i]);
     }},
    {"a solve",
     [](Tensor x, Tensor w, Tensor i) {
       return vt::sum(vt::solve(w * w[i][0] + 3.0 * vt::eye(bound, vt::f64), w[i])) * x[i];
     }},
    {"sorted", [](Tensor x, Tensor, Tensor i) { return vt::cumsum(vt::sort(x[i]), 0); }},
    {"psum", [](Tensor x, Tensor, Tensor i) { return x[i] * vt::psum(x[i] * x[i], "i"); }},
    {"pmean", [](Tensor x, Tensor, Tensor i) { return x[i] - vt::pmean(vt::sin(x[i]), "i"); }},
    {"pmax", [](Tensor x, Tensor, Tensor i) { return x[i] * vt::pmax(-x[i], "i"); }},
    {"pmin", [](Tensor x, Tensor, Tensor i) { return x[i] * vt::pmin(x[i], "i"); }},
    {"count", [](Tensor x, Tensor, Tensor i) { return x[i] * vt::psum(1, "i"); }},
    {"shared sums",
     [](Tensor x, Tensor w, Tensor i) {
       return x[i] + vt::psum(x[0], "i") * vt::pmax(w[0][0], "i") + vt::pmean(w[0][1], "i");
     }},
    {"of sums",
     [](Tensor x, Tensor, Tensor i) {
       const Tensor mean = vt::pmean(x[i], "i");
       return (x[i] - mean) / vt::sqrt(vt::pmean(vt::square(x[i] - mean), "i") + 0.1);
     }},
    {"gathered",
     [](Tensor x, Tensor, Tensor i) {
       const Tensor all = vt::all_gather(x[i], "i");
       return vt::sum(all * all, 0) * x[i];
     }},
    {"shifted", [](Tensor x, Tensor,
                   Tensor i) { return x[i] + vt::where(vt::axis_index("i") > 0, 1.0, 0.0) * 0.5; }},
    {"a sum in a scan",
     [](Tensor x, Tensor w, Tensor i) {
       const auto step = [&](Tensor c, Tensor e) {
         return std::pair(vt::tanh(c + e * vt::pmean(c * x[i], "i")), std::nullopt);
       };
       return vt::scan(step, x[i], w[0]).first;
     }},
    {"a sum in a call",
     [](Tensor x, Tensor, Tensor i) {
       return vt::jit([](Tensor v) { return v / vt::psum(v, "i"); })(x[i]);
     }},
    {"a sum in a branch",
     [](Tensor x, Tensor w, Tensor i) {
       return vt::cond(
           vt::psum(w[i][0], "i") > 2.0, [](Tensor v) { return v * vt::psum(v, "i"); },
           [](Tensor v) { return vt::pmax(v, "i") - v; }, x[i]);
     }},
    {"a loop that all leave together",
     [](Tensor x, Tensor, Tensor i) {
       return vt::while_loop([](Tensor v) { return vt::pmax(vt::sum(v), "i") > 1.0; },
                             [](Tensor v) { return v * (0.5 + 0.1 * vt::pmin(v, "i")); }, x[i]);
     }},
    {"a gradient of sums",
     [](Tensor x, Tensor, Tensor i) {
       return vt::grad([](Tensor v) { return vt::sum(vt::sin(vt::psum(v * v, "i")) * v); })(x[i]);
     }},
    {"a gradient of extremes",
     [](Tensor x, Tensor, Tensor i) {
       return vt::grad([](Tensor v) { return vt::sum(vt::pmax(v * v, "i") * v); })(x[i]);
     }},
    {"a gradient of a loop with sums",
     [](Tensor x, Tensor, Tensor i) {
       return vt::grad([](Tensor u) {
         return vt::sum(vt::while_loop(
             [](Tensor v) { return vt::pmax(vt::sum(v), "i") > 1.0; },
             [](Tensor v) { return v * (0.5 + 0.1 * vt::psum(vt::sin(v), "i")) * 0.6; }, u));
       })(x[i]);
     }},
    {"a checkpoint with sums",
     [](Tensor x, Tensor, Tensor i) {
       const Tensor share = vt::psum(x[i], "i");
       return x[i] * share + vt::checkpoint([](Tensor v) { return vt::psum(v * v, "i"); })(x[i]);
     }},
    {"pfor inside",
     [](Tensor x, Tensor w, Tensor i) {
       return vt::sum(vt::pfor([&](Tensor j) { return w[j][i] * x[j]; }, i + 1, {.at_most = bound}),
                      0);
     }},
    {"pfor inside, and sums of both",
     [](Tensor x, Tensor w, Tensor i) {
       const auto inner = [&](Tensor j) {
         return x[j] * vt::psum(w[i][j], "j") + vt::psum(w[0][j], "j");
       };
       const Tensor own = vt::pfor(inner, i, {.at_most = bound, .axis_name = "j"});
       return vt::sum(own, 0) + vt::psum(vt::sum(own), "i");
     }},
};

/// On a device a number of lanes is a kernel of its own, the same but for its extents.
const std::vector<int> numbers_of_lanes =
    vt_test::forced_backend() == "cuda" ? std::vector{0, 3} : std::vector{0, 1, 2, 3, 4, bound};

/// The case's pfor, with n a number or a Tensor.
Tensor counted(const Case& c, Tensor x, Tensor w, const auto& n, vt::PforOptions options = {}) {
  options.axis_name = "i";
  return vt::pfor([&](Tensor i) { return c.body(x, w, i); }, n, options);
}
using OfTensors = std::function<Tensor(Tensor x, Tensor w, Tensor n)>;
OfTensors of_tensor(const Case& c) {
  return [&c](Tensor x, Tensor w, Tensor n) { return counted(c, x, w, n, {.at_most = bound}); };
}
/// Derivatives by x and w of a sum of the results, each with a weight of its own.
auto slopes_of(const OfTensors& f) {
  return [f](Tensor x, Tensor w, Tensor n) {
    const auto loss = [&](Tensor a, Tensor b) {
      const Tensor y = f(a, b, n);
      return vt::sum(y * vt::reshape(vt::cos(vt::arange(y.size()).astype(vt::f64)), y.shape()));
    };
    return vt::grad<0, 1>(loss)(x, w);
  };
}

TEST(PforOfTensor, IsThatOfANumber) {
  const bool device = vt_test::forced_backend() == "cuda";
  bool every_second = false;  // on a device, as what they are made of is tested there elsewhere
  for (const Case& c : bodies) {
    SCOPED_TRACE(c.name);
    if (device && (every_second = !every_second)) continue;
    const auto f = of_tensor(c), compiled = OfTensors(vt::jit(f));
    for (const int n : numbers_of_lanes) {
      SCOPED_TRACE(n);
      const Tensor wanted = padded(counted(c, xs, square, n));
      expect_close(f(xs, square, vt::tensor(n)), wanted, same);
      expect_close(compiled(xs, square, vt::tensor(n)), wanted, same, "compiled");
      if (device) continue;  // these two are Graphs of a number
      expect_close(counted(c, xs, square, n, {.at_most = bound}), wanted, same, "a number");
      expect_close(padded(counted(c, xs, square, vt::tensor(n))), wanted, same, "known");
    }
    if (HasFailure()) return;
  }
}

TEST(PforOfTensor, DerivativesAreThoseOfANumber) {
  for (const Case& c : bodies) {
    SCOPED_TRACE(c.name);
    const auto f = of_tensor(c);
    const auto slopes = vt::jit(slopes_of(f));
    for (const int n : numbers_of_lanes) {
      SCOPED_TRACE(n);
      const OfTensors of_number = [&](Tensor x, Tensor w, Tensor) {
        return padded(counted(c, x, w, n));
      };
      const auto [by_x, by_w] = slopes_of(of_number)(xs, square, {});
      const auto [x_slope, w_slope] = slopes(xs, square, vt::tensor(n));
      expect_close(x_slope, by_x, near, "by x");
      expect_close(w_slope, by_w, near, "by w");
    }
    const Tensor d = vt_test::random_tensor(vt::f64, xs.shape(), 9);
    const auto twice = [&](Tensor n) {
      const auto once = [&](Tensor x) { return std::get<0>(slopes_of(f)(x, square, n)); };
      return vt::jvp(once, std::tuple(xs), std::tuple(d)).second;
    };
    const auto along = [&](double h) {
      return std::get<0>(slopes(xs + h * d, square, vt::tensor(3)));
    };
    expect_close(vt::jit(twice)(vt::tensor(3)), (along(1e-5) - along(-1e-5)) / 2e-5,
                 {.relative = 1e-5, .absolute = 1e-6}, "second order");
    if (HasFailure()) return;
  }
}

TEST(PforOfTensor, CountsOfLanesAndIterations) {
  for (const Case& c : bodies) {
    SCOPED_TRACE(c.name);
    const auto f = of_tensor(c);
    const Tensor ns = vt::tensor({3, 0, 5, 1});
    const auto mapped = vt::vmap([&](Tensor n) { return f(xs, square, n); });
    const Tensor all = mapped(ns), compiled = vt::jit(mapped)(ns);
    for (int k = 0; k < 4; ++k) {
      expect_close(all[k], f(xs, square, ns[k]), same);
      expect_close(compiled[k], f(xs, square, ns[k]), same, "compiled");
    }
    const auto in_scan = [&](Tensor x, Tensor counts) {
      const auto step = [&](Tensor sum, Tensor n) {
        return std::pair(sum + f(x, square, n), std::nullopt);
      };
      return vt::scan(step, vt::zeros_like(all[0]), counts).first;
    };
    expect_close(vt::jit(in_scan)(xs, ns), vt::sum(all, 0), same, "in a scan");
    if (HasFailure()) return;
  }
}

TEST(PforOfTensor, DerivativesWithCountsOfLanes) {
  for (const Case& c : bodies) {
    SCOPED_TRACE(c.name);
    const Tensor ns = vt::tensor({3, 0, 5, 1});
    const auto slopes = vt::jit(slopes_of(of_tensor(c)));
    const auto [by_x, by_w] =
        vt::jit(vt::vmap([&](Tensor n) { return slopes_of(of_tensor(c))(xs, square, n); }))(ns);
    for (int k = 0; k < 4; ++k) {
      const auto [x_slope, w_slope] = slopes(xs, square, ns[k]);
      expect_close(by_x[k], x_slope, near, "by x");
      expect_close(by_w[k], w_slope, near, "by w");
    }
    if (HasFailure()) return;
  }
}

// --- what lanes behind n do not do
// -----------------------------------------------------------------

/// f(n) as it is and compiled, n an i32[].
void both_ways(const std::function<void(std::function<Tensor(Tensor)>, const char*)>& check,
               const std::function<Tensor(Tensor)>& f) {
  check(f, "as it is");
  check(vt::jit(f), "compiled");
}

TEST(PforOfTensor, OtherLanesNeitherFailNorPrintNorCallTheHost) {
  std::vector<int> called;
  const auto body = [&](Tensor i) {
    vt::check(i < 3, "{} is too much", i);
    vt::debug_print("lane {}", i);
    vt::debug_print("shared");
    const auto host = vt::callback(
        [&](Tensor j) {
          called.push_back(j.item<int>());
          return j * 2;
        },
        i);
    const Tensor doubled = host(i);
    vt::check(doubled < 6, "{} is too much", doubled);
    return doubled + 1;
  };
  both_ways(
      [&](const std::function<Tensor(Tensor)>& f, const char* how) {
        SCOPED_TRACE(how);
        for (int n = 0; n <= 3; ++n) {
          called.clear();
          Lines lines, wanted;
          std::vector<int> calls, values(bound);
          for (int i = 0; i < n; ++i) {
            if (i == 0) wanted.push_back("shared");
            wanted.push_back("lane " + std::to_string(i));
            calls.push_back(i);
            values[i] = 2 * i + 1;
          }
          std::vector<int> got;
          lines = printed([&] { got = f(vt::tensor(n)).to_vector<int>(); });
          std::sort(lines.begin(), lines.end());
          std::sort(wanted.begin(), wanted.end());
          EXPECT_EQ(lines, wanted) << n;
          EXPECT_EQ(called, calls) << n;
          EXPECT_EQ(got, values) << n;
        }
        printed([&] {
          expect_error([&] { f(vt::tensor(4)).eval(); }, ErrorKind::check,
                       {"3 is too much", "; in lane 3"});
        });
      },
      [&](Tensor n) { return vt::pfor(body, n, {.at_most = bound}); });
}

TEST(PforOfTensor, ACheckThatFailsInEachLaneFailsInNone) {
  both_ways(
      [](const std::function<Tensor(Tensor)>& f, const char* how) {
        SCOPED_TRACE(how);
        EXPECT_EQ(f(vt::tensor(0)).to_vector<int>(), std::vector<int>(bound));
        expect_error([&] { f(vt::tensor(1)).eval(); }, ErrorKind::check, {"never"});
      },
      [](Tensor n) {
        const auto body = [](Tensor i) {
          vt::check(i < 0, "never");
          vt::check(vt::axis_size("i") < 1, "never");
          return i;
        };
        return vt::pfor(body, n, {.at_most = bound, .axis_name = "i"});
      });
}

TEST(PforOfTensor, NothingLeaksFromOtherLanes) {
  // Out of the domain of log and of division beyond lane 2, and an endless loop there.
  const Tensor x = vt::tensor({1.0, 2.0, 3.0, 0.0, -1.0});
  const auto f = [](Tensor v, Tensor n) {
    return vt::pfor(
        [&](Tensor i) {
          const Tensor e = v[i];
          const Tensor high =
              vt::while_loop([](Tensor u) { return u < 4.0; }, [](Tensor u) { return 2.0 * u; }, e);
          return vt::log(e) / e + 0.1 * high + vt::psum(vt::sqrt(e), "i") +
                 vt::pmax(vt::log(e), "i");
        },
        n, {.at_most = bound, .axis_name = "i"});
  };
  const auto total = [&](Tensor v, Tensor n) { return vt::sum(f(v, n)); };
  for (int n = 0; n <= 3; ++n) {
    SCOPED_TRACE(n);
    const auto alone = [&](Tensor v) {
      return n == 0 ? 0.0 * vt::sum(v) : vt::sum(f(v[vt::slice(0, n)], vt::tensor(n)));
    };
    const Tensor count = vt::tensor(n);
    const Tensor value = vt::jit(f)(x, count), slope = vt::grad(total)(x, count),
                 compiled = vt::jit(vt::grad(total))(x, count);
    const auto pushed = vt::jit([&](Tensor v, Tensor at) {
      return vt::jvp([&](Tensor w) { return f(w, at); }, std::tuple(v),
                     std::tuple(vt::ones_like(v)))
          .second;
    });
    const Tensor wanted = n == 0 ? vt::zeros_like(x) : vt::grad(alone)(x);
    expect_close(slope, wanted, same);
    expect_close(compiled, wanted, same, "compiled");
    expect_close(vt::sum(pushed(x, count)), vt::sum(wanted), near, "forward");
    const auto second = vt::jit(vt::grad([&](Tensor v) {
      return vt::sum(vt::grad(total)(v, count) * vt::tensor({0.3, 0.2, 0.5, 0.7, 0.9}));
    }))(x);
    for (int i = 0; i < bound; ++i) {
      EXPECT_TRUE(std::isfinite(value[i].item<double>())) << i;
      EXPECT_TRUE(std::isfinite(second[i].item<double>())) << i;
      if (i < n) continue;
      EXPECT_EQ(value[i].item<double>(), 0.0);
      EXPECT_EQ(slope[i].item<double>(), 0.0);
      EXPECT_EQ(second[i].item<double>(), 0.0);
    }
    // A cotangent that is no number, of a lane that does not run.
    const auto pull = std::get<1>(vt::vjp([&](Tensor v) { return f(v, count); }, x));
    const Tensor wild = vt::where(vt::arange(bound) < n, vt::ones({}, vt::f64),
                                  vt::tensor(static_cast<double>(NAN)));
    expect_close(std::get<0>(std::tuple(pull(wild))), wanted, same, "a cotangent that is NaN");
  }
  // What is shared, too, is left alone if no lane runs.
  const auto shared = [](Tensor v, Tensor n) {
    return vt::sum(
        vt::pfor([&](Tensor i) { return vt::log(v) / v * (1.0 + i); }, n, {.at_most = bound}));
  };
  EXPECT_EQ(vt::grad(shared)(vt::tensor(0.0), vt::tensor(0)).item<double>(), 0.0);
  EXPECT_EQ(vt::jit(vt::grad(shared))(vt::tensor(0.0), vt::tensor(0)).item<double>(), 0.0);
}

TEST(PforOfTensor, UpdatesVariablesForLanesThatRun) {
  for (const std::int64_t chunk : {0, 2}) {
    for (const int n : numbers_of_lanes) {
      SCOPED_TRACE(std::to_string(n) + " lanes, chunk " + std::to_string(chunk));
      const auto after = [&](const auto& count, bool compiled, vt::PforOptions options) {
        const vt::Variable sum(10.0), product(3.0), most(-4), least(2.5), last(7.0), shared(1.0);
        vt::Generator draws(3);
        options.chunk = chunk;
        const auto run = [&](auto n) {
          vt::pfor(
              [&](Tensor i) {
                const Tensor x = i + vt::random::uniform(draws.next(), {}, vt::f64);
                sum.assign_add(x);
                product.assign_mul(x + 0.5);
                most.assign_max(-i - 1);
                least.assign_min(2.0 + i.astype(vt::f64));
                last.assign(vt::tensor(9.0));
                shared.assign_add(vt::tensor(0.5));
              },
              n, options);
        };
        if constexpr (std::is_same_v<std::decay_t<decltype(count)>, Tensor>) {
          if (compiled) vt::jit([&](Tensor n) { return run(n), std::tuple<>(); })(count);
          else run(count);
        } else {
          run(count);
        }
        return vt::stack({sum.value(), product.value(), most.value().astype(vt::f64), least.value(),
                          last.value(), shared.value(),
                          vt::random::uniform(draws.next(), {}, vt::f64)});
      };
      const Tensor wanted = after(n, false, {});
      expect_close(after(vt::tensor(n), false, {.at_most = bound}), wanted, same);
      expect_close(after(vt::tensor(n), true, {.at_most = bound}), wanted, same, "compiled");
      expect_close(after(n, false, {.at_most = bound}), wanted, same, "a number");
    }
  }
}

TEST(PforOfTensor, DrawsAreThoseOfANumber) {
  const auto drawn = [](auto n, vt::PforOptions options) {
    vt::Generator draws(5);
    return vt::pfor([&](Tensor) { return vt::random::normal(draws.next(), {3}); }, n, options);
  };
  const auto few = drawn(3, {}).to_vector<float>();
  auto all = drawn(vt::tensor(3), {.at_most = bound}).to_vector<float>();
  for (std::size_t k = few.size(); k < all.size(); ++k) EXPECT_EQ(all[k], 0.0f);
  all.resize(few.size());
  EXPECT_EQ(all, few);
}

// --- collectives
// -----------------------------------------------------------------------------------

TEST(PforOfTensor, CollectivesSeeWhatChangesNothingOfOtherLanes) {
  const Tensor v = vt::tensor({3.0, -1.0, 4.0, 8.0, -9.0});
  const Tensor k = vt::tensor({3, -1, 4, 8, -9});
  const auto f = [&](Tensor n) {
    return vt::pfor(
        [&](Tensor i) {
          EXPECT_EQ(vt::axis_size("i"), bound);
          return std::tuple(
              vt::psum(v[i], "i"), vt::psum(i < 4, "i"), vt::pmax(v[i], "i"), vt::pmin(k[i], "i"),
              vt::pmax(v[i] > 100.0, "i"), vt::pmin(v[i] < 100.0, "i"), vt::all_gather(v[i], "i"),
              vt::all_gather(k[0], "i"), vt::all_to_all(v + i, "i", 0, 0),
              vt::psum_scatter(v * (1.0 + i), "i"),
              vt::ppermute(v[i], "i", {{0, 4}, {1, 0}, {2, 1}, {4, 2}}),
              vt::pshuffle(v[i], "i", {4, 3, 2, 1, 0}), vt::axis_index("i"), vt::psum(1, "i"),
              vt::pmean(k[i], "i"), vt::all_gather(vt::stack({i, i}), "i", {.tiled = true}));
        },
        n, {.at_most = bound, .axis_name = "i"});
  };
  const auto check = [&](const auto& all, bool any) {
    const auto [sum, count, most, least, none, every, gathered, same_of_all, exchanged, scattered,
                moved, turned, index, lanes, mean, tiled] = all;
    const auto row = [&](std::vector<double> of_lane) {
      return any ? of_lane : std::vector<double>(of_lane.size());
    };
    EXPECT_EQ(sum.template to_vector<double>(), row({2, 2, 0, 0, 0}));
    EXPECT_EQ(count.template to_vector<double>(), row({2, 2, 0, 0, 0}));
    EXPECT_EQ(most.template to_vector<double>(), row({3, 3, 0, 0, 0}));
    EXPECT_EQ(least.template to_vector<double>(), row({-1, -1, 0, 0, 0}));
    EXPECT_EQ(none.template to_vector<double>(), row({0, 0, 0, 0, 0}));
    EXPECT_EQ(every.template to_vector<double>(), row({1, 1, 0, 0, 0}));
    EXPECT_EQ(gathered[0].template to_vector<double>(), row({3, -1, 0, 0, 0}));
    EXPECT_EQ(same_of_all[1].template to_vector<double>(), row({3, 3, 0, 0, 0}));
    EXPECT_EQ(exchanged[1].template to_vector<double>(), row({-1, 0, 0, 0, 0}));
    EXPECT_EQ(scattered.template to_vector<double>(), row({9, -3, 0, 0, 0}));
    EXPECT_EQ(moved.template to_vector<double>(), row({-1, 0, 0, 0, 0}));
    EXPECT_EQ(turned.template to_vector<double>(), row({0, 0, 0, 0, 0}));
    EXPECT_EQ(index.template to_vector<double>(), row({0, 1, 0, 0, 0}));
    EXPECT_EQ(lanes.template to_vector<double>(), row({2, 2, 0, 0, 0}));
    EXPECT_EQ(mean.template to_vector<double>(), row({1, 1, 0, 0, 0}));
    EXPECT_EQ(tiled[1].template to_vector<double>(), row({0, 0, 1, 1, 0, 0, 0, 0, 0, 0}));
  };
  for (const int n : {0, 2}) {
    SCOPED_TRACE(n);
    check(f(vt::tensor(n)), n > 0);
    check(vt::jit(f)(vt::tensor(n)), n > 0);
  }
}

TEST(PforOfTensor, ExtremesOfEveryDtype) {
  for (vt::DType d : vt_test::all_dtypes) {
    SCOPED_TRACE(vt::name_of(d));
    const Tensor x = vt_test::random_tensor(d, {bound, 2}, -3, 3, 11);
    const auto f = [&](Tensor i) {
      return std::tuple(vt::psum(x[i], "i"), vt::pmax(x[i], "i"), vt::pmin(x[i], "i"),
                        vt::pmean(x[i], "i"), vt::psum(x[0], "i"), vt::all_gather(x[i], "i"));
    };
    const auto counted =
        vt::jit([&](Tensor n) { return vt::pfor(f, n, {.at_most = bound, .axis_name = "i"}); });
    for (const int n : {1, 3, bound}) {
      const auto [sum, most, least, mean, shared, all] = counted(vt::tensor(n));
      const auto [sum_n, most_n, least_n, mean_n, shared_n, all_n] =
          vt::pfor(f, n, {.axis_name = "i"});
      const Tolerance rounded{.relative = vt::size_of(d) < 4 ? 1e-2 : 1e-5};
      expect_close(sum[0], sum_n[0], rounded);
      expect_close(mean[0], mean_n[0], rounded);
      expect_close(shared[0], shared_n[0], rounded);
      expect_close(most[0], most_n[0], {});
      expect_close(least[0], least_n[0], {});
      expect_close(all[0][vt::slice(0, n)], all_n[0], {});
      EXPECT_EQ(sum.dtype(), sum_n.dtype());
      EXPECT_EQ(mean.dtype(), mean_n.dtype());
      EXPECT_EQ(most.dtype(), most_n.dtype());
    }
  }
}

TEST(PforOfTensor, CollectivesInRulesOfTheUsersOwn) {
  const auto f = vt::custom_vjp([](Tensor x) { return vt::psum(x * x, "i"); },
                                [](Tensor x) { return std::pair(vt::psum(x * x, "i"), x); },
                                [](Tensor x, Tensor bar) { return 2.0 * x * vt::psum(bar, "i"); });
  const auto g =
      vt::custom_jvp([](Tensor x) { return vt::psum(x * x, "i"); },
                     [](Tensor x, Tensor dx) {
                       return std::pair(vt::psum(x * x, "i"), vt::psum(2.0 * x * dx, "i"));
                     });
  const auto plain = [](Tensor x) { return vt::psum(x * x, "i"); };
  const auto total = [&](const auto& h) {
    return [&h](Tensor x, Tensor n) {
      return vt::sum(vt::pfor([&](Tensor i) { return h(x[i]) * (1.0 + i); }, n,
                              {.at_most = bound, .axis_name = "i"}));
    };
  };
  for (const int n : {0, 2, bound}) {
    const Tensor wanted = vt::grad(total(plain))(xs, vt::tensor(n));
    expect_close(vt::grad(total(f))(xs, vt::tensor(n)), wanted, same, "vjp");
    expect_close(vt::grad(total(g))(xs, vt::tensor(n)), wanted, same, "jvp");
    expect_close(vt::jit(vt::grad(total(f)))(xs, vt::tensor(n)), wanted, same, "vjp, compiled");
    expect_close(vt::jit(vt::grad(total(g)))(xs, vt::tensor(n)), wanted, same, "jvp, compiled");
    expect_close(vt::grad(vt::jit(total(f)))(xs, vt::tensor(n)), wanted, same, "vjp of jit");
    expect_close(vt::grad(vt::jit(total(g)))(xs, vt::tensor(n)), wanted, same, "jvp of jit");
  }
  const Tensor ns = vt::tensor({0, 3, 5});
  const auto summed = [&](const auto& h) {
    return vt::grad([&](Tensor x) {
      return vt::sum(vt::vmap([&](Tensor n) { return total(h)(x, n); })(ns));
    })(xs);
  };
  expect_close(summed(f), summed(plain), same, "vjp, an n for each lane");
  expect_close(summed(g), summed(plain), same, "jvp, an n for each lane");
}

// --- options, results, counts
// ----------------------------------------------------------------------

TEST(PforOfTensor, ChunksAndLimits) {
  const auto f = [](Tensor i) { return vt::sin(xs[i]) + i; };
  for (int n = 0; n <= bound; ++n) {
    const Tensor wanted = padded(vt::pfor(f, n));
    for (const std::int64_t chunk : {1, 2, 3, 5, 9}) {
      const auto in_chunks = [&](Tensor count) {
        return vt::pfor(f, count, {.at_most = bound, .chunk = chunk});
      };
      expect_close(in_chunks(vt::tensor(n)), wanted, same);
      expect_close(vt::jit(in_chunks)(vt::tensor(n)), wanted, same, "compiled");
    }
    expect_close(vt::pfor(f, vt::tensor(n), {.at_most = bound, .memory_limit = 100'000}), wanted,
                 same, "limit");
  }
  for (const auto schedule :
       {vt::LaneSchedule::groups, vt::LaneSchedule::hybrid, vt::LaneSchedule::program_counter})
    expect_close(vt::jit([&](Tensor n) {
                   return vt::pfor([&](Tensor i) { return halved(xs[i] * 9.0); }, n,
                                   {.at_most = bound, .schedule = schedule});
                 })(vt::tensor(3)),
                 padded(vt::pfor([&](Tensor i) { return halved(xs[i] * 9.0); }, 3)), same);
  expect_error(
      [&] {
        vt::pfor([](Tensor i) { return vt::psum(i, "i"); }, vt::tensor(3),
                 {.at_most = bound, .chunk = 2, .axis_name = "i"});
      },
      ErrorKind::transform, {"vt::pfor: chunk runs 2 lanes at a time", "\"i\" needs all 5"});
  const auto host = vt::pure_callback([](Tensor x) { return x * 2; }, vt::tensor(0));
  EXPECT_EQ(
      vt::pfor([&](Tensor i) { return host(i); }, vt::tensor(2), {.at_most = 3}).to_vector<int>(),
      (std::vector<int>{0, 2, 0}));
  expect_error(
      [&] {
        vt::pfor([&](Tensor i) { return host(i); }, vt::tensor(2),
                 {.at_most = 3, .fallback = vt::Fallback::error});
      },
      ErrorKind::transform, {"cannot be vectorized"});
}

struct Pair {
  Tensor a, b;
};
TEST(PforOfTensor, TreesNumbersAndNothing) {
  const auto tree = vt::jit([](Tensor n) {
    return vt::pfor([](Tensor i) { return std::pair(Pair{i + 1, xs[i]}, std::vector{i > 0}); }, n,
                    {.at_most = 4});
  })(vt::tensor(2));
  EXPECT_EQ(tree.first.a.to_vector<int>(), (std::vector<int>{1, 2, 0, 0}));
  EXPECT_EQ(tree.first.b.shape(), vt::Shape({4, 3}));
  EXPECT_EQ(tree.second[0].to_vector<bool>(), (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(vt::pfor([](Tensor) { return 2; }, vt::tensor(2), {.at_most = 3}).to_vector<int>(),
            (std::vector<int>{2, 2, 0}));
  EXPECT_EQ(vt::pfor([](Tensor i) { return i; }, vt::tensor(2), {.at_most = 3}).to_vector<int>(),
            (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(vt::pfor([](Tensor i) { return i; }, vt::tensor(0), {.at_most = 0}).shape(),
            vt::Shape({0}));
  EXPECT_EQ(vt::jit([](Tensor n) {
              return vt::pfor([](Tensor i) { return vt::psum(i, "i"); }, n,
                              {.at_most = 0, .axis_name = "i"});
            })(vt::tensor(0))
                .shape(),
            vt::Shape({0}));
}

TEST(PforOfTensor, TakesEveryIntegerDtype) {
  const auto f = [](Tensor n) {
    return vt::pfor([](Tensor i) { return i + 1; }, n, {.at_most = 200});
  };
  for (vt::DType d : {vt::i8, vt::i16, vt::i32, vt::i64, vt::u8, vt::u16, vt::u32, vt::u64}) {
    SCOPED_TRACE(vt::name_of(d));
    EXPECT_EQ(vt::sum(f(vt::full({}, 100, d))).item<int>(), 5050);
    EXPECT_EQ(vt::sum(vt::jit(f)(vt::full({}, 100, d))).item<int>(), 5050);
    EXPECT_EQ(vt::pfor([](Tensor i) { return i; }, vt::full({}, 3, d)).dim(0), 3);
    if (d != vt::i8) {
      const Tensor many = vt::full({}, 201, d);
      expect_error([&] { f(many); }, ErrorKind::value, {"n is 201"});
      expect_error([&] { vt::jit(f)(many).eval(); }, ErrorKind::value, {"n is 201"});
    }
    if (d == vt::i8 || d == vt::i16 || d == vt::i32 || d == vt::i64) {
      expect_error([&] { f(vt::full({}, -1, d)); }, ErrorKind::value, {"n is -1"});
      expect_error([&] { vt::jit(f)(vt::full({}, -1, d)).eval(); }, ErrorKind::value, {"n is -1"});
    }
  }
  const Tensor huge = vt::tensor(std::uint64_t{1} << 63);
  expect_error([&] { f(huge); }, ErrorKind::value, {"vt::pfor: n is 9223372036854775807"});
  expect_error([&] { vt::jit(f)(huge).eval(); }, ErrorKind::value, {"n is 9223372036854775808"});
  expect_error([&] { vt::jit(f)(vt::tensor((std::int64_t{1} << 32) + 3)).eval(); },
               ErrorKind::value, {"n is 4294967299"});
}

TEST(PforOfTensor, SaysWhatIsWrong) {
  const auto f = [](Tensor i) { return i; };
  const std::string beyond = message([&] { vt::pfor(f, vt::tensor(4), {.at_most = 3}); });
  const std::string line = std::to_string(__LINE__ - 1);
  EXPECT_EQ(beyond,
            "vt::pfor: n is 4; it must be 0 … 3, as at_most says; at pfor_test.cpp:" + line);
  expect_error([&] { vt::pfor(f, vt::tensor(-2)); }, ErrorKind::value,
               {"vt::pfor: -2 iterations", "pfor_test.cpp"});
  expect_error([&] { vt::pfor(f, 3, {.at_most = 2}); }, ErrorKind::value, {"n is 3", "0 … 2"});
  expect_error([&] { vt::pfor(f, 3, {.at_most = -1}); }, ErrorKind::value,
               {"vt::pfor: -1 iterations at most"});
  expect_error([&] { vt::pfor(f, vt::tensor(2.0), {.at_most = 3}); }, ErrorKind::dtype,
               {"vt::pfor: n is f64[]", "pfor_test.cpp"});
  expect_error([&] { vt::pfor(f, vt::tensor(true), {.at_most = 3}); }, ErrorKind::dtype,
               {"vt::pfor: n is bool[]"});
  expect_error([&] { vt::pfor(f, vt::tensor({1, 2}), {.at_most = 3}); }, ErrorKind::shape,
               {"vt::pfor: n is i32[2]"});
  expect_error([&] { vt::pfor(f, Tensor(), {.at_most = 3}); }, ErrorKind::value,
               {"vt::pfor: n is an empty Tensor"});
  expect_error([&] { vt::jit([&](Tensor n) { return vt::pfor(f, n); })(vt::tensor(2)); },
               ErrorKind::tracer, {"vt::pfor: the value of n, i32[]", "{.at_most = …}"});
  expect_error([&] { vt::vmap([&](Tensor n) { return vt::pfor(f, n); })(vt::tensor({1, 2})); },
               ErrorKind::tracer, {"{.at_most = …}"});
  // The lane whose n is wrong.
  const auto counted = vt::vmap([&](Tensor n) { return vt::pfor(f, n, {.at_most = 3}); });
  expect_error([&] { counted(vt::tensor({1, 7, 9})); }, ErrorKind::value,
               {"vt::pfor: n is 7", "; in lane 1"});
  expect_error([&] { vt::jit(counted)(vt::tensor({1, 7, 9}))[0].eval(); }, ErrorKind::value,
               {"vt::pfor: n is 7", "; in lane 1"});
  // Only where the program goes.
  const auto sometimes = vt::jit([&](Tensor n) {
    return vt::cond(
        n < 4, [&](Tensor k) { return vt::sum(vt::pfor(f, k, {.at_most = 3})); },
        [](Tensor k) { return k; }, n);
  });
  EXPECT_EQ(sometimes(vt::tensor(3)).item<int>(), 3);
  EXPECT_EQ(sometimes(vt::tensor(9)).item<int>(), 9);
  // Collectives in a branch of the user's that lanes take or not.
  expect_error(
      [&] {
        vt::pfor(
            [](Tensor i) {
              return vt::cond(
                  i > 1, [](Tensor v) { return vt::psum(v, "i"); }, [](Tensor v) { return v; }, i);
            },
            vt::tensor(3), {.at_most = 4, .axis_name = "i"});
      },
      ErrorKind::transform, {"a collective over \"i\" stands inside a vt::cond"});
  // And over an outer axis whose lanes have other counts.
  expect_error(
      [&] {
        vt::pfor(
            [](Tensor i) {
              return vt::pfor([&](Tensor j) { return vt::psum(i + j, "i"); }, i, {.at_most = 3});
            },
            3, {.axis_name = "i"});
      },
      ErrorKind::transform, {"a collective over \"i\"", "or a vt::pfor whose n does"});
}

}  // namespace
