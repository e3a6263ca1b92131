// Messages filled in by fmt, the word that was meant, and copies of texts that outlive their
// source.
#include <vt/detail/message.hpp>

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include <vt/detail/small_vec.hpp>
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

namespace words {

constexpr std::size_t most_changes = 2;

inline bool same_but_for_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto low = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return low(x) == low(y);
  });
}

/// Letters put in, left out or replaced, and neighbours swapped, between a and b.
inline std::size_t changes(std::string_view a, std::string_view b) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > most_changes)
    return most_changes + 1;
  Vec<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

}  // namespace words

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known) {
  for (const std::string_view& k : known)
    if (words::same_but_for_case(word, k)) return k;
  std::string_view nearest;
  std::size_t least = words::most_changes + 1;
  for (const std::string_view& k : known)
    if (const std::size_t n = words::changes(word, k); n < least && 2 * n + 1 < word.size()) {
      nearest = k;
      least = n;
    }
  return nearest;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known,
                         char quote) {
  const std::string_view nearest = nearest_word(word, known);
  return nearest.empty() ? std::string()
                         : formatted(" (did you mean {}{}{}?)", quote, nearest, quote);
}

std::string_view lasting_text(std::string_view text) {
  static Mutex mutex;
  // Its strings stay where they are, also while the process ends.
  static auto& texts = *new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  return *texts.emplace(text).first;
}

}  // namespace vt::detail
