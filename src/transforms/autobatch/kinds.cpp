// KindCounts: kinds of several batches, told apart by lines, operations and shapes.
#include "kinds.hpp"

#include <algorithm>
#include <string_view>

#include "../../trace/ir/called_function.hpp"
#include "experience.hpp"

namespace vt::detail::autobatching {

void KindCounts::add(const NodeGraph& nodes, const NodeSchedule& schedule) {
  const GraphBody& g = nodes.graph;
  for (std::size_t k = 0; k < schedule.groups(); ++k) {
    const auto group = schedule.group(k);
    const std::int32_t node = group[0];
    const auto equations = nodes.equations_of(node);
    const Signature& s = nodes.signatures[nodes.nodes[node].signature];
    const Equation &first = nodes.equation(equations[0]), &last = nodes.equation(equations.back());
    const bool counted = s.kind == Signature::Kind::sum || s.kind == Signature::Kind::rows;
    std::uint64_t name = mixed(reinterpret_cast<std::uintptr_t>(first.where.file),
                               static_cast<std::uint64_t>(first.where.line));
    name = mixed(name, static_cast<std::uint64_t>(s.kind));
    for (std::int32_t e : equations)
      name = mixed(name,
                   counted ? static_cast<std::uint64_t>(first.op) : name_of(g, nodes.equation(e)));
    const auto number = numbers_.emplace(name, kinds_.size());
    if (number.fresh) {
      Kind& kind = kinds_.emplace_back();
      kind.first = first.op;
      kind.last = last.op;
      kind.kind = s.kind;
      kind.equations = equations.size();
      kind.where = first.where;
      if (const auto* p = first.params ? first.params->get_if<CallParams>() : nullptr;
          p && p->function)
        kind.function = p->function->name;
      const auto operands = nodes.operands_of(node);
      for (std::size_t i = 0; i < operands.size() && (i == 0 || !counted); ++i)
        kind.operands.push_back(g.aval(operands[i]));
    }
    Kind& kind = kinds_[number.entry->second];
    kind.nodes += group.size();
    ++kind.groups;
  }
}

std::vector<BatchKind> KindCounts::list() const {
  std::vector<BatchKind> all;
  for (const Kind& k : kinds_) {
    BatchKind& shown = all.emplace_back();
    shown.what = !k.function.empty()               ? k.function
                 : k.kind == Signature::Kind::sum  ? "sum"
                 : k.kind == Signature::Kind::rows ? "list"
                                                   : std::string(name_of(k.first));
    if (k.equations > 1) shown.what += " … " + std::string(name_of(k.last));
    for (const Aval& a : k.operands)
      shown.operands += (shown.operands.empty() ? "" : " ") + a.str();
    const std::string line = at(k.where);
    constexpr std::string_view before = "; at ";
    shown.line = line.empty() ? line : line.substr(before.size());
    shown.nodes = k.nodes;
    shown.groups = k.groups;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const BatchKind& a, const BatchKind& b) { return a.groups > b.groups; });
  return all;
}

}  // namespace vt::detail::autobatching
