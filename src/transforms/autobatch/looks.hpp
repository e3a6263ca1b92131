// BatchLooks: computes values of an autobatch function's tracers while it is recorded, each once.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <vt/autobatch.hpp>

#include "../../trace/base/hash_map.hpp"
#include "../../trace/ir/graph.hpp"
#include "../../trace/record/looks.hpp"
#include "../../trace/record/node.hpp"
#include "emit.hpp"
#include "kinds.hpp"
#include "nodes.hpp"

namespace vt::detail::autobatching {

class InstanceRun;
using Tracer = vt::detail::Node;

/// Nodes of the scope that are to be computed, as a Graph of their own.
struct Delta {
  GraphBody graph;
  std::vector<Tensor> inputs;     ///< from outside of the scope, and values without a row
  std::vector<ValuePlace> given;  ///< the inputs after those
  Vec<const Tracer*> order;       ///< whose equations they are
  Vec<Var> first;                 ///< per node of `order`: its first result
};

class BatchLooks final : public Looks {
 public:
  /// `where`: the line of the program that makes the batched function.
  BatchLooks(Batching strategy, CallSite where, BatchStats& stats, KindCounts& kinds);

  /// Called by code that is recorded. An instance waits for the others first.
  std::vector<Tensor> values(std::span<const Tensor> tracers, CallSite where) override;
  /// The same at once, as one batch.
  std::vector<Tensor> compute(std::span<const Tensor> tracers, CallSite where);

  /// What is left to compute for the results of the function and for its effects. The outputs are
  /// the results that are not known yet.
  Delta rest(std::span<const Tensor> results);
  /// The results, after the scope has ended.
  std::vector<Tensor> finish(Delta rest, std::span<const Tensor> results);

  Joining joining() const { return joining_; }

  InstanceRun* run = nullptr;  ///< the instances that take turns now
  double seconds = 0;          ///< spent on values

 private:
  class Collector;
  void compute_missing(std::span<const Tensor> tracers, CallSite where);
  void note_readers(const Delta&);
  std::vector<ValuePlace> emit(const Delta&, const NodeGraph&, std::span<const Var> wanted);
  const ValuePlace& place_of(const Tensor& t) const;

  Batching strategy_;
  Joining joining_;
  BatchStats& stats_;
  KindCounts& kinds_;
  HashMap<const Tracer*, std::size_t> known_;  ///< where in places_ the results of a node begin
  std::vector<ValuePlace> places_;
  HashMap<ValueOfNode, Tensor> answers_;  ///< to looks; pointers to their elements may be held
  std::size_t seen_ = 0;                  ///< so many nodes of the scope have been looked through
  HashMap<const Tracer*, bool> needed_;   ///< by nodes that have not been computed
};

}  // namespace vt::detail::autobatching
