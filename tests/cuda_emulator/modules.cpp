// Modules of the emulated driver: images loaded as shared libraries, their kernels, and launches
// put into streams.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>

#include "ahead.hpp"
#include "emulator.hpp"
#include "image.hpp"

namespace emulator {

namespace {

struct LoadedModule {
  std::shared_ptr<ModuleObject> object;
  std::vector<FunctionObject*> functions;
};
struct Modules {
  std::mutex mutex;
  std::set<LoadedModule*> all;
  std::set<FunctionObject*> functions;
};
Modules& modules() {
  static Modules* const all = new Modules;
  return *all;
}

// The variables declared __shared__: those of functions that can be written, in the symbol table.
// Not those of other units of the library.
void find_shared(const std::string& elf, ModuleObject* module, std::uint64_t bias,
                 const std::string& unit) {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(elf.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(elf.data() + header->e_shoff);
  for (unsigned s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const char* names = elf.data() + sections[sections[s].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(elf.data() + sections[s].sh_offset);
    for (std::size_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); ++i) {
      const Elf64_Sym& symbol = symbols[i];
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx >= header->e_shnum ||
          symbol.st_size == 0)
        continue;
      // _ZZ6kernelvE4tile: the variable's own name is its last part
      std::string name = names + symbol.st_name;
      if (!(sections[symbol.st_shndx].sh_flags & SHF_WRITE) || name.compare(0, 3, "_ZZ") != 0)
        continue;
      const bool own = name.find(unit) != std::string::npos;
      if (!own && name.find("vt_unit_") != std::string::npos) continue;
      std::string last = name.substr(name.rfind('E') + 1);
      last.erase(0, std::min(last.find_first_not_of("0123456789"), last.size()));
      module->shared.push_back({bias + symbol.st_value, symbol.st_size, last.empty() ? name : last,
                                own, std::make_shared<Shadow>()});
    }
  }
}

// Of code that was only collected: names, one a line.
void describe_names(const std::string& text, ModuleObject* module) {
  module->names = text;
  std::size_t count = 0;
  for (char& c : module->names)
    if (c == '\n') c = '\0', ++count;
  module->kernels.resize(count + 1);
  static const unsigned no_sizes[1] = {};
  for (std::size_t i = 0, at = 0; i < count; ++i, at = module->names.find('\0', at) + 1)
    module->kernels[i] = {module->names.c_str() + at, nullptr, no_sizes, 0, 1024};
  module->own_description = {module->kernels.data(), static_cast<unsigned>(count), nullptr,
                             nullptr};
  module->description = &module->own_description;
}

// Held around the dynamic loader and what is read of its records: modules share them, and
// ThreadSanitizer does not see the loader's own lock.
std::mutex& loader_mutex() {
  static std::mutex* const mutex = new std::mutex;
  return *mutex;
}

void unload(ModuleObject* module) {
  if (module->library) {
    const std::lock_guard lock(loader_mutex());
    ::dlclose(module->library);
  }
  delete module;
}

FunctionObject* known(vt::detail::cuda::Function handle) {
  auto* function = reinterpret_cast<FunctionObject*>(handle);
  return modules().functions.count(function) ? function : nullptr;
}

int static_shared(const FunctionObject& function) {
  std::uint64_t sum = 0;
  for (const ModuleObject::Shared& v : function.module->shared)
    if (v.own) sum += v.size;
  return static_cast<int>(sum);
}

}  // namespace

std::string unique_path(const char* suffix) {
  static std::mutex mutex;
  static int next = 0;
  const std::lock_guard lock(mutex);
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder && *folder ? folder : "/tmp") + "/vt_emulator." +
         std::to_string(::getpid()) + "." + std::to_string(next++) + suffix;
}

bool write_file(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return false;
  const bool whole = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return std::fclose(file) == 0 && whole;
}

bool read_file(const std::string& path, std::string* bytes) {
  bytes->clear();
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return false;
  char part[1 << 16];
  for (std::size_t n; (n = std::fread(part, 1, sizeof(part), file)) > 0;) bytes->append(part, n);
  std::fclose(file);
  return true;
}

long long alive_modules() {
  const std::lock_guard lock(modules().mutex);
  return static_cast<long long>(modules().all.size());
}

Result describe_launch(vt::detail::cuda::Function handle, dim3 grid, dim3 block,
                       unsigned shared_bytes, void** parameters, void** extra,
                       std::shared_ptr<Launch>* made) {
  auto launch = std::make_shared<Launch>();
  {
    const std::lock_guard lock(modules().mutex);
    const FunctionObject* function = known(handle);
    if (!function) return Constant::CUDA_ERROR_INVALID_HANDLE;
    launch->function = *function;
  }
  const auto refuse = [&](Result error, const char* why) {
    add_report(std::string("launch of ") + launch->function.kernel->name + ": " + why);
    return error;
  };
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (extra) return refuse(Constant::CUDA_ERROR_NOT_SUPPORTED, "parameters in a buffer");
  if (!grid.x || !grid.y || !grid.z || !threads)
    return refuse(Constant::CUDA_ERROR_INVALID_VALUE, "a size is 0");
  if (grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
    return refuse(Constant::CUDA_ERROR_INVALID_VALUE, "the grid is too large");
  if (block.x > 1024 || block.y > 1024 || block.z > 64 || threads > 1024)
    return refuse(Constant::CUDA_ERROR_INVALID_VALUE, "the block is too large");
  if (threads > static_cast<std::uint64_t>(launch->function.max_threads))
    return refuse(Constant::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                  "more threads than its __launch_bounds__");
  if (shared_bytes > static_cast<unsigned>(launch->function.dynamic_shared_limit) ||
      shared_bytes + static_cast<unsigned>(static_shared(launch->function)) > 227u << 10)
    return refuse(Constant::CUDA_ERROR_INVALID_VALUE, "more shared memory than it may have");
  const vt_kernel& kernel = *launch->function.kernel;
  if (kernel.parameter_count && !parameters)
    return refuse(Constant::CUDA_ERROR_INVALID_VALUE, "no parameters");
  launch->grid = grid;
  launch->block = block;
  launch->dynamic_shared = shared_bytes;
  for (unsigned i = 0; i < kernel.parameter_count; ++i) {
    const auto at = static_cast<unsigned>((launch->parameters.size() + 15) / 16 * 16);
    launch->offsets.push_back(at);
    launch->parameters.resize(at + kernel.parameter_sizes[i]);
    std::memcpy(launch->parameters.data() + at, parameters[i], kernel.parameter_sizes[i]);
  }
  *made = std::move(launch);
  return 0;
}

}  // namespace emulator

using namespace emulator;
using namespace vt::detail::cuda;

extern "C" {

Result cuModuleLoadData(Module* handle, const void* image) {
  if (const Result error = enter("cuModuleLoadData", needs_start | needs_context)) return error;
  ImageHeader header;
  if (!handle || !image) return Constant::CUDA_ERROR_INVALID_VALUE;
  if (std::memcmp(image, header.magic, sizeof(header.magic)) != 0)
    return Constant::CUDA_ERROR_INVALID_IMAGE;
  std::memcpy(static_cast<void*>(&header), image, sizeof(header));
  if (header.emulation != emulation_number()) return Constant::CUDA_ERROR_INVALID_IMAGE;
  const auto sm = static_cast<std::uint32_t>(setting("VT_EMULATOR_SM", 90));
  const bool fits = header.portable
                        ? header.architecture <= sm
                        : header.architecture / 10 == sm / 10 && header.architecture <= sm;
  if (!fits) return Constant::CUDA_ERROR_NO_BINARY_FOR_GPU;
  std::string bytes(static_cast<const char*>(image) + sizeof(header), header.bytes), path;
  std::size_t unit = 0;
  std::shared_ptr<ModuleObject> object(new ModuleObject, unload);
  object->device = current_device();
  if (only_collects()) {
    describe_names(bytes, object.get());
  } else {
    const bool is_unit = read_unit(bytes, &path, &unit);
    if (is_unit && !read_file(path, &bytes)) return Constant::CUDA_ERROR_INVALID_IMAGE;
    // a name of its own each time: the dynamic loader hands a path that it knows out again
    if (!is_unit) {
      path = unique_path(".so");
      if (!write_file(path, bytes)) return 304;
    }
    const std::lock_guard lock(loader_mutex());
    object->library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!is_unit) ::unlink(path.c_str());
    if (!object->library) {
      add_report(std::string("an image cannot be loaded: ") + ::dlerror());
      return Constant::CUDA_ERROR_INVALID_IMAGE;
    }
    object->description = static_cast<const vt_module*>(
        ::dlsym(object->library, ("vt_module_" + std::to_string(unit)).c_str()));
    if (!object->description) return Constant::CUDA_ERROR_INVALID_IMAGE;
    link_map* map = nullptr;
    ::dlinfo(object->library, RTLD_DI_LINKMAP, &map);
    const auto* elf = reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
    const auto* segments = reinterpret_cast<const Elf64_Phdr*>(bytes.data() + elf->e_phoff);
    object->begin = ~0ull;
    for (unsigned i = 0; i < elf->e_phnum; ++i) {
      if (segments[i].p_type != PT_LOAD) continue;
      object->begin = std::min<std::uint64_t>(object->begin, map->l_addr + segments[i].p_vaddr);
      object->end = std::max<std::uint64_t>(
          object->end, map->l_addr + segments[i].p_vaddr + segments[i].p_memsz);
    }
    find_shared(bytes, object.get(), map->l_addr, is_unit ? unit_name(unit) : std::string());
  }
  auto* made = new LoadedModule;
  made->object = std::move(object);
  const std::lock_guard lock(modules().mutex);
  modules().all.insert(made);
  *handle = reinterpret_cast<Module>(made);
  return 0;
}
Result cuModuleUnload(Module handle) {
  if (const Result error = enter("cuModuleUnload", needs_start | needs_context | even_if_lost))
    return error;
  const std::lock_guard lock(modules().mutex);
  auto* module = reinterpret_cast<LoadedModule*>(handle);
  if (!modules().all.erase(module)) return Constant::CUDA_ERROR_INVALID_HANDLE;
  for (FunctionObject* function : module->functions) {
    modules().functions.erase(function);
    delete function;
  }
  delete module;  // launches that are still to come hold the code
  return 0;
}
Result cuModuleGetFunction(Function* handle, Module module_handle, const char* name) {
  if (const Result error = enter("cuModuleGetFunction", needs_start | needs_context)) return error;
  const std::lock_guard lock(modules().mutex);
  auto* module = reinterpret_cast<LoadedModule*>(module_handle);
  if (!modules().all.count(module)) return Constant::CUDA_ERROR_INVALID_HANDLE;
  const vt_module* description = module->object->description;
  for (unsigned i = 0; i < description->kernel_count; ++i) {
    if (std::string(description->kernels[i].name) != name) continue;
    auto* made = new FunctionObject;
    made->module = module->object;
    made->kernel = &description->kernels[i];
    made->max_threads = made->kernel->max_threads;
    module->functions.push_back(made);
    modules().functions.insert(made);
    *handle = reinterpret_cast<Function>(made);
    return 0;
  }
  return Constant::CUDA_ERROR_NOT_FOUND;
}
Result cuFuncGetAttribute(int* value, int attribute, Function handle) {
  if (const Result error = enter("cuFuncGetAttribute", needs_start | needs_context)) return error;
  const std::lock_guard lock(modules().mutex);
  const FunctionObject* function = known(handle);
  if (!function) return Constant::CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case Constant::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = function->max_threads; break;
    case Constant::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_shared(*function); break;
    case Constant::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case Constant::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = 0; break;
    case Constant::CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; break;
    case Constant::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->dynamic_shared_limit;
      break;
    default: return Constant::CUDA_ERROR_INVALID_VALUE;
  }
  return 0;
}
Result cuFuncSetAttribute(Function handle, int attribute, int value) {
  if (const Result error = enter("cuFuncSetAttribute", needs_start | needs_context)) return error;
  const std::lock_guard lock(modules().mutex);
  FunctionObject* function = known(handle);
  if (!function) return Constant::CUDA_ERROR_INVALID_HANDLE;
  if (attribute == Constant::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return 0;
  if (attribute != Constant::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      value + static_shared(*function) > 227 << 10)
    return Constant::CUDA_ERROR_INVALID_VALUE;
  function->dynamic_shared_limit = value;
  return 0;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function handle, int block_size,
                                                   std::size_t dynamic_shared) {
  if (const Result error =
          enter("cuOccupancyMaxActiveBlocksPerMultiprocessor", needs_start | needs_context))
    return error;
  const std::lock_guard lock(modules().mutex);
  const FunctionObject* function = known(handle);
  if (!function) return Constant::CUDA_ERROR_INVALID_HANDLE;
  if (block_size <= 0 || block_size > 1024) return Constant::CUDA_ERROR_INVALID_VALUE;
  const auto shared = static_cast<std::size_t>(static_shared(*function)) + dynamic_shared + 1024;
  *blocks = static_cast<int>(std::min<std::size_t>(
      {static_cast<std::size_t>(2048 / ((block_size + 31) / 32 * 32)), 32, (228u << 10) / shared}));
  return 0;
}
Result cuLaunchKernel(Function handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      Stream stream, void** parameters, void** extra) {
  if (const Result error = enter("cuLaunchKernel", needs_start | needs_context)) return error;
  std::shared_ptr<Launch> launch;
  if (const Result error =
          describe_launch(handle, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z},
                          shared_bytes, parameters, extra, &launch))
    return error;
  if (device_of(stream) < 0) return Constant::CUDA_ERROR_INVALID_HANDLE;
  if (device_of(stream) != launch->function.module->device) {
    add_report(std::string("launch of ") + launch->function.kernel->name +
               ": the stream is another device's");
    return Constant::CUDA_ERROR_INVALID_HANDLE;
  }
  count("launches");
  return enqueue(stream, std::string("kernel ") + launch->function.kernel->name,
                 [launch] { return run_launch(*launch); });
}
}
