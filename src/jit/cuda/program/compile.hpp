// From CUDA text to kernels that can be launched: NVRTC, and the caches in memory and on disk.
#pragma once

#include <memory>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../driver/device.hpp"
#include "../driver/launch_grid.hpp"

namespace vt::detail::cuda {

/// One kernel, loaded on one device.
class DeviceCode {
 public:
  /// Throws: Error(backend) if the device does not take the code.
  DeviceCode(const CudaDevice& device, const Vec<char>& cubin, const std::string& name);
  ~DeviceCode();
  DeviceCode(const DeviceCode&) = delete;
  DeviceCode& operator=(const DeviceCode&) = delete;

  /// Asks the device for more shared memory than kernels may have by default.
  void allow_shared(std::int64_t bytes) const;
  using Grid = LaunchGrid;
  /// Blocks like these that a multiprocessor runs at a time, at least 1.
  int resident_blocks(const Grid& grid) const;
  /// Puts a run of the kernel on the device's stream. `parameters`: the address of each.
  void launch(const Grid& grid, void** parameters) const;
  Function function() const { return function_; }

 private:
  const CudaDevice& device_;
  Module module_ = nullptr;
  Function function_ = nullptr;
};

/// The kernel `name` of `source`, which stands behind the prelude. Compiled once in a process for
/// each device, and (through the disk cache) once on a machine for each kind of device. Any thread.
/// Throws: Error(backend) with the compiler's own words.
std::shared_ptr<const DeviceCode> device_code(const CudaDevice& device, const std::string& source,
                                              const std::string& name);

/// Kernels that are kept for the next program that wants them: those used last. Others stay for as
/// long as a program has them.
inline constexpr std::size_t most_kernels = 4096;
/// For tests: as many kernels are kept instead of most_kernels.
void set_most_kernels(std::size_t most);

/// The machine code of `source` for `architecture` ("sm_90"); `log`: what the compiler said,
/// warnings. Throws as device_code.
Vec<char> compile_cubin(const std::string& source, const std::string& name,
                        const std::string& architecture, std::string* log = nullptr);

/// Where VT_DUMP asks for it: files of that stem with PTX, machine code and, where cuobjdump or
/// nvdisasm is found, SASS.
void dump_code(const std::string& stem, const std::string& ptx, const Vec<char>& cubin);

}  // namespace vt::detail::cuda
