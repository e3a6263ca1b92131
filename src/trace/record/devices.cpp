// The device that a value is on, and the device for ops without operands.
#include "devices.hpp"

#include <atomic>
#include <mutex>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/environment.hpp"
#include "../base/hash_map.hpp"
#include "../base/locks.hpp"
#include "node.hpp"
#include "thread_state.hpp"

namespace vt::detail {

namespace device_choice {

LongMutex<>& host_copies() {
  static LongMutex<> mutex;
  return mutex;
}

// The default device as one number: 0 is the host, n + 1 is cuda(n).
std::atomic<int>& chosen() {
  static std::atomic<int> device = [] { return backend_from_environment() == "cuda" ? 1 : 0; }();
  return device;
}

// Of a value that is not computed yet: the first device among what it is made from.
Device of_pending(const Node* root) {
  const std::lock_guard lock(lazy_mutex());
  HashMap<const Node*, char> seen;
  Vec<const Node*> open{root};
  while (!open.empty()) {
    const Node* n = open.back();
    open.pop_back();
    if (!seen.emplace(n, 1).fresh) continue;
    if (n->ready.load(std::memory_order_acquire)) {
      for (const BufferRef& b : n->buffers)
        if (b && b->device.kind != Device::Kind::cpu) return b->device;
      continue;
    }
    for (const Tensor& in : n->inputs) open.push_back(node_of(in));
  }
  return default_device();
}

}  // namespace device_choice

BufferRef on_host(const BufferRef& buffer) {
  if (buffer->device.kind == Device::Kind::cpu) return buffer;
  const std::lock_guard lock(device_choice::host_copies());
  if (!buffer->host) buffer->host = moved(buffer, vt::cpu());
  return buffer->host;
}

std::string unusable(Device device, const char* who) {
  const bool environment =
      std::string_view(who) == asks_by_default && backend_from_environment() == "cuda";
  return formatted("{}: {}{} cannot be used", who, text_of(device),
                   environment ? ", which VT_BACKEND=cuda asks for," : "");
}

std::string text_of(Device device) {
  return device.kind == Device::Kind::cpu ? "cpu" : formatted("cuda({})", device.index);
}

}  // namespace vt::detail

namespace vt {

Device default_device() {
  const int chosen = detail::device_choice::chosen().load(std::memory_order_relaxed);
  return chosen == 0 ? cpu() : cuda(chosen - 1);
}

void set_default_device(Device device, CallSite where) {
  detail::require_usable(device, "vt::set_default_device", where);
  detail::device_choice::chosen().store(device.kind == Device::Kind::cpu ? 0 : device.index + 1,
                                        std::memory_order_relaxed);
}

Device Tensor::device() const {
  const detail::Node* n = detail::node_of(*this);
  if (!n || n->level > 0) return default_device();
  if (!n->ready.load(std::memory_order_acquire)) return detail::device_choice::of_pending(n);
  return n->buffers[detail::output_of(*this)]->device;
}

Tensor Tensor::to(Device device, CallSite where) const {
  if (!defined()) detail::fail(ErrorKind::value, "vt::Tensor::to: the Tensor is empty", where);
  if (detail::node_of(*this)->level > 0) {
    if (device == this->device()) return *this;
    detail::fail(ErrorKind::tracer,
                 "vt::Tensor::to: inside a transformed function values have no device of their "
                 "own: move the arguments, or choose the device of vt::jit",
                 where);
  }
  detail::require_usable(device, "vt::Tensor::to", where);
  const detail::BufferRef here = detail::buffer_of(*this, where);
  if (here->device == device) return *this;
  return detail::made_at(where,
                         detail::from_buffer(detail::moved(here, device), detail::aval_of(*this)));
}

}  // namespace vt
