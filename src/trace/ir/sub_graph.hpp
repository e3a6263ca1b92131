// Sub-graphs: who makes and who reads the values of a Graph; equations copied into another one, cut
// out as one of their own, or dropped as nothing reads what they give.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/hash_map.hpp"
#include "graph.hpp"

namespace vt::detail {

/// The first result of an equation that is written behind the others.
Var add_equation(GraphBody&, Op, ParamsRef, std::initializer_list<Var> inputs, CallSite where = {});

/// Makes constants of those of the last `count` inputs for which `value` gives one. Returns which
/// of them are left.
Vec<std::size_t> bind_inputs(GraphBody&, std::size_t count,
                             FunctionRef<BufferRef(std::size_t)> value);

/// Is there such an equation in the Graph, or in a body inside?
bool has_equation(const GraphBody&, FunctionRef<bool(const Equation&)> is);

/// Per Var: the equation that makes it; −1: none.
Vec<int> makers_of(const GraphBody&);
/// Per Var: how often equations read it, or it is given as a result.
Vec<int> reads_of(const GraphBody&);
/// The same of equations that matter: they have an effect, or some result needs them.
Vec<int> needed_reads_of(const GraphBody&);

/// Drops equations that do not matter; values keep their numbers.
void drop_unread(GraphBody&);
/// The same Graph with values numbered anew, so that no number is left over: programs have a
/// pointer for each.
GraphBody numbered_anew(const GraphBody&);

/// Equations in an order in which those of a stage that are `inside` have none from outside between
/// them.
Vec<Vec<int>> stages_of(const GraphBody&, const Vec<int>& makers, const Vec<bool>& inside);

/// Copies equations into another Graph, where values have names of their own.
class Copier {
 public:
  /// `types`: of the values that are copied.
  Copier(const RecycledVec<Aval>& types, GraphBody& to) : types_(types), to_(to) {}
  bool contains(Var v) const { return names_.contains(v); }
  /// The name of a value there: a new one if it has none yet.
  Var operator[](Var);
  Vec<Var> all(std::span<const Var>);
  void bind(Var v, Var name) { names_[v] = name; }
  void bind(std::span<const Var> values, std::span<const Var> names);
  void add(Equation);

 private:
  const RecycledVec<Aval>& types_;
  GraphBody& to_;
  HashMap<Var, Var> names_;
};
/// The results of a function that is called on `operands`, once its equations stand in `to`.
Vec<Var> copied(const GraphBody& function, std::span<const Var> operands, GraphBody& to);

/// Equations cut out of a Graph as the body of an equation that stands for them there. What they
/// read and do not make is given to it, in the order in which they read it.
class Outline {
 public:
  /// `types`: of the values around.
  explicit Outline(const RecycledVec<Aval>& types)
      : body(std::make_shared<GraphBody>()), inside(types, *body) {}
  void add(const Equation&);
  Var input(Var);
  void output(Var);
  /// Makes outputs of what is read elsewhere, too. `reads`: reads_of the Graph around.
  void output_what_is_read(const Vec<int>& reads);
  Equation equation(Op, ParamsRef, CallSite) const;

  std::shared_ptr<GraphBody> body;
  Copier inside;             ///< for what is made once more in there
  Vec<Var> inputs, outputs;  ///< in the Graph around

 private:
  Vec<Var> made_;
  HashMap<Var, int> reads_;
};
/// A Graph of one equation, each operand of which is an input of its own.
GraphBody alone(const GraphBody&, const Equation&);

}  // namespace vt::detail
