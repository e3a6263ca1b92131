// AxisSpec: a value of in_axes or out_axes: an axis, vt::unmapped, or a list that follows the
// structure of the arguments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vt/detail/small_vec.hpp>
#include <vt/tree.hpp>

namespace vt {

/// The type of vt::unmapped.
struct Unmapped {
  constexpr explicit Unmapped(int) {}
};
/// Marks an argument (or result) that all lanes share.
inline constexpr Unmapped unmapped{0};

/// What in_axes and out_axes say: one axis (negative from the end), vt::unmapped, or a list with an
/// entry for each argument, which follows the argument's tree where it is a list itself.
class AxisSpec {
 public:
  template <detail::ParamFor<int> T>
  AxisSpec(T axis) : axis_(Param<int>(axis)) {}
  AxisSpec(Unmapped) {}
  AxisSpec(std::initializer_list<AxisSpec> items) : items_(items), is_list_(true) {}
  AxisSpec(std::vector<AxisSpec> items) : items_(std::move(items)), is_list_(true) {}

  bool is_list() const { return is_list_; }
  std::optional<int> axis() const { return axis_; }
  const std::vector<AxisSpec>& items() const& { return items_; }
  std::vector<AxisSpec> items() && { return std::move(items_); }
  std::string str() const {
    if (!is_list_) return axis_ ? std::to_string(*axis_) : "unmapped";
    std::string s = "{";
    for (std::size_t i = 0; i < items_.size(); ++i) s += (i ? ", " : "") + items_[i].str();
    return s + "}";
  }

 private:
  std::optional<int> axis_;
  std::vector<AxisSpec> items_;
  bool is_list_ = false;
};

namespace detail {

/// What a spec says of each Tensor of `tree`. A spec is one leaf, which it gives by `leaf`, or a
/// list of `items()` that follows the tree. `path`, `what` and `noun` ("axes") are for the message
/// when it does not.
template <class T, class Spec, class Leaf, class Given>
void expand_spec(const T& tree, const Spec& spec, Given (Spec::*leaf)() const, Vec<Leaf>& out,
                 const std::string& path, const char* what, const char* noun, CallSite where) {
  if (!spec.is_list()) {
    if constexpr (std::is_same_v<T, Tensor> || is_static<T>) {
      if constexpr (std::is_same_v<T, Tensor>) out.push_back((spec.*leaf)());
    } else if constexpr (requires { tree.axes_of_lanes((spec.*leaf)()); }) {
      // a container whose lanes live inside its elements
      for (const Leaf& axis : tree.axes_of_lanes((spec.*leaf)())) out.push_back(axis);
    } else {
      for_each_child(tree, [&](const auto& child, auto&&) {
        expand_spec(child, spec, leaf, out, path, what, noun, where);
      });
    }
    return;
  }
  if constexpr (std::is_same_v<T, Tensor> || is_static<T>) {
    fail(ErrorKind::tree,
         std::string(what) + ": " + path + " is " + (is_static<T> ? "a number" : "a Tensor") +
             " but its " + noun + " are a list, " + spec.str(),
         where);
  } else {
    std::size_t children = 0;
    for_each_child(tree, [&](const auto&, auto&&) { ++children; });
    if (children != spec.items().size())
      fail(ErrorKind::tree,
           std::string(what) + ": " + path + " has " + std::to_string(children) +
               " parts but its " + noun + " are a list of " + std::to_string(spec.items().size()) +
               ", " + spec.str(),
           where);
    std::size_t i = 0;
    for_each_child(tree, [&](const auto& child, auto&& name) {
      expand_spec(child, spec.items()[i++], leaf, out,
                  path + (path.empty() || path.back() == ']' ? "" : " ") + name(), what, noun,
                  where);
    });
  }
}

/// The same for a whole argument list: a list has an entry per argument. `option`: "in_axes".
template <class Spec, class Given, class... T>
Vec<std::decay_t<Given>> expand_argument_spec(const std::tuple<T...>& arguments, const Spec& spec,
                                              Given (Spec::*leaf)() const, const char* what,
                                              const char* option, const char* noun,
                                              const char* example, CallSite where) {
  Vec<std::decay_t<Given>> leaves;
  if (spec.is_list() && spec.items().size() != sizeof...(T))
    fail(ErrorKind::tree,
         std::string(what) + ": " + option + " " + spec.str() + " has " +
             std::to_string(spec.items().size()) +
             (spec.items().size() == 1 ? " entry for " : " entries for ") +
             std::to_string(sizeof...(T)) + (sizeof...(T) == 1 ? " argument" : " arguments") +
             ": give it one for each, as in " + example + " for two",
         where);
  std::size_t i = 0;
  auto one = [&](const auto& argument) {
    expand_spec(argument, spec.is_list() ? spec.items()[i] : spec, leaf, leaves,
                "argument " + std::to_string(i), what, noun, where);
    ++i;
  };
  std::apply([&](const auto&... argument) { (one(argument), ...); }, arguments);
  return leaves;
}

}  // namespace detail
}  // namespace vt
