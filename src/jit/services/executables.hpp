// Entry points of the two backends: a Graph as a program for a CUDA device, or for the host.
#pragma once

#include <memory>

#include "../../trace/ir/executable.hpp"

namespace vt::detail {

class RowProgram;

/// A program for the device; `donated` as in compile_graph. Throws: Error(backend), Error(memory).
std::shared_ptr<Executable> cuda_executable(const GraphBody&, int device,
                                            std::span<const char> donated = {});
/// The same Graph on the host: for what the device has no code for.
std::shared_ptr<Executable> host_executable(const GraphBody&);
/// A program for any number of rows on the host, of the Graph of one row; see with_rows. Null where
/// there is no compiler.
std::shared_ptr<const RowProgram> row_program(GraphRef one, Vec<bool> mapped);
/// Forgets the programs of lazily evaluated Graphs; those that run go on.
void drop_lazy_programs();

}  // namespace vt::detail
