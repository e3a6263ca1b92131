// Graphs with the same values but without effects.
#include "without_effects.hpp"

#include <memory>

#include "../ir/effects.hpp"
#include "recursion.hpp"

namespace vt::detail {

Equation without_effects(const Equation& e) {
  if (!has_effect(e)) return e;
  Equation quiet = e;
  if (e.op == Op::recursive_call) {
    quiet.params = make_params(without_effects(e.as<RecursionParams>()));
    return quiet;
  }
  Vec<GraphRef> bodies = bodies_of(e.params);
  for (GraphRef& body : bodies) body = without_effects(body);
  quiet.params = with_bodies(e.params, bodies);
  if (const CallParams* p = quiet.params->get_if<CallParams>(); p && p->rule && p->rule->quiet) {
    CallParams own = *p;
    own.rule = p->rule->quiet;
    quiet.params = make_params(std::move(own));
  }
  return quiet;
}

GraphRef without_effects(const GraphRef& graph) {
  if (!has_effects(*graph)) return graph;
  auto quiet = std::make_shared<GraphBody>(*graph);
  quiet->equations.clear();
  for (const Equation& e : graph->equations) {
    if (family_of(e.op) != Family::effect || !has_effect(e)) {
      quiet->equations.push_back(without_effects(e));
    } else if (!e.outputs.empty()) {
      fail(ErrorKind::transform,
           "vt::callback: a derivative needs what the function gave, and must not call it again, "
           "as it has effects; use vt::pure_callback, or "
           "call it outside of vt::cond, vt::while_loop and vt::checkpoint",
           e.where);
    }
  }
  return quiet;
}

}  // namespace vt::detail
