// Timelines are written as they happen, one line of the file for each Span, in the Trace Event
// Format ("Trace Event Format", the Chromium project: complete events, times in microseconds).
#include "timeline.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <vt/detail/message.hpp>

#include "locks.hpp"
#include "warnings.hpp"
#include "written_file.hpp"

namespace vt::detail {

namespace timeline {

using Clock = std::chrono::steady_clock;

// Never destroyed: Spans may end while other static objects are destroyed; what comes after the
// file was closed is dropped.
struct File {
  Mutex mutex;
  int descriptor = -1;
  std::string pending;  // not yet written
  pid_t owner = 0;      // a child made by fork has a copy of what is pending, and must not write it
  Clock::time_point start = Clock::now();

  /// A full disk ends the timeline.
  void write() {
    const int wrong = descriptor < 0 ? 0 : write_all(descriptor, pending);
    pending.clear();
    if (wrong == 0) return;
    refuse(wrong);
    ::close(std::exchange(descriptor, -1));
  }
  static void refuse(int wrong) {
    const std::string why = std::strerror(wrong);
    warn_once("VT_TRACE: " + std::string(std::getenv("VT_TRACE")) + " cannot be written: " + why);
  }
};

File* opened() {
  const char* path = std::getenv("VT_TRACE");
  if (!path || !*path) return nullptr;
  static File* file;  // for the function below, which takes no argument
  file = new File;
  file->descriptor = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file->descriptor < 0) {
    File::refuse(errno);
    return nullptr;
  }
  file->owner = ::getpid();
  file->pending =
      "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":" + std::to_string(file->owner) +
      ",\"tid\":0,\"args\":{\"name\":\"vt\"}}";
  file->write();  // now, so that a full disk is told at once
  if (file->descriptor < 0) return nullptr;
  std::atexit([] {
    std::lock_guard lock(file->mutex);
    if (::getpid() != file->owner) return;
    file->pending += "\n]\n";
    file->write();
    if (file->descriptor >= 0) ::close(std::exchange(file->descriptor, -1));
  });
  return file;
}

File* file() {
  static File* const made = opened();
  return made;
}

// Threads are numbered in the order in which they first appear.
int thread_number() {
  static std::atomic<int> next{0};
  thread_local const int number = next.fetch_add(1);
  return number;
}

thread_local Span::Label innermost;

}  // namespace timeline

bool timeline_wanted() {
  static const bool wanted = timeline::file() != nullptr;
  return wanted;
}

Span::Label Span::innermost() { return timeline::innermost; }
Span::Label Span::exchange_innermost(const Label& label) {
  return std::exchange(timeline::innermost, label);
}

void Span::begin(const char* category, std::string_view name, std::string_view details) {
  label_ = {category, name};
  details_ = details;
  outer_ = std::exchange(timeline::innermost, label_);
  since_ = timeline::Clock::now();
}

void Span::end() noexcept try {
  const auto now = timeline::Clock::now();
  timeline::innermost = outer_;
  timeline::File& f = *timeline::file();
  const auto microseconds = [](timeline::Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  const std::string numbers = formatted(
      ",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}", static_cast<int>(f.owner),
      timeline::thread_number(), microseconds(since_ - f.start), microseconds(now - since_));
  std::string line = ",\n{" + json_member("name", label_.name) + "," +
                     json_member("cat", label_.category) + numbers;
  if (!details_.empty()) line.append(",\"args\":{").append(details_).append("}");
  line += "}";
  std::lock_guard lock(f.mutex);
  if (f.descriptor < 0 || f.owner != ::getpid()) return;
  f.pending += line;
  if (f.pending.size() >= 1 << 16) f.write();
} catch (...) {  // no memory for the line: the timeline lacks it, the program goes on
}

std::string json_member(const char* key, std::string_view text) {
  std::string out = "\"" + std::string(key) + "\":\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string json_line(CallSite where) {
  return where.file
             ? json_member("line", std::string(where.file) + ":" + std::to_string(where.line))
             : "";
}

}  // namespace vt::detail
