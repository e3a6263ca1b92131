// MpiTransport: Transport between the processes that MPI has started. Data go over one duplicate of
// MPI_COMM_WORLD, notices over another.
#include "mpi_transport.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/error.hpp>

#include "../base/environment.hpp"
#include "mpi_library.hpp"

namespace vt::detail {

namespace mpi {

/// A notice as it is sent. Short, so that MPI sends it at once.
struct Message {
  std::int64_t number, call, base;
  std::uint64_t group, what;
  double seconds;
  std::int32_t rank, kind, length;
  char text[2000];
};

/// A number of this machine and of the processes that this one sees.
std::uint64_t host_number() {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](const char* text, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3u;
  };
  char text[256];
  if (::gethostname(text, sizeof text) == 0) add(text, ::strnlen(text, sizeof text));
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    add(text, std::fread(text, 1, sizeof text, file));
    std::fclose(file);
  }
  const ssize_t n = ::readlink("/proc/self/ns/pid", text, sizeof text);
  if (n > 0) add(text, static_cast<std::size_t>(n));
  return hash;
}

/// Whether a process of this host has ended, also where its launcher has not asked for its status
/// yet (state Z of /proc/PID/stat, which comes behind the name in parentheses).
bool has_ended(std::int64_t process) {
  if (::kill(static_cast<pid_t>(process), 0) != 0) return errno == ESRCH;
  std::FILE* const file = std::fopen(formatted("/proc/{}/stat", process).c_str(), "r");
  if (!file) return false;  // no /proc, or no access to it
  char text[256];
  const std::string_view read(text, std::fread(text, 1, sizeof text, file));
  std::fclose(file);
  const std::size_t name_end = read.rfind(") ");
  if (name_end == read.npos || name_end + 2 >= read.size()) return false;
  const char state = read[name_end + 2];
  return state == 'Z' || state == 'X';
}

class MpiTransport final : public Transport {
 public:
  explicit MpiTransport(const MpiLibrary& library) : mpi_(library) {
    int is_so = 0;
    check(mpi_.Finalized(&is_so), "MPI_Finalized");
    if (is_so) refuse_at_end();
    check(mpi_.Initialized(&is_so), "MPI_Initialized");
    is_own_ = is_so == 0;
    if (is_own_) {
      int level = 0;
      check(mpi_.Init_thread(nullptr, nullptr, MpiLibrary::multiple, &level), "MPI_Init_thread");
      mpi_.Comm_set_errhandler(mpi_.world, mpi_.errors_return);
      if (mpi_.family == MpiLibrary::Family::mpich) ignore_failure_signal();
    }
    // never destroyed: MPI writes there also after an error
    auto& made = *new Begun;
    for (MpiHandle* const communicator : {&made.data, &made.notices}) {
      check(mpi_.Comm_idup(mpi_.world, communicator, &made.request), "MPI_Comm_idup");
      wait(made.request);
      check(mpi_.Comm_set_errhandler(*communicator, mpi_.errors_return), "MPI_Comm_set_errhandler");
    }
    data_ = made.data;
    notices_ = made.notices;
    check(mpi_.Comm_rank(data_, &rank_), "MPI_Comm_rank");
    check(mpi_.Comm_size(data_, &size_), "MPI_Comm_size");
    if (const int launched = launched_processes(); size_ == 1 && launched > 1)
      throw Error(ErrorKind::backend,
                  formatted("{} processes were started, but {} sees only this one: it is not "
                            "the library of the launcher. {}",
                            launched, mpi_.name,
                            is_own_ ? "Set VT_MPI_LIBRARY to the path of that one"
                                    : "The program is linked with it, and has to be started by "
                                      "the mpirun that belongs to it"));
    made.places.resize(static_cast<std::size_t>(size_));
    made.own = {host_number(), ::getpid()};
    check(mpi_.Iallgather(&made.own, sizeof made.own, mpi_.byte, made.places.begin(),
                          sizeof made.own, mpi_.byte, data_, &made.request),
          "MPI_Iallgather");
    wait(made.request);
    places_ = made.places;
    for (const Place& place : places_) ranks_of_host_ += place.host == made.own.host;
    has_left_.resize(static_cast<std::size_t>(size_));
    std::fill(has_left_.begin(), has_left_.end(), 0);
    // The first thing that MPI_Finalize does is to end MPI_COMM_SELF. The program may call it, also
    // where MPI_Init was called here.
    int key = 0;
    check(mpi_.Comm_create_keyval(copy_nothing, leave, &key, this), "MPI_Comm_create_keyval");
    check(mpi_.Comm_set_attr(mpi_.self, key, this), "MPI_Comm_set_attr");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return mpi_.name.c_str(); }
  int ranks_of_host() const override { return ranks_of_host_; }

  void begin_send(int to, int tag, const void* data, std::size_t bytes, Transfer& t) override {
    if (is_over_) refuse_at_end();
    MpiHandle& request = *new (t.handle) MpiHandle(0);
    const int status =
        mpi_.Isend(data, static_cast<int>(bytes), mpi_.byte, to, tag, data_, &request);
    if (status != 0) refuse(status, "MPI_Isend");
    is_receive(t) = 0;
    t.active = true;
  }
  void begin_receive(int from, int tag, void* data, std::size_t bytes, Transfer& t) override {
    if (is_over_) refuse_at_end();
    MpiHandle& request = *new (t.handle) MpiHandle(0);
    const int status =
        mpi_.Irecv(data, static_cast<int>(bytes), mpi_.byte, from, tag, data_, &request);
    if (status != 0) refuse(status, "MPI_Irecv");
    is_receive(t) = 1;
    t.active = true;
  }
  bool is_done(Transfer& t) override {
    if (!t.active) return true;
    int done = 0;
    const int status = mpi_.Test(&request_of(t), &done, mpi_.no_status);
    if (status != 0) {
      t.active = false;
      refuse(status, "MPI_Test");
    }
    if (done) t.active = false;
    return done != 0;
  }
  void drop(Transfer& t) noexcept override {
    if (!t.active) return;
    t.active = false;
    if (is_over_) return;
    MpiHandle& request = request_of(t);
    if (is_receive(t)) mpi_.Cancel(&request);
    // A message that has begun to come cannot be cancelled, and does not end if the other rank has
    // stopped. What calls MPI is what would write it: so nothing does any more.
    constexpr double patience = 0.1;
    const double begin = monotonic_seconds();
    for (int done = 0;;) {
      if (mpi_.Test(&request, &done, mpi_.no_status) != 0 || done) return;
      if (monotonic_seconds() - begin > patience) break;
      std::this_thread::yield();
    }
    if (is_receive(t)) is_over_ = true;
    else mpi_.Request_free(&request);
  }

  void tell_all(const Notice& notice) noexcept override {
    if (size_ == 1 || is_finalized()) return;
    drop_told();
    if (notice.kind == Notice::Kind::failed || notice.kind == Notice::Kind::over)
      has_failed_ = true;
    try {
      Told told;
      told.message = std::make_unique<Message>();
      Message& m = *told.message;
      std::memset(static_cast<void*>(&m), 0, sizeof m);
      m.number = notice.number;
      m.call = notice.call;
      m.base = notice.base;
      m.group = notice.group;
      m.what = notice.what;
      m.seconds = notice.seconds;
      m.rank = notice.rank;
      m.kind = static_cast<std::int32_t>(notice.kind);
      std::size_t length = std::min(notice.text.size(), sizeof m.text);
      // not within a character of several bytes
      while (length < notice.text.size() && length > 0 &&
             (static_cast<unsigned char>(notice.text[length]) & 0xc0) == 0x80)
        --length;
      m.length = static_cast<std::int32_t>(length);
      std::memcpy(m.text, notice.text.data(), length);
      told.requests.reserve(static_cast<std::size_t>(size_));
      told_.push_back(std::move(told));
      Told& kept = told_.back();
      for (int r = 0; r < size_; ++r) {
        if (r == rank_) continue;
        MpiHandle request = 0;
        if (mpi_.Isend(&m, static_cast<int>(sizeof m - sizeof m.text + length), mpi_.byte, r, 0,
                       notices_, &request) == 0)
          kept.requests.push_back(request);
      }
    } catch (const std::bad_alloc&) {
      // then they find out at the deadline
    }
  }
  bool hear(Notice& notice) override {
    if (is_over_) return false;
    int is_there = 0;
    MpiStatus status;
    if (mpi_.Iprobe(mpi_.any_source, 0, notices_, &is_there, &status) != 0 || !is_there)
      return false;
    Message m;
    if (mpi_.Recv(&m, sizeof m, mpi_.byte, mpi_.any_source, 0, notices_, mpi_.no_status) != 0)
      return false;
    notice.kind = static_cast<Notice::Kind>(m.kind);
    notice.rank = std::clamp(m.rank, 0, size_ - 1);
    notice.number = m.number;
    notice.call = m.call;
    notice.base = m.base;
    notice.group = m.group;
    notice.what = m.what;
    notice.seconds = m.seconds;
    notice.text.assign(m.text, static_cast<std::size_t>(m.length));
    if (notice.kind == Notice::Kind::left) has_left_[static_cast<std::size_t>(notice.rank)] = 1;
    else if (notice.kind == Notice::Kind::failed || notice.kind == Notice::Kind::over)
      has_failed_ = true;
    return true;
  }

  bool is_gone(int r) override {
    const Place &place = places_[static_cast<std::size_t>(r)],
                &own = places_[static_cast<std::size_t>(rank_)];
    return place.host == own.host && has_ended(place.process);
  }

  // MPI_Finalize waits for all ranks: for ever if one is gone. And a launcher ends all processes
  // where one ends without it. So first they tell each other.
  void finish(bool has_failed, double patience) noexcept override {
    has_failed_ = has_failed_ || has_failed;
    if (is_finalized() || (!is_own_ && !has_failed_)) return;
    std::fflush(nullptr);  // the launcher may end this process before it comes to that
    if (!wait_for_ends(patience) || !is_own_) return;
    is_over_ = true;
    if (has_failed_) {
      // What was broken off may be waited for.
      constexpr unsigned most = 5;  // seconds
      try {
        std::thread([] {
          ::sleep(most);
          ::_exit(1);
        }).detach();
      } catch (...) {
        return;
      }
    }
    mpi_.Finalize();
  }

 private:
  struct Place {
    std::uint64_t host;
    std::int64_t process;
  };
  /// What operations that begin with the constructor write.
  struct Begun {
    MpiHandle data = 0, notices = 0, request = 0;
    Place own = {};
    Vec<Place> places;
  };
  struct Told {
    std::unique_ptr<Message> message;
    Vec<MpiHandle> requests;
  };

  /// With -disable-auto-cleanup MPICH's mpiexec sends SIGUSR1 to all when one process ends badly,
  /// which would end them too.
  static void ignore_failure_signal() {
    struct sigaction now_there = {};
    if (::sigaction(SIGUSR1, nullptr, &now_there) != 0 || now_there.sa_handler != SIG_DFL) return;
    now_there.sa_handler = SIG_IGN;
    ::sigaction(SIGUSR1, &now_there, nullptr);
  }
  /// Until all have told that they leave. No longer than so many seconds where a rank has failed,
  /// nor if one is gone; false then.
  bool wait_for_ends(double patience) noexcept {
    const double begin = monotonic_seconds();
    while (!is_over_) {
      Notice notice;
      try {
        while (hear(notice)) continue;
      } catch (const std::bad_alloc&) {
        return false;
      }
      drop_told();
      bool all_have_left = true;
      for (int r = 0; r < size_; ++r) {
        if (r == rank_ || has_left_[static_cast<std::size_t>(r)]) continue;
        all_have_left = false;
        if (is_gone(r)) return false;
      }
      const double waited = monotonic_seconds() - begin;
      if (all_have_left) return true;
      if (has_failed_ && waited > patience) return false;
      const timespec nap = {0, waited > 1e-2 ? 1'000'000 : 20'000};
      ::nanosleep(&nap, nullptr);
    }
    return false;
  }
  static int copy_nothing(MpiHandle, int, void*, void*, void*, int* is_copied) {
    *is_copied = 0;
    return 0;
  }
  static int leave(MpiHandle, int, void*, void* transport) {
    auto& self = *static_cast<MpiTransport*>(transport);
    Notice notice;
    notice.kind = Notice::Kind::left;
    notice.rank = self.rank_;
    self.tell_all(notice);
    constexpr double patience = 5;  // seconds
    self.wait_for_ends(patience);
    self.is_over_ = true;
    return 0;
  }

  /// For all ranks, at their first use.
  void wait(MpiHandle& request) const {
    const auto most = static_cast<double>(deadline_from_environment());
    const double begin = monotonic_seconds();
    for (int done = 0;;) {
      check(mpi_.Test(&request, &done, mpi_.no_status), "MPI_Test");
      if (done) return;
      const double waited = monotonic_seconds() - begin;
      if (waited > most)
        throw Error(ErrorKind::backend,
                    formatted("not all processes came to their first use of several processes "
                              "within {} s (VT_DEADLINE)",
                              most));
      const timespec nap = {0, 50'000};
      if (waited > 20e-3) ::nanosleep(&nap, nullptr);
    }
  }
  static unsigned char& is_receive(Transfer& t) { return t.handle[sizeof(MpiHandle)]; }
  static MpiHandle& request_of(Transfer& t) {
    return *std::launder(reinterpret_cast<MpiHandle*>(t.handle));
  }

  [[noreturn, gnu::noinline]] static void refuse_at_end() {
    throw Error(ErrorKind::backend,
                "this program has called MPI_Finalize, so that processes cannot talk to each "
                "other any more: use vt's collectives before it");
  }
  bool is_finalized() const {
    int is_so = 0;
    return is_over_ || mpi_.Finalized(&is_so) != 0 || is_so;
  }
  void check(int status, const char* function) const {
    if (status != 0) refuse(status, function);
  }
  [[noreturn, gnu::noinline]] void refuse(int status, const char* function) const {
    if (is_finalized()) refuse_at_end();
    char text[MpiLibrary::longest_error] = {};
    int length = 0;
    mpi_.Error_string(status, text, &length);
    throw Error(ErrorKind::backend,
                formatted("{} of {} fails: {}", function, mpi_.name, std::string(text)));
  }
  void drop_told() noexcept {
    for (Told& told : told_) {
      std::size_t left = 0;
      for (MpiHandle& request : told.requests) {
        int done = 0;
        if (mpi_.Test(&request, &done, mpi_.no_status) == 0 && !done)
          told.requests[left++] = request;
      }
      told.requests.resize(left);
    }
    std::size_t kept = 0;
    for (Told& told : told_)
      if (!told.requests.empty()) {
        if (&told != &told_[kept]) std::swap(told_[kept], told);
        ++kept;
      }
    while (told_.size() > kept) told_.pop_back();
  }

  const MpiLibrary& mpi_;
  bool is_own_ = false;      ///< MPI_Init was called here
  bool is_over_ = false;     ///< MPI_Finalize was called, or MPI must not be
  bool has_failed_ = false;  ///< this rank or another one
  MpiHandle data_ = 0, notices_ = 0;
  int rank_ = 0, size_ = 1, ranks_of_host_ = 0;
  Vec<Place> places_;
  Vec<char> has_left_;
  Vec<Told> told_;  ///< notices on their way
};

}  // namespace mpi

std::unique_ptr<Transport> mpi_transport() {
  if (launched_processes() < 0 && !mpi_is_running()) return nullptr;
  std::string why;
  const MpiLibrary* const library = mpi_library(why);
  if (!library) throw Error(ErrorKind::backend, why);
  return std::make_unique<mpi::MpiTransport>(*library);
}

}  // namespace vt::detail
