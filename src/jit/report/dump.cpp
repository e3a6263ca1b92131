// VT_DUMP: Graphs, loop nests and code as files.
#include "dump.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/stat.h>

#include "../../trace/base/warnings.hpp"
#include "../../trace/base/written_file.hpp"

namespace vt::detail {

const std::string& dump_folder() {
  static const std::string& folder = *new std::string([] {
    const char* text = std::getenv("VT_DUMP");
    return std::string(text ? text : "");
  }());
  return folder;
}

void dump_text(const std::string& name, const std::string& text) {
  const std::string& folder = dump_folder();
  if (folder.empty()) return;
  ::mkdir(folder.c_str(), 0777);  // it may be there already; writing the file tells
  const std::string path = folder + "/" + name;
  if (const int wrong = write_file(path, {text}, Lasting::no))
    warn_once("VT_DUMP: " + path + " cannot be written: " + std::strerror(wrong));
}

std::string short_name(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  char name[24];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(h));
  return name;
}

}  // namespace vt::detail
