// Effects: printing, checks, and calls of host functions from inside transformed and compiled
// functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <vt/detail/tree_function.hpp>

namespace vt {

/// A format string of fmt's kind ("x = {}, y = {:.3f}") with the line that wrote it. A
/// specification is used for each element.
struct TextFormat {
  std::string_view text;
  CallSite where;
  TextFormat(const char* format, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : text(format), where{file, line} {}
  TextFormat(const std::string& format, const char* file = __builtin_FILE(),
             int line = __builtin_LINE())
      : text(format), where{file, line} {}
};

/// Options of debug_print.
struct PrintOptions {
  bool per_lane = false;  ///< under vmap a line for each lane; else one with the values of all
};

/// Where printed lines go, one call each, without the line's end. Any thread may call it. Null: to
/// stderr, as in the beginning.
using PrintSink = detail::Function<void(std::string_view line)>;
void set_print_sink(PrintSink);

namespace detail {

/// What fills a place of a format string: a Tensor or number, whose value is asked for when the
/// text is written, or a text.
struct TextArgument {
  Tensor tensor;
  std::string text;
  bool is_text = true;
  TextArgument(const Tensor& t) : tensor(t), is_text(false) {}
  TextArgument(const std::string& t) : text(t) {}
  TextArgument(std::string_view t) : text(t) {}
  TextArgument(const char* t) : text(t) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  TextArgument(T number) : tensor(number), is_text(false) {}
};
/// Can all of these fill a place?
template <class... A>
inline constexpr bool are_texts = (std::is_convertible_v<const A&, TextArgument> && ...);
void print_flat(const TextFormat&, const PrintOptions&, std::span<const TextArgument>);
void check_flat(const Operand& holds, const TextFormat&, std::span<const TextArgument>);
void check_leaves_finite(std::span<const Tensor> leaves, std::span<const std::string> paths,
                         CallSite where);

}  // namespace detail

/// Prints a line each time the program gets there, in the order of the program, with the values of
/// that moment, in compiled functions as elsewhere. The format is fmt's; Tensors are printed as
/// NumPy does. Under vmap: once, with the values of all lanes (or `debug_print({.per_lane = true},
/// …)`); what does not depend on lanes is printed once. Where lanes go different ways (vt::cond,
/// vt::while_loop), each lane that gets there prints a line of its own.
/// Under differentiation: once, going forward, and not again where values are computed anew.
/// Throws: Error(value) if the format is broken or does not fit the arguments.
template <class... A>
void debug_print(PrintOptions options, TextFormat format, const A&... values) {
  static_assert(detail::are_texts<A...>,
                "vt::debug_print: values are Tensors, numbers and texts: vt::tensor(values) for a "
                "container of numbers, the parts one by one of other trees");
  if constexpr (detail::are_texts<A...>) {
    const detail::TextArgument arguments[] = {values..., detail::TextArgument("")};
    detail::print_flat(format, options, {arguments, sizeof...(A)});
  }
}
template <class... A>
void debug_print(TextFormat format, const A&... values) {
  debug_print(PrintOptions{}, format, values...);
}

/// Throws Error(check) with the text, the line and, under vmap, the first lane for which it fails,
/// unless all elements of `holds` are true; but only if the program gets there. Compiled functions
/// throw as others do, and leave everything as it was.
/// Shapes: holds: any (a number counts as true unless it is 0).
template <class... A>
void check(Operand holds, TextFormat format, const A&... values) {
  static_assert(detail::are_texts<A...>,
                "vt::check: values are Tensors, numbers and texts: vt::tensor(values) for a "
                "container of numbers, the parts one by one of other trees");
  if constexpr (detail::are_texts<A...>) {
    const detail::TextArgument arguments[] = {values..., detail::TextArgument("")};
    detail::check_flat(holds, format, {arguments, sizeof...(A)});
  }
}

/// Throws Error(check), as check does, unless all numbers of a tree's Tensors are finite; it names
/// the first Tensor that holds NaN or an infinity. For compiled functions, at any place in them.
template <class T>
void check_finite(const T& tree, CallSite where = CallSite::here()) {
  using Check = detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::check_finite", Check);
  if constexpr (Check::holds)
    detail::check_leaves_finite(tree_leaves(tree), tree_paths(tree), where);
}

/// Options of callback and pure_callback.
struct CallbackOptions {
  /// The function also takes arguments that all have an axis of lanes in front, and then gives
  /// results with one; vmap calls it once. Else vmap calls it for each lane and says so
  /// in vt::warnings().
  bool takes_lanes = false;
  std::string name = "a callback";  ///< for messages
};

namespace detail {
struct HostCall {
  FlatFunction run;
  std::shared_ptr<const void> callable;  ///< which function it is
  std::string static_key;                ///< and with which static arguments
  bool pure;
};
std::vector<Tensor> callback_flat(const HostCall&, std::span<const Tensor> like,
                                  std::span<const Tensor> arguments, const CallbackOptions&,
                                  CallSite);

/// Is what the function gives like `like`? Nothing is, where there are no Tensors.
template <class Given, class Like>
constexpr bool gives_like() {
  if constexpr (std::is_void_v<Given>) return !holds_tensor<Like>();
  else return std::is_convertible_v<Given, Like>;
}
template <bool pure, class F, class Like>
auto host_function(F f, Like like, CallbackOptions options, CallSite where) {
  return [identity = std::make_shared<const char>(), f = std::move(f), like = std::move(like),
          options = std::move(options), where]<class... A>(const A&... arguments) {
    using Arguments = std::tuple<std::decay_t<const A>...>;
    using Trees = TreesCheck<Like, std::decay_t<const A>...>;
    VT_ASSERT_CALL("vt::callback, vt::pure_callback", Trees);
    if constexpr (!Trees::holds) {
      return Refused();
    } else {
      using Given = GivenBy<F, std::decay_t<const A>...>;
      constexpr bool called = !std::is_same_v<Given, NotCallable>;
      static_assert(same_type<F, Arguments, called>,
                    "vt::callback, vt::pure_callback: the function cannot be called with these "
                    "arguments: compare their number and their types with its parameters");
      constexpr bool fitting = gives_like<Given, Like>();
      static_assert(same_type < Given, Like, !called || fitting >,
                    "vt::callback, vt::pure_callback: the function must return a tree like the one "
                    "given as its second argument, `like`: Tensors of the shapes and dtypes of the "
                    "results; std::tuple<>() for none");
      if constexpr (!called || !fitting) {
        return Refused();
      } else {
        const Arguments own(arguments...);
        std::vector<Tensor> leaves;
        std::apply([&](const auto&... a) { (append_leaves(a, leaves), ...); }, own);
        const FlatFunction flat = [f, own](std::span<const Tensor> values) mutable {
          const Arguments given = with_leaves(own, values);
          if constexpr (std::is_void_v<Given>) {
            std::apply(f, given);
            return std::vector<Tensor>();
          } else {
            const Like result = std::apply(f, given);
            return tree_leaves(result);
          }
        };
        std::string key;
        std::apply([&](const auto&... a) { (append_static(key, a), ...); }, own);
        const std::vector<Tensor> out = callback_flat({flat, identity, std::move(key), pure},
                                                      tree_leaves(like), leaves, options, where);
        return with_leaves(like, out);
      }
    }
  };
}
}  // namespace detail

/// A function of the host's, called with values when the program gets there: once, in the order of
/// the program, like any effect. `like`: a tree of Tensors with the shapes and dtypes of its
/// results (their values are not looked at; `std::tuple<>()` for none). The callable takes and
/// gives trees. The function gets Tensors that are values, and may do with them what it likes.
/// Under vmap it is called for each lane, or once (CallbackOptions). It has no derivative:
/// vt::stop_gradient its arguments, or give it a rule with vt::custom_jvp.
/// Throws: what the function throws, where Error, std::runtime_error and other exceptions of the
/// standard library with a text also say the name (CallbackOptions), the lane and the line of
/// `vt::callback`; Error if its results are not like `like`.
template <class F, class Like>
auto callback(F f, Like like, CallbackOptions options = {}, CallSite where = CallSite::here()) {
  return detail::host_function<false>(std::move(f), std::move(like), std::move(options), where);
}
/// The same for functions that do nothing but give results: they may be called any number of times,
/// or not at all.
template <class F, class Like>
auto pure_callback(F f, Like like, CallbackOptions options = {},
                   CallSite where = CallSite::here()) {
  return detail::host_function<true>(std::move(f), std::move(like), std::move(options), where);
}

}  // namespace vt
