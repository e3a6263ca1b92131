// Arrays of a register kernel that are used as wholes: those in the function's stack frame, views
// of others, and those that loops carry.
#include "register_emitter.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/detail/message.hpp>

namespace vt::detail::cpu::register_emission {

Val RegisterEmitter::kept(Object o) {
  const auto number = static_cast<int>(objects_.size());
  if (o.base < 0) o.base = number;
  objects_.push_back(std::move(o));
  return Val::array(number);
}

const Object& RegisterEmitter::updated(const Val& v) const {
  if (!object(v).writable)
    fail(ErrorKind::backend, "vt: internal: a register kernel updates what it only reads", {});
  return object(v);
}

Object RegisterEmitter::own_array(const Aval& a) {
  Object o;
  o.pointer = b_.stack_array(a.dtype, std::max<std::int64_t>(a.elements(), 1));
  o.dtype = a.dtype;
  o.shape = a.shape;
  o.writable = true;
  return o;
}

Object RegisterEmitter::unset_array(const Aval& a) {
  if (!form_.side_by_side()) return own_array(a);
  Object o = own_array(Aval(a.dtype, Shape{a.elements() * width_}));
  o.shape = a.shape;
  o.by_element = true;
  return o;
}

void RegisterEmitter::copy(const Object& to, const Val& from) {
  const Object& o = object(from);
  const std::int64_t bytes = o.shape.elements() * static_cast<std::int64_t>(size_of(o.dtype));
  b_.copy_bytes(first_of(to), first_of(o), index_number(bytes));
}

Val RegisterEmitter::array_value(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const Aval& out = g.aval(e.outputs[0]);
  if (e.op == Op::concatenate) return joined(g, e, in);
  if (e.op == Op::reshape || e.op == Op::slice || e.op == Op::dynamic_slice) {
    const Shape& from = g.aval(e.inputs[0]).shape;
    Object o = object(in[0]);
    o.shape = out.shape;
    if (from.elements() == out.elements()) return kept(o);
    o.whole = false;
    Value start = index_number(0);
    if (e.op == Op::slice) {
      Vec<Value> index;
      for (const std::int64_t i : e.as<SliceParams>().start) index.push_back(index_number(i));
      start = linear(from, index);
    } else {
      start = start_of(from, out.shape, std::span<const Val>(in).subspan(1));
    }
    o.start = o.start ? b_.add(o.start, start) : start;
    return kept(o);
  }
  if (e.op == Op::dynamic_update_slice && in[1].is_array()) {
    Object part = updated(in[0]);
    const Value start =
        start_of(part.shape, g.aval(e.inputs[1]).shape, std::span<const Val>(in).subspan(2));
    part.start = part.start ? b_.add(part.start, start) : start;
    copy(part, in[1]);
    return in[0];
  }
  if (e.op == Op::dynamic_update_slice || is_scatter(e.op)) return value(g, e, in);
  // Element by element, a vector at a time.
  const Object to = own_array(out);
  std::size_t widest = size_of(out.dtype);
  for (const Var v : e.inputs) widest = std::max(widest, size_of(g.aval(v).dtype));
  const int lanes = std::max(b_.target().simd_lanes(std::max<std::size_t>(widest, 4)), 1);
  const std::int64_t count = out.elements(), vectors = count / lanes * lanes;
  const auto iteration = [&](Value i, int wide) {
    Operands operands;
    for (const Val& x : in)
      operands.push_back(x.is_array() ? b_.load(b_.offset(first_of(object(x)), object(x).dtype, i),
                                                object(x).dtype, wide)
                                      : x[0]);
    Value result;
    if (e.op == Op::full) result = constant(e.as<FullParams>().value.converted(out.dtype));
    else if (e.op == Op::iota)
      result = b_.convert(wide == 1 ? i : b_.add(b_.splat(i, wide), b_.iota(DType::i64, wide)),
                          out.dtype);
    else if (e.op == Op::broadcast_in_dim) result = operands[0];
    else result = apply(e.op, out.dtype, e.params, std::move(operands));
    b_.store(b_.offset(to.pointer, out.dtype, i),
             result.simd_lanes == wide ? result : b_.splat(result, wide));
  };
  b_.for_range(index_number(0), index_number(vectors), lanes,
               [&](Value i) { iteration(i, lanes); });
  if (vectors < count)
    b_.for_range(index_number(vectors), index_number(count), 1, [&](Value i) { iteration(i, 1); });
  return kept(to);
}

Val RegisterEmitter::joined(const GraphBody& g, const Equation& e, const Vec<Val>& in) {
  const Object all = own_array(g.aval(e.outputs[0]));
  std::int64_t first = 0;
  for (std::size_t k = 0; k < in.size(); ++k) {
    Object part = all;
    part.start = index_number(first);
    in[k].is_array() ? copy(part, in[k]) : store_elements(part, in[k]);
    first += g.aval(e.inputs[k]).elements();
  }
  return kept(all);
}

Vec<Val> RegisterEmitter::begin_carries(const Vec<Val>& operands, std::size_t carries) {
  Vec<Val> init(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(carries));
  for (Val& v : init) {
    if (!v.is_array()) continue;
    const Object o = object(v);
    int users = 0;
    for (const Val& x : operands) users += x.is_array() && object(x).base == o.base;
    if (o.writable && o.whole && users == 1) continue;
    const Object own = own_array(Aval(o.dtype, o.shape));
    copy(own, v);
    v = kept(own);
  }
  return init;
}

void RegisterEmitter::hand_on(const Vec<Val>& carried, Vec<Val>& next) {
  Vec<int> to, from;
  Vec<std::size_t> moved;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    if (!carried[i].is_array()) continue;
    const Object &there = object(carried[i]), &here = object(next[i]);
    if (here.base == there.base && here.whole) continue;
    to.push_back(there.base);
    from.push_back(here.base);
    moved.push_back(i);
  }
  const Vec<std::size_t> order = *copy_order(to, from);
  for (const std::size_t k : order) copy(object(carried[moved[k]]), next[moved[k]]);
  for (std::size_t i = 0; i < carried.size(); ++i)
    if (carried[i].is_array()) next[i] = carried[i];
}

RegisterEmitter::Flags RegisterEmitter::restrict_writes(const Vec<Val>& carried) {
  Flags flags;
  for (Object& o : objects_) {
    flags.push_back(o.writable);
    o.writable = false;
  }
  for (const Val& v : carried)
    if (v.is_array()) objects_[object(v).base].writable = objects_[v.object()].writable = true;
  return flags;
}

void RegisterEmitter::restore_writes(const Flags& flags) {
  for (std::size_t k = 0; k < flags.size(); ++k) objects_[k].writable = flags[k];
}

}  // namespace vt::detail::cpu::register_emission

#endif  // VT_HAS_LLVM_HEADERS
