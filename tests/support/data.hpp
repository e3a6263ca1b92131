// Where tests find the data of the repository: also when it was taken elsewhere with them.
#pragma once

#include <cstdlib>
#include <string>

namespace vt_test {

/// "perf/data/": under the source folder, or under that which VT_TEST_DATA names.
inline std::string data_folder() {
  const char* moved = std::getenv("VT_TEST_DATA");
  return std::string(moved && *moved ? moved : VT_SOURCE_DIR) + "/perf/data/";
}

}  // namespace vt_test
