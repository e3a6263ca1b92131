// Finds libcuda and NVRTC with dlopen, fills their tables of functions, and formats the driver's
// errors.
#include "cuda_library.hpp"

#include <dlfcn.h>
#include <glob.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <vt/detail/message.hpp>

#include "../../../trace/base/locks.hpp"
#include "../../../trace/base/shared_library.hpp"

namespace vt::detail::cuda {

namespace cuda_loading {

#define VT_CUDA_NAME(name, parameters) #name,
constexpr const char* driver_names[] = {VT_CUDA_FUNCTIONS(VT_CUDA_NAME) VT_CUDA_NEWER_FUNCTIONS(
    VT_CUDA_NAME) VT_CUDA_LOG_FUNCTIONS(VT_CUDA_NAME)};
constexpr const char* newer_names[] = {VT_CUDA_NEWER_FUNCTIONS(VT_CUDA_NAME)};
constexpr const char* log_names[] = {VT_CUDA_LOG_FUNCTIONS(VT_CUDA_NAME)};
constexpr const char* nvrtc_names[] = {VT_NVRTC_FUNCTIONS(VT_CUDA_NAME) "nvrtcGetErrorString"};
#undef VT_CUDA_NAME
constexpr std::size_t driver_count = sizeof(driver_names) / sizeof(*driver_names),
                      nvrtc_count = sizeof(nvrtc_names) / sizeof(*nvrtc_names);
constexpr std::size_t newer_count = sizeof(newer_names) / sizeof(*newer_names),
                      log_count = sizeof(log_names) / sizeof(*log_names);
constexpr std::size_t needed_count = driver_count - newer_count - log_count;
static_assert(sizeof(Driver) == sizeof(driver_names),
              "one name per member of Driver, in the same order");
static_assert(sizeof(Nvrtc) == sizeof(nvrtc_names),
              "one name per member of Nvrtc, in the same order");

// What a driver must know at least: it is asked for before a function that an older one lacks is
// missed.
constexpr int oldest_driver = 12000;
constexpr int driver_with_conditions = 12040;  // graphs with conditional nodes
constexpr int driver_with_logs = 12090;

// Both are leaked on purpose: handles of the driver live in objects that static destructors drop.
struct LoadedDriver {
  Driver table;
  std::string reason;  // empty: the table is good
  int version = 0;     // 12040 is 12.4
};
struct LoadedNvrtc {
  Nvrtc table;
  std::string reason;
};

std::string version_text(int version) {
  return formatted("{}.{}", version / 1000, version % 1000 / 10);
}

std::string result_text(const Driver& table, Result result) {
  const char *name = nullptr, *text = nullptr;
  if (table.cuGetErrorName) table.cuGetErrorName(result, &name);
  if (table.cuGetErrorString) table.cuGetErrorString(result, &text);
  if (!name) return formatted("error {}", result);
  return text ? formatted("{} ({})", name, text) : name;
}

// What the user can do about a result.
const char* advice(Result result) {
  switch (result) {
    case Constant::CUDA_ERROR_OUT_OF_MEMORY:
      return "free Tensors, use smaller batches, or vt::checkpoint in front of a gradient";
    case Constant::CUDA_ERROR_NO_DEVICE:
      return "see whether nvidia-smi lists a device, and what CUDA_VISIBLE_DEVICES is set to";
    case Constant::CUDA_ERROR_INVALID_DEVICE: return "there is no device of this number";
    case Constant::CUDA_ERROR_STUB_LIBRARY:
      return "this libcuda is the toolkit's stub for linking: install the NVIDIA driver, or take "
             "the stub off the library path";
    case Constant::CUDA_ERROR_DEVICE_UNAVAILABLE:
      return "another process has the device for itself (nvidia-smi shows its compute mode)";
    case Constant::CUDA_ERROR_SYSTEM_NOT_READY:
      return "start the fabric manager of this system (nvidia-fabricmanager)";
    case Constant::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "the driver was updated while loaded: restart the machine";
    case Constant::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return "take the CUDA compatibility package off the library path, or update the driver";
    case Constant::CUDA_ERROR_NO_BINARY_FOR_GPU:
    case Constant::CUDA_ERROR_INVALID_PTX:
    case Constant::CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "NVRTC is newer than the driver: update the driver, or set VT_NVRTC_LIBRARY to an "
             "older NVRTC";
    case Constant::CUDA_ERROR_ECC_UNCORRECTABLE:
    case Constant::CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case Constant::CUDA_ERROR_CONTAINED: return "the device reports a fault of its hardware";
    case Constant::CUDA_ERROR_DEINITIALIZED:
      return "the driver has shut down, as the process is ending: what is left of it, such as "
             "destructors of static objects, cannot use the device";
    case Constant::CUDA_ERROR_LAUNCH_TIMEOUT:
      return "a kernel ran longer than the system lets one run on a device that drives a display";
    default: return nullptr;
  }
}

// After these the device's context refuses everything; only a new process gets another one.
bool ends_all_work(Result result) {
  switch (result) {
    case Constant::CUDA_ERROR_ECC_UNCORRECTABLE:
    case Constant::CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case Constant::CUDA_ERROR_CONTAINED:
    case Constant::CUDA_ERROR_ILLEGAL_ADDRESS:
    case Constant::CUDA_ERROR_LAUNCH_TIMEOUT:
    case Constant::CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case Constant::CUDA_ERROR_ASSERT:
    case Constant::CUDA_ERROR_HARDWARE_STACK_ERROR:
    case Constant::CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case Constant::CUDA_ERROR_MISALIGNED_ADDRESS:
    case Constant::CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case Constant::CUDA_ERROR_INVALID_PC:
    case Constant::CUDA_ERROR_LAUNCH_FAILED: return true;
    default: return false;
  }
}

// Leaked like the tables. Few errors happen: a list of texts under a lock, read through a flag that
// is nearly always 0.
struct LostDevices {
  Mutex mutex;
  Vec<int> devices;
  Vec<std::string> reasons;
  unsigned log_read = 0;  // how far the driver's log was
  bool log_begun = false;
};
LostDevices& lost_devices() {
  static LostDevices* const all = new LostDevices;
  return *all;
}

// What the driver has logged since the last error that was reported: which kernel and address,
// which limit; empty where it logs nothing.
std::string newly_logged(const Driver& table) {
  if (!table.cuLogsDumpToMemory) return {};
  LostDevices& lost = lost_devices();
  const std::lock_guard lock(lost.mutex);
  std::string text(1500, 0);  // of more the driver leaves out the oldest
  std::size_t size = text.size();
  if (table.cuLogsDumpToMemory(lost.log_begun ? &lost.log_read : nullptr, text.data(), &size, 0) !=
      Constant::CUDA_SUCCESS)
    size = 0;
  lost.log_begun = table.cuLogsCurrent(&lost.log_read, 0) == Constant::CUDA_SUCCESS;
  text.resize(std::min(size, text.size()));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

std::string start_driver(const std::string& path, LoadedDriver& made) {
  void* pointers[driver_count] = {};
  const char* missing = nullptr;
  std::string wrong = load_functions(path, driver_names, needed_count, pointers, &missing);
  if (!wrong.empty() && !missing) return wrong;
  std::memcpy(&made.table, pointers, sizeof(made.table));
  if (made.table.cuDriverGetVersion) made.table.cuDriverGetVersion(&made.version);
  // All of a list, or none of it.
  const auto load_newer = [&](int since, const char* const* names, std::size_t count,
                              std::size_t at) {
    const char* lacks = nullptr;
    if (missing || made.version < since ||
        !load_functions(path, names, count, pointers + at, &lacks).empty())
      return;
    std::memcpy(reinterpret_cast<char*>(&made.table) + at * sizeof(void*), pointers + at,
                count * sizeof(void*));
  };
  load_newer(driver_with_conditions, newer_names, newer_count, needed_count);
  load_newer(driver_with_logs, log_names, log_count, needed_count + newer_count);
  if (missing || made.version < oldest_driver) {
    if (made.version > 0 && made.version < oldest_driver)
      return formatted(
          "the driver is for CUDA {}, vt needs one for {} or newer{}{}: update the NVIDIA driver",
          version_text(made.version), version_text(oldest_driver), missing ? ": it lacks " : "",
          missing ? missing : "");
    return wrong;
  }
  if (const Result result = made.table.cuInit(0)) {
    const char* what = advice(result);
    return formatted("cuInit: {}{}{}", result_text(made.table, result), what ? ": " : "",
                     what ? what : "");
  }
  int count = 0;
  if (const Result result = made.table.cuDeviceGetCount(&count))
    return formatted("cuDeviceGetCount: {}", result_text(made.table, result));
  if (count == 0)
    return formatted("the driver finds no device: {}", advice(Constant::CUDA_ERROR_NO_DEVICE));
  return {};
}

const LoadedDriver& loaded_driver() {
  static const LoadedDriver* const result = [] {
    auto* made = new LoadedDriver;
    std::string wrong;
    for (const std::string& path : toolkit_libraries("cuda", {"1"}, "VT_CUDA_LIBRARY")) {
      std::string why = start_driver(path, *made);
      if (why.empty()) return made;
      // A library that exists but does not fit says more than the last path that does not exist.
      if (wrong.empty() || why.find("cannot open shared object") == std::string::npos)
        wrong = std::move(why);
    }
    made->reason = formatted("CUDA is not usable: {}", wrong);
    if (wrong.find("cannot open shared object") != std::string::npos)
      made->reason +=
          " (install the NVIDIA driver, or set VT_CUDA_LIBRARY to the path of libcuda.so.1)";
    return made;
  }();
  return *result;
}

std::string load_nvrtc(const std::string& path, Nvrtc& table) {
  void* pointers[nvrtc_count] = {};
  std::string wrong = load_functions(path, nvrtc_names, nvrtc_count, pointers);
  table = std::bit_cast<Nvrtc>(pointers);
  return wrong;
}

const LoadedNvrtc& loaded_nvrtc() {
  static const LoadedNvrtc* const result = [] {
    auto* made = new LoadedNvrtc;
    const int driver_version = loaded_driver().reason.empty() ? loaded_driver().version : 0;
    std::string wrong;
    // than the driver: better than none, as it may know how to compile for an older one
    Nvrtc newer;
    for (const std::string& path :
         toolkit_libraries("nvrtc", {"13", "12", "11.2"}, "VT_NVRTC_LIBRARY")) {
      std::string why = load_nvrtc(path, made->table);
      if (why.empty()) {
        int major = 0, minor = 0;
        made->table.nvrtcVersion(&major, &minor);
        if (driver_version == 0 || major <= driver_version / 1000) return made;
        if (!newer.nvrtcVersion) newer = made->table;
      } else if (wrong.empty() || why.find("cannot open shared object") == std::string::npos) {
        wrong = std::move(why);
      }
    }
    made->table = newer;
    if (!newer.nvrtcVersion)
      made->reason = formatted(
          "NVRTC is not usable: {} (install it, for example with pip install "
          "nvidia-cuda-nvrtc-cu12, or set VT_NVRTC_LIBRARY to the path of "
          "libnvrtc.so)",
          wrong);
    return made;
  }();
  return *result;
}

}  // namespace cuda_loading

std::string load_functions(const std::string& path, const char* const* names, std::size_t count,
                           void** pointers, const char** missing) {
  // RTLD_LOCAL keeps these symbols away from a copy that another library of the process brings.
  std::string why;
  void* handle = open_library(path, why);
  if (!handle) return why;
  for (std::size_t i = 0; i < count; ++i) {
    pointers[i] = ::dlsym(handle, names[i]);
    if (pointers[i]) continue;
    if (missing) *missing = names[i];
    return formatted("{} lacks the function {}", path, names[i]);
  }
  return {};
}

Vec<std::string> toolkit_libraries(const char* stem, std::initializer_list<const char*> versions,
                                   const char* variable) {
  // the user's word is final
  if (const char* chosen = std::getenv(variable); chosen && *chosen) return {chosen};
  Vec<std::string> found;
  const std::string name = formatted("lib{}.so", stem);
  for (const char* version : versions) found.push_back(formatted("{}.{}", name, version));
  Vec<std::string> folders;
  const auto from_variable = [&](const char* which, const char* below) {
    if (const char* root = std::getenv(which); root && *root)
      folders.push_back(std::string(root) + below);
  };
  for (const char* which : {"VT_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"})
    for (const char* below : {"/lib64", "/targets/*/lib"}) from_variable(which, below);
  // What a distribution, NVIDIA's own packages, containers and Windows' Linux have.
  for (const char* folder :
       {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/*/lib", "/usr/local/cuda-*/lib64",
        "/opt/cuda/lib64", "/usr/lib/cuda/lib64", "/usr/lib/*-linux-gnu", "/usr/lib64",
        "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64"})
    folders.push_back(folder);
  from_variable("CONDA_PREFIX", "/lib");
  for (const char* below :
       {"/lib/python3*/site-packages/nvidia/*/lib", "/lib/python3*/dist-packages/nvidia/*/lib"}) {
    from_variable("VIRTUAL_ENV", below);
    from_variable("CONDA_PREFIX", below);
    from_variable("HOME", (std::string("/.local") + below).c_str());
    folders.push_back(std::string("/usr/local") + below);
    folders.push_back(std::string("/usr") + below);
  }
  for (const std::string& folder : folders) {
    ::glob_t matches{};
    if (::glob((folder + '/' + name + "*").c_str(), 0, nullptr, &matches) == 0)
      for (const char* version : versions)
        // sorted by name: the last has the newest version
        for (std::size_t i = matches.gl_pathc; i-- > 0;) {
          const std::string path = matches.gl_pathv[i];
          const std::size_t at = path.rfind(".so.");
          if (at != path.npos && path.compare(at + 4, path.npos, version) == 0)
            found.push_back(path);
        }
    ::globfree(&matches);
  }
  return found;
}

const Driver* driver(std::string* reason) {
  const cuda_loading::LoadedDriver& loaded = cuda_loading::loaded_driver();
  if (loaded.reason.empty()) return &loaded.table;
  if (reason) *reason = loaded.reason;
  return nullptr;
}

const Nvrtc* nvrtc(std::string* reason) {
  const cuda_loading::LoadedNvrtc& loaded = cuda_loading::loaded_nvrtc();
  if (loaded.reason.empty()) return &loaded.table;
  if (reason) *reason = loaded.reason;
  return nullptr;
}

std::string driver_try_library(const std::string& path) {
  cuda_loading::LoadedDriver made;
  return cuda_loading::start_driver(path, made);
}

std::string nvrtc_try_library(const std::string& path) {
  Nvrtc table;
  return cuda_loading::load_nvrtc(path, table);
}

std::string lost_device_reason(int device) {
  cuda_loading::LostDevices& lost = cuda_loading::lost_devices();
  const std::lock_guard lock(lost.mutex);
  for (std::size_t i = 0; i < lost.devices.size(); ++i)
    if (lost.devices[i] == device) return lost.reasons[i];
  return {};
}

void forget_lost_devices() {
  cuda_loading::LostDevices& lost = cuda_loading::lost_devices();
  const std::lock_guard lock(lost.mutex);
  lost.devices.clear();
  lost.reasons.clear();
}

void require_device(int device, CallSite where) {
  const std::string reason = lost_device_reason(device);
  if (!reason.empty())
    fail(ErrorKind::backend,
         formatted("vt: cuda({}) is lost since {}; nothing can run on it in this process any more "
                   "(the CPU stays usable)",
                   device, reason),
         where);
}

void fail_driver_call(Result result, const char* what, CallSite where, int device) {
  const Driver& table = cuda_loading::loaded_driver().table;
  std::string text = formatted("{}: {}", what, cuda_loading::result_text(table, result));
  if (const std::string logged = cuda_loading::newly_logged(table); !logged.empty())
    text += formatted("; the driver's log: {}", logged);
  if (cuda_loading::ends_all_work(result)) {
    std::string first = lost_device_reason(device);
    if (first.empty()) {
      cuda_loading::LostDevices& lost = cuda_loading::lost_devices();
      const std::lock_guard lock(lost.mutex);
      lost.devices.push_back(device);
      lost.reasons.push_back(text);
    }
    text += formatted(
        "; cuda({}) is lost: nothing can run on it in this process any more (the CPU stays usable)",
        device);
  }
  std::size_t free = 0, total = 0;
  if (result == Constant::CUDA_ERROR_OUT_OF_MEMORY && table.cuMemGetInfo_v2 &&
      table.cuMemGetInfo_v2(&free, &total) == Constant::CUDA_SUCCESS)
    text += formatted("; {} of {} MiB are free", free >> 20, total >> 20);
  if (const char* todo = cuda_loading::advice(result)) text += formatted("; {}", todo);
  fail(result == Constant::CUDA_ERROR_OUT_OF_MEMORY ? ErrorKind::memory : ErrorKind::backend,
       "vt: " + text, where);
}

void check_nvrtc(Result result, const char* what, CallSite where) {
  if (result == Constant::NVRTC_SUCCESS) return;
  const Nvrtc& table = cuda_loading::loaded_nvrtc().table;
  const char* text = table.nvrtcGetErrorString ? table.nvrtcGetErrorString(result) : nullptr;
  fail(result == Constant::NVRTC_ERROR_OUT_OF_MEMORY ? ErrorKind::memory : ErrorKind::backend,
       text ? formatted("vt: {}: {}", what, text) : formatted("vt: {}: error {}", what, result),
       where);
}

}  // namespace vt::detail::cuda
