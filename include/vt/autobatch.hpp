// autobatch: single-instance code over sentences, trees and graphs, run as batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <vt/detail/function.hpp>
#include <vt/tree.hpp>

namespace vt {

/// Which operations autobatch runs together.
enum class Batching {
  none,      ///< none: one after the other, as they were recorded
  by_depth,  ///< those of one kind that are equally far from the arguments
  agenda,  ///< all of one kind that could run now, kinds in the order of how early they mostly are
};

/// Options of autobatch.
struct AutobatchOptions {
  Batching strategy = Batching::agenda;
};

/// Nodes that can run together: operations of one line of the program on operands of these shapes.
struct BatchKind {
  /// "tanh", or of what always follows one another the first and the last: "dot_general … tanh";
  /// the name of a vt::function; "sum" and "list" (stack, concatenate) of any number of operands
  std::string what;
  std::string operands;  ///< "f32[16] f32[16,16]"
  std::string line;      ///< of the first: "tagger.cpp:12"
  std::uint64_t nodes = 0;
  std::uint64_t groups = 0;  ///< what they ran as
};

/// What the last call of an autobatch function on this thread did.
struct BatchStats {
  /// operations and calls that were recorded, but for those that all instances share; under a
  /// derivative those that were computed for looks count twice
  std::uint64_t nodes = 0;
  /// nodes after those that always follow one another have become one
  std::uint64_t cells = 0;
  std::uint64_t groups = 0;      ///< what they run as
  std::uint64_t looks = 0;       ///< batches that were computed because a value was looked at
  std::uint64_t signatures = 0;  ///< kinds of nodes
  std::uint64_t least = 0;       ///< no order has fewer groups than this; see measure_least_groups
  /// operands of nodes that were copied to lie side by side, and those that lay so already
  std::uint64_t rows_moved = 0, rows_in_place = 0;
  double record_seconds = 0, schedule_seconds = 0, emit_seconds = 0;
  std::vector<std::string> unbatched;  ///< operations that run one by one, with their lines
  std::vector<BatchKind> kinds;        ///< those that ran as most groups first
  /// of all threads since the call began: what it gives may be computed later
  std::uint64_t kernels_compiled = 0;
};
[[nodiscard]] BatchStats batch_stats();
/// Whether BatchStats::least is computed from now on, by this thread: it takes nodes × signatures.
void measure_least_groups(bool wanted);

namespace detail {

/// f recorded and batched. It is called once.
std::vector<Tensor> autobatch_flat(FunctionRef<std::vector<Tensor>()> f,
                                   const AutobatchOptions& options, CallSite where);
/// body(0), body(1), …: in turns inside of an autobatch function, elsewhere one after the other.
void run_instances(std::size_t count, FunctionRef<void(std::size_t)> body);

/// Can f be called with these, of any type, and does it return a tree?
template <class F, class... A>
constexpr auto check_autobatch() {
  constexpr bool can_be_called = is_callable<const F&, A&&...>;
  if constexpr (!can_be_called && is_callable<F&, A&&...>)
    return CallFaultOf<CallFault::parameters>();  // it changes itself
  else if constexpr (!can_be_called) return CallFaultOf<CallFault::arguments>();
  else return ResultCheck<std::decay_t<std::invoke_result_t<const F&, A&&...>>>();
}
template <class F, class... A>
struct AutobatchCheck : decltype(check_autobatch<F, A...>()) {};

template <class T>
concept Range = requires(T& items) {
  std::begin(items);
  std::end(items);
} || requires(T& items) {
  begin(items);
  end(items);
};
template <class Items, class F>
constexpr auto check_instances() {
  using std::begin;
  if constexpr (!Range<Items>) return CallFaultOf<CallFault::argument>();
  else if constexpr (is_callable<F&, decltype(*begin(std::declval<Items&>()))>)
    return CallFaultOf<CallFault::none>();
  else return CallFaultOf<CallFault::arguments>();
}
template <class Items, class F>
struct InstancesCheck : decltype(check_instances<Items, F>()) {};

}  // namespace detail

/// f as a function that runs in batches: it is called once, with the arguments as they are, and may
/// loop over sentences, recurse over trees and branch on anything that is no Tensor's value. What
/// it does to Tensors is recorded; operations of one kind that do not need each other run as one,
/// and so do their derivatives. Values that all of them share (parameters) are not copied.
///
///     auto loss = vt::autobatch([](const Params& p, const std::vector<Sentence>& batch) {
///       vt::Tensor sum = 0.0f;
///       for (const Sentence& s : batch) sum += loss_of(p, s);
///       return sum;
///     });
///     auto [value, gradient] = vt::value_and_grad(loss)(p, batch);
///
/// Write what an instance does again and again as vt::function: its calls are the operations then,
/// and much less is recorded. Arguments are passed by reference and never copied; they may be of
/// any type, also under derivatives, if they are not differentiated by.
/// Each value is what the function alone would give; sums over instances are added in the order of
/// recording, and may differ by rounding.
/// A Tensor's value may be looked at: what it needs is computed then. See instances, which computes
/// what many look at together. What looks need is computed once more for derivatives.
/// Throws: Error where a value is asked for under vt::jit or vt::vmap, and for one that an
/// operation with effects gives.
/// Source: Neubig, Goldberg, Dyer 2017, On-the-fly Operation Batching in Dynamic Computation
/// Graphs.
template <class F>
[[nodiscard]] auto autobatch(F f, AutobatchOptions options = {},
                             CallSite where = CallSite::here()) {
  return [f = std::move(f), options, where]<class... A>(A&&... arguments) {
    using Check = detail::AutobatchCheck<F, A...>;
    static_assert(detail::fits<Check, detail::CallFault::parameters>,
                  "vt::autobatch: the function changes itself, as a mutable lambda does: capture "
                  "what it changes by reference");
    VT_ASSERT_CALL("vt::autobatch", Check);
    if constexpr (!Check::holds) {
      return detail::Refused();
    } else {
      std::optional<std::decay_t<std::invoke_result_t<const F&, A&&...>>> result;
      const std::vector<Tensor> leaves = detail::autobatch_flat(
          [&] {
            result.emplace(f(std::forward<A>(arguments)...));
            std::vector<Tensor> all;
            detail::for_each_leaf(*result, [&](const Tensor& t) { all.push_back(t); });
            return all;
          },
          options, where);
      return detail::with_leaves(std::move(*result), leaves);
    }
  };
}

/// f(item) for each item of a range; returns the results, in that order. Inside of a function given
/// to autobatch each instance runs on a stack of its own. Where it looks at the value of a Tensor
/// (`item`, `if`, printing) it waits; when all have ended or wait, everything that is waited for is
/// computed as one batch, and they go on in the order of the items. So code that decides step by
/// step, as a parser does, runs in as many batches as its longest instance has looks:
///
///     auto parser = vt::autobatch([](const Params& p, const std::vector<Sentence>& batch) {
///       return vt::sum(vt::stack(vt::instances(batch, [&](const Sentence& s) {
///         State state(s);
///         vt::Tensor loss = 0.0f;
///         while (!state.done()) {
///           const vt::Tensor scores = score(p, state);
///           loss += margin(scores, state);
///           state.apply(vt::argmax(scores).item<int>());
///         }
///         return loss;
///       })));
///     });
///
/// Elsewhere, and inside of an instance, it is a plain loop. Instances run on one thread, and each
/// without being interrupted from one look to the next; locks must not be held at a look. Of an
/// exception that leaves an instance the others are unwound, as if their looks had thrown, and then
/// it leaves `instances`. An instance has 1 MiB of stack.
template <class Items, class F>
[[nodiscard]] auto instances(Items&& items, F&& f) {
  using Check = detail::InstancesCheck<Items, F>;
  static_assert(detail::fits<Check, detail::CallFault::argument>,
                "vt::instances: the first argument is no range: pass the items, as a std::vector");
  VT_ASSERT_CALL("vt::instances", Check);
  if constexpr (Check::holds) {
    using std::begin;
    using std::end;
    using Result = std::decay_t<std::invoke_result_t<F&, decltype(*begin(items))>>;
    auto next = begin(items);
    const auto count = static_cast<std::size_t>(std::distance(next, end(items)));
    // They begin in the order of the items, each before any other goes on.
    if constexpr (std::is_void_v<Result>) {
      detail::run_instances(count, [&](std::size_t) {
        auto item = next++;
        f(*item);
      });
    } else {
      std::vector<std::optional<Result>> all(count);
      detail::run_instances(count, [&](std::size_t k) {
        auto item = next++;
        all[k].emplace(f(*item));
      });
      std::vector<Result> results;
      results.reserve(count);
      for (std::optional<Result>& r : all) results.push_back(std::move(*r));
      return results;
    }
  } else {
    return detail::Refused();
  }
}

}  // namespace vt
