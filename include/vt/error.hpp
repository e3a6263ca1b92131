// vt::Error, its kinds, and CallSite: the user's source line that every op and message carries.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace vt {

enum class ErrorKind {
  shape,      ///< shapes, axes or sizes that do not fit
  dtype,      ///< element types that an op does not take
  value,      ///< an argument outside its range
  tree,       ///< arguments or results whose structure does not fit
  tracer,     ///< a tracer looked at, or used after its recording ended
  transform,  ///< a transform asked for what has no meaning (derivative of a callback …)
  memory,     ///< a buffer could not be had
  backend,    ///< compiler, device or cache trouble
  io,         ///< files
  check,      ///< a vt::check that failed
};

/// The only exception vt throws, but for std::bad_alloc where small objects find no memory.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

/// A line of the user's source.
struct CallSite {
  const char* file = nullptr;
  int line = 0;
  /// Of what a derivative computes: how often the op of that line was differentiated, and which op
  /// it is (of vt::detail::Op). Transforms set it.
  std::uint8_t derivatives = 0, differentiated = 0;
  static constexpr CallSite here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

namespace detail {
/// Throws Error(kind, message + "; at file:line"); the line is left out when it is not known.
[[noreturn]] void fail(ErrorKind kind, std::string message, CallSite where);
/// "; at file:line", or nothing.
std::string at(CallSite where);
/// The line as a message names it in passing: " (file:line)", or nothing.
std::string in_passing(CallSite where);
}  // namespace detail

}  // namespace vt
