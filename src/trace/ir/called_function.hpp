// CalledFunction: the function of a call equation, with what transforms have made of it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "../base/locks.hpp"
#include "params.hpp"

namespace vt::detail {

struct DerivedFunction;

/// What a transform was asked for, as a key: "jvp" and flags.
class DerivedKey {
 public:
  explicit DerivedKey(const char* transform) : transform_(transform) {}
  DerivedKey& add(std::int64_t value) {
    words_.push_back(static_cast<std::uint64_t>(value));
    return *this;
  }
  template <class List>
  DerivedKey& add_all(const List& flags) {
    words_.push_back(flags.size());
    for (std::size_t i = 0; i < flags.size(); ++i) {
      if (i % 64 == 0) words_.push_back(0);
      words_.back() |= std::uint64_t{flags[i]} << i % 64;
    }
    return *this;
  }
  std::string_view transform() const { return transform_; }
  friend bool operator==(const DerivedKey&, const DerivedKey&) = default;

 private:
  std::string_view transform_;
  SmallVec<std::uint64_t, 8> words_;
};

/// The function that a call names. One object for all calls of one body.
struct CalledFunction {
  std::string name;
  mutable Mutex mutex;
  /// by what was asked for
  mutable Vec<std::pair<DerivedKey, std::shared_ptr<const DerivedFunction>>> derived;
};
inline CalledRef called_function(std::string name) {
  auto f = std::make_shared<CalledFunction>();
  f->name = std::move(name);
  return f;
}

}  // namespace vt::detail
