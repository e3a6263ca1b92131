// Named axes: looking them up in the stack of scopes, and in Graphs.
#include "named_axes.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "thread_state.hpp"

namespace vt::detail {

namespace axis_lookup {

inline int used(ThreadState& state, std::size_t scope) {
  state.outermost_axis = std::min(state.outermost_axis, static_cast<int>(scope));
  if (state.scopes[scope].axis)
    state.outermost_lanes = std::min(state.outermost_lanes, static_cast<int>(scope));
  return static_cast<int>(scope) + 1;
}

inline bool has(const ScopeState& scope, const NamedAxis* axis) {
  return scope.axis.get() == axis ||
         any_of(scope.mesh, [&](const AxisRef& a) { return a.get() == axis; });
}

[[noreturn]] void refuse(std::string_view name, std::string_view function, const ThreadState& state,
                         CallSite where) {
  std::string known;
  Vec<std::string_view> names;
  const auto add = [&](const NamedAxis& axis) {
    known += formatted("{}\"{}\" ({} {})", known.empty() ? "there is " : ", ", axis.name, axis.size,
                       axis.is_of_mesh() ? "processes" : "lanes");
    names.push_back(axis.name);
  };
  for (auto scope = state.scopes.rbegin(); scope != state.scopes.rend(); ++scope) {
    if (scope->axis) add(*scope->axis);
    for (const AxisRef& axis : scope->mesh) add(*axis);
  }
  fail(ErrorKind::transform,
       formatted("vt::{}: no axis is named \"{}\" here{}; {}", function, name,
                 did_you_mean(name, {names.begin(), names.size()}),
                 known.empty() ? "vt::vmap and vt::pfor name theirs by {.axis_name = …}, and "
                                 "vt::shard_map has those of its mesh"
                               : known),
       where);
}

}  // namespace axis_lookup

LiveAxis live_axis(std::string_view name, std::string_view function, CallSite where) {
  ThreadState& state = thread_state();
  LiveAxis found;
  for (std::size_t k = state.scopes.size(); k-- > 0;) {
    const ScopeState& scope = state.scopes[k];
    if (scope.axis && scope.axis->name == name) {
      if (found.axis) return found;  // the lanes further out are the mesh's
      axis_lookup::used(state, k);
      found = {scope.axis, scope.lane, {}};
    }
    for (const AxisRef& axis : scope.mesh)
      if (axis->name == name) {
        axis_lookup::used(state, k);
        (found.axis ? found.mesh : found.axis) = axis;
        return found;
      }
  }
  if (found.axis) return found;
  axis_lookup::refuse(name, function, state, where);
}

int level_of_axes(Op op, const ParamsRef& params, CallSite where) {
  if (is_collective(op)) {
    ThreadState& state = thread_state();
    const NamedAxis* axis = params->as<CollectiveParams>().axis.get();
    for (std::size_t k = state.scopes.size(); k-- > 0;)
      if (axis_lookup::has(state.scopes[k], axis)) return axis_lookup::used(state, k);
    if (axis->is_of_mesh()) return 0;  // processes meet anywhere, once it is recorded
    fail(ErrorKind::transform,
         "vt::" + std::string(name_of(op)) + ": the lanes of \"" + axis->name +
             "\" are known only inside their vt::vmap",
         where);
  }
  int level = 0;
  for (const GraphRef& body : bodies_of(params))
    for (const Equation& e : body->equations)
      if (has_axes(e.op)) level = std::max(level, level_of_axes(e.op, e.params, e.where));
  return level;
}

std::string mesh_key() {
  const auto& scopes = thread_state().scopes;
  std::string key;
  for (auto scope = scopes.begin(); scope != scopes.end(); ++scope)
    for (const AxisRef& axis : scope->mesh) {
      const bool has_lanes = std::any_of(scope, scopes.end(), [&](const ScopeState& inner) {
        return inner.axis && inner.axis->name == axis->name;
      });
      key += formatted("{}:{}:{}{};", axis->name, axis->size, axis->stride, has_lanes ? "+" : "");
    }
  return key;
}

OuterAxes::OuterAxes()
    : before_(std::exchange(thread_state().outermost_axis, std::numeric_limits<int>::max())),
      before_lanes_(
          std::exchange(thread_state().outermost_lanes, std::numeric_limits<int>::max())) {}
OuterAxes::~OuterAxes() {
  ThreadState& state = thread_state();
  state.outermost_axis = std::min(state.outermost_axis, before_);
  state.outermost_lanes = std::min(state.outermost_lanes, before_lanes_);
}
bool OuterAxes::used() const { return thread_state().outermost_axis < current_level(); }
bool OuterAxes::used_lanes() const { return thread_state().outermost_lanes < current_level(); }

}  // namespace vt::detail
