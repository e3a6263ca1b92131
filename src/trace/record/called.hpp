// Called functions: what transforms have made of the body of a call, kept beside it, so that a
// function that is called a hundred times is transformed once.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../ir/called_function.hpp"
#include "node.hpp"
#include "scope.hpp"

namespace vt::detail {

/// What a transform made of a body: a body again.
struct DerivedFunction {
  GraphRef body;
  std::vector<Tensor> captured;  ///< operands behind the others
  CalledRef function = {};
  /// Per thing that was asked for: the result that it is, −1: none. Of vmap: the axis of each
  /// result. Of the simplifier: per operand, the one of the whole function that it is.
  Vec<int> places = {};
  /// of linearize: per residual, ≥ 0: the result that it is, else operand −1 − i
  Vec<int> sources = {};
  /// of linearize: the derivative, by tangents and residuals
  std::shared_ptr<const DerivedFunction> linear = {};
};
using DerivedRef = std::shared_ptr<const DerivedFunction>;
DerivedFunction derived_of(Recorded&&);

/// What was asked for, as a key: "jvp" and flags.
class DerivedKey {
 public:
  explicit DerivedKey(std::string transform) : transform_(std::move(transform)) {}
  DerivedKey& add(std::int64_t value) {
    flags_ += ':' + std::to_string(value);
    return *this;
  }
  template <class List>
  DerivedKey& add_all(const List& flags) {
    flags_ += ' ';
    for (const auto& flag : flags) flags_ += flag ? '1' : '0';
    return *this;
  }
  DerivedKey& add_defined(std::span<const Tensor> tensors) {
    flags_ += ' ';
    for (const Tensor& t : tensors) flags_ += t.defined() ? '1' : '0';
    return *this;
  }
  const std::string& transform() const { return transform_; }
  std::string str() const { return transform_ + flags_; }

 private:
  std::string transform_, flags_;
};

/// What `make` gives, or has given before for this body. What captures tracers is not kept.
DerivedRef derive(const CallParams&, const DerivedKey&, FunctionRef<DerivedFunction()> make);
/// Calls it.
SmallVec<Tensor, 1> emit_call(const DerivedFunction&, std::vector<Tensor> operands, CallSite);

}  // namespace vt::detail
