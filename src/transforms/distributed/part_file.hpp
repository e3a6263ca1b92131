// Files that several processes write in parts under another name, which then take their place; and
// the folders that hold them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vt::detail {

// All give 0, or the errno of what failed.

/// A file that is open to be written.
class PartFile {
 public:
  PartFile() = default;
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  /// A new one. `mode`: as chmod takes it, or −1.
  int create(const std::string& path, int mode = -1);
  /// One that is there.
  int open(const std::string& path);
  int write(std::uint64_t offset, std::string_view bytes);
  /// Makes it this long.
  int resize(std::uint64_t bytes);
  /// Forces it to the disk.
  int close();

 private:
  int number_ = -1;
};

/// Gives the file another name, which is on the disk then.
int replace_file(const std::string& from, const std::string& to);
/// What was done to the names in a folder is on the disk then. Some file systems cannot do it.
void force_folder(const std::string& folder);
/// The mode of the file that another one is to replace; −1: there is none.
/// `wrong`: why it cannot be replaced, or 0.
int mode_to_keep(const std::string& path, int& wrong);
/// Sixteen digits and letters that no other file has in its name.
std::string new_file_id();

}  // namespace vt::detail
