// BatchLooks: which nodes a look needs, and where their values are kept for the next ones.
#include "looks.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include <vt/detail/message.hpp>

#include "../../trace/base/timeline.hpp"
#include "../../trace/record/thread_state.hpp"
#include "instances.hpp"
#include "nodes.hpp"
#include "numbering.hpp"
#include "schedule.hpp"

namespace vt::detail::autobatching {

namespace looking {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Ops belong outside of the scope of this level, whatever is innermost.
class OutsideOf {
 public:
  explicit OutsideOf(int level) : before_(thread_state().floor) {
    const ThreadState& state = thread_state();
    thread_state().floor = level >= 2 ? state.scopes[static_cast<std::size_t>(level) - 2].floor : 0;
  }
  ~OutsideOf() { thread_state().floor = before_; }
  OutsideOf(const OutsideOf&) = delete;
  OutsideOf& operator=(const OutsideOf&) = delete;

 private:
  int before_;
};

Vec<GivenValue> given_of(const Delta& delta) {
  Vec<GivenValue> given;
  for (const ValuePlace& p : delta.given) given.push_back({p.rows, p.axis});
  return given;
}
BufferRef row_of(const BufferRef& array, const ValuePlace& place, std::size_t bytes) {
  BufferRef row = allocate(bytes, "a value that is looked at");
  if (bytes > 0)
    std::memcpy(row->data,
                array->as<char>() + static_cast<std::size_t>(place.row) *
                                        (bytes / static_cast<std::size_t>(place.rows)),
                bytes);
  return row;
}

}  // namespace looking

/// Walks down to what is known. Time: linear in what it adds.
class BatchLooks::Collector {
 public:
  Collector(const BatchLooks& looks, int level, bool effects, CallSite where)
      : looks_(looks), level_(level), effects_(effects), where_(where) {}

  void add(const Tracer* root) {
    if (!is_new(root)) return;
    Vec<std::pair<const Tracer*, std::size_t>> path{{root, 0}};
    seen_.emplace(root, -1);
    while (!path.empty()) {
      auto& [n, next] = path.back();
      if (next == n->inputs.size()) {
        const Tracer* const done = n;
        path.pop_back();
        add_equation(done);
        continue;
      }
      const Tracer* const in = node_of(n->inputs[next++]);
      if (in->level != level_ || !is_new(in)) continue;
      seen_.emplace(in, -1);
      path.push_back({in, 0});
    }
  }
  Var var_of(const Tensor& t) {
    const Tracer* const n = node_of(t);
    if (const auto* own = seen_.find(n); own != seen_.end()) return own->second + output_of(t);
    const auto other = others_.find(value_of_node(t));
    if (other != others_.end()) return other->second;
    if (n->level != level_ && (n->op == Op::full || n->op == Op::iota)) {
      add_equation(n);
      return seen_.at(n);
    }
    const Var v = delta_.graph.fresh(aval_of(t));
    others_.emplace(value_of_node(t), v);
    const ValuePlace place = n->level == level_ ? looks_.place_of(t) : ValuePlace{t, -1};
    if (place.row < 0) {
      delta_.graph.inputs.push_back(v);
      delta_.inputs.push_back(place.array);
    } else {
      given_.push_back(v);
      delta_.given.push_back(place);
    }
    return v;
  }
  Delta finish() {
    for (Var v : given_) delta_.graph.inputs.push_back(v);
    return std::move(delta_);
  }

 private:
  bool is_new(const Tracer* n) const { return !looks_.known_.contains(n) && !seen_.contains(n); }

  void add_equation(const Tracer* n) {
    if (n->effect && !effects_) {
      const std::string line = at(n->where);
      fail(ErrorKind::tracer,
           "a value that vt::" + std::string(name_of(n->op)) +
               (line.empty() ? line : line.substr(1)) +
               " gives is not known while vt::autobatch records the function: it has effects, "
               "which happen afterwards",
           where_);
    }
    Equation e;
    e.op = n->op;
    e.where = n->where;
    e.params = n->params;
    e.inputs.reserve(n->inputs.size());
    for (const Tensor& in : n->inputs) e.inputs.push_back(var_of(in));
    GraphBody& g = delta_.graph;
    const auto first = static_cast<Var>(g.avals.size());
    e.outputs.reserve(n->avals.size());
    for (const Aval& a : n->avals) e.outputs.push_back(g.fresh(a));
    g.equations.push_back(std::move(e));
    seen_[n] = first;
    delta_.order.push_back(n);
    delta_.first.push_back(first);
  }

  const BatchLooks& looks_;
  int level_;
  bool effects_;
  CallSite where_;
  HashMap<const Tracer*, Var> seen_;  ///< first result; −1: on the way
  HashMap<ValueOfNode, Var> others_;
  Vec<Var> given_;
  Delta delta_;
};

BatchLooks::BatchLooks(Batching strategy, CallSite where, BatchStats& stats, KindCounts& kinds)
    : strategy_(strategy), stats_(stats), kinds_(kinds) {
  joining_.any = strategy != Batching::none;
  joining_.program = mixed(mixed(1, reinterpret_cast<std::uintptr_t>(where.file)),
                           static_cast<std::uint64_t>(where.line));
}

const ValuePlace& BatchLooks::place_of(const Tensor& t) const {
  return places_[known_.at(node_of(t)) + static_cast<std::size_t>(output_of(t))];
}

std::vector<Tensor> BatchLooks::values(std::span<const Tensor> tracers, CallSite where) {
  bool known = true;
  for (const Tensor& t : tracers) known = known && known_.contains(node_of(t));
  if (!known && run && run->is_running()) return run->wait(tracers, where);
  return compute(tracers, where);
}

std::vector<Tensor> BatchLooks::compute(std::span<const Tensor> tracers, CallSite where) {
  struct Clock {
    double& seconds;
    double since = looking::now();
    ~Clock() { seconds += looking::now() - since; }
  } const clock{seconds};
  compute_missing(tracers, where);
  std::vector<Tensor> arrays;
  HashMap<ValueOfNode, BufferRef> buffers;
  for (const Tensor& t : tracers) {
    const Tensor& array = place_of(t).array;
    if (!answers_.contains(value_of_node(t)) && buffers.emplace(value_of_node(array), {}).fresh)
      arrays.push_back(array);
  }
  evaluate(arrays, where);
  for (const Tensor& array : arrays) buffers[value_of_node(array)] = value_of(array, where);
  std::vector<Tensor> all;
  for (const Tensor& t : tracers) {
    const auto known = answers_.find(value_of_node(t));
    if (known != answers_.end()) {
      all.push_back(known->second);
      continue;
    }
    const ValuePlace& place = place_of(t);
    BufferRef buffer = buffers.at(value_of_node(place.array));
    if (place.row >= 0) buffer = looking::row_of(buffer, place, aval_of(t).bytes());
    all.push_back(from_buffer(std::move(buffer), aval_of(t)));
    answers_.emplace(value_of_node(t), all.back());
  }
  return all;
}

// Operands of nodes that wait to be computed are kept, whoever else has let go of them.
void BatchLooks::note_readers(const Delta& delta) {
  HashMap<const Tracer*, bool> now;
  for (const Tracer* n : delta.order) now.emplace(n, true);
  const int level = delta.order.back()->level;
  const auto& nodes = thread_state().scopes[static_cast<std::size_t>(level) - 1].nodes;
  for (; seen_ < nodes.size(); ++seen_) {
    const Tracer* const n = nodes[seen_];
    if (now.contains(n) || known_.contains(n)) continue;
    for (const Tensor& in : n->inputs)
      if (node_of(in)->level == level) needed_.emplace(node_of(in), true);
  }
}

void BatchLooks::compute_missing(std::span<const Tensor> tracers, CallSite where) {
  if (tracers.empty()) return;
  const int level = node_of(tracers[0])->level;
  Collector collector(*this, level, false, where);
  for (const Tensor& t : tracers) collector.add(node_of(t));
  Delta delta = collector.finish();
  if (delta.order.empty()) return;
  note_readers(delta);
  HashMap<const Tracer*, bool> asked;
  for (const Tensor& t : tracers) asked.emplace(node_of(t), true);
  // What the function can still read: it holds it, or a node does that waits.
  Vec<bool> keep(delta.order.size(), false);
  for (std::size_t i = 0; i < keep.size(); ++i) {
    const Tracer* const n = delta.order[i];
    keep[i] = n->level == level && (n->references.load(std::memory_order_acquire) > 1 ||
                                    needed_.contains(n) || asked.contains(n));
    for (std::size_t k = 0; keep[i] && k < n->avals.size(); ++k)
      delta.graph.outputs.push_back(delta.first[i] + static_cast<Var>(k));
  }

  debug_check(delta.graph, "vt::autobatch");
  const Span span("transform", "autobatch");
  const NodeGraph nodes = find_nodes(std::move(delta.graph), joining_, looking::given_of(delta));
  Vec<std::size_t> kept;
  Vec<Var> wanted;
  for (std::size_t i = keep.size(); i-- > 0;) {
    if (!keep[i]) continue;
    const Tracer* const n = delta.order[i];
    // A row of an array that all share is read again, as a row; the array is kept.
    const Source& source = nodes.sources[delta.first[i]];
    const bool shared = source.kind == Source::Kind::shared;
    Var array = shared ? nodes.row_reads[source.var].array : -1;
    if (shared && n->op == Op::slice)
      array = nodes.equation(nodes.makers[delta.first[i]]).inputs[0];
    if (array >= 0 && !asked.contains(n)) {
      const auto k = std::upper_bound(delta.first.begin(), delta.first.end(), array);
      if (nodes.makers[array] >= 0)
        keep[static_cast<std::size_t>(k - delta.first.begin()) - 1] = true;
      continue;
    }
    kept.push_back(i);
    for (std::size_t k = 0; k < n->avals.size(); ++k)
      wanted.push_back(delta.first[i] + static_cast<Var>(k));
  }
  std::vector<ValuePlace> places;
  {
    const looking::OutsideOf outside(level);
    places = emit(delta, nodes, wanted);
  }
  std::size_t next = 0;
  for (std::size_t i : kept) {
    known_.emplace(delta.order[i], places_.size());
    for (std::size_t k = 0; k < delta.order[i]->avals.size(); ++k)
      places_.push_back(std::move(places[next++]));
  }
  ++stats_.looks;
}

std::vector<ValuePlace> BatchLooks::emit(const Delta& delta, const NodeGraph& nodes,
                                         std::span<const Var> wanted) {
  double last = looking::now();
  const auto lap = [&] {
    const double now = looking::now();
    return now - std::exchange(last, now);
  };
  NodeSchedule schedule = schedule_nodes(nodes, strategy_);
  stats_.nodes += nodes.recorded;
  stats_.cells += nodes.nodes.size();
  stats_.groups += schedule.groups();
  stats_.signatures += nodes.signatures.size();
  kinds_.add(nodes, schedule);
  stats_.schedule_seconds += lap();
  std::vector<ValuePlace> places =
      emit_places(nodes, std::move(schedule), delta.inputs, delta.given, wanted, stats_);
  stats_.emit_seconds += lap();
  return places;
}

Delta BatchLooks::rest(std::span<const Tensor> results) {
  const int level = current_level();
  Collector collector(*this, level, true, {});
  for (const Tracer* n : thread_state().scopes.back().nodes)
    if (n->effect) collector.add(n);
  Vec<Var> outputs;
  for (const Tensor& t : results) {
    if (node_of(t)->level != level || known_.contains(node_of(t))) continue;
    collector.add(node_of(t));
    outputs.push_back(collector.var_of(t));
  }
  Delta delta = collector.finish();
  delta.graph.outputs = std::move(outputs);
  debug_check(delta.graph, "vt::autobatch");
  return delta;
}

std::vector<Tensor> BatchLooks::finish(Delta rest, std::span<const Tensor> results) {
  const NodeGraph nodes = find_nodes(std::move(rest.graph), joining_, looking::given_of(rest));
  const std::vector<ValuePlace> places = emit(rest, nodes, nodes.graph.outputs);
  std::vector<Tensor> all;
  std::size_t next = 0;
  for (const Tensor& t : results) {
    if (node_of(t)->level == 0) all.push_back(t);
    else
      all.push_back((known_.contains(node_of(t)) ? place_of(t) : places[next++])
                        .value(aval_of(t), node_of(t)->where));
  }
  return all;
}

}  // namespace vt::detail::autobatching
