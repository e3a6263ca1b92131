// Where the blocks of a value that is cut over a mesh lie: which process holds which, and the runs
// of elements that two blocks share.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <vt/detail/function.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/distributed.hpp>

namespace vt::detail {

/// Some elements of a value: from where, and how many along each axis.
struct MeshBlock {
  Shape at, extents;
  bool operator==(const MeshBlock&) const = default;
};
/// What both hold; nothing of it where an extent is 0.
MeshBlock common_block(const MeshBlock&, const MeshBlock&);

/// What messages about a sharding name.
struct MeshLayoutUse {
  const char* function;  ///< "vt::distributed::part"
  std::string name;      ///< of the value, "the Tensor" or a path
  CallSite where;
  /// Throws: Error
  [[noreturn]] void refuse(ErrorKind, const std::string& what) const;
};

/// How a value of some rank lies on a mesh.
class MeshLayout {
 public:
  /// Throws: Error (value) for axes that the mesh has not or that come twice, Error (shape) for
  /// axes that the value has not.
  MeshLayout(std::span<const distributed::MeshAxis> mesh, const Sharding&, int rank,
             const MeshLayoutUse&);

  /// How many blocks lie along each axis of the value.
  const Shape& blocks() const { return blocks_; }
  /// The value of which each process holds a block of `own` elements.
  Shape whole(const Shape& own) const;
  /// Throws: Error (shape) unless each axis can be cut in equal blocks.
  void check(const Shape& whole, const MeshLayoutUse&) const;
  MeshBlock block(const Shape& whole, std::int64_t process) const;
  /// Is it the first of those that hold its block?
  bool is_first(std::int64_t process) const;

 private:
  struct Cut {
    int dim;
    std::int64_t size, stride;  ///< processes along the mesh's axis, from one of it to the next
    std::string axis;
  };
  Vec<Cut> cuts_;
  Vec<Cut> others_;  ///< axes of the mesh that do not cut it
  Shape blocks_;
  std::string mesh_;
};

/// The mesh given, or, where none is, one axis of all processes.
/// Throws: Error (value) if it was made for another number of processes.
distributed::Mesh mesh_or_all(const distributed::Mesh&, const MeshLayoutUse&);

/// A block's elements in an array in C order that holds more: its shape, and where the block
/// begins.
struct InsideArray {
  const Shape& shape;
  const Shape& at;
};
/// For each run of elements that lie dense in both arrays, in order: run(from, to, elements), where
/// it begins in each of them.
void for_each_run(const InsideArray& from, const InsideArray& to, const Shape& extents,
                  FunctionRef<void(std::int64_t, std::int64_t, std::int64_t)> run);

}  // namespace vt::detail
