// Sparsity patterns as constants of a Graph.
#include <algorithm>
#include <mutex>
#include <string>

#include "../../trace/base/hash_map.hpp"
#include "../../trace/base/locks.hpp"
#include "../../trace/base/recent_map.hpp"
#include "../../trace/record/thread_state.hpp"
#include "build.hpp"
#include "sparsity_walk.hpp"

namespace vt::detail::sparsity {

SparsityPattern shared(Bits bits) {
  if (!find_bit(bits.data(), static_cast<std::int64_t>(bits.size()), 0)) return {};
  return std::make_shared<const Bits>(std::move(bits));
}

namespace mask_parts {

/// Along the axis of such an extent, whose elements lie `step` apart.
inline bool varies(const Bits& bits, std::int64_t count, std::int64_t step, std::int64_t extent) {
  for (std::int64_t first = 0; first < count; first += step * extent) {
    const auto run = bits.begin() + first;
    if (!std::equal(run + step, run + step * extent, run)) return true;
  }
  return false;
}

inline bool same(const Masks::Mask& a, const Masks::Mask& b) {
  const char *x = a.values->as<char>(), *y = b.values->as<char>();
  return a.shape == b.shape && a.axes == b.axes && a.by_direction == b.by_direction &&
         std::equal(x, x + a.values->bytes, y, y + b.values->bytes);
}

/// Equal patterns are one buffer each time.
BufferRef kept(const BufferRef& values) {
  struct Known {
    Mutex mutex;
    RecentMap<std::string, BufferRef> masks{1024};
  };
  static Known& all = *new Known;  // threads may record while the process ends
  const std::string bits(values->as<const char>(), values->bytes);
  Vec<BufferRef> gone;
  const std::lock_guard lock(all.mutex);
  if (const BufferRef* const found = all.masks.find(bits)) return *found;
  return *all.masks.emplace(bits, values, gone);
}

/// The extent along each axis of the box that all ones fill, if they fill one.
bool is_box(const char* bits, const Shape& shape, Shape& from, Shape& to) {
  const std::int64_t n = shape.elements();
  const char *const first = find_bit(bits, n, 1), *const last =
                                                      static_cast<const char*>(memrchr(bits, 1, n));
  if (!first) return false;
  std::int64_t low = first - bits, high = last - bits;
  from = to = shape;
  for (std::size_t d = shape.size(); d-- > 0;) {
    from[d] = low % shape[d];
    to[d] = high % shape[d] + 1;
    low /= shape[d];
    high /= shape[d];
  }
  const std::int64_t run = shape.back(), begin = from.back(), end = to.back();
  for (std::int64_t r = 0; r < n / run; ++r, bits += run) {
    bool inside = true;
    std::int64_t row = r;
    for (std::size_t d = shape.size() - 1; d-- > 0; row /= shape[d])
      inside = inside && row % shape[d] >= from[d] && row % shape[d] < to[d];
    const bool fits = inside ? begin < end && !find_bit(bits, begin, 1) &&
                                   !find_bit(bits + begin, end - begin, 0) &&
                                   !find_bit(bits + end, run - end, 1)
                             : !find_bit(bits, run, 1);
    if (!fits) return false;
  }
  return true;
}

/// A large pattern as a formula of indices, if it is a box or rows of an identity: no memory is
/// read for it. Undefined if it is neither.
Tensor formula(const char* bits, const Shape& shape) {
  using namespace grad_build;
  const std::int64_t n = shape.elements(), rows = shape[0],
                     columns = n / std::max<std::int64_t>(rows, 1);
  const DType index = index_type(n);
  Shape from, to;
  if (is_box(bits, shape, from, to)) {
    Tensor all;
    const auto both = [&](Tensor also) {
      all = all.defined() ? binary(Op::and_, all, also) : also;
    };
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Tensor along = index_along(index, shape, static_cast<int>(d));
      const auto limit = [&](std::int64_t i) { return scalar(index, static_cast<double>(i)); };
      if (from[d] > 0) both(binary(Op::ge, along, limit(from[d])));
      if (to[d] < shape[d]) both(binary(Op::lt, along, limit(to[d])));
    }
    return all;
  }
  const char* const one = find_bit(bits, columns, 1);
  const std::int64_t start = one ? one - bits : columns;
  if (start + rows > columns) return {};
  for (std::int64_t r = 0; r < rows; ++r) {
    const char* const row = bits + r * columns;
    const std::int64_t place = start + r;
    if (find_bit(row, columns, 1) != row + place ||
        find_bit(row + place + 1, columns - place - 1, 1))
      return {};
  }
  const Shape square{rows, columns};
  const Tensor row =
      binary(Op::add, index_along(index, square, 0), scalar(index, static_cast<double>(start)));
  return with_shape(binary(Op::eq, row, index_along(index, square, 1)), shape);
}

}  // namespace mask_parts

int Masks::number(const SparsityPattern& pattern, const Shape& shape) {
  Vec<Known>& known = known_[pattern.get()];
  for (const Known& k : known)
    if (k.shape == shape) return k.number;
  Mask mask = compact(*pattern, shape);
  int number = 0;
  while (number < static_cast<int>(masks_.size()) && !mask_parts::same(masks_[number], mask))
    ++number;
  if (number == static_cast<int>(masks_.size())) masks_.push_back(std::move(mask));
  known.push_back({pattern, shape, number});
  return number;
}

int Masks::number_of(const Mask& mask) {
  const char* const bits = mask.values->as<const char>();
  Bits all;
  for (std::int64_t d = 0; d < directions_; ++d)
    all.insert(all.end(), bits, bits + mask.shape.elements());
  return number(std::make_shared<const Bits>(std::move(all)), mask.shape);
}

Masks& Masks::of_lanes() {
  if (!of_lanes_) of_lanes_ = std::make_unique<Masks>(1);
  return *of_lanes_;
}

Masks::Outcome* Masks::outcome(const GraphBody* body, const Vec<Reach>& inputs) {
  for (Outcome& o : outcomes_)
    if (o.body == body && o.inputs == inputs) return &o;
  return nullptr;
}

Masks::Mask Masks::compact(const Bits& bits, const Shape& shape) const {
  const std::int64_t n = shape.elements();
  Mask mask;
  mask.by_direction = directions_ > 1 && !std::equal(bits.begin() + n, bits.end(), bits.begin());
  const std::int64_t rows = mask.by_direction ? directions_ : 1;
  Vec<std::int64_t> steps;
  std::int64_t step = n;
  for (int d = 0; d < shape.rank(); ++d) {
    const std::int64_t extent = shape[d];
    step /= extent;
    if (!mask_parts::varies(bits, rows * n, step, extent)) continue;
    mask.axes.push_back(d);
    mask.shape.push_back(extent);
    steps.push_back(step);
  }
  const std::int64_t count = mask.shape.elements();
  mask.values = allocate(rows * count);
  if (count == n) {
    std::copy_n(bits.begin(), rows * n, mask.values->as<char>());
    return mask;
  }
  Vec<std::int64_t> index(mask.shape.size(), 0);
  std::int64_t place = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    for (std::int64_t r = 0; r < rows; ++r)
      mask.values->as<char>()[r * count + k] = bits[r * n + place];
    for (std::size_t d = index.size(); d-- > 0;) {
      place += steps[d];
      if (++index[d] < mask.shape[d]) break;
      place -= steps[d] * mask.shape[d];
      index[d] = 0;
    }
  }
  return mask;
}

// Graphs are known again by their constants' buffers.
Tensor Masks::value(int number) const {
  const Mask& mask = masks_[number];
  Shape shape = mask.shape;
  if (mask.by_direction) shape.insert(shape.begin(), directions_);
  const char* const bits = mask.values->as<const char>();
  constexpr std::size_t small = 256, most_kept = std::size_t{1} << 16;
  if (mask.values->bytes > small)
    if (Tensor formula = mask_parts::formula(bits, shape); formula.defined()) return formula;
  BufferRef values = mask.values;
  if (values->bytes <= most_kept) values = mask_parts::kept(values);
  return emit(Op::constant,
              make_params(ConstantParams{std::move(values), Aval(DType::bool_, std::move(shape))}),
              {}, {});
}

namespace mask_parts {

/// The equations that make a Tensor of constants: masks, formulas of masks, and moves of both. −1:
/// something else is read, or it is large, or longer than what keep_zeros writes.
Var write_constants(const Tensor& t, GraphBody& to, HashMap<const Node*, Var>& known, int depth) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  constexpr int deepest = 32;
  const Node* const n = node_of(t);
  if (const auto* found = known.find(n); found != known.end()) return found->second;
  const bool leaf = n->op == Op::constant || n->op == Op::full || n->op == Op::iota;
  // An evaluated one has lost its operands, and values have no parameters.
  if (leaf ? !n->params : n->inputs.empty()) return -1;
  if (!leaf && family_of(n->op) != Family::shape && !is_elementwise(n->op)) return -1;
  if (n->avals.size() != 1 || n->avals[0].elements() > most || depth == deepest) return -1;
  Equation e;
  e.op = n->op;
  e.params = n->params;
  if (!leaf)
    for (const Tensor& operand : n->inputs) {
      const Var v = write_constants(operand, to, known, depth + 1);
      if (v < 0) return -1;
      e.inputs.push_back(v);
    }
  const Var made = to.fresh(n->avals[0]);
  e.outputs.push_back(made);
  to.equations.push_back(std::move(e));
  known[n] = made;
  return made;
}

BufferRef value_of_constants(const Tensor& t) {
  GraphBody graph;
  HashMap<const Node*, Var> known;
  {
    const std::lock_guard lock(lazy_mutex());  // other threads may evaluate them
    if (write_constants(t, graph, known, 0) < 0) return {};
  }
  Vec<BufferRef> values(graph.avals.size());
  for (const Equation& e : graph.equations) {
    Vec<BufferRef> operands;
    for (Var v : e.inputs) operands.push_back(values[v]);
    values[e.outputs[0]] = e.op == Op::constant ? e.as<ConstantParams>().buffer
                                                : interpret_equation(e, graph, operands)[0];
  }
  return values.back();
}

}  // namespace mask_parts

SparsityPattern elements_of(const Tensor& mask) {
  if (mask.dtype() != DType::bool_) return {};
  const BufferRef value = mask_parts::value_of_constants(mask);
  if (!value) return {};
  const char* const first = value->as<const char>();
  return std::make_shared<const Bits>(first, first + aval_of(mask).elements());
}

void Writer::append(Op op, ParamsRef params, std::initializer_list<Var> inputs, Var output) {
  Equation& e = graph.equations.emplace_back();
  e.op = op;
  e.params = std::move(params);
  e.where = where;
  e.assume_finite = assume_finite;
  for (Var v : inputs) e.inputs.push_back(v);
  e.outputs.push_back(output);
}
Var Writer::make(Op op, ParamsRef params, std::initializer_list<Var> inputs, const Aval& out) {
  const Var v = graph.fresh(out);
  append(op, std::move(params), inputs, v);
  return v;
}
Var Writer::filled(const Aval& a, double value) {
  const Aval strong(a.dtype, a.shape);
  return make(Op::full, make_params(FullParams{Scalar(value).converted(a.dtype), strong}), {},
              strong);
}
Var Writer::select(Var mask, Var if_true, Var if_false, const Aval& out) {
  const Var v = graph.fresh(out);
  select(mask, if_true, if_false, v);
  return v;
}
void Writer::select(Var mask, Var if_true, Var if_false, Var output) {
  append(Op::select, make_params(StructuralParams{}), {mask, if_true, if_false}, output);
}
Var Writer::broadcast(Var x, const Shape& shape, const Axes& axes) {
  return make(Op::broadcast_in_dim, make_params(BroadcastParams{shape, axes}), {x},
              Aval(aval(x).dtype, shape));
}

}  // namespace vt::detail::sparsity
