// Several processes: meshes of them; shard_map, a function that each runs on its part; values cut
// and put together; files that all of them write and read; how a step scales.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <vt/axis_spec.hpp>
#include <vt/collectives.hpp>
#include <vt/detail/tree_function.hpp>
#include <vt/npy.hpp>

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
/// mesh. Along the other axes of the mesh all processes have the same.
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

/// Cut along axis `dim` in equal blocks, one for each process along the mesh's `axis`: its part.
[[nodiscard]] inline Sharding sharded(std::string axis, Param<int> dim = 0) {
  return Sharding({{std::move(axis), dim}});
}
/// The same for several axes of the mesh: `sharded({{"data", 0}, {"model", 1}})` cuts rows and
/// columns. Two of them may cut one axis, the first one coarsely: by `sharded({{"a", 0}, {"b",
/// 0}})` the process of index i along "a" and k along "b", of size B, has block i · B + k.
[[nodiscard]] inline Sharding sharded(std::vector<Sharding::Cut> cuts) {
  return Sharding(std::move(cuts));
}

/// What in_specs and out_specs say: one Sharding, or a list with an entry for each argument. That
/// entry is one Sharding for the whole argument, or a list with an entry for each member of its
/// tree. Numbers, texts and empty optionals in the tree have an entry too, `vt::replicated`.
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
  /// How the arguments and the results lie on the mesh. A function with arguments needs in_specs.
  ShardSpec in_specs{};
  ShardSpec out_specs = replicated;
  /// So many shards, for results whose bits do not depend on the number of processes. f runs once
  /// for each shard, and each process runs an equal number of them. A power of two up to 1,024. The
  /// number of processes is a power of two too, and not greater. The mesh has one axis; in f its
  /// size is the number of shards. The call cannot be inside of a jit or a transform. 0: f runs
  /// once for each process.
  Param<int> reproducible = 0;
};

namespace detail {

struct ShardMapCall {
  const distributed::Mesh& mesh;
  const char* function = "vt::shard_map";
  bool specs_are_given = true;  ///< by the user
  int reproducible = 0;
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
  const ShardSpec& given = options.in_specs;
  if (sizeof...(A) > 0 && given.is_list() && given.items().empty())
    fail(ErrorKind::value,
         "vt::shard_map: in_specs is not given; write .in_specs = vt::sharded(\"AXIS\") for what "
         "each process has its part of, vt::replicated for what all have the same, or a list",
         where);
  const Vec<Sharding> in_specs = expand_argument_spec(
      g.arguments(), options.in_specs, &ShardSpec::sharding, "vt::shard_map", "in_specs", "specs",
      "{vt::replicated, vt::sharded(\"data\", 0)}", where);
  const ShardMapCall call{
      .mesh = options.mesh,
      .reproducible = options.reproducible,
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
/// runs at the call, and not when a result is looked at. A number that f returns becomes a Tensor.
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

namespace distributed {

/// This process's part of a value that all processes have: along an axis of the mesh, the process
/// of index i has block i. All processes must make the call. The derivative is that of a value that
/// all share: the sum of what the parts give.
/// Shapes: `sharded("data", 0)` of [n, …] → [n / mesh.size("data"), …].
/// Throws: Error (shape) that names the axes and both sizes if an axis cannot be cut in equal
/// blocks; Error (value) for an axis that the mesh does not have; Error (transform) inside of
/// shard_map.
[[nodiscard]] Tensor part(const Tensor& whole, const Mesh& mesh, const Sharding& sharding,
                          CallSite where = CallSite::here());

/// The value of which `own` is this process's part, on every process: the way back from part. All
/// processes must make the call; it runs at the call.
/// Shapes: `sharded("data", 0)` of [n, …] → [n · mesh.size("data"), …].
/// Throws: as part; Error (backend) if a process fails.
[[nodiscard]] Tensor gather(const Tensor& own, const Mesh& mesh, const Sharding& sharding,
                            CallSite where = CallSite::here());

/// This process's part of the array in a .npy file. It reads only that part, and what lies between
/// two short pieces of it where that is below 32 KiB. All processes must make the call, and see the
/// file.
/// Throws: Error(io) as vt::load_npy; Error (shape) and Error (value) as part. If one process
/// throws, all do.
[[nodiscard]] Tensor load_npy(const std::string& path, const Mesh& mesh, const Sharding& sharding,
                              CallSite where = CallSite::here());

/// Writes the value of which `own` is this process's part as one .npy file, in which each process
/// writes its part; what several hold is written by one of them. The file is written beside the old
/// one and then renamed, as by vt::save_npy. All processes must make the call, and share the
/// folder. Throws: Error(io) as vt::save_npy; Error (shape) if the parts are not of one dtype and
/// shape, or the meshes differ. If one process throws, all do, and the file is what it was.
void save_npy(const std::string& path, const Tensor& own, const Mesh& mesh,
              const Sharding& sharding, CallSite where = CallSite::here());

/// Options of save.
struct SaveOptions {
  Mesh mesh = {};  ///< may be left out where nothing is sharded
  /// How the Tensors of the tree lie on the mesh: one Sharding for all, or a list with an entry for
  /// each member of the tree, numbers and texts as well.
  ShardSpec specs = replicated;
  Param<std::int64_t> step = 0;  ///< of the training or simulation; the same on all processes
};
/// Options of load.
struct LoadOptions {
  Mesh mesh = {};                ///< may be left out where nothing is sharded
  ShardSpec specs = replicated;  ///< how they shall lie on it
};

}  // namespace distributed

namespace detail {

/// What a checkpoint holds of a tree: a Tensor, a number, or a list of bools.
struct StoredPart {
  enum class Kind : std::uint8_t { tensor, number, bits } kind;
  std::string path;
  Tensor value;
};
template <class T>
std::vector<StoredPart> stored_parts(const T& tree) {
  std::vector<StoredPart> parts;
  for_each_stored(tree, "", [&]<class P>(const P& part, const std::string& path) {
    using Kind = StoredPart::Kind;
    if constexpr (std::is_same_v<P, Tensor>) parts.push_back({Kind::tensor, path, part});
    else if constexpr (is_bits<P>) parts.push_back({Kind::bits, path, tensor(part)});
    else parts.push_back({Kind::number, path, tensor(static_cast<NumberOf<P>>(part))});
  });
  return parts;
}
template <class T>
Vec<Sharding> specs_of(const T& tree, const ShardSpec& spec, const char* option, CallSite where) {
  Vec<Sharding> specs;
  expand_spec(tree, spec, &ShardSpec::sharding, specs, "the tree", option, "specs", where);
  return specs;
}

/// Gives the tree these values, one for each of its stored_parts.
template <class T>
void put_parts(T& tree, const std::vector<Tensor>& values, CallSite where) {
  std::size_t i = 0;
  for_each_stored(tree, "", [&]<class P>(P& part, const std::string&) {
    const Tensor& value = values[i++];
    if constexpr (std::is_same_v<P, Tensor>) part = value;
    else if constexpr (is_bits<P>) part = value.to_vector<bool>(where);
    else if constexpr (!std::is_const_v<P>) part = static_cast<P>(value.item<NumberOf<P>>(where));
  });
}
std::vector<Tensor> broadcast_parts(std::span<const StoredPart>, int from, CallSite);

/// specs: of the Tensors, in their order; what it throws all processes throw.
void save_checkpoint(const std::string& folder, std::span<const StoredPart>,
                     FunctionRef<Vec<Sharding>()> specs, const distributed::SaveOptions&, CallSite);
/// One Tensor for each part; of a number one of its dtype.
std::vector<Tensor> load_checkpoint(const std::string& folder, std::span<const StoredPart> like,
                                    FunctionRef<Vec<Sharding>()> specs,
                                    const distributed::LoadOptions&, CallSite);

}  // namespace detail

namespace distributed {

/// The tree of process `from`, on all of them: what one process has read, drawn or been told. Of
/// the others' trees only the structure counts. Tensors of all dtypes, numbers, bools, enums and
/// lists of bools are copied; texts are the process's own. A vt::Tensor() without a value takes any
/// array. All processes must make the call; it runs at the call, outside of vt::jit and transforms.
/// Throws: Error (tree) if the trees differ; Error (shape) that names the Tensor and both ranks
/// unless it has the dtype and shape that it has on `from`; Error (value) if it is empty there. If
/// one process throws, all do.
template <class T>
[[nodiscard]] T broadcast(const T& tree, Param<int> from = 0, CallSite where = CallSite::here()) {
  using Check = vt::detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::distributed::broadcast", Check);
  T result = vt::detail::copied(tree);
  if constexpr (Check::holds)
    vt::detail::put_parts(
        result, vt::detail::broadcast_parts(vt::detail::stored_parts(tree), from, where), where);
  return result;
}

/// Writes a checkpoint: the tree of which each process has its part. Each writes what it holds into
/// a file of its own in `folder`; what several hold is written by one of them. A manifest,
/// checkpoint.txt, then takes the place of the last one. Whenever a process dies, load gives the
/// old checkpoint or the new one, whole. The next save removes what a killed one left. Tensors of
/// all dtypes, numbers, bools, enums and lists of bools are stored, as by save_npz; texts are not.
/// All processes must make the call with trees built alike, and share the folder, which is made if
/// it is not there. One program at a time saves into a folder.
/// Throws: Error (value) if steps, meshes, numbers in the tree, or what specs calls replicated
/// differ between processes (Tensors of floats by more than rounding), and for Tensors without a
/// value; Error (tree) if the trees differ; Error(io) if the folder cannot be written. If one
/// process throws, all do, and the last checkpoint stays.
template <class T>
void save(const std::string& folder, const T& tree, SaveOptions options = {},
          CallSite where = CallSite::here()) {
  using Check = vt::detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::distributed::save", Check);
  if constexpr (Check::holds)
    vt::detail::save_checkpoint(
        folder, vt::detail::stored_parts(tree),
        [&] {
          return vt::detail::specs_of(tree, options.specs, "vt::distributed::save: specs", where);
        },
        options, where);
}

/// A tree built as `like`, with what the checkpoint in `folder` holds. `specs` says which parts
/// this process gets. The mesh, the specs and the number of processes may differ from those of the
/// save. Names, dtypes and shapes must be those of `like`, whose Tensors are parts too; a
/// vt::Tensor() without a value takes any array. Texts are those of `like`. A process reads the
/// files that hold some of its part, and compares their checksums. All processes must make the
/// call.
/// Throws: Error(io) if there is no checkpoint, and if it is damaged or of another format;
/// Error(io) that lists all that differs between it and `like`; Error(shape) as part. If one
/// process throws, all do.
template <class T>
[[nodiscard]] T load(const std::string& folder, const T& like, LoadOptions options = {},
                     CallSite where = CallSite::here()) {
  using Check = vt::detail::TreesCheck<T>;
  VT_ASSERT_CALL("vt::distributed::load", Check);
  T tree = vt::detail::copied(like);
  if constexpr (Check::holds) {
    const std::vector<Tensor> values = vt::detail::load_checkpoint(
        folder, vt::detail::stored_parts(like),
        [&] {
          return vt::detail::specs_of(like, options.specs, "vt::distributed::load: specs", where);
        },
        options, where);
    vt::detail::put_parts(tree, values, where);
  }
  return tree;
}

/// The step of the checkpoint in `folder`; −1 if there is none. All processes must make the call.
/// Throws: Error(io) if it is damaged or of another format.
[[nodiscard]] std::int64_t latest_step(const std::string& folder,
                                       CallSite where = CallSite::here());

/// How long a message takes: latency + bytes / bandwidth. Source: Hockney 1994.
struct Link {
  Param<double> latency = 0.0;    ///< seconds
  Param<double> bandwidth = 0.0;  ///< bytes a second
  /// It holds for messages of at most so many bytes; 0: for all.
  Param<std::int64_t> up_to = 0;
  /// Of `latency`, the part in which the CPU is busy, and so computes nothing else.
  Param<double> own_latency = 0.0;
  /// Bytes a second that the CPU copies as part of that; 0: it copies nothing.
  Param<double> own_bandwidth = 0.0;
};

/// What happens to the problem on more processes.
enum class Scaling : std::uint8_t {
  weak,   ///< each process keeps its part, and the problem grows
  strong  ///< the problem stays, and each part shrinks
};

/// Where the seconds of a step go.
struct StepTime {
  double compute = 0;
  double wait = 0;      ///< for processes that come later to a collective
  double transfer = 0;  ///< in collectives, once all processes are there
  double seconds() const { return compute + wait + transfer; }
};

/// The collectives of one line of the program, in a step. Sums that go in one message are those of
/// the first one's line.
struct ScalingExchange {
  std::string text;               ///< "vt::psum over \"data\" of f64[3]"
  std::string file;               ///< of the line
  int line = 0;                   ///< 0: not known
  double times = 0;               ///< in a step
  std::int64_t bytes = 0;         ///< that a process gives each time
  int processes = 0;              ///< between which it is
  double wait = 0, transfer = 0;  ///< seconds in a step, measured
  double modelled = 0;            ///< the transfer that the model gives
};

}  // namespace distributed

namespace detail {
struct ScalingData;
}

namespace distributed {

/// What scaling found out; the same on all processes.
class ScalingReport {
 public:
  /// What a step takes on so many processes, in seconds.
  /// Throws: Error (value) for less than one; if no link is known and one is needed.
  double predict(Param<std::int64_t> processes, Scaling how = Scaling::weak,
                 CallSite where = CallSite::here()) const;
  /// The same in its parts.
  StepTime parts(Param<std::int64_t> processes, Scaling how = Scaling::weak,
                 CallSite where = CallSite::here()) const;
  /// What a step took on the slowest process: the median over the steps.
  double seconds() const;
  /// Its parts: the mean over the processes, and of that the median over the steps.
  StepTime measured() const;
  /// The collectives, in the order in which a step comes to them.
  std::vector<ScalingExchange> exchanges() const;
  /// The link between two processes of this machine, for ScalingOptions::link of another call;
  /// empty if there is one process.
  std::vector<Link> link() const;
  /// All that as text.
  std::string str() const;
  /// A page with the timeline of a step. It needs no other file.
  std::string html() const;

  explicit ScalingReport(std::shared_ptr<const vt::detail::ScalingData> data)
      : data_(std::move(data)) {}

 private:
  std::shared_ptr<const vt::detail::ScalingData> data_;
};

/// Options of scaling.
struct ScalingOptions {
  Param<int> steps = 20;  ///< that are measured
  /// The link between machines, in place of the measured one; one entry for each range of sizes. If
  /// it is neither given nor measured, predictions use the link within this machine.
  std::vector<Link> link = {};
  Param<int> processes_of_host = 0;  ///< processes on each machine in predictions; 0: as now
};

}  // namespace distributed

namespace detail {
distributed::ScalingReport measure_scaling(FunctionRef<void()> step,
                                           const distributed::ScalingOptions&, CallSite);
}

namespace distributed {

/// `scaling(f, {.steps = 20})(args…)`: how the time of a call of f, a step, depends on the number
/// of processes. Runs f three times to compile it, then `steps` times with each collective recorded
/// and as often without. Measures the link between processes, and puts both into a model of the
/// collectives. All processes must make the call, outside of shard_map.
/// Throws: Error (value) for options outside their range, and if a step has more than 100,000
/// collectives; what f throws, on all processes.
/// Source: Thakur, Rabenseifner, Gropp 2005.
template <class F>
[[nodiscard]] auto scaling(F f, ScalingOptions options = {}, CallSite where = CallSite::here()) {
  return [f = std::move(f), options = std::move(options), where](const auto&... arguments) {
    const auto step = [&] {
      if constexpr (std::is_void_v<decltype(f(arguments...))>) f(arguments...);
      else vt::eval(f(arguments...));
    };
    return vt::detail::measure_scaling(step, options, where);
  };
}

}  // namespace distributed
}  // namespace vt
