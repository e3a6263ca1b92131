// The manifest of a checkpoint: what it holds, and in which files it lies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vt/detail/small_vec.hpp>
#include <vt/distributed.hpp>

#include "../../trace/io/input_file.hpp"

namespace vt::detail {

/// A text of lines, the last of which is the checksum of the others:
///
///     vt checkpoint, version 1
///     step 12
///     files 5f3a09c2d17b44e0
///     mesh "data" 2
///     leaf "layers[0].weights" f32 4 3 cuts "data" 0
///     part 0 0 24 1a2b3c4d
///     part 1 0 24 90d1a604
///     end 7d20c9f1
struct Manifest {
  static constexpr int version = 1;

  /// Where one block of a leaf lies: in which process's file, from which byte on.
  struct Part {
    std::int64_t process = 0;
    std::uint64_t offset = 0, bytes = 0;
    std::uint32_t crc = 0;
  };
  struct Leaf {
    std::string name;
    DType dtype = DType::f32;
    Shape shape;  ///< of the whole
    Sharding sharding;
    Vec<Part> parts;
  };
  std::int64_t step = 0;
  std::string id;  ///< what the names of the files have in common
  std::vector<distributed::MeshAxis> mesh;
  std::vector<Leaf> leaves;

  std::string text() const;
  /// Throws: Error(io)
  static Manifest read(std::string_view text, const FileUse&);
};

/// The names in a checkpoint's folder.
constexpr std::string_view manifest_name = "checkpoint.txt";
std::string part_name(const std::string& id, std::int64_t process);
/// Of the manifest before it takes the last one's place.
std::string new_manifest_name(const std::string& id);
/// Of such a file its id, of all others "".
std::string id_of_name(const std::string& name);

}  // namespace vt::detail
