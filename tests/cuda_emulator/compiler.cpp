// NVRTC of the emulator: CUDA source, with cuda_emulation.h in front, compiled as C++ by the
// system's compiler; compiled code is kept on disk.
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "ahead.hpp"
#include "emulator.hpp"
#include "image.hpp"

// What the build says; by hand, the compiler of the path and the folder that the command runs in.
#ifndef VT_EMULATOR_COMPILER
#define VT_EMULATOR_COMPILER "c++"
#define VT_EMULATOR_FOLDER "tests/cuda_emulator"
#endif

extern char** environ;

namespace emulator {

namespace {

struct Program {
  std::string source, name, log, image;
  std::vector<std::pair<std::string, std::string>> headers;
  std::uint32_t architecture = 75;
  bool compiled = false;
};
struct Programs {
  std::mutex mutex;
  std::set<Program*> all;
};
Programs& programs() {
  static Programs* const all = new Programs;
  return *all;
}

Program* known(vt::detail::cuda::RtcProgram handle) {
  const std::lock_guard lock(programs().mutex);
  auto* program = reinterpret_cast<Program*>(handle);
  return programs().all.count(program) ? program : nullptr;
}

struct Options {
  std::vector<std::string> flags;
  std::uint32_t architecture = 75;
  bool contract = true;
};

// NVRTC's options that there are; what means nothing here is taken as well.
bool understand(int count, const char* const* options, Options* result, std::string* log) {
  for (int i = 0; i < count; ++i) {
    std::string option = options[i];
    const auto starts = [&](const char* with) {
      return option.compare(0, std::strlen(with), with) == 0;
    };
    if ((option == "-arch" || option == "--gpu-architecture" || option == "-std" ||
         option == "--std" || option == "-D" || option == "-I") &&
        i + 1 < count)
      option += (option == "-D" || option == "-I" ? "" : "=") + std::string(options[++i]);
    if (starts("--gpu-architecture=") || starts("-arch=")) {
      const std::string name = option.substr(option.find('=') + 1);
      const std::size_t digits = name.find('_');
      const int number = digits == std::string::npos ? 0 : std::atoi(name.c_str() + digits + 1);
      if ((name.compare(0, 3, "sm_") != 0 && name.compare(0, 8, "compute_") != 0) || number < 50) {
        *log += "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
        return false;
      }
      result->architecture = static_cast<std::uint32_t>(number);
    } else if (starts("-D") || starts("-U")) {
      result->flags.push_back(option);
    } else if (starts("--define-macro=")) {
      result->flags.push_back("-D" + option.substr(15));
    } else if (option == "--fmad=false" || option == "-fmad=false") {
      result->contract = false;
    } else if (starts("--std=") || starts("-std=") || starts("--fmad=") || starts("-fmad=") ||
               starts("-I") || starts("--include-path=") || starts("--maxrregcount=") ||
               starts("-maxrregcount=") || starts("--split-compile=") || starts("--prec-") ||
               starts("-prec-") || starts("--ftz=") || starts("-ftz=") ||
               starts("--diag-suppress=") || starts("-diag-suppress=") || starts("--minimal") ||
               starts("-minimal") || option == "-lineinfo" || option == "--generate-line-info" ||
               option == "-default-device" || option == "--device-as-default-execution-space" ||
               option == "-w" || option == "--disable-warnings" || option == "-G" ||
               option == "--use_fast_math" || option == "-use_fast_math" ||
               option == "--restrict" || option == "-restrict" ||
               option == "--extra-device-vectorization" || option == "-no-source-include" ||
               option == "--no-source-include" || option == "--relocatable-device-code=false" ||
               option == "-rdc=false" || option == "--dopt=on" || option == "-dopt=on" ||
               option == "--ptxas-options" || starts("--ptxas-options=") || starts("-Xptxas")) {
      continue;
    } else {
      *log += "nvrtc: error: unrecognized option " + option + " found\n";
      return false;
    }
  }
  return true;
}

const std::string& prefix_text() {
  static const std::string* const text = [] {
    auto* all = new std::string;
    std::string part;
    for (const char* name : {"/module_interface.h", "/cuda_emulation.h"})
      if (read_file(std::string(VT_EMULATOR_FOLDER) + name, &part)) *all += part;
    return all;
  }();
  return *text;
}

// Runs the compiler; what it prints goes to `log`.
bool run(const std::vector<std::string>& arguments, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  // The compiler is not what is tested: sanitizers' preloaded libraries and the like stay here.
  std::vector<char*> environment;
  for (char** variable = environ; *variable; ++variable)
    if (std::strncmp(*variable, "LD_PRELOAD=", 11) != 0) environment.push_back(*variable);
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int wrong =
      ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (wrong) {
    write_file(log, std::string("cannot start the compiler ") + argv[0] + "\n");
    return false;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

const std::vector<std::string>& usual_command() {
  static const auto* const command = [] {
    const char* chosen = std::getenv("VT_EMULATOR_CXX");
    auto* c = new std::vector<std::string>{
        chosen && *chosen ? chosen : VT_EMULATOR_COMPILER, "-std=c++17", "-O1", "-fPIC", "-w",
        "-shared", "-nostdlib", "-Wl,-Bsymbolic", "-Wl,--hash-style=gnu", "-fno-exceptions",
        "-fno-rtti", "-fno-asynchronous-unwind-tables", "-fno-ident", "-fno-strict-aliasing",
        "-fno-stack-protector", "-fno-math-errno",
        // its calls are the emulator's: what is touched without
        // VT_LOAD and VT_STORE
        "-fsanitize=thread", "-fno-builtin-printf"};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma")) c->push_back("-mfma");
#endif
    return c;
  }();
  return *command;
}

bool compile(Program& program, const Options& options, std::string* library) {
  Wanted w{program.source,
           program.name,
           options.contract ? "-ffp-contract=fast" : "-ffp-contract=off",
           {}};
  for (const std::string& flag : options.flags) w.flags += " " + flag;
  const std::vector<KernelName> kernels = kernels_of(program.source);
  const std::string text = "#include \"cuda_emulation.h\"\nnamespace {\n#line 1 \"" + program.name +
                           "\"\n" + program.source + "\n#line 1 \"kernels\"\n" +
                           description_of(kernels) +
                           "}\nextern \"C\" const vt_module vt_module_0 = {vt_kernels, " +
                           std::to_string(kernels.size()) + ", &vt_place_now, &vt_services_now};\n";
  std::string key = text + prefix_text() + w.flags;
  for (const std::string& part : usual_command()) key += part + ' ';
  for (const auto& [name, header] : program.headers) key += name + header;
  char name[64];
  std::snprintf(name, sizeof(name), "/%016llx%016llx.so",
                static_cast<unsigned long long>(hash(key, 0xcbf29ce484222325ull)),
                static_cast<unsigned long long>(hash(key, 0x84222325cbf29ce4ull)));
  compile_ahead();
  const std::string folder = cache_folder();
  w.kept = folder + name;
  std::string path;
  std::size_t unit = 0;
  const bool is_kept = !folder.empty() && read_file(w.kept, library) &&
                       (!read_unit(*library, &path, &unit) || ::access(path.c_str(), R_OK) == 0);
  if (only_collects()) {
    if (!is_kept && program.headers.empty()) collect(w);
    library->clear();
    for (const KernelName& k : kernels) *library += k.name + "\n";
    return true;
  }
  if (is_kept) {
    count("cached");
    return true;
  }
  if (!compile_text(text, w.flags, program.headers, library, &program.log)) return false;
  if (!folder.empty()) {
    const std::string temporary = w.kept + "." + std::to_string(::getpid()) +
                                  std::to_string(hash(unique_path(""), 1) & 0xffff);
    if (write_file(temporary, *library)) std::rename(temporary.c_str(), w.kept.c_str());
  }
  if (const char* keep = std::getenv("VT_EMULATOR_KEEP"); keep && *keep)
    write_file(keep + std::string(name) + ".cu", program.source);
  return true;
}

const int architectures[] = {75, 80, 86, 87, 89, 90, 100, 120};

// Counts the call; failures that tests asked for.
vt::detail::cuda::Result enter_rtc(const char* function) { return enter(function, needs_nothing); }

vt::detail::cuda::Result give(const Program* program, const std::string& bytes, std::size_t* size,
                              char* to) {
  if (!program) return Constant::NVRTC_ERROR_INVALID_PROGRAM;
  if (size) *size = bytes.size();
  if (to) std::memcpy(to, bytes.data(), bytes.size());
  return 0;
}

std::string image_of(const Program& program, bool portable) {
  if (!program.compiled) return {};
  ImageHeader header;
  header.architecture = program.architecture;
  header.portable = portable;
  header.emulation = emulation_number();
  header.bytes = program.image.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + program.image;
}

}  // namespace

std::uint64_t hash(const std::string& text, std::uint64_t basis) {
  for (unsigned char c : text) basis = (basis ^ c) * 0x100000001b3ull;
  return basis;
}

std::string cache_folder() {
  const char* chosen = std::getenv("VT_EMULATOR_CACHE");
  if (chosen && *chosen) {
    ::mkdir(chosen, 0700);
    return chosen;
  }
  const char* temporary = std::getenv("TMPDIR");
  const std::string folder = std::string(temporary && *temporary ? temporary : "/tmp") +
                             "/vt_cuda_emulator." + std::to_string(::getuid());
  ::mkdir(folder.c_str(), 0700);
  struct stat status = {};
  const bool mine = ::stat(folder.c_str(), &status) == 0 && status.st_uid == ::getuid() &&
                    (status.st_mode & 022) == 0;
  return mine ? folder : std::string();
}

bool compile_text(const std::string& text, const std::string& flags,
                  const std::vector<std::pair<std::string, std::string>>& headers,
                  std::string* library, std::string* log) {
  const std::string source_path = unique_path(".cpp"), result_path = unique_path(".so"),
                    log_path = unique_path(".log"), folder = unique_path("");
  std::vector<std::string> command = usual_command();
  for (std::size_t at = 0; at < flags.size();) {
    const std::size_t end = std::min(flags.find(' ', at), flags.size());
    command.push_back(flags.substr(at, end - at));
    at = end + 1;
  }
  command.insert(command.end(), {"-I", VT_EMULATOR_FOLDER});
  if (!headers.empty()) {
    ::mkdir(folder.c_str(), 0700);
    for (const auto& [header, content] : headers) write_file(folder + "/" + header, content);
    command.insert(command.end(), {"-I", folder});
  }
  command.insert(command.end(), {source_path, "-o", result_path});
  bool made = write_file(source_path, text) && run(command, log_path);
  std::string printed;
  read_file(log_path, &printed);
  *log += printed;
  made = made && read_file(result_path, library);
  for (const std::string& path : {source_path, result_path, log_path}) ::unlink(path.c_str());
  for (const auto& header : headers) ::unlink((folder + "/" + header.first).c_str());
  if (!headers.empty()) ::rmdir(folder.c_str());
  return made;
}

std::uint64_t emulation_number() {
  static const std::uint64_t number = hash(prefix_text(), 0xcbf29ce484222325ull);
  return number;
}

long long alive_programs() {
  const std::lock_guard lock(programs().mutex);
  return static_cast<long long>(programs().all.size());
}

}  // namespace emulator

using namespace emulator;
using namespace vt::detail::cuda;

extern "C" {

Result nvrtcVersion(int* major, int* minor) {
  if (const Result error = enter_rtc("nvrtcVersion")) return error;
  const auto version = setting("VT_EMULATOR_NVRTC_VERSION", setting("VT_EMULATOR_VERSION", 12090));
  *major = static_cast<int>(version / 1000);
  *minor = static_cast<int>(version % 1000 / 10);
  return 0;
}
Result nvrtcGetNumSupportedArchs(int* count) {
  if (const Result error = enter_rtc("nvrtcGetNumSupportedArchs")) return error;
  *count = static_cast<int>(std::size(architectures));
  return 0;
}
Result nvrtcGetSupportedArchs(int* to) {
  if (const Result error = enter_rtc("nvrtcGetSupportedArchs")) return error;
  std::copy(std::begin(architectures), std::end(architectures), to);
  return 0;
}
Result nvrtcCreateProgram(RtcProgram* handle, const char* source, const char* name,
                          int header_count, const char* const* headers,
                          const char* const* include_names) {
  if (const Result error = enter_rtc("nvrtcCreateProgram")) return error;
  if (!handle || !source || header_count < 0) return Constant::NVRTC_ERROR_INVALID_INPUT;
  auto* program = new Program;
  program->source = source;
  program->name = name && *name ? name : "default_program";
  for (int i = 0; i < header_count; ++i)
    program->headers.emplace_back(include_names[i], headers[i]);
  const std::lock_guard lock(programs().mutex);
  programs().all.insert(program);
  *handle = reinterpret_cast<RtcProgram>(program);
  return 0;
}
Result nvrtcDestroyProgram(RtcProgram* handle) {
  if (const Result error = enter_rtc("nvrtcDestroyProgram")) return error;
  Program* program = handle ? known(*handle) : nullptr;
  if (!program) return Constant::NVRTC_ERROR_INVALID_PROGRAM;
  const std::lock_guard lock(programs().mutex);
  programs().all.erase(program);
  delete program;
  *handle = nullptr;
  return 0;
}
Result nvrtcCompileProgram(RtcProgram handle, int option_count, const char* const* options) {
  Program* program = known(handle);
  if (!program) return Constant::NVRTC_ERROR_INVALID_PROGRAM;
  if (const Result error = enter_rtc("nvrtcCompileProgram")) {
    program->log = "the failure that was asked for\n";
    return error;
  }
  Options understood;
  if (!understand(option_count, options, &understood, &program->log))
    return Constant::NVRTC_ERROR_INVALID_OPTION;
  program->architecture = understood.architecture;
  if (std::find(std::begin(architectures), std::end(architectures),
                static_cast<int>(understood.architecture)) == std::end(architectures)) {
    program->log += "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
    return Constant::NVRTC_ERROR_INVALID_OPTION;
  }
  count("compilations");
  note_source(program->source);
  program->compiled = compile(*program, understood, &program->image);
  return program->compiled ? Constant::NVRTC_SUCCESS : Constant::NVRTC_ERROR_COMPILATION;
}
Result nvrtcGetCUBINSize(RtcProgram handle, std::size_t* size) {
  if (const Result error = enter_rtc("nvrtcGetCUBINSize")) return error;
  const Program* program = known(handle);
  return give(program, program ? image_of(*program, false) : std::string(), size, nullptr);
}
Result nvrtcGetCUBIN(RtcProgram handle, char* to) {
  if (const Result error = enter_rtc("nvrtcGetCUBIN")) return error;
  const Program* program = known(handle);
  return give(program, program ? image_of(*program, false) : std::string(), nullptr, to);
}
Result nvrtcGetPTXSize(RtcProgram handle, std::size_t* size) {
  if (const Result error = enter_rtc("nvrtcGetPTXSize")) return error;
  const Program* program = known(handle);
  return give(program, program ? image_of(*program, true) : std::string(), size, nullptr);
}
Result nvrtcGetPTX(RtcProgram handle, char* to) {
  if (const Result error = enter_rtc("nvrtcGetPTX")) return error;
  const Program* program = known(handle);
  return give(program, program ? image_of(*program, true) : std::string(), nullptr, to);
}
Result nvrtcGetProgramLogSize(RtcProgram handle, std::size_t* size) {
  if (const Result error = enter_rtc("nvrtcGetProgramLogSize")) return error;
  const Program* program = known(handle);
  if (!program) return Constant::NVRTC_ERROR_INVALID_PROGRAM;
  *size = program->log.size() + 1;
  return 0;
}
Result nvrtcGetProgramLog(RtcProgram handle, char* to) {
  if (const Result error = enter_rtc("nvrtcGetProgramLog")) return error;
  const Program* program = known(handle);
  if (!program) return Constant::NVRTC_ERROR_INVALID_PROGRAM;
  std::memcpy(to, program->log.c_str(), program->log.size() + 1);
  return 0;
}
const char* nvrtcGetErrorString(Result result) {
#define VT_NAMED(name, value) \
  if (result == value) return #name;
  VT_NVRTC_CONSTANTS(VT_NAMED)
#undef VT_NAMED
  return "NVRTC_ERROR unknown";
}
}
