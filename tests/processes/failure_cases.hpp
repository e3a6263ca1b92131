// Cases of ranks that fail, for ranks that are threads and for those that are processes: what the
// others are told, and how soon.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <vt/vt.hpp>

#include "processes/exchange_cases.hpp"
#include "src/trace/processes/world.hpp"

namespace failure_cases {

using collective_cases::at_site;
using collective_cases::whole;
using vt::detail::RankReduction;
using vt::detail::World;

/// What was not as it should be, on ranks of this process.
struct Wrong {
  std::mutex mutex;
  std::vector<std::string> lines;
};
inline Wrong& wrong() {
  static Wrong w;
  return w;
}
inline void note(const std::string& line) {
  const std::lock_guard hold(wrong().mutex);
  wrong().lines.push_back("rank " + std::to_string(World::current().rank()) + ": " + line);
}

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
inline void sleep(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}
inline int last() { return World::current().size() - 1; }
inline bool is_last() { return World::current().rank() == last(); }
inline std::string named_last() { return "rank " + std::to_string(last()); }

const std::string psum_text = "vt::psum over \"data\" of f64[3]";
inline void psum(std::int64_t n = 3, vt::CallSite where = {"solver/model.cpp", 12}) {
  std::vector<double> x(static_cast<std::size_t>(n), 1.0);
  at_site(
      "vt::psum over \"data\" of f64[" + std::to_string(n) + "]",
      [&](const auto& site) {
        World::current().all_reduce(whole(), RankReduction::sum, vt::f64, x.data(), x.data(), n,
                                    site);
      },
      where);
  if (x[0] != World::current().size()) throw std::logic_error("a wrong sum");
}
inline void gather() {
  std::vector<double> all(3 * static_cast<std::size_t>(World::current().size()));
  const double given[3] = {1, 2, 3};
  at_site("vt::all_gather over \"data\" of f64[3]",
          [&](const auto& site) {
            World::current().all_gather(whole(), given, all.data(), sizeof given, site);
          },
          {"solver/model.cpp", 14});
}

/// What f throws must be an Error (backend) with exactly this message; so must each later call.
template <class F>
void expect_failure(const std::string& message, F&& f) {
  for (int i = 0; i < 2; ++i) {
    const double begin = now();
    try {
      f();
      note("no error, where this one was expected: " + message);
    } catch (const vt::Error& e) {
      if (e.kind() != vt::ErrorKind::backend || e.what() != message)
        note(std::string(e.what()) + "\n  where this one was expected: " + message);
    }
    if (i == 1 && now() - begin > 0.5) note("the second call does not throw at once");
  }
}
inline void forever() {
  for (;;) psum();
}
const std::string place = "; at model.cpp:12";

inline void a_rank_throws() {
  if (is_last()) {
    psum();
    throw std::runtime_error("boom");
  }
  expect_failure(psum_text + ": " + named_last() + " failed: boom" + place, forever);
}

/// … of a group that the others are no members of.
inline void a_rank_outside_throws() {
  if (is_last()) throw std::runtime_error("boom");
  if (World::current().size() < 3) return;
  const vt::detail::RankGroup pair = {0, 1, 2, World::current().rank()};
  const auto go_on = [&] {
    if (World::current().rank() > 1) forever();
    for (double x = 1;;)
      at_site(psum_text,
              [&](const auto& site) {
                World::current().all_reduce(pair, RankReduction::max, vt::f64, &x, &x, 1, site);
              },
              {"solver/model.cpp", 12});
  };
  expect_failure(psum_text + ": " + named_last() + " failed: boom" + place, go_on);
}

inline void a_rank_ends() {
  psum();
  if (is_last()) return;
  expect_failure(psum_text + ": " + named_last() + " has ended" + place, forever);
}

inline void a_rank_sleeps() {
  World::current().set_deadline(1);
  psum();
  const double begin = now();
  if (is_last()) sleep(2.2);
  expect_failure(psum_text + ": " + named_last() + " did not come within 1 s" + place, forever);
  const double waited = now() - begin;
  if (!is_last() && (waited < 0.9 || waited > 2.1))
    note("waited for " + std::to_string(waited) + " s");
}

/// The last rank is at a collective of another group than the others: whoever finds out first names
/// whom it waits for, and where that one waits.
inline void a_rank_is_elsewhere() {
  if (World::current().size() < 3) return;
  World::current().set_deadline(1);
  psum();
  const std::string elsewhere = "vt::psum over \"model\" of f64[]";
  const auto at_pair = [&] {
    double x = 1;
    const vt::detail::RankGroup pair = {last() - 1, 1, 2, 1};
    at_site(elsewhere,
            [&](const auto& site) {
              World::current().all_reduce(pair, RankReduction::sum, vt::f64, &x, &x, 1, site);
            },
            {"solver/model.cpp", 14});
  };
  try {
    if (is_last()) at_pair();
    else psum();
    note("no error");
  } catch (const vt::Error& e) {
    const std::string before = is_last() ? std::string(elsewhere) : psum_text, message = e.what(),
                      line = is_last() ? "; at model.cpp:14" : place,
                      of_others = before + ": " + named_last() + " did not come within 1 s; " +
                                  named_last() + " was waiting at " + elsewhere +
                                  " (model.cpp:14)" + line,
                      other = "rank " + std::to_string(last() - 1),
                      of_last = before + ": " + other + " did not come within 1 s; " + other +
                                " was waiting at " + psum_text + " (model.cpp:12)" + line;
    if (message != of_others && message != of_last)
      note(message + "\n  where this one was expected: " + of_others +
           "\n  or this one: " + of_last);
  }
}

/// The first and the last rank give to each other.
template <class F>
void swap(F&& exchange, std::vector<double>& given, std::vector<double>& got) {
  std::vector<std::int64_t> sources(static_cast<std::size_t>(World::current().size()), -1);
  sources[0] = last();
  sources.back() = 0;
  at_site("vt::ppermute",
          [&](const auto& site) {
            (World::current().*exchange)(whole(), sources, given.data(), got.data(),
                                         given.size() * sizeof(double), site);
          },
          {"solver/model.cpp", 16});
}

/// Who waits for a rank to send and to receive names it once.
inline void a_rank_sleeps_at_a_swap() {
  if (World::current().size() < 2) return;
  std::vector<double> given(100'000), got(given.size());
  for (int i = 0; i < 3; ++i) psum();  // all are there
  World::current().set_deadline(1);
  psum();
  if (is_last()) return sleep(1.5);
  if (World::current().rank() == 0)
    expect_failure("vt::ppermute: " + named_last() + " did not come within 1 s; at model.cpp:16",
                   [&] { swap(&World::permute, given, got); });
}

/// A rank that has got what it waits for may leave, while who has sent it waits for another one.
inline void a_rank_leaves_others_waiting() {
  if (World::current().size() < 3) return;
  psum();
  if (World::current().rank() != 0 && World::current().rank() != 1 && !is_last()) return;
  std::vector<std::int64_t> sources(static_cast<std::size_t>(World::current().size()), -1);
  sources[0] = last();
  sources[1] = 0;
  if (is_last()) sleep(1.5);
  const std::vector<double> given(100'000, 1.0 + World::current().rank());
  std::vector<double> got(given.size());
  at_site("vt::ppermute", [&](const auto& site) {
    World::current().permute(whole(), sources, given.data(), got.data(),
                             given.size() * sizeof(double), site);
  });
  if (World::current().rank() == 0 && got.back() != World::current().size()) note("a wrong value");
}

/// What comes when a rank has given up finds no memory to write to.
inline void what_was_begun_is_dropped() {
  if (World::current().size() < 2) return;
  std::vector<double> given(10, 1.0), got(given.size());
  psum();
  if (is_last()) {
    sleep(1);
    try {
      swap(&World::begin_permute, given, got);
    } catch (const vt::Error&) {
    }
    return sleep(0.5);
  }
  if (World::current().rank() != 0) return;
  World::current().set_deadline(0.5);
  swap(&World::begin_permute, given, got);
  try {
    psum();
    note("no error");
  } catch (const vt::Error&) {
  }
  World::current().finish_all();
  got.assign(got.size(), 2.0);
  sleep(1);
  if (got != std::vector<double>(got.size(), 2.0)) note("something wrote into free memory");
}

/// Late, but not too late.
inline void a_rank_is_slow() {
  World::current().set_deadline(2);
  for (int i = 0; i < 3; ++i) {
    if (is_last()) sleep(0.4);
    psum();
  }
}

inline std::string differing(const std::string& last_one, int line) {
  const std::string own = line == 12 ? psum_text : last_one;
  std::string text = own + ": ranks differ: ";
  // the two that find out first: any of those that are alike
  return text + "rank 0 is at " + psum_text + " (model.cpp:12), " + named_last() + " is at " +
         last_one + " (model.cpp:14); at model.cpp:" + std::to_string(line);
}
/// Of several ranks that are alike any may be named.
template <class F>
void expect_difference(const std::string& last_one, int line, F&& f) {
  try {
    f();
    note("no error");
  } catch (const vt::Error& e) {
    std::string message = e.what();
    const std::string before = "ranks differ: rank ";
    const std::size_t at = message.find(before);
    if (at != message.npos) message[at + before.size()] = '0';
    if (message != differing(last_one, line))
      note(message + "\n  where this one was expected: " + differing(last_one, line));
  }
}

inline void ranks_differ() {
  World::current().set_deadline(20);
  const double begin = now();
  psum();
  const std::string other = "vt::all_gather over \"data\" of f64[3]";
  if (is_last()) expect_difference(other, 14, gather);
  else expect_difference(other, 12, [] { psum(); });
  if (now() - begin > 5) note("found out late");
}

inline void sizes_differ() {
  World::current().set_deadline(20);
  psum();
  const std::string other = "vt::psum over \"data\" of f64[4]";
  if (is_last()) expect_difference(other, 14, [] { psum(4, {"model.cpp", 14}); });
  else expect_difference(other, 12, [] { psum(); });
}

/// A failure while large arrays are on their way.
inline void a_rank_throws_amid_large_arrays() {
  const vt::detail::RankGroup group = whole();
  std::vector<float> x(1 << 20, 1.0f);
  const auto reduce = [&] {
    at_site("vt::psum over \"data\" of f32[1048576]",
            [&](const auto& site) {
              World::current().all_reduce(group, RankReduction::max, vt::f32, x.data(), x.data(),
                                          1 << 20, site);
            },
            {"solver/model.cpp", 12});
  };
  if (is_last()) {
    reduce();
    throw std::runtime_error("boom");
  }
  expect_failure(
      "vt::psum over \"data\" of f32[1048576]: " + named_last() + " failed: boom" + place, [&] {
        for (;;) reduce();
      });
}

/// A call that the last rank ends by an error, and the others with it.
template <class F>
void call_that_the_last_one_ends(F&& f) {
  vt::detail::WorldCall::run(World::current(), [&] {
    psum();
    if (is_last()) throw std::runtime_error("negative mass");
    f();
  });
}

/// … which the program catches. The others would otherwise take its next call for this one.
inline void a_call_ends_by_an_error() {
  const std::string message = psum_text + ": " + named_last() + " failed: negative mass" + place;
  const double begin = now();
  if (is_last()) {
    try {
      call_that_the_last_one_ends([] {});
    } catch (const std::runtime_error&) {
    }
    expect_failure(message, [] { psum(); });
  } else {
    expect_failure(message, [] { call_that_the_last_one_ends([] { psum(); }); });
  }
  if (now() - begin > 2) note("found out late");
}

/// … where the others need not wait for it.
inline void a_call_ends_before_others_send() {
  const vt::detail::RankGroup group = whole();
  std::vector<std::int64_t> sources(static_cast<std::size_t>(group.size), -1);
  sources.back() = 0;
  double given = 1, got = 0;
  try {
    try {
      call_that_the_last_one_ends([&] {
        at_site(psum_text,
                [&](const auto& site) {
                  World::current().permute(group, {sources.data(), sources.size()}, &given, &got,
                                           sizeof given, site);
                },
                {"solver/model.cpp", 12});
      });
    } catch (const std::runtime_error& e) {
      if (std::string(e.what()) != "negative mass") throw;
    }
    psum();
    note("no error");
  } catch (const vt::Error& e) {
    if (std::string(e.what()).find("negative mass") == std::string::npos) note(e.what());
  }
}

/// Behind its last collective, so that the others do not wait for it: all go on.
inline void a_call_ends_at_its_end() {
  for (int i = 0; i < 20; ++i) {
    try {
      call_that_the_last_one_ends([] {});
    } catch (const std::runtime_error&) {
    }
    psum();
  }
}

/// All ranks, at different times; before and behind collectives of the call.
inline void all_calls_end_by_errors() {
  for (int i = 0; i < 30; ++i) {
    try {
      vt::detail::WorldCall::run(World::current(), [&] {
        for (int k = 0; k < i % 3; ++k) psum();
        if (World::current().rank() == i % World::current().size()) sleep(0.003);
        throw std::runtime_error("wrong shapes");
      });
    } catch (const std::runtime_error& e) {
      if (std::string(e.what()) != "wrong shapes") note(e.what());
    }
    if (i % 2 == 0) psum();
  }
}

/// It then ends, or is at another collective than the others.
inline void a_rank_ends_behind_an_error() {
  a_call_ends_at_its_end();
  if (is_last()) return;
  expect_failure(
      psum_text + ": " + named_last() + " has ended; it had thrown: negative mass" + place,
      forever);
}
inline void ranks_differ_behind_an_error() {
  a_call_ends_at_its_end();
  try {
    if (is_last()) gather();
    else psum();
    note("no error");
  } catch (const vt::Error& e) {
    if (std::string(e.what()).find("; " + named_last() + " had thrown: negative mass; at") ==
        std::string::npos)
      note(e.what());
  }
}

struct Case {
  const char* name;
  void (*run)();
};
inline constexpr Case all[] = {
    {"a_rank_throws", a_rank_throws},
    {"a_rank_outside_throws", a_rank_outside_throws},
    {"a_rank_ends", a_rank_ends},
    {"a_rank_sleeps", a_rank_sleeps},
    {"a_rank_is_elsewhere", a_rank_is_elsewhere},
    {"a_rank_is_slow", a_rank_is_slow},
    {"a_rank_sleeps_at_a_swap", a_rank_sleeps_at_a_swap},
    {"a_rank_leaves_others_waiting", a_rank_leaves_others_waiting},
    {"what_was_begun_is_dropped", what_was_begun_is_dropped},
    {"ranks_differ", ranks_differ},
    {"a_call_ends_by_an_error", a_call_ends_by_an_error},
    {"a_call_ends_before_others_send", a_call_ends_before_others_send},
    {"a_call_ends_at_its_end", a_call_ends_at_its_end},
    {"all_calls_end_by_errors", all_calls_end_by_errors},
    {"a_rank_ends_behind_an_error", a_rank_ends_behind_an_error},
    {"ranks_differ_behind_an_error", ranks_differ_behind_an_error},
    {"sizes_differ", sizes_differ},
    {"a_rank_throws_amid_large_arrays", a_rank_throws_amid_large_arrays}};

}  // namespace failure_cases
