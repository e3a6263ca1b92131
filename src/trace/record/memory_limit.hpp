// vmap in blocks: how many lanes at a time a memory limit allows, and the blocks' results joined.
#pragma once

#include <span>
#include <vector>

#include "../ir/graph.hpp"

namespace vt::detail {

/// Who runs lanes in blocks, and what may be taken while one runs.
struct BlockCall {
  const char* transform;
  CallSite where;
  std::int64_t lanes = 0, chunk = 0;  ///< chunk: no more at a time than this; 0: all
  std::int64_t limit = 0;             ///< bytes; 0: none
  std::span<const Tensor> held{};     ///< what is there all the time, whether blocks read it or not
  std::uint64_t other_results = 0;    ///< bytes that are there beside this call's results
};
/// So many lanes at a time that what is planned for a block (`block(count)` records one), what it
/// reads and all results stay below the limit: a few plans, none of which is compiled. `chunk`
/// itself where there is no limit.
/// Throws: Error(memory) if one lane at a time is too much; Error(value) if the limit is negative.
std::int64_t lanes_at_once(const BlockCall&,
                           FunctionRef<std::vector<Tensor>(std::int64_t count)> block);

/// One result of all blocks, whose lanes lie along `axis`. Blocks that are values already are
/// copied to their places, and not kept; others are concatenated.
class JoinedBlocks {
 public:
  /// The next block; `evaluated`: all of them are values.
  void add(Tensor block, int axis, std::int64_t lanes, bool evaluated, CallSite);
  bool empty() const { return first_ == 0; }
  Tensor whole(int axis, CallSite);

 private:
  std::vector<Tensor> parts_;
  Tensor all_;
  std::int64_t first_ = 0;  ///< lanes so far
};

}  // namespace vt::detail
