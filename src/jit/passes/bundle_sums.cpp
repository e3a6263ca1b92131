// Bundles: sums over processes that do not wait for each other go in one message.
#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../../trace/base/stable_sort.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "passes.hpp"

namespace vt::detail {

namespace sum_bundles {

constexpr std::size_t most_bytes = std::size_t{4} << 20;

bool is_sum(const Equation& e) {
  return (e.op == Op::psum || e.op == Op::pmax || e.op == Op::pmin) && communicates(e);
}

/// Per equation: how many exchanges it waits for, one behind the other. Effects wait for those in
/// front of them, and a sum for none that it does not use: so another process, which prints
/// something else, makes the same bundles.
Vec<int> depths_of(const GraphBody& g) {
  Vec<int> of_value(g.avals.size(), 0), depths;
  int of_effects = 0;
  for (const Equation& e : g.equations) {
    int depth = 0;
    for (Var v : e.inputs) depth = std::max(depth, of_value[v]);
    if (has_effect(e)) depth = of_effects = std::max(depth, of_effects);
    depths.push_back(depth);
    for (Var v : e.outputs) of_value[v] = depth + communicates(e);
  }
  return depths;
}

/// Sums of one kind, at one depth, of at most so many bytes together.
struct Bundle {
  Vec<int> equations;
  Vec<std::int64_t> exchanges;  ///< their numbers among all exchanges
  std::size_t bytes = 0;
};
Vec<Bundle> bundles_of(const GraphBody& g, const Vec<int>& depths) {
  Vec<Bundle> all;
  std::int64_t exchanges = 0;
  for (std::size_t k = 0; k < g.equations.size(); ++k) {
    const Equation& e = g.equations[k];
    const std::int64_t exchange = exchanges;
    exchanges += communicates(e);
    if (!is_sum(e)) continue;
    const Aval& x = g.aval(e.inputs[0]);
    if (x.elements() == 0) continue;
    const auto fits = [&](const Bundle& b) {
      const Equation& first = g.equations[b.equations[0]];
      return first.op == e.op && depths[b.equations[0]] == depths[k] &&
             first.as<CollectiveParams>() == e.as<CollectiveParams>() &&
             g.aval(first.inputs[0]).dtype == x.dtype && b.bytes + x.bytes() <= most_bytes;
    };
    Bundle* const open = std::find_if(all.begin(), all.end(), fits);
    Bundle& b = open == all.end() ? all.emplace_back() : *open;
    b.equations.push_back(static_cast<int>(k));
    b.exchanges.push_back(exchange);
    b.bytes += x.bytes();
  }
  return all;
}

/// The sums of the bundle, by one of all their elements in a row.
void add_bundle(GraphBody& g, const RecycledVec<Equation>& from, const Bundle& b) {
  const Equation& first = from[b.equations[0]];
  Equation joined;
  joined.op = Op::concatenate;
  joined.params = make_params(AxisParams{0});
  joined.where = first.where;
  std::int64_t elements = 0;
  for (int k : b.equations) {
    const Var x = from[k].inputs[0];
    const std::int64_t n = g.aval(x).elements();
    joined.inputs.push_back(
        add_equation(g, Op::reshape, make_params(ShapeParams{Shape{n}}), {x}, from[k].where));
    elements += n;
  }
  const Aval flat(g.aval(first.inputs[0]).dtype, Shape{elements});
  joined.outputs.push_back(g.fresh(flat));
  const Var all = joined.outputs[0];
  g.equations.push_back(std::move(joined));
  auto params = first.as<CollectiveParams>();
  params.bundle = b.exchanges;  // so that ranks with other bundles find out
  const Var sums = add_equation(g, first.op, make_params(std::move(params)), {all}, first.where);
  std::int64_t at = 0;
  for (int k : b.equations) {
    const Equation& e = from[k];
    const std::int64_t n = g.aval(e.inputs[0]).elements();
    const Var own =
        add_equation(g, Op::slice, make_params(SliceParams{Shape{at}, Shape{at + n}, Shape{1}}),
                     {sums}, e.where);
    Equation shaped;
    shaped.op = Op::reshape;
    shaped.params = make_params(ShapeParams{g.aval(e.outputs[0]).shape});
    shaped.where = e.where;
    shaped.inputs.push_back(own);
    shaped.outputs.push_back(e.outputs[0]);
    g.equations.push_back(std::move(shaped));
    at += n;
  }
}

}  // namespace sum_bundles

GraphBody bundle_sums(GraphBody g) {
  using namespace sum_bundles;
  if (!communicates(g)) return g;
  const Vec<int> depths = depths_of(g);
  const Vec<Bundle> bundles = bundles_of(g, depths);
  if (none_of(bundles, [](const Bundle& b) { return b.equations.size() > 1; })) return g;
  // What waits for less comes first; a bundle stands where its last sum stood.
  Vec<int> order;
  for (std::size_t k = 0; k < g.equations.size(); ++k) order.push_back(static_cast<int>(k));
  stable_sort(order, [&](int a, int b) { return depths[a] < depths[b]; });
  Vec<int> bundle_of(g.equations.size(), -1);
  for (std::size_t i = 0; i < bundles.size(); ++i)
    if (bundles[i].equations.size() > 1)
      for (int k : bundles[i].equations) bundle_of[k] = static_cast<int>(i);
  const RecycledVec<Equation> from = std::move(g.equations);
  g.equations.clear();
  g.facts = {};
  for (int k : order) {
    const int i = bundle_of[k];
    if (i < 0) g.equations.push_back(from[k]);
    else if (bundles[i].equations.back() == k) add_bundle(g, from, bundles[i]);
  }
  debug_check(g, "bundle_sums");
  return g;
}

}  // namespace vt::detail
