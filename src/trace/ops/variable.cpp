// vt::Variable: its entry points, and conversion of values to its dtype and shape.
#include <memory>
#include <mutex>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/ops.hpp>
#include <vt/variable.hpp>

#include "../record/state.hpp"
#include "support/operands.hpp"

namespace vt::detail {

namespace variables {

/// A value as the variable takes it.
void update(const VariableRef& variable, Update kind, const char* function, const Operand& given) {
  const CallSite where = user_line(given.where);
  const std::string name = formatted("Variable::{}", function);
  need(name, given.tensor, where);
  const Aval& wanted = variable->aval;
  Tensor value = given.tensor;
  const Aval a = aval_of(value);
  if (a.dtype != wanted.dtype) {
    if (!a.weak || category(a.dtype) > category(wanted.dtype))
      refuse(ErrorKind::dtype, name,
             formatted("{} is {}, and the value does not fit", variable->name, wanted.str()), value,
             where);
    check_literals(name, {&value, 1}, wanted.dtype, Literal::value, where);
    value = cast(value, wanted.dtype, where);
  } else if (a.weak) {
    value = cast(value, wanted.dtype, where);
  }
  if (value.shape() != wanted.shape) {
    const Shape &own = value.shape(), &whole = wanted.shape;
    bool fits = own.size() <= whole.size();
    for (std::size_t i = 0; fits && i < own.size(); ++i) {
      const std::int64_t extent = own[own.size() - 1 - i];
      fits = extent == 1 || extent == whole[whole.size() - 1 - i];
    }
    if (!fits)
      refuse(ErrorKind::shape, name,
             formatted("{} is {}, and the value does not fit", variable->name, wanted.str()), value,
             where);
    value = vt::broadcast_to({value, where.file, where.line}, wanted.shape);
  }
  update_state({variable, kind, value, where});
}

}  // namespace variables
}  // namespace vt::detail

namespace vt {

Variable::Variable(Operand initial, std::string name)
    : state_(std::make_shared<detail::VariableState>()) {
  const CallSite where = detail::user_line(initial.where);
  detail::need("Variable", initial.tensor, where);
  state_->name = std::move(name);
  const detail::Aval a = detail::aval_of(initial.tensor);
  state_->aval = detail::Aval(a.dtype, a.shape);
  state_->value =
      detail::from_buffer(detail::value_of(initial.tensor, where, "vt::Variable"), state_->aval);
}

Tensor Variable::read(CallSite where) const {
  return detail::read_state(state_, detail::user_line(where));
}
Tensor Variable::value(CallSite) const {
  std::lock_guard lock(state_->mutex);
  return state_->value;
}

void Variable::assign(Operand value) const {
  detail::variables::update(state_, detail::Update::assign, "assign", value);
}
void Variable::assign_add(Operand value) const {
  detail::variables::update(state_, detail::Update::add, "assign_add", value);
}
void Variable::assign_sub(Operand value) const {
  const CallSite where = detail::user_line(value.where);
  detail::need("Variable::assign_sub", value.tensor, where);
  detail::variables::update(
      state_, detail::Update::add, "assign_sub",
      {-Operand(value.tensor, where.file, where.line), where.file, where.line});
}
void Variable::assign_mul(Operand value) const {
  detail::variables::update(state_, detail::Update::mul, "assign_mul", value);
}
void Variable::assign_max(Operand value) const {
  detail::variables::update(state_, detail::Update::max, "assign_max", value);
}
void Variable::assign_min(Operand value) const {
  detail::variables::update(state_, detail::Update::min, "assign_min", value);
}

const std::string& Variable::name() const& { return state_->name; }
const Shape& Variable::shape() const& { return state_->aval.shape; }
DType Variable::dtype() const { return state_->aval.dtype; }

}  // namespace vt
