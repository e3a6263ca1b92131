// Interpreter rules of collectives between processes, which compiled programs run as steps of their
// own.
#include <string>

#include "../processes/world.hpp"
#include "interpreter.hpp"

namespace vt::detail::interp_processes {

inline RankGroup group_along(const NamedAxis& axis, int rank) {
  const int stride = static_cast<int>(axis.stride), size = static_cast<int>(axis.size);
  const int own = rank / stride % size;
  return {rank - own * stride, stride, size, own};
}

/// "vt::psum over \"data\" of f64[3]"
inline std::string text_of(const Frame& frame, const NamedAxis& axis) {
  return "vt::" + std::string(name_of(frame.equation.op)) + " over \"" + axis.name + "\" of " +
         frame.in().str();
}

void collective(Frame& frame) {
  const auto& p = frame.params<CollectiveParams>();
  const NamedAxis& axis = *p.axis;
  const Op op = frame.equation.op;
  if (!axis.is_of_mesh())
    fail(ErrorKind::transform,
         "vt::" + std::string(name_of(op)) + ": the lanes of \"" + axis.name +
             "\" are known only inside its vt::vmap; it cannot be run alone",
         frame.equation.where);
  if (op == Op::spread) {
    frame.outputs[0] = frame.inputs[0];
    return;
  }
  World& world = World::current();
  const RankGroup group = group_along(axis, world.rank());
  if (op == Op::axis_index) {
    *frame.make<std::int32_t>() = group.own;
    return;
  }
  const auto text = [&] { return text_of(frame, axis); };
  const CollectiveSite site{text, frame.equation.where};
  const void* given = frame.bytes();
  void* got = frame.make_bytes();
  const std::int64_t elements = frame.in().elements();
  const std::size_t bytes = frame.in().bytes();
  const DType dtype = frame.in().dtype;
  switch (op) {
    case Op::psum: world.all_reduce(group, Combine::sum, dtype, given, got, elements, site); break;
    case Op::pmax: world.all_reduce(group, Combine::max, dtype, given, got, elements, site); break;
    case Op::pmin: world.all_reduce(group, Combine::min, dtype, given, got, elements, site); break;
    case Op::all_gather: world.all_gather(group, given, got, bytes, site); break;
    case Op::all_to_all:
      world.all_to_all(group, given, got, bytes / static_cast<std::size_t>(axis.size), site);
      break;
    default:
      world.permute(group, {p.sources.data(), p.sources.size()}, given, got, bytes, site);
      break;
  }
}

}  // namespace vt::detail::interp_processes
