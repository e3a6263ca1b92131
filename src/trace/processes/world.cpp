// World: the ranks that run one program together, and the collectives between them: which message
// belongs to which collective, how long ranks wait for each other, and what they say of it.
#include "world.hpp"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/environment.hpp"
#include "../base/hash_map.hpp"
#include "../base/locks.hpp"
#include "combine.hpp"
#include "exchanges.hpp"
#include "peers.hpp"
#include "recorder.hpp"

namespace vt::detail {

namespace worlds {

// Seconds.
constexpr double spin = 50e-6;         // then others may have the processor between two polls
constexpr double nap_after = 20e-3;    // then it is left for longer
constexpr double hear_every = 100e-6;  // notices are looked for
constexpr double judge_every = 5e-3;   // what is known of the others is looked through
constexpr double tell_after = 0.25;    // the others are told where this rank waits
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
      : transport(std::move(t)),
        peers(*transport),
        rank(transport->rank()),
        size(transport->size()) {
    const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
    crowded = processors > 0 && transport->ranks_of_host() > processors;
    if (crowded) polls_between = 1;
    deadline.store(static_cast<double>(deadline_from_environment()));
    const std::lock_guard first_lock(mutex);  // forks are counted from here on at the latest
    forks = forks_behind();
  }

  std::unique_ptr<Transport> transport;
  Peers peers;
  const int rank, size;
  bool crowded = false;  ///< more ranks than processors
  int forks = 0;
  std::atomic<double> deadline{0};
  std::atomic<bool> busy{false};
  std::atomic<bool> dead{false}, has_ended{false};
  std::string dead_message;  ///< of what ended this world
  ScratchMemory scratch;
  Recorder* recorder = nullptr;
  const char* last_file = nullptr;
  std::uint64_t last_file_hash = 0;

  HashMap<std::uint64_t, bool> compared;  ///< hashes of texts that all ranks have
  std::optional<bool> mixed;              ///< see is_mixed
  Vec<worlds::Group> groups;
  std::size_t last_group = 0;
  unsigned collectives = 0;
  std::uint64_t call_token = ~std::uint64_t{0};  ///< of the thread that was last at a collective
  std::int64_t call = 0;  ///< with collectives, or ended by an error; of those so far

  Place place;  ///< the collective at which the rank is
  // Of the wait in it.
  std::uint64_t arrivals_before = 0;
  bool waits = false;
  double since = 0, next_hear = 0, next_judge = 0, next_tell = 0;

  // fail_all of another thread than the one that waits
  Mutex mutex;
  std::atomic<bool> has_failed{false};
  std::string failure;

  void enter() {
    // In a child of fork no other thread would leave.
    while (busy.exchange(true, std::memory_order_acquire) && !is_in_child()) ::sched_yield();
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
  std::uint64_t line_hash(CallSite where) {
    if (where.file != last_file) {
      last_file = where.file;
      last_file_hash = where.file ? worlds::hash_of_text(where.file) : 0;
    }
    return worlds::mixed(last_file_hash, static_cast<std::uint64_t>(where.line));
  }
  void begin_call() {
    call_token = worlds::call_token;
    ++call;
    for (worlds::Group& g : groups) g.base = g.number;
  }

  [[gnu::noinline]] void refuse() {
    if (dead.load(std::memory_order_acquire)) throw Error(ErrorKind::backend, dead_message);
    fail(ErrorKind::backend,
         place.site->text() +
             ": this process was forked from one of those that run together, and is "
             "none of them",
         place.site->where);
  }

  void end_with(const std::string& message) {
    dead_message = message;
    dead.store(true, std::memory_order_release);
  }
  /// Ends the collective and this world.
  [[noreturn]] void give_up(const std::string& reason) {
    const std::string line = at(place.site->where);
    end_with(place.site->text() + ": " + reason + (reason.ends_with(line) ? "" : line));
    throw Error(ErrorKind::backend, dead_message);
  }
  /// … and with it those of the others, who need not find out themselves.
  [[noreturn]] void give_up_all(const std::string& reason) {
    peers.tell_over(reason);
    give_up(reason);
  }

  /// … as the transport says why.
  [[noreturn]] void fail_at_site(const std::string& reason) {
    tell_failure(reason);
    give_up(reason);
  }
  void hear() {
    if (const std::string reason = peers.hear(); !reason.empty()) give_up(reason);
  }
  void give_up_all_if(const std::string& reason) {
    if (!reason.empty()) give_up_all(reason);
  }

  static std::uint64_t size_of_permute(std::span<const std::int64_t> sources, std::size_t bytes) {
    std::uint64_t size = bytes;
    for (const std::int64_t source : sources)
      size = worlds::mixed(size, static_cast<std::uint64_t>(source));
    return size;
  }

  void look(std::span<Transfer> waiting) override {
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
  [[gnu::noinline]] void wait_on(double time, std::span<Transfer> waiting) {
    next_hear = time + worlds::hear_every;
    if (has_failed.load(std::memory_order_acquire)) {
      tell_failure_of_another();
      throw Error(ErrorKind::backend, dead_message);
    }
    hear();
    give_up_all_if(peers.error_of_member(place));
    if (time < next_judge && !peers.take_news()) return;
    next_judge = time + worlds::judge_every;
    give_up_all_if(peers.difference(place));
    // A peer may have left when all was sent to it, and nobody has looked at that yet.
    for (Transfer& t : waiting)
      if (t.active && !transport->is_done(t)) give_up_all_if(peers.end_of(t.peer, since, time));
    const double waited = time - since, most = deadline.load();
    if (time >= next_tell) {
      peers.tell_waits(place, waited);
      next_tell = time + most / 2;
    }
    if (waited > most) give_up_all(peers.missing(place, waiting, most));
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
    peers.tell_failed(message);
    end_with("vt: this rank failed before: " + message);
  }

  /// An exchange that was begun and not yet waited for.
  struct Begun {
    const void* got = nullptr;
    RankGroup group;
    Place place;
    int tag = 0;
    Transfer transfers[2];
  };
  /// Nothing is written into its memory any more.
  void drop(Begun& b) noexcept {
    if (is_in_child()) return;
    enter();
    for (Transfer& t : b.transfers)
      if (t.active) transport->drop(t);
    leave();
  }
  ~State() {
    for (const std::unique_ptr<Begun>& b : begun) drop(*b);
  }
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
      Place& place = state.place;
      place.group = &group;
      place.kind = kind;
      place.group_hash = known.hash;
      place.number = ++known.number;
      place.base = known.base;
      place.call = state.call;
      constexpr int bits_of_number = 40;
      std::uint64_t what =
          worlds::mixed(known.hash, static_cast<std::uint64_t>(place.number) ^
                                        static_cast<std::uint64_t>(place.call) << bits_of_number);
      what = worlds::mixed(what, static_cast<std::uint64_t>(kind));
      what = worlds::mixed(what, size);
      if (site.by_line) what = worlds::mixed(what, state.line_hash(site.where));
      for (const std::int64_t k : site.bundle)
        what = worlds::mixed(what, static_cast<std::uint64_t>(k));
      place.what = what;
      channel_.tag = static_cast<int>(place.what >> 50);
      state.waits = false;
      if (++state.collectives % worlds::collectives_between == 0) state.hear();
    }
    /// Of one that was begun before.
    Call(State& state, const Begun& b, const CollectiveSite& site) : Call(state, site) {
      state.place = b.place;
      state.place.site = &site;
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
        state_.recorder->note(facts(), *state_.place.site, begin, monotonic_seconds());
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
      state.place.site = &site;
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
    return {kind, worlds::Part::whole, group, bytes, 0, 1, {}, nullptr, s.place.number};
  }
};

World::World(std::unique_ptr<Transport> transport)
    : state_(std::make_unique<State>(std::move(transport))) {}

World::~World() { state_->peers.tell_left(); }

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

void World::broadcast(const RankGroup& group, int root, void* data, std::size_t bytes,
                      const CollectiveSite& site) {
  const auto size = static_cast<std::uint64_t>(root) ^ static_cast<std::uint64_t>(bytes) << 20;
  State::Call call(*state_, worlds::Kind::broadcast, group, size, site);
  call.run([&](Channel& channel) {
    if (group.size > 1) exchanges::broadcast(channel, group, root, data, bytes);
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
    b->place = s.place;
    b->place.group = &b->group;
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
  try {
    State::Call call(s, *b, site);
    const auto facts = [&] {
      Recorder::Facts f = State::facts_of(s, worlds::Kind::permute, b->group, 0);
      f.part = worlds::Part::finish;
      f.got = got;
      return f;
    };
    call.run(facts, [&](Channel& channel) { exchanges::finish(channel, b->transfers); });
  } catch (...) {
    s.drop(*b);
    throw;
  }
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

bool World::compare(
    const std::string& text, FunctionRef<std::string()> shown,
    FunctionRef<std::string(const std::string& first, int rank, const std::string& own)> differs,
    const CollectiveSite& site) {
  const RankGroup all = {0, 1, size(), rank()};
  if (all.size == 1) return false;
  const std::uint64_t hash = worlds::hash_of_text(text);
  if (state_->compared.contains(hash)) return false;
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
  return true;
}

void World::forget(const std::string& text) { state_->compared.erase(worlds::hash_of_text(text)); }

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
    Vec<GroupReached> reached;
    for (const worlds::Group& g : s.groups) reached.push_back({g.hash, g.number});
    s.peers.tell_threw(message, s.call, reached);
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

void World::count_call() {
  State& s = *state_;
  if (size() == 1) return;
  s.enter();
  if (s.call_token != worlds::call_token) s.begin_call();
  s.leave();
}

void World::fail_all(const std::string& message) noexcept {
  State& s = *state_;
  if (s.dead.load(std::memory_order_acquire) || s.is_in_child()) return;
  {
    const std::lock_guard hold(s.mutex);
    if (s.failure.empty()) s.failure = message;
  }
  s.has_failed.store(true, std::memory_order_release);
  // A thread that is at a collective tells them, and ends.
  if (s.busy.exchange(true, std::memory_order_acquire)) return;
  s.tell_failure_of_another();
  s.leave();
}

void World::end(double patience) noexcept {
  State& s = *state_;
  if (s.is_in_child() || s.has_ended.exchange(true)) return;
  if (s.busy.exchange(true)) {
    fail_all("it ended while one of its threads was at a collective");
    constexpr double most = 1;  // seconds, for that thread to find out
    const double begin = monotonic_seconds();
    while (s.busy.exchange(true)) {
      if (monotonic_seconds() - begin > most) return;
      ::sched_yield();
    }
  }
  const bool has_failed = s.dead.load();
  if (!has_failed) s.end_with("vt: this process is ending");
  s.peers.tell_left();
  s.transport->finish(has_failed, patience);
  s.leave();
}

}  // namespace vt::detail
