// Meshes, and what a program asks about its processes.
#include <limits>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/distributed.hpp>

#include "world.hpp"

namespace vt {

namespace detail::meshes {

[[noreturn]] void unknown_axis(const distributed::Mesh& mesh, const std::string& axis,
                               CallSite where) {
  fail(ErrorKind::value,
       formatted("vt::distributed::Mesh: no axis is named \"{}\" in {}", axis, mesh.str()), where);
}

/// Index of the axis, and processes from one of it to the next.
struct Place {
  std::int64_t size, stride;
};
Place place_of(const distributed::Mesh& mesh, const std::string& axis, CallSite where) {
  std::int64_t stride = 1;
  for (std::size_t k = mesh.axes().size(); k-- > 0;) {
    if (mesh.axes()[k].name == axis) return {mesh.axes()[k].size, stride};
    stride *= mesh.axes()[k].size;
  }
  unknown_axis(mesh, axis, where);
}

}  // namespace detail::meshes

namespace distributed {

std::int64_t Mesh::size() const {
  std::int64_t n = 1;
  for (const MeshAxis& a : axes_) n *= a.size;
  return n;
}
std::int64_t Mesh::size(const std::string& axis, CallSite where) const {
  return detail::meshes::place_of(*this, axis, where).size;
}
std::int64_t Mesh::index(const std::string& axis, CallSite where) const {
  const detail::meshes::Place place = detail::meshes::place_of(*this, axis, where);
  return rank() / place.stride % place.size;
}
std::string Mesh::str() const {
  std::string s = "{";
  for (const MeshAxis& a : axes_)
    s += (s.size() > 1 ? ", " : "") + a.name + ": " + std::to_string(std::int64_t{a.size});
  return s + "}";
}

Mesh mesh(std::vector<MeshAxis> axes, CallSite where) {
  const auto refuse = [&](const std::string& what) {
    detail::fail(ErrorKind::value, "vt::distributed::mesh: " + what, where);
  };
  if (axes.empty()) refuse("no axis is given");
  if (axes.size() > 16) refuse(detail::formatted("{} axes; there may be 16", axes.size()));
  const std::int64_t processes = size();
  std::int64_t known = 1;
  MeshAxis* open = nullptr;
  for (MeshAxis& a : axes) {
    if (a.name.empty()) refuse("an axis has no name");
    for (const MeshAxis& b : axes)
      if (&a != &b && a.name == b.name)
        refuse(detail::formatted("axis \"{}\" comes twice", a.name));
    if (a.size == -1) {
      if (open) refuse("the size of two axes is −1");
      open = &a;
      continue;
    }
    if (a.size < 1)
      refuse(detail::formatted("axis \"{}\" has {} processes", a.name, std::int64_t{a.size}));
    if (a.size > std::numeric_limits<int>::max() / known)
      refuse(detail::formatted("axis \"{}\" has {} processes, and there are {}", a.name,
                               std::int64_t{a.size}, processes));
    known *= a.size;
  }
  if (open && processes % known != 0)
    refuse(
        detail::formatted("{} processes cannot be laid out in rows of {}, which the axes but "
                          "\"{}\" make; start the program by mpirun -n {}",
                          processes, known, open->name, known));
  if (open) open->size = processes / known;
  const Mesh made(std::move(axes));
  if (made.size() != processes)
    refuse(
        detail::formatted("the mesh {} is for {} {}, and {}; start the program by mpirun -n {}, "
                          "or give the mesh as many as there are",
                          made.str(), made.size(), made.size() == 1 ? "process" : "processes",
                          processes == 1 ? std::string("this program was started alone")
                                         : detail::formatted("there are {}", processes),
                          made.size()));
  return made;
}

int rank() { return detail::World::current().rank(); }
int size() { return detail::World::current().size(); }
void barrier(CallSite where) {
  const auto text = [] { return std::string("vt::distributed::barrier"); };
  detail::World::current().barrier({text, where});
}

}  // namespace distributed

namespace detail {

void simulate_ranks(int ranks, const Function<void()>& program, double deadline, CallSite where) {
  if (ranks < 1)
    fail(ErrorKind::value, formatted("vt::distributed::simulate: {} ranks", ranks), where);
  run_ranks(ranks, program, deadline, where);
}

}  // namespace detail
}  // namespace vt
