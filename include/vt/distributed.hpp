// Several processes: meshes of them, and shard_map, a function that each runs on its part.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <vt/axis_spec.hpp>
#include <vt/collectives.hpp>
#include <vt/detail/tree_function.hpp>

namespace vt {

namespace detail {
void simulate_ranks(int ranks, const Function<void()>& program, double deadline, CallSite);
}

namespace distributed {

/// An axis of a mesh: its name, and how many processes lie along it. −1, for one axis: as many as
/// there are processes left.
struct MeshAxis {
  std::string name;
  Param<std::int64_t> size;
};

/// The processes of a program as an array with named axes. The last axis is the fastest: in {{"a",
/// 2}, {"b", 3}} process 4 has index 1 along "a" and 1 along "b".
class Mesh {
 public:
  Mesh() = default;
  const std::vector<MeshAxis>& axes() const { return axes_; }
  /// Processes in all, or along an axis.
  /// Throws: Error (value) if there is no axis of that name.
  std::int64_t size() const;
  std::int64_t size(const std::string& axis, CallSite where = CallSite::here()) const;
  /// Where this process lies along an axis.
  std::int64_t index(const std::string& axis, CallSite where = CallSite::here()) const;
  /// "{data: 4, model: 2}"
  std::string str() const;

 private:
  explicit Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {}
  friend Mesh mesh(std::vector<MeshAxis>, CallSite);
  std::vector<MeshAxis> axes_;
};

/// The processes that mpirun started, or the ranks of vt::distributed::simulate, as a mesh; a
/// program that runs alone is a mesh of one.
/// Throws: Error (value) unless the axes hold as many as there are processes; Error (backend) if
/// MPI started the program and its library is not found.
[[nodiscard]] Mesh mesh(std::vector<MeshAxis> axes, CallSite where = CallSite::here());

/// Which process this is, from 0 on.
[[nodiscard]] int rank();
/// How many processes there are; 1 in a program that was started alone.
[[nodiscard]] int size();
/// Waits until all processes are here.
void barrier(CallSite where = CallSite::here());

/// Options of simulate.
struct SimulateOptions {
  /// seconds that a rank waits for another one; 0: as VT_DEADLINE says, else 300
  Param<double> deadline = 0.0;
};

/// Runs `program` as so many processes would, on threads of this one: for tests and debugging. In
/// each of them rank(), size(), mesh() and shard_map are as under `mpirun -n ranks`.
/// Throws: what the first rank to fail has thrown.
template <class F>
void simulate(Param<int> ranks, F program, SimulateOptions options = {},
              CallSite where = CallSite::here()) {
  detail::simulate_ranks(ranks, [&program] { program(); }, options.deadline, where);
}

}  // namespace distributed

/// The type of vt::replicated.
struct Replicated {
  constexpr explicit Replicated(int) {}
};
/// Marks an argument (or result) that is the same on all processes.
inline constexpr Replicated replicated{0};

/// How one Tensor lies on a mesh: along which of its axes it is cut, and for which axes of the
/// mesh. The others hold the same.
class Sharding {
 public:
  struct Cut {
    std::string axis;  ///< of the mesh
    Param<int> dim;    ///< of the Tensor; negative from the end
  };
  Sharding() = default;
  Sharding(Replicated) {}
  explicit Sharding(std::vector<Cut> cuts) : cuts_(std::move(cuts)) {}
  const std::vector<Cut>& cuts() const { return cuts_; }
  std::string str() const {
    if (cuts_.empty()) return "replicated";
    std::string s;
    for (const Cut& c : cuts_)
      s += (s.empty() ? "sharded(\"" : ", \"") + c.axis + "\", " + std::to_string(int{c.dim});
    return s + ")";
  }

 private:
  std::vector<Cut> cuts_;
};

/// Cut along axis `dim` in equal blocks, one for each process along the mesh's `axis`.
[[nodiscard]] inline Sharding sharded(std::string axis, Param<int> dim = 0) {
  return Sharding({{std::move(axis), dim}});
}
/// The same for several axes of the mesh, each with an axis of its own: `sharded({{"data", 0},
/// {"model", 1}})`.
[[nodiscard]] inline Sharding sharded(std::vector<Sharding::Cut> cuts) {
  return Sharding(std::move(cuts));
}

/// What in_specs and out_specs say: one Sharding, or a list with an entry for each argument, which
/// follows the argument's tree where it is a list itself.
class ShardSpec {
 public:
  ShardSpec(Sharding sharding) : sharding_(std::move(sharding)) {}
  ShardSpec(Replicated) {}
  ShardSpec(std::initializer_list<ShardSpec> items) : items_(items), is_list_(true) {}
  ShardSpec(std::vector<ShardSpec> items) : items_(std::move(items)), is_list_(true) {}

  bool is_list() const { return is_list_; }
  const Sharding& sharding() const { return sharding_; }
  const std::vector<ShardSpec>& items() const& { return items_; }
  std::vector<ShardSpec> items() && { return std::move(items_); }
  std::string str() const {
    if (!is_list_) return sharding_.str();
    std::string s = "{";
    for (std::size_t i = 0; i < items_.size(); ++i) s += (i ? ", " : "") + items_[i].str();
    return s + "}";
  }

 private:
  Sharding sharding_;
  std::vector<ShardSpec> items_;
  bool is_list_ = false;
};

/// Options of shard_map.
struct ShardMapOptions {
  distributed::Mesh mesh;
  /// How the arguments and the results lie on the mesh.
  ShardSpec in_specs = replicated;
  ShardSpec out_specs = replicated;
};

namespace detail {

struct ShardMapCall {
  const distributed::Mesh& mesh;
  std::span<const Tensor> arguments;
  const Vec<Sharding>& in_specs;  ///< one per argument leaf
  /// Asked once the function has run: one entry per result leaf.
  Function<Vec<Sharding>(std::size_t results)> out_specs;
  LeafName argument_name, result_name;
  CallSite where;
};
std::vector<Tensor> shard_map_flat(const FlatFunction&, const ShardMapCall&);

/// The results of shard_map, of `f` with these trees.
template <class Result, class... A>
Result shard_mapped(const FlatFunction& f, CallTrees<Result, A...>& g,
                    const ShardMapOptions& options, CallSite where) {
  const Vec<Sharding> in_specs = expand_argument_spec(
      g.arguments(), options.in_specs, &ShardSpec::sharding, "vt::shard_map", "in_specs", "specs",
      "{vt::replicated, vt::sharded(\"data\", 0)}", where);
  const ShardMapCall call{
      .mesh = options.mesh,
      .arguments = g.leaves(),
      .in_specs = in_specs,
      .out_specs =
          [&](std::size_t) {
            Vec<Sharding> specs;
            expand_spec(g.last(), options.out_specs, &ShardSpec::sharding, specs, "the result",
                        "vt::shard_map: out_specs", "specs", where);
            return specs;
          },
      .argument_name = g.argument_names(),
      .result_name = g.result_names(),
      .where = where,
  };
  return g.rebuild(shard_map_flat(f, call));
}

}  // namespace detail

/// `shard_map(f, {.mesh = …})(args…)`: each process runs f on its part, and collectives over the
/// axes of the mesh combine them. Arguments and results are those of this process: its part of what
/// is sharded, and the whole of what is replicated, which must be the same on all. All processes
/// must make the same calls in the same order; what they have captured counts as replicated. It
/// runs at the call, and not when a result is looked at. A bare number that f returns becomes a
/// Tensor.
/// Throws: Error (transform) if a result that out_specs calls replicated differs between processes,
/// or processes record different functions; Error (backend) on all others if a process fails.
/// Source: JAX `shard_map`.
template <class F>
[[nodiscard]] auto shard_map(F f, ShardMapOptions options, CallSite where = CallSite::here()) {
  return detail::transformed<F>([f = detail::Callable(std::move(f)), options = std::move(options),
                                 where]<class... A>(const A&... arguments) {
    using Check = detail::CallCheck<F, detail::Owned<A>...>;
    VT_ASSERT_CALL("vt::shard_map", Check);
    if constexpr (!Check::holds) {
      return detail::Refused();
    } else {
      const auto run = [&](const auto& function) {
        auto g = detail::tree_function(function, detail::own(arguments...));
        return detail::shard_mapped(g.flat(), g, options, where);
      };
      if constexpr (Number<detail::ResultOf<F, detail::Owned<A>...>>)
        return run(detail::NumberAsTensor<const detail::Callable<F>>{f});
      else return run(f);
    }
  });
}

}  // namespace vt
