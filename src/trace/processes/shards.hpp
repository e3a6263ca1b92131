// Shards: several ranks of one process, which come together at collectives, with sums in an order
// that does not depend on how many processes they are spread over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <vt/detail/function.hpp>
#include <vt/dtype.hpp>

#include "world.hpp"

namespace vt::detail {

/// What runs as one of P · n ranks, on a thread of its own: n on each of the P processes of a
/// World. Its collectives have the contracts of World's; the group is all of them.
///
/// Sums are a tree: of ranks 0 and 1, 2 and 3 …, then of those sums, and so on. So n and P are
/// powers of two, and the bits are the same for all P with the same P · n.
class Shard {
 public:
  /// That of this thread, or null.
  static Shard* current();

  int rank() const;  ///< of all

  void all_reduce(const RankGroup&, RankReduction, DType, const void* given, void* got,
                  std::int64_t elements, const CollectiveSite&);
  void all_gather(const RankGroup&, const void* given, void* got, std::size_t bytes,
                  const CollectiveSite&);
  void all_to_all(const RankGroup&, const void* given, void* got, std::size_t bytes,
                  const CollectiveSite&);
  void permute(const RankGroup&, std::span<const std::int64_t> sources, const void* given,
               void* got, std::size_t bytes, const CollectiveSite&);

 private:
  class Team;
  Shard(Team& team, int index) : team_(team), index_(index) {}
  friend void run_shards(World&, int, FunctionRef<void(int)>, CallSite);

  Team& team_;
  int index_;  ///< in this process
};

/// Runs body(0) … body(shards − 1), each as a Shard; as many compute at a time as this process has
/// processors, and each goes on until it comes to a collective. Throws what the first to fail has
/// thrown.
void run_shards(World&, int shards, FunctionRef<void(int shard)> body, CallSite);

}  // namespace vt::detail
