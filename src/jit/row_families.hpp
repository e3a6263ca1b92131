// RowFamilies: one program for calls of a jitted function that differ in how many rows they have.
#pragma once

#include <memory>
#include <string>

#include "../trace/base/locks.hpp"
#include "../trace/base/recent_map.hpp"
#include "../trace/ir/executable.hpp"

namespace vt::detail {

class RowProgram;

/// Calls whose arguments differ in leading extents alone, and in those by the same numbers, are a
/// family. Once a family has had several sizes, and where rows do not meet, all further ones share
/// one program.
class RowFamilies {
 public:
  /// For a call of a new signature on the host: the program of its family, or null. `arguments`:
  /// the first inputs of `graph`, which is what has been recorded. `key`: all else that calls of a
  /// family have in common.
  std::shared_ptr<Executable> program(std::string key, const GraphBody& graph,
                                      std::size_t arguments);

 private:
  struct Family;
  LongMutex<> mutex_;
  RecentMap<std::string, std::shared_ptr<Family>> families_{64};
};

}  // namespace vt::detail
