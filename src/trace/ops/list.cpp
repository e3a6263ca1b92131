// TensorList: a buffer of elements and a count, with checks of indices.
#include <vt/tensor_list.hpp>

#include <string>

#include <vt/detail/message.hpp>
#include <vt/effects.hpp>
#include <vt/ops.hpp>

#include "support/operands.hpp"

namespace vt {

namespace detail::list_ops {

Operand of(const Tensor& t, CallSite where) { return {t, where.file, where.line}; }

Tensor number(std::int64_t n) {
  return full_tensor(Scalar(n).converted(DType::i32), Aval(DType::i32, Shape{}));
}

/// What is put into the list, as it must be: [leading…, shape of an element…].
Tensor fitting(const TensorList& list, const char* function, const Operand& x, const Shape& leading,
               CallSite where) {
  const std::string name = formatted("TensorList::{}", function);
  need(name, x.tensor, where);
  const DType dtype = list.elements.dtype();
  const Shape element(std::span<const std::int64_t>(list.elements.shape()).subspan(1));
  Shape wanted = leading;
  wanted.append(element.begin(), element.end());
  Tensor value = x.tensor;
  const Aval a = aval_of(value);
  const std::string must =
      formatted("elements are {}, and the value does not fit", Aval(dtype, element).str());
  if ((a.dtype != dtype || a.weak) && (!a.weak || category(a.dtype) > category(dtype)))
    refuse(ErrorKind::dtype, name, must, value, where);
  check_literals(name, {&value, 1}, dtype, Literal::value, where);
  value = cast(value, dtype, where);
  const Shape own = value.shape();
  bool fits = own.size() <= wanted.size();
  for (std::size_t i = 0; fits && i < own.size(); ++i) {
    const std::int64_t extent = own[own.size() - 1 - i];
    fits = extent == 1 || extent == wanted[wanted.size() - 1 - i];
  }
  if (!fits) refuse(ErrorKind::shape, name, must, value, where);
  return own == wanted ? value : broadcast_to(of(value, where), wanted);
}

Tensor index_of(const char* function, const Operand& i, int rank, CallSite where) {
  const std::string name = formatted("TensorList::{}", function);
  need(name, i.tensor, where);
  if (!is_int(i.tensor.dtype()) || i.tensor.rank() != rank)
    refuse(
        ErrorKind::dtype, name,
        rank == 0 ? "the index must be an integer scalar" : "indices must be integers of one axis",
        i.tensor, where);
  return i.tensor.astype(i32, where);
}

void need_range(const TensorList& list, const char* function, const Tensor& index,
                const Tensor& limit, CallSite where) {
  if (!list.checked) return;
  const Tensor inside = (of(index, where) >= 0) & (of(index, where) < of(limit, where));
  check(of(inside, where),
        formatted("vt::TensorList::{}: index {{}} is not one of {{}} elements", function), index,
        limit);
}

/// The count once there is something at `index`.
Tensor reaching(const TensorList& list, const Tensor& index, CallSite where) {
  return maximum(of(list.count, where), of(max(of(index, where)) + 1, where));
}

}  // namespace detail::list_ops

TensorList TensorList::fixed(Param<std::int64_t> capacity, const Shape& element, DType dtype,
                             CallSite where) {
  if (capacity < 0)
    detail::fail(ErrorKind::value,
                 detail::formatted("vt::TensorList: the capacity is {}", capacity),
                 detail::user_line(where));
  Shape shape{capacity};
  shape.append(element.begin(), element.end());
  return {zeros(shape, dtype, where), detail::list_ops::number(0)};
}

TensorList TensorList::growable(const Shape& element, DType dtype, CallSite where) {
  TensorList list = fixed(0, element, dtype, where);
  list.growing = true;
  return list;
}

TensorList TensorList::from(Operand values) {
  const CallSite where = detail::user_line(values.where);
  detail::need("TensorList::from", values.tensor, where);
  if (values.tensor.rank() == 0)
    detail::refuse(ErrorKind::shape, "TensorList::from", "a scalar has no elements", values.tensor,
                   where);
  return {values.tensor, detail::list_ops::number(values.tensor.dim(0))};
}

void TensorList::push(Operand x) {
  using namespace detail::list_ops;
  const CallSite where = detail::user_line(x.where);
  const detail::UserLine line(where);
  const Tensor one = fitting(*this, "push", x, Shape{1}, where);
  if (growing) {
    elements = concatenate({elements, one}, 0, where);
    count = number(elements.dim(0));
    return;
  }
  if (checked)
    check(of(count, where) < capacity(),
          "vt::TensorList::push: the list is full, it has {} elements", count);
  if (capacity() > 0)
    elements =
        dynamic_update_slice_in_dim(of(elements, where), of(one, where), of(count, where), 0);
  count = of(count, where) + 1;
}

Tensor TensorList::pop(CallSite at) {
  using namespace detail::list_ops;
  const CallSite where = detail::user_line(at);
  const detail::UserLine line(where);
  if (checked) check(of(count, where) > 0, "vt::TensorList::pop: the list is empty");
  Shape element = elements.shape();
  element.erase(element.begin());
  if (capacity() == 0) return zeros(element, elements.dtype(), where);
  const Tensor last = of(count, where) - 1;
  const Tensor taken =
      reshape(of(dynamic_slice_in_dim(of(elements, where), of(last, where), 1, 0), where), element);
  if (growing) {
    elements = elements[slice(0, capacity() - 1)];
    count = number(elements.dim(0));
  } else {
    Shape place = elements.shape();
    place[0] = 1;
    elements = dynamic_update_slice_in_dim(
        of(elements, where), of(zeros(place, elements.dtype(), where), where), of(last, where), 0);
    count = last;
  }
  return taken;
}

Tensor TensorList::read(Operand i) const {
  using namespace detail::list_ops;
  const CallSite where = detail::user_line(i.where);
  const detail::UserLine line(where);
  const Tensor index = index_of("read", i, 0, where);
  need_range(*this, "read", index, count, where);
  Shape element = elements.shape();
  element.erase(element.begin());
  if (capacity() == 0) return zeros(element, elements.dtype(), where);
  return reshape(of(dynamic_slice_in_dim(of(elements, where), of(index, where), 1, 0), where),
                 element);
}

void TensorList::write(Operand i, Operand x) {
  using namespace detail::list_ops;
  const CallSite where = detail::user_line(i.where);
  const detail::UserLine line(where);
  const Tensor index = index_of("write", i, 0, where),
               one = fitting(*this, "write", x, Shape{1}, where);
  need_range(*this, "write", index, number(capacity()), where);
  if (capacity() == 0) return;
  elements = dynamic_update_slice_in_dim(of(elements, where), of(one, where), of(index, where), 0);
  if (!growing) count = reaching(*this, index, where);
}

Tensor TensorList::gather(Operand indices) const {
  using namespace detail::list_ops;
  const CallSite where = detail::user_line(indices.where);
  const detail::UserLine line(where);
  const Tensor index = index_of("gather", indices, 1, where);
  need_range(*this, "gather", index, count, where);
  if (capacity() == 0) {
    Shape shape = elements.shape();
    shape[0] = index.dim(0);
    return zeros(shape, elements.dtype(), where);
  }
  return take(of(elements, where), of(index, where), 0);
}

void TensorList::scatter(Operand indices, Operand values) {
  using namespace detail::list_ops;
  const CallSite where = detail::user_line(indices.where);
  const detail::UserLine line(where);
  const Tensor index = index_of("scatter", indices, 1, where),
               all = fitting(*this, "scatter", values, Shape{index.dim(0)}, where);
  need_range(*this, "scatter", index, number(capacity()), where);
  if (capacity() == 0 || index.dim(0) == 0) return;
  elements = index_update(of(elements, where), of(index, where), of(all, where));
  if (!growing) count = reaching(*this, index, where);
}

Tensor TensorList::concat(CallSite at) const {
  const CallSite where = detail::user_line(at);
  if (elements.rank() < 2)
    detail::refuse(ErrorKind::shape, "TensorList::concat",
                   "elements without an axis cannot be put one behind the other", elements, where);
  Shape shape = elements.shape();
  shape[1] *= shape[0];
  shape.erase(shape.begin());
  return reshape(detail::list_ops::of(elements, where), shape);
}

}  // namespace vt
