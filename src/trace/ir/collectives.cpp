// Collectives: finding the equations that work over a named axis, and the axes of meshes.
#include "collectives.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>

#include "../base/locks.hpp"
#include "../base/stack.hpp"

namespace vt::detail {

bool works_over(Op op, const ParamsRef& params, const NamedAxis& axis) {
  if (is_collective(op)) return params->as<CollectiveParams>().axis.get() == &axis;
  if (!has_axes(op)) return false;
  for (const GraphRef& body : bodies_of(params))
    if (works_over(*body, axis)) return true;
  return false;
}

bool works_over(const GraphBody& graph, const NamedAxis& axis) {
  return any_of(graph.equations,
                [&](const Equation& e) { return works_over(e.op, e.params, axis); });
}

namespace collective_search {

struct MeshAxes {
  Mutex mutex;
  Vec<AxisRef> known;
};
// Never destroyed: Graphs may outlive the process's other objects.
inline MeshAxes& mesh_axes() {
  static MeshAxes* const made = new MeshAxes;
  return *made;
}

}  // namespace collective_search

AxisRef mesh_axis(std::string_view name, std::int64_t size, std::int64_t stride,
                  std::int64_t ranks) {
  collective_search::MeshAxes& axes = collective_search::mesh_axes();
  const std::lock_guard lock(axes.mutex);
  for (const AxisRef& a : axes.known)
    if (a->name == name && a->size == size && a->stride == stride && a->ranks == ranks) return a;
  axes.known.push_back(
      std::make_shared<const NamedAxis>(NamedAxis{std::string(name), size, false, stride, ranks}));
  return axes.known.back();
}

bool collective_search::exchanges(Op op, const ParamsRef& params) {
  if (is_collective(op))
    return op != Op::spread && op != Op::axis_index &&
           params->as<CollectiveParams>().axis->is_of_mesh();
  for (const GraphRef& body : bodies_of(params))
    if (communicates(*body)) return true;
  return false;
}

bool communicates(const GraphBody& g) {
  signed char known = g.facts.communicates.load(std::memory_order_relaxed);
  if (known < 0) {
    need_stack({});
    known = any_of(g.equations, [](const Equation& e) { return communicates(e); }) ? 1 : 0;
    g.facts.communicates.store(known, std::memory_order_relaxed);
  }
  return known == 1;
}

const Equation& first_exchange(const GraphBody& g) {
  const Equation* const e =
      std::find_if(g.equations.begin(), g.equations.end(),
                   [](const Equation& equation) { return communicates(equation); });
  if (is_collective(e->op)) return *e;
  for (const GraphRef& body : bodies_of(e->params))
    if (communicates(*body)) return first_exchange(*body);
  return *e;
}

std::int64_t ranks_of(const GraphBody& g) {
  std::int64_t known = g.facts.ranks.load(std::memory_order_relaxed);
  if (known < 0) {
    known = first_exchange(g).as<CollectiveParams>().axis->ranks;
    g.facts.ranks.store(known, std::memory_order_relaxed);
  }
  return known;
}

Vec<const Params*> exchanges_of(const GraphBody& g) {
  Vec<const Params*> all;
  for (const Equation& e : g.equations)
    if (communicates(e)) all.push_back(e.params.get());
  return all;
}

}  // namespace vt::detail
