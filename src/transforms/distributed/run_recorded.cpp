// What shard_map has recorded, run on the parts of this process.
#include "run_recorded.hpp"

#include <cstring>
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

/// The Graph's inputs on this process.
std::vector<Tensor> inputs_of(const RecordedCall& call) {
  std::vector<Tensor> inputs(call.arguments.begin(), call.arguments.end());
  const std::vector<Tensor> streams = streams_of_ranks(call);
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

/// Block `index` of `count` along an axis of a value.
BufferRef block_of(const Tensor& value, int axis, std::int64_t count, std::int64_t index,
                   CallSite where) {
  const BufferRef whole = buffer_of(value, where);
  const Aval& aval = aval_of(value);
  Shape block = aval.shape;
  block[axis] /= count;
  if (whole->device.kind != Device::Kind::cpu) {
    std::vector<Tensor> operands = {value};
    for (int k = 0; k < block.rank(); ++k)
      operands.push_back(index_tensor(k == axis ? index * block[axis] : 0));
    return buffer_of(emit(Op::dynamic_slice, make_params(ShapeParams{block}), operands, where),
                     where);
  }
  BufferRef part = allocate(aval.bytes() / static_cast<std::size_t>(count), "a shard's block");
  std::int64_t rows = 1;
  for (int k = 0; k < axis; ++k) rows *= block[k];
  const std::size_t row = rows == 0 ? 0 : part->bytes / static_cast<std::size_t>(rows);
  for (std::int64_t r = 0; r < rows && row > 0; ++r)
    std::memcpy(part->as<char>() + static_cast<std::size_t>(r) * row,
                whole->as<char>() + static_cast<std::size_t>(r * count + index) * row, row);
  return part;
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

/// The Graph's equations outside of all scopes, or in the scope around.
std::vector<Tensor> run_together(const GraphBody& graph, std::span<const Tensor> inputs) {
  const TogetherScope together;
  return replay(graph, inputs);
}

/// Runs the Graph as one program, compiled wherever it runs, so that all shards get the same bits.
std::vector<Tensor> run_alike(const GraphBody& graph, std::span<const BufferRef> inputs,
                              CallSite where) {
  std::vector<Tensor> outputs;
  if (watches_nans()) {  // which looks at what is evaluated
    std::vector<Tensor> values;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values.push_back(from_buffer(inputs[i], graph.aval(graph.inputs[i])));
    outputs = run_together(graph, values);
    compile_at_first_sight(outputs);
    evaluate(outputs, where);
    return outputs;
  }
  Vec<BufferRef> made = run_graph(graph, inputs, true);
  for (std::size_t k = 0; k < made.size(); ++k)
    outputs.push_back(from_buffer(std::move(made[k]), graph.aval(graph.outputs[k])));
  return outputs;
}

}  // namespace recorded_calls

int cut_axis(const Sharding& sharding, int rank) {
  if (sharding.cuts().empty()) return -1;
  const int dim = sharding.cuts()[0].dim;
  return dim < 0 ? dim + rank : dim;
}

std::vector<Tensor> run_recorded(const RecordedCall& call) {
  using namespace recorded_calls;
  std::vector<Tensor> outputs = run_together(call.graph, inputs_of(call));
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
  const std::int64_t first = std::int64_t{World::current().rank()} * shards,
                     ranks = call.mesh[0]->size;
  const ThreadSettings settings;
  std::vector<std::vector<Tensor>> results(static_cast<std::size_t>(shards));
  const auto run = [&](int shard) {
    settings.apply();
    const WhereScope line(call.where);
    Vec<BufferRef> inputs;
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      const Tensor& x = call.arguments[i];
      const int axis = cut_axis(in_specs[i], aval_of(x).shape.rank());
      inputs.push_back(axis < 0 ? buffer_of(x, call.where)
                                : block_of(x, axis, shards, shard, call.where));
    }
    for (const Tensor& rows : streams)
      inputs.push_back(block_of(rows, 0, ranks, first + shard, call.where));
    for (const Tensor& t : call.captured) inputs.push_back(buffer_of(t, call.where));
    results[static_cast<std::size_t>(shard)] = run_alike(call.graph, inputs, call.where);
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
