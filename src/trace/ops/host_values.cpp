// Tensors made of C++ values: arrays in memory, numbers in braces.
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/ops.hpp>
#include <vt/tensor.hpp>

#include "../base/convert.hpp"
#include "support/operands.hpp"

namespace vt::detail {

namespace {
void need_integer(const Scalar& number, DType dtype, CallSite where) {
  if (integer_fits(number, dtype, Literal::value)) return;
  fail(ErrorKind::dtype,
       formatted("vt::tensor: {} does not fit {}; conversion by astype wraps", integer_text(number),
                 name_of(dtype)),
       where);
}
}  // namespace

Tensor from_host(const void* data, DType dtype, const Shape& shape, bool copy, CallSite where) {
  if (!addressable(dtype, shape))
    fail(ErrorKind::shape,
         std::string(copy ? "vt::tensor: " : "vt::borrow: ") + size_fault(dtype, shape), where);
  const std::size_t count = shape.elements();
  if (!copy)
    return made_at(where,
                   from_buffer(borrow_memory(data, count * size_of(dtype)), Aval(dtype, shape)));
  BufferRef buffer = allocate(count * size_of(dtype), "vt::tensor");
  if (count) std::memcpy(buffer->data, data, count * size_of(dtype));
  return made_at(where, from_buffer(std::move(buffer), Aval(dtype, shape)));
}

Tensor from_numbers(const void* data, DType given, const Shape& shape, std::optional<DType> dtype,
                    CallSite where) {
  const Tensor all = from_host(data, given, shape, true, where);
  if (!dtype || *dtype == given) return all;
  const auto* next = static_cast<const std::byte*>(data);
  if (is_int(given) && is_int(*dtype))
    for (std::int64_t i = 0; i < shape.elements(); ++i, next += size_of(given))
      need_integer(load_scalar(given, next), *dtype, where);
  return all.astype(*dtype, where);
}

Tensor from_items(std::span<const BraceItem> items, const Shape& shape, std::optional<DType> dtype,
                  CallSite where) {
  if (any_of(items, [](const BraceItem& i) { return !i.is_number; })) {
    std::vector<Tensor> parts;
    for (const BraceItem& i : items) parts.push_back(i.is_number ? make_weak(i.number) : i.tensor);
    const Tensor all = stack(parts, 0, where);
    Shape whole = shape;
    for (int axis = 1; axis < all.rank(); ++axis) whole.push_back(all.dim(axis));
    return dtype ? all.reshape(whole, where).astype(*dtype, where) : all.reshape(whole, where);
  }
  DType common = items.empty() ? default_dtype() : items.front().number.dtype;
  for (const BraceItem& i : items) common = promote(common, i.number.dtype);
  const Aval aval(dtype.value_or(common), shape);
  if (is_complex(common) && !is_complex(aval.dtype) && !is_bool(aval.dtype))
    fail(ErrorKind::dtype,
         std::string("vt::tensor: complex numbers do not become ") + name_of(aval.dtype), where);
  BufferRef buffer = allocate(items.size() * size_of(aval.dtype), "vt::tensor");
  auto* out = static_cast<std::byte*>(buffer->data);
  for (const BraceItem& i : items) need_integer(i.number, aval.dtype, where);
  for (std::size_t i = 0; i < items.size(); ++i)
    store_scalar(items[i].number.converted(aval.dtype), out + i * size_of(aval.dtype));
  return made_at(where, from_buffer(std::move(buffer), aval));
}

}  // namespace vt::detail
