// What the functions on order share: sorting several Tensors together,
// and counts that decide a shape.
#pragma once

#include <vector>

#include "operands.hpp"

namespace vt::detail::ordering {

/// The operands, of one shape, sorted together; see SortParams.
std::vector<Tensor> sorted(TensorSpan operands, SortParams, CallSite);
/// 0, 1, … along `axis`: the place of each element.
Tensor places(const Shape& shape, int axis, CallSite);
/// The number that a result's shape depends on. Throws where values are not known: `example` is the
/// code that says how a size is given instead.
std::int64_t known_count(std::string_view name, std::string_view example, const Tensor& count,
                         CallSite);

}  // namespace vt::detail::ordering
