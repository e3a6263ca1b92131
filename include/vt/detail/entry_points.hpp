// The non-template entry points of the transforms, on flat lists of Tensors. The templates in the
// headers only flatten and rebuild trees around these.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/execution.hpp>

#include <vt/graph.hpp>
#include <vt/lanes.hpp>
#include <vt/tensor.hpp>

namespace vt::detail {

using FlatFunction = Function<std::vector<Tensor>(std::span<const Tensor>)>;
using FlatFunctionRef = FunctionRef<std::vector<Tensor>(std::span<const Tensor>)>;
/// Names leaf i for a message: "argument 1 .w[3]".
using LeafName = Function<std::string(std::size_t)>;
using MappedAxis = std::optional<int>;

struct VmapCall {
  std::span<const Tensor> arguments;
  std::span<const MappedAxis> in_axes;  ///< one per argument leaf; negative counts from the end
  /// Asked once the function has run: one entry per result leaf.
  Function<Vec<MappedAxis>(std::size_t results)> out_axes;
  std::optional<std::int64_t> axis_size;
  std::string axis_name;
  std::int64_t chunk = 0;         ///< lanes at a time; 0: all
  std::int64_t memory_limit = 0;  ///< bytes, by which fewer lanes at a time are chosen; 0: none
  bool must_vectorize = false;    ///< what runs once per lane is an error, instead of a warning
  LaneSchedule schedule = LaneSchedule::automatic;
  LeafName argument_name, result_name;
  const char* transform = "vt::vmap";
  CallSite where;
  Tensor running = {};  ///< an i32[]: only so many lanes run, the first ones; empty: all
};
std::vector<Tensor> vmap_flat(const FlatFunction&, const VmapCall&);
/// n of pfor.
struct PforCount {
  bool is_tensor = false;
  Tensor tensor = {};
  std::int64_t number = 0;
  std::optional<std::int64_t> at_most = std::nullopt;
};
/// f(i) for i in 0 … n − 1, each i a scalar i32. `call`: what pfor's options and results say of it.
std::vector<Tensor> pfor_flat(const FlatFunction&, const PforCount&, VmapCall call);

/// A function being differentiated at `arguments`, by those leaves whose `wanted` is true.
struct GradCall {
  std::span<const Tensor> arguments;
  std::span<const bool> wanted;
  LeafName argument_name, result_name;
  const char* transform = "vt::grad";
  CallSite where;
  std::int64_t memory_limit = 0;  ///< jacobians: bytes, by which the chunk is chosen; 0: none
  /// grad, jacobians: complex results may be differentiated by complex arguments, which all are
  bool holomorphic = false;
};

struct JvpFlat {
  /// a tangent for every output; zeros where nothing depends
  std::vector<Tensor> outputs, tangents;
};
/// `tangents`: one per wanted argument.
JvpFlat jvp_flat(const FlatFunction&, const GradCall&, std::span<const Tensor> tangents);

/// The derivative at a point as a linear map, and its transpose.
class LinearMap {
 public:
  struct State;
  explicit LinearMap(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  /// Tangents of the wanted arguments → tangents of the outputs.
  std::vector<Tensor> push(std::span<const Tensor> tangents, CallSite) const;
  /// Cotangents of the outputs → cotangents of the wanted arguments.
  std::vector<Tensor> pull(std::span<const Tensor> cotangents, CallSite) const;

 private:
  std::shared_ptr<const State> state_;
};
struct LinearizedFlat {
  std::vector<Tensor> outputs;
  LinearMap map;
};
LinearizedFlat linearize_flat(const FlatFunction&, const GradCall&);

struct GradFlat {
  /// gradients of outputs[0], which must be a float or complex scalar; the rest is auxiliary
  std::vector<Tensor> outputs, gradients;
};
GradFlat value_and_grad_flat(const FlatFunction&, const GradCall&);

enum class JacobianMode { forward, reverse, automatic };
struct JacobianFlat {
  std::vector<Tensor> outputs;
  Vec<std::vector<Tensor>> blocks;  ///< [output leaf][wanted leaf], each of shape output ⧺ argument
};
/// `by_example`: the function works on each example, along axis 0 of all wanted arguments and
/// results, alone; blocks are [examples] ⧺ output of one ⧺ argument of one.
JacobianFlat jacobian_flat(const FlatFunction&, const GradCall&, JacobianMode, std::int64_t chunk,
                           bool by_example = false);
/// blocks[output leaf][wanted leaf a][wanted leaf b]: shape output ⧺ a ⧺ b. Forward over reverse.
Vec<Vec<std::vector<Tensor>>> hessian_flat(const FlatFunction&, const GradCall&,
                                           std::int64_t chunk);

/// Rules on flat leaves; see trace/graph.hpp CustomRule for their signatures. `captures`: the rule
/// may use Tensors beside its arguments.
using FlatBatchRule = Function<std::vector<Tensor>(std::int64_t axis_size, const Vec<bool>& mapped,
                                                   std::span<const Tensor>, Vec<bool>& out_mapped)>;
std::vector<Tensor> custom_jvp_flat(const FlatFunction& f, const FlatFunction& jvp,
                                    std::span<const Tensor> arguments, CallSite,
                                    bool captures = false, const FlatFunction& transpose = {},
                                    int linear = 0);
std::vector<Tensor> custom_vjp_flat(const FlatFunction& f, const FlatFunction& forward,
                                    const FlatFunction& backward, std::span<const Tensor> arguments,
                                    CallSite, bool captures);
std::vector<Tensor> custom_vmap_flat(const FlatFunction& f, const FlatBatchRule& rule,
                                     std::span<const Tensor> arguments, CallSite);
std::vector<Tensor> checkpoint_flat(const FlatFunction& f, std::span<const Tensor> arguments,
                                    CallSite);

/// Records f on tracers like `arguments`; `input_names` of them for the Graph's text, or none.
Graph make_graph_flat(const FlatFunction&, std::span<const Tensor> arguments,
                      std::vector<std::string> input_names, CallSite);
/// Tensors that have only a shape and a dtype; any use of them is an error.
std::vector<Tensor> eval_shape_flat(const FlatFunction&, std::span<const Tensor> arguments,
                                    CallSite);

/// The arguments of a call, for messages.
struct NamedParts {
  /// what is static: "argument 1 .epoch" and its value as bytes
  Vec<std::pair<std::string, std::string>> fixed;
  std::vector<std::string> leaves;  ///< the Tensors, in order
};
/// What decides which compiled program a call uses: the static parts of the arguments as bytes.
struct StaticKey {
  std::string bytes = {};
  /// Tells of the arguments that these pointers are to; null: they are Tensors. Valid in the call.
  void (*describe)(const void* const* arguments, NamedParts&) = nullptr;
  const void* const* arguments = nullptr;
};
/// Throws: Error(value) unless all of `donate` are between 0 and `arguments` − 1.
void check_donated(const std::vector<int>& donate, std::size_t arguments, CallSite);
/// A bare number that is read at once: its value is there already, without the locks that values
/// which others may ask for need.
Tensor number_argument(Scalar);
/// Memory of a caller for one result: elements of a dtype, or a Tensor, which is assigned.
struct ResultPlace {
  DType dtype;
  std::int64_t elements;
  void* memory;
  Tensor* tensor = nullptr;
};
/// The results of a call whose program was known, and what else the function gives.
struct KnownResults {
  SmallVec<Tensor, 4> tensors;
  std::shared_ptr<const void> kept;
};
/// The compiled programs of one jitted function, by signature. Any thread may use it.
class JitCache {
 public:
  /// `device`: where to run; nothing: where the arguments are. `programs`: as many are kept.
  /// Throws: Error(value) unless that is at least 1.
  explicit JitCache(std::optional<Device> device = {}, int programs = 256,
                    bool assume_finite = false, CallSite = {});
  ~JitCache();
  /// The results of the program for this signature. Traces and compiles when it is new: `trace`
  /// runs the function, and returns what `result` later gives back (the static part of the
  /// results). `donated`, per Tensor or empty: those whose values are given away, the same for
  /// every call of a signature.
  std::vector<Tensor> call(std::span<const Tensor> arguments, const StaticKey& key,
                           const FlatFunction& f, FunctionRef<std::shared_ptr<void>()> keep,
                           std::shared_ptr<void>& kept, CallSite,
                           std::span<const char> donated = {});
  /// call() where nothing is left to do but to run a program of the host on values that are there:
  /// the rule in a loop. False: nothing has happened.
  bool call_known(std::span<const Tensor* const> arguments, const StaticKey& key,
                  KnownResults& results, CallSite);
  /// The same for results in memory of the caller.
  bool call_known(std::span<const Tensor* const> arguments, const StaticKey& key,
                  std::span<const ResultPlace> places, CallSite);
  /// What runs for this signature, as text: at most a screen, or all `steps`. Empty if it has not
  /// been compiled.
  std::string explain(std::span<const Tensor> arguments, const StaticKey& key, bool steps) const;
  /// What the program for this signature needs; nothing runs.
  Memory memory(std::span<const Tensor> arguments, const StaticKey& key, const FlatFunction& f,
                FunctionRef<std::shared_ptr<void>()> keep, CallSite,
                std::span<const char> donated = {});
  /// As a page, for which the program runs some times and f is recorded again.
  std::string explain_page(std::span<const Tensor> arguments, const StaticKey& key,
                           const FlatFunction& f, CallSite) const;

 private:
  struct Entry;
  struct State;
  /// The program for this signature, traced and compiled if it is new. `traced`: are we inside
  /// another transform?
  std::shared_ptr<const Entry> entry(std::span<const Tensor> arguments, const StaticKey& key,
                                     const FlatFunction& f,
                                     FunctionRef<std::shared_ptr<void>()> keep, bool& traced,
                                     std::span<const char> donated, CallSite);
  /// `inputs`: where the program reads.
  std::shared_ptr<const Entry> known(std::span<const Tensor* const> arguments, const StaticKey& key,
                                     SmallVec<const void*, 16>& inputs) const;
  std::unique_ptr<State> state_;
};
/// Brings results where they belong. Throws: Error (shape, dtype) unless there is a place of its
/// type for each.
void bring(std::span<const Tensor> results, std::span<const ResultPlace> places, CallSite);

/// What one named function records, by signature. Any thread may use it.
class FunctionCache {
 public:
  /// `kind`: "vt::function", for messages. `max_depth`: of recursion, where it may recur.
  /// Throws: Error(value) if the name is empty or max_depth is less than 1.
  FunctionCache(std::string name, const char* kind, std::optional<int> max_depth, CallSite);
  ~FunctionCache();
  /// The results of a call, as one equation. Arguments as of JitCache::call.
  SmallVec<Tensor, 4> call(std::span<const Tensor> arguments, const StaticKey& key,
                           FlatFunctionRef f, FunctionRef<std::shared_ptr<void>()> keep,
                           std::shared_ptr<void>& kept, CallSite);
  [[noreturn]] void undefined(CallSite) const;
  [[noreturn]] void defined_twice(CallSite) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vt::detail
