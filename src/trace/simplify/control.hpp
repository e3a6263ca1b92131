// A cond, while, scan or checkpoint taken apart for the simplifier: separate lists of operands,
// bodies and results, so that each can be dropped or moved by itself.
#pragma once

#include <memory>

#include <vt/detail/small_vec.hpp>

#include "simplify.hpp"

namespace vt::detail::simplification {

namespace control_parts {
inline Aval with_axis(const Aval& a, std::int64_t count) {
  Aval all(a.dtype, Shape{count});
  all.shape.append(a.shape.begin(), a.shape.end());
  return all;
}
inline Aval without_axis(const Aval& a) {
  Aval one(a.dtype, a.shape);
  one.shape.erase(one.shape.begin());
  return one;
}
}  // namespace control_parts

class ControlRewrite {
 public:
  /// `inputs`: the operands in the Graph being built; `wanted`: which results are used.
  ControlRewrite(Pass&, const Equation&, std::span<const Var> inputs, Vec<bool> wanted);
  /// Places what is left of the equation; gives its results, Pass::none for those that are not
  /// wanted.
  SmallVec<Var, 2> run();

 private:
  enum class Role : std::uint8_t { carry, sequence, rest, gone };
  struct Operand {
    Role role;
    Var outer;               ///< in the Graph around
    bool mapped = false;     ///< it holds a value for each lane
    SmallVec<Var, 2> inner;  ///< the input of each body
  };
  /// Of a loop, result i is the last value of carry i, as long as operand i is one.
  struct Result {
    bool wanted;
    SmallVec<Var, 2> inner;  ///< of a cond: the output of each branch; else that of the body
    Var value = Pass::none;  ///< once it is known without the equation
    int same_as = -1;        ///< the result that it always equals
    bool is_open() const { return wanted && value == Pass::none && same_as < 0; }
  };
  /// A sub-graph as it was found, or the copy that is being changed.
  struct Body {
    GraphRef found;
    std::shared_ptr<GraphBody> own;
    Vec<Var> renamed;  ///< per Var: what stands for it from now on; empty: nothing changed
    const GraphBody& get() const { return own ? *own : *found; }
  };

  bool is_loop() const { return op_ == Op::while_ || op_ == Op::scan; }
  /// The body that makes a loop's results.
  std::size_t step() const { return bodies_.size() - 1; }
  const GraphBody& step_body() const { return bodies_.back().get(); }
  bool is_carry(std::size_t i) const {
    return is_loop() && i < operands_.size() && operands_[i].role == Role::carry;
  }
  /// Is result `i` one that the equation gives?
  bool is_given(std::size_t i) const { return is_carry(i) || results_[i].is_open(); }
  const Aval& inner_aval(const Operand& o) const { return bodies_[0].get().aval(o.inner[0]); }
  /// The type of result `i` for one lane or one iteration.
  const Aval& inner_aval(const Result& r) const {
    return bodies_.back().get().aval(r.inner.back());
  }

  using Rule = bool (ControlRewrite::*)();
  bool apply(Rule);

  // Rules that finish: every result has its value afterwards.
  bool choose_branch();
  bool unroll();
  // Rules that change something (and say so).
  bool drop_dead();
  bool merge_operands();
  bool share_operands();
  bool drop_lanes();
  bool settle_results();
  bool merge_results();
  bool settle_carries();
  bool merge_carries();
  bool move_out();
  bool drop_operands();

  // Pieces of these.
  void read_interfaces();
  void write_interfaces();
  void simplify_bodies();
  GraphBody& edit(std::size_t body);
  void rename(std::size_t body, Var from, Var to);
  void stand_in_with_full(Operand&, const Scalar&);
  Var without_first_axis(Var);
  Var with_first_axis(Var, std::int64_t count);
  bool is_false_at_first();
  void settle(Result&, Var value);
  bool may_move(const Equation&) const;
  bool move_out_of(std::size_t body);
  void finish_with(std::size_t body, std::span<const Var> inputs);
  Vec<Var> inlined(const GraphBody&, std::span<const Var> inputs);
  void place();

  Pass& pass_;
  const Equation& equation_;
  Op op_;
  CallSite where_;
  Vec<Body> bodies_;  ///< cond: the branches; while: condition, body; else the body
  Vec<Operand> operands_;
  Vec<Result> results_;
  std::size_t carries_ = 0;  ///< as found
  std::int64_t length_ = 0;
  std::int64_t lanes_ = -1;      ///< −1: none
  std::int64_t restacked_ = -1;  ///< lanes that turned out to be all the same
  Var index_ = Pass::none;
  bool index_mapped_ = false;
  bool changed_ = false;
};

/// Makes one cond of two with the same index, the second of which goes on with results of the
/// first; gives how many it joined.
std::size_t join_branches(GraphBody&);
/// Results of conds that are operands with some elements overwritten become updates behind them;
/// gives how many.
std::size_t move_updates_out(GraphBody&);

}  // namespace vt::detail::simplification
