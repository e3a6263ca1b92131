// KindCounts: which kinds of nodes a call of an autobatch function had, for BatchStats.
#pragma once

#include <string>
#include <vector>

#include <vt/autobatch.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/base/hash_map.hpp"
#include "nodes.hpp"
#include "schedule.hpp"

namespace vt::detail::autobatching {

/// Texts are made when somebody asks for them: a call has hundreds of kinds.
class KindCounts {
 public:
  /// Adds the nodes of a batch.
  void add(const NodeGraph&, const NodeSchedule&);
  /// Those that run as most groups first.
  std::vector<BatchKind> list() const;

 private:
  struct Kind {
    Op first, last;
    Signature::Kind kind;
    std::size_t equations;
    std::string function;  ///< of a call
    Vec<Aval> operands;
    CallSite where;
    std::uint64_t nodes = 0, groups = 0;
  };
  Vec<Kind> kinds_;
  HashMap<std::uint64_t, std::size_t> numbers_;
};

}  // namespace vt::detail::autobatching
