// Recording scopes: the thread-local stack that decides where an op is recorded, and record(),
// which turns a function into a Graph.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <vt/execution.hpp>

#include "../ir/executable.hpp"
#include "../ir/graph.hpp"
#include "node.hpp"

namespace vt::detail {

class Looks;

enum class ScopeKind : std::uint8_t {
  jit,  ///< everything inside is recorded here, values are never known
  /// values are per lane, never known; what does not depend on the lane is recorded outside
  vmap,
  grad,    ///< a function being differentiated: values are known if the arguments' are
  linear,  ///< the linear part of a linearize, to be transposed or pushed through
  branch,  ///< a body owned by an equation: everything inside stays inside
  batch,   ///< as branch, and values are computed in batches when they are asked for
};

struct RecordOptions {
  ScopeKind kind = ScopeKind::jit;
  const char* transform = "vt::jit";  ///< for messages
  /// grad: the arguments whose values the tracers stand for; undefined ones have none
  std::span<const Tensor> concrete{};
  /// vmap: everything inside is recorded here, also what does not depend on the lane
  bool closed = false;
  /// variables become inputs and results; see with_states. vmap: streams become inputs
  bool stateful = false;
  /// vmap: the name of the lanes; the last argument is then the index of the lane
  AxisRef axis{};
  /// the axes of the processes that run it
  std::span<const AxisRef> mesh{};
  /// the user's line that asked for it, for messages about arguments and results
  CallSite where{};
  Looks* looks = nullptr;  ///< batch: who computes values
};

/// How a C++ integer may stand for an element: as its bits (−1 for 0xff, in & | ^) or only by its
/// value.
enum class Literal : std::uint8_t { bits, value };

/// An argument that was a bare integer met this dtype. Recorded code converts whatever comes; a
/// call with one that the dtype cannot hold has to go by what the function says of that number.
struct MetNumber {
  std::size_t argument;
  DType dtype;
  Literal as;
  friend bool operator==(const MetNumber&, const MetNumber&) = default;
};
using MetNumbers = Vec<MetNumber>;
/// A recorded function. Graph inputs: the arguments, then `captured` (Tensors of outer scopes, or
/// values).
struct Recorded {
  GraphBody graph;
  std::vector<Tensor> captured = {};
  MetNumbers met = {};
};

/// Throws if one of them is empty, or a tracer whose scope has ended: they are results of the
/// function of the innermost scope.
void check_results(std::span<const Tensor>);

/// An open scope, for passes that record in pieces (linearize). Scopes nest like C++ blocks.
class RecordingScope {
 public:
  explicit RecordingScope(const RecordOptions&);
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

  /// A tracer for the next argument.
  Tensor input(const Aval&);
  /// Ends the recording and builds the Graph of `outputs` as a function of the inputs and of what
  /// they capture. An output that belongs to an outer scope becomes a captured input that is passed
  /// through.
  Recorded finish(std::span<const Tensor> outputs);

 private:
  bool open_ = true;
};

/// Where this thread writes down what functions of transforms (not the bodies of equations) record;
/// null: nowhere.
Vec<LoggedGraph>*& graph_log();
/// Runs `f` once on tracers of `avals`.
Recorded record(const FlatFunction& f, std::span<const Aval> avals, const RecordOptions&);

/// Gives several recordings the same captured inputs, in one order, and returns what they capture.
std::vector<Tensor> share_captures(std::span<Recorded* const> parts);

/// Values that the Graph captured become constants in it: what it captures then are tracers.
void close_values(Recorded&);
/// The Graph of a function that captures no tracers, without inputs for what it captures.
GraphBody closed(Recorded&&);

/// Emits an equation of `graph` as it was recorded: its result types are known, nothing is inferred
/// again. `give(v, Tensor)` gets the results.
Node* repeated(const GraphBody& graph, const Equation&, std::span<const Tensor> operands);
template <class Give>
void repeat(const GraphBody& graph, const Equation& e, std::span<const Tensor> operands,
            const Give& give) {
  Node* n = repeated(graph, e, operands);
  Tensor first = adopted(n);
  for (std::size_t i = 1; i < e.outputs.size(); ++i)
    give(e.outputs[i], tensor_of(n, static_cast<int>(i)));
  if (!e.outputs.empty()) give(e.outputs[0], std::move(first));
}
/// Records the equations of `graph` on `arguments` into the current scope (or lazily outside all).
/// `arguments`: inputs then captured.
std::vector<Tensor> replay(const GraphBody& graph, std::span<const Tensor> arguments);

/// More scopes inside of each other are an error: passes and executors walk bodies of bodies by
/// recursion.
inline constexpr int deepest_nesting = 1000;
/// What keeps so many further levels from being recorded, or walked over later: "more than 1000
/// deep"; nothing if they fit.
std::string too_deep(int levels);
/// Depth of the innermost open scope of this thread; 0 outside.
int current_level();
/// Is code of single instances recorded, whose lists have one element or many by chance?
bool in_batch();
/// Is this Tensor a tracer of an open or ended scope (as opposed to a value or a lazy op)?
bool is_tracer(const Tensor&);
/// Throws Error(tracer) if the Tensor's scope has ended or belongs to another thread.
void check_alive(const Tensor&, CallSite);

/// While it lives, ops emitted on this thread carry `where` (the user's line of the equation being
/// transformed).
class WhereScope {
 public:
  explicit WhereScope(CallSite where);
  ~WhereScope();
  WhereScope(const WhereScope&) = delete;
  WhereScope& operator=(const WhereScope&) = delete;

 private:
  CallSite before_;
};
/// WhereScope and AssumeFinite, as the equation being transformed has them.
class LikeEquation {
 public:
  explicit LikeEquation(const Equation& e) : where_(e.where), finite_(e.assume_finite) {}

 private:
  WhereScope where_;
  AssumeFinite finite_;
};

}  // namespace vt::detail
