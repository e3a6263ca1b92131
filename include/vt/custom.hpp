// Functions with rules of their own: custom_jvp, custom_vjp, custom_vmap; and checkpoint, which trades memory for work.
#pragma once

#include <array>

#include <vt/detail/tree_function.hpp>

namespace vt {

namespace detail {

/// The tree `like` holding leaves from `*next` on.
template <class T>
T filled(T like, const Tensor*& next) {
  assign_leaves(like, next);
  return like;
}
inline void expect_leaves(std::size_t got, std::size_t wanted, const char* what, Where where) {
  if (got != wanted)
    fail(ErrorKind::tree, std::string(what) + " returned " + std::to_string(got) + " Tensors; " + std::to_string(wanted) + " are needed", where);
}

}  // namespace detail

/// f, whose derivative is `rule(primals, tangents)` → pair(value, tangent): both tuples with one entry per argument. The form
/// rule(args…, tangents…) is taken as well. Rules may capture Tensors, also those of a function being transformed: derivatives
/// do not flow into them, but the derivatives of the rule itself do. A rule with captures is called once where the function is
/// traced, and may be called again.
template <class F, class Rule>
auto custom_jvp(F f, Rule rule, Where where = Where::here()) {
  return [f = detail::Callable(std::move(f)), rule = detail::Callable(std::move(rule)), where]<class... A>(const A&... arguments) {
    auto g = detail::tree_function(f, detail::own(arguments...));
    using Arguments = std::tuple<detail::Owned<A>...>;
    const Arguments like = std::apply([](const auto&... a) { return Arguments(detail::hollow(a)...); }, g.arguments());
    auto flat_rule = [rule, like, where](std::span<const Tensor> leaves) mutable {
      const Tensor* next = leaves.data();
      Arguments primals = like, tangents = like;
      std::apply([&](auto&... a) { (detail::assign_leaves(a, next), ...); }, primals);
      std::apply([&](auto&... a) { (detail::assign_leaves(a, next), ...); }, tangents);
      auto both = [&] {
        if constexpr (std::is_invocable_v<Rule&, const Arguments&, const Arguments&>) return rule(std::as_const(primals), std::as_const(tangents));
        else return std::apply(rule, std::tuple_cat(primals, tangents));
      }();
      std::vector<Tensor> out = tree_leaves(std::get<0>(both));
      const std::size_t n = out.size();
      detail::append_leaves(std::get<1>(both), out);
      detail::expect_leaves(out.size() - n, n, "vt::custom_jvp: the tangent of the rule", where);
      return out;
    };
    const std::vector<Tensor> out = detail::custom_jvp_flat(g.flat(), flat_rule, g.leaves(), where, !std::is_empty_v<Rule>);
    return g.rebuild(out);
  };
}

/// f, differentiated in reverse by `backward(residuals, cotangent)` → cotangents of the arguments (bare for one argument, else a
/// std::tuple), where `forward(args…)` → pair(value, residuals). Both may capture Tensors, as the rule of custom_jvp. Forward mode is the transpose
/// of `backward`, which must be linear in the cotangent for that.
template <class F, class Forward, class Backward>
auto custom_vjp(F f, Forward forward, Backward backward, Where where = Where::here()) {
  return [f = detail::Callable(std::move(f)), forward = detail::Callable(std::move(forward)), backward = detail::Callable(std::move(backward)),
          where]<class... A>(const A&... arguments) {
    auto g = detail::tree_function(f, detail::own(arguments...));
    using Arguments = std::tuple<detail::Owned<A>...>;
    using Pair = detail::ResultOf<Forward, detail::Owned<A>...>;
    using Value = std::decay_t<std::tuple_element_t<0, Pair>>;
    using Residuals = std::decay_t<std::tuple_element_t<1, Pair>>;
    struct Trees {
      std::optional<Value> value;
      std::optional<Residuals> residuals;
    };
    auto trees = detail::new_shared<Trees>();
    const Arguments like = std::apply([](const auto&... a) { return Arguments(detail::hollow(a)...); }, g.arguments());
    auto flat_forward = [forward, like, trees](std::span<const Tensor> leaves) mutable {
      const Tensor* next = leaves.data();
      Arguments primals = like;
      std::apply([&](auto&... a) { (detail::assign_leaves(a, next), ...); }, primals);
      auto both = std::apply(forward, std::as_const(primals));
      std::vector<Tensor> out = tree_leaves(std::get<0>(both));
      detail::append_leaves(std::get<1>(both), out);
      trees->value.emplace(detail::hollow(std::get<0>(both)));
      trees->residuals.emplace(detail::hollow(std::get<1>(both)));
      return out;
    };
    const std::size_t wanted = g.leaves().size();
    auto flat_backward = [backward, trees, wanted, where](std::span<const Tensor> leaves) mutable {
      const Tensor* next = leaves.data();
      const Residuals residuals = detail::filled(*trees->residuals, next);
      const Value cotangent = detail::filled(*trees->value, next);
      auto cotangents = backward(residuals, cotangent);
      std::vector<Tensor> out = tree_leaves(cotangents);
      detail::expect_leaves(out.size(), wanted, "vt::custom_vjp: the backward function", where);
      return out;
    };
    const std::vector<Tensor> out =
        detail::custom_vjp_flat(g.flat(), flat_forward, flat_backward, g.leaves(), where, !std::is_empty_v<Forward> || !std::is_empty_v<Backward>);
    return g.rebuild(out);
  };
}

/// f, vectorized by `rule(axis_size, mapped, args…)` → pair(result, result_mapped): mapped is a std::array<bool, N> with an entry
/// per argument; mapped arguments carry the lanes at axis 0, and so must the result if result_mapped (a bool) says so. The rule may not
/// capture a Tensor of the function being vectorized: it would have lanes of its own. Make it an argument.
template <class F, class Rule>
auto custom_vmap(F f, Rule rule, Where where = Where::here()) {
  return [f = detail::Callable(std::move(f)), rule = detail::Callable(std::move(rule)), where]<class... A>(const A&... arguments) {
    auto g = detail::tree_function(f, detail::own(arguments...));
    using Arguments = std::tuple<detail::Owned<A>...>;
    const Arguments like = std::apply([](const auto&... a) { return Arguments(detail::hollow(a)...); }, g.arguments());
    auto flat_rule = [rule, like](std::int64_t size, const Vec<bool>& leaf_mapped, std::span<const Tensor> leaves, Vec<bool>& out_mapped) mutable {
      const Tensor* next = leaves.data();
      Arguments given = like;
      std::array<bool, sizeof...(A)> mapped{};
      std::size_t leaf = 0, argument = 0;
      std::apply(
          [&](auto&... a) {
            auto one = [&](auto& tree) {
              const std::size_t n = detail::count_leaves(tree);
              for (std::size_t i = 0; i < n; ++i) mapped[argument] = mapped[argument] || leaf_mapped[leaf + i];
              leaf += n;
              ++argument;
              detail::assign_leaves(tree, next);
            };
            (one(a), ...);
          },
          given);
      auto both = std::apply([&](const auto&... a) { return rule(size, mapped, a...); }, given);
      std::vector<Tensor> out = tree_leaves(std::get<0>(both));
      out_mapped.assign(out.size(), static_cast<bool>(std::get<1>(both)));
      return out;
    };
    const std::vector<Tensor> out = detail::custom_vmap_flat(g.flat(), flat_rule, g.leaves(), where);
    return g.rebuild(out);
  };
}

/// f, whose intermediate values are computed again in the backward pass instead of being kept.
template <class F>
auto checkpoint(F f, Where where = Where::here()) {
  return [f = detail::Callable(std::move(f)), where]<class... A>(const A&... arguments) {
    auto g = detail::tree_function(f, detail::own(arguments...));
    const std::vector<Tensor> out = detail::checkpoint_flat(g.flat(), g.leaves(), where);
    return g.rebuild(out);
  };
}

}  // namespace vt
