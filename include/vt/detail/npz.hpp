// .npz files, flat: one that is open to be read, member by member, and one that is written whole.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <vt/tensor.hpp>

namespace vt::detail {

/// A .npz file that is open. Its directory has been read, its arrays not yet. Errors are Error(io),
/// begin with the function that was named to read_npz, and name the file and the member.
class NpzFile {
 public:
  struct Open;
  explicit NpzFile(std::unique_ptr<const Open>);
  NpzFile(NpzFile&&) noexcept;
  NpzFile& operator=(NpzFile&&) noexcept;
  ~NpzFile();

  /// Of the arrays, without ".npy", in the order of the file; all differ.
  const std::vector<std::string>& names() const;
  bool has(const std::string& name) const;

  struct Form {
    DType dtype;
    Shape shape;
  };
  /// Reads the header of an array, not its data.
  Form form(const std::string& name) const;
  /// Reads an array and nothing else, and compares its CRC-32.
  Tensor read(const std::string& name) const;

 private:
  std::unique_ptr<const Open> open_;
};

/// Opens `path`. `function`: what the user has called, as "vt::load_npz"; a text that stays.
NpzFile read_npz(const std::string& path, const char* function, CallSite where);

struct NpzEntry {
  std::string name;
  Tensor value;
};

/// Writes the values as np.savez does, as vt::save_npy writes a file: whole or not at all. All are
/// computed at once. The data of each begin at a multiple of 64 bytes of the file. Equal entries
/// give equal bytes.
/// Throws: Error(io) for bf16; for names that are empty, twice there, no UTF-8, longer than 65531
/// bytes, or hold a NUL; and where writing fails. Error(value) for empty Tensors, Error(tracer)
/// under a transform.
void write_npz(const std::string& path, std::span<const NpzEntry>, const char* function,
               CallSite where);

}  // namespace vt::detail
