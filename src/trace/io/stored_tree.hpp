// Trees in files: the names of their parts, and how what a file holds differs from what a tree
// wants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vt/detail/function.hpp>
#include <vt/detail/npz.hpp>

namespace vt::detail {

/// A part of a tree that is to be read.
struct WantedPart {
  std::string name;
  std::optional<NpzFile::Form> form;  ///< nothing: any
  bool is_number = false;
};

/// The name of the array for the part at a path: without the point or the brackets around the first
/// name, so that a map of Tensors has its keys as names. NumPy's name for one without a path.
std::string name_of_part(const std::string& path);

/// How what is there differs from what is wanted: "it does not hold this tree: …", or "" if it does
/// not. `names`: of all that is there; `form_of` a name, nothing where it is not there.
std::string tree_difference(
    const std::vector<WantedPart>& wanted, const std::vector<std::string>& names,
    FunctionRef<std::optional<NpzFile::Form>(const std::string& name)> form_of);

/// The number in a file as one of `dtype`, which must hold it: a float is rounded to the nearest
/// one, an integer stays what it is. Else `refuse`, which throws, is told what is wrong.
Tensor stored_number(const Tensor& given, DType dtype, const char* function, CallSite where,
                     FunctionRef<void(const std::string& wrong)> refuse);

}  // namespace vt::detail
