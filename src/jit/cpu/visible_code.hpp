// Owns what perf and gdb are told of loaded code: perf's map file, and gdb's list of objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace vt::detail::cpu {

/// A function of an object file, in memory.
struct VisibleFunction {
  std::string_view name;
  std::uint64_t start, size;
};

/// Tells those that VT_PERF and VT_GDB ask for, under the innermost label. `addresses`: where each section of the ELF file lies, 0 for those that
/// do not. The code must stay until the result has gone. Any thread.
std::shared_ptr<const void> show_code(std::span<const char> object, std::span<const std::uint64_t> addresses,
                                      std::span<const VisibleFunction> functions);

}  // namespace vt::detail::cpu
