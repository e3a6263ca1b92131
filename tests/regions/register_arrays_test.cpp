// Loops inside loops that make arrays: one function, whose arrays lie in its frame. Which of them
// are, and their values beside the interpreter's.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;

constexpr int n = 7, m = 45;  // more than registers take, and no number of vectors
constexpr int many = 301;     // more than one loop takes by scalars

struct Nested {
  std::string name;
  vt::detail::FlatFunction f;
  Tensors arguments;
  bool one_function = true;
};
void PrintTo(const Nested& c, std::ostream* out) { *out << c.name; }

Tensor words(int count, std::uint64_t seed) {
  return vt_test::random_tensor(vt::i32, {count}, 0, 3, seed).eval();
}
Tensor floats(vt::DType d, int count, std::uint64_t seed) {
  return vt_test::random_tensor(d, {count}, -2, 2, seed).eval();
}
Tensor part(const Tensor& x, int from, int to) { return vt::slice_in_dim(x, from, to); }
Tensor first_of(const Tensor& x) { return vt::reshape(part(x, 0, 1), {}); }

/// The iterations of a row: each element from the one to its left and two others.
Tensor row_of(Tensor left, const Tensor& a, const Tensor& b, bool reverse = false) {
  return vt::scan(
             [](Tensor c, std::pair<Tensor, Tensor> x) {
               const Tensor y = vt::minimum(c, x.first) * 0.5f + x.second;
               return std::pair(y, y);
             },
             left, std::pair(a, b), {.reverse = reverse})
      .second;
}

std::vector<Nested> nested() {
  std::vector<Nested> all;
  const auto add = [&](std::string name, vt::detail::FlatFunction f, Tensors arguments,
                       bool one_function = true) {
    all.push_back({std::move(name), std::move(f), std::move(arguments), one_function});
  };

  add("levenshtein, its table kept",
      [](In a) -> Tensors {
        auto [last, table] = vt::scan(
            [&](Tensor above, Tensor letter) {
              const Tensor first = first_of(above) + 1;
              const Tensor row =
                  vt::scan(
                      [&](Tensor left, std::tuple<Tensor, Tensor, Tensor> x) {
                        const auto& [other, corner, up] = x;
                        const Tensor v = vt::minimum(vt::minimum(left, up) + 1,
                                                     corner + (other != letter).astype(vt::i32));
                        return std::pair(v, v);
                      },
                      first, std::tuple(a[1], part(above, 0, m), part(above, 1, m + 1)))
                      .second;
              const Tensor next = vt::concatenate({vt::reshape(first, {1}), row});
              return std::pair(next, next);
            },
            vt::arange(m + 1).astype(vt::i32), a[0]);
        return {last, table};
      },
      {words(n, 1), words(m, 2)});

  for (const vt::DType d : {vt::f32, vt::f64, vt::bf16, vt::f16})
    add(std::string("rows and vectors of them, backwards, ") + vt::name_of(d),
        [d](In a) -> Tensors {
          return {vt::scan(
                      [&](Tensor row, Tensor x) {
                        const Tensor shifted =
                            vt::concatenate({vt::full({1}, 3.0, d), part(row, 0, m - 1)});
                        const Tensor cost =
                            vt::where(a[1] > x, vt::abs(a[1] - x), vt::broadcast_to(x, {m}));
                        return std::pair(row_of(x, shifted, cost, true), std::nullopt);
                      },
                      a[1] * 0.5f, a[0], {.reverse = true})
                      .first};
        },
        {floats(d, n, 3), floats(d, m, 4)});

  add("three rows that move on",
      [](In a) -> Tensors {
        auto [x, y, z] = vt::fori_loop(
            0, n,
            [&](Tensor i, Tensor x, Tensor y, Tensor z) {
              return std::tuple(row_of(i.astype(vt::f64), x, z), x, y);
            },
            std::tuple(a[0], a[0] * 2.0, a[1]));
        return {x, y, z};
      },
      {floats(vt::f64, m, 5), floats(vt::f64, m, 6)});

  add(
      "two rows that change places",
      [](In a) -> Tensors {
        auto [x, y, s] = vt::fori_loop(
            0, n,
            [&](Tensor, Tensor x, Tensor y, Tensor s) {
              return std::tuple(y, x, s + first_of(row_of(s, x, y)));
            },
            std::tuple(a[0], a[1], vt::full({}, 0.0, vt::f64)));
        return {x, y, s};
      },
      {floats(vt::f64, many, 7), floats(vt::f64, many, 8)}, false);

  add("a short row, which is read back",
      [](In a) -> Tensors {
        return {vt::scan(
                    [&](Tensor c, Tensor x) {
                      const Tensor row = row_of(x, c, c * x);
                      return std::pair(row, vt::sum(row));
                    },
                    a[1], a[0])
                    .second};
      },
      {floats(vt::f64, n, 9), floats(vt::f64, 5, 10)});

  add("rows of a matrix read and written at run time",
      [](In a) -> Tensors {
        return {vt::fori_loop(
            0, n - 1,
            [&](Tensor i, Tensor matrix) {
              const Tensor above =
                  vt::reshape(vt::dynamic_slice(matrix, {i, vt::tensor(0)}, {1, m}), {m});
              const Tensor row =
                  row_of(first_of(above), above, vt::arange(m).astype(vt::f64) * 0.01);
              return vt::dynamic_update_slice(matrix, vt::reshape(row, {1, m}),
                                              {i + 1, vt::tensor(0)});
            },
            vt::reshape(a[0], {n, m}))};
      },
      {floats(vt::f64, n * m, 11)});

  add("a loop inside carries the row on in place, and another a copy of it",
      [](In a) -> Tensors {
        const auto step = [](Tensor row, Tensor x) {
          return vt::fori_loop(
              0, m - 1,
              [&](Tensor j, Tensor r) {
                const Tensor y = vt::reshape(vt::dynamic_slice(r, {j}, {1}), {}) * 0.5 + x;
                return vt::dynamic_update_slice(r, vt::reshape(y, {1}), {j + 1});
              },
              row);
        };
        return {vt::scan(
                    [&](Tensor row, Tensor x) {
                      const Tensor once = step(row, x);
                      const Tensor again = vt::scan(
                                               [&](Tensor other, Tensor y) {
                                                 const Tensor z = vt::dynamic_update_slice(
                                                     other, vt::reshape(y, {1}), {vt::tensor(3)});
                                                 return std::pair(z, y + first_of(part(z, 4, 5)));
                                               },
                                               once, once)
                                               .second;
                      return std::pair(again, again);
                    },
                    a[1], a[0])
                    .second};
      },
      {floats(vt::f64, n, 12), floats(vt::f64, m, 13)});

  add("rows in a while inside",
      [](In a) -> Tensors {
        return {vt::scan(
                    [&](Tensor row, Tensor x) {
                      const auto [iterations, next] = vt::while_loop(
                          [](Tensor i, Tensor) { return i < 3; },
                          [&](Tensor i, Tensor r) { return std::tuple(i + 1, row_of(x, r, row)); },
                          std::tuple(vt::tensor(0), row * x));
                      return std::pair(next, first_of(next));
                    },
                    a[1], a[0])
                    .second};
      },
      {floats(vt::f64, n, 14), floats(vt::f64, m, 15)});

  // Values of 36 elements: more than registers take, but few instructions for the steps they save.
  add("a Kalman filter of 6 states",
      [](In a) -> Tensors {
        const Tensor turn = vt::eye(6, vt::f64) * 0.9 + 0.01;
        const auto step = [&](std::pair<Tensor, Tensor> state, Tensor seen) {
          const Tensor x = vt::matmul(turn, state.first);
          const Tensor p = vt::matmul(vt::matmul(turn, state.second), vt::transpose(turn)) +
                           0.1 * vt::eye(6, vt::f64);
          const Tensor gain = p[0] / (p[0][0] + 1.0);
          const Tensor next = x + gain * (seen - x[0]);
          const Tensor rest = p - vt::expand_dims(gain, 1) * p[0];
          return std::pair(std::pair(next, rest), next);
        };
        return {vt::scan(step, std::pair(a[1], vt::eye(6, vt::f64)), a[0]).second};
      },
      {floats(vt::f64, 50, 18), floats(vt::f64, 6, 19)});

  add(
      "a few long equations: a program",
      [](In a) -> Tensors {
        const auto step = [](Tensor row, Tensor x) {
          const Tensor next = vt::exp(-row * row) + x * vt::sum(row);
          return std::pair(vt::tanh(next), next[0]);
        };
        return {vt::scan(step, a[1], a[0]).second};
      },
      {floats(vt::f64, n, 20), floats(vt::f64, 90, 21)}, false);

  add(
      "mostly arrays: a program",
      [](In a) -> Tensors {
        return {vt::scan(
                    [&](Tensor row, Tensor x) {
                      Tensor y = row * x;
                      for (int k = 0; k < 4; ++k) y = vt::sin(y) + vt::exp(-y * y);
                      const Tensor s =
                          vt::fori_loop(0, 2, [&](Tensor, Tensor s) { return s * 0.5 + x; }, x);
                      return std::pair(vt::concatenate({vt::reshape(s, {1}), part(y, 1, m)}),
                                       std::nullopt);
                    },
                    a[1], a[0])
                    .first};
      },
      {floats(vt::f64, n, 16), floats(vt::f64, m, 17)}, false);
  return all;
}

class RegisterArrays : public ::testing::TestWithParam<Nested> {};

TEST_P(RegisterArrays, EqualTheInterpreter) {
  const Nested& c = GetParam();
  const bool half = c.arguments[0].dtype() == vt::f16 || c.arguments[0].dtype() == vt::bf16;
  vt_test::expect_same(c.f, c.arguments,
                       {.relative = half ? 1e-2 : 1e-6, .absolute = half ? 1e-2 : 1e-6}, c.name);
}

TEST_P(RegisterArrays, RunAsOneFunction) {
  const Nested& c = GetParam();
  const auto f = vt::jit([&](const Tensors& x) { return c.f(x); });
  const std::string text = vt::explain_steps(f)(c.arguments);
  if (text.rfind("interpreter", 0) == 0) GTEST_SKIP() << "no compiler here";
  // A loop that is run iteration by iteration has programs of its bodies.
  EXPECT_EQ(text.find("sub-graph") == std::string::npos, c.one_function) << text;
}

INSTANTIATE_TEST_SUITE_P(All, RegisterArrays, ::testing::ValuesIn(nested()), [](const auto& info) {
  std::string name = info.param.name;
  for (char& ch : name)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return name;
});

// ---- loops over what has been made of an argument -----------------------------------------------

struct Update {
  std::string name;
  std::function<Tensor(Tensor)> of;
};

std::vector<Update> updates() {
  const Tensor half = vt::tensor(0.5f);
  const auto at = [](const Tensor& x) { return vt::argmax(x); };
  const auto half_of = [=](const Tensor& x) { return half.astype(x.dtype()); };
  const auto window = [=](const Tensor& x) { return vt::full({(x.dim(0) + 1) / 2}, half_of(x)); };
  std::vector<Update> all = {
      {"cumsum", [](Tensor x) { return vt::cumsum(x); }},
      {"cumprod", [](Tensor x) { return vt::cumprod(x); }},
      {"cummax", [](Tensor x) { return vt::cummax(x); }},
      {"cummin", [](Tensor x) { return vt::cummin(x); }},
      {"cumlogsumexp", [](Tensor x) { return vt::cumlogsumexp(x); }},
      {"cumsum from the end", [](Tensor x) { return vt::cumsum(x, 0, {.reverse = true}); }},
      {"index_update", [=](Tensor x) { return vt::index_update(x, at(x), half_of(x)); }},
      {"index_add", [=](Tensor x) { return vt::index_add(x, at(x), half_of(x)); }},
      {"index_mul", [=](Tensor x) { return vt::index_mul(x, at(x), half_of(x)); }},
      {"index_max", [=](Tensor x) { return vt::index_max(x, at(-x), half_of(x)); }},
      {"index_min", [=](Tensor x) { return vt::index_min(x, at(x), half_of(x)); }},
      {"dynamic_update_slice",
       [=](Tensor x) { return vt::dynamic_update_slice(x, window(x), {at(x)}); }},
  };
  const std::size_t count = all.size();
  for (std::size_t k = 0; k < count; ++k) {
    all.push_back(
        {all[k].name + ", flipped", [of = all[k].of](Tensor x) { return vt::flip(of(x), {0}); }});
    all.push_back({all[k].name + " of an inner loop's result", [of = all[k].of](Tensor x) {
                     const auto shrink = [](Tensor s, Tensor e) {
                       const Tensor next = s * 0.5f + e;
                       return std::pair(next, next);
                     };
                     return of(vt::scan(shrink, x[0], x).second);
                   }});
  }
  return all;
}

TEST(RegisterArrays, LoopsReadUpdatedArguments) {
  const auto sum = [](const std::function<Tensor(Tensor)>& update) {
    return [=](Tensor x) {
      const auto step = [](Tensor s, Tensor e) { return std::pair(s * 0.5f + e, std::nullopt); };
      return vt::scan(step, vt::zeros({}, x.dtype()), update(x)).first;
    };
  };
  const Update cumsum = updates()[0];
  EXPECT_EQ(vt::jit(sum(cumsum.of))(vt::tensor({1.0, 2.0, 3.0})).item<double>(), 7.75);
  for (const Update& update : updates())
    for (const int length : {2, 3, 31, 32, 33, 127, 128, 129, 287, 288, 289})
      for (const vt::DType d : {vt::f32, vt::f64}) {
        if (d == vt::f32 && length % 32 != 0) continue;
        const std::string what = update.name + ", " + std::to_string(length) + " " + vt::name_of(d);
        const Tensors arguments{floats(d, length, 18) * 0.5f};
        const vt_test::Tolerance close{.relative = d == vt::f32 ? 1e-4 : 1e-12,
                                       .absolute = d == vt::f32 ? 1e-4 : 1e-12};
        vt_test::expect_same([&](In a) -> Tensors { return {sum(update.of)(a[0])}; }, arguments,
                             close, what);
        if (length > 33) continue;
        vt_test::expect_same([&](In a) -> Tensors { return {vt::grad(sum(update.of))(a[0])}; },
                             arguments, close, what + ", gradient");
      }
}

}  // namespace
