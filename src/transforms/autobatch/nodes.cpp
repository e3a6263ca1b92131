// Finding nodes: equal shared values, rows of arrays, long sums, and signatures.
#include "nodes.hpp"

#include <algorithm>
#include <utility>

#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "experience.hpp"
#include "join.hpp"
#include "numbering.hpp"

namespace vt::detail::autobatching {

namespace finding {

std::uint64_t hash_of(const Aval& a) {
  std::uint64_t h = mixed(static_cast<std::uint64_t>(a.dtype), a.weak);
  for (std::int64_t extent : a.shape) h = mixed(h, static_cast<std::uint64_t>(extent));
  return h;
}

// Sums of fewer terms are batched as additions: those of arrays, which are mostly parts of a
// formula, and those of numbers, which are mostly losses.
constexpr std::int32_t least_terms = 8, least_numbers = 3;
// So many different computations of shared values of one kind are nodes, as those of instances are.
constexpr std::int32_t most_shared = 8;
// Shared operands of more bytes are not copied for each row, if enough nodes have the same one.
constexpr std::size_t worth_sharing = 8 << 10;
constexpr std::int64_t nodes_of_one = 32, few_operands = 4;

/// What a value is made of that is the same for all nodes.
enum class Origin : std::uint8_t {
  constant,  ///< numbers alone
  input,     ///< parameters
  row        ///< rows of them, as words of an embedding, which one instance reads
};

class Finder {
 public:
  Finder(RaggedGraph ragged, std::size_t given) {
    out_.graph = std::move(ragged.graph);
    out_.rows = std::move(ragged.rows);
    out_.forms = std::move(ragged.forms);
    const GraphBody& g = g_;
    shared_inputs_ = g.inputs.size() - given;
    same_.resize(g.avals.size());
    static_.resize(g.avals.size(), false);
    origin_.resize(g.avals.size(), Origin::constant);
    shared_.resize(g.avals.size(), false);
    kinds_.resize(g.equations.size(), -1);
    sum_root_.resize(g.equations.size(), false);
    in_sum_.resize(g.equations.size(), false);
    whole_list_.resize(g.equations.size(), -1);
    out_.sources.resize(g.avals.size());
    out_.row_reads.resize(g.avals.size());
    out_.makers = makers_of(g);
    for (std::size_t v = 0; v < g.avals.size(); ++v) same_[v] = static_cast<Var>(v);
  }

  NodeGraph run(Joining joining) {
    program_ = joining.program;
    number_values();
    find_shared();
    find_sums();
    make_nodes();
    make_kinds();
    if (joining.any)
      join_nodes(out_, kind_, kinds_of_nodes_, joining.program, [&](std::int32_t n) {
        const std::int32_t k = out_.equations_of(n)[0];
        return may_join(equation(k).op) && !takes_any_number(n);
      });
    make_signatures();
    find_results();
    return std::move(out_);
  }

 private:
  const Equation& equation(std::int32_t k) const { return g_.equations[k]; }
  // Calls of one function share their parameters.
  std::uint64_t hash_of_params(const Equation& e) {
    if (!e.params) return 0;
    for (Hashed& h : hashed_)
      if (h.params == e.params.get()) return h.hash;
    Hashed& h = hashed_[next_hashed_++ % std::size(hashed_)];
    h = {e.params.get(), vt::detail::hash_of(e.params)};
    return h.hash;
  }

  // Which of the values that are made of inputs and numbers alone are equal.
  void number_values() {
    Numbering values;
    Vec<std::int32_t> first_of_value;
    for (std::size_t i = 0; i < shared_inputs_; ++i) {
      static_[g_.inputs[i]] = true;
      origin_[g_.inputs[i]] = Origin::input;
    }
    for (std::size_t k = 0; k < g_.equations.size(); ++k) {
      const Equation& e = g_.equations[k];
      if (e.op == Op::concatenate && e.inputs.size() == 1) {
        const Var only = same_[e.inputs[0]], out = e.outputs[0];
        same_[out] = only;
        static_[out] = static_[only];
        origin_[out] = origin_[only];
        continue;
      }
      if (keeps_order(e) || any_of(e.inputs, [&](Var v) { return !static_[same_[v]]; })) continue;
      std::uint64_t h = mixed(static_cast<std::uint64_t>(e.op), hash_of_params(e));
      for (Var v : e.inputs) h = mixed(h, same_[v]);
      const std::int32_t value = values.number(h, [&](std::int32_t n) {
        const Equation& o = equation(first_of_value[n]);
        if (o.op != e.op || o.inputs.size() != e.inputs.size() || !equal(o.params, e.params))
          return false;
        for (std::size_t i = 0; i < e.inputs.size(); ++i)
          if (same_[o.inputs[i]] != same_[e.inputs[i]]) return false;
        // Rows of the same operands may be cut in other ways, and be other numbers of them.
        return out_.rows.empty() || e.outputs.empty() ||
               (out_.rows_of(o.outputs[0]) == out_.rows_of(e.outputs[0]) &&
                out_.is_ragged(o.outputs[0]) == out_.is_ragged(e.outputs[0]) &&
                g_.aval(o.outputs[0]) == g_.aval(e.outputs[0]));
      });
      if (value == static_cast<std::int32_t>(first_of_value.size())) {
        first_of_value.push_back(static_cast<std::int32_t>(k));
        note_row(e);
        if (!e.inputs.empty() && !reads_row(e))
          ++shared_of_kind_[kind_of(static_cast<std::int32_t>(k))];
      }
      const Equation& first = equation(first_of_value[value]);
      const Origin origin = origin_of(first);
      for (std::size_t i = 0; i < e.outputs.size(); ++i) {
        same_[e.outputs[i]] = first.outputs[i];
        static_[e.outputs[i]] = true;
        origin_[e.outputs[i]] = origin;
      }
    }
  }

  // By what a value is made of; of those of arrays and rows, by the rows.
  Origin origin_of(const Equation& e) const {
    Origin most = Origin::constant;
    for (Var v : e.outputs) {
      const RowRead& read = out_.row_reads[v];
      if (read.array >= 0 && is_vector(v)) return Origin::row;
    }
    for (Var v : e.inputs) most = std::max(most, origin_[same_[v]]);
    return most;
  }
  /// A small one. What is larger is shared where it can be: copies cost more than compiling.
  bool is_vector(Var v) const {
    return g_.aval(v).shape.size() <= 1 && g_.aval(v).bytes() <= worth_sharing;
  }

  // What an equation does, whatever it does it to, and to however many rows.
  std::int32_t kind_of(std::int32_t k) {
    std::int32_t& known = kinds_[k];
    if (known >= 0) return known;
    const Equation& e = equation(k);
    const bool moves = moves_rows(e);
    const auto is_ragged = [&](const Equation& of) {
      return !of.outputs.empty() && out_.is_ragged(of.outputs[0]);
    };
    std::uint64_t h = mixed(static_cast<std::uint64_t>(e.op), moves ? 0 : hash_of_params(e));
    h = mixed(h, is_ragged(e));
    const auto values_of = [&](const Equation& of) {
      return moves ? std::span<const Var>(of.outputs) : std::span<const Var>(of.inputs);
    };
    const std::span<const Var> values = values_of(e);
    for (Var v : values) h = mixed(hash_of(g_.aval(v)), mixed(h, out_.is_ragged(v)));
    known = kind_numbers_.number(h, [&](std::int32_t n) {
      const Equation& o = equation(first_of_kind_[n]);
      const std::span<const Var> others = values_of(o);
      if (o.op != e.op || moves_rows(o) != moves || is_ragged(o) != is_ragged(e) ||
          others.size() != values.size() || (!moves && !equal(o.params, e.params)))
        return false;
      for (std::size_t i = 0; i < values.size(); ++i)
        if (!(g_.aval(others[i]) == g_.aval(values[i])) ||
            g_.aval(others[i]).weak != g_.aval(values[i]).weak ||
            out_.is_ragged(others[i]) != out_.is_ragged(values[i]))
          return false;
      return true;
    });
    if (known == static_cast<std::int32_t>(first_of_kind_.size())) {
      first_of_kind_.push_back(k);
      shared_of_kind_.push_back(0);
    }
    return known;
  }

  /// See RaggedGraph.
  bool moves_rows(const Equation& e) const {
    if (e.op == Op::iota) return out_.is_ragged(e.outputs[0]);
    return e.op == Op::rows && (out_.is_ragged(e.outputs[0]) || out_.is_ragged(e.inputs[0]));
  }
  bool folds_rows(const Equation& e) const {
    return e.inputs.size() == 1 && family_of(e.op) == Family::binary;
  }
  bool reads_row(const Equation& e) const {
    return out_.row_reads[e.outputs[0]].array >= 0 || e.op == Op::slice;
  }

  // x[i] and x[i, j] as they are recorded: a slice without its first axes, or by an index that is a
  // number. x[i][j] is one of x, too.
  void note_row(const Equation& e) {
    const Var out = e.outputs.empty() ? -1 : e.outputs[0];
    if (out < 0) return;
    const Shape& row_shape = g_.aval(out).shape;
    const auto is_row_of = [&](Var array, std::size_t axes) {
      const Shape& all = g_.aval(array).shape;
      return all.size() == row_shape.size() + axes &&
             std::equal(row_shape.begin(), row_shape.end(), all.begin() + axes);
    };
    const auto note = [&](Var array, std::int64_t row, int axes) {
      const RowRead& whole = out_.row_reads[array];
      if (whole.array < 0) {
        out_.row_reads[out] = {array, row, axes};
        return;
      }
      std::int64_t rows = 1;
      for (int d = 0; d < axes; ++d) rows *= g_.aval(array).shape[d];
      out_.row_reads[out] = {whole.array, whole.row * rows + row, whole.axes + axes};
    };
    if (e.op == Op::reshape) {
      const std::int32_t k = out_.makers[same_[e.inputs[0]]];
      if (k < 0 || equation(k).op != Op::slice) return;
      const auto& p = equation(k).as<SliceParams>();
      const Var array = same_[equation(k).inputs[0]];
      const Shape& all = g_.aval(array).shape;
      const std::size_t axes = all.size() - std::min(all.size(), row_shape.size());
      if (axes == 0 || !is_row_of(array, axes)) return;
      std::int64_t row = 0;
      for (std::size_t d = 0; d < axes; ++d) {
        if (p.limit[d] != p.start[d] + 1) return;
        row = row * all[d] + p.start[d];
      }
      for (std::size_t d = axes; d < all.size(); ++d)
        if (p.start[d] != 0 || p.limit[d] != all[d]) return;
      note(array, row, static_cast<int>(axes));
      return;
    }
    if (e.op != Op::gather) return;
    const auto& p = e.as<GatherParams>();
    const Var array = same_[e.inputs[0]], index = same_[e.inputs[1]];
    const std::int32_t k = out_.makers[index];
    if (k < 0 || equation(k).op != Op::full || g_.aval(index).elements() != 1 ||
        !is_row_of(array, 1))
      return;
    const Axes leading{0};
    if (p.collapsed_slice_dims != leading || p.start_index_map != leading ||
        !p.operand_batching_dims.empty())
      return;
    for (std::size_t d = 0; d < p.slice_sizes.size(); ++d)
      if (p.slice_sizes[d] != (d == 0 ? 1 : g_.aval(array).shape[d])) return;
    const std::int64_t rows = g_.aval(array).shape[0];
    std::int64_t row = equation(k).as<FullParams>().value.converted(DType::i64).integer;
    if (row < 0 || row >= rows) {
      if (p.mode != IndexMode::clip || rows == 0) return;
      row = std::clamp<std::int64_t>(row, 0, rows - 1);
    }
    note(array, row, 1);
  }

  // Of values that are made of shared ones: a few of one kind are shared too, many are nodes. Which
  // there are of those that instances make (of rows, or as they make others) differs from minibatch
  // to minibatch: they are nodes however few there are, as what is shared is compiled.
  void find_shared() {
    for (std::size_t i = 0; i < shared_inputs_; ++i) shared_[g_.inputs[i]] = true;
    for (std::size_t k = 0; k < g_.equations.size(); ++k) {
      const Equation& e = g_.equations[k];
      if (keeps_order(e) || e.outputs.empty() || static_[e.outputs[0]]) continue;
      const std::size_t kind = kind_of(static_cast<std::int32_t>(k));
      made_by_instances_.resize(std::max(made_by_instances_.size(), kind + 1), false);
      made_by_instances_[kind] = true;
    }
    for (std::size_t k = 0; k < g_.equations.size(); ++k) {
      const Equation& e = g_.equations[k];
      if (keeps_order(e) || e.outputs.empty()) continue;
      const Var first = same_[e.outputs[0]];
      const bool shared =
          first != e.outputs[0] ? shared_[first] : is_shared(e, static_cast<std::int32_t>(k));
      for (Var v : e.outputs) shared_[v] = shared;
    }
  }
  bool is_shared(const Equation& e, std::int32_t k) {
    if (out_.is_ragged(e.outputs[0])) return false;
    if (e.inputs.empty()) return true;
    for (Var v : e.inputs)
      if (!shared_[same_[v]]) return false;
    if (reads_row(e)) return true;
    const std::size_t kind = kind_of(k);
    if (is_small(e) && (origin_[same_[e.outputs[0]]] == Origin::row ||
                        (kind < made_by_instances_.size() && made_by_instances_[kind])))
      return false;
    return shared_of_kind_[kind] <= most_shared;
  }
  bool is_small(const Equation& e) const {
    const auto small = [&](Var v) { return g_.aval(v).bytes() <= worth_sharing; };
    return !any_of(e.inputs, [&](Var v) { return !small(v); }) &&
           !any_of(e.outputs, [&](Var v) { return !small(v); });
  }

  // Chains and trees of additions whose partial sums nobody else reads, nor a value that is equal
  // to one: of equal equations the first alone is computed.
  void find_sums() {
    const std::size_t count = g_.equations.size();
    Vec<std::int32_t> reads(g_.avals.size(), 0), terms(count, 0);
    const auto is_first = [&](const Equation& e) {
      return e.outputs.empty() || same_[e.outputs[0]] == e.outputs[0];
    };
    for (const Equation& e : g_.equations)
      if (is_first(e))
        for (Var v : e.inputs) ++reads[same_[v]];
    for (Var v : g_.outputs) reads[same_[v]] += 2;
    find_whole_lists(reads);
    for (std::size_t k = 0; k < count; ++k) find_sum_of_rows(k, reads);
    // The equation of a partial sum; −1: another value.
    const auto partial = [&](Var v) {
      const Var first = same_[v];
      const std::int32_t k = out_.makers[first];
      return k >= 0 && terms[k] > 0 && reads[first] == 1 ? k : -1;
    };
    for (std::size_t k = 0; k < count; ++k) {
      const Equation& e = g_.equations[k];
      if (e.op != Op::add || folds_rows(e) || shared_[e.outputs[0]] ||
          out_.is_ragged(e.outputs[0]) || !is_first(e))
        continue;
      const Aval& sum = g_.aval(e.outputs[0]);
      if (is_bool(sum.dtype)) continue;
      bool alike = true;
      for (Var v : e.inputs)
        alike = alike && g_.aval(v).dtype == sum.dtype && g_.aval(v).shape == sum.shape;
      if (!alike) continue;
      for (Var v : e.inputs) {
        const std::int32_t part = partial(v);
        terms[k] += part >= 0 ? terms[part] : 1;
      }
    }
    // From the last on: a sum that is no term of another one is a root.
    Vec<bool> seen(count, false);
    for (std::size_t k = count; k-- > 0;) {
      if (terms[k] == 0 || seen[k]) continue;
      const bool numbers = g_.aval(g_.equations[k].outputs[0]).shape.empty();
      const bool is_sum = terms[k] >= (numbers ? least_numbers : least_terms);
      sum_root_[k] = is_sum;
      Vec<std::int32_t> open{static_cast<std::int32_t>(k)};
      while (!open.empty()) {
        const std::int32_t top = open.back();
        open.pop_back();
        seen[top] = true;
        in_sum_[top] = is_sum;
        for (Var v : equation(top).inputs)
          if (const std::int32_t part = partial(v); part >= 0) open.push_back(part);
      }
    }
  }
  // A list as one value is made of its operands; if nothing else is read of it, it is none.
  void find_whole_lists(Vec<std::int32_t>& reads) {
    if (out_.rows.empty()) return;
    Vec<bool> is_result(g_.avals.size(), false);
    for (Var v : g_.outputs) is_result[same_[v]] = true;
    for (std::size_t k = 0; k < g_.equations.size(); ++k) {
      const Equation& e = g_.equations[k];
      if (!moves_rows(e) || e.op != Op::rows || out_.is_ragged(e.outputs[0]) ||
          same_[e.outputs[0]] != e.outputs[0] || is_result[e.outputs[0]])
        continue;
      const Var rows = same_[e.inputs[0]];
      const std::int32_t list = out_.makers[rows];
      if (list < 0 || !is_list(equation(list))) continue;
      whole_list_[k] = list;
      if (--reads[rows] == 0) in_sum_[list] = true;
    }
  }
  // A list of which nothing is read but its sum is none.
  void find_sum_of_rows(std::size_t k, const Vec<std::int32_t>& reads) {
    const Equation& e = g_.equations[k];
    if (e.op != Op::add || !folds_rows(e)) return;
    sum_root_[k] = true;
    const Var rows = same_[e.inputs[0]];
    const std::int32_t list = out_.makers[rows];
    if (list >= 0 && reads[rows] == 1 && is_list(equation(list))) in_sum_[list] = true;
  }
  /// Of one row from each operand?
  bool is_list(const Equation& e) const {
    return moves_rows(e) && e.op == Op::rows && out_.is_ragged(e.outputs[0]) &&
           e.as<RowsParams>().runs.empty() &&
           out_.rows_of(e.outputs[0]) == static_cast<std::int64_t>(e.inputs.size()) &&
           none_of(e.inputs, [&](Var v) { return out_.is_ragged(v); });
  }
  // In the order of recording.
  void add_terms(std::int32_t root) {
    if (folds_rows(equation(root))) {
      const Var rows = same_[equation(root).inputs[0]];
      const std::int32_t list = out_.makers[rows];
      if (list < 0 || !in_sum_[list]) out_.operands.push_back(rows);
      else
        for (Var v : equation(list).inputs) out_.operands.push_back(same_[v]);
      return;
    }
    Vec<Var> open{equation(root).inputs[1], equation(root).inputs[0]};
    while (!open.empty()) {
      const Var v = same_[open.back()];
      open.pop_back();
      const std::int32_t k = out_.makers[v];
      if (k >= 0 && in_sum_[k] && !sum_root_[k]) {
        open.push_back(equation(k).inputs[1]);
        open.push_back(equation(k).inputs[0]);
      } else {
        out_.operands.push_back(v);
      }
    }
  }

  void make_nodes() {
    for (std::size_t i = 0; i < g_.inputs.size(); ++i)
      out_.sources[g_.inputs[i]] = {i < shared_inputs_ ? Source::Kind::shared : Source::Kind::given,
                                    g_.inputs[i]};
    std::int32_t last_effect = -1;
    for (std::size_t k = 0; k < g_.equations.size(); ++k) {
      const Equation& e = g_.equations[k];
      if (in_sum_[k] && !sum_root_[k]) continue;
      const bool effect = keeps_order(e);
      if (!e.outputs.empty() && same_[e.outputs[0]] != e.outputs[0]) {
        for (Var v : e.outputs) out_.sources[v] = out_.sources[same_[v]];
        continue;
      }
      if (!effect && !e.outputs.empty() && shared_[e.outputs[0]]) {
        for (Var v : e.outputs) out_.sources[v].var = v;
        continue;
      }
      const auto id = static_cast<std::int32_t>(out_.nodes.size());
      begin_node();
      Node& n = out_.nodes.emplace_back();
      if (effect) n.after = std::exchange(last_effect, id);
      out_.equations.push_back(static_cast<std::int32_t>(k));
      if (sum_root_[k]) {
        add_terms(static_cast<std::int32_t>(k));
      } else if (whole_list_[k] >= 0) {
        for (Var v : equation(whole_list_[k]).inputs) out_.operands.push_back(same_[v]);
      } else {
        for (std::size_t i = 0; i < e.inputs.size(); ++i) {
          out_.operands.push_back(same_[e.inputs[i]]);
          if (!moves_rows(e) && !folds_rows(e)) out_.wires.push_back(static_cast<std::int32_t>(i));
        }
      }
      for (std::size_t i = 0; i < e.outputs.size(); ++i)
        out_.sources[e.outputs[i]] = {Source::Kind::node, -1, id, static_cast<std::int32_t>(i)};
    }
    begin_node();
    out_.recorded = out_.nodes.size();
  }
  void begin_node() {
    out_.first_equation.push_back(static_cast<std::int32_t>(out_.equations.size()));
    out_.first_operand.push_back(static_cast<std::int32_t>(out_.operands.size()));
    out_.first_wire.push_back(static_cast<std::int32_t>(out_.wires.size()));
  }
  bool takes_any_number(std::int32_t node) const {
    const std::int32_t k = out_.equations_of(node)[0];
    return sum_root_[k] || moves_rows(equation(k)) || folds_rows(equation(k));
  }
  bool is_shared_var(Var v) const { return out_.sources[v].kind == Source::Kind::shared; }
  /// Is it passed once where all nodes of a kind have it as an operand? Small ones that are the
  /// same by chance, as where one node is left, or the words of two are, are gathered as in any
  /// other minibatch, which has been compiled.
  bool may_be_passed_once(Var v) const {
    return is_shared_var(v) && (origin_[v] == Origin::input || !is_vector(v));
  }

  // Which operands of one place there are among nodes of one kind.
  struct Place {
    bool any_node = false;
    Vec<Var> shared;  ///< the different ones, as long as they are few
    static constexpr std::size_t most = 64;
  };

  // Kinds of nodes: of equations; what has effects is of a kind of its own.
  void make_kinds() {
    kind_.resize(out_.nodes.size());
    for (std::size_t n = 0; n < kind_.size(); ++n) {
      const std::int32_t k = out_.equations[n];
      kind_[n] = keeps_order(equation(k)) ? -1 : kind_of(k);
    }
    kinds_of_nodes_ = kind_numbers_.count();
    for (std::int32_t& k : kind_)
      if (k < 0) k = kinds_of_nodes_++;
  }

  void make_signatures() {
    const std::size_t count = out_.nodes.size();
    const Vec<std::int32_t>& kind = kind_;
    const std::int32_t kinds = kinds_of_nodes_;
    const auto is_sum = [&](std::size_t n) {
      return takes_any_number(static_cast<std::int32_t>(n));
    };

    // Nodes whose large operands differ are of different signatures, where each is used often.
    Vec<std::int32_t> first_place(kinds, -1);
    Vec<std::int64_t> nodes_of(kinds, 0);
    Vec<Place> places;
    for (std::size_t n = 0; n < count; ++n) {
      if (is_sum(n)) continue;
      const std::span<const Var> operands = out_.operands_of(static_cast<std::int32_t>(n));
      std::int32_t& first = first_place[kind[n]];
      if (first < 0) {
        first = static_cast<std::int32_t>(places.size());
        places.resize(places.size() + operands.size());
      }
      ++nodes_of[kind[n]];
      for (std::size_t i = 0; i < operands.size(); ++i) {
        Place& p = places[static_cast<std::size_t>(first) + i];
        if (!is_shared_var(operands[i])) p.any_node = true;
        else if (p.shared.size() < Place::most && !contains(p.shared, operands[i]))
          p.shared.push_back(operands[i]);
      }
    }
    const auto splits = [&](std::size_t n, std::size_t i) {
      const std::int32_t k = kind[n];
      const Place& p = places[static_cast<std::size_t>(first_place[k]) + i];
      const auto different = static_cast<std::int64_t>(p.shared.size());
      const Var v = out_.operands_of(static_cast<std::int32_t>(n))[i];
      return !p.any_node && different > 1 && g_.aval(v).bytes() > worth_sharing &&
             (different <= few_operands || nodes_of[k] >= nodes_of_one * different);
    };

    Numbering numbering;
    Vec<std::int32_t> first_node;
    for (std::size_t n = 0; n < count; ++n) {
      const std::span<const Var> own = out_.operands_of(static_cast<std::int32_t>(n));
      std::uint64_t h = mixed(static_cast<std::uint64_t>(kind[n]), is_sum(n));
      if (!is_sum(n))
        for (std::size_t i = 0; i < own.size(); ++i)
          if (splits(n, i)) h = mixed(h, own[i]);
      const std::int32_t s = numbering.number(h, [&](std::int32_t known) {
        const std::size_t o = first_node[known];
        if (kind[o] != kind[n] || is_sum(o) != is_sum(n)) return false;
        if (is_sum(n)) return true;
        const std::span<const Var> others = out_.operands_of(static_cast<std::int32_t>(o));
        for (std::size_t i = 0; i < own.size(); ++i)
          if (splits(n, i) && own[i] != others[i]) return false;
        return true;
      });
      if (s == static_cast<std::int32_t>(first_node.size())) {
        first_node.push_back(static_cast<std::int32_t>(n));
        add_signature(n, own, is_sum(n));
      } else if (!is_sum(n)) {
        Signature& known = out_.signatures[s];
        for (std::size_t i = 0; i < own.size(); ++i)
          if (known.shared[i] != own[i]) known.shared[i] = -1;
      }
      out_.nodes[n].signature = s;
    }
  }
  void add_signature(std::size_t n, std::span<const Var> operands, bool sum) {
    Signature s;
    s.node = static_cast<std::int32_t>(n);
    const std::span<const std::int32_t> equations = out_.equations_of(s.node);
    const Equation& e = equation(equations[0]);
    s.kind = moves_rows(e)             ? Signature::Kind::rows
             : sum_root_[equations[0]] ? Signature::Kind::sum
             : sum                     ? Signature::Kind::fold
             : keeps_order(e)          ? Signature::Kind::alone
                                       : Signature::Kind::op;
    s.heavy =
        !sum && any_of(equations, [&](std::int32_t k) { return !is_elementwise(equation(k).op); });
    if (!sum)
      for (Var v : operands) s.shared.push_back(may_be_passed_once(v) ? v : -1);
    out_.signatures.push_back(std::move(s));
  }
  // What is read by others than the equations of the node that gives it.
  void find_results() {
    for (Signature& s : out_.signatures) {
      std::size_t results = 0;
      for (std::int32_t k : out_.equations_of(s.node)) results += equation(k).outputs.size();
      s.result.resize(results, out_.equations_of(s.node).size() == 1 ? 0 : -1);
    }
    const auto read = [&](Var v) {
      const Source& s = out_.sources[v];
      if (s.kind != Source::Kind::node) return;
      const std::int32_t signature = out_.nodes[s.node].signature;
      out_.signatures[signature].result[s.output] = 0;
    };
    for (Var v : out_.operands) read(v);
    for (Var v : g_.outputs) read(v);
    for (Signature& s : out_.signatures) {
      if (program_ != 0 && s.kind == Signature::Kind::op) add_results_read_before(s);
      std::int32_t next = 0;
      for (std::int32_t& r : s.result)
        if (r == 0) r = next++;
    }
  }
  // What is read in one minibatch is made in all that follow.
  void add_results_read_before(Signature& s) const {
    constexpr std::size_t most = 64;
    s.name = program_;
    for (std::int32_t k : out_.equations_of(s.node))
      s.name = mixed(s.name, name_of(g_, equation(k)));
    for (std::int32_t w : out_.wires_of(s.node))
      s.name = mixed(s.name, static_cast<std::uint64_t>(w));
    if (out_.equations_of(s.node).size() == 1) return;
    std::uint64_t read = 0;
    for (std::size_t i = 0; i < s.result.size() && i < most; ++i)
      if (s.result[i] == 0) read |= std::uint64_t{1} << i;
    read = Experience::all().add(s.name, read);
    for (std::size_t i = 0; i < s.result.size() && i < most; ++i)
      if (read >> i & 1) s.result[i] = 0;
  }
  static bool contains(const Vec<Var>& list, Var v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  }

  NodeGraph out_;
  const GraphBody& g_ = out_.graph;
  std::size_t shared_inputs_ = 0;
  std::uint64_t program_ = 0;
  Vec<Var> same_;            ///< per Var: the first one that is known to be equal
  Vec<bool> static_;         ///< per Var: made of inputs and numbers alone
  Vec<Origin> origin_;       ///< per Var, of those
  Vec<bool> shared_;         ///< per Var: … and computed once for all nodes
  Vec<std::int32_t> kinds_;  ///< per equation, as far as they are known
  Vec<std::int32_t> kind_;   ///< per node
  std::int32_t kinds_of_nodes_ = 0;
  Numbering kind_numbers_;
  /// Per kind: an equation, and how many different shared values there are.
  Vec<std::int32_t> first_of_kind_, shared_of_kind_;
  Vec<bool> made_by_instances_;  ///< per kind: also of what is not made of inputs and numbers alone
  Vec<bool> sum_root_, in_sum_;  ///< per equation
  Vec<std::int32_t> whole_list_;  ///< … that gives a list as one value: the list; −1: another one
  struct Hashed {
    const Params* params = nullptr;
    std::uint64_t hash = 0;
  };
  Hashed hashed_[4];
  std::size_t next_hashed_ = 0;
};

}  // namespace finding

NodeGraph find_nodes(GraphBody graph, Joining joining, std::span<const GivenValue> given) {
  return finding::Finder(with_ragged_lists(std::move(graph), joining.program, given), given.size())
      .run(joining);
}

}  // namespace vt::detail::autobatching
