// Peers: what a rank and the others tell each other beside the data, and what it follows from that:
// that one will not come to the collective at which this rank waits, and why.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "transport.hpp"
#include "world.hpp"

namespace vt::detail {

/// A collective at which a rank is.
struct Place {
  const CollectiveSite* site = nullptr;
  const RankGroup* group = nullptr;
  ExchangeKind kind = ExchangeKind::barrier;
  std::uint64_t group_hash = 0;
  std::uint64_t what = 0;   ///< equal on all ranks that are at the same one
  std::int64_t number = 0;  ///< it is this rank's so-many-th in the group …
  std::int64_t base = 0;    ///< … of which so many came before this call
  std::int64_t call = 0;    ///< the rank's so-many-th
};

/// How far this rank has come in a group of ranks.
struct GroupReached {
  std::uint64_t group_hash;
  std::int64_t number;
};

class Peers {
 public:
  explicit Peers(Transport&);

  void tell_failed(const std::string& message) { tell(Notice::Kind::failed, message); }
  void tell_left() { tell(Notice::Kind::left, {}); }
  void tell_over(const std::string& reason) { tell(Notice::Kind::over, reason); }
  void tell_waits(const Place&, double seconds);
  /// An error ended a call of this rank, which had come so far in its groups.
  void tell_threw(const std::string& message, std::int64_t call, std::span<const GroupReached>);

  // Each of these returns a reason to give up, or "".

  /// Takes the notices that have come. A reason: another rank has failed or given up.
  std::string hear();
  /// A member whose call was ended by an error before it came to this collective never does: its
  /// next one belongs to another call.
  std::string error_of_member(const Place&) const;
  /// A member waits where none that is in step can be.
  std::string difference(const Place&) const;
  /// Rank r, for which this one has waited since then, has ended or is gone.
  std::string end_of(int r, double since, double time);
  /// Who did not come within so many seconds: what members do not wait at the same place; else whom
  /// this rank waits for.
  std::string missing(const Place&, std::span<const Transfer> waiting, double seconds) const;

  /// Has a rank told where it waits, since this was last asked?
  bool take_news();

 private:
  /// What is known of another rank.
  struct Other {
    bool has_left = false;
    double left_at = 0;  ///< when that was heard
    double gone_at = 0;  ///< when its process was first seen to be gone
    bool has_waited = false;
    Notice waits;  ///< the last one
    // The last error that ended a call there.
    std::string threw;
    std::int64_t threw_call = 0;
    bool knows_all = false;  ///< all notices of it have come
    Vec<GroupReached> reached;
    std::int64_t reached_in(std::uint64_t group_hash) const;
    bool waits_at(const Place&) const;
  };
  void tell(Notice::Kind, const std::string& text);
  Other& other(int r);
  std::string threw_text(int r) const;

  Transport& transport_;
  const int rank_, size_;
  Vec<Other> others_;  ///< by rank; empty until the first notice
  bool has_news_ = false, has_heard_errors_ = false;
  std::string own_threw_;
};

}  // namespace vt::detail
