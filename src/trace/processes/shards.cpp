// Shards: threads of one process that are ranks of their own.
#include "shards.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/error.hpp>

#include "../base/environment.hpp"
#include "../base/locks.hpp"
#include "combine.hpp"
#include "exchanges.hpp"

namespace vt::detail {

namespace shards {

enum class Kind : std::uint8_t { all_reduce, all_gather, all_to_all, permute };

/// A collective that a shard has come to.
struct Call {
  Kind kind = Kind::all_reduce;
  RankReduction how = RankReduction::sum;
  DType dtype = DType::f32;
  const void* given = nullptr;
  void* got = nullptr;
  std::size_t size = 0;  ///< elements of a sum, else bytes
  std::span<const std::int64_t> sources = {};
  const CollectiveSite* site = nullptr;

  bool is_same(const Call& other) const {
    return kind == other.kind && how == other.how && dtype == other.dtype && size == other.size &&
           std::equal(sources.begin(), sources.end(), other.sources.begin(), other.sources.end());
  }
};

/// What the shards throw that find out that another one failed.
struct AnotherFailed {};

inline constinit thread_local Shard* of_thread = nullptr;

}  // namespace shards

/// The shards of a process. Those that wait sleep; the last to come to a collective does it for
/// all.
class Shard::Team {
 public:
  Team(World& world, int shards)
      : world_(world),
        members_(static_cast<std::size_t>(shards)),
        processors_(std::max(
            1, static_cast<int>(std::thread::hardware_concurrency()) / world.ranks_of_host())),
        free_turns_(processors_) {}

  int shards() const { return static_cast<int>(members_.size()); }
  int rank_of(int shard) const { return world_.rank() * shards() + shard; }

  void run(int shard, FunctionRef<void(int)> body) noexcept {
    Shard self(*this, shard);
    const auto before = std::exchange(shards::of_thread, &self);
    const bool had_one = std::exchange(has_one_processor, shards() >= processors_);
    const OwnWorld own(world_);
    const WorldCall::Member in_call(call_);
    try {
      {
        std::unique_lock hold(mutex_);
        ready_.push_back(shard);
        give_turns();
        wait_for_turn(hold, shard);
      }
      body(shard);
      const std::lock_guard hold(mutex_);
      ++ended_;
      check_ends();
      leave_turn(shard);
    } catch (const shards::AnotherFailed&) {
    } catch (...) {
      fail(std::current_exception());
    }
    shards::of_thread = before;
    has_one_processor = had_one;
  }
  /// Wakes all, who then throw.
  void fail(std::exception_ptr error) noexcept {
    const std::lock_guard hold(mutex_);
    if (!error_) error_ = std::move(error);
    for (Member& m : members_) m.wake.notify_one();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

  /// The shard's collective, once all have come to theirs.
  void meet(int shard, const shards::Call& call) {
    std::unique_lock hold(mutex_);
    member(shard).call = call;
    if (++arrived_ < shards()) {
      check_ends();
      leave_turn(shard);
      return wait_for_turn(hold, shard);
    }
    if (error_) throw shards::AnotherFailed();
    for (const Member& m : members_)
      if (!m.call.is_same(call))
        fail_with(ErrorKind::backend, call,
                  "another shard of this process is at " + m.call.site->text());
    hold.unlock();  // the others sleep
    exchange(call);
    hold.lock();
    arrived_ = 0;
    for (int other = 0; other < shards(); ++other)
      if (other != shard) ready_.push_back(other);
    give_turns();
  }

 private:
  struct Member {
    std::condition_variable_any wake;
    bool has_turn = false;
    shards::Call call;
  };
  Member& member(int shard) { return members_[static_cast<std::size_t>(shard)]; }
  const void* given(int shard) { return member(shard).call.given; }
  void* got(int shard) { return member(shard).call.got; }

  [[noreturn]] static void fail_with(ErrorKind kind, const shards::Call& call,
                                     const std::string& what) {
    detail::fail(kind, call.site->text() + ": " + what, call.site->where);
  }

  // With the mutex held.
  /// Throws where some shards have ended, and all others wait for them.
  void check_ends() const {
    if (arrived_ > 0 && ended_ > 0 && arrived_ + ended_ == shards())
      throw Error(ErrorKind::backend,
                  "vt::shard_map: shards of one process came to different collectives");
  }
  void give_turns() {
    while (free_turns_ > 0 && next_ready_ < ready_.size()) {
      Member& m = member(ready_[next_ready_++]);
      m.has_turn = true;
      --free_turns_;
      m.wake.notify_one();
    }
    if (next_ready_ == ready_.size()) ready_.clear(), next_ready_ = 0;
  }
  void leave_turn(int shard) {
    member(shard).has_turn = false;
    ++free_turns_;
    give_turns();
  }
  void wait_for_turn(std::unique_lock<Mutex>& hold, int shard) {
    Member& own = member(shard);
    own.wake.wait(hold, [&] { return own.has_turn || error_; });
    if (error_) throw shards::AnotherFailed();
  }

  RankGroup processes() const { return {0, 1, world_.size(), world_.rank()}; }
  /// Memory for one collective.
  unsigned char* take(std::size_t bytes) {
    return static_cast<unsigned char*>(scratch_.take(bytes));
  }

  void exchange(const shards::Call& call) {
    switch (call.kind) {
      case shards::Kind::all_reduce: reduce(call); break;
      case shards::Kind::all_gather: gather(call); break;
      case shards::Kind::all_to_all: transpose(call); break;
      case shards::Kind::permute: permute(call); break;
    }
    scratch_.trim();
  }

  /// In blocks, of which all of a tree fits a cache.
  void reduce(const shards::Call& call) {
    const DType wide = combined_dtype(call.dtype);
    const CombineLoop combine = combine_loop(call.how, call.dtype);
    if (!combine) fail_with(ErrorKind::dtype, call, "complex numbers have neither max nor min");
    const std::size_t width = size_of(wide), own_width = size_of(call.dtype);
    const bool widens = wide != call.dtype;
    constexpr std::size_t block = 1024;
    const auto n = static_cast<std::size_t>(shards());
    unsigned char* const sum = take((call.size + n * block) * width);
    unsigned char* const parts = sum + call.size * width;
    const auto part = [&](std::size_t k) { return parts + k * block * width; };
    for (std::size_t first = 0; first < call.size; first += block) {
      const std::size_t count = std::min(block, call.size - first);
      for (std::size_t k = 0; k < n; ++k) {
        const unsigned char* const from =
            exchanges::at(given(static_cast<int>(k)), first * own_width);
        if (widens) widen_halves(call.dtype, from, reinterpret_cast<float*>(part(k)), count);
        else std::memcpy(part(k), from, count * width);
      }
      for (std::size_t distance = 1; distance < n; distance *= 2)
        for (std::size_t k = 0; k + distance < n; k += 2 * distance)
          combine(part(k), part(k), part(k + distance), count);
      std::memcpy(sum + first * width, part(0), count * width);
    }
    world_.all_reduce(processes(), call.how, wide, sum, sum, static_cast<std::int64_t>(call.size),
                      *call.site);
    for (int k = 0; k < shards(); ++k)
      if (widens) round_to_halves(call.dtype, reinterpret_cast<float*>(sum), got(k), call.size);
      else exchanges::copy(got(k), sum, call.size * width);
  }

  void gather(const shards::Call& call) {
    const std::size_t own = call.size * members_.size();
    unsigned char* const row = take(own);
    for (int k = 0; k < shards(); ++k)
      exchanges::copy(row + static_cast<std::size_t>(k) * call.size, given(k), call.size);
    world_.all_gather(processes(), row, got(0), own, *call.site);
    const std::size_t all = own * static_cast<std::size_t>(world_.size());
    for (int k = 1; k < shards(); ++k) exchanges::copy(got(k), got(0), all);
  }

  /// What goes from one process to another lies in the order of the shards that give it, then of
  /// those that get it.
  void transpose(const shards::Call& call) {
    const std::size_t n = members_.size(), processes = static_cast<std::size_t>(world_.size()),
                      bytes = call.size, all = processes * n * n * bytes;
    unsigned char* const out = take(2 * all);
    unsigned char* const in = out + all;
    for (std::size_t p = 0; p < processes; ++p)
      for (std::size_t k = 0; k < n; ++k)
        exchanges::copy(out + (p * n + k) * n * bytes,
                        exchanges::at(given(static_cast<int>(k)), p * n * bytes), n * bytes);
    world_.all_to_all(this->processes(), out, in, n * n * bytes, *call.site);
    for (std::size_t p = 0; p < processes; ++p)
      for (std::size_t from = 0; from < n; ++from)
        for (std::size_t to = 0; to < n; ++to)
          exchanges::copy(exchanges::at(got(static_cast<int>(to)), (p * n + from) * bytes),
                          in + ((p * n + from) * n + to) * bytes, bytes);
  }

  /// In rounds, in each of which a process sends at most one array, and gets at most one.
  void permute(const shards::Call& call) {
    const std::size_t bytes = call.size;
    const int n = shards(), own = world_.rank();
    unsigned char* const kept = take((members_.size() + 1) * bytes);  // a result may lie there too
    unsigned char* const unused = kept + members_.size() * bytes;
    const auto kept_of = [&](int shard) { return kept + static_cast<std::size_t>(shard) * bytes; };
    for (int k = 0; k < n; ++k) exchanges::copy(kept_of(k), given(k), bytes);
    struct Message {
      int from, to;
    };
    Vec<Message> left;  // between processes
    for (int to = 0; to < n * world_.size(); ++to) {
      const int from = static_cast<int>(call.sources[static_cast<std::size_t>(to)]);
      if (from >= 0 && from / n != to / n) left.push_back({from, to});
      else if (to / n != own) continue;
      else if (from < 0) std::memset(got(to % n), 0, bytes);
      else exchanges::copy(got(to % n), kept_of(from % n), bytes);
    }
    Vec<std::int64_t> sources(static_cast<std::size_t>(world_.size()));
    Vec<char> sends(static_cast<std::size_t>(world_.size()));
    while (!left.empty()) {
      std::fill(sources.begin(), sources.end(), -1);
      std::fill(sends.begin(), sends.end(), 0);
      const void* out = kept;
      void* in = unused;
      std::size_t later = 0;
      for (const Message m : left) {
        const int giver = m.from / n, taker = m.to / n;
        std::int64_t& source = sources[static_cast<std::size_t>(taker)];
        char& is_taken = sends[static_cast<std::size_t>(giver)];
        if (source >= 0 || is_taken) {
          left[later++] = m;
          continue;
        }
        source = giver;
        is_taken = 1;
        if (giver == own) out = kept_of(m.from % n);
        if (taker == own) in = got(m.to % n);
      }
      left.resize(later);
      world_.permute(processes(), {sources.data(), sources.size()}, out, in, bytes, *call.site);
    }
  }

  World& world_;
  const std::uint64_t call_ = WorldCall::token();
  Mutex mutex_;
  std::vector<Member> members_;
  Vec<int> ready_;  ///< that wait for a turn to compute, from next_ready_ on
  std::size_t next_ready_ = 0;
  const int processors_;
  int free_turns_, arrived_ = 0, ended_ = 0;
  std::exception_ptr error_;
  ScratchMemory scratch_;
};

Shard* Shard::current() { return shards::of_thread; }
int Shard::rank() const { return team_.rank_of(index_); }

void Shard::all_reduce(const RankGroup&, RankReduction how, DType dtype, const void* given,
                       void* got, std::int64_t elements, const CollectiveSite& site) {
  team_.meet(index_, {shards::Kind::all_reduce,
                      how,
                      dtype,
                      given,
                      got,
                      static_cast<std::size_t>(elements),
                      {},
                      &site});
}
void Shard::all_gather(const RankGroup&, const void* given, void* got, std::size_t bytes,
                       const CollectiveSite& site) {
  team_.meet(
      index_,
      {.kind = shards::Kind::all_gather, .given = given, .got = got, .size = bytes, .site = &site});
}
void Shard::all_to_all(const RankGroup&, const void* given, void* got, std::size_t bytes,
                       const CollectiveSite& site) {
  team_.meet(
      index_,
      {.kind = shards::Kind::all_to_all, .given = given, .got = got, .size = bytes, .site = &site});
}
void Shard::permute(const RankGroup&, std::span<const std::int64_t> sources, const void* given,
                    void* got, std::size_t bytes, const CollectiveSite& site) {
  team_.meet(index_, {.kind = shards::Kind::permute,
                      .given = given,
                      .got = got,
                      .size = bytes,
                      .sources = sources,
                      .site = &site});
}

void run_shards(World& world, int shards, FunctionRef<void(int)> body, CallSite where) {
  const Busy busy;
  Shard::Team team(world, shards);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(shards));
  try {
    for (int k = 1; k < shards; ++k)
      threads.emplace_back([&team, &body, k] {
        const BusyForAnother with_caller;
        team.run(k, body);
      });
  } catch (const std::system_error& e) {
    team.fail(std::make_exception_ptr(
        Error(ErrorKind::backend, formatted("vt::shard_map: the system gives no {} threads: {}{}",
                                            shards, e.what(), at(where)))));
  }
  team.run(0, body);
  for (std::thread& thread : threads) thread.join();
  team.rethrow();
}

}  // namespace vt::detail
