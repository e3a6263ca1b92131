// Kernels compiled before they are asked for. A start of the C++ compiler takes ten times as long
// as one more kernel in a text that it compiles
// anyway: so the program is run once with kernels that do nothing, to see which it will ask for,
// and these are compiled many at a time.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace emulator {

/// Is this the run that only sees which kernels there are? Memory is zeros then, launches do
/// nothing, and compiled code is the kernels' names.
bool only_collects();

/// A source as the compiler got it, and where its code is kept.
struct Wanted {
  std::string source, name, flags, kept;
};
/// In such a run: notes a source for the run that waits for it.
void collect(const Wanted&);
/// There too: has the program asked for thousands of things since the last source that it compiled?
/// Then it goes round in a loop that never ends, as nothing is computed, and this call of
/// `function` shall fail.
bool loops_in_vain(const char* function);
/// Elsewhere, on the first call of a process in which VT_EMULATOR_AHEAD is a number of seconds:
/// runs the program again for as long at most, as above, and compiles what it collected.
void compile_ahead();

/// Code in a library that holds that of other sources too, as it is kept: where the library is, and
/// which of its units.
std::string unit_text(const std::string& path, std::size_t unit);
bool read_unit(const std::string& text, std::string* path, std::size_t* unit);
/// Part of the mangled names of all that belongs to a unit, and of no other's.
std::string unit_name(std::size_t unit);

// compiler.cpp
struct KernelName {
  std::string name, bounds;
};
std::vector<KernelName> kernels_of(const std::string& source);
/// The definition of `vt_kernels` that describes them.
std::string description_of(const std::vector<KernelName>& kernels);
/// Compiles a text as `flags` say (one argument a word) into a shared library; what the compiler
/// prints is added to `log`.
bool compile_text(const std::string& text, const std::string& flags,
                  const std::vector<std::pair<std::string, std::string>>& headers,
                  std::string* library, std::string* log);
std::string cache_folder();
std::uint64_t hash(const std::string& text, std::uint64_t basis);

}  // namespace emulator
