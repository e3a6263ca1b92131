// Throwing: how a message gets the user's line, and the one place that throws vt::Error.
#include <cstring>
#include <string>

#include <vt/error.hpp>

namespace vt::detail {

namespace line_texts {

std::string between(const char* before, CallSite where, const char* behind) {
  if (!where.file) return {};
  // The base name: messages stay the same wherever the sources lie.
  const char* slash = std::strrchr(where.file, '/');
  std::string text = before;
  text += slash ? slash + 1 : where.file;
  text += ':';
  text += std::to_string(where.line);
  text += behind;
  return text;
}

}  // namespace line_texts

std::string at(CallSite where) { return line_texts::between("; at ", where, ""); }
std::string in_passing(CallSite where) { return line_texts::between(" (", where, ")"); }

void fail(ErrorKind kind, std::string message, CallSite where) {
  throw Error(kind, message + at(where));
}

}  // namespace vt::detail
