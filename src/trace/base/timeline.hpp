// VT_TRACE=file.json: what vt does and when, by thread, as a timeline that Perfetto and
// chrome://tracing open.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <vt/error.hpp>

namespace vt::detail {

/// Does VT_TRACE name a file? Read once; where it does not, a Span costs one test.
bool timeline_wanted();

/// A stretch of time in a row of this thread, from construction to destruction; inside of it lie
/// those that begin and end meanwhile.
class Span {
 public:
  /// `category`: record, transform, compile or run. `details`: members of a JSON object, or empty.
  /// All three must live as long as the Span.
  explicit Span(const char* category, std::string_view name, std::string_view details = {}) {
    if (timeline_wanted()) begin(category, name, details);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() {
    if (label_.category) end();
  }
  struct Label {
    const char* category = nullptr;
    std::string_view name;
  };
  /// Of the innermost one of this thread; without a category if there is none.
  static Label innermost();
  /// For code that goes on on another stack: what is innermost there. Returns what was so far.
  static Label exchange_innermost(const Label&);
  /// Part of another thread's, with its label.
  explicit Span(const Label& whole) {
    if (whole.category) begin(whole.category, whole.name, {});
  }

 private:
  void begin(const char* category, std::string_view name, std::string_view details);
  void end() noexcept;

  Label label_, outer_;
  std::string_view details_;
  std::chrono::steady_clock::time_point since_;
};

/// "key":"text" with what JSON wants escaped.
std::string json_member(const char* key, std::string_view text);
/// The user's line as a member, or empty where there is none.
std::string json_line(CallSite where);

}  // namespace vt::detail
