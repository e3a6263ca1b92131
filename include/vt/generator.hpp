// Generator: a stream of keys that advances with each draw, in recorded and compiled functions as
// outside of them.
#pragma once

#include <utility>

#include <vt/random.hpp>

namespace vt {

namespace detail {
struct VariableState;
}  // namespace detail

/// Copies are the same generator. Its state is a key and a count of the keys given: key number c is
/// random::fold_in(key, c), so a sequence of draws is a function of the seed alone, whether it runs
/// as it is, compiled, in a loop or on another backend. The state is kept as a vt::Variable's is:
/// compiled functions take it and give it back, loops and branches carry it, and an error leaves it
/// as it was. vmap and pfor take one key k of it; in lane i it is a generator of its own with the
/// key random::fold_in(k, i), which ends with the lane. Lanes so draw different numbers, the same
/// ones for any `chunk`, and what is drawn behind does not depend on how much lanes draw.
/// Throws: Error where a vt::Variable cannot be updated either: conditions of loops, functions with
/// rules of their own, make_graph.
class Generator {
 public:
  explicit Generator(std::uint64_t seed = 0, CallSite where = CallSite::here());
  template <std::same_as<bool> T>
  explicit Generator(T seed) : Generator(std::uint64_t{Param<std::uint64_t>(seed)}) {}
  /// Goes on from a key of vt::random.
  explicit Generator(const Tensor& key, CallSite where = CallSite::here());

  /// The next key, for any function of vt::random, each of which has its key as the first argument.
  Tensor next(CallSite where = CallSite::here()) const;
  /// As if made anew.
  void seed(Param<std::uint64_t> seed, CallSite where = CallSite::here()) const;
  /// u64[2], the key and the count: what to save, and to go on from. Throws: Error if `state` is
  /// something else.
  Tensor state(CallSite where = CallSite::here()) const;
  void set_state(Operand state) const;

  // The functions of vt::random with that key.
  Tensor bits(const Shape& shape = {}, DType dtype = u32, CallSite where = CallSite::here()) const {
    return random::bits(drawn(where), shape, dtype);
  }
  Tensor uniform(const Shape& shape = {}, DType dtype = default_dtype(),
                 CallSite where = CallSite::here()) const {
    return random::uniform(drawn(where), shape, dtype);
  }
  Tensor uniform(const Shape& shape, Operand low, Operand high,
                 DType dtype = default_dtype()) const {
    return random::uniform(drawn(low.where), shape, std::move(low), std::move(high), dtype);
  }
  Tensor randint(const Shape& shape, Operand low, Operand high, DType dtype = i64) const {
    return random::randint(drawn(low.where), shape, std::move(low), std::move(high), dtype);
  }
  Tensor bernoulli(const Shape& shape = {}, Operand p = 0.5) const {
    return random::bernoulli(drawn(p.where), shape, std::move(p));
  }
  Tensor categorical(Operand logits, Param<int> axis = -1) const {
    return random::categorical(drawn(logits.where), std::move(logits), axis);
  }
  Tensor normal(const Shape& shape = {}, DType dtype = default_dtype(),
                CallSite where = CallSite::here()) const {
    return random::normal(drawn(where), shape, dtype);
  }
  Tensor truncated_normal(const Shape& shape, Operand lower, Operand upper,
                          DType dtype = default_dtype()) const {
    return random::truncated_normal(drawn(lower.where), shape, std::move(lower), std::move(upper),
                                    dtype);
  }
  Tensor exponential(const Shape& shape = {}, DType dtype = default_dtype(),
                     CallSite where = CallSite::here()) const {
    return random::exponential(drawn(where), shape, dtype);
  }
  Tensor gumbel(const Shape& shape = {}, DType dtype = default_dtype(),
                CallSite where = CallSite::here()) const {
    return random::gumbel(drawn(where), shape, dtype);
  }
  Tensor gamma(const Shape& shape, Operand a, DType dtype = default_dtype()) const {
    return random::gamma(drawn(a.where), shape, std::move(a), dtype);
  }
  Tensor beta(const Shape& shape, Operand a, Operand b, DType dtype = default_dtype()) const {
    return random::beta(drawn(a.where), shape, std::move(a), std::move(b), dtype);
  }
  Tensor dirichlet(const Shape& shape, Operand alpha, DType dtype = default_dtype()) const {
    return random::dirichlet(drawn(alpha.where), shape, std::move(alpha), dtype);
  }
  Tensor poisson(const Shape& shape, Operand mean, DType dtype = i32) const {
    return random::poisson(drawn(mean.where), shape, std::move(mean), dtype);
  }
  Tensor binomial(const Shape& shape, Operand n, Operand p, DType dtype = i32) const {
    return random::binomial(drawn(n.where), shape, std::move(n), std::move(p), dtype);
  }
  template <std::same_as<bool> T>
  Tensor permutation(T n) const {
    return permutation(std::int64_t{Param<std::int64_t>(n)});
  }
  Tensor permutation(std::int64_t n, CallSite where = CallSite::here()) const {
    return random::permutation(drawn(where), n);
  }
  Tensor permutation(const Tensor& x, Param<int> axis = 0, bool independent = false,
                     CallSite where = CallSite::here()) const {
    return random::permutation(drawn(where), Operand(x, where.file, where.line), axis, independent);
  }
  template <std::same_as<bool> T>
  Tensor choice(T n, const Shape& shape = {}, const random::ChoiceOptions& options = {}) const {
    return choice(std::int64_t{Param<std::int64_t>(n)}, shape, options);
  }
  Tensor choice(std::int64_t n, const Shape& shape = {}, const random::ChoiceOptions& options = {},
                CallSite where = CallSite::here()) const {
    return random::choice(drawn(where), n, shape, options);
  }
  Tensor choice(const Tensor& x, const Shape& shape = {}, const random::ChoiceOptions& options = {},
                CallSite where = CallSite::here()) const {
    return random::choice(drawn(where), Operand(x, where.file, where.line), shape, options);
  }
  Tensor dropout(const Tensor& x, Operand rate = 0.5) const {
    return vt::dropout(drawn(rate.where), {x, rate.where.file, rate.where.line}, rate);
  }

 private:
  Operand drawn(CallSite where) const { return {next(where), where.file, where.line}; }

  std::shared_ptr<detail::VariableState> state_;
};

}  // namespace vt
