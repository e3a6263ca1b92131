// The functions by which src/jit/compile.cpp calls the CUDA backend.
#include "../../services/executables.hpp"

#include <memory>

#include "program.hpp"

namespace vt::detail {

std::shared_ptr<Executable> cuda_executable(const GraphBody& graph, int device,
                                            std::span<const char> donated) {
  const OwnedInputs owned{Vec<char>(donated.begin(), donated.end()), graph.outputs.size()};
  return std::make_shared<cuda::CudaProgram>(graph, cuda::CudaDevice::get(device), false, owned);
}

}  // namespace vt::detail
