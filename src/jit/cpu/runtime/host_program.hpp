// A Graph made ready for the host: a Program, or the interpreter.
#pragma once

#include <memory>
#include <span>

#include "../../../trace/ir/executable.hpp"

namespace vt::detail {

/// Is there a compiler, and is it wanted? Not as the process ends.
bool host_compiles();
/// VT_BACKEND=cpu: whatever is not compiled is an error, and nothing is interpreted.
bool host_must_compile();
/// Did this fail because the process ends before all was compiled?
bool stopped_by_end(const Error&);

Vec<BufferRef> interpreted(const GraphBody&, std::span<const BufferRef> inputs);
std::shared_ptr<Executable> interpreted_program(GraphBody);
/// Of real numbers, without batched calls. Warns where it takes long. Throws: Error(backend).
std::shared_ptr<Executable> host_program(const GraphBody&, std::span<const char> donated);

}  // namespace vt::detail
