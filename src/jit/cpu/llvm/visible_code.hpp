// Owns what perf and gdb get to know about loaded code: perf's map file, and gdb's list of objects.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <vt/detail/small_vec.hpp>

namespace vt::detail::cpu {

/// Tells those that VT_PERF and VT_GDB ask for, under the innermost label. `object`: an ELF file
/// that was checked and loaded, `addresses`: where each section of it lies, 0 for those that do
/// not. The code must stay until the result has gone. Any thread.
std::shared_ptr<void> show_code(std::span<const char> object, const Vec<std::uint64_t>& addresses);

}  // namespace vt::detail::cpu
