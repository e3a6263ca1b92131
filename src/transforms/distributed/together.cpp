// Agreement between processes, by gathering texts.
#include "together.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/processes/world.hpp"

namespace vt::detail {

namespace agreement {

inline std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return hash;
}

inline std::string line_at(const std::string& text, std::size_t& at) {
  if (at > text.size()) return {};
  const std::size_t end = std::min(text.find('\n', at), text.size());
  std::string line = text.substr(at, end - at);
  at = end + 1;
  return line;
}

}  // namespace agreement

std::pair<std::string, std::string> first_difference(
    const std::string& a, const std::string& b,
    FunctionRef<std::string(const std::string&)> compared) {
  std::size_t i = 0, j = 0;
  for (;;) {
    const bool a_ends = i >= a.size(), b_ends = j >= b.size();
    std::string x = agreement::line_at(a, i), y = agreement::line_at(b, j);
    if (compared(x) == compared(y) && !a_ends && !b_ends) continue;
    return {a_ends ? "nothing" : x, b_ends ? "nothing" : y};
  }
}

void Together::gather(const void* given, void* got, std::size_t bytes) const {
  World& world = World::current();
  const auto name = [&] { return std::string(function_); };
  world.all_gather({0, 1, world.size(), world.rank()}, given, got, bytes, {name, where_});
}

std::vector<std::string> Together::texts(const std::string& own) const {
  const auto processes = static_cast<std::size_t>(World::current().size());
  Vec<std::uint64_t> sizes(processes);
  const std::uint64_t size = own.size();
  gather(&size, sizes.begin(), sizeof size);
  const std::uint64_t most = *std::max_element(sizes.begin(), sizes.end());
  if (most == 0) return std::vector<std::string>(processes);
  std::string padded = own, all(processes * most, '\0');
  padded.resize(most);
  gather(padded.data(), all.data(), most);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < processes; ++r) texts.push_back(all.substr(r * most, sizes[r]));
  return texts;
}

std::string Together::text_of(int rank, const std::string& own) const {
  World& world = World::current();
  const auto name = [&] { return std::string(function_); };
  const RankGroup everyone = {0, 1, world.size(), world.rank()};
  std::uint64_t size = own.size();
  world.broadcast(everyone, rank, &size, sizeof size, {name, where_});
  std::string text = own;
  text.resize(size);
  world.broadcast(everyone, rank, text.data(), size, {name, where_});
  return text;
}

bool Together::any(bool own) const {
  const auto processes = static_cast<std::size_t>(World::current().size());
  Vec<std::uint8_t> all(processes);
  const std::uint8_t given = own;
  gather(&given, all.begin(), 1);
  return std::any_of(all.begin(), all.end(), [](std::uint8_t b) { return b != 0; });
}

std::optional<RankFailure> Together::agreed(const std::optional<RankFailure>& own) const {
  if (!any(own.has_value())) return std::nullopt;
  const std::vector<std::string> all =
      texts(own ? std::string(1, static_cast<char>(own->kind)) + own->message : std::string());
  if (own) return own;
  std::size_t first = 0;
  while (all[first].empty()) ++first;
  return RankFailure{static_cast<ErrorKind>(all[first][0]),
                     formatted("rank {} failed: {}", first, all[first].substr(1))};
}

std::optional<RankFailure> Together::verdict(FunctionRef<void()> work) const {
  std::optional<RankFailure> failure;
  try {
    work();
  } catch (const Error& e) {
    failure = RankFailure{e.kind(), e.what()};
  } catch (const std::bad_alloc&) {
    failure = RankFailure{ErrorKind::memory, std::string(function_) + ": no memory" + at(where_)};
  } catch (const std::exception& e) {
    failure = RankFailure{ErrorKind::io, std::string(function_) + ": " + e.what() + at(where_)};
  }
  return agreed(failure);
}

void Together::attempt(FunctionRef<void()> work) const {
  if (const auto failure = verdict(work)) throw Error(failure->kind, failure->message);
}

void Together::attempt_first(FunctionRef<void()> work) const {
  attempt([&] {
    if (World::current().rank() == 0) work();
  });
}

void Together::same(const std::string& text, ErrorKind kind, const char* what) const {
  const auto processes = static_cast<std::size_t>(World::current().size());
  Vec<std::uint64_t> hashes(processes);
  const std::uint64_t hash = agreement::hash_of(text);
  gather(&hash, hashes.begin(), sizeof hash);
  const auto other =
      std::find_if(hashes.begin(), hashes.end(), [&](std::uint64_t h) { return h != hashes[0]; });
  if (other == hashes.end()) return;
  const auto rank = static_cast<std::size_t>(other - hashes.begin());
  const std::vector<std::string> all = texts(text);
  const auto whole = [](const std::string& line) { return line; };
  const auto [first, second] = first_difference(all[0], all[rank], whole);
  fail(kind,
       formatted("{}: {} differ between processes: on rank 0 {}, on rank {} {}", function_, what,
                 first, rank, second),
       where_);
}

}  // namespace vt::detail
