// Programs that other parts of the JIT ask for: of a CUDA device for execution, of the host for
// what that device has no code for.
#pragma once

#include <memory>

#include "../../trace/ir/executable.hpp"

namespace vt::detail {

/// A program for the device; `donated` as in compile_graph. Throws: Error(backend), Error(memory).
std::shared_ptr<Executable> cuda_executable(const GraphBody&, int device,
                                            std::span<const char> donated = {});
/// The same Graph on the host: for what the device has no code for.
std::shared_ptr<Executable> host_executable(const GraphBody&);
/// Forgets the programs of lazily evaluated Graphs; those that run go on.
void drop_lazy_programs();

}  // namespace vt::detail
