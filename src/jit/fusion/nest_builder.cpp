// Writes the values of a kernel by walking back from what it stores,
// turning shape ops into index expressions.
#include "nest_builder.hpp"

#include <bit>
#include <cstring>
#include <limits>

namespace vt::detail {

namespace nest_building {

// Numbers that simplify code when it knows them; all others are arguments, so that a changing one
// needs no new kernel.
bool worth_baking(const Scalar& s) {
  if (!is_float(s.dtype)) {
    const double v = s.to_double();
    return v >= -1024 && v <= 1024;
  }
  for (double v : {0.0, 1.0, -1.0, 2.0, 0.5, -2.0, -0.5})
    if (s.real == v) return true;
  return !(s.real - s.real == 0);  // infinities and NaN
}

std::int64_t argument_bits(const Scalar& s) {
  if (s.dtype == DType::f64) return std::bit_cast<std::int64_t>(s.real);
  if (s.dtype == DType::f16)
    return std::bit_cast<std::int32_t>(static_cast<float>(Float16(static_cast<float>(s.real))));
  if (s.dtype == DType::bf16)
    return std::bit_cast<std::int32_t>(static_cast<float>(BFloat16(static_cast<float>(s.real))));
  if (s.dtype == DType::f32) return std::bit_cast<std::int32_t>(static_cast<float>(s.real));
  return s.integer;
}

Scalar scalar_of(const void* data, DType dtype) {
  return with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    T value;
    std::memcpy(&value, data, sizeof value);
    return Scalar(value);
  });
}

// The largest value of an integer dtype, as far as an index can tell.
std::int64_t largest(DType d) {
  if (is_bool(d)) return 1;
  const int bits = static_cast<int>(size_of(d)) * 8 - (is_unsigned(d) ? 0 : 1);
  return bits >= 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1;
}

Scalar integer_scalar(DType d, std::int64_t v) {
  Scalar s(v);
  return s.converted(d);
}

}  // namespace nest_building

std::int64_t NestBuilder::limit_of(int loop) const {
  const NestLoop& l = nest_.loops[loop];
  return l.runtime ? IndexTable::unbounded : l.extent;
}

int NestBuilder::add_loop(std::int64_t extent, bool reduce, bool runtime) {
  NestLoop l;
  l.extent = extent;
  l.reduce = reduce;
  l.runtime = runtime;
  nest_.loops.push_back(l);
  return static_cast<int>(nest_.loops.size() - 1);
}

int NestBuilder::buffer_of(Var v, bool written) {
  v = source_.storage[v];
  const auto [at, fresh] = buffers_.emplace(v, static_cast<int>(nest_.buffers.size()));
  if (fresh) {
    nest_.buffers.push_back({source_.graph->aval(v).dtype, written, at->second});
    step_.buffers.push_back(v);
  }
  if (written) nest_.buffers[at->second].written = true;
  return at->second;
}

int NestBuilder::add_value(NestValue v) {
  std::size_t h = static_cast<std::size_t>(v.kind) * 31 + static_cast<std::size_t>(v.op) * 7 +
                  static_cast<std::size_t>(v.dtype);
  for (int o : v.operands) h = h * 1000003 + static_cast<std::size_t>(o);
  h = h * 1000003 + static_cast<std::size_t>(v.index + 1) * 17 +
      static_cast<std::size_t>(v.buffer + 1) + static_cast<std::size_t>(v.low) * 3 +
      static_cast<std::size_t>(v.argument + 1) * 257 + static_cast<std::size_t>(v.literal.natural);
  SmallVec<int, 1>& candidates = known_[h];
  for (int candidate : candidates) {
    const NestValue& k = nest_.values[candidate];
    if (k.kind == v.kind && k.op == v.op && k.dtype == v.dtype && k.operands == v.operands &&
        k.index == v.index && k.buffer == v.buffer && k.mask == v.mask && k.low == v.low &&
        k.high == v.high && k.argument == v.argument &&
        (v.kind != NestValue::Kind::literal || k.literal == v.literal) && equal(k.params, v.params))
      return candidate;
  }
  v.where = line_;
  nest_.values.push_back(std::move(v));
  const int id = static_cast<int>(nest_.values.size() - 1);
  candidates.push_back(id);
  return id;
}

int NestBuilder::literal(Scalar s) {
  NestValue v;
  v.kind = NestValue::Kind::literal;
  v.dtype = s.dtype;
  v.literal = s;
  return add_value(std::move(v));
}

int NestBuilder::op(Op op, DType dtype, std::initializer_list<int> operands, ParamsRef params) {
  NestValue v;
  v.kind = NestValue::Kind::op;
  v.op = op;
  v.dtype = dtype;
  for (int o : operands) v.operands.push_back(o);
  v.params = std::move(params);
  return add_value(std::move(v));
}

int NestBuilder::convert(int value, DType dtype) {
  if (nest_.values[value].dtype == dtype) return value;
  return op(Op::convert, dtype, {value});
}

int NestBuilder::both(int a, int b) {
  return a < 0 ? b : b < 0 || a == b ? a : op(Op::and_, DType::bool_, {a, b});
}

int NestBuilder::in_range(IndexId index, std::int64_t low, std::int64_t high) {
  const IndexBounds b = indices().bounds(index);
  const bool known = b.high < IndexTable::unbounded && b.low > -IndexTable::unbounded;
  if (b.low >= low && b.high < high && (known || high >= IndexTable::unbounded)) return -1;
  if ((known && b.low >= high) || (known && b.high < low) || low >= high) return -2;
  NestValue v;
  v.kind = NestValue::Kind::in_range;
  v.dtype = DType::bool_;
  v.index = index;
  v.low = low;
  v.high = high;
  return add_value(std::move(v));
}

int NestBuilder::full(const FullParams& p) {
  const Scalar s = p.value.converted(p.aval.dtype);
  return nest_building::worth_baking(s) ? literal(s)
                                        : argument(s.dtype, nest_building::argument_bits(s));
}

int NestBuilder::argument(DType dtype, std::int64_t bits) {
  NestValue v;
  v.kind = NestValue::Kind::argument;
  v.dtype = dtype;
  for (std::size_t i = 0; i < nest_.values.size(); ++i) {
    const NestValue& k = nest_.values[i];
    if (k.kind == NestValue::Kind::argument && k.dtype == dtype &&
        step_.arguments[k.argument] == bits)
      return static_cast<int>(i);
  }
  v.argument = nest_.arguments++;
  step_.arguments.push_back(bits);
  return add_value(std::move(v));
}

int NestBuilder::load(Var v, const IndexVector& index, int mask) {
  const Aval& aval = source_.graph->aval(v);
  NestValue value;
  value.kind = NestValue::Kind::load;
  value.dtype = aval.dtype;
  value.buffer = buffer_of(v, false);
  value.index = linear_index(indices(), index, aval.shape);
  value.mask = mask;
  return add_value(std::move(value));
}

int NestBuilder::value_at(Var v, const IndexVector& index, int mask) {
  if (const auto at = bound_.find(v); at != bound_.end()) return at->second;
  Key key{v, mask, index};
  if (const auto at = memo_.find(key); at != memo_.end()) return at->second;
  const std::size_t k = v;
  const int definition = source_.definition[k];
  int result;
  if (definition >= 0) {
    const Equation& e = source_.graph->equations[definition];
    const bool number = e.op == Op::constant && source_.graph->aval(v).elements() == 1;
    if (number) {
      const ConstantParams& p = e.as<ConstantParams>();
      FullParams f{nest_building::scalar_of(p.buffer->data, p.aval.dtype), p.aval};
      result = full(f);
    } else if (source_.stored[k] && !is_here(source_.storage[k])) {
      result = load(v, index, mask);
    } else {
      const CallSite outer = line_;
      if (e.where.file) line_ = e.where;
      result = compute(e, v, index, mask);
      line_ = outer;
    }
  } else {
    result = load(v, index, mask);
  }
  memo_.emplace(std::move(key), result);
  return result;
}

int NestBuilder::elementwise(const Equation& e, DType dtype, SmallVec<int, 3> operands) {
  if (e.op == Op::stop_gradient) return operands[0];
  if (e.op == Op::convert) return convert(operands[0], dtype);
  NestValue value;
  value.kind = NestValue::Kind::op;
  value.op = e.op;
  value.dtype = dtype;
  value.params = e.params;
  value.operands = std::move(operands);
  return add_value(std::move(value));
}

Vec<int> NestBuilder::apply(const GraphBody& body, const Vec<int>& arguments) {
  Vec<int> values(body.avals.size(), -1);
  for (std::size_t i = 0; i < body.inputs.size(); ++i) values[body.inputs[i]] = arguments[i];
  for (const Equation& e : body.equations) {
    const Var out = e.outputs[0];
    const DType d = body.aval(out).dtype;
    int& result = values[out];
    if (e.op == Op::full) {
      result = full(e.as<FullParams>());
    } else if (e.op == Op::constant) {
      const ConstantParams& p = e.as<ConstantParams>();
      result = full({nest_building::scalar_of(p.buffer->data, p.aval.dtype), p.aval});
    } else {
      SmallVec<int, 3> operands;
      for (Var o : e.inputs) operands.push_back(values[o]);
      result = elementwise(e, d, std::move(operands));
    }
  }
  Vec<int> results;
  for (Var v : body.outputs) results.push_back(values[v]);
  return results;
}

int NestBuilder::compute(const Equation& e, Var v, const IndexVector& index, int mask) {
  const std::size_t where = source_.definition[v];
  if (counted_.emplace(where, true).fresh) {
    step_.fused.push_back(static_cast<int>(where));
    ++nest_.fused_ops;
  }
  const GraphBody& g = *source_.graph;
  if (is_elementwise(e.op)) {
    SmallVec<int, 3> operands;
    for (Var o : e.inputs)
      operands.push_back(value_at(o, g.aval(o).shape.rank() == 0 ? IndexVector{} : index, mask));
    return elementwise(e, g.aval(v).dtype, std::move(operands));
  }
  const auto shape_of = [&](std::size_t i) -> const Shape& { return g.aval(e.inputs[i]).shape; };
  IndexTable& t = indices();
  switch (e.op) {
    case Op::full: return full(e.as<FullParams>());
    case Op::iota: {
      NestValue value;
      value.kind = NestValue::Kind::index;
      value.dtype = g.aval(v).dtype;
      value.index = index[e.as<IotaParams>().axis];
      return add_value(std::move(value));
    }
    case Op::reshape:
      return value_at(e.inputs[0],
                      index_at(t, linear_index(t, index, g.aval(v).shape), shape_of(0)), mask);
    case Op::transpose: {
      const Axes& permutation = e.as<PermutationParams>().permutation;
      IndexVector inner(index.size(), 0);
      for (std::size_t i = 0; i < index.size(); ++i) inner[permutation[i]] = index[i];
      return value_at(e.inputs[0], inner, mask);
    }
    case Op::broadcast_in_dim: {
      const Axes& axes = e.as<BroadcastParams>().axes;
      IndexVector inner;
      for (std::size_t i = 0; i < axes.size(); ++i)
        inner.push_back(shape_of(0)[i] == 1 ? t.constant(0) : index[axes[i]]);
      return value_at(e.inputs[0], inner, mask);
    }
    case Op::slice: {
      const SliceParams& p = e.as<SliceParams>();
      IndexVector inner;
      for (std::size_t i = 0; i < index.size(); ++i)
        inner.push_back(t.add(t.scale(index[i], p.stride.empty() ? 1 : p.stride[i]), p.start[i]));
      return value_at(e.inputs[0], inner, mask);
    }
    case Op::rev: {
      IndexVector inner = index;
      for (int axis : e.as<AxesParams>().axes) {
        const std::size_t k = axis;
        inner[k] = t.add(t.scale(index[k], -1), shape_of(0)[k] - 1);
      }
      return value_at(e.inputs[0], inner, mask);
    }
    case Op::windows: {
      const WindowParams& p = e.as<WindowParams>();
      IndexVector inner(index.begin(), index.end() - static_cast<std::ptrdiff_t>(p.axes.size()));
      for (std::size_t k = 0; k < p.axes.size(); ++k) {
        IndexId& at = inner[p.axes[k]];
        at = t.add(t.scale(at, p.strides[k]), t.scale(index[inner.size() + k], p.dilations[k]));
      }
      return value_at(e.inputs[0], inner, mask);
    }
    case Op::overlap_add: {  // of windows that do not overlap; a sum is never −0
      IndexVector inner = index;
      inner.resize(shape_of(0).rank(), t.constant(0));
      const DType d = g.aval(v).dtype;
      const int value = overlapping(e, inner, mask);
      return is_float(d) ? op(Op::add, d, {value, literal(nest_building::integer_scalar(d, 0))})
                         : value;
    }
    case Op::concatenate: return concatenate(e, index, mask);
    case Op::pad: return pad(e, index, mask);
    case Op::gather: return gather(e, index, mask);
    case Op::dynamic_slice: return dynamic_slice(e, index, mask);
    case Op::dynamic_update_slice: return dynamic_update_slice(e, v, index, mask);
    default:
      fail(ErrorKind::backend,
           "vt: internal fault: " + std::string(name_of(e.op)) + " inside a loop nest", e.where);
  }
}

int NestBuilder::concatenate(const Equation& e, const IndexVector& index, int mask) {
  const GraphBody& g = *source_.graph;
  const std::size_t axis = e.as<AxisParams>().axis;
  // From the last to the first: select(in 0, part 0, select(in 1, part 1, … )).
  std::int64_t end = 0;
  for (Var o : e.inputs) end += g.aval(o).shape[axis];
  int result = -1;
  for (std::size_t i = e.inputs.size(); i-- > 0;) {
    const std::int64_t extent = g.aval(e.inputs[i]).shape[axis];
    const std::int64_t start = end - extent;
    end = start;
    if (extent == 0) continue;
    const int here = in_range(index[axis], start, start + extent);
    if (here == -2) continue;
    IndexVector inner = index;
    inner[axis] = indices().add(index[axis], -start);
    const int part = value_at(e.inputs[i], inner, here < 0 ? mask : both(mask, here));
    result = result < 0 || here < 0
                 ? part
                 : op(Op::select, g.aval(e.outputs[0]).dtype, {here, part, result});
  }
  return result >= 0 ? result
                     : literal(nest_building::integer_scalar(g.aval(e.outputs[0]).dtype, 0));
}

int NestBuilder::pad(const Equation& e, const IndexVector& index, int mask) {
  const GraphBody& g = *source_.graph;
  const PadParams& p = e.as<PadParams>();
  const Shape& shape = g.aval(e.inputs[0]).shape;
  IndexTable& t = indices();
  IndexVector inner;
  int inside = -1;
  bool never = shape.elements() == 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const IndexId shifted = t.add(index[i], -p.low[i]);
    const std::int64_t step = (p.interior.empty() ? 0 : p.interior[i]) + 1;
    inner.push_back(t.quotient(shifted, step));
    // nothing is added to this axis, whatever its extent
    if (p.low[i] <= 0 && p.high[i] <= 0 && step == 1) continue;
    int check = in_range(inner.back(), 0, shape[i]);
    never = never || check == -2;
    inside = both(inside, std::max(check, -1));
    if (step > 1) {
      check = in_range(t.remainder(shifted, step), 0, 1);
      never = never || check == -2;
      inside = both(inside, std::max(check, -1));
    }
  }
  const int edge = value_at(e.inputs[1], {}, -1);
  if (never) return edge;
  const int value = value_at(e.inputs[0], inner, both(mask, inside));
  return inside < 0 ? value : op(Op::select, g.aval(e.outputs[0]).dtype, {inside, value, edge});
}

Shape overlap_iterations(const WindowParams& p) {
  Shape iterations;
  for (std::size_t k = 0; k < p.axes.size(); ++k)
    iterations.push_back(p.dilations[k] == 1 ? (p.sizes[k] + p.strides[k] - 1) / p.strides[k]
                                             : p.sizes[k]);
  return iterations;
}

// Element i lies in window o at place p if i = stride · o + dilation · p. Without dilation, p is i
// mod stride and stride · j more, for some j; else every p is tried.
int NestBuilder::overlapping(const Equation& e, const IndexVector& index, int mask) {
  const WindowParams& p = e.as<WindowParams>();
  IndexTable& t = indices();
  const DType d = source_.graph->aval(e.outputs[0]).dtype;
  const std::size_t rank = index.size() - p.axes.size();
  IndexVector inner = index;
  int inside = -1;
  bool never = false;
  const auto need = [&](int check) {
    never = never || check == -2;
    inside = both(inside, std::max(check, -1));
  };
  for (std::size_t k = 0; k < p.axes.size(); ++k) {
    IndexId &window = inner[p.axes[k]], &place = inner[rank + k];
    const std::int64_t stride = p.strides[k];
    if (p.dilations[k] == 1) {
      const IndexId at = window, iteration = place;
      window = t.subtract(t.quotient(at, stride), iteration);
      place = t.add(t.remainder(at, stride), t.scale(iteration, stride));
      need(in_range(place, 0, p.sizes[k]));
    } else {
      const IndexId start = t.subtract(window, t.scale(place, p.dilations[k]));
      window = t.quotient(start, stride);
      need(in_range(t.remainder(start, stride), 0, 1));
    }
    need(in_range(window, 0, p.count(k)));
  }
  const int zero = literal(nest_building::integer_scalar(d, 0));
  if (never) return zero;
  const int value = value_at(e.inputs[0], inner, both(mask, inside));
  return inside < 0 ? value : op(Op::select, d, {inside, value, zero});
}

IndexId NestBuilder::clipped(int value, std::int64_t most, int* inside) {
  const DType d = nest_.values[value].dtype;
  const int zero = literal(nest_building::integer_scalar(d, 0));
  const bool upper = most < nest_building::largest(d);
  const int limit = upper ? literal(nest_building::integer_scalar(d, most)) : -1;
  if (inside) {
    *inside = upper ? op(Op::le, DType::bool_, {value, limit}) : -1;
    if (is_signed_int(d)) *inside = both(*inside, op(Op::ge, DType::bool_, {value, zero}));
  }
  if (is_signed_int(d)) value = op(Op::max, d, {value, zero});
  if (upper) value = op(Op::min, d, {value, limit});
  const DType wide = most < (std::int64_t{1} << 31) ? DType::i32 : DType::i64;
  return indices().value(convert(value, wide), most + 1);
}

// Result axes: offset_dims are the window's, the others the leading axes of `indices`, in order.
int NestBuilder::gather(const Equation& e, const IndexVector& index, int mask) {
  const GraphBody& g = *source_.graph;
  const GatherParams& p = e.as<GatherParams>();
  const Shape& operand = g.aval(e.inputs[0]).shape;
  const Shape& starts = g.aval(e.inputs[1]).shape;
  IndexTable& t = indices();
  if (operand.elements() == 0)
    return literal(nest_building::integer_scalar(g.aval(e.outputs[0]).dtype, 0));
  IndexVector batch;
  for (std::size_t i = 0; i < index.size(); ++i)
    if (!p.offset_dims.contains(static_cast<int>(i))) batch.push_back(index[i]);
  IndexVector inner(static_cast<std::size_t>(operand.rank()), t.constant(0));
  std::size_t window = 0;
  for (int axis = 0; axis < operand.rank(); ++axis)
    if (!p.collapsed_slice_dims.contains(axis) && !p.operand_batching_dims.contains(axis))
      inner[axis] = index[p.offset_dims[window++]];
  for (std::size_t k = 0; k < p.operand_batching_dims.size(); ++k)
    inner[p.operand_batching_dims[k]] = batch[p.indices_batching_dims[k]];
  int inside = -1;
  for (std::size_t k = 0; k < p.start_index_map.size(); ++k) {
    const std::size_t axis = p.start_index_map[k];
    IndexVector at = batch;
    if (starts.rank() > static_cast<int>(batch.size()))
      at.push_back(t.constant(static_cast<std::int64_t>(k)));
    int good = -1;
    const std::int64_t most = operand[axis] - p.slice_sizes[axis];
    const IndexId start =
        clipped(value_at(e.inputs[1], at, mask), most, p.mode == IndexMode::fill ? &good : nullptr);
    inside = both(inside, good);
    inner[axis] = t.add(inner[axis], start);
  }
  const int value = value_at(e.inputs[0], inner, both(mask, inside));
  if (inside < 0) return value;
  const DType d = g.aval(e.outputs[0]).dtype;
  return op(Op::select, d, {inside, value, literal(nest_building::integer_scalar(d, 0))});
}

// The mirror of gather: update axes update_window_dims are the window's, the others the leading
// axes of `indices`.
IndexVector NestBuilder::scatter_index(const Equation& e, const IndexVector& index, int* inside) {
  const GraphBody& g = *source_.graph;
  const ScatterParams& p = e.as<ScatterParams>();
  const Shape& operand = g.aval(e.inputs[0]).shape;
  const Shape& starts = g.aval(e.inputs[1]).shape;
  const Shape& updates = g.aval(e.inputs[2]).shape;
  IndexTable& t = indices();
  IndexVector batch;
  for (std::size_t i = 0; i < index.size(); ++i)
    if (!p.update_window_dims.contains(static_cast<int>(i))) batch.push_back(index[i]);
  IndexVector at(static_cast<std::size_t>(operand.rank()), t.constant(0));
  Shape sizes = Shape::filled(operand.size(), 1);
  std::size_t window = 0;
  for (int axis = 0; axis < operand.rank(); ++axis)
    if (!p.inserted_window_dims.contains(axis) && !p.operand_batching_dims.contains(axis)) {
      const std::size_t from = p.update_window_dims[window++];
      at[axis] = index[from];
      sizes[axis] = updates[from];
    }
  for (std::size_t k = 0; k < p.operand_batching_dims.size(); ++k)
    at[p.operand_batching_dims[k]] = batch[p.indices_batching_dims[k]];
  *inside = -1;
  for (std::size_t k = 0; k < p.scatter_dims_to_operand_dims.size(); ++k) {
    const std::size_t axis = p.scatter_dims_to_operand_dims[k];
    IndexVector position = batch;
    if (starts.rank() > static_cast<int>(batch.size()))
      position.push_back(t.constant(static_cast<std::int64_t>(k)));
    int good = -1;
    const IndexId start = clipped(value_at(e.inputs[1], position), operand[axis] - sizes[axis],
                                  p.mode == IndexMode::fill ? &good : nullptr);
    *inside = both(*inside, good);
    at[axis] = t.add(at[axis], start);
  }
  return at;
}

IndexVector NestBuilder::window_index(const Equation& e, const IndexVector& index) {
  const GraphBody& g = *source_.graph;
  const Shape &operand = g.aval(e.inputs[0]).shape, &sizes = g.aval(e.inputs[1]).shape;
  IndexVector at;
  for (std::size_t i = 0; i < index.size(); ++i)
    at.push_back(indices().add(
        index[i], clipped(value_at(e.inputs[i + 2], {}), operand[i] - sizes[i], nullptr)));
  return at;
}

int NestBuilder::dynamic_slice(const Equation& e, const IndexVector& index, int mask) {
  const GraphBody& g = *source_.graph;
  const Shape& operand = g.aval(e.inputs[0]).shape;
  const Shape& sizes = e.as<ShapeParams>().shape;
  IndexVector inner;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const IndexId start =
        clipped(value_at(e.inputs[i + 1], {}, -1), operand[i] - sizes[i], nullptr);
    inner.push_back(indices().add(index[i], start));
  }
  return value_at(e.inputs[0], inner, mask);
}

int NestBuilder::dynamic_update_slice(const Equation& e, Var v, const IndexVector& index,
                                      int mask) {
  const GraphBody& g = *source_.graph;
  const Shape& operand = g.aval(e.inputs[0]).shape;
  const Shape& update = g.aval(e.inputs[1]).shape;
  IndexTable& t = indices();
  if (update.elements() == 0) return value_at(e.inputs[0], index, mask);
  IndexVector inner;
  int inside = -1;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const IndexId start =
        clipped(value_at(e.inputs[i + 2], {}, -1), operand[i] - update[i], nullptr);
    inner.push_back(t.subtract(index[i], start));
    if (update[i] < operand[i])
      inside = both(inside, std::max(in_range(inner.back(), 0, update[i]), -1));
  }
  const int fresh = value_at(e.inputs[1], inner, both(mask, inside));
  if (inside < 0) return fresh;
  return op(Op::select, g.aval(v).dtype, {inside, fresh, value_at(e.inputs[0], index, mask)});
}

}  // namespace vt::detail
