// Lazy evaluation: turning pending ops into a Graph and running it when a value is looked at, and
// reading values on the host.
#include <algorithm>
#include <cstring>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/ops.hpp>

#include "../base/convert.hpp"
#include "../base/hash_map.hpp"
#include "../base/locks.hpp"
#include "../fiber/coroutine.hpp"
#include "devices.hpp"
#include "nan_watch.hpp"
#include "scope.hpp"
#include "thread_state.hpp"

namespace vt::detail {

Mutex& lazy_mutex() {
  static Mutex mutex;
  return mutex;
}

std::uint32_t next_epoch() {
  static std::uint32_t epoch = 0;
  return ++epoch;
}

namespace lazy_run {

bool pending(const Node* n) { return !n->ready.load(std::memory_order_acquire); }

// The value of an evaluated Tensor, unless it was given away.
const BufferRef& kept_buffer(const Tensor& t, CallSite where) {
  const BufferRef& b = node_of(t)->buffers[output_of(t)];
  if (b->donated.file)
    fail(ErrorKind::value,
         "vt::Tensor: this " + aval_of(t).str() + " was donated to the function jitted" +
             at(b->donated).substr(1) +
             " and has no value any more; use what that function returned, or do not donate it",
         where);
  return b;
}

// The pending ops below some Tensors as a Graph. All of it happens with lazy_mutex() held.
struct Batch {
  GraphBody graph;
  Vec<BufferRef> inputs;
  std::vector<Tensor> results;  // one per node whose values are kept; all outputs of it
  bool compiled = false;        // at first sight
  Vec<CallSite> lines;          // of the inputs, for DebugNans
};

class Collector {
 public:
  /// `where`: of whoever asks for values.
  explicit Collector(CallSite where) : where_(where), epoch_(next_epoch()) {}

  Batch collect(std::span<const Tensor> wanted) {
    for (const Tensor& t : wanted)
      if (pending(node_of(t))) visit(node_of(t));
    for (Node* n : order_) add(n);
    HashMap<const Node*, bool> asked_for;
    for (const Tensor& t : wanted) asked_for.emplace(node_of(t), true);
    // Also keep what somebody outside still holds: it would be computed again when it is looked at
    // in its turn.
    for (std::size_t i = 0; i < order_.size(); ++i) {
      Node* n = order_[i];
      const bool asked = asked_for.contains(n);
      const bool leaf = n->op == Op::full || n->op == Op::iota;
      if (asked || (!leaf && n->references.load(std::memory_order_relaxed) > uses_[i])) {
        batch_.results.push_back(tensor_of(n));
        for (std::size_t k = 0; k < n->avals.size(); ++k)
          batch_.graph.outputs.push_back(n->first_var + static_cast<Var>(k));
      }
    }
    return std::move(batch_);
  }

 private:
  // Post-order without recursion. `live` marks what was seen; index_ in order_ is kept in first_var
  // until add() runs.
  void visit(Node* root) {
    if (root->live == epoch_) return;
    Vec<std::pair<Node*, std::size_t>> path{{root, 0}};
    root->live = epoch_;
    while (!path.empty()) {
      auto& [n, next] = path.back();
      if (next == n->inputs.size()) {
        order_.push_back(n);
        path.pop_back();
        continue;
      }
      Node* in = node_of(n->inputs[next++]);
      if (in->live == epoch_ || !pending(in)) continue;
      in->live = epoch_;
      path.push_back({in, 0});
    }
    uses_.resize(order_.size(), 0);
  }

  void add(Node* n) {
    Equation e;
    e.op = n->op;
    e.where = n->where;
    e.assume_finite = n->assume_finite;
    e.params = n->params;
    batch_.compiled = batch_.compiled || n->compiled;
    for (const Tensor& in : n->inputs) e.inputs.push_back(var_of(in));
    position_.emplace(n, position_.size());
    n->first_var = static_cast<Var>(batch_.graph.avals.size());
    for (const Aval& a : n->avals) e.outputs.push_back(batch_.graph.fresh(a));
    batch_.graph.equations.push_back(std::move(e));
  }

  Var var_of(const Tensor& t) {
    Node* n = node_of(t);
    if (pending(n)) {
      ++uses_[position_.at(n)];
      return n->first_var + output_of(t);
    }
    if (output_of(t) == 0 && n->live == epoch_) return n->first_var;
    const Var v = batch_.graph.fresh(aval_of(t));
    if (output_of(t) == 0) {
      n->live = epoch_;
      n->first_var = v;
    }
    batch_.graph.inputs.push_back(v);
    batch_.inputs.push_back(kept_buffer(t, where_));
    if (watches_nans()) batch_.lines.push_back(n->where);
    return v;
  }

  CallSite where_;
  std::uint32_t epoch_;
  Vec<Node*> order_;
  Vec<std::uint32_t> uses_;
  HashMap<const Node*, std::size_t> position_;
  Batch batch_;
};

// A number, which nothing has to run for: most come as arguments of jitted functions.
bool is_number(const Node* n) {
  return n->op == Op::full && n->avals[0].shape.empty() &&
         default_device().kind == Device::Kind::cpu;
}
BufferRef buffer_of_number(const Node* n) {
  const DType dtype = n->avals[0].dtype;
  BufferRef buffer = allocate(size_of(dtype), "a number");
  const Scalar& value = n->params->as<FullParams>().value;
  store_scalar(value.dtype == dtype ? value : value.converted(dtype), buffer->data);
  return buffer;
}
// Needs lazy_mutex() where others have the node.
void publish_number(Node* n, BufferRef buffer) {
  if (!pending(n)) return;
  n->buffers.clear();
  n->buffers.push_back(std::move(buffer));
  n->ready.store(true, std::memory_order_release);
}

// Fills in the values and lets go of the operands, outside the lock: releasing them may free a long
// chain.
void publish(const Batch& batch, Vec<BufferRef> values) {
  Vec<decltype(Node::inputs)> operands;
  std::lock_guard lock(lazy_mutex());
  std::size_t next = 0;
  for (const Tensor& t : batch.results) {
    Node* n = node_of(t);
    const std::size_t count = n->avals.size();
    if (pending(n)) {
      n->buffers.clear();
      for (std::size_t k = 0; k < count; ++k) n->buffers.push_back(std::move(values[next + k]));
      operands.push_back(std::move(n->inputs));
      n->inputs.clear();
      n->ready.store(true, std::memory_order_release);
    }
    next += count;
  }
}

// The Tensor of the enclosing scope that a tracer of a grad scope stands for: the ops below it
// replayed on the arguments. `function` is who looks, null: nobody that the user has called.
Tensor look_through(const Tensor& t, CallSite where, const char* function) {
  ThreadState& state = thread_state();
  const int level = node_of(t)->level;
  auto scope = [&]() -> ScopeState& { return state.scopes[static_cast<std::size_t>(level) - 1]; };
  const auto asks = [&] { return function ? formatted("{}: ", function) : std::string(); };
  const auto refuse = [&] {
    const char* const whom = !scope().mesh.empty()             ? "processes"
                             : scope().kind == ScopeKind::vmap ? "lanes"
                                                               : "later values";
    fail(
        ErrorKind::tracer,
        formatted("{}the value of a tracer {} is not known under {}: the function runs once, for "
                  "all {}. Use vt::cond or vt::where for `if`, vt::while_loop or vt::fori_loop for "
                  "loops, & and | for && and ||, vt::debug_print or vt::callback to look",
                  asks(), aval_of(t).str(), scope().transform, whom),
        where.file ? where : scope().where);
  };
  if (scope().kind == ScopeKind::batch) return scope().looks->values({&t, 1}, where)[0];
  if (scope().kind != ScopeKind::grad || scope().concrete.empty()) refuse();
  for (std::size_t i = 0; i < scope().inputs.size(); ++i) {
    const Node* input = node_of(scope().inputs[i]);
    if (scope().concrete[i].defined() && !scope().looked_at.contains(input))
      scope().looked_at[input] = {scope().concrete[i]};
  }
  // The replayed ops belong outside this scope, whatever is innermost now.
  struct FloorGuard {
    int before = thread_state().floor;
    ~FloorGuard() { thread_state().floor = before; }
  } guard;
  state.floor = level >= 2 ? state.scopes[static_cast<std::size_t>(level) - 2].floor : 0;
  Vec<const Node*> path{node_of(t)};
  while (!path.empty()) {
    const Node* n = path.back();
    if (scope().looked_at.contains(n)) {
      path.pop_back();
      continue;
    }
    bool complete = true;
    for (const Tensor& in : n->inputs)
      if (node_of(in)->level == level && !scope().looked_at.contains(node_of(in))) {
        path.push_back(node_of(in));
        complete = false;
      }
    if (!complete) continue;
    if (n->op == Op::input) refuse();
    if (n->effect) {
      const std::string line = at(n->where);
      fail(ErrorKind::tracer,
           formatted("{}a value that vt::{}{} gives is not known while {} records the function: it "
                     "has effects, which happen afterwards",
                     asks(), name_of(n->op), line.empty() ? line : line.substr(1),
                     scope().transform),
           where);
    }
    std::vector<Tensor> operands;
    for (const Tensor& in : n->inputs)
      operands.push_back(
          node_of(in)->level == level ? scope().looked_at.at(node_of(in))[output_of(in)] : in);
    SmallVec<Tensor, 1> outputs = emit_all(n->op, n->params, operands, n->where);
    scope().looked_at[n] = std::vector<Tensor>(outputs.begin(), outputs.end());
    path.pop_back();
  }
  return scope().looked_at.at(node_of(t))[output_of(t)];
}

// Puts what is outside of all scopes in place of tracers. All that a scope computes when it is
// asked for are asked for at once.
void look_through_all(std::vector<Tensor>& all, CallSite where, const char* function) {
  int level = 0;
  for (const Tensor& t : all) {
    check_alive(t, where);
    level = std::max<int>(level, node_of(t)->level);
  }
  for (; level > 0; --level) {
    const ScopeState& scope = thread_state().scopes[static_cast<std::size_t>(level) - 1];
    if (scope.kind != ScopeKind::batch) {
      for (Tensor& t : all)
        if (node_of(t)->level == level) t = look_through(t, where, function);
      continue;
    }
    std::vector<Tensor> tracers;
    for (const Tensor& t : all)
      if (node_of(t)->level == level) tracers.push_back(t);
    if (tracers.empty()) continue;
    std::vector<Tensor> values = scope.looks->values(tracers, where);
    std::size_t next = 0;
    for (Tensor& t : all)
      if (node_of(t)->level == level) t = std::move(values[next++]);
  }
}

}  // namespace lazy_run

void evaluate(std::span<const Tensor> wanted, CallSite where, const char* function) {
  std::vector<Tensor> here(wanted.begin(), wanted.end());
  lazy_run::look_through_all(here, where, function);
  lazy_run::Batch batch;
  {
    std::lock_guard lock(lazy_mutex());
    batch = lazy_run::Collector(where).collect(here);
  }
  if (batch.results.empty()) return;
  const WhereScope line(where);  // what messages name where an equation knows no line
  Vec<BufferRef> values;
  const auto run = [&](const GraphBody& graph) {
    Coroutine::on_thread_stack([&] { values = run_graph(graph, batch.inputs, batch.compiled); });
  };
  if (!watches_nans()) {
    run(batch.graph);
    return lazy_run::publish(batch, std::move(values));
  }
  const WatchedGraph graph = watched(std::make_shared<const GraphBody>(std::move(batch.graph)));
  const auto name = [&](std::size_t i) {
    const std::string line = at(batch.lines[i]);
    return "the value " + graph.graph->aval(graph.graph->inputs[i]).str() +
           (line.empty() ? line : " made" + line.substr(1));
  };
  try {
    run(*graph.graph);
  } catch (const Error& e) {
    const std::string told = told_inside(graph, batch.inputs, name);
    if (told.empty()) throw;
    throw Error(e.kind(), e.what() + told);
  }
  keep_not_finite(graph, batch.inputs, values, name);
  lazy_run::publish(batch, values);
  refuse_inside(graph, batch.inputs, values, where);
}

std::uint32_t depth_of_lazy(std::span<const Tensor> operands, CallSite where) {
  // A loop that never looks at its values must not pile up memory.
  constexpr std::uint32_t deepest = 4096;
  std::uint32_t depth = 0;
  for (const Tensor& t : operands)
    if (lazy_run::pending(node_of(t))) depth = std::max(depth, node_of(t)->depth);
  if (depth < deepest) return depth + 1;
  evaluate(operands, where);
  return 1;
}

void evaluate_leaves(std::span<const Tensor> leaves, CallSite where) {
  std::vector<Tensor> there;
  for (const Tensor& t : leaves)
    if (t.defined()) there.push_back(t);
  evaluate(there, where, "vt::eval");
}

void compile_at_first_sight(std::span<const Tensor> results) {
  const std::lock_guard lock(lazy_mutex());
  for (const Tensor& t : results)
    if (t.defined() && node_of(t)->level == 0) node_of(t)->compiled = true;
}

BufferRef buffer_of(const Tensor& t, CallSite where, const char* function) {
  if (!t.defined())
    fail(ErrorKind::value,
         formatted("{}: the value of an empty Tensor was asked for",
                   function ? function : "vt::Tensor"),
         where);
  Tensor outer = t;
  while (node_of(outer)->level > 0) {
    check_alive(outer, where);
    outer = lazy_run::look_through(outer, where, function);
  }
  if (Node* n = node_of(outer); lazy_run::pending(n)) {
    if (lazy_run::is_number(n)) {
      BufferRef number = lazy_run::buffer_of_number(n);
      const std::lock_guard lock(lazy_mutex());
      lazy_run::publish_number(n, std::move(number));
    } else {
      evaluate(std::span<const Tensor>(&outer, 1), where);
    }
  }
  return lazy_run::kept_buffer(outer, where);
}

void donate(const Tensor& t, CallSite to) {
  Tensor outer = t;
  while (node_of(outer)->level > 0) outer = lazy_run::look_through(outer, to, nullptr);
  Node* n = node_of(outer);
  const std::lock_guard lock(lazy_mutex());
  BufferRef& buffer = n->buffers[output_of(outer)];
  BufferRef gone = borrow_memory(nullptr, 0);
  gone->device = buffer->device;
  gone->donated = to;
  buffer = std::move(gone);
  if (n->op == Op::full) n->op = Op::constant;  // its number is not asked for without its value
}

BufferRef value_of(const Tensor& t, CallSite where, const char* function) {
  const BufferRef value = buffer_of(t, where, function);
  BufferRef host = on_host(value);
  if (function && watches_nans()) refuse_not_finite(*value, *host, aval_of(t), where, function);
  return host;
}

Tensor number_argument(Scalar value) {
  Tensor number = make_weak(value);
  if (Node* n = node_of(number); lazy_run::is_number(n))
    lazy_run::publish_number(n, lazy_run::buffer_of_number(n));
  return number;
}

Tensor made_at(CallSite where, Tensor value) {
  node_of(value)->where = where;
  return value;
}

void copy_out(const Tensor& t, DType dtype, void* out, CallSite where, const char* function) {
  if (!t.defined())
    fail(ErrorKind::value, formatted("{}: the value of an empty Tensor was asked for", function),
         where);
  if (is_complex(t.dtype()) && !is_complex(dtype) && !is_bool(dtype))
    fail(ErrorKind::dtype,
         formatted("{}: asked for {} numbers of a {}, which would drop the imaginary part; take "
                   "vt::real, vt::imag or vt::abs",
                   function, name_of(dtype), aval_of(t).str()),
         where);
  if (node_of(t)->op == Op::full && t.rank() == 0) {  // a scalar literal: no need to run anything
    const Scalar value = node_of(t)->params->as<FullParams>().value;
    store_scalar(value.converted(dtype), out);
    return;
  }
  const BufferRef buffer = value_of(t, where, function);
  convert_elements(buffer->data, t.dtype(), out, dtype, t.size());
}

const void* host_data(const Tensor& t, DType wanted, CallSite where, const char* function) {
  if (!t.defined())
    fail(ErrorKind::value, formatted("{}: the value of an empty Tensor was asked for", function),
         where);
  if (t.dtype() != wanted)
    fail(ErrorKind::dtype,
         formatted("{}: asked for {} elements of a {}; use its own type, to_vector (which "
                   "converts) or astype",
                   function, name_of(wanted), aval_of(t).str()),
         where);
  const BufferRef buffer = value_of(t, where, function);
  // The buffer lives in the node (or, for a tracer under grad, in the scope's stand-in), so the
  // view outlives this call.
  return buffer->data;
}

void not_one_element(const Tensor& t, CallSite where) {
  fail(ErrorKind::shape,
       "vt::Tensor::item: " + aval_of(t).str() + " has " + std::to_string(t.size()) +
           " elements, not one",
       where);
}

void no_room_for_elements(const Tensor& t, CallSite where) {
  fail(ErrorKind::memory,
       "vt::Tensor::to_vector: there is no memory for the elements of " + aval_of(t).str(), where);
}

CallSite line_of(const Tensor& t) { return t.defined() ? node_of(t)->where : CallSite{}; }

bool truth_of(const Tensor& t) {
  if (!t.defined())
    fail(ErrorKind::value, "vt::Tensor: the truth of an empty Tensor was asked for", {});
  const CallSite made = line_of(t);
  if (t.size() != 1)
    fail(ErrorKind::shape,
         "vt::Tensor: " + aval_of(t).str() +
             " is not one truth value; take vt::any or vt::all of it, or choose element by element "
             "with vt::where",
         made);
  bool truth = false;
  copy_out(t, DType::bool_, &truth, made, "vt::Tensor as a truth value");
  return truth;
}

void ragged_braces(CallSite where) {
  fail(ErrorKind::shape, "vt::tensor: the values have rows of different lengths", where);
}

}  // namespace vt::detail

namespace vt {

const Shape& Tensor::shape(CallSite where) const& {
  if (!node_)
    detail::fail(ErrorKind::value, "vt::Tensor: the shape of an empty Tensor was asked for",
                 detail::user_line(where));
  return detail::aval_of(*this).shape;
}
DType Tensor::dtype(CallSite where) const {
  if (!node_)
    detail::fail(ErrorKind::value, "vt::Tensor: the dtype of an empty Tensor was asked for",
                 detail::user_line(where));
  return detail::aval_of(*this).dtype;
}
std::int64_t Tensor::dim(Param<int> axis, CallSite where) const {
  const int r = rank(where);
  if (axis < -r || axis >= r)
    detail::fail(
        ErrorKind::shape,
        "vt::Tensor::dim: axis " + std::to_string(axis) + " of " + detail::aval_of(*this).str(),
        where);
  return shape()[axis < 0 ? axis + r : int{axis}];
}
const Tensor& Tensor::eval(CallSite where) const& {
  detail::buffer_of(*this, where, "vt::Tensor::eval");  // of a device: given to it, not waited for
  return *this;
}

}  // namespace vt
