// Staging: pinned memory for copies between host and device.
#include "staging.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "device.hpp"

namespace vt::detail::cuda {

namespace staging_sizes {

// Numbers and small arguments; pieces of what is large, so that the host copies one while another
// is on its way.
constexpr std::size_t small = std::size_t{64} << 10, large = std::size_t{4} << 20;
constexpr std::size_t most_small = 256, most_large = 16;

}  // namespace staging_sizes

Staging::Block* Staging::make(std::size_t bytes) const {
  auto block = std::make_unique<Block>();
  const Driver& d = device_.driver();
  void* data = nullptr;
  if (d.cuMemAllocHost_v2(&data, bytes) != Constant::CUDA_SUCCESS) return nullptr;
  if (d.cuEventCreate(&block->done, Constant::CU_EVENT_DISABLE_TIMING) != Constant::CUDA_SUCCESS) {
    static_cast<void>(d.cuMemFreeHost(data));
    return nullptr;
  }
  block->data = static_cast<char*>(data);
  block->bytes = bytes;
  block->busy = true;
  return block.release();
}

Staging::Block* Staging::take(std::size_t bytes) {
  using namespace staging_sizes;
  const std::size_t wanted = bytes <= small ? small : large,
                    most = wanted == small ? most_small : most_large;
  for (;;) {
    Block* oldest = nullptr;
    {
      const std::lock_guard lock(mutex_);
      std::size_t made = 0;
      for (Block* b : blocks_) {
        if (b->bytes != wanted) continue;
        ++made;
        if (!b->busy && (!oldest || b->turn < oldest->turn)) oldest = b;
      }
      // Copies are done in the order in which they were given: if the oldest is not, none is.
      if (oldest && oldest->pending &&
          device_.driver().cuEventQuery(oldest->done) == Constant::CUDA_SUCCESS)
        oldest->pending = false;
      if (!oldest || oldest->pending) {
        if (made < most) {
          Block* const fresh = make(wanted);
          if (fresh) blocks_.push_back(fresh);
          if (fresh || !oldest) return fresh;
        }
        if (!oldest) return nullptr;
      }
      oldest->busy = true;
      if (!oldest->pending) return oldest;
    }
    const Result r = device_.driver().cuEventSynchronize(oldest->done);
    if (r != Constant::CUDA_SUCCESS) give_back(oldest, true);
    device_.check(r, "cuEventSynchronize");
    return oldest;
  }
}

void Staging::give_back(Block* block, bool pending) {
  const std::lock_guard lock(mutex_);
  block->pending = pending;
  block->turn = ++turns_;
  block->busy = false;
}

// Without an event nobody could wait for the copy that is under way: it ends here.
Result Staging::mark(const Block& block) const {
  const Result r = device_.driver().cuEventRecord(block.done, device_.stream());
  if (r != Constant::CUDA_SUCCESS)
    static_cast<void>(device_.driver().cuStreamSynchronize(device_.stream()));
  return r;
}

bool Staging::upload(DevicePtr to, const void* from, std::size_t bytes) {
  const Driver& d = device_.driver();
  for (std::size_t at = 0; at < bytes;) {
    Block* const block = take(bytes - at);
    if (!block) return false;
    const std::size_t n = std::min(bytes - at, block->bytes);
    std::memcpy(block->data, static_cast<const char*>(from) + at, n);
    const Result r = d.cuMemcpyHtoDAsync_v2(to + at, block->data, n, device_.stream());
    const Result marked = r == Constant::CUDA_SUCCESS ? mark(*block) : r;
    give_back(block, true);
    device_.check(r, "cuMemcpyHtoDAsync");
    device_.check(marked, "cuEventRecord");
    at += n;
  }
  return true;
}

bool Staging::download(void* to, DevicePtr from, std::size_t bytes) {
  const Driver& d = device_.driver();
  struct Piece {
    Block* block;
    std::size_t at, bytes;
  } on_its_way[2] = {};
  // Waits for a piece and takes it out.
  const auto finish = [&](Piece& p) {
    if (!p.block) return;
    const Result r = d.cuEventSynchronize(p.block->done);
    if (r == Constant::CUDA_SUCCESS)
      std::memcpy(static_cast<char*>(to) + p.at, p.block->data, p.bytes);
    give_back(p.block, r != Constant::CUDA_SUCCESS);
    p.block = nullptr;
    device_.check(r, "cuEventSynchronize");
  };
  std::size_t turn = 0;
  bool whole = true;
  for (std::size_t at = 0; at < bytes && whole; ++turn) {
    Piece& p = on_its_way[turn % 2];
    finish(p);
    Block* const block = take(bytes - at);
    whole = block != nullptr;
    if (!whole) break;
    const std::size_t n = std::min(bytes - at, block->bytes);
    const Result r = d.cuMemcpyDtoHAsync_v2(block->data, from + at, n, device_.stream());
    const Result marked = r == Constant::CUDA_SUCCESS ? mark(*block) : r;
    if (marked != Constant::CUDA_SUCCESS) {
      give_back(block, true);
      finish(on_its_way[(turn + 1) % 2]);
      device_.check(r, "cuMemcpyDtoHAsync");
      device_.check(marked, "cuEventRecord");
    }
    p = {block, at, n};
    at += n;
  }
  finish(on_its_way[turn % 2]);
  finish(on_its_way[(turn + 1) % 2]);
  return whole;
}

}  // namespace vt::detail::cuda
