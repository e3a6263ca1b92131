// Loops run from the host: over rows that never meet, cut into parts for the threads; over lanes
// that wait for a place; states that change places. Results equal those of the interpreter and of
// loops written out, and are the same bits for every number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "support/compare_executors.hpp"
#include "support/fenced.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;
using Flat = vt::detail::FlatFunction;

const vt_test::Tolerance close{.relative = 1e-11, .absolute = 1e-12};

Tensor random(const vt::Shape& shape, std::uint64_t seed, vt::DType dtype = vt::f64) {
  return vt_test::random_tensor(dtype, shape, -1, 1, seed);
}

struct Threads {
  int before = vt::num_threads();
  ~Threads() { vt::set_num_threads(before); }
};

bool has_compiler() {
  const auto f = vt::jit([](Tensor x) { return x + 1.0; });
  f(vt::tensor(1.0));
  return vt::explain_steps(f)(vt::tensor(1.0)).rfind("interpreter", 0) != 0;
}

std::vector<char> bytes_of(const Tensors& all) {
  std::vector<char> bytes;
  for (const Tensor& t : all) {
    const std::vector<double> values = t.astype(vt::f64).to_vector<double>();
    const std::size_t at = bytes.size();
    bytes.resize(at + values.size() * sizeof(double));
    if (!values.empty())
      std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(double));
  }
  return bytes;
}

// Equal to the interpreter, and the same bits with any number of threads.
void expect_same_everywhere(const Flat& f, const Tensors& arguments, const std::string& what,
                            const vt_test::Tolerance& tolerance = close) {
  vt_test::expect_same(f, arguments, tolerance, what);
  const auto run = vt::jit([&](const Tensors& a) { return f(a); });
  const Threads restored;
  std::vector<char> first;
  for (const int threads : {1, 2, 5}) {
    vt::set_num_threads(threads);
    const std::vector<char> bytes = bytes_of(run(arguments));
    if (first.empty()) first = bytes;
    ASSERT_EQ(bytes, first) << what << ", " << threads << " threads";
  }
}

using State = std::pair<Tensor, Tensor>;

State lstm(In weights, const State& s, const Tensor& x) {
  const std::vector<Tensor> g =
      vt::split(vt::matmul(x, weights[0]) + vt::matmul(s.first, weights[1]) + weights[2], 4, -1);
  const Tensor memory = vt::sigmoid(g[0]) * s.second + vt::sigmoid(g[1]) * vt::tanh(g[2]);
  return {vt::sigmoid(g[3]) * vt::tanh(memory), memory};
}
Tensors lstm_weights(int width, vt::DType dtype = vt::f64) {
  return {random({width, 4 * width}, 1, dtype) * 0.3, random({width, 4 * width}, 2, dtype) * 0.3,
          random({4 * width}, 3, dtype)};
}
Flat scan_of_cells(int width, vt::DType dtype, bool reverse) {
  return [=](In a) -> Tensors {
    const std::int64_t rows = a[3].shape()[1];
    const auto [last, ys] = vt::scan(
        [&](const State& s, Tensor x) {
          const State next = lstm(a, s, x);
          return std::pair(next, next.first * 2);
        },
        State(vt::zeros({rows, width}, dtype), vt::ones({rows, width}, dtype)), a[3],
        {.reverse = reverse});
    return {last.first, last.second, ys};
  };
}
Flat gradient_of(const Flat& f) {
  return [f](In a) -> Tensors {
    return vt::grad([&](const Tensors& x) {
      Tensor sum = vt::tensor(0.0);
      for (const Tensor& t : f(x)) sum = sum + vt::sum(t * t);
      return sum;
    })(Tensors(a.begin(), a.end()));
  };
}

TEST(JitIterations, RecurrentCellsByRowsOnThreads) {
  constexpr int width = 48;
  for (const int rows : {15, 16, 37, 64})
    for (const bool reverse : {false, true}) {
      Tensors a = lstm_weights(width);
      a.push_back(random({5, rows, width}, 4));
      const std::string what = std::to_string(rows) + " rows";
      expect_same_everywhere(scan_of_cells(width, vt::f64, reverse), a, what);
      if (rows < 64)
        expect_same_everywhere(gradient_of(scan_of_cells(width, vt::f64, reverse)), a,
                               "gradient, " + what, {.relative = 1e-9, .absolute = 1e-11});
    }
  for (const vt::DType dtype : {vt::f32, vt::f16, vt::bf16}) {
    Tensors a = lstm_weights(width, dtype);
    for (Tensor& t : a) t = t.astype(dtype);
    a.push_back(random({3, 32, width}, 4, dtype));
    const double eps = dtype == vt::f32 ? 1e-5 : 0.06;
    expect_same_everywhere(scan_of_cells(width, dtype, false), a,
                           "32 rows of " + std::string(vt::name_of(dtype)),
                           {.relative = eps, .absolute = eps / 10});
  }
}

TEST(JitIterations, ARowIsWhatItIsAlone) {
  constexpr int width = 40, rows = 24;
  Tensors a = lstm_weights(width);
  a.push_back(random({4, rows, width}, 4));
  const Flat f = scan_of_cells(width, vt::f64, false);
  const Tensor all = vt::jit([&](const Tensors& x) { return f(x)[0]; })(a);
  for (int r = 0; r < rows; ++r) {
    Tensors one = a;
    one[3] = vt::swapaxes(vt::swapaxes(a[3], 0, 1)[vt::slice(r, r + 1)], 0, 1).eval();
    const std::vector<double> expected = f(one)[0].to_vector<double>(),
                              actual = all[r].to_vector<double>();
    for (int k = 0; k < width; ++k) ASSERT_NEAR(actual[k], expected[k], 1e-12) << r;
  }
}

TEST(JitIterations, PartsAreShown) {
  if (!has_compiler()) GTEST_SKIP() << "no compiler here";
  constexpr int width = 48;
  const auto parts = [&](const Flat& f, const Tensors& a) {
    const auto run = vt::jit([&](const Tensors& x) { return f(x); });
    run(a)[0].eval();
    return vt::explain_steps(run)(a);
  };
  Tensors a = lstm_weights(width);
  a.push_back(random({5, 36, width}, 4));
  EXPECT_NE(parts(scan_of_cells(width, vt::f64, false), a).find("sub-graph 0 for 18 rows"),
            std::string::npos)
      << parts(scan_of_cells(width, vt::f64, false), a);
  // The mean over the rows is what they meet in.
  const Flat meeting = [](In a) -> Tensors {
    const auto [last, none] = vt::scan(
        [&](Tensor h, Tensor x) {
          return std::pair(vt::tanh(vt::matmul(h - vt::mean(h, 0), a[0]) + x), std::nullopt);
        },
        vt::zeros({64, 96}, vt::f64), a[1]);
    return {last};
  };
  const Tensors b{random({96, 96}, 1) * 0.2, random({6, 64, 96}, 2)};
  EXPECT_EQ(parts(meeting, b).find(" rows, "), std::string::npos);
  expect_same_everywhere(meeting, b, "rows that meet");
}

TEST(JitIterations, BodiesWithBranchesOfTheirOwn) {
  // Rows are lanes here, each with a loop and a branch of its own: there is a count of lanes in the
  // body that parts of it would not have.
  constexpr int width = 136, rows = 33;
  const Flat f = [](In a) -> Tensors {
    const auto row = [](const Tensor& h0, const Tensor& xs, const Tensor& trips, const Tensor& w) {
      return vt::scan(
                 [&](const Tensor& h, const Tensor& x) {
                   const Tensor grown = vt::while_loop([&](Tensor, Tensor i) { return i < trips; },
                                                       [&](Tensor v, Tensor i) {
                                                         return std::pair(vt::tanh(v + x), i + 1);
                                                       },
                                                       std::pair(h, vt::tensor(0)))
                                            .first;
                   const Tensor transposed = vt::matmul(w, grown);
                   const Tensor next = vt::cond(
                       vt::sum(transposed) > 0, [&] { return vt::cos(transposed); },
                       [&] { return transposed * 0.5; });
                   return std::pair(next, vt::sum(next));
                 },
                 h0, xs)
          .second;
    };
    return {vt::vmap(row, {.in_axes = {0, 1, 0, vt::unmapped}})(a[0], a[1], a[2], a[3])};
  };
  std::vector<int> trips;
  for (int r = 0; r < rows; ++r) trips.push_back(r % 4);
  const Tensors a{random({rows, width}, 1), random({4, rows, width}, 2), vt::tensor(trips, {rows}),
                  random({width, width}, 3) * 0.3};
  expect_same_everywhere(f, a, "rows with branches", close);
  expect_same_everywhere(gradient_of([&](In x) { return f(Tensors{x[0], x[1], a[2], x[2]}); }),
                         {a[0], a[1], a[3]}, "gradient of rows with branches",
                         {.relative = 1e-9, .absolute = 1e-11});
}

TEST(JitIterations, WhatRowsShareAndHowTheyLie) {
  constexpr int width = 64;
  const auto over = [](auto body) {
    return [body](In a) -> Tensors {
      const std::int64_t rows = a[1].shape()[1];
      const auto [last, ys] =
          vt::scan([&](const std::pair<Tensor, Tensor>& c, Tensor x) { return body(a, c, x); },
                   std::pair(vt::full({rows, width}, 0.1, vt::f64), vt::tensor(0.5)), a[1]);
      return {last.first, last.second, ys.first, ys.second};
    };
  };
  using Carry = std::pair<Tensor, Tensor>;
  const Tensors a{random({width, width}, 1) * 0.3, random({6, 32, width}, 2),
                  random({32, width}, 3), random({32}, 4)};
  // a carry and a result that all rows share
  expect_same_everywhere(over([](In a, const Carry& c, Tensor x) {
                           const Tensor h =
                               vt::tanh(vt::matmul(c.first, a[0]) * c.second + x + a[2]);
                           return std::pair(Carry(h, c.second * 0.9), std::pair(h, c.second));
                         }),
                         a, "shared");
  expect_same_everywhere(
      over([](In a, const Carry& c, Tensor x) {  // rows as columns meanwhile
        const Tensor h = vt::transpose(vt::matmul(vt::transpose(a[0]), vt::transpose(c.first)));
        const Tensor p = vt::softmax(h * vt::expand_dims(a[3], 1) + x, -1);
        return std::pair(
            Carry(vt::reshape(vt::reshape(p, {32, 8, 8}), {32, width}) * 3.0, c.second),
            std::pair(vt::max(h, 1), vt::flip(h, 1)));
      }),
      a, "turned");
  // windows of a row, and parts put together
  expect_same_everywhere(
      over([](In a, const Carry& c, Tensor x) {
        const Tensor h = vt::matmul(c.first, a[0]) + vt::arange(width).astype(vt::f64) * 0.01;
        const Tensor s = vt::concatenate(
            Tensors{vt::split(h, 8, 1)[7], vt::split(h, 8, 1)[2], vt::split(x, 8, 1)[0],
                    vt::split(x, 4, 1)[1], vt::split(h, 8, 1)[4], vt::split(x, 4, 1)[3]},
            1);
        return std::pair(Carry(vt::where(s > 0.0, s, vt::cumsum(x, 1) * 0.1), c.second + 1.0),
                         std::pair(c.first, x));
      }),
      a, "windows");
  // which row it is makes a difference
  expect_same_everywhere(
      over([](In a, const Carry& c, Tensor x) {
        const Tensor h =
            vt::matmul(c.first, a[0]) + vt::expand_dims(vt::arange(32).astype(vt::f64), 1) * 0.01;
        return std::pair(Carry(h * 0.3 + vt::flip(x, 0), c.second), std::pair(h, h));
      }),
      a, "numbered");
}

// Rows of the next state that come from other rows, or from no row: such loops are not cut.
TEST(JitIterations, RowsFromOtherPlaces) {
  constexpr int width = 96, rows = 32;
  const Tensor w = random({width, width}, 1) * 0.2, xs = random({4, rows, width}, 2),
               half = random({4, rows / 2, width}, 3);
  const auto over = [](auto body) {
    return [body](In a) -> Tensors {
      const auto [last, ys] = vt::scan(
          [&](Tensor h, std::pair<Tensor, Tensor> x) {
            const Tensor next = body(vt::tanh(vt::matmul(h, a[0])), x.first, x.second);
            return std::pair(next, next);
          },
          vt::full({rows, width}, 0.3, vt::f64), std::pair(a[1], a[2]));
      return {last, ys};
    };
  };
  const Tensors a{w, xs, half};
  expect_same_everywhere(over([](Tensor h, Tensor, Tensor y) {
                           return vt::concatenate(Tensors{vt::split(h, 2, 0)[1], y}, 0);
                         }),
                         a, "joined");
  expect_same_everywhere(over([](Tensor h, Tensor x, Tensor y) {
                           return h * 0.5 + vt::concatenate(Tensors{y, y}, 0) + x;
                         }),
                         a, "beside joined ones");
  expect_same_everywhere(over([](Tensor h, Tensor x, Tensor) { return h + vt::cumsum(x, 0); }), a,
                         "sums along the rows");
  expect_same_everywhere(over([](Tensor h, Tensor x, Tensor) { return h + vt::flip(x, 0); }), a,
                         "turned around");
  expect_same_everywhere(
      over([](Tensor h, Tensor, Tensor y) { return h + vt::pad(y, {{rows / 2, 0}, {0, 0}}); }), a,
      "an edge of rows");
  expect_same_everywhere(over([](Tensor h, Tensor x, Tensor) { return vt::roll(h, 3, 0) + x; }), a,
                         "rolled");
  expect_same_everywhere(over([](Tensor h, Tensor x, Tensor) {
                           return h + vt::reshape(vt::transpose(x), {rows, width});
                         }),
                         a, "reshaped");
  expect_same_everywhere(
      over([](Tensor h, Tensor x, Tensor) { return h + vt::sum(x, 0) + vt::softmax(x, 0); }), a,
      "sums over rows");
}

// What was carried last is carried on in another place: memory changes hands, or is copied.
TEST(JitIterations, StatesThatChangePlaces) {
  const auto run = [](auto body, int trips) {
    return [=](In a) -> Tensors {
      const auto [n, x, y, z] = vt::fori_loop(
          0, a[1], [&](Tensor, Tensor n, Tensor x, Tensor y, Tensor z) { return body(n, x, y, z); },
          std::tuple(vt::tensor(trips), a[0], a[0] * 2.0, vt::sin(a[0])));
      return {x, y, z, n};
    };
  };
  const Tensor a = random({400}, 1);
  for (const int trips : {0, 1, 2, 7}) {
    const Tensors arguments{a, vt::tensor(trips)};
    const std::string what = std::to_string(trips) + " iterations";
    expect_same_everywhere(run([](Tensor n, Tensor x, Tensor y,
                                  Tensor z) { return std::tuple(n, y, y * 1.9 - x * 0.95, z); },
                               1),
                           arguments, "leapfrog, " + what);
    expect_same_everywhere(
        run([](Tensor n, Tensor x, Tensor y, Tensor z) { return std::tuple(n + 1, z, x, y); }, 1),
        arguments, "turning, " + what);
    expect_same_everywhere(
        run([](Tensor n, Tensor x, Tensor, Tensor z) { return std::tuple(n, x, x, vt::cos(z)); },
            1),
        arguments, "doubling, " + what);
    expect_same_everywhere(
        run([](Tensor n, Tensor x, Tensor y,
               Tensor z) { return std::tuple(n, vt::cumsum(y) * 0.1, x + 1.0, vt::flip(z)); },
            1),
        arguments, "crossing, " + what);
    expect_same_everywhere(
        run([&](Tensor n, Tensor x, Tensor y,
                Tensor) { return std::tuple(n, vt::zeros({400}, vt::f64), y, x); },
            1),
        arguments, "zeros, " + what);
  }
  const Tensor before = a + 0.0;
  EXPECT_EQ(a.to_vector<double>(), before.to_vector<double>());  // the caller's is as it was
}

TEST(JitIterations, LoopsInsideOfLoops) {
  const Flat f = [](In a) -> Tensors {
    const auto [last, ys] = vt::scan(
        [&](Tensor h, Tensor x) {
          const Tensor inner = vt::fori_loop(
              0, 3, [&](Tensor, Tensor v) { return vt::tanh(vt::matmul(v, a[0])) + x; }, h);
          return std::pair(vt::cond(
                               vt::sum(inner) > 0.0, [](Tensor v) { return v * 0.5; },
                               [](Tensor v) { return -v; }, inner),
                           inner);
        },
        a[2], a[1]);
    return {last, ys};
  };
  const Tensors a{random({48, 48}, 1) * 0.3, random({5, 32, 48}, 2), random({32, 48}, 3)};
  expect_same_everywhere(f, a, "scan of loops");
  expect_same_everywhere(gradient_of(f), a, "its gradient", {.relative = 1e-9, .absolute = 1e-11});
}

// A product's operand that no iteration changes is brought into order once, whichever side it is on
// and however it lies.
TEST(JitIterations, OperandsThatStay) {
  for (const int n : {40, 200}) {
    const Tensor w = random({n, n}, 1) * 0.1, x = random({n, 24}, 2), y = random({24, n}, 3);
    const auto iterations = [](auto body) {
      return [body](In a) -> Tensors {
        return {
            vt::fori_loop(0, 3, [&](Tensor, Tensor v) { return vt::sin(body(a[0], v)); }, a[1])};
      };
    };
    expect_same_everywhere(iterations([](Tensor w, Tensor v) { return vt::matmul(w, v); }), {w, x},
                           "left", {.relative = 1e-9, .absolute = 1e-10});
    expect_same_everywhere(
        iterations([](Tensor w, Tensor v) { return vt::matmul(vt::transpose(w), v); }), {w, x},
        "left, transposed", {.relative = 1e-9, .absolute = 1e-10});
    expect_same_everywhere(
        iterations([](Tensor w, Tensor v) { return vt::matmul(v, w) - vt::mean(v, 0); }), {w, y},
        "right", {.relative = 1e-9, .absolute = 1e-10});
    expect_same_everywhere(iterations([](Tensor w, Tensor v) {
                             return vt::matmul(v, vt::transpose(w)) - vt::mean(v, 0);
                           }),
                           {w, y}, "right, transposed", {.relative = 1e-9, .absolute = 1e-10});
    expect_same_everywhere(iterations([](Tensor w, Tensor v) { return vt::matmul(w, v); }),
                           {w, random({n}, 4)}, "a vector", {.relative = 1e-9, .absolute = 1e-10});
  }
}

// --- lanes that wait for a place -----------------------------------------------------------------

Tensor last_of_sequence(In weights, const Tensor& xs, const Tensor& length, int width) {
  const auto end = vt::while_loop(
      [&](Tensor t, const State&) { return t < length; },
      [&](Tensor t, const State& s) { return std::pair(t + 1, lstm(weights, s, xs[t])); },
      std::pair(0, State(vt::zeros({width}, vt::f64), vt::ones({width}, vt::f64))));
  return end.second.first;
}

std::vector<int> some_lengths(int lanes, int most) {
  std::vector<int> lengths;
  for (int i = 0; i < lanes; ++i) lengths.push_back(i * 7 % (most + 1));  // some of none
  return lengths;
}

TEST(JitIterations, LanesOfDifferentLengthsOnThreads) {
  constexpr int width = 40, most = 11;
  const Tensors w = lstm_weights(width);
  const Flat f = [&](In a) -> Tensors {
    return {vt::vmap([&](Tensor xs, Tensor length) {
      return last_of_sequence(a, xs, length, width);
    })(a[3], a[4])};
  };
  for (const int lanes : {1, 2, 5, 15, 16, 17, 64, 67, 300}) {
    Tensors a = w;
    a.push_back(random({lanes, most, width}, 4));
    a.push_back(vt::tensor(some_lengths(lanes, most), {lanes}));
    expect_same_everywhere(f, a, std::to_string(lanes) + " lanes");
    if (lanes <= 17)
      expect_same_everywhere(
          [&](In x) -> Tensors {
            return vt::grad([&](const Tensors& v) {
              return vt::sum(vt::vmap([&](Tensor xs, Tensor n) {
                return last_of_sequence(v, xs, n, width);
              })(v[3], x[4]));
            })(Tensors(x.begin(), x.begin() + 4));
          },
          a, "gradient, " + std::to_string(lanes) + " lanes",
          {.relative = 1e-9, .absolute = 1e-11});
  }
  // All of them stop before the first iteration, or together.
  for (const int length : {0, 3}) {
    Tensors a = w;
    a.push_back(random({40, most, width}, 4));
    a.push_back(vt::full({40}, length));
    expect_same_everywhere(f, a, "all of length " + std::to_string(length));
  }
}

TEST(JitIterations, OneLaneIsRunAsIfAlone) {
  if (!has_compiler()) GTEST_SKIP() << "no compiler here";
  constexpr int width = 40;
  const Tensors w = lstm_weights(width);
  const auto one = [&](const Tensors& a) { return last_of_sequence(a, a[3], a[4], width); };
  const auto all = vt::jit([&](const Tensors& a) {
    return vt::vmap([&](Tensor xs, Tensor n) { return last_of_sequence(a, xs, n, width); })(a[3],
                                                                                            a[4]);
  });
  Tensors a = w, lanes = w;
  a.insert(a.end(), {random({9, width}, 4), vt::tensor(8)});
  lanes.insert(lanes.end(), {vt::expand_dims(a[3], 0).eval(), vt::tensor({8})});
  EXPECT_EQ(all(lanes)[0].to_vector<double>(), vt::jit(one)(a).to_vector<double>());
  EXPECT_EQ(vt::explain_steps(all)(lanes).find("for 1 lanes"), std::string::npos)
      << vt::explain_steps(all)(lanes);
}

// Operands begin or end where the memory does.
TEST(JitIterations, NothingBeyondOperands) {
  constexpr int width = 40;
  const Flat cells = scan_of_cells(width, vt::f64, true);
  // gates that are neither open nor shut have derivatives
  const Flat small = [&](In v) -> Tensors {
    Tensors scaled;
    for (const Tensor& t : v) scaled.push_back(t * 0.05);
    return cells(scaled);
  };
  for (const bool at_end : {true, false}) {
    for (const int rows : {16, 19, 33}) {
      const vt_test::Fenced<double> wx(width * 4 * width, at_end), wh(width * 4 * width, at_end),
          b(4 * width, at_end), xs(3 * rows * width, at_end);
      const Tensors a{wx.tensor({width, 4 * width}), wh.tensor({width, 4 * width}),
                      b.tensor({4 * width}), xs.tensor({3, rows, width})};
      vt_test::expect_same(scan_of_cells(width, vt::f64, false), a, close, "rows");
      vt_test::expect_same(gradient_of(small), a, {.relative = 1e-9, .absolute = 1e-11},
                           "gradient by rows");
      const vt_test::Fenced<double> sequences(rows * 5 * width, at_end);
      Tensors c = a;
      c[3] = sequences.tensor({rows, 5, width});
      c.push_back(vt::tensor(some_lengths(rows, 5), {rows}));
      vt_test::expect_same(
          [&](In v) -> Tensors {
            return {vt::vmap([&](Tensor s, Tensor n) { return last_of_sequence(v, s, n, width); })(
                v[3], v[4])};
          },
          c, close, "lanes");
    }
  }
}

}  // namespace
