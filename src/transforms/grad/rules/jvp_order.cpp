// jvp rule of sort: tangents are permuted like their elements.
#include "../build.hpp"
#include "../jvp.hpp"

namespace vt::detail::jvp_rules {

// The places of the elements are sorted along with them; each tangent is then read at those places.
void sort(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  using namespace grad_build;
  const auto& p = c.as<SortParams>();
  const Shape& shape = c.x[0].shape();
  SmallVec<Tensor, 4> operands(c.x.begin(), c.x.end());
  operands.push_back(index_along(index_type(shape[p.axis]), shape, p.axis));
  const SmallVec<Tensor, 1> sorted = emit_all(
      Op::sort, c.equation.params, std::span<const Tensor>(operands.data(), operands.size()), {});
  results.assign(sorted.begin(), sorted.end() - 1);
  for (std::size_t i = 0; i < c.t.size(); ++i)
    if (c.has(i)) tangents[i] = read_along(c.t[i], sorted.back(), p.axis);
}

}  // namespace vt::detail::jvp_rules
