// Emission: where the value of each node lies, and how the operands of a group are brought
// together.
#include "emit.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "../../trace/base/convert.hpp"
#include "../../trace/base/hash_map.hpp"
#include "../../trace/base/locks.hpp"
#include "../../trace/base/recent_map.hpp"
#include "../../trace/ir/called_function.hpp"
#include "../../trace/record/node.hpp"
#include "../../trace/record/scope.hpp"
#include "experience.hpp"

namespace vt::detail::autobatching {

namespace emission {

/// The function that a node calls. Kept for later minibatches, with all that transforms and
/// compilers make of it.
struct Called {
  GraphRef body;
  CalledRef function;
};

/// The equations of nodes of this signature.
GraphBody body_of(const GraphBody& g, const NodeGraph& nodes, const Signature& s) {
  GraphBody body;
  const std::span<const std::int32_t> equations = nodes.equations_of(s.node);
  const std::span<const std::int32_t> wires = nodes.wires_of(s.node);
  Vec<Var> inputs(nodes.operands_of(s.node).size(), -1), results;
  const auto operand = [&](Var v, std::int32_t wire) {
    if (wire < 0) return results[-1 - wire];
    if (inputs[wire] < 0) inputs[wire] = body.fresh(g.aval(v));
    return inputs[wire];
  };
  const std::int32_t* wire = wires.data();
  for (std::int32_t k : equations) {
    Equation own = g.equations[k];
    for (Var& v : own.inputs) v = operand(v, *wire++);
    for (Var& v : own.outputs) {
      v = body.fresh(g.aval(v));
      results.push_back(v);
    }
    body.equations.push_back(std::move(own));
  }
  for (Var v : inputs) body.inputs.push_back(v);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (s.result[i] >= 0) body.outputs.push_back(results[i]);
  return body;
}

/// What a signature of one call calls; else null.
const CallParams* called_by(const GraphBody& g, const NodeGraph& nodes, const Signature& s) {
  const Equation& e = g.equations[nodes.equations_of(s.node)[0]];
  const auto* p = e.params ? e.params->get_if<CallParams>() : nullptr;
  return p && e.op == Op::call && !p->rule ? p : nullptr;
}

/// The functions of all signatures that have run.
class Functions {
 public:
  static Functions& all() {
    static Functions* const all = new Functions;  // values may be asked for while the process ends
    return *all;
  }
  Called of(const GraphBody& g, const NodeGraph& nodes, const Signature& s) {
    if (const CallParams* p = called_by(g, nodes, s)) return {p->body, p->function};
    return of(body_of(g, nodes, s));
  }
  Called of(GraphBody body) {
    const std::size_t hash = hash_of(body);
    Vec<SmallVec<Called, 1>> gone;
    const std::lock_guard lock(mutex_);
    if (const Called* known = find(hash, body)) return *known;
    SmallVec<Called, 1>* alike = known_.find(hash);
    if (!alike) alike = known_.emplace(hash, {}, gone);
    std::string name(name_of(body.equations[0].op));
    if (body.equations.size() > 1) name += " … " + std::string(name_of(body.equations.back().op));
    alike->push_back(
        {std::make_shared<const GraphBody>(std::move(body)), called_function(std::move(name))});
    return alike->back();
  }
  bool knows(const GraphBody& g, const NodeGraph& nodes, const Signature& s) {
    if (called_by(g, nodes, s)) return true;
    const GraphBody body = body_of(g, nodes, s);
    const std::lock_guard lock(mutex_);
    return find(hash_of(body), body) != nullptr;
  }

 private:
  const Called* find(std::size_t hash, const GraphBody& body) {
    if (const SmallVec<Called, 1>* alike = known_.find(hash))
      for (const Called& c : *alike)
        if (equal(*c.body, body)) return &c;
    return nullptr;
  }
  Mutex mutex_;
  RecentMap<std::size_t, SmallVec<Called, 1>> known_{1024};
};

Tensor rows_of(std::vector<Tensor> arrays, Vec<RowRun> runs, CallSite where) {
  if (runs.size() == 1 && runs[0].first == 0 && runs[0].count == arrays[0].dim(0)) return arrays[0];
  return emit(Op::rows, make_params(RowsParams{std::move(runs)}), arrays, where);
}
Tensor with_shape(const Tensor& t, Shape shape, CallSite where) {
  return emit(Op::reshape, make_params(ShapeParams{std::move(shape)}), {t}, where);
}

class Emitter {
 public:
  Emitter(const NodeGraph& nodes, NodeSchedule& schedule, std::span<const Tensor> inputs,
          std::span<const ValuePlace> given, BatchStats& stats)
      : g_(nodes.graph),
        nodes_(nodes),
        schedule_(schedule),
        stats_(stats),
        shared_(g_.avals.size()),
        as_row_(g_.avals.size(), -1),
        row_(nodes.nodes.size(), -1),
        array_(nodes.nodes.size(), -1) {
    const GraphBody& g = g_;
    for (std::size_t i = 0; i < inputs.size(); ++i) shared_[g.inputs[i]] = inputs[i];
    if (given.empty()) return;
    given_.resize(g.avals.size(), {});
    HashMap<ValueOfNode, std::int32_t> known;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const Tensor& array = given[i].array;
      const auto made =
          known.emplace(value_of_node(array), static_cast<std::int32_t>(arrays_.size()));
      if (made.fresh) arrays_.push_back(array);
      given_[g.inputs[inputs.size() + i]] = {made.entry->second, given[i].row};
    }
  }

  void run() {
    find_sums();
    order_nodes();
    gather_rows_of_shared();
    for (std::size_t k = 0; k < schedule_.groups(); ++k) emit_group(k);
  }
  std::vector<Tensor> results() {
    std::vector<Tensor> all;
    for (Var v : g_.outputs) all.push_back(tensor_of(v));
    return all;
  }
  ValuePlace where_is(Var v) {
    if (nodes_.sources[v].kind == Source::Kind::shared)
      return {shared_tensor(nodes_.sources[v].var), -1};
    if (!nodes_.forms.empty())
      if (const auto [rows, axis] = nodes_.forms[v];
          rows >= 0 && nodes_.sources[rows].kind != Source::Kind::shared) {
        bool outermost = true;
        for (int d = 0; d < axis; ++d) outermost = outermost && g_.aval(v).shape[d] == 1;
        const Place p = outermost ? place_of(rows) : Place{};
        if (outermost) return {arrays_[p.array], p.row, nodes_.rows_of(rows), axis};
      }
    const Place p = place_of(v);
    return {arrays_[p.array], p.row};
  }

 private:
  /// Where a value lies.
  struct Place {
    std::int32_t array = -1;
    std::int64_t row = 0;
  };

  const Equation& equation_of(std::int32_t node) const {
    return g_.equations[nodes_.equations_of(node)[0]];
  }
  const Signature& signature_of(std::int32_t node) const {
    return nodes_.signatures[nodes_.nodes[node].signature];
  }
  bool is_shared(Var v) const { return nodes_.sources[v].kind == Source::Kind::shared; }
  CallSite line_of(std::int32_t node) const { return equation_of(node).where; }

  // Which sum alone reads a large term, as an outer product of a gradient: it is added up where it
  // is computed. Small ones are added in the order of recording.
  void find_sums() {
    constexpr std::size_t large = 4096;
    const auto is_sum = [&](std::size_t n) {
      return signature_of(static_cast<std::int32_t>(n)).kind == Signature::Kind::sum;
    };
    for (std::size_t n = 0; n < nodes_.nodes.size(); ++n) {
      if (!is_sum(n)) continue;
      for (Var v : nodes_.operands_of(static_cast<std::int32_t>(n)))
        if (nodes_.sources[v].kind == Source::Kind::node && g_.aval(v).bytes() >= large &&
            !nodes_.is_ragged(v)) {
          if (sum_of_.empty()) sum_of_.resize(g_.avals.size(), -1);
          sum_of_[v] = sum_of_[v] == -1 ? static_cast<std::int32_t>(n) : -2;
        }
    }
    if (sum_of_.empty()) return;
    for (std::size_t n = 0; n < nodes_.nodes.size(); ++n)
      for (Var v : nodes_.operands_of(static_cast<std::int32_t>(n)))
        if (!is_sum(n)) sum_of_[v] = -2;
    for (Var v : g_.outputs) sum_of_[v] = -2;
  }
  /// The sum that all nodes of a group give their result to, and nothing else reads; −1: none.
  std::int32_t sum_of_group(std::span<const std::int32_t> group, std::size_t result) const {
    if (sum_of_.empty()) return -1;
    std::int32_t sum = -1;
    for (std::int32_t n : group) {
      std::size_t r = result;
      const std::int32_t* equation = nodes_.equations_of(n).data();
      while (r >= g_.equations[*equation].outputs.size())
        r -= g_.equations[*equation++].outputs.size();
      const std::int32_t of = sum_of_[g_.equations[*equation].outputs[r]];
      if (of < 0 || (sum >= 0 && of != sum)) return -1;
      sum = of;
    }
    return sum;
  }

  // Nodes that go on longest first, so that those that end leave the others side by side; then in
  // the order in which their largest operands lie.
  void order_nodes() {
    const std::size_t count = nodes_.nodes.size();
    Vec<std::int32_t> height(count, 0);
    for (std::size_t n = count; n-- > 0;)
      for (Var v : nodes_.operands_of(static_cast<std::int32_t>(n)))
        if (const Source& s = nodes_.sources[v]; s.kind == Source::Kind::node)
          height[s.node] = std::max(height[s.node], height[n] + 1);
    Vec<std::int32_t> group_of(count);
    struct Keyed {
      std::int64_t key;
      std::int32_t node;
    };
    std::vector<Keyed> keyed;
    for (std::size_t k = 0; k < schedule_.groups(); ++k) {
      const std::span<std::int32_t> group = schedule_.group(k);
      const Signature& s = signature_of(group[0]);
      if (group.size() > 1 && s.kind == Signature::Kind::op) {
        const int largest = largest_operand(group[0], s);
        keyed.clear();
        for (std::int32_t n : group) {
          std::int64_t key = -1 - std::int64_t{height[n]};
          if (largest >= 0) {
            const Source& from = nodes_.sources[nodes_.operands_of(n)[largest]];
            if (from.kind == Source::Kind::node)
              key = (std::int64_t{group_of[from.node]} << 32) + row_[from.node];
            else if (from.kind == Source::Kind::given)
              key =
                  ((static_cast<std::int64_t>(schedule_.groups()) + given_[from.var].array) << 32) +
                  given_[from.var].row;
          }
          keyed.push_back({key, n});
        }
        std::stable_sort(keyed.begin(), keyed.end(),
                         [](const Keyed& a, const Keyed& b) { return a.key < b.key; });
        for (std::size_t i = 0; i < group.size(); ++i) group[i] = keyed[i].node;
      }
      std::int64_t row = 0;
      for (const std::int32_t n : group) {
        row_[n] = static_cast<std::int32_t>(row);
        row += nodes_.rows_of_node(n);
        group_of[n] = static_cast<std::int32_t>(k);
      }
    }
  }
  int largest_operand(std::int32_t node, const Signature& s) const {
    const std::span<const Var> operands = nodes_.operands_of(node);
    int largest = -1;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (s.shared[i] >= 0) continue;
      if (largest < 0 || g_.aval(operands[i]).bytes() > g_.aval(operands[largest]).bytes())
        largest = static_cast<int>(i);
    }
    return largest;
  }

  /// Of all rows that are read of an array whose first axes count them.
  static std::uint64_t reads_of(const RowRead& read) {
    return static_cast<std::uint64_t>(read.array) << 8 | static_cast<std::uint64_t>(read.axes);
  }
  // Rows of shared arrays, as of an embedding: all that any node reads, in the order in which they
  // are read, by one equation for each array.
  void gather_rows_of_shared() {
    struct Reads {
      Var array;
      int axes;
      Vec<RowRun> runs;
    };
    Vec<Reads> reads;
    HashMap<std::uint64_t, std::size_t> known;
    const auto add = [&](Var v) {
      const RowRead& read = nodes_.row_reads[v];
      if (!is_shared(v) || read.array < 0) return;
      const auto made = known.emplace(reads_of(read), reads.size());
      if (made.fresh) reads.push_back({read.array, read.axes, {}});
      Vec<RowRun>& runs = reads[made.entry->second].runs;
      if (!runs.empty() && runs.back().first + runs.back().count == read.row) ++runs.back().count;
      else runs.push_back({0, read.row, 1});
    };
    for (std::size_t k = 0; k < schedule_.groups(); ++k) {
      const std::span<const std::int32_t> group = std::as_const(schedule_).group(k);
      const Signature& s = signature_of(group[0]);
      if (s.kind == Signature::Kind::sum || s.kind == Signature::Kind::rows)
        for (std::int32_t n : group)
          for (Var v : nodes_.operands_of(n)) add(v);
      for (std::size_t i = 0; s.kind == Signature::Kind::op && i < s.shared.size(); ++i)
        for (std::int32_t n : group)
          if (s.shared[i] < 0) add(nodes_.operands_of(n)[i]);
    }
    for (Reads& r : reads) {
      Tensor array = shared_tensor(r.array);
      if (r.axes > 1) {
        Shape shape{1};
        for (int d = 0; d < array.rank(); ++d) {
          if (d < r.axes) shape[0] *= array.dim(d);
          else shape.push_back(array.dim(d));
        }
        array = with_shape(array, std::move(shape), {});
      }
      next_read_.emplace(reads_of({r.array, 0, r.axes}),
                         Place{static_cast<std::int32_t>(arrays_.size()), 0});
      arrays_.push_back(rows_of({array}, std::move(r.runs), {}));
    }
  }

  Tensor shared_tensor(Var v) {
    Tensor& known = shared_[v];
    if (known.defined()) return known;
    const Equation& e = g_.equations[nodes_.makers[v]];
    std::vector<Tensor> operands;
    for (Var in : e.inputs) operands.push_back(shared_tensor(nodes_.sources[in].var));
    repeat(g_, e, operands, [&](Var out, Tensor t) { shared_[out] = std::move(t); });
    return shared_[v];
  }

  /// Where the value of an operand of a node lies, that each node has its own of.
  Place place_of(Var v) {
    const Source& s = nodes_.sources[v];
    if (s.kind == Source::Kind::node)
      return {array_[s.node] + signature_of(s.node).result[s.output], row_[s.node]};
    if (s.kind == Source::Kind::given) return given_[s.var];
    if (const RowRead& read = nodes_.row_reads[v]; read.array >= 0) {
      Place& next = next_read_.find(reads_of(read))->second;
      return {next.array, next.row++};
    }
    std::int32_t& array = as_row_[v];
    if (array < 0) {
      const Tensor t = shared_tensor(v);
      Shape shape{1};
      shape.append(t.shape().begin(), t.shape().end());
      array = static_cast<std::int32_t>(arrays_.size());
      arrays_.push_back(with_shape(t, std::move(shape), {}));
    }
    return {array, 0};
  }

  /// Values side by side.
  class Gathered {
   public:
    explicit Gathered(Emitter& e) : e_(e) {}
    void add(Place p, std::int64_t count = 1) {
      count_ += static_cast<std::uint64_t>(count);
      if (!runs_.empty() && at_ == p.array && runs_.back().first + runs_.back().count == p.row) {
        runs_.back().count += count;
        return;
      }
      at_ = p.array;
      auto known = operands_.find(p.array);
      if (known == operands_.end()) {
        known = operands_.emplace(p.array, static_cast<std::int32_t>(arrays_.size())).entry;
        arrays_.push_back(e_.arrays_[p.array]);
      }
      runs_.push_back({known->second, p.row, count});
    }
    Tensor tensor(CallSite where) {
      (runs_.size() == 1 ? e_.stats_.rows_in_place : e_.stats_.rows_moved) += count_;
      return rows_of(std::move(arrays_), std::move(runs_), where);
    }

   private:
    Emitter& e_;
    std::vector<Tensor> arrays_;
    HashMap<std::int32_t, std::int32_t> operands_;
    Vec<RowRun> runs_;
    std::int32_t at_ = -1;
    std::uint64_t count_ = 0;
  };

  void emit_group(std::size_t k) {
    const std::span<const std::int32_t> group = std::as_const(schedule_).group(k);
    const Signature& s = signature_of(group[0]);
    const WhereScope line(line_of(group[0]));
    switch (s.kind) {
      case Signature::Kind::op: return emit_call(group, s);
      case Signature::Kind::sum: return emit_sums(group);
      case Signature::Kind::fold: return emit_folds(group);
      case Signature::Kind::rows: return emit_rows(group);
      case Signature::Kind::alone: return emit_alone(group[0]);
    }
  }

  void emit_call(std::span<const std::int32_t> group, const Signature& s) {
    const CallSite where = line_of(group[0]);
    Called f = Functions::all().of(g_, nodes_, s);
    BatchedCallParams params;
    params.body = std::move(f.body);
    params.function = std::move(f.function);
    params.lanes.count = 0;
    for (std::int32_t n : group) params.lanes.count += nodes_.rows_of_node(n);
    params.summed.resize(params.body->outputs.size(), false);
    Vec<std::int32_t> sums(params.body->outputs.size(), -1);
    for (std::size_t i = 0; i < s.result.size(); ++i) {
      if (s.result[i] < 0) continue;
      const std::size_t r = s.result[i];
      sums[r] = sum_of_group(group, i);
      params.summed[r] = sums[r] >= 0;
    }
    std::vector<Tensor> operands;
    for (std::size_t i = 0; i < s.shared.size(); ++i) {
      params.lanes.mapped.push_back(s.shared[i] < 0);
      if (s.shared[i] >= 0) {
        operands.push_back(shared_tensor(s.shared[i]));
        continue;
      }
      if (const int same = same_operand(group, s, i); same >= 0) {
        operands.push_back(operands[same]);
        continue;
      }
      Gathered all(*this);
      for (std::int32_t n : group) {
        const Var v = nodes_.operands_of(n)[i];
        const Place place = place_of(v);
        if (nodes_.is_ragged(v)) all.add(place, nodes_.rows_of(v));
        else
          for (std::int64_t k = nodes_.rows_of_node(n); k-- > 0;) all.add(place);
      }
      operands.push_back(all.tensor(where));
    }
    for (std::size_t r = 0; r < sums.size(); ++r)
      if (sums[r] >= 0)
        sum_of_array_.emplace(static_cast<std::int32_t>(arrays_.size() + r), sums[r]);
    put(group, emit_all(Op::batched_call, make_params(std::move(params)), operands, where));
  }
  // The gathered operand before operand i that is the same in all nodes, as in x · x; rows of
  // shared arrays are placed one by one.
  int same_operand(std::span<const std::int32_t> group, const Signature& s, std::size_t i) const {
    for (std::size_t j = 0; j < i; ++j) {
      bool same = s.shared[j] < 0;
      for (std::int32_t n : group) {
        const std::span<const Var> own = nodes_.operands_of(n);
        same = same && own[j] == own[i] && nodes_.row_reads[own[i]].array < 0;
        if (!same) break;
      }
      if (s.shared[j] < 0 && s.name != 0) {  // not by chance, as where there are few nodes
        constexpr std::uint64_t alike = 1, apart = 2;
        const std::uint64_t name = mixed(mixed(s.name, j), i);
        same = Experience::all().add(name, same ? alike : apart) == alike;
      }
      if (same) return static_cast<int>(j);
    }
    return -1;
  }

  void emit_rows(std::span<const std::int32_t> group) {
    const Equation& first = equation_of(group[0]);
    if (first.op == Op::iota) return count_rows(group);
    if (!nodes_.is_ragged(first.outputs[0])) {
      for (const std::int32_t n : group) join_rows(n);
      return;
    }
    const Aval& row = g_.aval(first.outputs[0]);
    Gathered all(*this);
    for (const std::int32_t n : group) {
      const auto& runs = equation_of(n).as<RowsParams>().runs;
      for (Var v : nodes_.operands_of(n)) {
        if (runs.empty()) {
          add_rows(all, v, row);
          continue;
        }
        const Place p = place_of(v);
        all.add({p.array, p.row + runs[0].first}, runs[0].count);
      }
    }
    put(group, {all.tensor(line_of(group[0]))});
  }
  /// All rows of a value, which have the elements of `row`. Returns how many they are.
  std::int64_t add_rows(Gathered& all, Var v, const Aval& row) {
    const std::int64_t elements = row.elements(),
                       count = elements ? g_.aval(v).elements() / elements * nodes_.rows_of(v) : 1;
    all.add(in_rows(place_of(v), row), count);
    return count;
  }
  /// The same place in an array of such rows.
  Place in_rows(Place p, const Aval& row) {
    const auto is_so = [&](const Tensor& array) {
      return std::equal(array.shape().begin() + 1, array.shape().end(), row.shape.begin(),
                        row.shape.end());
    };
    const Tensor& array = arrays_[p.array];
    if (is_so(array)) return p;
    Shape shape{row.elements() ? array.size() / row.elements() : array.dim(0)};
    shape.append(row.shape.begin(), row.shape.end());
    const std::int64_t each = shape[0] / array.dim(0);
    std::int32_t& known = reshaped_.emplace(p.array, -1).entry->second;
    if (known < 0 || !is_so(arrays_[known])) {
      known = static_cast<std::int32_t>(arrays_.size());
      arrays_.push_back(with_shape(array, std::move(shape), {}));
    }
    return {known, p.row * each};
  }
  // As one value, in an array of its own: how many rows there are differs.
  void join_rows(std::int32_t node) {
    const Aval& row = g_.aval(equation_of(node).inputs[0]);
    Gathered all(*this);
    for (Var v : nodes_.operands_of(node)) add_rows(all, v, row);
    const Aval& aval = g_.aval(equation_of(node).outputs[0]);
    Shape shape{1};
    shape.append(aval.shape.begin(), aval.shape.end());
    const CallSite where = line_of(node);
    Tensor joined = with_shape(all.tensor(where), std::move(shape), where);
    put({&node, 1}, {std::move(joined)});
    row_[node] = 0;
  }
  // 0, 1, 2 …: the first rows of an array.
  void count_rows(std::span<const std::int32_t> group) {
    const Aval& row = g_.aval(equation_of(group[0]).outputs[0]);
    std::int64_t most = 0;
    for (const std::int32_t n : group) most = std::max(most, nodes_.rows_of_node(n));
    Vec<std::int64_t> numbers;
    for (std::int64_t k = 0; k < most; ++k) numbers.push_back(k);
    Aval aval = row;
    aval.shape = Shape{most};
    BufferRef buffer = allocate(aval.bytes(), "row numbers");
    convert_elements(numbers.data(), DType::i64, buffer->data, row.dtype, numbers.size());
    aval.shape.append(row.shape.begin(), row.shape.end());
    put(group, {from_buffer(std::move(buffer), aval)});
    for (const std::int32_t n : group) row_[n] = 0;
  }

  // Halves of the rows with one another. A row in the middle meets itself, which changes nothing.
  void emit_folds(std::span<const std::int32_t> group) {
    const Equation& e = equation_of(group[0]);
    const Aval& row = g_.aval(e.outputs[0]);
    const CallSite where = line_of(group[0]);
    GraphBody body;
    Equation& both = body.equations.emplace_back();
    both.op = e.op;
    both.where = where;
    both.inputs = {body.fresh(row), body.fresh(row)};
    both.outputs = {body.fresh(row)};
    body.inputs = {0, 1};
    body.outputs = {2};
    const Called f = Functions::all().of(std::move(body));
    Vec<std::int64_t> left;
    Vec<Place> places;
    for (const std::int32_t n : group) {
      const Var v = nodes_.operands_of(n)[0];
      left.push_back(nodes_.rows_of(v));
      places.push_back(in_rows(place_of(v), row));
    }
    for (;;) {
      Gathered first(*this), second(*this);
      const auto result = static_cast<std::int32_t>(arrays_.size());
      std::int64_t count = 0;
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (left[i] == 1) continue;
        const std::int64_t half = (left[i] + 1) / 2;
        first.add(places[i], half);
        second.add({places[i].array, places[i].row + left[i] - half}, half);
        places[i] = {result, count};
        left[i] = half;
        count += half;
      }
      if (count == 0) break;
      BatchedCallParams params;
      params.body = f.body;
      params.function = f.function;
      params.lanes.count = count;
      params.lanes.mapped = {true, true};
      params.summed = {false};
      const Tensor operands[2] = {first.tensor(where), second.tensor(where)};
      arrays_.push_back(emit(Op::batched_call, make_params(std::move(params)), operands, where));
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      array_[group[i]] = places[i].array;
      row_[group[i]] = static_cast<std::int32_t>(places[i].row);
    }
  }

  void emit_sums(std::span<const std::int32_t> group) {
    Gathered all(*this);
    const Aval& row = g_.aval(equation_of(group[0]).outputs[0]);
    RowsParams into{{}, {static_cast<std::int64_t>(group.size())}};
    bool any = false;
    for (std::size_t i = 0; i < group.size(); ++i)
      for (Var v : nodes_.operands_of(group[i])) {
        if (is_partial(v)) continue;
        any = true;
        for (std::int64_t k = add_rows(all, v, row); k-- > 0;)
          into.runs.push_back({0, static_cast<std::int64_t>(i), 1});
      }
    const CallSite where = line_of(group[0]);
    if (any) {
      const Tensor terms = all.tensor(where);
      put(group, emit_all(Op::rows_add, make_params(std::move(into)), {&terms, 1}, where));
    }
    for (std::int32_t n : group) add_partial_sums(n, any);
  }
  bool is_partial(Var v) const {
    const Source& s = nodes_.sources[v];
    return s.kind == Source::Kind::node &&
           sum_of_array_.contains(array_[s.node] + signature_of(s.node).result[s.output]);
  }
  // A sum of which parts have been made has an array of its own.
  void add_partial_sums(std::int32_t node, bool any) {
    Tensor total;
    const Aval& aval = g_.aval(equation_of(node).outputs[0]);
    const CallSite where = line_of(node);
    const auto add = [&](const Tensor& t) {
      total = total.defined() ? emit(Op::add, {}, {total, t}, where) : t;
    };
    for (const auto& [array, sum] : sum_of_array_)
      if (sum == node) add(arrays_[array]);
    if (!total.defined()) return;
    if (any) add(ValuePlace{arrays_[array_[node]], row_[node]}.value(aval, where));
    Shape shape{1};
    shape.append(aval.shape.begin(), aval.shape.end());
    array_[node] = static_cast<std::int32_t>(arrays_.size());
    row_[node] = 0;
    arrays_.push_back(with_shape(total, std::move(shape), where));
  }

  void emit_alone(std::int32_t node) {
    const Equation& e = equation_of(node);
    std::vector<Tensor> operands;
    for (Var v : nodes_.operands_of(node)) operands.push_back(tensor_of(v));
    array_[node] = static_cast<std::int32_t>(arrays_.size());
    for (std::size_t i = 0; i < e.outputs.size(); ++i) arrays_.emplace_back();
    std::size_t next = array_[node];
    repeat(g_, e, operands, [&](Var out, Tensor t) {
      const std::size_t i = std::find(e.outputs.begin(), e.outputs.end(), out) - e.outputs.begin();
      Shape shape{1};
      shape.append(t.shape().begin(), t.shape().end());
      arrays_[next + i] = with_shape(t, std::move(shape), e.where);
    });
    stats_.unbatched.push_back(describe(e.op, e.params) + at_line(e.where));
  }
  static std::string at_line(CallSite where) { return vt::detail::at(where); }

  void put(std::span<const std::int32_t> group, const SmallVec<Tensor, 1>& results) {
    for (std::int32_t n : group) array_[n] = static_cast<std::int32_t>(arrays_.size());
    for (const Tensor& t : results) arrays_.push_back(t);
  }

  /// One value by itself.
  Tensor tensor_of(Var v) {
    const Source& s = nodes_.sources[v];
    return where_is(v).value(g_.aval(v),
                             s.kind == Source::Kind::node ? line_of(s.node) : CallSite{});
  }

  const GraphBody& g_;
  const NodeGraph& nodes_;
  NodeSchedule& schedule_;
  BatchStats& stats_;
  RecycledVec<Tensor> shared_;  ///< per Var, as far as they are known
  Vec<std::int32_t> as_row_;    ///< per Var: the array that holds a shared value as its one row
  Vec<std::int32_t> row_;       ///< per node: its row in the arrays of its group
  Vec<Place> given_;            ///< per Var: where a given value lies, if there are any
  Vec<std::int32_t> array_;     ///< per node: the first array of its group
  /// Per array and axes that count rows: where the next row that is read of it lies.
  HashMap<std::uint64_t, Place> next_read_;
  HashMap<std::int32_t, std::int32_t> reshaped_;  ///< arrays as arrays of other rows
  std::vector<Tensor> arrays_;
  Vec<std::int32_t> sum_of_;  ///< per Var: the sum that reads it, if nothing else does; or empty
  HashMap<std::int32_t, std::int32_t> sum_of_array_;  ///< of arrays that are parts of a sum
};

}  // namespace emission

Tensor ValuePlace::value(const Aval& aval, CallSite where) const {
  if (row < 0) return array;
  return emission::with_shape(emission::rows_of({array}, {{0, row, rows}}, where), aval.shape,
                              where);
}

std::size_t new_functions(const NodeGraph& nodes) {
  std::size_t count = 0;
  for (const Signature& s : nodes.signatures)
    count +=
        s.kind == Signature::Kind::op && !emission::Functions::all().knows(nodes.graph, nodes, s);
  return count;
}

std::vector<Tensor> emit_schedule(const NodeGraph& nodes, NodeSchedule schedule,
                                  std::span<const Tensor> inputs, BatchStats& stats) {
  emission::Emitter emitter(nodes, schedule, inputs, {}, stats);
  emitter.run();
  return emitter.results();
}

std::vector<ValuePlace> emit_places(const NodeGraph& nodes, NodeSchedule schedule,
                                    std::span<const Tensor> inputs,
                                    std::span<const ValuePlace> given, std::span<const Var> wanted,
                                    BatchStats& stats) {
  emission::Emitter emitter(nodes, schedule, inputs, given, stats);
  emitter.run();
  std::vector<ValuePlace> places;
  for (Var v : wanted) places.push_back(emitter.where_is(v));
  return places;
}

}  // namespace vt::detail::autobatching
