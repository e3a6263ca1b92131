// Loopback: Transport between threads of one process, each of which is a rank.
#pragma once

#include <memory>

#include <vt/detail/small_vec.hpp>

#include "transport.hpp"

namespace vt::detail {

/// One for each of the ranks.
Vec<std::unique_ptr<Transport>> loopback_transports(int ranks);

}  // namespace vt::detail
