// Machine code by key: made once in a process, and (through the disk cache) once on a machine.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <vt/detail/function.hpp>
#include "compile.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

/// The code for `key`, which must determine what `emit` builds (with the target and this build of
/// vt). `names` are the functions that it exports. Keys for which `emit` builds the same module
/// have the same code, in memory and on disk, where each key has an entry of its own that says
/// which. Any thread may call it; two that want one key at once compile it once. Null while
/// Planning.
std::shared_ptr<const Code> cached_code(const std::string& key, std::span<const std::string> names,
                                        FunctionRef<void(IrBuilder&)> emit);

/// The same with one function. In a `hurry` it is compiled at LLVM's lowest level, which takes half
/// of the time or less, and replaced by optimised code when the background thread has made it;
/// `emit` owns what it needs.
std::shared_ptr<const Code> cached_code(const std::string& key, const std::string& name,
                                        const Function<void(IrBuilder&)>& emit, bool hurry);

/// Code that may be that of other keys, too, and what it takes to be that of this one.
struct FormedCode {
  std::shared_ptr<const Code> code;
  Vec<std::int64_t> numbers;  ///< see IrBuilder::number
};
/// The same where emitted code takes numbers, which the key's entry holds as well. No `wait`: no
/// code while another thread is making it.
FormedCode formed_code(const std::string& key, const std::string& name,
                       const Function<void(IrBuilder&)>& emit, bool hurry, bool wait);

/// Kernels that are kept for the next program that wants them: those used last. Others stay for as
/// long as a program has them.
inline constexpr std::size_t most_kernels = 4096;
/// Forgets the kernels and programs that are only kept in case they are wanted again. What runs, or
/// belongs to a jitted function, stays.
void drop_unused_code();
/// For tests: as many kernels are kept instead of most_kernels.
void set_most_kernels(std::size_t most);

}  // namespace vt::detail::cpu

#endif
