// From a register loop to LLVM code. Lanes run side by side in vectors: where they part, each side runs under the mask of those
// that take it, if there are any, and a loop goes on until its last lane has stopped. A value that is the same for all lanes is a
// scalar, and a predicate made of such is an ordinary branch.
#include "emit_register_loop.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <optional>

#include "../../trace/dependence.hpp"
#include "emit_nest.hpp"

namespace vt::detail::cpu {

namespace register_emission {

using Elements = std::vector<Value>;

/// A value: its elements in row-major order, or where it lies in memory.
struct Val {
  Elements e;
  int object = -1;
};

/// A value in memory. `start`: where an element of it begins, in elements (scan's element of a sequence).
struct Object {
  Value pointer;
  DType dtype = DType::f32;
  Shape shape;
  std::int64_t row = 0;  ///< elements from lane to lane; 0: shared
  Value start;           ///< or none
};

class Emitter {
 public:
  Emitter(IrBuilder& b, const GraphBody& graph) : b_(b), graph_(graph), equation_(graph.equations[0]) {
    if (equation_.op == Op::cond) lanes_ = equation_.as<CondParams>().lanes;
    if (equation_.op == Op::while_) lanes_ = equation_.as<WhileParams>().lanes;
    carries_ = equation_.op == Op::while_ ? static_cast<std::size_t>(equation_.as<WhileParams>().carries)
               : equation_.op == Op::scan ? static_cast<std::size_t>(equation_.as<ScanParams>().carries)
                                          : 0;
    if (!lanes_) return;
    std::size_t widest = 1;
    for (const Aval& a : graph.avals) widest = std::max(widest, size_of(a.dtype));
    // Several vectors at once hide how long each instruction takes, as long as they all fit.
    const std::int64_t cost = register_cost(graph);
    const int vectors = cost <= 60 ? 4 : cost <= 200 ? 2 : 1;
    width_ = std::max(2, vectors * b.target().lanes(std::max<std::size_t>(widest, 4)));
  }

  void emit(const std::string& name) {
    b_.begin_function(name, {Param::ptr(), Param::ptr(), Param::of(DType::i64), Param::of(DType::i64)});
    const int count = static_cast<int>(equation_.inputs.size() + equation_.outputs.size());
    b_.declare_buffers(count);
    for (int i = 0; i < count; ++i) pointers_.push_back(b_.load_pointer(b_.arg(0), i, i));
    if (!lanes_) {
      whole();
    } else {
      b_.for_range(b_.arg(2), b_.arg(3), width_, [&](Value lane) {
        lane_ = lane;
        mask_ = b_.tail_mask(width_, b_.sub(b_.arg(3), lane));
        objects_.clear();
        whole();
      });
    }
    b_.end_function();
  }

 private:
  static std::size_t at(Var v) { return static_cast<std::size_t>(v); }
  using Env = std::vector<Val>;

  // ---- memory ------------------------------------------------------------------------------------------------------------
  Value index_number(std::int64_t i) { return b_.index(i); }
  /// Elements of an object at `linear` (i64 scalar or lanes).
  Value read(const Object& o, Value linear) {
    linear = placed(o, linear);
    if (linear.lanes == 1) return b_.load(b_.offset(o.pointer, o.dtype, linear), o.dtype);
    return b_.gather(o.pointer, o.dtype, linear, mask_);
  }
  void write(const Object& o, Value linear, Value x) {
    linear = placed(o, linear);
    if (width_ == 1) {
      b_.store(b_.offset(o.pointer, o.dtype, linear), x);
      return;
    }
    b_.scatter(o.pointer, wide(x), wide(linear), mask_);
  }
  Value placed(const Object& o, Value linear) {
    if (o.start) linear = sum(linear, o.start);
    if (o.row > 0) linear = sum(linear, b_.mul(lane_numbers(), b_.integer(DType::i64, o.row, width_)));
    return linear;
  }
  Value lane_numbers() { return b_.add(b_.splat(lane_, width_), b_.iota(DType::i64, width_)); }
  Value sum(Value a, Value b) { return a.lanes == b.lanes ? b_.add(a, b) : b_.add(wide(a), wide(b)); }

  Value wide(Value x) { return x.lanes == width_ ? x : b_.splat(x, width_); }
  Val wide(Val v) {
    for (Value& x : v.e) x = wide(x);
    return v;
  }

  Val elements_of(const Object& o) {
    Val v;
    const std::int64_t n = o.shape.elements();
    for (std::int64_t i = 0; i < n; ++i) {
      if (o.row == 1 && n == 1 && !o.start) {  // neighbours: one contiguous load
        v.e.push_back(b_.load_masked(b_.offset(o.pointer, o.dtype, lane_), o.dtype, mask_));
        continue;
      }
      v.e.push_back(read(o, index_number(i)));
    }
    return v;
  }
  void store_elements(const Object& o, const Val& v) {
    for (std::size_t i = 0; i < v.e.size(); ++i) {
      if (o.row == 1 && v.e.size() == 1 && !o.start) b_.store_masked(b_.offset(o.pointer, o.dtype, lane_), wide(v.e[i]), mask_);
      else write(o, index_number(static_cast<std::int64_t>(i)), v.e[i]);
    }
  }

  Object object_for(int buffer, const Aval& aval, bool mapped) {
    Object o;
    o.pointer = pointers_[static_cast<std::size_t>(buffer)];
    o.dtype = aval.dtype;
    o.shape = aval.shape;
    if (mapped) {
      o.shape.erase(o.shape.begin());
      o.row = o.shape.elements();
    }
    return o;
  }

  // ---- the equation itself -----------------------------------------------------------------------------------------------
  void whole() {
    std::vector<Val> operands;
    const std::size_t inputs = equation_.inputs.size();
    for (std::size_t i = 0; i < inputs; ++i) {
      const Aval& aval = graph_.aval(equation_.inputs[i]);
      const bool mapped = lanes_ && lanes_.mapped[i];
      const bool sequence =
          equation_.op == Op::scan && i >= carries_ && i < carries_ + static_cast<std::size_t>(equation_.as<ScanParams>().sequences);
      Object o = object_for(static_cast<int>(i), aval, mapped);
      if (!sequence && o.shape.elements() <= most_in_registers) {
        operands.push_back(elements_of(o));
        continue;
      }
      if (i < carries_) o.pointer = pointers_[inputs + i];  // updated in place, in the result
      objects_.push_back(o);
      Val v;
      v.object = static_cast<int>(objects_.size()) - 1;
      operands.push_back(std::move(v));
    }
    std::vector<Val> results = control(graph_, equation_, operands, true);
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (results[k].object >= 0 || results[k].e.empty()) continue;  // in place, or stored round by round
      store_elements(object_for(static_cast<int>(inputs + k), graph_.aval(equation_.outputs[k]), static_cast<bool>(lanes_)), results[k]);
    }
  }

  std::vector<Val> run(const GraphBody& g, const std::vector<Val>& inputs) {
    Env env(g.avals.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) env[at(g.inputs[i])] = inputs[i];
    for (const Equation& e : g.equations) {
      std::vector<Val> operands;
      for (Var v : e.inputs) operands.push_back(env[at(v)]);
      if (is_control(e.op)) {
        std::vector<Val> results = control(g, e, operands, false);
        for (std::size_t k = 0; k < results.size(); ++k) env[at(e.outputs[k])] = std::move(results[k]);
      } else {
        env[at(e.outputs[0])] = value(g, e, operands);
      }
    }
    std::vector<Val> outputs;
    for (Var v : g.outputs) outputs.push_back(env[at(v)]);
    return outputs;
  }

  // ---- branches and loops ------------------------------------------------------------------------------------------------
  using Flags = Dependence::Flags;
  bool is_wide(const Val& v) const {
    if (v.object >= 0) return objects_[static_cast<std::size_t>(v.object)].row > 0;
    return std::any_of(v.e.begin(), v.e.end(), [&](const Value& x) { return width_ > 1 && x.lanes == width_; });
  }
  Flags wide_flags(const std::vector<Val>& values) const {
    Flags flags;
    for (const Val& v : values) flags.push_back(is_wide(v));
    return flags;
  }
  /// All registers of some values as one list, and back. Values in memory have none.
  Elements flat(const std::vector<Val>& values, std::size_t count) const {
    Elements all;
    for (std::size_t i = 0; i < count; ++i) all.insert(all.end(), values[i].e.begin(), values[i].e.end());
    return all;
  }
  static std::vector<Val> unflat(const Elements& all, const std::vector<Val>& like, std::size_t count) {
    std::vector<Val> values(like.begin(), like.begin() + static_cast<std::ptrdiff_t>(count));
    std::size_t next = 0;
    for (Val& v : values)
      for (Value& x : v.e) x = all[next++];
    return values;
  }
  Elements selected(Value mask, const Elements& on_true, const Elements& on_false) {
    Elements all;
    for (std::size_t i = 0; i < on_true.size(); ++i) all.push_back(b_.select(mask, wide(on_true[i]), wide(on_false[i])));
    return all;
  }
  Value both(Value mask, Value also) { return mask ? b_.bit_and(mask, also) : also; }

  std::vector<Val> control(const GraphBody& g, const Equation& e, const std::vector<Val>& operands, bool outermost) {
    switch (e.op) {
      case Op::cond: return branch(e, operands);
      case Op::while_: return loop_while(e, operands, outermost);
      default: return loop_scan(g, e, operands, outermost);
    }
  }

  std::vector<Val> branch(const Equation& e, const std::vector<Val>& operands) {
    const auto& branches = e.as<CondParams>().branches;
    const std::vector<Val> inputs(operands.begin() + 1, operands.end());
    const Value index = operands[0].e[0];
    const auto last = static_cast<std::int64_t>(branches.size()) - 1;
    const bool varies = width_ > 1 && index.lanes == width_;
    // The types of what comes out: as wide as the widest branch makes it.
    const GraphBody& first = *branches[0];
    Flags wide_out(first.outputs.size(), varies);
    Dependence dependence;
    const Flags flags = wide_flags(inputs);
    for (const GraphRef& body : branches) {
      const Flags& of_body = dependence.outputs(*body, flags);
      for (std::size_t k = 0; k < wide_out.size(); ++k) wide_out[k] = wide_out[k] || (width_ > 1 && of_body[k]);
    }
    std::vector<Val> like;  // filled in by the first branch that is emitted
    const auto results_of = [&](std::size_t k) {
      std::vector<Val> out = run(*branches[k], inputs);
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
      const std::function<Elements(std::size_t)> chain = [&](std::size_t k) -> Elements {
        if (static_cast<std::int64_t>(k) == last) return results_of(k);
        const Value here = b_.compare(Compare::le, index, b_.integer(DType::i32, static_cast<std::int64_t>(k)));
        return b_.if_else(here, [&] { return results_of(k); }, [&] { return chain(k + 1); });
      };
      const Elements all = chain(0);
      return unflat(all, like, like.size());
    }
    const Value outer = mask_;
    Elements all;
    for (const Var v : first.outputs) {
      const Aval& a = first.aval(v);
      if (!in_registers(a)) continue;
      for (std::int64_t i = 0; i < a.elements(); ++i) all.push_back(b_.integer(a.dtype, 0, width_));
    }
    for (std::size_t k = 0; k < branches.size(); ++k) {
      const Value number = b_.integer(DType::i32, static_cast<std::int64_t>(k), width_);
      Value takes = k == 0 ? b_.compare(Compare::le, index, number)
                           : b_.compare(static_cast<std::int64_t>(k) == last ? Compare::ge : Compare::eq, index, number);
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

  std::vector<Val> loop_while(const Equation& e, const std::vector<Val>& operands, bool outermost) {
    const auto& p = e.as<WhileParams>();
    const auto carries = static_cast<std::size_t>(p.carries);
    Dependence dependence;
    Flags flags = wide_flags(operands);
    const bool own_lanes = outermost && lanes_;
    flags = dependence.loop_operands(e, std::move(flags));
    const bool varies = width_ > 1 && (own_lanes || dependence.condition(p, flags));
    std::vector<Val> init(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(carries));
    for (std::size_t i = 0; i < carries; ++i)
      if (width_ > 1 && (flags[i] || varies)) init[i] = wide(init[i]);
    const auto inputs_of = [&](const std::vector<Val>& carry) {
      std::vector<Val> inputs = carry;
      inputs.insert(inputs.end(), operands.begin() + static_cast<std::ptrdiff_t>(carries), operands.end());
      return inputs;
    };
    const auto goes_on = [&](const std::vector<Val>& carry) { return run(*p.condition, inputs_of(carry))[0].e[0]; };
    const auto step = [&](const std::vector<Val>& carry) {
      std::vector<Val> next = run(*p.body, inputs_of(carry));
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
          const Elements after = selected(live, flat(step(unflat(before, init, carries)), carries), before);
          Elements next = after;
          next.push_back(b_.bit_and(live, wide(goes_on(unflat(after, init, carries)))));
          mask_ = outer;
          return next;
        });
    last.pop_back();
    return unflat(last, init, carries);
  }

  std::vector<Val> loop_scan(const GraphBody& g, const Equation& e, const std::vector<Val>& operands, bool outermost) {
    const auto& p = e.as<ScanParams>();
    const auto carries = static_cast<std::size_t>(p.carries), looped = carries + static_cast<std::size_t>(p.sequences);
    Dependence dependence;
    const Flags flags = dependence.loop_operands(e, wide_flags(operands));
    std::vector<Val> init(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(carries));
    for (std::size_t i = 0; i < carries; ++i)
      if (width_ > 1 && flags[i]) init[i] = wide(init[i]);
    const std::size_t results = p.body->outputs.size();
    const Elements last = b_.loop(index_number(0), index_number(p.length), 1, flat(init, carries), [&](Value round, const Elements& c) {
      const Value row = p.reverse ? b_.sub(index_number(p.length - 1), round) : round;
      std::vector<Val> inputs = unflat(c, init, carries);
      for (std::size_t i = carries; i < operands.size(); ++i)
        inputs.push_back(i < looped ? element(g.aval(e.inputs[i]), operands[i], p.body->aval(p.body->inputs[i]), row) : operands[i]);
      std::vector<Val> next = run(*p.body, inputs);
      for (std::size_t i = 0; i < carries; ++i)
        if (is_wide(init[i])) next[i] = wide(next[i]);
      if (outermost) {
        for (std::size_t k = carries; k < results; ++k) {
          Object o = object_for(static_cast<int>(equation_.inputs.size() + k), graph_.aval(equation_.outputs[k]), false);
          const std::int64_t n = p.body->aval(p.body->outputs[k]).elements();
          o.start = b_.mul(row, index_number(n));
          store_elements(o, next[k]);
        }
      }
      return flat(next, carries);
    });
    std::vector<Val> out = unflat(last, init, carries);
    out.resize(results);
    return out;
  }

  /// One element of a sequence.
  Val element(const Aval& whole, const Val& sequence, const Aval& one, Value row) {
    const std::int64_t n = one.elements();
    if (sequence.object < 0) {
      Val v;
      for (std::int64_t i = 0; i < n; ++i) {
        Elements column;
        for (std::int64_t r = 0; r < whole.shape[0]; ++r) column.push_back(sequence.e[static_cast<std::size_t>(r * n + i)]);
        v.e.push_back(chosen(column, row));
      }
      return v;
    }
    Object o = objects_[static_cast<std::size_t>(sequence.object)];
    const Value start = b_.mul(row, index_number(n));
    o.start = o.start ? sum(o.start, start) : start;
    o.shape = one.shape;
    if (in_registers(one)) return elements_of(o);
    objects_.push_back(o);
    Val v;
    v.object = static_cast<int>(objects_.size()) - 1;
    return v;
  }

  // ---- values ------------------------------------------------------------------------------------------------------------
  /// all[index], the index in range.
  Value chosen(const Elements& all, Value index) {
    Value x = all[0];
    for (std::size_t i = 1; i < all.size(); ++i) x = either(equals(index, static_cast<std::int64_t>(i)), all[i], x);
    return x;
  }
  Value equals(Value index, std::int64_t i) { return b_.compare(Compare::eq, index, b_.integer(index.dtype, i, index.lanes)); }
  Value either(Value mask, Value a, Value b) {
    const int lanes = std::max({mask.lanes, a.lanes, b.lanes});
    const auto spread = [&](Value v) { return v.lanes == lanes ? v : b_.splat(v, lanes); };
    return b_.select(spread(mask), spread(a), spread(b));
  }
  Value apply(Op op, DType dtype, const ParamsRef& params, Elements operands) {
    int lanes = 1;
    for (const Value& v : operands) lanes = std::max(lanes, v.lanes);
    for (Value& v : operands)
      if (v.lanes != lanes) v = b_.splat(v, lanes);
    return emit_op(b_, op, dtype, params, operands);
  }

  Value number(const Scalar& s, DType d) {
    const Scalar c = s.converted(d);
    if (is_float(d)) return b_.real(d, c.real);
    return b_.integer(d, is_unsigned(d) ? static_cast<std::int64_t>(c.natural) : c.integer);
  }

  Val value(const GraphBody& g, const Equation& e, const std::vector<Val>& in) {
    const Aval& out = g.aval(e.outputs[0]);
    const std::int64_t n = out.elements();
    Val v;
    switch (family_of(e.op)) {
      case Family::unary:
      case Family::binary:
      case Family::select:
        for (std::int64_t i = 0; i < n; ++i) {
          Elements operands;
          for (const Val& x : in) operands.push_back(x.e[x.e.size() == 1 ? 0 : static_cast<std::size_t>(i)]);
          v.e.push_back(apply(e.op, out.dtype, e.params, std::move(operands)));
        }
        return v;
      case Family::leaf: return leaf(e, out);
      case Family::reduce: return reduced(g, e, in[0]);
      case Family::contract: return product(g, e, in);
      case Family::index:
        if (e.op == Op::dynamic_slice) return dynamic_slice(g, e, in);
        if (e.op == Op::dynamic_update_slice) return dynamic_update_slice(g, e, in);
        if (e.op == Op::gather) return gathered(g, e, in);
        if (e.op >= Op::scatter && e.op <= Op::scatter_max) return scattered(g, e, in);
        break;
      default: break;
    }
    if (e.op == Op::concatenate) return concatenated(g, e, in);
    // What only moves elements.
    for (const std::int64_t source : source_elements(g, e)) {
      if (source < 0) v.e.push_back(in[1].e[0]);  // pad's value
      else if (in[0].object >= 0) v.e.push_back(read(object(in[0]), index_number(source)));
      else v.e.push_back(in[0].e[static_cast<std::size_t>(source)]);
    }
    return v;
  }
  const Object& object(const Val& v) const { return objects_[static_cast<std::size_t>(v.object)]; }

  Val leaf(const Equation& e, const Aval& out) {
    Val v;
    const std::int64_t n = out.elements();
    for (std::int64_t i = 0; i < n; ++i) {
      if (e.op == Op::full) {
        v.e.push_back(number(e.as<FullParams>().value, out.dtype));
      } else if (e.op == Op::iota) {
        std::int64_t left = i, inner = 1;
        const int axis = e.as<IotaParams>().axis;
        for (int d = axis + 1; d < out.shape.rank(); ++d) inner *= out.shape[static_cast<std::size_t>(d)];
        left = left / inner % out.shape[static_cast<std::size_t>(axis)];
        v.e.push_back(number(Scalar(left), out.dtype));
      } else {
        with_type(out.dtype, [&](auto zero) {
          using T = decltype(zero);
          v.e.push_back(number(Scalar(e.as<ConstantParams>().buffer->as<const T>()[i]), out.dtype));
        });
      }
    }
    return v;
  }

  Val reduced(const GraphBody& g, const Equation& e, const Val& x) {
    const Aval &from = g.aval(e.inputs[0]), &to = g.aval(e.outputs[0]);
    const Axes& axes = e.as<AxesParams>().axes;
    const Op op = e.op == Op::reduce_sum    ? Op::add
                  : e.op == Op::reduce_prod ? Op::mul
                  : e.op == Op::reduce_max  ? Op::max
                  : e.op == Op::reduce_min  ? Op::min
                  : e.op == Op::reduce_any  ? Op::or_
                                            : Op::and_;
    // 16-bit sums and products are made in f32.
    const bool through_f32 = (op == Op::add || op == Op::mul) && (to.dtype == DType::f16 || to.dtype == DType::bf16);
    const DType carried = through_f32 ? DType::f32 : to.dtype;
    Val v;
    v.e.resize(static_cast<std::size_t>(to.elements()));
    std::vector<std::int64_t> index(from.shape.size(), 0);
    for (std::int64_t k = 0; k < from.elements(); ++k) {
      std::int64_t left = k, place = 0;
      for (std::size_t d = from.shape.size(); d-- > 0;) {
        index[d] = left % from.shape[d];
        left /= from.shape[d];
      }
      for (std::size_t d = 0; d < from.shape.size(); ++d)
        if (!axes.contains(static_cast<int>(d))) place = place * from.shape[d] + index[d];
      Value& sum = v.e[static_cast<std::size_t>(place)];
      Value next = x.e[static_cast<std::size_t>(k)];
      if (through_f32) next = b_.convert(next, DType::f32);
      sum = sum ? apply(op, carried, {}, {sum, next}) : next;
    }
    for (Value& sum : v.e) {
      if (!sum) {
        const Reduce neutral = op == Op::add   ? Reduce::add
                               : op == Op::mul ? Reduce::mul
                               : op == Op::max ? Reduce::max
                               : op == Op::min ? Reduce::min
                               : op == Op::or_ ? Reduce::bit_or
                                               : Reduce::bit_and;
        sum = b_.identity(neutral, carried);
      }
      if (through_f32) sum = b_.convert(sum, to.dtype);
    }
    return v;
  }

  Val product(const GraphBody& g, const Equation& e, const std::vector<Val>& in) {
    const auto& p = e.as<DotParams>();
    const Aval &a = g.aval(e.inputs[0]), &c = g.aval(e.inputs[1]), &out = g.aval(e.outputs[0]);
    const bool half = p.dtype == DType::f16 || p.dtype == DType::bf16;
    const DType carried = half ? DType::f32 : p.dtype;
    const auto strides = [](const Shape& s) {
      std::vector<std::int64_t> st(s.size(), 1);
      for (std::size_t d = s.size(); d-- > 1;) st[d - 1] = st[d] * s[d];
      return st;
    };
    const auto sa = strides(a.shape), sc = strides(c.shape);
    // The result's axes: batch, left, right.
    struct Axis {
      std::int64_t extent, of_a, of_c;
    };
    std::vector<Axis> outer, inner;
    const auto ext = [](const Shape& s, int d) { return s[static_cast<std::size_t>(d)]; };
    for (std::size_t k = 0; k < p.lhs_batch.size(); ++k)
      outer.push_back({ext(a.shape, p.lhs_batch[k]), sa[static_cast<std::size_t>(p.lhs_batch[k])], sc[static_cast<std::size_t>(p.rhs_batch[k])]});
    for (int d = 0; d < a.shape.rank(); ++d)
      if (!p.lhs_batch.contains(d) && !p.lhs_contract.contains(d)) outer.push_back({ext(a.shape, d), sa[static_cast<std::size_t>(d)], 0});
    for (int d = 0; d < c.shape.rank(); ++d)
      if (!p.rhs_batch.contains(d) && !p.rhs_contract.contains(d)) outer.push_back({ext(c.shape, d), 0, sc[static_cast<std::size_t>(d)]});
    for (std::size_t k = 0; k < p.lhs_contract.size(); ++k)
      inner.push_back(
          {ext(a.shape, p.lhs_contract[k]), sa[static_cast<std::size_t>(p.lhs_contract[k])], sc[static_cast<std::size_t>(p.rhs_contract[k])]});
    std::int64_t terms = 1;
    for (const Axis& x : inner) terms *= x.extent;
    const auto places = [](const std::vector<Axis>& axes, std::int64_t k) {
      std::pair<std::int64_t, std::int64_t> at{0, 0};
      for (std::size_t d = axes.size(); d-- > 0;) {
        const std::int64_t i = k % axes[d].extent;
        k /= axes[d].extent;
        at.first += i * axes[d].of_a;
        at.second += i * axes[d].of_c;
      }
      return at;
    };
    Val v;
    for (std::int64_t i = 0; i < out.elements(); ++i) {
      const auto base = places(outer, i);
      Value sum{};
      for (std::int64_t t = 0; t < terms; ++t) {
        const auto step = places(inner, t);
        Value x = b_.convert(in[0].e[static_cast<std::size_t>(base.first + step.first)], carried);
        Value y = b_.convert(in[1].e[static_cast<std::size_t>(base.second + step.second)], carried);
        const int lanes = std::max({x.lanes, y.lanes, sum ? sum.lanes : 1});
        const auto spread = [&](Value z) { return z.lanes == lanes ? z : b_.splat(z, lanes); };
        sum = !sum                ? b_.mul(spread(x), spread(y))
              : is_float(carried) ? b_.mul_add(spread(x), spread(y), spread(sum))
                                  : b_.add(spread(sum), b_.mul(spread(x), spread(y)));
      }
      if (!sum) sum = b_.integer(carried, 0);
      v.e.push_back(half ? b_.convert(sum, p.dtype) : sum);
    }
    return v;
  }

  Val concatenated(const GraphBody& g, const Equation& e, const std::vector<Val>& in) {
    const auto axis = static_cast<std::size_t>(e.as<AxisParams>().axis);
    const Shape& shape = g.aval(e.outputs[0]).shape;
    std::int64_t outer = 1;
    for (std::size_t d = 0; d < axis; ++d) outer *= shape[d];
    Val v;
    for (std::int64_t o = 0; o < outer; ++o)
      for (const Val& part : in) {
        const std::size_t run = part.e.size() / static_cast<std::size_t>(outer);
        for (std::size_t i = 0; i < run; ++i) v.e.push_back(part.e[static_cast<std::size_t>(o) * run + i]);
      }
    return v;
  }

  // ---- places that are known at run time ---------------------------------------------------------------------------------
  /// The start along an axis, moved inside as the interpreter does.
  Value clamped(Value start, std::int64_t most) {
    // An unsigned or wide start is compared in its own type, before it is narrowed.
    const Value top = b_.integer(start.dtype, largest(start.dtype, most), start.lanes);
    start = b_.min(start, top);
    if (!is_unsigned(start.dtype)) start = b_.max(start, b_.integer(start.dtype, 0, start.lanes));
    return b_.convert(start, DType::i64);
  }
  static std::int64_t largest(DType d, std::int64_t most) {
    const int bits = static_cast<int>(size_of(d)) * 8 - !is_unsigned(d);
    return bits >= 63 ? most : std::min(most, (std::int64_t{1} << bits) - 1);
  }
  Value linear(const Shape& shape, const std::vector<Value>& index) {
    Value p = index_number(0);
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (index[d]) p = sum(p, stride == 1 ? index[d] : b_.mul(index[d], b_.integer(DType::i64, stride, index[d].lanes)));
      stride *= shape[d];
    }
    return p;
  }
  /// Distances of a window's elements from its first.
  static std::vector<std::int64_t> window(const Shape& shape, const Shape& sizes) {
    std::vector<std::int64_t> all;
    for (std::int64_t k = 0; k < sizes.elements(); ++k) {
      std::int64_t left = k, place = 0, stride = 1;
      for (std::size_t d = shape.size(); d-- > 0;) {
        place += left % sizes[d] * stride;
        left /= sizes[d];
        stride *= shape[d];
      }
      all.push_back(place);
    }
    return all;
  }
  Value element_at(const Val& x, Value place) { return x.object >= 0 ? read(object(x), place) : chosen(x.e, place); }
  Value further(Value place, std::int64_t by) { return by == 0 ? place : sum(place, index_number(by)); }

  Value start_of(const Shape& shape, const Shape& sizes, std::span<const Val> starts) {
    std::vector<Value> index;
    for (std::size_t d = 0; d < shape.size(); ++d) index.push_back(clamped(starts[d].e[0], shape[d] - sizes[d]));
    return linear(shape, index);
  }

  Val dynamic_slice(const GraphBody& g, const Equation& e, const std::vector<Val>& in) {
    const Shape &shape = g.aval(e.inputs[0]).shape, &sizes = e.as<ShapeParams>().shape;
    const Value start = start_of(shape, sizes, std::span<const Val>(in).subspan(1));
    Val v;
    for (const std::int64_t by : window(shape, sizes)) v.e.push_back(element_at(in[0], further(start, by)));
    return v;
  }

  Val dynamic_update_slice(const GraphBody& g, const Equation& e, const std::vector<Val>& in) {
    const Shape &shape = g.aval(e.inputs[0]).shape, &sizes = g.aval(e.inputs[1]).shape;
    const Value start = start_of(shape, sizes, std::span<const Val>(in).subspan(2));
    const std::vector<std::int64_t> places = window(shape, sizes);
    Val v = in[0];
    for (std::size_t k = 0; k < places.size(); ++k) {
      const Value at_place = further(start, places[k]);
      if (v.object >= 0) {
        write(object(v), at_place, in[1].e[k]);
        continue;
      }
      for (std::size_t i = 0; i < v.e.size(); ++i) v.e[i] = either(equals(at_place, static_cast<std::int64_t>(i)), in[1].e[k], v.e[i]);
    }
    return v;
  }

  // As the definition in graph.hpp reads.
  Val gathered(const GraphBody& g, const Equation& e, const std::vector<Val>& in) {
    const auto& p = e.as<GatherParams>();
    const Shape &shape = g.aval(e.inputs[0]).shape, &indices = g.aval(e.inputs[1]).shape, &out = g.aval(e.outputs[0]).shape;
    const auto vector_length = static_cast<std::size_t>(indices.back());
    Val v;
    std::vector<std::int64_t> index(out.size(), 0);
    for (std::int64_t n = 0; n < out.elements(); ++n) {
      std::int64_t left = n;
      for (std::size_t d = out.size(); d-- > 0;) {
        index[d] = left % out[d];
        left /= out[d];
      }
      // The index vector's place among the indices' leading axes, and the element of the window.
      std::vector<std::int64_t> leading, in_window;
      for (std::size_t d = 0; d < out.size(); ++d) (p.offset_dims.contains(static_cast<int>(d)) ? in_window : leading).push_back(index[d]);
      std::int64_t row = 0;
      for (std::size_t d = 0; d < leading.size(); ++d) row = row * indices[d] + leading[d];
      std::vector<Value> place(shape.size());
      std::size_t next = 0;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        const int axis = static_cast<int>(d);
        if (p.collapsed_slice_dims.contains(axis) || p.operand_batching_dims.contains(axis)) continue;
        place[d] = index_number(in_window[next++]);
      }
      for (std::size_t k = 0; k < p.operand_batching_dims.size(); ++k)
        place[static_cast<std::size_t>(p.operand_batching_dims[k])] = index_number(leading[static_cast<std::size_t>(p.indices_batching_dims[k])]);
      Value inside{};
      for (std::size_t k = 0; k < p.start_index_map.size(); ++k) {
        const auto d = static_cast<std::size_t>(p.start_index_map[k]);
        const Value start = in[1].e[static_cast<std::size_t>(row) * vector_length + k];
        const std::int64_t most = shape[d] - p.slice_sizes[d];
        const Value moved = clamped(start, most);
        if (p.mode == IndexMode::fill) {
          // Unchanged by clamping: inside.
          const Value good = b_.compare(Compare::eq, b_.convert(moved, start.dtype), start);
          inside = inside ? both_of(inside, good) : good;
        }
        place[d] = place[d] ? sum(place[d], moved) : moved;
      }
      Value x = element_at(in[0], linear(shape, place));
      if (inside) x = either(inside, x, b_.integer(x.dtype, 0, x.lanes));
      v.e.push_back(x);
    }
    return v;
  }
  // One update after the other, in row-major order.
  Val scattered(const GraphBody& g, const Equation& e, const std::vector<Val>& in) {
    const auto& p = e.as<ScatterParams>();
    const Shape &shape = g.aval(e.inputs[0]).shape, &indices = g.aval(e.inputs[1]).shape, &updates = g.aval(e.inputs[2]).shape;
    const auto vector_length = static_cast<std::size_t>(indices.back());
    const Op combination = e.op == Op::scatter_add ? Op::add : e.op == Op::scatter_mul ? Op::mul : e.op == Op::scatter_min ? Op::min : Op::max;
    Val v = in[0];
    std::vector<std::int64_t> index(updates.size(), 0);
    for (std::int64_t n = 0; n < updates.elements(); ++n) {
      std::int64_t left = n;
      for (std::size_t d = updates.size(); d-- > 0;) {
        index[d] = left % updates[d];
        left /= updates[d];
      }
      std::vector<std::int64_t> leading;
      for (std::size_t d = 0; d < updates.size(); ++d)
        if (!p.update_window_dims.contains(static_cast<int>(d))) leading.push_back(index[d]);
      std::int64_t row = 0;
      for (std::size_t d = 0; d < leading.size(); ++d) row = row * indices[d] + leading[d];
      std::vector<Value> place(shape.size());
      Shape sizes = Shape::filled(shape.size(), 1);
      std::size_t next = 0;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        const int axis = static_cast<int>(d);
        if (p.inserted_window_dims.contains(axis) || p.operand_batching_dims.contains(axis)) continue;
        const auto from = static_cast<std::size_t>(p.update_window_dims[next++]);
        place[d] = index_number(index[from]);
        sizes[d] = updates[from];
      }
      for (std::size_t k = 0; k < p.operand_batching_dims.size(); ++k)
        place[static_cast<std::size_t>(p.operand_batching_dims[k])] = index_number(leading[static_cast<std::size_t>(p.indices_batching_dims[k])]);
      Value inside{};
      for (std::size_t k = 0; k < p.scatter_dims_to_operand_dims.size(); ++k) {
        const auto d = static_cast<std::size_t>(p.scatter_dims_to_operand_dims[k]);
        const Value start = in[1].e[static_cast<std::size_t>(row) * vector_length + k];
        const Value moved = clamped(start, shape[d] - sizes[d]);
        if (p.mode == IndexMode::fill) {
          const Value good = b_.compare(Compare::eq, b_.convert(moved, start.dtype), start);
          inside = inside ? both_of(inside, good) : good;
        }
        place[d] = place[d] ? sum(place[d], moved) : moved;
      }
      const Value to = linear(shape, place);
      const Value update = in[2].e[static_cast<std::size_t>(n)];
      const DType dtype = g.aval(e.outputs[0]).dtype;
      const auto combined = [&](Value old) { return e.op == Op::scatter ? update : apply(combination, dtype, {}, {old, update}); };
      if (v.object < 0) {
        for (std::size_t i = 0; i < v.e.size(); ++i) {
          Value here = equals(to, static_cast<std::int64_t>(i));
          if (inside) here = both_of(here, inside);
          v.e[i] = either(here, combined(v.e[i]), v.e[i]);
        }
        continue;
      }
      // An update that is out of range writes back what is there.
      const Value old = read(object(v), to);
      const Value x = combined(old);
      write(object(v), to, inside ? either(inside, x, old) : x);
    }
    return v;
  }
  Value both_of(Value a, Value b) { return a.lanes == b.lanes ? b_.bit_and(a, b) : b_.bit_and(wide(a), wide(b)); }

  IrBuilder& b_;
  const GraphBody& graph_;
  const Equation& equation_;
  Lanes lanes_;
  std::size_t carries_ = 0;
  int width_ = 1;
  std::vector<Value> pointers_;
  std::vector<Object> objects_;
  Value lane_, mask_;
};

}  // namespace register_emission

void emit_register_loop(IrBuilder& b, const std::string& name, const GraphBody& graph) { register_emission::Emitter(b, graph).emit(name); }

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
