// Functions with rules of their own: custom_jvp, custom_vjp, custom_vmap; and checkpoint, which
// trades memory for work.
#pragma once

#include <array>
#include <memory>

#include <vt/detail/tree_function.hpp>

namespace vt {

namespace detail {

/// Is Both a pair of what can be a First and, if that matters, a Second?
template <class Both, class First, class... Second>
constexpr bool is_pair_of() {
  if constexpr (!is_two<Both>) return false;
  else
    return std::is_convertible_v<std::tuple_element_t<0, Both>, First> &&
           (std::is_convertible_v<std::tuple_element_t<1, Both>, Second> && ...);
}
/// What the rule of custom_jvp gives, called with tuples or with their parts.
template <class Rule, class... A>
constexpr auto given_by_rule() {
  if constexpr (is_callable<Rule&, const std::tuple<A...>&, const std::tuple<A...>&>)
    return std::type_identity<GivenBy<Rule, std::tuple<A...>, std::tuple<A...>>>();
  else return std::type_identity<GivenBy<Rule, A..., A...>>();
}
inline void expect_leaves(std::size_t got, std::size_t wanted, const char* what, CallSite where) {
  if (got != wanted)
    fail(ErrorKind::tree,
         std::string(what) + " returned " + std::to_string(got) + " Tensors; " +
             std::to_string(wanted) + " are needed",
         where);
}

}  // namespace detail

/// f, whose derivative is `rule(primals, tangents)` → pair(value, tangent): both tuples with one
/// entry per argument. The form rule(args…, tangents…) is taken as well. Rules may capture Tensors,
/// also those of a function being transformed: derivatives do not flow into them, but the
/// derivatives of the rule itself do. A rule with captures is called at least once while the
/// function is recorded, and may be called more often. f may capture Tensors too, but not one with
/// respect to which it is being differentiated: that is an Error, as the rule has no tangent of it.
template <class F, class Rule>
[[nodiscard]] auto custom_jvp(F f, Rule rule, CallSite where = CallSite::here()) {
  return detail::transformed<F>([f = detail::Callable(std::move(f)),
                                 rule = detail::Callable(std::move(rule)),
                                 where]<class... A>(const A&... arguments) {
    using Check = detail::CallCheck<F, detail::Owned<A>...>;
    VT_ASSERT_CALL("vt::custom_jvp", Check);
    using Arguments = std::tuple<detail::Owned<A>...>;
    using Both = typename decltype(detail::given_by_rule<Rule, detail::Owned<A>...>())::type;
    constexpr bool called = !Check::holds || !std::is_same_v<Both, detail::NotCallable>;
    static_assert(called,
                  "vt::custom_jvp: the rule cannot be called with the arguments and their "
                  "tangents: write [](vt::Tensor x, vt::Tensor dx) { return std::pair(value, "
                  "tangent); }, for several arguments (x, y, dx, dy), or (std::tuple primals, "
                  "std::tuple tangents)");
    if constexpr (!Check::holds || !called) {
      return detail::Refused();
    } else {
      using Result = detail::ResultOf<F, detail::Owned<A>...>;
      constexpr bool fitting = detail::is_pair_of<Both, Result, Result>();
      static_assert(detail::same_type<Both, std::pair<Result, Result>, fitting>,
                    "vt::custom_jvp: the rule must return std::pair(value, tangent), both of the "
                    "type of the function's result");
      if constexpr (!fitting) {
        return detail::Refused();
      } else {
        auto g = detail::tree_function(f, detail::own(arguments...));
        const Arguments like = std::apply(
            [](const auto&... a) { return Arguments(detail::hollow(a)...); }, g.arguments());
        auto flat_rule = [rule, like, where](std::span<const Tensor> leaves) mutable {
          const Tensor* next = leaves.data();
          const Arguments primals = detail::filled(like, next);
          const Arguments tangents = detail::filled(like, next);
          auto both = [&] {
            if constexpr (detail::is_callable<Rule&, const Arguments&, const Arguments&>)
              return rule(primals, tangents);
            else return std::apply(rule, std::tuple_cat(primals, tangents));
          }();
          std::vector<Tensor> out = tree_leaves(std::get<0>(both));
          const std::size_t n = out.size();
          detail::append_leaves(std::get<1>(both), out);
          detail::expect_leaves(out.size() - n, n, "vt::custom_jvp: the tangent of the rule",
                                where);
          return out;
        };
        const std::vector<Tensor> out =
            detail::custom_jvp_flat(g.flat(), flat_rule, g.leaves(), where, !std::is_empty_v<Rule>);
        return g.rebuild(out);
      }
    }
  });
}

/// f, differentiated in reverse by `backward(residuals, cotangent)` → cotangents of the arguments
/// (bare for one argument, else a std::tuple), where `forward(args…)` → pair(value, residuals).
/// Both may capture Tensors, as the rule of custom_jvp. Forward mode is the transpose of
/// `backward`, which must be linear in the cotangent for that.
template <class F, class Forward, class Backward>
[[nodiscard]] auto custom_vjp(F f, Forward forward, Backward backward,
                              CallSite where = CallSite::here()) {
  return detail::transformed<F>([f = detail::Callable(std::move(f)),
                                 forward = detail::Callable(std::move(forward)),
                                 backward = detail::Callable(std::move(backward)),
                                 where]<class... A>(const A&... arguments) {
    using Check = detail::CallCheck<F, detail::Owned<A>...>;
    VT_ASSERT_CALL("vt::custom_vjp", Check);
    if constexpr (!Check::holds) {
      return detail::Refused();
    } else {
      using Result = detail::ResultOf<F, detail::Owned<A>...>;
      using Pair = detail::GivenBy<Forward, detail::Owned<A>...>;
      constexpr bool forward_fits = detail::is_pair_of<Pair, Result>();
      static_assert(detail::same_type<Pair, Result, forward_fits>,
                    "vt::custom_vjp: the forward function must take the arguments and return "
                    "std::pair(value, residuals): the function's result, and a tree of what the "
                    "backward function needs");
      if constexpr (!forward_fits) {
        return detail::Refused();
      } else {
        using Value = std::decay_t<std::tuple_element_t<0, Pair>>;
        using Residuals = std::decay_t<std::tuple_element_t<1, Pair>>;
        using Cotangents = detail::GivenBy<Backward, Residuals, Value>;
        constexpr bool called = !std::is_same_v<Cotangents, detail::NotCallable>;
        static_assert(detail::same_type<Residuals, Value, called>,
                      "vt::custom_vjp: the backward function cannot be called with the residuals "
                      "and the cotangent of the result: write [](Residuals r, vt::Tensor ct) { "
                      "return cotangents; }");
        using Trees =
            detail::FirstOf<detail::ResultCheck<Residuals>, detail::ResultCheck<Cotangents>>;
        if constexpr (!called) {
          return detail::Refused();
        } else {
          VT_ASSERT_CALL("vt::custom_vjp, a rule", Trees);
          if constexpr (!Trees::holds) {
            return detail::Refused();
          } else {
            auto g = detail::tree_function(f, detail::own(arguments...));
            using Arguments = std::tuple<detail::Owned<A>...>;
            struct Kept {
              std::optional<Value> value;
              std::optional<Residuals> residuals;
            };
            auto trees = std::make_shared<Kept>();
            const Arguments like = std::apply(
                [](const auto&... a) { return Arguments(detail::hollow(a)...); }, g.arguments());
            auto flat_forward = [forward, like, trees](std::span<const Tensor> leaves) mutable {
              const Tensor* next = leaves.data();
              const Arguments primals = detail::filled(like, next);
              auto both = std::apply(forward, primals);
              std::vector<Tensor> out = tree_leaves(std::get<0>(both));
              detail::append_leaves(std::get<1>(both), out);
              trees->value.emplace(detail::hollow(std::get<0>(both)));
              trees->residuals.emplace(detail::hollow(std::get<1>(both)));
              return out;
            };
            const std::size_t wanted = g.leaves().size();
            auto flat_backward = [backward, trees, wanted,
                                  where](std::span<const Tensor> leaves) mutable {
              const Tensor* next = leaves.data();
              const Residuals residuals = detail::filled(*trees->residuals, next);
              const Value cotangent = detail::filled(*trees->value, next);
              auto cotangents = backward(residuals, cotangent);
              std::vector<Tensor> out = tree_leaves(cotangents);
              detail::expect_leaves(out.size(), wanted, "vt::custom_vjp: the backward function",
                                    where);
              return out;
            };
            const std::vector<Tensor> out =
                detail::custom_vjp_flat(g.flat(), flat_forward, flat_backward, g.leaves(), where,
                                        !std::is_empty_v<Forward> || !std::is_empty_v<Backward>);
            return g.rebuild(out);
          }
        }
      }
    }
  });
}

/// f, vectorized by `rule(axis_size, mapped, args…)` → pair(result, result_mapped): mapped is a
/// std::array<bool, N> with an entry per argument; mapped arguments carry the lanes at axis 0, and
/// so must the result if result_mapped (a bool) says so. The rule may not capture a Tensor of the
/// function being vectorized: it would have lanes of its own. Make it an argument.
template <class F, class Rule>
[[nodiscard]] auto custom_vmap(F f, Rule rule, CallSite where = CallSite::here()) {
  return detail::transformed<F>([f = detail::Callable(std::move(f)),
                                 rule = detail::Callable(std::move(rule)),
                                 where]<class... A>(const A&... arguments) {
    using Check = detail::CallCheck<F, detail::Owned<A>...>;
    VT_ASSERT_CALL("vt::custom_vmap", Check);
    using Both =
        detail::GivenBy<Rule, std::int64_t, std::array<bool, sizeof...(A)>, detail::Owned<A>...>;
    constexpr bool called = !Check::holds || !std::is_same_v<Both, detail::NotCallable>;
    static_assert(called,
                  "vt::custom_vmap: the rule cannot be called with the number of lanes, which "
                  "arguments have lanes, and the arguments: write [](std::int64_t lanes, "
                  "std::array<bool, 1> mapped, vt::Tensor x) { return std::pair(result, true); }, "
                  "the array with an entry for each argument");
    if constexpr (!Check::holds || !called) {
      return detail::Refused();
    } else {
      using Result = detail::ResultOf<F, detail::Owned<A>...>;
      constexpr bool fitting = detail::is_pair_of<Both, Result, bool>();
      static_assert(detail::same_type<Both, std::pair<Result, bool>, fitting>,
                    "vt::custom_vmap: the rule must return std::pair(result, has_lanes): what is "
                    "of the type of the function's result, and a bool");
      if constexpr (!fitting) {
        return detail::Refused();
      } else {
        auto g = detail::tree_function(f, detail::own(arguments...));
        using Arguments = std::tuple<detail::Owned<A>...>;
        const Arguments like = std::apply(
            [](const auto&... a) { return Arguments(detail::hollow(a)...); }, g.arguments());
        auto flat_rule = [rule, like](std::int64_t size, const Vec<bool>& leaf_mapped,
                                      std::span<const Tensor> leaves,
                                      Vec<bool>& out_mapped) mutable {
          const Arguments given = detail::with_leaves(like, leaves);
          std::array<bool, sizeof...(A)> mapped{};
          std::size_t leaf = 0, argument = 0;
          const auto look = [&](const auto& tree) {
            for (std::size_t n = detail::count_leaves(tree); n > 0; --n, ++leaf)
              mapped[argument] = mapped[argument] || leaf_mapped[leaf];
            ++argument;
          };
          std::apply([&](const auto&... a) { (look(a), ...); }, given);
          auto both = std::apply([&](const auto&... a) { return rule(size, mapped, a...); }, given);
          std::vector<Tensor> out = tree_leaves(std::get<0>(both));
          out_mapped.assign(out.size(), static_cast<bool>(std::get<1>(both)));
          return out;
        };
        const std::vector<Tensor> out =
            detail::custom_vmap_flat(g.flat(), flat_rule, g.leaves(), where);
        return g.rebuild(out);
      }
    }
  });
}

/// f, whose intermediate values are computed again in the backward pass instead of being kept.
template <class F>
[[nodiscard]] auto checkpoint(F f, CallSite where = CallSite::here()) {
  return detail::transformed<F>(
      [f = detail::Callable(std::move(f)), where]<class... A>(const A&... arguments) {
        using Check = detail::CallCheck<F, detail::Owned<A>...>;
        VT_ASSERT_CALL("vt::checkpoint", Check);
        if constexpr (!Check::holds) {
          return detail::Refused();
        } else {
          auto g = detail::tree_function(f, detail::own(arguments...));
          const std::vector<Tensor> out = detail::checkpoint_flat(g.flat(), g.leaves(), where);
          return g.rebuild(out);
        }
      });
}

}  // namespace vt
