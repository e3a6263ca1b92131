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

/// One axis per Tensor of `tree`. `path` and `what` are for the message when the list does not
/// follow the tree.
template <class T>
void expand_axes(const T& tree, const AxisSpec& spec, Vec<std::optional<int>>& out,
                 const std::string& path, const char* what, CallSite where) {
  if (!spec.is_list()) {
    if constexpr (std::is_same_v<T, Tensor> || is_static<T>) {
      if constexpr (std::is_same_v<T, Tensor>) out.push_back(spec.axis());
    } else if constexpr (requires { tree.axes_of_lanes(spec.axis()); }) {
      // a container whose lanes live inside its elements
      for (const std::optional<int>& axis : tree.axes_of_lanes(spec.axis())) out.push_back(axis);
    } else {
      for_each_child(tree, [&](const auto& child, auto&&) {
        expand_axes(child, spec, out, path, what, where);
      });
    }
    return;
  }
  if constexpr (std::is_same_v<T, Tensor> || is_static<T>) {
    fail(ErrorKind::tree,
         std::string(what) + ": " + path + " is " + (is_static<T> ? "a number" : "a Tensor") +
             " but its axes are a list, " + spec.str(),
         where);
  } else {
    std::size_t children = 0;
    for_each_child(tree, [&](const auto&, auto&&) { ++children; });
    if (children != spec.items().size())
      fail(ErrorKind::tree,
           std::string(what) + ": " + path + " has " + std::to_string(children) +
               " parts but its axes are a list of " + std::to_string(spec.items().size()) + ", " +
               spec.str(),
           where);
    std::size_t i = 0;
    for_each_child(tree, [&](const auto& child, auto&& name) {
      expand_axes(child, spec.items()[i++], out,
                  path + (path.empty() || path.back() == ']' ? "" : " ") + name(), what, where);
    });
  }
}

/// The same for a whole argument list: a list has an entry per argument.
template <class... T>
Vec<std::optional<int>> expand_argument_axes(const std::tuple<T...>& arguments,
                                             const AxisSpec& spec, const char* what,
                                             CallSite where) {
  Vec<std::optional<int>> axes;
  if (spec.is_list() && spec.items().size() != sizeof...(T))
    fail(ErrorKind::tree,
         std::string(what) + ": in_axes " + spec.str() + " has " +
             std::to_string(spec.items().size()) +
             (spec.items().size() == 1 ? " entry for " : " entries for ") +
             std::to_string(sizeof...(T)) + (sizeof...(T) == 1 ? " argument" : " arguments") +
             ": give it one for each, as in {0, vt::unmapped} for two",
         where);
  std::size_t i = 0;
  auto one = [&](const auto& argument) {
    expand_axes(argument, spec.is_list() ? spec.items()[i] : spec, axes,
                "argument " + std::to_string(i), what, where);
    ++i;
  };
  std::apply([&](const auto&... argument) { (one(argument), ...); }, arguments);
  return axes;
}

}  // namespace detail
}  // namespace vt
