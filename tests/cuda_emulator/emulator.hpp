// What the parts of the emulated driver share: the state of the process, allocations, streams and
// their work, launches.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "module_interface.h"
#include "races.hpp"
#include "src/jit/cuda/driver/cuda_library.hpp"

namespace emulator {

using vt::detail::cuda::Constant;
using vt::detail::cuda::DevicePtr;
using vt::detail::cuda::Result;

// A device address is the host's plus this, which no host address is: code that takes one for the
// other crashes.
constexpr std::uint64_t device_tag = 1ull << 52;
constexpr int max_devices = 8;

/// A number from the environment.
long long setting(const char* variable, long long otherwise);

/// Small and fast; the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }

 private:
  std::uint64_t state_;
};

/// The numbers 0 … count − 1 in the order of a seed: forward, backward, or shuffled by a step that
/// is prime to count.
class Order {
 public:
  Order(std::uint64_t count, std::uint64_t seed, std::uint64_t salt);
  std::uint64_t operator[](std::uint64_t i) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(i) * step_ + first_) %
                                      count_);
  }

 private:
  std::uint64_t count_, step_ = 1, first_ = 0;
};

// ---- errors and calls (state.cpp)

/// Which checks a function begins with.
enum Needs { needs_nothing = 0, needs_start = 1, needs_context = 2, even_if_lost = 4 };

/// Counts the call; the error that it has to return instead of doing its work, or success.
Result enter(const char* function, int needs);
/// The failure that was asked for this call of `function`.
Result injected(const char* function);
/// Ends all work on a device.
void lose_device(int device, Result error);
Result lost(int device);
/// The device whose context is current in this thread; −1 without one.
int current_device();
int device_count();
void count(const char* what, long long by = 1);
void add_report(const std::string& text);
std::uint64_t seed();
int stream_mode();
bool races_are_errors();
const char* error_name(Result result);
void note_source(const std::string& source);

// ---- memory (memory.cpp)

struct Allocation {
  std::uint64_t begin = 0, size = 0;  // host address
  int device = 0, number = 0;
  enum { coming, live, freed } state = live;
  Shadow shadow;
  std::uint64_t end() const { return begin + size; }
};

/// The allocation whose bytes or whose edges `address` (the host's) lies in; null where there is
/// none. Hold `memory_mutex`.
Allocation* find_allocation(std::uint64_t address);
extern std::mutex& memory_mutex;
/// Whether all of a device range is alive on `device`; else `*why` says what it is instead.
bool device_range(DevicePtr pointer, std::uint64_t size, int device, std::string* why);
/// A copy within a device, once its turn has come.
Result copy_on_device(DevicePtr to, DevicePtr from, std::uint64_t bytes, int device);
/// Whether a host range is memory that the driver allocated (pinned), so that copies are not
/// staged.
bool is_pinned(const void* pointer);
std::string describe_address(std::uint64_t host_address);

// ---- streams (streams.cpp)

struct Work;
/// What an event stands for: the moment when the work in front of it was done.
struct Moment {
  bool done = false;
  double seconds = 0;
};

struct GraphObject;
struct GraphNode {
  std::string kind;  // "kernel NAME", "copy" …: what an update may not change
  std::function<Result()> run;
  std::vector<int> after;
  // Of a conditional node: how its graphs are chosen, by the value behind a handle.
  int conditional = -1;
  std::uint64_t handle = 0;
  std::vector<std::shared_ptr<GraphObject>> bodies;
};
struct GraphObject {
  std::vector<GraphNode> nodes;
  bool is_body = false;  // of a conditional node, which owns it
  // handles that a launch begins with these values
  std::vector<std::pair<std::uint64_t, unsigned>> conditions;
};

/// Puts work into a stream, or into the graph that the stream is captured into.
Result enqueue(vt::detail::cuda::Stream stream, const std::string& kind,
               std::function<Result()> run, bool may_be_captured = true);
/// Waits until the stream has nothing left.
Result finish(vt::detail::cuda::Stream stream);
Result finish_device(int device);
/// The device that a stream belongs to; −1 for a handle of none.
int device_of(vt::detail::cuda::Stream stream);
/// Whether this call may not happen while a stream of this thread is captured; then that capture is
/// broken.
bool breaks_capture();

/// Makes a graph known by its handle (graphs.cpp).
vt::detail::cuda::Graph keep_graph(GraphObject* graph);

// ---- launches (launch.cpp)

struct ModuleObject {
  void* library = nullptr;
  const vt_module* description = nullptr;
  std::uint64_t begin = 0, end = 0;  // of the image in memory
  int device = 0;
  struct Shared {
    std::uint64_t begin, size;
    std::string name;
    bool own;  // not of a function that several units of a library have
    std::shared_ptr<Shadow> shadow;
  };
  std::vector<Shared> shared;
  // Of code that was only collected.
  std::string names;
  std::vector<vt_kernel> kernels;
  vt_module own_description;
};
struct FunctionObject {
  std::shared_ptr<ModuleObject> module;
  const vt_kernel* kernel = nullptr;
  int max_threads = 1024;
  int dynamic_shared_limit = 48 << 10;
};
struct Launch {
  FunctionObject function;
  dim3 grid, block;
  unsigned dynamic_shared = 0;
  std::vector<char> parameters;
  std::vector<unsigned> offsets;
};
/// A launch as cuLaunchKernel and kernel nodes describe it, checked (modules.cpp).
Result describe_launch(vt::detail::cuda::Function function, dim3 grid, dim3 block,
                       unsigned shared_bytes, void** parameters, void** extra,
                       std::shared_ptr<Launch>* made);
/// What the device function cudaGraphSetConditional does.
void set_condition(unsigned long handle, unsigned value);
/// Runs all of a grid's threads. One launch at a time in the process.
Result run_launch(const Launch& launch);

double special_function(int function, double x);

}  // namespace emulator
