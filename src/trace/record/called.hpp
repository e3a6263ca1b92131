// Called functions: what transforms have made of the body of a call, kept beside it, so that a
// function that is called a hundred times is transformed once.
#pragma once

#include <memory>
#include <span>
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
  ParamsRef params = {};  ///< of calls of it; see prepare_calls
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

/// What `make` gives, or has given before for this body. What captures tracers is not kept.
DerivedRef derive(const CallParams&, const DerivedKey&, FunctionRef<DerivedFunction()> make);
/// Makes what all calls of it share.
void prepare_calls(DerivedFunction&);

/// The results of a call.
class CallResults {
 public:
  CallResults() = default;
  explicit CallResults(Tensor first) : first_(std::move(first)) {}
  std::size_t size() const { return first_.defined() ? node_of(first_)->avals.size() : 0; }
  Tensor operator[](std::size_t i) const { return tensor_of(node_of(first_), static_cast<int>(i)); }
  void add_to(Borrowed& list, std::size_t i) const {
    list.add(node_of(first_), static_cast<int>(i));
  }

 private:
  Tensor first_;  // also where there are no results: it holds the node
};
/// Calls it. The operands must be what its body takes: that is not looked at again.
CallResults emit_call(const DerivedFunction&, std::span<const Tensor> operands, CallSite);

}  // namespace vt::detail
