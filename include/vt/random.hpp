// Random numbers from keys: a draw is a function of its key and shape alone, so it is the same on
// every backend, for any number of threads, and in every lane of vmap.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <vt/ops.hpp>

namespace vt::random {

/// A key is one u64. Use each for one draw, or to make further keys with `split` or `fold_in`.
/// vmap over an array of keys gives every lane what it would draw alone with its key.
[[nodiscard]] Tensor key(Param<std::uint64_t> seed, CallSite where = CallSite::here());
/// `count` new keys, u64[count]. Throws: Error if `key` is not a u64 scalar, as every function here
/// does.
[[nodiscard]] Tensor split(Operand key, Param<std::int64_t> count);
/// The same as an array: `auto [a, b] = vt::random::split<2>(key)`.
template <std::size_t N>
[[nodiscard]] std::array<Tensor, N> split(const Operand& key) {
  const Tensor keys = random::split(key, static_cast<std::int64_t>(N));
  std::array<Tensor, N> each;
  for (std::size_t i = 0; i < N; ++i) each[i] = keys[static_cast<std::int64_t>(i)];
  return each;
}
/// A new key from a key and an integer (a step number, say).
[[nodiscard]] Tensor fold_in(Operand key, Operand data);

/// Unsigned integers with every bit random. Threefry-2x32, 20 rounds (Salmon et al. 2011, Parallel
/// random numbers: as easy as 1, 2, 3), of the element's row-major number under the key; 32 bits
/// are the two halves combined by exclusive or.
/// dtype: u8, u16, u32 or u64.
[[nodiscard]] Tensor bits(Operand key, const Shape& shape = {}, DType dtype = u32);

/// Numbers in [low, high), `low` where the range is empty. The shape is always the second argument;
/// parameters broadcast to it. A number has as many random bits as the dtype's significand, and is
/// then rounded to the nearest number of the dtype that is in the range; differentiable in the
/// ends.
/// dtype: a float, to which the ends are rounded first.
[[nodiscard]] Tensor uniform(Operand key, const Shape& shape = {}, DType dtype = default_dtype());
[[nodiscard]] Tensor uniform(Operand key, const Shape& shape, Operand low, Operand high,
                             DType dtype = default_dtype());
/// Integers in [low, high); `low` where the range is empty. Probabilities differ by less than 2^-32
/// of themselves. Ends beyond a dtype of at most 32 bits are its own: (0, 256) draws all of u8.
/// dtype: any integer.
/// Throws: Error if `low` or `high` is a float that is not known to be whole.
[[nodiscard]] Tensor randint(Operand key, const Shape& shape, Operand low, Operand high,
                             DType dtype = i64);
/// bool, true with probability p.
[[nodiscard]] Tensor bernoulli(Operand key, const Shape& shape = {}, Operand p = 0.5);
/// −1 or 1 with equal probability. dtype: a signed integer or a float.
[[nodiscard]] Tensor rademacher(Operand key, const Shape& shape = {}, DType dtype = i32);
/// An index along `axis` of `logits`, drawn with probability softmax(logits); i32, of the shape
/// without that axis.
[[nodiscard]] Tensor categorical(Operand key, Operand logits, Param<int> axis = -1);

/// Options of categorical with a shape.
struct CategoricalOptions {
  Param<int> axis = -1;  ///< of the logits
  bool replace = true;   ///< may a draw of `shape` repeat another one of the same row?
};
/// Several draws from each row: of shape `shape` ⧺ that of the logits without their axis; i32.
/// Throws: Error if there are fewer classes than draws without replacement.
/// Source: JAX `random.categorical`; without replacement the greatest of logits + Gumbel noise.
[[nodiscard]] Tensor categorical(Operand key, Operand logits, const Shape& shape,
                                 const CategoricalOptions& options);

/// Mean 0, deviation 1.
/// dtype: a float or complex, whose parts have half the variance each.
[[nodiscard]] Tensor normal(Operand key, const Shape& shape = {}, DType dtype = default_dtype());
/// Normal, given lower < x < upper, which are rounded to the dtype first; NaN unless lower < upper.
/// Has all digits in the tails, as far out as there are numbers between the bounds.
[[nodiscard]] Tensor truncated_normal(Operand key, const Shape& shape, Operand lower, Operand upper,
                                      DType dtype = default_dtype());
/// exp(sigma · normal).
[[nodiscard]] Tensor lognormal(Operand key, const Shape& shape = {}, Operand sigma = 1.0,
                               DType dtype = default_dtype());
/// Density e⁻ˣ for x > 0.
[[nodiscard]] Tensor exponential(Operand key, const Shape& shape = {},
                                 DType dtype = default_dtype());
/// Standard Gumbel, Laplace, logistic and Cauchy distributions: location 0, scale 1.
[[nodiscard]] Tensor gumbel(Operand key, const Shape& shape = {}, DType dtype = default_dtype());
[[nodiscard]] Tensor laplace(Operand key, const Shape& shape = {}, DType dtype = default_dtype());
[[nodiscard]] Tensor logistic(Operand key, const Shape& shape = {}, DType dtype = default_dtype());
[[nodiscard]] Tensor cauchy(Operand key, const Shape& shape = {}, DType dtype = default_dtype());
/// √(−2 log u) · scale.
[[nodiscard]] Tensor rayleigh(Operand key, const Shape& shape = {}, Operand scale = 1.0,
                              DType dtype = default_dtype());
/// Density k/s · (x/s)^(k−1) · exp(−(x/s)^k) for x > 0, with scale s and concentration k.
[[nodiscard]] Tensor weibull(Operand key, const Shape& shape, Operand scale, Operand concentration,
                             DType dtype = default_dtype());
/// Density b / x^(b+1) for x > 1.
[[nodiscard]] Tensor pareto(Operand key, const Shape& shape, Operand b,
                            DType dtype = default_dtype());
/// Density rising from `left` to `mode` and falling to `right`.
[[nodiscard]] Tensor triangular(Operand key, const Shape& shape, Operand left, Operand mode,
                                Operand right, DType dtype = default_dtype());

// Those below draw until they accept, every element for itself. Invalid parameters give NaN, and −1
// in integer dtypes.

/// The gamma distribution with shape parameter a and scale 1; its logarithm, which is a number
/// however small a is. Derivatives by a are implicit: see random_gamma_grad.
/// Source: Marsaglia, Tsang 2000, A simple method for generating gamma variables; a below 1 by way
/// of a + 1 and a power of a uniform number.
[[nodiscard]] Tensor gamma(Operand key, const Shape& shape, Operand a,
                           DType dtype = default_dtype());
[[nodiscard]] Tensor loggamma(Operand key, const Shape& shape, Operand a,
                              DType dtype = default_dtype());
/// G(a) / (G(a) + G(b)) of two gamma variables: the beta distribution on 0 … 1.
[[nodiscard]] Tensor beta(Operand key, const Shape& shape, Operand a, Operand b,
                          DType dtype = default_dtype());
/// Vectors of positive numbers with sum 1. alpha: […, n], broadcast to the result, `shape` ⧺ [n].
[[nodiscard]] Tensor dirichlet(Operand key, const Shape& shape, Operand alpha,
                               DType dtype = default_dtype());
/// χ², Student's t and Fisher's F distribution with these degrees of freedom.
[[nodiscard]] Tensor chisquare(Operand key, const Shape& shape, Operand df,
                               DType dtype = default_dtype());
[[nodiscard]] Tensor t(Operand key, const Shape& shape, Operand df, DType dtype = default_dtype());
[[nodiscard]] Tensor f(Operand key, const Shape& shape, Operand dfnum, Operand dfden,
                       DType dtype = default_dtype());
/// Density proportional to exp(−|x|^p).
[[nodiscard]] Tensor generalized_normal(Operand key, const Shape& shape, Operand p,
                                        DType dtype = default_dtype());
/// Uniform in the unit ball of the p-norm in d dimensions; shapes: `shape` ⧺ [d].
[[nodiscard]] Tensor ball(Operand key, const Shape& shape, Param<std::int64_t> d, Operand p = 2.0,
                          DType dtype = default_dtype());
/// The length of a vector of three normal numbers.
[[nodiscard]] Tensor maxwell(Operand key, const Shape& shape = {}, DType dtype = default_dtype());
/// loc ± scale · maxwell, either sign being as likely.
[[nodiscard]] Tensor double_sided_maxwell(Operand key, const Shape& shape, Operand loc,
                                          Operand scale, DType dtype = default_dtype());
/// The inverse Gaussian distribution of scale 1. The derivative by the mean is implicit.
[[nodiscard]] Tensor wald(Operand key, const Shape& shape, Operand mean,
                          DType dtype = default_dtype());
/// The same as weibull.
[[nodiscard]] Tensor weibull_min(Operand key, const Shape& shape, Operand scale,
                                 Operand concentration, DType dtype = default_dtype());

/// Vectors of the normal distribution. mean: […, n], covariance: […, n, n], to whose batch axes
/// `shape` must broadcast; shapes: `shape` ⧺ [n]. Differentiable in both. NaN where the covariance
/// is not positive definite.
[[nodiscard]] Tensor multivariate_normal(Operand key, const Shape& shape, Operand mean,
                                         Operand covariance, DType dtype = default_dtype());
/// Orthogonal matrices, every one being as likely (Haar's measure): `shape` ⧺ [n, n].
/// Source: Mezzadri 2007, How to generate random matrices from the classical compact groups.
[[nodiscard]] Tensor orthogonal(Operand key, const Shape& shape, Param<std::int64_t> n,
                                DType dtype = default_dtype());

/// Counts, as integers or floats. Poisson's by searching the distribution below a mean of 10, else
/// by transformed rejection. Right for every finite mean: in floats rounded to the nearest number.
/// Source: Hörmann 1993, The transformed rejection method for generating Poisson (PTRS) and The
/// generation of binomial random variates (BTRS); masses by Loader 2000, Fast and accurate
/// computation of binomial probabilities.
[[nodiscard]] Tensor poisson(Operand key, const Shape& shape, Operand mean, DType dtype = i32);
/// Successes among n trials, each with probability p. Beyond n = 2^64: as for invalid parameters.
[[nodiscard]] Tensor binomial(Operand key, const Shape& shape, Operand n, Operand p,
                              DType dtype = i32);
/// Trials up to and with the first success: 1, 2, …
[[nodiscard]] Tensor geometric(Operand key, const Shape& shape, Operand p, DType dtype = i32);
/// How often each of k classes is drawn in n trials, with probabilities p: […, k], which need not
/// have sum 1. Shapes: `shape` ⧺ [k].
[[nodiscard]] Tensor multinomial(Operand key, const Shape& shape, Operand n, Operand p,
                                 DType dtype = i32);

/// 0 … n − 1 in random order, every order being as likely; i32 (i64 beyond 2^31).
/// Sorted by random bits, as often as makes equal bits harmless; the bits are JAX's, and so is the
/// order.
/// Throws: Error if n is negative.
/// Source: JAX `random.permutation`.
[[nodiscard]] Tensor permutation(Operand key, std::int64_t n);
template <std::same_as<bool> T>
Tensor permutation(Operand key, T n) {
  return permutation(std::move(key), std::int64_t{Param<std::int64_t>(n)});
}
/// x with its slices along `axis` in random order; `independent`: every row along `axis` in an
/// order of its own.
[[nodiscard]] Tensor permutation(Operand key, Operand x, Param<int> axis = 0,
                                 bool independent = false);
/// permutation with `independent`.
[[nodiscard]] Tensor shuffle(Operand key, Operand x, Param<int> axis = 0);

/// Options of choice.
struct ChoiceOptions {
  bool replace = true;  ///< may an element be drawn more than once?
  /// [n], how likely each one is, up to a factor; equally without it
  std::optional<Operand> p = std::nullopt;
  Param<int> axis = 0;  ///< of x
};
/// Elements drawn from 0 … n − 1.
/// Shapes: the shape given; i32 (i64 beyond 2^31).
/// Throws: Error if there is nothing to draw from, or too little without replacement, or if p has
/// another shape than [n].
/// Source: JAX `random.choice`; without replacement and with p: the greatest log p + Gumbel noise.
[[nodiscard]] Tensor choice(Operand key, std::int64_t n, const Shape& shape = {},
                            const ChoiceOptions& options = {});
template <std::same_as<bool> T>
Tensor choice(Operand key, T n, const Shape& shape = {}, const ChoiceOptions& options = {}) {
  return choice(std::move(key), std::int64_t{Param<std::int64_t>(n)}, shape, options);
}
/// Slices of x along an axis, which becomes the axes of `shape`.
[[nodiscard]] Tensor choice(Operand key, Operand x, const Shape& shape = {},
                            const ChoiceOptions& options = {});

}  // namespace vt::random

namespace vt {

/// x with each element 0 with probability `rate`, the others divided by 1 − rate, so that the mean
/// stays. Floats; the derivative by x passes where an element stayed. By the rate there is none
/// (0): which elements stay depends on it in steps.
/// Source: Srivastava et al. 2014, Dropout.
[[nodiscard]] Tensor dropout(Operand key, Operand x, Operand rate = 0.5);

}  // namespace vt
