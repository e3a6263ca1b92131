// An equation that is a collective between processes, run on memory.
#include "collective.hpp"

#include <cstring>
#include <string>

#include <vt/detail/message.hpp>

#include "../ir/collectives.hpp"
#include "shards.hpp"
#include "world.hpp"

namespace vt::detail {

namespace collective_runs {

inline RankGroup group_along(const NamedAxis& axis, int rank) {
  const int stride = static_cast<int>(axis.stride), size = static_cast<int>(axis.size);
  const int own = rank / stride % size;
  return {rank - own * stride, stride, size, own};
}

/// "vt::psum over \"data\" of f64[3]"
inline std::string text_of(const Equation& e, const GraphBody& graph) {
  return "vt::" + std::string(name_of(e.op)) + " over \"" + e.as<CollectiveParams>().axis->name +
         "\" of " + graph.aval(e.inputs[0]).str();
}

/// A program may be kept, and called in another world than the one that it was made in.
[[noreturn, gnu::noinline]] void refuse_world(int size, const Equation& e) {
  const NamedAxis& axis = *e.as<CollectiveParams>().axis;
  fail(ErrorKind::value,
       formatted("vt::{} over \"{}\": it was recorded for {} {}, and here {}", name_of(e.op),
                 axis.name, axis.ranks, axis.ranks == 1 ? "process" : "processes",
                 size == 1 ? std::string("is 1; a thread that a rank of vt::distributed::simulate "
                                         "starts is no rank")
                           : formatted("are {}", size)),
       e.where);
}

/// ranks: World or Shard.
template <class Ranks>
void exchange(Ranks& ranks, const RankGroup& group, const Equation& e, const Aval& in,
              const void* given, void* got, const CollectiveSite& site) {
  const auto& p = e.as<CollectiveParams>();
  const std::size_t bytes = in.bytes();
  const auto reduce = [&](RankReduction how) {
    ranks.all_reduce(group, how, in.dtype, given, got, in.elements(), site);
  };
  switch (e.op) {
    case Op::psum: return reduce(RankReduction::sum);
    case Op::pmax: return reduce(RankReduction::max);
    case Op::pmin: return reduce(RankReduction::min);
    case Op::all_gather: return ranks.all_gather(group, given, got, bytes, site);
    case Op::all_to_all:
      return ranks.all_to_all(group, given, got, bytes / static_cast<std::size_t>(group.size),
                              site);
    default:
      return ranks.permute(group, {p.sources.data(), p.sources.size()}, given, got, bytes, site);
  }
}

}  // namespace collective_runs

void run_collective(const Equation& e, const GraphBody& graph, const void* given, void* got) {
  const auto& p = e.as<CollectiveParams>();
  const NamedAxis& axis = *p.axis;
  if (!axis.is_of_mesh())
    fail(ErrorKind::transform,
         "vt::" + std::string(name_of(e.op)) + ": the lanes of \"" + axis.name +
             "\" are known only inside its vt::vmap; it cannot be run alone",
         e.where);
  Shard* const shard = Shard::current();
  const int rank = shard ? shard->rank() : World::current().rank();
  const RankGroup group = collective_runs::group_along(axis, rank);
  if (e.op == Op::axis_index) {
    // which a program may have without any collective
    if (!shard && axis.ranks != World::current().size())
      collective_runs::refuse_world(World::current().size(), e);
    *static_cast<std::int32_t*>(got) = group.own;
    return;
  }
  const Aval& in = graph.aval(e.inputs[0]);
  if (e.op == Op::spread) {
    if (given != got) std::memcpy(got, given, in.bytes());
    return;
  }
  const auto text = [&] { return collective_runs::text_of(e, graph); };
  const CollectiveSite site{text, e.where, !p.any_line, {p.bundle.data(), p.bundle.size()}};
  if (shard) collective_runs::exchange(*shard, group, e, in, given, got, site);
  else collective_runs::exchange(World::current(), group, e, in, given, got, site);
}

void begin_collective(const Equation& e, const GraphBody& graph, const void* given, void* got) {
  if (Shard::current()) return run_collective(e, graph, given, got);
  const auto& p = e.as<CollectiveParams>();
  World& world = World::current();
  const auto text = [&] { return collective_runs::text_of(e, graph); };
  world.begin_permute(collective_runs::group_along(*p.axis, world.rank()),
                      {p.sources.data(), p.sources.size()}, given, got,
                      graph.aval(e.inputs[0]).bytes(), {text, e.where, !p.any_line});
}

void finish_collective(const Equation& e, const GraphBody& graph, void* got) {
  if (Shard::current()) return;  // begun as a whole
  const auto text = [&] { return collective_runs::text_of(e, graph); };
  World::current().finish(got, {text, e.where});
}

void run_collectives(const GraphBody& graph, FunctionRef<void()> run) {
  if (Shard::current()) return run();  // all of them are one call
  World& world = World::current();
  if (ranks_of(graph) != world.size()) [[unlikely]]
    collective_runs::refuse_world(world.size(), first_exchange(graph));
  WorldCall::run(world, [&] {
    world.count_call();
    run();
  });
}

void end_collectives() noexcept { World::current().finish_all(); }

}  // namespace vt::detail
