// Experience: what has been seen of a program's minibatches so far. What would differ from one to
// the next by chance, where nodes are few, goes by that, and is not compiled anew.
#pragma once

#include <cstdint>
#include <mutex>

#include "../../trace/base/locks.hpp"
#include "../../trace/base/recent_map.hpp"
#include "../../trace/ir/graph.hpp"
#include "numbering.hpp"

namespace vt::detail::autobatching {

class Experience {
 public:
  static Experience& all() {
    static auto* const all = new Experience;  // values may be asked for while the process ends
    return *all;
  }
  /// Adds to the flags that are known under a name; returns all of them. Any thread.
  std::uint64_t add(std::uint64_t name, std::uint64_t flags) {
    const std::lock_guard lock(mutex_);
    if (std::uint64_t* const known = flags_.find(name)) return *known |= flags;
    Vec<std::uint64_t> gone;
    return *flags_.emplace(name, flags, gone);
  }

 private:
  Mutex mutex_;
  RecentMap<std::uint64_t, std::uint64_t> flags_{1 << 16};
};

/// A name for what an equation does, the same in all minibatches.
inline std::uint64_t name_of(const GraphBody& g, const Equation& e) {
  std::uint64_t name = mixed(static_cast<std::uint64_t>(e.op), e.params ? hash_of(e.params) : 0);
  for (Var v : e.inputs) {
    name = mixed(name, static_cast<std::uint64_t>(g.aval(v).dtype));
    for (std::int64_t extent : g.aval(v).shape)
      name = mixed(name, static_cast<std::uint64_t>(extent));
  }
  return name;
}

}  // namespace vt::detail::autobatching
