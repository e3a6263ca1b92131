// ProgramRows: which arrays of a program have as many rows as it is run for, and which of them can
// be cut after any number of rows.
#pragma once

#include <cstdint>

#include <vt/detail/small_vec.hpp>

#include "../../fusion/fuse.hpp"

namespace vt::detail {

class ProgramRows {
 public:
  /// `most`: a prime number. So an extent that is a multiple of it is one over rows.
  ProgramRows(const Fusion& fusion, std::int64_t most);
  std::int64_t most() const { return most_; }
  bool are_in(std::int64_t extent) const { return extent > 0 && extent % most_ == 0; }
  /// How many there are for each row, of so many in all; 0: as many for any number of rows.
  std::int64_t of_row(std::int64_t many) const { return are_in(many) ? many / most_ : 0; }
  bool has_rows(Var v) const;
  /// Do the array's first elements belong to its first rows? Not where something lies around the
  /// rows, as in a transposed array, or in one that has been made of such by reshape.
  bool come_first(Var v) const { return first_[v]; }
  /// Is there no array with several axes over rows?
  bool along_one_axis() const;

 private:
  const GraphBody& graph_;
  const std::int64_t most_;
  Vec<bool> first_;
};

}  // namespace vt::detail
