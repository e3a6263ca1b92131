// Devices: contexts, streams, memory and copies; which device a Tensor is on.
#include "device.hpp"

#include <memory>
#include <mutex>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/locks.hpp"
#include "../../../trace/base/timeline.hpp"
#include "../../../trace/record/thread_state.hpp"
#include "../../fusion/buffer_plan.hpp"

namespace vt::detail::cuda {

namespace device_list {

constexpr int most_devices = 64;

struct List {
  LongMutex<> mutex;
  CudaDevice* devices[most_devices] = {};
};
List& list() {
  // never destroyed: values may be let go while the process ends
  static List* const made = new List;
  return *made;
}

/// Memory of a device that a Buffer holds.
struct Block {
  const CudaDevice* device;
  DevicePtr at;
  bool pooled;
};

void let_go(void* owner) {
  Block* const block = static_cast<Block*>(owner);
  const Driver& d = block->device->driver();
  // Nobody can be told of an error here; one that ends the device's work shows at the next call. A
  // driver that is being unloaded refuses.
  if (d.cuCtxGetCurrent) {
    block->device->enter_quietly();
    if (block->pooled) static_cast<void>(d.cuMemFreeAsync(block->at, block->device->stream()));
    else static_cast<void>(d.cuMemFree_v2(block->at));
  }
  delete block;
}

}  // namespace device_list

CudaDevice& CudaDevice::get(int index, const char* who, CallSite where) {
  std::string reason;
  const Driver* d = cuda::driver(&reason);
  if (!d) fail(ErrorKind::backend, unusable(vt::cuda(index), who) + ": " + reason, where);
  require_device(index, where);
  device_list::List& all = device_list::list();
  const std::lock_guard lock(all.mutex);
  if (index >= 0 && index < device_list::most_devices && all.devices[index])
    return *all.devices[index];
  int count = 0;
  cuda::check(d->cuDeviceGetCount(&count), "cuDeviceGetCount", where);
  if (index < 0 || index >= count || index >= device_list::most_devices)
    fail(ErrorKind::backend,
         formatted("{}: there is no cuda({}): the driver knows {} device{}", who, index, count,
                   count == 1 ? "" : "s"),
         where);
  return *(all.devices[index] = new CudaDevice(*d, index, where));
}

CudaDevice::CudaDevice(const Driver& driver, int index, CallSite where)
    : driver_(driver), index_(index) {
  Device_ device = 0;
  const auto need = [&](Result r, const char* what) { cuda::check(r, what, where, index); };
  need(driver_.cuDeviceGet(&device, index), "cuDeviceGet");
  const auto attribute = [&](int which) {
    int value = 0;
    need(driver_.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
    return value;
  };
  char name[256] = "";
  need(driver_.cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
  facts_.name = name;
  facts_.major = attribute(Constant::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  facts_.minor = attribute(Constant::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts_.multiprocessors = attribute(Constant::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts_.threads = attribute(Constant::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  facts_.shared_bytes = attribute(Constant::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  need(driver_.cuDeviceTotalMem_v2(&facts_.memory_bytes, device), "cuDeviceTotalMem");
  pools_ = attribute(Constant::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0;
  need(driver_.cuDevicePrimaryCtxRetain(&context_, device), "cuDevicePrimaryCtxRetain");
  try {
    enter();
    need(driver_.cuStreamCreate(&stream_, Constant::CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (!pools_) return;
    // What was let go stays with the process, to be handed out again.
    MemPool pool = nullptr;
    unsigned long long keep = ~0ull;
    need(driver_.cuDeviceGetDefaultMemPool(&pool, device), "cuDeviceGetDefaultMemPool");
    need(driver_.cuMemPoolSetAttribute(pool, Constant::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
         "cuMemPoolSetAttribute");
  } catch (...) {  // whoever asks next starts anew
    if (stream_) static_cast<void>(driver_.cuStreamDestroy_v2(stream_));
    static_cast<void>(driver_.cuDevicePrimaryCtxRelease_v2(device));
    throw;
  }
}

void CudaDevice::enter() const { check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }
void CudaDevice::enter_quietly() const { static_cast<void>(driver_.cuCtxSetCurrent(context_)); }

BufferRef CudaDevice::allocate(std::size_t bytes, const char* what, const GraphBody* asking) const {
  enter();
  auto block = std::make_unique<device_list::Block>(device_list::Block{this, 0, pools_});
  const std::size_t wanted = bytes ? bytes : 1;
  const Result r = pools_ ? driver_.cuMemAllocAsync(&block->at, wanted, stream_)
                          : driver_.cuMemAlloc_v2(&block->at, wanted);
  if (r == Constant::CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free = 0, total = 0;
    static_cast<void>(driver_.cuMemGetInfo_v2(&free, &total));
    fail(ErrorKind::memory,
         formatted("vt: {} of {} bytes does not fit on cuda({}), where {} of {} bytes are free",
                   what, bytes, index_, free, total),
         asking ? line_of_largest(*asking) : thread_state().where);
  }
  check(r, pools_ ? "cuMemAllocAsync" : "cuMemAlloc");
  BufferRef buffer = borrow_memory(reinterpret_cast<void*>(block->at), bytes);
  buffer->device = vt::cuda(index_);
  buffer->owner = block.release();
  buffer->let_go = device_list::let_go;
  return buffer;
}

BufferRef CudaDevice::upload(const Buffer& host) const {
  const Span span("copy", "to the device");
  BufferRef copy = allocate(host.bytes, "a copy");
  if (host.bytes && !staging_.upload(address(*copy), host.data, host.bytes)) {
    check(driver_.cuMemcpyHtoDAsync_v2(address(*copy), host.data, host.bytes, stream_),
          "cuMemcpyHtoDAsync");
    synchronise();  // the host's memory may change or go once this returns
  }
  return copy;
}

BufferRef CudaDevice::download(const Buffer& device) const {
  const Span span("copy", "to the host");
  enter();
  BufferRef copy = vt::detail::allocate(device.bytes, "a copy");
  if (device.bytes && !staging_.download(copy->data, address(device), device.bytes)) {
    check(driver_.cuMemcpyDtoHAsync_v2(copy->data, address(device), device.bytes, stream_),
          "cuMemcpyDtoHAsync");
    synchronise();
  }
  return copy;
}

void CudaDevice::copy(DevicePtr to, DevicePtr from, std::size_t bytes) const {
  if (bytes && to != from)
    check(driver_.cuMemcpyDtoDAsync_v2(to, from, bytes, stream_), "cuMemcpyDtoDAsync");
}

void CudaDevice::synchronise() const {
  check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

}  // namespace vt::detail::cuda

namespace vt::detail {

BufferRef moved(const BufferRef& buffer, Device to) {
  if (buffer->device == to) return buffer;
  if (to.kind == Device::Kind::cpu)
    return cuda::CudaDevice::get(buffer->device.index).download(*buffer);
  if (buffer->device.kind == Device::Kind::cpu)
    return cuda::CudaDevice::get(to.index).upload(*buffer);
  return moved(moved(buffer, vt::cpu()), to);
}

BufferRef sole_on_device(BufferRef buffer) {
  // A part of a block holds the whole, as others may.
  if (buffer->references.load() == 1 && buffer->let_go == cuda::device_list::let_go) {
    buffer->host = {};  // what the host has seen of it will be no more
    return buffer;
  }
  const cuda::CudaDevice& device = cuda::CudaDevice::get(buffer->device.index);
  BufferRef copy = device.allocate(buffer->bytes, "a donated argument that others hold");
  device.copy(cuda::address(*copy), cuda::address(*buffer), buffer->bytes);
  return copy;
}

void require_usable(Device device, const char* who, CallSite where) {
  if (device.kind == Device::Kind::cuda) cuda::CudaDevice::get(device.index, who, where);
}

}  // namespace vt::detail
