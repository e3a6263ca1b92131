// The interpreter rule of collectives between processes.
#include "../processes/collective.hpp"
#include "interpreter.hpp"

namespace vt::detail::interp_processes {

void collective(Frame& frame) {
  const Equation& e = frame.equation;
  run_collective(e, frame.graph, e.inputs.empty() ? nullptr : frame.bytes(), frame.make_bytes());
}

}  // namespace vt::detail::interp_processes
