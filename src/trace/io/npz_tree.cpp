// .npz files as trees.
#include <optional>
#include <string>
#include <vector>

#include <vt/detail/npz.hpp>
#include <vt/npy.hpp>

#include "stored_tree.hpp"

namespace vt::detail {

struct NpzTreeWriter::Parts {
  std::vector<NpzEntry> entries;
};
NpzTreeWriter::NpzTreeWriter() : parts_(std::make_unique<Parts>()) {}
NpzTreeWriter::~NpzTreeWriter() = default;
void NpzTreeWriter::add(const std::string& path, const Tensor& value) {
  parts_->entries.push_back({name_of_part(path), value});
}
void NpzTreeWriter::write(const std::string& file, CallSite where) const {
  write_npz(file, parts_->entries, "vt::save_npz", where);
}

struct NpzTreeReader::Parts {
  std::string path;
  CallSite where;
  NpzFile file;
  std::vector<WantedPart> wanted;

  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorKind::io, "vt::load_npz: " + path + ": " + what, where);
  }
};
NpzTreeReader::NpzTreeReader(const std::string& file, CallSite where)
    : parts_(new Parts{file, where, read_npz(file, "vt::load_npz", where), {}}) {}
NpzTreeReader::~NpzTreeReader() = default;

void NpzTreeReader::expect(const std::string& path, const Tensor& like) {
  WantedPart part{name_of_part(path), std::nullopt};
  if (like.defined()) part.form = NpzFile::Form{like.dtype(), like.shape()};
  parts_->wanted.push_back(std::move(part));
}
void NpzTreeReader::expect_number(const std::string& path) {
  parts_->wanted.push_back({name_of_part(path), std::nullopt, true});
}
void NpzTreeReader::expect_bits(const std::string& path, std::size_t count) {
  parts_->wanted.push_back({name_of_part(path), NpzFile::Form{DType::bool_, Shape{count}}});
}

void NpzTreeReader::check() const {
  const NpzFile& file = parts_->file;
  const std::string text =
      tree_difference(parts_->wanted, file.names(), [&](const std::string& name) {
        return file.has(name) ? std::optional(file.form(name)) : std::nullopt;
      });
  if (!text.empty()) parts_->refuse(text);
}

Tensor NpzTreeReader::tensor(const std::string& path) const {
  return parts_->file.read(name_of_part(path));
}

Tensor NpzTreeReader::number(const std::string& path, DType dtype) const {
  const std::string name = name_of_part(path);
  return stored_number(parts_->file.read(name), dtype, "vt::load_npz", parts_->where,
                       [&](const std::string& wrong) { parts_->refuse(name + " is " + wrong); });
}

}  // namespace vt::detail
