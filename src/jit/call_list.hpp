// CallList: runs a Graph of batched calls and rows, one equation after the other. Nothing is
// compiled for how many rows there are.
#pragma once

#include "../trace/ir/executable.hpp"
#include "cpu/runtime/row_program.hpp"

namespace vt::detail {

/// Sums over rows are made once for all calls of a function whose sums are added up.
class CallList : public Executable {
 public:
  /// A Graph that suits_call_list.
  explicit CallList(GraphBody graph);
  ~CallList() override;
  Vec<BufferRef> run(std::span<const BufferRef> inputs) override;
  void report(Report& report, int depth) const override;
  Memory memory() const override;

 private:
  class Run;
  struct Step;
  void plan();

  GraphBody graph_;
  Vec<Step> steps_;
  Vec<Var> sum_;  ///< per Var: the Var in whose sum it ends, itself mostly
};

/// Are there batched calls or rows among its equations?
bool suits_call_list(const GraphBody&);

}  // namespace vt::detail
