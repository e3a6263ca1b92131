// What threads read and write: bounds, alignment, life of the memory, and races, looked at in front
// of each access.
#include <cstring>

#include "engine.hpp"

namespace emulator {

namespace {

const ModuleObject::Shared* shared_variable(std::uint64_t address) {
  for (const ModuleObject::Shared& v : engine().module->shared)
    if (address >= v.begin && address < v.begin + v.size) return &v;
  return nullptr;
}

void collide(const Window& w, Shadow::Collision with, std::uint64_t address, unsigned size,
             int writes) {
  Engine& e = engine();
  const Who other = w.shadow->other();
  const dim3 grid = e.launch->grid;
  const std::string several = "several threads";
  std::string whom = other.block == ~0u
                         ? "threads of several blocks"
                         : "thread " +
                               (other.thread < e.count ? text(e.indices[other.thread]) : several) +
                               " of block " +
                               text(uint3{other.block % grid.x, other.block / grid.x % grid.y,
                                          other.block / grid.x / grid.y});
  const std::string place =
      "byte " + std::to_string(address - w.begin) + " of " +
      (w.shared ? "shared memory" : "an array of " + std::to_string(w.size) + " bytes");
  const std::string what = std::string("a race: ") +
                           (writes == 0   ? "reads "
                            : writes == 1 ? "writes "
                                          : "updates ") +
                           std::to_string(size) + " bytes at " + place + ", which " + whom +
                           (with == Shadow::with_read ? " reads" : " writes") +
                           " with nothing that puts the one before the other";
  if (writes == 1 && with == Shadow::with_write && size <= sizeof(e.twice.before)) {
    e.twice.at = reinterpret_cast<const unsigned char*>(address - w.tag);
    e.twice.size = size;
    std::memcpy(e.twice.before, e.twice.at, size);
    e.twice.what = what;
    return;
  }
  note_failure(Constant::CUDA_ERROR_LAUNCH_FAILED, what);
}

void watch(const Window& w, std::uint64_t address, unsigned size, int writes) {
  Engine& e = engine();
  look_at_second_store();
  e.who.warp_phase = e.warp_phases[e.current / 32];
  if (const Shadow::Collision with =
          w.shadow->note(e.who, w.size, address - w.begin, size, writes, w.shared);
      with != Shadow::none)
    collide(w, with, address, size, writes);
}

void* at_slowly(std::uint64_t base, std::uint64_t address, unsigned size, int writes) {
  Engine& e = engine();
  Window window;
  std::string why;
  const char* verb = writes == 0 ? "reads " : writes == 1 ? "writes " : "updates ";
  const std::string what = verb + std::to_string(size) + " bytes at ";
  const auto dynamic = reinterpret_cast<std::uint64_t>(e.place->dynamic_shared);
  if (address >= device_tag) {
    const std::lock_guard lock(memory_mutex);
    const Allocation* a = find_allocation(address - device_tag);
    const Allocation* meant = base >= device_tag ? find_allocation(base - device_tag) : nullptr;
    if (meant && meant->state == Allocation::live && meant != a)
      why = "beyond the array that it indexes, " + describe_address(base - device_tag);
    else if (!a || address - device_tag + size > a->end()) why = "out of bounds";
    else if (a->state != Allocation::live)
      why = a->state == Allocation::freed ? "freed memory"
                                          : "memory that is allocated later in its stream";
    else if (a->device != e.device) why = "memory of another device";
    else
      window = {a->begin + device_tag,           a->size, device_tag,
                const_cast<Shadow*>(&a->shadow), false,   a->size + 1};
    if (!why.empty()) why = what + describe_address(address - device_tag) + ": " + why;
  } else if (const ModuleObject::Shared* meant = shared_variable(base)) {
    if (address < meant->begin || address + size > meant->begin + meant->size)
      why = what + "byte " + std::to_string(static_cast<long long>(address - meant->begin)) +
            " of the shared variable " + meant->name + " (" + std::to_string(meant->size) +
            " bytes): out of bounds";
    else window = {meant->begin, meant->size, 0, meant->shadow.get(), true, meant->size};
  } else if (const ModuleObject::Shared* a = shared_variable(address);
             a && address + size <= a->begin + a->size) {
    return reinterpret_cast<void*>(address);
  } else if (e.launch->dynamic_shared && address - dynamic < e.launch->dynamic_shared) {
    if (address - dynamic + size > e.launch->dynamic_shared)
      why = what + "byte " + std::to_string(address - dynamic) + " of " +
            std::to_string(e.launch->dynamic_shared) + " of dynamic shared memory: out of bounds";
    else
      window = {dynamic, e.launch->dynamic_shared, 0, &e.dynamic_shadow,
                true,    e.launch->dynamic_shared};
  } else if (on_stack(e.running, reinterpret_cast<void*>(address)) ||
             (address >= e.module->begin && address + size <= e.module->end)) {
    return reinterpret_cast<void*>(address);  // the thread's own variables; constants
  } else if (dynamic && base >= dynamic && base <= dynamic + e.launch->dynamic_shared) {
    why = what + "byte " + std::to_string(static_cast<long long>(address - dynamic)) + " of " +
          std::to_string(e.launch->dynamic_shared) + " of dynamic shared memory: out of bounds";
  } else {
    why = what + "an address that is no device memory";
  }
  if (!why.empty()) {
    note_failure(Constant::CUDA_ERROR_ILLEGAL_ADDRESS, why);
    return nullptr;
  }
  e.windows[e.next_window++ & 3u] = window;
  if (e.watched) watch(window, address, size, writes);
  return reinterpret_cast<void*>(address - window.tag);
}

void plain_slowly(std::uint64_t address, unsigned size, int writes) {
  Engine& e = engine();
  const std::string what =
      std::string(writes ? "writes " : "reads ") + std::to_string(size) + " bytes ";
  const auto dynamic = reinterpret_cast<std::uint64_t>(e.place->dynamic_shared);
  if (e.launch->dynamic_shared && address >= dynamic &&
      address - dynamic < e.launch->dynamic_shared + 128) {
    if (address - dynamic + size > e.launch->dynamic_shared)
      return note_failure(Constant::CUDA_ERROR_ILLEGAL_ADDRESS,
                          what + "at byte " + std::to_string(address - dynamic) + " of " +
                              std::to_string(e.launch->dynamic_shared) +
                              " of dynamic shared memory: out of bounds");
    e.windows[e.next_window++ & 3u] = {dynamic, e.launch->dynamic_shared, 0, &e.dynamic_shadow,
                                       true,    e.launch->dynamic_shared};
  } else if (const ModuleObject::Shared* variable = shared_variable(address)) {
    if (address + size > variable->begin + variable->size)
      return note_failure(Constant::CUDA_ERROR_ILLEGAL_ADDRESS,
                          what + "over the end of the shared variable " + variable->name);
    e.windows[e.next_window++ & 3u] = {variable->begin,        variable->size, 0,
                                       variable->shadow.get(), true,           variable->size};
  } else if (address >= e.module->begin && address + size <= e.module->end) {
    return;  // constants
  } else {
    const std::lock_guard lock(memory_mutex);
    const std::string where = address >= device_tag
                                  ? describe_address(address - device_tag) + ","
                                  : "an address that is neither its own nor shared,";
    return note_failure(Constant::CUDA_ERROR_ILLEGAL_ADDRESS,
                        what + "at " + where + " without VT_LOAD or VT_STORE");
  }
  if (e.watched) watch(e.windows[(e.next_window - 1) & 3u], address, size, writes);
}

void misaligned(unsigned size, unsigned alignment) {
  note_failure(Constant::CUDA_ERROR_MISALIGNED_ADDRESS, "an access of " + std::to_string(size) +
                                                            " bytes is not aligned to " +
                                                            std::to_string(alignment));
}

}  // namespace

// Ends the launch where the second of two stores changed what the first had left.
void compare_second_store() {
  Engine& e = engine();
  const unsigned char* at = e.twice.at;
  e.twice.at = nullptr;
  if (std::memcmp(at, e.twice.before, e.twice.size) != 0)
    note_failure(Constant::CUDA_ERROR_LAUNCH_FAILED, e.twice.what);
}

void* at(unsigned long base, long offset, unsigned size, unsigned alignment, int writes) {
  Engine& e = engine();
  const std::uint64_t address = base + static_cast<std::uint64_t>(offset);
  void* allowed = nullptr;
  if (address & (alignment - 1)) {
    misaligned(size, alignment);
  } else {
    const Window* window = nullptr;
    for (const Window& w : e.windows) {
      const std::uint64_t from = address - w.begin;
      if (from < w.size && w.size - from >= size && base - w.begin < w.bases) {
        window = &w;  // another one that it lies in would be of the same array
        break;
      }
    }
    if (window) {
      if (e.watched) watch(*window, address, size, writes);
      allowed = reinterpret_cast<void*>(address - window->tag);
    } else {
      allowed = at_slowly(base, address, size, writes);
    }
  }
  give_up_if_failed();
  return allowed;
}

void plain(const void* p, unsigned size, int writes) {
  Engine& e = engine();
  if (on_stack(e.running, p)) return;  // the thread's own variables
  const auto address = reinterpret_cast<std::uint64_t>(p);
  for (const Window& w : e.windows)
    if (w.shared && address - w.begin < w.size && w.size - (address - w.begin) >= size) {
      if (e.watched) watch(w, address, size, writes);
      return give_up_if_failed();
    }
  plain_slowly(address, size, writes);
  give_up_if_failed();
}

}  // namespace emulator
