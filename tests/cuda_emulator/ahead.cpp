// The run that collects kernels, and their compilation many at a time.
#include "ahead.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "emulator.hpp"
#include "image.hpp"
#include "src/jit/cuda/source/prelude.hpp"

extern char** environ;

namespace emulator {

namespace {

const char* collecting_into() {
  static const char* const folder = std::getenv("VT_EMULATOR_COLLECT");
  return folder && *folder ? folder : nullptr;
}

// The arguments that this process was started with.
std::vector<std::string> own_arguments() {
  std::string all;
  std::vector<std::string> arguments;
  read_file("/proc/self/cmdline", &all);
  for (std::size_t at = 0; at < all.size(); at += arguments.back().size() + 1)
    arguments.emplace_back(all.c_str() + at);
  return arguments;
}

// The same program again, told to collect into `folder`; ended after some seconds.
void run_again(const std::string& folder, long long seconds) {
  const std::vector<std::string> arguments = own_arguments();
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  // What vt keeps on disk must not come from there, and nothing may be asked for ahead once more.
  std::string collect = "VT_EMULATOR_COLLECT=" + folder, no_cache = "VT_CACHE_DIR=";
  std::vector<char*> environment;
  for (char** variable = environ; *variable; ++variable)
    if (std::strncmp(*variable, "VT_EMULATOR_AHEAD=", 18) != 0 &&
        std::strncmp(*variable, "VT_CACHE_DIR=", 13) != 0 &&
        std::strncmp(*variable, "GTEST_OUTPUT=", 13) != 0)
      environment.push_back(*variable);
  environment.insert(environment.end(), {collect.data(), no_cache.data(), nullptr});
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int wrong =
      ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (wrong) return;
  // The host's loops may have no end either, without results to look at: a run that finds nothing
  // new for a while has found what it can.
  constexpr long long idle = 50;
  int status = 0;
  struct stat before = {}, now = {};
  for (long long tenths = 0, since = 0; ::waitpid(child, &status, WNOHANG) == 0; ++tenths) {
    if (tenths == seconds * 10 || since == idle) ::kill(child, SIGKILL);
    ::stat(folder.c_str(), &now);
    since =
        now.st_mtim.tv_sec == before.st_mtim.tv_sec && now.st_mtim.tv_nsec == before.st_mtim.tv_nsec
            ? since + 1
            : 0;
    before = now;
    ::usleep(100000);
  }
}

// A source that begins with vt's prelude goes without it, in a namespace of its own. Names of C are
// one for all namespaces.
std::string unit_source(const Wanted& w, std::size_t unit) {
  static const auto lines = std::to_string(
      std::count(vt::detail::cuda::prelude.begin(), vt::detail::cuda::prelude.end(), '\n') + 1);
  std::string source = w.source.substr(vt::detail::cuda::prelude.size());
  const std::string c_name = "extern \"C\" __global__";
  for (std::size_t at = 0; (at = source.find(c_name, at)) != std::string::npos;)
    source.erase(at, c_name.size() - std::strlen("__global__"));
  const std::vector<KernelName> kernels = kernels_of(source);
  const std::string number = std::to_string(unit), in = unit_name(unit);
  return "namespace {\nnamespace " + in + " {\n#line " + lines + " \"" + w.name + "\"\n" + source +
         "\n#line 1 \"kernels\"\n" + description_of(kernels) +
         "}\n}\nextern \"C\" const vt_module vt_module_" + number + " = {" + in + "::vt_kernels, " +
         std::to_string(kernels.size()) + ", &vt_place_now, &vt_services_now};\n";
}

void compile_together(const std::vector<Wanted>& batch) {
  std::string text = "#include \"cuda_emulation.h\"\nnamespace {\n#line 1 \"prelude\"\n" +
                     std::string(vt::detail::cuda::prelude) + "}\n";
  for (std::size_t i = 0; i < batch.size(); ++i) text += unit_source(batch[i], i);
  std::string library, log;
  // Whatever is wrong with one of them shows when it is compiled alone.
  if (!compile_text(text, batch[0].flags, {}, &library, &log)) return;
  const std::string path = batch[0].kept + ".units";
  if (!write_file(path + std::to_string(::getpid()), library) ||
      std::rename((path + std::to_string(::getpid())).c_str(), path.c_str()) != 0)
    return;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::string temporary = batch[i].kept + "." + std::to_string(::getpid());
    if (write_file(temporary, unit_text(path, i)))
      std::rename(temporary.c_str(), batch[i].kept.c_str());
  }
}

std::vector<Wanted> collected(const std::string& folder) {
  std::vector<Wanted> all;
  DIR* directory = ::opendir(folder.c_str());
  if (!directory) return all;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string path = folder + "/" + entry->d_name;
    std::string text;
    if (entry->d_name[0] == '.' || !read_file(path, &text)) continue;
    ::unlink(path.c_str());
    Wanted w;
    for (std::string* part : {&w.kept, &w.name, &w.flags}) {
      const std::size_t end = text.find('\n');
      *part = text.substr(0, end);
      text.erase(0, end + 1);
    }
    w.source = std::move(text);
    if (!w.kept.empty()) all.push_back(std::move(w));
  }
  ::closedir(directory);
  return all;
}

}  // namespace

bool only_collects() { return collecting_into() != nullptr; }

static std::atomic<int> calls_since{0};

bool loops_in_vain(const char* function) {
  constexpr int most = 5000;
  if (++calls_since < most || std::strcmp(function, "cuMemcpyDtoHAsync_v2") != 0) return false;
  calls_since = 0;
  return true;
}

void collect(const Wanted& w) {
  calls_since = 0;
  // Other sources are few, and stand alone.
  if (w.source.compare(0, vt::detail::cuda::prelude.size(), vt::detail::cuda::prelude) != 0) return;
  if (w.source.find("extern \"C\" __device__") != std::string::npos) return;
  // Named anew once it is whole: this run may be ended at any time.
  const std::string path =
                        std::string(collecting_into()) + "/" + w.kept.substr(w.kept.rfind('/') + 1),
                    unfinished = path.substr(0, path.rfind('/') + 1) + "." +
                                 path.substr(path.rfind('/') + 1);
  if (write_file(unfinished, w.kept + "\n" + w.name + "\n" + w.flags + "\n" + w.source))
    std::rename(unfinished.c_str(), path.c_str());
}

void compile_ahead() {
  static std::once_flag once;
  const long long seconds = setting("VT_EMULATOR_AHEAD", 0);
  if (seconds <= 0 || only_collects()) return;
  std::call_once(once, [&] {
    const std::string folder = unique_path(".wanted");
    if (cache_folder().empty() || ::mkdir(folder.c_str(), 0700) != 0) return;
    run_again(folder, seconds);
    std::vector<Wanted> all = collected(folder);
    ::rmdir(folder.c_str());
    std::sort(all.begin(), all.end(), [](const Wanted& a, const Wanted& b) {
      return a.flags != b.flags ? a.flags < b.flags : a.source < b.source;
    });
    constexpr std::size_t most = 32, most_bytes = 160 << 10;
    std::vector<std::vector<Wanted>> batches;
    std::size_t bytes = 0;
    for (Wanted& w : all) {
      const std::size_t own = w.source.size() - vt::detail::cuda::prelude.size();
      if (batches.empty() || batches.back().size() == most || bytes + own > most_bytes ||
          batches.back()[0].flags != w.flags) {
        batches.emplace_back();
        bytes = 0;
      }
      bytes += own;
      batches.back().push_back(std::move(w));
    }
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < std::max(1u, std::min(8u, std::thread::hardware_concurrency())); ++t)
      threads.emplace_back([&] {
        for (std::size_t i; (i = next++) < batches.size();) compile_together(batches[i]);
      });
    for (std::thread& thread : threads) thread.join();
  });
}

std::string unit_name(std::size_t unit) {
  std::string digits = std::to_string(unit);
  digits.insert(0, 4 - digits.size(), '0');
  return "vt_unit_" + digits + "_";
}

std::string unit_text(const std::string& path, std::size_t unit) {
  return "unit " + std::to_string(unit) + " " + path;
}

bool read_unit(const std::string& text, std::string* path, std::size_t* unit) {
  if (text.compare(0, 5, "unit ") != 0) return false;
  const std::size_t end = text.find(' ', 5);
  *unit = static_cast<std::size_t>(std::atoll(text.c_str() + 5));
  *path = text.substr(end + 1);
  return true;
}

}  // namespace emulator
