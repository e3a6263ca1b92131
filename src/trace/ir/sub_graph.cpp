// Sub-graphs: who makes and who reads the values of a Graph; equations copied into another one, cut
// out as one of their own, or dropped as nothing reads what they give.
#include "sub_graph.hpp"

#include <algorithm>
#include <utility>

#include "collectives.hpp"

namespace vt::detail {

namespace sub_graphs {

bool matters(const Equation& e, const Vec<int>& reads) {
  return keeps_order(e) || any_of(e.outputs, [&](Var v) { return reads[v] > 0; });
}

/// `seen`: bodies that have none.
bool has_equation(const GraphBody& g, FunctionRef<bool(const Equation&)> is,
                  HashMap<const GraphBody*, bool>& seen) {
  return any_of(g.equations, [&](const Equation& e) {
    return is(e) || any_of(bodies_of(e.params), [&](const GraphRef& body) {
             return seen.emplace(body.get(), true).fresh && has_equation(*body, is, seen);
           });
  });
}

}  // namespace sub_graphs

Var add_equation(GraphBody& g, Op op, ParamsRef params, std::initializer_list<Var> inputs,
                 CallSite where) {
  Equation e;
  e.op = op;
  e.where = where;
  e.params = std::move(params);
  SmallVec<const Aval*, 4> operands;
  for (Var v : inputs) {
    e.inputs.push_back(v);
    operands.push_back(&g.aval(v));
  }
  for (const Aval& a : infer(op, e.params, {operands.data(), operands.size()}, where))
    e.outputs.push_back(g.fresh(a));
  g.equations.push_back(std::move(e));
  return g.equations.back().outputs[0];
}

Vec<std::size_t> bind_inputs(GraphBody& g, std::size_t count,
                             FunctionRef<BufferRef(std::size_t)> value) {
  const Vec<Var> inputs(g.inputs.end() - static_cast<std::ptrdiff_t>(count), g.inputs.end());
  RecycledVec<Equation> equations;
  Vec<std::size_t> left;
  g.inputs.resize(g.inputs.size() - count);
  for (std::size_t i = 0; i < count; ++i) {
    BufferRef known = value(i);
    if (!known) {
      g.inputs.push_back(inputs[i]);
      left.push_back(i);
      continue;
    }
    const Aval& a = g.aval(inputs[i]);
    Equation& e = equations.emplace_back();
    e.op = Op::constant;
    e.params = make_params(ConstantParams{std::move(known), Aval(a.dtype, a.shape)});
    e.outputs.push_back(inputs[i]);
  }
  if (equations.empty()) return left;
  for (Equation& e : g.equations) equations.push_back(std::move(e));
  g.equations = std::move(equations);
  return left;
}

bool has_equation(const GraphBody& g, FunctionRef<bool(const Equation&)> is) {
  HashMap<const GraphBody*, bool> seen;
  return sub_graphs::has_equation(g, is, seen);
}

Vec<int> makers_of(const GraphBody& g) {
  Vec<int> makers(g.avals.size(), -1);
  for (std::size_t i = 0; i < g.equations.size(); ++i)
    for (Var v : g.equations[i].outputs) makers[v] = static_cast<int>(i);
  return makers;
}

Vec<int> reads_of(const GraphBody& g) {
  Vec<int> reads(g.avals.size(), 0);
  for (const Equation& e : g.equations)
    for (Var v : e.inputs) ++reads[v];
  for (Var v : g.outputs) ++reads[v];
  return reads;
}

Vec<int> needed_reads_of(const GraphBody& g) {
  Vec<int> reads(g.avals.size(), 0);
  for (Var v : g.outputs) ++reads[v];
  for (auto e = g.equations.rbegin(); e != g.equations.rend(); ++e)
    if (sub_graphs::matters(*e, reads))
      for (Var v : e->inputs) ++reads[v];
  return reads;
}

void drop_unread(GraphBody& g) {
  const Vec<int> reads = needed_reads_of(g);
  erase_if(g.equations, [&](const Equation& e) { return !sub_graphs::matters(e, reads); });
}

Vec<Vec<int>> stages_of(const GraphBody& g, const Vec<int>& makers, const Vec<bool>& inside) {
  Vec<int> stage(g.equations.size(), 0);
  Vec<Vec<int>> all;
  for (std::size_t i = 0; i < stage.size(); ++i) {
    for (Var v : g.equations[i].inputs) {
      if (makers[v] < 0) continue;
      const std::size_t m = makers[v];
      stage[i] = std::max(stage[i], stage[m] + (inside[m] && !inside[i]));
    }
    if (static_cast<std::size_t>(stage[i]) >= all.size()) all.resize(stage[i] + 1);
    all[stage[i]].push_back(static_cast<int>(i));
  }
  return all;
}

Var Copier::operator[](Var v) {
  const auto name = names_.emplace(v, -1);
  if (name.fresh) name.entry->second = to_.fresh(types_[v]);
  return name.entry->second;
}

Vec<Var> Copier::all(std::span<const Var> values) {
  Vec<Var> names;
  for (Var v : values) names.push_back((*this)[v]);
  return names;
}

void Copier::bind(std::span<const Var> values, std::span<const Var> names) {
  for (std::size_t i = 0; i < values.size(); ++i) bind(values[i], names[i]);
}

void Copier::add(Equation e) {
  for (Var& v : e.inputs) v = (*this)[v];
  for (Var& v : e.outputs) v = (*this)[v];
  to_.equations.push_back(std::move(e));
}

Vec<Var> copied(const GraphBody& function, std::span<const Var> operands, GraphBody& to) {
  Copier copy(function.avals, to);
  copy.bind(function.inputs, operands);
  for (const Equation& e : function.equations) copy.add(e);
  return copy.all(function.outputs);
}

GraphBody numbered_anew(const GraphBody& g) {
  GraphBody all;
  for (Var v : g.inputs) all.inputs.push_back(all.fresh(g.aval(v)));
  all.outputs = copied(g, {all.inputs.begin(), all.inputs.size()}, all);
  return all;
}

void Outline::add(const Equation& e) {
  for (Var v : e.inputs) {
    ++reads_[v];
    if (!inside.contains(v)) input(v);
  }
  inside.add(e);
  made_.append(e.outputs.begin(), e.outputs.end());
}

Var Outline::input(Var v) {
  inputs.push_back(v);
  body->inputs.push_back(inside[v]);
  return body->inputs.back();
}

void Outline::output(Var v) {
  outputs.push_back(v);
  body->outputs.push_back(inside[v]);
}

void Outline::output_what_is_read(const Vec<int>& reads) {
  for (Var v : made_)
    if (reads[v] > reads_[v]) output(v);
}

Equation Outline::equation(Op op, ParamsRef params, CallSite where) const {
  Equation e;
  e.op = op;
  e.where = where;
  e.params = std::move(params);
  e.inputs.assign(inputs.begin(), inputs.end());
  e.outputs.assign(outputs.begin(), outputs.end());
  return e;
}

GraphBody alone(const GraphBody& g, const Equation& e) {
  GraphBody one;
  Equation copy = e;
  const auto own = [&](Var v) { return one.fresh(Aval(g.aval(v).dtype, g.aval(v).shape)); };
  for (Var& v : copy.inputs) v = own(v);
  for (Var& v : copy.outputs) v = own(v);
  one.inputs.assign(copy.inputs.begin(), copy.inputs.end());
  one.outputs.assign(copy.outputs.begin(), copy.outputs.end());
  one.equations.push_back(std::move(copy));
  return one;
}

}  // namespace vt::detail
