// Settings from environment variables: one of several words, or a number.
#include "environment.hpp"

#include <cstdlib>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "warnings.hpp"

#if !defined(_WIN32) && !defined(__APPLE__)
extern char** environ;
#endif

namespace vt::detail {

namespace settings {

/// All that vt reads; scripts/api_pages compares them with docs/api/environment.md.
constexpr std::string_view known[] = {
    "VT_AUTOBATCH",    "VT_BACKEND",        "VT_CACHE_DIR",     "VT_CPU_ISA",
    "VT_CPU_LEVEL",    "VT_CUBLAS_LIBRARY", "VT_CUDA_GRAPHS",   "VT_CUDA_HOME",
    "VT_CUDA_LIBRARY", "VT_CUDA_LOOPS",     "VT_CUFFT_LIBRARY", "VT_CUSOLVER_LIBRARY",
    "VT_DEADLINE",     "VT_DEBUG_NANS",     "VT_DUMP",          "VT_GDB",
    "VT_LANES",        "VT_LLVM_LIBRARY",   "VT_MACHINE",       "VT_MEMORY_LIMIT",
    "VT_MPI_LIBRARY",  "VT_NUM_THREADS",    "VT_NVRTC_LIBRARY", "VT_PERF",
    "VT_TF32",         "VT_TIERS",          "VT_TRACE",         "VT_ZLIB_LIBRARY"};

}  // namespace settings

std::string_view word_from_environment(const char* name,
                                       std::initializer_list<std::string_view> words) {
  const char* text = std::getenv(name);
  if (!text || !*text) return {};
  std::string known;
  for (const std::string_view& word : words) {
    if (word == text) return word;
    if (!known.empty()) known += &word == words.end() - 1 ? " or " : ", ";
    known += word;
  }
  warn_once(std::string(name) + "=" + text + " is not " + known +
            did_you_mean(text, {words.begin(), words.size()}) + ": ignored");
  return {};
}

std::int64_t number_from_environment(const char* name, std::int64_t least, std::int64_t most,
                                     std::int64_t otherwise, bool bytes) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  const char* at = text;
  std::int64_t number = 0;
  bool fits = true;
  for (; *at >= '0' && *at <= '9'; ++at)
    fits = fits && !__builtin_mul_overflow(number, 10, &number) &&
           !__builtin_add_overflow(number, *at - '0', &number);
  fits = fits && at != text;
  int shift = 0;
  if (bytes && *at) {
    constexpr std::string_view units = "KMGT";
    const std::size_t unit = units.find(static_cast<char>(*at & ~0x20));  // either case
    if (unit != units.npos) shift = 10 * (static_cast<int>(unit) + 1), ++at;
  }
  if (fits && !*at && number >= least && number <= most >> shift) return number << shift;
  warn_once(std::string(name) + "=" + text + " is not " +
            (bytes ? "a number of bytes, which may end in K, M, G or T"
                   : "a number from " + std::to_string(least) + " to " + std::to_string(most)) +
            ": ignored");
  return otherwise;
}

void check_name(std::string_view name) {
  constexpr std::string_view own = "VT_";
  if (name.substr(0, own.size()) != own) return;
  SmallVec<std::string_view, std::size(settings::known)> known;
  for (const std::string_view& k : settings::known) {
    if (k == name) return;
    known.push_back(k.substr(own.size()));
  }
  const std::string_view meant =
      nearest_word(name.substr(own.size()), {known.begin(), known.size()});
  if (!meant.empty())
    warn_once(formatted("{} is no variable of vt (did you mean {}{}?): ignored", name, own, meant));
}

int processes_of_host() {
  // Of Open MPI, of MPICH and Intel MPI, of Slurm ("4(x2)": 4 on each of two hosts).
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"})
    if (const char* text = std::getenv(name))
      if (const int count = std::atoi(text); count > 0) return count;
  return 1;
}

void check_settings() {
#if !defined(_WIN32) && !defined(__APPLE__)
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view entry = *variable;
    check_name(entry.substr(0, entry.find('=')));
  }
#endif
  backend_from_environment();
  isa_from_environment();
  lanes_from_environment();
  autobatch_from_environment();
  tiers_from_environment();
  machine_from_environment();
  perf_from_environment();
  gdb_from_environment();
  tf32_from_environment();
  cuda_loops_from_environment();
  cuda_graphs_from_environment();
  deadline_from_environment();
}

}  // namespace vt::detail
