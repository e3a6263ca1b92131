// Makes the flow graph of a lane call: walks its body and those of functions, cutting blocks where
// flows of control part.
#include "flow_graph.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "../../trace/base/hash_map.hpp"
#include "../../trace/base/stack.hpp"
#include "../../trace/ir/lane_work.hpp"
#include "../../trace/ir/recursive_function.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "flow_draft.hpp"

namespace vt::detail {

namespace flow_build {

/// Constants of so many elements are a part of the code of each block that reads them.
constexpr std::int64_t most_elements_of_code = 16;
/// A function is made anew for other shared values so many times; then lanes are given copies.
constexpr int most_instances = 4;
/// Of arrays of so many bytes, elements are picked where they lie if they are no more than one in
/// `least_share`. Positions are i32.
constexpr std::size_t least_bytes = 1024;
constexpr std::int64_t least_share = 4, most_positions = std::int64_t{1} << 30;

/// Does the function end where it does, with the results that it gives?
bool gives_results_of(const GraphBody& g, const Equation& e) {
  if (&e != &g.equations[g.equations.size() - 1] || g.outputs.size() != e.outputs.size())
    return false;
  return std::equal(g.outputs.begin(), g.outputs.end(), e.outputs.begin());
}

/// How often each function that is called by name is, in all that one lane runs.
class CallCounts {
 public:
  explicit CallCounts(const GraphBody& g) { add(g); }
  int of(const GraphBody* body) const {
    const auto found = counts_.find(body);
    return found == counts_.end() ? 0 : found->second;
  }

  /// Is there a function that remembers what others give? Then their calls have to return.
  bool remembers() const { return remembers_; }

 private:
  void add(const GraphBody& g) {
    for (const Equation& e : g.equations) {
      if (e.op == Op::recursive_call) {
        const GraphRef& body = e.as<RecursionParams>().function->body;
        remembers_ = remembers_ || e.as<RecursionParams>().function->remembers;
        if (body && counts_.emplace(body.get(), 1).fresh) add(*body);
        continue;
      }
      if (family_of(e.op) != Family::structure) continue;
      for (const GraphRef& body : bodies_of(e.params)) {
        const auto known = counts_.emplace(body.get(), 0);
        if (known.entry->second++ == 0) add(*body);
      }
    }
  }
  HashMap<const GraphBody*, int> counts_;
  bool remembers_ = false;
};

class Builder {
 public:
  Builder(const GraphRef& body, const Vec<bool>& mapped, bool in_place)
      : counts_(*body), in_place_(in_place) {
    FlowDraft::Function main;
    main.name = "";
    draft_.functions.push_back(std::move(main));
    Vec<int> inputs;
    for (std::size_t i = 0; i < mapped.size(); ++i) {
      const int v = value(body->aval(body->inputs[i]));
      draft_.values[v].shared = !mapped[i];
      draft_.values[v].operand = static_cast<int>(i);
      inputs.push_back(v);
    }
    draft_.operands = static_cast<int>(mapped.size());
    for (Var v : body->outputs) draft_.functions[0].results.push_back(value(body->aval(v)));
    draft_.functions[0].entry = begin_block();
    function_body(*body, inputs);
  }
  FlowDraft take() {
    if (!prologue_.outputs.empty())
      draft_.prologue = std::make_shared<const GraphBody>(std::move(prologue_));
    return std::move(draft_);
  }

 private:
  using Values = Vec<int>;
  FlowDraft::Block& block() { return draft_.blocks[now_]; }

  int value(const Aval& aval) {
    FlowDraft::Value v;
    v.aval = Aval(aval.dtype, aval.shape);
    v.function = function_;
    draft_.values.push_back(std::move(v));
    return static_cast<int>(draft_.values.size()) - 1;
  }
  int begin_block() {
    FlowDraft::Block b;
    b.function = function_;
    draft_.blocks.push_back(std::move(b));
    now_ = static_cast<int>(draft_.blocks.size()) - 1;
    return now_;
  }
  void note_line(CallSite where) {
    if (!block().where.file) block().where = where;
  }

  // --- values that depend on no lane -------------------------------------------------------------

  bool is_shared(int v) const { return draft_.values[v].shared; }
  bool is_constant(int v) const { return draft_.values[v].constant >= 0; }

  /// In the prologue: its Var of a shared value, of which it becomes an input where it is an
  /// operand.
  Var in_prologue(int v) {
    for (const auto& [known, var] : in_prologue_)
      if (known == v) return var;
    Var var;
    if (is_constant(v)) {
      Equation e = draft_.constants[draft_.values[v].constant];
      var = prologue_.fresh(draft_.values[v].aval);
      e.outputs.clear();
      e.outputs.push_back(var);
      prologue_.equations.push_back(std::move(e));
    } else {
      var = prologue_.fresh(draft_.values[v].aval);
      prologue_.inputs.push_back(var);
      draft_.prologue_operands.push_back(draft_.values[v].operand);
    }
    in_prologue_.push_back({v, var});
    return var;
  }
  /// A constant of which rows are read lies in memory.
  int in_memory(int v) {
    if (!is_constant(v)) return v;
    const Var var = in_prologue(v);
    const int made = value(draft_.values[v].aval);
    draft_.values[made].shared = true;
    draft_.values[made].operand = draft_.operands + static_cast<int>(prologue_.outputs.size());
    in_prologue_.push_back({made, var});
    prologue_.outputs.push_back(var);
    return made;
  }
  // The same of the same is there once: calls that hand it on are calls of one function.
  void to_prologue(const GraphBody& g, const Equation& e, const Values& in, Values& of) {
    Equation copy = e;
    for (std::size_t i = 0; i < in.size(); ++i) copy.inputs[i] = in_prologue(in[i]);
    for (const Equation& known : prologue_.equations) {
      if (known.op != e.op || !(known.inputs == copy.inputs) || !equal(known.params, e.params))
        continue;
      for (std::size_t k = 0; k < e.outputs.size(); ++k)
        for (const auto& [made, var] : in_prologue_)
          if (var == known.outputs[k]) of[e.outputs[k]] = made;
      return;
    }
    for (Var& v : copy.outputs) {
      const int made = value(g.aval(v));
      draft_.values[made].shared = true;
      draft_.values[made].operand = draft_.operands + static_cast<int>(prologue_.outputs.size());
      of[v] = made;
      v = prologue_.fresh(g.aval(v));
      in_prologue_.push_back({made, v});
      prologue_.outputs.push_back(v);
    }
    prologue_.equations.push_back(std::move(copy));
  }

  // --- the walk ----------------------------------------------------------------------------------

  /// Its results on these values. `tail`: they are those of the function, which returns there.
  Values body(const GraphBody& g, const Values& inputs, bool tail = false) {
    need_stack({});
    Values of(g.avals.size(), -1);
    for (std::size_t i = 0; i < inputs.size(); ++i) of[g.inputs[i]] = inputs[i];
    for (const Equation& e : g.equations) {
      Values in;
      for (Var v : e.inputs) in.push_back(of[v]);
      const bool last = tail && gives_results_of(g, e);
      if (e.op == Op::meeting) {
        of[e.outputs[0]] = in[0];
        meet(e.where);
        continue;
      }
      if (family_of(e.op) == Family::structure && e.op != Op::batched_call &&
          work_.parts_flow(g, e)) {
        const Values made = structure(g, e, in, last);
        if (last) return made;
        for (std::size_t k = 0; k < made.size(); ++k) of[e.outputs[k]] = made[k];
        continue;
      }
      straight(g, e, in, of);
    }
    Values results;
    for (Var v : g.outputs) results.push_back(of[v]);
    if (tail) leave(results);
    return results;
  }
  void function_body(const GraphBody& g, const Values& inputs) { body(g, inputs, true); }
  void leave(const Values& results) {
    FlowDraft::Block& b = block();
    const Values& own = draft_.functions[function_].results;
    for (std::size_t k = 0; k < own.size(); ++k) b.copies.push_back({own[k], results[k]});
    b.exit = FlowGraph::Exit::leave;
  }
  void go_on_in_next_block() {
    const int before = now_, next = begin_block();
    draft_.blocks[before].exit = FlowGraph::Exit::jump;
    draft_.blocks[before].targets.push_back(next);
  }
  void meet(CallSite where) {
    go_on_in_next_block();
    block().meeting = true;
    note_line(where);
  }

  void straight(const GraphBody& g, const Equation& e, const Values& in, Values& of) {
    if (e.op == Op::constant && g.aval(e.outputs[0]).elements() > most_elements_of_code)
      return to_prologue(g, e, in, of);
    if (e.inputs.empty() && e.outputs.size() == 1 && family_of(e.op) != Family::effect) {
      const int made = value(g.aval(e.outputs[0]));
      draft_.values[made].constant = static_cast<int>(draft_.constants.size());
      draft_.constants.push_back(e);
      of[e.outputs[0]] = made;
      return;
    }
    if (bodies_of(e.params).empty() && e.op != Op::recursive_call &&
        !any_of(in, [&](int v) { return !is_shared(v) && !is_constant(v); }))
      return to_prologue(g, e, in, of);
    note_line(e.where);
    if (picks_of_many(g, e, in) && !makes(in[0])) {
      of[e.outputs[0]] = picked(g, e, in);
      return;
    }
    if (overwrites_few(g, e, in)) {
      const int where = positions(gather_there(g, e), in, 1, g.aval(updated(e)).shape);
      block().updates.push_back({static_cast<int>(block().equations.size()), where});
    }
    of[e.outputs[0]] = add(g, e, in);
    for (std::size_t k = 1; k < e.outputs.size(); ++k)
      of[e.outputs[k]] = block().equations.back().outputs[k];
  }
  /// The equation as one of the block; its first result.
  int add(const GraphBody& g, const Equation& e, const Values& in) {
    Equation copy = e;
    copy.inputs.clear();
    for (int v : in) copy.inputs.push_back(v);
    for (Var& v : copy.outputs) v = value(g.aval(v));
    block().equations.push_back(std::move(copy));
    return block().equations.back().outputs[0];
  }

  // --- some elements of large arrays -------------------------------------------------------------

  static Var updated(const Equation& e) { return e.inputs[written_operand(e.op)]; }
  bool is_few_of_many(const Aval& few, const Aval& many, int array) const {
    return in_place_ && !is_shared(array) && !is_constant(array) && many.bytes() >= least_bytes &&
           many.elements() <= most_positions && few.elements() > 0 &&
           few.elements() <= many.elements() / least_share;
  }
  bool picks_of_many(const GraphBody& g, const Equation& e, const Values& in) const {
    return (e.op == Op::gather || e.op == Op::dynamic_slice || e.op == Op::slice) &&
           is_few_of_many(g.aval(e.outputs[0]), g.aval(e.inputs[0]), in[0]);
  }
  bool overwrites_few(const GraphBody& g, const Equation& e, const Values& in) const {
    const DType d = g.aval(e.outputs[0]).dtype;
    // Sums of 16-bit numbers are rounded once, at the end.
    if (e.op == Op::scatter_add && (d == DType::f16 || d == DType::bf16 || d == DType::bool_))
      return false;
    return (e.op == Op::dynamic_update_slice || e.op == Op::scatter || e.op == Op::scatter_add) &&
           !is_complex(d) && is_few_of_many(g.aval(updated(e)), g.aval(e.inputs[0]), in[0]);
  }
  /// Is it made by an equation of this block, all of it?
  bool makes(int v) const {
    const FlowDraft::Block& b = draft_.blocks[now_];
    for (std::size_t k = 0; k < b.equations.size(); ++k)
      if (any_of(b.equations[k].outputs, [v](Var made) { return made == v; }))
        return none_of(b.updates, [&](const FlowDraft::Update& u) {
          return u.equation == static_cast<int>(k);
        });
    return false;
  }
  /// The numbers of an array's elements from 1 on, in its shape.
  int all_positions(Shape shape) {
    for (const auto& [known, v] : all_positions_)
      if (known == shape) return v;
    GraphBody g;
    const Aval row(DType::i32, Shape{shape.elements()});
    const Var from_zero = add_equation(g, Op::iota, make_params(IotaParams{row, 0}), {}),
              one = add_equation(g, Op::full,
                                 make_params(FullParams{Scalar(1).converted(DType::i32), row}), {}),
              from_one = add_equation(g, Op::add, {}, {from_zero, one});
    g.outputs.push_back(add_equation(g, Op::reshape, make_params(ShapeParams{shape}), {from_one}));
    Values of(g.avals.size(), -1);
    for (const Equation& e : g.equations) {
      Values in;
      for (Var v : e.inputs) in.push_back(of[v]);
      to_prologue(g, e, in, of);
    }
    all_positions_.push_back({shape, of[g.outputs[0]]});
    return of[g.outputs[0]];
  }
  /// What reads the elements that an update writes.
  static Equation gather_there(const GraphBody& g, const Equation& e) {
    Equation there = e;
    const Aval &array = g.aval(e.inputs[0]), &few = g.aval(updated(e));
    if (e.op == Op::dynamic_update_slice) {
      there.op = Op::dynamic_slice;
      there.params = make_params(ShapeParams{few.shape});
    } else {
      there.op = Op::gather;
      there.params = make_params(gather_of(e.as<ScatterParams>(), array.shape, few.shape));
    }
    return there;
  }
  /// Positions of the elements that `there` reads of its operand. `skipped`: operands of `in`
  /// behind the array that it has not.
  int positions(Equation there, const Values& in, int skipped, Shape shape) {
    GraphBody g;
    Values values;
    there.inputs.clear();
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool is_written =
          skipped > 0 && i == static_cast<std::size_t>(skipped_operand(there.op));
      if (is_written) continue;
      values.push_back(i == 0 ? all_positions(draft_.values[in[0]].aval.shape) : in[i]);
      there.inputs.push_back(g.fresh(draft_.values[values.back()].aval));
    }
    there.outputs.clear();
    there.outputs.push_back(g.fresh(Aval(DType::i32, shape)));
    Values of(g.avals.size(), -1);
    straight(g, there, values, of);
    return of[there.outputs[0]];
  }
  static int skipped_operand(Op read) { return read == Op::dynamic_slice ? 1 : 2; }
  /// What the equation picks of an array, which the block reads when it begins.
  int picked(const GraphBody& g, const Equation& e, const Values& in) {
    const int where = positions(e, in, 0, g.aval(e.outputs[0]).shape);
    go_on_in_next_block();
    note_line(e.where);
    const int made = value(g.aval(e.outputs[0]));
    block().loads.push_back({made, in[0], where, true});
    return made;
  }

  Values structure(const GraphBody& g, const Equation& e, const Values& in, bool tail) {
    switch (e.op) {
      case Op::cond: return cond(e, in, tail);
      case Op::while_: return finish(while_loop(e, in), tail);
      case Op::scan: return finish(scan(g, e, in), tail);
      case Op::recursive_call: return recursive_call(e, in, tail);
      default: {
        const auto& p = e.as<CallParams>();
        if (e.op != Op::call || !p.function || counts_.of(p.body.get()) < 2)
          return body(*p.body, in, tail);
        return call(p.body, p.function->name, nullptr, e, in, tail);
      }
    }
  }
  Values finish(const Values& results, bool tail) {
    if (tail) leave(results);
    return results;
  }

  Values cond(const Equation& e, const Values& in, bool tail) {
    const auto& p = e.as<CondParams>();
    note_line(e.where);
    const int from = now_;
    block().exit = FlowGraph::Exit::branch;
    block().decides = in[0];
    const Values rest(in.begin() + 1, in.end());
    Values results;
    if (!tail)
      for (Var v : p.branches[0]->outputs) results.push_back(value(p.branches[0]->aval(v)));
    Vec<int> ends;
    for (const GraphRef& branch : p.branches) {
      const int entry = begin_block();
      draft_.blocks[from].targets.push_back(entry);
      const Values made = body(*branch, rest, tail);
      if (tail) continue;
      copy(results, made);
      ends.push_back(now_);
    }
    if (tail) return {};
    const int next = begin_block();
    for (int end : ends) {
      draft_.blocks[end].exit = FlowGraph::Exit::jump;
      draft_.blocks[end].targets.push_back(next);
    }
    return results;
  }
  void copy(const Values& to, const Values& from) {
    for (std::size_t k = 0; k < to.size(); ++k) block().copies.push_back({to[k], from[k]});
  }

  int index_of(int predicate) {
    Equation e;
    e.op = Op::convert;
    e.params = make_params(ConvertParams{DType::i32, false});
    e.inputs.push_back(predicate);
    const int made = value(Aval(DType::i32, draft_.values[predicate].aval.shape));
    e.outputs.push_back(made);
    block().equations.push_back(std::move(e));
    return made;
  }
  /// Goes to `yes` where the predicate holds, else to `no`.
  void branch(int predicate, int no, int yes) {
    const int index = index_of(predicate);
    block().exit = FlowGraph::Exit::branch;
    block().decides = index;
    block().targets.push_back(no);
    block().targets.push_back(yes);
  }

  // Its condition is asked in front of the loop and at the end of its body, so that an iteration is
  // one stretch.
  Values while_loop(const Equation& e, const Values& in) {
    const auto& p = e.as<WhileParams>();
    const std::size_t carries = p.carries;
    note_line(e.where);
    Values looped = in;
    for (std::size_t i = 0; i < carries; ++i) looped[i] = value(draft_.values[in[i]].aval);
    const Values carried(looped.begin(), looped.begin() + static_cast<std::ptrdiff_t>(carries));
    const auto ask = [&](const Values& now) {
      Values all = now;
      all.insert(all.end(), in.begin() + static_cast<std::ptrdiff_t>(carries), in.end());
      return body(*p.condition, all)[0];
    };
    const Values init(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(carries));
    const int first = ask(init), before = now_;
    copy(carried, init);
    const int entry = begin_block();
    const Values made = body(*p.body, looped);
    const int again = ask(made), end = now_;
    copy(carried, made);
    const int done = begin_block();
    now_ = before;
    branch(first, done, entry);
    now_ = end;
    branch(again, done, entry);
    now_ = done;
    return carried;
  }

  Values scan(const GraphBody& g, const Equation& e, const Values& in) {
    const auto& p = e.as<ScanParams>();
    const std::size_t carries = p.carries, looped = carries + p.sequences;
    note_line(e.where);
    Values results;
    for (Var v : e.outputs) results.push_back(value(g.aval(v)));
    const int counter = value(Aval(DType::i32, Shape{}));
    const int start = integer(p.reverse ? p.length - 1 : 0);
    const Values init(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(carries));
    const Values carried(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(carries));
    copy(carried, init);
    // What is given in iterations that there are not is nothing.
    if (p.length == 0) {
      for (std::size_t k = carries; k < results.size(); ++k)
        block().copies.push_back({results[k], zeros(draft_.values[results[k]].aval)});
      return results;
    }
    block().copies.push_back({counter, start});
    const int before = now_, entry = begin_block();
    draft_.blocks[before].exit = FlowGraph::Exit::jump;
    draft_.blocks[before].targets.push_back(entry);
    Values inputs = in;
    for (std::size_t i = 0; i < carries; ++i) inputs[i] = carried[i];
    for (std::size_t i = carries; i < looped; ++i) {
      const Aval& all = draft_.values[in[i]].aval;
      const Shape row(std::span<const std::int64_t>(all.shape.begin() + 1, all.shape.end()));
      const int element = value(Aval(all.dtype, row));
      block().loads.push_back({element, in_memory(in[i]), counter});
      inputs[i] = element;
    }
    const Values made = body(*p.body, inputs);
    for (std::size_t k = carries; k < results.size(); ++k)
      block().stores.push_back({results[k], made[k], counter});
    copy(carried, Values(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(carries)));
    const int next = binary(Op::add, counter, integer(p.reverse ? -1 : 1), DType::i32);
    const int again = p.reverse ? binary(Op::ge, next, integer(0), DType::bool_)
                                : binary(Op::lt, next, integer(p.length), DType::bool_);
    block().copies.push_back({counter, next});
    const int end = now_, done = begin_block();
    now_ = end;
    branch(again, done, entry);
    now_ = done;
    return results;
  }
  int constant(const Scalar& number, const Aval& aval) {
    const int made = value(aval);
    draft_.values[made].constant = static_cast<int>(draft_.constants.size());
    Equation e;
    e.op = Op::full;
    e.params = make_params(FullParams{number, aval});
    e.outputs.push_back(0);
    draft_.constants.push_back(std::move(e));
    return made;
  }
  int integer(std::int64_t n) {
    return constant(Scalar(n).converted(DType::i32), Aval(DType::i32, Shape{}));
  }
  int zeros(const Aval& aval) { return constant(Scalar(false).converted(aval.dtype), aval); }
  int binary(Op op, int a, int b, DType dtype) {
    Equation e;
    e.op = op;
    e.inputs.push_back(a);
    e.inputs.push_back(b);
    const int made = value(Aval(dtype, Shape{}));
    e.outputs.push_back(made);
    block().equations.push_back(std::move(e));
    return made;
  }

  // --- functions ---------------------------------------------------------------------------------

  /// A function with the shared values that it is given: those are no parameters.
  struct Instance {
    const GraphBody* body;
    Values shared;  ///< per input; −1: lanes have their own
    int function;
  };

  Values recursive_call(const Equation& e, const Values& in, bool tail) {
    const RecursiveFunction* f = e.as<RecursionParams>().function;
    return call(f->body, f->name, f, e, in, tail);
  }

  Values call(const GraphRef& g, const std::string& name, const RecursiveFunction* recursion,
              const Equation& e, const Values& in, bool tail) {
    note_line(e.where);
    Values shared;
    for (int v : in) shared.push_back(is_shared(v) ? v : -1);
    if (is_one_too_many(g.get(), shared)) shared.assign(shared.size(), -1);
    const int callee = instance(*g, name, recursion, shared);
    FlowDraft::Block& b = block();
    for (std::size_t i = 0; i < in.size(); ++i)
      if (shared[i] < 0) b.arguments.push_back({draft_.functions[callee].parameters[i], in[i]});
    b.exit = FlowGraph::Exit::call;
    b.callee = callee;
    b.called_at = e.where;
    if (tail && callee == function_ && !counts_.remembers()) {
      b.tail = true;
      return {};
    }
    const int from = now_, next = begin_block();
    draft_.blocks[from].targets.push_back(next);
    Values results;
    for (int given : draft_.functions[callee].results) {
      const int own = value(draft_.values[given].aval);
      block().loads.push_back({own, given, -1});
      results.push_back(own);
    }
    return finish(results, tail);
  }

  bool is_one_too_many(const GraphBody* g, const Values& shared) const {
    int count = 0;
    for (const Instance& i : instances_) {
      if (i.body != g) continue;
      if (i.shared == shared) return false;
      ++count;
    }
    return count >= most_instances;
  }
  int instance(const GraphBody& g, const std::string& name, const RecursiveFunction* recursion,
               const Values& shared) {
    for (const Instance& i : instances_)
      if (i.body == &g && i.shared == shared) return i.function;
    const int callee = static_cast<int>(draft_.functions.size());
    instances_.push_back({&g, shared, callee});
    draft_.functions.emplace_back();
    const int function = std::exchange(function_, callee), block = now_;
    FlowDraft::Function made;
    made.name = name;
    made.recursion = recursion;
    Values inputs;
    for (std::size_t i = 0; i < shared.size(); ++i) {
      made.parameters.push_back(shared[i] < 0 ? value(g.aval(g.inputs[i])) : -1);
      inputs.push_back(shared[i] < 0 ? made.parameters[i] : shared[i]);
    }
    for (Var v : g.outputs) made.results.push_back(value(g.aval(v)));
    made.entry = begin_block();
    draft_.functions[callee] = std::move(made);
    function_body(g, inputs);
    function_ = function;
    now_ = block;
    return callee;
  }

  CallCounts counts_;
  const bool in_place_;
  Vec<std::pair<Shape, int>> all_positions_;
  LaneWork work_;
  FlowDraft draft_;
  int function_ = 0, now_ = 0;
  Vec<Instance> instances_;
  GraphBody prologue_;
  Vec<std::pair<int, Var>> in_prologue_;
};

}  // namespace flow_build

FlowGraph flow_graph(const GraphRef& body, const Vec<bool>& mapped, bool in_place) {
  return finished(flow_build::Builder(body, mapped, in_place).take());
}

}  // namespace vt::detail
