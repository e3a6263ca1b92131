// What shard_map has recorded, run on the parts of this process.
#include "run_recorded.hpp"

#include <utility>

#include <vt/ops.hpp>

#include "../../trace/ir/collectives.hpp"
#include "../../trace/processes/shards.hpp"
#include "../../trace/record/node.hpp"
#include "../../trace/record/scope.hpp"
#include "../../trace/record/thread_state.hpp"

namespace vt::detail {

namespace recorded_calls {

Tensor index_tensor(std::int64_t i) {
  return full_tensor(Scalar(i).converted(DType::i32), Aval(DType::i32, Shape{}));
}

/// The rank of this process, or shard, in the mesh.
Tensor rank_tensor(std::span<const AxisRef> mesh, CallSite where) {
  Tensor rank;
  for (const AxisRef& axis : mesh) {
    Tensor own = emit(Op::axis_index, make_params(CollectiveParams{axis, {}}), {}, where);
    if (axis->stride > 1) own = emit(Op::mul, {}, {own, index_tensor(axis->stride)}, where);
    rank = rank.defined() ? emit(Op::add, {}, {rank, own}, where) : own;
  }
  return rank;
}

/// For each stream those that the lanes of a vmap would have, one for each rank.
std::vector<Tensor> streams_of_ranks(const RecordedCall& call) {
  std::int64_t ranks = 1;
  for (const AxisRef& axis : call.mesh) ranks *= axis->size;
  std::vector<Tensor> streams;
  for (const LaneStream& s : call.streams)
    streams.push_back(lane_streams(s.variable, ranks, s.where));
  return streams;
}

/// The Graph's inputs with these arguments, and this rank's streams.
std::vector<Tensor> inputs_of(const RecordedCall& call, std::vector<Tensor> arguments,
                              std::span<const Tensor> streams) {
  std::vector<Tensor> inputs = std::move(arguments);
  for (std::size_t k = 0; k < streams.size(); ++k) {
    const CallSite where = call.streams[k].where;
    const Tensor row = emit(Op::dynamic_slice, make_params(ShapeParams{Shape{1, 2}}),
                            {streams[k], rank_tensor(call.mesh, where), index_tensor(0)}, where);
    inputs.push_back(emit(Op::reshape, make_params(ShapeParams{Shape{2}}), {row}, where));
  }
  inputs.insert(inputs.end(), call.captured.begin(), call.captured.end());
  return inputs;
}

/// While it lives, collectives outside of all scopes wait for an evaluate.
class TogetherScope {
 public:
  TogetherScope() : before_(std::exchange(thread_state().exchanges_wait, true)) {}
  ~TogetherScope() { thread_state().exchanges_wait = before_; }
  TogetherScope(const TogetherScope&) = delete;
  TogetherScope& operator=(const TogetherScope&) = delete;

 private:
  bool before_;
};

/// The shard's block of what this process has of a value.
Tensor block_of_shard(const Tensor& own, int axis, std::int64_t shards, const Tensor& shard,
                      CallSite where) {
  const Shape& shape = aval_of(own).shape;
  Shape block = shape;
  block[axis] = shape[axis] / shards;
  std::vector<Tensor> operands = {own};
  for (int k = 0; k < shape.rank(); ++k)
    operands.push_back(k == axis ? emit(Op::mul, {}, {shard, index_tensor(block[axis])}, where)
                                 : index_tensor(0));
  return emit(Op::dynamic_slice, make_params(ShapeParams{block}), operands, where);
}

/// Of the calling thread, for one that works for it.
struct ThreadSettings {
  NanWatch nan_watch = thread_state().nan_watch;
  PrintStyle print = thread_state().print;
  void apply() const {
    thread_state().nan_watch = nan_watch;
    thread_state().print = print;
  }
};

}  // namespace recorded_calls

int cut_axis(const Sharding& sharding, int rank) {
  if (sharding.cuts().empty()) return -1;
  const int dim = sharding.cuts()[0].dim;
  return dim < 0 ? dim + rank : dim;
}

std::vector<Tensor> run_recorded(const RecordedCall& call) {
  using namespace recorded_calls;
  const std::vector<Tensor> streams = streams_of_ranks(call);
  const std::vector<Tensor> inputs =
      inputs_of(call, {call.arguments.begin(), call.arguments.end()}, streams);
  std::vector<Tensor> outputs;
  {
    const TogetherScope together;
    outputs = replay(call.graph, inputs);
  }
  // At the call: a process that looks at a result alone must not wait for the others.
  if (communicates(call.graph) && thread_state().floor == 0) {
    std::vector<Tensor> now;
    for (const Tensor& t : outputs)
      if (!is_tracer(t)) now.push_back(t);
    evaluate(now, call.where);
  }
  return outputs;
}

std::vector<Tensor> run_in_shards(const RecordedCall& call, int shards,
                                  std::span<const Sharding> in_specs,
                                  std::span<const Sharding> out_specs) {
  using namespace recorded_calls;
  const std::vector<Tensor> streams = streams_of_ranks(call);
  evaluate(call.arguments, call.where);
  evaluate(streams, call.where);
  evaluate(call.captured, call.where);
  const ThreadSettings settings;
  std::vector<std::vector<Tensor>> results(static_cast<std::size_t>(shards));
  const auto run = [&](int shard) {
    settings.apply();
    const Tensor index =
        emit(Op::rem, {}, {rank_tensor(call.mesh, call.where), index_tensor(shards)}, call.where);
    std::vector<Tensor> own;
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      const Tensor& x = call.arguments[i];
      const int axis = cut_axis(in_specs[i], aval_of(x).shape.rank());
      own.push_back(axis < 0 || shards == 1 ? x
                                            : block_of_shard(x, axis, shards, index, call.where));
    }
    const std::vector<Tensor> inputs = inputs_of(call, std::move(own), streams);
    evaluate(inputs, call.where);  // apart from what follows, which then is the same on all
    std::vector<Tensor>& outputs = results[static_cast<std::size_t>(shard)];
    {
      const TogetherScope together;
      outputs = replay(call.graph, inputs);
    }
    compile_at_first_sight(outputs);
    evaluate(outputs, call.where);
  };
  run_shards(World::current(), shards, run, call.where);
  std::vector<Tensor> joined;
  for (std::size_t k = 0; k < out_specs.size(); ++k) {
    const int axis = cut_axis(out_specs[k], aval_of(results[0][k]).shape.rank());
    std::vector<Tensor> parts;
    for (const std::vector<Tensor>& of_shard : results) parts.push_back(of_shard[k]);
    joined.push_back(axis < 0 || shards == 1 ? parts[0] : concatenate(parts, axis, call.where));
  }
  evaluate(joined, call.where);
  return joined;
}

}  // namespace vt::detail
