// VT_DUMP: Graphs, loop nests and code as files.
#pragma once

#include <string>

namespace vt::detail {

/// The folder that VT_DUMP names, or empty.
const std::string& dump_folder();
/// Writes `text` to a file of the dump folder; failures become warnings.
void dump_text(const std::string& name, const std::string& text);
/// A short name for a kernel: the hash of its text.
std::string short_name(const std::string& text);

}  // namespace vt::detail
