// Node: what a Tensor points to. A value, an op not yet run (lazy), or a tracer of a recording
// scope: one form for all three.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/hash_map.hpp"
#include "../ir/graph.hpp"

namespace vt::detail {

struct Node : NodeCount {
  Op op = Op::constant;
  bool effect = false;  ///< it has an effect, or one of its sub-graphs
  /// level 0: it runs when it is made, as it has an effect, or other processes take part
  bool at_once = false;
  bool compiled =
      false;  ///< a Graph with it is compiled at first sight, see compile_at_first_sight
  bool assume_finite = false;  ///< Equation::assume_finite
  bool of_data = true;         ///< or else of literals, counts and draws alone
  std::uint16_t level = 0;     ///< depth of the scope it belongs to; 0: outside every transform
  std::uint32_t depth =
      /// longest chain of ops below that were not evaluated when it was made (level 0); not written
      /// later, other threads read it
      0;
  std::uint64_t scope = 0;  ///< identity of that scope (0 at level 0)
  CallSite where;
  ParamsRef params;
  /// Empty once evaluated, or once its scope has closed. Operands of the same scope are borrowed
  /// (the scope holds all its nodes until it closes), others are owned. Counting references was a
  /// fifth of the time of recording in a profile.
  SmallVec<Tensor, 3, ListMemory> inputs;
  ResultAvals avals;  ///< one per output
  /// the values, once evaluated (level 0); guarded by lazy_mutex() until `ready`
  SmallVec<BufferRef, 1> buffers;
  std::atomic<bool> ready{false};  ///< `buffers` hold the values
  // Scratch of the pass that is closing this node's scope; only the owning thread touches it.
  std::uint32_t live = 0;
  Var first_var = -1;  ///< Var of output 0; the others follow
};

/// The node whose output number output_of(t) the Tensor is; nullptr of an empty one.
inline Node* node_of(const Tensor& t) { return static_cast<Node*>(t.node_); }
inline int output_of(const Tensor& t) { return t.output_; }
/// Takes over one reference.
inline Tensor adopted(Node* node, int output) {
  Tensor t;
  t.node_ = node;
  t.output_ = output;
  return t;
}
inline Tensor adopted(Node* node) { return adopted(node, 0); }
inline Tensor tensor_of(Node* node, int output = 0) {
  retain(node);
  return adopted(node, output);
}
/// Gives up the handle but not its reference.
inline void forget(Tensor& t) { t.node_ = nullptr; }

/// A list of operands that hold no references, for walks whose values live elsewhere meanwhile:
/// counting is what they cost most.
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() { clear(); }
  void reserve(std::size_t n) { list_.reserve(n); }
  void add(const Tensor& t) { add(node_of(t), output_of(t)); }
  void add(Node* node, int output) { list_.push_back(adopted(node, output)); }
  void clear() {
    for (Tensor& t : list_) forget(t);
    list_.clear();
  }
  operator std::span<const Tensor>() const { return {list_.data(), list_.size()}; }
  std::size_t size() const { return list_.size(); }
  const Tensor& operator[](std::size_t i) const { return list_[i]; }

 private:
  SmallVec<Tensor, 4> list_;
};

/// Which value a Tensor is, as a key.
struct ValueOfNode {
  const Node* node;
  int output;
  bool operator==(const ValueOfNode&) const = default;
  friend std::size_t key_hash(const ValueOfNode& v) {
    return detail::key_hash(static_cast<const void*>(v.node)) * 31 +
           static_cast<std::size_t>(v.output);
  }
};
inline ValueOfNode value_of_node(const Tensor& t) { return {node_of(t), output_of(t)}; }

inline const Aval& aval_of(const Tensor& t) { return node_of(t)->avals[output_of(t)]; }

/// Makes the node of `op` on `operands` and returns its outputs. Checks that the operands' scopes
/// are alive, infers shapes, and puts the node where its operands live: in the deepest scope among
/// them, but not above the floor of the current one.
SmallVec<Tensor, 1> emit_all(Op, ParamsRef, std::span<const Tensor> operands, CallSite);
/// The same for ops with one result.
Tensor emit(Op, ParamsRef, std::span<const Tensor> operands, CallSite);
inline Tensor emit(Op op, ParamsRef params, std::initializer_list<Tensor> operands,
                   CallSite where) {
  return emit(op, std::move(params), std::span<const Tensor>(operands.begin(), operands.size()),
              where);
}
/// A Tensor that holds `buffer`.
Tensor from_buffer(BufferRef, Aval);
/// The same Tensor, which so far nobody else holds, made by this line.
Tensor made_at(CallSite, Tensor);
Tensor full_tensor(Scalar, const Aval&);

/// The value's buffer, wherever it lies; evaluates. Throws as value_of.
BufferRef buffer_of(const Tensor&, CallSite, const char* function = nullptr);
/// The value's buffer on the host; evaluates. Throws Error(tracer) if the value is not known under
/// the active transform. `function`: what the user has called that asks for it, for messages, as
/// "vt::save_npy"; that is a look, which DebugNans watches.
BufferRef value_of(const Tensor&, CallSite, const char* function = nullptr);
/// Gives away the value, which has been evaluated, to the function of that line: whoever asks for
/// it later gets an Error(value).
void donate(const Tensor&, CallSite to);
/// How many lazy ops in a row an op on these operands would end. A long chain is run first.
std::uint32_t depth_of_lazy(std::span<const Tensor> operands, CallSite);
/// Evaluates all of them in one go.
void evaluate(std::span<const Tensor>, CallSite, const char* function = nullptr);
/// Is the value a constant known now, without running anything?
bool is_known(const Tensor&);

/// Runs a Graph on buffers with the chosen backend. Defined by src/jit (run.cpp).
/// `at_first_sight`: compiled even if it is small and new, if it has functions that the interpreter
/// rounds in another way.
Vec<BufferRef> run_graph(const GraphBody&, std::span<const BufferRef> inputs,
                         bool at_first_sight = false);

/// Where it runs and what the code is made for, as text: processes that say the same round alike.
/// Defined by src/jit (run.cpp).
std::string code_of_process();

/// Pending results whose bits shall not depend on how often such a Graph ran, as those of lanes
/// that run in blocks or all at once.
void compile_at_first_sight(std::span<const Tensor>);
/// The definition of every op: plain loops. (interpreter.cpp)
Vec<BufferRef> interpret(const GraphBody&, std::span<const BufferRef> inputs);
/// While one of these exists, the interpreter throws Exceeded on this thread once it has run so
/// many equations (in loops each iteration counts, and large results as several), or once a
/// recursion needs more of the stack than there is: how long a loop runs, and how deep a recursion
/// goes, is known only then. Of the innermost.
class InterpreterBudget {
 public:
  struct Exceeded {};
  explicit InterpreterBudget(std::int64_t steps);
  ~InterpreterBudget();
  /// Does one exist on this thread?
  static bool exists();
  InterpreterBudget(const InterpreterBudget&) = delete;
  InterpreterBudget& operator=(const InterpreterBudget&) = delete;

 private:
  std::int64_t before_;
  bool is_inside_;  ///< of another one
};
/// One equation on buffers.
SmallVec<BufferRef, 1> interpret_equation(const Equation&, const GraphBody&,
                                          std::span<const BufferRef> inputs);

}  // namespace vt::detail
