// .npz files as trees: does a file hold what a tree wants?
#include <algorithm>
#include <string>
#include <unordered_set>

#include <vt/npy.hpp>

#include "../base/convert.hpp"
#include "../record/literals.hpp"

namespace vt::detail {

std::string npz_name(const std::string& path) {
  return path.empty() ? "arr_0" : path.substr(path[0] == '.' ? 1 : 0);
}

namespace npz_tree {
[[noreturn]] void refuse(const std::string& path, const std::string& what, CallSite where) {
  fail(ErrorKind::io, "vt::load_npz: " + path + ": " + what, where);
}
std::string text_of(const NpzFile::Form& form) { return name_of(form.dtype) + form.shape.str(); }
}  // namespace npz_tree

void check_npz(const NpzFile& file, std::span<const NpzPart> parts, const std::string& path,
               CallSite where) {
  constexpr std::size_t most = 8;  // as many are named
  Vec<std::string> differences;
  std::unordered_set<std::string> wanted;
  for (const NpzPart& part : parts) {
    wanted.insert(part.name);
    if (!file.has(part.name)) {
      differences.push_back("there is no " + part.name);
      continue;
    }
    const NpzFile::Form form = file.form(part.name);
    if (part.form ? form.dtype != part.form->dtype || form.shape != part.form->shape
                  : part.is_number && form.shape.rank() != 0)
      differences.push_back(part.name + " is " + npz_tree::text_of(form) + " there and " +
                            (part.form ? npz_tree::text_of(*part.form) : "a number") + " here");
  }
  for (const std::string& name : file.names())
    if (!wanted.contains(name)) differences.push_back(name + " is not in the tree");
  if (differences.empty()) return;
  std::string text = "it does not hold this tree: ";
  for (std::size_t i = 0; i < std::min(most, differences.size()); ++i)
    text += (i ? "; " : "") + differences[i];
  if (differences.size() > most)
    text += "; and " + std::to_string(differences.size() - most) + " more";
  npz_tree::refuse(path, text, where);
}

Tensor npz_number(const NpzFile& file, const std::string& name, DType dtype,
                  const std::string& path, CallSite where) {
  const Tensor given = file.read(name);
  const DType from = given.dtype();
  const auto refuse = [&] {
    npz_tree::refuse(path, name + " is " + given.str() + ", which is no " + name_of(dtype), where);
  };
  // A float is rounded to the nearest one; an integer stays what it is.
  if (is_complex(from) && !is_complex(dtype)) refuse();
  if (!is_inexact(dtype) && is_inexact(from)) refuse();
  if (dtype == DType::bool_ && from != DType::bool_) refuse();
  const Scalar value = load_scalar(from, host_data(given, from, where, "vt::load_npz"));
  if (is_int(dtype) && !integer_fits(value, dtype, Literal::value)) refuse();
  return given.astype(dtype, where);
}

}  // namespace vt::detail
