// Where a NaN came from: from an element of a result back to the equation that made it of operands
// without one, by running the Graph on the interpreter.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "../ir/graph.hpp"

namespace vt::detail {

/// What is looked for: NaN, and infinities where they are asked for.
struct NotFinite {
  bool infinities = false;
};

/// The first such element of a value on the host; −1: there is none, or its dtype has none.
std::int64_t first_not_finite(const Buffer& value, const Aval& aval, NotFinite what);

/// "[1,2]" for element `element` of a value; "" of a scalar.
std::string element_text(const Aval& aval, std::int64_t element);

struct NanOrigin {
  enum class Kind : std::uint8_t {
    made,   ///< an equation made it of operands without one
    input,  ///< an input of the Graph brought it
    lost,   ///< what was run again does not make it, or is not to be run again
  };
  Kind kind = Kind::lost;
  // made:
  Op op = Op::input;
  CallSite where = {};  ///< of the equation
  std::string call;     ///< "log(-0.5)"
  std::string place;    ///< in the op's result: "element [1,2] of f64[3,4]"
  /// the loops and lanes around it, the innermost first: "iteration 3 of the loop at f.cpp:12"
  Vec<std::string> inside;
  // input:
  std::size_t input = 0;
  std::int64_t element = 0;
};

/// Of `element` of output `output`, which is not finite. Effects do not happen again.
NanOrigin nan_origin(const GraphRef& graph, std::span<const BufferRef> inputs, std::size_t output,
                     std::int64_t element, NotFinite what);

}  // namespace vt::detail
