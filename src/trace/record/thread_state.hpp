// What recording on a thread goes by: the stack of open scopes, and the line that passes give to
// the ops they emit.
#pragma once

#include <limits>
#include <vector>

#include <vt/detail/small_vec.hpp>
#include <vt/print.hpp>

#include "../base/hash_map.hpp"
#include "../base/locks.hpp"
#include "looks.hpp"
#include "scope.hpp"
#include "state.hpp"

namespace vt::detail {

struct FunctionRecording;
struct LoopTypes;
class RecursionGuard;

struct ScopeState {
  /// process-wide unique, so that a tracer of an ended scope, or of another thread, is told apart
  std::uint64_t id = 0;
  ScopeKind kind = ScopeKind::jit;
  const char* transform = "";
  CallSite where{};  ///< the line that opened it
  /// ops recorded while this scope is innermost land at this level or deeper
  int floor = 0;
  RecycledVec<Node*> nodes;    ///< in order of creation; each holds a reference
  std::vector<Tensor> inputs;  ///< the arguments, then states
  AxisRef axis;                ///< the name of the lanes that are recorded, if it has one
  Vec<AxisRef> mesh;           ///< the axes of the processes that it is recorded for
  Tensor lane;                 ///< with an `axis`: the index of the lane, the last argument
  std::vector<Tensor> concrete;
  Vec<StateEntry> states;  ///< variables that were updated here (or touched, if `stateful`)
  bool stateful = false;
  Looks* looks = nullptr;  ///< of a scope of kind batch
  MetNumbers met;          ///< by arguments that are weak integers
  /// outer stand-ins of tracers whose value was asked for
  HashMap<const Node*, std::vector<Tensor>> looked_at;
};

/// What belongs to the code that runs, not to the thread: exchanged where another instance of an
/// autobatch function goes on.
struct RunningState {
  int floor = 0;
  int named_axes = 0;  ///< open scopes with an `axis` or a `mesh`
  /// the outermost of these asked for, as an index into `scopes`; and of those with an `axis`
  int outermost_axis = std::numeric_limits<int>::max(),
      outermost_lanes = std::numeric_limits<int>::max();
  CallSite where{};            ///< of the equation a pass is transforming; null file: none
  bool assume_finite = false;  ///< what equations recorded now have of it
  DType default_dtype = f32;   ///< of creators and draws, see DefaultDType
  PrintStyle print;            ///< see PrintScope
  /// vmap throws where it would run an equation once per lane
  bool must_vectorize = false;
  LaneSchedule schedule = LaneSchedule::groups;  ///< of the vmap that a Graph is walked for
  int recursion = 0;  ///< how many recursive functions run inside of each other
  const RecursionGuard* outermost_recursion = nullptr;  ///< that of the first of them
  /// named functions being recorded, the outermost first
  Vec<FunctionRecording*> functions;
  /// iterations of the scans being linearized: what their bodies keep is kept for each
  std::int64_t stacked = 1;
  /// what is known of the loop whose body is being recorded
  LoopTypes* loop = nullptr;
  std::int64_t steps_left = std::numeric_limits<std::int64_t>::max();  ///< see InterpreterBudget
  bool has_budget = false;                                             ///< likewise
  /// outside of all scopes, ops in which other processes take part wait for an evaluate
  bool exchanges_wait = false;
  /// of equations being run whose lanes go different ways, the outermost first
  Vec<std::int64_t> lane;
};

/// See DebugNans. Threads begin as VT_DEBUG_NANS says.
struct NanWatch {
  bool on = false, infinities = false;
};

struct ThreadState : RunningState {
  NanWatch nan_watch;
  Vec<ScopeState> scopes;  ///< scopes[k] is level k + 1
  /// the outermost of the functions being recorded that was called inside of itself
  std::size_t lowest_reference = std::numeric_limits<std::size_t>::max();
};
inline constinit thread_local ThreadState* state_of_thread = nullptr;
ThreadState& make_thread_state();
inline ThreadState& thread_state() {
  return state_of_thread ? *state_of_thread : make_thread_state();
}

inline bool watches_nans() { return thread_state().nan_watch.on; }

/// The line to blame: that of the pass or the composed function at work if there is one, else
/// `where`.
inline CallSite user_line(CallSite where) {
  const CallSite& outer = thread_state().where;
  return outer.file ? outer : where;
}

/// While it lives, ops are attributed to the line that called a composed function (unless a pass
/// has set one already).
class UserLine {
 public:
  explicit UserLine(CallSite where) : state_(thread_state()), before_(state_.where) {
    if (!before_.file) state_.where = where;
  }
  ~UserLine() { state_.where = before_; }
  UserLine(const UserLine&) = delete;
  UserLine& operator=(const UserLine&) = delete;

 private:
  ThreadState& state_;
  CallSite before_;
};

/// Guards the lazy graph (level 0): the inputs and buffers of nodes not yet run, and the scratch
/// fields of all level 0 nodes.
Mutex& lazy_mutex();
/// A fresh mark for Node::live. Call with lazy_mutex() held.
std::uint32_t next_epoch();

/// A node with one reference, its memory from a thread-local free list.
Node* new_node();
/// Makes the node and puts it into its scope. The caller, who knows them, fills in its avals at
/// once.
Node* place_node(Op, ParamsRef, std::span<const Tensor> operands, int level, CallSite);
/// The level an op on `operands` belongs to. Throws if an operand is empty or its scope has ended.
int level_for(Op, const ParamsRef&, std::span<const Tensor> operands, CallSite);
/// Runs an op that must run when it is made: see Node::at_once.
void run_at_once(Node*, CallSite);

}  // namespace vt::detail
