// Memory of the emulated devices: allocations between guarded edges, filled with garbage, looked up
// by every access; copies.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ahead.hpp"
#include "emulator.hpp"

namespace emulator {

namespace {

constexpr std::uint64_t edge = 256;  // bytes around an allocation that nobody owns
// freed memory that stays, so that uses of it are noticed
constexpr std::uint64_t kept_after_free = 64ull << 20;
constexpr unsigned char garbage = 0xff, garbage_of_freed = 0xfb;  // NaN in every type

struct Memory {
  std::map<std::uint64_t, Allocation*> by_begin;
  std::deque<Allocation*> freed;
  std::uint64_t freed_bytes = 0, bytes[max_devices] = {};
  std::uint64_t peak = 0;
  int next_number = 1;
  std::map<const char*, std::size_t> pinned;
};
Memory& memory() {
  static Memory* const all = new Memory;
  return *all;
}

std::uint64_t capacity() {
  return static_cast<std::uint64_t>(setting("VT_EMULATOR_MEMORY", 4ll << 30));
}

// Hold the mutex.
Allocation* make(std::uint64_t size, int device, bool coming) {
  Memory& m = memory();
  if (m.bytes[device] + size > capacity()) return nullptr;
  const std::uint64_t whole = (size + 3 * edge - 1) / edge * edge;
  auto* begin = static_cast<unsigned char*>(std::aligned_alloc(edge, whole));
  if (!begin) return nullptr;
  // where nothing runs, loops that hang on values end at once
  std::memset(begin, only_collects() ? 0 : garbage, whole);
  auto* a = new Allocation;
  a->begin = reinterpret_cast<std::uint64_t>(begin) + edge;
  a->size = size;
  a->device = device;
  a->number = m.next_number++;
  a->state = coming ? Allocation::coming : Allocation::live;
  m.by_begin[a->begin] = a;
  m.bytes[device] += size;
  m.peak = std::max(m.peak, m.bytes[device]);
  return a;
}

void release(Allocation* a) {
  Memory& m = memory();
  std::memset(reinterpret_cast<void*>(a->begin), garbage_of_freed, a->size);
  a->state = Allocation::freed;
  m.bytes[a->device] -= a->size;
  m.freed.push_back(a);
  m.freed_bytes += a->size;
  while (m.freed_bytes > kept_after_free || m.freed.size() > 10000) {
    Allocation* oldest = m.freed.front();
    m.freed.pop_front();
    m.freed_bytes -= oldest->size;
    m.by_begin.erase(oldest->begin);
    std::free(reinterpret_cast<void*>(oldest->begin - edge));
    delete oldest;
  }
}

// The allocation that begins at a device pointer and is not freed.
Allocation* owned(DevicePtr pointer) {
  const auto found = memory().by_begin.find(pointer - device_tag);
  return found == memory().by_begin.end() || found->second->state == Allocation::freed
             ? nullptr
             : found->second;
}

bool known_range(DevicePtr pointer, std::uint64_t size) {
  const std::lock_guard lock(memory_mutex);
  if (pointer < device_tag) return false;
  const Allocation* a = find_allocation(pointer - device_tag);
  return a && pointer - device_tag + size <= a->end();
}

// Host memory that a copy reads: kept as it is now unless it is pinned.
struct Staged {
  const void* source;
  std::vector<char> copy;
  const void* data() const { return copy.empty() ? source : copy.data(); }
};

Result bad_copy(const char* what, DevicePtr pointer, std::uint64_t size, const std::string& why) {
  add_report(std::string(what) + " of " + std::to_string(size) + " bytes at " +
             describe_address(pointer - device_tag) + ": " + why);
  return Constant::CUDA_ERROR_ILLEGAL_ADDRESS;
}

// A device pointer where the host's is asked for: the emulator's devices are not mapped into the
// host's memory.
bool is_host(const void* pointer) {
  return pointer && reinterpret_cast<std::uint64_t>(pointer) < device_tag;
}

}  // namespace

std::mutex& memory_mutex = *new std::mutex;

Allocation* find_allocation(std::uint64_t address) {
  auto& all = memory().by_begin;
  auto next = all.upper_bound(address);
  if (next != all.begin()) {
    Allocation* a = std::prev(next)->second;
    if (address <= a->end()) return a;
  }
  return nullptr;
}

std::string describe_address(std::uint64_t address) {
  Allocation* near = find_allocation(address);
  if (!near) {  // a little in front of or behind one: then it is meant
    auto& all = memory().by_begin;
    const auto next = all.upper_bound(address);
    if (next != all.begin() && address - std::prev(next)->second->end() <= (1u << 20))
      near = std::prev(next)->second;
    else if (next != all.end() && next->second->begin - address <= (1u << 20)) near = next->second;
  }
  if (!near) return "an address far from all allocations";
  const char* states[] = {"not yet allocated at that point of its stream", "live", "freed"};
  const auto offset = static_cast<long long>(address - near->begin);
  return "byte " + std::to_string(offset) + " of allocation " + std::to_string(near->number) +
         " (" + std::to_string(near->size) + " bytes on device " + std::to_string(near->device) +
         ", " + states[near->state] + ")";
}

bool device_range(DevicePtr pointer, std::uint64_t size, int device, std::string* why) {
  const std::lock_guard lock(memory_mutex);
  const Allocation* a = pointer < device_tag ? nullptr : find_allocation(pointer - device_tag);
  if (!a || pointer - device_tag + size > a->end()) {
    *why = "outside of all allocations";
  } else if (a->state != Allocation::live) {
    *why = a->state == Allocation::freed ? "freed memory"
                                         : "memory that is allocated later in its stream";
  } else if (device >= 0 && a->device != device) {
    *why = "memory of another device";
  } else {
    return true;
  }
  return false;
}

Result copy_on_device(DevicePtr to, DevicePtr from, std::uint64_t bytes, int device) {
  std::string why;
  if (!device_range(to, bytes, device, &why))
    return bad_copy("a copy on the device", to, bytes, why);
  if (!device_range(from, bytes, device, &why))
    return bad_copy("a copy on the device", from, bytes, why);
  std::memmove(reinterpret_cast<void*>(to - device_tag),
               reinterpret_cast<const void*>(from - device_tag), bytes);
  return Constant::CUDA_SUCCESS;
}

bool is_pinned(const void* pointer) {
  const std::lock_guard lock(memory_mutex);
  auto& pinned = memory().pinned;
  const auto next = pinned.upper_bound(static_cast<const char*>(pointer));
  return next != pinned.begin() &&
         static_cast<const char*>(pointer) < std::prev(next)->first + std::prev(next)->second;
}

long long alive_handles(const std::string& what);  // streams.cpp

long long alive(const std::string& what) {
  {
    const std::lock_guard lock(memory_mutex);
    const Memory& m = memory();
    if (what == "allocations") return static_cast<long long>(m.by_begin.size() - m.freed.size());
    if (what == "pinned") return static_cast<long long>(m.pinned.size());
    if (what == "peak_bytes") return static_cast<long long>(m.peak);
    if (what == "bytes") {
      std::uint64_t sum = 0;
      for (std::uint64_t bytes : m.bytes) sum += bytes;
      return static_cast<long long>(sum);
    }
  }
  return alive_handles(what);
}

}  // namespace emulator

using namespace emulator;
using namespace vt::detail::cuda;

extern "C" {

Result cuDeviceTotalMem_v2(std::size_t* bytes, Device_ device) {
  if (const Result error = enter("cuDeviceTotalMem_v2", needs_start)) return error;
  if (device < 0 || device >= device_count()) return Constant::CUDA_ERROR_INVALID_DEVICE;
  *bytes = capacity();
  return 0;
}
Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  if (const Result error = enter("cuMemGetInfo_v2", needs_start | needs_context)) return error;
  const std::lock_guard lock(memory_mutex);
  *total = capacity();
  *free = *total - std::min<std::size_t>(*total, memory().bytes[current_device()]);
  return 0;
}
Result cuMemAlloc_v2(DevicePtr* pointer, std::size_t bytes) {
  if (const Result error = enter("cuMemAlloc_v2", needs_start | needs_context)) return error;
  if (bytes == 0) return Constant::CUDA_ERROR_INVALID_VALUE;
  if (breaks_capture()) return Constant::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard lock(memory_mutex);
  const Allocation* a = make(bytes, current_device(), false);
  if (!a) return Constant::CUDA_ERROR_OUT_OF_MEMORY;
  *pointer = a->begin + device_tag;
  return 0;
}
Result cuMemFree_v2(DevicePtr pointer) {
  if (const Result error = enter("cuMemFree_v2", needs_start | needs_context)) return error;
  if (pointer == 0) return 0;
  if (breaks_capture()) return Constant::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  {
    const std::lock_guard lock(memory_mutex);
    if (!owned(pointer)) return Constant::CUDA_ERROR_INVALID_VALUE;
  }
  const Result before = finish_device(current_device());  // work that was begun may still use it
  const std::lock_guard lock(memory_mutex);
  Allocation* a = owned(pointer);
  if (!a) return Constant::CUDA_ERROR_INVALID_VALUE;
  release(a);
  return before;
}
Result cuMemAllocAsync(DevicePtr* pointer, std::size_t bytes, Stream stream) {
  if (const Result error = enter("cuMemAllocAsync", needs_start | needs_context)) return error;
  if (bytes == 0) return Constant::CUDA_ERROR_INVALID_VALUE;
  const int device = device_of(stream);
  if (device < 0) return Constant::CUDA_ERROR_INVALID_HANDLE;
  Allocation* a;
  {
    const std::lock_guard lock(memory_mutex);
    a = make(bytes, device, true);
  }
  if (!a) {  // what streams have not freed yet may be enough
    finish_device(device);
    const std::lock_guard lock(memory_mutex);
    a = make(bytes, device, true);
    if (!a) return Constant::CUDA_ERROR_OUT_OF_MEMORY;
  }
  const auto appear = [a] {
    const std::lock_guard lock(memory_mutex);
    a->state = Allocation::live;
    return Constant::CUDA_SUCCESS;
  };
  if (const Result error = enqueue(stream, "allocate", appear, false)) {
    const std::lock_guard lock(memory_mutex);
    release(a);
    return error;
  }
  *pointer = a->begin + device_tag;
  return 0;
}
Result cuMemFreeAsync(DevicePtr pointer, Stream stream) {
  if (const Result error = enter("cuMemFreeAsync", needs_start | needs_context)) return error;
  if (pointer == 0) return 0;
  {
    const std::lock_guard lock(memory_mutex);
    if (!owned(pointer)) return Constant::CUDA_ERROR_INVALID_VALUE;
  }
  return enqueue(
      stream, "free",
      [pointer] {
        const std::lock_guard lock(memory_mutex);
        Allocation* a = owned(pointer);
        if (!a) return Constant::CUDA_ERROR_INVALID_VALUE;  // freed twice
        release(a);
        return Constant::CUDA_SUCCESS;
      },
      false);
}
Result cuDeviceGetDefaultMemPool(MemPool* pool, Device_ device) {
  if (const Result error = enter("cuDeviceGetDefaultMemPool", needs_start)) return error;
  if (device < 0 || device >= device_count()) return Constant::CUDA_ERROR_INVALID_DEVICE;
  static char pools[max_devices];
  *pool = reinterpret_cast<MemPool>(pools + device);
  return 0;
}
Result cuMemPoolSetAttribute(MemPool pool, int attribute, void* value) {
  if (const Result error = enter("cuMemPoolSetAttribute", needs_start)) return error;
  return pool && value && attribute == Constant::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
             ? Constant::CUDA_SUCCESS
             : Constant::CUDA_ERROR_INVALID_VALUE;
}
Result cuMemPoolTrimTo(MemPool pool, std::size_t) {
  if (const Result error = enter("cuMemPoolTrimTo", needs_start)) return error;
  return pool ? Constant::CUDA_SUCCESS : Constant::CUDA_ERROR_INVALID_VALUE;
}
Result cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  if (const Result error = enter("cuMemAllocHost_v2", needs_start | needs_context)) return error;
  if (bytes == 0) return Constant::CUDA_ERROR_INVALID_VALUE;
  if (breaks_capture()) return Constant::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  *pointer = std::aligned_alloc(edge, (bytes + edge - 1) / edge * edge);
  if (!*pointer) return Constant::CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(*pointer, only_collects() ? 0 : garbage, bytes);
  const std::lock_guard lock(memory_mutex);
  memory().pinned[static_cast<char*>(*pointer)] = bytes;
  return 0;
}
Result cuMemFreeHost(void* pointer) {
  if (const Result error = enter("cuMemFreeHost", needs_start | needs_context | even_if_lost))
    return error;
  if (breaks_capture()) return Constant::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  {
    const std::lock_guard lock(memory_mutex);
    if (!memory().pinned.count(static_cast<char*>(pointer)))
      return Constant::CUDA_ERROR_INVALID_VALUE;
  }
  finish_device(current_device());  // copies that were begun may still use it
  const std::lock_guard lock(memory_mutex);
  memory().pinned.erase(static_cast<char*>(pointer));
  std::free(pointer);
  return 0;
}
Result cuMemcpyHtoDAsync_v2(DevicePtr to, const void* from, std::size_t bytes, Stream stream) {
  if (const Result error = enter("cuMemcpyHtoDAsync_v2", needs_start | needs_context)) return error;
  count("copies");
  if (bytes == 0) return 0;
  if (!is_host(from) || !known_range(to, bytes)) return Constant::CUDA_ERROR_INVALID_VALUE;
  const int device = device_of(stream);
  auto staged = std::make_shared<Staged>();
  staged->source = from;
  if (!is_pinned(from))
    staged->copy.assign(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
  return enqueue(stream, "copy to device", [=] {
    std::string why;
    if (!device_range(to, bytes, device, &why))
      return bad_copy("a copy to the device", to, bytes, why);
    std::memcpy(reinterpret_cast<void*>(to - device_tag), staged->data(), bytes);
    return Constant::CUDA_SUCCESS;
  });
}
Result cuMemcpyDtoHAsync_v2(void* to, DevicePtr from, std::size_t bytes, Stream stream) {
  if (const Result error = enter("cuMemcpyDtoHAsync_v2", needs_start | needs_context)) return error;
  count("copies");
  if (bytes == 0) return 0;
  if (!is_host(to) || !known_range(from, bytes)) return Constant::CUDA_ERROR_INVALID_VALUE;
  const int device = device_of(stream);
  const Result queued = enqueue(stream, "copy to host", [=] {
    std::string why;
    if (!device_range(from, bytes, device, &why))
      return bad_copy("a copy to the host", from, bytes, why);
    std::memcpy(to, reinterpret_cast<const void*>(from - device_tag), bytes);
    return Constant::CUDA_SUCCESS;
  });
  if (queued || is_pinned(to)) return queued;
  return breaks_capture() ? Constant::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                          // into pageable memory: when the call returns it is there
                          : finish(stream);
}
Result cuMemcpyPeerAsync(DevicePtr to, Context to_context, DevicePtr from, Context from_context,
                         std::size_t bytes, Stream stream) {
  if (const Result error = enter("cuMemcpyPeerAsync", needs_start | needs_context)) return error;
  count("copies");
  if (bytes == 0) return 0;
  if (!to_context || !from_context || !known_range(to, bytes) || !known_range(from, bytes))
    return Constant::CUDA_ERROR_INVALID_VALUE;
  return enqueue(stream, "copy between devices", [=] {
    std::string why;
    if (!device_range(to, bytes, -1, &why))
      return bad_copy("a copy between devices", to, bytes, why);
    if (!device_range(from, bytes, -1, &why))
      return bad_copy("a copy between devices", from, bytes, why);
    std::memmove(reinterpret_cast<void*>(to - device_tag),
                 reinterpret_cast<const void*>(from - device_tag), bytes);
    return Constant::CUDA_SUCCESS;
  });
}
Result cuMemcpyDtoDAsync_v2(DevicePtr to, DevicePtr from, std::size_t bytes, Stream stream) {
  if (const Result error = enter("cuMemcpyDtoDAsync_v2", needs_start | needs_context)) return error;
  count("copies");
  if (bytes == 0) return 0;
  if (!known_range(to, bytes) || !known_range(from, bytes))
    return Constant::CUDA_ERROR_INVALID_VALUE;
  const int device = device_of(stream);
  return enqueue(stream, "copy on device", [=] { return copy_on_device(to, from, bytes, device); });
}
Result cuMemsetD8Async(DevicePtr to, unsigned char value, std::size_t bytes, Stream stream) {
  if (const Result error = enter("cuMemsetD8Async", needs_start | needs_context)) return error;
  if (bytes == 0) return 0;
  if (!known_range(to, bytes)) return Constant::CUDA_ERROR_INVALID_VALUE;
  const int device = device_of(stream);
  return enqueue(stream, "set", [=] {
    std::string why;
    if (!device_range(to, bytes, device, &why)) return bad_copy("setting memory", to, bytes, why);
    std::memset(reinterpret_cast<void*>(to - device_tag), value, bytes);
    return Constant::CUDA_SUCCESS;
  });
}
}
