// What execution asks of the CUDA backend.
#include "../executables.hpp"

#include "program.hpp"

namespace vt::detail {

std::shared_ptr<Executable> cuda_executable(const GraphBody& graph, int device) {
  return new_shared<cuda::CudaProgram>(graph, cuda::CudaDevice::get(device));
}

}  // namespace vt::detail
