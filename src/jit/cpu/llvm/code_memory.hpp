// Owns the memory of compiled kernels: pages in a few large mappings that they share, as the system
// limits the number of mappings of a process.
#pragma once

#include <cstddef>

namespace vt::detail::cpu {

/// Whole pages of zeros, writable until they are sealed; freed when destroyed.
class CodeMemory {
 public:
  CodeMemory() = default;
  ~CodeMemory() { release(); }
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  /// In place of what there was. `alone`: in a mapping that nothing else shares, so that some of
  /// its pages may stay writable. False: there is no memory, or no mapping, to be had.
  bool take(std::size_t bytes, bool alone);
  /// The first `bytes`, up to whole pages, become executable and read-only. False as above.
  bool seal(std::size_t bytes);
  void release();
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  bool alone_ = false;
};

struct CodeUse {
  std::size_t kernels = 0;   ///< that have memory
  std::size_t bytes = 0;     ///< of their pages
  std::size_t mapped = 0;    ///< bytes of the mappings
  std::size_t mappings = 0;  ///< asked of the system
};
CodeUse code_use();
/// For tests: more than this is not mapped, as if the system had refused it. What was there stays.
void set_code_limit(std::size_t mapped_bytes);

}  // namespace vt::detail::cpu
