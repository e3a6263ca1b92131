// Sparsity patterns as constants of a Graph.
#include <algorithm>

#include "sparsity_walk.hpp"

namespace vt::detail::sparsity {

SparsityPattern shared(Bits bits) {
  if (std::find(bits.begin(), bits.end(), 0) == bits.end()) return {};
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

}  // namespace mask_parts

int Masks::number(const SparsityPattern& pattern, const Shape& shape) {
  Vec<Known>& known = known_[pattern.get()];
  for (const Known& k : known)
    if (k.shape == shape) return k.number;
  Mask mask = compact(*pattern, shape);
  int number = 0;
  while (number < static_cast<int>(masks_.size()) && !mask_parts::same(masks_[at(number)], mask))
    ++number;
  if (number == static_cast<int>(masks_.size())) masks_.push_back(std::move(mask));
  known.push_back({pattern, shape, number});
  return number;
}

Masks::Mask Masks::compact(const Bits& bits, const Shape& shape) const {
  const std::int64_t n = shape.elements();
  Mask mask;
  mask.by_direction = directions_ > 1 && !std::equal(bits.begin() + n, bits.end(), bits.begin());
  const std::int64_t rows = mask.by_direction ? directions_ : 1;
  Vec<std::int64_t> steps;
  std::int64_t step = n;
  for (int d = 0; d < shape.rank(); ++d) {
    const std::int64_t extent = shape[at(d)];
    step /= extent;
    if (!mask_parts::varies(bits, rows * n, step, extent)) continue;
    mask.axes.push_back(d);
    mask.shape.push_back(extent);
    steps.push_back(step);
  }
  const std::int64_t count = mask.shape.elements();
  mask.values = allocate(at(rows * count));
  Vec<std::int64_t> index(mask.shape.size(), 0);
  std::int64_t place = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    for (std::int64_t r = 0; r < rows; ++r)
      mask.values->as<char>()[r * count + k] = bits[at(r * n + place)];
    for (std::size_t d = index.size(); d-- > 0;) {
      place += steps[d];
      if (++index[d] < mask.shape[d]) break;
      place -= steps[d] * mask.shape[d];
      index[d] = 0;
    }
  }
  return mask;
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
Var Writer::broadcast(Var x, const Shape& shape, const Axes& axes) {
  return make(Op::broadcast_in_dim, make_params(BroadcastParams{shape, axes}), {x},
              Aval(aval(x).dtype, shape));
}

}  // namespace vt::detail::sparsity
