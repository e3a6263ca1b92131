// Batch rules of the element-wise families: all operands get the same axis of lanes; operands that
// are one number per lane are not broadcast.
#include "../lanes.hpp"

#include "../../../trace/record/thread_state.hpp"

namespace vt::detail::batch_rules {

namespace elementwise_batch {

// The lane axis of the result: where most of the shaped mapped operands have theirs, so that as few
// as possible are transposed.
int result_axis(const BatchCall& c) {
  const int rank = c.result_aval().shape.rank();
  if (rank == 0) return 0;
  int best = 0, best_votes = 0;
  for (const Batched& x : c.operands) {
    if (!x.axis || x.value.rank() != rank + 1) continue;
    int votes = 0;
    for (const Batched& y : c.operands) votes += y.axis == x.axis && y.value.rank() == rank + 1;
    if (votes > best_votes) {
      best = *x.axis;
      best_votes = votes;
    }
  }
  return best;
}

BatchedList emit_at(const BatchCall& c, ParamsRef params) {
  const Aval& lane = c.result_aval();
  const int rank = lane.shape.rank();
  const int axis = result_axis(c);
  const Shape shape = lanes::inserted(lane.shape, axis, c.lanes);
  Borrowed operands;
  SmallVec<Tensor, 3> made;
  const auto add = [&](Tensor t) {
    made.push_back(std::move(t));
    operands.add(made.back());
  };
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const Batched& x = c.operands[i];
    if (!x.axis) {
      // A scalar goes with any shape; the other unmapped ones are read in place, lane by lane, once
      // this is fused.
      if (x.value.rank() == 0) operands.add(x.value);
      else add(c.broadcast(i, axis));
    } else if (x.value.rank() == rank + 1) {
      if (*x.axis == axis) operands.add(x.value);
      else add(lanes::moved(x.value, *x.axis, axis, c.where()));
    } else {  // a scalar per lane beside a shaped operand
      add(emit(Op::broadcast_in_dim, make_params(BroadcastParams{shape, Axes{axis}}), {x.value},
               c.where()));
    }
  }
  const std::span<const Tensor> view = operands;
  Node* n = place_node(c.equation.op, std::move(params), view,
                       level_for(c.equation.op, {}, view, c.where()), c.where());
  n->avals.emplace(lane.dtype, shape);
  BatchedList results;
  results.push_back({adopted(n), axis});
  return results;
}

// `index op number`, when it is the same for all lanes.
std::optional<bool> decided(Op op, std::int64_t least, std::int64_t most, std::int64_t number) {
  switch (op) {
    case Op::lt:
      return most < number     ? std::optional(true)
             : least >= number ? std::optional(false)
                               : std::nullopt;
    case Op::le:
      return most <= number   ? std::optional(true)
             : least > number ? std::optional(false)
                              : std::nullopt;
    case Op::gt:
      return least > number   ? std::optional(true)
             : most <= number ? std::optional(false)
                              : std::nullopt;
    case Op::ge:
      return least >= number ? std::optional(true)
             : most < number ? std::optional(false)
                             : std::nullopt;
    default: break;
  }
  const bool equal = op == Op::eq;
  if (number < least || number > most) return !equal;
  if (least == most && least == number) return equal;
  return std::nullopt;
}

}  // namespace elementwise_batch

BatchedList elementwise(const BatchCall& c) {
  return elementwise_batch::emit_at(c, c.equation.params);
}

BatchedList comparison(const BatchCall& c) {
  // `a[i]` asks whether i is negative; of a loop index that is known, and the answer keeps the
  // index recognisable.
  if (is_int(c.operand_aval(0).dtype) && c.mapped(0) != c.mapped(1)) {
    const std::size_t mapped = c.mapped(0) ? 0 : 1;
    if (const auto number = lanes::known_integer(c.operands[1 - mapped])) {
      if (const auto index = lanes::lane_index(c.operands[mapped], c.lanes)) {
        const Op op = mapped == 0 ? c.equation.op : mirrored(c.equation.op);
        if (const auto answer = elementwise_batch::decided(op, index->least(c.lanes),
                                                           index->most(c.lanes), *number)) {
          BatchedList results;
          results.push_back({full_tensor(Scalar(*answer), c.result_aval()), std::nullopt});
          return results;
        }
      }
    }
  }
  return elementwise_batch::emit_at(c, c.equation.params);
}

BatchedList convert(const BatchCall& c) {
  // Weak is a scalar literal's property; a value per lane is none.
  const auto& p = c.as<ConvertParams>();
  return elementwise_batch::emit_at(
      c, p.weak ? make_params(ConvertParams{p.dtype, false}) : c.equation.params);
}

BatchedList select(const BatchCall& c) {
  if (const auto condition = lanes::known_integer(c.operands[0])) {
    const std::size_t chosen = *condition ? 1 : 2;
    if (c.operand_aval(chosen).shape == c.result_aval().shape) {
      BatchedList results;
      results.push_back(c.operands[chosen]);
      return results;
    }
  }
  return elementwise_batch::emit_at(c, c.equation.params);
}

}  // namespace vt::detail::batch_rules
