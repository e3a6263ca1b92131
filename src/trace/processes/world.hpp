// World: the ranks that run one program together, and the collectives between them.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include <vt/detail/function.hpp>
#include <vt/dtype.hpp>
#include <vt/error.hpp>

#include "transport.hpp"

namespace vt::detail {

/// The ranks along an axis of a mesh that differ in that axis alone: first, first + stride, …
struct RankGroup {
  int first = 0, stride = 1, size = 1;
  int own = 0;  ///< which of them this rank is
  int rank(int member) const { return first + member * stride; }
};

/// How all_reduce combines elements. NaN wins over numbers in max and min.
enum class RankReduction : std::uint8_t { sum, max, min };

enum class ExchangeKind : std::uint8_t {
  all_reduce,
  all_gather,
  all_to_all,
  permute,
  broadcast,
  compare,
  barrier,
  probe
};
/// A permute may be begun at one place and waited for at another.
enum class ExchangePart : std::uint8_t { whole, begin, finish };

struct Channel;
class Recorder;

/// A collective as messages name it: "vt::psum over \"data\" of f64[3]", and the user's line.
struct CollectiveSite {
  FunctionRef<std::string()> text;  ///< only asked where it is shown
  CallSite where;
  bool by_line = false;                       ///< ranks at other lines are at other collectives
  std::span<const std::int64_t> bundle = {};  ///< see CollectiveParams
};

class World {
 public:
  explicit World(std::unique_ptr<Transport>);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// That of this thread: a rank of vt::distributed::simulate; else that of the process, which is
  /// one of several that MPI started, or alone.
  /// Throws: Error (backend) if MPI started it, and its library cannot be used.
  static World& current();
  /// Does this thread's have several ranks? False where nobody has asked for it yet.
  static bool has_several();

  int rank() const;
  int size() const;
  const char* transport_name() const;
  int ranks_of_host() const;  ///< how many of them run on this machine

  // The ranks of a group call these in the same order, with the same sizes. `given` and `got` may
  // be the same memory where the sizes are. All ranks get the same bits.
  // Throws: Error (backend) that names the rank and the user's line if another rank failed, left,
  // or did not come before the deadline, and if ranks are at different collectives. The world is
  // not used any more then: each further call throws the same.

  /// 16-bit floats are summed in f32 and rounded once; integers wrap. Other sums of a power of two
  /// of ranks are a tree: of members 0 and 1, 2 and 3 …, then of what these give, and so on.
  void all_reduce(const RankGroup&, RankReduction, DType, const void* given, void* got,
                  std::int64_t elements, const CollectiveSite&);
  /// got: the `bytes` of each member, in their order.
  void all_gather(const RankGroup&, const void* given, void* got, std::size_t bytes,
                  const CollectiveSite&);
  /// `data` of member `root`, on all of them.
  void broadcast(const RankGroup&, int root, void* data, std::size_t bytes, const CollectiveSite&);
  /// Part j of `given` goes to member j; part j of `got` comes from there. bytes: of one part.
  void all_to_all(const RankGroup&, const void* given, void* got, std::size_t bytes,
                  const CollectiveSite&);
  /// got: what member sources[own] gives; zeros for −1.
  void permute(const RankGroup&, std::span<const std::int64_t> sources, const void* given,
               void* got, std::size_t bytes, const CollectiveSite&);
  /// permute in two: begun here, and waited for by `finish` of the same result. Until then both
  /// arrays belong to it, and other collectives may come between.
  void begin_permute(const RankGroup&, std::span<const std::int64_t> sources, const void* given,
                     void* got, std::size_t bytes, const CollectiveSite&);
  void finish(const void* got, const CollectiveSite&);
  /// Waits for all that were begun, or drops them: after an error of this rank.
  void finish_all() noexcept;
  /// Compares a text between all ranks, by its hash; once for each text. False: it had been
  /// compared. Throws: Error (transform) on all ranks, made by `differs` of what is `shown` by the
  /// first rank and by the first one whose text is another.
  bool compare(
      const std::string& text, FunctionRef<std::string()> shown,
      FunctionRef<std::string(const std::string& first, int rank, const std::string& own)> differs,
      const CollectiveSite&);
  /// The next compare of this text counts as the first.
  void forget(const std::string& text);
  /// May ranks round differently, as on CPUs of two kinds? Compared at the first call, which all
  /// ranks make at the same place, by what each says of its `code`; known from then on.
  bool is_mixed(FunctionRef<std::string()> code, const CollectiveSite&);
  void count_as_mixed();  ///< for tests
  /// Waits for all ranks.
  void barrier(const CollectiveSite&);
  /// Messages of its own between all ranks.
  void probe(FunctionRef<void(Channel&)>, const CollectiveSite&);
  /// Collectives are written down there; null: no longer.
  void set_recorder(Recorder*);

  /// The call that this thread is in counts, also if it comes to no collective: so it is on all
  /// ranks, of which only some may come to one before an error ends theirs.
  void count_call();
  /// Tells the others of an error that ends this rank's call, and that it may yet come to terms
  /// with. Who waits for it in that call gives up, and ends the world: it will not come. Others
  /// name the error if it does not come to a later collective.
  void tell_error(const std::string& message) noexcept;
  /// Tells the others that this rank cannot go on, so that none waits for it.
  void fail_all(const std::string& message) noexcept;
  /// The process ends: tells the others, and waits for them where the library wants that, for so
  /// many seconds at most if a rank has failed. A thread that is at a collective throws.
  void end(double patience) noexcept;
  /// How long a rank may wait for another one. Starts as VT_DEADLINE, in seconds, or 300.
  void set_deadline(double seconds);
  double deadline() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// While the outermost one exists on a thread, the collectives to which it comes are of one call:
/// ranks that are in step make the same calls, and come to the same collectives in each. What comes
/// behind it is of another call.
class WorldCall {
 public:
  explicit WorldCall(World&);
  ~WorldCall();
  WorldCall(const WorldCall&) = delete;
  WorldCall& operator=(const WorldCall&) = delete;
  /// The call ends by an error: the outermost one tells the others.
  void tell_error(const std::string& message) const noexcept;
  /// Of the call that this thread is in, for others that work for it: with a Member each is in it.
  static std::uint64_t token();
  class Member {
   public:
    explicit Member(std::uint64_t token);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    std::uint64_t before_;
  };
  /// f(), as a call.
  template <class F>
  static auto run(World& world, F&& f) {
    const WorldCall call(world);
    try {
      return f();
    } catch (const std::exception& e) {
      call.tell_error(e.what());
      throw;
    } catch (...) {
      call.tell_error("an exception of another type than std::exception");
      throw;
    }
  }

 private:
  World& world_;
};

/// While it exists World::current() of this thread is the one given.
class OwnWorld {
 public:
  explicit OwnWorld(World&);
  ~OwnWorld();
  OwnWorld(const OwnWorld&) = delete;
  OwnWorld& operator=(const OwnWorld&) = delete;

 private:
  World* before_;
};

/// Runs f on `ranks` threads, each of which is a rank of one world. What a rank throws ends the
/// others' collectives; the first error is thrown here.
void run_ranks(int ranks, const Function<void()>& f, double deadline, CallSite);

}  // namespace vt::detail
