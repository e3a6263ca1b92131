// Functions of floats composed of others: computed in f64 whatever their operands are, and rounded
// once.
#pragma once

#include "elementwise.hpp"

namespace vt::detail::elementwise {

/// Brings a composed function's operands to f64; called with its result, brings that to the
/// operands' common dtype.
class Composed {
 public:
  Composed(std::string_view name, Operand& x) : line_(x.where), where_(x.where) {
    need(name, x.tensor, x.where);
    const Aval& a = aval_of(x.tensor);
    const Common c = adjusted(Takes::floats, {a.dtype, a.weak}, name,
                              std::span<const Tensor>(&x.tensor, 1), x.where);
    enter(cast(x.tensor, c.dtype, c.weak, x.where), x);
  }
  Composed(std::string_view name, Operand& x, Operand& y) : line_(x.where), where_(x.where) {
    meet(name, Takes::floats, x, y);
    enter(x.tensor, x);
    y.tensor = cast(y.tensor, f64, aval_of(y.tensor).weak, where_);
  }
  Composed(std::string_view name, Operand& x, Operand& y, Operand& z)
      : line_(x.where), where_(x.where) {
    // Two meetings give the first its final dtype; the other two follow it.
    meet(name, Takes::floats, x, y);
    meet(name, Takes::floats, x, z);
    enter(x.tensor, x);
    y.tensor = cast(y.tensor, f64, aval_of(y.tensor).weak, where_);
    z.tensor = cast(z.tensor, f64, aval_of(z.tensor).weak, where_);
  }
  Tensor operator()(Tensor result) const {
    // before it moves: clang evaluates from the left
    const bool weak = weak_ && aval_of(result).weak;
    return cast(std::move(result), own_, weak, where_);
  }

 private:
  void enter(Tensor t, Operand& x) {
    own_ = t.dtype();
    weak_ = aval_of(t).weak;
    x.tensor = cast(std::move(t), f64, weak_, where_);
  }
  UserLine line_;
  CallSite where_;
  DType own_ = f64;
  bool weak_ = false;
};

}  // namespace vt::detail::elementwise
