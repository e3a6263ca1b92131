// Finds the part of a function's signature that keeps changing from call to call, for which it is
// recorded and compiled again each time.
#pragma once

#include <span>
#include <string>

#include <vt/detail/entry_points.hpp>

#include "../base/hash_map.hpp"

namespace vt::detail {

/// Of one function. Notices the part that has other values in many calls, and warns of it once.
class SignatureChanges {
 public:
  /// A signature for which the function is recorded. `function`: "vt::jit", or what else messages
  /// begin with; `each`: what every new value costs. The caller locks.
  void add(std::string_view function, std::string_view each, std::span<const Tensor> arguments,
           const StaticKey& key, CallSite where);

 private:
  static constexpr std::size_t many = 32;
  /// Have there been so many values of this part?
  bool another(const std::string& part, const std::string& value);

  HashMap<std::string, Vec<std::size_t>> values_;  ///< their hashes
  bool log_ = false;
};

}  // namespace vt::detail
