// Nodes: their memory, and emit, the one way an op comes into being.
#include "node.hpp"

#include <string>

#include <vt/detail/small_vec.hpp>

#include "../base/stack.hpp"
#include "../ir/collectives.hpp"
#include "named_axes.hpp"
#include "thread_state.hpp"

namespace vt::detail {

namespace node_memory {

constinit thread_local FreeList nodes, params;
// Room for what is recorded most: literals, and lists of axes with shapes. Rarer parameters are
// larger, and go to the C library.
constexpr std::size_t params_bytes = 192;

// Nodes whose last reference went while another one was being destroyed: a chain of a million lazy
// ops must not recurse.
struct Doomed {
  Vec<Node*> waiting;
};
inline thread_local Doomed* doomed = nullptr;

void free_node(Node* n) {
  n->~Node();
  nodes.give(n);
}

void destroy(Node* n) {
  if (doomed) {
    doomed->waiting.push_back(n);
    return;
  }
  if (n->inputs.empty()) {
    free_node(n);
    return;
  }
  Doomed mine;
  doomed = &mine;
  free_node(n);
  while (!mine.waiting.empty()) {
    Node* next = mine.waiting.back();
    mine.waiting.pop_back();
    free_node(next);
  }
  doomed = nullptr;
}

}  // namespace node_memory

void destroy_node(NodeCount* n) noexcept { node_memory::destroy(static_cast<Node*>(n)); }

Node* new_node() { return ::new (node_memory::nodes.take(sizeof(Node))) Node; }

void* Params::operator new(std::size_t bytes) {
  return bytes <= node_memory::params_bytes ? node_memory::params.take(node_memory::params_bytes)
                                            : ::operator new(bytes);
}
void Params::operator delete(void* memory, std::size_t bytes) noexcept {
  if (bytes <= node_memory::params_bytes) node_memory::params.give(memory);
  else ::operator delete(memory);
}

namespace node_emit {

[[noreturn]] void empty_operand(Op op, std::size_t i, CallSite where) {
  fail(ErrorKind::value,
       "vt::" + std::string(name_of(op)) + ": operand " + std::to_string(i) + " is an empty Tensor",
       where);
}

}  // namespace node_emit

void check_alive(const Tensor& t, CallSite where) {
  const Node* n = node_of(t);
  if (n->level == 0) return;
  const ThreadState& state = thread_state();
  const std::size_t level = n->level;
  if (level <= state.scopes.size() && state.scopes[level - 1].id == n->scope) return;
  const std::string line = at(n->where), by = n->op == Op::input
                                                  ? " made as an argument"
                                                  : " made by vt::" + std::string(name_of(n->op));
  fail(ErrorKind::tracer,
       "a tracer " + aval_of(t).str() + by + (line.empty() ? line : line.substr(1)) +
           " was used after its trace ended, or on another thread; return it from the function "
           "instead of keeping it (vt::autobatch is a transform, too). A rule of a custom function "
           "gets it as an argument",
       where);
}

namespace node_emit {

// Effects go into the innermost scope, so that they stay in the order of the user's program; but
// not among the tangents of a linearization, which are run as often as one likes.
int level_of_effects(const ThreadState& state) {
  std::size_t level = state.scopes.size();
  while (level > 0 && state.scopes[level - 1].kind == ScopeKind::linear) --level;
  return static_cast<int>(level);
}

}  // namespace node_emit

int level_for(Op op, const ParamsRef& params, std::span<const Tensor> operands, CallSite where) {
  const ThreadState& state = thread_state();
  int level = has_effect(op, params) ? std::max(state.floor, node_emit::level_of_effects(state))
                                     : state.floor;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Node* n = node_of(operands[i]);
    if (!n) node_emit::empty_operand(op, i, where);
    if (n->level == 0) continue;
    if (n->level > state.scopes.size() || state.scopes[n->level - 1u].id != n->scope)
      check_alive(operands[i], where);
    level = std::max<int>(level, n->level);
  }
  // Leaves without operands belong nowhere: every Graph that uses one gets its own copy.
  if (op == Op::full || op == Op::iota) return 0;
  if (has_axes(op) && (state.named_axes > 0 || is_collective(op)))
    level = std::max(level, level_of_axes(op, params, where));
  return level;
}

Node* place_node(Op op, ParamsRef params, std::span<const Tensor> operands, int level,
                 CallSite where) {
  if (coroutine_stack) need_stack(where);
  Node* n = new_node();
  n->op = op;
  n->where = where;
  n->assume_finite = thread_state().assume_finite;
  n->effect = has_effect(op, params);
  n->at_once =
      level == 0 && (n->effect || (communicates(op, params) && !thread_state().exchanges_wait));
  n->params = std::move(params);
  n->of_data =
      op != Op::full && op != Op::iota && op != Op::threefry &&
      (operands.empty() || any_of(operands, [](const Tensor& t) { return node_of(t)->of_data; }));
  if (level > 0) {
    ScopeState& scope = thread_state().scopes[static_cast<std::size_t>(level) - 1];
    n->level = static_cast<std::uint16_t>(level);
    n->scope = scope.id;
    n->references.store(2, std::memory_order_relaxed);  // the scope's and the caller's
    scope.nodes.push_back(n);
    n->inputs.reserve(operands.size());
    for (const Tensor& t : operands) {
      if (node_of(t)->level != level) retain(node_of(t));
      n->inputs.push_back(adopted(node_of(t), output_of(t)));
    }
  } else {
    n->inputs.append(operands.begin(), operands.end());
    // An error in what is below must not leave the new op half made.
    try {
      n->depth = depth_of_lazy(operands, where);
    } catch (...) {
      release(n);
      throw;
    }
  }
  return n;
}

SmallVec<Tensor, 1> emit_all(Op op, ParamsRef params, std::span<const Tensor> operands,
                             CallSite where) {
  if (const CallSite& pass = thread_state().where; pass.file) where = pass;
  const int level = level_for(op, params, operands, where);
  SmallVec<const Aval*, 8> operand_avals;
  operand_avals.reserve(operands.size());
  for (const Tensor& t : operands) operand_avals.push_back(&aval_of(t));
  SmallVec<Aval, 1> avals = infer(
      op, params, std::span<const Aval* const>(operand_avals.data(), operand_avals.size()), where);
  const std::size_t count = avals.size();
  Node* n = place_node(op, std::move(params), operands, level, where);
  n->avals = std::move(avals);
  const Tensor held = adopted(n, 0);  // also where there are no results
  if (n->at_once) run_at_once(n, where);
  SmallVec<Tensor, 1> results;
  for (std::size_t i = 0; i < count; ++i) results.push_back(tensor_of(n, static_cast<int>(i)));
  return results;
}

void run_at_once(Node* n, CallSite where) {
  const Tensor t = tensor_of(n);
  evaluate({&t, 1}, where);
}

Tensor emit(Op op, ParamsRef params, std::span<const Tensor> operands, CallSite where) {
  if (const CallSite& pass = thread_state().where; pass.file) where = pass;
  const int level = level_for(op, params, operands, where);
  const Aval* operand_avals[8];
  SmallVec<const Aval*, 8> many;
  std::span<const Aval* const> view;
  if (operands.size() <= 8) {
    for (std::size_t i = 0; i < operands.size(); ++i) operand_avals[i] = &aval_of(operands[i]);
    view = {operand_avals, operands.size()};
  } else {
    for (const Tensor& t : operands) many.push_back(&aval_of(t));
    view = {many.data(), many.size()};
  }
  SmallVec<Aval, 1> avals = infer(op, params, view, where);
  Node* n = place_node(op, std::move(params), operands, level, where);
  n->avals = std::move(avals);
  Tensor result = adopted(n);
  if (n->at_once) run_at_once(n, where);
  return result;
}

Tensor from_buffer(BufferRef buffer, Aval aval) {
  Node* n = new_node();
  n->op = Op::constant;
  n->avals.emplace(std::move(aval));
  n->buffers.push_back(std::move(buffer));
  n->ready.store(true, std::memory_order_release);
  return adopted(n);
}

Tensor full_tensor(Scalar value, const Aval& aval) {
  if (!addressable(aval.dtype, aval.shape))
    fail(ErrorKind::shape, "vt::full: " + size_fault(aval.dtype, aval.shape), thread_state().where);
  Node* n = new_node();
  n->op = Op::full;
  n->of_data = false;
  n->where = thread_state().where;
  n->params = make_params(FullParams{value, aval});
  n->avals.emplace(aval);
  return adopted(n);
}

Tensor make_weak(Scalar value) { return full_tensor(value, Aval(value.dtype, Shape{}, true)); }

bool is_known(const Tensor& t) {
  const Node* n = node_of(t);
  return n->op == Op::full || n->op == Op::iota || n->ready.load(std::memory_order_acquire);
}
bool is_tracer(const Tensor& t) { return node_of(t) && node_of(t)->level > 0; }

}  // namespace vt::detail
