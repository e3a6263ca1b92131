// Which block of a value each process of a mesh holds.
#include "layout.hpp"

#include <algorithm>

#include <vt/detail/message.hpp>

#include "../../trace/ir/aval.hpp"
#include "../../trace/processes/world.hpp"

namespace vt::detail {

MeshBlock common_block(const MeshBlock& a, const MeshBlock& b) {
  MeshBlock both = a;
  for (std::size_t i = 0; i < a.at.size(); ++i) {
    both.at[i] = std::max(a.at[i], b.at[i]);
    const std::int64_t end = std::min(a.at[i] + a.extents[i], b.at[i] + b.extents[i]);
    both.extents[i] = std::max<std::int64_t>(end - both.at[i], 0);
  }
  return both;
}

void MeshLayoutUse::refuse(ErrorKind kind, const std::string& what) const {
  fail(kind, std::string(function) + ": " + what, where);
}

MeshLayout::MeshLayout(std::span<const distributed::MeshAxis> mesh, const Sharding& sharding,
                       int rank, const MeshLayoutUse& use)
    : blocks_(Shape::filled(static_cast<std::size_t>(rank), 1)) {
  Vec<Cut> axes;
  std::int64_t stride = 1;
  for (std::size_t k = mesh.size(); k-- > 0; stride *= mesh[k].size)
    axes.push_back({-1, mesh[k].size, stride, mesh[k].name});
  for (const distributed::MeshAxis& a : mesh)
    mesh_ += (mesh_.empty() ? "{" : ", ") + a.name + ": " + std::to_string(std::int64_t{a.size});
  mesh_ += "}";
  for (const Sharding::Cut& cut : sharding.cuts()) {
    const int dim = cut.dim;
    if (dim < -rank || dim >= rank)
      use.refuse(
          ErrorKind::shape,
          formatted("{} cuts axis {} of {}, which has {} axes{}", sharding.str(), dim, use.name,
                    rank,
                    rank == 0 ? ": a scalar cannot be cut; give it an axis of one element" : ""));
    Cut* const axis =
        std::find_if(axes.begin(), axes.end(), [&](const Cut& a) { return a.axis == cut.axis; });
    if (axis == axes.end())
      use.refuse(ErrorKind::value, formatted("{} of {} names axis \"{}\", and the mesh is {}",
                                             sharding.str(), use.name, cut.axis, mesh_));
    if (axis->dim >= 0)
      use.refuse(ErrorKind::value,
                 formatted("{} cuts {} twice along \"{}\"", sharding.str(), use.name, cut.axis));
    axis->dim = dim < 0 ? dim + rank : dim;
    cuts_.push_back(*axis);
    std::int64_t& blocks = blocks_[static_cast<std::size_t>(axis->dim)];
    blocks = times(blocks, axis->size);
  }
  for (const Cut& axis : axes)
    if (axis.dim < 0) others_.push_back(axis);
}

Shape MeshLayout::whole(const Shape& own) const {
  Shape shape = own;
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = times(shape[i], blocks_[i]);
  return shape;
}

void MeshLayout::check(const Shape& whole, const MeshLayoutUse& use) const {
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] % blocks_[i] == 0) continue;
    std::string names;
    for (const Cut& cut : cuts_)
      if (cut.dim == static_cast<int>(i))
        names += (names.empty() ? "\"" : " and \"") + cut.axis + "\"";
    use.refuse(
        ErrorKind::shape,
        formatted("axis {} of {}, which is {}, has {} elements, and the mesh {} has {} "
                  "processes along {}: they cannot have equal blocks; {} or {} elements "
                  "could be cut",
                  i, use.name, whole.str(), whole[i], mesh_, blocks_[i], names,
                  whole[i] / blocks_[i] * blocks_[i], (whole[i] / blocks_[i] + 1) * blocks_[i]));
  }
}

MeshBlock MeshLayout::block(const Shape& whole, std::int64_t process) const {
  MeshBlock b{Shape::filled(whole.size(), 0), whole};
  for (const Cut& cut : cuts_) {
    const auto dim = static_cast<std::size_t>(cut.dim);
    b.extents[dim] /= cut.size;
    b.at[dim] += process / cut.stride % cut.size * b.extents[dim];
  }
  return b;
}

bool MeshLayout::is_first(std::int64_t process) const {
  return std::all_of(others_.begin(), others_.end(),
                     [&](const Cut& axis) { return process / axis.stride % axis.size == 0; });
}

distributed::Mesh mesh_or_all(const distributed::Mesh& mesh, const MeshLayoutUse& use) {
  if (mesh.axes().empty()) return distributed::mesh({{"processes", -1}}, use.where);
  const std::int64_t processes = World::current().size();
  if (mesh.size() != processes)
    use.refuse(ErrorKind::value, formatted("the mesh {} was made for {} processes, and here are {}",
                                           mesh.str(), mesh.size(), processes));
  return mesh;
}

void for_each_run(const InsideArray& from, const InsideArray& to, const Shape& extents,
                  FunctionRef<void(std::int64_t, std::int64_t, std::int64_t)> run) {
  if (extents.elements() == 0) return;
  // The axes behind `outer` and what is taken of axis `outer` lie dense in both.
  std::size_t outer = extents.size();
  std::int64_t length = 1;
  while (outer > 0) {
    length *= extents[--outer];
    if (extents[outer] != from.shape[outer] || extents[outer] != to.shape[outer]) break;
  }
  const auto place = [](const InsideArray& array, const Shape& index) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < index.size(); ++i)
      at = at * array.shape[i] + array.at[i] + index[i];
    return at;
  };
  Shape index = Shape::filled(extents.size(), 0);
  for (;;) {
    run(place(from, index), place(to, index), length);
    std::size_t axis = outer;
    while (axis > 0 && ++index[axis - 1] == extents[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace vt::detail
