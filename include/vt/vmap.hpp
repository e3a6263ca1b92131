// vmap and pfor: a function of one example, run for all of them.
#pragma once

#include <optional>
#include <string>

#include <vt/axis_spec.hpp>
#include <vt/detail/tree_function.hpp>
#include <vt/lanes.hpp>

namespace vt {

/// What happens where an operation cannot be vectorized, such as a callback that takes one lane at
/// a time.
enum class Fallback {
  loop,   ///< it runs once per lane, and vt::warnings() says so
  error,  ///< Error(transform) that names it
};

namespace detail {
/// Stands between options of like types: those after it can only be given by their names.
struct ByNameOnly {
  constexpr ByNameOnly() = default;
  template <class T>
  constexpr ByNameOnly(const T&) {
    static_assert(
        !sizeof(T),
        "vt::vmap(f, {a, b}) would be in_axes and out_axes: write vt::vmap(f, {.in_axes = {a, b}}) "
        "for the axes of two "
        "arguments, and {.in_axes = a, .out_axes = b} for those of arguments and results");
  }
};
}  // namespace detail

/// Options of vmap.
struct VmapOptions {
  /// One entry for all arguments or a list with one per argument: an axis (negative from the end),
  /// vt::unmapped, or a nested list that follows the argument's tree.
  AxisSpec in_axes = 0;
  detail::ByNameOnly by_name = {};
  /// Where the results carry the lanes, in the same form.
  AxisSpec out_axes = 0;
  /// The number of lanes; needed only when nothing is mapped.
  std::optional<Param<std::int64_t>> axis_size = std::nullopt;
  /// A name for collectives inside, as vt::psum.
  std::string axis_name = {};
  /// Lanes at a time; 0: all at once. Element-wise functions, scans and draws have the same bits
  /// for any chunk. Sums and products may be added in an order that depends on the number of lanes,
  /// and then differ by rounding. Not with collectives, which need all lanes at once.
  Param<std::int64_t> chunk = 0;
  /// Bytes; 0: none. `chunk` is chosen so that arguments, results and the intermediate values of
  /// one chunk stay below it.
  Param<std::int64_t> memory_limit = 0;
  Fallback fallback = Fallback::loop;
  /// How lanes run where they go different ways.
  LaneSchedule schedule = LaneSchedule::automatic;
};

namespace detail {

/// The results of vmap, of `f` with these trees: the same code for all functions of the same types.
template <class Result, class... A>
Result vmapped(const FlatFunction& f, CallTrees<Result, A...>& g, const VmapOptions& options,
               CallSite where) {
  const Vec<MappedAxis> in_axes =
      expand_argument_spec(g.arguments(), options.in_axes, &AxisSpec::axis, "vt::vmap", "in_axes",
                           "axes", "{0, vt::unmapped}", where);
  const VmapCall call{
      .arguments = g.leaves(),
      .in_axes = in_axes,
      .out_axes =
          [&](std::size_t) {
            Vec<MappedAxis> axes;
            expand_spec(g.last(), options.out_axes, &AxisSpec::axis, axes, "the result",
                        "vt::vmap: out_axes", "axes", where);
            return axes;
          },
      .axis_size = options.axis_size,
      .axis_name = options.axis_name,
      .chunk = options.chunk,
      .memory_limit = options.memory_limit,
      .must_vectorize = options.fallback == Fallback::error,
      .schedule = options.schedule,
      .argument_name = g.argument_names(),
      .result_name = g.result_names(),
      .transform = "vt::vmap",
      .where = where,
  };
  return g.rebuild(vmap_flat(f, call));
}

}  // namespace detail

/// `vmap(f)(args…)` runs f for all lanes at once: it gives what calling f on each slice of the
/// mapped axes and stacking the results would give. A bare number that f returns becomes a Tensor
/// [lanes]; numbers inside of tuples, containers and structs stay numbers. Numbers among the
/// arguments are never mapped. Throws: Error if the axes do not follow the arguments' trees, or
/// mapped axes differ in length. Source: JAX `vmap`.
template <class F>
[[nodiscard]] auto vmap(F f, VmapOptions options = {}, CallSite where = CallSite::here()) {
  return detail::transformed<F>([f = detail::Callable(std::move(f)), options = std::move(options),
                                 where]<class... A>(const A&... arguments) {
    using Check = detail::CallCheck<F, detail::Owned<A>...>;
    VT_ASSERT_CALL("vt::vmap", Check);
    if constexpr (!Check::holds) {
      return detail::Refused();
    } else {
      const auto run = [&](const auto& function) {
        auto g = detail::tree_function(function, detail::own(arguments...));
        return detail::vmapped(g.flat(), g, options, where);
      };
      if constexpr (Number<detail::ResultOf<F, detail::Owned<A>...>>)
        return run(detail::NumberAsTensor<const detail::Callable<F>>{f});
      else return run(f);
    }
  });
}

/// Options of pfor.
struct PforOptions {
  /// n is this or less, and results have so many rows: zeros behind the first n. Needed where the
  /// value of n is not known, as under vt::jit and vt::vmap.
  std::optional<Param<std::int64_t>> at_most = std::nullopt;
  Param<std::int64_t> chunk = 0;         ///< iterations at a time; 0: all. See VmapOptions
  Param<std::int64_t> memory_limit = 0;  ///< bytes; chooses `chunk`, see VmapOptions
  std::string axis_name = {};            ///< for collectives between the iterations, as vt::psum
  Fallback fallback = Fallback::loop;    ///< for what cannot be vectorized
  LaneSchedule schedule = LaneSchedule::automatic;  ///< see VmapOptions
};

namespace detail {
template <class F>
auto pfor_of(F& f, PforCount n, PforOptions options, CallSite where) {
  auto g = tree_function(f, std::tuple<Tensor>(Tensor(0)));
  if (options.at_most) n.at_most = *options.at_most;
  VmapCall call;
  call.out_axes = [&](std::size_t) {
    Vec<MappedAxis> axes;
    expand_spec(g.last(), AxisSpec(0), &AxisSpec::axis, axes, "the result", "vt::pfor", "axes",
                where);
    return axes;
  };
  call.axis_name = options.axis_name;
  call.chunk = options.chunk;
  call.memory_limit = options.memory_limit;
  call.must_vectorize = options.fallback == Fallback::error;
  call.schedule = options.schedule;
  call.result_name = g.result_names();
  call.where = where;
  return g.rebuild(pfor_flat(g.flat(), n, std::move(call)));
}

template <class F>
auto pfor_any(F f, PforCount n, PforOptions options, CallSite where) {
  if constexpr (std::is_void_v<GivenBy<F, Tensor>>) {
    return pfor_any([&f](const Tensor& i) { return f(i), std::tuple<>(); }, std::move(n),
                    std::move(options), where),
           void();
  } else {
    using Check = CallCheck<F, Tensor>;
    VT_ASSERT_CALL("vt::pfor", Check);
    if constexpr (!Check::holds) return Refused();
    else if constexpr (Number<ResultOf<F, Tensor>>)
      return pfor_any(NumberAsTensor<F>{f}, std::move(n), std::move(options), where);
    else return pfor_of(f, std::move(n), std::move(options), where);
  }
}

/// What may stand for n in pfor, and then not for f.
template <class N>
concept CountOfPfor = Number<N> || std::same_as<N, Tensor>;
}  // namespace detail

/// Parallel for: the results of f(0), f(1), …, f(n − 1), stacked along a new axis 0. f takes an
/// i32[] Tensor. It may return nothing, and print, check, call the host and update variables, as
/// under vmap. A bare number is a Tensor, as there.
/// Throws: Error if n is negative, or more than an i32 holds.
template <class F>
auto pfor(F f, Param<std::int64_t> n, PforOptions options = {}, CallSite where = CallSite::here()) {
  return detail::pfor_any(std::move(f), {.number = n}, std::move(options), where);
}

/// The same where n is a Tensor: lanes from n on do not run, as those that do not take a branch of
/// vt::cond under vmap. They fail, print and update nothing, their results are 0, and so are their
/// derivatives. Collectives see of them what changes nothing.
/// Shapes: n: an integer scalar, of any dtype.
/// Throws: Error (value) if n is negative or more than `at_most`: when the program runs, where n is
/// not known before.
template <class F, std::same_as<Tensor> N>
auto pfor(F f, const N& n, PforOptions options = {}, CallSite where = CallSite::here()) {
  return detail::pfor_any(std::move(f), {.is_tensor = true, .tensor = n}, std::move(options),
                          where);
}
// Internal: arguments in the wrong order are refused with a message.
template <detail::CountOfPfor N, class F>
  requires(!detail::CountOfPfor<F>)
auto pfor(const N&, const F&, PforOptions = {}) {
  static_assert(!sizeof(N), "vt::pfor: the function comes first: vt::pfor(f, n)");
  return detail::Refused();
}

}  // namespace vt
