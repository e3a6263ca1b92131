// Loopback: Transport between threads of one process, each of which is a rank. The receiver copies
// from the sender's memory.
#include "loopback.hpp"

#include <sched.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include <vt/detail/message.hpp>
#include <vt/error.hpp>

#include "../base/locks.hpp"
#include "world.hpp"

namespace vt::detail {

namespace loopback {

/// What a Transfer holds.
struct Handle {
  enum State : int { receives, posted, taken, done };
  std::atomic<int> state;
  int peer, tag;
  void* data;
  std::size_t bytes;
};
static_assert(sizeof(Handle) <= sizeof(Transfer::handle));
inline Handle& handle_of(Transfer& t) { return *std::launder(reinterpret_cast<Handle*>(t.handle)); }

struct Post {
  int from;
  Handle* send;
};

/// What is on its way to one rank.
struct alignas(64) Mailbox {
  Mutex mutex;
  Vec<Post> posts;
  Vec<Notice> notices;
  std::atomic<std::size_t> post_count{0}, notice_count{0};
};

struct Hub {
  explicit Hub(int ranks) : size(ranks), boxes(new Mailbox[static_cast<std::size_t>(ranks)]) {}
  int size;
  std::unique_ptr<Mailbox[]> boxes;
};

template <class T>
void remove_at(Vec<T>& list, std::size_t at) {
  for (std::size_t i = at; i + 1 < list.size(); ++i) list[i] = std::move(list[i + 1]);
  list.pop_back();
}

class Loopback final : public Transport {
 public:
  Loopback(std::shared_ptr<Hub> hub, int rank)
      : hub_(std::move(hub)), box_(hub_->boxes[static_cast<std::size_t>(rank)]), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return hub_->size; }
  const char* name() const override { return "threads"; }
  int ranks_of_host() const override { return hub_->size; }

  void begin_send(int to, int tag, const void* data, std::size_t bytes, Transfer& t) override {
    auto* const send =
        new (t.handle) Handle{Handle::posted, to, tag, const_cast<void*>(data), bytes};
    Mailbox& box = box_of(to);
    {
      const std::lock_guard hold(box.mutex);
      box.posts.push_back({rank_, send});
      box.post_count.store(box.posts.size(), std::memory_order_release);
    }
    t.active = true;
  }
  void begin_receive(int from, int tag, void* data, std::size_t bytes, Transfer& t) override {
    new (t.handle) Handle{Handle::receives, from, tag, data, bytes};
    receives_.push_back(&t);
    t.active = true;
  }
  bool is_done(Transfer& t) override {
    if (!t.active) return true;
    take_posts();
    if (t.active && handle_of(t).state.load(std::memory_order_acquire) == Handle::done)
      t.active = false;
    return !t.active;
  }
  void drop(Transfer& t) noexcept override {
    if (!t.active) return;
    t.active = false;
    Handle& handle = handle_of(t);
    if (handle.state.load() == Handle::receives) {
      for (std::size_t i = 0; i < receives_.size(); ++i)
        if (receives_[i] == &t) return remove_at(receives_, i);
      return;
    }
    {
      Mailbox& box = box_of(handle.peer);
      const std::lock_guard hold(box.mutex);
      for (std::size_t i = 0; i < box.posts.size(); ++i)
        if (box.posts[i].send == &handle) {
          remove_at(box.posts, i);
          box.post_count.store(box.posts.size(), std::memory_order_release);
          return;
        }
    }
    while (handle.state.load(std::memory_order_acquire) != Handle::done) ::sched_yield();
  }

  void tell_all(const Notice& notice) noexcept override {
    for (int r = 0; r < hub_->size; ++r) {
      if (r == rank_) continue;
      Mailbox& box = box_of(r);
      const std::lock_guard hold(box.mutex);
      box.notices.push_back(notice);
      box.notice_count.store(box.notices.size(), std::memory_order_release);
    }
  }
  bool hear(Notice& notice) override {
    if (box_.notice_count.load(std::memory_order_acquire) == 0) return false;
    const std::lock_guard hold(box_.mutex);
    notice = std::move(box_.notices[0]);
    remove_at(box_.notices, 0);
    box_.notice_count.store(box_.notices.size(), std::memory_order_release);
    return true;
  }

 private:
  Mailbox& box_of(int rank) { return hub_->boxes[static_cast<std::size_t>(rank)]; }

  /// A receive, and the message that it gets: the first one that was begun, and the oldest. Null:
  /// none waits for what is there.
  struct Match {
    std::size_t receive = 0;
    Handle* send = nullptr;
  };
  Match match() {
    if (box_.post_count.load(std::memory_order_acquire) == 0) return {};
    // All receives see the same messages, so that those of one sender come in order.
    const std::lock_guard hold(box_.mutex);
    for (std::size_t r = 0; r < receives_.size(); ++r) {
      const Handle& receive = handle_of(*receives_[r]);
      for (std::size_t i = 0; i < box_.posts.size(); ++i) {
        const Post post = box_.posts[i];
        if (post.from != receive.peer || post.send->tag != receive.tag) continue;
        remove_at(box_.posts, i);
        box_.post_count.store(box_.posts.size(), std::memory_order_release);
        post.send->state.store(Handle::taken, std::memory_order_relaxed);
        return {r, post.send};
      }
    }
    return {};
  }
  void take_posts() {
    if (receives_.empty()) return;
    for (Match m = match(); m.send; m = match()) {
      Transfer& t = *receives_[m.receive];
      const Handle& receive = handle_of(t);
      const std::size_t sent = m.send->bytes;
      if (sent == receive.bytes && sent) std::memcpy(receive.data, m.send->data, sent);
      m.send->state.store(Handle::done, std::memory_order_release);  // its memory may go now
      t.active = false;
      remove_at(receives_, m.receive);
      if (sent != receive.bytes)
        throw Error(ErrorKind::backend, formatted("rank {} sent {} bytes where {} were expected",
                                                  receive.peer, sent, receive.bytes));
    }
  }

  std::shared_ptr<Hub> hub_;
  Mailbox& box_;
  int rank_;
  Vec<Transfer*> receives_;  ///< in the order in which they were begun
};

/// The error that came first.
struct FirstError {
  Mutex mutex;
  std::exception_ptr error;
  void keep(std::exception_ptr e) {
    const std::lock_guard hold(mutex);
    if (!error) error = std::move(e);
  }
};

void run_rank(std::unique_ptr<World> world, const Function<void()>& f, FirstError& first) noexcept {
  const OwnWorld own(*world);
  const auto failed = [&](const char* message) {
    first.keep(std::current_exception());
    world->fail_all(message);
  };
  try {
    f();
  } catch (const std::exception& e) {
    failed(e.what());
  } catch (...) {
    failed("an exception of another type than std::exception");
  }
}

}  // namespace loopback

Vec<std::unique_ptr<Transport>> loopback_transports(int ranks) {
  const auto hub = std::make_shared<loopback::Hub>(ranks);
  Vec<std::unique_ptr<Transport>> all;
  for (int r = 0; r < ranks; ++r) all.push_back(std::make_unique<loopback::Loopback>(hub, r));
  return all;
}

void run_ranks(int ranks, const Function<void()>& f, double deadline, CallSite where) {
  if (ranks < 1)
    fail(ErrorKind::value, formatted("vt: {} ranks: there must be one at least", ranks), where);
  loopback::FirstError first;
  Vec<std::unique_ptr<World>> worlds;
  for (std::unique_ptr<Transport>& transport : loopback_transports(ranks)) {
    worlds.push_back(std::make_unique<World>(std::move(transport)));
    if (deadline > 0) worlds.back()->set_deadline(deadline);
  }
  Vec<std::thread> threads;
  threads.reserve(worlds.size());
  std::string refused;
  for (std::unique_ptr<World>& world : worlds) try {
      threads.push_back(std::thread([rank = world.get(), &f, &first] {
        loopback::run_rank(std::unique_ptr<World>(rank), f, first);
      }));
      static_cast<void>(world.release());  // the thread's
    } catch (const std::system_error& e) {
      refused = e.what();
      break;
    }
  for (std::unique_ptr<World>& world : worlds)
    if (world) world->fail_all("the system gives it no thread: " + refused);
  for (std::thread& thread : threads) thread.join();
  if (!refused.empty())
    fail(ErrorKind::backend, formatted("vt: the system gives no {} threads: {}", ranks, refused),
         where);
  if (first.error) std::rethrow_exception(first.error);
}

}  // namespace vt::detail
