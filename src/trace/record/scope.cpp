// Recording scopes: opening, closing into a Graph, replaying a Graph into the current scope.
#include "scope.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../base/environment.hpp"
#include "../base/hash_map.hpp"
#include "../base/stack.hpp"
#include "../base/timeline.hpp"
#include "../base/warnings.hpp"
#include "../ir/collectives.hpp"
#include "../ir/sub_graph.hpp"
#include "recursion.hpp"
#include "thread_state.hpp"

namespace vt::detail {

ThreadState& make_thread_state() {
  warn_of_flushed_subnormals();
  // Ops may run after the thread's own objects have gone, in the destructors of the process's; such
  // a state is never freed.
  struct End {
    ~End() { delete std::exchange(state_of_thread, nullptr); }
  };
  state_of_thread = new ThreadState;
  static const bool watches = debug_nans_from_environment();
  state_of_thread->nan_watch.on = watches;
  static thread_local End end;
  static_cast<void>(end);
  return *state_of_thread;
}

bool in_batch() {
  return any_of(thread_state().scopes,
                [](const ScopeState& s) { return s.kind == ScopeKind::batch; });
}
int current_level() { return static_cast<int>(thread_state().scopes.size()); }

WhereScope::WhereScope(CallSite where) : before_(std::exchange(thread_state().where, where)) {}
WhereScope::~WhereScope() { thread_state().where = before_; }

namespace nesting {

// What passes over recorded bodies take of the stack for each level that these are nested: at
// most 3.8 KiB were measured (a while, compiled), 6 KiB without optimisation.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t bytes_of_a_level = 24 * 1024;
#elif defined(__OPTIMIZE__)
constexpr std::size_t bytes_of_a_level = 5 * 1024;
#else
constexpr std::size_t bytes_of_a_level = 8 * 1024;
#endif

}  // namespace nesting

std::string too_deep(int levels) {
  using nesting::bytes_of_a_level;
  // Threads with small stacks record what is nested little, as ever.
  constexpr std::size_t unasked = 32;
  // The stack left outside of all scopes, where most passes begin.
  constinit static thread_local std::size_t at_first = 0;
  const std::size_t open = thread_state().scopes.size(), left = stack_left();
  if (open == 0) at_first = left;
  const std::size_t level = open + static_cast<std::size_t>(levels - 1);
  if (level >= std::size_t{deepest_nesting})
    return "more than " + std::to_string(deepest_nesting) + " deep";
  if (open >= unasked &&
      (left < stack_to_record || at_first < stack_to_record + level * bytes_of_a_level))
    return "deeper than the stack of this thread holds";
  return {};
}

namespace nesting {

void check(const ThreadState& state, const RecordOptions& options) {
  const std::string fault = too_deep(1);
  if (fault.empty()) return need_stack(options.where);
  CallSite line = options.where;
  for (std::size_t i = state.scopes.size(); i-- > 0 && !line.file;) line = state.scopes[i].where;
  fail(ErrorKind::transform,
       std::string(options.transform) + ": bodies and transforms are nested " + fault +
           "; write a loop (vt::fori_loop, vt::while_loop, vt::scan) in place of the nesting",
       line);
}

}  // namespace nesting

RecordingScope::RecordingScope(const RecordOptions& options) {
  static std::atomic<std::uint64_t> last_id{0};
  ThreadState& state = thread_state();
  nesting::check(state, options);
  ScopeState scope;
  scope.id = ++last_id;
  scope.kind = options.kind;
  scope.transform = options.transform;
  scope.where = options.where;
  const bool pinned = options.kind == ScopeKind::jit || options.kind == ScopeKind::branch ||
                      options.kind == ScopeKind::batch || options.closed;
  scope.floor = pinned ? static_cast<int>(state.scopes.size()) + 1 : state.floor;
  scope.concrete.assign(options.concrete.begin(), options.concrete.end());
  scope.axis = options.axis;
  scope.mesh.append(options.mesh.begin(), options.mesh.end());
  scope.stateful = options.stateful;
  scope.looks = options.looks;
  state.named_axes += scope.axis || !scope.mesh.empty();
  state.scopes.push_back(std::move(scope));
  state.floor = state.scopes.back().floor;
}

namespace scope_close {

void pop() {
  ThreadState& state = thread_state();
  ScopeState dead = std::move(state.scopes.back());
  state.scopes.pop_back();
  state.named_axes -= dead.axis || !dead.mesh.empty();
  state.floor = state.scopes.empty() ? 0 : state.scopes.back().floor;
  for (Node* n : dead.nodes) {
    for (Tensor& in : n->inputs)
      // borrowed; all of them before the first node goes
      if (node_of(in)->level == n->level) forget(in);
  }
  for (auto it = dead.nodes.rbegin(); it != dead.nodes.rend(); ++it) release(*it);
}

// Builds the Graph of the top scope. lazy_mutex() is held, so scratch fields of outer nodes are
// ours as well.
class Closer {
 public:
  explicit Closer(ScopeState& scope, int level)
      : scope_(scope), level_(level), epoch_(next_epoch()) {}

  Recorded close(std::span<const Tensor> outputs) {
    mark_live(outputs);
    GraphBody& g = result_.graph;
    for (const Tensor& t : scope_.inputs) {
      Node* n = node_of(t);
      n->live = epoch_;
      n->first_var = g.fresh(n->avals[0]);
      g.inputs.push_back(n->first_var);
    }
    for (Node* n : scope_.nodes) {
      if (n->live != epoch_ || n->op == Op::input) continue;
      add_equation(n);
    }
    for (const Tensor& t : outputs) g.outputs.push_back(var_of(t));
    return std::move(result_);
  }

 private:
  /// Of a function as it was written, not of what is made of its derivative.
  bool is_of_user() const { return scope_.kind != ScopeKind::linear; }
  /// There all processes have recorded the same. Elsewhere one may use what another does not.
  bool is_in_shard_map() const {
    const auto of_mesh = [](const ScopeState& s) { return !s.mesh.empty(); };
    return of_mesh(scope_) || any_of(thread_state().scopes, of_mesh);
  }
  void mark_live(std::span<const Tensor> outputs) {
    std::size_t live = 0, values = 0, outside = 0;
    for (const Tensor& t : outputs)
      if (node_of(t)->level == level_) node_of(t)->live = epoch_;
    const bool keeps_exchanges = is_of_user() && !is_in_shard_map();
    for (auto it = scope_.nodes.rbegin(); it != scope_.nodes.rend(); ++it) {
      if ((*it)->effect || (keeps_exchanges && communicates((*it)->op, (*it)->params)))
        (*it)->live = epoch_;
      if ((*it)->live != epoch_) continue;
      ++live;
      values += (*it)->avals.size();
      for (const Tensor& in : (*it)->inputs)
        if (node_of(in)->level == level_) node_of(in)->live = epoch_;
        else outside += node_of(in)->avals.size() > 1;
    }
    // Results of outer calls are mostly used once.
    result_.captured.reserve(outside);
    result_.graph.inputs.reserve(scope_.inputs.size() + outside);
    result_.graph.equations.reserve(live);
    result_.graph.avals.reserve(values + outside + scope_.inputs.size() + 8);
  }

  void add_equation(Node* n) {
    GraphBody& g = result_.graph;
    // A literal operand adds its own equation, which must come first.
    for (const Tensor& in : n->inputs)
      if (node_of(in)->level != level_) var_of(in);
    Equation& e = g.equations.emplace_back();
    e.op = n->op;
    e.where = n->where;
    e.assume_finite = n->assume_finite;
    // A node that only the scope holds goes with it.
    if (n->level == level_ && n->references.load(std::memory_order_acquire) == 1)
      e.params = std::move(n->params);
    else e.params = n->params;
    e.inputs.reserve(n->inputs.size());
    for (const Tensor& in : n->inputs) e.inputs.push_back(var_of(in));
    n->live = epoch_;
    n->first_var = static_cast<Var>(g.avals.size());
    e.outputs.reserve(n->avals.size());
    for (const Aval& a : n->avals) e.outputs.push_back(g.fresh(a));
  }

  // A leaf that belongs to no scope: an equation of this Graph, and one for all equal numbers (each
  // mention of `2.0f` is a node).
  void add_leaf(Node* n) {
    if (n->op != Op::full || !n->avals[0].shape.empty()) return add_equation(n);
    const Scalar& value = n->params->as<FullParams>().value;
    Number& known = numbers_[(value.natural * 0x9e3779b97f4a7c15u) >> (64 - numbers_bits)];
    if (known.var >= 0 && known.value == value && known.weak == n->avals[0].weak) {
      n->live = epoch_;
      n->first_var = known.var;
      return;
    }
    add_equation(n);
    known = {value, n->avals[0].weak, n->first_var};
  }

  Var var_of(const Tensor& t) {
    Node* n = node_of(t);
    if (n->level == level_) return n->first_var + output_of(t);
    if (n->op == Op::full || n->op == Op::iota) {
      if (n->live != epoch_) add_leaf(n);
      return n->first_var;
    }
    // A Tensor of an outer scope, or a value: a captured input, once.
    const std::size_t count = n->avals.size();
    if (n->live != epoch_) {
      n->live = epoch_;
      n->first_var = count == 1 ? capture(t) : static_cast<Var>(captured_results_.size());
      if (count > 1) captured_results_.resize(captured_results_.size() + count, -1);
    }
    if (count == 1) return n->first_var;
    Var& v = captured_results_[n->first_var + output_of(t)];
    if (v < 0) v = capture(t);
    return v;
  }

  Var capture(const Tensor& t) {
    const Var v = result_.graph.fresh(aval_of(t));
    result_.graph.inputs.push_back(v);
    result_.captured.push_back(t);
    return v;
  }

  struct Number {
    Scalar value;
    bool weak = false;
    Var var = -1;
  };
  static constexpr int numbers_bits = 5;

  ScopeState& scope_;
  int level_;
  std::uint32_t epoch_;
  Number numbers_[1 << numbers_bits];  // by hash; of two that collide, the later one stays
  /// Of outer nodes with several results, whose `first_var` is a place in here: one for each of
  /// them, −1: it is not captured.
  RecycledVec<Var> captured_results_;
  Recorded result_;
};

}  // namespace scope_close

RecordingScope::~RecordingScope() {
  if (open_) scope_close::pop();
}

Tensor RecordingScope::input(const Aval& aval) {
  ThreadState& state = thread_state();
  ScopeState& scope = state.scopes.back();
  Node* n = place_node(Op::input, {}, {}, static_cast<int>(state.scopes.size()),
                       state.where.file ? state.where : scope.where);
  n->avals.emplace(aval);
  Tensor t = adopted(n);
  scope.inputs.push_back(t);
  return t;
}

void check_results(std::span<const Tensor> outputs) {
  const ThreadState& state = thread_state();
  const CallSite line = state.where.file ? state.where : state.scopes.back().where;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined())
      fail(ErrorKind::tree,
           std::string(state.scopes.back().transform) + ": result " + std::to_string(i) +
               " of the function is an empty Tensor",
           line);
    check_alive(outputs[i], line);
  }
}

Recorded RecordingScope::finish(std::span<const Tensor> outputs) {
  ThreadState& state = thread_state();
  refuse_updates(state.scopes.back().transform);
  check_results(outputs);
  Recorded recorded;
  {
    std::lock_guard lock(lazy_mutex());
    recorded = scope_close::Closer(state.scopes.back(), static_cast<int>(state.scopes.size()))
                   .close(outputs);
  }
  const char* transform = state.scopes.back().transform;
  recorded.met = std::move(state.scopes.back().met);
  open_ = false;
  scope_close::pop();
  debug_check(recorded.graph, transform);
  return recorded;
}

Vec<LoggedGraph>*& graph_log() {
  constinit static thread_local Vec<LoggedGraph>* log = nullptr;
  return log;
}

Recorded record(const FlatFunction& f, std::span<const Aval> avals, const RecordOptions& options) {
  // The user's ops carry their own lines, also when a pass calls this while it transforms an
  // equation.
  WhereScope own_lines(CallSite{});
  const std::string line = timeline_wanted() ? json_line(options.where) : "";
  const Span span("record", options.transform, line);
  RecordingScope scope(options);
  std::vector<Tensor> arguments;
  arguments.reserve(avals.size());
  for (const Aval& a : avals) arguments.push_back(scope.input(a));
  if (options.axis) thread_state().scopes.back().lane = arguments.back();
  const std::vector<Tensor> outputs = f(arguments);
  arguments.clear();
  Recorded r = scope.finish(outputs);
  if (graph_log() && options.kind != ScopeKind::branch && options.kind != ScopeKind::batch)
    graph_log()->push_back({options.transform, to_text(r.graph, true)});
  return r;
}

std::vector<Tensor> share_captures(std::span<Recorded* const> parts) {
  std::vector<Tensor> all;
  HashMap<ValueOfNode, bool> seen;
  for (const Recorded* part : parts)
    for (const Tensor& t : part->captured)
      if (seen.emplace(value_of_node(t), true).fresh) all.push_back(t);
  for (Recorded* part : parts) {
    GraphBody& g = part->graph;
    const auto own = static_cast<std::ptrdiff_t>(g.inputs.size() - part->captured.size());
    Vec<Var> inputs(g.inputs.begin(), g.inputs.begin() + own);
    HashMap<ValueOfNode, Var> known;
    for (std::size_t i = 0; i < part->captured.size(); ++i)
      known.emplace(value_of_node(part->captured[i]), g.inputs[static_cast<std::size_t>(own) + i]);
    for (const Tensor& t : all) {
      const auto* at = known.find(value_of_node(t));
      inputs.push_back(at == known.end() ? g.fresh(aval_of(t)) : at->second);
    }
    g.inputs = std::move(inputs);
    part->captured = all;
  }
  return all;
}

void close_values(Recorded& r) {
  const std::vector<Tensor> captured = std::exchange(r.captured, {});
  for (std::size_t k : bind_inputs(r.graph, captured.size(), [&](std::size_t i) {
         return is_tracer(captured[i]) ? BufferRef() : value_of(captured[i], {});
       }))
    r.captured.push_back(captured[k]);
}

GraphBody closed(Recorded&& r) {
  close_values(r);
  if (!r.captured.empty()) value_of(r.captured[0], {});  // says what a tracer is, and where from
  return std::move(r.graph);
}

Node* repeated(const GraphBody& graph, const Equation& e, std::span<const Tensor> operands) {
  Node* n =
      place_node(e.op, e.params, operands, level_for(e.op, e.params, operands, e.where), e.where);
  n->assume_finite = e.assume_finite;
  if (e.outputs.size() == 1) {
    n->avals.emplace(graph.aval(e.outputs[0]));
  } else if (!e.outputs.empty()) {
    const CallParams* const call = e.op == Op::call ? e.params->get_if<CallParams>() : nullptr;
    if (call && call->results) {
      n->avals = call->results;
    } else {
      SmallVec<Aval, 1> avals;
      avals.reserve(e.outputs.size());
      for (Var v : e.outputs) avals.push_back(graph.aval(v));
      n->avals = std::move(avals);
    }
  }
  if (n->at_once) {
    try {
      run_at_once(n, e.where);
    } catch (...) {
      release(n);
      throw;
    }
  }
  return n;
}

std::vector<Tensor> replay(const GraphBody& graph, std::span<const Tensor> arguments) {
  RecycledVec<Tensor> values(graph.avals.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) values[graph.inputs[i]] = arguments[i];
  Borrowed operands;
  for (const Equation& e : graph.equations) {
    operands.clear();
    for (Var v : e.inputs) operands.add(values[v]);
    repeat(graph, e, operands, [&](Var v, Tensor t) { values[v] = std::move(t); });
  }
  std::vector<Tensor> results;
  results.reserve(graph.outputs.size());
  for (Var v : graph.outputs) results.push_back(values[v]);
  return results;
}

}  // namespace vt::detail

namespace vt {

AssumeFinite::AssumeFinite(bool assumed)
    : before_(std::exchange(detail::thread_state().assume_finite, assumed)) {}
AssumeFinite::~AssumeFinite() { detail::thread_state().assume_finite = before_; }

DType default_dtype() { return detail::thread_state().default_dtype; }
DefaultDType::DefaultDType(DType dtype, CallSite where)
    : before_(detail::thread_state().default_dtype) {
  if (dtype != f32 && dtype != f64)
    detail::fail(ErrorKind::dtype,
                 std::string("vt::DefaultDType: must be f32 or f64, not ") + name_of(dtype), where);
  detail::thread_state().default_dtype = dtype;
}
DefaultDType::~DefaultDType() { detail::thread_state().default_dtype = before_; }

}  // namespace vt
