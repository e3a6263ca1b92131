// What the processes of a mesh share: the walk that follows values through a Graph and writes down
// where they become a process's own.
#include "shared_values.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <vt/detail/message.hpp>

#include "../../trace/base/hash_map.hpp"
#include "../../trace/base/stack.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "../../trace/processes/world.hpp"
#include "../../trace/record/node.hpp"

namespace vt::detail {

namespace shared_values {

using Mesh = std::span<const AxisRef>;

/// Which axis of the mesh it is; −1: another one.
int place_of(Mesh mesh, const NamedAxis& axis) {
  for (std::size_t k = 0; k < mesh.size(); ++k)
    if (mesh[k].get() == &axis) return static_cast<int>(k);
  return -1;
}
Differs bit(int place) { return Differs{1} << place; }
/// So many bits above that of an axis one tells whether the value depends on an input without a
/// spread along it. (A mesh has 16 axes at the most.)
constexpr int direct_bits = 16;

/// Along which axes the equation communicates, itself or in a sub-graph.
Differs communicates_along(Mesh mesh, const Equation& e);
Differs communicates_along(Mesh mesh, const GraphBody& g) {
  Differs all = 0;
  for (const Equation& e : g.equations) all |= communicates_along(mesh, e);
  return all;
}
Differs communicates_along(Mesh mesh, const Equation& e) {
  if (!communicates(e)) return 0;
  if (is_collective(e.op)) {
    const int place = place_of(mesh, *e.as<CollectiveParams>().axis);
    return place < 0 ? 0 : bit(place);
  }
  Differs all = 0;
  for (const GraphRef& body : bodies_of(e.params)) all |= communicates_along(mesh, *body);
  return all;
}

/// The user's line of the first collective along one of these axes.
CallSite line_of(Mesh mesh, const GraphBody& g, Differs axes) {
  for (const Equation& e : g.equations) {
    if ((communicates_along(mesh, e) & axes) == 0) continue;
    if (is_collective(e.op)) return e.where;
    for (const GraphRef& body : bodies_of(e.params))
      if ((communicates_along(mesh, *body) & axes) != 0) return line_of(mesh, *body, axes);
  }
  return {};
}

/// Throws if processes that meet in `e` do not agree on its predicate.
void check_predicate(Mesh mesh, const Equation& e, Differs predicate, const char* what) {
  const Differs apart = predicate & communicates_along(mesh, e);
  if (apart == 0) return;
  std::string names;
  for (std::size_t k = 0; k < mesh.size(); ++k)
    if ((apart & bit(static_cast<int>(k))) != 0)
      names += (names.empty() ? "\"" : "\", \"") + mesh[k]->name;
  const GraphBody& body = *bodies_of(e.params).back();
  CallSite line = line_of(mesh, body, apart);
  for (const GraphRef& other : bodies_of(e.params))
    if (!line.file) line = line_of(mesh, *other, apart);
  fail(ErrorKind::transform,
       formatted("vt::shard_map: a collective over {}\" in a {} whose predicate differs between "
                 "processes{}: some would come to it and wait for those that do not. Make the "
                 "predicate the same on all, as by vt::pmax or vt::psum; a solver or integrator "
                 "is such a loop, and is called around vt::shard_map",
                 names, what, at(e.where)),
       line);
}

/// The value of the first process along these axes, of an integer or a bool. Where processes round
/// differently they may not agree on what they have computed of what they share.
Var of_first(Mesh mesh, GraphBody& g, Var v, Differs axes, CallSite where) {
  const Aval aval = g.aval(v), number(DType::i32, aval.shape), one(DType::i32, Shape{});
  const auto zero = [&](const Aval& a) {
    return add_equation(g, Op::full, make_params(FullParams{Scalar(0).converted(a.dtype), a}), {},
                        where);
  };
  Var all = v;
  if (aval.dtype != number.dtype)
    all = add_equation(g, Op::convert, make_params(ConvertParams{number.dtype}), {all}, where);
  for (std::size_t k = 0; k < mesh.size(); ++k) {
    if ((axes & bit(static_cast<int>(k))) == 0) continue;
    const Var index = add_equation(g, Op::axis_index,
                                   make_params(CollectiveParams{mesh[k], {}, true}), {}, where);
    Var is_first = add_equation(g, Op::eq, {}, {index, zero(one)}, where);
    if (!aval.shape.empty())
      is_first = add_equation(g, Op::broadcast_in_dim, make_params(BroadcastParams{aval.shape, {}}),
                              {is_first}, where);
    const Var given = add_equation(g, Op::select, {}, {is_first, all, zero(number)}, where);
    all =
        add_equation(g, Op::psum, make_params(CollectiveParams{mesh[k], {}, true}), {given}, where);
  }
  if (aval.dtype == number.dtype) return all;
  return add_equation(g, Op::ne, {}, {all, zero(number)}, where);
}

/// May processes take two ways at a predicate that they share? Asked where they would meet there.
bool may_part(CallSite where) {
  const auto name = [] { return std::string("vt::shard_map"); };
  const auto code = [] { return code_of_process(); };
  return World::current().is_mixed(code, {name, where});
}

/// A derivative rule of the user's with collectives inside speaks of processes that each have their
/// own; it is refused where a transform from outside asks for it.
std::shared_ptr<const CustomRule> refused_outside(const CustomRule& rule, CallSite where) {
  auto refused = std::make_shared<CustomRule>(rule);
  const std::string message =
      rule.name +
      ": it has collectives inside, and cannot be differentiated from outside of its vt::shard_map;"
      " differentiate inside";
  const FlatFunction refuse = [message, where](std::span<const Tensor>) -> std::vector<Tensor> {
    fail(ErrorKind::transform, message, where);
  };
  if (refused->jvp) refused->jvp = refuse;
  if (refused->transpose) refused->transpose = refuse;
  if (refused->forward) refused->forward = refuse;
  if (refused->backward) refused->backward = refuse;
  if (refused->own) {
    auto own = std::make_shared<OwnDerivative>(*refused->own);
    const LinearRule refuse_linear =
        [message, where](std::span<const Tensor>, std::span<const Tensor>) -> std::vector<Tensor> {
      fail(ErrorKind::transform, message, where);
    };
    if (own->forward) own->forward = refuse_linear;
    if (own->transpose) own->transpose = refuse_linear;
    own->linearize = [message, where](std::span<const Tensor>, const Vec<bool>&) -> Linearization {
      fail(ErrorKind::transform, message, where);
    };
    refused->own = std::move(own);
    refused->quiet = nullptr;
  }
  return refused;
}

/// The body of an equation, for operands that differ so.
struct Body {
  GraphRef graph;
  Vec<Differs> outputs;
  std::optional<CallSite> combines;  ///< see Walk::combines
};
/// Bodies that were walked: loops come to their fixpoint at each level of nesting anew.
class Bodies {
 public:
  explicit Bodies(Mesh mesh) : mesh(mesh) {}
  Body of(const GraphRef& from, const Vec<Differs>& operands, const Vec<Differs>& wanted);
  const Mesh mesh;

 private:
  struct Known {
    GraphRef from;
    Vec<Differs> operands, wanted;
    Body body;
  };
  HashMap<const GraphBody*, Vec<Known>> known_;
};

/// One Graph, or the body of an equation.
class Walk {
 public:
  Walk(const GraphBody& from, Bodies& bodies)
      : from_(from), bodies_(bodies), mesh_(bodies.mesh), copy_(from.avals, to_) {}

  SharedGraph run(const Vec<Differs>& inputs, const Vec<Differs>& wanted) {
    for (std::size_t i = 0; i < from_.inputs.size(); ++i) {
      const Var v = copy_[from_.inputs[i]];
      to_.inputs.push_back(v);
      set(v, inputs[i]);
    }
    walk(from_, copy_);
    SharedGraph result;
    for (std::size_t k = 0; k < from_.outputs.size(); ++k) {
      const Var v = copy_[from_.outputs[k]];
      const Differs all = differs(v) | (wanted.empty() ? 0 : wanted[k]);
      to_.outputs.push_back(spread(v, all, {}));
      result.outputs.push_back(all);
    }
    result.graph = std::move(to_);
    return result;
  }

  /// The line of a collective that is shared already, and that an input comes to without a spread.
  const std::optional<CallSite>& combines() const { return combines_; }

 private:
  Differs differs(Var v) const {
    return static_cast<std::size_t>(v) < differs_.size() ? differs_[v] : 0;
  }
  void set(Var v, Differs d) {
    if (static_cast<std::size_t>(v) >= differs_.size())
      differs_.resize(static_cast<std::size_t>(v) + 1, 0);
    differs_[v] = d;
  }

  /// Cotangents never come to numbers, or to what is no float.
  bool has_cotangents(Var v) const {
    const DType d = to_.aval(v).dtype;
    return (is_float(d) || is_complex(d)) && !is_literal_.contains(v);
  }

  /// The value as one that differs along all of these axes.
  Var spread(Var v, Differs wanted, CallSite where) {
    if (!has_cotangents(v)) return v;
    for (std::size_t k = 0; k < mesh_.size(); ++k) {
      const Differs one = bit(static_cast<int>(k));
      if ((wanted & one) == 0 || (differs(v) & one) != 0) continue;
      const std::uint64_t key = static_cast<std::uint64_t>(v) * 32 + k;
      if (const auto known = spreads_.find(key); known != spreads_.end()) {
        v = known->second;
        continue;
      }
      const Differs before = differs(v);
      const Var own = add_equation(to_, Op::spread,
                                   make_params(CollectiveParams{mesh_[k], {}, true}), {v}, where);
      set(own, before | one);
      spreads_.emplace(key, own);
      v = own;
    }
    return v;
  }

  Differs joined(std::span<const Var> values) const {
    Differs all = 0;
    for (Var v : values) all |= differs(v);
    return all;
  }

  void walk(const GraphBody& g, Copier& copy) {
    need_stack({});
    for (const Equation& e : g.equations) {
      Equation made = e;
      made.inputs.clear();
      for (Var v : e.inputs) made.inputs.push_back(copy[v]);
      if (is_collective(e.op) && collective(made, e, copy)) continue;
      switch (e.op) {
        case Op::call:
          if (e.as<CallParams>().rule) break;
          call(e, made, copy);
          continue;
        case Op::checkpoint:
        case Op::custom_jvp:
        case Op::custom_vjp:
        case Op::custom_vmap:
          if (e.op != Op::checkpoint && !communicates(e)) break;
          body_of_call(e, made, copy);
          continue;
        case Op::cond: cond(e, made, copy); continue;
        case Op::while_:
        case Op::scan: loop(e, made, copy); continue;
        default: break;
      }
      if (communicates(e))
        fail(ErrorKind::transform,
             "vt::shard_map: a collective between processes inside of vt::" +
                 std::string(name_of(e.op)),
             e.where);
      // What a function with effects gives may be anything.
      const bool unknown = e.op == Op::callback && !e.as<CallbackParams>().pure;
      const Differs all = unknown ? bit(static_cast<int>(mesh_.size())) - 1
                                  : joined({made.inputs.data(), made.inputs.size()});
      for (Var& v : made.inputs) v = spread(v, all, e.where);
      place(e, std::move(made), copy, Vec<Differs>(e.outputs.size(), all));
    }
  }

  void note(const Vec<Body>& bodies) {
    for (const Body& b : bodies)
      if (b.combines && !combines_) combines_ = b.combines;
  }

  /// Writes the equation down. `all`: of its results.
  void place(const Equation& e, Equation made, Copier& copy, const Vec<Differs>& all) {
    made.outputs.clear();
    for (std::size_t i = 0; i < e.outputs.size(); ++i) {
      const Var v = copy[e.outputs[i]];
      made.outputs.push_back(v);
      set(v, all[i]);
      if (e.op == Op::full || e.op == Op::iota || e.op == Op::constant)
        is_literal_.emplace(v, true);
    }
    to_.equations.push_back(std::move(made));
  }

  // --- collectives -------------------------------------------------------------------------------

  /// False: over lanes, which is an op like others.
  bool collective(Equation& made, const Equation& e, Copier& copy) {
    const auto& p = e.as<CollectiveParams>();
    const int place_of_axis = place_of(mesh_, *p.axis);
    if (place_of_axis < 0) return false;
    const Differs one = bit(place_of_axis);
    if (e.op == Op::axis_index) {
      place(e, std::move(made), copy, {one});
      return true;
    }
    const Var x = made.inputs[0];
    const bool own = (differs(x) & one) != 0;
    const bool joins =
        e.op == Op::psum || e.op == Op::pmax || e.op == Op::pmin || e.op == Op::all_gather;
    const Differs direct = one << direct_bits;
    if (e.op == Op::spread && p.shared) {
      made.inputs[0] = spread(x, differs(x) | one, e.where);
      place(e, std::move(made), copy, {(differs(x) & ~direct) | one});
      return true;
    }
    if (p.shared && (differs(x) & direct) != 0 && !combines_) combines_ = e.where;
    if (joins && !own) {
      const Var v = of_shared(e, x, p.axis->size);
      copy.bind(e.outputs[0], v);
      set(v, differs(x));
      return true;
    }
    CollectiveParams shared = p;
    shared.shared = true;
    made.params = make_params(std::move(shared));
    if (!joins) made.inputs[0] = spread(x, differs(x) | one, e.where);
    place(e, std::move(made), copy, {joins ? differs(x) & ~one : differs(x) | one});
    return true;
  }

  /// What a collective makes of a value that all processes share.
  Var of_shared(const Equation& e, Var x, std::int64_t size) {
    if (e.op == Op::pmax || e.op == Op::pmin) return x;
    const Aval aval = to_.aval(x);
    if (e.op == Op::all_gather) {
      BroadcastParams p;
      p.shape = Shape{size};
      p.shape.append(aval.shape.begin(), aval.shape.end());
      for (int a = 0; a < aval.shape.rank(); ++a) p.axes.push_back(a + 1);
      return add_equation(to_, Op::broadcast_in_dim, make_params(std::move(p)), {x}, e.where);
    }
    const DType own = aval.dtype, wide = own == DType::f16 || own == DType::bf16 ? DType::f32 : own;
    const auto as = [&](Var v, DType d) {
      return to_.aval(v).dtype == d
                 ? v
                 : add_equation(to_, Op::convert, make_params(ConvertParams{d}), {v}, e.where);
    };
    const Var count = add_equation(
        to_, Op::full, make_params(FullParams{Scalar(size).converted(wide), Aval(wide, Shape{})}),
        {}, e.where);
    is_literal_.emplace(count, true);
    return as(add_equation(to_, Op::mul, {}, {as(x, wide), count}, e.where), own);
  }

  // --- calls -------------------------------------------------------------------------------------

  /// As if the equations stood here.
  void call(const Equation& e, const Equation& made, Copier& copy) {
    const GraphBody& body = *e.as<CallParams>().body;
    Copier inside(body.avals, to_);
    for (std::size_t i = 0; i < body.inputs.size(); ++i)
      inside.bind(body.inputs[i], made.inputs[i]);
    walk(body, inside);
    for (std::size_t i = 0; i < body.outputs.size(); ++i)
      copy.bind(e.outputs[i], inside[body.outputs[i]]);
  }

  void body_of_call(const Equation& e, Equation& made, Copier& copy) {
    CallParams p = e.as<CallParams>();
    const Vec<Body> bodies = settled(made, 0, 0, [&](const Vec<Differs>& operands) {
      return Vec<Body>{bodies_.of(p.body, operands, {})};
    });
    p.body = bodies[0].graph;
    if (p.rule) p.rule = refused_outside(*p.rule, e.where);
    made.params = make_params(std::move(p));
    note(bodies);
    place(e, std::move(made), copy, bodies[0].outputs);
  }

  // --- branches and loops ------------------------------------------------------------------------

  /// Bodies for the operands from number `first` on, in which none is spread again and again: one
  /// that bodies read only as their own is spread outside, but for the first `carries`. `make`: the
  /// bodies for operands that differ so.
  template <class Make>
  Vec<Body> settled(Equation& made, std::size_t first, std::size_t carries, const Make& make) {
    for (;;) {
      Vec<Differs> operands;
      for (std::size_t i = first; i < made.inputs.size(); ++i)
        operands.push_back(differs(made.inputs[i]));
      Vec<Body> bodies = make(operands);
      bool again = false;
      for (std::size_t i = carries; i < operands.size(); ++i) {
        const Differs more = only_spread(bodies, i);
        if (more == 0 || !has_cotangents(made.inputs[first + i])) continue;
        made.inputs[first + i] = spread(made.inputs[first + i], operands[i] | more, made.where);
        again = again || differs(made.inputs[first + i]) != operands[i];
      }
      if (!again) return bodies;
    }
  }

  /// The axes along which all readers of input i take it spread; none if one takes it as it is.
  Differs only_spread(const Vec<Body>& bodies, std::size_t i) const {
    Differs axes = bit(static_cast<int>(mesh_.size())) - 1;
    bool read = false;
    for (const Body& b : bodies) {
      const Var v = b.graph->inputs[i];
      for (Var o : b.graph->outputs)
        if (o == v) return 0;
      for (const Equation& e : b.graph->equations) {
        if (std::find(e.inputs.begin(), e.inputs.end(), v) == e.inputs.end()) continue;
        if (e.op != Op::spread) return 0;
        read = true;
        axes &= bit(place_of(mesh_, *e.as<CollectiveParams>().axis));
      }
    }
    return read ? axes : 0;
  }

  void cond(const Equation& e, Equation& made, Copier& copy) {
    CondParams p = e.as<CondParams>();
    const Differs predicate = differs(made.inputs[0]);
    check_predicate(mesh_, e, predicate, "branch of vt::cond");
    if (const Differs meet = communicates_along(mesh_, e); meet != 0 && may_part(e.where)) {
      made.inputs[0] = of_first(mesh_, to_, made.inputs[0], meet, e.where);
      set(made.inputs[0], predicate);
    }
    // A spread inside would make a psum of the derivative's branch, to which not all come.
    for (std::size_t i = 1; i < made.inputs.size(); ++i)
      made.inputs[i] = spread(made.inputs[i], predicate, e.where);
    const Vec<Body> bodies = settled(made, 1, 0, [&](const Vec<Differs>& operands) {
      Vec<Differs> all(e.outputs.size(), predicate);
      for (const GraphRef& branch : p.branches) {
        const Vec<Differs> own = bodies_.of(branch, operands, {}).outputs;
        for (std::size_t k = 0; k < all.size(); ++k) all[k] |= own[k];
      }
      Vec<Body> branches;
      for (const GraphRef& branch : p.branches)
        branches.push_back(bodies_.of(branch, operands, all));
      return branches;
    });
    p.branches.clear();
    for (const Body& b : bodies) p.branches.push_back(b.graph);
    made.params = make_params(std::move(p));
    note(bodies);
    place(e, std::move(made), copy, bodies[0].outputs);
  }

  void loop(const Equation& e, Equation& made, Copier& copy) {
    const bool is_while = e.op == Op::while_;
    const std::size_t carries = carries_of(e);
    const GraphRef body = loop_body(e);
    // What differs in a carry after an iteration differs in it from then on.
    Vec<Differs> carried;
    for (std::size_t i = 0; i < carries; ++i) carried.push_back(differs(made.inputs[i]));
    Differs predicate = 0;
    const Vec<Body> bodies = settled(made, 0, carries, [&](Vec<Differs> operands) {
      for (bool grew = true; grew;) {
        grew = false;
        for (std::size_t i = carries; i < operands.size(); ++i) {  // as those of a branch
          made.inputs[i] = spread(made.inputs[i], predicate, e.where);
          operands[i] |= differs(made.inputs[i]);
        }
        for (std::size_t i = 0; i < carries; ++i) operands[i] |= carried[i];
        if (is_while)
          predicate = bodies_.of(e.as<WhileParams>().condition, operands, {}).outputs[0];
        const Vec<Differs> next = bodies_.of(body, operands, {}).outputs;
        for (std::size_t i = 0; i < carries; ++i) {
          const Differs all = carried[i] | next[i] | predicate;
          grew = grew || all != carried[i];
          carried[i] = all;
        }
      }
      Vec<Body> made_bodies;
      if (is_while) made_bodies.push_back(bodies_.of(e.as<WhileParams>().condition, operands, {}));
      Vec<Differs> wanted(body->outputs.size(), 0);
      std::copy(carried.begin(), carried.end(), wanted.begin());
      made_bodies.push_back(bodies_.of(body, operands, wanted));
      return made_bodies;
    });
    check_predicate(mesh_, e, predicate, "vt::while_loop");
    for (std::size_t i = 0; i < carries; ++i)
      made.inputs[i] = spread(made.inputs[i], carried[i], e.where);
    Vec<GraphRef> graphs;
    for (const Body& b : bodies) graphs.push_back(b.graph);
    const Differs meet = is_while ? communicates_along(mesh_, e) : 0;
    if (meet != 0 && may_part(e.where)) {
      auto condition = std::make_shared<GraphBody>(*graphs[0]);
      condition->outputs[0] = of_first(mesh_, *condition, condition->outputs[0], meet, e.where);
      graphs[0] = std::move(condition);
    }
    made.params = with_bodies(e.params, {graphs.data(), graphs.size()});
    note(bodies);
    place(e, std::move(made), copy, bodies.back().outputs);
  }

  std::optional<CallSite> combines_;
  const GraphBody& from_;
  Bodies& bodies_;
  const Mesh mesh_;
  GraphBody to_;
  Copier copy_;
  Vec<Differs> differs_;                 ///< per Var of `to_`
  HashMap<std::uint64_t, Var> spreads_;  ///< by Var and axis
  HashMap<Var, bool> is_literal_;        ///< per Var of `to_`
};

Body Bodies::of(const GraphRef& from, const Vec<Differs>& operands, const Vec<Differs>& wanted) {
  for (const Known& k : known_[from.get()])
    if (k.operands == operands && k.wanted == wanted) return k.body;
  Walk walk(*from, *this);
  SharedGraph made = walk.run(operands, wanted);
  const Body body{std::make_shared<const GraphBody>(std::move(made.graph)), std::move(made.outputs),
                  walk.combines()};
  known_[from.get()].push_back({from, operands, wanted, body});
  return body;
}

}  // namespace shared_values

SharedGraph with_shared_values(const GraphBody& g, std::span<const AxisRef> mesh,
                               const Vec<Differs>& inputs, const Vec<Differs>& wanted) {
  shared_values::Bodies bodies(mesh);
  SharedGraph result = shared_values::Walk(g, bodies).run(inputs, wanted);
  debug_check(result.graph, "vt::shard_map");
  return result;
}

namespace shared_values {

/// The axes of meshes along which it has collectives that are shared.
void add_axes(const GraphBody& g, Vec<AxisRef>& axes) {
  for (const Equation& e : g.equations) {
    if (is_collective(e.op)) {
      const auto& p = e.as<CollectiveParams>();
      if (p.shared && std::find(axes.begin(), axes.end(), p.axis) == axes.end())
        axes.push_back(p.axis);
    }
    for (const GraphRef& body : bodies_of(e.params)) add_axes(*body, axes);
  }
}

}  // namespace shared_values

OutsideUse outside_use(const GraphBody& g, std::size_t tangents) {
  using namespace shared_values;
  OutsideUse use;
  Vec<AxisRef> axes;
  add_axes(g, axes);
  if (axes.empty()) return use;
  Bodies bodies({axes.data(), axes.size()});
  Walk walk(g, bodies);
  SharedGraph walked;
  const Differs every = bit(static_cast<int>(axes.size())) - 1;
  Vec<Differs> inputs(g.inputs.size(), 0);
  std::fill_n(inputs.end() - tangents, tangents, every << direct_bits);
  try {
    walked = walk.run(inputs, {});
  } catch (const Error&) {
    return use;  // a rule of the user's that nobody follows
  }
  for (const Differs d : walked.outputs)
    use.has_own_outputs = use.has_own_outputs || (d & every) != 0;
  use.has_own_inputs = walk.combines().has_value();
  use.where = walk.combines().value_or(CallSite());
  return use;
}

}  // namespace vt::detail
