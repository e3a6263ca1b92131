// Index Tensors in the form that gather and scatter take.
#pragma once

#include "operands.hpp"

namespace vt::detail {

/// An integer Tensor as i32 or i64, the values kept (those beyond every axis stay so). Refuses
/// bools and floats.
Tensor index_dtype(std::string_view name, const Tensor& index, std::int64_t extent, CallSite where);
/// The same with negative indices counted from the end of an axis of `extent`; −extent − 1 and
/// below stay negative.
Tensor wrapped_index(std::string_view name, const Tensor& index, std::int64_t extent,
                     CallSite where);

}  // namespace vt::detail
