// First-order methods, which step along gradients that the user computes: Sgd, Adam and AdamW,
// their learning rates and the clipping of gradients.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <vt/detail/control.hpp>

namespace vt {

/// A learning rate: a number, a Tensor, or a function of the step, which is an i32[] that counts
/// from 0.
class Rate {
 public:
  template <class N>
    requires Number<N>
  Rate(N value) : value_(Tensor(static_cast<double>(value))) {}
  Rate(const Tensor& value) : value_(value) {}
  template <class F>
    requires(!std::is_same_v<F, Rate> && !std::is_convertible_v<F, Tensor> &&
             std::is_invocable_r_v<Tensor, const F&, Tensor>)
  Rate(F schedule) : schedule_(std::move(schedule)) {}
  /// The rate at a step: float[].
  [[nodiscard]] Tensor at(const Tensor& step) const { return schedule_ ? schedule_(step) : value_; }

 private:
  Tensor value_;
  std::function<Tensor(Tensor)> schedule_;
};
/// end + (value − end) · (1 + cos(π step / steps)) / 2; from `steps` on `end`.
/// Throws: Error (value) if steps is below 1.
/// Source: optax `cosine_decay_schedule`; Loshchilov and Hutter 2017.
[[nodiscard]] Rate cosine_rate(Param<double> value, Param<std::int64_t> steps,
                               Param<double> end = 0.0, CallSite where = CallSite::here());
/// value · factor^(step / steps).
/// Throws: Error (value) if steps is below 1 or the factor is not above 0.
/// Source: optax `exponential_decay`.
[[nodiscard]] Rate exponential_rate(Param<double> value, Param<double> factor,
                                    Param<std::int64_t> steps = 1,
                                    CallSite where = CallSite::here());
/// Rises linearly from 0 to the first value of `rate` within `steps`; then `rate`, whose own steps
/// count from there.
/// Throws: Error (value) if steps is below 1.
/// Source: optax `warmup_cosine_decay_schedule`.
[[nodiscard]] Rate warm_up(Rate rate, Param<std::int64_t> steps, CallSite where = CallSite::here());

/// The state of Sgd.
template <class T>
struct SgdState {
  Tensor steps;  ///< i32[]
  T momentum;    ///< like the parameters; zeros without momentum
};
/// The state of Adam and AdamW.
template <class T>
struct AdamState {
  Tensor steps;  ///< i32[]
  T mean;        ///< m: running mean of gradients, like the parameters
  T square;      ///< v: running mean of their squares, like the parameters
};

namespace detail {

struct FirstOrderCall {
  ControlCall call;
  std::vector<std::string> paths;
};
struct SgdRule {
  const Rate& rate;
  double momentum, weight_decay;
  std::optional<double> clip_norm;
  bool nesterov;
};
struct AdamRule {
  const Rate& rate;
  double mean_decay, square_decay, epsilon, weight_decay;
  std::optional<double> clip_norm;
};
/// Throws for what is no real float.
void check_parameters(std::span<const Tensor> parameters, const FirstOrderCall&);
std::vector<Tensor> zeros_of(std::span<const Tensor> like);
/// (parameters…, momentum…) after a step.
std::vector<Tensor> sgd_step(const SgdRule&, std::span<const Tensor> parameters,
                             std::span<const Tensor> gradient, const Tensor& steps,
                             std::span<const Tensor> momentum, const FirstOrderCall&);
/// (parameters…, mean…, square…) after a step.
std::vector<Tensor> adam_step(const AdamRule&, std::span<const Tensor> parameters,
                              std::span<const Tensor> gradient, const Tensor& steps,
                              std::span<const Tensor> mean, std::span<const Tensor> square,
                              const FirstOrderCall&);
std::vector<Tensor> clipped_by_norm(std::span<const Tensor> leaves, double most, CallSite);

template <class T>
FirstOrderCall first_order_call(const char* name, const T& like, CallSite where) {
  return {{.name = name, .where = where}, leaf_paths(like)};
}
/// The leaves of a tree that must be built like the parameters.
template <class T, class G>
std::vector<Tensor> like_parameters(const T& parameters, const G& given, const char* must,
                                    const FirstOrderCall& c) {
  return kept_structure(parameters, given, must, "tree", c.call);
}
template <class T>
T tree_part(const T& like, std::span<const Tensor> all, std::size_t part) {
  const std::size_t n = tree_leaves(like).size();
  return with_leaves(like, all.subspan(part * n, n));
}
/// Can a step be made of these trees?
template <class T, class G>
struct StepCheck : FirstOf<TreesCheck<T, G>, GivenCheck<G, LiftedTree<T>>> {};
// clang-format off
#define VT_ASSERT_STEP(name)                                                                       \
  static_assert(::vt::detail::fits<Check, ::vt::detail::CallFault::type>,                          \
                name ": the gradient must be a tree like the parameters: write "                   \
                     "vt::grad(loss)(parameters)");                                                \
  VT_ASSERT_CALL(name, Check)
// clang-format on

}  // namespace detail

/// The tree, scaled down where its global norm, √(sum of all squares), is above `most`.
/// Shapes: a tree of floats.
/// Throws: Error (value) unless `most` is above 0.
/// Source: optax `clip_by_global_norm`.
template <class T>
[[nodiscard]] auto clip_by_norm(const T& tree, Param<double> most,
                                CallSite where = CallSite::here()) {
  using Check = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::clip_by_norm", Check);
  if constexpr (!Check::holds) {
    return detail::Refused();
  } else {
    const auto own = detail::lifted(tree);
    return detail::with_leaves(own, detail::clipped_by_norm(tree_leaves(own), most, where));
  }
}

/// Stochastic gradient descent: m ← momentum · m + g, p ← p − rate · m, g being the gradient and p
/// the parameters.
/// Source: optax `sgd`; Sutskever, Martens, Dahl and Hinton 2013 for Nesterov's momentum.
struct Sgd {
  Rate rate = 0.01;
  Param<double> momentum = 0.0;
  bool nesterov = false;                                  ///< the step is rate · (g + momentum · m)
  Param<double> weight_decay = 0.0;                       ///< g ← g + weight_decay · p
  std::optional<Param<double>> clip_norm = std::nullopt;  ///< g is clipped by this norm first

  /// The state before the first step, for parameters.
  /// Shapes: a tree of real floats.
  template <class T>
  [[nodiscard]] auto init(const T& parameters, CallSite where = CallSite::here()) const {
    using Check = detail::TreesCheck<T>;
    VT_ASSERT_CALL("vt::Sgd::init", Check);
    if constexpr (!Check::holds) {
      return detail::Refused();
    } else {
      const auto own = detail::lifted(parameters);
      const std::vector<Tensor> leaves = tree_leaves(own);
      detail::check_parameters(leaves, detail::first_order_call("vt::Sgd::init", own, where));
      return SgdState<detail::LiftedTree<T>>{Tensor(0).astype(i32),
                                             detail::with_leaves(own, detail::zeros_of(leaves))};
    }
  }
  /// One step: pair(new parameters, new state). gradient: a tree like the parameters.
  /// Throws: Error (tree, shape) if the gradient or the state do not fit.
  template <class T, class G>
  [[nodiscard]] auto step(const T& parameters, const G& gradient,
                          const SgdState<detail::LiftedTree<T>>& state,
                          CallSite where = CallSite::here()) const {
    using Check = detail::StepCheck<T, G>;
    VT_ASSERT_STEP("vt::Sgd::step");
    if constexpr (!Check::holds) {
      return std::pair(detail::Refused(), detail::Refused());
    } else {
      const auto own = detail::lifted(parameters);
      const auto c = detail::first_order_call("vt::Sgd::step", own, where);
      std::optional<double> norm;
      if (clip_norm) norm = *clip_norm;
      const std::vector<Tensor> next =
          detail::sgd_step({rate, momentum, weight_decay, norm, nesterov}, tree_leaves(own),
                           detail::like_parameters(
                               own, gradient, "the gradient must be a tree like the parameters", c),
                           state.steps,
                           detail::like_parameters(own, state.momentum,
                                                   "the state must be that of such parameters", c),
                           c);
      return std::pair(
          detail::tree_part(own, next, 0),
          SgdState<detail::LiftedTree<T>>{state.steps + 1, detail::tree_part(own, next, 1)});
    }
  }
};

namespace detail {

/// init and step of Adam and AdamW.
template <class Self>
struct AdamSteps {
  template <class T>
  static auto init(const char* name, const T& parameters, CallSite where) {
    const auto own = lifted(parameters);
    const std::vector<Tensor> leaves = tree_leaves(own);
    check_parameters(leaves, first_order_call(name, own, where));
    return AdamState<LiftedTree<T>>{Tensor(0).astype(i32), with_leaves(own, zeros_of(leaves)),
                                    with_leaves(own, zeros_of(leaves))};
  }
  template <class T, class G>
  static auto step(const Self& self, double weight_decay, const char* name, const T& parameters,
                   const G& gradient, const AdamState<LiftedTree<T>>& state, CallSite where) {
    const auto own = lifted(parameters);
    const auto c = first_order_call(name, own, where);
    std::optional<double> norm;
    if (self.clip_norm) norm = *self.clip_norm;
    constexpr const char* of_state = "the state must be that of such parameters";
    const std::vector<Tensor> next = adam_step(
        {self.rate, self.mean_decay, self.square_decay, self.epsilon, weight_decay, norm},
        tree_leaves(own),
        like_parameters(own, gradient, "the gradient must be a tree like the parameters", c),
        state.steps, like_parameters(own, state.mean, of_state, c),
        like_parameters(own, state.square, of_state, c), c);
    return std::pair(tree_part(own, next, 0),
                     AdamState<LiftedTree<T>>{state.steps + 1, tree_part(own, next, 1),
                                              tree_part(own, next, 2)});
  }
};

}  // namespace detail

/// Adam: m ← β₁ m + (1 − β₁) g, v ← β₂ v + (1 − β₂) g², p ← p − rate · m̂ / (√v̂ + epsilon), where
/// m̂ = m / (1 − β₁ᵗ) and v̂ = v / (1 − β₂ᵗ) after t steps.
/// Source: Kingma and Ba 2015; optax `adam`.
struct Adam {
  Rate rate = 1e-3;
  Param<double> mean_decay = 0.9;      ///< β₁
  Param<double> square_decay = 0.999;  ///< β₂
  Param<double> epsilon = 1e-8;
  std::optional<Param<double>> clip_norm = std::nullopt;  ///< g is clipped by this norm first

  /// The state before the first step, for parameters.
  /// Shapes: a tree of real floats.
  template <class T>
  [[nodiscard]] auto init(const T& parameters, CallSite where = CallSite::here()) const {
    using Check = detail::TreesCheck<T>;
    VT_ASSERT_CALL("vt::Adam::init", Check);
    if constexpr (!Check::holds) return detail::Refused();
    else return detail::AdamSteps<Adam>::init("vt::Adam::init", parameters, where);
  }
  /// One step: pair(new parameters, new state). gradient: a tree like the parameters.
  /// Throws: Error (tree, shape) if the gradient or the state do not fit.
  template <class T, class G>
  [[nodiscard]] auto step(const T& parameters, const G& gradient,
                          const AdamState<detail::LiftedTree<T>>& state,
                          CallSite where = CallSite::here()) const {
    using Check = detail::StepCheck<T, G>;
    VT_ASSERT_STEP("vt::Adam::step");
    if constexpr (!Check::holds) return std::pair(detail::Refused(), detail::Refused());
    else
      return detail::AdamSteps<Adam>::step(*this, 0.0, "vt::Adam::step", parameters, gradient,
                                           state, where);
  }
};

/// Adam with decoupled weight decay: each step also subtracts rate · weight_decay · p.
/// Source: Loshchilov and Hutter 2019; optax `adamw`.
struct AdamW {
  Rate rate = 1e-3;
  Param<double> mean_decay = 0.9;      ///< β₁
  Param<double> square_decay = 0.999;  ///< β₂
  Param<double> epsilon = 1e-8;
  Param<double> weight_decay = 1e-4;
  std::optional<Param<double>> clip_norm = std::nullopt;  ///< g is clipped by this norm first

  /// The state before the first step, for parameters.
  /// Shapes: a tree of real floats.
  template <class T>
  [[nodiscard]] auto init(const T& parameters, CallSite where = CallSite::here()) const {
    using Check = detail::TreesCheck<T>;
    VT_ASSERT_CALL("vt::AdamW::init", Check);
    if constexpr (!Check::holds) return detail::Refused();
    else return detail::AdamSteps<AdamW>::init("vt::AdamW::init", parameters, where);
  }
  /// One step: pair(new parameters, new state). gradient: a tree like the parameters.
  /// Throws: Error (tree, shape) if the gradient or the state do not fit.
  template <class T, class G>
  [[nodiscard]] auto step(const T& parameters, const G& gradient,
                          const AdamState<detail::LiftedTree<T>>& state,
                          CallSite where = CallSite::here()) const {
    using Check = detail::StepCheck<T, G>;
    VT_ASSERT_STEP("vt::AdamW::step");
    if constexpr (!Check::holds) return std::pair(detail::Refused(), detail::Refused());
    else
      return detail::AdamSteps<AdamW>::step(*this, weight_decay, "vt::AdamW::step", parameters,
                                            gradient, state, where);
  }
};

}  // namespace vt
