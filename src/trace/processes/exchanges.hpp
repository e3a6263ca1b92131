// Exchanges: what each rank sends and receives in a collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include <vt/dtype.hpp>

#include "transport.hpp"
#include "world.hpp"

namespace vt::detail {

/// Decides how long a rank waits.
class Patience {
 public:
  /// Between polls, for what is still active of the transfers. Throws to end the wait.
  virtual void look(std::span<Transfer> waiting) = 0;

  unsigned polls_between = 31;  ///< 2ⁿ − 1; so many polls without a look at it
  std::uint64_t arrivals = 0;   ///< grows with each transfer that is done

 protected:
  ~Patience() = default;
};

/// Memory that is kept from one collective to the next.
class ScratchMemory {
 public:
  /// `bytes`, aligned for every dtype; what was taken before is gone.
  void* take(std::size_t bytes) {
    if (bytes > held_) {
      memory_.reset(
          new std::max_align_t[(bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t)]);
      held_ = bytes;
    }
    return memory_.get();
  }
  /// Gives back what only rare large arrays need.
  void trim() {
    constexpr std::size_t most = std::size_t{4} << 20;
    if (held_ <= most) return;
    memory_.reset();
    held_ = 0;
  }

 private:
  std::unique_ptr<std::max_align_t[]> memory_;
  std::size_t held_ = 0;
};

namespace exchanges {

/// So many bytes behind `data`.
inline unsigned char* at(void* data, std::size_t offset) {
  return static_cast<unsigned char*>(data) + offset;
}
inline const unsigned char* at(const void* data, std::size_t offset) {
  return static_cast<const unsigned char*>(data) + offset;
}
inline void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes && to != from) std::memcpy(to, from, bytes);
}

}  // namespace exchanges

/// The messages of one collective: all have its tag.
struct Channel {
  Transport& transport;
  Patience& patience;
  ScratchMemory& scratch;
  int tag = 0;
  /// Pieces of large arrays, in bytes; and the longest message, as MPI counts in int. Tests set
  /// less.
  static constexpr std::size_t usual_piece = std::size_t{1} << 17;
  std::size_t piece = usual_piece, longest = std::size_t{1} << 30;
};

/// What differs is decided by sizes alone, which all ranks know. given and got as World has them;
/// of a group of at least two.
namespace exchanges {

/// So many bytes go as a whole. Between two ranks that takes one step, parts take two.
constexpr std::size_t most_whole(int members) { return std::size_t{1} << (members == 2 ? 18 : 16); }
/// Of all members the part of one is so short that rings, in which it goes from each to the next,
/// take longer than sending more in fewer steps.
constexpr bool is_short_part(std::size_t all, int members) {
  return all / static_cast<std::size_t>(members) < (std::size_t{1} << 14);
}
/// A sum that does not go as a whole goes by halving, or round in blocks. A power of two of members
/// adds in the same order then as with small arrays.
constexpr bool goes_by_halves(std::size_t bytes, int members) {
  return (members & (members - 1)) == 0 || is_short_part(bytes, members);
}
/// all_gather of so many bytes of each.
constexpr bool gathers_by_doubling(std::size_t bytes, int members) {
  const std::size_t all = bytes * static_cast<std::size_t>(members);
  return members > 2 && (all <= most_whole(members) || is_short_part(all, members));
}
/// Of a sum in blocks: how many elements one member combines.
constexpr std::size_t elements_of_block(std::size_t all, int members) {
  constexpr std::size_t together = 64;
  const auto n = static_cast<std::size_t>(members);
  return ((all + n - 1) / n + together - 1) / together * together;
}

void all_reduce(Channel&, const RankGroup&, RankReduction, DType, const void* given, void* got,
                std::size_t elements);
void all_gather(Channel&, const RankGroup&, const void* given, void* got, std::size_t bytes);
void all_to_all(Channel&, const RankGroup&, const void* given, void* got, std::size_t bytes);
void permute(Channel&, const RankGroup&, std::span<const std::int64_t> sources, const void* given,
             void* got, std::size_t bytes);
/// permute of which only the transfers are begun; `finish` waits for them. False: it is done.
bool begin_permute(Channel&, const RankGroup&, std::span<const std::int64_t> sources,
                   const void* given, void* got, std::size_t bytes,
                   std::span<Transfer, 2> transfers);
/// Transfers that an error leaves are dropped.
void finish(Channel&, std::span<Transfer, 2> transfers);
/// `bytes` of member `root` go to all others.
void broadcast(Channel&, const RankGroup&, int root, void* data, std::size_t bytes);
void barrier(Channel&, const RankGroup&);

}  // namespace exchanges

}  // namespace vt::detail
