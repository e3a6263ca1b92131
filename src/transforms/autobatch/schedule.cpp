// Schedules: none, by depth (Looks et al. 2017, Deep Learning with Dynamic Computation Graphs), and
// by agenda (Neubig, Goldberg, Dyer 2017, On-the-fly Operation Batching in Dynamic Computation
// Graphs).
#include "schedule.hpp"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

namespace vt::detail::autobatching {

namespace scheduling {

/// Which nodes a node waits for. One that it reads twice counts twice.
template <class F>
void for_each_needed(const NodeGraph& g, std::int32_t node, const F& f) {
  for (Var v : g.operands_of(node))
    if (const Source& s = g.sources[v]; s.kind == Source::Kind::node) f(s.node);
  if (const std::int32_t after = g.nodes[node].after; after >= 0) f(after);
}

Vec<std::int32_t> depths_of(const NodeGraph& g) {
  Vec<std::int32_t> depth(g.nodes.size(), 0);
  for (std::size_t n = 0; n < depth.size(); ++n)
    for_each_needed(g, static_cast<std::int32_t>(n),
                    [&](std::int32_t needed) { depth[n] = std::max(depth[n], depth[needed] + 1); });
  return depth;
}

/// How far the results are: the longest way to a node that no other one needs, negative.
Vec<std::int32_t> distances_of(const NodeGraph& g) {
  Vec<std::int32_t> distance(g.nodes.size(), 0);
  for (std::size_t n = distance.size(); n-- > 0;)
    for_each_needed(g, static_cast<std::int32_t>(n), [&](std::int32_t needed) {
      distance[needed] = std::min(distance[needed], distance[n] - 1);
    });
  return distance;
}

NodeSchedule one_by_one(const NodeGraph& g) {
  NodeSchedule s;
  for (std::size_t n = 0; n <= g.nodes.size(); ++n) {
    s.first.push_back(static_cast<std::int32_t>(n));
    if (n < g.nodes.size()) s.order.push_back(static_cast<std::int32_t>(n));
  }
  return s;
}

/// Sorts by counting: nodes by a number below `limit`, equal ones in their order.
Vec<std::int32_t> sorted_by(const Vec<std::int32_t>& nodes, const Vec<std::int32_t>& number,
                            std::size_t limit) {
  Vec<std::int32_t> start(limit + 1, 0), sorted(nodes.size());
  for (std::int32_t n : nodes) ++start[number[n] + 1];
  for (std::size_t k = 1; k <= limit; ++k) start[k] += start[k - 1];
  for (std::int32_t n : nodes) sorted[start[number[n]]++] = n;
  return sorted;
}

NodeSchedule by_depth(const NodeGraph& g) {
  const Vec<std::int32_t> depth = depths_of(g);
  Vec<std::int32_t> nodes, signature;
  std::int32_t deepest = 0;
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    nodes.push_back(static_cast<std::int32_t>(n));
    signature.push_back(g.nodes[n].signature);
    deepest = std::max(deepest, depth[n]);
  }
  nodes = sorted_by(nodes, signature, g.signatures.size());
  nodes = sorted_by(nodes, depth, deepest + 1);
  NodeSchedule s;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::int32_t n = nodes[i];
    if (i == 0 || depth[n] != depth[nodes[i - 1]] || signature[n] != signature[nodes[i - 1]])
      s.first.push_back(static_cast<std::int32_t>(i));
  }
  s.first.push_back(static_cast<std::int32_t>(nodes.size()));
  s.order = std::move(nodes);
  return s;
}

/// Next comes the signature whose nodes that have not run come earliest on average, by a number for
/// each node. Of equals the cheap ones, which may make more of the others ready.
class Agenda {
 public:
  Agenda(const NodeGraph& g, Vec<std::int32_t> when)
      : g_(g),
        when_(std::move(when)),
        waits_(g.nodes.size(), 0),
        ready_(g.signatures.size()),
        left_(g.signatures.size()) {}

  NodeSchedule run() {
    const std::size_t count = g_.nodes.size();
    find_readers();
    for (std::size_t n = 0; n < count; ++n) {
      Left& l = left_[g_.nodes[n].signature];
      l.when += when_[n];
      ++l.nodes;
    }
    for (std::size_t n = 0; n < count; ++n)
      if (waits_[n] == 0) add_ready(static_cast<std::int32_t>(n));
    NodeSchedule s;
    s.order.reserve(count);
    while (s.order.size() < count) {
      const std::int32_t signature = next();
      Vec<std::int32_t> group = std::move(ready_[signature]);
      ready_[signature] = {};
      if (g_.signatures[signature].kind == Signature::Kind::alone) group.resize(1);
      s.first.push_back(static_cast<std::int32_t>(s.order.size()));
      Left& l = left_[signature];
      for (std::int32_t n : group) {
        s.order.push_back(n);
        l.when -= when_[n];
        --l.nodes;
      }
      for (std::int32_t n : group)
        for (std::int32_t i = first_reader_[n]; i < first_reader_[n + 1]; ++i)
          if (--waits_[readers_[i]] == 0) add_ready(readers_[i]);
    }
    s.first.push_back(static_cast<std::int32_t>(count));
    return s;
  }

 private:
  struct Left {
    std::int64_t when = 0, nodes = 0;
  };
  struct Entry {
    double when;
    bool heavy;
    std::int32_t signature;
    bool operator<(const Entry& o) const {  // the last one in this order comes first
      if (when != o.when) return when > o.when;
      if (heavy != o.heavy) return heavy;
      return signature > o.signature;
    }
  };

  void find_readers() {
    first_reader_.resize(g_.nodes.size() + 1, 0);
    for (std::size_t n = 0; n < g_.nodes.size(); ++n)
      for_each_needed(g_, static_cast<std::int32_t>(n), [&](std::int32_t needed) {
        ++waits_[n];
        ++first_reader_[needed + 1];
      });
    for (std::size_t n = 1; n < first_reader_.size(); ++n) first_reader_[n] += first_reader_[n - 1];
    readers_.resize(first_reader_.back());
    Vec<std::int32_t> next = first_reader_;
    for (std::size_t n = 0; n < g_.nodes.size(); ++n)
      for_each_needed(g_, static_cast<std::int32_t>(n), [&](std::int32_t needed) {
        readers_[next[needed]++] = static_cast<std::int32_t>(n);
      });
  }
  void add_ready(std::int32_t node) {
    const std::int32_t s = g_.nodes[node].signature;
    if (ready_[s].empty()) queue_.push({average(s), g_.signatures[s].heavy, s});
    ready_[s].push_back(node);
  }
  double average(std::int32_t s) const {
    return static_cast<double>(left_[s].when) / static_cast<double>(left_[s].nodes);
  }
  /// A signature's average changes only when it runs itself, and it is queued anew after that.
  std::int32_t next() {
    const std::int32_t s = queue_.top().signature;
    queue_.pop();
    return s;
  }

  const NodeGraph& g_;
  const Vec<std::int32_t> when_;
  Vec<std::int32_t> waits_, first_reader_, readers_;
  Vec<Vec<std::int32_t>> ready_;
  Vec<Left> left_;
  std::priority_queue<Entry, std::vector<Entry>> queue_;
};

}  // namespace scheduling

NodeSchedule schedule_nodes(const NodeGraph& g, Batching strategy) {
  switch (strategy) {
    case Batching::none: return scheduling::one_by_one(g);
    case Batching::by_depth: return scheduling::by_depth(g);
    case Batching::agenda: break;
  }
  // By depth, as the paper has it, what comes late may begin too early, and then in several groups;
  // by the distance from the results what branches out may. The better one of both.
  NodeSchedule a = scheduling::Agenda(g, scheduling::distances_of(g)).run();
  NodeSchedule b = scheduling::Agenda(g, scheduling::depths_of(g)).run();
  return b.groups() < a.groups() ? b : a;
}

std::size_t least_groups(const NodeGraph& g) {
  std::size_t sum = 0;
  Vec<std::int32_t> longest(g.nodes.size());
  for (std::size_t s = 0; s < g.signatures.size(); ++s) {
    std::int32_t most = 0;
    for (std::size_t n = 0; n < g.nodes.size(); ++n) {
      std::int32_t here = 0;
      scheduling::for_each_needed(g, static_cast<std::int32_t>(n), [&](std::int32_t needed) {
        here = std::max(here, longest[needed]);
      });
      longest[n] = here + (g.nodes[n].signature == static_cast<std::int32_t>(s));
      most = std::max(most, longest[n]);
    }
    sum += static_cast<std::size_t>(most);
  }
  return sum;
}

}  // namespace vt::detail::autobatching
