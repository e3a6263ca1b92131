// The entry point of shard_map: records the function once, as it is on every process, and hands it
// on with what the processes share written down.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <vt/detail/message.hpp>
#include <vt/distributed.hpp>

#include "../../trace/ir/collectives.hpp"
#include "../../trace/processes/world.hpp"
#include "../../trace/record/node.hpp"
#include "../../trace/record/scope.hpp"
#include "../../trace/record/state.hpp"
#include "../../trace/record/thread_state.hpp"
#include "replicas.hpp"
#include "run_recorded.hpp"
#include "shared_values.hpp"
#include "together.hpp"

namespace vt::detail {

namespace shard_map_entry {

[[noreturn]] void refuse(const ShardMapCall& call, ErrorKind kind, const std::string& what) {
  fail(kind, call.function + (": " + what), call.where);
}

/// How many shards of f each process runs.
int shards_of(const ShardMapCall& call) {
  const std::int64_t processes = World::current().size();
  const auto is_power_of_two = [](std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; };
  const auto is_recorded = [](const Tensor& t) { return t.defined() && is_tracer(t); };
  const std::int64_t shards = call.reproducible;
  constexpr std::int64_t most = 1024;
  const std::string given = formatted("reproducible is {}, and ", shards);
  if (!is_power_of_two(shards) || shards > most)
    refuse(call, ErrorKind::value, given + formatted("must be a power of two up to {}", most));
  if (!is_power_of_two(processes) || processes > shards)
    refuse(call, ErrorKind::value,
           given + formatted("there are {} processes: they must be a power of two, and no more "
                             "than that",
                             processes));
  if (call.mesh.axes().size() != 1)
    refuse(call, ErrorKind::value,
           given + formatted("the mesh is {}: it must have one axis", call.mesh.str()));
  if (thread_state().floor != 0 || std::ranges::any_of(call.arguments, is_recorded))
    refuse(call, ErrorKind::transform,
           "with reproducible it runs at the call, and not inside of vt::jit or a transform: put "
           "those around the function that it is given, as vt::shard_map(vt::jit(f), …)");
  return static_cast<int>(shards / processes);
}

Vec<AxisRef> axes_of(const ShardMapCall& call) {
  if (call.mesh.axes().empty())
    refuse(call, ErrorKind::value, "no mesh is given; write {.mesh = vt::distributed::mesh(…), …}");
  const std::int64_t processes = World::current().size();
  if (call.mesh.size() != processes)
    refuse(call, ErrorKind::value,
           formatted("the mesh {} was made for {} processes, and here are {}", call.mesh.str(),
                     call.mesh.size(), processes));
  for (const ScopeState& scope : thread_state().scopes)
    if (!scope.mesh.empty())
      refuse(
          call, ErrorKind::transform,
          formatted("called inside of the function of another vt::shard_map{}", at(scope.where)));
  if (call.reproducible == 0) return detail::axes_of(call.mesh);
  return {mesh_axis(call.mesh.axes()[0].name, call.reproducible, 1, call.reproducible)};
}

/// Along which axes of the mesh a Tensor that lies so differs.
Differs differs_of(const ShardMapCall& call, const Sharding& spec, std::span<const AxisRef> mesh,
                   const Aval& aval, const char* option, const std::string& name) {
  Differs all = 0;
  for (const Sharding::Cut& cut : spec.cuts()) {
    const int rank = aval.shape.rank(), dim = cut.dim;
    if (dim < -rank || dim >= rank)
      refuse(
          call, ErrorKind::shape,
          formatted("{} cuts axis {} of {}, which is {}{}", option, dim, name, aval.str(),
                    rank == 0 ? ": a scalar cannot be cut; give it an axis of one element" : ""));
    bool found = false;
    for (std::size_t k = 0; k < mesh.size(); ++k) {
      if (mesh[k]->name != cut.axis) continue;
      found = true;
      const Differs one = Differs{1} << k;
      if ((all & one) != 0)
        refuse(call, ErrorKind::value,
               formatted("{} cuts {} twice along \"{}\"", option, name, cut.axis));
      all |= one;
    }
    if (!found)
      refuse(call, ErrorKind::value,
             formatted("{} of {} names axis \"{}\", and the mesh is {}", option, name, cut.axis,
                       call.mesh.str()));
  }
  return all;
}

Shape shape_of_shard(const ShardMapCall& call, const Sharding& spec, const Aval& aval, int shards,
                     const std::string& name) {
  Shape shape = aval.shape;
  if (const int dim = cut_axis(spec, shape.rank()); dim >= 0) {
    if (shape[dim] % shards != 0)
      refuse(call, ErrorKind::shape,
             formatted("reproducible is {}, so that each process cuts its part in {} along axis "
                       "{}, and {} is {}",
                       call.reproducible, shards, dim, name, aval.str()));
    shape[dim] /= shards;
  }
  return shape;
}

/// The names of these axes, as a list.
std::string names_of(std::span<const AxisRef> mesh, Differs axes) {
  std::string names;
  for (std::size_t k = mesh.size(); k-- > 0;)
    if ((axes >> k & 1u) != 0) names += (names.empty() ? "\"" : ", \"") + mesh[k]->name + "\"";
  return names;
}

/// What all processes together do to a variable, as the lanes of a vmap do.
Tensor of_all_processes(const StateUpdate& u, Tensor value, std::span<const AxisRef> mesh) {
  if (!accumulates(u.kind)) return value;
  const Op op = u.kind == Update::add   ? Op::psum
                : u.kind == Update::mul ? Op::all_gather
                : u.kind == Update::max ? Op::pmax
                                        : Op::pmin;
  for (const AxisRef& axis : mesh) {
    value = emit(op, make_params(CollectiveParams{axis, {}}), {value}, u.where);
    if (u.kind == Update::mul)
      value = emit(Op::reduce_prod, make_params(AxesParams{Axes{0}}), {value}, u.where);
  }
  return value;
}

/// "a:f32[4] b:f32[]" of "{ lambda a:f32[4] b:f32[] .": the inputs, and nothing of other lines.
Vec<std::string> inputs_in(const std::string& line) {
  Vec<std::string> inputs;
  const std::string_view begin = "{ lambda ", end = " .";
  if (!line.starts_with(begin) || line.find(end) == line.npos) return inputs;
  std::string rest = line.substr(begin.size(), line.find(end) - begin.size()) + " ";
  for (std::size_t space; (space = rest.find(' ')) != rest.npos; rest.erase(0, space + 1))
    inputs.push_back(rest.substr(0, space));
  return inputs;
}
/// What to say of two first lines of Graphs. Empty: they do not differ in one argument alone.
std::string differing_inputs(const ShardMapCall& call, const std::string& first, int rank,
                             const std::string& own) {
  const Vec<std::string> x = inputs_in(first), y = inputs_in(own);
  if (x.size() != y.size()) return {};
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i]) continue;
    const auto type = [](const std::string& input) { return input.substr(input.find(':') + 1); };
    const std::string name =
        i < call.arguments.size() ? call.argument_name(i) : std::string("a value that f captures");
    return formatted("{} is {} on rank 0 and {} on rank {}: all processes must have {}", name,
                     type(x[i]), type(y[i]), rank,
                     i < call.arguments.size() && !call.in_specs[i].cuts().empty()
                         ? "blocks of one dtype and shape"
                         : "the same");
  }
  return {};
}

/// What to say of two Graphs that should be the same.
std::string difference(const ShardMapCall& call, const std::string& first, int rank,
                       const std::string& own) {
  const auto without_place = [](const std::string& line) {
    return line.substr(0, line.find("  #"));
  };
  const auto [x, y] = first_difference(first, own, without_place);
  if (const std::string inputs = differing_inputs(call, x, rank, y); !inputs.empty())
    return call.function + (": " + inputs);
  return formatted(
      "{}: processes record different functions. The first line that differs is\n"
      "  on rank 0: {}\n  on rank {}: {}",
      call.function, x, rank, y);
}

/// Throws for a value that should be the same on all processes, and is not.
[[noreturn]] void refuse(const ShardMapCall& call, const GraphBody& graph, std::size_t input,
                         const UnequalReplica& found) {
  const std::string unequal =
      formatted(", {}, has other values on rank {} than on rank {}",
                graph.aval(graph.inputs[input]).str(), found.other, found.rank);
  const std::string advice = "give all the same, as by vt::distributed::broadcast";
  if (input < call.arguments.size()) {
    // vt::distributed::part has no in_specs.
    const std::string said =
        call.specs_are_given ? formatted(", and in_specs says {}; cut it, as by vt::sharded, or ",
                                         call.in_specs[input].str())
                             : "; ";
    refuse(call, ErrorKind::value, call.argument_name(input) + unequal + said + advice);
  }
  const auto uses_it = [&](const Equation& e) {
    return std::ranges::find(e.inputs, graph.inputs[input]) != e.inputs.end();
  };
  const auto use = std::ranges::find_if(graph.equations, uses_it);
  fail(ErrorKind::value,
       "vt::shard_map: a value that f captures" + unequal +
           "; make it an argument that in_specs cuts, as by vt::sharded, or " + advice,
       use == graph.equations.end() ? call.where : use->where);
}

/// Throws unless all processes have recorded the same, and have the same of what is replicated, as
/// far as that has a value. Once for each function. `values`: of all inputs.
void compare(const ShardMapCall& call, const GraphBody& graph, std::span<const AxisRef> mesh,
             std::span<const Tensor> values, const Vec<Differs>& inputs,
             const Vec<Differs>& outputs) {
  World& world = World::current();
  if (world.size() == 1) return;
  std::string specs = "\nmesh " + call.mesh.str() + "\nspecs";
  for (Differs d : inputs) specs += " " + std::to_string(d);
  specs += " ->";
  for (Differs d : outputs) specs += " " + std::to_string(d);
  specs += "\nhas values:";
  for (const Tensor& value : values) specs += has_value(value) ? " yes" : " no";
  const auto name = [&] { return std::string(call.function); };
  const std::string text = to_text(graph) + specs;
  const bool is_new = world.compare(
      text, [&] { return to_text(graph, true) + specs; },
      [&](const std::string& first, int rank, const std::string& own) {
        return difference(call, first, rank, own);
      },
      {name, call.where});
  if (!is_new) return;
  const UnequalReplica found = unequal_replica(values, inputs, mesh, {name, call.where});
  if (found.index < 0) return;
  world.forget(text);
  refuse(call, graph, static_cast<std::size_t>(found.index), found);
}

/// A call of which the function is recorded.
struct Prepared {
  GraphBody graph;
  Vec<AxisRef> mesh;
  int shards = 1;
  std::vector<Tensor> captured;
  Vec<StateUpdate> updates;  ///< their values are the last results
  Vec<LaneStream> streams;
  Vec<Sharding> specs;  ///< of the results
};

/// Throws for a result, or what a variable is assigned, that differs between processes along more
/// axes than is `wanted`. `specs`: of the results.
void refuse_apart(const ShardMapCall& call, const SharedGraph& shared, const Vec<Differs>& wanted,
                  const Vec<Sharding>& specs, std::span<const AxisRef> mesh,
                  const Vec<StateUpdate>& updates) {
  for (std::size_t k = 0; k < shared.outputs.size(); ++k) {
    const Differs apart = shared.outputs[k] & ~wanted[k];
    if (apart == 0) continue;
    if (k < specs.size())
      refuse(call, ErrorKind::transform,
             formatted("{}, {}, may differ between the processes along {}, and out_specs says {}; "
                       "combine it, as by vt::psum or vt::pmean, or give it vt::sharded",
                       call.result_name(k), shared.graph.aval(shared.graph.outputs[k]).str(),
                       names_of(mesh, apart), specs[k].str()));
    refuse(call, ErrorKind::transform,
           formatted("a variable is assigned a value that differs between the processes along {};"
                     " add to it, or combine the value, as by vt::pmean{}",
                     names_of(mesh, apart), at(updates[k - specs.size()].where)));
  }
}

/// `if (rank() == 0) show(gather(x)); else gather(x);` is one gather.
void allow_any_line(GraphBody& graph) {
  for (Equation& e : graph.equations) {
    if (!communicates(e)) continue;
    auto params = e.as<CollectiveParams>();
    params.any_line = true;
    e.params = make_params(std::move(params));
  }
}

Prepared prepare(const FlatFunction& f, const ShardMapCall& call) {
  const Vec<AxisRef> mesh = axes_of(call);
  const int shards = call.reproducible == 0 ? 1 : shards_of(call);
  Vec<Aval> avals;
  Vec<Differs> differs;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const Tensor& x = call.arguments[i];
    if (!x.defined()) refuse(call, ErrorKind::value, call.argument_name(i) + " is an empty Tensor");
    avals.push_back(aval_of(x));
    differs.push_back(
        differs_of(call, call.in_specs[i], mesh, avals.back(), "in_specs", call.argument_name(i)));
    if (shards > 1)
      avals.back().shape =
          shape_of_shard(call, call.in_specs[i], avals.back(), shards, call.argument_name(i));
  }
  Vec<StateUpdate> updates;
  Vec<LaneStream> streams;
  const FlatFunction updating = with_updates(f, updates, &streams);
  const FlatFunction of_all = [&](std::span<const Tensor> in) {
    std::vector<Tensor> results = updating(in);
    for (std::size_t k = updates.size(), n = results.size(); k > 0; --k, --n)
      results[n - 1] = of_all_processes(updates[k - 1], results[n - 1], mesh);
    return results;
  };
  Recorded recorded = record(of_all, avals,
                             {.kind = ScopeKind::vmap,
                              .transform = "vt::shard_map",
                              .closed = true,
                              .stateful = true,
                              .mesh = mesh,
                              .where = call.where});
  const std::size_t results = recorded.graph.outputs.size() - updates.size();
  const Differs everywhere = (Differs{1} << mesh.size()) - 1;
  differs.resize(differs.size() + streams.size(), everywhere);
  differs.resize(recorded.graph.inputs.size(), 0);  // what is captured
  Vec<Sharding> specs = call.out_specs(results);
  Vec<Differs> wanted;
  for (std::size_t k = 0; k < results; ++k)
    wanted.push_back(differs_of(call, specs[k], mesh,
                                recorded.graph.aval(recorded.graph.outputs[k]), "out_specs",
                                call.result_name(k)));
  wanted.resize(recorded.graph.outputs.size(), 0);
  std::vector<Tensor> values(call.arguments.begin(), call.arguments.end());
  values.resize(values.size() + streams.size());  // which differ
  values.insert(values.end(), recorded.captured.begin(), recorded.captured.end());
  compare(call, recorded.graph, mesh, values, differs, wanted);
  SharedGraph shared = with_shared_values(recorded.graph, mesh, differs, wanted);
  refuse_apart(call, shared, wanted, specs, mesh, updates);
  if (!call.specs_are_given) allow_any_line(shared.graph);
  specs.resize(shared.graph.outputs.size());  // what variables get is replicated
  return {std::move(shared.graph),
          mesh,
          shards,
          std::move(recorded.captured),
          std::move(updates),
          std::move(streams),
          std::move(specs)};
}

std::vector<Tensor> run(const Prepared& p, const ShardMapCall& call) {
  const RecordedCall ready = {p.graph, p.mesh, call.arguments, p.streams, p.captured, call.where};
  std::vector<Tensor> outputs = call.reproducible == 0
                                    ? run_recorded(ready)
                                    : run_in_shards(ready, p.shards, call.in_specs, p.specs);
  const std::size_t results = outputs.size() - p.updates.size();
  const std::vector<Tensor> changes(outputs.begin() + static_cast<std::ptrdiff_t>(results),
                                    outputs.end());
  outputs.resize(results);
  apply_updates(p.updates, changes);
  return outputs;
}

}  // namespace shard_map_entry

std::vector<Tensor> shard_map_flat(const FlatFunction& f, const ShardMapCall& call) {
  using namespace shard_map_entry;
  Prepared prepared;
  std::vector<Tensor> outputs;
  const bool is_done = WorldCall::run(World::current(), [&] {
    prepared = prepare(f, call);
    if (!communicates(prepared.graph)) return false;
    World::current().count_call();
    outputs = run(prepared, call);
    return true;
  });
  // Without collectives no process waits for this one, and an error is its own.
  if (!is_done) outputs = run(prepared, call);
  return outputs;
}

}  // namespace vt::detail
