// Index Tensors in the form that gather and scatter take.
#pragma once

#include <utility>

#include "operands.hpp"

namespace vt::detail {

/// An integer Tensor as i32 or i64, the values kept (those beyond every axis stay so). Refuses
/// bools and floats.
Tensor index_dtype(std::string_view name, const Tensor& index, std::int64_t extent, CallSite where);
/// The same with negative indices counted from the end of an axis of `extent`; −extent − 1 and
/// below stay negative.
Tensor wrapped_index(std::string_view name, const Tensor& index, std::int64_t extent,
                     CallSite where);
/// A new last axis of extent 1, along which index vectors lie.
Tensor with_index_axis(const Tensor& index, CallSite where);
/// Python's start:stop:step on an axis of `n`, as (first, count). Refuses a step of 0.
std::pair<std::int64_t, std::int64_t> resolved(std::string_view name, const Slice& s,
                                               std::int64_t n, const Tensor& x, CallSite where);
/// Throws if something would have to be read from an axis without elements.
void need_elements(std::string_view name, const Tensor& x, std::int64_t axis_extent,
                   const Tensor& index, CallSite where);
/// The C++ integer `i` on an axis, counted from its front. Throws: Error(value) out of range.
std::int64_t place_on_axis(std::string_view name, std::int64_t i, int axis, const Tensor& x,
                           CallSite where);
/// Throws if `op` writes the least or the greatest of numbers that have no order.
void need_order(std::string_view name, Op op, const Tensor& x, CallSite where);
/// `values` as updates of x: x's dtype. Throws: Error(dtype) if it does not hold them.
Tensor fitting_values(std::string_view name, const Tensor& x, const Tensor& values, CallSite where);
/// How take_along_axis reads: x and `indices` of one rank, which broadcast along the other axes.
/// Sets the shape that the indices broadcast to.
GatherParams along_axis(std::string_view name, const Tensor& x, const Tensor& indices, int axis,
                        Shape& shape, CallSite where);

}  // namespace vt::detail
