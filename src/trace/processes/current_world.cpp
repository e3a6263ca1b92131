// The world of a thread: its own, or that of its process, which begins as somebody asks for it and
// ends with the process.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "../base/shared_library.hpp"
#include "loopback.hpp"
#include "mpi_transport.hpp"
#include "world.hpp"

namespace vt::detail {

namespace current_world {

/// Of a thread that is a rank.
inline constinit thread_local World* of_thread = nullptr;
/// Never destroyed: threads may be at a collective while the process ends.
inline constinit std::atomic<World*> of_process{nullptr};
inline constinit std::terminate_handler terminate_before = nullptr;

inline void end_process() {
  World& world = *of_process.load();
  constexpr double least = 5;  // seconds, for those that do not know of the failure yet
  world.end(std::max(least, world.deadline()));
}

/// An exception that nothing catches: the launcher would end the others before they knew why.
[[noreturn]] inline void terminate_process() {
  std::string message = "it was ended by std::terminate";
  if (std::current_exception()) try {
      throw;
    } catch (const std::exception& e) {
      message = e.what();
    } catch (...) {
      message = "an exception of another type than std::exception";
    }
  World& world = *of_process.load();
  world.fail_all(message);
  constexpr double patience = 2;  // seconds
  world.end(patience);
  if (terminate_before) terminate_before();
  std::abort();
}

inline World& make_process_world() {
  std::unique_ptr<Transport> transport;
  try {
    transport = mpi_transport();
  } catch (const Error& e) {
    throw Error(e.kind(), std::string("vt: ") + e.what());
  }
  const bool is_of_mpi = transport != nullptr;
  if (!transport) transport = std::move(loopback_transports(1)[0]);
  auto* const world = new World(std::move(transport));
  of_process.store(world, std::memory_order_release);
  if (is_of_mpi) {
    stay_loaded();  // for what is called at the end
    std::atexit(end_process);
  }
  if (world->size() > 1) terminate_before = std::set_terminate(terminate_process);
  return *world;
}

}  // namespace current_world

OwnWorld::OwnWorld(World& world) : before_(std::exchange(current_world::of_thread, &world)) {}
OwnWorld::~OwnWorld() { current_world::of_thread = before_; }

World& World::current() {
  if (current_world::of_thread) return *current_world::of_thread;
  static World& process = current_world::make_process_world();
  return process;
}

bool World::has_several() {
  const World* world = current_world::of_thread;
  if (!world) world = current_world::of_process.load(std::memory_order_acquire);
  return world && world->size() > 1;
}

}  // namespace vt::detail
