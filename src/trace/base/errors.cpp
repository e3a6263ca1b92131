// Throwing: how a message gets the user's line, and the one place that throws vt::Error.
#include <cstring>
#include <string>

#include <vt/error.hpp>

namespace vt::detail {

std::string at(CallSite where) {
  if (!where.file) return {};
  // The base name: messages stay the same wherever the sources lie.
  const char* slash = std::strrchr(where.file, '/');
  std::string text = "; at ";
  text += slash ? slash + 1 : where.file;
  text += ':';
  text += std::to_string(where.line);
  return text;
}

void fail(ErrorKind kind, std::string message, CallSite where) {
  throw Error(kind, message + at(where));
}

}  // namespace vt::detail
