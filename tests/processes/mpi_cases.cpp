// Collectives and failures between processes: mpirun -n RANKS mpi_cases CASE. Each rank prints
// "rank R: as expected", or what is not; run_mpi.py reads that. A third argument names a library of
// MPI that the program begins itself.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "processes/failure_cases.hpp"

namespace {

using failure_cases::expect_failure;
using failure_cases::is_last;
using failure_cases::named_last;
using failure_cases::note;
using failure_cases::psum;
using failure_cases::psum_text;
using vt::detail::World;

void say(const std::string& text) {
  std::printf("rank %d: %s\n", World::current().rank(), text.c_str());
  std::fflush(stdout);
}
/// What a rank has to say before its process ends in another way than by main.
void report() {
  for (const std::string& line : failure_cases::wrong().lines) say(line);
  if (failure_cases::wrong().lines.empty()) say("as expected");
}

// Two that need a launcher that does not end the others at once (--enable-recovery of Open MPI,
// -disable-auto-cleanup of MPICH).
void expect_it_to_be_gone() {
  World::current().set_deadline(5);
  expect_failure(psum_text + ": " + named_last() + " is gone: its process was killed or crashed" +
                     failure_cases::place,
                 failure_cases::forever);
}
void a_rank_is_killed() {
  psum();
  if (is_last()) ::raise(SIGKILL);
  expect_it_to_be_gone();
}
void a_rank_vanishes() {
  psum();
  if (is_last()) ::_exit(3);
  expect_it_to_be_gone();
}

/// A child is no rank, and its end is none of this one's.
void a_rank_forks() {
  psum();
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      psum();
      ::_exit(1);
    } catch (const vt::Error& e) {
      if (std::string(e.what()).find("this process was forked") == std::string::npos) ::_exit(2);
    }
    World::current().fail_all("the child's");
    std::exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  if (status != 0) note("the child ends with " + std::to_string(status));
  for (int i = 0; i < 100; ++i) psum();
}

/// For ever: the launcher ends it when the others have given up.
void a_rank_hangs() {
  psum();
  if (is_last())
    for (;;) failure_cases::sleep(1);
  World::current().set_deadline(1);
  expect_failure(
      psum_text + ": " + named_last() + " did not come within 1 s" + failure_cases::place,
      failure_cases::forever);
}

/// main catches nothing.
void an_exception_is_not_caught() {
  if (is_last()) {
    psum();
    report();
    throw std::runtime_error("boom");
  }
  try {
    failure_cases::forever();
  } catch (const vt::Error& e) {
    const std::string expected =
        psum_text + ": " + named_last() + " failed: boom" + failure_cases::place;
    if (e.what() != expected) note(e.what());
    report();
    throw;
  }
}

/// Its destructor comes when MPI has ended.
struct Late {
  bool is_used = false;
  ~Late() {
    if (!is_used) return;
    std::string message = "no error";
    try {
      psum();
    } catch (const vt::Error& e) {
      message = e.what();
    }
    if (message == "vt: this process is ending") return;
    say(message);
    std::_Exit(1);
  }
} late;
void a_static_object_is_late() {
  psum();
  late.is_used = true;
}

void a_thread_ends_the_process() {
  psum();
  if (is_last()) {
    std::thread([] {
      failure_cases::sleep(0.5);
      std::exit(0);
    }).detach();
    try {
      failure_cases::forever();
    } catch (const vt::Error&) {
      failure_cases::sleep(10);
    }
  }
  failure_cases::sleep(1);
  expect_failure(psum_text + ": " + named_last() +
                     " failed: it ended while one of its threads was at a collective" +
                     failure_cases::place,
                 failure_cases::forever);
}

template <class F>
F* function_of_mpi(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name));
}
/// The program calls MPI_Init and MPI_Finalize itself. MPI's functions are found as if the program
/// were linked with it.
void begin_own_mpi(const char* library) {
  if (!::dlopen(library, RTLD_NOW | RTLD_GLOBAL) ||
      function_of_mpi<int(int*, char***)>("MPI_Init")(nullptr, nullptr) != 0) {
    std::printf("cannot begin %s\n", library);
    std::exit(1);
  }
}
void end_own_mpi() {
  if (function_of_mpi<int()>("MPI_Finalize")() != 0) note("MPI_Finalize fails");
  if (World::current().size() == 1) return;
  try {
    psum();
    note("no error after MPI_Finalize");
  } catch (const vt::Error& e) {
    if (std::string(e.what()).find("this program has called MPI_Finalize") == std::string::npos)
      note(e.what());
  }
}

void run(const std::string& name) {
  World& world = World::current();
  const auto found = [&](const auto& cases) {
    for (const auto& c : cases)
      if (name == c.name || name == "all") {
        try {
          c.run();
        } catch (const std::exception& e) {
          world.fail_all(e.what());
          if (std::string(e.what()) != "boom") note(e.what());
        }
        if (name == c.name) return true;
      }
    return name == "all";
  };
  if (name == "a_rank_is_killed") a_rank_is_killed();
  else if (name == "a_rank_forks") a_rank_forks();
  else if (name == "a_rank_hangs") a_rank_hangs();
  else if (name == "a_rank_vanishes") a_rank_vanishes();
  else if (name == "a_static_object_is_late") a_static_object_is_late();
  else if (name == "a_thread_ends_the_process") a_thread_ends_the_process();
  else if (name == "an_exception_is_not_caught") an_exception_is_not_caught();
  else if (name == "the_program_ends_mpi") psum(), end_own_mpi();
  else if (name == "name") say(world.transport_name());
  else if (!found(collective_cases::all) && !found(failure_cases::all)) note("no such case");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (argc > 2) begin_own_mpi(argv[2]);
  const std::string name = argv[1];
  const char* const rank =
      std::getenv(std::getenv("PMI_RANK") ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK");
  if (name == "a_rank_never_comes" && rank && std::atoi(rank) == 1) {
    failure_cases::sleep(2.5);
    std::exit(0);
  }
  try {
    World::current();
  } catch (const vt::Error& e) {
    std::printf("no world: %s\n", e.what());
    return 1;
  }
  run(name);
  if (argc > 2) end_own_mpi();
  report();
  return failure_cases::wrong().lines.empty() ? 0 : 1;
}
