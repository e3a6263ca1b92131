// State: what recorded functions read of variables and do to them. Each recording scope keeps a
// log; where it ends, the log becomes results of its Graph, which whoever recorded it applies
// further out. So Graphs are pure, and all rules hold for them as they are.
#pragma once

#include <mutex>
#include <span>
#include <string>

#include <vt/detail/small_vec.hpp>
#include <vt/variable.hpp>

#include "../base/locks.hpp"
#include "../ir/graph.hpp"

namespace vt::detail {

struct VariableState {
  std::string name;
  Aval aval;
  /// of a generator: vmap gives each lane one of its own, which ends with the lane
  bool stream = false;
  Mutex mutex;
  Tensor value;  ///< guarded by the mutex; always computed
  /// held from reading the value until what was made of it is written, the mutex inside
  LongMutex<std::recursive_mutex> turn;
};

/// The turns of variables, from construction on: threads that update one go one after the other,
/// and no update is lost. A callback may take turns that its thread has.
class Turns {
 public:
  using Variables = SmallVec<void*, 8>;  ///< VariableState*
  explicit Turns(Variables variables);
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

 private:
  Variables held_;
};

enum class Update : std::uint8_t { assign, add, mul, max, min };
constexpr bool accumulates(Update u) { return u != Update::assign; }
/// a and b combined, and what changes nothing.
Tensor combined(Update, const Tensor& a, const Tensor& b, CallSite);
Op op_of(Update);
Scalar neutral(Update, DType);
Tensor neutral(Update, const Aval&);
/// What `count` lanes make of one value that they share.
Tensor repeated_update(Update, const Tensor& value, std::int64_t count, CallSite);

struct StateUpdate {
  VariableRef variable;
  Update kind;
  Tensor value;
  CallSite where;
};

/// What a scope knows of a variable.
struct StateEntry {
  VariableRef variable;
  /// the value at the start, in scopes with states of their own; else it is found further out
  Tensor input;
  CallSite where;        ///< of the first touch
  bool read = false;     ///< the value at the start was looked at
  Vec<StateUpdate> log;  ///< an assignment only as the first
};

/// The value as this place of the program sees it.
Tensor read_state(const VariableRef&, CallSite);
/// In the innermost scope; outside of all, at once.
void update_state(const StateUpdate&);

/// The next key of a stream.
Tensor next_key(const VariableRef& stream, CallSite);
/// Streams for lanes, u64[lanes, 2], from the next key.
Tensor lane_streams(const VariableRef& stream, std::int64_t lanes, CallSite);
/// What f draws from: with each, the scope has an input behind the arguments.
struct LaneStream {
  VariableRef variable;
  CallSite where;
};

/// The updates of the innermost scope, in order, and none left there. `single`: one for each
/// variable.
Vec<StateUpdate> take_updates(bool single);
/// Applies updates whose values are `values`.
void apply_updates(std::span<const StateUpdate>, std::span<const Tensor> values);
/// f, which then also gives the updates' values; these are left in `updates`. Under vmap, what was
/// done to the streams of its lanes is forgotten.
FlatFunction with_updates(const FlatFunction& f, Vec<StateUpdate>& updates,
                          Vec<LaneStream>* streams = nullptr);

/// A variable that a scope with states of its own has touched: one input of its Graph behind the
/// arguments, and a result if it was updated. The result is the new value; if the old one was not
/// read and all updates are of one kind that accumulates, it is as well what they make of whatever
/// the input is.
struct OwnState {
  VariableRef variable;
  bool read = false, updated = false;
  Update kind = Update::assign;
  CallSite where;
};
/// f, which then also gives the new values, in the order of those in `states` that are updated.
FlatFunction with_states(const FlatFunction& f, Vec<OwnState>& states);

/// Throws if the function of the innermost scope has updated a variable. `what`: "vt::custom_jvp".
void refuse_updates(const char* what);

}  // namespace vt::detail
