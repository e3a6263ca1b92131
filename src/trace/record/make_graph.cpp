// make_graph and eval_shape: recording a function without running it; Graphs applied to Tensors.
#include <memory>

#include <vt/detail/small_vec.hpp>
#include <vt/graph.hpp>

#include "scope.hpp"
#include "state.hpp"

namespace vt {

namespace detail {

namespace recorded_like {
// The function on tracers that look like `arguments`.
Recorded record_like(const FlatFunction& f, std::span<const Tensor> arguments,
                     const char* transform, CallSite where) {
  Vec<Aval> avals;
  avals.reserve(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].defined())
      fail(ErrorKind::value,
           std::string(transform) + ": argument leaf " + std::to_string(i) + " is an empty Tensor",
           where);
    avals.push_back(aval_of(arguments[i]));
  }
  return record(f, avals, {.kind = ScopeKind::jit, .transform = transform, .where = where});
}
}  // namespace recorded_like

Graph make_graph_flat(const FlatFunction& f, std::span<const Tensor> arguments,
                      std::vector<std::string> input_names, CallSite where) {
  Recorded recorded = recorded_like::record_like(f, arguments, "vt::make_graph", where);
  return Graph(std::make_shared<const GraphBody>(std::move(recorded.graph)),
               std::move(recorded.captured), std::move(input_names));
}

std::vector<Tensor> eval_shape_flat(const FlatFunction& f, std::span<const Tensor> arguments,
                                    CallSite where) {
  Vec<StateUpdate> updates;  // none of which happens
  const Recorded recorded =
      recorded_like::record_like(with_updates(f, updates), arguments, "vt::eval_shape", where);
  std::vector<Tensor> shapes;
  for (Var v : std::span<const Var>(recorded.graph.outputs)
                   .first(recorded.graph.outputs.size() - updates.size())) {
    // An input of a scope that never was: it has an aval, and every use of it is refused.
    RecordingScope nowhere({.kind = ScopeKind::branch, .transform = "vt::eval_shape"});
    shapes.push_back(nowhere.input(recorded.graph.aval(v)));
  }
  return shapes;
}

}  // namespace detail

std::vector<Tensor> Graph::operator()(std::span<const Tensor> arguments, CallSite where) const {
  const detail::GraphBody& g = *body_;
  const std::size_t wanted = g.inputs.size() - captured_.size();
  if (arguments.size() != wanted)
    detail::fail(ErrorKind::tree,
                 "vt::Graph: " + std::to_string(arguments.size()) + " arguments for a Graph of " +
                     std::to_string(wanted),
                 where);
  std::vector<Tensor> all(arguments.begin(), arguments.end());
  for (std::size_t i = 0; i < wanted; ++i) {
    const detail::Aval& expected = g.aval(g.inputs[i]);
    const detail::Aval& given = detail::aval_of(all[i]);
    if (given.shape != expected.shape || given.dtype != expected.dtype)
      detail::fail(ErrorKind::shape,
                   "vt::Graph: argument " + std::to_string(i) + " is " + given.str() +
                       ", recorded as " + expected.str(),
                   where);
  }
  all.insert(all.end(), captured_.begin(), captured_.end());
  return detail::replay(g, all);
}

}  // namespace vt
