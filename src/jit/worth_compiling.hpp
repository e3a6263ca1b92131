// Which Graphs are worth compiling when they are seen for the first time.
#pragma once

#include <optional>
#include <span>

#include <vt/detail/small_vec.hpp>

#include "../trace/base/buffer.hpp"
#include "../trace/ir/graph.hpp"

namespace vt::detail {

/// Does it compute so little that interpreting it once is sooner done?
bool is_little_work(const GraphBody&);
/// Does the interpreter round some result in another way than programs do?
bool rounds_in_its_own_way(const GraphBody&);
/// Its results by the interpreter. Nothing where loops take so long that the Graph had better be
/// compiled; it then begins again, so that what has effects is not given up.
std::optional<Vec<BufferRef>> interpreted_soon(const GraphBody&, std::span<const BufferRef> inputs);
/// As a list of batched calls, where it is one of many small equations and that is faster than
/// interpreting it (`interpreted`) or compiling it.
std::optional<GraphBody> as_batched_calls(const GraphBody&, bool interpreted);
/// Is one program of all those equations faster than that, once it is compiled?
bool is_worth_compiling(const GraphBody&);

}  // namespace vt::detail
