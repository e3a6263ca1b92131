// .npz files as trees: does a file hold what a tree wants?
#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <vt/detail/npz.hpp>
#include <vt/npy.hpp>

#include "../base/convert.hpp"
#include "../record/literals.hpp"

namespace vt::detail {

namespace npz_tree {

struct Part {
  std::string name;
  std::optional<NpzFile::Form> form;  ///< nothing: any
  bool is_number = false;
};

/// The name of the array for the part at a path: without the point or the brackets around the first
/// name, so that a map of Tensors has its keys as names. NumPy's name for one without a path.
std::string name_of_part(const std::string& path) {
  if (path.empty()) return "arr_0";
  if (path[0] == '.') return path.substr(1);
  const std::size_t end = path.starts_with("[\"") ? path.find('"', 2) : std::string::npos;
  const bool is_plain = end > 2 && end != std::string::npos && path.substr(end).starts_with("\"]");
  return is_plain ? path.substr(2, end - 2) + path.substr(end + 2) : path;
}
std::string text_of(const NpzFile::Form& form) { return name_of(form.dtype) + form.shape.str(); }

/// How the file differs from what is wanted; nothing, if it does not.
std::string difference(const NpzFile& file, const Part& part) {
  if (!file.has(part.name)) return "there is no " + part.name;
  const NpzFile::Form form = file.form(part.name);
  const bool fits = part.is_number ? form.shape.rank() == 0
                                   : !part.form || (form.dtype == part.form->dtype &&
                                                    form.shape == part.form->shape);
  if (fits) return {};
  return part.name + " is " + text_of(form) + " there and " +
         (part.is_number ? std::string("a number") : text_of(*part.form)) + " here";
}

}  // namespace npz_tree

struct NpzTreeWriter::Parts {
  std::vector<NpzEntry> entries;
};
NpzTreeWriter::NpzTreeWriter() : parts_(std::make_unique<Parts>()) {}
NpzTreeWriter::~NpzTreeWriter() = default;
void NpzTreeWriter::add(const std::string& path, const Tensor& value) {
  parts_->entries.push_back({npz_tree::name_of_part(path), value});
}
void NpzTreeWriter::write(const std::string& file, CallSite where) const {
  write_npz(file, parts_->entries, "vt::save_npz", where);
}

struct NpzTreeReader::Parts {
  std::string path;
  CallSite where;
  NpzFile file;
  std::vector<npz_tree::Part> wanted;

  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorKind::io, "vt::load_npz: " + path + ": " + what, where);
  }
};
NpzTreeReader::NpzTreeReader(const std::string& file, CallSite where)
    : parts_(new Parts{file, where, read_npz(file, "vt::load_npz", where), {}}) {}
NpzTreeReader::~NpzTreeReader() = default;

void NpzTreeReader::expect(const std::string& path, const Tensor& like) {
  npz_tree::Part part{npz_tree::name_of_part(path), std::nullopt};
  if (like.defined()) part.form = NpzFile::Form{like.dtype(), like.shape()};
  parts_->wanted.push_back(std::move(part));
}
void NpzTreeReader::expect_number(const std::string& path) {
  parts_->wanted.push_back({npz_tree::name_of_part(path), std::nullopt, true});
}
void NpzTreeReader::expect_bits(const std::string& path, std::size_t count) {
  parts_->wanted.push_back(
      {npz_tree::name_of_part(path), NpzFile::Form{DType::bool_, Shape{count}}});
}

void NpzTreeReader::check() const {
  constexpr std::size_t most = 8;  // so many are named
  std::vector<std::string> differences;
  std::unordered_set<std::string> names;
  for (const npz_tree::Part& part : parts_->wanted) {
    names.insert(part.name);
    std::string text = npz_tree::difference(parts_->file, part);
    if (!text.empty()) differences.push_back(std::move(text));
  }
  for (const std::string& name : parts_->file.names())
    if (!names.contains(name)) differences.push_back(name + " is not in the tree");
  if (differences.empty()) return;
  std::string text = "it does not hold this tree: ";
  for (std::size_t i = 0; i < std::min(most, differences.size()); ++i)
    text += (i ? "; " : "") + differences[i];
  if (differences.size() > most)
    text += "; and " + std::to_string(differences.size() - most) + " more";
  parts_->refuse(text);
}

Tensor NpzTreeReader::tensor(const std::string& path) const {
  return parts_->file.read(npz_tree::name_of_part(path));
}

Tensor NpzTreeReader::number(const std::string& path, DType dtype) const {
  const std::string name = npz_tree::name_of_part(path);
  const Tensor given = parts_->file.read(name);
  const DType from = given.dtype();
  const auto refuse = [&] {
    parts_->refuse(name + " is " + given.str() + ", which is no " + name_of(dtype));
  };
  // A float is rounded to the nearest one; an integer stays what it is.
  if (is_complex(from) && !is_complex(dtype)) refuse();
  if (!is_inexact(dtype) && is_inexact(from)) refuse();
  if (dtype == DType::bool_ && from != DType::bool_) refuse();
  const Scalar value = load_scalar(from, host_data(given, from, parts_->where, "vt::load_npz"));
  if (is_int(dtype) && !integer_fits(value, dtype, Literal::value)) refuse();
  return given.astype(dtype, parts_->where);
}

}  // namespace vt::detail
