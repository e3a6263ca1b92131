// Writing to files: all of some bytes, and a file as a whole, beside the old one, which is then
// replaced.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace vt::detail {

/// Writes all of it to an open file; 0, or the errno of what failed. A file that would be longer
/// than the process may make it (`ulimit -f`) is EFBIG, and no signal.
int write_all(int file, std::string_view bytes);

enum class Lasting { no, yes };

/// Writes `parts`, one after the other, as the file `path`; 0, or the errno of what failed, and
/// then nothing has changed.
///
/// Whoever opens the path, before, meanwhile or after a crash of the process, finds the old file or
/// the new one, complete: it is written beside the old one, under a name of its own, and then
/// renamed. Of several writers the last one wins. The mode of a file that was there is kept; a link
/// is replaced, not followed; what is no file (a pipe, a terminal) is written to. `yes`: it is on
/// the disk before it takes the old one's place, for what cannot be made again.
int write_file(const std::string& path, std::span<const std::string_view> parts,
               Lasting = Lasting::yes);
inline int write_file(const std::string& path, std::initializer_list<std::string_view> parts,
                      Lasting lasting = Lasting::yes) {
  return write_file(path, std::span<const std::string_view>(parts.begin(), parts.size()), lasting);
}

}  // namespace vt::detail
