// Settings from environment variables: one of several words, or a number.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace vt::detail {

/// The value of variable `name` if it is one of `words`, else an empty one. What is neither is left
/// out, and vt::warnings() says so.
std::string_view word_from_environment(const char* name,
                                       std::initializer_list<std::string_view> words);

/// Variable `name` as a number from `least` (not below 0) to `most`, with an optional K, M, G or T
/// (powers of 1024) where it counts bytes; else `otherwise`. What is not such a number is left out,
/// and vt::warnings() says so.
std::int64_t number_from_environment(const char* name, std::int64_t least, std::int64_t most,
                                     std::int64_t otherwise, bool bytes = false);

/// Variable `name`, 0 or 1.
inline bool switch_from_environment(const char* name, bool otherwise) {
  const std::string_view word = word_from_environment(name, {"0", "1"});
  return word.empty() ? otherwise : word == "1";
}

// The settings that are words, each with its words.
inline std::string_view backend_from_environment() {
  return word_from_environment("VT_BACKEND", {"interpreter", "cpu", "cuda"});
}
inline std::string_view isa_from_environment() {
  return word_from_environment("VT_CPU_ISA", {"sse2", "avx2", "avx512"});
}
inline std::string_view lanes_from_environment() {
  return word_from_environment("VT_LANES", {"automatic", "groups", "hybrid"});
}
inline std::string_view autobatch_from_environment() {
  return word_from_environment("VT_AUTOBATCH", {"off"});
}
inline std::string_view tiers_from_environment() {
  return word_from_environment("VT_TIERS", {"off"});
}
inline std::string_view machine_from_environment() {
  return word_from_environment("VT_MACHINE", {"usual"});
}
inline bool debug_nans_from_environment() {
  return switch_from_environment("VT_DEBUG_NANS", false);
}
inline bool perf_from_environment() { return switch_from_environment("VT_PERF", false); }
inline bool gdb_from_environment() { return switch_from_environment("VT_GDB", false); }
inline bool tf32_from_environment() { return switch_from_environment("VT_TF32", false); }
inline bool cuda_loops_from_environment() { return switch_from_environment("VT_CUDA_LOOPS", true); }
inline bool cuda_graphs_from_environment() {
  return switch_from_environment("VT_CUDA_GRAPHS", true);
}
/// In seconds.
inline std::int64_t deadline_from_environment() {
  return number_from_environment("VT_DEADLINE", 1, 1'000'000'000, 300);
}

/// Set on a thread that computes beside as many others as there are processors: it takes no further
/// ones for its kernels.
inline constinit thread_local bool has_one_processor = false;

/// How many processes of this program the launcher of MPI has started on this host, as it tells
/// them; 1 where it has told nothing.
int processes_of_host();

/// Warns of a variable that begins with VT_ and is nearly one of vt's. Those of others, like
/// VT_FUZZ_SEED of vt's tests, may begin so too.
void check_name(std::string_view name);
/// Warns of every such setting that is not understood, also of those that nothing has asked for
/// yet, and where the environment can be listed of every such name.
void check_settings();

}  // namespace vt::detail
