// Messages filled in by fmt, and copies of texts that outlive their source.
#include <vt/detail/message.hpp>

#include <mutex>
#include <unordered_set>

#include <vt/fmt.hpp>
#include <vt/tree.hpp>

#include <fmt/args.h>

#include "locks.hpp"

namespace vt::detail {

std::string formatted(std::string_view pattern, std::initializer_list<MessagePart> parts) {
  fmt::dynamic_format_arg_store<fmt::format_context> arguments;
  for (const MessagePart& part : parts) switch (part.kind) {
      case MessagePart::Kind::text:
        arguments.push_back(fmt::string_view(part.text.data(), part.text.size()));
        break;
      case MessagePart::Kind::letter: arguments.push_back(part.letter); break;
      case MessagePart::Kind::truth: arguments.push_back(part.truth); break;
      case MessagePart::Kind::f32: arguments.push_back(part.f32); break;
      case MessagePart::Kind::f64: arguments.push_back(part.f64); break;
      case MessagePart::Kind::i64: arguments.push_back(part.i64); break;
      case MessagePart::Kind::u64: arguments.push_back(part.u64); break;
    }
  return fmt::vformat(fmt::string_view(pattern.data(), pattern.size()), arguments);
}

std::string_view lasting_text(std::string_view text) {
  static Mutex mutex;
  // Its strings stay where they are, also while the process ends.
  static auto& texts = *new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  return *texts.emplace(text).first;
}

}  // namespace vt::detail
