// MpiTransport: Transport between the processes that MPI has started.
#pragma once

#include <memory>

#include "transport.hpp"

namespace vt::detail {

/// That of this process, which calls MPI_Init if the program has not. Null: no launcher has
/// started it. Called once. Throws: Error (backend).
std::unique_ptr<Transport> mpi_transport();

}  // namespace vt::detail
