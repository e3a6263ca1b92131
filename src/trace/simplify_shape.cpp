// Rewrite rules of the ops that rearrange elements: reshape, transpose, broadcast_in_dim, concatenate, pad, rev.
#include "simplify.hpp"

namespace vt::detail::simplification {

Var simplify_shape(Pass& p, const Candidate& c) {
  if (c.op != Op::concatenate && c.op != Op::pad)
    if (const Scalar* s = p.full_value(c.in())) return p.full(*s, c.aval);
  return Pass::none;
}

}  // namespace vt::detail::simplification
