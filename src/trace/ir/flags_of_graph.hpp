// FlagsOfGraph: a sub-graph with one flag per input or output of it: the key under which Liveness
// and Dependence keep their answers.
#pragma once

#include "../base/hash_map.hpp"
#include "graph.hpp"

namespace vt::detail {

struct FlagsOfGraph {
  const GraphBody* graph;
  Vec<bool> flags;
  friend bool operator==(const FlagsOfGraph& a, const FlagsOfGraph& b) {
    return a.graph == b.graph && a.flags == b.flags;
  }
  friend std::size_t key_hash(const FlagsOfGraph& key) {
    std::size_t h = detail::key_hash(static_cast<const void*>(key.graph));
    for (bool flag : key.flags) h = h * 31 + (flag ? 2 : 1);
    return h;
  }
};

}  // namespace vt::detail
