// Random numbers: what the interpreter draws is what compiled code and a CUDA device draw,
// bit for bit.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/cuda_program.hpp"

namespace {

using namespace vt::detail;
using vt::Tensor;
using vt_test::device;
namespace rnd = vt::random;
using Tensors = std::vector<Tensor>;

/// Draws of compiled code and of the device against the interpreter's.
void expect_draws(const FlatFunction& draw, const std::vector<const char*>& names,
                  const vt_test::Tolerance& tolerance) {
  const Recorded recorded = record(draw, std::vector<Aval>{Aval(vt::u64, vt::Shape{})}, {});
  vt::Vec<BufferRef> inputs{value_of(rnd::key(20), {})};
  for (const Tensor& t : recorded.captured) inputs.push_back(value_of(t, {}));
  const vt::Vec<BufferRef> expected = interpret(recorded.graph, inputs);
  ASSERT_EQ(expected.size(), names.size());
  for (const vt::Device& where : {vt::cpu(), device}) {
    const vt::Vec<BufferRef> drawn = compile_graph(recorded.graph, where)->run(inputs);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Aval& aval = recorded.graph.aval(recorded.graph.outputs[i]);
      vt_test::expect_close(
          from_buffer(drawn[i], aval), from_buffer(expected[i], aval), tolerance,
          std::string(names[i]) + (where == device ? " on the device" : " compiled"));
    }
  }
}

TEST(CudaRandom, BitsAndWhatIsMadeOfThemAlone) {
  expect_draws(
      [](std::span<const Tensor> in) {
        const Tensor& k = in[0];
        return Tensors{rnd::bits(k, {200}, vt::u8),
                       rnd::bits(k, {200}, vt::u16),
                       rnd::bits(k, {200}),
                       rnd::bits(k, {200}, vt::u64),
                       rnd::split(k, 50),
                       rnd::fold_in(k, 7),
                       rnd::uniform(k, {200}, vt::f16),
                       rnd::uniform(k, {200}, vt::bf16),
                       rnd::uniform(k, {200}, -1.0, 3.0),
                       rnd::uniform(k, {200}, -1.0, 3.0, vt::f64),
                       rnd::randint(k, {200}, -5, 1000),
                       rnd::randint(k, {200}, std::int64_t{-7}, std::int64_t{1} << 60, vt::i64),
                       rnd::randint(k, {200}, 3, 100, vt::u8),
                       rnd::bernoulli(k, {200}, 0.3),
                       rnd::rademacher(k, {200}, vt::i8),
                       rnd::permutation(k, 200),
                       rnd::triangular(k, {200}, 0.0, 0.3, 1.0),
                       vt::dropout(k, vt::ones({200}), 0.4)};
      },
      {"bits u8", "bits u16", "bits", "bits u64", "split", "fold_in", "uniform f16", "uniform bf16",
       "uniform", "uniform f64", "randint", "randint i64", "randint u8", "bernoulli", "rademacher",
       "permutation", "triangular", "dropout"},
      vt_test::exact);
}

// Through functions like log, which no two libraries round alike: computed in f64 and rounded once
// they are the same.
TEST(CudaRandom, DistributionsInSinglePrecision) {
  expect_draws(
      [](std::span<const Tensor> in) {
        const Tensor& k = in[0];
        const vt::Shape n{400};
        return Tensors{
            rnd::normal(k, n),
            rnd::normal(k, n, vt::f16),
            rnd::normal(k, n, vt::bf16),
            rnd::truncated_normal(k, n, -1.0, 2.5),
            rnd::lognormal(k, n, 0.7),
            rnd::exponential(k, n),
            rnd::gumbel(k, n),
            rnd::laplace(k, n),
            rnd::logistic(k, n),
            rnd::cauchy(k, n),
            rnd::rayleigh(k, n, 2.0),
            rnd::weibull(k, n, 1.5, 2.5),
            rnd::pareto(k, n, 2.5),
            rnd::maxwell(k, n),
            rnd::wald(k, n, 1.5),
            rnd::categorical(k, rnd::uniform(k, {100, 7}), 1),
            rnd::choice(k, 50, {40}, {.replace = false, .p = vt::linspace(1.0, 2.0, 50)})};
      },
      {"normal", "normal f16", "normal bf16", "truncated_normal", "lognormal", "exponential",
       "gumbel", "laplace", "logistic", "cauchy", "rayleigh", "weibull", "pareto", "maxwell",
       "wald", "categorical", "choice"},
      vt_test::exact);
}

// A thread goes on until its draw is accepted.
TEST(CudaRandom, DistributionsByRejection) {
  expect_draws(
      [](std::span<const Tensor> in) {
        const Tensor& k = in[0];
        const vt::Shape n{300};
        const Tensor a = rnd::uniform(k, n, 0.05, 20.0);
        return Tensors{rnd::gamma(k, n, a),
                       rnd::loggamma(k, n, a),
                       rnd::beta(k, n, a, 0.7),
                       rnd::t(k, n, a),
                       rnd::f(k, n, a, 3.0),
                       rnd::dirichlet(k, {60}, vt::tensor({0.5, 1.0, 3.0})),
                       rnd::generalized_normal(k, n, 1.5),
                       rnd::poisson(k, n, a),
                       rnd::poisson(k, n, 60.0),
                       rnd::binomial(k, n, 100.0, 0.4),
                       rnd::geometric(k, n, 0.2)};
      },
      {"gamma", "loggamma", "beta", "t", "f", "dirichlet", "generalized_normal", "poisson of few",
       "poisson of many", "binomial", "geometric"},
      vt_test::exact);
}

// No rounding takes the last digits away there: the functions are made of sums, products, quotients
// and roots.
TEST(CudaRandom, DistributionsInDoublePrecision) {
  expect_draws(
      [](std::span<const Tensor> in) {
        const Tensor& k = in[0];
        const vt::Shape n{300};
        const vt::DType d = vt::f64;
        return Tensors{rnd::normal(k, n, d),      rnd::truncated_normal(k, n, -1.0, 2.5, d),
                       rnd::exponential(k, n, d), rnd::gumbel(k, n, d),
                       rnd::laplace(k, n, d),     rnd::logistic(k, n, d),
                       rnd::cauchy(k, n, d),      rnd::lognormal(k, n, 0.7, d),
                       rnd::pareto(k, n, 2.5, d), rnd::weibull(k, n, 1.5, 2.5, d),
                       rnd::wald(k, n, 1.5, d),   rnd::gamma(k, n, 0.3, d),
                       rnd::gamma(k, n, 2.5, d),  rnd::beta(k, n, 0.5, 2.0, d)};
      },
      {"normal", "truncated_normal", "exponential", "gumbel", "laplace", "logistic", "cauchy",
       "lognormal", "pareto", "weibull", "wald", "gamma below 1", "gamma", "beta"},
      vt_test::exact);
}

}  // namespace
