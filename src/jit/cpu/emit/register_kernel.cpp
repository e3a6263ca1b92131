// From a register kernel to LLVM code: its branches and loops, and where its values are kept. Lanes
// run side by side in vectors. Where they take different branches, each branch runs under the mask
// of the lanes that take it, if there are any; a loop goes on until its last lane has stopped. A
// value that is the same for all lanes is a scalar, and a predicate made of such values is an
// ordinary branch.
#include "register_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/sub_graph.hpp"
#include "../../nest/schedule.hpp"

namespace vt::detail::cpu {

namespace register_emission {

bool fills_caches(const LaneForm& form) {
  std::int64_t bytes = 0;
  for (Var v : form.lane.equations[0].outputs)
    bytes += static_cast<std::int64_t>(form.lane.aval(v).bytes()) * form.count;
  return bytes > beyond_all_caches / 2;
}

/// What the Graph's text does not show: which equations assume that all is finite, in bits, and
/// long constants.
void add_marks(const GraphBody& g, std::string& text) {
  char bits = '@';
  int next = 0;
  for (const Equation& e : g.equations) {
    bits = static_cast<char>(bits | (e.assume_finite ? 1 << next : 0));
    if (++next == 5) text += std::exchange(bits, '@'), next = 0;
    for (const GraphRef& body : bodies_of(e.params)) add_marks(*body, text);
    if (e.op != Op::constant || g.aval(e.outputs[0]).elements() <= 8) continue;
    const Buffer& numbers = *e.as<ConstantParams>().buffer;
    const bool is_mask = is_bool(g.aval(e.outputs[0]).dtype);
    for (std::size_t i = 0; i < numbers.bytes; ++i) {
      const unsigned byte = numbers.as<const unsigned char>()[i];
      if (!is_mask) text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
  }
  text += bits;
}

/// Are all values of at most so many elements, and is there no scan, which goes through rows in
/// memory?
bool stays_small(const GraphBody& g, std::int64_t most) {
  return all_of(g.avals, [&](const Aval& a) { return a.elements() <= most; }) &&
         all_of(g.equations, [&](const Equation& e) {
           return e.op != Op::scan && all_of(bodies_of(e.params), [&](const GraphRef& b) {
                    return stays_small(*b, most);
                  });
         });
}
/// Of arrays that are unset at first, which each SIMD lane has in the frame.
std::int64_t bytes_in_frame(const GraphBody& g) {
  std::int64_t bytes = 0;
  for (const Equation& e : g.equations) {
    if (is_unset(e)) bytes += static_cast<std::int64_t>(g.aval(e.outputs[0]).bytes());
    for (const GraphRef& body : bodies_of(e.params)) bytes += bytes_in_frame(*body);
  }
  return bytes;
}

RegisterEmitter::RegisterEmitter(IrBuilder& b, const LaneForm& form)
    : b_(b),
      form_(form),
      graph_(form.lane),
      equation_(form.lane.equations[0]),
      carries_(carries_of(equation_)) {
  if (!form_.side_by_side()) return;
  far_ = fills_caches(form);
  std::size_t widest = 1;
  std::int64_t row = 1;
  for (const Aval& a : graph_.avals) {
    widest = std::max(widest, size_of(a.dtype));
    if (form_.in_registers(a)) row = std::max(row, a.elements());
  }
  // Several vectors at once hide how long each instruction takes, as long as they all fit; so do
  // the elements of a row. Pivots, and what each iteration of a loop makes of the last one, are
  // waited for longer than what does not fit costs.
  cost_ = std::max<std::int64_t>(1, register_cost(form));
  constexpr std::int64_t most_elements = 32, most_in_frame_of_two = std::int64_t{1} << 14;
  const std::int64_t in_frame = bytes_in_frame(graph_);
  const bool waits = b.target().vector_registers >= 32 && in_frame <= most_in_frame_of_two &&
                     stays_small(graph_, in_frame > 0 ? most_in_frame_of_two : most_elements) &&
                     has_equation(graph_, [](const Equation& e) {
                       return e.op == Op::while_ || family_of(e.op) == Family::linalg;
                     });
  const int vectors = in_frame > 0               ? (waits ? 2 : 1)
                      : cost_ <= 60 && row <= 4  ? 4
                      : cost_ <= 200 && row <= 8 ? 2
                      : waits                    ? 2
                                                 : 1;
  width_ = std::max(2, vectors * b.target().simd_lanes(std::max<std::size_t>(widest, 4)));
}

void RegisterEmitter::emit(const std::string& name) {
  b_.begin_function(name,
                    {Param::ptr(), Param::ptr(), Param::of(DType::i64), Param::of(DType::i64)});
  if (!form_.side_by_side()) b_.set_counting_loops();
  const int count = static_cast<int>(equation_.inputs.size() + equation_.outputs.size());
  b_.declare_buffers(count);
  for (int i = 0; i < count; ++i) pointers_.push_back(b_.load_pointer(b_.arg(0), i, i));
  const bool recurs = !form_.functions.empty();
  if (recurs) {
    declare_functions();
    calls_ = b_.arg(1);
    depth_ =
        b_.convert(b_.load(b_.offset(calls_, DType::i64, index_number(1)), DType::i64), DType::i32);
  }
  if (!form_) {
    whole();
  } else if (form_.sums) {
    sum_rows();
  } else if (gives_places_away()) {
    loop_with_places();
  } else {
    b_.for_range(b_.arg(2), b_.arg(3), width_, [&](Value lane) {
      lane_ = lane;
      if (recurs) b_.store(calls_, lane);
      else mask_ = tail_ = b_.tail_mask(width_, b_.sub(b_.arg(3), lane));
      objects_.clear();
      whole();
    });
  }
  if (streams_) b_.order_streaming_stores();
  b_.end_function();
  if (recurs) define_functions();
}

// ---- the equation itself ------------------------------------------------------------------------

void RegisterEmitter::whole() { store_results(control(graph_, equation_, operands(), true)); }

Vec<Val> RegisterEmitter::operands() {
  Vec<Val> operands;
  const std::size_t inputs = equation_.inputs.size();
  for (std::size_t i = 0; i < inputs; ++i) {
    const Aval& aval = graph_.aval(equation_.inputs[i]);
    const bool sequence = is_sequence(equation_, i);
    Object o = object_for(i, aval);
    if (form_.in_registers(aval) && o.row == 0 && i < form_.known.size() && form_.known[i]) {
      operands.push_back(Elements(aval.elements(), b_.integer(aval.dtype, *form_.known[i])));
      continue;
    }
    if (!sequence && o.shape.elements() <= form_.most_in_registers) {
      const bool later = !form_ && equation_.op == Op::fused_region;
      operands.push_back(later ? unread(o) : elements_of(o));
      continue;
    }
    o.writable = i < carries_;
    // updated in place, in the lane's part of the result
    if (o.writable) o.pointer = object_for(inputs + i, aval).pointer;
    operands.push_back(kept(o));
  }
  return operands;
}

void RegisterEmitter::store_results(Vec<Val> results) {
  for (Val& v : results) loaded(v);  // before memory is written over
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Object to = object_for(equation_.inputs.size() + k, graph_.aval(equation_.outputs[k]));
    if (!results[k].is_array()) store_elements(to, results[k]);
    else if (equation_.op == Op::fused_region) copy(to, results[k]);
  }
}

Vec<Val> RegisterEmitter::run(const GraphBody& g, const Vec<Val>& inputs, bool load) {
  Env env(g.avals.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) env[g.inputs[i]] = inputs[i];
  run_equations(g, env, 0, g.equations.size());
  Vec<Val> outputs;
  for (Var v : g.outputs) outputs.push_back(load ? loaded(env[v]) : env[v]);
  return outputs;
}

void RegisterEmitter::run_equations(const GraphBody& g, Env& env, std::size_t from,
                                    std::size_t to) {
  for (std::size_t n = from; n < to; ++n) {
    const Equation& e = g.equations[n];
    Vec<Val> operands;
    const auto assign = [&](Vec<Val> results) {
      for (std::size_t k = 0; k < results.size(); ++k) env[e.outputs[k]] = std::move(results[k]);
    };
    b_.at(e.where);
    for (std::size_t i = 0; i < e.inputs.size(); ++i) {
      Val& v = env[e.inputs[i]];
      operands.push_back(is_sequence(e, i) ? v : loaded(v));
    }
    if (may_be_register_kernel(e.op) || e.op == Op::recursive_call) {
      assign(control(g, e, operands, false));
    } else if (e.op == Op::constant && number_of(form_.constants, e) >= 0) {
      env[e.outputs[0]] = constant(e);
    } else if (is_unset(e)) {
      env[e.outputs[0]] = kept(unset_array(g.aval(e.outputs[0])));
    } else if (!form_.in_registers(g.aval(e.outputs[0]))) {
      env[e.outputs[0]] = array_value(g, e, operands);
    } else {
      assign(values(g, e, operands));
    }
  }
}

// ---- branches and loops -------------------------------------------------------------------------

bool RegisterEmitter::is_wide(const Val& v) const {
  if (v.is_array()) return object(v).row > 0 || object(v).by_element;
  return any_of(v.elements(), [&](const Value& x) { return width_ > 1 && x.simd_lanes == width_; });
}

RegisterEmitter::Flags RegisterEmitter::wide_flags(const Vec<Val>& values) const {
  Flags flags;
  for (const Val& v : values) flags.push_back(is_wide(v));
  return flags;
}

Elements RegisterEmitter::flat(const Vec<Val>& values, std::size_t count) const {
  Elements all;
  for (std::size_t i = 0; i < count; ++i)
    all.append(values[i].elements().begin(), values[i].elements().end());
  return all;
}

Vec<Val> RegisterEmitter::unflat(const Elements& all, const Vec<Val>& like, std::size_t count) {
  Vec<Val> values;
  const Value* next = all.begin();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t n = like[i].elements().size();
    values.push_back(like[i].is_array() ? like[i] : Elements(next, next + n));
    next += n;
  }
  return values;
}

Elements RegisterEmitter::selected(Value mask, const Elements& on_true, const Elements& on_false) {
  Elements all;
  for (std::size_t i = 0; i < on_true.size(); ++i)
    all.push_back(b_.select(mask, wide(on_true[i]), wide(on_false[i])));
  return all;
}

Vec<Val> RegisterEmitter::control(const GraphBody& g, const Equation& e, const Vec<Val>& operands,
                                  bool outermost) {
  switch (e.op) {
    case Op::cond: return branch(e, operands);
    case Op::while_: return loop_while(e, operands, outermost);
    case Op::fused_region: return run(*e.as<RegionParams>().body, operands, false);
    case Op::batched_call: return run(*e.as<BatchedCallParams>().body, operands);
    case Op::recursive_call: return call(e, operands);
    default: return loop_scan(g, e, operands, outermost);
  }
}

Vec<Val> RegisterEmitter::branch(const Equation& e, const Vec<Val>& operands) {
  const auto& branches = e.as<CondParams>().branches;
  const Vec<Val> inputs(operands.begin() + 1, operands.end());
  const Value index = operands[0][0];
  const auto last = static_cast<std::int64_t>(branches.size()) - 1;
  const bool varies = width_ > 1 && index.simd_lanes == width_;
  // The types of what comes out: as wide as the widest branch makes it.
  const GraphBody& first = *branches[0];
  Flags wide_out(first.outputs.size(), varies);
  Dependence dependence;
  const Flags flags = wide_flags(inputs);
  for (const GraphRef& body : branches) {
    const Flags of_body = dependence.outputs(*body, flags);
    for (std::size_t k = 0; k < wide_out.size(); ++k)
      wide_out[k] = wide_out[k] || (width_ > 1 && of_body[k]);
  }
  Vec<Val> like;  // filled in by the first branch that is emitted
  const auto results_of = [&](std::size_t k) {
    Vec<Val> out = run(*branches[k], inputs);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (wide_out[i]) out[i] = wide(out[i]);
    like = out;
    return flat(out, out.size());
  };
  if (branches.size() == 1) {
    const Elements all = results_of(0);
    return unflat(all, like, like.size());
  }
  if (!varies) {
    // A chain of ordinary branches, the last one for all larger indices.
    const Function<Elements(std::size_t)> chain = [&](std::size_t k) -> Elements {
      if (static_cast<std::int64_t>(k) == last) return results_of(k);
      const Value here =
          b_.compare(Compare::le, index, b_.integer(DType::i32, static_cast<std::int64_t>(k)));
      return b_.if_else(here, [&] { return results_of(k); }, [&] { return chain(k + 1); });
    };
    const Elements all = chain(0);
    return unflat(all, like, like.size());
  }
  const Value outer = mask_;
  Elements all;
  for (const Var v : first.outputs) {
    const Aval& a = first.aval(v);
    if (!form_.in_registers(a)) continue;
    for (std::int64_t i = 0; i < a.elements(); ++i) all.push_back(b_.integer(a.dtype, 0, width_));
  }
  for (std::size_t k = 0; k < branches.size(); ++k) {
    const Value number = b_.integer(DType::i32, static_cast<std::int64_t>(k), width_);
    Value takes = k == 0
                      ? b_.compare(Compare::le, index, number)
                      : b_.compare(static_cast<std::int64_t>(k) == last ? Compare::ge : Compare::eq,
                                   index, number);
    takes = both(outer, takes);
    all = b_.if_else(
        b_.any(takes),
        [&] {
          mask_ = takes;
          const Elements own = results_of(k);
          mask_ = outer;
          return selected(takes, own, all);
        },
        [&] { return all; });
  }
  return unflat(all, like, like.size());
}

Vec<Val> RegisterEmitter::loop_while(const Equation& e, const Vec<Val>& operands, bool outermost) {
  const auto& p = e.as<WhileParams>();
  const std::size_t carries = p.carries;
  Dependence dependence;
  Flags flags = wide_flags(operands);
  const bool own_lanes = outermost && form_;
  flags = dependence.loop_operands(e, std::move(flags));
  const bool varies = width_ > 1 && (own_lanes || dependence.condition(p, flags));
  Vec<Val> init = begin_carries(operands, carries);
  for (std::size_t i = 0; i < carries; ++i)
    if (width_ > 1 && (flags[i] || varies)) init[i] = wide(init[i]);
  const auto inputs_of = [&](const Vec<Val>& carry) {
    Vec<Val> inputs = carry;
    inputs.insert(inputs.end(), operands.begin() + static_cast<std::ptrdiff_t>(carries),
                  operands.end());
    return inputs;
  };
  const auto goes_on = [&](const Vec<Val>& carry) {
    const Flags outside = restrict_writes({});
    const Value answer = run(*p.condition, inputs_of(carry))[0][0];
    restore_writes(outside);
    return answer;
  };
  const auto step = [&](const Vec<Val>& carry) {
    const Flags outside = restrict_writes(carry);
    Vec<Val> next = run(*p.body, inputs_of(carry));
    restore_writes(outside);
    hand_on(init, next);
    for (std::size_t i = 0; i < carries; ++i)
      if (is_wide(init[i])) next[i] = wide(next[i]);
    return next;
  };
  if (!varies) {
    const Elements last = b_.while_loop(
        flat(init, carries), [&](const Elements& c) { return goes_on(unflat(c, init, carries)); },
        [&](const Elements& c) { return flat(step(unflat(c, init, carries)), carries); });
    return unflat(last, init, carries);
  }
  const Value outer = mask_;
  Elements carried = flat(init, carries);
  carried.push_back(both(outer, wide(goes_on(init))));
  Elements last = b_.while_loop(
      carried, [&](const Elements& c) { return b_.any(c.back()); },
      [&](const Elements& c) {
        const Value live = c.back();
        const Elements before(c.begin(), c.end() - 1);
        mask_ = live;
        const Elements after =
            selected(live, flat(step(unflat(before, init, carries)), carries), before);
        Elements next = after;
        next.push_back(b_.bit_and(live, wide(goes_on(unflat(after, init, carries)))));
        mask_ = outer;
        return next;
      });
  last.pop_back();
  return unflat(last, init, carries);
}

Vec<Val> RegisterEmitter::loop_scan(const GraphBody& g, const Equation& e, const Vec<Val>& operands,
                                    bool outermost) {
  const auto& p = e.as<ScanParams>();
  const std::size_t carries = p.carries, looped = carries + p.sequences;
  Dependence dependence;
  const Flags flags = dependence.loop_operands(e, wide_flags(operands));
  Vec<Val> init = begin_carries(operands, carries);
  for (std::size_t i = 0; i < carries; ++i)
    if (width_ > 1 && flags[i]) init[i] = wide(init[i]);
  Vec<Val> sequences;
  for (std::size_t i = carries; i < looped; ++i)
    sequences.push_back(laid_out(g.aval(e.inputs[i]), operands[i]));
  const std::size_t results = p.body->outputs.size();
  Vec<Object> given;
  for (std::size_t k = carries; k < results; ++k)
    given.push_back(outermost
                        ? object_for(equation_.inputs.size() + k, graph_.aval(equation_.outputs[k]))
                        : own_array(g.aval(e.outputs[k])));
  const Elements last = b_.loop(
      index_number(0), index_number(p.length), 1, flat(init, carries),
      [&](Value iteration, const Elements& c) {
        const Value row = p.reverse ? b_.sub(index_number(p.length - 1), iteration) : iteration;
        Vec<Val> inputs = unflat(c, init, carries);
        for (std::size_t i = carries; i < operands.size(); ++i)
          inputs.push_back(i < looped ? element(g.aval(e.inputs[i]), sequences[i - carries],
                                                p.body->aval(p.body->inputs[i]), row)
                                      : operands[i]);
        const Flags outside = restrict_writes(init);
        Vec<Val> next = p.sums ? added_terms(*p.body, inputs) : run(*p.body, inputs);
        restore_writes(outside);
        for (std::size_t i = 0; i < carries; ++i)
          if (is_wide(init[i])) next[i] = wide(next[i]);
        for (std::size_t k = carries; k < results; ++k) {
          Object o = given[k - carries];
          const Shape& one = p.body->aval(p.body->outputs[k]).shape;
          o.start = b_.mul(row, index_number(place(o, one.elements())));
          o.shape = one;
          next[k].is_array() ? copy(o, next[k]) : store_elements(o, next[k]);
        }
        hand_on(init, next);
        return flat(next, carries);
      });
  Vec<Val> out = unflat(last, init, carries);
  out.resize(results);
  for (std::size_t k = carries; k < results && !outermost; ++k) {
    const Object& o = given[k - carries];
    out[k] = form_.in_registers(g.aval(e.outputs[k])) ? unread(o) : kept(o);
  }
  return out;
}

Val RegisterEmitter::laid_out(const Aval& whole, const Val& sequence) {
  if (sequence.memory() >= 0) return kept(objects_[sequence.memory()]);
  if (sequence.is_array() || !form_.lays_out(whole)) return sequence;
  const Object array = is_wide(sequence) ? unset_array(whole) : own_array(whole);
  store_elements(array, sequence);
  return kept(array);
}

Val RegisterEmitter::unread(const Object& o) {
  objects_.push_back(o);
  objects_.back().writable = false;
  return Val::unread(static_cast<int>(objects_.size()) - 1);
}

const Val& RegisterEmitter::loaded(Val& v) {
  if (v.is_unread()) v.read(elements_of(objects_[v.memory()]));
  return v;
}

Val RegisterEmitter::element(const Aval& whole, const Val& sequence, const Aval& one, Value row) {
  const std::int64_t n = one.elements();
  if (!sequence.is_array()) {
    Elements all;
    for (std::int64_t i = 0; i < n; ++i) {
      Elements column;
      for (std::int64_t r = 0; r < whole.shape[0]; ++r) column.push_back(sequence[r * n + i]);
      all.push_back(chosen(column, row));
    }
    return all;
  }
  Object o = object(sequence);
  const Value start = b_.mul(row, index_number(place(o, n)));
  o.start = o.start ? sum(o.start, start) : start;
  o.shape = one.shape;
  o.whole = false;
  return form_.in_registers(one) ? elements_of(o) : kept(o);
}

}  // namespace register_emission

std::string register_kernel_key(const LaneForm& form) {
  std::string key = "register kernel\n" +
                    (form.functions.empty() ? to_text(form.lane)
                                            : text_of(form.lane, form.functions, form.constants));
  if (form) key += form.sums ? "sums of lanes " : "lanes ";
  int last = 0;
  for (int axis : form.axes) last = std::max(last, axis);
  if (last > 0) key += std::to_string(form.count);
  else if (form && register_emission::fills_caches(form)) key += "past caches";
  for (int axis : form.axes) key += " " + std::to_string(axis);
  key += "; finite ";
  register_emission::add_marks(form.lane, key);
  for (std::size_t i = 0; i < form.known.size(); ++i)
    if (form.known[i])
      key += "; operand " + std::to_string(i) + " is " + std::to_string(*form.known[i]);
  return key;
}

void emit_register_kernel(IrBuilder& b, const std::string& name, const LaneForm& form) {
  register_emission::RegisterEmitter(b, form).emit(name);
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
