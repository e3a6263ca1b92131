// SortSpec: a sort in the form that kernels take: rows in memory, and which part of the order is
// wanted.
#include "sort_spec.hpp"

#include "fuse.hpp"

namespace vt::detail {

SortSpec sort_spec(const Fusion& fusion, const Equation& e) {
  const GraphBody& g = fusion.graph;
  const SortParams& p = e.as<SortParams>();
  const Shape& shape = g.aval(e.inputs[0]).shape;
  SortSpec s;
  for (int a = 0; a < shape.rank(); ++a) {
    const std::int64_t extent = shape[a];
    if (a == p.axis) s.length = extent;
    else (a < p.axis ? s.outer : s.inner) *= extent;
  }
  s.start = p.start;
  s.limit = p.limit;
  s.keys = p.keys;
  s.descending = p.descending;
  for (Var v : e.inputs) {
    s.dtypes.push_back(g.aval(v).dtype);
    s.is_place.push_back(is_sorted_place(g, e, fusion.maker[v]));
  }
  return s;
}

}  // namespace vt::detail
