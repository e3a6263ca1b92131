// Peers: what notices say of the other ranks, and the reasons to give up that follow.
#include "peers.hpp"

#include <algorithm>
#include <utility>

#include <vt/detail/message.hpp>

namespace vt::detail {

namespace peers {

// Seconds.
constexpr double left_patience = 0.2;  // what a rank sent before it left has come by then
constexpr double gone_patience = 1;    // and so has the notice of one that ended in order

inline bool is_member(const RankGroup& group, int r) {
  for (int m = 0; m < group.size; ++m)
    if (group.rank(m) == r) return true;
  return false;
}
/// Can no rank that is in step be at this place, while another is at that one?
inline bool is_out_of_step(const Place& place, const Notice& with) {
  if (with.call == place.call)
    return with.base != place.base || (with.number == place.number && with.what != place.what);
  return with.call < place.call ? with.number > place.base : place.number > with.base;
}
inline std::string place_text(const Place& place) {
  return place.site->text() + in_passing(place.site->where);
}

}  // namespace peers

Peers::Peers(Transport& transport)
    : transport_(transport), rank_(transport.rank()), size_(transport.size()) {}

std::int64_t Peers::Other::reached_in(std::uint64_t group_hash) const {
  for (const GroupReached& r : reached)
    if (r.group_hash == group_hash) return r.number;
  return 0;
}
bool Peers::Other::waits_at(const Place& place) const {
  return has_waited && waits.group == place.group_hash && waits.what == place.what;
}
Peers::Other& Peers::other(int r) {
  if (others_.empty()) others_.resize(static_cast<std::size_t>(size_));
  return others_[static_cast<std::size_t>(r)];
}
/// What is known of why a rank does not come.
std::string Peers::threw_text(int r) const {
  if (others_.empty()) return {};
  const std::string& threw = others_[static_cast<std::size_t>(r)].threw;
  return threw.empty() ? "" : "; it had thrown: " + threw;
}

void Peers::tell(Notice::Kind kind, const std::string& text) {
  Notice notice;
  notice.kind = kind;
  notice.rank = rank_;
  notice.text = text;
  transport_.tell_all(notice);
}

void Peers::tell_waits(const Place& place, double seconds) {
  Notice notice;
  notice.kind = Notice::Kind::waits;
  notice.rank = rank_;
  notice.group = place.group_hash;
  notice.what = place.what;
  notice.number = place.number;
  notice.call = place.call;
  notice.base = place.base;
  notice.seconds = seconds;
  notice.text = peers::place_text(place);
  transport_.tell_all(notice);
}

void Peers::tell_threw(const std::string& message, std::int64_t call,
                       std::span<const GroupReached> reached) {
  own_threw_ = message;
  Notice notice;
  notice.kind = Notice::Kind::threw;
  notice.rank = rank_;
  notice.text = message;
  notice.call = call;
  for (const GroupReached& r : reached) {
    notice.group = r.group_hash;
    notice.number = r.number;
    transport_.tell_all(notice);
  }
  notice.group = 0;
  transport_.tell_all(notice);
}

std::string Peers::hear() {
  Notice notice;
  while (transport_.hear(notice)) {
    if (notice.rank < 0 || notice.rank >= size_) continue;
    Other& from = other(notice.rank);
    switch (notice.kind) {
      case Notice::Kind::failed: return formatted("rank {} failed: {}", notice.rank, notice.text);
      case Notice::Kind::over: return notice.text;
      case Notice::Kind::threw:
        if (from.threw_call != notice.call || from.knows_all) from.reached.clear();
        from.threw_call = notice.call;
        from.knows_all = notice.group == 0;
        if (!from.knows_all) from.reached.push_back({notice.group, notice.number});
        from.threw = std::move(notice.text);
        has_heard_errors_ = true;
        break;
      case Notice::Kind::left:
        from.has_left = true;
        from.left_at = monotonic_seconds();
        break;
      case Notice::Kind::waits:
        from.has_waited = true;
        from.waits = std::move(notice);
        has_news_ = true;
        break;
    }
  }
  return {};
}

bool Peers::take_news() { return std::exchange(has_news_, false); }

std::string Peers::error_of_member(const Place& place) const {
  if (!has_heard_errors_) return {};
  for (int r = 0; r < size_; ++r) {
    const Other& from = others_[static_cast<std::size_t>(r)];
    if (r != rank_ && from.knows_all && from.threw_call >= place.call &&
        from.reached_in(place.group_hash) < place.number && peers::is_member(*place.group, r))
      return formatted("rank {} failed: {}", r, from.threw);
  }
  return {};
}

std::string Peers::difference(const Place& place) const {
  for (const Other& from : others_) {
    const Notice& waits = from.waits;
    if (!from.has_waited || waits.group != place.group_hash ||
        !peers::is_out_of_step(place, waits) || !peers::is_member(*place.group, waits.rank))
      continue;
    std::string lower = formatted("rank {} is at {}", rank_, peers::place_text(place));
    std::string upper = formatted("rank {} is at {}", waits.rank, waits.text);
    if (waits.rank < rank_) std::swap(lower, upper);
    std::string reasons;
    if (waits.call == place.call && waits.number == place.number &&
        waits.text == peers::place_text(place))
      reasons =
          "; these take other values: what is computed outside of vt::shard_map between "
          "collectives must not differ";
    for (const int r : {std::min(rank_, waits.rank), std::max(rank_, waits.rank)}) {
      const std::string& threw = r == rank_ ? own_threw_ : from.threw;
      if (!threw.empty()) reasons += formatted("; rank {} had thrown: {}", r, threw);
    }
    return "ranks differ: " + lower + ", " + upper + reasons;
  }
  return {};
}

std::string Peers::end_of(int r, double since, double time) {
  if (!others_.empty() && other(r).has_left) {
    if (time - std::max(other(r).left_at, since) <= peers::left_patience) return {};
    return formatted("rank {} has ended{}", r, threw_text(r));
  }
  if (!transport_.is_gone(r)) return {};
  double& gone_at = other(r).gone_at;
  if (gone_at == 0) gone_at = time;
  if (time - gone_at <= peers::gone_patience) return {};
  return formatted("rank {} is gone: its process was killed or crashed", r);
}

std::string Peers::missing(const Place& place, std::span<const Transfer> waiting,
                           double seconds) const {
  std::string ranks, places;
  constexpr std::size_t named = 8;
  Vec<int> added;
  const auto add = [&](int r) {
    if (r == rank_ || std::find(added.begin(), added.end(), r) != added.end()) return;
    added.push_back(r);
    if (added.size() > named) return;
    ranks += formatted("{}{}", added.size() == 1 ? "" : ", ", r);
    places += threw_text(r);
    if (others_.empty()) return;
    const Other& from = others_[static_cast<std::size_t>(r)];
    if (from.has_waited && !from.waits_at(place))
      places += formatted("; rank {} was waiting at {}", r, from.waits.text);
  };
  const bool needs_all =
      place.kind != ExchangeKind::permute && place.kind != ExchangeKind::all_to_all;
  for (int m = 0; m < place.group->size && needs_all; ++m) {
    const int r = place.group->rank(m);
    if (others_.empty() || !others_[static_cast<std::size_t>(r)].waits_at(place)) add(r);
  }
  if (added.empty())
    for (const Transfer& t : waiting)
      if (t.active) add(t.peer);
  if (added.size() > named) ranks += formatted(" and {} more", added.size() - named);
  return formatted("{} {} did not come within {} s", added.size() == 1 ? "rank" : "ranks", ranks,
                   seconds) +
         places;
}

}  // namespace vt::detail
