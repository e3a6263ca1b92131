// Overlap: exchanges between processes run while others compute.
#include "overlap_exchanges.hpp"

#include <algorithm>

#include "../../trace/ir/collectives.hpp"

namespace vt::detail {

namespace exchange_overlap {

using Part = FusedStep::Part;

bool may_be_cut(const Fusion& fusion, const FusedStep& s) {
  if (s.equation < 0) return false;
  const Equation& e = fusion.graph.equations[s.equation];
  return e.op == Op::ppermute && communicates(e) && fusion.graph.aval(e.outputs[0]).elements() > 0;
}

class Order {
 public:
  explicit Order(const Fusion& fusion) : fusion_(fusion) {
    for (const FusedStep& s : fusion.steps) {
      if (!may_be_cut(fusion, s)) {
        steps_.push_back(s);
        continue;
      }
      for (Part part : {Part::begin, Part::finish}) {
        steps_.push_back(s);
        steps_.back().part = part;
      }
    }
    find_edges();
    find_leads();
  }

  Vec<FusedStep> run() {
    Vec<FusedStep> order;
    Vec<bool> done(steps_.size());
    for (std::size_t n = 0; n < steps_.size(); ++n) {
      int best = -1;
      for (std::size_t k = 0; k < steps_.size(); ++k)
        if (!done[k] && waits_for_[k] == 0 && (best < 0 || rank(k) < rank(best)))
          best = static_cast<int>(k);
      done[best] = true;
      for (int next : followers_[best]) --waits_for_[next];
      FusedStep& s = steps_[best];
      // Nothing came between.
      if (s.part == Part::finish && order.back().part == Part::begin &&
          order.back().equation == s.equation)
        order.back().part = Part::whole;
      else order.push_back(std::move(s));
    }
    return order;
  }

 private:
  bool keeps_its_order(const FusedStep& s) const {
    return s.part != Part::finish &&
           any_of(s.equations(), [&](int e) { return keeps_order(fusion_.graph.equations[e]); });
  }

  /// Does each step that writes the array write parts of its own? Else a later one may write over
  /// an earlier one: a scatter over the copy of its operand.
  bool is_of_parts(Var v) const {
    if (static_cast<std::size_t>(v) >= fusion_.maker.size()) return false;
    const int e = fusion_.maker[v];
    return e >= 0 && fusion_.graph.equations[e].op == Op::concatenate;
  }
  /// Of a step to those after it that must stay behind it.
  void find_edges() {
    followers_.resize(steps_.size());
    waits_for_.assign(steps_.size(), 0);
    const auto edge = [&](int from, std::size_t to) {
      if (from < 0) return;
      followers_[from].push_back(static_cast<int>(to));
      ++waits_for_[to];
    };
    Vec<SmallVec<int, 2>> writers(fusion_.graph.avals.size());
    int last = -1;
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      const StepAccess access = fusion_.access(steps_[k]);
      for (Var v : access.read)
        for (int w : writers[v]) edge(w, k);
      if (steps_[k].part == Part::finish) edge(static_cast<int>(k) - 1, k);
      for (Var v : access.written) {
        if (!is_of_parts(v))
          for (int w : writers[v]) edge(w, k);
        writers[v].push_back(static_cast<int>(k));
      }
      if (!keeps_its_order(steps_[k])) continue;
      edge(last, k);
      last = static_cast<int>(k);
    }
  }
  /// Which steps an exchange waits for that has not begun.
  void find_leads() {
    leads_.assign(steps_.size(), false);
    for (std::size_t k = steps_.size(); k-- > 0;)
      for (int next : followers_[k])
        if (steps_[next].part == Part::begin || leads_[next]) leads_[k] = true;
  }

  /// What goes first of those that may run.
  std::size_t rank(std::size_t k) const {
    const std::size_t kind = steps_[k].part == Part::begin    ? 0
                             : steps_[k].part == Part::finish ? 3
                             : leads_[k]                      ? 1
                                                              : 2;
    return kind * steps_.size() + k;
  }

  const Fusion& fusion_;
  Vec<FusedStep> steps_;
  Vec<SmallVec<int, 4>> followers_;
  Vec<int> waits_for_;
  Vec<bool> leads_;
};

}  // namespace exchange_overlap

void overlap_exchanges(Fusion& fusion) {
  using namespace exchange_overlap;
  if (any_of(fusion.steps, [&](const FusedStep& s) { return may_be_cut(fusion, s); }))
    fusion.steps = Order(fusion).run();
}

}  // namespace vt::detail
