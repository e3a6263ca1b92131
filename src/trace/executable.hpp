// Executable: a Graph made ready to run many times, whatever the backend. Implemented by src/jit.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <vt/execution.hpp>
#include <vt/small_vec.hpp>

#include "graph.hpp"

namespace vt::detail {

class Executable {
 public:
  virtual ~Executable() = default;
  /// One buffer per Graph output. `inputs` are read only; their sizes are those of the Graph's inputs. Any thread may call it.
  virtual Vec<BufferRef> run(std::span<const BufferRef> inputs) = 0;
  /// What runs, for people: kernels, what each fused, loops, bytes and flops.
  virtual std::string explain() const = 0;
  /// What it takes, by the plan of its buffers.
  virtual Memory memory() const = 0;
};

/// Simplifies, fuses and compiles for the default backend (the interpreter where there is no compiler).
std::shared_ptr<Executable> compile_graph(GraphBody);

}  // namespace vt::detail
