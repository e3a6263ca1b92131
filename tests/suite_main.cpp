// main of programs that hold several suites: the name that such a program is called by says which
// suite runs, as if each were a program of its own. Called by its own name it runs all of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <vector>

namespace {

/// Of "amalgamated.errors_test": "errors_test.cpp".
std::string source_of(const std::string& program) {
  const std::string name = std::filesystem::path(program).filename().string();
  return name.substr(name.rfind('.') + 1) + ".cpp";  // npos + 1 is 0
}

std::string file_of(const ::testing::TestInfo& test) {
  return std::filesystem::path(test.file()).filename().string();
}

/// A test whose name another source has as well, if there is one: a filter could not tell them
/// apart.
std::string ambiguous() {
  std::set<std::string> names;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i)
    for (int k = 0; k < all.GetTestSuite(i)->total_test_count(); ++k) {
      const std::string name = std::string(all.GetTestSuite(i)->name()) + "." +
                               all.GetTestSuite(i)->GetTestInfo(k)->name();
      if (!names.insert(name).second) return name;
    }
  return "";
}

/// The names of what other sources hold, for the filter: whole suites where they can be.
std::vector<std::string> tests_outside(const std::string& source) {
  std::vector<std::string> outside;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    const std::string name = suite.name();
    bool begun_here = false;  // then tests of a file that is included belong to this source as well
    for (int k = 0; k < suite.total_test_count(); ++k)
      begun_here |= file_of(*suite.GetTestInfo(k)) == source;
    std::vector<std::string> tests;
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const std::string file = file_of(*suite.GetTestInfo(k));
      if (file != source && !(begun_here && file.ends_with(".inc")))
        tests.push_back(name + "." + suite.GetTestInfo(k)->name());
    }
    if (static_cast<int>(tests.size()) == suite.total_test_count()) tests = {name + ".*"};
    outside.insert(outside.end(), tests.begin(), tests.end());
  }
  return outside;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string source = source_of(argv[0]);
  ::testing::InitGoogleTest(&argc, argv);
  if (const std::string name = ambiguous(); !name.empty()) {
    std::cerr << "two sources of this program have a test " << name << "\n";
    return 1;
  }
  if (source.ends_with("_test.cpp")) {
    std::string filter = GTEST_FLAG_GET(filter);
    char separator = filter.find('-') == std::string::npos ? '-' : ':';
    for (const std::string& name : tests_outside(source)) {
      filter += separator + name;
      separator = ':';
    }
    GTEST_FLAG_SET(filter, filter);
  }
  return RUN_ALL_TESTS();
}
