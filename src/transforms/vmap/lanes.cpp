// What the batch rules share: moving and adding the axis of lanes, shifting axis numbers past it,
// and recognising the loop index.
#include "lanes.hpp"

#include <algorithm>
#include <limits>
#include <mutex>

#include "../../trace/record/thread_state.hpp"

namespace vt::detail {

Tensor BatchCall::broadcast(std::size_t i, int axis) const {
  if (broadcasts.by_var.empty()) broadcasts.by_var.resize(graph.avals.size());
  Broadcasts::Entry& entry = broadcasts.by_var[equation.inputs[i]];
  if (entry.axis != axis) entry = {axis, lanes::broadcast(operands[i].value, lanes, axis, where())};
  return entry.value;
}

namespace lanes {

Shape inserted(const Shape& shape, int at, std::int64_t extent) {
  Shape result;
  result.reserve(shape.size() + 1);
  result.append(shape.begin(), shape.begin() + at);
  result.push_back(extent);
  result.append(shape.begin() + at, shape.end());
  return result;
}

Shape removed(const Shape& shape, int at) {
  Shape result = shape;
  result.erase(result.begin() + at);
  return result;
}

Axes shifted(const Axes& lane_axes, int axis) {
  Axes result;
  result.reserve(lane_axes.size());
  for (int a : lane_axes) result.push_back(shifted(a, axis));
  return result;
}

Tensor moved(const Tensor& x, int from, int to, CallSite where) {
  if (from == to) return x;
  Axes permutation = Axes::first(x.rank());
  permutation.erase(permutation.begin() + from);
  permutation.insert(permutation.begin() + to, from);
  return emit(Op::transpose, make_params(PermutationParams{permutation}), {x}, where);
}

Tensor broadcast(const Tensor& x, std::int64_t lanes, int axis, CallSite where) {
  const Shape& shape = x.shape();
  return emit(Op::broadcast_in_dim,
              make_params(BroadcastParams{inserted(shape, axis, lanes),
                                          shifted(Axes::first(shape.rank()), axis)}),
              {x}, where);
}

Tensor at_axis(const Batched& x, int axis, std::int64_t lanes, CallSite where) {
  return x.axis ? moved(x.value, *x.axis, axis, where) : broadcast(x.value, lanes, axis, where);
}

Aval lane_aval(const Batched& x) {
  const Aval& aval = aval_of(x.value);
  return x.axis ? Aval(aval.dtype, removed(aval.shape, *x.axis)) : aval;
}

Batched broadcast(const Batched& x, const Shape& lane_shape, const Axes& lane_axes,
                  CallSite where) {
  // Result axes must increase with the operand's, so the lanes go right behind the axis that they
  // follow there.
  const int axis = *x.axis == 0 ? 0 : lane_axes[static_cast<std::size_t>(*x.axis) - 1] + 1;
  Axes axes = shifted(lane_axes, axis);
  axes.insert(axes.begin() + *x.axis, axis);
  const std::int64_t lanes = x.value.shape()[*x.axis];
  return {
      emit(Op::broadcast_in_dim,
           make_params(BroadcastParams{inserted(lane_shape, axis, lanes), axes}), {x.value}, where),
      axis};
}

namespace loop_index {

// an index is a few ops away from its iota; what is further away is no simple index
constexpr int deepest = 16;

__extension__ typedef __int128 Wide;

bool fits(Wide value, DType dtype) {
  switch (dtype) {
    case DType::i8: return value >= -128 && value <= 127;
    case DType::u8: return value >= 0 && value <= 255;
    case DType::i16: return value >= -32768 && value <= 32767;
    case DType::u16: return value >= 0 && value <= 65535;
    case DType::i32:
      return value >= std::numeric_limits<std::int32_t>::min() &&
             value <= std::numeric_limits<std::int32_t>::max();
    case DType::u32: return value >= 0 && value <= std::numeric_limits<std::uint32_t>::max();
    case DType::u64: return value >= 0 && value <= std::numeric_limits<std::int64_t>::max();
    default:
      return value >= std::numeric_limits<std::int64_t>::min() &&
             value <= std::numeric_limits<std::int64_t>::max();
  }
}

std::optional<LaneIndex> checked(Wide scale, Wide offset, std::int64_t lanes, DType dtype) {
  // No lane may have wrapped around on the way.
  if (lanes < 1 || !fits(scale, DType::i64) || !fits(offset, dtype) ||
      !fits(scale * (lanes - 1) + offset, dtype))
    return std::nullopt;
  return LaneIndex{static_cast<std::int64_t>(scale), static_cast<std::int64_t>(offset)};
}

// The operands of a pending op at level 0 may be dropped by another thread that evaluates it:
// lazy_mutex() is held here.
std::optional<std::int64_t> constant(const Tensor& x, int depth = 0) {
  const Node* n = node_of(x);
  if (n->op == Op::full) {
    const Scalar value = n->params->as<FullParams>().value;
    if (is_inexact(value.dtype)) return std::nullopt;
    if (is_unsigned(value.dtype) && value.natural > std::numeric_limits<std::int64_t>::max())
      return std::nullopt;
    return value.integer;
  }
  if (depth < deepest && (n->op == Op::broadcast_in_dim || n->op == Op::reshape) &&
      !n->inputs.empty())
    return constant(n->inputs[0], depth + 1);
  return std::nullopt;
}

// The axis of a reshape's operand that becomes result axis `axis` whole, or −1.
int axis_before_reshape(const Shape& from, const Shape& to, int axis) {
  std::int64_t before = 1, seen = 1;
  for (int i = 0; i < axis; ++i) before *= to[i];
  for (int i = 0; i < from.rank(); ++i) {
    if (seen == before && from[i] == to[axis]) return i;
    seen *= from[i];
  }
  return -1;
}

std::optional<LaneIndex> find(const Tensor& x, int axis, std::int64_t lanes, int depth) {
  const Node* n = node_of(x);
  const DType dtype = n->avals[0].dtype;
  if (depth > deepest || !is_int(dtype)) return std::nullopt;
  if (n->op == Op::iota) {
    if (n->params->as<IotaParams>().axis != axis) return std::nullopt;
    return checked(1, 0, lanes, dtype);
  }
  if (n->inputs.empty()) return std::nullopt;
  const Tensor& in = n->inputs[0];
  switch (n->op) {
    case Op::neg:
      if (const auto i = find(in, axis, lanes, depth + 1))
        return checked(-static_cast<Wide>(i->scale), -static_cast<Wide>(i->offset), lanes, dtype);
      return std::nullopt;
    case Op::convert:
      if (const auto i = find(in, axis, lanes, depth + 1))
        return checked(i->scale, i->offset, lanes, dtype);
      return std::nullopt;
    case Op::broadcast_in_dim: {
      const Axes& axes = n->params->as<BroadcastParams>().axes;
      for (std::size_t i = 0; i < axes.size(); ++i)
        if (axes[i] == axis && in.shape()[i] == lanes)
          return find(in, static_cast<int>(i), lanes, depth + 1);
      return std::nullopt;
    }
    case Op::reshape: {
      const int before = axis_before_reshape(in.shape(), n->avals[0].shape, axis);
      return before < 0 ? std::nullopt : find(in, before, lanes, depth + 1);
    }
    case Op::transpose:
      return find(in, n->params->as<PermutationParams>().permutation[axis], lanes, depth + 1);
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::max:
    case Op::min: {
      const Tensor& other = n->inputs[1];
      const auto left = find(in, axis, lanes, depth + 1);
      const auto right = left ? std::nullopt : find(other, axis, lanes, depth + 1);
      const auto number = left ? constant(other) : right ? constant(in) : std::nullopt;
      if (!number) return std::nullopt;
      const LaneIndex i = left ? *left : *right;
      const Wide c = *number, s = i.scale, o = i.offset;
      if (n->op == Op::add) return checked(s, o + c, lanes, dtype);
      if (n->op == Op::sub)
        return left ? checked(s, o - c, lanes, dtype) : checked(-s, c - o, lanes, dtype);
      if (n->op == Op::mul) return checked(s * c, o * c, lanes, dtype);
      // A bound that holds already changes nothing.
      const bool kept = n->op == Op::max ? i.least(lanes) >= *number : i.most(lanes) <= *number;
      return kept ? std::optional(i) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

}  // namespace loop_index

std::optional<LaneIndex> lane_index(const Batched& x, std::int64_t lanes) {
  if (!x.axis || !is_int(x.value.dtype())) return std::nullopt;
  std::lock_guard lock(lazy_mutex());
  return loop_index::find(x.value, *x.axis, lanes, 0);
}

std::optional<std::int64_t> known_integer(const Batched& x) {
  if (x.axis || is_inexact(x.value.dtype())) return std::nullopt;
  const Op op = node_of(x.value)->op;
  if (op != Op::full && op != Op::broadcast_in_dim && op != Op::reshape) return std::nullopt;
  std::lock_guard lock(lazy_mutex());
  return loop_index::constant(x.value);
}

std::optional<Tensor> by_lane(const Tensor& x, int axis, const LaneIndex& index, std::int64_t lanes,
                              CallSite where) {
  const Shape& shape = x.shape();
  const std::size_t at = axis;
  if (index.scale == 0 || index.least(lanes) < 0 || index.most(lanes) >= shape[at])
    return std::nullopt;
  Tensor result = x;
  if (index.least(lanes) != 0 || index.most(lanes) != shape[at] - 1 ||
      (lanes > 1 && index.scale != 1 && index.scale != -1)) {
    SliceParams p{Shape::filled(shape.size(), 0), shape, Shape::filled(shape.size(), 1)};
    p.start[at] = index.least(lanes);
    p.limit[at] = index.most(lanes) + 1;
    p.stride[at] = lanes == 1 ? 1 : std::max(index.scale, -index.scale);
    result = emit(Op::slice, make_params(std::move(p)), {x}, where);
  }
  if (index.scale < 0 && lanes > 1)
    result = emit(Op::rev, make_params(AxesParams{Axes{axis}}), {result}, where);
  return result;
}

}  // namespace lanes

}  // namespace vt::detail
