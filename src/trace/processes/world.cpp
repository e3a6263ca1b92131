// World: the ranks that run one program together, and the collectives between them: which message
// belongs to which collective, how long ranks wait for each other, and what they say of it.
#include "world.hpp"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/environment.hpp"
#include "../base/hash_map.hpp"
#include "../base/locks.hpp"
#include "../base/shared_library.hpp"
#include "combine.hpp"
#include "exchanges.hpp"
#include "loopback.hpp"
#include "mpi_transport.hpp"
#include "recorder.hpp"

namespace vt::detail {

namespace worlds {

// Seconds.
constexpr double spin = 50e-6;         // then others may have the processor between two polls
constexpr double nap_after = 20e-3;    // then it is left for longer
constexpr double hear_every = 100e-6;  // notices are looked for
constexpr double judge_every = 5e-3;   // what is known of the others is looked through
constexpr double tell_after = 0.25;    // the others are told where this rank waits
constexpr double left_patience = 0.2;  // what a rank sent before it left has come by then
constexpr double gone_patience = 1;    // and so has the notice of one that ended in order
constexpr unsigned collectives_between = 64;  // without a look at notices

using Kind = ExchangeKind;
using Part = ExchangePart;

inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 32);
}
inline std::uint64_t hash_of_text(const std::string& text) {
  std::uint64_t hash = mixed(0, text.size());
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    hash = mixed(hash, word);
  }
  std::uint64_t rest = 0;
  if (i < text.size()) std::memcpy(&rest, text.data() + i, text.size() - i);
  return mixed(hash, rest);
}

/// A group of ranks in which this one has been at collectives.
struct Group {
  int first, stride, size;
  std::uint64_t hash;
  std::int64_t number = 0;  ///< of the last collective
  std::int64_t base = 0;    ///< what it was as the call began
};

/// What is known of another rank.
struct Other {
  bool has_left = false;
  double left_at = 0;  ///< when that was heard
  double gone_at = 0;  ///< when its process was first seen to be gone
  Notice waits;        ///< the last one
  bool has_waited = false;
  // The last error that ended a call there.
  std::string threw;
  std::int64_t threw_call = 0;
  bool knows_all = false;  ///< all notices of it have come
  struct Reached {
    std::uint64_t group;
    std::int64_t number;
  };
  Vec<Reached> reached;
  std::int64_t reached_in(std::uint64_t group) const {
    for (const Reached& r : reached)
      if (r.group == group) return r.number;
    return 0;
  }
};

/// The World of a rank that is a thread.
inline constinit thread_local World* of_thread = nullptr;

/// The call that this thread is in, or what lies between two; another one in each thread, so that
/// threads with calls without collectives disturb none. And how many it is in, one in the other.
inline constinit thread_local std::uint64_t call_token = 0;
inline constinit thread_local int call_depth = 0;
inline constinit std::atomic<std::uint64_t> threads_with_calls{0};
inline void next_token() {
  constexpr int bits_of_calls = 40;
  if (call_token == 0) call_token = (threads_with_calls.fetch_add(1) + 1) << bits_of_calls;
  ++call_token;
}

}  // namespace worlds

struct World::State final : Patience {
  explicit State(std::unique_ptr<Transport> t)
      : transport(std::move(t)), rank(transport->rank()), size(transport->size()) {
    const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
    crowded = processors > 0 && transport->ranks_of_host() > processors;
    if (crowded) polls_between = 1;
    deadline.store(static_cast<double>(deadline_from_environment()));
    const std::lock_guard first_lock(mutex);  // forks are counted from here on at the latest
    forks = forks_behind();
  }

  std::unique_ptr<Transport> transport;
  const int rank, size;
  bool crowded = false;  ///< more ranks than processors
  int forks = 0;
  std::atomic<double> deadline{0};
  std::atomic<bool> busy{false};
  std::atomic<bool> dead{false};
  std::string dead_message;  ///< of what ended this world
  ScratchMemory scratch;
  Recorder* recorder = nullptr;

  HashMap<std::uint64_t, bool> compared;  ///< hashes of texts that all ranks have
  std::optional<bool> mixed;              ///< see is_mixed
  Vec<worlds::Group> groups;
  std::size_t last_group = 0;
  Vec<worlds::Other> others;  ///< by rank; empty until the first notice
  unsigned collectives = 0;
  std::uint64_t call_token = ~std::uint64_t{0};  ///< of the thread that was last at a collective
  std::int64_t call = 0;  ///< with collectives, or ended by an error; of those so far
  bool has_heard_errors = false;
  std::string own_threw;

  // Of the collective at which the rank is.
  const CollectiveSite* site = nullptr;
  const RankGroup* group = nullptr;
  worlds::Kind kind = worlds::Kind::barrier;
  std::uint64_t group_hash = 0, what = 0;
  std::int64_t number = 0, base = 0;
  // Of the wait in it.
  std::uint64_t arrivals_before = 0;
  bool waits = false;
  double since = 0, next_hear = 0, next_judge = 0, next_tell = 0;

  // fail_all of another thread than the one that waits
  Mutex mutex;
  std::atomic<bool> has_failed{false};
  std::string failure;

  void enter() {
    while (busy.exchange(true, std::memory_order_acquire)) ::sched_yield();
  }
  void leave() { busy.store(false, std::memory_order_release); }

  /// A child of fork has the memory of a rank, but is none.
  bool is_in_child() const { return size > 1 && forks != forks_behind(); }

  worlds::Group& group_of(const RankGroup& g) {
    const auto is_it = [&](const worlds::Group& known) {
      return known.first == g.first && known.stride == g.stride && known.size == g.size;
    };
    if (last_group < groups.size() && is_it(groups[last_group])) return groups[last_group];
    for (last_group = 0; last_group < groups.size(); ++last_group)
      if (is_it(groups[last_group])) return groups[last_group];
    std::uint64_t hash = worlds::mixed(1, static_cast<std::uint64_t>(g.first));
    hash = worlds::mixed(hash, static_cast<std::uint64_t>(g.stride));
    hash = worlds::mixed(hash, static_cast<std::uint64_t>(g.size));
    groups.push_back({g.first, g.stride, g.size, hash});
    return groups.back();
  }
  void begin_call() {
    call_token = worlds::call_token;
    ++call;
    for (worlds::Group& g : groups) g.base = g.number;
  }

  [[gnu::noinline]] void refuse() {
    if (dead.load(std::memory_order_acquire)) throw Error(ErrorKind::backend, dead_message);
    fail(ErrorKind::backend,
         site->text() +
             ": this process was forked from one of those that run together, and is "
             "none of them",
         site->where);
  }

  void end_with(const std::string& message) {
    dead_message = message;
    dead.store(true, std::memory_order_release);
  }
  /// Ends the collective and this world.
  [[noreturn]] void give_up(const std::string& reason) {
    const std::string line = at(site->where);
    end_with(site->text() + ": " + reason + (reason.ends_with(line) ? "" : line));
    throw Error(ErrorKind::backend, dead_message);
  }
  /// … and with it those of the others, who need not find out themselves.
  [[noreturn]] void give_up_all(const std::string& reason) {
    Notice over;
    over.kind = Notice::Kind::over;
    over.rank = rank;
    over.text = reason;
    transport->tell_all(over);
    give_up(reason);
  }

  /// … as the transport says why.
  [[noreturn]] void fail_at_site(const std::string& reason) {
    tell_failure(reason);
    give_up(reason);
  }

  worlds::Other& other(int r) {
    if (others.empty()) others.resize(static_cast<std::size_t>(size));
    return others[static_cast<std::size_t>(r)];
  }
  void hear_all() {
    Notice notice;
    while (transport->hear(notice)) {
      if (notice.rank < 0 || notice.rank >= size) continue;
      worlds::Other& from = other(notice.rank);
      switch (notice.kind) {
        case Notice::Kind::failed:
          give_up(formatted("rank {} failed: {}", notice.rank, notice.text));
        case Notice::Kind::over: give_up(notice.text);
        case Notice::Kind::threw:
          if (from.threw_call != notice.call || from.knows_all) from.reached.clear();
          from.threw_call = notice.call;
          from.knows_all = notice.group == 0;
          if (!from.knows_all) from.reached.push_back({notice.group, notice.number});
          from.threw = std::move(notice.text);
          has_heard_errors = true;
          break;
        case Notice::Kind::left:
          from.has_left = true;
          from.left_at = monotonic_seconds();
          break;
        case Notice::Kind::waits:
          from.has_waited = true;
          from.waits = std::move(notice);
          next_judge = 0;
          break;
      }
    }
  }

  static std::uint64_t size_of_permute(std::span<const std::int64_t> sources, std::size_t bytes) {
    std::uint64_t size = bytes;
    for (const std::int64_t source : sources)
      size = worlds::mixed(size, static_cast<std::uint64_t>(source));
    return size;
  }

  void look(std::span<const Transfer> waiting) override {
    const double time = monotonic_seconds();
    if (!waits || arrivals != arrivals_before) {
      arrivals_before = arrivals;
      waits = true;
      since = time;
      next_hear = time + worlds::spin;
      next_judge = time + worlds::judge_every;
      next_tell = time + std::min(worlds::tell_after, deadline.load() / 8);
    } else if (time >= next_hear) {
      wait_on(time, waiting);
    }
    if (crowded || time - since > worlds::spin) {
      ::sched_yield();
      if (time - since > worlds::nap_after) {
        const timespec nap = {0, 50'000};
        ::nanosleep(&nap, nullptr);
      }
    }
  }
  [[gnu::noinline]] void wait_on(double time, std::span<const Transfer> waiting) {
    next_hear = time + worlds::hear_every;
    if (has_failed.load(std::memory_order_acquire)) {
      tell_failure_of_another();
      throw Error(ErrorKind::backend, dead_message);
    }
    hear_all();
    if (has_heard_errors) look_for_errors();
    if (time < next_judge) return;
    next_judge = time + worlds::judge_every;
    look_for_difference();
    for (const Transfer& t : waiting)
      if (t.active) look_for_end(t.peer, time);
    const double waited = time - since, most = deadline.load();
    if (time >= next_tell) {
      tell_that_it_waits(waited);
      next_tell = time + most / 2;
    }
    if (waited > most) give_up_all(missing(waiting, most));
  }

  /// Another thread called fail_all meanwhile.
  void tell_failure_of_another() {
    if (dead.load()) return;
    std::string message;
    {
      const std::lock_guard hold(mutex);
      message = failure;
    }
    tell_failure(message);
  }
  void tell_failure(const std::string& message) {
    Notice notice;
    notice.rank = rank;
    notice.text = message;
    transport->tell_all(notice);
    end_with("vt: this rank failed before: " + message);
  }

  /// An exchange that was begun and not yet waited for.
  struct Begun {
    const void* got = nullptr;
    RankGroup group;
    std::uint64_t group_hash = 0, what = 0;
    std::int64_t number = 0, base = 0;
    int tag = 0;
    Transfer transfers[2];
  };
  Vec<std::unique_ptr<Begun>> begun, spare;  ///< the transports know where transfers lie
  std::unique_ptr<Begun> take_begun(const void* got) {
    for (std::unique_ptr<Begun>& b : begun)
      if (b->got == got) {
        std::unique_ptr<Begun> found = std::move(b);
        begun.erase(&b);
        return found;
      }
    return nullptr;
  }

  /// While it exists the rank is at a collective.
  class Call {
   public:
    Call(State& state, worlds::Kind kind, const RankGroup& group, std::uint64_t size,
         const CollectiveSite& site)
        : Call(state, site) {
      if (group.size == 1) return;
      if (state.call_token != worlds::call_token) state.begin_call();
      worlds::Group& known = state.group_of(group);
      state.group = &group;
      state.group_hash = known.hash;
      state.number = ++known.number;
      state.base = known.base;
      state.kind = kind;
      constexpr int bits_of_number = 40;
      std::uint64_t what =
          worlds::mixed(known.hash, static_cast<std::uint64_t>(state.number) ^
                                        static_cast<std::uint64_t>(state.call) << bits_of_number);
      what = worlds::mixed(what, static_cast<std::uint64_t>(kind));
      state.what = worlds::mixed(what, size);
      channel_.tag = static_cast<int>(state.what >> 50);
      state.waits = false;
      if (++state.collectives % worlds::collectives_between == 0) state.hear_all();
    }
    /// Of one that was begun before.
    Call(State& state, const Begun& b, const CollectiveSite& site) : Call(state, site) {
      state.group = &b.group;
      state.group_hash = b.group_hash;
      state.number = b.number;
      state.base = b.base;
      state.kind = worlds::Kind::permute;
      state.what = b.what;
      channel_.tag = b.tag;
      state.waits = false;
    }
    ~Call() { state_.scratch.trim(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    /// f(channel). If the transport fails, so does this rank. `facts`: of a Recorder, asked only
    /// where there is one.
    template <class Facts, class F>
    void run(Facts&& facts, F&& f) {
      if (state_.recorder) [[unlikely]] {
        const double begin = monotonic_seconds();
        run(f);
        state_.recorder->note(facts(), *state_.site, begin, monotonic_seconds());
      } else {
        run(f);
      }
    }
    template <class F>
    void run(F&& f) {
      try {
        f(channel_);
      } catch (const Error& e) {
        if (state_.dead.load()) throw;
        state_.fail_at_site(e.what());
      } catch (const std::bad_alloc&) {
        state_.fail_at_site("no memory is left");
      }
    }

   private:
    Call(State& state, const CollectiveSite& site)
        : hold_(state), state_(state), channel_{*state.transport, state, state.scratch} {
      state.site = &site;
      if (state.dead.load(std::memory_order_relaxed) || state.is_in_child()) state.refuse();
    }
    struct Hold {
      explicit Hold(State& s) : state(s) { state.enter(); }
      ~Hold() {
        if (state.has_failed.load(std::memory_order_relaxed)) state.tell_failure_of_another();
        state.leave();
      }
      State& state;
    };
    Hold hold_;
    State& state_;
    Channel channel_;
  };

  static Recorder::Facts facts_of(const State& s, worlds::Kind kind, const RankGroup& group,
                                  std::size_t bytes) {
    return {kind, worlds::Part::whole, group, bytes, 0, 1, {}, nullptr, s.number};
  }

  // Of the process. It is never destroyed: threads may be at a collective while the process ends.
  static inline constinit World* of_process = nullptr;
  static inline constinit std::terminate_handler terminate_before = nullptr;

  static World& make_process_world() {
    std::unique_ptr<Transport> transport;
    try {
      transport = mpi_transport();
    } catch (const Error& e) {
      throw Error(e.kind(), std::string("vt: ") + e.what());
    }
    const bool has_others = transport && transport->size() > 1;
    const bool is_of_mpi = transport != nullptr;
    if (!transport) transport = std::move(loopback_transports(1)[0]);
    of_process = new World(std::move(transport));
    if (is_of_mpi) {
      stay_loaded();  // for what is called at the end
      std::atexit(end_process);
    }
    if (has_others) terminate_before = std::set_terminate(terminate_process);
    return *of_process;
  }
  void tell_that_it_leaves() {
    Notice notice;
    notice.kind = Notice::Kind::left;
    notice.rank = rank;
    transport->tell_all(notice);
  }
  static void end_process() {
    State& s = *of_process->state_;
    if (s.is_in_child()) return;
    if (s.busy.exchange(true)) return;  // another thread is at a collective, and stays there
    const bool has_failed = s.dead.load();
    if (!has_failed) s.end_with("vt: this process is ending");
    s.tell_that_it_leaves();
    constexpr double least = 5;  // seconds, for those that do not know of the failure yet
    s.transport->finish(has_failed, std::max(least, s.deadline.load()));
  }
  /// An exception that nothing catches: the launcher would end the others before they knew why.
  [[noreturn]] static void terminate_process() {
    std::string message = "it was ended by std::terminate";
    if (std::current_exception()) try {
        throw;
      } catch (const std::exception& e) {
        message = e.what();
      } catch (...) {
        message = "an exception of another type than std::exception";
      }
    of_process->fail_all(message);
    State& s = *of_process->state_;
    constexpr double patience = 2;  // seconds
    if (!s.is_in_child() && !s.busy.exchange(true)) {
      s.tell_that_it_leaves();
      s.transport->finish(true, patience);
    }
    if (terminate_before) terminate_before();
    std::abort();
  }

  bool is_member(int r) const {
    for (int m = 0; m < group->size; ++m)
      if (group->rank(m) == r) return true;
    return false;
  }
  /// Can ranks that are in step be at this rank's collective, and have been at that one?
  bool is_out_of_step(const Notice& with) const {
    if (with.call == call) return with.base != base || (with.number == number && with.what != what);
    return with.call < call ? with.number > base : number > with.base;
  }
  void look_for_difference() {
    for (const worlds::Other& from : others) {
      if (!from.has_waited || from.waits.group != group_hash || !is_out_of_step(from.waits) ||
          !is_member(from.waits.rank))
        continue;
      std::string own =
          formatted("rank {} is at {}{}", rank, site->text(), in_passing(site->where));
      std::string others_text = formatted("rank {} is at {}", from.waits.rank, from.waits.text);
      if (from.waits.rank < rank) std::swap(own, others_text);
      std::string reasons;
      for (int r = 0; r < size; ++r) {
        const std::string& threw = r == rank ? own_threw : other(r).threw;
        if ((r == rank || r == from.waits.rank) && !threw.empty())
          reasons += formatted("; rank {} had thrown: {}", r, threw);
      }
      give_up_all("ranks differ: " + own + ", " + others_text + reasons);
    }
  }
  /// A member whose call was ended by an error before it came to this collective never does: its
  /// next one belongs to another call.
  void look_for_errors() {
    for (int r = 0; r < size; ++r) {
      const worlds::Other& from = other(r);
      if (r == rank || !from.knows_all || from.threw_call < call ||
          from.reached_in(group_hash) >= number || !is_member(r))
        continue;
      give_up_all(formatted("rank {} failed: {}", r, from.threw));
    }
  }
  /// What is known of why a rank does not come.
  std::string threw_text(int r) {
    return others.empty() || other(r).threw.empty()
               ? ""
               : formatted("; it had thrown: {}", other(r).threw);
  }
  void look_for_end(int r, double time) {
    worlds::Other* const known = others.empty() ? nullptr : &other(r);
    if (known && known->has_left) {
      if (time - std::max(known->left_at, since) > worlds::left_patience)
        give_up_all(formatted("rank {} has ended{}", r, threw_text(r)));
      return;
    }
    if (!transport->is_gone(r)) return;
    double& gone_at = other(r).gone_at;
    if (gone_at == 0) gone_at = time;
    if (time - gone_at > worlds::gone_patience)
      give_up_all(formatted("rank {} is gone: its process was killed or crashed", r));
  }
  void tell_that_it_waits(double waited) {
    Notice notice;
    notice.kind = Notice::Kind::waits;
    notice.rank = rank;
    notice.group = group_hash;
    notice.what = what;
    notice.number = number;
    notice.call = call;
    notice.base = base;
    notice.seconds = waited;
    notice.text = site->text() + in_passing(site->where);
    transport->tell_all(notice);
  }
  /// Who did not come: what members do not wait at the same place; else whom this rank waits for.
  std::string missing(std::span<const Transfer> waiting, double most) {
    std::string ranks, places;
    int count = 0;
    const auto add = [&](int r) {
      if (r == rank) return;
      constexpr int named = 8;
      if (++count > named) return;
      ranks += formatted("{}{}", count == 1 ? "" : ", ", r);
      places += threw_text(r);
      if (others.empty() || !other(r).has_waited) return;
      const Notice& last = other(r).waits;
      if (last.group == group_hash && last.what == what) return;
      places += formatted("; rank {} was waiting at {}", r, last.text);
    };
    const bool needs_all = kind != worlds::Kind::permute && kind != worlds::Kind::all_to_all;
    for (int m = 0; m < group->size && needs_all; ++m) {
      const int r = group->rank(m);
      const bool same = !others.empty() && other(r).has_waited &&
                        other(r).waits.group == group_hash && other(r).waits.what == what;
      if (!same) add(r);
    }
    if (count == 0)
      for (const Transfer& t : waiting)
        if (t.active) add(t.peer);
    if (count > 8) ranks += formatted(" and {} more", count - 8);
    return formatted("{} {} did not come within {} s", count == 1 ? "rank" : "ranks", ranks, most) +
           places;
  }
};

World::World(std::unique_ptr<Transport> transport)
    : state_(std::make_unique<State>(std::move(transport))) {}

World::~World() { state_->tell_that_it_leaves(); }

int World::rank() const { return state_->rank; }
int World::size() const { return state_->size; }
const char* World::transport_name() const { return state_->transport->name(); }
int World::ranks_of_host() const { return state_->transport->ranks_of_host(); }

void World::set_deadline(double seconds) { state_->deadline.store(seconds); }
double World::deadline() const { return state_->deadline.load(); }

void World::all_reduce(const RankGroup& group, RankReduction how, DType dtype, const void* given,
                       void* got, std::int64_t elements, const CollectiveSite& site) {
  const auto n = static_cast<std::size_t>(elements);
  const std::uint64_t size =
      (n << 8) | (static_cast<std::uint64_t>(dtype) << 4) | static_cast<std::uint64_t>(how);
  State::Call call(*state_, worlds::Kind::all_reduce, group, size, site);
  if (how != RankReduction::sum && is_complex(dtype))
    fail(ErrorKind::dtype, site.text() + ": complex numbers have neither max nor min", site.where);
  const auto facts = [&] {
    Recorder::Facts f =
        State::facts_of(*state_, worlds::Kind::all_reduce, group, n * size_of(dtype));
    f.elements = n;
    f.width = size_of(combined_dtype(dtype));
    return f;
  };
  call.run(facts, [&](Channel& channel) {
    if (group.size > 1) exchanges::all_reduce(channel, group, how, dtype, given, got, n);
    else if (given != got && n) std::memcpy(got, given, n * size_of(dtype));
  });
}

void World::all_gather(const RankGroup& group, const void* given, void* got, std::size_t bytes,
                       const CollectiveSite& site) {
  State::Call call(*state_, worlds::Kind::all_gather, group, bytes, site);
  const auto facts = [&] {
    return State::facts_of(*state_, worlds::Kind::all_gather, group, bytes);
  };
  call.run(facts, [&](Channel& channel) {
    if (group.size > 1) exchanges::all_gather(channel, group, given, got, bytes);
    else if (given != got && bytes) std::memcpy(got, given, bytes);
  });
}

void World::all_to_all(const RankGroup& group, const void* given, void* got, std::size_t bytes,
                       const CollectiveSite& site) {
  State::Call call(*state_, worlds::Kind::all_to_all, group, bytes, site);
  const auto facts = [&] {
    return State::facts_of(*state_, worlds::Kind::all_to_all, group,
                           bytes * static_cast<std::size_t>(group.size));
  };
  call.run(facts, [&](Channel& channel) {
    if (group.size > 1) exchanges::all_to_all(channel, group, given, got, bytes);
    else if (given != got && bytes) std::memcpy(got, given, bytes);
  });
}

void World::permute(const RankGroup& group, std::span<const std::int64_t> sources,
                    const void* given, void* got, std::size_t bytes, const CollectiveSite& site) {
  State::Call call(*state_, worlds::Kind::permute, group, State::size_of_permute(sources, bytes),
                   site);
  const auto facts = [&] {
    Recorder::Facts f = State::facts_of(*state_, worlds::Kind::permute, group, bytes);
    f.sources = sources;
    return f;
  };
  call.run(facts, [&](Channel& channel) {
    exchanges::permute(channel, group, sources, given, got, bytes);
  });
}

void World::begin_permute(const RankGroup& group, std::span<const std::int64_t> sources,
                          const void* given, void* got, std::size_t bytes,
                          const CollectiveSite& site) {
  State& s = *state_;
  std::unique_ptr<State::Begun> b;
  if (s.spare.empty()) b = std::make_unique<State::Begun>();
  else b = std::move(s.spare.back()), s.spare.pop_back();
  State::Call call(s, worlds::Kind::permute, group, State::size_of_permute(sources, bytes), site);
  const auto facts = [&] {
    Recorder::Facts f = State::facts_of(s, worlds::Kind::permute, group, bytes);
    f.part = worlds::Part::begin;
    f.sources = sources;
    f.got = got;
    return f;
  };
  call.run(facts, [&](Channel& channel) {
    const bool waits =
        exchanges::begin_permute(channel, group, sources, given, got, bytes, b->transfers);
    b->got = got;
    b->group = group;
    b->group_hash = s.group_hash;
    b->what = s.what;
    b->number = s.number;
    b->base = s.base;
    b->tag = channel.tag;
    (waits ? s.begun : s.spare).push_back(std::move(b));
  });
}

void World::finish(const void* got, const CollectiveSite& site) {
  State& s = *state_;
  std::unique_ptr<State::Begun> b = s.take_begun(got);
  if (!b) {
    if (s.recorder) s.recorder->note_finished(got, site, monotonic_seconds());
    return;
  }
  State::Call call(s, *b, site);
  const auto facts = [&] {
    Recorder::Facts f = State::facts_of(s, worlds::Kind::permute, b->group, 0);
    f.part = worlds::Part::finish;
    f.got = got;
    return f;
  };
  call.run(facts, [&](Channel& channel) { exchanges::finish(channel, b->transfers); });
  s.spare.push_back(std::move(b));
}

void World::finish_all() noexcept {
  State& s = *state_;
  const auto text = [] { return std::string("vt::ppermute"); };
  while (!s.begun.empty()) {
    try {
      finish(s.begun[0]->got, {text, {}});
    } catch (...) {  // the error that is on its way says more
    }
  }
}

void World::compare(
    const std::string& text, FunctionRef<std::string()> shown,
    FunctionRef<std::string(const std::string& first, int rank, const std::string& own)> differs,
    const CollectiveSite& site) {
  const RankGroup all = {0, 1, size(), rank()};
  if (all.size == 1) return;
  const std::uint64_t hash = worlds::hash_of_text(text);
  if (state_->compared.contains(hash)) return;
  State::Call call(*state_, worlds::Kind::compare, all, 0, site);
  std::string first, another;
  std::size_t other = 0;
  call.run([&](Channel& channel) {
    // The greatest hash is that of all ranks, and so is the least one.
    const std::uint64_t own[2] = {hash, ~hash};
    std::uint64_t greatest[2];
    exchanges::all_reduce(channel, all, RankReduction::max, DType::u64, own, greatest, 2);
    if (greatest[0] == ~greatest[1]) {
      state_->compared.emplace(hash, true);
      return;
    }
    struct Text {
      std::uint64_t hash, bytes;
    };
    Vec<Text> texts(static_cast<std::size_t>(all.size));
    const std::string own_text = shown();
    const Text given = {hash, own_text.size()};
    exchanges::all_gather(channel, all, &given, texts.begin(), sizeof given);
    for (other = 1; texts[other].hash == texts[0].hash;) ++other;
    const auto text_of = [&](std::size_t r) {
      std::string got(texts[r].bytes, '\0');
      const auto root = static_cast<int>(r);
      if (root == all.own) got = own_text;
      exchanges::broadcast(channel, all, root, got.data(), got.size());
      return got;
    };
    first = text_of(0);
    another = text_of(other);
  });
  if (other != 0)
    fail(ErrorKind::transform, differs(first, static_cast<int>(other), another), site.where);
}

bool World::is_mixed(FunctionRef<std::string()> code, const CollectiveSite& site) {
  const RankGroup all = {0, 1, size(), rank()};
  if (all.size == 1) return false;
  if (!state_->mixed) {
    const std::uint64_t hash = worlds::hash_of_text(code());
    State::Call call(*state_, worlds::Kind::compare, all, 1, site);
    call.run([&](Channel& channel) {
      const std::uint64_t own[2] = {hash, ~hash};
      std::uint64_t greatest[2];
      exchanges::all_reduce(channel, all, RankReduction::max, DType::u64, own, greatest, 2);
      state_->mixed = greatest[0] != ~greatest[1];
    });
  }
  return *state_->mixed;
}
void World::count_as_mixed() { state_->mixed = true; }

void World::barrier(const CollectiveSite& site) {
  const RankGroup all = {0, 1, size(), rank()};
  State::Call call(*state_, worlds::Kind::barrier, all, 0, site);
  const auto facts = [&] { return State::facts_of(*state_, worlds::Kind::barrier, all, 0); };
  call.run(facts, [&](Channel& channel) {
    if (all.size > 1) exchanges::barrier(channel, all);
  });
}

void World::probe(FunctionRef<void(Channel&)> f, const CollectiveSite& site) {
  const RankGroup all = {0, 1, size(), rank()};
  State::Call call(*state_, worlds::Kind::probe, all, 0, site);
  call.run([&](Channel& channel) { f(channel); });
}

void World::set_recorder(Recorder* recorder) {
  state_->enter();
  state_->recorder = recorder;
  state_->leave();
}

void World::tell_error(const std::string& message) noexcept {
  State& s = *state_;
  if (size() == 1 || s.dead.load(std::memory_order_acquire)) return;
  if (s.is_in_child() || s.busy.exchange(true, std::memory_order_acquire))
    return;  // another thread is at a collective
  try {
    // A call that ends before its first collective counts, here as on those that came to it.
    if (s.call_token != worlds::call_token) s.begin_call();
    s.own_threw = message;
    Notice notice;
    notice.kind = Notice::Kind::threw;
    notice.rank = s.rank;
    notice.text = message;
    notice.call = s.call;
    for (const worlds::Group& g : s.groups) {
      notice.group = g.hash;
      notice.number = g.number;
      s.transport->tell_all(notice);
    }
    notice.group = 0;
    s.transport->tell_all(notice);
  } catch (...) {  // no room for a text: they find out at the deadline
  }
  s.leave();
}

WorldCall::WorldCall(World& world) : world_(world) {
  if (worlds::call_depth++ == 0) worlds::next_token();
}
WorldCall::~WorldCall() {
  if (--worlds::call_depth == 0) worlds::next_token();
}
std::uint64_t WorldCall::token() { return worlds::call_token; }
WorldCall::Member::Member(std::uint64_t token) : before_(std::exchange(worlds::call_token, token)) {
  ++worlds::call_depth;
}
WorldCall::Member::~Member() {
  --worlds::call_depth;
  worlds::call_token = before_;
}
void WorldCall::tell_error(const std::string& message) const noexcept {
  if (worlds::call_depth == 1) world_.tell_error(message);
}

void World::fail_all(const std::string& message) noexcept {
  State& s = *state_;
  if (s.dead.load(std::memory_order_acquire) || s.is_in_child()) return;
  if (s.busy.exchange(true, std::memory_order_acquire)) {
    // Another thread is at a collective: it tells them, and ends.
    const std::lock_guard hold(s.mutex);
    if (s.failure.empty()) s.failure = message;
    s.has_failed.store(true, std::memory_order_release);
    return;
  }
  if (!s.dead.load(std::memory_order_acquire)) s.tell_failure(message);
  s.leave();
}

OwnWorld::OwnWorld(World& world) : before_(std::exchange(worlds::of_thread, &world)) {}
OwnWorld::~OwnWorld() { worlds::of_thread = before_; }

World& World::current() {
  if (worlds::of_thread) return *worlds::of_thread;
  static World& process = State::make_process_world();
  return process;
}

bool World::has_several() {
  const World* const world = worlds::of_thread ? worlds::of_thread : State::of_process;
  return world && world->size() > 1;
}

}  // namespace vt::detail
