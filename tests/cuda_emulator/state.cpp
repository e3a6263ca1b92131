// The emulated driver's state of the process: calls counted and made to fail, devices and their
// contexts, names of errors.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "ahead.hpp"
#include "control.hpp"
#include "emulator.hpp"

namespace emulator {

namespace {

// Never destroyed: threads may be at work when the process ends.
struct State {
  std::mutex mutex;
  std::map<std::string, long long> totals;
  struct Fault {
    int after;
    Result error;
  };
  std::map<std::string, std::vector<Fault>> faults;
  std::string report;
  std::vector<std::string> log;  // all reports
  std::vector<std::string> sources;
  std::atomic<bool> started{false};
  std::atomic<Result> lost[max_devices] = {};
  std::atomic<std::uint64_t> seed{static_cast<std::uint64_t>(setting("VT_EMULATOR_SEED", 0))};
  std::atomic<bool> races{setting("VT_EMULATOR_RACES", 1) != 0};
  std::atomic<int> mode{static_cast<int>(setting("VT_EMULATOR_STREAMS", 0))};
};
State& state() {
  static State* const all = new State;
  return *all;
}

int context_objects[max_devices];
thread_local int context_of_thread = -1;

struct ErrorText {
  Result result;
  const char *name, *text;
};
#define VT_NAMED(name, value) {value, #name, ""},
const ErrorText named_errors[] = {VT_CUDA_CONSTANTS(VT_NAMED)};
#undef VT_NAMED
const ErrorText texts[] = {
    {0, "", "no error"},
    {1, "", "invalid argument"},
    {2, "", "out of memory"},
    {3, "", "initialization error"},
    {100, "", "no CUDA-capable device is detected"},
    {101, "", "invalid device ordinal"},
    {200, "", "device kernel image is invalid"},
    {201, "", "invalid device context"},
    {209, "", "no kernel image is available for execution on the device"},
    {400, "", "invalid resource handle"},
    {500, "", "named symbol not found"},
    {600, "", "device not ready"},
    {700, "", "an illegal memory access was encountered"},
    {701, "", "too many resources requested for launch"},
    {710, "", "device-side assert triggered"},
    {716, "", "misaligned address"},
    {719, "", "unspecified launch failure"},
    {803, "", "system has unsupported display driver / cuda driver combination"}};

int context_index(vt::detail::cuda::Context context) {
  const auto* p = reinterpret_cast<int*>(context);
  return p >= context_objects && p < context_objects + max_devices
             ? static_cast<int>(p - context_objects)
             : -1;
}

}  // namespace

long long setting(const char* variable, long long otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::strtoll(text, nullptr, 10) : otherwise;
}

Order::Order(std::uint64_t count, std::uint64_t seed, std::uint64_t salt)
    : count_(std::max<std::uint64_t>(count, 1)) {
  if (seed == 1) step_ = first_ = count_ - 1;
  if (count_ == 1) step_ = 1;
  if (seed <= 1) return;
  Random random(seed * 0x100000001b3ull + salt);
  first_ = random.below(count_);
  do {
    step_ = 1 + random.below(count_);
  } while (std::gcd(step_, count_) != 1);
}

Result injected(const char* function) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto found = s.faults.find(function);
  if (found == s.faults.end()) return 0;
  auto& faults = found->second;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Result error = faults[i].error;
    if (faults[i].after < 0) return error;
    if (faults[i].after-- == 0) {
      faults.erase(faults.begin() + static_cast<std::ptrdiff_t>(i));
      return error;
    }
  }
  return 0;
}

Result enter(const char* function, int needs) {
  State& s = state();
  count(function);
  if (only_collects() && loops_in_vain(function)) return Constant::CUDA_ERROR_NOT_SUPPORTED;
  if (const Result error = injected(function)) return error;
  if ((needs & needs_start) && !s.started) return Constant::CUDA_ERROR_NOT_INITIALIZED;
  if (needs & needs_context) {
    const int device = current_device();
    if (device < 0) return Constant::CUDA_ERROR_INVALID_CONTEXT;
    if (!(needs & even_if_lost)) return lost(device);
  }
  return 0;
}

void lose_device(int device, Result error) {
  Result none = 0;
  state().lost[device].compare_exchange_strong(none, error);
}
Result lost(int device) { return state().lost[device]; }
int current_device() { return context_of_thread; }
int device_count() {
  return static_cast<int>(std::clamp<long long>(setting("VT_EMULATOR_DEVICES", 1), 0, max_devices));
}
void count(const char* what, long long by) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.totals[what] += by;
}
void add_report(const std::string& text) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.report = text;
  s.log.push_back(text);
}
std::uint64_t seed() { return state().seed; }
int stream_mode() { return state().mode; }
bool races_are_errors() { return state().races; }
void note_source(const std::string& source) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.sources.push_back(source);
}
const char* error_name(Result result) {
  // Errors stand first in the list, other constants of the same values behind them.
  for (const ErrorText& e : named_errors)
    if (e.result == result && std::strncmp(e.name, "CUDA_", 5) == 0) return e.name;
  return nullptr;
}

long long alive(const std::string& what);  // memory.cpp

}  // namespace emulator

using namespace emulator;
using namespace vt::detail::cuda;

extern "C" {

void vt_emulator_fail(const char* function, int after_calls, int error) {
  const std::lock_guard lock(state().mutex);
  state().faults[function].push_back({after_calls, error});
}
void vt_emulator_reset() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.totals.clear();
  s.faults.clear();
  s.report.clear();
  s.sources.clear();
  for (auto& error : s.lost) error = 0;
}
void vt_emulator_set_seed(unsigned long seed) { state().seed = seed; }
void vt_emulator_set_races(int are_errors) { state().races = are_errors != 0; }
void vt_emulator_set_streams(int mode) { state().mode = mode; }
const char* vt_emulator_report() {
  static thread_local std::string copy;
  const std::lock_guard lock(state().mutex);
  copy = state().report;
  return copy.c_str();
}
int vt_emulator_sources() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(state().sources.size());
}
const char* vt_emulator_source(int index) {
  static thread_local std::string copy;
  const std::lock_guard lock(state().mutex);
  copy = index >= 0 && index < static_cast<int>(state().sources.size()) ? state().sources[index]
                                                                        : std::string();
  return copy.c_str();
}
long long vt_emulator_count(const char* what) {
  const long long living = alive(what);
  if (living >= 0) return living;
  const std::lock_guard lock(state().mutex);
  const auto found = state().totals.find(what);
  return found == state().totals.end() ? 0 : found->second;
}

Result cuDriverGetVersion(int* version) {
  if (const Result error = enter("cuDriverGetVersion", needs_nothing)) return error;
  *version = static_cast<int>(setting("VT_EMULATOR_VERSION", 12090));
  return 0;
}
Result cuInit(unsigned flags) {
  if (const Result error = enter("cuInit", needs_nothing)) return error;
  if (flags != 0) return Constant::CUDA_ERROR_INVALID_VALUE;
  if (const auto error = setting("VT_EMULATOR_INIT_ERROR", 0)) return static_cast<Result>(error);
  if (device_count() == 0) return Constant::CUDA_ERROR_NO_DEVICE;
  state().started = true;
  return 0;
}
Result cuGetErrorName(Result result, const char** text) {
  *text = error_name(result);
  return *text ? Constant::CUDA_SUCCESS : Constant::CUDA_ERROR_INVALID_VALUE;
}
Result cuGetErrorString(Result result, const char** text) {
  *text = nullptr;
  for (const ErrorText& e : texts)
    if (e.result == result) *text = e.text;
  if (!*text && error_name(result)) *text = "an error of the emulated driver";
  return *text ? Constant::CUDA_SUCCESS : Constant::CUDA_ERROR_INVALID_VALUE;
}
Result cuLogsCurrent(unsigned* at, unsigned flags) {
  if (const Result error = enter("cuLogsCurrent", needs_nothing)) return error;
  if (!at || flags != 0) return Constant::CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(state().mutex);
  *at = static_cast<unsigned>(state().log.size());
  return 0;
}
Result cuLogsDumpToMemory(unsigned* from, char* buffer, std::size_t* size, unsigned flags) {
  if (const Result error = enter("cuLogsDumpToMemory", needs_nothing)) return error;
  if (!buffer || !size || *size == 0 || flags != 0) return Constant::CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(state().mutex);
  const std::vector<std::string>& log = state().log;
  std::string text;
  for (std::size_t i = log.size();
       i-- > (from ? *from : 0u) && text.size() + log[i].size() + 2 <= *size;)
    text = log[i] + "\n" + text;
  if (from) *from = static_cast<unsigned>(log.size());
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  *size = text.size();
  return 0;
}
Result cuDeviceGetCount(int* devices) {
  if (const Result error = enter("cuDeviceGetCount", needs_start)) return error;
  *devices = device_count();
  return 0;
}
Result cuDeviceGet(Device_* device, int ordinal) {
  if (const Result error = enter("cuDeviceGet", needs_start)) return error;
  if (ordinal < 0 || ordinal >= device_count()) return Constant::CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return 0;
}
Result cuDeviceGetName(char* name, int length, Device_ device) {
  if (const Result error = enter("cuDeviceGetName", needs_start)) return error;
  if (device < 0 || device >= device_count()) return Constant::CUDA_ERROR_INVALID_DEVICE;
  if (length <= 0) return Constant::CUDA_ERROR_INVALID_VALUE;
  std::strncpy(name, "Emulated device", static_cast<std::size_t>(length));
  name[length - 1] = 0;
  return 0;
}
Result cuDeviceGetAttribute(int* value, int attribute, Device_ device) {
  if (const Result error = enter("cuDeviceGetAttribute", needs_start)) return error;
  if (device < 0 || device >= device_count()) return Constant::CUDA_ERROR_INVALID_DEVICE;
  const int sm = static_cast<int>(setting("VT_EMULATOR_SM", 90));
  switch (attribute) {
    case Constant::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case 2:
    case 3: *value = 1024; break;  // block sizes x, y, z
    case 4: *value = 64; break;
    case Constant::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 2147483647; break;
    case Constant::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case 7: *value = 65535; break;
    case Constant::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 << 10; break;
    case Constant::CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case Constant::CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1000000; break;
    // Few, so that grids that are sized by the device come out small.
    case Constant::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = static_cast<int>(setting("VT_EMULATOR_MULTIPROCESSORS", 4));
      break;
    case Constant::CU_DEVICE_ATTRIBUTE_INTEGRATED: *value = 0; break;
    case Constant::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 1000000; break;
    case Constant::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 512; break;
    case Constant::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 4 << 20; break;
    case Constant::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case Constant::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = sm / 10; break;
    case Constant::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = sm % 10; break;
    case Constant::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      *value = 228 << 10;
      break;
    case Constant::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 << 10; break;
    case Constant::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: *value = 32; break;
    case Constant::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = 1; break;
    default: return Constant::CUDA_ERROR_INVALID_VALUE;
  }
  return 0;
}
Result cuDevicePrimaryCtxRetain(Context* context, Device_ device) {
  if (const Result error = enter("cuDevicePrimaryCtxRetain", needs_start)) return error;
  if (device < 0 || device >= device_count()) return Constant::CUDA_ERROR_INVALID_DEVICE;
  *context = reinterpret_cast<Context>(context_objects + device);
  return 0;
}
Result cuDevicePrimaryCtxRelease_v2(Device_ device) {
  if (const Result error = enter("cuDevicePrimaryCtxRelease_v2", needs_start)) return error;
  return device < 0 || device >= device_count() ? Constant::CUDA_ERROR_INVALID_DEVICE
                                                : Constant::CUDA_SUCCESS;
}
Result cuCtxSetCurrent(Context context) {
  if (const Result error = enter("cuCtxSetCurrent", needs_start)) return error;
  if (context && context_index(context) < 0) return Constant::CUDA_ERROR_INVALID_CONTEXT;
  context_of_thread = context ? context_index(context) : -1;
  return 0;
}
Result cuCtxGetCurrent(Context* context) {
  if (const Result error = enter("cuCtxGetCurrent", needs_start)) return error;
  *context = context_of_thread < 0 ? nullptr
                                   : reinterpret_cast<Context>(context_objects + context_of_thread);
  return 0;
}
Result cuCtxSynchronize() {
  if (const Result error = enter("cuCtxSynchronize", needs_start | needs_context)) return error;
  count("synchronisations");
  return finish_device(current_device());
}
}
