// Variable: a Tensor that changes, shared by all who hold it, inside transformed and compiled
// functions as outside of them.
#pragma once

#include <memory>
#include <string>

#include <vt/tensor.hpp>

namespace vt {

namespace detail {
struct VariableState;
using VariableRef = std::shared_ptr<VariableState>;
}  // namespace detail

/// Copies are the same variable. Its shape and dtype never change.
/// Reads and updates happen in the order of the program. Inside a compiled function the state is
/// one more argument and one more result: the variable is written when the program has run, so that
/// an error leaves the old value.
/// Under vmap and pfor lanes run side by side: all read one value, as it was before; a lane may not
/// assign a value of its own; what lanes add, subtract, multiply, or take the greatest or least of,
/// is combined over the lanes and then applied once (a lane that stays away, as in a vt::cond, adds
/// nothing). A read behind such an update, in the same lanes, is an error: nobody knows the value
/// yet.
/// Derivatives: what is read is a captured Tensor; what was assigned from an argument in the same
/// function depends on it.
class Variable {
 public:
  /// Throws: Error if `initial` is empty or not a value.
  explicit Variable(Operand initial, std::string name = "a variable");

  Tensor read(CallSite where = CallSite::here()) const;
  /// The value now, outside of all functions that are being recorded.
  Tensor value(CallSite where = CallSite::here()) const;

  /// Each takes a value of the variable's shape or one that broadcasts to it, of its dtype (numbers
  /// adopt it). Throws: Error if it does not fit.
  void assign(Operand value) const;
  void assign_add(Operand value) const;
  void assign_sub(Operand value) const;
  void assign_mul(Operand value) const;
  void assign_max(Operand value) const;
  void assign_min(Operand value) const;

  const std::string& name() const&;
  std::string name() && { return static_cast<const Variable&>(*this).name(); }
  const Shape& shape() const&;
  Shape shape() && { return static_cast<const Variable&>(*this).shape(); }
  DType dtype() const;

 private:
  detail::VariableRef state_;
};

}  // namespace vt
