// Does a file hold what a tree wants?
#include "stored_tree.hpp"

#include <algorithm>
#include <unordered_set>

#include "../base/convert.hpp"
#include "../record/literals.hpp"

namespace vt::detail {

namespace stored_trees {

std::string text_of(const NpzFile::Form& form) { return name_of(form.dtype) + form.shape.str(); }

/// How it differs from what is wanted; nothing, if it does not.
std::string difference(const std::optional<NpzFile::Form>& form, const WantedPart& part) {
  if (!form) return "there is no " + part.name;
  const bool fits = part.is_number ? form->shape.rank() == 0
                                   : !part.form || (form->dtype == part.form->dtype &&
                                                    form->shape == part.form->shape);
  if (fits) return {};
  return part.name + " is " + text_of(*form) + " there and " +
         (part.is_number ? std::string("a number") : text_of(*part.form)) + " here";
}

}  // namespace stored_trees

std::string name_of_part(const std::string& path) {
  if (path.empty()) return "arr_0";
  if (path[0] == '.') return path.substr(1);
  const std::size_t end = path.starts_with("[\"") ? path.find('"', 2) : std::string::npos;
  const bool is_plain = end > 2 && end != std::string::npos && path.substr(end).starts_with("\"]");
  return is_plain ? path.substr(2, end - 2) + path.substr(end + 2) : path;
}

std::string tree_difference(
    const std::vector<WantedPart>& wanted, const std::vector<std::string>& names,
    FunctionRef<std::optional<NpzFile::Form>(const std::string& name)> form_of) {
  constexpr std::size_t most = 8;  // so many are named
  std::vector<std::string> differences;
  std::unordered_set<std::string> wanted_names;
  for (const WantedPart& part : wanted) {
    wanted_names.insert(part.name);
    std::string text = stored_trees::difference(form_of(part.name), part);
    if (!text.empty()) differences.push_back(std::move(text));
  }
  for (const std::string& name : names)
    if (!wanted_names.contains(name)) differences.push_back(name + " is not in the tree");
  if (differences.empty()) return {};
  std::string text = "it does not hold this tree: ";
  for (std::size_t i = 0; i < std::min(most, differences.size()); ++i)
    text += (i ? "; " : "") + differences[i];
  if (differences.size() > most)
    text += "; and " + std::to_string(differences.size() - most) + " more";
  return text;
}

Tensor stored_number(const Tensor& given, DType dtype, const char* function, CallSite where,
                     FunctionRef<void(const std::string& wrong)> refuse) {
  const DType from = given.dtype();
  const auto wrong = [&] { refuse(given.str() + ", which is no " + name_of(dtype)); };
  if (is_complex(from) && !is_complex(dtype)) wrong();
  if (!is_inexact(dtype) && is_inexact(from)) wrong();
  if (dtype == DType::bool_ && from != DType::bool_) wrong();
  const Scalar value = load_scalar(from, host_data(given, from, where, function));
  if (is_int(dtype) && !integer_fits(value, dtype, Literal::value)) wrong();
  return given.astype(dtype, where);
}

}  // namespace vt::detail
