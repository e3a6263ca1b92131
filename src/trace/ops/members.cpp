// The members of Tensor that are functions of vt with x in front, and how a Tensor is gone over.
#include <vt/ops.hpp>

#include "support/operands.hpp"

namespace vt {

Tensor Tensor::astype(DType dtype, CallSite where) const {
  detail::need("astype", *this, where);
  return detail::cast(*this, dtype, where);
}
Tensor Tensor::reshape(const Shape& shape, CallSite where) const {
  return vt::reshape(Operand(*this, where.file, where.line), shape);
}
Tensor Tensor::sum(const ReduceAxes& axes, bool keepdims, CallSite where) const {
  return vt::sum(Operand(*this, where.file, where.line), axes, keepdims);
}
Tensor Tensor::prod(const ReduceAxes& axes, bool keepdims, CallSite where) const {
  return vt::prod(Operand(*this, where.file, where.line), axes, keepdims);
}
Tensor Tensor::mean(const ReduceAxes& axes, bool keepdims, CallSite where) const {
  return vt::mean(Operand(*this, where.file, where.line), axes, keepdims);
}
Tensor Tensor::max(const ReduceAxes& axes, bool keepdims, CallSite where) const {
  return vt::max(Operand(*this, where.file, where.line), axes, keepdims);
}
Tensor Tensor::min(const ReduceAxes& axes, bool keepdims, CallSite where) const {
  return vt::min(Operand(*this, where.file, where.line), axes, keepdims);
}
Tensor Tensor::all(const ReduceAxes& axes, bool keepdims, CallSite where) const {
  return vt::all(Operand(*this, where.file, where.line), axes, keepdims);
}
Tensor Tensor::any(const ReduceAxes& axes, bool keepdims, CallSite where) const {
  return vt::any(Operand(*this, where.file, where.line), axes, keepdims);
}
Tensor Tensor::var(const ReduceAxes& axes, Param<int> ddof, bool keepdims, CallSite where) const {
  return vt::var(Operand(*this, where.file, where.line), axes, ddof, keepdims);
}
Tensor Tensor::std(const ReduceAxes& axes, Param<int> ddof, bool keepdims, CallSite where) const {
  return vt::std(Operand(*this, where.file, where.line), axes, ddof, keepdims);
}
Tensor Tensor::argmax(std::optional<Param<int>> axis, bool keepdims, CallSite where) const {
  return vt::argmax(Operand(*this, where.file, where.line), axis, keepdims);
}
Tensor Tensor::argmin(std::optional<Param<int>> axis, bool keepdims, CallSite where) const {
  return vt::argmin(Operand(*this, where.file, where.line), axis, keepdims);
}
Tensor Tensor::sum(const ReduceAxes& axes, const ReduceOptions& options, CallSite where) const {
  return vt::sum(Operand(*this, where.file, where.line), axes, options);
}
Tensor Tensor::prod(const ReduceAxes& axes, const ReduceOptions& options, CallSite where) const {
  return vt::prod(Operand(*this, where.file, where.line), axes, options);
}
Tensor Tensor::max(const ReduceAxes& axes, const ReduceOptions& options, CallSite where) const {
  return vt::max(Operand(*this, where.file, where.line), axes, options);
}
Tensor Tensor::min(const ReduceAxes& axes, const ReduceOptions& options, CallSite where) const {
  return vt::min(Operand(*this, where.file, where.line), axes, options);
}
Tensor Tensor::var(const ReduceAxes& axes, const VarOptions& options, CallSite where) const {
  return vt::var(Operand(*this, where.file, where.line), axes, options);
}
Tensor Tensor::std(const ReduceAxes& axes, const VarOptions& options, CallSite where) const {
  return vt::std(Operand(*this, where.file, where.line), axes, options);
}
Tensor Tensor::argmax(std::optional<Param<int>> axis, const ArgOptions& options,
                      CallSite where) const {
  return vt::argmax(Operand(*this, where.file, where.line), axis, options);
}
Tensor Tensor::argmin(std::optional<Param<int>> axis, const ArgOptions& options,
                      CallSite where) const {
  return vt::argmin(Operand(*this, where.file, where.line), axis, options);
}
Tensor Tensor::abs(CallSite where) const { return vt::abs(Operand(*this, where.file, where.line)); }
Tensor Tensor::real(CallSite where) const {
  return vt::real(Operand(*this, where.file, where.line));
}
Tensor Tensor::imag(CallSite where) const {
  return vt::imag(Operand(*this, where.file, where.line));
}
Tensor Tensor::conj(CallSite where) const {
  return vt::conj(Operand(*this, where.file, where.line));
}
Tensor Tensor::ravel(CallSite where) const {
  return vt::ravel(Operand(*this, where.file, where.line));
}
Tensor Tensor::clip(std::optional<Operand> low, std::optional<Operand> high, CallSite where) const {
  return vt::clip(Operand(*this, where.file, where.line), std::move(low), std::move(high));
}
Tensor Tensor::dot(Operand other) const {
  return vt::dot(Operand(*this, other.where.file, other.where.line), other);
}
Tensor Tensor::squeeze(const ReduceAxes& axes, CallSite where) const {
  return vt::squeeze(Operand(*this, where.file, where.line), axes);
}
Tensor Tensor::transpose(const Axes& permutation, CallSite where) const {
  return vt::transpose(Operand(*this, where.file, where.line), permutation);
}
Tensor Tensor::T(CallSite where) const { return transpose({}, where); }

TensorIterator Tensor::begin(CallSite where) const { return {*this, 0, detail::user_line(where)}; }
TensorIterator Tensor::end(CallSite where) const {
  const CallSite line = detail::user_line(where);
  detail::need("Tensor::begin", *this, line);
  if (rank() == 0)
    detail::refuse(ErrorKind::shape, "Tensor::begin", "a scalar has no axis to go along", *this,
                   line);
  return {*this, dim(0), line};
}
Tensor TensorIterator::operator*() const { return of_[Index(at_, where_.file, where_.line)]; }

}  // namespace vt
