// Joining: which nodes always follow one another, and the nodes that they become.
#include "join.hpp"

#include <algorithm>
#include <utility>

#include "../../trace/base/hash_map.hpp"
#include "experience.hpp"
#include "numbering.hpp"

namespace vt::detail::autobatching {

namespace joining {

// Fewer nodes of a line may be equally many by chance. Longer nodes take long to compile.
constexpr std::int32_t least_alike = 4, most_equations = 64;
// Of those that read one node so many are compared.
constexpr std::int32_t most_readers = 16;

class Joiner {
 public:
  Joiner(const NodeGraph& g, const Vec<std::int32_t>& kind, std::uint64_t program,
         FunctionRef<bool(std::int32_t)> may_join)
      : graph_(g.graph),
        g_(g),
        kind_(kind),
        program_(program),
        may_join_(may_join),
        count_(g.nodes.size()) {}

  /// Were any nodes joined?
  bool run() {
    find_places();
    find_ways();
    return find_cells();
  }
  NodeGraph joined(Vec<std::int32_t>& kind, std::int32_t& kinds);

 private:
  const Equation& equation(std::int32_t node) const {
    return graph_.equations[g_.equations_of(node)[0]];
  }

  // A line's operations of one kind, told apart by which lines give their operands, are a place of
  // the program.
  void find_places() {
    Numbering lines, places, ways;
    Vec<std::int32_t> first_of_line, first_of_place;
    line_of_.resize(count_, -1);
    place_of_.resize(count_, -1);
    way_of_.resize(g_.operands.size(), -1);
    next_read_.resize(g_.operands.size(), -1);
    last_read_.resize(count_, -1);
    for (std::size_t n = 0; n < count_; ++n) {
      const auto node = static_cast<std::int32_t>(n);
      if (g_.wires_of(node).size() != g_.operands_of(node).size()) continue;  // a sum
      const CallSite where = equation(node).where;
      std::uint64_t h = mixed(mixed(kind_[n], reinterpret_cast<std::uintptr_t>(where.file)),
                              static_cast<std::uint64_t>(where.line));
      const std::int32_t line = lines.number(h, [&](std::int32_t known) {
        const std::int32_t o = first_of_line[known];
        const CallSite other = equation(o).where;
        return kind_[o] == kind_[n] && other.file == where.file && other.line == where.line;
      });
      if (line == static_cast<std::int32_t>(first_of_line.size())) {
        first_of_line.push_back(node);
        name_of_line_.push_back(
            mixed(mixed(name_of_kind(node), reinterpret_cast<std::uintptr_t>(where.file)),
                  static_cast<std::uint64_t>(where.line)));
      }
      line_of_[n] = line;
      const std::span<const Var> operands = g_.operands_of(node);
      const auto line_of_operand = [&](Var v) {
        const std::int32_t from = node_of(v);
        return from < 0 ? -1 : line_of_[from];
      };
      h = line;
      for (Var v : operands) h = mixed(h, line_of_operand(v));
      const std::int32_t place = places.number(h, [&](std::int32_t known) {
        const std::int32_t o = first_of_place[known];
        const std::span<const Var> others = g_.operands_of(o);
        if (line_of_[o] != line || others.size() != operands.size()) return false;
        for (std::size_t i = 0; i < operands.size(); ++i)
          if (line_of_operand(others[i]) != line_of_operand(operands[i])) return false;
        return true;
      });
      if (place == static_cast<std::int32_t>(first_of_place.size())) {
        first_of_place.push_back(node);
        nodes_at_.push_back(0);
        std::uint64_t name = name_of_line_[line];
        for (Var v : operands) {
          const std::int32_t from = line_of_operand(v);
          name = mixed(name, from < 0 ? 0 : name_of_line_[from]);
        }
        name_of_place_.push_back(name);
      }
      place_of_[n] = place;
      ++nodes_at_[place];
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (const std::int32_t from = node_of(operands[i]); from >= 0)
          note_read(ways, node, i, from);
    }
  }
  std::uint64_t name_of_kind(std::int32_t node) {
    std::uint64_t& known = name_of_kind_.emplace(kind_[node], 0).entry->second;
    if (known != 0) return known;
    known = name_of(graph_, equation(node));
    return known;
  }

  /// A way: from a place to an operand of a line.
  struct Way {
    std::int32_t place, line;
    std::size_t operand;
    std::int32_t nodes;  ///< so many of the place are read
    bool joins = false;
    bool operator==(const Way& o) const {
      return place == o.place && line == o.line && operand == o.operand;
    }
  };
  void note_read(Numbering& ways, std::int32_t node, std::size_t operand, std::int32_t from) {
    const Way way{place_of_[from], line_of_[node], operand, 0, false};
    if (way.place < 0) return;
    const std::uint64_t h = mixed(mixed(way.place, way.line), operand);
    const std::int32_t w = ways.number(h, [&](std::int32_t k) { return ways_[k] == way; });
    if (w == static_cast<std::int32_t>(ways_.size())) ways_.push_back(way);
    const std::int32_t read = g_.first_operand[node] + static_cast<std::int32_t>(operand);
    // The first reader on this way goes with the node, others do not.
    std::int32_t looked = 0;
    for (std::int32_t r = last_read_[from]; r >= 0; r = next_read_[r])
      if (way_of_[r] == w || ++looked == most_readers) return;
    way_of_[read] = w;
    next_read_[read] = std::exchange(last_read_[from], read);
    ++ways_[w].nodes;
  }

  // Nodes join on a way that all nodes of its place go, in this minibatch and in those before.
  void find_ways() {
    for (Way& w : ways_) w.joins = w.nodes == nodes_at_[w.place];
    if (program_ == 0) {
      for (Way& w : ways_) w.joins = w.joins && w.nodes >= least_alike;
      return;
    }
    constexpr std::uint64_t together = 1, apart = 2;
    for (Way& w : ways_) {
      const std::uint64_t name =
          mixed(mixed(mixed(program_, name_of_place_[w.place]), name_of_line_[w.line]), w.operand);
      const std::uint64_t seen = !w.joins ? apart : w.nodes >= least_alike ? together : 0;
      w.joins = Experience::all().add(name, seen) == together;
    }
  }

  // A node joins that of its latest operand, or others that follow the same one, if that cannot be
  // joined. All others that it reads are in earlier cells, so that no cell waits for itself.
  bool find_cells() {
    bool any = false;
    cell_of_.resize(count_);
    Vec<std::int32_t> followers(count_, -1);
    for (std::size_t n = 0; n < count_; ++n) {
      const auto node = static_cast<std::int32_t>(n);
      std::int32_t latest = -1, depth = -1;
      bool one = true;
      for (Var v : g_.operands_of(node)) {
        const std::int32_t from = node_of(v);
        if (from < 0) continue;
        const std::int32_t cell = cell_of_[from], d = depth_[cell];
        if (cell == latest || d < depth) continue;
        one = d > depth;
        latest = cell;
        depth = d;
      }
      if (const std::int32_t after = g_.nodes[n].after; after >= 0)
        depth = std::max(depth, depth_[cell_of_[after]]);
      const bool may = may_join_(node);
      const std::int32_t from = may && one && latest >= 0 ? always_before(node, latest) : -1;
      std::int32_t* follower = nullptr;
      std::int32_t cell = -1;
      if (from >= 0) {
        cell = latest;
        if (!open_[latest]) {
          follower = &followers[from];
          cell = *follower;
        }
        if (cell >= 0 && size_[cell] >= most_equations) cell = -1;
      }
      if (cell >= 0) {
        cell_of_[n] = cell;
        ++size_[cell];
        any = true;
        continue;
      }
      cell_of_[n] = static_cast<std::int32_t>(depth_.size());
      if (follower) *follower = cell_of_[n];
      depth_.push_back(depth + 1);
      size_.push_back(1);
      open_.push_back(may);
    }
    return any;
  }
  /// A node of the cell that this one always follows, by the lines of both; −1: there is none.
  std::int32_t always_before(std::int32_t node, std::int32_t cell) const {
    const std::span<const Var> operands = g_.operands_of(node);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::int32_t from = node_of(operands[i]), w = way_of_[g_.first_operand[node] + i];
      if (from < 0 || w < 0 || cell_of_[from] != cell) continue;
      if (ways_[w].joins && is_ragged(from) == is_ragged(node)) return from;
    }
    return -1;
  }
  /// Ragged nodes that follow a ragged one have as many rows.
  bool is_ragged(std::int32_t node) const {
    const Equation& e = equation(node);
    return !e.outputs.empty() && g_.is_ragged(e.outputs[0]);
  }
  /// −1: it is no node's.
  std::int32_t node_of(Var v) const {
    const Source& s = g_.sources[v];
    return s.kind == Source::Kind::node ? s.node : -1;
  }

  const GraphBody& graph_;
  const NodeGraph& g_;
  const Vec<std::int32_t>& kind_;
  const std::uint64_t program_;
  const FunctionRef<bool(std::int32_t)> may_join_;
  const std::size_t count_;
  Vec<std::int32_t> line_of_, place_of_;  ///< per node; −1: of a sum
  Vec<std::int32_t> nodes_at_;            ///< per place
  Vec<std::uint64_t> name_of_line_, name_of_place_;
  HashMap<std::int32_t, std::uint64_t> name_of_kind_;
  Vec<Way> ways_;
  Vec<std::int32_t> way_of_;  ///< per operand; −1: none on which nodes join
  /// Per node the last operand that reads it on a way, and per operand the one before.
  Vec<std::int32_t> last_read_, next_read_;
  Vec<std::int32_t> cell_of_;       ///< per node
  Vec<std::int32_t> depth_, size_;  ///< per cell
  Vec<bool> open_;                  ///< per cell: may others join?
};

// Cells in the order of their depths, in which each comes after those that it needs.
NodeGraph Joiner::joined(Vec<std::int32_t>& kind, std::int32_t& kinds) {
  const std::size_t cells = depth_.size();
  std::int32_t deepest = 0;
  for (std::int32_t d : depth_) deepest = std::max(deepest, d);
  Vec<std::int32_t> start(deepest + 2, 0), number(cells), old_cell(cells);
  for (std::int32_t d : depth_) ++start[d + 1];
  for (std::size_t d = 1; d < start.size(); ++d) start[d] += start[d - 1];
  for (std::size_t c = 0; c < cells; ++c) {
    number[c] = start[depth_[c]]++;
    old_cell[number[c]] = static_cast<std::int32_t>(c);
  }
  // The nodes of each cell, in the order of recording.
  Vec<std::int32_t> first(cells + 1, 0), nodes(count_);
  for (std::size_t c = 0; c < cells; ++c) first[c + 1] = first[c] + size_[old_cell[c]];
  Vec<std::int32_t> next = first;
  for (std::size_t n = 0; n < count_; ++n)
    nodes[next[number[cell_of_[n]]]++] = static_cast<std::int32_t>(n);

  // Where the results of each node are among those of its cell.
  Vec<std::int32_t> first_result(count_), results(cells, 0);
  for (std::size_t n = 0; n < count_; ++n) {
    std::int32_t& all = results[cell_of_[n]];
    first_result[n] = all;
    all += static_cast<std::int32_t>(equation(static_cast<std::int32_t>(n)).outputs.size());
  }

  NodeGraph g;
  g.row_reads = g_.row_reads;
  g.makers = g_.makers;
  g.sources = g_.sources;
  g.recorded = count_;
  for (Source& s : g.sources) {
    if (s.kind != Source::Kind::node) continue;
    s.output += first_result[s.node];
    s.node = number[cell_of_[s.node]];
  }
  g.nodes.resize(cells);
  Vec<std::int32_t> cell_kind;
  Numbering numbering;
  Vec<std::int32_t> first_of_kind;
  const auto begin_node = [&] {
    g.first_equation.push_back(static_cast<std::int32_t>(g.equations.size()));
    g.first_operand.push_back(static_cast<std::int32_t>(g.operands.size()));
    g.first_wire.push_back(static_cast<std::int32_t>(g.wires.size()));
  };
  for (std::size_t c = 0; c < cells; ++c) {
    const std::span<const std::int32_t> members(nodes.data() + first[c], first[c + 1] - first[c]);
    begin_node();
    for (std::int32_t n : members) g.equations.push_back(g_.equations_of(n)[0]);
    if (members.size() == 1) {
      const std::int32_t n = members[0];
      if (const std::int32_t after = g_.nodes[n].after; after >= 0)
        g.nodes[c].after = number[cell_of_[after]];
      for (Var v : g_.operands_of(n)) g.operands.push_back(v);
      for (std::int32_t w : g_.wires_of(n)) g.wires.push_back(w);
      cell_kind.push_back(kind_[n]);
      continue;
    }
    const auto own = static_cast<std::int32_t>(c);
    const std::size_t wires = g.wires.size();
    Vec<Var> origins;  // of its operands: as they were recorded
    std::uint64_t h = members.size();
    for (std::int32_t n : members) {
      h = mixed(h, kind_[n]);
      for (std::size_t i = 0; i < g_.operands_of(n).size(); ++i) {
        const Var v = g_.operands_of(n)[i], recorded = equation(n).inputs[i];
        const Source& s = g.sources[v];
        std::int32_t wire = -1 - s.output;
        if (s.kind != Source::Kind::node || s.node != own) {
          // What all share is each an operand: others may have different ones in its places. So is
          // what is equal by chance, as of a word that comes twice.
          std::size_t k = s.kind == Source::Kind::shared ? origins.size() : 0;
          while (k < origins.size() && origins[k] != recorded) ++k;
          if (k == origins.size()) {
            g.operands.push_back(v);
            origins.push_back(recorded);
          }
          wire = static_cast<std::int32_t>(k);
        }
        g.wires.push_back(wire);
        h = mixed(h, static_cast<std::uint64_t>(wire));
      }
    }
    const std::int32_t k = numbering.number(h, [&](std::int32_t known) {
      const std::int32_t o = first_of_kind[known];
      if (first[o + 1] - first[o] != static_cast<std::int32_t>(members.size())) return false;
      for (std::size_t i = 0; i < members.size(); ++i)
        if (kind_[nodes[first[o] + i]] != kind_[members[i]]) return false;
      const std::span<const std::int32_t> others = g.wires_of(o);
      return std::equal(others.begin(), others.end(), g.wires.begin() + wires, g.wires.end());
    });
    if (k == static_cast<std::int32_t>(first_of_kind.size())) first_of_kind.push_back(own);
    cell_kind.push_back(kinds + k);
  }
  begin_node();
  kinds += numbering.count();
  kind = std::move(cell_kind);
  return g;
}

}  // namespace joining

bool may_join(Op op) {
  switch (op) {
    case Op::dot_general:
    case Op::slice: return true;
    case Op::reduce: return false;
    default: break;
  }
  const Family f = family_of(op);
  return is_elementwise(op) || f == Family::reduce || f == Family::shape;
}

void join_nodes(NodeGraph& g, Vec<std::int32_t>& kind, std::int32_t& kinds, std::uint64_t program,
                FunctionRef<bool(std::int32_t)> may_join) {
  joining::Joiner joiner(g, kind, program, may_join);
  if (!joiner.run()) return;
  NodeGraph cells = joiner.joined(kind, kinds);
  cells.graph = std::move(g.graph);
  cells.rows = std::move(g.rows);
  cells.forms = std::move(g.forms);
  g = std::move(cells);
}

}  // namespace vt::detail::autobatching
