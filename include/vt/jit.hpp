// jit: compile once per signature; make_graph and eval_shape: what a function records.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <vt/detail/signature.hpp>
#include <vt/execution.hpp>

namespace vt {

namespace detail {

/// Per Tensor of the arguments: is it of one that `donate` names? Empty where none is named.
template <class... A>
Vec<char> donated_leaves(const std::vector<int>& donate, CallSite where, const A&... arguments) {
  Vec<char> donated;
  if (donate.empty()) return donated;
  check_donated(donate, sizeof...(A), where);
  int position = 0;
  SmallVec<Tensor, 8> leaves;
  [[maybe_unused]] const auto append = [&](const auto& argument) {
    append_leaves_of(leaves, argument);
    donated.resize(leaves.size(), any_of(donate, [&](int given) { return given == position; }));
    ++position;
  };
  (append(arguments), ...);
  return donated;
}

/// A JitCache for call_by_signature, with the arguments that are given away.
struct DonatingCache {
  JitCache& cache;
  Vec<char> donated;
  std::vector<Tensor> call(std::span<const Tensor> arguments, const StaticKey& key,
                           const FlatFunction& f, FunctionRef<std::shared_ptr<void>()> keep,
                           std::shared_ptr<void>& kept, CallSite where) const {
    return cache.call(arguments, key, f, keep, kept, where, {donated.begin(), donated.size()});
  }
};

}  // namespace detail

/// Options of jit.
struct JitOptions {
  /// where it runs, and where its results lie; arguments are brought there. Nothing: where the
  /// arguments are
  std::optional<Device> device = {};
  /// Arguments, counted from 0, whose values the caller gives up: results may be written over them,
  /// and their memory is free once the function has run. All Tensors of such an argument, and
  /// copies of them, have no value after the call; asking for one is an Error(value). Inside other
  /// transforms nothing is given up. See Jitted::memory: results "over an input" take no memory.
  std::vector<int> donate = {};
  /// As a vt::AssumeFinite around all calls of the function, and inside other transforms too: zeros
  /// that are known when it is compiled vanish, whatever they meet. For robotics and control, whose
  /// matrices are full of them.
  bool assume_finite = false;
  /// The most programs that are kept. Beyond it the one unused for longest is dropped; a later call
  /// with its signature is recorded and compiled again.
  Param<int> programs = 256;
};

namespace detail {

template <class R>
concept NumbersInMemory = requires(R& r) { std::span(r); } &&
                          Element<typename decltype(std::span(std::declval<R&>()))::value_type>;

/// Where Jitted::into puts results: the memory of `result`, or its Tensors.
template <class R>
void append_places(SmallVec<ResultPlace, 4>& places, R&& result) {
  using T = std::remove_reference_t<R>;
  constexpr bool of_caller = std::is_lvalue_reference_v<R> && !std::is_const_v<T>;
  if constexpr (NumbersInMemory<T>) {
    const std::span memory(result);
    using E = typename decltype(memory)::element_type;
    constexpr bool written = !std::is_const_v<E> &&
                             (of_caller || std::ranges::enable_borrowed_range<std::remove_cv_t<T>>);
    static_assert(written,
                  "vt::Jitted::into: a result goes to memory that is the caller's and not const");
    if constexpr (written)
      places.push_back({dtype_of<E>(), static_cast<std::int64_t>(memory.size()), memory.data()});
  } else if constexpr (Element<T> && of_caller) {
    places.push_back({dtype_of<T>(), 1, &result});
  } else {
    constexpr bool assigned = of_caller && holds_tensor<std::remove_cv_t<T>>();
    static_assert(assigned,
                  "vt::Jitted::into: a result goes to a span, a vector, an array, a number or a "
                  "Tensor: write a variable of one of these types");
    if constexpr (assigned)
      for_each_leaf(result, [&](Tensor& t) { places.push_back({DType::f32, 0, nullptr, &t}); });
  }
}

}  // namespace detail

/// A compiled function. Copies share their programs; any thread may call it.
template <class F>
class Jitted : detail::CallByParameters<Jitted<F>, typename detail::Parameters<F>::type> {
  using ByParameters = detail::CallByParameters<Jitted<F>, typename detail::Parameters<F>::type>;
  friend ByParameters;

 public:
  Jitted(F f, JitOptions options, CallSite where)
      : f_(std::move(f)),
        where_(where),
        donate_(std::move(options.donate)),
        cache_(std::make_shared<detail::JitCache>(options.device, options.programs,
                                                  options.assume_finite, where)) {}

  /// Traces and compiles on a new signature (dtypes and shapes of the Tensors, everything static),
  /// else runs the program. A bare number for a parameter of type Tensor is a Tensor, so that its
  /// value may change; numbers in structs, and for parameters of other types, are static. Where one
  /// part of the signatures has had 32 values vt::warnings() names it.
  /// Throws: Error(value) where a donated argument is passed twice, or `donate` names one that the
  /// call does not have.
  template <class... A>
  auto operator()(const A&... arguments) const {
    const auto call = [this](const auto&... taken) { return (*this)(taken...); };
    using Check = detail::CallCheck<F, detail::Owned<A>...>;
    if constexpr (detail::data_for_tensor<F, A...>) {
      return on_data(call, arguments...);
    } else if constexpr (!Check::holds) {
      VT_ASSERT_CALL("vt::jit", Check);
      return detail::Refused();
    } else if constexpr (detail::number_for_tensor<F, A...>) {
      return detail::with_tensors<F>(where_, call, arguments...);
    } else {
      if (donate_.empty()) return detail::call_by_signature(*cache_, f_, where_, arguments...);
      const detail::DonatingCache cache{*cache_,
                                        detail::donated_leaves(donate_, where_, arguments...)};
      return detail::call_by_signature(cache, f_, where_, arguments...);
    }
  }
  using ByParameters::operator();

  /// `into(results…)(arguments…)`: the call with its results in memory of the caller, for loops
  /// that shall not allocate. `results`, one per Tensor that the function gives: spans, vectors or
  /// arrays of its element type and number of elements (row-major), numbers, or Tensors (also those
  /// of structs and tuples), which are assigned; one that nobody else holds is written over where
  /// it lies. They may be arguments as well, or overlap them and each other: arguments are read
  /// before anything is written, and of places that overlap the last one wins. A program of kernels
  /// allocates nothing once it has run. Arguments made by vt::borrow may have other contents in
  /// each call; a Tensor that is assigned one gets a copy. Throws: Error(shape, dtype) where a
  /// result does not fit its place, Error(tracer) where values are not known yet (inside jit,
  /// vmap), but for Tensors. All places are as they were then, as after errors of the function; not
  /// where memory ends while a program runs.
  template <class... R>
  auto into(R&&... results) const& {
    return writing(this, std::forward<R>(results)...);
  }
  template <class... R>
  auto into(R&&... results) && {
    return writing(std::make_shared<const Jitted>(std::move(*this)), std::forward<R>(results)...);
  }

  /// What running on arguments like these will need. Traces and compiles if they are new, but runs
  /// nothing.
  /// Throws: Error(value) where the program could serve one call only (called inside another
  /// transform, or with tracers captured).
  template <class... A>
  Memory memory(const A&... arguments) const {
    using Check = detail::CallCheck<F, detail::Owned<A>...>;
    if constexpr (detail::number_for_tensor<F, A...> || detail::data_for_tensor<F, A...>) {
      return detail::with_tensors<F>(
          where_, [this](const auto&... taken) { return memory(taken...); }, arguments...);
    } else if constexpr (!Check::holds) {
      VT_ASSERT_CALL("vt::Jitted::memory", Check);
      return detail::Refused();
    } else {
      const Vec<char> donated = detail::donated_leaves(donate_, where_, arguments...);
      return detail::with_signature(
          f_,
          [&](const auto&... call) {
            return cache_->memory(call..., where_, {donated.begin(), donated.size()});
          },
          arguments...);
    }
  }

  /// What runs for arguments like these, once they have been called: see vt::explain.
  template <class... A>
  std::string explain(const A&... arguments) const {
    return told<false>(arguments...);
  }
  /// The same with all that is known of it: see vt::explain_steps.
  template <class... A>
  std::string explain_steps(const A&... arguments) const {
    return told<true>(arguments...);
  }

  /// The same as a page of HTML: see vt::explain_html.
  template <class... A>
  std::string explain_html(const A&... arguments) const {
    using Check = detail::CallCheck<F, detail::Owned<A>...>;
    if constexpr (detail::number_for_tensor<F, A...> || detail::data_for_tensor<F, A...>) {
      return detail::with_tensors<F>(
          where_, [this](const auto&... taken) { return explain_html(taken...); }, arguments...);
    } else if constexpr (!Check::holds) {
      VT_ASSERT_CALL("vt::Jitted::explain_html", Check);
      return detail::Refused();
    } else {
      const auto page = [&](const auto& leaves, const auto& key, const auto& flat, const auto&) {
        return cache_->explain_page(leaves, key, flat, where_);
      };
      return detail::with_signature(f_, page, arguments...);
    }
  }

 private:
  template <bool steps, class... A>
  std::string told(const A&... arguments) const {
    using Check = detail::CallCheck<F, detail::Owned<A>...>;
    if constexpr (detail::number_for_tensor<F, A...> || detail::data_for_tensor<F, A...>) {
      return detail::with_tensors<F>(
          where_, [this](const auto&... taken) { return told<steps>(taken...); }, arguments...);
    } else if constexpr (!Check::holds) {
      VT_ASSERT_CALL("vt::Jitted::explain", Check);
      return detail::Refused();
    } else {
      SmallVec<Tensor, 8> leaves;
      const detail::StaticKey key = detail::signature_of(leaves, arguments...);
      return cache_->explain({leaves.data(), leaves.size()}, key, steps);
    }
  }

  /// `self`: a pointer to the function.
  template <class Self, class... R>
  static auto writing(Self self, R&&... results) {
    SmallVec<detail::ResultPlace, 4> places;
    (detail::append_places(places, std::forward<R>(results)), ...);
    return [self = std::move(self), places]<class... A>(const A&... arguments) {
      using Check = detail::CallCheck<F, detail::Owned<A>...>;
      const std::span<const detail::ResultPlace> to(places.data(), places.size());
      const auto call = [&](const auto&... taken) { self->call_into(to, taken...); };
      if constexpr (detail::data_for_tensor<F, A...>) {
        const auto known = [&](const auto&... taken) { return self->into_if_known(to, taken...); };
        if (!detail::with_tensors<F, detail::Taking::all_in_place>(self->where_, known,
                                                                   arguments...))
          detail::with_tensors<F>(self->where_, call, arguments...);
      } else if constexpr (!Check::holds) {
        VT_ASSERT_CALL("vt::Jitted::into", Check);
      } else if constexpr (detail::number_for_tensor<F, A...>) {
        detail::with_tensors<F>(self->where_, call, arguments...);
      } else {
        call(arguments...);
      }
    };
  }

  /// call(arguments…), where data are Tensors: those of a program that is known it reads where they
  /// lie, as it has done so when it returns, and gives memory of its own.
  template <class Call, class... A>
  auto on_data(const Call& call, const A&... arguments) const {
    using Result = decltype(detail::with_tensors<F>(where_, call, arguments...));
    detail::KnownResults known;
    const auto run = [&](const auto&... taken) {
      return detail::call_if_known(*cache_, known, where_, taken...);
    };
    if constexpr (!std::is_same_v<Result, detail::Refused>)
      if (donate_.empty() &&
          detail::with_tensors<F, detail::Taking::all_in_place>(where_, run, arguments...))
        return detail::tree_of<Result>(known);
    return detail::with_tensors<F>(where_, call, arguments...);
  }
  template <class... A>
  bool into_if_known(std::span<const detail::ResultPlace> places, const A&... arguments) const {
    return donate_.empty() && detail::call_if_known(*cache_, places, where_, arguments...);
  }

  template <class... A>
  void call_into(std::span<const detail::ResultPlace> places, const A&... arguments) const {
    if (into_if_known(places, arguments...)) return;
    SmallVec<Tensor, 4> results;
    const auto result = (*this)(arguments...);
    detail::for_each_leaf(result, [&](const Tensor& t) { results.push_back(t); });
    detail::bring({results.data(), results.size()}, places, where_);
  }

  mutable F f_;
  CallSite where_;
  std::vector<int> donate_;
  std::shared_ptr<detail::JitCache> cache_;
};

namespace detail {
template <class F>
struct Parameters<Jitted<F>> : Parameters<F> {};
}  // namespace detail

/// f as a compiled function: it is recorded and compiled in the first call with each signature. See
/// Jitted. What f captures keeps the value that it had then, but for memory that was borrowed (see
/// borrow). Captured arrays of at most 1,024 elements are numbers in the code where f is compiled
/// for the first time; if the same function is jitted again with others, its code reads them.
/// Source: JAX `jit`.
template <class F>
[[nodiscard]] Jitted<F> jit(F f, JitOptions options = {}, CallSite where = CallSite::here()) {
  return Jitted<F>(std::move(f), options, where);
}

namespace detail {
/// The function that calls f and then gives tell(f, arguments…).
template <class F, class Tell>
auto telling(const Jitted<F>& f, Tell tell) {
  return transformed<F>([f, tell](const auto&... arguments) -> std::string {
    if constexpr (!std::is_same_v<decltype(f(arguments...)), Refused>) {
      static_cast<void>(f(arguments...));
      return tell(f, arguments...);
    } else {
      return Refused();
    }
  });
}
}  // namespace detail

/// `explain(f)(args…)`: calls f and tells what ran, on at most a screen (24 lines of 100 columns):
/// a line for each step with what runs it, the ops it fused, bytes read and written, operations,
/// and the user's lines. Of a program with more steps those with the most bytes and operations. A
/// function that is not jitted is jitted for it.
template <class F>
[[nodiscard]] auto explain(const Jitted<F>& f) {
  return detail::telling(f, [](const auto& g, const auto&... a) { return g.explain(a...); });
}
template <class F>
[[nodiscard]] auto explain(F f, CallSite where = CallSite::here()) {
  return explain(jit(std::move(f), {}, where));
}

/// `explain_steps(f)(args…)`: as explain, with all steps, and for each its loop nest, vector width,
/// what it chose over what, and where it runs.
template <class F>
[[nodiscard]] auto explain_steps(const Jitted<F>& f) {
  return detail::telling(f, [](const auto& g, const auto&... a) { return g.explain_steps(a...); });
}
template <class F>
[[nodiscard]] auto explain_steps(F f, CallSite where = CallSite::here()) {
  return explain_steps(jit(std::move(f), {}, where));
}

/// `explain_html(f)(args…)`: calls f and gives a page of HTML that needs nothing else: the time of
/// each step (the program runs some times, unless it prints, checks or calls the host), what of the
/// machine's bandwidth and arithmetic it uses, the user's lines, loop nests, and the Graphs before
/// and after transforms and simplification, for which f is recorded once more.
template <class F>
[[nodiscard]] auto explain_html(const Jitted<F>& f) {
  return detail::telling(f, [](const auto& g, const auto&... a) { return g.explain_html(a...); });
}
template <class F>
[[nodiscard]] auto explain_html(F f, CallSite where = CallSite::here()) {
  return explain_html(jit(std::move(f), {}, where));
}

/// `make_graph(f)(args…)`: the Graph that f records on Tensors like these.
template <class F>
[[nodiscard]] auto make_graph(F f, CallSite where = CallSite::here()) {
  return detail::transformed<F>(
      [f = detail::Callable(std::move(f)), where]<class... A>(const A&... arguments) {
        using Check = detail::CallCheck<F, detail::Owned<A>...>;
        VT_ASSERT_CALL("vt::make_graph", Check);
        if constexpr (!Check::holds) {
          return detail::Refused();
        } else {
          auto g = detail::tree_function(f, detail::own(arguments...));
          std::vector<std::string> names;
          if constexpr (!(std::is_same_v<detail::Owned<A>, Tensor> && ...))
            names = detail::argument_names(g.arguments());
          return detail::make_graph_flat(g.flat(), g.leaves(), std::move(names), where);
        }
      });
}

namespace detail {
template <class F, class... A>
auto eval_shape_at(CallSite where, F f, const A&... arguments) {
  using Check = CallCheck<F, Owned<A>...>;
  VT_ASSERT_CALL("vt::eval_shape", Check);
  if constexpr (!Check::holds) {
    return Refused();
  } else {
    auto g = tree_function(f, own(arguments...));
    const std::vector<Tensor> out = eval_shape_flat(g.flat(), g.leaves(), where);
    return g.rebuild(out);
  }
}
}  // namespace detail

/// eval_shape(f, arguments…): the result's tree with Tensors that have only a shape and a dtype.
/// Nothing is computed.
VT_WITH_LINE([[nodiscard]] auto, eval_shape, detail::eval_shape_at)

}  // namespace vt
