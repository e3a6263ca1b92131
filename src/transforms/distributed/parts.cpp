// part and gather: a value cut over a mesh, and put together again. Both are functions under
// shard_map, which knows their derivatives.
#include <string>
#include <vector>

#include <vt/detail/message.hpp>
#include <vt/distributed.hpp>
#include <vt/ops.hpp>

#include "../../trace/record/node.hpp"
#include "../../trace/record/scope.hpp"
#include "../../trace/record/thread_state.hpp"
#include "layout.hpp"

namespace vt {

namespace detail::mesh_parts {

/// f of x under shard_map.
Tensor mapped(const char* function, const FlatFunction& f, const Tensor& x,
              const distributed::Mesh& mesh, const Sharding& in, const Sharding& out,
              CallSite where) {
  const auto name = [](std::size_t) { return std::string("the Tensor"); };
  const Vec<Sharding> in_specs{in};
  return shard_map_flat(f, {.mesh = mesh,
                            .function = function,
                            .specs_are_given = false,
                            .arguments = {&x, 1},
                            .in_specs = in_specs,
                            .out_specs = [&](std::size_t) { return Vec<Sharding>{out}; },
                            .argument_name = name,
                            .result_name = name,
                            .where = where})[0];
}

MeshLayout layout_of(const Tensor& x, const distributed::Mesh& mesh, const Sharding& sharding,
                     const MeshLayoutUse& use) {
  if (!x.defined()) use.refuse(ErrorKind::value, "the Tensor is empty");
  if (mesh.axes().empty())
    use.refuse(ErrorKind::value, "the mesh is empty; make one by vt::distributed::mesh(…)");
  for (const ScopeState& scope : thread_state().scopes)
    if (!scope.mesh.empty())
      use.refuse(ErrorKind::transform,
                 formatted("called inside of the function of vt::shard_map{}, where each process "
                           "works on its part; there vt::all_gather and vt::axis_index do it",
                           at(scope.where)));
  return MeshLayout(mesh.axes(), sharding, x.rank(), use);
}

}  // namespace detail::mesh_parts

namespace distributed {

Tensor part(const Tensor& whole, const Mesh& mesh, const Sharding& sharding, CallSite where) {
  using namespace detail::mesh_parts;
  const detail::MeshLayoutUse use{"vt::distributed::part", "the Tensor", where};
  layout_of(whole, mesh, sharding, use).check(whole.shape(), use);
  const auto cut = [&](std::span<const Tensor> leaves) {
    Tensor x = leaves[0];
    for (const Sharding::Cut& c : sharding.cuts()) {
      const std::int64_t size = x.dim(c.dim) / mesh.size(c.axis);
      x = dynamic_slice_in_dim(x, axis_index(c.axis, where).astype(DType::i64) * size, size, c.dim);
    }
    return std::vector{x};
  };
  return mapped(use.function, cut, whole, mesh, replicated, sharding, where);
}

Tensor gather(const Tensor& own, const Mesh& mesh, const Sharding& sharding, CallSite where) {
  using namespace detail::mesh_parts;
  const detail::MeshLayoutUse use{"vt::distributed::gather", "the Tensor", where};
  static_cast<void>(layout_of(own, mesh, sharding, use));
  const auto join = [&](std::span<const Tensor> leaves) {
    Tensor x = leaves[0];
    const std::vector<Sharding::Cut>& cuts = sharding.cuts();
    for (auto c = cuts.rbegin(); c != cuts.rend(); ++c)
      x = all_gather(x, c->axis, {.axis = c->dim, .tiled = true}, where);
    return std::vector{x};
  };
  return mapped(use.function, join, own, mesh, sharding, replicated, where);
}

}  // namespace distributed
}  // namespace vt
