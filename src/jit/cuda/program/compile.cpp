// From CUDA text to kernels that can be launched.
#include "compile.hpp"

#include <algorithm>
#include <memory>
#include <mutex>

#include <vt/detail/message.hpp>

#include "../../../trace/base/locks.hpp"
#include "../../../trace/base/recent_map.hpp"
#include "../../../trace/base/timeline.hpp"
#include "../../report/dump.hpp"
#include "../../services/counters.hpp"
#include "../../services/disk_cache.hpp"
#include "../math/special_text.hpp"
#include "../source/prelude.hpp"

namespace vt::detail::cuda {

namespace device_code_store {

struct Slot {
  LongMutex<> mutex;  // held while the code is being made, so that others wait for it
  std::shared_ptr<const DeviceCode> code;
};
struct Store {
  Mutex mutex;
  RecentMap<std::string, std::shared_ptr<Slot>> slots{most_kernels};
};
Store& store() {
  // never destroyed: kernels may still run while the process ends
  static Store* const s = new Store;
  return *s;
}

// Products are fused only where the text says so: results are the interpreter's, and those of every
// device.
constexpr const char* options[] = {"--std=c++17", "--fmad=false", "--extra-device-vectorization"};

const Nvrtc& compiler() {
  std::string reason;
  const Nvrtc* n = nvrtc(&reason);
  if (!n) fail(ErrorKind::backend, "vt: CUDA kernels cannot be compiled: " + reason, {});
  return *n;
}

std::string version() {
  int major = 0, minor = 0;
  check_nvrtc(compiler().nvrtcVersion(&major, &minor), "nvrtcVersion");
  return formatted("{}.{}", major, minor);
}

// The newest architecture that both the device and the compiler know.
std::string architecture_for(const CudaDevice& device) {
  const Nvrtc& n = compiler();
  const int wanted = device.facts().major * 10 + device.facts().minor;
  int count = 0;
  check_nvrtc(n.nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
  Vec<int> known(count, 0);
  check_nvrtc(n.nvrtcGetSupportedArchs(known.data()), "nvrtcGetSupportedArchs");
  int best = 0;
  for (int a : known)
    // machine code runs on devices of its own generation
    if (a <= wanted && a > best && a / 10 == wanted / 10) best = a;
  if (best == 0)
    fail(ErrorKind::backend,
         formatted(
             "vt: NVRTC {} makes no code for {} (compute capability {}.{}); another version of "
             "NVRTC does",
             version(), device.facts().name, device.facts().major, device.facts().minor),
         {});
  return formatted("sm_{}", best);
}

std::string whole_text(const std::string& source) {
  return std::string(prelude) + special_source(source) + source;
}

std::shared_ptr<const DeviceCode> make(const CudaDevice& device, const std::string& source,
                                       const std::string& name) {
  const std::string architecture = architecture_for(device);
  const std::string shown = timeline_wanted() ? "code " + name : "";
  const Span span("compile", shown);
  std::string all = formatted("NVRTC {}|{}|{}|", version(), architecture, name);
  for (const char* option : options) all.append(option).append("|");
  const CacheKey key = cache_key(all + whole_text(source));
  // Dumps have what only a compilation makes.
  if (const std::optional<Vec<char>> cubin =
          dump_folder().empty() ? DiskCache::process().load(key) : std::nullopt) {
    try {
      auto code = std::make_shared<const DeviceCode>(device, *cubin, name);
      count(counters().kernel_disk_hits);
      return code;
    } catch (const Error&) {  // sound bytes that do not load: made anew, not fatal
      DiskCache::process().remove(key);
    }
  }
  const Vec<char> cubin = compile_cubin(source, name, architecture);
  count(counters().kernels_compiled);
  auto code = std::make_shared<const DeviceCode>(device, cubin, name);
  DiskCache::process().store(key, cubin);
  return code;
}

}  // namespace device_code_store

Vec<char> compile_cubin(const std::string& source, const std::string& name,
                        const std::string& architecture, std::string* log) {
  using namespace device_code_store;
  const Nvrtc& n = compiler();
  const std::string text = whole_text(source);
  const std::string stem = dump_folder().empty() ? "" : short_name(source) + "." + name;
  dump_text(stem + ".cu", text);
  RtcProgram program = nullptr;
  check_nvrtc(
      n.nvrtcCreateProgram(&program, text.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr),
      "nvrtcCreateProgram");
  struct Destroy {
    const Nvrtc& n;
    RtcProgram* program;
    ~Destroy() { static_cast<void>(n.nvrtcDestroyProgram(program)); }
  } destroy{n, &program};
  const std::string target = "--gpu-architecture=" + architecture;
  Vec<const char*> all(std::begin(options), std::end(options));
  // Leaves out declarations that no kernel uses: a tenth of the time.
  int major = 0, minor = 0;
  if (n.nvrtcVersion(&major, &minor) == Constant::NVRTC_SUCCESS && major * 100 + minor >= 1204)
    all.push_back("-minimal");
  all.push_back(target.c_str());
  const Result r = n.nvrtcCompileProgram(program, static_cast<int>(all.size()), all.data());
  std::string said;
  std::size_t size = 0;
  if (n.nvrtcGetProgramLogSize(program, &size) == Constant::NVRTC_SUCCESS && size > 1) {
    said.resize(size);
    said.resize(n.nvrtcGetProgramLog(program, said.data()) == Constant::NVRTC_SUCCESS ? size - 1
                                                                                      : 0);
  }
  if (r != Constant::NVRTC_SUCCESS)
    fail(ErrorKind::backend,
         formatted("vt: NVRTC does not compile the kernel {} for {}: {}\n{}", name, architecture,
                   n.nvrtcGetErrorString(r), said.substr(0, 1000)),
         {});
  if (log) *log = std::move(said);
  check_nvrtc(n.nvrtcGetCUBINSize(program, &size), "nvrtcGetCUBINSize");
  Vec<char> cubin(size, 0);
  check_nvrtc(n.nvrtcGetCUBIN(program, cubin.data()), "nvrtcGetCUBIN");
  if (dump_folder().empty()) return cubin;
  std::string ptx;
  if (n.nvrtcGetPTXSize(program, &size) == Constant::NVRTC_SUCCESS && size > 1) {
    ptx.resize(size);
    // it ends with a zero
    ptx.resize(n.nvrtcGetPTX(program, ptx.data()) == Constant::NVRTC_SUCCESS ? size - 1 : 0);
  }
  dump_code(stem, ptx, cubin);
  return cubin;
}

DeviceCode::DeviceCode(const CudaDevice& device, const Vec<char>& cubin, const std::string& name)
    : device_(device) {
  device_.enter();
  device_.check(device_.driver().cuModuleLoadData(&module_, cubin.data()), "cuModuleLoadData");
  const Result r = device_.driver().cuModuleGetFunction(&function_, module_, name.c_str());
  if (r == Constant::CUDA_SUCCESS) return;
  static_cast<void>(device_.driver().cuModuleUnload(module_));
  device_.check(r, "cuModuleGetFunction");
}

DeviceCode::~DeviceCode() {
  device_.enter_quietly();
  // A launch may still be on its way.
  static_cast<void>(device_.driver().cuStreamSynchronize(device_.stream()));
  static_cast<void>(device_.driver().cuModuleUnload(module_));
}

void DeviceCode::allow_shared(std::int64_t bytes) const {
  if (bytes <= 48 << 10) return;
  device_.enter();
  device_.check(device_.driver().cuFuncSetAttribute(
                    function_, Constant::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    static_cast<int>(bytes)),
                "cuFuncSetAttribute");
}

int DeviceCode::resident_blocks(const Grid& grid) const {
  device_.enter();
  int blocks = 0;
  device_.check(device_.driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &blocks, function_, grid.threads, static_cast<std::size_t>(grid.shared_bytes)),
                "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  return std::max(blocks, 1);
}

void DeviceCode::launch(const Grid& grid, void** parameters) const {
  device_.check(device_.driver().cuLaunchKernel(function_, static_cast<unsigned>(grid.blocks), 1, 1,
                                                static_cast<unsigned>(grid.threads), 1, 1,
                                                static_cast<unsigned>(grid.shared_bytes),
                                                device_.stream(), parameters, nullptr),
                "cuLaunchKernel");
}

std::shared_ptr<const DeviceCode> device_code(const CudaDevice& device, const std::string& source,
                                              const std::string& name) {
  using namespace device_code_store;
  const std::string key = formatted("{}|{}|", device.index(), name) + source;
  std::shared_ptr<Slot> slot;
  Vec<std::shared_ptr<Slot>> gone;
  {
    Store& s = store();
    const std::lock_guard lock(s.mutex);
    if (const std::shared_ptr<Slot>* const known = s.slots.find(key)) slot = *known;
    else slot = *s.slots.emplace(key, std::make_shared<Slot>(), gone);
  }
  gone.clear();
  const std::lock_guard lock(slot->mutex);
  if (slot->code) count(counters().kernel_memory_hits);
  else slot->code = make(device, source, name);
  return slot->code;
}

void set_most_kernels(std::size_t most) {
  device_code_store::Store& s = device_code_store::store();
  Vec<std::shared_ptr<device_code_store::Slot>> gone;  // until the lock has gone
  const std::lock_guard lock(s.mutex);
  s.slots.set_most(most, gone);
}

}  // namespace vt::detail::cuda
