// Launch: one kernel of a step, or one library call: its text, its code once that is made, and its
// arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/graph.hpp"
#include "../libraries/library_call.hpp"
#include "compile.hpp"

namespace vt::detail::cuda {

struct Launch {
  /// A kernel's pointer: to the memory of a Var, or (−1) to the scratch memory that the launches of
  /// one step share.
  struct Pointer {
    Var var = -1;
    std::int64_t offset = 0;  ///< bytes
  };
  std::string name = {}, source = {};
  DeviceCode::Grid grid = {};
  /// > 0: any number of blocks does it, and more than these would have nothing to do
  std::int64_t useful_blocks = 0;
  SmallVec<Pointer, 8> pointers = {};  ///< the kernel's first parameters …
  Vec<std::int64_t> numbers = {};      ///< … and those that follow, `long long` each
  std::shared_ptr<const DeviceCode> code = {};
  double work = -1;  ///< about how many operations it does; −1: not known
  std::shared_ptr<const LibraryCall> library = {};  ///< takes the pointers, and there is no kernel
};

/// Scratch memory that a step's launches share: each piece begins where 16 bytes at a time can be
/// read.
class ScratchLayout {
 public:
  Launch::Pointer take(std::int64_t bytes) {
    const std::int64_t at = bytes_;
    bytes_ += (bytes + 255) / 256 * 256;
    return {-1, at};
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

}  // namespace vt::detail::cuda
