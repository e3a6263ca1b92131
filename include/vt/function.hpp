// function: a named function, recorded once per signature and then called by one equation;
// Recursive: one that may call itself.
#pragma once

#include <memory>
#include <string>

#include <vt/detail/signature.hpp>

namespace vt {

/// What `function` makes. Copies are the same function; any thread may call it.
template <class F>
class Named : detail::CallByParameters<Named<F>, typename detail::Parameters<F>::type> {
  using ByParameters = detail::CallByParameters<Named<F>, typename detail::Parameters<F>::type>;
  friend ByParameters;

 public:
  Named(std::string name, F f, CallSite where)
      : f_(std::move(f)),
        where_(where),
        cache_(std::make_shared<detail::FunctionCache>(std::move(name), "vt::function",
                                                       std::nullopt, where)) {}

  /// f(arguments…), as one equation. Numbers for Tensor parameters are Tensors, as with jit.
  template <class... A>
  auto operator()(const A&... arguments) const {
    using Check = detail::CallCheck<F, detail::Owned<A>...>;
    if constexpr (detail::number_for_tensor<F, A...> || detail::data_for_tensor<F, A...>) {
      return detail::with_tensors<F>(
          where_, [this](const auto&... taken) { return (*this)(taken...); }, arguments...);
    } else if constexpr (!Check::holds) {
      VT_ASSERT_CALL("vt::function", Check);
      return detail::Refused();
    } else {
      return detail::call_by_signature(*cache_, f_, where_, arguments...);
    }
  }
  using ByParameters::operator();

 private:
  mutable F f_;
  CallSite where_;
  std::shared_ptr<detail::FunctionCache> cache_;
};

namespace detail {
template <class F>
struct Parameters<Named<F>> : Parameters<F> {};
}  // namespace detail

/// f as an ordinary callable on trees that is recorded once for each signature (dtypes and shapes
/// of the Tensors, everything static) and is one equation, `call[name=…]`, wherever it is called: a
/// hundred calls are a hundred equations, whatever f is made of. Every transform works on it once,
/// and not for each call. What f captures belongs to what is recorded, as with jit; it cannot look
/// at values.
/// Throws: Error if the name is empty.
template <class F>
[[nodiscard]] Named<F> function(std::string name, F f, CallSite where = CallSite::here()) {
  return Named<F>(std::move(name), std::move(f), where);
}

/// Options of Recursive.
struct RecursionOptions {
  /// how many calls may wait for each other's results, at least 1; running deeper is an error
  Param<int> max_depth = 1000;
};

template <class Signature>
class Recursive;
/// A function that may call itself, or others that call it: the same as `function`, with its types
/// spelled out, as C++ wants them before the body is known.
///
///     vt::Recursive<vt::Tensor(vt::Tensor)> factorial("factorial", [&](vt::Tensor n) {
///       return vt::cond(n > 1, [&] { return n * factorial(n - 1); }, [] { return 1.0; });
///     });
///
/// The recursion ends where vt::cond takes a branch that does not call; such branches also tell
/// what the results look like, before the others are recorded. Signatures must repeat: a call with
/// Tensors of other shapes or with other static values is another function. Capture it by
/// reference, as above: a function that holds a copy of itself is never freed.
/// Throws: Error where every branch calls, where results differ in type, where it runs too deep,
/// where it assigns variables, where max_depth is less than 1.
template <class R, class... A>
class Recursive<R(A...)> {
  using Check = detail::CallCheck<R(const A&...), std::decay_t<A>...>;
  VT_ASSERT_CALL("vt::Recursive", Check);

 public:
  explicit Recursive(std::string name, RecursionOptions options = {},
                     CallSite where = CallSite::here())
      : state_(std::make_shared<State>(std::move(name), options, where)) {}
  template <class F>
    requires(!std::is_same_v<F, RecursionOptions>)
  Recursive(std::string name, F f, RecursionOptions options = {}, CallSite where = CallSite::here())
      : Recursive(std::move(name), options, where) {
    define(std::move(f));
  }
  /// The body, for functions that call each other: declare them, then define each of them once.
  template <class F>
  Recursive& operator=(F f) {
    if (state_->f) state_->cache.defined_twice(state_->where);
    define(std::move(f));
    return *this;
  }

  /// f(arguments…), as one equation.
  R operator()(const A&... arguments) const {
    if (!state_->f) state_->cache.undefined(state_->where);
    return detail::call_by_signature(state_->cache, state_->f, state_->where, arguments...);
  }

 private:
  struct State {
    State(std::string name, RecursionOptions options, CallSite line)
        : cache(std::move(name), "vt::Recursive", options.max_depth, line), where(line) {}
    detail::FunctionCache cache;
    CallSite where;
    detail::Function<R(const A&...)> f;
  };
  template <class F>
  void define(F f) {
    constexpr bool fitting = detail::gives<R, F&, const A&...>;
    static_assert(detail::same_type<detail::GivenBy<F, A...>, R, fitting>,
                  "vt::Recursive: the function must take these parameters and return this type: "
                  "vt::Recursive<Result(Parameters...)>");
    if constexpr (fitting) state_->f = std::move(f);
  }

  std::shared_ptr<State> state_;
};

}  // namespace vt
