// Equations that compute the same, without any other simplification: found by their hash.
#include <algorithm>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../base/hash_map.hpp"
#include "../ir/collectives.hpp"
#include "../ir/graph.hpp"

namespace vt::detail {

namespace repeated_equations {

/// Those with bodies are rare, and take long to compare.
bool may_be_shared(const Equation& e) {
  return e.outputs.size() == 1 && !keeps_order(e) && !is_unset(e) && bodies_of(e.params).empty();
}

std::size_t key_of(const Equation& e) {
  std::size_t h = (static_cast<std::size_t>(e.op) * 2 + e.assume_finite) * 31 +
                  (e.params ? hash_of(e.params) : 0);
  for (Var v : e.inputs) h = h * 1000003 + static_cast<std::size_t>(v);
  return h;
}

}  // namespace repeated_equations

GraphBody without_repeats(GraphBody graph) {
  using namespace repeated_equations;
  // Calls are run in batches: which of their operands are equal goes by the data, and would give
  // every minibatch sums of other lengths, with kernels of their own.
  for (const Equation& e : graph.equations)
    if (e.op == Op::call || e.op == Op::batched_call) return graph;
  Vec<Var> first(graph.avals.size());
  for (std::size_t v = 0; v < first.size(); ++v) first[v] = static_cast<Var>(v);
  HashMap<std::size_t, SmallVec<int, 1>> known;
  RecycledVec<Equation> kept;
  for (Equation& e : graph.equations) {
    for (Var& v : e.inputs) v = first[v];
    if (may_be_shared(e)) {
      SmallVec<int, 1>& alike = known[key_of(e)];
      const auto same = std::find_if(alike.begin(), alike.end(), [&](int k) {
        const Equation& other = kept[k];
        return other.op == e.op && other.assume_finite == e.assume_finite &&
               other.inputs == e.inputs && equal(other.params, e.params) &&
               graph.aval(other.outputs[0]) == graph.aval(e.outputs[0]);
      });
      if (same != alike.end()) {
        first[e.outputs[0]] = kept[*same].outputs[0];
        continue;
      }
      alike.push_back(static_cast<int>(kept.size()));
    }
    kept.push_back(std::move(e));
  }
  graph.equations = std::move(kept);
  for (Var& v : graph.outputs) v = first[v];
  return graph;
}

}  // namespace vt::detail
