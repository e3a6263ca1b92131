// Which part of a function's signature keeps changing.
#include "signature_changes.hpp"

#include <algorithm>

#include <vt/detail/message.hpp>

#include "../base/warnings.hpp"
#include "scope.hpp"

namespace vt::detail {

bool SignatureChanges::another(const std::string& part, const std::string& value) {
  Vec<std::size_t>& known = values_[part];
  const std::size_t hash = key_hash(value);
  if (std::find(known.begin(), known.end(), hash) == known.end()) known.push_back(hash);
  return known.size() >= many;
}

void SignatureChanges::add(std::string_view function, std::string_view each,
                           std::span<const Tensor> arguments, const StaticKey& key,
                           CallSite where) {
  if (log_) return;
  NamedParts parts;
  if (key.describe && key.arguments) key.describe(key.arguments, parts);
  const auto tell = [&](const std::string& what) {
    log_ = true;
    values_.clear();
    warn_once(what + at(where));
  };
  for (const auto& [name, value] : parts.fixed)
    if (another(name, value))
      return tell(formatted(
          "{}: {} has had {} different values; it is static (a number, text or size that is "
          "no Tensor), so each {}. Where it "
          "changes from call to call pass a Tensor, or a bare number for a parameter of "
          "type Tensor",
          function, name, many, each));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Shape& shape = aval_of(arguments[i]).shape;
    const std::string name =
        i < parts.leaves.size() ? parts.leaves[i] : formatted("argument {}", i);
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (another(formatted("axis {} of {}", axis, name), std::to_string(shape[axis])))
        return tell(formatted(
            "{}: axis {} of {} has had {} different lengths, and each {}. Pad it to one of "
            "a few lengths",
            function, axis, name, many, each));
  }
}

}  // namespace vt::detail
