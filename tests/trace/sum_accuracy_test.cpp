// What long sums of floats promise: an error of a few roundings of Σ|x|, whatever the axes, the
// backend and the number of elements.
#include "support/property.hpp"

namespace {

using namespace vt;

struct Case {
  Shape shape;
  Axes axes;
};
const Case cases[] = {{{3000000}, {0}},
                      {{100001}, {0}},
                      {{20000}, {0}},
                      {{3, 400003}, {1}},
                      {{400003, 3}, {0}},
                      {{50003, 37}, {0}},
                      {{3, 60007, 16}, {1}},
                      {{1025, 999}, {0}},
                      {{999, 1025}, {1}},
                      {{300, 7, 600}, {0, 2}},
                      {{40000, 2, 3}, {0, 1, 2}},
                      {{16, 70000}, {1}},
                      {{2, 9, 65537}, {2}},
                      {{200000, 4}, {0, 1}}};

double unit_of(DType d) { return std::ldexp(0.5, real_dtype(d) == f64 ? -52 : -23); }
// Roundings. A thread of a CUDA device may add some hundreds of numbers one after the other.
double few() { return default_device() == cpu() ? 16 : 40; }

// Equal numbers, whose roundings all go the same way: |x| n is the exact sum.
template <class F>
void check_equal_numbers(DType d, const Case& c, const F& f, double factor,
                         const std::string& what) {
  const double x = full({}, 0.1, d).astype(f64).item<double>();
  std::int64_t n = 1;
  for (int axis : c.axes) n *= c.shape[axis];
  const double exact = static_cast<double>(static_cast<long double>(x) * n) * factor;
  const double rounding =
      d == f16 || d == bf16 ? vt_test::ulp_of(exact, d) / 2 : 0;  // of the result
  const Tensor t = full(c.shape, 0.1, d).eval();
  for (const bool with_jit : {false, true}) {
    const Tensor got = (with_jit ? jit(f)(t) : Tensor(f(t))).astype(f64).eval();
    const double worst = max(abs(got - exact)).item<double>();
    EXPECT_LE(worst, rounding + few() * unit_of(d) * exact)
        << what << " of " << name_of(d) << c.shape.str() << (with_jit ? " compiled" : "")
        << ": off by " << worst / exact / unit_of(d) << " roundings";
  }
}

TEST(SumAccuracy, EqualNumbers) {
  for (DType d : {f32, f64})
    for (const Case& c : cases) {
      check_equal_numbers(d, c, [&](Tensor x) { return sum(x, c.axes); }, 1, "sum");
      check_equal_numbers(
          d, c, [&](Tensor x) { return sum(x * 2, c.axes); }, 2, "sum of an expression");
    }
}

TEST(SumAccuracy, UnderVmap) {
  for (DType d : {f32, f64}) {
    check_equal_numbers(
        d, {{5, 300001}, {1}},
        [](Tensor x) { return vmap([](Tensor row) { return sum(row); })(x); }, 1, "sum of lanes");
    check_equal_numbers(
        d, {{300001, 5}, {0}},
        [](Tensor x) { return vmap([](Tensor column) { return sum(column); }, {.in_axes = 1})(x); },
        1, "sum of lanes behind");
  }
}

TEST(SumAccuracy, SmallFloatsAddInF32) {
  for (DType d : {f16, bf16})
    for (const Case& c : {Case{{200000}, {0}}, Case{{7, 60000}, {1}}, Case{{60000, 7}, {0}}})
      check_equal_numbers(d, c, [&](Tensor x) { return sum(x, c.axes); }, 1, "sum");
}

TEST(SumAccuracy, ComplexNumbersByParts) {
  for (DType d : {f32, f64}) {
    const Case c{{500000}, {0}};
    check_equal_numbers(d, c, [](Tensor x) { return real(sum(complex(x, -x))); }, 1, "real part");
    check_equal_numbers(
        d, c, [](Tensor x) { return -imag(sum(complex(x, -x))); }, 1, "imaginary part");
  }
}

// Sums inside kernels of several stages, which are not cut into blocks.
TEST(SumAccuracy, SumsThatOthersRead) {
  for (DType d : {f32, f64}) {
    const Case c{{16, 200000}, {1}};
    const double n = 200000;
    check_equal_numbers(
        d, c, [](Tensor x) { return sum(x * (1 + 0 * sum(x, 1, true)), 1); }, 1,
        "sum of products with a sum");
    check_equal_numbers(d, c, [&](Tensor x) { return mean(x, 1) * n; }, 1, "mean");
    check_equal_numbers(
        d, c, [&](Tensor x) { return x[0][0] * n * sum(softmax(x, 1), 1); }, 1, "softmax");
    check_equal_numbers(
        d, c, [&](Tensor x) { return square(norm(x, 2, 1)) / x[0][0]; }, 1, "squared norm");
  }
}

// Numbers of both signs: beside Σ|x|, and the same for any number of threads.
TEST(SumAccuracy, RandomNumbers) {
  for (DType d : {f32, f64})
    for (const Case& c : cases) {
      const Tensor x = vt_test::random_tensor(d, c.shape, -1, 1, 5);
      const Tensor exact = sum(x.astype(f64), c.axes), scale = sum(abs(x.astype(f64)), c.axes);
      const Tensor got = jit([&](Tensor t) { return sum(t, c.axes); })(x).astype(f64);
      EXPECT_LE(max(abs(got - exact) / scale).item<double>(), few() * unit_of(d))
          << name_of(d) << c.shape.str();
    }
}

// Rows are cut into blocks for threads: no lanes go along the blocks.
TEST(SumAccuracy, OfTransposedColumnsLessTheirSum) {
  const auto f = [](Tensor x) {
    const Tensor transposed = transpose(x);
    return sum(transposed - sum(transposed), 1);
  };
  for (DType d : {f32, f64})
    for (std::int64_t columns : {2, 7, 16})
      for (std::int64_t rows : {1000, 16000, 100000}) {
        const double n = static_cast<double>(rows), want = n - n * n * static_cast<double>(columns);
        const std::vector<double> got =
            jit(f)(ones({rows, columns}, d)).astype(f64).to_vector<double>();
        for (double sum : got)
          EXPECT_NEAR(sum, want, -few() * unit_of(d) * want) << columns << ", " << rows;
      }
}

}  // namespace
