// What processes that do something together agree on: whether one of them failed, and that all have
// the same.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vt/detail/function.hpp>
#include <vt/error.hpp>

namespace vt::detail {

/// The first lines in which two texts differ, or "nothing" behind the last one. `compared`: what
/// counts of a line.
std::pair<std::string, std::string> first_difference(
    const std::string& a, const std::string& b,
    FunctionRef<std::string(const std::string&)> compared);

/// An error of one process.
struct RankFailure {
  ErrorKind kind;
  std::string message;
};

/// A function that all processes call. Each member is a collective.
class Together {
 public:
  /// `function`: that the user has called, "vt::distributed::save".
  Together(const char* function, CallSite where) : function_(function), where_(where) {}

  /// Runs `work`, which communicates with nobody. If it fails on one process, all throw: who failed
  /// what it threw, the others the same with the rank of the first one that did.
  void attempt(FunctionRef<void()> work) const;
  /// The same, but gives what all would throw; the same on all or nothing.
  std::optional<RankFailure> verdict(FunctionRef<void()> work) const;
  /// attempt, for what runs on rank 0 alone.
  void attempt_first(FunctionRef<void()> work) const;
  /// The texts of all processes, by rank.
  std::vector<std::string> texts(const std::string& own) const;
  /// That of one rank.
  std::string text_of(int rank, const std::string& own) const;
  /// Does it hold on one of them?
  bool any(bool own) const;
  /// All throw, of this kind, unless all give the same text. `what` is what differs, "the steps";
  /// its first lines that differ are shown.
  void same(const std::string& text, ErrorKind, const char* what) const;
  /// `got`: the `bytes` of each process, by rank.
  void gather(const void* given, void* got, std::size_t bytes) const;

 private:
  std::optional<RankFailure> agreed(const std::optional<RankFailure>& own) const;

  const char* function_;
  CallSite where_;
};

}  // namespace vt::detail
